"""pydantic-ai messages: requests and responses with `parts`, as `all_messages_json()` writes them.

A response is a step; a request with a user's prompt is a turn. Calls and returns are paired by `tool_call_id`; a hosted
tool has both in one response.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from goodgain.traces.conversations.conversation import Conversation, find_query_id, message_text
from goodgain.traces.input.checks import as_word, expect_id, expect_list, expect_object, expect_text, unexpected_value
from goodgain.traces.input.file_head import FileHead
from goodgain.traces.input.sources import Source
from goodgain.traces.model import UNANSWERED, ToolCall, Trace

_KINDS = {"request", "response"}
#: Kinds of parts: calls, of the client's tools and of those that the provider runs, and their returns.
_CALLS, _RETURNS = {"tool-call", "builtin-tool-call"}, {"tool-return", "builtin-tool-return"}
#: Kinds of parts without a call or a result.
_OTHER_PARTS = {
    *("system-prompt", "text", "thinking", "file", "compaction", "speech", "retry-feedback", "instruction"),
    *("instruction-delta", "instruction-baseline", "instruction-digest", "model-settings-delta"),
    *("tool-availability-delta", "capability-load-delta"),
}
#: Values of `outcome` of a call that was made and failed, and of one that was not made.
_FAILED, _NOT_MADE = {"failed", "retried", "interrupted"}, {"denied"}
_MESSAGE_FIELDS = {"parts", "kind", "instructions", "provider_details", "failed_attempts", "provider_name"}
_MESSAGE_FIELDS |= {"vendor_details", "workspace_ref", "state"}
_REMEDY = "ask the provider to return the search's sources: the log lacks what its own tool found"


def sniff(head: FileHead) -> bool:
    """Return whether there are messages of a kind with parts of a `part_kind`."""
    return any(any(map(_is_message, _find_messages(record)[0])) for record in head.conversations)


def _is_message(message: Any) -> bool:
    if not isinstance(message, dict) or as_word(message.get("kind")) not in _KINDS:
        return False
    parts = message.get("parts")
    return isinstance(parts, list) and any(isinstance(part, dict) and "part_kind" in part for part in parts)


def _find_messages(value: Any) -> tuple[list[Any], str]:
    """Return the messages of a record and the path to them: itself, or what a database's row has under a name."""
    if isinstance(value, list):
        return value, ""
    for key in ("messages", "message_history", "all_messages", "new_messages", "message_list"):
        held = value.get(key) if isinstance(value, dict) else None
        if isinstance(held, list):
            return held, f"/{key}"
    return [], ""


def independent(_: FileHead) -> bool:
    """Return True: each line of a JSON Lines file is a trace of its own."""
    return True


def read(source: Source) -> Iterator[Trace]:
    """Yield one trace a list of messages."""
    return source.traces(lambda value, at: _read_trace(source, value, at), is_one=_is_one)


def _is_one(value: list[Any]) -> bool:
    return not value or any(isinstance(member, dict) and ("kind" in member or "parts" in member) for member in value)


def _read_trace(source: Source, value: Any, at: str) -> Trace:
    messages, path = _find_messages(value)
    if not messages:
        raise unexpected_value(f"{at}{path}", "a list of messages (requests and responses)", value)
    conversation = Conversation()
    session = query_id = model = None
    for index, message in enumerate(messages):
        message_at = f"{at}{path}/{index}"
        message = expect_object(message, message_at)
        _read_message(source, conversation, message, message_at)
        session = expect_id(message.get("conversation_id"), f"{message_at}/conversation_id") or session
        query_id = find_query_id(message.get("metadata"), f"{message_at}/metadata") or query_id
        named = message.get("model_name")
        model = named if isinstance(named, str) and named else model
    trace = conversation.trace(at, value, query_id=query_id or session)
    trace.session_id, trace.tag = session, model
    return trace


def _read_message(source: Source, conversation: Conversation, message: dict[str, Any], at: str) -> None:
    kind = message.get("kind")
    if not isinstance(kind, str):
        raise unexpected_value(f"{at}/kind", "request or response", kind)
    if kind not in _KINDS:
        source.not_understood(f"message of kind {kind!r}", f"{at}/kind", "request or response")
        return
    if not isinstance(message.get("parts"), list):
        raise unexpected_value(f"{at}/parts", "a list of parts", message.get("parts"))
    source.check_fields(message, _MESSAGE_FIELDS, at, of="a message", expected="all in parts")
    if kind == "response":
        time = message.get("timestamp")
        conversation.step(time if isinstance(time, str) else None)
    for index, part in enumerate(expect_list(message["parts"], f"{at}/parts")):
        part_at = f"{at}/parts/{index}"
        _read_part(source, conversation, expect_object(part, part_at), part_at)


def _read_part(source: Source, conversation: Conversation, part: dict[str, Any], at: str) -> None:
    kind = part.get("part_kind")
    if not isinstance(kind, str):
        raise unexpected_value(f"{at}/part_kind", "the kind of a part", kind)
    if kind == "user-prompt":
        conversation.user(message_text(part.get("content")))
    elif kind in _CALLS:
        name = expect_text(part.get("tool_name"), f"{at}/tool_name")
        remedy = _REMEDY if kind == "builtin-tool-call" else ""
        call_id = expect_id(part.get("tool_call_id"), f"{at}/tool_call_id")
        conversation.call(ToolCall(name, at, call_id, part.get("args"), remedy=remedy))
    elif kind in _RETURNS:
        _read_return(conversation, part, at, hosted=kind == "builtin-tool-return")
    elif kind == "retry-prompt":
        call_id = expect_id(part.get("tool_call_id"), f"{at}/tool_call_id")
        if part.get("tool_name") is not None and conversation.has_call(call_id):  # else it is about the answer's text
            conversation.answer(call_id, part.get("content"), at, failed=True)
    elif kind not in _OTHER_PARTS:
        expected = "a part such as user-prompt, text, tool-call, tool-return, retry-prompt"
        source.not_understood(f"part of kind {kind!r}", at, expected)


def _read_return(conversation: Conversation, part: dict[str, Any], at: str, *, hosted: bool) -> None:
    call_id = expect_id(part.get("tool_call_id"), f"{at}/tool_call_id")
    if call_id is None:
        raise unexpected_value(f"{at}/tool_call_id", "the id of the call it answers", call_id)
    outcome = as_word(part.get("outcome"), "success")
    if outcome not in {"success"} | _FAILED | _NOT_MADE:
        raise unexpected_value(f"{at}/outcome", "success, failed, retried, interrupted or denied", part.get("outcome"))
    content = part.get("content")
    output = UNANSWERED if content is None else _unwrap_hosted(content) if hosted else content
    call = conversation.answer(call_id, output, at, failed=outcome in _FAILED)
    if outcome in _NOT_MADE:
        call.is_search = False


def _unwrap_hosted(content: Any) -> Any:
    """Return what a provider's tool found. OpenAI's search has a status and, if asked for, sources; Google's, sources."""
    if not isinstance(content, dict) or not ("status" in content or "sources" in content):
        return content
    if content.get("status") == "failed":
        return {"error": "failed"}
    if content.get("results") is not None:  # a file search
        return content["results"]
    return UNANSWERED if content.get("sources") is None else content["sources"]
