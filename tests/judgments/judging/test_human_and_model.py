"""Whether a model's labels lead to people's conclusions: the order of systems, and prediction-powered intervals."""

from __future__ import annotations

from itertools import permutations
from random import Random

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import kendalltau, ttest_1samp

import goodgain as gg
from goodgain.judgments.judging.conclusions_from_model_labels import (
    _tau_ap,
    _tau_top,
    compare_orders,
    compute_intervals,
    estimate_difference,
    estimate_means,
)
from tests.support.counts import how_many
from tests.support.tables import in_one_search

Labels = dict[str, dict[str, int]]


def make_systems(
    random: Random, systems: int, queries: int
) -> tuple[Labels, Labels, dict[str, dict[str, dict[str, float]]]]:
    """People's labels, a model's that differ from them here and there, and runs that find more or less of what is good."""
    people = {f"q{q}": {f"d{k}": random.choice([0, 0, 1, 2, 3, 4]) for k in range(12)} for q in range(queries)}
    model = {
        query: {doc: min(4, max(0, label + random.choice([-1, 0, 0, 0, 1]))) for doc, label in labels.items()}
        for query, labels in people.items()
    }
    runs = {}

    for s in range(systems):
        runs[f"s{s}"] = {
            query: {
                doc: float(-k)
                for k, doc in enumerate(
                    sorted(labels, key=lambda doc: -labels[doc] * random.random() * (1 + s))[: 3 + s]
                )
            }
            for query, labels in people.items()
        }

    return people, model, runs


def in_one_search_each(runs: dict[str, dict[str, dict[str, float]]]) -> dict[str, pl.DataFrame]:
    return {name: in_one_search(run) for name, run in runs.items()}


def tau_ap_by_hand(human: list[float], model: list[float]) -> float:
    """Yilmaz's tau-AP for orders without ties: of each system but the model's first, the share above it that belongs there."""
    order = sorted(range(len(model)), key=lambda k: -model[k])
    shares = [
        sum(human[above] > human[one] for above in order[:place]) / place for place, one in enumerate(order) if place
    ]
    return 2 * sum(shares) / len(shares) - 1


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=2, max_size=6), st.randoms())
def test_tau_ap_is_the_average_over_the_orders_of_tied_systems(pairs: list[tuple[int, int]], random: Random) -> None:
    """Of tied systems, none comes first because of the order of the runs."""
    human, model = zip(*pairs, strict=True)
    orders = [order for order in permutations(pairs) if sorted(order, key=lambda pair: -pair[1]) == list(order)]
    found = _tau_ap(np.array([*human, *model], dtype=float))
    if len(set(model)) == 1:
        assert found is None
        return
    by_hand = []

    for order in orders:
        shares = []
        for place, (one, _) in enumerate(order[1:], start=1):
            above = [0.5 if other == one else float(other > one) for other, _ in order[:place]]
            shares.append(sum(above) / place)
        by_hand.append(2 * sum(shares) / len(shares) - 1)

    assert found == pytest.approx(sum(by_hand) / len(by_hand))
    random.shuffle(pairs)
    human, model = zip(*pairs, strict=True)
    assert _tau_ap(np.array([*human, *model], dtype=float)) == pytest.approx(found)


def test_the_upper_half_of_an_odd_number_of_systems_has_the_one_in_the_middle() -> None:
    human, model = [5.0, 4.0, 3.0, 2.0, 1.0], [3.0, 2.0, 9.0, 1.0, 8.0]
    assert _tau_top(np.array([*human, *model])) == pytest.approx(-1 / 3)  # one of three pairs in the same order


@pytest.mark.slow
def test_the_order_of_systems_has_the_correlations_of_their_definitions() -> None:
    people, model, dicts = make_systems(Random(5), 8, 20)
    runs = in_one_search_each(dicts)
    found = compare_orders(people, model, runs, "CG")
    human, machine = found.means["human"].to_list(), found.means["model"].to_list()
    for name, mean in found.means.select("system", "human").iter_rows():
        assert mean == pytest.approx(gg.evaluate(people, runs[name], "CG")["CG"])
    assert human == sorted(human, reverse=True)
    assert found.tau == pytest.approx(kendalltau(human, machine).statistic)
    assert found.tau_top == pytest.approx(kendalltau(human[:4], machine[:4]).statistic)
    if len(set(machine)) == len(machine):
        assert found.tau_ap == pytest.approx(tau_ap_by_hand(human, machine))


@pytest.mark.slow
def test_a_measure_of_which_less_is_better_is_turned_round() -> None:
    people, model, dicts = make_systems(Random(7), 6, 10)
    runs = in_one_search_each(dicts)
    found = compare_orders(people, model, runs, "IterationsForAllGoodResults")
    assert found.means["human"].is_sorted()


