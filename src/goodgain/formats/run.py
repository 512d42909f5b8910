"""Reads runs from any source into a `Run`, which ir_measures and other tools accept, and writes them."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import cached_property
from importlib import import_module
from typing import Any, ClassVar, NamedTuple, TypeVar

import narwhals as nw
import polars as pl
from ir_measures.util import ScoredDoc

from goodgain.argument_kinds import checks_kinds
from goodgain.errors import InputError, count_of, notice
from goodgain.files.bad_rows import Frame, RowSource, check_rows, find_problems
from goodgain.files.opening import check_fork, container, make_path
from goodgain.files.writing import write_frame
from goodgain.formats import any_source, iterations
from goodgain.formats.any_source import Columns, OpenFrame
from goodgain.formats.equal_rows import check_copies, select_identity
from goodgain.formats.run_parts import RankedPart, consume_parts, rank_on_engine
from goodgain.options import ERRORS, FIRST, GAPS, ORDER, check_choice, spell
from goodgain.ranking.dataframe_engines import collect, sort_unordered
from goodgain.ranking.first_occurrences_and_flattening import (
    FirstOccurrences,
    add_ranks,
    find_first_occurrences,
    make_ranking,
)
from goodgain.ranking.order_notices import OrderFacts, add_up_facts, count_ties, warn_of_facts, warn_of_ties
from goodgain.schema import EMPTY_DOC, RUN

_Result = TypeVar("_Result")
_Total = TypeVar("_Total")

_LARGEST_FIRST = 10**15
EMPTY_RUN = "the run is empty; every judged query counts as a query without a search"


class Reading(NamedTuple):
    """The options with which a run was read. `columns` is text: `step=iteration` for a renamed column."""

    gaps: str = GAPS
    first: int = FIRST
    errors: str = ERRORS
    columns: str = ""
    page: int | None = None

    def with_columns(self, columns: Columns, renamed: Collection[str]) -> Reading:
        used = sorted(f"{name}={ours}" for name, ours in columns.items() if str(name) in renamed)
        return self._replace(columns=",".join(used))

    @property
    def signature(self) -> dict[str, Any]:
        """The options that differ from their defaults."""
        return {name: value for name, value in self._asdict().items() if value != self._field_defaults[name]}


class PandasFacade:
    """Gives a run or qrels the attributes of a pandas frame. On first use, `host_frame` is converted to pandas."""

    @cached_property
    def _pandas(self) -> Any:
        return self.host_frame.to_pandas()

    def __getattr__(self, name: str) -> Any:
        # Copying and pickling look for private names: they must not find those of pandas, nor wait until it is imported.
        if not name.startswith("_") and self._is_of_pandas(name):
            return getattr(self._pandas, name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def _is_of_pandas(self, name: str) -> bool:
        """Tell whether a pandas frame of these columns has the attribute, without a conversion."""
        return name in self.columns or hasattr(import_module("pandas").DataFrame, name)

    def __getitem__(self, key: Any) -> Any:
        return self._pandas[key]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._pandas)


@dataclass(eq=False, repr=False)
class Run(PandasFacade):
    """A run with iterations. ir_measures and other tools can use it like a classic run.

    goodgain's measures read `frame`. The providers of ir_measures read the flattened ranking (order `seen`, no duplicates).
    The providers use `columns`, `itertuples()`, or other attributes of a pandas frame, which is built on first use.

    Attributes:
        frame: query_id, iteration, doc_id, rank, score, tag (rank, score and tag if known); a Polars frame, or the lazy frame
            that was given.
        name: the name of the system, from the file's stem; None for frames.
        has_iterations: False if no row of the source has a number as iteration.
        likely_iteration: a column of the source that looks like the iteration, if no column was read as the iteration.
        lacks_column: whether the source has no column of iterations.
        lacks_order: whether the source has neither ranks nor scores, so that its rows are ranked in their order.
        keeps_order: whether the engine of the frame keeps the order of rows. DuckDB and Spark do not.
        renamed: the columns of the source that `columns=` renamed.
        unnamed: rows without doc_id that may be results.
        never_searched: the queries that never searched; they have no row in `frame`.
        ids_mapped: the number of chunk ids that became documents, each counted once per query.
        reading: the options of `read_run` for this run.
        firsts: the first occurrences in each order, if an experiment caches them; else None.
        unpaged: the run before `page=` cut it, for classic measures; None if `page=` did not cut the run.

    >>> import goodgain as gg
    >>> import polars as pl
    >>> rows = {"query_id": "q", "iteration": [1, 1, 2], "doc_id": ["a", "b", "a"], "rank": [1, 2, 1]}
    >>> run = gg.read_run(pl.DataFrame(rows))
    >>> run.frame.height
    3
    >>> [row.doc_id for row in run.itertuples()]
    ['a', 'b']
    """

    frame: Any
    _: KW_ONLY
    name: str | None = None
    has_iterations: bool = True
    likely_iteration: str | None = None
    renamed: frozenset[str] = frozenset()
    unnamed: iterations.UnnamedRows = field(default=iterations.UnnamedRows())
    never_searched: pl.Series = field(default_factory=lambda: pl.Series("query_id", [], pl.String))
    reading: Reading = field(default=Reading())
    lacks_order: bool = False
    keeps_order: bool = True
    # A run with other rows loses these values.
    lacks_column: bool = field(default=False, init=False)
    ids_mapped: int = field(default=0, init=False)
    firsts: dict[str, FirstOccurrences] | None = field(default=None, init=False)
    unpaged: Run | None = field(default=None, init=False)
    columns: ClassVar[list[str]] = list(ScoredDoc._fields)

    def with_frame(self, frame: Any) -> Run:
        """Return a copy of the run with the rows of `frame`."""
        copied = replace(self, frame=frame)
        copied.lacks_column = self.lacks_column
        return copied

    def cut_into_pages(self, size: int) -> Run:
        """Return the run with new iterations of `size` results. The rows of a lazy frame are collected into memory.

        The run must not have iterations (see `check_pages`).
        """
        paged = self.with_frame(iterations.cut_into_pages(self.rows, size))
        paged.has_iterations = True
        paged.keeps_order = True
        paged.reading = self.reading._replace(page=size)
        paged.unpaged = self
        paged.ids_mapped = self.ids_mapped
        return paged

    @cached_property
    def rows(self) -> pl.DataFrame:
        """The frame in memory, collected if it was lazy."""
        if isinstance(self.frame, pl.DataFrame):
            return self.frame
        lazy: nw.LazyFrame[Any] = nw.from_native(self.frame)
        rows: pl.DataFrame = lazy.collect("polars").to_native()
        if self.keeps_order:
            return add_ranks(rows)
        rows = sort_unordered(rows)
        if "rank" in rows.columns or self.lacks_order:
            tied = count_ties(rows, None, order=ORDER, lacks_order=self.lacks_order)
            warn_of_ties(tied, lacks_order=self.lacks_order)
        return add_ranks(rows)

    @property
    def iteration_numbers(self) -> iterations.IterationNumbers:
        """The lowest and the highest iteration number, and whether the source has numbers."""
        numbers: Any = self.rows.get_column("iteration")
        return iterations.IterationNumbers(numbers.min(), numbers.max(), self.has_iterations)

    @property
    def lives_on_engine(self) -> bool:
        """Whether the rows stay on an engine such as DuckDB or Spark; false for Polars frames, which are collected."""
        return not self.keeps_order and not isinstance(self.frame, pl.DataFrame)

    def flatten(self, order: str = ORDER) -> pl.DataFrame:
        """Return the classic ranking. Give a notice if ranks contradict scores."""
        return self.host_frame if order == "seen" else self._flatten(order)

    @cached_property
    def host_frame(self) -> pl.DataFrame:
        """The flattened ranking (order `seen`, no duplicates) that other tools read: ir_measures, pytrec_eval, ranx."""
        return self._flatten("seen")

    def _flatten(self, order: str) -> pl.DataFrame:
        if self.unpaged is not None:
            return self.unpaged.flatten(order)
        check_choice("order", order)
        if self.lives_on_engine:
            parts = self.map_parts(list, _RankPart(self.without_rows(), order))
            whole = pl.concat([part.ranking for part in parts], how="vertical_relaxed")
            ranking = whole.sort("query_id", "rank", "doc_id")
            facts = add_up_facts(part.facts for part in parts)
        else:
            ranking, facts = self.rank_rows(order)
        self.warn_of_facts(facts)
        return ranking

    def flatten_lazily(self, order: str) -> Any:
        """Return the classic ranking as a lazy frame, on the engine of the run. Give the notices of `flatten`."""
        check_choice("order", order)
        if not self.lives_on_engine:
            return self.flatten(order).lazy()
        columns = nw.from_native(self.frame).collect_schema().names()
        types = {name: kind for name, kind in RUN.polars.items() if name in {*columns, "rank", "score"}}
        if not self._has_whole_ranks():
            types["rank"] = pl.Float64()
        rank = _RankPart(self.without_rows(), order, types)
        ranking, facts = rank_on_engine(self.frame, rank, columns=columns, types=types, label=self._label_of_copies)
        self.warn_of_facts(facts)
        return ranking

    def rank_rows(self, order: str) -> tuple[pl.DataFrame, OrderFacts]:
        """Return the classic ranking of the rows in memory, and the counts that its notices need."""
        firsts = find_first_occurrences(self.rows, order)
        ranking = make_ranking(firsts, self.rows.columns)
        return ranking, self.find_facts(firsts, firsts.equal_rows, order)

    def find_facts(
        self, ranked: FirstOccurrences, equal_rows: int, order: str, *, with_rows: bool = False
    ) -> OrderFacts:
        """Count ties and equal rows in memory, for notices. `ranked` has the first occurrences in the given order.

        `with_rows` says whether the order of all rows matters, and not only the order of the ranking.
        """
        # Without the column, equal rows may be results of different searches: another notice says that iterations are missing.
        equal_rows = 0 if self.lacks_column else equal_rows
        if self.keeps_order:
            return OrderFacts(ranked.orders, equal_rows, in_row_order=self.lacks_order and ranked.has_rankings)
        tied = count_ties(self.rows, None if with_rows else ranked, order=order, lacks_order=self.lacks_order)
        return OrderFacts(ranked.orders, equal_rows, tied=tied)

    def warn_of_facts(self, facts: OrderFacts) -> None:
        warn_of_facts(facts, about=self.name, lacks_order=self.lacks_order, paged=self.unpaged is not None)

    def without_rows(self) -> Run:
        """Return a copy that can get the rows of a part (`with_frame`). It has no queries that never searched."""
        copied = self.with_frame(None)
        copied.never_searched = self.never_searched.clear()
        return copied

    def map_parts(
        self, consume: Callable[[Iterator[_Result]], _Total], function: Callable[[pl.DataFrame], _Result], *names: str
    ) -> _Total:
        """Call `consume` with the result of `function` for each part of a lazy run (see `consume_parts`).

        Each part has those columns of `names` that the frame has. If there are no ranks, it also has the scores. Without `names`,
        it has all columns.
        """
        columns = nw.from_native(self.frame).collect_schema().names()
        wanted = {*(names or columns), *(() if "rank" in columns else ("score",))}
        used = [name for name in columns if name in wanted]
        label, keeps_order = self._label_of_copies, self.keeps_order
        return consume_parts(consume, self.frame, function, columns=used, keeps_order=keeps_order, label=label)

    @property
    def _label_of_copies(self) -> str | None:
        """The name of the source in an error that the run consists of copies; None if this cannot be known."""
        return None if self.lacks_column else f"the {RUN.name} frame"

    def _has_whole_ranks(self) -> bool:
        """Return whether ranks are whole numbers. The engine is queried only if ranks are floats."""
        frame = nw.from_native(self.frame)
        kind, rank = frame.collect_schema().get("rank"), nw.col("rank")
        if kind is None or not kind.is_float():
            return True
        return not len(collect(frame.filter((rank != rank.round()) | (rank.abs() >= 2.0**53)).select("rank").head(1)))

    @cached_property
    def first_iterations(self) -> pl.DataFrame:
        """A frame with query_id, doc_id and iteration (the first iteration that returned the document)."""
        firsts = find_first_occurrences(self.rows.select("query_id", "iteration", "doc_id", "rank"))
        query_id = firsts.queries.get_column("query_id").gather(firsts.rows.get_column("query"))
        return firsts.rows.select(query_id, "doc_id", "iteration")

    def itertuples(self, index: bool = False, name: str | None = None) -> Iterator[ScoredDoc]:
        """Return the flattened ranking as named tuples. The arguments are for compatibility with pandas and are ignored."""
        return map(ScoredDoc._make, self.host_frame.select(self.columns).iter_rows())

    def __len__(self) -> int:
        return self.host_frame.height

    def __repr__(self) -> str:
        name = f"{self.name!r}, " if self.name else ""
        if not isinstance(self.frame, pl.DataFrame):
            return f"Run({name}{type(self.frame).__module__.split('.')[0]} frame)"
        queries = count_of(self.frame.get_column("query_id").n_unique(), "query", "queries")
        return f"Run({name}{queries}, {count_of(self.frame.height, 'row')})"


@dataclass(frozen=True)
class _RankPart:
    """Ranks the rows of a part. `types` are the types of the columns, if they must be the same in all parts."""

    run: Run  # without rows
    order: str
    types: Mapping[Any, pl.DataType] | None = None

    def __call__(self, rows: pl.DataFrame) -> RankedPart:
        ranking, facts = self.run.with_frame(rows).rank_rows(self.order)
        return RankedPart(ranking if self.types is None else ranking.cast(self.types), facts)


@checks_kinds
def read_run(
    source: Any,
    *,
    gaps: str = GAPS,
    first: int = FIRST,
    errors: str = ERRORS,
    columns: Columns | None = None,
    page: int | None = None,
) -> Run:
    """Read a run from a path, a frame, named tuples or a dict of dicts.

    Args:
        source: a file, a frame that narwhals supports, ir_measures' named tuples, {query_id: {doc_id: score}}, or a `Run`
            (returned as it is). Formats of files are TREC text (column 2 is the iteration), Parquet, Arrow, JSON Lines, and CSV
            or TSV with a header; text files may be compressed (.gz or .zst). Frames have query_id, doc_id and possibly iteration,
            rank, score, tag. A lazy frame (Polars, DuckDB, PySpark ...) stays on its engine.
        gaps: `close` ignores missing numbers, and measures renumber the iterations of a query. `empty` treats each missing
            number, from `first` to the query's largest number, as a search with no results.
        first: the number of the first iteration of a query: 1, or 0 (TREC Dynamic Domain).
        errors: `raise` stops at the first bad row. `skip` leaves out bad rows with a notice.
        columns: maps names in the source to goodgain's names, such as {"step": "iteration"}. qid, q_id, docno, docid, did and pid
            need no mapping; a notice tells how they were read.
        page: cut the ranking of each query into iterations of this many results. The run must have no iterations. The classic
            ranking does not change.

    Returns:
        A `Run`. Without `page`, the iteration numbers are those of the source.

    Raises:
        InputError: the source or an option is invalid. The message names the problem and the remedy, and often the file and line.

    Source: trec_eval's run format; TREC Dynamic Domain for the iteration in column 2.

    >>> run = read_run({"q1": {"d1": 2.0, "d2": 1.0}})
    >>> run.frame["doc_id"].to_list()
    ['d1', 'd2']
    """
    run = load_run(source, gaps=gaps, first=first, errors=errors, columns=columns)
    any_source.check_columns_used(columns or {}, run)
    is_new = not isinstance(source, Run)  # the notices on a `Run` were given when it was read
    if is_new:
        iterations.warn_of_likely_iteration(run.likely_iteration)
    if page is not None:
        iterations.check_pages(page, [run.iteration_numbers], of_run=run.name or "the run")
        return run.cut_into_pages(page)
    if is_new:
        warn_of_repeats(run)
    return run


def load_run(
    source: Any, *, gaps: str = GAPS, first: int = FIRST, errors: str = ERRORS, columns: Columns | None = None
) -> Run:
    """Read a run as `read_run` does, but do not cut it into pages, and leave three checks to the caller.

    The checks are `check_columns_used` (a name in `columns` may belong to the qrels), `warn_of_likely_iteration` (only some
    measures need iterations) and `warn_of_repeats` (not needed for a run that is cut into pages).
    """
    check_run_options(source, gaps=gaps, first=first, errors=errors)
    if isinstance(source, Run):
        return source
    name, found, is_text = any_source.open_source(source, RUN, errors=errors, columns=any_source.check_columns(columns))
    any_source.warn_of_understood_columns(found.columns, found.rows.label)
    return make_run(found, Reading(gaps, first, errors), name=name, is_text=is_text)


def make_run(source: OpenFrame, reading: Reading, *, name: str | None, is_text: bool, is_part: bool = False) -> Run:
    """Make a run from an opened source: check rows, number iterations, add ranks.

    With `is_part`, the caller gives the notices that concern the whole run.
    """
    frame, rows, found = source
    gaps, first, errors, *_ = reading
    columns = frame.collect_schema().names()
    run = Run(None, name=name, likely_iteration=found.likely_iteration, renamed=found.renamed)
    run.reading = reading.with_columns(found.names, found.renamed)
    if is_text:
        any_source.check_document_column(frame, RUN, rows.label)
    else:
        frame = any_source.cast_to_table(frame, RUN, rows.label)
        run.unnamed = iterations.find_unnamed_rows(frame, rows)
        frame = iterations.mark_empty_iterations(frame)
        frame, rows = check_rows(frame, rows, find_problems(frame, RUN), errors=errors)
    if isinstance(frame, nw.DataFrame) and not is_part:
        identity = select_identity(frame.to_native())
        if identity is not None:
            check_copies(identity, rows.label)
    has_column = "iteration" in columns
    if has_column:
        frame, rows, run.never_searched = iterations.take_never_searched(frame, rows, errors=errors)
    else:
        frame = frame.with_columns(nw.lit(first).cast(nw.Int64).alias("iteration"))
    frame, rows, has_numbers = iterations.number_iterations(frame, rows, first=first, errors=errors)
    run.has_iterations = has_column and has_numbers
    if "tag" in columns:
        _check_tags(frame, rows)
    run.lacks_order = not {"rank", "score"} & {*columns}
    run.keeps_order = isinstance(frame, nw.DataFrame) or frame.implementation.is_polars()
    frame = frame.select([column for column in RUN.columns if column in (*columns, "iteration")])
    if isinstance(frame, nw.DataFrame):
        frame = nw.from_native(add_ranks(frame.to_native()))
    if gaps == "empty" and run.has_iterations:
        frame = iterations.add_empty_iterations(frame, first=first)
    run.frame = frame.to_native()
    if not is_part:
        run.lacks_column = not has_column
        iterations.warn_of_unnamed_rows(rows.label, [run.unnamed])
        if run.never_searched.is_empty() and not len(collect(frame.select("query_id").head(1))):
            notice("empty_run", f"{rows.label}: {EMPTY_RUN}")
    return run


def warn_of_repeats(run: Run) -> None:
    """Give the notice on missing iterations if a query repeats a document and no column looks like the iteration."""
    if not run.lacks_column or run.likely_iteration is not None:
        return
    results = nw.from_native(run.frame).filter(nw.col("doc_id") != EMPTY_DOC).select("query_id", "doc_id")
    number, different = (collect(rows.select(nw.len())).item() for rows in (results, results.unique()))
    if different < number:
        iterations.warn_of_missing_iterations(run.name)


def _check_tags(frame: Frame, rows: RowSource) -> None:
    if isinstance(frame, nw.DataFrame):  # almost every run has one tag
        column = frame.get_column("tag").drop_nulls()
        if not len(column) or (column == column.item(0)).all():
            return
    given: Any = frame.filter(~nw.col("tag").is_null())
    tags = given.group_by("query_id").agg(nw.col("tag").min().alias("one"), nw.col("tag").max().alias("other"))
    differing = collect(tags.filter(nw.col("one") != nw.col("other")).sort("query_id").head(1))
    if differing.is_empty():
        return
    query_id, one, other = differing.row(0)
    place = rows.label
    if isinstance(frame, nw.DataFrame):
        of_query = frame.with_row_index("row").filter(nw.col("query_id") == query_id, ~nw.col("tag").is_null())
        one = of_query.get_column("tag").item(0)
        row, other = of_query.filter(nw.col("tag") != one).select("row", "tag").row(0)
        place = rows.locate(row)
    wrong = f"{place} has the tag {other!r} where query {query_id!r} has {one!r} in another row"
    raise InputError(f"{wrong}; a run holds one system: give each system its own file")


def check_run_options(source: Any, *, gaps: str, first: int, errors: str) -> None:
    """Raise `InputError` for an invalid option, for options given with a `Run`, and in a forked process (see `check_fork`)."""
    check_fork()
    if isinstance(source, Run) and Reading(gaps, first, errors) != Reading():
        options = f"{spell('gaps')}, {spell('first')} and {spell('errors')}"
        raise InputError(f"this run has been read already; give {options} when you read its file")
    check_choice("errors", errors)
    if isinstance(first, bool) or not isinstance(first, int) or not 0 <= first <= _LARGEST_FIRST:
        raise InputError(f"{spell('first', first)}: give the number of the first iteration, usually 1 or 0")
    check_choice("gaps", gaps)


@checks_kinds
def write_run(run: Any, path: str | os.PathLike[str], *, tag: str | None = None) -> None:
    """Write a run as TREC text, or in the format of the file extension: Parquet, Arrow or JSON Lines (also .gz or .zst).

    In TREC text, white space and control characters in ids, and a `#` at the start of a line, become %XX. One notice counts the
    changed ids. Other formats keep ids unchanged. Column 6 of TREC text is `tag`, else the run's tag, else the run's name, else
    `goodgain`. The file is written whole or not at all.

    Raises:
        InputError: the file cannot be written.

    >>> import pathlib, tempfile
    >>> import goodgain as gg
    >>> import polars as pl
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "agent.run"
    >>> gg.write_run(pl.DataFrame({"query_id": "q", "iteration": [1, 2], "doc_id": ["a", "b"], "rank": 1, "score": 1.0}), path)
    >>> print(path.read_text(), end="")
    q 1 a 1 1.0 goodgain
    q 2 b 1 1.0 goodgain
    """
    source = read_run(run)
    target = make_path(path, "the file of the run")
    frame = iterations.add_never_searched(source.rows, source.never_searched)
    if container(target) == "text":
        name = tag or source.name or "goodgain"
        tags = pl.col("tag").fill_null(name) if "tag" in frame.columns and tag is None else pl.lit(name)
        frame = frame.select("query_id", "iteration", "doc_id", "rank", "score", tags.alias("tag"))
    write_frame(frame, target)
