"""Reads TREC text (fields separated by white space) into columns: fast if all lines are clean, else line by line."""

import math
import re
from collections.abc import Iterable
from typing import Any, NamedTuple

import polars as pl

from goodgain.errors import InputError, notice
from goodgain.files.bad_rows import COMMENT_BYTES, WHITE, BadLines, TextLines, number_rows, quote
from goodgain.files.delimited import parse_text
from goodgain.files.opening import Content
from goodgain.schema import COMMENT, QRELS, RUN, Table

_COMMENT_LINE = re.compile(rb"^#[^\n]*\n?", re.MULTILINE)
_FIRST_SIX = re.compile(r"^(?:[^ \t\r\v\f]+[ \t\r\v\f]+){5}[^ \t\r\v\f]+")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_BLANKS = re.compile(r"[ \t\r\v\f]+")


class PassedOver(NamedTuple):
    """The lines of a text file that were not read and may be content: comments with fields, and text after field 6."""

    comments: int = 0
    longer: int = 0


def warn_of_passed_over(label: str, parts: Iterable[PassedOver]) -> None:
    """Give one notice of the comments, and one of the longer lines, in the parts of a file."""
    comments, longer = (sum(numbers) for numbers in zip(PassedOver(), *parts, strict=True))
    if comments:
        s, were = ("", "begins with '#' and was left out as a comment")
        if comments > 1:
            s, were = ("s", "begin with '#' and were left out as comments")
        notice(f"{label}: {comments:,} line{s} with the fields of a row {were}; to read rows, remove the '#'")
    if longer:
        notice(
            f"{label}: {longer:,} line{'s have' if longer != 1 else ' has'} text after the tag (field 6), which is ignored, as in "
            "trec_eval. Write blanks in a doc_id as %20",
            minor=True,
        )


class TextRows(NamedTuple):
    """The columns of a text file, the line of each row (for errors), and the lines that were not read."""

    frame: pl.DataFrame
    lines: TextLines
    passed_over: PassedOver


def read_text(content: Content, table: Table, *, label: str, errors: str) -> TextRows:
    """Read the columns of a text file.

    Ids are text, numbers Int64 or Float64. The `iteration` of a run is Int64 if all values are whole numbers, else text.
    Lines that begin with `#` are comments. Text after the sixth field of a run is not read.
    """
    text, comments = content.data, 0
    if text.startswith(COMMENT_BYTES):
        text, comments = _cut_comments(text, table)
    frame = _read_clean(text, table)
    if frame is not None:  # in clean text, comments are found faster in the column than in the bytes
        is_comment = frame.get_column("query_id").str.starts_with(COMMENT)
        if is_comment.any():
            frame, comments = frame.filter(~is_comment), int(is_comment.sum())
    elif b"\n" + COMMENT_BYTES in text:
        text, comments = _cut_comments(text, table)
        frame = _read_clean(text, table)
    if frame is None and b"\0" not in content.data:
        # One blank between fields, none at the edges of lines, and no blank lines.
        text = text.translate(bytes.maketrans(WHITE, b" " * len(WHITE)))
        text = re.sub(rb" *\n[ \n]*", b"\n", re.sub(rb"  +", b" ", text).strip(b" \n"))
        frame = _read_clean(text, table)
    if frame is not None:
        return TextRows(frame, TextLines(label, content), PassedOver(comments))
    return _read_line_by_line(content, table, label=label, errors=errors)


def _cut_comments(text: bytes, table: Table) -> tuple[bytes, int]:
    """Return the text without comments, and the number of comments with the fields of a row."""
    comments = sum(is_row(found.group(), table) for found in _COMMENT_LINE.finditer(text))
    return _COMMENT_LINE.sub(b"", text), comments


def is_row(line: bytes, table: Table) -> bool:
    return not _split(line.strip(WHITE + b"\n"), table)[1]


def read_ids(content: Content) -> pl.DataFrame | None:
    """Read only query_id and doc_id of a run, four times as fast as `read_text`; None if that must look at each line."""
    separator = _find_separator(content.data)
    if separator is None:
        return None
    schema = dict.fromkeys(RUN.columns, pl.String)
    options = {"separator": separator, "has_header": False, "quote_char": None, "schema": schema}
    try:
        frame = parse_text(content.data, **options, columns=[0, 2])
    except pl.exceptions.PolarsError:
        return None
    return frame.drop_nulls().filter(~pl.col("query_id").str.starts_with(COMMENT))


