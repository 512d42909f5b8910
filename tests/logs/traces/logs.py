"""One story, written down as each format would log it.

A story is turns of steps of calls. `WRITERS` has for each format a function from a story to the text of a log, so that
every rule can be tested in every format it occurs in. That the writers are true to the libraries is what the fixtures
made with the real libraries are for.
"""

from __future__ import annotations

import json

from .span_logs import SPAN_WRITERS
from .story import FIRST_TURN, LAST_TURN, Call, Json, Story, Turn, Writer, asked, conversation, docs
from .story_templates import TEMPLATE_WRITERS

__all__ = ["FIRST_TURN", "LAST_TURN", "ONE_TURN", "WRITERS", "Call", "Story", "Turn", "conversation", "docs"]


def openinference(story: Story) -> str:
    lines: list[str] = []
    clock = 0

    def span(kind: str, name: str, turn: int, parent: str | None, **attributes: Json) -> str:
        nonlocal clock
        clock += 1
        span_id = f"0x{clock:016x}"
        moment = f"2026-01-01T00:00:{clock // 1000:02d}.{clock % 1000:03d}000Z"
        context = {"trace_id": f"0x{turn + 1:032x}", "span_id": span_id}
        status = {"status_code": "ERROR" if attributes.pop("failed", False) else "OK"}
        given = {"openinference.span.kind": kind, "session.id": "story", **attributes}
        record = {"name": name, "context": context, "parent_id": parent, "start_time": moment, "status": status}
        lines.append(json.dumps({**record, "attributes": given}))
        return span_id

    for number, turn in enumerate(story.turns):
        root = span("AGENT", "agent", number, None, **{"input.value": turn.user, "output.value": turn.answer})
        for step in turn.steps:
            span("LLM", "model", number, root, **{"llm.model_name": "m"})
            for c in step:
                given = {"tool.name": c.tool, "input.value": json.dumps(asked(c)), "failed": c.failed}
                if c.answered:
                    given["output.value"] = c.text
                span("TOOL", c.tool, number, root, **given)
        span("LLM", "model", number, root, **{"llm.model_name": "m"})
    return "\n".join(reversed(lines)) + "\n"  # spans are written when they end: no reader may rely on their order


def tagged_text(story: Story) -> str:
    messages: list[Json] = [
        {"role": "system", "content": 'Call tools so: <tool_call>{"name": "search"}</tool_call>'},
        {"role": "user", "content": story.turns[-1].user},
    ]

    for step in story.turns[-1].steps:
        made = [json.dumps({"name": c.tool, "arguments": asked(c)}) for c in step]
        calls = "\n".join(f"<tool_call>\n{call}\n</tool_call>" for call in made)
        messages.append({"role": "assistant", "content": f"<think>Hm.</think>\n{calls}"})
        responses = [f"<tool_response>\n{c.text}\n</tool_response>" for c in step if c.answered]
        if responses:
            messages.append({"role": "user", "content": "\n".join(responses)})

    messages.append({"role": "assistant", "content": f"<answer>{story.turns[-1].answer}</answer>"})
    return json.dumps({"question": story.turns[-1].user, "messages": messages}) + "\n"


def browsecomp_plus(story: Story) -> str:
    entries: list[Json] = []
    counts: dict[str, int] = {}
    for step in story.turns[-1].steps:
        entries.append({"type": "reasoning", "tool_name": None, "arguments": None, "output": ["Hm."]})
        for c in step:
            counts[c.tool] = counts.get(c.tool, 0) + 1
            entry = {"type": "tool_call", "tool_name": c.tool, "arguments": json.dumps(asked(c))}
            entries.append({**entry, "output": None if c.failed else c.text} if c.answered else entry)

    entries.append({"type": "output_text", "tool_name": None, "arguments": None, "output": story.turns[-1].answer})
    return json.dumps(
        {"metadata": {"model": "m"}, "query_id": "story", "tool_call_counts": counts, "status": "completed",
         "retrieved_docids": [], "result": entries}
    )  # fmt: skip


def jsonl(story: Story) -> str:
    def search(c: Call) -> Json:
        found = {"tool": c.tool, "call_id": c.id, ("queries" if isinstance(c.query, list) else "query"): c.query}
        if not c.answered:
            return found
        if c.failed:
            return {**found, "error": c.text}
        return {**found, ("results" if isinstance(c.output, list) else "output"): c.output}

    def opened(step: list[Call]) -> Json:
        pages = [c for c in step if c.tool == "visit"]
        return {"opens": [{**asked(c), ("error" if c.failed else "output"): c.output} for c in pages]} if pages else {}

    turns = [
        {
            "user": turn.user,
            "steps": [{"searches": [search(c) for c in s if "search" in c.tool], **opened(s)} for s in turn.steps],
            "answer": turn.answer,
        }
        for turn in story.turns
    ]
    return json.dumps({"goodgain_trace": 1, "query_id": "story", "turns": turns}) + "\n"


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
                result = {"content": [{"type": "text", "text": c.text}], "isError": c.failed}
                lines.append({"jsonrpc": "2.0", "id": ids[c.id], "result": result})
    return "".join(json.dumps(line) + "\n" for line in lines)


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


def qwen_code(story: Story) -> str:
    lines: list[str] = []
    for content in json.loads(TEMPLATE_WRITERS["gemini"][0](story))["contents"]:
        kind = "assistant" if content["role"] == "model" else "user"
        parent = f"uuid-{len(lines) - 1}" if lines else None
        record = {"uuid": f"uuid-{len(lines)}", "parentUuid": parent, "sessionId": "story", "type": kind}
        lines.append(json.dumps({**record, "message": content}))
    return "\n".join(lines) + "\n"


#: For each format its writer and the name of its file.
WRITERS: dict[str, tuple[Writer, str]] = {
    **TEMPLATE_WRITERS,
    "openinference": (openinference, "story.jsonl"),
    "tagged_text": (tagged_text, "story.jsonl"),
    "browsecomp_plus": (browsecomp_plus, "story.json"),
    "jsonl": (jsonl, "story.jsonl"),
    "mcp": (mcp, "story.jsonl"),
    "smolagents": (smolagents, "story.json"),
    "claude_code": (claude_code, "story.jsonl"),
    "qwen_code": (qwen_code, "story.jsonl"),
    **SPAN_WRITERS,
}
anthropic, inspect_ai, openai_chat = (WRITERS[name][0] for name in ("anthropic", "inspect_ai", "openai_chat"))

#: Formats that cannot hold the story, and why: tests/logs/traces/cases and their fixtures hold what they read.
WITHOUT_STORY = {
    "retrieved_contexts": "a record is one search, without its call",
    "dspy": "a step is one call, without an id, and a failure is a text",
    "inspect_scout": "a table, whose messages are those of inspect_ai",
    "promptfoo": "a result is one search, without its call",
    "chatgpt_export": "the export has neither ids of calls nor failures, and one list for several searches",
}
#: Formats that hold one turn only.
ONE_TURN = {"tagged_text", "browsecomp_plus", "mcp", "tau_bench"}
