"""`rel=1` (`--rel 1`): one switch for collections whose labels are 0 and 1, at every door that scores iterations."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import ir_measures
import polars as pl
import pytest
import ranx

import goodgain as gg
import goodgain.hosts.ranx as ranx_host
from goodgain.hosts.pytrec_eval import RelevanceEvaluator
from goodgain.judgments.judging.conclusions_from_model_labels import compare_orders
from tests.support.asking_hosts import needs_names_in_ir_measures
from tests.support.notices import notices_of

QRELS = {"q1": {"aa": 1, "bb": 1, "cc": 0}, "q2": {"dd": 1, "xx": 0}}
ROWS = [("q1", 1, "aa"), ("q1", 1, "cc"), ("q1", 2, "bb"), ("q1", 2, "aa"), ("q2", 1, "xx"), ("q2", 2, "dd")]
RUN = pl.DataFrame(
    {
        "query_id": [row[0] for row in ROWS],
        "iteration": [row[1] for row in ROWS],
        "doc_id": [row[2] for row in ROWS],
        "rank": [1, 2, 1, 2, 1, 1],
    }
)
#: nCG@1 by hand: at iteration 1 one of the two good documents of q1 is found, and none of q2.
AT_1 = 0.25


def test_classic_measures_keep_their_own_threshold() -> None:
    labels = {"q": {"a": 1, "b": 3}}
    run = {"q": {"a": 2.0, "b": 1.0}}
    names = "P@1 RR AP R@1 Success@1 nDCG@2 F@2 GradedP@1 AP(rel=3)"
    assert gg.evaluate(labels, run, names, rel=3).mean() == gg.evaluate(labels, run, names).mean()


def test_the_switch_changes_no_value_of_a_measure_that_names_its_threshold() -> None:
    one, two = (gg.evaluate(QRELS, RUN, "nCG(rel=1)@1-2 SRE(rel=1) NumDup@1", rel=rel).mean() for rel in (None, 2))
    assert one == two == gg.evaluate(QRELS, RUN, "nCG@1-2 SRE NumDup@1", rel=1).mean()


def test_scores_are_found_by_the_name_that_was_asked_for() -> None:
    scores = gg.evaluate(QRELS, RUN, "nCG@1 SRE", rel=1)
    assert scores["nCG@1"] == scores["ncg@1"] == scores["nCG(rel=1)@1"] == scores[gg.nCG @ 1] == AT_1
    with pytest.raises(gg.MeasureError, match="is not in these scores"):
        scores["nCG@2"]
    with pytest.raises(gg.MeasureError, match="is not in these scores"):
        scores["nCG(rel=3)@1"]


DOORS: dict[str, Callable[[Any], Any]] = {
    "evaluate": lambda rel: gg.evaluate(QRELS, RUN, "nCG@1", rel=rel),
    "evaluate, of a classic measure": lambda rel: gg.evaluate(QRELS, RUN, "nDCG@10", rel=rel),
    "compare": lambda rel: gg.compare(QRELS, {"a": RUN, "b": RUN}, "nCG@1 SRE CG@1-3", rel=rel),
    "curve": lambda rel: gg.curve(QRELS, {"a": RUN}, "nCG", rel=rel),
    "ledger": lambda rel: gg.ledger(QRELS, RUN, rel=rel),
}


@pytest.mark.parametrize("rel", [0, -1, float("nan"), float("inf"), True, "1", 1e301])
@pytest.mark.parametrize("door", DOORS)
def test_a_threshold_that_is_not_a_number_above_0_is_one_error(door: str, rel: Any) -> None:
    with pytest.raises(
        gg.MeasureError, match=r"^rel=.* is not allowed; rel is the smallest good label, a number above 0"
    ):
        DOORS[door](rel)


#: A door with binary labels -> what its notice tells to do.
NOTICES: dict[str, tuple[Callable[[], Any], str]] = {
    "evaluate": (lambda: gg.evaluate(QRELS, RUN, "nCG@6 SRE@1 CG(rel=2)"), "give rel=1"),
    "compare": (lambda: gg.compare(QRELS, {"a": RUN, "b": RUN}, "nCG@6 SRE@1"), "give rel=1"),
    "curve": (lambda: gg.curve(QRELS, {"a": RUN, "b": RUN}, "nCG SRE"), "give rel=1"),
    "ledger": (lambda: gg.ledger(QRELS, RUN, measures="nCG SRE"), "give rel=1"),
    "ledger without measures": (lambda: gg.ledger(QRELS, RUN), "give rel=1"),
    "ir_measures": (
        lambda: ir_measures.calc_aggregate([gg.nCG @ 6, gg.SRE @ 1], QRELS, gg.read_run(RUN)),
        "write SRE(rel=1)@1",
    ),
    "pytrec_eval": (lambda: RelevanceEvaluator(QRELS, {"n_cg_6", "sre_1"}).evaluate(RUN), "give rel=1"),
    "ranx": (lambda: ranx.evaluate(ranx_host.Qrels(QRELS), ranx_host.Run(RUN), ["n_cg@6", "sre@1"]), "write n_cg@6-l1"),
    "a threshold of its own": (lambda: gg.evaluate(QRELS, RUN, "nCG(rel=2)@6 SRE(rel=1)"), "write nCG(rel=1)@6"),
    "a switch that is too high": (lambda: gg.evaluate(QRELS, RUN, "nCG@6", rel=2), "give rel=1"),
    "labels below 1": (lambda: gg.evaluate({"q": {"a": 0.5}}, {"q": {"a": 1.0}}, "nCG@6"), "give rel=0.5"),
    "no label above 0": (lambda: gg.evaluate({"q": {"a": 0}}, {"q": {"a": 1.0}}, "nCG@6"), "check the labels"),
}


@pytest.mark.parametrize("door", NOTICES)
def test_the_notice_names_what_the_door_takes_and_comes_once(door: str) -> None:
    call, remedy = NOTICES[door]
    _, told = notices_of(call)
    about = [
        text for text in told if text.startswith("no label of the qrels reaches the threshold 2 (the largest label is ")
    ]
    assert len(about) == 1 and about[0].endswith(f"; {remedy}"), told
    assert len(about[0].split()) <= 40


@pytest.mark.parametrize("measures", ["SRR", "SRR@2 NumDup NumIter", "AreaOver(measure='NumUnique',budget=2)"])
def test_measures_that_no_label_changes_ask_for_no_threshold(measures: str) -> None:
    calls: list[Callable[[], Any]] = [
        lambda: gg.evaluate(QRELS, RUN, measures),
        lambda: gg.compare(QRELS, {"a": RUN, "b": RUN}, measures),
        lambda: gg.evaluate({query: dict.fromkeys(labels, 9) for query, labels in QRELS.items()}, RUN, measures),
        lambda: ranx.evaluate(ranx_host.Qrels(QRELS), ranx_host.Run(RUN), ["srr"]),
    ]
    for call in calls:
        _, told = notices_of(call)
        assert not [text for text in told if "label" in text], told
    _, told = notices_of(lambda: gg.evaluate(QRELS, RUN, f"{measures} SRE"))
    assert any("no label of the qrels reaches" in text for text in told)


def test_the_notice_of_several_runs_of_ranx_is_shown_once() -> None:
    """ranx scores run by run; Python shows a warning of one line once."""
    runs = [ranx_host.Run(RUN, name="a"), ranx_host.Run(RUN, name="b")]
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("default")
        ranx.compare(ranx_host.Qrels(QRELS), runs, ["n_cg@2", "sre@1"])
    assert [str(one.message).rpartition("; ")[2] for one in told] == ["write n_cg@2-l1"]


@pytest.mark.slow
def test_the_notice_names_no_switch_where_there_is_none() -> None:
    """compare_orders (goodgain judge --runs) takes one measure, and no rel."""
    _, told = notices_of(lambda: compare_orders(QRELS, QRELS, dict.fromkeys("abcde", RUN), "nCG@1"))
    assert {text.rpartition("; ")[2] for text in told} == {"write nCG(rel=1)@1"}


@needs_names_in_ir_measures
def test_the_names_that_the_notices_of_hosts_show_are_read_there() -> None:
    measure = ir_measures.parse_measure("nCG(rel=1)@1")
    assert ir_measures.calc_aggregate([measure], QRELS, gg.read_run(RUN)) == {measure: AT_1}
    assert ranx.evaluate(ranx_host.Qrels(QRELS), ranx_host.Run(RUN), "n_cg@1-l1") == AT_1