def _find_separator(text: bytes) -> str | None:
    """Return the one character that separates the fields of all lines; None if there are several."""
    line = text[: text.find(b"\n") + 1] or text
    separator = b"\t" if b"\t" in line else b" "
    has_others = any(sign.to_bytes() in text for sign in WHITE.replace(separator, b"") + b"\0")
    return None if has_others else separator.decode()


def _read_clean(text: bytes, table: Table) -> pl.DataFrame | None:
    """Read the columns with Polars; None unless the same single character separates the fields of all lines."""
    if not text:
        return pl.DataFrame(schema=_make_types(table, pl.Float64))
    separator = _find_separator(text)
    if separator is None:
        return None
    whole = _make_types(table, pl.Int64)
    if table is RUN:
        whole |= {"iteration": pl.Int64, "score": pl.Float64}
    for schema in (whole, _make_types(table, pl.Float64)):
        try:
            frame = parse_text(text, separator=separator, has_header=False, quote_char=None, schema=schema)
        except pl.exceptions.PolarsError:
            continue
        finite = [pl.col(name).is_finite().all() for name in table.numbers if frame.schema[name] == pl.Float64]
        filled = [pl.col(name).null_count() == 0 for name in table.columns]
        return frame if frame.select(pl.all_horizontal(*finite, *filled)).item() else None
    return None


def _make_types(table: Table, numbers: Any) -> dict[str, Any]:
    return {name: numbers if name in table.numbers else pl.String for name in table.columns}


def _read_line_by_line(content: Content, table: Table, *, label: str, errors: str) -> TextRows:
    bad = BadLines(label, content, errors)
    clean: list[str] = []
    lines: list[int] = []
    longer = 0
    for number, line in number_rows(content):
        fields, wrong, is_longer = _split(line, table)
        if wrong.endswith(_SWAPPED):
            bad.refuse(number, wrong, remedy="give the qrels first, then the run", can_skip=False)
        elif wrong:
            is_wide = len(fields) > len(table.columns)
            bad.refuse(number, wrong, remedy=_WRITE_BLANKS if is_wide else "correct the line")
        else:
            named = zip(table.columns, fields, strict=True)
            clean.append("\t".join(repr(float(field)) if name in table.numbers else field for name, field in named))
            lines.append(number)
            longer += is_longer
    bad.report()
    frame = _read_clean("\n".join(clean).encode(), table)
    if frame is None:  # Python read a number that Polars does not
        raise InputError(f"{label}: has numbers that cannot be read; write them with digits and a decimal point")
    comments = _cut_comments(content.data, table)[1]
    return TextRows(frame, TextLines(label, content, lines), PassedOver(comments, longer))


#: What to do about a line with too many fields.
_WRITE_BLANKS = "write a blank in an id as %20, or write a .tsv file with a header and tabs"
#: The end of the description of a line that has the number of fields of the other table.
_SWAPPED = ": run and qrels may be swapped"


def _split(line: bytes, table: Table) -> tuple[list[str], str, bool]:
    """Return the fields of a line, the fault (empty if none), and whether text follows the last field."""
    if b"\0" in line:
        return [], "has NUL bytes (is the file UTF-16 or binary? goodgain reads UTF-8)", False
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError:
        return [], "is not valid UTF-8", False
    fields = _BLANKS.split(text)
    # Rank and score are numbers, and the tag is not; in "q 1 my file 7 1 2.5 t" the doc_id has blanks.
    has_more = table is RUN and len(fields) > len(table.columns)
    is_longer = has_more and [*map(_is_finite_number, fields[3:6])] == [True, True, False]
    if is_longer:
        if "\r" in _FIRST_SIX.sub("", text, count=1):
            wrong = "goes on after a carriage return behind the tag (lines must end with \\n or \\r\\n, not only \\r)"
            return [], wrong, False
        fields = fields[: len(table.columns)]
    if len(fields) != len(table.columns):
        other, name = (QRELS, "qrels") if table is RUN else (RUN, "a run")
        swapped = f"; this looks like a line of {name}{_SWAPPED}"
        wrong = (
            f"has {len(fields)} field{'s' * (len(fields) != 1)}, a {table.name} line has {len(table.columns)} "
            f"({' '.join(table.columns)}){swapped * (len(fields) == len(other.columns))}"
        )
        return fields, wrong, False
    for name, field in zip(table.columns, fields, strict=True):
        if name in table.numbers and not _is_finite_number(field):
            return [], f"has the {name} {quote(field)}, which is not a finite number", False
    return fields, "", is_longer


def _is_finite_number(field: str) -> bool:
    return bool(_NUMBER.fullmatch(field)) and math.isfinite(float(field))
