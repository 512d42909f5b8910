"""LangChain and LangGraph messages in their dumps: `model_dump`, `messages_to_dict`, `dumps` of langchain.load.

An AI message is a step, a human message a turn. Results are read from a tool message's `artifact` (Documents), else
from its content. States of a graph that repeat the messages of earlier states are one conversation.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Any

from goodgain.traces.conversations.conversation import Conversation, find_query_id, message_text
from goodgain.traces.conversations.exchanges import ConversationPart, Exchange, join_exchanges
from goodgain.traces.conversations.usage import read_usage
from goodgain.traces.input.checks import as_word, expect_id, expect_list, expect_object, expect_text, unexpected_value
from goodgain.traces.input.file_head import FileHead
from goodgain.traces.input.sources import Source
from goodgain.traces.model import UNANSWERED, ToolCall, Trace, Usage

#: Types of messages, of parts of content, and the fields of a message. Others are reported as not understood.
_KINDS = {"human", "ai", "tool", "system", "function", "chat", "remove", "developer"}
_PART_TYPES = {
    *("text", "image_url", "image", "tool_use", "tool_call", "input_json_delta", "thinking", "reasoning", "file"),
    *("redacted_thinking", "refusal", "audio", "video", "reasoning_content", "text-plain", "function_call"),
    *("invalid_tool_call", "tool_call_chunk", "media", "document", "input_audio", "video_url"),
}
_MESSAGE_FIELDS = {
    *("content", "type", "role", "additional_kwargs", "tool_calls", "invalid_tool_calls", "tool_call_chunks"),
    *("tool_call_id", "artifact", "example", "chunk_position", "lc", "kwargs", "lc_attributes"),
}
#: Fields of additional_kwargs that vendors' classes write: only `tool_calls` and `function_call` are calls.
_KNOWN_EXTRAS = {
    "tool_calls",
    "function_call",
    "refusal",
    "reasoning",
    "reasoning_content",
    "audio",
    "parsed",
    "thinking",
}
_KNOWN_EXTRAS |= {"__openai_function_call_ids__", "__gemini_function_call_thought_signatures__"}
#: Where a state of a graph has its messages.
_MESSAGE_PATHS = (("messages",), ("values", "messages"), ("checkpoint", "channel_values", "messages"))
#: Where a state has the metadata that the caller gave, the best first.
_METADATA_PATHS = (("metadata",), ("config", "metadata"), ("config", "configurable"), ("configurable",))


def sniff(head: FileHead) -> bool:
    """Return whether there are messages of the types human, ai, tool, or constructor objects of langchain.load."""
    return any(_has_messages(record) for record in head.conversations)


def _has_messages(record: Any) -> bool:
    messages = record if isinstance(record, list) else _find_messages(record)[0]
    return isinstance(messages, list) and any(_is_message(message) for message in messages)


def _is_message(message: Any) -> bool:
    if not isinstance(message, dict) or "role" in message:
        return False
    if message.get("lc") == 1:
        return as_word(_class_name(message)).endswith(("Message", "MessageChunk"))
    body = message.get("data", message)
    return _message_kind(message.get("type")) in _KINDS and isinstance(body, dict) and ("content" in body)


def _class_name(message: dict[str, Any]) -> Any:
    names = message.get("id")
    return names[-1] if isinstance(names, list) and names else None


def _message_kind(name: Any) -> str:
    """Return the kind of message that a class or type names: `AIMessageChunk` -> `ai`."""
    return as_word(name).removesuffix("Chunk").removesuffix("Message").lower()


def _find_messages(record: Any) -> tuple[Any, str]:
    """Return the messages of a state of a graph and their place in it; None and "" if it has none."""
    for path in _MESSAGE_PATHS:
        value = record
        for key in path:
            value = value.get(key) if isinstance(value, dict) else None
        if value is not None:
            return value, "/" + "/".join(path)
    return None, ""


def independent(head: FileHead) -> bool:
    """Return whether each line of a JSON Lines file is a trace of its own: states of one thread are not."""
    return not _are_states(head)


def _are_states(head: FileHead) -> bool:
    """Return whether a file holds several states of a graph, rather than a trace a record."""
    states = [record for record in head.records if isinstance(record, dict) and _find_messages(record)[1]]
    return len(states) > 1


def read(source: Source) -> Iterator[Trace]:
    """Yield one trace a list of messages; states of a graph that continue earlier ones make one trace with them."""
    if _are_states(source.head):
        return join_exchanges(
            source, _read_state, _message_key, lambda parts, at: _read_parts(source, parts, at), any_order=True
        )
    return source.traces(lambda value, at: _read_trace(source, value, at), is_one=_is_conversation)


def _is_conversation(value: list[Any]) -> bool:
    return not value or any(
        _is_message(message) or (isinstance(message, dict) and "type" in message) for message in value
    )


def _read_trace(source: Source, value: Any, at: str) -> Trace:
    messages, path = (value, "") if isinstance(value, list) else _find_messages(value)
    if not isinstance(messages, list) or not messages:
        raise unexpected_value(
            f"{at}{path}", "a list of messages, or a state of a graph with one under 'messages'", messages
        )
    conversation = Conversation()
    seen: set[str] = set()
    for index, message in enumerate(messages):
        _read_message(source, conversation, message, f"{at}{path}/{index}", seen)
    return conversation.trace(at, value, query_id=_read_query_id(value, at))


def _read_state(record: Any, at: str) -> Exchange | None:
    messages, path = _find_messages(record)
    if messages is None and not (isinstance(record, dict) and ("values" in record or "checkpoint" in record)):
        raise unexpected_value(at, "a state of a graph with a list of messages", record)
    if not messages:
        return None  # the graph had not begun
    # The record itself stands in for the answer: `_read_parts` takes the query's id from its metadata.
    return Exchange(expect_list(messages, f"{at}{path}"), f"{at}{path}", [record], at)


def _read_parts(source: Source, parts: list[ConversationPart], at: str) -> Trace:
    conversation = Conversation()
    seen: set[str] = set()
    query_id = None
    for part in parts:
        for message, message_at in part.messages:
            if isinstance(message, dict) and _find_messages(message)[1]:
                query_id = _read_query_id(message, message_at) or query_id
            elif not part.resent:
                _read_message(source, conversation, message, message_at, seen)
    return conversation.trace(at, query_id=query_id)


def _read_query_id(record: Any, at: str) -> str | None:
    """Return the query's id from metadata, else the id of the graph's thread."""
    if not isinstance(record, dict):
        return None
    thread = None
    for path in _METADATA_PATHS:
        value: Any = record
        for key in path:
            value = value.get(key)
            if value is None:
                break
            value = expect_object(value, f"{at}/{'/'.join(path)}")
        if (found := find_query_id(value, f"{at}/{'/'.join(path)}")) is not None:
            return found
        if isinstance(value, dict):
            thread = thread or expect_id(value.get("thread_id"), f"{at}/{'/'.join(path)}/thread_id")
    return thread


def _read_body(message: Any, at: str) -> tuple[str, dict[str, Any], str]:
    """Return kind, fields and place of a message in any of the three dumps."""
    message = expect_object(message, at)
    if message.get("lc") == 1:
        return _message_kind(_class_name(message)), expect_object(message.get("kwargs"), f"{at}/kwargs"), f"{at}/kwargs"
    if not isinstance(message.get("type"), str):
        raise unexpected_value(f"{at}/type", "the type of a message (human, ai, tool ...)", message.get("type"))
    if isinstance(message.get("data"), dict):
        return _message_kind(message["type"]), message["data"], f"{at}/data"
    return _message_kind(message["type"]), message, at


def _message_key(message: Any) -> Hashable | None:
    if isinstance(message, dict) and not _find_messages(message)[1]:
        for body in (message, message.get("data"), message.get("kwargs")):
            if isinstance(body, dict) and isinstance(body.get("id"), str):
                return str(body["id"])
        return id(message)  # without ids, no two messages are taken for one
    return None


def _read_message(source: Source, conversation: Conversation, message: Any, at: str, seen: set[str]) -> None:
    kind, body, at = _read_body(message, at)
    message_id = expect_id(body.get("id"), f"{at}/id")
    if message_id is not None:
        if message_id in seen:
            return  # checkpoints repeat the messages before them
        seen.add(message_id)
    source.check_fields(
        body, _MESSAGE_FIELDS, at, of="a message", expected="calls in tool_calls, text in content", needs="content"
    )
    if isinstance(kept := body.get("additional_kwargs"), dict):
        kept_at = f"{at}/additional_kwargs"
        source.check_fields(
            kept, _KNOWN_EXTRAS, kept_at, of="additional_kwargs", expected="tool_calls or function_call"
        )
    if kind == "human" or (kind == "chat" and body.get("role") in ("user", "human")):
        conversation.user(message_text(body.get("content")))
        _report_parts(source, body.get("content"), f"{at}/content", "a human message")
    elif kind == "ai" or (kind == "chat" and body.get("role") in ("assistant", "ai")):
        if source.costs:
            conversation.spend(_read_usage(body))
        conversation.step()
        _read_calls(source, conversation, body, at)
    elif kind in ("tool", "function"):
        _read_answer(conversation, body, at)
    elif kind not in _KINDS or kind == "chat":
        source.not_understood(f"message of type {kind!r}", at, ", ".join(sorted(_KINDS)))


def _read_usage(body: dict[str, Any]) -> Usage | None:
    """Return the usage of an AI message: LangChain's own, else the one that the vendor gave."""
    given = body.get("response_metadata")
    vendors = given if isinstance(given, dict) else {}
    holders = (body.get("usage_metadata"), vendors.get("token_usage"), vendors.get("usage"))
    return next((usage for holder in holders if (usage := read_usage(holder)) is not None), None)


