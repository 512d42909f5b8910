"""Reads the lengths of documents, for measures of what a reader reads."""

from collections.abc import Mapping
from typing import Any

import narwhals as nw
import polars as pl

from goodgain.errors import InputError
from goodgain.files.bad_rows import RowSource, check_rows, lacks, quote
from goodgain.files.table_reading import cast_columns, cast_texts
from goodgain.formats.texts import open_texts
from goodgain.options import spell

_COLUMNS = ("doc_id", "length")


def read_lengths(source: Any) -> pl.DataFrame:
    """Read doc_id and length, one row per document, from a .csv, .tsv, .jsonl or .parquet file, a frame, or {doc_id: length}.

    >>> read_lengths({"a": 120, "b": 80}).rows()
    [('a', 120.0), ('b', 80.0)]
    """
    frame, rows = open_texts(source, _COLUMNS, spell("lengths"))
    if isinstance(source, Mapping):
        frame = frame.rename({"text": "length"})
    if not set(_COLUMNS) <= set(frame.columns):
        there = ", ".join(frame.columns) or "none"
        raise InputError(f"{rows.label}: needs the columns doc_id and length; it has {there}. Rename its columns.")
    if frame.is_empty():
        raise InputError(f"{rows.label}: has no row. Write one with doc_id and length.")

    lengths = _check_lengths(frame.select(_COLUMNS), rows).unique(maintain_order=True)
    twice = lengths.filter(pl.col("doc_id").is_duplicated())
    if twice.height:
        raise InputError(f"{rows.label}: the document {quote(twice.item(0, 'doc_id'))} has two lengths. Keep one.")
    return lengths


def _check_lengths(frame: pl.DataFrame, rows: RowSource) -> pl.DataFrame:
    """Return doc_id and length as text and number. Raise an InputError for a length that is missing, negative or not finite."""
    texts = cast_texts(frame, ["doc_id"], rows.label)
    if texts.schema["length"] == pl.String:  # a text file, or a dict
        number = pl.col("length").str.strip_chars().cast(pl.Float64, strict=False)
        texts = texts.with_columns(number=number)
    else:
        texts = cast_columns(nw.from_native(texts), {"length": nw.Float64()}, rows.label).to_native()
        texts = texts.with_columns(number="length")

    number_of_row = nw.col("number")
    is_wrong = number_of_row.is_null() | ~number_of_row.is_finite() | (number_of_row < 0)
    problem = (is_wrong, "has the length {length}, which is not a number from 0")
    check_rows(nw.from_native(texts, eager_only=True), rows, [lacks("doc_id"), problem])
    return texts.select("doc_id", length="number")
