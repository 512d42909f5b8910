"""Finds histories that a log repeats, for the format `shape`: many programs write all messages so far with each request."""

from collections.abc import Callable, Iterator
from typing import Any

from goodgain.logs.traces.conversations.calls_by_shape import Found, Place
from goodgain.logs.traces.model import UNANSWERED, Trace


def find_repeated(events: list[Found], find_id: Callable[[Found], str | None]) -> set[int]:
    """Return the positions of messages in lists that the next list of the same query repeats from its first message on.

    `find_id` returns the query id around a message, or None. Without an id, only a longer list repeats another.
    """
    repeated: set[int] = set()
    for has_id, histories in _find_histories(events, find_id):
        last = histories[0]
        for history in histories[1:]:
            shorter, longer = sorted((last, history), key=len)
            is_longer = len(shorter) < len(longer)
            repeats = _begins_with([events[index] for index in longer], [events[index] for index in shorter])
            if repeats and (is_longer or has_id):
                repeated.update(shorter)
                last = longer
            else:
                last = history

    return repeated


def _find_histories(
    events: list[Found], find_id: Callable[[Found], str | None]
) -> Iterator[tuple[bool, list[list[int]]]]:
    """Yield the positions of the members of lists with a text of the user, by query and key. Say whether the query has an id."""
    lists = {event.place[:-1] for event in events if event.text}
    members: dict[Place, list[int]] = {}
    for index, event in enumerate(events):
        prefixes = (event.place[:depth] for depth in range(1, len(event.place) + 1))
        place = event.place if event.traces else next((prefix for prefix in prefixes if prefix in lists), None)
        if place is not None:
            members.setdefault(place, []).append(index)

    together: dict[Any, list[list[int]]] = {}
    for place, indices in members.items():
        form = tuple(0 if isinstance(step, int) else step for step in place)
        together.setdefault((find_id(events[indices[0]]), form), []).append(indices)
    for (query_id, _), histories in together.items():
        yield query_id is not None, histories


def _begins_with(longer: list[Found], shorter: list[Found]) -> bool:
    messages = [message for event in longer for message in _describe(event)]
    first = [message for event in shorter for message in _describe(event)]
    return len(first) <= len(messages) and all(map(_repeats, messages, first))


def _describe(event: Found) -> list[tuple[Any, ...]]:
    """Return what a message says: the text, or the tool, arguments and output."""
    if event.traces:
        return [message for trace in event.traces for message in _describe_trace(trace)]
    if event.call is not None:
        return [(event.call.tool, event.call.arguments, event.call.output)]
    return [(event.text, event.tool, event.output)]


def _describe_trace(trace: Trace) -> list[tuple[Any, ...]]:
    messages: list[tuple[Any, ...]] = []
    for turn in trace.turns:
        messages.append((turn.user_text, None, UNANSWERED))
        messages += [(call.tool, call.arguments, call.output) for call in turn.calls]
    return messages


def _repeats(message: tuple[Any, ...], first: tuple[Any, ...]) -> bool:
    """Return whether a message repeats an earlier one, which may lack the output."""
    return message[:2] == first[:2] and first[2] in (UNANSWERED, message[2])
