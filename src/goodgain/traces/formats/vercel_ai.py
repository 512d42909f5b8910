"""Vercel AI SDK: messages of `useChat` (`parts`, `toolInvocations`), `response.messages` and `steps`.

In a UI message a step ends at each `step-start`; a model message of the assistant, or a member of `steps`, is a step.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from goodgain.traces.conversations.conversation import (
    Conversation,
    find_messages,
    find_query_id,
    has_messages,
    is_message_list,
    message_text,
)
from goodgain.traces.input.checks import as_word, expect_id, expect_list, expect_object, expect_text, unexpected_value
from goodgain.traces.input.file_head import FileHead
from goodgain.traces.input.sources import Source
from goodgain.traces.model import UNANSWERED, ToolCall, Trace

_ROLES = {"user", "assistant", "system", "tool", "data"}
#: Types of parts without a call or a result, in UI messages, model messages and steps; `data-...` is the program's own.
_OTHER_PARTS = {
    *("text", "reasoning", "redacted-reasoning", "file", "image", "source-document", "step-start"),
    *("tool-approval-request", "tool-approval-response", "reasoning-file", "custom"),
}
#: Parts that cite a page.
_SOURCE_PARTS = {"source-url", "source"}
_PARTS_OF_MODEL = {"tool-call", "tool-result", "tool-error"}
#: What became of a call in a UI message, of version 5 and 4: it has an answer, failed, was not run, or has no answer.
_ANSWERED, _FAILED = {"output-available", "result"}, {"output-error"}
_NOT_RUN = {"output-denied", "approval-requested"}
_UNANSWERED = {"input-streaming", "input-available", "approval-responded", "partial-call", "call"}
#: The outputs of model messages since version 5.
_OUTPUT_TYPES = {"json", "text", "content", "error-text", "error-json", "execution-denied"}
_OUTPUT_FIELDS = {"type", "value", "providerOptions", "reason"}
_MESSAGE_FIELDS = {
    "role",
    "content",
    "parts",
    "toolInvocations",
    "reasoning",
    "annotations",
    "experimental_attachments",
}
_MESSAGE_FIELDS |= {"providerOptions", "providerMetadata", "attachments", "type", "data"}
_STEP_FIELDS = {
    *("content", "text", "toolCalls", "toolResults", "reasoning", "reasoningDetails", "reasoningText", "sources"),
    *("files", "request", "response", "warnings", "stepType", "providerMetadata", "finishReason", "rawFinishReason"),
    *("staticToolCalls", "dynamicToolCalls", "staticToolResults", "dynamicToolResults", "isContinued", "totalUsage"),
    *("experimental_providerMetadata", "stepNumber", "callId", "functionId", "toolsContext", "runtimeContext"),
}
_REMEDY = "the provider ran the search and logs only what the answer cites: count it as results with citations=True"


def sniff(head: FileHead) -> bool:
    """Return whether there are messages with typed `parts`, `toolInvocations`, or parts with a `toolCallId`."""
    return any(has_messages(record, _is_message) or _find_steps(record) is not None for record in head.conversations)


def _is_message(message: dict[str, Any]) -> bool:
    if as_word(message.get("role")) not in _ROLES:
        return False
    parts = message.get("parts")
    if isinstance(parts, list) and parts and all(isinstance(part, dict) and "type" in part for part in parts):
        return True
    return isinstance(message.get("toolInvocations"), list) or _has_model_parts(message.get("content"))


def _has_model_parts(content: Any) -> bool:
    return isinstance(content, list) and any(
        isinstance(part, dict) and "toolCallId" in part and as_word(part.get("type")) in _PARTS_OF_MODEL
        for part in content
    )


def _find_steps(value: Any) -> list[Any] | None:
    """Return the steps of a result of `generateText`, which are a list or stand under `steps`; None if there are none."""
    steps = value.get("steps") if isinstance(value, dict) else value
    if isinstance(steps, list) and any(
        isinstance(step, dict)
        and "role" not in step
        and "finishReason" in step
        and ("toolCalls" in step or _has_model_parts(step.get("content")))
        for step in steps
    ):
        return steps
    return None


def independent(_: FileHead) -> bool:
    """Return True: each line of a JSON Lines file is a trace of its own."""
    return True


def read(source: Source) -> Iterator[Trace]:
    """Yield one trace a list of messages or steps, or one for all lines if each is a message."""
    return source.traces(
        lambda value, at: _read_trace(source, value, at),
        is_one=lambda value: is_message_list(value) or _find_steps(value) is not None,
    )


def _read_trace(source: Source, value: Any, at: str) -> Trace:
    reader = _MessageReader(source)
    if (steps := _find_steps(value)) is not None:
        for index, step in enumerate(steps):
            reader.read_step(step, f"{at}/steps/{index}" if isinstance(value, dict) else f"{at}/{index}")
    else:
        messages, messages_at = find_messages(value, at)
        for index, message in enumerate(messages):
            reader.read(message, f"{messages_at}/{index}")
    record = value if isinstance(value, dict) else {}
    chat = expect_id(record.get("id"), f"{at}/id") if "messages" in record else None
    trace = reader.conversation.trace(at, value, query_id=find_query_id(record.get("metadata"), at) or chat)
    trace.session_id = chat
    return trace


class _MessageReader:
    """Reports messages and steps to a `Conversation`."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.conversation = Conversation()
        self._calls = 0
        self._cited: list[Any] = []

    def read(self, message: Any, at: str) -> None:
        """Read one message, of the UI or of the model."""
        message = expect_object(message, at)
        role = message.get("role")
        expected = "calls and results in parts, toolInvocations or content"
        self.source.check_fields(message, _MESSAGE_FIELDS, at, of="a message", expected=expected)
        content, parts = message.get("content"), message.get("parts")
        if content is None and parts is None and "toolInvocations" not in message:
            raise unexpected_value(f"{at}/parts", "parts, or a text or parts as content", content)
        if not isinstance(content, (str, list)) and content is not None:
            raise unexpected_value(f"{at}/content", "text or parts", content)
        if role == "user":
            self.conversation.user(message_text(parts if parts is not None else content))
        elif as_word(role) not in _ROLES:
            if not isinstance(role, str):
                raise unexpected_value(f"{at}/role", "a role (user, assistant, tool ...)", role)
            self.source.not_understood(f"message of role {role!r}", f"{at}/role", ", ".join(sorted(_ROLES)))
            return
        if role == "assistant":
            self.conversation.step()
            self._calls, self._cited = 0, []
        seen = {call_id for part in expect_list(parts, f"{at}/parts") if (call_id := _invocation_id(part)) is not None}
        self._read_parts(parts, f"{at}/parts")
        self._read_invocations(message.get("toolInvocations"), f"{at}/toolInvocations", seen)
        if isinstance(content, list):
            self._read_parts(content, f"{at}/content")
        if role == "assistant":
            self._add_citations(at)

    def read_step(self, step: Any, at: str) -> None:
        """Read a member of `steps`: parts as content or, in version 4, `toolCalls` and `toolResults`."""
        step = expect_object(step, at)
        self.source.check_fields(step, _STEP_FIELDS, at, of="a step", expected="calls and results in content")
        self.conversation.step()
        self._calls, self._cited = 0, []
        content = step.get("content")
        if isinstance(content, list):
            self._read_parts(content, f"{at}/content")
        else:
            for key, kind in (("toolCalls", "tool-call"), ("toolResults", "tool-result")):
                for index, part in enumerate(expect_list(step.get(key), f"{at}/{key}")):
                    part_at = f"{at}/{key}/{index}"
                    self._read_part({**expect_object(part, part_at), "type": kind}, part_at)
            self._cited += [one for one in expect_list(step.get("sources"), f"{at}/sources") if isinstance(one, dict)]
        self._add_citations(at)

    def _read_parts(self, parts: Any, at: str) -> None:
        for index, part in enumerate(expect_list(parts, at)):
            self._read_part(expect_object(part, f"{at}/{index}"), f"{at}/{index}")

    def _read_part(self, part: dict[str, Any], at: str) -> None:
        kind = part.get("type")
        if not isinstance(kind, str):
            raise unexpected_value(f"{at}/type", "the type of a part", kind)
        if kind == "step-start":
            self.conversation.step()
        elif kind == "tool-call":
            self._call(part, part.get("toolName"), part.get("input", part.get("args")), at)
        elif kind in ("tool-result", "tool-error"):
            self._read_result(part, at, failed=kind == "tool-error")
        elif kind == "tool-invocation":
            invocation = expect_object(part.get("toolInvocation"), f"{at}/toolInvocation")
            self._read_ui_call(invocation, invocation.get("toolName"), f"{at}/toolInvocation")
        elif kind == "dynamic-tool":
            self._read_ui_call(part, part.get("toolName"), at)
        elif kind in _SOURCE_PARTS:
            found = part.get("source", part)
            self._cited.append(found if isinstance(found, dict) else part)
        elif kind in _OTHER_PARTS or kind.startswith("data-"):
            return
        elif kind.startswith("tool-") and "toolCallId" in part:
            self._read_ui_call(part, kind.removeprefix("tool-"), at)
        else:
            self.source.not_understood(f"part of type {kind!r}", at, "a part such as text, tool-<name>, tool-call")

    def _read_invocations(self, invocations: Any, at: str, seen: set[str]) -> None:
        """Read the calls of version 4 that do not also stand in the parts; a new number of `step` is a new step."""
        step: Any = None
        for index, value in enumerate(expect_list(invocations, at)):
            call_at = f"{at}/{index}"
            invocation = expect_object(value, call_at)
            if expect_id(invocation.get("toolCallId"), f"{call_at}/toolCallId") in seen:
                continue
            if index and invocation.get("step") != step:
                self.conversation.step()
            step = invocation.get("step")
            self._read_ui_call(invocation, invocation.get("toolName"), call_at)

    def _call(self, part: dict[str, Any], name: Any, arguments: Any, at: str) -> ToolCall:
        call_id = expect_id(part.get("toolCallId"), f"{at}/toolCallId")
        call = ToolCall(expect_text(name, f"{at}/toolName"), at, call_id, arguments)
        if part.get("providerExecuted") is True:
            call.remedy = _REMEDY
            call.is_search = self.source.is_search(call.tool)
        self.conversation.call(call)
        self._calls += 1
        return call

    def _read_ui_call(self, part: dict[str, Any], name: Any, at: str) -> None:
        """Read a call of a UI message, which has its answer in itself."""
        call = self._call(part, name, part.get("input", part.get("args")), at)
        state = as_word(part.get("state"))
        if state in _ANSWERED and part.get("preliminary") is not True:
            key = "result" if state == "result" else "output"
            if key not in part:
                raise unexpected_value(f"{at}/{key}", "the output of the tool", None)
            self._set_output(call, part[key], at)
        elif state in _FAILED:
            call.output, call.failed = part.get("errorText"), True
        elif state in _NOT_RUN:
            call.is_search = False
        elif state not in _UNANSWERED and state not in _ANSWERED:
            raise unexpected_value(f"{at}/state", "the state of a call (output-available, output-error ...)", state)

    def _read_result(self, part: dict[str, Any], at: str, *, failed: bool) -> None:
        call_id = expect_id(part.get("toolCallId"), f"{at}/toolCallId")
        if call_id is None:
            raise unexpected_value(f"{at}/toolCallId", "the id of the call it answers", call_id)
        output = part.get("output", part.get("result", part.get("error", UNANSWERED)))
        kind = ""
        if isinstance(output, dict) and output.keys() <= _OUTPUT_FIELDS:
            kind = as_word(output.get("type"))
        if kind and kind not in _OUTPUT_TYPES:
            self.source.not_understood(f"output of type {kind!r}", f"{at}/output", ", ".join(sorted(_OUTPUT_TYPES)))
        failed = failed or part.get("isError") is True or kind.startswith("error-")
        call = self.conversation.answer(call_id, UNANSWERED, at, failed=failed)
        if kind == "execution-denied":
            call.is_search = False
        else:
            self._set_output(call, output["value"] if kind and "value" in output else output, at)

    def _set_output(self, call: ToolCall, output: Any, at: str) -> None:
        """Set the output of a call; of OpenAI's hosted search it is an action with sources."""
        action = output.get("action") if isinstance(output, dict) else None
        if not isinstance(action, dict):
            call.output = output
            return
        call.remedy = _REMEDY
        call.is_search = action.get("type") == "search"
        if call.is_search and isinstance(sources := output.get("sources"), list):
            call.output = [_read_source(one, f"{at}/output/sources/{index}") for index, one in enumerate(sources)]

    def _add_citations(self, at: str) -> None:
        """Report the pages that a message cites; if it has no call, a provider searched for it."""
        if not self._cited:
            return
        if not self._calls:
            self.conversation.call(ToolCall("web_search", at, is_search=True, remedy=_REMEDY))
        if self.source.citations:
            self.conversation.cite([{key: one.get(key) for key in ("url", "title")} for one in self._cited])


def _invocation_id(part: Any) -> str | None:
    held = part.get("toolInvocation") if isinstance(part, dict) else None
    call_id = held.get("toolCallId") if isinstance(held, dict) else None
    return call_id if isinstance(call_id, str) else None


def _read_source(source: Any, at: str) -> dict[str, Any]:
    """Return a source of OpenAI's search: a URL, or the name of an interface (weather, sports) that answered."""
    found = expect_object(source, at)
    if found.get("url") is None and found.get("name"):
        return {"title": expect_text(found["name"], f"{at}/name"), "type": found.get("type")}
    return {"url": expect_text(found.get("url"), f"{at}/url")}
