"""JSON text to values: quick, bounded in depth, and kind to the NaN that Python writes."""

from __future__ import annotations

import json
from typing import Any

import orjson

__all__ = ["NotJSONError", "loads", "parse_concatenated"]

_MAX_VALUES = 100_000


class NotJSONError(ValueError):
    """The text is no JSON; the message says why and where in the text."""


def loads(text: str | bytes | memoryview) -> Any:
    """The value a JSON text holds; NaN and Infinity, which no JSON has but Python writes, are null.

    Raises:
        NotJSONError: it holds none, nests over 1,000 deep, or holds half a character (a lone surrogate).
    """
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError as error:
        # json is asked only where it can say more: it is slow, and lets half characters through.
        words = ("NaN", "Infinity") if isinstance(text, str) else (b"NaN", b"Infinity")
        if isinstance(text, memoryview) or not any(word in text for word in words):  # type: ignore[operator]  # words are of its type
            raise NotJSONError(str(error)) from None
    try:
        value = json.loads(text, parse_constant=lambda _: None)
        orjson.dumps(value)
    except (ValueError, RecursionError, TypeError) as error:
        raise NotJSONError(str(error)) from None
    return value


def parse_concatenated(text: str) -> list[Any] | None:
    """The values of `{..}{..}` or `[..] [..]`, with nothing but white space and commas between; else None."""
    decoder = json.JSONDecoder(parse_constant=lambda _: None)
    values: list[Any] = []
    at = 0
    while len(values) <= _MAX_VALUES:
        while at < len(text) and text[at] in " \t\r\n,":
            at += 1
        if at == len(text):
            break
        if text[at] not in "{[":
            return None
        try:
            value, at = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            return None
        values.append(value)
    try:
        orjson.dumps(values)
    except TypeError:  # half characters, or nested too deep
        return None
    return values if len(values) > 1 else None
