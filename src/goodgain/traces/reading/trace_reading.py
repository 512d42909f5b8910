"""Reads files of traces: opens each log, finds its format, and makes rows of results from its traces, batch by batch."""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from itertools import chain
from typing import Any, Generic, Literal, NamedTuple, TypeVar, overload

import polars as pl

from goodgain.errors import InputError
from goodgain.files.escaping import check_name
from goodgain.files.opening import check_fork
from goodgain.traces.expected_values import format_place
from goodgain.traces.input.logs_and_archives import Log, find_logs
from goodgain.traces.input.sources import Source
from goodgain.traces.model import Trace
from goodgain.traces.reading.known_formats import Format, detect_format, get_format, is_claimed
from goodgain.traces.reading.queries_and_costs import UnrecordedError, check_blank, make_strict_error, read_queries
from goodgain.traces.reading.query_ids import (
    NamedQuery,
    QueryNames,
    name_queries,
    name_run,
    read_query_ids,
    rename_queries,
)
from goodgain.traces.reading.read_options import QueryId, ReadOptions
from goodgain.traces.reading.results_table import ResultRows
from goodgain.traces.reading.trace_files_and_tasks import (
    Paths,
    TraceFile,
    find_trace_files,
    map_in_processes,
    plan_tasks,
)
from goodgain.traces.reading_summary import Summary
from goodgain.traces.recorded_outcomes import find_outcomes
from goodgain.traces.tool_outputs.readers import Parse
from goodgain.traces.tools import ToolPredicate, check_tools_called

Value = TypeVar("Value")
#: Called with the bytes read so far and the bytes in all.
Progress = Callable[[int, int], None]

#: A batch ends at one of these limits, which keep its rows and their texts small in memory.
_ROWS_A_BATCH, _BYTES_A_BATCH = 50_000, 32 << 20


class TraceBatch(NamedTuple, Generic[Value]):
    """The value made from some whole traces, with their size in bytes, their queries, and their counts."""

    value: Value
    size: int
    names: list[NamedQuery]
    summary: Summary


@overload
def read_traces(paths: Paths, *, costs: Literal[True], **options: Any) -> tuple[pl.DataFrame, pl.DataFrame]: ...


@overload
def read_traces(paths: Paths, *, costs: Literal[False] = ..., **options: Any) -> pl.DataFrame: ...


