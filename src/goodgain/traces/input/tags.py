"""Finds tags in a text that is read from front to back, in time that grows with the text and not with its square.

A pattern such as `<search>.*?</search>` looks through the rest of the text at every `<search>` without an end.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

#: A tag that begins something, and the tag that ends it: `<search>` and `</search>`.
Tags = tuple[str, str]


class Tagged(NamedTuple):
    """A tag, what stands inside, and the tag that ends it: where each begins and ends."""

    tags: Tags
    begin: int
    inner_begin: int
    inner_end: int
    end: int


class TaggedText:
    """A text, and where the tags that were looked for last stand in it.

    Attributes:
        text: the text.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self._found: dict[str, tuple[int, int]] = {}

    def find(self, words: str, start: int) -> int:
        """Return where words stand next, from `start` on; -1 where they do not. Ask from front to back."""
        asked, found = self._found.get(words, (len(self.text) + 1, -1))
        if asked <= start and (found < 0 or start <= found):
            return found
        found = self.text.find(words, start)
        self._found[words] = (start, found)
        return found

    def find_span(self, kinds: Iterable[Tags], start: int) -> Tagged | None:
        """Return the first of some tags that has an end, up to its first end; None where no more of them has one."""
        best: Tagged | None = None
        for opening, closing in kinds:
            begin = self.find(opening, start)
            inner = begin + len(opening)
            end = self.find(closing, inner) if begin >= 0 else -1
            if end >= 0 and (best is None or begin < best.begin):
                best = Tagged((opening, closing), begin, inner, end, end + len(closing))
        return best

    def skip_white(self, start: int) -> int:
        """Return the place of the first character from `start` on that is not white space."""
        while start < len(self.text) and self.text[start].isspace():
            start += 1
        return start
