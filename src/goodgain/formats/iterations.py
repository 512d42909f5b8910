"""Column 2 of a run: which iteration a row belongs to."""

from __future__ import annotations

import re
from typing import Any

import narwhals as nw
import polars as pl

from goodgain.errors import InputError
from goodgain.files.row_origins import RowSource, SkippedRows
from goodgain.formats.checks import leave_out_rows
from goodgain.formats.frames import Frame
from goodgain.ranking.engines import collect, move_to_engine
from goodgain.schema import EMPTY_DOC

__all__ = ["add_empty_iterations", "add_empty_iterations_lazily", "number_iterations"]

_LARGEST = str(2**63 - 1)
#: A whole number that Int64 holds, in any form: fewer digits than the largest one, or as many and smaller at some place.
_WHOLE = (
    rf"^\+?0*(?:[0-9]{{1,{len(_LARGEST) - 1}}}|{_LARGEST}"
    + "".join(
        f"|{_LARGEST[:k]}[0-{int(digit) - 1}][0-9]{{{len(_LARGEST) - 1 - k}}}"
        for k, digit in enumerate(_LARGEST)
        if digit > "0"
    )
    + ")$"
)
_RULE = (
    "column 2 of an iterated run holds whole numbers from 0 (below 2^63), that of a classic run one value per query; "
    "number the iterations of this query, or give it one value"
)
_LARGEST_GAP = 10_000
#: How many numbers may be missing in a whole run: so many in any case, and so many for each iteration that is there.
_MOST_MISSING, _MOST_MISSING_EACH = 5_000_000, 10


def number_iterations(frame: Frame, rows: RowSource, *, first: int, errors: str) -> tuple[Frame, RowSource, bool]:
    """Make the column `iteration` Int64: numbers as they stand, one word for a whole query as `first`.

    The third value returned is whether any query has numbers.

    With `errors="skip"` rows of an iterated query whose column 2 is not a number are left out instead; which of two words
    is right cannot be known, and stays an error.
    """
    found = frame.collect_schema()["iteration"]
    if found.is_integer() and found not in (nw.Int64, nw.Int32, nw.Int16, nw.Int8, nw.UInt32, nw.UInt16, nw.UInt8):
        frame = frame.with_columns(nw.col("iteration").cast(nw.String))  # a number may be too large for Int64
    elif found.is_integer():
        frame = frame.with_columns(nw.col("iteration").cast(nw.Int64))
        least = _collect(frame.select(nw.col("iteration").min())).item()
        if least is None or least >= 0:
            return frame, rows, True
        frame = frame.with_columns(nw.col("iteration").cast(nw.String))
    whole = nw.col("iteration").str.contains(_WHOLE)
    queries = _collect(
        frame.with_columns(whole.cast(nw.Int64).alias("whole"))
        .group_by("query_id")
        .agg(
            nw.col("iteration").n_unique().alias("values"),
            nw.col("whole").min().alias("all_numbers"),
            nw.col("whole").max().alias("any_number"),
        )
    )
    mixed = queries.filter((nw.col("values") > 1) & (nw.col("all_numbers") == 0)).sort("query_id")
    if len(mixed) and errors == "skip" and mixed.get_column("any_number").min() == 1:
        frame, rows = _leave_out_words(frame, rows, mixed.get_column("query_id").to_list())
    elif len(mixed):
        _raise_mixed(frame, rows, mixed.get_column("query_id").to_list()[0])
    numbers = (
        nw.when(whole).then(nw.col("iteration")).otherwise(nw.lit(str(first))).str.replace_all("+", "", literal=True)
    )
    has_numbers = queries.get_column("any_number").max() == 1
    return frame.with_columns(numbers.cast(nw.Int64).alias("iteration")), rows, has_numbers


def _collect(frame: Frame) -> nw.DataFrame[Any]:
    return frame.collect("polars") if isinstance(frame, nw.LazyFrame) else frame


def _leave_out_words(frame: Frame, rows: RowSource, queries: list[str]) -> tuple[Frame, RowSource]:
    wrong = nw.col("query_id").is_in(queries) & ~nw.col("iteration").str.contains(_WHOLE)
    if isinstance(frame, nw.LazyFrame):
        return leave_out_rows(frame, wrong, label=rows.label, what=_describe_word), rows
    indexed = frame.with_row_index("row")
    bad = indexed.filter(wrong)
    skipped = SkippedRows()
    for row, value in zip(bad.get_column("row").to_list(), bad.get_column("iteration").to_list(), strict=True):
        skipped.add(f"{rows.locate(row)} (has {value!r} in column 2)" if skipped.count < 5 else "")
    skipped.report(rows.label)
    kept = indexed.filter(~wrong)
    return kept.drop("row"), rows.subset(kept.get_column("row").to_list())


