"""The declaration of a measure, and the ir_measures class, host names, help and report labels that follow from it."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import ir_measures
from ir_measures.measures import ParamInfo

from goodgain.errors import MeasureError
from goodgain.measures.parameters import COMPUTED_RULES, LEDGER_RULES, Rule, find_computed_rule, read_parameters
from goodgain.measures.terms import LedgerValue, build_value

DEFAULT_REL = 2

#: Better direction -> the sign beside the name of a measure in tables, reports and plots.
ARROWS = {"up": "↑", "down": "↓", None: "–"}


def add_arrow(measure: str, better: str | None) -> str:
    """Return the name of a measure with the arrow of its better direction; as it is where neither is better.

    >>> add_arrow("SRR@3", "down"), add_arrow("NumRet", None)
    ('SRR@3 ↓', 'NumRet')
    """
    return measure if better is None else f"{measure} {ARROWS[better]}"


#: Name -> the measure without parameters, for every measure that has a class of its own: what a copy is made from.
_MADE: dict[str, DeclaredMeasure] = {}


@dataclass(frozen=True)
class Declaration:
    """All that is known of a measure.

    Attributes:
        name: the name that users write.
        title: its full name.
        definition: its formula, as docs and help show it.
        formula: the function from `UpTo` (iterations 1..i) or `Ranks` (ranks 1..k) to the expression of its value. One over
            the ledger must work row by row: a sum or a window of its own would have another meaning at a cutoff than
            along the ledger.
        better: `up`, `down`, or None where neither is.
        bounds: least and greatest value, as text.
        source: what defines the measure: a place in the guideline, a paper, or the tool whose values these are.
        family: the list of `goodgain measures` that has it. `good gain` and `counts` are computed from the ledger, `session`
            from all results of all iterations, the others from one ranking: `classic` ones ir_measures has too, `ranked`
            ones it lacks, `graded` ones know ungraded documents.
        own: its parameters; of a classic measure those that ir_measures lacks.
        example: a measure, and its value in the example of the help; only for measures with a class of their own.
        remark: what a user should know before comparing values.
        from_labels: how documents without a label could change the value. `sum`: it is a sum over documents, and a higher
            label never adds less. `highest`: it is the value of the best document. None: it could also fall, or depends on
            documents that were not retrieved.
        at: the parameter that follows @.
        position: the function from the parameters to the column of positions that it uses, a name of `POSITIONS`.
        takes: tells whether parameters that are valid one by one can be computed together.
    """

    name: str
    title: str
    definition: str
    formula: Callable[[Any], Any]
    better: Literal["up", "down"] | None
    bounds: tuple[str, str]
    source: str
    family: Literal["good gain", "counts", "session", "classic", "ranked", "graded"]
    own: Mapping[str, ParamInfo] = field(default_factory=dict)
    example: tuple[str, float] | None = None
    remark: str = ""
    from_labels: Literal["sum", "highest"] | None = None
    at: str = "cutoff"
    position: Callable[[Mapping[str, Any]], str] = lambda _parameters: "k"
    takes: Callable[[Mapping[str, Any]], bool] = lambda _parameters: True

    @property
    def is_over_ledger(self) -> bool:
        """Whether it is computed from the ledger, else from one ranking."""
        return self.family in ("good gain", "counts")

    @property
    def is_over_iterations(self) -> bool:
        """Whether @ is a cutoff in iterations, else one in ranks."""
        return self.is_over_ledger or self.family == "session"

    @property
    def rules(self) -> Mapping[str, Rule]:
        """The values that its parameters may have."""
        return LEDGER_RULES if self.is_over_iterations else COMPUTED_RULES

    @cached_property
    def in_ir_measures(self) -> ir_measures.Measure | None:
        """The measure of ir_measures; None for one that it lacks."""
        return ir_measures.measures.registry[self.name] if self.family == "classic" else None

    @cached_property
    def measure(self) -> ir_measures.Measure:
        """The measure without any parameter: that of ir_measures, unless some parameter is `own`."""
        if self.in_ir_measures is not None and not self.own:
            return self.in_ir_measures
        return _make_measure(self)

    @property
    def host_name(self) -> str:
        """The name in hosts that write measures in lower case: AvgGain -> avg_gain, nDCGG -> n_dcgg."""
        return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", self.name).lower()

    @property
    def cutoff(self) -> Literal["optional", "required", "none"]:
        """Whether `@` with a cutoff may, must or cannot be given."""
        info = self.measure.SUPPORTED_PARAMS.get("cutoff")
        return "none" if info is None else "required" if info.required else "optional"

    @property
    def uses_rel(self) -> bool:
        """Whether it has a threshold `rel`."""
        return "rel" in self.measure.SUPPORTED_PARAMS

    @property
    def usage(self) -> str:
        """The name with what follows @: `SRE[@i]` where it may be left out, `P@k`, `IPrec@recall`."""
        known = self.measure.SUPPORTED_PARAMS
        at: str = self.measure.AT_PARAM
        if at not in known or not self.takes(read_parameters(self.measure) | {"rel": 1, at: 1}):
            return self.name  # RBP with a cutoff is left to its provider
        shown = f"@{at}" if at != "cutoff" else "@i" if self.is_over_iterations else "@k"
        return self.name + (shown if known[at].required else f"[{shown}]")

    @property
    def parameters(self) -> list[str]:
        """The names of the parameters that can be given in brackets."""
        known = self.measure.SUPPORTED_PARAMS.items()
        return [n for n, info in known if n != self.measure.AT_PARAM and find_computed_rule(self.rules, n, info)]

    @property
    def arrow(self) -> str:
        """The arrow that reports show for the better direction; a dash where neither is better."""
        return ARROWS[self.better]

    def computes(self, measure: ir_measures.Measure) -> bool:
        """Return whether a measure of this name can be computed here with its parameters."""
        known, given = measure.SUPPORTED_PARAMS, read_parameters(measure)
        if any(name not in known or not self._allows(name, value, known[name]) for name, value in given.items()):
            return False
        return all(name in given for name, info in known.items() if info.required) and self.takes(given)

    def _allows(self, name: str, value: Any, info: ParamInfo) -> bool:
        rule = find_computed_rule(self.rules, name, info)
        return value == info.default if rule is None else rule.allows(value)


class ExactMean(ir_measures.MeanAgg):
    """A mean as ir_measures takes it from a measure, whose sum is exact: the same for every order of the queries."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # theirs
        self._values: list[float] = []

    def add(self, value: float) -> None:
        """Add the value of a query."""
        self._values.append(value)

    def result(self) -> float:
        """Return the mean; NaN without a value, and where a value is not finite."""
        is_finite = self._values and all(map(math.isfinite, self._values))
        return math.fsum(self._values) / len(self._values) if is_finite else math.nan


