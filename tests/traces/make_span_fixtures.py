"""Writes the fixtures of tools for tracing, with the real libraries where they write the log themselves.

    python tests/traces/make_span_fixtures.py [name of a format ...]

It needs langsmith, langchain-core, mlflow-skinny and polars. What the fixtures hold stands in `expected.py`.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.traces.make_fixtures import HERE, QUESTIONS, found, save
from tests.traces.make_more_fixtures import jsonl, pages
from tests.traces.span_logs import SPAN_WRITERS
from tests.traces.story import conversation


def langfuse() -> None:
    """A session of two traces; and observations as a blob export has them, with spans of an old version."""
    write, file_name = SPAN_WRITERS["langfuse"]
    save(f"langfuse/{file_name}", write(conversation()))
    rows: list[dict[str, Any]] = []

    def row(number: int, kind: str, name: str, parent: str, output: Any, **fields: Any) -> None:
        rows.append(
            {
                "id": f"o{number}", "trace_id": "t", "type": kind, "name": name, "parent_observation_id": parent,
                "start_time": f"2026-01-01 00:00:{number:02d}.000000+00:00", "input": '{"query": "q"}', "output": output,
                "metadata": '{"query_id": "q7"}', "level": "DEFAULT", **fields,
            }
        )  # fmt: skip

    documents = [{"page_content": one["content"], "metadata": {"source": one["url"]}} for one in found("idf")]
    row(1, "SPAN", "agent", "", None)
    row(2, "GENERATION", "llm", "o1", json.dumps({"role": "assistant"}))
    row(3, "SPAN", "search_step", "o1", json.dumps("done"))  # a step with a tool below it: no search by its name
    row(4, "SPAN", "web_search", "o3", json.dumps(json.dumps({"results": pages("DCG")})))
    row(5, "RETRIEVER", "notes", "o3", json.dumps(documents))
    row(6, "GENERATION", "llm", "o1", None)
    row(7, "EVENT", "note", "o1", None)
    row(8, "TOOL", "web_search", "o1", "", level="ERROR", status_message="time is up")
    save("langfuse/observations.jsonl", jsonl(rows[::-1]))


def langsmith() -> None:
    """A chain with a tool and a retriever as LangChain's tracer records it, as a tree; and its runs one a line."""
    from langchain_core.documents import Document
    from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
    from langchain_core.messages import AIMessage
    from langchain_core.retrievers import BaseRetriever
    from langchain_core.runnables import RunnableLambda
    from langchain_core.tools import tool
    from langchain_core.tracers.run_collector import RunCollectorCallbackHandler
    from langsmith._internal._serde import dumps_json

    class Corpus(BaseRetriever):
        def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
            return [
                Document(id=one["id"], page_content=one["content"], metadata={"source": one["url"]})
                for one in found(query)
            ]

    @tool
    def web_search(query: str) -> str:
        """Searches."""
        if query == "slow":
            raise ValueError("time is up")
        return json.dumps(pages(query))

    def calls(*queries: str) -> list[dict[str, Any]]:
        return [{"name": "web_search", "args": {"query": q}, "id": f"c-{q}", "type": "tool_call"} for q in queries]

    script = [AIMessage("", tool_calls=calls("DCG")), AIMessage("", tool_calls=calls("slow", "idf")), AIMessage("So.")]
    model = GenericFakeChatModel(messages=iter(script))

    def agent(question: str, config: Any) -> str:
        while (answer := model.invoke(question, config)).tool_calls:
            for call in answer.tool_calls:
                try:
                    web_search.invoke(call, config)
                except ValueError:
                    continue
        Corpus().invoke("idf", config)
        return "That is it."

    collector = RunCollectorCallbackHandler()
    metadata = {"thread_id": "talk", "query_id": "q7"}
    RunnableLambda(agent, name="agent").invoke(QUESTIONS[1], {"callbacks": [collector], "metadata": metadata})

    def to_dict(run: Any) -> dict[str, Any]:
        kept = ("id", "name", "run_type", "start_time", "end_time", "inputs", "outputs", "error", "parent_run_id",
                "trace_id", "dotted_order", "tags", "extra")  # fmt: skip
        record = json.loads(dumps_json({key: getattr(run, key) for key in kept}))
        record["extra"] = {"metadata": record["extra"]["metadata"]}
        return {**record, "child_runs": [to_dict(child) for child in run.child_runs]}

    (root,) = map(to_dict, collector.traced_runs)
    save("langsmith/tree.json", [root])
    flat = [{key: value for key, value in run.items() if key != "child_runs"} for run in (root, *root["child_runs"])]
    begun = [{key: value for key, value in run.items() if key not in ("outputs", "end_time")} for run in flat]
    save("langsmith/runs.jsonl", jsonl([*flat[::-1], *begun]))  # the records of starts and ends


