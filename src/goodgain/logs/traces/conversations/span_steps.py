"""Reads the steps of a turn from its spans: the span of a model begins a step, and spans of tools and retrievers are calls."""

from goodgain.files.json_text import parse_if_json
from goodgain.logs.traces.conversations import span_calls
from goodgain.logs.traces.conversations.result_spans import (
    find_new_results,
    find_searching_spans,
    is_recorded_search,
    read_searching_span,
)
from goodgain.logs.traces.conversations.span_vocabularies import CALL_ID, CALLS
from goodgain.logs.traces.conversations.spans import Span, iterate_ancestors
from goodgain.logs.traces.conversations.tool_calls import mark_unanswered
from goodgain.logs.traces.conversations.turns_and_calls import add_usages
from goodgain.logs.traces.expected_values import format_place, id_or_none, object_or_empty
from goodgain.logs.traces.input.sources import Source
from goodgain.logs.traces.model import UNANSWERED, Step, ToolCall, Usage
from goodgain.logs.traces.tool_outputs.readers import looks_like_results
from goodgain.options import spell

#: An internal attribute with the usage of a span of a model. No log uses this name.
USAGE = "goodgain.usage"
_NO_TOOL_SPAN = "the model called a search, but no span records it: instrument the tool, or convert the chat log"


class SpanTree:
    """A root span with all spans below it, in the order of their start."""

    def __init__(self, spans: list[Span], top: Span) -> None:
        self.spans = spans
        self.top = top
        self.by_id = {(span.trace_id, span.span_id): span for span in spans}

    def select_kind(self, kind: str) -> list[Span]:
        return [span for span in self.spans if span.kind == kind]


def read_steps(source: Source, root: SpanTree, remedy: str) -> list[Step]:
    """Return the steps of a turn. `remedy` says how to record the output of a search, if the log lacks it."""
    reader = _StepReader(source, root, remedy)
    for span in root.spans:
        reader.read(span)
    return reader.finish()


class _StepReader:
    """Makes the steps of a turn from its spans, in the order of their start."""

    def __init__(self, source: Source, root: SpanTree, remedy: str) -> None:
        self._source = source
        self._root = root
        self._remedy = remedy
        self._given_way = span_calls.find_given_way(source, root.spans, root.by_id)
        self._holders = {id(tool) for tool in self._given_way.values() if tool is not None}
        self._searching = {id(span) for span in find_searching_spans(source, root.spans, root.by_id)}
        self._has_searches = any(is_recorded_search(source, span) for span in root.spans)
        self._clock = _CallClock() if not root.select_kind("LLM") else None
        self._finder = span_calls.StepFinder()
        self._steps = [Step()]
        self._retrievals: list[tuple[Span, ToolCall]] = []
        #: (index of the step, call) of each call with a list of results that does not count as a search.
        self._uncounted_calls: list[tuple[int, ToolCall]] = []
        self._tool_times: dict[int, tuple[int, int]] = {}  # by step

    def read(self, span: Span) -> None:
        """Add what a span records. Spans come in the order of their start.

        A span of a model begins a step. In a trace without models, a call after the end of all earlier calls begins a step, if
        `iteration` is "sequential". `costs` needs the time from the first begin to the last end of a step's tools.
        """
        above = tuple(iterate_ancestors(span, self._root.by_id))
        self._report_unknown_span(span, above)
        if span.kind == "LLM":
            self._begin_step(span)

        is_call = span.kind in ("RETRIEVER", "TOOL") or id(span) in self._searching
        is_sequential = self._source.iteration == "sequential"
        if is_call and self._clock is not None and self._clock.begins_group(span) and is_sequential:
            self._steps.append(Step())
        index = len(self._steps) - 1
        if is_call:
            index = self._finder.find(span, index)

        calls = self._steps[index].calls
        calls_before = len(calls)
        self._add_calls(span, above, index)
        if self._clock is not None and any(map(self._source.counts_as_search, calls[calls_before:])):
            self._clock.add_search(span)
        if self._source.costs and is_call and span.end >= span.start > 0:
            begin, end = self._tool_times.get(index, (span.start, span.end))
            self._tool_times[index] = min(begin, span.start), max(end, span.end)

    def _report_unknown_span(self, span: Span, above: tuple[Span, ...]) -> None:
        asks_database = span.get("db.system") is not None
        is_of_tool = asks_database and any(ancestor.kind in ("TOOL", "RETRIEVER") for ancestor in above)
        if span.unknown and not is_of_tool:
            self._source.not_understood(span.unknown, span.at, "a kind of OpenInference or an operation of OTel GenAI")

    def _begin_step(self, span: Span) -> None:
        usage = None
        if self._source.costs:
            seconds = (span.end - span.start) / 1e9 if span.end >= span.start > 0 else None
            usage = add_usages(span.attributes[USAGE], Usage(seconds=seconds))
        self._finder.add_model(span, len(self._steps))
        self._steps.append(Step(usage=usage))

    def _add_calls(self, span: Span, above: tuple[Span, ...], index: int) -> None:
        """Add the calls that a span records to the step `index`."""
        calls = self._steps[index].calls
        if span.kind in ("RETRIEVER", "TOOL") and id(span) in self._given_way:
            calls.append(span_calls.name_in_summary(span, self._given_way[id(span)]))
        elif span.kind == "RETRIEVER" and not span_calls.is_inside_its_copy(span, above):
            call = span_calls.read_retrieval(span, self._remedy)
            self._retrievals.append((span, call))
            calls.append(call)
        elif span.kind == "TOOL" and (id(span) in self._holders or not span_calls.is_inside_its_copy(span, above)):
            made_by_tool = _read_invoked(self._source, self._root, span, self._remedy)
            tool_calls = made_by_tool or [span_calls.read_tool(span, self._remedy)]
            if id(span) in self._holders:
                tool_calls[0].is_search = True
            calls += tool_calls
        elif id(span) in self._searching:
            call = read_searching_span(self._source, span, self._remedy, has_others=self._has_searches)
            if self._source.counts_as_search(call):
                calls.append(call)
            else:
                self._uncounted_calls.append((index, call))
        elif span.kind == "RERANKER" and self._source.reranked and self._retrievals:
            self._rerank(span)
        elif span.kind == "RERANKER" and not self._has_searches:
            self._uncounted_calls.append((len(self._steps) - 1, span_calls.read_reranking(span)))

    def _rerank(self, span: Span) -> None:
        """Replace the results of the last retrieval beside a reranker, else of the last retrieval."""
        siblings = [call for retrieval, call in self._retrievals if retrieval.parent_id == span.parent_id]
        replaced = siblings[-1] if siblings else self._retrievals[-1][1]
        if documents := span_calls.read_documents(span, "reranker.output_documents"):
            replaced.output = documents
            replaced.spare = UNANSWERED

    def finish(self) -> list[Step]:
        """Return the steps, with the times of tools, calls without spans, and lists of results that no search returned."""
        for index, (begin, end) in self._tool_times.items():  # tools of a step run in parallel
            step = self._steps[index]
            step.usage = add_usages(step.usage, Usage(seconds=(end - begin) / 1e9))
        if self._clock is not None and self._clock.is_split and self._source.iteration is None:
            place = format_place(self._root.top.at)
            self._source.summary.count("without_model", place, self._clock.searches)

        _add_calls_without_spans(self._source, self._root, self._steps)
        if self._uncounted_calls:
            self._add_calls_with_new_results()
        return self._steps

    def _add_calls_with_new_results(self) -> None:
        """Add each uncounted call with at least one result that no search returned. Without `tools=`, report such calls."""
        searches = [call for step in self._steps for call in step.calls if self._source.counts_as_search(call)]
        uncounted = [call for _, call in self._uncounted_calls]
        ids_of_new_calls = set(map(id, find_new_results(uncounted, searches)))

        for index, call in self._uncounted_calls:
            if id(call) not in ids_of_new_calls:
                continue
            self._steps[index].calls.append(call)
            # the summary gives a notice of its own on tools whose outputs look like results
            is_in_summary = call.is_search is None and looks_like_results(call.output, call.at)
            if self._source.is_search.is_default and not is_in_summary:
                expected = f"a search, named with {spell('tools', call.tool)}"
                what = f"list of results in the output of the span {call.tool!r}"
                self._source.not_understood(what, call.at, expected)


