"""Groups the calls in a log by query, for the format `shape`."""

from collections.abc import Callable, Collection, Iterable
from functools import partial
from typing import Any, NamedTuple

from msgspec import Struct, field

from goodgain.files.json_text import loads
from goodgain.logs.traces.conversations.calls_by_shape import ASKED, KINDS, Found, Place
from goodgain.logs.traces.conversations.keyed_records import find_keyed_records
from goodgain.logs.traces.conversations.record_objects import follow_path
from goodgain.logs.traces.conversations.record_traits import QUESTIONS, find_question, has_list, is_part
from goodgain.logs.traces.expected_values import (
    CONVERSATION_IDS,
    OF_RUNS,
    PART_IDS,
    QUERY_IDS,
    RECORD_IDS,
    REPEATS,
    find_id,
    format_place,
    id_or_none,
    objects_in,
)
from goodgain.logs.traces.input.sources import Source

#: Fields with the id of a query, then fields with the id of a conversation, in order of preference.
_QUERY_IDS = (*QUERY_IDS, *RECORD_IDS, *CONVERSATION_IDS)
#: Fields of steps and events. An object with such a field is part of a trace.
_OF_STEPS = {
    *(*KINDS, "user", "assistant", "observation", "step", "step_number", "step_id", "turn", "iteration", "round"),
    *("timestamp", "time", "thought"),
}


class Key(NamedTuple):
    place: Place  # of the query's record
    query: Any = None  # identifies the query and the run
    query_id: str | None = None
    trial: str | None = None  # the name of the run


def split_traces(event: Found) -> list[Found]:
    """Split an event into one `Found` per trace. An event with fewer than two traces stays whole."""
    if len(event.traces) < 2:
        return [event]
    records = [((*event.place, number), trace) for number, trace in enumerate(event.traces)]
    parts: list[Found] = []
    for place, trace in records:
        holders = event.holders
        if isinstance(trace.record, dict):
            holders = (*holders, (place, trace.record))
        parts.append(Found(place, holders, traces=[trace]))
    return parts


class FoundQuery(Struct):
    key: Key
    record: Any = None  # the first record of the query
    members: list[Found] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)  # the questions of all records
    events: list[Any] = field(default_factory=list)  # the events of the query without a call

    @property
    def question(self) -> str:
        """The question in the record, else in another record or event of the query.

        If the record is a call, `query` and `input` are arguments, not questions. If the record is an event, its `prompt` may be
        the model's: the question of another event counts first.
        """
        is_call = any(call_event.call and call_event.place == self.key.place for call_event in self.members)
        names = [name for name in QUESTIONS if not is_call or name not in ("query", "input")]
        own_question = find_question(self.record, names)
        questions = [*self.asked, *(find_question(event, ASKED) for event in self.events)]
        other_questions = [*questions, *(_find_event_question(event) for event in self.events if not is_part(event))]

        candidates = [own_question, *other_questions]
        is_event = isinstance(self.record, dict) and is_part(self.record)
        if is_event:
            candidates = [*questions, *candidates]
        return next(filter(None, candidates), "")

    @property
    def models(self) -> tuple[str, ...]:
        """The models that the events of the query name."""
        holders = [holder for event in self.members for _, holder in event.holders[-2:]] + objects_in(self.events)
        named = (holder.get(name) for holder in holders for name in ("model", "model_name"))
        return tuple(sorted({name for name in named if isinstance(name, str) and name}))


