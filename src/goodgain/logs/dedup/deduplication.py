"""Deduplicates a results frame. Collapses rows to records, compares candidate pairs, and groups and names the records.

The same steps find doc_ids that stand for several documents of a query, as when a tool numbers the hits of each search 1, 2, 3.
"""

import os
import textwrap
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, get_args

import narwhals as nw
import polars as pl
from narwhals.typing import IntoFrame

from goodgain.argument_kinds import checks_kinds
from goodgain.errors import InputError, notice
from goodgain.formats.results import open_results
from goodgain.logs.dedup.candidates import form_pairs
from goodgain.logs.dedup.document_names import name_documents
from goodgain.logs.dedup.document_types import TYPES
from goodgain.logs.dedup.earlier_documents import add_earlier_rows, keep_earlier_documents
from goodgain.logs.dedup.grouping import group_records
from goodgain.logs.dedup.reports import Agreement, Explanation, Summary, explain, name_rules, score_agreement, summarise
from goodgain.logs.dedup.rows_and_trusted_ids import (
    OF_RUNS,
    PLAIN_COLUMNS,
    RUN_ORDER,
    SCOPES,
    Level,
    Policy,
    Records,
    collapse_rows,
    has_only_ids,
    make_comparable,
    read_rows,
)
from goodgain.logs.dedup.said_pairs import Pairs, SaidPairs, UserPairs, read_pairs
from goodgain.logs.dedup.said_records import find_user_pairs
from goodgain.logs.dedup.verification import PROVEN_DIFFERENT, SAID, UNDECIDED, verify, verify_rows
from goodgain.options import check_whole_number
from goodgain.schema import DEDUPLICATED, EMPTY_DOC

_ID = ["query_id", "doc_id"]
#: Stands for the distance between rank and doc_id if the doc_id is not a number.
_NO_SHIFT = -1_000_000
#: Longer titles and texts are cut in notices.
_MAX_QUOTED = 60


@dataclass(frozen=True)
class Deduplication:
    """Results with their documents, and how the documents were found.

    `frame` is the input frame (same library, same order of rows) with four more columns: `document`, `duplicate_of`, `rule` and
    `confidence`. `duplicate_of` is the row (from 0) of the first occurrence in the same query and system. The last three
    columns are null for a first occurrence. Functions that read data frames through narwhals accept this object as a frame.

    >>> import goodgain as gg
    >>> import polars as pl
    >>> urls = ["https://example.org/a?utm_source=x", "https://example.org/a"]
    >>> found = gg.deduplicate(pl.DataFrame({"query_id": "q1", "rank": [1, 2], "url": urls}))
    >>> found.frame.select("duplicate_of", "rule").rows()
    [(None, None), (0, 'url')]
    """

    frame: Any
    summary: Summary
    policy: Policy
    _rows: pl.DataFrame = field(repr=False)
    _records: Records = field(repr=False)

    def __narwhals_dataframe__(self) -> Any:
        # narwhals calls this method on unknown frames, and has no public name for what it must return.
        return nw.from_native(self.frame, eager_only=True)._compliant_frame

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return nw.from_native(self.frame, eager_only=True).__arrow_c_stream__(requested_schema)

    @checks_kinds
    def explain(self, document: str, other: str | None = None, *, query_id: str | None = None) -> Explanation:
        """Explain why the results of `document` count as one document, by the rule, fields and confidence of each pair of results.

        With `other`, explain why `document` and `other` are different. Raises InputError if a document does not exist.
        """
        return explain(self._rows, self._records, document, other, query_id)

    @checks_kinds
    def score(self, gold: str | Sequence[object] | pl.Series) -> Agreement:
        """Score how well the documents found match given groups, by precision, recall and F1: pairwise and B-cubed.

        `gold` is the name of a column, or a list with the group of each row. Rows with a null group are not counted. Only rows
        that were deduplicated together are compared.
        """
        if isinstance(gold, str):
            columns = nw.from_native(self.frame, eager_only=True).columns
            if gold not in columns:
                raise InputError(f"gold={gold!r} is not a column of the results; they have {', '.join(columns)}")
            gold = nw.from_native(self.frame, eager_only=True).select(gold).to_polars()[gold]
        return score_agreement(self._rows, gold)


