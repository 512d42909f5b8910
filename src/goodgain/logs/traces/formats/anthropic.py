"""Anthropic Messages: content blocks such as `tool_use`, `server_tool_use`, `web_search_tool_result`.

An assistant message is a step. Inside the message, a new step begins at each call that follows a result. Calls and results
are paired by id over the whole turn. A user message with tool results is not a turn.

Lost: Texts and scores of hosted searches: the API gives URL, title and age.
Query id: Not recorded by the API.
Record: The log must hold whole answers. If a search appears only in the counts of `usage`, its results are not in the log.
Costs: `usage` of each answer.
"""

from collections.abc import Hashable, Iterator
from typing import Any

from goodgain.logs.traces.conversations import UNANSWERED, FileHead, Source, Trace
from goodgain.logs.traces.conversations.messages import (
    PLAIN_PARTS,
    find_messages,
    has_messages,
    message_text,
    walk_parts,
)
from goodgain.logs.traces.conversations.record_objects import Placed, any_object
from goodgain.logs.traces.conversations.tool_calls import read_call, require_id
from goodgain.logs.traces.conversations.vendor_exchanges import JoinedConversation
from goodgain.logs.traces.expected_values import as_word, expect_text, objects_in, unexpected_value

#: Types of blocks that are calls. The client runs `tool_use`. The vendor runs the others and returns their results.
CALL_TYPES = {"tool_use", "server_tool_use", "mcp_tool_use"}
_RESULT_TYPE = "tool_result"
#: Types of blocks without a call or a result.
_OTHER_BLOCK_TYPES = PLAIN_PARTS | {
    *("search_result", "container_upload", "compaction", "fallback", "mcp_tool_listing", "tool_addition"),
    "tool_removal",
}
BLOCKS = "a block such as text, tool_use, tool_result"
#: Types of blocks that only this API writes.
_HOSTED_MARKS = {"server_tool_use", "web_search_tool_result"}
_REMEDY = "record the messages as the API returns them: the log lacks the block with the results"


def sniff(head: FileHead) -> bool:
    if JoinedConversation.are_exchanges(head):
        return _Messages.claims(head)
    if any(has_messages(record, _has_tool_block) for record in head.conversations):
        return True

    answers = [answer for answer in head.objects if answer.get("type", "message") == "message"]
    whole = [
        answer
        for answer in answers
        if {"type", "stop_reason"} <= answer.keys() and isinstance(answer.get("content"), list)
    ]
    # The head of the file may end within an answer of the API.
    blocks = [block for answer in answers for block in objects_in(answer.get("content"))]
    return bool(whole) or any(_is_tool_block(block) and block["type"] in _HOSTED_MARKS for block in blocks)


def _has_tool_block(message: dict[str, Any]) -> bool:
    return message.get("role") in ("user", "assistant") and any_object(message.get("content"), _is_tool_block)


def _is_tool_block(block: dict[str, Any]) -> bool:
    is_result = block.get("type") != _RESULT_TYPE or "tool_use_id" in block
    return is_result and is_call_or_result(block) and "tool_type" not in block  # Inspect's own parts have a tool_type


def read(source: Source) -> Iterator[Trace]:
    if JoinedConversation.are_exchanges(source.head):
        return _Messages.join_exchanges(source)
    return _Messages.read_source(source, _find_messages)


def _find_messages(value: Any, at: str) -> Iterator[Placed]:
    is_answer = isinstance(value, dict) and "content" in value and "messages" not in value
    return find_messages([value] if is_answer else value, at)


class _Messages(JoinedConversation):
    asked, answered = "messages", "type"

    @classmethod
    def split(cls, record: Any) -> tuple[dict[str, Any], dict[str, Any]] | None:
        exchange = super().split(record)
        if exchange and exchange[1]["type"] == "message":
            return exchange
        return None

    @classmethod
    def find_answer(cls, response: dict[str, Any], at: str) -> list[tuple[Any, str]]:
        return [(response, at)]

    @classmethod
    def key(cls, message: dict[str, Any]) -> Hashable | None:
        """Return role, text and ids of the client's calls and results. None: an answer with only thoughts and vendor's calls."""
        content = message.get("content")
        blocks = objects_in(content)
        texts = content if isinstance(content, str) else [block for block in blocks if block.get("type") == "text"]
        text = message_text(texts).strip()
        of_client = (block for block in blocks if block.get("type") in ("tool_use", _RESULT_TYPE))
        ids = tuple(str(block.get("id") or block.get("tool_use_id")) for block in of_client)
        if message.get("role") == "assistant" and not text and not ids:
            return None
        return (str(message.get("role")), text, ids)

    def read(self, message: dict[str, Any], at: str) -> None:
        """Read a message: text of the user begins a turn, results answer calls, and calls of the assistant form steps.

        A step begins at the first call of a message, and at each call after a result. An answer without a call is a step too.
        """
        role = message.get("role")
        content = message.get("content")
        if not isinstance(content, (str, list)):
            raise unexpected_value(f"{at}/content", "text or blocks", content)
        if role not in ("user", "assistant", "system"):
            self.report_kind("message", message, "role", at, "user or assistant")
            return

        self.report_unread("a message", message, at, ("content",))
        if role == "system":
            return

        blocks = list(walk_parts(content, f"{at}/content"))
        has_results = any(is_result_block(block) for block, _ in blocks)
        if role == "user" and not has_results:
            self.user(message_text(content))
        elif role == "assistant":
            self.spend(message.get("usage"))

        new_step = True  # the next call begins a step
        stepped = False
        for block, block_at in blocks:
            if is_result_block(block):
                call_id, output, failed = read_result_block(block, block_at)
                self.answer(call_id, output, block_at, failed=failed)
                new_step = True
            elif as_word(block.get("type")) in CALL_TYPES and role == "assistant":
                if new_step:
                    self.step()
                    new_step, stepped = False, True
                call = self.call(read_call(block, block_at, arguments="input"))
                call.remedy = "" if block["type"] == "tool_use" else _REMEDY
            elif as_word(block.get("type")) in CALL_TYPES or not is_known_block(block):
                self.report_kind("block", block, "type", block_at, BLOCKS)

        if role == "assistant" and not stepped and not has_results:
            self.step()
        if role == "assistant":
            self.say(content, is_call=is_call_or_result)
        if not any(block.get("type") in _HOSTED_MARKS for block, _ in blocks):
            self.add_counted_searches(message.get("usage"), at, _REMEDY)


def read_result_block(block: dict[str, Any], at: str) -> tuple[str, Any, bool]:
    """Return three things from a result block: the id of the answered call, the content, and whether the call failed."""
    call_id = require_id(block, at, "tool_use_id")
    content = block.get("content", UNANSWERED)
    failed = block.get("is_error") is True
    if isinstance(content, dict) and str(content.get("type")).endswith("_error"):
        failed = True
    elif content is None or not (content is UNANSWERED or isinstance(content, (str, list, dict))):
        raise unexpected_value(f"{at}/content", "text or blocks", content)
    for part, part_at in walk_parts(content, f"{at}/content"):
        expect_text(part.get("type"), f"{part_at}/type")
    return call_id, content, failed


def is_known_block(block: dict[str, Any]) -> bool:
    return as_word(block.get("type")) in _OTHER_BLOCK_TYPES or is_call_or_result(block)


def is_call_or_result(block: dict[str, Any]) -> bool:
    return as_word(block.get("type")) in CALL_TYPES or is_result_block(block)


def is_result_block(block: dict[str, Any]) -> bool:
    kind = as_word(block.get("type"))
    return kind == _RESULT_TYPE or kind.endswith("_tool_result")
