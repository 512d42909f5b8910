"""The notices that a call gives."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from goodgain import GoodgainNotice


@contextmanager
def collect_notices() -> Iterator[list[GoodgainNotice]]:
    """Yield a list that has the notices of a `with` block when the block ends."""
    notices: list[GoodgainNotice] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield notices
    notices += [warning.message for warning in caught if isinstance(warning.message, GoodgainNotice)]


def notices_of(call: Callable[[], Any], *, coverage: bool = False) -> tuple[Any, list[str]]:
    """The result of a call, and the notices that it gave: without that of a low coverage, unless it is asked for."""
    with collect_notices() as notices:
        result = call()
    return result, [text for text in map(str, notices) if coverage or "coverage is low" not in text]
