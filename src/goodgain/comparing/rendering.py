"""Tables and lines of text, written as Markdown, LaTeX with booktabs, HTML for a notebook, or for a terminal."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from io import StringIO
from typing import Any, NamedTuple

from goodgain.files.escaping import Cell, escape_controls, escape_html, write_table

ABSENT = "–"

#: In characters: wide enough for any table.
ANY_WIDTH = 10_000

#: Verdict -> its colour in pictures and pages: green and purple, which colour-blind readers distinguish. No system and no kind of
#: results has one of them.
VERDICT_COLOURS = {"better": "#1B7837", "worse": "#762A83"}
#: Verdict -> its colour on a terminal.
_TERMINAL_COLOURS = {"better": "green", "worse": "red"}


class Grid(NamedTuple):
    """One table; its first `words` columns hold words, the others numbers."""

    title: str
    header: Sequence[str]
    words: int
    rows: Sequence[Sequence[Cell]]

    @classmethod
    def of(cls, title: str, header: Sequence[str], words: int, rows: Iterable[Iterable[str]]) -> Grid:
        """Return a table of plain texts."""
        return cls(title, header, words, [[*map(Cell, row)] for row in rows])

    def drop_column(self, heading: str) -> Grid:
        kept = [k for k, name in enumerate(self.header) if name != heading]
        rows = [[row[k] for k in kept] for row in self.rows]
        return Grid(self.title, [self.header[k] for k in kept], sum(k < self.words for k in kept), rows)

    def turn(self, heading: str) -> Grid:
        """Transpose a table with one column of words; `heading` becomes its first heading."""
        names, *columns = zip(*self.rows, strict=True)
        rows = [[Cell(name), *cells] for name, cells in zip(self.header[1:], columns, strict=True)]
        return self._replace(header=[heading, *(cell.text for cell in names)], rows=rows)


class Line(NamedTuple):
    """A text with its level: -1 a title, 0 a paragraph, 1 an item, 2 an item of the one above."""

    text: str
    level: int = 0


#: Level of a line -> how Markdown writes it.
_MARKDOWN = {-1: "\n\n**{}**\n", 0: "\n\n{}", 1: "\n- {}", 2: "\n  - {}"}


def write_markdown(parts: Iterable[Grid | Line]) -> str:
    written = after_table = ""
    for part in parts:
        if isinstance(part, Grid):
            title = _MARKDOWN[-1].format(escape_markdown(part.title)) if part.title else ""
            header = [Cell(name) for name in part.header]
            align = ["---"] * part.words + ["---:"] * (len(header) - part.words)
            lines = [align if row is None else [*map(_write_markdown_cell, row)] for row in (header, None, *part.rows)]
            written += title + "".join(f"\n| {' | '.join(line)} |" for line in lines)
            after_table = "\n"
        else:
            written += after_table * (part.level > 0) + _MARKDOWN[part.level].format(escape_markdown(part.text))
            after_table = ""
    return written.lstrip("\n") + "\n"


def _write_markdown_cell(cell: Cell) -> str:
    return f"**{escape_markdown(cell.text)}**" if cell.best else escape_markdown(cell.text)


def escape_markdown(text: str) -> str:
    """Escape a text: a user's name of a system must not become markup or a new line."""
    return re.sub(r"([\\`*_{}\[\]<>#|~&$])", r"\\\1", _remove_line_breaks(text))


BOOKTABS = "% needs \\usepackage{booktabs}"


def write_tabular(grid: Grid) -> str:
    """Return a table without its title as a tabular of LaTeX."""
    columns = "l" * grid.words + "r" * (len(grid.header) - grid.words)
    rows = [
        [rf"\textbf{{{escape_latex(c.text)}}}" if c.best else escape_latex(c.text) for c in row] for row in grid.rows
    ]
    header, *body = (" & ".join(cells) + r" \\" for cells in [map(escape_latex, grid.header), *rows])
    begin, end = rf"\begin{{tabular}}{{{columns}}}", r"\end{tabular}"
    return "\n".join([begin, r"\toprule", header, r"\midrule", *body, r"\bottomrule", end])


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


