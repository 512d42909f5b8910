"""Finds the results in the answers of search services: lists under known keys, parallel columns, and objects keyed by URL.

A shape is a function that turns a value into a list of objects with keys that `result_objects` knows. Most services need no
shape: they return an object with a list of results, which `find_lists` finds under many names.
"""

from collections.abc import Callable
from functools import lru_cache, partial
from itertools import chain
from typing import Any

import orjson

from goodgain.logs.traces.expected_values import object_or_empty
from goodgain.logs.traces.tool_outputs.result_objects import Object, has_identity, normalise_keys
from goodgain.logs.traces.tool_outputs.text_lists import is_url

#: Keys under which an object holds its list of results, the best first.
LIST_KEYS = (
    *("results", "documents", "hits", "items", "organic", "organicresults", "searchresults", "webpages", "value"),
    *("matches", "points", "passages", "chunks", "nodes", "sourcenodes", "rawoutput", "docs", "data", "sources"),
    *("context", "articles", "papers", "output", "result", "response", "web", "citations", "content", "returnvalue"),
)
#: The keys among LIST_KEYS whose list always holds results, even if it is empty.
ALWAYS_LISTS = frozenset(("results", "documents", "hits", "organic", "organicresults", "searchresults"))
#: Keys of parallel lists in one answer that all hold results; so do all keys that end in `results`.
_PARALLEL_LISTS = ALWAYS_LISTS | {
    *("web", "webpages", "news", "videos", "places", "topstories", "discussions", "locations"),
}
#: Keys of lists of pictures, which are not documents even if the key ends in `results`.
PICTURE_LISTS = ("image", "images", "imageresults", "imagesresults", "inlineimages", "visualresults")
_PART_TYPES = {
    *("text", "input_text", "output_text", "search_result", "resource", "resource_link", "image", "audio", "document"),
}
_PICTURE_KEYS = {"type", "name", "title", "url", "favicon"}
_VERTEX_KEYS = ("chunkInfo", "unstructuredDocumentInfo", "structuredDocumentInfo")
_VERTEX_FIELDS = {"id": "document", "url": "uri", "title": "title"}
_CHROMA_KEYS = {"ids": "id", "documents": "text", "metadatas": "metadata", "distances": "distance"}


def find_lists(item: Object) -> list[Any]:
    """Find an object's values that may be results: parallel lists, or else the value under the likeliest key."""
    lists = _find_parallel_lists(item)
    if len(lists) > 1:
        return lists
    names = {name: key for key, name in normalise_keys(tuple(item))}
    held = {name: item[names[name]] for name in LIST_KEYS if name in names}
    always = (value for name, value in held.items() if name in ALWAYS_LISTS and isinstance(value, list))
    filled = (value for kind in (list, dict, str) for value in held.values() if isinstance(value, kind) and value)
    empty = (value for value in held.values() if isinstance(value, list))
    best = next(chain(always, filled, empty), None)
    return lists if best is None else [best]


def _find_parallel_lists(item: Object) -> list[Any]:
    """Return the lists of objects under the keys of parallel lists, or one object below them. Pictures and copies are left out.

    Serper has `organic` and `news`. Brave has `web` and `news`, each with `results`.
    """
    lists = []
    for key, name in normalise_keys(tuple(item)):
        if (name in _PARALLEL_LISTS or name.endswith("results")) and name not in PICTURE_LISTS:
            value = item[key]
            if isinstance(value, dict):
                inner = normalise_keys(tuple(value))
                value = next((value[key] for key, name in inner if name in ("results", "value", "places")), None)
            if isinstance(value, list) and set(map(type, value)) <= {dict}:
                lists.append(value)

    if len(lists) < 2:
        return lists
    try:  # some answers repeat a list under another name
        by_content = {orjson.dumps(members, default=repr, option=orjson.OPT_NON_STR_KEYS): members for members in lists}
        return list(by_content.values())
    except TypeError:  # nested too deep
        return lists


def is_wrapper(item: Object) -> bool:
    keys = _find_list_keys(tuple(item))
    return bool(keys) and any(isinstance(item[key], list) for key in keys)


@lru_cache(maxsize=1024)
def _find_list_keys(keys: tuple[str, ...]) -> tuple[str, ...]:
    """Return the keys whose list always holds results. Cached: all results of a tool have the same keys."""
    return tuple(key for key, name in normalise_keys(keys) if name in ALWAYS_LISTS)


def are_parts(members: list[Object]) -> bool:
    """Return whether objects are content parts of a message, rather than results with a field `type`."""
    if all(member.keys() <= {"type", "text"} for member in members):
        return True  # a result has more than a text
    typed = all(isinstance(member.get("type"), str) and member["type"] in _PART_TYPES for member in members)
    return typed and not all(map(has_identity, members))


def unwrap_langchain(member: Object) -> Object:
    """Return the fields of an object that LangChain serialised. Return any other object unchanged."""
    held = member.get("kwargs")
    if member.get("lc") == 1 and isinstance(held, dict):
        return held
    return member


def _read_chroma(item: Object) -> list[Any] | None:
    """Read Chroma's parallel lists `ids`, `documents`, `metadatas` and `distances`. Their members may be lists, one per query."""
    columns = {key: item[name] for name, key in _CHROMA_KEYS.items() if isinstance(item.get(name), list)}
    rows = _transpose(columns) if "id" in columns and len(columns) > 1 else None
    if not rows or not all(isinstance(of_query, list) for of_query in item["ids"]):
        return rows
    hits = [_transpose(of_query) for of_query in rows]
    return None if None in hits else hits


