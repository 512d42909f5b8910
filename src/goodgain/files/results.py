"""Reads and writes files of results: Parquet, or JSON Lines with ids and fields as plain objects."""

import os
from pathlib import Path
from typing import Any

import narwhals as nw
import polars as pl

from goodgain.errors import InputError
from goodgain.files.bad_rows import check_rows, lacks
from goodgain.files.opening import check_fork, container, make_path
from goodgain.files.table_reading import cast_columns, read_table
from goodgain.files.writing import write_frame
from goodgain.schema import DEDUPLICATED, RESULTS


def check_results_name(path: Path) -> None:
    if container(path) not in ("parquet", "jsonl"):
        raise InputError(f"{path}: results are written as .parquet or .jsonl; use one of these endings")


def write_results(results: pl.DataFrame, path: str | os.PathLike[str]) -> None:
    """Write a results frame to a .parquet or .jsonl file, whole or not at all.

    Raises:
        InputError: the name has another ending, or the file cannot be written.

    >>> import pathlib, tempfile
    >>> import goodgain as gg
    >>> import polars as pl
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "results.parquet"
    >>> gg.write_results(pl.DataFrame({"query_id": "q", "iteration": [1], "search": 1, "rank": 1, "doc_id": ["a"]}), path)
    >>> pl.read_parquet(path).item(0, "doc_id")
    'a'
    """
    check_results_name(Path(path))
    write_frame(results, Path(path))


def open_results(results: Any) -> Any:
    """Return results; read a path first."""
    check_fork()
    return read_results(results) if isinstance(results, (str, os.PathLike)) else results


def read_results(path: str | os.PathLike[str]) -> pl.DataFrame:
    """Read a results frame that was written as .parquet or .jsonl (also .gz or .zst).

    Raises:
        InputError: the file has another ending, lacks a column, or has a column of another type. Or a row has no query, no
            iteration or a value of another type: the error names the row.

    >>> import pathlib, tempfile
    >>> import goodgain as gg
    >>> import polars as pl
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "results.jsonl"
    >>> found = {"query_id": "q", "iteration": [1, 2], "search": 1, "rank": 1, "doc_id": ["a", "b"]}
    >>> gg.write_results(pl.DataFrame(found), path)
    >>> gg.read_results(path).select("iteration", "doc_id").rows()
    [(1, 'a'), (2, 'b')]
    """
    check_fork()
    path = make_path(path, "the file of the results")
    check_results_name(path)
    types = RESULTS.polars | DEDUPLICATED.polars
    is_lines = container(path) == "jsonl"
    frame, rows, names = read_table(path, types, find=lambda names: {name: name for name in names})
    if is_lines:
        floats = [pl.col(name).fill_nan(None) for name, dtype in frame.schema.items() if dtype == pl.Float64]
        whole = pl.concat([pl.DataFrame(schema=RESULTS.polars), frame.with_columns(floats)], how="diagonal")
        frame = whole.select(name for name in types if name in whole.columns)
    missing = [name for name in RESULTS.required if name not in names] if names or not is_lines else []
    if missing:
        raise InputError(f"{path}: lacks the column {', '.join(missing)}; give what goodgain.read_traces returns")
    cast = cast_columns(nw.from_native(frame), RESULTS.columns, str(path))
    problems = [lacks("query_id"), (nw.col("iteration").is_null(), "has no iteration")]
    for name, dtype in cast.schema.items():
        if dtype.is_float() and RESULTS.columns.get(name) == nw.Int64:
            number = nw.col(name)
            wrong = ~number.is_finite() | (number != number.round())
            problems.append((wrong, f"has the {name} {{{name}}}, which is not a whole number"))
    return check_rows(cast, rows, problems)[0].to_native()  # type: ignore[no-any-return]  # a Polars frame, as given
