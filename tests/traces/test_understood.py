"""No trace ends without a search because something in it was not understood."""

# ruff: noqa: E501  # logs are easier to read an item a line

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from goodgain.errors import GoodgainNotice, InputError
from goodgain.traces import Summary, convert_traces, read_traces
from goodgain.traces.tool_outputs.overlooked_results import looks_like_search
from goodgain.traces.tool_outputs.readers import read_output

from .conftest import STEPS, by_iteration
from .logs import WRITERS, Call, Story, Turn, docs
from .odd_logs import odd_items, odd_logs

Json = Any

_USER = {"role": "user", "content": "What?"}
_PAGE = {"url": "https://a.example", "title": "A"}


@pytest.fixture
def save(tmp_path: Path) -> Callable[..., Path]:
    """Writes a value as JSON, or text as it is, under a name."""

    def write(value: Json, name: str = "log.json") -> Path:
        path = tmp_path / name
        path.write_text(value if isinstance(value, str) else json.dumps(value))
        return path

    return write


def _chat_call(name: str = "search", call_id: str = "c1") -> Json:
    function = {"name": name, "arguments": '{"query": "bm25"}'}
    return {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": call_id, "type": "function", "function": function}],
    }


def _chat_answer(output: Json, call_id: str = "c1") -> Json:
    return {
        "role": "tool",
        "tool_call_id": call_id,
        "content": output if isinstance(output, str) else json.dumps(output),
    }


def _span(number: int, **attributes: Json) -> Json:
    return {
        "name": attributes.pop("name", "span"),
        "context": {"trace_id": f"0x{1:032x}", "span_id": f"0x{number:016x}"},
        "parent_id": None if number == 1 else f"0x{1:016x}",
        "start_time": f"2026-01-01T00:00:00.{number:06d}Z",
        "status": {"status_code": "OK"},
        "attributes": attributes,
    }


# The rule, in every format


_USE = {"type": "tool_use", "id": "t", "name": "look", "input": {}}
_SAMPLE = {"id": "q", "epoch": 1, "messages": [_USER, {"role": "assistant", "content": [{"type": "odd"}]}]}
#: For each format a log without a search, with one thing of an unknown kind in it; and where that stands.
ODD_LOGS: dict[str, tuple[Json, str]] = {
    "openai_chat": ([_USER, {"role": "assistant", "content": [{"type": "odd"}]}], "/1/content/0"),
    "openai_responses": ({"object": "response", "output": [{"type": "odd"}]}, "/output/0"),
    "anthropic": ([_USER, {"role": "assistant", "content": [_USE, {"type": "odd"}]}], "/1/content/1"),
    "langchain": ([{"type": "human", "content": "?"}, {"type": "ai", "content": [{"type": "odd"}]}], "/1/content/0"),
    "openinference": ([_span(1, **{"openinference.span.kind": "CHAIN"}), _span(2, **{"tool.name": "odd"})], "/1"),
    "tagged_text": ("<think>x</think><my_search>a</my_search>", "line 1"),
    "atif": ({"schema_version": "ATIF-v1.4", "session_id": "s", "steps": [{"step_id": 1, "source": "odd"}]}, "/steps/0"),
    "inspect_ai": ({"eval": {"task": "t"}, "samples": [_SAMPLE]}, "/samples/0/messages/1/content/0"),
    "browsecomp_plus": ({"query_id": "q", "tool_call_counts": {}, "result": [{"type": "odd"}]}, "/result/0"),
    "tau_bench": ({"simulations": [{"task_id": "q", "messages": [{"role": "odd"}]}]}, "/simulations/0/messages/0"),
    "jsonl": ({"goodgain_trace": 1, "query_id": "q", "steps": [], "odd": 1}, "/odd"),
    **odd_logs(),
}  # fmt: skip


@pytest.mark.parametrize("form", WRITERS)
def test_without_a_search_what_is_not_understood_is_an_error_with_its_place(
    save: Callable[..., Path], form: str
) -> None:
    log, place = ODD_LOGS[form]
    path = save(log)
    with pytest.raises(
        InputError, match=rf"log\.json,( at)? {place}: .*is not understood.*no search was found"
    ) as caught:
        read_traces(path, format=form)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("form", WRITERS)
