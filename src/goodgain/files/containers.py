"""Files that become frames: Parquet and Arrow through pyarrow, and rows of text or JSON that Python reads one by one.

Polars would read Parquet and Arrow too, but takes every file for a whole one: a damaged number of rows makes it ask for more
memory than any machine has, which ends the process.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import polars as pl

from goodgain.errors import InputError
from goodgain.files.content import Content

__all__ = ["RowFrames", "explain_container_errors", "frame_of", "read_column_names", "read_container"]

#: Rows that are kept as Python objects, which take ten times the memory of a frame.
_ROWS = 50_000


@contextmanager
def explain_container_errors(path: Path, kind: str) -> Iterator[None]:
    """Raise `InputError` that names the file for whatever goes wrong while a Parquet or Arrow file is decoded.

    On damaged files the libraries raise errors of many classes, also that memory is short; a panic of Polars is not even an
    `Exception`.
    """
    try:
        yield
    except InputError:
        raise
    except (Exception, pl.exceptions.PanicException) as error:
        reason = next(iter(str(error).splitlines()), type(error).__name__)[:200]
        raise InputError(f"{path}: is not a readable {kind} file ({reason}); write it again") from error


def read_container(content: Content, path: Path, kind: str, *, rows: int | None = None) -> pl.DataFrame:
    """Read the bytes of a file that is `parquet` or `arrow`; of Parquet only the first `rows`, where they are given.

    Raises:
        InputError: they are damaged, or of another kind.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    with explain_container_errors(path, kind):
        source = pa.BufferReader(content.data)
        if kind == "parquet":
            file = pq.ParquetFile(source, page_checksum_verification=True)
            table = file.read() if rows is None else _read_first_rows(file, rows)
        else:
            table = pa.ipc.open_file(source).read_all()
        return frame_of(table)


def _read_first_rows(file: Any, rows: int) -> Any:
    """Return the first rows of a Parquet file as a table of pyarrow."""
    import pyarrow as pa

    batches, found = [], 0
    for batch in file.iter_batches(batch_size=rows):  # some groups of rows may have fewer
        batches.append(batch)
        found += len(batch)
        if found >= rows:
            break
    return pa.Table.from_batches(batches, schema=file.schema_arrow).slice(0, rows)


def frame_of(table: Any) -> pl.DataFrame:
    """Return a table or batch of pyarrow as a frame, after a check that its lengths and texts are what they must be.

    Raises:
        ArrowInvalid: they are not.
    """
    table.validate(full=True)
    frame: Any = pl.from_arrow(table)
    return frame  # type: ignore[no-any-return]  # a frame, as it is a table


def read_column_names(content: Content, path: Path, kind: str) -> list[str]:
    """Read the names of the columns of a file that is `parquet` or `arrow`.

    Raises:
        InputError: as `read_container`.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    with explain_container_errors(path, kind):
        source = pa.BufferReader(content.data)
        schema = pq.read_schema(source) if kind == "parquet" else pa.ipc.open_file(source).schema
        return [*schema.names]


class RowFrames:
    """Collects rows into frames of some thousand rows, and returns these as one.

    Args:
        schema: names and types of the columns.
    """

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self._schema = dict(schema)
        self._columns: list[list[Any]] = [[] for _ in self._schema]
        self._frames: list[pl.DataFrame] = []

    def add(self, row: Sequence[Any]) -> None:
        """Add a row: a value for each column."""
        for column, value in zip(self._columns, row, strict=True):
            column.append(value)
        if len(self._columns[0]) >= _ROWS:
            self._close_frame()

    def _close_frame(self) -> None:
        self._frames.append(pl.DataFrame(dict(zip(self._schema, self._columns, strict=True)), schema=self._schema))
        self._columns = [[] for _ in self._schema]

    def to_frame(self) -> pl.DataFrame:
        """Return all rows."""
        self._close_frame()
        return pl.concat(self._frames, rechunk=True)
