"""The tests of significance, held against SciPy, statsmodels and counting by hand."""

from __future__ import annotations

from itertools import product

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import goodgain as gg
from goodgain.statistics.randomisation_test import run_randomisation_test
from goodgain.statistics.statistical_tests import (
    bootstrap_interval,
    compute_effect_size,
    compute_studentized_range_sf,
    correct_by_holm,
    run_t_test,
    run_tukey_test,
    subtract_without_residue,
)
from tests.analysis.comparing.test_comparison import quietly
from tests.support.counts import how_many


def matrix(rows: int, queries: int, shift: float = 0.1) -> np.ndarray:
    """Return random differences, the same for the same shape in every test, whichever tests run before it."""
    return np.random.default_rng([rows, queries]).normal(shift, 0.3, size=(rows, queries))


def test_the_paired_t_test_is_scipys() -> None:
    a, b = np.split(matrix(12, 40), 2)
    b -= 0.1
    assert run_t_test(a - b) == pytest.approx(stats.ttest_rel(a, b, axis=1).pvalue, rel=1e-10)


@pytest.mark.parametrize("queries", [1, 2, 5, 13])
def test_with_few_queries_the_randomisation_test_is_exact_and_is_scipys(queries: int) -> None:
    differences = np.round(matrix(4, queries), 1)  # rounded, so that there are ties
    wanted = [scipys_p(row) for row in differences]
    assert run_randomisation_test(differences) == pytest.approx(wanted, abs=1e-12)


def test_with_many_queries_the_randomisation_test_is_scipys_but_for_chance() -> None:
    differences = matrix(5, 60, 0.06)
    wanted = np.array([scipys_p(row) for row in differences])
    # Of two independent estimates: ours counts both tails, SciPy's doubles the smaller one.
    chance = np.sqrt((wanted * (1 - wanted) + wanted * (2 - wanted)) / 9_999)
    assert (np.abs(run_randomisation_test(differences) - wanted) < 4 * chance + 2e-4).all()


def scipys_p(differences: np.ndarray) -> float:
    def mean(a: np.ndarray, b: np.ndarray, axis: int) -> np.ndarray:
        return (a - b).mean(axis=axis)

    zeros = np.zeros_like(differences)
    if len(differences) == 1:
        return 1.0  # SciPy wants two; both ways to set one sign are as far from 0
    found = stats.permutation_test(
        (differences, zeros), mean, permutation_type="samples", n_resamples=9_999, vectorized=True, rng=3
    )
    return float(found.pvalue)


@given(st.lists(st.integers(-3, 3), min_size=1, max_size=8))
def test_the_exact_p_is_the_share_of_signs_that_reach_as_far(differences: list[int]) -> None:
    ways = product((1, -1), repeat=len(differences))
    reached = [abs(sum(s * d for s, d in zip(signs, differences, strict=True))) for signs in ways]
    wanted = sum(total >= abs(sum(differences)) for total in reached) / len(reached)
    assert run_randomisation_test(np.array([differences], dtype=float) / 10)[0] == pytest.approx(wanted, abs=1e-12)


@given(st.integers(14, 40), st.integers(0, 5))
@settings(max_examples=how_many(2, full=5), deadline=None)
def test_turning_a_pair_round_changes_no_p(queries: int, seed: int) -> None:
    differences = np.random.default_rng(seed).normal(0.1, 1, size=(3, queries))
    assert run_randomisation_test(differences, seed=seed, resamples=199) == pytest.approx(
        run_randomisation_test(-differences, seed=seed, resamples=199)
    )
    assert run_t_test(differences) == pytest.approx(run_t_test(-differences))


def test_a_row_has_the_same_p_alone_and_among_others() -> None:
    differences = matrix(40, 500)
    assert run_randomisation_test(differences)[17] == run_randomisation_test(differences[17:18])[0]
    among, alone = bootstrap_interval(differences)[0][17], bootstrap_interval(differences[17:18])[0][0]
    assert among == pytest.approx(alone, rel=1e-12)


