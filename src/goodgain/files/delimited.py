"""Reads CSV and TSV with a header into columns."""

import csv
import io
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import narwhals as nw
import polars as pl

from goodgain.errors import InputError, count_of, notice
from goodgain.files import bad_rows
from goodgain.files.bad_rows import BadLines, FindColumns, FrameRows, ReadTable, RowSource, quote
from goodgain.files.opening import BOM, Content
from goodgain.schema import BLANKS, IDS

#: A longer header is an error: each column costs time, used or not.
_MOST_COLUMNS = 10_000
#: A quoted value; an unclosed quote runs to the end.
_QUOTED = re.compile(rb'(?<![^,\n])"[^"]*+(?:""[^"]*+)*+(?:"|\Z)')
_BLANK_LINES = re.compile(rb"(?:[ \t\r\v\f]*+\n)*+\r*")
_HIDE = bytes.maketrans(b",\n", b"xx")
#: First bytes of gzip, zlib and Zstandard data; a text can begin with the byte of zlib. Polars would decompress such a text,
#: unless a byte order mark precedes it. Polars drops one mark, so a text that has a mark gets another.
_LIKE_COMPRESSED = (b"\x1f", b"x", b"\x28", BOM)


class Cells(NamedTuple):
    """The header and the values of a CSV or TSV file, as text without white space around it.

    An empty value is null. The columns of the frame are `0`, `1`, ... because names may repeat.
    """

    names: list[str]
    frame: pl.DataFrame
    rows: FrameRows
    separator: str


def read_names(line: str, separator: str, path: Path) -> list[str]:
    """Return the names in a header, without white space around them. Raise an InputError if there are too many to be names."""
    try:
        names = next(csv.reader([line], delimiter=separator)) if separator == "," else line.split(separator)
    except csv.Error as error:  # a carriage return in a name, a name of more than 128 KiB
        raise InputError(f"{path}: the header cannot be read ({error}); correct the names of the columns") from None
    if len(names) > _MOST_COLUMNS:
        problem = f"the first line has {len(names):,} values, so it is not a header (at most {_MOST_COLUMNS:,} names)"
        raise InputError(f"{path}: {problem}; write the names of the columns on a line of their own")
    return [name.strip() for name in names]


def refuse_other_separator(line: str, separator: str, path: Path) -> None:
    """Raise `InputError` if the first line of a CSV or TSV file is divided by another sign than the file's name says."""
    if separator in line:
        return
    if separator == "," and ";" in line:
        sign, remedy = "semicolons", "Write commas (and decimal points, if it has numbers)"
    elif separator == "," and "\t" in line:
        sign, remedy = "tabs", "Rename it to end in .tsv"
    elif separator == "\t" and "," in line and " " not in line.strip():
        sign, remedy = "commas", "Rename it to end in .csv"
    else:
        return
    raise InputError(f"{path}: its columns are divided by {sign}. {remedy}")


def read_cells(content: Content, separator: str, path: Path, *, errors: str | None) -> Cells:
    """Read the values of a CSV or TSV file. TSV has no quoting. Rows without any value are left out.

    A line with fewer or more values than the header raises an error; `errors="skip"` leaves it out with a notice.
    """
    blank_lines = _BLANK_LINES.match(content.data)
    start = blank_lines.end() if blank_lines else 0  # it matches everything
    text = content.data[start:]
    lines_before = content.data.count(b"\n", 0, start)
    line = text.partition(b"\n")[0].strip(b"\r").decode("utf-8", "replace")
    if separator == "," and line.count('"') % 2:  # Polars would read all rows as a part of the header
        problem = f"line {lines_before + 1}: the header has a quote that is not closed on its line"
        raise InputError(f"{path}, {problem}; close the quote or remove it, and write all names on one line")
    refuse_other_separator(line, separator, path)
    names = read_names(line, separator, path)

    options = {"separator": separator, "quote_char": '"' if separator == "," else None, "infer_schema": False}
    frame = _parse_even_lines(text, separator, len(names), options)
    if frame is None:
        bad = BadLines(str(path), content, errors)
        text = _cut_ragged_lines(text, separator, len(names), bad, lines_before)
        parsed = parse_text(text, **options)
        if isinstance(parsed, str):
            remedy = "give each line a value for each name, use UTF-8, and double each quote inside a quoted value"
            raise InputError(f"{path}: cannot be read ({parsed}); {remedy}")
        frame = parsed

    frame.columns = [str(place) for place in range(frame.width)]
    values = pl.all().str.strip_chars(BLANKS)
    frame = frame.with_columns(pl.when(values != "").then(values))
    is_blank = frame.select(pl.all_horizontal(pl.all().is_null())).to_series()
    rows: Sequence[int] = range(2, frame.height + 2)
    if is_blank.any():
        frame = frame.filter(~is_blank)
        rows = ((~is_blank).arg_true() + 2).to_list()
    return Cells(names, frame, FrameRows(str(path), rows, "counting the header as row 1"), separator)


