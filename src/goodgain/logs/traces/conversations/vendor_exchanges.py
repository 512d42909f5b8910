"""Builds conversations from the recorded requests and responses of a model."""

import re
from collections.abc import Callable, Hashable, Iterator
from typing import Any, ClassVar

import msgspec

from goodgain.logs.traces.conversations.record_objects import read_records
from goodgain.logs.traces.conversations.turns_and_calls import Conversation
from goodgain.logs.traces.expected_values import (
    OF_RUNS,
    expect_list,
    find_id,
    id_or_none,
    object_or_empty,
    unexpected_value,
)
from goodgain.logs.traces.input.event_streams import assemble_events, assemble_stream
from goodgain.logs.traces.input.file_head import FileHead
from goodgain.logs.traces.input.sources import Source
from goodgain.logs.traces.model import Trace
from goodgain.logs.traces.tool_outputs.readers import looks_like_results

#: A message of any type and its place.
Item = tuple[Any, str]
#: The beginning of a response recorded as text: server-sent events or JSON.
_EVENTS = re.compile(r"\s*(?:(?:data|event|id|retry)?: ?\S|\{)")
#: Fields of one exchange, not of the query.
_OF_EXCHANGE = {"request", "response", "id", "model", "status", "error", "usage", "messages", "choices", "output"}


class Exchange(msgspec.Struct):
    """A recorded request to a model and the response: their messages, with places in the log."""

    at: str
    messages: list[Item]
    answer: list[Item]
    response: dict[str, Any]  # the whole response
    response_at: str
    id: str | None = None  # the vendor's id of this exchange
    previous: str | None = None  # the id of the exchange that this one continues
    repeated_messages: int = 0  # how many of the messages repeat earlier exchanges of the conversation
    request: dict[str, Any] = msgspec.field(default_factory=dict)  # without its messages
    fields_beside: dict[str, Any] | None = None  # the fields beside request and response, such as the query id


class JoinedConversation(Conversation):
    """A conversation that may be logged as requests and responses of a vendor's endpoint."""

    #: The fields with the messages of a request and of a response. No other endpoint has both fields.
    asked: ClassVar[str] = ""
    answered: ClassVar[str] = ""
    #: Whether earlier states may come after later states in a file. If so, messages must have ids.
    any_order: ClassVar[bool] = False

    @staticmethod
    def are_exchanges(head: FileHead) -> bool:
        return any("request" in record and "response" in record for record in head.records if isinstance(record, dict))

    @classmethod
    def join_exchanges(
        cls, source: Source, make: Callable[[Any, str], Exchange | None] | None = None
    ) -> Iterator[Trace]:
        """Join recorded requests and responses into conversations, and yield one trace per conversation.

        An exchange is a request with its response. A request continues the exchange whose id the request names. If the request
        names no known id, it continues an exchange with the same query id and run id if it begins with that exchange's messages and
        answer. If `any_order` is true, the same first message is enough. `make` converts a record to an exchange.
        """
        threads = _Threads(cls.any_order)
        other_endpoints: list[str] = []
        for record, at in read_records(source):
            with source.handle_errors():
                exchange = cls._make_exchange(record, at) if make is None else make(record, at)
                if exchange is None:
                    _check_endpoint(record, cls.asked, at)
                    source.summary.passed_over += 1
                    response = object_or_empty(record).get("response")
                    if looks_like_results(response, f"{at}/response"):
                        other_endpoints.append(at)
                    continue
                exchange.fields_beside = _find_fields_beside(record)
                threads.add(cls, exchange, hash((find_id(record), find_id(record, OF_RUNS))))

        def read_thread(exchanges: list[Exchange], at: str) -> Trace:
            conversation = cls(source, exchanges[0].fields_beside)
            for exchange in exchanges:
                conversation.read_exchange(exchange)
                conversation.hold(exchange.request, exchange.at, is_state=True)
                conversation.hold(exchange.response, exchange.response_at, is_state=True)
            return conversation.trace(at)

        has_calls = False
        for thread in threads.threads:
            for trace in source.read_numbered(read_thread, thread, thread[0].at):
                has_calls = has_calls or any(step.calls for turn in trace.turns for step in turn.steps)
                yield trace
        if has_calls:
            return
        for at in other_endpoints:  # the program searched, not the model
            source.not_understood("exchange with another endpoint, which returned results", at, "calls of the model")

    @classmethod
    def _make_exchange(cls, record: Any, at: str) -> Exchange | None:
        parts = cls.split(record)
        return cls.pair(*parts, f"{at}/request", f"{at}/response") if parts else None

    @classmethod
    def claims(cls, head: FileHead) -> bool:
        return any(cls.split(record) is not None for record in head.objects)

    @classmethod
    def split(cls, record: Any) -> tuple[dict[str, Any], dict[str, Any]] | None:
        """Return the request and the response. Return None if the record is not an exchange with the endpoint of this class."""
        return split_exchange(record, cls.asked, cls.answered)

    @classmethod
    def find_asked(cls, request: dict[str, Any], response: dict[str, Any], at: str, response_at: str) -> list[Item]:
        return place(request.get(cls.asked), f"{at}/{cls.asked}")

    @classmethod
    def find_answer(cls, response: dict[str, Any], at: str) -> list[Item]:
        return place(response.get(cls.answered), f"{at}/{cls.answered}")

    @classmethod
    def pair(cls, request: dict[str, Any], response: dict[str, Any], at: str, response_at: str) -> Exchange:
        return Exchange(
            at, cls.find_asked(request, response, at, response_at), cls.find_answer(response, response_at),
            response, response_at, id_or_none(response.get("id")), id_or_none(request.get("previous_response_id")),
            request={key: value for key, value in request.items() if key != cls.asked},
        )  # fmt: skip

    @classmethod
    def key(cls, message: dict[str, Any]) -> Hashable | None:
        """Return a key (such as role, call ids and text) that is equal for copies of a message.

        Return None for messages that clients may omit from a repeated history: thoughts and calls of the vendor's tools.
        """
        raise NotImplementedError(f"{cls.__module__}: {cls.__name__} has no method key(message)")

    def read_exchange(self, exchange: Exchange) -> None:
        self.read_all(exchange.messages[exchange.repeated_messages :])
        self.read_all(exchange.answer)


