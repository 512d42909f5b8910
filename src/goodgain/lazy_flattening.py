"""From an iterated run to one classic ranking per query, made where the rows are: what `flattening` does, in windows.

The rows stay on their engine (Polars, DuckDB, Spark ...); only a ranking that is asked for in memory leaves it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import narwhals as nw
import polars as pl

from goodgain.engines import collected
from goodgain.flattening import check_order
from goodgain.schema import EMPTY_DOC, RUN

__all__ = ["LazilyRanked", "ranked_here", "ranked_there"]

_QUERY = "query_id"
_IN_ITERATION = ("query_id", "iteration")


class LazilyRanked(NamedTuple):
    """A classic ranking, a lazy frame or one in memory, and what its user must know.

    Attributes:
        ranking: the run's columns, and rank and score.
        contradicting: in how many of the queries it re-scored a better rank in an iteration has a lower score.
        tied: how many results had their place from their doc_id alone, because the engine keeps no order of rows.
    """

    ranking: Any
    contradicting: int
    tied: int


def ranked_there(run: nw.LazyFrame[Any], *, order: str) -> LazilyRanked:
    """The ranking as a lazy frame of the run's own engine; one row of facts is all that is collected."""
    flagged = _flagged(run, order)
    return LazilyRanked(flagged.select(_columns(run)), *_facts(flagged))


def ranked_here(run: nw.LazyFrame[Any], *, order: str) -> LazilyRanked:
    """The ranking in memory, as Polars: it is made on the run's engine, and nothing else leaves that."""
    flagged = collected(_flagged(run, order))
    if not run.implementation.is_polars():
        flagged = flagged.sort(_QUERY, "rank", "doc_id")  # these engines keep no order
    facts = _facts(nw.from_native(flagged.lazy()))
    return LazilyRanked(flagged.select(_columns(run)), *facts)


def _columns(run: nw.LazyFrame[Any]) -> list[str]:
    found = (*run.collect_schema().names(), "rank", "score")
    return [name for name in RUN.columns if name in found]


def _flagged(run: nw.LazyFrame[Any], order: str) -> nw.LazyFrame[Any]:
    """The ranking, with what `_facts` counts; queries and places are in order where the engine keeps one."""
    check_order(order)
    last = nw.col("iteration").max().over(_QUERY)
    rows = _scored(run).with_columns(last=last, one_iteration=nw.col("iteration").min().over(_QUERY) == last)
    if order == "last":
        rows = rows.filter(nw.col("iteration") == nw.col("last"))
    results = _flags_over_queries(_placed(rows.filter(nw.col("doc_id") != EMPTY_DOC)))
    key = ["position", "iteration"] if order == "interleaved" else ["iteration", "position"]
    firsts = results.with_columns(occurrence=_count_over(_QUERY, "doc_id", by=key)).filter(nw.col("occurrence") == 1)
    placed = firsts.with_columns(kept=_rows_over(_QUERY), place=_count_over(_QUERY, by=key)).with_columns(
        as_it_stands=nw.col("one_iteration") & (nw.col("results") == nw.col("kept"))
    )
    as_it_stands, place = nw.col("as_it_stands"), nw.col("place")
    ranking = placed.with_columns(
        rank=nw.when(as_it_stands).then(nw.col("rank")).otherwise(place),
        score=nw.when(as_it_stands).then(nw.col("score")).otherwise((nw.col("kept") + 1 - place).cast(nw.Float64)),
        iteration=nw.when(as_it_stands).then(nw.col("iteration")).otherwise(nw.lit(1)).cast(nw.Int64),
    )
    if "line" not in ranking.collect_schema().names():
        return ranking
    stands = nw.when(as_it_stands).then(nw.col("line")).otherwise(place)
    return ranking.with_columns(stands=stands).sort("first_line", "stands")


