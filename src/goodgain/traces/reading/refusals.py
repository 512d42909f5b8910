"""Says why no format claims a file: what it looks like, the nearest formats, and what a reading by shape would count.

The nearest formats are those whose readers know many rare keys of the file: the keys are taken from the source of the
reader. A trial of the reader gives the reason.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Any

import orjson

from goodgain.errors import InputError, count_of
from goodgain.traces.input.file_head import FileHead
from goodgain.traces.input.logs_and_archives import Log, find_logs
from goodgain.traces.input.sources import Source
from goodgain.traces.model import SearchCall
from goodgain.traces.reading.known_formats import Format, find_reader, formats, get_format, is_claimed
from goodgain.traces.reading.queries_and_costs import read_queries
from goodgain.traces.reading.read_options import ReadOptions
from goodgain.traces.reading_summary import Summary

#: A word in quotes: perhaps a key or the name of a type in a log.
_QUOTED_WORD = re.compile(r"[\"']([A-Za-z_][\w.-]{1,60})[\"']")
#: Keys with names of types, which are as characteristic as keys.
_TYPE_KEYS = {"type", "role", "kind", "event", "object", "part_kind", "run_type"}
#: How many formats the message names, how many rare keys of the file they know at least, beside half of all its keys, and
#: how many formats may know a rare key.
_NEAREST, _SHARED_KEYS, _FEW = 2, 3, 8
#: How deep keys are searched, and the length of a reason and of a text in the example.
_MAX_DEPTH, _LONGEST_REASON, _LONGEST_TEXT = 6, 160, 60


def make_source(log: Log, options: ReadOptions, summary: Summary) -> Source:
    """Return a log as its format reads it, with the options that formats need."""
    path = options.query_id if isinstance(options.query_id, str) else ""
    return Source(
        log.path, log.head, summary, log.open, options.citations, options.reranked, options.costs, options.uses,
        skip=options.errors == "skip", is_search=options.tool_rule, query_path=path, find_reader=find_reader,
    )  # fmt: skip


def describe_unclaimed(log: Log, options: ReadOptions) -> str:
    """Return the error for a log that no format claims."""
    nearest = _find_nearest(log.head)
    reasons = " and ".join(f"{near.name} ({_explain(near, log)})" for near in nearest)
    near = f"; the nearest {'are' if len(nearest) > 1 else 'is'} {reasons}" if nearest else ""
    counted, example = _count_by_shape(log, options)
    way_out = f"write its searches in the format jsonl, which takes those of any agent (docs/traces/your_own_agent.md){example}"
    return (
        f"{log.path}: is in no known trace format (it looks like {log.head.description}){near}; "
        f"{f'{counted}; else ' if counted else ''}name its format with format=, or {way_out}"
    )


def explain_format(path: Path, options: ReadOptions) -> Iterator[str]:
    """Yield a line for each log in a file and each format: whether the format claims the log, or why not."""
    for open_log in find_logs(path, partial(is_claimed, options.format)):
        log = open_log()
        yield f"{log.path}: {log.head.description}"
        for known in formats().values():
            if known.name != "shape":
                yield f"  {known.name}: {'claims it' if known.sniff(log.head) else _explain(known, log)}"
        yield f"  {_count_by_shape(log, options)[0] or 'shape: no call of a tool was found in it'}"


def _count_by_shape(log: Log, options: ReadOptions) -> tuple[str, str]:
    """Return what reading by shape would count, and the first search as a line of the format jsonl; else empty texts."""
    asked = replace(options, format="shape", unrecorded="empty", strict=False, errors="skip", costs=False, uses=False)
    shape, summary, ids = get_format("shape"), Summary(), 0
    first: tuple[str, SearchCall] | None = None
    try:
        source = make_source(log, replace(asked, errors="raise"), summary)
        for trace in shape.read(source):
            read = read_queries(trace, asked, asked.iteration or trace.iteration or shape.iteration, summary)
            ids += trace.query_id is not None
            for search in (one for query in read for iteration in query.iterations for one in iteration):
                if first is None or (search.results and not first[1].results):
                    first = trace.query_id or "q1", search
    except InputError as error:
        return f"by shape (format='shape') {str(error).replace(f'{log.path}, at ', '')}", ""
    if first is None:
        return "", ""
    searches = sum(summary.searches.values())
    tools = ", ".join(f"{name} {count}" for name, count in summary.searches.most_common(5))
    faults = {"not read": summary.unparsed, "not recorded": summary.unrecorded, "failed": summary.failed}
    counted = f"{count_of(summary.traces, 'query', 'queries')}, {count_of(searches, 'search', 'searches')}: {tools}"
    more = ", ..." if len(summary.searches) > 5 else ""
    found = [count_of(summary.results, "result"), *(f"{count} {name}" for name, count in faults.items() if count)]
    from_field = f"query ids from `{summary.ids_from}`" if summary.ids_from else "query ids of its records"
    where = f"; {from_field}" if ids else ""
    return (
        f"by shape: {counted}{more}; {', '.join(found)}{where}; pass format='shape' to take this",
        _write_example(*first),
    )


def _write_example(query_id: str, search: SearchCall) -> str:
    """Return a search as the line of jsonl that a message shows, with its first result."""
    results = [
        {name: value[:_LONGEST_TEXT] for name in ("doc_id", "url", "title") if (value := getattr(result, name))}
        for result in search.results[:1]
    ]
    made = {"query": " ".join(search.queries)[:_LONGEST_TEXT], "results": results}
    line = {"goodgain_trace": 1, "query_id": query_id[:_LONGEST_TEXT], "steps": [{"searches": [made]}]}
    return f": {orjson.dumps(line).decode()}"


def _find_nearest(head: FileHead) -> list[Format]:
    """Return the formats that know most of the file's keys; a key counts less, the more formats know it."""
    known = formats()
    keys = set(_find_words(head.records))
    words = {name: _read_vocabulary(trace_format) for name, trace_format in known.items() if name != "shape"}
    spread = Counter(word for vocabulary in words.values() for word in vocabulary)
    scores = {}
    for name, vocabulary in words.items():
        shared = [spread[word] for word in keys & vocabulary]
        if sum(count <= _FEW for count in shared) >= _SHARED_KEYS and 2 * len(shared) >= len(keys):
            scores[name] = sum(1 / count**2 for count in shared)
    return [known[name] for name in sorted(scores, key=lambda name: -scores[name])[:_NEAREST]]


