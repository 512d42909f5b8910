"""Reads tables of texts: the texts of documents, and the tables from which the texts of queries are read."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import narwhals as nw
import polars as pl

from goodgain.errors import InputError
from goodgain.files.bad_rows import FrameRows, RowSource, TextLines, check_rows, quote
from goodgain.files.delimited import parse_text
from goodgain.files.opening import read_lines, separator_by_name
from goodgain.files.table_reading import cast_texts, read_frame, read_table
from goodgain.schema import BLANKS


def read_texts(source: Any) -> pl.DataFrame:
    """Read doc_id and text of documents from a .jsonl, .csv, .tsv or .parquet file, a frame, or {doc_id: text}."""
    frame, rows = open_texts(source, ("doc_id", "text"), "the texts")
    return check_texts(frame, {"doc_id": "doc_id", "text": "text"}, rows)


def check_texts(frame: pl.DataFrame, columns: dict[str, str], rows: RowSource) -> pl.DataFrame:
    """Check a table of texts and return one row per id. `columns` maps new names to names in the table."""
    key = next(iter(columns))
    if not {key, columns["text"]} <= set(frame.columns):
        present = ", ".join(frame.columns) or "neither"
        raise InputError(f"{rows.label}: needs the columns {key} and text; it has {present}")
    if frame.is_empty():
        raise InputError(f"{rows.label}: has no row. Write one with {key} and text")
    renamed = frame.select(pl.col(name).alias(new) for new, name in columns.items() if name in frame.columns)
    texts = cast_texts(renamed, [*columns], rows.label)

    lacks_text = nw.col("text").is_null() | (nw.col("text").str.strip_chars() == "")
    lacks_id = nw.col(key).is_null() | (nw.col(key).str.strip_chars(BLANKS) == "")
    problems = [(lacks_id, f"has no {key}"), (lacks_text, "has no text")]
    check_rows(nw.from_native(texts, eager_only=True), rows, problems)
    texts = texts.unique(maintain_order=True)
    repeats = texts.filter(pl.col(key).is_duplicated())
    if repeats.height:
        raise InputError(f"{rows.label}: {key} {quote(repeats.item(0, key))} has two texts. Keep one")
    return texts


def open_texts(source: Any, columns: tuple[str, ...], label: str) -> tuple[pl.DataFrame, RowSource]:
    """Read a table of texts. Return the table and the `RowSource` that names its rows in errors."""
    if isinstance(source, Mapping):
        return _read_texts_of_dict(source, columns[0], label), FrameRows(label)
    if not isinstance(source, (str, os.PathLike)):
        return read_frame(source, label, columns), FrameRows(label)
    path = Path(source)
    if separator_by_name(path) == "\t" and "grade" not in columns:
        return _read_tab_separated(path, columns[:3])
    frame, rows, _ = read_table(path, dict.fromkeys(columns, pl.String))
    return frame, rows


def _read_tab_separated(path: Path, columns: tuple[str, ...]) -> tuple[pl.DataFrame, RowSource]:
    """Read TSV. The first line is a header only if its first field is the name of the first column."""
    content = read_lines(path)
    header = "\t".join(columns).encode()
    table = parse_text(header + b"\n" + content.data, separator="\t", quote_char=None, infer_schema=False)
    if isinstance(table, str):
        reason = table
        for number, line in enumerate(content.lines(), 1):
            if line.count(b"\t") >= len(columns):
                reason = f"line {number} has too many fields"
                break
        names = " and ".join(columns[:2])
        raise InputError(f"{path}: cannot be read ({reason}). Give {names} separated by a tab, in UTF-8")

    key = pl.col(columns[0]).str.strip_chars(BLANKS)
    is_header = (pl.col("line") == 1) & (key == columns[0])
    is_blank = (key.fill_null("") == "") & pl.all_horizontal(pl.col(columns[1:]).is_null())
    rows = table.with_columns(key).with_row_index("line", 1).filter(~is_header & ~is_blank)
    return rows.drop("line"), TextLines(str(path), content, rows.get_column("line").to_list())


def _read_texts_of_dict(source: Mapping[Any, Any], key: str, label: str) -> pl.DataFrame:
    """Return a frame of {key: text}. Numbers become texts, and None stays null. Raise `InputError` for other values."""
    for name, text in source.items():
        place = f"{label}: {key} {quote(str(name))}"
        if text is not None and not isinstance(text, (str, int, float)):
            raise InputError(f"{place} has a {type(text).__name__} where a text is needed. Write one text")
        try:
            f"{name}{text}".encode()
        except UnicodeEncodeError:
            raise InputError(
                f"{place} has half a character (a lone surrogate) in its text. Write it in UTF-8"
            ) from None
    texts = [None if text is None else str(text) for text in source.values()]
    return pl.DataFrame({key: [*map(str, source)], "text": texts}, schema={key: pl.String, "text": pl.String})
