"""Scores the good-gain measures of a run that comes in batches, keeping one row of values per query."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from goodgain.counting.coverage import Coverage, combine_coverages, measure_coverage
from goodgain.counting.ledger import ledger_and_pools
from goodgain.measures.declaration import GoodGainMeasure
from goodgain.measures.values import final_values

__all__ = ["BatchScores"]

#: Rows of the ledger that are scored together. Each call has a fixed cost, so that scoring every small
#: batch by itself is slow; more rows at once need more memory.
_ROWS = 2**18


class BatchScores:
    """The values of the good-gain measures, collected batch by batch."""

    def __init__(self, measures: Sequence[GoodGainMeasure], pools: pl.DataFrame, rels: Sequence[float]) -> None:
        self._measures = measures
        self._pools = pools
        self._rels = rels
        self._tallies: list[pl.DataFrame] = []
        self._values: list[pl.DataFrame] = []
        self._coverages: list[Coverage] = []

    def add(self, tallied: pl.DataFrame) -> None:
        """Add the tally of a batch, which shares no query with any other batch."""
        self._tallies.append(tallied)
        if sum(waiting.height for waiting in self._tallies) >= _ROWS:
            tallied = self._take_tallies()
            self._score(tallied, self._pools.join(tallied, on="query_id", how="semi", maintain_order="left"))

    def finish(self) -> tuple[pl.DataFrame, Coverage]:
        """Return query_id (of the qrels, sorted) with a column for each measure, and the coverage of run and qrels."""
        # The judged queries that no batch had are scored last, on empty ledgers.
        scored_before = pl.concat(
            [self._pools.select("query_id").clear(), *(v.select("query_id") for v in self._values)]
        )
        self._score(
            self._take_tallies(), self._pools.join(scored_before, on="query_id", how="anti", maintain_order="left")
        )
        return pl.concat(self._values).sort("query_id"), combine_coverages(self._coverages)

    def _take_tallies(self) -> pl.DataFrame:
        tallied = pl.concat(self._tallies)
        self._tallies = [tallied.clear()]
        return tallied

    def _score(self, tallied: pl.DataFrame, pools: pl.DataFrame) -> None:
        counts = ledger_and_pools(tallied, pools, rels=self._rels)
        self._values.append(final_values(self._measures, counts))
        self._coverages.append(measure_coverage(counts))
