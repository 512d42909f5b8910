"""What small files say, and each kind of bad input: the message names file, line, the line itself and what to do."""

from __future__ import annotations

import gzip
import json
import re
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pytest
import zstandard

import goodgain as gg
from goodgain.formats import iterations
from tests.support.forms import write_table
from tests.support.tables import ROOT

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


def as_argument(value: Any) -> Any:
    """A frame for `{"frame": columns}`, and any other value as it is."""
    return pl.DataFrame(value["frame"]) if isinstance(value, dict) and "frame" in value else value


@pytest.mark.each
@pytest.mark.parametrize("case", BAD["arguments"], ids=lambda case: case["what"])
def test_a_wrong_argument_is_one_sentence(case: dict[str, Any]) -> None:
    with pytest.raises(gg.InputError, match=case["says"]):
        getattr(gg, case["call"])(*map(as_argument, case["arguments"]), **case.get("options", {}))


RUN: Any = {"q": {"d": 1.0}}
TWO = {"query_id": "q", "iteration": [1, 2**63 + 5], "doc_id": ["a", "b"]}


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: gg.read_run(gg.read_run(RUN), gaps="empty"), "has been read already"),
        (lambda: gg.compare({"q": {"d": 1}}, {1: RUN, "1": RUN, "c": RUN}, "SRE"), "the same name"),  # type: ignore[dict-item]  # that is the test
        (lambda: gg.read_run([("q", "d", 1.0)]), "not a named tuple"),
        (lambda: gg.read_run(pl.DataFrame(TWO, schema_overrides={"iteration": pl.UInt64})), "column 2"),
        (lambda: gg.read_qrels(iter(())), "the qrels: there is no judgment in these qrels"),
        (lambda: gg.deduplicate(pd.DataFrame({5: [1]})), "no column query_id"),
        (lambda: gg.aggregate(pd.DataFrame([["q", "a", "j", 1, 2]], columns=["query_id", "doc_id", "judge", "grade", "grade"])),
         "give each column a name of its own"),
    ],
)  # fmt: skip
def test_what_json_cannot_write_is_one_sentence_too(call: Callable[[], object], says: str) -> None:
    with pytest.raises(gg.InputError, match=says):
        call()


def test_iterations_of_results_may_be_floats_and_null() -> None:
    results = {"query_id": "q", "iteration": [1.0, None], "rank": [1, 1], "url": ["u", "v"]}
    assert gg.deduplicate(pl.DataFrame(results)).frame.height == 2


@pytest.mark.parametrize("kind", BAD["frames"])
@pytest.mark.parametrize("make", [pl.DataFrame, pd.DataFrame])
def test_a_bad_frame_is_named(kind: str, make: Callable[[Any], object]) -> None:
    columns, message = BAD["frames"][kind]
    with pytest.raises(gg.InputError, match=message):
        gg.read_run(make(columns))


@pytest.mark.parametrize("kind", [*BAD["JSON lines"], "nested without end"])
def test_a_bad_json_line_is_named(tmp_path: Path, kind: str) -> None:
    line, message = BAD["JSON lines"].get(kind) or ("[" * 100_000, "is not JSON")
    path = written(tmp_path / "bad.jsonl", f'{{"query_id": "q", "doc_id": "e", "score": 1}}\n{line}')
    with pytest.raises(gg.InputError) as error:
        gg.read_run(path)
    assert f"{path}, line 2: " in str(error.value)
    assert message in str(error.value)


@pytest.mark.each
@pytest.mark.parametrize("case", BAD["results"], ids=lambda case: case["what"])
def test_bad_results_are_named_by_their_place(tmp_path: Path, case: dict[str, Any]) -> None:
    frame = pl.DataFrame(case["rows"], infer_schema_length=None)
    for ending in case["endings"].split():
        with pytest.raises(gg.InputError, match=case["says"]):
            gg.read_results(write_table(frame, tmp_path / f"a.{ending}"))


def test_other_columns_of_results_stay(tmp_path: Path) -> None:
    frame = pl.DataFrame([BAD["results"][0]["rows"][0] | {"mine": "x"}])
    assert gg.read_results(write_table(frame, tmp_path / "a.parquet"))["mine"].to_list() == ["x"]


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


def test_a_long_run_may_lack_ten_iterations_for_each_that_it_has(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(iterations, "_MOST_MISSING", 5)  # 5,000,000: a run that lacks more takes seconds
    two = pl.DataFrame({"query_id": "q", "iteration": [1, 22], "doc_id": ["a", "b"], "rank": 1})
    assert gg.read_run(two, gaps="empty").rows.height == 22, "two iterations, and twenty without results"
    with pytest.raises(gg.InputError, match="the run has 2 iterations and lacks 21:"):
        gg.read_run(two.with_columns(iteration=pl.Series([1, 23])), gaps="empty")


def test_a_line_with_too_few_fields_is_told_nothing_of_blanks(tmp_path: Path) -> None:
    with pytest.raises(gg.InputError) as error:
        gg.read_run(written(tmp_path / "a.run", "q 1 doc 1 1\n"))
    assert "%20" not in str(error.value)


def test_a_data_set_of_ir_datasets_as_qrels_is_told_its_iterator() -> None:
    with pytest.raises(gg.InputError, match=r"Dataset is not qrels: give its qrels_iter\(\)"):
        gg.read_qrels(pytest.importorskip("ir_datasets").load("vaswani"))


CASES = json.loads(Path(__file__).with_name("small_files.json").read_text(encoding="utf-8"))


def read(kind: str, path: Path, case: dict[str, Any]) -> Any:
    """Read the file as grades, qrels or a run, and check which queries and documents it lists beside its rows."""
    options = case.get("options", {})
    if kind == "grades":
        return gg.aggregate(path, **options)
    if kind == "run":
        run = gg.read_run(path, **options)
        assert run.never_searched.to_list() == case.get("never_searched", [])
        return run.frame
    qrels = gg.read_qrels(path, **options)
    assert (None if qrels.ungraded is None else qrels.ungraded["doc_id"].to_list()) == case.get("ungraded")
    return qrels.frame


@pytest.mark.each
@pytest.mark.parametrize("name", CASES)
def test_a_small_file_gives_these_columns_and_notices(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    path = ROOT / case["path"] if "path" in case else tmp_path / case["file"]
    if "text" in case:
        path.write_bytes(case["text"].encode())
    for kind in case["read"].split():
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            frame = read(kind, path, case)
        assert frame.select(case["gives"].keys()).to_dict(as_series=False) == case["gives"]
        texts, wanted = [str(one.message) for one in told], case.get("notices", [])
        assert len(texts) == len(wanted) and all(any(re.search(one, text) for text in texts) for one in wanted), texts
