"""Writes converted batches to files, one run each for systems and their replicates."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import polars as pl

from goodgain.errors import InputError, notice
from goodgain.files.frames import Append, append_rows, encode_rows, warn_of_escaped_ids
from goodgain.files.writing import Outputs, write_with_polars
from goodgain.traces.output.batches import ConvertedBatch
from goodgain.traces.output.runs import DEFAULT_TAG
from goodgain.traces.reading.query_joining import QueryJoin, rename_queries
from goodgain.traces.summary import RunName, Summary

__all__ = ["PLACEHOLDER", "OutputWriter"]

#: Stands for the name of a system in the name of an output.
PLACEHOLDER = "{system}"
#: Rows deduplicated at once; whole queries, so that a batch may have more.
_ROWS_A_BATCH = 200_000
#: File systems allow 255 bytes for a name, and the rest of the name needs some.
_MAX_NAME = 150


class OutputWriter:
    """Writes batches to the outputs of a conversion, which appear only if `stack` is left without an error.

    Attributes:
        runs: the file of each run, by the run's label.
        rows: rows written to runs.
        deduplicated: queries whose documents were found by deduplication.
        spool: a folder for postponed rows.
    """

    def __init__(
        self, stack: ExitStack, out: Path, results: Path | None, costs: Path | None, queries: Path | None,
        system: str | None, outputs: Outputs,
    ) -> None:  # fmt: skip
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
        self._costs = stack.enter_context(append_rows(costs)) if costs is not None else None
        self._queries = stack.enter_context(append_rows(queries)) if queries is not None else None
        self._asked: dict[str, str] = {}
        self._spooled: dict[str, list[Path]] = {"results": [], "costs": []}
        if PLACEHOLDER not in out.name:
            self._appends[""] = stack.enter_context(append_rows(out))

    def add(self, batch: ConvertedBatch, summary: Summary) -> None:
        """Write a batch.

        Raises:
            InputError: there are several runs, but only one output.
        """
        if PLACEHOLDER not in self._out.name:
            self._check_one_run(summary)
        for name, run in batch.runs:
            self._open_run(name)(run)
            self.rows += run.rows
            self._escaped += run.escaped
        if self._results is not None and batch.results is not None:
            self._results(batch.results)
        if self._costs is not None and batch.costs is not None:
            self._costs(batch.costs)
        if batch.queries is not None:
            for query_id, text in batch.queries.select("query_id", "text").iter_rows():
                if text.strip():
                    self._asked.setdefault(query_id, text)  # several systems were asked the same
        for kind, rows in (("results", batch.postponed), ("costs", batch.postponed_costs)):
            if rows is not None and rows.height and self.spool is not None:
                path = self.spool / f"{kind}-{len(self._spooled[kind])}.parquet"
                with write_with_polars():
                    rows.write_parquet(path)
                self._spooled[kind].append(path)
        self.deduplicated += batch.deduplicated

    def write_queries(self, path: Path | None, joined: QueryJoin) -> None:
        """Write the text of each query once, where it was asked for."""
        if self._queries is not None and path is not None:
            asked: dict[str, str] = {}
            for query_id, text in self._asked.items():
                asked.setdefault(joined.ids.get(query_id, query_id), text)
            columns = {"query_id": list(asked), "text": list(asked.values())}
            frame = pl.DataFrame(columns, schema=dict.fromkeys(columns, pl.String))
            self._queries(encode_rows(frame, path))

    def _check_one_run(self, summary: Summary) -> None:
        names = [name for name in summary.systems if self._system in (None, name.system, name.label)]
        if len(names) < 2:
            return
        first, second = (name.label or "one without a name" for name in names[:2])
        what = "systems" if len({name.system for name in names}) > 1 else "runs of a system"
        raise InputError(
            f"the traces hold several {what} ({first}, {second}), and an output is one run; pick one with system=, "
            f"or put {PLACEHOLDER} into the name of the output"
        )

    def _open_run(self, name: RunName) -> Append:
        label = name.label or DEFAULT_TAG
        if PLACEHOLDER not in self._out.name:
            self.runs[label] = self._out
            return self._appends[""]
        if label not in self._appends:
            # The replicate stands behind a point, so that runs/agent.*.run are the runs of one system.
            parts = [name.system or DEFAULT_TAG, *([name.replicate] if name.replicate is not None else [])]
            path = self._out.with_name(self._out.name.replace(PLACEHOLDER, ".".join(map(_make_safe, parts))))
            if path in self.runs.values():
                raise InputError(f"{path}: two systems would be written to this file; convert them apart with system=")
            self._outputs.add(path)
            self.runs[label] = path
            self._appends[label] = self._stack.enter_context(append_rows(path))
        return self._appends[label]

    def read_postponed_costs(self, joined: QueryJoin) -> Iterator[pl.DataFrame]:
        """Yield the postponed costs from disk, with the ids of joined queries."""
        for path in self._spooled["costs"]:
            yield rename_queries(pl.read_parquet(path), joined)

    def read_postponed(self, joined: QueryJoin) -> Iterator[pl.DataFrame]:
        """Yield the postponed rows from disk, with the ids of joined queries, whole queries at a time."""
        if not self._spooled["results"]:
            return
        rows = rename_queries(pl.scan_parquet(self._spooled["results"]), joined)
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
        if self._system is not None and not any(self._system in (name.system, name.label) for name in summary.systems):
            labels = [repr(name.label) for name in list(summary.systems)[:10] if name.label]
            known = ", ".join(labels) or "none that has a name"
            raise InputError(f"the traces hold no system {self._system!r}, only {known}")

    def give_notices(self, *, deduplicated: bool) -> None:
        """Give the notices about the outputs."""
        if self.deduplicated:
            notice(
                f"the results of {self.deduplicated} queries lack ids: their documents were told apart by deduplication; "
                "--dedup none (deduplicate=None) uses their URLs as they are"
            )
        warn_of_escaped_ids(self._escaped, self._out)


def _make_safe(name: str) -> str:
    """Return a name as part of the name of a file; a system's name may hold anything."""
    safe = "".join(sign if sign.isalnum() or sign in "-_.+" else "_" for sign in name)[:_MAX_NAME]
    return safe if safe.strip(".") else "_" * len(safe)  # . and .. are folders
