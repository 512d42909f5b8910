"""Turns the calls of a trace into searches: decides which turns count and which calls search, and reads results."""

from __future__ import annotations

from typing import NamedTuple

from goodgain.errors import InputError
from goodgain.traces.input.checks import format_place
from goodgain.traces.model import UNANSWERED, SearchCall, ToolCall, Trace, Turn, UnknownItem, Usage
from goodgain.traces.reading.costs import CostMeter
from goodgain.traces.reading.options import ReadOptions
from goodgain.traces.summary import Summary
from goodgain.traces.tool_outputs.objects import join_texts
from goodgain.traces.tool_outputs.outcomes import is_nothing_found
from goodgain.traces.tool_outputs.readers import Outcome, looks_like_results, read_output
from goodgain.traces.tools import ToolPredicate, find_needed_argument, has_argument

__all__ = ["Query", "UnrecordedError", "check_blank", "make_strict_error", "read_queries"]

#: The field of the summary that counts searches of each status without results.
_COUNTER_NAMES = {"empty": "empty", "error": "failed", "unparsed": "unparsed", "unrecorded": "unrecorded"}
_UNPARSED_REMEDY = "read it with parse=, or say with tools= which tools search"
_ANSWER_REMEDY = "was the log cut off before the answer?"


class Query(NamedTuple):
    """One turn of a trace that is scored, with its iterations in order and the searches of each.

    `left_out`: whether iterations were left out, as their results are not recorded. `spent`: what each iteration cost
    and, behind these, what was spent after the last; empty where costs were not asked for.
    """

    turn: Turn
    own_id: str | None
    iterations: list[list[SearchCall]]
    left_out: bool
    spent: list[Usage]


def read_queries(trace: Trace, options: ReadOptions, iteration: str, summary: Summary) -> list[Query]:
    """Read the queries of a trace: its last turn, its last turn that searched, or all its turns.

    Raises:
        InputError: results cannot be read or are not recorded, and the options say to raise; or something in the trace
            is not understood, and it has no search or `strict` is set.
    """
    if options.strict and trace.unknown:
        raise make_strict_error(trace.unknown[0])
    used = _choose_turns(trace, options)
    before = sum(summary.searches.values()) if len(used) < len(trace.turns) else 0
    read = [_read_query(trace, turn, options, iteration, summary) for turn in used]
    for unknown in trace.unknown:
        summary.count_unknown(unknown.what, format_place(unknown.at))
    summary.traces += 1
    summary.turns_read += len(trace.turns)
    summary.turns_used += len(used)
    if len(used) < len(trace.turns):  # one turn is used
        elsewhere = sum(_count_searches(turn, options) for turn in trace.turns if turn is not used[0])
        summary.searches_elsewhere += elsewhere
        if elsewhere and sum(summary.searches.values()) == before:
            summary.searched_elsewhere += 1
            summary.without_search -= 1
    return read


def _choose_turns(trace: Trace, options: ReadOptions) -> list[Turn]:
    if options.turns == "all":
        return trace.turns
    if options.turns == "searching":
        searching = (turn for turn in reversed(trace.turns) if _count_searches(turn, options))
        return [next(searching, trace.turns[-1])]
    return trace.turns[-1:]


def _count_searches(turn: Turn, options: ReadOptions) -> int:
    """Return the number of searches in a turn; what they returned is not looked at."""
    is_search = options.is_search_tool
    return sum(_is_search(call, options, is_search) for step in turn.steps for call in step.calls)


def _is_search(call: ToolCall | SearchCall, options: ReadOptions, is_search: ToolPredicate) -> bool:
    """Return whether a call is a search: by its format, else by its name and, for some tools, its arguments."""
    if not isinstance(call, ToolCall):
        return True
    if call.is_search is not None:
        return call.is_search
    if not is_search(call.tool):
        return False
    needed = find_needed_argument(call.tool)
    return needed is None or options.tools is not None or has_argument(call.arguments, needed)


def make_strict_error(unknown: UnknownItem) -> InputError:
    """Return the error for something that is not understood, where the caller asked for none with `strict`."""
    expected = f" (expected: {unknown.expected})" if unknown.expected else ""
    return InputError(
        f"{format_place(unknown.at)}: {unknown.what} is not understood{expected}, and strict=True (--strict) allows no "
        "such item; leave it out to read the rest of the trace with a notice"
    )


def _read_query(trace: Trace, turn: Turn, options: ReadOptions, iteration: str, summary: Summary) -> Query:
    is_search = options.is_search_tool
    iterations: list[list[SearchCall]] = []
    meter = CostMeter(turn) if options.costs else None
    skipped = unparsed = 0
    for step in turn.steps:
        summary.steps += 1
        if meter is not None:
            meter.add(step)
        searches: list[SearchCall] = []
        for call in step.calls:
            if not _is_search(call, options, is_search):
                _count_skipped(call, summary)
                continue
            search = (
                _read_search(call, options, summary) if isinstance(call, ToolCall) else _check_search(call, options)
            )
            _count_search(search, summary)
            searches.append(search)
        if not searches:
            continue
        before = len(iterations)
        # A step with an unparsed search stays an iteration; with one unrecorded and 'skip', all of it is left out,
        # as its results would be incomplete.
        for group in [searches] if iteration == "step" else [[search] for search in searches]:
            statuses = {search.status for search in group}
            unparsed += "unparsed" in statuses
            if options.unrecorded == "skip" and "unrecorded" in statuses:
                skipped += 1
            else:
                iterations.append(group)
        if meter is not None:
            meter.end_iterations(len(iterations) - before)
    summary.iterations += len(iterations)
    if not iterations and not skipped:
        summary.without_search += 1
        _check_understood(trace, turn)
    summary.unparsed_iterations += unparsed
    summary.unparsed_queries += unparsed > 0
    # With every turn a query, the trace's own id is the conversation's: a turn only has an id that it names itself.
    own_id = turn.query_id if options.turns == "all" else (trace.query_id or turn.query_id)
    spent = [] if meter is None else [*meter.iterations, meter.rest]
    summary.costs_read += len(spent)
    summary.costs_known += sum(usage != Usage() for usage in spent)
    return Query(turn, own_id, iterations, skipped > 0, spent)


