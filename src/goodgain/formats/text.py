"""Text with fields between white space, read into columns: fast where lines are clean, else line by line."""

from __future__ import annotations

import math
import mmap
import re
from dataclasses import dataclass
from typing import Any

import polars as pl

from goodgain.errors import InputError
from goodgain.files.content import Content
from goodgain.formats.row_origins import WHITE, TextLines, number_lines, quote
from goodgain.formats.skipped import SkippedRows

__all__ = ["QRELS_TEXT", "RUN_TEXT", "TextTable", "read_text", "separator_of"]

_BOM = b"\xef\xbb\xbf"
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)


@dataclass(frozen=True)
class TextTable:
    """A kind of text file: its `fields` in order, and `numbers`, those of them that must be finite numbers."""

    name: str
    fields: tuple[str, ...]
    numbers: frozenset[str]

    def other(self) -> TextTable:
        """Return the other kind, which people give by mistake."""
        return QRELS_TEXT if self is RUN_TEXT else RUN_TEXT


RUN_TEXT = TextTable(
    "run", ("query_id", "iteration", "doc_id", "rank", "score", "tag"), numbers=frozenset({"rank", "score"})
)
QRELS_TEXT = TextTable("qrels", ("query_id", "iteration", "doc_id", "relevance"), numbers=frozenset({"relevance"}))


def read_text(content: Content, table: TextTable, *, label: str, errors: str) -> tuple[pl.DataFrame, TextLines]:
    """Read the columns of a text file.

    Ids come as text, numbers as Int64 or Float64, a run's `iteration` as Int64 where every one is a whole number and
    as text otherwise. A line that cannot be read raises `InputError`, or is left out and reported with `errors="skip"`.
    """
    if content.data[:3] == _BOM and content.part_of is None:
        content = content._replace(data=content.data[3:], path=None)
    if content.data[:3] == _BOM:  # begins a query id, as elsewhere in a file; Polars would drop it
        return _read_line_by_line(content, table, label=label, skip=errors == "skip")
    frame = _read_clean(content, table)
    if frame is None and not content.has_any(b"\0"):
        frame = _read_clean(_normalize_blanks(content), table)
    if frame is not None:
        return frame, TextLines(label, content)
    return _read_line_by_line(content, table, label=label, skip=errors == "skip")


def _normalize_blanks(content: Content) -> Content:
    """Write one blank between fields, none at the edges of lines, and no blank lines."""
    text = bytes(content.data).translate(bytes.maketrans(WHITE, b" " * len(WHITE)))
    return Content(re.sub(rb" *\n[ \n]*", b"\n", re.sub(rb"  +", b" ", text).strip(b" \n")))


def _read_clean(content: Content, table: TextTable) -> pl.DataFrame | None:
    """Read the columns with Polars if every line has its fields with one and the same separator, else return None."""
    if not content.data[:1]:
        return pl.DataFrame(schema=_types(table, pl.Float64))
    separator = separator_of(content.data)
    if content.has_any((WHITE + b"\0").replace(separator.encode(), b"")):
        return None
    whole = _types(table, pl.Int64)
    if table is RUN_TEXT:
        whole |= {"iteration": pl.Int64, "score": pl.Float64}
    for schema in (whole, _types(table, pl.Float64)):
        source = content.path or bytes(content.data)
        try:
            frame = pl.read_csv(
                source, separator=separator, has_header=False, quote_char=None, schema=schema, glob=False
            )
        except pl.exceptions.PolarsError:
            continue
        return frame if _is_sound(frame, table) else None
    return None


def separator_of(text: bytes | mmap.mmap) -> str:
    """Return what stands between the fields of clean text, by its first line: a tab, or a blank."""
    end = text.find(b"\n")
    return "\t" if text.find(b"\t", 0, end if end >= 0 else len(text)) >= 0 else " "


def _types(table: TextTable, numbers: Any) -> dict[str, Any]:
    return {name: numbers if name in table.numbers else pl.String for name in table.fields}


def _is_sound(frame: pl.DataFrame, table: TextTable) -> bool:
    """Tell whether every field is there and every number is finite."""
    finite = [pl.col(name).is_finite().all() for name in table.numbers if frame.schema[name] == pl.Float64]
    return bool(
        frame.select(pl.all_horizontal(*finite, *(pl.col(name).null_count() == 0 for name in table.fields))).item()
    )


def _read_line_by_line(content: Content, table: TextTable, *, label: str, skip: bool) -> tuple[pl.DataFrame, TextLines]:
    columns: dict[str, list[str] | list[float]] = {name: [] for name in table.fields}
    lines: list[int] = []
    skipped = SkippedRows()
    for number, line in number_lines(content):
        fields, wrong = _fields(line, table)
        if wrong:
            place = f"{label}, line {number}: {quote(line.decode('utf-8', 'replace'))}"
            if not skip:
                raise InputError(f"{place} {wrong}; correct the line, or leave such lines out with errors='skip'")
            skipped.add(f"line {number} ({wrong})")
            continue
        lines.append(number)
        for name, field in zip(table.fields, fields, strict=True):
            columns[name].append(float(field) if name in table.numbers else field)  # type: ignore[arg-type]  # by name
    skipped.report(label)
    return pl.DataFrame(columns, schema=_types(table, pl.Float64)), TextLines(label, content, lines)


def _fields(line: bytes, table: TextTable) -> tuple[list[str], str]:
    """Split a line into fields; beside them, what is wrong with it (empty where nothing is)."""
    if b"\0" in line:
        return [], "has NUL bytes (is the file UTF-16 or binary? goodgain reads UTF-8)"
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError:
        return [], "is not valid UTF-8"
    fields = re.split(r"[ \t\r\v\f]+", text)
    if len(fields) != len(table.fields):
        other = table.other()
        hint = f"; this looks like a line of {_describe_table(other)}" if len(fields) == len(other.fields) else ""
        return [], (
            f"has {len(fields)} field{'s' * (len(fields) != 1)}, a {table.name} line has {len(table.fields)} "
            f"({' '.join(table.fields)}){hint}"
        )
    for name, field in zip(table.fields, fields, strict=True):
        if name in table.numbers and not (_NUMBER.fullmatch(field) and math.isfinite(float(field))):
            return [], f"has the {name} {quote(field)}, which is not a finite number"
    return fields, ""


def _describe_table(table: TextTable) -> str:
    return "a run: are run and qrels swapped?" if table is RUN_TEXT else "qrels: are run and qrels swapped?"
