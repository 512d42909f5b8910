"""Replicates: variances, chances and numbers of queries, beside brute force, known values and simulations."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from goodgain.analysis.comparing import replicates as of
from goodgain.analysis.comparing.comparison_notes import describe_dependence
from goodgain.statistics.randomisation_test import run_randomisation_test
from goodgain.statistics.statistical_tests import Matrix, bootstrap_interval, run_t_test
from tests.support.counts import how_many


def draw(random: np.random.Generator, queries: int, runs: int, icc: float) -> Matrix:
    """Draw replicates whose variance between queries is icc and within queries 1 - icc."""
    of_queries = random.normal(0, math.sqrt(icc), queries)
    return of_queries + random.normal(0, math.sqrt(1 - icc), (runs, queries))


def drop(random: np.random.Generator, values: Matrix) -> Matrix:
    """Drop some runs of some queries, never the first run."""
    lost = random.random(values.shape) < 0.4
    lost[0] = False
    return np.where(lost, np.nan, values)


def test_variances_equal_an_analysis_of_variance_by_hand_with_unequal_numbers_of_runs() -> None:
    random = np.random.default_rng(1)
    for _ in range(50):
        values = drop(random, draw(random, 7, 4, 0.5))
        groups = [[Fraction(x) for x in column if math.isfinite(x)] for column in values.T]
        every = [x for group in groups for x in group]
        n, q = len(every), len(groups)
        if n == q:
            continue
        means = [sum(group) / len(group) for group in groups]
        grand = sum(every) / n
        msb = sum(len(g) * (m - grand) ** 2 for g, m in zip(groups, means, strict=True)) / (q - 1)
        msw = sum((x - m) ** 2 for g, m in zip(groups, means, strict=True) for x in g) / (n - q)
        n0 = (n - Fraction(sum(len(g) ** 2 for g in groups), n)) / (q - 1)
        between = max(Fraction(0), (msb - msw) / n0)
        found = of.measure_spread(values)
        assert found.within == pytest.approx(float(msw), rel=1e-12)
        assert found.between == pytest.approx(float(between), rel=1e-9, abs=1e-12)
        assert found.icc == pytest.approx(float(between / (between + msw)), rel=1e-9, abs=1e-12)
        assert found.mean == pytest.approx(float(sum(means) / q), rel=1e-12)
        assert found.oracle_pick == pytest.approx(float(sum(max(g) for g in groups) / q), rel=1e-12)
        assert found.best is not None and found.worst is not None and found.worst <= found.best


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([[1.0, 2.0]], (None, None, None)),
        ([[1.0], [2.0]], (None, None, None)),
        ([[1.0, 1.0], [1.0, 1.0]], (0.0, 0.0, None)),
        ([[1.0, 0.0], [1.0, 0.0]], (0.0, 0.5, 1.0)),
    ],
    ids=["one run", "one query", "no variance", "no noise"],
)
def test_a_variance_that_does_not_exist_is_none(values: list[list[float]], expected: tuple[float | None, ...]) -> None:
    found = of.measure_spread(np.array(values))
    assert (found.within, found.between, found.icc) == expected


def test_the_best_run_of_a_measure_where_lower_is_better_is_the_lowest() -> None:
    found = of.measure_spread(np.array([[1.0, 3.0], [0.0, 2.0]]), higher_is_better=False)
    assert (found.best, found.worst, found.oracle_pick) == (1.0, 2.0, 1.0)


def test_icc_is_within_a_hundredth_at_4000_queries_with_unequal_runs() -> None:
    random = np.random.default_rng(2)
    for icc in (0.0, 0.1, 0.5, 0.9):
        found = of.measure_spread(drop(random, draw(random, 4_000, 8, icc))).icc
        assert found == pytest.approx(icc, abs=0.02)  # one draw; the mean of many is held to .01 in benchmarks


@pytest.mark.parametrize("k", [None, 1, 2, 3])
def test_chances_equal_counting_all_subsets(k: int | None) -> None:
    random = np.random.default_rng(3)
    for _ in range(100):
        passes, known = random.random((5, 6)) < 0.5, random.random((5, 6)) < 0.8
        columns = [
            [bool(p) for p, there in zip(*both, strict=True) if there] for both in zip(passes.T, known.T, strict=True)
        ]
        columns = [column for column in columns if column]
        drawn = k or min(map(len, columns))
        subsets = [[*itertools.combinations(column, drawn)] for column in columns if len(column) >= drawn]
        pairs = [[*itertools.combinations(column, 2)] for column in columns if len(column) >= 2]
        flips = of.count_flips(passes, known, k)
        expected = [
            [sum(map(any, chosen)) / len(chosen) for chosen in subsets],
            [sum(map(all, chosen)) / len(chosen) for chosen in subsets],
            [sum(a != b for a, b in chosen) / len(chosen) for chosen in pairs],
            [float(len(set(column)) == 2) for column in columns if len(column) >= 2],
        ]
        assert flips.k == drawn

        for value, by_hand in zip(flips[1:], expected, strict=True):
            assert value == (pytest.approx(sum(by_hand) / len(by_hand)) if by_hand else None)


def test_a_noise_floor_needs_twenty_queries_with_two_runs() -> None:
    values = np.random.default_rng(4).random((3, 20))
    assert of.measure_noise(values, np.full(20, 3)) is not None
    values[1:, 0] = np.nan
    assert of.measure_noise(values, np.full(20, 3)) is None


def test_the_noise_floor_is_that_of_the_formula() -> None:
    random = np.random.default_rng(5)
    values = drop(random, random.random((4, 40)))
    values[1, :] = random.random(40)  # two runs of each query at least
    others = random.integers(1, 5, 40).astype(float)
    found = of.measure_noise(values, others)
    columns = [column[np.isfinite(column)] for column in values.T]
    terms = [column.var(ddof=1) * (1 / r + 1 / len(column)) for column, r in zip(columns, others, strict=True)]
    assert found is not None
    assert found.sd == pytest.approx(math.sqrt(sum(terms)) / 40)
    assert found.floor == pytest.approx(1.6449 * found.sd, rel=1e-4)
    single = 1.96 * math.sqrt(2 * sum(column.var(ddof=1) for column in columns)) / 40
    assert found.two_single_runs == pytest.approx(single, rel=1e-4)


def test_runs_that_shift_on_all_queries_together_are_called_dependent() -> None:
    random = np.random.default_rng(6)
    alone = random.normal(0, 1, (5, 100))
    together = alone + np.array([[-1.0], [-0.5], [0.0], [0.5], [1.0]])
    found = [of.measure_noise(values, np.ones(100)) for values in (alone, together)]
    assert [noise is not None and noise.p_independent < 0.001 for noise in found] == [False, True]


def test_independent_runs_seldom_look_dependent() -> None:
    """Four measures of two systems of three runs. Without a correction over measures, 18 % of experiments had the sentence."""
    random = np.random.default_rng(3)
    said = []
    for _ in range(how_many(100, full=400)):
        runs = {}
        for system in ("old", "new"):
            common = random.choice([0.0, 0.25, 1.0], (3, 40))  # the measures of a run are correlated
            runs[system] = {f"m{k}": common + random.normal(0, 0.5, (3, 40)) for k in range(4)}
        said.append(any(describe_dependence(runs)))

    assert np.mean(said) <= 0.08
    shift = np.array([[0.0], [1.0], [2.0]])
    together = {system: {measure: values + shift for measure, values in run.items()} for system, run in runs.items()}
    (first, _) = describe_dependence(together)
    assert str(first).startswith("The runs of old may differ on many queries at once (m0, m1, m2, m3; p <= 0.05).")


def test_power_equals_that_of_statsmodels() -> None:
    power = pytest.importorskip("statsmodels.stats.power").TTestPower()
    for n, d in [(5, 1.0), (20, 0.3), (50, 0.4), (128, 0.25), (1000, 0.05)]:
        assert of.compute_power(d, 1.0, n) == pytest.approx(power.power(d, n, 0.05), abs=1e-9)


@pytest.mark.parametrize(
    ("difference", "spread", "queries"), [(0.25, 1.0, 128), (-0.25, 1.0, 128), (1.0, 0.5, 5), (1.0, 0.0, 2)]
)
def test_the_queries_needed_are_the_fewest(difference: float, spread: float, queries: int) -> None:
    assert of.compute_queries_needed(difference, spread) == queries
    if spread and queries > 2:
        assert of.compute_power(difference, spread, queries) >= 0.8 > of.compute_power(difference, spread, queries - 1)


def test_no_number_of_queries_shows_a_difference_of_zero() -> None:
    assert of.compute_queries_needed(0.0, 1.0) is None
    assert of.compute_queries_needed(1e-9, 1.0) is None


@pytest.mark.parametrize("queries", [2, 3, 10, 50, 1_000, 1_000_000])
def test_the_detectable_difference_has_a_power_of_80_percent(queries: int) -> None:
    difference = of.compute_detectable_difference(2.0, queries)
    assert difference is not None
    assert of.compute_power(difference, 2.0, queries) == pytest.approx(0.8, abs=1e-6)


def test_more_runs_do_not_help_where_queries_differ_too_much() -> None:
    differences = np.array([1.0, -1.0] * 10)
    assert of.compute_replicates_needed(0.1, differences, (0.1, 0.1), (3, 3)) is None


def test_the_runs_needed_give_a_power_of_80_percent() -> None:
    random, difference, queries, within = np.random.default_rng(7), 0.13, 200, (0.5, 0.7)
    differences = random.normal(0, math.sqrt(sum(within) / 3), queries)  # of three runs each: nothing but their noise
    runs = of.compute_replicates_needed(difference, differences, within, (3, 3))
    assert runs is not None and runs > 2
    power = [
        (run_t_test(random.normal(difference, math.sqrt(sum(within) / number), (4_000, queries))) <= 0.05).mean()
        for number in (runs - 1, runs)
    ]
    assert power[0] < 0.82 and power[1] > 0.78


@pytest.mark.parametrize("queries", [6, 10, 30])
def test_the_runs_needed_on_few_queries_are_those_of_the_t_test(queries: int) -> None:
    differences = np.resize([1.0, -1.0], queries)
    variance, noise = float(differences.var(ddof=1)), 0.85  # the share of reruns with three runs of each system
    within = (noise * variance * 3 / 2, noise * variance * 3 / 2)
    smallest = of.compute_detectable_difference(math.sqrt(variance), queries)
    assert smallest is not None
    runs = of.compute_replicates_needed(smallest / 2, differences, within, (3, 3))
    assert runs is not None
    power = [
        of.compute_power(smallest / 2, math.sqrt(sum(within) / number + (1 - noise) * variance), queries)
        for number in (runs - 1, runs)
    ]
    assert power[0] < 0.8 <= power[1]


def test_tests_over_means_of_queries_keep_their_level_and_pooling_does_not() -> None:
    random, means, pooled = np.random.default_rng(8), [], []
    for _ in range(400):
        a, b = draw(random, 50, 3, 0.5), draw(random, 50, 3, 0.5)
        means.append((a - b).mean(axis=0))
        pooled.append((a - b).ravel())
    for test in (run_t_test, lambda rows: run_randomisation_test(rows, resamples=999)):
        assert 0.025 <= (test(np.array(means)) <= 0.05).mean() <= 0.08
        assert (test(np.array(pooled)) <= 0.05).mean() > 0.12


def test_intervals_over_queries_cover() -> None:
    random = np.random.default_rng(9)
    for icc, runs in [(0.0, 3), (0.9, 2)]:
        rows = np.array([draw(random, 50, runs, icc).mean(axis=0) for _ in range(600)])
        low, high = bootstrap_interval(rows, resamples=999)
        assert 0.91 <= ((low <= 0) & (high >= 0)).mean() <= 0.98


def test_the_noise_floor_fails_five_of_a_hundred_equal_systems() -> None:
    random, failed = np.random.default_rng(10), 0
    for _ in range(1_000):
        hard = random.random(40)
        base, new = (random.random((3, 40)) < hard for _ in range(2))
        found = of.measure_noise(base.astype(float), np.full(40, 3.0))
        assert found is not None
        failed += bool(new.mean() < base.mean() - found.floor)
    assert 30 <= failed <= 75
