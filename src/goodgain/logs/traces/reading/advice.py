"""Finds the options that read a list of results in a log, by reading the log with these options.

An error that names a list of results names only options that were tried, and that read the list.
"""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from io import BytesIO
from itertools import islice
from typing import Any, NamedTuple

import orjson

from goodgain.errors import InputError, count_of
from goodgain.logs.traces.expected_values import format_place
from goodgain.logs.traces.formats import detect_format, get_format
from goodgain.logs.traces.input.file_head import FileHead
from goodgain.logs.traces.input.logs_and_archives import Log, read_at_most
from goodgain.logs.traces.input.sources import Source
from goodgain.logs.traces.reading.queries_and_costs import Query, read_queries
from goodgain.logs.traces.reading.query_ids import name_queries, name_run
from goodgain.logs.traces.reading.read_options import ReadOptions
from goodgain.logs.traces.reading_summary import Summary
from goodgain.logs.traces.tool_outputs.key_traits import read_key
from goodgain.logs.traces.tool_outputs.unread_lists import ResultList, find_result_lists
from goodgain.logs.traces.tools import check_tools_called
from goodgain.options import spell

#: How many documents of a list are looked for in the results, how many values of a log are looked through for lists, and how
#: many lists are tried.
_MOST_NAMES, _MOST_VALUES, _MOST_LISTS = 40, 40, 3
#: The bytes of a long log that are read with each option. An error must not take minutes.
_MOST_BYTES = 8 << 20


class Trial(NamedTuple):
    """What a log gives if it is read with other options."""

    queries: int
    searches: int
    results: int
    names: frozenset[str]  # the URLs and ids of the results
    is_part: bool  # only the beginning of a long log was read

    def __str__(self) -> str:
        queries = count_of(self.queries, "query", "queries")
        searches = count_of(self.searches, "search", "searches")
        part = f"in its first {_MOST_BYTES >> 20} MiB: " if self.is_part else ""
        return f"{part}{queries}, {searches}, {count_of(self.results, 'result')}"

    def has_read(self, results: ResultList) -> bool:
        """Return whether the results of a list are among the results that were read."""
        if results.names:
            return self.names.issuperset(results.names[:_MOST_NAMES])
        return self.results >= len(results.value)


def make_source(log: Log | Source, options: ReadOptions, summary: Summary) -> Source:
    path = options.query_id if isinstance(options.query_id, str) else ""
    return Source(
        log.path, log.head, summary, log.open, options.citations, options.reranked, options.costs, options.uses,
        skip=options.errors == "skip", is_search=options.tool_rule, query_path=path, iteration=options.iteration,
    )  # fmt: skip


def try_options(log: Log | Source, options: ReadOptions, **changes: Any) -> Trial | None:
    """Read a log, or the first 8 MiB of a long one, with changed options. Return None if this is an error."""
    changed = replace(options, **changes, errors="raise", costs=False, uses=False)
    summary = Summary()
    names = set[str]()
    query_ids = set[tuple[Any, str]]()
    queries_read = 0
    try:
        beginning = _take_beginning(log)
        is_auto = changed.format == "auto"
        trace_format = detect_format(log.path, log.head) if is_auto else get_format(changed.format)
        if trace_format is None:
            return None

        source = make_source(beginning or log, changed, summary)
        for trace in trace_format.read(source):
            trace.unknown += source.take_unknown()
            iteration = changed.iteration or trace.iteration or trace_format.iteration
            queries = read_queries(trace, changed, iteration, summary)
            run = name_run(trace, None, changed)
            queries_read += len(queries)
            query_ids |= {(run, query.query_id) for query in name_queries(trace, queries, run, changed, source.name)}
            for query in queries:
                names |= _collect_names(query)
        check_tools_called(changed.tool_rule, summary.called_tools)
    except InputError:
        return None

    if summary.unparsed or len(query_ids) < queries_read:
        return None
    searches = sum(summary.searches.values())
    return Trial(queries_read, searches, summary.results, frozenset(names), beginning is not None)


def _collect_names(query: Query) -> set[str]:
    searches = [search for iteration in query.iterations for search in iteration]
    results = [result for search in searches for result in search.results]
    return {name for result in results for name in (result.url, result.doc_id) if name}


def _take_beginning(log: Log | Source) -> Log | None:
    """Return the whole values in the first 8 MiB of a log as a log, or None if the log is short, or no JSON."""
    if log.head.whole or log.head.kind not in ("json", "jsonl"):
        return None
    with log.open() as file:
        content = read_at_most(file, _MOST_BYTES + 1)
    if len(content) <= _MOST_BYTES:
        return None

    if log.head.kind == "jsonl":
        content = content[: content.rfind(b"\n") + 1]
    else:
        content = orjson.dumps(FileHead(log.head.name, content, whole=False).value)
    return Log(log.path, FileHead(log.head.name, content, whole=True), lambda: BytesIO(content))


def find_lists(log: Log | Source, options: ReadOptions) -> list[ResultList]:
    """Return lists of results in a log, the most certain first. Lists of judged documents are left out."""
    lists: list[ResultList] = []
    with suppress(InputError):
        for value, at in islice(make_source(log, options, Summary()).documents(), _MOST_VALUES):
            lists += [results for results in find_result_lists(value, at, (), "everything") if not results.is_judged]
            if lists:
                break
    return sorted(lists, key=lambda results: (results.is_citations, not results.is_sure))


def advise_on_lists(log: Log | Source, options: ReadOptions, formats: tuple[str, ...] = ("auto",)) -> str:
    """Return clauses that name a list of results in a log and the options that read it, or say that no option reads it.

    Args:
        formats: the formats that are tried before `shape`.
    """
    lists = find_lists(log, options)
    if not lists:
        return ""
    first_of_key: dict[str, ResultList] = {}
    for results in lists:
        first_of_key.setdefault(results.key, results)
    for results in list(first_of_key.values())[:_MOST_LISTS]:
        if advice := advise_on_list(log, options, results, formats):
            return f"{describe_list(log, results)}; {advice}"
    return f"{describe_list(log, lists[0])}; no option reads it"


def describe_list(log: Log | Source, results: ResultList) -> str:
    place = format_place(results.at).removeprefix(f"{log.path}, ").removeprefix("at ")
    return f"{place} looks like {'citations of the answer' if results.is_citations else 'results of a search'}"


def advise_on_list(
    log: Log | Source, options: ReadOptions, results: ResultList, formats: tuple[str, ...] = ("auto",)
) -> str:
    """Return a clause with the options that read a list, or an empty text if none does."""
    for changes in _list_changes(results, formats):
        trial = try_options(log, options, **changes)
        if trial is not None and trial.has_read(results):
            spelled = " and ".join(spell(name, value) for name, value in changes.items())
            purpose = "count each such list as a search" if "tools" in changes else "read it"
            return f"pass {spelled} to {purpose} ({trial})"
    return ""


def _list_changes(results: ResultList, formats: tuple[str, ...]) -> Iterator[dict[str, Any]]:
    """Yield the options to try for a list, the least change first: a format, `citations=`, `tools=` with the key; last, `shape`."""
    is_part = read_key(results.key).is_part  # a message's parts are results and texts
    for name in formats:
        chosen = {} if name == "auto" else {"format": name}
        if chosen:
            yield chosen
        if results.is_citations:
            yield chosen | {"citations": True}
        if not is_part:
            yield chosen | {"tools": [results.key]}
    yield {"format": "shape"}
    if not is_part:
        yield {"format": "shape", "tools": [results.key]}
