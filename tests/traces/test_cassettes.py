"""Containers of known formats: streams of deer-flow, events one a line, pretty JSON, messages of smolagents."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from goodgain.traces import read_traces

from .conftest import by_iteration

_QUESTION = {"role": "user", "content": "Who measured the dunes?"}
_USE = {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "dunes"}}
_FOUND = [{"type": "web_search_result", "url": f"https://a.example/{name}", "title": name} for name in "ab"]
_ANSWER = {
    "type": "message", "role": "assistant", "stop_reason": "end_turn",
    "content": [_USE, {"type": "web_search_tool_result", "tool_use_id": "s1", "content": _FOUND}, {"type": "text", "text": "A."}],
}  # fmt: skip
_PAGES = [["https://a.example/a", "https://a.example/b"]]


def _stream() -> str:
    blocks = _ANSWER["content"]
    events: list[Any] = [{"type": "message_start", "message": {**_ANSWER, "content": []}}]
    for index, block in enumerate(blocks):
        events += [{"type": "content_block_start", "index": index, "content_block": block}]
    events.append({"type": "message_stop"})
    return "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events)


def test_events_of_an_answer_one_a_line_are_its_answer(tmp_path: Path) -> None:
    path = tmp_path / "answer.chunks.txt"
    path.write_text("".join(line[6:] + "\n" for line in _stream().splitlines() if line.startswith("data: ")))
    assert by_iteration(read_traces(path)) == _PAGES


def test_pretty_json_is_one_value_under_any_name(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text(json.dumps([_QUESTION, _ANSWER], indent=2))
    assert by_iteration(read_traces(path)) == _PAGES


def _event(kind: str, **fields: Any) -> str:
    return f"event: {kind}\ndata: {json.dumps({'thread_id': 't', 'agent': 'researcher', **fields})}\n\n"


def test_in_a_stream_of_deer_flow_results_without_ids_answer_the_agent_s_own_calls_in_order(tmp_path: Path) -> None:
    pages = [
        {"type": "page", "url": "https://a.example/a", "title": "A"},
        {"type": "image", "image_url": "https://a.example/i"},
    ]
    calls = [{"name": "web_search", "args": {"query": query}, "id": ""} for query in "xy"]
    text = [
        _event("message_chunk", agent=None, id="u", role="user", content="Where?"),
        _event("tool_calls", agent="coordinator", id="m0", tool_calls=[{"name": "handoff", "args": {}, "id": ""}]),
        _event("message_chunk", id="m1", role="assistant", content="I "),
        _event("message_chunk", id="m1", role="assistant", content="search."),
        _event("tool_calls", id="m1", role="assistant", tool_calls=calls),
        _event("tool_call_result", id="r1", tool_call_id="", content=json.dumps(pages)),
        _event(
            "tool_call_result",
            id="r2",
            tool_call_id="",
            content=json.dumps([pages[0] | {"url": "https://a.example/b"}]),
        ),
    ]
    path = tmp_path / "stream.txt"
    path.write_text("".join(text).replace('"id": "m0"', '"role": "assistant", "id": "m0"'))
    assert by_iteration(read_traces(path)) == _PAGES


def test_messages_of_smolagents_hold_calls_as_text(tmp_path: Path) -> None:
    def write(role: str, text: str) -> dict[str, Any]:
        return {"role": role, "content": [{"type": "text", "text": text}]}

    call = {"id": "c1", "type": "function", "function": {"name": "web_search", "arguments": {"query": "dunes"}}}
    told = "\n\n".join(
        f"{number}. [{name}](https://a.example/{name})\nAbout {name}." for number, name in enumerate("ab")
    )
    code = call | {
        "function": {"name": "python_interpreter", "arguments": "def binary_search(a):\n  return a\nbinary_search(1)"}
    }
    steps = [
        write("system", "You search with web_search(query)."),
        write("user", "New task:\nWho?"),
        write("assistant", "Tool call c1: calling 'web_search'"),
        write("tool-call", f"Calling tools:\n{[call]}"),
        write("tool-response", f"Observation:\n## Search Results\n{told}"),
        write("assistant", "Now code."),
        write("tool-call", f"Calling tools:\n{[code]}"),
        write("tool-response", "Observation:\n1"),
    ]
    path = tmp_path / "runs.jsonl"
    path.write_text(json.dumps({"question": "Who?", "intermediate_steps": steps}) + "\n")
    assert by_iteration(read_traces(path)) == _PAGES


def test_tags_without_a_query_and_without_results_are_no_search(tmp_path: Path) -> None:
    path = tmp_path / "text.txt"
    found = '<information>Doc 1(Title: "Dunes") Sand.</information>'
    path.write_text(
        f"Question: Who?\n<search>dunes</search>\n{found}\nThe query is empty: <search></search>. Try again.\n<answer>A</answer>"
    )
    assert by_iteration(read_traces(path)) == [["Dunes"]]


def test_a_request_that_tells_the_model_its_results_as_text_is_read_by_shape(tmp_path: Path) -> None:
    told = "\n".join(
        f"[{number}] {name}\nURL: https://a.example/{name}\nAbout {name}." for number, name in enumerate("ab", start=1)
    )
    parts = [{"type": "text", "text": "Search results:"}, {"type": "text", "text": told}]
    messages = [
        {"role": "system", "content": "You search."},
        _QUESTION,
        {
            "role": "assistant",
            "content": '<tool_call>\n{"name": "web_search", "parameters": {"query": "dunes"}}\n</tool_call>',
        },
        {"role": "user", "content": f"Tool: web_search\nResult:\n{json.dumps(parts)}"},
        {"role": "user", "content": [{"type": "text", "text": "Current browser:"}]},
    ]
    path = tmp_path / "request.json"
    path.write_text(json.dumps({"provider": "p", "request": {"model": "m", "messages": messages}, "baseURL": "u"}))
    assert by_iteration(read_traces(path, format="shape")) == _PAGES


@pytest.mark.parametrize("nested", [True, False])
def test_one_search_in_three_observations_of_langfuse_is_one_and_two_equal_calls_are_two(
    nested: bool, tmp_path: Path
) -> None:
    def observe(name: str, parent: str | None, tool: str, kind: str = "TOOL") -> dict[str, Any]:
        return {
            "id": name, "traceId": "t", "type": kind, "name": tool, "parentObservationId": parent, "input": {"query": "dunes"},
            "output": _FOUND, "startTime": "2026-01-01T00:00:01.000Z", "endTime": "2026-01-01T00:00:02.000Z",
        }  # fmt: skip

    root = observe("r", None, "agent", "AGENT") | {"input": "Who?", "output": "A."}
    recorded = [
        observe("a", "r", "web_search"), observe("b", "a" if nested else "r", "tavily_search"),
        observe("c", "b" if nested else "r", "search", "RETRIEVER"),
    ]  # fmt: skip
    path = tmp_path / "trace.json"
    path.write_text(json.dumps([{"id": "t", "observations": [root, *recorded]}]))
    assert by_iteration(read_traces(path)) == _PAGES
    twice = [observe("a", "r", "web_search"), observe("b", "r", "web_search")]
    path.write_text(json.dumps([{"id": "t", "observations": [root, *twice]}]))
    assert by_iteration(read_traces(path)) == [_PAGES[0] * 2]
