"""Formats numbers: with a sign, as an interval, or as a number of queries."""

from collections.abc import Mapping, Sequence
from typing import Any

from goodgain.files.tables import ABSENT, format_number

#: Verdict -> colour in pictures and pages: green and purple, which colour-blind readers distinguish.
VERDICT_COLOURS = {"better": "#1B7837", "worse": "#762A83"}


def format_interval(low: float | None, high: float | None, places: int, *, absent: str = ABSENT) -> str:
    if low is None or high is None:
        return absent
    holds_zero = low <= 0 <= high
    return f"[{format_end(low, places, holds_zero=holds_zero)}, {format_end(high, places, holds_zero=holds_zero)}]"


def format_end(end: float, places: int, *, holds_zero: bool) -> str:
    """Write an end of an interval. It is not rounded to 0 unless the interval holds 0.

    >>> format_end(0.00003, 4, holds_zero=False), format_end(0.00003, 4, holds_zero=True)
    ('+3e-05', '0.0000')
    """
    text = format_signed(end, places)
    return text if holds_zero or float(text) else f"{end:+.0e}"


#: Method in a signature -> its words.
_METHODS = {
    "t": "by Student's t",
    "bootstrap": "by the bootstrap over queries",
    "exact": "by Clopper and Pearson's method for shares",
}


def name_methods(methods: str) -> str:
    """Write the methods of the intervals of means in words.

    >>> name_methods("exact+t")
    "by Clopper and Pearson's method for shares and by Student's t"
    """
    return " and ".join(_METHODS[method] for method in methods.split("+"))


def format_level(level: float) -> str:
    """Write the level of an interval with two digits of what lacks to 100 %.

    >>> format_level(0.95), format_level(1 - 0.05 / 3), format_level(1 - 0.05 / 4950)
    ('95 %', '98.3 %', '99.999 %')
    """
    missing = float(f"{100 * (1 - level):.2g}")
    return f"{100 - missing:.12g} %"


def format_signed(value: float | None, places: int) -> str:
    """Write a number with its sign; zero has no sign."""
    if value is None:
        return ABSENT
    text = format_number(value, places)
    if not value or not float(text):
        return text.lstrip("-")
    return text if value < 0 else f"+{text}"


def count_queries(queries: int) -> str:
    return f"{queries:,} quer{'y' if queries == 1 else 'ies'}"


def list_some(names: Sequence[str], most: int = 3) -> str:
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def format_bounds(row: Mapping[str, Any], places: int) -> str:
    if row["most"] is None:
        return " (no bounds)"
    return f" [{format_number(row['least'], places)}, {format_number(row['most'], places)}]"


def format_probability(value: float | None, places: int, *, doubtful: bool) -> str:
    """Write a p-value, followed by † if it is `doubtful`."""
    if value is None:
        return ABSENT
    least = 10.0**-places
    text = f"<{least:.{places}f}" if places > 0 and value < least else format_number(value, places)
    return f"{text} †" if doubtful else text


def show(value: float | None, sign: str = "") -> str:
    """Write a whole number without decimals, any other with four, as tables do. With `+` as `sign`, positive numbers have a sign.

    >>> show(4.0), show(0.195, "+"), show(-0.00001)
    ('4', '+0.1950', '0')
    """
    if value is None:
        return ABSENT
    text = f"{value:{sign}.4f}".removesuffix(".0000")
    return "0" if text in ("-0", "+0") else text
