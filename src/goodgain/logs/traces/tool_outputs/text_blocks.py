"""Reads texts in blocks of labelled lines, in `<document>` elements, and in the layouts of seven products and a model.

The products are Claude Code, Gemini CLI, Codex, DuckDuckGo, Tavily, Wikipedia and Jina. The model is Search-R1.
"""

import re
from collections.abc import Sequence
from itertools import chain
from typing import Any

from goodgain.files.json_text import parse_if_json
from goodgain.logs.traces.model import Result
from goodgain.logs.traces.tool_outputs import text_lists as lists
from goodgain.logs.traces.tool_outputs.outcomes import CLAUDE_CODE, GEMINI_CLI
from goodgain.logs.traces.tool_outputs.result_objects import normalise_key, read_object, read_objects
from goodgain.logs.traces.tool_outputs.text_lists import Entry, is_url
from goodgain.logs.traces.tool_outputs.values_in_text import read_python

_LABEL = re.compile(
    r"\s{0,8}(?:[-*] {1,4}|\d{1,4}[.)] {1,4})?\*{0,2}(?P<label>[A-Za-z][A-Za-z _]{0,24})\*{0,2}:{1,2} ?\*{0,2} ?(?P<value>.*)"
)
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
#: What may follow the address of a source on its line: `(score: 0.5)`.
_NOTE = re.compile(r"\s+\([^()]{0,80}\)\s*")
_RULE = re.compile(r"\s*-{3,}\s*")
#: The beginning of the list of Tavily's MCP server, and of the pictures after it.
_TAVILY_LIST = "Detailed Results:"
_TAVILY_PICTURES = re.compile(r"^Images:[ \t]{0,8}\n{1,4}\[1\] URL: ", re.MULTILINE)
_JINA_LINE = re.compile(r"\[(?P<n>\d{1,4})\] (?P<label>[A-Z][A-Za-z ]{0,24}): ?(?P<value>.*)")
_JINA_LABELS = {
    "Title": "title",
    "URL Source": "url",
    "Description": "snippet",
    "Published Time": "published",
    "Date": "published",
}
#: Name of a note of DuckDuckGo on a news article -> field of a result.
_NEWS_NOTES = {"date": "published", "source": "source"}
_LINKS_LABEL = "Links: "
_LINKS = f"{_LINKS_LABEL}["
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
#: How far to search for the end of a title.
_LONGEST_TITLE = 1000
_STEP_SEARCH_END = "##>"

_AROUND_ELEMENTS = re.compile(r"(?:\s|</?documents>)*+")
_ELEMENT = re.compile(_AROUND_ELEMENTS.pattern + r"<document(?: [^<>\n]{0,300})?>")
_ELEMENT_END = "</document>"
_PARTS = {
    **dict.fromkeys(("source", "url"), "url"),
    **dict.fromkeys(("document_content", "content"), "snippet"),
    "title": "title",
    "document_id": "doc_id",
}
_PART = re.compile(rf"\s*<(?P<name>{'|'.join(_PARTS)})>")

_Block = dict[str, list[str]]


def read_labelled(text: str) -> Sequence[Result] | None:
    """Read blocks of lines such as `Title: t`. Each block begins with the label that comes first in the text."""
    return _make_results(_split_blocks(text, ruled=False))


def read_ruled(text: str) -> Sequence[Result] | None:
    """Read labelled lines between rules (`---`). A rule begins a block only if the next line has the first label of the text."""
    blocks = _split_blocks(text, ruled=True)
    ruled = _make_results(blocks) if len(blocks) > 1 else None
    every = read_labelled(text) if ruled else None
    # If each line with the first label begins a block with an address, the rules are parts of pages.
    if every and ruled and len(every) > len(ruled) and all(result.url for result in every):
        return None
    return ruled


