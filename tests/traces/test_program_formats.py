"""What single formats of agents' programs and frameworks do that others do not."""

# ruff: noqa: E501  # logs are easier to read an item a line

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from goodgain.errors import GoodgainNotice, InputError
from goodgain.traces import Summary, formats, read_traces
from tests.support.seconds import find_faster_growth, measure_seconds

from .conftest import by_iteration
from .logs import docs
from .more_logs import claude_code
from .story import Call, Story, Turn, conversation

Json = Any

_USER = {"role": "user", "content": "What?"}
_PAGE = {"url": "https://a.example", "title": "A"}
FIXTURES = Path(__file__).parent / "fixtures"


@pytest.fixture
def save(tmp_path: Path) -> Callable[..., Path]:
    """Writes a value as JSON, a list of values as JSON Lines, or text, under a name."""

    def write(value: Json, name: str = "log.json") -> Path:
        path = tmp_path / name
        if isinstance(value, list) and name.endswith(".jsonl"):
            value = "\n".join(map(json.dumps, value))
        path.write_text(value if isinstance(value, str) else json.dumps(value))
        return path

    return write


# Claude Code


def _line(uuid: str, parent: str | None, kind: str, content: Json, message_id: str = "", **fields: Json) -> Json:
    message = {"role": kind, "content": content} | ({"id": message_id} if message_id else {})
    return {"uuid": uuid, "parentUuid": parent, "sessionId": "s", "type": kind, "message": message, **fields}


def _use(call_id: str, name: str = "WebSearch") -> list[Json]:
    return [{"type": "tool_use", "id": call_id, "name": name, "input": {"query": "q"}}]


def _answer(call_id: str, *urls: str) -> Json:
    links = json.dumps([{"title": "T", "url": url} for url in urls])
    text = f'Web search results for query: "q"\n\nLinks: {links}\n\nSee [x](https://x.example).'
    return [{"type": "tool_result", "tool_use_id": call_id, "content": text}]


def test_claude_code_a_line_whose_parent_is_not_in_the_log_follows_the_line_before_with_a_notice(
    save: Callable[..., Path],
) -> None:
    lines = [_line("u1", None, "user", "?"), _line("u2", "u1", "assistant", _use("c1"), "m1"),
             _line("u3", "u2", "user", _answer("c1", "u:1")), _line("u5", "u4", "assistant", _use("c2"), "m2"),
             _line("u6", "u5", "user", _answer("c2", "u:2"))]  # fmt: skip
    with pytest.warns(GoodgainNotice, match="whose parentUuid is missing or names no line"):
        assert by_iteration(read_traces(save(lines, "log.jsonl"))) == [["u:1"], ["u:2"]]


def test_claude_code_the_last_line_alone_is_refused(save: Callable[..., Path]) -> None:
    result = {"type": "result", "subtype": "success", "session_id": "s", "num_turns": 3, "result": "So."}
    with pytest.raises(InputError, match="--output-format stream-json --verbose"):
        read_traces(save(result))


def test_claude_code_the_lines_of_a_subagent_alone_are_a_system_of_its_own(save: Callable[..., Path]) -> None:
    side = {"isSidechain": True, "agentId": "a1"}
    lines = [_line("u1", None, "user", "look", **side), _line("u2", "u1", "assistant", _use("c1"), "m1", **side),
             _line("u3", "u2", "user", _answer("c1", "u:1"), **side)]  # fmt: skip
    results = read_traces(save(lines, "agent-a1.jsonl"))
    assert results.select("query_id", "system", "url").rows() == [("s", "subagent a1", "u:1")]
    main = [_line("m1", None, "user", "?"), _line("m2", "m1", "assistant", [{"type": "text", "text": "So."}], "m")]
    with pytest.raises(InputError, match=r"line 4: search of a subagent .* no search was found"):
        read_traces(save([*main, *lines], "session.jsonl"))


