"""A system that returned nothing is not better: shares of results where lower is better have no value for it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import goodgain as gg
from goodgain.analysis.comparing.requirements import check_requirements
from goodgain.analysis.reporting.gate_reports import write_comment, write_junit
from goodgain.analysis.reporting.page_sentences import describe_comparison
from goodgain.hosts.annotation_table import annotate
from goodgain.measures.names import find_direction, needs_results, parse_measure
from goodgain.schema import EMPTY_DOC
from tests.analysis.comparing.test_comparison import quietly
from tests.support.command import run_command

QUERIES = [f"q{k:02}" for k in range(30)]
QRELS = {query: {"a": 3, "b": 2, "c": 0} for query in QUERIES}
SHARES = ("SRR@2", "SRR", "Fallout@5", "Unjudged@5", "PerIteration(measure='Unjudged@5')@2")


def search(empty: range = range(0), repeats: int = 3, *, kept: list[str] = QUERIES) -> pl.DataFrame:
    """Two searches a query; those of the queries with a number in `empty` return nothing."""
    rows = []
    for k, query in enumerate(kept):
        docs = [] if k in empty else ["a", "b", f"x{k}"]
        for iteration in (1, 2):
            again = docs if iteration == 1 else [*docs[: (k % 3 + 1 if repeats else 0)], "y", "z"] if docs else []
            rows += [(query, iteration, doc, rank) for rank, doc in enumerate(again or [EMPTY_DOC], 1)]
    return pl.DataFrame(rows, schema=["query_id", "iteration", "doc_id", "rank"], orient="row")


A, NEVER, BROKEN = search(), search(range(30)), search(range(20))


def compare(systems: dict[str, Any], measures: str = "SRR@2", **options: Any) -> gg.Comparison:
    return quietly(QRELS, systems, measures, **{"resamples": 999, **options})


@pytest.mark.slow
def test_every_share_of_results_that_is_lower_without_results_is_declared() -> None:
    """The value of an empty run must be worse than or equal to that of any other run, or not exist."""
    empty, busy = {"q": {}}, {"q": {"a": 2.0, "u": 1.0}}
    alone = [
        one for one in gg_measures() if one.name not in ("AreaOver", "ValueAt") and not one.table({"over": "searches"})
    ]  # they need more than a run
    names = [one.usage.replace("[", "").replace("]", "").replace("@i", "@1").replace("@k", "@3") for one in alone]
    down = [name for name in names if "@recall" not in name and find_direction(parse_measure(name)) == "down"]

    for name in down:
        values = [
            gg.evaluate({"q": {"a": 3, "b": 2, "c": 0}}, run, name)[name] for run in (frame_of(empty), frame_of(busy))
        ]
        is_count = name.startswith("Num")
        assert needs_results(parse_measure(name)) or is_count or values[0] >= values[1], name  # type: ignore[operator]

    assert {"SRR@1", "Fallout@3", "Unjudged@3"} <= {name for name in down if needs_results(parse_measure(name))}


def gg_measures() -> list[Any]:
    from goodgain.measures import MEASURES
    from goodgain.measures.families import RANKED_MEASURES, SESSION_MEASURES

    return [
        *(measure.declaration for measure in MEASURES.values()),
        *RANKED_MEASURES.values(),
        *SESSION_MEASURES.values(),
    ]


def frame_of(run: dict[str, dict[str, float]]) -> pl.DataFrame:
    rows = [(query, 1, doc, rank) for query, docs in run.items() for rank, doc in enumerate([*docs] or [EMPTY_DOC], 1)]
    return pl.DataFrame(rows, schema=["query_id", "iteration", "doc_id", "rank"], orient="row")


@pytest.mark.parametrize("measure", SHARES)
def test_a_system_that_returned_nothing_has_no_value_and_no_verdict(measure: str) -> None:
    comparison = compare({"a": A, "never": NEVER}, measure)
    row = comparison.pairs.row(0, named=True)
    assert (row["verdict"], row["queries"], row["mean"], row["significant"]) == ("no results", 0, None, False)
    assert comparison.means.select("system", "queries").rows() == [("a", 30), ("never", 0)]
    assert comparison.means.filter(system="never").item(0, "mean") is None
    cutoff = " by iteration 2" if measure.endswith("@2") else ""
    assert f"{measure} leaves out 30 queries where a system has no results{cutoff} (never 30)." in comparison.notes


@pytest.mark.parametrize("measure", SHARES)
def test_a_query_without_results_is_left_out_of_the_pairs_of_its_system_alone(measure: str) -> None:
    c = search(range(5, 8), repeats=0)
    comparison = compare({"a": A, "broken": BROKEN, "c": c}, measure)
    queries = {(row["system"], row["against"]): row["queries"] for row in comparison.pairs.iter_rows(named=True)}
    assert queries == {("broken", "a"): 10, ("c", "a"): 27, ("c", "broken"): 10}
    assert comparison.means.get_column("queries").to_list() == [30, 10, 27]
    assert comparison.pairs.filter(system="broken").item(0, "verdict") == "equal"
    scores = gg.evaluate(
        {q: QRELS[q] for q in QUERIES[20:]}, search(kept=QUERIES).filter(pl.col("query_id") >= "q20"), measure
    )
    assert comparison.means.filter(system="broken").item(0, "mean") == pytest.approx(scores[measure])


def test_shares_that_are_worse_without_results_keep_0_and_evaluate_keeps_the_guidelines_value() -> None:
    comparison = compare({"a": A, "never": NEVER}, "SRE@2 RAG@2 AvgGain@1 nCG@2")
    assert comparison.pairs.get_column("queries").to_list() == [30] * 4
    assert comparison.pairs.get_column("verdict").to_list() == ["worse"] * 4
    assert gg.evaluate(QRELS, NEVER, "SRR@2")["SRR@2"] == 0


def test_only_results_up_to_the_iteration_count() -> None:
    late = search().filter(pl.col("iteration") == 2)
    first = (
        late.select("query_id")
        .unique()
        .with_columns(iteration=pl.lit(1, pl.Int64), doc_id=pl.lit(EMPTY_DOC), rank=pl.lit(1, pl.Int64))
    )
    comparison = compare({"a": A, "late": pl.concat([first, late])}, "SRR@1 SRR@2 Unjudged@5")
    assert comparison.pairs.get_column("verdict").to_list()[0] == "no results"
    assert comparison.pairs.get_column("queries").to_list() == [0, 30, 30]


def test_replicates_without_results_are_left_out_of_the_mean_of_a_query(tmp_path: Path) -> None:
    several = [A, BROKEN]
    comparison = compare({"x": several, "b": search(repeats=0)}, "SRR@2")
    alone = compare({"x": A, "b": search(repeats=0)}, "SRR@2")
    assert comparison.pairs.item(0, "queries") == 30
    assert comparison.means.get_column("mean").to_list() == pytest.approx(alone.means.get_column("mean").to_list())
    assert comparison.replicates.select("replicates", "mean").row(0) == (2, pytest.approx(alone.means.item(0, "mean")))
    comparison.write_baseline(tmp_path / "x.jsonl", "x")
    again = compare({"b": search(repeats=0)}, "SRR@2", baseline_file=tmp_path / "x.jsonl")
    assert again.means.get_column("mean").to_list() == comparison.means.get_column("mean").to_list()


def test_groups_and_bounds_leave_out_the_same_queries() -> None:
    groups = pl.DataFrame({"query_id": QUERIES, "group": ["early" if k < 15 else "late" for k in range(30)]})
    comparison = compare({"a": A, "broken": BROKEN}, "SRR@2", groups=groups, bounds=True)
    assert comparison.groups is not None
    assert comparison.groups.select("group", "queries", "verdict").rows() == [
        ("early", 0, "no results"),
        ("late", 10, "equal"),
    ]

    least, most = comparison.pairs.select("least", "most").row(0)
    assert (least, most) == (0, 0)
    assert (
        comparison.means.filter(system="broken").select("least", "mean").row(0)
        == (comparison.means.filter(system="broken").item(0, "mean"),) * 2
    )


def test_all_forms_say_how_many_queries_a_mean_is_over() -> None:
    comparison = compare({"a": A, "broken": BROKEN, "never": NEVER}, "SRR@2")
    assert re.search(
        r"\| SRR@2 ↓ \| [\d.]+ \(30 queries\) \| [\d.]+ \(10 queries\) \| – \(0 queries\) \|",
        comparison.to_text("markdown"),
    )
    assert "(10 queries)" in comparison.to_text("latex") and "no results" in comparison.to_text(
        "latex", rows="measures"
    )
    assert "no results" in comparison.to_text("csv")
    data = json.loads(comparison.to_text("json"))
    assert [row["queries"] for row in data["means"]] == [30, 10, 0]
    assert [row["queries"] for row in data["pairs"]] == [10, 0, 0]
    assert data["pairs"][1]["verdict"] == "no results"
    assert "1 equal, 2 no results" in write_comment(comparison, [])


@pytest.mark.parametrize("line", ["SRR@2<=0.9", "SRR@2<=baseline", "SRR@2<=baseline significant"])
def test_a_required_line_says_how_many_queries_it_left_out_and_fails_above_half(line: str) -> None:
    systems = {"a": A, "never": NEVER, "broken": BROKEN, "half": search(range(15))}
    comparison = compare(systems, "SRR@2", baseline="a")
    never, broken, half = check_requirements(comparison, [line])
    assert not never.holds and never.value is None
    assert not broken.holds
    assert "20 of 30 queries left out because a system has no results by iteration 2: more than half" in str(broken)
    assert half.holds and str(half).endswith("15 of 30 queries left out because a system has no results by iteration 2")
    assert (half.queries, half.left_out) == (15, 15)
    assert "more than half" in write_junit([broken])
    assert "left out" not in str(check_requirements(compare({"a": A, "b": A}, "SRR@2", baseline="a"), [line])[0])


@pytest.mark.parametrize("measure", SHARES)
def test_a_required_line_of_evaluate_leaves_out_queries_without_results(measure: str) -> None:
    """An agent that broke down passed a gate: 0 is the best value of a query without results."""
    names = (("never", NEVER), ("broken", BROKEN), ("half", search(range(15))), ("a", A))
    scores = {name: gg.evaluate(QRELS, run, measure) for name, run in names}
    assert all(
        [*scores_of_system.means] == scores_of_system.per_query["measure"].unique().to_list() == [measure]
        for scores_of_system in scores.values()
    )
    never, broken, half, a = check_requirements(scores, [f"{measure}<=1"])
    assert [one.holds for one in (never, broken, half, a)] == [False, False, True, True]
    assert never.value is None and (half.queries, half.left_out) == (15, 15)
    assert "20 of 30 queries left out because a system has no results" in str(broken)
    assert "more than half, so the line fails" in str(broken) and "more than half" not in str(half)
    assert half.value == pytest.approx(2 * (half.evaluated or 0)) and half.evaluated == scores["half"][measure]
    assert f"with 0 for these the mean is {scores['half'][measure]:.4f}, as evaluate prints it" in str(half)
    assert "left out" not in str(a) and a.value == pytest.approx(scores["a"][measure])


def test_a_required_line_of_evaluate_averages_the_replicates_that_returned_something() -> None:
    alone, both = gg.evaluate(QRELS, A, "SRR@2 CG"), gg.evaluate(QRELS, [A, BROKEN], "SRR@2 CG")
    of_alone, of_both = (check_requirements(scores, ["SRR@2<=1", "CG>=0"]) for scores in (alone, both))
    assert of_both[0].value == pytest.approx(of_alone[0].value) and of_both[0].left_out == 0
    assert of_both[1].value == pytest.approx(both["CG"])


def test_the_page_does_not_call_systems_equal_in_queries_without_a_value() -> None:
    (said,) = describe_comparison(compare({"a": A, "broken": BROKEN}, "SRR@2"))
    assert said == "broken and a are equal in every query in SRR@2 (both have a value in 10 queries)."


def test_a_lower_count_of_a_system_that_returned_nothing_is_told() -> None:
    match = search(range(20), kept=QUERIES).filter(pl.col("query_id") >= "q03")
    comparison = compare({"a": A, "b": match}, "NumDup@2 NumResults NumUnjudged NumIter SRR@2")
    notes = "\n".join(comparison.notes)
    assert "NumDup@2 of b: less because it has no results by iteration 2 in 20 queries." in notes
    assert "NumResults of b: less because it has no results in 20 queries." in notes
    assert "NumUnjudged of b: less because it has no results in 20 queries." in notes
    assert "NumIter of b: less because it has no results in 3 queries." in notes
    assert "of a: less" not in notes


@pytest.mark.parametrize("pairs", [1, 3, 6])
def test_power_counts_the_pairs_that_holm_corrects_over(pairs: int) -> None:
    """Three systems that differ in all of six queries were unclear, beside a note that six queries are enough."""
    names = "ABCD"[: {1: 2, 3: 3, 6: 4}[pairs]]
    qrels = {f"q{k}": {f"d{n}": 2 for n in range(12)} for k in range(6)}
    runs = {
        name: {
            query: {f"d{n}": 1.0 for n in range(3 * at + (k + at) % 2)} or {"x": 1.0} for k, query in enumerate(qrels)
        }
        for at, name in enumerate(names)
    }
    found = quietly(qrels, runs, "CG")
    assert found.pairs.select("wins", "losses").unique().rows() == [(6, 0)]
    assert set(found.pairs["verdict"]) == ({"better"} if pairs == 1 else {"unclear"})

    rows = found.detectable.rows(named=True)[1::2]
    assert all(row["pairs"] == pairs and row["queries"] >= {3: 7, 6: 8}[pairs] for row in rows)
    if pairs > 1:
        least = {3: 7, 6: 8}[pairs]
        assert (
            f"With fewer than {least} queries in each of {pairs} pairs no difference can be significant at 0.05."
            in found.notes
        )


def test_more_runs_are_named_for_each_system() -> None:
    random = np.random.default_rng(0)
    qrels = {f"q{k:02}": {f"d{n}": 2 for n in range(9)} for k in range(40)}

    def run(more: int) -> dict[str, dict[str, float]]:
        return {query: {f"d{n}": 1.0 for n in range(1 + more + random.integers(0, 5))} for query in qrels}

    found = quietly(qrels, {name: [run(0) for _ in range(3)] for name in "AB"}, "CG", detect=0.5)
    row = found.detectable.row(1, named=True)
    assert row["replicates"] > 1
    told = f"the 0.5000 of B against A takes {row['queries']} queries, or {row['replicates']} runs of each system (power 0.8)."
    assert any(note.endswith(told) for note in found.notes)


@pytest.mark.filterwarnings("ignore::goodgain.GoodgainNotice")
@pytest.mark.parametrize(("output", "shares"), [('[{"docid": "d1"}]', ["SRR", "Unjudged@5"]), ("[]", [])])
def test_an_annotation_without_a_value_is_not_written(output: str, shares: list[str], tmp_path: Path) -> None:
    fixtures = Path(__file__).parents[2] / "logs" / "traces" / "fixtures"
    log = json.loads((fixtures / "langfuse" / "story.json").read_text(encoding="utf-8"))
    for one in log["traces"]:
        for seen in one["observations"]:
            seen |= {"output": output} if seen["type"] == "TOOL" else {}
    (tmp_path / "log.json").write_text(json.dumps(log), encoding="utf-8")
    found = annotate({"story": {"d1": 3}}, tmp_path / "log.json", "nCG SRR Unjudged@5 SRE")
    assert found.filter(pl.col("span_id").is_null())["name"].to_list() == ["nCG", *shares, "SRE"]


VERDICTS = Path(__file__).parents[4] / "shared" / "traces" / "turn4" / "verdicts"


@pytest.mark.skipif(not VERDICTS.is_dir(), reason="the example is not part of the project")
def test_the_command_calls_no_arm_better_that_returned_nothing() -> None:
    names = [VERDICTS / name for name in ("qrels.txt", "a.run", "never.run")]
    done = run_command("compare", *names, "-m", "SRR@2", "-o", "table")
    assert "no results" in done.stdout and "better" not in done.stdout.splitlines()[2]
    broken = run_command("compare", *names[:2], VERDICTS / "broken.run", "-m", "SRR@2", "-o", "table")
    assert "SRR@2 leaves out 20 queries where a system has no results by iteration 2 (broken 20)." in broken.stderr
