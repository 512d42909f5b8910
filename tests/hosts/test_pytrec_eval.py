"""`goodgain.hosts.pytrec_eval.RelevanceEvaluator`: pytrec_eval's numbers to the last digit, and ours beside them."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

import numpy as np
import polars as pl
import pytest
import pytrec_eval

import goodgain as gg
from goodgain.hosts import pytrec_eval as host
from goodgain.measures.families import HOST_NAMES
from tests.support.counts import how_many
from tests.support.random_runs import SMALL, make_case, write_case
from tests.support.tables import in_one_search

REFUSED = Path(__file__).with_name("refused.json")
QRELS = {"q1": {"a": 3, "b": 0, "c": 2}, "q2": {"d": 1}, "q3": {"e": 2}}
RUN = {"q1": {"a": 1.0, "x": 3.0, "c": 2.0}, "q2": {"x": 1.0}, "q9": {"a": 1.0}}
THEIRS = {"ndcg_cut_10", "recip_rank", "recall_100", "map", "P.5,10", "ndcg_cut", "num_ret", "official"}


def test_their_measures_are_what_pytrec_eval_gives() -> None:
    wanted = pytrec_eval.RelevanceEvaluator(QRELS, THEIRS).evaluate(RUN)
    assert host.RelevanceEvaluator(QRELS, THEIRS).evaluate(RUN) == wanted
    strict = pytrec_eval.RelevanceEvaluator(QRELS, {"map"}, 2, True).evaluate(RUN)
    assert host.RelevanceEvaluator(QRELS, {"map"}, 2, True).evaluate(RUN) == strict
    assert host.RelevanceEvaluator(QRELS, {"map"}).evaluate({}) == {}


def test_ours_stand_beside_them_for_every_query_of_the_qrels() -> None:
    measures = {"recip_rank", "sre", "cg_1", "iterations_for_all_good_results"}
    scores = host.RelevanceEvaluator(QRELS, measures).evaluate(in_one_search(RUN))
    assert scores == {
        "q1": {"recip_rank": 0.5, "sre": 2 / 3, "cg_1": 5.0, "iterations_for_all_good_results": 1.0},
        "q2": {"recip_rank": 0.0, "sre": 0.0, "cg_1": 0.0, "iterations_for_all_good_results": 0.0},
        "q3": {"sre": 0.0, "cg_1": 0.0, "iterations_for_all_good_results": 100.0},
    }


@pytest.mark.filterwarnings("ignore::goodgain.GoodgainNotice")
@pytest.mark.parametrize("seed", range(how_many(5, full=20)))
def test_iterated_runs_have_the_values_of_evaluate(seed: int, tmp_path: Path) -> None:
    run, qrels = write_case(make_case(Random(seed), SMALL._replace(fractional=False)), tmp_path)
    names = {}
    for name, measure in HOST_NAMES.items():
        if measure.declaration.cutoff != "required":
            names[name] = measure
        if measure.declaration.cutoff != "none":
            names[f"{name}_2"] = measure @ 2

    wanted = gg.evaluate(qrels, run, [*names.values(), "nDCG@10"]).per_query
    scores = host.RelevanceEvaluator(gg.read_qrels(qrels), {*names, "ndcg_cut_10"}).evaluate(gg.read_run(run))
    for query_id, measure, value in wanted.iter_rows():
        name = "ndcg_cut_10" if measure == "nDCG@10" else next(n for n, m in names.items() if str(m) == measure)
        # ir_measures adds zeros for queries that pytrec_eval leaves out
        got = scores[query_id].get(name, 0.0) if name == "ndcg_cut_10" else scores[query_id][name]
        assert got == pytest.approx(value, abs=1e-12), (query_id, name)


def test_their_measures_get_the_flattened_ranking_of_an_iterated_run() -> None:
    rows = pl.DataFrame({"query_id": "q1", "iteration": [1, 1, 2, 2], "doc_id": list("xaxc"), "rank": [1, 2, 1, 2]})
    scores = host.RelevanceEvaluator(QRELS, {"recip_rank", "P_5", "num_ret", "srr", "cg_1", "cg_2"}).evaluate(rows)
    assert scores["q1"] == {"recip_rank": 0.5, "P_5": 0.4, "num_ret": 3.0, "srr": 0.25, "cg_1": 3.0, "cg_2": 5.0}


def test_the_threshold_of_ours_is_rel_and_that_of_theirs_relevance_level() -> None:
    evaluator = host.RelevanceEvaluator({"q": {"a": 1, "b": 2}}, {"sre", "P_5"}, relevance_level=2, rel=1)
    assert evaluator.evaluate(in_one_search({"q": {"a": 1.0, "b": 2.0}})) == {"q": {"sre": 1.0, "P_5": 0.2}}


def test_names_are_read_as_pytrec_eval_reads_its_own() -> None:
    measures = ["sre.1,2", "cg_03", "srr"]
    run = pl.DataFrame({"query_id": "q1", "iteration": [1, 2], "doc_id": ["a", "a"]})
    assert set(host.RelevanceEvaluator(QRELS, measures).evaluate(run)["q1"]) == {"sre_1", "sre_2", "cg_3", "srr"}


@pytest.mark.each
@pytest.mark.parametrize(("measure", "error", "says"), json.loads(REFUSED.read_text(encoding="utf-8"))["pytrec_eval"])
def test_a_name_that_cannot_be_read_is_one_clear_error(measure: str, error: str, says: str) -> None:
    with pytest.raises({"MeasureError": gg.MeasureError, "ValueError": ValueError}[error], match=says):
        host.RelevanceEvaluator(QRELS, {measure})


def test_whole_labels_of_any_type_reach_pytrec_eval_and_fractional_ones_only_ours() -> None:
    run = in_one_search({"q": {"a": 1.0}})
    for label in (2.0, np.int64(2), 2):
        assert host.RelevanceEvaluator({"q": {"a": label}}, {"map", "cg"}).evaluate(run)["q"]["map"] == 1
    fractional = {"q": {"a": 2.5}}
    assert host.RelevanceEvaluator(fractional, {"cg"}).evaluate(run) == {"q": {"cg": 2.5}}
    with pytest.raises(gg.InputError, match=r"2\.5"):
        host.RelevanceEvaluator(fractional, {"cg", "map"})


def test_the_mean_over_queries_is_ours_and_sums_stay_theirs() -> None:
    assert host.compute_aggregated_measure("num_iter", [1.0, 2.0]) == 1.5
    assert host.compute_aggregated_measure("num_dup_2", [1.0, 2.0]) == 1.5
    for measure in ("num_ret", "gm_map", "map"):
        theirs = pytrec_eval.compute_aggregated_measure(measure, [0.5, 0.25])
        assert host.compute_aggregated_measure(measure, [0.5, 0.25]) == theirs


def test_no_name_of_ours_is_one_of_theirs() -> None:
    assert not set(HOST_NAMES) & (pytrec_eval.supported_measures | set(pytrec_eval.supported_nicknames))
    assert host.supported_measures == pytrec_eval.supported_measures | set(HOST_NAMES)
