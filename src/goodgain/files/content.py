"""The bytes of a file all at once, or some of the lines of a large one."""

from __future__ import annotations

import gzip
import io
import mmap
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import IO, NamedTuple

from goodgain.errors import InputError
from goodgain.files.opening import COMPRESSED, ZstdReader, compression_of, explain_read_errors, open_plain, open_stream

__all__ = ["Content", "read_bytes"]

_PIECE = 2**20


class Content(NamedTuple):
    """The bytes of a file, or of some lines of one that is too large to be held.

    Attributes:
        data: the bytes, decompressed.
        path: the file, where `data` are all its bytes as they stand in it; None elsewhere.
        part_of: the file, where `data` are some of its lines.
        offset: the (decompressed) byte of that file at which they begin.
    """

    data: bytes | mmap.mmap
    path: Path | None = None
    part_of: Path | None = None
    offset: int = 0

    @property
    def before(self) -> int:
        """How many lines of the file stand before `data`; counted anew each time, because only errors ask for it."""
        if self.part_of is None:
            return 0
        lines, left = 0, self.offset
        with open_stream(self.part_of) as file:
            while left and (piece := file.read(min(_PIECE, left))):
                lines += piece.count(b"\n")
                left -= len(piece)
        return lines

    def has_any(self, bytes_: bytes) -> bool:
        """Tell whether any of these bytes occurs.

        The pages of a mapped file that were looked at are given back, or they would count as memory of the process.
        """
        found = any(self.data.find(bytes([byte])) >= 0 for byte in bytes_)
        if isinstance(self.data, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
            self.data.madvise(mmap.MADV_DONTNEED)
        return found

    def lines(self) -> Iterator[bytes]:
        """Yield every line with its end."""
        start = 0
        while start < len(self.data):
            end = self.data.find(b"\n", start) + 1 or len(self.data)
            yield self.data[start:end]
            start = end


def read_bytes(path: Path) -> Content:
    """Read a file, decompressed if it is gzip or Zstandard (known by its first bytes).

    Raises:
        InputError: the file cannot be read, or its compressed data are damaged or end too early.
    """
    with explain_read_errors(path):
        with open_plain(path) as file:
            content = _map(file)
        compression = compression_of(content[:4])
        if compression == "gz":
            return Content(gzip.decompress(content))
        if compression == "zst":
            return Content(ZstdReader(io.BytesIO(content)).readall())
    if path.suffix.lower() in COMPRESSED:
        raise InputError(
            f"{path}: not {path.suffix[1:]} data although its name says so; decompress or download it again, or rename it"
        )
    return Content(content, path if isinstance(content, mmap.mmap) else None)


def _map(file: IO[bytes]) -> bytes | mmap.mmap:
    """Map a regular file, so that reading it costs no copy; read a pipe, which cannot be mapped."""
    status = os.fstat(file.fileno())
    if not stat.S_ISREG(status.st_mode) or status.st_size == 0:
        return file.read()
    return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
