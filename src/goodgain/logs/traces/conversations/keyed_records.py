"""Finds the records in an object whose keys are query ids, such as `{"q1": record, "q2": record}`, for the format `shape`."""

import re
from collections.abc import Collection, Iterable
from typing import Any, NamedTuple

from goodgain.logs.dedup.document_types import snake_case
from goodgain.logs.traces.conversations.calls_by_shape import ASKED, Found, Place, find_opening
from goodgain.logs.traces.conversations.record_traits import find_question, has_list, is_part
from goodgain.logs.traces.expected_values import objects_in

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


class KeyedRecords(NamedTuple):
    places: frozenset[Place] = frozenset()  # of records whose keys are query ids
    place: Place = ()  # of the object with the records
    doubtful: tuple[str, ...] = ()  # keys that may be query ids


def find_keyed_records(calls: list[Found]) -> KeyedRecords:
    """Return the records in the outermost object whose keys are query ids: `{"q1": record, "q2": record}`.

    Inside a record with a question, keys are not query ids.
    """
    doubt, is_asked = KeyedRecords(), False
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


def _judge_records(held: dict[str, Any], place: Place, calls: list[Found], *, is_asked: bool) -> KeyedRecords:
    """Decide whether keys of an object are query ids. If they are, return the places of their values. If in doubt, return the keys.

    If `is_asked` is true, the object or an outer object has a question. All values may belong to this one question.
    """
    searching_keys = {str(event.place[len(place)]): None for event in calls}  # a set in the order of the log
    alike = _select_alike(held, searching_keys)
    ids = _select_ids(key for key, value in held.items() if isinstance(value, (dict, list)))
    if max(len(alike), len(ids)) < 2 or _are_groups(alike.values()):
        return KeyedRecords()

    openings = {key: next(filter(None, map(find_opening, _lists_of(value))), "") for key, value in alike.items()}
    questions = {key: text for key, value in alike.items() if (text := find_question(value, ASKED) or openings[key])}
    # Each value with a search has a question, and no two questions are equal.
    differ = searching_keys.keys() <= questions.keys() and 1 < len(questions) == len(set(questions.values()))
    are_several = len(searching_keys) > 1
    are_named = searching_keys.keys() <= ids and len(ids) > 1
    have_lists = all(has_list(event, event.place[: len(place) + 1]) for event in calls)
    questions_of_ids = [text for key in ids if (text := find_question(held[key], ASKED))]
    are_runs = len(questions_of_ids) > 1 and len(set(questions_of_ids)) == 1  # of one question
    are_parts = _are_parts(alike, {*searching_keys, *questions})
    if not (are_parts or is_asked):
        if are_named and have_lists and not are_runs:
            return KeyedRecords(frozenset((*place, key) for key in ids), place)
        if differ and are_several:
            return KeyedRecords(frozenset((*place, key) for key in questions), place)

    are_objects = any(isinstance(value, dict) for value in alike.values())
    are_numbered = all(re.search(r"\d", key) for key in searching_keys)
    are_like_records = are_several and have_lists and (are_objects or are_numbered)
    is_doubtful = differ and are_several if are_parts else are_named or differ or are_like_records
    if is_doubtful:
        return KeyedRecords(frozenset(), place, tuple(alike))
    return KeyedRecords()


def _select_alike(held: dict[str, Any], searching_keys: Collection[str]) -> dict[str, Any]:
    """Return the fields with values like those under `searching_keys`: lists, or objects that have a key which all of these have.

    If these are partly lists and partly objects, return no fields.
    """
    values: list[Any] = [held.get(key) for key in searching_keys]
    if all(isinstance(value, list) for value in values):
        return {key: value for key, value in held.items() if isinstance(value, list)}
    if not all(isinstance(value, dict) for value in values):
        return {}
    shared = set(values[0]).intersection(*values)
    return {key: value for key, value in held.items() if isinstance(value, dict) and not shared.isdisjoint(value)}


def _are_groups(values: Iterable[Any]) -> bool:
    """Return whether a value without a question has a list of records with questions: its key names a group, such as `test`."""
    lists = (members for value in values if not find_question(value, ASKED) for members in _lists_of(value))
    return any(find_question(member, ASKED) for members in lists for member in objects_in(members))


def _are_parts(alike: dict[str, Any], keys: Collection[str]) -> bool:
    """Return whether a key names a part of a run, a record is such a part, or a record's text names another of the keys."""
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
