"""Fields of a line: where they end, whether they are the same, hashes of them, and numbers.

Ids are told apart by their bytes; hashes only say where to look. The text ends with a newline, which ends every field too:
no other end of it is looked for.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import float64, int64, uint64

from goodgain.batches.kernels.arguments import step

__all__ = [
    "BLANK",
    "COMMENT",
    "MINUS",
    "NEWLINE",
    "NINE",
    "PLUS",
    "ZERO",
    "byte_at",
    "digits",
    "field",
    "first_slot",
    "hashed",
    "number",
    "repeated",
    "same",
]

BLANK, COMMENT, NEWLINE, PLUS, MINUS, _DOT, ZERO, NINE = 32, 35, 10, 43, 45, 46, 48, 57
_SEED, _PRIME = np.uint64(0xCBF29CE484222325), np.uint64(0xD6E8FEB86659FD93)
_EXACT_DIGITS, _EXACT_POWER = 15, 22
_POWERS = np.array([float(f"1e{power}") for power in range(_EXACT_POWER + 1)])
_FINITE = 200  # digits of a number that is finite for sure, with an exponent of two digits


@step
def byte_at(text: Any, position: int) -> Any:
    """The byte at a position that is not negative. numba looks at the sign of every other index, which costs a third more."""
    return text[uint64(position)]


@step
def same(one: Any, i: int, other: Any, j: int, length: int) -> bool:
    for k in range(length):  # noqa: SIM110  # all() of a generator is not compiled
        if byte_at(one, i + k) != byte_at(other, j + k):
            return False
    return True


@step
def repeated(text: Any, position: int, earlier: int, length: int) -> bool:
    """Whether the field that starts here is the same as an earlier one, in which there is no newline."""
    return same(text, position, text, earlier, length) and byte_at(text, position + length) <= BLANK


@step
def field(text: Any, start: int) -> tuple[int, Any]:
    """Where a field ends (at white space or a control character), and a hash of it."""
    value, word, position = _SEED, uint64(0), start
    while byte_at(text, position) > BLANK:
        word = (word << uint64(8)) | uint64(byte_at(text, position))
        position += 1
        if (position - start) & 7 == 0:
            value = (value ^ word) * _PRIME
            value ^= value >> uint64(32)
            word = uint64(0)
    return position, _mixed(value, word, position - start)


@step
def hashed(text: Any, start: int, length: int) -> Any:
    """The hash that `_field` gives for these bytes."""
    value, word = _SEED, uint64(0)
    for k in range(length):
        word = (word << uint64(8)) | uint64(byte_at(text, start + k))
        if (k + 1) & 7 == 0:
            value = (value ^ word) * _PRIME
            value ^= value >> uint64(32)
            word = uint64(0)
    return _mixed(value, word, length)


@step
def _mixed(value: Any, word: Any, length: int) -> Any:
    value = (value ^ word ^ uint64(length)) * _PRIME
    value = (value ^ (value >> uint64(32))) * _PRIME
    return value ^ (value >> uint64(32))


@step
def first_slot(value: Any, size: int) -> Any:
    """Where to look for a hash first, in a table whose size is a power of two."""
    return int64(value & uint64(size - 1))


@step
def digits(text: Any, position: int) -> tuple[int, int]:
    """Where digits end, and the number they make."""
    return _more_digits(text, position, 0)


@step
def _more_digits(text: Any, position: int, number: int) -> tuple[int, int]:
    """Where digits end that go on a number, and the number then; it is wrong where 64 bits are not enough."""
    while ZERO <= byte_at(text, position) <= NINE:
        number = number * 10 + int64(byte_at(text, position)) - ZERO
        position += 1
    return position, number


@step
def number(text: Any, position: int) -> tuple[int, float]:
    """Where a number ends that is finite for sure, -1 for anything else; and its value, NaN where that is for others to find.

    Whole numbers of 15 digits and powers of ten up to 10^22 are floats without an error. One multiplication or division of
    the two is rounded once, so the value is the float that is nearest to the decimal (Clinger, PLDI 1990).
    """
    is_negative = byte_at(text, position) == MINUS
    if is_negative or byte_at(text, position) == PLUS:
        position += 1
    end, whole = digits(text, position)
    count, power = end - position, 0
    if byte_at(text, end) == _DOT:
        position = end + 1
        end, whole = _more_digits(text, position, whole)
        power = position - end
        count -= power
    if count == 0 or count > _FINITE:
        return -1, np.nan
    if (byte_at(text, end) | 32) == 101:  # e or E
        position = end + 1
        is_fraction = byte_at(text, position) == MINUS
        if is_fraction or byte_at(text, position) == PLUS:
            position += 1
        end, exponent = digits(text, position)
        if end == position or end - position > 2:
            return -1, np.nan
        power += -exponent if is_fraction else exponent
    if count > _EXACT_DIGITS or abs(power) > _EXACT_POWER:
        return end, np.nan
    value = float64(whole)
    value = value * _POWERS[power] if power >= 0 else value / _POWERS[-power]
    return end, -value if is_negative else value
