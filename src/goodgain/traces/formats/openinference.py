"""OpenInference, OTel GenAI, Vercel AI SDK, Traceloop, Monocle spans: OTLP JSON, JSON Lines of spans, tables of Phoenix.

A root span is a turn; turns with one session.id are a trace. A search belongs to the step of the latest model span
that started before it under the same root; searches before the first model span are one step.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from goodgain.errors import InputError
from goodgain.traces.input.file_head import FileHead
from goodgain.traces.input.sources import Source
from goodgain.traces.model import Trace
from goodgain.traces.otel.searches import read_span_traces
from goodgain.traces.otel.spans import Span, read_spans


def sniff(head: FileHead) -> bool:
    """Return whether there are spans: `resourceSpans`, or objects with a span id; or a table of Phoenix as CSV."""
    return _is_csv(head) or any(_has_spans(record) for record in head.objects)


def _has_spans(record: Any) -> bool:
    """Return whether an object is a span, or holds spans as OTLP or Phoenix do."""
    if not isinstance(record, dict):
        return False
    held = record.get("spans", record.get("data"))
    in_list = isinstance(held, list) and any(_is_span(span) for span in held)
    return "resourceSpans" in record or "resource_spans" in record or _is_span(record) or in_list


def _is_span(record: Any) -> bool:
    """Return whether an object is one span."""
    if not isinstance(record, dict):
        return False
    context = record.get("context")
    if isinstance(context, dict) and "span_id" in context:
        return True
    return ("spanId" in record or "span_id" in record or "context.span_id" in record) and (
        "attributes" in record or "startTimeUnixNano" in record or "start_time" in record or "parent_id" in record
    )


def _is_csv(head: FileHead) -> bool:
    first, _, _ = head.text.partition("\n")
    return "context.span_id" in first and "span_kind" in first


def read(source: Source) -> Iterator[Trace]:
    """Yield one trace a session; a root without a session is a trace by itself."""
    if _is_csv(source.head):
        raise InputError(
            f"{source.path}: is a table of Phoenix as CSV, which holds Python's notation in place of lists; save it as "
            "Parquet (`frame.to_parquet(...)`) or JSON Lines (`frame.to_json(..., orient='records', lines=True)`)"
        )
    return read_span_traces(source, _read_all(source))


def _read_all(source: Source) -> Iterator[Span]:
    count = 0
    for value, at in source.documents():
        with source.handle_errors():
            for span in read_spans(value, at, count):
                yield span
                count += 1
