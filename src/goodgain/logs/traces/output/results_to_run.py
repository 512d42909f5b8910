"""Makes runs from results, and tables of the documents that were returned, opened and cited.

A run has one row per document, ranked within its iteration. An iteration without results has a row with doc_id `-`.
"""

from typing import Any

import polars as pl

from goodgain.argument_kinds import checks_kinds
from goodgain.errors import notice
from goodgain.files.escaping import check_name
from goodgain.formats.results import NormaliseUrl, choose_run, name_documents, open_results, select_columns, sort_rows
from goodgain.formats.urls import canonicalise_url
from goodgain.logs.traces.reading.opened_and_cited import list_page_keys
from goodgain.logs.traces.reading_summary import RunName
from goodgain.options import spell
from goodgain.schema import EMPTY_DOC, USES

DEFAULT_TAG = "goodgain"

OF_RUN = ["query_id", "system", "replicate"]
_PLACE = ["iteration", "search", "rank"]
_DOCUMENT = [*OF_RUN, "doc_id"]
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
        text).

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
    rows = sort_rows(choose_run(select_columns(open_results(results)), system, replicate))
    is_first = pl.col("group").ne_missing(pl.col("group").shift())
    found = pl.col("rank") > 0
    # Keep one row of an iteration without results, or of a query without a search.
    if not rows.select(found.all()).item():
        is_idle = (pl.len().over("query_id") == pl.len().over("group")) & (pl.col("iteration") == 0)
        nothing = ~found.any().over("group") & is_first & (is_idle | (pl.col("iteration") > 0))
        rows = rows.filter(found | nothing)
    rows = name_documents(rows, normalise_url)
    row = pl.int_range(pl.len())
    position = row - pl.when(is_first).then(row).forward_fill() + 1
    # Mixing scores of the log with 1/rank would mean nothing. Scores of two tools, and distances, do not fall with the rank.
    # trec_eval compares scores in 32 bits, and breaks ties by doc_id.
    score = pl.col("score").cast(pl.Float32)
    falls = is_first | (score < score.shift(1))
    scored = (score.is_finite() & falls).fill_null(False).all().over("group")
    return rows.select(
        "query_id", pl.when(found | (pl.col("iteration") > 0)).then("iteration"),
        doc_id=pl.when(found).then("name").otherwise(pl.lit(EMPTY_DOC)),
        rank=pl.when(found).then(position).otherwise(0),
        score=pl.when(found).then(pl.when(scored).then("score").otherwise(1.0 / position)).otherwise(0.0),
        tag=pl.lit(check_name(tag, "system")) if tag is not None else pl.col("system").fill_null(DEFAULT_TAG),
    )  # fmt: skip


def add_documents(frame: pl.DataFrame, normalise_url: NormaliseUrl | None = None) -> pl.DataFrame:
    """Add a column `document`: the doc_id that each result gets in the run, null in rows without a result."""
    named = name_documents(select_columns(frame), normalise_url)
    document = pl.when(named["rank"] > 0).then(named["name"]) if frame.height else pl.lit(None, pl.String)
    return frame.with_columns(document=document)


def list_runs(frame: pl.DataFrame) -> list[RunName]:
    return [RunName(*row) for row in frame.select(RunName._fields).unique(maintain_order=True).iter_rows()]


def is_of_run(name: RunName) -> pl.Expr:
    return pl.col("system").eq_missing(name.system) & pl.col("replicate").eq_missing(name.replicate)


