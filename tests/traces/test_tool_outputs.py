"""Tool outputs of every known shape: to results, to nothing found, to an error, or to unparsed; never to a guess."""

# ruff: noqa: E501  # outputs are easier to read an item a line

from __future__ import annotations

import json
from typing import Any

import pytest

from goodgain.errors import InputError
from goodgain.traces.model import Result
from goodgain.traces.tool_outputs.readers import read_output
from goodgain.traces.tools import extract_queries, is_search_tool

_ONE = {"docid": "d1", "url": "https://a.example/1", "title": "T", "snippet": "Text."}
_WANTED = [("d1", "https://a.example/1", "T", "Text.")]

SHAPES: dict[str, Any] = {
    "list of objects": [_ONE],
    "JSON text": json.dumps([_ONE]),
    "JSON text in JSON text": json.dumps(json.dumps([_ONE])),
    "one object": _ONE,
    "objects in a row": json.dumps(_ONE) + json.dumps({**_ONE, "docid": "d2"}),
    "results": {"query": "q", "answer": "no result", "images": [], "results": [_ONE]},
    "documents": {"documents": [_ONE]},
    "data around results": {"data": {"results": [_ONE]}, "status": "ok"},
    "a block a query": [{"query": "a", "results": []}, {"query": "b", "results": [_ONE]}],
    "MCP parts": {"content": [{"type": "text", "text": json.dumps(_ONE)}], "isError": False},
    "MCP structuredContent": {"content": [{"type": "text", "text": "see"}], "structuredContent": {"result": [_ONE]}},
    "text parts cut anywhere": [{"type": "text", "text": json.dumps([_ONE])[:20]}, {"type": "text", "text": json.dumps([_ONE])[20:]}],
    "LangChain documents": [
        {"id": "d1", "page_content": "Text.", "metadata": {"source": "https://a.example/1", "title": "T"}, "type": "Document"}
    ],
    "LangChain dumps": [
        {"lc": 1, "type": "constructor", "id": ["langchain", "Document"], "kwargs": {
            "id": "d1", "page_content": "Text.", "metadata": {"link": "https://a.example/1", "title": "T"}}}
    ],
    "documents with scores": [[{"id": "d1", "page_content": "Text.", "metadata": {"url": "https://a.example/1", "title": "T"}}, 0.5]],
    "LlamaIndex nodes": [{"node": {"id_": "d1", "text": "Text.", "metadata": {"url": "https://a.example/1", "title": "T"}}, "score": 1}],
    "Elasticsearch": {"hits": {"total": 1, "hits": [
        {"_id": "d1", "_score": 2.0, "_source": {"url": "https://a.example/1", "title": "T", "body": "Text."}}]}},
    "labelled blocks": "Title: T\nURL: https://a.example/1\nID: d1\nContent: Text.",
    "numbered with docid": '1. <docid: d1> [T](https://a.example/1)\n\nText.',
}  # fmt: skip


@pytest.mark.parametrize("name", SHAPES)
def test_a_shape_reads_to_its_result(name: str) -> None:
    outcome = read_output(SHAPES[name], "here")
    assert outcome.status == "ok"
    assert [(r.doc_id, r.url, r.title, r.snippet) for r in outcome.results][:1] == _WANTED
    assert [r.rank for r in outcome.results] == list(range(1, len(outcome.results) + 1))


def test_links_on_lines_of_their_own_are_results_and_links_in_prose_are_none() -> None:
    listed = "## Search Results\n\n[A](https://a.example/(x))\nText A\n\n|2| x\n[B [pdf]](https://b.example)\nText B"
    assert [(r.url, r.title) for r in read_output(listed, "here").results] == [
        ("https://a.example/(x)", "A"), ("https://b.example", "B [pdf]"),
    ]  # fmt: skip
    assert read_output("Paris [1](https://a.example) is the capital.", "here").status == "unparsed"


def test_search_r1_titles_keep_their_brackets_and_lose_one_pair_of_quotes() -> None:
    text = 'Doc 1(Title: "A (film)") ""Hm"" it said\nmore\nDoc 2(Title: Plain) Text'
    assert [(r.title, r.snippet) for r in read_output(text, "here").results] == [
        ("A (film)", '""Hm"" it said\nmore'), ("Plain", "Text"),
    ]  # fmt: skip


def test_a_bracket_text_that_the_snippet_begins_with_is_no_title() -> None:
    text = "A search for 'q' found 2 results:\n\n## Web Results\n1. [Paris is the]\nParis is the capital.\n2. [Rome]\nIt is old."
    assert [(r.title, r.snippet) for r in read_output(text, "here").results] == [
        (None, "Paris is the capital."), ("Rome", "It is old."),
    ]  # fmt: skip


def test_front_matter_is_a_title_and_a_date() -> None:
    (result,) = read_output([{"docid": 5, "snippet": "---\ntitle: T\ndate: 2020-01-01\n---\nText"}], "here").results
    assert (result.doc_id, result.title, result.fields) == ("5", "T", (("published", "2020-01-01"),))


def test_ids_and_fields_are_in_snake_case_and_containers_of_results_are_not_among_them() -> None:
    hit = {
        "id": "x",
        "FileId": "f1",
        "chunkId": 3,
        "modifiedTime": "now",
        "recipients": ["a", "b"],
        "embedding": [0.1],
        "text": "t",
    }
    (result,) = read_output([hit], "here").results
    assert result.ids == (("file_id", "f1"), ("chunk_id", "3"))
    assert result.fields == (("modified_time", "now"), ("recipients", "a; b"))


