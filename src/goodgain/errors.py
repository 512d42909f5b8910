"""What goodgain says when something is wrong, or right but worth knowing."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import Any

__all__ = ["GoodgainError", "GoodgainNotice", "InputError", "MeasureError", "NamedNotices", "notice"]

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


class NamedNotices:
    """Puts the name of a system before each notice that is given inside a `with`; other warnings pass as they are.

    A class, not a generator under `contextmanager`: the notices are given in `__exit__`, and have to point at the
    caller's own line, which would be one of contextlib.
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def __enter__(self) -> None:
        self._catching = warnings.catch_warnings(record=True)
        self._caught = self._catching.__enter__()
        warnings.simplefilter("always", GoodgainNotice)

    def __exit__(self, *exception: Any) -> None:
        self._catching.__exit__(*exception)
        for warning in self._caught or ():
            if issubclass(warning.category, GoodgainNotice):
                notice(f"{self._name}: {warning.message}")
            else:
                warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)
