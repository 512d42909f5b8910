"""Writes a comparison as Markdown, LaTeX with booktabs, CSV, JSON, HTML for a notebook, and coloured tables for a terminal.

All forms except CSV and JSON show the same two tables: the means, and the pairs with their tests.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import polars as pl

from goodgain.comparing.table_cells import (
    PLACES,
    ROWS,
    Findings,
    Grid,
    Layout,
    build_brief_grids,
    build_column_grid,
    build_grids,
    build_legend,
    describe_bounds,
    stack_groups,
)
from goodgain.errors import InputError, check_whole_number
from goodgain.files.escaping import HtmlCell, escape_controls, escape_html, guard_formulas, write_table


def write_comparison(comparison: Findings, form: str, layout: Layout) -> str:
    """Return the comparison as text in one of `FORMS`."""
    if form not in FORMS:
        raise InputError(f"form {form!r} is not one of {', '.join(FORMS)}")
    if layout.rows not in ROWS:
        raise InputError(f"rows={layout.rows!r} is not one of {', '.join(ROWS)}")
    check_whole_number("places", layout.places, *PLACES)
    return FORMS[form](comparison, layout)


def _write_markdown(comparison: Findings, layout: Layout) -> str:
    parts = [
        f"**{escape_markdown(grid.title)}**\n\n{_write_markdown_table(grid)}"
        for grid in build_grids(comparison, layout)
    ]
    parts.append("\n".join(f"- {escape_markdown(sentence)}" for sentence in build_legend(comparison)))
    return "\n\n".join(parts) + "\n"


def write_grid(grid: Grid, form: str) -> str:
    """Return one table without its title, as `markdown` or as a tabular of `latex` (booktabs)."""
    return f"{_write_markdown_table(grid)}\n" if form == "markdown" else f"{_BOOKTABS}\n{_write_tabular(grid)}\n"


def _write_markdown_table(grid: Grid) -> str:
    align = ["---"] * grid.words + ["---:"] * (len(grid.header) - grid.words)
    lines = [[*map(escape_markdown, grid.header)], align]
    lines += [
        [f"**{escape_markdown(c.text)}**" if c.best else escape_markdown(c.text) for c in row] for row in grid.rows
    ]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def escape_markdown(text: str) -> str:
    """Escape a text: a user's name of a system must not become markup or a new line."""
    return re.sub(r"([\\`*_{}\[\]<>#|~&$])", r"\\\1", _remove_line_breaks(text))


def _write_latex(comparison: Findings, layout: Layout) -> str:
    means, pairs, *more = build_grids(comparison, layout)
    is_narrow = layout.rows == "systems"
    pairs = build_column_grid(comparison, layout.places) if is_narrow else pairs
    legend = build_legend(comparison, in_column=is_narrow)
    notes = "\n".join(f"{_escape_latex(sentence)}\\par" for sentence in legend)
    size = "\\footnotesize\n\\setlength{\\tabcolsep}{3pt}\n" if is_narrow else ""
    tables = []
    for grid, suffix in ((means, ""), (pairs, "-differences"), *((grid, None) for grid in more)):
        label = f"\\label{{{layout.label}{suffix}}}\n" if layout.label and suffix is not None else ""
        tables.append(f"{size}\\caption{{{_escape_latex(grid.title)}}}\n{label}{_write_tabular(grid)}")
    tables[-1] += f"\n\\par\\footnotesize\n{notes}"
    floats = [f"\\begin{{table}}\n\\centering\n{table}\n\\end{{table}}" for table in tables]
    return "\n\n".join([_BOOKTABS, *floats]) + "\n"


_BOOKTABS = "% needs \\usepackage{booktabs}"


def _write_tabular(grid: Grid) -> str:
    columns = "l" * grid.words + "r" * (len(grid.header) - grid.words)
    rows = [
        [rf"\textbf{{{_escape_latex(c.text)}}}" if c.best else _escape_latex(c.text) for c in row] for row in grid.rows
    ]
    header, *body = (" & ".join(cells) + r" \\" for cells in [map(_escape_latex, grid.header), *rows])
    lines = [
        rf"\begin{{tabular}}{{{columns}}}",
        r"\toprule",
        header,
        r"\midrule",
        *body,
        r"\bottomrule",
        r"\end{tabular}",
    ]
    return "\n".join(lines)


_LATEX = {sign: "\\" + sign for sign in "&%$#_{}"} | {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "↑": r"$\uparrow$",
    "↓": r"$\downarrow$",
    "†": r"$^\dagger$",
    "–": "--",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "[": "{[}",  # after \\ a bracket would be an optional argument
    "]": "{]}",
}


def _escape_latex(text: str) -> str:
    return "".join(_LATEX.get(sign, sign) for sign in _remove_line_breaks(text))


def _remove_line_breaks(text: str) -> str:
    return "".join(sign if sign.isprintable() else " " for sign in text)


def _write_csv(comparison: Findings, layout: Layout) -> str:
    rows = stack_groups(comparison)
    return (guard_formulas(rows) if layout.spreadsheet else rows).write_csv()


def _write_json(comparison: Findings, layout: Layout) -> str:
    frames = {name: getattr(comparison, name).to_dicts() for name in ("systems", "coverage", "means", "pairs")}
    more = {name: getattr(comparison, name) for name in ("groups", "correlations")}
    frames |= {name: frame.to_dicts() for name, frame in more.items() if frame is not None}
    notes = {"notes": list(comparison.notes), "signature": comparison.signature}
    content = {"baseline": comparison.baseline, **frames, **notes}
    return json.dumps(content, ensure_ascii=False, allow_nan=False, indent=2) + "\n"


