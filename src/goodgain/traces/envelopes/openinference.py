"""OpenInference and OTel GenAI spans: OTLP JSON, JSON Lines of spans, flat spans of Phoenix.

A root span is a turn, one session.id joins turns. A search belongs to the step of the latest model span that started
before it under the same root; searches before any model span are one step.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from goodgain.traces.checks import place, wrong
from goodgain.traces.conversations import metadata_query_id, said
from goodgain.traces.heads import Head
from goodgain.traces.jsontext import NotJSONError, loads
from goodgain.traces.pivot import UNANSWERED, Step, ToolCall, Trace, Turn
from goodgain.traces.sources import Source
from goodgain.traces.spans import Attributes, Span, is_spans, spans_of
from goodgain.traces.tools import is_search_tool

_SEARCH_KINDS = {"RETRIEVER", "TOOL", "RERANKER"}
#: What a turn does not begin with, unless there is nothing else.
_LEAVES = {*_SEARCH_KINDS, "LLM", "EMBEDDING"}
#: How attributes begin that only spans of models, tools, retrievers and rerankers have.
_TELLING = ("llm.", "tool.", "retrieval.", "reranker.", "gen_ai.")
_KEPT_OF_OTHERS = ("session.id", "metadata", "gen_ai.conversation.id")
_REMEDY = (
    "record outputs: OPENINFERENCE_HIDE_OUTPUTS=false, "
    "or OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=true for GenAI spans"
)
_NO_TOOL_SPAN = "the model called a search, but no span records it: instrument the tool, or convert the chat log"


def sniff(head: Head) -> bool:
    """Spans: `resourceSpans`, or objects with a span id."""
    return any(is_spans(record) for record in head.objects)


def read(source: Source) -> Iterator[Trace]:
    """One trace a session; a root without a session is one by itself."""
    roots = _roots(source)
    sessions: dict[str, list[_Root]] = {}
    for root in roots:
        sessions.setdefault(root.session or f"\0{root.span_ids[0]}", []).append(root)
    for members in sessions.values():
        members.sort(key=lambda root: (root.start, root.order))
        for group in _conversations(members):
            with source.tolerating():
                yield _trace(source, group)


class _Root:
    """A root span with all spans below it: one turn."""

    def __init__(self, spans: list[Span], top: Span) -> None:
        self.spans = sorted(spans, key=lambda span: (span.start, span.order))
        self.span_ids = [span.span_id for span in spans]
        self.top = top
        self.trace_id = top.trace_id
        self.start, self.order = self.spans[0].start, self.spans[0].order
        rooted = [top, *(span for span in self.spans if span is not top)]
        self.session = next(filter(None, (_session(span) for span in rooted)), None)
        self.query_id = next(filter(None, (_query_id(span) for span in rooted)), None)
        self.history, self.question = _heard(rooted)


def _roots(source: Source) -> list[_Root]:
    """The roots of a file. Spans whose parent the file lacks belong to their trace's root."""
    traces: dict[str, list[Span]] = {}
    count = 0
    for value, at in source.documents():
        with source.tolerating():
            for span in spans_of(value, at, count):
                traces.setdefault(span.trace_id, []).append(span)
                if not span.kind and any(key.startswith(_TELLING) for key in span.attributes):
                    source.not_understood("span without a kind that has attributes of a model, tool or retriever")
                count += 1
                _lighten(span)
    roots = []
    for spans in traces.values():
        tops = [span for span in spans if span.parent_id is None]
        tops = _beginnings([span for span in tops if span.kind not in _LEAVES] or tops)
        if len(tops) < 2:
            roots.append(_Root(spans, tops[0] if tops else min(spans, key=lambda span: (span.start, span.order))))
            continue
        below = _tops(spans, tops)
        roots += [_Root([span for span in spans if below[span.span_id] is top], top) for top in tops]
    return roots


