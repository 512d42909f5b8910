"""Makes measures from declarations. A declaration also gives a measure's help text, and the measure's name in other tools."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import ir_measures
import polars as pl
from ir_measures.measures import ParamInfo

from goodgain.errors import MeasureError
from goodgain.measures.docstring_examples import write_example
from goodgain.measures.parameters import (
    COMPUTED_RULES,
    LEDGER_RULES,
    Rule,
    check_given,
    check_needed,
    find_choices,
    read_parameters,
)

DEFAULT_REL = 2
#: The tables that have rows for searches. A query without a search has none there, so its value is unknown.
_TABLES_OF_SEARCHES = ("results", "costs")
#: The condition for no value that all measures share for which a query without a search has none, after the words "null if".
NOT_SEARCHED = "a query was not searched"

#: Better direction -> the arrow beside the name of a measure in tables, reports and plots.
ARROWS = {"up": "↑", "down": "↓", None: "–"}


def add_arrow(measure: str, better: str | None) -> str:
    """Add ↑ to the name of a measure if higher values are better, and ↓ if lower values are better.

    >>> add_arrow("SRR@3", "down"), add_arrow("NumRet", None)
    ('SRR@3 ↓', 'NumRet')
    """
    return measure if better is None else f"{measure} {ARROWS[better]}"


@dataclass(frozen=True)
class Declaration:
    """All facts about a measure, such as its name, its formula and its source."""

    name: str  # the name that users write
    title: str  # the full name
    definition: str  # the formula, for docs and help
    #: The function from `UpTo` (iterations 1..i) or `Ranks` (ranks 1..k) to the values of the queries, an array. A formula over the
    #: ledger must work row by row: its own sum would mean something else at a cutoff than along the ledger.
    formula: Callable[[Any], Any]
    source: str  # a place in the guideline, a paper, or a tool with the same values
    #: The group in `goodgain measures`. `good gain` and `counts` are computed from the ledger, `session` from all results of
    #: all iterations, `defined` by a user's function, other groups from one ranking. ir_measures has the `classic` measures, and
    #: lacks `ranked` and `graded` measures. `graded` measures skip documents without a grade.
    family: Literal["good gain", "counts", "session", "defined", "classic", "ranked", "graded"]
    better: Literal["up", "down"] | None = "up"  # None without a better direction
    bounds: tuple[str, str] = ("0", "1")  # the smallest and the largest value; "" without a largest one
    is_0_or_1: bool = False  # whether each value is 0 or 1
    #: The parameters; those of a classic measure are added to the parameters of ir_measures.
    own: Mapping[str, ParamInfo] = field(default_factory=dict)
    #: Parameter -> the rule for its values in this measure. Other parameters follow the rules in `parameters.py`.
    rules: Mapping[str, Rule] = field(default_factory=dict)
    #: The function from a measure to its inner measure, which the parameter `measure` names; None without this parameter.
    inner: Callable[[SessionMeasure], ir_measures.Measure] | None = None
    example: tuple[str, float] | None = None  # a measure and its value in the example of the help
    labels: str = ""  # the needed argument `labels` of `read_qrels`: the meaning of column 2; "" if any is right
    remark: str = ""  # what a user should know before comparing values
    #: How labels for unjudged documents change the value. `sum`: the value is a sum over documents, and a higher label never
    #: adds less. `highest`: the best document determines the value. None: the value can fall, or depends on documents that
    #: were not retrieved.
    from_labels: Literal["sum", "highest"] | None = None
    at: str = "cutoff"  # the parameter after @
    #: The function from the parameters to the column of positions, a name of `POSITIONS`.
    position: Callable[[Mapping[str, Any]], str] = lambda _parameters: "k"
    #: Whether valid parameters can be combined.
    takes: Callable[[Mapping[str, Any]], bool] = lambda _parameters: True
    null_if: str = ""  # the condition for no value, after the words "null if"; the mean is over all other queries
    #: Whether the guideline defines the value of a query that was not searched. For the rule of all other measures, see
    #: `is_null_without_search` in `names.py`.
    is_of_guideline: bool = False
    #: The function from the parameters to the name of the table that the measure needs: `results`, `costs`, `lengths` or "".
    table: Callable[[Mapping[str, Any]], str] = lambda _parameters: ""
    #: Whether labels change the value. A measure with an inner measure (`AreaOver`) needs labels if the inner measure does.
    needs_labels: bool = True
    #: Whether a system without results would be the best. `compare` and annotations then give this system no value.
    needs_results: bool = False
    #: Whether the value depends on where iterations end, also without @. Measures of the ledger find this from the formula.
    by_iteration: bool = False
    by_repeats: bool = False  # whether the value depends on which results are repeats
    counts_repeats: bool = False  # whether only repeats of results or searches raise the value above 0
    total: str = ""  # the column of costs whose sum over a query is the value
    shows: str = ""  # the value after a search, in plain words for the title of a picture; "" if the title says it

    @property
    def note(self) -> str:
        """The remark on the measure, and the condition under which a query has no value."""
        null = f"null if {self.null_rule}; the mean is over the other queries" if self.null_rule else ""
        return "; ".join(filter(None, (self.remark, null)))

    @property
    def null_rule(self) -> str:
        """A text that completes "the value is null if ..."; an empty text if the measure has a value for every query."""
        return self.null_if or (NOT_SEARCHED if self.is_null_without_search else "")

    @property
    def is_null_without_search(self) -> bool:
        """Whether a query that was not searched has no value, because 0 would be a good value of this measure."""
        return self.better == "down" and not self.is_of_guideline

    @property
    def is_over_iterations(self) -> bool:
        """Whether the number after @ is a cutoff in iterations, not in ranks."""
        return self.family in ("good gain", "counts", "session", "defined")

    @property
    def kind(self) -> type[DeclaredMeasure]:
        """The class of the measure."""
        if self.family == "session":
            return SessionMeasure
        return GoodGainMeasure if self.is_over_iterations else RankedMeasure

    @property
    def range(self) -> str:
        """The smallest and the largest value, such as `0..1` or `>= 0`."""
        least, most = self.bounds
        if most:
            return f"{least}..{most}"
        return "any number" if least == "-inf" else f">= {least}"

    def find_rule(self, name: str, info: ParamInfo) -> Rule | None:
        """Return the rule that a value of the parameter `name` must follow; None if only the default value is allowed."""
        rules = LEDGER_RULES if self.is_over_iterations else COMPUTED_RULES
        return find_choices(info) or self.rules.get(name) or rules.get(name)

    @cached_property
    def in_ir_measures(self) -> ir_measures.Measure | None:
        return ir_measures.measures.registry[self.name] if self.family == "classic" else None

    @cached_property
    def measure(self) -> ir_measures.Measure:
        """The measure without parameters: that of ir_measures if it is classic and goodgain adds no parameters (`own` is empty)."""
        if self.in_ir_measures is not None and not self.own:
            return self.in_ir_measures
        return _make_measure(self)

    @property
    def host_name(self) -> str:
        """The name of the measure for tools that require lower case, such as avg_gain for AvgGain and n_dcgg for nDCGG."""
        return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", self.name).lower()

    @property
    def cutoff(self) -> Literal["optional", "required", "none"]:
        """Whether the name of the measure takes a cutoff after @: `required`, `optional`, or `none` for no cutoff."""
        info = self.measure.SUPPORTED_PARAMS.get("cutoff")
        if info is None:
            return "none"
        return "required" if info.required else "optional"

    @property
    def uses_rel(self) -> bool:
        return "rel" in self.measure.SUPPORTED_PARAMS

    @property
    def usage(self) -> str:
        """The name and cutoff of the measure, as help shows them: `P@k`, `IPrec@recall`, or `SRE[@i]` if the cutoff is optional."""
        supported = self.measure.SUPPORTED_PARAMS
        at: str = self.measure.AT_PARAM
        if at not in supported:
            return self.name
        example = read_parameters(self.measure) | {"rel": 1, at: 1}
        if not self.takes(example):
            return self.name  # a provider computes RBP with a cutoff

        place = "@k"
        if at != "cutoff":
            place = f"@{at}"
        elif self.is_over_iterations:
            place = "@i"
        if not supported[at].required:
            place = f"[{place}]"
        return self.name + place

    @property
    def parameters(self) -> list[str]:
        """The names of the parameters that users write in brackets."""
        supported = self.measure.SUPPORTED_PARAMS
        in_brackets = [name for name in supported if name != self.measure.AT_PARAM]
        return [name for name in in_brackets if self.find_rule(name, supported[name])]

    def check_scale(self, measure: ir_measures.Measure, labels: pl.Series) -> None:
        """Raise `MeasureError` if the measure has the parameter `max_rel`, and a label of the qrels is larger than `max_rel`."""
        if "max_rel" not in self.own:
            return
        most = float(measure.params.get("max_rel", self.own["max_rel"].default))
        above: Any = labels.filter(labels > most).max()
        if above is not None:
            raise MeasureError(
                f"{measure}: the qrels have the label {above:g}, above max_rel={most:g}. Name the largest label of the "
                f"scale: {self.measure(**{**measure.params, 'max_rel': above})}"
            )

    def computes(self, measure: ir_measures.Measure) -> bool:
        """Return whether goodgain can compute `measure` with the values of its parameters."""
        supported = measure.SUPPORTED_PARAMS
        parameters = read_parameters(measure)
        for name, value in parameters.items():
            if name not in supported or not self._allows(name, supported[name], value):
                return False
        required = [name for name, info in supported.items() if info.required]
        return all(name in parameters for name in required) and self.takes(parameters)

    def _allows(self, name: str, info: ParamInfo, value: Any) -> bool:
        rule = self.find_rule(name, info)
        if rule is None:
            return bool(value == info.default)
        return rule.allows(value)


#: Name -> declaration of every measure that goodgain computes. `declare` adds to it; names are looked up here.
DECLARATIONS: dict[str, Declaration] = {}


class ExactMean(ir_measures.MeanAgg):
    """Computes means for ir_measures from exact sums, so that the order of the queries has no effect.

    With `skip_nan`, NaN values are left out, because NaN stands for a query without a value.
    """

    def __init__(self, *, skip_nan: bool) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # no types
        self._values: list[float] = []
        self._skip_nan = skip_nan

    def add(self, value: float) -> None:
        if not (self._skip_nan and math.isnan(value)):
            self._values.append(value)

    def result(self) -> float:
        if not self._values or not all(map(math.isfinite, self._values)):
            return math.nan
        return math.fsum(self._values) / len(self._values)


class DeclaredMeasure(ir_measures.Measure):
    """A measure made from a `Declaration`, for use with ir_measures, such as `SRE(rel=3)@5` or `RankDCG@10`."""

    declaration: Declaration
    __name__: str

    def __init__(self, **params: Any) -> None:
        simple = {name: _simplify(value) for name, value in params.items()}
        super().__init__(**simple)  # type: ignore[no-untyped-call]  # no types
        declared = self.declaration
        if "cutoff" in self.params and "cutoff" not in self.SUPPORTED_PARAMS:
            at, whole = "@k", "the whole ranking"
            if declared.is_over_iterations:
                at, whole = "@i", "all iterations of a query"
            raise MeasureError(f"{declared.name} takes no {at}: it needs {whole}; write {declared.usage}")
        check_given(self, declared.find_rule)

    def validate_params(self) -> None:
        """Raise `MeasureError` if a required parameter is missing, or if the given parameters cannot be used together."""
        check_needed(self, self.declaration.find_rule)
        if not self.declaration.computes(self):
            parameters = ", ".join(f"{name}={value!r}" for name, value in self.params.items())
            raise MeasureError(
                f"{self.declaration.name} cannot be computed with {parameters} together; change or omit one of them"
            )
        self.validated = True

    @property
    def meaning(self) -> Declaration:
        """The declaration of the measure, or that of its inner measure if it has one."""
        return self.declaration

    @property
    def is_null_without_search(self) -> bool:
        """Whether a query that was not searched has no value (see `is_null_without_search` in `names.py`)."""
        return self.declaration.is_null_without_search

    @property
    def null_rule(self) -> str:
        """A text that completes "the value is null if ..." (see `Declaration.null_rule`)."""
        return self.declaration.null_rule

    def aggregator(self) -> ExactMean:
        return ExactMean(skip_nan=isinstance(self, RankedMeasure) or bool(self.null_rule))

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy and pickle the measure by its name and parameters, because pickle cannot find a class made from a declaration."""
        return _copy_measure, (self.declaration.name, self.params)


