"""MLflow traces as `Trace.to_json()` writes them (versions 2 and 3): one trace, a list, or one trace per line.

An MLflow trace is a turn. A session is one conversation, or one per query id. A search belongs to the step of the latest model
span that started before the search. Parallel searches of a parent share a step. Searches before any model span are one step.

Lost: Results that a traced search function does not return. If the function returns nothing, the search counts as unrecorded.
Query id: `query_id`, `question_id` or `qid` in the tags or metadata, else the session's id, else the trace's id.
Costs: Seconds of spans; tokens are not read.
"""

from collections.abc import Iterator
from typing import Any

from goodgain.logs.traces.conversations import FileHead, Source, Trace
from goodgain.logs.traces.conversations.record_objects import read_records, walk_list
from goodgain.logs.traces.conversations.span_turns import read_span_traces
from goodgain.logs.traces.conversations.span_vocabularies import decode
from goodgain.logs.traces.conversations.spans import OUTCOMES, Span, read_each, read_spans
from goodgain.logs.traces.expected_values import expect_object, find_outcomes, object_or_empty

_REMEDY = "let the traced function return what it found: the span has no mlflow.spanOutputs"


def sniff(head: FileHead) -> bool:
    records = (record for record in head.objects if isinstance(record.get("info"), dict))
    return any("spans" in object_or_empty(record.get("data")) for record in records)


def read(source: Source) -> Iterator[Trace]:
    return read_span_traces(source, read_each(source, read_records(source), _read_trace), _REMEDY)


def _read_trace(source: Source, value: Any, at: str) -> Iterator[Span]:
    """Yield the spans of a trace. Those without a session or metadata of their own get the trace's."""
    record = expect_object(decode(value), at)
    info, data = (expect_object(record.get(key), f"{at}/{key}") for key in ("info", "data"))
    walk_list(data, "spans", f"{at}/data")
    metadata: dict[str, Any] = {}

    for key in ("trace_metadata", "request_metadata", "tags"):
        values = info.get(key)
        if isinstance(values, list):  # as the REST API writes them
            values = {str(pair.get("key")): pair.get("value") for pair in values if isinstance(pair, dict)}
        metadata |= object_or_empty(values)

    for span in read_spans(source, data["spans"], f"{at}/data/spans"):
        if not span.kind:
            span.unknown = "span without mlflow.spanType"
        for name, given in (("metadata", metadata), ("session.id", metadata.get("mlflow.trace.session"))):
            if span.attributes.get(name) is None:
                span.attributes[name] = given
        span.attributes[OUTCOMES] = find_outcomes(info)
        yield span
