"""Finds the format of a file.

A format is a module in this folder, or a plugin with an entry point in the group `goodgain.traces`. The function `sniff`
recognises a file. The function `read` yields the traces of the file.
"""

import importlib
import pkgutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from goodgain.errors import InputError
from goodgain.logs.traces.input.file_head import MAX_HEAD, FileHead
from goodgain.logs.traces.input.sources import Source
from goodgain.logs.traces.model import Trace
from goodgain.options import spell

#: The entry points of plugins.
ENTRY_POINT_GROUP = "goodgain.traces"


@dataclass(frozen=True)
class Format:
    """The name, the one-line description and the functions of a trace format."""

    name: str
    title: str
    sniff: Callable[[FileHead], bool]
    read: Callable[[Source], Iterator[Trace]]
    iteration: str  # the default iteration, `ITERATION` of the module
    find: Callable[[Path], list[Path]]  # for formats of a whole directory: the files to read, one per trace
    is_plugin: bool
    is_inside: bool  # `INSIDE` of the module; False: only a whole file has the format, not a value inside a file


@lru_cache(maxsize=1)
def formats() -> dict[str, Format]:
    """Return all formats by name: the formats in this folder, then the formats of plugins.

    Raises:
        InputError: a plugin cannot be loaded, lacks `sniff` or `read`, or has the name of another format.
    """
    by_name = {}
    for info in pkgutil.iter_modules(__path__):
        by_name[info.name] = _make_format(
            info.name, importlib.import_module(f"{__name__}.{info.name}"), is_plugin=False
        )

    for point in entry_points(group=ENTRY_POINT_GROUP):
        if point.name in by_name:
            raise InputError(f"plugin {point.value}: a format {point.name} exists already; rename or remove the plugin")
        try:
            by_name[point.name] = _make_format(point.name, point.load(), is_plugin=True)
        except Exception as error:  # a plugin may raise anything on import
            fault = f"cannot be used as a trace format ({type(error).__name__}: {error})"
            raise InputError(f"plugin {point.value}: {fault}; repair or uninstall the plugin") from error

    return by_name


def _make_format(name: str, adapter: Any, *, is_plugin: bool) -> Format:
    title = (adapter.__doc__ or name).strip().splitlines()[0]
    return Format(
        name, title, adapter.sniff, adapter.read,
        iteration=getattr(adapter, "ITERATION", "step"),
        find=getattr(adapter, "find", lambda directory: []),
        is_plugin=is_plugin,
        is_inside=getattr(adapter, "INSIDE", True),
    )  # fmt: skip


def get_format(name: str) -> Format:
    by_name = formats()
    if not isinstance(name, str) or name not in by_name:
        raise InputError(f"no trace format is called {name!r}; choose auto, {', '.join(by_name)}")
    return by_name[name]


def detect_format(path: Path, head: FileHead) -> Format | None:
    """Return the format of a file, or None if unknown. Raise an InputError if several match, or `head` is empty or cut off."""
    claims = _find_claims(path, head)
    if len(claims) == 1:
        return claims[0]
    if claims:
        names = " and ".join(trace_format.name for trace_format in claims)
        raise InputError(f"{path}: could be {names}; choose one with {spell('format')}")
    if not head.raw.strip():
        raise InputError(f"{path}: is empty; name the format with {spell('format')} ({', '.join(formats())})")
    if head.kind in ("json", "jsonl") and not (head.whole or head.extent[0]):
        raise InputError(
            f"{path}: its first record is longer than {MAX_HEAD >> 20} MiB, too long to recognise the format; name the format with "
            f"{spell('format')}: {', '.join(formats())}"
        )
    return None


def find_reader(head: FileHead) -> Callable[[Source], Iterator[Trace]] | None:
    """Return the `read` function of the only format that recognises `head`, else None. Formats without `is_inside` do not count."""
    claims = [claim for claim in _find_claims(Path(head.name), head) if claim.is_inside]
    if len(claims) == 1:
        return claims[0].read
    return None


def is_claimed(name: str, head: FileHead) -> bool:
    return bool(_find_claims(Path(head.name), head, name))


def _find_claims(path: Path, head: FileHead, name: str = "auto") -> list[Format]:
    """Return the formats that recognise a file. Try all formats, or only the format called `name`."""
    claims = []
    for trace_format in formats().values() if name == "auto" else [get_format(name)]:
        try:
            if trace_format.sniff(head):
                claims.append(trace_format)
        except Exception as error:
            if not trace_format.is_plugin:
                raise
            raise InputError(
                f"{path}: the plugin format {trace_format.name} failed on this file ({type(error).__name__}: {error}); "
                f"name the format with {spell('format')}, or repair or uninstall the plugin"
            ) from error

    return claims
