"""Reads the columns of a table: of a file by the ending of its name (CSV, TSV, JSON Lines, Parquet, Arrow), or of a frame."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import narwhals as nw
import polars as pl

from goodgain.errors import InputError, notice
from goodgain.files.cells import Cells, read_cells
from goodgain.files.containers import read_container
from goodgain.files.content import Content, read_bytes, read_lines
from goodgain.files.json_lines import read_json_lines
from goodgain.files.opening import container, plain_name
from goodgain.files.row_origins import FrameRows, RowSource, quote
from goodgain.schema import IDS

__all__ = [
    "FindColumns",
    "ReadTable",
    "check_texts",
    "keep_columns",
    "name_rows_below",
    "pick_columns",
    "read_frame",
    "read_table",
    "separator_by_name",
]

_SEPARATORS = {".csv": ",", ".tsv": "\t"}

#: Tells which columns of a source are read, and the name that each gets.
FindColumns = Callable[[Sequence[str]], Mapping[str, str]]


class ReadTable(NamedTuple):
    """The columns of a table.

    Attributes:
        frame: the columns that were asked for, by their names here. Those of CSV, TSV and JSON Lines have the types that
            were asked for, those of Parquet and Arrow their own.
        rows: how errors name its rows.
        names: what all columns of the source are called.
    """

    frame: pl.DataFrame
    rows: RowSource
    names: list[str]


def separator_by_name(path: Path) -> str | None:
    """Return what stands between the values of a file by the ending of its name; None where it is neither CSV nor TSV."""
    return _SEPARATORS.get(Path(plain_name(path.name)).suffix.lower())


def keep_columns(columns: Iterable[str]) -> FindColumns:
    """Return what finds these columns, by these names."""
    kept = list(columns)
    return lambda names: {name: name for name in kept if name in names}


def read_table(
    path: Path,
    types: Mapping[str, Any],
    *,
    find: FindColumns | None = None,
    required: Sequence[str] = (),
    errors: str | None = None,
    content: Content | None = None,
) -> ReadTable:
    """Read a table.

    Args:
        path: the file, also .gz or .zst.
        types: the columns that are read, each with its Polars type.
        find: tells which columns of the file these are; by default those of the same names.
        required: the columns that every line of JSON Lines must have.
        errors: `raise`, or `skip` to leave out bad lines with a notice; None where the caller has no such option.
        content: the lines of the file, where they were read already: a pipe can be read only once.

    Raises:
        InputError: the file cannot be read, a line is bad, or the name of the file ends otherwise.
    """
    find = find or keep_columns(types)
    separator, kind = separator_by_name(path), container(path)
    if separator is not None:
        cells = read_cells(content or read_lines(path), separator, path, errors=errors)
        return pick_columns(cells, separator, path, types, find, errors=errors)
    if kind == "jsonl":
        found = read_json_lines(read_lines(path), path, types, required=required, rename=find, errors=errors)
        return ReadTable(found.frame, found.rows, found.names)
    if kind == "text":
        raise InputError(f"{path}: a table ends in .tsv, .csv, .jsonl, .parquet or .arrow; rename or convert the file")
    frame = read_container(read_bytes(path), path, kind)
    read = frame.select(pl.col(name).alias(ours) for name, ours in find(frame.columns).items())
    return ReadTable(read, FrameRows(str(path)), frame.columns)


def pick_columns(
    cells: Cells, separator: str, path: Path, types: Mapping[str, Any], find: FindColumns, *, errors: str | None = None
) -> ReadTable:
    """Return the columns of a CSV or TSV file whose values were read; the arguments are those of `read_table`.

    Raises:
        InputError: a column stands there twice, an id has a line feed, or a text is where a number belongs.
    """
    names = cells.names
    found = find(names)
    for name in found:
        if names.count(name) > 1:
            raise InputError(f"{path}: has two columns {name!r}; give each a name of its own, or remove one")
    frame = cells.frame.select(pl.col(str(names.index(name))).alias(ours) for name, ours in found.items())
    rows = name_rows_below(path, cells)
    numbers = [name for name in frame.columns if types[name] != pl.String]
    check_texts(frame.select(name for name in frame.columns if name in IDS or name in numbers), separator, rows)
    for name in numbers:
        frame = frame.with_columns(_read_numbers(frame.get_column(name), types[name], rows, errors))
    return ReadTable(frame, rows, names)


def name_rows_below(path: Path, cells: Cells) -> FrameRows:
    """Return how errors name the rows of a file with a header."""
    rows = range(2, cells.frame.height + 2) if cells.rows is None else [row + 2 for row in cells.rows]
    return FrameRows(str(path), rows, "counting the header as row 1")


def check_texts(frame: pl.DataFrame, separator: str, rows: FrameRows) -> None:
    """Check ids and numbers of a CSV or TSV file for what quotes can do to them.

    Args:
        frame: their columns, as text.
        separator: what stands between the values of the file.
        rows: how errors name a row.

    Raises:
        InputError: a value has a line feed in it: a quote has taken up the lines after it.
    """
    quoted = 0
    for name in frame.columns:
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


def _read_numbers(text: pl.Series, dtype: Any, rows: FrameRows, errors: str | None) -> pl.Series:
    """Read a column of numbers; with `errors="skip"`, null where there is none."""
    number = text.str.strip_chars().cast(dtype, strict=False)
    wrong = (number.is_null() & text.is_not_null()).arg_true()
    if len(wrong) and errors != "skip":
        raise InputError(
            f"{rows.locate(wrong[0])} has the {text.name} {quote(text[wrong[0]])}, which is not a number; correct the row, or "
            "leave such rows out with errors='skip'"
        )
    return number


def read_frame(source: Any, label: str, columns: Sequence[str] | None = None) -> pl.DataFrame:
    """Return a frame of any engine as one of Polars.

    Args:
        source: the frame.
        label: what errors call it.
        columns: those of its columns that are read; None: all.

    Raises:
        InputError: it is not a frame, or has columns that Polars cannot hold.
    """
    try:
        frame: Any = nw.from_native(source)
        names = frame.collect_schema().names()
    except TypeError:
        raise InputError(f"{label}: found a {type(source).__name__}; give a file, or a data frame") from None
    except Exception as error:  # narwhals' own, for duplicate names of columns
        raise InputError(f"{label}: cannot be used ({_reason(error)}); give each column a name of its own") from error
    try:
        read = frame.select(name for name in names if columns is None or name in columns)
        collected: pl.DataFrame = (read.collect("polars") if isinstance(read, nw.LazyFrame) else read).to_polars()
    except (Exception, pl.exceptions.PanicException) as error:  # Arrow's or Polars' own
        raise InputError(
            f"{label}: values mix types in a column ({_reason(error)}); give each column one type"
        ) from error
    return collected


def _reason(error: BaseException) -> str:
    return " ".join(str(error).split())[:200] or type(error).__name__
