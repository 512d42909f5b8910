"""Draws lines: a measure over iterations or over what was spent, and precision over recall."""

from collections.abc import Collection, Mapping
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
from goodgain.argument_kinds import checks_kinds
from goodgain.errors import count_of
from goodgain.measures.names import find_direction, parse_measure
from goodgain.options import ALPHA

#: The largest number of systems with bands by default: more bands would cover each other.
_MOST_BANDS = 5
_FAINT = 0.35
#: With more systems, only some have colours and names by default: colours would repeat.
_MOST_COLOURED = 8
#: How many systems have them then.
_HIGHLIGHTED = 4


@checks_kinds
def curve(
    frame: Any,
    measure: str | None = None,
    *,
    highlight: Collection[str] | None = None,
    bands: bool | None = None,
    alpha: float = ALPHA,
    ax: Axes | None = None,
) -> Axes:
    """Draw a measure over iterations: a line per system, with the interval of the mean as a band.

    A system of several runs has a second, fainter band from the lowest to the highest mean of its runs.
    A line is faint where fewer than half of the queries still search. There, the mean comes mostly from queries that
    have stopped. Overlapping bands do not mean that two systems are equal: test differences with `gg.compare`.

    Args:
        frame: what `gg.curve` returns.
        measure: a measure of the frame; not needed if there is only one.
        highlight: the systems with colours and names; the others are thin grey lines. None colours all of up to eight systems,
            else the first and the three with the best last values.
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
    lines, shown = _draw_systems(ax, points, rows, highlight, bands, alpha)
    entries = [*lines, *shown]
    if rows.get_column("few").any():
        faint = Line2D([], [], color=canvas.GREY, alpha=_FAINT, linewidth=1.8, marker="o", markersize=4.5)
        entries.append(Entry(faint, "under half of the queries still search"))
    last: Any = rows.get_column("iteration").max() or 1
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
    ax: Axes,
    points: pl.DataFrame,
    rows: pl.DataFrame,
    highlight: Collection[str] | None,
    bands: bool | None,
    alpha: float,
) -> tuple[list[Entry], list[Entry]]:
    """Draw lines and bands. Return the legend entries of lines (those without a name beside them) and of bands."""
    rows_of = {part.item(0, "system"): part for part in rows.partition_by("system", maintain_order=True)}
    measure, queries = points.select("measure", "queries").row(0)
    highlighted = _choose_highlighted_systems(rows_of, measure)
    if highlight is not None:
        highlighted = [system for system in highlight if system in rows_of]
    bands_of_data = (  # the faint band goes behind
        _Band("least", "most", "lowest to highest mean of a single run", 0.9, 11),
        _Band("low", "high", canvas.name_interval(1 - alpha), 0.0, 5),
    )
    wanted = len(rows_of) <= _MOST_BANDS if bands is None else bands
    shown = [band for band in bands_of_data if wanted and band.low in rows.columns and rows[band.low].count()]

    grey = [part for system, part in rows_of.items() if system not in highlighted]
    for part in grey:
        ax.plot(*_take_numbers(part, part.columns[1], "mean"), **canvas.GREY_LINE)
    lines, ends = [], []
    for number, system in enumerate(highlighted):
        part = rows_of[system]
        style = canvas.style_of(number)
        for band in shown:
            _draw_band(ax, part, style, band)
        _draw_line(ax, part, style)
        lines.append(Entry(Line2D([], [], **style), system))
        x, mean = _take_numbers(part, part.columns[1], "mean")
        ends.append((system, style["color"], float(x[-1]), float(mean[-1])))

    values = cs.by_name("mean", "low", "least", require_all=False)
    lowest: Any = rows.select(pl.min_horizontal(values.min())).item()
    if lowest is not None and lowest >= 0:
        ax.set_ylim(bottom=0)
    all_queries = count_of(queries, "query", "queries")
    label = f"{canvas.spell_measure(measure)}, mean over {all_queries}"
    ax.set_ylabel(canvas.break_lines(label, 34))

    entries = [] if canvas.name_ends(ax, ends) else lines
    bands_in_legend = [Entry(Patch(**band.paint(canvas.GREY, 0.3)), band.label) for band in shown]
    return [*entries, *_explain_grey(len(grey))], bands_in_legend


def _choose_highlighted_systems(rows_of: Mapping[str, pl.DataFrame], measure: str) -> list[str]:
    """Choose the systems with colours: all, or of more than eight the first and those with the best last values."""
    systems = [*rows_of]
    if len(systems) <= _MOST_COLOURED:
        return systems
    sign = 1 if find_direction(parse_measure(measure, complete=False)) == "down" else -1
    last_of = {system: rows_of[system].get_column("mean")[-1] for system in systems[1:]}
    known = [system for system, value in last_of.items() if value is not None]
    best = sorted(known, key=lambda system: sign * last_of[system])
    return [systems[0], *best[: _HIGHLIGHTED - 1]]


def _explain_grey(systems: int) -> list[Entry]:
    if not systems:
        return []
    return [Entry(Line2D([], [], **canvas.GREY_LINE), count_of(systems, "other system"))]


def _take_numbers(rows: pl.DataFrame, *names: str) -> list[NDArray[np.float64]]:
    return [rows.get_column(name).cast(pl.Float64).fill_null(np.nan).to_numpy() for name in names]


def _draw_band(ax: Axes, rows: pl.DataFrame, style: Mapping[str, Any], band: _Band) -> None:
    """Draw a band of one system. Over amounts it has steps; at a single iteration it is a bar."""
    if not rows[band.low].count():
        return
    place = rows.columns[1]  # iteration or spend
    x, low, high = _take_numbers(rows, place, band.low, band.high)
    if place == "spend":
        ax.fill_between(x, low, high, step="post", **band.paint(style["color"]))
    elif len(x) == 1:  # an area without width is invisible
        ax.vlines(x, low, high, color=style["color"], alpha=0.4, linewidth=band.width)
    else:
        ax.fill_between(x, low, high, **band.paint(style["color"]))


def _draw_line(ax: Axes, rows: pl.DataFrame, style: Mapping[str, Any]) -> None:
    """Draw the line of one system: steps over amounts, else a line that is faint where few queries still search."""
    x, mean = _take_numbers(rows, rows.columns[1], "mean")
    if "enough" in rows.columns:  # only over amounts
        marked = rows.get_column("enough").arg_true().to_list()
        ax.plot(x, mean, drawstyle="steps-post", **style, markevery=marked)
        return
    clear = int((~rows.get_column("few")).sum())  # the number of searching queries only falls
    ax.plot(x[:clear], mean[:clear], **style)
    if clear < len(x):
        start = max(clear - 1, 0)  # the faint line begins where the clear one ends
        ax.plot(x[start:], mean[start:], alpha=_FAINT, zorder=1.9, **style)


@checks_kinds
def against_spend(
    frame: Any,
    measure: str | None = None,
    *,
    highlight: Collection[str] | None = None,
    bands: bool | None = None,
    alpha: float = ALPHA,
    ax: Axes | None = None,
) -> Axes:
    """Draw a measure over the amount spent: a line per system, with the interval of the mean as a band.

    A system of several runs has a second, fainter band from the lowest to the highest mean of its runs.
    A mark shows the smallest amount at which the mean reaches 95 % of its last value. A higher spend adds little.

    Args:
        frame: what `gg.curve(..., over=...)` returns.
        measure: a measure of the frame; not needed if there is only one.
        highlight: the systems with colours and names; the others are thin grey lines. None colours all of up to eight systems,
            else the first and the three with the best last values.
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
    entries, shown = _draw_systems(ax, points, rows, highlight, bands, alpha)
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


