"""Reads lists of results in a text. An entry has a link, or a title and an address.

The texts come from web pages and may be malicious: no pattern of this module backtracks over more than a few characters, and each
function reads a line a fixed number of times. A list must begin the text or follow a heading: links inside prose are not
a list.
"""

import re
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from goodgain.logs.traces.model import Pairs, Result

#: `1.`, `1)`, `[1]` or `(1)`, also below a Markdown heading or in bold.
_NUMBER = re.compile(r"(?:#{1,6} )?\*{0,2}[\[(]?(?P<n>\d{1,4})[.)\]](?:\*\*)?[ \t]{1,8}(?=\S)")
#: Signs that may stand before a line of a list, and before a link.
_BULLET = re.compile(r"[-*•+] {1,4}(?=\S)")
_LINK_START = re.compile(r"(?:#{1,6} {1,4}|[-*•+] {1,4})?(?=\[)")
#: `1. [title](url)`, `1. <docid: 123> [title]`, `1. [title]`.
_NUMBERED_LINK = re.compile(r"(?:\*\*)?(?P<n>\d{1,4})[.)] {1,8}(?:<docid:(?P<id>[^>\n]{1,200})> {0,8})?(?=\[)")
_URL_NUMBER = re.compile(r"[\[(]?\d{1,4}[.)\]:] {0,8}")
_URL = re.compile(r"(?:https?|ftp|ref|file|s3|gs)://[^\s<>\"]+")
BRACKET = re.compile(r"[()]")
_BRACKET_OR_SPACE = re.compile(r"[()\s]")
_SPACE = re.compile(r"\s")
#: `URL: `, `Link - `, `**Source:** ` before an address.
_ADDRESS_LABEL = re.compile(
    r"\*{0,2}(?:URL|Link|Source|Source URL|URL Source|Address|Href|Web)\*{0,2} ?[:=-]\*{0,2} {0,4}", re.I
)
_SNIPPET_LABEL = re.compile(
    r"\*{0,2}(?:Summary|Snippet|Description|Content|Text|Excerpt|Abstract|Body)\*{0,2}:\*{0,2} ?", re.I
)
_NOTE = re.compile(
    r"\*{0,2}(?P<label>Date published|Published|Date|Source|Last updated|Score|Author)\*{0,2}:\*{0,2} ?", re.I
)
_NOTE_NAMES = {"datepublished": "published", "date": "published"}
_ID_LINE = re.compile(r"\s{0,8}ID: {0,4}(?P<id>\S{1,500})\s{0,8}")
_RULES = {"", "---", "----", "-----", "===", "***"}
#: Signs between a link and the text after it, and between a title and the address after it.
_BEHIND_LINK, _BEFORE_ADDRESS = ":-–—|", " \t:-–—|(<"
#: A longer line is neither a heading nor a note. An address is at most this many lines below its title.
_LONGEST_HEADING, _LINES_TO_ADDRESS = 500, 12


class Entry(NamedTuple):
    """An entry of a list: the values that its first line holds, and the lines below that line."""

    title: str | None
    url: str | None
    lines: list[str]
    doc_id: str | None = None
    number: int | None = None


#: Takes all lines and a position. Returns the entry that begins at this position, or None.
Begin = Callable[[list[str], int], Entry | None]


def is_url(text: str) -> bool:
    return _URL.fullmatch(text) is not None


def find_closing(text: str, start: int, signs: re.Pattern[str] = _BRACKET_OR_SPACE) -> int:
    """Return the position of the `)` that closes the `(` before `start`, or -1. If `signs` matches a space first, return -1 too."""
    depth = 1
    for sign in signs.finditer(text, start):
        if sign[0] not in "()":
            break
        depth += 1 if sign[0] == "(" else -1
        if depth == 0:
            return sign.start()
    return -1


