"""Builds a trace from the messages of a conversation: turns, steps, calls with answers, and costs."""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, Self

from msgspec.structs import astuple

from goodgain.logs.traces.conversations.messages import find_messages, is_message, message_text, walk_parts
from goodgain.logs.traces.conversations.record_objects import Placed, any_object, text_or_none, walk_objects
from goodgain.logs.traces.conversations.tool_calls import read_call
from goodgain.logs.traces.expected_values import (
    as_word,
    expect_object,
    find_id,
    object_or_empty,
    objects_in,
    unexpected_value,
)
from goodgain.logs.traces.input.sources import Source
from goodgain.logs.traces.model import UNANSWERED, Holder, Step, ToolCall, Trace, Turn, Usage
from goodgain.logs.traces.tool_outputs import overlooked_results as overlooked
from goodgain.logs.traces.tool_outputs.unread_lists import PLAIN_FIELDS

#: A larger count of searches in an answer is damaged.
_MAX_SEARCHES = 1000
_INPUT = ("input_tokens", "prompt_tokens", "inputTokens", "promptTokens", "request_tokens")
_OUTPUT = ("output_tokens", "completion_tokens", "outputTokens", "completionTokens", "response_tokens")
_COST = ("cost", "cost_usd", "total_cost")
#: Tokens that `input_tokens` excludes: read from a cache or written to one.
_READ_FROM_CACHE = ("cache_read_input_tokens", "input_tokens_cache_read")
_WRITTEN_TO_CACHE = ("cache_creation_input_tokens", "input_tokens_cache_write")
#: Other names of the tokens that were read from a cache, and of the tokens of thoughts.
_CACHED = (
    *_READ_FROM_CACHE,
    "cached_tokens",
    "cache_read",
    "cachedContentTokenCount",
    "cachedInputTokens",
    "cached_input_tokens",
)
_REASONING = ("reasoning_tokens", "reasoning", "thoughtsTokenCount", "reasoningTokens", "reasoning_output_tokens")
#: Objects in a usage with tokens by kind.
_DETAILS = (
    *("prompt_tokens_details", "input_tokens_details", "input_token_details", "inputTokenDetails"),
    *("completion_tokens_details", "output_tokens_details", "output_token_details", "outputTokenDetails"),
)
#: Fields with the total usage of a record.
_OF_WHOLE = ("usage", "token_usage", "total_usage")
#: Types and keys of parts with thoughts, and fields with citations.
_THOUGHTS = {"thought", "thinking", "reasoning", "redacted_thinking", "reasoning_content"}
_NOTES = ("citations", "annotations")
#: Larger numbers are damaged. Sums of such numbers do not fit into a column.
_MAX_NUMBER = 10**15


