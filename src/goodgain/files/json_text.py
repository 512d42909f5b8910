"""Parses JSON with a limit on nesting. Accepts NaN, which Python writes."""

import json
import re
from itertools import chain
from typing import Any

import orjson

from goodgain.errors import InputError
from goodgain.files.bad_rows import quote
from goodgain.files.opening import Content

#: The beginning of a concatenated value, and the text between two values.
_VALUE_START, _BETWEEN_VALUES = re.compile(r"[\[{]"), re.compile(r"[,\s]*+")
#: The most concatenated values: a text with more values is malicious, or not a tool's output.
_MAX_VALUES = 100_000
#: Characters of a large text; bytes of a value in memory; the memory limit: bytes, plus a multiple of the text's length.
_LARGE, _VALUE, _MEMORY, _TIMES = 16 << 20, 64, 256 << 20, 8

#: No table nests deeper. Recursive functions, such as `repr` and some of Polars, end at about 500.
_DEEPEST = 250
#: A whole number that may be beyond 64 bits: orjson would make it a float.
_LONG_NUMBER = re.compile(rb"[0-9]{19}")
#: The end of a key; a text may contain these signs too.
_KEY_END = re.compile(rb'"\s*:')


class NotJSONError(ValueError):
    """Raised for a text that is not JSON; the message says why, and where in the text."""

    @property
    def fault(self) -> str:
        """The fault, worded to follow the name of a text: `is not JSON (...)` or `has the key ...`."""
        return str(self) if isinstance(self, RepeatedKeyError) else f"is not JSON ({self})"


class RepeatedKeyError(NotJSONError):
    """Raised for an object with a repeated key, because parsers silently keep only the last value."""


def loads(text: str | bytes) -> Any:
    """Parse a JSON text. NaN and Infinity become None: Python writes them, and JSON lacks them.

    Raises:
        NotJSONError: the text is not JSON, has over 1,000 nested levels or a lone surrogate, or is a large text
            with so many values that they would need too much memory.
    """
    if len(text) > _LARGE:
        _check_values(text)
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError as error:
        # json is tried only if it can read more than orjson: it is slow, and accepts lone surrogates.
        words = ("NaN", "Infinity") if isinstance(text, str) else (b"NaN", b"Infinity")
        if not any(word in text for word in words):  # type: ignore[operator]  # words are of its type
            raise NotJSONError(str(error)) from None
    try:
        value = json.loads(text, parse_constant=lambda _: None)
        orjson.dumps(value)  # refuses what orjson.loads would have refused: lone surrogates, too deep nesting
    except (ValueError, RecursionError, TypeError) as error:
        raise NotJSONError(str(error)) from None
    return value


def loads_exactly(text: bytes) -> Any:
    """Parse the JSON text of a table as `loads` does, but keep integers of any size, and NaN and Infinity as floats.

    Raises:
        NotJSONError: as for `loads`, or because an object has a key twice.
    """
    if _LONG_NUMBER.search(text) is None and b"NaN" not in text and b"Infinity" not in text:
        value = loads(text)
    else:
        if len(text) > _LARGE:
            _check_values(text)
        try:
            value = json.loads(text.decode())
            json.dumps(value, ensure_ascii=False).encode()  # refuses lone surrogates
        except (ValueError, RecursionError) as error:
            raise NotJSONError(str(error)) from None
    if len(text) > 2 * _DEEPEST and text.count(b"[") + text.count(b"{") > _DEEPEST:
        _check_depth(value)
    if _may_repeat_keys(text, value):
        json.loads(text, object_pairs_hook=_refuse_repeated_keys, parse_int=str)
    return value


def _may_repeat_keys(text: bytes, value: Any) -> bool:
    """Return whether a text seems to have more keys than its parsed value: then one may stand twice in an object."""
    # Each test is slower than the one before it, and nearly all texts pass the first or the second.
    least = len(value) if isinstance(value, dict) else 0
    if text.count(b":") <= least:
        return False
    keys = len(_KEY_END.findall(text))
    return keys > least and keys > _count_keys(value)


