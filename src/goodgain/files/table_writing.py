"""Writes tables to files: as Parquet, Arrow, JSON Lines or TREC text, at once or batch by batch."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, NamedTuple

import orjson
import polars as pl

from goodgain.errors import InputError, notice
from goodgain.files.opening import container
from goodgain.files.writing import atomic_write, write_with_polars
from goodgain.schema import COMMENT

#: White space and control characters of Unicode, which some readers take for the end of a field or a line.
_UNSAFE = r"[\s\p{Cc}\x{1c}-\x{1f}\x{85}\x{feff}]"
_UNSAFE_SIGN = re.compile(r"[\s\x00-\x1f\x7f-\x9f\ufeff]")


class EncodedRows(NamedTuple):
    """Rows encoded for a file.

    Attributes:
        content: bytes; for Parquet and Arrow the frame itself, which only their writers can encode.
        rows: how many rows there are.
        escaped: how many ids were changed because TREC text cannot hold them.
    """

    content: bytes | pl.DataFrame
    rows: int
    escaped: int = 0


#: Appends rows to a file.
Append = Callable[[EncodedRows], object]


def write_frame(frame: pl.DataFrame, path: Path) -> None:
    """Write a frame in the form that the file's name says, whole or not at all.

    TREC text has the columns as its fields, in order. In it white space and control characters in ids, and a `#` that
    would begin a comment, become %XX (UTF-8 bytes); one notice counts these ids.
    """
    kind = container(path)
    if kind == "text":
        for name, dtype in frame.schema.items():
            if dtype == pl.String and frame.get_column(name).eq("").any():
                raise InputError(f"{path}: an empty {name} cannot be written as TREC text; write Parquet or JSON Lines")
        frame, changed = escape_ids(frame)
        warn_of_escaped_ids(changed, path)
    with atomic_write(path) as file, write_with_polars():
        if kind == "parquet":
            frame.write_parquet(file)
        elif kind == "arrow":
            frame.write_ipc(file)
        else:
            _write_lines(frame, file, kind)


def warn_of_escaped_ids(count: int, path: Path) -> None:
    """Give a notice if ids were changed because TREC text cannot hold them."""
    if count:
        notice(
            f"{path}: white space, control characters, and '#' at the beginning of a line, in {count} id{'s' * (count != 1)} "
            "were written as %XX; write Parquet or JSON Lines to keep ids as they are"
        )


def encode_rows(frame: pl.DataFrame, path: Path) -> EncodedRows:
    """Encode rows in the form that the file's name says: Parquet, Arrow, JSON Lines or TREC text.

    Encoding is most of the work of writing; separate from `append_rows`, it can run in several processes.
    """
    kind = container(path)
    if kind in ("parquet", "arrow"):
        return EncodedRows(frame, frame.height)
    frame, changed = escape_ids(frame) if kind == "text" else (frame, 0)
    content = io.BytesIO()
    _write_lines(frame, content, kind)
    return EncodedRows(content.getvalue(), frame.height, changed)


def _write_lines(frame: pl.DataFrame, file: IO[bytes], kind: str) -> None:
    if kind == "jsonl":
        _write_json_lines(frame, file)
    else:
        frame.write_csv(file, separator=" ", include_header=False, quote_style="never")


@contextmanager
def append_rows(path: Path) -> Iterator[Append]:
    """Open a file to append encoded rows to it; an error leaves an existing file unchanged."""
    kind = container(path)
    with atomic_write(path) as file:
        if kind in ("parquet", "arrow"):
            with _append_tables(file, kind) as append:
                yield append
        else:
            yield lambda rows: file.write(rows.content)  # type: ignore[arg-type]  # bytes, by the same name


@contextmanager
def _append_tables(file: IO[bytes], kind: str) -> Iterator[Append]:
    """Append frames as row groups of Parquet or batches of Arrow, which Polars cannot do."""
    import pyarrow as pa

    writers: list[Any] = []

    def append(rows: EncodedRows) -> None:
        table = pl.DataFrame(rows.content).to_arrow(compat_level=pl.CompatLevel.oldest())
        if not writers:
            if kind == "parquet":
                import pyarrow.parquet as pq  # slow

                writers.append(pq.ParquetWriter(file, table.schema, compression="zstd"))
            else:
                writers.append(pa.ipc.new_file(file, table.schema))
        writers[0].write_table(table)

    try:
        yield append
    finally:
        for writer in writers:
            writer.close()


def _write_json_lines(frame: pl.DataFrame, file: IO[bytes]) -> None:
    """Write one object per line, with lists of name and value as objects."""
    pairs = [name for name, dtype in frame.schema.items() if isinstance(dtype, pl.List)]
    if all(frame[name].null_count() == frame.height for name in pairs):
        frame.write_ndjson(file)
        return
    for row in frame.iter_rows(named=True):
        for name in pairs:
            row[name] = {pair["name"]: pair["value"] for pair in row[name]} if row[name] is not None else None
        file.write(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE))


def escape_ids(frame: pl.DataFrame) -> tuple[pl.DataFrame, int]:
    """Write white space, control characters and a `#` that begins a line as %XX (UTF-8 bytes), and count these texts."""
    changed = 0
    for place, (name, dtype) in enumerate(frame.schema.items()):
        if dtype != pl.String:
            continue
        column = frame.get_column(name)
        unsafe = column.str.contains(_UNSAFE if place else f"^{COMMENT}|{_UNSAFE}")
        if unsafe.any():
            changed += int(unsafe.sum())
            ids = column.filter(unsafe).unique()
            safe = pl.Series([_escape(text, begins_line=place == 0) for text in ids], dtype=pl.String)
            if safe.is_duplicated().any() or column.is_in(safe.implode()).any():
                raise InputError(
                    f"two values of {name} would become one when white space in them is written as %XX; "
                    "write Parquet or JSON Lines, or rename the ids"
                )
            frame = frame.with_columns(column.replace(ids, safe))
    return frame, changed


def _escape(text: str, *, begins_line: bool) -> str:
    escaped = _UNSAFE_SIGN.sub(lambda found: "".join(f"%{byte:02X}" for byte in found.group().encode()), text)
    is_comment = begins_line and escaped.startswith(COMMENT)
    return f"%{ord(COMMENT):02X}{escaped[1:]}" if is_comment else escaped
