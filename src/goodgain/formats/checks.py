"""Checks of the rows of a run or qrels, in memory or lazy."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import narwhals as nw

from goodgain.errors import InputError, notice
from goodgain.files.row_checks import Problem, describe_row, find_bad, lacks
from goodgain.files.row_checks import check_rows as check_rows_in_memory
from goodgain.files.row_origins import RowSource, quote
from goodgain.formats.frames import Frame
from goodgain.ranking.engines import collect
from goodgain.schema import EMPTY_DOC, QRELS, Table

__all__ = ["UnnamedRows", "check_rows", "check_tags", "find_unnamed_rows", "leave_out_rows", "warn_of_unnamed_rows"]


class UnnamedRows(NamedTuple):
    """Rows of a run without doc_id that do not look like an iteration without results: how many, and the first of them."""

    number: int = 0
    first: str = ""


def find_unnamed_rows(frame: Frame, rows: RowSource) -> UnnamedRows:
    """Return the rows with a null doc_id that may be results whose id was lost.

    A null doc_id says that the iteration has no results. Rank and score are 0 or null then, and where both are null or absent
    the iteration has no other row.
    """
    schema = frame.collect_schema()
    is_null = nw.col("doc_id").is_null()
    nameless: Frame = frame.filter(is_null)
    if not len(collect(nameless.head(1))):
        return UnnamedRows()
    if isinstance(frame, nw.DataFrame):
        nameless = frame.with_row_index("row").filter(is_null)
    has_value, has_zero = ~is_null, ~is_null  # false in all of these rows
    for name in (name for name in ("rank", "score") if name in schema):
        number = nw.col(name).fill_null(0)
        has_value = has_value | ((number != 0) & number.is_finite() if schema[name].is_float() else number != 0)
        has_zero = has_zero | (~nw.col(name).is_null() & (number == 0))
    iteration = [name for name in ("query_id", "iteration") if name in schema]
    results: Any = frame.filter(~is_null & (nw.col("doc_id") != EMPTY_DOC)).select(iteration).unique()
    ranked = collect(nameless.filter(has_value))
    beside = collect(nameless.filter(~has_value & ~has_zero).join(results, on=iteration, how="semi"))
    if ranked.is_empty() and beside.is_empty():
        return UnnamedRows()
    if isinstance(frame, nw.DataFrame):
        first = rows.locate(min(row for part in (ranked, beside) for row in part.get_column("row")))
    else:
        first = f"a row {quote(str((beside if ranked.is_empty() else ranked).row(0, named=True)))}"
    return UnnamedRows(len(ranked) + len(beside), first)


def warn_of_unnamed_rows(label: str, parts: Iterable[UnnamedRows]) -> None:
    """Give one notice about the rows that `find_unnamed_rows` found in the parts of a run, if there are any."""
    found = [part for part in parts if part.number]
    if found:
        count = sum(part.number for part in found)
        notice(
            f"{label}: {count:,} row{'s' * (count != 1)} without a doc_id {'has' if count == 1 else 'have'} a rank, a score, or "
            f"results beside, and {'was' if count == 1 else 'were'} not counted as results; the first: {found[0].first}; write "
            "the ids (pandas reads the id NA as none: keep_default_na=False), or '-' with rank and score 0 where an iteration "
            "has no results"
        )


def check_rows(frame: Frame, rows: RowSource, table: Table, *, errors: str) -> tuple[Frame, RowSource]:
    """Check that every row has its ids and finite numbers; with `errors="skip"`, leave out those that do not.

    A null doc_id in a run means an iteration that returned nothing: it becomes `-`, with rank and score 0.

    Returns:
        The frame, and where the rows that are left come from.

    Raises:
        InputError: a row is bad, and `errors` is `raise`.
    """
    names = frame.collect_schema().names()
    if table is not QRELS:
        frame = frame.with_columns(nw.col("doc_id").fill_null(EMPTY_DOC))
        nothing = nw.col("doc_id") == EMPTY_DOC
        for name in ("rank", "score"):
            if name in names:
                frame = frame.with_columns(
                    nw.when(nothing).then(nw.lit(0)).otherwise(nw.col(name)).cast(_type(frame, name)).alias(name)
                )
    problems = _problems(names, frame.collect_schema(), null_label=table is QRELS)
    if not isinstance(frame, nw.LazyFrame):
        return check_rows_in_memory(frame, rows, problems, errors=errors)
    wrong = find_bad(problems)
    if errors == "raise":
        _check_lazy_rows(frame.filter(wrong), rows, problems)
        return frame, rows
    return leave_out_rows(frame, wrong, label=rows.label, what=lambda row: describe_row(row, problems)), rows


def _type(frame: Frame, name: str) -> Any:
    return frame.collect_schema()[name]


def _problems(names: list[str], schema: Any, *, null_label: bool) -> list[Problem]:
    """Return what can be wrong with a row; a null label says that the document has no judgment."""
    problems = [lacks("query_id"), lacks("doc_id")]
    if "iteration" in names:
        problems.append((nw.col("iteration").is_null(), "has no iteration"))
    for name in ("rank", "score", "relevance"):
        if name in names:
            may_be_null = name == "relevance" and null_label
            wrong = nw.lit(False) if may_be_null else nw.col(name).is_null()
            if schema[name].is_float():
                finite = nw.col(name).is_finite()
                wrong = wrong | ~(finite | nw.col(name).is_null() if may_be_null else finite)
            problems.append((wrong, f"has a {name} that is not a finite number"))
    return problems


def _check_lazy_rows(bad: nw.LazyFrame[Any], rows: RowSource, problems: list[Problem]) -> None:
    """Raise `InputError` with a bad row as it stands, if there is one: rows of a lazy frame have no numbers."""
    one: nw.DataFrame[Any] = nw.from_native(collect(bad.head(1)))
    if len(one):
        raise InputError(
            f"{rows.label}: a row {quote(str(one.rows(named=True)[0]))} {describe_row(one, problems)}; correct it, or leave such "
            "rows out with errors='skip'"
        )


def check_tags(frame: Frame, rows: RowSource) -> None:
    """Raise `InputError` where a query has two tags: a run is one system."""
    if not isinstance(frame, nw.DataFrame) or frame.get_column("tag").null_count():
        if isinstance(frame, nw.DataFrame):
            rows = rows.subset((~frame.get_column("tag").is_null()).arg_true().to_list())
        frame = frame.filter(~nw.col("tag").is_null())
    if isinstance(frame, nw.DataFrame):
        column = frame.get_column("tag")
        if not len(column) or (column == column.item(0)).all():
            return
    tags = frame.group_by("query_id").agg(nw.col("tag").min().alias("one"), nw.col("tag").max().alias("other"))
    differing = tags.filter(nw.col("one") != nw.col("other")).sort("query_id").head(1)
    found = collect(differing)
    if not len(found):
        return
    query_id, one, other = found.row(0)
    place = rows.label
    if isinstance(frame, nw.DataFrame):
        of_query = frame.with_row_index("row").filter(nw.col("query_id") == query_id)
        first = of_query.get_column("tag").to_list()[0]
        second = of_query.filter(nw.col("tag") != first)
        one, other = first, second.get_column("tag").to_list()[0]
        place = rows.locate(second.get_column("row").to_list()[0])
    raise InputError(
        f"{place} has the tag {other!r} where query {query_id!r} has {one!r} in another row; "
        "a run is one system: give each system a file of its own"
    )


def leave_out_rows(
    frame: nw.LazyFrame[Any], wrong: nw.Expr, *, label: str, what: Callable[[nw.DataFrame[Any]], str]
) -> nw.LazyFrame[Any]:
    """Leave bad rows out of a lazy frame.

    One notice says how many, and shows one of them: rows of a lazy frame have no numbers that could be named.
    """
    bad = frame.filter(wrong)
    one: nw.DataFrame[Any] = nw.from_native(collect(bad.head(1)))
    if not len(one):
        return frame
    count = collect(bad.select(nw.len())).item()
    example = f"{quote(str(one.rows(named=True)[0]))} {what(one)}"
    notice(f"{label}: left out {count} bad row{'s' * (count != 1)}{', such as' if count > 1 else ':'} {example}")
    return frame.filter(~wrong)
