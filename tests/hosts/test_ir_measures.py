"""ir_measures knows our measures, and gives the same numbers beside every provider that installs here."""

from __future__ import annotations

import copy
import itertools
import json
import pickle
import shutil
from pathlib import Path
from random import Random
from typing import Any

import ir_measures
import pandas as pd
import polars as pl
import pytest
from ir_measures import ERR, RBP, RR, Accuracy, Compat, Judged, NumRet, P, ScoredDoc, alpha_nDCG, nDCG

import goodgain as gg
from goodgain.hosts.ir_measures import register
from goodgain.measures import MEASURES
from goodgain.measures.families import HOSTLESS_MEASURES, SESSION_MEASURES
from tests.support import oracle_flattening
from tests.support.asking_hosts import needs_names_in_ir_measures
from tests.support.counts import how_many, some_of
from tests.support.oracle import RunRow
from tests.support.random_runs import Shape, make_case
from tests.support.tables import in_one_search, no_notices, qrels_frame, run_frame

OURS = [gg.CG, gg.SRE @ 2, gg.SRR, gg.IterationsForAllGoodResults]


def good_share(qrels: pd.DataFrame, run: pd.DataFrame) -> float:
    """A user's own measure, that looks at every row it is given."""
    good = set(qrels[qrels.relevance >= 2].doc_id)
    return sum(doc in good for doc in run.doc_id) / len(run)


#: One classic measure, or more, for each provider of ir_measures; a repeated document would change every one.
BY_PROVIDER = {
    "pytrec_eval": [nDCG @ 10, P @ 5, NumRet],
    "msmarco": [RR @ 10],
    "judged": [Judged @ 5],
    "compat": [Compat],
    "accuracy": [Accuracy],
    "cwl_eval": [RBP(rel=1)],
    "pyndeval": [alpha_nDCG @ 5],
    "gdeval": [ERR @ 5, nDCG(dcg="exp-log2") @ 5],
    "runtime": [ir_measures.define_byquery(good_share, name="good_share")],
}


def repeating_case() -> tuple[gg.Run, gg.Qrels, dict[str, dict[str, float]], dict[str, dict[str, int]]]:
    """A run with repeats and empty iterations; and the flattened ranking and labels as plain dicts, by the oracle."""
    random = Random(11)
    shape = Shape(
        queries=how_many(60, full=300), iterations=5, results=6, documents=20, fractional=False, gaps=False, words=False
    )
    run, rows, _ = make_case(random, shape)
    run = [row._replace(query_id=row.query_id.removeprefix("q")) for row in run]
    rows = [row._replace(query_id=row.query_id.removeprefix("q")) for row in rows]

    # Accuracy divides by zero where nothing stands behind
    ends = {row.query_id: row.iteration for row in sorted(run, key=lambda row: row.iteration)}
    run += [RunRow(query, last, "unjudged", 99, -1.0) for query, last in ends.items()]
    ranking = {query: dict(docs) for query, docs in oracle_flattening.flatten(run).items() if docs}
    labels: dict[str, dict[str, int]] = {}
    for row in rows:
        labels.setdefault(row.query_id, {})[row.doc_id] = int(row.relevance)
    return gg.read_run(run_frame(run)), gg.read_qrels(qrels_frame(rows)), ranking, labels


@pytest.mark.parametrize("provider", BY_PROVIDER)
def test_mixed_calls_are_right_for_every_provider(provider: str) -> None:
    if provider == "gdeval" and not shutil.which("perl"):
        pytest.fail("gdeval is a perl script: install perl")
    run, qrels, ranking, labels = repeating_case()
    assert len(ranking) >= 20

    classic = BY_PROVIDER[provider]
    # ir_measures means Accuracy over all queries of the qrels in a mixed call only, goodgain.evaluate always
    other = P @ 1 if provider != "pytrec_eval" else RR @ 10
    wanted = ir_measures.calc_aggregate([*classic, other], labels, ranking)

    for ours in some_of((OURS, OURS[:1]), every=2):
        mixed = ir_measures.calc_aggregate([*classic, *ours], qrels, run)
        if provider == "runtime":  # evaluate gives a function the run with its iterations: test_functions_of_users.py
            assert mixed[classic[0]] == pytest.approx(wanted[classic[0]], abs=1e-12)
            continue
        default = gg.evaluate(qrels, run, [*classic, *ours])  # over the ranking table, where it has the measure
        alone = gg.evaluate(qrels, run, [*classic, *ours], provider=provider)
        for found, least in ((mixed, 1e-12), (default, 1e-12 if provider != "gdeval" else 5e-6), (alone, 1e-12)):
            assert [found[measure] for measure in classic] == pytest.approx([wanted[m] for m in classic], abs=least)
        assert {measure: mixed[measure] for measure in ours} == pytest.approx({m: alone[m] for m in ours}, abs=1e-12)

    assert ir_measures.providers.registry[provider].is_available()
    chosen = [one for one in ir_measures.DefaultPipeline.providers if one.supports(classic[-1]) and one.is_available()]
    assert provider == chosen[0].NAME


