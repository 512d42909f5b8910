"""A run with iterations, its classic ranking, and the counts that notices on the ranking need."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, TypeVar

import narwhals as nw
import polars as pl
from ir_measures.util import ScoredDoc

from goodgain.argument_kinds import checks_kinds
from goodgain.errors import count_of
from goodgain.formats import iterations
from goodgain.formats.any_source import Columns
from goodgain.formats.pandas_facade import PandasFacade
from goodgain.formats.run_parts import RankedPart, consume_parts, rank_on_engine
from goodgain.options import ERRORS, FIRST, GAPS, ORDER, check_choice
from goodgain.ranking.dataframe_engines import collect, sort_unordered
from goodgain.ranking.first_occurrences_and_flattening import (
    FirstOccurrences,
    add_ranks,
    find_first_occurrences,
    make_ranking,
)
from goodgain.ranking.order_notices import OrderFacts, add_up_facts, count_ties, warn_of_facts, warn_of_ties
from goodgain.schema import RUN

_Result = TypeVar("_Result")
_Total = TypeVar("_Total")


class Reading(NamedTuple):
    """The options with which a run was read. `columns` is text: `step=iteration` for a renamed column."""

    gaps: str = GAPS
    first: int = FIRST
    errors: str = ERRORS
    columns: str = ""
    page: int | None = None

    def with_columns(self, columns: Columns, renamed: Collection[str]) -> Reading:
        """Return the options with the mappings in `columns` that the user gave (`renamed`)."""
        mappings = sorted(f"{name}={our_name}" for name, our_name in columns.items() if str(name) in renamed)
        return self._replace(columns=",".join(mappings))

    @property
    def signature(self) -> dict[str, Any]:
        """The options that differ from their defaults."""
        return {name: value for name, value in self._asdict().items() if value != self._field_defaults[name]}


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

    @checks_kinds
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

    @checks_kinds
    def flatten(self, order: str = ORDER) -> pl.DataFrame:
        """Return the classic ranking. Give a notice if ranks contradict scores."""
        return self.host_frame if order == "seen" else self._flatten(order)

    @cached_property
    def host_frame(self) -> pl.DataFrame:
        """The flattened ranking (order `seen`, no duplicates) that other tools read: ir_measures, pytrec_eval, ranx."""
        return self._flatten("seen")

    def _flatten(self, order: str) -> pl.DataFrame:
        """Return the classic ranking, of the run before it was cut into pages, and give its notices."""
        if self.unpaged is not None:
            return self.unpaged.flatten(order)
        check_choice("order", order)
        if self.lives_on_engine:
            parts = self.map_parts(list, _RankPart(self.without_rows(), order))
            facts = add_up_facts(part.facts for part in parts)
            ranking = pl.concat([part.ranking for part in parts], how="vertical_relaxed")
            ranking = ranking.sort("query_id", "rank", "doc_id")
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
        rank_part = _RankPart(self.without_rows(), order, types)
        ranking, facts = rank_on_engine(
            self.frame, rank_part, columns=columns, types=types, label=self._label_of_copies
        )
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
        wanted = set(names or columns)
        if "rank" not in columns:
            wanted.add("score")
        return consume_parts(
            consume,
            self.frame,
            function,
            columns=[name for name in columns if name in wanted],
            keeps_order=self.keeps_order,
            label=self._label_of_copies,
        )

    @property
    def _label_of_copies(self) -> str | None:
        """The name of the source in an error that the run consists of copies; None if this cannot be known."""
        return None if self.lacks_column else f"the {RUN.name} frame"

    def _has_whole_ranks(self) -> bool:
        """Return whether ranks are whole numbers. The engine is queried only if ranks are floats."""
        frame = nw.from_native(self.frame)
        kind = frame.collect_schema().get("rank")
        if kind is None or not kind.is_float():
            return True
        rank = nw.col("rank")
        not_whole = frame.filter((rank != rank.round()) | (rank.abs() >= 2.0**53))
        return collect(not_whole.select("rank").head(1)).is_empty()

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
            library = type(self.frame).__module__.split(".")[0]
            return f"Run({name}{library} frame)"
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
        if self.types is not None:
            ranking = ranking.cast(self.types)
        return RankedPart(ranking, facts)
