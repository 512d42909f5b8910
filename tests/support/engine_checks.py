"""What must hold on every engine: plain functions of `put`, which makes a frame of the engine from one of Polars.

test_engines.py calls them for the engines that need no more than Python, test_spark.py for Spark.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path
from random import Random
from typing import Any, NamedTuple
from unittest import mock

import narwhals as nw
import polars as pl
import pytest
from polars.testing import assert_frame_equal

import goodgain as gg
from goodgain.formats import run_parts
from goodgain.measures import MEASURES
from goodgain.ranking.first_occurrences_and_flattening import ORDERS
from goodgain.scoring.score_run import count_run
from tests.scoring.test_against_oracle import random_case
from tests.support.forms import in_blocks, write_table
from tests.support.notices import notices_of
from tests.support.random_runs import Case
from tests.support.ranking_cases import FRACTIONAL, WHOLE, make_case
from tests.support.tables import SESSIONS, no_notices, qrels_frame, run_frame

Put = Callable[[pl.DataFrame], Any]

NAMES = [
    *(name for name, measure in MEASURES.items() if measure.declaration.cutoff != "required"),
    *(f"{name}@{at}" for name, measure in MEASURES.items() if measure.declaration.cutoff != "none" for at in (1, 3)),
    "CG(rel=1.8)",
    "SRE(rel=3)@2",
    "nDCGG(per=20)@2",
]
CLASSIC = ["RR", "AP(rel=2)", "P@3", "NumRet"]


@cache
def random_runs(labels: str | None, number: int = 200) -> Case:
    """The queries of 200 random runs in one run: one question to an engine instead of 200."""
    run, qrels, cases, seed = [], [], 0, 0
    while cases < number:
        case = random_case(seed)
        if case.labels == labels:
            run += [row._replace(query_id=f"{seed}-{row.query_id}") for row in case.run]
            qrels += [row._replace(query_id=f"{seed}-{row.query_id}") for row in case.qrels]
            cases += 1
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
    assert_frame_equal(there.per_query, here.per_query, check_exact=True)
    assert there.mean() == here.mean()
    assert there.signature == here.signature


def ledgers_and_pools_agree(put: Put, labels: str | None) -> None:
    run, rows, _ = random_runs(labels)
    rels = (1.8, 2, 3)
    with no_notices():
        qrels_here, qrels_there = (
            gg.read_qrels(frame, labels=labels) for frame in (qrels_frame(rows), put(qrels_frame(rows)))
        )
        here = count_run(qrels_here, gg.read_run(run_frame(run)), rels)
        there = count_run(qrels_there, gg.read_run(put(run_frame(run))), rels)
    for rel in here:
        assert_frame_equal(there[rel].ledger, here[rel].ledger, check_exact=True)
        assert_frame_equal(there[rel].pools, here[rel].pools, check_exact=True)
        assert_frame_equal(there[rel].numbering, here[rel].numbering, check_row_order=False)


def rankings_agree(put: Put, order: str, without: tuple[str, ...] = ()) -> None:
    """Ranks are distinct in these runs, so that every engine has one order to find."""
    rows = run_frame(random_runs(None)[0]).drop(without)
    rows_there = put(rows)
    here, said_here = told(lambda: gg.flatten(rows, order=order))
    there, said_there = told(lambda: gg.flatten(rows_there, order=order))
    assert type(there) is type(rows_there)
    assert_frame_equal(in_one_order(in_memory(there)), in_one_order(here), check_exact=True)
    assert said_there == said_here
    assert any("ranks contradict scores" in text for text in said_here) is (not without)


def the_real_sessions_agree(put: Put) -> None:
    run = gg.read_run(SESSIONS / "sessions.run").frame
    qrels = gg.read_qrels(SESSIONS / "sessions.qrels").frame
    there = put(run)
    here = gg.ledger(qrels, run)
    assert_frame_equal(gg.ledger(put(qrels), there), here, check_exact=True)
    assert here.select(pl.col("R", "Dup").sum()).row(0) == (3446, 773)

    names = [*NAMES, "nDCG@10", "RR", "AP", "R@100"]
    with no_notices():
        scores = gg.evaluate(qrels, there, names)
        wanted = gg.evaluate(qrels, run, names)
    assert_frame_equal(scores.per_query, wanted.per_query, check_exact=True)

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
    rows = [("q", 1, "a"), ("idle", None, "-"), ("q", 2, "b"), ("still", None, None), ("e", 1, None)]
    run = pl.DataFrame(rows, schema={"query_id": pl.String, "iteration": pl.Int64, "doc_id": pl.String}, orient="row")
    qrels = {name: {"a": 3} for name in ("q", "idle", "still", "e", "gone")}
    scores = gg.evaluate(qrels, put(run), "CG NumIter")
    assert scores.queries.never_searched.to_list() == ["idle", "still"]
    assert scores.queries.only_judged.to_list() == ["gone"]
    assert in_memory(scores.per_query.filter(measure="NumIter"))["value"].to_list() == [1, 0, 0, 2, 0]
    with pytest.raises(gg.InputError, match="says that query 'idle' never searched, but the query has other rows"):
        gg.read_run(put(pl.concat([run, run[1:2]])))


def told(call: Callable[[], Any]) -> tuple[Any, list[str]]:
    """What a call gives, and the notices it gave."""
    result, notices = notices_of(call, coverage=True)
    return result, sorted(notices)


# --- What leaves an engine --------------------------------------------------------------------------------------------

QUERIES, ITERATIONS, DOCUMENTS, COPIES = 3, 4, 30, 20
#: Rows of a block. DuckDB hands over 2048 at least.
BLOCK = 2048


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


class Handed(NamedTuple):
    """What engines handed over: the number of rows of each table, and of each block of each reader of a whole run."""

    tables: list[int]
    readers: list[list[int]]


@contextmanager
def counted_rows() -> Iterator[Handed]:
    """Count the rows of every lazy frame that is collected meanwhile, ours or narwhals', and of every block that is read."""
    handed = Handed([], [])
    polars, narwhals, read_blocks = pl.LazyFrame.collect, nw.LazyFrame.collect, run_parts.read_blocks

    def collect_polars(self: pl.LazyFrame, *args: Any, **options: Any) -> Any:
        found = polars(self, *args, **options)
        if f"{pl.__name__}/" not in sys._getframe(1).f_code.co_filename:  # frames in memory work through lazy ones
            handed.tables.append(found.height)
        return found

    def collect_narwhals(self: nw.LazyFrame[Any], *args: Any, **options: Any) -> Any:
        found = narwhals(self, *args, **options)
        handed.tables.append(len(found))
        return found

    def read_counted(frame: Any) -> Iterator[pl.DataFrame]:
        handed.readers.append([])
        for block in read_blocks(frame):
            handed.readers[-1].append(block.height)
            yield block

    with (
        mock.patch.object(pl.LazyFrame, "collect", collect_polars),
        mock.patch.object(nw.LazyFrame, "collect", collect_narwhals),
        mock.patch.object(run_parts, "read_blocks", read_counted),
    ):
        yield handed


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


