"""smolagents: the steps of an agent's memory, as `agent.memory.get_full_steps()` gives them.

A step with a number is a step, and its calls share one text of observations; a task is a turn.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from goodgain.traces.conversations import record_tree as tree
from goodgain.traces.conversations.turns_and_calls import Conversation, read_conversations
from goodgain.traces.expected_values import expect_optional_text
from goodgain.traces.input.file_head import FileHead
from goodgain.traces.input.sources import Source
from goodgain.traces.model import ToolCall, Trace

_PATHS = ("steps", "full_steps", "memory")
#: The fields of a step that are read, or repeat others.
_READ = {"tool_calls", "observations", "model_input_messages", "model_output_message", "action_output"}
#: Fields of steps without work of the agent.
_OTHER_STEPS = {"system_prompt", "plan", "final_answer", "output"}
#: The tool of agents that write code, which hides searches; and a function call in that code.
_CODE_TOOL = "python_interpreter"
_FUNCTION = re.compile(r"(?<![\w.])([A-Za-z_]\w*)\s*\(")
#: The heading that search tools of smolagents write above their results.
_HEADING = re.compile(r"^## Search Results\s*$", re.MULTILINE)
_REMEDY = "the agent searched in its code: log the tool's calls, or record spans (format openinference)"
_SHARED = "the step has one text for several calls, and no answer for this one"


def sniff(head: FileHead) -> bool:
    """Return whether there are steps with a number and calls or observations."""
    return any(tree.any_object(tree.find_list(one, *_PATHS)[0], _is_step) for one in head.conversations)


def _is_step(step: dict[str, Any]) -> bool:
    return "step_number" in step and ("tool_calls" in step or "observations" in step)


def independent(head: FileHead) -> bool:
    """Return whether each line of a JSON Lines file is one trace."""
    return not tree.any_object(head.records, _is_step)


def read(source: Source) -> Iterator[Trace]:
    """Yield one trace per list of steps; lines that are steps are one trace."""
    return read_conversations(
        source, _Steps, paths=_PATHS, of_list=lambda one: "step_number" in one or "task" in one, of_line=_is_step
    )


class _Steps(Conversation):
    items = "a list of steps"

    def read(self, step: dict[str, Any], at: str) -> None:
        if "step_number" not in step:
            if "task" in step:
                self.user(expect_optional_text(step["task"], f"{at}/task") or "")
            elif _OTHER_STEPS.isdisjoint(step):
                self.report_keys("step", step, at, "a step with a step_number, a task, a plan or a system prompt")
            return
        source = self.source
        self.report_unread("a step", step, at, _READ)
        self.step()
        calls: list[ToolCall] = []
        for call, call_at in tree.walk(step.get("tool_calls"), f"{at}/tool_calls"):
            read = tree.read_call if call.get("function") is None else tree.read_function_call
            calls.append(self.call(read(call, call_at)))
        for key in ("tool_calls", "observations"):
            if key not in step:
                source.not_understood(f"step without {key}", f"{at}/{key}", f"{key}, or null")
        for made in calls:
            made.failed = step.get("error") is not None
            made.remedy = _SHARED if len(calls) > 1 else ""
        told = expect_optional_text(step.get("observations"), f"{at}/observations") or ""
        searches = [made for made in calls if source.is_search(made.tool)]
        if told and (not searches or len(calls) == 1):
            for made in calls:
                made.output = told
        headings = list(_HEADING.finditer(told))
        if searches and len(headings) == len(searches) and len(calls) > 1:
            ends = [*(heading.start() for heading in headings[1:]), len(told)]
            for made, heading, end in zip(searches, headings, ends, strict=True):
                made.output = told[heading.end() : end].strip()
        for made in calls:
            if made.tool == _CODE_TOOL and any(map(source.is_search, _FUNCTION.findall(str(made.arguments)))):
                self.call(ToolCall("search in code", made.at, is_search=True, remedy=_REMEDY))
