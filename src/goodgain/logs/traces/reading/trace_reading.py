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
from goodgain.logs.traces.model import Result, Trace, Usage
from goodgain.logs.traces.reading import queries_and_costs, query_ids, trace_files_and_tasks
from goodgain.logs.traces.reading.advice import make_source
from goodgain.logs.traces.reading.opened_and_cited import Uses
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
        self._results: list[Result] = []  # one per row
        self._searches: list[tuple[Any, ...]] = []  # one per search, in the order of _OF_SEARCHES
        self._counts: list[int] = []  # how many rows each search has: at least 1
        self.tables: dict[str, list[tuple[Any, ...]]] = {name: [] for name in _TABLES}

    def __len__(self) -> int:
        return len(self._results)

    def add(self, query: Query, *names: str | None) -> None:
        """Add the rows of a query. `names` holds the query id, the system and the replicate."""
        turn = query.turn.index
        self.tables["queries"].append((*names, query.turn.user_text))
        if query.turn.trace_id is not None:
            self.tables["traces"].append((*names, query.turn.trace_id))

        for iteration, searches in enumerate(query.iterations, start=1):
            for number, search in enumerate(searches, start=1):
                results = search.results or _NO_RESULT
                self._searches.append((*names, turn, iteration, number, search.call_id, search, search, search.status))
                self._counts.append(len(results))
                self._results += results
        if not query.iterations:  # a query that never searched has one row with iteration 0
            status = "unrecorded" if query.left_out else None
            self._searches.append((*names, turn, 0, 0, None, None, None, status))
            self._counts.append(1)
            self._results += _NO_RESULT

        if query.spent:
            self._add_costs(query, names)
        if query.uses is not None:
            self._add_uses(query.uses, names)

    def _add_costs(self, query: Query, names: tuple[str | None, ...]) -> None:
        """Add a row per iteration, with its number of searches, and one of iteration 0 for the answer (0 searches).

        The row of an answer without recorded costs is left out, unless it is the only one.
        """
        costs = self.tables["costs"]
        *of_iterations, of_answer = query.spent
        for iteration, usage in enumerate(of_iterations, start=1):
            calls = len(query.iterations[iteration - 1])
            costs.append((*names, iteration, calls, *astuple(usage)))
        if not query.iterations or of_answer != Usage():
            costs.append((*names, 0, 0, *astuple(of_answer)))

    def _add_uses(self, uses: Uses, names: tuple[str | None, ...]) -> None:
        """Add one row of kind `query`, which says what the log records, and one row per opened or cited document."""
        no_place = (None, None, None)
        rows = self.tables["uses"]
        rows.append((*names, "query", None, None, *no_place, None, uses.answered, uses.can_open))
        for mention in uses.mentions:
            place = mention.place or no_place
            rows.append((*names, mention.kind, mention.iteration, mention.name, *place, mention.failed, None, None))

    def to_frames(self, tables: Sequence[str]) -> list[pl.DataFrame]:
        return [self.to_frame(), *map(self.to_table, tables)]

    def to_frame(self, names: Sequence[str] = tuple(RESULTS_SCHEMA)) -> pl.DataFrame:
        """Return the columns `names` of the results frame: a row per result, and a row of rank 0 for a search without results."""
        columns: dict[str, Sequence[Any]] = dict.fromkeys(_OF_SEARCHES, ())
        if self._searches:
            columns = dict(zip(_OF_SEARCHES, zip(*self._searches, strict=True), strict=True))
        # The arguments of calls are parsed only here, on demand.
        if self._searches and ("search_query" in names or "arguments" in names):
            texts = [(None, None) if search is None else search.describe() for search in columns["arguments"]]
            columns["search_query"], columns["arguments"] = zip(*texts, strict=True)

        # one row per search
        frame = pl.DataFrame(
            [pl.Series(name, columns[name], RESULTS_SCHEMA[name]) for name in _OF_SEARCHES if name in names]
        )
        if self._counts:  # one row per result
            counts = pl.Series(self._counts, dtype=pl.UInt32)
            rows = pl.select(pl.int_range(len(counts), dtype=pl.UInt32).repeat_by(counts).explode()).to_series()
            frame = frame[rows]
        columns_of_results = [_make_column(name, self._results) for name in _OF_RESULTS if name in names]
        return frame.hstack(columns_of_results).select(names)

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
            option = spell("tag", options.tag)
            raise InputError(f"{option}: the paths already name the systems; leave out {spell('tag')}")
    summary.files = len(files)
    summary.unread_subfolders = trace_files_and_tasks.count_subfolders(files)
    summary.choices = options.choices

    # One process reads all logs of a query.
    tasks = iter([files]) if options.ids_of_several_logs else trace_files_and_tasks.plan_tasks(files)
    read = partial(_read_task, options=options, finish=finish)  # in the process that calls it
    batches_of_tasks = map(read, tasks) if jobs == 1 else trace_files_and_tasks.map_in_processes(read, tasks, jobs)

    done = 0
    total = sum(file.size for file in files)
    for batch in chain.from_iterable(batches_of_tasks):
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
    """Yield batches of the traces in some files. Logs that are one query together are kept until the end, then joined.

    A trace that cannot be read is counted with errors='skip'; otherwise the error says which options read it.
    """
    summary, rows = Summary(), ResultRows()
    size = 0  # bytes of the batch
    names: list[NamedQuery] = []
    logs_of_query: dict[tuple[str, RunName], list[tuple[Trace, Format, str | None, str]]] = {}
    for file in files:
        start = 0  # of this batch in the file
        for trace, trace_format, source, end in _read_file(file, options, summary):
            name = source.name
            if options.ids_of_several_logs:
                query_id = query_ids.find_id_of_log(trace, options.query_ids or {}, name)
                if query_id and query_id in options.ids_of_several_logs:
                    run = query_ids.name_run(trace, file.system, options)
                    logs_of_query.setdefault((query_id, run), []).append((trace, trace_format, file.system, name))
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
            if len(rows) >= _ROWS_A_BATCH or end - start >= _BYTES_A_BATCH:
                # The bytes read from a compressed file may exceed its size.
                size += min(end, file.size) - min(start, file.size)
                yield TraceBatch(finish(rows), size, names, summary.pop_counts())
                rows, names, size, start = ResultRows(), [], 0, end
        size += max(file.size - start, 0)

    for (query_id, _), logs in logs_of_query.items():
        trace, trace_format, system, name = logs[0]
        with _skip_errors(options, summary, query_id):
            is_joined = len(logs) > 1
            if is_joined:
                trace = queries_and_costs.join_logs([trace_of_log for trace_of_log, *_ in logs], options)
            names += _add_trace(trace, trace_format, system, name, options, rows, summary)
            if is_joined:
                summary.joined_logs += len(logs)
                summary.queries_of_logs += 1
    yield TraceBatch(finish(rows), size, names, summary.pop_counts())