@checks_kinds
def deduplicate(
    results: IntoFrame | str | os.PathLike[str],
    *,
    policy: Policy = "standard",
    across: Collection[str] = ("system",),
    trust_doc_id: bool | None = None,
    level: Level = "passage",
    pairs_a_key: int = 10_000,
    earlier: Any = None,
    same: Pairs | SaidPairs | None = None,
    different: Pairs | SaidPairs | None = None,
) -> Deduplication:
    """Find the results of a query that are the same document.

    Args:
        results: a run or a frame of results (any library that narwhals supports), or the path of a file from `write_results`.
        policy: `standard`, the default; `id`, which uses only item ids, equal URLs and trusted doc_ids; `strict`, in which any
            difference in a compared field separates two results; or `content`, in which copies at another host or path are
            duplicates.
        across: columns across which results are deduplicated: `system`, `query_id`, both, or () for none. The default,
            `system`, lets one qrels file serve all systems.
        trust_doc_id: whether doc_ids alone decide which results are one document. None, the default: only if the
            frame has no other evidence, as in a run.
        level: `passage`, or `document` to count a passage as the document that contains it.
        pairs_a_key: a limit. If more pairs share a key, such as a title or a URL, only some of these pairs are compared.
        earlier: results that already have documents: a frame with the column `document`, or the path of such a file. Earlier
            documents keep their names and results. A new result joins the earlier document that it matches best.
            `summary.bridges` counts the conflicts with earlier documents (see `Summary`).
        same: pairs of ids or URLs that are one document, whatever the rules say, or the path of a file with one pair per line.
        different: pairs of ids or URLs that are two documents, or the path of a file with one pair per line.

    Raises:
        InputError: the frame has no query_id, or no column that identifies documents.

    Source: the two-phase deduplication of the Retrieved Good Gain guideline.

    >>> import polars as pl
    >>> urls = ["https://example.org/a?utm_source=x", "http://www.example.org/a/"]
    >>> found = deduplicate(pl.DataFrame({"query_id": "q1", "rank": [1, 2], "url": urls}))
    >>> found.frame["document"].to_list(), found.frame["rule"].to_list()
    (['https://example.org/a', 'https://example.org/a'], [None, 'url'])
    >>> two = pl.DataFrame({"query_id": "q1", "rank": [1, 2], "url": ["https://example.org/a", "https://example.net/b"]})
    >>> deduplicate(two, same=[("https://example.net/b", "https://example.org/a")]).frame["rule"].to_list()
    [None, 'said by same=']
    """
    _check_options(policy, across, level, pairs_a_key)
    same_pairs = read_pairs(same, "same")
    different_pairs = read_pairs(different, "different")
    frame = _open_frame(results, "the results")
    all_results, earlier_documents = frame, pl.Series([], dtype=pl.String)
    if earlier is not None:
        earlier_frame = _open_frame(getattr(earlier, "frame", earlier), "the earlier results")
        all_results, earlier_documents = add_earlier_rows(frame, earlier_frame.to_polars())

    # Phase 1: one record per distinct result, and the pairs of records that share a key.
    trusted = has_only_ids(all_results) if trust_doc_id is None else trust_doc_id
    rows, attributes = read_rows(all_results, across)
    comparable = make_comparable(rows, attributes, trusted=trusted, level=level)
    records = _mark_vague_copies(collapse_rows(comparable, trusted=trusted, policy=policy))
    pairs, skipped_of_keys = form_pairs(records, pairs_a_key)

    # Phase 2: a verdict for each pair, and one group of records per document.
    pairs = verify(records, pairs)
    if same_pairs.pairs or different_pairs.pairs:
        records = replace(records, user_pairs=find_user_pairs(same_pairs, different_pairs, records))
    grouping = group_records(records, pairs, pairs_a_key, earlier_documents)
    if records.user_pairs is not None:
        pairs = _add_user_pairs(pairs, records.user_pairs)

    # The rows of all results, then without those of the earlier results.
    rows = rows.with_columns(record=records.of_row)
    documents, late_bridges = _name_rows(rows, records, grouping.group_of, earlier_documents, pairs)
    documents = _add_rules(documents, records, pairs)
    number_of_earlier = len(earlier_documents)
    rows = rows.slice(number_of_earlier).with_columns(pl.col("row") - number_of_earlier)
    rows = rows.select("row", "scope", *OF_RUNS, "record")
    documents_of_rows = documents.select("row", *DEDUPLICATED.columns)
    rows = rows.join(documents_of_rows, on="row", how="left", maintain_order="left")

    summary = summarise(
        documents,
        records,
        pairs,
        refused=grouping.refused,
        skipped=[*skipped_of_keys, *grouping.skipped],
        earlier=len(earlier_documents),
        bridges=grouping.bridges + late_bridges,
    )
    _give_notices(summary)
    for argument, user_pairs in ((same, same_pairs), (different, different_pairs)):
        if argument is not user_pairs:  # else the caller has further results, and gives the notice
            user_pairs.give_notice()

    return Deduplication(_add_new_columns(frame, rows), summary, policy, rows, records)


