"""What search services, vector stores and agents' own tools return: all their results, and a word on what is left over."""

# ruff: noqa: E501  # outputs are easier to read an item a line

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from goodgain.errors import GoodgainNotice, InputError
from goodgain.logs.traces import Summary, read_traces
from goodgain.logs.traces.tool_outputs.readers import read_output
from tests.support.counts import how_many
from tests.support.seconds import find_faster_growth, measure_seconds

_A, _B, _C = "https://a.example/1", "https://b.example/2", "https://c.example/3"
_AB = [{"title": "A", "url": _A, "content": "Sand."}, {"title": "B", "url": _B, "content": "Water."}]
_LINKS = [
    {"title": "A", "link": _A, "snippet": "Sand.", "position": 1},
    {"title": "B", "link": _B, "snippet": "Water.", "position": 2},
]
_NODES = [
    {"node": {"id_": key, "text": "t", "metadata": {"url": url}}, "score": 0.5} for key, url in (("a", _A), ("b", _B))
]
_ASK = [{"question": "Why?", "title": "X", "link": "https://no.example", "snippet": "x"}]

#: For each service an answer; each has the two results A and B, here in the words of that service.
SERVICES: dict[str, Any] = {
    "Tavily": {"query": "q", "answer": "x", "images": [{"url": "https://no.example/i.png", "description": "x"}], "results": [{**r, "score": 0.5, "raw_content": None} for r in _AB]},
    "Serper": {"searchParameters": {"q": "q"}, "organic": _LINKS, "answerBox": _ASK[0], "knowledgeGraph": {"title": "X", "website": "https://no.example"}, "peopleAlsoAsk": _ASK, "relatedSearches": [{"query": "x"}]},
    "Serper, news beside": {"organic": _LINKS[:1], "news": _LINKS[1:], "topStories": []},
    "Serper, sitelinks": {"organic": [{**_LINKS[0], "sitelinks": [{"title": "x", "link": "https://no.example"}]}, _LINKS[1]]},
    "SerpAPI": {"search_metadata": {"id": "s", "status": "Success"}, "organic_results": _LINKS[:1], "news_results": _LINKS[1:], "related_questions": _ASK, "inline_images": [{"title": "x", "link": "https://no.example"}]},
    "Brave": {"type": "search", "query": {"original": "q"}, "mixed": {"main": [{"type": "web", "index": 0, "all": False}]}, "web": {"type": "search", "results": [{"title": "A", "url": _A, "description": "Sand.", "extra_snippets": ["x"]}]}, "videos": {"results": [{"title": "B", "url": _B, "description": "x"}]}},
    "Brave MCP": [{"type": "text", "text": json.dumps({"url": r["url"], "title": r["title"], "description": "x"})} for r in _AB],
    "Brave LangChain": json.dumps([{"title": r["title"], "link": r["url"], "snippet": "x"} for r in _AB]),
    "Exa": {"requestId": "r", "results": [{"id": r["url"], "url": r["url"], "title": r["title"], "score": None, "text": "x", "highlights": ["h"]} for r in _AB]},
    "DuckDuckGo, raw": [{"title": r["title"], "href": r["url"], "body": "x"} for r in _AB],
    "DuckDuckGo of LangChain, in brackets": f"[snippet: Sand, wet., title: A, link: {_A}], [snippet: Water., title: B, link: {_B}]",
    "DuckDuckGo of LangChain, news": f"snippet: Sand., title: A, link: {_A}, date: 2024-01-01, source: X, snippet: Water., title: B, link: {_B}, date: 2024-01-02, source: Y",
    "Bing": {"_type": "SearchResponse", "queryContext": {"originalQuery": "q"}, "webPages": {"totalEstimatedMatches": 2, "value": [{"id": f"https://api.bing.microsoft.com/api/v7/#WebPages.{n}", "name": r["title"], "url": r["url"], "snippet": "x", "deepLinks": [{"name": "x", "url": "https://no.example"}]} for n, r in enumerate(_AB)]}, "rankingResponse": {}},
    "Google CSE": {"kind": "customsearch#search", "items": _LINKS},
    "Jina": {"code": 200, "data": [{**r, "description": "x"} for r in _AB]},
    "Firecrawl": {"success": True, "data": {"web": [_AB[0]], "news": [_AB[1]]}},
    "Firecrawl, a list": {"success": True, "data": [{"url": r["url"], "title": r["title"], "markdown": "x", "metadata": {"sourceURL": r["url"]}} for r in _AB]},
    "Perplexity": {"id": "r", "search_results": [{**r, "date": "2024-01-01"} for r in _AB], "citations": [_A, _B]},
    "You.com": {"hits": [{"url": r["url"], "title": r["title"], "description": "x", "snippets": ["s"]} for r in _AB], "latency": 0.5},
    "You.com, newer": {"results": {"web": [_AB[0]], "news": [_AB[1]]}, "metadata": {"search_uuid": "s"}},
    "SearXNG": {"query": "q", "number_of_results": 0, "results": [{**r, "score": 1.5, "engine": "e"} for r in _AB], "infoboxes": [{"infobox": "x", "id": "https://no.example", "content": "x"}], "answers": []},
    "arXiv of LangChain": "Published: 2024-01-01\nTitle: A\nAuthors: X, Y\nSummary: Sand\nthat moves.\n\nPublished: 2024-01-02\nTitle: B\nAuthors: Z\nSummary: Water.",
    "PubMed of LangChain": "Published: 2024-01-01\nTitle: A\nCopyright Information: X\nSummary::\nSand.\n\nPublished: 2024-01-02\nTitle: B\nCopyright Information: Y\nSummary::\nWater.",
    "PubMed with PMID": "PMID: a\nTitle: A\nSummary: Sand.\n\nPMID: b\nTitle: B\nSummary: Water.",
    "LlamaIndex": {"response": "x", "source_nodes": _NODES},
    "LlamaIndex tool output": {"content": "prose", "tool_name": "query_engine", "raw_input": {"input": "q"}, "raw_output": {"response": "prose", "source_nodes": _NODES}},
    "Haystack": {"documents": [{"id": key, "content": "x", "meta": {"url": url}, "score": 0.5} for key, url in (("a", _A), ("b", _B))]},
    "OpenAI file_search": {"id": "fs", "results": [{"file_id": key, "filename": f"{key}.pdf", "text": "x", "score": 0.5, "attributes": {}} for key in "ab"]},
    "Cohere rerank": {"id": "r", "results": [{"index": 3, "relevance_score": 0.9, "document": {"text": "Sand.", "id": "a"}}, {"index": 0, "relevance_score": 0.5, "document": {"text": "Water.", "id": "b"}}], "meta": {}},
    "smolagents": f"## Search Results\n\n[A]({_A})\nSand.\n\n[B]({_B})\nWater.",
    "Perplexity MCP": f"Found 2 search results:\n\n1. **A**\n   URL: {_A}\n   Sand.\n   Date: 2024-01-01\n\n2. **B**\n   URL: {_B}\n   Water.\n   Date: 2024-01-02\n\n",
    "MCP with structuredContent": {"content": [{"type": "text", "text": json.dumps({"results": _AB})}], "structuredContent": {"results": _AB}, "isError": False},
    "MCP resource links": {"content": [{"type": "resource_link", "uri": r["url"], "name": r["title"]} for r in _AB]},
    "Qdrant": {"result": {"points": [{"id": key, "version": 0, "score": 0.5, "payload": {"url": url, "text": "x"}} for key, url in (("a", _A), ("b", _B))]}, "status": "ok", "time": 0.1},
    "Qdrant, older": {"result": [{"id": key, "score": 0.5, "payload": {"url": url, "text": "x"}} for key, url in (("a", _A), ("b", _B))], "status": "ok"},
    "Qdrant, as its client prints": f"points=[ScoredPoint(id='a', version=0, score=0.5, payload={{'url': '{_A}', 'title': 'A'}}, vector=None, shard_key=None), ScoredPoint(id='b', version=0, score=0.4, payload={{'url': '{_B}', 'title': 'B'}}, vector=None, shard_key=None)]",
    "Chroma, get": {"ids": ["a", "b"], "documents": ["Sand.", "Water."], "metadatas": [{"url": _A}, None], "embeddings": None, "included": ["documents"]},
    "Chroma, two queries": {"ids": [["a"], ["b"]], "documents": [["Sand."], ["Water."]], "metadatas": None, "distances": [[0.1], [0.2]]},
    "Milvus": [[{"id": "a", "distance": 0.9, "entity": {"url": _A, "text": "x"}}, {"id": "b", "distance": 0.5, "entity": {"url": _B, "text": "x"}}]],
    "Milvus, as its client prints": f"data: [[{{'id': 'a', 'distance': 0.9, 'entity': {{'url': '{_A}', 'text': 'x'}}}}, {{'id': 'b', 'distance': 0.5, 'entity': {{'url': '{_B}', 'text': 'x'}}}}]],extra_info: {{'cost': 6}}",
    "Milvus, as it printed before": "data: " + str([str([{"id": key, "distance": 0.9, "entity": {"text": "x"}} for key in "ab"])]),
    "Weaviate's client": f"QueryReturn(objects=[Object(uuid=_WeaviateUUIDInt('a'), metadata=MetadataReturn(distance=0.1, score=None), properties={{'url': '{_A}', 'title': 'A'}}, references=None), Object(uuid=_WeaviateUUIDInt('b'), metadata=MetadataReturn(distance=0.2, score=None), properties={{'url': '{_B}', 'title': 'B'}}, references=None)])",
    "Pinecone": {"matches": [{"id": key, "score": 0.5, "values": [], "metadata": {"url": url}} for key, url in (("a", _A), ("b", _B))], "namespace": "", "usage": {"read_units": 5}},
    "Elasticsearch": {"took": 1, "hits": {"total": {"value": 2}, "hits": [{"_index": "i", "_id": key, "_score": 1.0, "_source": {"url": url, "body": "x"}} for key, url in (("a", _A), ("b", _B))]}},
    "documents as LangChain prints": f"[Document(id='a', metadata={{'source': '{_A}'}}, page_content=\"It's sand.\"), Document(id='b', metadata={{'source': '{_B}'}}, page_content='Water.')]",
    "LangChain with scores, printed": f"[(Document(metadata={{'source': '{_A}'}}, page_content='Sand.'), 0.5), (Document(metadata={{'source': '{_B}'}}, page_content='Water.'), np.float64(0.4))]",
    "MCP text parts, printed": f"[TextContent(type='text', text='{{\"url\": \"{_A}\", \"title\": \"A\"}}', annotations=None), TextContent(type='text', text='{{\"url\": \"{_B}\", \"title\": \"B\"}}', annotations=None)]",
    "one JSON object a line": "\n".join(map(json.dumps, _AB)),
    "one JSON object a line, in a fence": "Results:\n```\n" + "\n".join(map(json.dumps, _AB)) + "\n```",
    "a JSON list of URLs": json.dumps([_A, _B]),
    "numbered URLs": f"Search results:\n1. {_A}\n2. {_B}",
    "texts keyed by URL": {"results": {_A: "Sand.", _B: "Water."}},
    "title and URL on one line": f"1. A - {_A}\nSand.\n2. B ({_B})\nWater.",
    "URL below the text": f"1. A\n   Sand that moves.\n   Source: {_A}\n\n2. B\n   Water.\n   Source: {_B}",
    "headings": f"### 1. A\n**URL:** {_A}\nSand.\n\n### 2. B\n**URL:** {_B}\nWater.",
    "bold links": f"1. **[A]({_A})**\n   Sand.\n2. **[B]({_B})**\n   Water.",
    "bullets of labels": f"- Title: A\n  URL: {_A}\n  Snippet: Sand.\n- Title: B\n  URL: {_B}\n  Snippet: Water.",
    "a service's answer with an id": {"id": "req_1", "metadata": {"took": 3}, "data": _AB},
    "an answer with an id, results deeper": {"id": "req_1", "web": {"results": _AB}},
    "lists of any names": {"results": _AB[:1], "more_results": _AB[1:]},
    "a block a query": "A Google search for 'x' found 1 results:\n\n## Web Results\n1. [A](" + _A + ")\nSand.\n=======\nA Google search for 'y' found 1 results:\n\n## Web Results\n1. [B](" + _B + ")\nWater.",
}  # fmt: skip

