"""Writers of every layout of tool outputs, from a list of pages: what the readers must give back.

`WRITERS` has for each layout, by its name, a function from pages to an output, and the fields of a page that it keeps;
`WRITTEN_BY` has who writes it. The page docs/reference/tool_layouts.md shows both.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

__all__ = ["WRITERS", "WRITTEN_BY", "Page", "make_pages"]


class Page(NamedTuple):
    """A page that a search found."""

    doc_id: str
    url: str
    title: str
    snippet: str


_TITLES = [
    "On dunes",
    "A (film) of sand",
    "Lakes [pdf]",
    "Größe \U0001f600 & more",
    "What: a lake?",
    "10 - 5 = 5",
    "C++, or not",
]
_LINES = [
    "Sand that moves.", "It is old: very (old) [1], {so} <it> says.", "3. of them stay", "- a point", "größer \U0001f600",
    'He said "no".', "See https://c.example/x for more, it's good.", "a, b: c", "| 1 | 2 |", "Note: x", "\\ and /",
]  # fmt: skip
_PATHS = ["", "a", "b/c?d=e&f=g", "x_(y)", "%C3%A9#z", "q=a,b;c"]


def make_pages(chance: random.Random, *, most: int = 6) -> list[Page]:
    """Return random pages, at least one, each with another address."""
    return [
        Page(
            f"d{number}",
            f"https://{chance.choice('abc')}{number}.example/{chance.choice(_PATHS)}",
            chance.choice(_TITLES),
            "\n".join(chance.choices(_LINES, k=chance.randrange(1, 4))),
        )
        for number in range(chance.randrange(1, most + 1))
    ]


def _blocks(pages: list[Page], write: Callable[[int, Page], str], between: str = "\n\n", start: int = 1) -> str:
    return between.join(write(number, page) for number, page in enumerate(pages, start))


def _plain(page: Page, **keys: str) -> dict[str, str]:
    names = {"url": "url", "title": "title", "snippet": "text", **keys}
    return {name: getattr(page, field) for field, name in names.items()}


def _labelled(pages: list[Page], between: str = "\n\n", text: str = "Content: ") -> str:
    return _blocks(pages, lambda n, p: f"Title: {p.title}\nURL: {p.url}\n{text}{p.snippet}", between)


def _tavily(pages: list[Page]) -> str:
    pictures = "\n\nImages:\n\n[1] URL: https://a.example/1.png\n   Description: A dune."
    return f"Answer: Sand,\nand water.\nDetailed Results:\n\n{_labelled(pages)}{pictures}"


def _jina(pages: list[Page]) -> str:
    return _blocks(
        pages, lambda n, p: f"[{n}] Title: {p.title}\n[{n}] URL Source: {p.url}\n[{n}] Description: {p.snippet}"
    )


def _elements(pages: list[Page]) -> str:
    inside = _blocks(
        pages,
        lambda n, p: (
            f'<document index="{n}">\n<source>{p.url}</source>\n<title>{p.title}</title>\n'
            f"<document_content>\n{p.snippet}\n</document_content>\n</document>"
        ),
        "\n",
    )
    return f"<documents>\n{inside}\n</documents>"


def _duckduckgo(pages: list[Page]) -> str:
    return _blocks(pages, lambda n, p: f"snippet: {p.snippet}, title: {p.title}, link: {p.url}", ", ")


def _claude_code(pages: list[Page]) -> str:
    links = json.dumps([{"title": page.title, "url": page.url} for page in pages])
    return f'Web search results for query: "sand"\n\nLinks: {links}\n\nSee [this](https://no.example).\n\n\nREMINDER: cite.'


def _gemini_cli(pages: list[Page]) -> str:
    sources = _blocks(pages, lambda n, p: f"[{n}] {p.title} ({p.url})", "\n")
    return f'Web search results for "sand":\n\nDunes move [1], see https://no.example.\n\nSources:\n{sources}'


def _codex(pages: list[Page]) -> str:
    mark = "\ue200cite\ue202turn3search{}\ue201 [wordlim: 200] Crawled: 2 days ago; "
    return _blocks(pages, lambda n, p: f"{p.title} ({p.url})\n{mark.format(n)}{p.snippet}", "\n")


def _chroma(pages: list[Page]) -> Any:
    return {
        "ids": [[page.doc_id for page in pages]],
        "embeddings": None,
        "documents": [[page.snippet for page in pages]],
        "metadatas": [[{"url": page.url, "title": page.title} for page in pages]],
        "distances": [[0.5 for _ in pages]],
    }


def _hits(pages: list[Page], wrap: Callable[[Page, dict[str, str]], Any]) -> list[Any]:
    return [wrap(page, _plain(page)) for page in pages]


def _vector_store(pages: list[Page]) -> Any:
    content = [[{"type": "text", "text": page.snippet}] for page in pages]
    return {
        "object": "vector_store.search_results.page",
        "data": [
            {"file_id": page.doc_id, "filename": page.title, "score": 0.5, "attributes": {}, "content": parts}
            for page, parts in zip(pages, content, strict=True)
        ],
    }


def _knowledge_base(pages: list[Page]) -> Any:
    return {
        "retrievalResults": [
            {
                "content": {"text": page.snippet},
                "location": {"type": "WEB", "webLocation": {"url": page.url}},
                "score": 0.5,
            }
            for page in pages
        ]
    }


def _vertex_references(pages: list[Page]) -> Any:
    return [
        {
            "chunkInfo": {
                "content": page.snippet,
                "documentMetadata": {"document": page.doc_id, "uri": page.url, "title": page.title},
            }
        }
        for page in pages
    ]


def _pictures(pages: list[Page]) -> Any:
    found = [{"type": "text", "name": page.title, "url": page.url, "content": page.snippet} for page in pages]
    return {"results": [{"type": "image", "name": "A dune", "url": "https://no.example/1.png"}, *found]}


_ALL, _NO_ID = ("doc_id", "url", "title", "snippet"), ("url", "title", "snippet")

#: For each layout its writer, and the fields that it keeps.
WRITERS: dict[str, tuple[Callable[[list[Page]], Any], tuple[str, ...]]] = {
    "links of Claude Code": (_claude_code, ("url", "title")),
    "sources of Gemini CLI": (_gemini_cli, ("url", "title")),
    "hits of Codex": (_codex, _NO_ID),
    "snippet, title, link": (_duckduckgo, _NO_ID),
    "labelled blocks below an answer": (_tavily, _NO_ID),
    "blocks whose labels are numbered": (_jina, _NO_ID),
    "pages with a summary": (
        lambda pages: _blocks(pages, lambda n, p: f"Page: {p.title}\nSummary: {p.snippet}"), ("title", "snippet"),
    ),
    "document elements": (_elements, _NO_ID),
    "numbered documents": (
        lambda pages: _blocks(pages, lambda n, p: f'Doc {n}(Title: "{p.title}") {p.snippet}', "\n"), ("title", "snippet"),
    ),
    "numbered links": (
        lambda pages: "## Search Results\n" + _blocks(pages, lambda n, p: f"{n}. [{p.title}]({p.url})\n{p.snippet}", start=0),
        _NO_ID,
    ),
    "numbered titles with an ID": (
        lambda pages: _blocks(
            pages, lambda n, p: f"{n}. {p.title}\n   ID: {p.doc_id}\n   Score: 1.5000\n   Content: {p.snippet}\n", "\n"
        ),
        ("doc_id", "title", "snippet"),
    ),
    "numbered titles with a URL": (
        lambda pages: f"Found {len(pages)} search results:\n\n"
        + _blocks(pages, lambda n, p: f"{n}. {p.title}\n   URL: {p.url}\n   Summary: {p.snippet}\n", "\n"),
        _NO_ID,
    ),
    "labelled blocks between rules": (lambda pages: _labelled(pages, "\n\n---\n\n", "Highlights:\n"), _NO_ID),
    "labelled blocks": (_labelled, _NO_ID),
    "one URL a line": (lambda pages: "\n".join(page.url for page in pages), ("url",)),
    "lines or bullets of Markdown links": (
        lambda pages: _blocks(pages, lambda n, p: f"- [{p.title}]({p.url})\n  {p.snippet}", "\n"), _NO_ID,
    ),
    "paragraphs of title, URL, text": (
        lambda pages: _blocks(pages, lambda n, p: f"{p.title}\n{p.url}\n{p.snippet}"), _NO_ID,
    ),
    "Python's notation": (lambda pages: str([page._asdict() for page in pages]), _ALL),
    "JSON in a code fence": (
        lambda pages: f"Here they are:\n```json\n{json.dumps([page._asdict() for page in pages], indent=1)}\n```\n\nMore?", _ALL,
    ),
    "JSON behind prose": (
        lambda pages: f"I found some [1] pages:\n{json.dumps([page._asdict() for page in pages])}\nMore?", _ALL,
    ),
    "columns": (_chroma, _ALL),
    "classes under data.Get": (
        lambda pages: {"data": {"Get": {"Page": _hits(pages, lambda p, item: {**item, "_additional": {"id": p.doc_id}})}}},
        _ALL,
    ),
    "objects with properties": (
        lambda pages: {"objects": _hits(pages, lambda p, item: {"uuid": p.doc_id, "properties": item, "metadata": None})},
        _ALL,
    ),
    "documents with data": (
        lambda pages: {"id": "r", "documents": _hits(pages, lambda p, item: {"id": p.doc_id, "data": item})}, _ALL,
    ),
    "an object keyed by URL": (lambda pages: {page.url: {"title": page.title, "text": page.snippet} for page in pages}, _NO_ID),
    "hits with an entity": (
        lambda pages: [_hits(pages, lambda p, item: {"id": p.doc_id, "distance": 0.5, "entity": item})], _ALL,
    ),
    "passages of files": (_vector_store, ("doc_id", "title", "snippet")),
    "passages of knowledge bases": (_knowledge_base, ("url", "snippet")),
    "references of Vertex AI Search": (_vertex_references, ("doc_id", "url", "title", "snippet")),
    "results among pictures": (_pictures, _NO_ID),
}  # fmt: skip

#: For each layout who writes it.
WRITTEN_BY: dict[str, str] = json.loads(Path(__file__).with_name("layouts.json").read_text("utf-8"))
