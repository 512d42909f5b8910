"""Langfuse traces and observations: downloads of the UI, the API's answers, exports in JSON and JSON Lines.

A trace is a turn, and a session joins turns. A search belongs to the step of the latest GENERATION that started before
it; searches before the first one are one step.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from goodgain.traces.input.checks import as_word, expect_id, expect_list, expect_object, unexpected_value
from goodgain.traces.input.file_head import FileHead
from goodgain.traces.input.sources import Source
from goodgain.traces.model import Trace
from goodgain.traces.otel.searches import read_span_traces
from goodgain.traces.otel.spans import Span, read_nanoseconds
from goodgain.traces.otel.vocabularies import decode

#: The types of observations and the kind of span that each is. Old versions know the last two only: for these the name
#: decides.
_KINDS = {
    **{kind: kind for kind in ("AGENT", "TOOL", "CHAIN", "RETRIEVER", "EVALUATOR", "EMBEDDING", "GUARDRAIL")},
    "GENERATION": "LLM", "SPAN": "CHAIN", "EVENT": "CHAIN",
}  # fmt: skip
_BY_NAME = {"SPAN", "EVENT"}
#: Kinds of what a span does itself: one with any of these below it is not a search, whatever its name.
_WORK = {"TOOL", "RETRIEVER", "LLM"}
#: Lists and objects around observations nested deeper are refused, so that reading hostile logs ends.
_MAX_DEPTH = 20
_REMEDY = "export input and output too (fields=io of the API); downloads of the UI leave very large ones out"


def sniff(head: FileHead) -> bool:
    """Return whether there are observations, themselves or in traces or sessions."""
    return any(_holds_observations(record) for record in head.objects)


def _holds_observations(record: Any, depth: int = 3) -> bool:
    if not isinstance(record, dict) or not depth:
        return False
    if _is_observation(record):
        return True
    held = [
        one for key in ("observations", "traces", "data") if isinstance(record.get(key), list) for one in record[key]
    ]
    return any(_holds_observations(one, depth - 1) for one in held[:50])


def _is_observation(record: dict[str, Any]) -> bool:
    return (
        as_word(record.get("type")) in _KINDS
        and ("traceId" in record or "trace_id" in record)
        and ("parentObservationId" in record or "parent_observation_id" in record)
    )


def read(source: Source) -> Iterator[Trace]:
    """Yield one trace a session; a trace without a session is one by itself."""
    spans: list[Span] = []
    for value, at in source.documents():
        with source.handle_errors():
            spans += _read_value(source, value, at, {}, len(spans))
    _demote(spans)
    return read_span_traces(source, spans, _REMEDY)


def _read_value(
    source: Source, value: Any, at: str, trace: dict[str, Any], count: int, depth: int = _MAX_DEPTH
) -> list[Span]:
    """Read observations out of a list, session, answer of the API, trace, or observation."""
    if not depth:
        raise unexpected_value(at, f"observations at most {_MAX_DEPTH} deep in lists and objects", value)
    if isinstance(value, list):
        found: list[Span] = []
        for index, member in enumerate(value):
            found += _read_value(source, member, f"{at}/{index}", trace, count + len(found), depth - 1)
        return found
    record = expect_object(value, at)
    for key in ("traces", "data"):
        if isinstance(record.get(key), list):
            session = {"sessionId": record.get("id")} if key == "traces" else {}
            return _read_value(source, record[key], f"{at}/{key}", session, count, depth - 1)
    if "observations" in record:
        members = expect_list(record["observations"], f"{at}/observations")
        if any(isinstance(one, str) for one in members):
            raise unexpected_value(
                f"{at}/observations", "observations, each an object", members,
                "the list of traces has their ids only: get each trace, or export the observations",
            )  # fmt: skip
        whole = {**record, "sessionId": _get(record, "sessionId", "session_id") or trace.get("sessionId")}
        return _read_value(source, members, f"{at}/observations", whole, count, depth - 1)
    return [_read_observation(source, record, at, trace, count)]


def _get(record: dict[str, Any], camel: str, snake: str) -> Any:
    return record[camel] if camel in record else record.get(snake)


def _read_observation(source: Source, record: dict[str, Any], at: str, trace: dict[str, Any], order: int) -> Span:
    span_id = expect_id(record.get("id"), f"{at}/id")
    trace_id = expect_id(_get(record, "traceId", "trace_id"), f"{at}/traceId")
    if span_id is None or trace_id is None:
        raise unexpected_value(f"{at}/id", "the ids of the observation and of its trace", record.get("id"))
    name = record.get("name")
    span = Span(
        trace_id, span_id, expect_id(_get(record, "parentObservationId", "parent_observation_id"), f"{at}/parentObservationId"),
        name if isinstance(name, str) else "", "", read_nanoseconds(_get(record, "startTime", "start_time"), f"{at}/startTime"),
        0, order, {}, record.get("level") == "ERROR", at,
    )  # fmt: skip
    end = _get(record, "endTime", "end_time")
    span.end = read_nanoseconds(end, f"{at}/endTime") if end else 0
    kind = as_word(record.get("type"))
    span.kind = _KINDS.get(kind, kind)
    if kind in _BY_NAME and source.is_search(span.name):
        span.kind = "TOOL"
    if kind not in _KINDS:
        span.unknown = f"observation of type {kind!r}"
    span.attributes = _read_attributes(record, trace, by_name=kind in _BY_NAME)
    return span


def _read_attributes(record: dict[str, Any], trace: dict[str, Any], *, by_name: bool) -> dict[str, Any]:
    """Return the attributes of a span for an observation: what it was given and gave, session and metadata."""
    metadata: dict[str, Any] = {}
    for held in (trace.get("metadata"), record.get("metadata")):
        found = decode(held)
        metadata |= found if isinstance(found, dict) else {}
    session = _get(trace, "sessionId", "session_id") or _get(record, "sessionId", "session_id")
    attributes: dict[str, Any] = {"metadata": metadata, "session.id": session, "goodgain.by_name": by_name}
    for key in ("input", "output"):
        if record.get(key) not in (None, ""):
            attributes[f"{key}.value"] = decode(record[key])
    return attributes


def _demote(spans: list[Span]) -> None:
    """Make chains of the spans that are searches by name only, and have tools, retrievers or models below them."""
    by_id = {(span.trace_id, span.span_id): span for span in spans}
    for span in spans:
        if span.kind not in _WORK:
            continue
        seen = {span.span_id}
        above = by_id.get((span.trace_id, span.parent_id or ""))
        while above is not None and above.span_id not in seen:
            seen.add(above.span_id)
            if above.kind == "TOOL" and above.attributes.get("goodgain.by_name"):
                above.kind = "CHAIN"
            above = by_id.get((above.trace_id, above.parent_id or ""))
