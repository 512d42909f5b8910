"""Logs that gave no results, fewer results, or no costs without a word: each is read, or the loss is told."""

# ruff: noqa: E501  # logs are easier to read an item a line

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from goodgain.errors import GoodgainNotice, InputError
from goodgain.logs.traces import read_traces

from .conftest import by_iteration
from .logs import Call, Story, Turn, openai_chat

Json = Any
_SHARED = Path(__file__).parents[3].parent / "shared" / "traces" / "turn4"
_PAGES = json.dumps([{"title": "A", "url": "https://a.example/1"}])


def _chat(output: str) -> str:
    return openai_chat(Story([Turn([[Call(output)]])]))


# Formats


def test_the_answer_beside_the_contents_of_gemini_is_read(save: Callable[..., Path]) -> None:
    grounded = {"webSearchQueries": ["q"], "groundingChunks": [{"web": {"uri": "https://a.example/1", "title": "a"}}]}
    candidate = {"content": {"role": "model", "parts": [{"text": "330"}]}, "groundingMetadata": grounded}
    log = {"contents": [{"role": "user", "parts": [{"text": "How tall?"}]}], "response": {"candidates": [candidate]}}
    assert by_iteration(read_traces(save(log))) == [["https://a.example/1"]]


@pytest.mark.skipif(not _SHARED.is_dir(), reason=f"the samples are not beside the checkout ({_SHARED})")
def test_the_sample_of_gemini_has_one_search_with_one_result() -> None:
    assert [len(found) for found in by_iteration(read_traces(_SHARED / "gemini_contents_response.json"))] == [1]


def _spans(output: str, *more: Json) -> list[Json]:
    def span(number: int, kind: str, name: str, **attributes: str) -> Json:
        times = {f"{end}_time": f"2026-01-01T00:00:0{number}Z" for end in ("start", "end")}
        context = {"trace_id": "0x" + "1" * 32, "span_id": f"0x{number:016x}"}
        parent = {} if number == 1 else {"parent_id": f"0x{number - 1:016x}"}
        values = {key.replace("_", "."): value for key, value in attributes.items()}
        return {"parent_id": None, "name": name, "context": context, **parent, **times, "kind": "SpanKind.INTERNAL", "status": {"status_code": "OK"}, "attributes": {"openinference.span.kind": kind, **values}}  # fmt: skip

    spans = [span(1, "AGENT", "haystack.agent"), span(2, "TOOL", "tool_invoker", output_value=output)]
    return spans + [span(3, "TOOL", "search", output_value=_PAGES) for _ in more]


def _invoked(*outputs: str) -> list[Json]:
    origins = [{"tool_name": "search", "arguments": {"query": "q"}, "id": f"c{k}"} for k in range(len(outputs))]
    pairs = zip(outputs, origins, strict=True)
    return [
        {"role": "tool", "content": [{"tool_call_result": {"result": output, "origin": origin, "error": False}}]}
        for output, origin in pairs
    ]


@pytest.mark.parametrize("nest", [lambda one: one, lambda one: [one], lambda one: [[member] for member in one]])
def test_each_tool_that_haystack_s_invoker_ran_is_a_call(
    save: Callable[..., Path], nest: Callable[[Json], Json]
) -> None:
    output = json.dumps({"tool_messages": nest(_invoked(_PAGES, json.dumps([{"id": "d2", "content": "text"}])))})
    found = read_traces(save(_spans(output), "spans.jsonl"), iteration="call")
    assert by_iteration(found) == [["https://a.example/1"], ["d2"]]


def test_an_invoker_whose_output_is_not_json_is_told_and_one_above_a_span_of_its_tool_is_no_call(
    save: Callable[..., Path],
) -> None:
    with pytest.raises(InputError, match="output of several tools in one span is not understood"):
        read_traces(save(_spans("{'tool_messages': [ChatMessage(...)]}"), "spans.jsonl"))
    log = save(_spans(json.dumps({"tool_messages": _invoked(_PAGES)}), "below"), "spans.jsonl")
    assert by_iteration(read_traces(log)) == [["https://a.example/1"]]


