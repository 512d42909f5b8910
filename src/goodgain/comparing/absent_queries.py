"""Queries that a run lacks: the notes on them, and which verdicts rest on them."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from goodgain.comparing.comparison_notes import Note
from goodgain.comparing.pairs_table import DECIDED
from goodgain.comparing.rendering import count_queries
from goodgain.counting.coverage import SharedQueries, join_examples
from goodgain.files.opening import stem
from goodgain.options import spell

_KEY = ["measure", "system", "against"]
#: Verdicts that a note lists.
_EXAMPLES = 3


class Unread(NamedTuple):
    """The queries that convert could not read for a run: the name of the file that lists them, and their ids."""

    file: str = ""
    query_ids: Collection[str] = ()


def read_unread(source: Any) -> Unread:
    """Return the queries in `RUN.unread` beside a run; convert names the file of several systems after `all`."""
    if not isinstance(source, (str, os.PathLike)):
        return Unread()
    path = Path(source)
    for name in (path.name, path.name.replace(stem(path) or path.name, "all", 1)):
        with suppress(OSError, ValueError):
            lines = path.with_name(f"{name}.unread").read_text(encoding="utf-8").splitlines()
            return Unread(f"{name}.unread", frozenset(lines))
    return Unread()


def describe_absent(name: str, of: SharedQueries, missing: str, unread: Unread) -> Iterator[Note]:
    """Yield the notes on queries without a search: the run says that they never searched, or has no row of them."""
    if idle := len(of.never_searched):
        shown = join_examples(of.never_searched)
        yield Note(f"{count_queries(idle)} never searched in {name}: {shown} (counted as having no results).")
    if number := len(of.only_judged):
        lost = int(of.only_judged.is_in([*unread.query_ids]).sum())
        told = f" convert could not read {lost:,} of them ({unread.file})." if lost else _tell_of_unknown(unread)
        counted = "counted as having no results" if missing == "zero" else "left out"
        one = number == 1
        yield Note(
            f"{count_queries(number)} {'is' if one else 'are'} absent from {name}, whose run has no row of "
            f"{'it' if one else 'them'}: {join_examples(of.only_judged)} ({counted}).{told}"
        )


def _tell_of_unknown(unread: Unread) -> str:
    """Say that queries which convert could not read may be among the absent ones, under other ids."""
    number = len(unread.query_ids)
    return f" {count_queries(number)} could not be read by convert, with other ids ({unread.file})." if number else ""


def describe_verdicts(pairs: pl.DataFrame, without: pl.DataFrame) -> Note:
    """Return the note on the verdicts that rest on absent queries; `without` has the pairs without these."""
    both = pairs.select(*_KEY, "verdict").join(without.select(*_KEY, other="verdict"), on=_KEY, maintain_order="left")
    changed = both.filter(pl.col("verdict").ne_missing(pl.col("other")))
    if changed.is_empty() and not {*both.get_column("verdict")} & {*DECIDED}:
        return Note("With and without the queries absent from a run, no verdict is better or worse.", minor=True)
    if changed.is_empty():
        return Note("No verdict rests on the queries absent from a run: without them each stays the same.", minor=True)
    return Note(
        f"Verdicts that rest on queries absent from a run: {_list_verdicts(changed.rows())}. "
        f"{spell('missing', 'absent')} leaves such queries out."
    )


def _list_verdicts(rows: Sequence[tuple[str, str, str, str | None, str | None]]) -> str:
    shown = [
        f"{measure} of {system} against {against} is {verdict or 'without a verdict'}, without them {other or 'none'}"
        for measure, system, against, verdict, other in rows[:_EXAMPLES]
    ]
    more = f"; and {len(rows) - _EXAMPLES:,} more" if len(rows) > _EXAMPLES else ""
    return "; ".join(shown) + more
