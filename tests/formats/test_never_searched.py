"""A query that never searched is a row with `-` as its iteration and its doc_id; a query without any row is absent."""

from __future__ import annotations

import gzip
import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ir_measures
import polars as pl
import pytest
import pytrec_eval
import ranx
from polars.testing import assert_frame_equal

import goodgain as gg
from tests.support.command import run_command
from tests.support.forms import FRAMES, in_blocks

#: q begins at 3 and has a gap; e has one empty search; idle and still never searched; gone is absent.
ROWS = pl.DataFrame(
    {
        "query_id": ["q", "q", "q", "idle", "e", "still"],
        "iteration": [3, 3, 5, None, 3, None],
        "doc_id": ["a", "b", "a", "-", "-", "-"],
        "rank": [1, 2, 1, 0, 0, 0],
        "score": [2.0, 1.0, 1.0, 0.0, 0.0, 0.0],
        "tag": "t",
    }
)
QRELS = {name: {"a": 3, "b": 2} for name in ("q", "e", "idle", "still", "gone")}
OURS = "CG RG SRE NumIter IterationsForAllGoodResults nDCG@10"


def text(rows: pl.DataFrame = ROWS, separator: str = " ") -> bytes:
    lines = rows.with_columns(pl.col("iteration").cast(pl.String).fill_null("-")).iter_rows()
    return "".join(separator.join(map(str, line)) + "\n" for line in lines).encode()


def with_header(separator: str) -> bytes:
    return separator.join(ROWS.columns).encode() + b"\n" + text(separator=separator)


def as_json(doc_id: str | None) -> bytes:
    rows = [row | ({} if row["iteration"] else {"doc_id": doc_id}) for row in ROWS.iter_rows(named=True)]
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


FILES: dict[str, tuple[str, bytes]] = {
    "text": (".run", text()),
    "tabs": (".run", text(separator="\t")),
    "blanks": (".run", text(separator="  ")),
    "a line with more after the tag": (".run", text() + b"r 3 a 1 1.0 t more\n"),
    "gzip": (".run.gz", gzip.compress(text())),
    "csv": (".csv", with_header(",")),
    "tsv": (".tsv", with_header("\t")),
    "JSON Lines": (".jsonl", as_json("-")),
    "JSON Lines, null": (".jsonl", as_json(None)),
}
ROWS_AS: dict[str, Callable[[pl.DataFrame], Any]] = FRAMES | {
    "null doc_id": lambda frame: frame.with_columns(pl.col("doc_id").replace("-", None)),
    "text": lambda frame: frame.with_columns(pl.col("iteration").cast(pl.String)),
    "dashes": lambda frame: frame.with_columns(pl.col("iteration").cast(pl.String).fill_null("-")),
}


def says_what_the_rows_say(source: Any, queries: int = 2) -> None:
    run = gg.read_run(source)
    assert run.never_searched.to_list() == ["idle", "still"]
    assert run.rows.get_column("query_id").unique().len() == queries
    assert run.rows.filter(query_id="q").get_column("iteration").to_list() == [3, 3, 5]

    scores = gg.evaluate(QRELS, source, OURS)
    values = dict(scores.per_query.filter(measure="NumIter").select("query_id", "value").iter_rows())
    assert values == {"q": 2, "e": 1, "idle": 0, "still": 0, "gone": 0}
    assert scores.signature["absent_from_run"] == 1
    assert scores.queries.only_judged.to_list() == ["gone"]
    assert scores.queries.never_searched.sort().to_list() == ["idle", "still"]

    rows = ROWS.filter(pl.col("iteration").is_not_null())
    # the numbers of a run without the rows
    assert scores.mean() == pytest.approx(gg.evaluate(QRELS, rows, OURS).mean())


@pytest.mark.filterwarnings("ignore::goodgain.GoodgainNotice")
@pytest.mark.parametrize("form", FILES)
def test_files_of_text_have_the_row(form: str, tmp_path: Path) -> None:
    ending, content = FILES[form]
    path = tmp_path / f"agent{ending}"
    path.write_bytes(content)
    says_what_the_rows_say(path, 3 if "more" in form else 2)


