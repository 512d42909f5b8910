"""What runs and qrels may come in, what they say, and that writing and reading again changes nothing."""

from __future__ import annotations

import gzip
import json
import os
import pickle
import threading
from pathlib import Path
from typing import Any, NamedTuple

import ir_measures
import pandas as pd
import polars as pl
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

import goodgain as gg
from tests.support.counts import how_many
from tests.support.forms import FRAMES
from tests.support.tables import no_notices

RUN = b"q1 1 d1 1 3.0 t\nq1 1 d2 2 2.0 t\nq1 2 d1 1 2.5 t\nq2 1 - 0 0 t\nq2 2 d9 1 1.0 t\n"
QRELS = b"q1 0 d1 2\nq1 0 d2 -1\nq2 0 d9 2.2\n"


def frames(tmp_path: Path) -> tuple[pl.DataFrame, pl.DataFrame]:
    (tmp_path / "a.run").write_bytes(RUN)
    (tmp_path / "a.qrels").write_bytes(QRELS)
    return gg.read_run(tmp_path / "a.run").frame, gg.read_qrels(tmp_path / "a.qrels").frame


# --- text -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace(b" ", b"\t"),
        lambda text: text.replace(b" ", b"  \t "),
        lambda text: text.replace(b"\n", b"\r\n"),
        lambda text: text.replace(b"\n", b" \n"),
        lambda text: b" " + text.replace(b"\n", b"\n\t"),
        lambda text: text.replace(b"\n", b"\n\n \n"),
        lambda text: b"\n\n" + text,
        lambda text: text.rstrip(b"\n"),
        lambda text: b"\xef\xbb\xbf" + text,
        lambda text: text.replace(b" 1 ", b"\t1 ", 1),
        lambda text: gzip.compress(text[:20]) + gzip.compress(text[20:]),
        lambda text: zstandard.compress(text[:20]) + zstandard.compress(text[20:]),
    ],
)
def test_white_space_of_any_kind_and_compression_change_nothing(tmp_path: Path, change: object) -> None:
    run, qrels = frames(tmp_path)
    (tmp_path / "b").write_bytes(change(RUN))  # type: ignore[operator]  # a function of bytes
    assert_frame_equal(gg.read_run(tmp_path / "b").frame, run)
    (tmp_path / "b").write_bytes(change(QRELS))  # type: ignore[operator]  # a function of bytes
    assert_frame_equal(gg.read_qrels(tmp_path / "b").frame, qrels)


def test_ids_are_used_as_they_stand(tmp_path: Path) -> None:
    ids = ['"quoted', "it's", "é😀", "a%20b", "null", "NA", "007", "1e5", "#c", "u\u00a0v", "x" * 1_000_000, "-1"]
    path = tmp_path / "ids.run"
    path.write_text("".join(f"q 1 {doc} {rank} 1 t\n" for rank, doc in enumerate(ids, 1)), encoding="utf-8")
    assert gg.read_run(path).frame["doc_id"].to_list() == ids


def test_a_row_without_a_document_makes_an_iteration_and_beside_results_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "empty.run"
    path.write_text("q 1 a 1 1 t\nq 2 - 0 0 t\nq 3 - 7 99 t\nq 3 a 1 1 t\n")
    rows = gg.ledger({"q": {"a": 2}}, path).select("iteration", "R", "UR", "Dup").rows()
    assert rows == [(1, 1, 1, 0), (2, 0, 0, 0), (3, 1, 0, 1)]
    assert gg.flatten(path)["doc_id"].to_list() == ["a"]


def test_a_pipe_can_be_read(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=lambda: pipe.write_bytes(RUN))
    writer.start()
    assert gg.read_run(pipe).frame.height == 5
    writer.join()


# --- frames, dicts, tuples --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", FRAMES)
def test_a_frame_of_any_engine_is_a_run_and_qrels(tmp_path: Path, engine: str) -> None:
    run, qrels = frames(tmp_path)
    names = "CG SRE SRR NumIter NumUnjudged IterationsForAllGoodResults RR"
    means = gg.evaluate(FRAMES[engine](qrels), FRAMES[engine](run), names).mean()
    assert means == gg.evaluate(qrels, run, names).mean()


