"""ASCII blanks around a value of text belong to no id; all other white space of Unicode does, in every container."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import goodgain as gg
from goodgain.judgments.judging.documents_to_judge import read_texts, write_sheet
from tests.support.counts import how_many
from tests.support.forms import write_table

#: White space and signs without width, of which Python, Polars or a regular expression strip some.
BLANKS = "\x1c\x1d\x1e\x1f\x85\u00a0\u1680\u2000\u2003\u2009\u200b\u2028\u2029\u202f\u205f\u3000\ufeff"
ASCII = " \t\r\v\f"
ids = st.text(alphabet="x" + BLANKS, min_size=1, max_size=3)
few = settings(deadline=None, max_examples=how_many(6, full=24))


@st.composite
def drawn(draw: st.DrawFn) -> dict[str, pl.DataFrame]:
    """A run and qrels, whose first query is an ordinary one: a text may begin with a byte order mark."""
    docs = draw(st.lists(ids, min_size=2, max_size=6, unique=True))
    queries = ["1", *draw(st.lists(ids, min_size=1, max_size=2, unique=True))]
    run = [
        (query, iteration, doc, place + 1, 9.0 - place)
        for query in queries
        for iteration in (1, 2)
        for place, doc in enumerate(docs[iteration - 1 :])
    ]
    qrels = [(query, 0, doc, draw(st.integers(0, 3))) for query in queries for doc in docs]
    return {
        "run": pl.DataFrame(run, schema=["query_id", "iteration", "doc_id", "rank", "score"], orient="row"),
        "qrels": pl.DataFrame(qrels, schema=["query_id", "iteration", "doc_id", "relevance"], orient="row"),
    }


def _text(frame: pl.DataFrame, path: Path) -> Path:
    tag = [] if "relevance" in frame.columns else ["t"]
    path.write_text("".join(" ".join(map(str, [*row, *tag])) + "\n" for row in frame.rows()), "utf-8", newline="")
    return path


def _delimited(separator: str) -> Callable[[pl.DataFrame, Path], Path]:
    def write(frame: pl.DataFrame, path: Path) -> Path:
        path = path.with_suffix({",": ".csv", "\t": ".tsv"}[separator])
        lines = [frame.columns, *(map(str, row) for row in frame.rows())]
        path.write_text("".join(f" {separator}".join(line) + "\r\n" for line in lines), "utf-8", newline="")
        return path

    return write


WRITERS: dict[str, Callable[[pl.DataFrame, Path], Any]] = {
    "text": _text,
    "csv": _delimited(","),
    "tsv": _delimited("\t"),
    "jsonl": lambda frame, path: write_table(frame, path.with_suffix(".jsonl")),
    "parquet": lambda frame, path: write_table(frame, path.with_suffix(".parquet")),
    "lazy": lambda frame, _path: frame.lazy(),
    "pandas": lambda frame, _path: frame.to_pandas(),
}


@pytest.mark.parametrize("container", WRITERS)
def test_ids_with_unicode_blanks_give_one_ledger_in_every_container(
    container: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("blanks")

    @few
    @given(drawn())
    def check(of: dict[str, pl.DataFrame]) -> None:
        written = {name: WRITERS[container](frame, folder / name) for name, frame in of.items()}
        with warnings.catch_warnings(action="ignore", category=gg.GoodgainNotice):
            wanted = gg.ledger(**of, rel=1)
            assert gg.ledger(**written, rel=1).rows() == wanted.rows()
        assert wanted.height == 2 * of["run"]["query_id"].n_unique()

    check()


def test_an_id_with_a_no_break_space_before_it_is_another_one_in_csv(tmp_path: Path) -> None:
    run, qrels = tmp_path / "run.csv", tmp_path / "qrels.csv"
    run.write_text("query_id,iteration,doc_id,score\nq,1,x,2\nq,1,\u00a0x,1\n", "utf-8")
    qrels.write_text("query_id,doc_id,relevance\nq,x,3\nq,\u00a0x,3\n", "utf-8")
    assert gg.evaluate(qrels, run, "CG@1").mean() == {"CG@1": 6}


@pytest.mark.parametrize("ending", ["csv", "tsv", "jsonl", "parquet"])
def test_grades_and_texts_keep_unicode_blanks(ending: str, tmp_path: Path) -> None:
    docs = [blank + "x" for blank in ("", *BLANKS)]
    for read, columns, more in (
        (gg.aggregate, {"query_id": "q", "doc_id": docs, "grade": 1}, []),
        (read_texts, {"doc_id": [*docs, "\u3000"], "text": "t"}, ["\u3000"]),
    ):
        path = WRITERS[ending](pl.DataFrame(columns), tmp_path / "table")
        assert read(path)["doc_id"].to_list() == docs + more


def test_a_quepid_book_keeps_unicode_blanks_before_signs(tmp_path: Path) -> None:
    path = tmp_path / "book.csv"
    path.write_text("query,docid,anna,ben\nq, =x,1,1\nq,\u00a0=x,0,0\n", "utf-8")
    assert gg.aggregate(path, scale="binary").select("doc_id", "relevance").rows() == [("=x", 1), ("\u00a0=x", 0)]


def test_documents_whose_ids_differ_by_a_unicode_blank_are_not_one_document() -> None:
    docs = {"doc_id": ["x", "\u00a0x", "\u3000"], "rank": [1, 2, 3]}
    results = pl.DataFrame({"query_id": "q", "search": 1, "iteration": 1} | docs)
    assert gg.to_run(gg.deduplicate(results))["doc_id"].n_unique() == 3


@pytest.mark.parametrize("spreadsheet", [False, True])
@pytest.mark.parametrize("name", ["sheet.csv", "sheet.jsonl"])
def test_judge_reads_the_ids_that_pool_wrote(
    name: str, spreadsheet: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("sheets") / name

    @few
    @given(
        st.lists(st.text("x'=+-@\"," + ASCII + "\n" + BLANKS, min_size=1, max_size=4), min_size=1, unique=True).filter(
            lambda docs: "-" not in docs
        )
    )
    def check(docs: list[str]) -> None:
        with warnings.catch_warnings(action="ignore", category=gg.GoodgainNotice):
            pooled = gg.pool({"a": {"'=q": dict.fromkeys(docs, 1.0)}})
        try:
            write_sheet(pooled, path, spreadsheet=spreadsheet)
        except gg.InputError as error:
            assert name == "sheet.csv" and "CSV cannot hold the doc_id" in str(error)
            return
        with warnings.catch_warnings(action="ignore", category=gg.GoodgainNotice):
            judged = gg.aggregate(path)
        assert judged.select("query_id", "doc_id").rows() == pooled.select("query_id", "doc_id").rows()

    check()
