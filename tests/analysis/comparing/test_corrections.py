"""Corrections of verdicts: over all measures by the largest statistic, and over all pairs by the randomised Tukey test."""

from __future__ import annotations

import re
from itertools import combinations, permutations, product

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import goodgain as gg
from goodgain.statistics.joint_tests import (
    compute_chance_of_decision,
    run_largest_statistic_test,
    run_randomised_tukey_test,
)
from goodgain.statistics.randomisation_test import run_randomisation_test
from tests.analysis.comparing.test_comparison import quietly
from tests.analysis.comparing.test_intervals_of_pairs import draw_worlds
from tests.support.command import run_command
from tests.support.counts import how_many
from tests.support.tables import ROOT


def compare_values(worlds: dict[str, np.ndarray], *, groups: int = 1, **options: object) -> gg.Comparison:
    """Compare systems on outcomes. NaN in a world is a query without a value. The measure of the comparison is constant."""
    systems, queries = next(iter(worlds.values())).shape
    names = [(f"q{query:02}", f"s{system}") for system in range(systems) for query in range(queries)]
    outcomes = pl.DataFrame(names, schema=["query_id", "system"], orient="row")
    outcomes = outcomes.with_columns(**{name: pl.Series(values.ravel()) for name, values in worlds.items()})
    qrels = {f"q{query:02}": {"a": 1} for query in range(queries)}
    runs = {f"s{system}": {query: {"a": 1.0} for query in qrels} for system in range(systems)}
    if groups > 1:
        options["groups"] = pl.DataFrame({"query_id": [*qrels], "group": [f"g{k % groups}" for k in range(queries)]})
    return quietly(qrels, runs, "RR", outcomes=outcomes.fill_nan(None), **options)


def step_down_by_counting(rows: list[list[int]]) -> list[float]:
    """Westfall and Young's step-down p of each row from all ways to set the signs of the queries, in whole numbers."""
    ways = [*product((1, -1), repeat=len(rows[0]))]
    squares = [max(1, sum(value * value for value in row)) for row in rows]

    def statistic(k: int, signs: tuple[int, ...]) -> tuple[int, int]:
        return sum(s * d for s, d in zip(signs, rows[k], strict=True)) ** 2, squares[k]

    def is_at_least(a: tuple[int, int], b: tuple[int, int]) -> bool:
        return a[0] * b[1] >= b[0] * a[1]

    observed = [statistic(k, ways[0]) for k in range(len(rows))]
    order = sorted(range(len(rows)), key=lambda k: observed[k][0] / observed[k][1], reverse=True)
    p_values = [0.0] * len(rows)
    largest_p = 0.0
    for step, row in enumerate(order):
        rest = order[step:]
        reached = sum(any(is_at_least(statistic(k, signs), observed[row]) for k in rest) for signs in ways)
        largest_p = max(largest_p, reached / len(ways))
        p_values[row] = largest_p
    return p_values