def _add_trace(
    trace: Trace, trace_format: Format, system: str | None, name: str, options: ReadOptions, rows: ResultRows,
    summary: Summary,
) -> list[NamedQuery]:  # fmt: skip
    """Add a trace to `rows` and `summary`, and return its queries with ids. `system` takes precedence over the name in the log."""
    # A trace that is left out must not change the counts.
    counts = Summary() if options.errors == "skip" else summary
    earlier_searches, earlier_idle = sum(counts.searches.values()), counts.without_search
    iteration = options.iteration or trace.iteration or trace_format.iteration
    queries = queries_and_costs.read_queries(trace, options, iteration, counts)
    run = query_ids.name_run(trace, system, options)
    named_queries = query_ids.name_queries(trace, queries, run, options, name)

    counts.formats[trace_format.name] += 1
    searches = sum(counts.searches.values()) - earlier_searches
    if searches and options.iteration is None and iteration == "call":
        counts.calls_as_iterations[trace_format.name] += searches
    counts.systems[run] += len(queries)
    if model := " + ".join(trace.models) or trace.tag:
        counts.models[run.label, model] += len(queries)
    if idle := counts.without_search - earlier_idle:
        counts.idle[run] += idle
    if counts is not summary:
        summary.add(counts)

    for query, named_query in zip(queries, named_queries, strict=True):
        rows.add(query, named_query.query_id, *run)
    if named_queries:
        _add_outcomes(trace, named_queries, run, rows, summary)
    return named_queries


def _add_outcomes(trace: Trace, queries: list[NamedQuery], run: RunName, rows: ResultRows, summary: Summary) -> None:
    """Add the outcomes of a conversation to its last query. The earlier queries are complete."""
    table = rows.tables["outcomes"]
    *earlier_queries, last_query = queries
    table += [(query.query_id, *run, COMPLETED, 1.0) for query in earlier_queries]

    outcomes = {**queries_and_costs.read_outcomes(trace)}
    completed = outcomes.pop(COMPLETED, 1.0)
    table += [(last_query.query_id, *run, name, value) for name, value in outcomes.items()]
    table.append((last_query.query_id, *run, COMPLETED, completed))
    if completed == 0:
        summary.count("broken_off", format_place(trace.at))


@contextmanager
def _skip_errors(options: ReadOptions, summary: Summary, query_id: str | None = None) -> Iterator[None]:
    """With errors='skip', count an InputError instead of raising it. Missing results of a search are always an error."""
    try:
        yield
    except InputError as error:
        if options.errors != "skip" or isinstance(error, UnrecordedError):
            raise
        summary.count_error(error, query_id)


def _read_file(file: TraceFile, options: ReadOptions, summary: Summary) -> Iterator[tuple[Trace, Format, Source, int]]:
    """Yield each trace with the number of bytes read up to its end."""
    start = end = 0  # of a log in the file
    with _skip_errors(options, summary):
        for open_log in find_logs(file.path, partial(is_claimed, options.format)):
            with _skip_errors(options, summary):
                for trace, trace_format, source in _read_log(open_log(), options, summary):
                    end = start + source.bytes_read
                    yield trace, trace_format, source, end
            start = end


def _read_log(log: Log, options: ReadOptions, summary: Summary) -> Iterator[tuple[Trace, Format, Source]]:
    """Yield the traces of a log with its format and source. Raise an InputError if no format claims it, or if it has no trace."""
    earlier_errors = summary.errors
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
    if is_empty and summary.errors == earlier_errors:
        raise InputError(
            f"{log.path}: holds no trace that {trace_format.name} can read; give another format with {spell('format')}, or write "
            "the searches in the format jsonl (docs/traces/your_own_agent.md)"
        )


def _make_column(name: str, results: list[Result]) -> pl.Series:
    """Return one field of results as a column. Pairs become lists of structs with a name and a value; no pairs become null."""
    values = list(map(attrgetter(name), results))
    if name in ("ids", "fields"):
        if not any(values):  # as in most logs
            return pl.repeat(None, len(values), dtype=RESULTS_SCHEMA[name], eager=True).alias(name)
        values = [[{"name": key, "value": value} for key, value in pairs] or None for pairs in values]
    return pl.Series(name, values, dtype=RESULTS_SCHEMA[name])
