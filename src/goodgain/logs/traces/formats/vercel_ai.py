"""Vercel AI SDK: messages of `useChat` (`parts`, `toolInvocations`), `response.messages` and `steps`.

In a UI message, each `step-start` begins a step. An assistant message of `response.messages`, or a member of `steps`, is a step.

Lost: Time, model, and usage (except in `steps`). A search without a final output counts as unrecorded.
Query id: `query_id`, `question_id` or `qid` in the `metadata` beside the messages, else the chat's `id`.
Record: For a provider's search, the log often holds only citations. `--citations` counts the citations as results.
Costs: `usage` of `steps`.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from goodgain.logs.traces.conversations import UNANSWERED, Conversation, FileHead, Source, ToolCall, Trace
from goodgain.logs.traces.conversations.messages import (
    PLAIN_PARTS,
    find_messages,
    has_messages,
    is_message,
    message_text,
    walk_parts,
)
from goodgain.logs.traces.conversations.record_objects import (
    Placed,
    any_object,
    find_items,
    find_list,
    find_query_id,
    walk_objects,
)
from goodgain.logs.traces.conversations.tool_calls import read_call, require_id
from goodgain.logs.traces.expected_values import as_word, expect_id, expect_object, object_or_empty, unexpected_value
from goodgain.logs.traces.formats.openai_chat import advise_citations
from goodgain.logs.traces.formats.openai_responses import read_source

_ROLES = {"user", "assistant", "system", "tool", "data"}
#: Types of parts without a call or a result, in UI messages, model messages and steps; `data-...` is the program's own.
_OTHER_PARTS = PLAIN_PARTS | {
    *("redacted-reasoning", "source-document", "tool-approval-request", "tool-approval-response", "reasoning-file"),
    "custom",
}
_PARTS_OF_MODEL = {"tool-call", "tool-result", "tool-error"}
#: The states of a call in a UI message (versions 5 and 4): answered, failed, not run, unanswered.
_ANSWERED = {"output-available", "result"}
_FAILED = {"output-error"}
_NOT_RUN = {"output-denied", "approval-requested"}
_UNANSWERED = {"input-streaming", "input-available", "approval-responded", "partial-call", "call"}
#: The outputs of model messages since version 5.
_OUTPUT_TYPES = {"json", "text", "content", "error-text", "error-json", "execution-denied"}
_OUTPUT_FIELDS = {"type", "value", "providerOptions", "reason"}
_MESSAGE_READ = {"content", "parts", "toolInvocations"}
#: The fields of a step that are read, or that repeat other fields or earlier messages.
_STEP_READ = {
    *("content", "text", "toolCalls", "toolResults", "sources", "request", "response", "warnings", "staticToolCalls"),
    *("dynamicToolCalls", "staticToolResults", "dynamicToolResults", "toolsContext", "runtimeContext"),
}


def sniff(head: FileHead) -> bool:
    return any(has_messages(record, _is_message) or _are_steps(record) for record in head.conversations)


def _is_message(message: dict[str, Any]) -> bool:
    parts = message.get("parts")
    has_calls = isinstance(message.get("toolInvocations"), list)
    is_typed = isinstance(parts, list) and all(isinstance(part, dict) and "type" in part for part in parts)
    has_parts = has_calls or bool(parts and is_typed) or _has_model_parts(message.get("content"))
    return has_parts and as_word(message.get("role")) in _ROLES


def _has_model_parts(content: Any) -> bool:
    return any_object(content, lambda part: "toolCallId" in part and as_word(part.get("type")) in _PARTS_OF_MODEL)


def _are_steps(value: Any) -> bool:
    return any_object(find_list(value, "steps")[0], _is_step)


def _is_step(step: dict[str, Any]) -> bool:
    calls = step.get("toolCalls")
    has_calls = calls == [] or any_object(calls, lambda call: "toolName" in call)
    return (has_calls or _has_model_parts(step.get("content"))) and "role" not in step and "finishReason" in step


def read(source: Source) -> Iterator[Trace]:
    """Yield one trace per list of messages or steps. If each line is a message, all lines are one trace."""

    def find(value: Any, at: str) -> Iterator[Placed]:
        if _are_steps(value):
            return find_items(value, at, ("steps",), "a list of steps")
        return find_messages(value, at)

    return _Messages.read_source(source, find, of_list=lambda member: is_message(member) or _is_step(member))


def _is_call(part: dict[str, Any]) -> bool:
    """Return whether a part is a call, a result or the beginning of a step."""
    return "toolCallId" in part or "toolInvocation" in part or part.get("type") == "step-start"


def _read_call(part: dict[str, Any], at: str) -> ToolCall:
    return read_call(part, at, "toolName", "toolCallId", "input" if "input" in part else "args")


#: The list of a message that holds a call (`parts`, `toolInvocations`, `content`), and the call's step in this list.
_Place = tuple[str, Any]


class _Messages(Conversation):
    def __init__(self, source: Source, record: Any = None) -> None:
        super().__init__(source, record)
        self._is_list_of_steps = _are_steps(record)
        # In the assistant's message that is being read:
        self._calls_made = 0
        self._calls_by_id: dict[str, list[tuple[ToolCall, _Place]]] = {}
        self._place: _Place = ("", None)  # of the call that is being read
        self._cited: list[Any] = []  # the pages that it cites

    def _end(self, at: str) -> None:
        record = object_or_empty(self.record)
        self.session_id = expect_id(record.get("id"), f"{at}/id") if "messages" in record else None
        self.query_id = find_query_id(record.get("metadata"), at)

    def read(self, message: dict[str, Any], at: str) -> None:
        """Read a step, or a message of the user (a turn), the assistant (a step) or a tool."""
        if self._is_list_of_steps:
            self._read_step(message, at)
            return

        role = message.get("role")
        content = message.get("content")
        parts = message.get("parts")
        self.report_unread("a message", message, at, _MESSAGE_READ)
        if content is None and parts is None and "toolInvocations" not in message:
            raise unexpected_value(f"{at}/parts", "parts, or a text or parts as content", content)
        if not isinstance(content, (str, list)) and content is not None:
            raise unexpected_value(f"{at}/content", "text or parts", content)
        if as_word(role) not in _ROLES:
            self.report_kind("message", message, "role", at, ", ".join(sorted(_ROLES)))
            return

        if role == "user":
            self.user(message_text(parts if parts is not None else content))
        if role == "assistant":
            self._begin_step()

        # The calls are in parts, in `toolInvocations` or in the content. A message may repeat calls: see `_add_call`.
        self._read_parts(walk_objects(parts, f"{at}/parts"), "parts")
        self._read_invocations(message, at)
        self._read_parts(walk_parts(content, f"{at}/content"), "content")

        if role == "assistant":
            answer = content
            if not isinstance(content, str):
                answer = content or parts or []
            self.say(answer, is_call=_is_call)
            self._add_citations(at)

    def _begin_step(self) -> None:
        """Begin the step of an assistant's message, or of a member of `steps`."""
        self.step()
        self._calls_made = 0
        self._calls_by_id = {}
        self._cited = []

    def _read_invocations(self, message: dict[str, Any], at: str) -> None:
        """Read the calls in `toolInvocations` (version 4).

        A call with another `step` than the call before begins a step. The first call belongs to the step of the message, and
        a call that the parts of the message have to the step of its part.
        """
        invocations = walk_objects(message.get("toolInvocations"), f"{at}/toolInvocations")
        step = None
        for index, (invocation, call_at) in enumerate(invocations):
            self._place = ("toolInvocations", invocation.get("step"))
            if self._find_earlier(_read_call(invocation, call_at)) is None:
                if index > 0 and invocation.get("step") != step:
                    self.step()
                step = invocation.get("step")
            self._read_ui_call(invocation, call_at)

    def _read_step(self, step: dict[str, Any], at: str) -> None:
        """Read a member of `steps`. The calls are parts of the content or, in version 4, in `toolCalls` and `toolResults`."""
        self.report_unread("a step", step, at, _STEP_READ)
        self.spend(step.get("usage"))
        self._begin_step()
        if isinstance(step.get("content"), list):
            self._read_parts(walk_objects(step["content"], f"{at}/content"), "content")
            self.say(step["content"], is_call=_is_call)
        else:
            for key, kind in (("toolCalls", "tool-call"), ("toolResults", "tool-result")):
                parts = walk_objects(step.get(key), f"{at}/{key}")
                self._read_parts((({**part, "type": kind}, part_at) for part, part_at in parts), key)
            self._cited += [cited for cited, _ in walk_objects(step.get("sources"), f"{at}/sources")]
            if not step.get("toolCalls"):
                self.say(step.get("text") or [])

        self._add_citations(at)

    def _read_parts(self, parts: Iterable[Placed], name: str) -> None:
        """Read calls, results and begins of steps from the list `name` of a message, and note cited pages for `_add_citations`.

        Parts of UI messages hold both call and output; parts of model messages hold one of them.
        """
        steps = 0
        for part, at in parts:
            self._place = (name, steps)
            kind = as_word(part.get("type"))
            if kind == "step-start":
                self.step()
                steps += 1
            elif kind == "tool-call":
                self._add_call(part, at)
            elif kind in ("tool-result", "tool-error"):
                self._read_result(part, at, failed=kind == "tool-error")
            elif kind == "tool-invocation":
                held_at = f"{at}/toolInvocation"
                self._read_ui_call(expect_object(part.get("toolInvocation"), held_at), held_at)
            elif kind == "dynamic-tool":
                self._read_ui_call(part, at)
            elif kind in ("source-url", "source"):
                self._cited.append(part["source"] if isinstance(part.get("source"), dict) else part)
            elif kind.startswith("tool-") and "toolCallId" in part:
                self._read_ui_call({**part, "toolName": kind.removeprefix("tool-")}, at)
            elif kind.startswith("data-"):
                self.hold(part, at)
            elif kind not in _OTHER_PARTS:
                self.report_kind("part", part, "type", at, "a part such as text, tool-<name>, tool-call")

    def _add_call(self, part: dict[str, Any], at: str) -> ToolCall:
        """Add a call to the conversation, or return the call that the message has already: parts repeat `toolInvocations`.

        A tool that the provider runs is a search only if its name says so, and its results may be citations only.
        """
        call = _read_call(part, at)
        earlier = self._find_earlier(call)
        if earlier is not None:
            return earlier
        if part.get("providerExecuted") is True:
            call.remedy = advise_citations()
            call.is_search = self.source.is_search(call.tool)
        self._calls_made += 1
        if call.call_id is not None:
            self._calls_by_id.setdefault(call.call_id, []).append((call, self._place))
        return self.call(call)

    def _find_earlier(self, call: ToolCall) -> ToolCall | None:
        """Return the call of the message that `call` repeats: the id and the tool are equal, and the arguments unless it is open.

        Some models number the calls of each step. So an id with other arguments is another call, and so is an id in another
        step of the same list: only another list of the message repeats the calls of all steps.
        """
        list_of_call, step_of_call = self._place
        for earlier, (list_of_earlier, step_of_earlier) in self._calls_by_id.get(call.call_id or "", ()):
            if list_of_earlier == list_of_call and step_of_earlier != step_of_call:
                continue
            has_same_arguments = earlier.arguments == call.arguments or not earlier.answered
            if earlier.tool == call.tool and has_same_arguments:
                return earlier
        return None

    def _read_ui_call(self, part: dict[str, Any], at: str) -> None:
        """Read a call with its output, as far as its state says that it has one. A call that was not run counts for nothing."""
        call = self._add_call(part, at)
        state = as_word(part.get("state"))
        if state in _ANSWERED and part.get("preliminary") is not True:
            key = "result" if state == "result" else "output"
            if key not in part:
                raise unexpected_value(f"{at}/{key}", "the output of the tool", None)
            self._set_output(call, part[key], at)
        elif state in _FAILED:
            call.output = part.get("errorText")
            call.failed = True
        elif state in _NOT_RUN:
            call.is_search = False
            call.opened = ()
        elif state not in _UNANSWERED and state not in _ANSWERED:
            raise unexpected_value(f"{at}/state", "the state of a call (output-available, output-error ...)", state)

    def _read_result(self, part: dict[str, Any], at: str, *, failed: bool) -> None:
        """Answer a call. Since version 5, the output is an object with a type and a value. A denied call counts for nothing."""
        call_id = require_id(part, at, "toolCallId")
        output = part.get("output", part.get("result", part.get("error", UNANSWERED)))
        is_typed = isinstance(output, dict) and output.keys() <= _OUTPUT_FIELDS
        kind = as_word(output.get("type")) if is_typed else ""
        if kind and kind not in _OUTPUT_TYPES:
            self.source.not_understood(f"output of type {kind!r}", f"{at}/output", ", ".join(sorted(_OUTPUT_TYPES)))
        failed = failed or part.get("isError") is True or kind.startswith("error-")
        call = self.answer(call_id, UNANSWERED, at, failed=failed)
        if kind == "execution-denied":
            call.is_search = False
            call.opened = ()
        else:
            self._set_output(call, output["value"] if kind and "value" in output else output, at)

    def _set_output(self, call: ToolCall, output: Any, at: str) -> None:
        """Set the output of a call. The output of OpenAI's hosted search has an `action` and perhaps `sources`, but no results."""
        action = object_or_empty(output).get("action")
        if not isinstance(action, dict):
            call.output = output
            return
        call.remedy = advise_citations()
        call.is_search = action.get("type") == "search"
        if as_word(action.get("type")) in ("openPage", "open_page"):
            call.opened = (action.get("url"),)
        if call.is_search and isinstance(sources := output.get("sources"), list):
            call.output = [read_source(*placed) for placed in walk_objects(sources, f"{at}/output/sources")]

    def _add_citations(self, at: str) -> None:
        """Add the pages that a message cites. If the message has no call, the provider searched: add that search."""
        self.say([], self._cited)
        if self._cited and not self._calls_made:
            self.call(ToolCall("web_search", at, is_search=True, remedy=advise_citations()))
        if self._cited and self.source.citations:
            self.cite([{key: source.get(key) for key in ("url", "title")} for source in self._cited])