@given(st.lists(st.lists(st.integers(-3, 4), min_size=6, max_size=6), min_size=1, max_size=4))
@settings(max_examples=how_many(10, full=60), deadline=None)
def test_p_over_measures_is_the_share_of_signs_whose_largest_statistic_reaches_as_far(rows: list[list[int]]) -> None:
    test = run_largest_statistic_test(np.array(rows, dtype=float) / 10)
    assert test.p == pytest.approx(step_down_by_counting(rows), abs=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_the_interval_of_one_difference_alone_has_the_rank_of_its_own_test(seed: int) -> None:
    differences = np.random.default_rng(seed).normal(0.3, 1.0, (1, 30))
    assert run_largest_statistic_test(differences).ranks.tolist() == [500]  # .05 of 10,000


def ranges_by_counting(values: np.ndarray) -> list[float]:
    """The largest minus the smallest sum of the systems, for all ways to permute the values of each query."""
    systems, queries = values.shape
    orders = [*permutations(range(systems))]
    ranges = []
    for way in product(orders, repeat=queries):
        sums = [sum(values[way[query][system], query] for query in range(queries)) for system in range(systems)]
        ranges.append(max(sums) - min(sums))
    return ranges


@given(st.lists(st.lists(st.integers(0, 9), min_size=3, max_size=3), min_size=2, max_size=4))
@settings(max_examples=how_many(5, full=20), deadline=None)
def test_the_randomised_tukey_test_is_that_of_all_permutations(queries: list[list[int]]) -> None:
    values = np.array(queries, dtype=float).T
    pairs = [*combinations(range(3), 2)]
    ranges = ranges_by_counting(values)
    test = run_randomised_tukey_test(values / 10, pairs, alpha=0.2)
    gaps = [abs(values[a].sum() - values[b].sum()) for a, b in pairs]
    assert test.p == pytest.approx([sum(r >= gap for r in ranges) / len(ranges) for gap in gaps], abs=1e-12)
    # An interval ends where the test begins to reject: at the largest range that more than alpha of the ways reach.
    wanted = max(r for r in ranges if sum(other >= r for other in ranges) > 0.2 * len(ranges)) / len(queries) / 10
    assert test.half == pytest.approx([wanted] * 3, abs=1e-12)


def test_drawn_permutations_give_the_exact_p_but_for_chance() -> None:
    values = np.random.default_rng(3).integers(0, 5, (3, 5)) + np.array([[0.0], [1.0], [2.0]])
    pairs = [*combinations(range(3), 2)]
    exact = run_randomised_tukey_test(values, pairs, resamples=9_999).p
    drawn = run_randomised_tukey_test(values, pairs, resamples=6_000).p
    assert drawn == pytest.approx(exact, abs=4 * np.sqrt(0.25 / 6_000))


@pytest.mark.parametrize("options", [{"correct_over": "measures"}, {"correction": "tukey"}], ids=["measures", "tukey"])
@pytest.mark.parametrize("seed", range(how_many(3, full=16)))
def test_0_is_in_the_interval_exactly_if_the_pair_is_not_significant(options: dict[str, str], seed: int) -> None:
    random = np.random.default_rng(seed)
    systems, queries = (2, 3, 4)[seed % 3], (8, 20, 13, 30)[seed % 4]
    worlds = draw_worlds(6, systems, queries, seed)
    worlds["w0"] = np.where(random.random((systems, queries)) < 0.2, np.nan, worlds["w0"])
    worlds["far"] = worlds["w4"] + np.arange(systems)[:, None]
    alpha, groups = (0.05, 0.2)[seed % 2], 1 + seed % 2
    found = compare_values(worlds, resamples=999, alpha=alpha, groups=groups, **options)
    pairs = found.pairs if found.groups is None else pl.concat([found.pairs, found.groups], how="diagonal")
    tested = pairs.drop_nulls("p_corrected")
    assert {*tested["significant"]} == {True, False}

    for pair in tested.iter_rows(named=True):
        assert pair["significant"] == (pair["p_corrected"] <= alpha)
        if pair["low"] is None:
            assert not pair["significant"] and pair["high"] is pair["level"] is None
            continue
        assert pair["significant"] == (not pair["low"] <= 0 <= pair["high"]), pair
        assert pair["low"] - 1e-9 <= pair["difference"] <= pair["high"] + 1e-9


def test_correcting_over_measures_never_finds_more_than_the_tests_alone_and_leaves_their_p() -> None:
    worlds = draw_worlds(5, 2, 20, 1)
    worlds["far"] = worlds["w4"] + np.array([[0.0], [1.0]])
    plain, corrected = compare_values(worlds), compare_values(worlds, correct_over="measures")
    assert plain.pairs["p_randomisation"].equals(corrected.pairs["p_randomisation"])
    assert (corrected.pairs["p_corrected"] >= corrected.pairs["p_randomisation"]).all()
    assert 0 < corrected.pairs["significant"].sum() <= plain.pairs["significant"].sum()
    assert corrected.signature["correct_over"] == "measures" and "correct_over" not in plain.signature
    assert "corrected by Westfall and Young's method over 7 tests: all pairs and measures" in str(corrected)


def test_equal_measures_are_corrected_once() -> None:
    """The largest statistic knows that measures agree; Holm's method over all would multiply p by their number."""
    values = np.random.default_rng(0).normal(size=(2, 12)) + np.array([[0.0], [1.0]])
    found = compare_values({f"w{k}": values for k in range(8)}, correct_over="measures")
    rows = found.pairs.filter(pl.col("measure") != "RR")
    assert rows["p_corrected"].to_list() == rows["p_randomisation"].to_list()


def test_tukeys_test_is_over_the_queries_that_all_systems_have() -> None:
    values = draw_worlds(5, 3, 20, 2)["w4"]
    values[2, :5] = np.nan
    rows = compare_values({"w": values}, correction="tukey").pairs.filter(measure="w")
    assert rows["queries"].to_list() == [15] * 3 and rows["level"].to_list() == [0.95] * 3
    half = rows["high"] - rows["difference"]
    assert half.to_numpy() == pytest.approx(np.full(3, half[0])) and half[0] > 0


def test_an_interval_of_tukeys_test_stays_within_what_the_measure_allows() -> None:
    qrels = {f"q{k}": {"a": 1} for k in range(3)}
    runs = {name: {query: {document: 1.0} for query in qrels} for name, document in (("none", "b"), ("all", "a"))}
    found = quietly(qrels, runs, "RR", correction="tukey", alpha=0.3)
    assert found.pairs.select("low", "high", "significant").rows() == [(1.0 - 1 / 3, 1.0, True)]


def test_two_corrections_at_once_are_refused() -> None:
    with pytest.raises(gg.InputError, match="are two corrections"):
        compare_values(draw_worlds(1, 2, 8, 0), correction="tukey", correct_over="measures")


def test_a_note_gives_the_chance_of_a_decision_among_equal_systems() -> None:
    def note(worlds: dict[str, np.ndarray], **options: object) -> list[str]:
        return [text for text in compare_values(worlds, **options).notes if "not corrected over" in text]

    worlds = draw_worlds(5, 2, 20, 3)
    (text,) = note(worlds)
    assert (
        "over the 6 measures asked for: two equal systems differ significantly in at least one of them with a chance of"
        in text
    )
    assert "correct_over='measures'" in text
    few = {name: worlds[name] for name in ("w0", "w1")}
    assert note(few) == note(worlds, correct_over="measures") == note(worlds, correction="tukey") == []
    # Equal measures are decided together: the chance is that of one test.
    same = dict.fromkeys(("a", "b", "c", "d"), worlds["w4"])
    assert "a chance of 5 %" in note(same)[0]


@pytest.mark.parametrize("seed", range(how_many(1, full=4)))
def test_the_chance_of_a_decision_is_the_share_of_samples_of_equal_systems_with_one(seed: int) -> None:
    random = np.random.default_rng(seed)
    common = random.normal(size=14)
    differences = np.array(
        [common, common + random.normal(size=14), random.normal(size=14), common + random.normal(size=14)]
    )
    numbers = [2, 2, 1, 1]  # two measures: one of two pairs, one of two pairs whose other pair has no test, ...
    chance = compute_chance_of_decision(differences, numbers)

    samples, decided = 400, 0
    for sample in range(samples):
        signs = random.choice([-1.0, 1.0], size=14)
        p_values = run_randomisation_test(differences * signs, seed=sample, resamples=999)
        decided += bool((p_values * np.array(numbers) <= 0.05).any())
    assert decided / samples == pytest.approx(chance, abs=4 * np.sqrt(chance * (1 - chance) / samples))


@pytest.mark.slow
@pytest.mark.parametrize("options", [{"correct_over": "measures"}, {"correction": "tukey"}], ids=["measures", "tukey"])
def test_equal_systems_are_decided_in_at_most_alpha_of_samples(options: dict[str, str]) -> None:
    samples, decided = how_many(40, full=200), 0
    for sample in range(samples):
        random = np.random.default_rng(sample)
        queries = random.normal(size=12)
        worlds = {
            f"w{k}": (queries + random.normal(size=(3, 12))).round(1)
            for k in range(4 if "correct_over" in options else 1)
        }
        decided += compare_values(worlds, resamples=999, alpha=0.1, **options).pairs["significant"].any()
    assert decided / samples <= 0.1 + 3 * np.sqrt(0.1 * 0.9 / samples)


@pytest.mark.parametrize("form", ["table", "table --full", "csv", "markdown"])
def test_the_command_prints_the_chance_and_what_detect_asks_in_every_form(form: str) -> None:
    folder = ROOT / "qrels_examples/two_agents"
    runs = [folder / "quick.run", folder / "late.run"]
    measures = ["-m", "nCG@6 nDCGG@6 SRR@6 nDCG@10", "--detect", ".05"]
    printed = run_command("compare", folder / "qrels.txt", *runs, *measures, "-o", *form.split())
    sentences = " ".join(f"{printed.stdout} {printed.stderr}".split())
    assert printed.returncode == 0
    assert re.search(
        r"not corrected over the 4 measures( asked for)?: two equal systems differ .* with a chance of \d+ %", sentences
    )
    assert re.search(r"a difference of [.\d]+ or more in nCG@6.*the 0.0500 of late against quick", sentences)


@pytest.mark.parametrize("options", [{}, {"correct_over": "measures"}, {"correction": "tukey"}], ids=str)
def test_a_comparison_that_tested_nothing_names_no_correction(options: dict[str, str]) -> None:
    """No system has searched the only query that is compared, so `SRR` has no value."""
    run = pl.DataFrame({"query_id": ["q", "q"], "iteration": [1, 2], "doc_id": ["a", "b"]})
    qrels = {"q": {"a": 2}, "p": {"a": 2}}
    compared = quietly(qrels, {"x": run, "y": run}, "SRR", only=["p"], **options)
    assert compared.pairs["p_randomisation"].is_null().all()
    assert "uncorrected" in str(compared) and "over 0 tests" not in str(compared)
