"""Reads the searches in spans: turns from roots, steps from spans of models, calls from those of tools and retrievers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from goodgain.errors import InputError
from goodgain.files.json_text import parse_if_json
from goodgain.traces.conversations.usage import add_usages
from goodgain.traces.input.checks import format_place, unexpected_value
from goodgain.traces.input.sources import Source
from goodgain.traces.model import UNANSWERED, Step, ToolCall, Trace, Turn, Usage
from goodgain.traces.otel.roots import USAGE, Root, find_roots, split_session
from goodgain.traces.otel.spans import Attributes, Span
from goodgain.traces.otel.vocabularies import CALL_ID, REMEDY
from goodgain.traces.tools import is_search_tool

__all__ = ["read_span_traces"]

_REMEDY = (
    "record outputs: OPENINFERENCE_HIDE_OUTPUTS=false, "
    "or OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=true for GenAI spans"
)
#: An error names at most this many root spans, and this many characters of each.
_SHOWN_NAMES, _SHOWN_NAME = 5, 40
_NO_TOOL_SPAN = "the model called a search, but no span records it: instrument the tool, or convert the chat log"


def read_span_traces(source: Source, spans: Iterable[Span], remedy: str = "") -> Iterator[Trace]:
    """Yield one trace a session; a root without a session is a trace by itself.

    Args:
        source: the file, for what is not understood.
        spans: all spans of the file; memory holds them without the bodies of model calls.
        remedy: what would have recorded the results of a search that lacks them.
    """
    sessions: dict[str, list[Root]] = {}
    for root in _select_agents(source, find_roots(spans, costs=source.costs)):
        alone = root.trace_id if root.top.kind == "TURN" else root.span_ids[0]
        sessions.setdefault(root.session or f"\0{alone}", []).append(root)
    for members in sessions.values():
        members.sort(key=lambda root: (root.start, root.order))
        for group in split_session(members):
            with source.handle_errors():
                yield _read_trace(source, group, remedy or _REMEDY)


def _select_agents(source: Source, roots: list[Root]) -> list[Root]:
    """Return the roots with a span of a known kind; a web server's own (`GET /health`) are neither queries nor turns.

    Raises:
        InputError: there are roots, and none of them has such a span.
    """
    others = [root for root in roots if not root.is_of_agent]
    if others and len(others) == len(roots):
        names = Counter(root.top.name or "without a name" for root in others)
        shown = ", ".join(f"{name[:_SHOWN_NAME]!r} {count}" for name, count in names.most_common(_SHOWN_NAMES))
        raise InputError(
            f"{source.path}: none of its {sum(len(root.spans) for root in others)} spans is of a known kind (a model, tool, "
            f"retriever, agent or chain); its root spans are {shown}; export the spans of the agent too, or write its "
            "searches in the format jsonl"
        )
    for root in others:
        source.summary.count_other_root(root.top.name, format_place(root.top.at))
    return [root for root in roots if root.is_of_agent]


def _read_trace(source: Source, roots: list[Root], remedy: str) -> Trace:
    turns = []
    for index, root in enumerate(roots, start=1):
        turns.append(Turn(root.question, _read_steps(source, root, remedy), index, root.query_id))
    last = roots[-1]
    query_id = last.query_id or last.session or last.trace_id
    return Trace(turns, last.top.at, query_id=query_id, session_id=last.session)


def _read_steps(source: Source, root: Root, remedy: str) -> list[Step]:
    """Read the steps of a turn, with their calls in the order of start and place in the file."""
    by_id = {span.span_id: span for span in root.spans}
    callers = _find_callers_of_retrievers(root.spans, by_id)
    steps = [Step()]
    calls = 0
    retrievals: list[tuple[Span, ToolCall]] = []
    tool_times: dict[int, tuple[int, int]] = {}
    for span in root.spans:
        if span.unknown and not (span.get("db.system") is not None and _is_inside_search(span, by_id)):
            source.not_understood(span.unknown, span.at, "a kind of OpenInference or an operation of OTel GenAI")
        if span.kind == "LLM":
            steps.append(Step(usage=_read_usage(span) if source.costs else None))
        elif span.kind == "RETRIEVER" and not _is_inside_recorded_retriever(span, by_id):
            call = _read_retrieval(span, remedy)
            retrievals.append((span, call))
            steps[-1].calls.append(call)
            calls += 1
        elif span.kind == "TOOL" and span.span_id not in callers and not _is_inside_its_copy(span, by_id):
            steps[-1].calls.append(_read_tool(span, remedy))
            calls += 1
        elif span.kind == "RERANKER" and source.reranked:
            _apply_reranker(span, retrievals)
        if source.costs and span.kind in ("RETRIEVER", "TOOL") and span.end >= span.start > 0:
            begin, end = tool_times.get(len(steps) - 1, (span.start, span.end))
            tool_times[len(steps) - 1] = min(begin, span.start), max(end, span.end)
    for index, (begin, end) in tool_times.items():  # tools of a step run side by side
        steps[index].usage = add_usages(steps[index].usage, Usage(seconds=(end - begin) / 1e9))
    if not calls:
        steps += _find_calls_without_spans(root)
    else:
        _add_hosted_calls(root, steps)
    return steps


def _read_usage(span: Span) -> Usage | None:
    """Return what a span of a model cost, and how long it took."""
    seconds = (span.end - span.start) / 1e9 if span.end >= span.start > 0 else None
    return add_usages(span.get(USAGE), Usage(seconds=seconds))


def _is_inside_search(span: Span, by_id: dict[str, Span]) -> bool:
    """Return whether a span is part of the work of a tool or retriever."""
    return any(above.kind in ("TOOL", "RETRIEVER") for above in _iterate_ancestors(span, by_id))


def _add_hosted_calls(root: Root, steps: list[Step]) -> None:
    """Add the searches that models called and no span of a tool answers: the vendor ran them.

    Only where all spans of tools say which call they answer.
    """
    tools = [span for span in root.spans if span.kind == "TOOL"]
    answered = {str(span.get(CALL_ID)) for span in tools}
    if not tools or "None" in answered:
        return
    models = [span for span in root.spans if span.kind == "LLM"]
    for step, span in zip(steps[1:], models, strict=True):
        for call in span.attributes.get("calls", ()):
            if str(call["id"]) not in answered and is_search_tool(call["name"]):
                step.calls.append(ToolCall(call["name"], call["at"], None, call["arguments"], remedy=_NO_TOOL_SPAN))


def _find_callers_of_retrievers(spans: list[Span], by_id: dict[str, Span]) -> set[str]:
    """Return the ids of the spans with a retriever below them; such a tool is not a search of its own."""
    retrievers = (span for span in spans if span.kind == "RETRIEVER")
    return {above.span_id for span in retrievers for above in _iterate_ancestors(span, by_id)}


def _iterate_ancestors(span: Span, by_id: dict[str, Span]) -> Iterator[Span]:
    """Yield the spans above a span, from its parent up; damaged logs may have circles."""
    seen = {span.span_id}
    at = by_id.get(span.parent_id or "")
    while at is not None and at.span_id not in seen:
        seen.add(at.span_id)
        yield at
        at = by_id.get(at.parent_id or "")


def _is_inside_its_copy(span: Span, by_id: dict[str, Span]) -> bool:
    """Return whether a tool's span stands below one that records the same call: that of the agent, above that of MCP."""
    name = _find_tool_name(span)
    return any(
        above.kind == "TOOL" and _find_tool_name(above) == name and _read_tool(above, "").answered
        for above in _iterate_ancestors(span, by_id)
    )


