"""Finds bad rows of tables. Raises an error with the place of the row, or leaves bad rows out with a notice."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import Any, NamedTuple

import narwhals as nw
import polars as pl

from goodgain.errors import InputError, notice
from goodgain.files.opening import Content
from goodgain.options import spell
from goodgain.schema import BLANKS, COMMENT, EMPTY_DOC, Table

Frame = nw.DataFrame[Any] | nw.LazyFrame[Any]

#: White space between the fields of a line of text.
WHITE = BLANKS.encode().replace(b"\n", b"")
COMMENT_BYTES = COMMENT.encode()
_SHOWN = 200
#: The most places of bad rows in a notice.
_SHOWN_PLACES = 5


def quote(line: str) -> str:
    """Quote a line for an error: at most 200 characters, with control characters escaped."""
    text = line if len(line) <= _SHOWN else line[:_SHOWN] + "..."
    escaped = "".join(sign if sign.isprintable() else repr(sign)[1:-1] for sign in text)
    return f"'{escaped}'"


def number_lines(content: Content, *, comments: bool = True) -> Iterator[tuple[int, bytes]]:
    """Yield line number and stripped line for each line that is not blank; `comments=False` leaves out comments."""
    for number, line in enumerate(content.lines(), start=content.before + 1):
        if line.startswith(COMMENT_BYTES) and not comments:
            continue
        stripped = line.strip(WHITE + b"\n")
        if stripped:
            yield number, stripped


#: The rows of TREC text: lines that are neither blank nor comments.
number_rows = partial(number_lines, comments=False)


@dataclass(frozen=True)
class FrameRows:
    """Locates rows of a frame, a dict or an iterable: an error message gives `label` and the number of a row.

    `rows` has the number of each row in the source. If `rows` is None, the number of the top row is 0. `counting` tells users
    how rows are counted, if this is not obvious.
    """

    label: str
    rows: Sequence[int] | None = None
    counting: str = ""

    def locate(self, row: int, values: dict[str, Any] | None = None) -> str:
        number = row if self.rows is None else self.rows[row]
        place = self.label
        if self.counting:
            place += f", {self.counting}"
        place += f", row {number}"
        if values:
            place += f" {quote(str(values))}"
        return place

    def subset(self, kept: Sequence[int]) -> FrameRows:
        """Return the locator of the rows `kept`: its row 0 is the first of them, at its old place."""
        if self.rows is None:
            return replace(self, rows=kept)
        return replace(self, rows=[self.rows[row] for row in kept])


@dataclass(frozen=True)
class TextLines:
    """Locates rows of a text: `locate` counts lines up to a row, and returns the number and the text of its line.

    `lines` has the line number of each row. If `lines` is None, each line that is neither blank nor a comment is a row.
    """

    label: str
    content: Content
    lines: Sequence[int] | None = None

    def locate(self, row: int, values: dict[str, Any] | None = None) -> str:
        if self.lines is None:
            number, line = next(islice(number_rows(self.content), row, None), (0, b""))
        else:
            numbered = number_lines(self.content)
            number, line = next((pair for pair in numbered if pair[0] == self.lines[row]), (0, b""))
        if not number:
            return f"{self.label}, row {row}"
        return f"{self.label}, line {number}: {quote(line.decode('utf-8', 'replace'))}"

    def subset(self, kept: Sequence[int]) -> TextLines:
        """Return the locator of the rows `kept`: its row 0 is the first of them, at its old place."""
        lines = self.lines
        if lines is None:
            lines = [number for number, _ in number_rows(self.content)]
        return replace(self, lines=[lines[row] for row in kept])


RowSource = FrameRows | TextLines

#: A function from the column names of a source to the columns to read: name in the source -> name in goodgain.
FindColumns = Callable[[Sequence[str]], Mapping[str, str]]


class ReadTable(NamedTuple):
    """A table that was read: its requested columns, and the `names` of all columns in the source.

    `rows` locates a row for errors. Columns of Parquet and Arrow files keep their types; other columns have the requested types.
    """

    frame: pl.DataFrame
    rows: RowSource
    names: list[str]


#: A fault: the condition for bad rows, and its description. In the description `{column}` stands for the value in a row.
Problem = tuple[nw.Expr, str]


def lacks(name: str) -> Problem:
    """Return a condition for rows whose value in a column is null or empty, and a text for errors: `has no <name>`."""
    return nw.col(name).is_null() | (nw.col(name) == ""), f"has no {name}"


def check_rows(
    frame: Frame, rows: RowSource, problems: Sequence[Problem], *, errors: str | None = None, show: bool = True
) -> tuple[Any, RowSource]:
    """Return a frame without bad rows, and the `RowSource` that locates the remaining rows.

    With `errors="skip"`, bad rows are left out with a notice. Otherwise, a bad row raises an error. With `errors=None`, the
    error does not mention `skip`. An existing column `row` must hold numbers that `rows.locate` accepts. Without `show`, an
    error for `FrameRows` does not quote the row, because a row may contain the name of a judge. Errors for `TextLines` and
    for lazy frames quote the row anyway.
    """
    is_bad = nw.any_horizontal(*(condition for condition, _ in problems), ignore_nulls=True)
    if isinstance(frame, nw.LazyFrame):  # its rows have no numbers
        return _check_lazy_rows(frame, rows, is_bad, problems, errors=errors), rows
    unit = "row" if isinstance(rows, FrameRows) else "line"
    indexed = frame if "row" in frame.columns else frame.with_row_index("row")
    bad_rows = indexed.filter(is_bad)
    if not len(bad_rows):
        return frame, rows

    if errors != "skip":
        values = bad_rows.rows(named=True)[0]
        place = rows.locate(values.pop("row"), values if show else None)
        remedy = f"correct the {unit}{name_alternative(errors, unit)}"
        raise InputError(f"{place} {_describe(bad_rows.head(1), problems)}; {remedy}")
    places = []
    for number in range(min(len(bad_rows), _SHOWN_PLACES)):
        bad_row = bad_rows[number : number + 1]
        place = rows.locate(bad_row.get_column("row").item()).removeprefix(f"{rows.label}, ")
        places.append(f"{place} ({_describe(bad_row, problems)})")
    _warn_of_skipped(rows.label, len(bad_rows), places, unit)

    good_rows = indexed.filter(~is_bad)
    return good_rows.drop("row"), rows.subset(good_rows.get_column("row").to_list())


def _check_lazy_rows(
    frame: nw.LazyFrame[Any], rows: RowSource, is_bad: nw.Expr, problems: Sequence[Problem], *, errors: str | None
) -> nw.LazyFrame[Any]:
    """Return the good rows, still lazy. An error or notice quotes one bad row: rows of an engine have no numbers."""
    bad_rows = frame.filter(is_bad)
    first = _collect(bad_rows.head(1))
    if not len(first):
        return frame

    example = f"{quote(str(first.rows(named=True)[0]))} {_describe(first, problems)}"
    if errors != "skip":
        raise InputError(f"{rows.label}: a row {example}; correct it{name_alternative(errors)}")
    count = _collect(bad_rows.select(nw.len())).item()
    skipped = f"1 bad row: {example}"
    if count > 1:
        skipped = f"{count} bad rows, such as {example}"
    notice("bad_rows", f"{rows.label}: left out {skipped}")
    return frame.filter(~is_bad)


def _collect(frame: nw.LazyFrame[Any]) -> nw.DataFrame[Any]:
    """Collect a small lazy frame. Polars' streaming engine is used because it does not hold the whole source in memory."""
    native = frame.to_native()
    if isinstance(native, pl.LazyFrame):
        return nw.from_native(native.collect(engine="streaming"))
    return frame.collect("polars")


