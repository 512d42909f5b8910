"""Writes the fixtures that real libraries make, so that the formats are tested as those libraries write them.

    python tests/traces/make_fixtures.py

Formats without a library of their own are written by the writers of `logs.py`. It needs what the tests do not:
langchain-core, langgraph, openinference-instrumentation-langchain, opentelemetry-sdk,
opentelemetry-exporter-otlp-proto-common, openai, anthropic, haystack-ai, inspect_ai. What the fixtures hold, counted
by hand, stands in `expected.py`.
"""

from __future__ import annotations

import gzip
import json
import re
import sys
import sysconfig
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent / "fixtures"

CORPUS = {
    "d1": ("Okapi BM25", "BM25 is a ranking function used by search engines."),
    "d2": ("tf-idf", "tf-idf weighs terms by frequency and rarity."),
    "d3": ("DCG", "DCG measures ranking quality."),
    "d4": ("Learning to rank", "Learning to rank applies machine learning to ranking."),
}
FINDS = {
    "ranking function": ["d1", "d3"],
    "DCG": ["d3", "d1"],
    "learning to rank": ["d4", "d1"],
    "nothing": [],
    "idf": ["d2", "d1"],
}
#: What the scripted model asks for, step by step, in each of the two turns.
SCRIPT = [[["ranking function"]], [["DCG", "learning to rank"], ["nothing"], ["idf"]]]
QUESTIONS = ["What is BM25?", "How is ranking quality measured, and learned?"]


def save(name: str, value: Any) -> None:
    path = HERE / name
    path.parent.mkdir(parents=True, exist_ok=True)
    text = value if isinstance(value, str) else json.dumps(value, indent=1)
    for folder in (sysconfig.get_path("purelib"), str(Path.cwd())):  # tracebacks name where they ran
        text = text.replace(f"{folder}/", "").replace(folder, ".")
    content = (text.strip() + "\n").encode()
    path.write_bytes(gzip.compress(content, mtime=0) if name.endswith(".gz") else content)


def found(query: str) -> list[dict[str, Any]]:
    return [
        {"id": name, "url": f"https://pages.example.org/{name}", "title": CORPUS[name][0], "content": CORPUS[name][1]}
        for name in FINDS[query]
    ]


def langchain_and_spans() -> None:
    """A LangGraph agent with a retriever as its tool, two turns; its messages in all dumps, its spans in all dumps."""
    from langchain_core.documents import Document
    from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
    from langchain_core.load import dumps
    from langchain_core.messages import AIMessage, HumanMessage, messages_to_dict
    from langchain_core.retrievers import BaseRetriever
    from langchain_core.tools import create_retriever_tool
    from langgraph.prebuilt import create_react_agent
    from openinference.instrumentation.langchain import LangChainInstrumentor
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    spans = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(spans))
    LangChainInstrumentor().instrument(tracer_provider=provider)

    class Corpus(BaseRetriever):
        def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
            return [
                Document(
                    id=one["id"], page_content=one["content"],
                    metadata={"source": one["url"], "title": one["title"], "score": 9.0 - rank},
                )
                for rank, one in enumerate(found(query))
            ]  # fmt: skip

    class Scripted(GenericFakeChatModel):
        def bind_tools(self, *_: Any, **__: Any) -> Any:
            return self

    def says() -> Any:
        for turn, steps in enumerate(SCRIPT):
            for step, queries in enumerate(steps):
                calls = [
                    {"name": "search", "args": {"query": query}, "id": f"call_{turn}_{step}_{number}"}
                    for number, query in enumerate(queries)
                ]
                yield AIMessage("", tool_calls=calls)
            yield AIMessage("That is it.")

    search = create_retriever_tool(Corpus(), "search", "Searches.", response_format="content_and_artifact")
    agent = create_react_agent(Scripted(messages=says()), [search])
    messages: list[Any] = []
    states = []
    for turn, question in enumerate(QUESTIONS, start=1):
        metadata = {"session_id": "talk", "query_id": f"talk_{turn}"}
        config = {"metadata": metadata, "max_concurrency": 1}  # side by side, calls start in any order
        messages = agent.invoke({"messages": [*messages, HumanMessage(question)]}, config)["messages"]
        states.append({"messages": [message.model_dump() for message in messages], "config": config})
    save("langchain/model_dump.json", [message.model_dump() for message in messages])
    save("langchain/messages_to_dict.json", messages_to_dict(messages))
    save("langchain/dumps.json", dumps(messages))
    save("langchain/state.json", states[-1])
    save("langchain/states.jsonl", "\n".join(json.dumps(state) for state in states))
    save_spans(spans.get_finished_spans())


