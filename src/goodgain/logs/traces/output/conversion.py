"""Converts traces to runs: all of `goodgain convert` except its printing.

Traces are read file by file and written batch by batch: memory does not grow with them. A query of one system is within
one trace. With an output for each system, a query's results come from several traces and are deduplicated together: its
rows are kept on disk until all traces are read.
"""

import os
from collections.abc import Iterable
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from goodgain.errors import InputError
from goodgain.files.table_reading import check_results_name, read_results
from goodgain.files.writing import Outputs, atomic_write
from goodgain.logs.dedup.said_pairs import Pairs, read_pairs
from goodgain.logs.traces.output.results_to_run import NormaliseUrl
from goodgain.logs.traces.output.run_batches import PLACEHOLDER, BatchConverter, Deduplicate, OutputFiles, OutputWriter
from goodgain.logs.traces.reading.query_ids import (
    QueryNames,
    Question,
    read_earlier_queries,
    read_query_ids,
    read_repeats,
)
from goodgain.logs.traces.reading.read_options import ReadOptions
from goodgain.logs.traces.reading.trace_files_and_tasks import Paths, find_trace_files
from goodgain.logs.traces.reading.trace_reading import Progress, read_batches
from goodgain.logs.traces.reading_summary import Summary
from goodgain.options import spell


