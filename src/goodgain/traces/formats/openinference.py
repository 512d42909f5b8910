"""OpenInference, OTel GenAI, Vercel AI SDK and Traceloop spans: OTLP JSON, JSON Lines of spans, tables of Phoenix.

A root span is a turn; turns with one session.id are a trace. A search belongs to the step of the latest model span
that started before it under the same root; searches before the first model span are one step.
"""

from __future__ import annotations

from collections.abc import Iterator

from goodgain.traces.input.file_head import FileHead
from goodgain.traces.input.sources import Source
from goodgain.traces.model import Trace
from goodgain.traces.otel.searches import read_span_traces
from goodgain.traces.otel.spans import Span, has_spans, read_spans


def sniff(head: FileHead) -> bool:
    """Return whether there are spans: `resourceSpans`, or objects with a span id."""
    return any(has_spans(record) for record in head.objects)


def read(source: Source) -> Iterator[Trace]:
    """Yield one trace a session; a root without a session is a trace by itself."""
    return read_span_traces(source, _read_all(source))


def _read_all(source: Source) -> Iterator[Span]:
    count = 0
    for value, at in source.documents():
        with source.handle_errors():
            for span in read_spans(value, at, count):
                yield span
                count += 1
