"""What must hold on every engine: plain functions of `put`, which makes a frame of the engine from one of Polars.

test_engines.py calls them for the engines that need no more than Python, test_spark.py for Spark.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from random import Random
from typing import Any
from unittest import mock

import narwhals as nw
import polars as pl
import pytest
from polars.testing import assert_frame_equal

import goodgain as gg
from goodgain.counting.ledger import count
from goodgain.measures import MEASURES
from goodgain.measures.names import parse_measure
from goodgain.measures.ranking_values import RankedScores, score_ranking
from goodgain.ranking.dataframe_engines import tabulate_on_engine
from goodgain.ranking.first_occurrences_and_flattening import ORDERS
from goodgain.ranking.ranking_table import number_judgments
from tests.scoring.test_against_oracle import random_case
from tests.support.random_runs import Case
from tests.support.ranking_cases import FRACTIONAL, WHOLE, make_case
from tests.support.tables import SESSIONS, no_notices, qrels_frame, run_frame

Put = Callable[[pl.DataFrame], Any]

NAMES = [
    *(name for name, measure in MEASURES.items() if measure.declaration.cutoff != "required"),
    *(f"{name}@{at}" for name, measure in MEASURES.items() if measure.declaration.cutoff != "none" for at in (1, 3)),
    "CG(rel=1.8)",
    "SRE(rel=3)@2",
]
CLASSIC = ["RR", "AP(rel=2)", "P@3", "NumRet"]


@cache
def random_runs(labels: str | None, number: int = 200) -> Case:
    """The queries of 200 random runs in one run: one question to an engine instead of 200."""
    run, qrels, found, seed = [], [], 0, 0
    while found < number:
        case = random_case(seed)
        if case.labels == labels:
            run += [row._replace(query_id=f"{seed}-{row.query_id}") for row in case.run]
            qrels += [row._replace(query_id=f"{seed}-{row.query_id}") for row in case.qrels]
            found += 1
        seed += 1
    return Case(run, qrels, labels)


def in_memory(frame: Any) -> pl.DataFrame:
    """A frame of any engine as Polars."""
    native = nw.from_native(frame)
    return (native.collect("polars") if isinstance(native, nw.LazyFrame) else native).to_polars()


def in_one_order(ranking: pl.DataFrame) -> pl.DataFrame:
    return ranking.sort("query_id", "rank", "doc_id")


def scores_agree(put: Put, labels: str | None) -> None:
    run, rows, _ = random_runs(labels)
    names = [*NAMES, *CLASSIC]
    with no_notices():
        here = gg.evaluate(gg.read_qrels(qrels_frame(rows), labels=labels), run_frame(run), names)
        there = gg.evaluate(gg.read_qrels(put(qrels_frame(rows)), labels=labels), put(run_frame(run)), names)
    assert_frame_equal(there.per_query, here.per_query, check_row_order=True, rel_tol=1e-12, abs_tol=1e-12)
    assert there.mean() == pytest.approx(here.mean(), abs=1e-12, rel=1e-12)
    assert there.signature == here.signature


def ledgers_and_pools_agree(put: Put, labels: str | None) -> None:
    run, rows, _ = random_runs(labels)
    with no_notices():
        run_here = gg.read_run(run_frame(run)).frame
        qrels_here = gg.read_qrels(qrels_frame(rows), labels=labels).frame
    here = count(qrels_here, run_here, rels=(1.8, 2, 3), labels=labels)
    run_there = put(run_here)
    for qrels_there in (qrels_here, put(qrels_here)):  # carried there, and there already
        there = count(qrels_there, run_there, rels=(1.8, 2, 3), labels=labels)
        for rel in here:
            assert_frame_equal(there[rel].ledger, here[rel].ledger, abs_tol=1e-12)
            assert_frame_equal(there[rel].pools, here[rel].pools, abs_tol=1e-12)
            assert_frame_equal(there[rel].numbering, here[rel].numbering, check_row_order=False)


def rankings_agree(put: Put, order: str, without: tuple[str, ...] = ()) -> None:
    """Ranks are distinct in these runs, so that every engine has one order to find."""
    rows = run_frame(random_runs(None)[0]).drop(without)
    given = put(rows)
    here, said_here = told(lambda: gg.flatten(rows, order=order))
    there, said_there = told(lambda: gg.flatten(given, order=order))
    assert type(there) is type(given)
    assert_frame_equal(in_one_order(in_memory(there)), in_one_order(here), check_exact=True)
    assert said_there == said_here
    assert any("ranks contradict scores" in text for text in said_here) is (not without)


def the_real_sessions_agree(put: Put) -> None:
    run = gg.read_run(SESSIONS / "sessions.run").frame
    qrels = gg.read_qrels(SESSIONS / "sessions.qrels").frame
    there = put(run)
    here = gg.ledger(qrels, run)
    assert_frame_equal(gg.ledger(put(qrels), there), here, abs_tol=1e-12)
    assert here.select(pl.col("R", "Dup").sum()).row(0) == (3446, 773)
    names = [*NAMES, "nDCG@10", "RR", "AP", "R@100"]
    with no_notices():
        found = gg.evaluate(qrels, there, names)
        wanted = gg.evaluate(qrels, run, names)
    assert_frame_equal(found.per_query, wanted.per_query, rel_tol=1e-12, abs_tol=1e-12)
    for order in ORDERS:
        with no_notices():
            found_ranking = in_memory(gg.flatten(there, order=order))
            wanted_ranking = gg.flatten(run, order=order)
        assert_frame_equal(in_one_order(found_ranking), in_one_order(wanted_ranking), check_exact=True)


def ties_are_broken_by_doc_id(put: Put) -> None:
    """The engine keeps no order of rows: the ranking is the one in memory of rows that stand in order of doc_id."""
    rows = run_frame(random_runs(None)[0]).with_columns(rank=pl.col("rank") // 3)
    ordered = rows.sort("query_id", "doc_id", "score", descending=[False, False, True])
    for order in ORDERS:
        with no_notices():
            wanted = gg.flatten(ordered, order=order)
        found, said = told(lambda order=order: gg.flatten(put(rows), order=order))
        assert_frame_equal(in_one_order(in_memory(found)), in_one_order(wanted), check_exact=True)
        assert sum("ordered by doc_id, because the frame does not keep the order" in text for text in said) == 1


def a_lazy_run_is_told_of_as_one_in_memory(put: Put) -> None:
    """Empty, without iterations, with bad rows, with words for iterations."""
    types = {"query_id": pl.String, "iteration": pl.Int64, "doc_id": pl.String, "score": pl.Float64}
    with pytest.warns(gg.GoodgainNotice, match="the run is empty"):
        assert gg.evaluate({"q": {"a": 2}}, put(pl.DataFrame(schema=types)), "CG NumIter").mean() == {
            "CG": 0.0,
            "NumIter": 0.0,
        }
    repeats = put(pl.DataFrame({"query_id": "q", "doc_id": ["a", "a"], "score": [2.0, 1.0]}))
    with pytest.warns(gg.GoodgainNotice, match="no iterations in this run"):
        gg.read_run(repeats)
    bad = put(
        pl.DataFrame(
            {"query_id": ["q", None, "q", "r"], "iteration": 1, "doc_id": ["a", "b", "c", "d"], "score": [1, 2, 3, 4]}
        ).with_columns(score=pl.col("score").cast(pl.Float64).replace(3.0, float("nan")))
    )
    with pytest.raises(gg.InputError, match=r"has (no query_id|a score).*errors='skip'"):
        gg.read_run(bad)
    with pytest.warns(gg.GoodgainNotice, match="left out 2 bad rows, such as .* has (no query_id|a score)"):
        run = gg.read_run(bad, errors="skip")
    assert sorted(in_memory(run.frame)["doc_id"]) == ["a", "d"]
    words = put(
        pl.DataFrame(
            {"query_id": "q", "iteration": ["1", "x", "2"], "doc_id": ["a", "b", "c"], "score": [1.0, 2.0, 3.0]}
        )
    )
    with pytest.warns(gg.GoodgainNotice, match="left out 1 bad row: .* has 'x' in column 2"):
        run = gg.read_run(words, errors="skip")
    assert sorted(in_memory(run.frame)["doc_id"]) == ["a", "c"]


def missing_iterations_are_added(put: Put) -> None:
    rows = [
        ("q", 2, "a", 1, 1.0, "t"),
        ("q", 5, "b", 1, 1.0, "t"),
        ("r", 1, "a", 1, 1.0, None),
        ("s", 3, None, 0, 0.0, "u"),
    ]
    run = pl.DataFrame(rows, schema=["query_id", "iteration", "doc_id", "rank", "score", "tag"], orient="row")
    for first in (0, 1):
        here = gg.read_run(run, gaps="empty", first=first)
        there = gg.read_run(put(run), gaps="empty", first=first)
        key = ["query_id", "iteration", "doc_id"]
        assert_frame_equal(in_memory(there.frame).sort(key), here.frame.sort(key))
        assert_frame_equal(gg.ledger({"q": {"b": 2}}, there), gg.ledger({"q": {"b": 2}}, here))
    with pytest.raises(gg.InputError, match="below first=3"):
        gg.read_run(put(run), gaps="empty", first=3)


def queries_that_never_searched_are_known(put: Put) -> None:
    rows = [("q", 2, "a"), ("idle", None, "-"), ("q", 3, "b"), ("still", None, None), ("e", 2, None)]
    run = pl.DataFrame(rows, schema={"query_id": pl.String, "iteration": pl.Int64, "doc_id": pl.String}, orient="row")
    qrels = {name: {"a": 3} for name in ("q", "idle", "still", "e", "gone")}
    found = gg.evaluate(qrels, put(run), "CG NumIter")
    assert found.queries.never_searched.to_list() == ["idle", "still"]
    assert found.queries.only_judged.to_list() == ["gone"]
    assert in_memory(found.per_query.filter(measure="NumIter"))["value"].to_list() == [1, 0, 0, 2, 0]
    with pytest.raises(gg.InputError, match="says that query 'idle' never searched, but the query has other rows"):
        gg.read_run(put(pl.concat([run, run[1:2]])))


def told(call: Callable[[], Any]) -> tuple[Any, list[str]]:
    """What a call gives, and the notices it gave."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = call()
    return result, sorted(str(one.message) for one in caught if issubclass(one.category, gg.GoodgainNotice))


