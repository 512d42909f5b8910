"""Computes the good-gain measures from the ledger (counts per iteration) and the pools (counts of judged good documents)."""

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property, reduce
from typing import Any

import ir_measures
import numpy as np
import polars as pl

from goodgain.counting.coverage import Coverage, combine_coverages, measure_coverage
from goodgain.counting.ledger import Counts, count_pools, ledger_and_pools
from goodgain.errors import MeasureError
from goodgain.formats import Qrels
from goodgain.measures.declaration import GoodGainMeasure, SessionMeasure
from goodgain.measures.ledger_table import LedgerTable
from goodgain.measures.users_values import MeasureOfUser, value_at_cutoff, values_along
from goodgain.options import spell
from goodgain.ranking.ranking_table import find_places


def final_values(measures: Sequence[GoodGainMeasure], counts: Mapping[float, Counts]) -> pl.DataFrame:
    """Return the value of each measure at its cutoff: a frame with `query_id` (judged, sorted) and a Float64 column per measure.

    `counts` maps each threshold of the measures to the ledger and pools for this threshold.
    """
    of_users = [measure for measure in measures if isinstance(measure, MeasureOfUser)]
    columns = {str(measure): value_at_cutoff(measure, counts[measure.rel]) for measure in of_users}
    for rel, group in _group_by_threshold(measures, counts).items():
        table = LedgerTable.of(counts[rel])
        for measure in group:
            columns[str(measure)] = table.cut(measure.cutoff).compute(measure)

    query_ids = next(iter(counts.values())).pools.get_column("query_id")
    return pl.DataFrame([query_ids, *(columns[str(measure)] for measure in measures)])


def running_values(measures: Sequence[GoodGainMeasure], counts: Mapping[float, Counts]) -> pl.DataFrame:
    """Return a frame of the values at each iteration of judged queries: query_id, iteration, and a Float64 column per measure."""
    of_users = [measure for measure in measures if isinstance(measure, MeasureOfUser)]
    frames = [values_along(measure, counts[measure.rel]) for measure in of_users]
    for rel, group in _group_by_threshold(measures, counts).items():
        table = LedgerTable.of(counts[rel])
        upto = table.along()
        query_id = counts[rel].pools.get_column("query_id").gather(table.rows.query)
        iteration = pl.Series("iteration", table.columns["iteration"])
        columns = [upto.compute(measure) for measure in group]
        frames.append(pl.DataFrame([query_id, iteration, *columns]))
    return reduce(lambda left, right: left.join(right, on=["query_id", "iteration"]), frames)


def tabulate_ledger(
    counts: Mapping[float, Counts], rel: float, measures: Sequence[GoodGainMeasure] = ()
) -> pl.DataFrame:
    """Return the frame of `goodgain.ledger` for the threshold `rel`. `counts` must include the threshold of each measure."""
    rows, pools = counts[rel][:2]
    queries = pools.select("query_id", judged=pl.lit(True))
    result = rows.join(queries, on="query_id", how="left")
    result = result.with_columns(pl.col("judged").fill_null(False))
    if measures:
        result = result.join(running_values(measures, counts), on=["query_id", "iteration"], how="left")
    share = 1 - pl.col("Unjudged") / pl.col("UR")
    has_share = pl.col("judged") & (pl.col("UR") > 0)
    result = result.with_columns(coverage=pl.when(has_share).then(share))
    return result.sort("query_id", "iteration")


def make_finite(values: pl.DataFrame) -> pl.DataFrame:
    """Replace NaN and infinite values by null."""
    not_finite = []
    for column in values.iter_columns():
        if column.dtype.is_float():
            finite = np.isfinite(column.to_numpy()).sum()
            if finite < len(column) - column.null_count():
                not_finite.append(column.name)
    return values.with_columns(pl.when(pl.col(name).is_finite()).then(name) for name in not_finite)


def average_queries(values: pl.Series, *, null_if: str = "") -> float | None:
    """Return the mean of `values`, or None for no values or a null among them. If `null_if` is given, nulls are first left out."""
    numbers = values.to_numpy()
    if values.null_count():
        if not null_if:
            return None
        numbers = numbers[~np.isnan(numbers)]
    if not len(numbers):
        return None
    # An exact sum does not depend on the order of the queries.
    return math.fsum(numbers.tolist()) / len(numbers)