def test_without_a_search_what_is_not_understood_is_left_out_and_counted_on_skip(
    save: Callable[..., Path], form: str
) -> None:
    log, place = ODD_LOGS[form]
    with pytest.warns(GoodgainNotice, match=rf"1 traces or files were left out: .*{place}: .*is not understood"):
        assert read_traces(save(log), format=form, errors="skip").is_empty()


#: For each format where its log keeps a list of messages, steps or items, and something of an unknown kind for it.
ODD_ITEMS: dict[str, tuple[list[Any] | None, Json]] = {
    "openai_chat": ([], {"role": "odd", "content": "x"}),
    "openai_responses": ([], {"type": "odd"}),
    "anthropic": ([], {"role": "odd", "content": "x"}),
    "langchain": (["messages"], {"type": "odd", "content": "x"}),
    "tagged_text": (["messages"], {"role": "assistant", "content": "<my_search>a</my_search>"}),
    "atif": (["steps"], {"step_id": 9, "source": "odd"}),
    "inspect_ai": (["samples", 0, "messages"], {"role": "odd", "content": "x"}),
    "browsecomp_plus": (["result"], {"type": "odd"}),
    "tau_bench": (["simulations", 0, "messages"], {"role": "odd", "content": "x"}),
    "jsonl": (["turns", 0, "steps"], {"searches": [], "odd": 1}),
    **odd_items(),
}


@pytest.mark.parametrize("form", WRITERS)
def test_with_a_search_what_is_not_understood_is_a_notice_with_count_and_first_place(tmp_path: Path, form: str) -> None:
    writer, file_name = WRITERS[form]
    text = writer(Story([Turn([[Call(docs("d1"))]])]))
    path = tmp_path / file_name
    if form == "openinference":
        odd = json.loads(text.splitlines()[0])
        odd["attributes"] = {"openinference.span.kind": "odd", "session.id": "story"}
        odd["context"] = {**odd["context"], "span_id": "0x00000000000000ff"}
        path.write_text(
            f"{text}{json.dumps(odd)}\n{json.dumps({**odd, 'context': {**odd['context'], 'span_id': '0x00000000000000fe'}})}\n"
        )
    elif (keys := ODD_ITEMS[form][0]) is None:
        first = ODD_ITEMS[form][1]
        second = first | ({"id": "another"} if "id" in first else {})
        path.write_text(f"{text}{json.dumps(first)}\n{json.dumps(second)}\n")
    else:
        log = json.loads(text)
        holder = log
        for key in keys:
            holder = holder[key]
        first = ODD_ITEMS[form][1]  # a span with the same id would be the same span, exported twice
        holder += [first, first | {key: f"{first[key][:-1]}f" for key in ("id", "span_id") if key in first}]
        path.write_text(json.dumps(log))
    seen: list[Summary] = []
    with pytest.warns(
        GoodgainNotice, match=rf"2 items in the traces are not understood.* 2; the first at \S*{file_name}, "
    ):
        results = read_traces(path, report=seen.append, **STEPS)
    assert by_iteration(results) == [["d1"]]
    assert sum(seen[0].unknown.values()) == 2


def test_what_is_not_understood_in_one_trace_is_no_error_of_another(save: Callable[..., Path]) -> None:
    plain, odd = [_USER, {"role": "assistant", "content": "So."}], ODD_LOGS["openai_chat"][0]
    searched = [_USER, _chat_call(), _chat_answer(docs("d1"))]
    lines = [json.dumps({"messages": messages}) for messages in (plain, searched, odd)]
    with pytest.raises(InputError, match=r"line 3, at /messages/1/content/0: part of type 'odd'"):
        read_traces(save("\n".join(lines), "log.jsonl"))
    with pytest.warns(GoodgainNotice, match="1 traces or files were left out"):
        results = read_traces(save("\n".join(lines), "log.jsonl"), errors="skip")
    assert by_iteration(results, "log-1") == []
    assert by_iteration(results, "log-2") == [["d1"]]


@pytest.mark.parametrize(
    "message",
    [
        {"role": "assistant", "content": "So.", "invocations": [{"toolName": "search"}]},
        {"role": "assistant", "text": "So."}, {"role": "assistant", "content": None, "actions": {"search": "x"}},
        {"role": "user", "content": [{"widget": {"widgetId": "t1"}}]},
    ],
)  # fmt: skip
def test_a_chat_is_plain_only_if_nothing_stands_beside_or_instead_of_its_content(
    save: Callable[..., Path], message: Json
) -> None:
    notes = {"id": "m1", "createdAt": "now", "metadata": {"a": [1]}, "usage": {"input_tokens": 1}}
    plain = [_USER, {"role": "assistant", "content": "So.", **notes}]
    assert by_iteration(read_traces(save(plain))) == []
    with pytest.raises(InputError, match=r"log\.json, at /2/.*is not understood \(expected: "):
        read_traces(save([*plain, message]))


