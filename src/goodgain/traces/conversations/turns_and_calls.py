"""Builds a trace from a conversation, message by message: turns, steps, calls paired with their answers, and costs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Self

from goodgain.traces.conversations.tree import any_object, find_list, text_or_none, walk
from goodgain.traces.expected_values import expect_object, unexpected_value
from goodgain.traces.input.sources import Source
from goodgain.traces.model import UNANSWERED, Step, ToolCall, Trace, Turn, Usage

#: A count above this is damaged, as no answer takes so many searches.
_MAX_SEARCHES = 1000
#: The names that vendors and libraries give to what a call of a model cost.
_INPUT = ("input_tokens", "prompt_tokens", "inputTokens", "promptTokens")
_OUTPUT = ("output_tokens", "completion_tokens", "outputTokens", "completionTokens")
_COST = ("cost", "cost_usd", "total_cost")
#: Tokens that were read from a cache or written to one, where the number of input tokens leaves them out.
_CACHED = (
    *("cache_creation_input_tokens", "cache_read_input_tokens"),
    *("input_tokens_cache_write", "input_tokens_cache_read"),
)
#: A larger number is damaged, and sums of such numbers would not fit into a column.
_MAX_NUMBER = 10**15


class Conversation:
    """Builds one trace from what happens in a conversation, reported in order; `trace` returns it.

    Attributes:
        source: the file, for what is not understood.
        query_id, session_id, tag: what the items name, if anything; the system is the tag.
    """

    def __init__(self, source: Source) -> None:
        self.source = source
        self.query_id: str | None = None
        self.session_id: str | None = None
        self.tag: str | None = None
        self._turns: list[Turn] = []
        self._user_spoke = False
        self._calls: dict[str, list[ToolCall]] = {}
        self._open: list[ToolCall] = []
        self._spent: Usage | None = None

    def user(self, text: str, time: Any = None) -> None:
        """Report a message of the user: a new turn, unless the agent has not acted since the user's last message.

        Steps before the user's first message belong to the first turn.
        """
        last = self._turns[-1] if self._turns else None
        if last is None or (self._user_spoke and last.steps):
            self._turns.append(Turn(text))
        else:
            last.user_text = f"{last.user_text}\n{text}" if last.user_text else text
        self._user_spoke = True
        self._turns[-1].time = text_or_none(time)

    def spend(self, holder: Any) -> None:
        """Report what the next step costs, as a usage or an object that holds one; it is read where costs are wanted.

        An answer of a model that holds several steps is paid for with its first.
        """
        if self.source.costs:
            usage = holder if isinstance(holder, Usage) else read_usage(holder)
            self._spent = add_usages(self._spent, usage)

    def step(self, time: Any = None) -> None:
        """Report a step of the agent; the calls that follow belong to it."""
        if not self._turns:
            self._turns.append(Turn())
        self._turns[-1].steps.append(Step(time=text_or_none(time), usage=self._spent))
        self._spent = None

    def call(self, call: ToolCall) -> ToolCall:
        """Report a call of a tool in the current step, and return it."""
        if not self._turns or not self._turns[-1].steps:
            self.step()
        self._turns[-1].steps[-1].calls.append(call)
        self._open.append(call)
        if call.call_id is not None:
            self._calls.setdefault(call.call_id, []).append(call)
        return call

    def has_call(self, call_id: str | None) -> bool:
        """Return whether a call of this id was made."""
        return call_id is not None and call_id in self._calls

    def has_open_call(self, call_id: str | None, name: str | None) -> bool:
        """Return whether an answer with this id or, without an id, of this tool belongs to a call."""
        if call_id is not None:
            return call_id in self._calls
        return any(not call.answered and (name is None or call.tool == name) for call in self._open)

    def merge_copy(self, call: ToolCall) -> None:
        """Report a copy of a call, sent again with the history: the answer of either is kept."""
        for earlier in self._calls.get(call.call_id or "", ()):
            if not earlier.answered and call.answered:
                earlier.output, earlier.failed = call.output, call.failed

    def answer(
        self, call_id: str | None, output: Any, at: str, *,
        name: str | None = None, failed: bool = False, spare: Any = UNANSWERED,
    ) -> ToolCall:  # fmt: skip
        """Report a tool's answer to the latest open call with its id, or to the first open call (of that name).

        Raises:
            InputError: no call is open for this answer, so a call must be missing from the log.
        """
        if call_id is not None:
            known = self._calls.get(call_id)
            call = known[-1] if known else None
            if known and (known[-1].output is not UNANSWERED or known[-1].failed):
                call = next((call for call in reversed(known) if not call.answered), None)
                if call is None:
                    return known[-1]  # the answer was sent twice: the first one counts
        else:
            self._open = [call for call in self._open if not call.answered]
            call = next((call for call in self._open if name is None or call.tool == name), None)
        if call is None:
            raise unexpected_value(at, f"the answer to a call made before (no call has the id {call_id!r})", output)
        call.output, call.failed, call.spare = output, failed, spare
        return call

    def cite(self, citations: list[Any]) -> None:
        """Report citations in an answer: the results of the last search, if the log lacks its own."""
        for call in reversed(self._open):
            if call.is_search and not call.answered:
                call.output = citations
                return

    def read(self, item: dict[str, Any], at: str) -> None:
        """Read an item of the log: a message, a step. The reader of a format says how."""
        raise NotImplementedError

    def read_all(self, items: Iterable[tuple[Any, str]]) -> Self:
        """Read items, each with its place."""
        for item, at in items:
            self.read(expect_object(item, at), at)
        return self

    def finish(self, at: str, record: Any = None) -> Trace:
        """Return the trace of what was read, with the ids that a format has there."""
        return self.trace(at, record)

    def trace(
        self, at: str, record: Any = None, *,
        query_id: str | None = None, session_id: str | None = None, tag: Any = None,
    ) -> Trace:  # fmt: skip
        """Return the trace with numbered turns; it has one turn even if nothing was reported."""
        turns = self._turns or [Turn()]
        for index, turn in enumerate(turns, start=1):
            turn.index = index
        query_id, session_id, tag = (
            query_id or self.query_id,
            session_id or self.session_id,
            text_or_none(tag) or self.tag,
        )
        return Trace(turns, at, query_id=query_id, session_id=session_id, tag=tag, record=record)


def read_lists(
    source: Source,
    reader: type[Conversation],
    paths: tuple[str, ...],
    expected: str,
    *,
    of_list: Callable[[dict[str, Any]], bool],
    of_line: Callable[[dict[str, Any]], bool] = lambda one: False,
) -> Iterator[Trace]:
    """Yield the traces of a file whose traces are lists of objects: messages, steps.

    Args:
        source: the file.
        reader: reads the objects.
        paths: where a value keeps the list, if it is not the list itself.
        expected: what the list holds, in words.
        of_list: whether a member says that its list is one trace, and not a list of traces.
        of_line: whether a line says that all lines are one list.
    """
    if source.head.kind == "jsonl" and any_object(source.head.records, of_line):
        with source.handle_errors():
            lines = list(source.documents())
            yield reader(source).read_all(lines).finish(lines[0][1] if lines else f"{source.path}, at ")
        return

    def read_value(value: Any, at: str) -> Trace:
        members, path = find_list(value, *paths)
        if not members:
            raise unexpected_value(f"{at}{path}", expected, value)
        return reader(source).read_all(walk(members, f"{at}{path}")).finish(at, value)

    yield from source.traces(read_value, is_one=lambda value: not value or any_object(value, of_list))


def count_hosted_searches(usage: Any) -> int:
    """Return the number of searches that a vendor ran for an answer, from the answer's usage; 0 if it has none."""
    if not isinstance(usage, dict):
        return 0
    for counts in (usage, *usage.values()):
        number = counts.get("web_search_requests") if isinstance(counts, dict) else None
        if isinstance(number, int) and not isinstance(number, bool) and 0 < number <= _MAX_SEARCHES:
            return number
    return 0