def check_along_iterations(measure: ir_measures.Measure, place: str) -> GoodGainMeasure:
    """Return `measure` if it has no cutoff and is a good-gain measure or count; raise `MeasureError` for any other measure.

    `place` is the table or plot that shows the measure at each iteration, such as `the ledger`.
    """
    if isinstance(measure, SessionMeasure):
        if measure.declaration.total or "cutoff" not in measure.SUPPORTED_PARAMS:
            raise MeasureError(f"{measure} is of the whole query, and {place} shows iterations. Leave out {measure}.")
        if measure.table:
            raise MeasureError(
                f"{place} has no {measure}, which needs {spell(measure.table)}; evaluate it at iterations: {measure.NAME}@1-3"
            )
        raise MeasureError(
            f"{measure} needs all results, which {place} lacks; evaluate it at iterations: {measure.NAME}@1-3"
        )
    if not isinstance(measure, GoodGainMeasure):
        raise MeasureError(
            f"{measure} has no value per iteration; {place} shows only the good-gain measures and counts"
        )
    if measure.cutoff is not None:
        raise MeasureError(f"{measure}: {place} shows a measure at every iteration; write it without @")
    return measure


def _group_by_threshold(
    measures: Iterable[GoodGainMeasure], counts: Mapping[float, Counts]
) -> dict[float, list[GoodGainMeasure]]:
    """Group measures with a formula by threshold. A measure without a threshold joins the group of the first in `counts`."""
    groups: dict[float, list[GoodGainMeasure]] = {}
    for measure in measures:
        if isinstance(measure, MeasureOfUser):
            continue
        rel = measure.rel if measure.declaration.uses_rel else next(iter(counts))
        groups.setdefault(rel, []).append(measure)
    return groups


#: Rows of the ledger scored together: each call has a fixed cost, and more rows need more memory.
_ROWS = 2**18


class BatchScores:
    """Computes good-gain measures, one batch of queries at a time.

    A tally has counts per query and iteration: `GR0` counts the good documents for the threshold `rels[0]`, `GR1` for `rels[1]`.
    """

    def __init__(self, measures: Sequence[GoodGainMeasure], qrels: Qrels, rels: Sequence[float]) -> None:
        self._measures = measures
        self._qrels = qrels
        self._rels = rels
        self._tallies: list[pl.DataFrame] = []
        self._values: list[pl.DataFrame] = []
        self._coverages: list[Coverage] = []

    @cached_property
    def pools(self) -> pl.DataFrame:
        return count_pools(self._qrels.judgments, rels=self._rels)

    def add(self, tallied: pl.DataFrame) -> None:
        """Add the tally (counts per query and iteration) of a batch of queries. Each query is in only one batch."""
        self._tallies.append(tallied)
        if sum(waiting.height for waiting in self._tallies) >= _ROWS:  # `finish` scores what still waits
            tallied = self._take_tallies()
            query_ids = tallied.get_column("query_id").unique()
            place = find_places(query_ids, self.pools.get_column("query_id"))
            queries = np.sort(place[place >= 0])
            self._is_scored[queries] = True
            self._score(tallied, self.pools[queries])

    def finish(self) -> tuple[pl.DataFrame, Coverage]:
        """Return two things: a frame with `query_id` (sorted) and a column per measure; and the coverage of the run."""
        # Judged queries in no batch are scored last, on empty ledgers.
        pools = self.pools
        if self._values:
            pools = pools[np.flatnonzero(~self._is_scored)]
        self._score(self._take_tallies(), pools)

        values = self._values[0]
        if len(self._values) > 1:
            values = pl.concat(self._values).sort("query_id")
        return values, combine_coverages(self._coverages)

    @cached_property
    def _is_scored(self) -> Any:
        return np.zeros(self.pools.height, bool)

    def _take_tallies(self) -> pl.DataFrame:
        tallied = pl.concat(self._tallies)
        self._tallies = [tallied.clear()]
        return tallied

    def _score(self, tallied: pl.DataFrame, pools: pl.DataFrame) -> None:
        counts = ledger_and_pools(tallied, pools, self._qrels.judgments, rels=self._rels)
        self._values.append(final_values(self._measures, counts))
        self._coverages.append(measure_coverage(counts))
