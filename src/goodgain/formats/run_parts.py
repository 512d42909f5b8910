"""Divides the rows of a lazy run into parts of whole queries, and calls a function for each part.

DuckDB and Polars hand over their rows once, in blocks. Spark calls the function on its workers, and only the results come back.
"""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, suppress
from contextvars import copy_context
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

import narwhals as nw
import polars as pl

from goodgain.files.writing import temporary_folder
from goodgain.formats.equal_rows import check_copies, hash_identity, select_identity
from goodgain.formats.spark_workers import map_on_workers, map_to_rows
from goodgain.ranking.dataframe_engines import collect, is_spark, move_to_duckdb, sort_unordered
from goodgain.ranking.first_occurrences_and_flattening import add_ranks
from goodgain.ranking.order_notices import OrderFacts, add_up_facts
from goodgain.schema import RUN

#: Rows of a part. A query with more rows is a part of its own.
ROWS = 2**19
#: Temporary files among which scattered queries are divided: some systems allow a process 256 open files.
_FILES = 100
#: Parts that threads count ahead of the caller. Each is in memory.
_AHEAD = 2

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")
_Total = TypeVar("_Total")


class ScatteredQueriesError(Exception):
    """Raised if several blocks of a run contain rows of the same query."""


def consume_parts(
    consume: Callable[[Iterator[_Result]], _Total],
    frame: Any,
    function: Callable[[pl.DataFrame], _Result],
    *,
    columns: Sequence[str],
    keeps_order: bool,
    label: str | None = None,
) -> _Total:
    """Call `consume` with the result of `function` for each part of a lazy run, and return what it returns.

    `function` gets the `columns` of whole queries, with ranks and scores. No query is in two parts. If blocks of rows share a
    query, the call of `consume` is stopped: the rows are grouped by query in temporary files, and a second call gets all results.
    `consume` must keep nothing from the first call.

    If the engine does not keep the order of rows, rows of equal rank are sorted by doc_id. If `label` is given, a run that was
    appended to itself raises `InputError` (see `check_copies`); Spark has no order in which this could be seen.
    """
    selected = nw.from_native(frame).select(columns)
    in_part = _OfPart(function, keeps_order)
    if is_spark(frame):
        results = map_on_workers(selected.to_native(), in_part, make_empty=lambda: in_part(_make_empty(selected)))
        return consume(results)
    with suppress(ScatteredQueriesError):
        return consume(map_ahead(in_part, _cut_between_queries(selected, label)))
    # Not inside an except clause, where the error would keep the first call in memory.
    return consume(map_ahead(in_part, _group_by_query(selected, label)))


class RankedPart(NamedTuple):
    """The classic ranking of a part of a run, and the counts that its notices need."""

    ranking: pl.DataFrame
    facts: OrderFacts


def rank_on_engine(
    frame: Any,
    rank: Callable[[pl.DataFrame], RankedPart],
    *,
    columns: Sequence[str],
    types: Mapping[str, pl.DataType],
    label: str | None,
) -> tuple[Any, OrderFacts]:
    """Return the classic ranking of a lazy run as a lazy frame of its engine, and the counts that its notices need.

    `rank` returns rankings with the columns `types`. Spark ranks on its workers. For other engines the ranking is written to
    temporary files, part by part. They are removed with the last frame that reads them.
    """
    consume = partial(consume_parts, frame=frame, columns=columns, keeps_order=False, label=label)
    if is_spark(frame):
        facts = consume(add_up_facts, function=_FactsOf(rank))
        selected = nw.from_native(frame).select(columns).to_native()
        return map_to_rows(selected, _OfPart(_RankingOf(rank), keeps_order=False), types), facts

    import pyarrow.dataset

    with ExitStack() as stack:
        folder = stack.enter_context(temporary_folder())
        facts = consume(partial(_write_rankings, folder), function=rank)
        ranking = pyarrow.dataset.dataset(folder, format="parquet")
        weakref.finalize(ranking, stack.pop_all().close)
    return move_to_duckdb(frame, ranking), facts


def _write_rankings(folder: Path, parts: Iterator[RankedPart]) -> OrderFacts:
    """Write the ranking of each part to a file of the folder, and return the sum of their counts."""
    for path in folder.iterdir():  # of a call that was stopped
        path.unlink()
    facts: list[OrderFacts] = []
    for part in parts:
        part.ranking.write_parquet(folder / f"{len(facts):06}.parquet")
        facts.append(part.facts)
    return add_up_facts(facts)


@dataclass(frozen=True)
class _FactsOf:
    rank: Callable[[pl.DataFrame], RankedPart]

    def __call__(self, rows: pl.DataFrame) -> OrderFacts:
        return self.rank(rows).facts


@dataclass(frozen=True)
class _RankingOf:
    rank: Callable[[pl.DataFrame], RankedPart]

    def __call__(self, rows: pl.DataFrame) -> pl.DataFrame:
        return self.rank(rows).ranking


