"""Translates the span attributes of Vercel AI SDK, Traceloop, MLflow, Langfuse and Monocle.

`translate` copies attributes to the names that the span reader knows: `tool.name`, `tool_call.id`, `input.value`,
`output.value`, `session.id`, `metadata`, `gen_ai.output.messages`.
"""

import re
from collections.abc import Callable
from typing import Any

from goodgain.files.json_text import parse_if_json
from goodgain.logs.traces.expected_values import find_id, objects_in
from goodgain.logs.traces.tools import ToolPredicate

Attributes = dict[str, Any]

#: The attribute with the id of the call that a tool's span answers.
CALL_ID = "tool_call.id"
#: Internal attribute: the calls in a model's answer, by id. No log uses this name.
CALLS = "goodgain.calls"
#: Internal attribute: how to record the results of a search. No log uses this name.
REMEDY = "goodgain.remedy"
#: Internal attribute of a Langfuse span: whether the name decided the kind.
BY_NAME = "goodgain.by_name"
#: Names for the id of a conversation, in order of preference.
SESSIONS = (
    *("session_id", "sessionId", "session.id", "thread_id", "threadId"),
    *("conversation_id", "conversationId", "chat_id"),
)
#: Keys of the query in Traceloop's input, in order of preference.
_TRACELOOP_INPUTS = ("inputs", "query", "input_str", "kwargs", "args")
#: The number in `llm.input_messages.0.content`.
_INDEX = re.compile(r"\d{1,5}")
#: A limit against malicious logs: attributes nested deeper are not flattened.
_MAX_DEPTH = 20
#: How many times JSON text may be encoded in JSON text.
_MAX_ENCODINGS = 3
_TRACELOOP_KINDS = {"tool": "TOOL", "workflow": "CHAIN", "task": "CHAIN", "agent": "AGENT", "session": "CHAIN"}
#: The kind of generic types: the span's name decides.
BY_ITS_NAME = "by its name"
#: Kinds of MLflow that OpenInference does not have.
_MLFLOW_KINDS = {
    **dict.fromkeys(("PARSER", "MEMORY", "WORKFLOW", "TASK"), "CHAIN"),
    **dict.fromkeys(("CHAT_MODEL", "COMPLETION"), "LLM"),
    "UNKNOWN": BY_ITS_NAME,  # a function without a given type
}
LANGFUSE_KINDS = {
    **{kind: kind for kind in ("TOOL", "RETRIEVER", "AGENT", "CHAIN", "EMBEDDING", "EVALUATOR", "GUARDRAIL")},
    **dict.fromkeys(("SPAN", "EVENT"), BY_ITS_NAME),  # of old versions
    "GENERATION": "LLM",
}
#: The kinds of Monocle's `span.type`. Types without a kind name a place, not an action.
_MONOCLE_KINDS = {
    **dict.fromkeys(("inference", "inference.framework"), "LLM"),
    **dict.fromkeys(("agentic.tool.invocation", "agentic.mcp.invocation"), "TOOL"),
    **dict.fromkeys(("agentic.turn", "agentic.request"), "TURN"),
    **dict.fromkeys(("workflow", "generic", "http.process", "http.send"), ""),
    "retrieval": "RETRIEVER",
    "embedding": "EMBEDDING",
    "agentic.invocation": "AGENT",
    "agentic.delegation": "CHAIN",
    "inference.modelapi": "CHAIN",  # below the span of the model
}
_MONOCLE_REMEDY = "Monocle keeps only 100 characters of a retriever's results: return them from a tool of the agent"


def translate(attributes: Attributes, name: str, is_search: ToolPredicate) -> str:
    """Copy attributes to the names that the span reader knows. Return the span's kind, such as TOOL.

    If the span's type is generic and `is_search` accepts `name`, the kind is TOOL. If no kind is known, return an empty text.
    """
    for prefix, (start, copies, read) in _VOCABULARIES.items():
        if any(key.startswith(prefix) for key in attributes):
            held = [key for key in attributes if start and key.startswith(start)]
            metadata = {key.removeprefix(start): attributes[key] for key in held}
            _add(attributes, "metadata", metadata or None)
            _add(attributes, "session.id", find_id(metadata, SESSIONS))
            for ours, vendor_name in copies.items():
                _add(attributes, ours, decode(attributes.get(vendor_name)))
            return read(attributes, name, is_search)
    return ""


