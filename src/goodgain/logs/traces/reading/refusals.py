"""Explains why no format reads a file. Names the kind of file, the nearest format, and what `--format shape` would find."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from io import BytesIO
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from goodgain.errors import InputError, count_of
from goodgain.logs.traces.expected_values import CORRECT_FILE, format_place
from goodgain.logs.traces.formats import Format, formats, get_format, is_claimed
from goodgain.logs.traces.formats.shape import NoSearchError
from goodgain.logs.traces.input.file_head import FileHead
from goodgain.logs.traces.input.logs_and_archives import Log, find_logs
from goodgain.logs.traces.input.sources import Source
from goodgain.logs.traces.model import SearchCall, Trace
from goodgain.logs.traces.reading.advice import (
    advise_on_list,
    advise_on_lists,
    describe_list,
    find_lists,
    make_source,
    try_options,
)
from goodgain.logs.traces.reading.lists_beside import collect_texts, is_in
from goodgain.logs.traces.reading.queries_and_costs import NotUnderstoodError, UnrecordedError, read_queries
from goodgain.logs.traces.reading.read_options import ReadOptions
from goodgain.logs.traces.reading_summary import Summary
from goodgain.logs.traces.tool_outputs.unread_lists import find_result_lists
from goodgain.options import spell

#: How deep values are tried in the formats, and how many of them.
_MAX_DEPTH, _MAX_TRIED = 6, 40
#: The length of a reason, and of a text in the example.
_LONGEST_REASON, _LONGEST_TEXT = 160, 60
#: How many tools are tried as search tools.
_MOST_TOOLS = 5
_CASSETTE = (b"interactions:", b'"interactions":', b'"http_interactions":')
_WRITE_JSONL = "write its searches in the format jsonl, which takes those of any agent (docs/traces/your_own_agent.md)"


def describe_unclaimed(log: Log, options: ReadOptions) -> str:
    """Return the message on a log that no format claims: what it looks like, the nearest format, and options that read it."""
    looks = f"{log.path}: is in no known trace format (it looks like {log.head.description})"
    if any(words in log.head.raw[:1000] for words in _CASSETTE):
        exchanges = 'write the exchanges of the cassette as a list of {"request": BODY, "response": BODY}'
        return f"{looks}; name its format with {spell('format')}, or {exchanges}"
    candidates = [trace_format for trace_format in formats().values() if trace_format.name != "shape"]
    nearest = _find_nearest(log, candidates)
    clauses = [looks]
    if nearest:
        clauses.append(_describe_nearest(log, nearest, options))
    if log.head.is_binary:
        return "; ".join([*clauses, f"name its format with {spell('format')}, or {_WRITE_JSONL}"])

    count = _count_by_shape(log, options)
    advice = ""
    if not (count.is_read or count.has_results):
        advice = advise_on_lists(log, options, (nearest.name,) if nearest and not nearest.place else ())
    clauses += [clause for clause in (advice, count.text) if clause]
    is_advised = "pass " in f"{advice} {count.text}"
    if not (advice or count.text):
        if _holds_only_results(log.head):
            clauses.append("its objects look like results of a search, but the log does not say what was searched")
        clauses.append(f"name its format with {spell('format')}, or {_WRITE_JSONL}")
    else:
        clauses.append(f"{'else ' if is_advised else ''}{_WRITE_JSONL}{count.ending}")
    return "; ".join(clauses)


def _holds_only_results(head: FileHead) -> bool:
    """Return whether a log is a list of results, without an object around it that names the list."""
    if head.kind not in ("json", "jsonl") or isinstance(head.value, dict):
        return False
    records = [record for record in head.records if record is not None]
    lists = find_result_lists({"results": records}, "", (), "everything")
    return any(results.key == "results" and results.is_sure for results in lists)


class _Nearest(NamedTuple):
    """A format that finds calls in a log whose marks it does not know."""

    name: str
    reason: str
    place: str  # of the value with the calls; empty: the whole log


def _find_nearest(log: Log, candidates: list[Format]) -> _Nearest | None:
    """Return the format that finds the most calls in the head of a log or, if a format claims a value inside, in this value.

    Return None if no format finds a call.
    """
    # (calls, reason, place, name) of each format
    trials = [(*_try(trace_format, log.path, log.head), "", trace_format.name) for trace_format in candidates]
    for value, place in islice(_list_values(log.head.value, "", _MAX_DEPTH), _MAX_TRIED):
        with suppress(TypeError):  # a value nests too deep
            head = FileHead("value.json", orjson.dumps(value), whole=True)
            claims = [trace_format for trace_format in candidates if trace_format.sniff(head)]
            trials += [(*_try(claim, log.path, head, place), place, claim.name) for claim in claims]
    # Of equal counts, a value inside comes first, and the outermost of such values.
    calls, reason, place, name = max(trials, key=lambda trial: (trial[0], bool(trial[2]), -len(trial[2])))
    return _Nearest(name, reason, place) if calls else None


def _describe_nearest(log: Log, nearest: _Nearest, options: ReadOptions) -> str:
    """Return a clause on the nearest format. It advises the format only if the format reads the log."""
    reason = nearest.reason
    if not nearest.place:
        trial = try_options(log, options, format=nearest.name)
        is_useful = trial is not None and (trial.results > 0 or trial.searches == 0)
        reason = (
            f"{reason}: pass {spell('format', nearest.name)} to use it"
            if is_useful
            else "it finds calls, but no results"
        )
    return f"the nearest is {nearest.name} ({reason})"


def explain_failed_claim(error: InputError, log: Log, name: str, options: ReadOptions) -> InputError:
    """Return the error of a format that claims a log but cannot read its first trace, with what reads the log."""
    fault, _, remedy = str(error).partition("; ")
    is_general = remedy.startswith(CORRECT_FILE)
    count = _count_by_shape(log, options)
    if not (count.example or is_general):
        return error

    advice = count.text if count.example else advise_on_lists(log, options, ())
    if not advice:
        return error
    otherwise = remedy or "correct the file"
    if is_general:  # a sound file of another format needs no correction
        otherwise = f"{_WRITE_JSONL}; or, if the file is of the format {name}, correct it"
    claim = f"the format {name} claims the file but cannot read it"
    return InputError(f"{fault}; {claim}; {advice}; {'else ' if 'pass ' in advice else ''}{otherwise}")


def explain_unrecorded(
    error: UnrecordedError, source: Source, trace: Trace, name: str, options: ReadOptions
) -> UnrecordedError:
    """Return the error of a search without output. If the log has results that no call holds, the error names their place."""
    if not error.tool:
        return error
    texts = list(collect_texts(trace, without=error.place))
    for results in find_lists(source, options):
        is_elsewhere = results.is_sure and not results.is_citations and results.at != error.place
        if is_elsewhere and not all(is_in(each, texts) for each in results.names[:_MAX_TRIED]):
            formats = () if name == "shape" else ("auto",)
            advice = error.remedy or advise_on_list(source, options, results, formats)
            advice = f"{advice}; or" if advice else "no option reads them;"
            return UnrecordedError(
                f"{error.place}: the search with {error.tool!r} has no output where the format {name} expects it, but "
                f"{format_place(results.at)} looks like results; {advice} write the searches in the format jsonl "
                "(docs/traces/your_own_agent.md)"
            )
    return error


def explain_not_understood(error: NotUnderstoodError, source: Source, options: ReadOptions) -> InputError:
    """Return the error of a trace without a search. If what is not understood holds results, the error says what reads them."""
    key = error.place.rpartition("/")[2]
    inside = [results for results in find_lists(source, options) if f"/{key}/" in f"{results.at}/"]
    for results in inside:
        if advice := advise_on_list(source, options, results):
            return InputError(f"{error.fault}: {describe_list(source, results)}; {advice}; else {_WRITE_JSONL}")
    return error


def explain_format(path: Path, options: ReadOptions) -> Iterator[str]:
    """Yield a line about each log in a file, then a line per format: `claims it`, or why the format does not claim the log."""
    for open_log in find_logs(path, partial(is_claimed, options.format)):
        log = open_log()
        yield f"{log.path}: {log.head.description}"
        for trace_format in formats().values():
            if trace_format.name != "shape":
                reason = "claims it" if trace_format.sniff(log.head) else _try(trace_format, log.path, log.head)[1]
                yield f"  {trace_format.name}: {reason}"
        yield f"  {_count_by_shape(log, options).text or 'shape: no call of a tool was found in it'}"


class _ShapeCount(NamedTuple):
    """What the format `shape` finds in a log."""

    text: str = ""  # empty: no call of a tool
    example: str = ""  # a search as a line in the format jsonl; empty: no search
    is_read: bool = False  # all searches were read
    has_results: bool = False  # at least one search was read

    @property
    def ending(self) -> str:
        return f": {self.example}" if self.example else ""


def _count_by_shape(log: Log, options: ReadOptions) -> _ShapeCount:
    """Read a whole log in the format `shape`, and describe what it finds. Missing results are counted, not an error."""
    tolerant = replace(
        options, format="shape", unrecorded="empty", strict=False, errors="skip", costs=False, uses=False
    )
    shape, summary = get_format("shape"), Summary()
    ids = 0
    first: tuple[str, SearchCall] | None = None
    try:
        source = make_source(log, replace(tolerant, errors="raise"), summary)
        for trace in shape.read(source):
            ids += trace.query_id is not None
            queries = read_queries(trace, tolerant, tolerant.iteration or trace.iteration or shape.iteration, summary)
            searches = [search for query in queries for iteration in query.iterations for search in iteration]
            for search in searches:
                if first is None or (search.results and not first[1].results):
                    first = trace.query_id or "q1", search
    except NoSearchError as error:
        return _advise_tools(error, log, options)
    except InputError as error:
        fault = str(error).replace(f"{log.path}, at ", "").rstrip(".")
        return _ShapeCount(f"by shape ({spell('format', 'shape')}) {fault}")
    if first is None:
        return _ShapeCount()

    is_refused = bool(summary.unparsed or (summary.unrecorded and options.unrecorded == "raise"))
    text = _describe_count(summary, has_ids=ids > 0, is_refused=is_refused)
    return _ShapeCount(text, _write_example(*first), not is_refused, bool(first[1].results))


def _describe_count(summary: Summary, *, has_ids: bool, is_refused: bool) -> str:
    searches = sum(summary.searches.values())
    tools = ", ".join(f"{name} {count}" for name, count in summary.searches.most_common(5))
    ending = ", ..." if len(summary.searches) > 5 else ""
    counts = (
        f"{count_of(summary.traces, 'query', 'queries')}, {count_of(searches, 'search', 'searches')}: {tools}{ending}"
    )
    faults = {"not read": summary.unparsed, "not recorded": summary.unrecorded, "failed": summary.failed}
    results = [count_of(summary.results, "result"), *(f"{count} {name}" for name, count in faults.items() if count)]
    from_field = f"query ids from `{summary.ids_from}`" if summary.ids_from else "query ids of its records"
    ids = f"; {from_field}" if has_ids else ""
    purpose = "to see which" if is_refused else "to take this"
    return f"by shape: {counts}; {', '.join(results)}{ids}; pass {spell('format', 'shape')} {purpose}"


def _advise_tools(error: NoSearchError, log: Log, options: ReadOptions) -> _ShapeCount:
    """Name the tools whose outputs are read as results, if no tool of a log is known as a search.

    Tools that are asked a query come before others: a list of appointments looks like results too.
    """
    asking = _select_readable([*error.asking], log, options)
    tools = asking or _select_readable(error.tools, log, options)
    trial = try_options(log, options, format="shape", tools=tools) if tools else None
    if trial is None:
        fault = str(error).replace(f"{log.path}: ", "").partition("; ")[0]
        return _ShapeCount(f"by shape: {fault}, and no results can be read from their outputs")

    chosen = f"{spell('format', 'shape')} and {spell('tools', tools)}"
    text = f"by shape: {trial} of {', '.join(tools)}; if this is a search, pass {chosen}"
    unread = [f"{tool} {count}" for tool, count in error.asking.items() if tool not in tools][:_MOST_TOOLS]
    if unread:
        text += (
            f"; other tools are asked a query, but not all of their outputs can be read as results: {', '.join(unread)}"
        )
    return _ShapeCount(text, is_read=True)


def _select_readable(tools: Sequence[str], log: Log, options: ReadOptions) -> list[str]:
    """Return the tools whose outputs are read as results if `tools=` names them."""
    trials = {tool: try_options(log, options, format="shape", tools=[tool]) for tool in tools[:_MOST_TOOLS]}
    return [tool for tool, trial in trials.items() if trial and trial.results]


def _write_example(query_id: str, search: SearchCall) -> str:
    """Return a search with its first result as a line in the format jsonl, with shortened texts."""
    results = [
        {name: value[:_LONGEST_TEXT] for name in ("doc_id", "url", "title") if (value := getattr(result, name))}
        for result in search.results[:1]
    ]
    fields = {"query": " ".join(search.queries)[:_LONGEST_TEXT], "results": results}
    line = {"goodgain_trace": 1, "query_id": query_id[:_LONGEST_TEXT], "steps": [{"searches": [fields]}]}
    return orjson.dumps(line).decode()


def _list_values(holder: Any, place: str, depth: int) -> Iterator[tuple[Any, str]]:
    """Yield the lists and objects in a JSON object, with paths. Do not look inside lists: their members are parts of a log."""
    for key, value in holder.items() if isinstance(holder, dict) and depth else ():
        if isinstance(value, (dict, list)) and value:
            yield value, f"{place}/{key}"
            yield from _list_values(value, f"{place}/{key}", depth - 1)


def _try(trace_format: Format, path: Path, head: FileHead, place: str = "") -> tuple[int, str]:
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
        trace = next(trace_format.read(source), None)
    except InputError as error:
        reason = str(error).replace(f"{path}, ", "").replace(f"{path}: ", "").partition("; ")[0]
        reason = reason.partition(", found an object with")[0]  # the message has its keys already
        return 0, " ".join(reason.split())[:_LONGEST_REASON]
    except Exception:  # a plugin's own
        if not trace_format.is_plugin:
            raise
        return 0, "its reader failed"
    if unknown := (trace.unknown if trace else ()) + source.take_unknown():
        return 0, f"{unknown[0].what} is not understood"[:_LONGEST_REASON]
    calls = sum(len(turn.calls) for turn in trace.turns) if trace else 0
    if not calls:
        return 0, "no call of a tool was found in it"
    if place:
        return calls, f"it finds calls at {place}; write what is there to a file of its own"
    return calls, "its reader can read the beginning, but the format's marks are missing"