def tabulate_uses(mentions: pl.DataFrame, results: pl.DataFrame, earlier: pl.DataFrame | None = None) -> pl.DataFrame:
    """Return one row for each document that was returned, opened or cited for a query. A query without documents has a row too.

    `mentions` is the table `uses` of `ResultRows`; `results` must have a column `document`. The column `can_open`
    says whether the log has a call that opens a document. `can_open` is null if the log hides which documents were opened.
    """
    found = results.filter(pl.col("rank") > 0)
    known = [found] if earlier is None else [found, earlier]
    named, place = mentions.filter(pl.col("kind") != "query"), [*OF_RUN, *_PLACE]
    of_place = found.select(*place, "document")
    named = named.join(of_place, on=place, how="left", nulls_equal=True, maintain_order="left")
    named = named.with_columns(doc_id=pl.coalesce("document", _name_others(named, known)))
    opened, failed = pl.col("kind") == "open", pl.col("failed")
    used = named.group_by(_DOCUMENT, maintain_order=True).agg(
        opened_at=pl.col("opened_at").filter(opened & ~failed).min(),
        opens=opened.sum().cast(pl.Int64),
        failed_opens=(opened & failed).sum().cast(pl.Int64),
        cited=(pl.col("kind") == "cite").any(),
    )
    returned = (
        found.sort(_PLACE, maintain_order=True)
        .with_columns(rank=pl.int_range(1, pl.len() + 1).over(*OF_RUN, "iteration"))
        .group_by(*OF_RUN, doc_id="document", maintain_order=True)
        .agg(returned_at=pl.col("iteration").first(), rank=pl.col("rank").first())
    )
    both = returned.join(used, on=_DOCUMENT, how="full", coalesce=True, nulls_equal=True, maintain_order="left_right")
    queries = mentions.filter(pl.col("kind") == "query").select(*OF_RUN, "answered", "can_open")
    whole = queries.join(both, on=OF_RUN, how="left", nulls_equal=True, maintain_order="left_right")
    return whole.select(
        *OF_RUN,
        pl.col("doc_id").fill_null(EMPTY_DOC),
        "returned_at",
        "rank",
        "opened_at",
        pl.col("opens", "failed_opens").fill_null(0),
        cited=pl.when("answered").then(pl.col("cited").fill_null(False)),
        can_open="can_open",
    )


def _name_others(named: pl.DataFrame, known: list[pl.DataFrame]) -> pl.Series:
    """Name each document that a run opened or cited, but did not return as a result.

    If another run returned the same id or page for the query, use the `document` of that result. Else use a new name.
    All URLs of one page get the same name, whatever their anchors.
    """
    names: dict[tuple[str, str], str] = {}
    others = named.filter(pl.col("document").is_null()).select("query_id", "name").unique()
    asked = dict.fromkeys(others["query_id"])
    for frame in known if asked else ():
        columns = [name for name in ("query_id", "document", "doc_id", "url") if name in frame.columns]
        of_queries = frame.filter(pl.col("query_id").is_in([*asked])).select(columns).unique(maintain_order=True)
        for query_id, document, *more in of_queries.iter_rows():
            for name in filter(None, (document, *more)):
                for key in (name, *list_page_keys(name)):
                    names.setdefault((query_id, key), document)
    for query_id, name in others.sort("query_id", "name").iter_rows():
        keys = [name, *list_page_keys(name)]
        document = next(filter(None, (names.get((query_id, key)) for key in keys)), None)
        if document is None:
            document = (canonicalise_url(name) or name) if len(keys) > 1 else name
            names[query_id, keys[-1]] = document
        names[query_id, name] = document
    values = [names.get((query_id, name)) for query_id, name in named.select("query_id", "name").iter_rows()]
    return pl.Series(values, dtype=pl.String)


def finish_uses(uses: pl.DataFrame, *, opens_named: bool) -> pl.DataFrame:
    """Set the columns about opens to null if the log hides opens. Unless `opens_named`, systems without opens get null too."""
    # If the caller named a tool that opens documents, no call of the tool means zero opens.
    can_open = pl.col("can_open").fill_null(True).any().over("system") | pl.lit(opens_named)
    uses = uses.with_columns(known=can_open & pl.col("can_open").is_not_null())
    unanswered = pl.col("cited").count().over("system") == 0
    for is_unknown, lacking in ((~can_open, f"{_NO_OPENS} {spell('tools', 'NAME=open')}."), (unanswered, _NO_ANSWER)):
        systems = uses.filter(is_unknown).get_column("system").unique(maintain_order=True).to_list()
        if systems:
            notice(
                "uses_not_logged",
                f"{', '.join(name or DEFAULT_TAG for name in systems[:5])}: the logs have no {lacking}",
            )
    numbers = [pl.when("known").then(name).alias(name) for name in ("opened_at", "opens", "failed_opens")]
    return uses.with_columns(numbers).select([*USES.columns])
