"""Makes a run of results: one row per document, ranked within its iteration, and `-` for an iteration without results."""

import hashlib
from collections.abc import Callable
from typing import Any

import polars as pl

from goodgain.errors import InputError
from goodgain.files.escaping import check_name
from goodgain.files.table_reading import open_results, read_frame
from goodgain.formats.urls import canonicalise_url
from goodgain.logs.traces.reading_summary import RunName
from goodgain.options import spell
from goodgain.schema import EMPTY_DOC

DEFAULT_TAG = "goodgain"

#: A function of a URL that drops the parts that do not distinguish pages; None for text that is not an address.
NormaliseUrl = Callable[[str], str | None]

_NEEDED = ("query_id", "iteration", "search", "rank")
_TEXTS = ("system", "replicate", "document", "doc_id", "url", "title", "snippet")


def to_run(
    results: Any, *, system: str | None = None, replicate: str | None = None, tag: str | None = None,
    normalise_url: NormaliseUrl | None = None,
) -> pl.DataFrame:  # fmt: skip
    """Make a run of a results frame.

    Args:
        results: a results frame of any engine, in any order, or the path of a file that `write_results` wrote. A result
            is the document that its column `document` names (see `deduplicate`), else its doc_id, else its normalised
            URL, else `text:` and a hash of its text.
        system: the system to take, if the frame holds several.
        replicate: the run of the system to take, if the frame holds several (the epochs of Inspect).
        tag: the run's tag; None: the system's name.
        normalise_url: how URLs become ids; None: as in deduplication.

    Returns:
        query_id, iteration, doc_id, rank, score, tag. Ranks run from 1 through an iteration, calls in order. The score
        is the log's if all results of the iteration have one and it falls from rank to rank. Else it is 1/rank, because
        tools that rank by score would change the order. An iteration without results has one row `-` with rank and
        score 0. A query that never searched has one such row with a null iteration, which TREC text has as `-`.

    Raises:
        InputError: columns are missing, or the frame holds several systems, or several runs of one, and none is named; or
            the tag has a lone surrogate.

    Example:
        >>> import polars as pl
        >>> found = pl.DataFrame({"query_id": "q", "iteration": [1, 1, 2], "search": 1, "rank": [1, 2, 0],
        ...                       "doc_id": ["d1", "d2", None]})
        >>> to_run(found).drop("score").rows()
        [('q', 1, 'd1', 1, 'goodgain'), ('q', 1, 'd2', 2, 'goodgain'), ('q', 2, '-', 0, 'goodgain')]
    """
    rows = _sort_rows(_choose_run(_select_columns(open_results(results)), system, replicate))
    is_first = pl.col("group").ne_missing(pl.col("group").shift())
    found = pl.col("rank") > 0
    # Keep one row of an iteration without results, or of a query without a search.
    if not rows.select(found.all()).item():
        is_idle = (pl.len().over("query_id") == pl.len().over("group")) & (pl.col("iteration") == 0)
        nothing = ~found.any().over("group") & is_first & (is_idle | (pl.col("iteration") > 0))
        rows = rows.filter(found | nothing)
    rows = _name_documents(rows, normalise_url)
    row = pl.int_range(pl.len())
    position = row - pl.when(is_first).then(row).forward_fill() + 1
    # All results of an iteration must have a score: mixed with 1/rank it means nothing. Scores of two tools, and
    # distances, do not fall with the rank. trec_eval compares scores in 32 bits, and breaks ties by doc_id.
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


def name_results(results: Any) -> pl.DataFrame:
    """Return results with `name`, the doc_id that `to_run` gives to each. A text that the frame lacks is null."""
    named = _name_documents(_select_columns(results, "search_query"), None).filter(pl.col("rank") > 0)
    return named.select("query_id", "iteration", "search", "rank", "name", "url", "title", "snippet", "search_query")


def list_searches(results: Any) -> pl.DataFrame:
    """Return the searches of one system, with the number of their `results`. A text that the frame lacks is null."""
    rows = _sort_rows(_choose_run(_select_columns(results, "search_query", "status"), None, None))
    searches = rows.filter(pl.col("iteration") > 0).group_by("query_id", "iteration", "search", maintain_order=True)
    return searches.agg(pl.col("search_query", "status").first(), results=(pl.col("rank") > 0).sum())