def escape_latex(text: str) -> str:
    return "".join(_LATEX.get(sign, sign) for sign in _remove_line_breaks(text))


def _remove_line_breaks(text: str) -> str:
    return "".join(sign if sign.isprintable() else " " for sign in text)


def write_html(parts: Iterable[Grid | Line]) -> str:
    """Return the parts as HTML, with every text escaped."""
    shown = []
    for part in parts:
        if isinstance(part, Grid):
            shown.append(write_table(part.title, part.header, part.rows, words=part.words))
        else:
            text = f"<b>{escape_html(part.text)}</b>" if part.level < 0 else escape_html(part.text)
            shown.append(f'<div style="margin-left:{max(part.level, 0)}em">{text}</div>')
    return "".join(shown)


def build_rich_table(grid: Grid, **options: Any) -> Any:
    """Return a table for rich; options as of its class `Table`."""
    from rich.table import Table
    from rich.text import Text

    title = Text(escape_controls(grid.title)) if grid.title else None
    table = Table(title=title, title_justify="left", **options)
    for k, heading in enumerate(grid.header):
        table.add_column(Text(escape_controls(heading)), justify="left" if k < grid.words else "right", overflow="fold")
    for row in grid.rows:
        styles = ("bold" if cell.best else _TERMINAL_COLOURS.get(cell.verdict, "") for cell in row)
        table.add_row(*(Text(escape_controls(c.text), style=style) for c, style in zip(row, styles, strict=True)))
    return table


def write_plain(shown: Iterable[Any]) -> str:
    """Return what rich shows on a wide terminal without colour."""
    from rich.console import Console

    file = StringIO()
    Console(file=file, width=ANY_WIDTH, color_system=None).print(*shown, sep="\n")
    return "\n".join(line.rstrip() for line in file.getvalue().splitlines())


def format_interval(low: float | None, high: float | None, places: int, *, absent: str = ABSENT) -> str:
    return absent if low is None else f"[{format_signed(low, places)}, {format_signed(high, places)}]"


def format_number(value: float | None, places: int) -> str:
    """Return a number with so many decimals; -1 is full precision, and a whole number has none."""
    if value is None:
        return ABSENT
    return f"{value:.{places}f}" if places >= 0 and isinstance(value, float) else str(value)


def format_signed(value: float | None, places: int) -> str:
    """Return a number with its sign; one that is shown as zero has none."""
    if value is None:
        return ABSENT
    shown = format_number(value, places)
    if not value or not float(shown):
        return shown.lstrip("-")
    return shown if value < 0 else f"+{shown}"


def count_queries(queries: int) -> str:
    """Return a number of queries as text: 1 query, 2 queries."""
    return f"{queries:,} quer{'y' if queries == 1 else 'ies'}"


def format_bounds(row: Mapping[str, Any], places: int) -> str:
    """Return least and most of a row in brackets."""
    if row["most"] is None:
        return " (no bounds)"
    return f" [{format_number(row['least'], places)}, {format_number(row['most'], places)}]"


def format_probability(value: float | None, places: int, *, doubtful: bool) -> str:
    """Return a p-value; † marks a doubtful one."""
    if value is None:
        return ABSENT
    least = 10.0**-places
    shown = f"<{least:.{places}f}" if places > 0 and value < least else format_number(value, places)
    return f"{shown} †" if doubtful else shown


def show(value: float | None, sign: str = "") -> str:
    """Return a number with at most four decimals, and without those that are zero; with `+` it has its sign."""
    if value is None:
        return ABSENT
    shown = f"{value:{sign}.4f}".rstrip("0").rstrip(".")
    return "0" if shown in ("-0", "+0") else shown
