"""From results to a run: one row a document, ranked through each iteration, `-` for an iteration that found nothing."""

from __future__ import annotations

import hashlib
import importlib
from collections.abc import Callable
from typing import Any

import narwhals as nw
import polars as pl

from goodgain.errors import InputError
from goodgain.schema import EMPTY_DOC, RUN

__all__ = ["DEFAULT_TAG", "NormaliseUrl", "systems_in", "to_run"]

#: The tag of a system that neither the log nor the caller names.
DEFAULT_TAG = "goodgain"

#: A URL without what does not tell pages apart; None for what is no address.
NormaliseUrl = Callable[[str], str | None]

_NEEDED = ("query_id", "iteration", "search", "rank")
_TEXTS = ("system", "document", "doc_id", "url", "title", "snippet")


def to_run(
    results: Any, *, system: str | None = None, tag: str | None = None, normalise_url: NormaliseUrl | None = None
) -> pl.DataFrame:
    """A run from a results frame.

    Args:
        results: a results frame of any engine, in any order. A result is the document that its column `document`
            names (see `deduplicate`), else its doc_id, else its normalised URL, else `text:` and a hash of its text.
        system: the system to take, where the frame holds several.
        tag: the run's tag; None: the system's name.
        normalise_url: how URLs become ids; None: as deduplication does it.

    Returns:
        query_id, iteration, doc_id, rank, score, tag. Ranks run from 1 through an iteration, calls in order. The score
        is the log's where all results of the iteration have one, else 1/rank. An iteration without results has one
        row `-` with rank and score 0; a query that never searched has none.

    Raises:
        InputError: columns are missing, or the frame holds several systems and none is named.

    Example:
        >>> import polars as pl
        >>> found = pl.DataFrame({"query_id": "q", "iteration": [1, 1, 2], "search": 1, "rank": [1, 2, 0],
        ...                       "doc_id": ["d1", "d2", None]})
        >>> to_run(found).drop("score").rows()
        [('q', 1, 'd1', 1, 'goodgain'), ('q', 1, 'd2', 2, 'goodgain'), ('q', 2, '-', 0, 'goodgain')]
    """
    frame = _one_system(_rows(results), system)
    found = _identified(frame.filter(pl.col("rank") > 0), normalise_url)
    iteration = ["query_id", "iteration"]
    found = found.sort("query", "iteration", "search", "rank", maintain_order=True)
    found = found.with_columns(position=pl.int_range(1, pl.len() + 1).over(iteration))
    scored = pl.col("score").is_finite().fill_null(False).all().over(iteration)
    found = found.select(
        "query", *iteration, doc_id="name", rank="position",
        score=pl.when(scored).then("score").otherwise(1.0 / pl.col("position")), system="system",
    )  # fmt: skip
    searched = frame.filter(pl.col("iteration") > 0).unique(iteration, keep="first", maintain_order=True)
    nothing = searched.join(found.select(iteration).unique(), on=iteration, how="anti").select(
        "query", *iteration, doc_id=pl.lit(EMPTY_DOC), rank=pl.lit(0, pl.Int64), score=pl.lit(0.0), system="system"
    )
    run = pl.concat([found, nothing]).sort("query", "iteration", "rank", maintain_order=True)
    name = pl.lit(tag) if tag is not None else pl.col("system").fill_null(DEFAULT_TAG)
    return run.with_columns(tag=name).select(*RUN.columns)


def systems_in(frame: pl.DataFrame) -> list[str | None]:
    """The systems of a results frame, in order of appearance."""
    return frame["system"].unique(maintain_order=True).to_list() if "system" in frame.columns else [None]


def _rows(results: Any) -> pl.DataFrame:
    """The columns a run is made of, typed; `query` numbers the queries in order of appearance."""
    if isinstance(results, pl.DataFrame):
        frame = results
    else:
        opened = nw.from_native(getattr(results, "frame", results))
        frame = (opened.collect() if isinstance(opened, nw.LazyFrame) else opened).to_polars()
    missing = [name for name in _NEEDED if name not in frame.columns]
    if missing:
        raise InputError(f"the results lack the columns {', '.join(missing)}; give what goodgain.read_traces returns")
    columns = [
        *(pl.col(name).cast(pl.String) for name in ("query_id", *_TEXTS) if name in frame.columns),
        *(pl.lit(None, pl.String).alias(name) for name in _TEXTS if name not in frame.columns),
        *(pl.col(name).cast(pl.Int64).fill_null(0) for name in _NEEDED[1:]),
        (pl.col("score").cast(pl.Float64) if "score" in frame.columns else pl.lit(None, pl.Float64).alias("score")),
    ]
    return (
        frame.select(columns).with_row_index("row").with_columns(query=pl.col("row").min().over("query_id")).drop("row")
    )


def _one_system(frame: pl.DataFrame, system: str | None) -> pl.DataFrame:
    found = systems_in(frame)
    if system is not None:
        if system not in found:
            known = ", ".join(repr(name) for name in found if name is not None) or "none that has a name"
            raise InputError(f"the results hold no system {system!r}, only {known}")
        return frame.filter(pl.col("system") == system)
    if len(found) > 1:
        names = ", ".join(repr(name) for name in found[:5])
        raise InputError(f"the results hold several systems ({names}), and a run is one system; name one with system=")
    return frame


def _identified(frame: pl.DataFrame, normalise_url: NormaliseUrl | None) -> pl.DataFrame:
    """Results with the name of their document. An own id `-` would mean "nothing found" in a run and names nothing."""
    own = [pl.when((pl.col(name) != EMPTY_DOC) & (pl.col(name) != "")).then(name) for name in ("document", "doc_id")]
    named = frame.with_columns(name=pl.coalesce(own))
    bare = named["name"].is_null()
    if not bare.any():
        return named
    if normalise_url is None and (bare & named["url"].is_not_null()).any():
        # By its name at run time: traces stands beside dedup, not on it.
        normalise_url = importlib.import_module("goodgain.dedup").normalise_url
    names = [
        name if name is not None else _fallback(row, normalise_url)
        for name, row in zip(named["name"], named.iter_rows(named=True), strict=True)
    ]
    return named.with_columns(name=pl.Series(names, dtype=pl.String))


def _fallback(row: dict[str, Any], normalise_url: NormaliseUrl | None) -> str:
    if row["url"] and normalise_url is not None and (url := normalise_url(row["url"])):
        return url
    said = [text for text in (row["url"], row["title"], row["snippet"]) if text]
    if not said:  # nothing to know it by: a document of its own
        said = [str(row[name]) for name in _NEEDED]
    text = "\n".join(" ".join(part.split()) for part in said)
    return f"text:{hashlib.sha256(text.encode()).hexdigest()[:16]}"
