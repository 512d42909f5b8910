"""Reading files: TREC text by its fields; Parquet, Arrow IPC, JSON Lines, CSV and TSV by the names of their columns."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import narwhals as nw
import polars as pl

from goodgain.files.cells import read_names
from goodgain.files.content import Content, read_lines
from goodgain.files.opening import container
from goodgain.files.row_origins import number_lines, number_rows
from goodgain.files.tables import read_table, separator_by_name
from goodgain.formats.column_names import Columns, FoundColumns, find_columns
from goodgain.formats.frames import OpenFrame, check_columns_found
from goodgain.formats.text import QRELS_TEXT, RUN_TEXT, is_row, read_text, warn_of_passed_over
from goodgain.schema import QRELS, RUN, Table

__all__ = ["Header", "find_header", "read_file"]

_BOM = b"\xef\xbb\xbf"
#: The columns of numbers. In CSV and JSON Lines ranks may be floats, as pandas makes them where one is missing.
_NUMBERS = dict.fromkeys(("rank", "score", "relevance"), pl.Float64)


class Header(NamedTuple):
    """What stands between the values of a file, and the names of its columns."""

    separator: str
    names: list[str]


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


def read_file(path: Path, table: Table, *, errors: str, columns: Columns) -> tuple[OpenFrame, bool]:
    """Read the columns of a file, and tell whether it is TREC text, whose lines are checked while they are read.

    `columns` has the user's names of columns.
    """
    if container(path) != "text":
        return _read_table(path, table, errors=errors, columns=columns), False
    content = read_lines(path)
    if find_header(content, path, columns) is not None:
        return _read_table(path, table, errors=errors, columns=columns, content=content), False
    text_table = QRELS_TEXT if table is QRELS else RUN_TEXT
    frame, lines, passed_over = read_text(content, text_table, label=str(path), errors=errors)
    warn_of_passed_over(str(path), [passed_over])
    return OpenFrame(nw.from_native(frame), lines, FoundColumns({})), True


def _read_table(
    path: Path, table: Table, *, errors: str, columns: Columns, content: Content | None = None
) -> OpenFrame:
    def find(names: Iterable[str]) -> FoundColumns:
        return find_columns(names, table, columns, label=str(path))

    types = {name: _NUMBERS.get(name, pl.String) for name in table.columns}
    frame, rows, names = read_table(
        path,
        types,
        find=lambda names: find(names).names,
        required=table.required,
        errors=errors,
        content=content,
    )
    found = find(names)
    if container(path) == "jsonl" and frame.is_empty():
        frame = pl.DataFrame(schema=types)
    else:
        check_columns_found(names, table, found, label=str(path))
    return OpenFrame(nw.from_native(frame), rows, found)
