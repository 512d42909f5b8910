"""The standard streams as the commands print to them: one that is closed is said, and terminals get printable text only."""

from __future__ import annotations

import errno
import io
import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout, suppress
from typing import IO, Any, TextIO

from goodgain.files.safe_text import escape_controls

__all__ = ["check_standard_streams", "drop_output", "open_console"]

_LEAST_WIDTH = 40


class _Printable(io.TextIOBase):
    """A text stream in which control characters are made visible, so that no id or name can steer a terminal.

    Attributes:
        raw: the stream; libraries that colour a table write to it, and escape what they print themselves.
    """

    def __init__(self, raw: TextIO) -> None:
        self.raw = raw

    def write(self, text: str) -> int:
        """Write a text whose control characters, but line feeds and tabs, are written as Python writes them."""
        self.raw.write(escape_controls(text, keep="\n\t"))
        return len(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.raw, name)

    @property
    def encoding(self) -> str:  # type: ignore[override]  # an attribute, by its declaration
        """The encoding of the stream."""
        return self.raw.encoding

    def isatty(self) -> bool:
        """Return whether the stream is a terminal."""
        return self.raw.isatty()

    def fileno(self) -> int:
        """Return the number of the stream's file."""
        return self.raw.fileno()

    def flush(self) -> None:
        """Write what waits to be written."""
        self.raw.flush()


class _Closed(io.TextIOBase):
    """Standard output that was closed before the program began: to write to it is an error, as for a full disk."""

    def write(self, text: str) -> int:
        """Raise an error of the operating system."""
        raise OSError(errno.EBADF, "is closed")

    @property
    def buffer(self) -> IO[bytes]:
        """Raise an error of the operating system."""
        raise OSError(errno.EBADF, "is closed")


@contextmanager
def check_standard_streams() -> Iterator[None]:
    """Make standard output and standard error safe to print to, for as long as the program runs.

    What the encoding of a stream lacks is written as `\\xe4`: a name of a file must not end a program that has computed its
    numbers. A closed stream gets a place to go, or the next file that is opened would take its number and what libraries
    print about errors would go there.
    """
    _occupy_closed_files()
    with ExitStack() as stack:
        out: Any = sys.stdout or _Closed()
        err = sys.stderr or stack.enter_context(open(os.devnull, "w"))  # noqa: PTH123  # a device, not a path
        for stream in (out, err):
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(errors="backslashreplace")
        stack.enter_context(redirect_stdout(_Printable(out) if out.isatty() else out))
        stack.enter_context(redirect_stderr(_Printable(err)))
        yield


def _occupy_closed_files() -> None:
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest number that is free: this one


def drop_output(stream: TextIO) -> None:
    """Let what a stream still holds go nowhere: Python would fail to write it once more when it ends."""
    with suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
    with suppress(OSError, ValueError):
        stream.flush()


def open_console(stream: TextIO, **options: Any) -> Any:
    """Return a console of rich that writes to a standard stream as it is: texts in its tables are escaped before.

    It is at least 40 characters wide: in fewer (COLUMNS=0) rich leaves out columns, or all of a table.
    """
    from rich.console import Console

    console = Console(file=getattr(stream, "raw", stream), **options)
    if console.width < _LEAST_WIDTH:
        console.width = _LEAST_WIDTH
    return console