class Found(NamedTuple):
    query_id: str
    iteration: int
    doc_id: str | None
    score: float


def test_named_tuples_with_an_iteration_are_an_iterated_run() -> None:
    run = [Found("q", 1, "a", 2.0), Found("q", 2, None, 0.0), Found("q", 3, "a", 1.0)]
    assert gg.evaluate({"q": {"a": 2}}, iter(run), "NumIter SRR").mean() == {"NumIter": 3, "SRR": 0.5}


def test_dicts_and_ir_measures_tuples_are_one_iteration() -> None:
    run = {"q": {"a": 1.0, "b": 3, "c": 2}}
    tuples = [ir_measures.ScoredDoc("q", doc, score) for doc, score in run["q"].items()]
    qrels = [ir_measures.Qrel("q", "b", 3), ir_measures.Qrel("q", "x", 1)]
    for given_run in (run, tuples, pd.DataFrame(tuples)):
        for given_qrels in (qrels, {"q": {"b": 3, "x": 1}}, pd.DataFrame(qrels)):
            with pytest.warns(gg.GoodgainNotice, match="no iterations in this run"):
                scores = gg.evaluate(given_qrels, given_run, "nDCG@10 CG SRE NumIter")
            assert scores.mean() == {"nDCG@10": pytest.approx(0.8262, abs=1e-4), "CG": 3, "SRE": 1 / 3, "NumIter": 1}


def test_numbers_as_ids_match_their_text() -> None:
    run = pd.DataFrame({"query_id": [1, 1], "doc_id": [7, 8], "iteration": [1, 2], "score": [1.0, 2.0]})
    assert gg.evaluate({"1": {"8": 2}}, run, "CG")["CG"] == 2


def test_without_ranks_the_order_is_by_score_then_doc_id_descending() -> None:
    run = pl.DataFrame(
        {"query_id": "q", "iteration": [1, 1, 1, 2], "doc_id": list("abcd"), "score": [1.0, 2.0, 2.0, 9.0]}
    )
    assert gg.flatten(run)["doc_id"].to_list() == ["c", "b", "a", "d"]


def test_a_run_that_lost_its_iterations_says_so() -> None:
    repeated = pl.DataFrame({"query_id": "q", "doc_id": ["a", "b", "a"], "score": [3.0, 2.0, 1.0]})
    for call in (
        lambda: gg.read_run(repeated),
        lambda: gg.evaluate({"q": {"a": 2}}, {"q": {"a": 1.0}}, "SRE@1 SRR CG"),
    ):
        with pytest.warns(
            gg.GoodgainNotice, match=r"no iterations in this run: .*goodgain\.read_run keeps the numbers"
        ):
            call()


def test_that_a_run_lost_its_iterations_is_said_once_a_call_and_stands_in_the_notes_of_each_result(
    tmp_path: Path,
) -> None:
    repeated = pl.DataFrame({"query_id": "q", "doc_id": ["a", "b", "a"], "score": [3.0, 2.0, 1.0]})
    repeated.write_parquet(tmp_path / "agent.parquet")
    for source in (repeated, repeated.lazy(), tmp_path / "agent.parquet"):
        with pytest.warns(gg.GoodgainNotice) as said:
            gg.evaluate({"q": {"a": 2, "b": 0}}, source, "SRE@3 CG@2")
        assert [str(notice.message).removeprefix("agent: ")[:26] for notice in said] == ["no iterations in this run:"]
        with pytest.warns(gg.GoodgainNotice):
            run = gg.read_run(source)
        with pytest.warns(gg.GoodgainNotice) as said:
            scores = gg.evaluate({"q": {"a": 2, "b": 0}}, run, "SRE@3 CG@2")
        assert len(said) == 1 and scores.notes == (str(said[0].message),)


# --- qrels ------------------------------------------------------------------------------------------------------------


def test_flatten_gives_the_kind_of_frame_it_was_given() -> None:
    run = pl.DataFrame({"query_id": "q", "iteration": [1, 2], "doc_id": ["a", "a"], "rank": 1, "score": 1.0})
    for frame in (run, run.to_pandas(), run.to_arrow()):
        assert type(gg.flatten(frame)) is type(frame)


