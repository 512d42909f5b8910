"""Defines the terms from which formulas of measures are built: `UpTo` (iterations 1..i of a query), and `Ranks` (ranks 1..k).

Formulas over iterations are expressions over the ledger, formulas over ranks expressions over the rows of a ranking.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import ir_measures
import polars as pl

from goodgain.measures.parameters import read_parameters


def divide_rows(a: pl.Expr, b: pl.Expr | float) -> pl.Expr:
    """Return a / b for each row, rounded as in Python; a must be finite.

    If b is the same number for all rows, Polars multiplies by 1 / b and rounds twice. The form a * 0 + b prevents that.
    """
    return a / (a * 0 + b)


@dataclass
class UpTo:
    """Provides the terms for a measure's formula over iterations 1..i of a query, with the given `parameters`.

    If `sums` is a dict, the formula gives one value per query, at one i. The dict collects the needed aggregates of rows 1..i.
    If `sums` is None, the formula gives a value for every row of a ledger. It then uses running sums, which are slower.
    """

    parameters: Mapping[str, Any]
    sums: dict[str, pl.Expr] | None = None

    def total(self, x: pl.Expr) -> pl.Expr:
        """Return the sum of x over iterations 1..i."""
        if self.sums is None:
            return x.cum_sum().over("query_id")
        return self._add_column(self.sums, x.sum()).fill_null(0)  # a query without rows

    def highest(self, x: pl.Expr) -> pl.Expr:
        """Return the largest x in iterations 1..i; null if all x are null."""
        if self.sums is None:
            return x.cum_max().forward_fill().over("query_id")
        return self._add_column(self.sums, x.max())

    def _add_column(self, sums: dict[str, pl.Expr], x: pl.Expr) -> pl.Expr:
        name = x.meta.serialize().hex()  # measures with the same sum share the column
        sums[name] = x
        return pl.col(name)


def divide(a: pl.Expr, b: pl.Expr) -> pl.Expr:
    """Return a / b where b is not 0, else 0."""
    return pl.when(b != 0).then(divide_rows(a, b)).otherwise(0.0)


@dataclass
class Sums:
    """Collects the columns that measures need, as expressions over the rows of a ranking."""

    columns: dict[str, pl.Expr] = field(default_factory=dict)  # values of a document, by which `windows` can order rows
    windows: dict[str, pl.Expr] = field(default_factory=dict)  # running counts within the query
    summed: dict[str, pl.Expr] = field(default_factory=dict)  # what to add up over the rows of a query
    highest: dict[str, pl.Expr] = field(default_factory=dict)  # what to take the largest value of
    rels: set[float] = field(default_factory=set)  # thresholds; the rows need the number of relevant documents for each

    def aggregate(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Aggregate the rows of rankings: return one row per query, with the columns that measures need."""
        for added in (self.columns, self.windows):
            rows = rows.with_columns(**added)
        # Polars has another way to sum rows that it knows to be sorted. Without the sort, the last digit of a sum depends
        # on the order of rows, blocks and threads.
        rows = rows.sort("query", "k").select("query", **self.summed, **self.highest)
        sums, maxima = [pl.col(name).sum() for name in self.summed], [pl.col(name).max() for name in self.highest]
        return rows.group_by("query").agg(*sums, *maxima)


