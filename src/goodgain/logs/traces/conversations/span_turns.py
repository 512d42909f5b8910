"""Reads turns, steps and searches from spans.

A session is a conversation. A root span, with all spans below, is a turn. The span of a model begins a step. Spans of tools
and retrievers are calls.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cached_property

from goodgain.errors import InputError
from goodgain.files.json_text import parse_if_json
from goodgain.logs.traces.conversations import span_calls
from goodgain.logs.traces.conversations.messages import message_text
from goodgain.logs.traces.conversations.record_objects import find_list, find_query_id
from goodgain.logs.traces.conversations.result_spans import (
    RESULT_LIST,
    find_result_list,
)
from goodgain.logs.traces.conversations.span_steps import USAGE, SpanTree, read_steps
from goodgain.logs.traces.conversations.span_vocabularies import CALLS, Attributes, decode
from goodgain.logs.traces.conversations.spans import KNOWN_KINDS, OUTCOMES, Span, iterate_ancestors
from goodgain.logs.traces.conversations.turns_and_calls import read_usage
from goodgain.logs.traces.expected_values import format_place, id_or_none, objects_in
from goodgain.logs.traces.input.sources import Source
from goodgain.logs.traces.model import Trace, Turn, Usage
from goodgain.schema import COMPLETED

_SESSIONS = ("session.id", "gen_ai.conversation.id")
#: Kinds of spans with results, and kinds that begin a turn only if the trace has no other root.
_SEARCH_KINDS = {"RETRIEVER", "TOOL", "RERANKER"}
_LEAF_KINDS = {*_SEARCH_KINDS, "LLM", "EMBEDDING"}
_KEPT_ATTRIBUTES = ("session.id", "metadata", "gen_ai.conversation.id", "db.system", OUTCOMES)
#: Internal attributes for the values that `_drop_bodies` reads. No log uses these names.
_MESSAGES = "goodgain.messages"
_ANSWER = "goodgain.answer"
_MODEL = "goodgain.model"
#: Keys of the answer in the output of a span, in order of preference.
_ANSWERS = ("output", "answer", "response", "content", "text", "result")
_USAGE_NAMES = {
    "input_tokens": ("llm.token_count.prompt", "gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens"),
    "output_tokens": ("llm.token_count.completion", "gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens"),
    "cost": ("llm.cost.total", "gen_ai.usage.cost"),
    "cached_tokens": (
        *("llm.token_count.prompt_details.cache_read", "gen_ai.usage.cache_read.input_tokens"),
        *("gen_ai.usage.cache_read_input_tokens", "gen_ai.usage.details.cache_read_tokens"),
    ),
    "reasoning_tokens": (
        *("llm.token_count.completion_details.reasoning", "gen_ai.usage.reasoning.output_tokens"),
        *("gen_ai.usage.reasoning_tokens", "gen_ai.usage.details.reasoning_tokens"),
    ),
}
_MODEL_NAMES = (
    "gen_ai.response.model",
    "llm.model_name",
    "gen_ai.request.model",
    "ai.response.model",
    "ai.model.id",
    "mlflow.llm.model",
)
_REMEDY = (
    "record outputs: OPENINFERENCE_HIDE_OUTPUTS=false, "
    "or OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=true for GenAI spans"
)
_SHOWN_NAMES, _SHOWN_NAME = 5, 40


class _Root(SpanTree):
    def __init__(self, spans: list[Span], top: Span) -> None:
        super().__init__(spans, top)
        # Turns of the same trace are one conversation. Any other root is a conversation by itself.
        alone = top.trace_id + ("" if top.kind == "TURN" else f" {spans[0].span_id}")
        #: Whether a span is, or may be, the span of a model, tool or agent.
        self.is_of_agent = any(span.unknown or span.kind in KNOWN_KINDS for span in spans)
        rooted = [top, *(span for span in spans if span is not top)]
        sessions = (id_or_none(span.get(name)) for span in rooted for name in _SESSIONS)
        self.session = next(filter(None, sessions), None)
        self.key = self.session or f"\0{alone}"
        first = next((span for span in rooted[1:] if span.kind == "LLM"), top)
        read = [_read_messages(top), _read_messages(first)]
        self.history = {text for before, _ in read for text in before}
        self.question = read[0][1] or read[1][1]

    @cached_property
    def query_id(self) -> str | None:
        """The query id in the metadata of the root span, else of the first span with a query id."""
        named = (
            find_query_id(parse_if_json(span.get("metadata")), f"{format_place(span.at)}/attributes/metadata")
            for span in [self.top, *self.spans]
        )
        return next(filter(None, named), None)

    @property
    def answer(self) -> str | None:
        """The output of the root span, else the text of the last model span if that span has no calls."""
        last = self.select_kind("LLM")[-1:]
        answering = [self.top, *(span for span in last if not span.attributes[CALLS])]
        return next(filter(None, (span.get(_ANSWER) for span in answering)), None)


def read_span_traces(source: Source, spans: Iterable[Span], remedy: str = "") -> Iterator[Trace]:
    """Yield one trace per session, or per query if a session has several queries. A root span without a session is one trace.

    `remedy` says how to record missing results of a search.
    """
    sessions: dict[str, list[_Root]] = {}
    for root in _select_agents(source, _find_roots(source, spans)):
        sessions.setdefault(root.key, []).append(root)

    for members in sessions.values():
        members.sort(key=lambda root: root.spans[0].start)
        queries: list[list[_Root]] = []
        with source.handle_errors():
            queries = _split_session(members)
        for roots in queries:
            with source.handle_errors():
                turns = []
                for index, root in enumerate(roots, start=1):
                    answer = root.answer if source.uses else None
                    steps = read_steps(source, root, remedy or _REMEDY)
                    named = root.query_id
                    trace_id = root.top.trace_id
                    turns.append(Turn(root.question, steps, index, named, answer=answer, trace_id=trace_id))
                query_id = root.query_id or root.session or root.top.trace_id
                outcomes = root.top.get(OUTCOMES)
                if root.top.failed:  # the last turn broke off
                    outcomes = {**(outcomes or {}), COMPLETED: 0.0}
                named_models = {span.attributes.get(_MODEL) for root in roots for span in root.select_kind("LLM")}
                models = tuple(sorted(filter(None, named_models)))
                yield Trace(
                    turns, root.top.at, query_id=query_id, session_id=root.session, models=models, outcomes=outcomes
                )  # fmt: skip


def _find_roots(source: Source, spans_read: Iterable[Span]) -> list[_Root]:
    """Return the root spans, each with the spans below it. A span whose parent is missing belongs to the trace's first root."""
    traces: dict[str, dict[tuple[str, str, int], Span]] = {}
    for span in spans_read:
        _drop_bodies(source, span)
        of_trace = traces.setdefault(span.trace_id, {})
        key = span.span_id, span.name, span.start
        if (earlier := of_trace.get(key)) is not None:  # exported twice, or at start and at end
            span.end, span.failed = max(span.end, earlier.end), span.failed or earlier.failed
            # An empty value of the later span does not replace a value of the earlier one.
            later = {name: value for name, value in span.attributes.items() if value or name not in earlier.attributes}
            span.attributes = {**earlier.attributes, **later}
        of_trace[key] = span

    roots = []
    for of_trace in traces.values():
        # Spans that start together stay in the order of the file.
        spans = sorted(of_trace.values(), key=lambda span: span.start)
        turns = [span for span in spans if span.kind == "TURN"]
        all_tops = turns if len(turns) > 1 else [span for span in spans if span.parent_id is None]
        tops: dict[str, Span] = {}
        end = -1
        for top in [span for span in all_tops if span.kind not in _LEAF_KINDS] or all_tops or spans[:1]:
            if top.start > end:  # a span that begins before the last root ends is not a root: its parent is missing
                tops[top.span_id], end = top, top.end
        by_id = {(span.trace_id, span.span_id): span for span in spans}
        members: dict[str, list[Span]] = {span_id: [] for span_id in tops}
        first = next(iter(tops))
        for span in spans:
            line = [span, *iterate_ancestors(span, by_id)] if len(tops) > 1 else []
            span_ids = (ancestor.span_id for ancestor in line)
            members[next((span_id for span_id in span_ids if span_id in tops), first)].append(span)
        roots += [_Root(members[span_id], top) for span_id, top in tops.items()]

    return roots


