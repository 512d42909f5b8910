"""What a required line must not let pass, and what it must not check in silence."""

from __future__ import annotations

import polars as pl
import pytest

import goodgain as gg
from goodgain.analysis.comparing.requirements import check_requirements
from tests.support.tables import ROOT, in_one_search

FOLDER = ROOT / "qrels_examples" / "two_agents"
QRELS, LATE = FOLDER / "qrels.txt", FOLDER / "late.run"


def test_a_run_that_finds_nothing_in_any_query_fails_a_significant_line() -> None:
    labels = {f"q{k}": {"a": 3} for k in range(12)}
    scores = gg.evaluate(labels, {query: {"other": 1.0} for query in labels}, "RR")
    (outcome,) = check_requirements(scores, ["RR>=0.75 significant"])
    assert not outcome.holds and outcome.significant
    (alone,) = check_requirements(gg.evaluate({"q": {"a": 3}}, {"q": {"b": 1.0}}, "RR"), ["RR>=0.75 significant"])
    assert alone.holds and alone.p is None, "one query is not significant"


def test_each_run_of_evaluate_is_checked_by_its_own_queries() -> None:
    labels = {"a": {"x": 1, "y": 0}, "b": {"x": 1, "y": 0}, "c": {"x": 1, "y": 0}}
    one = gg.evaluate(labels, {"a": {"x": 1.0}, "b": {"y": 1.0}, "c": {"x": 1.0}}, "GradedP@1")
    other = gg.evaluate(labels, {"a": {"x": 1.0}, "b": {"unknown": 1.0}, "c": {"x": 1.0}}, "GradedP@1")
    first, second = check_requirements({"one": one, "other": other}, ["GradedP@1>=0.9"])
    assert (first.value, first.holds) == (pytest.approx(2 / 3), False)
    assert (second.value, second.holds) == (1.0, True)


def test_lines_on_sums_are_refused() -> None:
    scores = gg.evaluate(QRELS, LATE, "NumRet")
    with pytest.raises(gg.InputError, match="NumRet is a sum over queries"):
        check_requirements(scores, ["NumRet>=400"])


def test_a_bound_of_any_size_is_equal_up_to_rounding() -> None:
    labels = {"q": {"a": 110_000}}
    scores = gg.evaluate(labels, {"q": {"a": 1.0}}, "RankDCG@1")
    (outcome,) = check_requirements(scores, [f"RankDCG@1>={100_000 * 1.1!r}"])
    assert outcome.holds


@pytest.mark.filterwarnings("ignore::goodgain.GoodgainNotice")
def test_a_line_has_the_rel_and_the_outcomes_of_what_it_checks() -> None:
    labels = {f"q{k}": {"a": 1, "b": 1} for k in range(6)}
    half, whole = ({query: dict.fromkeys(found, 1.0) for query in labels} for found in ("a", "ab"))
    solved = pl.DataFrame(
        {"query_id": [*labels] * 2, "system": ["half"] * 6 + ["whole"] * 6, "solved": [0] * 6 + [1] * 6}
    )
    runs, options = {"half": half, "whole": whole}, {"baseline": "half", "outcomes": solved}
    found = gg.compare(labels, runs, "nCG", rel=1, require=["solved>=1", "nCG>=1"], **options)  # type: ignore[arg-type]  # options of any type
    outcomes = gg.check(found, ["nCG>=baseline", "solved>=baseline", "nCG(rel=1)>=1"])
    assert [(one.value, one.baseline, one.p) for one in outcomes] == [
        (1.0, 0.5, 0.03125),
        (1.0, 0.0, 0.03125),
        (1.0, None, 1.0),
    ]
    with pytest.raises(gg.InputError, match="nCG was not computed"):
        gg.check(found, "nCG(rel=2)>=0.1")
    alone = check_requirements(
        {"half": gg.evaluate(labels, half, "nCG", rel=1), "whole": found.scores["whole"]}, ["nCG>=0.5"]
    )
    assert [one.holds for one in alone] == [True, True]


@pytest.mark.filterwarnings("ignore::goodgain.GoodgainNotice")
def test_a_system_that_returned_nothing_fails_every_line() -> None:
    labels, run = {"q": {"a": 3}, "r": {"a": 3}}, in_one_search({"q": {"b": 1.0}, "r": {"b": 1.0}})
    compared = gg.compare(labels, {"old": run, "crashed": {}}, "SRR", baseline="old")
    for line in ("SRR<=baseline", "SRR<=0.3"):
        (outcome,) = check_requirements(compared, [line])
        assert not outcome.holds and "crashed has no value: a system returned no result" in str(outcome)
    (other,) = check_requirements(
        gg.compare(labels, {"crashed": {}, "new": run}, "SRR", baseline="crashed"), ["SRR<=baseline"]
    )
    assert not other.holds
    assert not check_requirements(gg.evaluate(labels, {}, "SRR"), ["SRR<=0.3"])[0].holds


@pytest.mark.filterwarnings("ignore::goodgain.GoodgainNotice")
def test_a_line_on_an_outcome_is_decided_also_for_a_system_that_returned_nothing() -> None:
    labels = {"q": {"a": 3}, "r": {"a": 3}}
    run = in_one_search({"q": {"b": 1.0}, "r": {"b": 1.0}})
    solved = pl.DataFrame(
        {"query_id": ["q", "r"] * 2, "system": ["old"] * 2 + ["new"] * 2, "solved": [0.0, 1.0, 1.0, 1.0]}
    )
    compared = gg.compare(labels, {"old": run, "new": {}}, "SRR", baseline="old", outcomes=solved)
    (outcome,) = check_requirements(compared, ["solved>=0.9"])
    assert outcome.holds and outcome.value == 1.0