def _split_blocks(text: str, *, ruled: bool) -> list[_Block]:
    """Return the labelled blocks of a text as dicts from label to lines; none if a line above the blocks is not a heading."""
    blocks: list[_Block] = []
    first, after_rule = "", ruled
    names_sources = False  # blocks begin with `Source:` and an address

    for line in text.strip().splitlines():
        if ruled and _RULE.fullmatch(line):
            after_rule = True
        if after_rule and (not line.strip() or _RULE.fullmatch(line)):
            continue
        match = _LABEL.match(line)
        name = _LABELS.get(normalise_key(match["label"]), "") if match else ""
        begins = after_rule if ruled else not blocks or len(blocks[-1]) > 1 or first in _OF_ONE_LINE
        is_source = match is not None and name == "source" and _has_address(match["value"])
        if first == name == "source" and names_sources:
            begins = is_source  # else it is a line of a page
        if name and begins and name == (first or name):
            if not first:
                names_sources = is_source
            first = name
            blocks.append({})
        elif not blocks:
            if not lists.is_heading(line):
                return []
            continue
        after_rule = False
        if match and name and name not in blocks[-1]:
            blocks[-1][name] = [match["value"]]
        else:  # all lines below the last label are its value, even lines with a colon: pages have such lines
            last = next(reversed(blocks[-1]))
            is_one_line = last in _OF_ONE_LINE or (last == "source" and names_sources)
            blocks[-1].setdefault("snippet" if is_one_line and line.strip() else last, []).append(line)

    return blocks


def _make_results(blocks: list[_Block]) -> Sequence[Result] | None:
    """Make a result from each block. Return None unless every block has an address or an id, or both a title and a text."""
    if not all(block.keys() & {"url", "doc_id", "source"} or block.keys() >= {"title", "snippet"} for block in blocks):
        return None
    objects: list[dict[str, Any]] = []
    for block in blocks:
        item: dict[str, Any] = {name: "\n".join(lines).strip() or None for name, lines in block.items()}
        source = _read_source(item.get("source") or "")
        if source is not None and "url" not in item:
            del item["source"]
            item |= source
        objects.append(item)
    return read_objects(objects, "text")


def _has_address(text: str) -> bool:
    return text.startswith("{") or lists.find_address(_NOTE.sub("", text)) is not None


def _read_source(text: str) -> dict[str, Any] | None:
    """Return the address in the value of `Source:`, or the metadata that LangChain's tutorial prints there. Else return None."""
    if text.startswith("{") and (values := read_python(text.strip())) is not None:
        return {"metadata": values[0]}
    address = lists.find_address(_NOTE.sub("", text))
    return None if address is None else {"url": address}


def read_tavily(text: str) -> Sequence[Result] | None:
    """Read Tavily's results after `Detailed Results:`, without the images listed at the end."""
    before, mark, after = text.partition(_TAVILY_LIST)
    if not mark or (before.strip() and not before.lstrip().startswith("Answer:")):
        return None
    if pictures := _TAVILY_PICTURES.search(after):
        after = after[: pictures.start()]
    return read_labelled(after)


def _begin_wikipedia(lines: list[str], index: int) -> Entry | None:
    """Return the entry that begins with `Page: t`: at the start or after a blank line, and above a line `Summary: s`."""
    follows = lines[index + 1] if index + 1 < len(lines) else ""
    begins = lines[index].startswith("Page: ") and follows.startswith("Summary:")
    is_parted = not index or not lines[index - 1].strip()
    if begins and is_parted:
        return Entry(lines[index].removeprefix("Page: "), None, [])
    return None


def read_wikipedia(text: str) -> list[Result] | None:
    """Read pairs of lines `Page: t` and `Summary: s`, separated by blank lines."""
    entries = lists.split_entries(_begin_wikipedia, text)
    for entry in entries:
        entry.lines[0] = entry.lines[0].removeprefix("Summary:")
    return [lists.make_result(rank, entry) for rank, entry in enumerate(entries, start=1)] or None


def _begin_jina(lines: list[str], index: int) -> Entry | None:
    match = _JINA_LINE.match(lines[index])
    if match is None or match["label"] != "Title":
        return None
    return Entry(match["value"], None, [], number=int(match["n"]))


