"""Caveats of a comparison: sentences that warn where its numbers can mislead, for these systems on these queries."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from goodgain.comparing.significance import Matrix
from goodgain.counting.coverage import LOW_COVERAGE, list_shares
from goodgain.measures.declaration import GoodGainMeasure

__all__ = ["Facts", "list_caveats"]


@dataclass(frozen=True)
class Facts:
    """The values that caveats are derived from.

    Attributes:
        ours: the good-gain measures that are compared.
        lower: the names of the measures compared, of any family, that are better when lower.
        values: name of a measure -> its values, a row for each system, a column for each query of the qrels.
        iterations: the number of iterations N, in the same form.
        systems: system, absent_from_run, without_judgments, coverage; in the order of the rows.
        coverage: system, and the columns of `COVERAGE`.
        left_out: measure -> number of queries in which some system has no value.
    """

    ours: Sequence[GoodGainMeasure]
    lower: Sequence[str]
    values: Mapping[str, Matrix]
    iterations: Matrix
    systems: pl.DataFrame
    coverage: pl.DataFrame
    left_out: Mapping[str, int]

    @property
    def names(self) -> list[str]:
        """The names of the systems."""
        return self.systems.get_column("system").to_list()


def list_caveats(facts: Facts) -> Iterator[str]:
    """Yield the sentences that apply to a comparison."""
    for rule in (
        _describe_absent_queries,
        _describe_left_out_queries,
        _describe_low_coverage,
        _describe_own_ends,
        _describe_early_stops,
        _describe_idle_systems,
        _describe_own_pools,
    ):
        yield from rule(facts)


def _describe_absent_queries(facts: Facts) -> Iterator[str]:
    absent = _list_systems(facts, facts.systems.get_column("absent_from_run"))
    unknown = _list_systems(facts, facts.systems.get_column("without_judgments"))
    if absent:
        yield f"queries of the qrels absent from the run, counted as never searched (N = 0): {absent}"
    if unknown:
        yield f"queries of the run without judgments, left out: {unknown}"


def _describe_left_out_queries(facts: Facts) -> Iterator[str]:
    for measure, queries in facts.left_out.items():
        if queries:
            yield f"{measure}: {_format_queries(queries)} left out of its rows, where some system has no value"


def _describe_low_coverage(facts: Facts) -> Iterator[str]:
    low = facts.systems.filter(pl.col("coverage") < LOW_COVERAGE)
    if low.height:
        shares = ", ".join(f"{name} {share:.2f}" for name, share in low.select("system", "coverage").iter_rows())
        names = low.get_column("system").to_list()
        each = "; ".join(f"{name} {list_shares(facts.coverage.filter(system=name))}" for name in names)
        yield (
            f"low coverage (†): judged share of unique results under {LOW_COVERAGE} ({shares}; by iteration: {each}); unjudged "
            "documents count as not relevant, so a small difference is not to be trusted, whatever its p"
        )


def _describe_own_ends(facts: Facts) -> Iterator[str]:
    """Warn of values at each query's own last iteration where systems stop at different iterations."""
    names = [str(m) for m in facts.ours if m.cutoff is None and m.declaration.cutoff != "none"]
    differing = int((facts.iterations.min(axis=0) != facts.iterations.max(axis=0)).sum())
    if names and differing:
        yield (
            f"{', '.join(names)}: taken at each query's own last iteration, and the systems stop at different ones in "
            f"{_format_queries(differing)}; so taken, rates (RG, RAG, SRE, SRR and their like) reward stopping early and sums "
            "reward going on; compare at fixed iterations too (@i, or iterations=)"
        )


def _describe_early_stops(facts: Facts) -> Iterator[str]:
    """Warn of values at a fixed iteration that one system has not reached and another has."""
    longest = np.minimum(facts.iterations.max(axis=0), max((m.cutoff or 0 for m in facts.ours), default=0))
    stopped = _list_systems(facts, ((facts.iterations < longest) & (facts.iterations > 0)).sum(axis=1))
    if stopped:
        yield (
            f"queries in which a system stopped before the iteration compared, and another did not: {stopped}; after "
            "its end a system keeps its ratios of totals (SRE, SRR), so these prefer one that stops even at a fixed "
            "iteration; sums (CG) and means over iterations (RG) do not"
        )


def _describe_idle_systems(facts: Facts) -> Iterator[str]:
    """Warn of measures, better when lower, on which a system is better because it never searched."""
    for k, name in enumerate(facts.names):
        idle = facts.iterations[k] == 0
        won = [measure for measure in facts.lower if _is_better_somewhere(facts.values[measure], k, idle)]
        if won:
            yield (
                f"{name}: never searched in {_format_queries(int(idle.sum()))}, and is better there on {', '.join(won)} for "
                "it: a query without any search has no repeats, no wrong documents and no cost (SRR and Fallout are 0)"
            )


def _is_better_somewhere(values: Matrix, k: int, queries: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> bool:
    return bool((values[k] < values.max(axis=0))[queries].any())


def _describe_own_pools(facts: Facts) -> Iterator[str]:
    for measure in facts.ours:
        if measure.params.get("pool") == "retrieved":
            yield f"{measure}: asks for the good documents a system itself retrieved; not comparable between systems"


def _format_queries(number: int) -> str:
    return f"{number:,} quer{'y' if number == 1 else 'ies'}"


def _list_systems(facts: Facts, numbers: Iterable[int]) -> str:
    """Return the systems with their numbers of queries as text, without those whose number is 0."""
    return ", ".join(f"{name} {number:,}" for name, number in zip(facts.names, numbers, strict=True) if number)