def tell_queries_apart(
    calls: list[Found], value: Any, locate: Callable[[Place], str], source: Source
) -> Callable[[Found], Key | None]:
    """Return a function that finds the query of a call or an answer.

    The queries are identified by one property that all calls have. The properties are tried in this order:

    1. an id in an object around the call
    2. the question of a record with one call
    3. the key of a record, as in `{"q1": record, "q2": record}`
    4. the position of a record in a list, if records have questions or lists of calls
    5. the id of a trace, message or run, if events with this id have questions
    6. an id in metadata

    If no property fits, all calls belong to one query. A notice names ids that may tell queries apart.
    """
    if not calls:
        return lambda event: Key(())
    # The user's path comes first. A path with `/` is exact: no other field is tried.
    names = [source.query_path] if source.query_path else []
    if not source.query_path.startswith("/"):
        names += _QUERY_IDS
    for name in names:
        find_id = partial(_find_id, name=name)
        if all(map(find_id, calls)):
            source.summary.ids_from = source.summary.ids_from or name
            if not source.query_path:
                _report_other_ids(calls, find_id, source)
            # Lists whose records each have a list of calls and are not parts of a query.
            records = [(event, key.place) for event in calls if (key := find_id(event)) and has_list(event, key.place)]
            whole = {place[:-1] for event, place in records if not is_part(dict(event.holders)[place])}
            return partial(_find_run, find=find_id, whole=whole, of_runs=all(map(_find_trial, calls)))

    if all((key := _find_by_question(event)) and not has_list(event, key.place) for event in calls):
        return partial(_find_run, find=_find_by_question, whole=set(), of_runs=all(map(_find_trial, calls)))
    keyed = find_keyed_records(calls)
    if not keyed.places and (level := _find_level(calls)):
        return partial(_find_by_position, level=level)

    if not keyed.places and not source.query_path:
        for name in PART_IDS:
            find_id = partial(_find_id, name=name)
            if _have_questions(calls, find_id, name, value):
                source.summary.ids_from = source.summary.ids_from or name
                return find_id
        _report_other_ids(calls, lambda event: Key(()), source)
    for name in () if keyed.places else map("metadata.{}".format, _QUERY_IDS):
        keys = [_find_id(event, name) for event in calls]
        if all(keys) and len({key.query for key in keys if key}) > 1:
            source.summary.ids_from = source.summary.ids_from or name
            return partial(_find_id, name=name)

    if keyed.doubtful and not source.query_path:
        examples = ", ".join(repr(key[:40]) for key in keyed.doubtful[:3])
        if len(keyed.doubtful) > 3:
            examples += ", ..."
        source.summary.count("doubtful_keys", f"{examples} in {format_place(locate(keyed.place))}")
    return partial(_find_by_key, places=keyed.places)


def _have_questions(calls: list[Found], find_id: Callable[[Found], Key | None], name: str, value: Any) -> bool:
    """Return whether all calls have an id, and events with each id ask a question that no other id has."""
    keys = [key for key in map(find_id, calls) if key is not None]
    ids = {key.query_id for key in keys}
    if len(keys) < len(calls) or len(ids) < 2:
        return False

    call_places = {call_event.place for call_event in calls}
    questions: dict[str | None, str] = {}
    for list_place in {key.place[:-1] for key in keys if key.place}:
        members = _follow(value, list_place)
        for index, event in enumerate(members if isinstance(members, list) else ()):
            event_id = id_or_none(follow_path(event, name))
            if event_id in ids and (*list_place, index) not in call_places and not is_part(event):
                questions.setdefault(event_id, _find_event_question(event))

    return questions.keys() == ids and all(questions.values()) and len(set(questions.values())) == len(ids)


def _report_other_ids(calls: list[Found], find_key: Callable[[Found], Key | None], source: Source) -> None:
    """Count ids of traces, messages or runs that differ between the calls of one query: each may be a query.

    An id that each call has alone may be the id of the call.
    """
    for name in PART_IDS:
        of_query = _find_query_of_several(calls, find_key, name)
        are_unique = max(map(len, of_query.values()), default=0) < 2
        are_ids_of_calls = are_unique and not any(len(event.ids) > 1 for event in calls)
        if of_query and (name.startswith("trace") or not are_ids_of_calls):
            source.summary.count("other_ids", name)
            return


def _find_query_of_several(
    calls: list[Found], find_key: Callable[[Found], Key | None], name: str
) -> dict[str, set[Place]]:
    """Return the values of the field `name` in the first query with several values, each with the places of its events.

    Return an empty dict if there is no such query, if a call lacks the field, or if a field names the runs of the query.
    """
    by_query: dict[Any, dict[str, set[Place]]] = {}
    for event in calls:
        key = find_key(event)
        other_key = _find_id(event, name)
        if key is None or other_key is None or other_key.query_id is None or _find_trial(event) is not None:
            return {}
        by_query.setdefault(key.query, {}).setdefault(other_key.query_id, set()).add(other_key.place)
    return next((places for places in by_query.values() if len(places) > 1), {})


def gather_queries(
    events: list[Found], find_key: Callable[[Found], Key | None], value: Any, repeated: Collection[Place]
) -> list[FoundQuery]:
    """Group calls by query. A record without calls is a query too, if records in the same list or object have calls.

    The records at the places `repeated` are not queries: other records repeat all that they have.
    """
    groups: dict[Any, FoundQuery] = {}
    records: dict[Place, Any] = {}
    for call_event in events:
        key = find_key(call_event)
        if key is None and len(groups) == 1:
            next(iter(groups.values())).members.append(call_event)
        elif key is not None:
            if key.place not in records:
                records[key.place] = dict(call_event.holders).get(key.place) or _follow(value, key.place)
            record = records[key.place]
            group = groups.setdefault(key.query, FoundQuery(key, record))
            group.members.append(call_event)
            group.asked.append(find_question(record, ASKED))

    for list_place in {place[:-1]: None for place in records if place}:
        neighbours = _follow(value, list_place)
        members: Iterable[tuple[Any, Any]] = ()
        if isinstance(neighbours, dict):
            members = neighbours.items()
        elif isinstance(neighbours, list):
            members = enumerate(neighbours)
        for index, record in members:
            place = (*list_place, index)
            if place in records or place in repeated or not isinstance(record, (dict, list)):
                continue
            key = find_key(Found((*place, ""), ((place, record),) if isinstance(record, dict) else ()))
            if key is None:
                continue
            is_query = key.query_id == index or (isinstance(neighbours, list) and find_question(record))
            if is_query:
                groups.setdefault(key.query, FoundQuery(key, record))
            if key.query in groups and isinstance(record, dict):
                groups[key.query].events.append(record)

    if isinstance(value, list) and len(groups) == 1:
        group = next(iter(groups.values()))
        group.events += [event for event in objects_in(value) if find_question(event, ASKED)]
    return sorted(groups.values(), key=lambda group: [str(key).zfill(9) for key in group.key.place])