#: The forms of `Comparison.to_text`.
FORMS: dict[str, Callable[[Findings, Layout], str]] = {
    "csv": _write_csv,
    "markdown": _write_markdown,
    "latex": _write_latex,
    "json": _write_json,
}

_WIDTH, _HEIGHT = 90, 12

#: Verdict -> colour, safe for the colour-blind (Okabe and Ito).
_HTML_COLOURS = {"better": "#0072B2", "worse": "#D55E00"}
_GREY = "#8C8C8C"


def render_html(comparison: Findings) -> str:
    """Return the tables of a comparison as HTML, with every text escaped."""
    means, pairs, *more = build_grids(comparison, Layout())
    shown = [[HtmlCell(cell.text, cell.best) for cell in row] for row in means.rows]
    parts = [write_table(means.title, means.header, shown, words=means.words)]
    at = pairs.header.index("interval")
    rows = []
    for row, picture in zip(pairs.rows, _draw_intervals(comparison.pairs), strict=True):
        cells = [HtmlCell(cell.text, cell.verdict in _HTML_COLOURS) for cell in row]
        cells[at] = cells[at]._replace(picture=picture)
        rows.append(cells)
    parts.append(write_table(pairs.title, pairs.header, rows, words=pairs.words))
    for grid in more:
        shown = [[HtmlCell(cell.text, cell.verdict in _HTML_COLOURS) for cell in row] for row in grid.rows]
        parts.append(write_table(grid.title, grid.header, shown, words=grid.words))
    items = "".join(f"<li>{escape_html(sentence)}</li>" for sentence in build_legend(comparison))
    return "".join(parts) + f"<ul><small>{items}</small></ul>"


def _draw_intervals(pairs: pl.DataFrame) -> Iterator[str]:
    """Yield an SVG for each pair: its difference and interval around zero. The pairs of a measure share one scale."""
    widest = pl.max_horizontal(pl.col("difference", "low", "high").abs()).max().over("measure")
    columns = ("difference", "low", "high", "verdict")
    for difference, low, high, verdict, scale in pairs.select(*columns, scale=widest).iter_rows():
        if difference is None or low is None or not scale:
            yield ""
            continue
        x, left, right = (_WIDTH / 2 * (1 + 0.94 * value / scale) for value in (difference, low, high))
        colour, middle = _HTML_COLOURS.get(verdict, _GREY), _HEIGHT / 2
        yield (
            f'<svg width="{_WIDTH}" height="{_HEIGHT}" role="img" aria-label="difference and interval around zero">'
            f'<line x1="{_WIDTH / 2}" x2="{_WIDTH / 2}" y1="0" y2="{_HEIGHT}" stroke="currentColor" stroke-width="0.7"/>'
            f'<line x1="{left:.1f}" x2="{right:.1f}" y1="{middle}" y2="{middle}" stroke="{colour}" stroke-width="3"/>'
            f'<circle cx="{x:.1f}" cy="{middle}" r="3.5" fill="{colour}"/></svg> '
        )


_TERMINAL_COLOURS = {"better": "green", "worse": "red"}

#: Columns of the pairs that a narrow terminal leaves out, in this order.
_DISPENSABLE = ("effect", "t-test", "randomisation", "Tukey", "difference in iterations", "interval")


def render_on_terminal(comparison: Findings, width: int, layout: Layout) -> Iterator[Any]:
    """Yield the two tables for rich, and the legend without the notes: these appear as notices on stderr."""
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
    for sentence in [build_legend(comparison)[0], *describe_bounds(comparison.signature)]:
        yield Text(escape_controls(sentence))
    if left_out:
        yield Text(f"Left out because the terminal is narrow: {', '.join(left_out)}.")


def render_briefly(comparison: Findings, width: int, layout: Layout) -> Iterator[Any]:
    """Yield for rich a row per measure and pair: difference, interval, wins, verdict. With bounds, yield the full tables."""
    from rich import box
    from rich.text import Text

    if "most" in comparison.pairs.columns:
        yield from render_on_terminal(comparison, width, layout)
        return
    means, *pairs = build_brief_grids(comparison, layout)
    for grid in (means, *pairs):
        table = build_rich_table(grid)
        table.box, table.padding, table.show_edge = box.SIMPLE_HEAD, (0, 1, 0, 0), False
        yield table
        yield Text("")
    spent = comparison.systems.select("system", "iterations", "coverage").rows()
    iterations = ", ".join(f"{name} {number:.2f}" for name, number, _ in spent)
    judged = ", ".join("–" if share is None else f"{share:.2f}" for _, _, share in spent)
    yield Text(escape_controls(f"Iterations per query: {iterations}. Judged share of their results: {judged}."))
    yield Text(
        f"A system is better or worse if p <= {comparison.signature['alpha']:g} after Holm's correction. --full adds tests."
    )


def _compute_width(grid: Grid) -> int:
    from rich.cells import cell_len

    columns = zip(grid.header, *([cell.text for cell in row] for row in grid.rows), strict=True)
    return sum(max(map(cell_len, column)) + 3 for column in columns) + 1


def build_rich_table(grid: Grid) -> Any:
    from rich.table import Table
    from rich.text import Text

    table = Table(title=Text(escape_controls(grid.title)), title_justify="left")
    for k, heading in enumerate(grid.header):
        table.add_column(Text(escape_controls(heading)), justify="left" if k < grid.words else "right", overflow="fold")
    for row in grid.rows:
        table.add_row(
            *(
                Text(escape_controls(c.text), style="bold" if c.best else _TERMINAL_COLOURS.get(c.verdict, ""))
                for c in row
            )
        )
    return table
