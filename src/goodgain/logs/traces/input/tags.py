"""Finds tags in a text from front to back, in linear time.

A pattern such as `<search>.*?</search>` takes quadratic time: it scans the rest of the text at each unclosed `<search>`.
"""

from collections.abc import Iterable
from typing import NamedTuple

#: An opening tag and its closing tag: `<search>` and `</search>`.
Tags = tuple[str, str]


class Tagged(NamedTuple):
    """The positions of an opening tag, the text inside, and the closing tag."""

    tags: Tags
    begin: int
    inner_begin: int
    inner_end: int
    end: int


class TaggedText:
    """A text that remembers where it last found each tag."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._found: dict[str, tuple[int, int]] = {}

    def find(self, words: str, start: int) -> int:
        """Return the next position of some words from `start` on, or -1. Call this from front to back."""
        asked, found = self._found.get(words, (len(self.text) + 1, -1))
        if asked <= start and (found < 0 or start <= found):
            return found
        found = self.text.find(words, start)
        self._found[words] = (start, found)
        return found

    def find_span(self, kinds: Iterable[Tags], start: int) -> Tagged | None:
        """Return the first of some tags that is closed, up to the first closing tag; None if no tag is closed."""
        best: Tagged | None = None
        for opening, closing in kinds:
            begin = self.find(opening, start)
            inner = begin + len(opening)
            end = self.find(closing, inner) if begin >= 0 else -1
            if end >= 0 and (best is None or begin < best.begin):
                best = Tagged((opening, closing), begin, inner, end, end + len(closing))
        return best

    def skip_white(self, start: int) -> int:
        while start < len(self.text) and self.text[start].isspace():
            start += 1
        return start
