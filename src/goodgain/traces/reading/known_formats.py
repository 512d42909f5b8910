"""The known formats.

A format is a module in the folder `formats`, or an object that the entry point group `goodgain.traces` names. It has
`sniff(head) -> bool` and `read(source) -> Iterator[Trace]`. It may have `independent(head) -> bool` (whether each line
of JSON Lines is a trace of its own, so that lines can be read in several processes), `ITERATION` (what an iteration
is by default) and `find(directory) -> list[Path]` (the files to read, one a trace, of a directory that is of the format
as a whole; empty if it is not).
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import goodgain.traces.formats as folder
from goodgain.errors import InputError
from goodgain.traces.input.file_head import FileHead
from goodgain.traces.input.sources import Source
from goodgain.traces.model import Trace

__all__ = ["GROUP", "Format", "formats", "get_format"]

GROUP = "goodgain.traces"


@dataclass(frozen=True)
class Format:
    """One trace format: its name, its description in one line, and its functions."""

    name: str
    title: str
    sniff: Callable[[FileHead], bool]
    read: Callable[[Source], Iterator[Trace]]
    independent: Callable[[FileHead], bool]
    iteration: str
    find: Callable[[Path], list[Path]]
    is_plugin: bool


@lru_cache(maxsize=1)
def formats() -> dict[str, Format]:
    """Return all formats by name: those in the folder, then those of plugins.

    Raises:
        InputError: a plugin cannot be loaded, lacks a function, or has the name of another format.
    """
    found = {}
    for info in pkgutil.iter_modules(folder.__path__):
        module = importlib.import_module(f"{folder.__name__}.{info.name}")
        found[info.name] = _make_format(info.name, module, is_plugin=False)
    for point in entry_points(group=GROUP):
        if point.name in found:
            raise InputError(
                f"plugin {point.value}: a format named {point.name} exists already; rename or uninstall it"
            )
        try:
            found[point.name] = _make_format(point.name, point.load(), is_plugin=True)
        except Exception as error:  # whatever a foreign module raises while it is imported
            raise InputError(
                f"plugin {point.value}: cannot be used as a trace format ({type(error).__name__}: {error}); "
                "repair or uninstall it"
            ) from error
    return found


def _make_format(name: str, adapter: Any, *, is_plugin: bool) -> Format:
    title = (adapter.__doc__ or name).strip().splitlines()[0]
    return Format(
        name, title, adapter.sniff, adapter.read,
        independent=getattr(adapter, "independent", lambda head: False),
        iteration=getattr(adapter, "ITERATION", "step"),
        find=getattr(adapter, "find", lambda directory: []),
        is_plugin=is_plugin,
    )  # fmt: skip


def get_format(name: str) -> Format:
    """Return the format of a name.

    Raises:
        InputError: no format has that name.
    """
    known = formats()
    if name not in known:
        raise InputError(f"no trace format is called {name!r}; there are {', '.join(known)}, and auto")
    return known[name]
