"""Rows that `errors="skip"` leaves out: counted, and reported with the first five places."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import narwhals as nw

from goodgain.errors import InputError, notice
from goodgain.formats.row_origins import quote
from goodgain.ranking.engines import collect

__all__ = ["SkippedRows", "check_errors_option", "leave_out_rows"]

_SHOWN = 5


class SkippedRows:
    """Counts the rows that are left out of one source, and keeps the places of the first five."""

    def __init__(self) -> None:
        self.count = 0
        self.places: list[str] = []

    def add(self, place: str) -> None:
        """Count a row, and keep its place if it is among the first."""
        self.count += 1
        if len(self.places) < _SHOWN:
            self.places.append(place)

    def report(self, label: str, unit: str = "line") -> None:
        """Give one notice, if anything was left out."""
        if self.count:
            first = "the first: " if self.count > len(self.places) else ""
            notice(
                f"{label}: left out {self.count} bad {unit}{'s' * (self.count != 1)}; {first}{'; '.join(self.places)}"
            )


def leave_out_rows(
    frame: nw.LazyFrame[Any], wrong: nw.Expr, *, label: str, what: Callable[[nw.DataFrame[Any]], str]
) -> nw.LazyFrame[Any]:
    """Leave bad rows out of a lazy frame.

    One notice says how many, and shows one of them: rows of a lazy frame have no numbers that could be named.
    """
    bad = frame.filter(wrong)
    one: nw.DataFrame[Any] = nw.from_native(collect(bad.head(1)))
    if not len(one):
        return frame
    count = collect(bad.select(nw.len())).item()
    example = f"{quote(str(one.rows(named=True)[0]))} {what(one)}"
    notice(f"{label}: left out {count} bad row{'s' * (count != 1)}{', such as' if count > 1 else ':'} {example}")
    return frame.filter(~wrong)


def check_errors_option(errors: str) -> None:
    """Raise unless the option is `raise` or `skip`."""
    if errors not in ("raise", "skip"):
        raise InputError(f"errors={errors!r} is neither 'raise' nor 'skip'")