def test_an_ir_datasets_id_is_qrels(tmp_path: Path) -> None:
    import ir_datasets
    from ir_datasets.datasets.base import Dataset
    from ir_datasets.formats import TrecQrels
    from ir_datasets.util import LocalDownload

    (tmp_path / "qrels").write_bytes(b"q1 0 d1 2\nq1 0 d2 0\n")
    local = Dataset(TrecQrels(LocalDownload(tmp_path / "qrels"), {2: "good", 0: "not"}))
    ir_datasets.registry.register("goodgain-local", local)
    assert gg.evaluate("goodgain-local", {"q1": {"d1": 1.0}}, "P@1")["P@1"] == 1
    with pytest.raises(gg.InputError, match="not an ir_datasets id"):
        gg.read_qrels("goodgain-not-local")


def test_the_queries_of_an_ir_datasets_id_are_texts(tmp_path: Path) -> None:
    import ir_datasets
    from ir_datasets.datasets.base import Dataset
    from ir_datasets.formats import TsvQueries
    from ir_datasets.util import LocalDownload

    (tmp_path / "queries").write_bytes(b"q1\twho built the dam\n")
    ir_datasets.registry.register("goodgain-queries", Dataset(TsvQueries(LocalDownload(tmp_path / "queries"))))
    ir_datasets.registry.register("goodgain-no-queries", Dataset())
    run = {"q1": {"d1": 1.0}}
    assert gg.pool({"a": run}, queries="goodgain-queries")["query"].to_list() == ["who built the dam"]
    with pytest.raises(gg.InputError, match="goodgain-no-queries: this ir_datasets data set has no queries"):
        gg.pool({"a": run}, queries="goodgain-no-queries")


# --- writing ----------------------------------------------------------------------------------------------------------

texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8)
printable = st.text(st.characters(exclude_categories=["C", "Z"]), min_size=1, max_size=8)
tame = printable.filter(lambda text: not any(c.isspace() or not c.isprintable() for c in text) and text != "-")
runs = st.fixed_dictionaries(
    {
        "query_id": st.sampled_from(["q1", "q2", "é"]),
        "iteration": st.integers(0, 6),
        "rank": st.integers(0, 2**53 - 1),
        "score": st.floats(allow_nan=False, allow_infinity=False),
    }
)


WRITABLE = {
    **dict.fromkeys(["run", "run.gz", "run.zst"], tame),
    **dict.fromkeys(["parquet", "arrow", "jsonl", "jsonl.gz"], texts.filter(lambda text: text != "-")),
}


@settings(deadline=None, max_examples=how_many(20, full=60))
@given(data=st.data(), ending=st.sampled_from([*WRITABLE]))
def test_write_then_read_is_the_identity(data: st.DataObject, ending: str, tmp_path_factory: Any) -> None:
    rows = data.draw(st.lists(st.tuples(runs, WRITABLE[ending]), min_size=1, max_size=12))
    frame = pl.DataFrame([row | {"doc_id": doc, "tag": "t"} for row, doc in rows])
    path = tmp_path_factory.mktemp("w") / f"a.{ending}"
    run = gg.read_run(frame)
    gg.write_run(run, path)
    assert_frame_equal(gg.read_run(path).frame, run.frame)


@pytest.mark.parametrize("ending", ["txt", "txt.gz", "parquet", "arrow", "jsonl"])
def test_written_qrels_are_read_again(tmp_path: Path, ending: str) -> None:
    for labels, rows in ((None, QRELS), ("iteration", b"q1 0 a 2\nq1 2 a 3\nq1 3 b 1.5\n")):
        (tmp_path / "a").write_bytes(rows)
        with no_notices():
            qrels = gg.read_qrels(tmp_path / "a", labels=labels)
            gg.write_qrels(qrels, tmp_path / f"b.{ending}")
            assert_frame_equal(gg.read_qrels(tmp_path / f"b.{ending}", labels=labels).frame, qrels.frame)


def test_a_path_may_be_text_or_a_path(tmp_path: Path) -> None:
    gg.write_run({"q": {"a": 1.0}}, tmp_path / "a.run")
    gg.write_run({"q": {"a": 1.0}}, str(tmp_path / "b.run"))
    assert (tmp_path / "a.run").read_bytes() == (tmp_path / "b.run").read_bytes()


