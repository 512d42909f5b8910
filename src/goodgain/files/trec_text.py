"""Reads TREC text, the lines of runs and qrels.

If TREC text has no bad rows, Polars reads it. Otherwise it is read line by line, which is slower.
"""

import math
import re
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import polars as pl

from goodgain.errors import InputError, count_of, notice
from goodgain.files import bad_rows
from goodgain.files.bad_rows import BadLines, TextLines, quote
from goodgain.files.delimited import parse_text
from goodgain.files.opening import Content
from goodgain.schema import COMMENT, QRELS, RUN, Table

_COMMENT_LINE = re.compile(rb"^#[^\n]*\n?", re.MULTILINE)
_FIRST_SIX = re.compile(r"^(?:[^ \t\r\v\f]+[ \t\r\v\f]+){5}[^ \t\r\v\f]+")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_BLANKS = re.compile(r"[ \t\r\v\f]+")


class PassedOver(NamedTuple):
    """Counts of two kinds of lines: comments that look like rows, and rows with text after field 6."""

    comments: int = 0
    longer: int = 0


def warn_of_passed_over(label: str, parts: Iterable[PassedOver]) -> None:
    """Give a notice if comments look like rows, and another if rows have text after field 6."""
    comments, longer = (sum(numbers) for numbers in zip(PassedOver(), *parts, strict=True))
    if comments:
        verb = "begins with '#' and was left out as a comment"
        if comments > 1:
            verb = "begin with '#' and were left out as comments"
        rows = f"{count_of(comments, 'line')} with the fields of a row"
        notice("comment_lines", f"{label}: {rows} {verb}; to read rows, remove the '#'")
    if longer:
        lines = count_of(longer, "line has", "lines have")
        notice(
            "text_after_tag",
            f"{label}: {lines} text after the tag (field 6), which is ignored, as in trec_eval. "
            "Write blanks in a doc_id as %20",
            minor=True,
        )


TextRows = tuple[pl.DataFrame, TextLines, PassedOver]


def read_text(content: Content, table: Table, *, label: str, errors: str) -> TextRows:
    """Read a run or qrels in TREC text.

    Ids are text; numbers are Int64 or Float64. The `iteration` of a run is Int64 if all values are whole numbers, else text.
    Lines that begin with `#` are comments. Text after the sixth field of a run is not read.
    """
    text = content.data
    comments = 0
    if text.startswith(bad_rows.COMMENT_BYTES):
        text, comments = _cut_comments(text, table)
    frame = _read_clean(text, table)
    if frame is not None:  # in clean text, comments are found faster in the column than in the bytes
        is_comment = frame.get_column("query_id").str.starts_with(COMMENT)
        if is_comment.any():
            frame = frame.filter(~is_comment)
            comments = int(is_comment.sum())
    elif b"\n" + bad_rows.COMMENT_BYTES in text:
        text, comments = _cut_comments(text, table)
        frame = _read_clean(text, table)
    if frame is None and b"\0" not in content.data:
        # One blank between fields, none at the edges of lines, and no blank lines.
        text = text.translate(bytes.maketrans(bad_rows.WHITE, b" " * len(bad_rows.WHITE)))
        text = re.sub(rb"  +", b" ", text).strip(b" \n")
        text = re.sub(rb" *\n[ \n]*", b"\n", text)
        frame = _read_clean(text, table)

    if frame is not None:
        return frame, TextLines(label, content), PassedOver(comments)
    return _read_line_by_line(content, table, label=label, errors=errors)


def _cut_comments(text: bytes, table: Table) -> tuple[bytes, int]:
    """Return the text without comments, and the number of comments that look like a row."""
    comments = sum(is_row(match.group(), table) for match in _COMMENT_LINE.finditer(text))
    return _COMMENT_LINE.sub(b"", text), comments


def is_row(line: bytes, table: Table) -> bool:
    return not _split(line.strip(bad_rows.WHITE + b"\n"), table)[1]


def read_ids(content: Content) -> pl.DataFrame | None:
    """Read only query_id and doc_id of a run, which is faster than `read_text`. Return None if Polars cannot read the text."""
    separator = _find_separator(content.data)
    if separator is None:
        return None
    schema = dict.fromkeys(RUN.columns, pl.String)
    options = {"separator": separator, "has_header": False, "quote_char": None, "schema": schema}
    frame = parse_text(content.data, **options, columns=[0, 2])
    if isinstance(frame, str):
        return None
    return frame.drop_nulls().filter(~pl.col("query_id").str.starts_with(COMMENT))