def read_usage(holder: Any) -> Usage | None:
    """Return the usage in an object with numbers of tokens, a price or a time; None if it has none.

    Input tokens count all that the model read, also from a cache. A value that is not a number is left out.

    >>> read_usage({"prompt_tokens": 10, "completion_tokens": 2})
    Usage(input_tokens=10, output_tokens=2, seconds=None, cost=None)
    """
    if not isinstance(holder, dict):
        return None
    read, written = _read_number(holder, *_INPUT), _read_number(holder, *_OUTPUT)
    if read is not None and "input_tokens" in holder:
        read += sum(_read_number(holder, name) or 0 for name in _CACHED)
    seconds, cost = _read_number(holder, "seconds"), _read_number(holder, *_COST)
    if read is written is seconds is cost is None:
        return None
    return Usage(None if read is None else int(read), None if written is None else int(written), seconds, cost)


def _read_number(holder: dict[str, Any], *names: str) -> float | None:
    for name in names:
        value: Any = holder.get(name)
        if type(value) in (int, float) and 0 <= value <= _MAX_NUMBER:
            return value  # type: ignore[no-any-return]  # of one of these types
    return None


def add_usages(one: Usage | None, other: Usage | None) -> Usage | None:
    """Return the sum of two usages; what only one of them has is taken from it."""
    if one is None or other is None:
        return one or other
    return Usage(*(_add(getattr(one, name), getattr(other, name)) for name in Usage.__struct_fields__))


def _add(one: Any, other: Any) -> Any:
    return other if one is None else one if other is None else one + other
