"""Shows results, notices and progress in a notebook: the notices of a cell stand under its result, not above it."""

from __future__ import annotations

import importlib
import re
import sys
import threading
import time
import warnings
from collections.abc import Iterable, Iterator
from contextvars import copy_context
from typing import Any
from uuid import uuid4

from goodgain.errors import GoodgainNotice, progress_of_notebook
from goodgain.files.tables import Line, Table, write_html

#: Seconds between two reports of progress, and before the first one.
_EVERY = 2.0
#: The notices of the running cell that no result has shown: what identifies a notice -> its text.
_waiting: dict[str, str] = {}


def write_result(parts: Iterable[Table | Line], notes: Iterable[str]) -> str:
    """Return the HTML of a result: its tables and lines, and under them its notices, which the cell then does not show again."""
    all_notes = [*notes]
    mark_shown(all_notes)
    return write_html([*parts, *(Line(note, 1) for note in all_notes)])


def mark_shown(notes: Iterable[str]) -> None:
    """Say that a result shows these notices: the cell does not show them again."""
    for note in notes:
        _waiting.pop(_identify(note), None)


def load_pictures() -> Any:
    """Return the module that draws results. It imports the classes of results, so these can import it only when they draw."""
    return importlib.import_module("goodgain.analysis.reporting.plots.pictures")


class CellProgress:
    """Shows what a cell is doing, from its third second on. The line disappears at the end of the cell."""

    def __init__(self, shell: Any) -> None:
        self._shell = shell
        self._what = ""
        self._done: threading.Event | None = None  # None: the cell has not reported progress
        self._thread: threading.Thread | None = None

    def tell(self, what: str, done: int, total: int | None) -> None:
        share = f" {done / total:.0%}" if total else ""
        self._what = f"{what}{share}"
        if self._thread is None:
            self._done = threading.Event()
            # the context says to which cell an output belongs
            self._thread = threading.Thread(target=copy_context().run, args=(self._show, self._done), daemon=True)
            self._thread.start()

    def end(self) -> None:
        if self._thread is not None and self._done is not None:
            self._done.set()
            self._thread.join()
            self._thread = None

    def _show(self, done: threading.Event) -> None:
        """Show the progress from time to time until `done` is set. A cell that ends before the first time shows nothing."""
        start = time.monotonic()
        display_id = f"goodgain-{uuid4().hex}"
        is_shown = False
        while not done.wait(_EVERY):
            seconds = time.monotonic() - start
            self._publish(f"{self._what} ({seconds:.0f} s)", display_id, update=is_shown)
            is_shown = True
        if is_shown:
            self._publish("", display_id, update=True)

    def _publish(self, text: str, display_id: str, *, update: bool) -> None:
        data = {"text/plain": text, "text/html": write_html([Line(text)] if text else [])}
        self._shell.display_pub.publish(data, transient={"display_id": display_id}, update=update)


def show_in_cells() -> None:
    """In a notebook, show notices at the end of the cell that gave them, and the progress of long work. Elsewhere, do nothing.

    Python's filters of warnings still decide which notices are shown, and which are errors.
    """
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    if shell is None or not hasattr(shell, "kernel"):
        return
    show_others = warnings.showwarning

    def show(message: Warning | str, category: type[Warning], *args: Any, **kwargs: Any) -> None:
        if issubclass(category, GoodgainNotice):
            _waiting[_identify(str(message))] = str(message)
        else:
            show_others(message, category, *args, **kwargs)

    warnings.showwarning = show
    progress = CellProgress(shell)
    progress_of_notebook.append(progress.tell)
    shell.events.register("post_run_cell", lambda *_: progress.end())
    shell.events.register("post_run_cell", lambda *_: _show_waiting(shell))


def _show_waiting(shell: Any) -> None:
    """Show the notices of a cell that its results have not shown."""
    if _waiting:
        texts = [*_waiting.values()]
        _waiting.clear()
        plain = "\n".join(f"notice: {text}" for text in texts)
        shell.display_pub.publish({"text/plain": plain, "text/html": write_html(_lay_out(texts))})


def _lay_out(texts: Iterable[str]) -> Iterator[Line]:
    for text in texts:
        first, *lines = text.splitlines()
        yield Line(f"notice: {first}", 1)
        yield from (Line(line, 2) for line in lines)


def _identify(text: str) -> str:
    """Return a notice without its line breaks, which a comparison writes as semicolons."""
    return re.sub(r"[;\s]+", " ", text)
