"""Azure AI Evaluation: rows with `query` and `response`, two lists of messages with `tool_call` and `tool_result` parts.

A message of the assistant is a step. A message of the user is a turn.

Lost: Tokens and prices.
Query id: `query_id`, `question_id`, `qid` or `task_id` of the row, else the file's name and the number of the row.
Record: `AIAgentConverter` of azure-ai-evaluation writes such rows.
Costs: Seconds, from `createdAt`.
"""

from collections.abc import Iterator
from typing import Any

from goodgain.logs.traces.conversations import Conversation, FileHead, Source, Trace
from goodgain.logs.traces.conversations.messages import PLAIN_PARTS, message_text, walk_parts
from goodgain.logs.traces.conversations.record_objects import Placed, any_object, walk_objects
from goodgain.logs.traces.conversations.tool_calls import mark_unanswered, read_call
from goodgain.logs.traces.expected_values import as_word, expect_id, expect_object, unexpected_value

_LISTS = ("query", "response")
_PARTS = {*PLAIN_PARTS, "tool_call", "tool_result"}


def sniff(head: FileHead) -> bool:
    return any(any_object(record.get(key), _has_call) for record in head.objects for key in _LISTS)


def _has_call(message: dict[str, Any]) -> bool:
    parts = message.get("content")
    return "role" in message and any_object(parts, lambda part: not {"tool_call_id", "tool_result"}.isdisjoint(part))


def read(source: Source) -> Iterator[Trace]:
    def find_messages(value: Any, at: str) -> Iterator[Placed]:
        """Yield the messages of a row, the question first. A text instead of a list of messages counts as one message."""
        record = expect_object(value, at)
        if not isinstance(record.get("response"), (str, list)):
            raise unexpected_value(f"{at}/response", "the messages of the response", record.get("response"))
        for key in _LISTS:
            if isinstance(held := record.get(key), str):
                held = [{"role": "user" if key == "query" else "assistant", "content": held}]
            yield from walk_objects(held, f"{at}/{key}")

    return _Row.read_source(source, find_messages, of_list=None)


class _Row(Conversation):
    def read(self, message: dict[str, Any], at: str) -> None:
        """Read a message of the user (a turn), of the assistant (a step: its calls, else the answer), or the results of a tool."""
        role = message.get("role")
        content = message.get("content")
        self.report_parts("a message", content, f"{at}/content", _PARTS)
        self.report_unread("a message", message, at, ("content", "tool_call_id"))
        parts = list(walk_parts(content, f"{at}/content"))
        if role == "user":
            self.user(message_text(content))
        elif role == "assistant":
            self.step(message.get("createdAt"))
            placed_calls = [placed for placed in parts if _is_of("tool_call", placed)]
            calls = [self.call(read_call(part, part_at, call_id="tool_call_id")) for part, part_at in placed_calls]
            if not calls:
                self.say(content or [])
        elif role == "tool":
            call_id = expect_id(message.get("tool_call_id"), f"{at}/tool_call_id")
            for part, part_at in parts:
                self.answer(call_id, mark_unanswered(part.get("tool_result", part.get("text"))), part_at)
        elif role not in ("system", "developer"):
            self.report_kind("message", message, "role", at, "user, assistant, tool or system")


def _is_of(kind: str, placed: Placed) -> bool:
    return as_word(placed[0].get("type")) == kind
