"""LangSmith runs from `Client.list_runs()`, the API or `langsmith trace export`, as lists, lines or trees.

A root run is a turn. The turns of a thread are one trace. A search belongs to the step of the latest model run that started
before the search. Parallel searches of a parent share a step. Searches before the first model run are one step. `dotted_order`
gives the order of runs.

Lost: Results of searches that were exported without `outputs`. These searches are unrecorded.
Query id: `query_id`, `question_id` or `qid` in `extra.metadata`, else the thread's id, else the trace's id.
Record: Use `langsmith trace export --full`, or select `inputs` and `outputs`. Put `thread_id` into the metadata to join turns.
Costs: Tokens and `total_cost` of model runs, their `usage_metadata` or their outputs, and seconds of runs.
"""

import re
from collections.abc import Iterator
from typing import Any

from goodgain.logs.traces.conversations import FileHead, Source, Trace
from goodgain.logs.traces.conversations.record_objects import Placed, any_object, text_or_none
from goodgain.logs.traces.conversations.span_turns import read_span_traces
from goodgain.logs.traces.conversations.span_vocabularies import SESSIONS, decode
from goodgain.logs.traces.conversations.spans import OUTCOMES, Span, read_nanoseconds
from goodgain.logs.traces.conversations.tool_calls import require_id
from goodgain.logs.traces.conversations.turns_and_calls import read_usage
from goodgain.logs.traces.expected_values import (
    as_number,
    as_word,
    expect_id,
    expect_object,
    expect_text,
    find_id,
    find_outcomes,
    object_or_empty,
    objects_in,
    unexpected_value,
)
from goodgain.logs.traces.model import Usage

_KINDS = {
    **{kind: kind.upper() for kind in ("llm", "tool", "retriever", "chain", "embedding")},
    **dict.fromkeys(("prompt", "parser"), "CHAIN"),
}
#: The last part of a dotted order (start and id of the run), and the first part (id of the root).
_ORDER = re.compile(r"(?P<time>\d{8}T\d{6})(?P<micro>\d{6})Z\S+")
_ROOT = re.compile(r"\d{8}T\d{12}Z([^.]+)")
_REMEDY = "select inputs and outputs of the runs: the export lacks them"
#: Keys on the path to the calls in a model's answer.
_ANSWER_KEYS = ("generations", "choices", "message", "messages", "kwargs", "output")
_MAX_DEPTH = 200


def sniff(head: FileHead) -> bool:
    return any(_is_run(record) or any_object(record.get("runs"), _is_run) for record in head.objects)


def _is_run(record: dict[str, Any]) -> bool:
    return "run_type" in record and ("trace_id" in record or "dotted_order" in record)


def read(source: Source) -> Iterator[Trace]:
    """Yield the traces of all runs in a file. Records of one run are merged by its id."""
    runs: dict[str, Placed] = {}
    for value, at in source.documents():
        with source.handle_errors():
            _collect(value, at, None, runs)
    spans = []
    for run_id, (run, at) in runs.items():
        with source.handle_errors():
            spans.append(_read_run(run_id, run, at))
    return read_span_traces(source, spans, _REMEDY)


def _collect(value: Any, at: str, parent: str | None, runs: dict[str, Placed], depth: int = _MAX_DEPTH) -> None:
    """Add all runs in a value to `runs`. Merge the records of one run, such as the records of its start and its end."""
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

    run_id = require_id(run, at, "id" if "id" in run else "run_id", "the id of a run")
    earlier, first_at = runs.get(run_id, ({}, at))
    # A null of a later record does not replace a value of an earlier one.
    merged = {**earlier, **{key: value for key, value in run.items() if value is not None or key not in earlier}}
    if parent is not None and not merged.get("parent_run_id"):
        merged["parent_run_id"] = parent

    runs[run_id] = (merged, first_at)
    _collect(run.get("child_runs") or [], f"{at}/child_runs", run_id, runs, depth - 1)


