"""Makes what all plots share: the figure, the colours, the title, the names beside lines, and the legend.

Systems have colours from the palette of Okabe and Ito for colour-blind readers. Yellow is left out, because it is too light on
white. For print without colour, systems also differ in marker and line style. Fonts and the colour of text follow the matplotlib
style in use. In matplotlib's default style, figures are transparent, and text is grey, which is legible on white and on dark pages.
"""

import io
import textwrap
from collections.abc import Callable, Collection, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from ir_measures import Measure
from matplotlib import rcParams
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.legend import Legend
from matplotlib.ticker import FuncFormatter, MaxNLocator
from numpy.typing import NDArray

from goodgain.analysis.comparing.rendering import format_level
from goodgain.files.escaping import show_controls
from goodgain.measures.declaration import Declaration, DeclaredMeasure, add_arrow, find_declaration
from goodgain.measures.names import find_direction, parse_measures

#: The colour of text and axes: a contrast of 4 or more to white and to the dark pages of GitHub and Furo.
INK = "#757575"
BLUE, VERMILLION, SKY, GREY = "#0072B2", "#D55E00", "#56B4E9", "#8C8C8C"
#: Light on white pages, dark on dark pages.
GRID = "#80808055"
#: Systems have four colours; markers and lines tell more systems apart. Verdicts and kinds of results have other colours.
_COLOURS = (BLUE, VERMILLION, SKY, "#CC79A7")
_MARKERS = "osD^vPX*<>hp"
_MARKED_LINE = {"linewidth": 1.8, "markersize": 4.5, "markeredgecolor": "white", "markeredgewidth": 0.5}
_LINES: tuple[Any, ...] = ("-", (0, (5, 1.5)), (0, (1, 1)), (0, (6, 1.5, 1, 1.5)), (0, (3, 1, 1, 1, 1, 1)))
#: The line of a system without a colour of its own, behind the others.
GREY_LINE: dict[str, Any] = {"color": GREY, "linewidth": 0.8, "alpha": 0.45, "zorder": 1.5}
#: Width and height of a figure in inches: small enough to read its text on a phone.
_SIZE = (5.2, 3.4)
#: Numbers of columns for a legend; the first one that fits is used.
_LEGEND_COLUMNS = (5, 4, 3, 2, 1)
#: The largest number of entries in a legend inside axes.
_MOST_INSIDE = 7
#: Characters in a line of a title, and in a line of a name beside the end of a line.
_TITLE, _NAME = 52, 18
#: The largest number of lines of a name beside a line. Longer names are in the legend.
_MOST_LINES = 3


class Picture(Figure):
    """A figure that a notebook shows without pyplot."""

    def __init__(self, height: float = _SIZE[1]) -> None:
        super().__init__(figsize=(_SIZE[0], height), layout="constrained")
        #: Label -> entry of the one legend of several plots; None for a figure whose plot has its own legend.
        self.shared: dict[str, Entry] | None = None
        #: Whether the style in use is that of matplotlib: black on white.
        self.is_plain = (rcParams["axes.labelcolor"], self.get_facecolor()) == ("black", (1, 1, 1, 1))
        if self.is_plain:
            self.set_facecolor("none")

    def _repr_png_(self) -> bytes:
        content = io.BytesIO()
        self.savefig(content, format="png", dpi=120)
        return content.getvalue()


class Entry(NamedTuple):
    handle: Artist
    label: str


def style_of(number: int) -> dict[str, Any]:
    """Return the line style of the system at a position. Styles repeat after 60 systems."""
    looks = (("color", _COLOURS), ("marker", _MARKERS), ("linestyle", _LINES))
    return _MARKED_LINE | {name: several[number % len(several)] for name, several in looks}


def open_ax(ax: Axes | None, *, height: float = _SIZE[1]) -> tuple[Axes, bool]:
    """Return two things: the axes to draw on, with a light grid, and whether they are on a new figure."""
    is_new = ax is None
    ax = ax or Picture(height).add_subplot()
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(visible=True, axis="y", color=GRID, linewidth=0.6)
    ax.set_axisbelow(True)
    take_ink(ax)
    return ax, is_new


