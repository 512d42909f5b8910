"""AutoGen: messages of AgentChat (`TaskResult`, `ToolCallRequestEvent` ...) and saved states of its agents.

A `ToolCallRequestEvent`, or another message of an agent, is a step. A message with the source `user` is a turn. Summaries
repeat results and are left out.

Lost: Which agent of a team searched, because all messages are one trace.
Query id: Not recorded by AutoGen.
Record: A tool should return JSON text; a Python list is logged as Python prints it.
Costs: `models_usage` of messages.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any

from goodgain.logs.traces.conversations import Conversation, FileHead, Source, Trace
from goodgain.logs.traces.conversations.messages import message_text
from goodgain.logs.traces.conversations.record_objects import any_object, find_items, find_list, walk_objects
from goodgain.logs.traces.conversations.tool_calls import mark_unanswered, require_id
from goodgain.logs.traces.expected_values import as_word, expect_text, unexpected_value

#: Types of messages with calls and with results. `FunctionExecutionResultMessage` is in saved states.
_REQUEST, _RESULTS = "ToolCallRequestEvent", {"ToolCallExecutionEvent", "FunctionExecutionResultMessage"}
#: Types of messages without a call.
_OTHER = {
    *("TextMessage", "MultiModalMessage", "StopMessage", "HandoffMessage", "StructuredMessage", "MemoryQueryEvent"),
    *("CodeGenerationEvent", "CodeExecutionEvent", "SelectSpeakerEvent", "SelectorEvent"),
}
#: Types of messages that repeat other messages, as a whole or in pieces.
_REPEATS = {"ToolCallSummaryMessage", "ModelClientStreamingChunkEvent", "ThoughtEvent", "UserInputRequestedEvent"}
_STATE = {"SystemMessage", "UserMessage", "AssistantMessage"}
_MARKS = {_REQUEST, *_RESULTS, *_STATE, "TextMessage", "ToolCallSummaryMessage"}
_PATHS = ("messages", "llm_context/messages", "llm_messages", "message_thread", "inner_messages")


def sniff(head: FileHead) -> bool:
    return any(any_object(find_list(conversation, *_PATHS)[0], _is_message) for conversation in head.conversations)


def _is_message(message: dict[str, Any]) -> bool:
    return as_word(message.get("type")) in _MARKS and "content" in message and "role" not in message


def read(source: Source) -> Iterator[Trace]:
    find = partial(find_items, paths=_PATHS, expected="messages of AutoGen")
    return _Messages.read_source(source, find, of_list=lambda member: "type" in member, of_line=_is_message)


class _Messages(Conversation):
    def read(self, message: dict[str, Any], at: str) -> None:
        """Read results of tools, calls (a step), a text of the user (a turn), or a text of an agent (a step). Skip repeats."""
        kind = as_word(message.get("type"))
        content = message.get("content")
        if kind in _REPEATS:
            return

        self.report_unread("a message", message, at, ("content",))
        self.spend(message.get("models_usage"))
        if "content" not in message:
            raise unexpected_value(f"{at}/content", "text, calls or results", None)

        if kind in _RESULTS:
            for result, result_at in walk_objects(content, f"{at}/content"):
                call_id = require_id(result, result_at, "call_id")
                failed = result.get("is_error") is True
                self.answer(call_id, mark_unanswered(result.get("content")), result_at, failed=failed)
        elif kind == _REQUEST or (kind == "AssistantMessage" and isinstance(content, list)):
            self.step()
            self.read_calls(content, f"{at}/content")
        elif kind == "UserMessage" or (kind in _OTHER and expect_text(message.get("source"), f"{at}/source") == "user"):
            self.user(message_text(content))
        elif kind in _OTHER or kind == "AssistantMessage":
            self.step()
            self.say(content)
        elif kind != "SystemMessage":
            self.report_kind("message", message, "type", at, "TextMessage, ToolCallRequestEvent ...")
