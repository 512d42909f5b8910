"""The form of a declaration of a measure over one ranking, and the ir_measures class that is made from it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from numbers import Real
from typing import Any, Literal

import ir_measures
import narwhals as nw
from ir_measures.measures import ParamInfo

from goodgain.errors import MeasureError
from goodgain.measures.declaration import ExactMean, simplify_number
from goodgain.measures.parameters import Rule
from goodgain.measures.ranks import Ranks, read_parameters

__all__ = ["COMPUTED_RULES", "RankedDeclaration", "RankedMeasure"]

Parameters = Mapping[str, Any]

#: Limit of a cutoff: beyond any rank, and still a number that every engine can compare with.
_LAST = 2**53
#: The largest beta: the square of one that is much larger is beyond all floats.
_MOST_BETA = 1e150


@dataclass(frozen=True)
class RankedDeclaration:
    """All that is known of a measure over one ranking.

    Attributes:
        name: the name that users write.
        title: its full name.
        definition: its formula, as docs and help show it.
        value: the function from the ranks of a query to the expression of its value.
        better: `up`, `down`, or None where neither is.
        bounds: least and greatest value, as text.
        source: the host whose values these are, or what defines the measure.
        position: the function from its parameters to the column of positions that it uses, a name of `POSITIONS`.
        takes: tells whether parameters that are valid one by one can be computed together.
        remark: what a user should know before comparing values.
        family: `classic` for a measure of ir_measures; `ranked` for one that ir_measures lacks, `graded` for one of these that
            knows documents without a grade.
        own: the parameters that ir_measures lacks: some of a classic measure, all of any other.
        at: the parameter that follows @, of a measure that ir_measures lacks.
        from_labels: how documents without a label could change the value: `sum`, if the value is a sum over documents, each
            of which adds more the higher its label; `highest`, if it is that of the best document; None if the value could
            also fall, or depends on documents that were not retrieved.
        find: the function from a name and parameters to the measure, for copies of one that has a class of its own.
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
    family: Literal["classic", "ranked", "graded"] = "classic"
    own: Mapping[str, ParamInfo] = field(default_factory=dict)
    at: str = "cutoff"
    from_labels: Literal["sum", "highest"] | None = None
    find: Callable[[str, dict[str, Any]], ir_measures.Measure] | None = None

    @cached_property
    def host_measure(self) -> ir_measures.Measure | None:
        """The measure of ir_measures; None for one that it lacks."""
        return ir_measures.measures.registry[self.name] if self.family == "classic" else None

    @cached_property
    def measure(self) -> ir_measures.Measure:
        """The measure without any parameter: that of ir_measures, unless some parameter is `own`."""
        if self.host_measure is not None and not self.own:
            return self.host_measure
        return _make_measure(self)

    @property
    def usage(self) -> str:
        """The name with what follows @: `P@k`, `RR[@k]` where it may be left out, `IPrec@recall`."""
        measure = self.measure
        at = measure.AT_PARAM
        if at not in measure.SUPPORTED_PARAMS or not self.takes(read_parameters(measure) | {"rel": 1, at: 1}):
            return self.name  # RBP with a cutoff is left to its provider
        shown = "@k" if at == "cutoff" else f"@{at}"
        return self.name + (shown if measure.SUPPORTED_PARAMS[at].required else f"[{shown}]")

    @property
    def parameters(self) -> list[str]:
        """The names of the parameters that can be given in brackets."""
        known = self.measure.SUPPORTED_PARAMS
        return [name for name in known if name != self.measure.AT_PARAM and name in (*COMPUTED_RULES, *_CHOICES)]

    @property
    def arrow(self) -> str:
        """The arrow that reports show for the better direction; a dash where neither is better."""
        return {"up": "↑", "down": "↓", None: "–"}[self.better]

    def computes(self, measure: ir_measures.Measure) -> bool:
        """Return whether a measure of this name can be computed with its parameters."""
        known = measure.SUPPORTED_PARAMS
        parameters = read_parameters(measure)
        return (
            all(name in known and _is_valid(name, value, known[name]) for name, value in parameters.items())
            and all(name in parameters for name, info in known.items() if info.required)
            and self.takes(parameters)
        )


