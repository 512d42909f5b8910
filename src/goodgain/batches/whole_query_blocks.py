"""Reading large files in blocks of whole queries, so that memory does not grow with the file."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import IO, NamedTuple

import polars as pl

from goodgain.errors import InputError
from goodgain.files.containers import explain_container_errors, frame_of
from goodgain.files.content import check_line, check_lines
from goodgain.files.opening import compression, explain_read_errors, open_plain, open_stream
from goodgain.files.row_origins import COMMENT_BYTES
from goodgain.formats.column_names import Columns, find_columns
from goodgain.schema import Table

__all__ = ["TextBlock", "table_blocks", "text_blocks"]

_BOM = b"\xef\xbb\xbf"
_TAIL = 2**16  # the bytes before the wanted end of a block in which a place to cut is looked for first


class TextBlock(NamedTuple):
    """Whole lines of a file.

    Attributes:
        path: the file.
        offset: the (decompressed) byte of the file that they begin at.
        length: how many bytes they are.
        data: the bytes, where the file is compressed and they had to be read in order; None elsewhere.
    """

    path: Path
    offset: int
    length: int
    data: bytes | None = None

    def text(self) -> bytes:
        """Return the lines; those of a plain file are read from it each time.

        Raises:
            InputError: the file cannot be read any more, or became shorter.
        """
        if self.data is not None:
            return self.data
        with explain_read_errors(self.path), open_plain(self.path) as file:
            file.seek(self.offset)
            data = file.read(self.length)
        if len(data) != self.length:
            raise InputError(f"{self.path}: became shorter while it was read; wait until it is written, and try again")
        return data


def text_blocks(path: Path, *, size: int) -> Iterator[TextBlock]:
    """Yield the lines of a text file (also .gz and .zst) in blocks; neighbouring lines of one query are in one block.

    Args:
        path: the file.
        size: bytes of a block, about; more where one query has more.

    Raises:
        InputError: the file cannot be read, or its compressed data are damaged or end too early.
    """
    is_compressed = compression(path) is not None
    with open_stream(path) as file:
        begin = file.read(len(_BOM))
        if not is_compressed:
            yield from _find_blocks(file, path, offset=len(_BOM) if begin == _BOM else 0, size=size)
        elif begin == _BOM:
            yield from _read_blocks(file, path, offset=len(_BOM), size=size, kept=b"")
        else:
            yield from _read_blocks(file, path, offset=0, size=size, kept=begin)


def _find_blocks(file: IO[bytes], path: Path, *, offset: int, size: int) -> Iterator[TextBlock]:
    """Find where blocks end, and read only what is needed for that; several threads then read blocks at a time."""
    whole = os.fstat(file.fileno()).st_size
    wanted = size
    while offset < whole:
        end = min(offset + wanted, whole)
        looked = min(_TAIL, end - offset)
        stop = end if end == whole else 0
        while not stop:
            file.seek(end - looked)
            stop = _last_query(file.read(looked))
            if stop:
                stop += end - looked
            elif looked == end - offset:
                file.seek(offset)
                check_lines(file.read(looked), path)
                break
            looked = min(4 * looked, end - offset)
        if stop:
            yield TextBlock(path, offset, stop - offset)
            offset = stop
        wanted = (
            size if stop else 2 * wanted
        )  # where one query fills the block, it is not cut: twice as much is looked at


def _read_blocks(stream: IO[bytes], path: Path, *, offset: int, size: int, kept: bytes) -> Iterator[TextBlock]:
    """Read a compressed file from its (decompressed) byte `offset` on; `kept` are bytes after it that were read before."""
    pieces, in_line = [kept], 0
    while more := stream.read(size):
        in_line = check_line(in_line, more, path)
        end = _last_query(more)
        if end:
            data = b"".join((*pieces, memoryview(more)[:end]))
            yield TextBlock(path, offset, len(data), data)
            offset += len(data)
            pieces = [more[end:]]
        else:
            pieces.append(more)
    data = b"".join(pieces)
    if data:
        yield TextBlock(path, offset, len(data), data)


def _last_query(data: bytes) -> int:
    """Return the byte at which the lines of the last query begin; 0 where only one query is seen.

    What stands before the first newline and after the last may be parts of lines, and is not looked at. Comments have no
    query: they stay with the lines before them, or after them.
    """
    start = end = data.rfind(b"\n") + 1
    if _is_one_query(data, end):
        return 0
    last: list[bytes] = []
    while line := data.rfind(b"\n", 0, max(end - 1, 0)) + 1:
        first = [] if data.startswith(COMMENT_BYTES, line) else data[line:end].split(None, 1)[:1]
        if first and last and first != last:
            return start
        if first:
            last, start = first, line
        end = line
    return 0


def _is_one_query(data: bytes, end: int) -> bool:
    """Return whether all lines from the first newline to `end` begin with the same query, without a look at each of them."""
    begin = data.find(b"\n") + 1
    query = data[begin : data.find(b"\n", begin)].split(None, 1)[:1]
    last = data[data.rfind(b"\n", 0, max(end - 1, 0)) + 1 : end].split(None, 1)[:1]
    if not query or query != last:
        return False
    lines = sum(data.count(b"\n" + query[0] + blank, 0, end) for blank in (b" ", b"\t"))
    return lines == data.count(b"\n", 0, end) - 1


def table_blocks(
    path: Path, table: Table, *, rows: int, columns: Columns | None = None
) -> Iterator[tuple[int, pl.DataFrame]]:
    """Yield the rows of a Parquet file, cut between queries, each block with the number of its first row.

    `columns` has the user's names of them.

    Raises:
        InputError: the file is not a readable Parquet file.
    """
    import pyarrow.parquet as pq

    with explain_container_errors(path, "parquet"), open_plain(path) as content, pq.ParquetFile(content) as file:
        names = find_columns(file.schema_arrow.names, table, columns or {}, label=str(path)).names
        kept: pl.DataFrame | None = None
        before = 0
        for batch in file.iter_batches(batch_size=rows, columns=list(names)):
            new = frame_of(batch).rename(names)
            data = new if kept is None else pl.concat([kept, new])
            same = data.get_column("query_id").eq_missing(data.get_column("query_id")[-1])
            others = (~same).arg_true()
            end = int(others[-1]) + 1 if len(others) else 0
            if end:
                yield before, data[:end]
                before += end
            kept = data[end:]
        if kept is not None and len(kept):
            yield before, kept
