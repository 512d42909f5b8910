"""Values whose results stand elsewhere than in a list of objects: columns, objects keyed by URL, hits of vector stores.

A shape turns a value into a list of objects with keys that `key_names` knows. Objects that hold a list of results under
one of many names, as most services give them, need no shape: `wrappers` finds the list.
"""

from __future__ import annotations

from typing import Any

from goodgain.traces.tool_outputs.layout import Layout, is_url

__all__ = ["HIT_SHAPES", "OBJECT_SHAPES"]

Object = dict[str, Any]


def _read_chroma(item: Object) -> list[Any] | None:
    """Read columns: `ids` beside `documents`, `metadatas`, `distances`; a list in each for each query, or none."""
    ids = item.get("ids")
    names = [name for name in ("documents", "metadatas", "distances") if isinstance(item.get(name), list)]
    if not isinstance(ids, list) or not names:
        return None
    nested = bool(ids) and all(isinstance(of_query, list) for of_query in ids)
    tables = (
        zip(ids, *(item[name] for name in names), strict=False) if nested else [(ids, *(item[name] for name in names))]
    )
    found: list[Any] = []
    for columns in tables:
        if any(not isinstance(column, list) or len(column) != len(columns[0]) for column in columns):
            return None
        found.append([_make_chroma_hit(names, row) for row in zip(*columns, strict=True)])
    if nested and any(len(item[name]) != len(ids) for name in names):
        return None
    return found if nested else found[0]


def _make_chroma_hit(names: list[str], row: tuple[Any, ...]) -> Object:
    hit = dict(zip(names, row[1:], strict=True))
    metadata = hit.get("metadatas")
    return {
        "id": row[0], "text": hit.get("documents"), "metadata": metadata if isinstance(metadata, dict) else {},
        "distance": hit.get("distances"),
    }  # fmt: skip


def _read_weaviate(item: Object) -> list[Any] | None:
    """Read `data.Get.<Class>`, a list of objects whose id and score stand in `_additional`."""
    data = item.get("data")
    found = data.get("Get") if isinstance(data, dict) else None
    if not isinstance(found, dict) or not all(isinstance(hits, list) for hits in found.values()):
        return None
    return [
        {**_take_additional(hit), **hit} if isinstance(hit, dict) else hit for hits in found.values() for hit in hits
    ]


def _take_additional(hit: Object) -> Object:
    additional = hit.get("_additional")
    names = ("id", "score", "certainty", "distance")
    return {name: additional[name] for name in names if name in additional} if isinstance(additional, dict) else {}


def _read_weaviate_objects(item: Object) -> list[Any] | None:
    """Read `objects`, each with `uuid` and `properties`, as Weaviate's Python client prints them."""
    hits = item.get("objects")
    if not isinstance(hits, list) or not all(isinstance(hit, dict) and "properties" in hit for hit in hits):
        return None
    found = []
    for hit in hits:
        fields = hit["properties"] if isinstance(hit["properties"], dict) else {}
        metadata = hit.get("metadata")
        found.append({"id": hit.get("uuid"), **fields, "metadata": metadata if isinstance(metadata, dict) else {}})
    return found


def _read_cohere(item: Object) -> list[Any] | None:
    """Read `documents`, each with `id` and its fields in `data`."""
    documents = item.get("documents")
    if not isinstance(documents, list) or not documents:
        return None
    if not all(isinstance(one, dict) and isinstance(one.get("data"), dict) for one in documents):
        return None
    return [{"id": one.get("id"), "metadata": one["data"]} for one in documents]


def _read_url_keys(item: Object) -> list[Any] | None:
    """Read an object whose keys are all addresses, and whose values are texts or objects."""
    if "://" not in next(iter(item), "") or not all(map(is_url, item)):
        return None
    if not all(isinstance(value, (str, dict)) for value in item.values()):
        return None
    return [{"url": url, **(value if isinstance(value, dict) else {"text": value})} for url, value in item.items()]


def _read_milvus(hits: list[Object]) -> list[Object] | None:
    """Read hits with `id`, `distance` and their fields in `entity`."""
    if not all(isinstance(hit.get("entity"), dict) and "distance" in hit for hit in hits):
        return None
    rest = [{key: value for key, value in hit.items() if key != "entity"} for hit in hits]
    return [{**found, "metadata": hit["entity"]} for found, hit in zip(rest, hits, strict=True)]


