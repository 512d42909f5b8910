"""Documents one after the other: `Doc 1(Title: t) text`, and `<document>` elements."""

from __future__ import annotations

import re
from typing import Any

from goodgain.traces.model import Result
from goodgain.traces.tool_outputs.layout import Layout
from goodgain.traces.tool_outputs.objects import read_object

__all__ = ["DOCS", "ELEMENTS"]

_DOC = re.compile(r"Doc (?P<n>\d{1,4}) ?(?P<kind>\(Title: ?|<## ?Title: ?|: ?)")
#: The line of a `Doc k` that names the document, by its URL or by its id in the corpus.
_ADDRESS = re.compile(r"\s{0,8}(?:URL|ID|docid): {0,8}(?P<address>\S+)\s{0,8}", re.IGNORECASE)
#: No title is longer; where its closing sign is missing, looking for it ends here.
_LONGEST_TITLE = 1000
_STEP_SEARCH_END = "##>"

_ELEMENT = re.compile(r"<document(?P<attributes>(?: [^<>\n]{0,300})?)>")
_ELEMENT_END, _WRAPPERS = "</document>", re.compile(r"</?documents>")
#: The inner elements of a document, as the keys an object would have.
_PARTS = {
    **dict.fromkeys(("source", "url"), "url"),
    **dict.fromkeys(("document_content", "content"), "snippet"),
    "title": "title",
    "document_id": "doc_id",
}
_PART = re.compile(rf"\s*<(?P<name>{'|'.join(_PARTS)})>")


def _read_docs(text: str) -> list[Result] | None:
    """Read `Doc 1(Title: "t") text`, each on one line or more; also `Doc 1: text`, `Doc 1<## Title: "t" ##> text`."""
    found: list[tuple[str, list[str]]] = []
    for line in text.strip().splitlines():
        item = _DOC.match(line)
        if item and int(item["n"]) == len(found) + 1:
            found.append((item["kind"][0], [line[item.end() :]]))
        elif found:
            found[-1][1].append(line)
        else:
            return None
    results = []
    for rank, (kind, lines) in enumerate(found, start=1):
        title, rest = _split_title(kind, lines[0])
        address, others = _split_address([rest, *lines[1:]])
        url = address if address and "://" in address else None
        snippet = "\n".join(others).strip()
        results.append(Result(rank, None if url else address, url=url, title=title or None, snippet=snippet or None))
    return results or None


def _split_address(lines: list[str]) -> tuple[str | None, list[str]]:
    """Return the address in a document's `URL:` line, which is its first or last line with text, and the other lines.

    Only these two are looked at, as lines in between are the page's own text.
    """
    filled = [number for number, line in enumerate(lines) if line.strip()]
    for number in (filled[0], filled[-1]) if filled else ():
        if found := _ADDRESS.fullmatch(lines[number]):
            return found["address"], lines[:number] + lines[number + 1 :]
    return None, lines


def _split_title(kind: str, text: str) -> tuple[str, str]:
    """Return the title up to its closing sign, and what follows: `"A (film)") text` -> `A (film)`, `text`."""
    if kind == ":":
        return "", text
    if kind == "<":
        title, mark, rest = text.partition(_STEP_SEARCH_END)
        return (title.strip().strip('"'), rest) if mark else ("", text)
    if text.startswith('"') and (end := text.find('")')) > 0:
        return text[1:end], text[end + 2 :]
    depth = 1
    for at, sign in enumerate(text[:_LONGEST_TITLE]):
        depth += (sign == "(") - (sign == ")")
        if depth == 0:
            return text[:at], text[at + 1 :]
    return "", text


def _read_elements(text: str) -> list[Result] | None:
    """Read `<document>` elements with `<source>` and `<document_content>`; only `<documents>` may stand around them."""
    results: list[Result] = []
    at = 0
    while (start := text.find("<document", at)) >= 0:
        between = _WRAPPERS.sub("", text[at:start])
        if text.startswith("<documents>", start):
            at = start + len("<documents>")
        elif between.strip() or not (head := _ELEMENT.match(text, start)):
            return None
        else:
            end = text.find(_ELEMENT_END, head.end())
            if end < 0 or (result := _read_element(text[head.end() : end], len(results) + 1)) is None:
                return None
            results.append(result)
            at = end + len(_ELEMENT_END)
    return results if results and not _WRAPPERS.sub("", text[at:]).strip() else None


def _read_element(text: str, rank: int) -> Result | None:
    """Read the inside of a document element: its inner elements in any order, or its text."""
    found: dict[str, str] = {}
    at = 0
    while (part := _PART.match(text, at)) and _PARTS[part["name"]] not in found:
        end = text.find(f"</{part['name']}>", part.end())
        if end < 0:
            break
        found[_PARTS[part["name"]]] = text[part.end() : end].strip()
        at = end + len(part["name"]) + 3
    if text[at:].strip():
        found.setdefault("snippet", text[at:].strip())
    address = found.get("url")
    if address and "://" not in address:
        found.setdefault("doc_id", found.pop("url"))
    return read_object(dict(found), rank, "text") if found.keys() & {"url", "doc_id", "snippet"} else None


DOCS: Layout[str, Any] = Layout(
    "numbered documents",
    "Search-R1, ZeroSearch (`Doc 1: text`), StepSearch (`Doc 1<## Title: t ##> text`)",
    'Doc 1(Title: "On dunes") Sand that moves.\nDoc 2(Title: "On lakes") Water that stays.',
    _read_docs,
)
ELEMENTS: Layout[str, Any] = Layout(
    "document elements",
    "agents that follow Anthropic's advice for long prompts",
    '<documents>\n<document index="1">\n<source>https://a.example/1</source>\n'
    "<document_content>Sand that moves.</document_content>\n</document>\n"
    '<document index="2">\n<source>https://b.example/2</source>\n'
    "<document_content>Water that stays.</document_content>\n</document>\n</documents>",
    _read_elements,
)
