"""Pages: the ranking of a run without iterations, cut into iterations of so many results."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import polars as pl

from goodgain.errors import InputError
from goodgain.formats.iterations import AnyRun, lacks_iterations
from goodgain.formats.run import Run
from goodgain.options import check_whole_number, spell
from goodgain.schema import EMPTY_DOC


def check_pages(run: AnyRun, size: int, parts: Iterable[Run], name: str = "") -> None:
    """Raise `InputError` unless a run, whose rows are those of the parts, can be cut into pages of so many results."""
    check_whole_number("page", size, 1, others=", the number of results of a page")
    has_numbers, ends = False, set[int]()
    for part in parts:
        numbers: Any = part.rows.get_column("iteration")
        has_numbers, ends = has_numbers | part.has_iterations, ends | ({numbers.min(), numbers.max()} - {None})
    if not lacks_iterations(has_numbers, min(ends, default=None), max(ends, default=None)):
        raise InputError(
            f"{spell('page', size)}: {name or run.name or 'the run'} has iterations already. Leave out {spell('page')}, or "
            f"name the system without: {spell('page', {'SYSTEM': size})}."
        )


def page_run(run: Run, size: int, name: str = "") -> Run:
    """Return a run in iterations of so many results; raise `InputError` if it has iterations."""
    check_pages(run, size, [run], name)
    return cut_run(run, size)


def cut_run(run: Run, size: int) -> Run:
    """Return a run, or whole queries of one, in iterations of so many results. Rows of an engine come into memory."""
    paged = run.with_frame(_cut_into_pages(run.rows, size))
    paged.has_iterations, paged.reading, paged.unpaged = True, run.reading._replace(page=size), run
    paged.ids_mapped = run.ids_mapped
    return paged


def _cut_into_pages(rows: pl.DataFrame, size: int) -> pl.DataFrame:
    """Renumber the iterations of whole queries: a page has so many results, in the order of rank, then row.

    A query without results keeps one empty iteration.
    """
    is_result, of_query = pl.col("doc_id") != EMPTY_DOC, "query_id"
    is_first = pl.int_range(pl.len()).over(of_query) == 0
    kept = rows.filter(is_result | (is_first & ~is_result.any().over(of_query)))
    place = pl.col("rank").rank("ordinal").over(of_query).cast(pl.Int64)
    return kept.with_columns(iteration=(place - 1) // size + 1)
