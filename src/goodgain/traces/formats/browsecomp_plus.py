"""BrowseComp-Plus runs: one object a query, with `result` entries of type tool_call, reasoning and output_text.

The runs do not record which calls belong to one step, so each call is an iteration; iteration="step" groups calls
without reasoning or text between them.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from msgspec import Struct

from goodgain.traces.conversations import tree
from goodgain.traces.expected_values import as_word, expect_id, unexpected_value
from goodgain.traces.input.file_head import FileHead
from goodgain.traces.input.sources import Source
from goodgain.traces.model import UNANSWERED, Step, ToolCall, Trace, Turn

#: What an iteration is unless the caller says otherwise, as the format does not record steps.
ITERATION = "call"
#: A larger count is damaged: it must not make millions of steps.
_MAX_MISSING = 10_000
_REMEDY = "published runs drop searches that failed: unrecorded='empty' counts them as searches without results"

independent = tree.each_line_is_a_trace


class _Run(Struct):
    result: list[Any]
    query_id: str | int | None = None
    tool_call_counts: dict[str, int] | None = None
    metadata: Any = None


class _Call(Struct):
    tool_name: str
    arguments: Any = None
    output: str | list[Any] | dict[str, Any] | None = None


def sniff(head: FileHead) -> bool:
    """Return whether there is an object with `tool_call_counts`, or with `query_id` and calls in `result`."""
    return any(map(_is_run, head.objects))


def _is_run(record: dict[str, Any]) -> bool:
    has_calls = tree.any_object(record.get("result"), lambda entry: entry.get("type") == "tool_call")
    return "tool_call_counts" in record or (has_calls and "query_id" in record)


def read(source: Source) -> Iterator[Trace]:
    """Yield one trace an object."""
    return source.traces(partial(_read_trace, source), is_one=lambda value: False)


def _read_trace(source: Source, value: Any, at: str) -> Trace:
    run = tree.convert(value, _Run, at)
    turn = Turn(index=1)
    by_reasoning = tree.any_object(run.result, lambda entry: entry.get("type") == "reasoning")
    new_step = True
    for entry, entry_at in tree.walk(run.result, f"{at}/result"):
        kind = as_word(entry.get("type"))
        tree.report_unread(source, "an entry", entry, entry_at, ("arguments", "output"))
        if kind == "tool_call":
            if new_step or not by_reasoning:
                turn.steps.append(Step())
            call = tree.convert(entry, _Call, entry_at)
            blank = isinstance(call.output, str) and not call.output.strip()  # as single calls in published runs
            output = UNANSWERED if blank or "output" not in entry else call.output
            made = ToolCall(
                call.tool_name, entry_at, None, call.arguments, output, failed=output is None, may_lack=blank
            )
            turn.steps[-1].calls.append(made)
            new_step = False
        elif kind in ("reasoning", "output_text"):
            new_step = True
        else:
            tree.report_kind(source, "entry", entry, "type", entry_at, "tool_call, reasoning or output_text")
    _add_lost_calls(source, turn, run.tool_call_counts or {}, f"{at}/tool_call_counts")
    tag = tree.text_or_none(tree.object_or_empty(run.metadata).get("model"))
    return Trace([turn], at, record=value, query_id=expect_id(run.query_id, at), tag=tag)


def _add_lost_calls(source: Source, turn: Turn, counts: dict[str, int], at: str) -> None:
    """Add the searches that `tool_call_counts` counts and `result` lacks, as calls that are not recorded."""
    missing = sum(count for tool, count in counts.items() if source.is_search(tool))
    missing -= sum(source.is_search(call.tool) for step in turn.steps for call in step.calls)
    if missing > _MAX_MISSING:
        raise unexpected_value(at, "no more calls than an agent makes", missing)
    turn.steps += [Step([ToolCall("search", at, remedy=_REMEDY, is_search=True)]) for _ in range(missing)]
