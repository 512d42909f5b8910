"""Finds values that look like searches or results but were not read. They are reported, not lost silently."""

import re
from collections.abc import Iterator, Sequence
from typing import Any

from goodgain.logs.traces.model import Result
from goodgain.logs.traces.tool_outputs.result_objects import Object, make_key_plan, normalise_key
from goodgain.logs.traces.tool_outputs.service_answers import PICTURE_LISTS
from goodgain.logs.traces.tool_outputs.text_lists import find_address, split_number
from goodgain.logs.traces.tools import is_search_tool

#: Keys of objects with addresses and titles that are not results.
NO_RESULTS = {
    *PICTURE_LISTS,
    *("answerbox", "knowledgegraph", "peoplealsoask", "relatedquestions", "relatedsearches", "faq", "infobox"),
    *("infoboxes", "sitelinks", "deeplinks", "deepresults", "breadcrumbs", "citedby"),
    *("authors", "author", "profile", "profiles", "facets", "filters", "aggregations", "categories", "tags"),
    *("thumbnail", "thumbnails", "favicon", "embedding", "embeddings", "vector", "values", "usage", "rankings"),
}
#: Fields of logs with metadata, citations or settings.
_NOTES = {
    *("metadata", "meta", "extra", "extras", "tags", "usage", "citations", "annotations"),
    *("tools", "functions", "toolchoice", "tooldefinitions", "availabletools"),
}
#: Keys of the tool's name in a call, and keys of the query.
_TOOL_KEYS = {"name", "tool", "toolname", "function", "functionname", "type", "kind", "action"}
_QUERY_KEYS = {"query", "queries", "q", "searchquery", "searchqueries", "userquery", "keywords"}
#: Parts of the types of calls and of their outputs: `server_tool_use`, `function_call_output`.
CALL_TYPE = re.compile(r"tool_|_call|tool-|-call")
#: Calls in the text of an agent: `Action: search[...]`, `Action: search` above `Action Input:`, or JSON with `action_input`.
_WRITTEN_CALL = re.compile(
    r"""^[ \t*>]*Action(?:[ ]\d{1,4})?[ \t*]*:[ \t*`]*([^\s\[({`*:][^\n\[({`*:]{0,79}?)[ \t*`]*(?:[\[(]|\n[ \t*]*Action[ ]Input)"""
    r"""|"action"\s*:\s*"([^"\n]{1,80})"\s*,\s*"action_input\"""",
    re.MULTILINE,
)
_LONGEST_NAME = 200
_MAX_DEPTH = 8
_URL = re.compile(r"https?://[^\s<>\"']+")
#: Names of fields with the URL of a picture.
_PICTURES = re.compile("image|icon|thumb|picture|photo|avatar|logo")
#: Signs that end a sentence or a bracket rather than an address.
_AFTER_URL = ").,;:]*"


def looks_like_search(key: str, value: Any) -> bool:
    """Return whether an unread field of a log contains values that look like results or a search call."""
    if not isinstance(value, (list, dict)) or normalise_key(key) in _NOTES:
        return False
    return any(find_overlooked_objects({key: value}, [])) or holds_call({key: value})


def holds_call(value: Any) -> bool:
    """Return whether a value contains an object that names a search tool, has a query, or has the id of a call."""
    return any(_is_call(item, in_list=in_list) for item, in_list in _find_objects(value, _MAX_DEPTH))


def looks_like_messages(key: str, value: Any) -> bool:
    """Return whether an unread field of a record may hold messages and, among them, a search or results."""
    # Settings that name a search tool, and documents without a call, do not count: records of data sets have both.
    objects = _find_objects(value, _MAX_DEPTH)
    has_message = any("role" in item or (in_list and _is_call(item, in_list=True)) for item, in_list in objects)
    return has_message and looks_like_search(key, value)


def find_written_calls(text: str) -> Iterator[str]:
    """Yield the names of the tools that an agent's text calls in ReAct style.

    >>> list(find_written_calls("I do not know him.\\nAction: search[Ada Lovelace]"))
    ['search']
    """
    if "ction" in text:
        yield from (match[1] or match[2] for match in _WRITTEN_CALL.finditer(text))


def is_content(key: str, value: Any) -> bool:
    """Return whether an unread field may hold an item's text. Only call this if the known fields of the item have no text."""
    if isinstance(value, str):
        return len(value.split()) > 2 or bool(value and make_key_plan((key,)).fields["snippet"])
    objects = (item for item, _ in _find_objects(value, _MAX_DEPTH))
    return normalise_key(key) not in _NOTES and any(isinstance(text, str) for item in objects for text in item.values())


def _find_objects(value: Any, depth: int, *, in_list: bool = False) -> Iterator[tuple[Object, bool]]:
    """Yield each object in a value, itself included, and whether it is directly in a list."""
    if isinstance(value, dict):
        yield value, in_list
    if depth and isinstance(value, (list, dict)):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _find_objects(inner, depth - 1, in_list=isinstance(value, list))


def _is_call(item: Object, *, in_list: bool) -> bool:
    """Return whether an object looks like a call. Outside a list, it must have the name of a search tool as a key."""
    for key, value in item.items():
        if not value or not isinstance(value, (str, list, dict)) or len(key) > _LONGEST_NAME:
            continue
        name = normalise_key(key) if in_list else ""
        if is_search_tool(key) or name in _QUERY_KEYS or name.endswith(("callid", "tooluseid")):
            return True
        word = value if name in _TOOL_KEYS and isinstance(value, str) and len(value) <= _LONGEST_NAME else ""
        if word and (is_search_tool(word) or CALL_TYPE.search(word)):
            return True
    return False


