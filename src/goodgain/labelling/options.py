"""The check of the options of `label`: counts, numbers and names, each error with what the option may be."""

from __future__ import annotations

from typing import Any

from goodgain.comparing.pairing import check_whole_number
from goodgain.errors import InputError

__all__ = ["check_count", "check_name", "check_number"]

#: The largest count that an option may be: far above all that is of use, and within 64 bits.
_MOST = 10**12


def check_count(name: str, value: Any, least: int = 1, *, none: str | None = None) -> None:
    """Check an option that is a whole number.

    Args:
        name: what the option is called.
        value: its value.
        least: the least that it may be.
        none: what None stands for; None: it may not be None.

    Raises:
        InputError: it is anything else.
    """
    if none is not None and value is None:
        return
    check_whole_number(name, value, least, _MOST, others="" if none is None else f", or None ({none})")


def check_number(name: str, value: Any, least: float, most: float, *, words: str, none: bool = False) -> None:
    """Check an option that is a number from `least` to `most`; NaN is not.

    Args:
        name: what the option is called.
        value: its value.
        least: the least that it may be.
        most: the most.
        words: what it may be, for the error.
        none: whether it may be None.

    Raises:
        InputError: it is anything else.
    """
    if none and value is None:
        return
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not least <= value <= most:
        raise InputError(f"{name}={value!r}: give {words}")


def check_name(name: str, value: Any, remedy: str) -> None:
    """Check an option that is a text with something in it.

    Raises:
        InputError: it is anything else, or has half a character.
    """
    if not isinstance(value, str) or not value.strip():
        raise InputError(f"{name}={value!r}: {remedy}")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise InputError(f"{name}={value!r}: has half a character (a lone surrogate); {remedy}") from None
