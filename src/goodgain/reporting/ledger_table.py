"""The ledger as a notebook shows it: its numbers, and in each row a bar of what the iteration brought."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl

from goodgain.errors import InputError
from goodgain.notebook_tables import HtmlCell, write_table

__all__ = ["LedgerTable", "show_ledger"]

#: The kinds of results as `plots.what_came_back` stacks them: how they are counted in the ledger, colour, name.
_KINDS = (
    (pl.col("GR"), "#0072B2", "new, good"),
    (pl.col("UR") - pl.col("GR") - pl.col("Unjudged"), "#56B4E9", "new, not good"),
    (pl.col("Unjudged"), "#D9D9D9", "new, unjudged"),
    (pl.col("Dup"), "#E69F00", "repeated"),
)
_COUNTS = ("R", "UR", "Dup", "GR", "Unjudged")
_WIDTH, _HEIGHT = 160, 12


class LedgerTable:
    """A ledger that a notebook shows with a bar in each row; `frame` is the ledger itself."""

    def __init__(self, frame: pl.DataFrame, rows: int) -> None:
        self.frame = frame
        self._rows = rows

    def __repr__(self) -> str:
        return repr(self.frame)

    def _repr_html_(self) -> str:
        shown = self.frame.head(self._rows)
        kinds = shown.select(count.alias(name) for count, _, name in _KINDS).rows()
        widest = max(map(sum, kinds), default=0) or 1
        rows = [
            [HtmlCell("", picture=_draw_bar(bar, widest)), *(HtmlCell(_format(value)) for value in row)]
            for row, bar in zip(shown.iter_rows(), kinds, strict=True)
        ]
        more = self.frame.height - shown.height
        note = f"<small>and {more:,} more</small>" if more else ""
        return _write_key() + write_table("", ["results", *shown.columns], rows, words=2) + note


def show_ledger(ledger: pl.DataFrame, *, rows: int = 100) -> LedgerTable:
    """Show a ledger in a notebook: each row with a bar of its results, by kind.

    Args:
        ledger: what `gg.ledger` returns; it stays the data frame that it is.
        rows: the number of rows shown.

    Returns:
        What a notebook shows as a table, where it is the last value of a cell.

    Raises:
        InputError: the frame is not a ledger.

    >>> import goodgain as gg
    >>> run = pl.DataFrame({"query_id": "q", "iteration": 1, "doc_id": ["a", "b"]})
    >>> shown = show_ledger(gg.ledger({"q": {"a": 3}}, run))
    >>> "1 new, good; 0 new, not good; 1 new, unjudged; 0 repeated" in shown._repr_html_()
    True
    """
    if not isinstance(ledger, pl.DataFrame) or not set(_COUNTS) <= set(ledger.columns):
        raise InputError("show_ledger: this is not a ledger; give the frame that gg.ledger returns")
    return LedgerTable(ledger, rows)


def _write_key() -> str:
    """Return the meaning of the colours."""
    return " ".join(
        f'<span style="border-left:12px solid {colour};padding-left:4px">{name}</span>' for _, colour, name in _KINDS
    )


def _draw_bar(counts: Sequence[int], widest: int) -> str:
    said = "; ".join(f"{count:,} {name}" for count, (_, _, name) in zip(counts, _KINDS, strict=True))
    parts, x = [], 0.0
    for count, (_, colour, _) in zip(counts, _KINDS, strict=True):
        width = _WIDTH * count / widest
        parts.append(f'<rect x="{x:.1f}" y="1" width="{width:.1f}" height="{_HEIGHT - 2}" fill="{colour}"/>')
        x += width
    return f'<svg width="{_WIDTH}" height="{_HEIGHT}" role="img" aria-label="{said}">{"".join(parts)}</svg>'


def _format(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.4g}" if isinstance(value, float) else str(value)