def find_overlooked_objects(item: Object, read: list[Any], *, lists_only: bool = False) -> Iterator[str]:
    """Yield the URL or id of each object inside `item` that looks like a result. Skip `read`, the values that were already read."""
    # Inner objects of a result that are not in a list describe the same document.
    kinds = list if lists_only else (list, dict)
    skipped = set(map(id, read))
    for key, value in item.items():
        if isinstance(value, kinds) and value and normalise_key(key) not in NO_RESULTS:
            yield from _find_names(value, skipped, _MAX_DEPTH, in_list=False)


def _find_names(value: Any, skipped: set[int], depth: int, *, in_list: bool) -> Iterator[str]:
    """Yield the URL or id of each outermost object in a value that looks like a result.

    Below such an object, none is looked for.
    """
    if id(value) in skipped or depth < 0:
        return
    if isinstance(value, list):
        for member in value:
            if isinstance(member, (list, dict)):
                yield from _find_names(member, skipped, depth - 1, in_list=True)
    elif name := _find_name(value, in_list=in_list):
        yield name
    else:
        for key, inner in value.items():
            if isinstance(inner, (list, dict)) and inner and normalise_key(key) not in NO_RESULTS:
                yield from _find_names(inner, skipped, depth - 1, in_list=False)


def _find_name(item: Object, *, in_list: bool) -> str | None:
    """Return what names the document of an object with a title or text: the URL or, in a list, else the id. Else return None."""
    keys = make_key_plan(tuple(item)).fields
    if not any(isinstance(item[key], str) and item[key].strip() for key in keys["title"] + keys["snippet"]):
        return None
    for key in keys["url"] + (keys["doc_id"] if in_list else ()):
        if isinstance(value := item[key], (str, int)) and not isinstance(value, bool) and value != "":
            return str(value).strip()
    return None


def find_unnamed_lists(members: list[Object]) -> list[list[Object]] | None:
    """Return the lists of results that all objects have under the same key; None unless there is exactly one such key."""
    keys = [key for key in members[0] if normalise_key(key) not in NO_RESULTS]
    lists = [[member.get(key) for member in members] for key in keys]
    lists_of_results = [of_key for of_key in lists if any(of_key) and all(map(_are_results, of_key))]
    return lists_of_results[0] if len(lists_of_results) == 1 else None  # type: ignore[return-value]  # they are lists of objects


def _are_results(members: Any) -> bool:
    if not isinstance(members, list):
        return False
    return all(isinstance(member, dict) and _find_name(member, in_list=True) for member in members)


def find_overlooked_addresses(text: str, results: Sequence[Result]) -> Iterator[str]:
    """Yield the addresses in a text that may belong to results that were not read:

    - addresses that occur in no result, if no address of a result is on the same line;
    - addresses alone on a line, even inside a snippet. Here, Markdown links and numbered lines count only if results have
      this form too, because the texts of web pages have many such lines.
    """
    if "://" not in text:
        return
    addresses = {name for result in results for name in (result.url, result.doc_id) if name}

    def is_of_result(urls: list[str]) -> bool:
        return any(url in addresses or url[:-1] in addresses or _strip_sentence(url) in addresses for url in urls)

    covered = set(addresses)
    for result in results:
        for part in (result.snippet, result.title, *(value for _, value in result.fields)):
            if part and "://" in part:
                covered.update(map(_strip_sentence, _URL.findall(part)))
    lines = [(line, _URL.findall(line)) for line in text.splitlines() if "://" in line]
    forms = {"bare", *(_split_form(line)[0] for line, found in lines if is_of_result(found))}
    for line, found in lines:
        if is_of_result(found):
            continue
        form, address = _split_form(line)
        if address is not None and form in forms:
            if address not in addresses:
                yield address
        else:
            is_listed = form == "listed" and form in forms
            yield from (url for url in map(_strip_sentence, found) if is_listed or url not in covered)


def find_unknown_urls(results: Sequence[Result]) -> set[str]:
    """Return the names in `ids` and `fields` (no pictures) with a URL in all results; none if a result has `url` or `doc_id`."""
    if not results or any(result.url is not None or result.doc_id is not None for result in results):
        return set()
    names_with_url = [
        {name for name, text in (*result.ids, *result.fields) if _URL.fullmatch(text)} for result in results
    ]
    return {name for name in set.intersection(*names_with_url) if not _PICTURES.search(name)}


def _split_form(line: str) -> tuple[str, str | None]:
    """Return the form of a line, and the address that stands alone on it, or None.

    The form is `bare`, `listed` (a number, but more than an address), `number` (a numbered Markdown link), or the first sign of
    a line with a Markdown link (`[`, `-`).
    """
    number, text = split_number(line)
    address = find_address(text)
    if address is None and number is not None:
        return "listed", None
    if address is None or not text.startswith("["):
        return "bare", address
    return line.lstrip()[:1] if number is None else "number", address


def _strip_sentence(url: str) -> str:
    return url.rstrip(_AFTER_URL)
