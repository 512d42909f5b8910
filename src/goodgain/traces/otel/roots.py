"""Groups spans to turns (a root span and all below it), and turns to conversations (one session)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from goodgain.files.json_text import parse_if_json
from goodgain.traces.conversations.conversation import find_query_id, message_text
from goodgain.traces.conversations.usage import read_usage
from goodgain.traces.input.checks import format_place
from goodgain.traces.model import Usage
from goodgain.traces.otel.spans import KNOWN_KINDS, Attributes, Span

__all__ = ["SEARCH_KINDS", "USAGE", "Root", "find_roots", "split_session"]

#: Kinds of spans that hold results.
SEARCH_KINDS = {"RETRIEVER", "TOOL", "RERANKER"}
#: Kinds of spans that begin a turn only if the trace has no other root.
_LEAF_KINDS = {*SEARCH_KINDS, "LLM", "EMBEDDING"}
#: Attributes kept of spans that do not hold results: they name the session or the query, or say that a database is asked.
_KEPT_ATTRIBUTES = ("session.id", "metadata", "gen_ai.conversation.id", "db.system")

#: The attribute under which `_drop_bodies` keeps what was read from a span; no log has one of this name.
_MESSAGES = "goodgain.messages"
#: The attribute of a span of a model under which its usage is kept, where costs are asked for.
USAGE = "goodgain.usage"


class Root:
    """A root span with all spans below it: one turn."""

    def __init__(self, spans: list[Span], top: Span) -> None:
        self.spans = sorted(spans, key=lambda span: (span.start, span.order))
        self.span_ids = [span.span_id for span in spans]
        self.top = top
        self.trace_id = top.trace_id
        #: Whether any span is a model's, a tool's, an agent's ..., or may be: else it is no agent's work.
        self.is_of_agent = any(span.unknown or span.kind in KNOWN_KINDS for span in spans)
        self.start, self.order = self.spans[0].start, self.spans[0].order
        rooted = [top, *(span for span in self.spans if span is not top)]
        self.session = next(filter(None, (_read_session_id(span) for span in rooted)), None)
        self.query_id = next(filter(None, (_read_query_id(span) for span in rooted)), None)
        self.history, self.question = _read_history(rooted)


def find_roots(spans_read: Iterable[Span], *, costs: bool = False) -> list[Root]:
    """Return the roots among spans, with the costs of models if asked for.

    A span whose parent is not among them belongs to its trace's root.
    """
    traces: dict[str, list[Span]] = {}
    for span in spans_read:
        traces.setdefault(span.trace_id, []).append(span)
        _drop_bodies(span, costs=costs)
    roots = []
    for spans in traces.values():
        turns = [span for span in spans if span.kind == "TURN"]
        tops = turns if len(turns) > 1 else [span for span in spans if span.parent_id is None]
        tops = _select_turn_roots([span for span in tops if span.kind not in _LEAF_KINDS] or tops)
        if len(tops) < 2:
            roots.append(Root(spans, tops[0] if tops else min(spans, key=lambda span: (span.start, span.order))))
            continue
        below = _assign_roots(spans, tops)
        roots += [Root([span for span in spans if below[span.span_id] is top], top) for top in tops]
    return roots


def _select_turn_roots(tops: list[Span]) -> list[Span]:
    """Return the roots of a trace that begin after the one before has ended; others are spans without their parent."""
    found: list[Span] = []
    for top in sorted(tops, key=lambda span: (span.start, span.order)):
        if not found or top.start > found[-1].end:
            found.append(top)
    return found


def _drop_bodies(span: Span, *, costs: bool) -> None:
    """Replace the attributes of a span without results by what is needed of them: its messages and tool calls.

    The bodies of model calls are most of a log, and would fill the memory until the last span is read.
    """
    if span.kind in SEARCH_KINDS:
        return
    kept = {key: span.get(key) for key in _KEPT_ATTRIBUTES if span.get(key) is not None}
    if span.kind == "LLM" or span.parent_id is None:
        kept[_MESSAGES] = _read_messages(span)
    if span.kind == "LLM":
        if costs:
            kept[USAGE] = _read_usage(span)
        kept["calls"] = list({str(call["id"]): call for call in _find_model_calls(span)}.values())
    span.attributes = kept


def _read_usage(span: Span) -> Usage | None:
    """Return the tokens and the price of a span of a model."""
    names = {
        "input_tokens": ("llm.token_count.prompt", "gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens"),
        "output_tokens": ("llm.token_count.completion", "gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens"),
        "cost": ("llm.cost.total", "gen_ai.usage.cost"),
    }
    return read_usage(
        {
            field: next((value for key in keys if (value := span.get(key)) is not None), None)
            for field, keys in names.items()
        }
    )


def _assign_roots(spans: list[Span], tops: list[Span]) -> dict[str, Span]:
    """Return the root above each span; the first root for a span whose parents are missing."""
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


def split_session(roots: list[Root]) -> Iterator[list[Root]]:
    """Yield the roots of a session: together as turns of one conversation, or apart as several queries.

    They are several queries if they name different ones, and no root's history has the question of an earlier root.
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
    queries: dict[str | None, list[Root]] = {}
    for root in roots:
        queries.setdefault(root.query_id, []).append(root)
    yield from queries.values()


