"""Values of measures, from ledger and pools."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import polars as pl

from goodgain.counting import Counts
from goodgain.declaring import GoodGainMeasure

__all__ = ["along_ledger", "scored", "thresholds"]

_COUNTED = ("R", "UR", "Dup", "GR", "G", "Unjudged")


def thresholds(measures: Iterable[GoodGainMeasure]) -> list[float]:
    """The thresholds a list of measures needs counts for."""
    return sorted({measure.rel for measure in measures})


def scored(measures: Sequence[GoodGainMeasure], counts: Mapping[float, Counts]) -> pl.DataFrame:
    """The value of each measure for every judged query.

    Args:
        measures: any of ours.
        counts: threshold -> ledger and pools, for the thresholds of the measures.

    Returns:
        query_id (sorted), and a Float64 column for each measure by its name.
    """
    columns: dict[str, pl.Series] = {}
    for rel, group in _by_threshold(measures).items():
        ledger, pools = counts[rel][:2]
        rows = _continued(*_by_number(ledger, pools), {measure.cutoff for measure in group})
        valued = _valued(rows, group)
        at_end = pl.col("iteration") == pl.col("N")
        for cutoff in {measure.cutoff for measure in group}:
            names = [str(measure) for measure in group if measure.cutoff == cutoff]
            here = at_end if cutoff is None else pl.col("iteration") == cutoff
            at_cutoff = valued.filter(here)  # one row a judged query, sorted, as the pools are
            columns |= {name: at_cutoff.get_column(name) for name in names}
    query_ids = next(iter(counts.values())).pools.get_column("query_id")
    return pl.DataFrame([query_ids, *(columns[str(measure)] for measure in measures)])


def along_ledger(measures: Sequence[GoodGainMeasure], counts: Mapping[float, Counts]) -> pl.DataFrame:
    """The value of each measure at every iteration of the ledger, null for queries without judgments.

    Returns:
        query_id, iteration, and a Float64 column for each measure by its name.
    """
    result: pl.DataFrame | None = None
    for rel, group in _by_threshold(measures).items():
        ledger, pools = counts[rel][:2]
        rows = ledger.join(pools, on="query_id").sort("query_id", "iteration")
        values = _valued(rows, group).select("query_id", "iteration", *(str(measure) for measure in group))
        result = values if result is None else result.join(values, on=["query_id", "iteration"])
    return result if result is not None else pl.DataFrame(schema={"query_id": pl.String, "iteration": pl.Int64})


def _by_threshold(measures: Iterable[GoodGainMeasure]) -> dict[float, list[GoodGainMeasure]]:
    groups: dict[float, list[GoodGainMeasure]] = {}
    for measure in measures:
        groups.setdefault(measure.rel, []).append(measure)
    return groups


def _by_number(ledger: pl.DataFrame, pools: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Ledger and pools of the judged queries, which are named by their position: sooner joined, sorted and grouped."""
    position = {"position": "query_id"}
    numbers = pools.select("query_id").with_row_index("position")
    rows = ledger.join(numbers, on="query_id").drop("query_id").rename(position)
    return rows, pools.drop("query_id").with_row_index("position").rename(position)


def _valued(rows: pl.DataFrame, measures: Iterable[GoodGainMeasure]) -> pl.DataFrame:
    """The rows with a column for each measure; lazy, so that sums which measures share are made once."""
    return rows.lazy().with_columns(_value(measure) for measure in measures).collect()


def _value(measure: GoodGainMeasure) -> pl.Expr:
    return measure.expression.cast(pl.Float64).alias(str(measure))


def _continued(ledger: pl.DataFrame, pools: pl.DataFrame, cutoffs: Iterable[int | None]) -> pl.DataFrame:
    """Judged queries' ledgers with an empty row at each cutoff after N, and at i = 0 where there was no search.

    One row stands for all the empty ones before it: they add nothing to any sum.
    """
    rows = ledger.join(pools, on="query_id")
    ends = [pools.filter(pl.col("N") == 0).with_columns(iteration=pl.lit(0, dtype=pl.Int64))]
    ends += [
        pools.filter(pl.col("N") < cutoff).with_columns(iteration=pl.lit(cutoff, dtype=pl.Int64))
        for cutoff in cutoffs
        if cutoff is not None
    ]
    nothing = pl.concat(ends).with_columns(pl.lit(0).alias(name) for name in _COUNTED)
    return pl.concat([rows, nothing.select(rows.columns).cast(rows.schema)]).sort("query_id", "iteration")
