"""Reads files of traces batch by batch: opens each log, finds its format, and makes rows of results from its traces."""

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import chain
from operator import attrgetter
from typing import Any, Generic, NamedTuple, TypeVar

import polars as pl
from msgspec.structs import astuple

from goodgain.errors import InputError
from goodgain.files.escaping import check_name
from goodgain.files.opening import check_fork
from goodgain.logs.traces.expected_values import format_place
from goodgain.logs.traces.formats import Format, detect_format, get_format, is_claimed
from goodgain.logs.traces.input.logs_and_archives import Log, find_logs
from goodgain.logs.traces.input.sources import Source
from goodgain.logs.traces.model import Result, Trace
from goodgain.logs.traces.reading import queries_and_costs, query_ids, trace_files_and_tasks
from goodgain.logs.traces.reading.advice import make_source
from goodgain.logs.traces.reading.queries_and_costs import NotUnderstoodError, Query, UnrecordedError
from goodgain.logs.traces.reading.query_ids import NamedQuery, QueryNames
from goodgain.logs.traces.reading.read_options import ReadOptions
from goodgain.logs.traces.reading.refusals import (
    describe_unclaimed,
    explain_failed_claim,
    explain_not_understood,
    explain_unrecorded,
)
from goodgain.logs.traces.reading.trace_files_and_tasks import Paths, TraceFile
from goodgain.logs.traces.reading_summary import RunName, Summary
from goodgain.logs.traces.tools import check_tools_called, find_unused_tools
from goodgain.options import spell
from goodgain.schema import COMPLETED, COSTS, RESULTS

Value = TypeVar("Value")
#: Called with the bytes read so far and the bytes in all.
Progress = Callable[[int, int], None]

#: A batch ends at one of these limits, which keep its rows and their texts small in memory.
_ROWS_A_BATCH, _BYTES_A_BATCH = 50_000, 32 << 20

RESULTS_SCHEMA = RESULTS.polars
_OF_QUERY = dict.fromkeys(("query_id", "system", "replicate"), pl.String)
#: The tables beside the results. In costs, iteration 0 is the final answer. Only logs of spans have trace ids.
_TABLES: dict[str, dict[str, Any]] = {
    "costs": dict(COSTS.polars),
    "queries": _OF_QUERY | {"text": pl.String},
    "traces": _OF_QUERY | {"trace_id": pl.String},
    "outcomes": _OF_QUERY | {"outcome": pl.String, "value": pl.Float64},
    # One row per mention, and one row of kind `query`. The place is null for a document that no search returned.
    "uses": _OF_QUERY
    | {"kind": pl.String, "opened_at": pl.Int64, "name": pl.String}
    | dict.fromkeys(("iteration", "search", "rank"), pl.Int64)
    | dict.fromkeys(("failed", "answered", "can_open"), pl.Boolean),
}

_OF_RESULTS = ("rank", "doc_id", "type", "url", "title", "snippet", "score", "ids", "fields")
_OF_SEARCHES = tuple(name for name in RESULTS_SCHEMA if name not in _OF_RESULTS)
#: The row of a search without results, or of a query without a search.
_NO_RESULT = (Result(0),)


