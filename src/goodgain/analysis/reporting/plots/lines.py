"""Draws lines: a measure over iterations or over what was spent, and precision over recall."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import polars as pl
import polars.selectors as cs
from matplotlib.axes import Axes
from matplotlib.colors import to_rgba
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter, MaxNLocator
from numpy.typing import NDArray

from goodgain.analysis.reporting.plots import canvas, plot_data
from goodgain.analysis.reporting.plots.canvas import Entry
from goodgain.analysis.reporting.spends import format_amount
from goodgain.errors import count_of
from goodgain.options import ALPHA

#: The largest number of systems with bands by default: more bands would cover each other.
_MOST_BANDS = 5
_FAINT = 0.35


def curve(
    frame: Any, measure: str | None = None, *, bands: bool | None = None, alpha: float = ALPHA, ax: Axes | None = None
) -> Axes:
    """Draw a measure over iterations: a line per system, with the bootstrap interval of the mean as a band.

    A system of several runs has a second, fainter band from the lowest to the highest mean of its runs.
    A line is faint where fewer than half of the queries still search. There, the mean comes mostly from queries that
    have stopped. Overlapping bands do not mean that two systems are equal: test differences with `gg.compare`.

    Args:
        frame: what `gg.curve` returns.
        measure: a measure of the frame; not needed if there is only one.
        bands: whether to draw the intervals; None draws them for up to five systems.
        alpha: the `alpha` that was given to `gg.curve`, to name the interval in the legend.
        ax: the axes to draw on; None makes a figure.

    Returns:
        The axes; `ax.figure` is the figure.

    Raises:
        InputError: the frame is not from `gg.curve`, or has several measures and `measure` is None.

    >>> import goodgain as gg
    >>> folder = "qrels_examples/redundancy/"
    >>> ax = curve(gg.curve(folder + "qrels.txt", {"lean": folder + "lean.run"}, "CG"))
    >>> ax.get_title(loc="left"), ax.get_xlabel()
    ('Good gain found after each search', 'iteration')
    """
    ax, own = canvas.open_ax(ax)
    points = plot_data.choose_points(frame, measure)
    rows = plot_data.prepare_curve(points)
    lines, shown = _draw_systems(ax, points, rows, bands, alpha)
    entries = [*lines, *shown]
    if rows.get_column("few").any():
        faint = Line2D([], [], color=canvas.GREY, alpha=_FAINT, linewidth=1.8, marker="o", markersize=4.5)
        entries.append(Entry(faint, "under half of the queries still search"))
    last = int(rows.get_column("iteration").max() or 1)  # type: ignore[arg-type]  # an Int64
    ax.set_xlabel("iteration")
    canvas.count_on(ax.xaxis)
    margin = 0.5 if last == 1 else 0.25 + 0.02 * last
    ax.set_xlim(1 - margin, last + margin)
    told = plot_data.describe_without_results(points)
    canvas.add_title(ax, canvas.describe_values(points.item(0, "measure"), "after each search"), *told)
    canvas.add_legend(ax, entries, own=own)
    return ax


class _Band(NamedTuple):
    """A band around a system's line, from column `low` to column `high`. With one iteration, it is a bar, `width` points wide."""

    low: str
    high: str
    label: str
    edge: float
    width: int

    def paint(self, color: str, alpha: float = 0.14) -> dict[str, Any]:
        if not self.edge:
            return {"color": color, "alpha": alpha, "linewidth": 0}
        edge = {"edgecolor": to_rgba(color, 0.8), "linestyle": ":", "linewidth": self.edge}
        return {"facecolor": to_rgba(color, alpha / 2), **edge}


def _draw_systems(
    ax: Axes, points: pl.DataFrame, rows: pl.DataFrame, bands: bool | None, alpha: float
) -> tuple[list[Entry], list[Entry]]:
    """Draw lines and bands. Return the legend entries of lines (none if names stand beside the lines) and of bands."""
    systems = rows.partition_by("system", maintain_order=True)
    bands_of_data = (  # the faint band goes behind
        _Band("least", "most", "lowest to highest mean of a single run", 0.9, 11),
        _Band("low", "high", canvas.name_interval(1 - alpha), 0.0, 5),
    )
    wanted = len(systems) <= _MOST_BANDS if bands is None else bands
    shown = [band for band in bands_of_data if wanted and band.low in rows.columns and rows[band.low].count()]
    entries, ends = [], []
    for number, of in enumerate(systems):
        style = canvas.style_of(number)
        for band in shown:
            _draw_band(ax, of, style, band)
        _draw_line(ax, of, style)
        name = of.get_column("system")[0]
        entries.append(Entry(Line2D([], [], **style), name))
        last = (float(numbers[-1]) for numbers in _take_numbers(of, of.columns[1], "mean"))
        ends.append((name, style["color"], *last))
    lowest: Any = rows.select(pl.min_horizontal(cs.by_name("mean", "low", "least", require_all=False).min())).item()
    if lowest is not None and lowest >= 0:
        ax.set_ylim(bottom=0)
    name, queries = points.select("measure", "queries").row(0)
    ax.set_ylabel(
        canvas.break_lines(f"{canvas.spell_measure(name)}, mean over {count_of(queries, 'query', 'queries')}", 34)
    )
    entries = [] if canvas.name_ends(ax, ends) else entries
    return entries, [Entry(Patch(**band.paint(canvas.GREY, 0.3)), band.label) for band in shown]


