"""Reads calls from spans of tools and retrievers. Decides which of several nested spans counts as the search."""

from typing import Any

from goodgain.errors import InputError
from goodgain.files.json_text import parse_if_json
from goodgain.logs.traces.conversations.span_vocabularies import CALL_ID, CALLS, REMEDY, Attributes
from goodgain.logs.traces.conversations.spans import Span, iterate_ancestors
from goodgain.logs.traces.conversations.tool_calls import mark_unanswered
from goodgain.logs.traces.expected_values import as_word, expect_text, object_or_empty, objects_in
from goodgain.logs.traces.input.sources import Source
from goodgain.logs.traces.model import UNANSWERED, ToolCall
from goodgain.logs.traces.tool_outputs.readers import looks_like_results, read_output


def find_given_way(source: Source, spans: list[Span], by_id: dict[tuple[str, str], Span]) -> dict[int, Span | None]:
    """Find tools and retrievers whose spans do not count as searches. The keys of the returned dict are `id(span)`.

    The value for a retriever is the tool span that counts instead. The value for a tool is None.

    - If tools above a retriever return lists, the outermost such tool counts instead, because the agent sees the tool's results.
    - If tools above a retriever return no list, the retriever counts instead of the tools.
    - A tool that runs a model can count instead of a retriever only if the tool is the closest tool above the retriever.
    - A tool that runs an agent does not count instead of the retrievers of this agent.
    - No tool counts instead of a retriever that the caller names in `tools=`.
    """
    with_model = {
        id(ancestor) for span in spans if span.kind in ("LLM", "AGENT") for ancestor in iterate_ancestors(span, by_id)
    }
    given_way: dict[int, Span | None] = {}
    holders: set[int] = set()

    for span in spans:
        if span.kind != "RETRIEVER":
            continue
        above = list(iterate_ancestors(span, by_id))
        given_way |= {id(ancestor): None for ancestor in above if ancestor.kind == "TOOL"}
        if source.is_search.find(read_retrieval(span, "").tool) is not None:
            continue
        agent = next((place for place, ancestor in enumerate(above) if ancestor.kind == "AGENT"), len(above))
        tools = [ancestor for ancestor in above[:agent] if ancestor.kind == "TOOL"]
        without_model = [tool for tool in reversed(tools) if id(tool) not in with_model]
        for tool in [*without_model, *tools[:1]]:
            if id(tool) in holders or _has_own_list(source, tool, has_model=id(tool) in with_model):
                holders.add(id(tool))
                given_way[id(span)] = tool
                break

    return {key: tool for key, tool in given_way.items() if key not in holders}


def _has_own_list(source: Source, tool: Span, *, has_model: bool) -> bool:
    """Return whether a tool's output is a list of results.

    Text from a tool that runs a model is an answer, not a list. Unless the tool's name is that of a search tool,
    the list must have at least two results with ids.
    """
    call = read_tool(tool, "")
    is_text = isinstance(parse_if_json(call.output), str)
    if call.output in (UNANSWERED, None, "") or (is_text and has_model):
        return False
    if not source.is_search(call.tool):
        may_search = source.is_search.rule is not None and not has_model and not is_text
        return may_search and source.is_search.find(call.tool) is None and looks_like_results(call.output, call.at)

    try:
        outcome = read_output(call.output, call.at)
    except InputError:
        return False

    named = all(result.doc_id or result.url or result.title for result in outcome.results)
    is_list = named or (len(outcome.results) > 1 and not is_text)
    return outcome.status == "empty" or (outcome.status == "ok" and is_list)


def name_in_summary(span: Span, above: Span | None) -> ToolCall:
    """Convert `span`, which does not count as a search, to a call. If `above` is a span that counts, the call's name says so."""
    call = (read_tool if span.kind == "TOOL" else read_retrieval)(span, "")
    below = "" if above is None else f" (inside {find_tool_name(above)}, which counts)"
    return ToolCall(f"{call.tool}{below}", call.at, call.call_id, is_search=False, opened=())


class StepFinder:
    """Finds the step of each call. The first rule that applies decides:

    1. A call belongs to the model's answer that contains the id of the call.
    2. If a call starts while another call with the same parent runs, both calls belong to one step. This rule does not apply
       if the latest model span contains a call of the same tool.
    3. A call belongs to the step of the latest model span.
    """

    def __init__(self) -> None:
        self._by_call: dict[str, int] = {}
        self._names: set[str] = set()
        self._ends: dict[int, int] = {}
        self._running: dict[tuple[str, str | None], tuple[int, int]] = {}

    def add_model(self, span: Span, index: int) -> None:
        calls = span.attributes[CALLS]
        self._ends[index] = span.end
        self._by_call |= dict.fromkeys(calls, index)
        self._names = {as_word(call["name"]) for call in calls.values()}

    def find(self, span: Span, latest: int) -> int:
        """Return the index of the step to which a call belongs. `latest` is the step of the latest model span."""
        end, running = self._running.get((span.trace_id, span.parent_id), (0, latest))
        is_parallel = span.start < end and as_word(find_tool_name(span)) not in self._names
        index = self._by_call.get(str(span.get(CALL_ID)), running if is_parallel else latest)
        # If a model's span ends after the calls begin, the ends of spans do not show which calls ran in parallel.
        until = span.end if self._ends.get(index, 0) <= span.start else 0
        self._running[span.trace_id, span.parent_id] = max(end, until) if index == running else until, index
        return index


