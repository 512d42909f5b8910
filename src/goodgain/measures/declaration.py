"""What a declaration of a measure consists of, and the ir_measures measure that follows from it."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar

import ir_measures
from ir_measures.measures import ParamInfo

from goodgain.errors import MeasureError
from goodgain.measures.formula import Value, Written, value_of

__all__ = ["DEFAULT_REL", "Declaration", "GoodGainMeasure", "choice", "measure"]

Kind = TypeVar("Kind")

DEFAULT_REL = 2

#: Beyond any agent's last iteration, and beyond any label.
_LAST, _LARGEST = 10**9, 10**300

_CUTOFF = ParamInfo(dtype=int, required=False, desc="cutoff in iterations (not ranks)")
_REL = ParamInfo(dtype=(int, float), default=DEFAULT_REL, desc="smallest label that is good (inclusive), above 0")


@dataclass(frozen=True)
class Declaration:
    """All that is known of a measure.

    Attributes:
        name: as users write it.
        title: its full name.
        definition: its formula, as docs and help show it.
        value: what it is at iteration i; one per value of a parameter where the measure has one (`choice`).
        better: `up` or `down`.
        bounds: least and greatest value, as text.
        section: where the guideline defines it.
        cutoff: whether `@i` may, must or cannot be given.
        uses_rel: whether the threshold matters.
        remark: what a user should know before comparing values.
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
    remark: str = ""

    @property
    def host_name(self) -> str:
        """The name in hosts that write measures in small letters: AvgGain -> avg_gain, nDCGG -> n_dcgg."""
        return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", self.name).lower()

    @property
    def arrow(self) -> str:
        """Which way is better, as reports show it."""
        return "↑" if self.better == "up" else "↓"


@dataclass(frozen=True)
class Choice(Generic[Kind]):
    """A parameter that picks the value; the first one is the default."""

    parameter: str
    values: Mapping[str, Kind]
    description: str

    @property
    def default(self) -> str:
        """The value where the user gives none."""
        return next(iter(self.values))


def choice(parameter: str, description: str, **values: Written) -> Choice[Written]:
    """One value of the measure for each value of a parameter."""
    return Choice(parameter, values, description)


class GoodGainMeasure(ir_measures.Measure):
    """A measure of this package as ir_measures knows measures: `SRE`, `SRE@3`, `SRE(rel=3)@5`."""

    declaration: Declaration

    def __init__(self, **params: Any) -> None:
        super().__init__(**{name: _plain(value) for name, value in params.items()})  # type: ignore[no-untyped-call]  # theirs
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
        choices = self._choices()
        if choices is not None and name == choices.parameter and value not in choices.values:
            known = " or ".join(map(repr, choices.values))
            raise MeasureError(f"{self.NAME}({name}={value!r}): {name} is {known}")

    def _choices(self) -> Choice[Value] | None:
        value = self.declaration.value
        return value if isinstance(value, Choice) else None

    def __reduce__(self) -> tuple[Any, ...]:
        """Copied and pickled by declaration, from which its class is made."""
        return _made, (self.declaration, self.params)

    def validate_params(self) -> None:
        """Raise `MeasureError` where a cutoff is missing; wrong parameters were refused when the measure was made."""
        if self.declaration.cutoff == "required" and self.cutoff is None:
            raise MeasureError(
                f"{self.NAME} is the value of one iteration: name it, as in {self.NAME}@3{_or(self.declaration)}"
            )
        self.validated = True

    @property
    def cutoff(self) -> int | None:
        """The iteration after @, or None: each query's own last one."""
        return self.params.get("cutoff")

    @property
    def rel(self) -> float:
        """The threshold: labels of at least this are good."""
        return float(self.params.get("rel", DEFAULT_REL)) if self.declaration.uses_rel else DEFAULT_REL

    @property
    def value(self) -> Value:
        """What it is at iteration i, with its parameters."""
        value = self.declaration.value
        if isinstance(value, Choice):
            return value.values[self.params.get(value.parameter, value.default)]
        return value


def _or(declaration: Declaration) -> str:
    return f"; {declaration.remark}" if declaration.remark else ""


def _plain(value: Any) -> Any:
    """Numbers as Python's own, 3.0 as 3, so that one measure has one name; True is no number."""
    if isinstance(value, bool):
        return str(value)
    if hasattr(value, "item") and getattr(value, "ndim", None) == 0:
        value = value.item()
    return int(value) if isinstance(value, float) and value.is_integer() else value


def measure(
    name: str, title: str, definition: str, value: Written | Choice[Written], **details: Any
) -> GoodGainMeasure:
    """Declare a measure: its ir_measures class, host names, help, docs and report labels follow from these arguments.

    Args:
        name, title, definition, details: as in `Declaration`.
        value: from iterations 1..i to an expression over the ledger's row of i, pools, and what `UpTo` says of those
            iterations. It joins them row by row: sums and windows of its own would not mean the same at a cutoff.
    """
    made: Value | Choice[Value]
    if isinstance(value, Choice):
        values = {chosen: value_of(f"{name} {chosen}", written) for chosen, written in value.values.items()}
        made = Choice(value.parameter, values, value.description)
    else:
        made = value_of(name, value)
    return _made(Declaration(name, title, definition, made, **details), {})


def _made(declared: Declaration, params: dict[str, Any]) -> GoodGainMeasure:
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