def test_the_smallest_p_of_the_randomisation_test_is_never_zero() -> None:
    assert run_randomisation_test(np.ones((1, 100)))[0] == 1 / 10_000


def test_the_bootstrap_interval_is_scipys_but_for_chance() -> None:
    values = matrix(1, 80)
    low, high = bootstrap_interval(values)
    wanted = stats.bootstrap((values[0],), np.mean, method="percentile", n_resamples=9_999, rng=5).confidence_interval
    width = wanted.high - wanted.low
    assert low[0] == pytest.approx(wanted.low, abs=0.03 * width)
    assert high[0] == pytest.approx(wanted.high, abs=0.03 * width)


def test_tukey_with_two_systems_is_the_paired_t_test() -> None:
    values = matrix(2, 30)
    assert run_tukey_test(values, [(1, 0)])[0] == pytest.approx(run_t_test(values[1:] - values[:1])[0], rel=1e-6)


def test_tukey_takes_the_residual_of_the_two_way_analysis_of_variance() -> None:
    import pandas as pd
    from statsmodels.formula.api import ols

    systems, queries = 4, 12
    values = matrix(systems, queries) + 6 * matrix(1, queries, 0.0)  # hard and easy queries
    names, questions = np.repeat(range(systems), queries), np.tile(range(queries), systems)
    long = pd.DataFrame({"value": values.ravel(), "system": names, "query": questions})
    fit = ols("value ~ C(system) + C(query)", data=long).fit()
    q = abs(values[3].mean() - values[0].mean()) / np.sqrt(fit.mse_resid / queries)
    wanted = stats.studentized_range.sf(q, systems, fit.df_resid)
    assert run_tukey_test(values, [(3, 0)])[0] == pytest.approx(wanted, rel=1e-6)


@pytest.mark.parametrize("systems", [2, 3, 10, 100])
@pytest.mark.parametrize("freedom", [2, 8, 100, 90_000])
def test_the_studentised_range_is_scipys(systems: int, freedom: int) -> None:
    q = np.array([0.01, 1, 2.5, 4, 6, 12])
    wanted = stats.studentized_range.sf(q, systems, freedom)
    assert compute_studentized_range_sf(q, systems, freedom) == pytest.approx(wanted, abs=5e-9)


@pytest.mark.slow
@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_holm_is_statsmodels(p: list[float]) -> None:
    from statsmodels.stats.multitest import multipletests

    assert correct_by_holm(np.array(p)) == pytest.approx(multipletests(p, method="holm")[1], abs=1e-15)


def test_a_test_that_does_not_exist_is_not_corrected_for() -> None:
    assert correct_by_holm(np.array([0.02, np.nan, 0.5])) == pytest.approx([0.04, np.nan, 0.5], nan_ok=True)


def test_differences_that_are_all_zero_have_p_1_and_no_effect() -> None:
    for queries in (1, 2, 50):
        zero = np.zeros((1, queries))
        assert run_t_test(zero)[0] == run_randomisation_test(zero)[0] == 1
        assert compute_effect_size(zero)[0] == 0
        assert [end[0] for end in bootstrap_interval(zero)] == [0, 0]
        assert run_tukey_test(np.ones((3, queries)), [(1, 0), (2, 0)]).tolist() == [1, 1]


def test_one_query_or_no_spread_has_no_t_test() -> None:
    assert np.isnan(run_t_test(np.array([[0.5]]))[0])
    assert np.isnan(run_t_test(np.full((1, 9), 0.1))[0])
    assert np.isnan(run_tukey_test(np.array([[0.1], [0.2], [0.3]]), [(1, 0)])[0])


def test_what_rounding_leaves_of_a_zero_is_no_difference() -> None:
    a = np.array([[0.1 + 0.2, 1e9 + 1e-7, 0.0, 1.0]])
    b = np.array([[0.3, 1e9, 0.0, 1.0 + 1e-9]])
    assert subtract_without_residue(a, b)[0, :3].tolist() == [0, 0, 0]
    assert subtract_without_residue(a, b)[0, 3] < 0


