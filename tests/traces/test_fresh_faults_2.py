"""Searches and results that were once lost or counted twice without a word."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from goodgain.errors import GoodgainNotice, InputError
from goodgain.traces import read_traces
from goodgain.traces.output.conversion import convert_traces
from goodgain.traces.tool_outputs.readers import read_output

from .conftest import by_iteration
from .story import docs

_TRACE = "0" * 31 + "1"
_FOUND = json.dumps(docs("d1", "d2"))


@pytest.fixture
def save(tmp_path: Path) -> Callable[..., Path]:
    def write(text: str, name: str) -> Path:
        (tmp_path / name).write_text(text)
        return tmp_path / name

    return write


def _span(number: int, parent: int, kind: str, begin: int, end: int, **attributes: Any) -> dict[str, Any]:
    return {
        "context": {"trace_id": _TRACE, "span_id": f"{number:016x}"},
        "parent_id": f"{parent:016x}" if parent else None,
        "name": kind.lower(),
        "start_time": f"2024-05-01T10:00:{begin:02d}+00:00",
        "end_time": f"2024-05-01T10:00:{end:02d}+00:00",
        "attributes": {"openinference.span.kind": kind, **attributes},
    }


def _lines(*records: Any) -> str:
    return "\n".join(map(json.dumps, records))


@pytest.mark.parametrize("is_flat", [True, False])
def test_calls_in_nested_messages_of_a_model_count_as_unrecorded(save: Callable[..., Path], is_flat: bool) -> None:
    called = {"id": "c1", "function": {"name": "search", "arguments": "{}"}}
    calls = [{"tool_call.id": "c1", "tool_call.function.name": "search"}] if is_flat else [{"tool_call": called}]
    message = {"message.tool_calls": calls} if is_flat else {"message": {"tool_calls": calls}}
    model = _span(2, 1, "LLM", 1, 3, **{"llm.output_messages": [message]})
    log = save(_lines(_span(1, 0, "AGENT", 0, 9), model), "spans.jsonl")
    with pytest.raises(InputError, match="no span records it"):
        read_traces(log)


def test_a_span_that_was_exported_twice_counts_once(save: Callable[..., Path]) -> None:
    tool = _span(3, 1, "TOOL", 2, 3, **{"output.value": _FOUND, "tool.name": "search"})
    begun = _span(3, 1, "TOOL", 2, 0, **{"tool.name": "search"}) | {"end_time": None}
    agent = _span(1, 0, "AGENT", 0, 9)
    for number, spans in enumerate(([tool, tool], [begun, tool], [tool, begun])):
        results = read_traces(save(_lines(agent, *spans), f"{number}.jsonl"))
        assert by_iteration(results) == [["d1", "d2"]] and set(results["search"]) == {1}


def test_an_observation_of_langfuse_that_was_exported_twice_counts_once(save: Callable[..., Path]) -> None:
    of_trace = {"traceId": "t", "startTime": "2024-05-01T10:00:00Z", "endTime": "2024-05-01T10:00:01Z"}
    agent = {"id": "1", "parentObservationId": None, "type": "SPAN", "name": "agent", **of_trace}
    tool = {"id": "2", "parentObservationId": "1", "type": "TOOL", "name": "search", "output": _FOUND, **of_trace}
    results = read_traces(save(_lines(agent, tool, tool), "observations.jsonl"))
    assert by_iteration(results) == [["d1", "d2"]] and set(results["search"]) == {1}


def test_a_call_that_two_nested_spans_of_a_model_have_counts_once(save: Callable[..., Path]) -> None:
    names = ("c1", "c2")
    calls = [{"tool_call.id": name, "tool_call.function.name": "search"} for name in names]
    messages = {"llm.output_messages": [{"message.tool_calls": calls}]}
    spans = [_span(1, 0, "AGENT", 0, 9), _span(2, 1, "LLM", 1, 5, **messages), _span(3, 2, "LLM", 2, 4, **messages)]
    tool = _span(4, 1, "TOOL", 6, 7, **{"output.value": _FOUND, "tool.name": "search", "tool_call.id": "c1"})
    results = read_traces(save(_lines(*spans, tool), "spans.jsonl"), unrecorded="empty", iteration="step")
    assert by_iteration(results) == [["d1", "d2"]] and set(results["search"]) == {1, 2}
    alone = read_traces(save(_lines(*spans), "model.jsonl"), unrecorded="empty", iteration="step")
    assert by_iteration(alone) == [[]] and set(alone["search"]) == {1, 2}


@pytest.mark.parametrize("entry", ["{n}. {t} - https://{t}.example", "{n}. [{t}](https://{t}.example) - About {t}"])
def test_a_list_goes_on_behind_an_entry_without_an_address_and_below_another_heading(entry: str) -> None:
    a, c, d = (entry.format(n=number, t=title) for number, title in ((1, "a"), (3, "c"), (4, "d")))
    b, d2 = entry.format(n=2, t="b"), entry.format(n=2, t="d")
    gap = read_output(f"{a}\n2. No address\n{c}\n{d}", "here")
    assert [result.title for result in gap.results] == ["a", "c", "d"]
    parted = read_output(f"Web results:\n{a}\n{b}\n\nNews results:\n{c.replace('3', '1')}\n{d2}", "here")
    assert [result.title for result in parted.results] == ["a", "b", "c", "d"]
    assert [result.rank for result in parted.results] == [1, 2, 3, 4]
    assert "News" not in str(parted.results) and not (gap.overlooked or parted.overlooked)


@pytest.mark.parametrize("between", ["", "2. No address\n\n", "More:\n"])
def test_entries_of_a_list_that_cannot_be_told_from_a_snippet_are_named(between: str) -> None:
    outcome = read_output(f"1. A - https://a.example\n{between}3. C - https://c.example", "here")
    assert [result.url for result in outcome.results] == ["https://a.example"]
    assert list(outcome.overlooked) == ["https://c.example"]


def _chat(document: str) -> str:
    call = {"id": "c", "type": "function", "function": {"name": "search", "arguments": "{}"}}
    answer = {"role": "tool", "tool_call_id": "c", "content": json.dumps(docs(document))}
    return json.dumps([{"role": "user", "content": "?"}, {"role": "assistant", "tool_calls": [call]}, answer])


def test_a_folder_is_one_of_strands_by_what_is_in_its_files_and_logs_beside_sessions_are_read(tmp_path: Path) -> None:
    for number in (1, 2, 3):
        (tmp_path / f"message_{number}.json").write_text(_chat(f"d{number}"))
    assert read_traces(tmp_path)["doc_id"].to_list() == ["d1", "d2", "d3"]
    folder = tmp_path / "session_1" / "agents" / "agent_a" / "messages"
    folder.mkdir(parents=True)
    for path in (folder.parents[2] / "session.json", folder.parent / "agent.json"):
        path.write_text("{}")
    use = {"toolUse": {"toolUseId": "t", "name": "search"}}
    result = {"toolResult": {"toolUseId": "t", "content": [{"json": docs("d4")}]}}
    for number, (role, block) in enumerate((("assistant", use), ("user", result))):
        record = {"message": {"role": role, "content": [block]}, "message_id": number, "redact_message": None}
        (folder / f"message_{number}.json").write_text(json.dumps(record))
    with pytest.warns(GoodgainNotice, match="share no query"):  # only a session names its agent
        found = read_traces(tmp_path)
    assert sorted(found["doc_id"]) == ["d1", "d2", "d3", "d4"]
    for path in (folder, folder.parent, folder.parents[2]):
        assert read_traces(path)["doc_id"].to_list() == ["d4"]


@pytest.mark.parametrize(
    "text", ["ID: 12\nID: 34\nID: 56", "docid: 12\n\ndocid: 34\n\ndocid: 56", "ID: 12\nSand.\n\nID: 34\nWater.\nID: 56"]
)
def test_blocks_with_ids_alone_end_where_the_next_id_stands(text: str) -> None:
    assert [result.doc_id for result in read_output(text, "here").results] == ["12", "34", "56"]


@pytest.mark.parametrize("between", ["\n", "\n\n", "\nSand that moves.\n\n"])
def test_blocks_with_addresses_alone_end_where_the_next_address_stands(between: str) -> None:
    outcome = read_output(f"URL: https://a.example/1{between}URL: https://b.example/2", "here")
    assert [result.url for result in outcome.results] == ["https://a.example/1", "https://b.example/2"]


def test_the_history_of_gemini_s_own_calls_repeats_what_was_asked(save: Callable[..., Path], tmp_path: Path) -> None:
    asked = {"role": "user", "parts": [{"text": "What?"}]}
    call = {"role": "model", "parts": [{"functionCall": {"name": "search", "args": {}}}]}
    found = {"name": "search", "response": {"result": docs("d1")}}
    calls = [call, {"role": "user", "parts": [{"functionResponse": found}]}]
    candidates = [{"content": {"role": "model", "parts": [{"text": "A"}]}}]
    for name, contents, history, steps in (
        ("first", [asked], [asked, *calls], 1),
        ("again", [asked, *calls], [asked, *calls], 1),
        ("more", [asked, *calls], [asked, *calls, *calls], 2),
    ):
        response = {"candidates": candidates, "automaticFunctionCallingHistory": history}
        exchange = {"request": {"contents": contents}, "response": response}
        for form, record in (("exchange", exchange), ("contents", {"contents": contents, **response})):
            log, run = save(_lines(record), f"{name}_{form}.json"), tmp_path / f"{name}_{form}"
            assert by_iteration(read_traces(log, iteration="step")) == [["d1"]] * steps
            convert_traces(log, f"{run}.run", queries=f"{run}.jsonl")
            assert json.loads(Path(f"{run}.jsonl").read_text())["text"] == "What?"
    answer = {"role": "model", "parts": [{"text": "A"}]}
    later = {"request": {"contents": [asked, *calls, answer, asked]}, "response": {"candidates": candidates}}
    response = {"candidates": candidates, "automaticFunctionCallingHistory": [asked, *calls]}
    log = save(_lines({"request": {"contents": [asked]}, "response": response}, later), "joined.jsonl")
    assert read_traces(log, turns="all")["doc_id"].to_list() == ["d1", None], "two turns of one conversation"


def test_a_thread_of_codex_that_was_resumed_in_the_same_file_is_one_trace_of_two_turns(
    save: Callable[..., Path],
) -> None:
    def run(document: str, last: str) -> list[dict[str, Any]]:
        result = {"content": [{"type": "text", "text": json.dumps(docs(document))}]}
        item = {"id": "item_0", "type": "mcp_tool_call", "server": "s", "tool": "search", "result": result}
        start = {"type": "thread.started", "thread_id": "t1"}
        return [start, {"type": "turn.started"}, {"type": last, "item": item}, {"type": "turn.completed"}]

    log = save(_lines(*run("d1", "item.started"), *run("d2", "item.completed")), "exec.jsonl")
    results = read_traces(log, turns="all")
    assert results["query_id"].to_list() == ["t1_1", "t1_2"]
    assert results["doc_id"].to_list() == ["d1", "d2"]
