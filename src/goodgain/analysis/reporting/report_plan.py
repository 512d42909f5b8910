"""Chooses the measures that a report compares, explains and draws, and those of its tiles."""

import math
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import polars as pl

from goodgain.analysis.explaining.causes import Parts, divide_measure
from goodgain.analysis.reporting.page_opening import TILES
from goodgain.errors import MeasureError
from goodgain.measures.declaration import GoodGainMeasure, IterationMeasure
from goodgain.measures.good_gain import NumDup
from goodgain.measures.names import Measures, parse_measure, parse_measures

#: The largest number of curves.
_MOST_CURVES = 4


class Plan(NamedTuple):
    """The measures that a report compares, explains and draws."""

    explained: Parts  # the measure whose differences are explained
    measured: list[Any]  # the measures to compare
    curves: list[Any]  # the measures to draw over iterations
    cutoff: int | None  # the largest cutoff of the measures
    rel: float | None  # the option of the call

    @classmethod
    def of(cls, measures: Measures, rel: float | None) -> "Plan":
        """Return the plan for the measures of a report. The explained measure is compared too, also if it is not one of them."""
        named = parse_measures(measures, rel=rel)
        explained = _choose_explained_measure(named, rel)
        curves = list_curves(named) or parse_measures("nCG", complete=False, rel=rel)
        measured = parse_measures([*named, explained.measure])
        return cls(explained, measured, curves, find_largest_cutoff(named), rel)

    @property
    def good(self) -> float:
        return self.explained.measure.rel

    def list_tiles(self, lengths: pl.Series) -> tuple[int, list[Any]]:
        """Return the cutoff and the measures of the tiles on the page. The default cutoff is the median number of iterations.

        `lengths` has the number of iterations of each query in each run. If none is above 1, only the first tile is returned: the
        others say nothing then.
        """
        cutoff = self.cutoff or find_usual_cutoff(lengths)
        names = " ".join(TILES).format(i=cutoff)
        tiles = parse_measures(names, rel=self.rel)  # not self.good: a threshold that nobody named has its own notice
        if tiles[0].params.get("rel", self.good) != self.good:  # the explained measure has a threshold of its own
            tiles = parse_measures(names, rel=self.good)
        most: Any = lengths.max()
        if (most or 0) <= 1:
            tiles = tiles[:1]
        return cutoff, tiles


def find_largest_cutoff(measures: Sequence[Any]) -> int | None:
    """Return the largest iteration in the names of measures, or None if no measure names one."""
    iterations = [measure for measure in measures if isinstance(measure, IterationMeasure)]
    return max((measure.cutoff for measure in iterations if measure.cutoff is not None), default=None)


def find_usual_cutoff(lengths: pl.Series) -> int:
    """Return the median number of iterations of a query in a run, rounded up and at least 1."""
    median: Any = lengths.median()
    return max(1, math.ceil(median or 1))


def list_curves(measures: Iterable[Any]) -> list[Any]:
    """Return the measures to draw over iterations: good-gain measures and counts, without their cutoffs."""
    measures_along = []
    for measure in measures:
        if isinstance(measure, GoodGainMeasure) and measure.declaration.cutoff != "none":
            params = {name: value for name, value in measure.params.items() if name != "cutoff"}
            measures_along.append(type(measure)(**params))
    if not measures_along:
        return []
    return parse_measures(measures_along, complete=False)[:_MOST_CURVES]


def _choose_explained_measure(measures: Sequence[Any], rel: float | None) -> Parts:
    """Return the first measure that `explain` takes, else CG. SRR does not count: its differences have no good documents."""
    for measure in measures:
        with suppress(MeasureError):
            parts = divide_measure(measure)
            if parts.numerator.NAME != NumDup.NAME:
                return parts
    return divide_measure(parse_measure("CG", rel=rel))