EMPTY = [
    [], "[]", {"results": []}, {"documents": [], "query": "q"}, '{"results": []}', "No results found for 'q'.", "No results found.",
    "A Google search for 'q' found 0 results", "No good DuckDuckGo Search Result was found", "0 documents",
    "There are no matching documents.", "Found 0 results.", [[], []], {"content": [{"type": "text", "text": "[]"}]},
]  # fmt: skip


@pytest.mark.parametrize("output", EMPTY, ids=str)
def test_what_says_that_nothing_was_found_is_empty(output: Any) -> None:
    assert read_output(output, "here").status == "empty"


FAILED = [
    "Error executing tool search: timeout", "[Search] Failed: no key", "Error: Tool 'search' not found", {"error": "quota"},
    {"isError": True, "content": [{"type": "text", "text": "[]"}]}, '{"error": {"code": 429}}', "Traceback (most recent call last)\n x",
    {"error": "quota", "results": []},
]  # fmt: skip


@pytest.mark.parametrize("output", FAILED, ids=str)
def test_what_begins_like_a_failure_or_says_that_it_is_one_is_an_error(output: Any) -> None:
    assert read_output(output, "here").status == "error"


def test_a_list_of_results_is_no_error_because_a_snippet_begins_like_one() -> None:
    assert read_output([{"docid": "d", "snippet": "Error executing"}], "here").status == "ok"
    assert read_output("Title: Error: Tool\nURL: https://a.example", "here").status == "ok"


UNPARSED = [
    "Paris is the capital of France.", "", " ", 5, True, [1, 2], ["a sentence", "another"], {"answer": "Paris"}, {"x": {"y": 1}},
    [{"docid": "d1"}, {}], [{"status": "ok"}], "[not json", '{"docid": "d1"', [{"type": "text", "text": "Prose."}], [{"text": "Prose."}],
    "No results are worth more than the ones that were seen in the session of May.", None,
    "1. [A](https://a.example)\n2. not a link\n" * 0 + "See: https://a.example", [None], [{"docid": "a", "text": "t"}, "x"],
]  # fmt: skip


@pytest.mark.parametrize("output", UNPARSED, ids=str)
def test_what_nobody_can_read_is_unparsed_and_never_a_result(output: Any) -> None:
    assert read_output(output, "here").status == "unparsed"


def test_lists_of_results_that_nest_deep_are_read() -> None:
    nested = '{"a": ' * 400 + "1" + "}" * 400
    one, two = (f'[{{"url": "https://a.example/{name}", "title": "T", "more": {nested}}}]' for name in "ab")
    found = read_output(f'{{"organic": {one}, "news": {two}}}', "here").results
    assert [result.url for result in found] == ["https://a.example/a", "https://a.example/b"]


def test_more_objects_in_a_row_than_a_tool_returns_are_not_read_in_part() -> None:
    assert len(read_output('{"id": 1}' * 100_000, "here").results) == 100_000
    assert read_output('{"id": 1}' * 100_002, "here").status == "unparsed"


@pytest.mark.parametrize("value", [["d1"], {"a": 1}, 1.5, True])
def test_an_id_that_is_neither_text_nor_a_whole_number_is_an_error_with_its_place(value: Any) -> None:
    with pytest.raises(InputError, match=r"here.*expected an id"):
        read_output([{"docid": value, "text": "t"}], "here")


def test_parse_comes_first_and_none_from_it_means_not_mine() -> None:
    assert read_output([_ONE], "here", parse=lambda output: ["x"]).results == (Result(1, "x"),)
    assert read_output([_ONE], "here", parse=lambda output: None).results[0].doc_id == "d1"
    assert read_output("nothing", "here", parse=lambda output: []).status == "empty"
    assert read_output("x", "here", parse=lambda output: [Result(9, "a"), {"url": "u"}]).results[0] == Result(1, "a")
    with pytest.raises(InputError, match=r"here: parse= failed with KeyError"):
        read_output({}, "here", parse=lambda output: output["hits"])
    with pytest.raises(InputError, match=r"here: parse= gave a result with neither"):
        read_output({}, "here", parse=lambda output: [{}])


SEARCHES = ["search", "web_search", "webSearch", "SearchAPI", "mcp__exa__search_web", "knowledge_retrieval", "retrieveDocs",
            "local_knowledge_base_retrieval", "google-search", "file.search", "Retriever2"]  # fmt: skip
OTHERS = ["research", "deep_research", "tool_search", "get_document", "mcp_list_tools", "visit", "search_visit", "fetch_search",
          "find_in_search", "search_memory", "searchMemories", "open_search", "OpenSearch", "mcp__brave-search__get_page", "",
          "webresearch", "calculator"]  # fmt: skip


def test_search_tools_are_told_by_the_words_of_their_names() -> None:
    assert [name for name in SEARCHES if not is_search_tool(name)] == []
    assert [name for name in OTHERS if is_search_tool(name)] == []


def test_queries_are_found_in_arguments_of_any_kind() -> None:
    assert extract_queries('{"query": "a"}') == ("a",)
    assert extract_queries({"queries": ["a", "b"], "n": 1}) == ("a", "b")
    assert extract_queries({"text": "a", "n": 1}) == ("a",)
    assert extract_queries("plain words") == ("plain words",)
    assert extract_queries('{"query": ') == ('{"query": ',)
    assert extract_queries(None) == extract_queries(5) == extract_queries({}) == ()
