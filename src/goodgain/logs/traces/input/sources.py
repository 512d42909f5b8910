"""Yields the JSON documents in a file of traces one by one, each with its place in the file."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from itertools import count
from pathlib import Path
from typing import Any

from goodgain.errors import InputError
from goodgain.files.json_text import NotJSONError, loads, loads_exactly
from goodgain.files.opening import BOM
from goodgain.logs.traces.expected_values import find_id, find_record_id, format_place
from goodgain.logs.traces.input.file_head import (
    FileHead,
    count_values,
    has_too_many_values,
    parse_members,
    parse_prefix,
    parse_python,
)
from goodgain.logs.traces.input.logs_and_archives import Opener, base_name, read_at_most, read_rows
from goodgain.logs.traces.model import ToolCall, Trace, UnknownItem
from goodgain.logs.traces.reading_summary import Summary
from goodgain.logs.traces.tools import BY_NAME, ChosenTools
from goodgain.options import spell

#: Ids of 128 bits, as the exporters of some SDKs write them.
_LONG_IDS = re.compile(rb'"trace_?[iI]d"\s*:\s*[0-9]{20}')

#: Limits against malicious files: the bytes of a document, and of a line or text.
_MAX_BYTES = 1 << 30
_MAX_PIECE = 1 << 28
#: A limit against malicious files: how many unknown items of a trace are kept.
_MAX_UNKNOWN = 1000

#: Makes a trace from a value and its place.
ReadTrace = Callable[[Any, str], Trace]


@dataclass
class Source:
    """A file of traces for a format to read. `citations`, `reranked`, `costs` and `uses` are the options of `read_traces`."""

    path: Path
    head: FileHead
    summary: Summary  # counts what is left out
    open: Opener
    citations: bool = False
    reranked: bool = False
    costs: bool = False
    uses: bool = False
    skip: bool = False  # leave out traces that cannot be read
    is_search: ChosenTools = BY_NAME
    inside: str = ""  # the place of the value that is read, if it is a part of the file
    iteration: str | None = None  # the option `iteration`
    query_path: str = ""  # the option `query_id` if it is text: the path or name of a field, or a constant
    number: int = field(default=1, init=False)  # of the next trace
    bytes_read: int = field(default=0, init=False)  # of lines
    _values: int = field(default=0, init=False)
    _unknown: list[UnknownItem] = field(default_factory=list, init=False)

    def is_tool(self, name: str) -> bool:
        """Return whether the tool `name` searches or, if the option `uses` is set, opens documents."""
        return self.is_search(name) or (self.uses and self.is_search.opens(name))

    def counts_as_search(self, call: ToolCall) -> bool:
        """Return whether a call is a search: the format says so or, if it does not decide, the name of the tool."""
        return self.is_search(call.tool) if call.is_search is None else call.is_search

    @cached_property
    def name(self) -> str:
        """The file's name without endings, for query ids."""
        return base_name(self.path)

    def documents(
        self, *, are_traces: Callable[[list[Any]], bool] = lambda members: False
    ) -> Iterator[tuple[Any, str]]:
        """Yield the JSON values in the file, each with its place: one value for JSON, one value per line for JSON Lines.

        Lines that are messages of one conversation form one list. With errors='skip', a list that was cut off is yielded
        with its complete members, if `are_traces` accepts these members.
        """
        if self.head.lines_are_messages:
            yield [value for value, _ in self._read_lines()], f"{self.path}, its lines as a list, at "
            return
        if self.head.kind == "jsonl":
            yield from self._read_lines()
            return
        if self.head.kind == "table":
            yield read_rows(self.path), f"{self.path}, its rows as a list, at "
            return

        content = self.bytes()
        self._check_values(content, len(content))
        try:
            value = _parse(content)
        except NotJSONError as error:
            value = parse_python(content)
            if value is None:
                value = self._read_members(content, error, are_traces)
        yield value, f"{self.path}, at {self.inside}"

    def _read_members(self, content: bytes, error: NotJSONError, are_traces: Callable[[list[Any]], bool]) -> list[Any]:
        """Return the complete members of a list that was cut off, with errors='skip'. Otherwise raise `InputError`."""
        in_lines = "write each of its JSON values on one line (jq -c .)"
        remedy = in_lines if self.head.is_sequence else "was it cut off?"
        cut = InputError(f"{self.path}: is not valid JSON ({error}); {remedy}")
        *members, last = parse_members(content) if self.skip else [None]
        if not (members and are_traces(members)):
            raise cut from None
        self._raise_or_skip(cut, self._name_lost(last, len(members) + 1))
        return members

    def _read_lines(self) -> Iterator[tuple[Any, str]]:
        """Yield the value of each line of JSON Lines, with its place.

        With errors='skip', count lines that are not JSON and go on.
        """
        with self.open() as file:
            for number in count(1):
                line = file.readline(_MAX_PIECE)
                if not line:
                    break
                self.bytes_read += len(line)
                at = f"{self.path}, line {number}, at "
                if len(line) >= _MAX_PIECE:
                    raise InputError(f"{format_place(at)}: the line is longer than 256 MiB; write one trace per line")
                if line.isspace():
                    continue

                self._check_values(line, self.bytes_read)
                try:
                    value = _parse(line.removeprefix(BOM) if number == 1 else line)
                except NotJSONError as error:
                    cut = InputError(
                        f"{format_place(at)}: is not JSON ({error}); was the file cut off there? "
                        f"{spell('errors', 'skip')} leaves the line out."
                    )
                    self._raise_or_skip(cut, self._name_lost(parse_prefix(line, whole=False), self.number))
                    self.number += 1  # later traces keep their numbers
                    continue
                yield value, at

    def _check_values(self, text: bytes, size: int) -> None:
        self._values += count_values(text)
        if has_too_many_values(self._values, size):
            raise InputError(
                f"{self.path}: has {self._values:,} lists and objects in {size >> 20:,} MiB, more than any known log; "
                "leave the file out, or export the log again"
            )

    def bytes(self) -> bytes:
        """Return the unpacked content of the file without a byte order mark. Raise an InputError if it is over 1 GiB."""
        with self.open() as file:
            content = read_at_most(file, _MAX_BYTES + 1)
        if len(content) > _MAX_BYTES:
            raise InputError(f"{self.path}: is over 1 GiB and must be read whole; write its traces as JSON Lines")
        return content.removeprefix(BOM)

    def text(self) -> str:
        content = self.bytes()
        if len(content) > _MAX_PIECE:
            raise InputError(f"{self.path}: has more than 256 MiB of text; write its traces to several files")
        try:
            return content.decode()
        except UnicodeDecodeError as error:
            raise InputError(f"{self.path}: is not UTF-8 text at byte {error.start}; write it as UTF-8") from None

    def traces(self, read: ReadTrace, *, is_one: Callable[[Any], bool]) -> Iterator[Trace]:
        """Yield the traces of a file. Traces in a list or in JSON Lines are numbered.

        `read` makes a trace from a value and its place. `is_one` returns whether a value is one trace, not a list of traces.
        """
        for value, at in self.documents(are_traces=lambda members: not is_one(members)):
            if self.head.kind == "jsonl" and not self.head.lines_are_messages:
                yield from self.read_numbered(read, value, at)
            elif isinstance(value, list) and not is_one(value):
                for index, member in enumerate(value):
                    yield from self.read_numbered(read, member, f"{at}/{index}")
            else:
                yield from self._read_trace(read, value, at)

    def read_numbered(self, read: ReadTrace, value: Any, at: str) -> Iterator[Trace]:
        """Make a trace from a value, and yield it with its number in the file. A trace that is skipped has a number too."""
        number = self.number
        self.number += 1
        for trace in self._read_trace(read, value, at, number):
            trace.number = number
            yield trace

    def _read_trace(self, read: ReadTrace, value: Any, at: str, number: int | None = None) -> Iterator[Trace]:
        lost_query = self._name_lost(value, number) if self.skip else None
        with self.handle_errors(lost_query):
            yield read(value, at)

    @contextmanager
    def handle_errors(self, query_id: str | None = None) -> Iterator[None]:
        """With errors='skip', count an InputError and record the lost query's id. With another setting, raise the error."""
        try:
            yield
        except InputError as error:
            if self._unknown:  # the likely cause
                first = self._unknown[0]
                error = InputError(f"{error} (earlier, at {format_place(first.at)}: {first.what} is not understood)")
            self._raise_or_skip(error, query_id)

    def _raise_or_skip(self, error: InputError, query_id: str | None) -> None:
        if not self.skip:
            raise error
        self._unknown.clear()  # they belong to the trace that is left out
        self.summary.count_error(error, query_id)

    def _name_lost(self, value: Any, number: int | None) -> str | None:
        """Return the query id of a skipped record: its own id; else the file's name if records of this file have no ids."""
        own_id = find_id(value) or find_record_id(value)
        if own_id:
            return own_id
        first = next(iter(self.head.objects), None)
        if find_id(first) or find_record_id(first):
            return None
        return self.name if number is None else f"{self.name}-{number}"

    def not_understood(self, what: str, at: str = "", expected: str = "") -> None:
        """Record an item of an unknown kind, or an unread field, as an `UnknownItem` of the current trace."""
        if len(self._unknown) < _MAX_UNKNOWN:
            self._unknown.append(UnknownItem(what, at or f"{self.path}, at ", expected))

    def take_unknown(self) -> tuple[UnknownItem, ...]:
        """Return and reset the unknown items that were recorded while the last trace was read."""
        items = tuple(self._unknown)
        self._unknown = []
        return items


def _parse(text: bytes) -> Any:
    """Parse JSON. Keep all digits of integer trace ids, even beyond the precision of a float."""
    return loads_exactly(text) if b'"trace' in text and _LONG_IDS.search(text) else loads(text)
