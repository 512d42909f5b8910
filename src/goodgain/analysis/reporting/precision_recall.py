"""Curves of interpolated precision over recall, for several systems."""

import math
from collections.abc import Iterator
from typing import Literal

import narwhals as nw
import polars as pl

from goodgain.counting.coverage import Coverage, measure_coverage
from goodgain.counting.ledger import count_pools, ledger_and_pools
from goodgain.counting.query_batches import QrelsByQuery, QueryBatch, RankingRequest, consume_batches
from goodgain.counting.run_in_blocks import RunFile
from goodgain.counting.unjoined_documents import warn_of_run
from goodgain.errors import InputError
from goodgain.evaluation import check_iterations
from goodgain.formats import Qrels, Run
from goodgain.measures.terms import divide_rows
from goodgain.ranking.dataframe_engines import collect
from goodgain.ranking.ranking_table import Judgments, RankingTable, number_judgments, tabulate_ranking

Points = Literal["eleven", "all"]
#: The eleven levels in tenths, and as recall. Polars rounds twice when it divides by a number: 3 / 10 would not be 0.3.
_LEVELS = pl.DataFrame({"level": range(11), "recall": [i / 10 for i in range(11)]})


def check_points(points: str) -> None:
    if points not in ("eleven", "all"):
        raise InputError(f"points={points!r} is not 'eleven' or 'all'")


def interpolate(hits: pl.DataFrame, query_ids: pl.Series, *, points: Points, per_query: bool) -> pl.DataFrame:
    """Return what `pr_curve` returns for a system, from the hits of its run and the judged queries."""
    if points == "eleven":
        found = _interpolate_at_levels(hits, query_ids)
        if per_query:
            return found
        levels = found.partition_by("recall", maintain_order=True, as_dict=True)
        rows = [(recall, math.fsum(of.get_column("precision")) / of.height) for (recall,), of in levels.items()]
        return pl.DataFrame(rows, schema={"recall": pl.Float64, "precision": pl.Float64}, orient="row")
    found = hits.select("query_id", (pl.col("so_far") / pl.col("R")).alias("recall"), "precision")
    return found if per_query else _average_steps(found, len(query_ids))


def find_hits(qrels: Qrels, run: Run | RunFile, rel: float, order: str) -> tuple[pl.DataFrame, Coverage]:
    """Return query_id, R, so_far and precision: a row per relevant document retrieved, sorted by query_id and rank.

    R is the number of relevant documents of the query, `so_far` the number up to this rank. Precision is the highest at this
    rank or a later rank. The second value is the coverage; the caller gives a notice on it.
    """
    check_iterations(run, needed=False)
    request = RankingRequest(order, with_documents=qrels.labels is not None, with_table=qrels.labels is None)
    found, coverage = consume_batches(
        lambda batches: _collect_hits(batches, qrels, rel), qrels, run, rels=[rel], ranking=request
    )
    warn_of_run(qrels, run, coverage, low=False)
    so_far = pl.int_range(1, pl.len() + 1).over("query_id")
    ranked = found.sort("query_id", "k").with_columns(so_far=so_far)
    ranked = ranked.with_columns(precision=pl.col("so_far") / pl.col("k"))
    highest = pl.col("precision").reverse().cum_max().reverse().over("query_id")
    return ranked.select("query_id", "R", "so_far", precision=highest), coverage


def _collect_hits(batches: Iterator[QueryBatch], qrels: Qrels, rel: float) -> tuple[pl.DataFrame, Coverage]:
    of_queries = QrelsByQuery(qrels)
    tallies = []
    found = [pl.DataFrame(schema={"query_id": pl.String, "k": pl.Int64, "R": pl.Int64})]
    for batch in batches:
        tallies.append(batch.tally)
        if batch.table is not None:
            found.append(_take_hits(batch.table, qrels.judgments, rel))
        elif batch.ranking is not None:  # a label applies to the iteration where its document first occurs
            judgments = number_judgments(of_queries.take(batch))
            found.append(_take_hits(tabulate_ranking(batch.ranking, judgments), judgments, rel))
    counts = ledger_and_pools(pl.concat(tallies), count_pools(qrels.judgments, rels=[rel]), rels=[rel])
    return pl.concat(found), measure_coverage(counts)


def _take_hits(table: RankingTable, judgments: Judgments, rel: float) -> pl.DataFrame:
    rows = nw.from_native(table.rows).filter(nw.col("relevance") >= rel).select("query", "k")
    hits = collect(rows.lazy() if isinstance(rows, nw.DataFrame) else rows)
    hits = hits.select(pl.col("query").cast(pl.UInt32), pl.col("k").cast(pl.Int64))
    relevant = judgments.labels.filter(pl.col("relevance") >= rel).group_by("query").agg(R=pl.len().cast(pl.Int64))
    hits = hits.join(relevant.with_columns(pl.col("query").cast(pl.UInt32)), on="query", how="left")
    query_id = judgments.query_ids.gather(hits.get_column("query")).alias("query_id")
    return hits.select(query_id, "k", "R")


def _interpolate_at_levels(hits: pl.DataFrame, query_ids: pl.Series) -> pl.DataFrame:
    """Return query_id, recall, precision at the eleven levels, for every judged query."""
    relevant = hits.group_by("query_id").agg(pl.col("R").first())
    levels = pl.DataFrame({"query_id": query_ids}).join(relevant, on="query_id", how="left", maintain_order="left")
    levels = levels.join(_LEVELS, how="cross", maintain_order="left_right")
    # how many relevant documents the level needs: ceil(level * R / 10), in whole numbers
    needed = pl.max_horizontal((pl.col("level") * pl.col("R") + 9) // 10, pl.lit(1, pl.Int64))
    levels = levels.with_columns(so_far=needed)
    found = levels.join(hits.drop("R"), on=["query_id", "so_far"], how="left", maintain_order="left")
    return found.select("query_id", "recall", pl.col("precision").fill_null(0.0))


def _average_steps(steps: pl.DataFrame, queries: int) -> pl.DataFrame:
    """Return the mean over queries at every recall that some query reaches.

    A query's precision falls at each of its levels and is 0 after the last. The mean at a recall is the sum of all falls
    at this level and later, divided by the queries. The order of the sum is fixed, by recall and size: the last digit of a
    sum of floats depends on it.
    """
    after = pl.col("precision").shift(-1).over("query_id").fill_null(0.0)
    falls = steps.select("recall", fall=pl.col("precision") - after).sort("recall", "fall")
    mean = divide_rows(pl.col("fall").reverse().cum_sum().reverse(), queries)
    return falls.select("recall", precision=mean).unique("recall", keep="first", maintain_order=True)
