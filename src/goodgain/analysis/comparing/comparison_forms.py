"""The forms of a comparison: Markdown, LaTeX for a paper, CSV, JSON, HTML for a notebook, and for a terminal.

All forms except CSV and JSON show the tables of `comparison_tables`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from string import ascii_lowercase
from typing import TYPE_CHECKING, Any

import polars as pl

from goodgain.analysis.comparing.comparison_tables import (
    CORRELATIONS,
    DIFFERENCES,
    GROUPS,
    Layout,
    build_brief_tables,
    build_column_table,
    build_legend,
    build_tables,
    describe_bounds,
    describe_costs,
    explain_dagger,
    name_test,
)
from goodgain.analysis.comparing.rendering import VERDICT_COLOURS
from goodgain.analysis.comparing.replicate_tables import describe_detectable
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
from goodgain.options import check_whole_number, spell

if TYPE_CHECKING:
    from goodgain.analysis.comparing.comparison import Comparison

#: Choices for the rows of the table of means.
ROWS = ("measures", "systems")
#: The smallest and the largest number of decimals; -1 is full precision.
PLACES = (-1, 100)


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
    legend = [Line(sentence, 1) for sentence in build_legend(comparison)]
    return write_markdown([*build_tables(comparison, layout), *legend])


def _write_latex(comparison: Comparison, layout: Layout) -> str:
    means, pairs, *more = build_tables(comparison, layout)
    by_system = layout.rows == "systems"
    size = ""
    if by_system:
        size, pairs = "\\footnotesize\n\\setlength{\\tabcolsep}{3pt}\n", build_column_table(comparison, layout.places)
    tables = [means, pairs, *more]
    if by_system and comparison.baseline is None:
        tables = [_add_letters(means, comparison), *more]  # in place of the pairs
    floats = []
    for table in tables:
        label = "-".join(filter(None, [layout.label or "tab:comparison", table.name]))
        notes = [*table.notes, *_explain(comparison, table, in_column=by_system)]
        floats.append(write_float(table._replace(notes=notes), label, size))
    notices = [write_latex_comment(f"notice: {note}") for note in comparison.notes]
    return "\n\n".join(["\n".join([BOOKTABS, *notices]), *floats]) + "\n"


def _explain(comparison: Comparison, table: Table, *, in_column: bool) -> Iterator[str]:
    """Yield what the columns and marks of one table of a paper mean, for a reader who sees no other table."""
    made, cells = comparison.signature, [cell for row in table.rows for cell in row]
    interval = f"Intervals: bootstrap, {100 * (1 - made['alpha']):g} %."
    if table.name == DIFFERENCES and in_column:
        told = f"{interval} p: randomisation test, corrected by Holm's method; * marks p <= {made['alpha']:g}."
        yield f"{told} {explain_dagger(comparison)}".strip()
    elif table.name == DIFFERENCES:
        yield build_legend(comparison)[0]
    elif table.name == GROUPS:
        yield f"{interval} * marks a significant difference ({name_test(comparison, 'groups and pairs')})."
    elif table.name == CORRELATIONS:
        yield interval
    shown = "".join([*table.header, *(cell.text for cell in cells)])
    marks = [f"{sign} {word} is better" for sign, word in (("↑", "higher"), ("↓", "lower")) if sign in shown]
    marks += ["bold is best"] * any(cell.best for cell in cells)
    yield from [f"Marks: {', '.join(marks)}."] * bool(marks)
    if table.name in ("", DIFFERENCES):
        yield from describe_bounds(made)


def _add_letters(means: Table, comparison: Comparison) -> Table:
    """Give each system a letter, and each mean the letters of the systems that it is significantly better than."""
    names = comparison.systems.get_column("system").to_list()
    few = len(names) <= len(ascii_lowercase)
    signs = dict(zip(names, ascii_lowercase if few else map(str, range(1, len(names) + 1)), strict=False))
    won = set()
    for measure, system, against, verdict in comparison.pairs.select(
        "measure", "system", "against", "verdict"
    ).iter_rows():
        won |= {"better": {(measure, system, against)}, "worse": {(measure, against, system)}}.get(verdict, set())
    measures, rows = comparison.means.get_column("measure").unique(maintain_order=True), []
    for (name, sign), (head, *cells) in zip(signs.items(), means.rows, strict=True):
        beaten = ([signs[other] for other in names if (measure, name, other) in won] for measure in measures)
        marks = [("" if few else ",").join(of) for of in beaten]
        marked = (cell._replace(marks=of) for cell, of in zip(cells, marks, strict=True))
        rows.append([Cell(sign), head, *marked])
    kind = "letters" if few else "numbers"
    test = name_test(comparison, "pairs")
    told = f"Raised {kind} name the systems that a system is significantly better than ({test})."
    told += " Each system is compared only with the one before it." * bool(comparison.signature.get("against"))
    return means._replace(header=["", *means.header], words=means.words + 1, rows=rows, notes=[told])


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
    means, pairs, *more = build_tables(comparison, Layout())
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

    for table in build_tables(comparison, layout):
        yield from draw_table(table, width)
    for sentence in [build_legend(comparison)[0], *describe_bounds(comparison.signature)]:
        yield Text(escape_controls(sentence))


def render_briefly(comparison: Comparison, width: int, layout: Layout, *, more: str = "--full") -> Iterator[Any]:
    """Yield for rich a row per measure and pair: difference, interval, wins, verdict. With bounds, yield the full tables."""
    from rich.text import Text

    if "most" in comparison.pairs.columns:
        yield from render_on_terminal(comparison, width, layout)
        return
    for table in build_brief_tables(comparison, layout):
        yield from draw_table(table, width, brief=True)
        yield Text("")
    yield Text(escape_controls(describe_costs(comparison)))
    if comparison.detectable.height:
        made = comparison.signature
        said = describe_detectable(comparison.detectable, alpha=made["alpha"], detect=made.get("detect"), most=1)
        yield Text(escape_controls(said))
    yield Text(f"Better or worse: p <= {comparison.signature['alpha']:g} after Holm's correction. {more} adds tests.")
