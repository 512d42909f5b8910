"""Reading files: TREC text by its fields; Parquet, Arrow IPC, JSON Lines, CSV and TSV by the names of their columns."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import narwhals as nw
import polars as pl

from goodgain.errors import InputError
from goodgain.files.containers import read_container
from goodgain.files.content import read_bytes, read_lines
from goodgain.files.json_lines import read_json_lines
from goodgain.files.opening import container
from goodgain.files.row_origins import FrameRows
from goodgain.formats.column_names import Columns, FoundColumns, find_columns
from goodgain.formats.delimited import find_header, read_delimited
from goodgain.formats.frames import OpenFrame, open_frame
from goodgain.formats.text import QRELS_TEXT, RUN_TEXT, read_text, warn_of_passed_over
from goodgain.schema import QRELS, Table

__all__ = ["read_file"]


def read_file(path: Path, table: Table, *, errors: str, columns: Columns) -> tuple[OpenFrame, bool]:
    """Read the columns of a file, and tell whether it is TREC text, whose lines are checked while they are read.

    `columns` has the user's names of columns.
    """
    if container(path) != "text":
        return _read_table(path, table, errors=errors, columns=columns), False
    content = read_lines(path)
    header = find_header(content, path, columns)
    if header is not None:
        return read_delimited(content, header, path, table, errors=errors, columns=columns), False
    text_table = QRELS_TEXT if table is QRELS else RUN_TEXT
    frame, lines, passed_over = read_text(content, text_table, label=str(path), errors=errors)
    warn_of_passed_over(str(path), [passed_over])
    return OpenFrame(nw.from_native(frame), lines, FoundColumns({})), True


def _read_table(path: Path, table: Table, *, errors: str, columns: Columns) -> OpenFrame:
    kind = container(path)
    if kind == "jsonl":
        return _read_json_lines(path, table, errors=errors, columns=columns)
    frame = read_container(read_bytes(path), path, kind)
    try:
        opened = open_frame(frame, table, columns=columns)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    return opened._replace(rows=FrameRows(str(path)))


def _read_json_lines(path: Path, table: Table, *, errors: str, columns: Columns) -> OpenFrame:
    def find(names: Iterable[str]) -> FoundColumns:
        return find_columns(names, table, columns, label=str(path))

    types = {name: _JSON_TYPES.get(name, pl.String) for name in table.columns}
    frame, rows, names = read_json_lines(
        read_lines(path), path, types, required=table.required, rename=lambda keys: find(keys).names, errors=errors
    )
    if frame.is_empty():
        frame = pl.DataFrame(schema=types)
    return OpenFrame(nw.from_native(frame), rows, find(names))


#: In JSON Lines ranks may be floats, as pandas makes them where one is missing; iterations may be words.
_JSON_TYPES = dict.fromkeys(("rank", "score", "relevance"), pl.Float64)
