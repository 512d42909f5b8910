"""Formats numbers: with decimals, with a sign, as an interval, or as a number of queries."""

from collections.abc import Mapping, Sequence
from typing import Any

ABSENT = "–"
#: Verdict -> colour in pictures and pages: green and purple, which colour-blind readers distinguish.
VERDICT_COLOURS = {"better": "#1B7837", "worse": "#762A83"}


def format_interval(low: float | None, high: float | None, places: int, *, absent: str = ABSENT) -> str:
    return absent if low is None else f"[{format_signed(low, places)}, {format_signed(high, places)}]"


def format_number(value: float | None, places: int) -> str:
    """Write a float with `places` decimals, or in full precision if `places` is -1. Write an integer without decimals."""
    if value is None:
        return ABSENT
    return f"{value:.{places}f}" if places >= 0 and isinstance(value, float) else str(value)


def format_signed(value: float | None, places: int) -> str:
    """Write a number with its sign; zero has no sign."""
    if value is None:
        return ABSENT
    shown = format_number(value, places)
    if not value or not float(shown):
        return shown.lstrip("-")
    return shown if value < 0 else f"+{shown}"


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
    shown = f"<{least:.{places}f}" if places > 0 and value < least else format_number(value, places)
    return f"{shown} †" if doubtful else shown


def show(value: float | None, sign: str = "") -> str:
    """Write a number with at most four decimals, without trailing zeros. With `+` as `sign`, positive numbers have a sign."""
    if value is None:
        return ABSENT
    shown = f"{value:{sign}.4f}".rstrip("0").rstrip(".")
    return "0" if shown in ("-0", "+0") else shown
