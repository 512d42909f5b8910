"""Files of grades: what judging tools write, and what is refused."""

from __future__ import annotations

import json
import time
from pathlib import Path

import polars as pl
import pytest

import goodgain as gg
from goodgain.counting.run_opening import number_repeats
from goodgain.judgments.judging.aggregation import find_map
from tests.support.command import run_command

CASES = json.loads(Path(__file__).with_name("cases.json").read_text(encoding="utf-8"))


def written(tmp_path: Path, name: str, text: str) -> Path:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return path


def test_a_quepid_book_with_addresses_two_grades_in_a_cell_and_blanks_before_signs(tmp_path: Path) -> None:
    book = written(
        tmp_path,
        "book.csv",
        '\ufeffquery,docid,anna@example.org,Unknown, @ben\n" -1 shoes",d1,3,1|3,\n" @home",d1,,0,2.0\n@,d2,,,1\n',
    )
    labels = gg.aggregate(book, scale="graded")
    assert labels.rows() == [
        ("-1 shoes", "d1", pytest.approx(7 / 3), 3, 1, False),
        ("@home", "d1", 1.0, 2, 1, True),
        ("@", "d2", 1.0, 1, 2, False),
    ]

    names = gg.agreement(book, scale="graded", names=True).judges["judge"].to_list()
    assert names == ["anna@example.org", "Unknown", "Unknown [2]", "@ben"]


@pytest.mark.parametrize(("name", "text", "says"), CASES["test_a_file_of_another_tool_or_a_bad_one_is_a_clear_error"])
def test_a_file_of_another_tool_or_a_bad_one_is_a_clear_error(tmp_path: Path, name: str, text: str, says: str) -> None:
    with pytest.raises(gg.InputError, match=says):
        gg.aggregate(written(tmp_path, name, text), scale="graded")


def test_an_object_over_two_lines_is_refused_though_another_line_has_two(tmp_path: Path) -> None:
    """As many objects as lines: `{..},{..}` in one line made up for the one that was cut."""
    row = '{"query_id":"q","doc_id":"%s","judge":"j","grade":1}'
    cut = row % "c"
    lines = [f"{row % 'a'},{row % 'b'}", cut[:15], cut[16:]]
    assert cut[15] == ","
    path = written(tmp_path, "grades.jsonl", "\n".join(lines) + "\n")
    with pytest.raises(gg.InputError, match="line 1: is not JSON"):
        gg.aggregate(path)


def test_many_raters_and_many_thresholds_take_no_square_of_time() -> None:
    begin = time.process_time()
    assert number_repeats(["a", "b"] * 30_000)[-2:] == ["a (30000)", "b (30000)"]
    many = find_map(", ".join(f">={k} -> {k}" for k in range(20_000)))
    assert many.apply(pl.Series([5.5, None, -1.0])).to_list() == [5.0, None, 0.0]
    assert time.process_time() - begin < 5


@pytest.mark.parametrize(("nuggets", "grade"), CASES["test_the_best_nugget_that_a_document_supports_is_its_grade"])
def test_the_best_nugget_that_a_document_supports_is_its_grade(
    tmp_path: Path, nuggets: list[tuple[str, str]], grade: int
) -> None:
    labels = gg.aggregate(written(tmp_path, "nuggets.jsonl", assign("d#1", nuggets)), scale="graded")
    read = gg.read_qrels(labels, labels="subtopic" if nuggets else None).frame
    assert read.select("query_id", "doc_id", "relevance").rows() == [("q", "d#1", grade)]


def assign(doc_id: str, nuggets: list[tuple[str, str]]) -> str:
    """A line of autonuggetizer's assignments; the nuggets are called 1, 2 ..."""
    assigned = [
        {"text": f"nugget {number}", "importance": kind, "assignment": support}
        for number, (kind, support) in enumerate(nuggets, start=1)
    ]
    return json.dumps({"text": "What?", "qid": "q", "candidate_text": "p", "docid": doc_id, "nuggets": assigned}) + "\n"


def test_judge_keeps_each_nugget_as_a_subtopic(tmp_path: Path) -> None:
    first = assign("a", [("vital", "support"), ("okay", "not_support")])
    source = written(
        tmp_path, "nuggets.jsonl", first + assign("b", [("vital", "partial_support"), ("okay", "support")])
    )

    for name in ("out.qrels", "out.parquet"):
        done = run_command("judge", source, "-o", tmp_path / name)
        assert done.returncode == 0, done.stderr
        assert "column 2 holds the nuggets; read this file with --labels subtopic" in done.stderr
        qrels = gg.read_qrels(tmp_path / name, labels="subtopic")
        assert sorted(qrels.rows.select("doc_id", "relevance").rows()) == [("a", 0), ("a", 3), ("b", 1), ("b", 2)]
        assert sorted(qrels.frame.select("doc_id", "relevance").rows()) == [("a", 3), ("b", 2)]
        run = pl.DataFrame({"query_id": "q", "iteration": [1, 2], "doc_id": ["a", "b"]})
        scores = gg.evaluate(qrels, run, "NuggetRecall@1 NuggetRecall@2")
        assert (scores["NuggetRecall@1"], scores["NuggetRecall@2"]) == (0.5, 1)

    with pytest.raises(gg.InputError, match="labels='subtopic'"):
        gg.read_qrels(tmp_path / "out.qrels")


def test_two_judges_of_nuggets_are_aggregated_by_nugget(tmp_path: Path) -> None:
    paths = [
        written(tmp_path, f"{judge}.jsonl", assign("a", [("vital", one), ("okay", other)]))
        for judge, one, other in (("x", "support", "support"), ("y", "not_support", "support"))
    ]
    labels = gg.aggregate(paths, how="mean")
    assert labels.select("iteration", "doc_id", "relevance", "n_judges").rows() == [
        ("nugget 1", "a", 1.5, 2), ("nugget 2", "a", 2.0, 2),
    ]  # fmt: skip


def test_grades_of_whole_documents_beside_nuggets_are_another_subtopic(tmp_path: Path) -> None:
    nuggets = written(tmp_path, "n.jsonl", assign("a", [("vital", "support")]))
    labels = gg.aggregate([nuggets, written(tmp_path, "whole.qrels", "q 0 a 1\n")], how="max")
    assert labels.select("iteration", "relevance").rows() == [("nugget 1", 3), ("0", 1)]