def test_all_providers_in_one_call() -> None:
    run, qrels, ranking, labels = repeating_case()
    classic = list(itertools.chain(*BY_PROVIDER.values()))
    mixed = ir_measures.calc_aggregate([*classic, *OURS], qrels, run)
    wanted = ir_measures.calc_aggregate(classic, labels, ranking)
    assert {measure: mixed[measure] for measure in classic} == pytest.approx(wanted, abs=1e-12)


def test_the_ranx_provider_is_right_under_pandas_2_and_said_to_fail_under_3() -> None:
    run, qrels, ranking, labels = repeating_case()
    if int(pd.__version__.split(".")[0]) >= 3:
        with pytest.raises(gg.MeasureError, match="install pandas<3"):
            gg.evaluate(qrels, run, "nDCG@10 CG", provider="ranx")
        return

    with pytest.raises(gg.MeasureError, match="needs the same queries in run and qrels"):
        gg.evaluate(qrels, run, "nDCG@10", provider="ranx")
    both = sorted(set(labels) & set(ranking))
    run, qrels = (frame[frame.query_id.isin(both)] for frame in (run.frame.to_pandas(), qrels.frame.to_pandas()))
    scores = gg.evaluate(qrels, run, "nDCG@10 P@5 CG", provider="ranx")
    wanted = ir_measures.calc_aggregate(
        [nDCG @ 10, P @ 5], {query: labels[query] for query in both}, {query: ranking[query] for query in both}
    )
    assert {measure: scores[measure] for measure in wanted} == pytest.approx(wanted, abs=1e-9)


def test_every_measure_and_query_is_given_even_where_the_run_lacks_the_query() -> None:
    run = gg.read_run(pd.DataFrame({"query_id": ["q1", "not judged"], "iteration": 1, "doc_id": "a", "score": 1.0}))
    qrels = {"q1": {"a": 2}, "q2": {"b": 3}, "q3": {"c": 1}}
    found = {(m.query_id, str(m.measure)): m.value for m in ir_measures.iter_calc(OURS, qrels, run)}
    assert len(found) == len(OURS) * 3
    name = "IterationsForAllGoodResults"
    assert [found[query, name] for query in ("q1", "q2", "q3")] == [1, 100, 0]


@pytest.mark.filterwarnings("ignore:this run has several iterations:goodgain.GoodgainNotice")
def test_frames_and_named_tuples_with_iterations_work_for_ours() -> None:
    run, qrels, _, _ = repeating_case()
    wanted = gg.evaluate(qrels, run, OURS).mean()
    frame = run.frame.to_pandas()
    labels = qrels.frame.to_pandas().astype({"relevance": int})
    for judged in (lambda: qrels, lambda: labels, lambda: labels.itertuples(index=False)):
        for given in (lambda: run, lambda: frame, lambda: frame.drop(columns="rank"), lambda: frame.itertuples()):
            found = ir_measures.calc_aggregate([*OURS, NumRet], judged(), given())
            assert {str(m): found[m] for m in OURS} == pytest.approx(wanted, abs=1e-12)


@needs_names_in_ir_measures
def test_parse_measure_knows_ours() -> None:
    found = [ir_measures.parse_measure(name) for name in ("SRE@3", "CG(rel=3)", "nDCG@10")]
    assert found == [gg.SRE @ 3, gg.CG(rel=3), nDCG @ 10]


def test_evaluators_take_several_runs() -> None:
    measures = [gg.SRE @ 3, gg.CG(rel=3), nDCG @ 10]
    run, qrels, _, _ = repeating_case()
    evaluator = ir_measures.evaluator(measures, qrels)
    assert evaluator.calc_aggregate(run) == evaluator.calc_aggregate(run)
    assert gg.SRE.calc_aggregate(qrels, run) == pytest.approx(gg.evaluate(qrels, run, "SRE")["SRE"], abs=1e-12)


