"""Makes runs from results, and tables of the documents that were returned, opened and cited.

A run has one row per document, ranked within its iteration. An iteration without results has a row with doc_id `-`.
"""

from collections.abc import Sequence
from typing import Any

import polars as pl

from goodgain.argument_kinds import checks_kinds
from goodgain.errors import count_of, notice
from goodgain.files.escaping import check_name
from goodgain.formats.results import NormaliseUrl, choose_run, name_documents, open_results, select_columns, sort_rows
from goodgain.formats.urls import canonicalise_url
from goodgain.logs.dedup.deduplication import find_reissued_ids
from goodgain.logs.traces.reading.opened_and_cited import list_page_keys
from goodgain.logs.traces.reading_summary import RunName
from goodgain.options import spell
from goodgain.schema import EMPTY_DOC, USES

DEFAULT_TAG = "goodgain"

OF_RUN = ["query_id", "system", "replicate"]
_PLACE = ["iteration", "search", "rank"]
_DOCUMENT = [*OF_RUN, "doc_id"]
#: Whether a row is the first of its iteration. The column `group` numbers the iterations.
_IS_FIRST = pl.col("group").ne_missing(pl.col("group").shift())
_NO_OPENS = "call that opens a document, so opens are unknown (null). If a tool opens them, name it:"
_NO_ANSWER = "final answer, so cited is unknown (null)."


@checks_kinds
def to_run(
    results: Any, *, system: str | None = None, replicate: str | None = None, tag: str | None = None,
    normalise_url: NormaliseUrl | None = None,
) -> pl.DataFrame:  # fmt: skip
    """Make a run from a results frame.

    Args:
        results: a results frame of any library, in any order, or the path of a file that `write_results` wrote. The id of a
            document is the value of the column `document` (see `deduplicate`), else the doc_id, else the normalised URL,
            else `text:` and a hash of the text.
        system: the system to select, if the frame holds several systems.
        replicate: the replicate to select, if the system has several runs (in Inspect: epochs).
        tag: the run's tag. None: the system's name.
        normalise_url: a function that turns a URL into an id. None: URLs are normalised as in deduplication.

    Returns:
        A frame with the columns query_id, iteration, doc_id, rank, score and tag. Ranks count from 1 through all calls of an
        iteration. Scores are those of the log if every result of the iteration has a score and each score is below the previous
        one. Otherwise the score is 1/rank, so that sorting by score keeps the ranks. An iteration without results has one row
        with doc_id `-`, rank 0 and score 0. For a query that never searched, the iteration of this row is null (`-` in TREC
        text). A notice counts queries in which a doc_id stands for several documents, such as the number of a hit.

    Raises:
        InputError: columns are missing; the frame lacks the given `system` or `replicate`, or has several and none is given;
            or the tag is not valid Unicode.

    Example:
        >>> import polars as pl
        >>> found = pl.DataFrame({"query_id": "q", "iteration": [1, 1, 2], "search": 1, "rank": [1, 2, 0],
        ...                       "doc_id": ["d1", "d2", None]})
        >>> to_run(found).drop("score").rows()
        [('q', 1, 'd1', 1, 'goodgain'), ('q', 1, 'd2', 2, 'goodgain'), ('q', 2, '-', 0, 'goodgain')]
    """
    rows = choose_run(select_columns(open_results(results), "type"), system, replicate)
    unnamed = rows.filter(pl.col("document").is_null())
    report_reissued_ids(
        [*find_reissued_ids(unnamed).values()],
        "each id counts as one document; pass goodgain.deduplicate(results) to identify the documents",
    )
    return make_run(rows, tag=tag, normalise_url=normalise_url)


def report_reissued_ids(examples: Sequence[str], remedy: str) -> None:
    """Give a notice about queries in which an id stands for several documents. `examples` has a text of each query."""
    if examples:
        queries = count_of(len(examples), "query", "queries")
        notice(
            "ids_of_several_documents",
            f"in {queries} an id stands for different documents (first: {examples[0]}): {remedy}",
        )


