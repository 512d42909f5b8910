"""Splits a run into batches of whole queries, each with its tally and, where one is asked for, its ranking."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple

import polars as pl

from goodgain.batches.partition import partition_by_query
from goodgain.batches.run_file import Block, RunFile
from goodgain.batches.text_counting import Scan, index_judgments, scan_text
from goodgain.batches.text_ranking import tabulate_scan
from goodgain.batches.whole_query_blocks import TextBlock
from goodgain.counting.ledger import tally
from goodgain.errors import notice
from goodgain.formats import Qrels, Run
from goodgain.formats.checks import UnnamedRows, warn_of_unnamed_rows
from goodgain.formats.run import EMPTY_RUN, has_repeats, warn_of_missing_iterations, warn_once
from goodgain.formats.text import warn_of_passed_over
from goodgain.ranking.flattening import rank_run, rescore, warn_if_scores_contradict
from goodgain.ranking.ranking_table import Judgments, RankingTable, tabulate_on_engine, tabulate_ranking

__all__ = ["QueryBatch", "RankingRequest", "ScatteredQueriesError", "query_batches", "tally_run"]

#: Blocks that threads scan while the caller counts another one. Each holds its text in memory.
_AHEAD = 2


class QueryBatch(NamedTuple):
    """Some queries of a run with all their rows.

    Attributes:
        tally: what `counting.ledger.tally` returns for the rows.
        ranking: query_id, doc_id, score (and more where they were read), the rows of a query together; None where no
            ranking was asked for.
        table: the ranking table; None where it was not asked for.
        run: the rows; None where the tally was counted from the text without making a table of rows.
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
    if isinstance(run, Run):
        tallied = tally(run.frame, qrels.frame, rels=rels, labels=qrels.labels)
        yield QueryBatch(tallied, *_rank_run(run, ranking), run)
    else:
        blocks = partition_by_query(run) if scattered else run.blocks()
        yield from _count_blocks(run, blocks, qrels, rels, ranking)


def tally_run(run: Run | RunFile, qrels: Qrels, *, rels: Sequence[float]) -> pl.DataFrame:
    """Return what `counting.ledger.tally` returns for a whole run, which is read in batches.

    Raises:
        InputError: a block of the file cannot be read.
    """
    with suppress(ScatteredQueriesError):
        return pl.concat([batch.tally for batch in query_batches(run, qrels, rels=rels)])
    return pl.concat([batch.tally for batch in query_batches(run, qrels, rels=rels, scattered=True)])


def _rank_run(run: Run, request: RankingRequest | None) -> tuple[pl.DataFrame | None, RankingTable | None]:
    """Return ranking and ranking table of a run in memory or on an engine, where the table stays if it can."""
    if request is None:
        return None, None
    judgments, positions = request.judgments, request.positions
    if judgments is not None and not request.with_documents and run.lives_on_engine:
        ranking_there = run.flatten_lazily(request.order)
        return None, tabulate_on_engine(ranking_there, judgments, positions=positions)
    ranking = run.flatten(request.order)
    return ranking, None if judgments is None else tabulate_ranking(ranking, judgments, positions=positions)


class _BlockRankings(NamedTuple):
    """The rankings of one block of a file, and in how many queries ranks contradict scores."""

    ranking: pl.DataFrame | None = None
    table: RankingTable | None = None
    contradicting: int = 0


def _count_blocks(
    file: RunFile, blocks: Iterable[Block], qrels: Qrels, rels: Sequence[float], request: RankingRequest | None
) -> Iterator[QueryBatch]:
    contradicting = 0
    repeats_without_iterations = False
    unnamed: list[UnnamedRows] = []
    met: set[str] = set()
    for block, found in _scan_blocks(blocks, qrels, rels, request):
        run: Run | None = None
        if found is not None:
            tallied, of_block, has_numbers = found
        else:
            run = block.run
            unnamed.append(run.unnamed)
            tallied, of_block = tally(run.frame, qrels.frame, rels=rels, labels=qrels.labels), None
            has_numbers = run.has_iterations
            lacks_column = block.frame is not None and "iteration" not in block.frame.columns
            repeats_without_iterations |= lacks_column and has_repeats(run.frame)
        file.numbered.append(has_numbers)
        if of_block is None:
            of_block = _rank_rows(block.run.rows, request) if request else _BlockRankings()
        query_ids = tallied.get_column("query_id").unique().to_list()
        if not met.isdisjoint(query_ids):
            raise ScatteredQueriesError
        met.update(query_ids)
        contradicting += of_block.contradicting
        yield QueryBatch(tallied, of_block.ranking, of_block.table, run)
    if not met:
        notice(f"{file.path}: {EMPTY_RUN}")
    warn_of_passed_over(str(file.path), file.passed_over.values())
    file.passed_over.clear()
    warn_of_unnamed_rows(str(file.path), unnamed)
    warn_if_scores_contradict(contradicting)
    if repeats_without_iterations:
        warn_of_missing_iterations(file)


