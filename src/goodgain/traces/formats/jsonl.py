"""goodgain's own format: JSON Lines, one trace a line, in the shape of the model. Any agent can write it.

    {"goodgain_trace": 1, "query_id": "q1", "turns": [{"user": "...", "steps": [{"searches": [
        {"tool": "search", "query": "...", "results": [{"doc_id": "d1", "url": "...", "title": "T", "snippet": "..."}]}
    ]}]}]}

A trace with one turn may have `steps` instead of `turns`. A search that failed has `error` instead of `results`.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, TypeVar

from msgspec import UNSET, Struct, UnsetType, field

from goodgain.traces.conversations import record_tree as tree
from goodgain.traces.conversations.turns_and_calls import read_usage
from goodgain.traces.expected_values import expect_id, unexpected_value
from goodgain.traces.input.file_head import FileHead
from goodgain.traces.input.sources import Source
from goodgain.traces.model import Step, ToolCall, Trace, Turn

_VERSION_FIELD = "goodgain_trace"
_VERSION = 1
_Part = TypeVar("_Part", bound=Struct)

independent = tree.each_line_is_a_trace


class _Search(Struct):
    tool: str | None = None
    query: str | None = None
    queries: list[Any] | None = None
    results: list[Any] | None = None
    output: Any = None
    error: Any = None
    call_id: str | int | None = None
    time: Any = None


class _Step(Struct):
    searches: list[Any]
    time: str | None = None
    input_tokens: Any = None
    output_tokens: Any = None
    seconds: Any = None
    cost: Any = None


class _Turn(Struct):
    steps: list[Any]
    user: str | None = None
    query_id: str | int | None = None


class _Trace(Struct):
    version: Any = field(default=None, name=_VERSION_FIELD)
    query_id: str | int | None = None
    system: str | int | None = None
    repeat: Any = None
    session_id: str | int | None = None
    turns: list[Any] | UnsetType | None = UNSET
    steps: list[Any] | UnsetType = UNSET
    user: str | None = None
    metadata: Any = None


def sniff(head: FileHead) -> bool:
    """Return whether there are objects with `goodgain_trace`."""
    return any(_VERSION_FIELD in record for record in head.objects)


def read(source: Source) -> Iterator[Trace]:
    """Yield one trace per line."""
    return source.traces(partial(_read_trace, source), is_one=lambda value: False)


def _convert(source: Source, value: Any, kind: type[_Part], at: str) -> _Part:
    """Return a part of a trace, and report unknown fields: one may be a misspelt `searches`."""
    part = tree.convert(value, kind, at)
    names = kind.__struct_encode_fields__
    for name in [name for name in value if name not in names]:
        source.not_understood(f"field {name!r}", f"{at}/{name}", ", ".join(sorted(names)))
    return part


def _read_trace(source: Source, value: Any, at: str) -> Trace:
    found = _convert(source, value, _Trace, at)
    if found.version != _VERSION:
        raise unexpected_value(f"{at}/{_VERSION_FIELD}", f"{_VERSION}, the version of the format", found.version)
    if (found.turns is UNSET) == (found.steps is UNSET):
        raise unexpected_value(at, "either 'turns' or 'steps'", value)
    if found.steps is not UNSET:
        turns = [_read_turn(source, _Turn(found.steps, found.user), at)]
    else:
        turns = [
            _read_turn(source, _convert(source, turn, _Turn, turn_at), turn_at)
            for turn, turn_at in tree.walk(found.turns, f"{at}/turns")
        ] or [Turn()]
    for index, turn in enumerate(turns, start=1):
        turn.index = index
    query_id, session_id, tag = (expect_id(one, at) for one in (found.query_id, found.session_id, found.system))
    return Trace(turns, at, record=value, query_id=query_id, session_id=session_id, tag=tag)


def _read_turn(source: Source, turn: _Turn, at: str) -> Turn:
    steps = [_read_step(source, *step) for step in tree.walk(turn.steps, f"{at}/steps")]
    return Turn(turn.user or "", steps, query_id=expect_id(turn.query_id, at))


def _read_step(source: Source, value: dict[str, Any], at: str) -> Step:
    step = _convert(source, value, _Step, at)
    calls = [_read_search(source, *search) for search in tree.walk(step.searches, f"{at}/searches")]
    return Step([*calls], time=step.time, usage=read_usage(value) if source.costs else None)


def _read_search(source: Source, value: dict[str, Any], at: str) -> ToolCall:
    search = _convert(source, value, _Search, at)
    return ToolCall(
        search.tool or "search", at, expect_id(search.call_id, at),
        output=tree.or_unanswered(search.output if search.results is None else search.results),
        failed=search.error not in (None, "", False), is_search=True,
        queries=tuple(one for one in (search.query, *(search.queries or ())) if isinstance(one, str)),
        remedy="write its results (a list, empty if it found nothing), its output, or its error",
    )  # fmt: skip
