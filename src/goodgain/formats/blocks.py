"""Large files in blocks of whole queries, so that what is in memory at a time does not grow with the file."""

from __future__ import annotations

import gzip
import mmap
import os
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import polars as pl

from goodgain.errors import InputError
from goodgain.formats.files import compression, open_stream
from goodgain.schema import Table
from goodgain.writing import why

__all__ = ["table_blocks", "text_blocks"]

_BOM = b"\xef\xbb\xbf"


def text_blocks(path: Path, *, size: int) -> Iterator[tuple[int, memoryview]]:
    """Lines of a text file (also .gz), cut between queries, each block with the byte of the file that it begins at.

    Neighbouring lines of one query are in one block.

    Args:
        path: the file.
        size: bytes of a block, about; more where one query has more.

    Raises:
        InputError: the file cannot be read, or its gzip data are damaged.
    """
    try:
        if compression(path):
            with open_stream(path) as stream:
                yield from _streamed(stream, size)
        else:
            with path.open("rb") as file:
                yield from _mapped(file, size)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise InputError(f"{path}: the gzip data is truncated or damaged; write or download it again") from error
    except (OSError, ValueError) as error:
        raise InputError(f"{str(path)[:200]!r}: {why(error)}; give the path of a readable file") from error


def _mapped(file: IO[bytes], size: int) -> Iterator[tuple[int, memoryview]]:
    """A block is mapped, not read: two copies of every byte would take as long as counting it."""
    all_ = os.fstat(file.fileno()).st_size
    offset = len(_BOM) if file.read(len(_BOM)) == _BOM else 0
    wanted = size
    while offset < all_:
        before = offset % mmap.ALLOCATIONGRANULARITY
        length = min(before + wanted, all_ - offset + before)
        window = mmap.mmap(file.fileno(), length, access=mmap.ACCESS_READ, offset=offset - before)
        end = length if offset - before + length == all_ else _last_query(window, before)
        if end:
            yield offset, memoryview(window)[before:end]
            offset += end - before
        wanted = size if end else 2 * wanted  # one query fills it all


def _streamed(stream: IO[bytes], size: int) -> Iterator[tuple[int, memoryview]]:
    kept = b""
    offset = len(_BOM) if stream.read(len(_BOM)) == _BOM else 0
    stream.seek(offset)
    while more := stream.read(max(size, len(kept))):
        end = _last_query(more)
        if not end:
            kept += more
            continue
        data = b"".join((kept, memoryview(more)[:end]))
        yield offset, memoryview(data)
        offset += len(data)
        kept = more[end:]
    if kept:
        yield offset, memoryview(kept)


def _last_query(data: bytes | mmap.mmap, first: int = 0) -> int:
    """Where the lines of the last query begin, as far as they stand together; 0 where no other query is seen.

    The line at `first` and what follows the last newline may be parts of lines, and tell nothing.
    """
    start = end = data.rfind(b"\n", first) + 1
    last: list[bytes] = []
    while line := data.rfind(b"\n", first, max(end - 1, first)) + 1:
        field = data[line:end].split(None, 1)[:1]
        if field and last and field != last:
            return start
        if field:
            last, start = field, line
        end = line
    return 0


def table_blocks(path: Path, table: Table, *, rows: int) -> Iterator[tuple[int, pl.DataFrame]]:
    """Rows of a Parquet file, cut between queries, each block with the number of its first row.

    Raises:
        InputError: the file is no readable Parquet file.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:
            names = [name for name in table.columns if name in file.schema_arrow.names]
            kept: pl.DataFrame | None = None
            before = 0
            for batch in file.iter_batches(batch_size=rows, columns=names):
                new: Any = pl.from_arrow(batch)
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
    except (pa.ArrowException, OSError) as error:
        raise InputError(
            f"{path}: is no readable parquet file ({str(error).splitlines()[0]}); write it again"
        ) from error