def find_link(text: str) -> Entry | None:
    """Split a line that begins with a Markdown link into title, address and rest. Title and address may hold brackets."""
    start = text.find("](") if text.startswith("[") else -1
    if start < 0:
        return None
    end = find_closing(text, start + 2)
    if end < 0:
        end = len(text) - 1  # `(` without its `)` in an address that ends the line
        if text[end] != ")" or _SPACE.search(text, start + 2, end):
            return None
    url = text[start + 2 : end]
    rest = text[end + 1 :].strip()
    if url:
        return Entry(text[1:start].strip(), url, [rest] if rest else [])
    return None


def find_address(line: str) -> str | None:
    """Return the address if a line holds only an address, perhaps after a bullet or a label such as `URL:`; else None."""
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
    if link is not None and not link.lines and is_url(link.url or ""):
        return link.url
    return None


def split_number(line: str) -> tuple[int | None, str]:
    """Return the number at the beginning of a line, and the text without number, bullets, `#` and `**`."""
    text = line.strip()
    if bullet := _BULLET.match(text):
        text = text[bullet.end() :]
    match = _NUMBER.match(text)
    text = (text[match.end() :] if match else text.lstrip("#")).strip()
    if text.startswith("**") and text.endswith("**") and len(text) > 4:
        text = text[2:-2].strip()
    elif text.endswith("**") and text.count("**") == 1:
        text = text.removesuffix("**")
    return int(match["n"]) if match else None, text


def split_address(text: str) -> Entry | None:
    """Split `title - https://...`, `title (https://...)` or `[title](https://...)` into title, address and rest of the line."""
    link = find_link(text)
    if link is not None:
        return _strip_rest(link)

    start = next((at for sign in ("https://", "http://") if (at := text.find(sign)) >= 0), -1)
    if start < 0:
        return None

    address, _, rest = text[start:].partition(" ")
    before = text[start - 1 : start]
    end = -1
    if before == "(":
        end = find_closing(address, 0)
    elif before == "<":
        end = address.find(">")
    if end >= 0:
        rest = address[end + 1 :] + " " + rest
        address = address[:end]

    address = address.rstrip(",;")
    if not is_url(address):
        return None

    title = text[:start].strip(_BEFORE_ADDRESS).strip("*").strip()
    rest = rest.strip(_BEFORE_ADDRESS)
    return Entry(title or None, address, [rest] if rest else [])


def _strip_rest(link: Entry) -> Entry:
    texts = [text for line in link.lines if (text := line.removeprefix("**").lstrip(_BEHIND_LINK).strip())]
    return link._replace(lines=texts)


def is_heading(line: str) -> bool:
    """Return whether a line may stand above a list: a blank line, a Markdown heading, or a line `... results ...:`."""
    line = line.strip()
    if line.startswith("#") or not line.strip("-=*_"):
        return True
    return len(line) <= _LONGEST_HEADING and line.endswith(":") and _names_results(line)


def split_entries(begin: Begin, text: str) -> list[Entry]:
    """Split a text into list entries. Return an empty list if text other than headings precedes the first entry.

    The numbers of entries are consecutive, from 0 or 1. Other lines with numbers may lie between. A line with a number out
    of order belongs to the previous entry. Numbers may restart at a second list if both lists have a heading about results.
    """
    entries: list[Entry] = []
    lines = text.splitlines()
    first = 1  # the number of the first entry
    wanted = 1  # the number after the last entry
    # The number after the last numbered line, if all numbered lines since the last entry are in order; else -1.
    counted = 1
    above = ""  # the last filled line since the last entry
    are_headed = False

    for index, line in enumerate(lines):
        entry = begin(lines, index)
        if entry is not None and entry.number is not None:
            if not entries:
                first = wanted = counted = min(entry.number, 1)
                are_headed = is_heading(above) and _names_results(above)
            elif entry.number == first and are_headed and is_heading(above) and _names_results(above):
                wanted = first
                while entries[-1].lines.pop() != above:  # the second heading is not text of the entry above it
                    pass
            entry = entry if entry.number in (wanted, counted) else None
        if entry is not None:
            entries.append(entry)
            wanted = counted = (entry.number or 0) + 1
            above = ""
            continue
        counted = counted + 1 if counted >= 0 and split_number(line)[0] == counted else -1
        above = line if line.strip() else above
        if entries:
            entries[-1].lines.append(line)
        elif not is_heading(line):
            return []

    return entries


