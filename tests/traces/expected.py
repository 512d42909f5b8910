"""What each fixture holds, counted by hand: for each query its iterations, for each of these its documents in order."""

from __future__ import annotations

from typing import NamedTuple

#: None is a document that has neither id, URL nor title.
Iterations = list[list[str | None]]

_LANGGRAPH: Iterations = [["d3", "d1", "d4", "d1"], [], ["d2", "d1"]]
_PAGES = "https://pages.example.org/"
_BM25, _DCG = "Okapi BM25", "DCG (measure)"


class Expected(NamedTuple):
    """The queries of a fixture, and why they are counted so."""

    queries: dict[str, Iterations]
    reason: str


def _pages(*iterations: list[str]) -> Iterations:
    return [[_PAGES + name for name in names] for names in iterations]


_STORY: Iterations = [["d3", "d1", "d4", "d1"], [], [], ["d2", "d1"]]
_DOCUMENTS = [f"{_PAGES}d2", f"{_PAGES}d1"]
_AGENTS = _pages(["d3", "d1", "d4", "d1"], [], ["d2", "d1"])
#: What version 5 of the Vercel AI SDK found, and version 4, where a tool that fails ends the answer.
_SDK = _pages(["d3", "d1", "d4", "d1"], [], [], ["d2", "d1"])
_SDK_V4 = _pages(["d3", "d1", "d4", "d1"], [], ["d2", "d1"])

