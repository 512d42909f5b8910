"""What goodgain says when something is wrong, or right but worth knowing."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import Any

__all__ = ["GoodgainError", "GoodgainNotice", "InputError", "MeasureError", "NoticesOfSystems", "notice"]

_PACKAGE = str(Path(__file__).parent)
#: Characters of the longest sentence.
_LONGEST = 1600


class GoodgainError(Exception):
    """Any error that goodgain raises on purpose: one sentence with what, where and the remedy.

    It has one line, and the middle of a very long one is left out: what it quotes may have line feeds, and megabytes.
    """

    #: What the command ends with: the input or the arguments are wrong.
    exit_status = 2

    def __str__(self) -> str:
        text = " ".join(super().__str__().splitlines())
        return text if len(text) <= _LONGEST else f"{text[: _LONGEST // 2]} [...] {text[-_LONGEST // 2 :]}"


class InputError(GoodgainError, ValueError):
    """A run, qrels or trace that cannot be read as what it is said to be."""


class MeasureError(GoodgainError, ValueError):
    """A measure that does not exist, or that does not take what it was given."""


class GoodgainNotice(UserWarning):
    """Something a user should know about a result that is right all the same.

    `text` is what it says without the name of the run that it is about.
    """

    def __init__(self, text: str, about: str | None = None) -> None:
        super().__init__(f"{about}: {text}" if about else text)
        self.text = text


def notice(text: str, *, about: str | None = None) -> None:
    """Warn with a `GoodgainNotice` that points at the caller's own line, not into this package.

    `about` is the name of the run, where it has one; in a call of several systems their names replace it.
    """
    depth = 2
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame = frame.f_back
        depth += 1
    warnings.warn(GoodgainNotice(text, about), stacklevel=depth)


class NoticesOfSystems:
    """Gives each notice about several systems once, with the names of those it concerns; other warnings pass as they are.

    Classes, not generators under `contextmanager`: the notices are given in `__exit__`, and have to point at the caller's
    own line, which would be one of contextlib.
    """

    def __init__(self) -> None:
        self._concerned: dict[str, dict[str, None]] = {}

    def of(self, name: str) -> _CaughtNotices:
        """Return what catches the notices that are given inside a `with`, for the system of this name."""
        return _CaughtNotices(self._concerned, name)

    def __enter__(self) -> NoticesOfSystems:
        return self

    def __exit__(self, *exception: Any) -> None:
        for text, names in self._concerned.items():
            notice(f"{', '.join(names)}: {text}")


class _CaughtNotices:
    """Adds the notices that are given inside a `with` to those of several systems."""

    def __init__(self, concerned: dict[str, dict[str, None]], name: str) -> None:
        self._concerned = concerned
        self._name = name

    def __enter__(self) -> None:
        self._catching = warnings.catch_warnings(record=True)
        self._caught = self._catching.__enter__()
        warnings.simplefilter("always", GoodgainNotice)

    def __exit__(self, *exception: Any) -> None:
        self._catching.__exit__(*exception)
        for warning in self._caught or ():
            if isinstance(warning.message, GoodgainNotice):
                self._concerned.setdefault(warning.message.text, {})[self._name] = None
            else:
                warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)
