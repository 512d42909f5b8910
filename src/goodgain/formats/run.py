"""Runs: reading one from whatever holds it, the object that every host can take, writing one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import narwhals as nw
import polars as pl

from goodgain.errors import InputError, notice
from goodgain.files.reading import container, read_bytes, stem
from goodgain.formats.checks import no_bad_rows, one_tag_per_query
from goodgain.formats.column_names import Columns, FoundColumns, check_columns, check_columns_used
from goodgain.formats.facade import PandasFacade
from goodgain.formats.frames import OpenFrame, open_frame, typed
from goodgain.formats.iterations import empty_iterations_added, empty_iterations_added_there, numbered
from goodgain.formats.order import put_in_order, tell_contradictions, tell_ties
from goodgain.formats.row_origins import Rows
from goodgain.formats.skipped import check_errors_option
from goodgain.formats.tables import read_table, write_table
from goodgain.formats.text import RUN_TEXT, read_text
from goodgain.formats.trec import write_trec
from goodgain.ranking.engines import collected, deferred
from goodgain.ranking.flattening import ranked, with_ranks
from goodgain.ranking.lazy_flattening import ranked_here, ranked_there
from goodgain.schema import EMPTY_DOC, RUN

__all__ = [
    "Run",
    "ScoredDoc",
    "check_run_options",
    "describe_likely_iteration",
    "has_repeats",
    "read_as_run",
    "read_run",
    "run_of",
    "write_run",
]

_LARGEST_FIRST = 10**15
EMPTY_RUN = "the run is empty; every judged query counts as one without a search"
NO_ITERATIONS = (
    "no iterations in this run: read it with goodgain.read_run, or, where a column of another name numbers them, pass "
    "columns={'that name': 'iteration'}"
)


class ScoredDoc(NamedTuple):
    """One document of the flattened ranking, as ir_measures' providers take it."""

    query_id: str
    doc_id: str
    score: float


class Run(PandasFacade):
    """An iterated run that is a classic run to every host.

    Our measures read `frame`. A classic provider of ir_measures sees the flattened ranking (order `seen`, no
    repeats): `columns` and `itertuples()`, or any other attribute of a pandas frame, built on first use.

    Attributes:
        frame: query_id, iteration, doc_id, rank, score, tag (rank, score and tag where known); a Polars frame, or the
            lazy frame it was made from.
        name: the system, by the file's stem; None for frames.
        has_iterations: False where the source had no column of iterations.
        likely_iteration: a column of the source that looks like the iteration, where none was one.
        renamed: the columns of the source that `columns=` renamed.
    """

    columns: ClassVar[list[str]] = list(ScoredDoc._fields)

    def __init__(
        self,
        frame: Any,
        *,
        name: str | None = None,
        has_iterations: bool = True,
        columns: FoundColumns | None = None,
    ) -> None:
        self.frame = frame
        self.name = name
        self.has_iterations = has_iterations
        self.likely_iteration = columns.likely_iteration if columns else None
        self.renamed: frozenset[str] = columns.renamed if columns else frozenset()

    @property
    def rows(self) -> pl.DataFrame:
        """The frame in memory, collected where it was lazy."""
        return self._collected

    @cached_property
    def _collected(self) -> pl.DataFrame:
        if isinstance(self.frame, pl.DataFrame):
            return self.frame
        lazy: nw.LazyFrame[Any] = nw.from_native(self.frame)
        rows: pl.DataFrame = lazy.collect("polars").to_native()
        return with_ranks(rows if lazy.implementation.is_polars() else put_in_order(rows))

    @property
    def lives_on_engine(self) -> bool:
        """Whether the rows stay on an engine of their own, such as DuckDB or Spark; Polars works in memory."""
        return not (isinstance(self.frame, pl.DataFrame) or nw.from_native(self.frame).implementation.is_polars())

    def flattened(self, order: str = "seen") -> pl.DataFrame:
        """The classic ranking; says in a notice where the ranks that make it contradict the scores."""
        return self._ranking if order == "seen" else self._flattened(order)

    @cached_property
    def _ranking(self) -> pl.DataFrame:
        return self._flattened("seen")

    def _flattened(self, order: str) -> pl.DataFrame:
        if isinstance(self.frame, pl.DataFrame):
            ranking, contradicting = ranked(self.frame, order=order)
            tell_contradictions(contradicting)
            return ranking
        found = ranked_here(nw.from_native(self.frame), order=order)
        self._tell(found.contradicting, found.tied)
        ranking_here: pl.DataFrame = found.ranking
        return ranking_here

    def flattened_there(self, order: str) -> Any:
        """The classic ranking of a lazy frame, as a lazy frame of the same engine."""
        found = ranked_there(nw.from_native(self.frame), order=order)
        self._tell(found.contradicting, found.tied)
        return found.ranking.to_native()

    def _tell(self, contradicting: int, tied: int) -> None:
        tell_contradictions(contradicting)
        tell_ties(tied, nw.from_native(self.frame).collect_schema().names())

    @cached_property
    def first_iterations(self) -> pl.DataFrame:
        """query_id, doc_id, iteration: where each document was found first, by the run's own numbers."""
        rows = deferred(nw.from_native(self.frame)).filter(nw.col("doc_id") != EMPTY_DOC)
        return collected(rows.group_by("query_id", "doc_id").agg(nw.col("iteration").min()))

    @property
    def shown(self) -> pl.DataFrame:
        """What a host may see: the flattened ranking."""
        return self._ranking

    def itertuples(self, index: bool = False, name: str | None = None) -> Iterator[ScoredDoc]:
        """The flattened ranking as named tuples; the arguments of pandas' method are taken and not needed."""
        return map(ScoredDoc._make, self._ranking.select(self.columns).iter_rows())

    def __len__(self) -> int:
        return self._ranking.height

    def __repr__(self) -> str:
        name = f"{self.name!r}, " if self.name else ""
        if not isinstance(self.frame, pl.DataFrame):
            return f"Run({name}{type(self.frame).__module__.split('.')[0]} frame)"
        return f"Run({name}{self.frame.get_column('query_id').n_unique():,} queries, {self.frame.height:,} rows)"


