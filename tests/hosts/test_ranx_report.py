"""`ranx.compare` on our runs: what is better is marked better, and other reports are ranx's own."""

from __future__ import annotations

import pickle
import re
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import ranx

import goodgain as gg
import goodgain.hosts.ranx as host
from goodgain.measures.families import HOST_NAMES

QUERIES = 12
METRICS = ["ndcg@10", "cg@3", "srr", "sre@3-l2.5", "iterations_for_all_good_results"]
TESTS = ["student", pytest.param("fisher", marks=pytest.mark.slow), "tukey"]  # ranx compiles fisher, for 10 s


def agent(name: str, repeats: int) -> host.Run:
    """Two iterations with the same documents new in each; `repeats` (and one more in every third query) come back."""
    rows = []
    for number in range(QUERIES):
        query = f"q{number}"
        first = ["good", "bad", "other", "fine", "poor"]
        again = first[: repeats + (number % 3 == 0 and repeats > 0)]
        fillers = [f"new{k}" for k in range(5 - len(again))]
        rows += [(query, 1, doc, rank) for rank, doc in enumerate(first, 1)]
        rows += [(query, 2, doc, rank) for rank, doc in enumerate([*again, *fillers, "late"], 1)]
    columns = ["query_id", "iteration", "doc_id", "rank"]
    return host.Run(pl.DataFrame(rows, schema=columns, orient="row"), name)


def qrels() -> host.Qrels:
    return host.Qrels({f"q{number}": {"good": 3, "fine": 2, "late": 4} for number in range(QUERIES)})


def report(*runs: host.Run, metrics: list[str] | None = None, **options: Any) -> Any:
    return ranx.compare(qrels(), list(runs), metrics or METRICS, **options)


def cell(table: str, model: str, metric: int) -> str:
    line = next(line for line in table.splitlines() if re.match(rf"\w\s+{model}\b", line))
    return line.split()[2 + metric]


@pytest.mark.parametrize("test", TESTS)
@pytest.mark.parametrize("lean_first", [True, False])
def test_less_redundancy_and_all_else_equal_is_better_in_every_output(test: str, lean_first: bool) -> None:
    runs = [agent("lean", 0), agent("wordy", 3)]
    made = report(*(runs if lean_first else runs[::-1]), stat_test=test)
    lean, wordy = ("ᵃ", "ᵇ") if lean_first else ("ᵇ", "ᵃ")
    table = made.to_table()
    assert cell(table, "lean", 2).endswith(wordy)
    assert lean not in cell(table, "wordy", 2)

    latex_lean, latex_wordy = (latex_cells(made, name) for name in ("lean", "wordy"))
    assert latex_lean[2].startswith(r"\textbf{0.000}$^{" + ("b" if lean_first else "a"))
    assert not latex_wordy[2].startswith(r"\textbf")
    assert "$^{a}$\\hphantom{}" not in latex_wordy[2]

    stored = made.to_dict()
    assert stored["lean"]["win_tie_loss"]["wordy"]["srr"] == {"W": QUERIES, "T": 0, "L": 0}
    assert stored["wordy"]["win_tie_loss"]["lean"]["srr"] == {"W": 0, "T": 0, "L": QUERIES}
    assert stored["lean"]["win_tie_loss"]["wordy"]["cg@3"] == {"W": 0, "T": QUERIES, "L": 0}
    assert stored["lean"]["scores"]["srr"] == 0 < stored["wordy"]["scores"]["srr"]
    assert made.results["wordy"]["srr"] > made.results["lean"]["srr"]  # plain numbers, which compare as numbers


def latex_cells(made: Any, model: str) -> list[str]:
    row = made.to_latex().split(f"{model} &\n")[1].split("\\\\")[0]
    return [part.strip() for part in row.split("&")]


def test_headers_name_the_measure_and_say_which_way_is_better() -> None:
    made = report(agent("lean", 0), agent("wordy", 3), metrics=[*METRICS, "iterations_for_all_good_results_retrieved"])
    header = re.split(r"\s{2,}", made.to_table().splitlines()[0])
    ours = ["CG@3 ↑", "SRR ↓", "SRE@3-l2.5 ↑", "IterationsForAllGoodResults ↓"]
    assert header == ["#", "Model", "NDCG@10", *ours, "IterationsForAllGoodResults(pool='retrieved') ↓"]
    assert r"\textbf{SRR $\downarrow$}" in made.to_latex()
    assert r"\textbf{CG@3 $\uparrow$}" in made.to_latex()
    assert r"\textbf{NDCG@10}" in made.to_latex()
    assert made.get_metric_label("srr") == "SRR ↓"