class _CallClock:
    """Groups the calls of a trace without a model: a call that begins after all earlier calls have ended begins a group."""

    searches = 0
    is_split = False  # whether several groups have searches

    def __init__(self) -> None:
        self._end = self._group = 0
        self._searched: int | None = None

    def begins_group(self, span: Span) -> bool:
        begins = 0 < self._end <= span.start
        self._group += begins
        self._end = max(self._end, span.end)
        return begins

    def add_search(self, span: Span) -> None:
        self.searches += 1
        self.is_split = self.is_split or self._searched not in (None, self._group)
        self._searched = self._group


def _add_calls_without_spans(source: Source, root: SpanTree, steps: list[Step]) -> None:
    """Add the searches that appear in model spans but not in tool spans.

    If any step already has calls, searches are added only if there are tool spans and all of them have call ids. If nested
    model spans show the same call, the call belongs to the step of the innermost span.
    """
    answered = {str(span.get(CALL_ID)) for span in root.select_kind("TOOL")}
    if any(step.calls for step in steps) and (not answered or "None" in answered):
        return
    counts = {
        call_id: (step, call)
        for step, span in zip(steps[1:], root.select_kind("LLM"), strict=True)
        for call_id, call in span.attributes[CALLS].items()
    }
    for call_id, (step, call) in counts.items():
        if call_id not in answered and source.is_search(call["name"]):
            step.calls.append(ToolCall(call["name"], call["at"], None, call["arguments"], remedy=_NO_TOOL_SPAN))


def _read_invoked(source: Source, root: SpanTree, span: Span, remedy: str) -> list[ToolCall]:
    """Return the calls in a span of Haystack's ToolInvoker. Return no calls if spans of tools are below the span."""
    is_invoker = str(span_calls.find_tool_name(span)).replace("_", "").lower().startswith("toolinvoker")
    above_tools = (ancestor for tool in root.select_kind("TOOL") for ancestor in iterate_ancestors(tool, root.by_id))
    if not is_invoker or any(ancestor is span for ancestor in above_tools):
        return []

    calls: list[ToolCall] = []
    output = span.get("output.value")
    values = [parse_if_json(output)]

    while values:  # messages, perhaps in lists of lists
        value = values.pop()
        held = object_or_empty(value)
        origin = object_or_empty(held.get("origin"))
        if "result" in held and isinstance(name := origin.get("tool_name"), str):
            call = ToolCall(name, span.at, id_or_none(origin.get("id")), origin.get("arguments"), remedy=remedy)
            call.output = mark_unanswered(held["result"])
            call.failed = held.get("error") is True
            calls.append(call)
        else:
            values += reversed(value if isinstance(value, list) else held.values())

    if output and not calls:
        expected = "messages as JSON, each with a tool_call_result"
        source.not_understood("output of several tools in one span", span.at, expected)
    return calls
