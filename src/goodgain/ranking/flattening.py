"""From an iterated run to one classic ranking per query, without repeats."""

from __future__ import annotations

from typing import Literal, NamedTuple, get_args

import numpy as np
import polars as pl

from goodgain.errors import InputError, notice
from goodgain.ranking.positions import count_in_query
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
    rows = _sort_rows(run.with_columns(query=_query_numbers(run)).with_row_index("line"))
    iterated = _queries_where(rows, pl.col("iteration") != pl.col("iteration").shift(1))
    if order == "last":
        rows = rows.filter(pl.col("iteration") == pl.col("iteration").max().over("query"))
    results = rows.filter(pl.col("doc_id") != EMPTY_DOC)
    same_iteration = pl.col("iteration") == pl.col("iteration").shift(1)
    rising = _queries_where(results, same_iteration & (pl.col("score") > pl.col("score").shift(1)))
    if order == "interleaved":
        position = pl.int_range(pl.len()).over("query", "iteration")
        results = results.with_columns(position=position).sort("query", "position", "iteration")
    queries = results.select(pl.col("query").rle()).unnest("query").rename({"value": "query", "len": "all"})
    described = queries.with_columns(
        one_iteration=~pl.col("query").is_in(iterated.implode()), rising=pl.col("query").is_in(rising.implode())
    )
    # Polars groups the documents of one query after the other, in a third of the time that it takes for all at once.
    is_first = results.select(pl.col("doc_id").is_first_distinct().over("query")).to_series()
    found = rescore(results.filter(is_first), described)
    return Ranking(found.ranking.select(run.columns), found.contradicting)


def rescore(firsts: pl.DataFrame, queries: pl.DataFrame) -> Ranking:
    """Score first occurrences, which come in the order of their ranking, so that scores give the same order.

    Args:
        firsts: query (ascending numbers), iteration, doc_id, rank, score, line, and more; those of a query in the order
            of their ranking.
        queries: query, one_iteration (whether it has no more), all (results, repeats among them), rising (whether a
            better rank in an iteration has a lower score).
    """
    query = firsts.get_column("query")
    kept = pl.DataFrame({"query": query}).select(pl.col("query").rle()).unnest("query")
    counted = kept.rename({"value": "query", "len": "kept"}).join(
        queries, on="query", how="left", maintain_order="left"
    )
    counted = counted.with_columns(as_it_stands=pl.col("one_iteration") & (pl.col("all") == pl.col("kept")))
    of_rows = pl.Series(np.repeat(np.arange(counted.height), counted.get_column("kept").to_numpy()))
    asis = counted.get_column("as_it_stands").gather(of_rows)
    place = count_in_query(query)
    after = counted.get_column("kept").cast(pl.Int64).gather(of_rows) + 1 - place
    ranking = firsts.with_columns(
        rank=pl.when(asis).then("rank").otherwise(place),
        score=pl.when(asis).then("score").otherwise(after.cast(pl.Float64)),
        iteration=pl.when(asis).then("iteration").otherwise(1),
        place=pl.when(asis).then("line").otherwise(place),
    )
    if len(_queries_where(ranking, pl.col("place") < pl.col("place").shift(1))):
        ranking = ranking.sort("query", "place")
    return Ranking(ranking, counted.filter(~pl.col("as_it_stands") & pl.col("rising")).height)


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
    runs = run.get_column("query_id").rle().struct.unnest()
    if runs.get_column("value").is_unique().all():
        return pl.Series(np.repeat(np.arange(runs.height, dtype=np.uint32), runs.get_column("len").to_numpy()))
    rows = run.select("query_id").with_row_index("line")
    return rows.select(pl.col("line").min().over("query_id")).to_series()


def _sort_rows(rows: pl.DataFrame) -> pl.DataFrame:
    """Sort by query, iteration, rank, line. Most files are sorted, and to see that takes less time than to sort."""
    key = ["query", "iteration", "rank", "line"]
    behind, equal = pl.lit(False), pl.lit(True)
    for column in map(pl.col, key):
        behind |= equal & (column < column.shift(1))
        equal &= column == column.shift(1)
    return rows.sort(key) if rows.select(behind.any()).item() else rows


def _queries_where(rows: pl.DataFrame, condition: pl.Expr) -> pl.Series:
    """Return the queries in which a condition on a row and the row before it, both of the query, holds."""
    same_query = pl.col("query") == pl.col("query").shift(1)
    return rows.lazy().filter(same_query & condition).select(pl.col("query").unique()).collect().to_series()
