"""The queries of a log read by its shape: what tells them apart, and which of what was found belongs to each."""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import partial
from typing import Any, NamedTuple

from msgspec import Struct, field

from goodgain.files.json_text import loads
from goodgain.traces.conversations import record_tree as tree
from goodgain.traces.conversations.calls_by_shape import KINDS, Found, Place
from goodgain.traces.conversations.records_by_key import (
    ASKED,
    QUESTIONS,
    find_keyed_records,
    find_question,
    has_list,
    is_part,
)
from goodgain.traces.expected_values import OF_RUNS, QUERY_IDS, REPEATS, find_id, format_place, id_or_none
from goodgain.traces.input.sources import Source

#: The fields of a record with the query's id, the best first, then those with a conversation's.
_QUERY_IDS = (
    *(*QUERY_IDS, "sample_id", "instance_id", "example_id", "problem_id"),
    *("session_id", "sessionId", "conversation_id", "thread_id", "chat_id"),
)
#: Fields of steps and events: objects with one of them are parts of one trace.
_OF_STEPS = {
    *(*KINDS, "user", "assistant", "observation", "step", "step_number", "step_id", "turn", "iteration", "round"),
    *("timestamp", "time", "thought"),
}


class Key(NamedTuple):
    """The place of a query's record, what tells the query apart, and its id and the name of its run, if the log has them."""

    place: Place
    query: Any = None
    query_id: str | None = None
    trial: str | None = None


def split_traces(one: Found) -> list[Found]:
    """Return the traces of a list that a known format read, each with its own record."""
    if len(one.traces) < 2:
        return [one]
    records = [((*one.place, number), trace) for number, trace in enumerate(one.traces)]
    return [
        Found(place, (*one.holders, *[(place, trace.record)] * isinstance(trace.record, dict)), traces=[trace])
        for place, trace in records
    ]


class FoundQuery(Struct):
    """What was found of one query, its first record, and the questions of all its records."""

    key: Key
    record: Any = None
    members: list[Found] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)

    @property
    def question(self) -> str:
        """What the record asks; a record that is itself a call has arguments with the same names."""
        is_call = any(one.call and one.place == self.key.place for one in self.members)
        return find_question(self.record, [name for name in QUESTIONS if not is_call or name not in ("query", "input")])


def tell_queries_apart(
    calls: list[Found], locate: Callable[[Place], str], source: Source
) -> Callable[[Found], Key | None]:
    """Return what finds the key of a query.

    An id that all calls have around them tells queries apart; else the question of records that are calls; else records
    under the keys of an object; else records in a list with a question, or with lists of calls; else several ids in metadata.
    """
    if not calls:
        return lambda one: Key(())
    given = [source.query_path] if source.query_path else []
    for name in given if source.query_path.startswith("/") else (*given, *_QUERY_IDS):
        find_id = partial(_find_id, name=name)
        if all(map(find_id, calls)):
            source.summary.ids_from = source.summary.ids_from or name
            # The lists of records that have a list of calls each and are not parts of a query.
            records = [(one, key.place) for one in calls if (key := find_id(one)) and has_list(one, key.place)]
            whole = {place[:-1] for one, place in records if not is_part(dict(one.holders)[place])}
            return partial(_find_run, find=find_id, whole=whole, of_runs=all(map(_find_trial, calls)))
    if all((key := _find_by_question(one)) and not has_list(one, key.place) for one in calls):
        return partial(_find_run, find=_find_by_question, whole=set(), of_runs=all(map(_find_trial, calls)))
    keyed = find_keyed_records(calls)
    if not keyed.places and (level := _find_level(calls)):
        return lambda one: (
            Key(one.place[:level], one.place[:level], None, _find_trial(one)) if _is_below(one, level) else None
        )
    for name in () if keyed.places else map("metadata.{}".format, _QUERY_IDS):
        keys = [_find_id(one, name) for one in calls]
        if all(keys) and len({key.query for key in keys if key}) > 1:
            source.summary.ids_from = source.summary.ids_from or name
            return partial(_find_id, name=name)
    if keyed.doubtful and not source.query_path:
        shown = ", ".join([*(repr(key[:40]) for key in keyed.doubtful[:3]), *["..."][: len(keyed.doubtful) > 3]])
        source.summary.count("doubtful_keys", f"{shown} in {format_place(locate(keyed.place))}")
    return partial(_find_by_key, places=keyed.places)


