"""Reads small tables of ids and texts: CSV, TSV, JSON Lines, Parquet."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl

from goodgain.errors import InputError
from goodgain.files.cells import read_cells
from goodgain.files.containers import read_container
from goodgain.files.content import read_bytes, read_lines
from goodgain.files.json_lines import read_json_lines
from goodgain.files.opening import container, plain_name
from goodgain.schema import BLANKS

__all__ = ["check_text", "read_table"]


def read_table(path: Path, columns: tuple[str, ...] = (), *, others: tuple[str, ...] = ()) -> pl.DataFrame:
    """Read a table of texts by the ending of its name: .tsv, .csv, JSON Lines, Parquet.

    Args:
        path: the file.
        columns: the columns of .tsv, which has no header unless its first cell is the first of these names; none: the
            first line is the header.
        others: more columns that are read of JSON Lines, where they are there.

    Raises:
        InputError: the file cannot be read, or its name ends otherwise.
    """
    suffix = Path(plain_name(path.name)).suffix.lower()
    try:
        if suffix == ".tsv" and not columns:
            return _read_csv(path, "\t")
        if suffix == ".tsv":
            return _read_tab_separated(bytes(read_bytes(path).data), columns, path)
        if suffix == ".csv":
            return _read_csv(path, ",")
        if container(path) == "jsonl":
            types = dict.fromkeys((*columns, *others), pl.String)
            return read_json_lines(read_lines(path), path, types).frame
        if container(path) == "parquet":
            return read_container(read_bytes(path), path, "parquet")
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, UnicodeDecodeError) as error:
        reason = next(iter(str(error).splitlines()), type(error).__name__)[:200]
        raise InputError(f"{path}: cannot be read ({reason}); write it again as UTF-8") from error
    raise InputError(f"{path}: a table of texts ends in .tsv, .csv, .jsonl or .parquet; rename or convert the file")


def _read_csv(path: Path, separator: str) -> pl.DataFrame:
    names, frame, _ = read_cells(read_lines(path), separator, path, errors=None)
    frame.columns = names
    return frame


def _read_tab_separated(content: bytes, columns: tuple[str, ...], path: Path) -> pl.DataFrame:
    rows = []
    for number, line in enumerate(content.decode("utf-8-sig").split("\n"), start=1):
        fields = line.rstrip("\r").split("\t")
        fields[0] = fields[0].strip(BLANKS)
        if not line.strip(BLANKS) or (number == 1 and fields[0] == columns[0]):
            continue
        if not 2 <= len(fields) <= len(columns):
            raise InputError(
                f"{path}, line {number}: has {len(fields)} fields with tabs between; give {columns[0]} and text"
            )
        rows.append([*fields, *[None] * (len(columns) - len(fields))])
    return pl.DataFrame(rows, schema=dict.fromkeys(columns, pl.String), orient="row")


def check_text(value: Any, at: str) -> str:
    """Return a text, or a number as text.

    Raises:
        InputError: it is neither, or has half a character (a lone surrogate).
    """
    if not isinstance(value, (str, int, float)):
        raise InputError(f"{at} has a {type(value).__name__} where a text is needed; write one text")
    text = str(value)
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InputError(f"{at} has half a character (a lone surrogate) in its text; write the text in UTF-8") from None
    return text
