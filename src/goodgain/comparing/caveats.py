"""What a reader of a comparison must know before believing it: short sentences about these systems on these queries."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from goodgain.comparing.significance import Matrix
from goodgain.measures.declaration import GoodGainMeasure

__all__ = ["LOW_COVERAGE", "Facts", "caveats"]

#: Judged share of unique results below which small differences are not to be trusted.
LOW_COVERAGE = 0.8


@dataclass(frozen=True)
class Facts:
    """What the caveats look at.

    Attributes:
        ours: the good-gain measures that are compared.
        values: their values by name, a row for each system, a column for each query of the qrels.
        iterations: N, in the same form.
        systems: system, absent_from_run, without_judgments, coverage; in the order of the rows.
        left_out: measure -> queries without a value for some system.
    """

    ours: Sequence[GoodGainMeasure]
    values: Mapping[str, Matrix]
    iterations: Matrix
    systems: pl.DataFrame
    left_out: Mapping[str, int]

    @property
    def names(self) -> list[str]:
        """The systems."""
        return self.systems.get_column("system").to_list()


def caveats(facts: Facts) -> Iterator[str]:
    """The sentences that apply."""
    for rule in (_absent, _left_out, _coverage, _own_end, _stopped_before, _never_searched, _own_pool):
        yield from rule(facts)


def _absent(facts: Facts) -> Iterator[str]:
    absent = _listed(facts, facts.systems.get_column("absent_from_run"))
    unknown = _listed(facts, facts.systems.get_column("without_judgments"))
    if absent:
        yield f"queries of the qrels absent from the run, counted as never searched (N = 0): {absent}"
    if unknown:
        yield f"queries of the run without judgments, left out: {unknown}"


def _left_out(facts: Facts) -> Iterator[str]:
    for measure, queries in facts.left_out.items():
        if queries:
            yield f"{measure}: {_queries(queries)} left out of its rows, where some system has no value"


def _coverage(facts: Facts) -> Iterator[str]:
    low = facts.systems.filter(pl.col("coverage") < LOW_COVERAGE)
    if low.height:
        shares = ", ".join(f"{name} {share:.2f}" for name, share in low.select("system", "coverage").iter_rows())
        yield (
            f"low coverage (†): judged share of unique results under {LOW_COVERAGE} ({shares}); unjudged "
            "documents count as not relevant, so a small difference is not to be trusted, whatever its p"
        )


def _own_end(facts: Facts) -> Iterator[str]:
    """Values at each query's own N, where systems stop at different N."""
    names = [str(m) for m in facts.ours if m.cutoff is None and m.declaration.cutoff != "none"]
    differing = int((facts.iterations.min(axis=0) != facts.iterations.max(axis=0)).sum())
    if names and differing:
        yield (
            f"{', '.join(names)}: taken at each query's own last iteration, and the systems stop at different ones in "
            f"{_queries(differing)}; so taken, rates (RG, RAG, SRE, SRR and their like) reward stopping early and sums "
            "reward going on; compare at fixed iterations too (@i, or iterations=)"
        )


def _stopped_before(facts: Facts) -> Iterator[str]:
    """Values at fixed i, where one system had stopped before i and another had not."""
    longest = np.minimum(facts.iterations.max(axis=0), max((m.cutoff or 0 for m in facts.ours), default=0))
    stopped = _listed(facts, ((facts.iterations < longest) & (facts.iterations > 0)).sum(axis=1))
    if stopped:
        yield (
            f"queries in which a system stopped before the iteration compared, and another did not: {stopped}; after "
            "its end a system keeps its ratios of totals (SRE, SRR), so these prefer one that stops even at a fixed "
            "iteration; sums (CG) and means over iterations (RG) do not"
        )


def _never_searched(facts: Facts) -> Iterator[str]:
    """Lower-is-better measures that a system wins because it never searched."""
    for k, name in enumerate(facts.names):
        idle = facts.iterations[k] == 0
        won = [str(m) for m in facts.ours if m.declaration.better == "down" and _beats(facts.values[str(m)], k, idle)]
        if won:
            yield (
                f"{name}: never searched in {_queries(int(idle.sum()))}, and is better there on {', '.join(won)} for "
                "it: a query without any search has no repeats and no cost (SRR is 0)"
            )


def _beats(values: Matrix, k: int, queries: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> bool:
    return bool((values[k] < values.max(axis=0))[queries].any())


def _own_pool(facts: Facts) -> Iterator[str]:
    for measure in facts.ours:
        if measure.params.get("pool") == "retrieved":
            yield f"{measure}: asks for the good documents a system itself retrieved; not comparable between systems"


def _queries(number: int) -> str:
    return f"{number:,} quer{'y' if number == 1 else 'ies'}"


def _listed(facts: Facts, numbers: Iterable[int]) -> str:
    """The systems with their numbers of queries, those with none left out."""
    return ", ".join(f"{name} {number:,}" for name, number in zip(facts.names, numbers, strict=True) if number)
