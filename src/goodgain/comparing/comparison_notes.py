"""The notes of a comparison: sentences that warn where its numbers can mislead, for these systems on these queries."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

import ir_measures
import numpy as np
import polars as pl

from goodgain.comparing.statistical_tests import Matrix
from goodgain.counting.coverage import LOW_COVERAGE, LOW_SHARE, SharedQueries, list_examples, share_of_smaller
from goodgain.errors import InputError
from goodgain.measures.declaration import GoodGainMeasure
from goodgain.measures.good_gain import NumIter
from goodgain.measures.names import find_direction

#: Pairs of systems that a note lists.
_EXAMPLES = 3


def describe_shared_queries(systems: Mapping[str, SharedQueries]) -> str | None:
    """Return a sentence for pairs of systems that share less than half the judged queries of the smaller one.

    Raises:
        InputError: two systems that both have queries share no judged one.
    """
    few = []
    judged_of = {name: set(queries.both) for name, queries in systems.items() if queries.searched}
    for (name, judged), (other_name, other_judged) in combinations(judged_of.items(), 2):
        both = len(judged & other_judged)
        if not both:
            found = [systems[one].both if judged_of[one] else systems[one].only_searched for one in (name, other_name)]
            shown, other_shown = (", ".join(map(repr, list_examples(query_ids))) for query_ids in found)
            raise InputError(
                f"{name} and {other_name} share no judged query: {name} has {shown}, {other_name} has {other_shown}. Give both "
                "the same query ids (goodgain convert does it for logs of several systems), or leave one out."
            )
        if share_of_smaller(both, len(judged), len(other_judged)) < LOW_SHARE:
            few.append(
                f"{name} and {other_name} share {both:,} of {min(len(judged), len(other_judged)):,} judged queries"
            )
    if not few:
        return None
    more = f", and {len(few) - _EXAMPLES:,} more pairs do" if len(few) > _EXAMPLES else ""
    return (
        f"{'; '.join(few[:_EXAMPLES])}{more}. A query that a run lacks counts as one that never searched: check that both "
        "name queries alike."
    )


class Note(NamedTuple):
    """A sentence, and whether it changes nobody's mind about the numbers."""

    text: str
    minor: bool = False


def list_notes(
    measures: Sequence[ir_measures.Measure],
    values: Mapping[str, Matrix],
    systems: pl.DataFrame,
    queries: Mapping[str, SharedQueries],
) -> Iterator[Note]:
    """Yield the notes on a comparison; `values` has the values of each measure and NumIter, by name."""
    ours = [measure for measure in measures if isinstance(measure, GoodGainMeasure)]
    names, iterations = systems.get_column("system").to_list(), values[str(NumIter)]
    yield from _describe_missing_queries(systems, queries)
    for name in map(str, measures):
        if left_out := int((~np.isfinite(values[name])).any(axis=0).sum()):
            yield Note(f"{name} leaves out {_format_queries(left_out)}, where some system has no value.", minor=True)
    yield from _describe_low_coverage(systems)
    yield from _describe_ends(ours, iterations, names)
    yield from _describe_idle_systems(measures, values, names)
    for measure in ours:
        if measure.params.get("pool") == "retrieved":
            yield Note(
                f"{measure} is not comparable between systems: each is held to the good documents it found itself."
            )


def _describe_missing_queries(systems: pl.DataFrame, queries: Mapping[str, SharedQueries]) -> Iterator[Note]:
    for name, of in queries.items():
        if idle := len(of.only_judged):
            shown = ", ".join(list_examples(of.only_judged)) + ", ..." * (idle > _EXAMPLES)
            counted = f"{_format_queries(idle)} never searched in {name}: {shown}"
            yield Note(f"{counted} (counted as found nothing).")
    if unknown := _list_systems(systems.get_column("system"), systems.get_column("without_judgments")):
        yield Note(f"Queries without judgments are left out: {unknown}.")


def _describe_low_coverage(systems: pl.DataFrame) -> Iterator[Note]:
    low = systems.filter(pl.col("coverage") < LOW_COVERAGE).select("system", "coverage").rows()
    if low:
        shares = ", ".join(f"{name} {share:.2f}" for name, share in low)
        yield Note(
            f"low coverage (†): under {LOW_COVERAGE} of the unique results have a label ({shares}). The others count as not "
            "relevant: judge more of them (goodgain pool), or see how much they could change (bounds=True)."
        )


def _describe_ends(ours: Sequence[GoodGainMeasure], iterations: Matrix, names: Sequence[str]) -> Iterator[Note]:
    """Warn where systems stop at different iterations: of values at the own last one, and of those after the end."""
    at_own_end = [str(m) for m in ours if m.cutoff is None and m.declaration.cutoff != "none"]
    differing = int((iterations.min(axis=0) != iterations.max(axis=0)).sum())
    if at_own_end and differing:
        fixed = {m.NAME for m in ours if m.cutoff is not None}
        yield Note(
            f"{', '.join(at_own_end)}: the systems stop at different iterations in {_format_queries(differing)}. Rates then "
            "favour stopping early, sums favour going on. Compare at a fixed iteration too: @i, or iterations=.",
            minor=all(m.NAME in fixed for m in ours if m.cutoff is None and m.declaration.cutoff != "none"),
        )
    longest = np.minimum(iterations.max(axis=0), max((m.cutoff or 0 for m in ours), default=0))
    stopped = ((iterations < longest) & (iterations > 0)).sum(axis=1)
    if stopped.any():
        early = ", ".join(
            f"{name} in {_format_queries(number)}" for name, number in zip(names, stopped, strict=True) if number
        )
        yield Note(
            f"Some stopped before the compared iteration: {early}. Their SRE and SRR stay as they were at the end."
        )


def _describe_idle_systems(
    measures: Sequence[ir_measures.Measure], values: Mapping[str, Matrix], names: Sequence[str]
) -> Iterator[Note]:
    """Warn of measures, better when lower, on which a system is better because it never searched."""
    lower = {str(measure): values[str(measure)] for measure in measures if find_direction(measure) == "down"}
    for k, name in enumerate(names):
        idle = values[str(NumIter)][k] == 0
        won = [measure for measure, of in lower.items() if (of[k] < of.max(axis=0))[idle].any()]
        if won:
            yield Note(
                f"{name} counts as better on {', '.join(won)} in {_format_queries(int(idle.sum()))} only because it never "
                "searched there."
            )


def _format_queries(number: int) -> str:
    return f"{number:,} quer{'y' if number == 1 else 'ies'}"


def _list_systems(names: Iterable[str], numbers: Iterable[int]) -> str:
    """Return the systems with their numbers of queries as text, without those whose number is 0."""
    return ", ".join(f"{name} {number:,}" for name, number in zip(names, numbers, strict=True) if number)
