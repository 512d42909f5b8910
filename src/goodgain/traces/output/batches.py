"""Converts batches of results: finds the documents of queries that need it, and encodes runs, results and costs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from goodgain.errors import InputError
from goodgain.files.frames import EncodedRows, encode_rows
from goodgain.files.results import read_results
from goodgain.schema import EMPTY_DOC
from goodgain.traces.output.runs import NormaliseUrl, add_documents, is_of_run, list_runs, to_run
from goodgain.traces.reading.rows import ResultRows
from goodgain.traces.summary import RunName

__all__ = ["BatchConverter", "ConvertedBatch", "Deduplicate", "read_earlier"]

#: A function of a results frame that returns its rows with a column `document`, or an object with these as `.frame`.
#: Where there are earlier results, it is called with those of the same queries as `earlier=`.
Deduplicate = Callable[..., Any]


class ConvertedBatch(NamedTuple):
    """A batch as it is written: the rows of each run, the results and costs if they are wanted, and rows for later.

    Attributes:
        runs, results, costs: encoded as their files hold them.
        queries: query_id and text, if they are wanted.
        postponed, postponed_costs: rows whose documents, or the ids of whose queries, are known only when all traces are
            read.
        deduplicated: queries whose documents were found by deduplication.
    """

    runs: list[tuple[RunName, EncodedRows]]
    results: EncodedRows | None = None
    costs: EncodedRows | None = None
    queries: pl.DataFrame | None = None
    postponed: pl.DataFrame | None = None
    postponed_costs: pl.DataFrame | None = None
    deduplicated: int = 0


@dataclass(frozen=True)
class BatchConverter:
    """Converts the rows of a batch, in the process that read them.

    Attributes:
        deduplicate: finds the documents of a query's results; None: they are named as they stand.
        deduplicate_all: also of queries whose results all have ids.
        normalise_url: how URLs become ids where nothing is deduplicated.
        run_file, results_file, costs_file: what is written; the rows are encoded as their names say.
        queries: whether the texts of queries are wanted.
        system: the one system to convert.
        postpone: return the rows as they are, because more rows of their queries may come.
        earlier: results that have their documents already.
    """

    deduplicate: Deduplicate | None
    deduplicate_all: bool
    normalise_url: NormaliseUrl | None
    run_file: Path
    results_file: Path | None
    costs_file: Path | None
    queries: bool
    system: str | None
    postpone: bool
    earlier: pl.DataFrame | None = None

    def __call__(self, rows: ResultRows) -> ConvertedBatch:
        costs = rows.costs_to_frame() if self.costs_file is not None else None
        if costs is not None and self.system is not None:
            costs = _select_system(costs, self.system)
        plain = rows.all_have_ids and not self.deduplicate_all
        frame = rows.to_frame(for_run=plain and self.results_file is None and not self.postpone)
        if self.system is not None:
            frame = _select_system(frame, self.system)
        asked = rows.queries_to_frame() if self.queries else None
        if asked is not None and self.system is not None:
            asked = _select_system(asked, self.system)
        if self.postpone:
            return ConvertedBatch([], queries=asked, postponed=frame, postponed_costs=costs)
        encoded = self.encode_costs(costs) if costs is not None else None
        return (self.write_rows(frame) if plain else self.convert_rows(frame))._replace(costs=encoded, queries=asked)

    def encode_costs(self, costs: pl.DataFrame) -> EncodedRows | None:
        """Return costs as their file holds them; None where none are wanted."""
        return None if self.costs_file is None else encode_rows(costs, self.costs_file)

    def convert_rows(self, frame: pl.DataFrame) -> ConvertedBatch:
        """Convert whole queries; those in which a result lacks an id are deduplicated first."""
        if self.deduplicate is None or frame.is_empty():
            return self.write_rows(frame)
        earlier = self._select_earlier(frame)
        lacking = pl.lit(True)
        if not self.deduplicate_all:
            lacking = (
                ((pl.col("rank") > 0) & pl.col("doc_id").replace(EMPTY_DOC, None).is_null()).any().over("query_id")
            )
            if earlier is not None:
                # Where earlier documents are not called by their doc_ids, doc_ids do not tell which of them a result is.
                renamed = earlier.filter(pl.col("document").ne_missing(pl.col("doc_id")))["query_id"].unique()
                lacking = lacking | pl.col("query_id").is_in(renamed.implode())
        in_need = frame.select(lacking.alias("lacking")).to_series()
        if not in_need.any():
            return self.write_rows(frame)
        frame = frame.with_columns(place=pl.int_range(pl.len()))
        whole = self._find_documents(frame.filter(in_need), earlier)
        rest = frame.filter(~in_need).with_columns(document="doc_id")
        both = pl.concat([whole, rest]).sort("place").drop("place")
        return self.write_rows(both)._replace(deduplicated=whole["query_id"].n_unique())

    def _select_earlier(self, frame: pl.DataFrame) -> pl.DataFrame | None:
        if self.earlier is None:
            return None
        return self.earlier.filter(pl.col("query_id").is_in(frame["query_id"].unique().implode()))

    def _find_documents(self, frame: pl.DataFrame, earlier: pl.DataFrame | None) -> pl.DataFrame:
        """Return results with the column `document` from deduplication."""
        if self.deduplicate is None:
            return frame.with_columns(document="doc_id")
        found = self.deduplicate(frame) if earlier is None else self.deduplicate(frame, earlier=earlier)
        return pl.DataFrame(getattr(found, "frame", found)).select(*frame.columns, "document")

    def write_rows(self, frame: pl.DataFrame) -> ConvertedBatch:
        """Encode the run of each system and replicate, and the results, which say the document of each row."""
        results = None
        if self.results_file is not None:
            frame = add_documents(frame, self.normalise_url)
            results = encode_rows(frame, self.results_file)
        names = list_runs(frame)
        runs = [(name, frame if len(names) == 1 else frame.filter(is_of_run(name))) for name in names]
        return ConvertedBatch(
            [(name, encode_rows(to_run(rows, normalise_url=self.normalise_url), self.run_file)) for name, rows in runs],
            results,
        )

    def without_earlier(self) -> BatchConverter:
        """Return the converter as other processes need it: without the earlier results, which may be large."""
        return replace(self, earlier=None)


def _select_system(frame: pl.DataFrame, system: str) -> pl.DataFrame:
    """Return the rows of a system, or of one of its runs, by the name that `RunName.label` gives it."""
    names = [name for name in list_runs(frame) if system in (name.system, name.label)]
    return frame.filter(pl.any_horizontal(pl.lit(False), *map(is_of_run, names)))


def read_earlier(files: list[Path]) -> pl.DataFrame | None:
    """Read the results of earlier conversions, with their documents; None if there are none.

    Raises:
        InputError: a file cannot be read, or does not say the documents of its results.
    """
    frames = []
    for file in files:
        frame = read_results(file)
        if "document" not in frame.columns:
            raise InputError(
                f"{file}: its results have no documents; convert their logs again with results= (--results), which "
                "writes them, or deduplicate the file (goodgain dedup)"
            )
        frames.append(frame.filter(pl.col("document").is_not_null()))
    return pl.concat(frames, how="diagonal_relaxed") if frames else None