def _read_openai_files(hits: list[Object]) -> list[Object] | None:
    """Read hits of OpenAI's vector stores: passages of files, named by `file_id` and `filename`."""
    if not all("file_id" in hit and "filename" in hit and ("text" in hit or "content" in hit) for hit in hits):
        return None
    return [
        {
            "doc_id": hit["file_id"], "title": hit["filename"], "text": hit.get("text", hit.get("content")),
            "score": hit.get("score"), "type": "passage", "file_name": hit["filename"],
        }
        for hit in hits
    ]  # fmt: skip


def _leave_out_pictures(hits: list[Object]) -> list[Object] | None:
    """Leave out the pictures among typed results, which have a name and an address, and no text."""
    kept = [hit for hit in hits if not (hit.get("type") == "image" and "url" in hit and hit.keys() <= _PICTURE_KEYS)]
    return kept if kept and len(kept) < len(hits) else None


_PICTURE_KEYS = {"type", "name", "title", "url", "favicon"}

#: Objects as a whole, in the order tried.
OBJECT_SHAPES: tuple[Layout[Object, list[Any]], ...] = (
    Layout(
        "columns",
        "Chroma",
        '{"ids": [["d1", "d2"]], "documents": [["Sand that moves.", "Water that stays."]], '
        '"metadatas": [[{"url": "https://a.example/1", "title": "On dunes"}, '
        '{"url": "https://b.example/2", "title": "On lakes"}]], "distances": [[0.1, 0.2]]}',
        _read_chroma,
        key="ids",
    ),
    Layout(
        "classes under data.Get",
        "Weaviate's GraphQL",
        '{"data": {"Get": {"Page": ['
        '{"url": "https://a.example/1", "title": "On dunes", "body": "Sand that moves.", "_additional": {"id": "d1"}}, '
        '{"url": "https://b.example/2", "title": "On lakes", "body": "Water that stays.", "_additional": {"id": "d2"}}]}}}',
        _read_weaviate,
        key="data",
    ),
    Layout(
        "objects with properties",
        "Weaviate's Python client",
        '{"objects": ['
        '{"uuid": "d1", "properties": {"url": "https://a.example/1", "title": "On dunes", "text": "Sand that moves."}}, '
        '{"uuid": "d2", "properties": {"url": "https://b.example/2", "title": "On lakes", "text": "Water that stays."}}]}',
        _read_weaviate_objects,
        key="objects",
    ),
    Layout(
        "documents with data",
        "Cohere",
        '{"documents": ['
        '{"id": "d1", "data": {"url": "https://a.example/1", "title": "On dunes", "snippet": "Sand that moves."}}, '
        '{"id": "d2", "data": {"url": "https://b.example/2", "title": "On lakes", "snippet": "Water that stays."}}]}',
        _read_cohere,
        key="documents",
    ),
    Layout(
        "an object keyed by URL",
        "agents' own tools",
        '{"https://a.example/1": {"title": "On dunes", "text": "Sand that moves."}, '
        '"https://b.example/2": {"title": "On lakes", "text": "Water that stays."}}',
        _read_url_keys,
    ),
)

#: Lists of objects.
HIT_SHAPES: tuple[Layout[list[Object], list[Object]], ...] = (
    Layout(
        "hits with an entity",
        "Milvus",
        '[[{"id": "d1", "distance": 0.9, '
        '"entity": {"url": "https://a.example/1", "title": "On dunes", "text": "Sand that moves."}}, '
        '{"id": "d2", "distance": 0.8, '
        '"entity": {"url": "https://b.example/2", "title": "On lakes", "text": "Water that stays."}}]]',
        _read_milvus,
        key="entity",
    ),
    Layout(
        "passages of files",
        "OpenAI's vector stores and file_search",
        '{"object": "vector_store.search_results.page", "data": ['
        '{"file_id": "d1", "filename": "On dunes", "score": 0.9, "content": [{"type": "text", "text": "Sand that moves."}]}, '
        '{"file_id": "d2", "filename": "On lakes", "score": 0.8, "content": [{"type": "text", "text": "Water that stays."}]}]}',
        _read_openai_files,
        key="file_id",
    ),
    Layout(
        "results among pictures",
        "Linkup",
        '{"results": [{"type": "text", "name": "On dunes", "url": "https://a.example/1", "content": "Sand that moves."}, '
        '{"type": "image", "name": "A dune", "url": "https://a.example/dune.png"}, '
        '{"type": "text", "name": "On lakes", "url": "https://b.example/2", "content": "Water that stays."}]}',
        _leave_out_pictures,
        key="type",
    ),
)