class DeclaredMeasure(ir_measures.Measure):
    """A measure with a declaration, as ir_measures knows measures: `SRE(rel=3)@5`, `RankDCG@10`."""

    declaration: Declaration

    def __init__(self, **params: Any) -> None:
        super().__init__(**{name: _simplify(value) for name, value in params.items()})  # type: ignore[no-untyped-call]  # theirs
        for name, value in self.params.items():
            self._check(name, value)

    def _check(self, name: str, value: Any) -> None:
        declared = self.declaration
        if name not in self.SUPPORTED_PARAMS:
            if name == "cutoff":
                of_iterations = declared.is_over_iterations
                at, whole = ("@i", "all iterations of a query") if of_iterations else ("@k", "the whole ranking")
                raise MeasureError(f"{declared.name} takes no {at}: it looks at {whole}; write {declared.usage}")
            takes = ", ".join(f"{known}=" for known in self.SUPPORTED_PARAMS)
            raise MeasureError(f"{declared.name} has no parameter {name!r}; it takes {takes or 'none'}")
        rule = find_computed_rule(declared.rules, name, self.SUPPORTED_PARAMS[name])
        if rule is not None and not rule.allows(value):
            raise MeasureError(f"{declared.name}: {name}={value!r} cannot be taken; {name} is {rule.words}")

    def validate_params(self) -> None:
        """Raise `MeasureError` where a required parameter is missing, or some cannot be given together."""
        declared = self.declaration
        for name, info in self.SUPPORTED_PARAMS.items():
            if info.required and name not in self.params:
                rule = find_computed_rule(declared.rules, name, info)
                place = ", written after @" if name == self.AT_PARAM else ""
                remark = f"; write {declared.name}@3" if name == "cutoff" else ""
                raise MeasureError(
                    f"{declared.name} needs the parameter {name}{place}: {rule.words if rule else info.desc}{remark}"
                )
        if not declared.computes(self):
            given = ", ".join(f"{name}={value!r}" for name, value in self.params.items())
            raise MeasureError(f"{declared.name} cannot be computed with {given} together; leave one out")
        self.validated = True

    def aggregator(self) -> ExactMean:
        """Return what averages the values of queries, for ir_measures."""
        return ExactMean()

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy and pickle by name: pickle cannot find the class, which is made from the declaration."""
        return _copy_measure, (self.declaration.name, self.params)


class IterationMeasure(DeclaredMeasure):
    """A measure whose cutoff is an iteration."""

    @property
    def cutoff(self) -> int | None:
        """The iteration after @, or None for each query's own last one."""
        return self.params.get("cutoff")

    @property
    def rel(self) -> float:
        """The threshold: a label of at least this is good."""
        declared = self.SUPPORTED_PARAMS.get("rel")
        return float(self.params.get("rel", DEFAULT_REL if declared is None else declared.default))


class SessionMeasure(IterationMeasure):
    """A measure that is computed from all results of all iterations: `SubtopicRecall@3`."""


class GoodGainMeasure(IterationMeasure):
    """A measure that is computed from the ledger: `SRE`, `SRE@3`, `SRE(rel=3)@5`."""

    @cached_property
    def value(self) -> LedgerValue:
        """The value at iteration i, for the parameters of this measure."""
        return build_value(self.declaration.formula, read_parameters(self))