@pytest.mark.parametrize(
    ("field", "looks"),
    [
        ({"invocations": [{"toolName": "search"}]}, True), ({"steps": [{"type": "function", "name": "web_search"}]}, True),
        ({"x": [{"q": "dunes"}]}, True), ({"x": {"web_search_results": [{"content": "c"}]}}, True),
        ({"x": [{"type": "server_tool_use"}]}, True), ({"x": {"results": [{"source_call_id": "c1", "content": "c"}]}}, True),
        ({"x": [{"url": "https://a.example", "title": "A"}]}, True), ({"x": {"y": {"z": [[{"id": 7, "text": "A"}]]}}}, True),
        ({"metadata": {"agent": {"name": "search-agent"}}}, False), ({"x": {"input_tokens": 5, "cost": {"usd": 1}}}, False),
        ({"x": {"web_search_requests": 0}}, False), ({"timing": {"start": "now"}}, False), ({"x": "I search."}, False),
        ({"x": [{"type": "text", "text": "So."}]}, False),
    ],
    ids=str,
)  # fmt: skip
def test_a_field_that_no_format_reads_is_reported_if_it_looks_like_a_search(field: Json, looks: bool) -> None:
    ((key, value),) = field.items()
    assert looks_like_search(key, value) is looks


def test_a_known_role_alone_is_no_mark_of_a_format(save: Callable[..., Path]) -> None:
    contents = [{"role": "user", "segments": [{"say": "?"}]}, {"role": "model", "segments": [{"call": "search"}]}]
    with pytest.raises(
        InputError, match=r"no known trace format .*a JSON list of objects with the keys role, segments"
    ):
        read_traces(save(contents))
    assert by_iteration(read_traces(save([_USER, {"role": "assistant", "content": "So."}]))) == []


# The cases known from people's logs

_UI_V5 = {"role": "assistant", "parts": [
    {"type": "tool-webSearch", "toolCallId": "c1", "state": "output-available", "input": {"query": "a"}, "output": [_PAGE]}]}  # fmt: skip
_UI_V4 = {"role": "assistant", "content": "So.", "toolInvocations": [
    {"state": "result", "toolCallId": "c1", "toolName": "webSearch", "args": {"query": "a"}, "result": [_PAGE]}]}  # fmt: skip


@pytest.mark.parametrize(
    ("log", "seen"),
    [
        ([{"role": "user", "parts": [{"type": "text", "text": "?"}]}, _UI_V5], "parts"),
        ([_USER, _UI_V4], "toolInvocations"),
    ],
    ids=["v5", "v4"],
)
def test_messages_of_the_vercel_ai_sdk_are_read_and_never_taken_for_a_chat(
    save: Callable[..., Path], log: Json, seen: str
) -> None:
    assert by_iteration(read_traces(save(log))) == [["https://a.example"]]
    with pytest.raises(InputError, match=seen):
        read_traces(save(log), format="openai_chat")


_SAID = {"role": "assistant", "content": "So."}
_COUNTED = {"server_tool_use_details": {"web_search_requests": 1}}


@pytest.mark.parametrize(
    "log",
    [
        [{"request": {"messages": [_USER]}, "response": {"choices": [{"message": _SAID}], "usage": _COUNTED}}],
        {"messages": [_USER, _SAID], "usage": {"server_tool_use": {"web_search_requests": 1}}},
        [_USER, {**_SAID, "usage": _COUNTED}],
        [{"request": {"messages": [_USER]}, "response": {"model": "gpt-4o-search-preview-2025-03-11", "choices": [{"message": {**_SAID, "annotations": []}}]}}],
        {"model": "gpt-4o-search-preview", "messages": [_USER, {**_SAID, "annotations": []}]},
        {"type": "message", "role": "assistant", "stop_reason": "end_turn", "content": [{"type": "text", "text": "So."}], "usage": {"server_tool_use": {"web_search_requests": 1}}},
    ],
)  # fmt: skip
def test_a_hosted_search_that_left_no_citation_is_unrecorded(save: Callable[..., Path], log: Json) -> None:
    path = save(log)
    with pytest.raises(InputError, match="'web_search' was made, but what it returned is not in the log"):
        read_traces(path)
    results = read_traces(path, unrecorded="empty")
    assert results.select("iteration", "status").rows() == [(1, "unrecorded")]


