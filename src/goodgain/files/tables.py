"""Writes tables of results as Markdown, LaTeX with booktabs, HTML for a notebook, or data (CSV, TSV, JSON, Parquet)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from io import BytesIO
from itertools import takewhile
from typing import NamedTuple

import polars as pl

from goodgain.files.escaping import break_github_links, escape_html

#: What a cell shows for a number that does not exist.
ABSENT = "–"


class Cell(NamedTuple):
    """One cell of a table; `best` prints the cell in bold.

    The verdicts `better` and `worse` highlight a cell. `picture` is an SVG for HTML, and is not escaped. `marks` are superscripts
    in LaTeX: the letters of the systems with significantly worse means.
    """

    text: str
    best: bool = False
    verdict: str = ""
    picture: str = ""
    marks: str = ""


class Table(NamedTuple):
    """A table of texts.

    Attributes:
        words: the number of leading columns that hold words. All later columns hold numbers, which are never split across lines.
        name: the suffix of the LaTeX label; the tables of one result have different suffixes.
        notes: sentences below the table, such as the meaning of superscripts.
        drop: the headings of columns that a narrow terminal leaves out, in this order.
    """

    title: str
    header: Sequence[str]
    words: int
    rows: Sequence[Sequence[Cell]]
    name: str = ""
    notes: Sequence[str] = ()
    drop: Sequence[str] = ()

    @classmethod
    def of(cls, title: str, header: Sequence[str], words: int, rows: Iterable[Iterable[str]], name: str = "") -> Table:
        return cls(title, header, words, [[*map(Cell, row)] for row in rows], name)

    @classmethod
    def of_frame(cls, frame: pl.DataFrame, title: str = "", places: int | None = None) -> Table:
        """Return a frame as a table. `words` counts the columns before the first numeric column. Floats get `places` decimals."""
        words = len([*takewhile(lambda dtype: not dtype.is_numeric(), frame.dtypes)])
        rows = ([format_cell(value, places) for value in row] for row in frame.rows())
        return cls.of(title, frame.columns, words, rows)

    def drop_column(self, heading: str) -> Table:
        """Return the table without the columns of this heading."""
        places = [place for place, name in enumerate(self.header) if name != heading]
        header = [self.header[place] for place in places]
        rows = [[row[place] for place in places] for row in self.rows]
        words = sum(place < self.words for place in places)
        return self._replace(header=header, words=words, rows=rows)

    def turn(self, heading: str) -> Table:
        """Transpose a table in which only the first column holds words. `heading` becomes the heading of the new first column."""
        names, *columns = zip(*self.rows, strict=True)
        rows = [[Cell(name), *cells] for name, cells in zip(self.header[1:], columns, strict=True)]
        return self._replace(header=[heading, *(cell.text for cell in names)], rows=rows)


def format_number(value: float | None, places: int) -> str:
    """Write a float with `places` decimals, or in full precision if `places` is -1. Write an integer without decimals."""
    if value is None:
        return ABSENT
    return f"{value:.{places}f}" if places >= 0 and isinstance(value, float) else str(value)


def format_cell(value: object, places: int | None) -> str:
    """Return a value as text. With `places`, floats have that many decimals and null is a dash. Otherwise, null is empty."""
    if value is None:
        return "" if places is None else ABSENT
    if places is not None and isinstance(value, float):
        return f"{value:.{places}f}"
    return str(value)


class Line(NamedTuple):
    """A text and its level: -1 for a title, 0 for a paragraph, 1 for a list item, 2 for an item of a nested list."""

    text: str
    level: int = 0


#: Level of a line -> how Markdown writes it.
_MARKDOWN = {-1: "\n\n**{}**\n", 0: "\n\n{}", 1: "\n- {}", 2: "\n  - {}"}


def write_markdown(parts: Iterable[Table | Line]) -> str:
    """Return tables with their notes, and lines, as Markdown. All texts are escaped."""
    written = ""
    after_table = False
    for part in parts:
        lines = [part] if isinstance(part, Line) else [Line(note, 1) for note in part.notes]

        if isinstance(part, Table):
            if part.title:
                written += _write_markdown_line(Line(part.title, -1))
            written += _write_markdown_table(part)
            after_table = True
        for line in lines:
            if after_table and line.level > 0:  # else the item would be a row of the table
                written += "\n"
            written += _write_markdown_line(line)
            after_table = False
    return written.lstrip("\n") + "\n"


def _write_markdown_line(line: Line) -> str:
    return _MARKDOWN[line.level].format(escape_markdown(line.text))


def _write_markdown_table(table: Table) -> str:
    alignments = ["---"] * table.words + ["---:"] * (len(table.header) - table.words)
    header = [escape_markdown(name) for name in table.header]
    rows = [[_write_markdown_cell(cell) for cell in row] for row in table.rows]
    return "".join(f"\n| {' | '.join(row)} |" for row in [header, alignments, *rows])


def _write_markdown_cell(cell: Cell) -> str:
    text = escape_markdown(cell.text)
    return f"**{text}**" if cell.best else text


def escape_markdown(text: str) -> str:
    """Escape Markdown and remove line breaks: the name of a system must not become markup, or notify people on GitHub."""
    escaped = re.sub(r"([\\`*_{}\[\]<>#|~&$])", r"\\\1", _remove_line_breaks(text))
    return break_github_links(escaped)


BOOKTABS = "% needs \\usepackage{booktabs}"


def write_float(table: Table, label: str, size: str = "") -> str:
    """Return a table as a LaTeX float: caption, label, tabular and notes."""
    notes = "".join(f"\n{escape_latex(note)}\\par" for note in table.notes)
    if notes:
        notes = f"\n\\par\\footnotesize{notes}"
    head = f"\\begin{{table}}\n\\centering\n{size}\\caption{{{escape_latex(table.title)}}}\n\\label{{{label}}}"
    return f"{head}\n{write_tabular(table)}{notes}\n\\end{{table}}"


def write_tabular(table: Table) -> str:
    """Return a table as a LaTeX tabular, without the title."""
    columns, header, body = _write_latex_rows(table)
    begin, end = rf"\begin{{tabular}}{{{columns}}}", r"\end{tabular}"
    return "\n".join([begin, r"\toprule", header, r"\midrule", *body, r"\bottomrule", end])


def write_longtable(table: Table) -> str:
    """Return a table as a LaTeX longtable: it continues on the next page, where its header is repeated."""
    columns, header, body = _write_latex_rows(table)
    begin, end = rf"\begin{{longtable}}{{{columns}}}", r"\end{longtable}"
    head = [r"\toprule", header, r"\midrule", r"\endhead", r"\bottomrule", r"\endfoot"]
    return "\n".join([begin, *head, *body, end])


def _write_latex_rows(table: Table) -> tuple[str, str, list[str]]:
    """Return the alignments of the columns, the header, and the rows."""
    columns = "l" * table.words + "r" * (len(table.header) - table.words)
    header = _write_latex_row(map(escape_latex, table.header))
    body = [_write_latex_row(map(_write_latex_cell, row)) for row in table.rows]
    return columns, header, body


def _write_latex_row(texts: Iterable[str]) -> str:
    return " & ".join(texts) + r" \\"


def _write_latex_cell(cell: Cell) -> str:
    text = escape_latex(cell.text)
    if cell.best:
        text = rf"\textbf{{{text}}}"
    if cell.marks:
        text += f"$^{{{cell.marks}}}$"
    return text


def write_latex_comment(text: str) -> str:
    return f"% {_remove_line_breaks(text)}"


_LATEX = {sign: "\\" + sign for sign in "&%$#_{}"} | {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "↑": r"$\uparrow$",
    "↓": r"$\downarrow$",
    "†": r"$^\dagger$",
    "–": "--",
    "≤": r"$\le$",
    "≥": r"$\ge$",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "[": "{[}",  # after \\ a bracket would begin an optional argument
    "]": "{]}",
}


def escape_latex(text: str) -> str:
    text = _remove_line_breaks(text).replace("<=", "≤").replace(">=", "≥")
    return "".join(_LATEX.get(sign, sign) for sign in text)


def _remove_line_breaks(text: str) -> str:
    return "".join(sign if sign.isprintable() else " " for sign in text)


def write_html(parts: Iterable[Table | Line]) -> str:
    """Return tables and lines as HTML for a notebook. Every text is escaped: names and ids come from users.

    >>> write_html([Table.of("", ["measure", "a<b"], 1, [["CG", "1.0"]])]).count("&lt;")
    1
    """
    elements = []
    for part in parts:
        if isinstance(part, Table):
            elements.append(_write_html_table(part))
            elements += [f"<small>{escape_html(note)}</small>" for note in part.notes]
        else:
            text = escape_html(part.text)
            if part.level < 0:
                text = f"<b>{text}</b>"
            elements.append(f'<div style="margin-left:{max(part.level, 0)}em">{text}</div>')
    return "".join(elements)


def _write_html_table(table: Table) -> str:
    sides = ["left"] * table.words + ["right"] * (len(table.header) - table.words)
    caption = ""
    if table.title:
        caption = f'<caption style="text-align:left">{escape_html(table.title)}</caption>'
    headings = map(escape_html, table.header)
    head = "".join(map('<th style="text-align:{}">{}</th>'.format, sides, headings))
    body = ""
    for row in table.rows:
        cells = "".join(map(_write_html_cell, row, sides))
        body += f"<tr>{cells}</tr>"
    return f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _write_html_cell(cell: Cell, side: str) -> str:
    text = escape_html(cell.text)
    if cell.best or cell.verdict in ("better", "worse"):
        text = f"<b>{text}</b>"
    return f'<td style="text-align:{side}">{cell.picture}{text}</td>'


def write_shown(table: Table, form: str, *, is_long: bool = False) -> str:
    """Return a table as `markdown`, or as a `latex` tabular without a float. A long table is a longtable in LaTeX."""
    if form == "markdown":
        return write_markdown([table])
    if is_long:
        return f"{BOOKTABS} and \\usepackage{{longtable}}\n{write_longtable(table)}\n"
    return f"{BOOKTABS}\n{write_tabular(table)}\n"


def count_in_order(text: str) -> list[tuple[str, int, str]]:
    """Return a key that sorts ids as people count.

    >>> sorted(["q10", "q9", "106_10", "106_2"], key=count_in_order)
    ['106_2', '106_10', 'q9', 'q10']
    """
    key = []
    for word, number in re.findall(r"([^0-9]*)([0-9]*)", text):
        digits = number.lstrip("0")
        key.append((word, len(digits), digits))  # a number with more digits is larger
    return key


def sort_ids(frame: pl.DataFrame, *, within: Sequence[str] = ()) -> pl.DataFrame:
    """Sort rows by query_id as people count, inside each block of rows with equal values of `within`. Ties keep their order."""
    ids = sorted(frame.get_column("query_id").unique(), key=count_in_order)
    blocks = [pl.struct(within).rle_id()] if within else []
    return frame.sort(*blocks, pl.col("query_id").cast(pl.Enum(ids)), maintain_order=True)


def write_data(frame: pl.DataFrame, form: str) -> str | bytes:
    """Return a frame in the format `csv`, `tsv`, `json`, `jsonl` or `parquet`."""
    if form in ("csv", "tsv"):
        return frame.write_csv(separator="," if form == "csv" else "\t")
    if form == "json":
        return json.dumps(frame.to_dicts(), ensure_ascii=False, allow_nan=False, indent=2) + "\n"
    if form == "jsonl":
        return frame.write_ndjson()
    content = BytesIO()  # a full or closed standard output must raise the error of Python, not of Polars
    frame.write_parquet(content)
    return content.getvalue()
