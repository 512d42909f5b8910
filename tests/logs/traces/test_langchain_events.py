"""LangChain's events, one a line: `astream_events` of an agent, read by their shape."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.test_command_line import goodgain

Event = dict[str, Any]

HITS = [{"id": "d1", "url": "http://a.example/1", "text": "The wind moves sand."}]
_MESSAGE = {"content": json.dumps(HITS), "type": "tool", "name": "web_search", "id": "m1", "tool_call_id": "c1"}
_OF_LC = {"lc": 1, "type": "constructor", "id": ["langchain", "schema", "messages", "ToolMessage"], "kwargs": _MESSAGE}
_DOCUMENT = {"page_content": "The wind moves sand.", "metadata": {"id": "d1"}}


def _event(event: str, run: str, name: str = "web_search", parents: tuple[str, ...] = ("r0",), **data: Any) -> Event:
    return {
        "event": event, "name": name, "run_id": run, "parent_ids": list(parents), "tags": [],
        "metadata": {"thread_id": "t1", "langgraph_step": 2}, "data": data,
    }  # fmt: skip


def _search(run: str, output: Any = HITS, query: str = "dunes", **more: Any) -> list[Event]:
    asked = {"query": query}
    return [
        _event("on_tool_start", run, input=asked, **more),
        _event("on_tool_end", run, input=asked, output=output, **more),
    ]


def _retrieval(run: str, **more: Any) -> list[Event]:
    return [
        _event("on_retriever_start", run, "VectorStoreRetriever", input={"query": "dunes"}, **more),
        _event("on_retriever_end", run, "VectorStoreRetriever", output={"documents": [_DOCUMENT]}, **more),
    ]


def _convert(folder: Path, events: list[Event], *options: str, status: int = 0, whole: bool = False) -> tuple[Any, str]:
    """The documents of each iteration, and what the program says."""
    path, run = folder / "log.jsonl", folder / "a.run"
    path.write_text(json.dumps(events) if whole else "".join(f"{json.dumps(event)}\n" for event in events))
    _, err = goodgain("convert", path, "--format", "shape", "-o", run, *options, status=status)
    rows = [line.split() for line in run.read_text().splitlines()] if run.exists() else []
    return [[row[2] for row in rows if row[1] == number] for number in dict.fromkeys(row[1] for row in rows)], err


@pytest.mark.parametrize("output", [HITS, json.dumps(HITS), _MESSAGE, _OF_LC, {**_MESSAGE, "artifact": HITS}])
@pytest.mark.parametrize("whole", [False, True])
def test_outputs_of_tools_are_read_in_every_form(tmp_path: Path, output: Any, whole: bool) -> None:
    found, err = _convert(tmp_path, _search("r1", output) + _search("r2", output, "wind"), whole=whole)
    assert found == [["d1"], ["d1"]]
    assert "2 results" in err


@pytest.mark.parametrize(
    "data", [{"output": [_DOCUMENT]}, {"output": {"documents": [_DOCUMENT]}}, {"documents": [_DOCUMENT]}]
)
def test_documents_of_retrievers_are_read_in_every_form(tmp_path: Path, data: dict[str, Any]) -> None:
    events = [
        _event("on_retriever_start", "r1", "VectorStoreRetriever", input={"query": "dunes"}),
        _event("on_retriever_end", "r1", "VectorStoreRetriever", **data),
    ]
    assert _convert(tmp_path, events)[0] == [["d1"]]


def test_parallel_searches_are_one_step_and_a_run_id_joins_start_and_end(tmp_path: Path) -> None:
    (a, a_end), (b, b_end), (c, c_end) = (
        _search(run, [{"id": f"d{run}"}], query) for run, query in (("1", "x"), ("2", "y"), ("3", "z"))
    )
    found, err = _convert(tmp_path, [a, b, b_end, a_end, c, c_end])
    assert found == [["d1", "d2"], ["d3"]]
    assert "3 searches" in err


def test_events_of_models_and_chains_repeat_no_search(tmp_path: Path) -> None:
    call = {"type": "tool_call", "id": "c1", "name": "web_search", "args": {"query": "dunes"}}
    asked = {"messages": [{"type": "human", "content": "What moves dunes?"}]}
    answer = {"type": "ai", "content": "", "tool_calls": [call]}
    final = {"messages": [*asked["messages"], answer, _MESSAGE, {"type": "ai", "content": "The wind."}]}
    events = [
        _event("on_chain_start", "r0", "LangGraph", (), input=asked),
        _event("on_chat_model_start", "r1", "ChatOpenAI", input=asked),
        _event("on_chat_model_stream", "r1", "ChatOpenAI", chunk={"type": "AIMessageChunk", "content": ""}),
        _event("on_chat_model_end", "r1", "ChatOpenAI", input=asked, output=answer),
        *_search("r2", _MESSAGE),
        _event("on_chain_end", "r0", "LangGraph", (), output=final),
    ]
    assert _convert(tmp_path, events)[0] == [["d1"]]


def test_ends_without_starts_are_searches(tmp_path: Path) -> None:
    ends = [_search("r1")[1], _search("r2", query="wind")[1]]
    assert _convert(tmp_path, ends, "--iteration", "call")[0] == [["d1"], ["d1"]]


def test_a_retriever_below_a_tool_counts_instead_of_the_tool(tmp_path: Path) -> None:
    start, end = _search("r1", "Dunes: the wind moves sand.")
    found, err = _convert(tmp_path, [start, *_retrieval("r2", parents=("r0", "r1")), end])
    assert found == [["d1"]]
    assert "VectorStoreRetriever 1: search" in err


def test_a_search_inside_a_search_is_an_error(tmp_path: Path) -> None:
    start, end = _search("r1", "Dunes.")
    inner = _search("r2", parents=("r0", "r1"))
    for event in inner:
        event["name"] = "retrieve"
    _, err = _convert(tmp_path, [start, *inner, end], status=2)
    assert "the search web_search holds the search retrieve" in err


def test_searches_of_an_agent_below_a_tool_count(tmp_path: Path) -> None:
    agent = [_event("on_tool_start", "r1", "ask_expert", input={"task": "dunes"})]
    agent += _search("r2", parents=("r0", "r1")) + _search("r3", query="wind", parents=("r0", "r1"))
    agent += [_event("on_tool_end", "r1", "ask_expert", output="The wind.")]
    assert _convert(tmp_path, agent)[0] == [["d1"], ["d1"]]


@pytest.mark.parametrize("data", [{"error": "timed out"}, {"error": "timed out", "input": {"query": "dunes"}}])
def test_a_search_that_raised_an_error_failed(tmp_path: Path, data: dict[str, Any]) -> None:
    events = [_event("on_tool_start", "r1", input={"query": "dunes"}), _event("on_tool_error", "r1", **data)]
    found, err = _convert(tmp_path, events)
    assert found == [["-"]]
    assert "failed 1" in err


def test_a_search_that_never_ended_is_unrecorded(tmp_path: Path) -> None:
    _, err = _convert(tmp_path, [*_search("r1"), _event("on_tool_start", "r2", input={"query": "wind"})], status=2)
    assert "what it returned is not in the log" in err


def test_threads_in_the_metadata_are_queries(tmp_path: Path) -> None:
    events = _search("r1") + _search("r2", query="wind")
    for event in events[2:]:
        event["metadata"] = {"thread_id": "t2"}
    _, err = _convert(tmp_path, events)
    assert "query ids from `metadata.thread_id`" in err
    assert {line.split()[0] for line in (tmp_path / "a.run").read_text().splitlines()} == {"t1", "t2"}


def test_a_refusal_says_what_by_shape_counts(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text("".join(f"{json.dumps(event)}\n" for event in _search("r1")))
    _, err = goodgain("convert", path, "-o", tmp_path / "a.run", status=2)
    assert "by shape: 1 query, 1 search: web_search 1; 1 result; pass --format shape to take this" in err


@pytest.mark.parametrize(
    "log",
    [
        [{"tool": "web_search", "args": {"query": "x"}, "hits": HITS}],
        [
            {"type": "tool_call", "id": "c", "name": "web_search", "args": {"query": "x"}},
            {"type": "tool_result", "id": "c", "hits": HITS},
        ],
    ],
)
def test_an_answer_under_an_unknown_key_is_named_and_never_called_empty(tmp_path: Path, log: list[Event]) -> None:
    _, err = _convert(tmp_path, log, status=2, whole=True)
    assert "goodgain does not know where its answer is: perhaps under 'hits'" in err
    assert "docs/traces/your_own_agent.md" in err
    assert "empty" not in err