def test_a_hosted_search_that_usage_counts_and_a_message_shows_is_one(save: Callable[..., Path]) -> None:
    note = {"type": "url_citation", "url_citation": {"url": "https://a.example", "title": "A"}}
    unshown = {"choices": [{"message": _SAID}], "usage": _COUNTED}
    shown = {"choices": [{"message": {**_SAID, "annotations": [note]}}], "usage": _COUNTED}
    log = [{"request": {"messages": [_USER]}, "response": response} for response in (shown, unshown)]
    results = read_traces(save(log), citations=True, unrecorded="empty", iteration="call")
    assert by_iteration(results, "log-1") == [["https://a.example"]]
    assert by_iteration(results, "log-2") == [[]]


def test_a_hosted_call_of_an_unknown_search_tool_is_unrecorded(save: Callable[..., Path]) -> None:
    path = save({"object": "response", "output": [{"type": "x_search_call", "name": "x_semantic_search"}]})
    with pytest.raises(
        InputError, match=r"at /output/0: the search with 'x_semantic_search' was made.*'x_search_call'"
    ):
        read_traces(path)
    assert read_traces(path, unrecorded="empty").select("iteration", "status").rows() == [(1, "unrecorded")]


_VERCEL = {"ai.toolCall.name": "webSearch", "ai.toolCall.args": "{}", "ai.toolCall.result": json.dumps([_PAGE])}
_TRACELOOP = {
    "traceloop.span.kind": "tool",
    "traceloop.entity.name": "web_search",
    "traceloop.entity.output": json.dumps([_PAGE]),
}


@pytest.mark.parametrize("attributes", [_VERCEL, _TRACELOOP], ids=["vercel", "traceloop"])
def test_tool_spans_of_other_vocabularies_are_searches_and_unrecorded_without_their_output(
    save: Callable[..., Path], attributes: Json
) -> None:
    root = _span(1, **{"traceloop.span.kind": "workflow"})
    assert by_iteration(read_traces(save([root, _span(2, **attributes)]))) == [["https://a.example"]]
    bare = {key: value for key, value in attributes.items() if not key.endswith((".result", ".output"))}
    with pytest.raises(InputError, match=r"at /1: the search with 'web.*not in the log"):
        read_traces(save([root, _span(2, **bare)]))


@pytest.mark.parametrize(
    "attributes",
    [
        {"mlflow.spanType": '"ODD"', "mlflow.spanOutputs": "[]"}, {"langfuse.observation.type": "odd"},
        {"my.tool_call.name": "search"}, {"openinference.span.kind": "SEARCHER"},
    ],
)  # fmt: skip
def test_spans_of_unknown_kinds_are_not_understood(save: Callable[..., Path], attributes: Json) -> None:
    with pytest.raises(InputError, match=r"at /1: span .*is not understood"):
        read_traces(save([_span(1, **{"openinference.span.kind": "CHAIN"}), _span(2, **attributes)]))


def test_searches_that_model_spans_of_genai_called_and_no_span_records_are_unrecorded(
    save: Callable[..., Path],
) -> None:
    said = [{"role": "assistant", "parts": [{"type": "tool_call", "id": "c1", "name": "web_search", "arguments": {}}]}]
    model = {"gen_ai.operation.name": "chat", "gen_ai.output.messages": json.dumps(said)}
    with pytest.raises(InputError, match="no span records it"):
        read_traces(save([_span(1, **{"gen_ai.operation.name": "invoke_agent"}), _span(2, **model)]))


#: A stream without its end.
_STREAM = 'data: {"choices": [{"delta": {"tool_calls": []}}]}\n\n'