def read_jina(text: str) -> Sequence[Result] | None:
    """Read `[1] Title: t`, `[1] URL Source: u`, `[1] Description: s`, and the page text below. Numbers begin at 0 or 1."""
    blocks: list[_Block] = []
    for entry in lists.split_entries(_begin_jina, text):
        block: _Block = {"title": [entry.title or ""]}
        page: list[str] = []
        for line in entry.lines:
            match = _JINA_LINE.match(line)
            if match and int(match["n"]) == entry.number and match["label"] in _JINA_LABELS:
                block.setdefault(_JINA_LABELS[match["label"]], []).append(match["value"])
            else:
                page.append(line)
        if any(line.strip() for line in page):
            block.setdefault("snippet", []).extend(page)
        blocks.append(block)

    return _make_results(blocks)


def read_claude_code(text: str) -> Sequence[Result] | None:
    """Read the JSON arrays after `Links:` in Claude Code's output. Links in the prose below them are not results."""
    if not text.startswith((CLAUDE_CODE, _LINKS)):  # the first line, with the query, may be missing
        return None

    lines = [line for line in text.splitlines() if line.startswith(_LINKS)]
    arrays = [parse_if_json(line.removeprefix(_LINKS_LABEL)) for line in lines]
    if not all(isinstance(links, list) for links in arrays):
        return None

    links_of_all = list(chain.from_iterable(arrays))
    if not all(isinstance(link, dict) for link in links_of_all):
        return None
    return read_objects(links_of_all, at="text")


def _split_source(text: str) -> Entry | None:
    """Split `title (https://...)` into title and address. Both may contain brackets."""
    title, _, url = f" {text.rstrip()}".rpartition(" (")
    if url.endswith(")") and is_url(url[:-1]):
        return Entry(title, url[:-1], [])
    return None


def _begin_source(lines: list[str], index: int) -> Entry | None:
    match = _SOURCE_NUMBER.match(lines[index])
    if match:
        return _split_source(lines[index][match.end() :])
    return None


def read_gemini_cli(text: str) -> list[Result] | None:
    """Read the list below `Sources:` at the end of Gemini CLI's output."""
    _, mark, after = text.rpartition("\nSources:\n")
    if mark and text.startswith(GEMINI_CLI):
        return lists.read_single_lines(_begin_source, after.strip())
    return None


def _begin_codex(lines: list[str], index: int) -> Entry | None:
    marks = [_CODEX_CITE.match(line) is not None for line in lines[index : index + 2]]
    if marks == [False, True]:
        return _split_source(lines[index])
    return None


def read_codex(text: str) -> list[Result] | None:
    """Read Codex's results: each has a line `title (address)`, a line with a citation mark, and a text."""
    results = []
    for rank, entry in enumerate(lists.split_entries(_begin_codex, text), start=1):
        crawled, entry.lines[0] = _CODEX_CITE.findall(entry.lines[0])[0]
        results.append(lists.make_result(rank, entry, (("crawled", crawled),) if crawled else ()))
    return results or None


def read_duckduckgo(text: str) -> list[Result] | None:
    """Read DuckDuckGo's results `snippet: s, title: t, link: u`. Older versions put each result in brackets."""
    text = text.strip()
    if text.startswith("[snippet: "):
        between = "], [snippet: "
        text = text.removeprefix("[snippet: ").removesuffix("]")
    elif text.startswith("snippet: "):
        between = ", snippet: "
        text = text.removeprefix("snippet: ")
    else:
        return None

    # from behind `snippet: ` to the next one: (snippet and title), link: (URL and notes)
    hit = re.compile(rf"(.*?), link: (.*?)(?:{re.escape(between)}|\Z)", re.DOTALL)
    results: list[Result] = []
    position = 0

    while position < len(text):
        match = hit.match(text, position)
        if match is None:
            return None
        position = match.end()
        snippet, mark, title = match[1].rpartition(", title: ")
        url, _, notes = match[2].partition(", ")
        if not mark or not is_url(url):
            return None

        fields = []
        for note in notes.split(", "):  # of a news article: `date: d, source: s`
            name, _, value = note.partition(": ")
            if name in _NEWS_NOTES and value:
                fields.append((_NEWS_NOTES[name], value))

        rank = len(results) + 1
        title, snippet = title.strip() or None, snippet.strip() or None
        results.append(Result(rank, url=url, title=title, snippet=snippet, fields=tuple(fields)))

    return results or None


