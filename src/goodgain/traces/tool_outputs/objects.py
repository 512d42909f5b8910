"""Reads an object in a tool's output as a Result: id, URL, title, snippet, score and the rest.

The meaning of its keys stands in `key_names`; here the values are read, from the object and from objects inside it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from goodgain.traces.input.checks import as_number, expect_id, unexpected_value
from goodgain.traces.model import Pairs, Result
from goodgain.traces.tool_outputs.key_names import NOT_DOCUMENT_TYPES, field_name, make_key_plan

__all__ = ["has_identity", "join_texts", "read_object", "read_objects"]

#: Longer fields are texts, not facts about the document, and would only fill the frame.
_MAX_FIELD_LENGTH = 1000
#: Objects nested deeper are not looked at; search APIs nest as in `hit._source.metadata`.
_MAX_DEPTH = 4
#: What a title may begin with that needs a second look: nothing at all, or a quote that is to be stripped.
_QUOTES = ("", '"', "'")

#: How the address of a page begins.
_WEB = ("http://", "https://")

#: The header that Markdown pages begin with; of more than 20 lines it is a table or a rule, not a header.
_FRONT_MATTER = re.compile(r"---\n(?P<head>(?:[^\n]*\n){1,20}?)---(?:\n|$)")

Object = dict[str, Any]


def read_objects(items: list[Object], at: str, doc_type: str | None = None) -> tuple[Result, ...] | None:
    """Return the results that objects describe, ranked in their order; None if one of them does not describe a result.

    Simple objects, nearly all, are read in this loop without a call of `read_object`: reading spends most of its time
    here.

    Raises:
        InputError: an id or URL is neither text nor a number.
    """
    results: list[Result] = []
    add = results.append
    last: tuple[str, ...] | None = None
    simple: tuple[str | None, ...] | None = None
    for_id = for_url = for_title = for_snippet = for_score = None
    for rank, item in enumerate(items, start=1):
        keys = tuple(item)
        if keys != last:
            last, simple = keys, make_key_plan(keys).simple
            if simple is not None:
                for_id, for_url, for_title, for_snippet, for_score = simple
        if simple is not None and for_id and for_title and for_snippet:
            doc_id, title, snippet = item[for_id], item[for_title], item[for_snippet]
            url = item[for_url] if for_url else ""
            score = item[for_score] if for_score else None
            if (
                type(doc_id) is type(title) is type(snippet) is type(url) is str
                and doc_id
                and snippet
                and title[:1] not in _QUOTES
                and not snippet.startswith("http")
                and not (url and doc_id.startswith("http"))
                and (score is None or type(score) is float)
            ):
                add(Result(rank, doc_id, (), url.strip() or None, title, snippet, score, doc_type))
                continue
        found = read_object(item, rank, at, doc_type)
        if found is None:
            return None
        add(found)
    return tuple(results)


def read_object(item: Object, rank: int, at: str, doc_type: str | None = None) -> Result | None:
    """Return the result that an object describes; None if it has neither id, URL, title nor text.

    The outer object comes first: what an object inside it says too is read only where the outer one lacks it.

    Raises:
        InputError: the id or URL is neither text nor a number.
    """
    doc_id = url = title = snippet = score = kind = None
    ids: Pairs = ()
    fields: Pairs = ()
    todo = [item]
    for depth in range(_MAX_DEPTH):
        inner: list[Object] = []
        for part in todo:
            plan = make_key_plan(tuple(part))
            doc_id = doc_id or _read_first(part, plan.doc_id, expect_id, at)
            url = url or _read_first(part, plan.url, _read_url, at) or _find_url(part, plan.sources)
            title = title or _read_first(part, plan.title, _read_text, at)
            snippet = snippet or _read_first(part, plan.snippet, _read_snippet, at)
            score = _read_first(part, plan.score, _read_score, at) if score is None else score
            kind = kind or _read_first(part, plan.type, _read_type, at)
            if plan.others:
                new_ids, new_fields = _read_others(part, plan.others)
                ids, fields = ids + new_ids, fields + new_fields
            if plan.containers:
                inner += [part[key] for key in plan.containers if isinstance(part[key], dict)]
        if not inner or depth == _MAX_DEPTH - 1:
            break
        todo = inner
    if doc_id is None and url is None and title is None and snippet is None:
        return None
    if url and doc_id and doc_id.startswith(_WEB) and doc_id == item.get("id"):
        doc_id = None  # Exa repeats the address, Bing gives the place of the result in its answer
    if title is None and snippet is not None and snippet.startswith("---\n"):
        title, fields = _read_front_matter(snippet, fields)
    return Result(rank, doc_id, ids, url, _strip_quotes(title), snippet, score, doc_type or kind, fields)


def has_identity(item: Object) -> bool:
    """Return whether an object outside a list is surely a result: it has an id or a URL, and a title or text."""
    plan = make_key_plan(tuple(item))
    named = any(isinstance(item[key], (str, int)) and item[key] != "" for key in plan.doc_id + plan.url)
    return named and any(item[key] for key in plan.title + plan.snippet + plan.containers)


def join_texts(value: Any) -> str | None:
    """Return the text of a text, a number, or a list of texts and text parts, joined by line feeds; else None."""
    if isinstance(value, str):
        return value or None
    if isinstance(value, list):
        texts = [part.get("text") if isinstance(part, dict) else part for part in value]
        return "\n".join(text for text in texts if isinstance(text, str)) or None
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return str(value)
    return None


def _read_first(part: Object, keys: tuple[str, ...], read: Callable[[Any, str], Any], at: str) -> Any:
    for key in keys:
        value = part[key]
        if value is not None and (found := read(value, at)) is not None:
            return found
    return None


def _read_url(value: Any, at: str) -> str | None:
    if isinstance(value, str):
        return value.strip() or None
    if isinstance(value, (list, dict)):
        return None  # a thumbnail, a list of links: not this document's address
    raise unexpected_value(at, "a URL as text", value)


def _find_url(part: Object, keys: tuple[str, ...]) -> str | None:
    for key in keys:
        value = part[key]
        if isinstance(value, str) and value.startswith(_WEB):
            return value
    return None


def _read_text(value: Any, _: str) -> str | None:
    return join_texts(value)


def _read_snippet(value: Any, _: str) -> str | None:
    text = join_texts(value)
    if text is None or (len(text) < 2048 and text.startswith(_WEB) and " " not in text):
        return None  # a bare address under `document` or `content` is not the document's text
    return text


def _read_score(value: Any, _: str) -> float | None:
    return as_number(value)


def _read_type(value: Any, _: str) -> str | None:
    name = field_name(value) if isinstance(value, str) else None
    return None if not name or name in NOT_DOCUMENT_TYPES else name


def _read_others(part: Object, others: tuple[tuple[str, str, bool], ...]) -> tuple[Pairs, Pairs]:
    """Return the other texts and numbers of an object: domain-specific ids, and fields."""
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
    """Return title and fields of a text that opens with `---`, `title: T`, `date: D`, `---`."""
    title = None
    if head := _FRONT_MATTER.match(snippet):
        for line in head["head"].splitlines():
            name, _, value = line.partition(":")
            if name.strip() == "title":
                title = value.strip() or None
            elif name.strip() == "date" and value.strip():
                fields += (("published", value.strip()),)
    return title, fields


def _strip_quotes(title: str | None) -> str | None:
    """Return a title without one pair of quotes around it."""
    if title and len(title) > 2 and title[0] == title[-1] and title[0] in "\"'":
        return title[1:-1]
    return title