def take_ink(ax: Axes) -> None:
    """Colour ticks and labels of a `Picture` for white and dark pages, unless the user chose another style."""
    if isinstance(ax.figure, Picture) and ax.figure.is_plain:
        ax.set_facecolor("none")
        ax.tick_params(which="both", color=INK, labelcolor=INK)
        ax.spines[:].set_color(INK)
        for axis in (ax.xaxis, ax.yaxis):
            axis.label.set_color(INK)


def add_legend(ax: Axes, entries: Sequence[Entry], *, own: bool) -> None:
    """Add a legend: below the axes if goodgain made them (`own`), else inside the axes, or beside them if it is large."""
    figure: Any = ax.figure  # not a subfigure if it is a new one
    if isinstance(figure, Picture) and figure.shared is not None:
        figure.shared |= {entry.label: entry for entry in entries}
        return
    if not entries:
        return
    if not own:
        _add_legend_inside(ax, entries)
        return
    add_legend_below(figure, entries)


def _add_legend_inside(ax: Axes, entries: Sequence[Entry]) -> None:
    """Add a legend inside axes, with room above the plot. A large legend goes beside the axes."""
    legend = _make_legend(ax.legend, entries, loc="upper left")
    gap = 12 * ax.figure.dpi / 72  # above and below the legend
    share = (legend.get_window_extent().height + gap) / ax.get_window_extent().height
    if len(entries) > _MOST_INSIDE or share > 0.5:
        _make_legend(ax.legend, entries, loc="upper left", bbox_to_anchor=(1.02, 1))
        return
    for axes in ax.figure.axes:
        if axes.get_position().bounds == ax.get_position().bounds:  # also the second axis of `new_good`
            bottom, top = axes.get_ylim()
            axes.set_ylim(top=top + (top - bottom) * share / (1 - share))


def add_legend_below(figure: Figure, entries: Sequence[Entry]) -> None:
    """Add a legend below all axes of a figure, with as many columns as fit, and make the figure taller for it."""
    for columns in _LEGEND_COLUMNS:
        look = {"frameon": False, "labelcolor": find_ink(figure.axes[0])}
        legend = _make_legend(figure.legend, entries, loc="outside lower center", ncols=columns, **look)
        extent = legend.get_window_extent()
        if columns == 1 or extent.width <= figure.bbox.width:
            width, height = figure.get_size_inches()
            figure.set_size_inches(width, height + max(0.0, extent.height / figure.dpi - 0.5))
            return
        legend.remove()


def _make_legend(make: Callable[..., Legend], entries: Sequence[Entry], **options: Any) -> Legend:
    # Matplotlib omits labels that begin with `_`, so the texts are set afterwards.
    numbers = [str(k) for k in range(len(entries))]
    legend = make([entry.handle for entry in entries], numbers, fontsize="small", **options)
    for text, entry in zip(legend.get_texts(), entries, strict=True):
        text.set_text(break_lines(entry.label, 42) or " ")
    return legend


def break_lines(text: str, width: int) -> str:
    """Escape a text and wrap it to lines of at most `width` characters."""
    return "\n".join(map(escape_text, textwrap.wrap(show_controls(text), width)))


def add_title(ax: Axes, *lines: str) -> None:
    title = "\n".join(break_lines(line, _TITLE) for line in lines)
    ax.set_title(title, fontsize="medium", loc="left", color=find_ink(ax))


def spell_measure(name: str) -> str:
    """Return the full name of a measure, with the short name and the arrow of the better direction.

    >>> spell_measure("SRR@3")
    'Search Result Redundancy (SRR@3 ↓)'
    """
    measure, declared = _look_up(name)
    short = add_arrow(name, find_direction(measure))
    return f"{declared.title} ({short})" if declared else short


def describe_values(name: str, when: str) -> str:
    """Return the title of a plot: a text on what the measure shows, followed by the text `when`.

    >>> describe_values("nCG", "after each search"), describe_values("DRG", "after each search")
    ('Share of all good gain found after each search', 'Discounted Rate of Good Gain after each search')
    """
    declared = _look_up(name)[1]
    return f"{(declared.shows or declared.title) if declared else name} {when}"