def _read_session_id(span: Span) -> str | None:
    for name in ("session.id", "gen_ai.conversation.id"):
        value = span.get(name)
        if isinstance(value, (str, int)) and not isinstance(value, bool) and value != "":
            return str(value)
    return None


def _read_query_id(span: Span) -> str | None:
    metadata = parse_if_json(span.get("metadata"))
    return find_query_id(metadata, f"{format_place(span.at)}/attributes/metadata")


def _read_messages(span: Span) -> tuple[list[str], str]:
    """Read the texts before the user's question, and the question, from a span's input."""
    if _MESSAGES in span.attributes:
        return span.attributes[_MESSAGES]  # type: ignore[no-any-return]  # put there by _drop_bodies
    messages = [
        (
            str(message.get("message.role", message.get("role"))),
            message_text(message.get("message.content", message.get("content"))),
        )
        for message in span.get_objects("llm.input_messages")
    ]
    if not messages:
        given = parse_if_json(span.get("gen_ai.input.messages") or span.get("input.value"))
        held = given.get("messages") if isinstance(given, dict) else given
        if isinstance(held, list) and len(held) == 1 and isinstance(held[0], list):
            held = held[0]
        if not isinstance(held, list):
            return [], given if isinstance(given, str) else ""
        messages = [_read_role_and_text(message) for message in held if isinstance(message, dict)]
    asked = [index for index, (role, _) in enumerate(messages) if role in ("user", "human")]
    if not asked:
        return [], ""
    return [text for _, text in messages[: asked[-1]] if text], messages[asked[-1]][1]


def _read_role_and_text(message: Attributes) -> tuple[str, str]:
    """Read role and text of a message in one of the shapes that frameworks use in their root spans."""
    body = message.get("data", message.get("kwargs", message))
    body = body if isinstance(body, dict) else message
    role = message.get("role", body.get("type", message.get("type")))
    parts = body.get("parts")
    content = [part.get("content") for part in parts if isinstance(part, dict)] if isinstance(parts, list) else None
    return str(role), message_text(content if content is not None else body.get("content"))


def _read_history(spans: list[Span]) -> tuple[set[str], str]:
    """Read the earlier texts and the question from the root's input and from that of the first model call."""
    first = next((span for span in spans[1:] if span.kind == "LLM"), None)
    history: set[str] = set()
    question = ""
    for span in (spans[0], *([first] if first else [])):
        before, asked = _read_messages(span)
        history.update(before)
        question = question or asked
    return history, question


def _find_model_calls(span: Span) -> Iterator[Attributes]:
    """Yield the tool calls in a model's answer."""
    for index, message in enumerate(span.get_objects("llm.output_messages")):
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
    given = parse_if_json(span.get("gen_ai.output.messages"))
    for index, message in enumerate(given if isinstance(given, list) else []):
        parts = message.get("parts") if isinstance(message, dict) else None
        for place_of_part, part in enumerate(parts if isinstance(parts, list) else []):
            if isinstance(part, dict) and part.get("type") == "tool_call" and isinstance(part.get("name"), str):
                call_id = part.get("id") or f"{span.span_id} {index} {place_of_part}"
                yield {"id": call_id, "name": part["name"], "arguments": part.get("arguments"), "at": span.at}
