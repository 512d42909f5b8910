"""The bytes of a file all at once, or some of the lines of a large one."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import IO, NamedTuple

from goodgain.errors import InputError
from goodgain.files.opening import (
    COMPRESSED,
    compression_of,
    explain_read_errors,
    file_size,
    open_plain,
    open_stream,
    unpack,
)

__all__ = ["LONGEST_LINE", "Content", "check_line", "check_lines", "read_bytes", "read_lines"]

_PIECE = 2**20
#: Bytes of the longest line that is read of a table: two ids of 1 MB and more. A longer one is hostile, or not a table.
LONGEST_LINE = 64 << 20


class Content(NamedTuple):
    """The bytes of a file, or of some lines of one that is too large to be held.

    Attributes:
        data: the bytes, decompressed.
        part_of: the file, where `data` are some of its lines.
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
            while left and (piece := file.read(min(_PIECE, left))):
                lines += piece.count(b"\n")
                left -= len(piece)
        return lines

    def has_any(self, bytes_: bytes) -> bool:
        """Tell whether any of these bytes occurs."""
        return any(byte in self.data for byte in bytes_)

    def lines(self) -> Iterator[bytes]:
        """Yield every line with its end."""
        start = 0
        while start < len(self.data):
            end = self.data.find(b"\n", start) + 1 or len(self.data)
            yield self.data[start:end]
            start = end


def read_lines(path: Path) -> Content:
    """Read a file of lines as `read_bytes` does.

    Raises:
        InputError: also where a line is longer than 64 MiB.
    """
    return read_bytes(path, longest_line=LONGEST_LINE)


def read_bytes(path: Path, *, longest_line: int | None = None, most: int | None = None) -> Content:
    """Read a file, decompressed if it is gzip or Zstandard (known by its first bytes).

    The bytes are copied, not mapped: a mapped file that another program cuts short ends the process.

    Raises:
        InputError: the file cannot be read, became shorter meanwhile, its compressed data are damaged, end too early or
            unpack to over 64 MiB and over 100 times their size, a line is longer than `longest_line`, or there are more
            than `most` bytes.
    """
    with explain_read_errors(path), open_plain(path) as file:
        kind = compression_of(file.peek(4))
        if kind is not None:
            with unpack(file, kind, path) as stream:
                return Content(_read_pieces(stream, path, longest_line, most))
        if path.suffix.lower() in COMPRESSED:
            raise InputError(
                f"{path}: not {path.suffix[1:]} data although its name says so; decompress or download it again, or rename it"
            )
        size = file_size(file)
        if size is None:  # a pipe, or a device that may never end
            return Content(_read_pieces(file, path, longest_line, most))
        if most is not None and size > most:
            raise _too_large(path, most)
        data = file.read() if most is None else file.read(most + 1)
        if most is not None and len(data) > most:
            raise _too_large(path, most)
        if len(data) < size:
            raise InputError(f"{path}: became shorter while it was read; wait until it is written, and try again")
    if longest_line is not None:
        check_lines(data, path, longest_line)
    return Content(data)


def _read_pieces(stream: IO[bytes], path: Path, longest_line: int | None, most: int | None) -> bytes:
    """Read a stream whose size is not known to its end, so that what is refused does not fill the memory before."""
    content = io.BytesIO()
    in_line = 0  # bytes of a line that has not ended yet
    while piece := stream.read(_PIECE):
        if most is not None and content.tell() + len(piece) > most:
            raise _too_large(path, most)
        content.write(piece)
        if longest_line is not None:
            in_line = check_line(in_line, piece, path, longest_line)
    return content.getvalue()


def check_line(before: int, piece: bytes, path: Path, longest: int = LONGEST_LINE) -> int:
    """Check that the line at the end of a piece is not too long, and return how many bytes it has so far.

    Args:
        before: the bytes that it has in the pieces before.
        piece: the next bytes of the file.
        path: the file.
        longest: the bytes that a line may have.

    Raises:
        InputError: it is too long.
    """
    end = piece.rfind(b"\n")
    size = before + len(piece) if end < 0 else len(piece) - end - 1
    if size > longest:
        raise _too_long(path, longest)
    return size


def check_lines(data: bytes, path: Path, longest: int = LONGEST_LINE) -> None:
    """Check that no line is too long: before a reader puts it together, which takes several times its size.

    Raises:
        InputError: a line is.
    """
    start = 0
    while len(data) - start > longest:
        end = data.rfind(b"\n", start, start + longest + 1)
        if end < 0:
            raise _too_long(path, longest)
        start = end + 1


def _too_large(path: Path, most: int) -> InputError:
    return InputError(f"{path}: is larger than {most >> 30} GiB in one piece; write JSON Lines, one trace a line")


def _too_long(path: Path, longest: int) -> InputError:
    return InputError(f"{path}: has a line of more than {longest >> 20} MiB; write one row a line")
