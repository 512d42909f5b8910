"""Groups the calls in a log by query, for the format `shape`."""

import re
from collections.abc import Callable, Collection, Iterable
from functools import partial
from typing import Any, NamedTuple

from msgspec import Struct, field

from goodgain.files.json_text import loads
from goodgain.logs.dedup.document_types import snake_case
from goodgain.logs.traces.conversations.calls_by_shape import ASKED, KINDS, Found, Place, find_opening
from goodgain.logs.traces.conversations.record_objects import follow_path
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
from goodgain.logs.traces.tool_outputs.result_objects import normalise_key

#: Fields with the id of a query, then fields with the id of a conversation, in order of preference.
_QUERY_IDS = (*QUERY_IDS, *RECORD_IDS, *CONVERSATION_IDS)
#: Fields of steps and events. An object with such a field is part of a trace.
_OF_STEPS = {
    *(*KINDS, "user", "assistant", "observation", "step", "step_number", "step_id", "turn", "iteration", "round"),
    *("timestamp", "time", "thought"),
}
#: Fields with the question of a record.
QUESTIONS = ("question", "query", "task", "prompt", "instruction", "problem", "user_query", "input", "topic")
#: Fields and types of a record that is a step or an event.
_OF_PARTS = re.compile("(step|turn|iteration|iter|round|hop)(number|num|no|id|index|idx)?|observation|thought")
_SPEAKER = "ai|agent|assistant|model|llm|user|human|tool|function|action"
_PART = re.compile(
    rf"(on)?({_SPEAKER})?(message|call|step|turn|event|action|observation|result|response|output|use|start|end)s?|{_SPEAKER}"
)
#: Last words of keys that name a part of a run, such as a step, an agent or a history.
_PART_WORDS = {
    *("step", "turn", "iteration", "iter", "round", "hop", "stage", "phase", "node", "span", "event", "message", "msg"),
    *("call", "toolu", "tool", "function", "action", "observation", "thought", "subquestion", "subquery", "subtask"),
    *("agent", "subagent", "assistant", "model", "llm", "ai", "system", "user", "human", "planner", "researcher"),
    *("searcher", "retriever", "worker", "executor", "writer", "supervisor", "orchestrator", "manager", "coordinator"),
    *("router", "judge", "critic", "grader", "evaluator", "verifier", "reviewer"),
    *("history", "conversation", "transcript", "trajectory", "trace", "log", "input", "output", "response", "result"),
}
#: The suffix of a key: a number, letter or hash, as in `step2`, `agent_a`, `call-1f9c`.
_NUMBER = re.compile(r"(?<=[a-z])[\W_]*\d+$|[\W_]([a-z]|[0-9a-z]*\d[0-9a-z]*)$", re.IGNORECASE)
#: A query id: a word such as `query` with a number, or a text with three digits. Not a date, a Unix time or a URL.
_QUERY_ID = re.compile(
    r"(?!.*(20\d\d-?\d\d-?\d\d|://)|1\d{9})"
    r"((q|query|question|task|instance|example|problem|topic|case)(id)?[\W_]*\d+|(\D*\d){3}.*)",
    re.IGNORECASE,
)
_LONGEST_ID = 200


class Key(NamedTuple):
    place: Place  # of the query's record
    query: Any = None  # identifies the query and the run
    query_id: str | None = None
    trial: str | None = None  # the name of the run


def split_traces(event: Found) -> list[Found]:
    """Split `one` into one `Found` per trace. If `one` has fewer than two traces, return a list that holds only `one`."""
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
    paths = list(filter(None, [source.query_path]))
    for name in paths if source.query_path.startswith("/") else (*paths, *_QUERY_IDS):
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
    keyed = _find_keyed_records(calls)
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
            if key.query_id == index or (isinstance(neighbours, list) and find_question(record)):
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
    for place, holder in reversed(event.holders):
        if (query_id := id_or_none(follow_path(holder, name))) is not None:
            return Key(place, query_id, query_id)
    return None


def _find_by_question(event: Found) -> Key | None:
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
    if (key := find(event)) is None:
        return None
    is_whole = key.place[:-1] in whole and not is_part(dict(event.holders)[key.place])
    trial = _find_trial(event) if of_runs else None
    return key._replace(query=(key.query, trial, key.place if is_whole else None), trial=trial)


def _find_trial(event: Found) -> str | None:
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
    for key in place:
        if isinstance(value, str):
            value = loads(value)  # a field that holds JSON as text
        if isinstance(value, list) and isinstance(key, int) and key < len(value):
            value = value[key]
        else:
            value = value.get(key) if isinstance(value, dict) else None
    return value


class _KeyedRecords(NamedTuple):
    places: frozenset[Place] = frozenset()  # of records whose keys are query ids
    place: Place = ()  # of the object with the records
    doubtful: tuple[str, ...] = ()  # keys that may be query ids


def _find_keyed_records(calls: list[Found]) -> _KeyedRecords:
    """Return the records in the outermost object whose keys are query ids: `{"q1": record, "q2": record}`.

    Inside a record with a question, keys are not query ids.
    """
    doubt, is_asked = _KeyedRecords(), False
    for place, held in calls[0].holders:
        holds_all = all(event.place[: len(place)] == place != event.place for event in calls)
        if not holds_all or find_question(held, ASKED):
            break
        is_asked = is_asked or find_question(held) != ""
        records = _judge_records(held, place, calls, is_asked=is_asked)
        if records.places:
            return records
        doubt = records if records.doubtful else doubt
    return doubt


