"""The form of a declaration of a good-gain measure, and the ir_measures class that is made from it."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar

import ir_measures
from ir_measures.measures import ParamInfo

from goodgain.errors import MeasureError
from goodgain.measures.formula import Value, Written, build_value

__all__ = ["DEFAULT_REL", "Declaration", "GoodGainMeasure", "declare_choice", "declare_measure", "simplify_number"]

Kind = TypeVar("Kind")

DEFAULT_REL = 2

#: Limits of a cutoff and of a threshold: beyond any agent's last iteration and beyond any label, but small enough for
#: the Int64 and Float64 columns that they are compared with.
_LAST, _LARGEST = 10**9, 10**300

_CUTOFF = ParamInfo(dtype=int, required=False, desc="cutoff in iterations (not ranks)")
_REL = ParamInfo(dtype=(int, float), default=DEFAULT_REL, desc="smallest label that is good (inclusive), above 0")


@dataclass(frozen=True)
class Declaration:
    """All that is known of a measure.

    Attributes:
        name: the name that users write.
        title: its full name.
        definition: its formula, as docs and help show it.
        value: the value at iteration i; one for each value of a parameter where the measure has one (`declare_choice`).
        better: `up` or `down`.
        bounds: least and greatest value, as text.
        section: the place in the guideline that defines it.
        cutoff: whether `@i` may, must or cannot be given.
        uses_rel: whether the threshold `rel` changes the value.
        family: the list of `goodgain measures` that has it.
        remark: what a user should know before comparing values.
        from_labels: how results without a judgment could change the value: `sum`, if the value is a sum over documents, each
            of which adds more the higher its label (nothing, if the measure ignores labels); None if the value could also
            fall, or depends on documents that were not retrieved.
    """

    name: str
    title: str
    definition: str
    value: Value | Choice[Value]
    better: Literal["up", "down"]
    bounds: tuple[str, str]
    section: str
    cutoff: Literal["optional", "required", "none"] = "optional"
    uses_rel: bool = True
    family: Literal["good gain", "counts"] = "good gain"
    remark: str = ""
    from_labels: Literal["sum"] | None = None

    @property
    def host_name(self) -> str:
        """The name in hosts that write measures in lower case: AvgGain -> avg_gain, nDCGG -> n_dcgg."""
        return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", self.name).lower()

    @property
    def usage(self) -> str:
        """The name with its cutoff in iterations: `SRE[@i]` where it may be left out, `AvgGain@i` where it may not."""
        return self.name + {"optional": "[@i]", "required": "@i", "none": ""}[self.cutoff]

    @property
    def arrow(self) -> str:
        """The arrow that reports show for the better direction."""
        return "↑" if self.better == "up" else "↓"


@dataclass(frozen=True)
class Choice(Generic[Kind]):
    """A parameter that selects one of several values of a measure; the first one is the default."""

    parameter: str
    values: Mapping[str, Kind]
    description: str

    @property
    def default(self) -> str:
        """The value of the parameter where the user gives none."""
        return next(iter(self.values))


def declare_choice(parameter: str, description: str, **values: Written) -> Choice[Written]:
    """Declare one value of the measure for each value of a parameter."""
    return Choice(parameter, values, description)


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


class GoodGainMeasure(ir_measures.Measure):
    """A measure of this package as ir_measures knows measures: `SRE`, `SRE@3`, `SRE(rel=3)@5`."""

    declaration: Declaration

    def __init__(self, **params: Any) -> None:
        super().__init__(**{name: simplify_number(value) for name, value in params.items()})  # type: ignore[no-untyped-call]  # theirs
        for name, value in self.params.items():
            self._check(name, value)

    def _check(self, name: str, value: Any) -> None:
        if name not in self.SUPPORTED_PARAMS:
            if name == "cutoff":
                raise MeasureError(f"{self.NAME} takes no @i: it looks at all iterations of a query; write {self.NAME}")
            takes = ", ".join(f"{known}=" for known in self.SUPPORTED_PARAMS if known != "cutoff")
            raise MeasureError(f"{self.NAME} has no parameter {name!r}; it takes {takes or 'none'}")
        if name == "cutoff" and (not isinstance(value, int) or not 1 <= value <= _LAST):
            raise MeasureError(
                f"{self.NAME}@{value}: @ is a cutoff in iterations, a whole number from 1 (to 10^9); write {self.NAME}@3"
            )
        if name == "rel" and not (isinstance(value, (int, float)) and 0 < value < math.inf and value < _LARGEST):
            raise MeasureError(
                f"{self.NAME}(rel={value!r}): rel is the smallest good label, a number above 0; write rel=2"
            )
        choices = self._find_choice()
        if choices is not None and name == choices.parameter and value not in choices.values:
            known = " or ".join(map(repr, choices.values))
            raise MeasureError(f"{self.NAME}({name}={value!r}): {name} is {known}")

    def aggregator(self) -> ExactMean:
        """Return what averages the values of queries, for ir_measures."""
        return ExactMean()

    def _find_choice(self) -> Choice[Value] | None:
        value = self.declaration.value
        return value if isinstance(value, Choice) else None

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy and pickle by the declaration: pickle cannot find the class, which is made when this module is imported."""
        return _make_measure, (self.declaration, self.params)

    def validate_params(self) -> None:
        """Raise `MeasureError` where a required cutoff is missing; all else is checked when the measure is made."""
        if self.declaration.cutoff == "required" and self.cutoff is None:
            raise MeasureError(
                f"{self.NAME} is the value of one iteration: name it, as in {self.NAME}@3{_append_remark(self.declaration)}"
            )
        self.validated = True

    @property
    def cutoff(self) -> int | None:
        """The iteration after @, or None for each query's own last one."""
        return self.params.get("cutoff")

    @property
    def rel(self) -> float:
        """The threshold: a label of at least this is good."""
        return float(self.params.get("rel", DEFAULT_REL)) if self.declaration.uses_rel else DEFAULT_REL

    @property
    def value(self) -> Value:
        """The value at iteration i, for the parameters of this measure."""
        value = self.declaration.value
        if isinstance(value, Choice):
            return value.values[self.params.get(value.parameter, value.default)]
        return value


