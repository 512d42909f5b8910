"""How long something takes, and whether that grows with the length of a text or faster."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable

__all__ = ["find_faster_growth", "measure_seconds"]

#: How many times as long the long text is.
TIMES = 16


def measure_seconds(call: Callable[[], object]) -> float:
    """Return the seconds of the processor that a call takes.

    Python's garbage collector is paused: it would go through all that earlier tests of this process have made, and so
    takes seconds that say nothing about the call.
    """
    gc.disable()
    try:
        begin = time.process_time()
        call()
        return time.process_time() - begin
    finally:
        gc.enable()


def find_faster_growth(measure: Callable[[int], float], length: int, *, least: float = 0.02) -> str:
    """Return what was measured if seconds grow faster than length^1.35 in each of six rounds, else an empty text.

    The exponent leaves room for caches: 64,000 objects fit into none, and 4,000 do. Quadratic growth is six times
    over the limit.

    Args:
        measure: returns the seconds that a text of a length takes.
        length: of the short text; the long one is 16 times as long.
        least: seconds below which a measurement says nothing; less is enough for plain Python than for threads of Polars.
    """
    for _ in range(6):  # the machine does other things too
        long, short = measure(TIMES * length), measure(length)
        if long <= TIMES**1.35 * max(short, least):
            return ""
    return f"{short:.3f} s for length {length}, {long:.3f} s for {TIMES * length}"