def _is_inside_recorded_retriever(span: Span, by_id: dict[str, Span]) -> bool:
    """Return whether a retriever is called by another one, whose list is the one that the agent saw."""
    return any(
        above.kind == "RETRIEVER" and _read_retrieval(above, "").answered for above in _iterate_ancestors(span, by_id)
    )


def _read_retrieval(span: Span, remedy: str) -> ToolCall:
    documents = _read_documents(span, "retrieval.documents") or _read_documents(span, "gen_ai.retrieval.documents")
    output = span.get("output.value")
    spare = UNANSWERED if output is None else output
    name = span.get("tool.name") or span.get("gen_ai.data_source.id") or span.name or "retriever"
    query = span.get("gen_ai.retrieval.query.text") or span.get("input.value")
    if documents:
        found: Any = _complete_documents(documents, output)
    elif span.get("retrieval.documents") == [] or span.get("gen_ai.retrieval.documents") in ([], "[]"):
        found = []
    else:
        found, spare = spare, UNANSWERED
    failed = span.failed and not documents
    remedy = span.attributes.get(REMEDY, remedy)
    return ToolCall(str(name), span.at, span.span_id, query, found, spare, failed, is_search=True, remedy=remedy)


def _read_documents(span: Span, name: str) -> list[Attributes]:
    """Return the documents of a span as objects, with their metadata parsed from JSON text."""
    found = []
    for document in span.get_objects(name):
        plain = {key.removeprefix("document."): value for key, value in document.items()}
        if isinstance(plain.get("metadata"), str):
            plain["metadata"] = parse_if_json(plain["metadata"])
        found.append(plain)
    return found


