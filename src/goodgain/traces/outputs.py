"""Files that are written batch by batch and appear under their names only when all went well."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import orjson
import polars as pl

from goodgain.writing import escaped, written_whole

__all__ = ["Append", "appended", "kind_of_file"]

#: Adds the rows of a frame to a file.
Append = Callable[[pl.DataFrame], None]

_JSON_LINES = (".jsonl", ".ndjson")
_PARQUET = (".parquet", ".pq")
_COMPRESSED = (".gz", ".zst")


def kind_of_file(path: Path) -> str:
    """What the name of a file says that it holds: parquet, jsonl, or text."""
    name = path.name.lower()
    for ending in _COMPRESSED:
        name = name.removesuffix(ending)
    return "jsonl" if name.endswith(_JSON_LINES) else "parquet" if name.endswith(_PARQUET) else "text"


@contextmanager
def appended(path: Path, counts: dict[str, int] | None = None) -> Iterator[Append]:
    """Append frames to a file, in the form its name says: Parquet, JSON Lines, or TREC text, which is for runs.

    `counts` is told under "escaped" how many ids had white space, which TREC text cannot hold. After an error the file
    is what it was before.
    """
    kind = kind_of_file(path)
    with written_whole(path) as file:
        if kind == "parquet":
            with _parquet(file) as append:
                yield append
        elif kind == "jsonl":
            yield lambda frame: _append_json_lines(frame, file)
        else:
            yield lambda frame: _append_trec(frame, file, counts if counts is not None else {})


@contextmanager
def _parquet(file: IO[bytes]) -> Iterator[Append]:
    """Parquet written in row groups, one a frame, which Polars cannot do by itself."""
    pq = importlib.import_module("pyarrow.parquet")  # has no types; and it is slow to import

    writer: list[Any] = []

    def append(frame: pl.DataFrame) -> None:
        table = frame.to_arrow(compat_level=pl.CompatLevel.oldest())
        if not writer:
            writer.append(pq.ParquetWriter(file, table.schema, compression="zstd"))
        writer[0].write_table(table)

    try:
        yield append
    finally:
        for one in writer:
            one.close()


def _append_json_lines(frame: pl.DataFrame, file: IO[bytes]) -> None:
    """One object a line; pairs of name and value are plain objects there."""
    pairs = [name for name, dtype in frame.schema.items() if isinstance(dtype, pl.List)]
    if all(frame[name].null_count() == frame.height for name in pairs):
        frame.write_ndjson(file)
        return
    for row in frame.iter_rows(named=True):
        for name in pairs:
            row[name] = {pair["name"]: pair["value"] for pair in row[name]} if row[name] is not None else None
        file.write(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE))


def _append_trec(frame: pl.DataFrame, file: IO[bytes], counts: dict[str, int]) -> None:
    """Fields with one blank between them; white space and control characters in ids become %XX."""
    frame, changed = escaped(frame)
    if changed:
        counts["escaped"] = counts.get("escaped", 0) + changed
    frame.write_csv(file, separator=" ", include_header=False, quote_style="never")
