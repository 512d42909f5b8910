"""Recognises texts that report a failed search, and texts that report a search without results."""

from __future__ import annotations

import re

__all__ = ["is_failure", "is_not_recorded", "is_nothing_found", "strip_heading"]

#: The beginnings of texts of failed searches, as agents' frameworks and MCP servers write them.
_FAILURES = (
    "[Search] ",
    "Error executing",
    "Error: ",
    "Error invoking",
    "Error calling",
    "Error during",
    "Error while",
    "Error in tool",
    "An error occurred",
    "ToolException",
    "Tool error",
    "Traceback (most recent call last)",
    "Web search error: ",
)
#: Texts that go on with a model's prose, where a list of results should stand: Gemini CLI without `Sources:`.
_PROSE_INSTEAD = ("Web search results for ",)
#: How Claude Code says so, among a model's prose.
_CLAUDE_CODE, _NO_LINKS = "Web search results for query:", "\nNo links found."
#: The heading above the results of Tongyi's search tool; the query in it may have line feeds.
_HEADING = re.compile(r"A(?: \w+)? search for '.{0,2000}?' found \d+ results?:", re.DOTALL)

#: How search tools say that they found nothing, at the beginning of the text.
_NOTHING = re.compile(
    r"""
      (?:sorry[,.]?\s+)?(?:there\s+(?:are|were)\s+)?(?:no|0|zero)\s+(?:good\s+|relevant\s+|matching\s+|further\s+)?
          (?:[\w-]+\s+){0,3}?(?:results?|documents?|matches|hits|passages|pages)\b
          (?:\s+(?:was|were|found|for|matching|returned|available|in)\b|\s*[.!:]?\s*$)
    | (?:[\w-]+\s+){1,3}(?:hasn't|has\s+not)\s+returned\s+any\s+results?\b
    | found\s+(?:0|no)\s+(?:results?|documents?|matches)
    | (?:an?\s+)?(?:[\w-]+\s+){0,2}search\s+(?:for\s+.{0,400}?\s+)?(?:found|returned)\s+(?:0|no)\s+results?
    | no\s+search\s+results\s+or\s+information\s+found\b
    | (?:could\s+not|couldn't|did\s+not|didn't)\s+find\s+any\b
    """,
    re.IGNORECASE | re.VERBOSE | re.DOTALL,
)
#: A longer text goes on to say more, so it is not taken for "nothing found".
_MAX_LENGTH = 1000
#: The query in such a sentence, which may hold a URL.
_QUOTED = re.compile(r"'[^'\n]*'|\"[^\"\n]*\"|`[^`\n]*`")


def is_failure(text: str) -> bool:
    """Return whether a text begins like that of a failed search."""
    return text.startswith(_FAILURES)


def is_nothing_found(text: str) -> bool:
    """Return whether a text begins by saying that nothing was found, and does not go on to name a URL."""
    if text.startswith(_CLAUDE_CODE):
        return _NO_LINKS in text
    if len(text) > _MAX_LENGTH or _NOTHING.match(text) is None:
        return False
    return "://" not in _QUOTED.sub("", text)


def is_not_recorded(text: str) -> bool:
    """Return whether a text begins like that of a tool whose results are not in this text."""
    return text.startswith(_PROSE_INSTEAD)


def strip_heading(text: str) -> str:
    """Return a text without the heading that repeats the query, which may have any form."""
    found = _HEADING.match(text)
    return text[found.end() :] if found else text