def read_run(
    source: Any, *, gaps: str = "close", first: int = 1, errors: str = "raise", columns: Columns | None = None
) -> Run:
    """Read a run from a path, a frame, named tuples or a dict of dicts.

    Args:
        source: TREC text whose column 2 is the iteration, Parquet, Arrow or JSON Lines (text and JSON Lines also
            .gz or .zst); a frame narwhals knows with query_id, doc_id and possibly iteration, rank, score, tag, whose
            rows stay where they are if it is lazy (Polars, DuckDB, PySpark ...); ir_measures' named tuples;
            {query_id: {doc_id: score}}; a `Run`, returned as it is.
        gaps: `close` counts the iterations of a query in their order; `empty` reads every missing number from
            `first` up to the query's largest as an iteration that searched and got nothing.
        first: the number of a first iteration, 1 or (TREC Dynamic Domain) 0.
        errors: `raise`, or `skip` to leave out bad rows with a notice.
        columns: name in the source -> name here, for columns with other names: {"step": "iteration"}.

    Returns:
        A `Run`; the iteration numbers are the file's own.

    Raises:
        InputError: with file, line, what is wrong and what to do.

    Source: trec_eval's run format; TREC Dynamic Domain for the iteration in column 2.

    >>> run = read_run({"q1": {"d1": 2.0, "d2": 1.0}})
    >>> run.frame["doc_id"].to_list()
    ['d1', 'd2']
    """
    run = read_as_run(source, gaps=gaps, first=first, errors=errors, columns=columns)
    check_columns_used(columns or {}, run)
    if run.likely_iteration is not None and run is not source:
        notice(f"{describe_likely_iteration(run.likely_iteration)}; it was read as a run of one iteration a query")
    return run


def read_as_run(
    source: Any, *, gaps: str = "close", first: int = 1, errors: str = "raise", columns: Columns | None = None
) -> Run:
    """`read_run`, for callers that say themselves what a run without iterations means to them."""
    check_run_options(source, gaps=gaps, first=first, errors=errors)
    if isinstance(source, Run):
        return source
    name, opened, is_text = _opened(source, errors, check_columns(columns))
    return run_of(opened, name=name, is_text=is_text, gaps=gaps, first=first, errors=errors)


def describe_likely_iteration(column: str) -> str:
    """The sentence about a column that looks like the iteration, and was not read as one."""
    return (
        f"found the column {column!r}, which looks like the iteration: pass columns={{{column!r}: 'iteration'}} "
        f"(--columns {column}=iteration), or, if it is not, rename it"
    )


