"""What goodgain says when something is wrong, or right but worth knowing."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

__all__ = ["GoodgainError", "GoodgainNotice", "InputError", "MeasureError", "notice"]

_PACKAGE = str(Path(__file__).parent)


class GoodgainError(Exception):
    """Any error that goodgain raises on purpose: one sentence with what, where and the remedy."""


class InputError(GoodgainError, ValueError):
    """A run, qrels or trace that cannot be read as what it is said to be."""


class MeasureError(GoodgainError, ValueError):
    """A measure that does not exist, or that does not take what it was given."""


class GoodgainNotice(UserWarning):
    """Something a user should know about a result that is right all the same."""


def notice(text: str) -> None:
    """Warn with a `GoodgainNotice` that points at the caller's own line, not into this package."""
    depth = 2
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame = frame.f_back
        depth += 1
    warnings.warn(text, GoodgainNotice, stacklevel=depth)
