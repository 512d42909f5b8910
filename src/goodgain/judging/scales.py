"""Scales of grades, and maps from one scale to another: a table of grades, or thresholds."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import polars as pl

from goodgain.errors import InputError

__all__ = ["SCALES", "MapLike", "Scale", "ScaleLike", "ScaleMap", "find_map", "find_scale"]


@dataclass(frozen=True)
class Scale:
    """The grades that a judge can give, from the lowest to the highest.

    Attributes:
        name: what errors call it.
        grades: all of them, also those that nobody gave.
        words: labels that stand for grades, where the scale has any.
    """

    name: str
    grades: tuple[float, ...]
    words: Mapping[str, float] = field(default_factory=dict)

    @property
    def is_binary(self) -> bool:
        """Whether the grades are 0 and 1."""
        return self.grades == (0.0, 1.0)


def _count(name: str, low: int, high: int, words: Mapping[str, float] | None = None) -> Scale:
    return Scale(name, tuple(float(grade) for grade in range(low, high + 1)), words or {})


#: The scales with a name. `esci` is that of Amazon's shopping queries: exact, substitute, complement, irrelevant.
SCALES = {
    scale.name: scale
    for scale in (
        _count("binary", 0, 1),
        _count("graded", 0, 3),
        _count("good-gain", 0, 4),
        _count("detail", 1, 10),
        _count("esci", 0, 3, {"E": 3, "S": 2, "C": 1, "I": 0}),
    )
}

#: A scale, its name, `LOW..HIGH` for whole grades, `0,1,3` or a sequence for a list of grades.
ScaleLike = Scale | str | Iterable[float]

_RANGE = re.compile(r"\s*(-?\d+)\s*\.\.\s*(-?\d+)\s*")
_MOST_GRADES = 1000


def find_scale(scale: ScaleLike) -> Scale:
    """Return a scale by its name, as `LOW..HIGH`, or from a list of its grades.

    Raises:
        InputError: it is not a scale.

    >>> find_scale("0..4").grades
    (0.0, 1.0, 2.0, 3.0, 4.0)
    """
    remedy = f"write {', '.join(SCALES)}, LOW..HIGH such as 0..4, or a list of grades such as 0,1,3"
    if isinstance(scale, Scale):
        return scale
    if isinstance(scale, str):
        if scale in SCALES:
            return SCALES[scale]
        found = _RANGE.fullmatch(scale)
        if found and 0 < int(found[2]) - int(found[1]) < _MOST_GRADES:
            return _count(scale, int(found[1]), int(found[2]))
    try:
        parts = scale.split(",") if isinstance(scale, str) else list(scale)
        grades = tuple(sorted({float(part) for part in parts}))
    except (TypeError, ValueError):
        raise InputError(f"{scale!r} is not a scale of grades; {remedy}") from None
    if len(grades) < 2 or not all(map(math.isfinite, grades)):
        raise InputError(f"{scale!r} is not a scale: it needs two or more different grades; {remedy}")
    return Scale(",".join(f"{grade:g}" for grade in grades), grades)


@dataclass(frozen=True)
class ScaleMap:
    """A map from grades to labels: `table`, or `thresholds` in ascending order, below all of which the label is 0."""

    text: str
    table: Mapping[float, float] = field(default_factory=dict)
    thresholds: tuple[tuple[float, float], ...] = ()

    @property
    def is_binary(self) -> bool:
        """Whether all labels it can give are 0 and 1."""
        return {0.0, *self.table.values(), *(label for _, label in self.thresholds)} <= {0.0, 1.0}

    def apply(self, values: pl.Series, *, remedy: str = "") -> pl.Series:
        """Return the label of each value; null stays null.

        Args:
            values: grades or labels (Float64).
            remedy: what else to do about a value that a table lacks, beside thresholds.

        Raises:
            InputError: a value is not in the table.
        """
        if self.thresholds:
            return self._apply_thresholds(values)
        keys, labels = list(self.table), list(self.table.values())
        mapped_values = values.replace_strict(keys, labels, default=None, return_dtype=pl.Float64)
        missing = values.filter(mapped_values.is_null() & values.is_not_null())
        if len(missing):
            raise InputError(
                f"the value {missing[0]:g} is not in the map {self.text}; write thresholds, which take any value "
                f"(such as '>=2 -> 1'), or {remedy or 'add the value to the table'}"
            )
        return mapped_values

    def _apply_thresholds(self, values: pl.Series) -> pl.Series:
        """Return the label of the highest threshold that each value reaches; NaN reaches all of them, as Polars sorts it."""
        least = pl.Series([threshold for threshold, _ in self.thresholds], dtype=pl.Float64)
        labels = pl.Series([0.0, *(label for _, label in self.thresholds)], dtype=pl.Float64)
        reached = least.search_sorted(values.fill_null(0.0), side="right")
        return pl.select(pl.when(values.is_not_null()).then(labels.gather(reached))).to_series().alias("label")


#: A `ScaleMap`, a table of grades, or its text: `0:0, 1:0, 2:1, 3:1` or `>=7 -> 1`.
MapLike = ScaleMap | Mapping[float, float] | str

_THRESHOLD = re.compile(r">=\s*(\S+?)\s*->\s*(\S+)")


def find_map(map_: MapLike) -> ScaleMap:
    """Return a map from a table {grade: label} or from a text.

    A text is a table, `0:0, 1:0, 2:1, 3:1`, or thresholds, `>=7 -> 2, >=4 -> 1`: the highest threshold that a value
    reaches decides, and a value below all of them is 0.

    Raises:
        InputError: it is neither.

    >>> find_map(">=7 -> 1").apply(pl.Series([7.5, 6.0, None])).to_list()
    [1.0, 0.0, None]
    """
    if isinstance(map_, ScaleMap):
        return map_
    try:
        if isinstance(map_, Mapping):
            pairs = [(float(grade), float(label)) for grade, label in map_.items()]
            return ScaleMap(str(dict(map_)), table=_check_pairs(pairs))
        if "_" in map_ or not map_.isascii():  # Python reads 0_7 as 7, and digits of other scripts
            raise ValueError("not a map")
        parts = [part.strip() for part in map_.split(",")]
        found = [_THRESHOLD.fullmatch(part) for part in parts]
        if all(found):
            pairs = sorted((float(match[1]), float(match[2])) for match in found if match)
            return ScaleMap(map_, thresholds=tuple(_check_pairs(pairs).items()))
        pairs = [(float(grade), float(label)) for grade, label in (part.split(":") for part in parts)]
        return ScaleMap(map_, table=_check_pairs(pairs))
    except (TypeError, ValueError, AttributeError):
        raise InputError(
            f"{map_!r} is not a map of grades; write a table such as '0:0, 1:0, 2:1, 3:1', or thresholds such as '>=7 -> 1'"
        ) from None


def _check_pairs(pairs: list[tuple[float, float]]) -> dict[float, float]:
    """Return the pairs as a dict; raise `ValueError` for none, for a grade twice, and for what is not finite."""
    if not pairs or len(dict(pairs)) < len(pairs) or not all(math.isfinite(value) for pair in pairs for value in pair):
        raise ValueError("not a map")
    return dict(pairs)
