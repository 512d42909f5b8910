"""Decides on lists of results that no call of a trace holds: counts them as searches, or says where they are.

Such a list lies beside the messages of a conversation, in metadata, or in the answer of an API that searched:

- If the trace has no search, and the log says that or what was searched, the list is a search.
- If the trace has no search, and the log does not say so, the list is an error, or a notice if its objects may be anything.
- If the trace has searches, the list is never a further search. A notice counts documents that no tool returned.

The option `tools=` decides otherwise: a list whose key it names is a search.
"""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import orjson

from goodgain.errors import InputError, count_of
from goodgain.logs.traces.expected_values import format_place
from goodgain.logs.traces.model import UNANSWERED, Holder, Step, ToolCall, Trace
from goodgain.logs.traces.reading.read_options import ReadOptions
from goodgain.logs.traces.reading_summary import Summary
from goodgain.logs.traces.tool_outputs.unread_lists import NOTE_KEYS, ResultList, Scope, find_result_lists
from goodgain.options import spell

#: A limit against malicious logs: how many documents of a list are looked for in the outputs of tools.
_MOST_NAMES = 100


class _Found(NamedTuple):
    list: ResultList
    holder: Holder
    is_named: bool  # `tools=` names the key of the list


def settle_lists_beside(trace: Trace, options: ReadOptions, summary: Summary, *, has_search: bool) -> None:
    """Add a call for each list of results that is a search. Report the other lists."""
    found = list(_find_lists(trace, options, is_whole=not has_search))
    if not found:
        return

    chosen = [one for one in found if one.is_named]
    if not has_search and not chosen and options.tool_rule.has_default_rule:
        chosen = _choose_searches(found)
    for one in reversed(chosen):  # each is put first in its step
        _add_search(trace, one)
    if not chosen and not has_search:
        chosen = _add_cited_search(trace, found, options)

    others = [one.list for one in found if one not in chosen and not one.list.is_citations]
    if options.tool_rule.has_default_rule:
        _report_lists(trace, others, summary, has_search=has_search or bool(chosen))


def _find_lists(trace: Trace, options: ReadOptions, *, is_whole: bool) -> Iterator[_Found]:
    """Yield each list once, in the order of the conversation. The lists of the record belong to its last turn."""
    if is_whole and not trace.holders and _holds_only_messages(trace.record):
        return
    holders = trace.holders if is_whole else list(filter(_has_notes, trace.holders))
    record = Holder(trace.record, trace.at, len(trace.turns), is_state=True)
    if is_whole or isinstance(trace.record, dict):
        holders = [*holders, record]
    read: set[int] = _collect_read_values(trace) if is_whole else set()
    scope: Scope = "record" if is_whole else "fields"
    call_ids = {call.call_id for turn in trace.turns for call in turn.calls if call.call_id}
    places = set()
    for holder in holders:
        for one in find_result_lists(holder.value, holder.at, read, scope):
            answers_calls = bool(one.names) and call_ids.issuperset(one.names)
            if one.at not in places and not answers_calls:
                places.add(one.at)
                yield _Found(one, holder, options.tool_rule.find(one.key) == "search")


def _holds_only_messages(record: Any) -> bool:
    """Return whether a record has only one list of messages, and values and texts that hold no list. So are most chats."""
    if not isinstance(record, dict):
        return False
    lists = 0
    for value in record.values():
        if isinstance(value, list) and value and isinstance(value[0], dict) and "role" in value[0]:
            lists += 1
        elif isinstance(value, (dict, list)) or (isinstance(value, str) and (value[:1] in ("[", "{") or "\n" in value)):
            return False
    return lists == 1


def _has_notes(holder: Holder) -> bool:
    return isinstance(holder.value, dict) and not NOTE_KEYS.isdisjoint(holder.value)


def _collect_read_values(trace: Trace) -> set[int]:
    read = {id(holder.value) for holder in trace.holders}
    for call in (call for turn in trace.turns for call in turn.calls):
        for value in (call.arguments, call.output, call.spare):
            inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
            read.add(id(value))
            read.update(id(one) for one in inner if isinstance(one, (list, dict)))
    return read