@pytest.mark.slow
def test_true_differences_of_34_systems_are_decided() -> None:
    qrels = {f"q{query}": {f"d{rank}": 1 for rank in range(34)} for query in range(20)}
    systems = {f"system{k}": {query: {f"d{rank}": 1.0 for rank in range(k + 1)} for query in qrels} for k in range(34)}
    comparison = gg.compare(qrels, systems, "R@34")
    assert set(comparison.pairs["verdict"]) == {"better"}
    assert comparison.signature["signs"] == 20 * 561 / 0.05
    with pytest.warns(
        gg.GoodgainNotice, match=r"with 9,998 random signs no .* among 561 pairs can be significant at 0\.05"
    ):
        few = gg.compare(qrels, systems, "R@34", resamples=9_998)
    assert set(few.pairs["verdict"]) == {"unclear"}


def test_the_pairs_of_all_groups_need_enough_random_signs() -> None:
    qrels = {f"q{query:02}": {"a": 3, "b": 2} for query in range(20)}
    systems = {name: {query: {name: 1.0} for query in qrels} for name in "cba"}
    # 3 pairs are few enough for 9,999 random signs at this level, and 3 pairs of 2 groups are not
    groups = pl.DataFrame({"query_id": [*qrels, *qrels], "group": ["x"] * 20 + ["y"] * 20})
    comparison = gg.compare(qrels, systems, "nDCG@1", groups=groups, alpha=0.0004)
    assert comparison.groups is not None
    assert set(comparison.groups["verdict"]) == {"better"}
    assert "signs" not in comparison.signature
    assert comparison.signature["signs_of_groups"] == 20 * 6 / 0.0004
    with pytest.warns(gg.GoodgainNotice, match="2 groups: with 9,998 random signs no difference among 6 pairs"):
        gg.compare(qrels, systems, "nDCG@1", groups=groups, alpha=0.0004, resamples=9_998)


def test_the_exact_test_in_pieces_is_the_exact_test() -> None:
    differences = np.round(matrix(1_200, 12), 1)  # 4,096 ways to set the signs of 1,200 rows do not fit in one piece
    in_pieces = run_randomisation_test(differences)
    assert in_pieces.tolist() == np.concatenate([run_randomisation_test(row[None, :]) for row in differences]).tolist()


def test_a_test_of_all_signs_is_exact_in_the_signature() -> None:
    qrels = {f"q{query}": {f"d{rank}": 1 for rank in range(33)} for query in range(14)}
    systems = {f"system{k}": {query: {f"d{rank}": 1.0 for rank in range(k + 1)} for query in qrels} for k in range(33)}
    assert gg.compare(qrels, systems, "R@33").signature["signs"] == "exact"


@pytest.mark.slow
def test_more_than_1000_pairs_have_no_intervals_and_a_note_says_so() -> None:
    """46 systems on 12 queries: 1,035 pairs. With a baseline the same systems have intervals."""
    qrels = {f"q{query}": {f"d{rank}": 1 for rank in range(46)} for query in range(12)}
    systems = {f"s{k}": {query: {f"d{rank}": 1.0 for rank in range(k + 1)} for query in qrels} for k in range(46)}
    every = quietly(qrels, systems, "R@46")
    assert every.pairs.height == 1_035
    assert every.pairs.select(pl.col("low", "high", "level").is_not_null().any()).row(0) == (False, False, False)
    assert any("1,035 pairs are too many for intervals (at most 1,000)" in warning for warning in every.warnings)

    some = quietly(qrels, systems, "R@46", baseline="s0")
    assert some.pairs.select(pl.col("low", "high").is_not_null().any()).row(0) == (True, True)
    assert not any("too many for intervals" in warning for warning in some.warnings)
