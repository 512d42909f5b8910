"""How the program ends: the exit status and one sentence for every error, and nothing left behind after a signal."""

from __future__ import annotations

import errno
import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType

import click
import polars as pl

import goodgain
from goodgain.cli.streams import check_standard_streams, drop_output
from goodgain.errors import GoodgainError, InputError
from goodgain.files.opening import error_reason

__all__ = ["run_to_end"]

#: Signals that ask the program to end; what it writes is removed first. SIGHUP: its terminal was closed.
_SIGNALS = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
#: The variable with the number of Polars' threads, and the largest number that is let through.
_THREADS, _MOST_THREADS = "POLARS_MAX_THREADS", 1024
#: What shells add to the number of a signal.
_BY_SIGNAL = 128


class _Terminated(BaseException):
    """Raised where the program is when a signal arrives, so that whatever it does is undone."""

    def __init__(self, number: int) -> None:
        self.number = number


def run_to_end(program: Callable[[], object]) -> int:
    """Call the program and return its exit status; every error becomes a sentence on standard error.

    0: done; 2: wrong input or arguments; 3 and others: what the program returns; 130, 143, 129: ended by SIGINT, SIGTERM,
    SIGHUP; 1: anything else.
    """
    with check_standard_streams():
        try:
            with _raise_for_signals():
                _check_environment()
                status = program()
                sys.stdout.flush()
            return status if isinstance(status, int) else 0
        except (Exception, KeyboardInterrupt, _Terminated, pl.exceptions.PanicException) as error:
            status, sentence = _explain(error)
            if sentence:
                _print_last(f"goodgain: {sentence}")
            return status
        finally:
            _flush_or_drop()


def _check_environment() -> None:
    """Raise `InputError` for a number of threads with which Polars ends the process when it begins, or the machine stops."""
    value = os.environ.get(_THREADS)
    if value is None:
        return
    try:
        threads = int(value)
    except ValueError:
        del os.environ[_THREADS]  # nothing, or no number: Polars 2 passes over it, and Polars 1 fails
        return
    if not 1 <= threads <= _MOST_THREADS:
        raise InputError(
            f"{_THREADS}={value[:80]}: set it to a number of threads from 1 to {_MOST_THREADS:,}, or remove it"
        )


def _explain(error: BaseException) -> tuple[int, str]:
    """Return the exit status and the sentence for an error; an empty one where nobody is left to read it."""
    match error:
        case GoodgainError():
            return error.exit_status, " ".join(str(error).split())
        case click.ClickException():
            return 2, f"{error.format_message()} (see goodgain --help)"
        case KeyboardInterrupt() | click.Abort():
            return _BY_SIGNAL + signal.SIGINT, "interrupted"
        case _Terminated():
            return _BY_SIGNAL + error.number, f"ended by {signal.Signals(error.number).name}"
        case OSError() if error.errno == errno.EPIPE:
            return 1, ""  # the reader of our output has closed the pipe, as `head` does
        case OSError() if error.filename is None:
            return (
                1,
                f"the output cannot be written to standard output ({error_reason(error)}); write it to another place",
            )
        case OSError():
            return 1, f"{str(error.filename)[:200]!r}: {error_reason(error)}; give another place"
        case UnicodeEncodeError():
            return 2, f"{str(error.object)[:200]!r} is not text in UTF-8; write such names and arguments in UTF-8"
        case MemoryError():
            return 1, "there is not enough memory for this input; give the process more, or split the input"
        case _:
            return 1, f"{_describe_unexpected(error)}; this is an error of goodgain: please report it with this line"


def _describe_unexpected(error: BaseException) -> str:
    """Return class, text and place of an error that nobody foresaw, in one line."""
    folder = Path(goodgain.__file__).parent
    places = [
        f"{Path(frame.filename).relative_to(folder)}:{frame.lineno}"
        for frame in traceback.extract_tb(error.__traceback__)
        if Path(frame.filename).is_relative_to(folder)
    ]
    text = next(iter(str(error).splitlines()), "")[:200]
    return f"{type(error).__name__}: {text} (at {places[-1] if places else 'an unknown place'})"


def _flush_or_drop() -> None:
    """Write what was printed; what cannot be written is dropped, as its error has been said."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            drop_output(stream)


def _print_last(sentence: str) -> None:
    with suppress(OSError, ValueError):  # standard error is full or closed: the exit status alone has to say it
        print(sentence, file=sys.stderr, flush=True)


@contextmanager
def _raise_for_signals() -> Iterator[None]:
    """Raise `_Terminated` where a signal asks the program to end, once: what follows is not to be interrupted.

    A signal that is ignored stays so: nohup asks for it. Only the main thread can set handlers.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def raise_terminated(number: int, _frame: FrameType | None) -> None:
        for one in (*handled, signal.SIGINT):
            signal.signal(one, signal.SIG_IGN)
        raise _Terminated(number)

    handled = [number for number in _SIGNALS if signal.getsignal(number) is signal.SIG_DFL]
    before = {number: signal.getsignal(number) for number in (*handled, signal.SIGINT)}
    for number in handled:
        signal.signal(number, raise_terminated)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