def test_claude_code_a_call_that_went_on_in_the_background_is_unrecorded(save: Callable[..., Path]) -> None:
    detached = {"toolUseResult": {"detachedToolCall": True}}
    lines = [_line("u1", None, "user", "?"), _line("u2", "u1", "assistant", _use("c1"), "m1"),
             _line("u3", "u2", "user", [{"type": "tool_result", "tool_use_id": "c1", "content": "ok"}], **detached)]  # fmt: skip
    with pytest.raises(InputError, match="continued in the background"):
        read_traces(save(lines, "log.jsonl"))


# Vercel AI SDK


def _ui(*parts: Json) -> list[Json]:
    return [{"role": "user", "parts": [{"type": "text", "text": "?"}]}, {"role": "assistant", "parts": list(parts)}]


def test_vercel_hosted_searches_count_by_what_they_did(save: Callable[..., Path]) -> None:
    def hosted(number: int, kind: str, **output: Json) -> Json:
        call = {"type": "tool-web_search", "toolCallId": f"c{number}", "state": "output-available", "input": {}}
        return {**call, "providerExecuted": True, "output": {"action": {"type": kind}, **output}}

    sources = [{"type": "url", "url": "u:1"}, {"type": "api", "name": "weather"}]
    log = _ui(hosted(1, "search", sources=sources), hosted(2, "openPage"))
    assert by_iteration(read_traces(save(log))) == [["u:1", "weather"]]
    cited = {"type": "source-url", "sourceId": "s", "url": "u:2", "title": "T"}
    path = save(_ui(hosted(1, "search"), cited))
    with pytest.raises(InputError, match="citations=True"):
        read_traces(path)
    assert by_iteration(read_traces(path, citations=True)) == [["u:2"]]
    assert by_iteration(read_traces(save(_ui(cited, {"type": "text", "text": "So."})), citations=True)) == [["u:2"]]


@pytest.mark.parametrize(("state", "searched"), [("output-denied", False), ("input-available", True)])
def test_vercel_a_denied_call_was_not_run_and_an_open_one_is_unrecorded(
    save: Callable[..., Path], state: str, searched: bool
) -> None:
    call = {"type": "dynamic-tool", "toolName": "search", "toolCallId": "c1", "state": state, "input": {}}
    results = read_traces(save(_ui(call)), unrecorded="empty")
    assert results["iteration"].to_list() == [1 if searched else 0]


# Messages in wrappers, and one a line


def _chat(name: str) -> list[Json]:
    call = {"id": "c1", "type": "function", "function": {"name": "search", "arguments": "{}"}}
    answer = {"role": "tool", "tool_call_id": "c1", "content": json.dumps(docs(name))}
    return [_USER, {"role": "assistant", "content": None, "tool_calls": [call]}, answer]


@pytest.mark.parametrize("key", ["traj", "history", "completion", "message_history", "conversation", "rollout"])
def test_messages_are_found_under_the_keys_that_logs_keep_them_in(save: Callable[..., Path], key: str) -> None:
    path = save([{"note": 1, key: _chat("d1")}, {"note": 2, key: _chat("d2")}], "log.jsonl")
    results = read_traces(path)
    assert [by_iteration(results, name) for name in ("log-1", "log-2")] == [[["d1"]], [["d2"]]]


def test_a_prompt_beside_a_completion_comes_before_it(save: Callable[..., Path]) -> None:
    prompt, completion = _chat("d1"), [_USER, {"role": "assistant", "content": "So."}]
    results = read_traces(save({"prompt": prompt, "completion": completion}), turns="all")
    assert [by_iteration(results, f"log_{turn}") for turn in (1, 2)] == [[["d1"]], []]


def test_messages_one_a_line_are_one_conversation(save: Callable[..., Path]) -> None:
    path = save(_chat("d1"), "log.jsonl")
    assert read_traces(path).select("query_id", "doc_id").rows() == [("log", "d1")]
    assert read_traces(path, jobs=2).equals(read_traces(path))


