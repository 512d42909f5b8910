"""Defines the outcome of a search, and recognises texts and objects that report a failure or no results."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, NamedTuple

from msgspec.structs import replace

from goodgain.files.json_text import parse_if_json
from goodgain.logs.traces.expected_values import as_number
from goodgain.logs.traces.model import Result, Status
from goodgain.logs.traces.tool_outputs.result_objects import normalise_keys

#: Prefixes of the error messages of agent frameworks and MCP servers.
FAILURES = (
    *("[Search] ", "Error executing", "Error: ", "Error invoking", "Error calling", "Error during", "Error while"),
    *("Error in tool", "An error occurred", "ToolException", "Tool error", "Traceback (most recent call last)"),
    "Web search error: ",
)
#: The beginning of Gemini CLI's output. Without `Sources:`, the output has prose but no list of results.
GEMINI_CLI = "Web search results for "
#: The beginning of Claude Code's output, and its report of no results.
CLAUDE_CODE, _NO_LINKS = "Web search results for query:", "\nNo links found."
#: The separator of Tongyi's tools between the results of several queries, and between the pages of several URLs.
BETWEEN_BLOCKS = "\n=======\n"
#: The heading above the results of Tongyi's search tool; the query in it may have line feeds.
_HEADING = re.compile(r"A(?: \w+)? search for '.{0,2000}?' found \d+ results?:", re.DOTALL)

_NOTHING = re.compile(
    r"""
      (?:sorry[,.]?\s+)?(?:there\s+(?:are|were)\s+)?(?:no|0|zero)\s+(?:good\s+|relevant\s+|matching\s+|further\s+)?
          (?:[\w-]+\s+){0,3}?(?:results?|documents?|matches|hits|passages|pages)\b
          (?:\s+(?:was|were|found|for|matching|returned|available|in)\b|\s*[.!:]?\s*$)
    | (?:[\w-]+\s+){1,3}(?:hasn't|has\s+not)\s+returned\s+any\s+results?\b
    | (?:found|returned)\s+(?:0|no|zero)\s+(?:[\w-]+\s+){0,2}?(?:results?|documents?|matches|hits|passages|pages)\b
    | (?:an?\s+)?(?:[\w-]+\s+){0,2}search\s+(?:for\s+.{0,400}?\s+)?(?:found|returned)\s+(?:0|no)\s+results?
    | no\s+search\s+results\s+or\s+information\s+found\b
    | (?:could\s+not|couldn't|did\s+not|didn't)\s+find\s+any\b
    """,
    re.IGNORECASE | re.VERBOSE | re.DOTALL,
)
#: How tools report a page that could not be opened. Tongyi's tool first repeats the URL and the goal.
_NO_PAGE = re.compile(
    r"""
      \[visit\]\s | (?:failed|unable)\s+to\s+(?:fetch|read|load|retrieve|open|visit|access|download|scrape)\b
    | (?:could\s+not|couldn't|cannot|can't)\s+(?:be\s+)?(?:fetch|read|load|retrieve|open|visit|access|download|scrape)
    | error\s+(?:fetching|reading|loading|opening|accessing|\d{3})\b | http\s+(?:error\s+)?[45]\d\d\b
    | (?:4\d\d\s+|5\d\d\s+)?(?:(?:page|document|file|url)\s+)?(?:not\s+found|forbidden|bad\s+gateway)\b
    | The\ useful\ information\ in\ .{0,4000}?Evidence\ in\ page:\s+The\ provided\ webpage\ content\ could\ not\ be\ accessed
    """,
    re.IGNORECASE | re.VERBOSE | re.DOTALL,
)
#: Keys of the text of a page, and the longest text that is read as JSON to find them.
_PAGE_TEXTS = {"text", "content", "markdown", "body", "pagecontent", "rawcontent", "html", "result", "output"}
_MAX_JSON_PAGE = 1_000_000
#: Longer texts, and objects with more texts, do not count as reports of no results.
_MAX_LENGTH, _MAX_TEXTS = 1000, 3
#: A quoted query, which may contain a URL.
_QUOTED = re.compile(r"'[^'\n]*'|\"[^\"\n]*\"|`[^`\n]*`")
_COUNTS = {
    *("count", "total", "totalresults", "totalcount", "totalhits", "numresults", "numberofresults", "resultcount"),
    *("resultscount", "found", "hitcount", "nhits", "estimatedtotalhits"),
}
#: Answers of Google, Bing and Brave, which omit an empty list: a key, its value, another key that is present, and the key
#: of the list.
_WITHOUT_LIST = (
    ("kind", "customsearch#search", "queries", "items"),
    ("_type", "SearchResponse", "queryContext", "webPages"),
    ("type", "search", "query", "web"),
)


class Outcome(NamedTuple):
    """The status and results of a search. `overlooked` has the URLs or ids of values that look like results but were not read."""

    status: Status
    results: tuple[Result, ...] = ()
    overlooked: tuple[str, ...] = ()

    @property
    def unread(self) -> int:
        """The number of values in the output that look like results but were not read."""
        read: set[str | None] = set()
        if self.overlooked:
            read = {name for result in self.results for name in (result.url, result.doc_id)}
        return len(set(self.overlooked) - read)

    def add_overlooked_names(self, names: Iterable[str]) -> Outcome:
        return self._replace(overlooked=(*self.overlooked, *names))


EMPTY = Outcome("empty")
ERROR = Outcome("error")
UNPARSED = Outcome("unparsed")


def join_outcomes(outcomes: list[Outcome]) -> Outcome:
    """Join the outcomes of an output's parts, and continue the ranks from part to part. The status is ok if a part has results."""
    if len(outcomes) == 1:
        return outcomes[0]
    overlooked = tuple(name for outcome in outcomes for name in outcome.overlooked)
    results = [result for outcome in outcomes for result in outcome.results]
    if results:
        ranked = tuple(replace(result, rank=rank) for rank, result in enumerate(results, start=1))
        return Outcome("ok", ranked, overlooked)
    statuses = {outcome.status for outcome in outcomes}
    # Unparsed output may have held results.
    worst = next((known for known in (UNPARSED, EMPTY, ERROR) if known.status in statuses), UNPARSED)
    return worst.add_overlooked_names(overlooked)


def is_nothing_found(text: str) -> bool:
    """Return whether a text reports that a search found nothing."""
    if text.startswith(CLAUDE_CODE):
        return _NO_LINKS in text
    return len(text) <= _MAX_LENGTH and _NOTHING.match(text) is not None and "://" not in _QUOTED.sub("", text)


def strip_heading(text: str) -> str:
    """Remove the heading that Tongyi's search tool writes above results. The query quoted in the heading may look like a result."""
    match = _HEADING.match(text)
    if match:
        return text[match.end() :]
    return text


def brings_no_page(output: Any) -> bool:
    """Return whether the output of a tool that opens pages is empty or reports a failure.

    >>> [brings_no_page(output) for output in ("", "[visit] Failed to read page.", {"docid": "d1", "text": ""}, "BM25 is ...")]
    [True, True, True, False]
    """
    if isinstance(output, str):
        text = output.strip()
        if text.startswith(("{", "[")) and len(text) <= _MAX_JSON_PAGE and (value := parse_if_json(text)) is not text:
            return not isinstance(value, str) and brings_no_page(value)
        return not text or text.startswith(FAILURES) or _NO_PAGE.match(text) is not None or is_nothing_found(text)
    if isinstance(output, list):
        return all(map(brings_no_page, output))
    if isinstance(output, dict):
        held = [output[key] for key, name in normalise_keys(tuple(output)) if name in _PAGE_TEXTS]
        if held:
            return all(map(brings_no_page, held))
        return not output or has_error(output)
    return output is None


def has_error(item: dict[str, Any]) -> bool:
    names = ("error", "errormessage", "errorcode")
    return any(name in names and item[key] for key, name in normalise_keys(tuple(item)))


def counts_nothing(item: dict[str, Any]) -> bool:
    """Return whether an object reports no results: its count is 0, or it lacks the list that its service omits when empty."""
    if any(isinstance(value, list) and value for value in item.values()):
        return False
    if any(item.get(key) == value and other in item and name not in item for key, value, other, name in _WITHOUT_LIST):
        return True
    return any(name in _COUNTS and as_number(item[key]) == 0 for key, name in normalise_keys(tuple(item)))


def says_nothing_found(item: dict[str, Any]) -> bool:
    texts = [value for value in item.values() if isinstance(value, str) and value.strip()]
    return bool(texts) and len(texts) <= _MAX_TEXTS and all(map(is_nothing_found, texts))
