"""Splits a run into batches of whole queries. Each batch has counts per iteration and, on request, a ranking."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import polars as pl

from goodgain.counting.ledger import label_by_iteration, tally_first_occurrences
from goodgain.counting.run_in_blocks import Block, RunFile, check_only_block, partition_by_query
from goodgain.errors import notice
from goodgain.files.trec_text import warn_of_passed_over
from goodgain.formats import Qrels, Run
from goodgain.formats.iterations import UnnamedRows, warn_of_missing_iterations, warn_of_unnamed_rows
from goodgain.formats.run_parts import ScatteredQueriesError, map_ahead
from goodgain.formats.run_reading import EMPTY_RUN
from goodgain.options import ORDER
from goodgain.ranking.first_occurrences_and_flattening import FirstOccurrences, find_first_occurrences, make_ranking
from goodgain.ranking.order_notices import OrderFacts, add_up_facts, warn_of_facts
from goodgain.ranking.ranking_table import Judgments, RankingTable, tabulate_first_occurrences

_Result = TypeVar("_Result")

#: The columns that place a result in a ranking. Counts need all but the last.
_PLACES = ("query_id", "iteration", "doc_id", "rank", "score")


class QueryBatch(NamedTuple):
    """The counts and rankings of some queries of a run. No query is in two batches."""

    tally: pl.DataFrame  # the counts of each query and iteration (`tally_first_occurrences`)
    #: query_id, doc_id, score and possibly more, the rows of a query together; None if not requested.
    ranking: pl.DataFrame | None
    table: RankingTable | None  # None if not requested
    #: query_id, doc_id, iteration of first occurrences; None without labels by iteration, and without a ranking.
    first_iterations: pl.DataFrame | None
    rows: pl.DataFrame | None = None  # all rows of the queries; None if not requested
    facts: OrderFacts = OrderFacts()
    has_repeats: bool = False  # whether a document occurs twice in a query
    has_iterations: bool = True  # as in `Run`
    unnamed: UnnamedRows = UnnamedRows()  # as in `Run`


class RankingRequest(NamedTuple):
    """Tells `consume_batches` which rankings to compute, and which columns and rows a batch needs."""

    order: str  # how iterations become one ranking: `seen`, `interleaved` or `last`
    with_documents: bool = True  # whether the ranking with its doc_ids is needed
    with_table: bool = False  # whether the ranking table is needed
    positions: Collection[str] = ()  # the columns of positions that the table needs in addition to trec_eval's `k`
    with_rows: bool = False  # whether all rows of the queries are needed, in memory
    unjudged: bool = False  # whether the table needs rows for documents without a label

    @property
    def is_of_ranking(self) -> bool:
        return self.with_documents or self.with_table


def consume_batches(
    consume: Callable[[Iterator[QueryBatch]], _Result],
    qrels: Qrels,
    run: Run | RunFile,
    *,
    rels: Sequence[float],
    ranking: RankingRequest | None = None,
) -> _Result:
    """Call `consume` with the batches of a run and return the result. A large file has several batches, which share no query.

    If several blocks of a file have rows of one query, the call is stopped. The rows are grouped by query in temporary files, and
    a second call gets all batches. `consume` must keep nothing from the first call. `rels` are the thresholds of relevance.
    """
    counter = PartCounter.of(qrels, rels, ranking)
    if isinstance(run, RunFile):
        with suppress(ScatteredQueriesError):
            return consume(_count_blocks(run, run.blocks(), counter))
        # Not inside an except clause, where the error would keep the first call in memory.
        return consume(_count_blocks(run, partition_by_query(run, with_check=True), counter))
    if isinstance(run.frame, pl.DataFrame):
        batch = counter.count(run)
        run.warn_of_facts(batch.facts)
        return consume(iter([batch]))
    return run.map_parts(
        lambda batches: consume(_tell_facts(run, _check_apart(_add_never_searched(run, batches)))),
        CountedPart(counter, run.without_rows()),
        *counter.columns,
    )


def _add_never_searched(run: Run, batches: Iterator[QueryBatch]) -> Iterator[QueryBatch]:
    """Add the queries that never searched to the first batch: parts know nothing of them."""
    first = next(batches)
    yield first._replace(tally=_append_never_searched(first.tally, run))
    yield from batches


def _check_apart(batches: Iterable[QueryBatch]) -> Iterator[QueryBatch]:
    """Yield the batches. Raise `ScatteredQueriesError` if two of them have a query in common."""
    met = set[str]()
    for batch in batches:
        query_ids = batch.tally.get_column("query_id").unique().to_list()
        if not met.isdisjoint(query_ids):
            raise ScatteredQueriesError
        met.update(query_ids)
        yield batch


def _tell_facts(run: Run, batches: Iterable[QueryBatch]) -> Iterator[QueryBatch]:
    """Yield the batches, then give the notices on the order of the results."""
    facts = []
    for batch in batches:
        facts.append(batch.facts)
        yield batch
    run.warn_of_facts(add_up_facts(facts))


def _append_never_searched(tallied: pl.DataFrame, run: Run) -> pl.DataFrame:
    queries = run.never_searched.to_frame("query_id")  # without iteration
    return pl.concat([tallied, queries], how="diagonal_relaxed") if len(queries) else tallied


def find_firsts(run: Run, columns: Sequence[str], order: str = ORDER) -> FirstOccurrences:
    """Return the first occurrences in a run with the given columns. A run with a cache (`run.firsts`) uses the cache."""
    if run.firsts is None:
        return find_first_occurrences(run.rows.select(columns), order)
    if order not in run.firsts:
        run.firsts[order] = find_first_occurrences(run.rows.select(_PLACES), order)
    return run.firsts[order]


@dataclass(frozen=True)
class PartCounter:
    """Counts and ranks the rows of a run in memory: a whole run, or a part of whole queries.

    Several threads may use one counter, and Spark sends it to its workers. So it holds what it needs of the qrels, and no more.
    """

    judgments: Judgments
    labels: pl.DataFrame | None  # query_id, doc_id, iteration, relevance, if labels apply to iterations
    unit: float  # of `find_unit`
    rels: Sequence[float]
    request: RankingRequest | None

    @classmethod
    def of(cls, qrels: Qrels, rels: Sequence[float], request: RankingRequest | None) -> PartCounter:
        labels = None if qrels.labels is None else qrels.frame
        return cls(qrels.judgments, labels, qrels.unit, tuple(rels), request)

    @property
    def columns(self) -> tuple[str, ...]:
        return _PLACES if self.request is not None else _PLACES[:-1]

    def count(self, run: Run) -> QueryBatch:
        """Return the counts of a run and, on request, its ranking. Pages have counts; the ranking is that of the run before."""
        firsts = find_firsts(run, self.columns)
        first_iterations = None
        number = self.judgments.number_queries(firsts)
        if self.labels is None:
            relevance = self.judgments.look_up(firsts, number)
        else:
            query_id = firsts.queries.get_column("query_id").gather(firsts.rows.get_column("query"))
            first_iterations = firsts.rows.select(query_id, "doc_id", "iteration")
            relevance = label_by_iteration(first_iterations, self.labels)
        tallied = tally_first_occurrences(firsts, relevance, rels=self.rels, unit=self.unit)

        if run.unpaged is None:
            ranking, table, facts = self._rank(run, firsts, (number, relevance))
        else:
            ranking, table, facts = self._rank(run, find_firsts(run.unpaged, _PLACES), None)
        if run.unpaged is not None and first_iterations is not None:  # the labels of the ranking need these iterations
            first_iterations = run.unpaged.first_iterations

        if self.request is None or not self.request.with_documents:  # what is not needed stays on Spark's workers
            first_iterations = None
        requested = None
        if self.request is not None and self.request.with_rows:
            requested = run.rows.select(self.columns)
        others = facts, firsts.has_repeats, run.has_iterations, run.unnamed
        return QueryBatch(_append_never_searched(tallied, run), ranking, table, first_iterations, requested, *others)

    def _rank(
        self, run: Run, firsts: FirstOccurrences, labels: tuple[Any, pl.Series] | None
    ) -> tuple[pl.DataFrame | None, RankingTable | None, OrderFacts]:
        """Return the tables of the request, and the counts that notices need.

        `firsts` are the first occurrences without pages. `labels` are their numbers of queries and their labels, if known.
        """
        request, equal_rows = self.request, firsts.equal_rows
        if request is None and run.unpaged is None:
            # without a column of iterations, equal rows have a notice of their own
            return None, None, OrderFacts(equal_rows=0 if run.lacks_column else equal_rows)
        if request is None:
            return None, None, run.find_facts(firsts, equal_rows, ORDER)
        if request.order != "seen":
            ranked = run if run.unpaged is None else run.unpaged
            firsts, labels = find_firsts(ranked, self.columns, request.order), None
        ranking = make_ranking(firsts, ["query_id", "doc_id", "score"]) if request.with_documents else None
        table = None
        if request.with_table:
            if labels is None:
                number = self.judgments.number_queries(firsts)
                labels = number, self.judgments.look_up(firsts, number)
            table = tabulate_first_occurrences(firsts, *labels, positions=request.positions, unjudged=request.unjudged)
        facts = run.find_facts(firsts, equal_rows, request.order, with_rows=request.with_rows)
        if run.unpaged is None and not request.is_of_ranking:  # no result is ranked, so the order of rows has no effect
            facts = facts._replace(in_row_order=False)
        return ranking, table, facts


@dataclass(frozen=True)
class CountedPart:
    """Counts the rows of a part of a run. `run` has no rows."""

    counter: PartCounter
    run: Run

    def __call__(self, rows: pl.DataFrame) -> QueryBatch:
        return self.counter.count(self.run.with_frame(rows))


def _count_blocks(file: RunFile, blocks: Iterable[Block], counter: PartCounter) -> Iterator[QueryBatch]:
    """Yield the counts of each block of a file, then give the notices on the whole file."""
    facts, unnamed = list[OrderFacts](), list[UnnamedRows]()
    is_empty = True
    repeats_without_iterations = False
    for batch in _check_apart(_count_ahead(blocks, counter)):
        unnamed.append(batch.unnamed)
        repeats_without_iterations |= batch.has_repeats
        file.numbered.append(batch.has_iterations)
        is_empty = is_empty and batch.tally.is_empty()
        facts.append(batch.facts)
        yield batch
    warn_of_file(file, unnamed, is_empty=is_empty)
    if len(facts) == 1 and facts[0].equal_rows:
        check_only_block(file)
    warn_of_facts(add_up_facts(facts), about=file.name, paged=file.page is not None)
    if repeats_without_iterations and file.page is None:
        warn_of_missing_iterations(file.name)


def warn_of_file(file: RunFile, unnamed: Iterable[UnnamedRows], *, is_empty: bool) -> None:
    if is_empty:
        notice("empty_run", f"{file.path}: {EMPTY_RUN}")
    warn_of_passed_over(str(file.path), file.passed_over.values())
    file.passed_over.clear()
    warn_of_unnamed_rows(str(file.path), unnamed)


def _count_ahead(blocks: Iterable[Block], counter: PartCounter) -> Iterator[QueryBatch]:
    """Yield the counts of each block, while threads count the next blocks.

    `has_repeats` is false for blocks with an `iteration` column: in such blocks, repeated documents need no notice. Blocks without
    the column have no `equal_rows`, as in memory.
    """

    def count_block(block: Block) -> QueryBatch:
        counted = counter.count(block.run)
        lacks_column = block.frame is not None and "iteration" not in block.frame.columns
        if lacks_column:
            return counted._replace(facts=counted.facts._replace(equal_rows=0))
        return counted._replace(has_repeats=False)

    return map_ahead(count_block, blocks)


class QrelsByQuery:
    """Selects the judgments of each batch's queries. A document has one label, or one label per subtopic."""

    def __init__(self, qrels: Qrels) -> None:
        self._by_iteration = qrels.labels is not None
        self._rest = qrels.frame if self._by_iteration else qrels.rows

    def take(self, batch: QueryBatch) -> pl.DataFrame:
        """Return the labels of the queries in a batch, with query_id, doc_id, relevance and iteration (column 2 of the qrels)."""
        queries = batch.tally.select("query_id").unique()
        taken = self._rest.join(queries, on="query_id", how="semi", maintain_order="left")
        self._rest = self._rest.join(queries, on="query_id", how="anti", maintain_order="left")
        if batch.first_iterations is not None:
            return _label_first_occurrences(taken, batch.first_iterations)
        return taken

    def take_rest(self) -> pl.DataFrame:
        if self._by_iteration:
            return _label_first_occurrences(self._rest, self._rest.select("query_id", "doc_id", "iteration").clear())
        return self._rest


def _label_first_occurrences(judgments: pl.DataFrame, firsts: pl.DataFrame) -> pl.DataFrame:
    """Return one label per document from judgments with labels by iteration.

    A retrieved document gets the label for the iteration of its first occurrence. Without such a label, the document gets the
    label that applies to every iteration, or no label. A document that was not retrieved gets its largest label.
    """
    key = ["query_id", "doc_id"]
    retrieved = firsts.select(*key, label_by_iteration(firsts, judgments)).drop_nulls()
    largest = judgments.group_by(key, maintain_order=True).agg(pl.col("relevance").max().cast(pl.Float64))
    labels = pl.concat([retrieved, largest.join(firsts, on=key, how="anti")]).sort(key)
    return labels.with_columns(iteration=pl.lit("0"))
