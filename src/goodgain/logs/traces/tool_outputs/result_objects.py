"""Reads an object in a tool's output as a Result.

Keys are compared without case and punctuation: `docId`, `doc_id` and `DocID` are equal. The plan for reading an object is
cached for each set of keys, because all results of a tool have the same keys.
"""

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

from goodgain.logs.dedup.document_types import PARENT, SYNONYMS, TYPES, snake_case
from goodgain.logs.traces.expected_values import as_number, expect_id, unexpected_value
from goodgain.logs.traces.model import Pairs, Result

Object = dict[str, Any]

#: The keys for each field of a Result, the best first.
_FIELDS: dict[str, tuple[str, ...]] = {
    "doc_id": ("docid", "docno", "documentid", "corpusid", "id"),
    "url": ("url", "link", "href", "uri", "weburl", "pageurl", "sourceurl", "docuri", "documenturi"),
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
    *("metadata", "meta", "source", "document", "doc", "node", "payload", "attributes", "kwargs"),
    *("item", "web", "additional"),
)
#: Keys of an inner object that is the document, beside a score or a remark. A result with an id or URL of its own has none.
_WRAPPED = ("chunk", "passage", "citation", "paper", "article")
#: Values of `type` that name the format of the object, not the type of the document.
_NOT_DOCUMENT_TYPES = {
    *("document", "text", "search_result", "web_search_result", "url", "web", "result", "url_citation", "constructor"),
    *("organic", "text_node", "resource", "resource_link"),
}
#: Synonyms of the field `published`: those of the document types, and two more of search tools. All other fields keep the
#: tool's names; deduplication knows their synonyms.
_FIELD_NAMES = dict.fromkeys(("published_at", "publish_date"), "published") | {
    name: meaning for name, meaning in SYNONYMS.items() if meaning == "published"
}
#: The names of ids of documents that do not end in `_id`. The parent of a passage is a field, not an id.
_IDS = {name for row in TYPES.values() if row is not PARENT for name in row.item_ids if not name.endswith("_id")}
#: Fields that say nothing about the document, or are far too long to keep.
_DROPPED = {"rank", "position", "index", "lc", "encrypted_content", "encrypted_index", "embedding", "object", "blob"}
#: Longer fields are texts, not facts about the document, and are dropped.
_MAX_FIELD_LENGTH = 1000
#: Objects nested deeper are not read; search APIs nest as in `hit._source.metadata`.
_MAX_DEPTH = 4
_WEB = ("http://", "https://")
#: Keys of the file of a chunk, of its page and of the chunk in the file, in order of preference. A source without the ending of a
#: file may be the name of a site.
_FILES = ("source", "sourcefile", "file", "filepath", "filename", "documentname", "docname")
_PAGES = ("page", "pagenumber", "pagelabel", "pageno")
_CHUNKS = ("chunkid", "chunkindex", "chunk", "chunkinpage", "startindex")
_PLACES_IN_FILES = {*_FILES, *_PAGES, *_CHUNKS}
_POSITION = re.compile(r"[0-9]{1,5}")
_FILE_NAME = re.compile(
    r"[^\r\n]{1,500}\.(pdf|docx?|pptx?|xlsx?|odt|rtf|epub|txt|text|md|mdx|markdown|rst|adoc|tex|html?|xml|csv|tsv|jsonl?|ya?ml|ipynb|py|eml)",
    re.IGNORECASE,
)
#: An id in a list of ids only. It must have a digit: single words may be categories or suggestions.
BARE_ID = re.compile(r"(?=[^0-9]{0,100}[0-9])[A-Za-z0-9][A-Za-z0-9_.:#/-]{0,99}")
#: The header of a Markdown page; with more than 20 lines it is a table or a rule, not a header.
_FRONT_MATTER = re.compile(r"---\n(?P<head>(?:[^\n]*\n){1,20}?)---(?:\n|$)")
_SIGNS = re.compile(r"[^a-z0-9]+")


def normalise_key(key: str) -> str:
    """Return a key in lower case, with only letters and digits."""
    return _SIGNS.sub("", key.lower())