def _read_calls(source: Source, conversation: Conversation, body: dict[str, Any], at: str) -> None:
    calls = expect_list(body.get("tool_calls"), f"{at}/tool_calls")
    for index, call in enumerate(calls):
        call_at = f"{at}/tool_calls/{index}"
        call = expect_object(call, call_at)
        name = expect_text(call.get("name"), f"{call_at}/name")
        conversation.call(ToolCall(name, call_at, expect_id(call.get("id"), f"{call_at}/id"), call.get("args")))
    extra = body.get("additional_kwargs")
    if isinstance(extra, dict) and not calls:  # dumps older than tool_calls
        for index, call in enumerate(expect_list(extra.get("tool_calls"), f"{at}/additional_kwargs/tool_calls")):
            _read_old_call(conversation, call, f"{at}/additional_kwargs/tool_calls/{index}")
        if isinstance(extra.get("function_call"), dict):
            function_at = f"{at}/additional_kwargs/function_call"
            name = expect_text(extra["function_call"].get("name"), f"{function_at}/name")
            conversation.call(ToolCall(name, function_at, arguments=extra["function_call"].get("arguments")))
    content = body.get("content")
    if not isinstance(content, (str, list)):
        raise unexpected_value(f"{at}/content", "text or parts", content)
    _report_parts(source, content, f"{at}/content", "an AI message")


