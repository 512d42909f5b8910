"""Opens files: finds their format by name, and decompresses them as a stream or at once.

Raises `InputError` for a file that cannot be read, becomes shorter during reading, or has a line that is too long. Raises
the same error for damaged compressed data, and for data that unpack to over 64 MiB and over 100 times the compressed size.
"""

import gzip
import io
import os
import re
import stat
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from io import BufferedReader, FileIO, RawIOBase
from pathlib import Path
from typing import IO, Any, NamedTuple

import zstandard

from goodgain.errors import InputError
from goodgain.files.other_kinds import find_other_kind

#: The byte order mark that Excel and other programs write before UTF-8.
BOM = b"\xef\xbb\xbf"
#: Endings of compressed files, which follow the ending of the kind.
COMPRESSED = (".gz", ".zst")
JSON_LINES = (".jsonl", ".ndjson")
#: Ending of a name -> kind of file; every other name is text.
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
#: How a pickle begins (protocols since Python 2.3); no file that goodgain reads begins in this way.
_PICKLE = re.compile(rb"\x80[\x02-\x05]")
#: Bytes per read from disk. Python's default of a few KiB would assemble a long line from many reads.
_BUFFER = 256 << 10
#: Compressed bytes unpacked at a time, at most and at least. Four bytes can unpack to 128 KiB: if a piece unpacks to more
#: than `_PIECE`, the next piece is smaller. So pieces of a malicious file stay small too.
_PACKED, _FEWEST, _PIECE = 16 << 10, 64, 4 << 20
#: Compressed data may unpack to this many bytes, or to this many times their own size.
_UNPACKED, _TIMES = 64 << 20, 100
#: Bytes per read when a stream is read whole.
_AT_ONCE = 1 << 20
#: Bytes of the longest line of a table: room for ids of several MB. A file with longer lines is malicious or not a table.
LONGEST_LINE = 64 << 20


#: The process that used Polars first; after a fork, also the forked process.
_users = set[int]()


def check_fork() -> None:
    """Raise `InputError` if this process was forked after a use of Polars: the next call of Polars would deadlock.

    Functions that read or compute call this check first.
    """
    _users.add(os.getpid())
    if len(_users) > 1:
        problem = "this process was forked from one that had used goodgain, and Polars' threads do not survive a fork"
        raise InputError(f"{problem}; start processes with multiprocessing.get_context('spawn')")


def make_path(path: Any, subject: str) -> Path:
    if not isinstance(path, (str, os.PathLike)):
        raise InputError(f"{subject} is a {type(path).__name__}; give the path of a file")
    return Path(path)


def plain_name(name: str) -> str:
    """Return the name of a file without `.gz` or `.zst`.

    >>> plain_name("agent.run.GZ")
    'agent.run'
    """
    ending = next((ending for ending in COMPRESSED if name.lower().endswith(ending)), "")
    return name[: len(name) - len(ending)] or name


def stem(path: Path) -> str:
    """Return the default name of a system: the name of its file without endings such as `.run` and `.run.gz`."""
    return Path(plain_name(as_text(path.name))).stem


def as_text(name: str) -> str:
    r"""Return the name of a file as valid Unicode, with each byte that is not UTF-8 written like `\xff`.

    Python represents such bytes as lone surrogates; in the C locale, it does so for all bytes that are not ASCII.

    >>> print(as_text(b"run\xff".decode(errors="surrogateescape")))
    run\xff
    """
    try:
        return name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    except UnicodeEncodeError:  # surrogates that stand for no byte, given by a caller
        return name.encode("utf-8", "backslashreplace").decode()


def container(path: Path) -> str:
    """Return the format of a file by its ending: `jsonl`, `parquet`, `arrow`, or `text` for any other ending."""
    return _CONTAINERS.get(Path(plain_name(path.name)).suffix.lower(), "text")


def separator_by_name(path: Path) -> str | None:
    """Return the separator of a .csv or .tsv file; None for any other name."""
    return _SEPARATORS.get(Path(plain_name(path.name)).suffix.lower())


def compression_of(begin: bytes) -> str | None:
    """Return `gz` or `zst` if the bytes at the beginning of a file are those of gzip or Zstandard, else None."""
    if begin.startswith(_GZIP):
        return "gz"
    return "zst" if begin.startswith(_ZSTD) else None


