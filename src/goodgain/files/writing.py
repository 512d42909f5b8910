"""Writing: no file over another that is needed, files that appear whole or not at all, ids that TREC text can hold."""

from __future__ import annotations

import errno
import gzip
import os
import re
import stat
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

import polars as pl
import zstandard

from goodgain.errors import InputError

__all__ = ["Outputs", "escaped", "why", "written_whole"]

#: White space and control characters of Unicode, that some reader would take for the end of a field or line.
_UNSAFE = r"[\s\p{Cc}\x{1c}-\x{1f}\x{85}\x{feff}]"
_UNSAFE_SIGN = re.compile(r"[\s\x00-\x1f\x7f-\x9f\ufeff]")


def why(error: OSError | ValueError) -> str:
    """What an error of the operating system says, in a few words."""
    if isinstance(error, FileNotFoundError):
        return "no such file"
    if isinstance(error, IsADirectoryError):
        return "is a directory, not a file"
    return (getattr(error, "strerror", None) or str(error)).lower()


class Outputs:
    """The files that a command writes, none of them an input or another output.

    Files are told apart by what they are, not by their names: a link is the file it leads to. Pipes and devices are
    left out, as there is nothing in them to lose.

    Args:
        inputs: the files that are read.
    """

    def __init__(self, inputs: Iterable[Path]) -> None:
        self._inputs: dict[_Identity, Path] = {_identity(path): path for path in inputs}
        self._outputs: dict[_Identity, Path] = {}

    def add(self, path: Path) -> None:
        """Add an output, before it is opened.

        Raises:
            InputError: it is an input, or an output that was added before.
        """
        identity = _identity(path)
        if identity is None:
            return
        if identity in self._inputs and path.exists():
            read = self._inputs[identity]
            raise InputError(f"the output {path} is the same file as the input {read}; give the output another name")
        if identity in self._outputs:
            other = self._outputs[identity]
            raise InputError(f"the outputs {other} and {path} are the same file; give each a name of its own")
        self._outputs[identity] = path


_Identity = tuple[int, int] | Path | None


def _identity(path: Path) -> _Identity:
    """Device and inode of a file, the place and name of one that does not exist yet, None for anything else."""
    try:
        status = path.stat()
    except FileNotFoundError:
        return path.resolve()
    except (OSError, ValueError):  # whoever opens it says what is wrong
        return None
    return (status.st_dev, status.st_ino) if stat.S_ISREG(status.st_mode) else None


@contextmanager
def written_whole(path: Path) -> Iterator[IO[bytes]]:
    """A file to write to, compressed as its name says, that appears under its name only when all went well.

    An error or Ctrl-C leaves whatever stood there before.
    """
    try:
        target = path.resolve()  # through a link to the file it names
        if path.is_dir():
            raise IsADirectoryError(errno.EISDIR, "is a directory")
        if path.exists() and (not path.is_file() or path.is_relative_to("/dev")):
            with path.open("wb") as out:  # a pipe, a terminal, standard output: nothing there to protect
                yield out
            return
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name[:60]}.", suffix=".part")
        part = Path(name)
        try:
            with os.fdopen(handle, "wb") as raw, _compressing(raw, target.suffix.lower()) as out:
                yield out
            part.chmod(_default_mode(target))
            part.replace(target)
        except BaseException:
            with suppress(FileNotFoundError):
                part.unlink()
            raise
    except (OSError, ValueError) as error:
        if isinstance(error, InputError) or getattr(error, "errno", None) == errno.EPIPE or "Broken pipe" in str(error):
            raise
        raise InputError(f"{str(path)[:200]!r}: cannot be written ({why(error)}); choose another place") from error


@contextmanager
def _compressing(raw: IO[bytes], suffix: str) -> Iterator[IO[bytes]]:
    if suffix == ".gz":
        with gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0) as out:  # no time stamp: same data, same file
            yield out  # type: ignore[misc]  # GzipFile is a binary file in all but its declared type
    elif suffix == ".zst":
        with zstandard.ZstdCompressor(write_checksum=True).stream_writer(raw, closefd=False) as out:
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


def escaped(frame: pl.DataFrame) -> tuple[pl.DataFrame, int]:
    """The frame with white space and control characters in its texts as %XX (UTF-8 bytes), and how many had any."""
    changed = 0
    for name, dtype in frame.schema.items():
        if dtype != pl.String:
            continue
        column = frame.get_column(name)
        unsafe = column.str.contains(_UNSAFE)
        if unsafe.any():
            changed += int(unsafe.sum())
            ids = column.filter(unsafe).unique()
            safe = pl.Series([_UNSAFE_SIGN.sub(_percent, text) for text in ids], dtype=pl.String)
            if safe.is_duplicated().any() or column.is_in(safe.implode()).any():
                raise InputError(
                    f"two values of {name} would become one when white space in them is written as %XX; "
                    "write Parquet or JSON Lines, or rename the ids"
                )
            frame = frame.with_columns(column.replace(ids, safe))
    return frame, changed


def _percent(found: re.Match[str]) -> str:
    return "".join(f"%{byte:02X}" for byte in found.group().encode())
