"""Ledger and pools as arrays, from which the formulas of good-gain measures compute their values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Self

import numpy as np
import polars as pl

from goodgain.counting.ledger import Counts, divide_good_documents
from goodgain.measures.declaration import GoodGainMeasure
from goodgain.measures.parameters import read_parameters
from goodgain.measures.rows_of_queries import Array, RowsOfQueries
from goodgain.measures.terms import LedgerColumns, UpTo
from goodgain.ranking.ranking_table import Judgments, find_places
from goodgain.schema import LEDGER, POOLS

_COLUMNS = tuple(name for name in LEDGER.columns if name != "query_id")
_POOLS = tuple(name for name in POOLS.columns if name != "query_id")


class LedgerTable:
    """The iterations of judged queries, sorted by query and iteration, and the pools of these queries."""

    def __init__(
        self,
        columns: Mapping[str, Array],
        lengths: Array,
        pools: Mapping[str, Array],
        *,
        judgments: Judgments,
        queries: Array,
    ) -> None:
        """`columns` has a value per iteration; `lengths`, `pools` and `queries` have one per query.

        `lengths` are numbers of iterations, and `queries` the numbers of the queries in `judgments`.
        """
        self.columns = columns
        self.rows = RowsOfQueries(lengths)
        self._pools = pools
        self._judgments = judgments
        self._queries = queries
        self._cut: dict[int | None, Values] = {}
        self._ideals: dict[int, tuple[Array, Array]] = {}

    @classmethod
    def of(cls, counts: Counts) -> Self:
        """Return the table of all queries of the pools, in their order. Rows of queries without judgments are left out."""
        ledger, pools = counts.ledger, counts.pools
        columns = {name: ledger.get_column(name).to_numpy() for name in _COLUMNS}
        starts = np.flatnonzero(columns["iteration"] == 1)
        lengths = np.diff(starts, append=ledger.height)
        place = find_places(ledger.get_column("query_id")[starts], pools.get_column("query_id"))

        is_judged = place >= 0
        is_sorted = is_judged.all() and not (place[1:] < place[:-1]).any()
        if not is_sorted:
            order = np.flatnonzero(is_judged)[np.argsort(place[is_judged], kind="stable")]
            rows = _list_rows(starts[order], lengths[order])
            columns = {name: column[rows] for name, column in columns.items()}

        lengths_of_pools = np.zeros(pools.height, np.int64)
        lengths_of_pools[place[is_judged]] = lengths[is_judged]
        columns_of_pools = {name: pools.get_column(name).to_numpy() for name in _POOLS}
        queries = find_places(pools.get_column("query_id"), counts.judgments.query_ids)
        return cls(columns, lengths_of_pools, columns_of_pools, judgments=counts.judgments, queries=queries)

    def cut(self, cutoff: int | None) -> Values:
        """Return the terms at a cutoff: a value per query. The cutoff None means the last iteration of each query."""
        if cutoff not in self._cut:
            self._cut[cutoff] = self._cut_at(cutoff)
        return self._cut[cutoff]

    def _cut_at(self, cutoff: int | None) -> Values:
        """Return the terms of iterations 1..cutoff. If a query ends before the cutoff, the missing iterations count as empty."""
        lengths, columns = self.rows.lengths, self.columns
        if cutoff is not None and (lengths > cutoff).any():
            is_upto = columns["iteration"] <= cutoff
            columns = {name: column[is_upto] for name, column in columns.items()}
            lengths = np.minimum(lengths, cutoff)

        if cutoff is None:
            i = self._pools["N"]
            has_i = lengths > 0  # whether the query has the iteration i
        else:
            i = np.full(len(lengths), float(cutoff))
            has_i = lengths == cutoff

        def find_last() -> LedgerColumns:
            end = (np.cumsum(lengths) - 1)[has_i]
            last = {name: np.zeros(len(lengths)) for name in _COLUMNS}
            for name, column in last.items():
                column[has_i] = columns[name][end]
            return LedgerColumns(last | {"iteration": i})

        def find_ideal(per: int) -> Array:
            return self._find_ideal(per, np.arange(len(lengths)), i)

        each = LedgerColumns(columns)
        rows = RowsOfQueries(lengths)
        return Values(UpTo(rows, each, i, self._pools, find_last=find_last, find_ideal=find_ideal))

    def along(self) -> Values:
        """Return the terms at each iteration: a value per row."""
        each = LedgerColumns(self.columns)
        pools = {name: self.rows.spread(column) for name, column in self._pools.items()}

        def find_ideal(per: int) -> Array:
            return self._find_ideal(per, self.rows.query, each.k)

        upto = UpTo(self.rows, each, each.k, pools, find_last=lambda: each, find_ideal=find_ideal, is_along=True)
        return Values(upto)

    def _find_ideal(self, per: int, query: Array, i: Array) -> Array:
        """Return, for each query of the array `query`, the discounted gain of its ideal searches 1..i."""
        lengths, gain_so_far = self._search_ideally(per)
        searches = np.minimum(i, lengths[query]).astype(np.int64)
        starts = np.cumsum(lengths) - lengths
        is_searched = searches > 0

        ideal = np.zeros(len(query))
        end = starts[query] + searches - 1
        ideal[is_searched] = gain_so_far[end[is_searched]]
        return ideal

    def _search_ideally(self, per: int) -> tuple[Array, Array]:
        """Return the number of ideal searches of each query, and the discounted gain up to each of these searches."""
        if per not in self._ideals:
            good = self._pools["GoodPool"].astype(np.int64)
            lengths, gain = divide_good_documents(self._judgments, self._queries, good, per=per)
            starts = np.cumsum(lengths) - lengths
            search = np.arange(len(gain)) - np.repeat(starts, lengths) + 1

            ideal = LedgerColumns({"iteration": search, "G": gain})
            gain_so_far = RowsOfQueries(lengths).running_total(ideal.discounted_gain)
            self._ideals[per] = lengths, gain_so_far
        return self._ideals[per]


class Values:
    """Computes values of measures with the same terms."""

    def __init__(self, upto: UpTo) -> None:
        self._upto = upto

    def compute(self, measure: GoodGainMeasure) -> pl.Series:
        """Return the values of a measure; null for no value."""
        with np.errstate(all="ignore"):
            values = self.apply(measure.declaration.formula, read_parameters(measure))
        return pl.Series(str(measure), np.asarray(values, np.float64), nan_to_null=True)

    def apply(self, formula: Callable[[UpTo], Array], parameters: Mapping[str, Any]) -> Array:
        """Return the values of a formula; NaN for no value."""
        return formula(self._upto.with_parameters(parameters))


def _list_rows(starts: Array, lengths: Array) -> Array:
    """Return the numbers of the rows that begin at each of `starts`."""
    before = np.cumsum(lengths) - lengths
    return np.arange(lengths.sum()) + np.repeat(starts - before, lengths)