def _drop_bodies(source: Source, span: Span) -> None:
    """To save memory, drop attributes that are not needed later. Keep all attributes of tools, retrievers and rerankers.

    A span that the caller names as a search tool becomes a tool's.
    """
    is_leaf = span.kind in _LEAF_KINDS
    names_tools = bool(source.is_search.decisions)
    if not is_leaf and names_tools and source.is_search.find(str(span_calls.find_tool_name(span))) == "search":
        span.kind, span.unknown = "TOOL", ""
    if span.kind in _SEARCH_KINDS:
        return

    attributes = {key: span.get(key) for key in _KEPT_ATTRIBUTES if span.get(key) is not None}
    if not is_leaf and (results := find_result_list(span)) is not None:
        attributes |= {RESULT_LIST: results, "input.value": span.get("input.value"), "tool.name": span.get("tool.name")}
    if span.kind == "LLM" or span.parent_id is None:
        attributes[_MESSAGES] = _read_messages(span)
        attributes[_ANSWER] = _read_answer(span) if source.uses else None
    if span.kind == "LLM":
        attributes[CALLS] = {str(call["id"]): call for call in _find_model_calls(span)}
        attributes[USAGE] = _read_usage(span) if source.costs else None
        names = (decode(span.get(key)) for key in _MODEL_NAMES)
        attributes[_MODEL] = next((name for name in names if isinstance(name, str)), None)

    span.attributes = attributes


def _read_usage(span: Span) -> Usage | None:
    tokens = {}
    for field, keys in _USAGE_NAMES.items():
        values = (span.get(key) for key in keys)
        tokens[field] = next((value for value in values if value is not None), None)
    return read_usage(tokens)


