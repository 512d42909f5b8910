"""Reads the iteration numbers of a run (column 2), fills gaps with empty iterations, and cuts rankings into pages."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, NamedTuple

import narwhals as nw
import polars as pl

from goodgain.errors import InputError, OfSeveral, count_of, notice
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
    "column 2 (iteration) is missing or constant, so each query counts as one search. "
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

    is_number = column.str.contains(WHOLE)
    queries = _compare_values(frame, is_number)
    mixed = queries.filter((pl.col("values") > 1) & ~pl.col("all_numbers")).sort("query_id")
    if len(mixed) and errors == "skip" and mixed.get_column("any_number").all():
        query_ids = mixed.get_column("query_id").to_list()
        words = (nw.col("query_id").is_in(query_ids) & ~is_number, "has {iteration} in column 2")
        frame, rows = check_rows(frame, rows, [words], errors=errors)
    elif len(mixed):
        unreadable = mixed
        if errors == "skip":  # queries with numbers lose only their rows with words
            unreadable = mixed.filter(~pl.col("any_number"))
        _raise_mixed(frame, rows, unreadable.item(0, "query_id"))

    numbers = nw.when(is_number).then(column).otherwise(nw.lit(str(first)))
    numbers = numbers.str.replace_all("+", "", literal=True).cast(nw.Int64)
    has_numbers = bool(queries.get_column("any_number").any())
    return frame.with_columns(numbers.alias("iteration")), rows, has_numbers


def _compare_values(frame: Frame, is_number: nw.Expr) -> pl.DataFrame:
    """Return one row per query: query_id, values (how many different iterations), all_numbers, any_number."""
    numbered = frame.with_columns(is_number.cast(nw.Int64).alias("is_number"))
    queries = numbered.group_by("query_id").agg(
        nw.col("iteration").n_unique().alias("values"),
        nw.col("is_number").min().alias("all_numbers"),
        nw.col("is_number").max().alias("any_number"),
    )
    return collect(queries).with_columns(pl.col("all_numbers", "any_number") == 1)


def _raise_mixed(frame: Frame, rows: RowSource, query_id: str) -> None:
    """Raise `InputError` for a query with words and numbers, or with different words, as iterations. Name the row if possible."""
    if isinstance(frame, nw.LazyFrame):
        raise InputError(f"{rows.label}: query {query_id!r} mixes values in column 2; {_RULE}")
    rows_of_query = frame.with_row_index("row").filter(nw.col("query_id") == query_id)
    values: list[str] = rows_of_query.get_column("iteration").to_list()
    words = [place for place, value in enumerate(values) if not re.fullmatch(WHOLE, value)]
    different = [place for place, value in enumerate(values) if value != values[0]]
    bad = words[0] if len(words) < len(values) else different[0]
    different_value = next(value for value in values if value != values[bad])
    row = rows_of_query.get_column("row").to_list()[bad]
    problem = f"has {values[bad]!r} in column 2 where query {query_id!r} has {different_value!r} in another row"
    raise InputError(f"{rows.locate(row)} {problem}; {_RULE}")


def take_never_searched(frame: Frame, rows: RowSource, *, errors: str) -> tuple[Frame, RowSource, pl.Series]:
    """Remove the rows of queries that never searched. Return the kept rows, their `RowSource`, and the removed query ids.

    A query that never searched has a single row, with `-` or null as iteration and `-` as doc_id.
    """
    lacks_number = nw.col("iteration").is_null()
    if frame.collect_schema()["iteration"] == nw.String:
        lacks_number = lacks_number | (nw.col("iteration") == EMPTY_DOC)
    says_never = lacks_number & (nw.col("doc_id") == EMPTY_DOC)
    query_ids = collect(frame.filter(says_never).select("query_id")).get_column("query_id").cast(pl.String)
    if query_ids.is_empty():
        return frame, rows, query_ids

    of_queries = frame.filter(nw.col("query_id").is_in(query_ids.unique().to_list()))
    counts = of_queries.group_by("query_id").agg(nw.len().alias("rows"))
    contradicting = collect(counts.filter(nw.col("rows") > 1)).get_column("query_id").to_list()
    if contradicting:
        has_other_rows = nw.col("query_id").is_in(contradicting)
        text = "says that query {query_id} never searched, but the query has other rows"
        frame, rows = check_rows(frame, rows, [(says_never & has_other_rows, text)], errors=errors)

    if isinstance(frame, nw.DataFrame):
        is_kept = frame.select((~says_never).alias("kept")).to_polars().get_column("kept")
        rows = rows.subset(is_kept.arg_true().to_list())
    never_searched = query_ids.filter(~query_ids.is_in(contradicting)).sort()
    return frame.filter(~says_never), rows, never_searched


def add_never_searched(rows: pl.DataFrame, query_ids: pl.Series) -> pl.DataFrame:
    """Add a row for each query that never searched, with doc_id `-` and a null iteration."""
    if query_ids.is_empty():
        return rows
    tag = rows.item(0, "tag") if "tag" in rows.columns and rows.height else None
    values = {"doc_id": EMPTY_DOC, "rank": 0, "score": 0.0, "tag": tag}
    columns = [pl.lit(value, RUN.polars[name]).alias(name) for name, value in values.items() if name in rows.columns]
    new_rows = query_ids.to_frame("query_id").with_columns(columns)
    return pl.concat([rows, new_rows], how="diagonal_relaxed")


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

    numbered = frame.with_row_index("row") if isinstance(frame, nw.DataFrame) else frame
    nameless: Frame = numbered.filter(is_null)
    has_value = has_zero = ~is_null  # false in all of these rows
    for name in ("rank", "score"):
        if name in schema:
            number = nw.col(name).fill_null(0)
            is_value = number != 0
            if schema[name].is_float():
                is_value = is_value & number.is_finite()
            has_value = has_value | is_value
            has_zero = has_zero | (~nw.col(name).is_null() & (number == 0))

    iteration = [name for name in ("query_id", "iteration") if name in schema]
    is_result = ~is_null & (nw.col("doc_id") != EMPTY_DOC)
    iterations_with_results: Any = frame.filter(is_result).select(iteration).unique()
    ranked = collect(nameless.filter(has_value))
    without_value = nameless.filter(~has_value & ~has_zero)
    beside_results = collect(without_value.join(iterations_with_results, on=iteration, how="semi"))
    unnamed = pl.concat([ranked, beside_results])
    if unnamed.is_empty():
        return UnnamedRows()
    if isinstance(frame, nw.DataFrame):
        return UnnamedRows(len(unnamed), rows.locate(unnamed["row"].min()))  # type: ignore[arg-type]  # numbers of rows
    return UnnamedRows(len(unnamed), f"a row {quote(str(unnamed.row(0, named=True)))}")


def warn_of_unnamed_rows(label: str, parts: Iterable[UnnamedRows]) -> None:
    """Give one notice about all rows that `find_unnamed_rows` found in the parts of a run."""
    parts_with_rows = [part for part in parts if part.number]
    if parts_with_rows:
        count = sum(part.number for part in parts_with_rows)
        look = "row without a doc_id looks like a result and was"
        if count > 1:
            look = "rows without a doc_id look like results and were"
        ids = "write the ids (pandas reads the id NA as null: keep_default_na=False)"
        remedy = f"{ids}, or '-' with rank and score 0 for an empty iteration"
        first = parts_with_rows[0].first
        notice("rows_without_document", f"{label}: {count:,} {look} not counted; the first: {first}; {remedy}")


def mark_empty_iterations(frame: Frame) -> Frame:
    """Replace each null doc_id by `-`, which marks an iteration without results. Set rank and score to 0 in all rows with `-`."""
    frame = frame.with_columns(nw.col("doc_id").fill_null(EMPTY_DOC))
    is_empty = nw.col("doc_id") == EMPTY_DOC
    columns = []
    for name, kind in frame.collect_schema().items():
        if name in ("rank", "score"):
            number = nw.when(is_empty).then(nw.lit(0)).otherwise(nw.col(name))
            columns.append(number.cast(kind).alias(name))
    return frame.with_columns(columns)


def add_empty_iterations(frame: Frame, *, first: int) -> Frame:
    """Add a row with doc_id `-` for each missing iteration number, from `first` to the query's largest number.

    A lazy frame stays lazy; only one row per query and iteration is collected into memory.
    """
    schema = frame.collect_schema()
    tags = [nw.col("tag").max()] if "tag" in schema else []  # one per query, or null
    iterations = collect(frame.group_by("query_id", "iteration").agg(*tags))
    missing = _find_missing(iterations, first=first)
    if missing.is_empty():
        return frame

    new_rows: Any = nw.from_native(missing)
    if isinstance(frame, nw.LazyFrame):
        new_rows = move_to_engine(frame, new_rows.select(schema.names()))
    new_rows = new_rows.select(nw.col(name).cast(kind) for name, kind in schema.items())
    return nw.concat([frame, new_rows])  # type: ignore[no-any-return]  # as given


def _find_missing(iterations: pl.DataFrame, *, first: int) -> pl.DataFrame:
    """Return the rows to add for missing iterations. `iterations` has query_id, iteration, and tag if the run has tags."""
    iterations = iterations.sort("query_id", "iteration")
    before = pl.col("iteration").shift(1).over("query_id").fill_null(first - 1)
    # `gap` is the number of missing iterations before an iteration
    gaps = iterations.with_columns(before=before, gap=pl.col("iteration") - before - 1)
    _check_gaps(gaps, first=first)

    if "tag" in iterations.columns:
        gaps = gaps.with_columns(pl.col("tag").max().over("query_id"))
    numbers = pl.int_ranges(pl.col("before") + 1, pl.col("iteration"))
    missing = gaps.filter(pl.col("gap") > 0).with_columns(iteration=numbers).drop("before", "gap").explode("iteration")
    return missing.with_columns(doc_id=pl.lit(EMPTY_DOC), rank=pl.lit(0), score=pl.lit(0.0))


def _check_gaps(gaps: pl.DataFrame, *, first: int) -> None:
    """Raise `InputError` for an iteration below the first, and if so many iterations are missing that these are other numbers."""
    low = gaps.filter(pl.col("iteration") < first)
    if not low.is_empty():
        query_id, number = low.select("query_id", "iteration").row(0)
        remedy = f"Set {spell('first')} to the lowest iteration number"
        raise InputError(f"query {query_id!r}: iteration {number} is below {spell('first', first)}. {remedy}")

    no_iterations = f"column 2 does not hold iterations; renumber it, or read the run without {spell('gaps', 'empty')}"
    wide = gaps.filter(pl.col("gap") > _LARGEST_GAP)
    if not wide.is_empty():
        query_id, number, gap = wide.select("query_id", "iteration", "gap").row(0)
        problem = f"query {query_id!r} lacks {gap} iterations before iteration {number}, more than {_LARGEST_GAP}"
        raise InputError(f"{problem}: {no_iterations}")

    missing = gaps.get_column("gap").sum()
    if missing > max(_MOST_MISSING, _MOST_MISSING_EACH * len(gaps)):
        raise InputError(f"the run has {count_of(len(gaps), 'iteration')} and lacks {missing:,}: {no_iterations}")


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
    is_result = pl.col("doc_id") != EMPTY_DOC
    is_first = pl.int_range(pl.len()).over("query_id") == 0
    is_without_results = ~is_result.any().over("query_id")
    rows = rows.filter(is_result | (is_first & is_without_results))

    by_rank = pl.col("rank").rank("ordinal").over("query_id").cast(pl.Int64)
    placed = rows.with_columns(by_rank=by_rank, place=_place_by_score(rows))
    placed = placed.with_columns(pl.col("place").fill_null(pl.col("by_rank")))

    is_reordered = (pl.col("place") != pl.col("by_rank")).any().over("query_id")
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
    of_several = OfSeveral(f"no iterations in these runs: {_NO_ITERATIONS}")
    notice("no_iterations", f"no iterations in this run: {_NO_ITERATIONS}", about=of_run, of_several=of_several)


def warn_of_likely_iteration(column: str | None) -> None:
    """Give a notice if there is a `column` that looks like the iteration and was not read as the iteration."""
    if column is not None:
        sentence = describe_likely_iteration(column)
        notice("likely_iteration", f"{sentence}; now each query has one iteration")


def describe_likely_iteration(column: str) -> str:
    remedy = f"pass {spell('columns', {column: 'iteration'})}, or, if it is not, rename it"
    return f"found the column {column!r}, which looks like the iteration: {remedy}"
