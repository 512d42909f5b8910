"""How many cases the tests try: some in `make test`, all in `make test-all`, which sets GOODGAIN_TESTS=all.

This variable is the only switch. With it every count has its full size, and the tests marked `slow` run too.
"""

from __future__ import annotations

import os

__all__ = ["EVERYTHING", "how_many"]

EVERYTHING = os.environ.get("GOODGAIN_TESTS") == "all"


def how_many(few: int, *, full: int) -> int:
    """The number of cases to try: `full` in `make test-all`, else `few`."""
    return full if EVERYTHING else few
