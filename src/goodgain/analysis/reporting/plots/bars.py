"""Draws bars: what each iteration found, when queries stopped, and how two systems differ in each query."""

from collections.abc import Mapping
from textwrap import shorten
from typing import Any

import narwhals as nw
import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.patheffects import withStroke
from matplotlib.ticker import FuncFormatter

from goodgain.analysis.comparing.comparison import Comparison
from goodgain.analysis.comparing.rendering import VERDICT_COLOURS, format_signed
from goodgain.analysis.comparing.use_of_documents import Funnel
from goodgain.analysis.reporting.plots import canvas, plot_data
from goodgain.analysis.reporting.plots.canvas import Entry, Picture
from goodgain.analysis.reporting.plots.plot_data import KINDS
from goodgain.argument_kinds import checks_kinds
from goodgain.formats.query_tables import read_questions

#: The look of a text above a bar.
_ABOVE: dict[str, Any] = {"textcoords": "offset points", "ha": "center", "fontsize": "small"}
#: Characters of a query's name beside its bar.
_LONGEST = 24
#: The largest number of queries with names, the height of a row in inches, and its font size in points.
_MOST_NAMED, _ROW, _SMALL = 40, 0.15, 8
#: Decimals of a mean difference, as in tables.
_PLACES = 4
#: Characters in a line below the axes.
_WIDTH = 48
#: Outcome of a query -> colour, hatch.
_OUTCOMES = {
    "better": (VERDICT_COLOURS["better"], ""),
    "worse": (VERDICT_COLOURS["worse"], "////"),
    "equal": (canvas.GREY, ""),
    None: (canvas.GREY, ""),
}
#: The first labels in the legend of `per_query`, in this order. The label of the interval comes last.
DIFFERENCE_LABELS = [*(outcome or "queries" for outcome in _OUTCOMES), "mean"]
#: With more iterations, the number of searches without results is not written above the bars.
_MOST_NUMBERS = 12


@checks_kinds
def new_good(frame: Any, system: str | None = None, *, ax: Axes | None = None) -> Axes:
    """Draw the new good documents of each iteration as bars, and the share of all good gain found so far as a line.

    Args:
        frame: what `gg.curve(qrels, runs, "NumGood nCG")` returns.
        system: a system of the frame; not needed if there is only one.
        ax: the axes to draw on; None makes a figure. The line has its own axis on the right.

    Returns:
        The axes of the bars.

    Raises:
        InputError: the frame is not from `gg.curve`, lacks NumGood or nCG, or has several systems and `system` is None.

    >>> import goodgain as gg
    >>> folder = "qrels_examples/redundancy/"
    >>> ax = new_good(gg.curve(folder + "qrels.txt", {"lean": folder + "lean.run"}, "NumGood nCG"))
    >>> [float(bar.get_height()) for bar in ax.patches]
    [1.5, 1.0, 0.5]
    """
    rows = plot_data.prepare_new_good(frame, system)
    ax, own = canvas.open_ax(ax)
    iterations = rows.get_column("iteration").to_numpy()
    heights = rows.get_column("new_good").to_numpy()
    bars = ax.bar(iterations, heights, width=0.8, color=KINDS["new_good"].colour)
    _label_iterations(ax, 1, rows.height)
    name = system or nw.from_native(frame, eager_only=True)["system"][0]
    canvas.add_title(ax, f"New good documents of {name} in each search")
    ax.set_ylabel("new good documents, mean")

    right = ax.twinx()
    canvas.take_ink(right)
    look: dict[str, Any] = {
        "color": canvas.find_ink(ax),
        "linewidth": 1.6,
        "linestyle": (0, (5, 1.5)),
        "marker": "s",
        "markersize": 4.5,
        "markeredgecolor": "white",
        "markeredgewidth": 0.5,
        "path_effects": [withStroke(linewidth=3.6, foreground="white")],  # visible on bars, also in grey
    }
    right.plot(iterations, rows.get_column("share").cast(pl.Float64).to_numpy(), **look)
    right.set_ylim(0, 1.05)
    right.set_ylabel(canvas.break_lines(canvas.spell_measure("nCG"), 34))
    right.spines["top"].set_visible(False)

    entry_of_bars = Entry(bars[0], "new in this iteration (left)")
    entry_of_line = Entry(Line2D([], [], **look), "found so far (right)")
    canvas.add_legend(ax, [entry_of_bars, entry_of_line], own=own)
    return ax


