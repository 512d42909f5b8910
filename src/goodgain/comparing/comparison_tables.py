"""The tables of a comparison: means, pairs, groups, correlations, and the legend; and the forms they are written in.

All forms except CSV and JSON show the same tables.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import polars as pl

from goodgain.comparing.pairs_table import find_best, find_unranked
from goodgain.comparing.rendering import (
    ABSENT,
    BOOKTABS,
    VERDICT_COLOURS,
    Grid,
    Line,
    build_rich_table,
    count_queries,
    escape_latex,
    format_bounds,
    format_interval,
    format_number,
    format_probability,
    format_signed,
    write_html,
    write_markdown,
    write_tabular,
)
from goodgain.comparing.replicate_tables import build_replicate_grids, describe_detectable, list_remarks
from goodgain.errors import InputError
from goodgain.files.escaping import Cell, escape_controls, escape_html, guard_formulas
from goodgain.measures.declaration import ARROWS
from goodgain.options import check_whole_number, spell

if TYPE_CHECKING:
    from goodgain.comparing.comparison import Comparison

#: Choices for the rows of the table of means.
ROWS = ("measures", "systems")
#: The smallest and the largest number of decimals; -1 is full precision.
PLACES = (-1, 100)

#: Column of the systems -> its heading in a table.
_SPENT = {
    "iterations": "iterations per query",
    "results": "results per query",
    "coverage": "judged share of unique results",
}
#: Column of the pairs -> its heading in a table.
_P_VALUES = {"p_t": "t-test", "p_randomisation": "randomisation", "p_randomisation_holm": "Holm", "p_tukey": "Tukey"}
#: Columns of the pairs that a narrow terminal leaves out, in this order.
_DISPENSABLE = ("effect", "t-test", "randomisation", "Tukey", "difference in iterations", "interval")


class Layout(NamedTuple):
    """The layout of tables: arguments of `Comparison.to_text`."""

    places: int = 4
    rows: str = "measures"
    spreadsheet: bool = False
    caption: str = ""
    label: str = ""


def write_comparison(comparison: Comparison, form: str, layout: Layout) -> str:
    """Return the comparison as text in one of `FORMS`."""
    if form not in FORMS:
        raise InputError(f"form {form!r} is not one of {', '.join(FORMS)}")
    if layout.rows not in ROWS:
        raise InputError(f"{spell('rows', layout.rows)} is not one of {', '.join(ROWS)}")
    check_whole_number("places", layout.places, *PLACES)
    return FORMS[form](comparison, layout)


def _write_markdown(comparison: Comparison, layout: Layout) -> str:
    legend = [Line(sentence, 1) for sentence in build_legend(comparison)]
    return write_markdown([*build_grids(comparison, layout), *legend])


def _write_latex(comparison: Comparison, layout: Layout) -> str:
    means, pairs, *more = build_grids(comparison, layout)
    is_narrow = layout.rows == "systems"
    pairs = _build_column_grid(comparison, layout.places) if is_narrow else pairs
    remarks = find_remarks(comparison)
    legend = [one for one in build_legend(comparison, in_column=is_narrow) if one not in remarks]
    size = "\\footnotesize\n\\setlength{\\tabcolsep}{3pt}\n" if is_narrow else ""
    tables = []
    for grid, suffix in ((means, ""), (pairs, "-differences"), *((grid, None) for grid in more)):
        label = f"\\label{{{layout.label}{suffix}}}\n" if layout.label and suffix is not None else ""
        tables.append(f"{size}\\caption{{{escape_latex(grid.title)}}}\n{label}{write_tabular(grid)}")
    tables[-1] += "\n\\par\\footnotesize\n" + "\n".join(f"{escape_latex(sentence)}\\par" for sentence in legend)
    floats = [f"\\begin{{table}}\n\\centering\n{table}\n\\end{{table}}" for table in tables]
    return "\n\n".join([BOOKTABS, *floats]) + "\n"


def find_remarks(comparison: Comparison) -> list[str]:
    """Return the notes on noise and power."""
    asked = {"alpha": comparison.signature["alpha"], "detect": comparison.signature.get("detect")}
    return [*list_remarks(comparison.scores, comparison.detectable, **asked)]


def _write_csv(comparison: Comparison, layout: Layout) -> str:
    rows = stack_groups(comparison)
    return (guard_formulas(rows) if layout.spreadsheet else rows).write_csv()


def stack_groups(comparison: Comparison) -> pl.DataFrame:
    """Return the pairs as rows of data: with groups, those of all queries (`all`) and those of each group."""
    if comparison.groups is None:
        return comparison.pairs
    whole = comparison.pairs.select(pl.lit("all").alias("group"), pl.all())
    return pl.concat([whole, comparison.groups], how="diagonal")


def _write_json(comparison: Comparison, layout: Layout) -> str:
    named = ["systems", "coverage", "means", "pairs", "groups", "correlations"]
    named += [name for name in ("replicates", "flips", "noise", "detectable") if getattr(comparison, name).height]
    frames = {name: frame.to_dicts() for name in named if (frame := getattr(comparison, name)) is not None}
    notes = {"notes": list(comparison.notes), "signature": comparison.signature}
    content = {"baseline": comparison.baseline, **frames, **notes}
    return json.dumps(content, ensure_ascii=False, allow_nan=False, indent=2) + "\n"


#: The forms of `Comparison.to_text`.
FORMS: dict[str, Callable[[Comparison, Layout], str]] = {
    "csv": _write_csv,
    "markdown": _write_markdown,
    "latex": _write_latex,
    "json": _write_json,
}

_WIDTH, _HEIGHT = 90, 12


def render_html(comparison: Comparison) -> str:
    """Return the tables of a comparison as HTML, with every text escaped."""
    means, pairs, *more = build_grids(comparison, Layout())
    at = pairs.header.index("interval")
    drawn = [
        [*row[:at], row[at]._replace(picture=picture), *row[at + 1 :]]
        for row, picture in zip(pairs.rows, _draw_intervals(comparison.pairs), strict=True)
    ]
    items = "".join(f"<li>{escape_html(sentence)}</li>" for sentence in build_legend(comparison))
    return write_html([means, pairs._replace(rows=drawn), *more]) + f"<ul><small>{items}</small></ul>"


def _draw_intervals(pairs: pl.DataFrame) -> Iterator[str]:
    """Yield an SVG for each pair: its difference and interval around zero. The pairs of a measure share one scale."""
    widest = pl.max_horizontal(pl.col("difference", "low", "high").abs()).max().over("measure")
    columns = ("difference", "low", "high", "verdict")
    for difference, low, high, verdict, scale in pairs.select(*columns, scale=widest).iter_rows():
        if difference is None or low is None or not scale:
            yield ""
            continue
        x, left, right = (_WIDTH / 2 * (1 + 0.94 * value / scale) for value in (difference, low, high))
        colour, middle = VERDICT_COLOURS.get(verdict, "#8C8C8C"), _HEIGHT / 2
        yield (
            f'<svg width="{_WIDTH}" height="{_HEIGHT}" role="img" aria-label="difference and interval around zero">'
            f'<line x1="{_WIDTH / 2}" x2="{_WIDTH / 2}" y1="0" y2="{_HEIGHT}" stroke="currentColor" stroke-width="0.7"/>'
            f'<line x1="{left:.1f}" x2="{right:.1f}" y1="{middle}" y2="{middle}" stroke="{colour}" stroke-width="3"/>'
            f'<circle cx="{x:.1f}" cy="{middle}" r="3.5" fill="{colour}"/></svg> '
        )


def render_on_terminal(comparison: Comparison, width: int, layout: Layout) -> Iterator[Any]:
    """Yield the tables for rich, and the legend without the notes: these appear as notices on stderr."""
    from rich.text import Text

    means, pairs, *more = build_grids(comparison, layout)
    yield build_rich_table(means)
    left_out = []
    for heading in _DISPENSABLE:
        if _compute_width(pairs) <= width:
            break
        if heading in pairs.header:
            left_out.append(heading)
            pairs = pairs.drop_column(heading)
    yield from map(build_rich_table, (pairs, *more))
    for sentence in [build_legend(comparison)[0], *_describe_bounds(comparison.signature)]:
        yield Text(escape_controls(sentence))
    if left_out:
        yield Text(f"Left out because the terminal is narrow: {', '.join(left_out)}.")


def _compute_width(grid: Grid) -> int:
    from rich.cells import cell_len

    columns = zip(grid.header, *([cell.text for cell in row] for row in grid.rows), strict=True)
    return sum(max(map(cell_len, column)) + 3 for column in columns) + 1


def render_briefly(comparison: Comparison, width: int, layout: Layout, *, more: str = "--full") -> Iterator[Any]:
    """Yield for rich a row per measure and pair: difference, interval, wins, verdict. With bounds, yield the full tables."""
    from rich import box
    from rich.text import Text

    if "most" in comparison.pairs.columns:
        yield from render_on_terminal(comparison, width, layout)
        return
    for grid in build_brief_grids(comparison, layout):
        yield build_rich_table(grid, box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), show_edge=False)
        yield Text("")
    yield Text(escape_controls(describe_costs(comparison)))
    if comparison.detectable.height:
        made = comparison.signature
        said = describe_detectable(comparison.detectable, alpha=made["alpha"], detect=made.get("detect"), most=1)
        yield Text(escape_controls(said))
    yield Text(f"Better or worse: p <= {comparison.signature['alpha']:g} after Holm's correction. {more} adds tests.")


def describe_costs(comparison: Comparison) -> str:
    """Return how much each system searched, and how much of what it found is judged."""
    spent = comparison.systems.select("system", "iterations", "coverage").rows()
    iterations = ", ".join(f"{name} {number:.2f}" for name, number, _ in spent)
    judged = ", ".join(format_number(share, 2) for _, _, share in spent)
    return f"Iterations per query: {iterations}. Judged share of their results: {judged}."


def build_grids(comparison: Comparison, layout: Layout) -> list[Grid]:
    """Return the tables of means and pairs, and where asked those of groups and correlations."""
    columns = ["measure", "system", "against", "difference", "interval", *_list_p_values(comparison), "effect"]
    columns += ["wins/ties/losses", "difference in iterations"]
    columns += ["unjudged", "verdict"] if "most" in comparison.pairs.columns else ["verdict"]
    pairs = _build_pairs_grid("Differences, system minus against", comparison, columns, 3, layout.places)
    return [_build_means_grid(comparison, layout), pairs, *_build_more_grids(comparison, layout.places)]


def build_brief_grids(comparison: Comparison, layout: Layout) -> list[Grid]:
    """Return one table for two systems, with their means; for more systems a table of means and a table of pairs."""
    made = comparison.signature
    one_pair = comparison.systems.height == 2
    system, against = comparison.pairs.select("system", "against").row(0)
    title = f"{f'{system} against {against}' if one_pair else 'System minus against'}, {count_queries(made['queries'])}"
    columns = ["measure", *(("mean", "mean against") if one_pair else ("system", "against"))]
    columns += ["plain difference", "interval", "wins/losses", "verdict"]
    pairs = _build_pairs_grid(title, comparison, columns, 1 if one_pair else 3, layout.places)
    interval = f"{100 * (1 - made['alpha']):g} % interval"
    shown = {"plain difference": "difference", "interval": interval, "mean": system, "mean against": against}
    pairs = pairs._replace(header=[shown.get(name, name) for name in columns])
    left_out = ("interval", *(("system", "against") if one_pair else ()))
    more = _build_more_grids(comparison, layout.places, without=left_out)
    return [pairs, *more] if one_pair else [_build_means_grid(comparison, layout, brief=True), pairs, *more]


def _build_column_grid(comparison: Comparison, places: int) -> Grid:
    """Return the table of pairs in few columns: difference, interval, and the corrected p of the randomisation test."""
    others = comparison.pairs.get_column("against").unique().to_list()
    title = "Differences, system minus against" if len(others) > 1 else f"Differences from {others[0]}"
    columns = ["measure", "system", "against", "difference", "interval", "Holm"]
    grid = _build_pairs_grid(title, comparison, columns, 3, places)._replace(header=[*columns[:-1], "p"])
    return grid if len(others) > 1 else grid.drop_column("against")


def _build_more_grids(comparison: Comparison, places: int, *, without: Sequence[str] = ()) -> list[Grid]:
    """Return the table of groups, without some columns, and that of correlations; none that was not asked for."""
    grids = []
    if comparison.groups is not None:
        columns = ["measure", "group", "system", "against", "queries", "mean", "mean against", "difference", "interval"]
        columns = [name for name in (*columns, "wins/ties/losses", "verdict") if name not in without]
        words = columns.index("queries")
        grids.append(_build_pairs_grid("Differences by group", comparison, columns, words, places, of_groups=True))
    if comparison.correlations is not None:
        rows = [
            (*words, str(queries), format_signed(tau, 2), format_interval(low, high, 2))
            for *words, queries, tau, low, high in comparison.correlations.iter_rows()
        ]
        title = "Correlation of outcomes with measures over queries (Kendall's tau-b)"
        grids.append(Grid.of(title, ["system", "outcome", "measure", "queries", "tau", "interval"], 3, rows))
    grids += build_replicate_grids(comparison, places, brief=bool(without))
    return grids


def _build_pairs_grid(
    title: str, comparison: Comparison, columns: list[str], words: int, places: int, *, of_groups: bool = False
) -> Grid:
    """Return a row per measure and pair, or per group, with these columns of `_write_pair`."""
    frame = comparison.groups if of_groups else comparison.pairs
    rows = []
    for row in () if frame is None else frame.iter_rows(named=True):
        written = _write_pair(row, places, None if of_groups else comparison.signature["queries"])
        rows.append([Cell(written[name], verdict=row.get(name) or "" if name == "verdict" else "") for name in columns])
    return Grid(title, columns, words, rows)


def _write_pair(row: dict[str, Any], places: int, queries: int | None) -> dict[str, str]:
    """Return all columns of a pair as text; marks a significant difference, and p-values under low coverage."""
    difference = format_signed(row["difference"], places)
    signs = [str(row[name]) for name in ("wins", "ties", "losses")]
    doubtful = row.get("low_coverage", False)
    return {
        "measure": _name_row(row["measure"], row["better"], row["queries"], queries),
        "group": row.get("group", ""),
        "system": row["system"],
        "against": row["against"],
        "queries": str(row["queries"]),
        "mean": format_number(row["mean"], places),
        "mean against": format_number(row["mean_against"], places),
        "plain difference": difference,
        "difference": difference + (" *" if row["significant"] else ""),  # beside the number, as in papers
        "interval": format_interval(row["low"], row["high"], places),
        **{title: format_probability(row[name], places, doubtful=doubtful) for name, title in _P_VALUES.items()},
        "effect": format_signed(row["effect"], 2),
        "wins/ties/losses": ABSENT if row["wins"] is None else "/".join(signs),
        "wins/losses": ABSENT if row["wins"] is None else "/".join(signs[::2]),
        "difference in iterations": format_signed(row.get("more_iterations"), 2),
        "unjudged": format_interval(row.get("least"), row.get("most"), places, absent="no bounds"),
        "verdict": (row["verdict"] or ABSENT) + (", can turn" if row.get("can_turn") else ""),
    }


def _build_means_grid(comparison: Comparison, layout: Layout, *, brief: bool = False) -> Grid:
    """Return a row per measure with the best mean marked, and below them the cost of each system unless `brief`.

    Or a row per system without costs: unless `brief`, * marks the means that differ significantly from the baseline.
    """
    by_system = layout.rows == "systems"
    rows: list[list[Cell]] = []
    queries, baseline = comparison.signature["queries"], comparison.baseline or ""
    marks = comparison.pairs.filter(pl.col("significant") & (by_system and not brief), against=baseline)
    marked = marks.select("measure", "system").rows()
    unranked = find_unranked(comparison.pairs).get_column("measure").to_list()
    for (measure, better), of in comparison.means.group_by("measure", "better", maintain_order=True):
        # Means over different queries cannot be ranked: their numbers stand beside them.
        is_uneven = of.get_column("queries").n_unique() > 1
        is_ranked = not is_uneven and measure not in unranked
        best = find_best(of.get_column("mean").drop_nulls().to_list() if is_ranked else [], better)
        cells = [
            Cell(
                format_number(row["mean"], layout.places)
                + (f" ({count_queries(row['queries'])})" if is_uneven else "")
                + (format_bounds(row, layout.places) if "most" in row else "")
                + (" *" if (measure, row["system"]) in marked else ""),
                row["mean"] is not None and row["mean"] in best,
            )
            for row in of.iter_rows(named=True)
        ]
        number = queries if is_uneven else of.item(0, "queries")
        rows.append([Cell(_name_row(measure, better, number, queries)), *cells])
    for name, title in _SPENT.items() if not (by_system or brief) else ():
        rows.append([Cell(title), *(Cell(format_number(value, 2)) for value in comparison.systems.get_column(name))])
    title = f"Means over {count_queries(queries)}"
    if by_system and not brief and baseline:
        title += f"; * differs significantly from {baseline}"
    grid = Grid(layout.caption or title, ["measure", *comparison.systems.get_column("system")], 1, rows)
    return grid.turn("system") if by_system else grid


def _list_p_values(comparison: Comparison) -> list[str]:
    """Return the headings of the p-values to show: Tukey's only if it exists."""
    shown = [*_P_VALUES.values()]
    return shown if comparison.pairs.get_column("p_tukey").count() else shown[:-1]


