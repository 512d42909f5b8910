"""What a tool's text says of the search itself: that it failed, or that it found nothing."""

from __future__ import annotations

import re

__all__ = ["is_failure", "is_nothing_found"]

#: How the texts of failed searches begin.
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
)

#: What searches say that found nothing, at the beginning of the text.
_NOTHING = re.compile(
    r"""
      (?:sorry[,.]?\s+)?(?:there\s+(?:are|were)\s+)?(?:no|0|zero)\s+(?:good\s+|relevant\s+|matching\s+|further\s+)?
          (?:[\w-]+\s+){0,3}?(?:results?|documents?|matches|hits|passages|pages)\b
          (?:\s+(?:was|were|found|for|matching|returned|available|in)\b|\s*[.!:]?\s*$)
    | (?:[\w-]+\s+){1,3}(?:hasn't|has\s+not)\s+returned\s+any\s+results?\b
    | found\s+(?:0|no)\s+(?:results?|documents?|matches)
    | (?:an?\s+)?(?:[\w-]+\s+){0,2}search\s+(?:for\s+.{0,400}?\s+)?(?:found|returned)\s+(?:0|no)\s+results?
    | (?:could\s+not|couldn't|did\s+not|didn't)\s+find\s+any\b
    """,
    re.IGNORECASE | re.VERBOSE | re.DOTALL,
)
_MAX_LENGTH = 1000
#: What was asked for, which may be an address.
_QUOTED = re.compile(r"'[^'\n]*'|\"[^\"\n]*\"|`[^`\n]*`")


def is_failure(text: str) -> bool:
    """Whether a text begins like a known failure."""
    return text.startswith(_FAILURES)


def is_nothing_found(text: str) -> bool:
    """Whether a text says, and says first, that nothing was found; one that goes on to name addresses does not."""
    if len(text) > _MAX_LENGTH or _NOTHING.match(text) is None:
        return False
    return "://" not in _QUOTED.sub("", text)
