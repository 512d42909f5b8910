"""Reads and writes files of results: Parquet, or JSON Lines in which ids and fields are plain objects."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import polars as pl

from goodgain.errors import InputError
from goodgain.files.containers import read_container
from goodgain.files.content import read_bytes, read_lines
from goodgain.files.forks import check_fork
from goodgain.files.frames import write_frame
from goodgain.files.json_lines import PAIRS, read_json_lines
from goodgain.files.opening import container, make_path
from goodgain.schema import COSTS, RESULTS

__all__ = ["COSTS_SCHEMA", "RESULTS_SCHEMA", "check_results_name", "open_results", "read_results", "write_results"]

_TYPES: dict[str, Any] = {"String": pl.String, "Int64": pl.Int64, "Float64": pl.Float64, "List": PAIRS}

#: The columns of the results frame as Polars knows them.
RESULTS_SCHEMA: dict[str, Any] = {name: _TYPES[type(dtype).__name__] for name, dtype in RESULTS.columns.items()}

#: The columns of the table of costs as Polars knows them.
COSTS_SCHEMA: dict[str, Any] = {name: _TYPES[type(dtype).__name__] for name, dtype in COSTS.columns.items()}

#: The columns that deduplication adds, which a file need not have.
_DEDUPLICATED: dict[str, Any] = {
    "document": pl.String,
    "duplicate_of": pl.Int64,
    "rule": pl.String,
    "confidence": pl.Float64,
}


def check_results_name(path: Path) -> None:
    """Check that a file's name ends as Parquet or JSON Lines.

    Raises:
        InputError: it ends otherwise.
    """
    if container(path) not in ("parquet", "jsonl"):
        raise InputError(f"{path}: results are written as .parquet or .jsonl; choose such a name")


def write_results(results: pl.DataFrame, path: str | os.PathLike[str]) -> None:
    """Write a results frame to a .parquet or .jsonl file, whole or not at all.

    Raises:
        InputError: the name ends otherwise, or the file cannot be written.
    """
    check_results_name(Path(path))
    write_frame(results, Path(path))


def open_results(results: Any) -> Any:
    """Return results as they are; those in a file as a frame, read by `read_results`."""
    check_fork()
    return read_results(results) if isinstance(results, (str, os.PathLike)) else results


def read_results(path: str | os.PathLike[str]) -> pl.DataFrame:
    """Read a results frame that was written as .parquet or .jsonl (also .gz or .zst).

    Raises:
        InputError: the name ends otherwise, or a line is not a result; the error names the line.
    """
    check_fork()
    path = make_path(path, "the file of the results")
    check_results_name(path)
    if container(path) == "parquet":
        return read_container(read_bytes(path), path, "parquet")
    types = RESULTS_SCHEMA | _DEDUPLICATED
    found = read_json_lines(read_lines(path), path, types).frame
    lacking = [pl.lit(None, RESULTS_SCHEMA[name]).alias(name) for name in RESULTS_SCHEMA if name not in found.columns]
    floats = [pl.col(name).fill_nan(None) for name, dtype in found.schema.items() if dtype == pl.Float64]
    whole = found.with_columns(*lacking, *floats)
    return whole.select(name for name in types if name in whole.columns)