@checks_kinds
def precision_recall(frame: Any, *, highlight: Collection[str] | None = None, ax: Axes | None = None) -> Axes:
    """Draw interpolated precision over recall: a line per system, or a thin line per query if the frame has query ids.

    Args:
        frame: what `gg.pr_curve` returns. To see queries and means, draw the frames with and without `per_query=True` on one `ax`.
        highlight: the systems with colours and names; the others are thin grey lines. None colours all of up to eight systems,
            else the first four.
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
    rows_of = {part.item(0, "system"): part for part in rows.partition_by("system", maintain_order=True)}
    systems = [*rows_of]
    if highlight is not None:
        highlighted = [system for system in highlight if system in rows_of]
    else:
        highlighted = systems if len(systems) <= _MOST_COLOURED else systems[:_HIGHLIGHTED]
    of_queries = rows.get_column("query_id").null_count() == 0

    grey = [system for system in systems if system not in highlighted]
    for system in grey:
        _draw_recalls(ax, rows_of[system], canvas.GREY_LINE)
    entries, ends = [], []
    for number, system in enumerate(highlighted):
        style = canvas.style_of(number)
        look, label = style, system
        if of_queries:
            look = {"color": style["color"], "linewidth": 0.7, "alpha": 0.5}
            label = f"{system}, each query"
        _draw_recalls(ax, rows_of[system], look)
        entries.append(Entry(Line2D([], [], **(look | {"alpha": 1.0})), label))
        ends.append((system, style["color"], 1.0, rows_of[system].get_column("precision")[-1]))

    ax.set_xlabel("recall")
    ax.set_ylabel("interpolated precision ↑")
    ax.set_xlim(-0.03, 1.03)
    ax.set_ylim(0, 1.05)
    canvas.add_title(ax, "Precision at each level of recall")
    if not of_queries and canvas.name_ends(ax, ends):
        entries = []
    canvas.add_legend(ax, [*entries, *_explain_grey(len(grey))], own=own)
    return ax


def _draw_recalls(ax: Axes, rows: pl.DataFrame, look: Mapping[str, Any]) -> None:
    for line in rows.partition_by("query_id", maintain_order=True):
        ax.plot(line.get_column("recall").to_numpy(), line.get_column("precision").to_numpy(), **look)
