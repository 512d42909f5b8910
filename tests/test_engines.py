"""The ledger is the same on every engine."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import duckdb
import polars as pl
import pytest
from polars.testing import assert_frame_equal

import goodgain as gg
from goodgain.counting import count
from tables import SESSIONS, no_notices, qrels_frame, run_frame
from test_against_oracle import all_cases


def in_duckdb(frame: pl.DataFrame) -> Any:
    return duckdb.connect().from_arrow(frame.to_arrow())


ENGINES: dict[str, Callable[[pl.DataFrame], Any]] = {
    "polars": lambda frame: frame,
    "polars lazy": lambda frame: frame.lazy(),
    "pandas": lambda frame: frame.to_pandas(),
    "pyarrow": lambda frame: frame.to_arrow(),
    "duckdb": in_duckdb,
}


def tables(labels: str | None) -> tuple[pl.DataFrame, pl.DataFrame]:
    run, rows, _ = all_cases(labels)
    with no_notices():
        return gg.read_run(run_frame(run)).frame, gg.read_qrels(qrels_frame(rows), labels=labels).frame


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("labels", [None, "iteration"])
def test_ledger_and_pools_are_the_same_where_the_rows_live(engine: str, labels: str | None) -> None:
    run, qrels = tables(labels)
    here = count(run, qrels, rels=(1.8, 2, 3), labels=labels)
    there = count(ENGINES[engine](run), qrels, rels=(1.8, 2, 3), labels=labels)
    for rel in here:
        assert_frame_equal(there[rel].ledger, here[rel].ledger, abs_tol=1e-12)
        assert_frame_equal(there[rel].pools, here[rel].pools, abs_tol=1e-12)
        assert there[rel].renumbered == here[rel].renumbered


@pytest.mark.parametrize("engine", ENGINES)
def test_qrels_on_the_engine_of_the_run_are_joined_there(engine: str) -> None:
    run, qrels = tables(None)
    if engine == "duckdb":
        connection = duckdb.connect()
        there = count(connection.from_arrow(run.to_arrow()), connection.from_arrow(qrels.to_arrow()))
    else:
        there = count(ENGINES[engine](run), ENGINES[engine](qrels))
    assert_frame_equal(there[2].ledger, count(run, qrels)[2].ledger, abs_tol=1e-12)


@pytest.mark.parametrize("engine", ENGINES)
def test_scores_are_the_same_to_1e_12(engine: str) -> None:
    run, qrels = tables(None)
    names = "CG RG DCGG DRG RAG DRAG SRE SRR CG@3 AvgGain@3 SRE@3 IterationsForAllGoodResults NumUnjudged RR"
    with no_notices():
        here = gg.evaluate(qrels, run, names).mean()
        there = gg.evaluate(ENGINES[engine](qrels), ENGINES[engine](run), names).mean()
    assert there == pytest.approx(here, abs=1e-12, rel=1e-12)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.skipif(not SESSIONS.exists(), reason="the real sessions are shared beside the checkout, never in it")
def test_the_real_sessions_are_the_same(engine: str) -> None:
    run = gg.read_run(SESSIONS / "sessions.run").frame
    qrels = gg.read_qrels(SESSIONS / "sessions.qrels").frame
    here = gg.ledger(qrels, run)
    assert_frame_equal(gg.ledger(qrels, ENGINES[engine](run)), here, abs_tol=1e-12)
    assert here.select(pl.col("R", "Dup").sum()).row(0) == (3446, 773)


def test_a_run_without_row_order_breaks_ties_by_doc_id() -> None:
    run = pl.DataFrame({"query_id": "q", "iteration": 1, "doc_id": ["b", "a", "a"], "rank": [1, 1, 2], "score": 1.0})
    with pytest.warns(gg.GoodgainNotice, match="ties .* doc_id"):
        found = gg.flatten(gg.read_run(in_duckdb(run)))
    assert found["doc_id"].to_list() == ["a", "b"]
    assert gg.flatten(run)["doc_id"].to_list() == ["b", "a"]


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
