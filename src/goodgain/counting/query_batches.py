"""Splits a run into batches of whole queries. Each batch has counts per iteration and, on request, a ranking."""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import NamedTuple, TypeVar

import narwhals as nw
import polars as pl

from goodgain.counting.ledger import find_unit, label_by_iteration, tally, tally_first_occurrences
from goodgain.counting.run_in_blocks import Block, RunFile, check_only_block, map_ahead, partition_by_query
from goodgain.errors import notice
from goodgain.files.delimited import warn_of_passed_over
from goodgain.formats import Qrels, Run
from goodgain.formats.iterations import UnnamedRows, warn_of_missing_iterations, warn_of_unnamed_rows
from goodgain.formats.run import EMPTY_RUN
from goodgain.options import ORDER
from goodgain.ranking.dataframe_engines import tabulate_on_engine, warn_of_order
from goodgain.ranking.first_occurrences_and_flattening import (
    FirstOccurrences,
    Orders,
    find_first_occurrences,
    make_ranking,
    warn_of_equal_rows,
    warn_of_orders,
    warn_of_row_order,
)
from goodgain.ranking.ranking_table import RankingTable, tabulate_first_occurrences, tabulate_ranking

_Result = TypeVar("_Result")

#: The columns that place a result in a ranking. Counts need all but the last.
_PLACES = ("query_id", "iteration", "doc_id", "rank", "score")


class QueryBatch(NamedTuple):
    """The counts and rankings of some queries of a run. No query is in two batches."""

    tally: pl.DataFrame  # what `counting.ledger.tally` returns for the rows
    #: query_id, doc_id, score and possibly more, the rows of a query together; None if not requested.
    ranking: pl.DataFrame | None
    table: RankingTable | None  # None if not requested
    #: query_id, doc_id, iteration of first occurrences; None without labels by iteration.
    first_iterations: pl.DataFrame | None
    rows: pl.DataFrame | None = None  # all rows of the queries; None if not requested
    orders: Orders = Orders()
    has_repeats: bool = False  # whether a document occurs twice in a query
    has_iterations: bool = True  # as in `Run`
    unnamed: UnnamedRows = UnnamedRows()  # as in `Run`
    equal_rows: int = 0  # as in `FirstOccurrences`
    in_row_order: bool = (
        False  # whether the order of the rows, without ranks and scores, decides a ranking that is needed
    )


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


class _ScatteredQueriesError(Exception):
    """Raised if several blocks of a file contain rows of the same query."""


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
    if not isinstance(run, RunFile):
        return consume(iter([_count_run(qrels, run, rels, ranking)]))
    count = _Counter(qrels, rels, ranking).count
    with suppress(_ScatteredQueriesError):
        return consume(_count_blocks(run, run.blocks(), count))
    # Not inside an except clause, where the error would keep the first call in memory.
    return consume(_count_blocks(run, partition_by_query(run, with_check=True), count))


def _count_run(qrels: Qrels, run: Run, rels: Sequence[float], request: RankingRequest | None) -> QueryBatch:
    """Count and rank a run in memory, or on the engine that holds the rows."""
    if isinstance(run.frame, pl.DataFrame) or (request is not None and (request.with_rows or not run.lives_on_engine)):
        batch = _Counter(qrels, rels, request).count(run)
        warn_of_equal_rows(batch.equal_rows, about=run.name)
        if batch.in_row_order:
            warn_of_row_order()
        warn_of_orders(batch.orders, paged=run.unpaged is not None)
        return batch
    ranking, table = None, None
    if request is not None and request.with_table and not request.with_documents:
        rows = nw.from_native(run.frame)
        warn_of_order(rows, order=request.order)
        table = tabulate_on_engine(rows, qrels.judgments, order=request.order, positions=request.positions)
    elif request is not None:
        ranking = run.flatten(request.order)
        if request.with_table:
            table = tabulate_ranking(ranking, qrels.judgments, positions=request.positions, unjudged=request.unjudged)
    tallied = tally(qrels.frame, run.frame, rels=rels, labels=qrels.labels)
    return QueryBatch(
        _append_never_searched(tallied, run), ranking, table, None if qrels.labels is None else run.first_iterations
    )


def _append_never_searched(tallied: pl.DataFrame, run: Run) -> pl.DataFrame:
    queries = run.never_searched.to_frame("query_id")  # without iteration
    return pl.concat([tallied, queries], how="diagonal_relaxed") if len(queries) else tallied


def find_firsts(run: Run, rows: pl.DataFrame, order: str = ORDER) -> FirstOccurrences:
    """Return the first occurrences in a run, from `rows`. If the run has a cache (`run.firsts`), use the cache instead."""
    if run.firsts is None:
        return find_first_occurrences(rows, order)
    if order not in run.firsts:
        run.firsts[order] = find_first_occurrences(run.rows.select(*_PLACES), order)
    return run.firsts[order]