def test_fewer_than_five_systems_are_refused_with_the_reason() -> None:
    people, model, runs = make_systems(Random(1), 4, 5)
    with pytest.raises(gg.InputError, match="the order of 4 systems is not compared"):
        compare_orders(people, model, runs, "CG")


def test_without_further_queries_the_interval_is_that_of_people_alone() -> None:
    random = np.random.default_rng(3)
    human = random.normal(0.2, 1, 40)
    intervals = compute_intervals(human, human + random.normal(0, 0.3, 40), np.array([]))
    interval = ttest_1samp(human, 0).confidence_interval(0.95)
    assert intervals.human == pytest.approx((human.mean(), interval.low, interval.high))
    assert intervals.powered == pytest.approx(intervals.human)
    assert intervals.weight == 0


def test_the_interval_is_that_of_its_formula() -> None:
    random = np.random.default_rng(4)
    h, f, more = random.normal(0, 1, 35), random.normal(0, 1, 35), random.normal(0.1, 1, 200)
    f = f + h
    intervals = compute_intervals(h, f, more)
    n, big = 35, 200
    weight = np.cov(h, f)[0, 1] / ((1 + n / big) * np.var(np.r_[f, more], ddof=1))
    weight = min(1.0, max(0.0, weight))
    theta = h.mean() + weight * (more.mean() - f.mean())
    error = (weight**2 * more.var(ddof=1) / big + (h - weight * f).var(ddof=1) / n) ** 0.5
    assert intervals.weight == pytest.approx(weight)
    assert intervals.powered[0] == pytest.approx(theta)
    assert (intervals.powered[2] - intervals.powered[1]) / 2 == pytest.approx(
        2.0322445 * error, rel=1e-6
    )  # t of 34 degrees


def test_a_model_that_knows_nothing_counts_nothing() -> None:
    human = np.array([0.0, 1.0] * 20)
    intervals = compute_intervals(human, -human, np.array([0.0, -1.0] * 50))
    assert intervals.weight == 0
    constant = compute_intervals(human, np.ones(40), np.ones(100))
    assert constant.powered == constant.human


@pytest.mark.parametrize("closeness", [0.0, 0.3, 1.0])
def test_the_interval_covers_what_it_states(closeness: float) -> None:
    """Of 2,000 rounds about 95 in 100 hold the true difference: a band of four standard errors around that."""
    rounds, covered, shorter = how_many(400, full=2_000), 0, 0
    random = np.random.default_rng(int(closeness * 10))
    for _ in range(rounds):
        truth = random.normal(0.1, 1, 330)
        model = 0.4 + closeness * truth + random.normal(0, 0.5, 330)  # biased: its mean is not that of people
        intervals = compute_intervals(truth[:40], model[:40], model[40:])
        covered += intervals.powered[1] <= 0.1 <= intervals.powered[2]
        shorter += intervals.powered[2] - intervals.powered[1] < intervals.human[2] - intervals.human[1]
    assert abs(covered / rounds - 0.95) < 4 * (0.95 * 0.05 / rounds) ** 0.5
    if closeness == 1.0:
        assert shorter > 0.95 * rounds


@pytest.mark.parametrize("shape", ["many zeros", "near the top", "even"])
def test_the_interval_of_one_systems_mean_covers_what_it_states(shape: str) -> None:
    """Values of a measure, from 0 to 1, under labels of a model that is too lenient and often wrong."""
    rounds, covered, biased = how_many(400, full=2_000), 0, 0
    random = np.random.default_rng(len(shape))
    for _ in range(rounds):
        if shape == "many zeros":
            people, mean = random.beta(2, 2, 300) * (random.random(300) < 0.6), 0.3
        else:
            people, mean = (random.beta(6, 2, 300), 0.75) if shape == "near the top" else (random.random(300), 0.5)
        model = np.clip(0.35 + 0.7 * people + random.normal(0, 0.15, 300), 0, 1)
        intervals = compute_intervals(people[:40], model[:40], model[40:])
        covered += intervals.powered[1] <= mean <= intervals.powered[2]
        biased += abs(model.mean() - mean) > 0.05

    assert abs(covered / rounds - 0.95) < (0.02 if rounds == 2_000 else 0.045)
    assert biased > 0.9 * rounds


