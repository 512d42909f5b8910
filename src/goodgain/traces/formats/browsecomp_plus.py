"""BrowseComp-Plus runs: one object a query, with `result` entries of type tool_call, reasoning and output_text.

The runs do not record which calls belong to one step, so each call is an iteration; iteration="step" groups calls
without reasoning or text between them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from goodgain.traces.input.checks import as_word, expect_id, expect_object, expect_text, unexpected_value
from goodgain.traces.input.file_head import FileHead
from goodgain.traces.input.sources import Source
from goodgain.traces.model import UNANSWERED, Step, ToolCall, Trace, Turn
from goodgain.traces.tools import is_search_tool

#: What an iteration is unless the caller says otherwise, as the format does not record steps.
ITERATION = "call"
_ENTRY_FIELDS = {"type", "tool_name", "arguments", "output"}
_REMEDY = "published runs drop searches that failed: unrecorded='empty' counts them as searches without results"


def sniff(head: FileHead) -> bool:
    """Return whether there is an object with `tool_call_counts`, or with `query_id` and calls in `result`."""
    return any(_is_run(record) for record in head.objects)


def _is_run(record: dict[str, Any]) -> bool:
    entries = record.get("result")
    typed = isinstance(entries, list) and any(
        isinstance(entry, dict) and entry.get("type") == "tool_call" for entry in entries
    )
    return "tool_call_counts" in record or (typed and "query_id" in record)


def independent(_: FileHead) -> bool:
    """Return True: each line of a JSON Lines file is a trace of its own."""
    return True


def read(source: Source) -> Iterator[Trace]:
    """Yield one trace an object."""
    return source.traces(lambda value, at: _read_trace(source, value, at), is_one=lambda value: False)


def _read_trace(source: Source, value: Any, at: str) -> Trace:
    record = expect_object(value, at)
    entries = record.get("result")
    if not isinstance(entries, list):
        raise unexpected_value(f"{at}/result", "the list of what the agent did", entries)
    turn = Turn(index=1)
    by_reasoning = any(isinstance(entry, dict) and entry.get("type") == "reasoning" for entry in entries)
    new_step = True
    for index, entry in enumerate(entries):
        entry_at = f"{at}/result/{index}"
        kind = as_word(expect_object(entry, entry_at).get("type"))
        source.check_fields(
            entry, _ENTRY_FIELDS, entry_at, of="an entry", expected="its answer in output", needs="output"
        )
        if kind == "tool_call":
            if new_step or not by_reasoning:
                turn.steps.append(Step())
            turn.steps[-1].calls.append(_read_call(entry, entry_at))
            new_step = False
        elif kind in ("reasoning", "output_text"):
            new_step = True
        elif not isinstance(entry.get("type"), str):
            raise unexpected_value(f"{entry_at}/type", "tool_call, reasoning or output_text", entry.get("type"))
        else:
            source.not_understood(f"entry of type {kind!r}", entry_at, "tool_call, reasoning or output_text")
    _add_lost_calls(turn, record, at)
    metadata = record.get("metadata")
    model = metadata.get("model") if isinstance(metadata, dict) else None
    return Trace(
        [turn], at, record=record,
        query_id=expect_id(record.get("query_id"), f"{at}/query_id"),
        tag=model if isinstance(model, str) and model else None,
    )  # fmt: skip


def _read_call(entry: dict[str, Any], at: str) -> ToolCall:
    tool = expect_text(entry.get("tool_name"), f"{at}/tool_name")
    output = entry.get("output", UNANSWERED)
    if not (output is UNANSWERED or output is None or isinstance(output, (str, list, dict))):
        raise unexpected_value(f"{at}/output", "text, a list or null", output)
    blank = isinstance(output, str) and not output.strip()  # single calls lack their output in published runs
    return ToolCall(
        tool, at, arguments=entry.get("arguments"), output=UNANSWERED if blank else output, failed=output is None,
        may_lack=blank,
    )  # fmt: skip


def _add_lost_calls(turn: Turn, record: dict[str, Any], at: str) -> None:
    """Return searches that `tool_call_counts` counts and `result` lacks, as calls that are not recorded."""
    counts = record.get("tool_call_counts")
    if counts is None:
        return
    counted = 0
    for tool, count in expect_object(counts, f"{at}/tool_call_counts").items():
        if isinstance(count, bool) or not isinstance(count, int):
            raise unexpected_value(f"{at}/tool_call_counts/{tool}", "a number of calls", count)
        counted += count if is_search_tool(tool) else 0
    missing = counted - sum(is_search_tool(call.tool) for step in turn.steps for call in step.calls)
    if missing > 10_000:  # a damaged count must not make millions of steps
        raise unexpected_value(f"{at}/tool_call_counts", "no more calls than an agent makes", missing)
    for _ in range(missing):
        turn.steps.append(Step([ToolCall("search", f"{at}/tool_call_counts", remedy=_REMEDY)]))
