"""Writes the tables of a comparison in Markdown, LaTeX, CSV and JSON, in HTML for a notebook, and on a terminal."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from string import ascii_lowercase
from typing import TYPE_CHECKING, Any, NamedTuple

import polars as pl

from goodgain.analysis.comparing.comparison_sentences import (
    CORRELATIONS,
    DIFFERENCES,
    GROUPS,
    build_legend,
    describe_costs,
    describe_detectable,
    explain_letters,
    explain_table,
    name_test,
)
from goodgain.analysis.comparing.pairs_table import DECIDED, find_best, find_unranked
from goodgain.analysis.comparing.rendering import (
    ABSENT,
    VERDICT_COLOURS,
    count_queries,
    format_bounds,
    format_interval,
    format_number,
    format_probability,
    format_signed,
)
from goodgain.analysis.comparing.replicate_tables import build_replicate_tables
from goodgain.errors import InputError
from goodgain.files.escaping import escape_controls, escape_html, guard_formulas
from goodgain.files.tables import (
    BOOKTABS,
    Cell,
    Line,
    Table,
    write_float,
    write_html,
    write_latex_comment,
    write_markdown,
)
from goodgain.files.terminal_tables import draw_table
from goodgain.measures.declaration import ARROWS
from goodgain.options import check_whole_number, spell

if TYPE_CHECKING:
    from goodgain.analysis.comparing.comparison import Comparison

#: Choices for the rows of the table of means.
ROWS = ("measures", "systems")
#: The smallest and the largest number of decimals; -1 is full precision.
PLACES = (-1, 100)
#: Width and height of a picture of an interval.
_WIDTH, _HEIGHT = 90, 12
#: Column of the systems -> its heading in a table.
_SPENT = {
    "iterations": "iterations per query",
    "results": "results per query",
    "coverage": "judged share of unique results",
}
#: Column of the pairs -> its heading in a table.
_P_VALUES = {"p_t": "t-test", "p_randomisation": "randomisation", "p_randomisation_holm": "Holm", "p_tukey": "Tukey"}
#: Columns of the pairs that a narrow terminal leaves out, in this order.
_DROPPED = (
    *("effect", "t-test", "randomisation", "Tukey", "difference in iterations", "wins/losses", "interval"),
    *("wins/ties/losses", "Holm", "mean against", "mean", "queries"),
)


class Layout(NamedTuple):
    """The layout of tables: arguments of `Comparison.to_text`."""

    places: int = 4
    rows: str | None = None
    spreadsheet: bool = False
    caption: str = ""
    label: str = ""


def build_tables(comparison: Comparison, layout: Layout) -> list[Table]:
    exists = {"Tukey": comparison.pairs.get_column("p_tukey").count(), "unjudged": "most" in comparison.pairs.columns}
    columns = ["measure", "system", "against", "difference", "interval", *_P_VALUES.values(), "effect"]
    columns += ["wins/ties/losses", "difference in iterations", "unjudged", "verdict"]
    columns = [name for name in columns if exists.get(name, True)]
    pairs = _build_pairs_table("Differences, system minus against", comparison, columns, 3, layout.places)
    return [_build_means_table(comparison, layout), pairs, *_build_more_tables(comparison, layout.places)]


def build_brief_tables(comparison: Comparison, layout: Layout) -> list[Table]:
    """Return short tables: pairs, and any other tables (such as groups). Three systems or more also have a table of means."""
    made = comparison.signature
    one_pair = comparison.systems.height == 2
    system, against = comparison.pairs.select("system", "against").row(0)
    title = f"{f'{system} against {against}' if one_pair else 'System minus against'}, {count_queries(made['queries'])}"
    columns = ["measure", *(("mean", "mean against") if one_pair else ("system", "against"))]
    columns += ["plain difference", "interval", "wins/losses", "verdict"]
    pairs = _build_pairs_table(title, comparison, columns, 1 if one_pair else 3, layout.places)
    interval = f"{100 * (1 - made['alpha']):g} % interval"
    shown = {"plain difference": "difference", "interval": interval, "mean": system, "mean against": against}
    header, drop = ([shown.get(name, name) for name in names] for names in (columns, _DROPPED))
    pairs = pairs._replace(header=header, drop=drop)
    left_out = ("interval", *(("system", "against") if one_pair else ()))
    more = _build_more_tables(comparison, layout.places, without=left_out)
    return [pairs, *more] if one_pair else [_build_means_table(comparison, layout, brief=True), pairs, *more]


def build_column_table(comparison: Comparison, places: int) -> Table:
    """Return a narrow table with a row per pair and measure. `p` is from the randomisation test, corrected by Holm's method."""
    others = comparison.pairs.get_column("against").unique().to_list()
    title = "Differences, system minus against" if len(others) > 1 else f"Differences from {others[0]}"
    columns = ["measure", "system", "against", "difference", "interval", "Holm"]
    table = _build_pairs_table(title, comparison, columns, 3, places)._replace(header=[*columns[:-1], "p"])
    return table if len(others) > 1 else table.drop_column("against")


