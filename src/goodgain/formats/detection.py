"""Whether a file holds a run or qrels."""

from __future__ import annotations

import io
import json
from pathlib import Path

import polars as pl

from goodgain.errors import InputError
from goodgain.files.reading import container, read_bytes
from goodgain.formats.column_names import Columns
from goodgain.formats.row_origins import numbered_lines
from goodgain.formats.text import QRELS_TEXT

__all__ = ["looks_like_qrels"]


def looks_like_qrels(path: Path, columns: Columns | None = None) -> bool:
    """By its columns, which may have names of the user's own, or by the number of fields of the first line of text."""
    names = {name for name, ours in (columns or {}).items() if ours == "relevance"} | {"relevance"}
    if path.exists() and not path.is_file() and not path.is_dir():
        raise InputError(f"{path}: is a pipe, which can be read only once; give a file to look into")
    kind = container(path)
    content = read_bytes(path)
    if kind in ("parquet", "arrow"):
        scan = pl.read_parquet_schema if kind == "parquet" else pl.read_ipc_schema
        try:
            return not names.isdisjoint(scan(io.BytesIO(content.data)))
        except (pl.exceptions.PolarsError, OSError) as error:
            raise InputError(f"{path}: is no readable {kind} file; write it again") from error
    first = next(numbered_lines(content), (0, b""))[1]
    if kind == "jsonl":
        try:
            return not names.isdisjoint(json.loads(first))
        except (ValueError, TypeError, RecursionError):
            return False
    return len(first.split()) == len(QRELS_TEXT.fields)