def _append_remark(declaration: Declaration) -> str:
    return f"; {declaration.remark}" if declaration.remark else ""


def simplify_number(value: Any) -> Any:
    """Return a number as Python's own type and 3.0 as 3, so that equal measures have equal names.

    True and False become text, which the checks refuse: to Python they are the numbers 1 and 0.
    """
    if isinstance(value, bool):
        return str(value)
    if hasattr(value, "item") and getattr(value, "ndim", None) == 0:
        value = value.item()
    return int(value) if isinstance(value, float) and value.is_integer() else value


def declare_measure(
    name: str, title: str, definition: str, value: Written | Choice[Written], **details: Any
) -> GoodGainMeasure:
    """Declare a measure, from which its ir_measures class, host names, help and report labels are made.

    Args:
        name, title, definition, details: as in `Declaration`.
        value: a function of `UpTo`, iterations 1..i, that returns an expression over the ledger's row of iteration i,
            the pools, and the sums that `UpTo` makes. The expression must work row by row: a sum or a window of its own
            would have another meaning at a cutoff than along the ledger.
    """
    made: Value | Choice[Value]
    if isinstance(value, Choice):
        values = {chosen: build_value(written) for chosen, written in value.values.items()}
        made = Choice(value.parameter, values, value.description)
    else:
        made = build_value(value)
    return _make_measure(Declaration(name, title, definition, made, **details), {})


def _make_measure(declared: Declaration, params: dict[str, Any]) -> GoodGainMeasure:
    supported: dict[str, ParamInfo] = {}
    if declared.uses_rel:
        supported["rel"] = _REL
    if isinstance(declared.value, Choice):
        supported[declared.value.parameter] = ParamInfo(
            dtype=str,
            choices=list(declared.value.values),
            default=declared.value.default,
            desc=declared.value.description,
        )
    if declared.cutoff != "none":
        supported["cutoff"] = _CUTOFF
    kind = type(
        f"_{declared.name}",
        (GoodGainMeasure,),
        {
            "__doc__": f"{declared.title}.\n\n{declared.definition}\n\nSource: {declared.section}.",
            "__module__": __name__,
            "__name__": declared.name,
            "NAME": declared.name,
            "PRETTY_NAME": declared.title,
            "SHORT_DESC": declared.definition,
            "SUPPORTED_PARAMS": supported,
            "declaration": declared,
        },
    )
    made: GoodGainMeasure = kind(**params)
    return made
