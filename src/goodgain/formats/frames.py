"""Frames, dicts and named tuples read as a table of ours, with columns of the right types."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import narwhals as nw
import polars as pl

from goodgain.errors import InputError
from goodgain.files.row_origins import FrameRows, RowSource
from goodgain.formats.column_names import Columns, FoundColumns, find_columns
from goodgain.ranking.engines import collect
from goodgain.schema import QRELS, Table

__all__ = ["Frame", "OpenFrame", "cast_columns", "check_columns_found", "open_frame", "to_nested_dict"]

Frame = nw.DataFrame[Any] | nw.LazyFrame[Any]

_TEXT = ("query_id", "doc_id", "tag")


class OpenFrame(NamedTuple):
    """The columns of a source, before their rows are checked.

    Attributes:
        frame: the columns of the table that it has, as they stand, by their names here.
        rows: how errors name its rows.
        columns: what its columns were called.
    """

    frame: Frame
    rows: RowSource
    columns: FoundColumns


def open_frame(source: object, table: Table, *, columns: Columns | None = None) -> OpenFrame:
    """Open a frame, a dict of dicts or named tuples.

    Frames in memory come as Polars; lazy ones (Polars, DuckDB, PySpark ...) stay where they are. `columns` has the
    user's names of columns.
    """
    if isinstance(source, Mapping):
        return _open(nw.from_native(_read_dict(source, table)), table, {}, f"the {table.name} dict")
    columns = columns or {}
    try:
        native = nw.from_native(source, pass_through=True)
    except Exception as error:  # narwhals' own, for duplicate column names
        raise InputError(
            f"the {table.name} frame cannot be used ({error}); give each column a name of its own"
        ) from error
    if isinstance(native, (nw.LazyFrame, nw.DataFrame)):
        return _open(native, table, columns, f"the {table.name} frame")
    if isinstance(source, Iterable):
        frame, found = _read_tuples(source, table, columns)
        return OpenFrame(nw.from_native(frame), FrameRows(f"the {table.name}"), found)
    raise InputError(
        f"{type(source).__name__} is not {'qrels' if table is QRELS else 'a run'}: "
        "give a path, a data frame, named tuples or a dict of dicts"
    )


def _open(frame: Any, table: Table, columns: Columns, label: str) -> OpenFrame:
    names = frame.collect_schema().names()
    found = find_columns(names, table, columns, label=label)
    check_columns_found(names, table, found)
    selected = frame.select([nw.col(name).alias(ours) for name, ours in found.names.items()])
    if isinstance(selected, nw.DataFrame):
        selected = _in_polars(selected, table)
    return OpenFrame(selected, FrameRows(label), found)


def _in_polars(frame: nw.DataFrame[Any], table: Table) -> nw.DataFrame[Any]:
    try:
        return nw.from_native(frame.to_polars())
    except (Exception, pl.exceptions.PanicException) as error:  # Arrow's or Polars' own, for columns that mix types
        raise InputError(
            f"the {table.name} frame mixes types in a column ({error}); give each column one type"
        ) from error


def check_columns_found(names: Iterable[str], table: Table, found: FoundColumns, *, label: str | None = None) -> None:
    """Raise `InputError` where a source with these columns lacks one that the table must have."""
    missing = [name for name in table.required if name not in found.names.values()]
    if missing:
        raise InputError(
            f"{f'{label}:' if label else f'the {table.name} frame'} has no column {', '.join(map(repr, missing))} (it has "
            f"{', '.join(names) or 'none'}); rename its columns to {', '.join(table.columns)}, or pass "
            f"columns={{'its name': {missing[0]!r}}}"
        )


def _read_dict(source: Mapping[Any, Any], table: Table) -> pl.DataFrame:
    value_name, value_type = ("relevance", "label") if table is QRELS else ("score", "score")
    for query_id, documents in source.items():
        if not isinstance(documents, Mapping):
            raise InputError(
                f"the {table.name} dict has a {type(documents).__name__} for query {query_id!r}; "
                f"give {{query_id: {{doc_id: {value_type}}}}}"
            )
    query_ids = [query_id for query_id, documents in source.items() for _ in documents]
    doc_ids = [doc_id for documents in source.values() for doc_id in documents]
    values = [value for documents in source.values() for value in documents.values()]
    return _columns({"query_id": query_ids, "doc_id": doc_ids, value_name: values}, table)


def _read_tuples(source: Iterable[Any], table: Table, columns: Columns) -> tuple[pl.DataFrame, FoundColumns]:
    rows = iter(source)
    first = next(rows, None)
    if first is None:
        return pl.DataFrame(schema=dict.fromkeys(table.required, pl.Null)), FoundColumns({})
    fields = getattr(first, "_fields", None)
    if isinstance(source, str):
        raise InputError(f"the {table.name} is a text, {source[:80]!r}; read a file with goodgain.read_{table.name}")
    if fields is None:
        raise InputError(
            f"the {table.name} holds a {type(first).__name__}, not a named tuple; give named tuples with "
            f"{', '.join(table.required)}, a data frame, a dict of dicts, or a path"
        )
    found = find_columns(fields, table, columns, label=f"the {table.name}")
    everything = list(itertools.chain([first], rows))
    if any(not hasattr(row, name) for row in everything for name in found.names):
        known = ", ".join(found.names)
        raise InputError(f"the {table.name} mixes named tuples of different fields; give every row {known}")
    frame = _columns({ours: [getattr(row, name) for row in everything] for name, ours in found.names.items()}, table)
    check_columns_found(fields, table, found)
    return frame, found


def _columns(columns: dict[str, list[Any]], table: Table) -> pl.DataFrame:
    series = []
    for name, values in columns.items():
        try:
            series.append(pl.Series(name, values, strict=True))
        except UnicodeEncodeError:
            raise InputError(f"the {table.name} has a {name} that is not valid Unicode text; correct it") from None
        except (TypeError, OverflowError, pl.exceptions.PolarsError):
            numbers = all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in values)
            if not numbers:
                kinds = sorted({type(value).__name__ for value in values})
                raise InputError(
                    f"the {table.name} mixes {' and '.join(kinds)} in {name}; give every row the same type"
                ) from None
            try:
                series.append(pl.Series(name, [float(value) for value in values]))
            except OverflowError:
                raise InputError(f"the {table.name} has a {name} beyond all floats; correct it") from None
    return pl.DataFrame(series)


def to_nested_dict(frame: pl.DataFrame, value: str) -> dict[str, dict[str, Any]]:
    """Return {query_id: {doc_id: value}}, queries in the order of their first rows.

    >>> to_nested_dict(pl.DataFrame({"query_id": ["q", "q"], "doc_id": ["a", "b"], "score": [2.0, 1.0]}), "score")
    {'q': {'a': 2.0, 'b': 1.0}}
    """
    queries = frame.get_column("query_id").rle().struct.unnest()
    if not queries.get_column("value").is_unique().all():
        first = frame.with_row_index("row").select(pl.col("row").min().over("query_id")).to_series()
        return to_nested_dict(frame.sort(first, maintain_order=True), value)
    doc_ids, values = frame.get_column("doc_id").to_list(), frame.get_column(value).to_list()
    ends = queries.get_column("len").cum_sum()
    return {
        query_id: dict(zip(doc_ids[end - length : end], values[end - length : end], strict=True))
        for length, query_id, end in zip(queries.get_column("len"), queries.get_column("value"), ends, strict=True)
    }


def cast_columns(frame: Frame, table: Table) -> Frame:
    """Cast ids to text, and scores and labels to floats.

    Raises:
        InputError: a column cannot be cast without loss.
    """
    schema = frame.collect_schema()
    casts = []
    for name, found in schema.items():
        wanted = table.columns[name]
        text_wanted = name in _TEXT or (name == "iteration" and wanted == nw.String)
        if text_wanted and (found.is_integer() or isinstance(found, (nw.Categorical, nw.Enum))):
            casts.append(nw.col(name).cast(nw.String))
        elif found == nw.Unknown and _has_nulls_only(frame, name):
            casts.append(nw.col(name).cast(nw.String if text_wanted else wanted))
        elif text_wanted and found != nw.String:
            raise InputError(
                f"the {table.name} frame has {found} in {name}, where ids are text; convert the column to text"
            )
        elif name in ("score", "relevance") and found.is_numeric():
            casts.append(nw.col(name).cast(nw.Float64))
        elif name in ("score", "relevance", "rank") and not found.is_numeric():
            raise InputError(f"the {table.name} frame has {found} in {name}; convert the column to numbers")
        elif name == "iteration" and wanted == nw.Int64:
            casts.extend(_iteration_cast(found))
    return frame.with_columns(*casts) if casts else frame


def _has_nulls_only(frame: Frame, name: str) -> bool:
    return not collect(frame.select(nw.col(name).count())).item()


def _iteration_cast(found: Any) -> list[nw.Expr]:
    if found.is_integer() or found == nw.String:
        return []
    if isinstance(found, (nw.Categorical, nw.Enum)):
        return [nw.col("iteration").cast(nw.String)]
    if found.is_float():  # pandas makes whole numbers floats where one is missing: "3.0" is the number 3
        number = nw.col("iteration").cast(nw.Float64)
        in_range = number.is_finite() & (number.abs() < 2**53)
        safe = nw.when(in_range).then(number).otherwise(nw.lit(-0.5))  # so that every row can be cast
        is_whole = in_range & (safe.cast(nw.Int64).cast(nw.Float64) == number)
        return [
            nw.when(is_whole)
            .then(safe.cast(nw.Int64).cast(nw.String))
            .otherwise(number.cast(nw.String))
            .alias("iteration")
        ]
    raise InputError(f"the run frame has {found} in iteration; number the iterations")