@dataclass(frozen=True)
class _OfPart(Generic[_Result]):
    """Orders and ranks the rows of a part, then calls a function. An object, because Spark sends it to its workers."""

    function: Callable[[pl.DataFrame], _Result]
    keeps_order: bool

    def __call__(self, rows: pl.DataFrame) -> _Result:
        ordered = rows if self.keeps_order else sort_unordered(rows)
        return self.function(add_ranks(ordered))


def map_ahead(function: Callable[[_Item], _Result], items: Iterable[_Item]) -> Iterator[_Result]:
    """Yield the result of a function for each item, in order, while threads compute the next results."""
    waiting: deque[Future[_Result]] = deque()
    with ThreadPoolExecutor(_AHEAD) as pool:
        for item in items:
            waiting.append(pool.submit(copy_context().run, function, item))
            if len(waiting) > _AHEAD:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


def read_blocks(frame: Any) -> Iterator[pl.DataFrame]:
    """Yield the rows of a lazy frame in blocks, in the order of the engine. The frame is executed once."""
    lazy = nw.from_native(frame)
    native = lazy.to_native()
    if isinstance(native, pl.LazyFrame):
        yield from native.collect_batches(chunk_size=ROWS, maintain_order=True)
    elif lazy.implementation.is_duckdb():
        for batch in native.to_arrow_reader(ROWS):
            yield pl.DataFrame(batch)
    else:
        yield collect(lazy)


def _make_empty(frame: Any) -> pl.DataFrame:
    names = nw.from_native(frame).collect_schema().names()
    return pl.DataFrame(schema={name: RUN.polars[name] for name in names})


def _cut_between_queries(frame: Any, label: str | None) -> Iterator[pl.DataFrame]:
    """Yield the rows in parts that are cut where query_id changes. Raise `ScatteredQueriesError` if a query comes again."""
    seen_queries: set[str] = set()
    waiting = _make_empty(frame)
    for block in read_blocks(frame):
        rows = block if waiting.is_empty() else pl.concat([waiting, block])
        end = _find_last_query(rows) if rows.height >= ROWS else 0
        waiting = rows[end:]
        if end:
            yield _check_queries(rows[:end], seen_queries)

    if not seen_queries and label is not None:
        identity = select_identity(waiting)
        if identity is not None:
            check_copies(identity, label)
    if not seen_queries or not waiting.is_empty():
        yield _check_queries(waiting, seen_queries)


def _find_last_query(rows: pl.DataFrame) -> int:
    """Return the row at which the last query begins."""
    query_ids = rows.get_column("query_id")
    earlier_queries = (query_ids != query_ids[-1]).arg_true()
    return int(earlier_queries[-1]) + 1 if len(earlier_queries) else 0


def _check_queries(rows: pl.DataFrame, seen_queries: set[str]) -> pl.DataFrame:
    """Return rows that are contiguous in memory, and note their queries.

    Raise `ScatteredQueriesError` if a query was there before.
    """
    query_ids = rows.get_column("query_id").unique().to_list()
    if not seen_queries.isdisjoint(query_ids):
        raise ScatteredQueriesError
    seen_queries.update(query_ids)
    return rows.rechunk()


def _group_by_query(frame: Any, label: str | None) -> Iterator[pl.DataFrame]:
    """Yield the rows in parts of whole queries, after dividing them among temporary files by a hash of query_id."""
    with temporary_folder() as folder:
        paths = [folder / f"{part}.arrow" for part in range(_FILES)]
        identities: list[pl.DataFrame] = []  # of each block

        def list_identities() -> Iterator[pl.DataFrame]:
            for block in read_blocks(frame):
                if label is not None and (identity := select_identity(block)) is not None:
                    identities.append(hash_identity(identity))
                yield block

        divide_by_query(list_identities(), paths)
        if identities and label is not None:
            check_copies(pl.concat(identities), label)

        waiting: list[pl.DataFrame] = []
        for path in filter(Path.exists, paths):
            waiting.append(pl.read_ipc_stream(path))
            path.unlink()
            if sum(map(len, waiting)) >= ROWS:
                yield pl.concat(waiting, rechunk=True)
                waiting = []
        if waiting:
            yield pl.concat(waiting, rechunk=True)


def divide_by_query(blocks: Iterable[pl.DataFrame], paths: Sequence[Path]) -> None:
    """Write the rows of all blocks to Arrow files. The file of a row depends on its query_id. A file without rows is not made."""
    import pyarrow as pa

    with ExitStack() as stack:
        writers: dict[int, pa.RecordBatchStreamWriter] = {}
        for block in blocks:
            part = block.get_column("query_id").hash() % len(paths)
            for (number,), rows in block.with_columns(part=part).partition_by("part", as_dict=True).items():
                table = rows.drop("part").to_arrow()
                if number not in writers:
                    sink = stack.enter_context(pa.OSFile(str(paths[number]), "wb"))
                    writers[number] = stack.enter_context(pa.ipc.new_stream(sink, table.schema))
                writers[number].write_table(table)