def test_sharegpt_speakers_are_roles(save: Callable[..., Path]) -> None:
    turns = [
        {"from": "human", "value": "?"},
        {"from": "gpt", "value": '<tool_call>{"name": "search", "arguments": {}}</tool_call>'},
        {"from": "observation", "value": f"<tool_response>{json.dumps(docs('d1'))}</tool_response>"},
        {"from": "gpt", "value": "So."},
    ]
    assert by_iteration(read_traces(save({"conversations": turns}))) == [["d1"]]


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


# Spans


def test_phoenix_tables_as_csv_are_refused_with_what_to_do(save: Callable[..., Path]) -> None:
    text = "name,span_kind,context.span_id,context.trace_id\nagent,AGENT,01,02\n"
    with pytest.raises(InputError, match=r"as CSV, .*save it as Parquet"):
        read_traces(save(text, "spans.csv"))


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
            {"traceId": one["context"]["trace_id"], "spanId": one["context"]["span_id"], "name": one["name"], "attributes": [],
             "startTimeUnixNano": str(one["start_time"])}
            for one in spans
        ]  # fmt: skip
        spans = {"resourceSpans": [{"scopeSpans": [{"spans": named}]}]}
    path = save(spans)
    with pytest.raises(
        InputError, match=r"log\.json: none of its 4 spans is of a known kind .*'GET /health' 2, 'POST /chat' 1"
    ):
        read_traces(path)
    good = save(_agent_spans(1, "d1", 1), "good.json")
    with pytest.warns(GoodgainNotice, match="1 traces or files were left out"):
        assert by_iteration(read_traces([path, good], errors="skip")) == [["d1"]]


def test_a_root_without_a_span_of_a_known_kind_is_no_query_and_no_turn(save: Callable[..., Path]) -> None:
    session = {"session.id": "talk"}
    spans = [*_agent_spans(1, "d1", 1, **session), _server(5, 2, **session), _server(6, 3), _server(7, 4)]
    seen: list[Summary] = []
    with pytest.warns(GoodgainNotice, match=r"3 root spans .*no span of a known kind .*the first is 'GET /health'"):
        results = read_traces(save(spans), report=seen.append)
    assert by_iteration(results, "talk") == [["d1"]]
    assert (seen[0].traces, seen[0].turns_read, seen[0].without_search) == (1, 1, 0)
    assert "3 root spans" in str(seen[0])


def test_a_server_s_span_around_an_agent_is_its_turn_and_an_agent_that_did_not_search_is_a_query(
    save: Callable[..., Path],
) -> None:
    spans = [_server(1, 1, "POST /chat"), *_agent_spans(1, "d1", 2, parent=1), *_agent_spans(2, "d2", 8)[:1]]
    results = read_traces(save(spans))
    assert by_iteration(results, f"{1:032x}") == [["d1"]]
    assert by_iteration(results, f"{2:032x}") == []


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


_TOOL = {"entity.1.type": "tool.langgraph", "entity.1.name": "web_search"}


def test_monocle_a_retrieval_of_which_only_the_beginning_of_its_texts_is_kept_is_unrecorded(
    save: Callable[..., Path],
) -> None:
    store = {"entity.1.type": "vectorstore.Chroma", "entity.1.name": "Chroma"}
    path = save([_monocle("workflow", 1), _monocle("retrieval", 2, 1, "q", "x" * 100 + "...", **store)])
    with pytest.raises(InputError, match=r"'Chroma' was made, but .* not in the log .*Monocle .*100 characters"):
        read_traces(path)
    results = read_traces(path, unrecorded="empty")
    assert results.select("search_query", "status").rows() == [("q", "unrecorded")]
    spans = [_monocle("workflow", 1), _monocle("retrieval", 2, 1, "q", json.dumps({"assistant": "So."}), **store)]
    with pytest.raises(InputError, match="not in the log"):
        read_traces(save(spans))
    spans = [_monocle("workflow", 1), _monocle("retrieval", 2, 1, "q", json.dumps({"documents": docs("d1")}), **store)]
    assert by_iteration(read_traces(save(spans))) == [["d1"]]
    embedding = {"entity.1.type": "model.embedding.x", "entity.1.name": "x"}
    spans = [_monocle("workflow", 1), _monocle("retrieval", 2, 1, "q", "[0.1, 0.2...", **embedding)]
    assert by_iteration(read_traces(save(spans))) == []


