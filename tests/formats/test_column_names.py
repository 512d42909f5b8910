"""CSV and TSV with a header are read as frames are; names that people use for our columns are understood, and said."""

from __future__ import annotations

import gzip
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pytest
import zstandard

import goodgain as gg
from goodgain.counting import run_opening
from goodgain.formats.qrels import looks_like_qrels
from goodgain.measures.names import parse_measures
from tests.cli.test_command_line import goodgain
from tests.support.command import run_command
from tests.support.counts import some_of
from tests.support.tables import no_notices

QRELS = {"q": {"a": 3, "b": 2, "c": 0}}
RUN = pl.DataFrame(
    {"query_id": "q", "iteration": [1, 1, 2, 2], "doc_id": ["a", "c", "b", "a"], "rank": [1, 2, 1, 2], "score": 1.5}
)
LABELS = pl.DataFrame({"query_id": "q", "doc_id": ["a", "b", "c"], "relevance": [3, 2, 0]})
MEASURES = "CG@1 CG@2 SRR nDCG@10 RR@10"
COMPRESS: dict[str, Callable[[bytes], bytes]] = {"": bytes, ".gz": gzip.compress, ".zst": zstandard.compress}


def notices_of(call: Callable[[], Any], *, coverage: bool = False) -> tuple[Any, list[str]]:
    """The result of a call, and the notices that it gave: without that of a low coverage, unless it is asked for."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = call()
    texts = [str(one.message) for one in caught if issubclass(one.category, gg.GoodgainNotice)]
    return result, [text for text in texts if coverage or "coverage is low" not in text]


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


def test_what_csv_files_have_beside_their_values(tmp_path: Path) -> None:
    path = tmp_path / "run.csv"
    path.write_bytes(
        b'\xef\xbb\xbf\r\n"query_id", step,doc_id,rank,note\r\nq,1,"a,1", 1 ,"two\nlines"\r\n\r\nq,1,7,2,\r\nq, 2,,,\r\n'
    )
    run = gg.read_run(path, columns={"step": "iteration"}).frame.select("query_id", "iteration", "doc_id", "rank")
    assert run.rows() == [("q", 1, "a,1", 1), ("q", 1, "7", 2), ("q", 2, "-", 0)]


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


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("query_id,doc_id,rank\nq,a,first\n", "row 2 has the rank 'first', which is not a number"),
        ("query_id,doc_id,score\nq,a,1\nq,b,nan\n", "row 3 .*has a score that is not a finite number"),
        ("query_id,doc_id,score\nq,a,1,2\n", "line 2: 'q,a,1,2' has 4 values, the header has 3 names"),
        ("query_id,doc_id,doc_id\nq,a,1\n", "has two columns 'doc_id'"),
        ("topic,doc_id\nq,a\n", "no column 'query_id'.*columns="),
        ("q,1,a,1,2.0,t\n", "the column '1' has a number as its name"),
        ("query_id,doc_id,score\n,a,1\n", "has no query_id"),
        ("query_id,doc_id,score\nq,\xff,1\n", "UTF-8"),
    ],
)
def test_a_bad_file_with_a_header_is_an_error_that_names_it(tmp_path: Path, text: str, match: str) -> None:
    path = tmp_path / "run.csv"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(gg.InputError, match=match) as error:
        gg.read_run(path)
    assert str(path) in str(error.value)


def test_bad_rows_below_a_header_can_be_left_out(tmp_path: Path) -> None:
    path = tmp_path / "run.csv"
    path.write_text("query_id,doc_id,rank\nq,a,1\nq,b,second\nq,c,3\n")
    with pytest.warns(gg.GoodgainNotice, match="left out 1 bad row; .*, row 3 "):
        assert gg.read_run(path, errors="skip").frame["doc_id"].to_list() == ["a", "c"]


SYNONYMS = ["qid", "docno", "docid", "did", "pid", "label", "gain", "grade", "rel", "Label"]


@pytest.mark.slow
@pytest.mark.parametrize("name", some_of(SYNONYMS, every=6))
def test_usual_names_are_understood_and_said_once_in_every_source(name: str, tmp_path: Path) -> None:
    ours = {"qid": "query_id"} | dict.fromkeys(("docno", "docid", "did", "pid"), "doc_id")
    column = ours.get(name, "relevance")
    run = RUN.rename({column: name}, strict=False)
    qrels = LABELS.rename({column: name}, strict=False)
    for k, source in enumerate([
        lambda frame, _: frame, lambda frame, _: frame.lazy(), lambda frame, _: frame.to_pandas(),
        lambda frame, _: list(frame.to_pandas().itertuples(index=False)), *map(_write, ("parquet", "arrow", "jsonl", "csv", "tsv")),
    ]):  # fmt: skip
        sources = [source(frame, tmp_path / f"{kind}{k}") for kind, frame in (("qrels", qrels), ("run", run))]
        scores, told = notices_of(partial(gg.evaluate, *sources, MEASURES))
        assert scores.mean() == WANTED
        assert len(told) == (1 if column == "relevance" else 2), told  # one for the qrels, one for the run
        assert all(f"{name!r} was read as {column}. If that is wrong, set columns=" in text for text in told)
        scores, told = notices_of(partial(gg.evaluate, *sources, MEASURES, columns={name: column}))
        assert scores.mean() == WANTED and not told


def _write(ending: str) -> Callable[[pl.DataFrame, Path], Path]:
    def write(frame: pl.DataFrame, path: Path) -> Path:
        path = path.with_suffix(f".{ending}")
        {
            "parquet": frame.write_parquet,
            "arrow": frame.write_ipc,
            "jsonl": frame.write_ndjson,
            "csv": frame.write_csv,
            "tsv": lambda path: frame.write_csv(path, separator="\t"),
        }[ending](path)
        return path

    return write


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


def test_large_parquet_files_say_what_was_understood(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    RUN.rename({"query_id": "qid"}).write_parquet(tmp_path / "run.parquet")
    monkeypatch.setattr(run_opening, "LARGE_COMPRESSED", 0)
    scores, told = notices_of(lambda: gg.evaluate(QRELS, tmp_path / "run.parquet", MEASURES))
    assert scores.mean() == WANTED
    assert len(told) == 1 and "'qid' was read as query_id" in told[0]


def test_a_run_with_a_label_is_not_taken_for_qrels(tmp_path: Path) -> None:
    RUN.with_columns(label=pl.lit(1)).write_csv(tmp_path / "run.csv")
    assert not looks_like_qrels(tmp_path / "run.csv")


def _made(folder: Path, name: str, frame: pl.DataFrame, separator: str = ",") -> Path:
    frame.write_csv(folder / name, separator=separator)
    return folder / name


#: What people have -> the call that scores it, and the end: our numbers, or the sentence that says what to do.
CASES: dict[str, tuple[Callable[[Path], Any], str | None]] = {
    "a frame with step": (
        lambda _: gg.evaluate(QRELS, RUN.rename({"iteration": "step"}), MEASURES).mean(),
        r"found the column 'step', which looks like the iteration: pass columns={'step': 'iteration'}",
    ),
    "a frame with step, named": (
        lambda _: gg.evaluate(QRELS, RUN.rename({"iteration": "step"}), MEASURES, columns={"step": "iteration"}).mean(),
        None,
    ),
    "a frame with turn": (
        lambda _: gg.evaluate(QRELS, RUN.rename({"iteration": "turn"}).to_pandas(), MEASURES).mean(),
        r"pass columns={'turn': 'iteration'}",
    ),
    "a frame with turn_id": (
        lambda _: gg.evaluate(QRELS, RUN.rename({"iteration": "turn_id"}), MEASURES).mean(),
        r"pass columns={'turn_id': 'iteration'}",
    ),
    "a CSV with ITER": (
        lambda folder: gg.evaluate(QRELS, _made(folder, "r.csv", RUN.rename({"iteration": "ITER"})), MEASURES).mean(),
        r"pass columns={'ITER': 'iteration'}",
    ),
    "a frame with Iteration and Doc_ID": (
        lambda _: gg.evaluate(QRELS, RUN.rename({"iteration": "Iteration", "doc_id": "Doc_ID"}), MEASURES).mean(),
        None,
    ),
    "a frame with qid and docno": (
        lambda _: gg.evaluate(QRELS, RUN.rename({"query_id": "qid", "doc_id": "docno"}), MEASURES).mean(),
        None,
    ),
    "a CSV with a header": (lambda folder: gg.evaluate(QRELS, _made(folder, "r.csv", RUN), MEASURES).mean(), None),
    "a CSV with step": (
        lambda folder: gg.evaluate(QRELS, _made(folder, "r.csv", RUN.rename({"iteration": "step"})), MEASURES).mean(),
        r"pass columns={'step': 'iteration'}",
    ),
    "a TSV with a header": (
        lambda folder: gg.evaluate(QRELS, _made(folder, "r.tsv", RUN, "\t"), MEASURES).mean(),
        None,
    ),
    "a PyTerrier result with iterations": (
        lambda _: gg.evaluate(
            pd.DataFrame({"qid": "q", "docno": ["a", "b", "c"], "label": [3, 2, 0]}),
            RUN.rename({"query_id": "qid", "doc_id": "docno"}).to_pandas().assign(docid=range(4), query="words"),
            MEASURES,
        ).mean(),
        None,
    ),
    "qrels with label": (lambda _: gg.evaluate(LABELS.rename({"relevance": "label"}), RUN, MEASURES).mean(), None),
    "qrels with grade": (
        lambda folder: gg.evaluate(_made(folder, "q.csv", LABELS.rename({"relevance": "grade"})), RUN, MEASURES).mean(),
        None,
    ),
    "a pandas frame for ir_measures": (
        lambda _: gg_in_ir_measures(RUN.to_pandas()),
        r"Give ir_measures goodgain.read_run\(run\)",
    ),
    "a run read for ir_measures": (lambda _: gg_in_ir_measures(gg.read_run(RUN.to_pandas())), None),
}


def gg_in_ir_measures(run: Any) -> dict[str, float]:
    import ir_measures

    measures = parse_measures(MEASURES)
    return {str(measure): value for measure, value in ir_measures.calc_aggregate(measures, QRELS, run).items()}


@pytest.mark.parametrize("case", CASES)
def test_what_people_have_ends_in_the_right_numbers_or_in_the_remedy(case: str, tmp_path: Path) -> None:
    call, remedy = CASES[case]
    if remedy is None:
        assert notices_of(lambda: call(tmp_path))[0] == pytest.approx(WANTED, abs=1e-12)
    else:
        with pytest.raises((gg.InputError, gg.GoodgainNotice), match=remedy):  # a notice is an error in these tests
            call(tmp_path)


NO_HEADER = "has a number as its name, so the first row may be data"


def test_a_row_read_as_the_header_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "qrels.csv"
    path.write_text("q1,0,a,1\nq2,0,x,1\n")
    for columns in (None, {"q1": "query_id", "a": "doc_id", "1": "relevance"}):
        with pytest.raises(gg.InputError, match=NO_HEADER):
            gg.read_qrels(path, columns=columns)
    with pytest.raises(gg.InputError, match=NO_HEADER):
        gg.read_qrels(pd.read_csv(path))


@pytest.mark.parametrize("form", ["csv", "json", "jsonl", "parquet", "frame"])
def test_a_number_as_the_name_of_one_column_can_be_renamed(form: str, tmp_path: Path) -> None:
    frame = pl.DataFrame({"query_id": ["q"], "doc_id": ["d"], "2023": [2]})
    path = tmp_path / f"qrels.{form}"
    if form == "json":
        path.write_text(frame.write_json())
    elif form != "frame":
        {"csv": frame.write_csv, "jsonl": frame.write_ndjson, "parquet": frame.write_parquet}[form](path)
    source = frame if form == "frame" else path
    with no_notices():
        judged = gg.read_qrels(source, columns={"2023": "relevance"})
    assert judged.frame.rows() == [("q", "0", "d", 2)]
    with pytest.raises(gg.InputError) as raised:
        gg.read_qrels(source)
    assert "relevance" in str(raised.value)
    assert "first row" not in str(raised.value)


def test_a_list_of_objects_has_no_row_of_names(tmp_path: Path) -> None:
    path = tmp_path / "qrels.json"
    path.write_text('[{"1": "q", "2": "d", "3": 2}]')
    assert gg.read_qrels(path, columns={"1": "query_id", "2": "doc_id", "3": "relevance"}).frame.rows() == [
        ("q", "0", "d", 2)
    ]


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
