"""Parses JSON text: fast, to a limited depth, and with the NaN that Python writes."""

from __future__ import annotations

import json
import re
from typing import Any

import orjson

#: Limit of concatenated values: a text with more is malicious, or not a tool's output.
_MAX_VALUES = 100_000
#: Characters of a large text; bytes of a value in memory; the memory limit: bytes, plus a multiple of the text's length.
_LARGE, _VALUE, _MEMORY, _TIMES = 16 << 20, 64, 256 << 20, 8

#: A whole number that may be beyond 64 bits: orjson would make it a float.
_LONG_NUMBER = re.compile(rb"[0-9]{19}")


class NotJSONError(ValueError):
    """Raised for a text that is not JSON; the message says why, and where in the text."""


def loads(text: str | bytes | memoryview) -> Any:
    """Parse a JSON text. NaN and Infinity, which Python writes although JSON lacks them, become None.

    Raises:
        NotJSONError: the text is not JSON, nests over 1,000 deep, has a lone surrogate, or is large and its values would
            need too much memory.
    """
    if len(text) > _LARGE and not isinstance(text, memoryview):
        _check_values(text)
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError as error:
        # json is tried only if it can read more than orjson: it is slow, and accepts lone surrogates.
        words = ("NaN", "Infinity") if isinstance(text, str) else (b"NaN", b"Infinity")
        if isinstance(text, memoryview) or not any(word in text for word in words):  # type: ignore[operator]  # words are of its type
            raise NotJSONError(str(error)) from None
    try:
        value = json.loads(text, parse_constant=lambda _: None)
        orjson.dumps(value)  # refuses what orjson.loads would have refused: lone surrogates, too deep nesting
    except (ValueError, RecursionError, TypeError) as error:
        raise NotJSONError(str(error)) from None
    return value


def loads_exactly(text: bytes) -> Any:
    """Parse a JSON text as `loads` does, but keep integers of any size, and NaN and Infinity as floats."""
    if _LONG_NUMBER.search(text) is None and b"NaN" not in text and b"Infinity" not in text:
        return loads(text)
    if len(text) > _LARGE:
        _check_values(text)
    try:
        value = json.loads(text.decode())
        json.dumps(value, ensure_ascii=False).encode()  # refuses lone surrogates
    except (ValueError, RecursionError) as error:
        raise NotJSONError(str(error)) from None
    return value


def _check_values(text: str | bytes) -> None:
    """Refuse a large text whose values need many times its memory, such as `[[],[],...`."""
    signs: tuple[Any, ...] = (",", "[", "{") if isinstance(text, str) else (b",", b"[", b"{")
    values = sum(text.count(sign) for sign in signs)
    if values * _VALUE > _MEMORY + _TIMES * len(text):
        raise NotJSONError(f"it has {values:,} values, too many for {len(text) >> 20} MiB")


def parse_concatenated(text: str) -> list[Any] | None:
    """Parse values that follow each other, as `{..}{..}` or `[..], [..]`; None if the text is anything else."""
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
    except TypeError:  # a lone surrogate, or nested too deep
        return None
    return values if len(values) > 1 else None


def parse_if_json(value: Any) -> Any:
    """Return a value, parsed if it is JSON text."""
    if isinstance(value, str):
        try:
            return loads(value)
        except NotJSONError:
            return value
    return value