def test_monocle_tools_are_searches_by_name_and_mcp_alone_is_a_tool(save: Callable[..., Path]) -> None:
    mcp = _monocle(
        "agentic.mcp.invocation", 3, 1, ['{"query": "b"}'], **{"entity.1.type": "mcp.server", "entity.1.name": "search"}
    )
    mcp["events"].append({"name": "data.output", "attributes": {"output": json.dumps(docs("d2"))}})
    book = _monocle("agentic.tool.invocation", 4, 1, "{}", "ok", **{**_TOOL, "entity.1.name": "book_flight"})
    spans = [_monocle("workflow", 1), _monocle("inference", 2, 1), mcp, book]
    spans += [
        _monocle("inference", 5, 1),
        _monocle("agentic.tool.invocation", 6, 1, '{"query": "c"}', json.dumps(docs("d3")), **_TOOL),
    ]
    seen: list[Summary] = []
    results = read_traces(save(spans), report=seen.append)
    assert by_iteration(results) == [["d2"], ["d3"]]
    assert results["search_query"].to_list() == ["b", "c"]
    assert dict(seen[0].skipped_tools) == {"book_flight": 1}


def test_monocle_a_model_that_called_a_search_which_no_span_records_is_unrecorded(save: Callable[..., Path]) -> None:
    called = {"span.subtype": "tool_call", "entity.3.type": "tool.function", "entity.3.name": "web_search"}
    with pytest.raises(InputError, match=r"'web_search' was made, .* no span records it"):
        read_traces(save([_monocle("workflow", 1), _monocle("inference", 2, 1, **called)]))


def test_monocle_turns_of_one_workflow_are_turns_and_a_scope_names_the_query(save: Callable[..., Path]) -> None:
    spans = [_monocle("workflow", 1)]
    spans[0]["end_time"] += 1000
    for number, name in ((2, "d1"), (5, "d2")):
        said = [json.dumps({"user": f"And {name}?"})]
        spans += [_monocle("agentic.turn", number, 1, said), _monocle("inference", number + 1, number, said)]
        spans[-2]["end_time"] += 20
        spans.append(_monocle("agentic.tool.invocation", number + 2, number, "{}", json.dumps(docs(name)), **_TOOL))
    spans[-1]["attributes"]["scope.query_id"] = "q7"
    results = read_traces(save(spans))
    assert by_iteration(results, "q7") == [["d2"]]
    assert read_traces(save(spans), turns="all")["doc_id"].to_list() == ["d1", "d2"]


def test_monocle_spans_of_unknown_types_are_not_understood_and_those_of_a_server_are_no_query(
    save: Callable[..., Path],
) -> None:
    with pytest.raises(InputError, match=r"span of kind 'AGENTIC.DREAM' is not understood"):
        read_traces(save([_monocle("workflow", 1), _monocle("agentic.dream", 2, 1)]))
    with pytest.raises(InputError, match=r"none of its 3 spans is of a known kind"):
        read_traces(save([_monocle("workflow", 1), _monocle("http.process", 2, 1), _monocle("generic", 3, 1)]))