class ResultRows:
    """Collects rows of the results frame and of other tables, query by query."""

    def __init__(self) -> None:
        self._results: list[Result] = []
        self._counts: list[int] = []
        self.tables: dict[str, list[tuple[Any, ...]]] = {name: [] for name in _TABLES}
        self._searches: list[tuple[Any, ...]] = []  # in the order of _OF_SEARCHES

    def __len__(self) -> int:
        return len(self._results)

    def add(self, query: Query, *of: str | None) -> None:
        """Add the rows of a query. `of` holds the query id, the system and the replicate."""
        turn = query.turn.index
        self.tables["queries"].append((*of, query.turn.user_text))
        if query.turn.trace_id is not None:
            self.tables["traces"].append((*of, query.turn.trace_id))
        for iteration, searches in enumerate(query.iterations, start=1):
            for number, search in enumerate(searches, start=1):
                found = search.results or _NO_RESULT
                self._searches.append((*of, turn, iteration, number, search.call_id, search, search, search.status))
                self._counts.append(len(found))
                self._results += found
        if not query.iterations:  # a query that never searched has one row with iteration 0
            status = "unrecorded" if query.left_out else None
            self._searches.append((*of, turn, 0, 0, None, None, None, status))
            self._counts.append(1)
            self._results += _NO_RESULT

        for place, usage in enumerate(query.spent, start=1):
            iteration = place if place < len(query.spent) else 0
            values = astuple(usage)
            if iteration or not query.iterations or values.count(None) < len(values):
                calls = len(query.iterations[iteration - 1]) if iteration else 0
                self.tables["costs"].append((*of, iteration, calls, *values))

        if query.uses is not None:
            answered, can_open, no_place = query.uses.answered, query.uses.can_open, (None, None, None)
            self.tables["uses"].append((*of, "query", None, None, *no_place, None, answered, can_open))
            self.tables["uses"] += [
                (*of, one.kind, one.iteration, one.name, *(one.place or no_place), one.failed, None, None)
                for one in query.uses.mentions
            ]

    def to_frames(self, tables: Sequence[str]) -> list[pl.DataFrame]:
        return [self.to_frame(), *map(self.to_table, tables)]

    def to_frame(self, names: Sequence[str] = tuple(RESULTS_SCHEMA)) -> pl.DataFrame:
        columns = dict(zip(_OF_SEARCHES, zip(*self._searches, strict=True), strict=True)) if self._searches else {}
        # The arguments of calls are parsed only here, on demand.
        if columns and ("search_query" in names or "arguments" in names):
            texts = [(None, None) if search is None else search.describe() for search in columns["arguments"]]
            columns["search_query"], columns["arguments"] = zip(*texts, strict=True)
        of_searches = [name for name in _OF_SEARCHES if name in names]
        searches = pl.DataFrame([pl.Series(name, columns.get(name, ()), RESULTS_SCHEMA[name]) for name in of_searches])
        counts = pl.Series(self._counts, dtype=pl.UInt32)
        rows = pl.select(pl.int_range(len(counts), dtype=pl.UInt32).repeat_by(counts).explode()).to_series()
        found = [_make_column(name, self._results) for name in _OF_RESULTS if name in names]
        whole = (searches[rows] if self._counts else searches).hstack(found)
        return whole.select(names)

    def to_table(self, name: str) -> pl.DataFrame:
        """Return the additional table called `name`, such as `queries`. `costs` and `uses` are empty if they were not read."""
        return pl.DataFrame(self.tables[name], schema=_TABLES[name], orient="row")


class TraceBatch(NamedTuple, Generic[Value]):
    """A batch of whole traces: the value made from its rows, the number of bytes read, the queries, and the counts."""

    value: Value
    size: int
    names: list[NamedQuery]
    summary: Summary


