"""A run as every measure needs it, some queries at a time: its tally, and its classic ranking where one is asked for."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import NamedTuple, TypeVar

import polars as pl

from goodgain.batches.blocks import TextBlock
from goodgain.batches.partition import partition_by_query
from goodgain.batches.run_file import Block, RunFile
from goodgain.batches.text_counting import Scan, judgments_of, scanned
from goodgain.counting.ledger import tally
from goodgain.errors import notice
from goodgain.formats import Qrels, Run
from goodgain.formats.run import EMPTY_RUN, has_repeats, warn_of_missing_iterations
from goodgain.ranking.flattening import Ranking, rank_run, rescore, warn_if_scores_contradict

__all__ = ["Part", "over_parts"]

Result = TypeVar("Result")

_AHEAD = 2  # blocks that are scanned while another one is counted


class Part(NamedTuple):
    """Some queries of a run, with all their rows.

    Attributes:
        tally: what `tally` makes of them.
        ranking: query_id, doc_id, score (and more where they were read), the rows of a query together; None where no
            ranking was asked for.
        run: the rows; None where the tally was made without reading them.
    """

    tally: pl.DataFrame
    ranking: pl.DataFrame | None
    run: Run | None


class _ScatteredError(Exception):
    """Rows of one query stand in several blocks of a file."""


def over_parts(
    run: Run | RunFile,
    qrels: Qrels,
    consume: Callable[[Iterator[Part]], Result],
    *,
    rels: Sequence[float],
    order: str | None,
) -> Result:
    """What `consume` makes of a run in parts that share no query: one part, or several for a large file.

    Args:
        run: the run.
        qrels: the judgments.
        consume: takes the parts in turn. It is called anew if a query turns out to be scattered over the file.
        rels: the thresholds of the tallies.
        order: how rankings are made; None for none.
    """
    if isinstance(run, Run):
        tallied = tally(run.frame, qrels.frame, rels=rels, labels=qrels.labels)
        return consume(iter([Part(tallied, None if order is None else run.flatten(order), run)]))
    with suppress(_ScatteredError):
        return consume(_parts(run, run.blocks(), qrels, rels, order))
    # out of reach of the error, which holds all of the first attempt
    return consume(_parts(run, partition_by_query(run), qrels, rels, order))


def _parts(
    file: RunFile, blocks: Iterable[Block], qrels: Qrels, rels: Sequence[float], order: str | None
) -> Iterator[Part]:
    contradicting = 0
    repeats_without_iterations = False
    met: set[str] = set()
    for block, scan in _scanned(blocks, qrels, rels, with_ranking=order == "seen"):
        found: Ranking | None = None
        if scan is not None:
            tallied, run = scan.tally, None
            if order == "seen" and scan.firsts is not None:
                found = _ranked_scan(scan.queries, scan.firsts)
        else:
            run = block.run
            tallied = tally(run.frame, qrels.frame, rels=rels, labels=qrels.labels)
            repeats_without_iterations |= not run.has_iterations and has_repeats(run.frame)
        if order is not None and found is None:
            found = rank_run(block.run.rows, order=order)
        query_ids = tallied.get_column("query_id").unique().to_list()
        if not met.isdisjoint(query_ids):
            raise _ScatteredError
        met.update(query_ids)
        contradicting += found.contradicting if found else 0
        yield Part(tallied, found.ranking if found else None, run)
    if not met:
        notice(f"{file.path}: {EMPTY_RUN}")
    warn_if_scores_contradict(contradicting)
    if repeats_without_iterations:
        warn_of_missing_iterations(file)


def _scanned(
    blocks: Iterable[Block], qrels: Qrels, rels: Sequence[float], *, with_ranking: bool
) -> Iterator[tuple[Block, Scan | None]]:
    """Each block with its scan, made while others are counted; None for what is no plain text, or asks for its rows."""
    scan: Callable[..., Scan | None] | None = None
    waiting: deque[tuple[Block, Future[Scan | None] | None]] = deque()
    with ThreadPoolExecutor(_AHEAD) as pool:
        for block in blocks:
            text = block.plain_text if qrels.labels is None else None
            if text is not None and scan is None:
                scan = _scanning(qrels, rels, with_ranking=with_ranking)
            future = None if text is None or scan is None else pool.submit(scan, text, first=block.file.first)
            waiting.append((block, future))
            if len(waiting) > _AHEAD:
                yield _done(*waiting.popleft())
        while waiting:
            yield _done(*waiting.popleft())


def _scanning(qrels: Qrels, rels: Sequence[float], *, with_ranking: bool) -> Callable[..., Scan | None]:
    """What scans a block of text; nothing is scanned where what compiles the loop cannot be loaded."""
    try:
        judgments = judgments_of(qrels.frame)
    except ImportError as error:
        notice(f"numba cannot be used ({error}): large files of text are read as others are, in several times the time")
        return lambda _text, *, first: None

    def scan(text: TextBlock, *, first: int) -> Scan | None:
        return scanned(text.text(), judgments, rels=rels, first=first, with_ranking=with_ranking)

    return scan


def _done(block: Block, future: Future[Scan | None] | None) -> tuple[Block, Scan | None]:
    return block, None if future is None else future.result()


def _ranked_scan(queries: pl.DataFrame, firsts: pl.DataFrame) -> Ranking:
    """Rank as `rank_run` does, from the first occurrences of rows that stand in order."""
    numbered = queries.select("iterations", "rising", all="results").with_columns(query=pl.int_range(pl.len()))
    found = rescore(firsts.rename({"row": "line"}), numbered)
    query_ids = queries.get_column("query_id").gather(found.ranking.get_column("query"))
    return Ranking(found.ranking.select(query_ids, "doc_id", "score"), found.contradicting)
