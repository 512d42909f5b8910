"""The story as the logs of agents' programs and frameworks write it down; `logs.py` has the vendors' own formats."""

from __future__ import annotations

import json

from .story import Call, Json, Story, Writer, asked


def claude_code(story: Story) -> str:
    lines: list[str] = []

    def line(kind: str, message: Json, parent: str | None, **fields: Json) -> str:
        name = f"uuid-{len(lines)}"
        record = {"parentUuid": parent, "isSidechain": False, "sessionId": "story", "type": kind, "uuid": name}
        lines.append(json.dumps({**record, "message": message, "timestamp": "2026-01-01T00:00:00.000Z", **fields}))
        return name

    def says(number: int, block: Json, parent: str | None) -> str:
        return line("assistant", {"model": "m", "id": f"msg_{number}", "role": "assistant", "content": [block]}, parent)

    last: str | None = None
    number = 0
    for turn in story.turns:
        last = line("user", {"role": "user", "content": turn.user}, last)
        for step in turn.steps:
            number += 1
            of_calls = []
            for c in step:  # each call on a line of its own, with its answer hanging from that line
                last = says(number, {"type": "tool_use", "id": c.id, "name": c.tool, "input": asked(c)}, last)
                of_calls.append(last)
            for c, parent in zip(step, of_calls, strict=True):
                if c.answered:
                    text = {"type": "text", "text": c.text}
                    block = {"type": "tool_result", "tool_use_id": c.id, "content": [text], "is_error": c.failed}
                    last = line("user", {"role": "user", "content": [block]}, parent, toolUseResult=[text])
        number += 1
        last = says(number, {"type": "text", "text": turn.answer}, last)
    return "\n".join(lines) + "\n"


def vercel_ai(story: Story) -> str:
    def part(c: Call) -> Json:
        found = {"type": f"tool-{c.tool}", "toolCallId": c.id, "input": asked(c)}
        if not c.answered:
            return {**found, "state": "input-available"}
        if c.failed:
            return {**found, "state": "output-error", "errorText": c.text}
        return {**found, "state": "output-available", "output": c.output}

    messages: list[Json] = []
    for turn in story.turns:
        messages.append({"id": "u", "role": "user", "parts": [{"type": "text", "text": turn.user}]})
        parts = [one for step in turn.steps for one in ({"type": "step-start"}, *map(part, step))]
        said = [{"type": "step-start"}, {"type": "text", "text": turn.answer}]
        messages.append({"id": "a", "role": "assistant", "parts": [*parts, *said]})
    return json.dumps(messages)


def pydantic_ai(story: Story) -> str:
    messages: list[Json] = []
    for turn in story.turns:
        messages.append({"kind": "request", "parts": [{"part_kind": "user-prompt", "content": turn.user}]})
        for step in turn.steps:
            calls = [
                {"part_kind": "tool-call", "tool_name": c.tool, "args": json.dumps(asked(c)), "tool_call_id": c.id}
                for c in step
            ]
            messages.append({"kind": "response", "model_name": "m", "parts": calls})
            returns = [
                {
                    "part_kind": "tool-return", "tool_name": c.tool, "content": c.output, "tool_call_id": c.id,
                    "outcome": "retried" if c.failed else "success",
                }
                for c in step
                if c.answered
            ]  # fmt: skip
            if returns:
                messages.append({"kind": "request", "parts": returns})
        messages.append({"kind": "response", "parts": [{"part_kind": "text", "content": turn.answer}]})
    return json.dumps(messages)


def gemini(story: Story) -> str:
    contents: list[Json] = []
    for turn in story.turns:
        contents.append({"role": "user", "parts": [{"text": turn.user}]})
        for step in turn.steps:
            calls = [{"functionCall": {"id": c.id, "name": c.tool, "args": asked(c)}} for c in step]
            contents.append({"role": "model", "parts": calls})
            responses = [
                {"id": c.id, "name": c.tool, "response": {"error" if c.failed else "result": c.output}}
                for c in step
                if c.answered
            ]
            if responses:
                contents.append({"role": "user", "parts": [{"functionResponse": one} for one in responses]})
        contents.append({"role": "model", "parts": [{"text": turn.answer}]})
    return json.dumps({"contents": contents})


def codex(story: Story) -> str:
    lines: list[Json] = [{"type": "session_meta", "payload": {"id": "story", "cli_version": "1"}}]
    for turn in story.turns:
        lines.append({"type": "event_msg", "payload": {"type": "user_message", "message": turn.user}})
        for step in turn.steps:
            items = [
                {"type": "function_call", "name": c.tool, "arguments": json.dumps(asked(c)), "call_id": c.id}
                for c in step
            ]
            items += [{"type": "function_call_output", "call_id": c.id, "output": c.text} for c in step if c.answered]
            lines += [{"type": "response_item", "payload": item} for item in items]
        said = [{"type": "output_text", "text": turn.answer}]
        lines.append({"type": "response_item", "payload": {"type": "message", "role": "assistant", "content": said}})
    return "".join(json.dumps({"timestamp": "2026-01-01T00:00:00.000Z", **line}) + "\n" for line in lines)


