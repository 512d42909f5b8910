"""ATIF, the Agent Trajectory Interchange Format of Harbor: `steps` of a user, the system, or the agent.

A step of the agent is a step, one of the user a turn. Results are paired with calls by `source_call_id`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from goodgain.traces.conversations.conversation import Conversation, message_text
from goodgain.traces.conversations.usage import read_usage
from goodgain.traces.input.checks import as_word, expect_id, expect_list, expect_object, expect_text, unexpected_value
from goodgain.traces.input.file_head import FileHead
from goodgain.traces.input.sources import Source
from goodgain.traces.model import UNANSWERED, ToolCall, Trace

#: The fields of a step; another one with content is reported as not understood.
_STEP_FIELDS = {
    *("step_id", "source", "message", "reasoning_content", "reasoning_effort", "tool_calls", "observation"),
    *("is_copied_context", "llm_call_count"),
}


def sniff(head: FileHead) -> bool:
    """Return whether there is an object whose `schema_version` names ATIF, or that has steps with a source."""
    return any(_is_trajectory(record) for record in head.objects)


def _is_trajectory(record: dict[str, Any]) -> bool:
    if as_word(record.get("schema_version")).upper().startswith("ATIF"):
        return True
    steps = record.get("steps")
    return isinstance(steps, list) and any(
        isinstance(step, dict) and {"step_id", "source"} <= step.keys() for step in steps
    )


def independent(_: FileHead) -> bool:
    """Return True: each line of a JSON Lines file is a trace of its own."""
    return True


def read(source: Source) -> Iterator[Trace]:
    """Yield one trace a trajectory."""
    return source.traces(lambda value, at: _read_trace(source, value, at), is_one=lambda value: False)


def _read_trace(source: Source, value: Any, at: str) -> Trace:
    record = expect_object(value, at)
    if not isinstance(record.get("steps"), list):
        raise unexpected_value(f"{at}/steps", "a list of steps", record.get("steps"))
    conversation = Conversation()
    for index, step in enumerate(record["steps"]):
        _read_step(source, conversation, expect_object(step, f"{at}/steps/{index}"), f"{at}/steps/{index}")
    if record.get("subagent_trajectories"):
        what = "subagent_trajectories (searches of subagents are not read: convert their trajectories)"
        source.not_understood(what, f"{at}/subagent_trajectories", "searches in the steps of this trajectory")
    agent = record.get("agent")
    name = agent.get("name") if isinstance(agent, dict) else None
    session = expect_id(record.get("session_id"), f"{at}/session_id")
    trace = conversation.trace(at, record, query_id=_read_query_id(record, at) or session)
    trace.query_id = trace.query_id or expect_id(record.get("trajectory_id"), f"{at}/trajectory_id")
    trace.session_id, trace.tag = session, name if isinstance(name, str) and name else None
    return trace


def _read_query_id(record: dict[str, Any], at: str) -> str | None:
    extra = record.get("extra")
    return expect_id(extra.get("query_id"), f"{at}/extra/query_id") if isinstance(extra, dict) else None


def _read_step(source: Source, conversation: Conversation, step: dict[str, Any], at: str) -> None:
    speaker = as_word(step.get("source"))
    for index, part in enumerate(step["message"] if isinstance(step.get("message"), list) else []):
        if isinstance(part, dict) and part.get("type") not in ("text", "image"):
            what = f"part of type {part.get('type')!r} in a message"
            source.not_understood(what, f"{at}/message/{index}", "a part of type text or image")
    expected = "calls in tool_calls, results in observation"
    source.check_fields(step, _STEP_FIELDS, at, of="a step", expected=expected, needs="message")
    if speaker == "user":
        time = step.get("timestamp")
        conversation.user(message_text(step.get("message")), time if isinstance(time, str) else None)
    elif speaker == "agent":
        _read_agent_step(source, conversation, step, at)
    elif speaker != "system":
        if not isinstance(step.get("source"), str):
            raise unexpected_value(f"{at}/source", "system, user or agent", step.get("source"))
        source.not_understood(f"step of source {speaker!r}", f"{at}/source", "system, user or agent")
    if speaker != "agent" and step.get("observation") is not None and step.get("tool_calls"):
        raise unexpected_value(f"{at}/source", "agent, as only agents call tools", speaker)


def _read_agent_step(source: Source, conversation: Conversation, step: dict[str, Any], at: str) -> None:
    if source.costs:
        conversation.spend(read_usage(step.get("metrics")))
    time = step.get("timestamp")
    conversation.step(time if isinstance(time, str) else None)
    calls = []
    for index, item in enumerate(expect_list(step.get("tool_calls"), f"{at}/tool_calls")):
        call_at = f"{at}/tool_calls/{index}"
        item = expect_object(item, call_at)
        name = expect_text(item.get("function_name"), f"{call_at}/function_name")
        call_id = expect_id(item.get("tool_call_id"), f"{call_at}/tool_call_id")
        calls.append(ToolCall(name, call_at, call_id, item.get("arguments")))
        conversation.call(calls[-1])
    observation = step.get("observation")
    if observation is None:
        return
    results_at = f"{at}/observation/results"
    results = expect_list(expect_object(observation, f"{at}/observation").get("results"), results_at)
    for index, result in enumerate(results):
        _read_result(source, calls, expect_object(result, f"{results_at}/{index}"), f"{results_at}/{index}")


def _read_result(source: Source, calls: list[ToolCall], result: dict[str, Any], at: str) -> None:
    """Assign a result to its call; several results of a call are joined in order."""
    if result.get("subagent_trajectory_ref"):
        what = "subagent_trajectory_ref (searches of subagents are not read)"
        source.not_understood(what, f"{at}/subagent_trajectory_ref", "searches in the steps of this trajectory")
    source_id = expect_id(result.get("source_call_id"), f"{at}/source_call_id")
    content = result.get("content", UNANSWERED)
    if content is None:
        content = UNANSWERED
    if content is not UNANSWERED and not isinstance(content, (str, list, dict)):
        raise unexpected_value(f"{at}/content", "text or parts", content)
    if source_id is None and not calls:
        return  # an observation without a call, such as a message of the environment
    matching = [call for call in calls if call.call_id == source_id] if source_id is not None else calls
    call = next((call for call in matching if not call.answered), matching[0] if len(matching) == 1 else None)
    if call is None:
        raise unexpected_value(f"{at}/source_call_id", "the id of a call of this step", source_id)
    if call.output is UNANSWERED:
        call.output = content
    elif content is not UNANSWERED:
        earlier = call.output if isinstance(call.output, list) else [{"type": "text", "text": call.output}]
        later = content if isinstance(content, list) else [{"type": "text", "text": content}]
        call.output = [*earlier, *later]