def classic_measures_agree_and_the_run_is_read_once(put: Put, counting: Callable[[], Any] = counted_rows) -> None:
    """For each of three measures alone and for all of them."""
    run, qrels = odd_rankings()
    given = put(run)
    for names in (*THREE, THREE, (*THREE, *OTHERS)):
        with no_notices():
            here = gg.evaluate(qrels, run, names)
            with counting() as handed:
                there = gg.evaluate(qrels, given, names)
        assert_frame_equal(there.per_query, here.per_query, check_exact=True)
        assert there.mean() == here.mean()
        assert [sum(heights) for heights in handed.readers] in ([len(run)], []), "Spark's workers read the rows"


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
            assert_frame_equal(there.per_query, here.per_query, check_exact=True)


def only_small_tables_are_collected(put: Put, counting: Callable[[], Any] = counted_rows) -> None:
    """The run itself is read in blocks, at most twice for a result: once more if a query is in several blocks."""
    run = large_run()
    given = put(run)
    qrels = {f"q{k}": {f"d{n}": n % 4 for n in range(40)} for k in range(QUERIES)}
    names_of_large_runs = [name.replace("per=20", f"per={DOCUMENTS * COPIES}") for name in NAMES]

    with no_notices(), counting() as handed, mock.patch.object(run_parts, "ROWS", BLOCK):
        gg.read_run(given, gaps="empty")
        gg.read_run(given, errors="skip")
        assert not handed.readers
        gg.ledger(qrels, given)
        for names in (names_of_large_runs, "RR AP nDCG@10", ["P@2", "nDCG"]):
            gg.evaluate(qrels, given, names)
        gg.evaluate(qrels, given, "RR AP nDCG@10", provider="pytrec_eval")
        assert len(handed.readers) in (0, 2 * 5), "none of Spark"
        if not isinstance(given, pl.LazyFrame):  # ranked in memory
            rankings = [gg.flatten(given, order=order) for order in ORDERS]

    assert 0 < max(handed.tables) < run.height / 10
    assert all(height <= BLOCK for heights in handed.readers for height in heights)
    if not isinstance(given, pl.LazyFrame):
        assert all(in_memory(ranking).height == QUERIES * DOCUMENTS for ranking in rankings)
    with no_notices(), counting() as handed:
        _ = gg.read_run(given).rows
    assert max(handed.tables) == run.height  # such a count would have been seen


# --- Parts of whole queries -------------------------------------------------------------------------------------------


def check_parts(put: Put, folder: Path, seed: int) -> None:
    """Compare a random run in memory, as text in blocks, and on an engine in parts of three rows and more: values and notices.

    Only equal rows tie in rank: DuckDB and Spark do not keep the order of rows.
    """
    case, draw = random_case(seed), Random(seed)
    run = run_frame(case.run)
    with no_notices():
        qrels = gg.read_qrels(qrels_frame(case.qrels), labels=case.labels)
    if draw.random() < 0.5:  # rows of a query in several blocks
        run = run.sample(fraction=1, shuffle=True, seed=seed)
    if draw.random() < 0.3:  # equal rows
        run = pl.concat([run, run.head(2)])
    names = [*draw.sample(NAMES, 6), *draw.sample(THREE + OTHERS, 3), "PerIteration(measure='P@2')"]
    options: Any = {"order": draw.choice(ORDERS)}

    path = write_table(run.with_columns(tag=pl.lit("t")), folder / f"{seed}.txt")
    forms = [run, in_blocks(path, block=draw.choice([40, 400])), put(run)]
    with mock.patch.object(run_parts, "ROWS", draw.choice([3, 10, 2**19])):
        scored = [told(partial(gg.evaluate, qrels, form, names, **options)) for form in forms]
        with no_notices():
            flat, flat_there = (gg.flatten(form, **options) for form in (run, forms[-1]))
    for scores, notices in scored[1:]:
        assert_frame_equal(scores.per_query, scored[0][0].per_query, check_exact=True)
        assert scores.mean() == scored[0][0].mean(), seed
        notices = [
            text.replace(f"{seed}: ", "") for text in notices if "ordered by doc_id" not in text
        ]  # of equal rows
        assert notices == scored[0][1], (seed, set(notices) ^ set(scored[0][1]))
    assert_frame_equal(in_one_order(in_memory(flat_there)), in_one_order(flat), check_exact=True)
