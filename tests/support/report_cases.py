"""What the tests of reports share: a hostile case, and the data that a page embeds."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import polars as pl

import goodgain as gg

#: Texts that would run, end the element of the data, turn the line round, or be a link that runs.
SCRIPT = "<script>window.ran = 1</script><img src=x onerror='window.ran = 2'>"
END = "</script><script>window.ran = 3</script><!--"
BIDI = "good\u202edog\x1b[31m\u2028end"
URLS = {
    "good": "https://example.org/a?b=1&c=<d>",
    SCRIPT: "javascript:window.ran=4",
    END: "data:text/html,<script>window.ran=5</script>",
    BIDI: "https://example.org/\u202egnp.exe",
    "other": " javascript:window.ran=6//https://example.org/",
}
QUERIES = [f"query {END}", f"second & {BIDI}", "third \"quoted\" 'one'"]


def write_hostile(path: Path, **options: Any) -> Path:
    """Write a report of two systems whose every text is hostile: systems, queries, documents, titles, search strings."""
    documents = [*URLS]
    qrels = {query: {document: 3 if k < 3 else 0 for k, document in enumerate(documents)} for query in QUERIES}
    systems = {f"old {SCRIPT}": documents[:2], f"new {BIDI}": documents[::-1]}
    rows = [
        {"system": system, "query_id": query, "iteration": 1 + k // 2, "search": 1, "rank": 1 + k % 2, "doc_id": document,
         "title": f"title {document}", "url": URLS[document], "search_query": f"search {END}", "status": "ok"}
        for system, documents_of_system in systems.items() for query in QUERIES for k, document in enumerate(documents_of_system)
    ]  # fmt: skip
    results = pl.DataFrame(rows)
    runs = {system: gg.to_run(results.filter(system=system)) for system in systems}
    texts = dict.fromkeys(QUERIES, f"text of {END} {BIDI}")
    groups = pl.DataFrame({"query_id": QUERIES, "group": [f"group {SCRIPT}"] * 3})
    return gg.report(qrels, runs, path, "nCG SRR", results=results, queries=texts, groups=groups, **options)


def read_data(page: str) -> dict[str, Any]:
    """Return the data that a page embeds."""
    (found,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', page, flags=re.DOTALL)
    data: dict[str, Any] = json.loads(found)
    return data
