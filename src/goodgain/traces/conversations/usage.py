"""Reads what a call of a model cost from the names that vendors and libraries give to it."""

from __future__ import annotations

import math
from typing import Any

from goodgain.traces.model import Usage

__all__ = ["add_usages", "read_usage"]

_INPUT = ("input_tokens", "prompt_tokens", "inputTokens", "promptTokens")
_OUTPUT = ("output_tokens", "completion_tokens", "outputTokens", "completionTokens")
_COST = ("cost", "cost_usd", "total_cost")
_SECONDS = ("seconds",)
#: Tokens that were read from a cache or written to one, where the number of input tokens leaves them out.
_CACHED = {
    "cache_creation_input_tokens": "input_tokens",
    "cache_read_input_tokens": "input_tokens",
    "input_tokens_cache_write": "input_tokens",
    "input_tokens_cache_read": "input_tokens",
}
#: A larger number is damaged, and sums of such numbers would not fit into a column.
_MAX = 10**15


def read_usage(holder: Any) -> Usage | None:
    """Return the usage in an object with numbers of tokens, a price or a time; None if it has none.

    Input tokens count all that the model read, also from a cache. A value that is not a number is left out.

    >>> read_usage({"prompt_tokens": 10, "completion_tokens": 2})
    Usage(input_tokens=10, output_tokens=2, seconds=None, cost=None)
    """
    if not isinstance(holder, dict):
        return None
    read, written = _read_count(holder, _INPUT), _read_count(holder, _OUTPUT)
    if read is not None and "input_tokens" in holder:
        read += sum(_read_count(holder, (name,)) or 0 for name in _CACHED)
    seconds, cost = _read_number(holder, _SECONDS), _read_number(holder, _COST)
    if read is written is seconds is cost is None:
        return None
    return Usage(read, written, seconds, cost)


def _read_count(holder: dict[str, Any], names: tuple[str, ...]) -> int | None:
    number = _read_number(holder, names)
    return None if number is None else int(number)


def _read_number(holder: dict[str, Any], names: tuple[str, ...]) -> float | None:
    for name in names:
        value = holder.get(name)
        if (
            isinstance(value, (int, float))
            and not isinstance(value, bool)
            and math.isfinite(value)
            and 0 <= value <= _MAX
        ):
            return value
    return None


def add_usages(one: Usage | None, other: Usage | None) -> Usage | None:
    """Return the sum of two usages; what only one of them has is taken from it."""
    if one is None or other is None:
        return one or other
    return Usage(*(_add(getattr(one, name), getattr(other, name)) for name in Usage.__struct_fields__))


def _add(one: Any, other: Any) -> Any:
    return other if one is None else one if other is None else one + other
