"""Reads OpenTelemetry spans from OTLP JSON and from dumps of OpenInference and Phoenix."""

import base64
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from goodgain.files.json_text import parse_if_json
from goodgain.logs.traces.conversations.record_objects import walk_objects
from goodgain.logs.traces.conversations.span_vocabularies import Attributes, collect_objects, translate
from goodgain.logs.traces.expected_values import (
    expect_list,
    expect_object,
    expect_text,
    find_outcomes,
    object_or_empty,
    objects_in,
    parse_time,
    unexpected_value,
)
from goodgain.logs.traces.input.sources import Source

_KINDS = {
    **dict.fromkeys(("chat", "text_completion", "generate_content", "call_llm"), "LLM"),
    "retrieval": "RETRIEVER",
    "execute_tool": "TOOL",
    "invoke_agent": "AGENT",
    "embeddings": "EMBEDDING",
    "vector_db_retrieve": "RETRIEVER",
}
#: Kinds of OpenInference, operations of the GenAI conventions, and Monocle's turn. Only the first four can hold a search.
KNOWN_KINDS = {
    *("RETRIEVER", "TOOL", "RERANKER", "LLM", "CHAIN", "AGENT", "EMBEDDING", "GUARDRAIL", "EVALUATOR", "PROMPT"),
    *("CREATE_AGENT", "INVOKE_WORKFLOW", "SEARCH_MEMORY", "CREATE_MEMORY", "UPDATE_MEMORY", "UPSERT_MEMORY"),
    *("DELETE_MEMORY", "CREATE_MEMORY_STORE", "DELETE_MEMORY_STORE", "PLAN", "TURN"),
}
#: Kinds that say nothing about searches: OpenTelemetry's own, and the defaults of instrumentation.
_EMPTY_KINDS = {"", "UNKNOWN", "UNSPECIFIED", "INTERNAL", "SERVER", "CLIENT", "PRODUCER", "CONSUMER"}
#: Attributes that only spans of models, tools, retrievers and rerankers have.
_SEARCH_ATTRIBUTES = re.compile(
    r"(?:attributes\.)?(?:llm|tool|retrieval|reranker|gen_ai|ai|mlflow|langfuse|db\.vector)(?:\..|$)|.*(?:tool_?call|retriev)",
    re.IGNORECASE,
)
#: The codes of a status that mean a failure; 2 is STATUS_CODE_ERROR in OTLP.
_FAILED = (2, "ERROR", "error", "STATUS_CODE_ERROR", "StatusCode.ERROR")
_SCOPES = ("scopeSpans", "scope_spans", "instrumentationLibrarySpans")
#: The smallest number that is a time in nanoseconds, microseconds, milliseconds or seconds, and the nanoseconds of each
#: unit. From 1973 on the unit is unambiguous. Smaller numbers are nanoseconds.
_UNITS = ((10**17, 1), (10**14, 1_000), (10**11, 1_000_000), (10**8, 1_000_000_000))
#: An id in hexadecimal: of 8 or 16 bytes, or a UUID.
_HEX = re.compile(r"[0-9a-f]{16}|[0-9a-f]{32}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
#: A limit against malicious logs: attributes nested deeper are dropped, lists of spans refused.
_MAX_DEPTH = 20

#: Internal attribute: the outcomes of a trace. No log uses this name.
OUTCOMES = "goodgain.outcomes"


class Span(msgspec.Struct):
    trace_id: str
    span_id: str
    parent_id: str | None
    name: str
    kind: str  # one of `KNOWN_KINDS`; empty if the span has none
    start: int  # in nanoseconds
    end: int  # 0 if the log lacks it
    attributes: Attributes
    failed: bool
    at: str
    unknown: str = ""  # what is not understood in the span; empty if nothing

    def get(self, name: str) -> Any:
        """Return the value of a dotted or nested attribute, or None if the span lacks the attribute."""
        if name in self.attributes:
            return self.attributes[name]
        if (flat := f"attributes.{name}") in self.attributes:
            return self.attributes[flat]
        value: Any = self.attributes
        for key in name.split("."):
            value = object_or_empty(value).get(key)
        return value

    def get_objects(self, name: str) -> list[Attributes]:
        """Return the objects in a list attribute (see `collect_objects`). The attribute may be JSON text."""
        nested = parse_if_json(self.get(name))
        return collect_objects({name: nested} if isinstance(nested, list) else self.attributes, name)


def read_spans(source: Source, value: Any, at: str, depth: int = _MAX_DEPTH) -> Iterator[Span]:
    """Yield the spans in a value: OTLP JSON, one span, a list of spans, or an object with a list of spans."""
    if isinstance(value, list) and depth:
        for index, member in enumerate(value):
            yield from read_spans(source, member, f"{at}/{index}", depth - 1)
        return

    record = expect_object(value, at)
    if (resources := next((key for key in ("resourceSpans", "resource_spans") if key in record), None)) is not None:
        for resource, resource_at in walk_objects(record[resources], f"{at}/{resources}"):
            if (scopes := next((name for name in _SCOPES if name in resource), None)) is None:
                raise unexpected_value(f"{resource_at}/scopeSpans", "a list of scopes with spans", None)
            for scope, scope_at in walk_objects(resource[scopes], f"{resource_at}/{scopes}"):
                for span, span_at in walk_objects(scope.get("spans"), f"{scope_at}/spans"):
                    yield _make_span(source, span, span_at, otlp=True)
    elif (key := next((key for key in ("spans", "data") if isinstance(record.get(key), list)), None)) is not None:
        for span, span_at in walk_objects(record[key], f"{at}/{key}"):
            yield _make_span(source, span, span_at, otlp=False)
    else:
        yield _make_span(source, record, at, otlp="startTimeUnixNano" in record)


def read_each(
    source: Source, values: Iterable[tuple[Any, str]], read: Callable[[Source, Any, str], Iterator[Span]]
) -> Iterator[Span]:
    for value, at in values:
        with source.handle_errors():
            yield from read(source, value, at)


def iterate_ancestors(span: Span, by_id: Mapping[tuple[str, str], Span]) -> Iterator[Span]:
    """Yield the ancestors of a span, the parent first. Stop at a cycle: damaged logs may have cycles."""
    seen = {span.span_id}
    at = by_id.get((span.trace_id, span.parent_id or ""))
    while at is not None and at.span_id not in seen:
        seen.add(at.span_id)
        yield at
        at = by_id.get((at.trace_id, at.parent_id or ""))


def _get_first(raw: dict[str, Any], *keys: str) -> Any:
    return next((raw[key] for key in keys if key in raw), None)


def _make_span(source: Source, raw: dict[str, Any], at: str, *, otlp: bool) -> Span:
    """Return a span from any of the forms in which logs write spans.

    `unknown` says what is not understood, if it may be a search.
    """
    ids = {**raw, **raw["context"]} if isinstance(raw.get("context"), dict) else raw
    parent = _get_first(raw, "parent_id", "parentSpanId", "parent_span_id", "parentId", "parent")
    if isinstance(parent, dict):  # its context
        parent = parent.get("span_id")

    attributes = raw.get("attributes")
    if isinstance(attributes, list) or (otlp and attributes is None):
        attributes = _read_otlp_attributes(attributes, f"{at}/attributes", _MAX_DEPTH)
    elif attributes is None:
        attributes = {key: value for key, value in raw.items() if key.startswith("attributes.")} or None

    if isinstance(attributes, dict) and "span.type" in attributes:  # Monocle keeps inputs and outputs in events
        attributes = {**_read_events(raw.get("events"), f"{at}/events"), **attributes}
    start = _get_first(raw, "startTimeUnixNano", "start_time", "start_time_unix_nano", "startTime")
    end = _get_first(raw, "endTimeUnixNano", "end_time", "end_time_unix_nano", "endTime")
    name = _get_first(raw, "name", "span_name")
    status = _get_first(raw, "status", "status_code")
    code = status.get("status_code", status.get("code")) if isinstance(status, dict) else status
    span = Span(
        _read_id(_get_first(ids, "trace_id", "traceId", "context.trace_id"), f"{at}/trace_id"),
        _read_id(_get_first(ids, "span_id", "spanId", "context.span_id"), f"{at}/span_id"),
        _read_id(parent, f"{at}/parent_id") if parent not in (None, "") else None,
        name if isinstance(name, str) else "", "", read_nanoseconds(start, f"{at}/start_time"),
        read_nanoseconds(end, f"{at}/end_time") if end else 0,
        dict(expect_object(attributes, f"{at}/attributes")), code in _FAILED, at,
    )  # fmt: skip
    if span.parent_id is None:
        span.attributes[OUTCOMES] = find_outcomes(raw)

    span.kind = _read_kind(source, span, raw)
    if span.kind in KNOWN_KINDS:
        return span

    if span.kind.removeprefix("SPANKIND.").removeprefix("SPAN_KIND_") not in _EMPTY_KINDS:
        span.unknown = f"span of kind {span.kind!r}"
    elif (attribute := next(filter(_SEARCH_ATTRIBUTES.match, span.attributes), None)) is not None:
        span.unknown = f"span without a kind that has attributes of a model, tool or retriever ({attribute[:60]})"
    return span


def _read_kind(source: Source, span: Span, raw: dict[str, Any]) -> str:
    """Return the kind that the log states (OpenInference), else the kind of a GenAI operation, else that of a vendor's vocabulary.

    A vendor's kind also comes before a GenAI operation that is not in `_KINDS`.
    """
    translated = translate(span.attributes, span.name, source.is_tool)
    kind = span.get("openinference.span.kind") or raw.get("span_kind")
    if kind is not None:
        kind = expect_text(kind, f"{span.at}/attributes/openinference.span.kind").upper()
        if kind not in _EMPTY_KINDS:
            return kind
    operation = span.get("gen_ai.operation.name")
    if isinstance(operation, str) and not (translated and operation not in _KINDS):
        return _KINDS.get(operation, operation.upper())
    return translated


def _read_id(value: Any, at: str) -> str:
    """Convert the id of a trace or span to hexadecimal. Logs write ids as hexadecimal, `0x...`, base64 or whole numbers."""
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return f"{value:x}"
    if isinstance(value, str):
        text = value.removeprefix("0x").lower()
        if _HEX.fullmatch(text):
            return text.replace("-", "")
        with suppress(ValueError):
            decoded = base64.b64decode(value, validate=True)
            if len(decoded) in (8, 16):
                return decoded.hex()
    raise unexpected_value(at, "the id of a span or trace", value)


def read_nanoseconds(value: Any, at: str) -> int:
    """Convert ISO 8601 text, a datetime or a number to nanoseconds since 1970. The size of a number shows the unit."""
    if isinstance(value, datetime):
        value = value.isoformat()
    if isinstance(value, str) and value.isdecimal() and len(value) < 30:
        value = int(value)
    if isinstance(value, str) and (moment := parse_time(value)) is not None:
        return (moment - datetime.fromtimestamp(0, UTC)) // timedelta(microseconds=1) * 1000
    if (type(value) is int and value > 0) or (isinstance(value, float) and 1e8 < value < 1e20):
        return int(value * next((factor for first, factor in _UNITS if value >= first), 1))
    raise unexpected_value(at, "a time (nanoseconds, or ISO 8601)", value)


def _read_events(events: Any, at: str) -> Attributes:
    """Return the attributes of a span's events under the names `<event>.<attribute>`, such as `data.input.input`."""
    attributes_of_events: Attributes = {}
    for index, event in enumerate(objects_in(events)):
        attributes = event.get("attributes")
        if isinstance(attributes, list):
            attributes = _read_otlp_attributes(attributes, f"{at}/{index}/attributes", _MAX_DEPTH)
        if isinstance(attributes, dict):
            attributes_of_events |= {f"{event.get('name')}.{key}": value for key, value in attributes.items()}
    return attributes_of_events


def _read_otlp_attributes(pairs: Any, at: str, depth: int) -> Attributes:
    attributes: Attributes = {}
    for pair, pair_at in walk_objects(pairs, at):
        key = expect_text(pair.get("key"), f"{pair_at}/key")
        if "value" not in pair:
            raise unexpected_value(pair_at, "an attribute with a value", pair)
        attributes[key] = _read_otlp_value(pair["value"], f"{pair_at}/value", depth)
    return attributes


def _read_otlp_value(value: Any, at: str, depth: int) -> Any:
    """Return the Python value of an OTLP value such as `{"intValue": "3"}`. Values deeper than `depth` become None."""
    if value is None or not depth:
        return None
    pair: tuple[str, Any] = next(iter(expect_object(value, at).items()), ("stringValue", None))
    kind, held = pair
    name = kind.replace("_value", "Value")
    if name in ("stringValue", "boolValue", "doubleValue"):
        return held
    if name == "intValue":
        is_number = isinstance(held, str) and held.lstrip("-").isdecimal() and len(held) < 30
        return int(held) if is_number else held
    if name not in ("arrayValue", "kvlistValue"):
        raise unexpected_value(at, "a value of OTLP (stringValue, intValue ...)", value)

    values, at = expect_object(held, f"{at}/{kind}").get("values"), f"{at}/{kind}/values"
    if name == "kvlistValue":
        return _read_otlp_attributes(values, at, depth - 1)
    return [_read_otlp_value(member, at, depth - 1) for member in expect_list(values, at)]