def _complete_documents(documents: list[Attributes], output: Any) -> list[Attributes]:
    """Return the documents with the fields that only the span's output has.

    The LangChain instrumentation writes documents without their ids; its output has them.
    """
    if all(document.get("id") is not None for document in documents):
        return documents
    value = parse_if_json(output)
    held = value.get("documents") if isinstance(value, dict) else value
    if not isinstance(held, list) or len(held) != len(documents) or not all(isinstance(one, dict) for one in held):
        return documents
    return [
        {**{key: member for key, member in whole.items() if member is not None}, **document}
        for document, whole in zip(documents, held, strict=True)
    ]


def _find_tool_name(span: Span) -> Any:
    return span.get("tool.name") or span.get("gen_ai.tool.name") or span.name


def _read_tool(span: Span, remedy: str) -> ToolCall:
    name = _find_tool_name(span)
    if not isinstance(name, str) or not name:
        raise unexpected_value(f"{span.at}/name", "the name of a tool", name)
    output = span.get("output.value")
    if output is None:
        output = span.get("gen_ai.tool.call.result")
    arguments = span.get("input.value") or span.get("gen_ai.tool.call.arguments")
    found = UNANSWERED if output is None else _unwrap_message(output)
    artifact = _find_artifact(output)
    body = _parse_message(output)
    failed = span.failed or (body is not None and body.get("status") == "error")
    call = ToolCall(str(name), span.at, span.span_id, arguments, found, UNANSWERED, failed, remedy=remedy)
    if artifact is not None:
        call.output, call.spare = artifact, found
    return call


def _parse_message(output: Any) -> Attributes | None:
    """Return the fields of a LangChain tool message, which its instrumentation writes as output; else None."""
    value = parse_if_json(output)
    if not isinstance(value, dict):
        return None
    body = value.get("data", value.get("kwargs", value))
    return body if isinstance(body, dict) and "content" in body and "tool_call_id" in body else None


def _unwrap_message(output: Any) -> Any:
    body = _parse_message(output)
    return output if body is None or body["content"] is None else body["content"]


def _find_artifact(output: Any) -> Any:
    body = _parse_message(output)
    return None if body is None else body.get("artifact")


def _apply_reranker(span: Span, retrievals: list[tuple[Span, ToolCall]]) -> None:
    """Replace the latest list retrieved before a reranker by its list, under the same parent if there is one."""
    siblings = [call for other, call in retrievals if other.parent_id == span.parent_id]
    documents = _read_documents(span, "reranker.output_documents")
    candidates = siblings or [call for _, call in retrievals]
    if documents and candidates:
        candidates[-1].output, candidates[-1].spare = documents, UNANSWERED


def _find_calls_without_spans(root: Root) -> list[Step]:
    """Return steps for the searches that models called in a log without spans of tools and retrievers."""
    calls = {
        str(call["id"]): call for span in root.spans if span.kind == "LLM" for call in span.attributes.get("calls", ())
    }
    searches = [call for call in calls.values() if is_search_tool(call["name"])]
    return [
        Step([ToolCall(call["name"], call["at"], None, call["arguments"], remedy=_NO_TOOL_SPAN)]) for call in searches
    ]
