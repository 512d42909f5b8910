"""Groups of queries and outcomes of systems, in Python and on the command line."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path
from typing import Any

import ir_measures
import numpy as np
import polars as pl
import pytest
from scipy import stats

import goodgain as gg
from goodgain.analysis.comparing.outcomes import compute_tau
from goodgain.errors import InputError
from goodgain.formats.query_tables import read_outcomes
from tests.analysis.comparing.test_comparison import EXAMPLES, agents_that_differ, many, quietly

TWO = EXAMPLES / "two_agents"
FILES = TWO / "qrels.txt", TWO / "quick.run", TWO / "late.run"
RUNS = {name: TWO / f"{name}.run" for name in ("quick", "late")}
GROUPS = pl.read_csv(TWO / "groups.csv")
OUTCOMES = pl.read_csv(TWO / "outcomes.csv")


def test_a_group_has_the_numbers_of_a_comparison_on_its_queries_alone() -> None:
    whole = quietly(FILES[0], RUNS, "nCG@3 nDCG@10", groups=GROUPS)
    assert whole.groups is not None
    qrels = gg.read_qrels(FILES[0]).frame.to_pandas()
    for group in ("fact", "overview"):
        members = GROUPS.filter(group=group)["query_id"].to_list()
        part = quietly(qrels[qrels.query_id.isin(members)], RUNS, "nCG@3 nDCG@10").pairs
        same = ["measure", "queries", "mean", "mean_against", "difference", "low", "high", "p_randomisation", "wins"]
        assert whole.groups.filter(group=group).select(same).equals(part.select(same))
    assert whole.pairs.equals(quietly(FILES[0], RUNS, "nCG@3 nDCG@10").pairs)


def test_holm_corrects_over_groups_and_the_verdict_follows() -> None:
    labels, runs = agents_that_differ(7, 0)  # p = 2 / 2**7 in one group of seven, 0.03125 in one of six
    groups = {"query_id": [*labels], "group": ["all of them"] * 7}
    more = {"query_id": [*labels][:6], "group": ["six"] * 6}
    frame = pl.concat([pl.DataFrame(groups), pl.DataFrame(more)])
    found = quietly(labels, runs, "SRE@1", groups=frame).groups
    assert found is not None
    rows = found.sort("group").select("p_randomisation", "p_randomisation_holm", "verdict").rows()
    assert rows == [(2 / 2**7, 4 / 2**7, "better"), (2 / 2**6, 2 / 2**6, "better")]
    three = pl.concat([frame, pl.DataFrame({"query_id": [*labels][:6], "group": ["six again"] * 6})])
    many_groups = quietly(labels, runs, "SRE@1", groups=three).groups
    assert many_groups is not None and many_groups["verdict"].to_list() == ["better", "unclear", "unclear"]


@pytest.mark.parametrize(
    ("option", "correction"),
    [
        ({"correct_over": "measures"}, "Westfall and Young's method over all groups, pairs and measures"),
        (
            {"correction": "tukey"},
            "the randomised Tukey test over all pairs of a measure, and by Bonferroni's method over groups",
        ),
    ],
)
def test_the_caption_of_groups_names_what_was_corrected_over(option: dict[str, str], correction: str) -> None:
    found = quietly(FILES[0], RUNS, "nCG@3 nDCG@10", groups=GROUPS, **option)
    assert f"randomisation test, corrected by {correction}**" in found.to_text("markdown")


def test_scores_by_group_are_means_over_its_queries_and_sums_for_counts() -> None:
    scores = gg.evaluate(*FILES[:2], [gg.nCG @ 3, ir_measures.NumRet], groups=GROUPS)
    assert scores.by_group is not None
    values = scores.per_query.join(GROUPS, on="query_id")
    for group, measure, queries, value in scores.by_group.iter_rows():
        rows = values.filter(group=group, measure=measure)["value"]
        assert queries == len(rows) and value == pytest.approx(rows.sum() if measure == "NumRet" else rows.mean())
    assert scores.by_group["value"][1] + scores.by_group["value"][3] == scores["NumRet"]
    assert gg.evaluate(*FILES[:2], "nCG@3").by_group is None


def test_scores_by_group_of_several_systems_are_those_of_each() -> None:
    scores = gg.Experiment(FILES[0], RUNS).evaluate("nCG@3 NumRet", groups=GROUPS)
    assert scores.by_group is not None
    for name, run in RUNS.items():
        alone = gg.evaluate(FILES[0], run, "nCG@3 NumRet", groups=GROUPS).by_group
        assert alone is not None and scores.by_group.filter(system=name).drop("system").equals(alone)
    assert gg.Experiment(FILES[0], RUNS).evaluate("nCG@3").by_group is None


def test_an_outcome_is_one_more_measure_and_goes_with_the_others() -> None:
    found = quietly(FILES[0], RUNS, "nCG@6", outcomes=OUTCOMES, baseline="quick")
    solved = OUTCOMES.pivot("system", index="query_id", values="solved")
    pair = found.pairs.filter(measure="solved").row(0, named=True)
    assert pair["difference"] == pytest.approx(solved["late"].mean() - solved["quick"].mean())
    assert pair["p_t"] == pytest.approx(stats.ttest_rel(solved["late"], solved["quick"]).pvalue)
    values = found.values.filter(measure="nCG@6").pivot("system", index="query_id", values="value")
    joined = values.join(solved, on="query_id", suffix="_solved")
    assert found.correlations is not None
    for system, outcome, measure, queries, tau, low, high in found.correlations.iter_rows():
        assert (outcome, measure, queries) == ("solved", "nCG@6", 25)
        assert tau == pytest.approx(stats.kendalltau(joined[system], joined[f"{system}_solved"]).statistic)
        assert low < tau < high


def test_the_interval_of_a_correlation_has_999_resamples_at_most() -> None:
    few, most, more = (
        quietly(FILES[0], RUNS, "nCG@6", outcomes=OUTCOMES, resamples=number).correlations
        for number in (500, 999, 2000)
    )
    assert few is not None and most is not None and more is not None
    assert most.equals(more) and not most.equals(few)


def test_tau_of_resamples_is_that_of_scipy() -> None:
    random = np.random.default_rng(3)
    x, y = random.integers(0, 6, 600).astype(float), random.integers(0, 2, 600).astype(float)
    drawn = random.integers(0, 600, size=(4, 600))
    times = np.stack([np.bincount(rows, minlength=600) for rows in drawn]).astype(float)
    expected = [stats.kendalltau(x[rows], y[rows]).statistic for rows in drawn]
    assert compute_tau(x, y, times) == pytest.approx(expected)


def test_replicates_of_an_outcome_are_averaged_and_truth_values_are_numbers(tmp_path: Path) -> None:
    labels, runs = many(4)
    rows = [
        {"query_id": query_id, "system": system, "replicate": k, "solved": k == 1}
        for query_id in labels
        for system in runs
        for k in (1, 2)
    ]
    (tmp_path / "outcomes.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    for outcomes in (tmp_path / "outcomes.jsonl", pl.DataFrame(rows), pl.DataFrame(rows).to_pandas()):
        found = quietly(labels, runs, "CG", outcomes=outcomes)
        assert found.means.filter(measure="solved")["mean"].to_list() == [0.5, 0.5]
        assert found.correlations is not None and found.correlations["tau"].null_count() == 2  # a constant has no tau


def test_a_query_without_an_outcome_is_left_out_with_a_note() -> None:
    found = quietly(FILES[0], RUNS, "nCG@6", outcomes=OUTCOMES[1:])
    assert found.pairs.filter(measure="solved").item(0, "queries") == 24
    assert "solved leaves out 1 query where a system has no value (quick 1)." in found.notes
    assert found.correlations is not None
    by_system = {row["system"]: row for row in found.correlations.iter_rows(named=True)}
    assert {name: row["queries"] for name, row in by_system.items()} == {"quick": 24, "late": 25}
    values = found.values.filter(system="quick").pivot("measure", index="query_id", values="value").drop_nulls()
    tau = stats.kendalltau(values["nCG@6"], values["solved"]).statistic
    assert (values.height, by_system["quick"]["tau"]) == (24, pytest.approx(tau))


@pytest.mark.parametrize(("value", "shown"), [(b"1", ".*"), (date(2026, 1, 1), "'2026-01-01'")])
def test_an_outcome_that_is_not_a_number_is_one_sentence(value: Any, shown: str) -> None:
    with pytest.raises(InputError, match=f"outcomes=: solved has {shown}, which is not a number"):
        quietly(FILES[0], RUNS, "nCG@6", outcomes=OUTCOMES.with_columns(solved=pl.lit(value)))


def test_outcomes_without_any_value_may_have_any_type() -> None:
    empty = pl.lit(None, pl.List(pl.Int64))
    outcomes = read_outcomes(OUTCOMES.with_columns(solved=empty))
    assert outcomes.schema["solved"] == pl.Float64 and outcomes.get_column("solved").null_count() == outcomes.height