def compression(path: Path) -> str | None:
    with open_plain(path) as file:
        return compression_of(file.peek(len(_ZSTD)))


@contextmanager
def open_stream(path: Path) -> Iterator[IO[bytes]]:
    """Open a file as a stream, decompressed if the first bytes are those of gzip or Zstandard."""
    with explain_read_errors(path), open_plain(path) as file:
        kind = compression_of(file.peek(len(_ZSTD)))
        with unpack(file, kind, path, _file_size(file)) if kind else nullcontext(file) as content:
            yield content


@contextmanager
def unpack(file: IO[bytes], kind: str, path: Path, size: int | None) -> Iterator[IO[bytes]]:
    """Decompress a `gz` or `zst` file as a stream. `size`, the compressed size, sets the limit against decompression bombs."""
    pieces = _unpack_zst(file)
    if kind == "gz":
        pieces = iter(partial(gzip.GzipFile(fileobj=file).read, _BUFFER), b"")
    limited = _limit_size(pieces, path, size)
    with BufferedReader(_Pieces(limited), _BUFFER) as stream:
        yield stream


def _file_size(file: IO[bytes]) -> int | None:
    status = os.fstat(file.fileno())
    return status.st_size if stat.S_ISREG(status.st_mode) else None


def _is_device(file: IO[bytes]) -> bool:
    return stat.S_ISCHR(os.fstat(file.fileno()).st_mode)


def open_plain(path: Path) -> BufferedReader:
    """Open a file without decompressing it; refuse a pickle, because loading one can run any code."""
    try:
        file: BufferedReader = BufferedReader(FileIO(path), _BUFFER)
        is_pickle = _PICKLE.match(file.peek(2)) is not None
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        raise InputError(f"{str(path)[:200]!r}: {error_reason(error)}; give the path of a readable file") from error
    if is_pickle:
        file.close()
        raise InputError(f"{path}: is a Python pickle. Loading it can run any code. Save its content as JSON")
    return file


@contextmanager
def explain_read_errors(path: Path) -> Iterator[None]:
    """Turn errors of the operating system and of damaged compressed data into an `InputError` with the file's name."""
    try:
        yield
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise InputError(f"{path}: the gzip data is truncated or damaged; write or download it again") from error
    except zstandard.ZstdError as error:
        raise InputError(f"{path}: the zst data is truncated or damaged; write or download it again") from error
    except OSError as error:
        raise InputError(f"{str(path)[:200]!r}: {error_reason(error)}; give the path of a readable file") from error


def error_reason(error: OSError | ValueError) -> str:
    if isinstance(error, FileNotFoundError):
        return "no such file"
    if isinstance(error, IsADirectoryError):
        return "is a directory, not a file"
    return (getattr(error, "strerror", None) or str(error)).lower()


def _limit_size(pieces: Iterable[bytes], path: Path, packed: int | None) -> Iterator[bytes]:
    """Yield the decompressed pieces. Raise an error if they exceed both 64 MiB and 100 times the compressed size `packed`.

    A compressed size that is not known (None) counts as 64 MiB.
    """
    most = max(_UNPACKED, _TIMES * (_UNPACKED if packed is None else packed))
    size = 0
    for piece in pieces:
        size += len(piece)
        if size > most:
            problem = (
                f"unpacks to more than {most >> 20:,} MiB, over {_TIMES} times its size, like a decompression bomb"
            )
            raise InputError(f"{path}: {problem}; if you trust it, decompress it and give the plain file")
        yield piece


class _Pieces(RawIOBase):
    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = filter(None, pieces)
        self._unread = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]  # any buffer, by its declaration
        self._unread = self._unread or memoryview(next(self._pieces, b""))
        size = min(len(buffer), len(self._unread))
        buffer[:size] = self._unread[:size]
        self._unread = self._unread[size:]
        return size