def _rank_rows(rows: pl.DataFrame, request: RankingRequest) -> _BlockRankings:
    found = rank_run(rows, order=request.order)
    judgments = request.judgments
    table = None if judgments is None else tabulate_ranking(found.ranking, judgments, positions=request.positions)
    return _BlockRankings(found.ranking if request.with_documents else None, table, found.contradicting)


class _Scanned(NamedTuple):
    """The tally of a block, its rankings (None where they need its rows), and whether column 2 has numbers."""

    tally: pl.DataFrame
    rankings: _BlockRankings | None
    has_numbers: bool


def _scan_blocks(
    blocks: Iterable[Block], qrels: Qrels, rels: Sequence[float], request: RankingRequest | None
) -> Iterator[tuple[Block, _Scanned | None]]:
    """Yield each block with its scan, which threads make ahead; None for a block that is not plain text.

    Labels by iteration are not scanned either: the compiled loop has one label for a document.
    """
    scan: Callable[..., _Scanned | None] | None = None
    waiting: deque[tuple[Block, Future[_Scanned | None] | None]] = deque()
    with ThreadPoolExecutor(_AHEAD) as pool:
        for block in blocks:
            text = block.plain_text if qrels.labels is None else None
            if text is not None and scan is None:
                scan = _prepare_scan(block.file, qrels, rels, request)
            future = None if text is None or scan is None else pool.submit(scan, text, first=block.file.first)
            waiting.append((block, future))
            if len(waiting) > _AHEAD:
                yield _wait_for(*waiting.popleft())
        while waiting:
            yield _wait_for(*waiting.popleft())


def _prepare_scan(
    file: RunFile, qrels: Qrels, rels: Sequence[float], request: RankingRequest | None
) -> Callable[..., _Scanned | None]:
    """Return the function that scans a block of text; it returns None for every block if numba cannot be loaded."""
    try:
        judgments = index_judgments(qrels.frame)
    except ImportError as error:
        warn_once(
            file,
            f"numba cannot be used ({error}): large files of text are read as others are, in several times the time",
        )
        return lambda _text, *, first: None
    with_ranking = request is not None and request.order == "seen"

    def scan(text: TextBlock, *, first: int) -> _Scanned | None:
        found = scan_text(text.text(), judgments, rels=rels, first=first, with_ranking=with_ranking)
        if found is None:
            return None
        if request is None:
            return _Scanned(found.tally, _BlockRankings(), found.has_numbers)
        rankings = None if found.firsts is None else _rank_scan(found, found.firsts, request)
        return _Scanned(found.tally, rankings, found.has_numbers)

    return scan


def _wait_for(block: Block, future: Future[_Scanned | None] | None) -> tuple[Block, _Scanned | None]:
    return block, None if future is None else future.result()


def _rank_scan(scan: Scan, firsts: pl.DataFrame, request: RankingRequest) -> _BlockRankings:
    """Return the rankings of a block from its first occurrences, which are in the order `seen`."""
    table, contradicting = None, 0
    if request.judgments is not None:
        table, contradicting = tabulate_scan(scan, firsts, request.judgments, positions=request.positions)
    if not request.with_documents:
        return _BlockRankings(None, table, contradicting)
    ranking, contradicting = _rank_documents(scan, firsts)
    return _BlockRankings(ranking, table, contradicting)


def _rank_documents(scan: Scan, firsts: pl.DataFrame) -> tuple[pl.DataFrame, int]:
    """Return what `rank_run` returns for rows in order, and in how many queries ranks contradict scores."""
    named = firsts.select("query", "iteration", "rank", "score", line="row", doc_id=scan.read_doc_ids(firsts))
    numbered = scan.queries.select(
        "rising", all="results", one_iteration=pl.col("iterations") == 1, query=pl.int_range(pl.len())
    )
    found = rescore(named, numbered)
    query_ids = scan.queries.get_column("query_id").gather(found.ranking.get_column("query"))
    return found.ranking.select(query_ids, "doc_id", "score"), found.contradicting
