"""Partitions of a large run whose queries are scattered over the file, written to disk, so that each has whole queries."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import polars as pl

from goodgain.batches.run_file import Block, RunFile
from goodgain.files.opening import compression
from goodgain.files.row_origins import FileLines, FrameRows, RowSource, TextLines, number_rows
from goodgain.files.writing import temporary_folder

__all__ = ["partition_by_query"]

_ROW = "row in the file"
_FILES = 200  # open at a time, at most: some systems allow a process 256
_SHRUNK = 6  # compressed text of a run, and Parquet, is about a sixth of the text


def partition_by_query(file: RunFile) -> Iterator[Block]:
    """Yield the run in blocks that hold every row of their queries, in the order of the file.

    Each row is written to one of several temporary files, chosen by a hash of its query. They need about as much room on
    disk as the run takes as text.
    """
    size = file.path.stat().st_size * (_SHRUNK if not file.is_text or compression(file.path) else 1)
    parts = min(size // (2 * file.block) + 2, _FILES)
    with temporary_folder() as folder:
        paths = [folder / f"{part}.arrow" for part in range(parts)]
        _write_partitions(file, paths)
        for path in paths:
            if path.exists():
                frame = pl.read_ipc_stream(path)
                rows = frame.get_column(_ROW).to_list()
                place: RowSource = FileLines(file.path, rows) if file.is_text else FrameRows(str(file.path), rows)
                yield Block(file, frame=frame.drop(_ROW), rows=place)


def _write_partitions(file: RunFile, paths: Sequence[Path]) -> None:
    import pyarrow as pa

    with ExitStack() as stack:
        writers: dict[int, pa.RecordBatchStreamWriter] = {}
        for block in file.blocks():
            frame = _add_row_numbers(block)
            part = frame.get_column("query_id").hash() % len(paths)
            for (number,), some in frame.with_columns(part=part).partition_by("part", as_dict=True).items():
                table = some.drop("part").to_arrow()
                if number not in writers:
                    sink = stack.enter_context(pa.OSFile(str(paths[number]), "wb"))
                    writers[number] = stack.enter_context(pa.ipc.new_stream(sink, table.schema))
                writers[number].write_table(table)


def _add_row_numbers(block: Block) -> pl.DataFrame:
    """Return the columns of a block, in types that fit every block of the file, with the line or row of each."""
    opened, rows, _ = block.read()
    frame: pl.DataFrame = opened.to_native()
    if not isinstance(rows, TextLines):
        return frame.with_columns(pl.Series(_ROW, rows.rows, dtype=pl.Int64))
    numbers = pl.col("rank", "score").cast(pl.Float64)
    return frame.with_columns(
        pl.col("iteration").cast(pl.String), numbers, pl.Series(_ROW, _line_numbers(rows, len(frame)))
    )


def _line_numbers(lines: TextLines, rows: int) -> Sequence[int]:
    """Return the number of the line of each row; lines are counted one by one only where some may not be rows."""
    content = lines.content
    if lines.lines is not None:
        return lines.lines
    text = content.data
    if text.count(b"\n") + (not text.endswith(b"\n")) == rows:
        return range(content.before + 1, content.before + 1 + rows)
    return [number for number, _ in number_rows(content)]