EXPECTED: dict[str, Expected] = {
    "langchain/model_dump.json": Expected({"model_dump": _LANGGRAPH}, "second turn; its first step made two calls"),
    "langchain/messages_to_dict.json": Expected({"messages_to_dict": _LANGGRAPH}, "the same messages"),
    "langchain/dumps.json": Expected({"dumps": _LANGGRAPH}, "the same messages"),
    "langchain/state.json": Expected({"talk_2": _LANGGRAPH}, "the same; the config's metadata name the query"),
    "langchain/states.jsonl": Expected({"talk_2": _LANGGRAPH}, "two states, the second goes on from the first"),
    "openinference/readable_spans.jsonl.gz": Expected({"talk_2": _LANGGRAPH}, "the same run, as spans"),
    "openinference/otlp.json.gz": Expected({"talk_2": _LANGGRAPH}, "the same spans"),
    "openinference/otlp_base64.json.gz": Expected({"talk_2": _LANGGRAPH}, "the same spans"),
    "openinference/phoenix.json.gz": Expected({"talk_2": _LANGGRAPH}, "the same spans"),
    "openai_chat/exchanges.json": Expected({"exchanges-1": _LANGGRAPH}, "six exchanges of one conversation"),
    "openai_chat/fine_tuning.jsonl": Expected({"fine_tuning-1": _LANGGRAPH}, "the same conversation, once"),
    "openai_chat/haystack.json": Expected({"haystack": _LANGGRAPH}, "the same, in Haystack's parts"),
    "openai_responses/hosted.json": Expected(
        {
            "hosted": [
                *_pages(["d3", "d1", "d4"]),
                ["file-1", "file-1", "file-2"],
                ["d2", "d1"],
            ]
        },
        "two searches after one thought are one step; opening a page is not a search; two hits of a file are two results",
    ),
    "anthropic/server_tools.json": Expected(
        {"server_tools-1": _pages(["d3", "d1", "d4"], [], ["d2", "d1"])},
        "two uses before the first result are one step; the last result opens the next message, after a pause",
    ),
    "shape/records.json": Expected(
        {"a1": _pages(["d3", "d1"], [], ["d2", "d1"]), "a2": _pages(["d3", "d4"]), "a3": []},
        "whole calls one after another; two calls before the first answer are one step; a task without a call",
    ),
    "inspect_ai/log.json": Expected({"7": _pages(["d3", "d1", "d4", "d1"], [], ["d2", "d1"])}, "each of two epochs"),
    "inspect_ai/log.eval": Expected({"7": _pages(["d3", "d1", "d4", "d1"], [], ["d2", "d1"])}, "the same log"),
    "browsecomp_plus/story.json": Expected({"story": _STORY}, "with iteration='step': thoughts part the steps"),
    "browsecomp_plus/mcp_parts.json": Expected({"story": [["7", "8"]]}, "two objects in a row, ids as numbers"),
    "tagged_text/story.jsonl": Expected({"story-1": _STORY}, "two calls in one message are one step"),
    "tagged_text/search_r1.txt": Expected(
        {"search_r1-1": [[_BM25, _DCG], [], [_BM25]], "search_r1-2": [[_DCG]]},
        "two traces; the tags in the user's prompt are examples",
    ),
    "atif/story.json": Expected({"story": _STORY}, "session_id names the query"),
    "tau_bench/story.json": Expected({"story": _STORY}, "the task; the agent's greeting is a step without a search"),
    "jsonl/story.jsonl": Expected({"story": _STORY}, "its own query_id"),
    "pydantic_ai/messages.json": Expected(
        {"messages": _pages(["d3", "d1", "d4", "d1"], [], [], ["d2", "d1"], ["d2", "d1"])},
        "the second turn; its failed search was retried, its last one is hosted, with call and return in one response",
    ),
    "pydantic_ai/runs.jsonl": Expected(
        {"talk": _pages(["d2", "d1"])}, "a row of a database: messages under a name, with the conversation's id"
    ),
    "gemini/adk_session.json": Expected(
        {"talk": _pages(["d3", "d1", "d4", "d1"], [], ["d2", "d1"])},
        "the second turn: events with function calls, and an answer grounded in two chunks",
    ),
    "gemini/adk_events.json": Expected({"talk": _pages(["d3", "d1", "d4", "d1"], [], ["d2", "d1"])}, "its rows"),
    "gemini/exchanges.json": Expected(
        {"exchanges-1": _pages(["d3", "d1", "d4", "d1"], [], ["d2", "d1"])}, "exchanges of one conversation, no ids"
    ),
    "gemini/cli.jsonl": Expected(
        {"cli": _pages(["d3"], ["d2", "d1"])}, "one message was replaced, two were taken back"
    ),
    "codex/rollout.jsonl": Expected(
        {"talk": [*_pages(["d3", "d1"]), ["d2", "d1"], *_pages(["d4"])]},
        "the second turn; one MCP call stands in an event only, the text of web.run has a hit and an opened page",
    ),
    "codex/exec.jsonl": Expected({"thread": [["d3", "d1"], ["d2"]]}, "two steps, parted by a thought"),
    "langfuse/story.json": Expected({"story": _STORY}, "the session; its second trace is the last turn"),
    "langfuse/observations.jsonl": Expected(
        {"q7": [["https://pages.example.org/d3", "https://pages.example.org/d1", *_DOCUMENTS], []]},
        "rows out of order; the span with searches below it is none",
    ),
    "langsmith/tree.json": Expected({"q7": [*_pages(["d3", "d1"], ["d2", "d1"]), ["d2", "d1"]]}, "three steps"),
    "langsmith/runs.jsonl": Expected({"q7": [*_pages(["d3", "d1"], ["d2", "d1"]), ["d2", "d1"]]}, "each run twice"),
    "mlflow/story.json": Expected({"story": _STORY}, "the session; its second trace is the last turn"),
    "mlflow/trace.json": Expected(
        {"q7": [["https://pages.example.org/d3", "https://pages.example.org/d1", "d4", "d1"], []]},
        "a tool and a retriever are one step; the tool that failed is the next",
    ),
    "openinference/phoenix.parquet": Expected({"q7": [["d3", "d1"], *_pages(["d2", "d1"])]}, "the last tool failed"),
    "openinference/vercel.json": Expected({"q7": _SDK}, "spans of generateText"),
    "openinference/traceloop.json": Expected(
        {"q7": [*_pages(["d3", "d1"]), [*_pages(["d4", "d1"])[0], *_DOCUMENTS]]},
        "a LangChain tool; a function, a retriever",
    ),
    "openinference/monocle.json": Expected(
        {"talk": [_pages(["d3", "d1", "d4", "d1"])[0], [], *_pages(["d2", "d1"])]},
        "the second trace of a session: a tool with its MCP call below it, and a retrieval; a tool that failed; a tool",
    ),
    "openai_agents/story.jsonl": Expected({"story": _STORY}, "an item a line; the file's name"),
    "openai_agents/sessions.db": Expected(
        {"talk": _AGENTS, "other": _pages(["d2", "d1"])}, "two sessions of one database"
    ),
    "strands/messages.json": Expected({"messages": _SDK}, "a search failed"),
    "strands/converse.json": Expected({"converse": _pages(["d2", "d1"])}, "messages of a request of Converse"),
    "autogen/task_result.json": Expected({"task_result": _AGENTS}, "the summary repeats results"),
    "autogen/state.json": Expected({"state": _AGENTS}, "a saved state"),
    "smolagents/steps.json": Expected(
        {"steps": [[*_pages(["d3", "d1", "d4", "d1"])[0]], *_pages(["d2", "d1"])]}, "shared text"
    ),
    "mcp/session.jsonl": Expected(
        {"session": [["d3", "d1", "d4"]]}, "three calls in a row, answers out of order, under message"
    ),
    "tagged_text/dialects.jsonl": Expected(
        {
            "zerosearch": [[None]],
            "stepsearch": [[_BM25, _DCG]],
            "research": [[_BM25, _DCG], [_BM25]],
            "r1_searcher": [[None], []],
            "search_o1": _pages(["d3", "d1"]),
        },
        "five dialects; snippets where a document has no title",
    ),
    "vercel_ai/ui_v5.json": Expected({"chat-1": _SDK}, "the chat's id; all steps in one message, parted by step-start"),
    "vercel_ai/model_messages_v5.json": Expected({"model_messages_v5": _SDK}, "the same answer"),
    "vercel_ai/steps_v5.json": Expected({"steps_v5": _SDK}, "the same answer"),
    "vercel_ai/ui_v4.json": Expected({"ui_v4": _SDK_V4}, "each call stands twice, and counts once"),
    "vercel_ai/steps_v4.json": Expected({"steps_v4": _SDK_V4}, "the same answer, under steps"),
    "claude_code/story.jsonl": Expected({"story": _STORY}, "the session's id; calls of one message are one step"),
    "claude_code/session.jsonl": Expected(
        {"talk": _pages(["d3", "d1", "d2", "d1"], ["d2", "d1"])}, "the edited prompt's branch is dead"
    ),
    "claude_code/stream.jsonl": Expected({"stream": _pages(["d2", "d1"])}, "the first result line ends a turn"),
}

#: Fixtures whose log does not hold the results, and what the one error says.
NOT_RECORDED = {"openai_responses/not_recorded.json": r"web_search_call\.action\.sources"}