class IterationMeasure(DeclaredMeasure):
    """A measure whose cutoff, the number after @, is an iteration."""

    @property
    def cutoff(self) -> int | None:
        """The iteration after @; None for the last iteration of each query."""
        return self.params.get("cutoff")

    @property
    def depends_on_ends(self) -> bool:
        return self.cutoff is not None or self.declaration.by_iteration

    @property
    def rel(self) -> float:
        """The threshold of the measure: the smallest label that is good."""
        info = self.SUPPORTED_PARAMS.get("rel")
        default = DEFAULT_REL if info is None else info.default
        return float(self.params.get("rel", default))


class SessionMeasure(IterationMeasure):
    """A measure computed from all results of all iterations: `SubtopicRecall@3`."""

    @property
    def inner(self) -> ir_measures.Measure | None:
        """The measure that the parameter `measure` names: `P@2` in `PerIteration(measure='P@2')`; None without this parameter."""
        find_inner = self.declaration.inner
        return None if find_inner is None else find_inner(self)

    @property
    def meaning(self) -> Declaration:
        return self.declaration if self.inner is None else find_meaning(self.inner)

    @property
    def is_null_without_search(self) -> bool:
        if self.table in _TABLES_OF_SEARCHES:
            return True
        if self.inner is not None:
            return self.meaning.better == "down"
        return super().is_null_without_search

    @property
    def null_rule(self) -> str:
        rule = self.declaration.null_if or self.meaning.null_if
        if not rule and self.is_null_without_search:
            return NOT_SEARCHED
        return rule

    @property
    def rel(self) -> float:
        """The threshold (smallest good label) of the measure; for `AreaOver` and `ValueAt`, that of the inner measure."""
        if isinstance(self.inner, IterationMeasure):
            return self.inner.rel
        return super().rel

    @property
    def table(self) -> str:
        """The name of the table that the measure needs besides run and qrels, such as `costs`; an empty text for none."""
        return self.declaration.table(read_parameters(self))

    @property
    def spends(self) -> tuple[str, ...]:
        """The columns of costs that the measure needs, such as `tokens`."""
        if self.table != "costs" or self.declaration.total:
            return ()
        return (self.params["over"],)


