"""The common model of all trace formats: Trace > Turn > Step > call > Result.

A format (one file each) yields traces whose steps hold `ToolCall`s with raw output; `reading/queries_and_costs.py` makes
`SearchCall`s of those that searched.

The classes are msgspec structs, because every result is one: named tuples and dataclasses take longer to create. They
never form cycles, so the garbage collector need not track them (`gc=False`), which saves a tenth of the time.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from goodgain.traces.tools import ChosenTools, extract_queries

#: The outcome of a search. `unparsed`: no reader could read its output; `unrecorded`: the log lacks its output.
Status = Literal["ok", "empty", "error", "unparsed", "unrecorded"]

#: name -> value, in the order found.
Pairs = tuple[tuple[str, str], ...]


class UnknownItem(msgspec.Struct, frozen=True, gc=False):
    """An item in a log that a format does not understand: its kind, its place, and what was expected."""

    what: str
    at: str
    expected: str = ""


class Usage(msgspec.Struct, frozen=True, gc=False):
    """The recorded usage of one or more model calls; `cost` is in the log's currency."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    seconds: float | None = None
    cost: float | None = None


#: The output of a call without an answer; None is an answer.
UNANSWERED = msgspec.UNSET


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
    """One search: its status, its results in order, and its queries or the call's arguments (`asked`).

    `queries` is computed on demand, because most runs do not need it.
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
    """A call in a log; mutable, because its answer comes later in the log.

    Attributes:
        tool: the tool's name, as the log spells it.
        arguments: what it was called with: an object, or JSON text.
        output: what it returned, in whatever shape.
        spare: a second form of the output, read if `output` cannot be.
        failed: whether the log says that the call failed.
        is_search: whether the call is a search; None: the tool's name decides.
        remedy: how to record the results, for calls without them.
        perhaps: the key of what may be the output, in a place where the format does not read it.
        may_lack: whether the format may lack the output of single calls: these are unrecorded, and a notice counts them
            instead of an error.
        doc_type: the type of every result (`passage`), if the tool gives it.
        queries: the queries, for a call whose `arguments` do not hold them.
        opened: the documents that it opened, for a call whose `arguments` do not name them, or of a tool that also searches.
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
    perhaps: str = ""
    may_lack: bool = False
    doc_type: str | None = None
    queries: tuple[str, ...] | None = None
    opened: tuple[Any, ...] | None = None

    @property
    def answered(self) -> bool:
        """Whether the log has the outcome of the call."""
        return self.output is not UNANSWERED or self.failed

    def name_called_tool(self, tools: ChosenTools) -> None:
        """Make the call of a proxy a call of the tool named in its arguments; answers must be paired before."""
        if self.is_search is None and (called := tools.find_inner_tool(self.tool, self.arguments)) is not None:
            self.tool, self.arguments = called


class Step(msgspec.Struct, gc=False):
    """One step of the agent: its parallel calls and, if costs are read, its usage."""

    calls: list[ToolCall] = msgspec.field(default_factory=list)
    index: int = 0
    time: str | None = None
    usage: Usage | None = None


class Turn(msgspec.Struct, gc=False):
    """A message of the user, and the steps that the agent took in answer to it.

    Attributes:
        answer, cited: if uses are read, the text of the final answer (None: the log has none) and its structured citations.
        asked: the text that names the question, if it is not `user_text`.
        opens_are_known: whether the log records which documents were opened; None: it does if it has a call that opens one.
        trace_id: the id of the spans' trace, in logs of spans.
    """

    user_text: str = ""
    steps: list[Step] = msgspec.field(default_factory=list)
    index: int = 0
    query_id: str | None = None
    time: str | None = None
    answer: str | None = None
    cited: list[Any] = msgspec.field(default_factory=list)
    asked: str | None = None
    opens_are_known: bool | None = None
    trace_id: str | None = None


class Trace(msgspec.Struct, gc=False):
    """One conversation of one system.

    Attributes:
        turns: at least one.
        query_id: the trace's own; None if it has none.
        tag: the system, if the log names it.
        run: the name of this run among the runs of its system (Inspect's epoch): the column `replicate` of the results.
        number: its position in a file of several traces, from 1; None if the file is one trace.
        record: the object it was read from, for query ids by field path.
        at: the place in the log.
        unknown: the items that the format did not understand. A trace with unknown items and no search is an error.
        iteration: the default unit of an iteration, step or call, if it is not that of the format.
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
    iteration: str | None = None
    outcomes: dict[str, float] | None = None
