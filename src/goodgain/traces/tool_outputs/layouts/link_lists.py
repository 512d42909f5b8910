"""Lists of links and of titles with an address: numbered, in bullets, in paragraphs, or one address a line."""

from __future__ import annotations

import re

from goodgain.traces.model import Pairs, Result
from goodgain.traces.tool_outputs.layouts.list_lines import (
    Entry,
    Layout,
    find_address,
    find_link,
    is_url,
    make_result,
    read_entry,
    split_entries,
    split_number,
)

#: `1. [title](url)`, `1. <docid: 123> [title]`, `1. [title]`.
_NUMBERED = re.compile(r"(?:\*\*)?(?P<n>\d{1,4})[.)] {1,8}(?:<docid:(?P<id>[^>\n]{1,200})> {0,8})?(?=\[)")
_BULLET = re.compile(r"(?:#{1,6} {1,4}|[-*•+] {1,4})")
_BRACKETS_END = re.compile(r"\]\s*\Z")
#: Lines between title and snippet in the lists of Tongyi's search tool.
_NOTES = re.compile(r"(?P<label>Date published|Source): *(?P<value>.*)")
#: What parts a link from the snippet on its line.
_SEPARATORS = (":", "-", "–", "—", "|")
_URL_NUMBER = re.compile(r"[\[(]?\d{1,4}[.)\]:] {0,8}")
#: An address is looked for in so many lines below its title.
_LINES_TO_ADDRESS = 12
#: Signs between a title and the address behind it.
_BEFORE_ADDRESS = " \t:-–—|(<"


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


def _read_numbered_titles(text: str) -> list[Result] | None:
    """Read numbers from 0 or 1 on without a gap, each with a title and an address.

    A numbered line without an address, also in a snippet, begins no entry.
    """
    start = 1

    def begin(lines: list[str], index: int, count: int) -> Entry | None:
        nonlocal start
        number, title = split_number(lines[index])
        if number is None or not title:
            return None
        if count == 0 and number in (0, 1):
            start = number
        if number != count + start:
            return None
        if (entry := _split_address(title)) is not None:
            return entry
        return Entry(title, None, []) if _has_address_below(lines, index) else None

    entries = split_entries(text, begin)
    return [read_entry(rank, entry) for rank, entry in enumerate(entries or (), start=1)] or None


def _split_address(text: str) -> Entry | None:
    """Read `title - https://...`, `title (https://...)`, `[title](https://...)` with what follows on the line."""
    link = find_link(text)
    if link is not None:
        rest = link.rest.strip(_BEFORE_ADDRESS)
        return Entry(link.title, link.url, [rest] if rest else [])
    start = next((at for sign in ("https://", "http://") if (at := text.find(sign)) >= 0), -1)
    if start < 0:
        return None
    address, _, rest = text[start:].partition(" ")
    if start and text[start - 1] in "(<" and (end := _find_closing(address)) >= 0:
        address, rest = address[:end], address[end + 1 :] + " " + rest
    address = address.rstrip(",;")
    if not is_url(address):
        return None
    title = text[:start].strip(_BEFORE_ADDRESS).strip("*").strip()
    rest = rest.strip(_BEFORE_ADDRESS)
    return Entry(title or None, address, [rest] if rest else [])


def _find_closing(address: str) -> int:
    """Return where the bracket that stands before an address is closed; -1 where it is not."""
    depth = 1
    for at, sign in enumerate(address):
        depth += (sign in "(<") - (sign in ")>")
        if depth == 0:
            return at
    return -1


def _has_address_below(lines: list[str], index: int) -> bool:
    """Return whether an address stands below a title, before the next numbered line: at once, or behind a short text."""
    for line in lines[index + 1 : index + 1 + _LINES_TO_ADDRESS]:
        if find_address(line):
            return True
        if split_number(line)[0] is not None:
            return False
    return False


def _read_paragraphs(text: str) -> list[Result] | None:
    """Read paragraphs that begin with a title and, on the next line, its address."""

    def begin(lines: list[str], index: int, count: int) -> Entry | None:
        if index + 1 >= len(lines) or (index and lines[index - 1].strip() and count):
            return None
        title = split_number(lines[index])[1]
        if not title or find_address(lines[index]) or not find_address(lines[index + 1]):
            return None
        return Entry(title, None, [])

    entries = split_entries(text, begin)
    return [read_entry(rank, entry) for rank, entry in enumerate(entries or (), start=1)] or None


NUMBERED_LINKS = Layout(
    "numbered links",
    "smolagents (counted from 0), Tongyi, BrowseComp tools (`1. <docid: 7> [title]`)",
    "## Search Results\n"
    "0. [On dunes](https://a.example/1)\n\nSand that moves.\n\n"
    "1. [On lakes](https://b.example/2)\n\nWater that stays.",
    _read_numbered_links,
)
LINKS = Layout(
    "lines or bullets of Markdown links",
    "agents' own tools",
    "- [On dunes](https://a.example/1): Sand that moves.\n- [On lakes](https://b.example/2): Water that stays.",
    _read_links,
)
URLS = Layout("one URL a line", "agents' own tools", "https://a.example/1\nhttps://b.example/2", _read_urls)
NUMBERED_TITLES = Layout(
    "numbered titles with a URL",
    "duckduckgo-mcp-server (`Summary:`), Perplexity's MCP server (`**title**`, `Date:`), agents' own tools",
    "Found 2 search results:\n\n"
    "1. On dunes\n   URL: https://a.example/1\n   Summary: Sand that moves.\n\n"
    "2. On lakes\n   URL: https://b.example/2\n   Summary: Water that stays.\n",
    _read_numbered_titles,
)
PARAGRAPHS = Layout(
    "paragraphs of title, URL, text",
    "agents' own tools",
    "On dunes\nhttps://a.example/1\nSand that moves.\n\nOn lakes\nhttps://b.example/2\nWater that stays.",
    _read_paragraphs,
)
