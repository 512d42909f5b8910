"""Taking a value from a log as what it must be, or saying where it stands and what was found instead."""

from __future__ import annotations

import math
from typing import Any

from goodgain.errors import InputError

__all__ = ["a_list", "a_text", "an_object", "id_text", "kind_of", "number", "optional_text", "place", "word", "wrong"]

_REMEDY = "correct or leave out the file, name its format with format=, or pass over such traces with errors='skip'"


def place(at: str) -> str:
    """A place as errors name it; the top of a document has no pointer."""
    return at.removesuffix(", at ")


def kind_of(value: Any) -> str:
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


def wrong(at: str, expected: str, found: Any, remedy: str = _REMEDY) -> InputError:
    """The error for a value that is not what the format says."""
    return InputError(f"{place(at)}: expected {expected}, found {kind_of(found)}; {remedy}")


def a_list(value: Any, at: str) -> list[Any]:
    """A list; null and nothing are an empty one."""
    if value is None:
        return []
    if not isinstance(value, list):
        raise wrong(at, "a list", value)
    return value


def an_object(value: Any, at: str) -> dict[str, Any]:
    """An object with named fields."""
    if not isinstance(value, dict):
        raise wrong(at, "an object", value)
    return value


def a_text(value: Any, at: str) -> str:
    """A text that is there."""
    if not isinstance(value, str):
        raise wrong(at, "text", value)
    return value


def optional_text(value: Any, at: str) -> str | None:
    """A text, or None where there is none."""
    if value is None or isinstance(value, str):
        return value
    raise wrong(at, "text", value)


def word(value: Any, default: str = "") -> str:
    """A word such as a type or role, to look up in a table; what is no text becomes one that no table has."""
    if value is None:
        return default
    return value if isinstance(value, str) else f"<{kind_of(value)}>"


def id_text(value: Any, at: str) -> str | None:
    """An id: text or a whole number; None where there is none, or an empty one."""
    if isinstance(value, str):
        return value or None
    if value is None:
        return None
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    raise wrong(at, "an id (text or a whole number)", value)


def number(value: Any) -> float | None:
    """A finite number, also one written as text; anything else is none, as scores decide nothing."""
    if isinstance(value, (int, float, str)) and not isinstance(value, bool):
        try:
            found = float(value)
        except (ValueError, OverflowError):
            return None
        return found if math.isfinite(found) else None
    return None