def _read_run(run_id: str, run: dict[str, Any], at: str) -> Span:
    """Make a span of a run. `dotted_order` gives its start, and its trace if the run has no `trace_id`."""
    kind = expect_text(run.get("run_type"), f"{at}/run_type")
    name = text_or_none(run.get("name")) or ""
    dotted = as_word(run.get("dotted_order"))
    root = _ROOT.match(dotted)
    trace_id = expect_id(run.get("trace_id"), f"{at}/trace_id") or (root[1] if root else run_id)
    parent = expect_id(run.get("parent_run_id"), f"{at}/parent_run_id")
    if (order := _ORDER.fullmatch(dotted.rpartition(".")[2])) is not None:  # it also orders runs that started together
        start = read_nanoseconds(f"{order['time']}.{order['micro']}+00:00", f"{at}/dotted_order")
    else:
        start = read_nanoseconds(run.get("start_time"), f"{at}/start_time")

    end = read_nanoseconds(run["end_time"], f"{at}/end_time") if run.get("end_time") else 0
    failed = run.get("error") not in (None, "")
    unknown = "" if kind in _KINDS else f"run of type {kind!r}"
    span = Span(trace_id, run_id, parent, name, _KINDS.get(kind, kind), start, end, {}, failed, at, unknown)
    extra, inputs, outputs = (decode(run.get(key)) for key in ("extra", "inputs", "outputs"))
    metadata = object_or_empty(extra).get("metadata")
    span.attributes = {"metadata": metadata, "session.id": find_id(metadata, SESSIONS), OUTCOMES: find_outcomes(run)}
    if inputs:
        span.attributes["input.value"] = inputs.get("input", inputs) if isinstance(inputs, dict) else inputs
    if kind == "llm":
        span.attributes["gen_ai.output.messages"] = [{"parts": _find_tool_calls(outputs)}]
        span.attributes["llm.model_name"] = object_or_empty(metadata).get("ls_model_name")
        span.attributes |= _read_costs(run, metadata, outputs)
    elif outputs:  # of a tool or retriever: the only value, such as `output` or `documents`, else all
        alone = isinstance(outputs, dict) and len(outputs) == 1
        span.attributes["output.value"] = next(iter(outputs.values())) if alone else outputs
    return span


def _read_costs(run: dict[str, Any], metadata: Any, outputs: Any) -> dict[str, Any]:
    """Return the tokens and the cost of a model's run as attributes of its span.

    The run itself, its metadata, or the messages of its answer hold them. Exports write unknown tokens as 0.
    """
    holders = [run, object_or_empty(metadata).get("usage_metadata"), *_find_usages(outputs)]
    usages = [usage for usage in map(read_usage, holders) if usage is not None]
    with_tokens = next((usage for usage in usages if usage.input_tokens or usage.output_tokens), Usage())
    costs = (as_number(object_or_empty(holder).get("total_cost")) for holder in holders)
    read = {
        "gen_ai.usage.input_tokens": with_tokens.input_tokens,
        "gen_ai.usage.output_tokens": with_tokens.output_tokens,
        "gen_ai.usage.cache_read.input_tokens": with_tokens.cached_tokens,
        "gen_ai.usage.reasoning.output_tokens": with_tokens.reasoning_tokens,
        "llm.cost.total": next(filter(None, costs), None),
    }
    return {name: value for name, value in read.items() if value is not None}


def _find_usages(outputs: Any) -> list[Any]:
    """Return the objects with the usage of an answer: of its messages, then of all answers of an old version."""
    usages = []
    todo = [outputs]
    while todo:
        value = todo.pop()
        if isinstance(value, list):
            todo += value
        elif isinstance(value, dict):
            if isinstance(value.get("usage_metadata"), dict):
                usages.append(value["usage_metadata"])
            else:
                todo += [value[key] for key in _ANSWER_KEYS if key in value]

    answer = object_or_empty(outputs)
    return [*usages, object_or_empty(answer.get("llm_output")).get("token_usage"), answer.get("usage")]


def _find_tool_calls(outputs: Any) -> list[dict[str, Any]]:
    """Return the calls in a model's answer as parts of a GenAI message, wherever LangSmith's versions put them."""
    tool_calls: list[dict[str, Any]] = []
    todo = [outputs]
    while todo:
        value = todo.pop()
        if isinstance(value, list):
            todo += value
        elif isinstance(value, dict):
            calls = value.get("tool_calls")
            todo += [value[key] for key in _ANSWER_KEYS if key in value and not isinstance(calls, list)]
            for call in objects_in(calls):
                named = call["function"] if isinstance(call.get("function"), dict) else call
                arguments = named.get("args", named.get("arguments"))
                part = {"type": "tool_call", "id": call.get("id"), "name": named.get("name"), "arguments": arguments}
                tool_calls.append(part)

    return tool_calls
