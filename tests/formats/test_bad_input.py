"""Each kind of bad input: the message names file, line, the line itself and what to do; nothing is dropped silently."""

from __future__ import annotations

import gzip
from pathlib import Path

import pandas as pd
import polars as pl
import pytest
import zstandard

import goodgain as gg

GOOD_RUN = "q1 1 d1 1 2.0 t\nq1 2 d2 1 1.0 t\n"
GOOD_QRELS = "q1 0 d1 2\nq1 0 d2 0\n"

BAD_RUN_LINES = {
    "too few fields": (b"q1 2 d3 2 1.0\n", "has 5 fields, a run line has 6"),
    "a doc_id with blanks": (b"q1 2 d 3 2 1.0 t\n", "has 7 fields, a run line has 6"),
    "a doc_id with blanks and numbers": (b"q1 2 d 3 2 1.0 7 t\n", "has 8 fields, a run line has 6"),
    "a doc_id that ends in a number": (b"q1 2 page 3 2 1.0 t\n", "has 7 fields, a run line has 6"),
    "a qrels line": (b"q1 0 d3 2\n", "run and qrels may be swapped"),
    "rank no number": (b"q1 2 d3 first 1.0 t\n", "has the rank 'first', which is not a finite number"),
    "score no number": (b"q1 2 d3 2 high t\n", "has the score 'high', which is not a finite number"),
    "score nan": (b"q1 2 d3 2 nan t\n", "has the score 'nan', which is not a finite number"),
    "score infinite": (b"q1 2 d3 2 inf t\n", "has the score 'inf', which is not a finite number"),
    "score beyond floats": (b"q1 2 d3 2 1e999 t\n", "has the score '1e999', which is not a finite number"),
    "rank not finite": (b"q1 2 d3 nan 1.0 t\n", "has the rank 'nan', which is not a finite number"),
    "score with comma": (b"q1 2 d3 2 1,5 t\n", "has the score '1,5', which is not a finite number"),
    "score python only": (b"q1 2 d3 2 1_0 t\n", "has the score '1_0', which is not a finite number"),
    "NUL bytes": (b"q1 2 d\x003 2 1.0 t\n", "has NUL bytes"),
    "invalid UTF-8": (b"q1 2 d\xff3 2 1.0 t\n", "is not valid UTF-8"),
    "negative iteration": (b"q1 -1 d3 2 1.0 t\n", "has '-1' in column 2"),
    "fractional iteration": (b"q1 1.5 d3 2 1.0 t\n", "has '1.5' in column 2"),
    "a word among numbers": (b"q1 Q0 d3 2 1.0 t\n", "has 'Q0' in column 2"),
    "two tags": (b"q1 2 d3 2 1.0 other\n", "has the tag 'other' where query 'q1' has 't'"),
}

BAD_QRELS_LINES = {
    "too few fields": (b"q1 d3 2\n", "has 3 fields, a qrels line has 4"),
    "a run line": (b"q1 1 d3 1 2.0 t\n", "run and qrels may be swapped"),
    "label no number": (b"q1 0 d3 good\n", "has the relevance 'good', which is not a finite number"),
    "label nan": (b"q1 0 d3 nan\n", "has the relevance 'nan', which is not a finite number"),
    "NUL bytes": (b"q1 0 d\x003 1\n", "has NUL bytes"),
    "invalid UTF-8": (b"q1 0 d\xff3 1\n", "is not valid UTF-8"),
    "a judgment of nothing": (b"q1 0 - 1\n", "judges the document '-'"),
}


