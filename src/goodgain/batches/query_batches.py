"""A run as every measure needs it, some queries at a time: its tally, and its classic ranking where one is asked for."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from threading import Thread
from typing import Any, NamedTuple

import polars as pl

from goodgain.batches.blocks import TextBlock
from goodgain.batches.kernels.compiling import kernels
from goodgain.batches.partition import gathered
from goodgain.batches.run_file import Block, RunFile, open_run
from goodgain.batches.text_counting import Scan, judgments_of, scanned
from goodgain.batches.text_ranking import tabulate_scan
from goodgain.counting.ledger import tally
from goodgain.errors import notice
from goodgain.formats import Qrels, Run
from goodgain.formats.column_names import Columns
from goodgain.formats.order import tell_contradictions
from goodgain.formats.run import EMPTY_RUN, NO_ITERATIONS, has_repeats
from goodgain.ranking.flattening import ranked, rescored
from goodgain.ranking.ranking_table import Judgments, RankingTable, tabulate_on_engine, tabulate_ranking

__all__ = ["QueryBatch", "RankingRequest", "ScatteredQueriesError", "opened", "query_batches"]

_AHEAD = 2  # blocks that are scanned while another one is counted


class QueryBatch(NamedTuple):
    """Some queries of a run, with all their rows.

    Attributes:
        tally: what `counting.tally` makes of them.
        ranking: query_id, doc_id, score (and more where they were read), the rows of a query together; None where no
            ranking was asked for.
        table: the ranking with its labels; None where it was not asked for.
        run: the rows; None where the tally was made without reading them.
    """

    tally: pl.DataFrame
    ranking: pl.DataFrame | None
    table: RankingTable | None
    run: Run | None


@dataclass(frozen=True)
class RankingRequest:
    """Which classic rankings batches are to have.

    Attributes:
        order: how iterations become one ranking.
        with_documents: whether the ranking itself is needed, with its doc_ids.
        judgments: the labels of the ranking table; None where no table is needed.
        positions: the orders of tied documents that the table needs beside trec_eval's.
    """

    order: str
    with_documents: bool = True
    judgments: Judgments | None = None
    positions: Collection[str] = ()


class ScatteredQueriesError(Exception):
    """Rows of one query stand in several blocks of a file: batches of whole queries need `scattered=True`."""


def opened(
    source: Any, *, gaps: str = "close", first: int = 1, errors: str = "raise", columns: Columns | None = None
) -> Run | RunFile:
    """What `open_run` gives; a large file will be scanned, and what that needs is loaded while others read."""
    run = open_run(source, gaps=gaps, first=first, errors=errors, columns=columns)
    if isinstance(run, RunFile) and run.is_plain:
        Thread(target=_load, daemon=True).start()
    return run


def _load() -> None:
    with suppress(ImportError):  # raised again where they are needed
        kernels()


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
        ranking: the rankings that are needed; None for none.
        scattered: put the rows of each query together first, with a file on disk.

    Raises:
        ScatteredQueriesError: a query of the file is scattered over its blocks. The batches so far are of no use.
        InputError: a block of the file cannot be read as what it is said to be.
    """
    if isinstance(run, Run):
        tallied = tally(run.frame, qrels.frame, rels=rels, labels=qrels.labels)
        yield QueryBatch(tallied, *_rank_run(run, ranking), run)
    else:
        blocks = gathered(run) if scattered else run.blocks()
        yield from _file_batches(blocks, qrels, rels, ranking, label=str(run.path))


def _rank_run(run: Run, request: RankingRequest | None) -> tuple[pl.DataFrame | None, RankingTable | None]:
    """The ranking and the ranking table of a run that is read; those of an engine's frame stay there if they can."""
    if request is None:
        return None, None
    judgments, positions = request.judgments, request.positions
    if judgments is not None and not request.with_documents and run.lives_on_engine:
        ranking_there = run.flattened_there(request.order)
        return None, tabulate_on_engine(ranking_there, judgments, positions=positions)
    ranking = run.flattened(request.order)
    return ranking, None if judgments is None else tabulate_ranking(ranking, judgments, positions=positions)


class _Ranked(NamedTuple):
    """What one block of a file brings to a batch's rankings, and how many of its rankings contradict their scores."""

    ranking: pl.DataFrame | None = None
    table: RankingTable | None = None
    contradicting: int = 0


