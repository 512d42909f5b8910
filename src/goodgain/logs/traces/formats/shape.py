"""By shape: any JSON with tool calls and outputs, found by the keys of objects. Only `--format shape` selects this format.

A call is an object with a tool name, arguments and an output. An output in a separate object is paired with the call by id,
else in order. If a part of the file is in another format and has a search, that part is read in that format.

Lost: Costs, the agent's answer, and calls written as text.
Query id: `query_id`, `question_id`, `qid`, `task_id` or a similar field in an object around every call.
Record: Each call with a tool name, arguments and an output. Compare the counts that `goodgain convert` prints with your log.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from io import BytesIO
from itertools import islice
from typing import Any

import orjson

from goodgain.errors import InputError
from goodgain.files.json_text import parse_if_json
from goodgain.logs.traces.conversations import Conversation, FileHead, Source, ToolCall, Trace
from goodgain.logs.traces.conversations import queries_by_shape as queries
from goodgain.logs.traces.conversations.call_pairing import CallPairer
from goodgain.logs.traces.conversations.calls_by_shape import KINDS, CallFinder, Found, Place
from goodgain.logs.traces.conversations.event_times import sort_events
from goodgain.logs.traces.conversations.repeated_histories import find_repeated
from goodgain.logs.traces.expected_values import format_place, object_or_empty
from goodgain.logs.traces.formats import find_reader
from goodgain.logs.traces.tool_outputs.overlooked_results import looks_like_search
from goodgain.logs.traces.tool_outputs.readers import looks_like_results
from goodgain.logs.traces.tool_outputs.unread_lists import find_question_in
from goodgain.options import spell

#: The largest number of lines: a small file can unpack to millions of lines.
_MOST_VALUES = 500_000
#: How many values are tried in the known formats, and the largest depth of such values.
_MAX_TRIED, _TRIED_DEPTH = 2000, 8


class NoSearchError(InputError):
    """Raised if no call of a log is a search."""

    tools: Sequence[str] = ()  # the tools whose outputs look like results; if there are none, all tools with outputs
    asking: Mapping[str, int] = {}  # the tools whose arguments have a query, and their numbers of calls


def sniff(head: FileHead) -> bool:
    return False


def read(source: Source) -> Iterator[Trace]:
    """Yield one trace per query. If the calls have no query id and no question, all calls belong to one query."""
    try:
        yield from _read_queries(source)
    except RecursionError:
        raise InputError(f"{source.path}: its JSON nests too deep; write its searches in the format jsonl") from None


def _read_queries(source: Source) -> Iterator[Trace]:
    """Find all events of a file, tell its queries apart, pair calls with answers, and yield a trace per query."""
    log = _Log(source)
    found_in_log = _find_events(log)
    repeated = find_repeated(found_in_log, queries.find_own_id)  # positions of messages that a later list repeats
    events = [event for index, event in enumerate(found_in_log) if index not in repeated]
    unnamed = [found_in_log[index] for index in sorted(repeated) if queries.find_own_id(found_in_log[index]) is None]
    if unnamed:
        source.summary.count("repeated_messages", format_place(log.locate(unnamed[0].place)), len(unnamed))

    calls = [event for event in events if log.pairer.is_certain(event)] or [event for event in events if event.call]
    find_key = queries.tell_queries_apart(calls, log.value, log.locate, source)
    for event in events:
        key = find_key(event)
        event.query = key and key.query

    events = log.pairer.pair(sort_events(events, log.report_unsorted))
    if not any(event.call or event.traces for event in events):
        return

    for call in (event.call for event in events if event.call):
        call.name_called_tool(source.is_search)
    tools = [event.call.tool for event in events if event.call]
    if not any(event.traces for event in events) and not any(map(source.is_search, tools)):
        raise _make_no_search_error(source, events)

    for call in (event.call for event in events if event.call and find_key(event) is None):
        if source.is_search(call.tool):
            raise InputError(
                f"{call.at}: no query is known for the search {call.tool}; write the searches in the format jsonl"
            )

    repeated_records = {key.place for index in repeated if (key := find_key(found_in_log[index])) is not None}
    groups = queries.gather_queries(events, find_key, log.value, repeated_records)
    # Only repeated queries make the trials runs of a system; else a trial is a query like any other.
    questions = [text for group in groups if (text := group.key.query_id or group.question)]
    are_runs = len(set(questions)) < len(questions) and all(group.key.trial for group in groups)

    for number, group in enumerate(groups, start=1):
        with source.handle_errors():
            trace = log.make_trace(group)
            trace.number = number if len(groups) > 1 else None
            trace.run = group.key.trial if are_runs else trace.run
            yield trace


def _make_no_search_error(source: Source, events: list[Found]) -> NoSearchError:
    """Return the error of a log without a search, with the tools that may be searches: their outputs look like results."""
    calls = [event.call for event in events if event.call]
    counts = Counter(call.tool for call in calls).most_common(5)
    examples = ", ".join(f"{tool} {count}" for tool, count in counts)
    error = NoSearchError(
        f"{source.path}: none of its calls is a search ({examples}); name the search tools with {spell('tools')}"
    )
    answered = [call for call in calls if call.answered]
    likely = [call.tool for call in answered if looks_like_results(call.output, call.at)]
    error.tools = list(dict.fromkeys(likely or [call.tool for call in answered]))
    error.asking = Counter(
        call.tool for call in answered if find_question_in(object_or_empty(parse_if_json(call.arguments)))
    )
    return error


def _find_events(log: "_Log") -> list[Found]:
    """Return the calls, answers and texts of a log. If no call is a search, lists whose keys `tools=` names are searches."""
    events = log.finder.find(log.value)
    is_search = log.source.is_search
    has_search = any(event.traces or (event.call and is_search(event.call.tool)) for event in events)
    if not has_search and "search" in is_search.decisions.values():
        events = log.finder.find_with_lists(log.value)
    return [part for event in events for part in queries.split_traces(event)]


class _Log:
    """All values of a file as one value, with what finds and pairs the calls in it."""

    def __init__(self, source: Source) -> None:
        self.source = source
        values = list(islice(_read_values(source), _MOST_VALUES + 1))
        if len(values) > _MOST_VALUES:
            raise InputError(
                f"{source.path}: has more than {_MOST_VALUES:,} lines, which the format 'shape' cannot read; split the log into "
                "several files, or write the searches in the format jsonl"
            )

        # Several values become a list, so the first key of a place is the number of the line.
        self._in_lines = not (len(values) == 1 and source.head.kind == "json")
        self._starts = [at for _, at in values]
        self.value: Any = [value for value, _ in values] if self._in_lines else values[0][0]
        self._tried = 0
        self.finder = CallFinder(source, self.locate, self._read_in_known_format)
        self.pairer = CallPairer(source, self.locate)

    def locate(self, place: Place) -> str:
        start, path = (self._starts[int(place[0])], place[1:]) if self._in_lines and place else (self._starts[0], place)
        if not path:
            return format_place(start)
        return start + "".join(f"/{key}" for key in path)

    def _read_in_known_format(self, value: Any, place: Place) -> list[Trace] | None:
        """Return the traces of a value if exactly one known format recognises the value and finds a search in it, else None."""
        if self._tried >= _MAX_TRIED or len(place) > _TRIED_DEPTH or not value:
            return None
        if isinstance(value, list) and not any(isinstance(member, dict) for member in value):
            return None

        self._tried += 1
        try:
            raw = orjson.dumps(value)
        except TypeError:  # a number beyond 64 bits, or lists 250 deep: no known format has them
            return None

        head = FileHead("value.json", raw, whole=True)
        if (read_format := find_reader(head)) is None:
            return None

        inside = self.locate(place).partition(", at ")[2]
        inner = replace(self.source, head=head, open=lambda: BytesIO(raw), inside=inside, skip=False)
        try:
            traces = list(read_format(inner))
        except InputError:
            return None

        calls = _list_calls(traces)
        for call in calls:
            call.name_called_tool(self.source.is_search)

        if not any(self.source.is_search(call.tool) if call.is_search is None else call.is_search for call in calls):
            return None
        traces[0].unknown += inner.take_unknown()
        lacks_answers = any(not call.answered and not call.remedy for call in calls)
        if lacks_answers and (place or any(trace.unknown for trace in traces)):
            return None  # the answers may be in what is not understood, or in another part of the log
        return traces

    def report_unsorted(self, event: Found) -> None:
        self.source.summary.count("unsorted", format_place(self.locate(event.place)))

    def make_trace(self, group: queries.FoundQuery) -> Trace:
        """Return the trace of a query: the trace that a known format read, or one made from the query's events.

        Raise an InputError if the query's records ask different questions.
        """
        record = group.record
        if len(questions := list(dict.fromkeys(filter(None, group.asked)))) > 1:
            raise InputError(
                f"{format_place(self.locate(group.key.place))}: the query id {group.key.query_id!r} has two questions, "
                f"{questions[0][:80]!r} and {questions[1][:80]!r}; name the field of the query's id with {spell('query_id')}"
            )

        if len(group.members) == 1 and group.members[0].traces:
            trace = group.members[0].traces[0]
            trace.record = trace.record if record is None else record
        else:
            _check_copies(group.members, self.locate)
            conversation = Conversation(self.source, record)
            if not any(member.text for member in group.members):
                conversation.user(group.question)
            has_joined = _add_events(group.members, conversation, len(group.key.place), self.source.is_search)
            trace = conversation.trace(self.locate(group.key.place))
            trace.iteration = "call" if has_joined else None
            trace.models = group.models

        trace.query_id = trace.query_id or group.key.query_id
        return trace


def _read_values(source: Source) -> Iterator[tuple[Any, str]]:
    """Yield each JSON value of a file with its place. A line of a text file holds at most one value, perhaps after `data:`."""
    if source.head.kind not in ("text", "events"):
        yield from source.documents()
        return
    event = ""
    for number, line in enumerate(source.text().splitlines(), start=1):
        text = line.removeprefix("data:").strip()
        if line.startswith("event:"):
            event = line[6:].strip()
        elif text.startswith(("{", "[")) and not isinstance(value := parse_if_json(text), str):
            if isinstance(value, dict) and event:
                value.setdefault(KINDS[1], event)
            yield value, f"{source.path}, line {number}, at "
        elif _holds_search_after_text(text):
            expected = "a line that is one JSON object or list"
            source.not_understood("object after other text", f"{source.path}, line {number}, at ", expected)


def _holds_search_after_text(line: str) -> bool:
    """Return whether a line such as `INFO {...}` ends in an object that looks like a search or its results."""
    start = line.find("{")
    return start > 0 and looks_like_search("line", [parse_if_json(line[start:])])


def _list_calls(traces: list[Trace]) -> list[ToolCall]:
    return [call for trace in traces for turn in trace.turns for step in turn.steps for call in step.calls]


def _check_copies(members: list[Found], locate: Callable[[Place], str]) -> None:
    """Raise an InputError if two parts of a record hold the same call: the user must leave out one of the two copies."""
    first: dict[str, tuple[Place, Found]] = {}
    for event in members:
        part = tuple(0 if isinstance(key, int) else key for key in event.place)
        for call in [event.call] if event.call else _list_calls(event.traces):
            is_list = call.is_search and call.arguments is None  # `tools=` names its key
            content = call.output if is_list else (call.arguments, call.queries)
            other_part, other_event = first.setdefault(repr((call.tool, content)), (part, event))
            if part != other_part:
                other_place = locate(other_event.place).rpartition(", at ")[2]
                alike = "results" if is_list else "arguments"
                raise InputError(
                    f"{locate(event.place)}: the call of {call.tool} is also at {other_place}, with the same {alike}; leave out "
                    "one of the two copies, or write the searches in the format jsonl"
                )


def _add_events(members: list[Found], conversation: Conversation, depth: int, is_search: Callable[[str], bool]) -> bool:
    """Add the events of a query to a conversation. Return whether a step has several calls that hold their own outputs.

    Such calls may be sequential: the log does not say so.

    - Consecutive calls without own outputs are one step. Consecutive calls with own outputs are one step if in the same inner list.
    - User text after a call begins a turn only if the agent wrote text in between. Otherwise the text may come from a tool.
    - User text after the last search begins no turn: a program may have added it as a reminder.

    The first `depth` keys of a call's place lead to the record. Only lists inside the record join calls to a step.
    """
    searches = [k for k, event in enumerate(members) if event.traces or (event.call and is_search(event.call.tool))]
    last_search = max(searches, default=0)
    has_joined = False
    spoke = True  # whether the agent wrote text since its last call, or has made no call yet
    answered = True  # whether the next call without an own output begins a step
    last: Place | None = None  # of the list with the last call, if the call holds its own output

    for k, event in enumerate(members):
        if event.text is not None:
            if event.text and spoke and k <= last_search:
                conversation.user(event.text)
            spoke = not event.text or spoke
            answered, last = True, None
        elif event.traces:
            for turn in event.traces[0].turns:
                conversation.user(turn.user_text)
                for step in turn.steps:
                    conversation.step(step.time)
                    for call in step.calls:
                        conversation.call(call)
        elif event.call is None:
            answered, last = True, None
        else:
            whole = event.call.answered and not event.is_apart
            numbers = [index for index, key in enumerate(event.place) if index >= depth and isinstance(key, int)]
            held_in = event.place[: numbers[-1]] if len(numbers) > 1 else event.place
            if whole and held_in == last:
                has_joined = True
            elif whole or answered:
                conversation.step()
            answered, last = whole, held_in if whole else None
            conversation.call(event.call)
            spoke = False

    return has_joined
