"""Judgments that benchmarks publish as lists of documents: one label for all, lists, paths into objects, tau-bench's tasks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import goodgain as gg
from tests.support.command import run_command
from tests.support.tables import ROOT, no_notices

FOLDER = ROOT / "qrels_examples/benchmarks"
LABELLED = {"query_id": ["q1", "q1", "q2"], "doc_id": ["Oslo", "Bergen", "Rome"], "relevance": [1, 1, 1]}


def columns_of(qrels: gg.Qrels) -> dict[str, list[Any]]:
    return qrels.frame.select("query_id", "doc_id", "relevance").to_dict(as_series=False)


def write(path: Path, value: object) -> Path:
    path.write_text(json.dumps(value))
    return path


def test_a_list_of_documents_by_question_becomes_labels() -> None:
    columns = {"question": "query_id", "supporting": "doc_id"}
    assert columns_of(gg.read_qrels(FOLDER / "gold_lists/gold.json", columns=columns, label=1)) == LABELLED
    assert (
        gg.read_qrels(FOLDER / "gold_lists/gold.json", columns=columns, label=2.5).frame["relevance"].to_list()
        == [2.5] * 3
    )


def test_json_lines_and_flat_records_are_read_with_one_label_too(tmp_path: Path) -> None:
    path = tmp_path / "gold.jsonl"
    path.write_text('{"query_id": "q1", "doc_id": ["Oslo", "Bergen"]}\n{"query_id": "q2", "doc_id": "Rome"}\n')
    assert columns_of(gg.read_qrels(path, label=1)) == LABELLED
    frame = pl.DataFrame(LABELLED).drop("relevance")
    assert columns_of(gg.read_qrels(frame, label=1)) == LABELLED
    frame.write_csv(tmp_path / "gold.csv")
    assert columns_of(gg.read_qrels(tmp_path / "gold.csv", label=1)) == LABELLED


def test_paths_lead_into_lists_of_pairs_and_objects() -> None:
    pairs = gg.read_qrels(
        FOLDER / "gold_lists/hotpot.json", columns={"_id": "query_id", "supporting_facts.0": "doc_id"}, label=1
    )
    assert columns_of(pairs) == LABELLED  # a title that stands twice is one document
    objects = gg.read_qrels(
        FOLDER / "gold_lists/multihop_rag.json", columns={"query": "query_id", "evidence_list.url": "doc_id"}, label=1
    )
    assert objects.frame["doc_id"].to_list() == ["https://news.example/oslo", "https://news.example/bergen"]
    flags = {"id": "query_id", "paragraphs.title": "doc_id", "paragraphs.is_supporting": "relevance"}
    flagged = gg.read_qrels(FOLDER / "gold_lists/musique.jsonl", columns=flags)
    assert dict(zip(flagged.frame["doc_id"], flagged.frame["relevance"], strict=True)) == {
        "Oslo": 1,
        "Paris": 0,
        "Bergen": 1,
    }


def test_wrong_gold_lists_say_where(tmp_path: Path) -> None:
    empty = write(tmp_path / "gold.json", [{"query_id": "q1", "doc_id": ["a"]}, {"query_id": "q2", "doc_id": []}])
    with pytest.warns(gg.GoodgainNotice, match="left out 1 bad line"):
        assert len(gg.read_qrels(empty, label=1, errors="skip")) == 1
    with pytest.raises(gg.InputError, match="lacks query_id, doc_id"):
        gg.read_qrels(FOLDER / "gold_lists/gold.json", columns={"supports.url": "doc_id"}, label=1)


def test_the_tasks_of_tau_bench_are_qrels_with_label_1() -> None:
    path = FOLDER / "tau_banking/tasks.json"
    assert columns_of(gg.read_qrels(path)) == {
        "query_id": ["task_001", "task_001", "task_002"],
        "doc_id": ["doc_cards_gold_001", "doc_cards_silver_001", "doc_cards_fees_001"],
        "relevance": [1, 1, 1],
    }
    assert set(gg.read_qrels(path, label=3).frame["relevance"]) == {3}
    assert "qrels, 2 queries, 3 labels" in run_command("validate", path).stdout


def test_judge_writes_qrels_of_gold_lists(tmp_path: Path) -> None:
    out = tmp_path / "gold.qrels"
    given = ("--columns", "question=query_id,supporting=doc_id", "--label", "1")
    done = run_command("judge", FOLDER / "gold_lists/gold.json", *given, "-o", out)
    assert done.returncode == 0, done.stderr
    assert out.read_text() == "q1 0 Oslo 1\nq1 0 Bergen 1\nq2 0 Rome 1\n"
    wrong = run_command(
        "judge", FOLDER / "gold_lists/gold.json", "--columns", "questions=query_id", "--label", "1", "-o", out
    )
    assert wrong.returncode == 2 and "lacks query_id, doc_id" in wrong.stderr


@no_notices()
def test_a_table_of_retrieved_documents_is_a_run() -> None:
    run = gg.read_run(FOLDER / "asq/retrieved_docs.tsv", columns={"qid": "query_id", "docno": "doc_id"})
    assert run.frame.height == 9
    assert gg.evaluate(FOLDER / "asq/qrels.txt", run, "EvidenceRecall@1 EvidenceRecall", rel=1).mean() == {
        "EvidenceRecall@1": 0.5,
        "EvidenceRecall": 0.75,
    }


def test_a_document_that_a_record_lists_twice_has_its_largest_label(tmp_path: Path) -> None:
    path = tmp_path / "musique.jsonl"
    paragraphs = [{"title": "Oslo", "is_supporting": yes} for yes in (True, False)] + [
        {"title": "Rome", "is_supporting": False}
    ]
    path.write_text(json.dumps({"id": "q", "paragraphs": paragraphs}))
    columns = {"id": "query_id", "paragraphs.title": "doc_id", "paragraphs.is_supporting": "relevance"}
    assert gg.read_qrels(path, columns=columns).frame["relevance"].to_list() == [1, 0]
