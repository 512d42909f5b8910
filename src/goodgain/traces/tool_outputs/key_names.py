"""The meaning of the keys in a tool's objects: one table of synonyms, compared without case and signs.

`docId`, `doc_id` and `DocID` are one name. How an object is to be read is decided once for each set of keys, as all
results of a tool have the same ones.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from goodgain.dedup.types import PARENT, SYNONYMS, TYPES, snake_case

__all__ = ["NOT_DOCUMENT_TYPES", "KeyPlan", "field_name", "make_key_plan", "normalise_key", "normalise_keys"]

#: The names that keys have for each field of a Result, the best first.
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
#: Keys of inner objects that hold more of the same result.
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
#: Keys of text that says where a document is from: its URL if the text is one, else (a site's name) a field.
_SOURCES = ("source",)
#: Values of `type` that name the format of the object, not the type of the document.
NOT_DOCUMENT_TYPES = {"document", "text", "search_result", "web_search_result", "url", "web", "result", "url_citation"}
NOT_DOCUMENT_TYPES |= {"constructor", "organic", "text_node", "resource", "resource_link"}
#: The field `published`, by its synonyms in the table of document types and two more that search tools write. All
#: other fields keep the names that the tool gave them; deduplication knows their synonyms.
_FIELD_NAMES = dict.fromkeys(("published_at", "publish_date"), "published") | {
    name: meaning for name, meaning in SYNONYMS.items() if meaning == "published"
}
#: Ids of documents whose names do not end in `_id`. A passage's parent is a field.
_IDS = {name for row in TYPES.values() if row is not PARENT for name in row.item_ids if not name.endswith("_id")}
#: Fields that say nothing about the document, or are far too long to keep.
_DROPPED = {"rank", "position", "index", "lc", "encrypted_content", "encrypted_index", "embedding", "object", "blob"}

_SIGNS = re.compile(r"[^a-z0-9]+")


def normalise_key(key: str) -> str:
    """Return a key as the tables above spell it: in lower case, letters and digits only."""
    return _SIGNS.sub("", key.lower())


def field_name(key: str) -> str:
    """Return a key as the name of a field: `FileId`, `fileId`, `file id` -> `file_id`."""
    return snake_case(key, separators=_SIGNS)


@lru_cache(maxsize=1024)
def normalise_keys(keys: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """Return each key of an object with its name as the tables above spell it."""
    return tuple((key, normalise_key(key)) for key in keys)


class KeyPlan(NamedTuple):
    """How to read objects with one set of keys.

    Attributes:
        doc_id, url, title, snippet, score, type: the keys that hold this field, the best first.
        containers: keys that hold more of the result in an inner object.
        sources: keys that hold a URL, or the name of a source.
        others: all other keys, with the name of the field and whether it is an id.
        simple: the one key, or None, of doc_id, url, title, snippet and score; None if a field has several keys or
            there is more to read. Most tools write simple objects, which are read on a short way.
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
    simple: tuple[str | None, ...] | None


@lru_cache(maxsize=1024)
def make_key_plan(keys: tuple[str, ...]) -> KeyPlan:
    """Decide how to read objects with these keys."""
    names: dict[str, list[str]] = {}
    for key, name in normalise_keys(keys):
        names.setdefault(name, []).append(key)
    found = {
        field: tuple(key for synonym in synonyms for key in names.get(synonym, ()))
        for field, synonyms in _SYNONYMS.items()
    }
    read = {key for field in found.values() for key in field}
    others = tuple(
        (key, _FIELD_NAMES.get(name, name), name.endswith("_id") or name in _IDS)
        for key in keys
        if key not in read
        and (name := field_name(key))
        and name not in _DROPPED
        and normalise_key(key) not in _CONTAINERS
    )
    nested = {"containers": _CONTAINERS, "sources": _SOURCES}
    lists = {field: tuple(key for name in of for key in names.get(name, ())) for field, of in nested.items()}
    fields = ("doc_id", "url", "title", "snippet", "score")
    is_simple = not (others or found["type"] or any(lists.values())) and all(len(found[field]) < 2 for field in fields)
    simple = tuple(found[field][0] if found[field] else None for field in fields) if is_simple else None
    return KeyPlan(**found, **lists, others=others, simple=simple)