def _describe(row: nw.DataFrame[Any], problems: Sequence[Problem]) -> str:
    """Return the description of the first fault of a row, with the row's values filled in."""
    description = next((text for condition, text in problems if len(row.filter(condition))), "is bad")
    values = row.rows(named=True)[0]
    for name, value in values.items():
        if isinstance(value, str):
            values[name] = quote(value)
    return description.format_map(values)


def name_alternative(errors: str | None, unit: str = "row") -> str:
    if errors is None:
        return ", or remove it"
    return f", or leave such {unit}s out with {spell('errors', 'skip')}"


def _warn_of_skipped(label: str, count: int, places: Sequence[str], unit: str) -> None:
    if count != 1:
        unit += "s"
    beginning = "the first: " if count > len(places) else ""
    notice("bad_rows", f"{label}: left out {count} bad {unit}; {beginning}{'; '.join(places)}")


class BadLines:
    """Raises an error for the first bad line of a file, or counts bad lines for one notice (`errors="skip"`)."""

    def __init__(self, label: str, content: Content, errors: str | None) -> None:
        self._label = label
        self._content = content
        self._errors = errors
        self._places: list[str] = []
        self._count = 0

    def refuse(self, number: int, fault: str, *, remedy: str = "correct the line", can_skip: bool = True) -> None:
        """Raise an error for a bad line, or skip and count it; `can_skip` says whether the error offers `errors="skip"`."""
        if self._errors != "skip":
            place = TextLines(self._label, self._content, [number]).locate(0)
            if self._errors is not None and can_skip:
                remedy += name_alternative(self._errors, "line")
            raise InputError(f"{place} {fault}; {remedy}")
        self._count += 1
        if len(self._places) < _SHOWN_PLACES:
            self._places.append(f"line {number} ({fault})")

    def report(self) -> None:
        if self._count:
            _warn_of_skipped(self._label, self._count, self._places, "line")


def find_problems(frame: Frame, table: Table) -> list[Problem]:
    """Return the conditions for bad rows: a missing id or number, or a number that is not finite."""
    problems: list[Problem] = []
    problems_of_numbers: list[Problem] = []

    for name, dtype in frame.collect_schema().items():
        column = nw.col(name)
        if dtype.is_numeric() and name != "iteration":
            is_bad = nw.lit(False) if name in table.nullable else column.is_null()
            if dtype.is_float():
                is_bad = is_bad | ~(column.is_finite() | column.is_null())
            problems_of_numbers.append((is_bad, f"has a {name} that is not a finite number"))
        elif name == "iteration":
            # Without results there may be no iteration: the query was not searched.
            is_result = nw.col("doc_id") != EMPTY_DOC
            problems.append((column.is_null() & is_result, "has no iteration"))
        elif name not in table.nullable:
            problems.append(lacks(name))
    return problems + problems_of_numbers