class GoodGainMeasure(IterationMeasure):
    """A measure computed from the ledger (counts per iteration): `SRE`, `SRE@3`, `SRE(rel=3)@5`."""

    @property
    def depends_on_ends(self) -> bool:
        return self.cutoff is not None or self._uses_iterations

    @cached_property
    def _uses_iterations(self) -> bool:
        """Whether the formula reads numbers of iterations."""
        from goodgain.measures.terms import find_columns_read  # which imports NumPy

        return "iteration" in find_columns_read(self.declaration.formula, read_parameters(self))


class RankedMeasure(DeclaredMeasure):
    """A measure over one ranking. ir_measures lacks the measure (`RankDCG@10`), or a parameter of the measure (`ideal`).

    The `NAME` of `nDCG(ideal='ranking')` is `goodgain.nDCG`. If it were `nDCG`, a provider of ir_measures would ignore `ideal`.
    """

    def __call__(self, **params: Any) -> ir_measures.Measure:
        """Return the measure with `params` added: a measure of ir_measures if ir_measures supports all parameters."""
        measure: ir_measures.Measure = super().__call__(**params)  # type: ignore[no-untyped-call]  # no types
        classic = self.declaration.in_ir_measures
        if classic is None:
            return measure

        own_params = self.declaration.own  # those that ir_measures lacks
        for name, info in own_params.items():
            if measure.params.get(name, info.default) != info.default:
                return measure

        shared_params = {name: value for name, value in measure.params.items() if name not in own_params}
        make_classic = type(classic)  # `classic` is an object, such as ir_measures.nDCG
        return make_classic(**shared_params)