def _beginnings(tops: list[Span]) -> list[Span]:
    """Those roots of a trace that begin when the one before has ended: others have lost their parent."""
    found: list[Span] = []
    for top in sorted(tops, key=lambda span: (span.start, span.order)):
        if not found or top.start > found[-1].end:
            found.append(top)
    return found


def _lighten(span: Span) -> None:
    """Drop what a span says beyond need, once it is known what was said to a model and which tools it called."""
    if span.kind in _SEARCH_KINDS:
        return
    kept = {key: span.get(key) for key in _KEPT_OF_OTHERS if span.get(key) is not None}
    if span.kind == "LLM" or span.parent_id is None:
        kept["heard"] = _messages_of(span)
    if span.kind == "LLM":
        kept["calls"] = list({str(call["id"]): call for call in _model_calls(span)}.values())
    span.attributes = kept


def _tops(spans: list[Span], tops: list[Span]) -> dict[str, Span]:
    """For every span the root it stands below; the first root where its parents are missing."""
    by_id = {span.span_id: span for span in spans}
    found: dict[str, Span] = {top.span_id: top for top in tops}
    for span in spans:
        path: list[str] = []
        at: Span | None = span
        while at is not None and at.span_id not in found and at.span_id not in path:
            path.append(at.span_id)
            at = by_id.get(at.parent_id or "")
        top = found[at.span_id] if at is not None and at.span_id in found else tops[0]
        found.update(dict.fromkeys(path, top))
    return found


def _session(span: Span) -> str | None:
    for name in ("session.id", "gen_ai.conversation.id"):
        value = span.get(name)
        if isinstance(value, (str, int)) and not isinstance(value, bool) and value != "":
            return str(value)
    return None


def _object(value: Any) -> Any:
    """A value that may be written as JSON text."""
    if isinstance(value, str):
        try:
            return loads(value)
        except NotJSONError:
            return value
    return value


def _query_id(span: Span) -> str | None:
    metadata = _object(span.get("metadata"))
    return metadata_query_id(metadata, f"{place(span.at)}/attributes/metadata")


def _messages_of(span: Span) -> tuple[list[str], str]:
    """What was said before, and the user's question, in what a span was given."""
    if "heard" in span.attributes:
        return span.attributes["heard"]  # type: ignore[no-any-return]  # put there by _lighten
    messages = [
        (
            str(message.get("message.role", message.get("role"))),
            said(message.get("message.content", message.get("content"))),
        )
        for message in span.all("llm.input_messages")
    ]
    if not messages:
        given = _object(span.get("gen_ai.input.messages") or span.get("input.value"))
        held = given.get("messages") if isinstance(given, dict) else given
        if isinstance(held, list) and len(held) == 1 and isinstance(held[0], list):
            held = held[0]
        if not isinstance(held, list):
            return [], given if isinstance(given, str) else ""
        messages = [_role_and_text(message) for message in held if isinstance(message, dict)]
    asked = [index for index, (role, _) in enumerate(messages) if role in ("user", "human")]
    if not asked:
        return [], ""
    return [text for _, text in messages[: asked[-1]] if text], messages[asked[-1]][1]


def _role_and_text(message: Attributes) -> tuple[str, str]:
    """Role and words of a message in the shapes frameworks give their root spans."""
    body = message.get("data", message.get("kwargs", message))
    body = body if isinstance(body, dict) else message
    role = message.get("role", body.get("type", message.get("type")))
    parts = body.get("parts")
    content = [part.get("content") for part in parts if isinstance(part, dict)] if isinstance(parts, list) else None
    return str(role), said(content if content is not None else body.get("content"))


def _heard(spans: list[Span]) -> tuple[set[str], str]:
    """All that the root, or the first model call below it, was given from before, and the question it was asked."""
    first = next((span for span in spans[1:] if span.kind == "LLM"), None)
    history: set[str] = set()
    question = ""
    for span in (spans[0], *([first] if first else [])):
        before, asked = _messages_of(span)
        history.update(before)
        question = question or asked
    return history, question


