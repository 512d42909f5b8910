"""Python's search for reference cycles, and where it would cost more than it could find."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["pause_cycle_search"]


@contextmanager
def pause_cycle_search() -> Iterator[None]:
    """Stop the search for a while, in all threads: for code that makes many objects that stay, and hardly a cycle.

    Afterwards they count as old, and old objects are searched seldom: else the next search would go through all of them.

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
            if gc.get_freeze_count() == 0:  # else the next two lines would also undo what the user has frozen
                gc.freeze()
                gc.unfreeze()  # to the oldest generation, all of them
            gc.enable()
