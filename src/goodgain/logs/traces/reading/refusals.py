"""Explains why no format reads a file. Names the kind of file, the nearest format, and what `--format shape` would find."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from io import BytesIO
from itertools import islice
from pathlib import Path
from typing import Any

import orjson

from goodgain.errors import InputError, count_of
from goodgain.logs.traces.expected_values import format_place
from goodgain.logs.traces.formats import Format, formats, get_format, is_claimed
from goodgain.logs.traces.input.file_head import FileHead
from goodgain.logs.traces.input.logs_and_archives import Log, find_logs
from goodgain.logs.traces.input.sources import Source
from goodgain.logs.traces.model import SearchCall, Trace
from goodgain.logs.traces.reading.lists_beside import collect_texts, is_in
from goodgain.logs.traces.reading.queries_and_costs import UnrecordedError, read_queries
from goodgain.logs.traces.reading.read_options import ReadOptions
from goodgain.logs.traces.reading_summary import Summary
from goodgain.logs.traces.tool_outputs.unread_lists import ResultList, find_result_lists
from goodgain.options import spell

#: How deep values are tried in the formats, and how many of them.
_MAX_DEPTH, _MAX_TRIED = 6, 40
#: The length of a reason, and of a text in the example.
_LONGEST_REASON, _LONGEST_TEXT = 160, 60
_CASSETTE = (b"interactions:", b'"interactions":', b'"http_interactions":')


def make_source(log: Log, options: ReadOptions, summary: Summary) -> Source:
    path = options.query_id if isinstance(options.query_id, str) else ""
    return Source(
        log.path, log.head, summary, log.open, options.citations, options.reranked, options.costs, options.uses,
        skip=options.errors == "skip", is_search=options.tool_rule, query_path=path, iteration=options.iteration,
    )  # fmt: skip


def describe_unclaimed(log: Log, options: ReadOptions) -> str:
    known = [one for one in formats().values() if one.name != "shape"]
    trials = [(*_try(one, log.path, log.head), "", one.name) for one in known]
    for value, place in islice(_list_values(log.head.value, "", _MAX_DEPTH), _MAX_TRIED):
        with suppress(TypeError):  # a value nests too deep
            head = FileHead("value.json", orjson.dumps(value), whole=True)
            trials += [(*_try(one, log.path, head, place), place, one.name) for one in known if one.sniff(head)]
    calls, reason, _, name = max(trials, key=lambda trial: (trial[0], bool(trial[2]), -len(trial[2])))
    near = f"; the nearest is {name} ({reason})" if calls else ""
    counted, example, is_read = ("", "", False) if log.head.is_binary else _count_by_shape(log, options)
    listed = "" if is_read or log.head.is_binary else _name_result_list(log, options)
    way_out = f"write its searches in the format jsonl, which takes those of any agent (docs/traces/your_own_agent.md){example}"
    if any(words in log.head.raw[:1000] for words in _CASSETTE):
        way_out = 'write the exchanges of the cassette as a list of {"request": BODY, "response": BODY}'
    return (
        f"{log.path}: is in no known trace format (it looks like {log.head.description}){near}{listed}; "
        f"{f'{counted}; else ' if counted else ''}name its format with {spell('format')}, or {way_out}"
    )


def _name_result_list(log: Log, options: ReadOptions) -> str:
    """Return a clause that names a list of results in a log, or an empty text. The list may belong to no search that is known."""
    with suppress(InputError):
        for value, at in islice(make_source(log, options, Summary()).documents(), _MAX_TRIED):
            lists = [found for found in find_result_lists(value, at, (), "everything") if not found.is_judged]
            if lists:
                first = max(lists, key=lambda found: (not found.is_citations, found.is_sure))
                place = format_place(first.at).removeprefix(f"{log.path}, ").removeprefix("at ")
                return (
                    f"; {place} looks like {'citations of the answer' if first.is_citations else 'results of a search'}"
                )
    return ""


def explain_failed_claim(error: InputError, log: Log, name: str, options: ReadOptions) -> InputError:
    """Return the error of a format that claims a log but cannot read its first trace, with what `shape` finds in the log."""
    counted, example, _ = _count_by_shape(log, options)
    if not example:
        return error
    fault, _, remedy = str(error).partition("; ")
    return InputError(
        f"{fault}; the format {name} claims the file but cannot read it; {counted}; else {remedy or 'correct the file'}"
    )


def explain_unrecorded(error: UnrecordedError, source: Source, trace: Trace, name: str) -> UnrecordedError:
    """Return the error of a search without output. If the log has results that no call holds, the error names their place."""
    if not error.tool:
        return error
    texts = list(collect_texts(trace, without=error.place))
    with suppress(InputError):
        for value, at in replace(source, summary=Summary()).documents():
            for found in find_result_lists(value, at, (), "everything"):
                if found.is_citations or found.at == error.place:
                    continue
                if found.is_sure and not all(is_in(each, texts) for each in found.names[:_MAX_TRIED]):
                    other = _advise_other_reading(error, source, found, name)
                    return UnrecordedError(
                        f"{error.place}: the search with {error.tool!r} has no output where the format {name} expects it, but "
                        f"{format_place(found.at)} looks like results; {other}write the searches in the format jsonl "
                        "(docs/traces/your_own_agent.md)"
                    )
    return error


def _advise_other_reading(error: UnrecordedError, source: Source, results: ResultList, name: str) -> str:
    """Return the beginning of an advice: the option that reads a list of results, or an empty text if no option reads it."""
    if error.remedy:
        return f"{error.remedy}; or "
    if name == "shape":
        return ""
    with suppress(InputError):
        for trace in get_format("shape").read(replace(source, summary=Summary())):
            texts = list(collect_texts(trace))
            if all(is_in(each, texts) for each in results.names[:_MAX_TRIED]):
                return f"try {spell('format', 'shape')}, or "
    return ""


def explain_format(path: Path, options: ReadOptions) -> Iterator[str]:
    """Yield a line about each log in a file, then a line per format: `claims it`, or why the format does not claim the log."""
    for open_log in find_logs(path, partial(is_claimed, options.format)):
        log = open_log()
        yield f"{log.path}: {log.head.description}"
        for known in formats().values():
            if known.name != "shape":
                reason = "claims it" if known.sniff(log.head) else _try(known, log.path, log.head)[1]
                yield f"  {known.name}: {reason}"
        yield f"  {_count_by_shape(log, options)[0] or 'shape: no call of a tool was found in it'}"


def _count_by_shape(log: Log, options: ReadOptions) -> tuple[str, str, bool]:
    """Return what the format `shape` finds in a log, a search as a jsonl line, and whether shape reads all searches.

    The texts are empty without a search.
    """
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
        return f"by shape ({spell('format', 'shape')}) {str(error).replace(f'{log.path}, at ', '')}", "", False
    if first is None:
        return "", "", False
    searches = sum(summary.searches.values())
    tools = ", ".join(f"{name} {count}" for name, count in summary.searches.most_common(5))
    faults = {"not read": summary.unparsed, "not recorded": summary.unrecorded, "failed": summary.failed}
    counted = f"{count_of(summary.traces, 'query', 'queries')}, {count_of(searches, 'search', 'searches')}: {tools}"
    more = ", ..." if len(summary.searches) > 5 else ""
    found = [count_of(summary.results, "result"), *(f"{count} {name}" for name, count in faults.items() if count)]
    from_field = f"query ids from `{summary.ids_from}`" if summary.ids_from else "query ids of its records"
    where = f"; {from_field}" if ids else ""
    is_refused = bool(summary.unparsed or (summary.unrecorded and options.unrecorded == "raise"))
    purpose = "to see which" if is_refused else "to take this"
    return (
        f"by shape: {counted}{more}; {', '.join(found)}{where}; pass {spell('format', 'shape')} {purpose}",
        _write_example(*first),
        not is_refused,
    )


def _write_example(query_id: str, search: SearchCall) -> str:
    results = [
        {name: value[:_LONGEST_TEXT] for name in ("doc_id", "url", "title") if (value := getattr(result, name))}
        for result in search.results[:1]
    ]
    made = {"query": " ".join(search.queries)[:_LONGEST_TEXT], "results": results}
    line = {"goodgain_trace": 1, "query_id": query_id[:_LONGEST_TEXT], "steps": [{"searches": [made]}]}
    return f": {orjson.dumps(line).decode()}"


def _list_values(holder: Any, place: str, depth: int) -> Iterator[tuple[Any, str]]:
    """Yield the lists and objects in a JSON object, with paths. Do not look inside lists: their members are parts of a log."""
    for key, value in holder.items() if isinstance(holder, dict) and depth else ():
        if isinstance(value, (dict, list)) and value:
            yield value, f"{place}/{key}"
            yield from _list_values(value, f"{place}/{key}", depth - 1)


def _try(known: Format, path: Path, head: FileHead, place: str = "") -> tuple[int, str]:
    """Return how many calls a format finds in a log's head, and the reason why the format does not claim the log."""
    content = head.raw
    try:
        if head.kind == "jsonl":  # the whole values in the head
            content = b"\n".join(orjson.dumps(record) for record in head.records if record is not None)
        elif head.kind == "json":
            content = orjson.dumps(head.value)
    except TypeError:
        return 0, "its JSON nests too deep"
    source = Source(path, FileHead(head.name, content, whole=True), Summary(), lambda: BytesIO(content))
    try:
        trace = next(known.read(source), None)
    except InputError as error:
        reason = str(error).replace(f"{path}, ", "").replace(f"{path}: ", "").partition("; ")[0]
        reason = reason.partition(", found an object with")[0]  # the message has its keys already
        return 0, " ".join(reason.split())[:_LONGEST_REASON]
    except Exception:  # a plugin's own
        if not known.is_plugin:
            raise
        return 0, "its reader failed"
    if unknown := (trace.unknown if trace else ()) + source.take_unknown():
        return 0, f"{unknown[0].what} is not understood"[:_LONGEST_REASON]
    calls = sum(len(turn.calls) for turn in trace.turns) if trace else 0
    if not calls:
        return 0, "no call of a tool was found in it"
    if place:
        return calls, f"it finds calls at {place}; write what is there to a file of its own"
    how = f"pass {spell('format', known.name)} to use it"
    return calls, f"its reader can read the beginning, but the format's marks are missing: {how}"
