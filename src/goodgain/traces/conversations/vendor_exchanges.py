"""Joins recorded exchanges with a model's vendor (request and response) to conversations."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterator
from typing import Any

import msgspec

from goodgain.traces.conversations.tree import read_records
from goodgain.traces.conversations.turns_and_calls import Conversation
from goodgain.traces.expected_values import expect_list, unexpected_value
from goodgain.traces.input.event_streams import assemble_events, assemble_stream
from goodgain.traces.input.file_head import FileHead
from goodgain.traces.input.sources import Source
from goodgain.traces.model import Trace

#: The beginning of a stream of server-sent events, or of JSON: an answer that was recorded as text.
_EVENTS = re.compile(r"\s*(?:(?:data|event|id|retry)?: ?\S|\{)")


class Exchange(msgspec.Struct):
    """The messages of a request and of its answer, with the ids that join exchanges where the vendor has them.

    `response` is the object around the answer, for formats that read more from it.
    """

    messages: Any
    messages_at: str
    answer: Any
    answer_at: str
    id: str | None = None
    previous: str | None = None
    request: dict[str, Any] = msgspec.field(default_factory=dict)
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


class JoinedConversation(Conversation):
    """A conversation whose items may stand in exchanges: the reader of a format that has these."""

    def read_part(self, part: ConversationPart) -> None:
        """Read the messages of an exchange that are new."""
        if not part.resent:
            self.read_all(part.messages)


class _Thread(msgspec.Struct):
    at: str
    parts: list[ConversationPart] = msgspec.field(default_factory=list)


def split_exchange(record: Any, at: str, asked: str, answered: str) -> Exchange | None:
    """Return a recorded exchange whose request has its messages in the field `asked`, and whose response has `answered`.

    None for another record, and for an exchange with another endpoint.
    """
    request = record.get("request") if isinstance(record, dict) else None
    if not isinstance(request, dict) or asked not in request:
        return None
    streamed = _assemble_response(record.get("response"))
    response = record.get("response") if streamed is None else streamed
    if not isinstance(response, dict) or answered not in response:
        return None
    return Exchange(
        request[asked], f"{at}/request/{asked}", response[answered], f"{at}/response/{answered}",
        request=request, response=response, response_at=f"{at}/response",
    )  # fmt: skip


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


def are_no_exchanges(head: FileHead) -> bool:
    """Return whether each line of a JSON Lines file is a trace of its own, as lines that are exchanges are not."""
    return not are_exchanges(head)


def join_exchanges(
    source: Source,
    reader: type[JoinedConversation],
    read: Callable[[Any, str], Exchange | None],
    key: Callable[[Any], Hashable | None],
    *,
    endpoint_field: str = "",
    any_order: bool = False,
) -> Iterator[Trace]:
    """Yield the traces of the conversations that recorded exchanges belong to.

    An exchange continues an earlier one if it names it, or if its messages begin with that one's messages and answer.

    Args:
        source: the file of exchanges.
        reader: reads the parts of a conversation.
        read: reads an exchange of a value and its place; None for exchanges with other endpoints.
        key: what two copies of a message have in common (role, call ids, text); None for messages that clients may
            leave out when they send the history again: thoughts, and calls of tools that the vendor runs.
        endpoint_field: the field of a request that only this vendor's endpoint has. Its answer must be an object.
        any_order: an earlier state may come after a later one, as messages with ids of their own cannot be confused.
    """
    threads: list[_Thread] = []
    by_id: dict[str, _Thread] = {}
    by_history: dict[int, _Thread] = {}
    for record, at in read_records(source):
        answer = None
        with source.handle_errors():
            exchange = read(record, at)
            if exchange is None:
                _check_endpoint(record, endpoint_field, at)
                source.count_other_endpoint()
                continue
            placed = _place(exchange.messages, exchange.messages_at)
            answer = _place(exchange.answer, exchange.answer_at)
        if answer is None:
            continue  # it cannot be read, and is left out
        # Most clients send the whole history again: the longest known one says which conversation they continue.
        histories = _hash_histories([key(message) for message, _ in placed])
        thread, known = by_id.get(exchange.previous or ""), 0
        if thread is None:
            longest_first = range(len(histories) - 1, 0, -1)
            known = next((count for count in longest_first if histories[count] in by_history), 0)
            thread = by_history[histories[known]] if known else None
        if thread is None:
            thread = _Thread(at)
            threads.append(thread)
        thread.parts += [ConversationPart(placed[:known], resent=True), ConversationPart(placed[known:])]
        thread.parts.append(ConversationPart(answer, response=exchange.response, response_at=exchange.response_at))
        answered = _hash_histories([key(message) for message, _ in answer], histories[-1])
        by_history.update(dict.fromkeys(histories if any_order else (), thread))
        by_history[answered[-1]] = thread
        by_history.pop(0, None)  # the hash of no message at all
        if exchange.id is not None:
            by_id[exchange.id] = thread

    def read_thread(parts: list[ConversationPart], at: str) -> Trace:
        conversation = reader(source)
        for part in parts:
            conversation.read_part(part)
        return conversation.finish(at)

    for thread in threads:
        yield from source.read_numbered(read_thread, thread.parts, thread.at)


def _check_endpoint(record: Any, endpoint_field: str, at: str) -> None:
    """Refuse an exchange with the same endpoint that was not read, as its answer is a stream of events or text."""
    if not isinstance(record, dict) or not endpoint_field or not _has_field(record.get("request"), endpoint_field):
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


def _place(messages: Any, at: str) -> list[tuple[Any, str]]:
    return [(message, f"{at}/{index}") for index, message in enumerate(expect_list(messages, at))]


def _hash_histories(keys: list[Hashable | None], start: int = 0) -> list[int]:
    """Return a hash of the first n messages for each n from 0 on, with the hash of those before; None changes nothing."""
    found = [start]
    for key in keys:
        found.append(found[-1] if key is None else hash((found[-1], key)))
    return found
