"""The ledger and curves in a notebook: tables with pictures."""

from base64 import b64encode
from collections.abc import Sequence
from typing import Any

import polars as pl

from goodgain.analysis.reporting.counted_runs import KINDS
from goodgain.analysis.reporting.plots.pictures import draw_curves
from goodgain.errors import InputError
from goodgain.files.escaping import escape_html
from goodgain.files.tables import Cell, Table, write_html

_COUNTS = {"R", "UR", "Dup", "GR", "Unjudged"}
_CURVE = {"system", "measure", "mean", "low", "high", "queries"}
_WIDTH, _HEIGHT = 160, 12


class ShownFrame:
    """A frame that a notebook shows with a picture; `frame` is the frame itself."""

    def __init__(self, frame: pl.DataFrame, html: str) -> None:
        self.frame = frame
        self._html = html

    def __repr__(self) -> str:
        return repr(self.frame)

    def _repr_html_(self) -> str:
        return self._html


def show_ledger(ledger: pl.DataFrame, *, rows: int = 100) -> ShownFrame:
    """Show a ledger in a notebook, each row with a bar of its results by kind.

    Args:
        ledger: what `gg.ledger` returns.
        rows: the number of rows to show.

    Returns:
        An object that a notebook shows as a table.

    Raises:
        InputError: the frame is not a ledger.

    >>> import goodgain as gg
    >>> run = pl.DataFrame({"query_id": "q", "iteration": 1, "doc_id": ["a", "b"]})
    >>> shown = show_ledger(gg.ledger({"q": {"a": 3}}, run))
    >>> "1 new, good; 0 new, not good; 1 new, unjudged; 0 repeated" in shown._repr_html_()
    True
    """
    if not isinstance(ledger, pl.DataFrame) or not set(ledger.columns) >= _COUNTS:
        raise InputError("show_ledger: this is not a ledger; give the frame that gg.ledger returns")
    bars = ledger.head(rows).select(**{name: kind.number for name, kind in KINDS.items()}).rows()
    widest = max(map(sum, bars), default=0) or 1
    key = (
        f'<span style="border-left:12px solid {kind.colour};padding-left:4px">{kind.label}</span>'
        for kind in KINDS.values()
    )
    return ShownFrame(ledger, " ".join(key) + _write_rows(ledger, rows, [_draw_bar(bar, widest) for bar in bars]))


def show_curve(curve: pl.DataFrame, *, rows: int = 100) -> ShownFrame:
    """Show a curve in a notebook: a plot of each measure, and the table below it.

    Args:
        curve: what `gg.curve` returns, over iterations or over what was spent.
        rows: the number of rows of the table to show.

    Returns:
        An object that a notebook shows as plots and a table.

    Raises:
        InputError: the frame is not one of `gg.curve`.

    >>> import goodgain as gg
    >>> folder = "qrels_examples/redundancy/"
    >>> shown = show_curve(gg.curve(folder + "qrels.txt", {"lean": folder + "lean.run"}, "CG"))
    >>> shown._repr_html_().count("<tr>")
    4
    """
    if not isinstance(curve, pl.DataFrame) or not set(curve.columns) >= _CURVE or curve.is_empty():
        raise InputError("show_curve: this is not a curve; give the frame that gg.curve returns")
    named = (curve.get_column(name).unique(maintain_order=True) for name in ("measure", "system"))
    measures, systems = map(", ".join, named)
    said = escape_html(f"{measures} of {systems}; the table below has the numbers")
    png = b64encode(draw_curves(curve)._repr_png_()).decode()
    plot = f'<img src="data:image/png;base64,{png}" alt="{said}" style="max-width:100%;width:520px" />'
    return ShownFrame(curve, plot + _write_rows(curve, rows))


def _write_rows(frame: pl.DataFrame, rows: int, bars: Sequence[str] | None = None) -> str:
    """Return the first rows as a table, with a first column of bars if there are any, and how many more there are."""
    cells = [[Cell(_format(value)) for value in row] for row in frame.head(rows).iter_rows()]
    header = frame.columns
    if bars is not None:
        cells = [[Cell("", picture=bar), *row] for bar, row in zip(bars, cells, strict=True)]
        header = ["results", *header]
    more = frame.height - len(cells)
    return write_html([Table("", header, 2, cells, notes=[f"and {more:,} more"] * bool(more))])


def _draw_bar(counts: Sequence[int], widest: int) -> str:
    counted = list(zip(counts, KINDS.values(), strict=True))
    said = "; ".join(f"{count:,} {kind.label}" for count, kind in counted)
    parts, x = [], 0.0
    for count, kind in counted:
        width = _WIDTH * count / widest
        parts.append(f'<rect x="{x:.1f}" y="1" width="{width:.1f}" height="{_HEIGHT - 2}" fill="{kind.colour}"/>')
        x += width
    return f'<svg width="{_WIDTH}" height="{_HEIGHT}" role="img" aria-label="{said}">{"".join(parts)}</svg>'


def _format(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.4g}" if isinstance(value, float) else str(value)
