"""Logs with something of an unknown kind in them, for the formats of `more_logs.py`."""

from __future__ import annotations

from .story import Json

_TIME = "2026-01-01T01:00:00Z"


def _observation(kind: str, name: str) -> Json:
    parent = None if name == "o1" else "o1"
    record = {"id": name, "traceId": "t0", "type": kind, "startTime": _TIME, "parentObservationId": parent}
    return {**record, "sessionId": "story"}


def _run(kind: str, name: str) -> Json:
    record = {"id": name, "trace_id": "r1", "run_type": kind, "start_time": _TIME}
    return {**record, "parent_run_id": None if name == "r1" else "r1", "extra": {"metadata": {"thread_id": "story"}}}


def _span(kind: str, number: int) -> Json:
    context = {"trace_id": f"{1:032x}", "span_id": f"{number:016x}", "parent_id": None if number == 1 else f"{1:016x}"}
    return {
        **context,
        "start_time_unix_nano": 1_767_229_200_000_000_000,
        "attributes": {"mlflow.spanType": f'"{kind}"'},
    }


def odd_items() -> dict[str, tuple[list[Json] | None, Json]]:
    """For each format where its log keeps a list of messages, steps or items, and something of an unknown kind for it.

    The place is None where the log is JSON Lines, and the thing a line of it.
    """
    return {
        "gemini": (["contents"], {"role": "model", "parts": [{"odd": 1}]}),
        "codex": (None, {"timestamp": "now", "type": "response_item", "payload": {"type": "odd"}}),
        "langfuse": (["traces", 0, "observations"], _observation("odd", "o8")),
        "langsmith": (None, _run("odd", "r8")),
        "mlflow": ([0, "data", "spans"], _span("ODD", 8)),
        "openai_agents": (None, {"type": "odd"}),
        "strands": ([], {"role": "odd", "content": []}),
        "autogen": (["messages"], {"type": "odd", "content": ""}),
        "smolagents": ([], {"odd": 1}),
        "mcp": (None, {"jsonrpc": "2.0", "id": 99, "result": {}}),
        "claude_code": (None, {"type": "odd", "sessionId": "story"}),
        "pydantic_ai": ([], {"kind": "response", "parts": [{"part_kind": "odd"}]}),
        "vercel_ai": ([], {"role": "odd", "parts": []}),
    }


def odd_logs() -> dict[str, tuple[Json, str]]:
    """For each format a log without a search, with one thing of an unknown kind in it; and where that stands."""
    said = {"role": "assistant", "id": "m1", "content": [{"type": "odd"}]}
    line = {"type": "assistant", "sessionId": "s", "uuid": "u1", "parentUuid": None, "message": said}
    return {
        "gemini": (
            [{"role": "user", "parts": [{"text": "?"}]}, {"role": "model", "parts": [{"odd": 1}]}],
            "/1/parts/0",
        ),
        "codex": ([{"timestamp": "now", "type": "odd", "payload": {}}], "/0"),
        "langfuse": ([_observation("AGENT", "o1"), _observation("odd", "o2")], "/1"),
        "langsmith": ([_run("chain", "r1"), _run("odd", "r2")], "/1"),
        "mlflow": ({"info": {}, "data": {"spans": [_span("AGENT", 1), _span("ODD", 2)]}}, "/data/spans/1"),
        "openai_agents": ([{"role": "user", "content": "?"}, {"type": "odd"}], "/1"),
        "strands": (
            [{"role": "assistant", "content": [{"toolUse": {"toolUseId": "t", "name": "look"}}, {"odd": 1}]}],
            "/0/content/1",
        ),
        "autogen": (
            [{"type": "TextMessage", "source": "user", "content": "?"}, {"type": "odd", "content": ""}],
            "/1",
        ),
        "smolagents": ([{"step_number": 1, "tool_calls": None, "observations": None}, {"odd": 1}], "/1"),
        "mcp": ([{"jsonrpc": "2.0", "id": 99, "result": {}}], "/0"),
        "claude_code": ([line], "/0/message/content/0"),
        "pydantic_ai": ([{"kind": "response", "parts": [{"part_kind": "odd"}]}], "/0/parts/0"),
        "vercel_ai": ([{"role": "assistant", "parts": [{"type": "step-start"}, {"type": "odd"}]}], "/0/parts/1"),
    }
