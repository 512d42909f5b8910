"""Writes a comparison as text: Markdown, LaTeX with booktabs, CSV, JSON, and coloured tables for a terminal.

All but CSV and JSON show the same two tables: the means, and the pairs with their tests.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from goodgain.comparing.findings import Findings
from goodgain.comparing.grids import PLACES, ROWS, Grid, Layout, build_grids, build_legend, describe_bounds
from goodgain.comparing.pairing import check_whole_number
from goodgain.errors import InputError
from goodgain.files.safe_text import escape_controls, guard_formulas

__all__ = ["FORMS", "render_on_terminal", "write_comparison"]


def write_comparison(comparison: Findings, form: str, layout: Layout) -> str:
    """Return the comparison as text in one of `FORMS`."""
    if form not in FORMS:
        raise InputError(f"form {form!r} is not one of {', '.join(FORMS)}")
    if layout.rows not in ROWS:
        raise InputError(f"rows={layout.rows!r} is not one of {', '.join(ROWS)}")
    check_whole_number("places", layout.places, *PLACES)
    return FORMS[form](comparison, layout)


def _write_markdown(comparison: Findings, layout: Layout) -> str:
    parts = []
    for grid in build_grids(comparison, layout):
        align = ["---"] * grid.words + ["---:"] * (len(grid.header) - grid.words)
        lines = [[*map(_escape_markdown, grid.header)], align]
        lines += [
            [f"**{_escape_markdown(c.text)}**" if c.best else _escape_markdown(c.text) for c in row]
            for row in grid.rows
        ]
        parts.append(f"**{grid.title}**\n\n" + "\n".join(f"| {' | '.join(line)} |" for line in lines))
    parts.append("\n".join(f"- {_escape_markdown(sentence)}" for sentence in build_legend(comparison)))
    return "\n\n".join(parts) + "\n"


def _escape_markdown(text: str) -> str:
    """Escape a text: names of systems and measures come from users, and must not become markup or a new line."""
    return re.sub(r"([\\`*_{}\[\]<>#|~&$])", r"\\\1", _remove_line_breaks(text))


def _write_latex(comparison: Findings, layout: Layout) -> str:
    means, pairs = (_write_tabular(grid) for grid in build_grids(comparison, layout))
    notes = "\n".join(f"{_escape_latex(sentence)}\\par" for sentence in build_legend(comparison))
    tables = [means, f"{pairs}\n\\par\\footnotesize\n{notes}"]
    floats = [f"\\begin{{table}}\n\\centering\n{table}\n\\end{{table}}" for table in tables]
    return "\n\n".join(["% needs \\usepackage{booktabs}", *floats]) + "\n"


def _write_tabular(grid: Grid) -> str:
    columns = "l" * grid.words + "r" * (len(grid.header) - grid.words)
    rows = [
        [rf"\textbf{{{_escape_latex(c.text)}}}" if c.best else _escape_latex(c.text) for c in row] for row in grid.rows
    ]
    lines = [
        rf"\caption{{{_escape_latex(grid.title)}}}",
        rf"\begin{{tabular}}{{{columns}}}",
        r"\toprule",
        _write_latex_row(map(_escape_latex, grid.header)),
        r"\midrule",
        *map(_write_latex_row, rows),
        r"\bottomrule",
        r"\end{tabular}",
    ]
    return "\n".join(lines)


def _write_latex_row(cells: Iterable[str]) -> str:
    return " & ".join(cells) + r" \\"


_LATEX = {
    **{sign: "\\" + sign for sign in "&%$#_{}"},
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
    return (guard_formulas(comparison.pairs) if layout.spreadsheet else comparison.pairs).write_csv()


def _write_json(comparison: Findings, layout: Layout) -> str:
    content = {
        "baseline": comparison.baseline,
        "systems": comparison.systems.to_dicts(),
        "coverage": comparison.coverage.to_dicts(),
        "means": comparison.means.to_dicts(),
        "pairs": comparison.pairs.to_dicts(),
        "notes": list(comparison.notes),
        "signature": comparison.signature,
    }
    return json.dumps(content, ensure_ascii=False, allow_nan=False, indent=2) + "\n"


#: The forms of `Comparison.to_text`.
FORMS: dict[str, Callable[[Findings, Layout], str]] = {
    "csv": _write_csv,
    "markdown": _write_markdown,
    "latex": _write_latex,
    "json": _write_json,
}

_COLOURS = {"better": "green", "worse": "red"}

#: Columns of the pairs that a narrow terminal leaves out, in this order; every other form has them.
_DISPENSABLE = ("effect", "t-test", "randomisation", "Tukey", "more iterations", "interval")


def render_on_terminal(comparison: Findings, width: int, layout: Layout) -> Iterator[Any]:
    """Yield the two tables for rich and the legend without the notes, which are printed as notices on stderr."""
    from rich.text import Text

    means, pairs = build_grids(comparison, layout)
    yield _build_rich_table(means)
    left_out = []
    for heading in _DISPENSABLE:
        if _compute_width(pairs) <= width:
            break
        if heading in pairs.header:
            left_out.append(heading)
            pairs = pairs.drop_column(heading)
    yield _build_rich_table(pairs)
    for sentence in [build_legend(comparison)[0], *describe_bounds(comparison.signature)]:
        yield Text(escape_controls(sentence))
    if left_out:
        yield Text(f"Left out, as the terminal is narrow: {', '.join(left_out)}.")


def _compute_width(grid: Grid) -> int:
    """Return the width that rich needs to print a table without breaking a cell."""
    from rich.cells import cell_len

    columns = zip(grid.header, *([cell.text for cell in row] for row in grid.rows), strict=True)
    return sum(max(map(cell_len, column)) + 3 for column in columns) + 1


def _build_rich_table(grid: Grid) -> Any:
    from rich.table import Table
    from rich.text import Text

    table = Table(title=grid.title, title_justify="left")
    for k, heading in enumerate(grid.header):
        table.add_column(Text(escape_controls(heading)), justify="left" if k < grid.words else "right", overflow="fold")
    for row in grid.rows:
        table.add_row(
            *(Text(escape_controls(c.text), style="bold" if c.best else _COLOURS.get(c.verdict, "")) for c in row)
        )
    return table
