"""Splits a run into batches of whole queries, each with its tally and, where one is asked for, its ranking."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from threading import Lock
from typing import NamedTuple

import narwhals as nw
import polars as pl

from goodgain.batches.partition import partition_by_query
from goodgain.batches.run_file import Block, RunFile
from goodgain.counting.ledger import find_unit, tally, tally_first_occurrences
from goodgain.errors import notice
from goodgain.formats import Qrels, Run
from goodgain.formats.checks import warn_of_unnamed_rows
from goodgain.formats.run import EMPTY_RUN, warn_of_missing_iterations
from goodgain.formats.text import warn_of_passed_over
from goodgain.ranking.engine_ranking import tabulate_on_engine, warn_of_order
from goodgain.ranking.first_occurrences import FirstOccurrences, find_first_occurrences
from goodgain.ranking.flattening import make_ranking, warn_if_scores_contradict
from goodgain.ranking.ranking_table import (
    Judgments,
    RankingTable,
    tabulate_first_occurrences,
    tabulate_ranking,
)

__all__ = ["QueryBatch", "RankingRequest", "ScatteredQueriesError", "query_batches", "tally_run"]

#: Blocks that threads count while the caller scores another one. Each is in memory.
_AHEAD = 2


class QueryBatch(NamedTuple):
    """Some queries of a run with all their rows.

    Attributes:
        tally: what `counting.ledger.tally` returns for the rows.
        ranking: query_id, doc_id, score (and more where they were read), the rows of a query together; None where no
            ranking was asked for.
        table: the ranking table; None where it was not asked for.
        run: the rows, which labels by iteration need; None for other labels.
    """

    tally: pl.DataFrame
    ranking: pl.DataFrame | None
    table: RankingTable | None
    run: Run | None


@dataclass(frozen=True)
class RankingRequest:
    """The rankings that batches are to have.

    Attributes:
        order: the order in which iterations become one ranking: `seen`, `interleaved` or `last`.
        with_documents: whether the ranking itself is needed, with its doc_ids.
        judgments: the labels of the ranking table; None where no table is needed.
        positions: the columns of positions that the table needs beside trec_eval's `k`.
    """

    order: str
    with_documents: bool = True
    judgments: Judgments | None = None
    positions: Collection[str] = ()


class ScatteredQueriesError(Exception):
    """The rows of a query are in several blocks of a file, which has to be read again with `scattered=True`."""


def query_batches(
    run: Run | RunFile,
    qrels: Qrels,
    *,
    rels: Sequence[float],
    ranking: RankingRequest | None = None,
    scattered: bool = False,
) -> Iterator[QueryBatch]:
    """Yield a run in batches that share no query: one batch, or several for a large file.

    Args:
        run: the run.
        qrels: the judgments.
        rels: the thresholds of the tallies.
        ranking: the rankings that are needed; None if none is.
        scattered: group the rows by query first, in files on disk.

    Raises:
        ScatteredQueriesError: the rows of a query are in several blocks of the file. The batches so far must not be used.
        InputError: a block of the file cannot be read.
    """
    if isinstance(run, RunFile):
        blocks = partition_by_query(run) if scattered else run.blocks()
        yield from _count_blocks(run, blocks, _Counter(qrels, rels, ranking).count)
    elif isinstance(run.frame, pl.DataFrame) or (ranking is not None and not run.lives_on_engine):
        batch, contradicting, _ = _Counter(qrels, rels, ranking).count(run)
        warn_if_scores_contradict(contradicting)
        yield batch
    else:
        tallied = tally(run.frame, qrels.frame, rels=rels, labels=qrels.labels)
        yield QueryBatch(tallied, *_rank_on_engine(run, ranking), run)


def tally_run(run: Run | RunFile, qrels: Qrels, *, rels: Sequence[float]) -> pl.DataFrame:
    """Return what `counting.ledger.tally` returns for a whole run, which is read in batches.

    Raises:
        InputError: a block of the file cannot be read.
    """
    with suppress(ScatteredQueriesError):
        return pl.concat([batch.tally for batch in query_batches(run, qrels, rels=rels)])
    return pl.concat([batch.tally for batch in query_batches(run, qrels, rels=rels, scattered=True)])


def _rank_on_engine(run: Run, request: RankingRequest | None) -> tuple[pl.DataFrame | None, RankingTable | None]:
    """Return ranking and ranking table of a run on an engine; the table stays there if it can."""
    if request is None:
        return None, None
    judgments, positions = request.judgments, request.positions
    if judgments is not None and not request.with_documents:
        rows = nw.from_native(run.frame)
        warn_of_order(rows, order=request.order)
        return None, tabulate_on_engine(rows, judgments, order=request.order, positions=positions)
    ranking = run.flatten(request.order)
    return ranking, None if judgments is None else tabulate_ranking(ranking, judgments, positions=positions)


class _Counted(NamedTuple):
    """A batch, in how many of its queries ranks contradict scores, and whether a document stands twice in one."""

    batch: QueryBatch
    contradicting: int
    has_repeats: bool


class _Counter:
    """Counts and ranks a run in memory, or parts of one, in several threads."""

    def __init__(self, qrels: Qrels, rels: Sequence[float], request: RankingRequest | None) -> None:
        self._qrels = qrels
        self._rels = rels
        self._request = request
        self._columns = ["query_id", "iteration", "doc_id", *(["rank", "score"] if request is not None else [])]
        self._once = Lock()

    @cached_property
    def _judgments(self) -> tuple[Judgments, float]:
        """The labels, and their unit."""
        return self._qrels.judgments, find_unit(self._qrels.frame.get_column("relevance"))

    def count(self, run: Run) -> _Counted:
        """Return the counts of a run, or of a part of one that has whole queries."""
        qrels, request, rows = self._qrels, self._request, run.rows.select(self._columns)
        firsts, relevance = find_first_occurrences(rows), None
        if qrels.labels is not None:
            tallied = tally(run.frame, qrels.frame, rels=self._rels, labels=qrels.labels)
        else:
            with self._once:  # the first thread that needs the labels numbers them, while others read
                judgments, unit = self._judgments
            relevance = judgments.look_up(firsts)
            tallied = tally_first_occurrences(firsts, relevance, rels=self._rels, unit=unit)
        ranking, table, contradicting = None, None, 0
        if request is not None:
            ranked = firsts
            if request.order != "seen":
                ranked, relevance = find_first_occurrences(rows, request.order), None
            ranking, table = _rank(ranked, relevance, request)
            contradicting = ranked.contradicting
        batch = QueryBatch(tallied, ranking, table, run if qrels.labels is not None else None)
        return _Counted(batch, contradicting, firsts.has_repeats)


def _rank(
    firsts: FirstOccurrences, relevance: pl.Series | None, request: RankingRequest
) -> tuple[pl.DataFrame | None, RankingTable | None]:
    """Return ranking and ranking table, as far as they are asked for; `relevance` where it was looked up before."""
    ranking = make_ranking(firsts).select("query_id", "doc_id", "score") if request.with_documents else None
    if request.judgments is None:
        return ranking, None
    if relevance is None:
        relevance = request.judgments.look_up(firsts)
    return ranking, tabulate_first_occurrences(firsts, request.judgments, relevance, positions=request.positions)


def _count_blocks(file: RunFile, blocks: Iterable[Block], count: Callable[[Run], _Counted]) -> Iterator[QueryBatch]:
    contradicting = 0
    repeats_without_iterations = False
    unnamed = []
    met: set[str] = set()
    for block, (batch, contradicting_here, has_repeats) in _count_ahead(blocks, count):
        unnamed.append(block.run.unnamed)
        lacks_column = block.frame is not None and "iteration" not in block.frame.columns
        repeats_without_iterations |= lacks_column and has_repeats
        file.numbered.append(block.run.has_iterations)
        query_ids = batch.tally.get_column("query_id").unique().to_list()
        if not met.isdisjoint(query_ids):
            raise ScatteredQueriesError
        met.update(query_ids)
        contradicting += contradicting_here
        yield batch
    if not met:
        notice(f"{file.path}: {EMPTY_RUN}")
    warn_of_passed_over(str(file.path), file.passed_over.values())
    file.passed_over.clear()
    warn_of_unnamed_rows(str(file.path), unnamed)
    warn_if_scores_contradict(contradicting)
    if repeats_without_iterations:
        warn_of_missing_iterations(file)


def _count_ahead(blocks: Iterable[Block], count: Callable[[Run], _Counted]) -> Iterator[tuple[Block, _Counted]]:
    """Yield each block with its counts, which threads make ahead."""
    waiting: deque[tuple[Block, Future[_Counted]]] = deque()
    with ThreadPoolExecutor(_AHEAD) as pool:
        for block in blocks:
            waiting.append((block, pool.submit(lambda block: count(block.run), block)))
            if len(waiting) > _AHEAD:
                counted, future = waiting.popleft()
                yield counted, future.result()
        while waiting:
            counted, future = waiting.popleft()
            yield counted, future.result()
