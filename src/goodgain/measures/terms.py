"""Defines the terms from which formulas of measures are built: `UpTo` (iterations 1..i of a query), and `Ranks` (ranks 1..k).

Formulas compute with arrays. Terms of iterations come from the ledger, terms of ranks from the rows of a ranking.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from copy import copy
from functools import cached_property
from typing import Any

import numpy as np

from goodgain.measures.rows_of_queries import Array, RowsOfQueries, divide


class LedgerColumns:
    """Columns of a ledger: an array for each, with a value per row."""

    def __init__(self, columns: Mapping[str, Array]) -> None:
        self._columns = columns

    R = property(lambda self: self._columns["R"])
    UR = property(lambda self: self._columns["UR"])
    Dup = property(lambda self: self._columns["Dup"])
    GR = property(lambda self: self._columns["GR"])
    G = property(lambda self: self._columns["G"])
    Unjudged = property(lambda self: self._columns["Unjudged"])

    @property
    def k(self) -> Array:
        """The number of the iteration."""
        return self._columns["iteration"]

    @cached_property
    def w(self) -> Array:
        """The discount of the iteration, 1 / log2(k + 1)."""
        k = np.maximum(self.k, 1)
        return 1 / (np.log(k + 1.0) / math.log(2))

    @cached_property
    def discounted_gain(self) -> Array:
        return self.w * self.G

    @cached_property
    def gain_per_result(self) -> Array:
        return divide(self.G, self.R)


class UpTo:
    """Provides the terms for a measure's formula over iterations 1..i, with the given `parameters`.

    A formula gives one value per query, at one i. Along a ledger it gives a value for every row, where i is the row's iteration.
    """

    parameters: Mapping[str, Any]

    def __init__(
        self,
        rows: RowsOfQueries,
        each: LedgerColumns,
        i: Array,
        pools: Mapping[str, Array],
        *,
        find_last: Callable[[], LedgerColumns],
        find_ideal: Callable[[int], Array],
        is_along: bool = False,
    ) -> None:
        """`each` has the rows of iterations 1..i. `i`, the pools and what functions return have a value per result."""
        self.each = each
        #: The iteration i.
        self.i = i
        self._rows = rows
        self._pools = pools
        self._find_last = find_last
        self._find_ideal = find_ideal
        self._is_along = is_along
        self._totals: dict[int, tuple[Array, Array]] = {}

    def with_parameters(self, parameters: Mapping[str, Any]) -> UpTo:
        """Return the same terms with other parameters, as `copy` would, which takes longer."""
        changed = object.__new__(UpTo)
        changed.__dict__ = {**self.__dict__, "parameters": parameters}
        return changed

    N = property(lambda self: self._pools["N"])
    GoodPool = property(lambda self: self._pools["GoodPool"])
    GainPool = property(lambda self: self._pools["GainPool"])

    @property
    def last(self) -> LedgerColumns:
        """The columns of iteration i alone."""
        return self._find_last()

    def find_ideal(self, per: int) -> Array:
        """Return the discounted gain of iterations 1..i if each found the best `per` good documents that were left."""
        return self._find_ideal(per)

    def total(self, x: Array) -> Array:
        """Return the sum of x over iterations 1..i."""
        if id(x) not in self._totals:  # measures share sums; an array that is kept keeps its id
            total = self._rows.running_total(x) if self._is_along else self._rows.total(x)
            self._totals[id(x)] = x, total
        return self._totals[id(x)][1]

    def highest(self, x: Array) -> Array:
        """Return the largest x in iterations 1..i; NaN if none has a value."""
        return self._rows.running_highest(x) if self._is_along else self._rows.highest(x)


class _RecordedColumns(dict[str, Array]):
    """Columns that record which of them are read."""

    def __init__(self, names: set[str]) -> None:
        super().__init__()
        self.read = names

    def __missing__(self, name: str) -> Array:
        self.read.add(name)
        return np.ones(1)


class _RecordedUpTo(UpTo):
    i = property(lambda self: self.each.k, lambda _self, _value: None)


def find_columns_read(formula: Callable[[UpTo], Array], parameters: Mapping[str, Any]) -> set[str]:
    """Return the columns of ledger and pools that a formula over iterations reads."""
    columns = _RecordedColumns(set())
    each = LedgerColumns(columns)
    upto = _RecordedUpTo(
        RowsOfQueries(np.ones(1, int)),
        each,
        np.ones(1),
        columns,
        find_last=lambda: each,
        find_ideal=lambda _per: each.discounted_gain,
    )
    upto.parameters = parameters
    formula(upto)
    return columns.read


class Documents:
    """The judged documents of rankings, sorted by query and rank, with the counts of their queries.

    `lengths` has the number of documents of each query, and `positions` a rank column for each order of ties (see `POSITIONS`).
    The counts have a value per query: `num_ret` (documents of the ranking), `num_judged` (labels of the qrels), and
    `count_relevant(rel)`.
    """

    def __init__(
        self,
        lengths: Array,
        positions: Mapping[str, Array],
        label: Array,
        *,
        num_ret: Array,
        num_judged: Array,
        count_relevant: Callable[[float], Array],
    ) -> None:
        self.rows = RowsOfQueries(lengths)
        self.positions = positions
        self.label = label
        self.num_ret = num_ret
        self.num_judged = num_judged
        self.count_relevant = count_relevant


class Ranks:
    """Provides the terms for a measure's formula over ranks 1..cutoff of a query, or over all ranks if there is no cutoff.

    `k`, `label`, `judged`, `relevant` and `relevant_so_far` have a value for each document with a label. Use them inside `total`
    and `highest`. `total`, `highest`, `num_rel`, `num_judged`, `num_ret` and `num_seen` have a value for each query.
    """

    def __init__(
        self, documents: Documents, parameters: Mapping[str, Any], position: str, *, ideal: Ranks | None = None
    ) -> None:
        """For the ideal ranking, `ideal` is None, and the labels must already be the gains (parameter `gains`)."""
        self.parameters = parameters
        self.cutoff: int | None = parameters.get("cutoff")  # the last rank; None for all ranks
        #: The number of documents of the query with a label in the qrels, also a negative one.
        self.num_judged = documents.num_judged
        self._documents = documents
        self._position = position
        #: The same ranks of the ideal ranking: the labels of the query in descending order.
        self.ideal = self if ideal is None else ideal
        self._judged_only = bool(parameters.get("judged_only")) and ideal is not None
        self._gains: Mapping[float, float] = {}
        if ideal is not None:
            self._gains = parameters.get("gains") or {}

    @property
    def by_label(self) -> Ranks:
        """The ranking with all its documents sorted by descending label; a document without a label has the label 0."""
        return self._sort(self.label)

    @property
    def cut_by_label(self) -> Ranks:
        """The ranking with the documents at ranks 1..cutoff sorted by descending label; all later documents have the label 0."""
        return self._sort(self._cut(np.maximum(self.label, 0)))

    def _sort(self, label: Array) -> Ranks:
        """Return the ranking sorted by descending `label`, and equal labels by descending position."""
        rows = self._documents.rows
        position = self._documents.positions[self._position]
        descending = np.lexsort((-position, -label, rows.query))
        starts = np.cumsum(rows.lengths) - rows.lengths

        ranked = copy(self)
        ranked.label = label
        ranked.k = np.empty(len(label))
        ranked.k[descending] = np.arange(1, len(label) + 1) - rows.spread(starts)
        return ranked

    @cached_property
    def label(self) -> Array:
        """The label of a document, or the gain that the parameter `gains` sets for this label."""
        labels = self._documents.label
        if not self._gains:
            return labels
        replaced = labels.copy()
        for label, gain in self._gains.items():
            replaced[labels == float(label)] = float(gain)
        return replaced

    @cached_property
    def k(self) -> Array:
        """The rank of a document; with the parameter `judged_only`, its rank among the documents with a label of at least 0."""
        if not self._judged_only:
            return self._documents.positions[self._position]
        # Documents before the first judged one would have rank 0. They add 0, but 0 / log2(0 + 1) is NaN.
        return np.maximum(self._count_so_far(self.label >= 0), 1)

    @property
    def judged(self) -> Array:
        """1 for a document with a label, also a negative one. Documents without a label have no row."""
        return np.ones(len(self.label))

    @property
    def not_relevant(self) -> Array:
        """1 for a document with a label below `rel`; 0 for any other document, also for one without a label."""
        return np.where(self.label < self.parameters["rel"], 1.0, 0.0)

    @property
    def relevant(self) -> Array:
        """1 for a document with a label of at least `rel`, else 0."""
        return np.where(self.label >= self.parameters["rel"], 1.0, 0.0)

    @property
    def relevant_so_far(self) -> Array:
        """The number of relevant documents at ranks 1..k, as a value of the document at rank k."""
        return self._count_so_far(self.label >= self.parameters["rel"])

    def product_before(self, x: Array) -> Array:
        """Return, for each rank k, the product of x over the ranks before k. Each x must be above 0."""
        logarithm = np.log(x)
        order = self._order
        rows = self._documents.rows
        product = np.empty(len(x))
        product[order] = np.exp(rows.running_total(logarithm[order]) - logarithm[order])
        return product

    @property
    def num_rel(self) -> Array:
        """The number of relevant documents of the query in the qrels."""
        return self._documents.count_relevant(self.parameters["rel"])

    def spread(self, x: Array) -> Array:
        """Return a value for each document: that of its query in `x`."""
        return self._documents.rows.spread(x)

    @property
    def num_seen(self) -> Array:
        """The number of documents at ranks 1..cutoff."""
        if self.cutoff is None:
            return self.num_ret
        return np.minimum(self.num_ret, float(self.cutoff))

    @property
    def num_ret(self) -> Array:
        """The number of documents in the whole ranking. With `judged_only`, only documents with a label of at least 0 count."""
        if not self._judged_only:
            return self._documents.num_ret
        return self._documents.rows.total(self.label >= 0)

    def total(self, x: Array) -> Array:
        """Return the sum of x over ranks 1..cutoff; x must not be negative."""
        return self._documents.rows.total(self._cut(x))

    def highest(self, x: Array) -> Array:
        """Return the largest x at ranks 1..cutoff, or 0 if there are no documents; x must not be negative."""
        highest = self._documents.rows.highest(self._cut(x))
        return np.where(np.isnan(highest), 0.0, highest)

    def _cut(self, x: Array) -> Array:
        return x if self.cutoff is None else np.where(self.k <= self.cutoff, x, 0.0)

    def _count_so_far(self, condition: Array) -> Array:
        order = self._order
        rows = self._documents.rows
        counts = np.empty(len(condition))
        counts[order] = rows.running_total(condition[order])
        return counts

    @property
    def _order(self) -> Array:
        """The rows in the order of their ranks. Rows are sorted by `k`; other rank columns order ties in another way."""
        if self._position == "k":
            return slice(None)
        position = self._documents.positions[self._position]
        return np.lexsort((position, self._documents.rows.query))
