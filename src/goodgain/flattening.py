"""From an iterated run to one classic ranking per query, without repeats."""

from __future__ import annotations

from typing import Literal, get_args

import polars as pl

from goodgain.errors import InputError
from goodgain.schema import EMPTY_DOC

__all__ = ["ORDERS", "Order", "contradicting_queries", "flattened"]

Order = Literal["seen", "interleaved", "last"]
ORDERS: tuple[str, ...] = get_args(Order)


def flattened(run: pl.DataFrame, *, order: str = "seen") -> pl.DataFrame:
    """One ranking per query from the rows of a run, in its order of first occurrences.

    A query with one iteration and no repeat keeps its rows and scores as they stand. Any other gets the scores
    n, n-1, ..., 1 in one of three orders: `seen` (iteration, then rank), `interleaved` (position within the
    iteration, then iteration) or `last` (the last iteration alone, even if it is empty).

    Args:
        run: columns query_id, iteration, doc_id, rank, score and possibly tag, in file order.
        order: one of `ORDERS`.

    Returns:
        The same columns: queries in order of first appearance, `rank` from 1, one row per (query, document).

    Raises:
        InputError: the order is unknown.

    Source: the guideline's classic measures take one ranking; trec_eval sorts by score.

    >>> run = pl.DataFrame({"query_id": "q", "iteration": [1, 1, 1, 2, 2, 2], "doc_id": list("abcade"),
    ...                     "rank": [1, 2, 3, 1, 2, 3], "score": 0.0})
    >>> "".join(flattened(run, order="interleaved")["doc_id"])
    'abdce'
    """
    if order not in ORDERS:
        raise InputError(f"order={order!r} is not one of {', '.join(ORDERS)}")
    rows = run.with_row_index("line")
    queries = pl.col("line").min().over("query_id").alias("query")
    iterations = pl.col("iteration").n_unique().over("query_id").alias("iterations")
    rows = rows.with_columns(queries, iterations)
    if order == "last":
        rows = rows.filter(pl.col("iteration") == pl.col("iteration").max().over("query_id"))
    results = rows.filter(pl.col("doc_id") != EMPTY_DOC).sort("query", "iteration", "rank", "line")
    if order == "interleaved":
        position = pl.int_range(pl.len()).over("query", "iteration")
        results = results.with_columns(position=position).sort("query", "position", "iteration")
    firsts = results.unique(["query", "doc_id"], keep="first", maintain_order=True)
    repeats = _repeat_counts(results, firsts)
    as_it_stands = (pl.col("iterations") == 1) & (pl.col("repeats") == 0)
    place = pl.int_range(1, pl.len() + 1).over("query")
    return (
        firsts.join(repeats, on="query", how="left", maintain_order="left")
        .with_columns(
            rank=pl.when(as_it_stands).then("rank").otherwise(place),
            score=pl.when(as_it_stands).then("score").otherwise((pl.len().over("query") + 1 - place).cast(pl.Float64)),
            iteration=pl.when(as_it_stands).then("iteration").otherwise(1),
            place=pl.when(as_it_stands).then("line").otherwise(place),
        )
        .sort("query", "place")
        .select(run.columns)
    )


def _repeat_counts(results: pl.DataFrame, firsts: pl.DataFrame) -> pl.DataFrame:
    """Per query, how many results are repeats."""
    kept = firsts.group_by("query").agg(kept=pl.len())
    return (
        results.group_by("query")
        .agg(all=pl.len())
        .join(kept, on="query")
        .select("query", repeats=pl.col("all") - pl.col("kept"))
    )


def contradicting_queries(run: pl.DataFrame) -> int:
    """In how many re-scored queries a better rank within an iteration has a lower score."""
    results = run.with_row_index("line").filter(pl.col("doc_id") != EMPTY_DOC).sort("rank", "line")
    rising = (pl.col("score").diff() > 0).any()
    by_iteration = results.group_by("query_id", "iteration", maintain_order=True).agg(rising=rising)
    rescored = _rescored(run)
    return by_iteration.filter("rising").join(rescored, on="query_id", how="semi").get_column("query_id").n_unique()


def _rescored(run: pl.DataFrame) -> pl.DataFrame:
    """Queries with several iterations or with repeats."""
    results = pl.col("doc_id").filter(pl.col("doc_id") != EMPTY_DOC)
    counts = run.group_by("query_id").agg(
        several=pl.col("iteration").n_unique() > 1, repeats=results.n_unique() < results.len()
    )
    return counts.filter(pl.col("several") | pl.col("repeats")).select("query_id")