def _judge_records(held: dict[str, Any], place: Place, calls: list[Found], *, is_asked: bool) -> _KeyedRecords:
    """Decide whether keys of an object are query ids. If they are, return the places of their values. If in doubt, return the keys.

    If `is_asked` is true, the object or an outer object has a question. All values may belong to this one question.
    """
    searching_keys = {str(event.place[len(place)]): None for event in calls}
    alike = _select_alike(held, searching_keys)
    ids = _select_ids(key for key, value in held.items() if isinstance(value, (dict, list)))
    if max(len(alike), len(ids)) < 2 or _are_groups(alike.values()):
        return _KeyedRecords()

    openings = {key: next(filter(None, map(find_opening, _lists_of(value))), "") for key, value in alike.items()}
    questions = {key: text for key, value in alike.items() if (text := find_question(value, ASKED) or openings[key])}
    differ = searching_keys.keys() <= questions.keys() and 1 < len(questions) == len(set(questions.values()))
    are_several = len(searching_keys) > 1
    are_named = searching_keys.keys() <= ids and len(ids) > 1
    have_lists = all(has_list(event, event.place[: len(place) + 1]) for event in calls)
    questions_of_ids = [text for key in ids if (text := find_question(held[key], ASKED))]
    are_runs = len(questions_of_ids) > 1 and len(set(questions_of_ids)) == 1
    are_parts = _are_parts(alike, {*searching_keys, *questions})
    if not (are_parts or is_asked):
        if are_named and have_lists and not are_runs:
            return _KeyedRecords(frozenset((*place, key) for key in ids), place)
        if differ and are_several:
            return _KeyedRecords(frozenset((*place, key) for key in questions), place)

    are_objects = any(isinstance(value, dict) for value in alike.values())
    are_numbered = all(re.search(r"\d", key) for key in searching_keys)
    are_like_records = are_several and have_lists and (are_objects or are_numbered)
    is_doubtful = differ and are_several if are_parts else are_named or differ or are_like_records
    if is_doubtful:
        return _KeyedRecords(frozenset(), place, tuple(alike))
    return _KeyedRecords()


def _select_alike(held: dict[str, Any], searching_keys: Collection[str]) -> dict[str, Any]:
    values: list[Any] = [held.get(key) for key in searching_keys]
    if all(isinstance(value, list) for value in values):
        return {key: value for key, value in held.items() if isinstance(value, list)}
    if not all(isinstance(value, dict) for value in values):
        return {}
    shared = set(values[0]).intersection(*values)
    return {key: value for key, value in held.items() if isinstance(value, dict) and not shared.isdisjoint(value)}


def _are_groups(values: Iterable[Any]) -> bool:
    lists = (members for value in values if not find_question(value, ASKED) for members in _lists_of(value))
    return any(find_question(member, ASKED) for members in lists for member in objects_in(members))


def _are_parts(alike: dict[str, Any], keys: Collection[str]) -> bool:
    records = [value for value in alike.values() if isinstance(value, dict)]
    named = ((value, record) for record in records for value in record.values() if isinstance(value, str))
    names_other = (value in alike and alike[value] is not record for value, record in named)
    return any(map(_names_part, keys)) or any(map(is_part, records)) or any(names_other)


def _names_part(key: str) -> bool:
    """Return whether a key names a part of a run, such as a step. `user7` names a person, not a part."""
    name = _NUMBER.sub("", key)
    word = snake_case(name).rpartition("_")[2]
    is_person = word in ("user", "human") and name != key
    return not is_person and not {word, word.removesuffix("s")}.isdisjoint(_PART_WORDS)


def _select_ids(keys: Iterable[str]) -> set[str]:
    """Return the keys that look like query ids. Return no keys if their forms differ, or if they are list positions (0, 1, 2)."""
    short = [key for key in keys if len(key) <= _LONGEST_ID]
    ids = {key for key in short if _QUERY_ID.fullmatch(key)}
    if any(map(str.isdecimal, ids)):
        ids |= set(filter(str.isdecimal, short))
    numbers = [int(key) for key in ids if key.isdecimal()]
    span_of_numbers = max(numbers, default=0) - min(numbers, default=0)
    are_positions = len(numbers) == len(ids) and span_of_numbers < 2 * len(ids)
    beginnings = {re.split(r"\d", key, maxsplit=1)[0] for key in ids}
    has_one_form = len(beginnings) == 1 or len(set(map(len, ids))) == 1
    return ids if has_one_form and not are_positions else set()


def _lists_of(value: Any) -> list[Any]:
    members = value.values() if isinstance(value, dict) else [value]
    return [member for member in members if isinstance(member, list)]


def find_question(record: Any, names: Iterable[str] = QUESTIONS) -> str:
    texts = (record.get(name) for name in names) if isinstance(record, dict) else ()
    return next((text for text in texts if isinstance(text, str) and text.strip()), "")


def _find_event_question(event: dict[str, Any]) -> str:
    return find_question(event) or find_question(event.get("inputs")) or find_question(event.get("data"))


def has_list(event: Found, place: Place) -> bool:
    return bool(event.traces) or any(isinstance(key, int) for key in event.place[len(place) :])


def is_part(record: Any) -> bool:
    kinds = (normalise_key(kind) for name in KINDS if isinstance(kind := record.get(name), str))
    return any(map(_PART.fullmatch, kinds)) or any(_OF_PARTS.fullmatch(normalise_key(name)) for name in record)