def read_batches(
    paths: Paths, options: ReadOptions, finish: Callable[[ResultRows], Value], summary: Summary, names: QueryNames, *,
    jobs: int = 1, progress: Progress | None = None,
) -> Generator[Value]:  # fmt: skip
    """Yield `finish(rows)` for each batch of whole traces, in file order. Add counts to `summary`, and the queries to `names`."""
    check_fork()
    if not isinstance(jobs, int) or jobs < 1:
        raise InputError(f"{spell('jobs', jobs)}: give the number of processes, 1 or more")
    files = trace_files_and_tasks.find_trace_files(paths)
    if options.tag is not None:
        check_name(options.tag, "system")
        if isinstance(paths, Mapping):
            given = spell("tag", options.tag)
            raise InputError(f"{given}: the paths already name the systems; leave out {spell('tag')}")
    done, total = 0, sum(file.size for file in files)
    summary.files = len(files)
    summary.choices = options.choices
    # One process reads all logs of a query.
    tasks = iter([files]) if options.ids_of_several_logs else trace_files_and_tasks.plan_tasks(files)
    read = partial(_read_task, options=options, finish=finish)  # in the process that calls it
    by_task = map(read, tasks) if jobs == 1 else trace_files_and_tasks.map_in_processes(read, tasks, jobs)
    for batch in chain.from_iterable(by_task):
        for query in batch.names:
            names.add(query)
        summary.add(batch.summary)
        done += batch.size
        if progress is not None:
            progress(done, total)
        yield batch.value
    if summary.blank and summary.blank == sum(summary.searches.values()):
        raise UnrecordedError(
            f"{summary.firsts['blank']}: the log has an empty text in place of the results of every search ({summary.blank}); "
            f"write a log that has the results, or pass {spell('unrecorded', 'empty')} to count each search as one with no results"
        )
    check_tools_called(options.tool_rule, summary.called_tools)
    summary.unused_tools = find_unused_tools(options.tool_rule, summary.called_tools)
    names.join(options, summary)


def read_log(log: Log, options: ReadOptions) -> ResultRows:
    """Return the rows of an opened log, such as one in memory."""
    summary, rows = Summary(), ResultRows()
    for trace, trace_format, source in _read_log(log, options, summary):
        _add_trace(trace, trace_format, None, source.name, options, rows, summary)
    check_tools_called(options.tool_rule, summary.called_tools)
    return rows


def _read_task(
    files: list[TraceFile], options: ReadOptions, finish: Callable[[ResultRows], Value]
) -> Iterator[TraceBatch[Value]]:
    summary, rows, size = Summary(), ResultRows(), 0
    names: list[NamedQuery] = []
    of_query: dict[tuple[str | None, RunName], list[tuple[Trace, Format, str | None, str]]] = {}
    for file in files:
        begun = 0
        for trace, trace_format, source, read in _read_file(file, options, summary):
            name = source.name
            shared = options.ids_of_several_logs and query_ids.find_id_of_log(trace, options.query_ids or {}, name)
            if shared and shared in options.ids_of_several_logs:
                run = query_ids.name_run(trace, file.system, options)
                of_query.setdefault((shared, run), []).append((trace, trace_format, file.system, name))
                continue
            with _skip_errors(options, summary, trace.query_id or query_ids.name_log(trace, name)):
                try:
                    names += _add_trace(trace, trace_format, file.system, name, options, rows, summary)
                except UnrecordedError as error:
                    raise explain_unrecorded(error, source, trace, trace_format.name, options) from None
                except NotUnderstoodError as error:
                    if options.errors == "skip":
                        raise
                    raise explain_not_understood(error, source, options) from None
            if len(rows) >= _ROWS_A_BATCH or read - begun >= _BYTES_A_BATCH:
                # The bytes read from a compressed file may exceed its size.
                size += min(read, file.size) - min(begun, file.size)
                yield TraceBatch(finish(rows), size, names, summary.pop_counts())
                rows, names, size, begun = ResultRows(), [], 0, read
        size += max(file.size - begun, 0)
    for (query_id, _), logs in of_query.items():
        traces, (_, trace_format, system, name) = [trace for trace, *_ in logs], logs[0]
        with _skip_errors(options, summary, query_id):
            is_joined = len(traces) > 1
            trace = queries_and_costs.join_logs(traces, options) if is_joined else traces[0]
            names += _add_trace(trace, trace_format, system, name, options, rows, summary)
            summary.joined_logs += len(traces) * is_joined
            summary.queries_of_logs += is_joined
    yield TraceBatch(finish(rows), size, names, summary.pop_counts())


