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

    gap, edges = 3, 1
    style: dict[str, Any] = {}
    if brief:
        gap, edges = 2, -1
        style = {"box": box.SIMPLE_HEAD, "padding": (0, 1, 0, 0), "show_edge": False}
    fitted, notes, widths = _fit(_escape(table), width - edges, gap)
    title = Text(fitted.title) if fitted.title else None
    drawn = Drawn(title=title, title_justify="left", **style)
    for place, (heading, size) in enumerate(zip(fitted.header, widths, strict=True)):
        side: Any = "left" if place < fitted.words else "right"
        drawn.add_column(Text(heading), justify=side, overflow="fold", width=size)

    for row, next_row in zip(fitted.rows, [*fitted.rows, None][1:], strict=True):
        cells = []
        for cell in row:
            colour = _COLOURS.get(cell.verdict, "")
            cells.append(Text(cell.text, style="bold" if cell.best else colour))
        ends_section = by_first and next_row is not None and next_row[0] != row[0]
        drawn.add_row(*cells, end_section=ends_section)
    yield drawn
    yield from map(Text, [*fitted.notes, *notes])


def print_drawn(console: Any, drawn: Sequence[Any]) -> None:
    """Print with rich. The terminal wraps the lines of a table that is too wide."""
    from rich.table import Table as Drawn

    wide = console.options.update(max_width=ANY_WIDTH)
    widths = [console.measure(table, options=wide).maximum for table in drawn if isinstance(table, Drawn)]
    console.width = max([console.width, *widths])
    console.print(*drawn, sep="\n")


def write_plain(drawn: Iterable[Any]) -> str:
    """Return the text that rich prints on a wide terminal without colours."""
    from rich.console import Console

    file = StringIO()
    Console(file=file, width=ANY_WIDTH, color_system=None).print(*drawn, sep="\n")
    return "\n".join(line.rstrip() for line in file.getvalue().splitlines())


def _escape(table: Table) -> Table:
    """Return the table with control characters escaped in all texts."""
    rows = [[cell._replace(text=escape_controls(cell.text)) for cell in row] for row in table.rows]
    return table._replace(
        title=escape_controls(table.title),
        header=[*map(escape_controls, table.header)],
        rows=rows,
        notes=[*map(escape_controls, table.notes)],
    )


def _fit(table: Table, width: int, gap: int) -> tuple[Table, list[str], list[int]]:
    """Fit a table to a width. Return the table, notes on shortened names and omitted columns, and the column widths."""
    fitted = table
    short_names: dict[str, str] = {}
    left_out = []
    for length in _LENGTHS:
        if _is_narrow(fitted, width, gap):
            break
        short_names = _shorten_names(table, length) or short_names
        fitted = _rename(table, short_names)
    for heading in table.drop:
        if _is_narrow(fitted, width, gap):
            break
        if heading in table.header:
            table = table.drop_column(heading)
            fitted = _rename(table, short_names)
            left_out.append(heading)
    if not _is_narrow(fitted, width, gap):
        fitted = table
        short_names = {}

    words = _list_words(fitted)
    notes = [f"{short}: {name}" for name, short in short_names.items() if short in words]
    if left_out:
        notes.append(f"Left out because the terminal is narrow: {', '.join(left_out)}.")
    return fitted, notes, _divide_width(fitted, width - gap * len(fitted.header))


def _is_narrow(table: Table, width: int, gap: int) -> bool:
    return sum(least + gap for least, _ in _measure(table)) <= width


def _list_words(table: Table) -> set[str]:
    texts = set(table.header)
    for row in table.rows:
        texts.update(cell.text for cell in row)
    return {word for text in texts for word in text.split(" ")}


def _divide_width(table: Table, width: int) -> list[int]:
    """Return the width of each column: at least its smallest width. The columns that need least get more room first."""
    least, most = zip(*_measure(table), strict=True)
    widths = list(least)
    order = sorted(range(len(least)), key=lambda column: most[column] - least[column])
    for rank, column in enumerate(order):
        share = max(width - sum(widths), 0) // (len(order) - rank)
        widths[column] += min(most[column] - least[column], share)
    return widths


def _measure(table: Table) -> Iterator[tuple[int, int]]:
    """Yield the smallest and the largest width of each column: words can wrap at blanks, numbers cannot."""
    from rich.cells import cell_len

    rows = ([cell.text for cell in row] for row in table.rows)
    for place, (heading, *texts) in enumerate(zip(table.header, *rows, strict=True)):
        numbers = []
        if place >= table.words:
            numbers = [text for text in texts if any(map(str.isdigit, text))]
        phrases = {heading, *texts} - {*numbers}
        words = [word for phrase in phrases for word in re.split(r" (?![↑↓])", phrase)]
        yield max(map(cell_len, [*numbers, *words])), max(map(cell_len, [heading, *texts]))


def _shorten_names(table: Table, length: int) -> dict[str, str]:
    """Map long words to short ones. Return {} if too many words are long, or if two short words would be equal."""
    texts = list(table.header)
    for row in table.rows:
        texts += [cell.text for cell in row[: table.words]]
    words = dict.fromkeys(word for text in texts for word in text.split(" "))
    long_words = [word for word in words if len(word) > length]
    half = length // 2
    short_names = {word: f"{word[: length - half - 1]}…{word[-half:]}" for word in long_words}
    are_different = len({*short_names.values()}) == len(long_words)
    return short_names if len(long_words) <= _MOST_NAMES and are_different else {}


def _rename(table: Table, names: dict[str, str]) -> Table:
    """Replace words by the short ones in the header and in the leading columns of words. Numbers stay."""

    def rename(text: str) -> str:
        return " ".join(names.get(word, word) for word in text.split(" "))

    rows = []
    for row in table.rows:
        renamed = [cell._replace(text=rename(cell.text)) for cell in row[: table.words]]
        rows.append([*renamed, *row[table.words :]])
    return table._replace(header=[*map(rename, table.header)], rows=rows)
