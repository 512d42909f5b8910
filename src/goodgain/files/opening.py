"""Opening files: what a name says that a file holds, and its bytes, decompressed: as a stream, or all at once.

All raise `InputError` with the name of the file: it cannot be read, became shorter meanwhile, has a line that is too long, or
its compressed data are damaged, truncated, or unpack to over 64 MiB and over 100 times their size.
"""

from __future__ import annotations

import gzip
import io
import os
import re
import stat
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedReader, FileIO, RawIOBase
from pathlib import Path
from typing import IO, Any, NamedTuple

import zstandard

from goodgain.errors import InputError

#: What Excel and others write before UTF-8.
BOM = b"\xef\xbb\xbf"
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
_SEPARATORS = {".csv": ",", ".tsv": "\t"}
_GZIP, _ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
#: How a pickle of any protocol since Python 2.3 begins; no text, and no other file that is read, begins so.
_PICKLE = re.compile(rb"\x80[\x02-\x05]")
#: Bytes asked of the disk at a time. With Python's own few KiB, a long line would be put together from many reads.
_BUFFER = 256 << 10
#: Compressed bytes that are unpacked at a time, at most and at least. Four of them can unpack to 128 KiB: where a piece
#: unpacks to more than `_PIECE`, the next is smaller. So pieces of a malicious file stay small too.
_PACKED, _FEWEST, _PIECE = 16 << 10, 64, 4 << 20
#: Compressed data may unpack to this many bytes, or to this many times their own size.
_UNPACKED, _TIMES = 64 << 20, 100
#: Bytes of a stream that are read at a time, where all of it is wanted.
_AT_ONCE = 1 << 20
#: Bytes of the longest line of a table: room for two ids of 1 MB and more. A longer one is malicious, or not a table.
LONGEST_LINE = 64 << 20


#: Whether this process has used Polars through goodgain, and whether it was forked from one that had. It is state of the
#: process itself, and not of any value.
_process = {"has_used": False, "is_fork": False}


def check_fork() -> None:
    """Check that Polars can work in this process; whatever reads or computes calls this first.

    Raises:
        InputError: the process was forked after Polars had been used: its next call would wait for ever.
    """
    if _process["is_fork"]:
        raise InputError(
            "this process was forked from one that had used goodgain, and Polars' threads do not survive a fork; start "
            "processes with multiprocessing.get_context('spawn')"
        )
    _process["has_used"] = True


def _note_fork() -> None:
    _process["is_fork"] = _process["has_used"]


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_note_fork)


def make_path(path: Any, what: str) -> Path:
    """Return a path, if it is one."""
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


def separator_by_name(path: Path) -> str | None:
    """Return what stands between the values of a file by the ending of its name; None where it is neither CSV nor TSV."""
    return _SEPARATORS.get(Path(plain_name(path.name)).suffix.lower())


def compression_of(begin: bytes) -> str | None:
    """`gz` or `zst` where the first four bytes of a file say so, else None."""
    if begin.startswith(_GZIP):
        return "gz"
    return "zst" if begin.startswith(_ZSTD) else None


def compression(path: Path) -> str | None:
    """`gz` or `zst` where the first bytes of a file say so, else None."""
    with open_plain(path) as file:
        return compression_of(file.peek(len(_ZSTD)))


@contextmanager
def open_stream(path: Path) -> Iterator[IO[bytes]]:
    """Open a file to be read piece by piece or line by line, decompressed if its first bytes say that it is compressed."""
    with explain_read_errors(path), open_plain(path) as file:
        kind = compression_of(file.peek(len(_ZSTD)))
        if kind is None:
            yield file
        else:
            with unpack(file, kind, path) as content:
                yield content


@contextmanager
def unpack(file: IO[bytes], kind: str, path: Path) -> Iterator[IO[bytes]]:
    """Open the decompressed bytes of a file that is `gz` or `zst`, up to the limits against decompression bombs."""
    content = gzip.GzipFile(fileobj=file) if kind == "gz" else ZstdReader(file)
    with content, BufferedReader(_Pieces(_read_bounded(content, path, file_size(file))), _BUFFER) as bounded:
        yield bounded


def file_size(file: IO[bytes]) -> int | None:
    """Return how many bytes an open regular file has; None for a pipe."""
    status = os.fstat(file.fileno())
    return status.st_size if stat.S_ISREG(status.st_mode) else None


def open_plain(path: Path) -> BufferedReader:
    """Open a file to read its bytes as they stand in it.

    A pickle is refused by name: nothing reads it, since loading one can run any code.
    """
    try:
        file: BufferedReader = BufferedReader(FileIO(path), _BUFFER)
        is_pickle = _PICKLE.match(file.peek(2)) is not None
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        raise InputError(f"{str(path)[:200]!r}: {error_reason(error)}; give the path of a readable file") from error
    if is_pickle:
        file.close()
        raise InputError(
            f"{path}: is a Python pickle, which can run any code when it is loaded; save its content as JSON"
        )
    return file


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