@checks_kinds
def what_came_back(ledger: Any, *, system: str = "", ax: Axes | None = None) -> Axes:
    """Draw the results of each iteration, stacked by kind: new and good, new and not good, unjudged, repeated.

    A cross marks iterations with searches that got no result: they failed or found nothing. With at most 12 iterations,
    the number of these searches stands beside the cross. The bars sum over all judged queries.

    Args:
        ledger: what `gg.ledger` returns.
        system: the name of the system, for the title.
        ax: the axes to draw on; None makes a figure.

    Returns:
        The axes.

    Raises:
        InputError: the frame is not from `gg.ledger`.

    >>> import goodgain as gg
    >>> folder = "qrels_examples/redundancy/"
    >>> ax = what_came_back(gg.ledger(folder + "qrels.txt", folder + "repeating.run"))
    >>> [float(bar.get_height()) for bar in ax.containers[0]]
    [3.0, 2.0, 1.0]
    """
    rows = plot_data.prepare_what_came_back(ledger)
    ax, own = canvas.open_ax(ax)
    iterations = rows.get_column("iteration").to_numpy()

    below = pl.zeros(rows.height, eager=True)
    entries = []
    for name, kind in KINDS.items():
        heights = rows.get_column(name).cast(pl.Float64)
        look: dict[str, Any] = {"facecolor": kind.colour, "hatch": kind.hatch, "edgecolor": "#555555", "linewidth": 0.4}
        ax.bar(iterations, heights.to_numpy(), bottom=below.to_numpy(), width=0.8, **look)
        entries.append(Entry(Patch(**look), kind.label))
        below = below + heights
    entries += _mark_empty_searches(ax, rows.with_columns(top=below))

    _label_iterations(ax, 1, max(rows.height, 1))
    of_system = f" of {system}" if system else ""
    canvas.add_title(ax, f"What each search{of_system} returned")
    ax.set_ylabel("results, all queries")
    canvas.count_on(ax.yaxis)
    canvas.add_legend(ax, entries, own=own)
    return ax


def _mark_empty_searches(ax: Axes, rows: pl.DataFrame) -> list[Entry]:
    """Mark the iterations with searches without results, and make room above the bars. Return the entry of the legend."""
    marked = rows.filter(pl.col("nothing") > 0)
    highest: Any = rows.get_column("top").max() or 1.0
    ax.set_ylim(0, 1.14 * float(highest))
    if marked.is_empty():
        return []

    look: dict[str, Any] = {"color": canvas.find_ink(ax), "marker": "x", "markersize": 5, "linestyle": "none"}
    heights = marked.get_column("top").to_numpy() + 0.035 * highest
    ax.plot(marked.get_column("iteration").to_numpy(), heights, **look)
    if rows.height <= _MOST_NUMBERS:
        for x, y, number in zip(marked.get_column("iteration"), heights, marked.get_column("nothing"), strict=True):
            ax.annotate(f"{number:,}", (x, y), (0, 4), color=canvas.find_ink(ax), **_ABOVE)
    total = int(marked.get_column("nothing").sum())
    return [Entry(Line2D([], [], **look), f"searches without results ({total:,})")]


@checks_kinds
def iterations_used(ledger: Any, *, qrels: Any = None, system: str = "", ax: Axes | None = None) -> Axes:
    """Draw how many queries stopped at each iteration (dashed steps), and how many found their last good document there.

    Args:
        ledger: what `gg.ledger` returns. A ledger lacks queries that never searched.
        qrels: any input of `gg.read_qrels`. With qrels, judged queries that never searched count at iteration 0.
        system: the name of the system, for the title.
        ax: the axes to draw on; None makes a figure.

    Returns:
        The axes.

    Raises:
        InputError: the frame is not from `gg.ledger`, or the qrels cannot be read.

    >>> import goodgain as gg
    >>> folder = "qrels_examples/redundancy/"
    >>> ax = iterations_used(gg.ledger(folder + "qrels.txt", folder + "lean.run"))
    >>> ax.get_ylabel()
    'queries'
    """
    rows = plot_data.prepare_iterations_used(ledger, qrels)
    ax, own = canvas.open_ax(ax)
    edges = np.arange(rows.height + 1) - 0.5
    # where both lines are equal, the dashes are above the broad line
    ended: dict[str, Any] = {"color": canvas.find_ink(ax), "linewidth": 1.2, "linestyle": (0, (4, 1.5)), "zorder": 1.2}
    found_good: dict[str, Any] = {"color": KINDS["new_good"].colour, "linewidth": 2.6, "zorder": 1.1}
    ax.stairs(rows.get_column("last").to_numpy(), edges, **ended)
    ax.stairs(rows.get_column("last_good").to_numpy(), edges, **found_good)
    entries = [
        Entry(Line2D([], [], **ended), "last search"),
        Entry(Line2D([], [], **found_good), "last new good document"),
    ]

    _label_iterations(ax, 0, rows.height - 1)
    never_searched, found_nothing = rows.item(0, "last") > 0, rows.item(0, "last_good") > 0
    if found_nothing:
        no_search = "no search, or " if never_searched else ""
        ax.set_xlabel(f"iteration (0: {no_search}nothing good was found)")
    of_system = f" of {system}" if system else ""
    canvas.add_title(ax, f"When the queries{of_system} ended, and last found something good")
    ax.set_ylabel("queries")
    canvas.count_on(ax.yaxis)
    canvas.add_legend(ax, entries, own=own)
    return ax