def make_run(
    results: pl.DataFrame, *, tag: str | None = None, normalise_url: NormaliseUrl | None = None
) -> pl.DataFrame:
    """Make a run from the results of one system, as `to_run` does, without its notice."""
    rows = sort_rows(select_columns(results))
    rows = name_documents(_drop_empty_rows(rows), normalise_url)

    is_result = pl.col("rank") > 0
    row = pl.int_range(pl.len())
    position = row - pl.when(_IS_FIRST).then(row).forward_fill() + 1  # the place in the iteration, from 1
    # Mixing scores of the log with 1/rank would mean nothing. Scores of two tools, and distances, do not fall with the rank.
    # trec_eval compares scores in 32 bits, and breaks ties by doc_id.
    score = pl.col("score").cast(pl.Float32)
    falls = _IS_FIRST | (score < score.shift(1))
    has_scores = (score.is_finite() & falls).fill_null(False).all().over("group")
    score_of_result = pl.when(has_scores).then("score").otherwise(1.0 / position)
    return rows.select(
        "query_id",
        pl.when(is_result | (pl.col("iteration") > 0)).then("iteration"),
        doc_id=pl.when(is_result).then("name").otherwise(pl.lit(EMPTY_DOC)),
        rank=pl.when(is_result).then(position).otherwise(0),
        score=pl.when(is_result).then(score_of_result).otherwise(0.0),
        tag=pl.col("system").fill_null(DEFAULT_TAG) if tag is None else pl.lit(check_name(tag, "system")),
    )


def _drop_empty_rows(rows: pl.DataFrame) -> pl.DataFrame:
    """Return results, one row for each iteration without results, and one for each query without a search."""
    is_result = pl.col("rank") > 0
    if rows.select(is_result.all()).item():
        return rows
    is_only_iteration = pl.len().over("query_id") == pl.len().over("group")
    is_search = pl.col("iteration") > 0
    is_query_without_search = is_only_iteration & (pl.col("iteration") == 0)
    has_no_results = ~is_result.any().over("group")
    return rows.filter(is_result | (has_no_results & _IS_FIRST & (is_query_without_search | is_search)))


def add_documents(frame: pl.DataFrame, normalise_url: NormaliseUrl | None = None) -> pl.DataFrame:
    """Add a column `document`: the doc_id that each result gets in the run, null in rows without a result."""
    if frame.is_empty():
        return frame.with_columns(document=pl.lit(None, pl.String))
    named = name_documents(select_columns(frame), normalise_url)
    return frame.with_columns(document=pl.when(named["rank"] > 0).then(named["name"]))


def list_runs(frame: pl.DataFrame) -> list[RunName]:
    names = frame.select(RunName._fields).unique(maintain_order=True)
    return [RunName(*row) for row in names.iter_rows()]


def is_of_run(name: RunName) -> pl.Expr:
    return pl.col("system").eq_missing(name.system) & pl.col("replicate").eq_missing(name.replicate)


def tabulate_uses(mentions: pl.DataFrame, results: pl.DataFrame, earlier: pl.DataFrame | None = None) -> pl.DataFrame:
    """Return one row for each document that was returned, opened or cited for a query. A query without documents has a row too.

    `mentions` is the table `uses` of `ResultRows`; `results` must have a column `document`. The column `can_open`
    says whether the log has a call that opens a document. `can_open` is null if the log hides which documents were opened.
    """
    rows = results.filter(pl.col("rank") > 0)
    queries = mentions.filter(pl.col("kind") == "query").select(*OF_RUN, "answered", "can_open")
    named_rows = [rows] if earlier is None else [rows, earlier]
    used = _count_opens_and_citations(mentions.filter(pl.col("kind") != "query"), rows, named_rows)
    documents = _place_documents(rows).join(
        used, on=_DOCUMENT, how="full", coalesce=True, nulls_equal=True, maintain_order="left_right"
    )

    uses = queries.join(documents, on=OF_RUN, how="left", nulls_equal=True, maintain_order="left_right")
    return uses.select(
        *OF_RUN,
        pl.col("doc_id").fill_null(EMPTY_DOC),
        "returned_at",
        "rank",
        "opened_at",
        pl.col("opens", "failed_opens").fill_null(0),
        cited=pl.when("answered").then(pl.col("cited").fill_null(False)),
        can_open="can_open",
    )


def _place_documents(rows: pl.DataFrame) -> pl.DataFrame:
    """Return a row per query and returned document: the first iteration that returned it, and its rank there."""
    in_order = rows.sort(_PLACE, maintain_order=True)
    ranked = in_order.with_columns(rank=pl.int_range(1, pl.len() + 1).over(*OF_RUN, "iteration"))
    documents = ranked.group_by(*OF_RUN, doc_id="document", maintain_order=True)
    return documents.agg(returned_at=pl.col("iteration").first(), rank=pl.col("rank").first())


