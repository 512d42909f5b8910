"""Prints notices, progress and errors, and returns the exit status."""

import errno
import io
import os
import signal
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout, suppress
from pathlib import Path
from threading import Timer
from types import FrameType
from typing import Any, TextIO

import click
import polars as pl

from goodgain.cli.printed_tables import open_console
from goodgain.cli.shared_options import say
from goodgain.errors import (
    GoodgainError,
    GoodgainNotice,
    Progress,
    collect_notices,
    collect_progress,
    count_of,
    escape_controls,
    give,
    tell_progress,
)
from goodgain.files.opening import error_reason
from goodgain.interrupts import INTERRUPTED, INTERRUPTED_STATUS

#: The exit statuses of the program after an error; see also `GoodgainError.exit_status`.
FAILED, WRONG_INPUT, REQUIREMENT_FAILED = 1, 2, 3
#: The exit status after a signal, minus the number of the signal. As in shells, SIGTERM gives 143.
_BY_SIGNAL = 128
#: Signals that end the program. SIGHUP: the terminal was closed.
_SIGNALS = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]


class _Terminated(BaseException):
    """Raised on a signal such as SIGTERM, so that context managers can clean up. The exception's argument is the signal."""


#: Kinds of notices to show at once: the user may want to stop.
_URGENT = ("failing_endpoint", "schema_refused", "waiting_endpoint")


def run_to_end(program: Callable[[], object]) -> int:
    """Call the program and return its exit status. Every error becomes a sentence on standard error."""
    with _open_standard_streams():
        try:
            with _raise_for_signals():
                status = program()
                sys.stdout.flush()
            return status if isinstance(status, int) else 0
        except (Exception, KeyboardInterrupt, _Terminated, pl.exceptions.PanicException) as error:
            status, sentence = _explain(error)
            if sentence:
                with suppress(OSError, ValueError):  # standard error may be full or closed
                    print(f"goodgain: {sentence}", file=sys.stderr, flush=True)
            return status
        finally:
            for stream in (sys.stdout, sys.stderr):
                _flush_or_drop(stream)


def _explain(error: BaseException) -> tuple[int, str]:
    """Return the exit status for an error, and the sentence to print; an empty sentence prints nothing."""
    match error:
        case GoodgainError():
            return error.exit_status, " ".join(str(error).split())
        case click.ClickException():
            command = getattr(getattr(error, "ctx", None), "command_path", "goodgain")
            return WRONG_INPUT, f"{error.format_message()} (see {command} --help)"
        case KeyboardInterrupt() | click.Abort():
            return INTERRUPTED_STATUS, INTERRUPTED
        case _Terminated():
            return _BY_SIGNAL + error.args[0], f"ended by {error.args[0].name}"
        case OSError() if error.errno == errno.EPIPE:
            return FAILED, ""  # the reader closed the pipe, as `head` does
        case OSError() if error.filename is None:
            fault = f"standard output cannot be written ({error_reason(error)})"
            return FAILED, f"{fault}; write the output to another place"
        case OSError():
            return FAILED, f"{str(error.filename)[:200]!r}: {error_reason(error)}; give another place"
        case UnicodeEncodeError():
            text = f"{str(error.object)[:200]!r}"
            return WRONG_INPUT, f"{text} is not UTF-8 text; write names and arguments in UTF-8"
        case MemoryError():
            fault = "there is not enough memory for this input"
            return FAILED, f"{fault}; give the process more memory, or split the input"
        case _:
            fault = _describe_unexpected(error)
            return FAILED, f"{fault}; this is a bug in goodgain: please report it with this line"


def _describe_unexpected(error: BaseException) -> str:
    """Return the error's kind, the first line of its text, and the last line of the package that ran."""
    folder = Path(__file__).parents[1]
    place = "an unknown place"
    for frame in traceback.extract_tb(error.__traceback__):
        file = Path(frame.filename)
        if file.is_relative_to(folder):
            place = f"{file.relative_to(folder)}:{frame.lineno}"
    lines = str(error).splitlines() or [""]
    return f"{type(error).__name__}: {lines[0][:200]} (at {place})"


