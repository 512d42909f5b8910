"""Counts the traces, turns, steps, searches by tool, results and errors that were read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from goodgain.errors import count_of, notice
from goodgain.logs.traces.tools import describe_tool, is_known_tool
from goodgain.options import spell

#: How many errors, query ids and names a notice shows; it counts the others.
_MAX_ERRORS_SHOWN, _MAX_IDS_SHOWN, _MAX_NAMES_SHOWN = 5, 10, 20
#: A limit against malicious input: how many kinds of unknown items are counted separately.
_MAX_KINDS = 10_000


class RunName(NamedTuple):
    """The name of a run: its system and, if the system has several runs, its replicate."""

    system: str | None = None
    replicate: str | None = None

    @property
    def label(self) -> str:
        """The value of `--system` that selects this run: `agent`, or `agent-2` for replicate 2 of `agent`."""
        return "-".join(part for part in self if part)


class Summary(msgspec.Struct):
    """The counts of the traces that were read.

    Searches, tools, results and statuses are counted only in the turns that became queries. `str(summary)` is a report.
    """

    files: int = 0
    traces: int = 0
    formats: Counter[str] = msgspec.field(default_factory=Counter)
    turns_read: int = 0
    turns_used: int = 0
    steps: int = 0
    iterations: int = 0
    searches: Counter[str] = msgspec.field(default_factory=Counter)
    skipped_tools: Counter[str] = msgspec.field(default_factory=Counter)
    opening_tools: Counter[str] = msgspec.field(default_factory=Counter)
    unnamed_opens: int = 0
    systems: Counter[RunName] = msgspec.field(default_factory=Counter)
    results: int = 0
    empty: int = 0
    failed: int = 0
    unparsed: int = 0
    unrecorded: int = 0
    without_search: int = 0
    idle: Counter[RunName] = msgspec.field(default_factory=Counter)
    lookalikes: Counter[str] = msgspec.field(default_factory=Counter)
    searches_elsewhere: int = 0
    tools_elsewhere: Counter[str] = msgspec.field(default_factory=Counter)
    queries_searched_earlier: int = 0
    broken_off: int = 0
    lost_ids: list[str] = msgspec.field(default_factory=list)
    passed_over: int = 0
    other_roots: int = 0
    handed_over: int = 0
    unknown: Counter[str] = msgspec.field(default_factory=Counter)
    costs_read: int = 0
    costs_known: int = 0
    blank: int = 0
    documents_beside: int = 0
    doubtful_lists: int = 0
    shared_documents: int = 0
    lost_searches: int = 0
    unread: int = 0
    searches_with_unread: int = 0
    unknown_urls: Counter[str] = msgspec.field(default_factory=Counter)
    unparsed_queries: int = 0
    unparsed_iterations: int = 0
    calls_as_iterations: Counter[str] = msgspec.field(default_factory=Counter)
    errors: int = 0
    first_errors: list[str] = msgspec.field(default_factory=list)
    choices: list[str] = msgspec.field(default_factory=list)
    joined_runs: str = ""
    joined_by_id: int = 0
    joined_by_question: int = 0
    joined_to_none: int = 0
    earlier_by_id: bool = False
    joined_logs: int = 0
    queries_of_logs: int = 0
    own_ids: int = 0
    ids_from: str = ""
    unnamed: int = 0
    first_unnamed: str = ""
    doubtful_keys: int = 0
    models: Counter[tuple[str, str]] = msgspec.field(default_factory=Counter)  # queries by run and model
    without_model: int = 0
    unused_tools: list[str] = msgspec.field(default_factory=list)
    unread_subfolders: Counter[str] = msgspec.field(default_factory=Counter)
    other_ids: int = 0
    unsorted: int = 0
    replaced_messages: int = 0
    repeated_messages: int = 0
    planned: int = 0
    firsts: dict[str, str] = msgspec.field(default_factory=dict)

    def add(self, other: Summary) -> None:
        """Add the counts of another summary. Of texts and first places, keep the own ones; the other's only fill gaps."""
        for name in self.__struct_fields__:
            value, addition = getattr(self, name), getattr(other, name)
            if isinstance(value, Counter):
                value.update(addition)
            elif isinstance(value, (str, bool)):
                setattr(self, name, value or addition)
            elif isinstance(value, dict):
                setattr(self, name, addition | value)
            elif isinstance(value, list):
                value.extend(member for member in addition if name != "choices" or member not in value)
            else:
                setattr(self, name, value + addition)

    @property
    def called_tools(self) -> set[str]:
        """The names of all tools that the logs call, including calls in turns that did not become queries."""
        return {*self.searches, *self.skipped_tools, *self.tools_elsewhere}

    def pop_counts(self) -> Summary:
        """Return a copy of this summary, and reset the counts of the original to zero."""
        copy = msgspec.structs.replace(self)
        empty = Summary()
        for name in self.__struct_fields__:
            setattr(self, name, getattr(empty, name))
        return copy

    def count_error(self, error: Exception, query_id: str | None = None) -> None:
        """Count a trace or file that was skipped because of an error, and keep the id of the lost query if the id is known."""
        self.errors += 1
        if query_id:
            self.lost_ids.append(query_id)
        if len(self.first_errors) < _MAX_ERRORS_SHOWN:
            self.first_errors.append(str(error))

    def count_unknown(self, item: str, at: str) -> None:
        """Count an item or field that the format does not know. `at` is the place in the log."""
        self.firsts.setdefault("unknown", at)
        kind = item[:200]
        if kind in self.unknown or len(self.unknown) < _MAX_KINDS:
            self.unknown[kind] += 1

    def count(self, name: str, at: str, number: int = 1) -> None:
        """Add `number` to the counter `name`. The notice shows the first `at` (a place in a log, or a name) of each counter."""
        setattr(self, name, getattr(self, name) + number)
        self.firsts.setdefault(name, at)

    def count_unnamed(self, query_id: str) -> None:
        """Count a query that the table `query_ids=` does not name. The notice lists the first ids."""
        self.unnamed += 1
        if self.unnamed == 1:
            self.first_unnamed = query_id
        elif self.unnamed <= _MAX_IDS_SHOWN:
            self.first_unnamed += f", {query_id}"
        elif self.unnamed == _MAX_IDS_SHOWN + 1:
            self.first_unnamed += ", ..."

    def __str__(self) -> str:
        return "\n".join(self._describe())

    def _describe(self) -> Iterator[str]:
        yield (
            f"{count_of(self.traces, 'trace')} in {count_of(self.files, 'file')}, "
            f"{count_of(self.turns_read, 'turn')} read, {self.turns_used:,} used"
        )
        if self.formats:
            yield f"traces by format: {_format_counts(self.formats)}"
        yield f"{count_of(self.steps, 'step')}, {count_of(self.iterations, 'iteration')} (searches)"
        yield from self._describe_tools()
        yield (
            f"{count_of(self.results, 'result')}; searches that found nothing {self.empty}, failed {self.failed}, "
            f"could not be read {self.unparsed}, were not recorded {self.unrecorded}"
        )
        yield from self._describe_systems()
        yield from self._describe_joins()
        yield from self._describe_query_ids()
        yield from self._describe_left_out()
        yield from (f"option: {choice}" for choice in self.choices)

    def _describe_tools(self) -> Iterator[str]:
        yield f"{count_of(sum(self.searches.values()), 'search', 'searches')}; tools by name:"
        if not (self.searches or self.skipped_tools):
            yield "  none"

        for name, count in self.searches.most_common():
            decision = describe_tool(name, counted=True, opens=self.opening_tools[name] > 0)
            yield f"  {name or 'without a name'} {count}: {decision}"
        for name, count in self.skipped_tools.most_common():
            decision = describe_tool(name, counted=False, opens=self.opening_tools[name] > 0)
            if self.lookalikes[name]:
                decision += f"; {self.lookalikes[name]} of its answers look like lists of results"
            yield f"  {name or 'without a name'} {count}: {decision}"

    def _describe_systems(self) -> Iterator[str]:
        """Say how many queries each system has, and name the models of each run that has several."""
        if any(name.label for name in self.systems):
            by_label = Counter({name.label: count for name, count in self.systems.items()})
            yield f"queries by system: {_format_counts(by_label)}"

        by_run: dict[str, Counter[str]] = {}
        for (run, model), count in self.models.items():
            by_run.setdefault(run, Counter())[model] += count
        for run, counts in by_run.items():
            if len(counts) > 1:
                yield f"queries{f' of {run}' if run else ''} by model: {_format_counts(counts)}"

    def _describe_joins(self) -> Iterator[str]:
        if self.joined_runs:
            by_question_too = f" ({spell('earlier_queries')} joins by question too)" if self.earlier_by_id else ""
            yield (
                f"queries of several {self.joined_runs}: {self.joined_by_id} joined by id{by_question_too}, "
                f"{self.joined_by_question} joined by question, "
                f"{self.joined_to_none} in one {self.joined_runs.removesuffix('s')} only"
            )
        if self.joined_logs:
            queries = count_of(self.queries_of_logs, "query", "queries")
            yield f"logs that {spell('query_ids')} joins: {self.joined_logs} are {queries}"

    def _describe_query_ids(self) -> Iterator[str]:
        if self.ids_from:
            yield f"query ids from `{self.ids_from}`"
        if self.unnamed:
            yield f"queries that {spell('query_ids')} does not name: {self.unnamed}"

    def _describe_left_out(self) -> Iterator[str]:
        """Say what does not count (searches of other turns, unknown items, errors), and how many queries never searched."""
        if self.searches_elsewhere:
            yield self._describe_elsewhere()
        if self.without_search:
            idle = [f"{name.label} {count} of {self.systems[name]}" for name, count in self.idle.items() if name.label]
            yield f"queries that never searched: {', '.join(idle) or self.without_search}"
        if self.broken_off:
            yield f"traces that broke off according to their logs: {self.broken_off}"
        if self.passed_over:
            yield f"{self.passed_over} exchanges with other endpoints were passed over"
        if self.other_roots:
            yield f"{self.other_roots} root spans without a span of a known kind were passed over"
        if self.unknown:
            yield f"not understood: {_format_counts(self.unknown)}"
        if self.errors:
            yield f"{count_of(self.errors, 'trace or file', 'traces or files')} left out because of errors"

    def _describe_elsewhere(self) -> str:
        """Say how many searches were in turns before the one that became the query, and are not counted."""
        all_searches = sum(self.searches.values()) + self.searches_elsewhere
        turn = "the last turn that searched" if spell("turns", "searching") in self.choices else "the last turn"
        sentence = (
            f"{self.searches_elsewhere} of {all_searches} searches are before {turn} and do not count; "
            f"{spell('turns', 'all')} counts them"
        )
        if self.queries_searched_earlier:
            sentence += f"; queries that searched in earlier turns only: {self.queries_searched_earlier}"
        return sentence

    def give_notices(self) -> None:
        """Give a notice for each count that affects the meaning of results."""
        options = {name: spell(name) for name in ("outcomes", "query_id", "query_ids", "tools")}
        options |= {name: spell("iteration", name) for name in ("sequential", "step")}
        options["unrecorded"] = spell("unrecorded", "empty")
        options["query_id_of_first"] = spell("query_id", self.firsts.get("other_ids", ""))
        names_of_numbers = ("unparsed_iterations", "unparsed_queries", "searches_with_unread")
        numbers = {name: _Number(getattr(self, name)) for name in names_of_numbers}

        for name, text in COUNTER_NOTICES.items():
            count = getattr(self, name)
            if not count:
                continue
            counts = ""
            if isinstance(count, Counter):
                counts = _format_counts(count)
                count = count.total()
            numbers["count"] = _Number(count)
            first = self.firsts.get(name, "")
            notice(
                name, text.format(first=first, counts=counts, first_unnamed=self.first_unnamed, **numbers, **options)
            )

        for text in self._describe_particulars():
            notice("log_reading", text)

    def _describe_particulars(self) -> Iterator[str]:
        """Yield the notices that need more than one counter, or that name what was counted."""
        for folder, count in self.unread_subfolders.items():
            yield (
                f"{folder}: subfolders not read: {count}. To read logs there, pass a pattern, such as '{folder}/*/*.json'"
            )
        if self.joined_runs and not (self.joined_by_id or self.joined_by_question):
            yield (
                f"the {self.joined_runs} share no query: neither ids nor questions are the same. Give equal queries one id "
                f"with {spell('query_ids')}."
            )

        for name, count in self.calls_as_iterations.items():
            yield (
                f"{name} does not record which calls belong to one step of the agent: each of {count} searches counts as "
                f"an iteration; pass {spell('iteration', 'call')} to confirm this, {spell('iteration', 'step')} to group them"
            )

        if self.unused_tools:
            called_names = sorted(filter(None, self.called_tools))[:_MAX_NAMES_SHOWN]
            yield (
                f"the logs do not call {', '.join(self.unused_tools)}, which {spell('tools')} names. Correct the name, or leave it "
                f"out. The logs call {', '.join(called_names) or 'no tool'}."
            )

        if self.queries_searched_earlier:
            yield (
                f"{self._describe_elsewhere()}. They count as queries without a search; {spell('turns', 'searching')} takes the "
                "last turn of each trace that searched"
            )

        yield from self._describe_lookalikes()
        if self.costs_read and not self.costs_known:
            yield (
                "goodgain reads no tokens, seconds or prices from these traces, so all costs are null; "
                "docs/reference/trace_formats.md says what each format records"
            )

        for name, count in self.unknown_urls.most_common(1):
            yield (
                f"the results of {count_of(count, 'search', 'searches')} have no URL or id that goodgain knows, so their texts "
                f"identify their documents, but {name!r} holds URLs: name it url in the log, or read the results with parse="
            )
        if self.errors:
            yield self.describe_errors()

    def _describe_lookalikes(self) -> Iterator[str]:
        """Name tools that may search: `tools=` was not given, and their answers look like results."""
        names = [name for name, _ in self.lookalikes.most_common(_MAX_NAMES_SHOWN) if not is_known_tool(name)]
        if not names or any(choice.startswith(spell("tools")) for choice in self.choices):
            return
        shares = [
            f"{name or 'without a name'} ({self.lookalikes[name]} of {self.skipped_tools[name]})" for name in names
        ]
        search_tools = [*dict.fromkeys(filter(None, [*self.searches, *names]))]
        yield (
            f"the answers of tools that do not count as searches look like lists of results: {', '.join(shares)}; "
            f"if they search, pass {spell('tools', search_tools)}"
        )

    def describe_errors(self) -> str:
        errors = self.first_errors[:_MAX_ERRORS_SHOWN]
        verb = "was" if self.errors == 1 else "were"
        count = count_of(self.errors, "trace or file", "traces or files")
        sentence = f"{count} {verb} left out: {' | '.join(errors)}"
        if self.errors > len(errors):
            sentence += f" (and {self.errors - len(errors)} more)"
        return sentence


