"""Makes calls and answers of LangChain's events (`astream_events`), which a run id joins.

A retriever below a tool counts instead of the tool. Events of models and chains repeat the calls, and are left out.
"""

from __future__ import annotations

import re
from typing import Any

from goodgain.traces.conversations import record_tree as tree
from goodgain.traces.tool_outputs.service_answers import unwrap_langchain

_EVENT = re.compile(r"on_(tool|retriever|chat_model|llm|chain|prompt|parser)_(start|stream|end|error)")


def read_tool_events(members: list[Any]) -> list[Any]:
    """Return a list with calls and answers in place of the events of tools, and None in place of the others.

    A call below another tool is in its `children`. A list without events of tools is unchanged.
    """
    events = {index: found for index, member in enumerate(members) if (found := _read_kind(member)) is not None}
    calls = {
        index: kinds for index, kinds in events.items() if kinds[0] in ("tool", "retriever") and kinds[1] != "stream"
    }
    if not calls:
        return members
    tools = {members[index]["run_id"] for index, (what, _) in calls.items() if what == "tool"}
    parents = {index: members[index].get("parent_ids") for index in calls}  # the outermost first
    above = {
        index: [run for run in runs if isinstance(run, str) and run in tools] if isinstance(runs, list) else []
        for index, runs in parents.items()
    }
    replaced = {run for index, runs in above.items() if calls[index][0] == "retriever" for run in runs[-1:]}
    made: list[Any] = [None if index in events else member for index, member in enumerate(members)]
    begun: dict[Any, Any] = {}
    for index, (_, stage) in calls.items():
        run = members[index]["run_id"]
        if run in replaced:
            continue
        call = _make_call(members[index], stage, has_begun=run in begun)
        begun.setdefault(run, call)
        holder = next((begun[parent] for parent in reversed(above[index]) if parent in begun), None)
        if holder is None:
            made[index] = call
        else:
            holder.setdefault("children", []).append(call)
    return made


def _read_kind(member: Any) -> tuple[str, str] | None:
    """Return what an event is about, such as a tool, and its stage; None for other values."""
    if not isinstance(member, dict) or not isinstance(member.get("data"), dict):
        return None
    found = _EVENT.fullmatch(event) if isinstance(event := member.get("event"), str) else None
    return (found[1], found[2]) if found and isinstance(member.get("run_id"), str) else None


def _make_call(event: dict[str, Any], stage: str, *, has_begun: bool) -> dict[str, Any]:
    """Return a call with its answer, or the answer alone if the call has begun."""
    made = {key: value for key, value in event.items() if key not in ("event", "data")}
    made |= {"type": "tool_result"} if has_begun else {"type": "tool_call", "input": event["data"].get("input") or {}}
    if stage != "start":
        made["output"], made["error"] = _read_output(event["data"])
    return made


def _read_output(data: dict[str, Any]) -> tuple[Any, Any]:
    """Return the output in an event, and the error; of a tool's message, the artifact or else the content."""
    if (error := data.get("error")) is not None:
        return "", error
    output = data.get("documents") if data.get("output") is None else data["output"]
    message = unwrap_langchain(tree.object_or_empty(output))
    if message.get("type") != "tool":
        return output, None
    content = message.get("content")
    return message.get("artifact") or content, content if message.get("status") == "error" else None