@pytest.mark.parametrize("options", [{}, {"format": "shape"}])
@pytest.mark.parametrize("kept", [{"sessionId": "talk"}, {}])
def test_dead_branches_of_claude_code_are_not_read_by_shape_either(
    save: Callable[..., Path], options: Json, kept: Json
) -> None:
    def line(number: int, parent: int, role: str, *blocks: Json) -> Json:
        message = {
            "role": role,
            "content": list(blocks) or "What?",
            **({"id": f"m{number}"} if role == "assistant" else {}),
        }
        return {
            "uuid": f"u{number}",
            "parentUuid": f"u{parent}" if parent else None,
            "type": role,
            "message": message,
            **kept,
        }

    def call(name: str) -> Json:
        return {"type": "tool_use", "id": name, "name": "WebSearch", "input": {"query": name}}

    def answer(name: str) -> Json:
        content = json.dumps([{"title": "T", "url": f"https://{name}.example"}])
        return {"type": "tool_result", "tool_use_id": name, "content": content}

    dead = [line(2, 1, "assistant", call("dead")), line(3, 2, "user", answer("dead"))]
    live = [line(4, 1, "assistant", call("live")), line(5, 4, "user", answer("live"))]
    said = line(6, 5, "assistant", {"type": "text", "text": "So."})
    log = save([line(1, 0, "user"), *dead, *live, said], "log.jsonl")
    assert by_iteration(read_traces(log, **options)) == [["https://live.example"]]


# Texts


@pytest.mark.parametrize("sign", ["", "- ", "* "])
@pytest.mark.parametrize("title", ["{} page {}", "{} page - {}", "{} page ({})"])
def test_links_and_then_titles_with_addresses_are_one_list(save: Callable[..., Path], sign: str, title: str) -> None:
    lines = [f"{sign}[{name}](https://a.example/{name})" for name in "ab"]
    lines += [sign + title.format(name, f"https://a.example/{name}") for name in "cd"]
    assert by_iteration(read_traces(save(_chat("\n".join(lines))))) == [
        [f"https://a.example/{name}" for name in "abcd"]
    ]


@pytest.mark.parametrize("below", ["More: https://m.example", "See https://m.example for more."])
def test_an_address_in_a_snippet_below_a_link_is_not_a_result(save: Callable[..., Path], below: str) -> None:
    text = "\n".join(f"[{name}](https://a.example/{name})\n{below}\n" for name in "ab")
    assert by_iteration(read_traces(save(_chat(text)))) == [[f"https://a.example/{name}" for name in "ab"]]


# Calls in texts and beside passages


@pytest.mark.parametrize(
    "call",
    [
        "I do not know her.\nAction: search[Ada Lovelace]",
        "Thought 1: who?\nAction 1: Search[Ada Lovelace]",
        "Action: web_search\nAction Input: Ada Lovelace",
        '```json\n{"action": "DuckDuckGo Search", "action_input": "Ada Lovelace"}\n```',
    ],
)
@pytest.mark.parametrize(
    "speak",
    [
        lambda role, text: {"role": role, "content": text},
        lambda role, text: {"role": role, "content": [{"type": "text", "text": text}]},
        lambda role, text: {"type": "human" if role == "user" else "ai", "content": text},
    ],
)
def test_a_call_that_an_agent_wrote_as_text_is_told(
    save: Callable[..., Path], call: str, speak: Callable[[str, str], Json]
) -> None:
    talk = [("user", "Who?"), ("assistant", call), ("user", "Observation: Born in 1815."), ("assistant", "Finish[Ada]")]
    log = save({"messages": [speak(role, text) for role, text in talk]})
    with pytest.raises(InputError, match=r"the call of '.*' in a text is not understood .* no search was found"):
        read_traces(log)
    talk[1] = ("assistant", call.replace("earch", "end_mail"))
    assert read_traces(save({"messages": [speak(role, text) for role, text in talk]}))["status"].to_list() == [None]


def test_a_call_beside_passages_is_told(save: Callable[..., Path]) -> None:
    passages = {"retrieverSpans": [{"retrieval_context": ["one text", "another text"]}]}
    calls = {"toolSpans": [{"name": "web_search", "type": "tool", "input": {"query": "q"}, "output": _PAGES}]}
    log = save({"input": "What?", "trace": passages | calls})
    with pytest.warns(GoodgainNotice, match="a call beside the passages 1; the first at .*/trace/toolSpans"):
        read = read_traces(log, format="retrieved_contexts")
    assert read["snippet"].to_list() == ["one text", "another text"]
