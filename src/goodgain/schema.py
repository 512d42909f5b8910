"""The tables between the packages of goodgain: their columns and types."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

import narwhals as nw
import polars as pl

#: The column of outcomes in which `convert` marks traces that broke off, by their logs, with 0.
COMPLETED = "completed"
#: The doc_id of a row for an iteration without results.
EMPTY_DOC = "-"

#: The first character of a comment in TREC text, as in trec_eval 10.
COMMENT = "#"

#: White space between fields of a file, as in isspace of C. Any other, such as U+00A0, is part of an id.
BLANKS = " \t\n\r\v\f"

#: Columns of text that name things. A float there is an error: it has lost digits (2301.10 became 2301.1).
IDS = frozenset({"query_id", "doc_id", "iteration", "tag", "judge", "system", "replicate", "document", "call_id"})


@dataclass(frozen=True)
class Table:
    """One kind of table."""

    name: str  # in messages
    columns: Mapping[str, nw.dtypes.DType]  # in order, with their types
    optional: frozenset[str] = frozenset()  # columns that a frame may lack
    nullable: frozenset[str] = frozenset()  # columns where null has a meaning: no judgment, or no tag
    #: Other names of columns (in lower case) -> the name here, used if no column has that name or that in another case.
    synonyms: Mapping[str, str] = field(default_factory=dict)

    def understand(self, name: object) -> str:
        """Return what a name in a source means: the name here of a synonym, or of one that differs in case alone."""
        lower = str(name).lower()
        return self.synonyms.get(lower, lower)

    @cached_property
    def required(self) -> tuple[str, ...]:
        return tuple(name for name in self.columns if name not in self.optional)

    @cached_property
    def numbers(self) -> tuple[str, ...]:
        """The columns of numbers; the iteration of a run can also be a word."""
        return tuple(name for name, dtype in self.columns.items() if dtype.is_numeric() and name not in IDS)

    @cached_property
    def polars(self) -> pl.Schema:
        """The columns in types of Polars."""
        return nw.Schema(self.columns).to_polars()


#: name -> value pairs of a result: `ids` (domain-specific ids) and `fields` (sender, start, ...).
_PAIRS = nw.List(nw.Struct({"name": nw.String(), "value": nw.String()}))

RESULTS = Table(
    "results",
    {
        "query_id": nw.String(),
        "system": nw.String(),
        "replicate": nw.String(),
        "turn": nw.Int64(),
        "iteration": nw.Int64(),
        "search": nw.Int64(),
        "rank": nw.Int64(),
        "doc_id": nw.String(),
        "type": nw.String(),
        "url": nw.String(),
        "title": nw.String(),
        "snippet": nw.String(),
        "score": nw.Float64(),
        "ids": _PAIRS,
        "fields": _PAIRS,
        "call_id": nw.String(),
        "search_query": nw.String(),
        "status": nw.String(),
    },
    optional=frozenset(
        {"system", "replicate", "turn", "doc_id", "type", "url", "title", "snippet", "score", "ids", "fields"}
        | {"call_id", "search_query", "status"}
    ),
)

#: The columns that deduplication adds to results.
DEDUPLICATED = Table(
    "documents", {"document": nw.String(), "duplicate_of": nw.Int64(), "rule": nw.String(), "confidence": nw.Float64()}
)

#: The cost of each iteration of a query, and its search calls; iteration 0 is the cost after the last search, of the answer.
COSTS = Table(
    "costs",
    {
        "query_id": nw.String(),
        "system": nw.String(),
        "replicate": nw.String(),
        "iteration": nw.Int64(),
        "calls": nw.Int64(),
        "input_tokens": nw.Int64(),
        "output_tokens": nw.Int64(),
        "seconds": nw.Float64(),
        "cost": nw.Float64(),
    },
    optional=frozenset(
        {"system", "replicate", "iteration", "calls", "input_tokens", "output_tokens", "seconds", "cost"}
    ),
)

#: The documents that a query returned, opened or cited, or one row with the doc_id `-`. `opens` and `cited` are null where
#: the log does not record them.
USES = Table(
    "uses",
    {
        "query_id": nw.String(),
        "system": nw.String(),
        "replicate": nw.String(),
        "doc_id": nw.String(),
        "returned_at": nw.Int64(),
        "rank": nw.Int64(),
        "opened_at": nw.Int64(),
        "opens": nw.Int64(),
        "failed_opens": nw.Int64(),
        "cited": nw.Boolean(),
    },
    optional=frozenset({"system", "replicate", "rank", "failed_opens"}),
)

_ID_SYNONYMS = {"qid": "query_id", "q_id": "query_id", **dict.fromkeys(("docno", "docid", "did", "pid"), "doc_id")}

RUN = Table(
    "run",
    {
        "query_id": nw.String(),
        "iteration": nw.Int64(),
        "doc_id": nw.String(),
        "rank": nw.Int64(),
        "score": nw.Float64(),
        "tag": nw.String(),
    },
    optional=frozenset({"iteration", "rank", "score", "tag"}),
    nullable=frozenset({"tag"}),
    synonyms=_ID_SYNONYMS,
)

QRELS = Table(
    "qrels",
    {"query_id": nw.String(), "iteration": nw.String(), "doc_id": nw.String(), "relevance": nw.Float64()},
    optional=frozenset({"iteration"}),
    nullable=frozenset({"relevance"}),
    synonyms=_ID_SYNONYMS | dict.fromkeys(("label", "gain", "grade", "rel"), "relevance"),
)

#: Qrels whose column 2 is a nugget; `vital` is 1 for a vital one.
NUGGETS = replace(
    QRELS,
    columns={**QRELS.columns, "vital": nw.Float64()},
    optional=QRELS.optional | {"vital"},
    nullable=QRELS.nullable | {"vital"},
    synonyms={**QRELS.synonyms, "nugget_id": "iteration"},
)

#: The header of BEIR's qrels -> our names. A column score alone is not a label.
BEIR = {"query-id": "query_id", "corpus-id": "doc_id", "score": "relevance"}

#: Qrels in which every row has the same label, so that no column holds it.
UNLABELLED = replace(QRELS, optional=QRELS.optional | {"relevance"})

LEDGER = Table(
    "ledger",
    {
        "query_id": nw.String(),
        "iteration": nw.Int64(),
        "R": nw.Int64(),
        "UR": nw.Int64(),
        "Dup": nw.Int64(),
        "GR": nw.Int64(),
        "G": nw.Float64(),
        "Unjudged": nw.Int64(),
    },
)

POOLS = Table("pools", {"query_id": nw.String(), "N": nw.Int64(), "GoodPool": nw.Int64(), "GainPool": nw.Float64()})
