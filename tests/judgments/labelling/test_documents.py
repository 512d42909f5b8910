"""What is to be labelled: unjudged documents, each once, with the text that is shown."""

from __future__ import annotations

import json
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pytest

import goodgain as gg
from goodgain.judgments.labelling.documents_to_label import collect_documents, read_queries, read_texts
from tests.formats.test_damaged_files import encode
from tests.support.tables import ROOT

CASES = json.loads(Path(__file__).with_name("cases.json").read_text(encoding="utf-8"))

RUN = {"q": {"a": 3.0, "b": 2.0}, "p": {"a": 1.0}}
OTHER = {"q": {"b": 3.0, "c": 2.0}}
QUERIES = {"q": "who", "p": "what"}
TEXTS = {"a": "text a", "b": "text b", "c": "text c"}


def ids(found: tuple[pl.DataFrame, list[str]]) -> list[tuple[str, str]]:
    return found[0].select("query_id", "doc_id").rows()


def test_ids_of_queries_in_a_file_without_a_header_are_texts(tmp_path: Path) -> None:
    (tmp_path / "queries.tsv").write_text("007\t1969\n7\twhat\n1.50\twho\n")
    assert read_queries(tmp_path / "queries.tsv").select("query_id", "text").rows() == [
        ("007", "1969"),
        ("7", "what"),
        ("1.50", "who"),
    ]


def test_documents_of_several_runs_come_once() -> None:
    documents = collect_documents({"one": RUN, "other": OTHER}, QUERIES, texts=TEXTS)
    assert ids(documents) == [("p", "a"), ("q", "a"), ("q", "b"), ("q", "c")]
    assert documents[1] == ["one", "other"]
    assert documents[0].select("query", "text").row(0) == ("what", "text a")


def test_judged_documents_are_left_out_and_null_labels_are_not_judged() -> None:
    qrels = pl.DataFrame({"query_id": ["q", "q"], "doc_id": ["a", "b"], "relevance": [0, None]})
    with pytest.warns(gg.GoodgainNotice, match="null"):
        assert ids(collect_documents(RUN, QUERIES, texts=TEXTS, qrels=qrels)) == [("p", "a"), ("q", "b")]


def test_texts_of_documents_come_before_what_a_search_showed() -> None:
    results = pl.DataFrame(
        {"query_id": "q", "iteration": 1, "search": 1, "rank": [1, 2], "doc_id": ["a", "z"], "title": ["A", "Z"]}
    )
    found, _ = collect_documents({"q": {"a": 2.0, "z": 1.0}}, QUERIES, results=results, texts=TEXTS)
    assert found.select("doc_id", "text").rows() == [("a", "text a"), ("z", "Title: Z")]


def test_a_sheet_gives_the_documents_without_a_grade(tmp_path: Path) -> None:
    path = tmp_path / "sheet.csv"
    path.write_text('query_id,doc_id,runs,first_iteration,title,url,snippet,grade\nq,a,1,1,T,U,"S, s",\nq,b,1,1,,,,3\n')
    found, _ = collect_documents(path, QUERIES)
    assert found.select("doc_id", "text").rows() == [("a", "Title: T\nUrl: U\nSnippet: S, s")]


def test_results_give_their_documents_after_deduplication() -> None:
    results = gg.deduplicate(gg.read_results(ROOT / "docs" / "web_search.jsonl")).frame
    queries = dict.fromkeys(results["query_id"].unique(), "what")
    found, _ = collect_documents(results, queries)
    assert found.height == results["document"].drop_nulls().n_unique()
    assert found["text"].null_count() == 0


def test_a_depth_counts_results_of_every_iteration() -> None:
    run = pl.DataFrame(
        {"query_id": "q", "iteration": [1, 1, 2, 2], "doc_id": ["a", "b", "c", "a"], "rank": [1, 2, 1, 2], "score": 1.0}
    )
    assert ids(collect_documents(run, QUERIES, texts=TEXTS, k=1)) == [("q", "a"), ("q", "c")]


def test_texts_are_cut_at_the_stated_number_of_characters() -> None:
    found, _ = collect_documents(RUN, QUERIES, texts={"a": "äöü€", "b": "abc"}, max_characters=3)
    assert found.sort("query_id", "doc_id").select("text", "cut").rows() == [
        ("äöü", True),
        ("äöü", True),
        ("abc", False),
    ]


def test_documents_without_a_text_are_counted_and_kept() -> None:
    with pytest.warns(gg.GoodgainNotice, match="no text to show, so no grade, for 1 of 3 documents"):
        found, _ = collect_documents(RUN, QUERIES, texts={"a": "text a"})
    assert found["text"].null_count() == 1


