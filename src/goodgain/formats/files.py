"""Bytes of files: plain, gzip, Zstandard or from a pipe; and writing that never leaves half a file."""

from __future__ import annotations

import gzip
import mmap
import os
import stat
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, NamedTuple

import zstandard

from goodgain.errors import InputError

__all__ = ["Content", "container", "read_bytes", "stem", "written_whole"]

_GZIP, _ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
_COMPRESSED = (".gz", ".zst")
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
    return Path(path.stem if path.suffix.lower() in _COMPRESSED else path.name).stem


def container(path: Path) -> str:
    """What the name of a file says it holds: `text`, `jsonl`, `parquet` or `arrow`."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes and suffixes[-1] in _COMPRESSED:
        suffixes.pop()
    return _CONTAINERS.get(suffixes[-1], "text") if suffixes else "text"


class Content(NamedTuple):
    """The bytes of a file, and its path where they are still as they stand in it."""

    data: bytes | mmap.mmap
    path: Path | None = None

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


def read_bytes(path: Path) -> Content:
    """The content of a file, decompressed if it is gzip or Zstandard (known by its first bytes).

    Raises:
        InputError: there is no such file, it cannot be read, or its compressed data are damaged.
    """
    try:
        with path.open("rb") as file:
            content = _map(file)
    except OSError as error:
        raise InputError(f"{path}: {_why(error)}; give the path of a readable file") from error
    if content[:2] == _GZIP:
        return Content(_gunzip(path, content))
    if content[:4] == _ZSTD:
        return Content(_unzstd(path, content))
    if path.suffix.lower() in _COMPRESSED:
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


def _why(error: OSError) -> str:
    if isinstance(error, FileNotFoundError):
        return "no such file"
    if isinstance(error, IsADirectoryError):
        return "is a directory, not a file"
    return (error.strerror or str(error)).lower()


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


@contextmanager
def written_whole(path: Path) -> Iterator[IO[bytes]]:
    """A file to write to, compressed as its name says, that appears under its name only when all went well.

    An error or Ctrl-C leaves whatever stood there before.
    """
    if path.exists() and (not path.is_file() or path.is_relative_to("/dev")):
        with path.open("wb") as out:  # a pipe, a terminal, standard output: nothing there to protect
            yield out
        return
    path = path.resolve()  # through a link to the file it names
    try:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name[:100]}.", suffix=".part")
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({_why(error)}); choose another place") from error
    part = Path(name)
    try:
        with os.fdopen(handle, "wb") as raw, _compressing(raw, path.suffix.lower()) as out:
            yield out
        part.chmod(_default_mode(path))
        part.replace(path)
    except BaseException:
        with suppress(FileNotFoundError):
            part.unlink()
        raise


@contextmanager
def _compressing(raw: IO[bytes], suffix: str) -> Iterator[IO[bytes]]:
    if suffix == ".gz":
        with gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0) as out:  # no time stamp: same data, same file
            yield out  # type: ignore[misc]  # GzipFile is a binary file in all but its declared type
    elif suffix == ".zst":
        with zstandard.ZstdCompressor().stream_writer(raw, closefd=False) as out:
            yield out
    else:
        yield raw


def _default_mode(path: Path) -> int:
    """The permissions a plain open(path, "w") would give: those of the old file, or those the umask leaves."""
    with suppress(FileNotFoundError):
        return stat.S_IMODE(path.stat().st_mode)
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask
