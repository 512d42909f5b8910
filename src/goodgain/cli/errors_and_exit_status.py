"""How the program ends: all exit statuses, one sentence for every error, and nothing left behind after a signal."""

from __future__ import annotations

import errno
import io
import os
import signal
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout, suppress
from enum import IntEnum
from pathlib import Path
from types import FrameType
from typing import Any, TextIO

import click
import polars as pl

from goodgain.cli.notices import name_options
from goodgain.errors import GoodgainError
from goodgain.files.escaping import escape_controls
from goodgain.files.opening import error_reason


class ExitStatus(IntEnum):
    """What the program ends with; `GoodgainError.exit_status` says which errors are of the input."""

    DONE = 0
    FAILED = 1
    WRONG_INPUT = 2
    REQUIREMENT_FAILED = 3
    #: Added to the number of the signal that ended the program, as shells do: 130 by Ctrl-C, 143 by SIGTERM, 129 by SIGHUP.
    BY_SIGNAL = 128


#: Signals that ask the program to end; what it writes is removed first. SIGHUP: its terminal was closed.
_SIGNALS = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]


class _Terminated(BaseException):
    """Raised where the program is when a signal, its argument, arrives, so that whatever it does is undone."""


def run_to_end(program: Callable[[], object], options: Mapping[str, click.Option] | None = None) -> int:
    """Call the program and return its exit status; every error becomes a sentence on standard error.

    Our own errors name `options` of the command line where they name arguments in Python.
    """
    with _open_standard_streams():
        try:
            with _raise_for_signals():
                status = program()
                sys.stdout.flush()
            return status if isinstance(status, int) else ExitStatus.DONE
        except (Exception, KeyboardInterrupt, _Terminated, pl.exceptions.PanicException) as error:
            status, sentence = _explain(error)
            if isinstance(error, GoodgainError):
                sentence = name_options(sentence, options or {})
            if sentence:
                with suppress(OSError, ValueError):  # standard error is full or closed: the exit status has to say it
                    print(f"goodgain: {sentence}", file=sys.stderr, flush=True)
            return status
        finally:
            for stream in (sys.stdout, sys.stderr):
                _flush_or_drop(stream)


def _explain(error: BaseException) -> tuple[int, str]:
    """Return the exit status and the sentence for an error; an empty one where nobody is left to read it."""
    match error:
        case GoodgainError():
            return error.exit_status, " ".join(str(error).split())
        case click.ClickException():
            command = getattr(getattr(error, "ctx", None), "command_path", "goodgain")
            return ExitStatus.WRONG_INPUT, f"{error.format_message()} (see {command} --help)"
        case KeyboardInterrupt() | click.Abort():
            return ExitStatus.BY_SIGNAL + signal.SIGINT, "interrupted"
        case _Terminated():
            return ExitStatus.BY_SIGNAL + error.args[0], f"ended by {error.args[0].name}"
        case OSError() if error.errno == errno.EPIPE:
            return ExitStatus.FAILED, ""  # the reader of our output has closed the pipe, as `head` does
        case OSError():
            reason = error_reason(error)
            if error.filename is None:
                sentence = f"the output cannot be written to standard output ({reason}); write it to another place"
            else:
                sentence = f"{str(error.filename)[:200]!r}: {reason}; give another place"
            return ExitStatus.FAILED, sentence
        case UnicodeEncodeError():
            shown = f"{str(error.object)[:200]!r}"
            return ExitStatus.WRONG_INPUT, f"{shown} is not text in UTF-8; write such names and arguments in UTF-8"
        case MemoryError():
            sentence = "there is not enough memory for this input; give the process more, or split the input"
            return ExitStatus.FAILED, sentence
        case _:
            sentence = f"{_describe_unexpected(error)}; this is an error of goodgain: please report it with this line"
            return ExitStatus.FAILED, sentence


def _describe_unexpected(error: BaseException) -> str:
    """Return class, text and place of an error that nobody foresaw, in one line."""
    folder = Path(__file__).parents[1]
    places = [
        f"{Path(frame.filename).relative_to(folder)}:{frame.lineno}"
        for frame in traceback.extract_tb(error.__traceback__)
        if Path(frame.filename).is_relative_to(folder)
    ]
    text = next(iter(str(error).splitlines()), "")[:200]
    return f"{type(error).__name__}: {text} (at {places[-1] if places else 'an unknown place'})"


@contextmanager
def _raise_for_signals() -> Iterator[None]:
    """Raise `_Terminated` where a signal asks the program to end, once: what follows is not to be interrupted."""

    def raise_terminated(number: int, _frame: FrameType | None) -> None:
        for one in before:
            signal.signal(one, signal.SIG_IGN)
        raise _Terminated(signal.Signals(number))

    handled = [number for number in _SIGNALS if signal.getsignal(number) is signal.SIG_DFL]  # nohup has one ignored
    before = {number: signal.getsignal(number) for number in (*handled, signal.SIGINT)}
    for number in handled:
        signal.signal(number, raise_terminated)
    # Polars' hook, which it sets when it is imported, lets waits and reads go on after Ctrl-C: Python's own takes its place
    signal.signal(signal.SIGINT, before[signal.SIGINT])
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class _EscapedStream:
    """A text stream in which control characters are made visible, so that no id or name can steer a terminal.

    Tables of rich are written to `raw`, the stream itself: rich colours them, and their texts are escaped before.
    """

    def __init__(self, raw: TextIO) -> None:
        self.raw = raw

    def write(self, text: str) -> int:
        self.raw.write(escape_controls(text, keep="\n\t"))
        return len(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.raw, name)


@contextmanager
def _open_standard_streams() -> Iterator[None]:
    """Make standard output and standard error safe to print to, for as long as the program runs.

    What the encoding of a stream lacks is written as `\\xe4`: a name of a file must not end a program that has computed its
    numbers. A closed file gets a place to go, or the next file that is opened would take its number, and with it what is
    printed; writing to it is an error, as for a full disk.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDONLY)  # takes the lowest number that is free: this one
    with ExitStack() as stack:
        out, err = (
            stream or stack.enter_context(open(number, "w", closefd=False))
            for number, stream in ((1, sys.stdout), (2, sys.stderr))
        )
        for stream in (out, err):
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(errors="backslashreplace")
        printed: Any = _EscapedStream(out) if out.isatty() else out
        said: Any = _EscapedStream(err)
        with redirect_stdout(printed), redirect_stderr(said):
            yield


def _flush_or_drop(stream: TextIO) -> None:
    """Write what was printed. What cannot be written goes nowhere: Python would try it once more when it ends."""
    try:
        stream.flush()
    except (OSError, ValueError):
        with suppress(OSError, ValueError):
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, stream.fileno())
            os.close(nowhere)
            stream.flush()
