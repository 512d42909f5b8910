"""Langfuse traces and observations from downloads of the UI, answers of the API, or exports in JSON and JSON Lines.

A root observation is a turn. A session is one trace, or one trace per query id. A search belongs to the step of the latest
GENERATION that started before the search. Parallel searches of a parent share a step. Searches before any GENERATION are a step.

Lost: Very large outputs: downloads from the UI omit such outputs. A search without output counts as unrecorded.
Query id: `query_id`, `question_id` or `qid` in the metadata, else the session's id, else the trace's id.
Record: Export JSON, not CSV, and ask the API for `fields=io`.
Costs: Seconds of observations; tokens and prices are not read.
"""

from collections.abc import Iterator
from typing import Any

from goodgain.logs.dedup.document_types import snake_case
from goodgain.logs.traces.conversations import FileHead, Source, Trace
from goodgain.logs.traces.conversations.record_objects import get_either, text_or_none
from goodgain.logs.traces.conversations.span_turns import read_span_traces
from goodgain.logs.traces.conversations.span_vocabularies import BY_ITS_NAME, BY_NAME, LANGFUSE_KINDS, decode, read_kind
from goodgain.logs.traces.conversations.spans import OUTCOMES, Span, iterate_ancestors, read_nanoseconds
from goodgain.logs.traces.expected_values import (
    as_word,
    expect_id,
    expect_list,
    expect_object,
    find_outcomes,
    object_or_empty,
    unexpected_value,
)

#: A limit against malicious logs: observations nested deeper in lists and objects are refused.
_MAX_DEPTH = 20
_REMEDY = "export input and output too (fields=io of the API); downloads of the UI leave very large ones out"
_IDS_ONLY = "the list of traces has their ids only: get each trace, or export the observations"


def sniff(head: FileHead) -> bool:
    return any(map(_holds_observations, head.objects))


def _holds_observations(record: Any, depth: int = 3) -> bool:
    """Return whether a record is an observation of Langfuse, or holds some in its lists, at most two levels down."""
    if not isinstance(record, dict) or not depth:
        return False
    lists = (record.get(key) for key in ("observations", "traces", "data"))
    inner = (member for held in lists if isinstance(held, list) for member in held[:50])
    has_ids = all(key in record or snake_case(key) in record for key in ("traceId", "parentObservationId"))
    is_observation = has_ids and as_word(record.get("type")) in LANGFUSE_KINDS
    return is_observation or any(_holds_observations(member, depth - 1) for member in inner)


def read(source: Source) -> Iterator[Trace]:
    """Yield the traces of all observations in a file. A tool around another tool, retriever or model is not a search by name."""
    spans: list[Span] = []
    for value, at in source.documents():
        with source.handle_errors():
            spans += [*_read_value(source, value, at, {})]

    by_id = {(span.trace_id, span.span_id): span for span in spans}
    # A span around a tool, retriever or model is not a search, even if its name is that of a search.
    deciding = [span for span in spans if span.kind in ("TOOL", "RETRIEVER", "LLM")]
    for span in deciding:
        for above in iterate_ancestors(span, by_id):
            if above.kind == "TOOL" and above.attributes.get(BY_NAME) and source.is_search(above.name):
                above.kind = "CHAIN"

    _unite_copies(spans, source)
    return read_span_traces(source, spans, _REMEDY)


def _unite_copies(spans: list[Span], source: Source) -> None:
    """If several integrations recorded one search, count only the longest observation.

    Copies have the same input and output. The time of the longest copy includes the times of the other copies. Observations
    with the same parent, name and type are not copies.
    """
    copies: dict[tuple[str, str], list[Span]] = {}
    for span in sorted(spans, key=lambda span: span.start - span.end):
        is_search = span.kind == "RETRIEVER" or (span.kind == "TOOL" and source.is_search(span.name))
        output = span.attributes.get("output.value")
        if output is None or not is_search:
            continue

        same = copies.setdefault((span.trace_id, repr((span.attributes.get("input.value"), output))), [])
        around = [copy for copy in same if copy.start <= span.start and span.end <= copy.end]
        origin = span.parent_id, span.name, span.kind
        if any((copy.parent_id, copy.name, copy.kind) != origin for copy in around):
            span.kind = "CHAIN"
            del span.attributes["output.value"]
        else:
            same.append(span)


def _read_value(source: Source, value: Any, at: str, trace: dict[str, Any], depth: int = _MAX_DEPTH) -> Iterator[Span]:
    """Yield the observations in a value: an observation, a trace, a session, an answer of the API, or a list of these.

    `trace` holds fields of the trace around the observations; empty if there is none.
    """
    if not depth:
        raise unexpected_value(at, f"observations at most {_MAX_DEPTH} deep in lists and objects", value)
    if isinstance(value, list):
        for index, member in enumerate(value):
            yield from _read_value(source, member, f"{at}/{index}", trace, depth - 1)
        return

    record = expect_object(value, at)
    key = next((key for key in ("traces", "data") if isinstance(record.get(key), list)), "observations")
    if key not in record:
        yield _read_observation(source, record, at, trace)
        return

    if key == "observations":
        if any(isinstance(text, str) for text in expect_list(record[key], f"{at}/{key}")):
            raise unexpected_value(f"{at}/{key}", "observations, each an object", record[key], _IDS_ONLY)
        # Downloads of the UI have the trace beside its observations.
        record = {**object_or_empty(record.get("trace")), **record}
        session = get_either(record, "sessionId") or trace.get("sessionId")
        trace = {**record, "sessionId": session, OUTCOMES: find_outcomes(record)}
    else:
        trace = {"sessionId": record.get("id")} if key == "traces" else {}

    yield from _read_value(source, record[key] or [], f"{at}/{key}", trace, depth - 1)


def _read_observation(source: Source, record: dict[str, Any], at: str, trace: dict[str, Any]) -> Span:
    """Return an observation as a span. Metadata of the observation come before those of the trace."""
    span_id = expect_id(record.get("id"), f"{at}/id")
    trace_id = expect_id(get_either(record, "traceId"), f"{at}/traceId")
    parent = expect_id(get_either(record, "parentObservationId"), f"{at}/parentObservationId")
    if span_id is None or trace_id is None:
        raise unexpected_value(f"{at}/id", "the ids of the observation and of its trace", record.get("id"))

    name = text_or_none(record.get("name")) or ""
    kind = as_word(record.get("type"))
    start = get_either(record, "startTime")
    end = get_either(record, "endTime")
    held = [object_or_empty(decode(holder.get("metadata"))) for holder in (trace, record)]
    metadata = {**held[0], **held[1]}
    session = get_either(trace, "sessionId") or get_either(record, "sessionId")
    given = {f"{key}.value": decode(record[key]) for key in ("input", "output") if record.get(key) not in (None, "")}
    of_trace = {"metadata": metadata, "session.id": session, OUTCOMES: trace.get(OUTCOMES, {})}
    span = Span(
        trace_id, span_id, parent, name, read_kind(kind, LANGFUSE_KINDS, name, source.is_tool),
        read_nanoseconds(start, f"{at}/startTime"), read_nanoseconds(end, f"{at}/endTime") if end else 0,
        {**of_trace, BY_NAME: LANGFUSE_KINDS.get(kind) == BY_ITS_NAME, **given}, record.get("level") == "ERROR", at,
    )  # fmt: skip
    span.attributes["llm.model_name"] = record.get("model") or record.get("provided_model_name")
    if kind not in LANGFUSE_KINDS:
        span.unknown = f"observation of type {kind!r}"
    return span
