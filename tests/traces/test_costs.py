"""What each iteration cost: tokens, seconds and money of each format that logs them, counted by hand."""

# ruff: noqa: E501  # logs are easier to read an item a line

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from click.testing import CliRunner

from goodgain.cli.program import program
from goodgain.errors import GoodgainNotice, InputError
from goodgain.traces import convert_traces, read_traces

from .logs import docs

Json = Any
FOUND = json.dumps(docs("d1"))

#: iteration, input_tokens, output_tokens, seconds, cost
Costs = list[tuple[int, int | None, int | None, float | None, float | None]]


@pytest.fixture
def costs_of(tmp_path: Path) -> Callable[..., Costs]:
    """Writes a log, and reads what its iterations cost."""

    def read(log: Json, name: str = "q1.json", **options: Any) -> Costs:
        path = tmp_path / name
        path.write_text(log if isinstance(log, str) else json.dumps(log))
        results, spent = read_traces(path, costs=True, **options)
        assert results.equals(read_traces(path, **options)), "the results are the same"
        return spent.select("iteration", "input_tokens", "output_tokens", "seconds", "cost").rows()

    return read


def _chat(tool: str, call_id: str) -> Json:
    function = {"name": tool, "arguments": "{}"}
    return {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": call_id, "type": "function", "function": function}],
    }


def _exchanges(answers: list[tuple[Json, Json]]) -> list[Json]:
    """A conversation of one question, recorded answer by answer: each request holds all that came before."""
    messages: list[Json] = [{"role": "user", "content": "What is BM25?"}]
    log = []
    for answer, usage in answers:
        response = {"object": "chat.completion", "choices": [{"message": answer}], "usage": usage}
        log.append({"request": {"messages": list(messages)}, "response": response})
        messages.append(answer)
        messages += [{"role": "tool", "tool_call_id": c["id"], "content": FOUND} for c in answer.get("tool_calls", ())]
    return log


def test_openai_chat(costs_of: Callable[..., Costs]) -> None:
    log = _exchanges(
        [
            (_chat("search", "c1"), {"prompt_tokens": 100, "completion_tokens": 10, "cost": 0.5}),
            (
                _chat("visit", "c2"),
                {"prompt_tokens": 200, "completion_tokens": 20, "cost": 0.25},
            ),  # belongs to the next search
            (_chat("search", "c3"), {"prompt_tokens": 300, "completion_tokens": 30, "cost": 1.0}),
            (
                {"role": "assistant", "content": "The answer."},
                {"prompt_tokens": 400, "completion_tokens": 40, "cost": 2.0},
            ),
        ]
    )
    assert costs_of(log) == [(1, 100, 10, None, 0.5), (2, 500, 50, None, 1.25), (0, 400, 40, None, 2.0)]


def test_openai_responses(costs_of: Callable[..., Costs]) -> None:
    def searched(number: int) -> Json:
        return {"type": "web_search_call", "id": f"w{number}", "action": {"type": "search", "query": "q", "sources": [{"type": "url", "url": f"https://a.example/{number}"}]}}  # fmt: skip

    said = {
        "type": "message",
        "role": "assistant",
        "content": [{"type": "output_text", "text": "It is.", "annotations": []}],
    }
    usage = {"input_tokens": 70, "output_tokens": 7, "input_tokens_details": {"cached_tokens": 50}}
    log = {"object": "response", "input": "What?", "output": [searched(1), searched(2), said], "usage": usage}
    # One answer of the model holds both searches: it is paid for with the first, as it had to be made for that.
    assert costs_of(log) == [(1, 70, 7, None, None), (2, None, None, None, None)]
    first = {"id": "r1", "output": [searched(1)], "usage": usage}
    second = {"id": "r2", "output": [searched(2), said], "usage": {"input_tokens": 80, "output_tokens": 8}}
    exchanges = [
        {"request": {"input": "What?"}, "response": first},
        {
            "request": {"input": [{"role": "user", "content": "Go on"}], "previous_response_id": "r1"},
            "response": second,
        },
    ]
    assert costs_of(exchanges) == [(1, 80, 8, None, None)], "the last turn alone"


def test_anthropic_counts_what_was_read_from_a_cache(costs_of: Callable[..., Costs]) -> None:
    def asked(call_id: str, usage: Json) -> list[Json]:
        use = {"type": "tool_use", "id": call_id, "name": "web_search", "input": {"query": "q"}}
        result = {"type": "tool_result", "tool_use_id": call_id, "content": FOUND}
        return [{"role": "assistant", "content": [use], "usage": usage}, {"role": "user", "content": [result]}]

    log = [
        {"role": "user", "content": "What?"},
        *asked(
            "c1",
            {"input_tokens": 10, "cache_creation_input_tokens": 90, "cache_read_input_tokens": 0, "output_tokens": 5},
        ),
        *asked("c2", {"input_tokens": 20, "cache_read_input_tokens": 90, "output_tokens": 6}),
        {
            "role": "assistant",
            "content": [{"type": "text", "text": "It is."}],
            "usage": {"input_tokens": 30, "output_tokens": 7},
        },
    ]
    assert costs_of(log) == [(1, 100, 5, None, None), (2, 110, 6, None, None), (0, 30, 7, None, None)]


