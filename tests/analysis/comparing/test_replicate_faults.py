"""Replicates where numbers were once wrong: names that meet, rounding, runs of other columns, options out of range."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import goodgain as gg
from goodgain.analysis.comparing.replicates import compute_detectable_difference, measure_noise, measure_spread
from goodgain.analysis.comparing.requirements import check_requirements
from goodgain.cli.named_runs import find_replicates
from goodgain.errors import InputError
from goodgain.statistics.randomisation_test import run_randomisation_test
from goodgain.statistics.statistical_tests import count_least_queries

pytestmark = pytest.mark.filterwarnings("ignore::goodgain.errors.GoodgainNotice")

Dicts = dict[str, dict[str, Any]]

_QRELS: Dicts = {f"q{k}": {"a": 3, "b": 2, "c": 0, "x": 0, "y": 0} for k in range(24)}


def _find(*doc_ids: str) -> Dicts:
    return {query_id: {doc: float(-rank) for rank, doc in enumerate(doc_ids)} for query_id in _QRELS}


def test_equal_values_by_query_have_no_residue() -> None:
    values = np.full((3, 30), 0.1)
    assert measure_spread(values)[1:4] == (0, 0, None)
    noise = measure_noise(values, np.full(30, 7.0))
    assert noise is not None
    assert not noise.floor
    assert noise.p_independent == 1


def test_a_family_has_only_lines_that_a_test_decides() -> None:
    """`CG>=baseline+noise` compares two numbers: with the p of its difference the other line was corrected for two."""
    rng = np.random.default_rng(3)
    runs = [{q: {str(rng.choice(["a", "b"])): 1.0} for q in _QRELS} for _ in range(6)]
    comparison = gg.compare(_QRELS, {"a": runs[:3], "b": runs[3:]}, "CG", baseline="a", resamples=99)
    alone = check_requirements(comparison, ["CG>=baseline-noise"], family="holm")[0]
    beside = check_requirements(comparison, ["CG>=baseline-noise", "CG>=baseline+noise"], family="holm")[0]
    assert alone.p is not None
    assert 0 < alone.p < 1
    assert alone.p == beside.p


@pytest.mark.parametrize("detect", [float("inf"), 1e300, True, "x", 0, float("nan")])
def test_detect_is_a_number_above_0(detect: Any) -> None:
    runs = {"a": [_find("a"), _find("b")], "b": [_find("b"), _find("c")]}
    with pytest.raises(InputError, match="give a difference above 0"):
        gg.compare(_QRELS, runs, "CG", detect=detect)


@pytest.mark.parametrize("alpha", [1e-300, 1e-17, 0.8, 0.999999])
def test_no_detectable_difference_at_an_extreme_alpha(alpha: float) -> None:
    assert compute_detectable_difference(1.0, 2, alpha=alpha) is None
    two = {query_id: _QRELS[query_id] for query_id in ("q0", "q1")}
    runs = {"a": {"q0": {"a": 1.0}}, "b": {"q0": {"b": 1.0}, "q1": {"a": 1.0}}}
    assert gg.compare(two, runs, "CG", alpha=alpha, resamples=9).detectable.is_empty()


def test_the_sentence_on_queries_names_those_of_each_measure() -> None:
    """GradedP has no value of a query without a grade among its results."""
    rng = np.random.default_rng(1)
    first, second = ({q: {str(d): 1.0 for d in rng.choice([*"abcxy"], 2)} for q in _QRELS} for _ in range(2))
    second["q3"] = {"unjudged": 1.0}
    notes = gg.compare(_QRELS, {"a": first, "b": second}, "CG GradedP@5", detect=0.1, resamples=99).notes
    (of_queries,) = (note for note in notes if "queries can show" in note)
    assert "24 queries can show" in of_queries
    assert "23 queries can show" in of_queries


@pytest.mark.parametrize(("kept", "now"), [("zero", "absent"), ("absent", "zero")])
def test_a_baseline_with_the_other_missing_is_refused(tmp_path: Path, kept: str, now: str) -> None:
    path, lacking = tmp_path / "kept.jsonl", {"q0": {"a": 1.0}}
    comparison = gg.compare(_QRELS, {"a": [_find("a"), lacking], "b": _find("b")}, "CG", missing=kept, resamples=9)
    comparison.write_baseline(path, "a")
    again = gg.compare(_QRELS, {"b": _find("b")}, "CG", baseline_file=path, missing=kept, resamples=9)
    assert again.means.get_column("mean").to_list() == comparison.means.get_column("mean").to_list()
    with pytest.raises(InputError, match=f"made with missing='{kept}'"):
        gg.compare(_QRELS, {"b": _find("b")}, "CG", baseline_file=path, missing=now)


def test_a_file_is_one_run_of_a_system_only_once(tmp_path: Path) -> None:
    """Its values counted twice, and the noise was too small."""
    for name in ("a.1.run", "a.2.run"):
        (tmp_path / name).write_text("q 1 a 1 1 t\n")
    with pytest.raises(InputError, match="twice"):
        find_replicates(f"{tmp_path}/a.*.run,{tmp_path}/a.1.run")
    with pytest.raises(InputError, match="before or after a comma"):
        find_replicates(f"{tmp_path}/a.1.run,")


@pytest.mark.parametrize("alpha", [0.001, 0.05, 0.0625, 0.1, 0.5])
def test_the_least_number_of_queries_is_the_first_on_which_the_test_can_reach_alpha(alpha: float) -> None:
    least = count_least_queries(alpha)
    p = {n: float(run_randomisation_test(np.ones((1, n)))[0]) for n in (least - 1, least) if n}
    assert [of <= alpha for of in p.values()] == [False, True][-len(p) :]


@pytest.mark.parametrize(("queries", "alpha"), [(2, 0.05), (5, 0.05), (3, 0.1)])
def test_too_few_queries_show_no_difference(queries: int, alpha: float) -> None:
    """Five queries that all improved have p = .0625: the note said that they show the difference, and that 3 do."""
    least = {0.05: 6, 0.1: 5}[alpha]
    qrels = {f"q{k}": {"a": 2, "b": 2} for k in range(queries)}
    gains = {query: {"a": 2.0, "b" if k else "z": 1.0} for k, query in enumerate(qrels)}  # CG 2, else 4
    comparison = gg.compare(qrels, {"A": {query: {"z": 1.0} for query in qrels}, "B": gains}, "CG", alpha=alpha)
    difference = 4 - 2 / queries
    assert comparison.pairs.select("difference", "p_randomisation", "verdict").row(0) == (
        pytest.approx(difference), 2 ** (1 - queries), "unclear",
    )  # fmt: skip

    expected = f"With fewer than {least} queries no difference can be significant at {alpha}."
    assert expected in comparison.notes
    assert not any("can show a difference" in note for note in comparison.notes)

    shown, needed = comparison.detectable.select("difference", "queries", "replicates").rows()
    assert (shown, needed) == ((None, queries, None), (pytest.approx(difference), least, None))


@pytest.mark.parametrize(("systems", "queries", "least"), [(2, 5, 6), (3, 6, 7), (8, 10, 11)])
def test_too_few_queries_are_told_although_the_differences_do_not_vary(systems: int, queries: int, least: int) -> None:
    """A constant difference in every query was unclear, and no note said why."""
    qrels = {f"q{k}": {f"d{n}": 2 for n in range(systems)} for k in range(queries)}
    runs = {f"s{k}": {query: {f"d{n}": 1.0 for n in range(k + 1)} for query in qrels} for k in range(systems)}
    comparison = gg.compare(qrels, runs, "NumGood")
    assert set(comparison.pairs["verdict"]) == {"unclear"}
    pairs = comparison.pairs.height
    in_each = f" in each of {pairs} pairs" if pairs > 1 else ""
    assert f"With fewer than {least} queries{in_each} no difference can be significant at 0.05." in comparison.notes

    more = {f"q{k}": {"d0": 2, "d1": 2} for k in range(6)}
    decided = gg.compare(more, {name: dict.fromkeys(more, run["q0"]) for name, run in [*runs.items()][:2]}, "NumGood")
    assert decided.pairs.item(0, "verdict") == "better"
    assert decided.detectable.is_empty()
