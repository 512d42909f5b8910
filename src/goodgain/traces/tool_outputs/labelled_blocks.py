"""Blocks of labelled lines: `Title: ...`, `URL: ...`, `Content: ...`."""

from __future__ import annotations

import re

from goodgain.traces.model import Result
from goodgain.traces.tool_outputs.result_objects import normalise_key, read_objects
from goodgain.traces.tool_outputs.text_lists import Entry, Layout, is_heading, make_result, split_entries

_LABEL = re.compile(
    r"\s{0,8}(?:[-*] {1,4}|\d{1,4}[.)] {1,4})?\*{0,2}(?P<label>[A-Za-z][A-Za-z _]{0,24})\*{0,2}:{1,2} ?\*{0,2} ?(?P<value>.*)"
)
#: The labels, as the keys an object would have.
_LABELS = {
    **dict.fromkeys(("title", "name", "headline"), "title"),
    **dict.fromkeys(("url", "link", "href", "uri", "urlsource", "sourceurl"), "url"),
    **dict.fromkeys(("content", "snippet", "text", "summary", "description", "body", "abstract"), "snippet"),
    **dict.fromkeys(("id", "docid", "documentid", "docno", "pmid"), "doc_id"),
    **dict.fromkeys(("date", "published", "publisheddate", "datepublished"), "published"),
    **dict.fromkeys(("author", "authors"), "author"),
    **{name: name for name in ("score", "source", "metadata", "highlights", "copyrightinformation")},
}
#: Labels with a value of one line: the same label again begins the next block.
_OF_ONE_LINE = ("doc_id", "url")
_RULE = re.compile(r"\s*-{3,}\s*")
#: The beginning of the list of Tavily's MCP server, and of the pictures after it.
_TAVILY_LIST, _TAVILY_PICTURES = "Detailed Results:", re.compile(r"^Images:[ \t]{0,8}\n{1,4}\[1\] URL: ", re.MULTILINE)
_JINA_LINE = re.compile(r"\[(?P<n>\d{1,4})\] (?P<label>[A-Z][A-Za-z ]{0,24}): ?(?P<value>.*)")
_JINA_LABELS = {
    "Title": "title",
    "URL Source": "url",
    "Description": "snippet",
    "Published Time": "published",
    "Date": "published",
}

_Block = dict[str, list[str]]


def _read_labelled(text: str) -> list[Result] | None:
    """Read blocks; the first label begins a new one each time, even if the line belongs to a text."""
    return _make_results(_split_blocks(text, ruled=False))


def _read_ruled(text: str) -> list[Result] | None:
    """Read blocks between rules (`---`): a rule separates two of them only if the first label follows it."""
    blocks = _split_blocks(text, ruled=True)
    ruled = _make_results(blocks) if len(blocks) > 1 else None
    every = _read_labelled(text) if ruled else None
    # If each line with the first label begins a block with an address, the rules are lines of pages.
    return None if every and ruled and len(every) > len(ruled) and all(result.url for result in every) else ruled


def _split_blocks(text: str, *, ruled: bool) -> list[_Block]:
    """Return the blocks of a text, with the lines of each label; none if text other than headings comes first.

    All lines below the last label of a block belong to it, even those with a colon: pages have such lines.
    """
    blocks: list[_Block] = []
    first, after_rule = "", ruled
    for line in text.strip().splitlines():
        if ruled and _RULE.fullmatch(line):
            after_rule = True
        if after_rule and (not line.strip() or _RULE.fullmatch(line)):
            continue
        found = _LABEL.match(line)
        name = _LABELS.get(normalise_key(found["label"]), "") if found else ""
        begins = after_rule if ruled else not blocks or len(blocks[-1]) > 1 or first in _OF_ONE_LINE
        if name and begins and name == (first or name):
            first = name
            blocks.append({})
        elif not blocks:
            if not is_heading(line):
                return []
            continue
        after_rule = False
        if found and name and name not in blocks[-1]:
            blocks[-1][name] = [found["value"]]
        else:
            last = next(reversed(blocks[-1]))
            blocks[-1].setdefault("snippet" if last in _OF_ONE_LINE and line.strip() else last, []).append(line)
    return blocks


