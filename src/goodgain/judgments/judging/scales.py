"""Scales of grades, and maps from one scale to another: a table of grades, or thresholds."""

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import polars as pl

from goodgain.errors import InputError


@dataclass(frozen=True)
class Scale:
    """The grades that a judge can give, used or not, from the lowest to the highest; `words` are labels that stand for grades."""

    name: str
    grades: tuple[float, ...]
    words: Mapping[str, float] = field(default_factory=dict)

    @property
    def is_binary(self) -> bool:
        """Whether the grades are 0 and 1."""
        return self.grades == (0.0, 1.0)


def _span(name: str, low: int, high: int, words: Mapping[str, float] | None = None) -> Scale:
    return Scale(name, tuple(map(float, range(low, high + 1))), words or {})


#: The scales with a name. `esci` is that of Amazon's shopping queries: exact, substitute, complement, irrelevant.
SCALES = {
    scale.name: scale
    for scale in (
        _span("binary", 0, 1),
        _span("graded", 0, 3),
        _span("good-gain", 0, 4),
        _span("detail", 1, 10),
        _span("esci", 0, 3, {"E": 3.0, "S": 2.0, "C": 1.0, "I": 0.0}),
    )
}

#: The name of a scale, `LOW..HIGH` for whole grades, `0,1,3` or a sequence for a list of grades.
ScaleLike = str | Iterable[float]

_RANGE = re.compile(r"\s*(-?\d+)\s*\.\.\s*(-?\d+)\s*")
#: Agreement compares each grade with each other one: a larger range is a mistake.
_MOST_GRADES = 1000


def find_scale(scale: ScaleLike) -> Scale:
    """Return a scale by its name, as `LOW..HIGH`, or from a list of its grades.

    >>> find_scale("0..4").grades
    (0.0, 1.0, 2.0, 3.0, 4.0)
    """
    if isinstance(scale, str):
        if scale in SCALES:
            return SCALES[scale]
        match = _RANGE.fullmatch(scale)
        low, high = map(int, match.groups()) if match else (0, 0)
        if 0 < high - low < _MOST_GRADES:
            return _span(scale, low, high)
    try:
        grades = tuple(sorted({float(grade) for grade in (scale.split(",") if isinstance(scale, str) else scale)}))
    except (TypeError, ValueError):
        grades = ()
    if len(grades) < 2 or not all(map(math.isfinite, grades)):
        raise InputError(
            f"{scale!r} is not a scale of two or more grades. Write {', '.join(SCALES)}, LOW..HIGH such as 0..4, or a list of "
            "grades such as 0,1,3"
        )
    return Scale(",".join(f"{grade:g}" for grade in grades), grades)


@dataclass(frozen=True)
class ScaleMap:
    """A map from grades to labels: a table, or thresholds; the highest threshold that a grade reaches applies, else 0."""

    text: str
    labels: Mapping[float, float]
    is_thresholds: bool

    @property
    def is_binary(self) -> bool:
        """Whether all labels it can give are 0 and 1."""
        return {0.0, *self.labels.values()} <= {0.0, 1.0}

    def apply(self, values: pl.Series, *, remedy: str = "add the value to the table") -> pl.Series:
        """Return the label of each value (Float64); null stays null.

        A value that a table lacks is an `InputError`; `remedy` says what else to do about it, beside thresholds.
        """
        if self.is_thresholds:
            least = pl.Series(sorted(self.labels), dtype=pl.Float64)
            labels = pl.Series([0.0, *(self.labels[threshold] for threshold in least)])
            reached = least.search_sorted(values.fill_null(0.0), side="right")
            return pl.select(label=pl.when(values.is_not_null()).then(labels.gather(reached))).to_series()
        mapped = values.replace_strict(
            list(self.labels), list(self.labels.values()), default=None, return_dtype=pl.Float64
        )
        missing = values.filter(mapped.is_null() & values.is_not_null())
        if len(missing):
            raise InputError(
                f"the value {missing[0]:g} is not in the map {self.text}. Write thresholds, which take any value "
                f"(such as '>=2 -> 1'), or {remedy}"
            )
        return mapped


#: A table of grades, or its text: `0:0, 1:0, 2:1, 3:1` or `>=7 -> 1`.
MapLike = Mapping[float, float] | str


def find_map(map_: MapLike) -> ScaleMap:
    """Return a map from a table {grade: label} or from a text.

    A text is a table, `0:0, 1:0, 2:1, 3:1`, or thresholds, `>=7 -> 2, >=4 -> 1`: the highest threshold that a value
    reaches applies, and a value below all of them becomes 0.

    Raises:
        InputError: it is neither.

    >>> find_map(">=7 -> 1").apply(pl.Series([7.5, 6.0, None])).to_list()
    [1.0, 0.0, None]
    """
    is_thresholds = False
    try:
        if isinstance(map_, Mapping):
            pairs = [(float(grade), float(label)) for grade, label in map_.items()]
        else:
            parts = [part.strip() for part in map_.split(",")]
            is_thresholds = all(part.startswith(">=") for part in parts)
            divided = [part[2:].split("->") if is_thresholds else part.split(":") for part in parts]
            pairs = [(float(grade), float(label)) for grade, label in divided]
    except (TypeError, ValueError, AttributeError):
        pairs = []
    labels = dict(pairs)
    if not labels or len(labels) < len(pairs) or not all(math.isfinite(value) for pair in pairs for value in pair):
        raise InputError(
            f"{map_!r} is not a map of grades. Write a table such as '0:0, 1:0, 2:1, 3:1', or thresholds such as '>=7 -> 1'"
        )
    return ScaleMap(str(map_), labels, is_thresholds)