def _check_understood(trace: Trace, turn: Turn) -> None:
    """Check that a trace without a search in this turn was understood.

    Raises:
        InputError: the trace has an item that its format does not understand, which may have been a search.
    """
    if trace.unknown:
        first = trace.unknown[0]
        expected = f" (expected: {first.expected})" if first.expected else ""
        raise InputError(
            f"{format_place(first.at)}: {first.what} is not understood{expected}, and no search was found in turn "
            f"{turn.index} of the trace, so that it may have been one; name the format with format=, write the log in a "
            "format that is read, or pass over such traces with errors='skip'"
        )


def _read_search(call: ToolCall, options: ReadOptions, summary: Summary) -> SearchCall:
    outcome = _read_outcome(call, options)
    if outcome.status in ("unrecorded", "unparsed"):
        if call.may_lack and outcome.status == "unrecorded" and options.unrecorded == "raise":
            summary.blank += 1
            summary.first_blank = summary.first_blank or format_place(call.at)
        else:
            _raise_if_lacking(call, outcome.status, call.remedy, options)
    summary.count_unread(outcome.unread, format_place(call.at))
    asked = call.queries if call.queries is not None else call.arguments
    return SearchCall(call.tool, outcome.status, outcome.results, asked, call.call_id, call.at)


def _check_search(call: SearchCall, options: ReadOptions) -> SearchCall:
    """Return a search that a format has read itself, after the check of its status."""
    _raise_if_lacking(call, call.status, "", options)
    return call


def _raise_if_lacking(call: ToolCall | SearchCall, status: str, remedy: str, options: ReadOptions) -> None:
    where = f"{format_place(call.at)}: the search with {call.tool!r}"
    if status == "unrecorded" and options.unrecorded == "raise":
        raise UnrecordedError(
            f"{where} was made, but what it returned is not in the log ({remedy or _ANSWER_REMEDY}); "
            "unrecorded='empty' counts such searches as having found nothing, 'skip' leaves their iterations out"
        )
    if status == "unparsed" and options.errors == "raise":
        shown = repr(call.output)[:120] if isinstance(call, ToolCall) else ""
        raise InputError(f"{where} has output from which no results can be read ({shown}); {_UNPARSED_REMEDY}")


def check_blank(summary: Summary) -> None:
    """Check that not all searches of a reading have an empty text in place of their results.

    Raises:
        UnrecordedError: all have, so the log does not record results at all.
    """
    if summary.blank and summary.blank == sum(summary.searches.values()):
        raise UnrecordedError(
            f"{summary.first_blank}: the log has an empty text in place of the results of all {summary.blank} searches; "
            "write a log that records them, or say unrecorded='empty' to count them as having found nothing"
        )


class UnrecordedError(InputError):
    """Raised for a search whose results the log lacks.

    errors='skip' does not skip it: leaving out all traces of this kind would change every measure silently.
    """


def _read_outcome(call: ToolCall, options: ReadOptions) -> Outcome:
    """Read the outcome of a call. Results count even if the log says that the call failed."""
    if call.output is not UNANSWERED and call.spare is UNANSWERED and not call.failed:
        return read_output(call.output, call.at, parse=options.parse, doc_type=call.doc_type)
    outcome = Outcome("unparsed")
    for output in (call.output, call.spare):
        if output is UNANSWERED:
            continue
        outcome = read_output(output, call.at, parse=options.parse, doc_type=call.doc_type)
        if outcome.status != "unparsed":
            break
    if outcome.results:
        return outcome
    if call.failed:
        return Outcome("empty" if is_nothing_found(join_texts(call.output) or "") else "error")
    return Outcome("unrecorded") if call.output is UNANSWERED and call.spare is UNANSWERED else outcome


def _count_skipped(call: ToolCall | SearchCall, summary: Summary) -> None:
    """Count a call that is not a search, and note whether its answer looks like a list of results all the same."""
    summary.skipped_tools[call.tool] += 1
    # A call that its format decides on is not a question of its tool's name.
    if isinstance(call, ToolCall) and call.is_search is None and looks_like_results(call.output, call.at):
        summary.lookalikes[call.tool] += 1


def _count_search(search: SearchCall, summary: Summary) -> None:
    summary.searches[search.tool] += 1
    summary.results += len(search.results)
    if search.status != "ok":
        name = _COUNTER_NAMES[search.status]
        setattr(summary, name, getattr(summary, name) + 1)
