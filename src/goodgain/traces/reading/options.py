"""The options of read_traces and convert_traces, checked once."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, fields
from typing import Any, Literal

from goodgain.errors import InputError
from goodgain.traces.model import Trace
from goodgain.traces.reading.known_formats import get_format
from goodgain.traces.reading.query_joining import QueryIds
from goodgain.traces.tool_outputs.readers import Parse
from goodgain.traces.tools import ToolPredicate, make_tool_predicate

__all__ = ["QueryId", "ReadOptions"]

QueryId = str | Callable[[Trace], str]

_CHOICES: dict[str, tuple[Any, ...]] = {
    "turns": ("last", "searching", "all"),
    "iteration": (None, "step", "call"),
    "unrecorded": ("raise", "empty", "skip"),
    "errors": ("raise", "skip"),
    "citations": (True, False),
    "reranked": (True, False),
    "strict": (True, False),
    "costs": (True, False),
}


@dataclass(frozen=True, kw_only=True)
class ReadOptions:
    """How to read traces.

    Attributes:
        format: a format's name, or auto: found from the file's beginning.
        turns: last: only the last turn of each trace is a query; searching: the last turn that searched (the last turn
            of all if none did); all: each turn is one.
        iteration: step: the calls of a step are one iteration; call: each call is one; None: the best that the format records.
        tools: the tools that are searches: a function of the name, names, or None for the rule in docs/traces.
        parse: reads outputs that the built-in readers cannot, or get wrong: output -> results, or None.
        query_id: for traces without one: a constant, a field path (`/metadata/qid`, `metadata.qid`), or a function of
            the trace.
        query_ids: the table of ids that comes before all other ids.
        citations: count citations of answers as results where a search's own results are not recorded.
        unrecorded: how to treat a search whose results the log lacks: raise, empty (it found nothing), skip (its
            iteration is left out).
        errors: raise, or skip traces that cannot be read, with a notice.
        reranked: a reranker's list replaces its retriever's.
        strict: what is not understood in a trace is an error, also where its queries have searches.
        costs: read what each iteration cost too.
        tag: the name of the system; None: the log's own, if it names one.
    """

    format: str = "auto"
    turns: Literal["last", "searching", "all"] = "last"
    iteration: Literal["step", "call"] | None = None
    tools: ToolPredicate | Collection[str] | str | None = None
    parse: Parse | None = None
    query_id: QueryId | None = None
    query_ids: QueryIds | None = None
    citations: bool = False
    unrecorded: Literal["raise", "empty", "skip"] = "raise"
    errors: Literal["raise", "skip"] = "raise"
    reranked: bool = False
    strict: bool = False
    costs: bool = False
    tag: str | None = None

    def __post_init__(self) -> None:
        for name, choices in _CHOICES.items():
            value = getattr(self, name)
            if value not in choices:
                allowed = ", ".join(repr(choice) for choice in choices if choice is not None)
                raise InputError(f"{name}={value!r} is not known; say {allowed}")
        if self.format != "auto":
            get_format(self.format)
        if self.parse is not None and not callable(self.parse):
            raise InputError("parse= takes a function of a tool's output that gives its results, or None")
        make_tool_predicate(self.tools)

    @property
    def is_search_tool(self) -> ToolPredicate:
        """The predicate for `tools`."""
        return make_tool_predicate(self.tools)

    @property
    def choices(self) -> list[str]:
        """The options set by the caller that change numbers, for the summary and the signature of results."""
        return [
            f"{field.name}={getattr(self, field.name)!r}"
            for field in fields(self)
            if field.name in ("turns", "iteration", "citations", "unrecorded", "errors", "reranked", "tools")
            and getattr(self, field.name) != field.default
        ]