def test_langchain(costs_of: Callable[..., Costs]) -> None:
    def asked(call_id: str, **usage: Json) -> list[Json]:
        call = {"type": "ai", "content": "", "tool_calls": [{"id": call_id, "name": "search", "args": {}}], **usage}
        return [call, {"type": "tool", "tool_call_id": call_id, "content": FOUND}]

    log = [
        {"type": "human", "content": "What?"},
        *asked("c1", usage_metadata={"input_tokens": 11, "output_tokens": 1, "total_tokens": 12}),
        *asked(
            "c2", usage_metadata=None, response_metadata={"token_usage": {"prompt_tokens": 22, "completion_tokens": 2}}
        ),
        *asked("c3"),
        {"type": "ai", "content": "It is."},
    ]
    assert costs_of(log) == [(1, 11, 1, None, None), (2, 22, 2, None, None), (3, None, None, None, None)]


def test_atif_has_prices_and_times(costs_of: Callable[..., Costs]) -> None:
    def asked(number: int, second: int, *calls: str) -> Json:
        return {
            "step_id": number, "source": "agent", "message": "", "timestamp": f"2026-01-01T10:00:{second:02}Z",
            "metrics": {"prompt_tokens": 10 * number, "completion_tokens": number, "cost_usd": number / 4},
            "tool_calls": [{"tool_call_id": call, "function_name": "search", "arguments": {}} for call in calls],
            "observation": {"results": [{"source_call_id": call, "content": FOUND} for call in calls]},
        }  # fmt: skip

    user = {"step_id": 1, "source": "user", "message": "What?", "timestamp": "2026-01-01T10:00:00Z"}
    log = {
        "schema_version": "ATIF-v1.4",
        "session_id": "q1",
        "steps": [user, asked(2, 5, "a", "b"), asked(3, 15, "c"), asked(4, 18)],
    }
    assert costs_of(log) == [(1, 20, 2, 5.0, 0.5), (2, 30, 3, 10.0, 0.75), (0, 40, 4, 3.0, 1.0)]
    # Calls of one step are made at once: what it cost is that of the first.
    assert costs_of(log, iteration="call") == [
        (1, 20, 2, 5.0, 0.5), (2, 0, 0, 0.0, 0.0), (3, 30, 3, 10.0, 0.75), (0, 40, 4, 3.0, 1.0),
    ]  # fmt: skip


def test_openinference_spans_last_from_start_to_end(costs_of: Callable[..., Costs]) -> None:
    def span(number: int, kind: str, start: float, end: float, **attributes: Json) -> Json:
        return {
            "name": "search", "context": {"trace_id": "00000000000000000000000000000001", "span_id": f"{number:016x}"},
            "parent_id": None if number == 1 else f"{1:016x}", "start_time": f"2026-01-01T10:00:{start:09.6f}Z",
            "end_time": f"2026-01-01T10:00:{end:09.6f}Z", "attributes": {"openinference.span.kind": kind, **attributes},
        }  # fmt: skip

    def model(number: int, start: float, end: float, read: int, written: int) -> Json:
        tokens = {"llm.token_count.prompt": read, "llm.token_count.completion": written, "llm.cost.total": 0.5}
        return span(number, "LLM", start, end, **tokens)

    log = [
        span(1, "AGENT", 0, 20), model(2, 1, 3, 100, 10), span(3, "TOOL", 3, 4, **{"output.value": FOUND}),
        span(4, "TOOL", 3.5, 6, **{"output.value": FOUND}),  # side by side with the one before: 3 seconds together
        model(5, 7, 8, 200, 20), span(6, "TOOL", 8, 8.5, **{"output.value": FOUND}), model(7, 9, 11, 300, 30),
    ]  # fmt: skip
    found = costs_of("".join(json.dumps(line) + "\n" for line in log), "q1.jsonl")
    assert found == [(1, 100, 10, 5.0, 0.5), (2, 200, 20, 1.5, 0.5), (0, 300, 30, 2.0, 0.5)]


