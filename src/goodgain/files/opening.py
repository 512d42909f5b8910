"""Opening files: what a name says that a file holds, and its bytes, decompressed where they are gzip or Zstandard."""

from __future__ import annotations

import gzip
import os
import stat
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedReader, FileIO, RawIOBase
from pathlib import Path
from typing import IO, Any

import zstandard

from goodgain.errors import InputError

__all__ = [
    "COMPRESSED",
    "JSON_LINES",
    "ZstdReader",
    "as_text",
    "compression",
    "compression_of",
    "container",
    "error_reason",
    "explain_read_errors",
    "file_size",
    "make_path",
    "open_plain",
    "open_stream",
    "plain_name",
    "stem",
    "unpack",
]

#: Endings of compressed files; they follow the ending that says what the file holds.
COMPRESSED = (".gz", ".zst")
JSON_LINES = (".jsonl", ".ndjson")
#: What a file holds, by the ending of its name; every other name is text.
_CONTAINERS = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
    **dict.fromkeys(JSON_LINES, "jsonl"),
}
_GZIP, _ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
#: Bytes asked of the disk at a time. With Python's own few KiB, a long line would be put together from many reads.
_BUFFER = 256 << 10
#: Compressed bytes that are unpacked at a time, at most and at least. Four of them can stand for 128 KiB: fewer are taken
#: where a piece unpacks to more than `_PIECE`, so that pieces of a hostile file stay small too.
_PACKED, _FEWEST, _PIECE = 16 << 10, 64, 4 << 20
#: Compressed data may unpack to this many bytes, or to this many times their own size.
_UNPACKED, _TIMES = 64 << 20, 100


def make_path(path: Any, what: str) -> Path:
    """Return a path.

    Raises:
        InputError: it is not the name of a file.
    """
    if not isinstance(path, (str, os.PathLike)):
        raise InputError(f"{what} is a {type(path).__name__}; give the path of a file")
    return Path(path)


def plain_name(name: str) -> str:
    """The name of a file without `.gz` or `.zst`.

    >>> plain_name("agent.run.GZ")
    'agent.run'
    """
    ending = next((ending for ending in COMPRESSED if name.lower().endswith(ending)), "")
    return name[: len(name) - len(ending)] or name


def stem(path: Path) -> str:
    """The name of a file without its ending (and `.gz`, `.zst`): what a system is called."""
    return Path(plain_name(as_text(path.name))).stem


def as_text(name: str) -> str:
    r"""Return the name of a file as text that any table can hold; bytes that are not UTF-8 are written as `\xff`.

    Python has such bytes, and in the C locale all that are not ASCII, as halves of surrogate pairs.

    >>> print(as_text(b"run\xff".decode(errors="surrogateescape")))
    run\xff
    """
    try:
        return name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    except UnicodeEncodeError:  # halves that do not stand for bytes, which no file's name has
        return name.encode("utf-8", "backslashreplace").decode()


def container(path: Path) -> str:
    """What the name of a file says that it holds: `text`, `jsonl`, `parquet` or `arrow`."""
    return _CONTAINERS.get(Path(plain_name(path.name)).suffix.lower(), "text")


def compression_of(begin: bytes) -> str | None:
    """`gz` or `zst` where the first four bytes of a file say so, else None."""
    if begin.startswith(_GZIP):
        return "gz"
    return "zst" if begin.startswith(_ZSTD) else None


def compression(path: Path) -> str | None:
    """`gz` or `zst` where the first bytes of a file say so, else None.

    Raises:
        InputError: the file cannot be read.
    """
    with open_plain(path) as file:
        return compression_of(file.peek(len(_ZSTD)))


@contextmanager
def open_stream(path: Path) -> Iterator[IO[bytes]]:
    """Open a file to be read piece by piece or line by line, decompressed if its first bytes say that it is compressed.

    Raises:
        InputError: the file cannot be read, or its compressed data are damaged or end too early.
    """
    with explain_read_errors(path), open_plain(path) as file:
        kind = compression_of(file.peek(len(_ZSTD)))
        if kind is None:
            yield file
        else:
            with unpack(file, kind, path) as content:
                yield content


