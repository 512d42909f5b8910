"""By shape: any JSON with calls of tools beside their outputs; only `--format shape` chooses it.

A call is an object with the name of a tool, its arguments and its output; or a call and its answer, paired by id, else in
order. Lists that a known format claims are read in that format.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from io import BytesIO
from itertools import chain, islice
from typing import Any, NamedTuple

import orjson
from msgspec import Struct, field

from goodgain.errors import InputError
from goodgain.files.json_text import loads, parse_if_json
from goodgain.traces.conversations import record_tree as tree
from goodgain.traces.conversations.calls_by_shape import KINDS, CallFinder, Found, Place, find_opening
from goodgain.traces.conversations.turns_and_calls import Conversation
from goodgain.traces.expected_values import format_place
from goodgain.traces.input.file_head import FileHead
from goodgain.traces.input.sources import Source
from goodgain.traces.model import ToolCall, Trace
from goodgain.traces.tool_outputs.result_objects import normalise_key

#: The fields of a record with the query's id, the best first, then those with a conversation's; and with its question.
_QUERY_IDS = (
    *("query_id", "question_id", "qid", "task_id", "sample_id", "instance_id", "example_id", "problem_id"),
    *("session_id", "sessionId", "conversation_id", "thread_id", "chat_id"),
)
_QUESTIONS = ("question", "query", "task", "prompt", "instruction", "problem", "user_query", "input", "topic")
#: Those that are never arguments of a call; and the fields with the name of a run of a query that was run several times.
_ASKED, _TRIALS = ("question", "user_query"), ("trial", "repeat")
#: Fields of steps and events: objects with one of them are parts of one trace.
_OF_STEPS = {
    *(*KINDS, "user", "assistant", "observation", "step", "step_number", "step_id", "turn", "iteration", "round"),
    *("timestamp", "time", "thought"),
}
#: Fields and kinds of a record that is one step or event: records with one id and lists of calls are one query only if they
#: have these.
_OF_PARTS = re.compile("(step|turn|iteration|iter|round|hop)(number|num|no|id|index|idx)?|observation|thought")
_SPEAKER = "ai|agent|assistant|model|llm|user|human|tool|function|action"
_PART = re.compile(
    rf"(on)?({_SPEAKER})?(message|call|step|turn|event|action|observation|result|response|output|use|start|end)s?|{_SPEAKER}"
)
#: The most values of a file, one a line: a small file can unpack to millions.
_MOST_VALUES = 500_000
#: How many values are tried in the known formats, and how deep ones.
_MAX_TRIED, _TRIED_DEPTH = 2000, 8


class _Key(NamedTuple):
    """The place of a query's record, what tells the query apart, and its id and the name of its run, if the log has them."""

    place: Place
    query: Any = None
    query_id: str | None = None
    trial: str | None = None


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
    found = [part for one in log.finder.find(log.value) for part in _split(one)]
    calls = [one for one in found if log.finder.is_certain(one)] or [one for one in found if one.call]
    find_key = _tell_apart(calls, log.value, source)
    for one in found:
        key = find_key(one)
        one.query = key and key.query
    found = log.finder.pair(found)
    if not any(one.call or one.traces for one in found):
        return
    made = [one.call.tool for one in found if one.call]
    if not any(one.traces for one in found) and not any(map(source.is_search, made)):
        shown = ", ".join(f"{tool} {count}" for tool, count in Counter(made).most_common(5))
        raise InputError(
            f"{source.path}: none of its calls is a search ({shown}); name the tools that search with tools="
        )
    for call in (one.call for one in found if one.call and find_key(one) is None):
        if source.is_search(call.tool):
            raise InputError(
                f"{call.at}: the search {call.tool} is outside the queries; write the searches in the format jsonl"
            )
    groups = _gather(found, find_key, log.value)
    are_runs = _are_runs(groups)
    for number, group in enumerate(groups, start=1):
        with source.handle_errors():
            trace = log.make_trace(group)
            trace.number = number if len(groups) > 1 else None
            trace.run = group.key.trial if are_runs else trace.run
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
        if len(asked := list(dict.fromkeys(filter(None, group.asked)))) > 1:
            raise InputError(
                f"{format_place(self.locate(group.key.place))}: the query id {group.key.query_id!r} has two questions, "
                f"{asked[0][:80]!r} and {asked[1][:80]!r}; name the field of the query's id with query_id="
            )
        if len(group.members) == 1 and group.members[0].traces:
            trace = group.members[0].traces[0]
            trace.record = trace.record if record is None else record
        else:
            _check_copies(group.members, self.locate)
            conversation = Conversation(self.source, record)
            if not any(one.text for one in group.members):
                conversation.user(group.question)
            has_joined = _report(group.members, conversation, len(group.key.place), self.source.is_search)
            trace = conversation.trace(self.locate(group.key.place))
            trace.iteration = "call" if has_joined else None
        trace.query_id = trace.query_id or group.key.query_id
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
    """What was found of one query, its first record, and the questions of all its records."""

    key: _Key
    record: Any = None
    members: list[Found] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)

    @property
    def question(self) -> str:
        """What the record asks; a record that is itself a call has arguments with the same names."""
        is_call = any(one.call and one.place == self.key.place for one in self.members)
        return _find_question(
            self.record, [name for name in _QUESTIONS if not is_call or name not in ("query", "input")]
        )


