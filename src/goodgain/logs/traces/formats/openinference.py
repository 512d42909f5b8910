"""Spans of OpenInference, OTel GenAI, Vercel AI SDK, Traceloop and Monocle: OTLP JSON, JSON Lines, tables of Phoenix.

A root span is a turn. Turns with the same session.id are a trace. A search belongs to the step of the latest model span
that started before the search under the same root. Parallel searches of a parent share a step. Searches before the first model
span are one step.

Lost: Results of searches whose contents were not captured, and of searches that appear only in the model's answer. Monocle keeps
only 100 characters of the results of most retrievals. All these searches are unrecorded.
Query id: `query_id`, `question_id` or `qid` in the metadata of the last turn's spans, else the session's or the trace's id.
Record: Capture contents (`recordOutputs: true`, `TRACELOOP_TRACE_CONTENT=true`). Save Phoenix's tables as Parquet or JSON Lines,
because CSV is refused. By default `get_spans_dataframe()` returns only 1,000 spans: set a higher limit.
Costs: Tokens (`llm.token_count.*`, `gen_ai.usage.*`) and cost (`llm.cost.total`) of model spans. Seconds also include tool spans.
"""

from collections.abc import Iterator
from typing import Any

from goodgain.errors import InputError
from goodgain.logs.traces.conversations import FileHead, Source, Trace
from goodgain.logs.traces.conversations.record_objects import any_object
from goodgain.logs.traces.conversations.span_turns import read_span_traces
from goodgain.logs.traces.conversations.spans import read_each, read_spans
from goodgain.logs.traces.expected_values import object_or_empty


def sniff(head: FileHead) -> bool:
    return _is_csv(head) or any(
        not {"resourceSpans", "resource_spans"}.isdisjoint(record)
        or _is_span(record)
        or any_object(record.get("spans", record.get("data")), _is_span)
        for record in head.objects
    )


def _is_span(record: dict[str, Any]) -> bool:
    has_id = not {"spanId", "span_id", "context.span_id"}.isdisjoint(record)
    has_more = not {"attributes", "startTimeUnixNano", "start_time", "parent_id"}.isdisjoint(record)
    return (has_id and has_more) or "span_id" in object_or_empty(record.get("context"))


def _is_csv(head: FileHead) -> bool:
    first, _, _ = head.text.partition("\n")
    return "context.span_id" in first and "span_kind" in first


def read(source: Source) -> Iterator[Trace]:
    if _is_csv(source.head):
        raise InputError(
            f"{source.path}: is a Phoenix table saved as CSV, which turns lists into Python text; save it as "
            "Parquet (`frame.to_parquet(...)`) or JSON Lines (`frame.to_json(..., orient='records', lines=True)`)"
        )
    return read_span_traces(source, read_each(source, source.documents(), read_spans))
