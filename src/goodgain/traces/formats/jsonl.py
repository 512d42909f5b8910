"""goodgain's own format: JSON Lines, one trace a line, in the shape of the pivot. What an unknown agent should write.

    {"goodgain_trace": 1, "query_id": "q1", "turns": [{"user": "...", "steps": [{"searches": [
        {"tool": "search", "query": "...", "results": [{"doc_id": "d1", "url": "...", "title": "T", "snippet": "..."}]}
    ]}]}]}

`steps` may stand in the trace itself if it has one turn. A search that failed has `error` instead of `results`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from goodgain.traces.input.beginning import Head
from goodgain.traces.input.checks import a_list, an_object, id_text, optional_text, wrong
from goodgain.traces.input.sources import Source
from goodgain.traces.model import UNANSWERED, Step, ToolCall, Trace, Turn

_MARK = "goodgain_trace"
_VERSION = 1
_TRACE = {_MARK, "query_id", "system", "session_id", "turns", "steps", "user", "metadata"}
_TURN = {"user", "steps", "query_id"}
_STEP = {"searches", "time"}
_SEARCH = {"tool", "query", "queries", "results", "output", "error", "call_id", "time"}


def sniff(head: Head) -> bool:
    """Objects with `goodgain_trace`."""
    return any(_MARK in record for record in head.objects)


def independent(_: Head) -> bool:
    """Each line is a trace of its own."""
    return True


def read(source: Source) -> Iterator[Trace]:
    """One trace a line."""
    return source.traces(lambda value, at: _trace(source, value, at), is_one=lambda value: False)


def _trace(source: Source, value: Any, at: str) -> Trace:
    record = _known(source, value, _TRACE, at)
    if record.get(_MARK) != _VERSION:
        raise wrong(f"{at}/{_MARK}", f"{_VERSION}, the version of the format", record.get(_MARK))
    if ("turns" in record) == ("steps" in record):
        raise wrong(at, "either 'turns' or 'steps'", record)
    turns = [record] if "steps" in record else a_list(record["turns"], f"{at}/turns")
    places = [at] if "steps" in record else [f"{at}/turns/{index}" for index in range(len(turns))]
    read_turns = [_turn(source, turn, place, record) for turn, place in zip(turns, places, strict=True)] or [Turn()]
    for index, turn in enumerate(read_turns, start=1):
        turn.index = index
    return Trace(
        read_turns, at, record=record,
        query_id=id_text(record.get("query_id"), f"{at}/query_id"),
        session_id=id_text(record.get("session_id"), f"{at}/session_id"),
        tag=id_text(record.get("system"), f"{at}/system"),
    )  # fmt: skip


def _known(source: Source, value: Any, names: set[str], at: str) -> dict[str, Any]:
    """An object, with word of the fields that the format does not know: one may be a misspelt `searches`."""
    found = an_object(value, at)
    for name in found:
        if name not in names:
            source.not_understood(f"field {name!r}", f"{at}/{name}", ", ".join(sorted(names)))
    return found


def _turn(source: Source, value: Any, at: str, record: dict[str, Any]) -> Turn:
    turn = value if value is record else _known(source, value, _TURN, at)
    if not isinstance(turn.get("steps"), list):
        raise wrong(f"{at}/steps", "a list of steps", turn.get("steps"))
    own_id = None if value is record else id_text(turn.get("query_id"), f"{at}/query_id")
    steps = [_step(source, step, f"{at}/steps/{index}") for index, step in enumerate(turn["steps"])]
    return Turn(optional_text(turn.get("user"), f"{at}/user") or "", steps, query_id=own_id)


def _step(source: Source, value: Any, at: str) -> Step:
    step = _known(source, value, _STEP, at)
    time = optional_text(step.get("time"), f"{at}/time")
    if not isinstance(step.get("searches"), list):
        raise wrong(f"{at}/searches", "a list of searches, empty for a step without one", step.get("searches"))
    searches = step["searches"]
    calls = [_search(source, search, f"{at}/searches/{index}") for index, search in enumerate(searches)]
    return Step([*calls], time=time)


def _search(source: Source, value: Any, at: str) -> ToolCall:
    search = _known(source, value, _SEARCH, at)
    results = search.get("results")
    queries = a_list(search.get("queries"), f"{at}/queries")
    if "query" in search:
        queries = [optional_text(search["query"], f"{at}/query") or "", *queries]
    if results is None:
        output = search.get("output")
        found = UNANSWERED if output is None else output
    else:
        found = a_list(results, f"{at}/results")
    return ToolCall(
        optional_text(search.get("tool"), f"{at}/tool") or "search", at,
        id_text(search.get("call_id"), f"{at}/call_id"),
        output=found, failed=search.get("error") not in (None, "", False), is_search=True,
        queries=tuple(query for query in queries if isinstance(query, str)),
        remedy="write its results (a list, empty if it found nothing), its output, or its error",
    )  # fmt: skip