@lru_cache(maxsize=1024)
def normalise_keys(keys: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """Return (key, normalised key) of each key, in order."""
    return tuple((key, normalise_key(key)) for key in keys)


class KeyPlan(NamedTuple):
    fields: dict[str, tuple[str, ...]]  # for each field of a Result the keys that hold it, the best first
    #: A field's position, its key, its reader, and whether a text is used unchanged; tried in order until the field is found.
    steps: tuple[tuple[int, str, Callable[[Any, str], Any], bool], ...]
    containers: tuple[str, ...]  # keys that hold more of the result in an inner object
    wrapped: tuple[str, ...]  # keys that hold the document in an inner object, if nothing outside names it
    others: tuple[tuple[str, str, bool], ...]  # all other keys, with the name of the field and whether it is an id


@lru_cache(maxsize=1024)
def make_key_plan(keys: tuple[str, ...]) -> KeyPlan:
    """Return the plan for results with these keys: the key of each field, and the role of every other key."""
    by_name: dict[str, list[str]] = {}
    for key, name in normalise_keys(keys):
        by_name.setdefault(name, []).append(key)

    def find(names: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(key for name in names for key in by_name.get(name, ()))

    fields = {field: find(names) for field, names in _FIELDS.items()}
    steps = [
        (place, key, _READERS[field], field in _TEXTS)
        for place, (field, keys_of_field) in enumerate(fields.items())
        for key in keys_of_field
    ]
    steps += [(list(fields).index("url"), key, _READERS["source"], False) for key in find(("source",))]
    containers = find(_CONTAINERS)
    wrapped = find(_WRAPPED)
    read = {*containers, *(step[1] for step in steps)}
    others = tuple(
        (key, _FIELD_NAMES.get(name, name), name.endswith("_id") or name in _IDS)
        for key in keys
        if key not in read and (name := snake_case(key, separators=_SIGNS)) and name not in _DROPPED
    )
    return KeyPlan(fields, tuple(steps), containers, wrapped, others)


def read_objects(items: list[Object], at: str) -> tuple[Result, ...] | None:
    """Return the results that objects describe, with ranks from 1; None if any object does not describe a result."""
    results: list[Result] = []
    for rank, item in enumerate(items, start=1):
        if (result := read_object(item, rank, at)) is None:
            return None
        results.append(result)
    return tuple(results)


def read_object(item: Object, rank: int, at: str) -> Result | None:
    """Return the result that an object describes; None if the object lacks all of id, URL, title and text."""
    values: list[Any] = [None] * len(_FIELDS)
    ids: Pairs = ()
    fields: Pairs = ()
    todo = [(item, 1)]

    for part, depth in todo:  # breadth first: the loop appends inner objects, which give only what the outer one lacks
        _, steps, containers, wrapped, others = make_key_plan(tuple(part))
        for place, key, read, is_text in steps:
            if values[place] is None and (held := part[key]) is not None and held != "":
                values[place] = held if is_text and type(held) is str else read(held, at)
        if others:
            new_ids, new_fields = _read_others(part, others)
            ids, fields = ids + new_ids, fields + new_fields
        if containers and depth < _MAX_DEPTH:
            todo += [(part[key], depth + 1) for key in containers if isinstance(part[key], dict)]
        if wrapped and depth == 1 and values[0] is None and values[1] is None:  # no doc_id and no URL
            todo += [(part[key], depth + 1) for key in wrapped if isinstance(part[key], dict)]

    doc_id, url, title, snippet, score, kind = values
    if doc_id is None and url is None:  # nothing else names the document
        chunk_id = next((value for name, value in ids if name == "chunk_id"), None)
        is_position = chunk_id is not None and _POSITION.fullmatch(chunk_id) is not None  # in the file, not an id
        named = _name_by_file([part for part, _ in todo]) if chunk_id is None or is_position else None
        doc_id = named or chunk_id
    if doc_id is None and url is None and title is None and snippet is None:
        return None

    if url and doc_id and doc_id.startswith(_WEB) and doc_id == item.get("id"):
        doc_id = None  # Exa repeats the address, Bing gives the position in its answer
    if title is None and snippet is not None and snippet.startswith("---\n"):
        title, fields = _read_front_matter(snippet, fields)
    if title and title[0] in "\"'" and len(title) > 2 and title[0] == title[-1]:
        title = title[1:-1]
    return Result(rank, doc_id, ids, url, title, snippet, score, kind, fields)


def _name_by_file(parts: list[Object]) -> str | None:
    """Return the name of the file of a chunk, with its page and chunk as far as the parts of its object have them.

    >>> _name_by_file([{"page_content": "Sand."}, {"source": "notes/dunes.pdf", "page": 3}])
    'notes/dunes.pdf#page=3'
    """
    inner = [part["loc"] for part in parts if isinstance(part.get("loc"), dict)]  # LangChain.js
    held: dict[str, Any] = {}
    for part in (*parts, *inner):
        for key, name in normalise_keys(tuple(part)):
            is_value = isinstance(part[key], (str, int)) and not isinstance(part[key], bool)
            if is_value and name in _PLACES_IN_FILES:
                held.setdefault(name, part[key])

    files = (held.get(name) for name in _FILES)
    file = next((text for text in files if isinstance(text, str) and _FILE_NAME.fullmatch(text)), None)
    if file is None:
        return None
    page = next((held[name] for name in _PAGES if name in held), None)
    chunk = next((held[name] for name in _CHUNKS if name in held), None)
    named = {"page": page, "chunk": chunk}
    places = [f"{kind}={value}" for kind, value in named.items() if value not in (None, "")]
    return "#".join(filter(None, [file, "&".join(places)]))


def has_identity(item: Object) -> bool:
    """Return whether an object is a result even outside a list: it has an id or a URL, and a title or text."""
    plan = make_key_plan(tuple(item))
    keys = plan.fields
    named = any(isinstance(item[key], (str, int)) and item[key] != "" for key in keys["doc_id"] + keys["url"])
    return named and any(item[key] for key in keys["title"] + keys["snippet"] + plan.containers)


def join_texts(value: Any) -> str | None:
    """Return a value as one text: a text, a number, or the texts in a list, joined by line feeds. Return None for other values."""
    if isinstance(value, str):
        return value or None
    if isinstance(value, list):
        texts = [part.get("text") if isinstance(part, dict) else part for part in value]
        return "\n".join(text for text in texts if isinstance(text, str)) or None
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return str(value)
    return None


def _read_url(value: Any, at: str) -> str | None:
    if isinstance(value, str):
        return value.strip() or None
    if isinstance(value, (list, dict)):
        return None  # a thumbnail or a list of links
    raise unexpected_value(at, "a URL as text", value)


def _read_snippet(value: Any, at: str) -> str | None:
    text = value if isinstance(value, str) else join_texts(value)
    if not text or (text.startswith(_WEB) and len(text) < 2048 and " " not in text):
        return None  # a bare address under `document` or `content` is not the document's text
    return text


def _read_type(value: Any, at: str) -> str | None:
    name = snake_case(value, separators=_SIGNS) if isinstance(value, str) else None
    return None if not name or name in _NOT_DOCUMENT_TYPES else name


#: The reader of each field of a Result, and of `source`: value, place for errors -> value.
_READERS: dict[str, Callable[[Any, str], Any]] = {
    "doc_id": expect_id,
    "url": _read_url,
    "title": lambda value, at: join_texts(value),
    "snippet": _read_snippet,
    "score": lambda value, at: as_number(value),
    "type": _read_type,
    # An address; the name of a site is another field.
    "source": lambda value, at: value if isinstance(value, str) and value.startswith(_WEB) else None,
}
#: The fields that keep a text unchanged, without a reader.
_TEXTS = {"doc_id", "title"}


def _read_others(part: Object, others: tuple[tuple[str, str, bool], ...]) -> tuple[Pairs, Pairs]:
    """Return (name, text) of the further ids, and of the further fields. Leave out objects, booleans, null, and long texts."""
    ids: list[tuple[str, str]] = []
    fields: list[tuple[str, str]] = []
    for key, name, is_id in others:
        value = part[key]
        if isinstance(value, list) and value and all(isinstance(text, str) for text in value):
            value = "; ".join(value)
        if isinstance(value, bool) or not isinstance(value, (str, int, float)) or value == "":
            continue
        text = value if isinstance(value, str) else str(value)
        if len(text) <= _MAX_FIELD_LENGTH:
            (ids if is_id else fields).append((name, text))
    return tuple(ids), tuple(fields)


def _read_front_matter(snippet: str, fields: Pairs) -> tuple[str | None, Pairs]:
    """Read the front matter of a Markdown text. Return the title, and `fields` with the date added as `published`."""
    title = None
    if head := _FRONT_MATTER.match(snippet):
        for line in head["head"].splitlines():
            name, _, value = line.partition(":")
            if name.strip() == "title":
                title = value.strip() or None
            elif name.strip() == "date" and value.strip():
                fields += (("published", value.strip()),)
    return title, fields