def _build_more_tables(comparison: Comparison, places: int, *, without: Sequence[str] = ()) -> list[Table]:
    tables = []
    if comparison.groups is not None:
        columns = ["measure", "group", "system", "against", "queries", "mean", "mean against", "difference", "interval"]
        columns = [name for name in (*columns, "wins/ties/losses", "verdict") if name not in without]
        words = columns.index("queries")
        tables.append(_build_pairs_table("Differences by group", comparison, columns, words, places, of_groups=True))
    if comparison.correlations is not None:
        rows = [
            (*words, str(queries), format_signed(tau, 2), format_interval(low, high, 2))
            for *words, queries, tau, low, high in comparison.correlations.iter_rows()
        ]
        title = "Correlation of outcomes with measures over queries (Kendall's tau-b)"
        header = ["system", "outcome", "measure", "queries", "tau", "interval"]
        tables.append(Table.of(title, header, 3, rows, CORRELATIONS))
    tables += build_replicate_tables(comparison, places, brief=bool(without))
    return tables


def _build_pairs_table(
    title: str, comparison: Comparison, columns: list[str], words: int, places: int, *, of_groups: bool = False
) -> Table:
    frame = comparison.groups if of_groups else comparison.pairs
    rows = []
    for row in () if frame is None else frame.iter_rows(named=True):
        written = _write_pair(row, places, None if of_groups else comparison.signature["queries"])
        rows.append([Cell(written[name], verdict=row.get(name) or "" if name == "verdict" else "") for name in columns])
    return Table(title, columns, words, rows, GROUPS if of_groups else DIFFERENCES, drop=_DROPPED)


def _write_pair(row: dict[str, Any], places: int, queries: int | None) -> dict[str, str]:
    """Return all columns of a pair as text. * marks a significant difference, † a p-value under low coverage."""
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


def _build_means_table(comparison: Comparison, layout: Layout, *, brief: bool = False) -> Table:
    by_system = layout.rows == "systems"
    rows: list[list[Cell]] = []
    queries, baseline = comparison.signature["queries"], comparison.baseline or ""
    marks = comparison.pairs.filter(pl.col("significant") & (by_system and not brief), against=baseline)
    marked = marks.select("measure", "system").rows()
    unranked = find_unranked(comparison.pairs).get_column("measure").to_list()
    for (measure, better), of in comparison.means.group_by("measure", "better", maintain_order=True):
        # Means over different queries cannot be ranked; each mean shows the number of queries.
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
    title = layout.caption or f"Means over {count_queries(queries)}"
    notes = [f"* differs significantly from {baseline} ({name_test(comparison, 'pairs')})."] * bool(marked)
    table = Table(title, ["measure", *comparison.systems.get_column("system")], 1, rows, notes=notes)
    return table.turn("system") if by_system else table


def _name_row(measure: str, better: str | None, queries: int, of_all: int | None) -> str:
    return f"{measure} {ARROWS[better]}" + ("" if of_all in (queries, None) else f" ({count_queries(queries)})")


def write_comparison(comparison: Comparison, form: str, layout: Layout) -> str:
    if form not in FORMS:
        raise InputError(f"form {form!r} is not one of {', '.join(FORMS)}")
    if layout.rows is None and form == "latex" and comparison.baseline is None:
        layout = layout._replace(rows="systems")
    if layout.rows not in (None, *ROWS):
        raise InputError(f"{spell('rows', layout.rows)} is not one of {', '.join(ROWS)}")
    check_whole_number("places", layout.places, *PLACES)
    return FORMS[form](comparison, layout)


def _write_markdown(comparison: Comparison, layout: Layout) -> str:
    legend = [Line(sentence, 1) for sentence in (*build_legend(comparison), *comparison.notes)]
    return write_markdown([*comparison.tables(layout), *legend])


