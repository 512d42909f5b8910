"""Calls of `ranx.evaluate` with our measures: names, inputs, results and errors as a user meets them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import ranx

import goodgain as gg
import goodgain.hosts.ranx as host
from goodgain.scoring import steps
from tests.support.tables import in_one_search, no_notices

REFUSED = Path(__file__).with_name("refused.json")
#: All ids of documents have two characters here, as those of `random_runs` have: for each length ranx compiles for some seconds.
QRELS = {"q1": {"da": 3, "db": 2, "dc": 1}, "q2": {"dd": 2, "de": 4}}
RUN = pl.DataFrame(
    {
        "query_id": ["q1"] * 5 + ["q2"] * 2,
        "iteration": [1, 1, 2, 2, 3, 1, 1],
        "doc_id": ["da", "dx", "da", "db", "-", "dx", "de"],
        "rank": [1, 2, 1, 2, 0, 1, 2],
    }
)


def test_the_number_after_l_is_the_threshold_and_2_without_it() -> None:
    qrels = host.Qrels({"q": {"a": 1, "b": 1.8, "c": 2, "d": 2.6}})
    run = host.Run(in_one_search({"q": dict.fromkeys("abcd", 1.0)}))
    with pytest.warns(gg.GoodgainNotice, match="no label of the qrels reaches the threshold 3"):
        scores = ranx.evaluate(qrels, run, ["sre", "sre-l1", "sre-l2", "sre-l2.0", "sre@1-l2.5", "sre-l1.8", "sre-l3"])
    assert list(scores.values()) == [0.5, 1, 0.5, 0.5, 0.25, 0.75, 0]


@pytest.mark.each
@pytest.mark.parametrize(("metric", "says"), json.loads(REFUSED.read_text(encoding="utf-8"))["ranx"])
def test_a_metric_of_ours_that_cannot_be_read_is_one_clear_error(metric: str, says: str) -> None:
    with pytest.raises(gg.MeasureError, match=says):
        ranx.evaluate(QRELS, {"q1": {"da": 1.0}, "q2": {"dd": 1.0}}, metric)


def test_the_error_of_an_unknown_metric_lists_ours() -> None:
    with pytest.raises(ValueError, match=r"ncdg not supported.*goodgain adds.* srr, .* n_cg, "):
        ranx.evaluate(host.Qrels(QRELS), host.Run(RUN), "ncdg")


def test_our_own_spelling_of_a_name_is_understood() -> None:
    names = ["cg@2", "n_cg@2", "avg_gain@1", "sre-l2.5"]
    for spelled in (["CG@2", "nCG@2", "AvgGain@1", "SRE-l2.5"], ["Cg@2", "ncg@2", "avggain@1", "sre-l2.5"]):
        found, wanted = (ranx.evaluate(host.Qrels(QRELS), host.Run(RUN), of) for of in (spelled, names))
        assert [*found.values()] == [*wanted.values()]
        assert [*found] == spelled
    comparison = ranx.compare(
        host.Qrels(QRELS), [host.Run(RUN, name="a"), host.Run(RUN, name="b")], ["nCG@2", "ndcg@2"]
    )
    assert "nCG@2 ↑" in comparison.to_table() and "NDCG@2" in comparison.to_table()


def test_results_come_as_ranx_gives_them() -> None:
    qrels, run = host.Qrels(QRELS), host.Run(RUN, name="agent")
    assert ranx.evaluate(qrels, run, "srr") == pytest.approx((1 / 4 + 0) / 2)
    assert ranx.evaluate(qrels, run, ["srr"]) == pytest.approx(1 / 8)
    by_query = ranx.evaluate(qrels, run, ["srr", "ndcg@10"], return_mean=False, threads=1)
    assert by_query["srr"].tolist() == [0.25, 0]
    assert ranx.evaluate(qrels, run, "cg@2", return_mean=False, save_results_in_run=False).tolist() == [5, 4]
    spread = ranx.evaluate(qrels, run, ["cg", "mrr"], return_std=True)
    assert spread["cg"] == pytest.approx({"mean": 4.5, "std": 0.5})
    assert run.mean_scores["cg"] == 4.5
    assert run.std_scores["cg"] == 0.5
    assert run.scores["cg"] == {"q1": 5, "q2": 4}
    assert "cg@2" not in run.scores


def test_nothing_is_saved_where_it_is_not_wanted() -> None:
    run = host.Run(RUN)
    ranx.evaluate(host.Qrels(QRELS), run, ["srr", "cg"], save_results_in_run=False)
    assert not run.scores
    assert not run.mean_scores


@pytest.mark.slow
def test_a_run_filled_in_any_order_saves_each_value_with_its_query() -> None:
    run = ranx.Run()
    run.add_score("q2", "de", 1.0)
    run.add_score("q1", "dx", 2.0)
    assert not run.sorted
    with no_notices():
        ranx.evaluate(host.Qrels(QRELS), run, "cg")
    assert run.scores["cg"] == {"q1": 0, "q2": 4}


def test_queries_that_differ_are_ranx_s_own_error_unless_they_are_made_comparable() -> None:
    more = pl.concat([RUN, pl.DataFrame({"query_id": "q9", "iteration": [1], "doc_id": "dz", "rank": [1]})])
    qrels = host.Qrels(QRELS | {"q3": {"df": 2}})
    with pytest.raises(AssertionError, match="do not match"):
        ranx.evaluate(qrels, host.Run(more), "cg")
    run = host.Run(more)
    scores = ranx.evaluate(qrels, run, ["cg", "iterations_for_all_good_results", "ndcg@10"], make_comparable=True)
    assert scores["cg"] == pytest.approx((5 + 4 + 0) / 3)
    assert run.scores["iterations_for_all_good_results"] == {"q1": 2, "q2": 100, "q3": 100}
    assert "q9" not in set(run.iterated.rows["query_id"])  # gone for ours as for ranx's


def test_a_query_with_nothing_but_empty_iterations_is_one_with_searches() -> None:
    rows = {"query_id": ["q1", "q2", "q2"], "iteration": [1, 1, 2], "doc_id": ["da", "-", "-"], "rank": [1, 0, 0]}
    run = host.Run(pl.DataFrame(rows))
    scores = ranx.evaluate(host.Qrels(QRELS), run, ["num_iter", "cg", "ndcg@10"], return_mean=False)
    assert scores["num_iter"].tolist() == [1, 2]
    assert scores["ndcg@10"][1] == 0


@pytest.mark.slow
@pytest.mark.parametrize("make", [dict, ranx.Qrels, host.Qrels], ids=["dict", "ranx", "ours"])
@pytest.mark.parametrize("kind", ["dict", "ranx", "ours"])
def test_dicts_and_ranx_s_own_classes_are_one_iteration(make: Callable[[Any], Any], kind: str) -> None:
    flat = {"q1": {"da": 3.0, "dx": 2.0, "db": 1.0}, "q2": {"dx": 2.0, "de": 1.0}}
    run = {"dict": flat, "ranx": ranx.Run(flat), "ours": host.Run(flat)}[kind]
    with pytest.warns(gg.GoodgainNotice, match="no iterations in this run"):
        scores = ranx.evaluate(make(QRELS), run, ["sre", "srr", "num_iter", "cg@1", "ndcg@10", "mrr"])
    wanted = {"sre": 7 / 12, "srr": 0, "num_iter": 1, "cg@1": 4.5, "mrr": 0.75}
    assert {name: scores[name] for name in wanted} == pytest.approx(wanted)


def test_ours_pair_the_queries_of_dicts_by_id() -> None:
    run = {"q2": {"de": 1.0}, "q1": {"da": 1.0, "db": 1.0}}
    with no_notices():
        assert ranx.evaluate(QRELS, run, "cg", return_mean=False).tolist() == [4, 5]


@pytest.mark.slow
def test_qrels_are_saved_as_ranx_saves_them(tmp_path: Path) -> None:
    qrels = host.Qrels(QRELS)
    qrels.save(str(tmp_path / "qrels.trec"))
    assert ranx.Qrels.from_file(str(tmp_path / "qrels.trec")).to_dict() == qrels.to_dict() == QRELS


@pytest.mark.slow
def test_a_plain_run_is_one_notice_that_points_at_the_caller() -> None:
    plain = ranx.Run({"q1": {"da": 1.0}, "q2": {"de": 1.0}})
    with pytest.warns(gg.GoodgainNotice, match="no iterations in this run") as said:
        ranx.evaluate(ranx.Qrels(QRELS), plain, ["sre@2", "cg@3", "srr@2-l3", "ndcg@10"])
    assert len(said) == 1
    assert said[0].filename != host.__file__


@pytest.mark.slow
@pytest.mark.parametrize(
    "documents",
    [
        ["ab cd", '"', "😀é", "d\t1", "x" * 1_000_000],
        pytest.param(["a" * 50 + "1", "a" * 50 + "2"], marks=pytest.mark.slow),  # ranx compiles for each length
    ],
)
def test_any_id_reaches_ours_as_it_is(documents: list[str]) -> None:
    rows = pl.DataFrame({"query_id": "q", "iteration": 1, "doc_id": documents + documents, "score": 0.0})
    labels = {"q": dict.fromkeys(documents, 2)}
    scores = ranx.evaluate(host.Qrels(labels), host.Run(rows), ["num_good", "num_dup", "recall@100"])
    assert scores == {"num_good": len(documents), "num_dup": len(documents), "recall@100": 1}
    plain = {"q": {doc: 1.0 for doc in documents if len(doc) < 100}}
    with no_notices():
        assert ranx.evaluate(host.Qrels(plain), ranx.Run(plain), "num_unique") == len(plain["q"])


def test_bare_arrays_have_no_ids_and_are_one_clear_error() -> None:
    arrays = host.Run(RUN).to_typed_list()
    labels = host.Qrels(QRELS).to_typed_list()
    with pytest.raises(gg.InputError, match=r"no doc_ids.*ranx\.Qrels"):
        ranx.evaluate(labels, arrays, "srr")
    assert ranx.evaluate(labels, arrays, "mrr") == 0.75
    with pytest.raises(gg.InputError, match=r"goodgain\.hosts\.ranx\.Run"):
        ranx.evaluate(host.Qrels(QRELS), np.zeros((2, 1, 2)), "srr")


@pytest.mark.slow
def test_fractional_labels_are_kept_and_a_plain_ranx_qrels_has_cut_them() -> None:
    labels = {"q": {"da": 2.9, "db": 1.8}}
    run = host.Run(in_one_search({"q": {"da": 2.0, "db": 1.0}}))
    scores = ranx.evaluate(host.Qrels(labels), run, ["cg", "sre-l2.5", "dcg@1"])
    assert scores == pytest.approx({"cg": 2.9, "sre-l2.5": 0.5, "dcg@1": 2.9})
    cut = ranx.evaluate(ranx.Qrels(labels), run, ["cg", "dcg@1"])
    assert cut == {"cg": 2, "dcg@1": 2}


def test_labels_by_iteration_hold_for_ours_and_a_classic_metric_says_what_it_takes() -> None:
    rows = pl.DataFrame({"query_id": "q", "iteration": ["1", "2"], "doc_id": "da", "relevance": [2.0, 4.0]})
    with pytest.warns(gg.GoodgainNotice, match="differ"):
        qrels = host.Qrels(rows, labels="iteration")
    run = host.Run(pl.DataFrame({"query_id": "q", "iteration": [1, 2], "doc_id": ["da", "da"], "rank": 1}))
    assert ranx.evaluate(qrels, run, "cg") == 2
    with pytest.warns(gg.GoodgainNotice, match="largest label"):
        assert ranx.evaluate(qrels, run, "dcg@1") == 4


def test_a_query_without_any_label_is_one_clear_error() -> None:
    with no_notices(), pytest.raises(gg.InputError, match="'q2' has no label"):
        ranx.evaluate({"q1": {"da": 2}, "q2": {}}, {"q1": {"da": 1.0}, "q2": {"db": 1.0}}, "cg")


def test_the_ledger_is_made_once_for_each_threshold(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[float] = []
    count_run = steps.count_run

    def count(*args: Any) -> Any:
        made.extend(args[2])
        return count_run(*args)

    monkeypatch.setattr(steps, "count_run", count)
    ranx.evaluate(host.Qrels(QRELS), host.Run(RUN), ["ndcg@10", "cg", "srr@2", "sre", "cg-l3", "rag@1-l3", "num_iter"])
    assert made == [2, 3]


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: host.Run(RUN).add_score("q1", "dz", 1.0), "cannot change"),
        (lambda: host.Run(RUN).add_multi(["q1"], [["dz"]], [[1.0]]), "cannot change"),
        (lambda: host.Qrels(QRELS).set_relevance_level(2), "-lN after a metric"),
        (lambda: host.Run.from_file("agent.run"), r"ranx\.Run\(path\)"),
        (lambda: host.Qrels.from_file("qrels.txt"), r"ranx\.Qrels\(path\)"),
    ],
)
def test_what_would_part_ranking_and_iterations_is_refused(call: Callable[[], object], says: str) -> None:
    with pytest.raises(gg.InputError, match=says):
        call()


def test_the_flattening_order_is_the_run_s_own(tmp_path: Path) -> None:
    path = tmp_path / "agent.run"
    path.write_text("q 1 x 1 2 t\nq 1 y 2 1 t\nq 2 a 1 1 t\n")
    qrels = host.Qrels({"q": {"a": 2}})
    values = [ranx.evaluate(qrels, host.Run(path, order=order), "mrr") for order in ("seen", "interleaved", "last")]
    assert values == pytest.approx([1 / 3, 1 / 2, 1])
    assert host.Run(path).name == "agent"
    assert host.Run(path, "mine").name == "mine"
    with pytest.raises(gg.InputError, match="order"):
        host.Run(path, order="best")


def test_registering_twice_and_unregistering_leave_ranx_as_it_was() -> None:
    host.register()
    host.register()
    assert ranx.evaluate(host.Qrels(QRELS), host.Run(RUN), "cg") == 4.5
    host.unregister()
    try:
        host.unregister()
        with pytest.raises(ValueError, match="not supported"):
            ranx.evaluate(host.Qrels(QRELS), host.Run(RUN), "cg")
        assert ranx.evaluate(host.Qrels(QRELS), host.Run(RUN), "mrr") == 0.75
    finally:
        host.register()
    assert ranx.evaluate(host.Qrels(QRELS), host.Run(RUN), "cg") == 4.5


def test_a_notice_about_the_qrels_comes_once_for_all_runs_of_a_comparison() -> None:
    runs = [host.Run(in_one_search({"q": {"a": 1.0}, "p": {"a": 1.0}}), name=name) for name in ("one", "other")]
    with pytest.warns(gg.GoodgainNotice) as told:
        ranx.compare(host.Qrels({"q": {"a": 1}, "p": {"a": 1}}), runs, ["cg", "sre"])
    assert [str(one.message)[:44] for one in told] == ["no label of the qrels reaches the threshold "]
