"""goodgain's own format: JSON Lines with one trace per line. Any agent can write it.

    {"goodgain_trace": 1, "query_id": "q1", "turns": [{"user": "...", "steps": [{"searches": [
        {"tool": "search", "query": "...", "results": [{"doc_id": "d1", "url": "...", "title": "T", "snippet": "..."}]}
    ]}]}]}

A trace with one turn may have `steps` instead of `turns`. A search that failed has `error` instead of `results`. A search may
have further `arguments`, such as `{"page": 2}`. A step may have `opens`, a list of opened documents. A turn may have `answer`
and `citations`.

Lost: Nothing. A notice names unknown fields.
Query id: `query_id`, else `--query-id`, else `<file>-<k>`. The system is `system`.
Costs: `input_tokens`, `output_tokens`, `seconds` and `cost` of a step. If a step has no `seconds`, its seconds
are the difference between its `time` and the previous step's `time`.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any

from msgspec import UNSET, Struct, UnsetType, field
from msgspec.structs import asdict

from goodgain.logs.traces.conversations import UNANSWERED, FileHead, Source, ToolCall, Trace
from goodgain.logs.traces.conversations.record_objects import convert_record, walk_objects
from goodgain.logs.traces.conversations.tool_calls import mark_unanswered
from goodgain.logs.traces.conversations.turns_and_calls import read_usage
from goodgain.logs.traces.expected_values import expect_id, object_or_empty, unexpected_value
from goodgain.logs.traces.model import Step, Turn

_VERSION_FIELD = "goodgain_trace"
_VERSION = 1


class _Search(Struct):
    tool: str | None = None
    query: str | None = None
    queries: list[Any] | None = None
    arguments: Any = None
    results: list[Any] | None = None
    output: Any = None
    error: Any = None
    call_id: str | int | None = None
    time: Any = None


class _Step(Struct):
    searches: list[_Search]
    opens: list[Any] | None = None
    time: str | None = None
    input_tokens: Any = None
    output_tokens: Any = None
    seconds: Any = None
    cost: Any = None


class _Turn(Struct):
    steps: list[_Step]
    user: str | None = None
    query_id: str | int | None = None
    answer: str | None = None
    citations: list[Any] = field(default_factory=list)


class _Trace(Struct):
    version: Any = field(default=None, name=_VERSION_FIELD)
    query_id: str | int | None = None
    system: str | int | None = None
    repeat: Any = None
    session_id: str | int | None = None
    turns: list[_Turn] | UnsetType | None = UNSET
    steps: list[_Step] | UnsetType = UNSET
    user: str | None = None
    answer: str | None = None
    citations: list[Any] = field(default_factory=list)
    metadata: Any = None


_PARTS: dict[str, type[Struct]] = {"turns": _Turn, "steps": _Step, "searches": _Search}


def sniff(head: FileHead) -> bool:
    return any(_VERSION_FIELD in record for record in head.objects)


def read(source: Source) -> Iterator[Trace]:
    return source.traces(partial(_read_trace, source), is_one=lambda value: False)


def _report_unknown_item(source: Source, value: dict[str, Any], kind: type[Struct], at: str) -> None:
    """Report the fields of an object, and of the objects inside, that the format does not have."""
    names = kind.__struct_encode_fields__
    for name, held in value.items():
        if name not in names:
            source.not_understood(f"field {name!r}", f"{at}/{name}", ", ".join(sorted(names)))
        elif name in _PARTS:
            for part, part_at in walk_objects(held, f"{at}/{name}"):
                _report_unknown_item(source, part, _PARTS[name], part_at)


def _read_trace(source: Source, value: Any, at: str) -> Trace:
    """Read a record of the format `goodgain.trace`.

    Fields `steps` without `turns` make one turn; an empty list makes an empty turn.
    """
    record = convert_record(value, _Trace, at)
    _report_unknown_item(source, value, _Trace, at)
    if record.version != _VERSION:
        raise unexpected_value(f"{at}/{_VERSION_FIELD}", f"{_VERSION}, the version of the format", record.version)
    if (record.turns is UNSET) == (record.steps is UNSET):
        raise unexpected_value(at, "either 'turns' or 'steps'", value)

    if record.steps is not UNSET:
        turns = [_read_turn(source, 1, _Turn(record.steps, record.user, None, record.answer, record.citations), at)]
    else:
        given = enumerate(record.turns or [])
        turns = [_read_turn(source, index + 1, turn, f"{at}/turns/{index}") for index, turn in given] or [Turn(index=1)]

    query_id, session_id, tag = (expect_id(name, at) for name in (record.query_id, record.session_id, record.system))
    return Trace(turns, at, record=value, query_id=query_id, session_id=session_id, tag=tag)


def _read_turn(source: Source, number: int, turn: _Turn, at: str) -> Turn:
    """Make a turn.

    The calls of a step are its searches, then its opened documents. Opens are known if a step has the field `opens`.
    """
    steps = []
    for index, step in enumerate(turn.steps):
        calls = [
            ToolCall(
                search.tool or "search", f"{at}/steps/{index}/searches/{place}", expect_id(search.call_id, at), search.arguments,
                output=mark_unanswered(search.output if search.results is None else search.results),
                failed=search.error not in (None, "", False), is_search=True,
                queries=tuple(text for text in (search.query, *(search.queries or ())) if isinstance(text, str)) or None,
                remedy="write its results (a list, empty if it found nothing), its output, or its error",
            )
            for place, search in enumerate(step.searches)
        ]  # fmt: skip
        for place, opened in enumerate(step.opens or ()):
            held = object_or_empty(opened)
            page = ToolCall("open", f"{at}/steps/{index}/opens/{place}", is_search=False, opened=(opened,))
            page.output = held.get("output", UNANSWERED)
            page.failed = held.get("error") not in (None, "", False)
            calls.append(page)
        steps.append(Step(calls, time=step.time, usage=read_usage(asdict(step)) if source.costs else None))

    trace_turn = Turn(
        turn.user or "", steps, number, expect_id(turn.query_id, at), answer=turn.answer, cited=turn.citations
    )
    trace_turn.opens_are_known = any(step.opens is not None for step in turn.steps) or None
    return trace_turn