def _unpack_zst(file: IO[bytes]) -> Iterator[bytes]:
    """Yield the decompressed bytes of Zstandard frames.

    If the last frame is incomplete, zstandard's own reader raises no error: a truncated run would be scored as a complete run.
    """
    size = 16 * _FEWEST
    packed = file.read(size)
    while packed:
        frame = zstandard.ZstdDecompressor().decompressobj()
        while not frame.eof:
            if not packed:
                raise zstandard.ZstdError("the last Zstandard frame is incomplete")
            piece = frame.decompress(packed)
            yield piece

            size = max(_FEWEST, size // 4) if len(piece) > _PIECE else min(_PACKED, 2 * size)
            packed = frame.unused_data if frame.eof else file.read(size)
        packed = packed or file.read(size)


class Content(NamedTuple):
    """The decompressed bytes of a file (`data`). If a large file is given as `part_of`, `data` holds only some of its lines.

    `data` begins at byte `offset` of the decompressed file. If `part_of` is given and `data` is empty, `lines` reads all lines.
    """

    data: bytes
    part_of: Path | None = None
    offset: int = 0

    @property
    def before(self) -> int:
        """The number of lines before `data` in the file `part_of`; 0 if `part_of` is None. The file is read to count the lines."""
        if self.part_of is None:
            return 0
        lines, bytes_left = 0, self.offset
        with open_stream(self.part_of) as file:
            while bytes_left and (piece := file.read(min(_AT_ONCE, bytes_left))):
                lines += piece.count(b"\n")
                bytes_left -= len(piece)
        return lines

    def lines(self) -> Iterator[bytes]:
        """Yield every line with its line end."""
        if self.part_of is not None and not self.data:
            with open_stream(self.part_of) as file:
                yield from file
        yield from io.BytesIO(self.data)


def read_bytes(path: Path, *, has_lines: bool = False) -> Content:
    """Read a file without its byte order mark; decompress it if the first bytes are those of gzip or Zstandard.

    A file of another kind, such as a spreadsheet or UTF-16 text, raises an error that names the kind. With `has_lines` a line
    that is too long raises an error, as do Parquet and Arrow data. The file is not memory-mapped, because the process would
    crash if another program truncated the file.
    """
    with explain_read_errors(path), open_plain(path) as file:
        size = _file_size(file)
        begin = file.peek()
        kind = compression_of(begin)
        if kind is not None:
            with unpack(file, kind, path, size) as stream:
                data = _read_pieces(stream, path, has_lines=has_lines)
            _refuse_other_kind(data, path, has_lines=has_lines)
            return Content(data)

        if path.suffix.lower() in COMPRESSED:
            kind = path.suffix[1:]
            raise InputError(f"{path}: not {kind} data, despite its name; rename the file, or download it again")
        if size is None:  # a pipe, or a device that may never end: a line of /dev/zero has no end
            data = _read_pieces(file, path, has_lines=has_lines or _is_device(file))
            _refuse_other_kind(data, path, has_lines=has_lines)
            return Content(data)

        _refuse_other_kind(begin.removeprefix(BOM), path, has_lines=has_lines)
        data = file.read()
        if len(data) < size:
            raise InputError(f"{path}: became shorter while it was read; wait until it is written, and try again")

    start = 0
    while has_lines and len(data) - start > LONGEST_LINE:
        start = data.rfind(b"\n", start, start + LONGEST_LINE + 1) + 1
        if not start:
            raise _make_line_error(path)
    return Content(data.removeprefix(BOM))


def _refuse_other_kind(begin: bytes, path: Path, *, has_lines: bool) -> None:
    kind = find_other_kind(begin, is_text=has_lines)
    if kind is not None:
        raise InputError(f"{path}: is {kind.name}. {kind.remedy}")


read_lines = partial(read_bytes, has_lines=True)


def _read_pieces(stream: IO[bytes], path: Path, *, has_lines: bool) -> bytes:
    """Read a stream of unknown size in pieces. With `has_lines`, raise an error if the line at the end of a piece is too long."""
    content = io.BytesIO()
    in_line = 0  # bytes of a line that has not ended yet
    while piece := stream.read(_AT_ONCE):
        content.write(piece)
        if has_lines:
            in_line = check_line(in_line, piece, path)
    return content.getvalue().removeprefix(BOM)


def check_line(before: int, piece: bytes, path: Path) -> int:
    """Return the size of the unfinished line after `piece`. `before` is the previous result. Refuse a size that is too large."""
    end = piece.rfind(b"\n")
    size = before + len(piece) if end < 0 else len(piece) - end - 1
    if size > LONGEST_LINE:
        raise _make_line_error(path)
    return size


def _make_line_error(path: Path) -> InputError:
    return InputError(f"{path}: has a line of more than {LONGEST_LINE >> 20} MiB; write one row per line")
