"""Runs, qrels and other tables in JSON: nested objects of ranx and pytrec_eval, arrays, and what is refused by name."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import goodgain as gg

RUN = {"q1": {"a": 1.5, "b": 1.0}, "q2": {"c": 2.0, "d": 1.0}}
QRELS = {"q1": {"a": 3, "b": 0}, "q2": {"d": 2, "c": 0}}
ROWS = [
    {"query_id": "q1", "iteration": 1, "doc_id": "a", "rank": 1, "score": 2.0},
    {"query_id": "q1", "iteration": 2, "doc_id": "b", "rank": 1, "score": 1.0},
]


def write(path: Path, value: object, indent: int | None = None) -> Path:
    path.write_text(json.dumps(value, indent=indent))
    return path


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("name", ["run.json", "run.txt", "run"])
def test_a_file_of_one_object_of_objects_gives_what_the_dict_gives(
    tmp_path: Path, name: str, indent: int | None
) -> None:
    run, qrels = write(tmp_path / name, RUN, indent), write(tmp_path / "qrels.json", QRELS, indent)
    of_files = gg.evaluate(qrels, run, "nDCG@10 RR")
    assert of_files.mean() == gg.evaluate(QRELS, RUN, "nDCG@10 RR").mean()
    assert of_files["RR"] == pytest.approx(0.75)
    assert gg.read_run(run).name == "run"


@pytest.mark.slow
def test_what_ranx_saves_is_read_as_it_is(tmp_path: Path) -> None:
    import ranx

    ranx.Run(RUN).save(str(tmp_path / "run.json"))
    ranx.Qrels(QRELS).save(str(tmp_path / "qrels.json"))
    assert gg.evaluate(tmp_path / "qrels.json", tmp_path / "run.json", "RR")["RR"] == pytest.approx(0.75)
    ranx.Run(RUN).to_dataframe().to_parquet(tmp_path / "run.parquet")
    with pytest.warns(gg.GoodgainNotice, match="'q_id' was read as query_id"):
        assert gg.read_run(tmp_path / "run.parquet").frame.height == 4


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("name", ["run.jsonl", "run.json", "run"])
def test_an_array_of_objects_is_read_as_json_lines(tmp_path: Path, name: str, indent: int | None) -> None:
    lines = tmp_path / "lines.jsonl"
    lines.write_text("\n".join(json.dumps(row) for row in ROWS))
    found = gg.read_run(write(tmp_path / name, ROWS, indent))
    assert_frame_equal(found.rows, gg.read_run(lines).rows)


def test_large_json_is_not_taken_for_trec_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("goodgain.counting.run_opening.LARGE", 10)
    run = write(tmp_path / "run.json", RUN)
    assert gg.evaluate(QRELS, run, "RR")["RR"] == pytest.approx(0.75)


@pytest.mark.parametrize("protocol", range(2, 6))
def test_a_pickle_is_named_as_such(tmp_path: Path, protocol: int) -> None:
    path = tmp_path / "run.pkl"
    path.write_bytes(pickle.dumps(RUN, protocol))
    for read in (gg.read_run, gg.read_qrels, gg.read_traces):
        with pytest.raises(gg.InputError, match="is a Python pickle"):
            read(path)


def test_queries_for_labels_can_be_an_array(tmp_path: Path) -> None:
    from goodgain.files.table_reading import read_table

    path = write(tmp_path / "queries.json", [{"query_id": "q1", "text": "what"}], 2)
    assert read_table(path, {"query_id": pl.String, "text": pl.String}).frame.rows() == [("q1", "what")]


@pytest.mark.parametrize("text", ["[" * 200_000, '{"a":' * 200_000, '[{"a":' * 100_000])
@pytest.mark.parametrize("name", ["qrels.json", "qrels.jsonl", "qrels"])
def test_hostile_json_is_one_clear_error(tmp_path: Path, text: str, name: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(gg.InputError):
        gg.read_qrels(tmp_path / name)