def _add_new_columns(frame: nw.DataFrame[Any], rows: pl.DataFrame) -> Any:
    """Return the user's frame in its own library, with the documents and their rules in further columns."""
    new_columns = []
    for name in DEDUPLICATED.columns:
        new_columns.append(nw.new_series(name, rows[name], backend=frame.implementation))
    return frame.with_columns(*new_columns).to_native()


def _check_options(policy: str, across: Collection[str], level: str, pairs_a_key: int) -> None:
    options = (("policy", policy, get_args(Policy)), ("level", level, get_args(Level)))
    for name, value, choices in options:
        if value not in choices:
            raise InputError(f"There is no {name} {value!r}: take one of {', '.join(choices)}.")
    if isinstance(across, str) or not set(across) <= set(SCOPES):
        raise InputError(f"across={across!r} is not a list of {' and '.join(SCOPES)}: name one, both or none.")
    check_whole_number("pairs_a_key", pairs_a_key, 1)


def _open_frame(results: Any, subject: str) -> nw.DataFrame[Any]:
    """Return the results as a frame in memory. A lazy frame is collected as a Polars frame."""
    try:
        opened = nw.from_native(open_results(results))
    except TypeError:
        raise InputError(f"{subject} are a {type(results).__name__}; give a data frame or the path of a file") from None

    frame: nw.DataFrame[Any] = opened.collect(backend="polars") if isinstance(opened, nw.LazyFrame) else opened
    for name, kind in frame.schema.items():
        is_plain = not kind.is_nested() and kind not in (nw.Object, nw.Binary, nw.Duration)
        if name in (*PLAIN_COLUMNS, "document") and not is_plain:
            raise InputError(f"{subject} have {kind} in the column {name}: give texts or numbers")
    return frame


def _mark_vague_copies(records: Records) -> Records:
    """Add the column `apart`: the record stands for equal rows with only a title, or with nothing. They stay separate documents."""
    is_vague_copy = (pl.col("rows") > 1) & pl.col("vague")
    vague_copies = records.frame.filter(is_vague_copy)
    # A record stands for equal rows, so the pair of a record with itself says whether these rows are one document.
    pairs = verify(records, vague_copies.select(left="record", right="record"))
    apart = pairs.filter(~pl.col("same"))["left"]
    frame = records.frame.with_columns(apart=pl.col("record").is_in(apart.implode()))
    return replace(records, frame=frame)


def _add_user_pairs(pairs: pl.DataFrame, user_pairs: UserPairs) -> pl.DataFrame:
    """Add the pairs of `same` to the verified pairs. The user's pairs replace the verdicts of the rules."""
    unverified = user_pairs.pairs.join(pairs, on=["left", "right"], how="anti")
    undecided = unverified.with_columns(rule=pl.lit(UNDECIDED, pl.UInt8), same=pl.lit(False), confidence=pl.lit(0.0))
    all_pairs = pl.concat([pairs, undecided.select(pairs.columns)])
    return user_pairs.overrule(all_pairs, SAID)


def _name_rows(
    rows: pl.DataFrame, records: Records, group_of: pl.Series, earlier_documents: pl.Series, pairs: pl.DataFrame
) -> tuple[pl.DataFrame, int]:
    """Return the rows with a result in the order of their runs, with the column `document`, and the number of bridges.

    `rows` has the earlier rows first, one for each of `earlier_documents`. `group_of` has the group of each record, and `pairs`
    the verified pairs of records. Only the new rows are returned, numbered from 0. Bridges are conflicts with earlier documents
    (see `keep_earlier_documents`).
    """
    documents = rows.select("row", "scope", *OF_RUNS, *RUN_ORDER, "record").drop_nulls("record")
    _query_id, *run_names = OF_RUNS  # the rows of a run stay together, whatever their query
    documents = documents.sort(*run_names, *RUN_ORDER, "row", nulls_last=True)
    documents = documents.with_columns(document=name_documents(records, group_of, documents))
    if earlier_documents.is_empty():
        return documents, 0

    new_documents, bridges = keep_earlier_documents(documents, earlier_documents, pairs)
    new_row = pl.col("row") - len(earlier_documents)
    return new_documents.with_columns(new_row), bridges