class Conversion(NamedTuple):
    """The outputs of a conversion, and the counts of its input.

    Attributes:
        runs: the run of each system, by the system's name.
        results: the file of the results, if one was asked for.
        rows: rows written to runs.
        deduplicated: the number of queries whose documents deduplication found: results lack ids, an id stands for several
            documents, or all queries were deduplicated.
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
    costs: str | os.PathLike[str] | None = None,
    queries: str | os.PathLike[str] | None = None,
    outcomes: str | os.PathLike[str] | None = None,
    uses: str | os.PathLike[str] | None = None,
    system: str | None = None,
    deduplicate: Deduplicate | None = None,
    deduplicate_all: bool = False,
    earlier: str | os.PathLike[str] | Iterable[str | os.PathLike[str]] = (),
    earlier_queries: Any = None,
    same: Pairs | None = None,
    different: Pairs | None = None,
    query_ids: Any = None,
    normalise_url: NormaliseUrl | None = None,
    jobs: int = 1,
    progress: Progress | None = None,
    **options: Any,
) -> Conversion:  # fmt: skip
    """Convert traces to a run, or to one run for each system.

    Args:
        paths: as for `read_traces`, as are `jobs` and all further options. With the logs of several systems, their
            results are deduplicated together: a document has one doc_id in all runs.
        output: the run's file: TREC text, .jsonl or .parquet, also .gz and .zst. With `{system}` in its name, each
            system gets a file, and each of several runs of a system (replicates) a file `<system>.<replicate>`.
        results: a .jsonl or .parquet file for the results, with the document of each.
        costs: a .jsonl or .parquet file for the recorded costs of each iteration.
        queries: a .jsonl or .parquet file for query_id and text, the user's question: `label` takes it.
        outcomes: a .jsonl or .parquet file for query_id, system, replicate, and a column for each recorded score, reward or
            feedback: `compare(..., outcomes=)` takes it. Its systems have the names of the runs.
        uses: a .jsonl or .parquet file for the documents that were returned, opened and cited: `funnel` takes it.
        system: the one system to convert, if the traces hold several; `agent-2` is the second run of `agent`.
        deduplicate: finds the documents of queries whose results lack ids, or in which an id stands for different documents.
            None: documents are known by id, else by normalised URL, else by text.
        deduplicate_all: deduplicate the other queries too, although their results have ids.
        earlier: files of results that earlier conversions wrote. A result that matches an earlier result gets the document
            of that result. `deduplicate` is called with the earlier rows as `earlier=`.
        earlier_queries: the file that `queries` of an earlier conversion wrote, or a frame. A query with an earlier
            question gets the earlier id. Without this table, queries are joined to those of `earlier` by id only.
        same, different: as for `goodgain.deduplicate`. Where all results have ids, only these pairs change the documents.
        query_ids: as for `read_traces`.
        normalise_url: how URLs become ids without deduplication; None: as in deduplication.
        progress: is called with the bytes read so far and in all.

    With errors='skip', the file `<output>.unread` gets the ids of queries that could not be read, one a line, where they
    are known. With `{system}` in the name of the output, `all` replaces it.

    Raises:
        InputError: as in `read_traces`; there are several systems and one output; an output is one of the traces or
            another output; no trace could be read; or a file cannot be written. No new file remains, and existing ones
            are unchanged.

    >>> import json, pathlib, tempfile
    >>> import goodgain as gg
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> steps = [{"searches": [{"query": "what is bm25", "results": [{"doc_id": "d1"}]}]}]
    >>> _ = (folder / "log.jsonl").write_text(json.dumps({"goodgain_trace": 1, "query_id": "q", "steps": steps}))
    >>> summary = gg.convert_traces(folder / "log.jsonl", folder / "agent.run")
    >>> print((folder / "agent.run").read_text(), end="")
    q 1 d1 1 1.0 goodgain
    """
    asked = {"costs": costs, "queries": queries, "outcomes": outcomes, "uses": uses}
    tables = {name: Path(path) for name, path in asked.items() if path is not None}
    files = OutputFiles(Path(output), None if results is None else Path(results), tables)
    known = [Path(earlier)] if isinstance(earlier, (str, os.PathLike)) else list(map(Path, earlier))
    if known and deduplicate is None:
        raise InputError(f"earlier results are joined by deduplication; give {spell('deduplicate')}")
    asked_pairs = {"same": same, "different": different}
    said = {option: read_pairs(pairs, option) for option, pairs in asked_pairs.items() if pairs is not None}
    if said and deduplicate is None:
        both = f"{spell('same')} and {spell('different')}"
        raise InputError(f"{both} are applied by deduplication; give {spell('deduplicate')}")
    table = None if query_ids is None else read_query_ids(query_ids)
    read = ReadOptions(**options, query_ids=table, costs=costs is not None, uses=uses is not None)
    inputs = [Path(one) for one in (earlier_queries, query_ids, same, different) if isinstance(one, (str, os.PathLike))]
    # Queries of several runs, and so their results, can be matched only when all traces are read.
    # The names in pairs that no result has are known only then, too.
    postpone = not files.is_one_run or system is not None or bool(known or said) or earlier_queries is not None
    asked_before = {} if earlier_queries is None else read_earlier_queries(earlier_queries)
    at = str(earlier_queries) if isinstance(earlier_queries, (str, os.PathLike)) else "the earlier queries"

    def convert(read: ReadOptions) -> tuple[OutputWriter, Summary]:
        outputs, before = _check_outputs(paths, files, [*known, *inputs]), _read_earlier(known)
        converter = BatchConverter(deduplicate, deduplicate_all, normalise_url, files, system, postpone, before, said)
        # The queries of earlier conversions: those from results have only ids, those from `queries` questions too.
        earlier_ids = () if before is None else before["query_id"].drop_nulls().unique().sort().to_list()
        names = QueryNames(dict.fromkeys(earlier_ids, Question()) | asked_before, at)
        summary = Summary(earlier_by_id=bool(known) and earlier_queries is None)
        with ExitStack() as stack:
            writer = OutputWriter(stack, files, system, outputs)
            # Other processes do not get the earlier results, which may be large. `closing` ends the processes before files
            # are removed, even after an error.
            first = replace(converter, earlier=None)
            with closing(read_batches(paths, read, first, summary, names, jobs=jobs, progress=progress)) as batches:
                for batch in batches:
                    writer.add(batch, summary)
            for rows, mentions in writer.read_postponed(names.new_ids):
                writer.add(converter.convert_rows(rows, mentions), summary)
            if summary.errors and not summary.traces:
                raise InputError(f"nothing could be read. {summary.describe_errors()}")
            if read.errors == "skip":
                _write_lost_ids(files, summary, outputs, stack)
            writer.finish(names.new_ids, summary, opens_named=read.opens_named)
        return writer, summary

    writer, summary = read_repeats(convert, read)
    summary.give_notices()
    writer.give_notices(deduplication_asked=deduplicate_all)
    for pairs in said.values():
        pairs.give_notice()
    return Conversion(writer.runs, files.results, writer.rows, writer.deduplicated, summary)


def _write_lost_ids(files: OutputFiles, summary: Summary, outputs: Outputs, stack: ExitStack) -> None:
    """Write the ids of queries that could not be read, one a line. Without such ids, only replace an earlier file."""
    path = files.run.with_name(f"{files.run.name.replace(PLACEHOLDER, 'all')}.unread")
    if summary.lost_ids or path.is_file():
        outputs.add(path)
        stack.enter_context(atomic_write(path)).write("".join(f"{one}\n" for one in summary.lost_ids).encode())


def _read_earlier(files: list[Path]) -> pl.DataFrame | None:
    frames = []
    for file in files:
        frame = read_results(file)
        if "document" not in frame.columns:
            raise InputError(
                f"{file}: its results have no documents; convert their logs again with {spell('results')}, which "
                "writes them, or deduplicate the file (goodgain dedup)"
            )
        frames.append(frame.filter(pl.col("document").is_not_null()))
    return pl.concat(frames, how="diagonal_relaxed") if frames else None


def _check_outputs(paths: Paths, files: OutputFiles, known: list[Path]) -> Outputs:
    """Check the outputs whose names are known now. With `{system}`, a run is checked when its system appears."""
    outputs = Outputs([*(file.path for file in find_trace_files(paths)), *known])
    for path in (files.run, *files.known):
        if path is not files.run:
            check_results_name(path)
        if path.is_dir():
            raise InputError(f"{path}: is a directory; name the file to write")
    for path in files.known:
        outputs.add(path)
    return outputs
