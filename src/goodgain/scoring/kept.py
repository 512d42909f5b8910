"""Keeps the results of an experiment's steps, with the notices of each step."""

import hashlib
import os
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import ir_measures

from goodgain.errors import GoodgainNotice, collect_notices, give
from goodgain.files.table_reading import read_frame

Result = TypeVar("Result")

MOST_KEPT = 64  # results in the cache of an experiment


class KeyedBy(NamedTuple):
    """An argument of a step that is compared by `key`, not by `value`. The step gets the value."""

    value: Any
    key: Any


class KeptResults:
    """A least-recently-used cache of at most 64 results. The notices of a result are given again with each use."""

    def __init__(self) -> None:
        self._kept: dict[Any, tuple[Any, list[GoodgainNotice]]] = {}  # in order of use

    def call(self, step: Callable[..., Result], *arguments: Any, **options: Any) -> Result:
        """Return `step(*arguments, **options)`. A call with equal arguments returns the kept result."""
        key = step, make_key(arguments), make_key([*options.items()])

        if key not in self._kept:
            notices: list[GoodgainNotice] = []
            try:
                with collect_notices(notices.append):
                    result = step(*map(_take_value, arguments), **{n: _take_value(v) for n, v in options.items()})
            except BaseException:  # an error does not hide earlier notices
                for notice in notices:
                    give(notice)
                raise
            self._kept[key] = result, notices
            while len(self._kept) > MOST_KEPT:
                del self._kept[next(iter(self._kept))]

        result, notices = self._kept[key] = self._kept.pop(key)
        for notice in notices:
            give(notice)
        return result


def _take_value(argument: Any) -> Any:
    return argument.value if isinstance(argument, KeyedBy) else argument


class _Same:
    """A key that compares values by identity. The key holds the value, so no other value can get the same `id`."""

    def __init__(self, value: Any) -> None:
        self._value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self._value is other._value

    def __hash__(self) -> int:
        return id(self._value)


def make_key(value: Any) -> Any:
    """Return a cache key for an argument. Tables are compared by identity; numbers, text, paths, measures and lists by value.

    >>> make_key([1, "a"]) == make_key([1, "a"]), make_key({}) == make_key({}), make_key(1) == make_key(True)
    (True, False, False)
    """
    if value is None or isinstance(value, (str, bytes, bool, int, float)):
        return type(value), value
    if isinstance(value, KeyedBy):
        return KeyedBy, make_key(value.key)
    if isinstance(value, os.PathLike):
        return os.PathLike, os.fspath(value)
    if isinstance(value, ir_measures.measures.Measure):
        return type(value), str(value)
    if isinstance(value, (list, tuple)):
        return list, tuple(map(make_key, value))
    return _Same(value)


def by_content(source: Any) -> KeyedBy:
    """Return a table of an analysis (a file, a frame, a dict, or a list of these) as an argument that is compared by its content.

    So an analysis sees a file that was written again, and a frame that was changed in place.
    """
    return KeyedBy(source, _digest(source))


def _digest(source: Any) -> Any:
    """Return a value that changes with the content of a table; the table itself if its content cannot be read."""
    if source is None:
        return None
    if isinstance(source, (list, tuple)):
        return [_digest(part) for part in source]
    if isinstance(source, (str, os.PathLike)):
        path = Path(source)
        is_file = path.is_file()
        return str(path), hashlib.blake2b(path.read_bytes()).digest() if is_file else None

    try:
        frame = read_frame(getattr(source, "frame", source), "the table")
        hashes = frame.hash_rows().to_numpy().tobytes()
        return repr(frame.schema), hashlib.blake2b(hashes).digest()
    except Exception:  # not a frame, or one whose cells Polars cannot hash
        pass
    try:
        return hashlib.blake2b(pickle.dumps(source)).digest()
    except Exception:  # such as a connection: nothing but the object itself says what it holds
        return source
