"""pydantic-ai messages: requests and responses with `parts`, as `all_messages_json()` writes them.

A response is a step. A request with a user's prompt is a turn. Calls and returns are paired by `tool_call_id`. One
response holds both the call and the return of a hosted tool.

Lost: Results of OpenAI's hosted searches that have no sources. These searches are unrecorded.
Query id: `query_id` in the messages' `metadata`, else the `conversation_id`. The system is the model.
Record: Ask for sources as in the format `openai_responses`.
Costs: `usage` of a response, and seconds since the previous step, by `timestamp`.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any

from goodgain.logs.traces.conversations import UNANSWERED, Conversation, FileHead, Source, Trace
from goodgain.logs.traces.conversations.messages import message_text
from goodgain.logs.traces.conversations.record_objects import (
    any_object,
    find_items,
    find_list,
    find_query_id,
    text_or_none,
    walk_objects,
)
from goodgain.logs.traces.conversations.tool_calls import mark_unanswered, read_call, require_id
from goodgain.logs.traces.expected_values import as_word, expect_id, objects_in, unexpected_value

_KINDS = {"request", "response"}
#: Kinds of parts: calls of the client's and the provider's tools, and their returns.
_CALLS = {"tool-call", "builtin-tool-call"}
_RETURNS = {"tool-return", "builtin-tool-return"}
#: Kinds of parts without a call or a result.
_OTHER_PARTS = {
    *("system-prompt", "text", "thinking", "file", "compaction", "speech", "retry-feedback", "instruction"),
    *("instruction-delta", "instruction-baseline", "instruction-digest", "model-settings-delta"),
    *("tool-availability-delta", "capability-load-delta"),
}
#: Values of `outcome` for failed calls, and for calls that were not made.
_FAILED = {"failed", "retried", "interrupted"}
_NOT_MADE = {"denied"}
_PATHS = ("messages", "message_history", "all_messages", "new_messages", "message_list")
_REMEDY = "ask the provider to return the search's sources: the log lacks what its own tool found"


def sniff(head: FileHead) -> bool:
    messages = [item for held in head.conversations for item in objects_in(find_list(held, *_PATHS)[0])]
    of_kind = (message for message in messages if as_word(message.get("kind")) in _KINDS)
    return any(any_object(message.get("parts"), lambda part: "part_kind" in part) for message in of_kind)


def read(source: Source) -> Iterator[Trace]:
    find = partial(find_items, paths=_PATHS, expected="a list of messages (requests and responses)")
    return _Messages.read_source(source, find, of_list=lambda item: "kind" in item or "parts" in item)


class _Messages(Conversation):
    def read(self, message: dict[str, Any], at: str) -> None:
        """Read a request or a response; a response is a step. Its texts after the last call are the answer."""
        kind = message.get("kind")
        if as_word(kind) not in _KINDS:
            self.report_kind("message", message, "kind", at, "request or response")
            return
        if not isinstance(message.get("parts"), list):
            raise unexpected_value(f"{at}/parts", "a list of parts", message.get("parts"))

        self.report_unread("a message", message, at, ("parts",))
        if kind == "response":
            self.spend(message.get("usage"))
            self.step(message.get("timestamp"))
        for part, part_at in walk_objects(message["parts"], f"{at}/parts"):
            self._read_part(part, part_at)

        if kind == "response":
            spoken = ({"type": part.get("part_kind"), "text": part.get("content")} for part in message["parts"])
            self.say([*spoken], is_call=lambda part: part["type"] in _CALLS | _RETURNS)

        self.session_id = expect_id(message.get("conversation_id"), f"{at}/conversation_id") or self.session_id
        self.query_id = find_query_id(message.get("metadata"), f"{at}/metadata") or self.query_id
        self.tag = text_or_none(message.get("model_name")) or self.tag

    def _read_part(self, part: dict[str, Any], at: str) -> None:
        """Read a prompt (a turn), a call, or a result.

        A retry prompt is the failed result of its call; a denied call is not a search.
        """
        kind = as_word(part.get("part_kind"))
        if kind == "user-prompt":
            self.user(message_text(part.get("content")))
        elif kind in _CALLS:
            call = self.call(read_call(part, at, "tool_name", "tool_call_id", "args"))
            call.remedy = _REMEDY if kind == "builtin-tool-call" else ""
        elif kind in _RETURNS:
            call_id = require_id(part, at, "tool_call_id")
            outcome = as_word(part.get("outcome"), "success")
            content = part.get("content")
            if outcome not in {"success"} | _FAILED | _NOT_MADE:
                expected = "success, failed, retried, interrupted or denied"
                raise unexpected_value(f"{at}/outcome", expected, part.get("outcome"))
            output = _unwrap_hosted(content) if kind == "builtin-tool-return" else mark_unanswered(content)
            call = self.answer(call_id, output, at, failed=outcome in _FAILED)
            if outcome in _NOT_MADE:
                call.is_search = False
                call.opened = ()
        elif kind == "retry-prompt":
            retried = expect_id(part.get("tool_call_id"), f"{at}/tool_call_id")
            if part.get("tool_name") is not None and self.has_call(retried):  # else the retry concerns the answer
                self.answer(retried, part.get("content"), at, failed=True)
        elif kind not in _OTHER_PARTS:
            expected = "a part such as user-prompt, text, tool-call, tool-return, retry-prompt"
            self.report_kind("part", part, "part_kind", at, expected)


def _unwrap_hosted(content: Any) -> Any:
    """Return the results or sources in the output of a hosted tool of OpenAI or Google. Return other outputs unchanged."""
    if not isinstance(content, dict) or not ("status" in content or "sources" in content):
        return mark_unanswered(content)
    if content.get("status") == "failed":
        return {"error": "failed"}
    values = (content.get(key) for key in ("results", "sources"))  # results are those of a file search
    return next((value for value in values if value is not None), UNANSWERED)
