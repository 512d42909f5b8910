"""Where rows come from, so that an error can name the file and the line of a row, and which rows are left out."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from goodgain.errors import InputError, notice
from goodgain.files.content import Content
from goodgain.files.opening import open_stream
from goodgain.schema import BLANKS, COMMENT

__all__ = [
    "COMMENT_BYTES",
    "WHITE",
    "BadLines",
    "FileLines",
    "FrameRows",
    "RowSource",
    "SkippedRows",
    "TextLines",
    "check_errors_option",
    "number_lines",
    "number_rows",
    "quote",
]

_END = b"\n"
#: White space between the fields of a line of text.
WHITE = BLANKS.encode().replace(_END, b"")
COMMENT_BYTES = COMMENT.encode()
_SHOWN = 200
#: Places of rows left out that a notice shows.
_PLACES = 5


def quote(line: str) -> str:
    """Quote a line for an error: cut at 200 characters, with control characters made visible."""
    text = line if len(line) <= _SHOWN else line[:_SHOWN] + "..."
    return "'" + "".join(c if c.isprintable() else repr(c)[1:-1] for c in text) + "'"


def number_lines(content: Content) -> Iterator[tuple[int, bytes]]:
    """Yield the lines that are not blank, without their ends, each with its number in the file."""
    for number, line in enumerate(content.lines(), start=content.before + 1):
        stripped = line.strip(WHITE + b"\n")
        if stripped:
            yield number, stripped


def number_rows(content: Content) -> Iterator[tuple[int, bytes]]:
    """Yield the lines of TREC text that are rows, as `number_lines` does: those that are neither blank nor comments."""
    for number, line in enumerate(content.lines(), start=content.before + 1):
        if not line.startswith(COMMENT_BYTES) and (stripped := line.strip(WHITE + _END)):
            yield number, stripped


@dataclass(frozen=True)
class FrameRows:
    """Rows of a frame, a dict or an iterable, named by their position.

    Attributes:
        label: what errors call the source.
        rows: the position of each row in the source; None where all rows are there, in order.
        counting: what errors say of how the positions are counted; empty where they are counted from 0.
    """

    label: str
    rows: Sequence[int] | None = None
    counting: str = ""

    def locate(self, row: int, values: dict[str, Any] | None = None) -> str:
        """Name a row by its position."""
        number = self.rows[row] if self.rows is not None else row
        text = f"{self.label}{', ' * bool(self.counting)}{self.counting}, row {number}"
        return f"{text} {quote(str(values))}" if values else text

    def subset(self, kept: Sequence[int]) -> FrameRows:
        """Return the source of these rows alone, by their positions now."""
        return replace(self, rows=kept if self.rows is None else [self.rows[row] for row in kept])


@dataclass(frozen=True)
class TextLines:
    """Rows that are lines of text. A line is found by counting, which takes time only where there is an error.

    Attributes:
        label: what errors call the file.
        content: the text.
        lines: the number of the line of each row; None where every line of TREC text is a row (`number_rows`).
    """

    label: str
    content: Content
    lines: Sequence[int] | None = None

    def locate(self, row: int, values: dict[str, Any] | None = None) -> str:
        """Name the line that became this row, and quote it."""
        numbered = number_rows if self.lines is None else number_lines
        for index, (number, line) in enumerate(numbered(self.content)):
            if (number == self.lines[row]) if self.lines is not None else (index == row):
                return f"{self.label}, line {number}: {quote(line.decode('utf-8', 'replace'))}"
        return f"{self.label}, row {row}"

    def subset(self, kept: Sequence[int]) -> TextLines:
        """Return the source of these rows alone, by their positions now."""
        lines = self.lines if self.lines is not None else [number for number, _ in number_rows(self.content)]
        return TextLines(self.label, self.content, [lines[row] for row in kept])


@dataclass(frozen=True)
class FileLines:
    """Rows that are lines of a text file too large for memory. For an error, the file is read again to its line.

    Attributes:
        path: the file.
        rows: the number of the line of each row.
    """

    path: Path
    rows: Sequence[int]

    @property
    def label(self) -> str:
        """What errors call the source."""
        return str(self.path)

    def locate(self, row: int, values: dict[str, Any] | None = None) -> str:
        """Name the line that became this row, and quote it."""
        with open_stream(self.path) as file:
            line = next(itertools.islice(file, self.rows[row] - 1, None), b"")
        return f"{self.path}, line {self.rows[row]}: {quote(line.strip(WHITE + _END).decode('utf-8', 'replace'))}"

    def subset(self, kept: Sequence[int]) -> FileLines:
        """Return the source of these rows alone, by their positions now."""
        return FileLines(self.path, [self.rows[row] for row in kept])


#: Where the rows of a table come from.
RowSource = FrameRows | TextLines | FileLines


class SkippedRows:
    """Counts the rows that are left out of one source, and keeps the places of the first five."""

    def __init__(self) -> None:
        self.count = 0
        self.places: list[str] = []

    def add(self, place: str) -> None:
        """Count a row, and keep its place if it is among the first."""
        self.count += 1
        if len(self.places) < _PLACES:
            self.places.append(place)

    def report(self, label: str, unit: str = "line") -> None:
        """Give one notice, if anything was left out."""
        if self.count:
            first = "the first: " if self.count > len(self.places) else ""
            notice(
                f"{label}: left out {self.count} bad {unit}{'s' * (self.count != 1)}; {first}{'; '.join(self.places)}"
            )


class BadLines:
    """What happens to the bad lines of a file: the first one raises an error, or all are left out and reported.

    Args:
        label: what errors call the file.
        content: its lines.
        errors: `raise`, or `skip` to leave them out; None where the caller has no such option.
    """

    def __init__(self, label: str, content: Content, errors: str | None) -> None:
        self._label = label
        self._content = content
        self._errors = errors
        self._skipped = SkippedRows()

    def refuse(self, number: int, wrong: str) -> None:
        """Say what is wrong with the line of this number.

        Raises:
            InputError: bad lines are not left out.
        """
        if self._errors != "skip":
            option = "" if self._errors is None else ", or leave such lines out with errors='skip'"
            place = TextLines(self._label, self._content, [number]).locate(0)
            raise InputError(f"{place} {wrong}; correct the line{option}")
        self._skipped.add(f"line {number} ({wrong})")

    def report(self) -> None:
        """Give one notice, if any line was left out."""
        self._skipped.report(self._label)


def check_errors_option(errors: str) -> None:
    """Raise unless the option is `raise` or `skip`."""
    if errors not in ("raise", "skip"):
        raise InputError(f"errors={errors!r} is neither 'raise' nor 'skip'")