def save_spans(spans: Any) -> None:
    from google.protobuf.json_format import MessageToDict
    from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans

    readable = [json.loads(span.to_json()) for span in spans]
    save("openinference/readable_spans.jsonl.gz", "\n".join(map(json.dumps, readable)))
    otlp = MessageToDict(encode_spans(spans))  # ids in base64, as generic writers of protobuf have them
    save("openinference/otlp_base64.json.gz", otlp)
    text = json.dumps(otlp, indent=1)
    hexed = re.sub(
        r'("(?:traceId|spanId|parentSpanId)": )"([^"]+)"',
        lambda m: f'{m[1]}"{__import__("base64").b64decode(m[2]).hex()}"',
        text,
    )
    save("openinference/otlp.json.gz", hexed)
    flat = []
    for span in readable:
        attributes = span["attributes"]
        flat.append(
            {
                "id": span["context"]["span_id"], "name": span["name"],
                "context": {key: span["context"][key].removeprefix("0x") for key in ("trace_id", "span_id")},
                "span_kind": attributes["openinference.span.kind"], "status_code": span["status"]["status_code"],
                "parent_id": span["parent_id"] and span["parent_id"].removeprefix("0x"),
                "start_time": span["start_time"].replace("Z", "+00:00"), "attributes": attributes,
            }
        )  # fmt: skip
    save("openinference/phoenix.json.gz", {"data": flat})


def openai_chat() -> None:
    """Recorded exchanges: the history is sent again each time; one exchange is with another endpoint."""
    from openai.types.chat import ChatCompletion

    messages: list[dict[str, Any]] = []
    records: list[dict[str, Any]] = [{"uri": "/v1/embeddings", "request": {"input": "x"}, "response": {"data": []}}]
    for turn, steps in enumerate(SCRIPT):
        messages.append({"role": "user", "content": QUESTIONS[turn]})
        for step, queries in enumerate([*steps, None]):
            answer: dict[str, Any] = {
                "role": "assistant",
                "content": None if queries else "That is it.",
                "refusal": None,
            }
            if queries:
                answer["tool_calls"] = [
                    {
                        "id": f"call_{turn}_{step}_{number}", "type": "function",
                        "function": {"name": "web_search", "arguments": json.dumps({"query": query})},
                    }
                    for number, query in enumerate(queries)
                ]  # fmt: skip
            choice = {"index": 0, "finish_reason": "stop", "message": answer, "logprobs": None}
            completion = ChatCompletion.model_validate(
                {"id": f"c{turn}{step}", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}
            )
            record = {"uri": "/v1/chat/completions", "request": {"model": "m", "messages": list(messages)}}
            records.append({**record, "response": completion.model_dump(mode="json")})
            messages.append({key: value for key, value in answer.items() if key != "refusal"})
            for call, query in zip(answer.get("tool_calls", []), queries or [], strict=True):
                messages.append(
                    {"role": "tool", "tool_call_id": call["id"], "content": json.dumps({"results": found(query)})}
                )
    save("openai_chat/exchanges.json", records)
    save("openai_chat/fine_tuning.jsonl", json.dumps({"messages": messages}))


def haystack() -> None:
    from haystack.dataclasses import ChatMessage, ToolCall

    messages = []
    for turn, steps in enumerate(SCRIPT):
        messages.append(ChatMessage.from_user(QUESTIONS[turn]))
        for step, queries in enumerate(steps):
            calls = [ToolCall("search", {"query": query}, id=f"h{turn}{step}{n}") for n, query in enumerate(queries)]
            messages.append(ChatMessage.from_assistant(tool_calls=calls))
            for call in calls:
                result = json.dumps({"documents": found(call.arguments["query"])})
                messages.append(ChatMessage.from_tool(result, origin=call))
        messages.append(ChatMessage.from_assistant("That is it."))
    save("openai_chat/haystack.json", [message.to_dict() for message in messages])


