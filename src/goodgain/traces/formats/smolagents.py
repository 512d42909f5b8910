"""smolagents: the steps of an agent's memory, as `agent.memory.get_full_steps()` gives them.

A step with a number is a step, and its calls share one text of observations; a task is a turn.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from goodgain.traces.conversations.conversation import Conversation
from goodgain.traces.input.checks import (
    expect_id,
    expect_list,
    expect_object,
    expect_optional_text,
    expect_text,
    unexpected_value,
)
from goodgain.traces.input.file_head import FileHead
from goodgain.traces.input.sources import Source
from goodgain.traces.model import ToolCall, Trace

_STEP_FIELDS = {
    *("step_number", "tool_calls", "error", "model_output_message", "model_output", "code_action", "observations"),
    *("observations_images", "action_output", "token_usage", "is_final_answer", "model_input_messages", "task_images"),
}
#: The tool of agents that write code, in which searches cannot be seen.
_CODE_TOOL = "python_interpreter"
#: What search tools of smolagents write above their results.
_HEADING = re.compile(r"^## Search Results\s*$", re.MULTILINE)
_REMEDY = "the agent searched in its code: log the tool's calls, or record spans (format openinference)"
_SHARED = "the step has one text for several calls, and no answer for this one"


def sniff(head: FileHead) -> bool:
    """Return whether there are steps with a number and calls or observations."""
    return any(any(map(_is_step, _find_steps(record)[0])) for record in head.conversations)


def _is_step(step: Any) -> bool:
    return isinstance(step, dict) and "step_number" in step and ("tool_calls" in step or "observations" in step)


def _find_steps(value: Any) -> tuple[list[Any], str]:
    if isinstance(value, list):
        return value, ""
    for key in ("steps", "full_steps", "memory"):
        held = value.get(key) if isinstance(value, dict) else None
        if isinstance(held, list):
            return held, f"/{key}"
    return [], ""


def independent(head: FileHead) -> bool:
    """Return whether each line of a JSON Lines file is a trace of its own."""
    return not any(map(_is_step, head.records))


def read(source: Source) -> Iterator[Trace]:
    """Yield one trace a list of steps; lines that are steps are one trace."""
    if source.head.kind == "jsonl" and any(map(_is_step, source.head.records)):
        with source.handle_errors():
            steps = list(source.documents())
            yield _read_steps(source, steps, steps[0][1] if steps else f"{source.path}, at ", None)
        return
    yield from source.traces(
        lambda value, at: _read_trace(source, value, at),
        is_one=lambda value: (
            not value or any(isinstance(one, dict) and ("step_number" in one or "task" in one) for one in value)
        ),
    )


def _read_trace(source: Source, value: Any, at: str) -> Trace:
    steps, path = _find_steps(value)
    if not steps:
        raise unexpected_value(f"{at}{path}", "a list of steps", value)
    return _read_steps(source, [(one, f"{at}{path}/{index}") for index, one in enumerate(steps)], at, value)


def _read_steps(source: Source, steps: list[tuple[Any, str]], at: str, record: Any) -> Trace:
    conversation = Conversation()
    for value, step_at in steps:
        step = expect_object(value, step_at)
        if "step_number" in step:
            _read_step(source, conversation, step, step_at)
        elif "task" in step:
            conversation.user(expect_optional_text(step["task"], f"{step_at}/task") or "")
        elif not ("system_prompt" in step or "plan" in step or "final_answer" in step or "output" in step):
            what = f"step with {', '.join(map(str, list(step)[:3])) or 'nothing'!r}"
            source.not_understood(what, step_at, "a step with a step_number, a task, a plan or a system prompt")
    return conversation.trace(at, record)


def _read_step(source: Source, conversation: Conversation, step: dict[str, Any], at: str) -> None:
    source.check_fields(step, _STEP_FIELDS, at, of="a step", expected="calls in tool_calls, results in observations")
    conversation.step()
    calls: list[ToolCall] = []
    for index, value in enumerate(expect_list(step.get("tool_calls"), f"{at}/tool_calls")):
        call_at = f"{at}/tool_calls/{index}"
        call = expect_object(value, call_at)
        held = call.get("function")
        function = expect_object(held, f"{call_at}/function") if held is not None else call
        name = expect_text(function.get("name"), f"{call_at}/function/name")
        calls.append(ToolCall(name, call_at, expect_id(call.get("id"), f"{call_at}/id"), function.get("arguments")))
        conversation.call(calls[-1])
    for key in ("tool_calls", "observations"):
        if key not in step:
            source.not_understood(f"step without {key}", f"{at}/{key}", f"{key}, or null")
    observations = expect_optional_text(step.get("observations"), f"{at}/observations")
    _set_outputs(source, calls, observations, failed=step.get("error") is not None)
    for made in calls:
        if made.tool == _CODE_TOOL and _runs_search(source, str(made.arguments)):
            conversation.call(ToolCall("search in code", made.at, is_search=True, remedy=_REMEDY))


def _set_outputs(source: Source, calls: list[ToolCall], observations: str | None, *, failed: bool) -> None:
    """Give the calls of a step its observations: one text, which several calls share.

    Each search gets the part below its heading, if there are as many headings as searches; else the text cannot be
    shared out, and the searches are left without an answer.
    """
    searches = [call for call in calls if source.is_search(call.tool)]
    for call in calls:
        call.failed = failed
        call.remedy = _SHARED if len(calls) > 1 else ""
    if not observations:
        return
    if not searches:
        for call in calls:
            call.output = observations
        return
    headings = list(_HEADING.finditer(observations))
    if len(headings) == len(searches) and len(calls) > 1:
        ends = [*(heading.start() for heading in headings[1:]), len(observations)]
        for call, heading, end in zip(searches, headings, ends, strict=True):
            call.output = observations[heading.end() : end].strip()
    elif len(calls) == 1:
        calls[0].output = observations


def _runs_search(source: Source, code: str) -> bool:
    """Return whether code calls a function with the name of a search."""
    return any(source.is_search(name) for name in re.findall(r"(?<![\w.])([A-Za-z_]\w*)\s*\(", code))
