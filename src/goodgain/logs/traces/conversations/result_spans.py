"""Finds spans of chains and functions whose output is a list of results: a search that nobody instrumented as a tool."""

import re
from collections.abc import Iterator
from typing import Any

from goodgain.errors import InputError
from goodgain.logs.traces.conversations.span_calls import find_tool_name, read_tool
from goodgain.logs.traces.conversations.span_vocabularies import decode
from goodgain.logs.traces.conversations.spans import Span, iterate_ancestors
from goodgain.logs.traces.expected_values import as_word
from goodgain.logs.traces.input.sources import Source
from goodgain.logs.traces.model import UNANSWERED, Result, ToolCall
from goodgain.logs.traces.tool_outputs.readers import read_output
from goodgain.logs.traces.tool_outputs.result_objects import normalise_key, normalise_keys
from goodgain.logs.traces.tool_outputs.service_answers import LIST_KEYS, unwrap_langchain

#: Internal attribute: the list of results in the output of a span that is not a tool's. No log uses this name.
RESULT_LIST = "goodgain.result_list"
#: The beginning of a list of objects in JSON text, and the key before it.
_LIST_START = re.compile(r"\[\s*\{")
_KEY_BEFORE = re.compile(r'"([A-Za-z_-]{1,40})"\s*:\s*$')
_LONGEST_KEY = 60
#: How deep the input of a span holds the state of a graph.
_STATE_DEPTH = 2
#: Types of messages, which have an id and a text like results.
_MESSAGES = {"human", "ai", "system", "tool", "function", "user", "assistant", "message"}


def find_result_list(span: Span) -> list[Any] | None:
    """Return the list of results in the output of a span, or None. Messages are not results."""
    output = span.get("output.value")
    if isinstance(output, str):
        if not _has_list(output):
            return None
        output = decode(output)
    if isinstance(output, dict):
        names = {name: key for key, name in reversed(normalise_keys(tuple(output)))}
        lists = [output[names[name]] for name in LIST_KEYS if name in names]
    else:
        lists = [output]
    return next((members for members in lists if _are_results(members, span.at)), None)


def _has_list(text: str) -> bool:
    """Return whether JSON text is a list of objects, or has one under a key for lists of results. Most outputs have none."""
    first = text[:_LONGEST_KEY].lstrip()[:1]
    if first == "[":
        return True
    starts = _LIST_START.finditer(text) if first == "{" else iter(())
    keys = (_KEY_BEFORE.search(text[max(start.start() - _LONGEST_KEY, 0) : start.start()]) for start in starts)
    return any(key is not None and normalise_key(key[1]) in LIST_KEYS for key in keys)


def _are_results(members: Any, at: str) -> bool:
    if not isinstance(members, list) or not members or not all(isinstance(member, dict) for member in members):
        return False
    unwrapped = [unwrap_langchain(member) for member in members]
    if any("role" in member or as_word(member.get("type")) in _MESSAGES for member in unwrapped):
        return False
    try:
        results = read_output(members, at).results
    except InputError:
        return False
    are_documents = all("page_content" in member for member in unwrapped)
    named = sum(bool(result.doc_id or result.url or result.title) for result in results)
    return bool(results) and (are_documents or 2 * named >= len(results))


def find_searching_spans(source: Source, spans: list[Span], by_id: dict[tuple[str, str], Span]) -> list[Span]:
    """Return the spans with a list of results that are not a tool's, and that have no search above or below them.

    Agents and chains pass on the results of the searches below them, and of their input.
    """
    with_list = [span for span in spans if span.attributes.get(RESULT_LIST) is not None]
    candidates = [span for span in with_list if not _only_passes_on(source, span)]
    if not candidates:
        return []
    is_search = {id(span): is_recorded_search(source, span) for span in spans}
    are_candidates = set(map(id, candidates))
    above_searches = {
        id(above)
        for span in spans
        if is_search[id(span)] or id(span) in are_candidates
        for above in iterate_ancestors(span, by_id)
    }
    innermost = [span for span in candidates if id(span) not in above_searches]
    return [span for span in innermost if not any(is_search[id(above)] for above in iterate_ancestors(span, by_id))]


def is_recorded_search(source: Source, span: Span) -> bool:
    return span.kind == "RETRIEVER" or (span.kind == "TOOL" and source.is_search(str(find_tool_name(span))))


def read_searching_span(source: Source, span: Span, remedy: str, *, has_others: bool) -> ToolCall:
    """Return the call that a span with a list of results is. Its name makes it a search.

    An agent's span is not a search. Nor is any if the trace has spans of tools or retrievers that search.
    """
    call = read_tool(span, remedy)
    call.output = span.attributes.get(RESULT_LIST)
    call.spare = UNANSWERED
    if source.is_search(call.tool) and (has_others or span.kind == "AGENT"):
        call.is_search = False
    return call


def _only_passes_on(source: Source, span: Span) -> bool:
    """Return whether a span without the name of a search has all its results from its input.

    The nodes of a graph return the whole state of the graph. A search can find known results again.
    """
    call = read_tool(span, "")
    results = span.attributes[RESULT_LIST]
    return not source.is_search(call.tool) and _holds_all(decode(call.arguments), results, _STATE_DEPTH)


def _holds_all(given: Any, results: list[Any], depth: int) -> bool:
    """Return whether a list in the input of a span has all results of its output."""
    if isinstance(given, list):
        return all(result in given for result in results)
    if isinstance(given, dict) and depth:
        return any(_holds_all(value, results, depth - 1) for value in given.values())
    return False


def find_new_results(calls: list[ToolCall], searches: list[ToolCall]) -> Iterator[ToolCall]:
    """Yield the calls with at least one result that no search returned."""
    seen = {_name_result(result) for call in searches for result in _read_results(call)}
    for call in calls:
        if any(_name_result(result) not in seen for result in _read_results(call)):
            yield call


def _read_results(call: ToolCall) -> tuple[Result, ...]:
    """Return the results in the output of a call, else in its spare output, else no results."""
    for output in (call.output, call.spare):
        if output is not UNANSWERED:
            try:
                results = read_output(output, call.at).results
            except InputError:
                continue
            if results:
                return results
    return ()


def _name_result(result: Result) -> str | None:
    return result.url or result.doc_id or result.snippet or result.title