def test_whole_labels_are_written_as_whole_numbers(tmp_path: Path) -> None:
    gg.write_qrels({"q": {"a": 2, "b": -1}}, tmp_path / "a.txt")
    assert (tmp_path / "a.txt").read_text() == "q 0 a 2\nq 0 b -1\n"


def test_white_space_in_ids_is_written_as_percent_codes_with_the_count(tmp_path: Path) -> None:
    run = pl.DataFrame(
        {"query_id": ["q 1", "q 1", "q2"], "doc_id": ["a\tb", "c\u3000d\x85", "e"], "score": [2.0, 1.0, 1.0]}
    )
    with pytest.warns(gg.GoodgainNotice, match="in 4 ids were written as %XX"):
        gg.write_run(run, tmp_path / "a.run")
    lines = (tmp_path / "a.run").read_text(encoding="utf-8").splitlines()
    assert [line.split()[:3] for line in lines] == [
        ["q%201", "1", "a%09b"],
        ["q%201", "1", "c%E3%80%80d%C2%85"],
        ["q2", "1", "e"],
    ]


def test_a_write_that_fails_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "a.run"
    path.write_bytes(RUN)
    frame = pl.DataFrame({"query_id": "q", "doc_id": "a", "score": [1.0], "tag": [""]})
    with pytest.raises(gg.InputError, match="empty tag cannot be written"):
        gg.write_run(frame, path)
    assert path.read_bytes() == RUN
    assert [file.name for file in tmp_path.iterdir()] == ["a.run"]
    with pytest.raises(gg.InputError, match=r"the folder .*no such folder does not exist. Create it"):
        gg.write_run({"q": {"a": 1.0}}, tmp_path / "no such folder" / "a.run")


NESTED_RUN = {"q1": {"a": 1.5, "b": 1.0}, "q2": {"c": 2.0, "d": 1.0}}
NESTED_QRELS = {"q1": {"a": 3, "b": 0}, "q2": {"d": 2, "c": 0}}
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
    run, qrels = write(tmp_path / name, NESTED_RUN, indent), write(tmp_path / "qrels.json", NESTED_QRELS, indent)
    of_files = gg.evaluate(qrels, run, "nDCG@10 RR")
    assert of_files.mean() == gg.evaluate(NESTED_QRELS, NESTED_RUN, "nDCG@10 RR").mean()
    assert of_files["RR"] == pytest.approx(0.75)
    assert gg.read_run(run).name == "run"


@pytest.mark.slow
def test_what_ranx_saves_is_read_as_it_is(tmp_path: Path) -> None:
    import ranx

    ranx.Run(NESTED_RUN).save(str(tmp_path / "run.json"))
    ranx.Qrels(NESTED_QRELS).save(str(tmp_path / "qrels.json"))
    assert gg.evaluate(tmp_path / "qrels.json", tmp_path / "run.json", "RR")["RR"] == pytest.approx(0.75)
    ranx.Run(NESTED_RUN).to_dataframe().to_parquet(tmp_path / "run.parquet")
    with pytest.warns(gg.GoodgainNotice, match="'q_id' was read as query_id"):
        assert gg.read_run(tmp_path / "run.parquet").frame.height == 4


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("name", ["run.jsonl", "run.json", "run"])
def test_an_array_of_objects_is_read_as_json_lines(tmp_path: Path, name: str, indent: int | None) -> None:
    lines = tmp_path / "lines.jsonl"
    lines.write_text("\n".join(json.dumps(row) for row in ROWS))
    run = gg.read_run(write(tmp_path / name, ROWS, indent))
    assert_frame_equal(run.rows, gg.read_run(lines).rows)


def test_large_json_is_not_taken_for_trec_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("goodgain.counting.run_opening.LARGE", 10)
    run = write(tmp_path / "run.json", NESTED_RUN)
    assert gg.evaluate(NESTED_QRELS, run, "RR")["RR"] == pytest.approx(0.75)


@pytest.mark.parametrize("protocol", range(2, 6))
def test_a_pickle_is_named_as_such(tmp_path: Path, protocol: int) -> None:
    path = tmp_path / "run.pkl"
    path.write_bytes(pickle.dumps(NESTED_RUN, protocol))
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
