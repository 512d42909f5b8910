"""Declares the columns, with their types, of the tables that goodgain reads and writes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import narwhals as nw
import polars as pl

#: A column of outcomes. `convert` writes 0 for a trace that broke off according to the log, and 1 for each other trace.
COMPLETED = "completed"
#: What a line of `require` may test without a table: 1 for a query that searched in the run, 0 for any other judged query.
SEARCHED = "searched"
#: The doc_id of a row for an iteration without results.
EMPTY_DOC = "-"

#: The first character of a comment in TREC text, as in trec_eval 10.
COMMENT = "#"

#: White space between fields of a file, as in isspace of C. Other white space, such as U+00A0, is part of an id.
BLANKS = " \t\n\r\v\f"

#: Columns of text with ids. A float in such a column is an error: it may have lost digits (2301.10 became 2301.1).
IDS = frozenset({"query_id", "doc_id", "iteration", "tag", "judge", "system", "replicate", "document", "call_id"})


#: Word in the declarations below -> type of a column.
_TYPES: dict[str, nw.dtypes.DType] = {
    "text": nw.String(),
    "whole": nw.Int64(),
    "number": nw.Float64(),
    "flag": nw.Boolean(),
    # name -> value pairs of a result: domain-specific ids, or fields such as sender and start
    "pairs": nw.List(nw.Struct({"name": nw.String(), "value": nw.String()})),
}


@dataclass(frozen=True)
class Table:
    name: str  # in messages
    columns: Mapping[str, nw.dtypes.DType]  # in order, with their types
    optional: frozenset[str] = frozenset()  # columns that a frame may lack
    nullable: frozenset[str] = frozenset()  # columns where null has a meaning: no judgment, or no tag
    #: Synonym in lower case -> name of the column. A synonym applies only if the source lacks the name, in any case.
    synonyms: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, name: str, declared: str, **parts: Any) -> Table:
        """Make a table from types split by `;` or line ends. Each type is followed by its columns. `?` marks an optional column.

        >>> Table.of("labels", "text: query_id doc_id; number: relevance?").required
        ('query_id', 'doc_id')
        """
        lines = [line.partition(":") for line in re.split("[;\n]", declared) if line.strip()]
        types = {column: _TYPES[kind.strip()] for kind, _, columns in lines for column in columns.split()}
        columns = {column.removesuffix("?"): dtype for column, dtype in types.items()}
        return cls(name, columns, frozenset(columns.keys() - types.keys()), **parts)

    def understand(self, name: object) -> str:
        """Return the goodgain column that `name` is a synonym of, or else `name` in lower case."""
        lower = str(name).lower()
        return self.synonyms.get(lower, lower)

    @cached_property
    def required(self) -> tuple[str, ...]:
        return tuple(name for name in self.columns if name not in self.optional)

    @cached_property
    def numbers(self) -> tuple[str, ...]:
        """The names of the numeric columns. `iteration` is left out, because a run can name iterations by words."""
        return tuple(name for name, dtype in self.columns.items() if dtype.is_numeric() and name not in IDS)

    @cached_property
    def polars(self) -> pl.Schema:
        return nw.Schema(self.columns).to_polars()


RESULTS = Table.of(
    "results",
    """
    text: query_id system? replicate?
    whole: turn? iteration search rank
    text: doc_id? type? url? title? snippet?
    number: score?
    pairs: ids? fields?
    text: call_id? search_query? arguments? status?
    """,
)

#: The columns that deduplication adds to results.
DEDUPLICATED = Table.of("documents", "text: document; whole: duplicate_of; text: rule; number: confidence")

#: The cost and the search calls of each iteration of a query. Iteration 0 is the cost after the last search: the answer.
#: `input_tokens` includes `cached_tokens` (read from a cache), and `output_tokens` includes `reasoning_tokens`.
COSTS = Table.of(
    "costs",
    """
    text: query_id system? replicate?
    whole: iteration? calls? input_tokens? output_tokens?
    number: seconds? cost?
    whole: cached_tokens? reasoning_tokens?
    """,
)

#: The documents that a query returned, opened or cited. A query without documents has one row with the doc_id `-`.
#: `opens` and `cited` are null if the log does not record them.
USES = Table.of(
    "uses",
    """
    text: query_id system? replicate? doc_id
    whole: returned_at rank? opened_at opens failed_opens?
    flag: cited
    """,
)

_ID_SYNONYMS = {"qid": "query_id", "q_id": "query_id", **dict.fromkeys(("docno", "docid", "did", "pid"), "doc_id")}

RUN = Table.of(
    "run",
    "text: query_id; whole: iteration?; text: doc_id; whole: rank?; number: score?; text: tag?",
    nullable=frozenset({"tag"}),
    synonyms=_ID_SYNONYMS,
)

QRELS = Table.of(
    "qrels",
    "text: query_id iteration? doc_id; number: relevance",
    nullable=frozenset({"relevance"}),
    synonyms=_ID_SYNONYMS | dict.fromkeys(("label", "gain", "grade", "rel"), "relevance"),
)

#: Qrels whose column 2 is a nugget; `vital` is 1 for a vital nugget.
NUGGETS = replace(
    QRELS,
    columns={**QRELS.columns, "vital": nw.Float64()},
    optional=QRELS.optional | {"vital"},
    nullable=QRELS.nullable | {"vital"},
    synonyms={**QRELS.synonyms, "nugget_id": "iteration"},
)

#: Column of BEIR's qrels -> name of the column here. `score` is the label only if all three columns are present.
BEIR = {"query-id": "query_id", "corpus-id": "doc_id", "score": "relevance"}

#: Column of the tasks of tau-bench's banking domain -> name of the column here. Each task lists the documents that it needs.
TASKS = {"id": "query_id", "required_documents": "doc_id"}

#: Column with the internal number of a document in PyTerrier's index -> column with the document's id. Results may have both.
INTERNAL_NUMBERS = {"docid": "docno"}

#: Qrels without a column of labels: every row has the same label.
UNLABELLED = replace(QRELS, optional=QRELS.optional | {"relevance"})

LEDGER = Table.of("ledger", "text: query_id; whole: iteration R UR Dup GR; number: G; whole: Unjudged")

POOLS = Table.of("pools", "text: query_id; whole: N GoodPool; number: GainPool")