def _find_separator(text: bytes) -> str | None:
    """Return the one character that separates all fields of the text; None if the text mixes separators."""
    line = text[: text.find(b"\n") + 1] or text
    separator = b"\t" if b"\t" in line else b" "
    other_signs = bad_rows.WHITE.replace(separator, b"") + b"\0"
    mixes_signs = any(sign.to_bytes() in text for sign in other_signs)
    return None if mixes_signs else separator.decode()


def _read_clean(text: bytes, table: Table) -> pl.DataFrame | None:
    """Read the columns with Polars. Return None if the text mixes separators or has a bad row."""
    if not text:
        return pl.DataFrame(schema=_make_types(table, pl.Float64))
    separator = _find_separator(text)
    if separator is None:
        return None
    whole_numbers = _make_types(table, pl.Int64)
    if table is RUN:
        whole_numbers |= {"iteration": pl.Int64, "score": pl.Float64}

    for schema in (whole_numbers, _make_types(table, pl.Float64)):
        frame = parse_text(text, separator=separator, has_header=False, quote_char=None, schema=schema)
        if isinstance(frame, str):
            continue
        floats = [name for name in table.numbers if frame.schema[name] == pl.Float64]
        are_finite = [pl.col(name).is_finite().all() for name in floats]
        are_filled = [pl.col(name).null_count() == 0 for name in table.columns]
        is_clean = frame.select(pl.all_horizontal(*are_finite, *are_filled)).item()
        return frame if is_clean else None
    return None


def _make_types(table: Table, numbers: Any) -> dict[str, Any]:
    return {name: numbers if name in table.numbers else pl.String for name in table.columns}


def _read_line_by_line(content: Content, table: Table, *, label: str, errors: str) -> TextRows:
    """Read a text with bad rows, comments or mixed separators: report each bad line, and parse the rest with Polars."""
    bad = BadLines(label, content, errors)
    clean: list[str] = []
    lines: list[int] = []
    longer = 0
    for number, line in bad_rows.number_rows(content):
        fields, fault, is_longer = _split(line, table)
        if fault.endswith(_SWAPPED):
            bad.refuse(number, fault, remedy="give the qrels first, then the run", can_skip=False)
        elif fault:
            bad.refuse(number, fault, remedy=_find_remedy(fields, table))
        else:
            for place, name in enumerate(table.columns):
                if name in table.numbers:
                    fields[place] = repr(float(fields[place]))
            clean.append("\t".join(fields))
            lines.append(number)
            longer += is_longer
    bad.report()

    frame = _read_clean("\n".join(clean).encode(), table)
    if frame is None:  # Polars cannot read a number that Python can
        raise InputError(f"{label}: has numbers that cannot be read; write them with digits and a decimal point")
    comments = _cut_comments(content.data, table)[1]
    return frame, TextLines(label, content, lines), PassedOver(comments, longer)


def _find_remedy(fields: Sequence[str], table: Table) -> str:
    if len(fields) > len(table.columns):
        return _WRITE_BLANKS
    if len(fields) == 1 and re.search(r"[,;].*[,;]", fields[0]):
        return "if the file is CSV, write commas and rename it to end in .csv"
    return "correct the line"


#: The remedy for a line with too many fields.
_WRITE_BLANKS = "write a blank in an id as %20, or write a .tsv file with a header and tabs"
#: Ends the description of a line whose number of fields is that of the other table.
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
            fault = "has text after a carriage return that follows the tag (lines must end with \\n or \\r\\n, not only \\r)"
            return [], fault, False
        fields = fields[: len(table.columns)]
    if len(fields) != len(table.columns):
        fault = f"has {len(fields)} field{'s' * (len(fields) != 1)}, a {table.name} line has {len(table.columns)}"
        fault += f" ({' '.join(table.columns)})"
        other_table, name = (QRELS, "qrels") if table is RUN else (RUN, "a run")
        if len(fields) == len(other_table.columns):
            fault += f"; this looks like a line of {name}{_SWAPPED}"
        return fields, fault, False

    for name, field in zip(table.columns, fields, strict=True):
        if name in table.numbers and not _is_finite_number(field):
            return [], f"has the {name} {quote(field)}, which is not a finite number", False
    return fields, "", is_longer


def _is_finite_number(field: str) -> bool:
    return bool(_NUMBER.fullmatch(field)) and math.isfinite(float(field))
