"""From an iterated run in memory to one classic ranking per query, without repeats."""

from __future__ import annotations

import narwhals as nw
import polars as pl

from goodgain.errors import notice
from goodgain.ranking.first_occurrences import FirstOccurrences, count_in_query, find_first_occurrences
from goodgain.schema import RUN

__all__ = ["add_ranks", "flatten_columns", "flatten_run", "make_ranking", "warn_if_scores_contradict"]


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
    return make_ranking(find_first_occurrences(run, order)).select(run.columns)


def make_ranking(firsts: FirstOccurrences) -> pl.DataFrame:
    """Return query_id and the columns of the rows, with scores and ranks that give the order of the ranking."""
    query = firsts.rows.get_column("query")
    keeps = pl.Series("keeps", firsts.keep_scores).gather(query)
    place = count_in_query(query).alias("place")
    kept = pl.Series("kept", firsts.kept).gather(query)
    placed = firsts.rows.with_columns(firsts.queries.get_column("query_id").gather(query), keeps, place, kept)
    ranking = nw.from_native(placed).with_columns(**flatten_columns()).to_native()
    if not keeps.any():
        return ranking
    # A query that keeps its scores keeps the order of its rows too.
    key = ranking.select("query", place=pl.when("keeps").then("line").otherwise("place"))
    same = pl.col("query") == pl.col("query").shift(1)
    if key.select((same & (pl.col("place") < pl.col("place").shift(1))).any()).item():
        return ranking.with_columns(key.get_column("place")).sort("query", "place")
    return ranking


def flatten_columns() -> dict[str, nw.Expr]:
    """Return rank, score and iteration of the rows of a ranking.

    The expressions are over `keeps` (`keeps_scores`), `place` (1, 2, 3 ... in the order of the ranking) and `kept` (the number
    of first occurrences), of any engine.
    """
    keeps, place = nw.col("keeps"), nw.col("place")
    return {
        "rank": nw.when(keeps).then(nw.col("rank")).otherwise(place),
        "score": nw.when(keeps).then(nw.col("score")).otherwise((nw.col("kept") + 1 - place).cast(nw.Float64)),
        "iteration": nw.when(keeps).then(nw.col("iteration")).otherwise(nw.lit(1)).cast(nw.Int64),
    }


def warn_if_scores_contradict(queries: int) -> None:
    """Give a notice if there are queries in which ranks made a ranking that the scores contradict."""
    if queries:
        notice(
            f"ranks contradict scores within an iteration in {queries} quer{'y' if queries == 1 else 'ies'}: "
            "the ranking follows the ranks; if the scores are right, number the ranks by them"
        )


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
