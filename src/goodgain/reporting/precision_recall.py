"""Curves of interpolated precision over recall, for several systems."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, Literal

import narwhals as nw
import polars as pl

from goodgain.counting.coverage import measure_coverage
from goodgain.counting.ledger import count_pools, ledger_and_pools
from goodgain.counting.query_batches import QrelsByQuery, QueryBatch, RankingRequest, consume_batches
from goodgain.counting.run_in_blocks import RunFile
from goodgain.counting.run_opening import map_documents, use_each
from goodgain.counting.unjoined_documents import warn_of_run
from goodgain.errors import InputError
from goodgain.evaluation import check_iterations
from goodgain.formats import Qrels, Run
from goodgain.formats.any_source import Columns
from goodgain.formats.systems import check_systems, stack_systems
from goodgain.measures.parameters import check_rel
from goodgain.measures.terms import divide_rows
from goodgain.measures.thresholds import warn_of_rel
from goodgain.ranking.dataframe_engines import collect
from goodgain.ranking.first_occurrences_and_flattening import check_order
from goodgain.ranking.ranking_table import Judgments, RankingTable, number_judgments, tabulate_ranking

Points = Literal["eleven", "all"]

#: The eleven levels in tenths, and as recall. Polars rounds twice when it divides by a number: 3 / 10 would not be 0.3.
_LEVELS = pl.DataFrame({"level": range(11), "recall": [i / 10 for i in range(11)]})


def pr_curve(
    qrels: Any,
    runs: Mapping[str, Any],
    *,
    rel: float = 1,
    points: Points = "eleven",
    per_query: bool = False,
    order: str = "seen",
    columns: Columns | None = None,
    documents: Any = None,
    documents_of: str = "both",
    chunks: str = "collapse",
) -> pl.DataFrame:
    """Return interpolated precision at levels of recall: the highest precision at this recall or any higher one.

    At level i/10 it is the highest precision at a rank where 10 * (relevant so far) >= i * R. R is the number of relevant
    documents of the query. The precision is 0 if R = 0 or the ranking never reaches the recall.

    Args:
        qrels: what `read_qrels` takes.
        runs: name -> what `read_run` takes; one or more. Each is read once, large files in blocks.
        rel: the smallest relevant label.
        points: `eleven`: recall 0, 0.1, ..., 1; `all`: every recall above 0 that the system reaches in any query, or
            with `per_query` in this query. Beyond the last one the precision is 0.
        per_query: return the values of each query instead of their mean.
        order: how several iterations become one ranking: `seen`, `interleaved` or `last`.
        columns, documents, documents_of, chunks: as in `evaluate`.

    Returns:
        system, recall, precision: means over all queries of the qrels; a query that the run lacks has 0 at every level.
        With `per_query` also query_id.

    Raises:
        InputError: a run or the qrels cannot be read, or an option is unknown.
        MeasureError: rel is not a number above 0.

    Source: Manning, Raghavan and Schütze, Introduction to Information Retrieval, section 8.4.

    >>> found = pr_curve({"q": {"a": 1, "c": 1}}, {"agent": {"q": {"a": 3.0, "b": 2.0, "c": 1.0}}})
    >>> [round(precision, 2) for precision in found["precision"]]
    [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.67, 0.67, 0.67, 0.67, 0.67]
    """
    systems = check_systems(runs)
    check_order(order)
    check_points(points)
    check_rel(rel)
    judged, systems = map_documents(qrels, systems, documents, documents_of, chunks, columns=columns)
    warn_of_rel(judged.frame, rel)
    hits = use_each(judged, systems, lambda run: find_hits(judged, run, rel, order), columns=columns)
    return stack_systems(
        {name: interpolate(of, judged.query_ids, points=points, per_query=per_query) for name, of in hits.items()}
    )


def check_points(points: str) -> None:
    """Raise `InputError` for an unknown choice of points."""
    if points not in ("eleven", "all"):
        raise InputError(f"points={points!r} is not 'eleven' or 'all'")


def interpolate(hits: pl.DataFrame, query_ids: pl.Series, *, points: Points, per_query: bool) -> pl.DataFrame:
    """Return what `pr_curve` returns for a system, from the hits of its run and the judged queries."""
    if points == "eleven":
        found = _interpolate_at_levels(hits, query_ids)
        return found if per_query else _average_levels(found)
    found = hits.select("query_id", (pl.col("so_far") / pl.col("R")).alias("recall"), "precision")
    return found if per_query else _average_steps(found, len(query_ids))


def find_hits(qrels: Qrels, run: Run | RunFile, rel: float, order: str, *, low: bool = True) -> pl.DataFrame:
    """Return query_id, R, so_far and precision: a row per relevant document retrieved, sorted by query_id and rank.

    R counts the relevant documents of the query, `so_far` those up to and with this one. Precision is the highest at this
    rank or any later one. `low=False` leaves the notice on low coverage to the caller.
    """
    check_iterations(run, needed=False)
    request = RankingRequest(order, with_documents=qrels.labels is not None, with_table=qrels.labels is None)
    found = consume_batches(
        lambda batches: _collect_hits(batches, qrels, run, rel, low=low), qrels, run, rels=[rel], ranking=request
    )
    so_far = pl.int_range(1, pl.len() + 1).over("query_id")
    ranked = found.sort("query_id", "k").with_columns(so_far=so_far)
    ranked = ranked.with_columns(precision=pl.col("so_far") / pl.col("k"))
    highest = pl.col("precision").reverse().cum_max().reverse().over("query_id")
    return ranked.select("query_id", "R", "so_far", precision=highest)


def _collect_hits(
    batches: Iterator[QueryBatch], qrels: Qrels, run: Run | RunFile, rel: float, *, low: bool
) -> pl.DataFrame:
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
    warn_of_run(qrels, run, measure_coverage(counts), low=low)
    return pl.concat(found)


def _take_hits(table: RankingTable, judgments: Judgments, rel: float) -> pl.DataFrame:
    """Return query_id, k, R of the relevant documents in a ranking table."""
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
    found = levels.with_columns(so_far=needed).join(
        hits.drop("R"), on=["query_id", "so_far"], how="left", maintain_order="left"
    )
    return found.select("query_id", "recall", pl.col("precision").fill_null(0.0))


def _average_levels(found: pl.DataFrame) -> pl.DataFrame:
    by_level = found.partition_by("recall", maintain_order=True, as_dict=True)
    rows = [(recall, math.fsum(of.get_column("precision")) / of.height) for (recall,), of in by_level.items()]
    return pl.DataFrame(rows, schema={"recall": pl.Float64, "precision": pl.Float64}, orient="row")


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