#: What the two results are called, in the order looked for.
_NAMES = ({"a", _A, "A"}, {"b", _B, "B"})


@pytest.mark.parametrize("name", SERVICES)
def test_all_results_of_a_service_are_read_and_nothing_else(name: str) -> None:
    for given in (SERVICES[name], json.dumps(SERVICES[name]), str(SERVICES[name])):
        outcome = read_output(given, "here")
        assert (outcome.status, outcome.unread) == ("ok", 0)
        found = [{result.doc_id, result.url, result.title} - {None} for result in outcome.results]
        assert len(found) == 2 and all(found[n] & _NAMES[n] for n in (0, 1)), found
        assert not any(name.startswith("https://api.") for names in found for name in names if name)


def test_an_id_that_repeats_the_address_is_not_an_id_of_the_document() -> None:
    for name in ("Exa", "Bing"):
        assert [(r.doc_id, r.url) for r in read_output(SERVICES[name], "here").results] == [(None, _A), (None, _B)]
    corpus = [{"docid": _A, "url": _A, "title": "A", "text": "x"}]
    assert read_output(corpus, "here").results[0].doc_id == _A, "the key docid says that it is one"


EMPTY: dict[str, Any] = {
    "SerpAPI": {"search_metadata": {"status": "Success"}, "error": "Google hasn't returned any results for this query."},
    "Google CSE": {"kind": "customsearch#search", "queries": {"request": [{"title": "q", "count": 10}]}, "searchInformation": {"totalResults": "0"}},
    "Bing": {"_type": "SearchResponse", "queryContext": {"originalQuery": "q"}},
    "Brave": {"type": "search", "query": {"original": "q"}, "mixed": {"main": []}},
    "Brave MCP": {"isError": True, "content": [{"type": "text", "text": "No web results found"}]},
    "Chroma": {"ids": [[]], "documents": [[]], "metadatas": [[]], "distances": [[]]},
    "Weaviate": {"data": {"Get": {"Page": []}}},
    "Qdrant": {"result": {"points": []}, "status": "ok"},
    "Gemini CLI": 'No search results or information found for query: "q"',
    "Claude Code": 'Web search results for query: "q"\n\nNo links found.\n\nSee https://no.example.\n\nREMINDER: x',
    "a count": {"query": "q", "total": 0},
    "LangChain": [{"Result": "No good Bing Search Result was found"}],
    "Tavily of LangChain": "No search results found for 'q'. Suggestions: Try a more detailed search.",
    "Exa MCP": "No search results found. Please try a different query.",
    "a printed list": "[]",
}  # fmt: skip