def _describe_word(row: nw.DataFrame[Any]) -> str:
    return f"has {row.get_column('iteration').item()!r} in column 2"


def _raise_mixed(frame: Frame, rows: RowSource, query_id: str) -> None:
    """Raise `InputError` with the first line of the query that breaks the rule, and a value that it differs from."""
    if isinstance(frame, nw.LazyFrame):
        raise InputError(f"{rows.label}: query {query_id!r} mixes values in column 2; {_RULE}")
    of_query = frame.with_row_index("row").filter(nw.col("query_id") == query_id)
    values: list[str] = of_query.get_column("iteration").to_list()
    words = [k for k, value in enumerate(values) if not re.fullmatch(_WHOLE, value)]
    bad = words[0] if len(words) < len(values) else next(k for k, value in enumerate(values) if value != values[0])
    other = next(value for value in values if value != values[bad])
    row = of_query.get_column("row").to_list()[bad]
    raise InputError(
        f"{rows.locate(row)} has {values[bad]!r} in column 2 where query {query_id!r} has {other!r} in another row; {_RULE}"
    )


def add_empty_iterations(frame: pl.DataFrame, *, first: int) -> pl.DataFrame:
    """Add a row `-` for every number from `first` to the query's largest that has no row.

    Raises:
        InputError: a number is below `first`, a gap is over 10,000, or all gaps together are over 5 million and over ten
            times the iterations that are there.
    """
    tags = [pl.col("tag").max()] if "tag" in frame.columns else []  # one a query; null where it is not said
    searched = frame.group_by("query_id", "iteration").agg(*tags)
    missing = _find_missing(searched, first=first)
    return pl.concat([frame, missing.select(pl.col(name).cast(frame.schema[name]) for name in frame.columns)])


def add_empty_iterations_lazily(frame: nw.LazyFrame[Any], *, first: int) -> nw.LazyFrame[Any]:
    """Do the same for a lazy frame: only its iterations are collected, and the `-` rows are moved to its engine."""
    schema = frame.collect_schema()
    tags = [nw.col("tag").max()] if "tag" in schema else []
    missing = _find_missing(collect(frame.group_by("query_id", "iteration").agg(*tags)), first=first)
    if missing.is_empty():
        return frame
    there = move_to_engine(frame, nw.from_native(missing.select(schema.names())))
    return nw.concat([frame, there.select(nw.col(name).cast(schema[name]) for name in schema.names())])


def _find_missing(searched: pl.DataFrame, *, first: int) -> pl.DataFrame:
    """Return the `-` rows for the missing iterations of a run: query_id, iteration, and tag if the run has tags."""
    searched = searched.sort("query_id", "iteration")
    before = pl.col("iteration").shift(1).over("query_id").fill_null(first - 1)
    gaps = searched.with_columns(before=before, gap=pl.col("iteration") - before - 1)
    low = gaps.filter(pl.col("iteration") < first)
    if not low.is_empty():
        query_id, number = low.select("query_id", "iteration").row(0)
        raise InputError(
            f"query {query_id!r} has iteration {number}, below first={first}; give the lowest number that an iteration can have"
        )
    wide = gaps.filter(pl.col("gap") > _LARGEST_GAP)
    if not wide.is_empty():
        query_id, number, gap = wide.select("query_id", "iteration", "gap").row(0)
        raise InputError(
            f"query {query_id!r} lacks {gap} numbers before iteration {number}, more than {_LARGEST_GAP}: column 2 does not "
            "number the steps of an agent; renumber it, or read the run without gaps='empty'"
        )
    missing = gaps.get_column("gap").sum()
    if missing > max(_MOST_MISSING, _MOST_MISSING_EACH * len(gaps)):
        raise InputError(
            f"the run lacks {missing:,} numbers of iterations where it has {len(gaps):,}: column 2 does not number the steps of "
            "an agent; renumber it, or read the run without gaps='empty'"
        )
    tag = [pl.col("tag").max().over("query_id")] if "tag" in searched.columns else []
    return (
        gaps.with_columns(*tag)
        .filter(pl.col("gap") > 0)
        .with_columns(iteration=pl.int_ranges(pl.col("before") + 1, pl.col("iteration")))
        .drop("before", "gap")
        .explode("iteration")
        .with_columns(doc_id=pl.lit(EMPTY_DOC), rank=pl.lit(0), score=pl.lit(0.0))
    )
