"""Anthropic Messages: content blocks such as `tool_use`, `server_tool_use`, `web_search_tool_result`.

An assistant message is a step; inside it a new step begins at each call that follows a result. Calls and results are
paired by id over the whole turn. A user message with tool results is not a turn.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Any

from goodgain.traces.conversations.conversation import (
    Conversation,
    count_hosted_searches,
    find_messages,
    has_messages,
    message_text,
)
from goodgain.traces.conversations.exchanges import (
    ConversationPart,
    Exchange,
    are_exchanges,
    read_chat_log,
    split_exchange,
)
from goodgain.traces.conversations.usage import read_usage
from goodgain.traces.input.checks import as_word, expect_id, expect_list, expect_object, expect_text, unexpected_value
from goodgain.traces.input.file_head import FileHead
from goodgain.traces.input.sources import Source
from goodgain.traces.model import UNANSWERED, ToolCall, Trace

#: Types of blocks that are calls, and which of these the vendor runs: their results stand in the answer itself.
CALL_TYPES = {"tool_use", "server_tool_use", "mcp_tool_use"}
_HOSTED_CALL_TYPES = {"server_tool_use", "mcp_tool_use"}
_RESULT_TYPE = "tool_result"
#: Types of blocks without a call or a result.
OTHER_BLOCK_TYPES = {
    *("text", "image", "document", "search_result", "thinking", "redacted_thinking", "container_upload"),
    *("compaction", "fallback", "mcp_tool_listing", "tool_addition", "tool_removal"),
}
#: Types of blocks that only this API writes.
_HOSTED_MARKS = {"server_tool_use", "web_search_tool_result"}
_MESSAGE_FIELDS = {"role", "content", "type"}
_REMEDY = "ask for the messages as the API gives them: the log lacks the block with the results"


def sniff(head: FileHead) -> bool:
    """Return whether there are messages with blocks of tools, an answer of the API, or exchanges with one."""
    if are_exchanges(head):
        return any(_is_exchange(record) for record in head.objects)
    if any(has_messages(record, _has_tool_block) for record in head.conversations):
        return True
    return any(_is_api_answer(record) for record in head.objects)


def _is_api_answer(record: dict[str, Any]) -> bool:
    """Return whether an object is an answer of the API, also if the head of the file cuts off its end."""
    content = record.get("content")
    if not isinstance(content, list) or record.get("type", "message") != "message":
        return False
    return (record.get("type") == "message" and "stop_reason" in record) or any(
        isinstance(block, dict) and _is_tool_block(block) and as_word(block["type"]) in _HOSTED_MARKS
        for block in content
    )


def _has_tool_block(message: dict[str, Any]) -> bool:
    content = message.get("content")
    if message.get("role") not in ("user", "assistant") or not isinstance(content, list):
        return False
    return any(isinstance(block, dict) and _is_tool_block(block) for block in content)


def _is_tool_block(block: dict[str, Any]) -> bool:
    kind = block.get("type")
    if not isinstance(kind, str) or "tool_type" in block:  # Inspect's own parts have a tool_type
        return False
    return kind in CALL_TYPES or kind.endswith("_tool_result") or (kind == _RESULT_TYPE and "tool_use_id" in block)


def independent(head: FileHead) -> bool:
    """Return whether each line of a JSON Lines file is a trace of its own."""
    return not are_exchanges(head)


def read(source: Source) -> Iterator[Trace]:
    """Yield one trace a list of messages, or one a conversation of recorded exchanges."""
    return read_chat_log(source, _read_trace, _read_exchange, _message_key, _read_parts)


def _read_trace(source: Source, value: Any, at: str) -> Trace:
    reader = _MessageReader(source)
    if isinstance(value, dict) and "content" in value and "messages" not in value:
        value = [value]  # a single answer of the API
    messages, messages_at = find_messages(value, at)
    for index, message in enumerate(messages):
        reader.read(message, f"{messages_at}/{index}")
    return reader.conversation.trace(at, value)


def _is_exchange(record: Any) -> bool:
    found = split_exchange(record)
    if found is None:
        return False
    request, response = found
    return "messages" in request and response.get("type") == "message"


def _read_exchange(record: Any, at: str) -> Exchange | None:
    if not _is_exchange(record):
        return None
    request, response = split_exchange(record) or ({}, {})
    messages = expect_list(request["messages"], f"{at}/request/messages")
    return Exchange(messages, f"{at}/request/messages", [response], f"{at}/response")


def _read_parts(source: Source, parts: list[ConversationPart], at: str) -> Trace:
    reader = _MessageReader(source)
    for part in parts:
        for message, message_at in part.messages:
            if not part.resent:
                reader.read(message, message_at)
    return reader.conversation.trace(at)


def _get_blocks(message: dict[str, Any]) -> list[Any]:
    content = message.get("content")
    return content if isinstance(content, list) else []


def _message_key(message: Any) -> Hashable | None:
    """Return what two copies of a message share: role, text, ids of the client's calls and results."""
    if not isinstance(message, dict):
        return None
    blocks = [block for block in _get_blocks(message) if isinstance(block, dict)]
    text = message_text(message["content"] if isinstance(message.get("content"), str) else [
        block for block in blocks if block.get("type") == "text"
    ]).strip()  # fmt: skip
    ids = tuple(
        str(block.get("id") or block.get("tool_use_id"))
        for block in blocks
        if block.get("type") in ("tool_use", _RESULT_TYPE)
    )
    if message.get("role") == "assistant" and not text and not ids:
        return None
    return (str(message.get("role")), text, ids)