def test_monocle_spans_are_read_from_otlp_and_from_its_service(save: Callable[..., Path]) -> None:
    tool = _monocle("agentic.tool.invocation", 2, 1, '{"query": "a"}', json.dumps(docs("d1")), **_TOOL)
    spans = [_monocle("workflow", 1), tool]

    def pairs(given: Json) -> Json:
        return [{"key": key, "value": {"stringValue": value}} for key, value in given.items()]

    in_otlp = [
        {"traceId": one["context"]["trace_id"], "spanId": one["context"]["span_id"], "name": one["name"],
         "parentSpanId": one["parent_id"] or "", "startTimeUnixNano": str(one["start_time"]), "attributes": pairs(one["attributes"]),
         "events": [{"name": event["name"], "attributes": pairs(event["attributes"])} for event in one["events"]]}
        for one in spans
    ]  # fmt: skip
    of_service = []
    for one in spans:
        marks = {key: value for key, value in one["attributes"].items() if not key.startswith("entity.")}
        entity = [{"type": "tool.langgraph", "name": "web_search"}] if one is tool else []
        record = {"span_name": one["name"], **one["context"], "status": {"code": "ok", "message": None}}
        record |= {key: one[key] for key in ("parent_id", "start_time", "end_time", "events")}
        of_service.append({**record, "attributes": {**marks, "entity": entity}})
    for log in ({"resourceSpans": [{"scopeSpans": [{"spans": in_otlp}]}]}, {"trace_id": "1" * 32, "spans": of_service}):
        assert by_iteration(read_traces(save(log))) == [["d1"]]


def test_mlflow_2_names_its_ids_and_times_otherwise(save: Callable[..., Path]) -> None:
    def span(number: int, kind: str, **attributes: Json) -> Json:
        context = {"trace_id": f"0x{1:032x}", "span_id": f"0x{number:016x}"}
        record = {"name": "web_search", "context": context, "parent_id": None if number == 1 else f"0x{1:016x}"}
        given = {"mlflow.spanType": json.dumps(kind), **attributes}
        return {**record, "start_time": 10**18 + number, "status_code": "OK", "attributes": given}

    spans = [span(1, "CHAIN"), span(2, "UNKNOWN", **{"mlflow.spanOutputs": json.dumps([_PAGE])})]
    info = {"request_id": "r", "request_metadata": {}, "tags": [{"key": "query_id", "value": "q7"}]}
    results = read_traces(save({"info": info, "data": {"spans": spans}}))
    assert by_iteration(results, "q7") == [["https://a.example"]]


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


def test_langfuse_lists_of_traces_with_ids_only_are_refused(save: Callable[..., Path]) -> None:
    path = save({"data": [{"id": "t", "observations": ["o1", "o2"]}], "meta": {}})
    with pytest.raises(InputError, match="get each trace, or export the observations"):
        read_traces(path, format="langfuse")


# Gemini, Codex


def test_gemini_queries_without_chunks_are_unrecorded_and_empty_grounding_is_no_search(
    save: Callable[..., Path],
) -> None:
    answer = {"content": {"role": "model", "parts": [{"text": "So."}]}}
    path = save({"candidates": [{**answer, "groundingMetadata": {"webSearchQueries": ["q"]}}]})
    with pytest.raises(InputError, match="queries and no groundingChunks"):
        read_traces(path)
    assert by_iteration(read_traces(save({"candidates": [{**answer, "groundingMetadata": {}}]}))) == []


def _google(
    call_id: str, kind: str | None = "GOOGLE_SEARCH_WEB", *, snake: bool = False, **response: Json
) -> list[Json]:
    """The call of a tool that Google runs, and its response, as they stand in a content of the model."""
    names = ("tool_call", "tool_response", "tool_type") if snake else ("toolCall", "toolResponse", "toolType")
    of = {"id": call_id, **({names[2]: kind} if kind else {})}
    return [{names[0]: {**of, "args": {"queries": ["a", "b"]}}, "thoughtSignature": "x"},
            {names[1]: {**of, "response": response}, "thoughtSignature": "x"}]  # fmt: skip


def _contents(*parts: Json) -> Json:
    asked = {"role": "user", "parts": [{"text": "?"}]}
    return {"contents": [asked, {"role": "model", "parts": [*parts, {"text": "So."}]}]}