class _Number(int):
    """A number that is written with the words that fit it.

    `{count:search has|searches have}` gives `1 search has` or `3 searches have`; `{count:~its|their}` gives the word alone.
    """

    def __format__(self, words: str) -> str:
        if not words:
            return str(int(self))
        singular, plural = words.removeprefix("~").split("|")
        word = singular if self == 1 else plural
        return word if words.startswith("~") else f"{int(self)} {word}"


#: The notice for each counter that is not 0. {counts} lists counts by name. {first} is the first place or name.
COUNTER_NOTICES = {
    "own_ids": "{query_id} was ignored for {count:query that has an id|queries that have ids} in the logs, such as "
    "{first!r}. Give other ids with {query_ids}.",
    "unnamed": "{query_ids} does not name all queries; {count:keeps its id|keep their ids}: "
    "{first_unnamed}. Add them to the table.",
    "doubtful_keys": "the keys {first} may be query ids, but their calls count as one query ({count:such "
    "object|such objects}). If "
    "they are ids, write one record per line with a field query_id; else confirm with {query_id}.",
    "without_model": "{count:search is in a trace|searches are in traces} without a model's span, the first at "
    "{first}. {count:~It "
    "follows others|Not all overlap in time}, but each trace counts as one iteration. {sequential} splits them by "
    "time; {step} confirms this.",
    "other_ids": "calls of one query have several values of `{first}`. If each value is a query, pass "
    "{query_id_of_first}; "
    "else confirm with {query_id}.",
    "unsorted": "the events of {count:query|queries}, the first at {first}, are not in the order of their "
    "times. Some have no "
    "time, so the order of the log counts. If it is wrong, sort the log.",
    "replaced_messages": "{count:message is on a branch|messages are on branches} that a later message with the "
    "same parent replaces, "
    "the first at {first}. {count:~It is left out. If it counts|They are left out. If they count}, remove the "
    "parents' ids.",
    "repeated_messages": "{count:message|messages}, the first at {first}, also {count:~begins|begin} a longer list "
    "of messages, and "
    "{count:~counts|count} once. If the lists are different queries, give each an id (query_id).",
    "planned": "{count:call of a plan has no answer and does not count as a search|calls of plans have no "
    "answer and do not "
    "count as searches}, the first at {first}. If {count:~it ran, record its|they ran, record their} results.",
    "unknown": "{count:item in the traces is not understood and was|items in the traces are not "
    "understood and were} left "
    "out: {counts}; the first at {first}; any searches among them are missing",
    "other_roots": "{count:root span has|root spans have} no span of a known kind (a model, tool, agent ...) "
    "and {count:~is not "
    "a query|are not queries}: the first is {first}. If an agent is among them, export its spans too",
    "broken_off": "the logs mark {count:trace|traces} as broken off, the first at {first}. {count:~Its "
    "query|Their queries} may "
    "lack searches. {outcomes} marks {count:~it|them} in the column completed",
    "handed_over": "{count:query has no search, but hands|queries have no search, but hand} work to another "
    "agent, the first "
    "with {first}. If its searches are in another log, convert that log too. Else the {count:~query "
    "counts|queries count} as never searching.",
    "unnamed_opens": "{count:call opens a document|calls open documents} that the log does not name. The table "
    "of uses omits "
    "{count:~it|them}. Where the log hides the document, opens are unknown (null).",
    "unread": "{searches_with_unread:search has|searches have} {count:object or text|objects or texts} in "
    "{searches_with_unread:~its|their} output that {count:~looks like a result and was|look like results and "
    "were} not read, the first at {first}; if {count:~it is a result, read it|they are results, read them} with "
    "parse= of read_traces",
    "documents_beside": "the logs list {count:document|documents} beside the searches that no tool returned, the "
    "first at {first}. "
    "{count:~It does|They do} not count. If a list is a search of its own, name its key with {tools}.",
    "shared_documents": "in {count:search|searches}, the first at {first}, several results have one doc_id but "
    "different chunk ids. "
    "They count as one document that repeats. To judge chunks, leave out doc_id in the log.",
    "lost_searches": "{count:trajectory of Codex may lack its|trajectories of Codex may lack their} web searches, the first at "
    "{first}. Exporters leave out the searches that Codex makes itself. Convert Codex's own rollouts.",
    "doubtful_lists": "{count:record without a search holds|records without a search hold} lists with ids or "
    "titles, the first at "
    "{first}. If they are results of a search, name the key of the list with {tools}.",
    "blank": "{count:search has an empty text in place of its|searches have an empty text in place of "
    "their} results, the "
    "first at {first}, and {count:~counts as a search|count as searches} without results; pass {unrecorded} to "
    "confirm this, 'skip' to leave {count:~its iteration|their iterations} out",
    "unparsed": "{count:search has output that could not be read and counts as a search|searches have "
    "output that could not "
    "be read and count as searches} without results: {unparsed_iterations:iteration|iterations} of "
    "{unparsed_queries:query|queries}; read them with parse= of read_traces, or name the search tools with "
    "{tools}",
}


def _format_counts(counts: Counter[str]) -> str:
    parts = [f"{name or 'without a name'} {count}" for name, count in counts.most_common(_MAX_NAMES_SHOWN)]
    if len(counts) > len(parts):
        parts.append(f"and {len(counts) - len(parts)} more")
    return ", ".join(parts) or "none"
