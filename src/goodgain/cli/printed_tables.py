"""Prints frames and values of measures in the requested form."""

import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from types import MappingProxyType
from typing import Any, NamedTuple, TextIO

import polars as pl

from goodgain.cli.shared_options import Options, Output, say
from goodgain.files.escaping import escape_columns, guard_formulas
from goodgain.files.tables import Table, format_number, write_data, write_shown
from goodgain.files.terminal_tables import ANY_WIDTH, draw_table, print_drawn
from goodgain.files.writing import atomic_write
from goodgain.measures.declaration import DECLARATIONS, add_arrow
from goodgain.measures.names import find_direction, parse_measure

#: The characters of a sparkline by ascending value, and the most characters of a sparkline.
_BARS, _MOST_SIGNS = "▁▂▃▄▅▆▇█", 40
#: On a narrower terminal (COLUMNS=0) rich leaves out columns, or the whole table.
_LEAST_WIDTH = 40


def open_console(stream: TextIO) -> Any:
    """Return a `rich` console for a standard stream. Nothing is escaped, because cells of tables already are."""
    from rich.console import Console

    console = Console(file=getattr(stream, "raw", stream))
    console.width = max(console.width, _LEAST_WIDTH)
    return console


def find_table_width(console: Any) -> int:
    """Return the width that tables must fit. A pipe or a file has no width, so nothing is left out there."""
    return console.width if console.is_terminal or "COLUMNS" in os.environ else ANY_WIDTH


#: The names of the two ends of bounds, and of an interval.
BOUNDS, INTERVAL = ("least", "most"), ("low", "high")
_NO_ENDS: Mapping[str, float | None] = MappingProxyType({})


class Value(NamedTuple):
    query_id: str | None  # None: over all queries
    measure: str
    system: str
    value: float | int | None
    queries: int | None = None  # queries with a value, for a mean that can leave out queries
    #: The ends of the bounds or the interval, if requested. An end is None if the measure has none.
    ends: Mapping[str, float | None] = _NO_ENDS
    group: str | None = None

    @property
    def group_or_all(self) -> str:
        return self.group or ("all" if self.query_id is None else "")

    @property
    def query(self) -> str:
        return "all" if self.query_id is None else self.query_id


def format_signature(signature: Mapping[str, Any]) -> str:
    """Return a signature as one line. Shares have four decimals.

    >>> format_signature({"rel": [2, 3], "queries": 7, "unjudged": 0.25})
    'rel=2,3 queries=7 unjudged=0.2500'
    """
    fields = []
    for name, value in signature.items():
        if isinstance(value, list):
            text = ",".join(map(str, value))
        elif name == "unjudged":
            text = f"{value:.4f}"
        else:
            text = str(value)
        fields.append(f"{name}={text}")
    return " ".join(fields)


def print_frame(frame: pl.DataFrame, output: Output, *, places: int = -1, spreadsheet: bool = False) -> None:
    """Print all rows of a frame, or write them to a file. `spreadsheet` guards CSV against formulas.

    Markdown and LaTeX have floats with `places` decimals; data (CSV, JSON ...) and places=-1 are in full precision.
    """
    if output.form == "table":
        no_limits = {"tbl_rows": -1, "tbl_cols": -1, "tbl_width_chars": -1, "fmt_str_lengths": 10_000}
        with pl.Config(**no_limits, tbl_hide_dataframe_shape=True, tbl_hide_column_data_types=True):  # type: ignore[arg-type]  # options by name
            print(escape_columns(frame))
    elif output.form in ("markdown", "latex"):
        table = Table.of_frame(frame, places=None if places < 0 else places)
        write_output(write_shown(table, output.form), output)
    else:
        if spreadsheet:
            frame = guard_formulas(frame)
        write_output(write_data(frame, output.form), output)


def write_output(content: str | bytes, output: Output) -> None:
    """Write to the file of `output`, and say so on standard error; without a file, write to standard output."""
    data = content.encode() if isinstance(content, str) else content
    if output.path is not None:
        with atomic_write(output.path) as file:
            file.write(data)
        say(f"written: {output.path}")
    elif isinstance(content, str):
        print(content, end="")
    else:
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()