def _read_bounded(content: Any, path: Path, packed: int | None) -> Iterator[bytes]:
    """Yield decompressed bytes, at most 64 MiB or 100 times the compressed ones; runs, qrels and logs shrink to a tenth."""
    most = max(_UNPACKED, _TIMES * (_UNPACKED if packed is None else packed))
    done = 0
    while piece := content.read(_BUFFER):
        done += len(piece)
        if done > most:
            raise InputError(
                f"{path}: unpacks to more than {most >> 20:,} MiB, over {_TIMES} times its size, as hostile files "
                "do; if it is meant so, decompress it and give the plain file"
            )
        yield piece


class _Pieces(RawIOBase):
    """A stream of the bytes that an iterator gives in pieces."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._rest = memoryview(b"")

    def readable(self) -> bool:
        """The stream is for reading."""
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


class ZstdReader(_Pieces):
    """The decompressed bytes of Zstandard frames.

    zstandard's own reader ends without an error in the middle of a frame: a truncated run would be scored as a whole one.
    """

    def __init__(self, file: IO[bytes]) -> None:
        super().__init__(_unpack_zst(file))


def _unpack_zst(file: IO[bytes]) -> Iterator[bytes]:
    size = 16 * _FEWEST
    packed = file.read(size)
    while packed:
        frame = zstandard.ZstdDecompressor().decompressobj()
        while not frame.eof:
            if not packed:
                raise zstandard.ZstdError("the last frame has no end")
            piece = frame.decompress(packed)
            yield piece
            size = max(_FEWEST, size // 4) if len(piece) > _PIECE else min(_PACKED, 2 * size)
            packed = frame.unused_data if frame.eof else file.read(size)
        packed = packed or file.read(size)


class Content(NamedTuple):
    """The bytes of a file, or of some lines of one that is too large to be held.

    Attributes:
        data: the bytes, decompressed; empty where the lines of `part_of` are read anew from the file.
        part_of: the file, where `data` are some of its lines, or none.
        offset: the (decompressed) byte of that file at which they begin.
    """

    data: bytes
    part_of: Path | None = None
    offset: int = 0

    @property
    def before(self) -> int:
        """How many lines of the file stand before `data`; counted anew each time, because only errors ask for it."""
        if self.part_of is None:
            return 0
        lines, left = 0, self.offset
        with open_stream(self.part_of) as file:
            while left and (piece := file.read(min(_AT_ONCE, left))):
                lines += piece.count(b"\n")
                left -= len(piece)
        return lines

    def lines(self) -> Iterator[bytes]:
        """Yield every line with its end."""
        if self.part_of is not None and not self.data:
            with open_stream(self.part_of) as file:
                yield from file
        start = 0
        while start < len(self.data):
            end = self.data.find(b"\n", start) + 1 or len(self.data)
            yield self.data[start:end]
            start = end


def read_bytes(path: Path) -> Content:
    """Read a file, decompressed if it is gzip or Zstandard (known by its first bytes), without its byte order mark."""
    return Content(_read_whole(path, has_lines=False).removeprefix(BOM))


def read_lines(path: Path) -> Content:
    """Read a file of lines as `read_bytes` does, none of them too long."""
    return Content(_read_whole(path, has_lines=True).removeprefix(BOM))


def _read_whole(path: Path, *, has_lines: bool) -> bytes:
    """Copy a file into memory; a mapped file that another program truncates would end the process."""
    with explain_read_errors(path), open_plain(path) as file:
        kind = compression_of(file.peek(4))
        if kind is not None:
            with unpack(file, kind, path) as stream:
                return _read_pieces(stream, path, has_lines=has_lines)
        if path.suffix.lower() in COMPRESSED:
            raise InputError(
                f"{path}: not {path.suffix[1:]} data although its name says so; decompress or download it again, or rename it"
            )
        size = file_size(file)
        if size is None:  # a pipe, or a device that may never end
            return _read_pieces(file, path, has_lines=has_lines)
        data = file.read()
        if len(data) < size:
            raise InputError(f"{path}: became shorter while it was read; wait until it is written, and try again")
    start = 0
    while has_lines and len(data) - start > LONGEST_LINE:
        start = data.rfind(b"\n", start, start + LONGEST_LINE + 1) + 1
        if not start:
            raise _too_long(path)
    return data


def _read_pieces(stream: IO[bytes], path: Path, *, has_lines: bool) -> bytes:
    """Read a stream of unknown size piece by piece: a line that is refused must not fill the memory before."""
    content = io.BytesIO()
    in_line = 0  # bytes of a line that has not ended yet
    while piece := stream.read(_AT_ONCE):
        content.write(piece)
        if has_lines:
            in_line = check_line(in_line, piece, path)
    return content.getvalue()


def check_line(before: int, piece: bytes, path: Path) -> int:
    """Check the last line of a piece, `before` bytes of which were in earlier pieces; return how many it has so far."""
    end = piece.rfind(b"\n")
    size = before + len(piece) if end < 0 else len(piece) - end - 1
    if size > LONGEST_LINE:
        raise _too_long(path)
    return size


def _too_long(path: Path) -> InputError:
    return InputError(f"{path}: has a line of more than {LONGEST_LINE >> 20} MiB; write one row a line")
