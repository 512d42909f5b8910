"""The form of a declaration of a measure over one ranking, and the sums over ranks 1..cutoff that values are made of.

The rows of a ranking stay on their engine: narwhals expressions and one group-by reduce them there to one row per query.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from numbers import Real
from typing import Any, Literal

import ir_measures
import narwhals as nw
from ir_measures.measures.base import _NOT_PROVIDED

from goodgain.ranking.ranking_table import name_relevant

__all__ = ["RankedDeclaration", "Ranks", "Sums", "divide", "read_parameters"]

Parameters = Mapping[str, Any]

#: Limit of a cutoff: beyond any rank, and still a number that every engine can compare with.
_LAST = 2**53


@dataclass(frozen=True)
class RankedDeclaration:
    """All that is known of a measure over one ranking.

    Attributes:
        name: the name in ir_measures, whose measure objects are used.
        title: its full name.
        definition: its formula, as docs and help show it.
        value: the function from the ranks of a query to the expression of its value.
        better: `up`, `down`, or None where neither is.
        bounds: least and greatest value, as text.
        source: the host whose values these are.
        position: the function from its parameters to the column of positions that it uses, a name of `POSITIONS`.
        takes: tells whether parameters that are valid one by one can be computed together.
        remark: what a user should know before comparing values.
    """

    name: str
    title: str
    definition: str
    value: Callable[[Ranks], nw.Expr]
    better: Literal["up", "down"] | None
    bounds: tuple[str, str]
    source: str
    position: Callable[[Parameters], str] = lambda _parameters: "k"
    takes: Callable[[Parameters], bool] = lambda _parameters: True
    remark: str = ""

    @property
    def usage(self) -> str:
        """The name with what follows @: `P@k`, `RR[@k]` where it may be left out, `IPrec@recall`."""
        measure = ir_measures.measures.registry[self.name]
        at = measure.AT_PARAM
        if at not in measure.SUPPORTED_PARAMS or not self.takes(read_parameters(measure) | {"rel": 1, at: 1}):
            return self.name  # RBP with a cutoff is left to its provider
        shown = "@k" if at == "cutoff" else f"@{at}"
        return self.name + (shown if measure.SUPPORTED_PARAMS[at].required else f"[{shown}]")

    @property
    def parameters(self) -> list[str]:
        """The names of the parameters that can be given in brackets."""
        measure = ir_measures.measures.registry[self.name]
        return [name for name in measure.SUPPORTED_PARAMS if name != measure.AT_PARAM and name in _VALID]

    @property
    def arrow(self) -> str:
        """The arrow that reports show for the better direction; a dash where neither is better."""
        return {"up": "↑", "down": "↓", None: "–"}[self.better]

    def computes(self, measure: ir_measures.Measure) -> bool:
        """Return whether a measure of this name can be computed with its parameters."""
        known = measure.SUPPORTED_PARAMS
        parameters = read_parameters(measure)
        return (
            all(name in known and _is_valid(name, value, known[name].default) for name, value in parameters.items())
            and all(name in parameters for name, info in known.items() if info.required)
            and self.takes(parameters)
        )


def read_parameters(measure: ir_measures.Measure) -> dict[str, Any]:
    """Return the parameters of a measure that have a value, given or by default."""
    found = {name: info.default for name, info in measure.SUPPORTED_PARAMS.items()} | measure.params
    return {name: value for name, value in found.items() if value is not _NOT_PROVIDED}


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)


def _is_gain(label: Any, gain: Any) -> bool:
    """Return whether a label may have this gain; a gain below 0 has no meaning in DCG, which counts it as 0."""
    return _is_number(label) and _is_number(gain) and gain >= 0


#: Parameter -> the test of a value that can be computed; a parameter that is not listed must have its default.
_VALID: dict[str, Callable[[Any], bool]] = {
    "cutoff": lambda value: isinstance(value, int) and not isinstance(value, bool) and 1 <= value < _LAST,
    "rel": lambda value: _is_number(value) and value > 0,
    "judged_only": lambda value: isinstance(value, bool),
    "dcg": lambda value: value in ("log2", "exp-log2"),
    "gains": lambda value: isinstance(value, dict) and all(_is_gain(*pair) for pair in value.items()),
    "p": lambda value: _is_number(value) and 0 <= value < 1,
    "beta": lambda value: _is_number(value) and value >= 0,
    "recall": lambda value: _is_number(value) and 0 <= value <= 1,
}


def _is_valid(name: str, value: Any, default: Any) -> bool:
    return _VALID[name](value) if name in _VALID else value == default


def divide(a: nw.Expr, b: nw.Expr) -> nw.Expr:
    """Return a / b, and 0 where b is 0."""
    return nw.when(b != 0).then(a / b).otherwise(nw.lit(0.0))


@dataclass
class Sums:
    """The columns that measures need of the rows of a ranking, for one `with_columns` and one `group_by`.

    Attributes:
        windows: column -> the running count within the query that it holds.
        summed: column -> the expression that is added up over the rows of a query.
        highest: column -> the expression whose largest value is taken.
        rels: the thresholds for which rows need the number of relevant documents of their query.
    """

    windows: dict[str, nw.Expr] = field(default_factory=dict)
    summed: dict[str, nw.Expr] = field(default_factory=dict)
    highest: dict[str, nw.Expr] = field(default_factory=dict)
    rels: set[float] = field(default_factory=set)

    def aggregate(self, rows: Any) -> Any:
        """Return query and the columns that measures need, one row per query that has any row.

        Args:
            rows: a narwhals frame, eager or lazy: query, the columns of positions, relevance, and `NumRel(rel=...)` for
                each of `rels`.
        """
        if self.windows:  # narwhals refuses to add no column to a lazy frame
            rows = rows.with_columns(**self.windows)
        return (
            rows.select("query", **self.summed, **self.highest)
            .group_by("query")
            .agg(*(nw.col(name).sum() for name in self.summed), *(nw.col(name).max() for name in self.highest))
        )

    @property
    def names(self) -> list[str]:
        """The columns that `aggregate` returns beside query."""
        return [*self.summed, *self.highest]

    def with_number_of_rows(self) -> Sums:
        """Return the same sums with NumRet, the number of rows of a query."""
        return replace(self, summed=self.summed | {"NumRet": nw.lit(1.0)})

    def __bool__(self) -> bool:
        return bool(self.summed or self.highest)


class Ranks:
    """Ranks 1..cutoff of a query under the parameters of a measure: the terms that declarations are written in.

    `k`, `label` and `relevant` are values of a document, to be used inside `total` and `highest`. These two, `num_rel` and
    `num_ret` are values of the query. A measure without a cutoff has all ranks.
    """

    def __init__(
        self, measure: ir_measures.Measure, position: str, *, sums: Sums, ideal: Ranks | None = None, prefix: str = ""
    ) -> None:
        """Set up the ranks for a measure.

        Args:
            measure: the measure, for its parameters.
            position: the column of positions.
            sums: the object that collects the columns that the measure needs.
            ideal: the ranks of the ideal ranking, in whose labels `gains` are already replaced.
            prefix: put before the names of columns, so that they differ from those of other rankings.
        """
        self.parameters = read_parameters(measure)
        self._name = f"{prefix}{measure}"
        self._position = position
        self._sums = sums
        self._ideal = ideal
        self._judged_only = bool(self.parameters.get("judged_only")) and ideal is not None
        self._gains: Mapping[float, float] = self.parameters.get("gains") or {} if ideal is not None else {}

    @property
    def ideal(self) -> Ranks:
        """The same ranks of the ideal ranking: the labels of the query, descending."""
        return self if self._ideal is None else self._ideal

    @property
    def cutoff(self) -> int | None:
        """The last rank, None for all."""
        return self.parameters.get("cutoff")

    @cached_property
    def label(self) -> nw.Expr:
        """The label of a document, replaced as `gains` says; null where it has none."""
        label = replaced = nw.col("relevance")
        for given, gain in self._gains.items():
            replaced = nw.when(label == float(given)).then(nw.lit(float(gain))).otherwise(replaced)
        return replaced

    @cached_property
    def k(self) -> nw.Expr:
        """The rank of a document; with `judged_only` among those with a label of at least 0."""
        if not self._judged_only:
            return nw.col(self._position)
        name = f"{self._position} judged {sorted(self._gains.items())}"
        # Documents before the first judged one would have rank 0. They are worth 0, but 0 / log2(0 + 1) is NaN.
        self._sums.windows[name] = self._count_so_far(self.label >= 0).clip(1)
        return nw.col(name)

    @property
    def relevant(self) -> nw.Expr:
        """1 for a document with a label of at least `rel`, otherwise 0."""
        return _mark_where(self.label >= self.parameters["rel"])

    @property
    def relevant_so_far(self) -> nw.Expr:
        """The number of relevant documents at ranks 1..k."""
        name = f"{self._position} {name_relevant(self.parameters['rel'])}"
        self._sums.windows[name] = self._count_so_far(self.label >= self.parameters["rel"])
        return nw.col(name)

    @property
    def num_rel(self) -> nw.Expr:
        """The number of relevant documents of the query in the qrels; it can be used for documents too."""
        self._sums.rels.add(self.parameters["rel"])
        return nw.col(name_relevant(self.parameters["rel"]))

    @property
    def num_ret(self) -> nw.Expr:
        """The number of documents in the whole ranking."""
        if not self._judged_only:
            return nw.col("NumRet")
        return self._add(self._sums.summed, _mark_where(self.label >= 0))

    def total(self, x: nw.Expr) -> nw.Expr:
        """Return the sum of x over ranks 1..cutoff; x must not be negative."""
        return self._add(self._sums.summed, self._cut(x))

    def highest(self, x: nw.Expr) -> nw.Expr:
        """Return the largest x at ranks 1..cutoff, 0 where there is none; x must not be negative."""
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
    """Return 1 where the condition holds, else 0; a document without a label is neither relevant nor judged."""
    return nw.when(condition).then(nw.lit(1.0)).otherwise(nw.lit(0.0))
