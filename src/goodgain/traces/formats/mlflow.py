"""MLflow traces: `Trace.to_json()`, with `info` and `data.spans`, of versions 2 and 3; one, a list, or one a line.

A trace is a turn, and a session joins turns. A search belongs to the step of the latest span of a model that started
before it; searches before the first one are one step.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from goodgain.traces.input.checks import expect_object, unexpected_value
from goodgain.traces.input.file_head import FileHead
from goodgain.traces.input.sources import Source
from goodgain.traces.model import Trace
from goodgain.traces.otel.searches import read_span_traces
from goodgain.traces.otel.spans import Span, read_spans
from goodgain.traces.otel.vocabularies import decode

_SESSION = "mlflow.trace.session"
_REMEDY = "let the traced function return what it found: the span has no mlflow.spanOutputs"


def sniff(head: FileHead) -> bool:
    """Return whether there are objects with `info` and `data.spans`."""
    return any(_is_trace(record) for record in head.objects)


def _is_trace(record: dict[str, Any]) -> bool:
    data = record.get("data")
    return isinstance(record.get("info"), dict) and isinstance(data, dict) and "spans" in data


def read(source: Source) -> Iterator[Trace]:
    """Yield one trace a session; a trace without a session is one by itself."""
    return read_span_traces(source, _read_all(source), _REMEDY)


def _read_all(source: Source) -> Iterator[Span]:
    count = 0
    for value, at in source.documents():
        many = [(one, f"{at}/{index}") for index, one in enumerate(value)] if isinstance(value, list) else [(value, at)]
        for record, record_at in many:
            with source.handle_errors():
                for span in _read_trace(record, record_at, count):
                    yield span
                    count += 1


def _read_trace(value: Any, at: str, count: int) -> Iterator[Span]:
    record = expect_object(decode(value), at)
    info, data = expect_object(record.get("info"), f"{at}/info"), expect_object(record.get("data"), f"{at}/data")
    if not isinstance(data.get("spans"), list):
        raise unexpected_value(f"{at}/data/spans", "a list of spans", data.get("spans"))
    metadata: dict[str, Any] = {}
    for key in ("trace_metadata", "request_metadata", "tags"):
        found = info.get(key)
        if isinstance(found, list):  # as the REST API writes them
            found = {str(one.get("key")): one.get("value") for one in found if isinstance(one, dict)}
        metadata |= found if isinstance(found, dict) else {}
    for span in read_spans(data["spans"], f"{at}/data/spans", count):
        if not span.kind:
            span.unknown = "span without mlflow.spanType"
        if span.attributes.get("metadata") is None:
            span.attributes["metadata"] = metadata
        if span.attributes.get("session.id") is None:
            span.attributes["session.id"] = metadata.get(_SESSION)
        yield span