@contextmanager
def unpack(file: IO[bytes], kind: str, path: Path) -> Iterator[IO[bytes]]:
    """Open the decompressed bytes of a file that is `gz` or `zst`, which are read no further than a bomb would go.

    Raises:
        InputError: while they are read, where they are over 64 MiB and over 100 times the size of the file.
    """
    content = gzip.GzipFile(fileobj=file) if kind == "gz" else ZstdReader(file)
    with content, BufferedReader(_Bounded(content, path, file_size(file)), _BUFFER) as bounded:
        yield bounded


def file_size(file: IO[bytes]) -> int | None:
    """Return how many bytes an open regular file has; None for a pipe."""
    status = os.fstat(file.fileno())
    return status.st_size if stat.S_ISREG(status.st_mode) else None


def open_plain(path: Path) -> BufferedReader:
    """Open a file to read its bytes as they stand in it.

    Raises:
        InputError: the file cannot be read.
    """
    try:
        return BufferedReader(FileIO(path), _BUFFER)
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        raise InputError(f"{str(path)[:200]!r}: {error_reason(error)}; give the path of a readable file") from error


@contextmanager
def explain_read_errors(path: Path) -> Iterator[None]:
    """Raise `InputError` that names the file for errors of the operating system and of damaged compressed data."""
    try:
        yield
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise InputError(f"{path}: the gzip data is truncated or damaged; write or download it again") from error
    except zstandard.ZstdError as error:
        raise InputError(f"{path}: the zst data is truncated or damaged; write or download it again") from error
    except OSError as error:
        raise InputError(f"{str(path)[:200]!r}: {error_reason(error)}; give the path of a readable file") from error


def error_reason(error: OSError | ValueError) -> str:
    """Return what an error of the operating system says, in a few words."""
    if isinstance(error, FileNotFoundError):
        return "no such file"
    if isinstance(error, IsADirectoryError):
        return "is a directory, not a file"
    return (getattr(error, "strerror", None) or str(error)).lower()


class _Bounded(RawIOBase):
    """Decompressed bytes, which may be 64 MiB or 100 times the compressed ones; runs, qrels and logs shrink to a tenth."""

    def __init__(self, content: Any, path: Path, packed: int | None) -> None:
        self._content = content
        self._path = path
        self._most = max(_UNPACKED, _TIMES * (_UNPACKED if packed is None else packed))
        self._done = 0

    def readable(self) -> bool:
        """Return True: the stream is for reading."""
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]  # any buffer, by its declaration
        """Fill a buffer, and return how many bytes are in it; 0 at the end."""
        size: int = self._content.readinto(buffer)
        self._done += size
        if self._done > self._most:
            raise InputError(
                f"{self._path}: unpacks to more than {self._most >> 20:,} MiB, over {_TIMES} times its size, as hostile files "
                "do; if it is meant so, decompress it and give the plain file"
            )
        return size


class ZstdReader(RawIOBase):
    """The decompressed bytes of Zstandard frames.

    zstandard's own reader ends without an error where the data end in the middle of a frame, and a run that was cut off
    would be scored as if it were whole.

    Args:
        file: the compressed bytes.
    """

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._pieces = self._unpack()
        self._rest = memoryview(b"")

    def _unpack(self) -> Iterator[bytes]:
        size = 16 * _FEWEST
        packed = self._file.read(size)
        while packed:
            frame = zstandard.ZstdDecompressor().decompressobj()
            while not frame.eof:
                if not packed:
                    raise zstandard.ZstdError("the last frame has no end")
                piece = frame.decompress(packed)
                yield piece
                size = max(_FEWEST, size // 4) if len(piece) > _PIECE else min(_PACKED, 2 * size)
                packed = frame.unused_data if frame.eof else self._file.read(size)
            packed = packed or self._file.read(size)

    def readable(self) -> bool:
        """Return True: the stream is for reading."""
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]  # any buffer, by its declaration
        """Fill a buffer, and return how many bytes are in it; 0 at the end."""
        while not self._rest:
            piece = next(self._pieces, None)
            if piece is None:
                return 0
            self._rest = memoryview(piece)
        size = min(len(buffer), len(self._rest))
        buffer[:size] = self._rest[:size]
        self._rest = self._rest[size:]
        return size
