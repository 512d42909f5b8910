"""Texts that one product writes: Claude Code, Gemini CLI, Codex, DuckDuckGo of LangChain."""

from __future__ import annotations

import re
from typing import Any

from goodgain.files.json_text import NotJSONError, loads
from goodgain.traces.model import Pairs, Result
from goodgain.traces.tool_outputs.layout import Entry, Layout, is_url, make_result
from goodgain.traces.tool_outputs.objects import read_objects

__all__ = ["CLAUDE_CODE", "CODEX", "DUCKDUCKGO", "GEMINI_CLI"]

_CLAUDE_BEGINNINGS, _LINKS = ("Web search results for query:", "Links: ["), "Links: ["
_GEMINI = "Web search results for "
#: `[1] title (uri)`, below the line `Sources:`.
_SOURCE_NUMBER = re.compile(r"\[(?P<n>\d{1,4})\] ")
#: The line below the title and address of a hit of Codex's web tool, up to its text.
_CODEX_CITE = re.compile("\ue200cite\ue202turn\\d{1,6}search\\d{1,6}\ue201 ?(?P<rest>.*)")
_CODEX_NOTES = re.compile(r"(?:\[wordlim: \d{1,9}\] ?)?(?:Crawled: (?P<crawled>[^;]{0,60}); ?)?")


def _read_claude_code(text: str) -> list[Result] | None:
    """Read the arrays behind `Links:`, each on a line of its own; the links in the prose below are not results."""
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


def _read_gemini_cli(text: str) -> list[Result] | None:
    """Read the list below `Sources:` at the end of the text."""
    if not text.startswith(_GEMINI):
        return None
    _, mark, after = text.rpartition("\nSources:\n")
    results: list[Result] = []
    for line in after.strip().splitlines() if mark else ():
        number = _SOURCE_NUMBER.match(line)
        if number is None:
            return None
        title, url = _split_bracketed_url(line[number.end() :])
        if url is None:
            return None
        results.append(Result(len(results) + 1, url=url, title=title or None))
    return results or None


def _split_bracketed_url(text: str) -> tuple[str, str | None]:
    """Return title and address of `title (https://...)`; the address may hold brackets."""
    text = text.rstrip()
    start = text.rfind(" (http")
    start = 0 if start < 0 and text.startswith("(http") else start
    if start < 0 or not text.endswith(")"):
        return text, None
    url = text[start:].lstrip()[1:-1]
    return (text[:start].strip(), url) if is_url(url) else (text, None)


def _read_codex(text: str) -> list[Result] | None:
    """Read hits, each a line `title (url)` and a line with the mark of a search's hit, then text."""
    if "\ue200cite\ue202" not in text:
        return None
    lines = text.splitlines()
    found: list[tuple[Entry, Pairs]] = []
    skip = -1
    for index, line in enumerate(lines):
        if index == skip:
            continue
        below = _CODEX_CITE.match(lines[index + 1]) if index + 1 < len(lines) else None
        title, url = _split_bracketed_url(line) if below else ("", None)
        if below and url is not None:
            notes = _CODEX_NOTES.match(below["rest"])
            crawled = (notes["crawled"] or "") if notes else ""
            rest = below["rest"][notes.end() :] if notes else below["rest"]
            found.append((Entry(title, url, [rest]), (("crawled", crawled),) if crawled else ()))
            skip = index + 1
        elif found:
            found[-1][0].lines.append(line)
        elif line.strip():
            return None
    return [make_result(rank, entry, fields) for rank, (entry, fields) in enumerate(found, start=1)] or None


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
    """Read `date: d, source: s` behind the address of a piece of news."""
    notes = (note.partition(": ") for note in text.split(", "))
    names = {"date": "published", "source": "source"}
    return tuple((names[name], value) for name, _, value in notes if name in names and value)


CLAUDE_CODE: Layout[str, Any] = Layout(
    "links of Claude Code",
    "Claude Code's WebSearch",
    'Web search results for query: "sand"\n\n'
    'Links: [{"title":"On dunes","url":"https://a.example/1"},{"title":"On lakes","url":"https://b.example/2"}]\n\n'
    "Dunes move [as seen](https://c.example).",
    _read_claude_code,
    has_other_links=True,
)
GEMINI_CLI: Layout[str, Any] = Layout(
    "sources of Gemini CLI",
    "Gemini CLI's google_web_search",
    'Web search results for "sand":\n\nDunes move [1], lakes stay [2].\n\n'
    "Sources:\n[1] On dunes (https://a.example/1)\n[2] On lakes (https://b.example/2)",
    _read_gemini_cli,
    has_other_links=True,
)
CODEX: Layout[str, Any] = Layout(
    "hits of Codex",
    "Codex' web.run",
    "On dunes (https://a.example/1)\n\ue200cite\ue202turn1search0\ue201 [wordlim: 200] Crawled: 2 days ago; Sand that moves.\n"
    "On lakes (https://b.example/2)\n\ue200cite\ue202turn1search1\ue201 [wordlim: 200] Crawled: 2 days ago; Water that stays.",
    _read_codex,
)
DUCKDUCKGO: Layout[str, Any] = Layout(
    "snippet, title, link",
    "DuckDuckGo of LangChain",
    "snippet: Sand that moves., title: On dunes, link: https://a.example/1, "
    "snippet: Water that stays., title: On lakes, link: https://b.example/2",
    _read_duckduckgo,
)