def print_values(
    values: Sequence[Value], options: Options, *, by_query: bool = False, named: bool = True, interval: str = ""
) -> None:
    """Print values in the given order, or write them to a file.

    JSON, CSV and Parquet have a row per value. In all other forms, `options.rows` says whether the rows are systems or measures.
    LaTeX by query has a row per query in place of rows of measures, in a table that may take several pages.
    `interval` is a description of the intervals. With `named=False`, the system's name is printed only as
    the name of a row. TSV with measures as rows then has no header, as in ir_measures.
    """
    rows, places, output = options.rows, options.places, options.output
    if output.form in ("json", "jsonl", "csv", "parquet"):
        has_groups = _has_groups(values)
        objects = [_list_fields(value, by_query=by_query, has_groups=has_groups, named=named) for value in values]
        if output.form == "jsonl":
            write_output("".join(json.dumps(fields, allow_nan=False) + "\n" for fields in objects), output)
        else:
            print_frame(pl.DataFrame(objects, infer_schema_length=None), output)
        return

    is_long = output.form == "latex" and by_query
    if is_long and rows == "measures":
        header, body = _spread_measures(values, named=named)
    else:
        header, body = _arrange(values, rows=rows, by_query=by_query)
        if not named and rows == "measures":
            header[-1] = "value"

    if output.form == "tsv":
        lines = [[*words, *_write_fields(cells, places)] for words, cells in body]
        if named or rows == "systems":
            lines.insert(0, _add_ends(header, body[0]))
        write_output("".join("\t".join(line) + "\n" for line in lines), output)
    elif output.form == "table":
        _print_table(header, body, places, rows=rows, interval=interval)
    else:
        write_output(write_shown(_build_table(header, body, places), output.form, is_long=is_long), output)


def _has_groups(values: Sequence[Value]) -> bool:
    return any(value.group is not None for value in values)


def _list_fields(value: Value, *, by_query: bool, has_groups: bool, named: bool) -> dict[str, Any]:
    """Return the fields of the row that JSON, CSV or Parquet have for a value."""
    fields: dict[str, Any] = {}
    if named:
        fields["system"] = value.system
    if has_groups:
        fields["group"] = value.group_or_all
    if by_query:
        fields["query_id"] = value.query
    fields |= {"measure": value.measure, "value": value.value}
    if value.queries is not None:
        fields["queries"] = value.queries
    return fields | dict(value.ends)


#: The words of a row (the query first, if shown) and the values.
_Row = tuple[list[str], list[Value]]
_NO_VALUE = Value(None, "", "", None)


def _arrange(values: Sequence[Value], *, rows: str, by_query: bool) -> tuple[list[str], list[_Row]]:
    """Return the header and the body of a table whose rows are measures and whose columns are systems, or the other way round."""
    row_kind, column_kind = ("measure", "system") if rows == "measures" else ("system", "measure")
    columns = dict.fromkeys(getattr(value, column_kind) for value in values)
    cells: dict[tuple[str | None, str | None, str], dict[str, Value]] = {}  # row -> column -> value
    for value in values:
        row = (value.query_id, value.group, getattr(value, row_kind))
        cells.setdefault(row, {})[getattr(value, column_kind)] = value

    # columns of words: the query, the group, the measure or the system
    has_groups = _has_groups(values)
    header = [row_kind, *columns]
    if has_groups:
        header.insert(0, "group")
    if by_query:
        header.insert(0, "query")

    body = []
    for (*_, word), value_of in cells.items():
        first = next(iter(value_of.values()))
        words = [word]
        if has_groups:
            words.insert(0, first.group_or_all)
        if by_query:
            words.insert(0, first.query)
        body.append((words, [value_of.get(column, _NO_VALUE) for column in columns]))
    return header, body


def _spread_measures(values: Sequence[Value], *, named: bool) -> tuple[list[str], list[_Row]]:
    """Arrange values in a row per query, or per group of queries, with a column per measure and system."""
    has_groups = _has_groups(values)
    headings = dict.fromkeys((value.measure, value.system) for value in values)
    cells: dict[tuple[str, ...], dict[tuple[str, str], Value]] = {}
    for value in values:
        words: tuple[str, ...] = (value.query, value.group_or_all) if has_groups else (value.query,)
        cells.setdefault(words, {})[value.measure, value.system] = value

    body = []
    for words, row in cells.items():
        body.append(([*words], [row.get(heading, _NO_VALUE) for heading in headings]))
    columns = [f"{measure} {system}" if named else measure for measure, system in headings]
    return ["query", *(["group"] if has_groups else []), *columns], body


def _add_ends(header: Sequence[str], row: _Row) -> list[str]:
    """Return the header with two more names after each column whose values have ends."""
    words, values = row
    names = [*header[: len(words)]]
    for name, value in zip(header[len(words) :], values, strict=True):
        names += [name, *(f"{name} {end}" for end in value.ends)]
    return names


def _build_table(header: Sequence[str], body: Sequence[_Row], places: int) -> Table:
    rows = ([*words, *(_write_cell(value, places) for value in values)] for words, values in body)
    return Table.of("", header, len(body[0][0]), rows)