def _tell_apart(calls: list[Found], value: Any, source: Source) -> Callable[[Found], _Key | None]:
    """Return what finds the key of a query.

    An id that all calls have around them tells queries apart; else the question of records that are calls; else records
    with a question, or with lists of calls; else the conversations under the keys of an object.
    """
    if not calls:
        return lambda one: _Key(())
    given = [source.query_path] if source.query_path else []
    for name in given if source.query_path.startswith("/") else (*given, *_QUERY_IDS):
        find_id = partial(_find_id, name=name)
        if all(map(find_id, calls)):
            source.summary.ids_from = source.summary.ids_from or name
            whole = _list_whole_records(calls, find_id)
            return partial(_find_run, find=find_id, whole=whole, of_runs=all(map(_find_trial, calls)))
    if all((key := _find_asked(one)) and not _has_list(one, key.place) for one in calls):
        return partial(_find_run, find=_find_asked, whole=set(), of_runs=all(map(_find_trial, calls)))
    if level := _find_level(calls):
        return partial(_find_record, level=level)
    return partial(_find_named, places=_find_conversations(calls, value))


def _gather(found: list[Found], find_key: Callable[[Found], _Key | None], value: Any) -> list[_Group]:
    """Group what was found; records of the same lists without any call are queries too."""
    groups: dict[Any, _Group] = {}
    read: set[Place] = set()
    for one in found:
        key = find_key(one)
        if key is None and len(groups) == 1:
            next(iter(groups.values())).members.append(one)
        elif key is not None:
            read.add(key.place)
            record = _follow(value, key.place)
            group = groups.setdefault(key.query, _Group(key, record))
            group.members.append(one)
            group.asked.append(_find_question(record, _ASKED))
    for list_place in {place[:-1]: None for place in read if place}:
        beside = _follow(value, list_place)
        for index, record in enumerate(beside if isinstance(beside, list) else ()):
            place = (*list_place, index)
            if place in read or not isinstance(record, dict) or not _find_question(record):
                continue
            if (key := find_key(Found((*place, ""), ((place, record),)))) is not None:
                groups.setdefault(key.query, _Group(key, record))
    return sorted(groups.values(), key=lambda group: [str(key).zfill(9) for key in group.key.place])


def _are_runs(groups: list[_Group]) -> bool:
    """Return whether the log says that it has several runs of a query."""
    asked = [text for group in groups if (text := group.key.query_id or group.question)]
    return len(set(asked)) < len(asked) and all(group.key.trial for group in groups)


