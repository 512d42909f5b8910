"""The notes of a comparison: sentences that warn where its numbers can mislead, for these systems on these queries."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations

import ir_measures
import numpy as np
import polars as pl

from goodgain.comparing.statistical_tests import Matrix
from goodgain.counting.coverage import (
    LOW_COVERAGE,
    LOW_SHARE,
    SharedQueries,
    list_examples,
    list_shares,
    share_of_smaller,
)
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


def list_notes(
    measures: Sequence[ir_measures.Measure], values: Mapping[str, Matrix], systems: pl.DataFrame, coverage: pl.DataFrame
) -> Iterator[str]:
    """Yield the sentences that apply to a comparison; `values` has those of each measure and NumIter, by name."""
    ours = [measure for measure in measures if isinstance(measure, GoodGainMeasure)]
    names, iterations = systems.get_column("system").to_list(), values[str(NumIter)]
    yield from _describe_missing_queries(systems)
    for name in map(str, measures):
        if left_out := int((~np.isfinite(values[name])).any(axis=0).sum()):
            yield f"{name}: {_format_queries(left_out)} left out of its rows, where some system has no value"
    yield from _describe_low_coverage(systems, coverage)
    yield from _describe_ends(ours, iterations, names)
    yield from _describe_idle_systems(measures, values, names)
    for measure in ours:
        if measure.params.get("pool") == "retrieved":
            yield f"{measure}: asks for the good documents a system itself retrieved; not comparable between systems"


def _describe_missing_queries(systems: pl.DataFrame) -> Iterator[str]:
    names = systems.get_column("system")
    if absent := _list_systems(names, systems.get_column("absent_from_run")):
        yield f"queries of the qrels absent from the run, counted as never searched (N = 0): {absent}"
    if unknown := _list_systems(names, systems.get_column("without_judgments")):
        yield f"queries of the run without judgments, left out: {unknown}"


def _describe_low_coverage(systems: pl.DataFrame, coverage: pl.DataFrame) -> Iterator[str]:
    low = systems.filter(pl.col("coverage") < LOW_COVERAGE).select("system", "coverage").rows()
    if low:
        shares = ", ".join(f"{name} {share:.2f}" for name, share in low)
        each = "; ".join(f"{name} {list_shares(coverage.filter(system=name))}" for name, _ in low)
        yield (
            f"low coverage (†): judged share of unique results under {LOW_COVERAGE} ({shares}; by iteration: {each}); unjudged "
            "documents count as not relevant, so a small difference is not to be trusted, whatever its p"
        )


def _describe_ends(ours: Sequence[GoodGainMeasure], iterations: Matrix, names: Sequence[str]) -> Iterator[str]:
    """Warn where systems stop at different iterations: of values at the own last one, and of those after the end."""
    at_own_end = [str(m) for m in ours if m.cutoff is None and m.declaration.cutoff != "none"]
    differing = int((iterations.min(axis=0) != iterations.max(axis=0)).sum())
    if at_own_end and differing:
        yield (
            f"{', '.join(at_own_end)}: taken at each query's own last iteration, and the systems stop at different ones in "
            f"{_format_queries(differing)}; so taken, rates (RG, RAG, SRE, SRR and their like) reward stopping early and sums "
            "reward going on; compare at fixed iterations too (@i, or iterations=)"
        )
    longest = np.minimum(iterations.max(axis=0), max((m.cutoff or 0 for m in ours), default=0))
    stopped = _list_systems(names, ((iterations < longest) & (iterations > 0)).sum(axis=1))
    if stopped:
        yield (
            f"queries in which a system stopped before the iteration compared, and another did not: {stopped}; after "
            "its end a system keeps its ratios of totals (SRE, SRR), so these prefer one that stops even at a fixed "
            "iteration; sums (CG) and means over iterations (RG) do not"
        )


def _describe_idle_systems(
    measures: Sequence[ir_measures.Measure], values: Mapping[str, Matrix], names: Sequence[str]
) -> Iterator[str]:
    """Warn of measures, better when lower, on which a system is better because it never searched."""
    lower = {str(measure): values[str(measure)] for measure in measures if find_direction(measure) == "down"}
    for k, name in enumerate(names):
        idle = values[str(NumIter)][k] == 0
        won = [measure for measure, of in lower.items() if (of[k] < of.max(axis=0))[idle].any()]
        if won:
            yield (
                f"{name}: never searched in {_format_queries(int(idle.sum()))}, and is better there on {', '.join(won)} for "
                "it: a query without any search has no repeats, no wrong documents and no cost (SRR and Fallout are 0)"
            )


def _format_queries(number: int) -> str:
    return f"{number:,} quer{'y' if number == 1 else 'ies'}"


def _list_systems(names: Iterable[str], numbers: Iterable[int]) -> str:
    """Return the systems with their numbers of queries as text, without those whose number is 0."""
    return ", ".join(f"{name} {number:,}" for name, number in zip(names, numbers, strict=True) if number)
