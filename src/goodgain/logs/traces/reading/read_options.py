"""Defines and checks the options that `read_traces` and `convert_traces` share."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from goodgain.errors import InputError
from goodgain.logs.traces.formats import get_format
from goodgain.logs.traces.input.logs_and_archives import base_name
from goodgain.logs.traces.model import Trace
from goodgain.logs.traces.tool_outputs.readers import Parse
from goodgain.logs.traces.tools import ChosenTools, ToolPredicate, make_tool_predicate
from goodgain.options import spell

QueryId = str | Callable[[Trace], str]
#: A table of query ids: by the key of the question, or by the name of the log.
QueryIds = Mapping[bytes | str, str]

_CHOICES: dict[str, tuple[Any, ...]] = {
    "turns": ("last", "searching", "all", "joined"),
    "iteration": (None, "step", "call", "sequential"),
    "order": ("time", "given"),
    "unrecorded": ("raise", "empty", "skip"),
    "errors": ("raise", "skip"),
    **dict.fromkeys(("citations", "reranked", "strict", "costs", "uses"), (True, False)),
}


@dataclass(frozen=True, kw_only=True)
class ReadOptions:
    """How to read traces; the docstring of `read_traces` describes each option."""

    format: str = "auto"
    turns: Literal["last", "searching", "all", "joined"] = "last"
    iteration: Literal["step", "call", "sequential"] | None = None
    tools: ToolPredicate | Collection[str] | str | None = None
    parse: Parse | None = None
    query_id: QueryId | None = None
    query_ids: QueryIds | None = None
    order: Literal["time", "given"] = "time"
    query_text: str | None = None
    citations: bool = False
    unrecorded: Literal["raise", "empty", "skip"] = "raise"
    errors: Literal["raise", "skip"] = "raise"
    reranked: bool = False
    strict: bool = False
    costs: bool = False
    uses: bool = False
    tag: str | None = None
    repeats: bool = False  # set by `read_repeats`: all fields of `REPEATS` name runs, not only the first

    def __post_init__(self) -> None:
        for name, choices in _CHOICES.items():
            value = getattr(self, name)
            if value not in choices:
                allowed = ", ".join(repr(choice) for choice in choices if choice is not None)
                raise InputError(f"{spell(name, value)} is not known; give one of {allowed}")

        if self.format != "auto":
            get_format(self.format)
        if not (self.query_id is None or callable(self.query_id) or (isinstance(self.query_id, str) and self.query_id)):
            raise InputError(f"{spell('query_id')} takes a text (a constant or a field path), or a function of a trace")
        if self.query_text is not None:
            if not (isinstance(self.query_text, str) and self.query_text.startswith("/")):
                option = spell("query_text", self.query_text)
                raise InputError(f"{option}: give the path of a field, such as /task/question")
            if self.turns == "all":
                conflict = f"with {spell('turns', 'all')} each turn has its own question"
                raise InputError(
                    f"{spell('query_text')} reads one question per trace, but {conflict}; omit either option"
                )

        if self.parse is not None and not callable(self.parse):
            raise InputError("parse= takes None, or a function that returns the results in a tool's output")
        if self.tag is not None and not isinstance(self.tag, str):
            raise InputError(f"{spell('tag')} takes the name of the system as text, or None")
        self.tool_rule  # noqa: B018  # checks `tools`

    @cached_property
    def tool_rule(self) -> ChosenTools:
        """A predicate made from `tools`: it decides by a tool's name whether the tool searches or opens documents."""
        return make_tool_predicate(self.tools)

    @cached_property
    def ids_of_several_logs(self) -> frozenset[str]:
        """The query ids that the table `query_ids` gives to several logs. Empty with turns='all', because each turn is a query."""
        ids = self.query_ids or {}
        logs = {(base_name(Path(key)), query_id) for key, query_id in ids.items() if isinstance(key, str)}
        counts = Counter(query_id for _, query_id in logs if self.turns != "all")
        return frozenset(query_id for query_id, count in counts.items() if count > 1)

    @property
    def opens_named(self) -> bool:
        """Whether `tools` names a tool that opens documents. If so, a log that never calls it has 0 opened documents, not null."""
        return "open" in self.tool_rule.decisions.values()

    @property
    def choices(self) -> list[str]:
        """The options that affect results and differ from their defaults, as text for the summary."""
        return [
            spell(field.name, getattr(self, field.name))
            for field in fields(self)
            if field.name in ("turns", "iteration", "order", "citations", "unrecorded", "errors", "reranked", "tools")
            and getattr(self, field.name) != field.default
        ]


def check_option_names(function: str, names: Iterable[str]) -> None:
    """Raise `TypeError` for a name that is not an option of reading, as Python does for a function without `**options`."""
    options = {field.name for field in fields(ReadOptions)}
    for name in names:
        if name not in options:
            raise TypeError(f"{function}() got an unexpected keyword argument {name!r}")
