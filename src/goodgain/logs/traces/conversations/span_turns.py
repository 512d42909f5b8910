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
    find_new_results,
    find_result_list,
    find_searching_spans,
    is_recorded_search,
    read_searching_span,
)
from goodgain.logs.traces.conversations.span_vocabularies import CALL_ID, CALLS, Attributes, decode
from goodgain.logs.traces.conversations.spans import KNOWN_KINDS, OUTCOMES, Span, iterate_ancestors
from goodgain.logs.traces.conversations.tool_calls import mark_unanswered
from goodgain.logs.traces.conversations.turns_and_calls import add_usages, read_usage
from goodgain.logs.traces.expected_values import format_place, id_or_none, object_or_empty, objects_in
from goodgain.logs.traces.input.sources import Source
from goodgain.logs.traces.model import UNANSWERED, Step, ToolCall, Trace, Turn, Usage
from goodgain.logs.traces.tool_outputs.readers import looks_like_results
from goodgain.options import spell
from goodgain.schema import COMPLETED

_SESSIONS = ("session.id", "gen_ai.conversation.id")
#: Kinds of spans with results, and kinds that begin a turn only if the trace has no other root.
_SEARCH_KINDS = {"RETRIEVER", "TOOL", "RERANKER"}
_LEAF_KINDS = {*_SEARCH_KINDS, "LLM", "EMBEDDING"}
_KEPT_ATTRIBUTES = ("session.id", "metadata", "gen_ai.conversation.id", "db.system", OUTCOMES)
#: Internal attributes for the values that `_drop_bodies` reads. No log uses these names.
_MESSAGES, _USAGE, _ANSWER = "goodgain.messages", "goodgain.usage", "goodgain.answer"
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
_NO_TOOL_SPAN = "the model called a search, but no span records it: instrument the tool, or convert the chat log"
_SHOWN_NAMES, _SHOWN_NAME = 5, 40


class _Root:
    def __init__(self, spans: list[Span], top: Span) -> None:
        self.spans, self.top = spans, top
        self.by_id = {(span.trace_id, span.span_id): span for span in spans}
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
        said = [self.top, *(span for span in last if not span.attributes[CALLS])]
        return next(filter(None, (span.get(_ANSWER) for span in said)), None)

    def select_kind(self, kind: str) -> list[Span]:
        return [span for span in self.spans if span.kind == kind]


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
                    answer, steps = root.answer if source.uses else None, _read_steps(source, root, remedy or _REMEDY)
                    named, trace_id = root.query_id, root.top.trace_id
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
            kept = {name: one for name, one in span.attributes.items() if one or name not in earlier.attributes}
            span.attributes = {**earlier.attributes, **kept}
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
            line = (one.span_id for one in (span, *iterate_ancestors(span, by_id))) if len(tops) > 1 else ()
            members[next((span_id for span_id in line if span_id in tops), first)].append(span)
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
    kept = {key: span.get(key) for key in _KEPT_ATTRIBUTES if span.get(key) is not None}
    if not is_leaf and (results := find_result_list(span)) is not None:
        kept |= {RESULT_LIST: results, "input.value": span.get("input.value"), "tool.name": span.get("tool.name")}
    if span.kind == "LLM" or span.parent_id is None:
        kept[_MESSAGES] = _read_messages(span)
        kept[_ANSWER] = _read_answer(span) if source.uses else None
    if span.kind == "LLM":
        kept[CALLS] = {str(call["id"]): call for call in _find_model_calls(span)}
        kept[_USAGE] = _read_usage(span) if source.costs else None
        kept[_MODEL] = next((name for key in _MODEL_NAMES if isinstance(name := decode(span.get(key)), str)), None)
    span.attributes = kept


def _read_usage(span: Span) -> Usage | None:
    given = {}
    for field, keys in _USAGE_NAMES.items():
        values = (span.get(key) for key in keys)
        given[field] = next((value for value in values if value is not None), None)
    return read_usage(given)


def _select_agents(source: Source, roots: list[_Root]) -> list[_Root]:
    """Return the roots that may contain work of an agent. Other roots, such as `GET /health`, are not turns."""
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
        source.summary.count("other_roots", f"{root.top.name[:40]!r} at {format_place(root.top.at)}")
    return [root for root in roots if root.is_of_agent]


