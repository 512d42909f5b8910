"""How far results without a judgment could move the difference of two systems, and whether its sign could turn."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import ir_measures
import polars as pl

from goodgain.batches.run_file import RunFile
from goodgain.comparing.significance import RESIDUE
from goodgain.evaluation import Scores
from goodgain.formats import Qrels, Run
from goodgain.measures.bounds import find_largest_label, find_rule
from goodgain.measures.contributions import find_contributions

__all__ = ["BOUNDS", "Reach", "add_bounds", "add_bounds_of_means", "find_reach"]

#: The columns that bounds add to the pairs of a comparison, and their types.
BOUNDS: dict[str, type[pl.DataType]] = {"least": pl.Float64, "most": pl.Float64, "can_turn": pl.Boolean}


class Reach(NamedTuple):
    """What the unjudged results of a system could add to its values.

    Attributes:
        values: query_id, measure, value, least, most.
        added: name of a measure with bounds -> query_id, doc_id, added: what each unjudged result would add alone.
    """

    values: pl.DataFrame
    added: Mapping[str, pl.DataFrame]


def find_reach(
    scores: Scores, run: Run | RunFile, qrels: Qrels, measures: Sequence[ir_measures.Measure], *, order: str
) -> Reach:
    """Return what the unjudged results of a system could add; a large run is read into memory as a whole.

    Args:
        scores: its scores, with bounds.
        run: its run.
        qrels: the judgments.
        measures: the measures that are compared.
        order: how classic measures get one ranking.
    """
    bounded = [measure for measure in measures if scores.bounds[str(measure)] is not None]
    label = find_largest_label(qrels.frame)
    return Reach(scores.per_query, find_contributions(_read_whole(run), qrels, bounded, label=label, order=order))


def _read_whole(run: Run | RunFile) -> Run:
    if isinstance(run, Run):
        return run
    rows = [block.run.rows for block in run.blocks()]
    return Run(pl.concat(rows))


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
    """Return the pairs of a comparison with the columns of `BOUNDS`: null for a measure without bounds.

    The unjudged results of both systems may have any labels from 0 to the largest one of the qrels, each document one label
    for both systems. `least` and `most` are the smallest and the largest difference that such labels give; `can_turn` tells
    whether some of them give it the opposite sign, or any sign where the difference is 0.
    """
    rules = {str(measure): find_rule(measure) for measure in measures}
    rows: list[tuple[float | None, float | None, bool | None]] = []
    for measure, system, against, difference in pairs.select("measure", "system", "against", "difference").iter_rows():
        both = (reaches[system], reaches[against])
        if difference is None or any(measure not in reach.added for reach in both):
            rows.append((None, None, None))
            continue
        least, most = _average_bounds(measure, *both, is_sum=rules[measure] == "sum")
        rows.append((least, most, _can_turn(difference, least, most)))
    return pairs.hstack(pl.DataFrame(rows, schema=BOUNDS, orient="row"))


def _average_bounds(measure: str, system: Reach, against: Reach, *, is_sum: bool) -> tuple[float, float]:
    """Return the least and the most mean of the differences: queries share no document, so each has its own extremes."""
    queries = _pair_values(measure, system, against)
    documents = (
        system.added[measure]
        .join(against.added[measure], on=["query_id", "doc_id"], how="full", coalesce=True, suffix="_other")
        .with_columns(pl.col("added", "added_other").fill_null(0.0))
    )
    of_queries = (_sum_differences if is_sum else _find_best_differences)(queries, documents)
    least, most = (math.fsum(of_queries.get_column(name)) / queries.height for name in ("least", "most"))
    return least, most


def _pair_values(measure: str, system: Reach, against: Reach) -> pl.DataFrame:
    """Return query_id, value, value_other."""
    first, second = (
        reach.values.filter(pl.col("measure") == measure).select("query_id", "value") for reach in (system, against)
    )
    return first.join(second, on="query_id", suffix="_other")


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


def _can_turn(difference: float, least: float, most: float) -> bool:
    """Return whether bounds have a sign that the difference has not; what is left of rounding has none."""
    noise = RESIDUE * max(abs(least), abs(most), abs(difference))
    return (difference <= noise and most > noise) or (difference >= -noise and least < -noise)
