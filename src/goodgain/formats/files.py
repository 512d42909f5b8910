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
from typing import IO

import zstandard

from goodgain.errors import InputError

__all__ = ["container", "read_bytes", "written_whole"]

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


def container(path: Path) -> str:
    """What the name of a file says it holds: `text`, `jsonl`, `parquet` or `arrow`."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes and suffixes[-1] in _COMPRESSED:
        suffixes.pop()
    return _CONTAINERS.get(suffixes[-1], "text") if suffixes else "text"


def read_bytes(path: Path) -> bytes | mmap.mmap:
    """The content of a file, decompressed if it is gzip or Zstandard (known by its first bytes)."""
    try:
        with path.open("rb") as file:
            content = _map(file)
    except OSError as error:
        raise InputError(f"{path}: {_why(error)}; give the path of a readable file") from error
    if content[:2] == _GZIP:
        return _gunzip(path, content)
    if content[:4] == _ZSTD:
        return _unzstd(path, content)
    if path.suffix.lower() in _COMPRESSED:
        raise InputError(
            f"{path}: not {path.suffix[1:]} data although its name says so; decompress or download it again, or rename it"
        )
    return content


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
    if path.exists() and not path.is_file():  # /dev/stdout, a named pipe: nothing there to protect
        with path.open("wb") as out:
            yield out
        return
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