def _split_session(roots: list[_Root]) -> list[list[_Root]]:
    """Group root spans by query id. Return one group if the history of a root span contains an earlier root span's question."""
    queries: dict[str | None, list[_Root]] = {}
    for root in roots:
        queries.setdefault(root.query_id, []).append(root)
    pairs = ((earlier.question, later.history) for k, later in enumerate(roots) for earlier in roots[:k])
    continued = any(question and question in history for question, history in pairs)
    return [roots] if len(queries.keys() - {None}) < 2 or continued else list(queries.values())


def _read_messages(span: Span) -> tuple[list[str], str]:
    """Return two parts of a span's input: the list of texts before the user's last message, and this last message."""
    if _MESSAGES in span.attributes:
        return span.attributes[_MESSAGES]  # type: ignore[no-any-return]  # put there by _drop_bodies
    messages = []
    for message in span.get_objects("llm.input_messages"):
        role, content = (message.get(f"message.{key}", message.get(key)) for key in ("role", "content"))
        messages.append((str(role), message_text(content)))
    if not messages:
        given = parse_if_json(span.get("gen_ai.input.messages") or span.get("input.value"))
        held, _ = find_list(given, "messages")
        if held is None:
            return [], given if isinstance(given, str) else ""
        held = held[0] if len(held) == 1 and isinstance(held[0], list) else held
        for message in objects_in(held):  # in the shapes that frameworks use in root spans
            body = message.get("data", message.get("kwargs", message))
            body = body if isinstance(body, dict) else message
            role = message.get("role", body.get("type", message.get("type")))
            parts = [part.get("content") for part in objects_in(body.get("parts"))]
            messages.append((str(role), message_text(parts or body.get("content"))))
    asked = max((index for index, (role, _) in enumerate(messages) if role in ("user", "human")), default=None)
    if asked is None:
        return [], ""
    return [text for _, text in messages[:asked] if text], messages[asked][1]


def _read_answer(span: Span) -> str | None:
    said = [message_text(one.get("message.content")) for one in span.get_objects("llm.output_messages")]
    given = objects_in(parse_if_json(span.get("gen_ai.output.messages")))
    said += [message_text(part.get("content")) for one in given for part in objects_in(one.get("parts"))]
    if said := list(filter(None, said)):
        return said[-1]
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
    given = parse_if_json(span.get("gen_ai.output.messages"))
    for index, message in enumerate(objects_in(given)):
        for place, part in enumerate(objects_in(message.get("parts"))):
            if part.get("type") == "tool_call" and isinstance(part.get("name"), str):
                call_id = part.get("id") or f"{span.span_id} {index} {place}"
                yield {"id": call_id, "name": part["name"], "arguments": part.get("arguments"), "at": span.at}


