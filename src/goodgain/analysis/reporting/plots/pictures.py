"""The figures of the commands, with several plots each, and their files."""

from __future__ import annotations

import io
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from goodgain.analysis.comparing.comparison import Comparison
from goodgain.analysis.comparing.use_of_documents import Funnel
from goodgain.errors import InputError, notice
from goodgain.files.writing import atomic_write

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from goodgain.analysis.reporting.plots.canvas import Entry, Picture


#: File suffix -> the metadata to omit, the time of writing: the same data must give the same file.
_FORMATS: dict[str, dict[str, None]] = {".png": {}, ".svg": {"Date": None}, ".pdf": {"CreationDate": None}}
#: Style of an SVG: the colour of text and axes on light and on dark pages.
_PAGE_COLOURS = b"svg{color:#1a1a1a} @media (prefers-color-scheme:dark){svg{color:#e6e6e6}} "
#: The largest number of plots in one picture.
_MOST_PLOTS = 24


def check_picture_name(path: Path) -> None:
    if path.suffix.lower() not in _FORMATS:
        raise InputError(
            f"{path}: pictures are written as {', '.join(_FORMATS)}. Choose a name with one of these endings"
        )


def draw_curves(frame: pl.DataFrame) -> Picture:
    """Return a figure with a plot per measure of a frame of `gg.curve`, one below the other, and one legend."""
    from goodgain.analysis.reporting.plots.lines import draw_against_spend, draw_curve

    draw = draw_against_spend if "spend" in frame.columns else draw_curve
    measures = list(dict.fromkeys(frame.get_column("measure")))
    figure, axes = _open_figure(len(measures))
    drawn = [draw(ax, frame, measure) for ax, measure in zip(axes, measures, strict=False)]
    # a plot names lines at their ends if it can
    entries = {entry.label: entry for entries in drawn for entry in entries}
    _finish(figure, [*entries.values()], len(measures), "measures", "name fewer with -m")
    return figure


def draw_comparison(comparison: Comparison, questions: Mapping[str, str] | None = None) -> Figure:
    """Return a figure like that of `draw_curves`, of `per_query` for each measure and pair; `questions` replace ids of queries."""
    from goodgain.analysis.reporting.plots.bars import DIFFERENCE_LABELS, draw_per_query, find_height
    from goodgain.analysis.reporting.plots.canvas import share_scales

    pairs = comparison.pairs.rows(named=True)
    figure, axes = _open_figure(len(pairs), find_height(comparison))
    shared: dict[str, Entry] = {}
    of_measures: dict[str, list[Axes]] = {}
    for ax, pair in zip(axes, pairs, strict=False):
        entries = draw_per_query(ax, comparison, pair, questions)
        shared |= {entry.label: entry for entry in entries}
        of_measures.setdefault(pair["measure"], []).append(ax)
    for compared in of_measures.values():
        share_scales(compared, "x")
    order = {label: place for place, label in enumerate(DIFFERENCE_LABELS)}
    legend = sorted(shared.values(), key=lambda entry: order.get(entry.label, len(order)))
    _finish(figure, legend, len(pairs), "pairs and measures", "name fewer measures with -m, or a --baseline")
    return figure


def draw_funnel(found: Funnel) -> Figure:
    from goodgain.analysis.reporting.plots.bars import funnel

    return funnel(found).figure  # type: ignore[return-value]  # not a subfigure: it is our own


def _open_figure(plots: int, height: float = 3.3) -> tuple[Picture, list[Axes]]:
    from goodgain.analysis.reporting.plots.canvas import Picture, open_ax

    shown = min(plots, _MOST_PLOTS)
    figure = Picture(height * shown + 0.4)
    return figure, [open_ax(ax)[0] for ax in figure.subplots(shown, squeeze=False)[:, 0]]


def _finish(figure: Figure, entries: list[Entry], plots: int, name: str, remedy: str) -> None:
    from goodgain.analysis.reporting.plots.canvas import add_legend_below

    if plots > _MOST_PLOTS:
        notice(f"the picture shows {_MOST_PLOTS} of {plots:,} {name}; {remedy}")
    if entries:
        add_legend_below(figure, entries)


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