@pytest.mark.parametrize("name", EMPTY)
def test_a_known_empty_answer_is_empty(name: str) -> None:
    assert read_output(EMPTY[name], "here") == read_output(json.dumps(EMPTY[name]), "here")
    assert read_output(EMPTY[name], "here").status == "empty"


#: Layouts that nobody reads, and outputs that are cut off: never an empty result, and never a part of the results.
UNKNOWN: dict[str, Any] = {
    "XML of its own": f"<hits><hit href='{_A}'>A</hit><hit href='{_B}'>B</hit></hits>",
    "CSV": f"title,url\nA,{_A}\nB,{_B}",
    "a table": f"| title | url |\n|---|---|\n| A | {_A} |\n| B | {_B} |",
    "prose with links": f"Dunes [A]({_A}) move, and lakes ({_B}) stay.",
    "nothing found, but a list under another name": {"message": "No results found in the cache", "fallback": [{"href": _A, "heading": "A"}]},
    "a count of 0, but results": {"total": 0, "fallback": [{"href": _A, "heading": "A"}]},
    "a list that nobody knows in an answer of a known kind": {"type": "search", "query": {}, "found": [{"x": 1}]},
    "JSON cut off": json.dumps(_AB, indent=1)[:-30],
    "JSON behind prose, cut off": "Results:\n" + json.dumps(_AB)[:-30],
    "JSON lines, the last cut off": "\n".join(map(json.dumps, _AB))[:-30],
    "a fence, cut off": "```json\n" + json.dumps(_AB)[:-30],
    "Python cut off": str(_AB)[:-30],
    "Python that computes": "[{'url': 'https://a.example', 'title': 'A'}] * 3",
    "Python that calls": "__import__('os').system('true')",
    "numbers without addresses": "1. Dunes are made of sand.\n2. Lakes are made of water.",
    "sources without a list": "Sources: several.",
}  # fmt: skip


