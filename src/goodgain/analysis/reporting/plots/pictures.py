"""Draws figures of several plots, and writes them to files. Shows ledgers and curves with pictures in a notebook."""

from __future__ import annotations

import io
from base64 import b64encode
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from goodgain.analysis.comparing.comparison import Comparison
from goodgain.analysis.comparing.use_of_documents import Funnel
from goodgain.analysis.reporting import plots
from goodgain.analysis.reporting.plots.plot_data import KINDS
from goodgain.errors import InputError, notice
from goodgain.files.escaping import escape_html
from goodgain.files.tables import Cell, Table, write_html
from goodgain.files.writing import atomic_write

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from goodgain.analysis.reporting.plots.canvas import Picture

#: File suffix -> the metadata to omit, the time of writing: the same data must give the same file.
_FORMATS: dict[str, dict[str, None]] = {".png": {}, ".svg": {"Date": None}, ".pdf": {"CreationDate": None}}
#: Style of an SVG: the colour of text and axes on light and on dark pages.
_PAGE_COLOURS = b"svg{color:#1a1a1a} @media (prefers-color-scheme:dark){svg{color:#e6e6e6}} "
#: The largest number of plots in one picture.
_MOST_PLOTS = 24
#: Columns of a ledger, and of a curve, that a notebook shows.
_COUNTS = {"R", "UR", "Dup", "GR", "Unjudged"}
_CURVE = {"system", "measure", "mean", "low", "high", "queries"}
#: Width and height of a bar in a notebook.
_WIDTH, _HEIGHT = 160, 12


def check_picture_name(path: Path) -> None:
    if path.suffix.lower() not in _FORMATS:
        raise InputError(
            f"{path}: pictures are written as {', '.join(_FORMATS)}. Choose a name with one of these endings"
        )


def draw_curves(frame: pl.DataFrame) -> Picture:
    """Return a figure of a frame from `gg.curve`: one plot for each measure, stacked vertically, with a shared legend."""
    draw = plots.against_spend if "spend" in frame.columns else plots.curve
    measures = list(dict.fromkeys(frame.get_column("measure")))
    figure, axes = _open_figure(len(measures))
    for ax, measure in zip(axes, measures, strict=False):
        draw(frame, measure, ax=ax)
    _finish(figure, len(measures), "measures", "name fewer measures")
    return figure


def draw_comparison(comparison: Comparison, questions: Mapping[str, str] | None = None) -> Figure:
    """Return a figure with up to 24 `per_query` plots, one per measure and pair. `questions` has texts to show instead of ids."""
    from goodgain.analysis.reporting.plots.bars import DIFFERENCE_LABELS, find_height
    from goodgain.analysis.reporting.plots.canvas import share_scales

    pairs = comparison.pairs.rows(named=True)
    figure, axes = _open_figure(len(pairs), find_height(comparison))
    axes_of_measure: dict[str, list[Axes]] = {}
    for ax, pair in zip(axes, pairs, strict=False):
        measure, system, against = pair["measure"], pair["system"], pair["against"]
        plots.per_query(comparison, measure, system=system, against=against, queries=questions or None, ax=ax)
        axes_of_measure.setdefault(measure, []).append(ax)
    for axes_to_share in axes_of_measure.values():
        share_scales(axes_to_share, "x")

    shared = figure.shared or {}
    order = [*filter(shared.get, DIFFERENCE_LABELS), *shared]
    figure.shared = {label: shared[label] for label in order}
    _finish(figure, len(pairs), "pairs and measures", "name fewer measures, or a baseline")
    return figure


def draw_funnel(found: Funnel) -> Figure:
    return plots.funnel(found).figure  # type: ignore[return-value]  # not a subfigure: it is new


def _open_figure(number: int, height: float = 3.3) -> tuple[Picture, list[Axes]]:
    """Return a figure for `number` plots below each other, and the axes of the first 24. `height` is that of a plot, in inches."""
    from goodgain.analysis.reporting.plots.canvas import Picture, open_ax

    shown = min(number, _MOST_PLOTS)
    figure = Picture(height * shown + 0.4)
    figure.shared = {}
    return figure, [open_ax(ax)[0] for ax in figure.subplots(shown, squeeze=False)[:, 0]]


def _finish(figure: Picture, number: int, name: str, remedy: str) -> None:
    """Add the shared legend. A notice says if not all of the `number` plots are shown; `name` is what they are."""
    from goodgain.analysis.reporting.plots.canvas import add_legend_below

    if number > _MOST_PLOTS:
        notice("plots_left_out", f"the picture shows {_MOST_PLOTS} of {number:,} {name}; {remedy}")
    if figure.shared:
        add_legend_below(figure, [*figure.shared.values()])


