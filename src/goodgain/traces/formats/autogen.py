"""AutoGen: messages of AgentChat (`TaskResult`, `ToolCallRequestEvent` ...) and saved states of its agents.

A request of calls, or another message of an agent, is a step; a message of the source `user` is a turn. Summaries, which
repeat results, are passed over.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from goodgain.traces.conversations.conversation import Conversation, message_text
from goodgain.traces.input.checks import as_word, expect_id, expect_list, expect_object, expect_text, unexpected_value
from goodgain.traces.input.file_head import FileHead
from goodgain.traces.input.sources import Source
from goodgain.traces.model import UNANSWERED, ToolCall, Trace

#: Types of messages with calls and with results; `AssistantMessage` and the last one stand in saved states.
_REQUEST, _RESULTS = "ToolCallRequestEvent", {"ToolCallExecutionEvent", "FunctionExecutionResultMessage"}
_STATE = {"SystemMessage", "UserMessage", "AssistantMessage"}
#: Types of messages without a call: what agents and the user say, and summaries of results.
_OTHER = {
    *("TextMessage", "MultiModalMessage", "StopMessage", "HandoffMessage", "ToolCallSummaryMessage", "ThoughtEvent"),
    *("StructuredMessage", "MemoryQueryEvent", "UserInputRequestedEvent", "ModelClientStreamingChunkEvent"),
    *("CodeGenerationEvent", "CodeExecutionEvent", "SelectSpeakerEvent", "SelectorEvent"),
}
#: Messages that repeat others, or are pieces of them.
_REPEATS = {"ToolCallSummaryMessage", "ModelClientStreamingChunkEvent", "ThoughtEvent", "UserInputRequestedEvent"}
_MARKS = {_REQUEST, *_RESULTS, *_STATE, "TextMessage", "ToolCallSummaryMessage"}
_PATHS = (("messages",), ("llm_context", "messages"), ("llm_messages",), ("message_thread",), ("inner_messages",))
_MESSAGE_FIELDS = {"content", "type", "source", "models_usage", "tool_calls", "results", "thought", "context", "target"}


def sniff(head: FileHead) -> bool:
    """Return whether there are messages of AutoGen's types with a source."""
    return any(any(map(_is_message, _find_messages(record)[0])) for record in head.conversations)


def _is_message(message: Any) -> bool:
    return (
        isinstance(message, dict)
        and as_word(message.get("type")) in _MARKS
        and "content" in message
        and "role" not in message
    )


def _find_messages(value: Any) -> tuple[list[Any], str]:
    """Return the messages of a record and the path to them: itself, or where results and states have them."""
    if isinstance(value, list):
        return value, ""
    for path in _PATHS:
        held = value
        for key in path:
            held = held.get(key) if isinstance(held, dict) else None
        if isinstance(held, list):
            return held, "/" + "/".join(path)
    return [], ""


def independent(head: FileHead) -> bool:
    """Return whether each line of a JSON Lines file is a trace of its own."""
    return not any(map(_is_message, head.records))


def read(source: Source) -> Iterator[Trace]:
    """Yield one trace a result, state or list of messages; lines that are messages are one trace."""
    if source.head.kind == "jsonl" and any(map(_is_message, source.head.records)):
        messages = list(source.documents())
        with source.handle_errors():
            yield _read_messages(source, messages, messages[0][1] if messages else f"{source.path}, at ", None)
        return
    yield from source.traces(
        lambda value, at: _read_trace(source, value, at),
        is_one=lambda value: not value or any(isinstance(one, dict) and "type" in one for one in value),
    )


def _read_trace(source: Source, value: Any, at: str) -> Trace:
    messages, path = _find_messages(value)
    if not messages:
        raise unexpected_value(f"{at}{path}", "messages of AutoGen", value)
    return _read_messages(source, [(one, f"{at}{path}/{index}") for index, one in enumerate(messages)], at, value)


def _read_messages(source: Source, messages: list[tuple[Any, str]], at: str, record: Any) -> Trace:
    conversation = Conversation()
    for value, message_at in messages:
        _read_message(source, conversation, expect_object(value, message_at), message_at)
    return conversation.trace(at, record)


def _read_message(source: Source, conversation: Conversation, message: dict[str, Any], at: str) -> None:
    kind, content = message.get("type"), message.get("content")
    if not isinstance(kind, str):
        raise unexpected_value(f"{at}/type", "the type of a message", kind)
    if kind in _REPEATS:
        return
    source.check_fields(
        message, _MESSAGE_FIELDS, at, of="a message", expected="calls and results in content", needs="content"
    )
    if "content" not in message:
        raise unexpected_value(f"{at}/content", "text, calls or results", None)
    if kind in _RESULTS:
        for index, result in enumerate(expect_list(content, f"{at}/content")):
            _read_result(conversation, expect_object(result, f"{at}/content/{index}"), f"{at}/content/{index}")
    elif kind == _REQUEST or (kind == "AssistantMessage" and isinstance(content, list)):
        conversation.step()
        for index, call in enumerate(expect_list(content, f"{at}/content")):
            _read_call(conversation, expect_object(call, f"{at}/content/{index}"), f"{at}/content/{index}")
    elif kind == "UserMessage" or (kind in _OTHER and expect_text(message.get("source"), f"{at}/source") == "user"):
        conversation.user(message_text(content))
    elif kind in _OTHER or kind == "AssistantMessage":
        conversation.step()
    elif kind != "SystemMessage":
        source.not_understood(f"message of type {kind!r}", f"{at}/type", "TextMessage, ToolCallRequestEvent ...")


def _read_call(conversation: Conversation, call: dict[str, Any], at: str) -> None:
    name = expect_text(call.get("name"), f"{at}/name")
    conversation.call(ToolCall(name, at, expect_id(call.get("id"), f"{at}/id"), call.get("arguments")))


def _read_result(conversation: Conversation, result: dict[str, Any], at: str) -> None:
    call_id = expect_id(result.get("call_id"), f"{at}/call_id")
    if call_id is None:
        raise unexpected_value(f"{at}/call_id", "the id of the call it answers", call_id)
    content = result.get("content")
    output = UNANSWERED if content is None else content
    conversation.answer(call_id, output, at, failed=result.get("is_error") is True)
