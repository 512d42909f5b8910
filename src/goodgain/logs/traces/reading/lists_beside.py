"""Decides on lists of results that no call of a trace holds: counts them as searches, or says where they are.

Such a list lies beside the messages of a conversation, in metadata, or in the answer of an API that searched:

- If the trace has no search, and the log says that or what was searched, the list is a search.
- If the trace has no search, and the log does not say so, the list is an error, or a notice if its objects may be anything.
- If the trace has searches, the list is never a further search. A notice counts documents that no tool returned.

The option `tools=` decides otherwise: a list whose key it names is a search.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple
from urllib.parse import unquote

import orjson

from goodgain.errors import InputError, count_of
from goodgain.files.json_text import parse_if_json
from goodgain.logs.traces.expected_values import format_place
from goodgain.logs.traces.model import UNANSWERED, Holder, Step, ToolCall, Trace
from goodgain.logs.traces.reading.read_options import ReadOptions
from goodgain.logs.traces.reading_summary import Summary
from goodgain.logs.traces.tool_outputs.unread_lists import NOTE_KEYS, ResultList, Scope, find_result_lists
from goodgain.options import spell

#: What differs between the addresses of one page.
_BEFORE_HOST = re.compile(r"\Ahttps?://(?:www\.)?", re.IGNORECASE)
#: A limit against malicious logs: how many documents of a list are looked for in the outputs of tools.
_MOST_NAMES = 100


class _ListBeside(NamedTuple):
    results: ResultList
    holder: Holder
    is_named: bool  # `tools=` names the key of the list


def settle_lists_beside(trace: Trace, options: ReadOptions, summary: Summary, *, has_search: bool) -> None:
    """Add a call for each list of results that is a search. Report the other lists."""
    lists = list(_find_lists(trace, options, is_whole=not has_search))
    if not lists:
        return

    by_name = options.tool_rule.has_default_rule
    searches = [result_list for result_list in lists if result_list.is_named]
    if not has_search and not searches and by_name:
        searches = _choose_searches(lists)
    for search in reversed(searches):  # each is put first in its step
        _add_search(trace, search)
    if not searches and not has_search:
        searches = _add_cited_search(trace, lists, options)

    if by_name:
        unused = [result_list.results for result_list in lists if result_list not in searches]
        unused = [results for results in unused if not results.is_citations]
        _report_lists(trace, unused, summary, has_search=has_search or bool(searches))


def _find_lists(trace: Trace, options: ReadOptions, *, is_whole: bool) -> Iterator[_ListBeside]:
    """Yield each list once, in the order of the conversation. The lists of the record belong to its last turn.

    `is_whole`: look through all objects of a trace without a search. Else look only into the fields that may hold notes.
    Leave out the outputs of calls, and lists that only name the ids of calls.
    """
    if is_whole and not trace.holders and _holds_only_messages(trace.record):
        return
    record = Holder(trace.record, trace.at, len(trace.turns), is_state=True)
    if is_whole:
        scope: Scope = "record"
        holders = [*trace.holders, record]
        read_values = _collect_read_values(trace)
    else:
        scope = "fields"
        holders = list(filter(_has_notes, trace.holders))
        read_values = set()
        if isinstance(trace.record, dict):
            holders.append(record)

    found_lists = [
        (results, holder)
        for holder in holders
        for results in find_result_lists(holder.value, holder.at, read_values, scope)
    ]
    if not found_lists:
        return

    calls = [call for turn in trace.turns for call in turn.calls]
    call_ids = {call.call_id for call in calls if call.call_id}
    outputs = {id(call.output) for call in calls}
    places = set()
    for results, holder in found_lists:
        answers_calls = bool(results.names) and call_ids.issuperset(results.names)
        if results.at in places or answers_calls or id(results.value) in outputs:
            continue
        places.add(results.at)
        is_named = options.tool_rule.find(results.key) == "search"
        yield _ListBeside(results, holder, is_named)


def _holds_only_messages(record: Any) -> bool:
    """Return whether a record has only one list of messages, and values and texts that hold no list. So are most chats."""
    if not isinstance(record, dict):
        return False
    lists = 0
    for value in record.values():
        if _is_list_of_messages(value):
            lists += 1
        elif _may_hold_list(value):
            return False
    return lists == 1


def _is_list_of_messages(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and isinstance(value[0], dict) and "role" in value[0]


def _may_hold_list(value: Any) -> bool:
    if isinstance(value, str):
        looks_like_json = value[:1] in ("[", "{")
        return looks_like_json or "\n" in value  # a list of results as text has several lines
    return isinstance(value, (dict, list))


def _has_notes(holder: Holder) -> bool:
    return isinstance(holder.value, dict) and not NOTE_KEYS.isdisjoint(holder.value)


def _collect_read_values(trace: Trace) -> set[int]:
    """Return the identities of values that are read already: arguments and outputs of calls, and their members."""
    identities = {id(holder.value) for holder in trace.holders}
    for call in (call for turn in trace.turns for call in turn.calls):
        for value in (call.arguments, call.output, call.spare):
            identities.add(id(value))
            members: Iterable[Any] = ()
            if isinstance(value, dict):
                members = value.values()
            elif isinstance(value, list):
                members = value
            identities.update(id(member) for member in members if isinstance(member, (list, dict)))
    return identities


def _choose_searches(lists: list[_ListBeside]) -> list[_ListBeside]:
    """Return the lists that are searches according to the log, without copies."""
    candidates = [result_list for result_list in lists if _was_searched(result_list.results)]
    candidates.sort(key=lambda candidate: -len(candidate.results.names))  # the longest first
    searches: list[_ListBeside] = []
    for candidate in candidates:
        if not any(_is_copy(candidate, search) for search in searches):
            searches.append(candidate)
    searches.sort(key=lists.index)

    first_of_holder: dict[int, _ListBeside] = {}
    for search in searches:
        first = first_of_holder.setdefault(id(search.holder.value), search)
        if first is not search:
            keys = [first.results.key, search.results.key]
            raise InputError(
                f"{format_place(search.results.at)}: the record has two lists of results, {keys[0]!r} and {keys[1]!r}, and no "
                f"call of a search. Name the lists that are searches with {spell('tools', keys)}"
            )
    return searches


def _was_searched(results: ResultList) -> bool:
    says_so = results.was_searched or bool(results.question)
    return results.is_sure and not results.is_citations and says_so


def _is_copy(candidate: _ListBeside, search: _ListBeside) -> bool:
    """Return whether all documents of a list are in another list. The lists of two messages are two searches."""
    in_one_object = candidate.holder.value is search.holder.value
    may_repeat = candidate.holder.is_state or search.holder.is_state or in_one_object
    names = set(candidate.results.names)
    return may_repeat and bool(names) and names <= set(search.results.names)


def _add_search(trace: Trace, search: _ListBeside, output: Any = None, remedy: str = "") -> None:
    """Add a list as a call to the step that its holder belongs to, else to a new first step of the turn."""
    results, holder = search.results, search.holder
    call = ToolCall(
        results.key, results.at, is_search=True, queries=(results.question,) if results.question else (), remedy=remedy,
        output=results.value if output is None else output,
    )  # fmt: skip

    turn = trace.turns[min(max(holder.turn, 1), len(trace.turns)) - 1]
    step = next((step for step in turn.steps if step is holder.step), None)
    if step is None and not (turn.steps and turn.steps[0].is_beside):
        turn.steps.insert(0, Step(is_beside=True))
    (step or turn.steps[0]).calls.insert(0, call)

    trace.unknown = tuple(item for item in trace.unknown if not f"{results.at}/".startswith(f"{item.at}/"))


def _add_cited_search(trace: Trace, lists: list[_ListBeside], options: ReadOptions) -> list[_ListBeside]:
    """Add a search without results for an answer with citations. With `citations=True`, the citations are its results."""
    citations = [
        result_list for result_list in lists if result_list.results.is_citations and result_list.results.is_sure
    ]
    has_results = any(not result_list.results.is_citations for result_list in lists)
    if not citations or has_results or trace.unknown or not options.tool_rule.has_default_rule:
        return []
    remedy = f"the log has only the citations of the answer: count them as results with {spell('citations', True)}"
    _add_search(trace, citations[0], None if options.citations else UNANSWERED, remedy)
    return citations


def _report_lists(trace: Trace, lists: list[ResultList], summary: Summary, *, has_search: bool) -> None:
    """Say where lists are that do not count as searches.

    In a trace with searches, count documents that no call has in its arguments or outputs. In a trace without a search, raise an
    InputError if the list surely holds results, else count the list. Say nothing if a call has all of its documents.
    """
    texts = list(collect_texts(trace)) if lists else []
    unknown_places = [item.at for item in trace.unknown]
    for results in lists:
        unreturned = [name for name in results.names[:_MOST_NAMES] if not is_in(name, texts)]
        place = format_place(results.at)
        if has_search:
            if results.is_sure and unreturned:
                summary.count("documents_beside", f"{place} (key {results.key!r})", len(unreturned))
            continue

        is_returned = bool(results.names) and not unreturned
        is_told = any(results.at.startswith(f"{at}/") for at in unknown_places)
        if is_returned or is_told:
            continue
        if results.is_sure:
            raise InputError(
                f"{place}: {count_of(len(results.value), 'object looks', 'objects look')} like results, but the log has no "
                f"search, and no question beside them. If they are results of a search, pass {spell('tools', [results.key])}; "
                f"else name the search tools with {spell('tools')}"
            )
        if not unknown_places:
            summary.count("doubtful_lists", f"{place} (key {results.key!r})")


def collect_texts(trace: Trace, *, without: str = "") -> Iterator[str]:
    """Yield the arguments and outputs of all calls as texts, except of those at the place `without`."""
    calls = [call for turn in trace.turns for call in turn.calls]
    for call in (call for call in calls if format_place(call.at) != without):
        for value in (call.arguments, call.output, call.spare, call.opened):
            if isinstance(value, str):
                yield value.replace("\\/", "/")
                if "\\u" in value:
                    value = parse_if_json(value)
            if isinstance(value, (list, dict, tuple)):
                try:
                    yield orjson.dumps(value, default=str, option=orjson.OPT_NON_STR_KEYS).decode()
                except TypeError:  # nested too deep
                    continue


def is_in(name: str, texts: Iterable[str]) -> bool:
    """Return whether a text has the name of a document, whatever the scheme of an address and its percent encoding.

    >>> is_in("https://www.a.example/D%C3%BCne/", ["see http://a.example/D\u00fcne"])
    True
    """
    short = _BEFORE_HOST.sub("", name).rstrip("/")
    spellings = {short, unquote(short)}
    return any(spelling in text for text in texts for spelling in spellings)