@pytest.mark.filterwarnings("ignore::goodgain.GoodgainNotice")
@pytest.mark.parametrize("form", ROWS_AS)
def test_frames_have_the_row(form: str) -> None:
    says_what_the_rows_say(ROWS_AS[form](ROWS))


@pytest.mark.filterwarnings("ignore::goodgain.GoodgainNotice")
@pytest.mark.parametrize("ending", [".run", ".run.zst", ".jsonl", ".parquet", ".arrow"])
def test_written_runs_keep_the_row(ending: str, tmp_path: Path) -> None:
    run, path = gg.read_run(ROWS), tmp_path / f"agent{ending}"
    gg.write_run(run, path)
    says_what_the_rows_say(path)
    assert_frame_equal(gg.read_run(path).rows, run.rows)
    if ending == ".run":
        assert path.read_text().splitlines()[-2:] == ["idle - - 0 0.0 t", "still - - 0 0.0 t"]


@pytest.mark.filterwarnings("ignore::goodgain.GoodgainNotice")
@pytest.mark.parametrize("is_text", [True, False])
@pytest.mark.parametrize("block", [20, 60, 10**6])
def test_large_files_have_the_row(is_text: bool, block: int, tmp_path: Path) -> None:
    path = tmp_path / ("agent.run" if is_text else "agent.parquet")
    scattered = pl.concat([ROWS[3:], ROWS[:3]]) if block == 60 else ROWS
    path.write_bytes(text(scattered)) if is_text else scattered.write_parquet(path)
    file = in_blocks(path, block=block if is_text else block * 2, is_text=is_text)
    found, wanted = gg.evaluate(QRELS, file, OURS), gg.evaluate(QRELS, ROWS, OURS)
    assert found.mean() == wanted.mean()
    assert found.signature == wanted.signature
    assert found.queries.never_searched.sort().to_list() == ["idle", "still"]


@pytest.mark.parametrize("block", [None, 12])
@pytest.mark.parametrize("more", [b"q 1 a 1 1.0 t\n", b"q - - 0 0.0 t\n", b"q 1 - 0 0.0 t\n", b"q - a 1 1.0 t\n"])
def test_the_row_is_the_only_one_of_its_query(more: bytes, block: int | None, tmp_path: Path) -> None:
    path = tmp_path / "agent.run"
    path.write_bytes(b"p 1 a 1 1.0 t\nq - - 0 0.0 t\nr 1 a 1 1.0 t\n" + more)
    source = path if block is None else in_blocks(path, block=block)
    with pytest.raises(
        gg.InputError, match=r"line 2: 'q - - 0 0.0 t' says that query 'q' never searched, but the query has"
    ):
        gg.evaluate({"q": {"a": 3}}, source, "CG")


def test_the_row_fills_no_gap_and_makes_no_iteration() -> None:
    run = gg.read_run(ROWS, gaps="empty")
    counts = dict(run.rows.group_by("query_id").agg(pl.col("iteration").n_unique()).iter_rows())
    assert counts == {"q": 5, "e": 3}
    dense = ROWS.with_columns(pl.col("iteration").replace({3: 1, 5: 2}))
    assert gg.read_run(dense, gaps="empty").rows.height == 4


def test_a_result_without_an_iteration_is_still_an_error() -> None:
    with pytest.raises(gg.InputError, match="has no iteration"):
        gg.read_run(ROWS.with_columns(doc_id=pl.lit("a")))


@pytest.mark.filterwarnings("ignore::goodgain.GoodgainNotice")
def test_options_that_map_documents_keep_the_row() -> None:
    for options in ({"documents": {"a": "c"}}, {"documents": r"^(.)(?:#.*)?$"}):
        scores = gg.evaluate({**QRELS, "q": {"c": 3}}, ROWS, "CG", **options)
        assert scores.queries.never_searched.sort().to_list() == ["idle", "still"]