@pytest.mark.parametrize(
    ("request_", "response", "whole"),
    [
        ({"messages": [_USER], "stream": True}, _STREAM, {"choices": [{"message": _SAID}]}),
        ({"messages": [_USER]}, {"body": {"string": f"event: x\n{_STREAM}"}}, {"choices": [{"message": _SAID}]}),
        ({"messages": [_USER]}, [{"object": "chat.completion.chunk"}], {"choices": [{"message": _SAID}]}),
        ({"messages": [_USER]}, "event: message_start\ndata: {}\n", {"type": "message", "role": "assistant", "content": []}),
        ({"input": "What?"}, "event: response.created\ndata: {}\n", {"output": []}),
    ],
)  # fmt: skip
def test_exchanges_with_streams_that_are_not_whole_are_not_passed_over(
    save: Callable[..., Path], request_: Json, response: Json, whole: Json
) -> None:
    elsewhere = {"request": "--boundary", "response": "data: x"}
    log = [{"request": request_, "response": whole}, elsewhere, {"request": request_, "response": response}]
    with pytest.raises(InputError, match=r"at /2/response: expected one object that is the whole answer"):
        read_traces(save(log))
    seen: list[Summary] = []
    with pytest.warns(GoodgainNotice, match=r"1 traces or files were left out.*/2/response"):
        read_traces(save(log), errors="skip", report=seen.append)
    assert (seen[0].traces, seen[0].passed_over) == (1, 1)


_A, _N = {"title": "A", "link": "https://a.example"}, {"title": "N", "link": "https://n.example"}


@pytest.mark.parametrize(
    ("output", "titles"),
    [
        ({"organic": [_A], "news": [_N]}, "AN"), ({"news": [_N], "organic": [_A]}, "NA"),
        ({"organic": [_A], "news": [_N], "peopleAlsoAsk": [{"question": "?", "link": "https://p.example"}], "knowledgeGraph": {"title": "K"}}, "AN"),
        ({"web": {"results": [_A]}, "news": {"results": [_N]}}, "AN"), ({"data": {"web": [_A], "news": [_N]}, "success": True}, "AN"),
        ({"results": {"web": [_A], "news": [_N]}}, "AN"), ({"organic": [], "news": [_N]}, "N"),
        ({"results": [_A, _N], "raw_results": [_A, _N]}, "AN"),
        ({"results": [_A], "more_results": [_N, _A]}, "ANA"), ({"news": [_N]}, "N"),
    ],
)  # fmt: skip
def test_all_lists_of_an_answer_are_results_in_their_order(output: Json, titles: str) -> None:
    outcome = read_output(output, "here")
    assert (outcome.status, [r.title for r in outcome.results]) == ("ok", list(titles))
    assert [r.rank for r in outcome.results] == list(range(1, len(titles) + 1))


def test_a_list_of_an_answer_that_cannot_be_read_is_no_reason_to_lose_it() -> None:
    assert read_output({"organic": [_A], "news": [{"odd": 1}]}, "here").status == "unparsed"
    assert [
        r.title for r in read_output({"organic": [_A], "news": [_N], "images": [_N], "answer": "x"}, "here").results
    ] == ["A", "N"]


def test_a_large_answer_of_anthropic_is_known_by_its_hosted_blocks(save: Callable[..., Path]) -> None:
    use = {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "a"}}
    page = {"type": "web_search_result", **_PAGE, "encrypted_content": "x" * 300_000}
    result = {"type": "web_search_tool_result", "tool_use_id": "s1", "content": [page]}
    answer = {
        "id": "msg_1",
        "content": [use, result],
        "role": "assistant",
        "type": "message",
        "stop_reason": "end_turn",
    }
    assert by_iteration(read_traces(save(answer))) == [["https://a.example"]]


def test_a_source_without_an_address_is_a_result(save: Callable[..., Path]) -> None:
    sources = [{"type": "api", "name": "oai-weather"}, {"type": "url", "url": "https://a.example"}]
    call = {
        "type": "web_search_call",
        "id": "ws",
        "status": "completed",
        "action": {"type": "search", "query": "q", "sources": sources},
    }
    path = save({"object": "response", "output": [call]})
    assert read_traces(path).select("rank", "url", "title", "type").rows() == [
        (1, None, "oai-weather", "api"), (2, "https://a.example", None, None),
    ]  # fmt: skip
    convert_traces(path, path.with_name("a.run"))
    assert len(path.with_name("a.run").read_text().splitlines()) == 2


def test_a_query_with_a_line_feed_is_part_of_the_heading() -> None:
    text = "A search for 'a\n1. b' found 1 results:\n\n## Web Results\n1. [T](https://a.example)\nText."
    (result,) = read_output(text, "here").results
    assert (result.url, result.title, result.snippet) == ("https://a.example", "T", "Text.")


def _browsecomp(*outputs: str) -> Json:
    entries = [{"type": "tool_call", "tool_name": "search", "arguments": "{}", "output": output} for output in outputs]
    return {"query_id": "q", "tool_call_counts": {"search": len(outputs)}, "result": entries}