def test_a_query_without_a_text_is_named() -> None:
    with pytest.raises(gg.InputError, match="query 'p' has no text among the queries"):
        collect_documents(RUN, {"q": "who"}, texts=TEXTS)


@pytest.mark.parametrize(("name", "content"), CASES["test_queries_are_read_from_tables"])
def test_queries_are_read_from_tables(tmp_path: Path, name: str, content: str) -> None:
    path = tmp_path / name
    path.write_text(content)
    queries = read_queries(path)
    assert queries.rows() == [("q", "who", None), ("p", "what", "the thing")]


@pytest.mark.parametrize(("name", "content", "said"), CASES["tables of queries that cannot be read"])
def test_tables_of_queries_that_cannot_be_read_are_one_sentence(
    tmp_path: Path, name: str, content: str, said: str
) -> None:
    path = tmp_path / name
    path.write_bytes(content.encode("latin-1"))
    with pytest.raises(gg.InputError, match=said):
        read_queries(path)


def test_texts_are_read_from_a_file_and_a_frame(tmp_path: Path) -> None:
    path = tmp_path / "texts.jsonl"
    path.write_text("".join(json.dumps({"doc_id": doc, "text": text}) + "\n" for doc, text in TEXTS.items()))
    assert read_texts(path).rows() == list(TEXTS.items())
    assert read_texts(pl.DataFrame({"doc_id": list(TEXTS), "text": list(TEXTS.values())})).rows() == list(TEXTS.items())


@pytest.mark.parametrize(
    ("queries", "said"),
    [
        ({"q": ["who"], "p": "what"}, "query_id 'q' has a list where a text is needed"),
        ({"q": "who \ud800", "p": "what"}, "query_id 'q' has half a character"),
        ({"q\udfff": "who", "p": "what"}, "has half a character"),
        (pl.DataFrame({"query_id": ["q"], "text": [["who"]]}), "has List.* in text"),
        (pd.DataFrame({"query_id": ["q", "p"], "text": ["who", [1]]}), "mix types in a column"),
        (pd.DataFrame([["q", "who", 1]], columns=["query_id", "text", "text"]), "a name of its own"),
        (5, "the queries: found a int"),
    ],
)
def test_queries_that_are_no_texts_are_one_sentence(queries: Any, said: str) -> None:
    with pytest.raises(gg.InputError, match=said):
        collect_documents(RUN, queries, texts=TEXTS)


def test_a_length_of_time_is_no_text() -> None:
    frame = pl.DataFrame({"doc_id": ["a"], "text": [timedelta(1)]})
    with pytest.raises(gg.InputError, match=r"has Duration.* in text, but each row needs a text or a whole number"):
        read_texts(frame)


def test_queries_named_by_a_long_text_are_no_file() -> None:
    with pytest.raises(gg.InputError, match="file name too long"):
        read_queries("x" * 5_000)


def test_numbers_among_texts_are_read_as_text() -> None:
    assert read_queries({1: 2013, "p": "what"}).rows() == [("1", "2013", None), ("p", "what", None)]
    assert read_texts({"a": 1.5, "b": "text"}).rows() == [("a", "1.5"), ("b", "text")]


@pytest.mark.parametrize("ending", [".csv", ".tsv", ".jsonl", ".parquet"])
def test_a_sheet_is_read_in_each_form(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"sheet{ending}"
    rows = {"query_id": ["q", "q"], "doc_id": ["a", "b"], "title": ["T", None], "grade": [None, None]}
    path.write_bytes(encode(pl.DataFrame(rows, schema_overrides={"grade": pl.Int64}), ending))
    with pytest.warns(gg.GoodgainNotice, match="no text to show, so no grade, for 1 of 2 documents"):
        found, _ = collect_documents(path, QUERIES)
    assert found.select("doc_id", "text").rows() == [("a", "Title: T"), ("b", None)]


def test_a_row_of_a_sheet_without_an_id_is_refused() -> None:
    sheet = pl.DataFrame({"query_id": ["q", None], "doc_id": ["a", "b"], "grade": [None, None]})
    with pytest.raises(gg.InputError, match=r"row 1 .*'b'.* has no query_id"):
        collect_documents(sheet, QUERIES)


def test_keys_of_json_lines_that_nobody_asks_for_take_no_time(tmp_path: Path) -> None:
    """A key of its own in each line made a table that grew with the square of the lines."""
    path = tmp_path / "texts.jsonl"
    path.write_text("".join(f'{{"doc_id": "{k}", "text": "t", "key{k}": 1}}\n' for k in range(20_000)))
    begin = time.process_time()
    assert read_texts(path).columns == ["doc_id", "text"]
    assert time.process_time() - begin < 5