def _add_rules(documents: pl.DataFrame, records: Records, pairs: pl.DataFrame) -> pl.DataFrame:
    """Add the columns `duplicate_of`, `rule` and `confidence`.

    A duplicate gets the rule that joins it to the first occurrence of its document in the run, or else the
    most confident rule that joins it to any other result.
    """
    firsts = pl.col("row", "record").first().over(*OF_RUNS, "scope", "document")
    documents = documents.with_columns(firsts.name.prefix("first_"))
    is_repeat = pl.col("row") != pl.col("first_row")
    first_row = pl.col("first_row").cast(pl.Int64)
    documents = documents.with_columns(duplicate_of=pl.when(is_repeat).then(first_row))

    # one row per (record of a first occurrence, record of a repeat) that a rule joins
    with_first = documents.filter(is_repeat).select(left="first_record", right="record").unique()
    with_first = verify_rows(records, with_first).filter("same")
    with_first = with_first.with_columns(name_rules(records)).drop("same")
    with_first = with_first.rename({"left": "first_record", "right": "record"})

    # one row per record: its most confident rule
    joined = pairs.filter("same")
    ends = pl.concat(joined.select("rule", "same", "confidence", record=end) for end in ("left", "right"))
    surest_first = ends.sort("confidence", "rule", descending=[True, False])
    strongest = surest_first.unique("record", keep="first")
    strongest = strongest.with_columns(name_rules(records)).drop("same")

    documents = documents.join(with_first, on=["first_record", "record"], how="left", maintain_order="left")
    documents = documents.join(strongest, on="record", how="left", suffix="_strongest", maintain_order="left")
    return documents.with_columns(
        rule=pl.when(is_repeat).then(pl.coalesce("rule", "rule_strongest")),
        confidence=pl.when(is_repeat).then(pl.coalesce("confidence", "confidence_strongest")),
    )


def _give_notices(summary: Summary) -> None:
    """Give notices of pairs that were left out, and of earlier documents that the new results join or split."""
    if summary.skipped:
        left_out = "; ".join(map(str, summary.skipped))
        notice(
            "uncompared_pairs",
            f"Deduplication left pairs uncompared ({left_out}): raise pairs_a_key to compare more of them.",
        )
    if summary.bridges:
        notice(
            "conflicting_documents",
            f"{summary.bridges:,} conflict{'s' * (summary.bridges != 1)} with earlier documents: results connect two "
            "of these documents, or an earlier document is now several documents; convert all logs in one call to resolve this",
        )


def find_doubtful_ids(results: pl.DataFrame) -> pl.DataFrame:
    """Return the doc_ids that may stand for several documents.

    A doubtful doc_id has several URLs, or several rows and a known type, or is a number by which the tool counts its hits.
    """
    has_id = ~pl.col("doc_id").is_in(["", EMPTY_DOC])
    has_type = pl.col("type").is_in([*TYPES])
    has_evidence = pl.col("url").is_not_null() | has_type
    repeated = results.filter(has_id & has_evidence, pl.struct(_ID).is_duplicated())  # few rows of most logs

    # one row per (query_id, doc_id)
    by_id = repeated.group_by(_ID).agg(
        urls=pl.col("url").drop_nulls().n_unique(),
        has_type=has_type.any(),
        rows=pl.len(),
    )
    has_several_urls = pl.col("urls") > 1
    has_several_rows = pl.col("has_type") & (pl.col("rows") > 1)
    doubtful = by_id.filter(has_several_urls | has_several_rows).select(_ID)
    return pl.concat([doubtful, _find_numbers_of_hits(results)]).unique(maintain_order=True)


