"""How often intervals hold the true mean, and how often the test of two equal systems is significant.

    python benchmarks/intervals.py [SAMPLES]

Coverage is of the true mean, at 95 %. The level is that of two systems whose values have the same distribution, so their
differences are symmetric. A quarter of the samples serves for the table of corrections. The tables of benchmarks/README.md are from
4,000 samples, that of corrections from 6,000 (`intervals.py 24000`).
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from itertools import combinations

import numpy as np

from goodgain.statistics.intervals_of_means import Values, choose_method, find_intervals_of_means
from goodgain.statistics.intervals_of_pairs import invert_randomisation_test
from goodgain.statistics.joint_tests import (
    compute_chance_of_decision,
    run_largest_statistic_test,
    run_randomised_tukey_test,
)
from goodgain.statistics.randomisation_test import run_randomisation_test
from goodgain.statistics.statistical_tests import Settings, bootstrap_interval

QUERIES = (8, 12, 25, 50)
RESAMPLES = 1_999
FEW_RESAMPLES = 499  # for tests of many measures
MEASURES = 6
ALPHA = 0.05
Draw = Callable[[np.random.Generator, tuple[int, int]], np.ndarray]

#: Differences: how they are drawn, and their true mean.
DIFFERENCES: dict[str, tuple[Draw, float]] = {
    "normal": (lambda random, shape: random.normal(0.1, 0.25, shape), 0.1),
    "skewed": (lambda random, shape: random.exponential(0.25, shape) - 0.15, 0.1),
    "60 % zeros": (lambda random, shape: (random.random(shape) < 0.4) * random.normal(0.1, 0.3, shape), 0.04),
    "steps of .25": (lambda random, shape: random.integers(-2, 4, shape) / 4, 0.125),
}
#: Values of one query and system; two systems that draw from the same values are equal.
VALUES: dict[str, Draw] = {
    "normal": lambda random, shape: random.normal(0.5, 0.2, shape),
    "skewed": lambda random, shape: random.beta(0.5, 2.0, shape),
    "60 % zeros": lambda random, shape: (random.random(shape) < 0.4) * random.random(shape),
    "steps of .25": lambda random, shape: random.integers(0, 5, shape) / 4,
}
#: Values of one system, and their true mean.
MEANS: dict[str, tuple[Draw, float]] = {
    "skewed": (lambda random, shape: random.beta(0.5, 2.0, shape), 0.2),
    "60 % zeros": (lambda random, shape: (random.random(shape) < 0.4) * random.random(shape), 0.2),
    "steps of .25": (lambda random, shape: random.integers(0, 5, shape) / 4, 0.5),
    "0 or 1": (lambda random, shape: (random.random(shape) < 0.8).astype(float), 0.8),
}


def draw(kind: Draw, samples: int, queries: int, seed: int) -> np.ndarray:
    return kind(np.random.default_rng([seed, queries]), (samples, queries))


def measure_coverage(ends: tuple[np.ndarray, np.ndarray], mean: float) -> float:
    low, high = ends
    return float(((low <= mean + 1e-12) & (high >= mean - 1e-12)).mean())


def print_pairs(samples: int) -> bool:
    """Print the tables of pairs. Return whether the inversion covers as the bootstrap or better, and the level is at most .055."""
    is_good = True
    print("| queries | differences | inversion | bootstrap | level of the test |")
    print("|---:|---|---:|---:|---:|")
    for queries in QUERIES:
        for seed, (kind, (draw_differences, mean)) in enumerate(DIFFERENCES.items()):
            differences = draw(draw_differences, samples, queries, seed)
            ends = invert_randomisation_test(differences, np.ones(samples, dtype=int), resamples=RESAMPLES)
            inversion = measure_coverage(ends, mean)
            bootstrap = measure_coverage(bootstrap_interval(differences, resamples=RESAMPLES), mean)
            values = draw(VALUES[kind], samples, queries, seed)
            of_other = draw(VALUES[kind], samples, queries, seed + 100)
            p = run_randomisation_test(values - of_other, resamples=RESAMPLES)
            level = float((p <= ALPHA).mean())
            is_good &= inversion >= bootstrap and level <= 0.055
            print(f"| {queries} | {kind} | {inversion:.3f} | {bootstrap:.3f} | {level:.3f} |")
    return is_good


def print_means(samples: int) -> bool:
    """Print the table of means. Return whether each interval covers as the bootstrap or better."""
    is_good = True
    print("| queries | values | interval of a mean | bootstrap |")
    print("|---:|---|---:|---:|")
    for queries in QUERIES:
        for seed, (kind, (draw_values, mean)) in enumerate(MEANS.items()):
            values = draw(draw_values, samples, queries, seed)
            is_0_or_1 = kind == "0 or 1"
            if choose_method([queries]) == "bootstrap" and not is_0_or_1:
                continue
            ends = find_intervals_of_means([Values(row, 0.0, 1.0, is_0_or_1) for row in values], Settings(), "t")
            low, high = np.array(ends, dtype=float).T
            covered = measure_coverage((low, high), mean)
            bootstrap = measure_coverage(bootstrap_interval(values, resamples=RESAMPLES), mean)
            is_good &= covered >= bootstrap
            print(f"| {queries} | {kind} | {covered:.3f} | {bootstrap:.3f} |")
    return is_good


def draw_measures(kind: str, systems: int, queries: int, sample: int) -> np.ndarray:
    """Values of `MEASURES` measures of equal systems: measure, system, query. Two measures agree on half of the values."""
    random = np.random.default_rng([sample, queries])
    shape = (MEASURES, systems, queries)
    common, own = VALUES[kind](random, shape[1:]), VALUES[kind](random, shape)
    return np.where(random.random(shape) < 0.7, common, own)


def print_corrections(samples: int) -> bool:
    """Print how often equal systems differ significantly at least once.

    Return whether the corrections keep to .05, within three standard errors.
    """
    is_good = True
    print("| queries | values | each measure alone | its computed chance | over measures | randomised Tukey |")
    print("|---:|---|---:|---:|---:|---:|")
    for queries in QUERIES:
        for kind in VALUES:
            alone, over_measures, tukey = 0, 0, 0
            chances = []
            for sample in range(samples):
                values = draw_measures(kind, 4, queries, sample)
                differences = values[:, 1] - values[:, 0]
                options = {"seed": sample, "resamples": FEW_RESAMPLES}
                alone += bool((run_randomisation_test(differences, **options) <= ALPHA).any())
                over_measures += bool((run_largest_statistic_test(differences, **options).p <= ALPHA).any())
                if sample % 10 == 0:
                    chances.append(compute_chance_of_decision(differences, [1] * MEASURES, **options))
                pairs = list(combinations(range(4), 2))
                tukey += bool((run_randomised_tukey_test(values[0], pairs, **options).p <= ALPHA).any())
            levels = [number / samples for number in (over_measures, tukey)]
            is_good &= max(levels) <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / samples)
            cells = [alone / samples, float(np.mean(chances)), *levels]
            print(f"| {queries} | {kind} | {' | '.join(f'{cell:.3f}' for cell in cells)} |", flush=True)
    return is_good


def main() -> None:
    samples = int(sys.argv[1]) if len(sys.argv) > 1 else 4_000
    if not all([print_pairs(samples), print_means(samples), print_corrections(samples // 4)]):
        sys.exit("a cell covers less than the bootstrap, or a level is too high")


if __name__ == "__main__":
    main()
