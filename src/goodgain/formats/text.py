"""Text with fields between white space, read into columns: fast where lines are clean, else line by line."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import polars as pl

from goodgain.errors import InputError, notice
from goodgain.files.containers import RowFrames
from goodgain.files.content import Content
from goodgain.files.row_origins import COMMENT_BYTES, WHITE, SkippedRows, TextLines, number_rows, quote
from goodgain.schema import COMMENT

__all__ = [
    "QRELS_TEXT",
    "RUN_TEXT",
    "PassedOver",
    "TextRows",
    "TextTable",
    "is_row",
    "read_text",
    "separator_of",
    "warn_of_passed_over",
]

_BOM = b"\xef\xbb\xbf"
_COMMENT_LINE = re.compile(rb"^#[^\n]*\n?", re.MULTILINE)
_FIRST_SIX = re.compile(r"^(?:[^ \t\r\v\f]+[ \t\r\v\f]+){5}[^ \t\r\v\f]+")
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


class PassedOver(NamedTuple):
    """What is not read of a text file, and might have been meant to be.

    Attributes:
        comments: lines that begin with `#` and would be rows without it.
        longer: lines of a run that go on after the sixth field.
    """

    comments: int = 0
    longer: int = 0


def warn_of_passed_over(label: str, parts: Iterable[PassedOver]) -> None:
    """Give one notice for each thing that was passed over in a file, of which `parts` are the parts."""
    comments, longer = (sum(numbers) for numbers in zip(PassedOver(), *parts, strict=True))
    if comments:
        found, meant = (
            (
                "1 line with the fields of a row begins with '#' and was left out as a comment",
                "it is a row, write its query id",
            )
            if comments == 1
            else (
                f"{comments:,} lines with the fields of a row begin with '#' and were left out as comments",
                "they are rows, write their query ids",
            )
        )
        notice(f"{label}: {found}; if {meant} without the '#'")
    if longer:
        notice(
            f"{label}: {longer:,} line{'s' * (longer != 1)} go{'es' * (longer == 1)} on after the tag (field 6): the rest was "
            "not read, as in trec_eval; if a doc_id has blanks, write them as %20"
        )


class TextRows(NamedTuple):
    """The columns of a text file, where their rows come from, and what was not read."""

    frame: pl.DataFrame
    lines: TextLines
    passed_over: PassedOver


def read_text(content: Content, table: TextTable, *, label: str, errors: str) -> TextRows:
    """Read the columns of a text file.

    Ids come as text, numbers as Int64 or Float64, a run's `iteration` as Int64 where every one is a whole number and
    as text otherwise. Lines that begin with `#` are comments. What follows the sixth field of a run is not read. A line that
    cannot be read raises `InputError`, or is left out and reported with `errors="skip"`.
    """
    if content.data[:3] == _BOM and content.part_of is None:
        content = content._replace(data=content.data[3:])
    rows, comments = _cut_comments(content, table) if content.data[:1] == COMMENT_BYTES else (content, 0)
    frame = _read_clean(rows, table)
    if frame is not None and rows is content:
        frame, comments = _drop_comments(frame)
    elif frame is None and not content.has_any(b"\0"):
        if rows is content:
            rows, comments = _cut_comments(content, table)
            frame = None if rows is content else _read_clean(rows, table)
        if frame is None:
            frame = _read_clean(_normalize_blanks(rows), table)
    if frame is not None:
        return TextRows(frame, TextLines(label, content), PassedOver(comments))
    return _read_line_by_line(content, table, label=label, skip=errors == "skip")


def _drop_comments(frame: pl.DataFrame) -> tuple[pl.DataFrame, int]:
    """Return the rows without comments that have the fields of a row, and how many these are.

    Clean text is read with them: to look for them in one column takes less time than to look for them in the bytes.
    """
    is_comment = frame.get_column("query_id").str.starts_with(COMMENT)
    return (frame.filter(~is_comment), int(is_comment.sum())) if is_comment.any() else (frame, 0)


def _cut_comments(content: Content, table: TextTable) -> tuple[Content, int]:
    """Return the text without comments (as it is, if it has none), and how many of them have the fields of a row."""
    if content.data[:1] != COMMENT_BYTES and content.data.find(b"\n" + COMMENT_BYTES) < 0:
        return content, 0
    text = content.data
    comments = sum(is_row(found.group(), table) for found in _COMMENT_LINE.finditer(text))
    return Content(_COMMENT_LINE.sub(b"", text)), comments


def is_row(line: bytes, table: TextTable) -> bool:
    """Tell whether a line has the fields of a row."""
    return not _fields(line.strip(WHITE + b"\n"), table).wrong


def _normalize_blanks(content: Content) -> Content:
    """Write one blank between fields, none at the edges of lines, and no blank lines."""
    text = content.data.translate(bytes.maketrans(WHITE, b" " * len(WHITE)))
    return Content(re.sub(rb" *\n[ \n]*", b"\n", re.sub(rb"  +", b" ", text).strip(b" \n")))


def _read_clean(content: Content, table: TextTable) -> pl.DataFrame | None:
    """Read the columns with Polars if every line has its fields with one and the same separator, else return None."""
    if not content.data[:1]:
        return pl.DataFrame(schema=_types(table, pl.Float64))
    if content.data[:3] == _BOM:  # it begins a query id, as elsewhere in a file; Polars would drop it
        return None
    separator = separator_of(content.data)
    if content.has_any((WHITE + b"\0").replace(separator.encode(), b"")):
        return None
    whole = _types(table, pl.Int64)
    if table is RUN_TEXT:
        whole |= {"iteration": pl.Int64, "score": pl.Float64}
    for schema in (whole, _types(table, pl.Float64)):
        try:
            frame = pl.read_csv(content.data, separator=separator, has_header=False, quote_char=None, schema=schema)
        except pl.exceptions.PolarsError:
            continue
        return frame if _is_sound(frame, table) else None
    return None


def separator_of(text: bytes) -> str:
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


def _read_line_by_line(content: Content, table: TextTable, *, label: str, skip: bool) -> TextRows:
    rows = RowFrames(_types(table, pl.Float64))
    lines: list[int] = []
    skipped = SkippedRows()
    longer = 0
    for number, line in number_rows(content):
        fields, wrong, is_longer = _fields(line, table)
        if wrong:
            place = f"{label}, line {number}: {quote(line.decode('utf-8', 'replace'))}"
            if not skip:
                raise InputError(f"{place} {wrong}; correct the line, or leave such lines out with errors='skip'")
            skipped.add(f"line {number} ({wrong})")
            continue
        lines.append(number)
        longer += is_longer
        rows.add(
            [float(field) if name in table.numbers else field for name, field in zip(table.fields, fields, strict=True)]
        )
    skipped.report(label)
    return TextRows(
        rows.to_frame(), TextLines(label, content, lines), PassedOver(_cut_comments(content, table)[1], longer)
    )


class _Fields(NamedTuple):
    """The fields of a line, what is wrong with it (empty where nothing is), and whether it goes on after them."""

    fields: list[str]
    wrong: str
    is_longer: bool = False


def _fields(line: bytes, table: TextTable) -> _Fields:
    """Split a line into fields."""
    if b"\0" in line:
        return _Fields([], "has NUL bytes (is the file UTF-16 or binary? goodgain reads UTF-8)")
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError:
        return _Fields([], "is not valid UTF-8")
    fields = re.split(r"[ \t\r\v\f]+", text)
    is_longer = table is RUN_TEXT and _goes_on_after_tag(fields)
    if is_longer:
        if "\r" in _FIRST_SIX.sub("", text, count=1):
            return _Fields(
                [], "goes on after a carriage return behind the tag (lines end with \\n or \\r\\n, not with \\r alone)"
            )
        fields = fields[: len(table.fields)]
    if len(fields) != len(table.fields):
        other = table.other()
        hint = f"; this looks like a line of {_describe_table(other)}" if len(fields) == len(other.fields) else ""
        return _Fields(
            [],
            f"has {len(fields)} field{'s' * (len(fields) != 1)}, a {table.name} line has {len(table.fields)} "
            f"({' '.join(table.fields)}){hint}",
        )
    for name, field in zip(table.fields, fields, strict=True):
        if name in table.numbers and not _is_finite_number(field):
            return _Fields([], f"has the {name} {quote(field)}, which is not a finite number")
    return _Fields(fields, "", is_longer)


def _goes_on_after_tag(fields: list[str]) -> bool:
    """Tell whether fields are those of a run and more after the tag.

    Rank and score are numbers then, and the tag is not: in "q 1 my file 7 1 2.5 t" the doc_id has blanks.
    """
    return (
        len(fields) > len(RUN_TEXT.fields)
        and all(_is_finite_number(field) for field in fields[3:5])
        and not _is_finite_number(fields[5])
    )


def _is_finite_number(field: str) -> bool:
    return bool(_NUMBER.fullmatch(field)) and math.isfinite(float(field))


def _describe_table(table: TextTable) -> str:
    return "a run: are run and qrels swapped?" if table is RUN_TEXT else "qrels: are run and qrels swapped?"
