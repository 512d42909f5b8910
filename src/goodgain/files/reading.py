"""Bytes of files: plain, gzip, Zstandard or from a pipe."""

from __future__ import annotations

import gzip
import mmap
import os
import stat
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, NamedTuple

import zstandard

from goodgain.errors import InputError
from goodgain.files.writing import why

__all__ = ["COMPRESSED", "Content", "compression", "container", "open_stream", "read_bytes", "stem"]

_GZIP, _ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
COMPRESSED = (".gz", ".zst")
_PIECE = 2**20
#: What stands in a file, by the ending of its name; every other name is TREC text.
_CONTAINERS = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
}


def stem(path: Path) -> str:
    """The name of a file without its ending (and .gz, .zst): what a system is called."""
    return Path(path.stem if path.suffix.lower() in COMPRESSED else path.name).stem


def container(path: Path) -> str:
    """What the name of a file says it holds: `text`, `jsonl`, `parquet` or `arrow`."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes and suffixes[-1] in COMPRESSED:
        suffixes.pop()
    return _CONTAINERS.get(suffixes[-1], "text") if suffixes else "text"


class Content(NamedTuple):
    """The bytes of a file, and its path where they are still as they stand in it; or a part of a large file."""

    data: bytes | mmap.mmap
    path: Path | None = None
    part_of: Path | None = None
    offset: int = 0

    @property
    def before(self) -> int:
        """How many lines of the file stand before; counted again, which only errors pay for."""
        if self.part_of is None:
            return 0
        with open_stream(self.part_of) as file:
            pieces = iter(lambda: file.read(min(_PIECE, self.offset - file.tell())), b"")
            return sum(piece.count(b"\n") for piece in pieces)

    def has_any(self, bytes_: bytes) -> bool:
        """Whether any of these bytes occurs; pages looked at are given back, so that they do not count as memory."""
        found = any(self.data.find(bytes([byte])) >= 0 for byte in bytes_)
        if isinstance(self.data, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
            self.data.madvise(mmap.MADV_DONTNEED)
        return found

    def lines(self) -> Iterator[bytes]:
        """Every line with its end."""
        start = 0
        while start < len(self.data):
            end = self.data.find(b"\n", start) + 1 or len(self.data)
            yield self.data[start:end]
            start = end


def compression(path: Path) -> str | None:
    """`gz` or `zst` where the first bytes of a file say so, else None."""
    with path.open("rb") as file:
        begin = file.read(len(_ZSTD))
    if begin.startswith(_GZIP):
        return "gz"
    return "zst" if begin == _ZSTD else None


def open_stream(path: Path) -> IO[bytes]:
    """A file to be read piece by piece, decompressed if it is gzip."""
    return gzip.open(path) if compression(path) == "gz" else path.open("rb")  # type: ignore[return-value]  # reads bytes


def read_bytes(path: Path) -> Content:
    """The content of a file, decompressed if it is gzip or Zstandard (known by its first bytes).

    Raises:
        InputError: there is no such file, it cannot be read, or its compressed data are damaged.
    """
    try:
        with path.open("rb") as file:
            content = _map(file)
    except (OSError, ValueError) as error:
        raise InputError(f"{str(path)[:200]!r}: {why(error)}; give the path of a readable file") from error
    if content[:2] == _GZIP:
        return Content(_gunzip(path, content))
    if content[:4] == _ZSTD:
        return Content(_unzstd(path, content))
    if path.suffix.lower() in COMPRESSED:
        raise InputError(
            f"{path}: not {path.suffix[1:]} data although its name says so; decompress or download it again, or rename it"
        )
    return Content(content, path if isinstance(content, mmap.mmap) else None)


def _map(file: IO[bytes]) -> bytes | mmap.mmap:
    """A regular file is mapped, so that reading it costs no copy; a pipe can only be read."""
    status = os.fstat(file.fileno())
    if not stat.S_ISREG(status.st_mode) or status.st_size == 0:
        return file.read()
    return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


def _gunzip(path: Path, content: bytes | mmap.mmap) -> bytes:
    try:
        return gzip.decompress(content)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise InputError(f"{path}: the gzip data is truncated or damaged; write or download it again") from error


def _unzstd(path: Path, content: bytes | mmap.mmap) -> bytes:
    parts = []
    rest = bytes(content)
    try:
        while rest:
            frame = zstandard.ZstdDecompressor().decompressobj()
            parts.append(frame.decompress(rest))
            if not frame.eof:
                raise zstandard.ZstdError("the last frame has no end")
            rest = frame.unused_data
    except zstandard.ZstdError as error:
        raise InputError(f"{path}: the zst data is truncated or damaged; write or download it again") from error
    return b"".join(parts)
