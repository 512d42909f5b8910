"""The model that every trace format is turned into: Trace > Turn > Step > call > Result.

A format (one file each) yields traces whose steps hold `ToolCall`s with raw output; `reading/queries_and_costs.py` makes
`SearchCall`s of those that searched.

The classes are msgspec structs, which are cheaper to make than named tuples and dataclasses: one is made for every
result. They form trees and never cycles, so they are hidden from the garbage collector (`gc=False`), which saves a
tenth of the time.
"""

from __future__ import annotations

from enum import Enum
from typing import Any, Literal

import msgspec

from goodgain.traces.tools import extract_queries

#: What became of a search. `unparsed`: no reader could read its output; `unrecorded`: the log lacks its output.
Status = Literal["ok", "empty", "error", "unparsed", "unrecorded"]

#: name -> value, in the order found.
Pairs = tuple[tuple[str, str], ...]


class UnknownItem(msgspec.Struct, frozen=True, gc=False):
    """An item in a log that a format does not understand: what it is, where it stands, and what was expected."""

    what: str
    at: str
    expected: str = ""


class Usage(msgspec.Struct, frozen=True, gc=False):
    """What a call of a model, or several, cost, as far as the log has it; `cost` is in the log's currency."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    seconds: float | None = None
    cost: float | None = None


class Unanswered(Enum):
    """The type of `UNANSWERED`, the output of a call without an answer; None would not do, as it is an answer."""

    UNANSWERED = "unanswered"


UNANSWERED = Unanswered.UNANSWERED


class Result(msgspec.Struct, frozen=True, gc=False):
    """One result of a search, at its rank in the call (from 1)."""

    rank: int
    doc_id: str | None = None
    ids: Pairs = ()
    url: str | None = None
    title: str | None = None
    snippet: str | None = None
    score: float | None = None
    type: str | None = None
    fields: Pairs = ()


class SearchCall(msgspec.Struct, frozen=True, gc=False):
    """One search: its status, the results in the order given, and what was asked.

    `asked` holds the queries, or the arguments of the call. `queries` is computed from it only where it is needed, as
    most runs are made without it.
    """

    status: Status
    results: tuple[Result, ...] = ()
    asked: Any = ()
    call_id: str | None = None

    @property
    def queries(self) -> tuple[str, ...]:
        """The queries of the search."""
        return extract_queries(self.asked)


class ToolCall(msgspec.Struct, gc=False):
    """A call as the log holds it; mutable, because its answer stands further down in the log.

    Attributes:
        tool: the tool's name, as the log spells it.
        arguments: what it was called with: an object, or JSON text.
        output: what it returned, in whatever shape.
        spare: a second place with the output, read where `output` cannot be.
        failed: whether the log says that the call failed.
        is_search: whether the call is a search; None: the tool's name decides.
        remedy: what would have recorded the results, for calls that lack them.
        may_lack: the format leaves the output of single calls empty: such a call is unrecorded, and is counted in a
            notice rather than raised as an error.
        doc_type: the type of every result (`passage`), where the tool knows it.
        queries: the queries, for a call whose `arguments` do not hold them.
        at: the place in the log.
    """

    tool: str
    at: str
    call_id: str | None = None
    arguments: Any = None
    output: Any = UNANSWERED
    spare: Any = UNANSWERED
    failed: bool = False
    is_search: bool | None = None
    remedy: str = ""
    may_lack: bool = False
    doc_type: str | None = None
    queries: tuple[str, ...] | None = None

    @property
    def answered(self) -> bool:
        """Whether the log says what became of the call."""
        return self.output is not UNANSWERED or self.failed


class Step(msgspec.Struct, gc=False):
    """One step of the agent: the calls it made side by side, and what the step cost, where that was asked for."""

    calls: list[ToolCall] = msgspec.field(default_factory=list)
    index: int = 0
    time: str | None = None
    usage: Usage | None = None


class Turn(msgspec.Struct, gc=False):
    """A message of the user, and the steps that the agent took in answer to it."""

    user_text: str = ""
    steps: list[Step] = msgspec.field(default_factory=list)
    index: int = 0
    query_id: str | None = None
    time: str | None = None


class Trace(msgspec.Struct, gc=False):
    """One conversation of one system.

    Attributes:
        turns: at least one.
        query_id: the trace's own; None where it has none.
        tag: the system, where the log names it.
        run: which of several runs of its system this is (Inspect's epoch): the column `replicate` of the results.
        number: its place in a file of several traces, from 1; None where the file is the trace.
        record: the object it was read from, for query ids by field path.
        at: the place in the log.
        unknown: what the format did not understand in it. A trace with any of this and no search is an error.
        outcomes: scores, rewards and feedback by name, where `record` does not hold them.
    """

    turns: list[Turn]
    at: str
    query_id: str | None = None
    session_id: str | None = None
    tag: str | None = None
    run: str | None = None
    number: int | None = None
    record: Any = None
    unknown: tuple[UnknownItem, ...] = ()
    outcomes: dict[str, float] | None = None