def place(messages: Any, at: str) -> list[Item]:
    """Return the members of a list with their places. Null is an empty list."""
    return [(message, f"{at}/{index}") for index, message in enumerate(expect_list(messages, at))]


class _Threads:
    """Joins exchanges that continue each other."""

    def __init__(self, any_order: bool) -> None:
        self.threads: list[list[Exchange]] = []
        self._any_order = any_order
        self._by_id: dict[str, list[Exchange]] = {}
        self._by_history: dict[int, list[Exchange]] = {}  # by the hash of all messages so far

    def add(self, conversation: type[JoinedConversation], exchange: Exchange, start: int) -> None:
        """Add an exchange to the thread that it continues, or begin a thread. `start` is the hash of an empty history."""
        histories = _hash_histories(conversation, exchange.messages, start)
        thread = self._by_id.get(exchange.previous or "")
        if thread is None:
            # Most clients repeat the whole history. The longest known history identifies the conversation.
            longest_first = range(len(histories) - 1, 0, -1)
            known_counts = (count for count in longest_first if histories[count] in self._by_history)
            exchange.repeated_messages = next(known_counts, 0)
            thread = self._by_history[histories[exchange.repeated_messages]] if exchange.repeated_messages else []
        if not thread:
            self.threads.append(thread)
        thread.append(exchange)

        if self._any_order:
            self._by_history.update(dict.fromkeys(histories, thread))
        self._by_history[_hash_histories(conversation, exchange.answer, histories[-1])[-1]] = thread
        self._by_history.pop(start, None)  # an empty history identifies no thread
        if exchange.id is not None:
            self._by_id[exchange.id] = thread


def split_exchange(record: Any, asked: str, answered: str) -> tuple[dict[str, Any], dict[str, Any]] | None:
    """Return a record's request and response. Return None if the request lacks `asked` or the response lacks `answered`.

    A whole stream of events, as a list or as text, becomes the response that the vendor returns without streaming.
    """
    request = object_or_empty(record).get("request")
    if not isinstance(request, dict) or asked not in request:
        return None
    response = record.get("response")
    assembled = None
    if isinstance(response, list) and response and all(isinstance(event, dict) for event in response):
        assembled = assemble_events(response)
    elif (stream := _find_stream(response)) is not None and not stream.lstrip().startswith("{"):
        assembled = assemble_stream(stream)
    if assembled is not None:
        streamed_response, is_complete = assembled
        if is_complete and streamed_response is not None:
            response = streamed_response
    if isinstance(response, dict) and answered in response:
        return (request, response)
    return None


def _find_fields_beside(record: Any) -> dict[str, Any] | None:
    """Return the fields beside a request and a response, without those that are the exchange's own."""
    if not isinstance(record, dict) or not {"request", "response"} <= record.keys():
        return None
    return {key: value for key, value in record.items() if key not in _OF_EXCHANGE}


def _hash_histories(reader: type[JoinedConversation], messages: list[Item], start: int) -> list[int]:
    """Return a hash for each prefix of the messages, the empty prefix first. Messages without a key do not change the hash."""
    hashes = [start]
    for message, _ in messages:
        key = reader.key(message) if isinstance(message, dict) else None
        hashes.append(hashes[-1] if key is None else hash((hashes[-1], key)))
    return hashes


def _check_endpoint(record: Any, asked: str, at: str) -> None:
    """Raise an InputError if the request has the field `asked`, but the response is a stream of events that cannot be read."""
    record = object_or_empty(record)
    response = record.get("response")
    answer = response if isinstance(response, list) else _find_stream(response)
    if answer is not None and asked and _has_field(record.get("request"), asked):
        raise unexpected_value(
            f"{at}/response", "one object that is the whole answer, or its whole stream of server-sent events", answer,
            "record the answer without stream=true, or the stream to its end",
        )  # fmt: skip


def _has_field(request: Any, field: str, depth: int = 3) -> bool:
    """Return whether a request has a field, directly or in the body. Proxies write the body as JSON text."""
    if isinstance(request, dict) and depth:
        bodies = (request.get(key) for key in ("body", "json", "content"))
        return field in request or any(_has_field(body, field, depth - 1) for body in bodies)
    return isinstance(request, str) and f'"{field}"' in request


def _find_stream(response: Any) -> str | None:
    """Return the first text in a response that begins like events or a JSON object: the response, or a field of it. Else None.

    Recorders of cassettes put the text into a further object, under `string` or `text`.
    """
    for text in response.values() if isinstance(response, dict) else [response]:
        if isinstance(text, dict):
            text = text.get("string", text.get("text"))
        if isinstance(text, str) and _EVENTS.match(text):
            return text
    return None
