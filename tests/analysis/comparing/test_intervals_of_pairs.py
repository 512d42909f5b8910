"""The interval of a pair: it holds 0 exactly if the pair is not significant, and it is the test's own."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations, product

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import goodgain as gg
from goodgain.analysis.comparing.corrections import (
    add_intervals,
    add_verdicts,
    correct_pairs_by_holm,
    leave_out_incomparable,
)
from goodgain.analysis.comparing.pairs_table import Nothing, compare_pairs
from goodgain.statistics.intervals_of_pairs import invert_randomisation_test
from goodgain.statistics.randomisation_test import run_randomisation_test
from goodgain.statistics.statistical_tests import Settings, draw_signs
from tests.analysis.comparing.test_comparison import quietly
from tests.support.counts import how_many


def draw_worlds(number: int, systems: int, queries: int, seed: int) -> dict[str, np.ndarray]:
    """Values of systems on queries, by kind: tenths, thirds, mostly zeros, percent, numbers without ties."""
    random = np.random.default_rng(seed)
    shape = (systems, queries)
    worlds = {}

    for k in range(number):
        shift = random.choice([0.0, 0.3, 1.0]) * np.arange(systems)[:, None] / systems
        worlds[f"w{k}"] = [
            random.integers(0, 8, shape) / 10 + shift.round(1),
            random.integers(0, 5, shape) / 3 + shift.round(1),
            (random.random(shape) < 0.25 + shift / 2) * random.integers(1, 5, shape) / 10,
            (random.normal(0.3, 0.3, shape) + shift).round(2),
            random.normal(0.3, 0.4, shape) + shift,
        ][k % 5]

    return worlds


def compare_worlds(
    worlds: dict[str, np.ndarray], *, groups: int = 1, resamples: int = 9_999, alpha: float = 0.05
) -> gg.Comparison:
    systems, queries = next(iter(worlds.values())).shape
    names = [(f"q{query:02}", f"s{system}") for system in range(systems) for query in range(queries)]
    outcomes = pl.DataFrame(names, schema=["query_id", "system"], orient="row")
    outcomes = outcomes.with_columns(**{name: pl.Series(values.ravel()) for name, values in worlds.items()})
    qrels = {f"q{query:02}": {"a": 1} for query in range(queries)}
    runs = {f"s{system}": {query: {"a": 1.0} for query in qrels} for system in range(systems)}
    members = pl.DataFrame({"query_id": [*qrels], "group": [f"g{k % groups}" for k in range(queries)]})
    return quietly(
        qrels, runs, "RR", outcomes=outcomes, resamples=resamples, alpha=alpha, groups=members if groups > 1 else None
    )


@pytest.mark.parametrize("seed", range(how_many(4, full=24)))
def test_0_is_in_the_interval_exactly_if_the_pair_is_not_significant(seed: int) -> None:
    systems, queries = (2, 3, 5)[seed % 3], (7, 8, 13, 30, 6, 20)[seed % 6]
    resamples, alpha = (9_999, 999, 1_999)[seed % 3], (0.05, 0.1, 0.2)[seed % 3]
    worlds = draw_worlds(20, systems, queries, seed)
    found = compare_worlds(worlds, groups=1 + seed % 2, resamples=resamples, alpha=alpha)
    pairs = found.pairs if found.groups is None else pl.concat([found.pairs, found.groups], how="diagonal")
    tested = pairs.drop_nulls("p_randomisation")
    assert {*tested["significant"]} == {True, False} or queries < 8

    for pair in tested.iter_rows(named=True):
        if pair["low"] is None:
            assert not pair["significant"] and pair["high"] is pair["level"] is None
            continue
        assert pair["significant"] == (not pair["low"] <= 0 <= pair["high"]), pair
        assert pair["low"] - 1e-12 <= pair["difference"] <= pair["high"] + 1e-12


def invert_by_counting(differences: Sequence[int], least_p: Fraction) -> tuple[Fraction, Fraction]:
    """The smallest and the largest true mean that no test of all ways to set the signs rejects, in whole numbers."""
    n = len(differences)
    ways = [*product((1, -1), repeat=n)]
    sums = [(sum(s * d for s, d in zip(signs, differences, strict=True)), sum(signs)) for signs in ways]
    total = sum(differences)
    candidates = {Fraction(total + value, n + plus) for value, plus in sums if n + plus}

    def is_rejected(mean: Fraction) -> bool:
        reached = sum(abs(value - mean * plus) >= abs(total - mean * n) for value, plus in sums)
        return Fraction(reached, len(ways)) <= least_p

    accepted = [mean for mean in candidates if not is_rejected(mean)]
    return min(accepted), max(accepted)


@given(st.lists(st.integers(-3, 5), min_size=6, max_size=8))
@settings(max_examples=how_many(8, full=40), deadline=None)
def test_an_end_is_the_last_true_mean_that_the_exact_test_does_not_reject(differences: list[int]) -> None:
    low, high = invert_randomisation_test(np.array([differences], dtype=float), np.array([1]))
    wanted = invert_by_counting(differences, Fraction(1, 20))
    assert [low[0], high[0]] == pytest.approx([float(end) for end in wanted], abs=1e-12)


@given(st.integers(14, 40), st.integers(0, 9))
@settings(max_examples=how_many(3, full=12), deadline=None)
def test_with_drawn_signs_the_test_of_a_mean_inside_does_not_reject_and_of_one_outside_does(n: int, seed: int) -> None:
    differences = np.random.default_rng(seed).normal(0.2, 1, size=(3, n))
    divisors = np.array([1, 2, 3])
    ends = invert_randomisation_test(differences, divisors, resamples=999, seed=seed)
    for end, outwards in zip(ends, (-1e-9, 1e-9), strict=True):
        inside, outside = (
            run_randomisation_test(differences - (end + shift)[:, None], resamples=999, seed=seed)
            for shift in (-outwards, outwards)
        )
        assert (divisors * inside > 0.05).all() and (divisors * outside <= 0.05).all()


@pytest.mark.parametrize("pairs", [1, 300])  # 300: the draws come in several blocks
def test_the_ends_are_those_of_all_draws_also_for_equal_systems_ties_and_other_levels(pairs: int) -> None:
    random = np.random.default_rng(pairs)
    differences = random.integers(-3, 4, (pairs, 11)) * random.choice([0, 1, 1, 1], (pairs, 1)) / 4
    divisors = random.integers(1, 30, pairs)
    low, high = invert_randomisation_test(differences, divisors)

    turned = np.array([*product([0, 1], repeat=11)][1:-1])  # a row per draw: 1 for the queries with the other sign
    mean_of_turned = differences @ turned.T / turned.sum(axis=1)
    mean_of_others = differences @ (1 - turned).T / (11 - turned.sum(axis=1))
    lows = np.sort(np.minimum(mean_of_turned, mean_of_others))
    highs = np.sort(np.maximum(mean_of_turned, mean_of_others))
    for row, divisor in enumerate(divisors.tolist()):
        rank = int(Fraction("0.05") * 2**11 / divisor)
        place = rank - 2  # the draw that turns all queries is as extreme for every true mean, and comes first
        ends = (lows[row, place], highs[row, -1 - place])
        assert (low[row], high[row]) == pytest.approx(ends, abs=1e-12)


@pytest.mark.parametrize(("queries", "has_interval"), [(5, False), (6, True)])
def test_fewer_than_6_queries_have_no_interval_and_the_table_says_why(queries: int, has_interval: bool) -> None:
    found = compare_worlds({"solved": np.array([np.zeros(queries), np.arange(1.0, queries + 1)])})
    (pair,) = found.pairs.filter(measure="solved").iter_rows(named=True)
    assert (pair["low"] is not None) == (pair["level"] is not None) == has_interval
    assert ("too few to reject any difference" in found.to_text()) != has_interval


def test_each_interval_has_the_level_at_which_holms_method_decides_its_pair() -> None:
    values = np.tile(np.array([1.0, 2.0, 3.0, 4.0]), 5)
    found = compare_worlds({"solved": np.array([0 * values, values, values + np.resize([0.5, -0.5, 0], 20)])})
    solved = found.pairs.filter(measure="solved")
    assert solved["significant"].to_list() == [True, True, False] and solved["level"].to_list() == [0.95] * 3
    assert found.pairs.filter(measure="RR")["level"].to_list() == pytest.approx([1 - 0.05 / 3] * 3)  # all are equal
    levels = [
        cell.text for cell in list(zip(*found.tables()[1].rows, strict=True))[found.tables()[1].header.index("level")]
    ]
    assert levels == ["98.3 %"] * 3 + ["95 %"] * 3


def test_an_end_is_not_printed_as_0_unless_0_is_inside() -> None:
    found = compare_worlds({"solved": np.array([np.zeros(12), np.full(12, 2e-5)])})
    (pair,) = found.pairs.filter(measure="solved").iter_rows(named=True)
    assert pair["significant"] and "+2e-05, +2e-05" in found.to_text()


def find_p_by_counting(differences: np.ndarray, signs: np.ndarray, stops: Sequence[int]) -> float:
    """p of one pair: the first stop after which 20 draws are as far from 0 as observed, or the last stop."""
    observed = abs(float(differences.sum())) - 1e-12 * np.abs(differences).sum()
    is_far = [bool(abs(draw @ differences) >= observed) for draw in signs]
    for stop in stops:
        if sum(is_far[:stop]) >= 20 or stop == stops[-1]:
            return float((1 + sum(is_far[:stop])) / (1 + stop))
    raise AssertionError


@pytest.mark.parametrize("seed", range(how_many(3, full=12)))
def test_a_pair_stops_once_20_signs_are_as_far_and_all_pairs_share_the_signs(seed: int) -> None:
    random = np.random.default_rng(seed)
    values = random.integers(-3, 5, (40, 30)) / 3 + random.choice([0, 0.2, 1], (40, 1))
    values *= 10.0 ** random.integers(-200, 200, (40, 1))
    p = run_randomisation_test(values, seed=seed, resamples=2_345, first=99)

    signs = np.concatenate([*draw_signs(30, 40, seed=seed, resamples=2_345)])
    assert p.tolist() == [find_p_by_counting(row, signs, [99, 999, 2_345]) for row in values]
    assert p.max() > 0.2 and p.min() < 0.001


@pytest.mark.parametrize("seed", range(how_many(4, full=40)))
def test_pairs_that_stop_early_have_intervals_that_agree_with_their_verdict(seed: int) -> None:
    """55 pairs: the first 99 signs cannot decide a pair, so pairs draw up to 20,000."""
    systems, queries = 11, (9, 12, 20, 30)[seed % 4]
    worlds = draw_worlds(5, systems, queries, seed)
    worlds["apart"] = worlds["w0"] + np.arange(systems)[:, None]
    names, places = [f"s{k}" for k in range(systems)], [*combinations(range(systems), 2)]
    nothing = Nothing([], [], np.ones((systems, queries), bool))
    options = Settings(resamples=99)
    tested = compare_pairs(worlds, dict.fromkeys(worlds, "up"), names, places, options, nothing, 20_000)
    corrected = correct_pairs_by_holm(leave_out_incomparable(tested, {}))
    pairs = add_intervals(add_verdicts(corrected, 0.05), names, {None: worlds}, options, 20_000)

    for pair in pairs.iter_rows(named=True):
        if pair["low"] is None:
            assert not pair["significant"]
        else:
            assert pair["significant"] == (not pair["low"] <= 0 <= pair["high"]), pair
    assert pairs.get_column("significant").any() or queries < 12
