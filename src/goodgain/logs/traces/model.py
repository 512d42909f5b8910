"""The common model of all trace formats: Trace > Turn > Step > call > Result.

A format yields traces whose steps hold `ToolCall`s with raw output. `reading/queries_and_costs.py` turns the calls of search
tools into `SearchCall`s.

The classes are msgspec structs, because structs take less time to create than named tuples and dataclasses. The structs never
form reference cycles. Therefore the garbage collector can ignore them (`gc=False`), and a conversion takes 10 % less time.
"""

import json
from typing import Any, Literal

import msgspec

from goodgain.logs.traces.expected_values import format_place
from goodgain.logs.traces.tools import ChosenTools, extract_queries, split_arguments

#: The status of a search. `unparsed`: no reader could read the output. `unrecorded`: the log lacks the output.
Status = Literal["ok", "empty", "error", "unparsed", "unrecorded"]

#: name -> value, in the order found.
Pairs = tuple[tuple[str, str], ...]


class UnknownItem(msgspec.Struct, frozen=True, gc=False):
    """An item in a log that a format does not understand."""

    what: str  # the kind of item; items with equal text are counted together
    at: str  # the place in the log
    expected: str = ""  # what the format expects at this place

    def __str__(self) -> str:
        expected = f" (expected: {self.expected})" if self.expected else ""
        return f"{format_place(self.at)}: {self.what} is not understood{expected}"


class Usage(msgspec.Struct, frozen=True, gc=False):
    """The recorded usage of one or more model calls. `cost` is in the currency that the log uses."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    seconds: float | None = None
    cost: float | None = None
    cached_tokens: int | None = None  # of `input_tokens`, read from a cache
    reasoning_tokens: int | None = None  # of `output_tokens`


#: The output of a call whose output is not in the log. None is an output.
UNANSWERED = msgspec.UNSET


class Result(msgspec.Struct, frozen=True, gc=False):
    """One result of a search call. `rank` counts from 1 in each call."""

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
    """One search with its status and ranked results. `asked` holds the queries, or arguments that contain the queries.

    `arguments` holds the arguments of the call, as far as the log has them.
    """

    status: Status
    results: tuple[Result, ...] = ()
    asked: Any = ()
    call_id: str | None = None
    arguments: Any = None

    @property
    def queries(self) -> tuple[str, ...]:
        """The queries of the call. They are extracted only on demand, because most conversions do not need them."""
        return extract_queries(self.asked)

    def describe(self) -> tuple[str | None, str | None]:
        """Return the queries as one text, and all other arguments as JSON with sorted keys. None stands for none."""
        queries, further_arguments = split_arguments(self.arguments)
        if self.asked is not self.arguments:
            queries = self.queries
        text = "; ".join(queries) or None
        if not further_arguments:
            return text, None
        return text, json.dumps(further_arguments, sort_keys=True, ensure_ascii=False, default=str)


class ToolCall(msgspec.Struct, gc=False):
    """A tool call in a log. The object is mutable, because logs record the output of a call later than the call."""

    tool: str  # the tool's name, as the log spells it
    at: str  # the place in the log
    call_id: str | None = None
    arguments: Any = None  # an object, or JSON text
    output: Any = UNANSWERED  # of any shape
    spare: Any = UNANSWERED  # a second form of the output, read if no results can be read from `output`
    failed: bool = False  # whether the log says so
    is_search: bool | None = None  # None: the tool's name decides
    remedy: str = ""  # how to record the results, for calls without them
    perhaps: str = ""  # a key that the format does not read, and that may hold the output
    may_lack: bool = False  # a missing output is a notice, not an error
    doc_type: str | None = None  # the type of every result (`passage`), if the tool gives it
    queries: tuple[str, ...] | None = None  # if `arguments` do not hold the queries
    #: The opened documents, if `arguments` do not name them or the tool also searches.
    opened: tuple[Any, ...] | None = None

    @property
    def answered(self) -> bool:
        return self.output is not UNANSWERED or self.failed

    def name_called_tool(self, tools: ChosenTools) -> None:
        """Replace a proxy (a tool that calls another tool) with the called tool. Use this after calls and outputs are paired."""
        if self.is_search is None and (called := tools.find_inner_tool(self.tool, self.arguments)) is not None:
            self.tool, self.arguments = called


class Step(msgspec.Struct, gc=False):
    """One step of the agent: its parallel calls, and its usage if the option `costs` is set."""

    calls: list[ToolCall] = msgspec.field(default_factory=list)
    index: int = 0
    time: str | None = None
    usage: Usage | None = None
    is_beside: bool = False  # it was made for results that lie beside the conversation


class Turn(msgspec.Struct, gc=False):
    """A message of the user, and the agent's steps in response."""

    user_text: str = ""
    steps: list[Step] = msgspec.field(default_factory=list)
    index: int = 0
    query_id: str | None = None
    time: str | None = None
    answer: str | None = None  # the text of the final answer, if uses are read and the log has it
    cited: list[Any] = msgspec.field(default_factory=list)  # the structured citations of the answer
    asked: str | None = None  # the question, if it is not `user_text`
    #: Whether the log records which documents were opened. None: only if some call opens a document.
    opens_are_known: bool | None = None
    trace_id: str | None = None  # in logs of spans

    @property
    def calls(self) -> list[ToolCall]:
        return [call for step in self.steps for call in step.calls]


class Holder(msgspec.Struct, frozen=True, gc=False):
    """An object of a log, such as a message, with its place in the conversation. It may hold results beside the calls."""

    value: Any
    at: str
    turn: int  # the number of turns begun when the object was read
    step: Step | None = None  # the step that the object belongs to
    is_state: bool = False  # a record, request or response, which may repeat lists of earlier objects


class Trace(msgspec.Struct, gc=False):
    """One conversation of one system."""

    turns: list[Turn]  # at least one
    at: str  # the place in the log
    query_id: str | None = None
    session_id: str | None = None
    tag: str | None = None  # the system, if the log names it
    models: tuple[str, ...] = ()  # the models that answered; empty: `tag` is the model, if the log names it
    run: str | None = None  # the name of the run, if the system has several (Inspect's epoch): `replicate` in results
    number: int | None = None  # the position in a file of several traces, from 1; None if the file is one trace
    record: Any = None  # the object that the trace was read from, for query ids by field path
    unknown: tuple[UnknownItem, ...] = ()  # a trace with unknown items and no search is an error
    iteration: str | None = None  # the unit of an iteration (step or call), if it differs from the format's default
    outcomes: dict[str, float] | None = None  # scores, rewards and feedback, where `record` does not hold them
    holders: list[Holder] = msgspec.field(default_factory=list)  # objects that were read and may hold results
