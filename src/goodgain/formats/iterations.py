"""Reads the iteration numbers of a run (column 2), fills gaps with empty iterations, and cuts rankings into pages."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, NamedTuple

import narwhals as nw
import polars as pl

from goodgain.errors import InputError, count_of, notice
from goodgain.files.bad_rows import Frame, RowSource, check_rows, quote
from goodgain.options import check_whole_number, spell
from goodgain.ranking.dataframe_engines import collect, move_to_engine
from goodgain.ranking.first_occurrences_and_flattening import find_first_occurrences
from goodgain.ranking.ranking_table import place_documents
from goodgain.schema import EMPTY_DOC, RUN

#: A whole number that Int64 holds.
WHOLE = r"^\+?0*[0-9]{1,18}$"
_RULE = (
    "column 2 holds whole numbers from 0 up (of at most 18 digits) in an iterated run, one value per query in a classic run; "
    "number the iterations of this query, or give it one value"
)
_LARGEST_GAP = 10_000
#: Missing iterations allowed in a run: the larger of a fixed number and a multiple of the iterations it has.
_MOST_MISSING, _MOST_MISSING_EACH = 5_000_000, 10
_NO_ITERATIONS = (
    "no iterations in this run: column 2 (iteration) is missing or constant, so each query counts as one search. "
    "Number the searches in column 2 (in Python, goodgain.read_run keeps the numbers), or leave out measures of iterations."
)


def number_iterations(frame: Frame, rows: RowSource, *, first: int, errors: str) -> tuple[Frame, RowSource, bool]:
    """Convert the column `iteration` to Int64. Return the frame, its `RowSource`, and whether any query has numbers.

    Numbers do not change. A word becomes the number `first` if all rows of its query have this word. A query with different
    words, or with words and numbers, is an error. With `errors="skip"`, a query that has numbers loses its rows with words.
    """
    column = nw.col("iteration")
    if frame.collect_schema()["iteration"].is_integer():
        least, largest = collect(frame.select(column.min(), column.max().alias("largest"))).row(0)
        if least is None or (least >= 0 and largest < 10**18):
            return frame.with_columns(column.cast(nw.Int64)), rows, True
        frame = frame.with_columns(column.cast(nw.String))
    else:  # 1.0 is the number 1, as spreadsheets and pandas write it
        is_decimal = column.str.contains(r"^\+?[0-9]+\.0+$")
        number = column.str.replace_all(r"\.0+$", "")  # no group: DuckDB refers to groups in another way
        frame = frame.with_columns(nw.when(is_decimal).then(number).otherwise(column).alias("iteration"))
    whole = column.str.contains(WHOLE)
    grouped = frame.with_columns(whole.cast(nw.Int64).alias("whole")).group_by("query_id")
    all_numbers, any_number = nw.col("whole").min().alias("all_numbers"), nw.col("whole").max().alias("any_number")
    queries = collect(grouped.agg(column.n_unique().alias("values"), all_numbers, any_number))
    mixed = queries.filter((pl.col("values") > 1) & (pl.col("all_numbers") == 0)).sort("query_id")
    query_ids = mixed.get_column("query_id").to_list()
    if len(mixed) and errors == "skip" and mixed.get_column("any_number").min() == 1:
        words = (nw.col("query_id").is_in(query_ids) & ~whole, "has {iteration} in column 2")
        frame, rows = check_rows(frame, rows, [words], errors=errors)
    elif len(mixed):
        unclear = mixed.filter(pl.col("any_number") == 0).get_column("query_id").to_list() if errors == "skip" else []
        _raise_mixed(frame, rows, (unclear or query_ids)[0])
    numbers = nw.when(whole).then(column).otherwise(nw.lit(str(first))).str.replace_all("+", "", literal=True)
    has_numbers = queries.get_column("any_number").max() == 1
    return frame.with_columns(numbers.cast(nw.Int64).alias("iteration")), rows, has_numbers


def _raise_mixed(frame: Frame, rows: RowSource, query_id: str) -> None:
    if isinstance(frame, nw.LazyFrame):
        raise InputError(f"{rows.label}: query {query_id!r} mixes values in column 2; {_RULE}")
    of_query = frame.with_row_index("row").filter(nw.col("query_id") == query_id)
    values: list[str] = of_query.get_column("iteration").to_list()
    words = [k for k, value in enumerate(values) if not re.fullmatch(WHOLE, value)]
    bad = words[0] if len(words) < len(values) else next(k for k, value in enumerate(values) if value != values[0])
    other = next(value for value in values if value != values[bad])
    row = of_query.get_column("row").to_list()[bad]
    wrong = f"has {values[bad]!r} in column 2 where query {query_id!r} has {other!r} in another row"
    raise InputError(f"{rows.locate(row)} {wrong}; {_RULE}")


def take_never_searched(frame: Frame, rows: RowSource, *, errors: str) -> tuple[Frame, RowSource, pl.Series]:
    """Remove the rows of queries that never searched. Return the kept rows, their `RowSource`, and the removed query ids.

    A query that never searched has a single row, with `-` or null as iteration and `-` as doc_id.
    """
    iteration, is_text = nw.col("iteration"), frame.collect_schema()["iteration"] == nw.String
    lacks_number = iteration.is_null() | (iteration == EMPTY_DOC) if is_text else iteration.is_null()
    is_such = lacks_number & (nw.col("doc_id") == EMPTY_DOC)
    found = collect(frame.filter(is_such).select("query_id")).get_column("query_id").cast(pl.String)
    if found.is_empty():
        return frame, rows, found
    of_such = frame.filter(nw.col("query_id").is_in(found.unique().to_list()))
    counted = of_such.group_by("query_id").agg(nw.len().alias("rows")).filter(nw.col("rows") > 1)
    mixed = collect(counted).get_column("query_id").to_list()
    if mixed:
        has_others = nw.col("query_id").is_in(mixed)
        wrong = (is_such & has_others, "says that query {query_id} never searched, but the query has other rows")
        frame, rows = check_rows(frame, rows, [wrong], errors=errors)
    if isinstance(frame, nw.DataFrame):
        kept = frame.select((~is_such).alias("kept")).to_polars().get_column("kept")
        rows = rows.subset(kept.arg_true().to_list())
    return frame.filter(~is_such), rows, found.filter(~found.is_in(mixed)).sort()


def add_never_searched(rows: pl.DataFrame, query_ids: pl.Series) -> pl.DataFrame:
    """Add a row for each query that never searched, with doc_id `-` and a null iteration."""
    if query_ids.is_empty():
        return rows
    tag = rows.item(0, "tag") if "tag" in rows.columns and rows.height else None
    values = {"doc_id": EMPTY_DOC, "rank": 0, "score": 0.0, "tag": tag}
    types = RUN.polars
    known = [pl.lit(value, types[name]).alias(name) for name, value in values.items() if name in rows.columns]
    return pl.concat([rows, query_ids.to_frame("query_id").with_columns(known)], how="diagonal_relaxed")


class UnnamedRows(NamedTuple):
    """The number of rows that may be results with a lost doc_id, and the place of the first such row."""

    number: int = 0
    first: str = ""


def find_unnamed_rows(frame: Frame, rows: RowSource) -> UnnamedRows:
    """Find the rows with a null doc_id that look like results whose id was lost.

    A row looks like a result if its rank or score is a number other than 0. If rank and score are null or missing, a row looks
    like a result only if its iteration has other results. All other rows mark iterations without results.
    """
    schema = frame.collect_schema()
    is_null = nw.col("doc_id").is_null()
    if not len(collect(frame.filter(is_null).head(1))):
        return UnnamedRows()
    nameless: Frame = (frame.with_row_index("row") if isinstance(frame, nw.DataFrame) else frame).filter(is_null)
    has_value, has_zero = ~is_null, ~is_null  # false in all of these rows
    for name in (name for name in ("rank", "score") if name in schema):
        number = nw.col(name).fill_null(0)
        has_value = has_value | ((number != 0) & number.is_finite() if schema[name].is_float() else number != 0)
        has_zero = has_zero | (~nw.col(name).is_null() & (number == 0))
    iteration = [name for name in ("query_id", "iteration") if name in schema]
    results: Any = frame.filter(~is_null & (nw.col("doc_id") != EMPTY_DOC)).select(iteration).unique()
    ranked = collect(nameless.filter(has_value))
    beside = collect(nameless.filter(~has_value & ~has_zero).join(results, on=iteration, how="semi"))
    found = pl.concat([ranked, beside])
    if found.is_empty():
        return UnnamedRows()
    if isinstance(frame, nw.DataFrame):
        return UnnamedRows(len(found), rows.locate(found["row"].min()))  # type: ignore[arg-type]  # numbers of rows
    return UnnamedRows(len(found), f"a row {quote(str(found.row(0, named=True)))}")


def warn_of_unnamed_rows(label: str, parts: Iterable[UnnamedRows]) -> None:
    """Give one notice about all rows that `find_unnamed_rows` found in the parts of a run."""
    found = [part for part in parts if part.number]
    if found:
        count = sum(part.number for part in found)
        look = "row without a doc_id looks like a result and was"
        if count > 1:
            look = "rows without a doc_id look like results and were"
        ids = "write the ids (pandas reads the id NA as null: keep_default_na=False)"
        remedy = f"{ids}, or '-' with rank and score 0 for an empty iteration"
        notice("rows_without_document", f"{label}: {count:,} {look} not counted; the first: {found[0].first}; {remedy}")


def mark_empty_iterations(frame: Frame) -> Frame:
    """Replace each null doc_id by `-`, which marks an iteration without results. Set rank and score to 0 in all rows with `-`."""
    frame = frame.with_columns(nw.col("doc_id").fill_null(EMPTY_DOC))
    nothing = nw.col("doc_id") == EMPTY_DOC
    schema = frame.collect_schema()
    return frame.with_columns(
        nw.when(nothing).then(nw.lit(0)).otherwise(nw.col(name)).cast(schema[name]).alias(name)
        for name in ("rank", "score")
        if name in schema
    )


def add_empty_iterations(frame: Frame, *, first: int) -> Frame:
    """Add a row with doc_id `-` for each missing iteration number, from `first` to the query's largest number.

    A lazy frame stays lazy; only one row per query and iteration is collected into memory.
    """
    schema = frame.collect_schema()
    tags = [nw.col("tag").max()] if "tag" in schema else []  # one per query, or null
    missing = _find_missing(collect(frame.group_by("query_id", "iteration").agg(*tags)), first=first)
    if missing.is_empty():
        return frame
    added: Any = nw.from_native(missing)
    if isinstance(frame, nw.LazyFrame):
        added = move_to_engine(frame, added.select(schema.names()))
    return nw.concat([frame, added.select(nw.col(name).cast(schema[name]) for name in schema.names())])  # type: ignore[no-any-return]  # as given


def _find_missing(searched: pl.DataFrame, *, first: int) -> pl.DataFrame:
    """Return the rows to add for missing iterations. `searched` has query_id, iteration, and tag if the run has tags."""
    searched = searched.sort("query_id", "iteration")
    before = pl.col("iteration").shift(1).over("query_id").fill_null(first - 1)
    gaps = searched.with_columns(before=before, gap=pl.col("iteration") - before - 1)
    low = gaps.filter(pl.col("iteration") < first)
    if not low.is_empty():
        query_id, number = low.select("query_id", "iteration").row(0)
        remedy = f"Set {spell('first')} to the lowest iteration number"
        raise InputError(f"query {query_id!r}: iteration {number} is below {spell('first', first)}. {remedy}")
    no_iterations = f"column 2 does not hold iterations; renumber it, or read the run without {spell('gaps', 'empty')}"
    wide = gaps.filter(pl.col("gap") > _LARGEST_GAP)
    if not wide.is_empty():
        query_id, number, gap = wide.select("query_id", "iteration", "gap").row(0)
        wrong = f"query {query_id!r} lacks {gap} iterations before iteration {number}, more than {_LARGEST_GAP}"
        raise InputError(f"{wrong}: {no_iterations}")
    missing = gaps.get_column("gap").sum()
    if missing > max(_MOST_MISSING, _MOST_MISSING_EACH * len(gaps)):
        raise InputError(f"the run has {count_of(len(gaps), 'iteration')} and lacks {missing:,}: {no_iterations}")
    tag = [pl.col("tag").max().over("query_id")] if "tag" in searched.columns else []
    numbers = pl.int_ranges(pl.col("before") + 1, pl.col("iteration"))
    rows = gaps.with_columns(*tag).filter(pl.col("gap") > 0).with_columns(iteration=numbers).drop("before", "gap")
    return rows.explode("iteration").with_columns(doc_id=pl.lit(EMPTY_DOC), rank=pl.lit(0), score=pl.lit(0.0))


def lacks_iterations(has_numbers: bool, lowest: int | None, highest: int | None) -> bool:
    """Return whether a run has no iterations: no row has a number, or all rows have the same number, which is not 1."""
    return not has_numbers or (lowest is not None and lowest == highest != 1)


class IterationNumbers(NamedTuple):
    """The lowest and the highest iteration number of some rows (None without rows), and whether their source has numbers."""

    lowest: int | None
    highest: int | None
    has_numbers: bool


def check_pages(size: int, parts: Iterable[IterationNumbers], *, of_run: str) -> None:
    """Raise `InputError` for an invalid page size, or if the run already has iterations. `parts` together are the whole run.

    `of_run` is the name of the run, or of its system.
    """
    check_whole_number("page", size, 1, others=", the number of results of a page")

    numbers = list(parts)
    has_numbers = any(part.has_numbers for part in numbers)
    lowest = min((part.lowest for part in numbers if part.lowest is not None), default=None)
    highest = max((part.highest for part in numbers if part.highest is not None), default=None)

    if not lacks_iterations(has_numbers, lowest, highest):
        remedy = f"Leave out {spell('page')}, or name the systems to cut: {spell('page', {'SYSTEM': size})}."
        raise InputError(f"{spell('page', size)}: {of_run} has iterations already. {remedy}")


def cut_into_pages(rows: pl.DataFrame, size: int) -> pl.DataFrame:
    """Return the rows of a run with new iterations of `size` results, in the order in which classic measures rank them.

    Without repeats this is the order of the scores. A query with repeats is ordered by rank, then row. A query without results
    keeps one empty iteration.
    """
    is_result, of_query = pl.col("doc_id") != EMPTY_DOC, "query_id"
    is_first = pl.int_range(pl.len()).over(of_query) == 0
    rows = rows.filter(is_result | (is_first & ~is_result.any().over(of_query)))

    by_rank = pl.col("rank").rank("ordinal").over(of_query).cast(pl.Int64)
    placed = rows.with_columns(by_rank=by_rank, place=_place_by_score(rows))
    placed = placed.with_columns(pl.col("place").fill_null(pl.col("by_rank")))

    is_reordered = (pl.col("place") != pl.col("by_rank")).any().over(of_query)
    rank = pl.when(is_reordered).then(pl.col("place").cast(rows.schema["rank"])).otherwise("rank")
    pages = placed.with_columns(iteration=(pl.col("place") - 1) // size + 1, rank=rank)
    return pages.drop("by_rank", "place")


def _place_by_score(rows: pl.DataFrame) -> pl.Series:
    """Return the place of each row in the order of the scores, from 1; null in a query that does not keep its scores."""
    firsts = find_first_occurrences(rows.select("query_id", "iteration", "doc_id", "rank", "score"))
    results = firsts.rows.filter(pl.Series(firsts.keep_scores).gather(firsts.rows.get_column("query")))
    scores = results.select("query", pl.col("score").cast(pl.Float64))
    placed = place_documents(scores, results.get_column("doc_id").gather, positions=())
    lines = results.select("line").with_columns(place=placed.get_column("k"))
    numbered = rows.select("query_id").with_row_index("line")
    return numbered.join(lines, on="line", how="left", maintain_order="left").get_column("place")


def warn_of_missing_iterations(of_run: str | None) -> None:
    """Give the notice that a run has no iterations. `of_run` is the name of the run; None if it has no name."""
    notice("no_iterations", _NO_ITERATIONS, about=of_run)


def warn_of_likely_iteration(column: str | None) -> None:
    """Give a notice if there is a `column` that looks like the iteration and was not read as the iteration."""
    if column is not None:
        sentence = describe_likely_iteration(column)
        notice("likely_iteration", f"{sentence}; now each query has one iteration")


def describe_likely_iteration(column: str) -> str:
    remedy = f"pass {spell('columns', {column: 'iteration'})}, or, if it is not, rename it"
    return f"found the column {column!r}, which looks like the iteration: {remedy}"
