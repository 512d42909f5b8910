"""Finds bad rows of tables. Raises an error with the place of the row, or leaves bad rows out with a notice."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
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
    return "'" + "".join(c if c.isprintable() else repr(c)[1:-1] for c in text) + "'"


def number_lines(content: Content, *, comments: bool = True) -> Iterator[tuple[int, bytes]]:
    """Yield line number and stripped line for each line that is not blank; `comments=False` leaves out comments."""
    for number, line in enumerate(content.lines(), start=content.before + 1):
        if (comments or not line.startswith(COMMENT_BYTES)) and (stripped := line.strip(WHITE + b"\n")):
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
        number = self.rows[row] if self.rows is not None else row
        text = f"{self.label}{', ' * bool(self.counting)}{self.counting}, row {number}"
        return f"{text} {quote(str(values))}" if values else text

    def subset(self, kept: Sequence[int]) -> FrameRows:
        return replace(self, rows=kept if self.rows is None else [self.rows[row] for row in kept])


@dataclass(frozen=True)
class TextLines:
    """Locates rows of a text: `locate` counts lines up to a row, and returns the number and the text of its line.

    `lines` has the line number of each row. If `lines` is None, each line that is neither blank nor a comment is a row.
    """

    label: str
    content: Content
    lines: Sequence[int] | None = None

    def locate(self, row: int, values: dict[str, Any] | None = None) -> str:
        numbered = number_rows if self.lines is None else number_lines
        for index, (number, line) in enumerate(numbered(self.content)):
            if (number == self.lines[row]) if self.lines is not None else (index == row):
                return f"{self.label}, line {number}: {quote(line.decode('utf-8', 'replace'))}"
        return f"{self.label}, row {row}"

    def subset(self, kept: Sequence[int]) -> TextLines:
        lines = self.lines if self.lines is not None else [number for number, _ in number_rows(self.content)]
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
    wrong = nw.any_horizontal(*(condition for condition, _ in problems), ignore_nulls=True)
    if isinstance(frame, nw.LazyFrame):  # its rows have no numbers
        bad_frame = frame.filter(wrong)
        first = _collect(bad_frame.head(1))
        if not len(first):
            return frame, rows
        bad = f"{quote(str(first.rows(named=True)[0]))} {_describe(first, problems)}"
        if errors != "skip":
            raise InputError(f"{rows.label}: a row {bad}; correct it{name_alternative(errors)}")
        count = _collect(bad_frame.select(nw.len())).item()
        notice(
            "bad_rows",
            f"{rows.label}: left out {count} bad row{'s' * (count != 1)}{', such as' if count > 1 else ':'} {bad}",
        )
        return frame.filter(~wrong), rows
    unit = "row" if isinstance(rows, FrameRows) else "line"
    indexed = frame if "row" in frame.columns else frame.with_row_index("row")
    bad_rows = indexed.filter(wrong)
    if not len(bad_rows):
        return frame, rows
    if errors != "skip":
        values = bad_rows.rows(named=True)[0]
        place = rows.locate(values.pop("row"), values if show else None)
        remedy = f"correct the {unit}{name_alternative(errors, unit)}"
        raise InputError(f"{place} {_describe(bad_rows.head(1), problems)}; {remedy}")
    places = []
    for one in (bad_rows[number : number + 1] for number in range(min(len(bad_rows), _SHOWN_PLACES))):
        place = rows.locate(one.get_column("row").item()).removeprefix(f"{rows.label}, ")
        places.append(f"{place} ({_describe(one, problems)})")
    _warn_of_skipped(rows.label, len(bad_rows), places, unit)
    kept = indexed.filter(~wrong)
    return kept.drop("row"), rows.subset(kept.get_column("row").to_list())


def _collect(frame: nw.LazyFrame[Any]) -> nw.DataFrame[Any]:
    """Collect a small lazy frame. Polars' streaming engine is used because it does not hold the whole source in memory."""
    native = frame.to_native()
    if isinstance(native, pl.LazyFrame):
        return nw.from_native(native.collect(engine="streaming"))
    return frame.collect("polars")


def _describe(row: nw.DataFrame[Any], problems: Sequence[Problem]) -> str:
    words = next((what for condition, what in problems if len(row.filter(condition))), "is bad")
    values = row.rows(named=True)[0].items()
    return words.format_map({name: quote(value) if isinstance(value, str) else value for name, value in values})


def name_alternative(errors: str | None, unit: str = "row") -> str:
    return ", or remove it" if errors is None else f", or leave such {unit}s out with {spell('errors', 'skip')}"


def _warn_of_skipped(label: str, count: int, places: Sequence[str], unit: str) -> None:
    first = "the first: " if count > len(places) else ""
    notice("bad_rows", f"{label}: left out {count} bad {unit}{'s' * (count != 1)}; {first}{'; '.join(places)}")


class BadLines:
    """Raises an error for the first bad line of a file, or counts bad lines for one notice (`errors="skip"`)."""

    def __init__(self, label: str, content: Content, errors: str | None) -> None:
        self._label = label
        self._content = content
        self._errors = errors
        self._places: list[str] = []
        self._count = 0

    def refuse(self, number: int, wrong: str, *, remedy: str = "correct the line", can_skip: bool = True) -> None:
        """Raise an error for a bad line, or skip and count it; `can_skip` says whether the error offers `errors="skip"`."""
        if self._errors != "skip":
            option = "" if self._errors is None or not can_skip else name_alternative(self._errors, "line")
            place = TextLines(self._label, self._content, [number]).locate(0)
            raise InputError(f"{place} {wrong}; {remedy}{option}")
        self._count += 1
        if len(self._places) < _SHOWN_PLACES:
            self._places.append(f"line {number} ({wrong})")

    def report(self) -> None:
        if self._count:
            _warn_of_skipped(self._label, self._count, self._places, "line")


def find_problems(frame: Frame, table: Table) -> list[Problem]:
    """Return the conditions for bad rows: a missing id or number, or a number that is not finite."""
    problems, numbers = list[Problem](), list[Problem]()
    for name, dtype in frame.collect_schema().items():
        if dtype.is_numeric() and name != "iteration":
            wrong = nw.lit(False) if name in table.nullable else nw.col(name).is_null()
            if dtype.is_float():
                wrong = wrong | ~(nw.col(name).is_finite() | nw.col(name).is_null())
            numbers.append((wrong, f"has a {name} that is not a finite number"))
        elif name == "iteration":
            is_result = (
                nw.col("doc_id") != EMPTY_DOC
            )  # without results there may be no iteration: the query was not searched
            problems.append((nw.col(name).is_null() & is_result, "has no iteration"))
        elif name not in table.nullable:
            problems.append(lacks(name))
    return problems + numbers
