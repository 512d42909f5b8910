"""OpenCode: exported sessions with `info` and `messages`, each of these with `info` and `parts`.

A step of the model, from `step-start` to `step-finish`, is a step. A message of the user is a turn.

Lost: Searches of subagents (the tool `task`).
Query id: The session's id. The system is the model of the last answer.
Record: `opencode export SESSION > session.json`
Costs: `tokens` and `cost` of a message, given to its first step.
"""

from collections.abc import Iterator
from typing import Any

from goodgain.logs.traces.conversations import Conversation, FileHead, Source, ToolCall, Trace
from goodgain.logs.traces.conversations.messages import message_text
from goodgain.logs.traces.conversations.record_objects import Placed, any_object, text_or_none, walk_list
from goodgain.logs.traces.conversations.tool_calls import mark_unanswered
from goodgain.logs.traces.expected_values import as_word, expect_id, expect_object, expect_text, object_or_empty

#: Types of parts without a call.
_OTHER_PARTS = {
    *("text", "reasoning", "file", "agent", "snapshot", "patch", "retry", "compaction", "subtask"),
    *("step-start", "step-finish"),
}


def sniff(head: FileHead) -> bool:
    return any(any_object(record.get("messages"), _is_message) for record in head.objects)


def _is_message(message: dict[str, Any]) -> bool:
    return "role" in object_or_empty(message.get("info")) and isinstance(message.get("parts"), list)


def read(source: Source) -> Iterator[Trace]:
    def find_messages(value: Any, at: str) -> Iterator[Placed]:
        return walk_list(expect_object(value, at), "messages", at)

    return _Session.read_source(source, find_messages, of_list=None)


class _Session(Conversation):
    def _end(self, at: str) -> None:
        info = object_or_empty(self.record.get("info"))
        self.session_id = expect_id(info.get("id"), f"{at}/info/id")

    def read(self, message: dict[str, Any], at: str) -> None:
        """Read a message of the user (a turn) or the assistant (a step, or one per part `step-start`).

        Synthetic texts are skipped.
        """
        info = expect_object(message.get("info"), f"{at}/info")
        parts = list(walk_list(message, "parts", at))
        texts = [part for part, _ in parts if part.get("type") == "text" and part.get("synthetic") is not True]
        if info.get("role") == "user":
            self.user(message_text(texts))
        elif info.get("role") == "assistant":
            self.tag = text_or_none(info.get("modelID")) or self.tag
            self.spend(_read_usage(info))
            if not any(part.get("type") == "step-start" for part, _ in parts):
                self.step()
            for part, part_at in parts:
                self._read_part(part, part_at)
            self.say(texts)
        else:
            self.report_kind("message", info, "role", f"{at}/info", "user or assistant")

    def _read_part(self, part: dict[str, Any], at: str) -> None:
        """Read a part of the assistant: the begin of a step, or a call with its output."""
        kind = as_word(part.get("type"))
        if kind == "step-start":
            self.step()
        elif kind == "tool":
            state = object_or_empty(part.get("state"))
            call_id = expect_id(part.get("callID"), f"{at}/callID")
            call = ToolCall(expect_text(part.get("tool"), f"{at}/tool"), at, call_id, state.get("input"))
            call.output = mark_unanswered(state.get("output"))
            call.failed = state.get("status") == "error"
            self.call(call)
        elif kind not in _OTHER_PARTS:
            self.report_kind("part", part, "type", at, "text, tool, step-start ...")


def _read_usage(info: dict[str, Any]) -> dict[str, Any]:
    tokens = object_or_empty(info.get("tokens"))
    return {"input_tokens": tokens.get("input"), "output_tokens": tokens.get("output"), "cost": info.get("cost")}