def _file_batches(
    blocks: Iterable[Block], qrels: Qrels, rels: Sequence[float], request: RankingRequest | None, *, label: str
) -> Iterator[QueryBatch]:
    contradicting = 0
    repeats_without_iterations = False
    met: set[str] = set()
    for block, found in _scan_blocks(blocks, qrels, rels, request):
        run: Run | None = None
        if found is not None:
            tallied, of_block = found
        else:
            run = block.run
            tallied, of_block = tally(run.frame, qrels.frame, rels=rels, labels=qrels.labels), None
            repeats_without_iterations |= not run.has_iterations and has_repeats(run.frame)
        if of_block is None:
            of_block = _rank_rows(block.run.rows, request) if request else _Ranked()
        query_ids = tallied.get_column("query_id").unique().to_list()
        if not met.isdisjoint(query_ids):
            raise ScatteredQueriesError
        met.update(query_ids)
        contradicting += of_block.contradicting
        yield QueryBatch(tallied, of_block.ranking, of_block.table, run)
    if not met:
        notice(f"{label}: {EMPTY_RUN}")
    tell_contradictions(contradicting)
    if repeats_without_iterations:
        notice(NO_ITERATIONS)


def _rank_rows(rows: pl.DataFrame, request: RankingRequest) -> _Ranked:
    found = ranked(rows, order=request.order)
    judgments = request.judgments
    table = None if judgments is None else tabulate_ranking(found.ranking, judgments, positions=request.positions)
    return _Ranked(found.ranking if request.with_documents else None, table, found.contradicting)


#: The tally of a block, and its rankings where the scan has what they need.
_Scanned = tuple[pl.DataFrame, _Ranked | None]


def _scan_blocks(
    blocks: Iterable[Block], qrels: Qrels, rels: Sequence[float], request: RankingRequest | None
) -> Iterator[tuple[Block, _Scanned | None]]:
    """Each block with its scan, made while others are counted; None for what is not plain text, or asks for its rows."""
    scan: Callable[..., _Scanned | None] | None = None
    waiting: deque[tuple[Block, Future[_Scanned | None] | None]] = deque()
    with ThreadPoolExecutor(_AHEAD) as pool:
        for block in blocks:
            text = block.plain_text if qrels.labels is None else None
            if text is not None and scan is None:
                scan = _prepare_scan(qrels, rels, request)
            future = None if text is None or scan is None else pool.submit(scan, text, first=block.file.first)
            waiting.append((block, future))
            if len(waiting) > _AHEAD:
                yield _wait_for(*waiting.popleft())
        while waiting:
            yield _wait_for(*waiting.popleft())


def _prepare_scan(
    qrels: Qrels, rels: Sequence[float], request: RankingRequest | None
) -> Callable[..., _Scanned | None]:
    """What scans a block of text; nothing is scanned where what compiles the loop cannot be loaded."""
    try:
        judgments = judgments_of(qrels.frame)
    except ImportError as error:
        notice(f"numba cannot be used ({error}): large files of text are read as others are, in several times the time")
        return lambda _text, *, first: None
    with_ranking = request is not None and request.order == "seen"

    def scan(text: TextBlock, *, first: int) -> _Scanned | None:
        found = scanned(text.text(), judgments, rels=rels, first=first, with_ranking=with_ranking)
        if found is None:
            return None
        if request is None:
            return found.tally, _Ranked()
        return found.tally, None if found.firsts is None else _rank_scan(found, found.firsts, request)

    return scan


def _wait_for(block: Block, future: Future[_Scanned | None] | None) -> tuple[Block, _Scanned | None]:
    return block, None if future is None else future.result()


def _rank_scan(scan: Scan, firsts: pl.DataFrame, request: RankingRequest) -> _Ranked:
    """The rankings of a block from its first occurrences, which stand in the order `seen`."""
    table, contradicting = None, 0
    if request.judgments is not None:
        table, contradicting = tabulate_scan(scan, firsts, request.judgments, positions=request.positions)
    if not request.with_documents:
        return _Ranked(None, table, contradicting)
    ranking, contradicting = _rank_documents(scan, firsts)
    return _Ranked(ranking, table, contradicting)


def _rank_documents(scan: Scan, firsts: pl.DataFrame) -> tuple[pl.DataFrame, int]:
    """What `flattening.ranked` makes of rows that stand in order: their first occurrences as they come."""
    named = firsts.select("query", "iteration", "rank", "score", line="row", doc_id=scan.doc_ids(firsts))
    numbered = scan.queries.select("iterations", "rising", all="results").with_columns(query=pl.int_range(pl.len()))
    found = rescored(named, numbered)
    query_ids = scan.queries.get_column("query_id").gather(found.ranking.get_column("query"))
    return found.ranking.select(query_ids, "doc_id", "score"), found.contradicting