def test_commands_tell_of_the_row_and_keep_it(tmp_path: Path) -> None:
    path, flat, qrels = tmp_path / "agent.run", tmp_path / "flat.run", tmp_path / "qrels.txt"
    path.write_bytes(text())
    gg.write_qrels(QRELS, qrels)
    told = run_command("validate", path).stdout
    assert "run, 2 queries, 3 iterations (1 of them without results)" in told
    assert "and 2 queries that never searched" in told
    told = run_command("evaluate", qrels, path, "CG").stderr
    assert "1 of them absent from the run (gone), 2 of them never searched (idle, still)" in told
    run_command("flatten", path, "-o", flat)
    assert gg.read_run(flat).never_searched.to_list() == ["idle", "still"]


def test_to_run_writes_the_row_for_queries_without_a_search() -> None:
    results = pl.DataFrame(
        {"query_id": ["a", "b", "c", "c"], "iteration": [0, 1, 1, 2], "search": 1, "rank": [0, 0, 1, 0], "doc_id": "d"}
    )
    run = gg.to_run(results)
    assert run.filter(doc_id="-").select("query_id", "iteration", "rank").rows() == [
        ("a", None, 0),
        ("b", 1, 0),
        ("c", 2, 0),
    ]
    assert gg.read_run(run).never_searched.to_list() == ["a"]


@pytest.mark.parametrize("ending", [".run", ".jsonl", ".parquet"])
def test_convert_writes_the_row_for_queries_without_a_search(ending: str, tmp_path: Path) -> None:
    search = {"searches": [{"query": "x", "results": [{"doc_id": "d1"}]}]}
    traces = [{"goodgain_trace": 1, "query_id": f"q{k}", "steps": [search] * k} for k in range(3)]
    (tmp_path / "log.jsonl").write_text("".join(json.dumps(trace) + "\n" for trace in traces))
    path = tmp_path / f"agent{ending}"
    conversion = gg.convert_traces(tmp_path / "log.jsonl", path)
    assert gg.read_run(path).never_searched.to_list() == ["q0"]
    assert "queries that never searched: 1" in str(conversion.summary)


@pytest.mark.slow
def test_other_tools_read_the_row_as_one_document_without_a_label(tmp_path: Path) -> None:
    """As docs/format.md says."""
    run, qrels = tmp_path / "agent.run", tmp_path / "qrels.txt"
    run.write_text("q1 1 a 1 1.0 t\nq2 - - 0 0.0 t\n")
    qrels.write_text("q1 0 a 1\nq2 0 b 1\n")
    rows = [*ir_measures.read_trec_run(str(run))]
    assert [(row.query_id, row.doc_id) for row in rows] == [("q1", "a"), ("q2", "-")]

    measures = [ir_measures.nDCG @ 10, ir_measures.RR, ir_measures.NumRet]
    found = ir_measures.calc_aggregate(measures, [*ir_measures.read_trec_qrels(str(qrels))], rows)
    assert [found[measure] for measure in measures] == [0.5, 0.5, 2]

    with run.open() as file, qrels.open() as labels:
        given = pytrec_eval.parse_run(file)
        evaluator = pytrec_eval.RelevanceEvaluator(
            pytrec_eval.parse_qrel(labels), {"num_ret", "recip_rank", "recall_5"}
        )

    assert given["q2"] == {"-": 0.0}
    assert evaluator.evaluate(given)["q2"] == {"num_ret": 1, "recip_rank": 0, "recall_5": 0}
    of_ranx = ranx.Run.from_file(str(run), kind="trec"), ranx.Qrels.from_file(str(qrels), kind="trec")
    assert dict(of_ranx[0].run["q2"]) == {"-": 0.0}

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Numba's, of types
        values = ranx.evaluate(of_ranx[1], of_ranx[0], ["mrr", "recall"], return_mean=False)
    assert {name: [*value] for name, value in values.items()} == {"mrr": [1, 0], "recall": [1, 0]}