def _transpose(columns: Object) -> list[Object] | None:
    """Return the rows of parallel lists as objects, or None if a column is not a list, or if the lengths differ."""
    lists = [*columns.values()]
    if not all(isinstance(column, list) for column in lists) or len(set(map(len, lists))) > 1:
        return None
    return [dict(zip(columns, row, strict=True)) for row in zip(*lists, strict=True)]


def _read_weaviate(item: Object) -> list[Any] | None:
    """Read Weaviate's lists `data.Get.<Class>` of objects. Their ids and scores are in `_additional`."""
    classes = object_or_empty(item.get("data")).get("Get")
    if not isinstance(classes, dict) or not all(isinstance(hits, list) for hits in classes.values()):
        return None
    return [hit for hits in classes.values() for hit in hits]


def _read_held(key: str, id_key: str, holder: str, item: Object) -> list[Any] | None:
    """Read the hits in the list `item[key]`. Each hit has its id under the key `id_key`, and an object of fields under `holder`."""
    hits = item.get(key)
    if not isinstance(hits, list) or not all(isinstance(object_or_empty(hit).get(holder), dict) for hit in hits):
        return None
    return [{"id": hit.get(id_key), **hit[holder], "metadata": hit.get("metadata")} for hit in hits]


def _read_url_keys(item: Object) -> list[Any] | None:
    """Read an object whose keys are all URLs. A value is the text of the page or an object with its fields."""
    if "://" not in next(iter(item), "") or not all(map(is_url, item)):
        return None
    if not all(isinstance(value, (str, dict)) for value in item.values()):
        return None
    pages = {url: value if isinstance(value, dict) else {"text": value} for url, value in item.items()}
    return [{"url": url, **page} for url, page in pages.items()]


def _read_milvus(hits: list[Object]) -> list[Object] | None:
    """Read Milvus hits with `id`, `distance`, and the document's fields in `entity`."""
    if "entity" not in hits[0] or not all(isinstance(hit.get("entity"), dict) and "distance" in hit for hit in hits):
        return None
    return [{"metadata" if key == "entity" else key: value for key, value in hit.items()} for hit in hits]


def _read_openai_files(hits: list[Object]) -> list[Object] | None:
    """Read hits of OpenAI's vector stores. A hit is a passage of a file, with a `file_id` and a `filename`."""
    if "file_id" not in hits[0]:
        return None
    hits = [{**hit, "filename": hit["file_name"]} if "file_name" in hit else hit for hit in hits]  # as Azure names it
    if not all("file_id" in hit and "filename" in hit and ("text" in hit or "content" in hit) for hit in hits):
        return None
    return [
        {
            "doc_id": hit["file_id"], "title": hit["filename"], "text": hit.get("text", hit.get("content")),
            "score": hit.get("score"), "type": "passage", "file_name": hit["filename"],
        }
        for hit in hits
    ]  # fmt: skip


def _read_bedrock(hits: list[Object]) -> list[Object] | None:
    """Read passages of Bedrock's knowledge bases. The text is in `content`, the address in an inner object of `location`."""
    if not isinstance(hits[0].get("content"), dict):
        return None
    if not all(isinstance(content := hit.get("content"), dict) and "text" in content for hit in hits):
        return None
    results = []
    for hit in hits:
        places = hit["location"].values() if isinstance(hit.get("location"), dict) else ()
        inner = [value for place in places if isinstance(place, dict) for value in place.values()]
        url = next((value for value in inner if isinstance(value, str) and "://" in value), None)
        result = {**hit, "content": hit["content"]["text"]}
        if url:
            result["url"] = url
        results.append(result)
    return results


def _read_vertex(hits: list[Object]) -> list[Object] | None:
    """Read references of Vertex AI Search: a chunk with the metadata of its document, or a document with its chunks."""
    if hits[0].keys().isdisjoint(_VERTEX_KEYS):
        return None
    inner = [next((hit[key] for key in _VERTEX_KEYS if isinstance(hit.get(key), dict)), None) for hit in hits]
    if None in inner:
        return None
    results = []
    for reference in filter(None, inner):
        document = object_or_empty(reference.get("documentMetadata")) or reference
        named = {key: document[name] for key, name in _VERTEX_FIELDS.items() if document.get(name) is not None}
        text = {"content": reference["content"]} if "content" in reference else {}
        results.append({**named, **text})
    return results


def _leave_out_pictures(hits: list[Object]) -> list[Object] | None:
    """Remove pictures from a list of results. A picture is recognised by the `type` image and by its other keys."""
    images = [hit for hit in hits if hit.get("type") == "image"]
    if not images:
        return None
    pictures = [image for image in images if "image_url" in image or ("url" in image and image.keys() <= _PICTURE_KEYS)]
    if 0 < len(pictures) < len(hits):
        return [hit for hit in hits if hit not in pictures]
    return None


#: The readers of single objects and of lists of objects, by their names in the docs, in the order tried.
OBJECT_SHAPES: dict[str, Callable[[Object], list[Any] | None]] = {
    "columns": _read_chroma,
    "classes under data.Get": _read_weaviate,
    "objects with properties": partial(_read_held, "objects", "uuid", "properties"),
    "documents with data": partial(_read_held, "documents", "id", "data"),
    "an object keyed by URL": _read_url_keys,
}
HIT_SHAPES: dict[str, Callable[[list[Object]], list[Object] | None]] = {
    "hits with an entity": _read_milvus,
    "passages of files": _read_openai_files,
    "passages of knowledge bases": _read_bedrock,
    "references of Vertex AI Search": _read_vertex,
    "results among pictures": _leave_out_pictures,
}