@checks_kinds
def funnel(found: Funnel, *, ax: Axes | None = None) -> Axes:
    """Draw how many documents each system returned, opened and cited per query. Good documents are at the bottom of each bar.

    The number above a bar is the part of it that is good. A question mark stands for a stage that the logs do not record.

    Args:
        found: what `gg.funnel` returns.
        ax: the axes to draw on; None makes a figure.

    Returns:
        The axes.

    >>> import goodgain as gg
    >>> folder = "qrels_examples/opened_and_cited/"
    >>> ax = funnel(gg.funnel(folder + "judgments.qrels", folder + "uses.jsonl"))
    >>> ax.get_ylabel()
    'documents a query, mean'
    """
    rows = plot_data.prepare_funnel(found)
    ax, own = canvas.open_ax(ax)
    places = [4 * (k // 3) + k % 3 for k in range(rows.height)]  # a gap after the three bars of a system
    is_narrow = rows.height > _MOST_NUMBERS

    good = rows.get_column("good").fill_null(0).to_numpy()
    other = rows.get_column("other").fill_null(0).to_numpy()
    look_of_good: dict[str, Any] = {"facecolor": KINDS["new_good"].colour, "edgecolor": "#333333", "linewidth": 0.4}
    look_of_other: dict[str, Any] = {
        "facecolor": KINDS["new_other"].colour,
        "edgecolor": "#555555",
        "linewidth": 0.4,
        "hatch": "////",
    }
    ax.bar(places, good, bottom=0 * good, width=0.8, **look_of_good)
    ax.bar(places, other, bottom=good, width=0.8, **look_of_other)
    for place, top, row in zip(places, good + other, rows.iter_rows(named=True), strict=True):
        ax.annotate(_write_share(row), (place, top), (0, 3), color=canvas.find_ink(ax), **_ABOVE)
    ax.margins(y=0.12)

    ax.set_xticks(places, rows.get_column("stage").to_list(), rotation=90 if is_narrow else 0, fontsize="small")
    names = ax.secondary_xaxis(-0.28 if is_narrow else -0.1)
    systems = rows.get_column("system").unique(maintain_order=True)
    middles = [4 * k + 1 for k in range(len(systems))]
    names.set_xticks(middles, [canvas.break_lines(name, 18) for name in systems])
    names.tick_params(length=0, labelcolor=canvas.find_ink(ax))
    names.spines["bottom"].set_visible(False)
    ax.set_ylabel("documents a query, mean")
    canvas.add_title(ax, "Documents returned, opened and cited", "Above each bar: the part of it that is good")
    entries = [Entry(Patch(**look_of_good), "good"), Entry(Patch(**look_of_other), "other or unjudged")]
    canvas.add_legend(ax, entries, own=own)
    return ax


def _write_share(row: Mapping[str, Any]) -> str:
    """Return the part of a stage that is good: `?` if the logs do not record the stage, nothing if it has no documents."""
    if row["good"] is None:
        return "?"
    return "" if row["share"] is None else f"{row['share']:.0%}"


def _label_iterations(ax: Axes, first: int, last: int) -> None:
    ax.set_xlabel("iteration")
    canvas.count_on(ax.xaxis)
    margin = 0.9 if first == last else 0.6  # a single bar must not fill the axes
    ax.set_xlim(first - margin, last + margin)


@checks_kinds
def per_query(
    comparison: Comparison,
    measure: str | None = None,
    *,
    system: str | None = None,
    against: str | None = None,
    queries: Any = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the difference between two systems in each query, in descending order, and the mean difference with its interval.

    A new figure names up to 40 queries, and grows with the number of queries.

    Args:
        comparison: what `gg.compare` returns.
        measure: a measure of the comparison; not needed if there is only one.
        system, against: a pair of the comparison; not needed if there is only one.
        queries: the texts of queries, to show instead of ids: a file, a frame, a dict, or an ir_datasets id.
        ax: the axes to draw on; None makes a figure.

    Returns:
        The axes. Queries are named if there is room.

    Raises:
        InputError: the comparison lacks the measure or the pair, or several match the arguments.

    >>> import goodgain as gg
    >>> folder = "qrels_examples/redundancy/"
    >>> runs = {name: f"{folder}{name}.run" for name in ("repeating", "lean")}
    >>> ax = per_query(gg.compare(folder + "qrels.txt", runs, "SRR@3"))
    >>> ax.get_xlabel()
    'Search Result Redundancy (SRR@3 ↓)'
    """
    pair = plot_data.choose_pair(comparison, measure, system=system, against=against)
    ax, own = canvas.open_ax(ax, height=find_height(comparison))
    questions = {} if queries is None else read_questions(queries)
    rows = plot_data.prepare_per_query(comparison, pair["measure"], system=pair["system"], against=pair["against"])

    entries, counts = _draw_differences(ax, rows)
    ax.axvline(0, color=canvas.find_ink(ax), linewidth=0.8)
    if pair["difference"] is not None:
        entries += _draw_mean(ax, pair)
        counts.append(f"mean {format_signed(pair['difference'], _PLACES)}")
    if (rows.get_column("difference") == 0).all():
        ax.set_xlim(-1, 1)  # matplotlib has no scale for values that are all 0
    ax.set_xlabel(canvas.break_lines(canvas.spell_measure(pair["measure"]), _WIDTH))
    ax.grid(visible=False, axis="y")
    ax.grid(visible=True, axis="x", color=canvas.GRID, linewidth=0.6)
    canvas.add_title(ax, f"{pair['system']} minus {pair['against']} in each query", ", ".join(counts))
    _label_queries(ax, [_shorten(query_id, questions) for query_id in rows.get_column("query_id")])
    canvas.add_legend(ax, entries, own=own)
    return ax


def _draw_differences(ax: Axes, rows: pl.DataFrame) -> tuple[list[Entry], list[str]]:
    """Draw a bar for each query. Return entries of the legend, and texts such as `better 3`."""
    numbered = rows.with_columns(place=pl.int_range(1, pl.len() + 1))
    entries, counts = [], []
    for outcome, (colour, hatch) in _OUTCOMES.items():
        queries = numbered.filter(pl.col("outcome").eq_missing(pl.lit(outcome, pl.String)))
        if queries.is_empty():
            continue
        look: dict[str, Any] = {"facecolor": colour, "hatch": hatch, "edgecolor": "#333333", "linewidth": 0.3}
        places, differences = queries.get_column("place"), queries.get_column("difference")
        ax.barh(places.to_numpy(), differences.to_numpy(), height=0.8, **look)
        label = outcome or "queries"
        entries.append(Entry(Patch(**look), label))
        counts.append(f"{label} {queries.height:,}")
    return entries, counts


def _draw_mean(ax: Axes, pair: Mapping[str, Any]) -> list[Entry]:
    """Draw the mean difference and, if the pair has one, its interval. Return entries of the legend."""
    line: dict[str, Any] = {"color": canvas.find_ink(ax), "linewidth": 1.4, "linestyle": (0, (5, 1.5))}
    ax.axvline(pair["difference"], **line)
    entries = [Entry(Line2D([], [], **line), DIFFERENCE_LABELS[-1])]
    if pair["low"] is not None:
        band: dict[str, Any] = {"color": canvas.GREY, "alpha": 0.25, "linewidth": 0}
        ax.axvspan(pair["low"], pair["high"], zorder=0.9, **band)  # behind the bars
        entries.append(Entry(Patch(**band), canvas.name_interval(pair["level"])))
    return entries


def find_height(comparison: Comparison) -> float:
    """Return the height in inches of a plot by `per_query`, with room for the names of up to 40 queries."""
    queries = comparison.signature["queries"]
    return max(3.4, 1.5 + _ROW * queries) if queries <= _MOST_NAMED else 4.2


def _shorten(query_id: str, questions: Mapping[str, str]) -> str:
    """Cut a long question at the end, and a long id at the beginning: ids often differ at the end."""
    if query_id in questions:
        return shorten(questions[query_id], _LONGEST, placeholder=" …")
    return query_id if len(query_id) <= _LONGEST else f"…{query_id[1 - _LONGEST :]}"


def _label_queries(ax: Axes, names: list[str]) -> None:
    """Write the names of the queries beside their bars if there is room for all, else their numbers."""
    number = len(names)
    ax.set_ylim(max(number, 1) + 0.6, 0.4)  # the largest difference is at the top
    room = ax.get_window_extent().height / ax.figure.dpi / _ROW
    if isinstance(ax.figure, Picture):
        room = _MOST_NAMED  # `find_height` made room for them
    if number <= room:
        ax.set_yticks(range(1, number + 1), [canvas.escape_text(name) for name in names], fontsize=_SMALL)
        ax.set_ylabel("query")
    else:
        canvas.count_on(ax.yaxis)
        ax.yaxis.set_major_formatter(FuncFormatter(lambda place, _: f"{place:,.0f}" if place > 0 else ""))
        ax.set_ylabel("queries, by their difference")
