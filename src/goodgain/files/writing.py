"""Writes files whole or not at all, and never an output over an input or another output.

A file that cannot be written raises `InputError`; inside this module it is an `OSError`.
"""

from __future__ import annotations

import errno
import gzip
import os
import re
import secrets
import stat
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO

import polars as pl
import zstandard

from goodgain.errors import InputError
from goodgain.files.opening import error_reason

#: How Rust writes the number of an operating system's error.
_OS_ERROR = re.compile(r"\(os error (\d+)\)")
#: Names of files that the process already has open.
_DESCRIPTOR = re.compile(r"/dev/(stdout|stderr)|/(?:dev|proc/self)/fd/([0-9]{1,9})")


class Outputs:
    """The files that a command writes: none may be an input or another output.

    Files are compared by device and inode, not by name: a link is the file that it leads to. Pipes and devices are not
    compared, because writing to them overwrites nothing.

    Args:
        inputs: the files that are read.
    """

    def __init__(self, inputs: Iterable[Path]) -> None:
        self._inputs: dict[_Identity, Path] = {_identify(path): path for path in inputs}
        self._outputs: dict[_Identity, Path] = {}

    def add(self, path: Path) -> None:
        """Add an output, before it is opened."""
        identity = _identify(path)
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


def _identify(path: Path) -> _Identity:
    """Return the device and inode of a file, the full path of a file that does not exist, or None for anything else."""
    try:
        status = path.stat()
    except FileNotFoundError:
        with suppress(OSError):  # the working folder was deleted: opening the file will say so
            return path.resolve()
    except (OSError, ValueError):  # opening it will say what is wrong
        return None
    else:
        return (status.st_dev, status.st_ino) if stat.S_ISREG(status.st_mode) else None
    return None


@contextmanager
def atomic_write(path: Path) -> Iterator[IO[bytes]]:
    """Open a file for writing, compressed as its name says; it appears under its name only after success.

    An error, or a signal that raises one, leaves an existing file unchanged.
    """
    try:
        number = _number_of_descriptor(path)
        if number is not None:
            # Opening the name again would empty a file that the shell appends to.
            with os.fdopen(os.dup(number), "wb") as out:
                yield out
            return
        target = _resolve(path)
        if path.exists() and (not path.is_file() or path.is_relative_to("/dev")):
            with path.open("wb") as out:  # a pipe or a terminal has no content to protect
                yield out
            return
        old_mode = stat.S_IMODE(target.stat().st_mode) if target.exists() else None
        part = target.with_name(f".{target.name[:60]}.{secrets.token_hex(4)}.part")
        mode = 0o666 if old_mode is None else old_mode  # the kernel applies the umask
        opened = open(part, "xb", opener=lambda name, flags: os.open(name, flags, mode))  # noqa: SIM115  # closed below
        try:
            with opened as raw, _compress(raw, target.suffix.lower()) as out:
                yield out
            if old_mode is not None:
                part.chmod(old_mode)
            part.replace(target)
        except BaseException:
            with suppress(FileNotFoundError):
                part.unlink()
            raise
    except OSError as error:
        if error.errno == errno.EPIPE:
            raise
        if not path.parent.exists():
            raise InputError(
                f"{str(path)[:200]}: the folder {str(path.parent)[:200]} does not exist. Create it."
            ) from error
        raise InputError(
            f"{str(path)[:200]!r}: cannot be written ({error_reason(error)}); choose another place"
        ) from error


def _number_of_descriptor(path: Path) -> int | None:
    """Return the number of the open file for a name such as /dev/stdout; None for any other name."""
    found = _DESCRIPTOR.fullmatch(str(path))
    if found is None:
        return None
    number = {"stdout": 1, "stderr": 2}.get(found[1] or "") or int(found[2])
    if {1: sys.__stdout__, 2: sys.__stderr__}.get(number, ...) is None:
        raise OSError(errno.EBADF, os.strerror(errno.EBADF))
    return number


def _resolve(path: Path) -> Path:
    try:
        target = path.resolve()
        is_folder = path.is_dir()
    except (RuntimeError, ValueError) as error:  # circular links (by Python's version); a NUL
        raise OSError(errno.EINVAL, str(error)) from error
    if is_folder:
        raise IsADirectoryError(errno.EISDIR, "is a directory")
    if target.is_symlink():
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
    return target


@contextmanager
def write_with_polars() -> Iterator[None]:
    """Raise the operating system's error that Polars wraps in its own."""
    try:
        yield
    except pl.exceptions.PolarsError as error:
        found = _OS_ERROR.search(str(error))
        if found is None:
            raise
        raise OSError(int(found[1]), os.strerror(int(found[1]))) from error


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """Make a folder for temporary files, and remove it with its content, even after an error or a signal."""
    with ExitStack() as stack:
        try:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="goodgain-")))
        except OSError as error:
            raise _make_room_error(error) from error
        try:
            yield folder
        except OSError as error:
            if error.errno == errno.EPIPE:
                raise
            raise _make_room_error(error) from error


def _make_room_error(error: OSError) -> InputError:
    return InputError(
        f"temporary files cannot be written ({error_reason(error)}); set the variable TMPDIR to a folder with more room"
    )


@contextmanager
def _compress(raw: IO[bytes], suffix: str) -> Iterator[IO[bytes]]:
    if suffix == ".gz":
        with gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0) as out:  # no time stamp: same data, same file
            yield out  # type: ignore[misc]  # GzipFile is a binary file in all but its declared type
    elif suffix == ".zst":
        with zstandard.ZstdCompressor(write_checksum=True).stream_writer(raw, closefd=False) as out:
            yield out
    else:
        yield raw