def _report_parts(source: Source, content: Any, at: str, of: str) -> None:
    """Report the parts of a message's content that are of an unknown type."""
    for index, part in enumerate(content if isinstance(content, list) else []):
        if isinstance(part, dict) and as_word(part.get("type")) not in _PART_TYPES:
            what = f"part of type {part.get('type')!r} in {of}"
            source.not_understood(what, f"{at}/{index}", "a part such as text, image, tool_use, reasoning")


def _read_old_call(conversation: Conversation, call: Any, at: str) -> None:
    call = expect_object(call, at)
    function = expect_object(call.get("function"), f"{at}/function")
    name = expect_text(function.get("name"), f"{at}/function/name")
    conversation.call(ToolCall(name, at, expect_id(call.get("id"), f"{at}/id"), function.get("arguments")))


def _read_answer(conversation: Conversation, body: dict[str, Any], at: str) -> None:
    call_id = expect_id(body.get("tool_call_id"), f"{at}/tool_call_id")
    content = body.get("content")
    if content is not None and not isinstance(content, (str, list, dict)):
        raise unexpected_value(f"{at}/content", "text or parts", content)
    name = body.get("name") if isinstance(body.get("name"), str) else None
    output = UNANSWERED if content is None else content
    artifact = body.get("artifact")
    first, spare = (output, UNANSWERED) if artifact is None else (artifact, output)
    failed = body.get("status") == "error"
    conversation.answer(call_id, first, f"{at}/content", name=name, failed=failed, spare=spare)
