"""Decides whether the keys of an object in a log read by its shape are the ids of queries: `{"q1": record, "q2": record}`."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from typing import Any, NamedTuple

from goodgain.dedup.document_types import snake_case
from goodgain.traces.conversations import record_tree as tree
from goodgain.traces.conversations.calls_by_shape import KINDS, Found, Place, find_opening
from goodgain.traces.tool_outputs.result_objects import normalise_key

#: The fields of a record with its question, and those that are never arguments of a call.
QUESTIONS = ("question", "query", "task", "prompt", "instruction", "problem", "user_query", "input", "topic")
ASKED = ("question", "user_query")
#: Fields and kinds of a record that is one step or event.
_OF_PARTS = re.compile("(step|turn|iteration|iter|round|hop)(number|num|no|id|index|idx)?|observation|thought")
_SPEAKER = "ai|agent|assistant|model|llm|user|human|tool|function|action"
_PART = re.compile(
    rf"(on)?({_SPEAKER})?(message|call|step|turn|event|action|observation|result|response|output|use|start|end)s?|{_SPEAKER}"
)
#: The last word of a key that names a part of a run: a step, an agent, or a list of what was said or done.
_PART_WORDS = {
    *("step", "turn", "iteration", "iter", "round", "hop", "stage", "phase", "node", "span", "event", "message", "msg"),
    *("call", "toolu", "tool", "function", "action", "observation", "thought", "subquestion", "subquery", "subtask"),
    *("agent", "subagent", "assistant", "model", "llm", "ai", "system", "user", "human", "planner", "researcher"),
    *("searcher", "retriever", "worker", "executor", "writer", "supervisor", "orchestrator", "manager", "coordinator"),
    *("router", "judge", "critic", "grader", "evaluator", "verifier", "reviewer"),
    *("history", "conversation", "transcript", "trajectory", "trace", "log", "input", "output", "response", "result"),
}
#: What follows the last word of a key: its number, letter or hash, as in `step2`, `agent_a`, `call-1f9c`.
_NUMBER = re.compile(r"(?<=[a-z])[\W_]*\d+$|[\W_]([a-z]|[0-9a-z]*\d[0-9a-z]*)$", re.IGNORECASE)
#: An id: a word for a query with its number, or a text with three digits. No date, time in seconds, or address.
_QUERY_ID = re.compile(
    r"(?!.*(20\d\d-?\d\d-?\d\d|://)|1\d{9})"
    r"((q|query|question|task|instance|example|problem|topic|case)(id)?[\W_]*\d+|(\D*\d){3}.*)",
    re.IGNORECASE,
)
_LONGEST_ID = 200


class KeyedRecords(NamedTuple):
    """The places of records that are queries; else the place and keys of records that may be some."""

    places: frozenset[Place] = frozenset()
    place: Place = ()
    doubtful: tuple[str, ...] = ()


def find_keyed_records(calls: list[Found]) -> KeyedRecords:
    """Return the records under the keys of the outermost object whose values are queries, or may be.

    An object inside a record with a question has none: the question is that of the query.
    """
    doubt, is_asked = KeyedRecords(), False
    for place, held in calls[0].holders:
        holds_all = all(one.place[: len(place)] == place != one.place for one in calls)
        if not holds_all or find_question(held, ASKED):
            break
        is_asked = is_asked or find_question(held) != ""
        found = _judge_records(held, place, calls, is_asked=is_asked)
        if found.places:
            return found
        doubt = found if found.doubtful else doubt
    return doubt


def _judge_records(held: dict[str, Any], place: Place, calls: list[Found], *, is_asked: bool) -> KeyedRecords:
    """Return which values of an object are queries, or which may be.

    `is_asked`: a field of an object around them may be the question of all.
    """
    searching = {str(one.place[len(place)]): None for one in calls}
    alike = _select_alike(held, searching)
    ids = _select_ids(key for key, value in held.items() if isinstance(value, (dict, list)))
    if max(len(alike), len(ids)) < 2 or _are_groups(alike.values()):
        return KeyedRecords()
    openings = {key: next(filter(None, map(find_opening, _lists_of(value))), "") for key, value in alike.items()}
    questions = {key: text for key, value in alike.items() if (text := find_question(value, ASKED) or openings[key])}
    differ = searching.keys() <= questions.keys() and 1 < len(questions) == len(set(questions.values()))
    are_several = len(searching) > 1
    are_named = searching.keys() <= ids and len(ids) > 1
    have_lists = all(has_list(one, one.place[: len(place) + 1]) for one in calls)
    asked = [text for key in ids if (text := find_question(held[key], ASKED))]
    are_runs = len(asked) > 1 and len(set(asked)) == 1
    are_parts = _are_parts(alike, {*searching, *questions})
    if not (are_parts or is_asked):
        if are_named and have_lists and not are_runs:
            return KeyedRecords(frozenset((*place, key) for key in ids), place)
        if differ and are_several:
            return KeyedRecords(frozenset((*place, key) for key in questions), place)
    are_objects = any(isinstance(value, dict) for value in alike.values())
    are_numbered = all(re.search(r"\d", key) for key in searching)
    are_like_records = are_several and have_lists and (are_objects or are_numbered)
    is_doubtful = differ and are_several if are_parts else are_named or differ or are_like_records
    return KeyedRecords(frozenset(), place, tuple(alike)) if is_doubtful else KeyedRecords()


def _select_alike(held: dict[str, Any], searching: Collection[str]) -> dict[str, Any]:
    """Return the values of an object that are like those with calls: all lists, or all objects that share a field."""
    values: list[Any] = [held.get(key) for key in searching]
    if all(isinstance(value, list) for value in values):
        return {key: value for key, value in held.items() if isinstance(value, list)}
    if not all(isinstance(value, dict) for value in values):
        return {}
    shared = set(values[0]).intersection(*values)
    return {key: value for key, value in held.items() if isinstance(value, dict) and not shared.isdisjoint(value)}


def _are_groups(values: Iterable[Any]) -> bool:
    """Return whether one of the values holds a list of records with questions, and has none itself."""
    return any(
        tree.any_object(members, lambda member: find_question(member, ASKED) != "")
        for value in values
        if not find_question(value, ASKED)
        for members in _lists_of(value)
    )


def _are_parts(alike: dict[str, Any], keys: Collection[str]) -> bool:
    """Return whether the values are parts of one run: their keys or fields say so, or one names the key of another."""
    records = [value for value in alike.values() if isinstance(value, dict)]
    named = ((value, record) for record in records for value in record.values() if isinstance(value, str))
    names_other = (value in alike and alike[value] is not record for value, record in named)
    return any(map(_names_part, keys)) or any(map(is_part, records)) or any(names_other)


def _names_part(key: str) -> bool:
    """Return whether a key names a part of a run; a user with a number is a person."""
    name = _NUMBER.sub("", key)
    word = snake_case(name).rpartition("_")[2]
    is_person = word in ("user", "human") and name != key
    return not is_person and not {word, word.removesuffix("s")}.isdisjoint(_PART_WORDS)


def _select_ids(keys: Iterable[str]) -> set[str]:
    """Return the keys that are ids of queries: of one form, and not the positions in a list."""
    short = [key for key in keys if len(key) <= _LONGEST_ID]
    ids = {key for key in short if _QUERY_ID.fullmatch(key)}
    if any(map(str.isdecimal, ids)):
        ids |= set(filter(str.isdecimal, short))
    numbers = [int(key) for key in ids if key.isdecimal()]
    are_positions = len(numbers) == len(ids) and max(numbers, default=0) - min(numbers, default=0) < 2 * len(ids)
    beginnings = {re.split(r"\d", key, maxsplit=1)[0] for key in ids}
    has_one_form = len(beginnings) == 1 or len(set(map(len, ids))) == 1
    return ids if has_one_form and not are_positions else set()


def _lists_of(value: Any) -> list[Any]:
    members = value.values() if isinstance(value, dict) else [value]
    return [member for member in members if isinstance(member, list)]


def find_question(record: Any, names: Iterable[str] = QUESTIONS) -> str:
    """Return the question of a record; empty if it has none."""
    texts = (record.get(name) for name in names) if isinstance(record, dict) else ()
    return next((text for text in texts if isinstance(text, str) and text.strip()), "")


def has_list(one: Found, place: Place) -> bool:
    """Return whether a call is in a list of the record at a place."""
    return bool(one.traces) or any(isinstance(key, int) for key in one.place[len(place) :])


def is_part(record: Any) -> bool:
    """Return whether a record says that it is one step or event."""
    kinds = (normalise_key(kind) for name in KINDS if isinstance(kind := record.get(name), str))
    return any(map(_PART.fullmatch, kinds)) or any(_OF_PARTS.fullmatch(normalise_key(name)) for name in record)
