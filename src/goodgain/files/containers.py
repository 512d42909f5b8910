"""Files that become frames: Parquet and Arrow through Polars, and rows of text or JSON that Python reads one by one."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import polars as pl

from goodgain.errors import InputError
from goodgain.files.content import Content

__all__ = ["RowFrames", "explain_container_errors", "read_container", "read_container_schema"]

#: Rows that are kept as Python objects, which take ten times the memory of a frame.
_ROWS = 50_000

_READERS: dict[str, Callable[..., pl.DataFrame]] = {"parquet": pl.read_parquet, "arrow": pl.read_ipc}
_SCHEMA_READERS: dict[str, Callable[..., Mapping[str, Any]]] = {
    "parquet": pl.read_parquet_schema,
    "arrow": pl.read_ipc_schema,
}


@contextmanager
def explain_container_errors(path: Path, kind: str) -> Iterator[None]:
    """Raise `InputError` that names the file for whatever goes wrong while a Parquet or Arrow file is decoded.

    On damaged files the libraries raise errors of many classes; a panic of Polars is not even an `Exception`.
    """
    try:
        yield
    except (InputError, MemoryError):
        raise
    except (Exception, pl.exceptions.PanicException) as error:
        reason = next(iter(str(error).splitlines()), type(error).__name__)[:200]
        raise InputError(f"{path}: is not a readable {kind} file ({reason}); write it again") from error


def read_container(content: Content, path: Path, kind: str) -> pl.DataFrame:
    """Read the bytes of a file that is `parquet` or `arrow`.

    Raises:
        InputError: they are damaged, or of another kind.
    """
    with explain_container_errors(path, kind):
        return _READERS[kind](io.BytesIO(content.data))


def read_container_schema(content: Content, path: Path, kind: str) -> Mapping[str, Any]:
    """Read the names and types of the columns of a file that is `parquet` or `arrow`.

    Raises:
        InputError: as `read_container`.
    """
    with explain_container_errors(path, kind):
        return _SCHEMA_READERS[kind](io.BytesIO(content.data))


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