@pytest.mark.parametrize("snake", [False, True])
@pytest.mark.parametrize("kind", ["GOOGLE_SEARCH_WEB", "FILE_SEARCH", "GOOGLE_MAPS", "NEWS_SEARCH"])
def test_gemini_searches_that_google_ran_in_the_history_of_a_request_are_unrecorded(
    save: Callable[..., Path], kind: str, snake: bool
) -> None:
    path = save(
        _contents(*_google("s1", kind, snake=snake, search_suggestions="<div>"), *_google("s2", kind, snake=snake))
    )
    with pytest.raises(
        InputError, match=rf"'{kind.lower()}' was made, but what it returned is not in the log.*grounding"
    ):
        read_traces(path)
    results = read_traces(path, unrecorded="empty")
    assert results.select("iteration", "search", "search_query").rows() == [(1, 1, "a; b"), (1, 2, "a; b")]


@pytest.mark.parametrize("kind", ["DREAM", "TOOL_TYPE_UNSPECIFIED", None])
def test_gemini_calls_of_unknown_tools_of_google_are_not_understood(
    save: Callable[..., Path], kind: str | None
) -> None:
    with pytest.raises(InputError, match=r"at /contents/1/parts/0\S*: toolCall .*not understood"):
        read_traces(save(_contents(*_google("s1", kind))))


def test_gemini_pages_that_google_opened_are_no_searches(save: Callable[..., Path]) -> None:
    seen: list[Summary] = []
    results = read_traces(save(_contents(*_google("s1", "URL_CONTEXT", status="ok"))), report=seen.append)
    assert (by_iteration(results), dict(seen[0].skipped_tools)) == ([], {"url_context": 1})


def test_gemini_results_in_a_response_of_google_are_read(save: Callable[..., Path]) -> None:
    path = save(_contents(*_google("s1", result=[_PAGE], search_suggestions="<div>")))
    assert by_iteration(read_traces(path)) == [["https://a.example"]]


def test_gemini_searches_that_google_ran_for_a_grounded_answer_are_its_grounding(save: Callable[..., Path]) -> None:
    parts = [*_google("s1", search_suggestions="<div>"), *_google("s2", search_suggestions="<div>"), {"text": "So."}]
    grounding = {"webSearchQueries": ["a", "b"], "groundingChunks": [{"web": {"uri": "u:1"}}, {"web": {"uri": "u:2"}}]}
    answer = {"content": {"role": "model", "parts": parts}, "groundingMetadata": grounding}
    event = {"id": "e", "invocationId": "i", "author": "agent", **answer}
    for log in ({"candidates": [answer]}, {"id": "s", "appName": "app", "events": [event]}):
        results = read_traces(save(log), iteration="call")
        assert by_iteration(results) == [["u:1", "u:2"]]


def test_gemini_a_response_of_google_in_a_content_of_the_user_is_no_turn(save: Callable[..., Path]) -> None:
    call, response = _google("s1", result=[_PAGE])
    log = _contents(call)
    log["contents"].insert(2, {"role": "user", "parts": [response]})
    assert by_iteration(read_traces(save(log))) == [["https://a.example"]]


def test_gemini_a_part_with_something_unknown_beside_its_signature_is_not_understood(save: Callable[..., Path]) -> None:
    for part in ({"odd": {"q": 1}, "thoughtSignature": "x"}, {"text": "So.", "odd": {"q": 1}}):
        with pytest.raises(InputError, match=r"at /contents/1/parts/0: part with 'odd' is not understood"):
            read_traces(save(_contents(part)))
    assert by_iteration(read_traces(save(_contents({"text": None, "toolCall": None, "thoughtSignature": "x"})))) == []


