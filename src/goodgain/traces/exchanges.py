"""Recorded traffic with a model's vendor: which exchanges make one conversation, and what each of them adds to it."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from typing import Any

import msgspec

from goodgain.traces.heads import Head
from goodgain.traces.pivot import Trace
from goodgain.traces.sources import Source

__all__ = ["Exchange", "Part", "are_exchanges", "exchange_of", "recorded_traces"]


class Exchange(msgspec.Struct):
    """A request's messages and the answer's, with the ids that join exchanges where the vendor has some."""

    messages: list[Any]
    messages_at: str
    answer: list[Any]
    answer_at: str
    id: str | None = None
    previous: str | None = None


class Part(msgspec.Struct):
    """Messages that one exchange adds to a conversation; `resent` ones stand in it already."""

    messages: list[tuple[Any, str]]
    resent: bool = False


class _Thread:
    """A conversation: its parts in order, and where it began."""

    def __init__(self, at: str) -> None:
        self.at = at
        self.parts: list[Part] = []


def exchange_of(record: Any) -> tuple[dict[str, Any], dict[str, Any]] | None:
    """Request and response of a recorded exchange, or None if the record is none."""
    if not isinstance(record, dict):
        return None
    request, response = record.get("request"), record.get("response")
    return (request, response) if isinstance(request, dict) and isinstance(response, dict) else None


def are_exchanges(head: Head) -> bool:
    """Whether a file holds recorded exchanges."""
    return any("request" in record and "response" in record for record in head.records if isinstance(record, dict))


def recorded_traces(
    source: Source,
    read: Callable[[Any, str], Exchange | None],
    key: Callable[[Any], Hashable | None],
    trace: Callable[[list[Part], str], Trace],
    *,
    any_order: bool = False,
) -> Iterator[Trace]:
    """The conversations that recorded exchanges make.

    An exchange continues an earlier one if it names it, or if its messages begin with that one's messages and answer.
    They are compared by `key` (role, call ids, text), which is None for what clients may leave out when they send the
    history again: thoughts, and the calls of tools that the vendor runs. `read` gives None for other endpoints.
    With `any_order`, for messages that have ids of their own, an earlier state may also come after a later one.
    """
    threads: list[_Thread] = []
    by_id: dict[str, _Thread] = {}
    by_history: dict[int, _Thread] = {}
    for record, at in _records(source):
        exchange = None
        with source.tolerating():
            exchange = read(record, at)
        if exchange is None:
            source.passed_over()
            continue
        histories = _histories([key(message) for message in exchange.messages])
        thread, known = by_id.get(exchange.previous or ""), 0
        if thread is None:
            thread, known = _continued(by_history, histories)
        if thread is None:
            thread = _Thread(at)
            threads.append(thread)
        placed = [(message, f"{exchange.messages_at}/{index}") for index, message in enumerate(exchange.messages)]
        answer = [(message, f"{exchange.answer_at}/{index}") for index, message in enumerate(exchange.answer)]
        thread.parts += [Part(placed[:known], resent=True), Part(placed[known:]), Part(answer)]
        answered = _histories([key(message) for message in exchange.answer], histories[-1])
        by_history.update(dict.fromkeys(histories if any_order else (), thread))
        by_history[answered[-1]] = thread
        if exchange.id is not None:
            by_id[exchange.id] = thread
    for thread in threads:
        yield from source.numbered(lambda parts, at: trace(parts, at), thread.parts, thread.at)


def _records(source: Source) -> Iterator[tuple[Any, str]]:
    for value, at in source.documents():
        if isinstance(value, list):
            for index, record in enumerate(value):
                yield record, f"{at}/{index}"
        else:
            yield value, at


def _histories(keys: list[Hashable | None], start: int = 0) -> list[int]:
    """For each number of messages a number that stands for all of them, in order; those without a key do not count."""
    found = [start]
    for key in keys:
        found.append(found[-1] if key is None else hash((found[-1], key)))
    return found


def _continued(by_history: dict[int, _Thread], histories: list[int]) -> tuple[_Thread | None, int]:
    """The conversation whose messages so far these messages begin with, and how many they have in common."""
    for known in range(len(histories) - 1, 0, -1):
        if histories[known] != 0 and (thread := by_history.get(histories[known])) is not None:
            return thread, known
    return None, 0
