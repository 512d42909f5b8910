"""OpenAI Agents SDK: exported traces and spans, one `export()` a line (`object` is `trace` or `trace.span`).

Steps are those of spans (see `openinference`): the searches after a span of the model belong to one step.

Lost: Results of hosted searches: the SDK exports no span for them. The user's question, unless spans of type `generation` have it.
Query id: `query_id`, `question_id` or `qid` in the metadata of the trace, else its `group_id`, else its id.
Record: A processor that writes `trace.export()` and `span.export()` as lines, with `trace_include_sensitive_data`.
Costs: Seconds of spans; tokens are not read.
"""

from collections.abc import Iterator
from typing import Any

from goodgain.logs.traces.conversations import FileHead, Source, Trace
from goodgain.logs.traces.conversations.messages import message_text
from goodgain.logs.traces.conversations.record_objects import Placed, read_records, text_or_none
from goodgain.logs.traces.conversations.span_turns import read_span_traces
from goodgain.logs.traces.conversations.spans import Span, read_nanoseconds
from goodgain.logs.traces.conversations.tool_calls import require_id
from goodgain.logs.traces.expected_values import as_word, expect_id, expect_object, objects_in

_KINDS = {
    "function": "TOOL",
    "generation": "LLM",
    "response": "LLM",
    "agent": "AGENT",
    "guardrail": "GUARDRAIL",
    **dict.fromkeys(
        ("handoff", "custom", "mcp_tools", "task", "turn", "transcription", "speech", "speech_group"), "CHAIN"
    ),
}
_REMEDY = "export spans with trace_include_sensitive_data: the log lacks inputs and outputs"


def sniff(head: FileHead) -> bool:
    return any(record.get("object") == "trace.span" and "span_data" in record for record in head.objects)


def read(source: Source) -> Iterator[Trace]:
    """Yield the traces of all spans in a file. Records of the kind `trace` have only metadata."""
    records: list[Placed] = []
    for value, at in read_records(source):
        with source.handle_errors():
            records.append((expect_object(value, at), at))

    traces: dict[str, dict[str, Any]] = {}
    spans = []
    for record, at in records:
        if record.get("object") == "trace":
            with source.handle_errors():
                traces[require_id(record, at, "id", "the id of a trace")] = record

    for record, at in records:
        if record.get("object") != "trace":
            with source.handle_errors():
                spans.append(_read_span(record, at, traces))

    return read_span_traces(source, spans, _REMEDY)


def _read_span(record: dict[str, Any], at: str, traces: dict[str, dict[str, Any]]) -> Span:
    """Make a span of a record. `traces` holds the records of the traces by id; a trace without a record has no metadata."""
    data = expect_object(record.get("span_data"), f"{at}/span_data")
    trace_id, span_id = (require_id(record, at, key, "an id") for key in ("trace_id", "id"))
    parent = expect_id(record.get("parent_id"), f"{at}/parent_id")
    start = read_nanoseconds(record.get("started_at"), f"{at}/started_at")
    end = read_nanoseconds(record["ended_at"], f"{at}/ended_at") if record.get("ended_at") else 0
    kind = as_word(data.get("type"))
    name = text_or_none(data.get("name")) or ""
    unknown = "" if kind in _KINDS else f"span of type {kind!r}"
    span = Span(
        trace_id,
        span_id,
        parent,
        name,
        _KINDS.get(kind, kind),
        start,
        end,
        {},
        record.get("error") is not None,
        at,
        unknown,
    )
    trace = traces.get(trace_id, {})
    span.attributes = {"metadata": trace.get("metadata"), "session.id": trace.get("group_id")}
    if data.get("input") is not None:
        span.attributes["input.value"] = data["input"]
    if data.get("output") is not None:
        is_answer = span.kind == "LLM" and isinstance(data["output"], list)
        span.attributes["output.value"] = _read_answer(data["output"]) if is_answer else data["output"]
    return span


def _read_answer(messages: list[Any]) -> str:
    return "\n".join(message_text(message.get("content")) for message in objects_in(messages))