def write_picture(figure: Figure, path: Path) -> None:
    """Write a figure to a .png, .svg or .pdf file, atomically; the same figure gives the same file.

    Text and axes of an SVG are black on light pages, and nearly white on dark ones.
    """
    from matplotlib import rc_context

    from goodgain.analysis.reporting.plots.canvas import INK

    suffix = path.suffix.lower()
    content = io.BytesIO()
    with rc_context({"svg.hashsalt": "goodgain"}):  # without it, ids in an SVG are random
        figure.savefig(content, format=suffix[1:], dpi=160, metadata=_FORMATS[suffix])
    written = content.getvalue()
    if suffix == ".svg":
        written = written.replace(INK.encode(), b"currentColor").replace(b"*{", _PAGE_COLOURS + b"*{", 1)
    with atomic_write(path) as out:
        out.write(written)


class ShownFrame:
    """Shows a data frame in a notebook, as a picture and a table; `frame` holds the data frame."""

    def __init__(self, frame: pl.DataFrame, picture: str, table: Table) -> None:
        self.frame = frame
        self._picture, self._table = picture, table

    def tables(self) -> list[Table]:
        return [self._table]

    def __repr__(self) -> str:
        return repr(self.frame)

    def _repr_html_(self) -> str:
        return self._picture + write_html(self.tables())


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
    counts = ledger.head(rows).select(**{name: kind.number for name, kind in KINDS.items()}).rows()
    widest = max(map(sum, counts), default=0) or 1
    bars = [_draw_bar(counts_of_row, widest) for counts_of_row in counts]
    key = []
    for kind in KINDS.values():
        key.append(f'<span style="border-left:12px solid {kind.colour};padding-left:4px">{kind.label}</span>')
    return ShownFrame(ledger, " ".join(key), _build_table(ledger, rows, bars))


def show_curve(curve: pl.DataFrame, *, rows: int = 100) -> ShownFrame:
    """Show a curve in a notebook: a plot of each measure, and the table below it.

    Args:
        curve: what `gg.curve` returns, over iterations or over what was spent.
        rows: the number of rows of the table to show.

    Returns:
        An object that a notebook shows as plots and a table.

    Raises:
        InputError: the frame is not from `gg.curve`.

    >>> import goodgain as gg
    >>> folder = "qrels_examples/redundancy/"
    >>> shown = show_curve(gg.curve(folder + "qrels.txt", {"lean": folder + "lean.run"}, "CG"))
    >>> shown._repr_html_().count("<tr>")
    4
    """
    if not isinstance(curve, pl.DataFrame) or not set(curve.columns) >= _CURVE or curve.is_empty():
        raise InputError("show_curve: this is not a curve; give the frame that gg.curve returns")
    measures = ", ".join(curve.get_column("measure").unique(maintain_order=True))
    systems = ", ".join(curve.get_column("system").unique(maintain_order=True))
    text = escape_html(f"{measures} of {systems}; the table below has the numbers")
    png = b64encode(draw_curves(curve)._repr_png_()).decode()
    plot = f'<img src="data:image/png;base64,{png}" alt="{text}" style="max-width:100%;width:520px" />'
    return ShownFrame(curve, plot, _build_table(curve, rows))


def _build_table(frame: pl.DataFrame, rows: int, bars: Sequence[str] | None = None) -> Table:
    """Return a table of the first rows of a frame, with `bars` as first column. A note says how many rows are left out."""
    cells = [[Cell(_format(value)) for value in row] for row in frame.head(rows).iter_rows()]
    header = frame.columns
    if bars is not None:
        cells = [[Cell("", picture=bar), *row] for bar, row in zip(bars, cells, strict=True)]
        header = ["results", *header]
    more = frame.height - len(cells)
    notes = [f"and {more:,} more"] if more else []
    return Table("", header, 2, cells, notes=notes)


def _draw_bar(counts: Sequence[int], widest: int) -> str:
    """Return an SVG of the counts of `KINDS`, stacked from left to right. A bar with the sum `widest` fills the width."""
    labels, rectangles = [], []
    x = 0.0
    for count, kind in zip(counts, KINDS.values(), strict=True):
        labels.append(f"{count:,} {kind.label}")
        width = _WIDTH * count / widest
        rectangles.append(f'<rect x="{x:.1f}" y="1" width="{width:.1f}" height="{_HEIGHT - 2}" fill="{kind.colour}"/>')
        x += width
    label = "; ".join(labels)
    return f'<svg width="{_WIDTH}" height="{_HEIGHT}" role="img" aria-label="{label}">{"".join(rectangles)}</svg>'


def _format(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.4g}" if isinstance(value, float) else str(value)