def _names_results(line: str) -> bool:
    return "result" in line.lower() or "found" in line.lower()


def read_single_lines(begin: Begin, text: str) -> list[Result] | None:
    """Read a list in which each entry is a single line. Return None if an entry continues on further lines."""
    entries = split_entries(begin, text)
    if any(line.strip() for entry in entries for line in entry.lines):
        return None
    return [make_result(rank, entry) for rank, entry in enumerate(entries, start=1)] or None


def read_entries(begin: Begin, text: str, *, with_notes: bool = False) -> list[Result] | None:
    """Read a list of entries as results. With `with_notes`, read the address, date etc. from lines around a snippet."""
    entries = split_entries(begin, text)
    if any(entry.title is None and entry.url is None for entry in entries):
        return None
    return [_read_entry(rank, entry, with_notes=with_notes) for rank, entry in enumerate(entries, start=1)] or None


def _read_entry(rank: int, entry: Entry, *, with_notes: bool) -> Result:
    """Make a result from an entry.

    Notes above the snippet (`Published: 2024`) become fields, with `with_notes` also those below it.
    """
    url = entry.url
    fields: list[tuple[str, str]] = []

    def read_note(line: str) -> bool:
        """Store the address or the note that a line holds. Return True for such a line and for a blank line, else False."""
        nonlocal url
        note = _NOTE.match(line) if len(line) <= _LONGEST_HEADING else None
        if with_notes and line and url is None and (address := find_address(line)):
            url = address
        elif note and (value := line[note.end() :].strip()):
            label = note["label"].lower().replace(" ", "")
            fields.append((_NOTE_NAMES.get(label, label), value))
        else:
            return not line.strip()
        return True

    body = [line.strip() for line in entry.lines] if with_notes else entry.lines
    first = int(with_notes and entry.doc_id is not None)  # the line of the id is the first
    while first < len(body) and read_note(body[first]):
        first += 1
    body = body[first:]
    while with_notes and len(body) > 1 and read_note(body[-1]):
        del body[-1]
    if body and (label := _SNIPPET_LABEL.match(body[0])):
        body[0] = body[0][label.end() :]
    result = make_result(rank, entry._replace(url=url, lines=body), tuple(fields))
    if url is None and result.title and (result.snippet or "").startswith(result.title.removesuffix("...").rstrip()):
        # The tool wrote the beginning of the text in place of a missing title.
        return make_result(rank, entry._replace(title=None, lines=body), tuple(fields))
    return result


def make_result(rank: int, entry: Entry, fields: Pairs = ()) -> Result:
    """Return an entry as a result. Its lines are the snippet, without blank lines and rules at the end."""
    last = len(entry.lines)
    while last and entry.lines[last - 1].strip() in _RULES:
        last -= 1
    snippet = "\n".join(entry.lines[:last]).strip() or None
    title = (entry.title or "").strip()
    if len(title) > 2 and title[0] == title[-1] == '"':
        title = title[1:-1]
    return Result(rank, entry.doc_id, (), entry.url, title or None, snippet, fields=fields)


def _begin_numbered_link(lines: list[str], index: int) -> Entry | None:
    """Return the entry if a line is a numbered link, or a numbered title in brackets; else None. An id may stand in between."""
    match = _NUMBERED_LINK.match(lines[index])
    if match is None:
        return None
    text = lines[index][match.end() :].rstrip()
    if (link := find_link(text)) is not None:
        entry = _strip_rest(link)
    else:
        entry = Entry(text[1:-1] if text.endswith("]") else None, None, [])
    return entry._replace(number=int(match["n"]), doc_id=match["id"] and match["id"].strip())


