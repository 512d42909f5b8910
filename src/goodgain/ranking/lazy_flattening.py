"""From an iterated run to one classic ranking per query, on the engine of the rows, by window functions.

The ranking is that of `flattening`. Rows stay on their engine (DuckDB, Spark ...; Polars runs `flattening` itself); only
a ranking that is asked for in memory leaves it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import narwhals as nw
import polars as pl

from goodgain.errors import notice
from goodgain.ranking.engines import collect
from goodgain.ranking.first_occurrences import check_order, find_first_occurrences
from goodgain.ranking.flattening import add_ranks, make_ranking
from goodgain.schema import EMPTY_DOC, RUN

__all__ = ["LazyRanking", "rank_in_memory", "rank_on_engine", "sort_unordered", "warn_if_tied"]

_IN_ITERATION = ("query_id", "iteration")
#: These engines keep no order of rows: rows of one rank stand in the order of their doc_id, and those of one document in
#: that of their score, so that there is one order whatever the engine does.
_BY_RANK = ["rank", "doc_id", "minus_score"]


class LazyRanking(NamedTuple):
    """A classic ranking, a lazy frame or one in memory, and what its user must know.

    Attributes:
        ranking: the run's columns, and rank and score.
        contradicting: in how many of the queries it re-scored a better rank in an iteration has a lower score.
        tied: how many results had their place from their doc_id alone, because the engine keeps no order of rows.
    """

    ranking: Any
    contradicting: int
    tied: int


def rank_on_engine(run: nw.LazyFrame[Any], *, order: str) -> LazyRanking:
    """Rank a run as a lazy frame of its own engine; only one row of counts is collected."""
    check_order(order)
    if run.implementation.is_polars():
        contradicting: list[int] = []
        collect(nw.from_native(_rank_in_polars(run, order, contradicting)).select(nw.len()))
        return LazyRanking(nw.from_native(_rank_in_polars(run, order, [])), sum(contradicting), 0)
    return LazyRanking(_rank_lazily(run, order), *_count_facts(run, order))


def rank_in_memory(run: nw.LazyFrame[Any], *, order: str) -> LazyRanking:
    """Rank a run on its own engine, and collect the ranking as a Polars frame."""
    check_order(order)
    if run.implementation.is_polars():
        contradicting: list[int] = []
        ranking = collect(nw.from_native(_rank_in_polars(run, order, contradicting)))
        return LazyRanking(ranking, sum(contradicting), 0)
    ranking = collect(_rank_lazily(run, order)).sort("query_id", "rank", "doc_id")  # these engines keep no order
    return LazyRanking(ranking, *_count_facts(run, order))


def sort_unordered(rows: pl.DataFrame) -> pl.DataFrame:
    """Sort rows of an engine that keeps no order: by rank, and ties of rank by doc_id, with a notice."""
    key = ["query_id", "iteration", *(["rank"] if "rank" in rows.columns else [])]
    tied = rows.filter(pl.col("doc_id") != EMPTY_DOC).select(pl.struct(key).is_duplicated().sum()).item()
    if "rank" in rows.columns or "score" not in rows.columns:
        warn_if_tied(tied, rows.columns)
    return rows.sort(*key, "doc_id")


def warn_if_tied(results: int, columns: Sequence[str]) -> None:
    """Give a notice if there are results whose order is that of their doc_ids."""
    if results:
        reason = "have ties in rank" if "rank" in columns else "have neither rank nor score"
        notice(f"{results} results {reason}, and the frame keeps no order of rows: they are ordered by doc_id")


def _rank_in_polars(run: nw.LazyFrame[Any], order: str, contradicting: list[int]) -> pl.LazyFrame:
    """Make the flattening of frames in memory a step of a lazy plan: a third of the time and less memory than windows.

    Polars must not move a later step before it: the rows that a filter leaves have another ranking. When the plan runs,
    it appends to `contradicting` the number of queries whose ranks contradict their scores.
    """
    numbers = {"iteration": pl.Int64, "rank": pl.Int64 if _has_whole_ranks(run) else pl.Float64, "score": pl.Float64}
    schema = pl.Schema({name: numbers.get(name, pl.String) for name in _columns(run)})

    def flatten_rows(rows: pl.DataFrame) -> pl.DataFrame:
        firsts = find_first_occurrences(add_ranks(rows), order)
        contradicting.append(firsts.contradicting)
        return make_ranking(firsts).select(schema.names()).cast(schema)

    frame: pl.LazyFrame = run.to_native()
    return frame.map_batches(
        flatten_rows, schema=schema, predicate_pushdown=False, projection_pushdown=False, slice_pushdown=False
    )


def _columns(run: nw.LazyFrame[Any]) -> list[str]:
    found = (*run.collect_schema().names(), "rank", "score")
    return [name for name in RUN.columns if name in found]


def _rank_lazily(run: nw.LazyFrame[Any], order: str) -> nw.LazyFrame[Any]:
    """Make the ranking."""
    results = _take_results(run, order)
    by = ["iteration", *_BY_RANK]
    if order == "interleaved":
        results, by = results.with_columns(position=_count_over(*_IN_ITERATION, by=_BY_RANK)), ["position", "iteration"]
    results = results.with_columns(seen_at=_count_over("query_id", by=by), results=_rows_over("query_id"))
    first = nw.col("seen_at").min().over("query_id", "doc_id")
    firsts = results.with_columns(first=first).filter(nw.col("seen_at") == nw.col("first"))
    placed = firsts.with_columns(
        kept=_rows_over("query_id"), place=_count_over("query_id", by=["seen_at"])
    ).with_columns(as_it_stands=nw.col("one_iteration") & (nw.col("results") == nw.col("kept")))
    as_it_stands, place = nw.col("as_it_stands"), nw.col("place")
    rescored = (nw.col("kept") + 1 - place).cast(nw.Float64)
    ranking = placed.with_columns(
        rank=nw.when(as_it_stands).then(nw.col("rank")).otherwise(place),
        score=nw.when(as_it_stands).then(nw.col("score")).otherwise(rescored),
        iteration=nw.when(as_it_stands).then(nw.col("iteration")).otherwise(nw.lit(1)).cast(nw.Int64),
    )
    return ranking.select(_columns(run))


def _take_results(run: nw.LazyFrame[Any], order: str) -> nw.LazyFrame[Any]:
    """Take the rows that the ranking is made of, with rank, score, and whether the query has one iteration only."""
    last = nw.col("iteration").max().over("query_id")
    rows = _add_ranks_and_scores(run).with_columns(
        last=last, one_iteration=nw.col("iteration").min().over("query_id") == last
    )
    if order == "last":
        rows = rows.filter(nw.col("iteration") == nw.col("last"))
    return rows.filter(nw.col("doc_id") != EMPTY_DOC)


def _add_ranks_and_scores(run: nw.LazyFrame[Any]) -> nw.LazyFrame[Any]:
    """Add ranks and scores as `flattening.add_ranks` does; where both are missing, by doc_id."""
    columns = run.collect_schema().names()
    if "rank" in columns:
        rank = nw.col("rank").cast(nw.Int64) if _has_whole_ranks(run) else nw.col("rank").cast(nw.Float64)
    elif "score" in columns:  # counted from the end: by score, then doc_id, both descending
        rank = _rows_over(*_IN_ITERATION) + 1 - _count_over(*_IN_ITERATION, by=["score", "doc_id"])
    else:
        rank = _count_over(*_IN_ITERATION, by=["doc_id"])
    scored = run.with_columns(rank=rank)
    if "score" not in columns:
        scored = scored.with_columns(score=-nw.col("rank").cast(nw.Float64))
    return scored.with_columns(minus_score=-nw.col("score"), has_order=nw.lit("rank" in columns or "score" in columns))


def _has_whole_ranks(run: nw.LazyFrame[Any]) -> bool:
    """Tell whether ranks are whole numbers; only for floats is the engine asked."""
    kind, rank = run.collect_schema().get("rank"), nw.col("rank")
    if kind is None or kind.is_integer():
        return True
    if not kind.is_float():
        return False
    return not len(collect(run.filter((rank != rank.round()) | (rank.abs() >= 2.0**53)).select("rank").head(1)))


def _count_facts(run: nw.LazyFrame[Any], order: str) -> tuple[int, int]:
    """Count queries that get new scores against their own, and results whose place is that of their doc_id.

    It is a query of its own, because it takes a third of the time that the ranking takes.
    """
    score_before, rank_before = (nw.col(x).shift(1).over(*_IN_ITERATION, order_by=_BY_RANK) for x in ("score", "rank"))
    neighbours = _take_results(run, order).with_columns(
        score_before=score_before,
        rank_before=rank_before,
        rank_after=nw.col("rank").shift(-1).over(*_IN_ITERATION, order_by=_BY_RANK),
    )
    before, after = nw.col("rank_before"), nw.col("rank_after")
    tied = (nw.col("rank") == before) | (nw.col("rank") == after)
    alone = before.is_null() & after.is_null()
    flagged = neighbours.with_columns(
        rising=_one_if(nw.col("score") > nw.col("score_before")),
        guessed=_one_if((nw.col("has_order") & tied) | ~(nw.col("has_order") | alone)),
        one_iteration=_one_if(nw.col("one_iteration")),
        without_order=_one_if(~nw.col("has_order")),
    )
    queries = flagged.group_by("query_id").agg(
        nw.col("rising", "one_iteration", "without_order").max(),
        nw.col("guessed").sum(),
        results=nw.col("doc_id").count(),
        documents=nw.col("doc_id").n_unique(),
    )
    rescored = _one_if((nw.col("one_iteration") == 0) | (nw.col("results") > nw.col("documents")))
    moved = queries.with_columns(rescored=rescored).with_columns(
        moved=_one_if((nw.col("rescored") == 1) | (nw.col("without_order") == 1))
    )
    found = collect(
        moved.select(
            contradicting=(nw.col("rising") * nw.col("rescored")).sum(),
            tied=(nw.col("guessed") * nw.col("moved")).sum(),
        )
    )
    contradicting, tied = found.row(0)
    return int(contradicting or 0), int(tied or 0)  # the sum of no rows is null


def _rows_over(*partition: str) -> nw.Expr:
    return nw.col("doc_id").count().over(*partition).cast(nw.Int64)


def _count_over(*partition: str, by: list[str]) -> nw.Expr:
    """Count 1, 2, 3 ... in an order."""
    return nw.col("doc_id").cum_count().over(*partition, order_by=by).cast(nw.Int64)


def _one_if(condition: nw.Expr) -> nw.Expr:
    """Return 1 or 0 for a condition; 0 where it is null."""
    return nw.when(condition).then(nw.lit(1)).otherwise(nw.lit(0))
