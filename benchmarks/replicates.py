"""Simulates agents whose truth is known, and counts how often the numbers about replicates are right.

    python benchmarks/replicates.py [--rounds 4000] [--seed 42]

Prints a Markdown table: what is promised, what was found. It ends with status 1 if a promise is broken.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from goodgain.analysis.comparing import replicates as of
from goodgain.statistics.randomisation_test import run_randomisation_test
from goodgain.statistics.statistical_tests import Matrix, bootstrap_interval, correct_by_holm, run_t_test


class Row(NamedTuple):
    """One promise: what it is about, the number promised, how far from it is still right, and the number found."""

    about: str
    promised: float
    within: float
    found: float


def draw(random: np.random.Generator, queries: int, runs: int, icc: float) -> Matrix:
    """Draw replicates whose variance between queries is icc and within queries 1 - icc."""
    return random.normal(0, math.sqrt(icc), queries) + random.normal(0, math.sqrt(1 - icc), (runs, queries))


def measure_levels(random: np.random.Generator, rounds: int) -> Iterator[Row]:
    """Test two equal systems over the means of queries, and over all pairs of query and run."""
    means, pooled = [], []
    for _ in range(rounds):
        differences = draw(random, 50, 3, 0.5) - draw(random, 50, 3, 0.5)
        means.append(differences.mean(axis=0))
        pooled.append(differences.ravel())
    for name, test in (
        ("t-test", run_t_test),
        ("randomisation test", lambda rows: run_randomisation_test(rows, resamples=999)),
    ):
        yield Row(f"level of the {name} over queries", 0.05, 0.01, float((test(np.array(means)) <= 0.05).mean()))
        yield Row(f"(level of the {name}, query x run pooled)", 0.05, 1, float((test(np.array(pooled)) <= 0.05).mean()))


def measure_coverage(random: np.random.Generator, rounds: int) -> Iterator[Row]:
    """Count the intervals of 50 queries that hold the true mean."""
    for icc in (0.0, 0.1, 0.5, 0.9):
        for runs in (2, 3, 5):
            rows = np.array([draw(random, 50, runs, icc).mean(axis=0) for _ in range(rounds)])
            low, high = bootstrap_interval(rows, resamples=1_999)
            yield Row(
                f"coverage, 50 queries, ICC {icc}, {runs} runs", 0.95, 0.02, float(((low <= 0) & (high >= 0)).mean())
            )


def measure_icc(random: np.random.Generator) -> Iterator[Row]:
    """Estimate the ICC of 4,000 queries with one to six runs each."""
    for icc in (0.0, 0.1, 0.5, 0.9):
        found = []
        for _ in range(20):
            values = draw(random, 4_000, 6, icc)
            values[1:][random.random((5, 4_000)) < 0.4] = np.nan
            found.append(of.measure_spread(values).icc or 0.0)
        yield Row(f"ICC {icc}, 4,000 queries, unequal runs: mean of 20", icc, 0.01, float(np.mean(found)))


def measure_noise(random: np.random.Generator) -> Iterator[Row]:
    """Hold 10,000 reruns of equal systems to `>=baseline-noise`, alone and five lines together with Holm's method."""
    pairs = 10_000
    for runs in (2, 3, 5):
        failed = 0
        for _ in range(pairs):
            hard = random.random(60)
            base, new = ((random.random((runs, 60)) < hard).astype(float) for _ in range(2))
            noise = of.measure_noise(base, np.full(60, float(runs)))
            failed += noise is not None and new.mean() < base.mean() - noise.floor
        yield Row(f">=baseline-noise fails, {runs} runs each", 0.05, 0.01, failed / pairs)
    alone = together = 0
    for _ in range(pairs):
        p = []
        for _ in range(5):
            hard = random.random(60)
            base, new = ((random.random((3, 60)) < hard).astype(float) for _ in range(2))
            noise = of.measure_noise(base, np.full(60, 3.0))
            p.append(1.0 if noise is None else of.compute_noise_p(float(base.mean() - new.mean()), noise.floor))
        alone += min(p) <= 0.05
        together += bool((correct_by_holm(np.array(p)) <= 0.05).any())
    yield Row("five lines: any fails with --family holm", 0.05, 0.01, together / pairs)
    yield Row("(five lines: any fails without)", 1 - 0.95**5, 1, alone / pairs)


def measure_power(random: np.random.Generator, rounds: int) -> Iterator[Row]:
    """Test with the number of queries that `--detect` names."""
    for difference, spread in ((0.05, 0.2), (0.02, 0.1), (0.1, 0.3), (0.3, 0.5)):
        queries = of.compute_queries_needed(difference, spread) or 0
        rows = random.normal(difference, spread, (rounds, queries))
        power = float((run_t_test(rows) <= 0.05).mean())
        yield Row(f"power at --detect {difference}, spread {spread}: {queries} queries", 0.8, 0.02, power)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=4_000)
    parser.add_argument("--seed", type=int, default=42)
    options = parser.parse_args()
    random = np.random.default_rng(options.seed)
    rows = [
        *measure_levels(random, options.rounds),
        *measure_coverage(random, options.rounds),
        *measure_icc(random),
        *measure_noise(random),
        *measure_power(random, options.rounds),
    ]
    print("| simulation | promised | found | |\n|---|---|---|---|")
    broken = [row for row in rows if abs(row.found - row.promised) > row.within]
    for row in rows:
        print(f"| {row.about} | {row.promised:.3f} | {row.found:.3f} | {'no' if row in broken else ''} |")
    sys.exit(bool(broken))


if __name__ == "__main__":
    main()
