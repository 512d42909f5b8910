"""Detects a file's format; or says what the file looks like, which formats are nearest, and why it is in none of them.

Near is a format whose reader knows many of the file's keys, rare ones above all: the keys of a log are the words that
its reader is written with, so they are taken from the reader's code. What a reader says when it is tried is why not.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from types import CodeType
from typing import IO, Any

import orjson

from goodgain.errors import InputError
from goodgain.traces.input.file_head import MAX_HEAD, FileHead
from goodgain.traces.input.sources import Source
from goodgain.traces.model import Trace
from goodgain.traces.reading.known_formats import Format, formats, get_format
from goodgain.traces.summary import Summary

__all__ = ["detect_format", "is_claimed"]

#: A word that can be a key or the name of a type in a log.
_WORD = re.compile(r"[A-Za-z_][\w.-]{1,60}")
#: Keys whose values are names of types, as telling as keys.
_TYPE_KEYS = {"type", "role", "kind", "event", "object", "part_kind", "run_type"}
#: How many formats are named, how deep keys are looked for, how many values are looked at, and how long a reason is.
_NEAREST, _MAX_DEPTH, _MAX_VALUES, _LONGEST_REASON = 2, 6, 5_000, 160


def detect_format(path: Path, head: FileHead) -> Format:
    """Return the one format that claims a file.

    Raises:
        InputError: no format claims it, or several do: a file read in the wrong format would give a wrong number.
    """
    known = formats()
    claims = [found for found in known.values() if _is_claimed_by(found, path, head)]
    if len(claims) == 1:
        return claims[0]
    if claims:
        names = " and ".join(found.name for found in claims)
        raise InputError(f"{path}: could be {names}; say which with format=")
    if not head.raw.strip():
        raise InputError(f"{path}: is empty; give its format with format= ({', '.join(known)})")
    if head.kind in ("json", "jsonl") and not (head.whole or head.has_record):
        raise InputError(
            f"{path}: its first record is longer than {MAX_HEAD >> 20} MiB, too long to find its format; name the format with "
            f"format= (--format): {', '.join(known)}"
        )
    raise InputError(_describe_unclaimed(path, head, known))


def is_claimed(name: str, head: FileHead) -> bool:
    """Return whether a file is claimed by the format of a name or, for `auto`, by any."""
    known = [*formats().values()] if name == "auto" else [get_format(name)]
    return any(_is_claimed_by(found, Path(head.name), head) for found in known)


def _is_claimed_by(found: Format, path: Path, head: FileHead) -> bool:
    """Return whether a format claims a file; an error of a plugin names the plugin."""
    try:
        return found.sniff(head)
    except Exception as error:
        if not found.is_plugin:
            raise
        raise InputError(
            f"{path}: the plugin format {found.name} failed to look at it ({type(error).__name__}: {error}); "
            "say which format it is with format=, or repair or uninstall the plugin"
        ) from error


def _describe_unclaimed(path: Path, head: FileHead, known: dict[str, Format]) -> str:
    """Return the error message for a file that no format claims."""
    nearest = _find_nearest(head, known)
    reasons = " and ".join(f"{found.name} ({_explain(found, path, head)})" for found in nearest)
    near = f"; the nearest {'are' if len(nearest) > 1 else 'is'} {reasons}" if nearest else ""
    return (
        f"{path}: is in no known trace format (it looks like {head.description}){near}; name its format with format= "
        f"({', '.join(known)}), or write its searches in the format jsonl, which takes those of any agent"
    )


def _find_nearest(head: FileHead, known: dict[str, Format]) -> list[Format]:
    """Return the formats that know most of the file's keys; a key counts less, the more formats know it."""
    keys = set(_find_words(head.records))
    words = {name: _read_vocabulary(found) for name, found in known.items()}
    spread = Counter(word for vocabulary in words.values() for word in vocabulary)
    scores = {name: sum(1 / spread[word] ** 2 for word in keys & vocabulary) for name, vocabulary in words.items()}
    best = sorted(scores, key=lambda name: -scores[name])[:_NEAREST]
    return [known[name] for name in best if scores[name] > 0]


def _find_words(value: Any) -> Iterator[str]:
    """Yield the keys in a value, and the names of types."""
    todo = [(value, 0)]
    for _ in range(_MAX_VALUES):
        if not todo:
            return
        current, depth = todo.pop()
        if isinstance(current, dict):
            yield from current
            yield from (name for key, name in current.items() if key in _TYPE_KEYS and isinstance(name, str))
        if depth < _MAX_DEPTH and isinstance(current, (dict, list)):
            inner = current.values() if isinstance(current, dict) else current
            todo += [(member, depth + 1) for member in inner if isinstance(member, (dict, list))][:_MAX_VALUES]


def _read_vocabulary(found: Format) -> set[str]:
    """Return the words that a format's module is written with: the texts in its code and in its tables."""
    module = sys.modules.get(getattr(found.sniff, "__module__", ""))
    words: set[str] = set()
    for value in vars(module).values() if module is not None else ():
        if (
            isinstance(code := getattr(value, "__code__", None), CodeType)
            and value.__module__ == found.sniff.__module__
        ):
            words.update(_read_constants(code))
        elif isinstance(value, type) and value.__module__ == found.sniff.__module__:
            for method in vars(value).values():
                if isinstance(code := getattr(method, "__code__", None), CodeType):
                    words.update(_read_constants(code))
        elif isinstance(value, (set, frozenset, tuple, list, dict)):
            words.update(_read_texts(value))
    return {word for word in words if _WORD.fullmatch(word)}


def _read_constants(code: CodeType) -> Iterator[str]:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _read_constants(constant)
        elif isinstance(constant, str):
            yield constant
        elif isinstance(constant, (tuple, frozenset)):
            yield from _read_texts(constant)


def _read_texts(values: Iterable[Any]) -> Iterator[str]:
    return (value for value in values if isinstance(value, str))


def _explain(found: Format, path: Path, head: FileHead) -> str:
    """Return why a format does not claim a file: what its reader says of the file's beginning."""
    content = _dump_head(head)

    @contextmanager
    def opener() -> Iterator[IO[bytes]]:
        yield BytesIO(content)

    source = Source(path, FileHead(head.name, content, whole=True), Summary(), opener=opener)
    try:
        trace = next(found.read(source), None)
    except InputError as error:
        reason = str(error).replace(f"{path}, ", "").replace(f"{path}: ", "").partition("; ")[0]
        reason = reason.partition(", found an object with")[0]  # its keys stand in the message already
        return " ".join(reason.split())[:_LONGEST_REASON]
    except Exception:  # a plugin's own
        if not found.is_plugin:
            raise
        return "its reader failed"
    unknown = (trace.unknown if trace else ()) + source.take_unknown()
    if unknown:
        return f"{unknown[0].what} is not understood"[:_LONGEST_REASON]
    if trace is None or not _has_calls(trace):
        return "no call of a tool was found in it"
    return f"its reader can read the beginning, but only its marks are missing: say format={found.name!r} if it is one"


def _dump_head(head: FileHead) -> bytes:
    """Return as much of a file as its head holds in whole values."""
    if head.kind == "jsonl":
        return b"\n".join(orjson.dumps(record) for record in head.records if record is not None)
    return orjson.dumps(head.value) if head.kind == "json" else head.raw


def _has_calls(trace: Trace) -> bool:
    return any(step.calls for turn in trace.turns for step in turn.steps)
