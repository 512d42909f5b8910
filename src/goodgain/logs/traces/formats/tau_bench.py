"""Results of tau-bench (tau2): `simulations` of tasks. A simulation is a trace; each trial is a run of the system.

An assistant message is a step. The task of a simulation is the query, however often the user speaks. Calls of the simulated
user are left out.

Lost: Everything in `reward_info` except the reward.
Query id: `task_id`. The system is the agent's `llm`; a trial is a replicate.
Record: To count calls of `grep` as searches, pass `--tools grep=search`.
Costs: `usage` and `cost` of a message, and seconds since the previous step, by `timestamp`.
"""

from collections.abc import Iterator
from typing import Any

from goodgain.logs.traces.conversations import Conversation, FileHead, Source, Trace
from goodgain.logs.traces.conversations.messages import message_text
from goodgain.logs.traces.conversations.record_objects import read_records, walk_list, walk_objects
from goodgain.logs.traces.conversations.tool_calls import expect_output, require_id
from goodgain.logs.traces.expected_values import expect_id, expect_object, object_or_empty

#: What the knowledge base writes below its results.
_TIMING = "\n\n[Timing: retrieval="


def sniff(head: FileHead) -> bool:
    return any(
        "simulations" in record
        # The head may end before `simulations`, because the long tasks come first.
        or "agent_info" in object_or_empty(record.get("info"))
        or _is_simulation(record)
        for record in head.objects
    )


def _is_simulation(record: dict[str, Any]) -> bool:
    # Other logs of messages have a task_id too.
    return {"task_id", "messages"} <= record.keys() and not {"trial", "reward_info", "simulation_id"}.isdisjoint(record)


def read(source: Source) -> Iterator[Trace]:
    """Yield a trace per simulation. The task is the query, and each trial of the task is a run of the system."""
    for value, at in read_records(source):
        with source.handle_errors():
            results = expect_object(value, at)
            agent = object_or_empty(object_or_empty(results.get("info")).get("agent_info"))
            is_one = _is_simulation(results)

            for simulation, simulation_at in [(results, at)] if is_one else walk_list(results, "simulations", at):
                with source.handle_errors():
                    query_id = require_id(simulation, simulation_at, "task_id", "the id of the task")
                    messages = walk_list(simulation, "messages", simulation_at)
                    reader = _Messages(source, simulation).read_all(messages)
                    trace = reader.trace(simulation_at, query_id=query_id, tag=agent.get("llm"))
                    trace.run = expect_id(simulation.get("trial"), f"{simulation_at}/trial")
                    yield trace


class _Messages(Conversation):
    def read(self, message: dict[str, Any], at: str) -> None:
        """Read a message of the agent, of a tool, or the user's first one, which is the question. Later ones begin no turn."""
        role = message.get("role")
        self.report_unread("a message", message, at, ("content", "tool_calls", "tool_messages"))
        if message.get("requestor") == "user":
            return

        if role == "assistant":
            self.spend(message if message.get("usage") is None else {**message["usage"], "cost": message.get("cost")})
            self.step(message.get("timestamp"))
            if not self.read_calls(message.get("tool_calls"), f"{at}/tool_calls"):
                self.say(message.get("content") or [])
        elif role == "tool" and "tool_messages" in message:
            self.read_all(walk_objects(message["tool_messages"], f"{at}/tool_messages"))
        elif role == "tool":
            output = expect_output(message.get("content"), f"{at}/content")
            call_id = message.get("id")
            if isinstance(output, str):
                output = output.partition(_TIMING)[0]
            failed = message.get("error") is True
            self.answer(expect_id(call_id, f"{at}/id"), output, f"{at}/content", failed=failed)
        elif role == "user" and not self._user_spoke:
            self.user(message_text(message.get("content")))
        elif role not in ("system", "user"):
            self.report_kind("message", message, "role", at, "user, assistant, tool or system")
