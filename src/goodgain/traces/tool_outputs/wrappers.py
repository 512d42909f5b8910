"""Finds the results inside objects that wrap them: lists under known keys, content parts, LangChain dumps, errors."""

from __future__ import annotations

from typing import Any

import orjson

from goodgain.traces.input.checks import as_number
from goodgain.traces.tool_outputs.key_names import normalise_keys
from goodgain.traces.tool_outputs.objects import has_identity

__all__ = [
    "LIST_KEYS",
    "PICTURE_LISTS",
    "are_parts",
    "counts_nothing",
    "find_list",
    "find_parallel_lists",
    "has_error",
    "is_wrapper",
    "unwrap_langchain",
]

#: Keys under which an object holds its list of results, the best first.
LIST_KEYS = (
    *("results", "documents", "hits", "items", "organic", "organicresults", "searchresults", "webpages", "value"),
    *("matches", "points", "passages", "chunks", "nodes", "sourcenodes", "rawoutput", "docs", "data", "sources"),
    *("context", "articles", "papers", "output", "result", "response", "web", "citations", "content", "returnvalue"),
)
#: Of these, the keys whose list holds results whatever else the object has, and even if the list is empty.
_ALWAYS_LISTS = frozenset(("results", "documents", "hits", "organic", "organicresults", "searchresults"))
#: Keys of lists that stand side by side in one answer and all hold results, as do all keys that end in `results`.
_PARALLEL_LISTS = _ALWAYS_LISTS | {
    *("web", "webpages", "news", "videos", "places", "topstories", "discussions", "locations"),
}
#: Keys of lists of pictures, which are not documents although the keys end in `results` too.
PICTURE_LISTS = ("image", "images", "imageresults", "imagesresults", "inlineimages", "visualresults")
#: Keys that say how many results there are.
_COUNTS = {
    *("count", "total", "totalresults", "totalcount", "totalhits", "numresults", "numberofresults", "resultcount"),
    *("resultscount", "found", "hitcount", "nhits", "estimatedtotalhits"),
}
#: What Google, Bing and Brave return, who leave out the list where nothing was found: a key, its value, another key that
#: is there, and the list.
_WITHOUT_LIST = (
    ("kind", "customsearch#search", "queries", "items"),
    ("_type", "SearchResponse", "queryContext", "webPages"),
    ("type", "search", "query", "web"),
)
#: Types of content parts, of MCP and of the model vendors.
_PART_TYPES = {
    *("text", "input_text", "output_text", "search_result", "resource", "resource_link", "image", "audio", "document"),
}


def find_list(item: dict[str, Any]) -> Any:
    """Return what an object wraps: the value of its best key with a list, else of one with an object or text."""
    names = {name: key for key, name in normalise_keys(tuple(item))}
    for name in LIST_KEYS:
        if name in _ALWAYS_LISTS and name in names and isinstance(item[names[name]], list):
            return item[names[name]]
    held = [item[names[name]] for name in LIST_KEYS if name in names]
    for kind in (list, dict, str):
        for value in held:
            if isinstance(value, kind) and value:
                return value
    return next((value for value in held if isinstance(value, list)), None)


def find_parallel_lists(item: dict[str, Any]) -> list[Any]:
    """Return the lists of results that stand side by side in an answer, or in objects there, in the answer's order.

    Serper has `organic` and `news`; Brave has `web` and `news`, each with `results`.
    """
    found = []
    for key, name in normalise_keys(tuple(item)):
        if (name in _PARALLEL_LISTS or name.endswith("results")) and name not in PICTURE_LISTS:
            value = item[key]
            inner = _find_inner_list(value) if isinstance(value, dict) else value
            if isinstance(inner, list) and set(map(type, inner)) <= {dict}:
                found.append(inner)
    return found if len(found) < 2 else _leave_out_repeats(found)


def _find_inner_list(value: dict[str, Any]) -> Any:
    names = normalise_keys(tuple(value))
    return next((value[key] for key, name in names if name in ("results", "value", "places")), None)


def _leave_out_repeats(lists: list[Any]) -> list[Any]:
    """Leave out the lists that an answer repeats under other names."""
    kept: dict[bytes, Any] = {}
    for one in lists:
        kept.setdefault(orjson.dumps(one, default=repr, option=orjson.OPT_NON_STR_KEYS), one)
    return list(kept.values())


def is_wrapper(item: dict[str, Any]) -> bool:
    """Return whether an object has a key whose list always holds results."""
    return any(name in _ALWAYS_LISTS and isinstance(item[key], list) for key, name in normalise_keys(tuple(item)))


def are_parts(members: list[dict[str, Any]]) -> bool:
    """Return whether objects are content parts, rather than results that happen to have a type."""
    if all(member.keys() <= {"type", "text"} for member in members):
        return True  # a result has more than a text
    typed = all(isinstance(member.get("type"), str) and member["type"] in _PART_TYPES for member in members)
    return typed and not all(map(has_identity, members))


def unwrap_langchain(member: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of an object that langchain.load wrote; another object is returned as it is."""
    held = member.get("kwargs")
    return held if member.get("lc") == 1 and isinstance(held, dict) else member


def has_error(item: dict[str, Any]) -> bool:
    """Return whether an object reports an error."""
    names = ("error", "errormessage", "errorcode")
    return any(name in names and item[key] for key, name in normalise_keys(tuple(item)))


def counts_nothing(item: dict[str, Any]) -> bool:
    """Return whether an object says that there are 0 results, or is an answer that lacks its list for that reason."""
    if any(isinstance(value, list) and value for value in item.values()):
        return False
    if any(item.get(key) == value and other in item and name not in item for key, value, other, name in _WITHOUT_LIST):
        return True
    return any(name in _COUNTS and as_number(item[key]) == 0 for key, name in normalise_keys(tuple(item)))
