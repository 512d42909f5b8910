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
from tests.formats.test_column_names import notices_of
from tests.support.tables import in_one_search


def test_a_notice_names_the_line_that_called_us() -> None:
    with pytest.warns(gg.GoodgainNotice) as told:
        gg.evaluate({"q": {"a": 2}}, {"q": {"a": 1.0}}, "SRE@3")
    assert told[0].filename == __file__


QRELS = {"q": {"a": 2, "b": 0}, "p": {"a": 2}}
BINARY = {"q": {"a": 1}}
FOUND = in_one_search({"q": {"a": 1.0}})
FOUND_IN_BOTH = in_one_search({"q": {"a": 1.0}, "p": {"a": 1.0}})
GAPS = pl.DataFrame({"query_id": ["q", "q", "p"], "iteration": [1, 3, 1], "doc_id": ["a", "b", "a"], "rank": 1})
NAMED = GAPS.rename({"query_id": "qid"}).with_columns(iteration=1)
CONTRADICTING = pl.DataFrame(
    {"query_id": "q", "iteration": [1, 1, 2], "doc_id": ["a", "b", "c"], "rank": [1, 2, 1], "score": [1.0, 2.0, 3.0]}
)
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
OF_TEN_ITERATIONS = pl.DataFrame({"query_id": "q", "iteration": range(1, 11), "doc_id": list("amnopqrstu")})
THRESHOLDS = "CG SRE CG(rel=3) SRE(rel=3)@1 SRR"

#: A call, and how its notices begin.
CALLS: dict[str, tuple[Callable[[], Any], list[str]]] = {
    "two thresholds": (
        lambda: gg.evaluate(BINARY, FOUND, THRESHOLDS),
        ["no label of the qrels reaches the threshold 2 or 3"],
    ),
    "two thresholds of several runs": (
        lambda: gg.compare(BINARY, {"one": FOUND, "other": FOUND}, "CG CG(rel=3)"),
        ["no label of the qrels reaches the threshold 2 or 3"],
    ),
    "two thresholds in ir_measures": (
        lambda: ir_measures.calc_aggregate([gg.CG, gg.CG(rel=3), gg.SRE], BINARY, gg.read_run(FOUND)),
        ["no label of the qrels reaches the threshold 2 or 3"],
    ),
    "two measures in pytrec_eval": (
        lambda: RelevanceEvaluator(BINARY, {"cg", "sre", "ndcg"}).evaluate(FOUND),
        ["no label of the qrels reaches the threshold 2"],
    ),
    "gaps in two runs": (
        lambda: gg.compare(QRELS, {"one": GAPS, "two": FOUND_IN_BOTH, "three": GAPS}, "CG"),
        ["one, three: numbers of iterations are missing in 1 query", "CG: the systems stop at different iterations"],
    ),
    "the same names of columns in all runs": (
        lambda: gg.compare(QRELS, {"one": NAMED, "two": NAMED}, "CG"),
        ["one, two: the run frame: 'qid' was read as query_id"],
    ),
    "ranks against scores, in classic measures of both kinds": (
        lambda: gg.evaluate(QRELS, CONTRADICTING, "nDCG@10 RR infAP Bpref CG"),
        ["ranks contradict scores within an iteration in 1 query", "coverage is low: 0.67 of the 3 unique results"],
    ),
    "scores that tie in a query with one search": (
        lambda: gg.evaluate(QRELS, TIED, "nDCG@10 CG"),
        ["classic measures order 1 query with one search by score, ties by doc_id"],
    ),
    "scores that tie in a query with one search, on DuckDB": (
        lambda: gg.evaluate(QRELS, duckdb.from_arrow(TIED.to_arrow()), "nDCG@10 CG"),
        ["classic measures order 1 query with one search by score, ties by doc_id"],
    ),
    "scores that tie in a query with one search, without classic measures": (
        lambda: gg.evaluate(QRELS, TIED, "CG"),
        [],
    ),
    "scores that tie in a run of single searches": (
        lambda: gg.evaluate(QRELS, TIED.with_columns(iteration=1), "nDCG@10 CG"),
        [],
    ),
    "no iterations, by repeats and by a cutoff": (
        lambda: gg.evaluate(QRELS, pl.DataFrame({"query_id": "q", "doc_id": ["a", "a"]}), "CG@2 CG@3"),
        ["no iterations in this run"],
    ),
    "a column that looks like the iteration": (
        lambda: gg.flatten(GAPS.rename({"iteration": "step"}), order="last"),
        ["found the column 'step'"],
    ),
    "column 2 of the qrels, in ir_measures": (
        lambda: ir_measures.calc_aggregate(
            [gg.CG, gg.SRR, ir_measures.RR],
            pd.DataFrame({"query_id": "q", "iteration": ["1"], "doc_id": "a", "relevance": 2}),
            gg.read_run(FOUND),
        ),
        ["the qrels frame: column 2 holds positive integers"],
    ),
    "low coverage, in measures of both kinds": (
        lambda: gg.evaluate(QRELS, FEW_JUDGED, "nDCG@10 CG SRE Bpref GradedP@2"),
        ["coverage is low: 0.50 of the 2 unique results have a label (by iteration 0.50)"],
    ),
    "low coverage of ten iterations, which are all listed": (
        lambda: gg.evaluate(QRELS, OF_TEN_ITERATIONS, "CG"),
        ["coverage is low: 0.10 of the 10 unique results have a label (by iteration 1.00" + ", 0.00" * 9 + ")"],
    ),
    "low coverage in ir_measures, in measures of both kinds": (
        lambda: ir_measures.calc_aggregate([gg.CG, gg.GradedP @ 2, gg.RankDCG], QRELS, gg.read_run(FEW_JUDGED)),
        ["coverage is low: 0.50 of the 2 unique results"],
    ),
    "low coverage of one of two systems": (
        lambda: gg.compare(QRELS, {"one": FEW_JUDGED, "two": FOUND_IN_BOTH}, "CG@1"),
        [
            "one: coverage is low: 0.50 of the 2 unique results have a label",
            "Verdicts that rest on queries absent from a run: CG@1 of two against one",
            "1 query is absent from one, whose run has no row of it: p",
        ],
    ),
    "low coverage in a curve": (
        lambda: gg.curve(QRELS, {"one": FEW_JUDGED}, "CG SRE"),
        ["one: coverage is low: 0.50 of the 2 unique results"],
    ),
    "low coverage in the ledger": (
        lambda: gg.ledger(QRELS, FEW_JUDGED, measures="CG SRE"),
        ["coverage is low: 0.50 of the 2 unique results"],
    ),
    "an empty run": (lambda: gg.evaluate(QRELS, {}, "CG nDCG@10 SRE"), ["the run dict: the run is empty"]),
}