def _count_opens_and_citations(
    mentions: pl.DataFrame, rows: pl.DataFrame, named_rows: list[pl.DataFrame]
) -> pl.DataFrame:
    """Return a row per query and document that was opened or cited. `named_rows` has all results whose documents have names."""
    place = [*OF_RUN, *_PLACE]
    documents = rows.select(*place, "document")
    mentions = mentions.join(documents, on=place, how="left", nulls_equal=True, maintain_order="left")
    mentions = mentions.with_columns(doc_id=pl.coalesce("document", _name_others(mentions, named_rows)))

    is_open = pl.col("kind") == "open"
    failed = pl.col("failed")
    return mentions.group_by(_DOCUMENT, maintain_order=True).agg(
        opened_at=pl.col("opened_at").filter(is_open & ~failed).min(),
        opens=is_open.sum().cast(pl.Int64),
        failed_opens=(is_open & failed).sum().cast(pl.Int64),
        cited=(pl.col("kind") == "cite").any(),
    )


def _name_others(mentions: pl.DataFrame, named_rows: list[pl.DataFrame]) -> pl.Series:
    """Name each document that a run opened or cited, but did not return as a result.

    If another run returned the same id or page for the query, use the `document` of that result. Else use a new name.
    All URLs of one page get the same name, whatever their anchors.
    """
    others = mentions.filter(pl.col("document").is_null()).select("query_id", "name").unique()
    query_ids = others["query_id"].unique().to_list()
    document_of = _find_documents_of_names(named_rows, query_ids) if query_ids else {}

    for query_id, name in others.sort("query_id", "name").iter_rows():
        keys = [name, *list_page_keys(name)]
        documents = (document_of.get((query_id, key)) for key in keys)
        document = next(filter(None, documents), None)
        if document is None:
            is_page = len(keys) > 1
            document = (canonicalise_url(name) or name) if is_page else name
            document_of[query_id, keys[-1]] = document
        document_of[query_id, name] = document
    names = mentions.select("query_id", "name").iter_rows()
    return pl.Series([document_of.get((query_id, name)) for query_id, name in names], dtype=pl.String)


def _find_documents_of_names(named_rows: list[pl.DataFrame], query_ids: list[str]) -> dict[tuple[str, str], str]:
    """Map each query and name, id, URL or page of its results to their document. The first result with a name decides."""
    document_of: dict[tuple[str, str], str] = {}
    for rows in named_rows:
        columns = [name for name in ("query_id", "document", "doc_id", "url") if name in rows.columns]
        rows_of_queries = rows.filter(pl.col("query_id").is_in(query_ids))
        for query_id, document, *ids in rows_of_queries.select(columns).unique(maintain_order=True).iter_rows():
            for name in filter(None, (document, *ids)):
                for key in (name, *list_page_keys(name)):
                    document_of.setdefault((query_id, key), document)
    return document_of


def finish_uses(uses: pl.DataFrame, *, opens_named: bool) -> pl.DataFrame:
    """Set the columns about opens to null if the log hides opens. Unless `opens_named`, systems without opens get null too."""
    # If the caller named a tool that opens documents, no call of the tool means zero opens.
    can_open = pl.col("can_open").fill_null(True).any().over("system") | pl.lit(opens_named)
    is_unanswered = pl.col("cited").count().over("system") == 0
    _say_what_is_unknown(uses.filter(~can_open), f"{_NO_OPENS} {spell('tools', 'NAME=open')}.")
    _say_what_is_unknown(uses.filter(is_unanswered), _NO_ANSWER)

    opens_are_known = can_open & pl.col("can_open").is_not_null()
    numbers = ("opened_at", "opens", "failed_opens")
    uses = uses.with_columns(known=opens_are_known)
    return uses.with_columns(pl.when("known").then(name).alias(name) for name in numbers).select([*USES.columns])


def _say_what_is_unknown(uses: pl.DataFrame, lack: str) -> None:
    systems = uses.get_column("system").unique(maintain_order=True).to_list()
    if systems:
        names = ", ".join(name or DEFAULT_TAG for name in systems[:5])
        notice("uses_not_logged", f"{names}: the logs have no {lack}")
