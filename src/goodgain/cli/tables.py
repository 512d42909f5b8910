"""Prints frames, and values of measures for several systems, in the form that the user asked for."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import polars as pl

from goodgain.cli.streams import open_console
from goodgain.files.safe_text import escape_columns, escape_controls, guard_formulas
from goodgain.measures import MEASURES
from goodgain.measures.ranked import RANKED_MEASURES

__all__ = ["Value", "draw_sparkline", "format_signature", "print_frame", "print_sparklines", "print_values"]

#: The signs of a sparkline, from the lowest to the highest value.
_BARS = "▁▂▃▄▅▆▇█"

#: The largest number of signs in a sparkline.
_MOST_SIGNS = 40

#: The width in which a name of a query, measure or system has room beside the values; longer ones go on below.
_NAME_WIDTH = 16


_NO_BOUNDS = "no bounds"


class Value(NamedTuple):
    """One value of a measure.

    Attributes:
        query_id: None for a value over all queries, which is not a query called `all`.
        measure: its name.
        system: the name of the system.
        value: the value; None where there is none.
        queries: the number of queries that a mean is over, where that is not all of them by definition.
        bounds: the least and the most that it could be, None and None for a measure without bounds; None if bounds were
            not asked for.
    """

    query_id: str | None
    measure: str
    system: str
    value: float | int | None
    queries: int | None = None
    bounds: tuple[float | None, float | None] | None = None


def format_signature(signature: Mapping[str, Any]) -> str:
    """Return a signature as one line, shares with four decimals.

    >>> format_signature({"rel": [2, 3], "queries": 7, "unjudged": 0.25})
    'rel=2,3 queries=7 unjudged=0.2500'
    """
    shown = dict(signature)
    if "unjudged" in shown:
        shown["unjudged"] = f"{shown['unjudged']:.4f}"
    lists = {name: ",".join(map(str, value)) for name, value in shown.items() if isinstance(value, list)}
    return " ".join(f"{name}={value}" for name, value in (shown | lists).items())


def print_frame(frame: pl.DataFrame, output_format: str, *, spreadsheet: bool = False) -> None:
    """Print every row of a frame as `table`, `csv` (for a spreadsheet, without formulas), `jsonl` or `parquet`."""
    if output_format == "table":
        whole = {"tbl_rows": -1, "tbl_cols": -1, "tbl_width_chars": -1, "fmt_str_lengths": 10_000}
        with pl.Config(**whole, tbl_hide_dataframe_shape=True, tbl_hide_column_data_types=True):  # type: ignore[arg-type]  # options by name
            print(escape_columns(frame))
    elif output_format == "csv":
        print((guard_formulas(frame) if spreadsheet else frame).write_csv(), end="")
    elif output_format == "jsonl":
        print(frame.write_ndjson(), end="")
    else:
        content = io.BytesIO()  # Polars would raise an error of its own where standard output is full or closed
        frame.write_parquet(content)
        sys.stdout.buffer.write(content.getvalue())
        sys.stdout.buffer.flush()


def print_values(
    values: Sequence[Value], *, output_format: str, rows: str, places: int, by_query: bool, named: bool = True
) -> None:
    """Print values as `table`, `tsv` or `jsonl`.

    Args:
        values: in the order in which they are shown.
        output_format: JSON Lines has one value a line, a table or TSV one column for each system or measure.
        rows: `measures` or `systems`: what has a row of its own in a table or TSV.
        places: decimals of a table or TSV; -1 for full precision.
        by_query: whether to show the query.
        named: whether to name systems; if not, there is one, and TSV has no header, as ir_measures prints it.
    """
    if output_format == "jsonl":
        for one in values:
            row: dict[str, Any] = ({"system": one.system} if named else {}) | (
                {"query_id": _name_query(one)} if by_query else {}
            )
            row |= {"measure": one.measure, "value": one.value}
            row |= {} if one.queries is None else {"queries": one.queries}
            row |= {} if one.bounds is None else dict(zip(("least", "most"), one.bounds, strict=True))
            print(json.dumps(row, allow_nan=False))
        return
    header, body = _arrange(values, rows=rows, by_query=by_query)
    if not named and rows == "measures":
        header[-1] = "value"
    if output_format == "tsv":
        if named or rows == "systems":
            print(*_add_columns(header, body), sep="\t")
        for words, cells in body:
            print(*words, *(text for cell in cells for text in _write_columns(cell, places)), sep="\t")
    else:
        _print_table(header, body, places, rows=rows)


#: The words of a row, the query first if it is shown, and its values; None where a system has no such row.
_Row = tuple[list[str], list[Value | None]]


def _arrange(values: Sequence[Value], *, rows: str, by_query: bool) -> tuple[list[str], list[_Row]]:
    """Return the header and the rows of a table."""
    name, across = ("measure", "system") if rows == "measures" else ("system", "measure")
    columns = list(dict.fromkeys(getattr(one, across) for one in values))
    cells: dict[tuple[str | None, str], tuple[list[str], dict[str, Value]]] = {}
    for one in values:
        words = [*([_name_query(one)] if by_query else []), getattr(one, name)]
        _, of = cells.setdefault((one.query_id, getattr(one, name)), (words, {}))
        of[getattr(one, across)] = one
    header = [*(["query"] if by_query else []), name, *columns]
    return header, [(words, [of.get(column) for column in columns]) for words, of in cells.values()]


def _name_query(value: Value) -> str:
    return "all" if value.query_id is None else value.query_id


def _print_table(header: list[str], body: Sequence[_Row], places: int, *, rows: str) -> None:
    from rich.cells import cell_len
    from rich.table import Table
    from rich.text import Text

    words = len(body[0][0])
    show_name, show_heading = (_add_arrow, str) if rows == "measures" else (str, _add_arrow)
    table = Table()
    for heading in header[:words]:
        table.add_column(heading, overflow="fold")
    for heading in header[words:]:
        table.add_column(Text(escape_controls(show_heading(heading))), justify="right", no_wrap=True)
    for number, (names, values) in enumerate(body):
        ends = words > 1 and number + 1 < len(body) and body[number + 1][0][0] != names[0]
        cells = [Text(escape_controls(name)) for name in (*names[:-1], show_name(names[-1]))]
        table.add_row(*cells, *(Text(_write_cell(value, places)) for value in values), end_section=ends)
    console = open_console(sys.stdout)
    # rich would cut numbers in a narrow console, and leave out names: a table that is wider goes on in the next line.
    columns = [[column.header, *column.cells] for column in table.columns]
    widths = [max(cell_len(str(cell)) for cell in cells) for cells in columns]
    widths[:words] = [min(width, _NAME_WIDTH) for width in widths[:words]]
    console.width = max(console.width, sum(widths) + 3 * len(widths) + 1)
    console.print(table)
    for sentence in _explain_cells([value for _, values in body for value in values if value is not None]):
        open_console(sys.stdout).print(Text(sentence))


def _explain_cells(values: Sequence[Value]) -> Iterator[str]:
    """Yield what has to be known of cells with more than a value."""
    if any(value.queries is not None for value in values):
        yield "(n): the mean is over the n queries that have a value."
    if any(value.bounds is not None for value in values):
        yield "[least, most]: the value with every unjudged result at 0, and at the largest label of the qrels."


def _write_cell(value: Value | None, places: int) -> str:
    """Return a value with what belongs beside it, for a table."""
    if value is None:
        return _format_value(None, places)
    text = _format_value(value.value, places) + (f" ({value.queries:,})" if value.queries is not None else "")
    if value.bounds is None:
        return text
    least, most = value.bounds
    bounds = _NO_BOUNDS if most is None else f"[{_format_value(least, places)}, {_format_value(most, places)}]"
    return f"{text} {bounds}"


def _write_columns(value: Value | None, places: int) -> list[str]:
    """Return a value for TSV, in one column, or in three with its bounds."""
    texts = [_format_value(None if value is None else value.value, places)]
    if value is None or value.bounds is None:
        return texts
    return texts + [_NO_BOUNDS if bound is None else _format_value(bound, places) for bound in value.bounds]


def _add_columns(header: list[str], body: Sequence[_Row]) -> list[str]:
    """Return the header of TSV: with bounds, each system or measure has three columns."""
    words, values = body[0]
    names = header[: len(words)]
    for name, value in zip(header[len(words) :], values, strict=True):
        has_bounds = value is not None and value.bounds is not None
        names += [name, f"{name} least", f"{name} most"] if has_bounds else [name]
    return names


def print_sparklines(frame: pl.DataFrame, places: int) -> None:
    """Print each curve of a frame of `goodgain.curve` as a line of small bars, with its first and its last mean.

    The bars of a measure have one scale for all systems, from 0 to its highest mean.
    """
    from rich.table import Table
    from rich.text import Text

    last: Any = frame.get_column("iteration").max()
    table = Table(title=f"Iterations 1 to {last}", title_justify="left")
    for heading in ("measure", "system"):
        table.add_column(heading, overflow="fold")
    for heading in ("first", "curve", "last"):
        table.add_column(heading, justify="left" if heading == "curve" else "right", no_wrap=True)
    for of in frame.partition_by("measure", maintain_order=True):
        top: Any = of.get_column("mean").max()
        for line in of.partition_by("system", maintain_order=True):
            system, measure = line.select("system", "measure").row(0)
            means = line.get_column("mean").to_list()
            ends = [_format_value(mean, places) for mean in (means[0], means[-1])]
            cells = [_add_arrow(measure), system, ends[0], draw_sparkline(means, top or 0.0), ends[1]]
            table.add_row(*(Text(escape_controls(cell)) for cell in cells))
    open_console(sys.stdout).print(table)


def draw_sparkline(values: Sequence[float | None], top: float) -> str:
    """Return values as a line of small bars, from 0 to `top`; a dot where there is no value.

    Of more than 40 values, 40 at equal distances are shown, the last among them.

    >>> draw_sparkline([0.0, 2.0, None, 4.0], 4.0)
    '▁▅·█'
    """
    shown = list(values)
    if len(shown) > _MOST_SIGNS:
        shown = [shown[(k + 1) * len(values) // _MOST_SIGNS - 1] for k in range(_MOST_SIGNS)]
    highest = len(_BARS) - 1
    levels = [None if value is None else round(highest * max(value, 0.0) / top) if top > 0 else 0 for value in shown]
    return "".join("·" if level is None else _BARS[min(level, highest)] for level in levels)


def _add_arrow(name: str) -> str:
    """Return the name of a measure that no host has with the arrow of its better direction, and any other as it is."""
    bare = name.split("@")[0].split("(")[0]
    ranked = RANKED_MEASURES.get(bare)
    declared = MEASURES[bare].declaration if bare in MEASURES else ranked
    return f"{name} {declared.arrow}" if declared and declared.family != "classic" else name


def _format_value(value: float | int | None, places: int) -> str:
    if value is None:
        return "–"
    return f"{value:.{places}f}" if places >= 0 and isinstance(value, float) else str(value)
