"""Reads lists of results written as text: one function a layout, which returns None for text of another layout.

The texts hold what web pages wrote, so no pattern backtracks over more than a line. A list must begin at its first
item, so that links inside prose are not taken for a list.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from goodgain.traces.model import Result
from goodgain.traces.tool_outputs.key_names import normalise_key
from goodgain.traces.tool_outputs.objects import read_object

__all__ = ["read_text_list"]

#: `1. [title](url)`, `1. <docid: 123> [title]`, `1. [title]`.
_NUMBERED = re.compile(r"(?P<n>\d{1,4})[.)] +(?:<docid: *(?P<id>[^>\n]+)> *)?(?P<rest>\[.*)")
_BULLET = re.compile(r"[-*] +")
_DOC = re.compile(r"Doc (?P<n>\d{1,4}) ?\(Title: ?")
_LABEL = re.compile(
    r"\s{0,8}(?:[-*] +|\d{1,4}[.)] +)?\*{0,2}(?P<label>[A-Za-z][A-Za-z _]{0,24}?)\*{0,2}: ?\*{0,2} ?(?P<value>.*)"
)
#: The heading above the results of Tongyi's search tool; the query in it may have line feeds.
_HEADING = re.compile(r"A(?: \w+)? search for '.{0,2000}?' found \d+ results?:", re.DOTALL)
#: The line of a `Doc k` that names the document, by its URL or by its id in the corpus.
_ADDRESS = re.compile(r"\s*(?:URL|ID|docid): *(?P<address>\S+)\s*", re.IGNORECASE)
#: Lines between title and snippet in the lists of Tongyi's search tool.
_NOTES = re.compile(r"(?P<label>Date published|Source): *(?P<value>.*)")

#: The labels of `Title:/URL:/Content:` blocks, as the keys an object would have.
_LABELS = {
    **dict.fromkeys(("title", "name", "headline"), "title"),
    **dict.fromkeys(("url", "link", "href", "uri"), "url"),
    **dict.fromkeys(("content", "snippet", "text", "summary", "description", "body", "abstract"), "snippet"),
    **dict.fromkeys(("id", "docid", "documentid", "docno"), "doc_id"),
    **dict.fromkeys(("date", "published", "publisheddate", "datepublished"), "published"),
    "score": "score",
    "author": "author",
    "source": "source",
    "metadata": "metadata",
    "highlights": "highlights",
}


def read_text_list(text: str) -> list[Result] | None:
    """Return the results in a text, or None if it is not a list in a known layout."""
    text = _HEADING.sub("", text, count=1)
    for layout in _LAYOUTS:
        if results := layout(text):
            return results
    return None


def _read_numbered(text: str) -> list[Result] | None:
    """Read `1. [title](url)` with the snippet below, numbered from 1 without a gap; a heading may stand above."""
    found: list[tuple[re.Match[str], list[str]]] = []
    for line in text.splitlines():
        item = _NUMBERED.match(line)
        if item and int(item["n"]) == len(found) + 1:
            found.append((item, []))
        elif found:
            found[-1][1].append(line)
        elif not _is_heading(line):
            return None
    results = []
    for rank, (item, lines) in enumerate(found, start=1):
        if (head := _read_link(item["rest"]) or _read_brackets(item["rest"])) is None:
            return None
        title, url = head
        results.append(_make_result(rank, title, url, lines, item["id"]))
    return results


def _read_links(text: str) -> list[Result] | None:
    """Read `[title](url)` on a line of its own with the snippet below; a heading may stand above."""
    found: list[tuple[tuple[str, str | None], list[str]]] = []
    for line in text.splitlines():
        if item := _read_link(line):
            found.append((item, []))
        elif found:
            found[-1][1].append(line)
        elif not _is_heading(line):
            return None
    return [_make_result(rank, *head, lines) for rank, (head, lines) in enumerate(found, start=1)]


def _read_link(line: str) -> tuple[str, str] | None:
    """Return title and URL of `[title](url)`; the URL begins at the last `](` that has a URL behind it.

    A pattern would try every bracket with every end of the URL.
    """
    line = line.rstrip()
    start = bullet.end() if (bullet := _BULLET.match(line)) else 0
    between = line.rfind("](", start, len(line) - 2)
    if not line.startswith("[", start) or not line.endswith(")") or between <= start:
        return None
    url = line[between + 2 : -1]
    return None if any(map(str.isspace, url)) else (line[start + 1 : between], url)


def _read_brackets(line: str) -> tuple[str, None] | None:
    """Return the title of `[title]`."""
    line = line.rstrip()
    return (line[1:-1], None) if line.startswith("[") and line.endswith("]") and len(line) > 1 else None


def _read_docs(text: str) -> list[Result] | None:
    """Read `Doc 1(Title: "t") text`, each on one line or more."""
    found: list[list[str]] = []
    for line in text.strip().splitlines():
        item = _DOC.match(line)
        if item and int(item["n"]) == len(found) + 1:
            found.append([line[item.end() :]])
        elif found:
            found[-1].append(line)
        else:
            return None
    results = []
    for rank, lines in enumerate(found, start=1):
        title, rest = _split_title(lines[0])
        address, others = _split_address([rest, *lines[1:]])
        url = address if address and "://" in address else None
        snippet = "\n".join(others).strip()
        results.append(Result(rank, None if url else address, url=url, title=title or None, snippet=snippet or None))
    return results


def _split_address(lines: list[str]) -> tuple[str | None, list[str]]:
    """Return the address in a document's `URL:` line, which is its first or last line with text, and the other lines.

    Only these two are looked at, as lines in between are the page's own text.
    """
    filled = [number for number, line in enumerate(lines) if line.strip()]
    for number in (filled[0], filled[-1]) if filled else ():
        if found := _ADDRESS.fullmatch(lines[number]):
            return found["address"], lines[:number] + lines[number + 1 :]
    return None, lines


def _split_title(text: str) -> tuple[str, str]:
    """Return the title up to its closing bracket, and what follows: `"A (film)") text` -> `A (film)`, `text`."""
    if text.startswith('"') and (end := text.find('")')) > 0:
        return text[1:end], text[end + 2 :]
    depth = 1
    for at, sign in enumerate(text[:1000]):  # no title is longer; the bracket is missing then
        depth += (sign == "(") - (sign == ")")
        if depth == 0:
            return text[:at], text[at + 1 :]
    return "", text


def _read_blocks(text: str) -> list[Result] | None:
    """Read blocks of `Title: ...`, `URL: ...`, `Content: ...`; a new block begins where the first label comes again.

    All lines below the last label of a block belong to it, also those with a colon, as pages have such lines.
    """
    blocks: list[dict[str, list[str]]] = []
    first = ""
    for line in text.strip().splitlines():
        found = _LABEL.match(line)
        name = _LABELS.get(normalise_key(found["label"])) if found else None
        if found is None or name is None:
            if blocks:
                next(reversed(blocks[-1].values())).append(line)
            elif not _is_heading(line):
                return None
            continue
        first = first or name
        if not blocks or (name == first and (len(blocks[-1]) > 1)):
            blocks.append({})
        if name in blocks[-1]:
            next(reversed(blocks[-1].values())).append(line)
        else:
            blocks[-1][name] = [found["value"]]
    if not all(block.keys() & {"url", "doc_id", "source"} or block.keys() >= {"title", "snippet"} for block in blocks):
        return None
    objects = [{name: "\n".join(lines).strip() or None for name, lines in block.items()} for block in blocks]
    results = [read_object(item, rank, "text") for rank, item in enumerate(objects, start=1)]
    return None if None in results else [result for result in results if result is not None]


def _make_result(rank: int, heading: str, url: str | None, lines: list[str], doc_id: str | None = None) -> Result:
    """Make a result of its heading and the lines below: first notes such as the date, then the snippet."""
    fields: list[tuple[str, str]] = []
    noted = 0
    while noted < len(lines) and (not lines[noted].strip() or _NOTES.match(lines[noted])):
        if (note := _NOTES.match(lines[noted])) and note["value"].strip():
            fields.append(("published" if note["label"] == "Date published" else "source", note["value"].strip()))
        noted += 1
    snippet = "\n".join(lines[noted:]).strip() or None
    title: str | None = heading.strip()
    if title and len(title) > 2 and title[0] == title[-1] == '"':
        title = title[1:-1]
    if url is None and title and snippet and snippet.startswith(title.removesuffix("...").rstrip()):
        title = None  # the tool found no title, and wrote the beginning of the text in its place
    return Result(rank, doc_id.strip() if doc_id else None, (), url, title or None, snippet, fields=tuple(fields))


def _is_heading(line: str) -> bool:
    """Return whether a line may stand above a list: it is blank, a Markdown heading, or `... results ...:`."""
    line = line.strip()
    if not line or line.startswith("#") or set(line) <= set("-=*_"):
        return True
    return len(line) <= 500 and line.endswith(":") and ("result" in line.lower() or "found" in line.lower())


#: In the order tried. Links come last: numbered lists and blocks also have lines that look like a bare link.
_LAYOUTS: tuple[Callable[[str], list[Result] | None], ...] = (_read_numbered, _read_docs, _read_blocks, _read_links)