def gather_queries(found: list[Found], find_key: Callable[[Found], Key | None], value: Any) -> list[FoundQuery]:
    """Group what was found; records without any call in the same lists, or under keys that are ids, are queries too."""
    groups: dict[Any, FoundQuery] = {}
    records: dict[Place, Any] = {}
    for one in found:
        key = find_key(one)
        if key is None and len(groups) == 1:
            next(iter(groups.values())).members.append(one)
        elif key is not None:
            if key.place not in records:
                records[key.place] = dict(one.holders).get(key.place) or _follow(value, key.place)
            record = records[key.place]
            group = groups.setdefault(key.query, FoundQuery(key, record))
            group.members.append(one)
            group.asked.append(find_question(record, ASKED))
    for list_place in {place[:-1]: None for place in records if place}:
        beside = _follow(value, list_place)
        members = beside.items() if isinstance(beside, dict) else enumerate(beside if isinstance(beside, list) else ())
        for index, record in members:
            place = (*list_place, index)
            if place in records or not isinstance(record, (dict, list)):
                continue
            key = find_key(Found((*place, ""), ((place, record),) if isinstance(record, dict) else ()))
            if key is not None and (key.query_id == index or (isinstance(beside, list) and find_question(record))):
                groups.setdefault(key.query, FoundQuery(key, record))
    return sorted(groups.values(), key=lambda group: [str(key).zfill(9) for key in group.key.place])


def are_runs_of_a_query(groups: list[FoundQuery]) -> bool:
    """Return whether the log says that it has several runs of a query."""
    asked = [text for group in groups if (text := group.key.query_id or group.question)]
    return len(set(asked)) < len(asked) and all(group.key.trial for group in groups)


def _find_id(one: Found, name: str) -> Key | None:
    """Return the place of the innermost object around a call that has an id, and the id."""
    for place, holder in reversed(one.holders):
        if (query_id := id_or_none(tree.follow_path(holder, name))) is not None:
            return Key(place, query_id, query_id)
    return None


def _find_by_question(one: Found) -> Key | None:
    """Return the place of the outermost object around a call that has a question, and the question."""
    place, holder = next(((place, holder) for place, holder in one.holders if find_question(holder)), ((), None))
    asked = find_question(holder, ASKED)
    return Key(place, asked) if asked else None


def _is_below(one: Found, level: int) -> bool:
    return len(one.place) + bool(one.traces) > level


def _find_by_key(one: Found, places: Collection[Place]) -> Key | None:
    """Return which of these places holds a call, with its last key as the id; without places all calls are of one query."""
    place = one.place[: len(next(iter(places), ()))]
    return Key(place, place, str(place[-1])) if place in places else None if places else Key(())


def _find_run(one: Found, find: Callable[[Found], Key | None], whole: set[Place], *, of_runs: bool) -> Key | None:
    """Return the key that `find` returns: whole records are queries of their own, and so are several runs of a query."""
    if (key := find(one)) is None:
        return None
    is_whole = key.place[:-1] in whole and not is_part(dict(one.holders)[key.place])
    trial = _find_trial(one) if of_runs else None
    return key._replace(query=(key.query, trial, key.place if is_whole else None), trial=trial)


def _find_trial(one: Found) -> str | None:
    """Return the name of the run that the innermost object around a call names; None if there is none."""
    values = (
        find_id(holder, OF_RUNS if place == one.place or is_part(holder) else REPEATS)
        for place, holder in reversed(one.holders)
    )
    return next(filter(None, values), None)


def _find_level(calls: list[Found]) -> int:
    """Return how many keys lead to the record of a query; 0 if all calls are of one query."""
    levels = range(1, min(len(one.place) for one in calls) + 1)
    lists = [level for level in levels if all(isinstance(one.place[level - 1], int) for one in calls)]
    held = [(one, level, dict(one.holders).get(one.place[:level], {})) for level in lists for one in calls]
    unasked = {level for one, level, record in held if not (_is_below(one, level) and find_question(record))}
    of_steps = {
        level
        for one, level, record in held
        if not one.traces and not (has_list(one, one.place[:level]) and _OF_STEPS.isdisjoint(record))
    }
    return next((level for without in (unasked, of_steps) for level in lists if level not in without), 0)


def _follow(value: Any, place: Place) -> Any:
    for key in place:
        if isinstance(value, str):
            value = loads(value)  # a field that holds JSON as text
        if isinstance(value, list) and isinstance(key, int) and key < len(value):
            value = value[key]
        else:
            value = value.get(key) if isinstance(value, dict) else None
    return value