def mlflow() -> None:
    """A trace as MLflow writes it, with a retriever, a tool and one that fails."""
    import mlflow
    from mlflow.entities import SpanType

    write, file_name = SPAN_WRITERS["mlflow"]
    save(f"mlflow/{file_name}", write(conversation()))
    os.environ["MLFLOW_ALLOW_FILE_STORE"] = "true"
    mlflow.set_tracking_uri(f"file://{tempfile.mkdtemp()}")
    mlflow.set_experiment("fixtures")

    @mlflow.trace(span_type=SpanType.CHAT_MODEL)
    def model(messages: Any) -> Any:
        return {"choices": []}

    @mlflow.trace(span_type=SpanType.RETRIEVER)
    def retrieve(query: str) -> Any:
        return [
            {"page_content": one["content"], "metadata": {"doc_uri": one["url"]}, "id": one["id"]}
            for one in found(query)
        ]

    @mlflow.trace(span_type=SpanType.TOOL)
    def web_search(query: str) -> Any:
        if query == "slow":
            raise ValueError("time is up")
        return pages(query)

    @mlflow.trace(span_type=SpanType.AGENT)
    def agent(question: str) -> str:
        mlflow.update_current_trace(tags={"query_id": "q7"}, metadata={"mlflow.trace.session": "talk"})
        model([question])
        web_search("DCG")
        retrieve("learning to rank")
        model([question])
        try:
            web_search("slow")
        except ValueError:
            model([question])
        return "That is it."

    agent(QUESTIONS[1])
    mlflow.flush_trace_async_logging()
    save("mlflow/trace.json", mlflow.get_trace(mlflow.get_last_active_trace_id()).to_json())


def phoenix() -> None:
    """A table of Phoenix as `get_spans_dataframe()` gives it, saved as Parquet."""
    import polars as pl

    def documents(query: str) -> list[dict[str, Any]]:
        return [
            {
                "document.id": one["id"],
                "document.content": one["content"],
                "document.metadata": {"url": one["url"]},
            }
            for one in found(query)
        ]

    rows = []
    for number, (kind, fields) in enumerate(
        [
            ("CHAIN", {"session.id": "talk", "metadata": {"query_id": "q7"}, "input.value": QUESTIONS[1]}),
            ("LLM", {}), ("RETRIEVER", {"retrieval.documents": documents("DCG")}), ("LLM", {}),
            ("TOOL", {"tool.name": "web_search", "output.value": json.dumps(pages("idf"))}),
            ("TOOL", {"tool.name": "web_search", "failed": True}),
        ],
        start=1,
    ):  # fmt: skip
        rows.append(
            {
                "context.span_id": f"{number:016x}", "context.trace_id": "c" * 32, "name": kind.lower(), "span_kind": kind,
                "parent_id": None if number == 1 else f"{1:016x}", "start_time": number * 1_000_000,
                "status_code": "ERROR" if fields.pop("failed", False) else "OK",
                **{f"attributes.{key}": value for key, value in fields.items()},
            }
        )  # fmt: skip
    moment = pl.from_epoch("start_time", time_unit="us").dt.replace_time_zone("UTC") + pl.duration(days=20_000)
    frame = pl.DataFrame(rows, infer_schema_length=None).with_columns(moment)
    (HERE / "openinference").mkdir(exist_ok=True)
    frame.write_parquet(HERE / "openinference" / "phoenix.parquet")