def test_bold_goes_to_the_better_of_two_values_that_print_alike() -> None:
    runs = [agent("wordy", 3), agent("lean", 0)]
    made = report(*runs, metrics=["srr", "cg@3"])
    made.results["lean"]["srr"], made.results["wordy"]["srr"] = 0.25001, 0.25004
    assert latex_cells(made, "lean")[0].startswith(r"\textbf{0.250}")
    assert latex_cells(made, "wordy")[0].startswith("0.250")


def test_percentages_are_for_shares_only() -> None:
    made = report(agent("lean", 0), agent("wordy", 3), metrics=["srr", "cg@3", "mrr"], show_percentages=True)
    assert [cell(made.to_table(), "wordy", k).rstrip("ᵃᵇ") for k in range(3)] == ["30.3", "9", "100"]


def test_a_run_against_its_double_has_no_mark() -> None:
    made = report(agent("one", 3), agent("two", 3))
    assert not set("ᵃᵇ") & set(made.to_table())
    won = made.to_dict()["one"]["win_tie_loss"]["two"]
    assert won == {metric: {"W": 0, "T": QUERIES, "L": 0} for metric in METRICS}


def test_every_measure_of_ours_is_marked_in_its_own_direction() -> None:
    runs = [agent("lean", 0), agent("wordy", 3)]
    names = [f"{name}@2" if measure.declaration.cutoff != "none" else name for name, measure in HOST_NAMES.items()]
    made = report(*runs, metrics=names, max_p=0.05)
    for name, measure in zip(names, HOST_NAMES.values(), strict=True):
        lean, wordy = (made.results[model][name] for model in ("lean", "wordy"))
        better = (lean > wordy) if measure.declaration.better == "up" else (lean < wordy)
        assert made.get_superscript_for_table("lean", name) == ("ᵇ" if better else ""), name
        assert made.get_superscript_for_latex("wordy", name) == ("a" if lean != wordy and not better else ""), name
        assert made.get_phantoms_for_latex("lean", name) == ("" if better else "b"), name
        won = made.win_tie_loss["lean", "wordy"][name]
        assert (won["W"] > won["L"]) == better, name


def test_reports_without_ours_are_ranx_s_own_to_the_letter() -> None:
    classic = ["ndcg@10", "mrr-l2", "recall@5", "map"]
    made = report(agent("lean", 0), agent("wordy", 3), metrics=classic, show_percentages=True)
    host.unregister()
    try:
        plain = report(agent("lean", 0), agent("wordy", 3), metrics=classic, show_percentages=True)
    finally:
        host.register()
    assert type(plain) is not type(made)
    assert (made.to_table(), made.to_latex(), str(made)) == (plain.to_table(), plain.to_latex(), str(plain))
    assert repr(made.to_dict()) == repr(plain.to_dict())  # nan is not equal to nan
    assert made.to_dataframe().equals(plain.to_dataframe())


def test_a_report_is_saved_pickled_and_outlives_registration(tmp_path: Path) -> None:
    made = report(agent("lean", 0), agent("wordy", 3))
    table = str(made)
    made.save(str(tmp_path / "report.json"))
    assert '"srr"' in (tmp_path / "report.json").read_text()
    host.unregister()
    try:
        assert str(made) == table
        assert str(pickle.loads(pickle.dumps(made))) == table
    finally:
        host.register()


def test_runs_that_look_like_replicates_are_named() -> None:
    with pytest.warns(gg.GoodgainNotice, match=r"agent.1, agent.2 look like runs of one system, and ranx tests each"):
        report(agent("agent.1", 0), agent("agent.2", 3), agent("other", 1), metrics=["srr"], stat_test="student")


def test_two_runs_with_one_name_are_an_error_and_not_one_row() -> None:
    with pytest.raises(gg.InputError, match="two runs have the name 'same'"):
        report(agent("same", 0), agent("same", 3))


def test_one_metric_alone_makes_a_report() -> None:
    comparison = ranx.compare(qrels(), [agent("lean", 0), agent("wordy", 3)], "srr", max_p=0.05)
    assert cell(comparison.to_table(), "lean", 0).endswith("ᵇ")


def test_a_run_that_returned_nothing_is_named_because_ranx_marks_it_best() -> None:
    rows = [(f"q{number}", 1, "good" if number > 4 else "-", 1) for number in range(QUERIES)]
    broken = host.Run(pl.DataFrame(rows, schema=["query_id", "iteration", "doc_id", "rank"], orient="row"), "broken")
    with pytest.warns(
        gg.GoodgainNotice, match=r"broken returned nothing in 5 queries\. For these queries, srr is 0, its best value\."
    ):
        report(agent("busy", 2), broken, metrics=["srr"])
