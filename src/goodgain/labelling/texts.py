"""Queries and texts of documents: tables of an id and a text."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import narwhals as nw
import polars as pl

from goodgain.errors import InputError
from goodgain.files.content import read_lines
from goodgain.files.row_checks import cast_texts, check_rows
from goodgain.files.row_origins import FrameRows, RowSource, TextLines, quote
from goodgain.files.tables import read_frame, read_table, separator_by_name
from goodgain.schema import BLANKS

__all__ = ["read_queries", "read_texts"]

#: Other names of the column with the text of a query.
_QUERY_TEXT = ("text", "query", "title")


def read_queries(source: Any) -> pl.DataFrame:
    """Read what was asked.

    Args:
        source: a file .tsv (query_id, text[, description], without a header) or .jsonl, .csv, .parquet with columns of these
            names; {query_id: text}; a frame; or the id of an ir_datasets data set.

    Returns:
        query_id, text, description (null where there is none).

    Raises:
        InputError: the source cannot be read, a query has no text, or two texts.

    >>> read_queries({"q1": "when was the dam built"}).rows()
    [('q1', 'when was the dam built', None)]
    """
    columns = ("query_id", "text", "description")
    rows: RowSource
    is_path = isinstance(source, (str, os.PathLike))
    if is_path and not Path(source).exists() and (data_set := _load_ir_dataset(str(source))) is not None:
        frame, rows = data_set, FrameRows(str(source))
    else:
        frame, rows = _open(source, columns, "the queries", others=_QUERY_TEXT)
    label = rows.label
    name = next((name for name in _QUERY_TEXT if name in frame.columns), None)
    if "query_id" not in frame.columns or name is None:
        raise InputError(
            f"{label}: needs the columns query_id and text; it has {', '.join(frame.columns) or 'neither'}"
        )
    description = pl.col("description") if "description" in frame.columns else pl.lit(None, pl.String)
    texts = cast_texts(frame.select("query_id", text=name, description=description), columns, label)
    return _check_ids(texts, "query_id", rows)


def read_texts(source: Any) -> pl.DataFrame:
    """Read texts of documents: a file .jsonl, .csv, .tsv, .parquet, a frame, or {doc_id: text}.

    Returns:
        doc_id, text.

    Raises:
        InputError: the source cannot be read, a document has no text, or two texts.
    """
    columns = ("doc_id", "text")
    frame, rows = _open(source, columns, "the texts")
    if not set(columns) <= set(frame.columns):
        raise InputError(
            f"{rows.label}: needs the columns doc_id and text; it has {', '.join(frame.columns) or 'neither'}"
        )
    return _check_ids(cast_texts(frame.select(columns), columns, rows.label), "doc_id", rows)


def _open(
    source: Any, columns: tuple[str, ...], label: str, *, others: tuple[str, ...] = ()
) -> tuple[pl.DataFrame, RowSource]:
    """Return a table of texts, and how errors name its rows.

    TSV has no header unless its first value is the first of these columns, of which it has two or more.
    """
    if isinstance(source, (str, os.PathLike)):
        path = Path(source)
        if separator_by_name(path) == "\t":
            return _read_tab_separated(path, columns)
        table = read_table(path, dict.fromkeys((*columns, *others), pl.String))
        return table.frame, table.rows
    if isinstance(source, Mapping):
        return _read_dict(source, columns[0], label), FrameRows(label)
    return read_frame(source, label, (*columns, *others)), FrameRows(label)


def _read_tab_separated(path: Path, columns: tuple[str, ...]) -> tuple[pl.DataFrame, RowSource]:
    content = read_lines(path)
    try:
        text = content.data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: cannot be read ({error}); write it again as UTF-8") from error
    rows, lines = [], []
    for number, line in enumerate(text.split("\n"), start=1):
        fields = line.rstrip("\r").split("\t")
        fields[0] = fields[0].strip(BLANKS)
        if not line.strip(BLANKS) or (number == 1 and fields[0] == columns[0]):
            continue
        if not 2 <= len(fields) <= len(columns):
            raise InputError(
                f"{path}, line {number}: has {len(fields)} fields with tabs between; give {columns[0]} and text"
            )
        rows.append([*fields, *[None] * (len(columns) - len(fields))])
        lines.append(number)
    frame = pl.DataFrame(rows, schema=dict.fromkeys(columns, pl.String), orient="row")
    return frame, TextLines(str(path), content, lines)


def _read_dict(source: Mapping[Any, Any], name: str, label: str) -> pl.DataFrame:
    """Return a dict of ids and texts as a frame.

    Raises:
        InputError: a value is not a text, or is one that no file can hold.
    """
    texts = [
        None if text is None else _check_text(text, f"{label}: {name} {quote(str(key))}")
        for key, text in source.items()
    ]
    ids = [_check_text(key, f"{label}: {name} {quote(str(key))}") for key in source]
    return pl.DataFrame({name: ids, "text": texts}, schema={name: pl.String, "text": pl.String})


def _check_ids(frame: pl.DataFrame, name: str, rows: RowSource) -> pl.DataFrame:
    blank = nw.col("text").is_null() | (nw.col("text").str.strip_chars() == "")
    no_id = nw.col(name).is_null() | (nw.col(name).str.strip_chars(BLANKS) == "")
    problems = [(no_id, f"has no {name}"), (blank, "has no text")]
    check_rows(nw.from_native(frame, eager_only=True), rows, problems)
    frame = frame.unique(maintain_order=True)
    twice = frame.filter(pl.col(name).is_duplicated())
    if twice.height:
        raise InputError(f"{rows.label}: {name} {quote(twice.item(0, name))} has two texts; keep one")
    return frame


def _load_ir_dataset(name: str) -> pl.DataFrame | None:
    """Return the queries of a data set of ir_datasets; None where the library or the data set is not there."""
    try:
        import ir_datasets

        dataset = ir_datasets.load(name)
    except (ImportError, KeyError):
        return None
    if not dataset.has_queries():
        raise InputError(f"{name}: this ir_datasets data set has no queries; give one that has, or a file")
    rows = []
    for query in dataset.queries_iter():
        fields = query._asdict()
        text = fields.get("text") or fields.get("title") or query.default_text()
        rows.append((query.query_id, text, fields.get("description")))
    return pl.DataFrame(rows, schema=["query_id", "text", "description"], orient="row")


def _check_text(value: Any, at: str) -> str:
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