@pytest.mark.parametrize("name", UNKNOWN)
def test_an_output_in_an_unknown_layout_is_unparsed(name: str) -> None:
    assert read_output(UNKNOWN[name], "here").status == "unparsed"


def test_prose_where_a_list_should_stand_is_unrecorded() -> None:
    assert read_output('Web search results for "q":\n\nDunes move [1][2].', "here").status == "unrecorded"


#: Outputs with more that looks like results than the lists that are read: results read, and how many are left over.
LEFT_OVER: dict[str, tuple[Any, int, int]] = {
    "a list under another name": ({"data": _AB[:1], "fallback": [*_AB[1:], {"url": _C, "title": "C"}]}, 1, 2),
    "data and news": ({"data": _AB[:1], "news": _AB[1:]}, 1, 1),
    "lists inside results": ({"results": [{"title": "group", "url": _A, "more": [{"title": "B", "url": _B}]}]}, 1, 1),
    "ids instead of addresses": ({"results": _AB[:1], "other": [{"id": 7, "text": "x"}]}, 1, 1),
    "the same results again": ({"results": _AB, "citations": [{"url": _A, "title": "A"}]}, 2, 0),
    "facets": ({"results": _AB, "facets": [{"id": "lang", "name": "Language"}]}, 2, 0),
    "an empty list beside another": ({"results": [], "fallback": _AB}, 0, 2),
    "a number left out": (f"1. [A]({_A})\nSand.\n3. [B]({_B})\nWater.", 1, 1),
    "another form at the end": (f"1. A\n   URL: {_A}\n   Sand.\n\n- {_B}", 1, 1),
    "JSON and prose with links": (json.dumps(_AB[:1]) + f"\nSee also {_B}.", 1, 1),
    "a query's block that is cut off": (f"1. [A]({_A})\nSand.\n=======\n1. B\nWater.", 1, 1),
    "a text that is cut off": ([json.dumps(_AB[:1]), json.dumps(_AB[1:])[:-9]], 1, 1),
    "a part that is cut off": ([{"type": "text", "text": t} for t in (json.dumps(_AB[:1]), '[{"docid": "d2", "text": "W')], 1, 1),
    "a list of other things": ([_AB[:1], [{"docid": "d2"}, {}]], 1, 1),
    "prose before a part": ([{"type": "text", "text": t} for t in ("I found one page.", json.dumps(_AB[:1]))], 1, 0),
    "nothing behind a separator": (f"1. [A]({_A})\nSand.\n=======\n \n", 1, 0),
    "links in a snippet": (f"1. [A]({_A})\nSee {_B} and [C]({_C}) for more.", 1, 0),
}  # fmt: skip