def _read_steps(source: Source, root: _Root, remedy: str) -> list[Step]:
    by_id = root.by_id
    given_way = span_calls.find_given_way(source, root.spans, by_id)
    holders = {id(tool) for tool in given_way.values() if tool is not None}
    finder = span_calls.StepFinder()
    steps = [Step()]
    retrievals: list[tuple[Span, ToolCall]] = []
    tool_times: dict[int, tuple[int, int]] = {}
    searching = {id(span) for span in find_searching_spans(source, root.spans, by_id)}
    has_searches = any(is_recorded_search(source, span) for span in root.spans)
    listed: list[tuple[int, ToolCall]] = []  # calls that their names do not make searches, with their steps
    clock = _CallClock() if not root.select_kind("LLM") else None
    for span in root.spans:
        above = tuple(iterate_ancestors(span, by_id))
        asks_database = span.get("db.system") is not None
        if span.unknown and not (asks_database and any(one.kind in ("TOOL", "RETRIEVER") for one in above)):
            source.not_understood(span.unknown, span.at, "a kind of OpenInference or an operation of OTel GenAI")
        if span.kind == "LLM":
            seconds = (span.end - span.start) / 1e9 if span.end >= span.start > 0 else None
            usage = add_usages(span.attributes[_USAGE], Usage(seconds=seconds)) if source.costs else None
            finder.add_model(span, len(steps))
            steps.append(Step(usage=usage))
        is_call = span.kind in ("RETRIEVER", "TOOL") or id(span) in searching
        if is_call and clock is not None and clock.begins_group(span) and source.iteration == "sequential":
            steps.append(Step())
        index = finder.find(span, len(steps) - 1) if is_call else len(steps) - 1
        calls_before = len(steps[index].calls)
        if span.kind in ("RETRIEVER", "TOOL") and id(span) in given_way:
            steps[index].calls.append(span_calls.name_in_summary(span, given_way[id(span)]))
        elif span.kind == "RETRIEVER" and not span_calls.is_inside_its_copy(span, above):
            retrievals.append((span, span_calls.read_retrieval(span, remedy)))
            steps[index].calls.append(retrievals[-1][1])
        elif span.kind == "TOOL" and (id(span) in holders or not span_calls.is_inside_its_copy(span, above)):
            calls = _read_invoked(source, root, span, remedy) or [span_calls.read_tool(span, remedy)]
            if id(span) in holders:
                calls[0].is_search = True
            steps[index].calls += calls
        elif id(span) in searching:
            call = read_searching_span(source, span, remedy, has_others=has_searches)
            if source.counts(call):
                steps[index].calls.append(call)
            else:
                listed.append((index, call))
        elif span.kind == "RERANKER" and source.reranked and retrievals:
            siblings = [call for other, call in retrievals if other.parent_id == span.parent_id]
            replaced = siblings[-1] if siblings else retrievals[-1][1]
            if documents := span_calls.read_documents(span, "reranker.output_documents"):
                replaced.output, replaced.spare = documents, UNANSWERED
        elif span.kind == "RERANKER" and not has_searches:
            listed.append((len(steps) - 1, span_calls.read_reranking(span)))
        if clock is not None and any(map(source.counts, steps[index].calls[calls_before:])):
            clock.add_search(span)
        if source.costs and is_call and span.end >= span.start > 0:
            begin, end = tool_times.get(index, (span.start, span.end))
            tool_times[index] = min(begin, span.start), max(end, span.end)
    for index, (begin, end) in tool_times.items():  # tools of a step run in parallel
        steps[index].usage = add_usages(steps[index].usage, Usage(seconds=(end - begin) / 1e9))
    if clock is not None and clock.is_split and source.iteration is None:
        source.summary.count("without_model", format_place(root.top.at), clock.searches)
    _add_calls_without_spans(source, root, steps)
    if not listed:
        return steps
    searches = [call for step in steps for call in step.calls if source.counts(call)]
    new_calls = {id(call) for call in find_new_results([call for _, call in listed], searches)}
    for index, call in listed:
        if id(call) in new_calls:
            steps[index].calls.append(call)
            is_named = call.is_search is None and looks_like_results(call.output, call.at)  # by a notice of the summary
            if source.is_search.is_default and not is_named:
                expected = f"a search, named with {spell('tools', call.tool)}"
                source.not_understood(f"list of results in the output of the span {call.tool!r}", call.at, expected)
    return steps


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


def _add_calls_without_spans(source: Source, root: _Root, steps: list[Step]) -> None:
    """Add the searches that appear in model spans but not in tool spans.

    If any step already has calls, searches are added only if there are tool spans and all of them have call ids. If nested
    model spans show the same call, the call belongs to the step of the innermost span.
    """
    answered = {str(span.get(CALL_ID)) for span in root.select_kind("TOOL")}
    if any(step.calls for step in steps) and (not answered or "None" in answered):
        return
    made = {
        call_id: (step, call)
        for step, span in zip(steps[1:], root.select_kind("LLM"), strict=True)
        for call_id, call in span.attributes[CALLS].items()
    }
    for call_id, (step, call) in made.items():
        if call_id not in answered and source.is_search(call["name"]):
            step.calls.append(ToolCall(call["name"], call["at"], None, call["arguments"], remedy=_NO_TOOL_SPAN))


def _read_invoked(source: Source, root: _Root, span: Span, remedy: str) -> list[ToolCall]:
    """Return the calls in a span of Haystack's ToolInvoker. Return no calls if spans of tools are below the span."""
    is_invoker = str(span_calls.find_tool_name(span)).replace("_", "").lower().startswith("toolinvoker")
    above = (one for tool in root.select_kind("TOOL") for one in iterate_ancestors(tool, root.by_id))
    if not is_invoker or any(one is span for one in above):
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
            call.output, call.failed = mark_unanswered(held["result"]), held.get("error") is True
            calls.append(call)
        else:
            values += reversed(value if isinstance(value, list) else held.values())
    if output and not calls:
        expected = "messages as JSON, each with a tool_call_result"
        source.not_understood("output of several tools in one span", span.at, expected)
    return calls