class Conversation:
    """Builds one trace. Add the messages and calls of a conversation in order, then call `trace`."""

    query_id: str | None = None
    session_id: str | None = None
    tag: str | None = None  # the system

    def __init__(self, source: Source, record: Any = None) -> None:
        self.source, self.record = source, record  # the object that holds the conversation, for query ids by field path
        self._turns: list[Turn] = []
        self._user_spoke = False
        self._calls: dict[str, list[ToolCall]] = {}
        self._open: list[ToolCall] = []
        self._spent: Usage | None = None
        self._written: str | None = None
        self._holders: list[Holder] = []
        self._models: set[str] = set()

    @classmethod
    def read_source(
        cls, source: Source, find: Callable[[Any, str], Iterable[Placed]] = find_messages, *,
        of_list: Callable[[dict[str, Any]], bool] | None = is_message,
        of_line: Callable[[dict[str, Any]], bool] | None = None,
    ) -> Iterator[Trace]:  # fmt: skip
        """Yield the traces of a file. A trace is a list of objects, such as messages or steps.

        Args:
            find: yields the objects in a value. The value is a list, or holds a list.
            of_list: takes a member of a list, and returns whether the list is one trace. If None, each member is a trace.
            of_line: takes a line of a file, and returns whether all lines of the file are one trace.
        """
        if of_line is not None and source.head.kind == "jsonl" and any_object(source.head.records, of_line):
            with source.handle_errors():
                yield cls(source).read_file(source.documents())
            return

        def read_value(value: Any, at: str) -> Trace:
            return cls(source, value).read_record(value, find(value, at), at).trace(at)

        yield from source.traces(
            read_value, is_one=lambda value: of_list is not None and (not value or any_object(value, of_list))
        )

    def user(self, text: str, time: Any = None) -> None:
        """Add a message of the user. A new turn begins if the agent has acted since the user's last message.

        Steps before the user's first message belong to the first turn.
        """
        last = self._turns[-1] if self._turns else None
        if last is None or (self._user_spoke and last.steps):
            self._turns.append(Turn(text))
        else:
            last.user_text = f"{last.user_text}\n{text}" if last.user_text else text
        self._user_spoke = True
        self.say(None)
        self._turns[-1].time = text_or_none(time)

    def spend(self, holder: Any) -> None:
        """Add usage to the next step. `holder` is a `Usage` or an object with usage. If `source.costs` is false, do nothing.

        If one answer of a model has several steps, the first step gets the usage.
        """
        if self.source.costs:
            usage = holder if isinstance(holder, Usage) else read_usage(holder)
            self._spent = add_usages(self._spent, usage)

    def name_model(self, model: Any) -> None:
        """Note the model of an answer, for formats whose system is not the model."""
        if isinstance(model, str) and model:
            self._models.add(model)

    def step(self, time: Any = None) -> None:
        """Begin a step of the agent. Later calls belong to this step. Earlier texts are not part of the answer."""
        if not self._turns:
            self._turns.append(Turn())
        self._turns[-1].steps.append(Step(time=text_or_none(time), usage=self._spent))
        self._spent = None
        if self.source.uses:
            self.say(None)

    def say(
        self, content: Any, cited: Iterable[Any] = (), *, is_call: Callable[[dict[str, Any]], bool] | None = None
    ) -> None:
        """Add what the agent says and cites to the answer of the turn. Traces have answers only if `source.uses` is true.

        The answer is the text in the last step of a turn, after the last part that `is_call` accepts. If `content` is None,
        discard the answer of the turn so far.
        """
        # A search that the model wrote as text, and that no tool received, is noted for the end of the trace.
        is_waiting = bool(self._open) and not self._open[-1].answered
        if content is not None and self._written is None and not is_waiting:
            called = overlooked.find_written_calls(message_text(content))
            self._written = next(filter(self.source.is_search, called), None)
        if not self.source.uses:
            return

        if not self._turns:
            self._turns.append(Turn())
        turn = self._turns[-1]
        if content is None:
            turn.answer = None
            turn.cited = []
            return

        texts: list[str] = [content] if isinstance(content, str) else []
        turn.cited += cited
        for part in objects_in([content] if isinstance(content, dict) else content):
            if is_call is not None and is_call(part):
                texts.clear()
                turn.answer = None
                turn.cited = []
            elif not any(part.get(key) for key in _THOUGHTS) and as_word(part.get("type")) not in _THOUGHTS:
                texts.append(message_text(part))
                turn.cited += [note for key in _NOTES if isinstance(notes := part.get(key), list) for note in notes]

        if text := "\n".join(filter(None, texts)):
            turn.answer = f"{turn.answer}\n{text}" if turn.answer else text

    def call(self, call: ToolCall) -> ToolCall:
        """Add a call to the latest step of the latest turn, and return it. Begin a step if the turn has none."""
        if not self._turns or not self._turns[-1].steps:
            self.step()
        self._turns[-1].steps[-1].calls.append(call)
        self._open.append(call)
        if call.call_id is not None:
            self._calls.setdefault(call.call_id, []).append(call)
        return call

    def has_call(self, call_id: str | None) -> bool:
        return call_id is not None and call_id in self._calls

    def has_open_call(self, call_id: str | None, name: str | None) -> bool:
        """Return whether a call has the id `call_id`. Without an id, return whether a call of the tool `name` has no answer yet."""
        if call_id is not None:
            return self.has_call(call_id)
        return any(not call.answered and (name is None or call.tool == name) for call in self._open)

    def merge_copy(self, call: ToolCall) -> None:
        """If a repeated call has an answer, copy this answer into each earlier call that has the same id but no answer."""
        for earlier in self._calls.get(call.call_id or "", ()):
            if not earlier.answered and call.answered:
                earlier.output = call.output
                earlier.failed = call.failed

    def answer(
        self, call_id: str | None, output: Any, at: str, *,
        name: str | None = None, failed: bool = False, spare: Any = UNANSWERED,
    ) -> ToolCall:  # fmt: skip
        """Answer the latest unanswered call with the id `call_id`.

        Without an id, answer the first unanswered call of the tool `name`. If no call matches, report the answer as not understood.
        Leave out a second answer to a call, and report it if the call is a search and the answers differ.
        """
        if call_id is not None:
            known = self._calls.get(call_id, [])
            call = next((call for call in reversed(known) if not call.answered), None)
            if known and call is None:  # the answer was sent twice: the first one counts
                first = known[-1]
                if output not in (UNANSWERED, first.output, first.spare) and self.source.counts_as_search(first):
                    expected = f"one answer to each call (two calls with the id {call_id!r}?)"
                    self.source.not_understood("another answer to a call", at, expected)
                return first
        else:
            self._open = [call for call in self._open if not call.answered]
            call = next((call for call in self._open if name is None or call.tool == name), None)

        if call is None:
            self.report_orphan(at, f"no call has the id {call_id!r}" if call_id else f"no call of {name!r} is open")
            call = ToolCall("", at, call_id)

        call.output = output
        call.failed = failed
        call.spare = spare
        return call

    def report_orphan(self, at: str, reason: str) -> None:
        self.source.not_understood("answer without a call", at, f"the answer to a call made before ({reason})")

    def cite(self, citations: list[Any]) -> None:
        """Use the citations of an answer as the results of the latest search that has no results."""
        for call in reversed(self._open):
            if call.is_search and not call.answered:
                call.output = citations
                return

    def read_calls(
        self, calls: Any, at: str, name: str = "name", call_id: str = "id", arguments: str = "arguments"
    ) -> list[ToolCall]:
        """Add a list of calls to the trace. `name`, `call_id` and `arguments` are the keys to read from each call."""
        return [self.call(read_call(*placed, name, call_id, arguments)) for placed in walk_objects(calls, at)]

    def add_counted_searches(self, usage: Any, at: str, remedy: str) -> int:
        """For each search counted in the usage of an answer, add a search without results. Return the number of added searches."""
        holders = objects_in([usage, *usage.values()]) if isinstance(usage, dict) else []
        numbers = (count.get("web_search_requests") for count in holders)
        number = next((count for count in numbers if type(count) is int and 0 < count <= _MAX_SEARCHES), 0)
        for _ in range(number):
            self.call(ToolCall("web_search", f"{at}/usage", is_search=True, remedy=remedy))
        return number

    def read(self, item: dict[str, Any], at: str) -> None:
        raise NotImplementedError(f"{type(self).__module__}: {type(self).__name__} has no method read(item, at)")

    def read_all(self, items: Iterable[tuple[Any, str]]) -> Self:
        """Read each item, and remember those with fields that may hold results beside the calls."""
        for item, at in items:
            self.read(expect_object(item, at), at)
            if not item.keys() <= PLAIN_FIELDS:
                self.hold(item, at)
        return self

    def hold(self, value: Any, at: str, *, is_state: bool = False) -> None:
        """Remember an object of the log that belongs to the latest step, because it may hold results that no call holds."""
        steps = self._turns[-1].steps if self._turns else None
        step = steps[-1] if steps else None
        self._holders.append(Holder(value, at, len(self._turns), step, is_state))

    def read_file(self, lines: Iterable[tuple[Any, str]]) -> Trace:
        """Return the trace of a file whose lines are one conversation."""
        waiting = iter(lines)  # a reader can refuse a large file before all of its lines are in memory
        first = next(waiting, None)
        if first is None:
            return self.trace(f"{self.source.path}, at ")
        return self.read_all(chain([first], waiting)).trace(first[1])

    def read_record(self, record: Any, items: Iterable[Placed], at: str) -> Self:
        """Read the items of a record. If an unread field looks like messages with a search, report the field as not understood."""
        read = list(items)
        self.read_all(read)
        if not isinstance(record, dict) or (read and read[0][0] is record):
            return self

        places = {place.removeprefix(f"{at}/").partition("/")[0].removesuffix(" after prompt") for _, place in read}
        members = [item for item, _ in read]
        for key, value in record.items():
            is_new = key not in places and key != "prompt" and overlooked.looks_like_messages(key, value)
            new = (
                [message for message in value if message not in members]
                if is_new and isinstance(value, list)
                else value
            )
            if is_new and overlooked.looks_like_messages(key, new):  # and is not a copy
                self.source.not_understood(f"field {key!r} of the record", f"{at}/{key}", "all messages in one list")

        return self

    def _end(self, at: str) -> None:
        """Override this to read data outside the messages, such as ids. `trace` calls this method after the last message."""

    def trace(self, at: str, *, query_id: str | None = None, session_id: str | None = None, tag: Any = None) -> Trace:
        """Return the trace, with at least one turn. Call this method once, at the end.

        The query id is the first of: an id in the record, the argument `query_id`, `self.query_id`, the session's id.
        """
        self._end(at)
        session = session_id or self.session_id
        turns = self._turns or [Turn()]
        if self.source.costs and self._open and not _has_costs(turns):
            record = object_or_empty(self.record)
            for key in [key for key in _OF_WHOLE if read_usage(record.get(key)) is not None]:
                what = f"field {key!r} of a whole conversation (costs need the usage of each step)"
                self.source.not_understood(what, f"{at}/{key}", "usage beside each answer of the model")
        if self._written is not None:
            self.source.not_understood(f"the call of {self._written!r} in a text", at, "calls in fields of their own")

        for index, turn in enumerate(turns, start=1):
            turn.index = index
        return Trace(
            turns, at, find_id(self.record) or query_id or self.query_id or session, session,
            tag=text_or_none(tag) or self.tag, record=self.record, holders=self._holders,
            models=tuple(sorted(self._models)),
        )  # fmt: skip

    def report_kind(self, of: str, item: dict[str, Any], key: str, at: str, expected: str) -> None:
        """Report an item of an unknown kind as not understood: the item may be a search. Raise an error if the kind is not text."""
        kind = item.get(key)
        if not isinstance(kind, str):
            raise unexpected_value(f"{at}/{key}", expected, kind)
        self.source.not_understood(f"{of} of {key.removeprefix('part_')} {kind!r}", at, expected)

    def report_parts(self, of: str, content: Any, at: str, types: Collection[str], keys: Collection[str] = ()) -> None:
        """Report parts of unknown types as not understood. A part without a type is known if it has one of the keys in `keys`."""
        for part, part_at in walk_parts(content, at):
            if "type" not in part and keys:
                if part.keys().isdisjoint(keys):
                    self.report_keys("part", part, part_at, f"a part with {', '.join(sorted(keys))}")
            elif as_word(part.get("type")) not in types:
                what = f"part of type {part.get('type')!r} in {of}"
                self.source.not_understood(what, part_at, f"a part of type {', '.join(sorted(types))}")

    def report_keys(self, of: str, item: Iterable[str], at: str, expected: str) -> None:
        self.source.not_understood(f"{of} with {', '.join(map(str, list(item)[:3])) or 'nothing'!r}", at, expected)

    def report_unread(self, of: str, item: dict[str, Any], at: str, read: Collection[str]) -> None:
        """Report unread fields that look like a search. If `item` has no content, also report fields that look like content."""
        for key, value in item.items():
            if key in read or not value or key == "role":
                continue
            lacks_content = any(name in read and item.get(name) is None for name in ("content", "message", "output"))
            if overlooked.looks_like_search(key, value) or (lacks_content and overlooked.is_content(key, value)):
                expected = f"calls, results and texts in {', '.join(sorted(read))}"
                self.source.not_understood(f"field {key!r} of {of}", f"{at}/{key}", expected)