def test_the_mean_of_a_system_is_corrected_by_peoples_labels() -> None:
    people, model, dicts = make_systems(Random(12), 1, 80)
    lenient = {query: {doc: min(4, label + 1) for doc, label in labels.items()} for query, labels in model.items()}
    run = in_one_search_each(dicts)["s0"]
    human = dict(list(people.items())[:40])
    found = estimate_means(human, lenient, run, "CG SRR@3")
    truth, raw = gg.evaluate(people, run, "CG"), gg.evaluate(lenient, run, "CG")
    estimate = found["CG"]
    assert list(found) == ["CG", "SRR@3"]
    assert estimate.human[0] == pytest.approx(gg.evaluate(human, run, "CG")["CG"])
    assert estimate.powered[1] <= truth["CG"] <= estimate.powered[2] < raw["CG"]


@pytest.mark.slow
def test_the_orders_have_intervals_over_queries() -> None:
    people, model, dicts = make_systems(Random(5), 8, 20)
    found = compare_orders(people, model, in_one_search_each(dicts), "CG")
    for name in ("tau", "tau_top", "tau_ap"):
        low, high = found.intervals[name] or (None, None)
        assert -1 <= low <= getattr(found, name) + 1e-9
        assert getattr(found, name) - 1e-9 <= high <= 1


def test_the_difference_of_two_systems_is_estimated_from_their_queries() -> None:
    people, model, dicts = make_systems(Random(11), 2, 80)
    runs = in_one_search_each(dicts)
    human = dict(list(people.items())[:40])
    found = estimate_difference(human, model, runs, "CG")
    one, other = (gg.evaluate(human, run, "CG")["CG"] for run in runs.values())
    assert (found.queries, found.further) == (40, 40)
    assert found.human[0] == pytest.approx(one - other)
    turned = estimate_difference(human, model, dict(reversed(runs.items())), "CG")
    assert turned.powered == pytest.approx(
        tuple(-value for value in (found.powered[0], found.powered[2], found.powered[1]))
    )


def test_fewer_than_thirty_queries_of_people_are_refused() -> None:
    people, model, runs = make_systems(Random(2), 2, 40)
    with pytest.raises(gg.InputError, match="both judged 29 queries; a valid interval needs 30"):
        estimate_difference(dict(list(people.items())[:29]), model, runs, "CG")


def test_a_document_that_people_left_out_is_named() -> None:
    people, model, runs = make_systems(Random(2), 2, 40)
    doc = next(iter(runs["s0"]["q3"]))
    del people["q3"][doc]
    with pytest.raises(gg.InputError, match=f"people did not judge document '{doc}' of query 'q3'"):
        estimate_difference(people, model, runs, "CG")


@pytest.mark.slow
def test_equal_labels_make_equal_orders() -> None:
    people, _, dicts = make_systems(Random(9), 5, 30)
    runs = in_one_search_each(dicts)
    found = compare_orders(people, people, runs, "CG")
    assert found.tau == pytest.approx(1.0)
    assert found.tau_ap == 1.0


@pytest.mark.parametrize("several", ["SRR@3 CG@3", "CG@1-3", ["SRR@3", "CG@3"]])
def test_several_measures_are_refused(several: str | list[str]) -> None:
    people, model, runs = make_systems(Random(2), 2, 40)
    for compare_on in (compare_orders, estimate_difference):
        with pytest.raises(gg.MeasureError, match=r"measures, but systems are compared on one\. Give one measure"):
            compare_on(people, model, runs, several)


def test_a_list_of_one_measure_is_that_measure() -> None:
    people, model, dicts = make_systems(Random(2), 2, 40)
    runs = in_one_search_each(dicts)
    assert estimate_difference(people, model, runs, ["CG"]) == estimate_difference(people, model, runs, "CG")


def test_a_query_without_a_value_is_named_with_the_measure_and_the_system() -> None:
    people, model, runs = make_systems(Random(2), 5, 40)
    runs["s1"]["q7"] = {"nobody graded this": 1.0}
    with pytest.raises(gg.MeasureError, match="GradedP@2 has no value for the system 's1' in query 'q7'"):
        compare_orders(people, model, runs, "GradedP@2")
    two = {name: runs[name] for name in ("s0", "s1")}
    human = {query: labels for query, labels in people.items() if query != "q7"}
    with pytest.raises(gg.MeasureError, match="GradedP@2 has no value for the system 's1' in query 'q7'"):
        estimate_difference(human, model, two, "GradedP@2")


@pytest.mark.parametrize("confidence", [95, 1, 0, -0.5, float("nan"), "x", None, True])
def test_a_confidence_is_above_0_and_below_1(confidence: object) -> None:
    people, model, runs = make_systems(Random(2), 2, 40)
    with pytest.raises(gg.InputError, match=r"confidence=.*: give a number above 0 and below 1"):
        estimate_difference(people, model, runs, "CG", confidence=confidence)  # type: ignore[arg-type]  # a text is one of them