def _conversations(roots: list[_Root]) -> Iterator[list[_Root]]:
    """The roots of a session as turns of one conversation, or as queries of their own.

    They are queries if they name different ones and none was given what was asked in an earlier one.
    """
    named = {root.query_id for root in roots if root.query_id is not None}
    continued = any(
        earlier.question and earlier.question in later.history
        for index, later in enumerate(roots)
        for earlier in roots[:index]
    )
    if len(named) < 2 or continued:
        yield roots
        return
    queries: dict[str | None, list[_Root]] = {}
    for root in roots:
        queries.setdefault(root.query_id, []).append(root)
    yield from queries.values()


def _trace(source: Source, roots: list[_Root]) -> Trace:
    turns = []
    for index, root in enumerate(roots, start=1):
        turns.append(Turn(root.question, _steps(source, root), index, root.query_id))
    last = roots[-1]
    query_id = last.query_id or last.session or last.trace_id
    return Trace(turns, last.top.at, query_id=query_id, session_id=last.session)


def _steps(source: Source, root: _Root) -> list[Step]:
    """The steps of a turn, and the calls in them by start and place in the file."""
    by_id = {span.span_id: span for span in root.spans}
    below = _kinds_below(root.spans, by_id)
    steps = [Step()]
    calls = 0
    retrievals: list[tuple[Span, ToolCall]] = []
    for span in root.spans:
        if span.kind == "LLM":
            steps.append(Step())
        elif span.kind == "RETRIEVER" and not _inside_recorded_retriever(span, by_id):
            call = _retrieval(span)
            retrievals.append((span, call))
            steps[-1].calls.append(call)
            calls += 1
        elif span.kind == "TOOL" and "RETRIEVER" not in below.get(span.span_id, ()):
            steps[-1].calls.append(_tool(span))
            calls += 1
        elif span.kind == "RERANKER" and source.reranked:
            _rerank(span, retrievals)
    if not calls:
        steps += _unseen(root)
    return steps


def _kinds_below(spans: list[Span], by_id: dict[str, Span]) -> dict[str, set[str]]:
    """For every span the kinds of the spans below it, of those kinds that count."""
    below: dict[str, set[str]] = {}
    for span in spans:
        if span.kind != "RETRIEVER":
            continue
        for above in _above(span, by_id):
            below.setdefault(above.span_id, set()).add(span.kind)
    return below


def _above(span: Span, by_id: dict[str, Span]) -> Iterator[Span]:
    seen = {span.span_id}
    at = by_id.get(span.parent_id or "")
    while at is not None and at.span_id not in seen:
        seen.add(at.span_id)
        yield at
        at = by_id.get(at.parent_id or "")


def _inside_recorded_retriever(span: Span, by_id: dict[str, Span]) -> bool:
    """Whether a retriever works for another one, which has the list that the agent saw."""
    return any(above.kind == "RETRIEVER" and _retrieval(above).answered for above in _above(span, by_id))


def _retrieval(span: Span) -> ToolCall:
    documents = _documents(span, "retrieval.documents") or _documents(span, "gen_ai.retrieval.documents")
    output = span.get("output.value")
    spare = UNANSWERED if output is None else output
    name = span.get("tool.name") or span.get("gen_ai.data_source.id") or span.name or "retriever"
    query = span.get("gen_ai.retrieval.query.text") or span.get("input.value")
    if documents:
        found: Any = _completed(documents, output)
    elif span.get("retrieval.documents") == [] or span.get("gen_ai.retrieval.documents") in ([], "[]"):
        found = []
    else:
        found, spare = spare, UNANSWERED
    failed = span.failed and not documents
    return ToolCall(str(name), span.at, span.span_id, query, found, spare, failed, is_search=True, remedy=_REMEDY)