def _begin_numbered_title(lines: list[str], index: int) -> Entry | None:
    """Return the entry if a line is a numbered title with an address on the same line or a few lines below; else None."""
    number, title = split_number(lines[index])
    if number is None or not title:
        return None
    entry = split_address(title) or (Entry(title, None, []) if _has_address_below(lines, index) else None)
    return entry and entry._replace(number=number)


def _has_address_below(lines: list[str], index: int) -> bool:
    """Return whether an address follows within a few lines of line `index`, before the next numbered line."""
    for line in lines[index + 1 : index + 1 + _LINES_TO_ADDRESS]:
        if find_address(line):
            return True
        if split_number(line)[0] is not None:
            return False
    return False


def _begin_numbered_id(lines: list[str], index: int) -> Entry | None:
    """Return the entry if a line is a numbered title, and the next line is `ID: ...`; else None."""
    number, title = split_number(lines[index])
    if number is None or not title or index + 1 >= len(lines):
        return None
    match = _ID_LINE.fullmatch(lines[index + 1])
    if match is None:
        return None
    return Entry(title, None, [], doc_id=match["id"], number=number)


def _begin_link(lines: list[str], index: int) -> Entry | None:
    """Return the entry if a line begins with a link; else None. Text after the link must begin with a sign such as `-`."""
    start = _LINK_START.match(lines[index])
    link = find_link(lines[index][start.end() :]) if start else None
    if link is None or (link.lines and link.lines[0][0] not in _BEHIND_LINK):
        return None
    return _strip_rest(link)


def _begin_title_and_address(lines: list[str], index: int) -> Entry | None:
    """Return the entry if a line begins with a link, or has a title and an address; else None. `More:` is a label, not a title."""
    if (link := _begin_link(lines, index)) is not None:
        return link
    text = split_number(lines[index])[1]
    entry = split_address(text)
    if entry is None or entry.url is None or entry.title is None or entry.lines:
        return None
    if text.partition(entry.url)[0].rstrip(" (<*").endswith(":"):
        return None
    return entry


def read_links(text: str) -> list[Result] | None:
    """Read Markdown links, each with the text below it. A list of one-line links may end with lines of a title and an address."""
    are_links = [_begin_link([line], 0) is not None for line in text.splitlines() if not is_heading(line)]
    if len(are_links) > 2 and are_links[0] and are_links == sorted(are_links, reverse=True):
        mixed = read_single_lines(_begin_title_and_address, text)
        if mixed is not None:
            return mixed
    return read_entries(_begin_link, text)


def _begin_paragraph(lines: list[str], index: int) -> Entry | None:
    """Return the entry if a line is a title, after a heading or a blank line, and the next line is an address; else None."""
    if index + 1 >= len(lines) or (index and not is_heading(lines[index - 1])):
        return None
    title = split_number(lines[index])[1]
    if not title or find_address(lines[index]) or not find_address(lines[index + 1]):
        return None
    return Entry(title, None, [])


def _begin_url(lines: list[str], index: int) -> Entry | None:
    """Return the entry if a line holds only an address, perhaps after a number; else None."""
    line = lines[index].strip()
    numbered = _URL_NUMBER.match(line)
    address = find_address(line[numbered.end() :] if numbered else line)
    if address is None:
        return None
    return Entry(None, address, [])


read_numbered_ids = partial(read_entries, _begin_numbered_id, with_notes=True)
read_numbered_links = partial(read_entries, _begin_numbered_link)
read_numbered_titles = partial(read_entries, _begin_numbered_title, with_notes=True)
read_urls = partial(read_single_lines, _begin_url)
read_paragraphs = partial(read_entries, _begin_paragraph, with_notes=True)