def test_an_empty_output_of_browsecomp_plus_is_unrecorded_and_does_not_stop_the_file(save: Callable[..., Path]) -> None:
    path = save(_browsecomp(json.dumps(docs("d1")), "", json.dumps(docs("d2"))))
    with pytest.warns(
        GoodgainNotice, match=r"1 searches have an empty text.*the first at \S*log\.json, at /result/1, .*unrecorded="
    ):
        results = read_traces(path, iteration="call")
    assert by_iteration(results) == [["d1"], [], ["d2"]]
    assert results["status"].to_list() == ["ok", "unrecorded", "ok"]
    assert by_iteration(read_traces(path, iteration="call", unrecorded="skip")) == [["d1"], ["d2"]]
    assert by_iteration(read_traces(path, iteration="call", unrecorded="empty")) == [["d1"], [], ["d2"]]


def test_a_run_of_browsecomp_plus_with_no_output_at_all_is_an_error(save: Callable[..., Path]) -> None:
    with pytest.raises(InputError, match=r"at /result/0: .*all 2 searches.*unrecorded='empty'"):
        read_traces(save(_browsecomp("", "")), iteration="call")


def _inspect(*messages: Json) -> Json:
    return {"eval": {"task": "t", "model": "m"}, "samples": [{"id": "q", "epoch": 1, "messages": [_USER, *messages]}]}


def test_an_answer_without_a_call_is_told_of_an_inspect_log_only_if_its_tool_is_a_search(
    save: Callable[..., Path],
) -> None:
    call = {"role": "assistant", "content": "", "tool_calls": [{"id": "c1", "function": "search", "arguments": {}}]}
    answer = {"role": "tool", "tool_call_id": "c1", "function": "search", "content": json.dumps(docs("d1"))}
    orphan = {"role": "tool", "tool_call_id": "c9", "function": "bash", "content": "x"}
    path = save(_inspect(orphan, call, answer))
    assert by_iteration(read_traces(path)) == [["d1"]]
    for wrong, options in (({**orphan, "function": "search"}, {}), (orphan, {"tools": ["bash", "search"]})):
        with pytest.warns(GoodgainNotice, match="answer without a call 1"):
            assert by_iteration(read_traces(save(_inspect(wrong, call, answer)), **options))[-1] == ["d1"]


def test_the_id_in_the_address_line_of_search_r1_is_the_document_s() -> None:
    text = 'Doc 1(Title: "A")\nURL: 5008980\nText of A.\nDoc 2(Title: "B") Text of B.\nURL: https://b.example\nDoc 3(Title: "C") See URL: 7'
    assert [(r.doc_id, r.url, r.title, r.snippet) for r in read_output(text, "here").results] == [
        ("5008980", None, "A", "Text of A."), (None, "https://b.example", "B", "Text of B."), (None, None, "C", "See URL: 7"),
    ]  # fmt: skip


def _codex(output: Json, **arguments: Json) -> Json:
    call = {
        "type": "function_call",
        "namespace": "web",
        "name": "run",
        "call_id": "c1",
        "arguments": json.dumps(arguments),
    }
    return {"object": "response", "output": [call, {"type": "function_call_output", "call_id": "c1", "output": output}]}


def test_the_web_tool_of_codex_searches_if_it_is_asked_to(save: Callable[..., Path]) -> None:
    queries = [{"q": "a"}, {"q": "b"}]
    path = save(_codex([{"type": "encrypted_content", "encrypted_content": "gAAA"}], search_query=queries))
    with pytest.raises(
        InputError, match=r"'web\.run' was made, but what it returned is not in the log \(Codex encrypts"
    ):
        read_traces(path)
    results = read_traces(path, unrecorded="empty")
    assert results.select("iteration", "search_query").rows() == [(1, "a; b")]
    with pytest.raises(InputError, match=r"no results can be read from the output of the search with 'web\.run'"):
        read_traces(save(_codex([{"type": "input_text", "text": "A (https://a.example)\ncite"}], search_query=queries)))
    assert by_iteration(read_traces(save(_codex("page", open=[{"ref_id": "x"}])))) == []


