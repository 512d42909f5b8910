"""From an iterated run to one classic ranking per query, without repeats."""

from __future__ import annotations

from typing import Literal, NamedTuple, get_args

import polars as pl

from goodgain.errors import InputError, notice
from goodgain.schema import EMPTY_DOC, RUN

__all__ = [
    "ORDERS",
    "Order",
    "Ranking",
    "add_ranks",
    "check_order",
    "flatten_run",
    "rank_run",
    "rescore",
    "warn_if_scores_contradict",
]

Order = Literal["seen", "interleaved", "last"]
ORDERS: tuple[str, ...] = get_args(Order)


def flatten_run(run: pl.DataFrame, *, order: str = "seen") -> pl.DataFrame:
    """Make one ranking per query from the rows of a run, in its order of first occurrences.

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
    >>> "".join(flatten_run(run, order="interleaved")["doc_id"])
    'abdce'
    """
    return rank_run(run, order=order).ranking


class Ranking(NamedTuple):
    """A classic ranking, and what its user should know.

    Attributes:
        ranking: the run's columns, one row per (query, document).
        contradicting: the number of queries that got new scores although, within an iteration, a better rank has a lower
            score.
    """

    ranking: pl.DataFrame
    contradicting: int


def rank_run(run: pl.DataFrame, *, order: str) -> Ranking:
    """Rank as `flatten_run` does, and count how often ranks contradict scores."""
    check_order(order)
    rows = run.with_columns(query=_query_numbers(run)).with_row_index("line")
    iterations = rows.select("query", "iteration").unique().group_by("query").agg(iterations=pl.len())
    if order == "last":
        rows = rows.filter(pl.col("iteration") == pl.col("iteration").max().over("query"))
    results = _sort_results(rows.filter(pl.col("doc_id") != EMPTY_DOC))
    rising = _rising_queries(results)
    if order == "interleaved":
        position = pl.int_range(pl.len()).over("query", "iteration")
        results = results.with_columns(position=position).sort("query", "position", "iteration")
    queries = results.group_by("query").agg(all=pl.len()).join(iterations, on="query")
    rising = queries.select("query").join(rising, on="query", how="semi").with_columns(rising=pl.lit(True))
    found = rescore(_first_occurrences(results), queries.join(rising, on="query", how="left"))
    return Ranking(found.ranking.select(run.columns), found.contradicting)


def rescore(firsts: pl.DataFrame, queries: pl.DataFrame) -> Ranking:
    """Score first occurrences, which come in the order of their ranking, so that scores give the same order.

    Args:
        firsts: query (numbers in the order the ranking is to have), iteration, doc_id, rank, score, line, and more.
        queries: query, iterations (how many), all (results, repeats among them), rising (whether a better rank in an
            iteration has a lower score; null for no).
    """
    counted = queries.join(firsts.group_by("query").agg(kept=pl.len()), on="query").with_columns(
        as_it_stands=(pl.col("iterations") == 1) & (pl.col("all") == pl.col("kept"))
    )
    place = pl.int_range(1, pl.len() + 1).over("query")
    asis = pl.col("as_it_stands")
    ranking = (
        firsts.join(counted.select("query", "kept", "as_it_stands"), on="query", how="left", maintain_order="left")
        .with_columns(
            rank=pl.when(asis).then("rank").otherwise(place),
            score=pl.when(asis).then("score").otherwise((pl.col("kept") + 1 - place).cast(pl.Float64)),
            iteration=pl.when(asis).then("iteration").otherwise(1),
            place=pl.when(asis).then("line").otherwise(place),
        )
        .sort("query", "place")
    )
    return Ranking(ranking, counted.filter(~asis & pl.col("rising")).height)


def warn_if_scores_contradict(queries: int) -> None:
    """Give a notice if there are queries in which ranks made a ranking that the scores contradict."""
    if queries:
        notice(
            f"ranks contradict scores within an iteration in {queries} quer{'y' if queries == 1 else 'ies'}: "
            "the ranking follows the ranks; if the scores are right, number the ranks by them"
        )


def check_order(order: str) -> None:
    """Raise `InputError` unless the order is one of `ORDERS`."""
    if order not in ORDERS:
        raise InputError(f"order={order!r} is not one of {', '.join(ORDERS)}")


def add_ranks(frame: pl.DataFrame) -> pl.DataFrame:
    """Add ranks and scores where there are none.

    Ranks follow the score, then the doc_id, both descending as in trec_eval; without scores, the order of the rows.
    Scores are minus the rank.
    """
    if "rank" not in frame.columns:
        rows = frame.with_row_index("row")
        by_score = rows.sort("score", "doc_id", descending=True) if "score" in frame.columns else rows
        counted = pl.int_range(1, pl.len() + 1).over("query_id", "iteration")
        frame = by_score.with_columns(rank=counted).sort("row").drop("row")
    ranks = frame.get_column("rank")
    if ranks.dtype.is_float() and (ranks == ranks.round()).all() and (ranks.abs() < 2**53).all():
        frame = frame.with_columns(
            ranks.cast(pl.Int64)
        )  # whole in almost every run, and then written to files as they were read
    if "score" not in frame.columns:
        frame = frame.with_columns(score=-pl.col("rank").cast(pl.Float64))
    return frame.select(name for name in RUN.columns if name in frame.columns)


def _query_numbers(run: pl.DataFrame) -> pl.Series:
    """Number the queries in their order of appearance, cheaply where the rows of a query stand together."""
    query_ids = run.get_column("query_id")
    if query_ids.rle().struct.field("value").is_unique().all():
        return query_ids.rle_id()
    rows = run.select("query_id").with_row_index("line")
    return rows.select(pl.col("line").min().over("query_id")).to_series()


def _sort_results(results: pl.DataFrame) -> pl.DataFrame:
    """Sort by query, iteration, rank, line. Most files are sorted, and to see that takes less time than to sort."""
    key = ["query", "iteration", "rank", "line"]
    behind, equal = pl.lit(False), pl.lit(True)
    for column in map(pl.col, key):
        behind |= equal & (column < column.shift(1))
        equal &= column == column.shift(1)
    return results.sort(key) if results.select(behind.any()).item() else results


def _rising_queries(results: pl.DataFrame) -> pl.DataFrame:
    """Return the queries in which a score is above that of the rank before it in the same iteration."""
    same = (pl.col("query") == pl.col("query").shift(1)) & (pl.col("iteration") == pl.col("iteration").shift(1))
    return results.filter(same & (pl.col("score") > pl.col("score").shift(1))).select("query").unique()


def _first_occurrences(results: pl.DataFrame) -> pl.DataFrame:
    """Return the first row of each document of a query, in the order of the rows."""
    first = (
        results.lazy()
        .with_row_index("row")
        .group_by("query", "doc_id")
        .agg(pl.col("row").min())
        .select(pl.col("row").sort())
        .collect(engine="streaming")  # in less time and memory than unique() takes
    )
    return results[first.get_column("row")]
