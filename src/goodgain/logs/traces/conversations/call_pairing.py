"""Pairs calls with answers, and recognises several records of one call, for the format `shape`."""

from collections import OrderedDict
from collections.abc import Callable
from itertools import islice, product
from typing import Any

import orjson

from goodgain.errors import InputError
from goodgain.files.json_text import parse_if_json
from goodgain.logs.traces.conversations.calls_by_shape import KINDS, Found, Place
from goodgain.logs.traces.conversations.event_times import find_event_time
from goodgain.logs.traces.conversations.messages import message_text
from goodgain.logs.traces.expected_values import format_place
from goodgain.logs.traces.input.sources import Source
from goodgain.logs.traces.model import UNANSWERED, ToolCall
from goodgain.logs.traces.tool_outputs.readers import read_output
from goodgain.logs.traces.tool_outputs.result_objects import normalise_key
from goodgain.logs.traces.tools import extract_queries

#: Ids that name only a call. An `id` may name an event, and a `run_id` all calls of a run.
_CALL_IDS = ("toolcallid", "tooluseid", "callid", "functioncallid", "invocationid")
#: Keys and types of objects with calls that an agent only plans.
_PLANS = {"plan", "plans", "planning", "planned", "plannedcalls", "plannedsteps", "plannedqueries", "todo", "todos"}
#: Keys that say when a call ran, or how it ended.
_SIGNS_OF_RUN = {"status", "state", "timestamp", "ts", "time", "starttime", "startedat", "error", "success"}
#: A limit against malicious logs: how many open calls with equal arguments are compared with a new record.
_MAX_ALIKE = 20


