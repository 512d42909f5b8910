"""Values of measures, from ledger and pools."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import polars as pl

from goodgain.counting.ledger import Counts
from goodgain.measures.declaration import GoodGainMeasure
from goodgain.schema import LEDGER

__all__ = ["final_values", "running_values", "thresholds"]

_COUNTED = tuple(name for name in LEDGER.columns if name not in ("query_id", "iteration"))


def thresholds(measures: Iterable[GoodGainMeasure]) -> list[float]:
    """The thresholds a list of measures needs counts for."""
    return sorted({measure.rel for measure in measures})


def final_values(measures: Sequence[GoodGainMeasure], counts: Mapping[float, Counts]) -> pl.DataFrame:
    """The value of each measure for every judged query.

    Args:
        measures: any of ours.
        counts: threshold -> ledger and pools, for the thresholds of the measures.

    Returns:
        query_id (sorted), and a Float64 column for each measure by its name.
    """
    columns: dict[str, pl.Series] = {}
    for rel, group in _by_threshold(measures).items():
        ledger, pools = _by_number(*counts[rel][:2])
        for cutoff in {measure.cutoff for measure in group}:
            values = _at_cutoff(ledger, pools, [measure for measure in group if measure.cutoff == cutoff], cutoff)
            columns |= {column.name: column for column in values.get_columns()}
    query_ids = next(iter(counts.values())).pools.get_column("query_id")
    return pl.DataFrame([query_ids, *(columns[str(measure)] for measure in measures)])


def running_values(measures: Sequence[GoodGainMeasure], counts: Mapping[float, Counts]) -> pl.DataFrame:
    """The value of each measure at every iteration of the ledger, null for queries without judgments.

    Returns:
        query_id, iteration, and a Float64 column for each measure by its name.
    """
    result: pl.DataFrame | None = None
    for rel, group in _by_threshold(measures).items():
        ledger, pools = counts[rel][:2]
        rows = ledger.join(pools, on="query_id").sort("query_id", "iteration")
        values = rows.lazy().select(  # lazy, so that sums which measures share are made once
            "query_id", "iteration", *(_named(measure, measure.value.along) for measure in group)
        )
        result = values.collect() if result is None else result.join(values.collect(), on=["query_id", "iteration"])
    return result if result is not None else pl.DataFrame(schema={"query_id": pl.String, "iteration": pl.Int64})


def _by_threshold(measures: Iterable[GoodGainMeasure]) -> dict[float, list[GoodGainMeasure]]:
    groups: dict[float, list[GoodGainMeasure]] = {}
    for measure in measures:
        groups.setdefault(measure.rel, []).append(measure)
    return groups


def _by_number(ledger: pl.DataFrame, pools: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Ledger and pools of the judged queries, which are named by their position: sooner joined and grouped."""
    numbered = pools.with_row_index("query")
    numbers = numbered.select("query_id", "query", "N")
    return ledger.join(numbers, on="query_id", maintain_order="left").drop("query_id"), numbered.drop("query_id")


def _at_cutoff(
    ledger: pl.DataFrame, pools: pl.DataFrame, measures: Sequence[GoodGainMeasure], cutoff: int | None
) -> pl.DataFrame:
    """The values at one cutoff, each query's own last iteration for None; a row for each row of the pools.

    After the last iteration there are only empty ones: they have no row, count nothing and add nothing to any sum.
    """
    i = pl.col("N") if cutoff is None else pl.lit(cutoff, dtype=pl.Int64)
    so_far = ledger if cutoff is None else ledger.filter(pl.col("iteration") <= cutoff)
    sums = {name: x for measure in measures for name, x in measure.value.sums.items()}
    summed = so_far.lazy().group_by("query", maintain_order=True).agg(x.alias(name) for name, x in sums.items())
    here = ledger.filter(pl.col("iteration") == i).select("query", *_COUNTED)
    return (
        pools.with_columns(iteration=i)
        .join(here, on="query", how="left", maintain_order="left")
        .with_columns(pl.col(*_COUNTED).fill_null(0))
        .join(summed.collect(), on="query", how="left", maintain_order="left")
        .select(_named(measure, measure.value.at) for measure in measures)
    )


def _named(measure: GoodGainMeasure, value: pl.Expr) -> pl.Expr:
    return value.cast(pl.Float64).alias(str(measure))