def find_own_id(event: Found) -> str | None:
    """Return the first id of a query or conversation in the objects around a call or text."""
    return next((key.query_id for name in _QUERY_IDS if (key := _find_id(event, name)) is not None), None)


def _find_id(event: Found, name: str) -> Key | None:
    """Return the key of the innermost object around the event with an id at the path `name`, or None if no object has one."""
    for place, holder in reversed(event.holders):
        if (query_id := id_or_none(follow_path(holder, name))) is not None:
            return Key(place, query_id, query_id)
    return None


def _find_by_question(event: Found) -> Key | None:
    """Return the key of the outermost object with a question. The question must be under one of the keys `ASKED`: else None."""
    asking = ((place, holder) for place, holder in event.holders if find_question(holder))
    place, holder = next(asking, ((), None))
    question = find_question(holder, ASKED)
    return Key(place, question) if question else None


def _find_by_position(event: Found, level: int) -> Key | None:
    if not _is_below(event, level):
        return None
    place = event.place[:level]
    return Key(place, place, None, _find_trial(event))


def _is_below(event: Found, level: int) -> bool:
    return len(event.place) + bool(event.traces) > level


def _find_by_key(event: Found, places: Collection[Place]) -> Key | None:
    """Return the key of the record in `places` that holds the call, or None. If `places` is empty, all calls get one key."""
    place = event.place[: len(next(iter(places), ()))]
    if place in places:
        return Key(place, place, str(place[-1]))
    if places:
        return None
    return Key(())


def _find_run(event: Found, find: Callable[[Found], Key | None], whole: set[Place], *, of_runs: bool) -> Key | None:
    """Return the key that `find` returns, with the event's run. Two runs of one query id are two queries.

    Two records of one list in `whole` (the places of such lists) are two queries too. `of_runs`: all calls name their run.
    """
    if (key := find(event)) is None:
        return None
    is_whole = key.place[:-1] in whole and not is_part(dict(event.holders)[key.place])
    trial = _find_trial(event) if of_runs else None
    return key._replace(query=(key.query, trial, key.place if is_whole else None), trial=trial)


def _find_trial(event: Found) -> str | None:
    """Return the name of the run in the innermost object that has one, or None.

    In a step, or in the event itself, `epoch` and `attempt` do not name a run: they may count retries.
    """
    values = (
        find_id(holder, OF_RUNS if place == event.place or is_part(holder) else REPEATS)
        for place, holder in reversed(event.holders)
    )
    return next(filter(None, values), None)


def _find_level(calls: list[Found]) -> int:
    """Return the depth at which lists hold one record per query, or 0 if all calls belong to one query."""
    levels = range(1, min(len(event.place) for event in calls) + 1)
    lists = [level for level in levels if all(isinstance(event.place[level - 1], int) for event in calls)]
    held = [(event, level, dict(event.holders).get(event.place[:level], {})) for level in lists for event in calls]
    unasked = {level for event, level, record in held if not (_is_below(event, level) and find_question(record))}
    of_steps = {level for event, level, record in held if not event.traces and _may_be_step(event, level, record)}
    return next((level for without in (unasked, of_steps) for level in lists if level not in without), 0)


def _may_be_step(event: Found, level: int, record: Any) -> bool:
    """Return whether a record may be a step: it has no list around the call, or a field of steps."""
    return not has_list(event, event.place[:level]) or not _OF_STEPS.isdisjoint(map(str.lower, record))


def _follow(value: Any, place: Place) -> Any:
    """Return the value at a place, or None. Parse fields on the way that hold JSON as text."""
    for key in place:
        if isinstance(value, str):
            value = loads(value)  # a field that holds JSON as text
        if isinstance(value, list) and isinstance(key, int) and key < len(value):
            value = value[key]
        else:
            value = value.get(key) if isinstance(value, dict) else None
    return value


def _find_event_question(event: dict[str, Any]) -> str:
    return find_question(event) or find_question(event.get("inputs")) or find_question(event.get("data"))
