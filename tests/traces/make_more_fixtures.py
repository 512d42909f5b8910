"""Writes the fixtures of the formats of agents' programs and frameworks, with the real libraries where there are any.

    python tests/traces/make_more_fixtures.py [name of a format ...]

What the fixtures hold, counted by hand, stands in `expected.py`. The formats without a library of their own are written
by `more_logs.py`, and by hand where that leaves fields out.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.traces.make_fixtures import QUESTIONS, SCRIPT, found, save
from tests.traces.more_logs import MORE_WRITERS
from tests.traces.story import conversation


def story(name: str) -> None:
    """The story, as the tests write it."""
    write, file_name = MORE_WRITERS[name]
    save(f"{name}/{file_name}", write(conversation()))


def jsonl(records: list[Any]) -> str:
    return "\n".join(map(json.dumps, records))


def claude_code() -> None:
    """A session with a dead branch, a compaction, notes in the user's name and a subagent; and a stream of two turns."""
    story("claude_code")
    hits = {query: [{"title": one["title"], "url": one["url"]} for one in found(query)] for query in ("DCG", "idf")}
    lines: list[dict[str, Any]] = [{"type": "summary", "summary": "Ranking", "leafUuid": "u9"}]

    def line(uuid: str, parent: str | None, kind: str, content: Any, message_id: str = "", **fields: Any) -> None:
        message = {"role": kind, "content": content} | ({"id": message_id, "model": "m"} if kind == "assistant" else {})
        lines.append(
            {"uuid": uuid, "parentUuid": parent, "sessionId": "talk", "type": kind, "message": message} | fields
        )

    def use(call_id: str, query: str) -> list[dict[str, Any]]:
        return [{"type": "tool_use", "id": call_id, "name": "WebSearch", "input": {"query": query}}]

    def result(call_id: str, query: str) -> dict[str, Any]:
        text = f'Web search results for query: "{query}"\n\nLinks: {json.dumps(hits[query])}\n\nProse [x](https://x.example).'
        structured = {"query": query, "results": [{"tool_use_id": "srv", "content": hits[query]}, "Prose"]}
        return {
            "content": [{"type": "tool_result", "tool_use_id": call_id, "content": text}], "toolUseResult": structured
        }  # fmt: skip

    line("u1", None, "user", QUESTIONS[0])
    line("u2", "u1", "assistant", use("c1", "DCG"), "m1")  # the user edited the prompt: a dead branch
    line("u3", "u2", "user", **result("c1", "DCG"))
    line("u4", None, "user", QUESTIONS[1])
    line("u5", "u4", "assistant", [{"type": "thinking", "thinking": "Hm."}], "m2")
    line("u6", "u5", "assistant", use("c2", "DCG"), "m2")
    line("u7", "u6", "assistant", use("c3", "idf"), "m2")
    line("u8", "u6", "user", **result("c2", "DCG"))  # beside the branch that goes on from the other answer
    line("u9", "u7", "user", **result("c3", "idf"))
    lines.append({"uuid": "u10", "parentUuid": None, "logicalParentUuid": "u9", "sessionId": "talk", "type": "system",
                  "subtype": "compact_boundary", "content": "Conversation compacted"})  # fmt: skip
    line("u11", "u10", "user", "This session goes on from an earlier one.", isCompactSummary=True)
    line("u12", "u11", "assistant", use("c4", "idf"), "m3")
    plain = {key: value for key, value in result("c4", "idf").items() if key != "toolUseResult"}
    line("u13", "u12", "user", **plain)  # only the text holds the links
    line("s1", None, "user", "look", isSidechain=True, agentId="a1")
    line(
        "s2",
        "s1",
        "assistant",
        [{"type": "tool_use", "id": "s", "name": "Grep", "input": {}}],
        "m8",
        isSidechain=True,
        agentId="a1",
    )
    line("u14", "u13", "user", [{"type": "text", "text": "<system-reminder>Be brief.</system-reminder>"}])
    line("u15", "u14", "assistant", [{"type": "text", "text": "That is it."}], "m4")
    save("claude_code/session.jsonl", jsonl(lines))
    lines.clear()
    lines.append({"type": "system", "subtype": "init", "session_id": "stream", "tools": ["WebSearch"], "model": "m"})
    for number, query in enumerate(("DCG", "idf")):
        use_line = {"role": "assistant", "id": f"m{number}", "content": use(f"c{number}", query)}
        answer = result(f"c{number}", query)
        records = [
            {"type": "assistant", "message": use_line}, {"type": "stream_event", "event": {"type": "message_stop"}},
            {"type": "user", "message": {"role": "user", "content": answer["content"]}, "tool_use_result": answer["toolUseResult"]},
            {"type": "result", "subtype": "success", "num_turns": 2, "result": "That is it."},
        ]  # fmt: skip
        for record in records:
            lines.append({**record, "session_id": "stream", "parent_tool_use_id": None, "uuid": f"u{len(lines)}"})
    save("claude_code/stream.jsonl", jsonl(lines))


def pydantic_ai() -> None:
    """Two runs of an agent with a scripted model, a tool that fails once, and a hosted search in the last answer."""
    from pydantic_ai import Agent, ModelRetry
    from pydantic_ai.messages import (
        ModelMessagesTypeAdapter,
        ModelResponse,
        NativeToolCallPart,
        NativeToolReturnPart,
        TextPart,
        ToolCallPart,
    )
    from pydantic_ai.models.function import FunctionModel

    steps = iter([*SCRIPT[0], None, *SCRIPT[1][:2], ["slow"], *SCRIPT[1][2:], None])

    def model(messages: Any, info: Any) -> Any:
        step = next(steps)
        calls = [ToolCallPart("web_search", {"query": query}, tool_call_id=f"c-{query}") for query in step or ()]
        hosted = [{"type": "web_search_result", "url": one["url"], "title": one["title"]} for one in found("idf")]
        answer = [
            NativeToolCallPart("web_search", {"query": "idf"}, tool_call_id="s1"),
            NativeToolReturnPart("web_search", hosted, "s1"), TextPart("That is it."),
        ]  # fmt: skip
        return ModelResponse(parts=calls or answer)

    agent = Agent(FunctionModel(model), retries=3)

    @agent.tool_plain
    def web_search(query: str) -> list[dict[str, Any]]:
        if query == "slow":
            raise ModelRetry("time is up")
        return [{key: one[key] for key in ("url", "title", "content")} for one in found(query)]

    first = agent.run_sync(QUESTIONS[0])
    second = agent.run_sync(QUESTIONS[1], message_history=first.all_messages())
    messages = json.loads(second.all_messages_json())
    save("pydantic_ai/messages.json", [{**one, "conversation_id": None} for one in messages])
    rows = ModelMessagesTypeAdapter.dump_python(first.all_messages(), mode="json")
    told = [rows[0] | {"conversation_id": "talk", "metadata": {"note": "x"}}, rows[-1] | {"conversation_id": "talk"}]
    save("pydantic_ai/runs.jsonl", json.dumps({"run": 1, "messages": told}))


MAKERS = {make.__name__: make for make in (claude_code, pydantic_ai)}

if __name__ == "__main__":
    for name in sys.argv[1:] or MAKERS:
        MAKERS[name]()
