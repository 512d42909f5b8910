"""Building a trace from a conversation, message by message: turns, steps, and calls paired with their answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from goodgain.traces.input.checks import describe, format_place, unexpected_value
from goodgain.traces.model import UNANSWERED, Step, ToolCall, Trace, Turn
from goodgain.traces.tool_outputs.objects import join_texts

__all__ = ["Conversation", "count_hosted_searches", "find_messages", "find_query_id", "has_messages", "message_text"]

#: Where a log keeps the query's id, the best first.
_QUERY_IDS = ("query_id", "question_id", "qid")
#: More searches than this no answer makes.
_MAX_SEARCHES = 1000


class Conversation:
    """A trace in the making. Messages are told in their order; `trace` hands out what came of them.

    Attributes:
        hosted: how many searches of the model's vendor were told, where a format counts them.
    """

    def __init__(self) -> None:
        self.hosted = 0
        self._turns: list[Turn] = []
        self._user_spoke = False
        self._calls: dict[str, list[ToolCall]] = {}
        self._open: list[ToolCall] = []

    def user(self, text: str) -> None:
        """The user speaks: a new turn, unless the agent has done nothing since the user last spoke.

        What stands before the user's first message belongs to the first turn.
        """
        last = self._turns[-1] if self._turns else None
        if last is None or (self._user_spoke and last.steps):
            self._turns.append(Turn(text))
        else:
            last.user_text = f"{last.user_text}\n{text}" if last.user_text else text
        self._user_spoke = True

    def step(self, time: str | None = None) -> None:
        """The agent takes a step; the calls that follow are made in it."""
        if not self._turns:
            self._turns.append(Turn())
        self._turns[-1].steps.append(Step(time=time))

    def call(self, call: ToolCall) -> None:
        """The agent calls a tool, in the step it is in."""
        if not self._turns or not self._turns[-1].steps:
            self.step()
        self._turns[-1].steps[-1].calls.append(call)
        self._open.append(call)
        if call.call_id is not None:
            self._calls.setdefault(call.call_id, []).append(call)

    def has_call(self, call_id: str | None) -> bool:
        """Whether a call of this id was made."""
        return call_id is not None and call_id in self._calls

    def has_open_call(self, call_id: str | None, name: str | None) -> bool:
        """Whether a call waits for an answer with this id or, without one, of the tool of this name."""
        if call_id is not None:
            return call_id in self._calls
        return any(not call.answered and (name is None or call.tool == name) for call in self._open)

    def merge_copy(self, call: ToolCall) -> None:
        """A copy of a call, sent again with the history: of the two, the one with an answer counts."""
        for earlier in self._calls.get(call.call_id or "", ()):
            if not earlier.answered and call.answered:
                earlier.output, earlier.failed = call.output, call.failed

    def answer(
        self, call_id: str | None, output: Any, at: str, *,
        name: str | None = None, failed: bool = False, spare: Any = UNANSWERED,
    ) -> ToolCall:  # fmt: skip
        """A tool answers: the latest open call of that id, or, without an id, the first open call (of that name).

        Raises:
            InputError: no call waits for this answer, so that a call must have been lost.
        """
        if call_id is not None:
            known = self._calls.get(call_id)
            call = known[-1] if known else None
            if known and (known[-1].output is not UNANSWERED or known[-1].failed):
                call = next((call for call in reversed(known) if not call.answered), None)
                if call is None:
                    return known[-1]  # the answer was sent twice
        else:
            self._open = [call for call in self._open if not call.answered]
            call = next((call for call in self._open if name is None or call.tool == name), None)
        if call is None:
            raise unexpected_value(at, f"the answer to a call made before (no call has the id {call_id!r})", output)
        call.output, call.failed, call.spare = output, failed, spare
        return call

    def cite(self, citations: list[Any]) -> None:
        """The agent cites pages: the results of its last search, if the log has no others of it."""
        for call in reversed(self._open):
            if call.is_search and not call.answered:
                call.output = citations
                return

    def trace(self, at: str, record: Any = None, *, query_id: str | None = None) -> Trace:
        """The trace, with its turns numbered."""
        turns = self._turns or [Turn()]
        for index, turn in enumerate(turns, start=1):
            turn.index = index
        return Trace(turns, at, query_id=query_id, record=record)


def count_hosted_searches(usage: Any) -> int:
    """How many searches a vendor ran for an answer, as the answer's usage counts them; 0 where it counts none."""
    if not isinstance(usage, dict):
        return 0
    for counts in (usage, *usage.values()):
        number = counts.get("web_search_requests") if isinstance(counts, dict) else None
        if isinstance(number, int) and not isinstance(number, bool) and 0 < number <= _MAX_SEARCHES:
            return number
    return 0


def has_messages(value: Any, of: Callable[[dict[str, Any]], bool]) -> bool:
    """Whether a value is a list of messages, or an object with one under `messages`, of which one is like `of`."""
    members = value.get("messages") if isinstance(value, dict) else value
    return isinstance(members, list) and any(isinstance(member, dict) and of(member) for member in members)


def find_messages(value: Any, at: str) -> tuple[list[Any], str]:
    """The messages of a record and their place: the record itself, or what it has under `messages`.

    Raises:
        InputError: there are none.
    """
    if isinstance(value, dict) and "messages" in value:
        value, at = value["messages"], f"{at}/messages"
    if not isinstance(value, list) or not value:
        raise unexpected_value(at, "a list of messages, or an object that has one under 'messages'", value)
    return value, at


def message_text(content: Any) -> str:
    """The words of a message: text, or the texts of its parts."""
    return (join_texts(content) or "") if not isinstance(content, dict) else (join_texts([content]) or "")


def find_query_id(metadata: Any, at: str) -> str | None:
    """The query's id that metadata name, under the names logs use for it."""
    if not isinstance(metadata, dict):
        return None
    for key in _QUERY_IDS:
        value = metadata.get(key)
        if isinstance(value, (str, int)) and not isinstance(value, bool) and value != "":
            return str(value)
        if value not in (None, ""):
            raise unexpected_value(f"{format_place(at)}, {key}", "an id (text or a whole number)", describe(value))
    return None
