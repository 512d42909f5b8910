"""A notice points at the user's own line, and is given once a public call and subject."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import duckdb
import ir_measures
import pandas as pd
import polars as pl
import pytest

import goodgain as gg
from goodgain.hosts.pytrec_eval import RelevanceEvaluator
from tests.support.notices import notices_of
from tests.support.tables import in_one_search


def test_a_notice_names_the_line_that_called_us() -> None:
    with pytest.warns(gg.GoodgainNotice) as told:
        gg.evaluate({"q": {"a": 2}}, {"q": {"a": 1.0}}, "SRE@3")
    assert told[0].filename == __file__


QRELS = {"q": {"a": 2, "b": 0}, "p": {"a": 2}}
BINARY = {"q": {"a": 1}}
FOUND = in_one_search({"q": {"a": 1.0}})
NUMBERED = pd.DataFrame({"query_id": "q", "iteration": ["1"], "doc_id": "a", "relevance": 2})
TIED = pl.DataFrame(
    {
        "query_id": list("qqpp"),
        "iteration": [1, 1, 1, 2],
        "doc_id": ["a", "b", "a", "a"],
        "rank": [1, 2, 1, 1],
        "score": 0.0,
    }
)
FEW_JUDGED = in_one_search({"q": {"a": 2.0, "x": 1.0}})
THRESHOLDS = "CG SRE CG(rel=3) SRE(rel=3)@1 SRR"

#: A call of a host or on an engine, and how its notices begin; tests/scoring/calls.json has those of goodgain alone.
CALLS: dict[str, tuple[Callable[[], Any], list[str]]] = {
    "two thresholds in ir_measures": (
        lambda: ir_measures.calc_aggregate([gg.CG, gg.CG(rel=3), gg.SRE], BINARY, gg.read_run(FOUND)),
        ["no label of the qrels reaches the threshold 2 or 3"],
    ),
    "two measures in pytrec_eval": (
        lambda: RelevanceEvaluator(BINARY, {"cg", "sre", "ndcg"}).evaluate(FOUND),
        ["no label of the qrels reaches the threshold 2"],
    ),
    "scores that tie in a query with one search, on DuckDB": (
        lambda: gg.evaluate(QRELS, duckdb.from_arrow(TIED.to_arrow()), "nDCG@10 CG"),
        ["in 1 query with one search, classic measures sort by score, not by rank"],
    ),
    "column 2 of the qrels, in ir_measures": (
        lambda: ir_measures.calc_aggregate([gg.CG, gg.SRR, ir_measures.RR], NUMBERED, gg.read_run(FOUND)),
        ["the qrels frame: column 2 holds positive integers"],
    ),
    "low coverage in ir_measures, in measures of both kinds": (
        lambda: ir_measures.calc_aggregate([gg.CG, gg.GradedP @ 2, gg.RankDCG], QRELS, gg.read_run(FEW_JUDGED)),
        ["coverage is low: 0.50 of the 2 unique results"],
    ),
}


@pytest.mark.parametrize("case", CALLS)
def test_a_notice_is_given_once_a_call_and_subject(case: str) -> None:
    call, wanted = CALLS[case]
    _, told = notices_of(call, coverage=True)
    assert [text[: len(begin)] for text, begin in zip(told, wanted, strict=True)] == wanted


def test_scores_keep_every_notice_of_their_call() -> None:
    with pytest.warns(gg.GoodgainNotice) as told:
        scores = gg.evaluate(BINARY, FOUND, THRESHOLDS)
    assert scores.notes == tuple(str(one.message) for one in told) != ()
    assert gg.evaluate({"q": {"a": 3}}, {"q": {"a": 1.0}}, "nDCG@10").notes == ()


@pytest.mark.slow
def test_notices_of_calls_in_several_threads_stay_with_their_calls() -> None:
    from concurrent.futures import ThreadPoolExecutor

    def count(number: int) -> int:
        return len(gg.evaluate(BINARY if number % 2 else {"q": {"a": 3, "b": 0}}, FOUND, "CG").notes)

    with pytest.warns(gg.GoodgainNotice) as told, ThreadPoolExecutor(4) as pool:
        counts = list(pool.map(count, range(40)))
    assert {counts[k] for k in range(0, 40, 2)} != {counts[k] for k in range(1, 40, 2)} and len(told) == sum(counts)


def test_a_notice_points_at_the_line_of_the_user_also_through_the_hosts() -> None:
    with pytest.warns(gg.GoodgainNotice) as told:
        ir_measures.calc_aggregate([gg.CG(rel=3)], BINARY, gg.read_run(FOUND))
        gg.compare(BINARY, {"one": FOUND, "other": FOUND}, "CG")
    assert {one.filename for one in told} == {__file__}