def _simplify(value: Any) -> Any:
    """Convert a NumPy number to a Python number, and 3.0 to 3, so that equal measures have equal names."""
    if hasattr(value, "item") and getattr(value, "ndim", None) == 0:
        value = value.item()
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _copy_measure(name: str, params: dict[str, Any]) -> DeclaredMeasure:
    measure: Any = DECLARATIONS[name].measure
    copied: DeclaredMeasure = type(measure)(**params)
    return copied


def find_declaration(measure: ir_measures.Measure) -> Declaration | None:
    """Return the declaration of `measure`, or None for a `GoodGainMeasure` and for a measure that goodgain does not declare."""
    if isinstance(measure, (RankedMeasure, SessionMeasure)):
        return measure.declaration
    declared = DECLARATIONS.get(str(measure.NAME))
    if declared is None or declared.in_ir_measures is None:
        return None
    return declared if isinstance(measure, type(declared.in_ir_measures)) else None


#: Replaces the missing declaration of a measure.
_UNKNOWN = Declaration("", "", "", lambda _: None, source="", family="classic")


def find_meaning(measure: ir_measures.Measure) -> Declaration:
    """Return the declaration of a measure. For `PerIteration(measure='P@2')`, return that of the inner measure `P@2`."""
    if isinstance(measure, DeclaredMeasure):
        return measure.meaning
    return find_declaration(measure) or _UNKNOWN