def _find_words(value: Any, depth: int = _MAX_DEPTH) -> Iterator[str]:
    """Yield the keys in a value, and the names of types."""
    if isinstance(value, dict):
        yield from value
        yield from (name for key, name in value.items() if key in _TYPE_KEYS and isinstance(name, str))
    if depth and isinstance(value, (dict, list)):
        for member in value.values() if isinstance(value, dict) else value:
            yield from _find_words(member, depth - 1)


def _read_vocabulary(trace_format: Format) -> set[str]:
    """Return the words in quotes in the source of a format's module."""
    with suppress(OSError, TypeError, KeyError):  # a plugin may have no source
        return set(_QUOTED_WORD.findall(inspect.getsource(sys.modules[trace_format.sniff.__module__])))
    return set()


def _explain(trace_format: Format, log: Log) -> str:
    """Return why a format does not claim a file, by reading the file's beginning with it."""
    path, head = log.path, log.head
    content = head.raw
    try:
        if head.kind == "jsonl":  # the whole values in the head
            content = b"\n".join(orjson.dumps(record) for record in head.records if record is not None)
        elif head.kind == "json":
            content = orjson.dumps(head.value)
    except TypeError:
        return "its JSON nests too deep"
    whole = FileHead(head.name, content, whole=True)
    source = Source(path, whole, Summary(), lambda: BytesIO(content))
    try:
        trace = next(trace_format.read(source), None)
    except InputError as error:
        reason = str(error).replace(f"{path}, ", "").replace(f"{path}: ", "").partition("; ")[0]
        reason = reason.partition(", found an object with")[0]  # the message has its keys already
        return " ".join(reason.split())[:_LONGEST_REASON]
    except Exception:  # a plugin's own
        if not trace_format.is_plugin:
            raise
        return "its reader failed"
    unknown = (trace.unknown if trace else ()) + source.take_unknown()
    if unknown:
        return f"{unknown[0].what} is not understood"[:_LONGEST_REASON]
    if trace is None or not any(step.calls for turn in trace.turns for step in turn.steps):
        return "no call of a tool was found in it"
    return f"its reader can read the beginning, but the format's marks are missing: pass format={trace_format.name!r} to use it"
