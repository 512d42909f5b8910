"""By shape: any JSON with calls of tools beside their outputs; only `--format shape` chooses it.

A call is an object with the name of a tool, its arguments and its output; or a call and its answer, paired by id, else in
order. Lists that a known format claims are read in that format.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from io import BytesIO
from itertools import chain, islice
from typing import Any

import orjson
from msgspec import Struct, field

from goodgain.errors import InputError
from goodgain.files.json_text import loads, parse_if_json
from goodgain.traces.conversations import record_tree as tree
from goodgain.traces.conversations.calls_by_shape import KINDS, CallFinder, Found, Place
from goodgain.traces.conversations.turns_and_calls import Conversation
from goodgain.traces.expected_values import format_place
from goodgain.traces.input.file_head import FileHead
from goodgain.traces.input.sources import Source
from goodgain.traces.model import ToolCall, Trace

#: The fields of a record with the query's id, the best first, then those with a conversation's; and with its question.
_QUERY_IDS = (
    *("query_id", "question_id", "qid", "task_id", "sample_id", "instance_id", "example_id", "problem_id"),
    *("session_id", "sessionId", "conversation_id", "thread_id", "chat_id"),
)
_QUESTIONS = ("question", "query", "task", "prompt", "instruction", "problem", "user_query", "input", "topic")
#: Fields of steps and events: objects with one of them are parts of one trace.
_OF_STEPS = {
    *(*KINDS, "user", "assistant", "observation", "step", "step_number", "step_id", "turn", "iteration", "round"),
    *("timestamp", "time", "thought"),
}
#: The most values of a file, one a line: a small file can unpack to millions.
_MOST_VALUES = 500_000
#: How many values are tried in the known formats, and how deep ones.
_MAX_TRIED, _TRIED_DEPTH = 2000, 8

#: The place of a query's record, and the query's id, if the record has one.
_Key = tuple[Place, str | None]


def sniff(head: FileHead) -> bool:
    """Return False: only the caller chooses this format."""
    return False


def read(source: Source) -> Iterator[Trace]:
    """Yield one trace per query: the calls below one object with the query's id or question, else all calls of the file."""
    try:
        yield from _read_queries(source)
    except RecursionError:
        raise InputError(f"{source.path}: nests too deep; write its searches in the format jsonl") from None


def _read_queries(source: Source) -> Iterator[Trace]:
    log = _Log(source)
    found = [part for one in log.finder.pair(log.finder.find(log.value)) for part in _split(one)]
    if not any(one.call or one.traces for one in found):
        return
    made = [one.call.tool for one in found if one.call]
    if not any(one.traces for one in found) and not any(map(source.is_search, made)):
        shown = ", ".join(f"{tool} {count}" for tool, count in Counter(made).most_common(5))
        raise InputError(
            f"{source.path}: none of its calls is a search ({shown}); name the tools that search with tools="
        )
    groups = _group(found, log.value, source)
    for number, group in enumerate(groups, start=1):
        with source.handle_errors():
            trace = log.make_trace(group)
            trace.number = number if len(groups) > 1 else None
            yield trace


class _Log:
    """The values of a file, with their places in words."""

    def __init__(self, source: Source) -> None:
        self.source = source
        values = list(islice(_read_values(source), _MOST_VALUES + 1))
        if len(values) > _MOST_VALUES:
            raise InputError(
                f"{source.path}: has more than {_MOST_VALUES:,} lines, and a log read by its shape is held as a whole; write its "
                "queries to several files, or its searches in the format jsonl"
            )
        self._in_lines = not (len(values) == 1 and source.head.kind == "json")
        self._starts = [at for _, at in values]
        self.value: Any = [value for value, _ in values] if self._in_lines else values[0][0]
        self._tried = 0
        self.finder = CallFinder(self.locate, source.is_search, self._read_in_known_format, source.not_understood)

    def locate(self, place: Place) -> str:
        """Return a place as other formats name it."""
        start, rest = (self._starts[int(place[0])], place[1:]) if self._in_lines and place else (self._starts[0], place)
        return format_place(start) if not rest else start + "".join(f"/{key}" for key in rest)

    def _read_in_known_format(self, value: Any, place: Place) -> list[Trace] | None:
        """Return the traces of a value that a known format claims and reads without a fault; None for others."""
        if self._tried >= _MAX_TRIED or len(place) > _TRIED_DEPTH or not value:
            return None
        if isinstance(value, list) and not any(isinstance(member, dict) for member in value):
            return None
        self._tried += 1
        try:
            raw = orjson.dumps(value)
        except TypeError:  # a number beyond 64 bits, or lists 250 deep: no known format has them
            return None
        head = FileHead("value.json", raw, whole=True)
        if (read_format := self.source.find_reader(head)) is None:
            return None
        inner = replace(
            self.source, head=head, open=lambda: BytesIO(raw), inside=self.locate(place).partition(", at ")[2], skip=False,
            span=None,
        )  # fmt: skip
        try:
            traces = list(read_format(inner))
        except InputError:
            return None
        unknown = inner.take_unknown()
        made = _list_calls(traces)
        if not any(self.source.is_search(call.tool) if call.is_search is None else call.is_search for call in made):
            return None
        traces[0].unknown += unknown
        return traces

    def make_trace(self, group: _Group) -> Trace:
        """Return the trace of a query from what was found of it."""
        record = group.record
        if len(group.members) == 1 and group.members[0].traces:
            trace = group.members[0].traces[0]
            trace.record = trace.record if record is None else record
        else:
            _check_copies(group.members, self.locate)
            conversation = Conversation(self.source, record)
            if not any(one.text for one in group.members):
                conversation.user(_find_question(record))
            has_joined = _report(group.members, conversation, len(group.place), self.source.is_search)
            trace = conversation.trace(self.locate(group.place))
            trace.iteration = "call" if has_joined else None
        trace.query_id = trace.query_id or group.query_id
        return trace


