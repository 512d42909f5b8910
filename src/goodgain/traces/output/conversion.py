"""Converting traces to a run: all of `goodgain convert` but its printing.

Traces are read file by file and written batch by batch, so that memory does not grow with them. A query is whole
within one trace; only where one output a system is asked for do a query's results come from several traces, and then
those that have to be deduplicated wait on disk for each other.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from goodgain.errors import InputError, notice
from goodgain.files.frames import Append, EncodedRows, append_rows, encode_rows, warn_of_escaped_ids
from goodgain.files.writing import Outputs
from goodgain.schema import EMPTY_DOC
from goodgain.traces.output.result_files import check_results_name
from goodgain.traces.output.runs import DEFAULT_TAG, NormaliseUrl, systems_in, to_run
from goodgain.traces.reading.options import ReadOptions
from goodgain.traces.reading.pieces import Paths, trace_files
from goodgain.traces.reading.rows import Rows
from goodgain.traces.reading.traces import Progress, read_batches
from goodgain.traces.summary import Summary

__all__ = ["Conversion", "Deduplicate", "convert_traces"]

#: A results frame to the same rows with a column `document`, or to an object that has those as `.frame`.
Deduplicate = Callable[[pl.DataFrame], Any]

_PLACEHOLDER = "{system}"
_ROWS_AT_ONCE = 200_000


class Conversion(NamedTuple):
    """What a conversion wrote, and what it read.

    Attributes:
        runs: the run of each system, by the system's name.
        results: where the results were written, if they were.
        rows: rows written to runs.
        deduplicated: queries whose documents were told apart by deduplication, as their results have no ids.
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
    """Convert traces to a run, or to one run a system.

    Args:
        paths: as for `read_traces`, as are `jobs` and all further options.
        output: the run's file: TREC text, .jsonl or .parquet, also .gz and .zst. With `{system}` in its name, each
            system gets a file.
        results: a .jsonl or .parquet file for the results.
        system: the one system to convert, where the traces hold several.
        deduplicate: tells apart the documents of queries whose results lack ids; None: by normalised URL, else by text.
        deduplicate_all: deduplicate the other queries too, although their results have ids.
        normalise_url: how URLs become ids where nothing is deduplicated; None: as deduplication does it.
        progress: is called with the bytes read so far and in all.

    Raises:
        InputError: as `read_traces`; there are several systems and one output; an output is one of the traces or
            another output; or a file cannot be written. No file is left behind, and those that stood there stay as
            they were.
    """
    out, wanted = Path(output), Path(results) if results is not None else None
    read = ReadOptions(**options)
    outputs = _checked_outputs(paths, out, wanted)
    apart = _PLACEHOLDER in out.name
    work = _Work(deduplicate, deduplicate_all, normalise_url, out, wanted, system, later=apart)
    summary = Summary()
    with ExitStack() as stack:
        writing = _Writing(stack, out, wanted, system, outputs)
        if apart and deduplicate is not None:
            writing.spool = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="goodgain-")))
        for done in read_batches(paths, read, work, summary, jobs=jobs, progress=progress):
            writing.add(done, summary)
        for rows in writing.waiting():
            writing.add(_finished(rows, work), summary)
        writing.end(summary)
    summary.say()
    writing.say(deduplicated=deduplicate is not None)
    return Conversion(writing.runs, wanted, writing.rows, writing.identified, summary)


def _checked_outputs(paths: Paths, out: Path, results: Path | None) -> Outputs:
    """The outputs whose names are known before the traces are read; with `{system}` each run follows when it is met."""
    if results is not None:
        check_results_name(results)
    outputs = Outputs(trace_files(paths))
    for path in (out, results):
        if path is not None and path.is_dir():
            raise InputError(f"{path}: is a directory; name the file to write")
        if path is not None and not (path is out and _PLACEHOLDER in out.name):
            outputs.add(path)
    return outputs


class _Done(NamedTuple):
    """What came of a batch: rows of runs by system, and the results, as far as they are wanted."""

    runs: list[tuple[str | None, EncodedRows]]
    results: EncodedRows | None
    waiting: pl.DataFrame | None
    identified: int


