"""What the declaration of a layout is, and how lines of a list are read: links, addresses, numbers, headings.

The texts hold what web pages wrote, so no pattern here backtracks over more than a few characters, and each function
reads a line a fixed number of times.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from goodgain.traces.model import Pairs, Result

#: `1.`, `1)`, `[1]` or `(1)`, also below a Markdown heading or in bold.
_NUMBER = re.compile(r"(?:#{1,6} )?\*{0,2}[\[(]?(?P<n>\d{1,4})[.)\]](?:\*\*)?[ \t]{1,8}(?=\S)")
#: Signs that may stand before a line of a list.
_BULLET = re.compile(r"[-*•+] {1,4}(?=\S)")
_URL = re.compile(r"(?:https?|ftp|ref|file|s3|gs)://[^\s<>\"]+")
#: What may end the address of a Markdown link.
_URL_MARK, _SPACE = re.compile(r"[()\s]"), re.compile(r"\s")
#: `URL: `, `Link - `, `**Source:** ` before an address.
_ADDRESS_LABEL = re.compile(
    r"\*{0,2}(?:URL|Link|Source|Source URL|URL Source|Address|Href|Web)\*{0,2} ?[:=-]\*{0,2} {0,4}", re.I
)
_SNIPPET_LABEL = re.compile(
    r"\*{0,2}(?:Summary|Snippet|Description|Content|Text|Excerpt|Abstract|Body)\*{0,2}:\*{0,2} ?", re.I
)
#: Lines of an entry that say something of the document and are not its text.
_NOTE = re.compile(
    r"\*{0,2}(?P<label>Date published|Published|Date|Source|Last updated|Score|Author)\*{0,2}:\*{0,2} ?", re.I
)
_NOTE_NAMES = {"datepublished": "published", "date": "published"}
#: Lines that part entries.
_RULES = {"", "---", "----", "-----", "===", "***"}
#: A longer line is neither a heading nor a note.
_LONGEST_HEADING = 500


@dataclass(frozen=True)
class Layout:
    """One way in which tools lay out a list of results.

    Attributes:
        name: what people call it, for the docs.
        written_by: who writes it.
        example: an output in this layout with two results.
        read: returns what it found, or None for output in another layout.
        has_other_links: it is known to hold links that are not results: in a model's prose, or in whole pages.
        key: a key that an object in this layout has, or the first of a list of objects; None where there is not one.
    """

    name: str
    written_by: str
    example: str
    read: Callable[[Any], Any]
    has_other_links: bool = False
    key: str | None = None


class Link(NamedTuple):
    """A link at the beginning of a line, and what follows it there."""

    title: str
    url: str
    rest: str


class Entry(NamedTuple):
    """A result as a text lists it: what its first line says, and the lines below."""

    title: str | None
    url: str | None
    lines: list[str]
    doc_id: str | None = None


def is_url(text: str) -> bool:
    """Return whether a text is an address and nothing else."""
    return _URL.fullmatch(text) is not None


def find_link(text: str) -> Link | None:
    """Read a Markdown link at the beginning of a text; brackets in the title and in the address may be nested."""
    if not text.startswith("["):
        return None
    start = text.find("](")
    if start < 0:
        return None
    depth, end = 0, -1
    for mark in _URL_MARK.finditer(text, start + 1):
        sign = mark.group()
        if sign not in "()":
            break
        depth += 1 if sign == "(" else -1
        if depth == 0:
            end = mark.start()
            break
    if end < 0:
        end = len(text) - 1  # `(` without its `)` in an address that ends the line
        if text[end] != ")" or _SPACE.search(text, start + 2, end):
            return None
    url = text[start + 2 : end]
    return Link(text[1:start].strip(), url, text[end + 1 :]) if url else None


def find_address(line: str) -> str | None:
    """Return the address of a line that holds nothing else but a label such as `URL:` or a bullet."""
    text = line.strip()
    if bullet := _BULLET.match(text):
        text = text[bullet.end() :]
    if label := _ADDRESS_LABEL.match(text):
        text = text[label.end() :]
    text = text.strip()
    if text[:1] == "<" and text[-1:] == ">":
        text = text[1:-1]
    if is_url(text):
        return text
    link = find_link(text)
    return link.url if link is not None and not link.rest.strip() and is_url(link.url) else None


def split_number(line: str) -> tuple[int | None, str]:
    """Return the number that a line begins with, and the line without it, without bullets, `#` and bold."""
    text = line.strip()
    if bullet := _BULLET.match(text):
        text = text[bullet.end() :]
    found = _NUMBER.match(text)
    number = int(found["n"]) if found else None
    text = text[found.end() :] if found else text.lstrip("#").lstrip() if text.startswith("#") else text
    return number, _strip_bold(text)


def _strip_bold(text: str) -> str:
    text = text.strip()
    if text.startswith("**") and text.endswith("**") and len(text) > 4:
        return text[2:-2].strip()
    return text.removesuffix("**") if text.endswith("**") and text.count("**") == 1 else text


def is_heading(line: str) -> bool:
    """Return whether a line may stand above a list: it is blank, a Markdown heading, or `... results ...:`."""
    line = line.strip()
    if not line or line.startswith("#") or set(line) <= set("-=*_"):
        return True
    return (
        len(line) <= _LONGEST_HEADING and line.endswith(":") and ("result" in line.lower() or "found" in line.lower())
    )


def split_entries(text: str, is_first: Callable[[list[str], int, int], Entry | None]) -> list[Entry] | None:
    """Split a text into entries: each begins at a line for which `is_first(lines, index, entries so far)` returns one.

    Headings may stand above the first entry; other text there means that this is not a list: None.
    """
    found: list[Entry] = []
    lines = text.splitlines()
    for index, line in enumerate(lines):
        if (entry := is_first(lines, index, len(found))) is not None:
            found.append(entry)
        elif found:
            found[-1].lines.append(line)
        elif not is_heading(line):
            return None
    return found or None


def read_entry(rank: int, entry: Entry) -> Result:
    """Make a result of an entry whose lines are the snippet, with the address and notes such as the date around it."""
    url = entry.url
    fields: list[tuple[str, str]] = []

    def is_around(line: str) -> bool:
        """Return whether a line is not of the snippet, and keep what it says."""
        nonlocal url
        if line and url is None and (address := find_address(line)):
            url = address
        elif note := _read_note(line):
            fields.append(note)
        else:
            return not line
        return True

    body = [line.strip() for line in entry.lines]
    first = 0
    while first < len(body) and is_around(body[first]):
        first += 1
    body = body[first:]
    while len(body) > 1 and is_around(body[-1]):
        del body[-1]
    if body and (label := _SNIPPET_LABEL.match(body[0])):
        body[0] = body[0][label.end() :]
    return make_result(rank, entry._replace(url=url, lines=body), tuple(fields))


def _read_note(line: str) -> tuple[str, str] | None:
    found = _NOTE.match(line)
    if found is None or not line[found.end() :].strip() or len(line) > _LONGEST_HEADING:
        return None
    label = found["label"].lower().replace(" ", "")
    return _NOTE_NAMES.get(label, label), line[found.end() :].strip()


def make_result(rank: int, entry: Entry, fields: Pairs = ()) -> Result:
    """Make a result of an entry whose lines are its snippet."""
    last = len(entry.lines)
    while last and entry.lines[last - 1].strip() in _RULES:
        last -= 1  # blank lines and rules part entries
    snippet = "\n".join(entry.lines[:last]).strip() or None
    title = (entry.title or "").strip()
    if len(title) > 2 and title[0] == title[-1] == '"':
        title = title[1:-1]
    return Result(rank, entry.doc_id, (), entry.url, title or None, snippet, fields=fields)
