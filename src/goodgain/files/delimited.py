"""Reads CSV and TSV files with a header: the values as text, then the columns of a table."""

import csv
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import narwhals as nw
import polars as pl

from goodgain.errors import InputError, notice
from goodgain.files.bad_rows import BadLines, FindColumns, FrameRows, ReadTable, RowSource, check_rows, quote
from goodgain.files.opening import BOM, Content
from goodgain.schema import BLANKS, IDS

#: A longer header is an error: each column costs time, used or not.
_MOST_COLUMNS = 10_000
#: A quoted value; an unclosed quote runs to the end.
_QUOTED = re.compile(rb'(?<![^,\n])"[^"]*+(?:""[^"]*+)*+(?:"|\Z)')
_BLANK_LINES = re.compile(rb"(?:[ \t\r\v\f]*+\n)*+\r*")
_HIDE = bytes.maketrans(b",\n", b"xx")
#: First bytes of gzip, zlib and Zstandard; zlib's can be those of a text. A byte order mark before them hides them from
#: Polars, which drops it: one more is needed where the text has one.
_LIKE_COMPRESSED = (b"\x1f", b"x", b"\x28", BOM)


class Cells(NamedTuple):
    """The names and values of a file with a header, as text without blanks around.

    An empty value is null. The columns of the frame are `0`, `1`, ...: names may repeat.
    """

    names: list[str]
    frame: pl.DataFrame
    rows: FrameRows
    separator: str


def read_names(line: str, separator: str, path: Path) -> list[str]:
    try:
        found = next(csv.reader([line], delimiter=separator)) if separator == "," else line.split(separator)
    except csv.Error as error:  # a carriage return in a name, a name of more than 128 KiB
        raise InputError(f"{path}: the header cannot be read ({error}); correct the names of the columns") from None
    if len(found) > _MOST_COLUMNS:
        wrong = f"the first line has {len(found):,} values, so it is not a header (at most {_MOST_COLUMNS:,} names)"
        raise InputError(f"{path}: {wrong}; write the names of the columns on a line of their own")
    return [name.strip() for name in found]


def read_cells(content: Content, separator: str, path: Path, *, errors: str | None) -> Cells:
    """Read the values of a CSV or TSV file. TSV has no quoting. Rows without any value are left out.

    A line with fewer or more values than the header raises an error; `errors="skip"` leaves it out with a notice.
    """
    whole = content.data
    text = whole[_BLANK_LINES.match(whole).end() :]  # type: ignore[union-attr]  # it matches everything
    before = whole.count(b"\n", 0, len(whole) - len(text))
    line = text.partition(b"\n")[0].strip(b"\r").decode("utf-8", "replace")
    names = read_names(line, separator, path)
    has_quotes = separator == "," and b'"' in text
    # Polars fills short rows with null and refuses long ones: if the number of separators is right, all rows are.
    lacking = (len(names) - 1) * (text.count(b"\n") + (not text.endswith(b"\n"))) - text.count(separator.encode())
    frame: pl.DataFrame | str = ""
    if lacking == 0 or (has_quotes and lacking < 0):
        frame = _read_text(text, separator)
        if has_quotes and isinstance(frame, pl.DataFrame) and frame.width and frame.to_series(-1).null_count():
            frame = ""  # separators inside quotes may hide that a short row lacks some
    if isinstance(frame, str):
        text = _cut_ragged_lines(text, separator, len(names), BadLines(str(path), content, errors), before)
        frame = _read_text(text, separator)
    if isinstance(frame, str):
        remedy = "give each line a value for each name, use UTF-8, and double each quote inside a quoted value"
        raise InputError(f"{path}: cannot be read ({frame}); {remedy}")
    if frame.width != len(names):
        raise InputError(
            f"{path}, line {before + 1}: the header has a line feed in a name; write all names on one line"
        )
    frame.columns = [str(place) for place in range(frame.width)]
    values = pl.all().str.strip_chars(BLANKS)
    frame = frame.with_columns(pl.when(values != "").then(values))
    is_blank = frame.select(pl.all_horizontal(pl.all().is_null())).to_series()
    rows: Sequence[int] = range(2, frame.height + 2)
    if is_blank.any():
        frame, rows = frame.filter(~is_blank), ((~is_blank).arg_true() + 2).to_list()
    return Cells(names, frame, FrameRows(str(path), rows, "counting the header as row 1"), separator)