# --- What leaves an engine --------------------------------------------------------------------------------------------

QUERIES, ITERATIONS, DOCUMENTS, COPIES = 3, 4, 30, 20


def large_run() -> pl.DataFrame:
    """7,200 rows with a ledger of 12 and a ranking of 90: each iteration returns its documents twenty times."""
    rows = pl.select(row=pl.int_range(QUERIES * ITERATIONS * DOCUMENTS * COPIES))["row"].to_frame()
    return rows.select(
        query_id=pl.format("q{}", pl.col("row") % QUERIES),
        iteration=pl.col("row") // QUERIES % ITERATIONS + 1,
        doc_id=pl.format("d{}", pl.col("row") // (QUERIES * ITERATIONS) % DOCUMENTS),
        rank=pl.col("row") // (QUERIES * ITERATIONS) + 1,
        score=-(pl.col("row") // (QUERIES * ITERATIONS)).cast(pl.Float64),
    )


@contextmanager
def counted_rows() -> Iterator[list[int]]:
    """The number of rows of every lazy frame that is collected meanwhile, ours or narwhals'."""
    heights: list[int] = []
    polars, narwhals = pl.LazyFrame.collect, nw.LazyFrame.collect

    def collect_polars(self: pl.LazyFrame, *args: Any, **options: Any) -> Any:
        found = polars(self, *args, **options)
        if f"{pl.__name__}/" not in sys._getframe(1).f_code.co_filename:  # frames in memory work through lazy ones
            heights.append(found.height)
        return found

    def collect_narwhals(self: nw.LazyFrame[Any], *args: Any, **options: Any) -> Any:
        found = narwhals(self, *args, **options)
        heights.append(len(found))
        return found

    with (
        mock.patch.object(pl.LazyFrame, "collect", collect_polars),
        mock.patch.object(nw.LazyFrame, "collect", collect_narwhals),
    ):
        yield heights


THREE = ("nDCG@10", "RR@10", "R@100")  # trec_eval's order of ties, and msmarco's
OTHERS = ("RR", "AP(rel=2)", "nDCG(dcg='exp-log2')@5", "Judged@3", "NumRet", "nDCG(judged_only=True)@3")
OTHERS += ("GradedP@1", "GradedAP@3", "GradednDCG(dcg='exp-log2')@2")  # null in some queries


def odd_rankings() -> tuple[pl.DataFrame, pl.DataFrame]:
    """Run and qrels with all that makes engines differ: ties, scores beyond 32 bits, -0.0, ids in other scripts.

    Queries have one iteration, which keeps its scores; every fourth has its documents again in a second one.
    """
    case = make_case(Random(5), queries=60, labels=(*WHOLE, -1, *FRACTIONAL))
    first = case.ranking.with_columns(iteration=pl.lit(1, pl.Int64), score=pl.col("score").clip(-1e300, 1e300))
    again = first.filter(pl.col("query_id").cast(pl.Int64) % 4 == 0).with_columns(iteration=pl.lit(2, pl.Int64))
    return pl.concat([first, again]).select("query_id", "iteration", "doc_id", "score"), case.qrels


def classic_measures_agree_and_no_ranking_leaves(put: Put, counting: Callable[[], Any] = counted_rows) -> None:
    """A row for each query is all that leaves the engine, for each of three measures alone and for all of them."""
    run, qrels = odd_rankings()
    given, queries = put(run), run["query_id"].n_unique()
    for names in (*THREE, THREE, (*THREE, *OTHERS)):
        with no_notices():
            here = gg.evaluate(qrels, run, names)
            with counting() as heights:
                there = gg.evaluate(qrels, given, names)
        assert_frame_equal(there.per_query, here.per_query, rel_tol=1e-12, abs_tol=1e-12)
        assert there.mean() == pytest.approx(here.mean(), abs=1e-12, rel=1e-12)
        most = max(heights)
        # Of the ledger, a row for each query and iteration.
        assert queries <= most <= run.select("query_id", "iteration").n_unique() < len(run) / 3


def classic_measures_are_the_same_in_each_order(put: Put) -> None:
    """Of queries with one iteration and with several, with and without repeats, with and without ranks."""
    run, rows, _ = random_runs(None)
    for without in ((), ("rank",), ("score",)):
        frame = run_frame(run).drop(without)
        given = put(frame)
        for order in ORDERS:
            with no_notices():
                here = gg.evaluate(qrels_frame(rows), frame, (*THREE, *OTHERS), order=order)
                there = gg.evaluate(qrels_frame(rows), given, (*THREE, *OTHERS), order=order)
            assert_frame_equal(there.per_query, here.per_query, rel_tol=1e-12, abs_tol=1e-12)


def infinite_scores_are_ranked_as_in_memory(put: Put) -> None:
    """A run with infinite scores is refused; a ranking may have them."""
    case = make_case(Random(6), queries=60, labels=(*WHOLE, -1, *FRACTIONAL))
    assert case.ranking["score"].is_infinite().any()
    measures = [parse_measure(name) for name in (*THREE, *OTHERS)]
    there = RankedScores(measures, number_judgments(case.qrels))
    one_iteration = nw.from_native(put(case.ranking.with_columns(iteration=pl.lit(1, pl.Int64))))
    there.add(tabulate_on_engine(one_iteration, there.judgments, positions=there.positions))
    assert_frame_equal(there.finish(), score_ranking(measures, case.ranking, case.qrels), rel_tol=1e-12, abs_tol=1e-12)


def only_small_tables_leave(put: Put, counting: Callable[[], Any] = counted_rows) -> None:
    given = put(large_run())
    qrels = {f"q{k}": {f"d{n}": n % 4 for n in range(40)} for k in range(QUERIES)}
    with no_notices(), counting() as heights:
        gg.ledger(qrels, given)
        gg.evaluate(qrels, given, NAMES)
        gg.read_run(given, gaps="empty")
        gg.read_run(given, errors="skip")
        ledger_size = max(heights)
        rankings = [gg.flatten(given, order=order) for order in ORDERS]
        facts_size = max(heights)
        gg.evaluate(qrels, given, "RR AP nDCG@10")
        classic_size = max(heights)
        gg.evaluate(qrels, given, "RR AP nDCG@10", provider="pytrec_eval")
    assert 0 < ledger_size <= QUERIES * ITERATIONS
    if isinstance(given, pl.LazyFrame):  # Polars counts on its way, and ranks in memory
        assert facts_size == classic_size == max(heights) == large_run().height
    else:
        assert classic_size == facts_size == ledger_size
        assert max(heights) == QUERIES * DOCUMENTS  # the flattened ranking, for a host
    assert all(in_memory(ranking).height == QUERIES * DOCUMENTS for ranking in rankings)
    with no_notices(), counting() as heights:
        _ = gg.read_run(given).rows
    assert max(heights) == large_run().height  # such a count would have been seen
