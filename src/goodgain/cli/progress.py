"""Shows on a terminal how far long work is."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Timer

from goodgain.cli.printed_tables import open_console
from goodgain.errors import GoodgainNotice, Progress, collect_notices, collect_progress, notice, tell_progress
from goodgain.files.escaping import escape_controls

#: Seconds of work without a bar.
_AFTER = 2.0


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
