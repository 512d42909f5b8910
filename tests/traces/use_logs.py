"""Logs of tools that vendors and programs run themselves, and of answers with structured citations, counted by hand."""

from __future__ import annotations

import json
from typing import NamedTuple

from .story import Json

A, B, C, D = (f"https://{name}.example.org/page" for name in "abcd")


class Counted(NamedTuple):
    """A log, the name of its file, and what is in it: opens and failed opens by document, and the documents cited."""

    format: str
    file: str
    log: Json
    opens: dict[str, int]
    failed: dict[str, int]
    cited: set[str]


def _call(name: str, number: int, **arguments: Json) -> Json:
    return {"id": f"c{number}", "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}


def _hits(*urls: str) -> list[Json]:
    return [{"url": url, "title": f"Title of {url}"} for url in urls]


def _lines(*records: Json) -> str:
    return "\n".join(map(json.dumps, records)) + "\n"


_RESPONSES = {"object": "response", "output": [
    {"type": "reasoning", "id": "r1", "summary": []},
    {"type": "web_search_call", "id": "w1", "status": "completed",
     "action": {"type": "search", "query": "q", "sources": [{"type": "url", "url": A}, {"type": "url", "url": B}]}},
    {"type": "reasoning", "id": "r2", "summary": []},
    {"type": "web_search_call", "id": "w2", "status": "completed", "action": {"type": "open_page", "url": f"{A}?utm_source=x"}},
    {"type": "web_search_call", "id": "w3", "status": "failed", "action": {"type": "open_page", "url": C}},
    {"type": "web_search_call", "id": "w4", "status": "completed", "action": {"type": "find_in_page", "url": A, "pattern": "x"}},
    {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "So it is.", "annotations": [
        {"type": "url_citation", "url": "http://www.b.example.org/page/", "title": "B"},
        {"type": "file_citation", "file_id": "file-7", "filename": "f.pdf", "index": 1}]}]},
]}  # fmt: skip

