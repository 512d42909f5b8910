"""What all plots share: the figure, colours, labels, the legend.

Colours are those of Okabe and Ito, safe for the colour-blind; their yellow is left out as too light on white. Systems also
differ in marker and line style, for grey print. Fonts and the colour of text follow the style in use.
"""

from __future__ import annotations

import io
import textwrap
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.legend import Legend
from matplotlib.ticker import FuncFormatter, MaxNLocator

from goodgain.files.escaping import show_controls

BLUE, VERMILLION, SKY, GREY = "#0072B2", "#D55E00", "#56B4E9", "#8C8C8C"
#: Of systems: four colours; markers and lines tell more systems apart. Verdicts and kinds of results have other colours.
_COLOURS = (BLUE, VERMILLION, SKY, "#CC79A7")
_MARKERS = "osD^vPX*<>hp"
_LINES: tuple[Any, ...] = ("-", (0, (5, 1.5)), (0, (1, 1)), (0, (6, 1.5, 1, 1.5)), (0, (3, 1, 1, 1, 1, 1)))

#: Width and height of a figure in inches: small enough to read its text on a phone.
_SIZE = (5.2, 3.4)

#: Numbers of columns for a legend; the first one that fits is used.
_LEGEND_COLUMNS = (4, 3, 2, 1)

#: The largest number of entries in a legend inside axes.
_MOST_INSIDE = 7


class Picture(Figure):
    """A figure that a notebook shows without pyplot."""

    def _repr_png_(self) -> bytes:
        content = io.BytesIO()
        self.savefig(content, format="png", dpi=120)
        return content.getvalue()


class Entry(NamedTuple):
    """An entry of the legend: its handle, its label, and a number for one plot."""

    handle: Artist
    label: str
    number: str = ""


class SystemStyle(NamedTuple):
    """The look of a system's line."""

    color: str
    marker: str
    linestyle: Any


def style_of(number: int) -> SystemStyle:
    """Return the style of the system at a position; styles repeat after 60 systems."""
    return SystemStyle(_COLOURS[number % len(_COLOURS)], _MARKERS[number % len(_MARKERS)], _LINES[number % len(_LINES)])


def open_ax(ax: Axes | None) -> tuple[Axes, bool]:
    """Return the axes to draw on, with a light grid in place of a frame, and whether they are on a new figure."""
    own = ax is None
    ax = ax or Picture(figsize=_SIZE, layout="constrained").add_subplot()
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(visible=True, axis="y", color="#DDDDDD", linewidth=0.6)
    ax.set_axisbelow(True)
    return ax, own


def add_legend(ax: Axes, entries: Sequence[Entry], *, own: bool) -> None:
    """Add a legend: below the axes of our own figure; else inside the axes, or beside them if it is long."""
    if not entries:
        return
    if not own:
        beside: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (1.02, 1)}
        _make_legend(ax.legend, entries, **({"loc": "best"} if len(entries) <= _MOST_INSIDE else beside))
        return
    figure: Any = ax.figure  # not a subfigure: it is our own
    add_legend_below(figure, entries)


def add_legend_below(figure: Figure, entries: Sequence[Entry]) -> None:
    """Add a legend below all axes of a figure, with as many columns as fit, and make the figure taller for it."""
    for columns in _LEGEND_COLUMNS:
        legend = _make_legend(figure.legend, entries, loc="outside lower center", ncols=columns, frameon=False)
        extent = legend.get_window_extent()
        if columns == 1 or extent.width <= figure.bbox.width:
            width, height = figure.get_size_inches()
            figure.set_size_inches(width, height + max(0.0, extent.height / figure.dpi - 0.5))
            return
        legend.remove()


def _make_legend(make: Callable[..., Legend], entries: Sequence[Entry], **options: Any) -> Legend:
    # Matplotlib omits labels that begin with `_`, so the texts are set afterwards.
    legend = make(
        [entry.handle for entry in entries], [str(k) for k in range(len(entries))], fontsize="small", **options
    )
    for text, entry in zip(legend.get_texts(), entries, strict=True):
        label = f"{entry.label} ({entry.number})" if entry.number else entry.label
        text.set_text(break_lines(label, 42) or " ")
    return legend


def break_lines(text: str, width: int) -> str:
    """Escape a text and wrap it to lines of at most `width` characters."""
    return "\n".join(map(escape_text, textwrap.wrap(show_controls(text), width)))


def name_system(ax: Axes, system: str) -> None:
    """Write the name of a system above the axes, at the left."""
    ax.set_title(break_lines(system, 42), fontsize="small", loc="left")


def name_interval(level: float = 0.95) -> str:
    """Return the name of a bootstrap interval of a mean, for legends.

    >>> name_interval()
    '95 % interval over queries'
    """
    return f"{100 * level:.4g} % interval over queries"


def escape_text(text: str) -> str:
    r"""Escape a text for matplotlib: no mathematics, visible control characters.

    >>> escape_text("a$b$\n")
    'a\\$b\\$�'
    """
    return show_controls(text).replace("$", r"\$")


def count_on(axis: Axis) -> None:
    """Put the ticks of an axis on whole numbers."""
    axis.set_major_locator(MaxNLocator(nbins="auto", integer=True, min_n_ticks=1, steps=[1, 2, 5, 10]))
    axis.set_major_formatter(FuncFormatter(lambda value, _position: f"{value:,.0f}"))


def find_ink(ax: Axes) -> Any:
    """Return the text colour of the style in use: white in a dark style."""
    return ax.xaxis.label.get_color()
