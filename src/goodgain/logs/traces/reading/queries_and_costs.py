"""Turns a trace into queries: chooses turns and searches, reads results, and sums costs."""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from goodgain.errors import InputError
from goodgain.logs.traces.conversations.record_objects import follow_path
from goodgain.logs.traces.conversations.turns_and_calls import add_usages
from goodgain.logs.traces.expected_values import find_outcomes, format_place, parse_time
from goodgain.logs.traces.model import (
    UNANSWERED,
    Holder,
    Result,
    SearchCall,
    Step,
    ToolCall,
    Trace,
    Turn,
    UnknownItem,
    Usage,
)
from goodgain.logs.traces.reading.lists_beside import settle_lists_beside
from goodgain.logs.traces.reading.opened_and_cited import Uses, read_uses
from goodgain.logs.traces.reading.read_options import ReadOptions
from goodgain.logs.traces.reading_summary import Summary
from goodgain.logs.traces.tool_outputs.outcomes import Outcome, is_nothing_found
from goodgain.logs.traces.tool_outputs.overlooked_results import find_unknown_urls
from goodgain.logs.traces.tool_outputs.readers import looks_like_results, read_output
from goodgain.logs.traces.tool_outputs.result_objects import join_texts
from goodgain.logs.traces.tools import hands_over
from goodgain.options import spell
from goodgain.schema import COMPLETED


class Query(NamedTuple):
    """A turn that became a query, with the searches of each iteration."""

    turn: Turn
    own_id: str | None
    iterations: list[list[SearchCall]]
    left_out: bool  # iterations without recorded results were left out
    spent: list[Usage]  # the costs of each iteration, then of the final answer; empty unless costs are read
    uses: Uses | None = None  # None unless uses are read


def read_queries(trace: Trace, options: ReadOptions, iteration: str, summary: Summary) -> list[Query]:
    """Make queries from the turns that `options.turns` selects in a trace."""
    if options.strict:
        count_unknown(trace.unknown, options, summary)
    turns_read = len(trace.turns)
    _settle_lists(trace, options, summary)
    turns = _choose_turns(trace, options)
    if options.query_text is not None:
        _replace_question(trace, turns[0], options.query_text)
    queries = [_read_query(trace, turn, options, iteration, summary) for turn in turns]

    count_unknown(trace.unknown, options, summary)  # of traces that are read
    summary.traces += 1
    summary.turns_read += turns_read
    summary.turns_used += turns_read if options.turns == "joined" else len(turns)
    searches_elsewhere = _count_calls_elsewhere(trace, turns, options, summary)
    _count_queries_without_search(queries, searches_elsewhere, summary)
    return queries


def _replace_question(trace: Trace, question_turn: Turn, path: str) -> None:
    """Make the text at a path of the record the question, in place of what the user wrote in the turns."""
    text = follow_path(trace.record, path)
    if not isinstance(text, str) or not text.strip():
        remedy = f"give another path with {spell('query_text')}"
        raise InputError(f"{format_place(trace.at)}: has no text at {path}; {remedy}")
    for turn in trace.turns:
        turn.user_text = ""
        turn.asked = None
    question_turn.user_text = text


def _count_calls_elsewhere(trace: Trace, turns: list[Turn], options: ReadOptions, summary: Summary) -> int:
    """Count the calls in turns that did not become queries, and return how many of them are searches."""
    if len(turns) == len(trace.turns):
        return 0
    (used_turn,) = turns  # either all turns are used, or one
    calls = [call for turn in trace.turns if turn is not used_turn for call in turn.calls]
    summary.tools_elsewhere.update(call.tool for call in calls)
    searches = sum(_is_search(call, options) for call in calls)
    summary.searches_elsewhere += searches
    return searches


def _count_queries_without_search(queries: list[Query], searches_elsewhere: int, summary: Summary) -> None:
    """Count queries without any search, recorded or not: apart if the conversation searched in a turn that is not used.

    A call that hands over to another agent is counted too: the other agent may have searched.
    """
    idle = [query.turn for query in queries if not query.iterations and not query.left_out]
    for turn in idle:
        handing_calls = (call for call in turn.calls if hands_over(call.tool))
        call = next(handing_calls, None)
        if call is not None:
            summary.count("handed_over", f"{call.tool} at {format_place(call.at)}")
    if searches_elsewhere:
        summary.queries_searched_earlier += len(idle)
    else:
        summary.without_search += len(idle)


def _settle_lists(trace: Trace, options: ReadOptions, summary: Summary) -> None:
    calls = _name_called_tools(trace, options)
    has_search = any(_is_search(call, options) for call in calls)
    settle_lists_beside(trace, options, summary, has_search=has_search)


