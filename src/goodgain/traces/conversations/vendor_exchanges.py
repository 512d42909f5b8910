"""Joins recorded exchanges with a model's vendor (request and response) into conversations."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterator
from typing import Any, ClassVar

import msgspec

from goodgain.traces.conversations.record_tree import read_records
from goodgain.traces.conversations.turns_and_calls import Conversation
from goodgain.traces.expected_values import expect_list, unexpected_value
from goodgain.traces.input.event_streams import assemble_events, assemble_stream
from goodgain.traces.input.file_head import FileHead
from goodgain.traces.input.sources import Source
from goodgain.traces.model import Trace

#: The beginning of a stream of server-sent events, or of JSON: an answer that was recorded as text.
_EVENTS = re.compile(r"\s*(?:(?:data|event|id|retry)?: ?\S|\{)")


class Exchange(msgspec.Struct):
    """The messages of a request and of its answer, each with its place.

    Attributes:
        at: the place of the record.
        response, response_at: the object around the answer, for formats that read more from it.
        id, previous: the ids of this exchange and of the one it continues, if the vendor has them.
        known: how many of the messages repeat earlier exchanges of the conversation.
    """

    at: str
    messages: list[tuple[Any, str]]
    answer: list[tuple[Any, str]]
    response: dict[str, Any]
    response_at: str
    id: str | None = None
    previous: str | None = None
    known: int = 0


class JoinedConversation(Conversation):
    """A conversation whose items may come in exchanges: the reader of such a format.

    `asked` and `answered` are the fields with the messages of a request and its answer, used by this endpoint only.
    """

    asked: ClassVar[str] = ""
    answered: ClassVar[str] = ""

    @classmethod
    def claims(cls, head: FileHead) -> bool:
        """Return whether a file holds an exchange with this endpoint."""
        return any(cls.split(record) is not None for record in head.objects)

    @classmethod
    def split(cls, record: Any) -> tuple[dict[str, Any], dict[str, Any]] | None:
        """Return the request and the response of an exchange with this endpoint; None for any other record."""
        return split_exchange(record, cls.asked, cls.answered)

    @classmethod
    def find_answer(cls, response: dict[str, Any], at: str) -> list[tuple[Any, str]]:
        """Return the messages of a response, with their places."""
        return place(response.get(cls.answered), f"{at}/{cls.answered}")

    @classmethod
    def make_exchange(cls, record: Any, at: str) -> Exchange | None:
        """Return a recorded exchange; None for any other record."""
        found = cls.split(record)
        return None if found is None else cls.pair(*found, f"{at}/request", f"{at}/response")

    @classmethod
    def pair(cls, request: dict[str, Any], response: dict[str, Any], at: str, response_at: str) -> Exchange:
        """Return a request and its response as an exchange."""
        messages = place(request.get(cls.asked), f"{at}/{cls.asked}")
        return Exchange(at, messages, cls.find_answer(response, response_at), response, response_at)

    @classmethod
    def key(cls, message: Any) -> Hashable | None:
        """Return a key that is equal for copies of a message, such as its role, the ids of its calls and its text.

        None for messages that clients may leave out of a repeated history: thoughts, and calls of tools that the vendor
        runs.
        """
        raise NotImplementedError(f"{cls.__module__}: {cls.__name__} has no method key(message)")

    def read_exchange(self, exchange: Exchange) -> None:
        """Read the messages of an exchange that are new, and its answer."""
        self.read_all(exchange.messages[exchange.known :])
        self.read_all(exchange.answer)


def place(messages: Any, at: str) -> list[tuple[Any, str]]:
    """Return the members of a list with their places; none for null."""
    return [(message, f"{at}/{index}") for index, message in enumerate(expect_list(messages, at))]


def split_exchange(record: Any, asked: str, answered: str) -> tuple[dict[str, Any], dict[str, Any]] | None:
    """Return the request and the response of an exchange that have the fields `asked` and `answered`; else None."""
    request = record.get("request") if isinstance(record, dict) else None
    if not isinstance(request, dict) or asked not in request:
        return None
    response = record.get("response")
    streamed = None
    if isinstance(response, list) and response and all(isinstance(event, dict) for event in response):
        streamed = assemble_events(response)
    elif (stream := _find_stream(response)) is not None and not stream.lstrip().startswith("{"):
        streamed = assemble_stream(stream)
    if streamed is not None and streamed.is_whole and streamed.value is not None:
        response = streamed.value
    return (request, response) if isinstance(response, dict) and answered in response else None


def are_exchanges(head: FileHead) -> bool:
    """Return whether a file holds recorded exchanges."""
    return any("request" in record and "response" in record for record in head.records if isinstance(record, dict))


def are_no_exchanges(head: FileHead) -> bool:
    """Return whether each line of a JSON Lines file is one trace; exchanges are not."""
    return not are_exchanges(head)


def join_exchanges(
    source: Source,
    reader: type[JoinedConversation],
    make: Callable[[Any, str], Exchange | None] | None = None,
    *,
    any_order: bool = False,
) -> Iterator[Trace]:
    """Yield the traces of the conversations that recorded exchanges belong to.

    An exchange continues an earlier one if it names it, or if its messages begin with that one's messages and answer.

    Args:
        source: the file of exchanges.
        reader: reads the exchanges of a conversation.
        make: makes an exchange of a value and its place, as `reader.make_exchange` does.
        any_order: whether an earlier state may come after a later one; their messages must have ids.
    """
    threads = _Threads(reader, any_order=any_order)
    for record, at in read_records(source):
        with source.handle_errors():
            exchange = (make or reader.make_exchange)(record, at)
            if exchange is not None:
                threads.add(exchange)
            else:
                _check_endpoint(record, reader.asked, at)
                source.count_other_endpoint()

    def read_thread(exchanges: list[Exchange], at: str) -> Trace:
        conversation = reader(source)
        for exchange in exchanges:
            conversation.read_exchange(exchange)
        return conversation.trace(at)

    for thread in threads.found:
        yield from source.read_numbered(read_thread, thread, thread[0].at)


class _Threads:
    """The conversations found so far, each a list of exchanges; found by the ids and by the messages of these."""

    def __init__(self, reader: type[JoinedConversation], *, any_order: bool) -> None:
        self.found: list[list[Exchange]] = []
        self._key = reader.key
        self._any_order = any_order
        self._by_id: dict[str, list[Exchange]] = {}
        self._by_history: dict[int, list[Exchange]] = {}

    def add(self, exchange: Exchange) -> None:
        """Add an exchange to the conversation that it continues, or as the first of a new one."""
        histories = self._hash_histories(exchange.messages)
        thread = self._by_id.get(exchange.previous or "")
        if thread is None:
            # Most clients send the whole history again: the longest known one identifies the conversation.
            longest_first = range(len(histories) - 1, 0, -1)
            exchange.known = next((count for count in longest_first if histories[count] in self._by_history), 0)
            thread = self._by_history[histories[exchange.known]] if exchange.known else None
        if thread is None:
            thread = []
            self.found.append(thread)
        thread.append(exchange)
        self._by_history.update(dict.fromkeys(histories if self._any_order else (), thread))
        self._by_history[self._hash_histories(exchange.answer, histories[-1])[-1]] = thread
        self._by_history.pop(0, None)  # the hash of an empty history
        if exchange.id is not None:
            self._by_id[exchange.id] = thread

    def _hash_histories(self, messages: list[tuple[Any, str]], start: int = 0) -> list[int]:
        """Return a hash of the first n messages for each n from 0 on; messages without a key change nothing."""
        found = [start]
        for key in (self._key(message) for message, _ in messages):
            found.append(found[-1] if key is None else hash((found[-1], key)))
        return found


def _check_endpoint(record: Any, asked: str, at: str) -> None:
    """Refuse an exchange with this endpoint that could not be read: its answer is a stream of events, or text."""
    if not isinstance(record, dict) or not asked or not _has_field(record.get("request"), asked):
        return
    response = record.get("response")
    if isinstance(response, list) or (stream := _find_stream(response)) is not None:
        found = response if isinstance(response, list) else stream
        raise unexpected_value(
            f"{at}/response", "one object that is the whole answer, or its whole stream of server-sent events", found,
            "record the answer without stream=true, or the stream to its end",
        )  # fmt: skip


def _has_field(request: Any, field: str, depth: int = 3) -> bool:
    """Return whether a request has a field, itself, in its body, or in JSON text there (as proxies record it)."""
    if isinstance(request, dict) and depth:
        bodies = (request.get(key) for key in ("body", "json", "content"))
        return field in request or any(_has_field(body, field, depth - 1) for body in bodies)
    return isinstance(request, str) and f'"{field}"' in request


def _find_stream(response: Any) -> str | None:
    """Return the text of server-sent events or JSON that a response is, or has in a field; None if there is none."""
    for text in response.values() if isinstance(response, dict) else [response]:
        if isinstance(text, dict):
            text = text.get("string", text.get("text"))
        if isinstance(text, str) and _EVENTS.match(text):
            return text
    return None