def _make_measure(declared: Declaration) -> DeclaredMeasure:
    """Make a class of the kind of the declaration, and return its object without parameters.

    A classic measure also has the parameters of ir_measures, and its name begins with `goodgain.` (see `RankedMeasure`).
    """
    classic = declared.in_ir_measures
    name = declared.name
    at = declared.at
    supported = dict(declared.own)
    if classic is not None:
        name = f"goodgain.{declared.name}"
        at = classic.AT_PARAM
        supported = {**classic.SUPPORTED_PARAMS, **declared.own}

    attributes = {
        "__doc__": _write_docstring(declared, supported),
        "__module__": __name__,
        "__name__": declared.name,
        "NAME": name,
        "AT_PARAM": at,
        "PRETTY_NAME": declared.title,
        "SHORT_DESC": declared.definition,
        "SUPPORTED_PARAMS": supported,
        "declaration": declared,
    }
    measure_class = type(f"_{declared.name}", (declared.kind,), attributes)
    measure: DeclaredMeasure = measure_class()
    return measure


def _write_docstring(declared: Declaration, supported: Mapping[str, ParamInfo]) -> str:
    paragraphs = [f"{declared.title}.", f"{declared.definition}."]
    if declared.at in supported:
        paragraphs.append(_explain_at(declared, supported[declared.at]))
    if "rel" in supported:
        paragraphs.append(_explain_rel(declared, supported["rel"]))
    for name, info in declared.own.items():
        if name not in (declared.at, "rel"):
            paragraphs.append(f"{name}: {info.desc}.")

    paragraphs.append(_explain_range(declared))
    if declared.note:
        paragraphs.append(f"Note: {declared.note}.")
    if declared.example is not None:
        example = write_example(
            *declared.example,
            is_over_iterations=declared.is_over_iterations,
            labels=declared.labels,
            table=declared.table({"over": "searches"}),
        )
        paragraphs.append(example)
    paragraphs.append(f"Source: {declared.source}.")
    return "\n\n".join(paragraphs)


def _explain_at(declared: Declaration, info: ParamInfo) -> str:
    """Return what the number after @ means. `info` describes this parameter."""
    if declared.at != "cutoff":
        return f"@ is the {info.desc}."
    if not declared.is_over_iterations:
        return "@k is a cutoff in ranks."
    if info.required:
        return "@i is the iteration."
    return "@i is a cutoff in iterations; without it, the value is at the last iteration of each query."


def _explain_rel(declared: Declaration, info: ParamInfo) -> str:
    if not declared.is_over_iterations:
        return "A document is relevant if its label is at least rel."
    default = info.default if isinstance(info.default, int) else "that of the measure"
    return f"A document is good if its label is at least rel ({default} unless given)."


def _explain_range(declared: Declaration) -> str:
    """Return which values the measure has, and the better direction."""
    least, most = declared.bounds
    better = {"up": "; higher is better", "down": "; lower is better", None: ""}[declared.better]
    if most:
        return f"Values go from {least} to {most}{better}."
    if least == "-inf":
        return f"Values are any number{better}."
    return f"Values are at least {least}{better}."


def declare(common: Mapping[str, Any], *parts: Any, **details: Any) -> Any:
    """Declare a measure, add its declaration to `DECLARATIONS`, and return the measure. `details` override the `common` details."""
    declaration = Declaration(*parts, **{**common, **details})
    DECLARATIONS[declaration.name] = declaration
    return declaration.measure