def openai_responses() -> None:
    """A response of hosted tools: web searches with sources, a file search with results, a call of an MCP server."""
    from openai.types.responses import Response

    def thought(number: int) -> dict[str, Any]:
        return {"type": "reasoning", "id": f"rs_{number}", "summary": []}

    def web(number: int, query: str, *names: str) -> dict[str, Any]:
        sources = [{"type": "url", "url": f"https://pages.example.org/{name}"} for name in names]
        action = {"type": "search", "query": query, "queries": [query], "sources": sources}
        return {"type": "web_search_call", "id": f"ws_{number}", "status": "completed", "action": action}

    hits = [
        {"file_id": "file-1", "filename": "bm25.pdf", "score": 0.9, "text": "k1 and b"},
        {"file_id": "file-1", "filename": "bm25.pdf", "score": 0.8, "text": "IDF"},
        {"file_id": "file-2", "filename": "dcg.pdf", "score": 0.1, "text": "log2"},
    ]
    page = {"type": "open_page", "url": "https://pages.example.org/d1"}
    mcp = {
        "type": "mcp_call", "id": "mcp_1", "name": "search_pages", "server_label": "pages", "error": None,
        "arguments": '{"query": "idf"}', "output": json.dumps(found("idf")), "status": "completed",
    }  # fmt: skip
    text = {"type": "output_text", "text": "That is it.", "annotations": []}
    output = [
        thought(1), web(1, "DCG", "d3", "d1"), web(2, "learning to rank", "d4"),
        thought(2), {"type": "web_search_call", "id": "ws_3", "status": "completed", "action": page},
        thought(3),
        {"type": "file_search_call", "id": "fs_1", "queries": ["k1"], "status": "completed", "results": hits},
        thought(4), {"type": "mcp_list_tools", "id": "mcpl_1", "server_label": "pages", "tools": []}, mcp,
        {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [text]},
    ]  # fmt: skip
    response = {
        "id": "resp_1", "object": "response", "created_at": 1, "model": "m", "parallel_tool_calls": True,
        "tool_choice": "auto", "tools": [], "output": output,
    }  # fmt: skip
    save("openai_responses/hosted.json", Response.model_validate(response).model_dump(mode="json"))
    for item in output:
        if "action" in item:
            item["action"].pop("sources", None)
    save("openai_responses/not_recorded.json", Response.model_validate(response).model_dump(mode="json"))


def anthropic() -> None:
    """Server tools: two searches side by side, one after them, one that fails, and an answer that was paused."""
    from anthropic.types import Message

    def use(number: int, query: str) -> dict[str, Any]:
        return {"type": "server_tool_use", "id": f"srvtoolu_{number}", "name": "web_search", "input": {"query": query}}

    def result(number: int, *names: str) -> dict[str, Any]:
        content = [
            {
                "type": "web_search_result", "url": f"https://pages.example.org/{name}", "title": CORPUS[name][0],
                "encrypted_content": "x", "page_age": None,
            }
            for name in names
        ]  # fmt: skip
        return {"type": "web_search_tool_result", "tool_use_id": f"srvtoolu_{number}", "content": content}

    failed = {"type": "web_search_tool_result_error", "error_code": "max_uses_exceeded"}
    text = {"type": "text", "text": "That is it.", "citations": None}
    first = [use(1, "DCG"), use(2, "learning to rank"), result(1, "d3", "d1"), result(2, "d4"), use(3, "slow"),
             {**result(3), "content": failed}, use(4, "idf")]  # fmt: skip
    second = [result(4, "d2", "d1"), text]
    request = [{"role": "user", "content": QUESTIONS[1]}]
    records = []
    for number, (content, reason) in enumerate([(first, "pause_turn"), (second, "end_turn")]):
        message = Message.model_validate(
            {
                "id": f"msg_{number}", "type": "message", "role": "assistant", "model": "m", "content": content,
                "stop_reason": reason, "stop_sequence": None, "usage": {"input_tokens": 1, "output_tokens": 1},
            }
        )  # fmt: skip
        response = message.model_dump(mode="json", exclude_none=True)
        records.append({"uri": "/v1/messages", "request": {"messages": list(request)}, "response": response})
        request.append({"role": "assistant", "content": response["content"]})
    save("anthropic/server_tools.json", records)