def decode(value: Any) -> Any:
    """Decode JSON text, even if it is encoded several times. Return other values unchanged."""
    for _ in range(_MAX_ENCODINGS):
        if isinstance(value, str) and value.lstrip().startswith(("{", "[", '"')):
            value = parse_if_json(value)
    return value


def collect_objects(attributes: Attributes, name: str) -> list[Attributes]:
    """Return the objects in a list attribute, with dotted keys. The list is flat (`name.0.x`, `name.1.x` ...) or nested."""
    if isinstance(nested := attributes.get(name), list):
        return list(map(_flatten, objects_in(nested)))
    objects: dict[int, Attributes] = {}
    for key, value in attributes.items():
        prefix, _, path = key.removeprefix("attributes.").partition(f"{name}.")
        index, _, field = path.partition(".")
        if not prefix and _INDEX.fullmatch(index) and field:
            objects.setdefault(int(index), {})[field] = value
    return [objects[index] for index in sorted(objects)]


def _flatten(value: Attributes, prefix: str = "", depth: int = _MAX_DEPTH) -> Attributes:
    """Replace nested objects and lists of calls by fields with dotted keys (`tool_calls.0.name`). `metadata` stays nested."""
    flat: Attributes = {}
    for key, member in value.items():
        opens_list = key.endswith("tool_calls") and isinstance(member, list)
        inner = dict(zip(map(str, range(len(member))), member, strict=True)) if opens_list else member
        if isinstance(inner, dict) and depth and key != "metadata":
            flat.update(_flatten(inner, f"{prefix}{key}.", depth - 1))
        else:
            flat[f"{prefix}{key}"] = member
    return flat


def _add(attributes: Attributes, name: str, value: Any) -> None:
    """Set an attribute, unless the value is None or the attribute has a value already."""
    if value is not None and attributes.get(name) is None:
        attributes[name] = value


def _read_vercel(attributes: Attributes, name: str, _: ToolPredicate) -> str:
    """Return the kind of a span of the Vercel AI SDK. Copy the prompt, the text and the calls of a model's span."""
    if attributes.get("ai.toolCall.name") is not None:
        return "TOOL"
    _add(attributes, "output.value", attributes.get("ai.response.text"))
    operation = str(attributes.get("ai.operationId", name))
    if operation.endswith((".doGenerate", ".doStream")):
        calls = decode(attributes.get("ai.response.toolCalls"))
        parts = [
            {"type": "tool_call", "id": call.get("toolCallId"), "name": call.get("toolName"),
             "arguments": call.get("input", call.get("args"))}
            for call in objects_in(calls)
        ]  # fmt: skip
        _add(attributes, "gen_ai.output.messages", [{"role": "assistant", "parts": parts}] if parts else None)
        _add(attributes, "gen_ai.input.messages", attributes.get("ai.prompt.messages"))
        return "LLM"
    if ".embed" in operation or ".doEmbed" in operation:
        return "EMBEDDING"
    return "CHAIN" if operation.startswith("ai.") else ""


def _read_traceloop(attributes: Attributes, name: str, _: ToolPredicate) -> str:
    """Return the kind of a Traceloop span. Unwrap the query from its input, and the result or documents from its output."""
    given = decode(attributes.get("traceloop.entity.input"))
    output = decode(attributes.get("traceloop.entity.output"))
    if isinstance(output, dict) and {"output", "kwargs"} == output.keys():
        output = output["output"]  # LangChain's tools; decorated functions write the value itself
    elif isinstance(output, dict) and {"documents", "count"} == output.keys():
        output = output["documents"]
    if isinstance(given, dict):
        given = next((given[key] for key in _TRACELOOP_INPUTS if given.get(key)), None)
    _add(attributes, "input.value", given)
    _add(attributes, "output.value", output)
    return _TRACELOOP_KINDS.get(str(attributes.get("traceloop.span.kind")), "")


def read_kind(value: Any, kinds: dict[str, str], name: str, is_search: ToolPredicate) -> str:
    """Convert the type of a span to a kind, such as TOOL. If the type is generic, the span's name decides."""
    kind = value.upper() if isinstance(value, str) else ""
    name_of_kind = kinds.get(kind, kind)
    if name_of_kind != BY_ITS_NAME:
        return name_of_kind
    if is_search(name):
        return "TOOL"
    return "CHAIN"


