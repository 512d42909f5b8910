"""What single formats of agents' programs and frameworks do that others do not."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import goodgain as gg
from goodgain.errors import GoodgainNotice, InputError
from goodgain.logs.traces import Summary, formats, read_traces
from tests.support.seconds import find_faster_growth, measure_seconds

from .conftest import by_iteration
from .logs import claude_code, docs, openai_chat
from .story import Call, Story, Turn, conversation

Json = Any

_USER = {"role": "user", "content": "What?"}
_SHARED = Path(__file__).parents[3].parent / "shared" / "traces" / "turn4"


# Messages in wrappers, and one a line


@pytest.mark.slow
def test_messages_one_a_line_are_one_conversation(save: Callable[..., Path]) -> None:
    path = save(json.loads(openai_chat(Story([Turn([[Call(docs("d1"))]])]))), "log.jsonl")
    assert read_traces(path).select("query_id", "doc_id").rows() == [("log", "d1")]
    assert read_traces(path, jobs=2).equals(read_traces(path))


# OpenAI Agents


def test_agents_tables_may_have_any_name_and_other_databases_are_refused(tmp_path: Path) -> None:
    items = [_USER, {"type": "function_call", "call_id": "c1", "name": "search", "arguments": "{}"},
             {"type": "function_call_output", "call_id": "c1", "output": json.dumps(docs("d1"))}]  # fmt: skip
    path = tmp_path / "x.db"
    with closing(sqlite3.connect(path)) as database, database:
        database.execute('CREATE TABLE "my ""own" (id INTEGER PRIMARY KEY, session_id TEXT, message_data TEXT)')
        rows = [(7, json.dumps(item)) for item in items]
        database.executemany('INSERT INTO "my ""own" (session_id, message_data) VALUES (?, ?)', rows)

    assert read_traces(path).select("query_id", "doc_id").rows() == [("7", "d1")]
    assert not list(tmp_path.glob("x.db-*"))
    other = tmp_path / "y.db"
    with closing(sqlite3.connect(other)) as database, database:
        database.execute("CREATE TABLE t (a TEXT)")
    with pytest.raises(InputError, match="it looks like an SQLite database"):
        read_traces(other)
    with pytest.raises(InputError, match="expected one table with the columns message_data, session_id, found none"):
        read_traces(other, format="openai_agents")


# Strands


def test_strands_a_session_s_folder_is_read_in_the_order_of_its_numbers(tmp_path: Path) -> None:
    folder = tmp_path / "session_s7" / "agents" / "agent_a" / "messages"
    folder.mkdir(parents=True)
    (tmp_path / "session_s7" / "session.json").write_text("{}")
    messages: list[Json] = [{"role": "user", "content": [{"text": "?"}]}]
    for number in range(6):  # message_10 comes after message_9
        messages.append({"role": "assistant", "content": [{"toolUse": {"toolUseId": f"t{number}", "name": "search"}}]})
        result = {"toolUseId": f"t{number}", "content": [{"json": docs(f"d{number}")}]}
        messages.append({"role": "user", "content": [{"toolResult": result}]})

    for number, message in enumerate(messages):
        record = {"message": message, "message_id": number, "redact_message": None}
        (folder / f"message_{number}.json").write_text(json.dumps(record))
    for path in (tmp_path / "session_s7", tmp_path, folder, folder / "message_3.json"):
        results = read_traces(path)
        assert by_iteration(results, "s7") == [[f"d{number}"] for number in range(6)]
        assert set(results["system"]) == {"a"}


# Gemini


@pytest.mark.skipif(not _SHARED.is_dir(), reason=f"the samples are not beside the checkout ({_SHARED})")
def test_the_sample_of_gemini_has_one_search_with_one_result() -> None:
    assert [len(found) for found in by_iteration(read_traces(_SHARED / "gemini_contents_response.json"))] == [1]


# Spans


def test_a_table_that_no_format_claims_is_refused_with_what_it_looks_like(tmp_path: Path) -> None:
    pl.DataFrame({"a": [1], "b": ["x"]}).write_parquet(tmp_path / "t.parquet")
    with pytest.raises(InputError, match="it looks like a table with the columns a, b"):
        read_traces(tmp_path / "t.parquet")


def _server(number: int, trace: int, name: str = "GET /health", parent: int | None = None, **attributes: Json) -> Json:
    """A span of a web server, as its instrumentation writes it: it says nothing of agents."""
    context = {"trace_id": f"{trace:032x}", "span_id": f"{number:016x}"}
    times = {"start_time": 10**18 + 10 * number, "end_time": 10**18 + 10 * number + 5}
    given = {"http.request.method": "GET", "url.path": "/health", **attributes}
    return {"name": name, "context": context, "parent_id": parent and f"{parent:016x}", **times, "kind": "SpanKind.SERVER",
            "attributes": given}  # fmt: skip


def _agent_spans(trace: int, name: str, first: int, parent: int | None = None, **attributes: Json) -> list[Json]:
    """An agent that searched once."""
    found = json.dumps(docs(name))
    return [
        _server(first, trace, "agent", parent, **{"openinference.span.kind": "AGENT"}, **attributes),
        _server(first + 1, trace, "search", first, **{"openinference.span.kind": "TOOL", "output.value": found}),
    ]


@pytest.mark.parametrize("in_otlp", [False, True])
def test_a_file_of_spans_of_no_known_kind_is_refused_with_what_it_holds(
    save: Callable[..., Path], in_otlp: bool
) -> None:
    spans: Json = [_server(1, 1), _server(2, 2), _server(3, 3, "POST /chat"), _server(4, 3, "SELECT", 3)]
    if in_otlp:
        named = [
            {"traceId": span["context"]["trace_id"], "spanId": span["context"]["span_id"], "name": span["name"], "attributes": [],
             "startTimeUnixNano": str(span["start_time"])}
            for span in spans
        ]  # fmt: skip
        spans = {"resourceSpans": [{"scopeSpans": [{"spans": named}]}]}

    path = save(spans)
    with pytest.raises(
        InputError, match=r"log\.json: none of its 4 spans is of a known kind .*'GET /health' 2, 'POST /chat' 1"
    ):
        read_traces(path)

    good = save(_agent_spans(1, "d1", 1), "good.json")
    with pytest.warns(GoodgainNotice, match="1 trace or file was left out"):
        assert by_iteration(read_traces([path, good], errors="skip")) == [["d1"]]


# Monocle


def _monocle(
    kind: str, number: int, parent: int | None = None, given: Json = None, output: Json = None, **more: Json
) -> Json:
    events = [
        {"name": f"data.{name}", "attributes": {key: value}}
        for name, key, value in (("input", "input", given), ("output", "response", output))
        if value is not None
    ]
    marks = {"monocle_apptrace.version": "0.8.0", "workflow.name": "w", "span.type": kind}
    record = _server(number, 1, kind, parent)
    return {**record, "attributes": {**marks, **more}, "events": events}


def _mlflow(name: str, number: int, kind: str = "UNKNOWN", output: Json = None) -> Json:
    given = {"mlflow.spanType": json.dumps(kind), "mlflow.spanOutputs": json.dumps(output)}
    return {**_server(number, 1, name, 1 if number > 1 else None), "attributes": given}


def _langfuse(name: str, number: int, kind: str = "SPAN", output: Json = None) -> Json:
    given = {"langfuse.observation.type": kind.lower(), "langfuse.observation.output": json.dumps(output)}
    return {**_server(number, 1, name, 1 if number > 1 else None), "attributes": given}


def _monocle_custom(name: str, number: int, kind: str = "custom", output: Json = None) -> Json:
    said = None if output is None else json.dumps(output)
    entity = {"entity.1.type": "function", "entity.1.name": "agent.py"}
    span = _monocle(
        "agentic.invocation" if kind == "CHAIN" else kind, number, 1 if number > 1 else None, "q", said, **entity
    )
    return {**span, "name": name}


@pytest.mark.filterwarnings("ignore:.*list of results in the output of the span 'lookup'")
@pytest.mark.filterwarnings("ignore:2 searches are in traces without a model's span")
@pytest.mark.parametrize("span", [_mlflow, _langfuse, _monocle_custom])
def test_spans_of_a_kind_that_says_nothing_are_searches_as_the_user_says(
    save: Callable[..., Path], span: Callable[..., Json]
) -> None:
    spans = [span("agent", 1, "CHAIN"), span("lookup", 2, output=docs("d1")), span("web_search", 3, output=docs("d2"))]
    path = save(spans)
    assert by_iteration(read_traces(path)) == [["d2"]]
    assert by_iteration(read_traces(path, tools=["lookup"])) == [["d1"]]
    assert by_iteration(read_traces(path, tools=lambda name: name == "agent", unrecorded="skip")) == []
    assert by_iteration(read_traces(path, tools=["lookup", "web_search"])) == [["d1", "d2"]]


# All


@pytest.mark.parametrize("form", sorted(formats()))
@pytest.mark.parametrize(
    "log", ["[" * 998 + "]" * 998, '{"data":[' * 498 + "]}" * 498, '{"traces":[' * 498 + "]}" * 498]
)
def test_logs_nested_a_thousand_deep_are_an_error_and_no_crash(save: Callable[..., Path], form: str, log: str) -> None:
    with pytest.raises(InputError, match=r"log\.json"):
        read_traces(save(log), format=form)


def test_a_folder_of_many_formats_is_read_and_the_summary_counts_each(tmp_path: Path) -> None:
    from .logs import WRITERS

    for name in ("claude_code", "gemini", "mcp", "autogen", "langsmith"):
        writer, file_name = WRITERS[name]
        story = Story([Turn([[Call(docs(name))]])]) if name == "mcp" else conversation()
        (tmp_path / f"{name}{Path(file_name).suffix}").write_text(writer(story))
    seen: list[Summary] = []
    with pytest.warns(GoodgainNotice, match="was ignored for"):
        read_traces(tmp_path, report=seen.append, query_id=lambda trace: trace.at, iteration="step")
    assert dict(seen[0].formats) == dict.fromkeys(("claude_code", "gemini", "mcp", "autogen", "langsmith"), 1)
    assert "traces by format: " in str(seen[0])


@pytest.mark.slow
def test_claude_code_takes_time_by_the_number_of_sessions_in_a_file_and_not_by_its_square(tmp_path: Path) -> None:
    session = claude_code(conversation())
    names = ("uuid-", "msg_", "call_", '"story"')

    def measure(count: int) -> float:
        path = tmp_path / "sessions.jsonl"
        with path.open("w") as file:
            for number in range(count):
                text = session
                for name in names:
                    text = text.replace(name, f"{name[:-1]}{number}{name[-1]}")
                file.write(text)
        return measure_seconds(lambda: read_traces(path, format="claude_code", iteration="step", unrecorded="empty"))

    assert not find_faster_growth(measure, 50)


# tau-bench


def test_the_text_of_a_task_comes_after_the_greeting_of_the_agent(save: Callable[..., Path], tmp_path: Path) -> None:
    results = "1. On dunes\n   ID: d1\n   Score: 2.5000\n   Content: Sand.\n"
    call = {"id": "a", "name": "KB_search", "arguments": {"query": "sand"}, "requestor": "assistant"}
    spoken = [("assistant", "How can I help?"), ("user", "Tell me of dunes."), ("assistant", None), ("user", "Thanks.")]
    messages: list[Json] = [{"role": role, "content": text} for role, text in spoken]
    messages[2]["tool_calls"] = [call]
    messages.insert(3, {"id": "a", "role": "tool", "content": results})
    path = save({"simulations": [{"task_id": "t", "trial": 0, "messages": messages}]})
    gg.convert_traces(path, tmp_path / "run.parquet", queries=tmp_path / "queries.parquet")

    assert pl.read_parquet(tmp_path / "run.parquet").select("query_id", "iteration", "doc_id").rows() == [
        ("t", 1, "d1")
    ]
    assert pl.read_parquet(tmp_path / "queries.parquet").select("query_id", "text").rows() == [
        ("t", "Tell me of dunes.")
    ]


def test_a_file_without_messages_of_json_rpc_is_refused_before_all_of_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text('{"query_id": "q"}\n' * 20_000)
    with pytest.raises(gg.InputError, match="none of the first 10,000 records is a message of JSON-RPC"):
        gg.read_traces(path, format="mcp")