def _documents(span: Span, name: str) -> list[Attributes]:
    """The documents of a span as objects; their metadata are JSON text."""
    found = []
    for document in span.all(name):
        plain = {key.removeprefix("document."): value for key, value in document.items()}
        if isinstance(plain.get("metadata"), str):
            plain["metadata"] = _object(plain["metadata"])
        found.append(plain)
    return found


def _completed(documents: list[Attributes], output: Any) -> list[Attributes]:
    """Documents without an id, as the LangChain instrumentation writes them, with those of the output."""
    if all(document.get("id") is not None for document in documents):
        return documents
    value = _object(output)
    held = value.get("documents") if isinstance(value, dict) else value
    if not isinstance(held, list) or len(held) != len(documents) or not all(isinstance(one, dict) for one in held):
        return documents
    return [
        {**{key: member for key, member in whole.items() if member is not None}, **document}
        for document, whole in zip(documents, held, strict=True)
    ]


def _tool(span: Span) -> ToolCall:
    name = span.get("tool.name") or span.get("gen_ai.tool.name") or span.name
    if not isinstance(name, str):
        raise wrong(f"{span.at}/attributes/tool.name", "the name of a tool", name)
    output = span.get("output.value")
    if output is None:
        output = span.get("gen_ai.tool.call.result")
    arguments = span.get("input.value") or span.get("gen_ai.tool.call.arguments")
    found = UNANSWERED if output is None else _unwrapped(output)
    artifact = _artifact(output)
    if artifact is not None:
        return ToolCall(str(name), span.at, span.span_id, arguments, artifact, found, span.failed, remedy=_REMEDY)
    return ToolCall(str(name), span.at, span.span_id, arguments, found, UNANSWERED, span.failed, remedy=_REMEDY)


def _message_body(output: Any) -> Attributes | None:
    """The fields of a LangChain tool message, which its instrumentation gives as a tool's output."""
    value = _object(output)
    if not isinstance(value, dict):
        return None
    body = value.get("data", value.get("kwargs", value))
    return body if isinstance(body, dict) and "content" in body and "tool_call_id" in body else None


def _unwrapped(output: Any) -> Any:
    body = _message_body(output)
    return output if body is None or body["content"] is None else body["content"]


def _artifact(output: Any) -> Any:
    body = _message_body(output)
    return None if body is None else body.get("artifact")


def _rerank(span: Span, retrievals: list[tuple[Span, ToolCall]]) -> None:
    """Put a reranker's list in the place of the latest list retrieved before it, if possible under the same parent."""
    siblings = [call for other, call in retrievals if other.parent_id == span.parent_id]
    documents = _documents(span, "reranker.output_documents")
    candidates = siblings or [call for _, call in retrievals]
    if documents and candidates:
        candidates[-1].output, candidates[-1].spare = documents, UNANSWERED


def _unseen(root: _Root) -> list[Step]:
    """Searches that model spans called where no span of a tool or retriever is in the log."""
    calls = {
        str(call["id"]): call for span in root.spans if span.kind == "LLM" for call in span.attributes.get("calls", ())
    }
    searches = [call for call in calls.values() if is_search_tool(call["name"])]
    return [
        Step([ToolCall(call["name"], call["at"], None, call["arguments"], remedy=_NO_TOOL_SPAN)]) for call in searches
    ]


def _model_calls(span: Span) -> Iterator[Attributes]:
    """The tool calls in what a model answered."""
    for index, message in enumerate(span.all("llm.output_messages")):
        calls: dict[str, Attributes] = {}
        for key, value in message.items():
            _, marked, rest = key.partition("tool_calls.")
            number, _, field = rest.partition(".")
            if marked:
                calls.setdefault(number, {})[field.removeprefix("tool_call.")] = value
        for number, call in calls.items():
            name = call.get("function.name")
            if isinstance(name, str):
                call_id = call.get("id") or f"{span.span_id} {index} {number}"
                yield {"id": call_id, "name": name, "arguments": call.get("function.arguments"), "at": span.at}