def traceloop() -> None:
    """Spans of OpenLLMetry: a LangChain tool, a decorated function, a retriever with a vector store below it."""
    spans: list[dict[str, Any]] = []

    def span(name: str, parent: int | None, attributes: dict[str, Any]) -> None:
        number = len(spans) + 1
        pairs = [
            {"key": key, "value": {"stringValue": value if isinstance(value, str) else json.dumps(value)}}
            for key, value in attributes.items()
        ]
        record = {"traceId": "e" * 32, "spanId": f"{number:016x}", "name": name, "attributes": pairs, "status": {}}
        times = {"startTimeUnixNano": str(10**18 + number), "endTimeUnixNano": str(10**18 + 99)}
        spans.append({**record, **times, "parentSpanId": f"{parent:016x}" if parent else ""})

    def entity(kind: str, name: str, given: Any, output: Any) -> dict[str, Any]:
        return {f"traceloop.{key}": value for key, value in (
            ("span.kind", kind), ("entity.name", name), ("entity.input", given), ("entity.output", output))}  # fmt: skip

    ids = {"traceloop.association.properties.query_id": "q7", "traceloop.association.properties.session_id": "talk"}
    span("agent.workflow", None, {**entity("workflow", "agent", {"args": [QUESTIONS[1]], "kwargs": {}}, "So."), **ids})
    span("openai.chat", 1, {"gen_ai.operation.name": "chat"})
    message = {"content": json.dumps(pages("DCG")), "type": "tool", "tool_call_id": "c1", "status": "success"}
    made = {"lc": 1, "type": "constructor", "id": ["langchain", "schema", "messages", "ToolMessage"], "kwargs": message}
    given = {"input_str": "{'query': 'DCG'}", "inputs": {"query": "DCG"}, "kwargs": {}}
    span("web_search.tool", 1, entity("tool", "web_search", given, {"output": made, "kwargs": {}}))
    span("openai.chat", 1, {"gen_ai.operation.name": "chat"})
    span("search_docs.tool", 1, entity("tool", "search_docs", {"args": ["x"], "kwargs": {}}, pages("learning to rank")))
    documents = [{"page_content": one["content"], "metadata": {"source": one["url"]}} for one in found("idf")]
    retrieved = entity("task", "Retriever", {"query": "idf"}, {"documents": documents, "count": 2})
    span("vector_db_retrieve Retriever", 1, {**retrieved, "gen_ai.operation.name": "vector_db_retrieve"})
    span("chroma.query", 6, {"db.system": "chroma", "db.vector.query.top_k": "2"})
    save("openinference/traceloop.json", {"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]})


def monocle() -> None:
    """A file as Monocle writes it: two turns of a session, with MCP below a tool."""
    spans: list[dict[str, Any]] = []

    def span(turn: int, kind: str, parent: int | None, given: Any = None, output: Any = None, **attributes: Any) -> int:
        number = len(spans) + 1
        events = [
            {"name": f"data.{name}", "timestamp": "2026-01-01T00:00:00.000000Z", "attributes": {key: value}}
            for name, key, value in (("input", "input", given), ("output", "response", output))
            if value is not None
        ]
        if kind.startswith("inference"):
            tokens = {"prompt_tokens": 9, "completion_tokens": 4, "total_tokens": 13, "finish_type": "success"}
            events.append({"name": "metadata", "timestamp": "2026-01-01T00:00:00.000000Z", "attributes": tokens})
        failed = attributes.pop("failed", False)
        scopes = {"scope.agentic.session": "talk", "scope.agentic.turn": f"turn{turn}"}
        named = {f"entity.{at}.{key}": value for at, entity in enumerate(attributes.pop("entities", ()), start=1)
                 for key, value in zip(("type", "name"), entity, strict=True)}  # fmt: skip
        spans.append(
            {
                "name": kind if kind == "workflow" else f"framework.{kind}",
                "context": {"trace_id": f"0x{turn:032x}", "span_id": f"0x{number:016x}", "trace_state": "[]"},
                "kind": "SpanKind.INTERNAL", "parent_id": parent and f"0x{parent:016x}",
                "start_time": f"2026-01-01T00:00:{number:02d}.000000Z", "end_time": f"2026-01-01T00:00:{number:02d}.500000Z",
                "status": {"status_code": "ERROR" if failed else "OK"},
                "attributes": {
                    "monocle_apptrace.version": "0.8.0", "monocle_apptrace.language": "python", "span_source": "agent.py:1",
                    "workflow.name": "agent", "span.type": kind, **named, **scopes, **attributes,
                },
                "events": events, "links": [], "resource": {"attributes": {"service.name": "agent"}, "schema_url": ""},
            }
        )  # fmt: skip
        return number

    def tool(turn: int, parent: int, query: str, output: Any, **fields: Any) -> int:
        entities = [("tool.langgraph", "web_search"), ("agent.langgraph", "agent")]
        return span(
            turn, "agentic.tool.invocation", parent, json.dumps({"query": query}), output, entities=entities, **fields
        )

    def model(turn: int, parent: int, calls: str = "") -> None:
        said = [json.dumps({"system": "You search."}), json.dumps({"human": QUESTIONS[turn - 1]})]
        entities = [
            ("inference.openai", "openai"),
            ("model.llm.gpt", "gpt"),
            *([("tool.function", calls)] if calls else []),
        ]
        number = span(turn, "inference.framework", parent, said, json.dumps({"ai": "So."}), entities=entities)
        span(turn, "inference.modelapi", number)

    for turn, question in enumerate(QUESTIONS, start=1):
        top = span(turn, "workflow", None, entities=[("workflow.langgraph", "agent")])
        begun = span(turn, "agentic.turn", top, [question], "So.", entities=[("agent.langgraph", "agent")])
        agent = span(turn, "agentic.invocation", begun, [question], "So.", entities=[("agent.langgraph", "agent")])
        span(turn, "generic", agent)
        model(turn, agent, "web_search")
        if turn == 1:
            tool(turn, agent, "ranking function", json.dumps(pages("ranking function")))
            continue
        outer = tool(turn, agent, "DCG", json.dumps(pages("DCG")))
        span(turn, "agentic.mcp.invocation", outer, [json.dumps({"query": "DCG"})], json.dumps(pages("DCG")),
             entities=[("mcp.server", "web_search")])  # fmt: skip
        documents = [{"content": one["content"], "source": one["url"]} for one in found("learning to rank")]
        answer = json.dumps({"retrieved_references": documents, "session_id": "s"})
        entities = [("vectorstore.knowledge_base", "knowledge_base")]
        span(turn, "retrieval", agent, [json.dumps("learning to rank")], answer, entities=entities)
        model(turn, agent, "web_search")
        tool(turn, agent, "slow", None, failed=True)
        model(turn, agent, "web_search")
        tool(turn, agent, "idf", str(pages("idf")))  # as Python prints it
        model(turn, agent)
    save("openinference/monocle.json", spans)


MAKERS = {make.__name__: make for make in (langfuse, langsmith, mlflow, phoenix, traceloop, monocle)}

if __name__ == "__main__":
    for name in sys.argv[1:] or MAKERS:
        MAKERS[name]()
