"""smolagents: the steps of an agent's memory, as `agent.memory.get_full_steps()` gives them, or the memory's messages.

Each memory step that has a `step_number` is one step. The text `observations` holds the results of all calls in the step. A task
is a turn. Messages with the roles `tool-call` and `tool-response` hold calls and observations as text.

Lost: Results of searches in an agent's code (`python_interpreter`), and of searches in a step with several calls, unless the
results of each search have a heading. Such searches count as unrecorded.
Query id: Not recorded by smolagents.
Record: If your agent writes code, record its spans (format `openinference`).
"""

import re
from collections.abc import Iterator, Sequence
from typing import Any

from goodgain.logs.traces.conversations import Conversation, FileHead, Source, ToolCall, Trace
from goodgain.logs.traces.conversations.messages import PLAIN_PARTS, message_text
from goodgain.logs.traces.conversations.record_objects import (
    Placed,
    any_object,
    find_items,
    find_list,
    sort_numbered,
    walk_objects,
)
from goodgain.logs.traces.conversations.tool_calls import read_call, read_function_call
from goodgain.logs.traces.expected_values import as_word, expect_optional_text, unexpected_value
from goodgain.logs.traces.tool_outputs.values_in_text import NOTATIONS

_PATHS = ("steps", "full_steps", "memory", "intermediate_steps")
#: The fields of a step that are read, or that repeat other fields.
_READ = {"tool_calls", "observations", "model_input_messages", "model_output_message", "action_output"}
#: Fields of steps without work of the agent.
_OTHER_STEPS = {"system_prompt", "plan", "final_answer", "output"}
#: The tool that runs the code of agents, and the functions that this code calls and defines.
_CODE_TOOL = "python_interpreter"
_FUNCTION = re.compile(r"(?<![\w.])([A-Za-z_]\w*)\s*\(")
_DEFINED = re.compile(r"\bdef\s+([A-Za-z_]\w*)")
#: The heading that search tools of smolagents write above their results.
_HEADING = re.compile(r"^## Search Results\s*$", re.MULTILINE)
_TASK = "New task:\n"
_CALLING = "Calling tools:\n"
_OBSERVED = "Observation:\n"
_FAILED = "Error"
_REMEDY = "the agent searched in its code: log the tool's calls, or record spans (format openinference)"
_SHARED = "the step has one text for several calls, and no answer for this one"


def sniff(head: FileHead) -> bool:
    return any(any_object(find_list(conversation, *_PATHS)[0], _is_step) for conversation in head.conversations)


def _is_step(step: dict[str, Any]) -> bool:
    is_message = as_word(step.get("role")) in ("tool-call", "tool-response")
    return is_message or ("step_number" in step and ("tool_calls" in step or "observations" in step))


def read(source: Source) -> Iterator[Trace]:
    marks = {"step_number", "task", "role"}

    def find_steps(value: Any, at: str) -> Iterator[Placed]:
        return sort_numbered(find_items(value, at, _PATHS, "a list of steps"), "step_number")

    return _Steps.read_source(source, find_steps, of_list=lambda member: not marks.isdisjoint(member), of_line=_is_step)


class _Steps(Conversation):
    _made: Sequence[ToolCall] = ()

    def read(self, step: dict[str, Any], at: str) -> None:
        """Read a step of the memory or a message. Only a step with a number is work of the agent."""
        if "role" in step:
            self._read_message(step, at)
            return
        if "step_number" not in step:
            if "task" in step:
                self.user(expect_optional_text(step["task"], f"{at}/task") or "")
            elif answer := step.get("final_answer") or step.get("output"):
                self.say(str(answer))
            elif _OTHER_STEPS.isdisjoint(step):
                self.report_keys("step", step, at, "a step with a step_number, a task, a plan or a system prompt")
            return

        self.report_unread("a step", step, at, _READ)
        self.step()
        calls: list[ToolCall] = []

        for call, call_at in walk_objects(step.get("tool_calls"), f"{at}/tool_calls"):
            read = read_call if call.get("function") is None else read_function_call
            calls.append(self.call(read(call, call_at)))

        for key in ("tool_calls", "observations"):
            if key not in step:
                self.source.not_understood(f"step without {key}", f"{at}/{key}", f"{key}, or null")

        observations = expect_optional_text(step.get("observations"), f"{at}/observations") or ""
        self._answer_all(calls, observations, failed=step.get("error") is not None)
        if step.get("is_final_answer") is True:
            self.say(str(step.get("action_output")))

    def _read_message(self, message: dict[str, Any], at: str) -> None:
        """Read a message. Calls are written in Python's notation. The results of all calls are one text."""
        role = as_word(message.get("role"))
        text = message_text(message.get("content"))
        self.report_unread("a message", message, at, {"content"})
        if "content" not in message:
            self.report_keys("message", message, at, "a message with content")

        self.report_parts("a message", message.get("content"), f"{at}/content", PLAIN_PARTS, {"type"})
        if role == "user":
            self.user(text.removeprefix(_TASK))
        elif role == "assistant":
            self.step()
            self.say(text)
        elif role == "tool-call":
            self.say(None)
            read = NOTATIONS["Python's notation"](text.removeprefix(_CALLING))
            if read is None:
                raise unexpected_value(f"{at}/content", f"{_CALLING!r} and a list of calls", text)
            self._made = [self.call(read_function_call(*item)) for item in walk_objects(read[0], f"{at}/content")]
        elif role == "tool-response":
            if not self._made:
                self.report_orphan(at, "no message with the role tool-call is before it")
            self._answer_all(self._made, text.removeprefix(_OBSERVED), failed=text.startswith(_FAILED))
            self._made = ()
        elif role != "system":
            self.report_kind("message", message, "role", at, "system, user, assistant, tool-call, tool-response")

    def _answer_all(self, calls: Sequence[ToolCall], text_of_step: str, *, failed: bool) -> None:
        """Set the outputs of calls from one text. If there are several calls, searches get outputs only if each has a heading."""
        for call in calls:
            call.failed = failed
            call.remedy = _SHARED if len(calls) > 1 else ""
        searches = [call for call in calls if self.source.is_search(call.tool)]
        texts = _HEADING.split(text_of_step)[1:]
        if searches and len(texts) == len(searches) and len(calls) > 1:
            for call, text in zip(searches, texts, strict=True):
                call.output = text.strip()

        for call in calls:
            if text_of_step and (not searches or len(calls) == 1):
                call.output = text_of_step
            code = str(call.arguments)
            called = set(_FUNCTION.findall(code)) - set(_DEFINED.findall(code))
            if call.tool == _CODE_TOOL and any(map(self.source.is_search, called)):
                self.call(ToolCall("search in code", call.at, is_search=True, remedy=_REMEDY))
