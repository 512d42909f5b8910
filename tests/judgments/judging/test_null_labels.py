"""A null label is an unjudged document for every reader of qrels; text leaves it out, with one notice."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import ir_measures
import pandas as pd
import polars as pl
import pytest

import goodgain as gg
from tests.support.tables import ROOT, in_one_search

CASES = json.loads(Path(__file__).with_name("cases.json").read_text(encoding="utf-8"))

VOTES = ROOT / "qrels_examples" / "judges" / "votes.csv"
WITH_NULL = pl.DataFrame({"query_id": ["q", "q", "q"], "doc_id": ["a", "b", "c"], "relevance": [2, None, 0]})
WITHOUT = {"q": {"a": 2, "c": 0}}
RUN = pl.DataFrame(
    {
        "query_id": ["q"] * 3,
        "iteration": [1, 1, 2],
        "doc_id": ["b", "a", "c"],
        "rank": [1, 2, 1],
        "score": [3.0, 2.0, 1.0],
    }
)


def source_of(form: str, tmp_path: Path) -> Any:
    if form == "frame":
        return WITH_NULL
    if form == "lazy":
        return WITH_NULL.lazy()
    if form == "pandas":
        return WITH_NULL.to_pandas()
    if form == "dict":
        return {"q": {"a": 2, "b": None, "c": 0}}
    path = tmp_path / f"qrels.{form}"
    gg.write_qrels(WITH_NULL, path)
    return path


@pytest.mark.parametrize("form", ["frame", "lazy", "pandas", "dict", "parquet", "jsonl", "arrow"])
def test_a_null_label_counts_as_unjudged_in_every_measure(form: str, tmp_path: Path) -> None:
    source = source_of(form, tmp_path)
    measures = "nDCG@10 P@2 CG@2 SRE@2 NumUnjudged Judged@3"
    with pytest.warns(gg.GoodgainNotice, match="1 row with a null relevance, counted as unjudged"):
        scores = gg.evaluate(source, RUN, measures)
    wanted = gg.evaluate(WITHOUT, RUN, measures)
    assert scores.mean() == wanted.mean()
    assert scores["Judged@3"] == pytest.approx(2 / 3)
    with pytest.warns(gg.GoodgainNotice, match="null relevance"):
        qrels = gg.read_qrels(source)
    assert ir_measures.calc_aggregate([ir_measures.nDCG], qrels, gg.read_run(RUN)) == ir_measures.calc_aggregate(
        [ir_measures.nDCG], gg.read_qrels(WITHOUT), gg.read_run(RUN)
    )


@pytest.mark.parametrize("ending", ["parquet", "jsonl", "arrow"])
def test_null_labels_stay_in_files_that_can_hold_them(ending: str, tmp_path: Path) -> None:
    gg.write_qrels(WITH_NULL, tmp_path / f"one.{ending}")
    read = {"parquet": pl.read_parquet, "jsonl": pl.read_ndjson, "arrow": pl.read_ipc}[ending]
    rows = read(tmp_path / f"one.{ending}").select("doc_id", "relevance").rows()
    assert sorted(rows) == [("a", 2), ("b", None), ("c", 0)]


def test_text_leaves_null_labels_out_with_one_notice_and_their_number(tmp_path: Path) -> None:
    with pytest.warns(gg.GoodgainNotice) as told:
        gg.write_qrels(gg.aggregate(VOTES, scale="binary"), tmp_path / "out.qrels")
    (said,) = told
    assert "2 documents without a label stay unjudged" in str(said.message)
    assert (tmp_path / "out.qrels").read_text() == "q1 0 relevant 1\nq1 0 not_relevant 0\nq1 0 one_vote 1\n"


def test_qrels_with_null_labels_only_are_an_error() -> None:
    with pytest.raises(gg.InputError, match="every relevance is null"):
        gg.read_qrels(WITH_NULL.filter(pl.col("relevance").is_null()))


def test_an_error_after_a_null_label_names_the_right_row() -> None:
    rows = [("q", "a", None), ("q", "b", 1), ("q", "b", 2)]
    frame = pl.DataFrame(rows, schema=["query_id", "doc_id", "relevance"], orient="row")
    with (
        pytest.warns(gg.GoodgainNotice, match="null relevance"),
        pytest.raises(gg.InputError, match=r"row 1 and .* row 2 have different labels"),
    ):
        gg.read_qrels(frame)


def test_labels_by_iteration_can_be_null() -> None:
    frame = pd.DataFrame(
        {"query_id": ["q", "q"], "iteration": ["1", "2"], "doc_id": ["a", "a"], "relevance": [3, None]}
    )
    with pytest.warns(gg.GoodgainNotice, match="null relevance"):
        qrels = gg.read_qrels(frame, labels="iteration")
    assert qrels.frame.rows() == [("q", 1, "a", 3)]


def test_rescaled_qrels_keep_their_null_labels(tmp_path: Path) -> None:
    with pytest.warns(gg.GoodgainNotice, match="null relevance"):
        labels = gg.rescale(WITH_NULL, ">=2 -> 1")
    gg.write_qrels(labels, tmp_path / "out.jsonl")
    rows = pl.read_ndjson(tmp_path / "out.jsonl").select("doc_id", "relevance").rows()
    assert rows == [("a", 1), ("c", 0), ("b", None)]


def test_queries_that_have_null_labels_only_are_counted_in_the_notice(tmp_path: Path) -> None:
    qrels = {"q": {"a": 3, "b": None}, "r": {"a": None}, "s": {"a": None}}
    said = "2 queries have null labels only, and no mean includes such queries"
    with pytest.warns(gg.GoodgainNotice, match=f"3 rows with a null relevance, counted as unjudged; {said}"):
        scores = gg.evaluate(qrels, in_one_search({"q": {"a": 1.0}, "r": {"a": 1.0}}), "CG")
    assert scores["CG"] == 3 and scores.signature["queries"] == 1 and scores.signature["without_judgments"] == 1
    with pytest.warns(gg.GoodgainNotice, match=f"3 documents without a label stay unjudged.*; {said}; Parquet"):
        gg.write_qrels(qrels, tmp_path / "qrels.txt")
