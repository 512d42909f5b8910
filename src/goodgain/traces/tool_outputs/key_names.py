"""What the keys of a tool's objects mean: one table of synonyms, compared without case and signs.

`docId`, `doc_id` and `DocID` are one name. How the keys of an object are to be read is worked out once for each set of
keys, since all results of a tool have the same ones.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

__all__ = ["NOT_DOCUMENT_TYPES", "KeyPlan", "make_key_plan", "normalise_key", "normalise_keys", "snake_case"]

#: What a Result's field may be called, the best first.
_SYNONYMS: dict[str, tuple[str, ...]] = {
    "doc_id": ("docid", "docno", "documentid", "corpusid", "id"),
    "url": ("url", "link", "href", "uri", "weburl", "pageurl", "sourceurl"),
    "title": ("title", "name", "headline", "heading", "pagetitle", "documenttitle"),
    "snippet": (
        *("snippet", "pagecontent", "content", "text", "passage", "contents", "body", "description", "summary"),
        *("excerpt", "abstract", "extract", "citedtext", "snippets", "highlights", "rawcontent", "document"),
    ),
    "score": ("score", "relevancescore", "similarity", "relevance", "searchscore", "rerankscore", "rankingscore"),
    "type": ("type", "doctype", "documenttype", "entitytype", "kind"),
}
#: Objects inside the object that hold the rest of it.
_CONTAINERS = (
    "metadata",
    "meta",
    "source",
    "document",
    "doc",
    "node",
    "payload",
    "attributes",
    "kwargs",
    "item",
    "web",
)
#: Text that names where a document is from: its URL if it is one.
_SOURCES = ("source",)
#: Words under `type` that name the envelope, not the kind of document.
NOT_DOCUMENT_TYPES = {"document", "text", "search_result", "web_search_result", "url", "web", "result", "url_citation"}
NOT_DOCUMENT_TYPES |= {"constructor", "organic", "text_node", "resource", "resource_link"}
#: Names of fields that formats spell in their own ways.
_FIELD_NAMES = dict.fromkeys(("date_published", "published_date", "published_at", "publish_date"), "published")
#: Ids whose names do not end like one.
_IDS = {"alias", "principal_name", "address"}
#: What says nothing about the document, or is far too long to keep.
_DROPPED = {"rank", "position", "index", "lc", "encrypted_content", "encrypted_index", "embedding", "object", "blob"}

_SIGNS = re.compile(r"[^a-z0-9]+")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def normalise_key(key: str) -> str:
    """A key as the tables of names spell it: lower case, letters and digits only."""
    return _SIGNS.sub("", key.lower())


def snake_case(name: str) -> str:
    """`FileId`, `fileId`, `file id` -> `file_id`."""
    return _SIGNS.sub("_", _CAMEL.sub("_", name).lower()).strip("_")


@lru_cache(maxsize=1024)
def normalise_keys(keys: tuple[str, ...]) -> frozenset[str]:
    """The keys of an object, as the tables of names spell them."""
    return frozenset(map(normalise_key, keys))


class KeyPlan(NamedTuple):
    """How to read objects with one set of keys: for each field its keys, the best first.

    `straight` are the keys of doc_id, url, title, snippet and score where each has one at most and nothing else is to
    be read, as in most logs.
    """

    doc_id: tuple[str, ...]
    url: tuple[str, ...]
    title: tuple[str, ...]
    snippet: tuple[str, ...]
    score: tuple[str, ...]
    type: tuple[str, ...]
    containers: tuple[str, ...]
    sources: tuple[str, ...]
    others: tuple[tuple[str, str, bool], ...]
    straight: tuple[str | None, ...] | None


@lru_cache(maxsize=1024)
def make_key_plan(keys: tuple[str, ...]) -> KeyPlan:
    names: dict[str, list[str]] = {}
    for key in keys:
        names.setdefault(normalise_key(key), []).append(key)
    found = {
        field: tuple(key for synonym in synonyms for key in names.get(synonym, ()))
        for field, synonyms in _SYNONYMS.items()
    }
    read = {key for field in found.values() for key in field}
    others = tuple(
        (key, _FIELD_NAMES.get(name, name), name.endswith("_id") or name in _IDS)
        for key in keys
        if key not in read
        and (name := snake_case(key))
        and name not in _DROPPED
        and normalise_key(key) not in _CONTAINERS
    )
    nested = {"containers": _CONTAINERS, "sources": _SOURCES}
    lists = {field: tuple(key for name in of for key in names.get(name, ())) for field, of in nested.items()}
    fields = ("doc_id", "url", "title", "snippet", "score")
    simple = not (others or found["type"] or any(lists.values())) and all(len(found[field]) < 2 for field in fields)
    straight = tuple(found[field][0] if found[field] else None for field in fields) if simple else None
    return KeyPlan(**found, **lists, others=others, straight=straight)
