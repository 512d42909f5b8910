"""BrowseComp-Plus runs: one object per query, with `result` entries of type tool_call, reasoning and output_text.

The runs do not record which calls belong to one step, so each call is an iteration. With iteration="step", consecutive calls
without reasoning or text between them are one iteration.

Lost: Failed searches: published runs keep only the number of searches in `tool_call_counts`. The missing searches count as
unrecorded. So do searches with `output: ""` if all have this output; else they are searches without results, with a notice.
Query id: `query_id`. The system is `metadata.model`.
Record: Pass `--iteration call` to confirm that each call is an iteration. Publish ids only, not the benchmark's texts.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any

from goodgain.logs.traces.conversations import UNANSWERED, Conversation, FileHead, Source, ToolCall, Trace
from goodgain.logs.traces.conversations.record_objects import any_object, convert_record, walk_list
from goodgain.logs.traces.conversations.tool_calls import expect_output, read_call
from goodgain.logs.traces.expected_values import as_word, expect_id, expect_object, object_or_empty, unexpected_value
from goodgain.options import spell

ITERATION = "call"
#: A larger count is damaged, and would make millions of steps.
_MAX_MISSING = 10_000
#: Keys of the ids that a search returned, beside its text.
_RETURNED = ("returned", "returned_docids")


def sniff(head: FileHead) -> bool:
    return any(
        "tool_call_counts" in record
        or ("query_id" in record and any_object(record.get("result"), lambda item: item.get("type") == "tool_call"))
        for record in head.objects
    )


def read(source: Source) -> Iterator[Trace]:
    return source.traces(partial(_read_trace, source), is_one=lambda value: False)


def _read_trace(source: Source, value: Any, at: str) -> Trace:
    """Read a run. Searches that `tool_call_counts` has beyond those in `result` are added at the end, as unrecorded searches."""
    run = expect_object(value, at)
    query_id = expect_id(run.get("query_id"), f"{at}/query_id")
    metadata = object_or_empty(run.get("metadata"))
    counts = convert_record(run.get("tool_call_counts") or {}, dict[str, int], f"{at}/tool_call_counts")
    reader = _Entries(source, value)
    reader.by_reasoning = any_object(run.get("result"), lambda entry: entry.get("type") == "reasoning")
    reader.read_all(walk_list(run, "result", at))
    # Searches that are counted but missing in `result` are unrecorded.
    missing = sum(count for tool, count in counts.items() if source.is_search(tool)) - reader.searches
    if missing > _MAX_MISSING:
        raise unexpected_value(f"{at}/tool_call_counts", f"at most {_MAX_MISSING:,} missing searches", missing)

    for _ in range(missing):
        reader.step()
        remedy = f"published runs drop searches that failed: {spell('unrecorded', 'empty')} counts them as searches without results"
        reader.call(ToolCall("search", f"{at}/tool_call_counts", remedy=remedy, is_search=True))

    return reader.trace(at, query_id=query_id, tag=metadata.get("model"))


class _Entries(Conversation):
    by_reasoning = False  # whether the run logs reasoning, so that calls without reasoning between them are one step
    searches = 0
    _new_step = True

    def read(self, entry: dict[str, Any], at: str) -> None:
        """Read a call with its output, a thought, or the answer. Each call is a step; in runs with thoughts, those between two."""
        kind = as_word(entry.get("type"))
        self.report_unread("an entry", entry, at, ("arguments", "output", *_RETURNED))
        if kind == "tool_call":
            if self._new_step or not self.by_reasoning:
                self.step()
            self._new_step = False
            self.say(None)  # the text before a call is not the answer
            call = self.call(read_call(entry, at, "tool_name"))
            output = entry.get("output")
            expect_output(output, f"{at}/output")
            # Published runs lack the output of some calls.
            call.may_lack = isinstance(output, str) and not output.strip()
            if "output" in entry and not call.may_lack:
                call.output = output
                call.failed = output is None

            ids = (entry[key] for key in _RETURNED if isinstance(entry.get(key), list))
            call.spare = next(ids, UNANSWERED)  # beside a text in a layout that cannot be read
            self.searches += self.source.is_search(call.tool)
        elif kind in ("reasoning", "output_text"):
            self._new_step = True
            self.say(None)
            self.say(entry.get("output") if kind == "output_text" else None)
        else:
            self.report_kind("entry", entry, "type", at, "tool_call, reasoning or output_text")
