"""BrowseComp-Plus runs: one object a query, with `result` entries of type tool_call, reasoning and output_text.

The runs do not record which calls belong to one step, so each call is an iteration; iteration="step" groups calls
without reasoning or text between them.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from msgspec import Struct

from goodgain.traces.conversations import record_tree as tree
from goodgain.traces.conversations.turns_and_calls import Conversation
from goodgain.traces.expected_values import as_word, expect_id, unexpected_value
from goodgain.traces.input.file_head import FileHead
from goodgain.traces.input.sources import Source
from goodgain.traces.model import ToolCall, Trace

#: The default iteration: the format does not record steps.
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
    return any(
        "tool_call_counts" in record
        or ("query_id" in record and tree.any_object(record.get("result"), lambda one: one.get("type") == "tool_call"))
        for record in head.objects
    )


def read(source: Source) -> Iterator[Trace]:
    """Yield one trace per object."""
    return source.traces(partial(_read_trace, source), is_one=lambda value: False)


def _read_trace(source: Source, value: Any, at: str) -> Trace:
    run = tree.convert(value, _Run, at)
    reader = _Entries(source, value)
    reader.by_reasoning = tree.any_object(run.result, lambda entry: entry.get("type") == "reasoning")
    reader.read_all(tree.walk(run.result, f"{at}/result"))
    reader.add_lost_calls(run.tool_call_counts or {}, f"{at}/tool_call_counts")
    return reader.trace(at, query_id=expect_id(run.query_id, at), tag=tree.object_or_empty(run.metadata).get("model"))


class _Entries(Conversation):
    by_reasoning = False
    _new_step = True
    _searches = 0

    def read(self, entry: dict[str, Any], at: str) -> None:
        kind = as_word(entry.get("type"))
        self.report_unread("an entry", entry, at, ("arguments", "output"))
        if kind == "tool_call":
            if self._new_step or not self.by_reasoning:
                self.step()
            self._new_step = False
            call = tree.convert(entry, _Call, at)
            made = self.call(ToolCall(call.tool_name, at, arguments=call.arguments))
            # Published runs lack the output of single calls.
            made.may_lack = isinstance(call.output, str) and not call.output.strip()
            if "output" in entry and not made.may_lack:
                made.output, made.failed = call.output, call.output is None
            self._searches += self.source.is_search(call.tool_name)
        elif kind in ("reasoning", "output_text"):
            self._new_step = True
        else:
            self.report_kind("entry", entry, "type", at, "tool_call, reasoning or output_text")

    def add_lost_calls(self, counts: dict[str, int], at: str) -> None:
        """Add the searches that `tool_call_counts` counts and `result` lacks, as unrecorded calls."""
        missing = sum(count for tool, count in counts.items() if self.source.is_search(tool)) - self._searches
        if missing > _MAX_MISSING:
            raise unexpected_value(at, "no more calls than an agent makes", missing)
        for _ in range(missing):
            self.step()
            self.call(ToolCall("search", at, remedy=_REMEDY, is_search=True))
