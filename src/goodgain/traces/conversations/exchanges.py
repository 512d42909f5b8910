"""Joins recorded exchanges with a model's vendor (request and response) to conversations."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterator
from functools import partial
from typing import Any

import msgspec

from goodgain.traces.conversations.conversation import is_message_list
from goodgain.traces.input.checks import unexpected_value
from goodgain.traces.input.event_streams import assemble_events, assemble_stream
from goodgain.traces.input.file_head import FileHead
from goodgain.traces.input.sources import Source
from goodgain.traces.model import Trace

__all__ = ["ConversationPart", "Exchange", "are_exchanges", "join_exchanges", "read_chat_log", "split_exchange"]

#: The beginning of a stream of server-sent events, or of JSON: an answer that was recorded as text.
_EVENTS = re.compile(r"\s*(?:(?:data|event|id|retry)?: ?\S|\{)")


class Exchange(msgspec.Struct):
    """The messages of a request and of its answer, with the ids that join exchanges where the vendor has them.

    `response` is the object around the answer, for formats that read more from it.
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
    """Messages of one exchange, in the conversation it belongs to.

    `resent` messages are in the conversation already. `response` is the object around an answer, as in `Exchange`.
    """

    messages: list[tuple[Any, str]]
    resent: bool = False
    response: dict[str, Any] = msgspec.field(default_factory=dict)
    response_at: str = ""


class _Conversation:
    """The parts of a conversation in order, and the place of its first exchange."""

    def __init__(self, at: str) -> None:
        self.at = at
        self.parts: list[ConversationPart] = []


def split_exchange(record: Any) -> tuple[dict[str, Any], dict[str, Any]] | None:
    """Return request and response of a recorded exchange, or None if the record is something else."""
    if not isinstance(record, dict):
        return None
    request, response = record.get("request"), record.get("response")
    if not isinstance(request, dict):
        return None
    streamed = _assemble_response(response)
    response = response if streamed is None else streamed
    return (request, response) if isinstance(response, dict) else None


def _assemble_response(response: Any) -> Any:
    """Return the whole answer of a response that was recorded as a stream or a list of its events; None for another."""
    if isinstance(response, list) and response and all(isinstance(event, dict) for event in response):
        assembled = assemble_events(response)
    else:
        stream = _find_stream(response)
        assembled = assemble_stream(stream) if stream is not None and not stream.lstrip().startswith("{") else None
    return assembled.value if assembled is not None and assembled.is_whole else None


def are_exchanges(head: FileHead) -> bool:
    """Return whether a file holds recorded exchanges."""
    return any("request" in record and "response" in record for record in head.records if isinstance(record, dict))


def join_exchanges(
    source: Source,
    read: Callable[[Any, str], Exchange | None],
    key: Callable[[Any], Hashable | None],
    trace: Callable[[list[ConversationPart], str], Trace],
    *,
    endpoint_field: str = "",
    any_order: bool = False,
) -> Iterator[Trace]:
    """Yield the traces of the conversations that recorded exchanges belong to.

    An exchange continues an earlier one if it names it, or if its messages begin with that one's messages and answer.

    Args:
        source: the file of exchanges.
        read: reads an exchange of a value and its place; None for exchanges with other endpoints.
        key: what two copies of a message have in common (role, call ids, text); None for messages that clients may
            leave out when they send the history again: thoughts, and calls of tools that the vendor runs.
        trace: makes a trace of the parts of a conversation.
        endpoint_field: the field of a request that only this vendor's endpoint has. Its answer must be an object.
        any_order: an earlier state may come after a later one, as messages with ids of their own cannot be confused.
    """
    threads: list[_Conversation] = []
    by_id: dict[str, _Conversation] = {}
    by_history: dict[int, _Conversation] = {}
    for record, at in _read_records(source):
        exchange = None
        with source.handle_errors():
            exchange = read(record, at)
            if exchange is None:
                _check_endpoint(record, endpoint_field, at)
                source.count_other_endpoint()
        if exchange is None:
            continue
        # Most clients send the whole history again: the longest known one says which conversation they continue.
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
        yield from source.read_numbered(trace, thread.parts, thread.at)


def read_chat_log(
    source: Source,
    trace: Callable[[Source, Any, str], Trace],
    exchange: Callable[[Any, str], Exchange | None],
    key: Callable[[Any], Hashable | None],
    joined_trace: Callable[[Source, list[ConversationPart], str], Trace],
) -> Iterator[Trace]:
    """Yield the traces of a file with lists of messages, or with recorded exchanges of an endpoint for messages.

    `trace` makes a trace of a value that holds messages; the others are as in `join_exchanges`.
    """
    if are_exchanges(source.head):
        return join_exchanges(source, exchange, key, partial(joined_trace, source), endpoint_field="messages")
    return source.traces(partial(trace, source), is_one=is_message_list)


def _check_endpoint(record: Any, endpoint_field: str, at: str) -> None:
    """Check that an exchange that was not read is with another endpoint.

    Raises:
        InputError: it is with the same one, and its answer is a stream of events or text, which is not read.
    """
    if not isinstance(record, dict) or not endpoint_field or not _has_field(record.get("request"), endpoint_field):
        return
    response = record.get("response")
    if isinstance(response, list) or (stream := _find_stream(response)) is not None:
        found = response if isinstance(response, list) else stream
        raise unexpected_value(
            f"{at}/response", "one object that is the whole answer, or its whole stream of server-sent events", found,
            "record the answer without stream=true, or the stream to its end",
        )  # fmt: skip


def _has_field(request: Any, field: str) -> bool:
    """Return whether a request has a field, itself, in its body, or in JSON text there (as proxies record it)."""
    if isinstance(request, dict):
        return field in request or any(_has_field(request.get(key), field) for key in ("body", "json", "content"))
    return isinstance(request, str) and f'"{field}"' in request


def _find_stream(response: Any) -> str | None:
    """Return the text of server-sent events or JSON that a response is, or has in a field; None if there is none."""
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
    """Return a hash of the first n messages for each n from 0 on; messages without a key change nothing.

    `start` is the hash of the messages before.
    """
    found = [start]
    for key in keys:
        found.append(found[-1] if key is None else hash((found[-1], key)))
    return found


def _find_conversation(by_history: dict[int, _Conversation], histories: list[int]) -> tuple[_Conversation | None, int]:
    """Return the conversation that these messages begin with, the longest first, and how many they share with it."""
    for known in range(len(histories) - 1, 0, -1):
        if histories[known] != 0 and (thread := by_history.get(histories[known])) is not None:
            return thread, known
    return None, 0
