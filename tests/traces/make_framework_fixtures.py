"""Writes the fixtures of frameworks for agents, with their own classes where they install.

    python tests/traces/make_framework_fixtures.py [name of a format ...]

It needs openai-agents, strands-agents, autogen-agentchat and smolagents. What the fixtures hold stands in `expected.py`.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.traces.make_fixtures import HERE, QUESTIONS, SCRIPT, found, save
from tests.traces.make_more_fixtures import jsonl, pages, story


def openai_agents() -> None:
    """Two sessions in a database of the SDK: of two turns, and of one."""
    import asyncio

    from agents import SQLiteSession

    story("openai_agents")
    path = HERE / "openai_agents" / "sessions.db"
    path.unlink(missing_ok=True)

    def step(queries: list[str]) -> list[Any]:
        calls = [
            {"type": "function_call", "call_id": f"c-{q}", "name": "web_search", "arguments": json.dumps({"query": q})}
            for q in queries
        ]
        outputs = [
            {"type": "function_call_output", "call_id": f"c-{q}", "output": json.dumps({"results": pages(q)})}
            for q in queries
        ]
        return [{"type": "reasoning", "id": f"rs-{queries[0]}", "summary": []}, *calls, *outputs]

    said = {
        "type": "message",
        "role": "assistant",
        "content": [{"type": "output_text", "text": "So.", "annotations": []}],
    }

    async def write() -> None:
        talk, other = SQLiteSession("talk", path), SQLiteSession("other", path)
        for question, steps in zip(QUESTIONS, SCRIPT, strict=True):
            items = [item for queries in steps for item in step(queries)]
            await talk.add_items([{"role": "user", "content": question}, *items, said])
            if question == QUESTIONS[0]:  # the sessions' rows stand between each other
                await other.add_items([{"role": "user", "content": question}, *step(["idf"]), said])
        for session in (talk, other):
            session.close()

    asyncio.run(write())
    for beside in path.parent.glob("sessions.db-*"):
        beside.unlink()


def strands() -> None:
    """An agent of Strands with a scripted model, and a failed search."""
    from strands import Agent, tool
    from strands.models import Model

    steps = iter([*SCRIPT[1][:2], ["slow"], *SCRIPT[1][2:], None])

    class Scripted(Model):
        def update_config(self, **_: Any) -> None: ...
        def get_config(self) -> Any:
            return {}

        def structured_output(self, *_: Any, **__: Any) -> Any:
            raise NotImplementedError

        async def stream(self, *_: Any, **__: Any) -> Any:
            queries = next(steps)
            yield {"messageStart": {"role": "assistant"}}
            for query in queries or ():
                yield {"contentBlockStart": {"start": {"toolUse": {"toolUseId": f"c-{query}", "name": "web_search"}}}}
                yield {"contentBlockDelta": {"delta": {"toolUse": {"input": json.dumps({"query": query})}}}}
                yield {"contentBlockStop": {}}
            if not queries:
                yield {"contentBlockStart": {"start": {}}}
                yield {"contentBlockDelta": {"delta": {"text": "That is it."}}}
                yield {"contentBlockStop": {}}
            yield {"messageStop": {"stopReason": "tool_use" if queries else "end_turn"}}

    @tool
    def web_search(query: str) -> Any:
        """Searches."""
        if query == "slow":
            raise ValueError("time is up")
        return {"status": "success", "content": [{"json": {"results": pages(query)}}]}

    agent = Agent(model=Scripted(), tools=[web_search], callback_handler=None)
    agent(QUESTIONS[1])
    save("strands/messages.json", agent.messages)
    use = {"toolUse": {"toolUseId": "c", "name": "web_search", "input": {"query": "idf"}}}
    answer = {"toolResult": {"toolUseId": "c", "content": [{"text": json.dumps(pages("idf"))}]}}
    history = [{"role": "user", "content": [{"text": QUESTIONS[0]}, {"image": {"format": "png", "source": {}}}]}]
    history += [
        {"role": "assistant", "content": [{"reasoningContent": {}}, use]},
        {"role": "user", "content": [answer]},
    ]
    save("strands/converse.json", {"modelId": "m", "messages": history})


def autogen() -> None:
    """A TaskResult of AgentChat's classes, with a summary; the same calls as a saved state has them."""
    from autogen_agentchat.base import TaskResult
    from autogen_agentchat.messages import (
        TextMessage,
        ToolCallExecutionEvent,
        ToolCallRequestEvent,
        ToolCallSummaryMessage,
    )
    from autogen_core import FunctionCall
    from autogen_core.models import (
        AssistantMessage,
        FunctionExecutionResult,
        FunctionExecutionResultMessage,
        UserMessage,
    )

    messages: list[Any] = [TextMessage(source="user", content=QUESTIONS[1])]
    state: list[Any] = [UserMessage(source="user", content=QUESTIONS[1])]
    for queries in SCRIPT[1]:
        calls = [FunctionCall(id=f"c-{q}", name="web_search", arguments=json.dumps({"query": q})) for q in queries]
        results = [
            FunctionExecutionResult(content=json.dumps(pages(q)), name="web_search", call_id=f"c-{q}", is_error=False)
            for q in queries
        ]
        text = "\n".join(one.content for one in results)
        messages.append(ToolCallRequestEvent(source="agent", content=calls))
        messages.append(ToolCallExecutionEvent(source="agent", content=results))
        messages.append(ToolCallSummaryMessage(source="agent", content=text, tool_calls=calls, results=results))
        state += [AssistantMessage(source="agent", content=calls), FunctionExecutionResultMessage(content=results)]
    messages.append(TextMessage(source="agent", content="That is it."))
    save("autogen/task_result.json", TaskResult(messages=messages).model_dump(mode="json"))
    held = [message.model_dump(mode="json") for message in state]
    save("autogen/state.json", {"type": "AssistantAgentState", "llm_context": {"messages": held}})


