"""CSV and TSV with a header are read as frames are; names that people use for our columns are understood, and said."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import ir_measures
import pandas as pd
import polars as pl
import pytest
import zstandard

import goodgain as gg
from goodgain.counting import run_opening
from goodgain.formats.qrels_or_run import looks_like_qrels
from goodgain.measures.names import parse_measures
from tests.cli.test_command_line import goodgain
from tests.support.command import run_command
from tests.support.counts import some_of
from tests.support.forms import FRAMES, write_table
from tests.support.notices import notices_of
from tests.support.tables import no_notices

QRELS = {"q": {"a": 3, "b": 2, "c": 0}}
RUN = pl.DataFrame(
    {"query_id": "q", "iteration": [1, 1, 2, 2], "doc_id": ["a", "c", "b", "a"], "rank": [1, 2, 1, 2], "score": 1.5}
)
LABELS = pl.DataFrame({"query_id": "q", "doc_id": ["a", "b", "c"], "relevance": [3, 2, 0]})
MEASURES = "CG@1 CG@2 SRR nDCG@10 RR@10"
COMPRESS: dict[str, Callable[[bytes], bytes]] = {"": bytes, ".gz": gzip.compress, ".zst": zstandard.compress}


def give(frame: pl.DataFrame, form: str, path: Path) -> Any:
    """The frame as one of an engine, as named tuples, or as a file with this ending."""
    if form == "tuples":
        return list(frame.to_pandas().itertuples(index=False))
    return FRAMES[form](frame) if form in FRAMES else write_table(frame, path.with_suffix(f".{form}"))


WANTED = gg.evaluate(QRELS, RUN, MEASURES).mean()


@pytest.mark.parametrize("compressed", COMPRESS)
@pytest.mark.parametrize(("ending", "separator"), some_of([("csv", ","), ("tsv", "\t"), ("CSV", ",")], every=2))
def test_files_with_a_header_are_read_as_frames_are(
    tmp_path: Path, ending: str, separator: str, compressed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = [tmp_path / f"{name}.{ending}{compressed}" for name in ("run", "qrels")]
    for path, frame in zip(paths, (RUN, LABELS), strict=True):
        path.write_bytes(COMPRESS[compressed](frame.write_csv(separator=separator).encode()))
    for limit in (run_opening.LARGE, 0):  # a header is seen in large files too
        monkeypatch.setattr(run_opening, "LARGE", limit)
        monkeypatch.setattr(run_opening, "LARGE_COMPRESSED", limit)
        assert gg.evaluate(paths[1], paths[0], MEASURES).mean() == WANTED
    assert gg.read_run(paths[0]).frame.equals(gg.read_run(RUN).frame)
    assert gg.read_qrels(paths[1]).frame.equals(gg.read_qrels(LABELS).frame)
    assert (looks_like_qrels(paths[0]), looks_like_qrels(paths[1])) == (False, True)
    assert "run, 1 query, 2 iterations" in goodgain("validate", paths[0])[0]


def test_trec_text_under_these_names_is_read_as_before(tmp_path: Path) -> None:
    for name, separator in (("a.csv", " "), ("a.tsv", "\t"), ("b.tsv", " ")):
        path = tmp_path / name
        rows = ("# comment", "q 1 a 1 2.0 t", "q 1 u 2 1.0 t", "q 2 b 1 2.0 t", "q 2 a 2 1.0 t")
        path.write_text("\n".join(row.replace(" ", separator) for row in rows))
        assert gg.evaluate(QRELS, path, MEASURES).mean() == WANTED
        gg.write_run(RUN, path)
        assert gg.evaluate(QRELS, path, MEASURES).mean() == WANTED
        path.write_text("q 0 a 3\nq 0 b 2\nq 0 c 0\n".replace(" ", separator))
        assert gg.read_qrels(path).digest == gg.read_qrels(QRELS).digest
        path.write_text("q 1 a 1 2.0\nq 1 a 1 2.0 t\n".replace(" ", separator))
        with pytest.raises(gg.InputError, match=r"line 1.* has 5 fields"):
            gg.read_run(path)


SYNONYMS = ["qid", "docno", "docid", "did", "pid", "label", "gain", "grade", "rel", "Label"]


@pytest.mark.slow
@pytest.mark.parametrize("name", some_of(SYNONYMS, every=6))
def test_usual_names_are_understood_and_said_once_in_every_source(name: str, tmp_path: Path) -> None:
    ours = {"qid": "query_id"} | dict.fromkeys(("docno", "docid", "did", "pid"), "doc_id")
    column = ours.get(name, "relevance")
    run = RUN.rename({column: name}, strict=False)
    qrels = LABELS.rename({column: name}, strict=False)
    for form in ("polars", "lazy", "pandas", "tuples", "parquet", "arrow", "jsonl", "csv", "tsv"):
        sources = [give(frame, form, tmp_path / kind) for kind, frame in (("qrels", qrels), ("run", run))]
        scores, told = notices_of(partial(gg.evaluate, *sources, MEASURES))
        assert scores.mean() == WANTED
        assert len(told) == (1 if column == "relevance" else 2), told  # one for the qrels, one for the run
        assert all(f"{name!r} was read as {column}. If that is wrong, set columns=" in text for text in told)
        scores, told = notices_of(partial(gg.evaluate, *sources, MEASURES, columns={name: column}))
        assert scores.mean() == WANTED and not told


def test_two_usual_names_of_one_column() -> None:
    run = RUN.with_columns(docid=pl.int_range(4)).rename({"doc_id": "docno"})
    for frame in (run, run.select(reversed(run.columns))):
        with pytest.warns(gg.GoodgainNotice, match="'docno' was read as doc_id."):
            assert gg.evaluate(QRELS, frame, MEASURES).mean() == WANTED
    assert gg.evaluate(QRELS, RUN.with_columns(qid=pl.lit("other")), MEASURES).mean() == WANTED
    two = LABELS.with_columns(grade=pl.col("relevance") - 1).rename({"relevance": "label"})
    with pytest.raises(gg.InputError, match=r"two columns that may be relevance, 'label' and 'grade'.*columns="):
        gg.read_qrels(two)
    assert gg.read_qrels(two, columns={"label": "relevance"}).digest == gg.read_qrels(QRELS).digest


def test_grade_and_relevance_in_one_table_are_an_error_whoever_reads_it(tmp_path: Path) -> None:
    frame = pl.DataFrame({"query_id": "q1", "doc_id": ["d1"], "grade": 0, "relevance": 2})
    for source in (frame, write_table(frame, tmp_path / "t.csv"), write_table(frame, tmp_path / "t.jsonl")):
        with pytest.raises(gg.InputError, match="two columns that may be relevance, 'relevance' and 'grade'"):
            gg.read_qrels(source)
        with pytest.raises(gg.InputError, match=r"two .* that may be the grade[,:] grade and relevance"):
            gg.aggregate(source)


def test_a_column_whose_name_is_a_number_is_passed_over() -> None:
    rows = {"query_id": ["q"], "doc_id": ["a"], 5: [1]}
    run = gg.read_run(pd.DataFrame(rows | {"score": [1.0]}))
    qrels = gg.read_qrels(pd.DataFrame(rows | {"relevance": [2]}))
    assert gg.evaluate(qrels, run, "RR")["RR"] == 1


def test_large_parquet_files_say_what_was_understood(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    RUN.rename({"query_id": "qid"}).write_parquet(tmp_path / "run.parquet")
    monkeypatch.setattr(run_opening, "LARGE_COMPRESSED", 0)
    scores, told = notices_of(lambda: gg.evaluate(QRELS, tmp_path / "run.parquet", MEASURES))
    assert scores.mean() == WANTED
    assert len(told) == 1 and "'qid' was read as query_id" in told[0]


def test_a_run_with_a_label_is_not_taken_for_qrels(tmp_path: Path) -> None:
    RUN.with_columns(label=pl.lit(1)).write_csv(tmp_path / "run.csv")
    assert not looks_like_qrels(tmp_path / "run.csv")


#: What people have -> its form, new names of columns in the run and the qrels, `columns=`, and what says what to do.
CASES = json.loads(Path(__file__).with_name("names_people_use.json").read_text())


@pytest.mark.each
@pytest.mark.parametrize("case", CASES)
def test_what_people_have_ends_in_the_right_numbers_or_in_the_remedy(case: str, tmp_path: Path) -> None:
    of = CASES[case]
    run = give(RUN.rename(of.get("run", {})), of["form"], tmp_path / "run")
    qrels, columns = give(LABELS.rename(of.get("qrels", {})), of["form"], tmp_path / "qrels"), of.get("columns")
    if "says" in of:
        with pytest.raises((gg.InputError, gg.GoodgainNotice), match=of["says"]):  # a notice is an error in these tests
            gg.evaluate(qrels, run, MEASURES, columns=columns)
    else:
        scores, _ = notices_of(lambda: gg.evaluate(qrels, run, MEASURES, columns=columns))
        assert scores.mean() == pytest.approx(WANTED, abs=1e-12)


def test_a_pyterrier_result_with_iterations_has_the_right_numbers() -> None:
    qrels = pd.DataFrame({"qid": "q", "docno": ["a", "b", "c"], "label": [3, 2, 0]})
    run = RUN.rename({"query_id": "qid", "doc_id": "docno"}).to_pandas().assign(docid=range(4), query="words")
    assert notices_of(lambda: gg.evaluate(qrels, run, MEASURES))[0].mean() == pytest.approx(WANTED, abs=1e-12)


def test_ir_measures_gets_the_right_numbers_or_the_remedy() -> None:
    measures = parse_measures(MEASURES)
    run = RUN.to_pandas()
    with pytest.raises(gg.GoodgainNotice, match=r"Give ir_measures goodgain.read_run\(run\)"):
        ir_measures.calc_aggregate(measures, QRELS, run)
    found = ir_measures.calc_aggregate(measures, QRELS, gg.read_run(run))
    assert {str(measure): value for measure, value in found.items()} == pytest.approx(WANTED, abs=1e-12)


NO_HEADER = "has a number as its name, so the first row may be data"


def test_a_row_read_as_the_header_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "qrels.csv"
    path.write_text("q1,0,a,1\nq2,0,x,1\n")
    for columns in (None, {"q1": "query_id", "a": "doc_id", "1": "relevance"}):
        with pytest.raises(gg.InputError, match=NO_HEADER):
            gg.read_qrels(path, columns=columns)
    with pytest.raises(gg.InputError, match=NO_HEADER):
        gg.read_qrels(pd.read_csv(path))


@pytest.mark.parametrize("form", ["csv", "json", "jsonl", "parquet", "polars"])
def test_a_number_as_the_name_of_one_column_can_be_renamed(form: str, tmp_path: Path) -> None:
    frame = pl.DataFrame({"query_id": ["q"], "doc_id": ["d"], "2023": [2]})
    source = give(frame, form, tmp_path / "qrels")
    with no_notices():
        judged = gg.read_qrels(source, columns={"2023": "relevance"})
    assert judged.frame.rows() == [("q", "0", "d", 2)]
    with pytest.raises(gg.InputError) as raised:
        gg.read_qrels(source)
    assert "relevance" in str(raised.value)
    assert "first row" not in str(raised.value)


@pytest.mark.parametrize("kind", [int, str])
def test_numbers_that_pandas_gives_as_names_can_be_renamed(kind: type) -> None:
    names = {kind(0): "query_id", kind(2): "doc_id", kind(3): "relevance"}
    judged = gg.read_qrels(pd.DataFrame([["q", 0, "d", 2]]), columns=names)
    assert judged.frame.rows() == [("q", "0", "d", 2)]
    run = pl.DataFrame({"0": ["q"], "1": [1], "2": ["d"]})
    for source in (run, pd.DataFrame([["q", 1, "d", 5.0]])):
        of_run = {kind(0): "query_id", kind(1): "iteration", kind(2): "doc_id"}
        assert list(gg.evaluate({"q": {"d": 2}}, source, "CG", columns=of_run).mean().values()) == [2]
    with pytest.raises(gg.InputError, match=r"has no column 'query_id', .* \(it has 0, 1, 2, 3\); pass columns="):
        gg.read_qrels(pd.DataFrame([["q", 0, "d", 2]]))
    with pytest.raises(gg.InputError, match="there is no column 7"):
        gg.read_qrels({"q": {"d": 2}}, columns={7: "relevance"})


@pytest.mark.parametrize(
    "command", ["evaluate -m CG", "ledger", "curve -m CG", "compare -m CG", "explain", "report -o {0}/r.json"]
)
def test_a_column_that_no_file_has_is_an_error_in_every_command(command: str, tmp_path: Path) -> None:
    name, *options = command.format(tmp_path).split()
    folder = "qrels_examples/two_agents"
    runs = [f"{folder}/quick.run", f"{folder}/late.run"][: 1 if name == "ledger" else 2]
    done = run_command(name, f"{folder}/qrels.txt", *runs, *options, "--columns", "nosuch=iteration")
    assert done.returncode == 2 and "--columns nosuch=iteration: there is no column 'nosuch'" in done.stderr