class _Counter:
    """Counts and ranks runs in memory. Several threads may use one counter."""

    def __init__(self, qrels: Qrels, rels: Sequence[float], request: RankingRequest | None) -> None:
        self._qrels, self._rels, self._request = qrels, rels, request
        self._columns = _PLACES if request is not None else _PLACES[:-1]
        # Computed before threads start, because `judgments` is a cached property.
        self._judgments, self._unit = qrels.judgments, find_unit(qrels.frame.get_column("relevance"))

    def count(self, run: Run) -> QueryBatch:
        qrels, rows = self._qrels, run.rows.select(self._columns)
        firsts, first_iterations = find_firsts(run, rows), None
        if qrels.labels is None:
            relevance = self._judgments.look_up(firsts)
        else:
            query_id = firsts.queries.get_column("query_id").gather(firsts.rows.get_column("query"))
            first_iterations = firsts.rows.select(query_id, "doc_id", "iteration")
            relevance = label_by_iteration(first_iterations, qrels.frame)
        tallied = tally_first_occurrences(firsts, relevance, rels=self._rels, unit=self._unit)
        whole = firsts  # before pages were cut
        if run.unpaged is not None:
            whole = find_firsts(run.unpaged, run.unpaged.rows.select(_PLACES))
        ranking, table, orders = self._rank(run, whole, None if whole is not firsts else relevance)
        if run.unpaged is not None and first_iterations is not None:  # the labels of the ranking need these iterations
            first_iterations = run.unpaged.first_iterations
        requested = rows if self._request is not None and self._request.with_rows else None
        # Without the column, equal rows may be results of different searches: another notice says that iterations are missing.
        equal_rows = 0 if run.lacks_column else whole.equal_rows
        is_ranked = run.unpaged is not None or (self._request is not None and self._request.is_of_ranking)
        in_row_order = run.lacks_order and is_ranked and whole.has_rankings
        facts = orders, firsts.has_repeats, run.has_iterations, run.unnamed, equal_rows, in_row_order
        return QueryBatch(_append_never_searched(tallied, run), ranking, table, first_iterations, requested, *facts)

    def _rank(
        self, run: Run, firsts: FirstOccurrences, relevance: pl.Series | None
    ) -> tuple[pl.DataFrame | None, RankingTable | None, Orders]:
        """Return what the request asks for, and the orders of the ranking. `firsts` are those before pages were cut."""
        if (request := self._request) is None:
            return None, None, Orders() if run.unpaged is None else firsts.orders
        if request.order != "seen":
            ranked = run if run.unpaged is None else run.unpaged
            firsts, relevance = find_firsts(ranked, ranked.rows.select(self._columns), request.order), None
        ranking = make_ranking(firsts, ["query_id", "doc_id", "score"]) if request.with_documents else None
        table = None
        if request.with_table:
            relevance = self._judgments.look_up(firsts) if relevance is None else relevance
            table = tabulate_first_occurrences(
                firsts, self._judgments, relevance, positions=request.positions, unjudged=request.unjudged
            )
        return ranking, table, firsts.orders


def _count_blocks(file: RunFile, blocks: Iterable[Block], count: Callable[[Run], QueryBatch]) -> Iterator[QueryBatch]:
    orders, unnamed, met = list[Orders](), list[UnnamedRows](), set[str]()
    equal_rows: list[int] = []  # of each batch
    in_row_order = False
    repeats_without_iterations = False
    for batch in _count_ahead(blocks, count):
        unnamed.append(batch.unnamed)
        repeats_without_iterations |= batch.has_repeats
        file.numbered.append(batch.has_iterations)
        query_ids = batch.tally.get_column("query_id").unique().to_list()
        if not met.isdisjoint(query_ids):
            raise _ScatteredQueriesError
        met.update(query_ids)
        orders.append(batch.orders)
        equal_rows.append(batch.equal_rows)
        in_row_order |= batch.in_row_order
        yield batch
    warn_of_file(file, unnamed, is_empty=not met)
    if len(equal_rows) == 1 and equal_rows[0]:
        check_only_block(file)
    warn_of_equal_rows(sum(equal_rows), about=file.name)
    if in_row_order:
        warn_of_row_order()
    warn_of_orders(Orders(*map(sum, zip(Orders(), *orders, strict=True))), paged=file.page is not None)
    if repeats_without_iterations and file.page is None:
        warn_of_missing_iterations(file.name)


def warn_of_file(file: RunFile, unnamed: Iterable[UnnamedRows], *, is_empty: bool) -> None:
    if is_empty:
        notice("empty_run", f"{file.path}: {EMPTY_RUN}")
    warn_of_passed_over(str(file.path), file.passed_over.values())
    file.passed_over.clear()
    warn_of_unnamed_rows(str(file.path), unnamed)


def _count_ahead(blocks: Iterable[Block], count: Callable[[Run], QueryBatch]) -> Iterator[QueryBatch]:
    """Yield the counts of each block, while threads count the next blocks.

    `has_repeats` is false for blocks with an `iteration` column: in such blocks, repeated documents need no notice. Blocks without
    the column have no `equal_rows`, as in memory.
    """

    def count_block(block: Block) -> QueryBatch:
        counted = count(block.run)
        lacks_column = block.frame is not None and "iteration" not in block.frame.columns
        if lacks_column:
            return counted._replace(equal_rows=0)
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