def run_of(
    source: OpenFrame,
    *,
    name: str | None,
    is_text: bool,
    gaps: str,
    first: int,
    errors: str,
    is_part: bool = False,
) -> Run:
    """A run from columns as they were opened: checked, numbered and ranked.

    Of a part, nothing is told that depends on the others.
    """
    opened, rows, found = source
    columns = opened.collect_schema().names()
    if not is_text:
        opened, rows = no_bad_rows(typed(opened, RUN), rows, RUN, errors=errors)
    has_iterations = "iteration" in columns
    if not has_iterations:
        opened = opened.with_columns(nw.lit(first).cast(nw.Int64).alias("iteration"))
    opened, rows = numbered(opened, rows, first=first, errors=errors)
    if "tag" in columns:
        one_tag_per_query(opened, rows)
    opened = opened.select([column for column in RUN.columns if column in (*columns, "iteration")])
    if isinstance(opened, nw.LazyFrame):
        is_told = has_iterations or found.likely_iteration is not None
        lazy = _check_lazy_rows(opened, rows, has_iterations=has_iterations, is_told=is_told, gaps=gaps, first=first)
        return Run(lazy.to_native(), name=name, has_iterations=has_iterations, columns=found)
    frame = with_ranks(opened.to_native())
    if gaps == "empty" and has_iterations:
        frame = empty_iterations_added(frame, first=first)
    if frame.is_empty() and not is_part:
        notice(f"{rows.label}: {EMPTY_RUN}")
    if not has_iterations and not is_part and found.likely_iteration is None and has_repeats(frame):
        notice(NO_ITERATIONS)
    return Run(frame, name=name, has_iterations=has_iterations, columns=found)


def _check_lazy_rows(
    frame: nw.LazyFrame[Any], rows: Rows, *, has_iterations: bool, is_told: bool, gaps: str, first: int
) -> nw.LazyFrame[Any]:
    """The rows of a run that stay on their engine; what must be known of them is asked there."""
    if gaps == "empty" and has_iterations:
        frame = empty_iterations_added_there(frame, first=first)
    if not len(collected(frame.select("query_id").head(1))):
        notice(f"{rows.label}: {EMPTY_RUN}")
    if not is_told:
        results = (
            frame.filter(nw.col("doc_id") != EMPTY_DOC).group_by("query_id", "doc_id").agg(nw.len().alias("times"))
        )
        if len(collected(results.filter(nw.col("times") > 1).head(1))):
            notice(NO_ITERATIONS)
    return frame


def check_run_options(source: Any, *, gaps: str, first: int, errors: str) -> None:
    """Raise `InputError` for an option that has no meaning, or comes too late."""
    if isinstance(source, Run) and (gaps, first, errors) != ("close", 1, "raise"):
        raise InputError("this run has been read already; give gaps=, first= and errors= where its file is read")
    check_errors_option(errors)
    if isinstance(first, bool) or not isinstance(first, int) or not 0 <= first <= _LARGEST_FIRST:
        raise InputError(f"first={first!r}: give the number of a first iteration, usually 1 or 0")
    if gaps not in ("close", "empty"):
        raise InputError(f"gaps={gaps!r} is neither 'close' nor 'empty'")


def _opened(source: Any, errors: str, columns: Columns) -> tuple[str | None, OpenFrame, bool]:
    """Name, frame, and whether it was text (whose lines are checked while reading)."""
    if not isinstance(source, (str, os.PathLike)):
        return None, open_frame(source, RUN, columns=columns), False
    path = Path(source)
    name = stem(path)
    if container(path) != "text":
        return name, read_table(path, RUN, errors=errors, columns=columns), False
    frame, lines = read_text(read_bytes(path), RUN_TEXT, label=str(path), errors=errors)
    return name, OpenFrame(nw.from_native(frame), lines, FoundColumns({})), True


def has_repeats(frame: pl.DataFrame) -> bool:
    results = frame.filter(pl.col("doc_id") != EMPTY_DOC)
    return bool(results.select(pl.struct("query_id", "doc_id").is_duplicated().any()).item())


def write_run(run: Any, path: str | os.PathLike[str], *, tag: str | None = None) -> None:
    """Write a run as TREC text, or as Parquet, Arrow or JSON Lines if the name of the file says so (.gz, .zst too).

    TREC text has white space and control characters in ids as %XX, with one notice; the other forms keep ids as they
    are. The file appears whole or not at all. Without a tag in the run, `tag` or the run's name stands in column 6.

    Raises:
        InputError: the file cannot be written.
    """
    source = read_run(run)
    target = Path(path)
    frame = source.rows
    if container(target) != "text":
        write_table(frame, target)
        return
    name = tag or source.name or "goodgain"
    tags = pl.col("tag").fill_null(name) if "tag" in frame.columns and tag is None else pl.lit(name)
    write_trec(frame.select("query_id", "iteration", "doc_id", "rank", "score", tags.alias("tag")), target)