def test_registering_again_changes_nothing_and_a_taken_name_stays_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    before = list(ir_measures.DefaultPipeline.providers)
    register()
    assert [one.NAME for one in ir_measures.DefaultPipeline.providers] == [one.NAME for one in before]

    registry = ir_measures.measures.registry
    assert {name: registry[name] for name in MEASURES} == MEASURES
    other = ir_measures.define_byquery(good_share, name="SRE")
    monkeypatch.setitem(registry, "SRE", other)
    with pytest.warns(
        gg.GoodgainNotice, match=r"ir_measures has a measure SRE of .*; goodgain's measure is goodgain\.SRE"
    ):
        register()

    assert registry["SRE"] is other
    monkeypatch.undo()
    register()


def test_no_measure_of_ir_measures_was_replaced() -> None:
    ours = {*MEASURES, *HOSTLESS_MEASURES, *SESSION_MEASURES}
    names = {name for name in ir_measures.measures.registry if name not in ours}
    assert {"nDCG", "RR", "P", "R", "AP", "Judged"} <= names
    assert not any(type(ir_measures.measures.registry[name]).__module__.startswith("goodgain") for name in names)


def test_runs_and_measures_can_be_copied_and_pickled() -> None:
    run, qrels, _, _ = repeating_case()
    for make in (copy.copy, copy.deepcopy, lambda value: pickle.loads(pickle.dumps(value))):
        copied = gg.evaluate(make(qrels), make(run), make([gg.SRE(rel=3) @ 2])).mean()
        assert copied == gg.evaluate(qrels, run, "SRE(rel=3)@2").mean()


def test_a_run_is_a_frame_to_whoever_asks() -> None:
    run, qrels, ranking, _ = repeating_case()
    assert list(run.columns) == ["query_id", "doc_id", "score"]
    assert set(run["query_id"]) == set(ranking)
    assert len(run) == len(list(run.itertuples())) == sum(map(len, ranking.values()))
    assert not run.sort_values("score").empty
    assert set(qrels.groupby("query_id").groups) >= set(ranking) & set(qrels["query_id"])
    with pytest.raises(AttributeError):
        run.no_such_attribute  # noqa: B018  # reading it is the test


# --- labels -----------------------------------------------------------------------------------------------------------

FRACTIONAL = {"q": {"a": 2.2, "b": 0.4, "c": 1.0, "d": -1.0}}
RANKING = {"q": {"b": 4.0, "a": 3.0, "x": 2.0, "c": 1.0}}


def test_fractional_labels_reach_classic_measures_only_where_they_mean_something() -> None:
    scores = gg.evaluate(FRACTIONAL, RANKING, "P@4 P(rel=2)@4 RR(rel=2) nDCG@3 NumRet AP(rel=1)")
    binary = {1: {"q": {"a": 1, "b": 0, "c": 1, "d": 0}}, 2: {"q": {"a": 1, "b": 0, "c": 0, "d": 0}}}
    assert scores["P@4"] == ir_measures.calc_aggregate([P @ 4], binary[1], RANKING)[P @ 4] == 0.5
    assert scores["P(rel=2)@4"] == 0.25
    assert scores["RR(rel=2)"] == 0.5
    assert scores["NumRet"] == 4

    scaled = {"q": {doc: round(label * 10) for doc, label in FRACTIONAL["q"].items()}}
    wanted = ir_measures.calc_aggregate([nDCG @ 3], scaled, RANKING)[nDCG @ 3]
    assert scores["nDCG@3"] == pytest.approx(wanted, abs=1e-12)

    by_host = gg.evaluate(
        FRACTIONAL, RANKING, "P@4 P(rel=2)@4 RR(rel=2) nDCG@3 NumRet AP(rel=1)", provider="pytrec_eval"
    )
    assert by_host.mean() == pytest.approx({name: scores[name] for name in by_host.means}, abs=1e-12)
    assert by_host["nDCG@3"] == wanted
    assert gg.evaluate(FRACTIONAL, in_one_search(RANKING), "CG")["CG"] == 2.2


def test_a_host_names_the_fractional_label() -> None:
    with pytest.raises(gg.InputError, match=r"the label 2\.2 is not a whole number"):
        ir_measures.calc_aggregate([nDCG @ 3, gg.CG], gg.read_qrels(FRACTIONAL), RANKING)
    large = gg.read_qrels({"q": {"a": 123456.789}})
    with pytest.raises(gg.InputError, match=r"the label 123456\.789 is not a whole number"):
        ir_measures.calc_aggregate([nDCG @ 3], large, RANKING)
    with pytest.raises(gg.MeasureError, match=r"the label 123456\.789; round the labels"):
        gg.evaluate(large, RANKING, "nDCG(dcg='exp-log2')@3", provider="pytrec_eval")