_ANTHROPIC = [{"role": "user", "content": "What?"}, {"role": "assistant", "content": [
    {"type": "text", "text": f"Not yet the answer: {D}"},
    {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "q"}},
    {"type": "web_search_tool_result", "tool_use_id": "s1",
     "content": [{"type": "web_search_result", "url": url, "title": "T"} for url in (A, B)]},
    {"type": "server_tool_use", "id": "s2", "name": "web_fetch", "input": {"url": A}},
    {"type": "web_fetch_tool_result", "tool_use_id": "s2", "content": {"type": "web_fetch_result", "url": A, "content": {
        "type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "All of it."}}}},
    {"type": "server_tool_use", "id": "s3", "name": "web_fetch", "input": {"url": C}},
    {"type": "web_fetch_tool_result", "tool_use_id": "s3",
     "content": {"type": "web_fetch_tool_result_error", "error_code": "url_not_accessible"}},
    {"type": "text", "text": "So it is, ", "citations": [{"type": "web_search_result_location", "url": B, "cited_text": "x"}]},
    {"type": "text", "text": "and so.", "citations": [
        {"type": "search_result_location", "source": A, "title": "A", "search_result_index": 0},
        {"type": "char_location", "document_index": 0, "document_title": "a document of the request"}]},
]}]  # fmt: skip

_GEMINI = {"candidates": [{
    "content": {"role": "model", "parts": [
        {"toolCall": {"toolType": "URL_CONTEXT", "id": "t1", "args": {"urls": [A, D]}}},
        {"toolResponse": {"toolType": "URL_CONTEXT", "id": "t1", "response": {"pages": 2}}},
        {"text": f"a thought on {C}", "thought": True}, {"text": "So it is."}]},
    "groundingMetadata": {
        "webSearchQueries": ["q"], "groundingChunks": [{"web": {"uri": url, "title": "T"}} for url in (A, B, C)],
        "groundingSupports": [{"segment": {"text": "So"}, "groundingChunkIndices": [1]}]},
}], "modelVersion": "gemini-x"}  # fmt: skip


def _session(kind: str, number: int, content: list[Json], **fields: Json) -> Json:
    message = {"role": kind, "content": content} | (
        {"id": f"m{number // 2}", "model": "m"} if kind == "assistant" else {}
    )
    parent = f"u{number - 1}" if number else None
    return {"uuid": f"u{number}", "parentUuid": parent, "sessionId": "s", "type": kind, "message": message} | fields


_CLAUDE_CODE = _lines(
    _session("user", 0, [{"type": "text", "text": "What?"}]),
    _session("assistant", 1, [{"type": "tool_use", "id": "c1", "name": "WebSearch", "input": {"query": "q"}}]),
    _session("user", 2, [{"type": "tool_result", "tool_use_id": "c1", "content": "Links: ..."}],
             toolUseResult={"query": "q", "results": [{"tool_use_id": "x", "content": _hits(A, B)}]}),
    _session("assistant", 3, [{"type": "tool_use", "id": "c2", "name": "WebFetch", "input": {"url": B, "prompt": "p"}}]),
    _session("user", 4, [{"type": "tool_result", "tool_use_id": "c2", "content": "It says so."}],
             toolUseResult={"bytes": 9, "code": 200, "result": "It says so.", "url": B}),
    _session("assistant", 5, [{"type": "tool_use", "id": "c3", "name": "WebFetch", "input": {"url": C, "prompt": "p"}}]),
    _session("user", 6, [{"type": "tool_result", "tool_use_id": "c3", "content": "Request failed", "is_error": True}]),
    _session("assistant", 7, [{"type": "text", "text": f"So it is ([B]({B}), *{D}*)."}]),
)  # fmt: skip


def _rollout(kind: str, **payload: Json) -> Json:
    return {"timestamp": "2026-01-01T00:00:00.000Z", "type": kind, "payload": payload}


def _web_run(call_id: str, asked: Json, told: str) -> list[Json]:
    named = {"namespace": "web", "name": "run", "arguments": json.dumps(asked)}
    output = [{"type": "input_text", "text": told}]
    return [
        _rollout("response_item", type="function_call", call_id=call_id, **named),
        _rollout("response_item", type="function_call_output", call_id=call_id, output=output),
    ]


_FOUND = f"A ({A})\n\ue200cite\ue202turn1search0\ue201 text\nB ({B})\n\ue200cite\ue202turn1search1\ue201 text"
_CODEX = _lines(
    _rollout("session_meta", id="s", cli_version="1"),
    _rollout("event_msg", type="user_message", message="What?"),
    *_web_run("c1", {"search_query": [{"q": "q"}]}, _FOUND),
    *_web_run("c2", {"open": [{"ref_id": "turn1search1"}]}, f"B ({B})\n\ue200cite\ue202turn2view0\ue201 the page"),
    _rollout("response_item", type="web_search_call", status="completed", action={"type": "open_page", "url": C}),
    _rollout("response_item", type="message", role="assistant",
             content=[{"type": "output_text", "text": f"So it is: {A}."}]),
)  # fmt: skip

_EXEC = _lines(
    {"type": "thread.started", "thread_id": "t"}, {"type": "turn.started"},
    {"type": "item.completed", "item": {"id": "i1", "type": "mcp_tool_call", "server": "s", "tool": "search",
     "arguments": {"query": "q"}, "result": {"content": [{"type": "text", "text": json.dumps(_hits(A))}]}, "status": "completed"}},
    {"type": "item.completed", "item": {"id": "i2", "type": "web_search", "query": "", "action": {"type": "open_page", "url": A}}},
    {"type": "item.completed", "item": {"id": "i3", "type": "web_search", "query": C}},
    {"type": "item.completed", "item": {"id": "i4", "type": "agent_message", "text": f"So it is: {C}"}},
)  # fmt: skip

_VERCEL = [{"role": "user", "parts": [{"type": "text", "text": "What?"}]}, {"role": "assistant", "parts": [
    {"type": "step-start"},
    {"type": "tool-search", "toolCallId": "c1", "state": "output-available", "input": {}, "output": _hits(A, B)},
    {"type": "tool-visit", "toolCallId": "c2", "state": "output-denied", "input": {"url": A}},
    {"type": "step-start"},
    {"type": "tool-web_search", "toolCallId": "c3", "state": "output-available", "providerExecuted": True, "input": {},
     "output": {"action": {"type": "openPage", "url": B}}},
    {"type": "text", "text": "So it is."}, {"type": "source-url", "sourceId": "s", "url": f"{B}/", "title": "B"},
]}]  # fmt: skip

_CHAT = [
    {"role": "user", "content": "What?"},
    {"role": "assistant", "content": f"I look at {D}.", "tool_calls": [_call("search", 1, query="q"), _call("browse", 2, url=D)]},
    {"role": "tool", "tool_call_id": "c1", "content": json.dumps(_hits(A, B))},
    {"role": "tool", "tool_call_id": "c2", "content": "404 Not Found"},
    {"role": "assistant", "content": None, "tool_calls": [_call("open_result", 3, index=2), _call("open_page", 4, cursor=1)]},
    {"role": "tool", "tool_call_id": "c3", "content": "B says so."},
    {"role": "tool", "tool_call_id": "c4", "content": ""},
    {"role": "assistant", "content": "So it is.", "annotations": [
        {"type": "url_citation", "url_citation": {"url": A, "title": "A", "start_index": 0, "end_index": 2}}]},
]  # fmt: skip

_STRANDS = [
    {"role": "user", "content": [{"text": "What?"}]},
    {"role": "assistant", "content": [{"toolUse": {"toolUseId": "c1", "name": "search", "input": {"query": "q"}}}]},
    {"role": "user", "content": [{"toolResult": {"toolUseId": "c1", "content": [{"json": _hits(A)}]}}]},
    {"role": "assistant", "content": [{"citationsContent": {
        "content": [{"text": "So it is."}], "citations": [{"title": "A", "location": {"web": {"url": A}}}]}}]},
]  # fmt: skip

_INSPECT = {"version": 2, "eval": {"task": "t", "model": "m"}, "samples": [{"id": "1", "epoch": 1, "messages": [
    {"role": "user", "content": "What?"},
    {"role": "assistant", "content": "", "tool_calls": [{"id": "c1", "function": "search", "arguments": {"query": "q"}}]},
    {"role": "tool", "tool_call_id": "c1", "function": "search", "content": json.dumps(_hits(A, B))},
    {"role": "assistant", "content": [
        {"type": "text", "text": f"Before: {D}"},
        {"type": "tool_use", "id": "c2", "tool_type": "web_fetch", "name": "web_fetch", "arguments": json.dumps({"url": B}),
         "result": "B says so."},
        {"type": "text", "text": "So it is.", "citations": [{"type": "url", "url": B, "title": "B", "cited_text": "so"}]}]},
]}]}  # fmt: skip

_VISIT = {"name": "visit", "arguments": {"url": [A, C], "goal": "facts"}}
_PAGES = (
    f"The useful information in {A} for user goal facts as follows: \n\nEvidence in page: \nA says so.\n\n"
    f"\n=======\nThe useful information in {C} for user goal facts as follows: \n\nEvidence in page: \n"
    "The provided webpage content could not be accessed. Please check the URL or file format.\n\n"
)
_TONGYI = json.dumps({"question": "What?", "messages": [
    {"role": "user", "content": "What?"},
    {"role": "assistant", "content": '<tool_call>{"name": "search", "arguments": {"query": ["q"]}}</tool_call>'},
    {"role": "user", "content": f"<tool_response>\n{json.dumps(_hits(A, B))}\n</tool_response>"},
    {"role": "assistant", "content": f"<think>Look.</think><tool_call>{json.dumps(_VISIT)}</tool_call>"},
    {"role": "user", "content": f"<tool_response>\n{_PAGES}\n</tool_response>"},
    {"role": "assistant", "content": f"<think>{D} may say so.</think>\n<answer>So it is ({A}).</answer>"},
]})  # fmt: skip

_JSONL = {"goodgain_trace": 1, "query_id": "q", "steps": [
    {"searches": [{"query": "q", "results": [{"doc_id": "d1"}, {"doc_id": "d2"}]}]},
    {"searches": [], "opens": ["d1", {"url": A}, {"doc_id": "d3", "error": "timed out"}]},
], "answer": "So it is.", "citations": ["d1", {"url": A}]}  # fmt: skip


def _entry(tool: str, arguments: Json, output: Json) -> Json:
    return {"type": "tool_call", "tool_name": tool, "arguments": json.dumps(arguments), "output": output}


_BROWSECOMP = {"metadata": {"model": "m"}, "query_id": "q", "tool_call_counts": {"search": 2, "get_document": 2}, "result": [
    _entry("search", {"query": "q"}, json.dumps([{"docid": "101"}, {"docid": "102"}, {"docid": "12"}])),
    {"type": "output_text", "output": "[102] is not in the final answer."},
    _entry("get_document", {"docid": "101"}, json.dumps({"docid": "101", "text": "All of it."})),
    _entry("get_document", {"docid": "999"}, None),
    _entry("search", {"query": "q2"}, "[]"),
    {"type": "output_text", "output": "So it is [101], 【12†L1-L4】, in [7] and [the year 1999]."},
]}  # fmt: skip

_SMOLAGENTS = [
    {"task": "What?"},
    {"step_number": 1, "tool_calls": [_call("web_search", 1, query="q")], "observations": f"## Search Results\n\n[A]({A})\nso"},
    {"step_number": 2, "tool_calls": [_call("visit_webpage", 2, url=A)], "observations": "A says so."},
    {"step_number": 3, "tool_calls": [_call("final_answer", 3, answer=f"So it is: {A}")], "observations": "So it is"},
]  # fmt: skip

_PYDANTIC = [
    {"kind": "request", "parts": [{"part_kind": "user-prompt", "content": "What?"}]},
    {"kind": "response", "parts": [{"part_kind": "tool-call", "tool_name": "search", "args": "{}", "tool_call_id": "c1"}]},
    {"kind": "request", "parts": [{"part_kind": "tool-return", "tool_name": "search", "content": _hits(A), "tool_call_id": "c1"}]},
    {"kind": "response", "parts": [
        {"part_kind": "tool-call", "tool_name": "final_result", "args": {"text": "So.", "sources": [A, D]}, "tool_call_id": "c2"}]},
    {"kind": "request", "parts": [
        {"part_kind": "tool-return", "tool_name": "final_result", "content": "Final result processed.", "tool_call_id": "c2"}]},
]  # fmt: skip


def _span(number: int, kind: str, **attributes: Json) -> Json:
    return {
        "name": kind.lower(), "context": {"trace_id": f"0x{1:032x}", "span_id": f"0x{number:016x}"},
        "parent_id": f"0x{1:016x}" if number > 1 else None, "start_time": f"2026-01-01T00:00:0{number}Z",
        "attributes": {"openinference.span.kind": kind, **attributes},
    }  # fmt: skip


_SAID = {"llm.output_messages.0.message.role": "assistant", "llm.output_messages.0.message.content": f"So it is: {B}"}
_SPANS = _lines(
    _span(1, "AGENT", **{"input.value": "What?"}),
    _span(2, "TOOL", **{"tool.name": "search", "input.value": '{"query": "q"}', "output.value": json.dumps(_hits(A, B))}),
    _span(3, "TOOL", **{"tool.name": "fetch_page", "input.value": f"{{'url': '{A}'}}", "output.value": "A says so."}),
    _span(4, "LLM", **_SAID),
)  # fmt: skip

HOSTED = [
    Counted("openai_responses", "q.json", _RESPONSES, {A: 1, C: 1}, {C: 1}, {B, "file-7"}),
    Counted("anthropic", "q.json", _ANTHROPIC, {A: 1, C: 1}, {C: 1}, {A, B}),
    Counted("gemini", "q.json", _GEMINI, {A: 1, D: 1}, {}, {B}),
    Counted("claude_code", "q.jsonl", _CLAUDE_CODE, {B: 1, C: 1}, {C: 1}, {B, D}),
    Counted("codex", "q.jsonl", _CODEX, {B: 1, C: 1}, {}, {A}),
    Counted("codex", "exec.jsonl", _EXEC, {A: 1, C: 1}, {}, {C}),
    Counted("vercel_ai", "q.json", _VERCEL, {B: 1}, {}, {B}),
    Counted("openai_chat", "q.json", _CHAT, {D: 1, A: 1}, {D: 1, A: 1}, {A}),
    Counted("strands", "q.json", _STRANDS, {}, {}, {A}),
    Counted("inspect_ai", "q.json", _INSPECT, {B: 1}, {}, {B}),
    Counted("tagged_text", "q.jsonl", _TONGYI, {A: 1, C: 1}, {C: 1}, {A}),
    Counted("jsonl", "q.jsonl", _JSONL, {"d1": 1, A: 1, "d3": 1}, {"d3": 1}, {"d1", A}),
    Counted("browsecomp_plus", "q.json", _BROWSECOMP, {"101": 1, "999": 1}, {"999": 1}, {"101", "12"}),
    Counted("smolagents", "q.json", _SMOLAGENTS, {A: 1}, {}, {A}),
    Counted("pydantic_ai", "q.json", _PYDANTIC, {}, {}, {A, D}),
    Counted("openinference", "q.jsonl", _SPANS, {A: 1}, {}, {B}),
]
