"""CSV and TSV files with a header: one reader for runs, qrels and grades."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import narwhals as nw
import polars as pl

from goodgain.errors import InputError, notice
from goodgain.files.cells import read_cells, read_names
from goodgain.files.content import Content
from goodgain.files.opening import plain_name
from goodgain.files.row_origins import FrameRows, number_lines, number_rows, quote
from goodgain.formats.column_names import Columns, find_columns
from goodgain.formats.frames import OpenFrame, open_frame
from goodgain.formats.text import QRELS_TEXT, RUN_TEXT, is_row
from goodgain.schema import QRELS, RUN, Table

__all__ = ["Header", "check_texts", "find_header", "read_delimited", "separator_by_name"]

_SEPARATORS = {".csv": ",", ".tsv": "\t"}
_BOM = b"\xef\xbb\xbf"
_NUMBERS = ("rank", "score", "relevance")


class Header(NamedTuple):
    """What stands between the values of a file, and the names of its columns."""

    separator: str
    names: list[str]


def separator_by_name(path: Path) -> str | None:
    """Return what stands between the values of a file by the ending of its name; None where it is neither CSV nor TSV."""
    return _SEPARATORS.get(Path(plain_name(path.name)).suffix.lower())


def find_header(content: Content, path: Path, columns: Columns) -> Header | None:
    """Return the header of a .csv or .tsv file; None for other files, and where the first line is one of TREC text.

    In a .tsv file, where TREC text may stand too, some name of the header must be known.
    """
    separator = separator_by_name(path)
    if separator is None:
        return None
    if content.data[: len(_BOM)] == _BOM:
        content = content._replace(data=content.data[len(_BOM) :])
    first_row = next(number_rows(content), (0, b""))[1]
    if any(is_row(first_row, table) for table in (RUN_TEXT, QRELS_TEXT)):
        return None
    line = next(number_lines(content), (0, b""))[1].decode("utf-8", "replace")
    if separator not in line:
        return None
    names = read_names(line, separator, path)
    if separator == "\t" and not any(
        find_columns(names, table, columns, label=str(path)).names for table in (RUN, QRELS)
    ):
        return None
    return Header(separator, names)


def check_texts(frame: pl.DataFrame, separator: str, rows: FrameRows) -> None:
    """Check the ids of a CSV or TSV file for what quotes can do to them.

    Args:
        frame: the columns that are read.
        separator: what stands between the values of the file.
        rows: how errors name a row.

    Raises:
        InputError: a text has a line feed in it: a quote has taken up the lines after it.
    """
    quoted = 0
    for name in (name for name, dtype in frame.schema.items() if dtype == pl.String):
        column = frame.get_column(name)
        bad = column.str.contains("\n", literal=True).fill_null(False).arg_true()
        if len(bad):
            raise InputError(
                f"{rows.locate(bad[0])} has a line feed in the {name} {quote(column[bad[0]])}: a quote that begins a value "
                'takes up all up to the next one; close it, or write """ for a quote that belongs to the value'
            )
        if separator != ",":
            quoted += int(
                (column.str.len_bytes().ge(2) & column.str.starts_with('"') & column.str.ends_with('"')).sum()
            )
    if quoted:
        notice(
            f"{rows.label}: {quoted:,} value{'s' * (quoted != 1)} in quotes, which belong to the value in TSV; if they do not, "
            "write the file as CSV, or without them"
        )


def read_delimited(
    content: Content, header: Header, path: Path, table: Table, *, errors: str, columns: Columns
) -> OpenFrame:
    """Read the columns of a file with a header.

    Raises:
        InputError: the file cannot be read, lacks a column, or has a text where a number belongs.
    """
    names, frame, rows = read_cells(content, header.separator, path, errors=errors)
    found = find_columns(names, table, columns, label=str(path))
    for name in found.names:
        if names.count(name) > 1:
            raise InputError(f"{path}: two columns have the name {name!r}; give each a name of its own")
    first = {name: str(place) for place, name in reversed(list(enumerate(names)))}
    try:
        opened = open_frame(frame.select(pl.col(first[name]).alias(name) for name in first), table, columns=columns)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    origins = FrameRows(f"{path}, counting rows below its header from 0", rows)
    check_texts(opened.frame.to_native(), header.separator, origins)
    in_memory = _read_numbers(opened.frame.to_native(), origins, errors)
    return opened._replace(frame=nw.from_native(in_memory), rows=origins)


def _read_numbers(frame: pl.DataFrame, rows: FrameRows, errors: str) -> pl.DataFrame:
    """Read the columns of numbers; with `errors="skip"`, null where there is none."""
    for name in (name for name in _NUMBERS if name in frame.columns):
        text = frame.get_column(name)
        number = text.str.strip_chars().cast(pl.Float64, strict=False)
        wrong = (number.is_null() & text.is_not_null()).arg_true()
        if len(wrong) and errors == "raise":
            raise InputError(
                f"{rows.locate(wrong[0])} has the {name} {quote(text[wrong[0]])}, which is not a number; correct the row, "
                "or leave such rows out with errors='skip'"
            )
        frame = frame.with_columns(number)
    return frame