@dataclass(frozen=True)
class _Work:
    """What is done with the rows of a batch, in whichever process they were read."""

    deduplicate: Deduplicate | None
    deduplicate_all: bool
    normalise_url: NormaliseUrl | None
    run_file: Path
    results_file: Path | None
    system: str | None
    later: bool

    def __call__(self, rows: Rows) -> _Done:
        plain = rows.all_have_ids and not self.deduplicate_all
        frame = rows.frame(for_run=plain and self.results_file is None)
        if self.system is not None:
            frame = frame.filter(pl.col("system") == self.system)
        results = encode_rows(frame, self.results_file) if self.results_file is not None else None
        if plain or self.deduplicate is None:
            return _Done(self.runs(frame), results, None, 0)
        lacking = (
            pl.lit(True)
            if self.deduplicate_all
            else ((pl.col("rank") > 0) & pl.col("doc_id").replace(EMPTY_DOC, None).is_null())
        )
        waits = lacking.any().over("query_id")
        if self.later:
            return _Done(self.runs(frame.filter(~waits)), results, frame.filter(waits), 0)
        needy = frame.filter(waits)
        identified = self.identified(needy)
        rest = frame.filter(~waits).with_columns(document="doc_id")
        return _Done(self.runs(_in_order(frame, identified, rest)), results, None, needy["query_id"].n_unique())

    def identified(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Results with a column `document`."""
        if self.deduplicate is None or frame.is_empty():
            return frame.with_columns(document="doc_id")
        found = self.deduplicate(frame)
        return pl.DataFrame(getattr(found, "frame", found)).select(*frame.columns, "document")

    def runs(self, frame: pl.DataFrame) -> list[tuple[str | None, EncodedRows]]:
        """The run of each system in a frame."""
        systems = systems_in(frame)
        return [(name, encode_rows(self.run(_rows_of(frame, name, systems)), self.run_file)) for name in systems]

    def run(self, frame: pl.DataFrame) -> pl.DataFrame:
        """The run of one system."""
        return to_run(frame, normalise_url=self.normalise_url)


def _rows_of(frame: pl.DataFrame, system: str | None, systems: list[str | None]) -> pl.DataFrame:
    return frame if len(systems) == 1 else frame.filter(pl.col("system").eq_missing(system))


def _in_order(frame: pl.DataFrame, *parts: pl.DataFrame) -> pl.DataFrame:
    """The rows of the parts, queries in the order of the frame."""
    order = frame.select(pl.col("query_id").unique(maintain_order=True)).with_row_index("order")
    joined = pl.concat(parts).join(order, on="query_id", how="left", maintain_order="left")
    return joined.sort("order", maintain_order=True).drop("order")


def _finished(rows: pl.DataFrame, work: _Work) -> _Done:
    return _Done(work.runs(work.identified(rows)), None, None, rows["query_id"].n_unique())


class _Writing:
    """The outputs of a conversion."""

    def __init__(self, stack: ExitStack, out: Path, results: Path | None, system: str | None, outputs: Outputs) -> None:
        self.runs: dict[str, Path] = {}
        self.rows = self.identified = 0
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

    def add(self, done: _Done, summary: Summary) -> None:
        """Write what came of a batch."""
        if _PLACEHOLDER not in self._out.name and self._system is None and len(summary.systems) > 1:
            first, second, *_ = (name or "one without a name" for name in summary.systems)
            raise InputError(
                f"the traces hold several systems ({first}, {second}), and a run is one system; pick one with system=, "
                f"or put {_PLACEHOLDER} into the name of the output"
            )
        for system, run in done.runs:
            self._run_of(system)(run)
            self.rows += run.rows
            self._escaped += run.escaped
        if self._results is not None and done.results is not None:
            self._results(done.results)
        if done.waiting is not None and done.waiting.height and self.spool is not None:
            done.waiting.write_parquet(self.spool / f"{self._spooled}.parquet")
            self._spooled += 1
        self.identified += done.identified

    def _run_of(self, system: str | None) -> Append:
        if _PLACEHOLDER not in self._out.name:
            self.runs[system or DEFAULT_TAG] = self._out
            return self._appends[""]
        name = system or DEFAULT_TAG
        if name not in self._appends:
            safe = "".join(sign if sign.isalnum() or sign in "-_.+" else "_" for sign in name)[:150]
            path = self._out.with_name(self._out.name.replace(_PLACEHOLDER, safe))
            if path in self.runs.values():
                raise InputError(f"{path}: two systems would be written to this file; convert them apart with system=")
            self._outputs.add(path)
            self.runs[name] = path
            self._appends[name] = self._stack.enter_context(append_rows(path))
        return self._appends[name]

    def waiting(self) -> Iterator[pl.DataFrame]:
        """What waits on disk, whole queries at a time."""
        if self.spool is None or not self._spooled:
            return
        rows = pl.scan_parquet(self.spool / "*.parquet")
        sizes = rows.group_by("query_id", maintain_order=True).len().collect()
        part = (sizes["len"].cum_sum() // _ROWS_AT_ONCE).alias("part")
        for _, queries in sizes.with_columns(part).group_by("part", maintain_order=True):
            chosen = queries["query_id"].to_list()
            yield rows.filter(pl.col("query_id").is_in(chosen)).collect()

    def end(self, summary: Summary) -> None:
        """Check that what was asked for was there."""
        if self._system is not None and self._system not in summary.systems:
            known = ", ".join(repr(name) for name in list(summary.systems)[:10] if name) or "none that has a name"
            raise InputError(f"the traces hold no system {self._system!r}, only {known}")

    def say(self, *, deduplicated: bool) -> None:
        """Give the notices about what was written."""
        if self.identified:
            notice(
                f"the results of {self.identified} queries lack ids: their documents were told apart by deduplication; "
                "--dedup none (deduplicate=None) uses their URLs as they are"
            )
        warn_of_escaped_ids(self._escaped, self._out)
