"""CSV and TSV files with a header, read as frames are."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import NamedTuple

import narwhals as nw
import polars as pl

from goodgain.errors import InputError
from goodgain.files.content import Content
from goodgain.files.opening import plain_name
from goodgain.formats.column_names import Columns, find_columns
from goodgain.formats.frames import OpenFrame, open_frame
from goodgain.formats.row_origins import FrameRows, number_lines, number_rows, quote
from goodgain.formats.text import QRELS_TEXT, RUN_TEXT, is_row
from goodgain.schema import QRELS, RUN, Table

__all__ = ["Header", "find_header", "read_delimited"]

_SEPARATORS = {".csv": ",", ".tsv": "\t"}
_BOM = b"\xef\xbb\xbf"
_NUMBERS = ("rank", "score", "relevance")


class Header(NamedTuple):
    """What stands between the values of a file, and the names of its columns."""

    separator: str
    names: list[str]


def find_header(content: Content, path: Path, columns: Columns) -> Header | None:
    """Return the header of a .csv or .tsv file; None for other files, and where the first line is one of TREC text.

    In a .tsv file, where TREC text may stand too, some name of the header must be known.
    """
    separator = _SEPARATORS.get(Path(plain_name(path.name)).suffix.lower())
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
    try:
        names = [name.strip() for name in next(csv.reader([line], delimiter=separator))]
    except csv.Error as error:  # a carriage return in a name, a name of more than 128 KiB
        raise InputError(f"{path}: the header cannot be read ({error}); write the names of the columns again") from None
    if separator == "\t" and not any(
        find_columns(names, table, columns, label=str(path)).names for table in (RUN, QRELS)
    ):
        return None
    return Header(separator, names)


def read_delimited(
    content: Content, header: Header, path: Path, table: Table, *, errors: str, columns: Columns
) -> OpenFrame:
    """Read the columns of a file with a header. White space around values does not belong to them.

    Raises:
        InputError: the file cannot be read, lacks a column, or has a text where a number belongs.
    """
    for name in find_columns(header.names, table, columns, label=str(path)).names:
        if header.names.count(name) > 1:
            raise InputError(f"{path}: two columns have the name {name!r}; give each a name of its own")
    text = content.data.removeprefix(_BOM).lstrip(b"\r\n")
    try:
        frame = pl.read_csv(text, separator=header.separator, infer_schema=False)
    except pl.exceptions.PolarsError as error:
        raise InputError(
            f"{path}: is not readable by its header ({str(error).splitlines()[0]}); give every line as many values as "
            "the header has names, in UTF-8"
        ) from error
    frame.columns = [name.strip() for name in frame.columns]
    values = pl.all().str.strip_chars()
    frame = frame.with_columns(pl.when(values != "").then(values)).filter(~pl.all_horizontal(pl.all().is_null()))
    try:
        opened = open_frame(frame, table, columns=columns)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    label = f"{path}, counting rows below its header from 0"
    in_memory = _read_numbers(opened.frame.to_native(), label, errors)
    return opened._replace(frame=nw.from_native(in_memory), rows=FrameRows(label))


def _read_numbers(frame: pl.DataFrame, label: str, errors: str) -> pl.DataFrame:
    """Read the columns of numbers; with `errors="skip"`, null where there is none."""
    for name in (name for name in _NUMBERS if name in frame.columns):
        text, number = frame.get_column(name), frame.get_column(name).cast(pl.Float64, strict=False)
        wrong = (number.is_null() & text.is_not_null()).arg_true()
        if len(wrong) and errors == "raise":
            raise InputError(
                f"{label}, row {wrong[0]} has the {name} {quote(text[wrong[0]])}, which is not a number; correct the row, "
                "or leave such rows out with errors='skip'"
            )
        frame = frame.with_columns(number)
    return frame