def _take_numbers(rows: pl.DataFrame, *names: str) -> list[NDArray[np.float64]]:
    return [rows.get_column(name).cast(pl.Float64).fill_null(np.nan).to_numpy() for name in names]


def _draw_band(ax: Axes, rows: pl.DataFrame, style: Mapping[str, Any], band: _Band) -> None:
    if not rows[band.low].count():
        return
    place = rows.columns[1]
    x, low, high = _take_numbers(rows, place, band.low, band.high)
    if place == "spend":
        ax.fill_between(x, low, high, step="post", **band.paint(style["color"]))
    elif len(x) == 1:  # an area without width is invisible
        ax.vlines(x, low, high, color=style["color"], alpha=0.4, linewidth=band.width)
    else:
        ax.fill_between(x, low, high, **band.paint(style["color"]))


def _draw_line(ax: Axes, rows: pl.DataFrame, style: Mapping[str, Any]) -> None:
    x, mean = _take_numbers(rows, rows.columns[1], "mean")
    if "enough" in rows.columns:
        marked = rows.get_column("enough").arg_true().to_list()
        ax.plot(x, mean, drawstyle="steps-post", **style, markevery=marked)
        return
    clear = int((~rows.get_column("few")).sum())  # the number of searching queries only falls
    ax.plot(x[:clear], mean[:clear], **style)
    if clear < len(x):
        ax.plot(x[max(clear - 1, 0) :], mean[max(clear - 1, 0) :], alpha=_FAINT, zorder=1.9, **style)


def against_spend(
    frame: Any, measure: str | None = None, *, bands: bool | None = None, alpha: float = ALPHA, ax: Axes | None = None
) -> Axes:
    """Draw a measure over the amount spent: a line per system, with the bootstrap interval of the mean as a band.

    A system of several runs has a second, fainter band from the lowest to the highest mean of its runs.
    A mark shows the smallest amount at which the mean reaches 95 % of its last value. A higher spend adds little.

    Args:
        frame: what `gg.curve(..., over=...)` returns.
        measure: a measure of the frame; not needed if there is only one.
        bands: whether to draw the intervals; None draws them for up to five systems.
        alpha: the `alpha` that was given to `gg.curve`, to name the interval in the legend.
        ax: the axes to draw on; None makes a figure.

    Returns:
        The axes.

    Raises:
        InputError: the frame is not from `gg.curve(..., over=...)`, or has several measures and `measure` is None.

    >>> import goodgain as gg
    >>> folder = "qrels_examples/redundancy/"
    >>> ax = against_spend(gg.curve(folder + "qrels.txt", {"lean": folder + "lean.run"}, "CG", over="results"))
    >>> ax.get_xlabel()
    'results spent by each query, at most'
    """
    ax, own = canvas.open_ax(ax)
    points = plot_data.choose_points(frame, measure, spend=True)
    rows = plot_data.prepare_against_spend(points)
    entries, shown = _draw_systems(ax, points, rows, bands, alpha)
    if rows.get_column("enough").any():
        entries.append(
            Entry(Line2D([], [], color=canvas.GREY, marker="o", linestyle=""), "95 % of the last value is there")
        )
    ax.set_xlabel(f"{points.item(0, 'over')} spent by each query, at most")
    ax.xaxis.set_major_locator(MaxNLocator(5))
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _position: format_amount(value)))
    ax.set_xlim(left=0)
    title = canvas.describe_values(points.item(0, "measure"), f"by {points.item(0, 'over')} spent")
    canvas.add_title(ax, title, *plot_data.describe_without_results(points))
    canvas.add_legend(ax, [*entries, *shown], own=own)
    return ax


def precision_recall(frame: Any, *, ax: Axes | None = None) -> Axes:
    """Draw interpolated precision over recall: a line per system, or a thin line per query if the frame has query ids.

    Args:
        frame: what `gg.pr_curve` returns. To see queries and means, draw the frames with and without `per_query=True` on one `ax`.
        ax: the axes to draw on; None makes a figure.

    Returns:
        The axes.

    Raises:
        InputError: the frame is not from `gg.pr_curve`.

    >>> import goodgain as gg
    >>> ax = precision_recall(gg.pr_curve({"q": {"a": 1}}, {"agent": {"q": {"a": 1.0}}}))
    >>> ax.lines[0].get_ydata().tolist() == [1.0] * 11
    True
    """
    rows = plot_data.prepare_precision_recall(frame)
    ax, own = canvas.open_ax(ax)
    entries, ends = [], []
    for number, system in enumerate(rows.partition_by("system", maintain_order=True)):
        style = canvas.style_of(number)
        of_queries = system.get_column("query_id").null_count() == 0
        for line in system.partition_by("query_id", maintain_order=True):
            look = {"color": style["color"], "linewidth": 0.7, "alpha": 0.5} if of_queries else style
            ax.plot(line.get_column("recall").to_numpy(), line.get_column("precision").to_numpy(), **look)
        look = look | {"alpha": 1.0}
        label = system.get_column("system")[0]
        entries.append(Entry(Line2D([], [], **look), f"{label}, each query" if of_queries else label))
        ends.append((label, style["color"], 1.0, line.get_column("precision")[-1]))
    ax.set_xlabel("recall")
    ax.set_ylabel("interpolated precision ↑")
    ax.set_xlim(-0.03, 1.03)
    ax.set_ylim(0, 1.05)
    canvas.add_title(ax, "Precision at each level of recall")
    canvas.add_legend(ax, [] if not of_queries and canvas.name_ends(ax, ends) else entries, own=own)
    return ax
