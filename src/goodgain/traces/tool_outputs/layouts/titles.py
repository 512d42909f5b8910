"""Lists of titles, each with its address on the same line or on the next: numbered, or in paragraphs."""

from __future__ import annotations

from typing import Any

from goodgain.traces.model import Result
from goodgain.traces.tool_outputs.layout import (
    Entry,
    Layout,
    find_address,
    find_link,
    is_url,
    read_entry,
    split_entries,
    split_number,
)

__all__ = ["NUMBERED_TITLES", "PARAGRAPHS"]

#: An address is looked for in so many lines below its title.
_LINES_TO_ADDRESS = 12
#: Signs between a title and the address behind it.
_BEFORE_ADDRESS = " \t:-–—|(<"


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


NUMBERED_TITLES: Layout[str, Any] = Layout(
    "numbered titles with a URL",
    "duckduckgo-mcp-server (`Summary:`), Perplexity's MCP server (`**title**`, `Date:`), agents' own tools",
    "Found 2 search results:\n\n"
    "1. On dunes\n   URL: https://a.example/1\n   Summary: Sand that moves.\n\n"
    "2. On lakes\n   URL: https://b.example/2\n   Summary: Water that stays.\n",
    _read_numbered_titles,
)
PARAGRAPHS: Layout[str, Any] = Layout(
    "paragraphs of title, URL, text",
    "agents' own tools",
    "On dunes\nhttps://a.example/1\nSand that moves.\n\nOn lakes\nhttps://b.example/2\nWater that stays.",
    _read_paragraphs,
)
