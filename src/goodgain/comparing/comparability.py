"""Which systems cannot be compared on a measure: their iterations, or their documents, are different things."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import permutations

import ir_measures
import polars as pl

from goodgain.comparing.pairs_table import NOT_COMPARABLE
from goodgain.measures.declaration import IterationMeasure
from goodgain.measures.scores import Scores
from goodgain.options import spell

#: Measures, or systems, that a note lists.
_EXAMPLES = 3


def find_incomparable(
    measures: Sequence[ir_measures.Measure], scores: Mapping[str, Scores]
) -> dict[tuple[str, ...], str]:
    """Return (measure, system, against) -> the verdict, for pairs that cannot be compared."""
    return {
        (str(measure), *pair): verdict
        for measure in measures
        if isinstance(measure, IterationMeasure)
        for pair in permutations(scores, 2)
        if (verdict := _judge(measure, *(scores[name] for name in pair)))
    }


def _judge(measure: IterationMeasure, system: Scores, against: Scores) -> str | None:
    if measure.depends_on_ends and system.lacks_iterations != against.lacks_iterations:
        return NOT_COMPARABLE
    if measure.declaration.by_repeats and (system.one_time or against.one_time):
        return f"{NOT_COMPARABLE}: one-time addresses"
    return None


def find_unranked(pairs: pl.DataFrame) -> pl.DataFrame:
    """Return the pairs whose systems are not comparable."""
    return pairs.filter(pl.col("verdict").str.starts_with(NOT_COMPARABLE))


def list_iterated(scores: Mapping[str, Scores]) -> list[int]:
    """Return the positions of the systems with iterations."""
    return [k for k, of in enumerate(scores.values()) if not of.lacks_iterations]


def find_best(means: list[float], better: str | None) -> set[float]:
    """Return the best means, up to rounding; none if all are equal, or the measure has no better direction."""
    if not means or better is None:
        return set()
    top = max(means) if better == "up" else min(means)
    best = {mean for mean in means if math.isclose(mean, top, rel_tol=1e-12, abs_tol=1e-12)}
    return best if any(mean not in best for mean in means) else set()


def describe_incomparable(pairs: pl.DataFrame, scores: Mapping[str, Scores], of_file: str | None) -> str | None:
    """Return a sentence on the pairs that are not comparable because one system has no iterations; None without any.

    `of_file` is the name of the system of a baseline file.
    """
    found = pairs.filter(verdict=NOT_COMPARABLE)
    if found.is_empty():
        return None
    compared = {*found.get_column("system"), *found.get_column("against")}
    lacking, others = (
        [name for name, of in scores.items() if name in compared and of.lacks_iterations == lacks]
        for lacks in (True, False)
    )
    measures = found.get_column("measure").unique(maintain_order=True).to_list()
    remedy = f"Cut the ranking into pages of N results: {spell('page', {lacking[0]: 'N'})}."
    if lacking[0] == of_file:
        remedy = f"Write the baseline file again with {spell('page', 'N')}."
    return f"{_list(measures)}: not comparable between {_list(lacking)} (no iterations) and {_list(others)}. {remedy}"


def _list(listed: Sequence[str]) -> str:
    more = f" and {len(listed) - _EXAMPLES:,} more" if len(listed) > _EXAMPLES else ""
    return f"{', '.join(listed[:_EXAMPLES])}{more}"
