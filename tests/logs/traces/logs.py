"""One story, written down as each format would log it.

A story is turns of steps of calls. `WRITERS` has for each format a function from a story to the text of a log, so that
every rule can be tested in every format it occurs in. That the writers are true to the libraries is what the fixtures
made with the real libraries are for.
"""

from __future__ import annotations

import json

from .more_logs import MORE_WRITERS
from .span_logs import SPAN_WRITERS
from .story import FIRST_TURN, LAST_TURN, Call, Json, Story, Turn, Writer, asked, conversation, docs

__all__ = ["FIRST_TURN", "LAST_TURN", "ONE_TURN", "WRITERS", "Call", "Story", "Turn", "conversation", "docs"]


def _function(call: Call) -> Json:
    return {"name": call.tool, "arguments": json.dumps(asked(call))}


def _text(text: str) -> Json:
    return {"type": "text", "text": text}


def openai_chat(story: Story) -> str:
    messages: list[Json] = [{"role": "system", "content": "You search. <search>an example</search>"}]
    for turn in story.turns:
        messages.append({"role": "user", "content": turn.user})
        for step in turn.steps:
            calls = [{"id": c.id, "type": "function", "function": _function(c)} for c in step]
            messages.append({"role": "assistant", "content": None, "tool_calls": calls})
            messages += [{"role": "tool", "tool_call_id": c.id, "content": c.text} for c in step if c.answered]
        messages.append({"role": "assistant", "content": turn.answer})
    return json.dumps(messages)


def openai_responses(story: Story) -> str:
    items: list[Json] = []
    for turn in story.turns:
        items.append({"type": "message", "role": "user", "content": [{"type": "input_text", "text": turn.user}]})
        for step in turn.steps:
            items += [{"type": "function_call", "id": f"fc_{c.id}", "call_id": c.id, **_function(c)} for c in step]
            items += [{"type": "function_call_output", "call_id": c.id, "output": c.text} for c in step if c.answered]
        content = [{"type": "output_text", "text": turn.answer, "annotations": []}]
        items.append({"type": "message", "role": "assistant", "content": content})
    return json.dumps(items)


def anthropic(story: Story) -> str:
    messages: list[Json] = []
    for turn in story.turns:
        messages.append({"role": "user", "content": turn.user})
        for step in turn.steps:
            uses = [{"type": "tool_use", "id": c.id, "name": c.tool, "input": asked(c)} for c in step]
            messages.append({"role": "assistant", "content": [_text("Let me look."), *uses]})
            results = [
                {"type": "tool_result", "tool_use_id": c.id, "content": [_text(c.text)], "is_error": c.failed}
                for c in step
                if c.answered
            ]
            if results:
                messages.append({"role": "user", "content": results})
        messages.append({"role": "assistant", "content": [_text(turn.answer)]})
    return json.dumps(messages)


def langchain(story: Story) -> str:
    messages: list[Json] = []
    for turn in story.turns:
        messages.append({"type": "human", "content": turn.user, "id": f"m{len(messages)}"})
        for step in turn.steps:
            calls = [{"name": c.tool, "args": asked(c), "id": c.id, "type": "tool_call"} for c in step]
            messages.append({"type": "ai", "content": "", "tool_calls": calls, "id": f"m{len(messages)}"})
            for c in (c for c in step if c.answered):
                answer = {"type": "tool", "content": c.text, "tool_call_id": c.id, "name": c.tool}
                messages.append({**answer, "status": "error" if c.failed else "success", "artifact": None})
        messages.append({"type": "ai", "content": turn.answer, "tool_calls": [], "id": f"m{len(messages)}"})
    return json.dumps({"messages": messages})


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


def atif(story: Story) -> str:
    steps: list[Json] = []
    for turn in story.turns:
        steps.append({"source": "user", "message": turn.user})
        for step in turn.steps:
            calls = [{"tool_call_id": c.id, "function_name": c.tool, "arguments": asked(c)} for c in step]
            results = [{"source_call_id": c.id, "content": c.text} for c in step if c.answered]
            steps.append({"source": "agent", "message": "", "tool_calls": calls, "observation": {"results": results}})
        steps.append({"source": "agent", "message": turn.answer})
    for number, step in enumerate(steps, start=1):
        step["step_id"] = number
    return json.dumps(
        {"schema_version": "ATIF-v1.4", "session_id": "story", "agent": {"name": "a", "version": "1"}, "steps": steps}
    )


def inspect_ai(story: Story) -> str:
    messages: list[Json] = []
    for turn in story.turns:
        messages.append({"role": "user", "content": turn.user})
        for step in turn.steps:
            calls = [{"id": c.id, "function": c.tool, "arguments": asked(c)} for c in step]
            messages.append({"role": "assistant", "content": "", "tool_calls": calls})
            for c in (c for c in step if c.answered):
                error = {"error": {"type": "timeout", "message": "time is up"}} if c.failed else {}
                answer = {"role": "tool", "tool_call_id": c.id, "function": c.tool, "content": c.text}
                messages.append({**answer, **error})
        messages.append({"role": "assistant", "content": turn.answer})
    sample = {"id": "story", "epoch": 1, "messages": messages, "attachments": {}}
    return json.dumps({"version": 2, "eval": {"task": "t", "model": "m"}, "samples": [sample]})


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


def tau_bench(story: Story) -> str:
    messages: list[Json] = [{"role": "assistant", "content": "How can I help?", "tool_calls": None}]
    for turn in story.turns[-1:]:
        messages.append({"role": "user", "content": turn.user, "tool_calls": None})
        for step in turn.steps:
            calls = [{"id": c.id, "name": c.tool, "arguments": asked(c), "requestor": "assistant"} for c in step]
            messages.append({"role": "assistant", "content": None, "tool_calls": calls})
            messages += [
                {"id": c.id, "role": "tool", "content": c.text, "requestor": "assistant", "error": c.failed}
                for c in step
                if c.answered
            ]
        messages.append({"role": "assistant", "content": turn.answer, "tool_calls": None})
    simulation = {"id": "s", "task_id": "story", "trial": 0, "reward_info": {"reward": 1.0}, "messages": messages}
    return json.dumps({"info": {"agent_info": {"llm": "m"}}, "tasks": [], "simulations": [simulation]})


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


#: For each format its writer and the name of its file.
WRITERS: dict[str, tuple[Writer, str]] = {
    "openai_chat": (openai_chat, "story.json"),
    "openai_responses": (openai_responses, "story.json"),
    "anthropic": (anthropic, "story.json"),
    "langchain": (langchain, "story.json"),
    "openinference": (openinference, "story.jsonl"),
    "tagged_text": (tagged_text, "story.jsonl"),
    "atif": (atif, "story.json"),
    "inspect_ai": (inspect_ai, "story.json"),
    "browsecomp_plus": (browsecomp_plus, "story.json"),
    "tau_bench": (tau_bench, "story.json"),
    "jsonl": (jsonl, "story.jsonl"),
    **MORE_WRITERS,
    **SPAN_WRITERS,
}

#: Formats that cannot hold the story, and why: tests/logs/traces/cases and their fixtures hold what they read.
WITHOUT_STORY = {
    "retrieved_contexts": "a record is one search, without its call",
    "promptfoo": "a result is one search, without its call",
    "chatgpt_export": "the export has neither ids of calls nor failures, and one list for several searches",
}
#: Formats that hold one turn only.
ONE_TURN = {"tagged_text", "browsecomp_plus", "mcp", "tau_bench"}