def written(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


def test_skipping_names_the_query_whose_numbers_cannot_be_known(tmp_path: Path) -> None:
    path = tmp_path / "a.run"
    path.write_text("a 1 d1 1 1 t\na x d2 2 1 t\nb y d1 1 1 t\nb z d2 2 1 t\n")
    with pytest.raises(gg.InputError, match="query 'b' has 'y' in another row"):
        gg.read_run(path, errors="skip")


@pytest.mark.parametrize("separator", [b" ", b"\t", b"   ", b" \t"])
@pytest.mark.parametrize("kind", BAD_RUN_LINES)
def test_a_bad_run_line_is_named(tmp_path: Path, kind: str, separator: bytes) -> None:
    line, message = BAD_RUN_LINES[kind]
    content = (b"\n" + GOOD_RUN.encode() + line + b"q1 2 d9 9 0.5 t\n").replace(b" ", separator)
    path = written(tmp_path / "bad.run", content)
    with pytest.raises(gg.InputError) as error:
        gg.read_run(path)
    assert f"{path}, line 4: " in str(error.value)
    assert message in str(error.value)


@pytest.mark.parametrize("kind", BAD_QRELS_LINES)
def test_a_bad_qrels_line_is_named(tmp_path: Path, kind: str) -> None:
    line, message = BAD_QRELS_LINES[kind]
    path = written(tmp_path / "bad.qrels", GOOD_QRELS.encode() + line + b"q2 0 d9 1\n")
    with pytest.raises(gg.InputError) as error:
        gg.read_qrels(path)
    assert f"{path}, line 3: " in str(error.value)
    assert message in str(error.value)


def test_two_words_in_one_query_are_named_with_both(tmp_path: Path) -> None:
    path = written(tmp_path / "words.run", b"q1 Q0 d1 1 2 t\nq2 Q0 d1 1 2 t\nq1 Q1 d2 2 1 t\n")
    with pytest.raises(gg.InputError, match=r"line 3.*'Q1' in column 2 where query 'q1' has 'Q0'"):
        gg.read_run(path)


def test_two_labels_of_one_document_are_named_with_both_lines(tmp_path: Path) -> None:
    path = written(tmp_path / "twice.qrels", b"q1 0 d1 2\nq1 0 d2 1\n\nq1 7 d1 1\nq1 0 d2 1\n")
    with pytest.raises(gg.InputError, match=r"line 1: 'q1 0 d1 2' and .*line 4: 'q1 7 d1 1' have different labels"):
        gg.read_qrels(path)


def test_one_label_said_twice_is_one_judgment(tmp_path: Path) -> None:
    path = written(tmp_path / "twice.qrels", b"q1 0 d1 2\nq1 0 d1 2\n")
    assert len(gg.read_qrels(path)) == 1


def test_a_long_line_is_cut_at_200_characters(tmp_path: Path) -> None:
    path = written(tmp_path / "long.run", b"q1 1 " + b"d" * 1_000_000 + b" 1 2.0\n")
    with pytest.raises(gg.InputError) as error:
        gg.read_run(path)
    assert "d" * 195 + "...'" in str(error.value)
    assert len(str(error.value)) < 600


def test_empty_qrels_are_an_error(tmp_path: Path) -> None:
    for content in (b"", b"\n \n"):
        with pytest.raises(gg.InputError, match="there is no judgment"):
            gg.read_qrels(written(tmp_path / "empty.qrels", content))


def test_an_empty_run_is_a_notice_and_every_query_has_no_search(tmp_path: Path) -> None:
    path = written(tmp_path / "empty.run", b"")
    with pytest.warns(gg.GoodgainNotice, match="the run is empty"):
        run = gg.read_run(path)
    assert gg.evaluate({"q": {"d": 3}}, run, "NumIter CG SRE DCGG@3 IterationsForAllGoodResults nDCG@10").mean() == {
        "NumIter": 0,
        "CG": 0,
        "SRE": 0,
        "DCGG@3": 0,
        "IterationsForAllGoodResults": 100,
        "nDCG@10": 0,
    }


def test_a_missing_file_and_a_directory_are_said(tmp_path: Path) -> None:
    with pytest.raises(gg.InputError, match="no such file"):
        gg.read_run(tmp_path / "none.run")
    with pytest.raises(gg.InputError, match="no such file"):
        gg.read_qrels(tmp_path / "none.qrels")
    for read in (gg.read_run, gg.read_qrels):
        with pytest.raises(gg.InputError, match="is a directory"):
            read(tmp_path)


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


def test_options_that_do_not_exist_are_said() -> None:
    run = {"q": {"d": 1.0}}
    with pytest.raises(gg.InputError, match="gaps='fill' is not one of close, empty"):
        gg.read_run(run, gaps="fill")
    with pytest.raises(gg.InputError, match="errors='ignore' is not one of raise, skip"):
        gg.read_run(run, errors="ignore")
    with pytest.raises(gg.InputError, match="labels='round' is not one of iteration, subtopic"):
        gg.read_qrels({"q": {"d": 1}}, labels="round")
    with pytest.raises(gg.InputError, match="not one of seen, interleaved, last"):
        gg.flatten(run, order="best")


BAD_FRAMES = {
    "no doc_id column": ({"query_id": ["q"], "paper": ["d"]}, "has no column 'doc_id'"),
    "null query": ({"query_id": ["q", None], "doc_id": ["d", "e"]}, "row 1.*has no query_id"),
    "empty doc_id": ({"query_id": ["q", "q"], "doc_id": ["d", ""]}, "row 1.*has no doc_id"),
    "score null": ({"query_id": ["q"], "doc_id": ["d"], "score": [None]}, "score"),
    "score nan": ({"query_id": ["q"], "doc_id": ["d"], "score": [float("nan")]}, "score that is not a finite number"),
    "score text": ({"query_id": ["q"], "doc_id": ["d"], "score": ["1"]}, "String in score"),
    "ids with decimals": ({"query_id": [1.0], "doc_id": ["d"]}, "needs a text or a whole number"),
    "negative iteration": ({"query_id": ["q", "q"], "doc_id": ["d", "e"], "iteration": [-1, 2]}, "'-1' in column 2"),
    "half an iteration": ({"query_id": ["q", "q"], "doc_id": ["d", "e"], "iteration": [1.5, 2]}, "'1.5' in column 2"),
    "no iteration": ({"query_id": ["q", "q"], "doc_id": ["d", "e"], "iteration": [None, 2]}, "has no iteration"),
}


@pytest.mark.parametrize("kind", BAD_FRAMES)
@pytest.mark.parametrize("engine", ["polars", "pandas"])
def test_a_bad_frame_is_named(kind: str, engine: str) -> None:
    columns, message = BAD_FRAMES[kind]
    with pytest.raises(gg.InputError, match=message):
        gg.read_run(pl.DataFrame(columns) if engine == "polars" else pd.DataFrame(columns))


def test_what_is_no_run_at_all_is_said() -> None:
    with pytest.raises(gg.InputError, match="int is not a run"):
        gg.read_run(3)
    with pytest.raises(gg.InputError, match="not a named tuple"):
        gg.read_run([("q", "d", 1.0)])
    with pytest.raises(gg.InputError, match="dict has a list for query 'q'"):
        gg.read_run({"q": ["d"]})
    with pytest.raises(gg.InputError, match="mixes int and str in relevance"):
        gg.read_qrels({"q": {"d": 1, "e": "2"}})


def test_gaps_are_bounded_and_first_is_held(tmp_path: Path) -> None:
    wide = written(tmp_path / "wide.run", b"q 1 a 1 1 t\nq 10003 b 1 1 t\n")
    with pytest.raises(gg.InputError, match="lacks 10001 iterations"):
        gg.read_run(wide, gaps="empty")
    low = written(tmp_path / "low.run", b"q 0 a 1 1 t\nq 1 b 1 1 t\n")
    with pytest.raises(gg.InputError, match="below first=1"):
        gg.read_run(low, gaps="empty")
    assert gg.read_run(low, gaps="empty", first=0).frame.height == 2


BAD_JSON_LINES = {
    "cut off": ('{"query_id": "q", "doc_', "is not JSON"),
    "no object": ("[1, 2]", "is not a JSON object"),
    "a key missing": ('{"query_id": "q"}', "lacks doc_id"),
    "score text": ('{"query_id": "q", "doc_id": "d", "score": "1"}', "which is not a number"),
    "id a list": ('{"query_id": "q", "doc_id": ["d"]}', "neither text nor a whole number"),
    "id a fraction": (
        '{"query_id": "q", "doc_id": 2301.10}',
        "has '2301.1' in doc_id, which is neither text nor a whole",
    ),
    "nested without end": ("[" * 100_000, "is not JSON"),
}


@pytest.mark.parametrize("kind", BAD_JSON_LINES)
def test_a_bad_json_line_is_named(tmp_path: Path, kind: str) -> None:
    line, message = BAD_JSON_LINES[kind]
    path = written(tmp_path / "bad.jsonl", b'{"query_id": "q", "doc_id": "e", "score": 1}\n' + line.encode())
    with pytest.raises(gg.InputError) as error:
        gg.read_run(path)
    assert f"{path}, line 2: " in str(error.value)
    assert message in str(error.value)


def test_damaged_parquet_and_arrow_are_said(tmp_path: Path) -> None:
    for ending in ("parquet", "arrow"):
        with pytest.raises(gg.InputError, match=f"not a readable {ending} file"):
            gg.read_run(written(tmp_path / f"bad.{ending}", b"PAR1 nothing of the kind"))
    pl.DataFrame({"a": [1]}).write_parquet(tmp_path / "other.parquet")
    with pytest.raises(gg.InputError, match="has no column 'query_id', 'doc_id'"):
        gg.read_run(tmp_path / "other.parquet")


def test_gaps_are_bounded_in_sum_too(tmp_path: Path) -> None:
    wide = tmp_path / "wide.run"
    wide.write_text("".join(f"q1 {k * 10_000} d{k} 1 1.0 t\n" for k in range(1, 20_001)))
    with pytest.raises(gg.InputError, match="the run has 20,000 iterations and lacks 199,980,000"):
        gg.read_run(wide, gaps="empty")
    with pytest.raises(gg.InputError, match="the run has 20,000 iterations and lacks 199,980,000"):
        gg.read_run(gg.read_run(wide).frame.lazy(), gaps="empty")


def test_lines_that_end_with_a_carriage_return_alone_are_an_error(tmp_path: Path) -> None:
    path = tmp_path / "mac.run"
    for text in ("q1 1 d1 1 4 t\rq1 1 d2 2 3 t\r", "q1 1 d0 1 5 t\nq1 1 d1 1 4 t \r q1 1 d2 2 3 t\n"):
        path.write_bytes(text.encode())
        with pytest.raises(gg.InputError, match=r"line [12]: .* goes on after a carriage return behind the tag"):
            gg.read_run(path)
    path.write_bytes(b"q1\r1 d1 1 4 t and more\r\r\nq1 1 d2 2 3 t\r\n")
    with pytest.warns(gg.GoodgainNotice, match="1 line has text after the tag"):
        assert gg.read_run(path).frame["doc_id"].to_list() == ["d1", "d2"]


def test_a_judgment_of_no_document_can_be_left_out(tmp_path: Path) -> None:
    path = written(tmp_path / "a.qrels", b"q1 0 d1 1\nq1 0 - 1\n")
    with pytest.raises(gg.InputError, match=r"line 2: 'q1 0 - 1' judges the document '-'"):
        gg.read_qrels(path)
    with pytest.warns(gg.GoodgainNotice, match=r"left out 1 bad line; line 2.*judges the document '-'"):
        assert len(gg.read_qrels(path, errors="skip")) == 1


def test_a_blank_in_an_id_is_said_how_to_write_before_lines_are_left_out(tmp_path: Path) -> None:
    for name, line, read in (("a.run", "q 1 my doc 1 1 t", gg.read_run), ("a.qrels", "q 0 my doc 2", gg.read_qrels)):
        (tmp_path / name).write_text(f"{line}\n")
        with pytest.raises(
            gg.InputError, match=r"fields.*write a blank in an id as %20, or .*a header and tabs, or leave"
        ):
            read(tmp_path / name)
    (tmp_path / "a.run").write_text("q 1 doc 1 1\n")
    with pytest.raises(gg.InputError) as error:
        gg.read_run(tmp_path / "a.run")
    assert "%20" not in str(error.value)


def test_a_data_set_of_ir_datasets_as_qrels_is_told_its_iterator() -> None:
    with pytest.raises(gg.InputError, match=r"Dataset is not qrels: give its qrels_iter\(\)"):
        gg.read_qrels(pytest.importorskip("ir_datasets").load("vaswani"))
