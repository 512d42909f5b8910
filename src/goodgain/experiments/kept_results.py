"""Results that several analyses share, each with its notices; their keys follow from the options."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import ir_measures

from goodgain.errors import GoodgainNotice, collect_notices, notice
from goodgain.options import Option

T = TypeVar("T")


#: The most results that an experiment keeps.
MOST_KEPT = 64


class KeptResults:
    """Results by their keys; the one that was not used for longest goes when there are too many.

    A result that is asked for again repeats the notices that were given while it was made.
    """

    def __init__(self) -> None:
        self._found: dict[Any, tuple[Any, list[GoodgainNotice]]] = {}  # in order of use

    def keep(self, key: Any, make: Callable[[], T]) -> T:
        """Return the result of this key, made now if it is new."""
        found = self._found.pop(key, None)
        if found is None:
            heard: list[GoodgainNotice] = []
            try:
                with collect_notices(heard.append):
                    found = make(), heard
            finally:  # an error does not hide what was said before it
                if found is None:
                    _repeat(heard)
        self._found[key] = value, heard = found
        while len(self._found) > MOST_KEPT:
            del self._found[next(iter(self._found))]
        _repeat(heard)
        return value


def _repeat(notices: Iterable[GoodgainNotice]) -> None:
    for one in notices:
        notice(str(one), minor=one.minor)


class Heard(list[GoodgainNotice]):
    """The notices of an analysis."""

    @property
    def texts(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(map(str, self)))


@contextmanager
def tell_once(told: set[str]) -> Iterator[Heard]:
    """Take the notices inside a `with`, and then give those that `told` lacks; they are added to it."""
    heard = Heard()
    try:
        with collect_notices(heard.append):
            yield heard
    finally:
        new = [one for one in heard if str(one) not in told]
        told.update(heard.texts)
        _repeat({str(one): one for one in new}.values())


class _Same:
    """A value that equals itself alone. The key holds the value, so that no other takes its place in memory."""

    def __init__(self, value: Any) -> None:
        self._value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self._value is other._value

    def __hash__(self) -> int:
        return id(self._value)


def make_key(value: Any) -> Any:
    """Return a key of the value of an option: numbers, words, paths, measures and lists by value, tables by identity.

    >>> make_key([1, "a"]) == make_key([1, "a"]), make_key({}) == make_key({}), make_key(1) == make_key(True)
    (True, False, False)
    """
    if value is None or isinstance(value, (str, bytes, bool, int, float)):
        return type(value), value
    if isinstance(value, os.PathLike):
        return os.PathLike, os.fspath(value)
    if isinstance(value, ir_measures.measures.Measure):
        return type(value), str(value)
    if isinstance(value, (list, tuple)):
        return list, tuple(map(make_key, value))
    return _Same(value)


def key_of_options(options: Mapping[str, Any], groups: Sequence[Sequence[Option]]) -> tuple[Any, ...]:
    """Return a key of the values of all options of some groups, in the order of their declarations."""
    return tuple(make_key(options[option.name]) for group in groups for option in group)
