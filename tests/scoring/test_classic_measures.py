"""Classic measures are computed over the ranking table unless a provider is asked for, and the signature says by whom."""

from __future__ import annotations

from random import Random
from typing import Any

import duckdb
import polars as pl
import pytest

import goodgain as gg
from tests.support.ranking_cases import BELOW_ZERO, WHOLE, make_case
from tests.support.tables import in_one_search

NAMES = "nDCG@10 nDCG RR@10 RR R@100 AP P@5 Rprec Success@3 IPrec@0.5 SetF Judged@10 NumRet NumRel"
QRELS = {"q": {"a": 2, "b": 1}, "p": {"c": 1}}
RUN = in_one_search({"q": {"a": 1.0, "x": 0.5}, "p": {"x": 1.0}})


@pytest.mark.slow
def test_a_provider_that_is_named_has_the_same_values() -> None:
    names = "nDCG@10 nDCG RR R@100 AP P@5 Rprec Success@3 IPrec@0.5 SetF NumRet NumRel"
    for seed in range(20):
        case = make_case(Random(seed), queries=30, labels=(*WHOLE, *BELOW_ZERO))
        ranking = case.ranking.filter(pl.col("score").is_finite())  # a run's scores are
        scores = gg.evaluate(case.qrels, ranking, names)
        theirs = gg.evaluate(case.qrels, ranking, names, provider="pytrec_eval")
        assert scores.mean() == pytest.approx(theirs.mean(), abs=1e-12)
        key = ["query_id", "measure"]
        joined = scores.per_query.join(theirs.per_query, on=key, how="full", coalesce=True)
        assert joined.height == scores.per_query.height
        assert (joined["value"] - joined["value_right"]).abs().max() <= 1e-12  # type: ignore[operator]  # a number


def test_the_digest_tells_qrels_apart_whatever_their_order_and_container() -> None:
    frame = pl.DataFrame({"query_id": ["q", "q", "p"], "doc_id": ["a", "b", "c"], "relevance": [2, 1, 1]})
    digests = {
        gg.evaluate(qrels, RUN, "CG(rel=1)").signature["qrels"]
        for qrels in (
            QRELS,
            frame,
            frame[::-1],
            frame.lazy(),
            frame.to_pandas(),
            duckdb.connect().from_arrow(frame.to_arrow()),
        )
    }
    assert len(digests) == 1 and len(digests.pop()) == 8

    others: list[dict[str, Any]] = [
        {"q": {"a": 2, "b": 2}, "p": {"c": 1}},
        {"q": {"a": 2, "b": 1, "d": 0}, "p": {"c": 1}},
        {"q": {"a": 2, "b": 1}, "r": {"c": 1}},
        {"q": {"a": 2.5, "b": 1}, "p": {"c": 1}},
    ]
    assert len({gg.read_qrels(qrels).digest for qrels in (QRELS, *others)}) == 5


@pytest.mark.parametrize("order", ["seen", "interleaved", "last"])
def test_an_iterated_run_has_the_values_of_its_flattened_ranking(order: str) -> None:
    rows = {
        "query_id": "q",
        "iteration": [1, 1, 1, 2, 2, 3],
        "doc_id": ["x", "y", "a", "a", "b", "x"],
        "rank": [1, 2, 3, 1, 2, 1],
    }
    run = pl.DataFrame(rows)
    scores = gg.evaluate({"q": {"a": 2, "b": 1, "y": 0}}, run, NAMES, order=order)
    flat = gg.flatten(run, order=order)
    assert scores.mean() == gg.evaluate({"q": {"a": 2, "b": 1, "y": 0}}, flat, NAMES).mean()
    assert scores.signature["order"] == order


def test_labels_by_iteration_reach_classic_measures() -> None:
    qrels = pl.DataFrame(
        {"query_id": ["q"] * 3, "iteration": ["1", "2", "0"], "doc_id": ["a", "a", "b"], "relevance": [0, 3, 1]}
    )
    run = pl.DataFrame({"query_id": "q", "iteration": [1, 2, 2], "doc_id": ["a", "a", "b"], "rank": [1, 1, 2]})
    with pytest.warns(gg.GoodgainNotice, match="labels that differ between iterations"):
        judged = gg.read_qrels(qrels, labels="iteration")
    scores = gg.evaluate(judged, run, "P@2 RR NumRel nDCG@2")
    theirs = gg.evaluate(judged, run, "P@2 RR NumRel nDCG@2", provider="pytrec_eval")
    assert scores.mean() == pytest.approx(theirs.mean(), abs=1e-12)
    assert scores["RR"] == 0.5  # the later label of 3 for `a` does not count


def test_compare_uses_them_too() -> None:
    with pytest.warns(gg.GoodgainNotice, match="coverage is low"):
        comparison = gg.compare(QRELS, {"one": RUN, "other": {"q": {"b": 1.0}, "p": {"x": 1.0}}}, "nDCG@10 P@5")
    assert comparison.signature["classic"] == ["goodgain"]
    assert comparison.means.filter(pl.col("system") == "one")["mean"].to_list() == [
        gg.evaluate(QRELS, RUN, "nDCG@10")["nDCG@10"],
        gg.evaluate(QRELS, RUN, "P@5")["P@5"],
    ]