def _look_up(name: str) -> tuple[Measure, Declaration | None]:
    (measure,) = parse_measures(name, complete=False)  # AvgGain may lack its @ here
    if measure.NAME == "PerIteration":  # the full name does not say which measure
        return measure, None
    return measure, measure.declaration if isinstance(measure, DeclaredMeasure) else find_declaration(measure)


def share_scales(axes: Collection[Axes], *names: Literal["x", "y"]) -> None:
    """Give several plots the same scale on the x axis, the y axis, or both."""
    for name in names:
        limits = [getattr(ax, f"get_{name}lim")() for ax in axes]
        for ax in axes:
            getattr(ax, f"set_{name}lim")(min(low for low, _ in limits), max(high for _, high in limits))


def name_ends(ax: Axes, ends: Sequence[tuple[str, str, float, float]]) -> bool:
    """Write the name of each line beside its last point, without overlap. Return whether the names were written.

    `ends` has the name, colour, x and y of each line. Axes that a caller passed get no names: the space beside them is unknown.
    """
    names = [break_lines(name, _NAME) or " " for name, *_ in ends]
    heights = np.array([name.count("\n") + 1 for name in names])
    values = np.array([y for *_, y in ends])

    line = 1.25 * FontProperties(size="small").get_size_in_points()
    # in lines; the layout takes a part of the height
    room = 0.7 * ax.get_window_extent().height / ax.figure.dpi * 72 / line
    if not isinstance(ax.figure, Picture) or heights.sum() > room or max(heights) > _MOST_LINES:
        return False
    bottom, top = ax.get_ylim()
    if not np.isfinite(values).all():
        return False

    places = _spread((values - bottom) / (top - bottom) * room, heights, room) / room
    for name, place, (_, colour, x, y) in zip(names, places, ends, strict=True):
        # "patchA": matplotlib would clip the line at the box of the text, which takes a tenth of the time of a picture
        leader = {
            "arrowstyle": "-",
            "color": colour,
            "linewidth": 0.9,
            "relpos": (0, 0.5),
            "shrinkA": 2,
            "shrinkB": 3,
            "patchA": None,
        }
        look: dict[str, Any] = {"textcoords": "axes fraction", "va": "center", "fontsize": "small"}
        ax.annotate(name, (x, y), (1.05, place), color=find_ink(ax), arrowprops=leader, annotation_clip=False, **look)
    return True


def _spread(wanted: NDArray[np.float64], heights: NDArray[np.int64], room: float) -> NDArray[np.float64]:
    """Return places near the wanted ones at which names of these heights do not overlap."""
    order = np.argsort(wanted, kind="stable")
    stacked = np.cumsum(heights[order]) - heights[order] / 2
    free = wanted[order] - stacked  # places do not overlap if this never falls
    upwards = np.maximum.accumulate(free)
    downwards = np.minimum.accumulate(free[::-1])[::-1]

    places = np.empty_like(wanted)
    places[order] = stacked + ((upwards + downwards) / 2).clip(0, room - heights.sum())
    return places


def name_interval(level: float = 0.95) -> str:
    """Return the name of an interval of a mean, for legends.

    >>> name_interval()
    '95 % interval of the mean'
    """
    return f"{format_level(level)} interval of the mean"


def escape_text(text: str) -> str:
    r"""Escape `$` in a text for matplotlib, and make control characters visible.

    >>> escape_text("a$b$\n")
    'a\\$b\\$�'
    """
    return show_controls(text).replace("$", r"\$")


def count_on(axis: Axis) -> None:
    axis.set_major_locator(MaxNLocator(nbins="auto", integer=True, min_n_ticks=1, steps=[1, 2, 5, 10]))
    axis.set_major_formatter(FuncFormatter(lambda value, _position: f"{value:,.0f}"))


def find_ink(ax: Axes) -> Any:
    """Return the text colour of the style in use: white in a dark style."""
    return ax.xaxis.label.get_color()