def test_whole_labels_reach_pytrec_eval_as_ints_whatever_they_came_as() -> None:
    qrels = gg.read_qrels(pd.DataFrame({"query_id": ["q"] * 2, "doc_id": ["a", "b"], "relevance": [2.0, 0.0]}))
    assert ir_measures.calc_aggregate([nDCG @ 3, gg.CG], qrels, gg.read_run(in_one_search(RANKING)))[gg.CG] == 2
    assert all(type(judgment.relevance) is int for judgment in qrels.itertuples())


def test_subtopics_reach_diversity_measures(tmp_path: Path) -> None:
    (tmp_path / "div.qrels").write_text("1 1 a 1\n1 2 a 1\n1 2 b 1\n1 1 c 1\n")
    with pytest.warns(gg.GoodgainNotice, match="column 2 holds positive integers"):
        qrels = gg.read_qrels(tmp_path / "div.qrels")
    run = {"1": {"b": 3.0, "a": 2.0, "x": 1.0}}
    wanted = ir_measures.calc_aggregate([alpha_nDCG @ 3], ir_measures.read_trec_qrels(str(tmp_path / "div.qrels")), run)
    assert gg.evaluate(qrels, run, [alpha_nDCG @ 3]).mean() == pytest.approx(
        {str(m): v for m, v in wanted.items()}, abs=1e-12
    )
    assert ir_measures.calc_aggregate([alpha_nDCG @ 3, gg.CG(rel=1)], qrels, gg.read_run(in_one_search(run)))[
        alpha_nDCG @ 3
    ] == pytest.approx(wanted[alpha_nDCG @ 3], abs=1e-12)
    assert len(qrels) == 3


def test_ir_measures_takes_what_flatten_makes_of_any_input_but_a_frame_of_another_library(tmp_path: Path) -> None:
    qrels = {"q": {"a": 1, "b": 2, "c": 0}}
    rows = [("q", 1, "c", 1, 2.0), ("q", 1, "a", 2, 1.0), ("q", 2, "b", 1, 9.0)]
    frame = pl.DataFrame(rows, schema=["query_id", "iteration", "doc_id", "rank", "score"], orient="row")
    gg.write_run(frame, tmp_path / "a.run")
    iterated = (tmp_path / "a.run", str(tmp_path / "a.run"), gg.read_run(frame), frame.to_pandas())
    of_one = ({"q": {"c": 3.0, "a": 2.0, "b": 1.0}}, [ScoredDoc("q", doc, -k) for k, doc in enumerate("cab")])
    wanted = gg.evaluate(qrels, frame, "nDCG@10 RR").mean()
    for run in (*iterated, *of_one):
        found = ir_measures.calc_aggregate([nDCG @ 10, RR], qrels, gg.flatten(run))
        assert {str(measure): value for measure, value in found.items()} == pytest.approx(wanted)
    assert type(gg.flatten(frame)) is pl.DataFrame


def test_labels_by_iteration_through_a_host_are_the_largest_with_a_notice() -> None:
    rows = pd.DataFrame({"query_id": "q", "iteration": ["1", "2"], "doc_id": "a", "relevance": [0, 3]})
    run = gg.read_run(pd.DataFrame({"query_id": "q", "iteration": [1], "doc_id": ["a"], "score": [1.0]}))
    with no_notices():
        qrels = gg.read_qrels(rows, labels="iteration")
    assert gg.evaluate(qrels, run, "RR(rel=3)")["RR(rel=3)"] == 0
    with pytest.warns(gg.GoodgainNotice, match="classic measures of other tools use the largest label"):
        assert ir_measures.calc_aggregate([RR(rel=3), gg.CG], qrels, run)[RR(rel=3)] == 1


# --- refusals ---------------------------------------------------------------------------------------------------------

#: What is wrong, and what the error says.
REFUSED = json.loads(Path(__file__).with_name("refused.json").read_text(encoding="utf-8"))["by providers"]


@pytest.mark.each
@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case["what"])
def test_what_a_provider_cannot_compute_is_one_clear_error(case: dict[str, Any]) -> None:
    with pytest.raises(gg.MeasureError, match=case["says"]):
        gg.evaluate(case["qrels"], case["run"], case["measures"], provider=case["provider"])


def test_a_provider_computes_what_it_is_asked() -> None:
    assert gg.evaluate(FRACTIONAL, RANKING, "RR@10", provider="msmarco")["RR@10"] == 0.5