def openai_agents(story: Story) -> str:
    items: list[Json] = []
    for turn in story.turns:
        items.append({"role": "user", "content": turn.user})
        for step in turn.steps:
            items += [
                {"type": "function_call", "call_id": c.id, "name": c.tool, "arguments": json.dumps(asked(c))}
                for c in step
            ]
            items += [{"type": "function_call_output", "call_id": c.id, "output": c.text} for c in step if c.answered]
        said = [{"type": "output_text", "text": turn.answer, "annotations": []}]
        items.append({"type": "message", "role": "assistant", "content": said})
    return "".join(json.dumps(item) + "\n" for item in items)


def strands(story: Story) -> str:
    messages: list[Json] = []
    for turn in story.turns:
        messages.append({"role": "user", "content": [{"text": turn.user}]})
        for step in turn.steps:
            uses = [{"toolUse": {"toolUseId": c.id, "name": c.tool, "input": asked(c)}} for c in step]
            messages.append({"role": "assistant", "content": uses})
            results = [
                {"toolUseId": c.id, "status": "error" if c.failed else "success", "content": [{"text": c.text}]}
                for c in step
                if c.answered
            ]
            if results:
                messages.append({"role": "user", "content": [{"toolResult": one} for one in results]})
        messages.append({"role": "assistant", "content": [{"text": turn.answer}]})
    return json.dumps(messages)


def autogen(story: Story) -> str:
    messages: list[Json] = []
    for turn in story.turns:
        messages.append({"source": "user", "content": turn.user, "type": "TextMessage"})
        for step in turn.steps:
            calls = [{"id": c.id, "name": c.tool, "arguments": json.dumps(asked(c))} for c in step]
            messages.append({"source": "agent", "content": calls, "type": "ToolCallRequestEvent"})
            results = [
                {"call_id": c.id, "name": c.tool, "content": c.text, "is_error": c.failed} for c in step if c.answered
            ]
            if results:
                messages.append({"source": "agent", "content": results, "type": "ToolCallExecutionEvent"})
        messages.append({"source": "agent", "content": turn.answer, "type": "TextMessage"})
    return json.dumps({"messages": messages, "stop_reason": None})


def mcp(story: Story) -> str:
    """The last turn: the log has neither turns nor steps."""
    lines: list[Json] = [{"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {}}]
    lines.append({"jsonrpc": "2.0", "id": 0, "result": {"serverInfo": {}}})
    for step in story.turns[-1].steps:
        ids = {c.id: f"{len(lines)} {c.id}" for c in step}
        for c in step:
            params = {"name": c.tool, "arguments": asked(c)}
            lines.append({"jsonrpc": "2.0", "id": ids[c.id], "method": "tools/call", "params": params})
        for c in step:
            if c.answered:
                result = {"content": [text_of(c)], "isError": c.failed}
                lines.append({"jsonrpc": "2.0", "id": ids[c.id], "result": result})
    return "".join(json.dumps(line) + "\n" for line in lines)


def text_of(call: Call) -> Json:
    """The output of a call as a text part."""
    return {"type": "text", "text": call.text}


def smolagents(story: Story) -> str:
    steps: list[Json] = []
    for turn in story.turns:
        steps.append({"task": turn.user})
        for step in turn.steps:
            calls = [
                {"id": c.id, "type": "function", "function": {"name": c.tool, "arguments": asked(c)}} for c in step
            ]
            told = [c.text if len(step) == 1 else f"## Search Results\n{c.text}" for c in step if c.answered]
            failed = "AgentToolExecutionError" if any(c.failed for c in step) else None
            record = {"step_number": len(steps), "tool_calls": calls, "error": failed}
            steps.append({**record, "observations": "\n".join(told) or None, "is_final_answer": False})
        last = {"step_number": len(steps), "tool_calls": None, "observations": None, "model_output": "Thought: done."}
        steps.append({**last, "is_final_answer": True, "action_output": turn.answer})
    return json.dumps(steps)


#: For each format its writer and the name of its file.
MORE_WRITERS: dict[str, tuple[Writer, str]] = {
    "gemini": (gemini, "story.json"),
    "codex": (codex, "story.jsonl"),
    "openai_agents": (openai_agents, "story.jsonl"),
    "strands": (strands, "story.json"),
    "autogen": (autogen, "story.json"),
    "mcp": (mcp, "story.jsonl"),
    "smolagents": (smolagents, "story.json"),
    "claude_code": (claude_code, "story.jsonl"),
    "pydantic_ai": (pydantic_ai, "story.json"),
    "vercel_ai": (vercel_ai, "story.json"),
}
