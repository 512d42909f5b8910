"""A call that two parts of a message hold is one search: Vercel repeats calls in `parts`, `toolInvocations` and the content."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from goodgain.logs.traces import read_traces

Json = dict[str, Any]

_RESULTS = [{"url": "https://a.example/1", "title": "Dunes"}, {"url": "https://a.example/2", "title": "Sand"}]
_CALL = {"toolCallId": "c1", "toolName": "web_search"}
_INVOCATION = {**_CALL, "state": "result", "step": 0, "args": {"query": "dunes"}, "result": _RESULTS}
_ANSWERED = {"state": "output-available", "input": {"query": "dunes"}, "output": _RESULTS}
_PARTS: dict[str, list[Json]] = {
    "version 4": [{"type": "tool-invocation", "toolInvocation": _INVOCATION}],
    "version 5": [{"type": "tool-web_search", "toolCallId": "c1", **_ANSWERED}],
    "dynamic": [{"type": "dynamic-tool", **_CALL, **_ANSWERED}],
    "of the model": [
        {"type": "tool-call", **_CALL, "input": {"query": "dunes"}},
        {"type": "tool-result", **_CALL, "output": {"type": "json", "value": _RESULTS}},
    ],
}


def _read(save: Callable[..., Path], message: Json) -> list[tuple[int, int, int]]:
    question = {"role": "user", "content": "What moves dunes?"}
    answer = {"role": "assistant", "content": "Wind."}
    log = {"id": "chat", "messages": [question, {"role": "assistant", **message}, answer]}
    return read_traces(save(log), format="vercel_ai").select("iteration", "search", "rank").rows()


_ONE_SEARCH = [(1, 1, 1), (1, 1, 2)]


@pytest.mark.parametrize("kind", _PARTS)
def test_a_call_in_parts_and_in_tool_invocations_is_one_search(kind: str, save: Callable[..., Path]) -> None:
    place = "content" if kind == "of the model" else "parts"
    assert _read(save, {place: _PARTS[kind], "toolInvocations": [_INVOCATION]}) == _ONE_SEARCH


def test_a_call_in_parts_and_in_the_content_is_one_search(save: Callable[..., Path]) -> None:
    assert _read(save, {"parts": _PARTS["version 5"], "content": _PARTS["of the model"]}) == _ONE_SEARCH


def test_two_states_of_a_call_are_one_search(save: Callable[..., Path]) -> None:
    begun = {**_CALL, "state": "partial-call", "step": 0, "args": {}}
    assert _read(save, {"content": "", "toolInvocations": [begun, _INVOCATION]}) == _ONE_SEARCH


def test_a_repeated_call_begins_no_step(save: Callable[..., Path]) -> None:
    second = {**_INVOCATION, "toolCallId": "c2", "step": 1}
    message = {"content": "", "parts": _PARTS["version 5"], "toolInvocations": [_INVOCATION, second]}
    assert _read(save, message) == [*_ONE_SEARCH, (2, 1, 1), (2, 1, 2)]


def test_an_id_with_other_arguments_is_another_call(save: Callable[..., Path]) -> None:
    second = {**_INVOCATION, "step": 1, "args": {"query": "wind"}}
    parts = [{"type": "step-start"}, *_PARTS["version 4"]]
    parts += [{"type": "step-start"}, {"type": "tool-invocation", "toolInvocation": second}]
    message = {"content": "", "parts": parts, "toolInvocations": [_INVOCATION, second]}
    assert _read(save, message) == [*_ONE_SEARCH, (2, 1, 1), (2, 1, 2)]


def test_an_id_in_two_steps_is_two_calls_though_the_arguments_are_equal(save: Callable[..., Path]) -> None:
    invocations = [_INVOCATION, {**_INVOCATION, "step": 1}]
    two_searches = [*_ONE_SEARCH, (2, 1, 1), (2, 1, 2)]
    assert _read(save, {"content": "", "toolInvocations": invocations}) == two_searches

    parts = [{"type": "step-start"}, *_PARTS["version 5"]] * 2
    assert _read(save, {"parts": parts}) == two_searches
    assert _read(save, {"parts": parts, "content": "", "toolInvocations": invocations}) == two_searches