class RankedMeasure(ir_measures.Measure):
    """A measure over one ranking, or a form of one, that no host has: `RankDCG@10`, `nDCG(ideal='ranking')@10`.

    ir_measures takes it as its own measures. The name by which providers know measures, `NAME`, is one that none of them
    has: a provider that saw `nDCG` there would compute it without `ideal`.
    """

    declaration: RankedDeclaration

    def __init__(self, **params: Any) -> None:
        simple = {name: value if isinstance(value, bool) else simplify_number(value) for name, value in params.items()}
        super().__init__(**simple)  # type: ignore[no-untyped-call]  # theirs
        for name, value in self.params.items():
            self._check(name, value)

    def __call__(self, **params: Any) -> ir_measures.Measure:
        """Return the measure with these parameters too; a classic one that has none of ours is ir_measures' own."""
        made: ir_measures.Measure = super().__call__(**params)  # type: ignore[no-untyped-call]  # theirs
        host, own = self.declaration.host_measure, self.declaration.own
        if host is None or any(made.params.get(name, info.default) != info.default for name, info in own.items()):
            return made
        return type(host)(**{name: value for name, value in made.params.items() if name not in own})

    def _check(self, name: str, value: Any) -> None:
        declared = self.declaration
        if name not in self.SUPPORTED_PARAMS:
            if name == "cutoff":
                raise MeasureError(
                    f"{declared.name} takes no @k: it looks at the whole ranking; write {declared.usage}"
                )
            takes = ", ".join(f"{known}=" for known in self.SUPPORTED_PARAMS)
            raise MeasureError(f"{declared.name} has no parameter {name!r}; it takes {takes or 'none'}")
        rule = _find_rule(name, self.SUPPORTED_PARAMS[name])
        if not rule.allows(value):
            raise MeasureError(f"{declared.name}: {name}={value!r} cannot be taken; {name} is {rule.words}")

    def validate_params(self) -> None:
        """Raise `MeasureError` where a required parameter is missing, or some cannot be given together."""
        for name, info in self.SUPPORTED_PARAMS.items():
            if info.required and name not in self.params:
                place = ", written after @" if name == self.AT_PARAM else ""
                raise MeasureError(
                    f"{self.declaration.name} needs the parameter {name}{place}: {_find_rule(name, info).words}"
                )
        if not self.declaration.computes(self):
            given = ", ".join(f"{name}={value!r}" for name, value in self.params.items())
            raise MeasureError(f"{self.declaration.name} cannot be computed with {given} together; leave one out")
        self.validated = True

    def aggregator(self) -> ExactMean:
        """Return what averages values in ir_measures: over the queries that have one."""
        return _MeanOfValues()

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy and pickle by name: pickle cannot find the class, which is made when it is first asked for."""
        return self.declaration.find, (self.declaration.name, self.params)


class _MeanOfValues(ExactMean):
    """The mean without NaN, which is what ir_measures gets for a query without a value; NaN where no query has one."""

    def add(self, value: float) -> None:
        if not math.isnan(value):
            super().add(value)


def _make_measure(declared: RankedDeclaration) -> RankedMeasure:
    host = declared.host_measure
    kind = type(
        f"_{declared.name}",
        (RankedMeasure,),
        {
            "__doc__": f"{declared.title}.\n\n{declared.definition}\n\nSource: {declared.source}.",
            "__module__": __name__,
            "__name__": declared.name,
            "NAME": declared.name if host is None else f"goodgain.{declared.name}",
            "AT_PARAM": declared.at if host is None else host.AT_PARAM,
            "PRETTY_NAME": declared.title,
            "SHORT_DESC": declared.definition,
            "SUPPORTED_PARAMS": {**({} if host is None else host.SUPPORTED_PARAMS), **declared.own},
            "declaration": declared,
        },
    )
    made: RankedMeasure = kind()
    return made


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)


def _is_gain(label: Any, gain: Any) -> bool:
    """Return whether a label may have this gain; a gain below 0 has no meaning in DCG, which counts it as 0."""
    return _is_number(label) and _is_number(gain) and gain >= 0


#: Parameter -> the rule of values that can be computed; a parameter that is not listed must have its default.
COMPUTED_RULES: dict[str, Rule] = {
    "cutoff": Rule(
        "a whole number from 1",
        lambda value: isinstance(value, int) and not isinstance(value, bool) and 1 <= value < _LAST,
    ),
    "rel": Rule("the smallest relevant label, a number above 0", lambda value: _is_number(value) and value > 0),
    "judged_only": Rule("True or False", lambda value: isinstance(value, bool)),
    "gains": Rule(
        "a dict of labels to gains from 0, such as {1: 1, 2: 3}",
        lambda value: isinstance(value, dict) and all(_is_gain(*pair) for pair in value.items()),
    ),
    "p": Rule("a number from 0 up to, but not, 1", lambda value: _is_number(value) and 0 <= value < 1),
    "beta": Rule("a number from 0 to 10^150", lambda value: _is_number(value) and 0 <= value <= _MOST_BETA),
    "recall": Rule("a number from 0 to 1", lambda value: _is_number(value) and 0 <= value <= 1),
}


#: Parameters with a list of choices, all of which can be computed.
_CHOICES = ("dcg", "ideal")


def _find_rule(name: str, info: ParamInfo) -> Rule:
    if name not in _CHOICES:
        return COMPUTED_RULES[name]
    choices = list(info.choices)
    return Rule(" or ".join(map(repr, choices)), lambda value: value in choices)


def _is_valid(name: str, value: Any, info: ParamInfo) -> bool:
    known = name in COMPUTED_RULES or name in _CHOICES
    return _find_rule(name, info).allows(value) if known else value == info.default