class RankedMeasure(DeclaredMeasure):
    """A measure over one ranking, or a form of one, that ir_measures lacks: `RankDCG@10`, `nDCG(ideal='ranking')@10`.

    Providers of ir_measures know measures by `NAME`. Here no provider knows it: one that saw `nDCG` would ignore `ideal`.
    """

    def __call__(self, **params: Any) -> ir_measures.Measure:
        """Return the measure with these parameters too; a classic one that has none of ours is ir_measures' own."""
        made: ir_measures.Measure = super().__call__(**params)  # type: ignore[no-untyped-call]  # theirs
        theirs, own = self.declaration.in_ir_measures, self.declaration.own
        if theirs is None or any(made.params.get(name, info.default) != info.default for name, info in own.items()):
            return made
        return type(theirs)(**{name: value for name, value in made.params.items() if name not in own})

    def aggregator(self) -> ExactMean:
        """Return what averages values in ir_measures: over the queries that have one."""
        return _MeanOfValues()


class _MeanOfValues(ExactMean):
    """The mean without NaN, which stands for a query without a value; NaN where no query has one."""

    def add(self, value: float) -> None:
        if not math.isnan(value):
            super().add(value)


def _simplify(value: Any) -> Any:
    """Return a number as Python's own type and 3.0 as 3, so that equal measures have equal names."""
    if hasattr(value, "item") and getattr(value, "ndim", None) == 0:
        value = value.item()
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _copy_measure(name: str, params: dict[str, Any]) -> DeclaredMeasure:
    copied: DeclaredMeasure = type(_MADE[name])(**params)
    return copied


_KINDS: dict[str, type[DeclaredMeasure]] = {
    "good gain": GoodGainMeasure,
    "counts": GoodGainMeasure,
    "session": SessionMeasure,
}


def _make_measure(declared: Declaration) -> DeclaredMeasure:
    theirs = declared.in_ir_measures
    supported = {**({} if theirs is None else theirs.SUPPORTED_PARAMS), **declared.own}
    kind = type(
        f"_{declared.name}",
        (_KINDS.get(declared.family, RankedMeasure),),
        {
            "__doc__": _write_docstring(declared, supported),
            "__module__": __name__,
            "__name__": declared.name,
            "NAME": declared.name if theirs is None else f"goodgain.{declared.name}",
            "AT_PARAM": declared.at if theirs is None else theirs.AT_PARAM,
            "PRETTY_NAME": declared.title,
            "SHORT_DESC": declared.definition,
            "SUPPORTED_PARAMS": supported,
            "declaration": declared,
        },
    )
    made: DeclaredMeasure = kind()
    _MADE[declared.name] = made
    return made


#: The run of the examples, written in Python, and its judgments: `a`, `c` and `e` are good.
_RUNS = {
    True: 'polars.DataFrame({"query_id": "q", "iteration": [1, 1, 1, 2, 2, 2], "doc_id": list("abfacd")})',
    False: '{"q": {"a": 5.0, "b": 4.0, "c": 3.0, "d": 2.0, "f": 1.0}}',
}
_QRELS = '{"q": {"a": 3, "b": 0, "c": 2, "e": 2, "f": 0}}'


def _write_docstring(declared: Declaration, supported: Mapping[str, ParamInfo]) -> str:
    """Return what `help` shows of a measure: title, formula, what @ and good mean, bounds, an example, the source."""
    terms = []
    at = supported.get(declared.at)
    if at is not None and declared.at != "cutoff":
        terms.append(f"@ is the {at.desc}.")
    elif at is not None and not declared.is_over_iterations:
        terms.append("@k is a cutoff in ranks.")
    elif at is not None and at.required:
        terms.append("@i names the iteration.")
    elif at is not None:
        terms.append("@i is a cutoff in iterations; without it the value is that of the last iteration of each query.")
    if "rel" in supported and declared.is_over_iterations:
        terms.append(f"A document is good if its label is at least rel ({supported['rel'].default} unless given).")
    elif "rel" in supported:
        terms.append("A document is relevant if its label is at least rel.")
    terms += [f"{name}: {info.desc}." for name, info in declared.own.items() if name not in (declared.at, "rel")]
    least, most = declared.bounds
    better = {"up": "; higher is better", "down": "; lower is better", None: ""}[declared.better]
    terms.append(f"Values go from {least} to {most}{better}." if most else f"Values are at least {least}{better}.")
    remark = [f"Note: {declared.remark}."] if declared.remark else []
    example = []
    if declared.example is not None:
        name, value = declared.example
        lines = [
            f">>> import goodgain{', polars' if declared.is_over_iterations else ''}",
            f">>> run = {_RUNS[declared.is_over_iterations]}",
            f'>>> goodgain.evaluate({_QRELS}, run, "{name}").mean()',
            repr({name: value}),
        ]
        example = ["\n".join(lines)]
    begin = [f"{declared.title}.", f"{declared.definition}."]
    return "\n\n".join([*begin, *terms, *remark, *example, f"Source: {declared.source}."])