def inspect_ai() -> None:
    """A log of two epochs of a sample: searches as Tavily's provider gives them, and one that failed."""
    from inspect_ai.log import EvalConfig, EvalDataset, EvalLog, EvalSample, EvalSpec, write_eval_log
    from inspect_ai.model import ChatMessageAssistant, ChatMessageTool, ChatMessageUser, ContentText
    from inspect_ai.tool import ToolCall, ToolCallError

    def tool(number: int, query: str) -> Any:
        citations = [
            {"type": "url", "url": one["url"], "title": one["title"], "cited_text": one["content"]}
            for one in found(query)
        ]
        content = [ContentText(text="An answer that is no result.", citations=citations)]
        return ChatMessageTool(content=content, tool_call_id=f"call_{number}", function="web_search")

    def call(number: int, query: str) -> Any:
        return ToolCall(id=f"call_{number}", function="web_search", arguments={"query": query})

    failed = ToolCallError("timeout", "time is up")
    messages = [
        ChatMessageUser(content=QUESTIONS[1]),
        ChatMessageAssistant(content="", tool_calls=[call(1, "DCG"), call(2, "learning to rank")]),
        tool(1, "DCG"), tool(2, "learning to rank"),
        ChatMessageAssistant(content="", tool_calls=[call(3, "slow")]),
        ChatMessageTool(content="", tool_call_id="call_3", function="web_search", error=failed),
        ChatMessageAssistant(content="", tool_calls=[call(4, "idf")]),
        tool(4, "idf"),
        ChatMessageAssistant(content="That is it."),
    ]  # fmt: skip
    spec = EvalSpec(
        created="2026-01-01T00:00:00+00:00", task="t", model="mock/model", dataset=EvalDataset(), config=EvalConfig()
    )
    samples = [EvalSample(id=7, epoch=epoch, input=QUESTIONS[1], target="", messages=messages) for epoch in (1, 2)]
    log = EvalLog(eval=spec, samples=samples)
    for name in ("log.json", "log.eval"):
        (HERE / "inspect_ai").mkdir(parents=True, exist_ok=True)
        write_eval_log(log, str(HERE / "inspect_ai" / name))


_SEARCH_R1 = """<|im_start|>system
You are a helpful assistant.<|im_end|>
<|im_start|>user
Call a search engine by <search> query </search>; it returns results between <information> and </information>.<|im_end|>
<|im_start|>assistant
<think>Hm.</think>
<search> bm25 </search>

<information>Doc 1(Title: "Okapi BM25") BM25 is a ranking function.
Doc 2(Title: "DCG (measure)") DCG measures ranking.</information>

<search> nothing </search>
<information>No results found.</information>

<search> idf </search>
<information>Doc 1(Title: "Okapi BM25") BM25 is a ranking function.</information>
<answer> a </answer>
<|im_start|>system
You are a helpful assistant.<|im_end|>
<|im_start|>user
Call a search engine by <search> query </search>.<|im_end|>
<|im_start|>assistant
<search> dcg </search>
<information>Doc 1(Title: "DCG (measure)") DCG measures ranking.</information>
<answer> b </answer>
"""


def without_libraries() -> None:
    """Formats that no library writes."""
    sys.path.insert(0, str(Path(__file__).parents[2]))
    from tests.traces.logs import WRITERS, Call, Story, Turn, conversation

    for name in ("browsecomp_plus", "tagged_text", "atif", "tau_bench", "jsonl"):
        write, file_name = WRITERS[name]
        save(f"{name}/{file_name}", write(conversation()))
    save("tagged_text/search_r1.txt", _SEARCH_R1)
    parts = "".join(json.dumps({"docid": number, "snippet": f"---\ntitle: T{number}\n---\nText."}) for number in (7, 8))
    save("browsecomp_plus/mcp_parts.json", WRITERS["browsecomp_plus"][0](Story([Turn([[Call(parts)]])])))


if __name__ == "__main__":
    for make in (
        langchain_and_spans, openai_chat, haystack, openai_responses, anthropic, inspect_ai, without_libraries
    ):  # fmt: skip
        make()
