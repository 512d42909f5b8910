"""Every engine has the same ledger, scores and rankings, and lazy frames keep their rows."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pytest

import goodgain as gg
from goodgain.formats import run_parts
from goodgain.ranking.first_occurrences_and_flattening import ORDERS
from tests.support import engine_checks as checks
from tests.support.counts import how_many, some_of
from tests.support.engine_checks import Put
from tests.support.tables import SESSIONS, no_notices


def in_duckdb(frame: pl.DataFrame) -> Any:
    """On a connection of its own, so that run and qrels never share one."""
    return duckdb.connect().from_arrow(frame.to_arrow())


def in_one_duckdb(frame: pl.DataFrame) -> Any:
    """On DuckDB's own default connection, so that run and qrels share it."""
    return duckdb.from_arrow(frame.to_arrow())


LAZY: dict[str, Put] = {"polars lazy": lambda frame: frame.lazy(), "duckdb": in_duckdb, "one duckdb": in_one_duckdb}
ENGINES: dict[str, Put] = {
    "polars": lambda frame: frame,
    "pandas": lambda frame: frame.to_pandas(),
    "pyarrow": lambda frame: frame.to_arrow(),
    **LAZY,
}


@pytest.mark.parametrize(("engine", "labels"), some_of(itertools.product(ENGINES, [None, "iteration"]), every=5))
def test_ledger_and_pools_are_the_same_where_the_rows_live(engine: str, labels: str | None) -> None:
    checks.ledgers_and_pools_agree(ENGINES[engine], labels)


@pytest.mark.parametrize(("engine", "labels"), some_of(itertools.product(ENGINES, [None, "iteration"]), every=5))
def test_scores_are_the_same(engine: str, labels: str | None) -> None:
    checks.scores_agree(ENGINES[engine], labels)


@pytest.mark.parametrize(
    ("engine", "order", "without"), some_of(itertools.product(ENGINES, ORDERS, [(), ("rank",), ("score",)]), every=6)
)
def test_rankings_are_the_same(engine: str, order: str, without: tuple[str, ...]) -> None:
    checks.rankings_agree(ENGINES[engine], order, without)


@pytest.mark.parametrize("engine", some_of(ENGINES, every=6))
@pytest.mark.skipif(not SESSIONS.exists(), reason="the real sessions are shared beside the checkout, never in it")
def test_the_real_sessions_are_the_same(engine: str) -> None:
    checks.the_real_sessions_agree(ENGINES[engine])


#: Check of engine_checks.py -> its engines; `make test` leaves out those in `SLOW`.
CHECKS: dict[str, Iterable[str]] = {
    "only_small_tables_are_collected": LAZY,
    "classic_measures_agree_and_the_run_is_read_once": LAZY,
    "classic_measures_are_the_same_in_each_order": LAZY,
    "ties_are_broken_by_doc_id": ["duckdb"],
    "a_lazy_run_is_told_of_as_one_in_memory": LAZY,
    "missing_iterations_are_added": LAZY,
    "queries_that_never_searched_are_known": LAZY,
}
SLOW = [*CHECKS][:4]


@pytest.mark.parametrize(
    ("check", "engine"),
    [
        pytest.param(check, engine, marks=[pytest.mark.slow] * (check in SLOW))
        for check, engines in CHECKS.items()
        for engine in some_of(engines, every=2)
    ],
)
def test_lazy_engines_do_what_memory_does(check: str, engine: str) -> None:
    getattr(checks, check)(LAZY[engine])


@pytest.mark.slow
@pytest.mark.parametrize("engine", some_of(LAZY, every=2))
def test_parts_of_any_size_have_the_values_of_one(engine: str, tmp_path: Path) -> None:
    for seed in range(how_many(10, full=24)):
        checks.check_parts(LAZY[engine], tmp_path, seed)


