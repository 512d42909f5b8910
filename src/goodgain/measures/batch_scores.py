"""Our measures for a run that comes in batches: what is kept of a batch is its queries' values."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from goodgain.counting.coverage import Extent, extent_of, together
from goodgain.counting.ledger import finished
from goodgain.measures.declaration import GoodGainMeasure
from goodgain.measures.values import final_values

__all__ = ["BatchScores"]

_ROWS = 2**18  # of a ledger that are scored at once: fewer cost more, more need more memory


class BatchScores:
    """Values of our measures, batch by batch."""

    def __init__(self, measures: Sequence[GoodGainMeasure], pools: pl.DataFrame, rels: Sequence[float]) -> None:
        self._measures = measures
        self._pools = pools
        self._rels = rels
        self._tallies: list[pl.DataFrame] = []
        self._values: list[pl.DataFrame] = []
        self._extents: list[Extent] = []

    def add(self, tallied: pl.DataFrame) -> None:
        """Take the tally of a batch, which shares no query with any other."""
        self._tallies.append(tallied)
        if sum(waiting.height for waiting in self._tallies) >= _ROWS:
            tallied = self._take_tallies()
            self._score(tallied, self._pools.join(tallied, on="query_id", how="semi", maintain_order="left"))

    def finish(self) -> tuple[pl.DataFrame, Extent]:
        """Return query_id (of the qrels, sorted) and a column for each measure; and how far run and qrels reach."""
        scored_before = pl.concat(
            [self._pools.select("query_id").clear(), *(v.select("query_id") for v in self._values)]
        )
        self._score(
            self._take_tallies(), self._pools.join(scored_before, on="query_id", how="anti", maintain_order="left")
        )
        return pl.concat(self._values).sort("query_id"), together(self._extents)

    def _take_tallies(self) -> pl.DataFrame:
        tallied = pl.concat(self._tallies)
        self._tallies = [tallied.clear()]
        return tallied

    def _score(self, tallied: pl.DataFrame, pools: pl.DataFrame) -> None:
        counts = finished(tallied, pools, rels=self._rels)
        self._values.append(final_values(self._measures, counts))
        self._extents.append(extent_of(counts))
