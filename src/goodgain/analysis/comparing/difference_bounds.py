"""Bounds on the difference of two systems: how far labels of the unjudged results could move it."""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import ir_measures
import polars as pl

from goodgain.analysis.comparing.pairs_table import NOT_COMPARABLE
from goodgain.analysis.comparing.statistical_tests import RESIDUE
from goodgain.counting.run_in_blocks import RunFile, read_whole
from goodgain.formats import Qrels, Run
from goodgain.measures.bounds import find_contributions, find_largest_label, find_rule
from goodgain.measures.scores import Scores


class ScoredRun(NamedTuple):
    """A run's scores on the measures of a comparison, and how far labels of its unjudged results could change them."""

    scores: Scores
    added: Mapping[str, pl.DataFrame]  # name of a measure with bounds -> query_id, doc_id, added (by this result alone)


def find_added(
    scores: Scores, qrels: Qrels, run: Run | RunFile, measures: Sequence[ir_measures.Measure], *, order: str
) -> dict[str, pl.DataFrame]:
    """Return what the unjudged results of a run could add to scores with bounds. Reads a large run into memory."""
    bounded = [measure for measure in measures if scores.bounds[str(measure)] is not None]
    label = find_largest_label(qrels.frame)
    return find_contributions(qrels, read_whole(run), bounded, label=label, order=order)


def add_bounds_of_means(means: pl.DataFrame, runs: Mapping[str, ScoredRun]) -> pl.DataFrame:
    """Add the columns least and most to the means of a comparison; null for a measure without bounds."""
    averages = [
        of.scores.per_query.drop_nulls(["value", "most"])
        .group_by("measure")
        .agg(pl.col("least", "most").mean())
        .with_columns(system=pl.lit(name))
        for name, of in runs.items()
    ]
    return means.join(pl.concat(averages), on=["measure", "system"], how="left", maintain_order="left")


def add_bounds(
    pairs: pl.DataFrame, measures: Sequence[ir_measures.Measure], runs: Mapping[str, ScoredRun]
) -> pl.DataFrame:
    """Add least, most and can_turn to the pairs of a comparison, as `Comparison` describes them; null for a measure without bounds.

    Each unjudged document gets one label for both systems, from 0 to the largest label of the qrels.
    """
    rules = {str(measure): find_rule(measure) for measure in measures}
    rows: list[tuple[float | None, float | None]] = []
    for measure, *systems, difference in pairs.select("measure", "system", "against", "difference").iter_rows():
        system, against = (runs[name] for name in systems)
        if difference is None or measure not in system.added or measure not in against.added:
            rows.append((None, None))
        else:
            rows.append(_average_bounds(measure, system, against, is_sum=rules[measure] == "sum"))
    bounds = pl.DataFrame(rows, schema={"least": pl.Float64, "most": pl.Float64}, orient="row")
    difference, least, most = pl.col("difference"), pl.col("least"), pl.col("most")
    noise = RESIDUE * pl.max_horizontal(least.abs(), most.abs(), difference.abs())  # rounding errors have no sign
    is_ranked = ~pl.col("verdict").str.starts_with(NOT_COMPARABLE).fill_null(False)
    can_turn = ((difference <= noise) & (most > noise)) | ((difference >= -noise) & (least < -noise))
    return pairs.hstack(bounds).with_columns(can_turn=can_turn & is_ranked)


def _average_bounds(measure: str, system: ScoredRun, against: ScoredRun, *, is_sum: bool) -> tuple[float, float]:
    """Return the least and the most mean difference: queries share no labels, so each query has its own extremes."""
    values = (run.scores.per_query.filter(measure=measure) for run in (system, against))
    first, second = (of.select("query_id", "value").drop_nulls() for of in values)
    queries = first.join(second, on="query_id", suffix="_other")
    documents = (
        system.added[measure]
        .join(against.added[measure], on=["query_id", "doc_id"], how="full", coalesce=True, suffix="_other")
        .with_columns(pl.col("added", "added_other").fill_null(0.0))
    )
    of_queries = (_sum_differences if is_sum else _find_best_differences)(queries, documents)
    least, most = (math.fsum(of_queries.get_column(name)) / queries.height for name in ("least", "most"))
    return least, most


def _sum_differences(queries: pl.DataFrame, documents: pl.DataFrame) -> pl.DataFrame:
    """Return least and most of each query for a measure that sums over documents.

    `most` gives the largest label to the documents that add more to the first system, and 0 to others; `least` the opposite.
    """
    difference = pl.col("added") - pl.col("added_other")
    moved = documents.group_by("query_id").agg(
        falls=difference.clip(upper_bound=0).sum(), rises=difference.clip(0).sum()
    )
    now = pl.col("value") - pl.col("value_other")
    joined = queries.join(moved, on="query_id", how="left").with_columns(pl.col("falls", "rises").fill_null(0.0))
    return joined.select(least=now + pl.col("falls"), most=now + pl.col("rises"))


def _find_best_differences(queries: pl.DataFrame, documents: pl.DataFrame) -> pl.DataFrame:
    """Return least and most of each query for a measure whose value is that of the best document.

    One document decides each value. So at most one unjudged document needs the largest label to reach an extreme: a second
    one could not raise the first value further, nor lower the second.
    """
    value, other = pl.col("value"), pl.col("value_other")
    raised = pl.max_horizontal(value, "added") - pl.max_horizontal(other, "added_other")
    one = documents.join(queries, on="query_id").select("query_id", difference=raised)
    none = queries.select("query_id", difference=value - other)
    return (
        pl.concat([one, none])
        .group_by("query_id")
        .agg(least=pl.col("difference").min(), most=pl.col("difference").max())
    )