def _name_called_tools(trace: Trace, options: ReadOptions) -> list[ToolCall]:
    calls = [call for turn in trace.turns for call in turn.calls]
    for call in calls:
        call.name_called_tool(options.tool_rule)
    return calls


def _choose_turns(trace: Trace, options: ReadOptions) -> list[Turn]:
    """Return the turns that become queries. With turns="joined", the trace then has a single turn too."""
    if options.turns == "last":
        return [trace.turns[-1]]
    if options.turns == "searching":
        return [_find_searching_turn(trace.turns, options)]
    if options.turns == "joined":
        trace.turns = [_join_turns(trace.turns)]  # so no turn of the trace is left over as unused
    return trace.turns


def _find_searching_turn(turns: list[Turn], options: ReadOptions) -> Turn:
    """Return the last turn with a search, or the last turn if none has one."""
    for turn in reversed(turns):
        if any(_is_search(call, options) for call in turn.calls):
            return turn
    return turns[-1]


def _join_turns(turns: list[Turn]) -> Turn:
    """Merge the turns of a conversation into one turn, with the id and question of the first turn."""
    for turn in turns[1:]:
        if turn.steps:
            _add_time_of_first_step(turn)

    answers = [turn.answer for turn in turns if turn.answer is not None]
    opens_are_known = {turn.opens_are_known for turn in turns} - {None}
    return replace(
        turns[0],
        user_text="\n".join(turn.user_text for turn in turns if turn.user_text),
        asked=turns[0].user_text,
        steps=[step for turn in turns for step in turn.steps],
        answer="\n\n".join(answers) if answers else None,
        cited=[citation for turn in turns for citation in turn.cited],
        opens_are_known=all(opens_are_known) if opens_are_known else None,
    )


def _add_time_of_first_step(turn: Turn) -> None:
    """Add the time since the user wrote to the usage of a turn's first step. So the time in which the user wrote is left out."""
    step = turn.steps[0]
    start, end = parse_time(turn.time), parse_time(step.time)
    has_seconds = step.usage is not None and step.usage.seconds is not None
    if start and end and start <= end and not has_seconds:
        step.usage = add_usages(step.usage, Usage(seconds=(end - start).total_seconds()))


def join_logs(traces: list[Trace], options: ReadOptions) -> Trace:
    """Merge several logs of one query into one trace. `options.order` sorts the steps by time, or keeps them log by log."""
    for trace in traces:
        _name_called_tools(trace, options)
    turns = [(trace, turn) for trace in traces for turn in _choose_turns(trace, options)]
    joined = _join_turns([turn for _, turn in turns])
    if options.order == "time":
        time_of = {id(step): time for trace, turn in turns for step, time in _time_steps(trace, turn)}
        joined.steps.sort(key=lambda step: time_of[id(step)])

    unknown = tuple(item for trace in traces for item in trace.unknown)
    holders = [holder for trace in traces for holder in trace.holders]
    holders += [Holder(trace.record, trace.at, 1, is_state=True) for trace in traces[1:]]
    return replace(traces[0], turns=[joined], unknown=unknown, outcomes=_join_outcomes(traces), holders=holders)


def _join_outcomes(traces: list[Trace]) -> dict[str, float]:
    """Return the last value of each outcome. One log that broke off makes the query incomplete."""
    outcomes: dict[str, float] = {}
    is_incomplete = False
    for trace in traces:
        outcomes_of_trace = read_outcomes(trace)
        is_incomplete |= outcomes_of_trace.get(COMPLETED) == 0
        outcomes |= outcomes_of_trace
    if is_incomplete:
        outcomes[COMPLETED] = 0.0
    return outcomes


def read_outcomes(trace: Trace) -> dict[str, float]:
    return find_outcomes(trace.record) if trace.outcomes is None else trace.outcomes


def _time_steps(trace: Trace, turn: Turn) -> Iterator[tuple[Step, float]]:
    """Yield each step with its time. A step without a time gets the time of the previous step."""
    clock = parse_time(turn.time)
    for step in turn.steps:
        clock = parse_time(step.time) or clock
        if clock is None and step.calls:
            raise InputError(
                f"{format_place(trace.at)}: has no times, so the searches in this log and in the other logs of the query cannot "
                f"be ordered; list the logs in chronological order, and pass {spell('order', 'given')}"
            )
        yield step, clock.timestamp() if clock else 0.0


def _is_search(call: ToolCall, options: ReadOptions) -> bool:
    if call.is_search is not None:
        return call.is_search
    return options.tool_rule.searches_with(call.tool, call.arguments)


def _is_open(call: ToolCall, options: ReadOptions) -> bool:
    if call.opened is not None:
        return bool(call.opened)
    return not call.is_search and options.tool_rule.opens(call.tool)


