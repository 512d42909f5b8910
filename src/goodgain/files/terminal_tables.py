"""Draws tables on a terminal. A narrow terminal shortens long names and leaves out columns, but breaks no word or number."""

import re
from collections.abc import Iterable, Iterator, Sequence
from io import StringIO
from typing import Any

from goodgain.errors import escape_controls
from goodgain.files.tables import Table

ANY_WIDTH = 10_000
_COLOURS = {"better": "green", "worse": "red"}
#: Lengths of shortened names on a narrow terminal, tried in this order; the most names to shorten.
_LENGTHS, _MOST_NAMES = (32, 24, 16, 12), 20


def draw_table(table: Table, width: int = ANY_WIDTH, *, brief: bool = False, by_first: bool = False) -> Iterator[Any]:
    """Yield objects for rich to print: the table, its notes, the full form of shortened names, and the omitted headings.

    `width` is the width of the terminal. If no column can be left out, the table can be wider. `brief` draws no borders.
    `by_first` draws a line where the text of the first column changes.
    """
    from rich import box
    from rich.table import Table as Drawn
    from rich.text import Text

    between, edges = (2, -1) if brief else (3, 1)
    shown, below, widths = _fit(_escape(table), width - edges, between)
    style: dict[str, Any] = {"box": box.SIMPLE_HEAD, "padding": (0, 1, 0, 0), "show_edge": False} if brief else {}
    drawn = Drawn(title=Text(shown.title) if shown.title else None, title_justify="left", **style)
    for k, (heading, size) in enumerate(zip(shown.header, widths, strict=True)):
        drawn.add_column(Text(heading), justify="left" if k < shown.words else "right", overflow="fold", width=size)
    for row, following in zip(shown.rows, [*shown.rows, None][1:], strict=True):
        styles = ("bold" if cell.best else _COLOURS.get(cell.verdict, "") for cell in row)
        cells = (Text(cell.text, style=style) for cell, style in zip(row, styles, strict=True))
        drawn.add_row(*cells, end_section=by_first and following is not None and following[0] != row[0])
    yield drawn
    yield from map(Text, [*shown.notes, *below])


def print_drawn(console: Any, shown: Sequence[Any]) -> None:
    """Print with rich. The terminal wraps the lines of a table that is too wide."""
    from rich.table import Table as Drawn

    whole = console.options.update(max_width=ANY_WIDTH)
    widths = [console.measure(one, options=whole).maximum for one in shown if isinstance(one, Drawn)]
    console.width = max([console.width, *widths])
    console.print(*shown, sep="\n")


def write_plain(shown: Iterable[Any]) -> str:
    """Return the text that rich prints on a wide terminal without colours."""
    from rich.console import Console

    file = StringIO()
    Console(file=file, width=ANY_WIDTH, color_system=None).print(*shown, sep="\n")
    return "\n".join(line.rstrip() for line in file.getvalue().splitlines())


def _escape(table: Table) -> Table:
    rows = [[cell._replace(text=escape_controls(cell.text)) for cell in row] for row in table.rows]
    title, *texts = map(escape_controls, [table.title, *table.header])
    return table._replace(title=title, header=texts, rows=rows, notes=[*map(escape_controls, table.notes)])


def _fit(table: Table, width: int, between: int) -> tuple[Table, list[str], list[int]]:
    """Fit a table to a width. Return the table, notes on shortened names and omitted columns, and the column widths."""
    shown, names, left_out = table, dict[str, str](), []

    def fits() -> bool:
        return sum(least + between for least, _ in _measure(shown)) <= width

    for length in _LENGTHS:
        if fits():
            break
        names = _shorten_names(table, length) or names
        shown = _rename(table, names)
    for heading in table.drop:
        if fits():
            break
        if heading in table.header:
            table = table.drop_column(heading)
            shown = _rename(table, names)
            left_out.append(heading)
    if not fits():
        shown, names = table, {}
    texts = {cell for row in [shown.header, *([one.text for one in row] for row in shown.rows)] for cell in row}
    used = {word for text in texts for word in text.split(" ")}
    below = [f"{short}: {name}" for name, short in names.items() if short in used]
    if left_out:
        below.append(f"Left out because the terminal is narrow: {', '.join(left_out)}.")
    least, most = zip(*_measure(shown), strict=True)
    widths, room = list(least), width - between * len(least)
    order = sorted(range(len(least)), key=lambda k: most[k] - least[k])
    for rank, k in enumerate(order):
        widths[k] += min(most[k] - least[k], max(room - sum(widths), 0) // (len(order) - rank))
    return shown, below, widths


def _measure(table: Table) -> Iterator[tuple[int, int]]:
    """Yield the smallest and the largest width of each column: words can wrap at blanks, numbers cannot."""
    from rich.cells import cell_len

    columns = zip(table.header, *([one.text for one in row] for row in table.rows), strict=True)
    for k, (heading, *cells) in enumerate(columns):
        numbers = [text for text in cells if k >= table.words and any(map(str.isdigit, text))]
        words = [part for text in {heading, *cells} - {*numbers} for part in re.split(r" (?![↑↓])", text)]
        yield max(map(cell_len, [*numbers, *words])), max(map(cell_len, [heading, *cells]))


def _shorten_names(table: Table, length: int) -> dict[str, str]:
    """Map long words to short ones. Return {} if too many words are long, or if two short words would be equal."""
    texts = [*table.header, *(cell.text for row in table.rows for cell in row[: table.words])]
    words = dict.fromkeys(word for text in texts for word in text.split(" "))
    long = [word for word in words if len(word) > length]
    half = length // 2
    short = {word: f"{word[: length - half - 1]}…{word[-half:]}" for word in long}
    return short if len(long) <= _MOST_NAMES and len({*short.values()}) == len(long) else {}


def _rename(table: Table, names: dict[str, str]) -> Table:
    def rename(text: str) -> str:
        return " ".join(names.get(word, word) for word in text.split(" "))

    words = table.words
    rows = [[*(cell._replace(text=rename(cell.text)) for cell in row[:words]), *row[words:]] for row in table.rows]
    return table._replace(header=[*map(rename, table.header)], rows=rows)