def _scored(run: nw.LazyFrame[Any]) -> nw.LazyFrame[Any]:
    """Rows with rank and score, as `formats.run` makes them in memory, and with what orders rows of one rank.

    Polars keeps the order of rows, so that the line decides. No other lazy frame does: there the doc_id decides, and
    then the score, so that even rows of one document have one order.
    """
    if run.implementation.is_polars():
        lines = pl.int_range(pl.len(), dtype=pl.Int64)
        run = nw.from_native(run.to_native().with_columns(line=lines))
        run = run.with_columns(first_line=nw.col("line").min().over(_QUERY))
    columns = run.collect_schema()
    if "rank" in columns:
        rank = _rank(run)
    elif "score" in columns:  # the reverse of ascending: by score, then doc_id, both descending
        rank = _rows_over(*_IN_ITERATION) + 1 - _count_over(*_IN_ITERATION, by=["score", "doc_id"])
    else:
        rank = _count_over(*_IN_ITERATION, by=["line"] if "line" in columns else ["doc_id"])
    scored = run.with_columns(rank=rank)
    if "score" not in columns:
        scored = scored.with_columns(score=-nw.col("rank").cast(nw.Float64))
    known = nw.lit("rank" in columns or "score" in columns or "line" in columns)
    return scored.with_columns(minus_score=-nw.col("score"), has_order=known)


def _rank(run: nw.LazyFrame[Any]) -> nw.Expr:
    """Whole numbers where all ranks are whole: the one question to the engine that only ranks in floats need."""
    rank = nw.col("rank")
    if not run.collect_schema()["rank"].is_float():
        return rank
    other = collected(run.filter((rank != rank.round()) | (rank.abs() >= 2.0**53)).select("rank").head(1))
    return rank if len(other) else rank.cast(nw.Int64)


def _placed(results: nw.LazyFrame[Any]) -> nw.LazyFrame[Any]:
    """Results with their position in the iteration; whether the score rises there; whether the place is a tie's."""
    keeps_order = "line" in results.collect_schema().names()
    by = ["rank", "line"] if keeps_order else ["rank", "doc_id", "minus_score"]
    before, after = (
        {name: nw.col(name).shift(step).over(*_IN_ITERATION, order_by=by) for name in ("rank", "score")}
        for step in (1, -1)
    )
    results = results.with_columns(
        position=_count_over(*_IN_ITERATION, by=by),
        score_before=before["score"],
        rank_before=before["rank"],
        rank_after=after["rank"],
    )
    has_order = nw.col("has_order")
    tied = (nw.col("rank") == nw.col("rank_before")) | (nw.col("rank") == nw.col("rank_after"))
    alone = nw.col("rank_before").is_null() & nw.col("rank_after").is_null()
    guessed = (has_order & tied) | (~has_order & ~alone)
    return results.with_columns(
        rising=_one_if(nw.col("score") > nw.col("score_before")),
        guessed=nw.lit(0) if keeps_order else _one_if(guessed),
    )


def _flags_over_queries(results: nw.LazyFrame[Any]) -> nw.LazyFrame[Any]:
    """What is known of a query from all its results, on each of them."""
    return results.with_columns(
        results=_rows_over(_QUERY),
        rising=nw.col("rising").max().over(_QUERY),
        guessed=nw.col("guessed").sum().over(_QUERY),
    )


def _facts(flagged: nw.LazyFrame[Any]) -> tuple[int, int]:
    """Queries that were re-scored against their scores, and results whose place is their doc_id's."""
    rescored = _one_if(~nw.col("as_it_stands"))
    moved = _one_if(~nw.col("as_it_stands") | ~nw.col("has_order"))
    of_first = flagged.filter(nw.col("place") == 1)  # one row a query
    found = collected(
        of_first.select(
            contradicting=(nw.col("rising") * rescored).sum(),
            tied=(nw.col("guessed") * moved).sum(),
        )
    )
    contradicting, tied = found.row(0)
    return int(contradicting or 0), int(tied or 0)  # the sum of no rows is null


def _rows_over(*partition: str) -> nw.Expr:
    return nw.col("doc_id").count().over(*partition).cast(nw.Int64)


def _count_over(*partition: str, by: list[str]) -> nw.Expr:
    """1, 2, 3 ... in an order."""
    return nw.col("doc_id").cum_count().over(*partition, order_by=by).cast(nw.Int64)


def _one_if(condition: nw.Expr) -> nw.Expr:
    """1 or 0; null, which compares to nothing, is 0."""
    return nw.when(condition).then(nw.lit(1)).otherwise(nw.lit(0))