def _read_monocle(attributes: Attributes, name: str, is_search: ToolPredicate) -> str:
    """Return the kind of a Monocle span, and copy its input and output.

    A type that names a place, not an action, has no kind ("").
    """
    span_type = str(attributes.get("span.type"))
    kind = _MONOCLE_KINDS.get(span_type)
    entities = collect_objects(attributes, "entity")
    first = entities[0] if entities else {}
    if span_type == "custom":  # a function that the user chose: the name decides
        kind = "TOOL" if is_search(name) else ""
        first = {}
    elif kind is None:
        return span_type.upper() if "monocle_apptrace.version" in attributes else ""
    elif kind == "RETRIEVER" and str(first.get("type")).startswith("model.embedding"):
        return "EMBEDDING"

    logged = attributes.get("data.input.input")
    if kind == "LLM":
        _add_messages_of_monocle(attributes, logged, entities)
        return kind

    if kind in ("TOOL", "RETRIEVER"):
        _add(attributes, "tool.name", first.get("name"))
        _add(attributes, "input.value", decode(logged[0] if isinstance(logged, list) and len(logged) == 1 else logged))
        output = attributes.get("data.output.response", attributes.get("data.output.output"))
        if kind == "RETRIEVER":
            output = decode(output)
            if isinstance(output, dict) and (
                "retrieved_references" in output or {"assistant", "session_id"} >= output.keys()
            ):
                output = output.get("retrieved_references")  # Bedrock's results, or the answer in their place
            elif isinstance(output, str) and output.endswith("..."):
                output = None  # Monocle has cut it
            _add(attributes, REMEDY, _MONOCLE_REMEDY)
        _add(attributes, "output.value", output)
    return kind


def _add_messages_of_monocle(attributes: Attributes, logged: Any, entities: list[Attributes]) -> None:
    """Add the messages of a model's span: its input, and the calls that it made. Monocle keeps only their names."""
    messages = []
    for logged_message in logged if isinstance(logged, list) else [logged]:
        message = decode(logged_message)
        role, content = "user", message
        if isinstance(message, dict) and len(message) == 1:  # {role: text}
            role, content = next(iter(message.items()))
        messages.append({"role": role, "content": content})
    _add(attributes, "gen_ai.input.messages", messages)

    tools = [entity.get("name") for entity in entities if str(entity.get("type")).startswith("tool.")]
    parts = [{"type": "tool_call", "name": tool} for tool in tools]
    _add(attributes, "gen_ai.output.messages", [{"role": "assistant", "parts": parts}] if parts else None)
    for ours, theirs in (("input", "prompt"), ("output", "completion")):
        _add(attributes, f"gen_ai.usage.{ours}_tokens", attributes.get(f"metadata.{theirs}_tokens"))


#: Prefix of attributes -> prefix of metadata, {new name: attribute to copy}, function that finds the kind.
_VOCABULARIES: dict[str, tuple[str, dict[str, str], Callable[[Attributes, str, ToolPredicate], str]]] = {
    "ai.": ("ai.telemetry.metadata.", {
        "tool.name": "ai.toolCall.name", CALL_ID: "ai.toolCall.id", "input.value": "ai.toolCall.args",
        "output.value": "ai.toolCall.result",
    }, _read_vercel),
    "traceloop.": ("traceloop.association.properties.", {"tool.name": "traceloop.entity.name"}, _read_traceloop),
    "mlflow.": ("", {
        "input.value": "mlflow.spanInputs", "output.value": "mlflow.spanOutputs", "session.id": "mlflow.trace.session",
    }, lambda held, *rest: read_kind(decode(held.get("mlflow.spanType")), _MLFLOW_KINDS, *rest)),
    "langfuse.": ("langfuse.trace.metadata.", {
        "input.value": "langfuse.observation.input", "output.value": "langfuse.observation.output",
    }, lambda held, *rest: read_kind(decode(held.get("langfuse.observation.type")), LANGFUSE_KINDS, *rest)),
    "span.type": ("scope.", {"session.id": "scope.agentic.session"}, _read_monocle),
}  # fmt: skip
