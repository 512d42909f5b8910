"""Faults that public logs of search agents showed: calls and results that were passed over, or told at the wrong place."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from goodgain.errors import GoodgainNotice, InputError
from goodgain.logs.traces import Summary, read_traces

Json = dict[str, Any]
Save = Callable[..., Path]

_PAGES = [{"url": f"https://a.example/{number}", "title": f"Page {number}"} for number in (1, 2, 3)]


def _node(name: str, second: int, given: list[Json], returned: list[Json]) -> Json:
    """Return the span of a node in a graph: its input and output are the whole state."""
    time = f"2026-01-01T00:00:{second:02}Z"
    return {
        "id": f"{second:016x}", "traceId": f"{1:032x}", "parentObservationId": None if name == "graph" else f"{0:016x}",
        "type": "CHAIN", "name": name, "startTime": time, "endTime": time,
        "input": json.dumps({"request": {"query": "Why do dunes move?"}, "sources": given}),
        "output": json.dumps({"request": {"query": "Why do dunes move?"}, "sources": returned}),
    }  # fmt: skip


_GRAPH = [
    _node("graph", 0, [], _PAGES),
    _node("supervisor", 1, [], []),
    _node("gatherer", 2, [], _PAGES),
    _node("supervisor", 3, _PAGES, _PAGES),
    _node("filter", 4, _PAGES, _PAGES[:2]),
    _node("writer", 5, _PAGES, _PAGES),
]


def test_only_the_node_that_brought_the_results_is_told(save: Save) -> None:
    with pytest.warns(GoodgainNotice) as told:
        results = read_traces(save(_GRAPH), format="langfuse")
    assert results["rank"].to_list() == [0]
    assert [str(one.message).partition(": ")[2] for one in told] == [
        "gatherer (1 of 1); if they search, pass tools=['gatherer']"
    ]


def test_the_node_that_brought_the_results_is_a_search_if_tools_names_it(save: Save) -> None:
    results = read_traces(save(_GRAPH), format="langfuse", tools=["gatherer"])
    assert results["url"].to_list() == [page["url"] for page in _PAGES]


def test_a_node_with_the_name_of_a_search_may_find_known_results_again(save: Save) -> None:
    graph = [
        _node("graph", 0, [], _PAGES),
        _node("retrieve", 1, [], _PAGES),
        _node("retrieve", 2, _PAGES, _PAGES),
    ]
    results = read_traces(save(graph), format="langfuse", iteration="sequential")
    assert results.group_by("search", "iteration").len().height == 2
    assert results["url"].to_list() == 2 * [page["url"] for page in _PAGES]


def test_a_listed_call_without_a_query_is_a_call(save: Save) -> None:
    calls = [{"name": "web_search", "args": args} for args in ({"query": "dunes"}, {"cursor": 12}, {"query": "wind"})]
    log = save([{"question": "Why do dunes move?", "tool_calls": calls}], "log.jsonl")
    summaries: list[Summary] = []
    results = read_traces(log, format="shape", unrecorded="empty", report=summaries.append)
    assert results.height == 3
    assert summaries[0].searches == {"web_search": 3}


def test_results_whose_document_is_an_inner_citation_are_named_by_its_file(save: Save) -> None:
    places = [("dunes.pdf", 6, 1), ("dunes.pdf", 6, 2), ("wind.pdf", 5, 0)]
    notes = [
        {"citation": {"source_file": file, "page": page, "chunk_in_page": chunk}, "score": 0.5}
        for file, page, chunk in places
    ]
    log = save([{"task": "Why do dunes move?", "notes": notes}], "log.jsonl")
    with pytest.raises(InputError, match=r"/notes looks like results of a search; .*1 search, 3 results"):
        read_traces(log)
    results = read_traces(log, format="shape", tools=["notes"])
    assert results["doc_id"].to_list() == [f"{file}#page={page}&chunk={chunk}" for file, page, chunk in places]


@pytest.mark.parametrize("key", ["chunk", "passage", "paper", "article"])
def test_results_whose_document_is_an_inner_object_have_its_id(key: str, save: Save) -> None:
    found = [{key: {"id": f"d{number}", "text": f"Text {number}"}, "score": 1 / number} for number in (1, 2)]
    call = {"tool": "search", "args": {"query": "dunes"}, "output": found}
    results = read_traces(save({"query_id": "q1", "calls": [call]}), format="shape")
    assert results.select("doc_id", "snippet", "score").rows() == [("d1", "Text 1", 1.0), ("d2", "Text 2", 0.5)]


def test_an_inner_object_names_no_result_that_has_a_url(save: Save) -> None:
    found = [{**page, "citation": {"id": number}} for number, page in enumerate(_PAGES)]
    call = {"tool": "search", "args": {"query": "dunes"}, "output": found}
    results = read_traces(save({"query_id": "q1", "calls": [call]}), format="shape")
    assert results.select("doc_id", "url").rows() == [(None, page["url"]) for page in _PAGES]


def _call(tool: str, args: Json, output: Any) -> Json:
    return {"tool": tool, "input": args, "output": output}


_TASKS = _call("list_tasks", {"status": "open"}, [{"id": "t1", "title": "Read"}, {"id": "t2", "title": "Write"}])


def test_a_tool_that_is_asked_a_query_is_advised_before_other_lists(save: Save) -> None:
    asked = _call("ask_notes", {"query": "dunes"}, [{"id": "n1", "text": "Sand."}, {"id": "n2", "text": "Wind."}])
    with pytest.raises(
        InputError, match=r"1 search, 2 results of ask_notes; if this is a search, .*\['ask_notes'\]; else"
    ):
        read_traces(save([_TASKS, asked], "log.jsonl"))


def test_tools_that_are_asked_a_query_are_told_even_if_nothing_reads_their_outputs(save: Save) -> None:
    asked = _call("ask_notes", {"query": "dunes"}, ["[From: a.txt]\nSand moves.", "[From: b.txt]\nThe wind blows."])
    expected = "results of list_tasks; .*; other tools are asked a query, but .* can be read as results: ask_notes 1"
    with pytest.raises(InputError, match=expected):
        read_traces(save([_TASKS, asked], "log.jsonl"))


_BARE = "its objects look like results of a search, but the log does not say what was searched"


@pytest.mark.parametrize("name", ["log.json", "log.jsonl"])
@pytest.mark.parametrize("results", [_PAGES, [{"paper": page, "explanation": "Sand."} for page in _PAGES]])
def test_a_log_that_is_a_list_of_results_is_told(results: list[Json], name: str, save: Save) -> None:
    with pytest.raises(InputError, match=_BARE):
        read_traces(save(results, name))


def test_other_lists_of_objects_are_not_told_as_results(save: Save) -> None:
    with pytest.raises(InputError, match="no known trace format") as told:
        read_traces(save([{"name": "Ada", "age": 36}, {"name": "Bo", "age": 12}]))
    assert _BARE not in str(told.value)