@pytest.mark.parametrize(
    "output",
    [
        [{"snippet": "No good search result found"}], [{"Result": "No good Bing Search Result was found"}],
        [{"title": "No results found", "content": "No results found."}], {"answer": "No good search result found"},
        {"isError": True, "content": [{"type": "text", "text": "No web results found"}]},
        {"error": "Google hasn't returned any results for this query."},
    ],
)  # fmt: skip
def test_an_answer_that_says_that_nothing_was_found_is_empty_and_no_result(output: Json) -> None:
    assert read_output(output, "here").status == "empty"


def test_an_error_that_says_that_nothing_was_found_is_empty(save: Callable[..., Path]) -> None:
    use = {"type": "tool_use", "id": "t1", "name": "search", "input": {}}
    answer = {
        "type": "tool_result",
        "tool_use_id": "t1",
        "is_error": True,
        "content": "No search results found for 'q'. Suggestions: none",
    }
    path = save([_USER, {"role": "assistant", "content": [use]}, {"role": "user", "content": [answer]}])
    assert read_traces(path)["status"].to_list() == ["empty"]


def test_a_text_in_an_unknown_layout_is_never_empty() -> None:
    for text in (
        "No results in the index match exactly; these are close: A https://a.example, B https://b.example",
        "0 results found for 'q', showing results for 'p' instead\n* A <https://a.example>\n* B <https://b.example>",
    ):
        assert read_output(text, "here").status == "unparsed"
    assert read_output("No results found for 'https://a.example'.", "here").status == "empty"


def test_special_tokens_around_a_search_are_no_plain_text(save: Callable[..., Path]) -> None:
    said = "Hm. <|start_query|>bm25<|end_query|><|start_documents|>(1)text<|end_documents|>"
    for log, form in (([_USER, {"role": "assistant", "content": said}], "auto"), (said, "tagged_text")):
        with pytest.raises(InputError, match=r"the tag <\|start_query\|>.*not understood|without a known tag"):
            read_traces(save(log), format=form)


def test_what_litellm_keeps_of_a_hosted_search_is_not_understood(save: Callable[..., Path]) -> None:
    kept = {"provider_specific_fields": {"web_search_results": [{"content": [_PAGE]}], "citations": []}}
    with pytest.raises(InputError, match=r"at /1/provider_specific_fields: field"):
        read_traces(save([_USER, {**_SAID, **kept}]))


@pytest.mark.parametrize("kind", ["web_search_call", "server_tool_use"])
def test_what_a_vendor_s_class_of_langchain_keeps_of_a_hosted_search_is_not_understood(
    save: Callable[..., Path], kind: str
) -> None:
    human = {"type": "human", "content": "?"}
    for message in (
        {"type": "ai", "content": "So.", "additional_kwargs": {"tool_outputs": [{"type": kind}]}},
        {"type": "ai", "content": [{"type": kind}]},
    ):
        with pytest.raises(InputError, match=r"at /1/.*is not understood"):
            read_traces(save([human, message]))


@pytest.mark.parametrize(
    ("content", "looks"),
    [
        ('{"type": "a", "sessionId": 1}\n{"type": "b"}\n', "JSON Lines of objects with the keys type, sessionId"),
        ('event: x\ndata: {"type": "odd"}\n\n', "a stream of server-sent events of the types odd"), ("SQLite format 3\0", "an SQLite database"),
    ],
)  # fmt: skip
def test_a_file_that_no_format_claims_is_refused_with_what_it_looks_like(
    save: Callable[..., Path], content: str, looks: str
) -> None:
    with pytest.raises(
        InputError, match=f"in no known trace format .it looks like.*{looks}.*the format jsonl, which takes"
    ):
        read_traces(save(content, "log.jsonl" if content.startswith("{") else "log.txt"))


def test_an_error_names_what_was_not_understood_before_it(save: Callable[..., Path]) -> None:
    call = {
        "role": "assistant",
        "content": [{"type": "tool-call", "toolCallId": "c1", "toolName": "webSearch", "input": {}}],
    }
    answer = {
        "role": "tool",
        "content": [{"type": "tool-result", "toolCallId": "c1", "output": {"type": "json", "value": [_PAGE]}}],
    }
    with pytest.raises(InputError, match=r"at /1/content/0: part of type 'tool-call' .*is not understood"):
        read_traces(save([_USER, call, answer]), format="openai_chat")
    answer = {"role": "tool", "content": 3}
    with pytest.raises(InputError, match=r"before it, at \S*log\.json, at /1/content/0: part of type 'tool-call'"):
        read_traces(save([_USER, call, answer]), format="openai_chat")