@pytest.mark.parametrize("engine", some_of(LAZY, every=2))
@pytest.mark.parametrize("rows", [3, 2**19], ids=["in parts", "in one part"])
def test_a_run_appended_to_itself_is_an_error(engine: str, rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_parts, "ROWS", rows)
    run = pl.DataFrame({"query_id": ["q", "q", "r", "r"], "iteration": [1, 2, 1, 2], "doc_id": [*"abab"], "rank": 1})
    twice = pl.concat([run, run])
    for given in (twice, LAZY[engine](twice)):
        with pytest.raises(gg.InputError, match="2 copies of the same 4 rows"):
            gg.evaluate({"q": {"a": 2}}, given, "CG")
    other_scores = twice.drop("rank").with_columns(score=pl.int_range(pl.len()).cast(pl.Float64))
    gg.evaluate({"q": {"a": 2}}, LAZY[engine](other_scores), "CG")
    shuffled = LAZY[engine](twice.sort("query_id", "iteration"))
    with pytest.warns(gg.GoodgainNotice, match="4 rows equal an earlier row"):
        gg.evaluate({"q": {"a": 2}}, shuffled, "CG")


@pytest.mark.parametrize(("one", "other"), some_of(itertools.product(ENGINES, ENGINES), every=5))
def test_run_and_qrels_may_live_on_two_engines(one: str, other: str) -> None:
    run = ENGINES[one](pl.DataFrame({"query_id": "q", "iteration": [1, 2], "doc_id": ["a", "b"], "score": 1.0}))
    qrels = ENGINES[other](pl.DataFrame({"query_id": ["q"], "doc_id": ["b"], "relevance": [3.0]}))
    assert gg.evaluate(qrels, run, "CG SRE").mean() == {"CG": 3.0, "SRE": 0.5}
    assert gg.ledger(qrels, run)["G"].to_list() == [0.0, 3.0]