def _read_values(source: Source) -> Iterator[tuple[Any, str]]:
    """Yield the values of a file with their places; of a text, those of its lines, with or without `data:`."""
    if source.head.kind not in ("text", "events"):
        yield from source.documents()
        return
    event = ""
    for number, line in enumerate(source.text().splitlines(), start=1):
        if line.startswith("event:"):
            event = line[6:].strip()
            continue
        text = line.removeprefix("data:").strip()
        if not text.startswith(("{", "[")):
            continue
        value = parse_if_json(text)
        if isinstance(value, dict) and event:
            value.setdefault(KINDS[1], event)
        if not isinstance(value, str):
            yield value, f"{source.path}, line {number}, at "


def _list_calls(traces: list[Trace]) -> list[ToolCall]:
    return [call for trace in traces for turn in trace.turns for step in turn.steps for call in step.calls]


# Queries


def _split(one: Found) -> list[Found]:
    """Return the traces of a list that a known format read, each with its own record."""
    if len(one.traces) < 2:
        return [one]
    parts = []
    for number, trace in enumerate(one.traces):
        place = (*one.place, number)
        own = ((place, trace.record),) if isinstance(trace.record, dict) else ()
        parts.append(Found(place, (*one.holders, *own), traces=[trace]))
    return parts


class _Group(Struct):
    """What was found of one query: the place of its record, the record, its id."""

    place: Place
    record: Any = None
    query_id: str | None = None
    members: list[Found] = field(default_factory=list)


def _group(found: list[Found], value: Any, source: Source) -> list[_Group]:
    """Return the queries in the order of the file.

    An id that all calls have around them tells queries apart; else records with a question, or with lists of calls.
    """
    calls = [one for one in found if one.call or one.traces]
    for name in [source.query_path] if source.query_path else _QUERY_IDS:
        keys = [_find_id(one, name) for one in calls]
        if None not in keys:
            source.summary.ids_from = source.summary.ids_from or name
            return _gather(found, partial(_find_id, name=name), value)
    if (level := _find_level(calls)) == 0:
        return [_Group((), value, members=found)]
    return _gather(found, lambda one: (one.place[:level], None) if len(one.place) > level else None, value)


def _gather(found: list[Found], get_key: Callable[[Found], _Key | None], value: Any) -> list[_Group]:
    """Group what was found; records of the same lists without any call are queries too."""
    groups: dict[Any, _Group] = {}
    for one in found:
        key = get_key(one)
        if key is None and len(groups) == 1:
            next(iter(groups.values())).members.append(one)
        elif key is not None:
            place, query_id = key
            if (query_id or place) not in groups:
                record = dict(one.holders).get(place) or _follow(value, place)
                groups[query_id or place] = _Group(place, record, query_id)
            groups[query_id or place].members.append(one)
    for held_in in dict.fromkeys(group.place[:-1] for group in groups.values() if group.place):
        beside = _follow(value, held_in)
        for index, record in enumerate(beside if isinstance(beside, list) else ()):
            place = (*held_in, index)
            if isinstance(record, dict):
                empty = get_key(Found((*place, ""), ((place, record),)))
                if empty is not None and _find_question(record):
                    groups.setdefault(empty[1] or place, _Group(place, record, empty[1]))
    return sorted(groups.values(), key=lambda group: [str(key).zfill(9) for key in group.place])


