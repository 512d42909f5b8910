"""Writes a comparison as HTML for a notebook: the two tables, a small picture of each interval, and the legend."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from goodgain.comparing.findings import Findings
from goodgain.comparing.grids import Layout, build_grids, build_legend
from goodgain.notebook_tables import HtmlCell, escape_html, write_table

__all__ = ["render_html"]

_WIDTH, _HEIGHT = 90, 12

#: Verdict -> colour; the safe ones of Okabe and Ito.
_COLOURS = {"better": "#0072B2", "worse": "#D55E00"}
_GREY = "#8C8C8C"


def render_html(comparison: Findings) -> str:
    """Return the tables of a comparison as HTML, with every text escaped."""
    means, pairs = build_grids(comparison, Layout())
    shown = [[HtmlCell(cell.text, cell.best) for cell in row] for row in means.rows]
    parts = [write_table(means.title, means.header, shown, words=means.words)]
    at = pairs.header.index("interval")
    rows = []
    for row, picture in zip(pairs.rows, _draw_intervals(comparison.pairs), strict=True):
        cells = [HtmlCell(cell.text, cell.verdict in _COLOURS) for cell in row]
        cells[at] = cells[at]._replace(picture=picture)
        rows.append(cells)
    parts.append(write_table(pairs.title, pairs.header, rows, words=pairs.words))
    items = "".join(f"<li>{escape_html(sentence)}</li>" for sentence in build_legend(comparison))
    return "".join(parts) + f"<ul><small>{items}</small></ul>"


def _draw_intervals(pairs: pl.DataFrame) -> Iterator[str]:
    """Yield an SVG for each pair: its difference and interval around zero; the pairs of a measure have one scale."""
    widest = pl.max_horizontal(pl.col("difference", "low", "high").abs()).max().over("measure")
    columns = ("difference", "low", "high", "verdict")
    for difference, low, high, verdict, scale in pairs.select(*columns, scale=widest).iter_rows():
        if difference is None or low is None or not scale:
            yield ""
            continue
        x, left, right = (_WIDTH / 2 * (1 + 0.94 * value / scale) for value in (difference, low, high))
        colour, middle = _COLOURS.get(verdict, _GREY), _HEIGHT / 2
        yield (
            f'<svg width="{_WIDTH}" height="{_HEIGHT}" role="img" aria-label="difference and interval around zero">'
            f'<line x1="{_WIDTH / 2}" x2="{_WIDTH / 2}" y1="0" y2="{_HEIGHT}" stroke="currentColor" stroke-width="0.7"/>'
            f'<line x1="{left:.1f}" x2="{right:.1f}" y1="{middle}" y2="{middle}" stroke="{colour}" stroke-width="3"/>'
            f'<circle cx="{x:.1f}" cy="{middle}" r="3.5" fill="{colour}"/></svg> '
        )