def test_a_lazy_polars_frame_keeps_the_order_of_its_lines() -> None:
    rows = checks.run_frame(checks.random_runs(None)[0]).with_columns(rank=pl.col("rank") // 3)
    for order in ORDERS:
        with no_notices():
            found, wanted = gg.flatten(rows.lazy(), order=order), gg.flatten(rows, order=order)
        assert found.collect().equals(wanted)
        assert found.collect(engine="streaming").equals(wanted)


@pytest.mark.parametrize("engine", some_of(LAZY, every=2))
def test_what_follows_a_flattening_comes_after_it(engine: str) -> None:
    """A filter that an optimizer moved before the flattening would give other ranks."""
    run = pl.DataFrame(
        {"query_id": "q", "iteration": [1, 1, 2, 2], "doc_id": list("abac"), "rank": [1, 2, 1, 2], "score": 1.0}
    )
    lazy = gg.flatten(LAZY[engine](run))
    if isinstance(lazy, pl.LazyFrame):
        found = lazy.filter(pl.col("doc_id") == "c").select("rank", "score").collect().rows()
        assert lazy.tail(1).collect().rows() == gg.flatten(run).tail(1).rows()
    else:
        found = lazy.filter("doc_id = 'c'").select("rank, score").fetchall()
    assert found == [(3, 1.0)]


@pytest.mark.parametrize("engine", some_of(LAZY, every=2))
@pytest.mark.parametrize(("ranks", "kind"), [([1.0, 2.0, 3.0], pl.Int64), ([1.5, 2.0, 3.0], pl.Float64)])
def test_ranks_in_floats_are_written_whole_where_they_are(engine: str, ranks: list[float], kind: Any) -> None:
    run = pl.DataFrame(
        {"query_id": "q", "iteration": 1, "doc_id": list("abc"), "rank": ranks, "score": [3.0, 2.0, 1.0]}
    )
    found = checks.in_memory(gg.flatten(LAZY[engine](run)))
    assert found["rank"].dtype == kind
    assert found["rank"].to_list() == ranks


def test_results_without_rank_and_score_are_ordered_by_doc_id_with_a_notice() -> None:
    run = pl.DataFrame({"query_id": "q", "iteration": [1, 1, 2, 3, 3], "doc_id": ["b", "a", "c", "-", "-"]})
    with pytest.warns(gg.GoodgainNotice, match=r"2 results have neither rank nor score.* ordered by doc_id"):
        ranking = gg.flatten(gg.read_run(in_duckdb(run)))
    with pytest.warns(gg.GoodgainNotice, match=r"^2 results have neither rank nor score"):
        assert gg.read_run(in_duckdb(run)).rows["doc_id"].to_list() == ["a", "b", "c", "-", "-"]
    assert ranking["doc_id"].to_list() == ["a", "b", "c"]
    with pytest.warns(gg.GoodgainNotice, match="ranked in the order of its rows"):
        assert gg.flatten(run.lazy()).collect()["doc_id"].to_list() == ["b", "a", "c"]


def test_an_unknown_order_is_said_on_every_engine() -> None:
    for put in ENGINES.values():
        with pytest.raises(gg.InputError, match="'best' is not one of seen"):
            gg.flatten(put(pl.DataFrame({"query_id": ["q"], "doc_id": ["a"]})), order="best")


def test_a_run_without_row_order_breaks_ties_by_doc_id() -> None:
    run = pl.DataFrame({"query_id": "q", "iteration": 1, "doc_id": ["b", "a", "a"], "rank": [1, 1, 2], "score": 1.0})
    with pytest.warns(gg.GoodgainNotice, match="ties .* doc_id"):
        ranking = gg.flatten(gg.read_run(in_duckdb(run)))
    assert ranking["doc_id"].to_list() == ["a", "b"]
    assert gg.flatten(run)["doc_id"].to_list() == ["b", "a"]


@pytest.mark.each
@pytest.mark.parametrize("engine", ENGINES)
def test_decimals_of_iterations_as_spreadsheets_write_them_are_numbers_on_every_engine(engine: str) -> None:
    iterations = ["1.0", "2.00", "10", "+3.0"]
    run = pl.DataFrame({"query_id": "q", "iteration": iterations, "doc_id": [*"abcd"], "rank": 1, "score": 1.0})
    column = gg.read_run(ENGINES[engine](run)).rows.sort("doc_id").get_column("iteration")
    assert column.to_list() == [1, 2, 10, 3]


@pytest.mark.parametrize("engine", ENGINES)
def test_bad_rows_are_found_on_every_engine(engine: str) -> None:
    bad = pl.DataFrame({"query_id": ["q", None], "iteration": [1, 2], "doc_id": ["a", "b"], "score": [1.0, 2.0]})
    with pytest.raises(gg.InputError, match="has no query_id"):
        gg.read_run(ENGINES[engine](bad))
    words = pl.DataFrame({"query_id": "q", "iteration": ["1", "x"], "doc_id": ["a", "b"], "score": [1.0, 2.0]})
    with pytest.raises(gg.InputError, match="column 2"):
        gg.read_run(ENGINES[engine](words))
    tags = pl.DataFrame({"query_id": "q", "iteration": 1, "doc_id": ["a", "b"], "tag": ["s", "t"]})
    with pytest.raises(gg.InputError, match="tag"):
        gg.read_run(ENGINES[engine](tags))


def test_no_table_of_the_users_stands_in_for_the_qrels() -> None:
    """DuckDB looks names up in the user's catalogue first; a view of the user's is not replaced either."""
    connection = duckdb.connect()
    for name in ("carried", "run", "qrels", "small", "rows", "frame", "lhs", "rhs"):
        connection.execute(
            f"CREATE TABLE {name} AS SELECT 'q' AS query_id, 'a' AS doc_id, 3.0 AS relevance, 1 AS iteration"
        )

    run = connection.sql(
        "SELECT * FROM (VALUES ('q', 1, 'a', 1), ('q', 1, 'b', 2), ('q', 2, 'a', 1)) AS rows"
        "(query_id, iteration, doc_id, rank)"
    )
    scores = gg.evaluate({"q": {"a": 2, "b": 3}}, run, "CG nDCG@10")
    assert scores.mean() == gg.evaluate({"q": {"a": 2, "b": 3}}, run.pl(), "CG nDCG@10").mean()
    assert scores["CG"] == 5.0
    assert connection.sql("SELECT count(*) FROM run").fetchall() == [(1,)]
    assert len(connection.sql("SHOW TABLES").fetchall()) == 8
