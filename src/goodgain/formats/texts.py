"""Texts of queries and documents, from files, frames, dicts and ir_datasets; and the data sets of ir_datasets."""

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
from goodgain.formats.any_source import exists
from goodgain.schema import BLANKS

#: Names of the column with the text of a query.
_QUERY_TEXT = ("text", "query", "title")
_DESCRIPTION = "description"


def read_queries(source: Any) -> pl.DataFrame:
    """Read query_id, text and description (null if there is none) of the queries.

    The source is a file .tsv (query_id, text[, description], without a header) or .jsonl, .csv, .parquet with columns of
    these names; {query_id: text}; a frame; or the id of an ir_datasets data set.

    >>> read_queries({"q1": "when was the dam built"}).rows()
    [('q1', 'when was the dam built', None)]
    """
    is_id = isinstance(source, (str, os.PathLike)) and not exists(source)
    data_set = load_data_set(str(source)) if is_id else None
    if data_set is not None:
        if not data_set.has_queries():
            raise InputError(f"{source}: this ir_datasets data set has no queries. Give one that has, or a file")
        found = []
        for query in data_set.queries_iter():
            fields = query._asdict()
            text = fields.get("text") or fields.get("title") or query.default_text()
            found.append((query.query_id, text, fields.get("description")))
        source = pl.DataFrame(found, schema=["query_id", "text", "description"], orient="row")
    frame, rows = open_texts(source, ("query_id", "text", _DESCRIPTION, *_QUERY_TEXT), "the queries")
    name = next((name for name in _QUERY_TEXT if name in frame.columns), "text")
    columns = {"query_id": "query_id", "text": name}
    if _DESCRIPTION in frame.columns:
        return _check_texts(frame, columns | {_DESCRIPTION: _DESCRIPTION}, rows)
    return _check_texts(frame, columns, rows).with_columns(description=pl.lit(None, pl.String))


def read_questions(source: Any) -> dict[str, str]:
    """Return query_id -> text on one line, for tables and pictures; queries with equal texts also show their ids."""
    texts = read_queries(source).with_columns(pl.col("text").str.replace_all(r"\s+", " ").str.strip_chars())
    named = pl.when(pl.len().over("text") > 1).then(pl.format("{} ({})", "text", "query_id")).otherwise("text")
    return dict(texts.select("query_id", named).iter_rows())


def read_texts(source: Any) -> pl.DataFrame:
    """Read doc_id and text of documents: a file .jsonl, .csv, .tsv, .parquet, a frame, or {doc_id: text}."""
    frame, rows = open_texts(source, ("doc_id", "text"), "the texts")
    return _check_texts(frame, {"doc_id": "doc_id", "text": "text"}, rows)


def _check_texts(frame: pl.DataFrame, columns: dict[str, str], rows: RowSource) -> pl.DataFrame:
    """Return these columns (new name -> name) as text; a row for each id."""
    key = next(iter(columns))
    if not {key, columns["text"]} <= set(frame.columns):
        there = ", ".join(frame.columns) or "neither"
        raise InputError(f"{rows.label}: needs the columns {key} and text; it has {there}")
    if frame.is_empty():
        raise InputError(f"{rows.label}: has no row. Write one with {key} and text")
    texts = cast_texts(frame.select(pl.col(name).alias(ours) for ours, name in columns.items()), [*columns], rows.label)
    blank = nw.col("text").is_null() | (nw.col("text").str.strip_chars() == "")
    no_id = nw.col(key).is_null() | (nw.col(key).str.strip_chars(BLANKS) == "")
    check_rows(nw.from_native(texts, eager_only=True), rows, [(no_id, f"has no {key}"), (blank, "has no text")])
    texts = texts.unique(maintain_order=True)
    twice = texts.filter(pl.col(key).is_duplicated())
    if twice.height:
        raise InputError(f"{rows.label}: {key} {quote(twice.item(0, key))} has two texts. Keep one")
    return texts


def open_texts(source: Any, columns: tuple[str, ...], label: str) -> tuple[pl.DataFrame, RowSource]:
    """Read a table of texts. Return the table and the `RowSource` that names its rows in errors."""
    if isinstance(source, Mapping):
        return _read_dict(source, columns[0], label), FrameRows(label)
    if not isinstance(source, (str, os.PathLike)):
        return read_frame(source, label, columns), FrameRows(label)
    path = Path(source)
    if separator_by_name(path) == "\t" and "grade" not in columns:
        return _read_tab_separated(path, columns[:3])
    frame, rows, _ = read_table(path, dict.fromkeys(columns, pl.String))
    return frame, rows


def _read_tab_separated(path: Path, columns: tuple[str, ...]) -> tuple[pl.DataFrame, RowSource]:
    """Read TSV without a header, unless the first value is the name of the first column."""
    content = read_lines(path)
    try:
        found = parse_text(
            "\t".join(columns).encode() + b"\n" + content.data, separator="\t", quote_char=None, infer_schema=False
        )
    except pl.exceptions.PolarsError as error:
        wide = (number for number, line in enumerate(content.lines(), 1) if line.count(b"\t") >= len(columns))
        reason = next((f"line {number} has too many fields" for number in wide), str(error).splitlines()[0])
        wanted = " and ".join(columns[:2])
        raise InputError(f"{path}: cannot be read ({reason}). Give {wanted} with a tab between, in UTF-8") from error
    key = pl.col(columns[0]).str.strip_chars(BLANKS)
    is_header = (pl.col("line") == 1) & (key == columns[0])
    is_blank = (key.fill_null("") == "") & pl.all_horizontal(pl.col(columns[1:]).is_null())
    found = found.with_columns(key).with_row_index("line", 1).filter(~is_header & ~is_blank)
    return found.drop("line"), TextLines(str(path), content, found.get_column("line").to_list())


def _read_dict(source: Mapping[Any, Any], key: str, label: str) -> pl.DataFrame:
    """Return a dict of ids and texts as a frame; numbers become text."""
    for one, text in source.items():
        at = f"{label}: {key} {quote(str(one))}"
        if text is not None and not isinstance(text, (str, int, float)):
            raise InputError(f"{at} has a {type(text).__name__} where a text is needed. Write one text")
        try:
            f"{one}{text}".encode()
        except UnicodeEncodeError:
            raise InputError(f"{at} has half a character (a lone surrogate) in its text. Write it in UTF-8") from None
    texts = [None if text is None else str(text) for text in source.values()]
    return pl.DataFrame({key: [*map(str, source)], "text": texts}, schema={key: pl.String, "text": pl.String})


def load_data_set(dataset_id: str) -> Any:
    """Return a data set of ir_datasets; None without the library or such a data set."""
    try:
        import ir_datasets

        return ir_datasets.load(dataset_id)
    except (ImportError, KeyError, ValueError):
        return None


def read_judged_data_set(dataset_id: str) -> Any:
    """Return the judgments of a data set of ir_datasets as named tuples."""
    dataset = load_data_set(dataset_id)
    if dataset is None:
        remedy = "give the path of a readable file"
        raise InputError(f"{quote(dataset_id)}: no such file, and not an ir_datasets id; {remedy}")
    if not dataset.has_qrels():
        raise InputError(f"{dataset_id}: this ir_datasets data set has no qrels; give one that has, or a file")
    try:
        return list(dataset.qrels_iter())
    except Exception as error:  # any error of a download or a parser
        raise InputError(f"{dataset_id}: ir_datasets did not return its qrels ({error}). Give a file") from error
