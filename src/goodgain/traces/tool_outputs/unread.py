"""Finds what looks like results outside the lists that were read, so that none are lost without a word."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from goodgain.traces.model import Result
from goodgain.traces.tool_outputs.key_names import make_key_plan, normalise_key
from goodgain.traces.tool_outputs.layout import find_address, split_number
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
_URL = re.compile(r"https?://[^\s<>\"']+")
#: Signs that end a sentence or a bracket rather than an address.
_AFTER_URL = ").,;:]*"
#: The form of a line with an address that is not a Markdown link.
_BARE = "bare"


def find_unread(item: dict[str, Any], read: list[Any], *, lists_only: bool = False) -> Iterator[str]:
    """Yield the addresses or ids of objects inside an object that look like results, outside the values that were read.

    An object looks like one if it has a URL and a title or text or, in a list, an id and a title or text. In a result
    itself only lists are looked at (`lists_only`): its other inner objects say more of the same document.
    """
    if lists_only and not any(type(value) is list and value and type(value[0]) is not str for value in item.values()):
        return
    kinds = list if lists_only else (list, dict)
    skipped = set(map(id, read))
    todo = [
        (value, 0, False)
        for key, value in item.items()
        if isinstance(value, kinds) and id(value) not in skipped and _may_hold(key, value)
    ]
    if not todo:
        return
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


def find_unread_addresses(text: str, results: list[Result]) -> Iterator[str]:
    """Yield the addresses in a text that no result covers.

    These are the addresses that no result holds and that stand in a line without a result's own address; and those that
    stand alone on a line, as a further result would, also within a snippet: Markdown links only if results stand on lines
    of the same form, as pages have many. Other addresses in snippets are links of pages.
    """
    if "://" not in text:
        return
    addresses = {name for result in results for name in (result.url, result.doc_id) if name}
    covered = set(addresses)
    for result in results:
        for part in (result.snippet, result.title, *(value for _, value in result.fields)):
            if part and "://" in part:
                covered.update(map(_strip_sentence, _URL.findall(part)))
    lines = [(line, _URL.findall(line)) for line in text.splitlines() if "://" in line]
    forms: set[str] | None = None
    for line, found in lines:
        if any(url in addresses or url[:-1] in addresses or _strip_sentence(url) in addresses for url in found):
            continue  # a line of a result
        form, address = _split_form(line)
        if address is not None and form != _BARE and forms is None:
            forms = {form for form, address in (_split_form(line) for line, _ in lines) if address in addresses}
        if address is not None and (form == _BARE or (forms and form in forms)):
            if address not in addresses:
                yield address
        else:
            yield from (url for url in map(_strip_sentence, found) if url not in covered)


def _split_form(line: str) -> tuple[str, str | None]:
    """Return the form of a line that holds an address and nothing else, and the address: None for another line."""
    number, text = split_number(line)
    address = find_address(text)
    if address is None or not text.startswith("["):
        return _BARE, address
    return line.lstrip()[:1] if number is None else "number", address


def _strip_sentence(url: str) -> str:
    """Return an address without the signs that end a sentence or a bracket."""
    return url.rstrip(_AFTER_URL)
