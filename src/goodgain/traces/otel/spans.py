"""OpenTelemetry spans in the dumps people have, as one record: what it did, when, below which span, with what.

Only what searches need is kept of a span; bodies of model calls are dropped as soon as they are read.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import msgspec

from goodgain.traces.input.checks import a_list, a_text, an_object, wrong
from goodgain.traces.input.json_text import NotJSONError, loads

__all__ = ["OTHER_TOOL_NAMES", "Attributes", "Span", "is_span", "is_spans", "spans_of"]

Attributes = dict[str, Any]

_INDEX = re.compile(r"\d{1,5}")
_KINDS = {
    **dict.fromkeys(("chat", "text_completion", "generate_content"), "LLM"),
    "retrieval": "RETRIEVER",
    "execute_tool": "TOOL",
    "invoke_agent": "AGENT",
    "embeddings": "EMBEDDING",
    "vector_db_retrieve": "RETRIEVER",
}
#: Attributes by which other vocabularies name a tool. Such a tool's answer is not read.
OTHER_TOOL_NAMES = ("ai.toolCall.name", "traceloop.entity.name")
#: Traceloop's kinds of spans that hold no answer of a tool.
_TRACELOOP = {"tool": "TOOL", "workflow": "CHAIN", "task": "CHAIN", "agent": "AGENT", "session": "CHAIN"}
#: Kinds of OpenInference, and operations of the GenAI conventions, of which none but the first four holds results.
_KNOWN = {
    *("RETRIEVER", "TOOL", "RERANKER", "LLM", "CHAIN", "AGENT", "EMBEDDING", "GUARDRAIL", "EVALUATOR", "PROMPT"),
    *("CREATE_AGENT", "INVOKE_WORKFLOW", "SEARCH_MEMORY", "CREATE_MEMORY", "UPDATE_MEMORY", "UPSERT_MEMORY"),
    *("DELETE_MEMORY", "CREATE_MEMORY_STORE", "DELETE_MEMORY_STORE", "PLAN"),
}
#: Kinds that say nothing: those of OpenTelemetry itself, and that of instrumentation that does not know.
_SILENT = {"", "UNKNOWN", "UNSPECIFIED", "INTERNAL", "SERVER", "CLIENT", "PRODUCER", "CONSUMER"}
#: Attributes that only spans of models, tools, retrievers and rerankers have, in the vocabularies there are.
_TELLING = re.compile(
    r"(?:attributes\.)?(?:llm|tool|retrieval|reranker|gen_ai|ai|mlflow|langfuse|db\.vector)(?:\..|$)|.*(?:tool_?call|retriev)",
    re.IGNORECASE,
)
_HEX = re.compile(r"[0-9a-f]{16}|[0-9a-f]{32}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_DEEPEST = 20


class Span(msgspec.Struct):
    """One span.

    Attributes:
        kind: LLM, RETRIEVER, TOOL, RERANKER, CHAIN, AGENT ..., empty where the span does not say.
        start, end: nanoseconds; the end is 0 where the log lacks it.
        order: its place in the file.
        unknown: what of it is not understood, empty where all is.
    """

    trace_id: str
    span_id: str
    parent_id: str | None
    name: str
    kind: str
    start: int
    end: int
    order: int
    attributes: Attributes
    failed: bool
    at: str
    unknown: str = ""

    def get(self, name: str) -> Any:
        """The value of an attribute, be they flat with dots or nested; None where there is none."""
        if name in self.attributes:
            return self.attributes[name]
        if (flat := f"attributes.{name}") in self.attributes:
            return self.attributes[flat]
        value: Any = self.attributes
        for key in name.split("."):
            value = value.get(key) if isinstance(value, dict) else None
        return value

    def all(self, name: str) -> list[Attributes]:
        """The objects that `name.0.x`, `name.1.x` ... describe, or that stand as a list under `name`, keys flat."""
        nested = self.get(name)
        if isinstance(nested, str):
            try:
                nested = loads(nested)
            except NotJSONError:
                nested = None
        if isinstance(nested, list):
            return [_flat(member) for member in nested if isinstance(member, dict)]
        found: dict[int, Attributes] = {}
        for key, value in self.attributes.items():
            prefix, _, rest = key.removeprefix("attributes.").partition(f"{name}.")
            index, _, field = rest.partition(".")
            if not prefix and _INDEX.fullmatch(index) and field:
                found.setdefault(int(index), {})[field] = value
        return [found[index] for index in sorted(found)]


def _flat(value: Attributes, prefix: str = "", depth: int = _DEEPEST) -> Attributes:
    """Nested objects as one, their keys joined by dots."""
    flat: Attributes = {}
    for key, member in value.items():
        if isinstance(member, dict) and depth and key != "metadata":
            flat.update(_flat(member, f"{prefix}{key}.", depth - 1))
        else:
            flat[f"{prefix}{key}"] = member
    return flat


def is_spans(record: Any) -> bool:
    """Whether an object is a span, or holds spans as OTLP or Phoenix do."""
    if not isinstance(record, dict):
        return False
    held = record.get("spans", record.get("data"))
    in_list = isinstance(held, list) and any(is_span(span) for span in held)
    return "resourceSpans" in record or "resource_spans" in record or is_span(record) or in_list


def is_span(record: Any) -> bool:
    """Whether an object is one span."""
    if not isinstance(record, dict):
        return False
    context = record.get("context")
    if isinstance(context, dict) and "span_id" in context:
        return True
    return ("spanId" in record or "span_id" in record or "context.span_id" in record) and (
        "attributes" in record or "startTimeUnixNano" in record or "start_time" in record or "parent_id" in record
    )


def spans_of(value: Any, at: str, first: int = 0) -> Iterator[Span]:
    """The spans a document holds, one or many, in the file's order."""
    for order, (raw, span_at, otlp) in enumerate(_raw_spans(value, at), start=first):
        yield _span(an_object(raw, span_at), span_at, order, otlp=otlp)


