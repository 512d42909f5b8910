"""ATIF, the Agent Trajectory Interchange Format of Harbor: `steps`, each from the user, the system prompt, or the agent.

A step of the agent is a step of the trace; a step of the user begins a turn. Results are paired with calls by `source_call_id`.

Lost: Searches of subagents. A notice gives their number; convert the trajectories of the subagents too. Exporters such as
VibeLens leave out the web searches of Codex. A notice says so; convert Codex's own rollouts.
Query id: `extra.query_id`, else `session_id`, else `trajectory_id`. The name of the evaluated system is `agent.name`.
Costs: `metrics` of a step, `cost_usd`, and seconds since the `timestamp` of the previous step.
"""

from collections.abc import Iterator
from itertools import chain
from typing import Any

from goodgain.logs.traces.conversations import UNANSWERED, Conversation, FileHead, Source, ToolCall, Trace
from goodgain.logs.traces.conversations.messages import message_text
from goodgain.logs.traces.conversations.record_objects import (
    Placed,
    any_object,
    sort_numbered,
    text_or_none,
    walk_list,
    walk_objects,
)
from goodgain.logs.traces.conversations.tool_calls import expect_output
from goodgain.logs.traces.expected_values import (
    as_word,
    expect_id,
    expect_object,
    format_place,
    object_or_empty,
    unexpected_value,
)

#: The beginning of Claude Code's summary of a long conversation. The exported step lacks the mark that says so.
_SUMMARY = "This session is being continued from a previous conversation"


def sniff(head: FileHead) -> bool:
    return any(
        as_word(record.get("schema_version")).upper().startswith("ATIF")
        or any_object(record.get("steps"), lambda step: {"step_id", "source"} <= step.keys())
        for record in head.objects
    )


def read(source: Source) -> Iterator[Trace]:
    def find_steps(value: Any, at: str) -> Iterator[Placed]:
        return sort_numbered(walk_list(expect_object(value, at), "steps", at), "step_id")

    return _Trajectory.read_source(source, find_steps, of_list=None)


class _Trajectory(Conversation):
    def _end(self, at: str) -> None:
        record = self.record
        if record.get("subagent_trajectories"):
            self._report_subagents("subagent_trajectories", at, ": convert their trajectories")
        agent, extra = (object_or_empty(record.get(key)) for key in ("agent", "extra"))
        query_id = expect_id(extra.get("query_id"), f"{at}/extra/query_id")
        self.session_id = expect_id(record.get("session_id"), f"{at}/session_id")
        trajectory = expect_id(record.get("trajectory_id"), f"{at}/trajectory_id")
        self.query_id, self.tag = query_id or self.session_id or trajectory, text_or_none(agent.get("name")) or self.tag
        if as_word(agent.get("name")).lower().startswith("codex"):
            self._report_lost_searches(at)

    def _report_lost_searches(self, at: str) -> None:
        """Report a trajectory of Codex that may lack its web searches: it has no search, or has the fields of VibeLens."""
        has_search = any(self.source.counts_as_search(call) for turn in self._turns for call in turn.calls)
        if not has_search or "first_message" in self.record:
            self.source.summary.count("lost_searches", format_place(at))

    def _leave_out_subagent(self, step: dict[str, Any], at: str) -> None:
        """Leave out a step of a subagent, which VibeLens exports among the agent's own. Report the searches of such steps."""
        for call, call_at in walk_objects(step.get("tool_calls"), f"{at}/tool_calls"):
            if self.source.is_search(as_word(call.get("function_name"))):
                self.source.not_understood("search of a subagent (left out)", call_at, "a search of the main agent")

    def _report_subagents(self, field: str, at: str, remedy: str = "") -> None:
        what = f"{field} (searches of subagents are not read{remedy})"
        self.source.not_understood(what, f"{at}/{field}", "searches in the steps of this trajectory")

    def read(self, step: dict[str, Any], at: str) -> None:
        """Read a step of the user as a turn, and one of the agent with its calls and their results.

        Only a step without calls answers.
        """
        message = step.get("message")
        speaker = step.get("source")
        observation = step.get("observation")
        if object_or_empty(step.get("extra")).get("is_sidechain") is True:
            self._leave_out_subagent(step, at)
            return

        self.report_parts("a message", message, f"{at}/message", ("text", "image"))
        self.report_unread("a step", step, at, ("message", "tool_calls", "observation"))
        if speaker == "user":
            text = message_text(message)
            if not text.startswith(_SUMMARY):
                self.user(text, step.get("timestamp"))
        elif speaker == "agent":
            self.spend(step.get("metrics"))
            self.step(step.get("timestamp"))
            calls = self.read_calls(step.get("tool_calls"), f"{at}/tool_calls", "function_name", "tool_call_id")
            held = {} if observation is None else expect_object(observation, f"{at}/observation")
            for result, result_at in walk_objects(held.get("results"), f"{at}/observation/results"):
                if result.get("subagent_trajectory_ref"):
                    self._report_subagents("subagent_trajectory_ref", result_at)
                self._set_output(calls, result, result_at)
            if not calls:
                self.say(message or [])
        elif speaker != "system":
            self.report_kind("step", step, "source", at, "system, user or agent")

        if speaker != "agent" and observation is not None and step.get("tool_calls"):
            raise unexpected_value(f"{at}/source", "agent, as only agents call tools", speaker)

    def _set_output(self, calls: list[ToolCall], result: dict[str, Any], at: str) -> None:
        """Add a result to the output of its call. Join several results of one call in order."""
        call_id = expect_id(result.get("source_call_id"), f"{at}/source_call_id")
        content = expect_output(result.get("content"), f"{at}/content")
        if call_id is None and not calls:
            return  # an observation without a call, such as a message of the environment

        matching = [call for call in calls if call.call_id == call_id] if call_id is not None else calls
        call = next((call for call in matching if not call.answered), matching[0] if len(matching) == 1 else None)
        if call is None:
            self.report_orphan(at, f"no call of this step has the id {call_id!r}")
            return

        if call.output is UNANSWERED:
            call.output = content
        elif content is not UNANSWERED:
            contents = (call.output, content)
            parts = (part if isinstance(part, list) else [{"type": "text", "text": part}] for part in contents)
            call.output = [*chain.from_iterable(parts)]