class Ranks:
    """Provides the terms for a measure's formula over ranks 1..cutoff of a query, or over all ranks if there is no cutoff.

    `k`, `label`, `judged`, `relevant` and `relevant_so_far` have a value for each document. Use them inside `total` and
    `highest`. `total`, `highest`, `num_rel`, `num_judged`, `num_ret` and `num_seen` have a value for each query.
    """

    def __init__(
        self, measure: ir_measures.Measure, position: str, *, sums: Sums, ideal: Ranks | None = None, prefix: str = ""
    ) -> None:
        """Set up the ranks for a measure; `sums` collects the columns that the measure needs. Names of totals begin with `prefix`.

        For the ideal ranking, `ideal` is None, and the column of labels must already hold the gains (parameter `gains`).
        """
        self.parameters = read_parameters(measure)
        self.cutoff: int | None = self.parameters.get("cutoff")  # the last rank; None for all ranks
        #: 1 for a document with a label, also a negative one, else 0.
        self.judged = _mark_where(~pl.col("relevance").is_null())
        #: The number of documents of the query with a label in the qrels, also a negative one.
        self.num_judged = pl.col("NumJudged")
        self._name = f"{prefix}{measure}"
        self._position = position
        self._sums = sums
        #: The same ranks of the ideal ranking: the labels of the query in descending order.
        self.ideal = self if ideal is None else ideal
        self._place: str | None = None
        self._judged_only = bool(self.parameters.get("judged_only")) and ideal is not None
        self._gains: Mapping[float, float] = self.parameters.get("gains") or {} if ideal is not None else {}

    @property
    def by_label(self) -> Ranks:
        """The ranking with all its documents sorted by descending label; a document without a label has the label 0."""
        return self._sort(f"gain {sorted(self._gains.items())}", self.label)

    @property
    def cut_by_label(self) -> Ranks:
        """The ranking with the documents at ranks 1..cutoff sorted by descending label; all later documents have the label 0."""
        gain = f"gain {sorted(self._gains.items())} at {self._position} <= {self.cutoff}"
        found = self._sort(gain, self._cut(self.label.clip(0)))
        found.label = pl.col(gain)
        return found

    def _sort(self, gain: str, label: pl.Expr) -> Ranks:
        """Return the ranking sorted by descending `label`; `gain` is the name of a new column for the sorted labels."""
        self._sums.columns[gain] = label.fill_null(0.0)
        found = copy(self)
        found._place = f"{self._position} by {gain}"
        # Windows are ordered ascending: the last of n is the first in descending order.
        ascending = pl.col("query").cum_count().over("query", order_by=[gain, self._position])
        self._sums.windows[found._place] = pl.col("query").count().over("query") + 1 - ascending
        return found

    @cached_property
    def label(self) -> pl.Expr:
        """The label of a document, or the gain that the parameter `gains` sets for this label; null for an unlabelled document."""
        label = replaced = pl.col("relevance")
        for given, gain in self._gains.items():
            replaced = pl.when(label == float(given)).then(pl.lit(float(gain))).otherwise(replaced)
        return replaced

    @property
    def k(self) -> pl.Expr:
        """The rank of a document; with the parameter `judged_only`, its rank among the documents with a label of at least 0."""
        if self._place is not None:
            return pl.col(self._place)
        if not self._judged_only:
            return pl.col(self._position)
        name = f"{self._position} judged {sorted(self._gains.items())}"
        # Documents before the first judged one would have rank 0. They add 0, but 0 / log2(0 + 1) is NaN.
        self._sums.windows[name] = self._count_so_far(self.label >= 0).clip(1)
        return pl.col(name)

    @property
    def _num_rel(self) -> str:
        from goodgain.ranking.ranking_table import name_relevant  # which imports NumPy

        return name_relevant(self.parameters["rel"])

    @property
    def not_relevant(self) -> pl.Expr:
        """1 for a document with a label below `rel`; 0 for any other document, also for one without a label."""
        return _mark_where(self.label < self.parameters["rel"])

    @property
    def relevant(self) -> pl.Expr:
        """1 for a document with a label of at least `rel`, else 0."""
        return _mark_where(self.label >= self.parameters["rel"])

    @property
    def relevant_so_far(self) -> pl.Expr:
        """The number of relevant documents at ranks 1..k, as a value of the document at rank k."""
        name = f"{self._position} {self._num_rel}"
        self._sums.windows[name] = self._count_so_far(self.label >= self.parameters["rel"])
        return pl.col(name)

    def product_before(self, x: pl.Expr) -> pl.Expr:
        """Return, for each rank k, the product of x over the ranks before k. Each x must be above 0; a null x counts as 1."""
        name = f"{self._name} product {len(self._sums.windows)}"
        logarithm = x.log(math.e).fill_null(0.0)
        self._sums.windows[name] = logarithm.cum_sum().over("query", order_by=self._position) - logarithm
        return pl.col(name).exp()

    @property
    def num_rel(self) -> pl.Expr:
        """The number of relevant documents of the query in the qrels; it may also be used inside `total` and `highest`."""
        self._sums.rels.add(self.parameters["rel"])
        return pl.col(self._num_rel)

    @property
    def num_seen(self) -> pl.Expr:
        """The number of documents at ranks 1..cutoff."""
        return self.num_ret if self.cutoff is None else pl.min_horizontal(self.num_ret, pl.lit(self.cutoff))

    @property
    def num_ret(self) -> pl.Expr:
        """The number of documents in the whole ranking. With `judged_only`, only documents with a label of at least 0 count."""
        if not self._judged_only:
            return pl.col("NumRet")
        return self._add(self._sums.summed, _mark_where(self.label >= 0))

    def total(self, x: pl.Expr) -> pl.Expr:
        """Return the sum of x over ranks 1..cutoff; x must not be negative."""
        return self._add(self._sums.summed, self._cut(x))

    def highest(self, x: pl.Expr) -> pl.Expr:
        """Return the largest x at ranks 1..cutoff, or 0 if there are no documents; x must not be negative."""
        return self._add(self._sums.highest, self._cut(x))

    def _cut(self, x: pl.Expr) -> pl.Expr:
        return x if self.cutoff is None else pl.when(self.k <= self.cutoff).then(x).otherwise(pl.lit(0.0))

    def _count_so_far(self, condition: pl.Expr) -> pl.Expr:
        return _mark_where(condition).cum_sum().over("query", order_by=self._position)

    def _add(self, columns: dict[str, pl.Expr], x: pl.Expr) -> pl.Expr:
        name = f"{self._name} {len(self._sums.summed) + len(self._sums.highest)}"
        columns[name] = x
        return pl.col(name)


def _mark_where(condition: pl.Expr) -> pl.Expr:
    """Return 1 where a condition is true, else 0. A condition that is null, as for a document without a label, gives 0."""
    return pl.when(condition).then(pl.lit(1.0)).otherwise(pl.lit(0.0))
