"""Python's search for reference cycles, and where it would cost more than it could find."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["pause_cycle_search"]


@contextmanager
def pause_cycle_search() -> Iterator[None]:
    """Stop the search for a while, in all threads: for code that makes many objects that stay, and hardly a cycle.

    >>> with pause_cycle_search():
    ...     gc.isenabled()
    False
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