def _parse_even_lines(text: bytes, separator: str, width: int, options: Mapping[str, Any]) -> pl.DataFrame | None:
    """Parse a text whose lines all have `width` values. Return None for any other text, and if Polars cannot read it.

    Polars fills short rows with null and refuses long rows. If the number of separators is right, all rows are right.
    """
    has_quotes = separator == "," and b'"' in text
    lines = text.count(b"\n") + (not text.endswith(b"\n"))
    missing_separators = (width - 1) * lines - text.count(separator.encode())
    if missing_separators > 0 or (missing_separators < 0 and not has_quotes):
        return None
    frame = parse_text(text, **options)
    if isinstance(frame, str):
        return None
    if has_quotes and frame.width and frame.to_series(-1).null_count():
        return None  # separators inside quotes may hide that a row is short
    return frame


def parse_text(text: bytes, **options: Any) -> pl.DataFrame | str:
    """Parse a text with `polars.read_csv`. Return the frame, or Polars' error message.

    A text that begins like compressed data gets a byte order mark, because Polars would decompress it without a limit.
    """
    if text.startswith(_LIKE_COMPRESSED):
        text = BOM + text
    try:
        return pl.read_csv(text, **options)
    except pl.exceptions.PolarsError as error:
        return str(error).splitlines()[0]


def _cut_ragged_lines(text: bytes, separator: str, width: int, bad: BadLines, lines_before: int) -> bytes:
    """Report lines with more or fewer values than the header, and blank them, so that later rows keep their line numbers."""
    plain = text  # with the separators and line feeds between quotes hidden
    if separator == "," and b'"' in text:
        plain = _QUOTED.sub(lambda match: match.group().translate(_HIDE), text)

    sign = separator.encode()
    pieces: list[bytes] = []
    copied = end = 0
    number = lines_before + 1
    for line in io.BytesIO(plain):
        start, end = end, end + len(line)
        values = line.count(sign) + 1
        if values != width and line.strip():
            fault = f"has {values} value{'s' * (values != 1)}, the header has {width} names"
            bad.refuse(number, fault, remedy="correct the line (was the file cut short?)")
            pieces.append(text[copied:start] + sign * (width - 1) + b"\n")
            copied = end
        number += text.count(b"\n", start, end)
    bad.report()
    return b"".join([*pieces, text[copied:]])


def pick_columns(cells: Cells, types: Mapping[str, Any], find: FindColumns, *, errors: str | None = None) -> ReadTable:
    """Select and convert columns of a CSV or TSV file. `types`, `find` and `errors` are as in `read_table`."""
    names, rows = cells.names, cells.rows
    our_name_of = find(names)
    for name in our_name_of:
        if names.count(name) > 1:
            raise InputError(f"{rows.label}: has two columns {name!r}. Rename or remove one")

    columns = [pl.col(str(names.index(name))).alias(our_name) for name, our_name in our_name_of.items()]
    frame = cells.frame.select(columns)
    numbers = [name for name in frame.columns if types[name] != pl.String]
    check_texts(frame.select(name for name in frame.columns if name in IDS or name in numbers), cells.separator, rows)
    if not numbers:
        return ReadTable(frame, rows, names)

    text_columns = [f"{name} as text" for name in numbers]
    texts = [pl.col(name).alias(text) for name, text in zip(numbers, text_columns, strict=True)]
    values = [pl.col(name).str.strip_chars().cast(types[name], strict=False) for name in numbers]
    frame = frame.with_columns(*texts, *values)
    problems = []
    for name, text in zip(numbers, text_columns, strict=True):
        is_not_number = nw.col(name).is_null() & ~nw.col(text).is_null()
        problems.append((is_not_number, f"has the {name} {{{text}}}, which is not a number"))
    checked, checked_rows = bad_rows.check_rows(nw.from_native(frame), rows, problems, errors=errors, show=False)
    return ReadTable(checked.to_native().drop(text_columns), checked_rows, names)


def check_texts(frame: pl.DataFrame, separator: str, rows: RowSource) -> None:
    """Raise an error for an unclosed quote in a CSV file; give a notice if values of a TSV file are in quotes."""
    for name in frame.columns:
        column = frame.get_column(name)
        bad = column.str.contains("\n", literal=True).fill_null(False).arg_true()
        if len(bad):
            problem = f"{rows.locate(bad[0])} has a line feed in the {name} {quote(column[bad[0]])}"
            remedy = 'close it, or write """ for a quote that belongs to the value'
            raise InputError(f"{problem}: a quote at the beginning of a value is not closed; {remedy}")

    if separator == "," or not frame.width:
        return
    values = pl.all()
    is_quoted = (values.str.len_bytes() >= 2) & values.str.starts_with('"') & values.str.ends_with('"')
    quoted = sum(frame.select(is_quoted.sum()).row(0))
    if quoted:
        fact = f"{count_of(quoted, 'value')} in quotes: in TSV, quotes are part of the value"
        notice("unusual_text", f"{rows.label}: {fact}. Remove them, or write the file as CSV")