def _write_latex(comparison: Comparison, layout: Layout) -> str:
    means, pairs, *more = comparison.tables(layout)
    by_system = layout.rows == "systems"
    size = ""
    if by_system:
        size, pairs = "\\footnotesize\n\\setlength{\\tabcolsep}{3pt}\n", build_column_table(comparison, layout.places)
    tables = [means, pairs, *more]
    if by_system and comparison.baseline is None:
        tables = [_add_letters(means, comparison), *more]  # letters replace the table of pairs
    floats = []
    for table in tables:
        label = "-".join(filter(None, [layout.label or "tab:comparison", table.name]))
        notes = [*table.notes, *explain_table(comparison, table, in_column=by_system)]
        floats.append(write_float(table._replace(notes=notes), label, size))
    notices = [write_latex_comment(f"notice: {note}") for note in comparison.notes]
    return "\n\n".join(["\n".join([BOOKTABS, *notices]), *floats]) + "\n"


def _add_letters(means: Table, comparison: Comparison) -> Table:
    names = comparison.systems.get_column("system").to_list()
    few = len(names) <= len(ascii_lowercase)
    signs = dict(zip(names, ascii_lowercase if few else map(str, range(1, len(names) + 1)), strict=False))
    better, worse = (comparison.pairs.filter(verdict=verdict) for verdict in DECIDED)
    won = {*better.select("measure", "system", "against").rows(), *worse.select("measure", "against", "system").rows()}
    measures, rows = comparison.means.get_column("measure").unique(maintain_order=True), []
    for (name, sign), (head, *cells) in zip(signs.items(), means.rows, strict=True):
        beaten = ([signs[other] for other in names if (measure, name, other) in won] for measure in measures)
        marks = [("" if few else ",").join(of) for of in beaten]
        marked = (cell._replace(marks=of) for cell, of in zip(cells, marks, strict=True))
        rows.append([Cell(sign), head, *marked])
    told = explain_letters(comparison, "letters" if few else "numbers")
    return means._replace(header=["", *means.header], words=means.words + 1, rows=rows, notes=[told])


def _write_csv(comparison: Comparison, layout: Layout) -> str:
    rows = stack_groups(comparison)
    return (guard_formulas(rows) if layout.spreadsheet else rows).write_csv()


def stack_groups(comparison: Comparison) -> pl.DataFrame:
    """Return the frame `pairs`. If there are groups, append the frame `groups`; the rows of `pairs` then have the group `all`."""
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


def render_html(comparison: Comparison) -> str:
    means, pairs, *more = comparison.tables()
    at = pairs.header.index("interval")
    drawn = [
        [*row[:at], row[at]._replace(picture=picture), *row[at + 1 :]]
        for row, picture in zip(pairs.rows, _draw_intervals(comparison.pairs), strict=True)
    ]
    items = "".join(f"<li>{escape_html(said)}</li>" for said in (*build_legend(comparison), *comparison.notes))
    return write_html([means, pairs._replace(rows=drawn), *more]) + f"<ul><small>{items}</small></ul>"


def _draw_intervals(pairs: pl.DataFrame) -> Iterator[str]:
    """Yield an SVG of each pair's difference, interval and zero line; an empty text without numbers. A measure has one scale."""
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
    """Yield the tables and the legend for printing with rich. Notes are left out: they are on stderr as notices."""
    from rich.text import Text

    for table in comparison.tables(layout):
        yield from draw_table(table, width)
    for sentence in build_legend(comparison):
        yield Text(escape_controls(sentence))


def render_briefly(comparison: Comparison, width: int, layout: Layout, *, more: str = "--full") -> Iterator[Any]:
    """Yield short tables for printing with rich. If the comparison has bounds, yield the full tables."""
    from rich.text import Text

    if "most" in comparison.pairs.columns:
        yield from render_on_terminal(comparison, width, layout)
        return
    for table in build_brief_tables(comparison, layout):
        yield from draw_table(table, width, brief=True)
        yield Text("")
    yield Text(escape_controls(describe_costs(comparison)))
    if comparison.detectable.height:
        yield Text(escape_controls(describe_detectable(comparison, most=1)))
    yield Text(f"Better or worse: p <= {comparison.signature['alpha']:g} after Holm's correction. {more} adds tests.")