def _make_results(blocks: list[_Block]) -> list[Result] | None:
    """Make a result of each block; None if one of them has neither an address nor a title with a text."""
    if not all(block.keys() & {"url", "doc_id", "source"} or block.keys() >= {"title", "snippet"} for block in blocks):
        return None
    objects = [{name: "\n".join(lines).strip() or None for name, lines in block.items()} for block in blocks]
    return [*(read_objects(objects, "text") or ())] or None


def _read_tavily(text: str) -> list[Result] | None:
    """Read the text after `Detailed Results:`, without the pictures at the end."""
    before, mark, after = text.partition(_TAVILY_LIST)
    if not mark or (before.strip() and not before.lstrip().startswith("Answer:")):
        return None
    if pictures := _TAVILY_PICTURES.search(after):
        after = after[: pictures.start()]
    return _read_labelled(after)


def _begin_wikipedia(lines: list[str], index: int) -> Entry | None:
    follows = lines[index + 1] if index + 1 < len(lines) else ""
    begins = lines[index].startswith("Page: ") and follows.startswith("Summary:")
    is_parted = not index or not lines[index - 1].strip()
    return Entry(lines[index].removeprefix("Page: "), None, []) if begins and is_parted else None


def _read_wikipedia(text: str) -> list[Result] | None:
    """Read `Page: t` with `Summary: s` on the next line, separated by blank lines."""
    entries = split_entries(_begin_wikipedia, text)
    for entry in entries:
        entry.lines[0] = entry.lines[0].removeprefix("Summary:")
    return [make_result(rank, entry) for rank, entry in enumerate(entries, start=1)] or None


def _begin_jina(lines: list[str], index: int) -> Entry | None:
    found = _JINA_LINE.match(lines[index])
    if found is None or found["label"] != "Title":
        return None
    return Entry(found["value"], None, [], number=int(found["n"]))


def _read_jina(text: str) -> list[Result] | None:
    """Read `[1] Title: t`, `[1] URL Source: u`, `[1] Description: s`, and the page below; counted from 0 or 1."""
    blocks: list[_Block] = []
    for entry in split_entries(_begin_jina, text):
        block: _Block = {"title": [entry.title or ""]}
        page: list[str] = []
        for line in entry.lines:
            found = _JINA_LINE.match(line)
            if found and int(found["n"]) == entry.number and found["label"] in _JINA_LABELS:
                block.setdefault(_JINA_LABELS[found["label"]], []).append(found["value"])
            else:
                page.append(line)
        if any(line.strip() for line in page):
            block.setdefault("snippet", []).extend(page)
        blocks.append(block)
    return _make_results(blocks)


LABELLED = Layout(
    "labelled blocks",
    "arXiv and PubMed of LangChain (`Published:`, `PMID:` first), agents' own tools",
    "Title: On dunes\nURL: https://a.example/1\nContent: Sand that moves.\n\n"
    "Title: On lakes\nURL: https://b.example/2\nContent: Water that stays.",
    _read_labelled,
)
RULED = Layout(
    "labelled blocks between rules",
    "Exa's MCP server",
    "Title: On dunes\nURL: https://a.example/1\nHighlights:\nSand that moves.\n\n---\n\n"
    "Title: On lakes\nURL: https://b.example/2\nHighlights:\nWater that stays.",
    _read_ruled,
)
TAVILY = Layout(
    "labelled blocks below an answer",
    "Tavily's MCP server",
    "Answer: Sand, water.\nDetailed Results:\n\n"
    "Title: On dunes\nURL: https://a.example/1\nContent: Sand that moves.\n\n"
    "Title: On lakes\nURL: https://b.example/2\nContent: Water that stays.",
    _read_tavily,
    has_other_links=True,
)
WIKIPEDIA = Layout(
    "pages with a summary",
    "Wikipedia of LangChain",
    "Page: On dunes\nSummary: Sand that moves.\n\nPage: On lakes\nSummary: Water that stays.",
    _read_wikipedia,
)
JINA = Layout(
    "blocks whose labels are numbered",
    "Jina's search, also imitations that count from 0",
    "[1] Title: On dunes\n[1] URL Source: https://a.example/1\n[1] Description: Sand that moves.\n\n"
    "[2] Title: On lakes\n[2] URL Source: https://b.example/2\n[2] Description: Water that stays.",
    _read_jina,
    has_other_links=True,
)