def is_inside_its_copy(span: Span, above: tuple[Span, ...]) -> bool:
    """Return whether an outer span records the same call: an agent's tool may call a tool of the same name on an MCP server."""
    if span.kind == "RETRIEVER":  # the agent saw the list of the outer retriever
        return any(ancestor.kind == "RETRIEVER" and read_retrieval(ancestor, "").answered for ancestor in above)
    name = find_tool_name(span)
    return any(
        ancestor.kind == "TOOL" and find_tool_name(ancestor) == name and read_tool(ancestor, "").answered
        for ancestor in above
    )


def read_retrieval(span: Span, remedy: str) -> ToolCall:
    """Return the call of a retriever, always a search. Its output is the documents in the span's attributes, even none of them.

    If the span has no such attribute, the output is the span's output value.
    """
    documents = read_documents(span, "retrieval.documents") or read_documents(span, "gen_ai.retrieval.documents")
    name = span.get("tool.name") or span.get("gen_ai.data_source.id") or span.name or "retriever"
    query = span.get("gen_ai.retrieval.query.text") or span.get("input.value")
    output = mark_unanswered(span.get("output.value"))
    spare = mark_unanswered(None)
    if documents or span.get("retrieval.documents") == [] or span.get("gen_ai.retrieval.documents") in ([], "[]"):
        value = parse_if_json(output)
        wholes = objects_in(value.get("documents") if isinstance(value, dict) else value)
        if len(wholes) == len(documents) and any(document.get("id") is None for document in documents):
            documents = [  # LangChain writes ids only in the span's output
                {**{key: member for key, member in whole.items() if member is not None}, **document}
                for document, whole in zip(documents, wholes, strict=True)
            ]
        output, spare = documents, output

    failed = span.failed and not documents
    remedy = span.attributes.get(REMEDY, remedy)
    return ToolCall(str(name), span.at, span.span_id, query, output, spare, failed, is_search=True, remedy=remedy)


def read_reranking(span: Span) -> ToolCall:
    """Return the call of a reranker. Its results are a search only if `tools=` says so, or it reranks those of a retriever."""
    query = span.get("reranker.query") or span.get("input.value")
    documents = read_documents(span, "reranker.output_documents")
    output = mark_unanswered(documents or span.get("output.value"))
    return ToolCall(str(span.name or "reranker"), span.at, span.span_id, query, output, failed=span.failed)


def read_documents(span: Span, name: str) -> list[Attributes]:
    """Return the documents in the list attribute `name`, without the prefix `document.` of their keys."""
    documents = []
    for fields in span.get_objects(name):
        documents.append({key.removeprefix("document."): value for key, value in fields.items()})
    for document in documents:
        if isinstance(document.get("metadata"), str):
            document["metadata"] = parse_if_json(document["metadata"])
    return documents


def find_tool_name(span: Span) -> Any:
    return span.get("tool.name") or span.get("gen_ai.tool.name") or span.name


def read_tool(span: Span, remedy: str) -> ToolCall:
    """Return the call of a tool. If LangChain's message wraps the output, the call gets the message's artifact, else its content.

    Beside an artifact, the content is the spare output.
    """
    outputs = (span.get(name) for name in ("output.value", "gen_ai.tool.call.result", "gen_ai.output", "tool_response"))
    output = next((candidate for candidate in outputs if candidate is not None), None)
    value = object_or_empty(parse_if_json(output))
    body = object_or_empty(value.get("data", value.get("kwargs", value)))
    message = body if {"content", "tool_call_id"} <= body.keys() else {}
    content = message.get("content")
    artifact = message.get("artifact")
    output_of_tool = mark_unanswered(output if content is None else content)
    spare: Any = UNANSWERED
    if artifact is not None:
        spare = output_of_tool
        output_of_tool = artifact
    inputs = (
        span.get(name) for name in ("input.value", "gen_ai.tool.call.arguments", "gen_ai.tool.args", "tool_arguments")
    )
    arguments = next(filter(None, inputs), None)
    return ToolCall(
        expect_text(find_tool_name(span) or None, f"{span.at}/name"), span.at, span.span_id, arguments, output_of_tool,
        spare, failed=span.failed or message.get("status") == "error", remedy=remedy,
    )  # fmt: skip