def _find_id(one: Found, name: str) -> _Key | None:
    """Return the place of the innermost object around a call that has an id, and the id."""
    for place, holder in reversed(one.holders):
        value = tree.follow_path(holder, name) if name.startswith("/") else holder.get(name)
        if (query_id := tree.id_or_none(value)) is not None:
            return place, query_id
    return None


def _find_level(calls: list[Found]) -> int:
    """Return how many keys lead to the record of a query; 0 if all calls are of one query."""
    records = [(one, dict(one.holders)) for one in calls]
    levels = range(1, min(len(one.place) for one in calls) + 1)
    in_lists = [level for level in levels if all(isinstance(one.place[level - 1], int) for one in calls)]
    with_question = (level for level in in_lists if all(_is_below_question(*pair, level) for pair in records))
    with_lists = (level for level in in_lists if all(_is_in_list_below(*pair, level) for pair in records))
    return next(chain(with_question, with_lists), 0)


def _is_below_question(one: Found, holders: dict[Place, Any], level: int) -> bool:
    is_below = len(one.place) + bool(one.traces) > level
    return is_below and _find_question(holders.get(one.place[:level])) != ""


def _is_in_list_below(one: Found, holders: dict[Place, Any], level: int) -> bool:
    is_in_list = any(isinstance(key, int) for key in one.place[level:])
    return bool(one.traces) or (is_in_list and _OF_STEPS.isdisjoint(holders.get(one.place[:level], ())))


def _find_question(record: Any) -> str:
    texts = (record.get(name) for name in _QUESTIONS) if isinstance(record, dict) else ()
    return next((text for text in texts if isinstance(text, str) and text.strip()), "")


def _follow(value: Any, place: Place) -> Any:
    for key in place:
        if isinstance(value, str):
            value = loads(value)  # a field that holds JSON as text
        if isinstance(value, list) and isinstance(key, int) and key < len(value):
            value = value[key]
        else:
            value = value.get(key) if isinstance(value, dict) else None
    return value


# Steps


def _check_copies(members: list[Found], locate: Callable[[Place], str]) -> None:
    """Refuse a record with the same call in two of its parts: a person must say which part counts."""
    first: dict[str, tuple[Place, Found]] = {}
    for one in members:
        part = tuple(0 if isinstance(key, int) else key for key in one.place)
        for call in [one.call] if one.call else _list_calls(one.traces):
            other_part, other = first.setdefault(repr((call.tool, call.arguments, call.queries)), (part, one))
            if part != other_part:
                raise InputError(
                    f"{locate(one.place)}: the call of {call.tool} is also at {locate(other.place).rpartition(', at ')[2]}, with "
                    "the same arguments; leave one of the two parts out, or write the searches in the format jsonl"
                )


def _report(members: list[Found], conversation: Conversation, depth: int, is_search: Callable[[str], bool]) -> bool:
    """Report calls in steps; return whether a list of whole calls is one step, although they may have been made in turn.

    What a user says after a call is a turn only if the agent spoke before: programs write pages and screenshots as the user.
    After the last search nobody's words are a turn: programs write reminders as the user, and a turn without a search would be
    the last one, which counts. Calls before an answer are one step, and so are the calls in a list of an object of a list; `depth`
    is that of the record.
    """
    searches = [k for k, one in enumerate(members) if one.traces or (one.call and is_search(one.call.tool))]
    last_search = max(searches, default=0)
    answered, has_joined, spoke = True, False, True
    last: Place | None = None
    for k, one in enumerate(members):
        if one.text is not None:
            if one.text and spoke and k < last_search:
                conversation.user(one.text)
            spoke = not one.text or spoke
            answered, last = True, None
        elif one.traces:
            for turn in one.traces[0].turns:
                conversation.user(turn.user_text)
                for step in turn.steps:
                    conversation.step(step.time)
                    for call in step.calls:
                        conversation.call(call)
        elif one.call is None:
            answered, last = True, None
        else:
            whole = one.call.answered and not one.is_apart
            numbers = [index for index, key in enumerate(one.place) if index >= depth and isinstance(key, int)]
            held_in = one.place[: numbers[-1]] if len(numbers) > 1 else one.place
            if whole and held_in == last:
                has_joined = True
            elif whole or answered:
                conversation.step()
            answered, last = whole, held_in if whole else None
            conversation.call(one.call)
            spoke = False
    return has_joined
