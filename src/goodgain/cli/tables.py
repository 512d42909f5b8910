"""Prints frames, and values of measures for several systems, in the form that the user asked for."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import polars as pl

from goodgain.cli.streams import open_console
from goodgain.files.safe_text import escape_columns, escape_controls, guard_formulas
from goodgain.measures import MEASURES
from goodgain.measures.ranked import RANKED_MEASURES

__all__ = ["Value", "format_signature", "print_frame", "print_values"]


class Value(NamedTuple):
    """One value of a measure; `query_id` is None for one over all queries, which is not a query called `all`."""

    query_id: str | None
    measure: str
    system: str
    value: float | int | None


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
            row = ({"system": one.system} if named else {}) | ({"query_id": _name_query(one)} if by_query else {})
            print(json.dumps(row | {"measure": one.measure, "value": one.value}, allow_nan=False))
        return
    header, body = _arrange(values, rows=rows, by_query=by_query)
    if not named and rows == "measures":
        header[-1] = "value"
    if output_format == "tsv":
        if named or rows == "systems":
            print(*header, sep="\t")
        for words, numbers in body:
            print(*words, *(_format_value(number, places) for number in numbers), sep="\t")
    else:
        _print_table(header, body, places, rows=rows)


#: The words of a row, the query first if it is shown, and its numbers.
_Row = tuple[list[str], list[float | int | None]]


def _arrange(values: Sequence[Value], *, rows: str, by_query: bool) -> tuple[list[str], list[_Row]]:
    """Return the header and the rows of a table."""
    name, across = ("measure", "system") if rows == "measures" else ("system", "measure")
    columns = list(dict.fromkeys(getattr(one, across) for one in values))
    cells: dict[tuple[str | None, str], tuple[list[str], dict[str, float | int | None]]] = {}
    for one in values:
        words = [*([_name_query(one)] if by_query else []), getattr(one, name)]
        _, of = cells.setdefault((one.query_id, getattr(one, name)), (words, {}))
        of[getattr(one, across)] = one.value
    header = [*(["query"] if by_query else []), name, *columns]
    return header, [(words, [of.get(column) for column in columns]) for words, of in cells.values()]


def _name_query(value: Value) -> str:
    return "all" if value.query_id is None else value.query_id


def _print_table(header: list[str], body: Sequence[_Row], places: int, *, rows: str) -> None:
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
        table.add_row(*cells, *(_format_value(value, places) for value in values), end_section=ends)
    open_console(sys.stdout).print(table)


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
