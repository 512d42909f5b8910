"""Texts that one product or model writes: Claude Code, Gemini CLI, Codex, DuckDuckGo, Search-R1, `<document>` elements."""

from __future__ import annotations

import re
from typing import Any

from goodgain.files.json_text import NotJSONError, loads
from goodgain.traces.model import Pairs, Result
from goodgain.traces.tool_outputs.result_objects import read_object, read_objects
from goodgain.traces.tool_outputs.text_lists import (
    BRACKET,
    Entry,
    Layout,
    find_closing,
    is_url,
    make_result,
    read_single_lines,
    split_entries,
)

_CLAUDE_BEGINNINGS, _LINKS = ("Web search results for query:", "Links: ["), "Links: ["
_GEMINI = "Web search results for "
#: `[1] title (uri)`, below the line `Sources:`.
_SOURCE_NUMBER = re.compile(r"\[\d{1,4}\] ")
#: The line below the title and address of a hit of Codex's web tool: its mark, notes, and text.
_CODEX_CITE = re.compile(
    "\ue200cite\ue202turn\\d{1,6}search\\d{1,6}\ue201 ?"
    r"(?:\[wordlim: \d{1,9}\] ?)?(?:Crawled: (?P<crawled>[^;]{0,60}); ?)?(?P<rest>.*)"
)
_DOC = re.compile(r"Doc (?P<n>\d{1,4}) ?(?P<kind>\(Title: ?|<## ?Title: ?|: ?)")
#: The line of a `Doc k` that names the document, by its URL or by its id in the corpus.
_ADDRESS = re.compile(r"\s{0,8}(?:URL|ID|docid): {0,8}(?P<address>\S+)\s{0,8}", re.IGNORECASE)
#: The search for the closing sign of a title ends here.
_LONGEST_TITLE = 1000
_STEP_SEARCH_END = "##>"

_AROUND_ELEMENTS = re.compile(r"(?:\s|</?documents>)*+")
_ELEMENT = re.compile(_AROUND_ELEMENTS.pattern + r"<document(?: [^<>\n]{0,300})?>")
_ELEMENT_END = "</document>"
#: The inner elements of a document, as the keys an object would have.
_PARTS = {
    **dict.fromkeys(("source", "url"), "url"),
    **dict.fromkeys(("document_content", "content"), "snippet"),
    "title": "title",
    "document_id": "doc_id",
}
_PART = re.compile(rf"\s*<(?P<name>{'|'.join(_PARTS)})>")


def _read_claude_code(text: str) -> list[Result] | None:
    """Read the arrays after `Links:`, one per line; the links in the prose below are not results."""
    if not text.startswith(_CLAUDE_BEGINNINGS):
        return None
    members: list[Any] = []
    for line in text.splitlines():
        if line.startswith(_LINKS):
            try:
                found = loads(line[len(_LINKS) - 1 :])
            except NotJSONError:
                return None
            members += found
    if not members or not all(isinstance(member, dict) for member in members):
        return None
    return [*(read_objects(members, "text") or ())] or None


def _split_source(text: str) -> Entry | None:
    """Return the entry of `title (https://...)`; both may have brackets."""
    title, _, url = f" {text.rstrip()}".rpartition(" (")
    return Entry(title, url[:-1], []) if url.endswith(")") and is_url(url[:-1]) else None


def _begin_source(lines: list[str], index: int) -> Entry | None:
    found = _SOURCE_NUMBER.match(lines[index])
    return _split_source(lines[index][found.end() :]) if found else None


def _read_gemini_cli(text: str) -> list[Result] | None:
    """Read the list below `Sources:` at the end of the text."""
    _, mark, after = text.rpartition("\nSources:\n")
    return read_single_lines(_begin_source, after.strip()) if mark and text.startswith(_GEMINI) else None


def _begin_codex(lines: list[str], index: int) -> Entry | None:
    """Begin at a line `title (url)` above the mark of a search's hit."""
    marks = [_CODEX_CITE.match(line) is not None for line in lines[index : index + 2]]
    return _split_source(lines[index]) if marks == [False, True] else None


def _read_codex(text: str) -> list[Result] | None:
    """Read hits: their title and address, their mark with notes on the next line, and text."""
    results = []
    for rank, entry in enumerate(split_entries(_begin_codex, text), start=1):
        crawled, entry.lines[0] = _CODEX_CITE.findall(entry.lines[0])[0]
        results.append(make_result(rank, entry, (("crawled", crawled),) if crawled else ()))
    return results or None


def _read_duckduckgo(text: str) -> list[Result] | None:
    """Read `snippet: s, title: t, link: u`, one result after the other; older versions put each in brackets."""
    text = text.strip()
    before, between = ("[snippet: ", "], [snippet: ") if text.startswith("[snippet: ") else ("snippet: ", ", snippet: ")
    if not text.startswith(before):
        return None
    text = text[len(before) :].removesuffix("]" if before.startswith("[") else "")
    results: list[Result] = []
    at = 0
    while at < len(text):
        link = text.find(", link: ", at)
        if link < 0:
            return None
        end = text.find(between, link)
        end = len(text) if end < 0 else end
        title = text.rfind(", title: ", at, link)
        url, _, notes = text[link + len(", link: ") : end].partition(", ")
        if title < 0 or not is_url(url):
            return None
        fields = _read_notes(notes)
        snippet = text[at:title].strip() or None
        name = text[title + len(", title: ") : link].strip() or None
        results.append(Result(len(results) + 1, url=url, title=name, snippet=snippet, fields=fields))
        at = end + len(between)
    return results or None


