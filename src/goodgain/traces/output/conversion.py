"""Converts traces to runs: all of `goodgain convert` but its printing.

Traces are read file by file and written batch by batch, so that memory does not grow with them. A query of one system
is within one trace. With an output for each system, a query's results come from several traces; those to be
deduplicated together are kept on disk until all traces are read.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from goodgain.errors import InputError, notice
from goodgain.files.frames import Append, EncodedRows, append_rows, encode_rows, warn_of_escaped_ids
from goodgain.files.results import check_results_name
from goodgain.files.writing import Outputs, temporary_folder, write_with_polars
from goodgain.schema import EMPTY_DOC
from goodgain.traces.output.runs import DEFAULT_TAG, NormaliseUrl, list_systems, to_run
from goodgain.traces.reading.options import ReadOptions
from goodgain.traces.reading.pieces import Paths, find_trace_files
from goodgain.traces.reading.rows import ResultRows
from goodgain.traces.reading.traces import Progress, read_batches
from goodgain.traces.summary import Summary

__all__ = ["Conversion", "Deduplicate", "convert_traces"]

#: A function of a results frame that returns its rows with a column `document`, or an object with these as `.frame`.
Deduplicate = Callable[[pl.DataFrame], Any]

_PLACEHOLDER = "{system}"
#: Rows deduplicated at once; whole queries, so that a batch may have more.
_ROWS_A_BATCH = 200_000


class Conversion(NamedTuple):
    """The outputs of a conversion, and the counts of its input.

    Attributes:
        runs: the run of each system, by the system's name.
        results: the file of the results, if one was asked for.
        rows: rows written to runs.
        deduplicated: queries whose documents were found by deduplication, as their results have no ids.
        summary: what was read.
    """

    runs: dict[str, Path]
    results: Path | None
    rows: int
    deduplicated: int
    summary: Summary


def convert_traces(
    paths: Paths, output: str | os.PathLike[str], *,
    results: str | os.PathLike[str] | None = None,
    system: str | None = None,
    deduplicate: Deduplicate | None = None,
    deduplicate_all: bool = False,
    normalise_url: NormaliseUrl | None = None,
    jobs: int = 1,
    progress: Progress | None = None,
    **options: Any,
) -> Conversion:  # fmt: skip
    """Convert traces to a run, or to one run for each system.

    Args:
        paths: as for `read_traces`, as are `jobs` and all further options.
        output: the run's file: TREC text, .jsonl or .parquet, also .gz and .zst. With `{system}` in its name, each
            system gets a file.
        results: a .jsonl or .parquet file for the results.
        system: the one system to convert, where the traces hold several.
        deduplicate: finds the documents of queries whose results lack ids; None: by normalised URL, else by text.
        deduplicate_all: deduplicate the other queries too, although their results have ids.
        normalise_url: how URLs become ids where nothing is deduplicated; None: as deduplication does it.
        progress: is called with the bytes read so far and in all.

    Raises:
        InputError: as in `read_traces`; there are several systems and one output; an output is one of the traces or
            another output; or a file cannot be written. No file is left behind, and those that stood there stay as
            they were.
    """
    out, wanted = Path(output), Path(results) if results is not None else None
    read = ReadOptions(**options)
    outputs = _check_outputs(paths, out, wanted)
    one_run_a_system = _PLACEHOLDER in out.name
    converter = _BatchConverter(
        deduplicate, deduplicate_all, normalise_url, out, wanted, system, postpone=one_run_a_system
    )
    summary = Summary()
    with ExitStack() as stack:
        writer = _OutputWriter(stack, out, wanted, system, outputs)
        if one_run_a_system and deduplicate is not None:
            writer.spool = stack.enter_context(temporary_folder())
        # Closed also after an error: its processes end before the files are removed.
        with closing(read_batches(paths, read, converter, summary, jobs=jobs, progress=progress)) as batches:
            for batch in batches:
                writer.add(batch, summary)
        for rows in writer.read_postponed():
            writer.add(_convert_postponed(rows, converter), summary)
        writer.check_system(summary)
    summary.give_notices()
    writer.give_notices(deduplicated=deduplicate is not None)
    return Conversion(writer.runs, wanted, writer.rows, writer.deduplicated, summary)


def _check_outputs(paths: Paths, out: Path, results: Path | None) -> Outputs:
    """Check the outputs whose names are known now; with `{system}`, a run is checked when its system is met."""
    if results is not None:
        check_results_name(results)
    outputs = Outputs(find_trace_files(paths))
    for path in (out, results):
        if path is not None and path.is_dir():
            raise InputError(f"{path}: is a directory; name the file to write")
        if path is not None and not (path is out and _PLACEHOLDER in out.name):
            outputs.add(path)
    return outputs


class _ConvertedBatch(NamedTuple):
    """A batch as it is written: the run of each system, the results if they are wanted, and rows for later."""

    runs: list[tuple[str | None, EncodedRows]]
    results: EncodedRows | None
    postponed: pl.DataFrame | None
    deduplicated: int


@dataclass(frozen=True)
class _BatchConverter:
    """Converts the rows of a batch, in the process that read them.

    `postpone`: return rows that need deduplication, because more rows of their queries may come.
    """

    deduplicate: Deduplicate | None
    deduplicate_all: bool
    normalise_url: NormaliseUrl | None
    run_file: Path
    results_file: Path | None
    system: str | None
    postpone: bool

    def __call__(self, rows: ResultRows) -> _ConvertedBatch:
        plain = rows.all_have_ids and not self.deduplicate_all
        frame = rows.to_frame(for_run=plain and self.results_file is None)
        if self.system is not None:
            frame = frame.filter(pl.col("system") == self.system)
        results = encode_rows(frame, self.results_file) if self.results_file is not None else None
        if plain or self.deduplicate is None:
            return _ConvertedBatch(self.make_runs(frame), results, None, 0)
        lacking = (
            pl.lit(True)
            if self.deduplicate_all
            else ((pl.col("rank") > 0) & pl.col("doc_id").replace(EMPTY_DOC, None).is_null())
        )
        needs_documents = lacking.any().over("query_id")
        if self.postpone:
            return _ConvertedBatch(
                self.make_runs(frame.filter(~needs_documents)), results, frame.filter(needs_documents), 0
            )
        lacking_rows = frame.filter(needs_documents)
        identified = self.add_documents(lacking_rows)
        rest = frame.filter(~needs_documents).with_columns(document="doc_id")
        return _ConvertedBatch(
            self.make_runs(_restore_query_order(frame, identified, rest)),
            results,
            None,
            lacking_rows["query_id"].n_unique(),
        )

    def add_documents(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Return results with the column `document` from deduplication."""
        if self.deduplicate is None or frame.is_empty():
            return frame.with_columns(document="doc_id")
        found = self.deduplicate(frame)
        return pl.DataFrame(getattr(found, "frame", found)).select(*frame.columns, "document")

    def make_runs(self, frame: pl.DataFrame) -> list[tuple[str | None, EncodedRows]]:
        """Return the run of each system in a frame."""
        systems = list_systems(frame)
        return [
            (name, encode_rows(self.make_run(_select_system(frame, name, systems)), self.run_file)) for name in systems
        ]

    def make_run(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Return the run of one system."""
        return to_run(frame, normalise_url=self.normalise_url)


def _select_system(frame: pl.DataFrame, system: str | None, systems: list[str | None]) -> pl.DataFrame:
    return frame if len(systems) == 1 else frame.filter(pl.col("system").eq_missing(system))


def _restore_query_order(frame: pl.DataFrame, *parts: pl.DataFrame) -> pl.DataFrame:
    """Return the rows of the parts, with queries in the order of the frame."""
    order = frame.select(pl.col("query_id").unique(maintain_order=True)).with_row_index("order")
    joined = pl.concat(parts).join(order, on="query_id", how="left", maintain_order="left")
    return joined.sort("order", maintain_order=True).drop("order")


def _convert_postponed(rows: pl.DataFrame, converter: _BatchConverter) -> _ConvertedBatch:
    return _ConvertedBatch(converter.make_runs(converter.add_documents(rows)), None, None, rows["query_id"].n_unique())


class _OutputWriter:
    """Writes batches to the outputs of a conversion, which appear only if `stack` is left without an error."""

    def __init__(self, stack: ExitStack, out: Path, results: Path | None, system: str | None, outputs: Outputs) -> None:
        self.runs: dict[str, Path] = {}
        self.rows = self.deduplicated = 0
        self.spool: Path | None = None
        self._stack = stack
        self._out = out
        self._system = system
        self._outputs = outputs
        self._appends: dict[str, Append] = {}
        self._escaped = 0
        self._results = stack.enter_context(append_rows(results)) if results is not None else None
        self._spooled = 0
        if _PLACEHOLDER not in out.name:
            self._appends[""] = stack.enter_context(append_rows(out))

    def add(self, batch: _ConvertedBatch, summary: Summary) -> None:
        """Write a batch.

        Raises:
            InputError: there are several systems, but only one output.
        """
        if _PLACEHOLDER not in self._out.name and self._system is None and len(summary.systems) > 1:
            first, second, *_ = (name or "one without a name" for name in summary.systems)
            raise InputError(
                f"the traces hold several systems ({first}, {second}), and a run is one system; pick one with system=, "
                f"or put {_PLACEHOLDER} into the name of the output"
            )
        for system, run in batch.runs:
            self._open_run(system)(run)
            self.rows += run.rows
            self._escaped += run.escaped
        if self._results is not None and batch.results is not None:
            self._results(batch.results)
        if batch.postponed is not None and batch.postponed.height and self.spool is not None:
            with write_with_polars():
                batch.postponed.write_parquet(self.spool / f"{self._spooled}.parquet")
            self._spooled += 1
        self.deduplicated += batch.deduplicated

    def _open_run(self, system: str | None) -> Append:
        if _PLACEHOLDER not in self._out.name:
            self.runs[system or DEFAULT_TAG] = self._out
            return self._appends[""]
        name = system or DEFAULT_TAG
        if name not in self._appends:
            # A system's name may hold anything; file systems allow 255 bytes, and the rest of the name needs some.
            safe = "".join(sign if sign.isalnum() or sign in "-_.+" else "_" for sign in name)[:150]
            safe = safe if safe.strip(".") else "_" * len(safe)  # . and .. are folders
            path = self._out.with_name(self._out.name.replace(_PLACEHOLDER, safe))
            if path in self.runs.values():
                raise InputError(f"{path}: two systems would be written to this file; convert them apart with system=")
            self._outputs.add(path)
            self.runs[name] = path
            self._appends[name] = self._stack.enter_context(append_rows(path))
        return self._appends[name]

    def read_postponed(self) -> Iterator[pl.DataFrame]:
        """Yield the postponed rows from disk, whole queries at a time."""
        if self.spool is None or not self._spooled:
            return
        rows = pl.scan_parquet(self.spool / "*.parquet")
        sizes = rows.group_by("query_id", maintain_order=True).len().collect()
        part = (sizes["len"].cum_sum() // _ROWS_A_BATCH).alias("part")
        for _, queries in sizes.with_columns(part).group_by("part", maintain_order=True):
            chosen = queries["query_id"].to_list()
            yield rows.filter(pl.col("query_id").is_in(chosen)).collect()

    def check_system(self, summary: Summary) -> None:
        """Check that the traces hold the system that was asked for.

        Raises:
            InputError: they do not.
        """
        if self._system is not None and self._system not in summary.systems:
            known = ", ".join(repr(name) for name in list(summary.systems)[:10] if name) or "none that has a name"
            raise InputError(f"the traces hold no system {self._system!r}, only {known}")

    def give_notices(self, *, deduplicated: bool) -> None:
        """Give the notices about the outputs."""
        if self.deduplicated:
            notice(
                f"the results of {self.deduplicated} queries lack ids: their documents were told apart by deduplication; "
                "--dedup none (deduplicate=None) uses their URLs as they are"
            )
        warn_of_escaped_ids(self._escaped, self._out)
