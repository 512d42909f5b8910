"""What stands around results: objects that wrap a list, content parts, constructors, errors."""

from __future__ import annotations

from typing import Any

from goodgain.traces.tool_outputs.key_names import plain, plain_keys
from goodgain.traces.tool_outputs.keys import has_identity

__all__ = ["are_parts", "constructed", "error_in", "held_list", "lists_side_by_side", "surely_wraps"]

#: Under which keys an object holds its list of results, the best first.
_LISTS = (
    *("results", "documents", "hits", "items", "organic", "organicresults", "searchresults", "webpages", "value"),
    *(
        "matches",
        "passages",
        "chunks",
        "nodes",
        "sourcenodes",
        "docs",
        "data",
        "sources",
        "context",
        "articles",
        "papers",
    ),
    *("output", "result", "response", "web", "citations", "content", "returnvalue"),
)
#: Those that hold results whatever else the object says, and even if they are empty.
_SURELY = frozenset(("results", "documents", "hits", "organic", "organicresults", "searchresults"))
#: Lists that stand side by side in one answer, besides those whose names end in `results`: all hold results.
_SIDE_BY_SIDE = _SURELY | {"web", "webpages", "news", "videos", "places", "topstories", "discussions"}
#: Lists of pictures, whose names end so too.
_PICTURES = ("image", "images", "imageresults", "imagesresults", "inlineimages", "visualresults")
#: Types of content parts, of MCP and of the model vendors.
_PARTS = {
    "text",
    "input_text",
    "output_text",
    "search_result",
    "resource",
    "resource_link",
    "image",
    "audio",
    "document",
}


def held_list(item: dict[str, Any]) -> Any:
    """What an object wraps: the first of its keys that hold a list, or an object or text that may hold one."""
    names = {plain(key): key for key in item}
    for name in _LISTS:
        if name in _SURELY and name in names and isinstance(item[names[name]], list):
            return item[names[name]]
    held = [item[names[name]] for name in _LISTS if name in names]
    for kind in (list, dict, str):
        for value in held:
            if isinstance(value, kind) and value:
                return value
    return next((value for value in held if isinstance(value, list)), None)


def lists_side_by_side(item: dict[str, Any]) -> list[Any]:
    """The lists of results, or objects around one, that stand side by side in an answer, in its order.

    Serper has `organic` and `news`; Brave has `web` and `news`, each with `results`.
    """
    found = []
    for key, value in item.items():
        name = plain(key)
        if (name in _SIDE_BY_SIDE or name.endswith("results")) and name not in _PICTURES:
            inner = _list_in(value) if isinstance(value, dict) else value
            is_list = isinstance(inner, list) and all(isinstance(member, dict) for member in inner)
            if is_list and inner not in found:  # a list that an answer repeats under another name counts once
                found.append(inner)
    return found


def _list_in(value: dict[str, Any]) -> Any:
    return next((value[key] for key in value if plain(key) in ("results", "value", "places")), None)


def surely_wraps(item: dict[str, Any]) -> bool:
    if _SURELY.isdisjoint(plain_keys(tuple(item))):
        return False
    return any(plain(key) in _SURELY and isinstance(item[key], list) for key in item)


def are_parts(members: list[dict[str, Any]]) -> bool:
    """Whether objects are content parts, rather than results that happen to have a type."""
    if all(member.keys() <= {"type", "text"} for member in members):
        return True  # text and nothing to know it by
    typed = all(isinstance(member.get("type"), str) and member["type"] in _PARTS for member in members)
    return typed and not all(map(has_identity, members))


def constructed(member: dict[str, Any]) -> dict[str, Any]:
    """An object that langchain.load wrote, without its wrapper."""
    held = member.get("kwargs")
    return held if member.get("lc") == 1 and isinstance(held, dict) else member


def error_in(item: dict[str, Any]) -> bool:
    return any(plain(key) in ("error", "errormessage", "errorcode") and item[key] for key in item)
