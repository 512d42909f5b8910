"""LangChain and LangGraph messages as written by `model_dump`, `messages_to_dict` or langchain.load's `dumps`.

An AI message is a step. A human message is a turn. Results are read from a tool message's `artifact` (Documents), else
from its content. States of a graph that repeat the messages of earlier states are one conversation. Lines of
`stream_mode="updates"` are one conversation, or one per `query_id` or `thread_id`.

Lost: Searches that a vendor ran and logged in `additional_kwargs` or unknown parts. Such searches are reported as not understood.
Query id: `query_id`, `question_id` or `qid` in `metadata`, `config.metadata`, `config.configurable` or `configurable`, else
`thread_id` in one of these four.
Record: `create_retriever_tool(..., response_format="content_and_artifact")` keeps ids and URLs of documents.
Costs: `usage_metadata`, or `token_usage` in `response_metadata`.
"""

from collections.abc import Hashable, Iterator
from functools import partial
from typing import Any

from goodgain.logs.traces.conversations import UNANSWERED, FileHead, Source, Trace
from goodgain.logs.traces.conversations.messages import PLAIN_PARTS, message_text
from goodgain.logs.traces.conversations.record_objects import (
    ABSENT,
    Placed,
    any_object,
    find_items,
    find_list,
    find_query_id,
    follow_path,
    read_records,
    text_or_none,
    walk_objects,
)
from goodgain.logs.traces.conversations.tool_calls import expect_output, read_call, read_function_call
from goodgain.logs.traces.conversations.turns_and_calls import read_usage
from goodgain.logs.traces.conversations.vendor_exchanges import Exchange, JoinedConversation, place
from goodgain.logs.traces.expected_values import (
    as_word,
    expect_id,
    expect_object,
    find_id,
    object_or_empty,
    objects_in,
    unexpected_value,
)

_KINDS = {"human", "ai", "tool", "system", "function", "chat", "remove", "developer"}
#: Types of parts. Parts with calls repeat `tool_calls`.
_PART_TYPES = PLAIN_PARTS | {
    *("tool_use", "tool_call", "input_json_delta", "reasoning_content", "text-plain", "function_call"),
    *("invalid_tool_call", "tool_call_chunk", "media"),
}
#: The fields of a message that are read, or that repeat calls.
_READ = {
    *("content", "tool_calls", "invalid_tool_calls", "tool_call_chunks", "artifact", "function_call"),
    *("__openai_function_call_ids__", "__gemini_function_call_thought_signatures__"),
}
#: Keys of runs and spans, whose inputs and outputs may have messages.
_OF_RUNS = {"inputs", "outputs", "input", "output", "run_type", "span_id", "attributes"}
#: Paths of the messages and of the caller's metadata in a state of a graph, in order of preference.
_MESSAGE_PATHS = ("messages", "values/messages", "checkpoint/channel_values/messages")
_METADATA_PATHS = ("metadata", "config/metadata", "config/configurable", "configurable")


def sniff(head: FileHead) -> bool:
    if any(map(_is_update, head.objects)):
        return True
    lists = (find_list(record, *_MESSAGE_PATHS)[0] for record in head.conversations)
    return any(any_object(messages, _is_message) for messages in lists)


def _is_message(message: dict[str, Any]) -> bool:
    """Return whether an object is a message of LangChain: dumped by a serialiser (`lc`), or with a type and content."""
    if "role" in message:
        return False
    if message.get("lc") == 1:
        return as_word(_read_name(message)).endswith(("Message", "MessageChunk"))
    body = message.get("data", message)
    return _read_kind(message) in _KINDS and isinstance(body, dict) and "content" in body


def _read_name(message: dict[str, Any]) -> Any:
    """Return the class (`AIMessage`) of a message that a serialiser dumped, else the type (`ai`)."""
    names = message.get("id") if message.get("lc") == 1 else [message.get("type")]
    if isinstance(names, list) and names:
        return names[-1]
    return None


