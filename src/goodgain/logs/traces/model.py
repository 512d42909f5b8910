"""The common model of all trace formats: Trace > Turn > Step > call > Result.

A format (one file each) yields traces whose steps hold `ToolCall`s with raw output; `reading/queries_and_costs.py` makes
`SearchCall`s of those that searched.

The classes are msgspec structs, because every result is one: named tuples and dataclasses take longer to create. They
never form cycles, so the garbage collector need not track them (`gc=False`), which saves a tenth of the time.
"""

from typing import Any, Literal

import msgspec

from goodgain.logs.traces.expected_values import format_place
from goodgain.logs.traces.tools import ChosenTools, extract_queries

#: The outcome of a search. `unparsed`: no reader could read its output; `unrecorded`: the log lacks its output.
Status = Literal["ok", "empty", "error", "unparsed", "unrecorded"]

#: name -> value, in the order found.
Pairs = tuple[tuple[str, str], ...]


class UnknownItem(msgspec.Struct, frozen=True, gc=False):
    """An item in a log that a format does not understand."""

    what: str  # its kind, in the same words for all items of this kind, which are counted by it
    at: str  # its place
    expected: str = ""  # what the format has in its place

    def __str__(self) -> str:
        expected = f" (expected: {self.expected})" if self.expected else ""
        return f"{format_place(self.at)}: {self.what} is not understood{expected}"


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
    """One search: its status, its results in order, and its queries or the call's arguments (`asked`)."""

    status: Status
    results: tuple[Result, ...] = ()
    asked: Any = ()
    call_id: str | None = None

    @property
    def queries(self) -> tuple[str, ...]:
        """The queries of the call, found on demand: most runs do not need them."""
        return extract_queries(self.asked)


class ToolCall(msgspec.Struct, gc=False):
    """A call in a log. The answer comes later in the log, so the class is mutable."""

    tool: str  # the tool's name, as the log spells it
    at: str  # the place in the log
    call_id: str | None = None
    arguments: Any = None  # an object, or JSON text
    output: Any = UNANSWERED  # what the tool returned, in whatever shape
    spare: Any = UNANSWERED  # a second form of the output, read if `output` cannot be
    failed: bool = False  # by the log
    is_search: bool | None = None  # None: the tool's name decides
    remedy: str = ""  # how to record the results, for calls without them
    perhaps: str = ""  # the key of what may be the output, in a place where the format does not read it
    may_lack: bool = False  # single calls may lack their output: a notice counts them instead of an error
    doc_type: str | None = None  # the type of every result (`passage`), if the tool gives it
    queries: tuple[str, ...] | None = None  # for a call whose `arguments` do not hold them
    #: The opened documents, for a call whose `arguments` do not name them, or of a tool that also searches.
    opened: tuple[Any, ...] | None = None

    @property
    def answered(self) -> bool:
        return self.output is not UNANSWERED or self.failed

    def name_called_tool(self, tools: ChosenTools) -> None:
        """Make the call of a proxy a call of the tool that the arguments name. Pair the answers with their calls before."""
        if self.is_search is None and (called := tools.find_inner_tool(self.tool, self.arguments)) is not None:
            self.tool, self.arguments = called


class Step(msgspec.Struct, gc=False):
    """One step of the agent: its parallel calls and, if costs are read, its usage."""

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
    answer: str | None = None  # the text of the final answer, if uses are read and the log has it
    cited: list[Any] = msgspec.field(default_factory=list)  # the structured citations of the answer
    asked: str | None = None  # the text that names the question, if it is not `user_text`
    #: Whether the log records which documents were opened; None: it does if it has a call that opens one.
    opens_are_known: bool | None = None
    trace_id: str | None = None  # in logs of spans

    @property
    def calls(self) -> list[ToolCall]:
        return [call for step in self.steps for call in step.calls]


class Trace(msgspec.Struct, gc=False):
    """One conversation of one system."""

    turns: list[Turn]  # at least one
    at: str  # the place in the log
    query_id: str | None = None  # the trace's own
    session_id: str | None = None
    tag: str | None = None  # the system, if the log names it
    run: str | None = None  # the name among the runs of the system (Inspect's epoch): `replicate` of the results
    number: int | None = None  # the position in a file of several traces, from 1; None if the file is one trace
    record: Any = None  # the object that the trace was read from, for query ids by field path
    unknown: tuple[UnknownItem, ...] = ()  # a trace with unknown items and no search is an error
    iteration: str | None = None  # the default unit of an iteration, step or call, if it is not that of the format
    outcomes: dict[str, float] | None = None  # scores, rewards and feedback, where `record` does not hold them