def smolagents() -> None:
    """The memory of an agent of smolagents, with two searches in a step."""
    from smolagents.memory import ActionStep, AgentMemory, TaskStep, ToolCall
    from smolagents.monitoring import Timing

    memory = AgentMemory("You search.")
    memory.steps.append(TaskStep(task=QUESTIONS[1]))
    for number, queries in enumerate([*SCRIPT[1][:1], SCRIPT[1][2]], start=1):
        calls = [ToolCall(id=f"c-{q}", name="web_search", arguments={"query": q}) for q in queries]
        told = "\n".join(
            "## Search Results\n\n"
            + "\n\n".join(f"[{one['title']}]({one['url']})\n{one['content']}" for one in found(q))
            for q in queries
        )
        memory.steps.append(ActionStep(number, Timing(0.0, 1.0), tool_calls=calls, observations=told))
    last = [ToolCall(id="c-last", name="final_answer", arguments={"answer": "So."})]
    memory.steps.append(ActionStep(3, Timing(1.0, 2.0), tool_calls=last, observations="So.", is_final_answer=True))
    save("smolagents/steps.json", memory.get_full_steps())


def mcp() -> None:
    """A log that keeps the messages beside a time and a direction; answers out of order, one an error."""
    messages: list[dict[str, Any]] = [{"id": 1, "method": "tools/list"}, {"id": 1, "result": {"tools": []}}]
    for number, query in enumerate(("DCG", "learning to rank", "slow"), start=2):
        messages.append(
            {"id": number, "method": "tools/call", "params": {"name": "search", "arguments": {"query": query}}}
        )
    messages.append({"id": 4, "error": {"code": -32000, "message": "time is up"}})
    messages.append({"method": "notifications/progress", "params": {"progress": 1}})
    for number, names in ((3, ["d4"]), (2, ["d3", "d1"])):
        hits = [{"id": name, "title": name} for name in names]
        content = [{"type": "text", "text": json.dumps({"result": hits})}]
        result = {"content": content, "structuredContent": {"result": hits}, "isError": False}
        messages.append({"id": number, "result": result})
    lines = [{"time": n, "direction": "out", "message": {"jsonrpc": "2.0", **one}} for n, one in enumerate(messages)]
    save("mcp/session.jsonl", jsonl(lines))


def tagged_text() -> None:
    """A text in each dialect of tags that has no fixture of its own."""
    hits = [
        {"id": n, "title": one["title"], "url": one["url"], "snippet": "s"} for n, one in enumerate(found("DCG"), 1)
    ]
    bm25, dcg = "Okapi BM25", "DCG (measure)"
    texts = {
        "zerosearch": "<search>a</search>\n<information>Doc 1: BM25 is a ranking function.</information>",
        "stepsearch": f'<search>a</search><information>Doc 1<## Title: "{bm25}" ##> x\nDoc 2<## Title: "{dcg}" ##> y</information>'
        "<observation>Doc 1 helps.</observation>",
        "research": f'<think><search>a</search> <result>\n"{bm25}"\nText.\n\n"{dcg}"\nText.\n\n\n</result>'
        f'<search>b</search><result>\n"{bm25}"\nText.\n</result></think>',
        "r1_searcher": "<|begin_of_query|>a<|end_of_query|>\n<|begin_of_documents|>\n(1)k1 and b\n<|end_of_documents|>"
        "<|begin_of_query|>b<|end_of_query|>\n<|begin_of_documents|>\nNone\n<|end_of_documents|>",
        "search_o1": f"<|begin_search_query|>a<|end_search_query|><|begin_search_result|>\n{json.dumps(hits)}"
        "\n<|end_search_result|><|begin_url|>x<|end_url|><|begin_full_page|>page<|end_full_page|>",
    }
    keys = {"r1_searcher": "gen_text_store", "search_o1": "Output", "zerosearch": "rollout"}
    save(
        "tagged_text/dialects.jsonl",
        jsonl([{"id": name, keys.get(name, "output"): text} for name, text in texts.items()]),
    )


MAKERS = (openai_agents, strands, autogen, smolagents, mcp, tagged_text)

if __name__ == "__main__":
    for make in MAKERS:
        if make.__name__ in sys.argv[1:] or not sys.argv[1:]:
            make()
