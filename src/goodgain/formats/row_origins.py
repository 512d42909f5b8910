"""Where a row came from, so that an error can name the file and the line."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from goodgain.files.content import Content
from goodgain.files.opening import open_stream

__all__ = ["WHITE", "FileLines", "FrameRows", "RowSource", "TextLines", "number_lines", "quote"]

#: White space between the fields of a text file, as C's isspace has it.
WHITE = b" \t\r\v\f"
_END = b"\n"
_SHOWN = 200


def quote(line: str) -> str:
    """A line as errors show it: cut at 200 characters, control characters made visible."""
    text = line if len(line) <= _SHOWN else line[:_SHOWN] + "..."
    return "'" + "".join(c if c.isprintable() else repr(c)[1:-1] for c in text) + "'"


def number_lines(content: Content) -> Iterator[tuple[int, bytes]]:
    """The lines that are not blank, without their ends, each with its number in the file."""
    for number, line in enumerate(content.lines(), start=content.before + 1):
        stripped = line.strip(WHITE + b"\n")
        if stripped:
            yield number, stripped


@dataclass(frozen=True)
class FrameRows:
    """The rows of a frame, a dict or an iterable: named by their position."""

    label: str
    rows: Sequence[int] | None = None

    def locate(self, row: int, values: dict[str, Any] | None = None) -> str:
        """Name a row, counted from 0."""
        number = self.rows[row] if self.rows is not None else row
        text = f"{self.label}, row {number}"
        return f"{text} {quote(str(values))}" if values else text

    def subset(self, kept: Sequence[int]) -> FrameRows:
        """The same source after all but these rows were left out."""
        return FrameRows(self.label, kept if self.rows is None else [self.rows[row] for row in kept])


@dataclass(frozen=True)
class TextLines:
    """The lines of a text file; found again by counting, which only errors pay for."""

    label: str
    content: Content
    lines: Sequence[int] | None = None

    def locate(self, row: int, values: dict[str, Any] | None = None) -> str:
        """Name the line that became this row, and quote it."""
        for index, (number, line) in enumerate(number_lines(self.content)):
            if (number == self.lines[row]) if self.lines is not None else (index == row):
                return f"{self.label}, line {number}: {quote(line.decode('utf-8', 'replace'))}"
        return f"{self.label}, row {row}"

    def subset(self, kept: Sequence[int]) -> TextLines:
        """The same source after all but these rows were left out."""
        lines = self.lines if self.lines is not None else [number for number, _ in number_lines(self.content)]
        return TextLines(self.label, self.content, [lines[row] for row in kept])


@dataclass(frozen=True)
class FileLines:
    """Some lines of a text file that is too large to be held; found again by reading it, which only errors pay for."""

    path: Path
    rows: Sequence[int]

    @property
    def label(self) -> str:
        """What the source is called."""
        return str(self.path)

    def locate(self, row: int, values: dict[str, Any] | None = None) -> str:
        """Name the line that became this row, and quote it."""
        with open_stream(self.path) as file:
            line = next(itertools.islice(file, self.rows[row] - 1, None), b"")
        return f"{self.path}, line {self.rows[row]}: {quote(line.strip(WHITE + _END).decode('utf-8', 'replace'))}"

    def subset(self, kept: Sequence[int]) -> FileLines:
        """The same source after all but these rows were left out."""
        return FileLines(self.path, [self.rows[row] for row in kept])


RowSource = FrameRows | TextLines | FileLines
