"""Python's search for reference cycles, and where it would cost more than it could find."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["pause_cycle_search"]


@contextmanager
def pause_cycle_search(*, stays: bool = False) -> Iterator[None]:
    """Stop the search for a while, in all threads: for code that makes many objects, and hardly a cycle.

    Args:
        stays: whether what is made meanwhile stays until the process ends. It counts as old afterwards, and old objects are
            searched seldom; else the next search goes through all of it.

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
            if stays and gc.get_freeze_count() == 0:  # else the next two lines would also undo what the user has frozen
                gc.freeze()
                gc.unfreeze()  # to the oldest generation, all of them
            gc.enable()