def _read_kind(message: dict[str, Any]) -> str:
    """Return the kind of a message from its class or type, such as `ai` for `AIMessageChunk`."""
    return as_word(_read_name(message)).removesuffix("Chunk").removesuffix("Message").lower()


def _is_update(record: dict[str, Any]) -> bool:
    """Return whether a record is an update of a graph: nodes by name, each with the messages that it adds."""
    if find_list(record, *_MESSAGE_PATHS)[0] is not None or not _OF_RUNS.isdisjoint(record):
        return False
    nodes = objects_in(list(record.values()))
    return any(any_object(node.get("messages"), _is_message) for node in nodes)


def read(source: Source) -> Iterator[Trace]:
    """Choose the reader: updates of a graph, states in lines (each repeats the messages before), or lists of messages."""
    if any(map(_is_update, source.head.objects)):
        return _read_updates(source)
    if sum(bool(find_list(record, *_MESSAGE_PATHS)[1]) for record in source.head.records) > 1:
        return _Messages.join_exchanges(source, _read_state)  # the records are states, not one trace each
    expected = "a list of messages, or a state of a graph with one"
    find = partial(find_items, paths=_MESSAGE_PATHS, expected=expected)
    return _Messages.read_source(source, find, of_list=lambda member: "type" in member or _is_message(member))


def _read_updates(source: Source) -> Iterator[Trace]:
    """Yield a trace per query id or thread. The updates of a file without ids are one trace."""
    threads: dict[str | None, list[Placed]] = {}
    for value, at in read_records(source):
        with source.handle_errors():
            record = expect_object(value, at)
            threads.setdefault(find_id(record) or _read_query_id(record, at), []).append((record, at))

    def read_thread(updates: list[Placed], at: str) -> Trace:
        reader = _Messages(source, updates[0][0])
        for record, record_at in updates:
            for name, node in record.items():
                if isinstance(node, dict):
                    messages = node.get("messages")
                    node_at = f"{record_at}/{name}"
                    reader.read_all(
                        walk_objects([messages] if isinstance(messages, dict) else messages, f"{node_at}/messages")
                    )
                    reader.hold(node, node_at, is_state=True)
        return reader.trace(at)

    for updates in threads.values():
        if len(threads) > 1:
            yield from source.read_numbered(read_thread, updates, updates[0][1])
        else:
            with source.handle_errors():
                yield read_thread(updates, updates[0][1])


def _read_state(record: Any, at: str) -> Exchange | None:
    """Return a state of a graph as an exchange without an answer: all messages so far. None if the graph had not begun."""
    state = object_or_empty(record)
    messages, path = find_list(state, *_MESSAGE_PATHS)
    if messages is None and state.keys().isdisjoint(("values", "checkpoint")):
        raise unexpected_value(at, "a state of a graph with a list of messages", record)
    # Without messages, the graph had not begun.
    if messages:
        return Exchange(at, place(messages, f"{at}{path}"), [], state, at)
    return None


def _read_query_id(record: Any, at: str) -> str | None:
    """Return the first query id in the metadata of a state, else the first `thread_id`, else None."""
    values = ((follow_path(record, f"/{path}"), f"{at}/{path}") for path in _METADATA_PATHS)
    held = [(expect_object(metadata, place), place) for metadata, place in values if metadata not in (None, ABSENT)]
    ids = [find_query_id(*pair) for pair in held]
    threads = [expect_id(metadata.get("thread_id"), f"{place}/thread_id") for metadata, place in held]
    return next(filter(None, [*ids, *threads]), None)


