"""The gate: `goodgain compare --require`, as a continuous integration job meets it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import ir_measures
import polars as pl
import pytest
from scipy import stats

import goodgain as gg
from goodgain import compare
from goodgain.analysis.comparing.required_lines import parse_requirement
from goodgain.analysis.comparing.requirements import check_requirements
from goodgain.cli.named_runs import name_systems
from goodgain.errors import InputError, MeasureError
from tests.analysis.comparing.test_comparison import agents_that_differ, many, quietly

#: Lines, and what is read of them.
LINES = json.loads(Path(__file__).with_name("lines.json").read_text(encoding="utf-8"))


def test_a_significant_difference_is_called_so() -> None:
    labels, runs = many()
    outcome = check_requirements(
        compare(labels, runs, "SRR@3", baseline="wordy"), [parse_requirement("SRR@3<baseline")]
    )[0]
    assert outcome.holds and outcome.significant and outcome.p == 1 / 10_000
    number = check_requirements(compare(labels, runs, "SRR@3"), [parse_requirement("SRR@3<=0.1")])
    told = [(one.system, one.holds, one.significant) for one in number]
    assert told == [("wordy", False, True), ("lean", True, True)]


def test_without_a_line_on_the_baseline_an_experiment_checks_all_systems() -> None:
    labels, runs = many()
    x = gg.Experiment(labels, runs)
    assert [outcome.system for outcome in x.check(["SRR@3<=1", "searched>=0.98"])] == ["wordy", "lean"] * 2
    with pytest.raises(AssertionError, match="wordy has"):
        x.check("SRR@3<=0.1")
    assert [outcome.system for outcome in x.check("SRR@3<=baseline")] == ["lean"]


def test_low_coverage_stands_beside_the_p_of_a_line() -> None:
    labels, runs = many(20)
    few = {query: dict(list(docs.items())[:5]) for query, docs in labels.items()}
    outcome = check_requirements(quietly(few, runs, "SRR@3"), [parse_requirement("SRR@3<=0.1")])[0]
    assert outcome.low_coverage and ", low coverage)" in str(outcome)


def test_a_measure_without_a_value_never_passes() -> None:
    labels, runs = many(3)
    nothing = ir_measures.define_byquery(lambda qrels, run: float("nan"), name="Nothing")
    found = quietly(labels, runs, [nothing])
    line = parse_requirement("CG<=1e9")
    outcome = check_requirements(found, [type(line)("Nothing<=1", nothing, "<=", 1.0)])[0]
    assert not outcome.holds and "no value" in str(outcome)


@pytest.mark.parametrize("text", LINES["not a requirement"])
def test_a_line_of_another_form_is_one_sentence(text: str) -> None:
    with pytest.raises(InputError, match=r"is not a requirement: at character \d+, expected .* Write a line such as"):
        parse_requirement(text)


@pytest.mark.parametrize("text, bound, factor, offset, significant", LINES["text, bound, factor, offset, significant"])
def test_each_form_of_a_line(text: str, bound: float | None, factor: float, offset: float, significant: bool) -> None:
    line = parse_requirement(text)
    assert str(line.measure) == "CG@3"
    assert (line.bound, line.factor, line.offset, line.significant) == (bound, factor, offset, significant)


@pytest.mark.parametrize("text, error", LINES["text, error"])
def test_an_error_in_a_line_says_where_and_what_was_expected(text: str, error: str) -> None:
    with pytest.raises(InputError, match=re.escape(error)):
        parse_requirement(text)


def test_a_line_with_a_margin_is_tested_against_the_shifted_baseline() -> None:
    labels, runs = many()
    comparison = compare(labels, runs, "SRR@3", baseline="wordy")
    means = dict(comparison.means.select("system", "mean").iter_rows())

    for text, bound in (
        ("SRR@3<=baseline-0.05", means["wordy"] - 0.05),
        ("SRR@3<=baseline*0.5", means["wordy"] * 0.5),
        ("SRR@3<=baseline+1", means["wordy"] + 1),
    ):
        (outcome,) = check_requirements(comparison, [text])
        assert outcome.bound == pytest.approx(bound)
        assert outcome.baseline == means["wordy"] and outcome.holds and outcome.p == 1 / 10_000
        assert f"the bound {bound:.4f} (baseline {means['wordy']:.4f})" in str(outcome)

    (exact,) = check_requirements(comparison, ["SRR@3<=baseline"])
    assert exact.p == comparison.pairs.item(0, "p_randomisation_holm")


def test_a_significant_line_fails_only_where_the_loss_is_significant() -> None:
    labels, runs = many()
    comparison = compare(labels, runs, "SRR@3", baseline="lean")
    assert [
        requirement.holds
        for requirement in check_requirements(comparison, ["SRR@3<=baseline", "SRR@3<=baseline significant"])
    ] == [
        False,
        False,
    ]
    labels, runs = agents_that_differ(5, 0, same_in=1)
    two = compare(labels, dict(reversed(runs.items())), "SRE@1", baseline=[*runs][1])
    plain, significant = check_requirements(two, ["SRE@1>=baseline", "SRE@1>=baseline significant"])
    assert (plain.holds, significant.holds, significant.p) == (False, True, 0.0625)


def test_scores_of_single_runs_are_checked_against_numbers() -> None:
    labels, runs = many()
    scores = {name: gg.evaluate(labels, run, "SRR@3 CG") for name, run in runs.items()}
    outcomes = check_requirements(scores, ["SRR@3<=0.1", "SRR@3<=0.1 significant", "CG>=1"])
    assert [(outcome.system, outcome.holds) for outcome in outcomes[:4]] == [
        ("wordy", False),
        ("lean", True),
        ("wordy", False),
        ("lean", True),
    ]

    values = scores["wordy"].per_query.filter(measure="SRR@3")["value"].to_numpy()
    assert outcomes[0].p == pytest.approx(stats.ttest_1samp(values, 0.1).pvalue)
    (alone,) = check_requirements(scores["lean"], ["CG>=1"])
    assert alone.holds and "the run has" in str(alone)
    with pytest.raises(InputError, match="needs a baseline"):
        check_requirements(scores, ["CG>=baseline"])


@pytest.mark.filterwarnings("error")
def test_a_line_about_a_baseline_that_is_not_named_is_an_error_without_a_warning_of_polars() -> None:
    comparison = gg.compare(*many(), "CG@3")
    with pytest.raises(InputError, match="'CG@3>=baseline significant' needs a baseline"):
        gg.check(comparison, ["CG@3>=baseline significant"])


def test_an_unknown_measure_in_a_line_is_an_error_of_its_own() -> None:
    with pytest.raises(MeasureError, match="did you mean SRR"):
        parse_requirement("SSRR@3<=0.3")


def test_parameters_of_a_measure_may_stand_in_a_line() -> None:
    line = parse_requirement("SRE(rel=3)@5 >= -1e-3")
    assert (str(line.measure), line.sign, line.bound) == ("SRE(rel=3)@5", ">=", -0.001)


def test_systems_are_named_by_the_stem_and_what_tells_them_apart() -> None:
    assert name_systems(["x/a.run", "b.run.gz"]) == ["a", "b"]
    assert name_systems(["main/agent.run", "new/agent.run", "other.run"]) == ["main/agent", "new/agent", "other"]
    assert name_systems(["/p/main/out/agent.run", "/p/new/out/agent.run"]) == ["main/out/agent", "new/out/agent"]
    assert name_systems(["a.run", "a.jsonl"]) == ["a.run", "a.jsonl"]
    assert name_systems(["a.run", "a.run", "m/a.run"]) == ["a", "a (2)", "m/a"]


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
    found_of = [(one.value, one.baseline, one.p) for one in outcomes]
    assert found_of == [(1.0, 0.5, 0.03125), (1.0, 0.0, 0.03125), (1.0, None, 1.0)]
    with pytest.raises(gg.InputError, match="nCG was not computed"):
        gg.check(found, "nCG(rel=2)>=0.1")

    alone = check_requirements(
        {"half": gg.evaluate(labels, half, "nCG", rel=1), "whole": found.scores["whole"]}, ["nCG>=0.5"]
    )
    assert [one.holds for one in alone] == [True, True]