def build_legend(comparison: Comparison, *, in_column: bool = False) -> list[str]:
    """Return the sentences that explain columns and marks, and the notes; `in_column`: those of `_build_column_grid`."""
    made = comparison.signature
    doubt = "† marks p-values under low coverage. " if comparison.pairs.get_column("low_coverage").any() else ""
    if in_column:
        told = f"Intervals: bootstrap, {100 * (1 - made['alpha']):g} %. p: randomisation test, corrected by Holm's method; "
        return [f"{told}* marks p <= {made['alpha']:g}. {doubt}".strip(), *comparison.notes]
    shown = _list_p_values(comparison)
    return [
        f"Intervals: bootstrap, {100 * (1 - made['alpha']):g} %. {shown[0]} to {shown[-1]} are p-values. Holm is the p of "
        f"the randomisation test, corrected over the pairs of a measure. * marks a significant difference "
        f"(Holm <= {made['alpha']:g}); only these have the verdict better or worse. {doubt}"
        f"Effect is the mean of the differences divided by their standard deviation. "
        f"Randomisation and bootstrap: {made['resamples']:,} resamples, seed {made['seed']}.",
        *_describe_bounds(made),
        *comparison.notes,
    ]


def _describe_bounds(signature: Mapping[str, Any]) -> list[str]:
    """Return the explanation of the bounds of a table; nothing without bounds."""
    if "bounds" not in signature:
        return []
    return [
        "Unjudged: the range of a mean or a difference if each unjudged document gets a label from "
        f"{signature['bounds'].replace('..', ' to ')}, the same one for all systems. A verdict can turn if some of these "
        "labels reverse the sign of the difference, or give a difference of 0 a sign."
    ]


def _name_row(measure: str, better: str | None, queries: int, of_all: int | None) -> str:
    """Return a measure with its arrow, and its number of queries if that is not the number of all queries."""
    return f"{measure} {ARROWS[better]}" + ("" if of_all in (queries, None) else f" ({count_queries(queries)})")