def _find_id(one: Found, name: str) -> _Key | None:
    """Return the place of the innermost object around a call that has an id, and the id."""
    for place, holder in reversed(one.holders):
        if (query_id := tree.id_or_none(tree.follow_path(holder, name))) is not None:
            return _Key(place, query_id, query_id)
    return None


def _find_asked(one: Found) -> _Key | None:
    """Return the place of the outermost object around a call that has a question, and the question."""
    place, holder = next(((place, holder) for place, holder in one.holders if _find_question(holder)), ((), None))
    asked = _find_question(holder, _ASKED)
    return _Key(place, asked) if asked else None


def _find_record(one: Found, level: int) -> _Key | None:
    """Return the record that so many keys lead to."""
    place = one.place[:level]
    return _Key(place, place, None, _find_trial(one)) if len(one.place) + bool(one.traces) > level else None


def _find_named(one: Found, places: set[Place]) -> _Key | None:
    """Return which of these places holds a call, with its last key as the id; without places all calls are of one query."""
    place = one.place[: len(next(iter(places), ()))]
    return _Key(place, place, str(place[-1])) if place in places else None if places else _Key(())


def _find_run(one: Found, find: Callable[[Found], _Key | None], whole: set[Place], *, of_runs: bool) -> _Key | None:
    """Return the key that `find` returns: whole records are queries of their own, and so are several runs of a query."""
    if (key := find(one)) is None:
        return None
    is_whole = key.place[:-1] in whole and not _is_part(dict(one.holders)[key.place])
    trial = _find_trial(one) if of_runs else None
    return key._replace(query=(key.query, trial, key.place if is_whole else None), trial=trial)


def _find_trial(one: Found) -> str | None:
    """Return the name of the run that the innermost object around a call names; None if there is none."""
    values = (tree.id_or_none(holder.get(name)) for _, holder in reversed(one.holders) for name in _TRIALS)
    return next(filter(None, values), None)


def _list_whole_records(calls: list[Found], find: Callable[[Found], _Key | None]) -> set[Place]:
    """Return the places of the lists of records that have a list of calls each and are not parts of a query."""
    found = [(one, key.place) for one in calls if (key := find(one)) is not None]
    records = [place for one, place in found if _has_list(one, place) and not _is_part(dict(one.holders)[place])]
    return {place[:-1] for place in records}


def _has_list(one: Found, place: Place) -> bool:
    """Return whether a call is in a list of the record at a place."""
    return bool(one.traces) or any(isinstance(key, int) for key in one.place[len(place) :])


def _is_part(record: Any) -> bool:
    """Return whether a record says that it is one step or event."""
    kinds = (normalise_key(kind) for name in KINDS if isinstance(kind := record.get(name), str))
    return any(map(_PART.fullmatch, kinds)) or any(_OF_PARTS.fullmatch(normalise_key(name)) for name in record)


def _find_conversations(calls: list[Found], value: Any) -> set[Place]:
    """Return the places of the conversations under the keys of one object; none if the calls are of one query.

    They begin with different questions, and two of them search: an agent's conversation may stand beside that of a judge.
    """
    depth = min(len(one.place) for one in calls)
    level = next((level for level in range(depth) if len({one.place[level] for one in calls}) > 1), depth)
    place = calls[0].place[:level]
    if level == depth or not isinstance(held := _follow(value, place), dict) or _find_question(held):
        return set()
    asked = {key: text for key, messages in held.items() if (text := find_opening(messages))}
    differ = len(set(asked.values())) == len(asked) and all(one.place[level] in asked for one in calls)
    return {(*place, key) for key in asked} if differ else set()


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


def _find_question(record: Any, names: Iterable[str] = _QUESTIONS) -> str:
    texts = (record.get(name) for name in names) if isinstance(record, dict) else ()
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
            if one.text and spoke and k <= last_search:
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