def test_inspect_has_usage_in_its_events(costs_of: Callable[..., Costs]) -> None:
    def event(message_id: str, read: int, cached: int, seconds: float) -> Json:
        usage = {"input_tokens": read, "output_tokens": 1, "input_tokens_cache_read": cached}
        return {
            "event": "model",
            "output": {"choices": [{"message": {"id": message_id}}], "usage": usage, "time": seconds},
        }

    call = {
        "role": "assistant",
        "id": "m1",
        "content": "",
        "tool_calls": [{"id": "c", "function": "search", "arguments": {}}],
    }
    messages = [
        {"role": "user", "content": "What?"}, call,
        {"role": "tool", "tool_call_id": "c", "function": "search", "content": FOUND},
        {"role": "assistant", "id": "m2", "content": "It is."},
    ]  # fmt: skip
    sample = {"id": "q", "epoch": 1, "messages": messages, "events": [event("m1", 10, 5, 1.5), event("m2", 20, 0, 2.5)]}
    log = {"eval": {"task": "t", "model": "m"}, "samples": [sample]}
    assert costs_of(log) == [(1, 15, 1, 1.5, None), (0, 20, 1, 2.5, None)]


def _own(*steps: Json, **more: Json) -> str:
    return json.dumps({"goodgain_trace": 1, "query_id": "q1", "steps": list(steps), **more}) + "\n"


def test_any_agent_can_write_its_costs(costs_of: Callable[..., Costs]) -> None:
    search = {"query": "bm25", "results": [{"doc_id": "d1"}]}
    log = _own(
        {"searches": [], "input_tokens": 5, "output_tokens": 1, "seconds": 0.5, "cost": 0.125},
        {"searches": [search], "input_tokens": 10, "output_tokens": 2, "seconds": 1.5, "cost": 0.25},
        {"searches": [search], "seconds": 2},
        {"searches": [], "output_tokens": 7},
    )
    assert costs_of(log, "q1.jsonl") == [(1, 15, 3, 2.0, 0.375), (2, None, None, 2.0, None), (0, None, 7, None, None)]


@pytest.mark.parametrize("value", [-1, True, "12", None, 1e300, [1], {"a": 1}])
def test_numbers_that_cannot_be_are_left_out(costs_of: Callable[..., Costs], value: Json) -> None:
    log = _own({"searches": [{"query": "x", "results": []}], "input_tokens": value, "output_tokens": 4, "cost": value})
    assert costs_of(log, "q1.jsonl") == [(1, None, 4, None, None)]


def test_a_query_without_a_search_has_one_row(costs_of: Callable[..., Costs]) -> None:
    assert costs_of(_own({"searches": [], "cost": 2}), "q1.jsonl") == [(0, None, None, None, 2.0)]
    with pytest.warns(GoodgainNotice, match="no tokens, seconds or prices"):
        assert costs_of(_own({"searches": []}), "q1.jsonl") == [(0, None, None, None, None)]


def test_costs_are_written_beside_the_run(tmp_path: Path) -> None:
    search = {"query": "bm25", "results": [{"doc_id": "d1"}]}
    for name in ("a", "b"):
        step = {"searches": [search], "output_tokens": 4, "cost": 0.5}
        (tmp_path / f"{name}.jsonl").write_text(_own(step, repeat=1) + _own(step, repeat=2))
    logs = [f"{name}={tmp_path / name}.jsonl" for name in ("a", "b")]
    CliRunner().invoke(
        program,
        ["convert", *logs, "-o", str(tmp_path / "{system}.run"), "--costs", str(tmp_path / "costs.jsonl")],
        standalone_mode=False,
        catch_exceptions=False,
    )
    rows = [json.loads(line) for line in (tmp_path / "costs.jsonl").read_text().splitlines()]
    assert [(row["query_id"], row["system"], row["replicate"]) for row in rows] == [
        ("q1", "a", "1"), ("q1", "a", "2"), ("q1", "b", "1"), ("q1", "b", "2"),
    ]  # fmt: skip
    assert rows[0] | {"query_id": 0, "system": 0, "replicate": 0} == {
        "query_id": 0, "system": 0, "replicate": 0, "iteration": 1, "calls": 1, "input_tokens": None, "output_tokens": 4,
        "seconds": None, "cost": 0.5,
    }  # fmt: skip
    convert_traces(
        tmp_path / "a.jsonl", tmp_path / "x.run", system="goodgain-1", tag="goodgain", costs=tmp_path / "c.parquet"
    )
    spent = pl.read_parquet(tmp_path / "c.parquet")
    assert spent.select("system", "replicate", "cost").rows() == [("x", "1", 0.5)], "as curve calls the run"
    with pytest.raises(InputError, match=r"name of its own"):
        convert_traces(
            tmp_path / "a.jsonl",
            tmp_path / "y.run",
            system="1",
            results=tmp_path / "r.jsonl",
            costs=tmp_path / "r.jsonl",
        )
    with pytest.raises(InputError, match=r"\.parquet or \.jsonl"):
        convert_traces(tmp_path / "a.jsonl", tmp_path / "y.run", costs=tmp_path / "c.csv")