def read_usage(holder: Any) -> Usage | None:
    """Return the tokens, the cost and the seconds in an object, or None if all are missing.

    Tokens by kind may be in an object inside, such as `prompt_tokens_details`. Input tokens include tokens read from a cache or
    written to a cache. Values that are not numbers are ignored.

    >>> read_usage({"prompt_tokens": 10, "completion_tokens": 2})
    Usage(input_tokens=10, output_tokens=2, seconds=None, cost=None, cached_tokens=None, reasoning_tokens=None)
    """
    if not isinstance(holder, dict):
        return None

    details = [inner for name in _DETAILS if isinstance(inner := holder.get(name), dict)]

    def read_number(*names: str, of: Sequence[dict[str, Any]] = (holder,)) -> Any:
        values: Iterator[Any] = (item.get(name) for item in of for name in names)
        return next((value for value in values if type(value) in (int, float) and 0 <= value <= _MAX_NUMBER), None)

    read = read_number(*_INPUT)  # tokens that the model read, then tokens that it wrote
    written = read_number(*_OUTPUT)
    cost = read_number(*_COST)
    seconds = read_number("seconds")
    if read is not None and "input_tokens" in holder:  # Anthropic's name, which counts no cached tokens
        read += sum(read_number(name) or 0 for name in (*_WRITTEN_TO_CACHE, *_READ_FROM_CACHE))
    if read is written is seconds is cost is None:
        return None
    cached, reasoning = (read_number(*names, of=[*details, holder]) for names in (_CACHED, _REASONING))
    tokens = [None if number is None else int(number) for number in (read, written, cached, reasoning)]
    return Usage(tokens[0], tokens[1], seconds, cost, tokens[2], tokens[3])


def add_usages(one: Usage | None, other: Usage | None) -> Usage | None:
    """Return the sum of two usages. A value that is missing in one usage counts as 0."""
    if one is None or other is None:
        return one or other
    pairs = zip(astuple(one), astuple(other), strict=True)
    return Usage(*(_add(first, second) for first, second in pairs))


def _has_costs(turns: list[Turn]) -> bool:
    return any(step.usage for turn in turns for step in turn.steps)


def _add(first: Any, second: Any) -> Any:
    if first is None or second is None:
        return second if first is None else first
    return first + second