def _raw_spans(value: Any, at: str) -> Iterator[tuple[Any, str, bool]]:
    if isinstance(value, list):
        for index, member in enumerate(value):
            yield from _raw_spans(member, f"{at}/{index}")
        return
    record = an_object(value, at)
    resources_key = next((key for key in ("resourceSpans", "resource_spans") if key in record), None)
    if resources_key is None:
        key = next((key for key in ("spans", "data") if isinstance(record.get(key), list)), None)
        if key is None:
            yield record, at, "startTimeUnixNano" in record
            return
        for index, span in enumerate(record[key]):
            yield span, f"{at}/{key}/{index}", False
        return
    for r, resource in enumerate(a_list(record[resources_key], f"{at}/{resources_key}")):
        resource_at = f"{at}/{resources_key}/{r}"
        scopes = an_object(resource, resource_at)
        key = next((key for key in ("scopeSpans", "scope_spans", "instrumentationLibrarySpans") if key in scopes), None)
        if key is None:
            raise wrong(f"{resource_at}/scopeSpans", "a list of scopes with spans", None)
        for s, scope in enumerate(a_list(scopes[key], f"{resource_at}/{key}")):
            scope_at = f"{resource_at}/{key}/{s}"
            for index, span in enumerate(a_list(an_object(scope, scope_at).get("spans"), f"{scope_at}/spans")):
                yield span, f"{scope_at}/spans/{index}", True


def _span(raw: dict[str, Any], at: str, order: int, *, otlp: bool) -> Span:
    context = raw["context"] if isinstance(raw.get("context"), dict) else {}
    trace_id = context.get("trace_id", raw.get("traceId", raw.get("trace_id", raw.get("context.trace_id"))))
    span_id = context.get("span_id", raw.get("spanId", raw.get("span_id", raw.get("context.span_id"))))
    parent = raw.get("parent_id", raw.get("parentSpanId", raw.get("parent_span_id", raw.get("parentId"))))
    attributes = raw.get("attributes")
    if isinstance(attributes, list) or (otlp and attributes is None):
        attributes = _otlp_attributes(attributes, f"{at}/attributes", _DEEPEST)
    elif attributes is None:
        attributes = {key: value for key, value in raw.items() if key.startswith("attributes.")} or None
    start = raw.get("startTimeUnixNano", raw.get("start_time", raw.get("start_time_unix_nano", raw.get("startTime"))))
    end = raw.get("endTimeUnixNano", raw.get("end_time", raw.get("end_time_unix_nano", raw.get("endTime"))))
    name = raw.get("name")
    span = Span(
        _id(trace_id, f"{at}/trace_id"), _id(span_id, f"{at}/span_id"),
        _id(parent, f"{at}/parent_id") if parent not in (None, "") else None,
        name if isinstance(name, str) else "", "", _nanoseconds(start, f"{at}/start_time"),
        _nanoseconds(end, f"{at}/end_time") if end else 0, order,
        an_object(attributes, f"{at}/attributes"), _failed(raw), at,
    )  # fmt: skip
    span.kind = _kind(span, raw)
    if span.kind not in _KNOWN:
        span.unknown = _unknown(span)
    return span