def _read_notes(text: str) -> Pairs:
    """Read `date: d, source: s` after the address of a news article."""
    notes = (note.partition(": ") for note in text.split(", "))
    names = {"date": "published", "source": "source"}
    return tuple((names[name], value) for name, _, value in notes if name in names and value)


def _begin_doc(lines: list[str], index: int) -> Entry | None:
    found = _DOC.match(lines[index])
    if found is None:
        return None
    title, rest = _split_title(found["kind"][0], lines[index][found.end() :])
    return Entry(title, None, [rest], number=int(found["n"]))


def _read_docs(text: str) -> list[Result] | None:
    """Read `Doc 1(Title: "t") text`, each on one line or more; also `Doc 1: text`, `Doc 1<## Title: "t" ##> text`."""
    results = []
    for rank, entry in enumerate(split_entries(_begin_doc, text), start=1):
        address, lines = _split_address(entry.lines)
        url = address if address and "://" in address else None
        snippet = "\n".join(lines).strip() or None
        results.append(Result(rank, None if url else address, url=url, title=entry.title or None, snippet=snippet))
    return results or None


def _split_address(lines: list[str]) -> tuple[str | None, list[str]]:
    """Return the address in a document's `URL:` line, which is its first or last line with text, and the other lines.

    The lines in between are the page's own text.
    """
    filled = [number for number, line in enumerate(lines) if line.strip()]
    for number in (filled[0], filled[-1]) if filled else ():
        if found := _ADDRESS.fullmatch(lines[number]):
            return found["address"], lines[:number] + lines[number + 1 :]
    return None, lines


def _split_title(kind: str, text: str) -> tuple[str, str]:
    """Return the title up to its closing sign, and the rest: `"A (film)") text` -> `A (film)`, `text`."""
    if kind == ":":
        return "", text
    if kind == "<":
        title, mark, rest = text.partition(_STEP_SEARCH_END)
        return (title.strip().strip('"'), rest) if mark else ("", text)
    if text.startswith('"') and (end := text.find('")')) > 0:
        return text[1:end], text[end + 2 :]
    end = find_closing(text[:_LONGEST_TITLE], 0, BRACKET)
    return (text[:end], text[end + 1 :]) if end >= 0 else ("", text)


def _read_elements(text: str) -> list[Result] | None:
    """Read `<document>` elements with `<source>` and `<document_content>`, after `<documents>` or at the beginning."""
    results: list[Result] = []
    first = text.find("<document")
    at = first if text.startswith("<documents>", first) else 0
    while head := _ELEMENT.match(text, at):
        end = text.find(_ELEMENT_END, head.end())
        if end < 0 or (result := _read_element(text[head.end() : end], len(results) + 1)) is None:
            return None
        results.append(result)
        at = end + len(_ELEMENT_END)
    return results if results and _AROUND_ELEMENTS.fullmatch(text, at) else None


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


CLAUDE_CODE = Layout(
    "links of Claude Code",
    "Claude Code's WebSearch",
    'Web search results for query: "sand"\n\n'
    'Links: [{"title":"On dunes","url":"https://a.example/1"},{"title":"On lakes","url":"https://b.example/2"}]\n\n'
    "Dunes move [as seen](https://c.example).",
    _read_claude_code,
    has_other_links=True,
)
GEMINI_CLI = Layout(
    "sources of Gemini CLI",
    "Gemini CLI's google_web_search",
    'Web search results for "sand":\n\nDunes move [1], lakes stay [2].\n\n'
    "Sources:\n[1] On dunes (https://a.example/1)\n[2] On lakes (https://b.example/2)",
    _read_gemini_cli,
    has_other_links=True,
)
CODEX = Layout(
    "hits of Codex",
    "Codex' web.run",
    "On dunes (https://a.example/1)\n\ue200cite\ue202turn1search0\ue201 [wordlim: 200] Crawled: 2 days ago; Sand that moves.\n"
    "On lakes (https://b.example/2)\n\ue200cite\ue202turn1search1\ue201 [wordlim: 200] Crawled: 2 days ago; Water that stays.",
    _read_codex,
)
DUCKDUCKGO = Layout(
    "snippet, title, link",
    "DuckDuckGo of LangChain",
    "snippet: Sand that moves., title: On dunes, link: https://a.example/1, "
    "snippet: Water that stays., title: On lakes, link: https://b.example/2",
    _read_duckduckgo,
)
DOCS = Layout(
    "numbered documents",
    "Search-R1, ZeroSearch (`Doc 1: text`), StepSearch (`Doc 1<## Title: t ##> text`)",
    'Doc 1(Title: "On dunes") Sand that moves.\nDoc 2(Title: "On lakes") Water that stays.',
    _read_docs,
)
ELEMENTS = Layout(
    "document elements",
    "agents that follow Anthropic's advice for long prompts",
    '<documents>\n<document index="1">\n<source>https://a.example/1</source>\n'
    "<document_content>Sand that moves.</document_content>\n</document>\n"
    '<document index="2">\n<source>https://b.example/2</source>\n'
    "<document_content>Water that stays.</document_content>\n</document>\n</documents>",
    _read_elements,
)