@pytest.mark.parametrize("case", CALLS)
def test_a_notice_is_given_once_a_call_and_subject(case: str) -> None:
    call, wanted = CALLS[case]
    _, told = notices_of(call, coverage=True)
    assert [text[: len(begin)] for text, begin in zip(told, wanted, strict=True)] == wanted


def test_low_coverage_is_one_notice_with_a_line_a_system_and_its_runs_together() -> None:
    other = in_one_search({"q": {"a": 3.0, "x": 2.0, "y": 1.0}})
    systems = {"one": FEW_JUDGED, "two": [FEW_JUDGED, other], "good": FOUND_IN_BOTH}
    _, told = notices_of(lambda: gg.curve(QRELS, systems, "CG"), coverage=True)
    (said,) = [text for text in told if "coverage" in text]
    assert said.splitlines() == [
        "coverage is low: under 0.8 of the unique results have a label; most measures count the others as not relevant. Judge "
        "more of them (goodgain pool lists them), or see their possible effect with bounds=True.",
        "  one: 0.50 of 2 (by iteration 0.50)",
        "  two: run 1 0.50 of 2 (by iteration 0.50); run 2 0.33 of 3 (by iteration 0.33)",
    ]
    (alone,) = gg.evaluate(QRELS, [FEW_JUDGED, other], "CG").notes
    assert alone.splitlines()[1:] == ["  run 1 0.50 of 2 (by iteration 0.50); run 2 0.33 of 3 (by iteration 0.33)"]
    strange = in_one_search({"q": {"v": 3.0}})
    stranger = in_one_search({"q": {"v": 3.0, "w": 2.0}})
    _, none = notices_of(lambda: gg.curve(QRELS, {"one": strange, "two": [stranger, other]}, "CG"), coverage=True)
    assert [text.split(".")[0] for text in none] == [
        "coverage is low: no result has a label",
        "two (run 2): coverage is low: 0",
    ]
    assert none[0].count("\n") == 2


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