def _unknown(span: Span) -> str:
    """What is not understood of a span whose kind is not known."""
    if span.kind.removeprefix("SPANKIND.").removeprefix("SPAN_KIND_") not in _SILENT:
        return f"span of kind {span.kind!r}"
    told = next((key for key in span.attributes if _TELLING.match(key)), None)
    if told is None:
        return ""
    return f"span without a kind that has attributes of a model, tool or retriever ({told[:60]})"


def _kind(span: Span, raw: dict[str, Any]) -> str:
    kind = span.get("openinference.span.kind") or raw.get("span_kind")
    if kind is not None:
        kind = a_text(kind, f"{span.at}/attributes/openinference.span.kind").upper()
        if kind not in _SILENT:
            return kind
    operation = span.get("gen_ai.operation.name")
    if isinstance(operation, str):
        return _KINDS.get(operation, operation.upper())
    if span.get("ai.toolCall.name") is not None:
        return "TOOL"
    return _TRACELOOP.get(str(span.get("traceloop.span.kind")), "")


def _id(value: Any, at: str) -> str:
    """An id of a trace or span in hexadecimal, from that, from `0x...`, or from the base64 of protobuf writers."""
    if not isinstance(value, str) or not value:
        raise wrong(at, "the id of a span or trace", value)
    text = value.removeprefix("0x").lower()
    if _HEX.fullmatch(text):
        return text.replace("-", "")
    try:
        decoded = base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        decoded = b""
    if len(decoded) not in (8, 16):
        raise wrong(at, "the id of a span or trace", value)
    return decoded.hex()


def _nanoseconds(value: Any, at: str) -> int:
    if isinstance(value, bool) or value is None:
        raise wrong(at, "a time", value)
    if isinstance(value, int) and value > 0:
        return value
    if isinstance(value, str):
        if value.isdecimal() and len(value) < 30:
            return int(value)
        try:
            moment = datetime.fromisoformat(value)
            whole = int(moment.replace(microsecond=0).timestamp())
        except (ValueError, OverflowError, OSError):
            raise wrong(at, "a time (nanoseconds, or ISO 8601)", value) from None
        return (whole * 1_000_000 + moment.microsecond) * 1000
    if isinstance(value, float) and 1e8 < value < 1e20:  # seconds, or milliseconds as data frames write them
        return int(value * 1_000_000 if value > 1e11 else value * 1_000_000_000)
    raise wrong(at, "a time (nanoseconds, or ISO 8601)", value)


def _failed(raw: dict[str, Any]) -> bool:
    status = raw.get("status", raw.get("status_code"))
    code = status.get("status_code", status.get("code")) if isinstance(status, dict) else status
    return code in ("ERROR", "STATUS_CODE_ERROR", "StatusCode.ERROR") or (code == 2 and code is not True)


def _otlp_attributes(pairs: Any, at: str, depth: int) -> Attributes:
    found: Attributes = {}
    for index, pair in enumerate(a_list(pairs, at)):
        pair = an_object(pair, f"{at}/{index}")
        if not isinstance(pair.get("key"), str):
            raise wrong(f"{at}/{index}/key", "the name of an attribute", pair.get("key"))
        if "value" not in pair:
            raise wrong(f"{at}/{index}", "an attribute with a value", pair)
        found[pair["key"]] = _otlp_value(pair.get("value"), f"{at}/{index}/value", depth)
    return found


def _otlp_value(value: Any, at: str, depth: int) -> Any:
    if value is None or not depth:
        return None
    for kind, held in an_object(value, at).items():
        if kind in ("stringValue", "boolValue", "doubleValue", "string_value", "bool_value", "double_value"):
            return held
        if kind in ("intValue", "int_value"):
            if isinstance(held, str) and held.lstrip("-").isdecimal() and len(held) < 30:
                return int(held)
            return held
        if kind in ("arrayValue", "array_value"):
            values = a_list(an_object(held, f"{at}/{kind}").get("values"), f"{at}/{kind}/values")
            return [_otlp_value(one, f"{at}/{kind}/values", depth - 1) for one in values]
        if kind in ("kvlistValue", "kvlist_value"):
            pairs = an_object(held, f"{at}/{kind}").get("values")
            return _otlp_attributes(pairs, f"{at}/{kind}/values", depth - 1)
        raise wrong(at, "a value of OTLP (stringValue, intValue ...)", value)
    return None
