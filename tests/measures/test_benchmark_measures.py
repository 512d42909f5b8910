"""The measures that public benchmarks print, on the cases that their own papers and scorers work out."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import ir_measures
import polars as pl
import pytest
import ranx

import goodgain as gg
import goodgain.hosts.ranx as host
from tests.support.notices import collect_notices
from tests.support.tables import frame_of, no_notices

#: The toy cases of RAVine: the documents of each round, and the relevant ones.
RAVINE = {
    "A": ([["d1", "d2", "d3"], ["d1", "d4", "d5"], ["d6", "d1", "d4"]], ["d1", "d4", "d6"]),
    "B": ([["d1", "d1", "x"], ["-"], ["d2", "x", "y"], ["d3", "d4", "d5"]], ["d1", "d2", "d3", "d4", "d5", "d6"]),
    "C": ([["x", "y"], ["z"]], ["d1"]),
}


def ravine() -> tuple[dict[str, dict[str, int]], pl.DataFrame]:
    qrels = {query: dict.fromkeys(relevant, 1) for query, (_, relevant) in RAVINE.items()}
    return qrels, frame_of({query: searches for query, (searches, _) in RAVINE.items()})


@no_notices()
def test_hosts_give_the_measures_of_benchmarks_the_values_of_evaluate() -> None:
    qrels, run = ravine()
    names = {
        "search_gain@2": "SearchGain@2",
        "evidence_recall-l1": "EvidenceRecall",
        "all_good-l1": "AllGood(rel=1)",
    }
    expected = gg.evaluate(qrels, run, list(names.values())).mean()
    scores = ranx.evaluate(host.Qrels(gg.read_qrels(qrels)), host.Run(gg.read_run(run)), list(names))
    assert {names[name]: value for name, value in scores.items()} == pytest.approx(expected)
    asked = [gg.SearchGain @ 2, gg.EvidenceRecall(rel=1), gg.AllGood(rel=1)]
    in_host = ir_measures.calc_aggregate(asked, gg.read_qrels(qrels), gg.read_run(run))
    assert {str(measure): value for measure, value in in_host.items()} == pytest.approx(expected)


@no_notices()
def test_pytrec_eval_keeps_the_threshold_of_each_measure_unless_it_is_given_one() -> None:
    from goodgain.hosts.pytrec_eval import RelevanceEvaluator

    qrels, run = ravine()
    scores = RelevanceEvaluator(qrels, {"search_gain", "sre"}).evaluate(run)["B"]
    assert scores == pytest.approx({"search_gain": 5 / 24, "sre": 0})
    assert RelevanceEvaluator(qrels, {"search_gain"}, rel=2).evaluate(run)["B"] == {"search_gain": 0}


@pytest.mark.slow
def test_both_ends_of_iterations_for_all_good_results_are_counted(tmp_path: Path) -> None:
    qrels = {"none": {"a": 1}, "found": {"a": 2}, "failed": {"a": 2, "b": 3}, "never": {"a": 2}}
    rows = {"query_id": ["found", "failed", "found"], "iteration": [1, 1, 2], "doc_id": ["x", "a", "a"]}
    run = pl.DataFrame(rows)
    with pytest.warns(
        gg.GoodgainNotice, match="0, the best value, in 1 query without.* 100, the worst, in 2 queries"
    ) as given:
        scores = gg.evaluate(qrels, run, "IterationsForAllGoodResults")

    assert scores["IterationsForAllGoodResults"] == (0 + 2 + 100 + 100) / 4
    assert any("the worst, in 2 queries" in note for note in scores.notes)
    assert all(one.message.minor for one in given if "the best value" in str(one.message))

    with pytest.warns(gg.GoodgainNotice) as given:
        comparison = gg.compare(qrels, {"a": run, "b": run.head(1)}, "IterationsForAllGoodResults")
    (said,) = [str(one.message) for one in given if "the best value" in str(one.message)]
    assert said.splitlines()[1:] == ["  a: 0 in 1 query, 100 in 2 queries", "  b: 0 in 1 query, 100 in 3 queries"]

    (noted,) = [note for note in comparison.notes if "the best value" in note]
    assert noted.endswith("were found. a: 0 in 1 query, 100 in 2 queries; b: 0 in 1 query, 100 in 3 queries")
    assert noted in comparison.to_text("markdown")

    comparison.write_baseline(tmp_path / "kept.jsonl", "a")
    for several in ({"b": run.head(1)}, {"b": [run, run.head(1)]}):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", gg.GoodgainNotice)
            again = gg.compare(qrels, several, "IterationsForAllGoodResults", baseline_file=tmp_path / "kept.jsonl")
        (noted,) = [note for note in again.notes if "the best value" in note]
        assert "baseline: 0 in 1 query, 100 in 2 queries" in noted and "100 in 3 queries" in noted

    for systems in ({"a": run}, {"a": run, "b": run.head(1)}):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", gg.GoodgainNotice)
            page = gg.report(qrels, systems, tmp_path / "page.md", "IterationsForAllGoodResults CG").read_text()
        assert page.count("IterationsForAllGoodResults is 0, the best value") == 1
        assert ("b: 0 in 1 query, 100 in 3 queries" in page) == (len(systems) == 2)

    for asked, labels in (("AllGood", qrels), ("IterationsForAllGoodResults", {"found": {"a": 2}})):
        with pytest.warns(gg.GoodgainNotice) as given:
            gg.evaluate(labels, run, asked)
            warnings.warn(gg.GoodgainNotice("any", "one at least"), stacklevel=1)
        assert not any("the best value" in str(one.message) for one in given)


MIXED = {"q": {"a": 1, "b": 2, "c": 0}, "r": {"a": 2}}
TWO_SEARCHES = pl.DataFrame({"query_id": ["q", "q", "r"], "iteration": [1, 2, 1], "doc_id": ["a", "b", "a"]})


def told(qrels: Any, asked: str) -> list[gg.GoodgainNotice]:
    with collect_notices() as notices:
        gg.evaluate(qrels, TWO_SEARCHES, asked)
    return [notice for notice in notices if "thresholds differ" in str(notice)]


def test_thresholds_of_one_call_that_differ_are_named_with_the_documents_between() -> None:
    (said,) = told(MIXED, "R@100 nCG SRR AP CG")
    assert said.minor
    assert said.text == (
        "thresholds differ: label 1 for AP, R@100, label 2 for CG, nCG. 1 judged document is good for only some measures. "
        "For one threshold, give rel=1."
    )
    (split,) = told({**MIXED, "s": {"a": 1}}, "R@100 nCG")
    assert not split.minor and "and 1 query has good documents only at label 1" in split.text


@pytest.mark.slow
def test_thresholds_that_differ_are_told_in_notes_legend_and_on_the_page(tmp_path: Path) -> None:
    said, systems = "thresholds differ: label 1 for R@100, label 2 for nCG.", {"a": TWO_SEARCHES, "b": TWO_SEARCHES}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", gg.GoodgainNotice)
        assert any(note.startswith(said) for note in gg.evaluate(MIXED, TWO_SEARCHES, "R@100 nCG").notes)
        comparison = gg.compare(MIXED, systems, "R@100 nCG")
        assert any(note.startswith(said) for note in comparison.notes)
        for form in ("markdown", "latex", "json"):
            assert said in comparison.to_text(form), form
        for runs in (systems, {"a": TWO_SEARCHES}):
            page = gg.report(MIXED, runs, tmp_path / "page.html", "R@100 nCG").read_text(encoding="utf-8")
            assert page.count(said) == 1