class _MessageReader:
    """Reports the messages of a conversation to a `Conversation`."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.conversation = Conversation()

    def read(self, message: Any, at: str) -> None:
        """Read one message: a turn, results of tools, or a step and its calls."""
        message = expect_object(message, at)
        role, content = message.get("role"), message.get("content")
        if not isinstance(content, (str, list)):
            raise unexpected_value(f"{at}/content", "text or blocks", content)
        if role not in ("user", "assistant", "system"):
            if not isinstance(role, str):
                raise unexpected_value(f"{at}/role", "a role (user or assistant)", role)
            self.source.not_understood(f"message of role {role!r}", f"{at}/role", "user or assistant")
            return
        if not _MESSAGE_FIELDS.issuperset(message):
            self.source.check_fields(
                message, _MESSAGE_FIELDS, at, of="a message", expected="all in the blocks of content"
            )
        if role == "system":
            return
        blocks = [
            (expect_object(block, f"{at}/content/{i}"), f"{at}/content/{i}")
            for i, block in enumerate(_get_blocks(message))
        ]
        if role == "user" and not any(is_result_block(block) for block, _ in blocks):
            self.conversation.user(message_text(content))
        elif role == "assistant":
            if self.source.costs:
                self.conversation.spend(read_usage(message.get("usage")))
            self._new_step = True
            self._stepped = False
        for block, block_at in blocks:
            self._read_block(block, block_at, by_agent=role == "assistant")
        if role == "assistant" and not self._stepped and not any(is_result_block(block) for block, _ in blocks):
            self.conversation.step()
        counted = count_hosted_searches(message["usage"]) if "usage" in message else 0
        # A usage that counts searches although the message shows none: their blocks were dropped from the log.
        if counted and any(block.get("type") in _HOSTED_MARKS for block, _ in blocks):
            return
        for _ in range(counted):
            self.conversation.call(ToolCall("web_search", f"{at}/usage", is_search=True, remedy=_REMEDY))

    def _read_block(self, block: dict[str, Any], at: str, *, by_agent: bool) -> None:
        kind = as_word(block.get("type"))
        if kind in CALL_TYPES and by_agent:
            if self._new_step:
                self.conversation.step()
                self._new_step, self._stepped = False, True
            name = expect_text(block.get("name"), f"{at}/name")
            call_id = expect_id(block.get("id"), f"{at}/id")
            remedy = _REMEDY if kind in _HOSTED_CALL_TYPES else ""
            self.conversation.call(ToolCall(name, at, call_id, block.get("input"), remedy=remedy))
        elif is_result_block(block):
            self._read_result(block, at)
            self._new_step = True
        elif kind not in OTHER_BLOCK_TYPES:
            if not isinstance(block.get("type"), str):
                raise unexpected_value(f"{at}/type", "the type of a block", block.get("type"))
            self.source.not_understood(f"block of type {kind!r}", at, "a block such as text, tool_use, tool_result")

    def _read_result(self, block: dict[str, Any], at: str) -> None:
        call_id, content, failed = read_result_block(block, at)
        self.conversation.answer(call_id, content, at, failed=failed)


def read_result_block(block: dict[str, Any], at: str) -> tuple[str, Any, bool]:
    """Return the id of the call that a block answers, its content, and whether it reports a failure.

    Raises:
        InputError: it has no id, or its content is neither text nor blocks.
    """
    call_id = expect_id(block.get("tool_use_id"), f"{at}/tool_use_id")
    if call_id is None:
        raise unexpected_value(f"{at}/tool_use_id", "the id of the call it answers", call_id)
    content = block.get("content", UNANSWERED)
    failed = block.get("is_error") is True
    if isinstance(content, dict) and str(content.get("type")).endswith("_error"):
        failed = True
    elif content is None or not (content is UNANSWERED or isinstance(content, (str, list, dict))):
        raise unexpected_value(f"{at}/content", "text or blocks", content)
    for index, part in enumerate(content if isinstance(content, list) else []):
        expect_text(expect_object(part, f"{at}/content/{index}").get("type"), f"{at}/content/{index}/type")
    return call_id, content, failed


def is_result_block(block: dict[str, Any]) -> bool:
    kind = block.get("type")
    return isinstance(kind, str) and (kind == _RESULT_TYPE or kind.endswith("_tool_result"))
