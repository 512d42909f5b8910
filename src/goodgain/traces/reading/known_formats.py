"""Finds the format of a file; if no format claims it, says what the file looks like, and why the nearest formats do not.

A format is a module in the folder `formats`, or an object of the entry point group `goodgain.traces`. It has
`sniff(head) -> bool` and `read(source) -> Iterator[Trace]`. It may have:

- `independent(head) -> bool`: whether each line of JSON Lines is one trace, and several processes may share the lines;
- `ITERATION`: the default iteration;
- `find(directory) -> list[Path]`: the files to read, one per trace, if a directory as a whole has the format; else none.

The nearest formats are those whose readers know many keys of the file, above all rare ones: the keys are taken from the
source of the reader. A trial of the reader gives the reason.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import entry_points
from io import BytesIO
from pathlib import Path
from typing import Any

import orjson

import goodgain.traces.formats as folder
from goodgain.errors import InputError
from goodgain.traces.input.file_head import MAX_HEAD, FileHead
from goodgain.traces.input.sources import Source
from goodgain.traces.model import Trace
from goodgain.traces.reading_summary import Summary

GROUP = "goodgain.traces"
#: A word in quotes: perhaps a key or the name of a type in a log.
_QUOTED_WORD = re.compile(r"[\"']([A-Za-z_][\w.-]{1,60})[\"']")
#: Keys with names of types, which are as characteristic as keys.
_TYPE_KEYS = {"type", "role", "kind", "event", "object", "part_kind", "run_type"}
#: How many formats the message names, how deep keys are searched, and the length of a reason.
_NEAREST, _MAX_DEPTH, _LONGEST_REASON = 2, 6, 160


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
    known = {}
    for info in pkgutil.iter_modules(folder.__path__):
        module = importlib.import_module(f"{folder.__name__}.{info.name}")
        known[info.name] = _make_format(info.name, module, is_plugin=False)
    for point in entry_points(group=GROUP):
        if point.name in known:
            raise InputError(
                f"plugin {point.value}: a format named {point.name} exists already; rename or uninstall it"
            )
        try:
            known[point.name] = _make_format(point.name, point.load(), is_plugin=True)
        except Exception as error:  # a plugin may raise anything on import
            raise InputError(
                f"plugin {point.value}: cannot be used as a trace format ({type(error).__name__}: {error}); "
                "repair or uninstall it"
            ) from error
    return known


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
    if not isinstance(name, str) or name not in known:
        raise InputError(f"no trace format is called {name!r}; there are {', '.join(known)}, and auto")
    return known[name]


def detect_format(path: Path, head: FileHead) -> Format:
    """Return the one format that claims a file.

    Raises:
        InputError: no format claims it, or several do: a wrong format would give wrong numbers.
    """
    known = formats()
    claims = [trace_format for trace_format in known.values() if _is_claimed_by(trace_format, path, head)]
    if len(claims) == 1:
        return claims[0]
    if claims:
        names = " and ".join(trace_format.name for trace_format in claims)
        raise InputError(f"{path}: could be {names}; say which with format=")
    if not head.raw.strip():
        raise InputError(f"{path}: is empty; give its format with format= ({', '.join(known)})")
    if head.kind in ("json", "jsonl") and not (head.whole or head.has_record):
        raise InputError(
            f"{path}: its first record is longer than {MAX_HEAD >> 20} MiB, too long to recognise the format; name it with "
            f"format=: {', '.join(known)}"
        )
    raise InputError(_describe_unclaimed(path, head, known))


def is_claimed(name: str, head: FileHead) -> bool:
    """Return whether the named format or, for `auto`, any format claims a file."""
    known = [*formats().values()] if name == "auto" else [get_format(name)]
    return any(_is_claimed_by(trace_format, Path(head.name), head) for trace_format in known)


def _is_claimed_by(trace_format: Format, path: Path, head: FileHead) -> bool:
    """Return whether a format claims a file; an error of a plugin names the plugin."""
    try:
        return trace_format.sniff(head)
    except Exception as error:
        if not trace_format.is_plugin:
            raise
        raise InputError(
            f"{path}: the plugin format {trace_format.name} failed on it ({type(error).__name__}: {error}); "
            "name the format with format=, or repair or uninstall the plugin"
        ) from error


def _describe_unclaimed(path: Path, head: FileHead, known: dict[str, Format]) -> str:
    nearest = _find_nearest(head, known)
    reasons = " and ".join(f"{trace_format.name} ({_explain(trace_format, path, head)})" for trace_format in nearest)
    near = f"; the nearest {'are' if len(nearest) > 1 else 'is'} {reasons}" if nearest else ""
    return (
        f"{path}: is in no known trace format (it looks like {head.description}){near}; name its format with format= "
        f"({', '.join(known)}), or write its searches in the format jsonl, which takes those of any agent"
    )


def _find_nearest(head: FileHead, known: dict[str, Format]) -> list[Format]:
    """Return the formats that know most of the file's keys; a key counts less, the more formats know it."""
    keys = set(_find_words(head.records))
    words = {name: _read_vocabulary(trace_format) for name, trace_format in known.items()}
    spread = Counter(word for vocabulary in words.values() for word in vocabulary)
    scores = {name: sum(1 / spread[word] ** 2 for word in keys & vocabulary) for name, vocabulary in words.items()}
    best = sorted(scores, key=lambda name: -scores[name])[:_NEAREST]
    return [known[name] for name in best if scores[name] > 0]


def _find_words(value: Any, depth: int = _MAX_DEPTH) -> Iterator[str]:
    """Yield the keys in a value, and the names of types."""
    if isinstance(value, dict):
        yield from value
        yield from (name for key, name in value.items() if key in _TYPE_KEYS and isinstance(name, str))
    if depth and isinstance(value, (dict, list)):
        for member in value.values() if isinstance(value, dict) else value:
            yield from _find_words(member, depth - 1)


def _read_vocabulary(trace_format: Format) -> set[str]:
    """Return the words in quotes in the source of a format's module."""
    with suppress(OSError, TypeError, KeyError):  # a plugin may have no source
        return set(_QUOTED_WORD.findall(inspect.getsource(sys.modules[trace_format.sniff.__module__])))
    return set()


def _explain(trace_format: Format, path: Path, head: FileHead) -> str:
    """Return why a format does not claim a file, by reading the file's beginning with it."""
    content = head.raw
    if head.kind == "jsonl":  # the whole values in the head
        content = b"\n".join(orjson.dumps(record) for record in head.records if record is not None)
    elif head.kind == "json":
        content = orjson.dumps(head.value)
    whole = FileHead(head.name, content, whole=True)
    source = Source(path, whole, Summary(), lambda: BytesIO(content))
    try:
        trace = next(trace_format.read(source), None)
    except InputError as error:
        reason = str(error).replace(f"{path}, ", "").replace(f"{path}: ", "").partition("; ")[0]
        reason = reason.partition(", found an object with")[0]  # the message has its keys already
        return " ".join(reason.split())[:_LONGEST_REASON]
    except Exception:  # a plugin's own
        if not trace_format.is_plugin:
            raise
        return "its reader failed"
    unknown = (trace.unknown if trace else ()) + source.take_unknown()
    if unknown:
        return f"{unknown[0].what} is not understood"[:_LONGEST_REASON]
    if trace is None or not any(step.calls for turn in trace.turns for step in turn.steps):
        return "no call of a tool was found in it"
    return f"its reader can read the beginning, but the format's marks are missing: pass format={trace_format.name!r} to use it"
