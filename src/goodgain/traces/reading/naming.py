"""Chooses the ids of queries and the names of systems, and checks that no two traces share both."""

from __future__ import annotations

from typing import Any

from goodgain.errors import InputError
from goodgain.traces.input.checks import describe, format_place
from goodgain.traces.model import Trace
from goodgain.traces.reading.options import ReadOptions
from goodgain.traces.reading.searches import Query

__all__ = ["QueryNames", "choose_query_id", "name_replicate", "name_system"]

#: The value at a field path that a trace does not have; None is a value that it may have.
_ABSENT = object()


class QueryNames:
    """The system, replicate and id of the queries seen so far, each with the place of its trace."""

    def __init__(self) -> None:
        self._seen: dict[tuple[str | None, str | None, str], str] = {}
        self._by_path = self._by_constant = ""

    def add(self, system: str | None, replicate: str | None, query_id: str, at: str) -> None:
        """Add a query.

        Raises:
            InputError: another query of the run has this id; the error names both places.
        """
        earlier = self._seen.setdefault((system, replicate, query_id), at)
        if earlier is not at:
            of = f" of system {system!r}" if system is not None else ""
            of += f", replicate {replicate!r}," if replicate is not None else ""
            raise InputError(
                f"{format_place(at)}: the query id {query_id!r}{of} stands also in {format_place(earlier)}; "
                "give each trace an id of its own with query_id=, or read the files apart"
            )

    def note_source(self, kind: str, at: str) -> None:
        """Record how an id came from `query_id=`, which may be a field of the traces or a constant, but not both.

        Raises:
            InputError: some traces have that field and others lack it.
        """
        if kind == "path":
            self._by_path = self._by_path or at
        elif kind == "constant":
            self._by_constant = self._by_constant or at
        if self._by_path and self._by_constant:
            raise InputError(
                f"{format_place(self._by_constant)}: has no field that query_id= names, which {format_place(self._by_path)} has; "
                "give the field to every trace, or use a function"
            )


def name_system(trace: Trace, given: str | None, options: ReadOptions) -> str | None:
    """Return the name of a trace's system: the one given with its file, or for all files, or the log's own."""
    return given or (options.tag if options.tag is not None else trace.tag)


def name_replicate(trace: Trace) -> str | None:
    """Return which run of its system a trace belongs to, where the log tells: its format does, or a field `repeat`."""
    if trace.run is not None:
        return trace.run
    repeat = trace.record.get("repeat") if isinstance(trace.record, dict) else None
    is_name = isinstance(repeat, (str, int)) and not isinstance(repeat, bool) and repeat != ""
    return str(repeat) if is_name else None


def choose_query_id(trace: Trace, query: Query, options: ReadOptions, name: str) -> tuple[str, str]:
    """Return a query's id, and its source: own, path, constant, function or name.

    The trace's own comes first, then `query_id=`, then the file's name, with a number in a file of several traces.
    With turns='all' the turn's number follows, unless the turn names its own id.
    """
    if query.own_id is not None:
        return query.own_id, "own"
    if trace.query_id is not None:
        found, kind = trace.query_id, "own"
    elif options.query_id is not None:
        found, kind = _apply_query_id_option(trace, options)
    else:
        found, kind = (name if trace.number is None else f"{name}-{trace.number}"), "name"
    return (f"{found}_{query.turn.index}" if options.turns == "all" else found), kind


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
    if not isinstance(chosen, str) or not chosen:
        raise InputError("query_id= takes a text (a constant or a field path), or a function of a trace")
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