@pytest.mark.parametrize("name", LEFT_OVER)
def test_what_looks_like_a_result_and_was_not_read_is_counted(name: str) -> None:
    output, results, unread = LEFT_OVER[name]
    outcome = read_output(output, "here")
    assert (len(outcome.results), outcome.unread) == (results, unread)


def test_a_notice_says_how_many_were_left_over_and_where(tmp_path: Path) -> None:
    searches = [
        {"query": "q", "output": LEFT_OVER[name][0]} for name in ("data and news", "facets", "a number left out")
    ]
    log = {"goodgain_trace": 1, "query_id": "q", "steps": [{"searches": [search]} for search in searches]}
    (tmp_path / "log.jsonl").write_text(json.dumps(log))
    seen: list[Summary] = []
    with pytest.warns(
        GoodgainNotice, match=r"2 searches have 2 objects .* the first at .*log\.jsonl, line 1, .*/steps/0/searches/0"
    ):
        read_traces(tmp_path / "log.jsonl", report=seen.append)
    assert (seen[0].unread, seen[0].searches_with_unread) == (2, 2)


def test_an_unknown_layout_stops_the_reading_and_names_the_place(tmp_path: Path) -> None:
    log = {
        "goodgain_trace": 1,
        "query_id": "q",
        "steps": [{"searches": [{"query": "q", "output": UNKNOWN["a table"]}]}],
    }
    (tmp_path / "log.jsonl").write_text(json.dumps(log))
    with pytest.raises(InputError, match=r"log\.jsonl, line 1, .*no results can be read .*parse="):
        read_traces(tmp_path / "log.jsonl")


