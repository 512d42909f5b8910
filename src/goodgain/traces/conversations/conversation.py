"""Builds a trace from a conversation, message by message: turns, steps, and calls paired with their answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from goodgain.traces.conversations.usage import add_usages
from goodgain.traces.input.checks import describe, format_place, unexpected_value
from goodgain.traces.model import UNANSWERED, Step, ToolCall, Trace, Turn, Usage
from goodgain.traces.tool_outputs.objects import join_texts

__all__ = [
    "Conversation",
    "count_hosted_searches",
    "find_message_key",
    "find_messages",
    "find_query_id",
    "find_record_id",
    "has_messages",
    "is_message_list",
    "message_text",
]

#: The fields of metadata that hold the query's id, the best first.
_QUERY_IDS = ("query_id", "question_id", "qid")
#: Keys under which logs keep messages besides `messages`, and the roles of the speakers of ShareGPT.
_MESSAGE_KEYS = (
    *("conversations", "conversation", "history", "chat_history", "message_history", "traj", "trajectory"),
    *("completion", "transcript", "rollout", "response", "output", "steps"),
)
_SPEAKERS = {"human": "user", "gpt": "assistant", "tool": "observation", "function_response": "observation"}
#: How the ids of answers begin, which are not ids of queries.
_ANSWER_IDS = ("cmpl-", "chatcmpl-", "gen-", "resp_", "msg_")
#: A count above this is damaged, as no answer takes so many searches.
_MAX_SEARCHES = 1000


class Conversation:
    """Builds one trace from what happens in a conversation, reported in order; `trace` returns it.

    Attributes:
        hosted: searches run by the model's vendor so far, where a format counts them.
    """

    def __init__(self) -> None:
        self.hosted = 0
        self._turns: list[Turn] = []
        self._user_spoke = False
        self._calls: dict[str, list[ToolCall]] = {}
        self._open: list[ToolCall] = []
        self._spent: Usage | None = None

    def user(self, text: str, time: str | None = None) -> None:
        """Report a message of the user: a new turn, unless the agent has not acted since the user's last message.

        Steps before the user's first message belong to the first turn.
        """
        last = self._turns[-1] if self._turns else None
        if last is None or (self._user_spoke and last.steps):
            self._turns.append(Turn(text))
        else:
            last.user_text = f"{last.user_text}\n{text}" if last.user_text else text
        self._user_spoke = True
        self._turns[-1].time = time

    def spend(self, usage: Usage | None) -> None:
        """Report what the next step costs: an answer of a model that holds several steps is paid for with its first."""
        self._spent = add_usages(self._spent, usage)

    def step(self, time: str | None = None) -> None:
        """Report a step of the agent; the calls that follow belong to it."""
        if not self._turns:
            self._turns.append(Turn())
        self._turns[-1].steps.append(Step(time=time, usage=self._spent))
        self._spent = None

    def call(self, call: ToolCall) -> None:
        """Report a call of a tool in the current step."""
        if not self._turns or not self._turns[-1].steps:
            self.step()
        self._turns[-1].steps[-1].calls.append(call)
        self._open.append(call)
        if call.call_id is not None:
            self._calls.setdefault(call.call_id, []).append(call)

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

    def trace(self, at: str, record: Any = None, *, query_id: str | None = None) -> Trace:
        """Return the trace with numbered turns; it has one turn even if nothing was reported."""
        turns = self._turns or [Turn()]
        for index, turn in enumerate(turns, start=1):
            turn.index = index
        return Trace(turns, at, query_id=query_id, record=record)


def count_hosted_searches(usage: Any) -> int:
    """Return the number of searches that a vendor ran for an answer, from the answer's usage; 0 if it has none."""
    if not isinstance(usage, dict):
        return 0
    for counts in (usage, *usage.values()):
        number = counts.get("web_search_requests") if isinstance(counts, dict) else None
        if isinstance(number, int) and not isinstance(number, bool) and 0 < number <= _MAX_SEARCHES:
            return number
    return 0


def has_messages(value: Any, of: Callable[[dict[str, Any]], bool]) -> bool:
    """Return whether a value holds messages, itself or under a key for them, of which one satisfies `of`."""
    key = find_message_key(value)
    members = value.get(key) if key is not None else value
    return isinstance(members, list) and any(isinstance(member, dict) and of(_as_message(member)) for member in members)


def is_message_list(value: list[Any]) -> bool:
    """Return whether a list is one conversation rather than a list of conversations: it has a message, or is empty."""
    return not value or any(map(_is_message, value))


def find_messages(value: Any, at: str) -> tuple[list[Any], str]:
    """Return the messages of a record, which are the record itself or stand under a key for them, and their place.

    A prompt beside them, itself messages, comes before them. Messages of `from` and `value` get a role and content.

    Raises:
        InputError: there are no messages.
    """
    key = find_message_key(value)
    if key is not None:
        prompt = value.get("prompt")
        value, at = value[key], f"{at}/{key}"
        if key != "messages" and isinstance(value, list) and isinstance(prompt, list) and any(map(_is_message, prompt)):
            value, at = [*prompt, *value], f"{at} after prompt"
    if not isinstance(value, list) or not value:
        raise unexpected_value(at, "a list of messages, or an object that has one under 'messages'", value)
    return [_as_message(member) for member in value], at


def find_message_key(value: Any) -> str | None:
    """Return the key under which an object has messages: `messages`, else the first other one that holds some."""
    if not isinstance(value, dict):
        return None
    if "messages" in value:
        return "messages"
    return next(
        (key for key in _MESSAGE_KEYS if isinstance(value.get(key), list) and any(map(_is_message, value[key]))), None
    )


def _is_message(member: Any) -> bool:
    return isinstance(member, dict) and ("role" in member or ("from" in member and "value" in member))


def _as_message(member: Any) -> Any:
    """Return a message of ShareGPT (`from`, `value`) with a role and content; any other value as it is."""
    if not isinstance(member, dict) or "role" in member or not _is_message(member):
        return member
    rest = {key: value for key, value in member.items() if key not in ("from", "value")}
    speaker = member["from"]
    role = _SPEAKERS.get(speaker, speaker) if isinstance(speaker, str) else speaker
    return {"role": role, "content": member["value"], **rest}


def message_text(content: Any) -> str:
    """Return the text of a message's content: the text itself, or the joined texts of its parts."""
    return (join_texts(content) or "") if not isinstance(content, dict) else (join_texts([content]) or "")


def find_query_id(metadata: Any, at: str) -> str | None:
    """Return the query's id in metadata, from the first field that logs keep it in; None if there is none."""
    if not isinstance(metadata, dict):
        return None
    for key in _QUERY_IDS:
        value = metadata.get(key)
        if isinstance(value, (str, int)) and not isinstance(value, bool) and value != "":
            return str(value)
        if value not in (None, ""):
            raise unexpected_value(f"{format_place(at)}, {key}", "an id (text or a whole number)", describe(value))
    return None


def find_record_id(record: Any) -> str | None:
    """Return the id of a record that holds a conversation, as data sets have; None for ids of a model's answers."""
    value = record.get("id") if isinstance(record, dict) else None
    if not isinstance(value, (str, int)) or isinstance(value, bool) or str(value).startswith(_ANSWER_IDS):
        return None
    return str(value) or None
