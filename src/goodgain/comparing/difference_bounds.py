"""How far results without a judgment could move the difference of two systems, and whether its sign could turn."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import ir_measures
import polars as pl

from goodgain.comparing.statistical_tests import RESIDUE
from goodgain.counting.run_in_blocks import RunFile, read_whole
from goodgain.formats import Qrels, Run
from goodgain.measures.bounds import find_contributions, find_largest_label, find_rule
from goodgain.measures.scores import Scores


class Reach(NamedTuple):
    """What the unjudged results of a system could add to its values.

    Attributes:
        values: query_id, measure, value, least, most.
        added: name of a measure with bounds -> query_id, doc_id, added: what each unjudged result would add alone.
    """

    values: pl.DataFrame
    added: Mapping[str, pl.DataFrame]


def find_reach(
    scores: Scores, qrels: Qrels, run: Run | RunFile, measures: Sequence[ir_measures.Measure], *, order: str
) -> Reach:
    """Return what the unjudged results of a system, scored with bounds, could add; a large run is read into memory."""
    bounded = [measure for measure in measures if scores.bounds[str(measure)] is not None]
    label = find_largest_label(qrels.frame)
    return Reach(scores.per_query, find_contributions(qrels, read_whole(run), bounded, label=label, order=order))


def add_bounds_of_means(means: pl.DataFrame, reaches: Mapping[str, Reach]) -> pl.DataFrame:
    """Return the means of a comparison with least and most: null for a measure without bounds."""
    averages = [
        of.values.filter(pl.col("most").is_not_null())
        .group_by("measure")
        .agg(pl.col("least", "most").mean())
        .with_columns(system=pl.lit(name))
        for name, of in reaches.items()
    ]
    return means.join(pl.concat(averages), on=["measure", "system"], how="left", maintain_order="left")


def add_bounds(
    pairs: pl.DataFrame, measures: Sequence[ir_measures.Measure], reaches: Mapping[str, Reach]
) -> pl.DataFrame:
    """Return the pairs of a comparison with least, most and can_turn: null for a measure without bounds.

    The unjudged results of both systems may have any labels from 0 to the largest one of the qrels, each document one label
    for both systems. `least` and `most` are the smallest and the largest difference that such labels give; `can_turn` tells
    whether some of them give it the opposite sign, or any sign where the difference is 0.
    """
    rules = {str(measure): find_rule(measure) for measure in measures}
    rows: list[tuple[float | None, float | None]] = []
    for measure, *systems, difference in pairs.select("measure", "system", "against", "difference").iter_rows():
        system, against = (reaches[name] for name in systems)
        if difference is None or measure not in system.added or measure not in against.added:
            rows.append((None, None))
        else:
            rows.append(_average_bounds(measure, system, against, is_sum=rules[measure] == "sum"))
    bounds = pl.DataFrame(rows, schema={"least": pl.Float64, "most": pl.Float64}, orient="row")
    difference, least, most = pl.col("difference"), pl.col("least"), pl.col("most")
    noise = RESIDUE * pl.max_horizontal(
        least.abs(), most.abs(), difference.abs()
    )  # what is left of rounding has no sign
    can_turn = ((difference <= noise) & (most > noise)) | ((difference >= -noise) & (least < -noise))
    return pairs.hstack(bounds).with_columns(can_turn=can_turn)


def _average_bounds(measure: str, system: Reach, against: Reach, *, is_sum: bool) -> tuple[float, float]:
    """Return the least and the most mean of the differences: queries share no document, so each has its own extremes."""
    first, second = (reach.values.filter(measure=measure).select("query_id", "value") for reach in (system, against))
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
    """Return least and most of each query, where values are sums over documents.

    A document adds to the difference what it adds to the one value less what it adds to the other, both by the same label:
    the most is reached with the largest label for those that add more to the first system, and 0 for the others.
    """
    difference = pl.col("added") - pl.col("added_other")
    moved = documents.group_by("query_id").agg(
        falls=difference.clip(upper_bound=0).sum(), rises=difference.clip(0).sum()
    )
    now = pl.col("value") - pl.col("value_other")
    joined = queries.join(moved, on="query_id", how="left").with_columns(pl.col("falls", "rises").fill_null(0.0))
    return joined.select(least=now + pl.col("falls"), most=now + pl.col("rises"))


def _find_best_differences(queries: pl.DataFrame, documents: pl.DataFrame) -> pl.DataFrame:
    """Return least and most of each query, where values are those of the best document.

    One document decides each value. So the extremes are reached with the largest label for one unjudged document, or none:
    for the most, with any others beside it the first value would be no higher and the second no lower.
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
