"""goodgain's own format: JSON Lines, one trace a line, in the shape of the model. Any agent can write it.

    {"goodgain_trace": 1, "query_id": "q1", "turns": [{"user": "...", "steps": [{"searches": [
        {"tool": "search", "query": "...", "results": [{"doc_id": "d1", "url": "...", "title": "T", "snippet": "..."}]}
    ]}]}]}

A trace with one turn may have `steps` instead of `turns`. A search that failed has `error` instead of `results`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from goodgain.traces.conversations.usage import read_usage
from goodgain.traces.input.checks import expect_id, expect_list, expect_object, expect_optional_text, unexpected_value
from goodgain.traces.input.file_head import FileHead
from goodgain.traces.input.sources import Source
from goodgain.traces.model import UNANSWERED, Step, ToolCall, Trace, Turn

_VERSION_FIELD = "goodgain_trace"
_VERSION = 1
_TRACE_FIELDS = {_VERSION_FIELD, "query_id", "system", "repeat", "session_id", "turns", "steps", "user", "metadata"}
_TURN_FIELDS = {"user", "steps", "query_id"}
_STEP_FIELDS = {"searches", "time", "input_tokens", "output_tokens", "seconds", "cost"}
_SEARCH_FIELDS = {"tool", "query", "queries", "results", "output", "error", "call_id", "time"}


def sniff(head: FileHead) -> bool:
    """Return whether there are objects with `goodgain_trace`."""
    return any(_VERSION_FIELD in record for record in head.objects)


def independent(_: FileHead) -> bool:
    """Return True: each line is a trace of its own."""
    return True


def read(source: Source) -> Iterator[Trace]:
    """Yield one trace a line."""
    return source.traces(lambda value, at: _read_trace(source, value, at), is_one=lambda value: False)


def _read_trace(source: Source, value: Any, at: str) -> Trace:
    record = _check_fields(source, value, _TRACE_FIELDS, at)
    if record.get(_VERSION_FIELD) != _VERSION:
        raise unexpected_value(
            f"{at}/{_VERSION_FIELD}", f"{_VERSION}, the version of the format", record.get(_VERSION_FIELD)
        )
    if ("turns" in record) == ("steps" in record):
        raise unexpected_value(at, "either 'turns' or 'steps'", record)
    turns = [record] if "steps" in record else expect_list(record["turns"], f"{at}/turns")
    places = [at] if "steps" in record else [f"{at}/turns/{index}" for index in range(len(turns))]
    read_turns = [_read_turn(source, turn, place, record) for turn, place in zip(turns, places, strict=True)] or [
        Turn()
    ]
    for index, turn in enumerate(read_turns, start=1):
        turn.index = index
    return Trace(
        read_turns, at, record=record,
        query_id=expect_id(record.get("query_id"), f"{at}/query_id"),
        session_id=expect_id(record.get("session_id"), f"{at}/session_id"),
        tag=expect_id(record.get("system"), f"{at}/system"),
    )  # fmt: skip


def _check_fields(source: Source, value: Any, names: set[str], at: str) -> dict[str, Any]:
    """Return an object, and report fields that the format does not know: one may be a misspelt `searches`."""
    found = expect_object(value, at)
    for name in found:
        if name not in names:
            source.not_understood(f"field {name!r}", f"{at}/{name}", ", ".join(sorted(names)))
    return found


def _read_turn(source: Source, value: Any, at: str, record: dict[str, Any]) -> Turn:
    turn = value if value is record else _check_fields(source, value, _TURN_FIELDS, at)
    if not isinstance(turn.get("steps"), list):
        raise unexpected_value(f"{at}/steps", "a list of steps", turn.get("steps"))
    own_id = None if value is record else expect_id(turn.get("query_id"), f"{at}/query_id")
    steps = [_read_step(source, step, f"{at}/steps/{index}") for index, step in enumerate(turn["steps"])]
    return Turn(expect_optional_text(turn.get("user"), f"{at}/user") or "", steps, query_id=own_id)


def _read_step(source: Source, value: Any, at: str) -> Step:
    step = _check_fields(source, value, _STEP_FIELDS, at)
    time = expect_optional_text(step.get("time"), f"{at}/time")
    if not isinstance(step.get("searches"), list):
        raise unexpected_value(
            f"{at}/searches", "a list of searches, empty for a step without one", step.get("searches")
        )
    searches = step["searches"]
    calls = [_read_search(source, search, f"{at}/searches/{index}") for index, search in enumerate(searches)]
    return Step([*calls], time=time, usage=read_usage(step) if source.costs else None)


def _read_search(source: Source, value: Any, at: str) -> ToolCall:
    search = _check_fields(source, value, _SEARCH_FIELDS, at)
    results = search.get("results")
    queries = expect_list(search.get("queries"), f"{at}/queries")
    if "query" in search:
        queries = [expect_optional_text(search["query"], f"{at}/query") or "", *queries]
    if results is None:
        output = search.get("output")
        found = UNANSWERED if output is None else output
    else:
        found = expect_list(results, f"{at}/results")
    return ToolCall(
        expect_optional_text(search.get("tool"), f"{at}/tool") or "search", at,
        expect_id(search.get("call_id"), f"{at}/call_id"),
        output=found, failed=search.get("error") not in (None, "", False), is_search=True,
        queries=tuple(query for query in queries if isinstance(query, str)),
        remedy="write its results (a list, empty if it found nothing), its output, or its error",
    )  # fmt: skip
