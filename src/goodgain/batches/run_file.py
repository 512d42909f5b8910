"""Opening runs: small ones are read at once, large files are read in blocks, some queries at a time."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import narwhals as nw
import polars as pl

from goodgain.batches.whole_query_blocks import TextBlock, table_blocks, text_blocks
from goodgain.files.content import Content
from goodgain.files.opening import COMPRESSED, compression, container, open_plain, open_stream, stem
from goodgain.files.row_origins import FrameRows, RowSource
from goodgain.formats.column_names import (
    Columns,
    FoundColumns,
    check_columns,
    check_columns_used,
    find_columns,
    warn_of_understood_columns,
)
from goodgain.formats.frames import OpenFrame, open_frame
from goodgain.formats.qrels import Qrels, load_qrels
from goodgain.formats.run import Run, check_run_options, load_run, make_run
from goodgain.formats.tables import find_header
from goodgain.formats.text import RUN_TEXT, PassedOver, read_text
from goodgain.schema import RUN

__all__ = ["Block", "RunFile", "open_run", "open_run_and_qrels"]

_BLOCK = 16 * 2**20  # bytes of text that are read at a time
#: A file of more bytes is read in blocks, side by side; a smaller one is a block by itself.
LARGE = _BLOCK
LARGE_COMPRESSED = LARGE // 6  # text of runs shrinks to about a sixth, in Parquet too
_HEAD = 2**16  # bytes in which the first line of a file is
_PIECE = 2**20  # bytes that are unpacked at a time to learn how many there are
_ROW_BYTES = 32  # how long a row is as text, about: blocks of Parquet are counted in rows


@dataclass(frozen=True)
class RunFile:
    """A run in a large file.

    Attributes:
        path: text (also .gz and .zst) or Parquet.
        gaps, first: as in `read_run`.
        is_text: whether it is text.
        columns: the user's names of the columns of a Parquet file.
        likely_iteration, renamed, warned: as in `Run`.
        block: how much is read at a time, in bytes of text.
        passed_over: what was not read of each block of text, by the byte that the block begins at.
        numbered: for each block that was counted, whether some row of it has a number as its iteration.
    """

    path: Path
    gaps: str
    first: int
    is_text: bool
    block: int = _BLOCK
    columns: Columns = field(default_factory=dict)
    likely_iteration: str | None = None
    renamed: frozenset[str] = frozenset()
    warned: set[str] = field(default_factory=set, compare=False)
    passed_over: dict[int, PassedOver] = field(default_factory=dict, compare=False)
    numbered: list[bool] = field(default_factory=list, compare=False)

    @property
    def name(self) -> str:
        """The system, by the file's stem."""
        return stem(self.path)

    @property
    def has_iterations(self) -> bool:
        """As in `Run`; known once the blocks have been counted."""
        return any(self.numbered)

    def blocks(self) -> Iterator[Block]:
        """Yield the run cut between queries; a query whose rows stand apart is in several blocks."""
        if self.is_text:
            block: Block | None = None
            for text in text_blocks(self.path, size=self.block):
                block = Block(self, text=text)
                yield block
            if block is None:
                yield Block(self, text=TextBlock(self.path, 0, 0, b""))
        else:
            for before, frame in table_blocks(self.path, RUN, rows=self.block // _ROW_BYTES, columns=self.columns):
                yield Block(self, frame=frame, rows=FrameRows(str(self.path), range(before, before + len(frame))))


@dataclass(frozen=True)
class Block:
    """Some queries of a run, as text, or as columns and where their rows come from."""

    file: RunFile
    text: TextBlock | None = None
    frame: pl.DataFrame | None = None
    rows: RowSource | None = None

    @cached_property
    def run(self) -> Run:
        """The block as a run."""
        file = self.file
        return make_run(
            self.read(),
            name=file.name,
            is_text=self.text is not None,
            gaps=file.gaps,
            first=file.first,
            errors="raise",
            is_part=True,
        )

    def read(self) -> OpenFrame:
        """Read the columns as they stand."""
        if self.text is not None:
            content = Content(self.text.text(), part_of=self.file.path, offset=self.text.offset)
            frame, lines, passed_over = read_text(content, RUN_TEXT, label=str(self.file.path), errors="raise")
            self.file.passed_over[self.text.offset] = passed_over
            return OpenFrame(nw.from_native(frame), lines, FoundColumns({}))
        opened = open_frame(self.frame, RUN)
        return opened._replace(rows=self.rows or opened.rows)


def open_run(
    source: Any, *, gaps: str = "close", first: int = 1, errors: str = "raise", columns: Columns | None = None
) -> Run | RunFile:
    """Open a run to be scored: a large file stays where it is, to be read in blocks; anything else is read at once.

    The options are those of `read_run`; with `errors="skip"` every file is read at once. As with `load_run`, the caller
    checks that every name in `columns` was used.

    Raises:
        InputError: as `read_run`; for a large file, when its blocks are read.
    """
    check_run_options(source, gaps=gaps, first=first, errors=errors)
    columns = check_columns(columns)
    if isinstance(source, RunFile):
        return source
    if errors == "raise" and isinstance(source, (str, os.PathLike)):
        found = _open_large(Path(source), gaps=gaps, first=first, columns=columns)
        if found is not None:
            return found
    return load_run(source, gaps=gaps, first=first, errors=errors, columns=columns)


def open_run_and_qrels(
    qrels: Any,
    run: Any,
    *,
    gaps: str = "close",
    first: int = 1,
    labels: str | None = None,
    errors: str = "raise",
    columns: Columns | None = None,
) -> tuple[Run | RunFile, Qrels]:
    """Open a run and read qrels, with one `columns` for both.

    The options are those of `read_run` and `read_qrels`.

    Raises:
        InputError: as both; a name in `columns` is a column of neither.
    """
    searched = open_run(run, gaps=gaps, first=first, errors=errors, columns=columns)
    judged = load_qrels(qrels, labels=labels, errors=errors, columns=columns)
    check_columns_used(columns or {}, searched, judged)
    return searched, judged


def _open_large(path: Path, *, gaps: str, first: int, columns: Columns) -> RunFile | None:
    """Open a file in blocks, if it is large and of a kind that can be read so."""
    with suppress(OSError, ValueError):  # the file cannot be read: load_run says why
        kind = container(path)
        if not path.is_file() or kind not in ("text", "parquet"):
            return None
        size = path.stat().st_size
        if kind == "text":
            compressed = compression(path)
            if path.suffix.lower() in COMPRESSED and not compressed:
                return None
            is_large = size > (LARGE_COMPRESSED if compressed else LARGE) or (
                compressed is not None and _unpacks_to_more(path, LARGE)
            )
            if is_large and not _has_header(path, columns):
                return RunFile(path, gaps, first, is_text=True)
        elif size > LARGE_COMPRESSED:
            import pyarrow.parquet as pq

            with open_plain(path) as file:
                metadata = pq.read_metadata(file)
            names = metadata.schema.to_arrow_schema().names
            found = find_columns(names, RUN, columns, label=str(path))
            if metadata.num_rows and set(RUN.required) <= set(found.names.values()):
                warn_of_understood_columns(found, str(path))
                return RunFile(
                    path,
                    gaps,
                    first,
                    is_text=False,
                    columns=columns,
                    likely_iteration=found.likely_iteration,
                    renamed=found.renamed,
                )
    return None


def _unpacks_to_more(path: Path, size: int) -> bool:
    """Tell whether a compressed file holds more than these bytes; no more of them are unpacked, nor kept."""
    with open_stream(path) as file:
        while size >= 0 and (piece := file.read(_PIECE)):
            size -= len(piece)
    return size < 0


def _has_header(path: Path, columns: Columns) -> bool:
    """Tell whether text is a CSV or TSV file with a header, which is read at once."""
    with open_stream(path) as file:
        return find_header(Content(file.read(_HEAD)), path, columns) is not None
