"""Recorded traffic with a model's vendor: which exchanges make one conversation, and what each of them adds to it."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterator
from typing import Any

import msgspec

from goodgain.traces.input.checks import unexpected_value
from goodgain.traces.input.file_head import FileHead
from goodgain.traces.input.sources import Source
from goodgain.traces.model import Trace

__all__ = ["ConversationPart", "Exchange", "are_exchanges", "join_exchanges", "split_exchange"]

#: How a stream of server-sent events begins, and an answer written as text.
_EVENTS = re.compile(r"\s*(?:(?:data|event|id|retry)?: ?\S|\{)")


class Exchange(msgspec.Struct):
    """A request's messages and the answer's, with the ids that join exchanges where the vendor has some.

    `response` is the object the answer stands in, where it says more of the answer.
    """

    messages: list[Any]
    messages_at: str
    answer: list[Any]
    answer_at: str
    id: str | None = None
    previous: str | None = None
    response: dict[str, Any] = msgspec.field(default_factory=dict)
    response_at: str = ""


class ConversationPart(msgspec.Struct):
    """Messages that one exchange adds to a conversation; `resent` ones stand in it already.

    `response` is the object that answers stand in, where it says more of them.
    """

    messages: list[tuple[Any, str]]
    resent: bool = False
    response: dict[str, Any] = msgspec.field(default_factory=dict)
    response_at: str = ""


class _Conversation:
    """A conversation: its parts in order, and where it began."""

    def __init__(self, at: str) -> None:
        self.at = at
        self.parts: list[ConversationPart] = []


def split_exchange(record: Any) -> tuple[dict[str, Any], dict[str, Any]] | None:
    """Request and response of a recorded exchange, or None if the record is none."""
    if not isinstance(record, dict):
        return None
    request, response = record.get("request"), record.get("response")
    return (request, response) if isinstance(request, dict) and isinstance(response, dict) else None


def are_exchanges(head: FileHead) -> bool:
    """Whether a file holds recorded exchanges."""
    return any("request" in record and "response" in record for record in head.records if isinstance(record, dict))


def join_exchanges(
    source: Source,
    read: Callable[[Any, str], Exchange | None],
    key: Callable[[Any], Hashable | None],
    trace: Callable[[list[ConversationPart], str], Trace],
    *,
    asked: str = "",
    any_order: bool = False,
) -> Iterator[Trace]:
    """The conversations that recorded exchanges make.

    An exchange continues an earlier one if it names it, or if its messages begin with that one's messages and answer.
    They are compared by `key` (role, call ids, text), which is None for what clients may leave out when they send the
    history again: thoughts, and the calls of tools that the vendor runs. `read` gives None for other endpoints.
    `asked` is the field of a request that shows it to be of this vendor's endpoint: its answer must be an object.
    With `any_order`, for messages that have ids of their own, an earlier state may also come after a later one.
    """
    threads: list[_Conversation] = []
    by_id: dict[str, _Conversation] = {}
    by_history: dict[int, _Conversation] = {}
    for record, at in _read_records(source):
        exchange = None
        with source.handle_errors():
            exchange = read(record, at)
            if exchange is None:
                _check_endpoint(record, asked, at)
                source.count_other_endpoint()
        if exchange is None:
            continue
        histories = _hash_histories([key(message) for message in exchange.messages])
        thread, known = by_id.get(exchange.previous or ""), 0
        if thread is None:
            thread, known = _find_conversation(by_history, histories)
        if thread is None:
            thread = _Conversation(at)
            threads.append(thread)
        placed = [(message, f"{exchange.messages_at}/{index}") for index, message in enumerate(exchange.messages)]
        answer = [(message, f"{exchange.answer_at}/{index}") for index, message in enumerate(exchange.answer)]
        thread.parts += [ConversationPart(placed[:known], resent=True), ConversationPart(placed[known:])]
        thread.parts.append(ConversationPart(answer, response=exchange.response, response_at=exchange.response_at))
        answered = _hash_histories([key(message) for message in exchange.answer], histories[-1])
        by_history.update(dict.fromkeys(histories if any_order else (), thread))
        by_history[answered[-1]] = thread
        if exchange.id is not None:
            by_id[exchange.id] = thread
    for thread in threads:
        yield from source.read_numbered(lambda parts, at: trace(parts, at), thread.parts, thread.at)


def _check_endpoint(record: Any, asked: str, at: str) -> None:
    """Check that an exchange that was not read is with another endpoint.

    Raises:
        InputError: it is with the same one, and its answer is a stream of events or text, which is not read.
    """
    if not isinstance(record, dict) or not asked or not _has_field(record.get("request"), asked):
        return
    response = record.get("response")
    if isinstance(response, list) or (stream := _find_stream(response)) is not None:
        found = response if isinstance(response, list) else stream
        raise unexpected_value(
            f"{at}/response", "one object that is the whole answer (streams of server-sent events are not read)", found,
            "record the answer without stream=true, or join its events into one answer",
        )  # fmt: skip


def _has_field(request: Any, asked: str) -> bool:
    """Whether a request, or the JSON text in it, has the field that shows its endpoint."""
    if isinstance(request, dict):
        return asked in request or any(_has_field(request.get(key), asked) for key in ("body", "json", "content"))
    return isinstance(request, str) and f'"{asked}"' in request


def _find_stream(response: Any) -> str | None:
    """The text, of server-sent events or of JSON, that a response is, or has in one of its fields."""
    for text in response.values() if isinstance(response, dict) else [response]:
        if isinstance(text, dict):
            text = text.get("string", text.get("text"))
        if isinstance(text, str) and _EVENTS.match(text):
            return text
    return None


def _read_records(source: Source) -> Iterator[tuple[Any, str]]:
    for value, at in source.documents():
        if isinstance(value, list):
            for index, record in enumerate(value):
                yield record, f"{at}/{index}"
        else:
            yield value, at


def _hash_histories(keys: list[Hashable | None], start: int = 0) -> list[int]:
    """For each number of messages a number that stands for all of them, in order; those without a key do not count."""
    found = [start]
    for key in keys:
        found.append(found[-1] if key is None else hash((found[-1], key)))
    return found


def _find_conversation(by_history: dict[int, _Conversation], histories: list[int]) -> tuple[_Conversation | None, int]:
    """The conversation whose messages so far these messages begin with, and how many they have in common."""
    for known in range(len(histories) - 1, 0, -1):
        if histories[known] != 0 and (thread := by_history.get(histories[known])) is not None:
            return thread, known
    return None, 0