# Time grows with the length of an output, not faster

_HOSTILE: dict[str, Callable[[int], str]] = {
    "brackets": lambda n: "[" + "](a" * n,
    "open brackets": lambda n: "[" * n,
    "numbers": lambda n: "1. " * n,
    "numbered lines": lambda n: "1. a\n" * n,
    "bullets": lambda n: "- " * n,
    "labels": lambda n: "Title: a\n" * n,
    "rules": lambda n: "Title: a\nURL: b\n---\n" * n,
    "documents": lambda n: "<document>" * n,
    "parts": lambda n: "<document>" + "<title>" * n,
    "closed parts": lambda n: "<document>" + "<source>a</source>" * n + "</document>",
    "docs": lambda n: "Doc 1(" * n,
    "snippets": lambda n: "snippet: , title: " * n,
    "links of Claude": lambda n: "Links: [" * n,
    "cites": lambda n: "(https://a\n\ue200cite\ue202turn1search1\ue201" * n,
    "sources": lambda n: 'Web search results for "' + "\nSources:\n[1] (http" * n,
    "fences": lambda n: "```\n" * n,
    "values in prose": lambda n: "x\n" + "[{\n" * n,
    "values behind colons": lambda n: "x: [1] " * n,
    "quotes": lambda n: "['" + "\\'" * n,
    "calls": lambda n: "A(" * n,
    "minus": lambda n: "[" + "-" * n + "1]",
    "dots": lambda n: "A(b=" + "a." * n,
    "digits": lambda n: "[" + "1" * n + "]",
    "commas": lambda n: "[" + "1," * n + "]",
    "addresses": lambda n: f"1. [A]({_A})\n" + "https://" * n,
    "jina": lambda n: "[1] Title: a\n" * n,
    "pictures": lambda n: "Answer: x\nDetailed Results:\nImages:" + "\n" * n + "x",
    "spaces before a word": lambda n: f"1. [A]({_A})\n" + " " * n + "x",
    "spaces before a rule": lambda n: f"Title: A\nURL: {_A}\n" + " " * n + "x\n---\nTitle: B\nURL: b",
    "spaces in JSON": lambda n: "x\n" + ("[" + " " * 50 + "x\n") * (n // 50),
    "spaces":  lambda n: "1." + " " * n,
    "headings": lambda n: "A search for '" + "' found " * n,
    "pages": lambda n: "Page: a\nSummary: b\n\n" * n,
    "more results": lambda n: json.dumps({f"{k}results": [{"a": 1}] for k in range(n)}),
}  # fmt: skip


@pytest.mark.parametrize("name", _HOSTILE)
def test_the_time_for_a_hostile_output_grows_as_its_length(name: str) -> None:
    def measure(size: int) -> float:
        text = _HOSTILE[name](size)
        return measure_seconds(lambda: read_output(text, "here"))

    assert not find_faster_growth(measure, how_many(1_000, full=4_000), least=0.005)
