"""Taking a value from a log as what it must be, or saying where it stands and what was found instead."""

from __future__ import annotations

import math
from typing import Any

from goodgain.errors import InputError

__all__ = [
    "as_number",
    "as_word",
    "describe",
    "expect_id",
    "expect_list",
    "expect_object",
    "expect_optional_text",
    "expect_text",
    "format_place",
    "unexpected_value",
]

_REMEDY = "correct or leave out the file, name its format with format=, or pass over such traces with errors='skip'"


def format_place(at: str) -> str:
    """A place as errors name it; the top of a document has no pointer."""
    return at.removesuffix(", at ")


def describe(value: Any) -> str:
    """What a value is, in words for an error."""
    match value:
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case int() | float():
            return f"the number {str(value)[:40]}"
        case str():
            return f"the text {value[:60]!r}" + ("..." if len(value) > 60 else "")
        case list():
            return f"a list of {len(value)}"
        case dict():
            return f"an object with {', '.join(list(map(str, value))[:6]) or 'nothing'}"[:160]
        case _:
            return type(value).__name__


def unexpected_value(at: str, expected: str, found: Any, remedy: str = _REMEDY) -> InputError:
    """The error for a value that is not what the format says."""
    return InputError(f"{format_place(at)}: expected {expected}, found {describe(found)}; {remedy}")


def expect_list(value: Any, at: str) -> list[Any]:
    """A list; null and nothing are an empty one."""
    if value is None:
        return []
    if not isinstance(value, list):
        raise unexpected_value(at, "a list", value)
    return value


def expect_object(value: Any, at: str) -> dict[str, Any]:
    """An object with named fields."""
    if not isinstance(value, dict):
        raise unexpected_value(at, "an object", value)
    return value


def expect_text(value: Any, at: str) -> str:
    """A text that is there."""
    if not isinstance(value, str):
        raise unexpected_value(at, "text", value)
    return value


def expect_optional_text(value: Any, at: str) -> str | None:
    """A text, or None where there is none."""
    if value is None or isinstance(value, str):
        return value
    raise unexpected_value(at, "text", value)


def as_word(value: Any, default: str = "") -> str:
    """A word such as a type or role, to look up in a table; what is no text becomes one that no table has."""
    if value is None:
        return default
    return value if isinstance(value, str) else f"<{describe(value)}>"


def expect_id(value: Any, at: str) -> str | None:
    """An id: text or a whole number; None where there is none, or an empty one."""
    if isinstance(value, str):
        return value or None
    if value is None:
        return None
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    raise unexpected_value(at, "an id (text or a whole number)", value)


def as_number(value: Any) -> float | None:
    """A finite number, also one written as text; anything else is none, as scores decide nothing."""
    if isinstance(value, (int, float, str)) and not isinstance(value, bool):
        try:
            found = float(value)
        except (ValueError, OverflowError):
            return None
        return found if math.isfinite(found) else None
    return None