def add_documents(frame: pl.DataFrame, normalise_url: NormaliseUrl | None = None) -> pl.DataFrame:
    """Return a results frame with `document`, the doc_id that `to_run` gives to each result; null without a result."""
    named = _name_documents(_select_columns(frame), normalise_url)
    document = pl.when(named["rank"] > 0).then(named["name"]) if frame.height else pl.lit(None, pl.String)
    return frame.with_columns(document=document)


def list_runs(frame: pl.DataFrame) -> list[RunName]:
    return [RunName(*row) for row in frame.select(RunName._fields).unique(maintain_order=True).iter_rows()]


def is_of_run(name: RunName) -> pl.Expr:
    return pl.col("system").eq_missing(name.system) & pl.col("replicate").eq_missing(name.replicate)


def _select_columns(results: Any, *more: str) -> pl.DataFrame:
    """Return the columns for a run and `more` texts, cast, from a frame of any engine."""
    texts = (*_TEXTS, *more)
    frame = read_frame(getattr(results, "frame", results), "the results", (*_NEEDED, *texts, "score"))
    missing = [name for name in _NEEDED if name not in frame.columns]
    if missing:
        raise InputError(f"the results lack the columns {', '.join(missing)}; give what goodgain.read_traces returns")
    absent = [pl.lit(None, pl.String).alias(name) for name in (*texts, "score") if name not in frame.columns]
    return frame.with_columns(absent).select(
        pl.col("query_id", *texts).cast(pl.String),
        pl.col(*_NEEDED[1:]).cast(pl.Int64).fill_null(0),
        pl.col("score").cast(pl.Float64),
    )


def _sort_rows(rows: pl.DataFrame) -> pl.DataFrame:
    """Sort rows by query (in order of appearance), iteration, search and rank; `group` numbers the iterations."""
    rows = rows.with_row_index("query").with_columns(pl.col("query").min().over("query_id").cast(pl.Int64))
    rows = rows.sort("query", "iteration", "search", "rank", maintain_order=True)
    new = (pl.col("query").diff() != 0) | (pl.col("iteration").diff() != 0)
    return rows.with_columns(group=new.fill_null(True).cum_sum())


def _choose_run(frame: pl.DataFrame, system: str | None, replicate: str | None) -> pl.DataFrame:
    for column, given, of in (("system", system, "systems"), ("replicate", replicate, "replicates")):
        found = frame[column].unique(maintain_order=True).to_list()
        if given is not None:
            if given not in found:
                known = ", ".join(repr(name) for name in found if name is not None) or "one without a name"
                raise InputError(f"the results hold no {column} {given!r}, only {known}")
            frame = frame.filter(pl.col(column) == given)
        elif len(found) > 1:
            names = ", ".join(repr(name) for name in found[:5])
            raise InputError(f"the results hold several {of} ({names}), but a run has one; name it: {spell(column)}")
    return frame


def _name_documents(frame: pl.DataFrame, normalise_url: NormaliseUrl | None) -> pl.DataFrame:
    """Add the name of each row's document. The id `-` is not a name: in a run it means "nothing found"."""
    own = [pl.when((pl.col(name) != EMPTY_DOC) & (pl.col(name) != "")).then(name) for name in ("document", "doc_id")]
    named = frame.with_columns(name=pl.coalesce(own))
    bare = named["name"].is_null() & (named["rank"] > 0)
    if not bare.any():
        return named
    names = [
        _make_name(row, normalise_url or canonicalise_url) if is_bare else name
        for name, is_bare, row in zip(named["name"], bare, named.iter_rows(named=True), strict=True)
    ]
    return named.with_columns(name=pl.Series(names, dtype=pl.String))


def _make_name(row: dict[str, Any], normalise_url: NormaliseUrl) -> str:
    """Return the name of a result without an id: the address, else `text:` and a hash of the content."""
    if row["url"] and (url := normalise_url(row["url"])):
        return url
    texts = [text for text in (row["url"], row["title"], row["snippet"]) if text]
    if not texts:  # a result without any content is a document of its own
        texts = [str(row[name]) for name in _NEEDED]
    text = "\n".join(" ".join(part.split()) for part in texts)
    return f"text:{hashlib.sha256(text.encode()).hexdigest()[:16]}"