def _find_numbers_of_hits(results: pl.DataFrame) -> pl.DataFrame:
    """Return the repeated doc_ids of queries in which each doc_id is the position of the result in its search, from 0 or 1.

    One doc_id alone does not count hits: a tool may return the same document, whose id is 1, each time.
    """
    hits = results.filter(pl.col("rank") > 0)
    number = pl.col("doc_id").str.extract("^([0-9]{1,4})$").cast(pl.Int64)
    shift = (pl.col("rank") - number).fill_null(_NO_SHIFT)
    is_numbered = (shift.n_unique() == 1) & shift.first().is_in([0, 1]) & (number.n_unique() > 1)
    numbered = hits.filter(is_numbered.over("query_id"), pl.struct(_ID).is_duplicated())
    return numbered.select(_ID).unique(maintain_order=True)


def _find_renumbered_ids(results: pl.DataFrame) -> dict[str, str]:
    """Find queries in which a tool numbers the hits of each search, and a number has different titles, or else different texts.

    Such a number names no document, even if its results have no URL.
    """
    texts = [name for name in ("title", "snippet") if name in results.columns]
    numbered = results.join(_find_numbers_of_hits(results), on=_ID, how="semi", maintain_order="left")
    if not texts or numbered.is_empty():
        return {}
    text = pl.coalesce(texts).str.strip_chars()
    one_per_text = (
        numbered.select(*_ID, text=text)
        .drop_nulls()
        .unique([*_ID, pl.col("text").str.to_lowercase()], keep="first", maintain_order=True)
    )
    of_ids = one_per_text.group_by(_ID, maintain_order=True).agg(texts="text")
    several = of_ids.filter(pl.col("texts").list.len() > 1).unique("query_id", keep="first", maintain_order=True)
    return {
        query_id: f"{doc_id!r} of {query_id}: {_shorten(texts[0])} and {_shorten(texts[1])}"
        for query_id, doc_id, texts in several.iter_rows()
    }


def _shorten(text: str) -> str:
    return textwrap.shorten(text, _MAX_QUOTED, placeholder=" ...")


def find_reissued_ids(results: pl.DataFrame) -> dict[str, str]:
    """Find queries in which a doc_id stands for two documents. Return a dict from query_id to a text that names the doc_id.

    The text also names the two documents, by URL, title or type. If several doc_ids of a query stand for two documents,
    the text names the first. Different snippets, passages or spellings of a URL do not prove that two documents differ,
    unless the doc_ids number the hits of each search.
    """
    doubtful = results.join(find_doubtful_ids(results), on=_ID, how="semi", maintain_order="left")
    if doubtful.is_empty():
        return {}
    renumbered = _find_renumbered_ids(results)

    evidence = doubtful.drop("snippet", strict=False)
    rows, attributes = read_rows(nw.from_native(evidence), across=("system",))
    # At level "document" the passages of one document do not differ. There a passage's doc_id would be its parent.
    comparable = make_comparable(rows, attributes, trusted=True, level="document")
    comparable = comparable.with_columns(doc_id=rows["doc_id"])
    records = collapse_rows(comparable, trusted=False)
    last = pl.col("record").max().over("scope", "doc_id")  # it has a URL if any has one
    pairs = records.frame.select(left="record", right=last)
    pairs = pairs.filter(pl.col("left") < pl.col("right"))
    different = verify(records, pairs).filter(PROVEN_DIFFERENT)

    # one row per record: the first row with it
    names = doubtful.select(*_ID, text=pl.coalesce("url", "title", "type"))
    names = names.with_columns(record=records.of_row)
    names = names.with_row_index("row").unique("record", keep="first")
    named = different.join(names, left_on="left", right_on="record")
    named = named.join(names, left_on="right", right_on="record")

    # one row per query: the pair that the results show first
    rows_of_pair = "row", "row_right"
    named = named.sort(pl.max_horizontal(rows_of_pair), pl.min_horizontal(rows_of_pair))
    earliest = named.unique("query_id", keep="first", maintain_order=True)
    texts = pl.concat_list("text", "text_right")
    is_in_order = pl.col("row") < pl.col("row_right")
    in_order = pl.when(is_in_order).then(texts).otherwise(texts.list.reverse())
    earliest = earliest.select(*_ID, documents=in_order)
    by_query = {
        query_id: f"{doc_id!r} of {query_id}: {first} and {second}"
        for query_id, doc_id, (first, second) in earliest.iter_rows()
    }
    return renumbered | by_query