class _Messages(JoinedConversation):
    any_order = True

    def __init__(self, source: Source, record: Any = None) -> None:
        super().__init__(source, record)
        self._seen: set[str] = set()  # the ids of messages, which checkpoints repeat
        self._longest = 0

    @classmethod
    def key(cls, message: dict[str, Any]) -> Hashable | None:
        """Return the id of a message. Without an id, return a key that no other message has."""
        bodies = (message, message.get("data"), message.get("kwargs"))
        ids = (object_or_empty(body).get("id") for body in bodies)
        return next((name for name in ids if isinstance(name, str)), id(message))

    def read_exchange(self, exchange: Exchange) -> None:
        super().read_exchange(exchange)
        if len(exchange.messages) >= self._longest:  # the longest state is the latest
            self._longest = len(exchange.messages)
            self.record = exchange.response
            self.query_id = _read_query_id(exchange.response, exchange.response_at) or self.query_id

    def _end(self, at: str) -> None:
        self.query_id = _read_query_id(self.record, at) or self.query_id

    def read(self, message: dict[str, Any], at: str) -> None:
        """Read a message: human (a turn), AI (a step), or the output of a tool.

        A message that was read before, by id, is skipped.
        """
        kind, body = _read_kind(message), message
        key = "kwargs" if message.get("lc") == 1 else "data" if isinstance(message.get("data"), dict) else None
        if key is not None:
            body, at = expect_object(message.get(key), f"{at}/{key}"), f"{at}/{key}"

        message_id = expect_id(body.get("id"), f"{at}/id")
        if message_id in self._seen:
            return

        if message_id is not None:
            self._seen.add(message_id)
        self.report_unread("a message", body, at, _READ)
        speaker = as_word(body.get("role")) if kind == "chat" else kind
        if speaker in ("human", "user"):
            self.user(message_text(body.get("content")))
            self.report_parts("a human message", body.get("content"), f"{at}/content", _PART_TYPES)
        elif speaker in ("ai", "assistant"):
            vendors = object_or_empty(body.get("response_metadata"))
            self.name_model(vendors.get("model_name") or vendors.get("model"))
            holders = (body.get("usage_metadata"), vendors.get("token_usage"), vendors.get("usage"))
            self.spend(next((holder for holder in holders if read_usage(holder) is not None), None))
            self.step()
            self._read_calls(body, at)
            if not body.get("tool_calls"):
                self.say(body.get("content"), is_call=lambda part: part.get("type") in ("tool_use", "tool_call"))
        elif kind in ("tool", "function"):
            call_id = expect_id(body.get("tool_call_id"), f"{at}/tool_call_id")
            output = expect_output(body.get("content"), f"{at}/content")
            artifact = body.get("artifact")
            first, spare = (output, UNANSWERED) if artifact is None else (artifact, output)
            name = text_or_none(body.get("name"))
            failed = body.get("status") == "error"
            self.answer(call_id, first, f"{at}/content", name=name, failed=failed, spare=spare)
        elif kind not in _KINDS or kind == "chat":
            if message.get("lc") != 1 and not isinstance(message.get("type"), str):
                raise unexpected_value(f"{at}/type", "the type of a message (human, ai, tool ...)", message.get("type"))
            self.source.not_understood(f"message of type {kind!r}", at, ", ".join(sorted(_KINDS)))

    def _read_calls(self, body: dict[str, Any], at: str) -> None:
        """Add the calls of an AI message, where newer or older versions of LangChain write them."""
        calls = body.get("tool_calls")
        extra = body.get("additional_kwargs")
        self.read_calls(calls, f"{at}/tool_calls", arguments="args")
        if isinstance(extra, dict) and not calls:  # dumps older than tool_calls
            for call, call_at in walk_objects(extra.get("tool_calls"), f"{at}/additional_kwargs/tool_calls"):
                self.call(read_function_call(call, call_at))
            if isinstance(legacy := extra.get("function_call"), dict):
                self.call(read_call(legacy, f"{at}/additional_kwargs/function_call"))
        content = body.get("content")
        if not isinstance(content, (str, list)):
            raise unexpected_value(f"{at}/content", "text or parts", content)
        self.report_parts("an AI message", content, f"{at}/content", _PART_TYPES)