class CallPairer:
    """Pairs calls with answers. `locate` converts a place to text."""

    def __init__(self, source: Source, locate: Callable[[Place], str]) -> None:
        self._source = source
        self._locate = locate
        self._is_search = source.is_search
        self._latest: dict[tuple[Any, str], Found] = {}  # the latest call of each query and id
        # The calls without an answer, in the order of the log: by query and tool (None: any), by id, and by content.
        self._open: dict[tuple[Any, str | None], OrderedDict[int, Found]] = {}
        self._opened = 0
        self._open_by_id: dict[tuple[Any, str], OrderedDict[int, Found]] = {}
        self._open_by_content: dict[tuple[Any, bytes], OrderedDict[int, Found]] = {}

    def is_certain(self, event: Found) -> bool:
        """Return whether an event is certain to be a call or to hold traces. A search with a query is certain to be a call."""
        call = event.call
        if call is None:
            return bool(event.traces)
        is_search_with_query = self._is_search(call.tool) and bool(extract_queries(call.arguments))
        return event.is_sure or call.answered or is_search_with_query

    def pair(self, events: list[Found]) -> list[Found]:
        """Pair calls with answers by id, else in order. Drop copies of calls, and objects that are not certainly calls.

        Ids are unique only within a query. An answer from an unknown query may belong to any query. Answers stay in the
        returned list as events without a call, because an answer ends a group of parallel calls.
        """
        kept_events: list[Found] = []
        guesses: list[tuple[Found, int]] = []  # answers in order, and how many calls stand before each
        for event in events:
            if event.call is not None:
                earlier = self._find_earlier_record(event, event.call)
                if earlier is None:
                    self._open_call(event, event.call)
                    kept_events.append(event)
                elif self._join_records(earlier, event):
                    # The record is not a second call: it only brings the answer to the earlier record.
                    kept_events.append(Found(event.place, event.holders))
            elif event.text is not None or event.traces:
                kept_events.append(event)
            elif call_event := self._find_answered_call(event, guesses):
                if call_event.call and not call_event.call.answered:
                    call_event.is_sure = True
                    call_event.call.perhaps = event.perhaps or call_event.call.perhaps
                output = _read_unsure_output(event, call_event) if event.perhaps else event.output
                self._answer(call_event, output, event.place, failed=event.failed)
                kept_events.append(event)

        self._check_guesses(guesses)
        certain = [event for event in kept_events if event.call is None or self.is_certain(event)]

        # A call that no answer names may hold its output under an unusual key.
        for event in certain:
            if event.call and not event.call.answered and event.call.perhaps:
                event.call.output = _read_unsure_output(event, event)
                event.is_apart = event.is_apart and (not event.call.answered or len(event.forms) > 1)

        return self._drop_planned_calls(certain)

    def _open_call(self, event: Found, call: ToolCall) -> None:
        """Remember a new call by its ids. If it has no answer yet, an answer can find it by id, tool or content.

        The query None stands for answers and records whose query is unknown.
        """
        event.forms.append(_find_form(event))
        for name in event.ids.values():
            self._latest[event.query, name] = event
            self._latest[None, name] = event
        if call.answered:
            return

        self._opened += 1
        event.number = self._opened
        for group in _list_groups(event, call):
            self._open.setdefault(group, OrderedDict())[id(event)] = event

        for name in event.ids.values():
            for query in {event.query, None}:
                self._open_by_id.setdefault((query, name), OrderedDict())[id(event)] = event

        event.content = _describe(call)
        same_content = self._open_by_content.setdefault((event.query, event.content), OrderedDict())
        same_content[id(event)] = event

    def _find_earlier_record(self, new: Found, call: ToolCall) -> Found | None:
        """Return the earlier record of the same call, or None.

        A record with a common id is a copy, see `_is_copy`. Without a common id, a model's message may list calls that follow
        as events: the first open call of the same tool with the same arguments is the same call, unless a record of this form
        has joined it already.
        """
        with_id = (self._latest.get((new.query, name)) for name in new.ids.values())
        copy = next((earlier for earlier in with_id if earlier is not None and _is_copy(earlier, new)), None)
        if copy is not None:
            return copy
        if not self._open_by_content:
            return None
        alike = self._open_by_content.get((new.query, _describe(call)), OrderedDict())
        candidates = islice(alike.values(), _MAX_ALIKE)
        return next((earlier for earlier in candidates if _can_be_same_call(earlier, new)), None)

    def _join_records(self, earlier: Found, new: Found) -> bool:
        """Add what a later record of a call says. Return whether it brings the answer."""
        call, again = earlier.call, new.call
        assert call is not None
        assert again is not None
        call.arguments = call.arguments or again.arguments
        earlier.forms.append(_find_form(new))
        earlier.is_sure = earlier.is_sure or new.is_sure
        if again.perhaps:
            call.perhaps = again.perhaps
            earlier.unsure_output = new.unsure_output

        is_answer = not call.answered and (again.answered or again.perhaps != "")
        self._answer(earlier, again.output, new.place, failed=again.failed)
        added = {kind: name for kind, name in new.ids.items() if kind not in earlier.ids}
        earlier.ids |= added

        for name in added.values():
            for query in (earlier.query, None):
                self._latest[query, name] = earlier
                if not call.answered:
                    self._open_by_id.setdefault((query, name), OrderedDict())[id(earlier)] = earlier

        return is_answer

    def _find_answered_call(self, answer: Found, guesses: list[tuple[Found, int]]) -> Found | None:
        """Return the call that an answer belongs to, or None. If ids do not name it, return the first open call.

        An id that several open calls share, such as the id of their run, names none of them. If several calls are open, add
        the answer to `guesses`.
        """
        for name in answer.ids.values():
            waiting = self._open_by_id.get((answer.query, name), OrderedDict())
            if len(waiting) == 1:
                return next(iter(waiting.values()))
            if not waiting and (answer.query, name) in self._latest:
                return self._latest[answer.query, name]

        if answer.perhaps:
            return None
        waiting = self._open.get((answer.query, answer.tool), OrderedDict())
        if not waiting:
            if answer.is_sure and (answer.tool is None or self._is_search(answer.tool)):
                self._source.not_understood("answer without a call", self._locate(answer.place), "a call before it")
            return None

        if len(waiting) > 1:
            guesses.append((answer, self._opened))
        return next(iter(waiting.values()))

    def _check_guesses(self, guesses: list[tuple[Found, int]]) -> None:
        """Raise an InputError if a call has no answer, but stood before an answer that was guessed to be another call's."""
        for answer, calls_before in guesses:
            waiting = self._open.get((answer.query, answer.tool), OrderedDict())
            left = next(iter(waiting.values()), None)
            if left is not None and left.call is not None and left.number <= calls_before:
                raise InputError(
                    f"{self._locate(answer.place)}: the answer could belong to several calls, and the call at {left.call.at} has "
                    "no answer; write the searches in the format jsonl"
                )

    def _answer(self, call_event: Found, output: Any, place: Place, *, failed: bool) -> None:
        """Set the output of a call. Raise an InputError if a search gets a second, different answer."""
        call = call_event.call
        if call is None:
            return
        if not call.answered:
            call.output, call.failed = output, failed
            if call.answered:
                self._close_call(call_event)
        elif self._is_search(call.tool) and output not in (UNANSWERED, "") and _read(call.output) != _read(output):
            raise InputError(
                f"{self._locate(place)}: the search {call.tool} ({call.at}) has two different answers; give each call "
                "its own id, leave out one of the answers, or write the searches in the format jsonl"
            )

    def _close_call(self, event: Found) -> None:
        """Remove a call that has its answer now from the calls that wait for answers."""
        keys = [(query, name) for query in (event.query, None) for name in event.ids.values()]
        for key in keys:
            self._open_by_id.get(key, OrderedDict()).pop(id(event), None)
        same_content = self._open_by_content.get((event.query, event.content), OrderedDict())
        same_content.pop(id(event), None)
        for group in _list_groups(event, event.call):
            self._open.get(group, OrderedDict()).pop(id(event), None)

    def _drop_planned_calls(self, events: list[Found]) -> list[Found]:
        """Drop the calls of a plan that have no answer, if other calls of the query have answers.

        Count those that were not executed with the same arguments.
        """
        executed = {event.query for event in events if event.call and event.call.answered}
        if not executed:
            return events

        contents = {(event.query, _describe(event.call)) for event in events if event.call and event.call.answered}
        kept_events = []
        for event in events:
            was_only_planned = event.call and not event.call.answered and event.query in executed and _is_planned(event)
            if was_only_planned and event.call and (event.query, _describe(event.call)) in contents:
                continue
            if was_only_planned:
                self._source.summary.count("planned", format_place(self._locate(event.place)))
            else:
                kept_events.append(event)
        return kept_events


