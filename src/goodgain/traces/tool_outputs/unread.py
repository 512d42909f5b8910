"""Finds what looks like results outside the lists that were read, so that none are lost without a word."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from goodgain.traces.model import Result
from goodgain.traces.tool_outputs.key_names import make_key_plan, normalise_key
from goodgain.traces.tool_outputs.layout import find_address
from goodgain.traces.tool_outputs.wrappers import PICTURE_LISTS

__all__ = ["find_unread", "find_unread_addresses"]

#: Keys of objects that have addresses and titles and are known not to be results.
_NO_RESULTS = {
    *PICTURE_LISTS,
    *("answerbox", "knowledgegraph", "peoplealsoask", "relatedquestions", "relatedsearches", "faq", "infobox"),
    *("infoboxes", "sitelinks", "deeplinks", "deepresults", "breadcrumbs", "citedby"),
    *("authors", "author", "profile", "profiles", "facets", "filters", "aggregations", "categories", "tags"),
    *("thumbnail", "thumbnails", "favicon", "embedding", "embeddings", "vector", "values", "usage", "rankings"),
}
#: Bounds of the search for objects that no list holds: hostile values are wide and deep.
_MAX_NODES, _MAX_DEPTH = 20_000, 8
_URL = re.compile(r"https?://[^\s<>\"')\]]+")


def find_unread(item: dict[str, Any], read: list[Any], *, lists_only: bool = False) -> Iterator[str]:
    """Yield the addresses or ids of objects inside an object that look like results, outside the values that were read.

    An object looks like one if it has a URL and a title or text or, in a list, an id and a title or text. In a result
    itself only lists are looked at (`lists_only`): its other inner objects say more of the same document.
    """
    kinds = list if lists_only else (list, dict)
    skipped = {id(inner) for inner in read}
    todo = [(value, 0, False) for key, value in item.items() if isinstance(value, kinds) and _may_hold(key, value)]
    for _ in range(_MAX_NODES):
        if not todo:
            return
        current, depth, in_list = todo.pop()
        if id(current) in skipped:
            continue
        if isinstance(current, dict):
            if address := _find_address(current, in_list=in_list):
                yield address
                continue
            inner = [(value, depth + 1, False) for key, value in current.items() if _may_hold(key, value)]
        else:
            inner = [(member, depth + 1, True) for member in current if isinstance(member, (list, dict)) and member]
        if depth < _MAX_DEPTH:
            todo += inner


def _may_hold(key: str, value: Any) -> bool:
    return isinstance(value, (list, dict)) and bool(value) and normalise_key(key) not in _NO_RESULTS


def _find_address(item: dict[str, Any], *, in_list: bool) -> str | None:
    plan = make_key_plan(tuple(item))
    if not any(isinstance(item[key], str) and item[key].strip() for key in plan.title + plan.snippet):
        return None
    for key in plan.url + (plan.doc_id if in_list else ()):
        if isinstance(value := item[key], (str, int)) and not isinstance(value, bool) and value != "":
            return str(value).strip()
    return None


def find_unread_addresses(text: str, results: Iterable[Result]) -> Iterator[str]:
    """Yield the addresses in a text that no result covers.

    These are the addresses in lines that belong to no result, and those that stand alone on a line, also within what
    was read as a snippet, as the next result of a list would. Other addresses in snippets are links of pages.
    """
    if "://" not in text:
        return
    covered: set[str] = set()
    for result in results:
        for part in (result.snippet, result.title, *(value for _, value in result.fields)):
            if part:
                covered.update(line.strip() for line in part.splitlines())
    addresses = {result.url for result in results} | {result.doc_id for result in results}
    for line in text.splitlines():
        if "://" not in line or not (stripped := line.strip()):
            continue
        alone = find_address(stripped)
        found = [alone] if alone is not None else _URL.findall(stripped)
        if not addresses.isdisjoint(found):
            continue
        if alone is not None or covered.isdisjoint((stripped, *_tails(stripped))):
            yield from found


def _tails(line: str) -> Iterator[str]:
    """Yield what follows the label or number of a line."""
    yield line.partition(": ")[2].strip()
    yield line.partition(" ")[2].strip()
