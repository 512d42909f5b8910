"""Each kind of bad input: the message names file, line, the line itself and what to do; nothing is dropped silently."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pytest
import zstandard

import goodgain as gg

GOOD_RUN = "q1 1 d1 1 2.0 t\nq1 2 d2 1 1.0 t\n"
GOOD_QRELS = "q1 0 d1 2\nq1 0 d2 0\n"
#: Lines and frames with a fault each, and whole files: what is read, and a pattern of the message.
BAD = json.loads(Path(__file__).with_name("bad_input.json").read_text())
READ = {"run": gg.read_run, "qrels": gg.read_qrels, "grades": gg.aggregate}


def written(path: Path, content: bytes | str) -> Path:
    path.write_bytes(content if isinstance(content, bytes) else content.encode(errors="surrogateescape"))
    return path


@pytest.mark.parametrize("case", BAD["files"], ids=lambda case: case["what"])
def test_a_file_that_cannot_be_read_is_one_sentence(tmp_path: Path, case: dict[str, Any]) -> None:
    for mark in ("", "\ufeff") if case["file"].endswith(".csv") else ("",):
        path = written(tmp_path / case["file"], mark + case["text"])
        for kind in case["read"].split():
            with pytest.raises(gg.InputError, match=case["says"]):
                READ[kind](path, **case.get("options", {}))


@pytest.mark.parametrize("separator", [" ", "\t", "   ", " \t"])
@pytest.mark.parametrize("kind", BAD["run lines"])
def test_a_bad_run_line_is_named(tmp_path: Path, kind: str, separator: str) -> None:
    line, message = BAD["run lines"][kind]
    content = f"\n{GOOD_RUN}{line}q1 2 d9 9 0.5 t\n".replace(" ", separator)
    path = written(tmp_path / "bad.run", content)
    with pytest.raises(gg.InputError) as error:
        gg.read_run(path)
    assert f"{path}, line 4: " in str(error.value)
    assert message in str(error.value)


@pytest.mark.parametrize("kind", BAD["qrels lines"])
def test_a_bad_qrels_line_is_named(tmp_path: Path, kind: str) -> None:
    line, message = BAD["qrels lines"][kind]
    path = written(tmp_path / "bad.qrels", f"{GOOD_QRELS}{line}q2 0 d9 1\n")
    with pytest.raises(gg.InputError) as error:
        gg.read_qrels(path)
    assert f"{path}, line 3: " in str(error.value)
    assert message in str(error.value)


def test_one_label_said_twice_is_one_judgment(tmp_path: Path) -> None:
    path = written(tmp_path / "twice.qrels", b"q1 0 d1 2\nq1 0 d1 2\n")
    assert len(gg.read_qrels(path)) == 1


def test_a_long_line_is_cut_at_200_characters(tmp_path: Path) -> None:
    path = written(tmp_path / "long.run", b"q1 1 " + b"d" * 1_000_000 + b" 1 2.0\n")
    with pytest.raises(gg.InputError) as error:
        gg.read_run(path)
    assert "d" * 195 + "...'" in str(error.value)
    assert len(str(error.value)) < 600


def test_an_empty_run_is_a_notice_and_every_query_has_no_search(tmp_path: Path) -> None:
    path = written(tmp_path / "empty.run", b"")
    with pytest.warns(gg.GoodgainNotice, match="the run is empty"):
        run = gg.read_run(path)
    worst = dict.fromkeys(("NumIter", "CG", "SRE", "DCGG@3", "nDCG@10"), 0) | {"IterationsForAllGoodResults": 100}
    assert gg.evaluate({"q": {"d": 3}}, run, [*worst]).mean() == worst


def test_a_missing_file_and_a_directory_are_said(tmp_path: Path) -> None:
    for read in (gg.read_run, gg.read_qrels):
        for path, says in ((tmp_path / "none", "no such file"), (tmp_path, "is a directory")):
            with pytest.raises(gg.InputError, match=says):
                read(path)


@pytest.mark.parametrize("keep", [0, 1, 10, 40, -1])
def test_truncated_compressed_data_are_an_error(tmp_path: Path, keep: int) -> None:
    content = GOOD_RUN.encode() * 100
    for ending, data in ((".gz", gzip.compress(content)), (".zst", zstandard.compress(content))):
        path = written(tmp_path / f"cut.run{ending}", data[:keep] if keep >= 0 else data[:-1])
        with pytest.raises(gg.InputError, match=r"truncated or damaged|not (gz|zst) data"):
            gg.read_run(path)


def test_bad_lines_can_be_left_out_and_are_counted_with_the_first_five_places(tmp_path: Path) -> None:
    bad = b"".join(b"q1 2 d%d 2 high t\n" % number for number in range(7))
    path = written(tmp_path / "bad.run", GOOD_RUN.encode() + bad + b"q1 3 d9 1 1 t\n")
    with pytest.warns(gg.GoodgainNotice) as told:
        run = gg.read_run(path, errors="skip")
    assert run.frame.height == 3
    (text,) = [str(warning.message) for warning in told]
    assert "left out 7 bad lines" in text
    assert all(f"line {number} (" in text for number in range(3, 8))
    assert "line 8" not in text


def test_a_word_among_iteration_numbers_can_be_left_out(tmp_path: Path) -> None:
    path = written(tmp_path / "bad.run", GOOD_RUN.encode() + b"q1 Q0 d9 1 1 t\n")
    with pytest.warns(gg.GoodgainNotice, match=r"left out 1 bad line.*line 3"):
        assert gg.read_run(path, errors="skip").frame.height == 2


RUN: Any = {"q": {"d": 1.0}}
QRELS: Any = {"q": {"d": 1}}
NOTHING: Any = None


def of_iteration(value: Any) -> pl.DataFrame:
    return pl.DataFrame({"query_id": "q", "iteration": value, "doc_id": ["a", "b"], "relevance": 3, "score": 1.0})


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: gg.read_run(RUN, gaps="fill"), "gaps='fill' is not one of close, empty"),
        (lambda: gg.read_run(RUN, errors="ignore"), "errors='ignore' is not one of raise, skip"),
        (lambda: gg.read_run(gg.read_run(of_iteration(3)), gaps="empty"), "has been read already"),
        (lambda: gg.read_qrels(QRELS, labels="round"), "labels='round' is not one of iteration, subtopic"),
        (lambda: gg.flatten(RUN, order="best"), "not one of seen, interleaved, last"),
        (lambda: gg.compare(QRELS, {1: RUN, "1": RUN, "c": RUN}, "SRE"), "the same name"),  # type: ignore[dict-item]  # that is the test
        (lambda: gg.read_run(3), "int is not a run"),
        (lambda: gg.read_run([("q", "d", 1.0)]), "not a named tuple"),
        (lambda: gg.read_run({"q": ["d"]}), "dict has a list for query 'q'"),
        (lambda: gg.read_run(of_iteration(1).with_columns(iteration=pl.Series([1, 2**63 + 5], dtype=pl.UInt64))), "column 2"),
        (lambda: gg.read_qrels({"q": {"d": 1, "e": "2"}}), "mixes int and str in relevance"),
        (lambda: gg.read_qrels({"q": {"a": 1e308, "b": 1e308}}), "their sum overflows"),
        (lambda: gg.read_qrels(QRELS, label=1), "has labels already; leave out label=1"),
        (lambda: gg.read_qrels(of_iteration("1" + "0" * 20), labels="iteration"), "a number in column 2 that is too large"),
        (lambda: gg.deduplicate(None), "the results are a NoneType; give a data frame"),
        (lambda: gg.deduplicate(pd.DataFrame({5: [1]})), "No column query_id"),
        (lambda: gg.read_traces(NOTHING), "the traces are a NoneType; give a path"),
        (lambda: gg.read_traces([5]), "one of the traces is a int; give the path"),  # type: ignore[list-item]  # that is the test
        (lambda: gg.read_results(NOTHING), "the file of the results is a NoneType"),
        (lambda: gg.write_run(RUN, 5), "the file of the run is a int"),  # type: ignore[arg-type]  # that is the test
        (lambda: gg.write_qrels(QRELS, NOTHING), "the file of the qrels is a NoneType"),
        (lambda: gg.aggregate(pd.DataFrame([["q", "a", "j", 1, 2]], columns=["query_id", "doc_id", "judge", "grade", "grade"])),
         "give each column a name of its own"),
    ],
)  # fmt: skip
def test_a_wrong_argument_is_one_sentence(call: Callable[[], object], says: str) -> None:
    with pytest.raises(gg.InputError, match=says):
        call()


@pytest.mark.parametrize("first", ["1", None, 1.5, True, 10**30, -5])
def test_first_is_a_number_of_an_iteration(first: Any) -> None:
    with pytest.raises(gg.InputError, match="give the number of a first iteration"):
        gg.read_run(RUN, first=first)


@pytest.mark.parametrize("column_2", ["-1", "1.5", "1e3"])
def test_a_number_that_is_no_iteration_is_an_error_with_labels_by_iteration(column_2: str) -> None:
    with pytest.raises(gg.InputError, match="which is not an iteration"):
        gg.read_qrels(of_iteration(column_2), labels="iteration")


@pytest.mark.parametrize("labels", [{"a": 5e-324}, {"a": 1, "b": 1e-300}, {"a": -1e-310}])
def test_labels_whose_digits_are_lost_are_refused(labels: dict[str, float]) -> None:
    """nDCG of 5e-324 and 1e-323 was 0.67, where the exact value is 0.86."""
    with pytest.raises(gg.InputError, match="so small that floats lose"):
        gg.read_qrels({"q": labels})


@pytest.mark.parametrize("kind", BAD["frames"])
@pytest.mark.parametrize("make", [pl.DataFrame, pd.DataFrame])
def test_a_bad_frame_is_named(kind: str, make: Callable[[Any], object]) -> None:
    columns, message = BAD["frames"][kind]
    with pytest.raises(gg.InputError, match=message):
        gg.read_run(make(columns))


def test_the_first_iteration_may_be_0(tmp_path: Path) -> None:
    low = written(tmp_path / "low.run", "q 0 a 1 1 t\nq 1 b 1 1 t\n")
    assert gg.read_run(low, gaps="empty", first=0).frame.height == 2


@pytest.mark.parametrize("kind", [*BAD["JSON lines"], "nested without end"])
def test_a_bad_json_line_is_named(tmp_path: Path, kind: str) -> None:
    line, message = BAD["JSON lines"].get(kind) or ("[" * 100_000, "is not JSON")
    path = written(tmp_path / "bad.jsonl", f'{{"query_id": "q", "doc_id": "e", "score": 1}}\n{line}')
    with pytest.raises(gg.InputError) as error:
        gg.read_run(path)
    assert f"{path}, line 2: " in str(error.value)
    assert message in str(error.value)


def test_a_parquet_file_of_another_table_is_named(tmp_path: Path) -> None:
    pl.DataFrame({"a": [1]}).write_parquet(tmp_path / "other.parquet")
    with pytest.raises(gg.InputError, match="has no column 'query_id', 'doc_id'"):
        gg.read_run(tmp_path / "other.parquet")


def test_gaps_are_bounded_in_sum_too(tmp_path: Path) -> None:
    wide = tmp_path / "wide.run"
    wide.write_text("".join(f"q1 {k * 10_000} d{k} 1 1.0 t\n" for k in range(1, 20_001)))
    for source in (wide, gg.read_run(wide).frame.lazy()):
        with pytest.raises(gg.InputError, match="the run has 20,000 iterations and lacks 199,980,000"):
            gg.read_run(source, gaps="empty")


def test_a_carriage_return_behind_the_tag_belongs_to_the_line_end(tmp_path: Path) -> None:
    path = tmp_path / "mac.run"
    path.write_bytes(b"q1\r1 d1 1 4 t and more\r\r\nq1 1 d2 2 3 t\r\n")
    with pytest.warns(gg.GoodgainNotice, match="1 line has text after the tag"):
        assert gg.read_run(path).frame["doc_id"].to_list() == ["d1", "d2"]


def test_a_judgment_of_no_document_can_be_left_out(tmp_path: Path) -> None:
    path = written(tmp_path / "a.qrels", b"q1 0 d1 1\nq1 0 - 1\n")
    with pytest.warns(gg.GoodgainNotice, match=r"left out 1 bad line; line 2.*judges the document '-'"):
        assert len(gg.read_qrels(path, errors="skip")) == 1


def test_a_line_with_too_few_fields_is_told_nothing_of_blanks(tmp_path: Path) -> None:
    with pytest.raises(gg.InputError) as error:
        gg.read_run(written(tmp_path / "a.run", "q 1 doc 1 1\n"))
    assert "%20" not in str(error.value)


def test_a_data_set_of_ir_datasets_as_qrels_is_told_its_iterator() -> None:
    with pytest.raises(gg.InputError, match=r"Dataset is not qrels: give its qrels_iter\(\)"):
        gg.read_qrels(pytest.importorskip("ir_datasets").load("vaswani"))
