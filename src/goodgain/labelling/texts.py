"""Queries and texts of documents: tables of an id and a text."""

from __future__ import annotations

import io
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import narwhals as nw
import polars as pl

from goodgain.errors import InputError
from goodgain.files.content import read_bytes
from goodgain.files.json_text import NotJSONError, loads
from goodgain.files.opening import container, plain_name
from goodgain.formats.row_origins import quote
from goodgain.ranking.engines import collect

__all__ = ["collect_frame", "read_queries", "read_table", "read_texts"]

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
    label = "the queries"
    if isinstance(source, (str, os.PathLike)):
        label = str(source)
        if not Path(source).exists() and (found := _load_ir_dataset(label)) is not None:
            frame = found
        else:
            frame = read_table(Path(source), ("query_id", "text", "description"))
    elif isinstance(source, Mapping):
        frame = pl.DataFrame(
            {"query_id": list(map(str, source)), "text": list(source.values())},
            schema_overrides={"query_id": pl.String},
        )
    else:
        frame = collect_frame(source, label)
    name = next((name for name in _QUERY_TEXT if name in frame.columns), None)
    if "query_id" not in frame.columns or name is None:
        raise InputError(f"{label}: needs the columns query_id and text; it has {', '.join(frame.columns)}")
    description = pl.col("description") if "description" in frame.columns else pl.lit(None, pl.String)
    texts = frame.select("query_id", text=name, description=description).cast(pl.String)
    return _check_ids(texts, "query_id", label)


def read_texts(source: Any) -> pl.DataFrame:
    """Read texts of documents: a file .jsonl, .csv, .tsv, .parquet, a frame, or {doc_id: text}.

    Returns:
        doc_id, text.

    Raises:
        InputError: the source cannot be read, a document has no text, or two texts.
    """
    label = "the texts"
    if isinstance(source, (str, os.PathLike)):
        label = str(source)
        frame = read_table(Path(source), ("doc_id", "text"))
    elif isinstance(source, Mapping):
        frame = pl.DataFrame({"doc_id": list(map(str, source)), "text": list(source.values())})
    else:
        frame = collect_frame(source, label)
    missing = [name for name in ("doc_id", "text") if name not in frame.columns]
    if missing:
        raise InputError(f"{label}: needs the columns doc_id and text; it has {', '.join(frame.columns)}")
    return _check_ids(frame.select("doc_id", "text").cast(pl.String), "doc_id", label)


def read_table(path: Path, columns: tuple[str, ...] = ()) -> pl.DataFrame:
    """Read a table of texts by the ending of its name: .tsv, .csv, JSON Lines, Parquet.

    Args:
        path: the file.
        columns: the columns of .tsv, which has no header unless its first cell is the first of these names.

    Raises:
        InputError: the file cannot be read, or its name ends otherwise.
    """
    suffix = Path(plain_name(path.name)).suffix.lower()
    try:
        if suffix == ".tsv":
            return _read_tab_separated(bytes(read_bytes(path).data), columns, path)
        if suffix == ".csv":
            return pl.read_csv(io.BytesIO(read_bytes(path).data), infer_schema=False)
        if container(path) == "jsonl":
            return _read_json_lines(path)
        if container(path) == "parquet":
            return pl.read_parquet(io.BytesIO(read_bytes(path).data))
    except (pl.exceptions.PolarsError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read ({str(error).splitlines()[0]}); write it again as UTF-8") from error
    raise InputError(f"{path}: a table of texts ends in .tsv, .csv, .jsonl or .parquet; rename or convert the file")


def _read_tab_separated(content: bytes, columns: tuple[str, ...], path: Path) -> pl.DataFrame:
    rows = []
    for number, line in enumerate(content.decode("utf-8-sig").split("\n"), start=1):
        fields = line.rstrip("\r").split("\t")
        if not line.strip() or (number == 1 and fields[0] == columns[0]):
            continue
        if not 2 <= len(fields) <= len(columns):
            raise InputError(
                f"{path}, line {number}: has {len(fields)} fields with tabs between; give {columns[0]} and text"
            )
        rows.append([*fields, *[None] * (len(columns) - len(fields))])
    return pl.DataFrame(rows, schema=dict.fromkeys(columns, pl.String), orient="row")


def _read_json_lines(path: Path) -> pl.DataFrame:
    rows = []
    for number, line in enumerate(read_bytes(path).lines(), start=1):
        if not line.strip():
            continue
        try:
            row = loads(line)
        except NotJSONError as error:
            raise InputError(f"{path}, line {number}: is not JSON ({error}); write the file again") from None
        if not isinstance(row, dict):
            raise InputError(f"{path}, line {number}: is not an object with an id and a text; write the file again")
        rows.append({name: None if value is None else str(value) for name, value in row.items()})
    names = list(dict.fromkeys(name for row in rows for name in row))
    return pl.DataFrame(
        {name: [row.get(name) for row in rows] for name in names}, schema=dict.fromkeys(names, pl.String)
    )


def collect_frame(source: Any, label: str) -> pl.DataFrame:
    """Return a frame of any engine as one of Polars.

    Raises:
        InputError: it is not a frame.
    """
    try:
        return collect(nw.from_native(source))
    except TypeError:
        raise InputError(f"{label} are a {type(source).__name__}; give a file, a data frame or a dict") from None


def _check_ids(frame: pl.DataFrame, name: str, label: str) -> pl.DataFrame:
    empty = frame.filter(
        pl.any_horizontal(pl.col(name, "text").is_null() | (pl.col(name, "text").str.strip_chars() == ""))
    )
    if empty.height:
        raise InputError(f"{label}: {name} {quote(str(empty.item(0, name)))} has no text; write it, or remove the row")
    frame = frame.unique(maintain_order=True)
    twice = frame.filter(pl.col(name).is_duplicated())
    if twice.height:
        raise InputError(f"{label}: {name} {quote(twice.item(0, name))} has two texts; keep one")
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