def _begin_doc(lines: list[str], index: int) -> Entry | None:
    match = _DOC.match(lines[index])
    if match is None:
        return None
    title, first_line = _split_title(match["kind"][0], lines[index][match.end() :])
    return Entry(title, None, [first_line], number=int(match["n"]))


def read_docs(text: str) -> list[Result] | None:
    """Read documents in the form `Doc 1(Title: "t") text`, `Doc 1: text` or `Doc 1<## Title: "t" ##> text`."""
    results = []
    for rank, entry in enumerate(lists.split_entries(_begin_doc, text), start=1):
        address, lines = _split_address(entry.lines)
        url = address if address and "://" in address else None
        snippet = "\n".join(lines).strip() or None
        results.append(Result(rank, None if url else address, url=url, title=entry.title or None, snippet=snippet))
    return results or None


def _split_address(lines: list[str]) -> tuple[str | None, list[str]]:
    """Split lines into address and other lines. The address is on the first or last non-blank line, as `URL: ...` or `ID: ...`."""
    filled = [number for number, line in enumerate(lines) if line.strip()]
    for number in (filled[0], filled[-1]) if filled else ():
        if match := _ADDRESS.fullmatch(lines[number]):
            return match["address"], lines[:number] + lines[number + 1 :]
    return None, lines


def _split_title(kind: str, text: str) -> tuple[str, str]:
    """Split the rest of a line, after `Doc 1(Title: ` etc., into title and text: `"A (film)") text` -> `A (film)`, ` text`."""
    if kind == ":":
        return "", text
    if kind == "<":
        title, mark, text_after = text.partition(_STEP_SEARCH_END)
        if mark:
            return (title.strip().strip('"'), text_after)
        return ("", text)
    if text.startswith('"') and (end := text.find('")')) > 0:
        return text[1:end], text[end + 2 :]
    end = lists.find_closing(text[:_LONGEST_TITLE], 0, lists.BRACKET)
    if end >= 0:
        return (text[:end], text[end + 1 :])
    return ("", text)


def read_elements(text: str) -> list[Result] | None:
    """Read `<document>` elements with `<source>` and `<document_content>`, after `<documents>` or at the beginning of the text."""
    results: list[Result] = []
    first = text.find("<document")
    at = first if text.startswith("<documents>", first) else 0
    while head := _ELEMENT.match(text, at):
        end = text.find(_ELEMENT_END, head.end())
        if end < 0 or (result := _read_element(text[head.end() : end], len(results) + 1)) is None:
            return None
        results.append(result)
        at = end + len(_ELEMENT_END)
    if results and _AROUND_ELEMENTS.fullmatch(text, at):
        return results
    return None


def _read_element(text: str, rank: int) -> Result | None:
    """Read what is inside a `<document>`: parts such as `<source>`, then text, which is the snippet unless a part is.

    A source that is not a URL is the id. Return None without a URL, an id and a text.
    """
    fields: dict[str, str] = {}
    at = 0
    while (part := _PART.match(text, at)) and _PARTS[part["name"]] not in fields:
        end = text.find(f"</{part['name']}>", part.end())
        if end < 0:
            break
        fields[_PARTS[part["name"]]] = text[part.end() : end].strip()
        at = end + len(part["name"]) + 3

    if text[at:].strip():
        fields.setdefault("snippet", text[at:].strip())
    address = fields.get("url")
    if address and "://" not in address:
        fields.setdefault("doc_id", fields.pop("url"))
    if fields.keys() & {"url", "doc_id", "snippet"}:
        return read_object(dict(fields), rank, "text")
    return None
