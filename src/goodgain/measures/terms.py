"""Defines the terms from which formulas of measures are built: `UpTo` (iterations 1..i of a query), and `Ranks` (ranks 1..k).

Formulas over iterations are Polars expressions over the ledger. Formulas over ranks are narwhals expressions: a ranking stays on
the query engine of the run, such as Polars or DuckDB, where one group-by returns one row per query.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

import ir_measures
import polars as pl

from goodgain.measures.parameters import read_parameters

if TYPE_CHECKING:
    import narwhals as nw
else:

    class _Narwhals:
        """Delays the import of narwhals until a formula over ranks is built, so that `import goodgain` takes less time."""

        def __getattr__(self, name: str) -> Any:
            import narwhals

            return getattr(narwhals, name)

    nw = _Narwhals()

__all__ = ["Ranks", "UpTo", "divide", "divide_rows", "nw"]

_Expr = TypeVar("_Expr", pl.Expr, "nw.Expr")


def divide_rows(a: _Expr, b: _Expr | float) -> _Expr:
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


def divide(a: _Expr, b: _Expr) -> _Expr:
    """Return a / b where b is not 0, else 0."""
    of: Any = pl if isinstance(b, pl.Expr) else nw
    divided: _Expr = of.when(b != 0).then(divide_rows(a, b)).otherwise(of.lit(0.0))
    return divided


@dataclass
class Sums:
    """Collects the columns that measures need, as expressions over the rows of a ranking."""

    columns: dict[str, nw.Expr] = field(default_factory=dict)  # values of a document, by which `windows` can order rows
    windows: dict[str, nw.Expr] = field(default_factory=dict)  # running counts within the query
    summed: dict[str, nw.Expr] = field(default_factory=dict)  # what to add up over the rows of a query
    highest: dict[str, nw.Expr] = field(default_factory=dict)  # what to take the largest value of
    rels: set[float] = field(default_factory=set)  # thresholds; the rows need the number of relevant documents for each

    def aggregate(self, rows: Any) -> Any:
        """Aggregate the rows of a narwhals frame: return one row per query, with the columns that measures need."""
        for added in (self.columns, self.windows):
            if added:  # narwhals refuses an empty with_columns on a lazy frame
                rows = rows.with_columns(**added)
        if isinstance(rows, nw.DataFrame):
            # Polars has another way to sum rows that it knows to be sorted. Without the sort, the last digit of a sum depends
            # on the order of rows, blocks and threads.
            rows = rows.sort("query", "k")
        return (
            rows.select("query", **self.summed, **self.highest)
            .group_by("query")
            .agg(*(nw.col(name).sum() for name in self.summed), *(nw.col(name).max() for name in self.highest))
        )


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
        self.judged = _mark_where(~nw.col("relevance").is_null())
        #: The number of documents of the query with a label in the qrels, also a negative one.
        self.num_judged = nw.col("NumJudged")
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
        found.label = nw.col(gain)
        return found

    def _sort(self, gain: str, label: nw.Expr) -> Ranks:
        """Return the ranking sorted by descending `label`; `gain` is the name of a new column for the sorted labels."""
        self._sums.columns[gain] = label.fill_null(0.0)
        found = copy(self)
        found._place = f"{self._position} by {gain}"
        # Windows are ordered ascending: the last of n is the first in descending order.
        ascending = nw.col("query").cum_count().over("query", order_by=[gain, self._position])
        self._sums.windows[found._place] = nw.col("query").count().over("query") + 1 - ascending
        return found

    @cached_property
    def label(self) -> nw.Expr:
        """The label of a document, or the gain that the parameter `gains` sets for this label; null for an unlabelled document."""
        label = replaced = nw.col("relevance")
        for given, gain in self._gains.items():
            replaced = nw.when(label == float(given)).then(nw.lit(float(gain))).otherwise(replaced)
        return replaced

    @property
    def k(self) -> nw.Expr:
        """The rank of a document; with the parameter `judged_only`, its rank among the documents with a label of at least 0."""
        if self._place is not None:
            return nw.col(self._place)
        if not self._judged_only:
            return nw.col(self._position)
        name = f"{self._position} judged {sorted(self._gains.items())}"
        # Documents before the first judged one would have rank 0. They add 0, but 0 / log2(0 + 1) is NaN.
        self._sums.windows[name] = self._count_so_far(self.label >= 0).clip(1)
        return nw.col(name)

    @property
    def _num_rel(self) -> str:
        from goodgain.ranking.ranking_table import name_relevant  # which imports NumPy

        return name_relevant(self.parameters["rel"])

    @property
    def not_relevant(self) -> nw.Expr:
        """1 for a document with a label below `rel`; 0 for any other document, also for one without a label."""
        return _mark_where(self.label < self.parameters["rel"])

    @property
    def relevant(self) -> nw.Expr:
        """1 for a document with a label of at least `rel`, else 0."""
        return _mark_where(self.label >= self.parameters["rel"])

    @property
    def relevant_so_far(self) -> nw.Expr:
        """The number of relevant documents at ranks 1..k, as a value of the document at rank k."""
        name = f"{self._position} {self._num_rel}"
        self._sums.windows[name] = self._count_so_far(self.label >= self.parameters["rel"])
        return nw.col(name)

    def product_before(self, x: nw.Expr) -> nw.Expr:
        """Return, for each rank k, the product of x over the ranks before k. Each x must be above 0; a null x counts as 1."""
        name = f"{self._name} product {len(self._sums.windows)}"
        logarithm = x.log(math.e).fill_null(0.0)
        self._sums.windows[name] = logarithm.cum_sum().over("query", order_by=self._position) - logarithm
        return nw.col(name).exp()

    @property
    def num_rel(self) -> nw.Expr:
        """The number of relevant documents of the query in the qrels; it may also be used inside `total` and `highest`."""
        self._sums.rels.add(self.parameters["rel"])
        return nw.col(self._num_rel)

    @property
    def num_seen(self) -> nw.Expr:
        """The number of documents at ranks 1..cutoff."""
        return self.num_ret if self.cutoff is None else nw.min_horizontal(self.num_ret, nw.lit(self.cutoff))

    @property
    def num_ret(self) -> nw.Expr:
        """The number of documents in the whole ranking. With `judged_only`, only documents with a label of at least 0 count."""
        if not self._judged_only:
            return nw.col("NumRet")
        return self._add(self._sums.summed, _mark_where(self.label >= 0))

    def total(self, x: nw.Expr) -> nw.Expr:
        """Return the sum of x over ranks 1..cutoff; x must not be negative."""
        return self._add(self._sums.summed, self._cut(x))

    def highest(self, x: nw.Expr) -> nw.Expr:
        """Return the largest x at ranks 1..cutoff, or 0 if there are no documents; x must not be negative."""
        return self._add(self._sums.highest, self._cut(x))

    def _cut(self, x: nw.Expr) -> nw.Expr:
        return x if self.cutoff is None else nw.when(self.k <= self.cutoff).then(x).otherwise(nw.lit(0.0))

    def _count_so_far(self, condition: nw.Expr) -> nw.Expr:
        return _mark_where(condition).cum_sum().over("query", order_by=self._position)

    def _add(self, columns: dict[str, nw.Expr], x: nw.Expr) -> nw.Expr:
        name = f"{self._name} {len(self._sums.summed) + len(self._sums.highest)}"
        columns[name] = x
        return nw.col(name)


def _mark_where(condition: nw.Expr) -> nw.Expr:
    """Return 1 where a condition is true, else 0. A condition that is null, as for a document without a label, gives 0."""
    return nw.when(condition).then(nw.lit(1.0)).otherwise(nw.lit(0.0))