def read_traces(  # type: ignore[misc]  # overloads would repeat all options
    paths: Paths, *,
    format: str = "auto",  # noqa: A002  # the usual name for it
    turns: Literal["last", "searching", "all"] = "last",
    iteration: Literal["step", "call"] | None = None,
    tools: ToolPredicate | Collection[str] | str | None = None,
    parse: Parse | None = None,
    query_id: QueryId | None = None,
    query_ids: Any = None,
    citations: bool = False,
    unrecorded: Literal["raise", "empty", "skip"] = "raise",
    errors: Literal["raise", "skip"] = "raise",
    reranked: bool = False,
    strict: bool = False,
    tag: str | None = None,
    costs: bool = False,
    jobs: int = 1,
    report: Callable[[Summary], object] | None = None,
) -> pl.DataFrame | tuple[pl.DataFrame, pl.DataFrame]:  # fmt: skip
    """Read the results of every search in agents' traces, one row per result.

    Args:
        paths: a file, a directory, or several; JSON, JSON Lines, text, Inspect's .eval, also as .gz and .zst. A mapping
            has those of each system: `{"old": "old.jsonl", "new": ["a.json", "b.json"]}`. Queries of several systems with
            one question are one query, under the id of the first system, unless a system was asked it twice.
        format: the name of a format, or auto: recognised by the beginning of each file.
        turns: last: the last turn of a trace is the query; searching: its last turn that searched; all: each turn is a
            query, named `<query_id>_<turn>`.
        iteration: step: calls of a step are one iteration; call: each call is one; None: the best that the format records.
        tools: which tools are searches: names, or a function of a name; None: by a table of known names, else by the words
            search or retrieve in a name.
        parse: reads a tool's output before our readers: output -> results (objects), or None to leave it to them.
        query_id: for traces without an id: a constant, a field path, or a function of the trace; None: the file's name.
        query_ids: a table of ids that take precedence, a path or a frame: query_id and text (the question), or query_id
            and log (the id, file name or session of the log).
        citations: count the citations of an answer as the results of a search without recorded results.
        unrecorded: searches whose results the log lacks: raise, empty (no results), skip (leave the iteration out).
        errors: raise, or skip (leave out traces that cannot be read, and report them in a notice).
        reranked: a reranker's list replaces its retriever's.
        strict: items that are not understood are an error even in a trace with searches, instead of a notice.
        tag: the name of the system, if `paths` names none; None: the name in the log.
        costs: return the recorded costs of each iteration too.
        jobs: how many processes read in parallel. With more than one, the calling script needs
            `if __name__ == "__main__":`, and functions must be importable.
        report: called with the `Summary` of the reading; for example `print`.

    Returns:
        A frame with the columns of `goodgain.schema.RESULTS`. A search without results is one row without doc_id and
        with rank 0; a query that never searched is one row with iteration 0. With `costs=True`, this frame and one with
        the columns of `goodgain.schema.COSTS`: the tokens, seconds and money that each iteration adds, null if the log
        lacks them; iteration 0 is spending after the last search.

    Raises:
        InputError: a file cannot be read in its format, results cannot be read or are not in the log, a query has no
            search and something in its trace is not understood, two traces share an id, or one id has two questions in
            two systems. It names the file and the place in it.

    Example:
        >>> import json, pathlib, tempfile
        >>> call = {"id": "c1", "type": "function", "function": {"name": "search", "arguments": '{"query": "bm25"}'}}
        >>> chat = [
        ...     {"role": "user", "content": "What is BM25?"},
        ...     {"role": "assistant", "tool_calls": [call]},
        ...     {"role": "tool", "tool_call_id": "c1", "content": '[{"docid": "d1", "snippet": "A ranking one."}]'},
        ... ]
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "q1.json"
        >>> _ = path.write_text(json.dumps(chat))
        >>> read_traces(path).select("query_id", "iteration", "rank", "doc_id").rows()
        [('q1', 1, 1, 'd1')]
    """
    options = ReadOptions(
        format=format, turns=turns, iteration=iteration, tools=tools, parse=parse, query_id=query_id,
        query_ids=None if query_ids is None else read_query_ids(query_ids),
        citations=citations, unrecorded=unrecorded, errors=errors, reranked=reranked, strict=strict, tag=tag, costs=costs,
    )  # fmt: skip
    summary, names = Summary(), QueryNames()
    frames = list(read_batches(paths, options, _to_frames, summary, names, jobs=jobs))
    new_ids = names.join(options, summary)
    check_tools_called(tools, summary.called_tools)
    summary.give_notices()
    if report is not None:
        report(summary)
    results = rename_queries(pl.concat([found for found, _ in frames]), new_ids)
    return (results, rename_queries(pl.concat([spent for _, spent in frames]), new_ids)) if costs else results


def _to_frames(rows: ResultRows) -> tuple[pl.DataFrame, pl.DataFrame]:
    return rows.to_frame(), rows.to_table("costs")


def read_batches(
    paths: Paths, options: ReadOptions, finish: Callable[[ResultRows], Value], summary: Summary, names: QueryNames, *,
    jobs: int = 1, progress: Progress | None = None,
) -> Generator[Value]:  # fmt: skip
    """Yield `finish(rows)` for batches of whole traces, in the order of the files; add to `summary` and `names`.

    `finish` is called in the process that read the rows.

    Raises:
        InputError: as in `read_traces`.
    """
    check_fork()
    if not isinstance(jobs, int) or jobs < 1:
        raise InputError(f"jobs={jobs!r}: give the number of processes, 1 or more")
    files = find_trace_files(paths)
    if options.tag is not None:
        check_name(options.tag, "system")
        if isinstance(paths, Mapping):
            raise InputError(f"tag={options.tag!r}: the systems are named with their files; leave out tag=")
    done, total = 0, sum(file.size for file in files)
    summary.files = len(files)
    summary.choices = options.choices
    tasks = plan_tasks(files, options.format, apart=jobs > 1)
    read = partial(_read_task, options=options, finish=finish)
    by_task = map(read, tasks) if jobs == 1 else map_in_processes(partial(_read_whole_task, read), tasks, jobs)
    for batch in chain.from_iterable(by_task):
        for query in batch.names:
            names.add(query)
        summary.add(batch.summary)
        done += batch.size
        if progress is not None:
            progress(done, total)
        yield batch.value
    check_blank(summary)


def _read_whole_task(
    read: Callable[[list[TraceFile]], Iterator[TraceBatch[Value]]], task: list[TraceFile]
) -> list[TraceBatch[Value]]:
    return list(read(task))