def _add_trace(
    trace: Trace, trace_format: Format, system: str | None, name: str, options: ReadOptions, rows: ResultRows,
    summary: Summary,
) -> list[NamedQuery]:  # fmt: skip
    """Add a trace to `rows` and `summary`, and return its queries with ids. `system` takes precedence over the name in the log."""
    # A trace that is left out must not change the counts.
    counted = Summary() if options.errors == "skip" else summary
    before, idle_before = sum(counted.searches.values()), counted.without_search
    iteration = options.iteration or trace.iteration or trace_format.iteration
    queries = queries_and_costs.read_queries(trace, options, iteration, counted)
    run = query_ids.name_run(trace, system, options)
    named = query_ids.name_queries(trace, queries, run, options, name)
    counted.formats[trace_format.name] += 1
    searches = sum(counted.searches.values()) - before
    if searches and options.iteration is None and iteration == "call":
        counted.calls_as_iterations[trace_format.name] += searches
    counted.systems[run] += len(queries)
    if model := " + ".join(trace.models) or trace.tag:
        counted.models[run.label, model] += len(queries)
    if idle := counted.without_search - idle_before:
        counted.idle[run] += idle
    if counted is not summary:
        summary.add(counted)
    for query, of in zip(queries, named, strict=True):
        rows.add(query, of.query_id, *run)
    if named:
        *earlier, last = named
        rows.tables["outcomes"] += [(query.query_id, *run, COMPLETED, 1.0) for query in earlier]
        # The outcomes of a conversation belong to its last turn.
        outcomes = {**queries_and_costs.read_outcomes(trace)}
        completed = outcomes.pop(COMPLETED, 1.0)
        rows.tables["outcomes"] += [(last.query_id, *run, *outcome) for outcome in outcomes.items()]
        rows.tables["outcomes"].append((last.query_id, *run, COMPLETED, completed))
        if completed == 0:
            summary.count("broken_off", format_place(trace.at))
    return named


@contextmanager
def _skip_errors(options: ReadOptions, summary: Summary, query_id: str | None = None) -> Iterator[None]:
    try:
        yield
    except InputError as error:
        if options.errors != "skip" or isinstance(error, UnrecordedError):
            raise
        summary.count_error(error, query_id)


def _read_file(file: TraceFile, options: ReadOptions, summary: Summary) -> Iterator[tuple[Trace, Format, Source, int]]:
    begun = read = 0
    with _skip_errors(options, summary):
        for open_log in find_logs(file.path, partial(is_claimed, options.format)):
            with _skip_errors(options, summary):
                for trace, trace_format, source in _read_log(open_log(), options, summary):
                    read = begun + source.bytes_read
                    yield trace, trace_format, source, read
            begun = read


def _read_log(log: Log, options: ReadOptions, summary: Summary) -> Iterator[tuple[Trace, Format, Source]]:
    errors = summary.errors
    trace_format = detect_format(log.path, log.head) if options.format == "auto" else get_format(options.format)
    if trace_format is None:
        raise InputError(describe_unclaimed(log, options))
    source = make_source(log, options, summary)
    if not log.ends:
        source.not_understood("stream without its end", f"{log.path}, at its end", "the event that ends an answer")
    is_empty = True
    try:
        for trace in trace_format.read(source):
            is_empty = False
            trace.unknown += source.take_unknown()
            yield trace, trace_format, source
    except InputError as error:
        if not is_empty or options.format != "auto":
            raise
        raise explain_failed_claim(error, log, trace_format.name, options) from None
    queries_and_costs.count_unknown(source.take_unknown(), options, summary)  # items after the last trace
    if is_empty and summary.errors == errors:
        raise InputError(
            f"{log.path}: holds no trace that {trace_format.name} can read; give another format with {spell('format')}, or write "
            "the searches in the format jsonl (docs/traces/your_own_agent.md)"
        )


def _make_column(name: str, results: list[Result]) -> pl.Series:
    values = list(map(attrgetter(name), results))
    if name in ("ids", "fields"):
        if not any(values):  # as in most logs
            return pl.repeat(None, len(values), dtype=RESULTS_SCHEMA[name], eager=True).alias(name)
        values = [[{"name": key, "value": value} for key, value in pairs] or None for pairs in values]
    return pl.Series(name, values, dtype=RESULTS_SCHEMA[name])
