"""How many cases the tests try: some in `make test`, all in `make test-all`, which sets GOODGAIN_TESTS=all.

This variable is the only switch. With it every count has its full size, and the tests marked `slow` run too.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TypeVar

__all__ = ["EVERYTHING", "how_many", "some_of"]

_Case = TypeVar("_Case")

EVERYTHING = os.environ.get("GOODGAIN_TESTS") == "all"


def how_many(few: int, *, full: int) -> int:
    """The number of cases to try: `full` in `make test-all`, else `few`."""
    return full if EVERYTHING else few


def some_of(cases: Iterable[_Case], *, every: int) -> list[_Case]:
    """The first of every so many cases; all of them in `make test-all`."""
    return [*cases][:: 1 if EVERYTHING else every]