def _read_task(
    files: list[TraceFile], options: ReadOptions, finish: Callable[[ResultRows], Value]
) -> Iterator[TraceBatch[Value]]:
    summary, rows, size = Summary(), ResultRows(), 0
    names: list[NamedQuery] = []
    for file in files:
        begun = 0
        for trace, trace_format, name, read in _read_file(file, options, summary):
            with _skip_errors(options, summary):
                names += _add_trace(trace, trace_format, file.system, name, options, rows, summary)
            if len(rows) >= _ROWS_A_BATCH or read - begun >= _BYTES_A_BATCH:
                # More bytes are read from a compressed file than it has.
                size += min(read, file.size) - min(begun, file.size)
                yield TraceBatch(finish(rows), size, names, summary.pop_counts())
                rows, names, size, begun = ResultRows(), [], 0, read
        size += max(file.size - begun, 0)
    yield TraceBatch(finish(rows), size, names, summary.pop_counts())


def _add_trace(
    trace: Trace, trace_format: Format, system: str | None, name: str, options: ReadOptions, rows: ResultRows,
    summary: Summary,
) -> list[NamedQuery]:  # fmt: skip
    """Add a trace to the rows and counts, and return its queries.

    `name` is the log's; `system` comes before the one that the log names.
    """
    # A trace that is left out must not change the counts.
    counted = Summary() if options.errors == "skip" else summary
    before, idle_before = sum(counted.searches.values()), counted.without_search
    queries = read_queries(trace, options, options.iteration or trace_format.iteration, counted)
    run = name_run(trace, system, options)
    named = name_queries(trace, queries, run, options, name)
    counted.formats[trace_format.name] += 1
    searches = sum(counted.searches.values()) - before
    if searches and options.iteration is None and trace_format.iteration == "call":
        counted.calls_as_iterations[trace_format.name] += searches
    counted.systems[run] += len(queries)
    if idle := counted.without_search - idle_before:
        counted.idle[run] += idle
    if counted is not summary:
        summary.add(counted)
    for query, of in zip(queries, named, strict=True):
        rows.add(query, of.query_id, *run)
    if named:  # what a log says of a conversation is about its last turn
        outcomes = find_outcomes(trace.record) if trace.outcomes is None else trace.outcomes
        rows.add_outcomes(outcomes, named[-1].query_id, *run)
    return named


@contextmanager
def _skip_errors(options: ReadOptions, summary: Summary) -> Iterator[None]:
    """With errors='skip', count an error raised inside instead of raising it."""
    try:
        yield
    except InputError as error:
        if options.errors != "skip" or isinstance(error, UnrecordedError):
            raise
        summary.count_error(error)


def _read_file(file: TraceFile, options: ReadOptions, summary: Summary) -> Iterator[tuple[Trace, Format, str, int]]:
    """Yield the traces of a file, each with its format, its log's name, and the bytes read so far."""
    begun = read = 0
    with _skip_errors(options, summary):
        for open_log in find_logs(file.path, partial(is_claimed, options.format)):
            with _skip_errors(options, summary):
                for trace, trace_format, source in _read_log(open_log(), file, options, summary):
                    read = begun + source.bytes_read
                    yield trace, trace_format, source.name, read
            begun = read


def _read_log(
    log: Log, file: TraceFile, options: ReadOptions, summary: Summary
) -> Iterator[tuple[Trace, Format, Source]]:
    errors = summary.errors
    chosen = file.format if options.format == "auto" else options.format
    trace_format = detect_format(log.path, log.head) if chosen == "auto" else get_format(chosen)
    source = Source(
        log.path, log.head, summary, log.open, options.citations, options.reranked, options.costs,
        skip=options.errors == "skip", is_search=options.is_search_tool, span=file.span, line=file.first_line,
        number=file.first_number,
    )  # fmt: skip
    if not log.ends:
        source.not_understood("stream without its end", f"{log.path}, at its end", "the event that ends an answer")
    is_empty = True
    for trace in trace_format.read(source):
        is_empty = False
        trace.unknown += source.take_unknown()
        yield trace, trace_format, source
    for unknown in source.take_unknown():  # items after the last trace
        if options.strict:
            raise make_strict_error(unknown)
        summary.count_unknown(unknown.what, format_place(unknown.at))
    if is_empty and summary.errors == errors and file.span is None:
        raise InputError(
            f"{log.path}: holds no trace that {trace_format.name} can read; give another format with format="
        )
