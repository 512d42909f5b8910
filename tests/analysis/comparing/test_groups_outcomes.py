"""Groups of queries and outcomes of systems, in Python and on the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import ir_measures
import numpy as np
import polars as pl
import pytest
from scipy import stats

import goodgain as gg
from goodgain.analysis.comparing.outcomes import compute_tau
from goodgain.errors import GoodgainNotice, InputError
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
    shown = found.sort("group").select("p_randomisation", "p_randomisation_holm", "verdict").rows()
    assert shown == [(2 / 2**7, 4 / 2**7, "better"), (2 / 2**6, 2 / 2**6, "better")]
    three = pl.concat([frame, pl.DataFrame({"query_id": [*labels][:6], "group": ["six again"] * 6})])
    many_groups = quietly(labels, runs, "SRE@1", groups=three).groups
    assert many_groups is not None and many_groups["verdict"].to_list() == ["better", "unclear", "unclear"]


def test_queries_without_a_group_are_named() -> None:
    with pytest.warns(GoodgainNotice, match=r"groups=: 2 of 25 queries have no group: q01, q25"):
        gg.evaluate(*FILES[:2], "nCG@3", groups=GROUPS.filter(~pl.col("query_id").is_in(["q01", "q25"])))
    with pytest.raises(InputError, match="no judged query has a group"):
        gg.evaluate(*FILES[:2], "nCG@3", groups=pl.DataFrame({"query_id": ["x"], "group": ["a"]}))
    with pytest.raises(InputError, match=r"has no column group \(it has query_id, kind\)"):
        gg.evaluate(*FILES[:2], "nCG@3", groups=pl.DataFrame({"query_id": ["x"], "kind": ["a"]}))


def write_groups(folder: Path, **first: Any) -> Path:
    """Groups of the queries q and r as JSON Lines; `first` is what else the row of q has."""
    path = folder / "groups.jsonl"
    rows = ({"query_id": "r", "group": "hard"}, {"query_id": "q", "group": "easy", **first})
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def score_groups(groups: Path) -> list[str]:
    labels, run = {"q": {"a": 2}, "r": {"a": 2}}, {"q": {"a": 1.0}, "r": {"a": 1.0}}
    by_group = gg.evaluate(labels, run, "nDCG@10", groups=groups).by_group
    assert by_group is not None
    return sorted(set(by_group.get_column("group")))


def test_columns_that_groups_do_not_use_may_hold_anything(tmp_path: Path) -> None:
    groups = write_groups(tmp_path, doc_id=["a", "b"], system=0.5)
    assert score_groups(groups) == ["easy", "hard"]


@pytest.mark.parametrize("group", [["hard", "multi"], {"name": "hard"}])
def test_a_group_that_is_no_text_is_an_error_with_its_line(group: Any, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"groups\.jsonl, line 2: .* in group, which is neither text nor a number"):
        score_groups(write_groups(tmp_path, group=group))


def test_a_group_may_be_a_truth_value_or_a_number_in_json_as_in_csv(tmp_path: Path) -> None:
    assert score_groups(write_groups(tmp_path, group=True)) == ["hard", "true"]
    assert score_groups(write_groups(tmp_path, group=7)) == ["7", "hard"]


def test_scores_by_group_are_means_over_its_queries_and_sums_for_counts() -> None:
    scores = gg.evaluate(*FILES[:2], [gg.nCG @ 3, ir_measures.NumRet], groups=GROUPS)
    assert scores.by_group is not None
    values = scores.per_query.join(GROUPS, on="query_id")
    for group, measure, queries, value in scores.by_group.iter_rows():
        of = values.filter(group=group, measure=measure)["value"]
        assert queries == len(of) and value == pytest.approx(of.sum() if measure == "NumRet" else of.mean())
    assert scores.by_group["value"][1] + scores.by_group["value"][3] == scores["NumRet"]
    assert gg.evaluate(*FILES[:2], "nCG@3").by_group is None


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


@pytest.mark.parametrize(
    ("outcomes", "message"),
    [
        (OUTCOMES.filter(system="late"), "outcomes= has no rows of the system quick; it has late"),
        (OUTCOMES.clear(), "outcomes= has no rows. Write rows with the system quick"),
        (OUTCOMES.rename({"solved": "nCG@6"}), "has a column nCG@6, which is also the name of a measure"),
        (OUTCOMES.with_columns(solved=pl.lit("yes")), "outcomes=: solved has 'yes', which is not a number"),
        (OUTCOMES.with_columns(solved=pl.lit(b"1")), "outcomes=: solved has .*, which is not a number"),
        (
            OUTCOMES.with_columns(solved=pl.date(2026, 1, 1)),
            "outcomes=: solved has '2026-01-01', which is not a number",
        ),
        (OUTCOMES.drop("solved"), "outcomes=: has no outcome"),
        (OUTCOMES.with_columns(query_id="x" + pl.col("query_id")), "no query in which every system has a value"),
        (
            OUTCOMES.filter((pl.col("query_id") < "q13") == (pl.col("system") == "late")),
            "no query in which every system has a value of solved",
        ),
    ],
)
def test_wrong_outcomes_are_one_sentence(outcomes: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        quietly(FILES[0], RUNS, "nCG@6", outcomes=outcomes)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            '[{"query_id": "q", "system": "a", "solved": [1]}, {"query_id": "r", "system": "a", "solved": 1}]',
            r"outcomes.json: solved has '\[1\]', which is not a number",
        ),
        ('[{"query_id": "q"', "outcomes.json: begins as a JSON array and is not one"),
        (
            '[{"query_id": "q", "system": "a", "solved": 1}, "x"]',
            "its objects as lines, line 2: .* is not a JSON object",
        ),
    ],
)
def test_damaged_arrays_of_outcomes_are_one_sentence(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "outcomes.json"
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        quietly(FILES[0], RUNS, "nCG@6", outcomes=path)


def test_outcomes_without_any_value_may_have_any_type() -> None:
    empty = pl.lit(None, pl.List(pl.Int64))
    found = read_outcomes(OUTCOMES.with_columns(solved=empty))
    assert found.schema["solved"] == pl.Float64 and found.get_column("solved").null_count() == found.height
