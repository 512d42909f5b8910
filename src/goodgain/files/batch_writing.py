"""Files that are written batch by batch and appear under their names only when all went well."""

from __future__ import annotations

import importlib
import io
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, NamedTuple

import orjson
import polars as pl

from goodgain.files.writing import escaped, written_whole

__all__ = ["Append", "Part", "appended", "kind_of_file", "part_of"]


class Part(NamedTuple):
    """Some rows as a file holds them: bytes, or the frame itself where the file is Parquet.

    Attributes:
        rows: how many there are.
        escaped: how many ids had white space, which TREC text cannot hold.
    """

    content: bytes | pl.DataFrame
    rows: int
    escaped: int = 0


#: Adds a part to a file.
Append = Callable[[Part], object]

_JSON_LINES = (".jsonl", ".ndjson")
_PARQUET = (".parquet", ".pq")
_COMPRESSED = (".gz", ".zst")


def kind_of_file(path: Path) -> str:
    """What the name of a file says that it holds: parquet, jsonl, or text."""
    name = path.name.lower()
    for ending in _COMPRESSED:
        name = name.removesuffix(ending)
    return "jsonl" if name.endswith(_JSON_LINES) else "parquet" if name.endswith(_PARQUET) else "text"


def part_of(path: Path, frame: pl.DataFrame) -> Part:
    """A frame as a part of a file, in the form its name says: Parquet, JSON Lines, or TREC text, which is for runs.

    This is most of the work of writing, and is done where the frame was made.
    """
    kind = kind_of_file(path)
    if kind == "parquet":
        return Part(frame, frame.height)
    content = io.BytesIO()
    changed = 0
    if kind == "jsonl":
        _write_json_lines(frame, content)
    else:
        safe, changed = escaped(frame)  # white space and control characters in ids become %XX
        safe.write_csv(content, separator=" ", include_header=False, quote_style="never")
    return Part(content.getvalue(), frame.height, changed)


@contextmanager
def appended(path: Path) -> Iterator[Append]:
    """Append parts to a file; after an error it is what it was before."""
    with written_whole(path) as file:
        if kind_of_file(path) == "parquet":
            with _parquet(file) as append:
                yield append
        else:
            yield lambda part: file.write(part.content)  # type: ignore[arg-type]  # bytes, by the same name


@contextmanager
def _parquet(file: IO[bytes]) -> Iterator[Append]:
    """Parquet written in row groups, one a frame, which Polars cannot do by itself."""
    pq = importlib.import_module("pyarrow.parquet")  # has no types; and it is slow to import

    writer: list[Any] = []

    def append(part: Part) -> None:
        table = pl.DataFrame(part.content).to_arrow(compat_level=pl.CompatLevel.oldest())
        if not writer:
            writer.append(pq.ParquetWriter(file, table.schema, compression="zstd"))
        writer[0].write_table(table)

    try:
        yield append
    finally:
        for one in writer:
            one.close()


def _write_json_lines(frame: pl.DataFrame, file: IO[bytes]) -> None:
    """One object a line; pairs of name and value are plain objects there."""
    pairs = [name for name, dtype in frame.schema.items() if isinstance(dtype, pl.List)]
    if all(frame[name].null_count() == frame.height for name in pairs):
        frame.write_ndjson(file)
        return
    for row in frame.iter_rows(named=True):
        for name in pairs:
            row[name] = {pair["name"]: pair["value"] for pair in row[name]} if row[name] is not None else None
        file.write(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE))
