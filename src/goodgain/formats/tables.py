"""Reading files: TREC text by its fields; Parquet, Arrow IPC, JSON Lines, CSV and TSV by the names of their columns."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import narwhals as nw
import polars as pl

from goodgain.errors import InputError
from goodgain.files.containers import RowFrames, read_container
from goodgain.files.content import Content, read_bytes, read_lines
from goodgain.files.opening import container
from goodgain.files.row_origins import FrameRows, SkippedRows, number_lines, quote
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
        frame, rows, found = _read_json_lines(read_lines(path), path, table, columns, skip=errors == "skip")
        return OpenFrame(open_frame(frame, table).frame, rows, found)
    frame = read_container(read_bytes(path), path, kind)
    try:
        opened = open_frame(frame, table, columns=columns)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    return opened._replace(rows=FrameRows(str(path)))


def _read_json_lines(
    content: Content, path: Path, table: Table, columns: Columns, *, skip: bool
) -> tuple[pl.DataFrame, FrameRows, FoundColumns]:
    """Read JSON Lines value by value: a reader that infers types would turn an id 7 among texts into null."""
    types = {name: dtype for name, dtype in _KNOWN_TYPES.items() if name in table.columns}
    objects = RowFrames(types)
    given: set[str] = set()
    lines: list[int] = []
    keys: dict[str, None] = {}
    skipped = SkippedRows()
    names_of: dict[tuple[str, ...], Columns] = {}
    for number, line in number_lines(content):
        value, wrong = _json_object(line)
        if not wrong:
            keys.update(dict.fromkeys(value))
            own = tuple(value)
            if own not in names_of:
                names_of[own] = find_columns(own, table, columns, label=str(path)).names
            value, wrong = _read_columns(value, table, names_of[own])
        if not wrong:
            objects.add([value.get(name) for name in types])
            given.update(value)
            lines.append(number)
        elif skip:
            skipped.add(f"line {number} ({wrong})")
        else:
            place = f"{path}, line {number}: {quote(line.decode('utf-8', 'replace'))}"
            raise InputError(f"{place} {wrong}; correct the line, or leave such lines out with errors='skip'")
    skipped.report(str(path))
    frame = objects.to_frame()
    frame = frame.select(name for name in table.columns if frame.is_empty() or name in table.required or name in given)
    rows = FrameRows(f"{path}, counting lines that are not blank", None if not skipped.count else lines)
    return frame, rows, find_columns(keys, table, columns, label=str(path))


_KNOWN_TYPES: dict[str, Any] = {
    "query_id": pl.String,
    "iteration": pl.String,
    "doc_id": pl.String,
    "rank": pl.Float64,
    "score": pl.Float64,
    "relevance": pl.Float64,
    "tag": pl.String,
}


def _json_object(line: bytes) -> tuple[dict[str, Any], str]:
    """Return the object of a line, and what is wrong with the line (empty where nothing is)."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return {}, "is not JSON"
    if b"\\ud" in line.lower() and not _is_text(value):
        return {}, "has text that is not valid Unicode"
    if not isinstance(value, dict):
        return {}, "is not a JSON object"
    return value, ""


def _read_columns(value: dict[str, Any], table: Table, names: Columns) -> tuple[dict[str, Any], str]:
    """Return the values of an object by column, ids as text; and what is wrong with them (empty where nothing is)."""
    if any(name != ours for name, ours in names.items()):
        value = {ours: value[name] for name, ours in names.items()}
    missing = [name for name in table.required if name not in value]
    if missing:
        return {}, f"lacks {', '.join(missing)} (a line of {table.name} has {', '.join(table.columns)})"
    known: dict[str, Any] = {}
    for name in table.columns:
        found = value.get(name)
        if found is None:
            continue
        is_number = isinstance(found, (int, float)) and not isinstance(found, bool)
        if _KNOWN_TYPES[name] == pl.String:
            if isinstance(found, float) and found.is_integer() and name == "iteration":
                found = int(found)
            if isinstance(found, bool) or not isinstance(found, (str, int)):  # 2301.10 would become 2301.1
                return {}, f"has {quote(json.dumps(found))} in {name}, which is neither text nor a whole number"
            known[name] = str(found)
        elif not is_number:
            return {}, f"has the {name} {quote(json.dumps(found))}, which is not a number"
        else:
            try:
                known[name] = float(found)
            except OverflowError:
                return {}, f"has a {name} beyond all floats"
    return known, ""


def _is_text(value: Any) -> bool:
    """Tell whether every text in a value can be written as UTF-8: JSON can name a half of a surrogate pair alone."""
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True
