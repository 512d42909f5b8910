"""Computes the good-gain measures from the ledger (counts per iteration) and the pools (counts of judged good documents)."""

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property, reduce

import ir_measures
import polars as pl
import polars.selectors as cs

from goodgain.counting.coverage import Coverage, combine_coverages, measure_coverage
from goodgain.counting.ledger import Counts, count_pools, ledger_and_pools
from goodgain.errors import MeasureError
from goodgain.formats import Qrels
from goodgain.measures.declaration import GoodGainMeasure, SessionMeasure
from goodgain.measures.users_values import MeasureOfUser, value_at_cutoff, values_along
from goodgain.schema import LEDGER

_COUNTED = tuple(name for name in LEDGER.columns if name not in ("query_id", "iteration"))


def final_values(measures: Sequence[GoodGainMeasure], counts: Mapping[float, Counts]) -> pl.DataFrame:
    """Return the value of each measure at its cutoff: a frame with `query_id` (judged, sorted) and a Float64 column per measure.

    `counts` maps each threshold of the measures to the ledger and pools for this threshold.
    """
    of_users = [measure for measure in measures if isinstance(measure, MeasureOfUser)]
    columns = {str(measure): value_at_cutoff(measure, counts[measure.rel]) for measure in of_users}
    for rel, group in _group_by_threshold(measures, counts).items():
        # joins and group-bys on numbers are faster
        pools = counts[rel].pools.with_row_index("query")
        ledger = counts[rel].ledger.join(pools.select("query_id", "query", "N"), on="query_id", maintain_order="left")
        # Polars has another way to sum rows that it knows to be sorted. Without the sort, the last digit of a sum would depend
        # on the order of the queries.
        ledger, pools = ledger.drop("query_id").sort("query", maintain_order=True), pools.drop("query_id")
        for cutoff in {measure.cutoff for measure in group}:
            some = [measure for measure in group if measure.cutoff == cutoff]
            columns |= {column.name: column for column in _compute_at_cutoff(ledger, pools, some, cutoff)}
    query_ids = next(iter(counts.values())).pools.get_column("query_id")
    return pl.DataFrame([query_ids, *(columns[str(measure)] for measure in measures)])


def running_values(measures: Sequence[GoodGainMeasure], counts: Mapping[float, Counts]) -> pl.DataFrame:
    """Return a frame of the values at each iteration of judged queries: query_id, iteration, and a Float64 column per measure."""
    of_users = [measure for measure in measures if isinstance(measure, MeasureOfUser)]
    found = [values_along(measure, counts[measure.rel]) for measure in of_users]
    for rel, group in _group_by_threshold(measures, counts).items():
        ledger, pools = counts[rel][:2]
        rows = ledger.join(pools, on="query_id").sort("query_id", "iteration")
        values = rows.lazy().select("query_id", "iteration", *(measure.along for measure in group))
        found.append(values.collect())  # lazy: Polars computes a shared sum once
    return reduce(lambda left, right: left.join(right, on=["query_id", "iteration"]), found)


def tabulate_ledger(
    counts: Mapping[float, Counts], rel: float, measures: Sequence[GoodGainMeasure] = ()
) -> pl.DataFrame:
    """Return the frame of `goodgain.ledger` for the threshold `rel`. `counts` must include the threshold of each measure."""
    rows, pools = counts[rel][:2]
    queries = pools.select("query_id", judged=pl.lit(True))
    result = rows.join(queries, on="query_id", how="left").with_columns(pl.col("judged").fill_null(False))
    if measures:
        result = result.join(running_values(measures, counts), on=["query_id", "iteration"], how="left")
    share = 1 - pl.col("Unjudged") / pl.col("UR")
    result = result.with_columns(coverage=pl.when(pl.col("judged") & (pl.col("UR") > 0)).then(share))
    return result.sort("query_id", "iteration")


def make_finite(values: pl.DataFrame) -> pl.DataFrame:
    numbers = cs.float()
    return values.with_columns(pl.when(numbers.is_finite()).then(numbers))


def average_queries(values: pl.Series, *, null_if: str = "") -> float | None:
    """Return the mean of `values`, or None for no values or a null among them. If `null_if` is given, nulls are first left out."""
    known = values.drop_nulls() if null_if else values
    # An exact sum does not depend on the order of the queries.
    return None if known.null_count() or known.is_empty() else math.fsum(known.to_list()) / len(known)


def check_along_iterations(measure: ir_measures.Measure, what: str) -> GoodGainMeasure:
    """Return `measure` if it has no cutoff and is a good-gain measure or count; raise `MeasureError` for any other measure.

    `what` is the table or plot that shows the measure at each iteration, such as `the ledger`.
    """
    if isinstance(measure, SessionMeasure):
        told = f"{measure} needs all results, which {what} lacks"
        raise MeasureError(f"{told}; evaluate it at iterations: {measure.NAME}@1-3")
    if not isinstance(measure, GoodGainMeasure):
        raise MeasureError(f"{measure} has no value per iteration; {what} shows only the good-gain measures and counts")
    if measure.cutoff is not None:
        raise MeasureError(f"{measure}: {what} shows a measure at every iteration; write it without @")
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


def _compute_at_cutoff(
    ledger: pl.DataFrame, pools: pl.DataFrame, measures: Sequence[GoodGainMeasure], cutoff: int | None
) -> pl.DataFrame:
    """Return the values at one cutoff, in the order of `pools`. The cutoff None means the last iteration of each query.

    If a query ends before the cutoff, the ledger has no row at the cutoff, and the missing iterations count as empty.
    """
    i = pl.col("N") if cutoff is None else pl.lit(cutoff, dtype=pl.Int64)
    so_far = ledger if cutoff is None else ledger.filter(pl.col("iteration") <= cutoff).rechunk()
    sums = {name: x for measure in measures for name, x in measure.at_cutoff[1].items()}
    summed = so_far.lazy().group_by("query", maintain_order=True).agg(x.alias(name) for name, x in sums.items())
    here = ledger.filter(pl.col("iteration") == i).select("query", *_COUNTED)
    return (
        pools.with_columns(iteration=i)
        .join(here, on="query", how="left", maintain_order="left")
        .with_columns(pl.col(*_COUNTED).fill_null(0))
        .join(summed.collect(), on="query", how="left", maintain_order="left")
        .select(measure.at_cutoff[0] for measure in measures)
    )


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
        if sum(waiting.height for waiting in self._tallies) >= _ROWS:
            tallied = self._take_tallies()
            self._score(tallied, self.pools.join(tallied, on="query_id", how="semi", maintain_order="left"))

    def finish(self) -> tuple[pl.DataFrame, Coverage]:
        """Return two things: a frame with `query_id` (sorted) and a column per measure; and the coverage of the run."""
        # Judged queries in no batch are scored last, on empty ledgers.
        scored = pl.concat([self.pools.select("query_id").clear(), *(v.select("query_id") for v in self._values)])
        rest = self.pools.join(scored, on="query_id", how="anti", maintain_order="left")
        self._score(self._take_tallies(), rest)
        return pl.concat(self._values).sort("query_id"), combine_coverages(self._coverages)

    def _take_tallies(self) -> pl.DataFrame:
        tallied = pl.concat(self._tallies)
        self._tallies = [tallied.clear()]
        return tallied

    def _score(self, tallied: pl.DataFrame, pools: pl.DataFrame) -> None:
        counts = ledger_and_pools(tallied, pools, rels=self._rels)
        self._values.append(final_values(self._measures, counts))
        self._coverages.append(measure_coverage(counts))