def _select_agents(source: Source, roots: list[_Root]) -> list[_Root]:
    """Return the roots that may contain work of an agent. Other roots, such as `GET /health`, are not turns."""
    other_roots = [root for root in roots if not root.is_of_agent]
    if other_roots and len(other_roots) == len(roots):
        names = Counter(root.top.name or "without a name" for root in other_roots)
        examples = ", ".join(f"{name[:_SHOWN_NAME]!r} {count}" for name, count in names.most_common(_SHOWN_NAMES))
        raise InputError(
            f"{source.path}: none of its {sum(len(root.spans) for root in other_roots)} spans is of a known kind (a model, tool, "
            f"retriever, agent or chain); its root spans are {examples}; export the spans of the agent too, or write its "
            "searches in the format jsonl"
        )
    for root in other_roots:
        source.summary.count("other_roots", f"{root.top.name[:40]!r} at {format_place(root.top.at)}")
    return [root for root in roots if root.is_of_agent]


def _split_session(roots: list[_Root]) -> list[list[_Root]]:
    """Group root spans by query id. Return one group if the history of a root span contains an earlier root span's question."""
    queries: dict[str | None, list[_Root]] = {}
    for root in roots:
        queries.setdefault(root.query_id, []).append(root)
    pairs = ((earlier.question, later.history) for k, later in enumerate(roots) for earlier in roots[:k])
    continued = any(question and question in history for question, history in pairs)
    if len(queries.keys() - {None}) < 2 or continued:
        return [roots]
    return list(queries.values())


def _read_messages(span: Span) -> tuple[list[str], str]:
    """Return two parts of a span's input: the list of texts before the user's last message, and this last message."""
    if _MESSAGES in span.attributes:
        return span.attributes[_MESSAGES]  # type: ignore[no-any-return]  # put there by _drop_bodies
    messages = []
    for message in span.get_objects("llm.input_messages"):
        role, content = (message.get(f"message.{key}", message.get(key)) for key in ("role", "content"))
        messages.append((str(role), message_text(content)))

    if not messages:
        logged = parse_if_json(span.get("gen_ai.input.messages") or span.get("input.value"))
        held, _ = find_list(logged, "messages")
        if held is None:
            return [], logged if isinstance(logged, str) else ""
        held = held[0] if len(held) == 1 and isinstance(held[0], list) else held
        for message in objects_in(held):  # in the shapes that frameworks use in root spans
            body = message.get("data", message.get("kwargs", message))
            body = body if isinstance(body, dict) else message
            role = message.get("role", body.get("type", message.get("type")))
            parts = [part.get("content") for part in objects_in(body.get("parts"))]
            messages.append((str(role), message_text(parts or body.get("content"))))

    questions = [index for index, (role, _) in enumerate(messages) if role in ("user", "human")]
    last_question = max(questions, default=None)
    if last_question is None:
        return [], ""
    return [text for _, text in messages[:last_question] if text], messages[last_question][1]


def _read_answer(span: Span) -> str | None:
    """Return the model's last text in a span: of output messages, else of the last message or a known key of the output value."""
    texts = [message_text(message.get("message.content")) for message in span.get_objects("llm.output_messages")]
    messages = objects_in(parse_if_json(span.get("gen_ai.output.messages")))
    texts += [message_text(part.get("content")) for message in messages for part in objects_in(message.get("parts"))]
    if texts := list(filter(None, texts)):
        return texts[-1]

    output = parse_if_json(span.get("output.value"))
    held, _ = find_list(output, "messages", "output/messages")
    if isinstance(output, dict) and held is None:
        output = next((output[key] for key in _ANSWERS if isinstance(output.get(key), (str, list, dict))), None)

    last = held[-1] if held else output
    for _ in range(2):  # LangChain's dumps have the message under data or kwargs
        if isinstance(last, dict):
            last = next((last[key] for key in ("data", "kwargs", "content", "parts") if key in last), None)

    return message_text(last) or None


def _find_model_calls(span: Span) -> Iterator[Attributes]:
    """Yield the calls in a model's answer as objects with `id`, `name`, `arguments` and `at`. A call without an id gets one.

    OpenInference flattens calls to keys such as `message.tool_calls.0.tool_call.function.name`. OTel GenAI has parts of messages.
    """
    for index, message in enumerate(span.get_objects("llm.output_messages")):
        calls: dict[str, Attributes] = {}
        for key, value in message.items():
            _, marked, rest = key.partition("tool_calls.")
            number, _, field = rest.partition(".")
            if marked:
                calls.setdefault(number, {})[field.removeprefix("tool_call.")] = value
        for number, call in calls.items():
            if isinstance(name := call.get("function.name"), str):
                call_id = call.get("id") or f"{span.span_id} {index} {number}"
                yield {"id": call_id, "name": name, "arguments": call.get("function.arguments"), "at": span.at}

    messages = parse_if_json(span.get("gen_ai.output.messages"))
    for index, message in enumerate(objects_in(messages)):
        for place, part in enumerate(objects_in(message.get("parts"))):
            if part.get("type") == "tool_call" and isinstance(part.get("name"), str):
                call_id = part.get("id") or f"{span.span_id} {index} {place}"
                yield {"id": call_id, "name": part["name"], "arguments": part.get("arguments"), "at": span.at}
