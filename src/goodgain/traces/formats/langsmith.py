"""LangSmith runs: what `Client.list_runs()`, the API and `langsmith trace export` give, as lists, lines or trees.

A root run is a turn, and a thread joins turns. A search belongs to the step of the latest run of a model that started
before it; searches before the first one are one step. Runs are in the order of `dotted_order`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from goodgain.traces.input.checks import as_word, expect_id, expect_list, expect_object, expect_text, unexpected_value
from goodgain.traces.input.file_head import FileHead
from goodgain.traces.input.sources import Source
from goodgain.traces.model import Trace
from goodgain.traces.otel.searches import read_span_traces
from goodgain.traces.otel.spans import Span, read_nanoseconds
from goodgain.traces.otel.vocabularies import decode, find_session

_KINDS = {
    "llm": "LLM", "tool": "TOOL", "retriever": "RETRIEVER", "chain": "CHAIN", "prompt": "CHAIN", "parser": "CHAIN",
    "embedding": "EMBEDDING",
}  # fmt: skip
#: The last part of a dotted order: the run's start and its id.
_ORDER = re.compile(r"(?P<time>\d{8}T\d{6})(?P<micro>\d{6})Z\S+")
_REMEDY = "select inputs and outputs of the runs: the export lacks them"
#: Where the calls of a model's answer stand: in LangChain's generations, in OpenAI's choices.
_ANSWER_KEYS = ("generations", "choices", "message", "messages", "kwargs", "output")
#: Trees of runs nested deeper are refused.
_MAX_DEPTH = 200


def sniff(head: FileHead) -> bool:
    """Return whether there are runs: a `run_type`, with `trace_id` or `dotted_order`."""
    return any(_is_run(record) or any(map(_is_run, _find_runs(record))) for record in head.objects)


def _is_run(record: Any) -> bool:
    return isinstance(record, dict) and "run_type" in record and ("trace_id" in record or "dotted_order" in record)


def _find_runs(record: dict[str, Any]) -> list[Any]:
    runs = record.get("runs")
    return runs if isinstance(runs, list) else []


def read(source: Source) -> Iterator[Trace]:
    """Yield one trace a thread; a root run without a thread is one by itself."""
    runs: dict[str, tuple[dict[str, Any], str]] = {}
    for value, at in source.documents():
        with source.handle_errors():
            _collect(value, at, None, runs)
    spans = []
    for order, (run_id, (run, at)) in enumerate(runs.items()):
        with source.handle_errors():
            spans.append(_read_run(run_id, run, at, order))
    return read_span_traces(source, spans, _REMEDY)


def _collect(
    value: Any, at: str, parent: str | None, runs: dict[str, tuple[dict[str, Any], str]], depth: int = _MAX_DEPTH
) -> None:
    """Add the runs in a value and below them; two records of a run (its start, its end) are one."""
    if not depth:
        raise unexpected_value(at, f"runs nested at most {_MAX_DEPTH} deep", value)
    if isinstance(value, list):
        for index, member in enumerate(value):
            _collect(member, f"{at}/{index}", parent, runs, depth - 1)
        return
    run = expect_object(value, at)
    if "run_type" not in run and isinstance(run.get("runs"), list):
        _collect(run["runs"], f"{at}/runs", parent, runs, depth - 1)
        return
    run_id = expect_id(run.get("id", run.get("run_id")), f"{at}/id")
    if run_id is None:
        raise unexpected_value(f"{at}/id", "the id of a run", run_id)
    earlier, first_at = runs.get(run_id, ({}, at))
    merged = {**earlier, **{key: one for key, one in run.items() if one is not None or key not in earlier}}
    if parent is not None and not merged.get("parent_run_id"):
        merged["parent_run_id"] = parent
    runs[run_id] = (merged, first_at)
    for index, child in enumerate(expect_list(run.get("child_runs"), f"{at}/child_runs")):
        _collect(child, f"{at}/child_runs/{index}", run_id, runs, depth - 1)


def _read_run(run_id: str, run: dict[str, Any], at: str, order: int) -> Span:
    kind = expect_text(run.get("run_type"), f"{at}/run_type")
    dotted = run.get("dotted_order")
    trace_id = expect_id(run.get("trace_id"), f"{at}/trace_id") or _first_id(dotted) or run_id
    name = run.get("name")
    span = Span(
        trace_id, run_id, expect_id(run.get("parent_run_id"), f"{at}/parent_run_id"), name if isinstance(name, str) else "",
        _KINDS.get(kind, kind), _read_start(run, dotted, at), 0, order, {}, run.get("error") not in (None, ""), at,
    )  # fmt: skip
    span.end = read_nanoseconds(run["end_time"], f"{at}/end_time") if run.get("end_time") else 0
    if kind not in _KINDS:
        span.unknown = f"run of type {as_word(kind)!r}"
    extra = decode(run.get("extra"))
    metadata = extra.get("metadata") if isinstance(extra, dict) else None
    inputs, outputs = decode(run.get("inputs")), decode(run.get("outputs"))
    span.attributes = {"metadata": metadata, "session.id": find_session(metadata)}
    if inputs:
        span.attributes["input.value"] = inputs.get("input", inputs) if isinstance(inputs, dict) else inputs
    if kind == "llm":
        span.attributes["gen_ai.output.messages"] = [{"parts": _find_tool_calls(outputs)}]
    elif outputs:
        span.attributes["output.value"] = _unwrap_outputs(outputs)
    return span


def _first_id(dotted: Any) -> str | None:
    """Return the id of the root in a dotted order."""
    found = re.match(r"\d{8}T\d{12}Z([^.]+)", dotted) if isinstance(dotted, str) else None
    return found[1] if found else None


def _read_start(run: dict[str, Any], dotted: Any, at: str) -> int:
    """Return when a run started: as its dotted order says, which also orders runs that started together."""
    found = _ORDER.fullmatch(dotted.rsplit(".", 1)[-1]) if isinstance(dotted, str) else None
    if found is None:
        return read_nanoseconds(run.get("start_time"), f"{at}/start_time")
    try:
        moment = datetime.strptime(found["time"], "%Y%m%dT%H%M%S").replace(tzinfo=UTC)
    except ValueError:
        raise unexpected_value(f"{at}/dotted_order", "a time and an id for each run", dotted) from None
    return (int(moment.timestamp()) * 1_000_000 + int(found["micro"])) * 1000


def _unwrap_outputs(outputs: Any) -> Any:
    """Return what a tool or retriever gave: the value under `output`, or the documents."""
    if isinstance(outputs, dict) and len(outputs) == 1:
        return next(iter(outputs.values()))
    return outputs


def _find_tool_calls(outputs: Any) -> list[dict[str, Any]]:
    """Return the calls in a model's answer, from LangChain's generations or OpenAI's choices."""
    found: list[dict[str, Any]] = []
    todo = [outputs]
    while todo:
        value = todo.pop()
        if isinstance(value, list):
            todo += value
        elif isinstance(value, dict):
            calls = value.get("tool_calls")
            if isinstance(calls, list):
                found += [_read_tool_call(call) for call in calls if isinstance(call, dict)]
            else:
                todo += [value[key] for key in _ANSWER_KEYS if key in value]
    return found


def _read_tool_call(call: dict[str, Any]) -> dict[str, Any]:
    function = call.get("function")
    named = function if isinstance(function, dict) else call
    arguments = named.get("args", named.get("arguments"))
    return {"type": "tool_call", "id": call.get("id"), "name": named.get("name"), "arguments": arguments}