@pytest.mark.parametrize("whole", [True, False])
def test_gemini_streamed_exchanges_of_a_search_are_one_conversation(save: Callable[..., Path], whole: bool) -> None:
    """The client sends the pieces of an answer again as one text, and leaves out thoughts."""
    asked = {"role": "user", "parts": [{"text": "?"}]}
    call = {"functionCall": {"name": "search", "args": {"query": "a"}}}
    pieces = [[{"text": "Hm.", "thought": True}], [{"text": "Let me "}], [{"text": "look."}], [call]]
    events: list[Json] = [{"candidates": [{"content": {"role": "model", "parts": parts}}]} for parts in pieces]
    events[-1]["candidates"][0]["finishReason"] = "STOP"
    stream = "".join(f"data: {json.dumps(event)}\r\n\r\n" for event in events)
    response = {"role": "user", "parts": [{"functionResponse": {"name": "search", "response": {"result": docs("d1")}}}]}
    again = [{"role": "model", "parts": [{"text": "Let me look."}, call]}, response]
    said = {"candidates": [{"content": {"role": "model", "parts": [{"text": "So."}]}, "finishReason": "STOP"}]}
    log = [
        {"request": {"contents": [asked]}, "response": stream if whole else events},
        {"request": {"contents": [asked, *again]}, "response": f"data: {json.dumps(said)}\n\n"},
    ]
    seen: list[Summary] = []
    assert by_iteration(read_traces(save(log), report=seen.append), "log-1") == [["d1"]]
    assert seen[0].traces == 1


def test_codex_items_that_were_started_and_never_completed_are_unrecorded(save: Callable[..., Path]) -> None:
    call = {
        "id": "i1",
        "type": "mcp_tool_call",
        "server": "s",
        "tool": "search",
        "arguments": {},
        "status": "in_progress",
    }
    path = save([{"type": "thread.started", "thread_id": "t"}, {"type": "item.started", "item": call}], "log.jsonl")
    with pytest.raises(InputError, match="'mcp__s__search' was made, but what it returned is not in the log"):
        read_traces(path)


def test_codex_a_rollout_of_2025_has_items_without_a_payload(save: Callable[..., Path]) -> None:
    lines = [{"id": "s1", "timestamp": "now", "instructions": None}, {"record_type": "state"},
             {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "<environment_context>"}]},
             {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "?"}]},
             {"type": "function_call", "call_id": "c1", "name": "search", "arguments": "{}"},
             {"type": "function_call_output", "call_id": "c1", "output": json.dumps(docs("d1"))}]  # fmt: skip
    assert read_traces(save(lines, "log.jsonl")).select("query_id", "turn", "doc_id").rows() == [("s1", 1, "d1")]


# Tags


@pytest.mark.parametrize(
    ("found", "status"),
    [("<|begin_search_result|>A summary.<|end_search_result|>", "unrecorded"), ("", "unrecorded"),
     ("<|begin_search_result|>\nYou have searched this query. Refer to it.\n<|end_search_result|>", "error")],
)  # fmt: skip
def test_tags_what_search_o1_did_not_log_is_unrecorded_and_a_refused_search_failed(
    save: Callable[..., Path], found: str, status: str
) -> None:
    text = f"Hm. <|begin_search_query|>a<|end_search_query|>{found} So \\boxed{{x}}"
    results = read_traces(save([{"id": 7, "Output": text}]), unrecorded="empty")
    assert results.select("query_id", "status").rows() == [("7", status)]


def test_tags_in_the_program_s_notes_are_no_calls(save: Callable[..., Path]) -> None:
    note = "My previous action is invalid. If I want to search, I should put the query between <search> and </search>. Let me try again."
    text = f'{note}<search>a</search><information>Doc 1(Title: "A") t</information><answer>x</answer>'
    assert by_iteration(read_traces(save({"id": "cmpl-1", "output": text}))) == [["A"]]


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
    with pytest.warns(GoodgainNotice, match="was not used where logs have query ids of their own"):
        read_traces(tmp_path, report=seen.append, query_id=lambda trace: trace.at, iteration="step")
    assert dict(seen[0].formats) == dict.fromkeys(("claude_code", "gemini", "mcp", "autogen", "langsmith"), 1)
    assert "traces by format: " in str(seen[0])


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
