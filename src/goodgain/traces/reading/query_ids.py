"""Chooses the ids of queries and the names of systems, and checks that no two traces share both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from goodgain.errors import InputError
from goodgain.traces.expected_values import describe, format_place
from goodgain.traces.model import Trace
from goodgain.traces.reading.query_joining import EARLIER, NamedQuery, Question, join_queries
from goodgain.traces.reading.read_options import ReadOptions
from goodgain.traces.reading.trace_queries import Query
from goodgain.traces.reading_summary import RunName, Summary

#: The value at a field path that a trace does not have; None is a value that it may have.
_ABSENT = object()


class QueryNames:
    """The queries read so far, by their run and id.

    Args:
        earlier: the queries of an earlier conversion, whose ids come first.
        earlier_at: where they stand.
    """

    def __init__(self, earlier: Mapping[str, Question] | None = None, earlier_at: str = "") -> None:
        self._seen: dict[tuple[RunName, str], NamedQuery] = {}
        self._by_path = self._by_constant = ""
        for query_id, question in (earlier or {}).items():
            self.add(NamedQuery(EARLIER, query_id, earlier_at, "own", question))

    def add(self, query: NamedQuery) -> None:
        """Add a query.

        Raises:
            InputError: another query of the run has this id; or `query_id=` is a field of some traces, and a constant for
                others. The error names both places.
        """
        earlier = self._seen.setdefault((query.run, query.query_id), query)
        if earlier is not query:
            system, replicate = query.run
            of = f" of system {system!r}" if system is not None else ""
            of += f", replicate {replicate!r}," if replicate is not None else ""
            raise InputError(
                f"{format_place(query.at)}: the query id {query.query_id!r}{of} stands also in {format_place(earlier.at)}; "
                "give each trace an id of its own with query_id=, or read the files apart"
            )
        if query.source == "path":
            self._by_path = self._by_path or query.at
        elif query.source == "constant":
            self._by_constant = self._by_constant or query.at
        if self._by_path and self._by_constant:
            raise InputError(
                f"{format_place(self._by_constant)}: has no field that query_id= names, which {format_place(self._by_path)} has; "
                "give the field to every trace, or use a function"
            )

    def join(self, options: ReadOptions, summary: Summary) -> dict[str, str]:
        """Return the new ids of queries of several runs that are the same, after all are read, and count them.

        Raises:
            InputError: ids and questions contradict each other.
        """
        for query in self._seen.values():
            if query.source == "ignored":
                summary.own_ids += 1
                summary.first_own_id = summary.first_own_id or query.query_id
            if options.query_ids is not None and query.source != "table" and query.run != EARLIER:
                summary.count_unnamed(query.query_id)
        return join_queries(self._seen.values(), summary)


def name_run(trace: Trace, system: str | None, options: ReadOptions) -> RunName:
    """Return the run of a trace: its system as given with its file, for all files, or by the log; and its replicate.

    The replicate is what the format says, or a field `repeat`.
    """
    system = system or (options.tag if options.tag is not None else trace.tag)
    if trace.run is not None:
        return RunName(system, trace.run)
    repeat = trace.record.get("repeat") if isinstance(trace.record, dict) else None
    is_name = isinstance(repeat, (str, int)) and not isinstance(repeat, bool) and repeat != ""
    return RunName(system, str(repeat) if is_name else None)


def name_queries(
    trace: Trace, queries: Sequence[Query], run: RunName, options: ReadOptions, name: str
) -> list[NamedQuery]:
    """Return the queries of a trace with their ids.

    The table `query_ids=` comes first, then the trace's own id, then `query_id=`, then the file's name, with a number in a
    file of several traces. With turns='all' the turn's number follows, unless the turn names its own id.
    """
    of_turns = Question.of_turns(turn.user_text for turn in trace.turns)
    questions = {turn.index: question for turn, question in zip(trace.turns, of_turns, strict=True)}
    named = []
    for query in queries:
        question = questions[query.turn.index]
        query_id, source = _choose_query_id(trace, query, question, options, name)
        named.append(NamedQuery(run, query_id, trace.at, source, question))
    return named


def _choose_query_id(
    trace: Trace, query: Query, question: Question, options: ReadOptions, name: str
) -> tuple[str, str]:
    """Return a query's id and its source."""
    log = name if trace.number is None else f"{name}-{trace.number}"
    number = f"_{query.turn.index}" if options.turns == "all" else ""
    if (table := options.query_ids) is not None:
        if (query_id := table.get(question.key) or table.get(query.own_id or "")) is not None:
            return query_id, "table"
        for known in (trace.query_id, log, name, trace.session_id):
            if known is not None and known in table:
                return table[known] + number, "table"
    if (own := trace.query_id if query.own_id is None else query.own_id) is not None:
        return own + number * (query.own_id is None), "own" if _agrees(own, trace, options) else "ignored"
    if options.query_id is not None:
        query_id, source = _apply_query_id_option(trace, options)
        return query_id + number, source
    return log + number, "name"


def _agrees(own: str, trace: Trace, options: ReadOptions) -> bool:
    """Tell whether a log's own id is what `query_id=` says, too. What a function would say is not asked."""
    chosen = options.query_id
    if not isinstance(chosen, str):
        return chosen is None
    value = _follow_path(trace.record, chosen)
    return own == (chosen if value is _ABSENT else str(value))


def _apply_query_id_option(trace: Trace, options: ReadOptions) -> tuple[str, str]:
    chosen = options.query_id
    if callable(chosen):
        try:
            value = chosen(trace)
        except Exception as error:
            raise InputError(
                f"{format_place(trace.at)}: query_id= failed with {type(error).__name__} ({error})"
            ) from error
        return _check_id(value, trace, "query_id= gave"), "function"
    chosen = str(chosen)
    value = _follow_path(trace.record, chosen)
    if value is not _ABSENT:
        return _check_id(value, trace, f"{chosen} holds"), "path"
    if chosen.startswith("/"):
        raise InputError(
            f"{format_place(trace.at)}: has no field {chosen} for the query id; give another path, or a function"
        )
    return chosen, "constant"


def _check_id(value: Any, trace: Trace, what: str) -> str:
    if isinstance(value, bool) or not isinstance(value, (str, int)) or value == "":
        raise InputError(
            f"{format_place(trace.at)}: {what} {describe(value)}, which is not a query id; give text or a whole number"
        )
    return str(value)


def _follow_path(record: Any, path: str) -> Any:
    """Return the value at a JSON pointer or a path of names with dots."""
    keys = path.removeprefix("/").split("/") if path.startswith("/") else path.split(".")
    for key in keys:
        key = key.replace("~1", "/").replace("~0", "~")
        if isinstance(record, dict) and key in record:
            record = record[key]
        elif isinstance(record, list) and key.isdecimal() and int(key) < len(record):
            record = record[int(key)]
        else:
            return _ABSENT
    return record