def _print_table(header: Sequence[str], body: Sequence[_Row], places: int, *, rows: str, interval: str) -> None:
    """Print a table in the terminal, with arrows after names of measures, and lines below that explain its cells."""
    words = len(body[0][0])
    if rows == "measures":
        body = [([*names[:-1], _add_arrow(names[-1])], values) for names, values in body]
    else:
        header = [*header[:words], *map(_add_arrow, header[words:])]

    console = open_console(sys.stdout)
    table = _build_table(header, body, places)
    print_drawn(console, [*draw_table(table, find_table_width(console), by_first=words > 1)])

    cells = list(chain.from_iterable(values for _, values in body))
    if any(value.queries is not None for value in cells):
        print("(n): the mean is over the n queries that have a value.")
    if any("low" in value.ends for value in cells):
        print(f"[low, high]: {interval}.")
    elif any(value.ends for value in cells):
        print("[least, most]: the value if all unjudged results have the label 0, or the largest label of the qrels.")


def _write_cell(value: Value, places: int) -> str:
    """Write a value, its number of queries and its ends: `0.5000 (12) [0.4000, 0.6000]`. If an end is missing: `no interval`."""
    text, *ends = _write_value(value, places)
    if value.queries is not None:
        text += f" ({value.queries:,})"
    if None in value.ends.values():
        text += f" {ends[0]}"
    elif ends:
        text += f" [{', '.join(ends)}]"
    return text


def _write_value(value: Value, places: int) -> list[str]:
    absent = "no interval" if "low" in value.ends else "no bounds"
    ends = (absent if end is None else format_number(end, places) for end in value.ends.values())
    return [format_number(value.value, places), *ends]


def _write_fields(values: Sequence[Value], places: int) -> Iterator[str]:
    """Yield the fields of a row of TSV. A missing value or end is an empty field."""
    for value in values:
        for number in (value.value, *value.ends.values()):
            yield "" if number is None else format_number(number, places)


def print_sparklines(frame: pl.DataFrame, places: int) -> None:
    """Print each curve as a line of small bars, with its first and last mean. The curves of a measure share one scale."""
    if "over" in frame.columns:
        title = f"Over {frame.item(0, 'over')}: the spends of the table"
    else:
        last: Any = frame.get_column("iteration").max()
        title = f"Iterations 1 to {last}"

    rows = []
    for curves in frame.partition_by("measure", maintain_order=True):
        top: Any = curves.get_column("mean").max()
        for curve in curves.partition_by("system", maintain_order=True):
            system, measure = curve.select("system", "measure").row(0)
            means = curve.get_column("mean").to_list()
            first, last_mean = (format_number(mean, places) for mean in (means[0], means[-1]))
            rows.append([_add_arrow(measure), system, first, draw_sparkline(means, top or 0.0), last_mean])

    longest = max(len(bars) for *_, bars, _ in rows)
    padded = [[*words, bars.ljust(longest), mean] for *words, bars, mean in rows]
    console = open_console(sys.stdout)
    table = Table.of(title, ["measure", "system", "first", "curve".ljust(longest), "last"], 2, padded)
    print_drawn(console, [*draw_table(table, find_table_width(console))])


def draw_sparkline(values: Sequence[float | None], top: float) -> str:
    """Return one character per value: a bar scaled from 0 to `top`, or a dot if the value is missing. Show at most 40 values.

    >>> draw_sparkline([0.0, 2.0, None, 4.0], 4.0)
    '▁▅·█'
    """
    if len(values) > _MOST_SIGNS:
        places = [(k + 1) * len(values) // _MOST_SIGNS - 1 for k in range(_MOST_SIGNS)]
        values = [values[place] for place in places]
    return "".join("·" if value is None else _choose_bar(value, top) for value in values)


def _choose_bar(value: float, top: float) -> str:
    if top <= 0:
        return _BARS[0]
    highest = len(_BARS) - 1
    level = round(highest * max(value, 0.0) / top)
    return _BARS[min(level, highest)]


def _add_arrow(name: str) -> str:
    """Add ↑ or ↓ to a measure of goodgain or of the funnel, for the better direction. Classic measures stay as they are."""
    from goodgain.analysis.comparing.use_of_documents import FUNNEL  # slow to import

    bare = name.split("@")[0].split("(")[0]
    if bare in FUNNEL:
        return add_arrow(name, FUNNEL[bare])
    if bare not in DECLARATIONS:
        return name
    return add_arrow(name, find_direction(parse_measure(name)))