def _choose_searches(found: list[_Found]) -> list[_Found]:
    """Return the lists that are searches according to the log, without copies."""
    searched = [
        one
        for one in found
        if one.list.is_sure and not one.list.is_citations and (one.list.was_searched or one.list.question)
    ]
    chosen: list[_Found] = []
    for one in sorted(searched, key=lambda one: -len(one.list.names)):
        if not any(_is_copy(one, other) for other in chosen):
            chosen.append(one)
    chosen.sort(key=found.index)

    by_holder: dict[int, _Found] = {}
    for one in chosen:
        other = by_holder.setdefault(id(one.holder.value), one)
        if other is not one:
            keys = [other.list.key, one.list.key]
            raise InputError(
                f"{format_place(one.list.at)}: the record has two lists of results, {keys[0]!r} and {keys[1]!r}, and no call of "
                f"a search. Name the lists that are searches with {spell('tools', keys)}"
            )
    return chosen


def _is_copy(one: _Found, other: _Found) -> bool:
    """Return whether all documents of a list are in another list. The lists of two messages are two searches."""
    may_repeat = one.holder.is_state or other.holder.is_state or one.holder.value is other.holder.value
    return may_repeat and bool(one.list.names) and set(one.list.names) <= set(other.list.names)


def _add_search(trace: Trace, one: _Found, output: Any = None, remedy: str = "") -> None:
    """Add a list as a call to the step that its holder belongs to, else to a new first step of the turn."""
    held = one.list
    call = ToolCall(
        held.key, held.at, is_search=True, queries=(held.question,) if held.question else (), remedy=remedy,
        output=held.value if output is None else output,
    )  # fmt: skip
    turn = trace.turns[min(max(one.holder.turn, 1), len(trace.turns)) - 1]
    step = next((step for step in turn.steps if step is one.holder.step), None)
    if step is None and not (turn.steps and turn.steps[0].is_beside):
        turn.steps.insert(0, Step(is_beside=True))
    (step or turn.steps[0]).calls.insert(0, call)
    trace.unknown = tuple(item for item in trace.unknown if not f"{held.at}/".startswith(f"{item.at}/"))


def _add_cited_search(trace: Trace, found: list[_Found], options: ReadOptions) -> list[_Found]:
    """Add a search without results for an answer with citations. With `citations=True`, the citations are its results."""
    cited = [one for one in found if one.list.is_citations and one.list.is_sure]
    others = [one for one in found if not one.list.is_citations]
    if not cited or others or trace.unknown or not options.tool_rule.has_default_rule:
        return []
    remedy = f"the log has only the citations of the answer: count them as results with {spell('citations', True)}"
    _add_search(trace, cited[0], None if options.citations else UNANSWERED, remedy)
    return cited


def _report_lists(trace: Trace, lists: list[ResultList], summary: Summary, *, has_search: bool) -> None:
    texts = list(collect_texts(trace)) if lists else []
    unknown = [item.at for item in trace.unknown]
    for one in lists:
        unreturned = [name for name in one.names[:_MOST_NAMES] if not is_in(name, texts)]
        place = format_place(one.at)
        if has_search and one.is_sure and unreturned:
            summary.count("documents_beside", f"{place} (key {one.key!r})", len(unreturned))
        elif has_search or (one.names and not unreturned) or any(one.at.startswith(f"{at}/") for at in unknown):
            continue
        elif one.is_sure:
            number = len(one.value)
            raise InputError(
                f"{place}: {count_of(number, 'object looks', 'objects look')} like results, but the log has no search, and no "
                f"question beside them. If they are results of a search, pass {spell('tools', [one.key])}; else name the "
                f"search tools with {spell('tools')}"
            )
        elif not trace.unknown:
            summary.count("doubtful_lists", f"{place} (key {one.key!r})")


def collect_texts(trace: Trace, *, without: str = "") -> Iterator[str]:
    """Yield the arguments and outputs of all calls as texts, except of those at the place `without`."""
    calls = [call for turn in trace.turns for call in turn.calls]
    for call in (call for call in calls if format_place(call.at) != without):
        for value in (call.arguments, call.output, call.spare, call.opened):
            if isinstance(value, str):
                yield value.replace("\\/", "/")
            elif isinstance(value, (list, dict, tuple)):
                try:
                    yield orjson.dumps(value, default=str, option=orjson.OPT_NON_STR_KEYS).decode()
                except TypeError:  # nested too deep
                    continue


def is_in(name: str, texts: Iterable[str]) -> bool:
    return any(name.rstrip("/") in text for text in texts)
