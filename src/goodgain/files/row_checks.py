"""Columns of the types that they must have, and bad rows: each kind found by one expression, and named with its place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import narwhals as nw
import polars as pl

from goodgain.errors import InputError
from goodgain.files.row_origins import RowSource, SkippedRows
from goodgain.schema import IDS

__all__ = ["Problem", "cast_texts", "check_rows", "describe_row", "find_bad", "lacks"]

#: What can be wrong with a row: the expression that finds such rows, and the words that follow the place of one.
Problem = tuple[nw.Expr, str]


def cast_texts(frame: pl.DataFrame, columns: Sequence[str], label: str) -> pl.DataFrame:
    """Return a frame with these columns as text.

    Raises:
        InputError: an id is neither text nor a whole number, or a column holds something else than texts and numbers.
    """
    for name in columns:
        dtype = frame.schema[name]
        is_text = dtype == pl.String or dtype.is_integer() or isinstance(dtype, (pl.Categorical, pl.Enum, pl.Null))
        if dtype.is_nested() or dtype in (pl.Object, pl.Binary) or (name in IDS and not is_text):
            raise InputError(
                f"{label}: has {dtype} in {name}, where one text is needed in each row; convert the column to text"
            )
    return frame.with_columns(pl.col(columns).cast(pl.String))


def lacks(name: str, what: str | None = None) -> Problem:
    """Return the problem that a row has no value, or an empty text, in a column."""
    return nw.col(name).is_null() | (nw.col(name) == ""), f"has no {what or name}"


def find_bad(problems: Sequence[Problem]) -> nw.Expr:
    """Return the expression that finds rows with any problem."""
    return nw.any_horizontal(*(condition for condition, _ in problems), ignore_nulls=True)


def describe_row(row: nw.DataFrame[Any], problems: Sequence[Problem]) -> str:
    """Say what is wrong with a row: the first problem that it has."""
    return next((what for condition, what in problems if len(row.filter(condition))), "is bad")


def check_rows(
    frame: nw.DataFrame[Any],
    rows: RowSource,
    problems: Sequence[Problem],
    *,
    errors: str | None = None,
    show: bool = True,
) -> tuple[nw.DataFrame[Any], RowSource]:
    """Check the rows of a table in memory.

    Args:
        frame: the table; a column `row`, where it has one, says which row of its source each one is.
        rows: where they come from.
        problems: what can be wrong with them.
        errors: `raise`, or `skip` to leave out bad rows with a notice; None where the caller has no such option.
        show: whether errors quote the row; the names of judges are never shown.

    Returns:
        The frame, and where the rows that are left come from.

    Raises:
        InputError: a row is bad, and bad rows are not left out.
    """
    wrong = find_bad(problems)
    indexed = frame if "row" in frame.columns else frame.with_row_index("row")
    bad = indexed.filter(wrong)
    if not len(bad):
        return frame, rows
    if errors != "skip":
        first = bad.head(1)
        values = first.rows(named=True)[0]
        option = ", or remove it" if errors is None else ", or leave such rows out with errors='skip'"
        place = rows.locate(values.pop("row"), values if show else None)
        raise InputError(f"{place} {describe_row(first, problems)}; correct the row{option}")
    skipped = SkippedRows()
    for number in range(len(bad)):
        one = bad[number : number + 1]
        skipped.add(f"{_place(one, rows)} ({describe_row(one, problems)})" if number < 5 else "")
    skipped.report(rows.label, "row")
    kept = indexed.filter(~wrong)
    return kept.drop("row"), rows.subset(kept.get_column("row").to_list())


def _place(row: nw.DataFrame[Any], rows: RowSource) -> str:
    """Name the place of a row within its source."""
    return rows.locate(row.get_column("row").item()).removeprefix(f"{rows.label}, ")