def _list_groups(event: Found, call: ToolCall | None) -> list[tuple[Any, str | None]]:
    """Return the keys of the open calls among which an answer looks: an answer may lack the query or the tool."""
    tool = call.tool if call is not None else None
    groups = product((event.query, None), (tool, None))
    return list(dict.fromkeys(groups))


def _is_copy(earlier: Found, new: Found) -> bool:
    """Return whether a new record of a call with a common id is a copy of an earlier record. Streams and histories repeat calls.

    Ids that name only a call decide. Else another event id, or another time, is another call. A common `run_id` may be the id
    of the whole run: it joins the start of a call to its end, but not two calls that each have an answer.
    """
    assert earlier.call is not None
    assert new.call is not None
    arguments = parse_if_json(earlier.call.arguments)
    again = parse_if_json(new.call.arguments)
    if earlier.call.tool != new.call.tool or (arguments and again and arguments != again):
        return False

    both_answered = earlier.call.answered and new.call.answered
    common = [kind for kind in new.ids if kind in earlier.ids]
    for kind in common:
        if kind in _CALL_IDS:
            return earlier.ids[kind] == new.ids[kind]

    if "id" in common and earlier.ids["id"] == new.ids["id"] and not both_answered:
        return True
    is_end = not earlier.call.answered and new.call.answered and _find_form(new) not in earlier.forms
    if is_end:
        return True
    if "id" in common and earlier.ids["id"] != new.ids["id"]:
        return False

    time = find_event_time(earlier)
    new_time = find_event_time(new)
    if both_answered and common == ["runid"]:
        return time is not None and time == new_time
    return None in (time, new_time) or time == new_time


def _can_be_same_call(listed_call: Found, new: Found) -> bool:
    """Return whether a new record can be of a call that an agent listed before, with the same tool and arguments."""
    other_ids = any(listed_call.ids.get(kind, name) != name for kind, name in new.ids.items() if kind in _CALL_IDS)
    return not other_ids and not _is_planned(listed_call) and _find_form(new) not in listed_call.forms


def _find_form(event: Found) -> Any:
    """Return the form of a record: the keys that lead to it, and the types of the event. An event is one record of a call."""
    positions = [index for index, key in enumerate(event.place) if isinstance(key, int)]
    event_depth = positions[-1] + 1 if positions else 0
    kinds = [
        kind
        for place, holder in event.holders
        if len(place) >= event_depth
        for name in KINDS
        if isinstance(kind := holder.get(name), str)
    ]
    return tuple(0 if isinstance(key, int) else key for key in event.place), tuple(kinds)


def _is_planned(event: Found) -> bool:
    """Return whether a call is part of a plan, and nothing says that it ran."""
    if not event.ids.keys().isdisjoint(_CALL_IDS):
        return False
    fields = dict(event.holders).get(event.place, {})
    if not _SIGNS_OF_RUN.isdisjoint(map(normalise_key, fields)):
        return False
    kinds = (holder.get(name) for _, holder in event.holders for name in KINDS)
    names = (name for name in (*event.place, *kinds) if isinstance(name, str))
    return any(normalise_key(name) in _PLANS for name in names)


def _describe(call: ToolCall) -> bytes:
    """Return a key that is equal for calls of the same tool with the same arguments."""
    content = [call.tool, parse_if_json(call.arguments)]
    try:
        return orjson.dumps(content, option=orjson.OPT_SORT_KEYS)
    except TypeError:  # a number beyond 64 bits
        return repr(content).encode("utf-8", "surrogatepass")


def _read_unsure_output(answer: Found, call_event: Found) -> Any:
    """Return the value under an unusual key if it holds results that all have an id or URL, else UNANSWERED."""
    assert call_event.call is not None
    try:
        outcome = read_output(answer.unsure_output, call_event.call.at)
    except InputError:
        return UNANSWERED
    are_named = all(result.doc_id or result.url for result in outcome.results)
    return answer.unsure_output if outcome.results and are_named else UNANSWERED


def _read(output: Any) -> Any:
    """Prepare an output for a comparison with another output: parse JSON text, and join parts of text."""
    parts = output if isinstance(output, list) else [None]
    if all(isinstance(part, dict) and part.get("type") == "text" for part in parts):
        output = message_text(output)
    return parse_if_json(output)
