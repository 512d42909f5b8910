"""Reads the calls of tools and retrievers that spans record."""

from __future__ import annotations

from typing import Any

from goodgain.files.json_text import parse_if_json
from goodgain.traces.conversations import record_tree as tree
from goodgain.traces.conversations.span_vocabularies import REMEDY, Attributes
from goodgain.traces.conversations.spans import Span
from goodgain.traces.expected_values import expect_text
from goodgain.traces.model import UNANSWERED, ToolCall
from goodgain.traces.tool_outputs.readers import read_output


def is_inside_its_copy(span: Span, above: tuple[Span, ...]) -> bool:
    """Return whether a span is below one of the same call: an MCP server's tool below the agent's."""
    if span.kind == "RETRIEVER":  # the agent saw the outer one's list
        return any(one.kind == "RETRIEVER" and read_retrieval(one, "").answered for one in above)
    name = find_tool_name(span)
    return any(one.kind == "TOOL" and find_tool_name(one) == name and read_tool(one, "").answered for one in above)


def read_retrieval(span: Span, remedy: str) -> ToolCall:
    documents = read_documents(span, "retrieval.documents") or read_documents(span, "gen_ai.retrieval.documents")
    name = span.get("tool.name") or span.get("gen_ai.data_source.id") or span.name or "retriever"
    query = span.get("gen_ai.retrieval.query.text") or span.get("input.value")
    found, spare = tree.or_unanswered(span.get("output.value")), tree.or_unanswered(None)
    if documents or span.get("retrieval.documents") == [] or span.get("gen_ai.retrieval.documents") in ([], "[]"):
        value = parse_if_json(found)
        wholes = tree.objects_in(value.get("documents") if isinstance(value, dict) else value)
        if len(wholes) == len(documents) and any(document.get("id") is None for document in documents):
            documents = [  # LangChain writes ids only in the span's output
                {**{key: member for key, member in whole.items() if member is not None}, **document}
                for document, whole in zip(documents, wholes, strict=True)
            ]
        found, spare = documents, found
    failed = span.failed and not documents
    remedy = span.attributes.get(REMEDY, remedy)
    return ToolCall(str(name), span.at, span.span_id, query, found, spare, failed, is_search=True, remedy=remedy)


def has_own_list(span: Span) -> bool:
    """Return whether the output of a tool is a list of results with ids or URLs, or reports that nothing was found."""
    call = read_tool(span, "")
    if not call.answered or call.failed:
        return False
    found = read_output(call.output, span.at)
    named = all(result.doc_id or result.url for result in found.results)
    return found.status == "empty" or (found.status == "ok" and named)


def read_documents(span: Span, name: str) -> list[Attributes]:
    documents = [
        {key.removeprefix("document."): value for key, value in document.items()} for document in span.get_objects(name)
    ]
    for document in documents:
        if isinstance(document.get("metadata"), str):
            document["metadata"] = parse_if_json(document["metadata"])
    return documents


def find_tool_name(span: Span) -> Any:
    return span.get("tool.name") or span.get("gen_ai.tool.name") or span.name


def read_tool(span: Span, remedy: str) -> ToolCall:
    output = span.get("output.value")
    if output is None:
        output = span.get("gen_ai.tool.call.result")
    value = tree.object_or_empty(parse_if_json(output))
    body = tree.object_or_empty(value.get("data", value.get("kwargs", value)))
    # LangChain's instrumentation writes its message.
    message = body if {"content", "tool_call_id"} <= body.keys() else {}
    content, artifact = message.get("content"), message.get("artifact")
    found = tree.or_unanswered(output if content is None else content)
    first, spare = (found, UNANSWERED) if artifact is None else (artifact, found)
    arguments = span.get("input.value") or span.get("gen_ai.tool.call.arguments")
    return ToolCall(
        expect_text(find_tool_name(span) or None, f"{span.at}/name"), span.at, span.span_id, arguments, first, spare,
        failed=span.failed or message.get("status") == "error", remedy=remedy,
    )  # fmt: skip
