"""Judgments and runs as benchmarks publish them: lists of documents, BEIR's header, tau-bench's tasks, tables of results."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

import goodgain as gg
from tests.support.command import run_command
from tests.support.forms import write_table
from tests.support.tables import ROOT, no_notices

FOLDER = ROOT / "qrels_examples/benchmarks"
GOLD = FOLDER / "gold_lists/gold.json"


def test_judge_writes_qrels_of_gold_lists(tmp_path: Path) -> None:
    out = tmp_path / "gold.qrels"
    done = run_command("judge", GOLD, "--columns", "question=query_id,supporting=doc_id", "--label", "1", "-o", out)
    assert done.returncode == 0, done.stderr
    assert out.read_text() == "q1 0 Oslo 1\nq1 0 Bergen 1\nq2 0 Rome 1\n"
    wrong = run_command("judge", GOLD, "--columns", "questions=query_id", "--label", "1", "-o", out)
    assert wrong.returncode == 2 and "lacks query_id, doc_id" in wrong.stderr
    with pytest.raises(gg.InputError, match="lacks query_id, doc_id"):
        gg.read_qrels(GOLD, columns={"supports.url": "doc_id"}, label=1)


def test_a_frame_of_documents_is_read_with_one_label() -> None:
    frame = pl.DataFrame({"query_id": ["q1", "q1", "q2"], "doc_id": ["Oslo", "Bergen", "Rome"]})
    assert gg.read_qrels(frame, label=1).frame.drop("iteration").equals(frame.with_columns(relevance=pl.lit(1)))


def test_the_tasks_of_tau_bench_are_validated() -> None:
    assert "qrels, 2 queries, 3 labels" in run_command("validate", FOLDER / "tau_banking/tasks.json").stdout


@no_notices()
def test_a_table_of_retrieved_documents_is_a_run() -> None:
    run = gg.read_run(FOLDER / "asq/retrieved_docs.tsv", columns={"qid": "query_id", "docno": "doc_id"})
    assert run.frame.height == 9
    means = gg.evaluate(FOLDER / "asq/qrels.txt", run, "EvidenceRecall@1 EvidenceRecall", rel=1).mean()
    assert means == {"EvidenceRecall@1": 0.5, "EvidenceRecall": 0.75}


@no_notices()
def test_beirs_header_is_read_without_columns(tmp_path: Path) -> None:
    frame = pl.DataFrame({"query-id": ["q1", "q1", "q2"], "corpus-id": ["d1", "d2", "d1"], "score": [1, 0, 2]})
    files = [write_table(frame, tmp_path / f"test.{ending}") for ending in ("tsv", "csv", "parquet")]
    for source in (*files, frame, frame.to_pandas()):
        judged = gg.read_qrels(source).frame.select("query_id", "doc_id", "relevance")
        assert judged.rows() == [("q1", "d1", 1), ("q1", "d2", 0), ("q2", "d1", 2)]
    (tmp_path / "a.run").write_text("q1 1 d1 1 2.0 t\nq2 1 d1 1 1.0 t\n")
    done = run_command("evaluate", files[0], tmp_path / "a.run", "P@1", "-o", "tsv")
    assert done.returncode == 0 and "1.0000" in done.stdout


def test_other_names_of_a_user_come_before_beirs_and_a_score_alone_is_no_label() -> None:
    frame = pl.DataFrame({"query-id": ["q"], "corpus-id": ["d"], "score": [1], "mine": [3]})
    assert gg.read_qrels(frame, columns={"mine": "relevance"}).frame["relevance"].to_list() == [3]
    with pytest.raises(gg.InputError, match="has no column 'relevance'"):
        gg.read_qrels(pl.DataFrame({"query_id": ["q"], "doc_id": ["d"], "score": [1]}))
