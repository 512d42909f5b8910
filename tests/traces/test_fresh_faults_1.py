"""Faults that a fresh reader of the package found: each gave a wrong number, or an error of Python's own."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from goodgain.errors import GoodgainNotice, InputError
from goodgain.traces import read_traces
from goodgain.traces.conversations.spans import read_nanoseconds
from goodgain.traces.model import Result

from .conftest import STEPS, by_iteration


def _write(path: Path, *records: Any) -> Path:
    path.write_text("\n".join(map(json.dumps, records)))
    return path


def _docs(*ids: str) -> str:
    return json.dumps([{"docid": one, "title": f"On {one}"} for one in ids])


def _call(call_id: str, name: str = "search") -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": '{"query": "x"}'}}


_USER = {"role": "user", "content": "What?"}
_SEARCH = [
    {"role": "assistant", "tool_calls": [_call("c1")]},
    {"role": "tool", "tool_call_id": "c1", "content": _docs("a", "b")},
]
_CHAT = [_USER, *_SEARCH]
_OTHER_FIELDS: dict[str, dict[str, Any]] = {
    "response": {"messages": [_USER], "response": _SEARCH},
    "completion": {"messages": [_USER], "completion": _SEARCH},
    "steps": {"history": [_USER], "steps": _SEARCH},
    "choices": {
        "messages": [_USER],
        "choices": [
            {
                "message": {
                    "role": "assistant",
                    "content": "A",
                    "annotations": [{"url_citation": {"url": "https://a.example", "title": "A"}}],
                }
            }
        ],
    },
    "new_messages": {
        "messages": [{"kind": "request", "parts": [{"part_kind": "user-prompt", "content": "What?"}]}],
        "new_messages": [
            {"kind": "response", "parts": [{"part_kind": "tool-call", "tool_name": "search", "tool_call_id": "c"}]}
        ],
    },
    "output": {
        "messages": [{"type": "human", "content": "What?"}],
        "output": {"messages": [{"type": "tool", "content": _docs("a", "b"), "tool_call_id": "c"}]},
    },
}


@pytest.mark.parametrize("field", _OTHER_FIELDS)
def test_a_search_beside_the_messages_of_a_record_is_not_understood(field: str, tmp_path: Path) -> None:
    path = _write(tmp_path / "q.json", _OTHER_FIELDS[field])
    with pytest.raises(InputError, match=f"at /{field}: field '{field}' of the record is not understood.*no search"):
        read_traces(path)


def test_beside_a_search_that_is_read_another_field_with_one_gives_a_notice(tmp_path: Path) -> None:
    path = _write(tmp_path / "q.json", {"messages": _CHAT, "response": [{**_SEARCH[1], "tool_call_id": "c2"}]})
    with pytest.warns(GoodgainNotice, match="1 items in the traces are not understood.*field 'response' of the record"):
        assert by_iteration(read_traces(path)) == [["a", "b"]]


@pytest.mark.parametrize(
    "more",
    [
        {"response": _SEARCH},
        {"functions": [{"name": "search", "parameters": {}}]},
        {"extra_info": {"tools_kwargs": {"search": {"create_kwargs": {"k": 5}}}}},
        {"gold_docs": [{"docid": "d", "text": "A text."}]},
    ],
)
def test_copies_settings_and_documents_beside_the_messages_are_passed_over(more: Any, tmp_path: Path) -> None:
    path = _write(tmp_path / "q.json", {"messages": _CHAT, **more})
    assert by_iteration(read_traces(path)) == [["a", "b"]]


@pytest.mark.parametrize(("content", "found"), [(_docs("a", "b"), ["a", "b"]), ("Sorry, it was in vain.", [])])
def test_an_empty_artifact_leaves_the_results_in_the_content(content: str, found: list[str], tmp_path: Path) -> None:
    messages = [
        {"type": "human", "content": "What?"},
        {"type": "ai", "content": "", "tool_calls": [{"name": "search", "args": {"query": "x"}, "id": "c"}]},
        {"type": "tool", "content": content, "tool_call_id": "c", "artifact": []},
    ]
    assert by_iteration(read_traces(_write(tmp_path / "q.json", {"messages": messages}))) == [found]


@pytest.mark.parametrize("name", ["search", "finder"])
def test_answers_of_tools_without_an_id_belong_to_the_call_of_their_name(name: str, tmp_path: Path) -> None:
    calls = [{"type": "function", "function": _call("", tool)["function"]} for tool in ("fetch", "search")]
    answers = [(name, _docs("a", "b")), ("fetch", _docs("page"))][:: 1 if name == "search" else -1]
    chat = [_USER, {"role": "assistant", "tool_calls": calls}]
    chat += [{"role": "tool", "name": tool, "content": content} for tool, content in answers]
    assert by_iteration(read_traces(_write(tmp_path / "q.json", chat))) == [["a", "b"]]


@pytest.mark.parametrize("unit", [1, 10**3, 10**6, 10**9])
@pytest.mark.parametrize("kind", [int, str, float])
def test_the_size_of_a_number_tells_the_unit_of_a_time(unit: int, kind: type) -> None:
    seconds = 1_714_557_600
    assert read_nanoseconds(kind(seconds * unit), "") == seconds * 10**9


def test_a_time_without_a_zone_is_in_utc(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "America/New_York")
    time.tzset()
    try:
        assert read_nanoseconds("2024-05-01T10:00:00.5", "") == read_nanoseconds("2024-05-01T10:00:00.5Z", "")
    finally:
        monkeypatch.undo()
        time.tzset()


_MCP_CALL = {"id": 1, "method": "tools/call", "params": {"name": "search", "arguments": {"query": "x"}}}
_MCP_ANSWER = {"id": 1, "result": {"content": [{"type": "text", "text": _docs("a", "b")}]}}
_NOTHING = {"type": "text", "text": "No results found."}


@pytest.mark.parametrize("directed", [True, False])
@pytest.mark.parametrize("result", [{}, {"role": "assistant", "model": "m", "content": [_NOTHING]}, {"roots": []}])
def test_a_server_may_give_its_requests_the_ids_of_calls(result: Any, directed: bool, tmp_path: Path) -> None:
    messages = [{"id": 1, "method": "initialize"}, {"id": 1, "result": {"capabilities": {}}}, _MCP_CALL]
    messages += [{"id": 1, "method": "of/server"}, {"id": 1, "result": result}, _MCP_ANSWER]
    ways = ["out", "in", "out", "in", "out", "in"]
    lines = [
        {"message": {"jsonrpc": "2.0", **message}} | ({"direction": way} if directed else {})
        for message, way in zip(messages, ways, strict=True)
    ]
    assert by_iteration(read_traces(_write(tmp_path / "log.jsonl", *lines), **STEPS)) == [["a", "b"]]


def test_an_earlier_request_of_the_same_id_does_not_take_the_error_of_a_call(tmp_path: Path) -> None:
    messages = [{"id": 1, "method": "initialize"}, {"id": 1, "result": {"capabilities": {}}}, _MCP_CALL]
    lines = [{"jsonrpc": "2.0", **one} for one in [*messages, {"id": 1, "error": {"code": 1, "message": "failed"}}]]
    assert read_traces(_write(tmp_path / "log.jsonl", *lines), **STEPS)["status"].to_list() == ["error"]


@pytest.mark.parametrize("bad", [[1], {"a": 1}])
def test_a_bad_query_id_leaves_out_its_own_trace_only(bad: Any, tmp_path: Path) -> None:
    spans = [
        {
            "context": {"trace_id": f"{number:032x}", "span_id": f"{number:016x}"}, "parent_id": None, "name": "search",
            "start_time": "2024-05-01T10:00:00Z", "end_time": "2024-05-01T10:00:01Z",
            "attributes": {
                "openinference.span.kind": "TOOL", "tool.name": "search", "output.value": _docs("a"),
                "metadata": json.dumps({"query_id": query_id}),
            },
        }
        for number, query_id in enumerate([bad, "q2"], start=1)
    ]  # fmt: skip
    path = _write(tmp_path / "spans.jsonl", *spans)
    with pytest.raises(InputError, match="line 1/attributes/metadata/query_id: expected an id"):
        read_traces(path)
    with pytest.warns(GoodgainNotice, match="1 traces or files were left out"):
        assert by_iteration(read_traces(path, errors="skip"), "q2") == [["a"]]


def _fail(name: str) -> bool:
    raise ValueError(f"no {name}")


_BAD_OPTIONS: dict[str, tuple[dict[str, Any], str]] = {
    "parse gives text": ({"parse": lambda output: "d1"}, "parse= gave the text 'd1'; give a list of results"),
    "parse gives an object": ({"parse": lambda output: {"id": "d"}}, "parse= gave an object with id; give a list"),
    "half a character": ({"parse": lambda output: ["\ud800"]}, "parse= gave a result that no table can hold"),
    "a number as id": ({"parse": lambda output: [Result(1, doc_id=5)]}, "parse= gave a result that no table can hold"),  # type: ignore[arg-type]
    "query_id": ({"query_id": lambda trace: "\ud800"}, "the query '.ud800' is not valid Unicode"),
    "tools": ({"tools": 5}, "tools= takes the names of the search tools"),
    "tools raises": ({"tools": _fail}, r"tools= failed with ValueError \(no search\) for the tool 'search'"),
    "format": ({"format": ["openai_chat"]}, "no trace format is called"),
    "tag": ({"tag": 5}, "tag= takes a text"),
}


@pytest.mark.parametrize("what", _BAD_OPTIONS)
def test_an_option_of_a_wrong_type_is_an_error_of_goodgain(what: str, tmp_path: Path) -> None:
    options, message = _BAD_OPTIONS[what]
    with pytest.raises(InputError, match=message):
        read_traces(_write(tmp_path / "q.json", _CHAT), **options)


def test_a_result_of_parse_may_have_keys_that_are_not_text(tmp_path: Path) -> None:
    path = _write(tmp_path / "q.json", _CHAT)
    assert by_iteration(read_traces(path, parse=lambda output: [{1: "x", "id": "d"}])) == [["d"]]
