"""Reads a run from a large file in blocks of whole queries, so that memory does not grow with the file."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import narwhals as nw
import polars as pl
import polars.selectors as cs

from goodgain.errors import InputError, tell_progress
from goodgain.files.bad_rows import COMMENT_BYTES, FrameRows, RowSource, TextLines, number_rows
from goodgain.files.opening import BOM, Content, check_line, compression, open_plain, open_stream, stem
from goodgain.files.table_reading import explain_container_errors, frame_of
from goodgain.files.trec_text import PassedOver, read_ids, read_text
from goodgain.files.writing import temporary_folder
from goodgain.formats.any_source import Columns, FoundColumns, OpenFrame, find_columns, open_frame
from goodgain.formats.documents import DocumentMap
from goodgain.formats.equal_rows import check_copies, hash_identity, select_identity
from goodgain.formats.run import Reading, Run
from goodgain.formats.run_parts import divide_by_query, map_ahead
from goodgain.formats.run_reading import make_run
from goodgain.ranking.dataframe_engines import collect
from goodgain.schema import RUN

BLOCK = 16 * 2**20  # bytes of text read at a time
_ROW_BYTES = 32  # approximate bytes of a row as text: blocks of Parquet are counted in rows
_ROW = "row in the file"
_FILES = 200  # most open files: some systems allow a process 256
_SHRUNK = 6  # compression and Parquet shrink a run to about a sixth
#: Limits of a sample: rows, places to read, and bytes at each place of a file.
_SAMPLE, _PLACES, _BYTES = 6_000, 16, 2**14
#: Bytes of rows that `keep_blocks` keeps.
_MOST_KEPT = 2**30


@dataclass(frozen=True)
class RunFile:
    """A run in a large TREC text file (also .gz and .zst) or Parquet file."""

    path: Path
    gaps: str  # `gaps` and `first` are as in `read_run`
    first: int
    is_text: bool
    compressed: bool = False  # of text
    mappings: tuple[DocumentMap, ...] = ()  # applied in this order
    ids_mapped: int = 0  # as in `Run`
    only: pl.Series | None = None  # the ids of the queries to keep; None keeps all
    page: int | None = None  # the results of an iteration, cut after `mappings`; None keeps the iterations of the file
    block: int = BLOCK  # bytes of text read at a time
    columns: Columns = field(default_factory=dict)  # the user's names of the columns of a Parquet file
    likely_iteration: str | None = None  # `likely_iteration` and `renamed` are as in `Run`
    renamed: frozenset[str] = frozenset()
    #: First byte of each block of text -> the lines of the block that were not read.
    passed_over: dict[int, PassedOver] = field(default_factory=dict, compare=False)
    #: All blocks, if they are in memory until the next call of `blocks`.
    kept: list[Block] = field(default_factory=list, compare=False, repr=False)
    #: For each counted block, whether some row has a number as its iteration.
    numbered: list[bool] = field(default_factory=list, compare=False)

    @property
    def name(self) -> str:
        return stem(self.path)

    @property
    def has_iterations(self) -> bool:
        """Whether a row in the blocks counted so far has an iteration number."""
        return any(self.numbered)

    @property
    def text_size(self) -> int:
        """The approximate size of the run as uncompressed text, in bytes."""
        return self.path.stat().st_size * (_SHRUNK if not self.is_text or self.compressed else 1)

    @property
    def reading(self) -> Reading:
        return Reading(self.gaps, self.first, page=self.page).with_columns(self.columns, self.renamed)

    def blocks(self) -> Iterator[Block]:
        """Yield the run in blocks, cut where query_id changes. A query whose rows are not adjacent can be in several blocks."""
        if self.kept:
            waiting = self.kept[::-1]
            self.kept.clear()
            while waiting:  # a block is in memory only until it is used
                yield replace(waiting.pop(), file=self)
        elif self.is_text:
            block: Block | None = None
            for text in text_blocks(self.path, size=self.block):
                block = Block(self, text=text)
                yield block
            if block is None:
                yield Block(self, text=Content(b""))
        else:
            for before, frame in table_blocks(self.path, rows=self.block // _ROW_BYTES, columns=self.columns):
                yield Block(self, frame=frame, rows=FrameRows(str(self.path), range(before, before + len(frame))))


def select_queries(run: Run, query_ids: pl.Series) -> Run:
    """Return a run with only the rows of some queries. Pages are cut again."""
    if run.unpaged is not None and run.reading.page is not None:
        return select_queries(run.unpaged, query_ids).cut_into_pages(run.reading.page)
    rows = nw.from_native(run.frame).filter(nw.col("query_id").is_in(query_ids.to_list()))
    selected = run.with_frame(rows.to_native())
    selected.never_searched = run.never_searched.filter(run.never_searched.is_in(query_ids.implode()))
    return selected


def read_whole(run: Run | RunFile) -> Run:
    """Return a run with all rows in memory. A file is read block by block."""
    if isinstance(run, Run):
        return run
    blocks = [block.run for block in partition_by_query(replace(run, page=None))]
    has_iterations = any(block.has_iterations for block in blocks)
    rows = pl.concat([block.rows for block in blocks], how="vertical_relaxed")
    whole = Run(rows, name=run.name, has_iterations=has_iterations)
    whole.likely_iteration = run.likely_iteration
    whole.reading = run.reading
    whole.never_searched = pl.concat([block.never_searched for block in blocks])
    return whole if run.page is None else whole.cut_into_pages(run.page)


@dataclass(frozen=True)
class Block:
    """A part of a run: either lines of text, or a frame. `rows` gives the position in the file for each row of the frame.

    If `kept` is not None, it has the rows after the first `mapped` mappings, `text` is None, and `frame` has only columns.
    """

    file: RunFile
    text: Content | None = None
    frame: pl.DataFrame | None = None
    rows: RowSource | None = None
    kept: Run | None = None
    mapped: int = 0

    @cached_property
    def run(self) -> Run:
        file = self.file
        run = self._read_run() if self.kept is None else self.kept
        for mapping in file.mappings[self.mapped :]:
            run = mapping.map_run(run)
        return run if file.page is None else run.cut_into_pages(file.page)

    def keep(self) -> Block:
        """Return the block with its run in memory, and without its text or frame."""
        columns = None if self.frame is None else self.frame.clear()
        return Block(self.file, frame=columns, kept=self.run, mapped=len(self.file.mappings))

    def _read_run(self) -> Run:
        reading = Reading(self.file.gaps, self.file.first)
        is_text = self.text is not None
        run = make_run(self.read(), reading, name=self.file.name, is_text=is_text, is_part=True)
        return run if self.file.only is None else select_queries(run, self.file.only)

    def read_ids(self) -> pl.DataFrame:
        """Return query_id and doc_id of each row. The other columns are not always checked."""
        as_written = not self.file.mappings and self.file.only is None and self.file.page is None
        ids = read_ids(self.text) if self.text and as_written else None
        return self.run.rows.select("query_id", "doc_id") if ids is None else ids

    def read(self) -> OpenFrame:
        """Return the rows as they are in the file, before any option applies. A kept block has no rows here."""
        if self.text is not None:
            frame, lines, passed_over = read_text(self.text, RUN, label=str(self.file.path), errors="raise")
            self.file.passed_over[self.text.offset] = passed_over
            return OpenFrame(nw.from_native(frame), lines, FoundColumns({}))
        opened = open_frame(self.frame, RUN)
        return opened._replace(rows=self.rows or opened.rows)


def keep_blocks(runs: Mapping[str, Run | RunFile]) -> None:
    """Read the rows of files into memory, so that the next step does not read the files again.

    The rows of all files together need at most `_MOST_KEPT` bytes. A file that probably has more rows is left alone.
    """
    bytes_left = float(_MOST_KEPT)
    for file in runs.values():
        if not isinstance(file, RunFile) or file.page is not None:
            continue

        blocks: list[Block] = []
        size = 0.0
        for block in map_ahead(Block.keep, file.blocks()):
            blocks.append(block)
            size += _measure(block.run.rows)
            likely_blocks = max(file.text_size / file.block, len(blocks))
            if size / len(blocks) * likely_blocks > bytes_left:  # if all blocks are like these
                break
        else:
            file.kept[:] = blocks
            bytes_left -= size


def _measure(rows: pl.DataFrame) -> float:
    """Return the bytes of memory that rows need. Polars counts the characters of texts, and not the 16 bytes of each text."""
    return rows.estimated_size() + 16 * rows.height * rows.select(cs.string()).width


def text_blocks(path: Path, *, size: int) -> Iterator[Content]:
    """Yield the lines of a text file (also .gz and .zst) in blocks. Neighbouring lines of a query stay together.

    A block has about `size` bytes, or more if it holds a larger query.
    """
    is_compressed = compression(path) is not None
    with open_stream(path) as stream:
        whole = 0 if is_compressed else os.fstat(stream.fileno()).st_size
        begin = stream.read(len(BOM))
        in_line = 0
        offset, pieces = (len(BOM), [b""]) if begin == BOM else (0, [begin])
        while more := stream.read(size):
            in_line = check_line(in_line, more, path)
            end = _last_query(more)
            if end:
                data = b"".join((*pieces, memoryview(more)[:end]))
                yield Content(data, path, offset)
                offset += len(data)
                tell_progress(f"reading {path.name}", offset, whole or None)
                pieces = [more[end:]]
            else:
                pieces.append(more)

    data = b"".join(pieces)
    if data:
        yield Content(data, path, offset)
    if offset + len(data) < whole:
        raise InputError(f"{path}: the file became shorter while it was read; wait until it is written, and try again")


def _last_query(data: bytes) -> int:
    """Return the offset in `data` at which the rows of the last query begin; 0 if all rows belong to one query.

    The text before the first newline and after the last newline is ignored, as are comments.
    """
    start = end = data.rfind(b"\n") + 1
    if _is_one_query(data, end):
        return 0

    last_query: list[bytes] = []
    while line := data.rfind(b"\n", 0, max(end - 1, 0)) + 1:  # from the last line to the first
        query = [] if data.startswith(COMMENT_BYTES, line) else data[line:end].split(None, 1)[:1]
        if query and last_query and query != last_query:
            return start
        if query:
            last_query, start = query, line
        end = line
    return 0


def _is_one_query(data: bytes, end: int) -> bool:
    """Return whether all lines between the first newline and `end` belong to one query."""
    begin = data.find(b"\n") + 1
    query = data[begin : data.find(b"\n", begin)].split(None, 1)[:1]
    last = data[data.rfind(b"\n", 0, max(end - 1, 0)) + 1 : end].split(None, 1)[:1]
    if not query or query != last:
        return False
    lines = sum(data.count(b"\n" + query[0] + blank, 0, end) for blank in (b" ", b"\t"))
    return lines == data.count(b"\n", 0, end) - 1


def table_blocks(path: Path, *, rows: int, columns: Columns) -> Iterator[tuple[int, pl.DataFrame]]:
    """Yield the blocks of a Parquet file, cut between queries, as pairs (index of the first row, rows)."""
    import pyarrow.parquet as pq

    with explain_container_errors(path, "parquet"), pq.ParquetFile(path) as file:
        names = find_columns(file.schema_arrow.names, RUN, columns, label=str(path)).names
        waiting: pl.DataFrame | None = None
        rows_before = 0
        for batch in file.iter_batches(batch_size=rows, columns=list(names)):
            block = frame_of(batch).rename(names)
            if waiting is not None:
                block = pl.concat([waiting, block])
            query_ids = block.get_column("query_id")
            earlier_queries = query_ids.ne_missing(query_ids[-1]).arg_true()
            end = int(earlier_queries[-1]) + 1 if len(earlier_queries) else 0
            if end:
                yield rows_before, block[:end]
                rows_before += end
                tell_progress(f"reading {path.name}", rows_before, file.metadata.num_rows)
            waiting = block[end:]
        if waiting is not None and len(waiting):
            yield rows_before, waiting


def partition_by_query(file: RunFile, *, with_check: bool = False) -> Iterator[Block]:
    """Yield a run in blocks. No query is in two blocks. Within a block, rows keep the order of the file.

    Rows are first divided among temporary files by a hash of query_id. Together, these files are as large as the run in plain text.
    With `with_check`, a file that was appended to itself raises `InputError` (see `check_copies`).
    """
    file.kept.clear()  # the rows would be in memory twice
    parts = min(file.text_size // (2 * file.block) + 2, _FILES)
    with temporary_folder() as folder:
        paths = [folder / f"{part}.arrow" for part in range(parts)]
        _write_partitions(file, paths, with_check=with_check)
        for number, path in enumerate(paths):
            tell_progress(f"sorting {file.path.name}", number, len(paths))
            if path.exists():
                frame = pl.read_ipc_stream(path)
                rows = frame.get_column(_ROW).to_list()
                place: RowSource = FrameRows(str(file.path), rows)
                if file.is_text:
                    place = TextLines(str(file.path), Content(b"", file.path), rows)
                yield Block(file, frame=frame.drop(_ROW), rows=place)


def _write_partitions(file: RunFile, paths: Sequence[Path], *, with_check: bool) -> None:
    """Write the rows of a file to temporary files, those of a query to one of them. Rows get their numbers as the column `_ROW`."""
    identities: list[pl.DataFrame] = []  # of each block

    def read_frames() -> Iterator[pl.DataFrame]:
        for block in file.blocks():
            frame = _add_row_numbers(block)
            if with_check and (identity := select_identity(frame)) is not None:
                identities.append(hash_identity(identity))
            yield frame

    divide_by_query(read_frames(), paths)
    if identities:
        check_copies(pl.concat(identities), str(file.path))


def _add_row_numbers(block: Block) -> pl.DataFrame:
    """Return the rows of a block with their numbers in the file, in types that are equal for all blocks."""
    opened, rows, _ = block.read()
    frame: pl.DataFrame = opened.to_native()
    if not isinstance(rows, TextLines):
        return frame.with_columns(pl.Series(_ROW, rows.rows, dtype=pl.Int64))

    lines = rows.lines
    if lines is None:
        text = rows.content.data
        if text.count(b"\n") + (not text.endswith(b"\n")) == len(frame):  # every line is a row
            first = rows.content.before + 1
            lines = range(first, first + len(frame))
        else:
            lines = [number for number, _ in number_rows(rows.content)]
    numbers = pl.col("rank", "score").cast(pl.Float64)
    return frame.with_columns(pl.col("iteration").cast(pl.String), numbers, pl.Series(_ROW, lines))


def check_only_block(file: RunFile) -> None:
    """Raise `InputError` if the only block of a file consists of copies of the same rows.

    If the copies are in several blocks, so are rows of one query, and `partition_by_query` checks the rows.
    """
    for block in file.blocks():
        identity = select_identity(block.read().frame.to_native())
        if identity is not None:
            check_copies(identity, str(file.path))


def sample_rows(run: Run | RunFile) -> pl.DataFrame:
    """Return query_id and doc_id of a few thousand rows of a run.

    If the run is in memory or in an uncompressed text file, the rows come from all its parts. Else, the first rows are taken.
    """
    if isinstance(run, RunFile):
        return _sample_file(run)
    if not isinstance(run.frame, pl.DataFrame):
        first_rows = nw.from_native(run.frame).lazy().select("query_id", "doc_id").head(_SAMPLE)
        return collect(first_rows).cast(pl.String)
    rows = run.frame.select("query_id", "doc_id")
    if rows.height <= _SAMPLE:
        return rows
    starts = range(0, rows.height, rows.height // _PLACES)
    return pl.concat(rows.slice(start, _SAMPLE // _PLACES) for start in starts)


def _sample_file(run: RunFile) -> pl.DataFrame:
    """Return query_id and doc_id of some rows, after the options `only` and `documents`."""
    if run.is_text:
        rows = _read_some_lines(run)
    else:
        _, block = next(table_blocks(run.path, rows=_SAMPLE, columns=run.columns))
        rows = block.select("query_id", "doc_id").head(_SAMPLE).cast(pl.String)
    if run.only is not None:
        rows = rows.filter(pl.col("query_id").is_in(run.only.implode()))
    for mapping in run.mappings:
        mapped = mapping.add_documents(nw.from_native(rows)).to_native()
        rows = mapped.select("query_id", doc_id=pl.coalesce("document", "doc_id"))
    return rows


def _read_some_lines(run: RunFile) -> pl.DataFrame:
    """Return query_id and doc_id of lines from all parts of a text file or, if it is compressed, of its first lines."""
    lines: list[bytes] = []
    if run.compressed:
        with open_stream(run.path) as file:
            lines = file.read(_PLACES * _BYTES).split(b"\n")[:-1]
    else:
        with open_plain(run.path) as file:
            size = run.path.stat().st_size
            for start in range(0, size, max(size // _PLACES, 1)):
                file.seek(start)
                lines += file.read(_BYTES).split(b"\n")[1:-1]

    rows = []
    for line in lines:
        fields = line.split(None, 3)
        if len(fields) > 3:
            rows.append((fields[0].decode("utf-8", "replace"), fields[2].decode("utf-8", "replace")))
    return pl.DataFrame(rows, schema={"query_id": pl.String, "doc_id": pl.String}, orient="row")