def _read_text(text: bytes, separator: str) -> pl.DataFrame | str:
    """Return the values of a text, or the fault of the text."""
    try:
        return parse_text(text, separator=separator, quote_char='"' if separator == "," else None, infer_schema=False)
    except pl.exceptions.PolarsError as error:
        return str(error).splitlines()[0]


def parse_text(text: bytes, **options: Any) -> pl.DataFrame:
    """Call `polars.read_csv`, but never let it unpack a text that begins like compressed data: unpacking has no limit."""
    return pl.read_csv(BOM + text if text.startswith(_LIKE_COMPRESSED) else text, **options)


def _cut_ragged_lines(text: bytes, separator: str, width: int, bad: BadLines, before: int) -> bytes:
    """Report the lines with more or fewer values than the header to `bad`, and replace them by blank values.

    Later rows keep their numbers.
    """
    plain = text  # with the separators and line feeds between quotes hidden
    if separator == "," and b'"' in text:
        plain = _QUOTED.sub(lambda found: found.group().translate(_HIDE), text)
    between, kept = separator.encode(), list[bytes]()
    copied, start, number = 0, 0, before + 1
    while start < len(plain):
        end = plain.find(b"\n", start) + 1 or len(plain)
        found = plain.count(between, start, end) + 1
        if found != width and plain[start:end].strip():
            wrong = f"has {found} value{'s' * (found != 1)}, the header has {width} names"
            bad.refuse(number, wrong, remedy="correct the line (was the file cut short?)")
            kept.append(text[copied:start] + between * (width - 1) + b"\n")
            copied = end
        number += text.count(b"\n", start, end)
        start = end
    bad.report()
    return b"".join([*kept, text[copied:]])


def pick_columns(cells: Cells, types: Mapping[str, Any], find: FindColumns, *, errors: str | None = None) -> ReadTable:
    """Return the columns of a table from the cells of a CSV or TSV file; `read_table` describes the other arguments."""
    names, rows, found = cells.names, cells.rows, find(cells.names)
    for name in found:
        if names.count(name) > 1:
            raise InputError(f"{rows.label}: has two columns {name!r}. Rename or remove one")
    frame = cells.frame.select(pl.col(str(names.index(name))).alias(ours) for name, ours in found.items())
    numbers = [name for name in frame.columns if types[name] != pl.String]
    check_texts(frame.select(name for name in frame.columns if name in IDS or name in numbers), cells.separator, rows)
    values = [pl.col(name).str.strip_chars().cast(types[name], strict=False) for name in numbers]
    as_text = {name: f"{name} as text" for name in numbers}
    frame = frame.with_columns(*(pl.col(name).alias(text) for name, text in as_text.items()), *values)
    problems = [
        (nw.col(name).is_null() & ~nw.col(text).is_null(), f"has the {name} {{{text}}}, which is not a number")
        for name, text in as_text.items()
    ]
    if not problems:
        return ReadTable(frame, rows, names)
    checked, kept = check_rows(nw.from_native(frame), rows, problems, errors=errors, show=False)
    return ReadTable(checked.to_native().drop(as_text.values()), kept, names)


def check_texts(frame: pl.DataFrame, separator: str, rows: RowSource) -> None:
    """Check ids and numbers of a CSV or TSV file for misplaced quotes."""
    for name in frame.columns:
        column = frame.get_column(name)
        bad = column.str.contains("\n", literal=True).fill_null(False).arg_true()
        if len(bad):
            raise InputError(
                f"{rows.locate(bad[0])} has a line feed in the {name} {quote(column[bad[0]])}: a quote at the beginning of a "
                'value is not closed; close it, or write """ for a quote that belongs to the value'
            )
    if separator == "," or not frame.width:
        return
    values = pl.all()
    is_quoted = (values.str.len_bytes() >= 2) & values.str.starts_with('"') & values.str.ends_with('"')
    if quoted := sum(frame.select(is_quoted.sum()).row(0)):
        notice(
            f"{rows.label}: {quoted:,} value{'s' * (quoted != 1)} in quotes, which are part of the value in TSV. Remove "
            "them, or write the file as CSV"
        )
