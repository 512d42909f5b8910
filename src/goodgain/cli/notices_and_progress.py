"""Shows notices, minor ones on request, and how far long work is."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Timer
from typing import Any

from goodgain.cli.printed_tables import open_console
from goodgain.cli.shared_options import say
from goodgain.errors import GoodgainNotice, Progress, collect_notices, collect_progress, notice, tell_progress
from goodgain.files.escaping import escape_controls

#: Seconds of work without a bar.
_AFTER = 2.0


def show_notices() -> None:
    """From here on, print each notice once on standard error, and no other warning."""
    shown: set[str] = set()

    def show(message: Warning | str, category: type[Warning], *args: Any, **kwargs: Any) -> None:
        if str(message) not in shown and issubclass(category, GoodgainNotice):
            shown.add(str(message))
            say(f"notice: {message}")

    warnings.showwarning = show
    warnings.simplefilter("always", GoodgainNotice)


@contextmanager
def notices_after_output(*, full: bool) -> Iterator[None]:
    """Hold notices back until a command has printed its output; without `full`, only count the minor ones."""
    given: dict[str, GoodgainNotice] = {}
    try:
        with collect_notices(lambda one: given.update({str(one): one})):
            yield
    finally:
        sys.stdout.flush()
        minor = [text for text, one in given.items() if one.minor and not full]
        for text, one in given.items():
            if text not in minor:
                warnings.warn(one, stacklevel=2)
        if minor:
            print(f"{len(minor)} more notice{'s' * (len(minor) != 1)}: --full", file=sys.stderr)


@contextmanager
def show_progress() -> Iterator[Progress]:
    """Show what `tell_progress` tells inside a `with`, if it takes over two seconds; remove it afterwards.

    Yields a function to tell it by, for other threads. The bar needs a terminal as standard error. Do not print inside the
    `with`; notices wait until the bar is gone.
    """
    console = open_console(sys.stderr) if sys.stderr.isatty() else None
    if console is None or not console.is_interactive:
        yield tell_progress
        return
    from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar

    columns = TextColumn("{task.description}", markup=False), BarColumn(), TimeElapsedColumn()
    bar = Bar(*columns, console=console, transient=True, redirect_stdout=False, redirect_stderr=False)
    bar.add_task("working", total=None)
    (task,) = bar.tasks

    def tell(what: str, done: int, total: int | None) -> None:
        share = f" {done / total:.0%}" if total else ""
        task.description, task.completed, task.total = escape_controls(what) + share, done, total

    held: list[GoodgainNotice] = []
    start = Timer(_AFTER, bar.start)
    start.daemon = True
    start.start()
    try:
        with collect_notices(held.append), collect_progress(tell):
            yield tell
    finally:
        start.cancel()
        start.join()
        bar.stop()
        for one in held:
            notice(str(one), minor=one.minor)
