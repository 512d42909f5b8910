"""Lists of links: numbered, in bullets, or on lines of their own, with or without the text of the page below."""

from __future__ import annotations

import re
from typing import Any

from goodgain.traces.model import Pairs, Result
from goodgain.traces.tool_outputs.layout import Entry, Layout, find_address, find_link, make_result, split_entries

__all__ = ["LINKS", "NUMBERED_LINKS", "URLS"]

#: `1. [title](url)`, `1. <docid: 123> [title]`, `1. [title]`.
_NUMBERED = re.compile(r"(?:\*\*)?(?P<n>\d{1,4})[.)] {1,8}(?:<docid:(?P<id>[^>\n]{1,200})> {0,8})?(?=\[)")
_BULLET = re.compile(r"(?:#{1,6} {1,4}|[-*•+] {1,4})")
_BRACKETS_END = re.compile(r"\]\s*\Z")
#: Lines between title and snippet in the lists of Tongyi's search tool.
_NOTES = re.compile(r"(?P<label>Date published|Source): *(?P<value>.*)")
#: What parts a link from the snippet on its line.
_SEPARATORS = (":", "-", "–", "—", "|")


def _read_numbered_links(text: str) -> list[Result] | None:
    """Read numbers from 0 or 1 on without a gap, each with a link or a title in brackets."""
    start = 1

    def begin(lines: list[str], index: int, count: int) -> Entry | None:
        nonlocal start
        found = _NUMBERED.match(lines[index])
        if found is None:
            return None
        number = int(found["n"])
        if count == 0 and number in (0, 1):
            start = number
        if number != count + start:
            return None
        doc_id = found["id"].strip() if found["id"] else None
        return _read_head(lines[index][found.end() :], doc_id)

    entries = split_entries(text, begin)
    if entries is None or any(entry.title is None for entry in entries):
        return None
    return [_make_linked(rank, entry) for rank, entry in enumerate(entries, start=1)]


def _read_head(text: str, doc_id: str | None) -> Entry:
    """Read what follows a number: a link, or a title in brackets; an entry without a title where it is neither."""
    link = find_link(text)
    if link is not None:
        rest = link.rest.strip().removeprefix("**").lstrip("".join(_SEPARATORS)).strip()
        return Entry(link.title, link.url, [rest] if rest else [], doc_id)
    if end := _BRACKETS_END.search(text[-80:]):
        return Entry(text[1 : len(text) - len(end.group())], None, [], doc_id)
    return Entry(None, None, [], doc_id)


def _make_linked(rank: int, entry: Entry) -> Result:
    """Make a result of a link and the lines below: first notes such as the date, then the snippet."""
    fields: Pairs = ()
    first = 0
    for line in entry.lines:
        note = _NOTES.match(line)
        if note is None and line.strip():
            break
        if note and note["value"].strip():
            fields += (("published" if note["label"] == "Date published" else "source", note["value"].strip()),)
        first += 1
    result = make_result(rank, entry._replace(lines=entry.lines[first:]), fields)
    title, snippet = result.title, result.snippet
    if entry.url is None and title and snippet and snippet.startswith(title.removesuffix("...").rstrip()):
        # The tool found no title, and wrote the beginning of the text in its place.
        return Result(rank, result.doc_id, (), None, None, snippet, fields=fields)
    return result


def _read_links(text: str) -> list[Result] | None:
    """Read links on lines of their own, or in bullets; a snippet may follow behind a sign or on the lines below."""

    def begin(lines: list[str], index: int, count: int) -> Entry | None:
        line = lines[index]
        bullet = _BULLET.match(line)
        link = find_link(line[bullet.end() :] if bullet else line)
        if link is None:
            return None
        rest = link.rest.strip()
        if rest and not rest.startswith(_SEPARATORS):
            return None
        return Entry(link.title, link.url, [rest.lstrip("".join(_SEPARATORS)).strip()] if rest else [])

    entries = split_entries(text, begin)
    return [_make_linked(rank, entry) for rank, entry in enumerate(entries or (), start=1)] or None


def _read_urls(text: str) -> list[Result] | None:
    """Read one address a line, and nothing else; bullets, numbers and a heading may stand there."""

    def begin(lines: list[str], index: int, count: int) -> Entry | None:
        line = lines[index].strip()
        numbered = _URL_NUMBER.match(line)
        address = find_address(line[numbered.end() :] if numbered else line)
        return None if address is None else Entry(None, address, [])

    entries = split_entries(text, begin)
    if entries is None or any(line.strip() for entry in entries for line in entry.lines):
        return None
    return [make_result(rank, entry) for rank, entry in enumerate(entries, start=1)]


_URL_NUMBER = re.compile(r"[\[(]?\d{1,4}[.)\]:] {0,8}")

NUMBERED_LINKS: Layout[str, Any] = Layout(
    "numbered links",
    "smolagents (counted from 0), Tongyi, BrowseComp tools (`1. <docid: 7> [title]`)",
    "## Search Results\n"
    "0. [On dunes](https://a.example/1)\n\nSand that moves.\n\n"
    "1. [On lakes](https://b.example/2)\n\nWater that stays.",
    _read_numbered_links,
)
LINKS: Layout[str, Any] = Layout(
    "lines or bullets of Markdown links",
    "agents' own tools",
    "- [On dunes](https://a.example/1): Sand that moves.\n- [On lakes](https://b.example/2): Water that stays.",
    _read_links,
)
URLS: Layout[str, Any] = Layout(
    "one URL a line", "agents' own tools", "https://a.example/1\nhttps://b.example/2", _read_urls
)