def count_unknown(items: Iterable[UnknownItem], options: ReadOptions, summary: Summary) -> None:
    """Count the items of a log that the format does not understand. With strict=True, raise InputError for the first such item."""
    for unknown in items:
        if options.strict:
            raise InputError(f"{unknown}. With {spell('strict', True)} this is an error; else it is a notice")
        summary.count_unknown(unknown.what, format_place(unknown.at))


def _read_query(trace: Trace, turn: Turn, options: ReadOptions, iteration: str, summary: Summary) -> Query:
    """Make a query from a turn: the searches of each iteration, and if options ask for them, its costs and uses.

    Raise NotUnderstoodError if the turn has no search, but the trace has an item that may be one.
    """
    iterations: list[list[SearchCall]] = []
    iterations_of_steps: list[int] = []  # how many iterations each step has
    opens: list[tuple[int, ToolCall]] = []  # with the number of earlier iterations
    skipped = unparsed = 0
    for step in turn.steps:
        groups, opens_of_step = _read_step(step, options, iteration, summary)
        earlier_iterations = len(iterations)
        iterations_before = [earlier_iterations]  # by the number of earlier groups of the step
        for group in groups:
            # A step with an unparsed search remains an iteration. 'skip' leaves out a step with an unrecorded search: the
            # results of the step are incomplete.
            statuses = {search.status for search in group}
            unparsed += "unparsed" in statuses
            if options.unrecorded == "skip" and "unrecorded" in statuses:
                skipped += 1
            else:
                iterations.append(group)
            iterations_before.append(len(iterations))
        opens += [(iterations_before[number], call) for number, call in opens_of_step]
        iterations_of_steps.append(len(iterations) - earlier_iterations)

    summary.steps += len(turn.steps)
    summary.iterations += len(iterations)
    summary.unparsed_iterations += unparsed
    summary.unparsed_queries += unparsed > 0
    if not iterations and not skipped and trace.unknown:
        raise _make_not_understood_error(trace.unknown[0], turn)

    # If every turn is a query, the id of the trace is not the id of a query.
    own_id = turn.query_id if options.turns == "all" else (trace.query_id or turn.query_id)
    spent = _sum_costs(turn, iterations_of_steps) if options.costs else []
    summary.costs_read += len(spent)
    summary.costs_known += sum(usage != Usage() for usage in spent)
    uses = None
    if options.uses:
        can_open = bool(opens) or any(_is_open(call, options) for any_turn in trace.turns for call in any_turn.calls)
        uses = read_uses(turn, iterations, opens, can_open=can_open)
        summary.unnamed_opens += uses.unnamed
    return Query(turn, own_id, iterations, skipped > 0, spent, uses)


def _read_step(
    step: Step, options: ReadOptions, iteration: str, summary: Summary
) -> tuple[list[list[SearchCall]], list[tuple[int, ToolCall]]]:
    """Return the searches of a step, grouped by iteration, and the calls that open documents with the number of earlier groups."""
    searches: list[SearchCall] = []
    opens: list[tuple[int, ToolCall]] = []
    for call in step.calls:
        is_open = _is_open(call, options)
        if is_open:  # in a step with searches, it belongs to the previous iteration
            opens.append((len(searches) if iteration == "call" else 0, call))
        if _is_search(call, options):
            searches.append(_read_search(call, options, summary))
            continue

        summary.skipped_tools[call.tool] += 1
        if is_open:
            summary.opening_tools[call.tool] += 1
        # If the format decided on the call, the name of the tool does not matter.
        if call.is_search is None and looks_like_results(call.output, call.at):
            summary.lookalikes[call.tool] += 1

    if iteration == "call":
        return [[search] for search in searches], opens
    return ([searches] if searches else []), opens


def _read_search(call: ToolCall, options: ReadOptions, summary: Summary) -> SearchCall:
    """Read a search, and count it in `summary`. Raise InputError for missing or unreadable results, unless options allow them."""
    outcome = _read_outcome(call, options)
    place = format_place(call.at)
    if outcome.status == "unrecorded" and options.unrecorded == "raise":
        if call.perhaps:
            raise UnrecordedError(
                f"{place}: the log has a search with {call.tool!r}, but goodgain does not find its output: perhaps "
                f"it is under {call.perhaps!r}. Rename that key to output, or write the searches in the format jsonl "
                "(docs/traces/your_own_agent.md)"
            )
        if not call.may_lack:
            error = UnrecordedError(
                f"{place}: the search with {call.tool!r} was made, but its output is not in the log "
                f"({call.remedy or 'was the log cut off before the answer?'}); {spell('unrecorded', 'empty')} counts such "
                "searches as searches with no results, and 'skip' leaves out their iterations"
            )
            error.tool, error.place = call.tool, place
            if spell("citations", True) in call.remedy:
                error.remedy = call.remedy
            raise error
        summary.count("blank", place)

    if outcome.status == "unparsed" and options.errors == "raise":
        raise InputError(
            f"{place}: no results can be read from the output of the search with {call.tool!r} "
            f"({repr(call.output)[:120]}). Write the searches in the format jsonl, where each result is an object with doc_id, "
            "url, title or snippet (docs/traces/your_own_agent.md). Or read the output with parse= of read_traces. If this "
            f"tool does not search, name the search tools with {spell('tools')}"
        )

    _count_search(call, outcome, summary)
    source = call.arguments if call.queries is None else call.queries
    return SearchCall(outcome.status, outcome.results, source, call.call_id, call.arguments)


