"""Writes the fixtures of agents' programs and of libraries for models, with the real libraries where there are any.

    python tests/traces/make_more_fixtures.py [name of a format ...]

It needs pydantic-ai-slim and google-adk. What the fixtures hold, counted by hand, stands in `expected.py`. The formats
without a library of their own are written by `more_logs.py`, and by hand where that leaves fields out.
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


def pages(query: str) -> list[dict[str, Any]]:
    """What a search finds, as pages without ids."""
    return [{"url": one["url"], "title": one["title"], "snippet": one["content"]} for one in found(query)]


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


def gemini() -> None:
    """A session of ADK and its events as rows; exchanges with the API in snake_case; lines of Gemini CLI."""
    from google.adk.events import Event
    from google.adk.sessions import Session
    from google.genai import types

    def text(role: str, words: str) -> Any:
        return types.Content(role=role, parts=[types.Part(text=words)])

    def calls(queries: list[str], *, ids: bool) -> Any:
        made = [types.FunctionCall(id=f"c-{q}" if ids else None, name="web_search", args={"query": q}) for q in queries]
        return types.Content(role="model", parts=[types.Part(function_call=call) for call in made])

    def answers(queries: list[str], *, ids: bool) -> Any:
        given = [
            types.FunctionResponse(id=f"c-{q}" if ids else None, name="web_search", response={"result": pages(q)})
            for q in queries
        ]
        return types.Content(role="user", parts=[types.Part(function_response=one) for one in given])

    hits = [types.GroundingChunkWeb(uri=one["url"], title=one["title"]) for one in found("idf")]
    context = types.GroundingChunkRetrievedContext(uri=hits[1].uri, title=hits[1].title, text="passage")
    chunks = [types.GroundingChunk(web=hits[0]), types.GroundingChunk(retrieved_context=context)]
    grounding = types.GroundingMetadata(web_search_queries=["idf", "tf-idf"], grounding_chunks=chunks)

    def event(author: str, turn: int, content: Any, **fields: Any) -> Any:
        return Event(author=author, invocation_id=f"i{turn}", content=content, **fields)

    events = [event("user", 1, text("user", QUESTIONS[0])), event("agent", 1, text("model", "A function."))]
    events.append(event("user", 2, text("user", QUESTIONS[1])))
    for queries in SCRIPT[1][:2]:
        events += [event("agent", 2, calls(queries, ids=True)), event("agent", 2, answers(queries, ids=True))]
    events.append(event("agent", 2, text("model", "That"), partial=True, grounding_metadata=grounding))
    events.append(event("agent", 2, text("model", "That is it."), grounding_metadata=grounding))
    session = Session(id="talk", app_name="app", user_id="u", events=events)
    save("gemini/adk_session.json", session.model_dump_json(by_alias=True, exclude_none=True))
    rows = [one.model_dump(mode="json", exclude_none=True) for one in session.events]
    save(
        "gemini/adk_events.json", [{**row, "session_id": "talk", "content": json.dumps(row["content"])} for row in rows]
    )

    contents = [text("user", QUESTIONS[1])]
    for queries in SCRIPT[1][:2]:
        contents += [calls(queries, ids=False), answers(queries, ids=False)]
    contents.append(text("model", "That is it."))
    dumped = [content.model_dump(mode="json", exclude_none=True) for content in contents]
    records = []
    for end in (1, 3, 5):
        candidate = types.Candidate(content=contents[end], grounding_metadata=grounding if end == 5 else None)
        response = types.GenerateContentResponse(candidates=[candidate], model_version="gemini-x")
        answer = response.model_dump(mode="json", exclude_none=True)
        records.append({"request": {"contents": dumped[:end]}, "response": answer})
    save("gemini/exchanges.json", records)

    def searched(message_id: str, query: str, names: list[str]) -> dict[str, Any]:
        sources = "\n".join(f"[{n}] T {name} (https://pages.example.org/{name})" for n, name in enumerate(names, 1))
        output = f'Web search results for "{query}":\n\nProse [1].\n\nSources:\n{sources}'
        response = {"functionResponse": {"id": "x", "name": "google_web_search", "response": {"output": output}}}
        call = {"id": "x", "name": "google_web_search", "args": {"query": query}, "result": [response]}
        made = [{**call, "status": "success"}]
        return {"id": message_id, "type": "gemini", "content": "", "toolCalls": made, "model": "gemini-x"}

    lines = [
        {"sessionId": "cli", "projectHash": "ff", "startTime": "2026-01-01T00:00:00Z", "kind": "main"},
        {"id": "m1", "type": "user", "content": [{"text": QUESTIONS[1]}]}, {"id": "m2", "type": "info", "content": "Hi."},
        searched("m3", "DCG", ["d3", "d1"]), searched("m3", "DCG", ["d3"]), searched("m4", "idf", ["d2"]),
        {"id": "m5", "type": "gemini", "content": "So."}, {"$rewindTo": "m4"}, {"$set": {"lastUpdated": "now"}},
        searched("m6", "idf", ["d2", "d1"]), {"id": "m7", "type": "gemini", "content": "That is it."},
    ]  # fmt: skip
    save("gemini/cli.jsonl", jsonl(lines))


def codex() -> None:
    """A rollout of two turns, and the events of `codex exec --json`."""
    lines: list[dict[str, Any]] = []

    def line(kind: str, **payload: Any) -> None:
        lines.append({"timestamp": "2026-01-01T00:00:00.000Z", "type": kind, "payload": payload})

    def call(call_id: str, name: str, arguments: Any, **fields: Any) -> None:
        given = json.dumps(arguments)
        line("response_item", type="function_call", name=name, arguments=given, call_id=call_id, **fields)

    def mcp_end(call_id: str, arguments: Any, text: str) -> None:
        made = {"server": "pages", "tool": "search_pages", "arguments": arguments}
        result = {"Ok": {"content": [{"type": "text", "text": text}], "isError": False}}
        line("event_msg", type="mcp_tool_call_end", call_id=call_id, invocation=made, result=result)

    hit = "Learning to rank (https://pages.example.org/d4)\n\ue200cite\ue202turn1search0\ue201 [wordlim: 200] text"
    page = "Page (https://pages.example.org/d9)\n\ue200cite\ue202turn1view0\ue201 [wordlim: 200] text"
    user = {"type": "message", "role": "user"}
    line("session_meta", id="talk", cwd="/", cli_version="1")
    line("response_item", **user, content=[{"type": "input_text", "text": "<environment_context>"}])
    for number, question in enumerate(QUESTIONS):
        line("turn_context", turn_id=f"t{number}", model="gpt-x")
        line("response_item", **user, content=[{"type": "input_text", "text": question}])
        line("event_msg", type="user_message", message=question, images=[])
        line("response_item", type="reasoning", summary=[], encrypted_content="x")
        line("response_item", type="ghost_snapshot", ghost_commit={})
    call("c1", "mcp__pages__search_pages", {"query": "DCG"})
    mcp_end("c1", {"query": "DCG"}, json.dumps(pages("DCG")))
    line("response_item", type="function_call_output", call_id="c1", output="Wall time: 0.1 seconds\nOutput: [cut off]")
    mcp_end("c2", {"query": "idf"}, json.dumps({"results": [{"id": name, "title": name} for name in ("d2", "d1")]}))
    call("c3", "run", {"search_query": [{"q": "learning to rank"}], "open": [{"ref_id": "x"}]}, namespace="web")
    text = [{"type": "input_text", "text": f"{hit}\n{page}"}]
    line("response_item", type="function_call_output", call_id="c3", output=text)
    call("c4", "exec_command", {"cmd": "ls"})
    line("response_item", type="function_call_output", call_id="c4", output="Exit code: 0")
    line("compacted", message="", replacement_history=[lines[-2]["payload"]])
    said = [{"type": "output_text", "text": "That is it."}]
    line("response_item", type="message", role="assistant", content=said)
    save("codex/rollout.jsonl", jsonl(lines))

    def completed(number: int, **item: Any) -> dict[str, Any]:
        return {"type": "item.completed", "item": {"id": f"item_{number}", **item}}

    def mcp(number: int, *names: str) -> dict[str, Any]:
        hits = {"results": [{"id": name, "title": name} for name in names]}
        result = {"content": [{"type": "text", "text": json.dumps(hits)}], "structured_content": hits}
        item = {"type": "mcp_tool_call", "server": "s", "tool": "search", "arguments": {}, "result": result}
        return completed(number, **item, error=None, status="completed")

    opened = {"type": "open_page", "url": "https://pages.example.org/d1"}
    events = [
        {"type": "thread.started", "thread_id": "thread"}, {"type": "turn.started"},
        completed(0, type="reasoning", text="Hm."),
        {"type": "item.started", "item": {"id": "item_1", "type": "mcp_tool_call", "server": "s", "tool": "search"}},
        mcp(1, "d3", "d1"), completed(2, type="web_search", query=opened["url"], action=opened),
        completed(3, type="command_execution", command="ls"), completed(4, type="reasoning", text="Hm."),
        mcp(5, "d2"), completed(6, type="agent_message", text="That is it."),
        {"type": "turn.completed", "usage": {"input_tokens": 1, "output_tokens": 1}},
    ]  # fmt: skip
    save("codex/exec.jsonl", jsonl(events))


MAKERS = {make.__name__: make for make in (claude_code, pydantic_ai, gemini, codex)}

if __name__ == "__main__":
    for name in sys.argv[1:] or MAKERS:
        MAKERS[name]()