@contextmanager
def _raise_for_signals() -> Iterator[None]:
    """Raise `_Terminated` in the block on SIGTERM or SIGHUP, and KeyboardInterrupt on Ctrl-C. Afterwards restore the handlers.

    After the first of SIGTERM and SIGHUP, all three signals are ignored, so that cleaning up is not interrupted.
    """
    endings = [number for number in _SIGNALS if signal.getsignal(number) is signal.SIG_DFL]  # nohup ignores SIGHUP
    earlier_handlers = {number: signal.getsignal(number) for number in (*endings, signal.SIGINT)}

    def raise_terminated(ending: int, _frame: FrameType | None) -> None:
        for number in earlier_handlers:
            signal.signal(number, signal.SIG_IGN)
        raise _Terminated(signal.Signals(ending))

    for number in endings:
        signal.signal(number, raise_terminated)
    # The hook that Polars sets on import lets waits and reads continue after Ctrl-C: restore Python's own, or the parent's choice.
    is_ignored = earlier_handlers[signal.SIGINT] is signal.SIG_IGN
    signal.signal(signal.SIGINT, signal.SIG_IGN if is_ignored else signal.default_int_handler)

    try:
        yield
    finally:
        for number, handler in earlier_handlers.items():
            signal.signal(number, handler)


class _EscapedStream:
    """A text stream that escapes control characters: an id or a name must not control a terminal.

    Tables of the package rich are written to `raw` unescaped: they have colours, and their cells are already escaped.
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
    """Make standard output and standard error safe while the program runs.

    Characters that a stream cannot encode become escapes such as `\\xe4`, so that printing them raises no error. A closed stream
    becomes a read-only /dev/null, so that no file opened later gets the stream's file descriptor.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDONLY)  # gets the lowest free number, which is `number`

    with ExitStack() as stack:
        out = sys.stdout or stack.enter_context(open(1, "w", closefd=False))
        err = sys.stderr or stack.enter_context(open(2, "w", closefd=False))
        for stream in (out, err):
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(errors="backslashreplace")

        safe_out: Any = _EscapedStream(out) if out.isatty() else out
        safe_err: Any = _EscapedStream(err)
        with redirect_stdout(safe_out), redirect_stderr(safe_err):
            yield


def _flush_or_drop(stream: TextIO) -> None:
    """Flush a stream. If flushing fails, drop the text, because Python would try to flush the stream again on exit."""
    try:
        stream.flush()
    except (OSError, ValueError):
        with suppress(OSError, ValueError):
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, stream.fileno())
            os.close(nowhere)
            stream.flush()


#: Seconds before the progress bar appears.
_AFTER = 2.0


def show_notices() -> None:
    """Print each notice once on standard error, and hide all other warnings."""
    shown: set[str] = set()

    def show(message: Warning | str, category: type[Warning], *args: Any, **kwargs: Any) -> None:
        if str(message) not in shown and issubclass(category, GoodgainNotice):
            shown.add(str(message))
            say(f"notice: {message}")

    warnings.showwarning = show
    warnings.simplefilter("always", GoodgainNotice)


@contextmanager
def notices_after_output(*, full: bool) -> Iterator[None]:
    """Hold notices back until a command has printed its output. Unless `full`, minor notices are counted, not printed."""
    notices: dict[str, GoodgainNotice] = {}
    try:
        with collect_notices(lambda notice: notices.update({str(notice): notice})):
            yield
    finally:
        sys.stdout.flush()
        more = 0
        for notice in notices.values():
            if notice.minor and not full:
                more += 1
            else:
                warnings.warn(notice, stacklevel=2)
        if more:
            print(f"{count_of(more, 'more notice')}: --full", file=sys.stderr)


@contextmanager
def show_progress() -> Iterator[Progress]:
    """Show a progress bar for a `with` block that takes over two seconds, if standard error is a terminal.

    Yields a function that other threads call to report progress. Do not print inside the block. Notices follow after the block,
    except urgent ones.
    """
    console = open_console(sys.stderr) if sys.stderr.isatty() else None
    if console is None or not console.is_interactive:
        yield tell_progress
        return
    from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar

    columns = [TextColumn("{task.description}", markup=False), BarColumn(), TimeElapsedColumn()]
    bar = Bar(*columns, console=console, transient=True, redirect_stdout=False, redirect_stderr=False)
    bar.add_task("working", total=None)
    (task,) = bar.tasks

    def tell(step: str, done: int, total: int | None) -> None:
        share = f" {done / total:.0%}" if total else ""
        task.description = escape_controls(step) + share
        task.completed = done
        task.total = total

    later_notices: list[GoodgainNotice] = []

    def show_or_hold(notice: GoodgainNotice) -> None:
        if notice.kind in _URGENT:
            bar.console.print(f"notice: {notice}", markup=False, highlight=False)
        else:
            later_notices.append(notice)

    start = Timer(_AFTER, bar.start)
    start.daemon = True
    start.start()
    try:
        with collect_notices(show_or_hold), collect_progress(tell):
            yield tell
    finally:
        start.cancel()
        start.join()
        bar.stop()
        for notice in later_notices:
            give(notice)
