"""Containers of known formats: cassettes, streams of deer-flow, events one a line, pretty JSON, messages of smolagents."""

from __future__ import annotations

import base64
import gzip
import json
import random
from pathlib import Path
from typing import Any

import pytest
import yaml

from goodgain.errors import GoodgainNotice, InputError
from goodgain.traces import read_traces
from tests.support.counts import how_many

from .conftest import by_iteration
from .mutations import changed

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


def _cassette(request: Any, response: Any) -> dict[str, Any]:
    other = {
        "request": {"method": "GET", "uri": "https://b.example", "body": None},
        "response": {"body": {"string": "no"}},
    }
    asked = {"method": "POST", "uri": "https://a.example/v1/messages", **request}
    return {"version": 1, "interactions": [{"request": asked, "response": response}, other]}


_BODY = {"model": "m", "messages": [_QUESTION]}
_CASSETTES = {
    "parsed bodies": _cassette({"parsed_body": _BODY}, {"parsed_body": _ANSWER}),
    "bodies as text": _cassette({"body": json.dumps(_BODY)}, {"body": {"string": json.dumps(_ANSWER)}}),
    "a stream": _cassette({"body": json.dumps(_BODY)}, {"body": {"string": _stream()}}),
    "a packed stream": _cassette({"body": json.dumps(_BODY)}, {"body": {"string": gzip.compress(_stream().encode())}}),
    "a packed body as base64": _cassette(
        {"body": json.dumps(_BODY)},
        {"body": {"base64_string": base64.b64encode(gzip.compress(json.dumps(_ANSWER).encode())).decode()}},
    ),
}


@pytest.mark.filterwarnings("ignore::goodgain.GoodgainNotice")
@pytest.mark.parametrize(
    ("name", "suffix"),
    [
        (name, suffix)
        for name in _CASSETTES
        for suffix in ("yaml", "json")
        if (name, suffix) != ("a packed stream", "json")
    ],
)  # JSON has no bytes
def test_a_cassette_is_read_as_the_exchanges_in_it(name: str, suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"cassette.{suffix}"
    if suffix == "yaml":
        path.write_text(yaml.safe_dump(_CASSETTES[name]))
    else:
        path.write_text(json.dumps(_CASSETTES[name], indent=1))
    assert by_iteration(read_traces(path)) == _PAGES


def test_a_damaged_cassette_and_one_of_endless_aliases_are_errors(tmp_path: Path) -> None:
    cut = tmp_path / "cut.yaml"
    cut.write_text(yaml.safe_dump(_CASSETTES["parsed bodies"])[:300] + "\n  - [")
    with pytest.raises(InputError, match="is not YAML to its end"):
        read_traces(cut)
    bomb = tmp_path / "bomb.yaml"
    lines = ["interactions:", "- &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"- &a{level} [{', '.join([f'*a{level - 1}'] * 10)}]" for level in range(1, 12)]
    bomb.write_text("\n".join(lines))
    with pytest.raises(InputError, match="aliases repeat over"):
        read_traces(bomb)


def test_a_cassette_of_which_one_value_is_of_another_type_is_read_or_is_one_sentence(tmp_path: Path) -> None:
    chance = random.Random(3)
    for _ in range(how_many(40, full=1_000)):
        cassette, what = changed(chance.choice(list(_CASSETTES.values())), chance)
        path = tmp_path / "cassette.yaml"
        path.write_text(yaml.safe_dump(cassette))
        try:
            read_traces(path, unrecorded="empty", errors="skip")
        except InputError as error:
            assert str(path) in str(error) and "\n" not in str(error), what
        except GoodgainNotice:
            pass


def test_what_yaml_holds_and_json_cannot_is_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "cassette.yaml"
    path.write_text(yaml.safe_dump(_CASSETTES["parsed bodies"]).replace("model: m", "1: m"))
    with pytest.raises(InputError, match=r"the cassette has a value that JSON cannot hold \(Dict key must be"):
        read_traces(path)


def test_settings_in_yaml_beside_logs_of_a_folder_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "settings.yaml").write_text("model: m\n")
    (tmp_path / "log.json").write_text(json.dumps([_QUESTION, _ANSWER]))
    assert by_iteration(read_traces(tmp_path)) == _PAGES


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