def _count_keys(value: Any) -> int:
    """Return the number of keys of all objects in a value."""
    keys = 0
    members = value
    if isinstance(value, dict):
        keys = len(value)
        members = value.values()
    elif not isinstance(value, list):
        return 0
    return keys + sum(_count_keys(member) for member in members if isinstance(member, (dict, list)))


def _refuse_repeated_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object. Raise `RepeatedKeyError` if it has a key twice: JSON would keep the last value silently."""
    value = dict(pairs)
    if len(value) < len(pairs):
        keys = [key for key, _ in pairs]
        repeated = next(key for key in value if keys.count(key) > 1)
        raise RepeatedKeyError(f"has the key {quote(repeated)} twice in one object")
    return value


def _check_depth(value: Any) -> None:
    """Raise `NotJSONError` if lists and objects nest deeper than 250 levels."""
    level = [value]
    for _ in range(_DEEPEST):
        members = chain.from_iterable(inner.values() if isinstance(inner, dict) else inner for inner in level)
        level = [member for member in members if isinstance(member, (dict, list))]
        if not level:
            return
    raise NotJSONError(f"it has over {_DEEPEST} nested levels")


def _check_values(text: str | bytes) -> None:
    """Raise an error if the values of a large text would need too much memory, as in `[[],[],...`."""
    signs: tuple[Any, ...] = (",", "[", "{") if isinstance(text, str) else (b",", b"[", b"{")
    values = sum(text.count(sign) for sign in signs)
    if values * _VALUE > _MEMORY + _TIMES * len(text):
        raise NotJSONError(f"it has {values:,} values, too many for a text of {len(text) >> 20} MiB")


def parse_concatenated(text: str) -> list[Any] | None:
    """Parse concatenated values such as `{..}{..}` or `[..], [..]`; return None for any other text."""
    text = text.strip(", \t\r\n")
    values, end = parse_values(text, 0, _VALUE_START) or ([], 0)
    is_whole = end == len(text)
    return values if len(values) > 1 and is_whole else None


def parse_values(text: str, position: int, start: re.Pattern[str]) -> tuple[list[Any], int] | None:
    """Parse concatenated values from `position`. Return the values and the position after the last value.

    Return None if a value is damaged, or if there are over 100,000 values. The pattern `start` must match where a value begins.
    """
    decoder = json.JSONDecoder(parse_constant=lambda _: None)
    values: list[Any] = []
    while start.match(text, position):
        try:
            value, position = decoder.raw_decode(text, position)
            orjson.dumps(value)
        except (ValueError, RecursionError, TypeError):  # TypeError: a lone surrogate, or nested too deep
            return None
        values.append(value)
        if len(values) > _MAX_VALUES:
            return None
        position = _BETWEEN_VALUES.match(text, position).end()  # type: ignore[union-attr]  # it matches everything
    return values, position


def parse_if_json(value: Any) -> Any:
    """Parse a value if it is JSON text; return any other value unchanged."""
    try:
        return loads(value) if isinstance(value, str) else value
    except NotJSONError:
        return value


def begins_json(content: Content) -> bool:
    """Return whether a text begins like a JSON object or array. No row of TREC text begins in this way."""
    return re.match(rb'(?:\xef\xbb\xbf)?\s*(?:\{\s*["}]|\[\s*[\[\]{])', content.data) is not None


def read_nested(content: Content) -> dict[str, dict[str, Any]] | None:
    """Read a JSON object of objects, the form of runs and qrels in ranx and pytrec_eval. Return None for other texts.

    >>> read_nested(Content(b'{"q1": {"d1": 3}}'))
    {'q1': {'d1': 3}}
    """
    try:
        value = loads_exactly(content.data)
    except RepeatedKeyError as error:
        if content.data.lstrip().startswith(b"["):  # an array of objects, read one by one
            return None
        raise InputError(f"the JSON {error.fault}; merge the values under one key, or remove one of the keys") from None
    except NotJSONError:
        return None
    is_nested = isinstance(value, dict) and all(isinstance(inner, dict) for inner in value.values())
    return value if is_nested else None