def _count_search(call: ToolCall, outcome: Outcome, summary: Summary) -> None:
    """Count a search in the summary: its results, its status, and parts of its output that were not read."""
    place = format_place(call.at)
    if outcome.unread:
        summary.count("unread", place, outcome.unread)
        summary.searches_with_unread += 1
    summary.unknown_urls.update(find_unknown_urls(outcome.results))
    if _has_chunks_of_one_document(outcome.results):
        summary.count("shared_documents", place)
    summary.searches[call.tool] += 1
    summary.results += len(outcome.results)
    if outcome.status != "ok":
        name = "failed" if outcome.status == "error" else outcome.status
        setattr(summary, name, getattr(summary, name) + 1)


def _has_chunks_of_one_document(results: Sequence[Result]) -> bool:
    """Return whether several results have one document id but different chunk ids."""
    if not results or not results[0].ids:
        return False
    chunks: dict[str, set[str]] = {}
    for result in results:
        if result.doc_id is not None:
            chunks.setdefault(result.doc_id, set()).update(value for name, value in result.ids if name == "chunk_id")
    return any(len(ids) > 1 for ids in chunks.values())


class NotUnderstoodError(InputError):
    """Raised if a trace has no search, and an item that may be one is not understood."""

    fault, place = "", ""  # the sentence without its advice, and the place of the item


def _make_not_understood_error(unknown: UnknownItem, turn: Turn) -> NotUnderstoodError:
    """Return the error of a turn without a search, in a trace with an item that may have been a search."""
    fault = f"{unknown}, and no search was found in turn {turn.index} of the trace"
    error = NotUnderstoodError(
        f"{fault}: this item may be a search; name the format with {spell('format')}, write the log in a known format, or "
        f"leave out such traces with {spell('errors', 'skip')}"
    )
    error.fault, error.place = fault, unknown.at
    return error


class UnrecordedError(InputError):
    """Raised if a log lacks the results of a search, even with errors='skip': a skip would silently change every measure."""

    tool, place = "", ""  # the tool of the search, and its place in the log
    remedy = ""  # the option that gives the search results


def _read_outcome(call: ToolCall, options: ReadOptions) -> Outcome:
    """Read the outcome of a call. Results in its output count even if the log reports that the call failed."""
    outcome = None
    for output in (call.output, call.spare):
        if output is not UNANSWERED and (outcome is None or outcome.status in ("unparsed", "empty")):
            outcome_of_output = read_output(output, call.at, parse=options.parse, doc_type=call.doc_type)
            if outcome is None or outcome.status == "unparsed" or outcome_of_output.results:
                outcome = outcome_of_output

    if call.failed and not (outcome and outcome.results):
        found_nothing = is_nothing_found(join_texts(call.output) or "")
        return Outcome("empty" if found_nothing else "error")
    return outcome or Outcome("unrecorded")


def _sum_costs(turn: Turn, iterations_of_steps: list[int]) -> list[Usage]:
    """Return the costs of each iteration and, last, of the final answer."""
    costs: list[Usage] = []
    cost = Usage()  # since the previous iteration
    clock = parse_time(turn.time)
    for step, iterations in zip(turn.steps, iterations_of_steps, strict=True):
        cost = add_usages(cost, step.usage) or cost
        # The default duration is the time since the previous step.
        time = parse_time(step.time)
        if time is not None:
            has_seconds = step.usage is not None and step.usage.seconds is not None
            if clock is not None and time >= clock and not has_seconds:
                cost = add_usages(cost, Usage(seconds=(time - clock).total_seconds())) or cost
            clock = time

        # The first iteration of a step gets all costs since the previous iteration.
        if iterations:
            # The other iterations of the step cost 0 of what the log records, and stay unknown in the rest.
            free = Usage(*(None if getattr(cost, name) is None else 0 for name in Usage.__struct_fields__))
            costs += [cost, *[free] * (iterations - 1)]
            cost = Usage()
    return [*costs, cost]
