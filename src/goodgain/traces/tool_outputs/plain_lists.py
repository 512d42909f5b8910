"""JSON text that lists plain results, decoded straight into their fields: what most tools write, without detours.

A tool's results all have the same keys. Those of a text read by the general chain are remembered under how the text
begins, and texts that begin alike are decoded by them. A text is read here only where the chain would read the same:
each object has an id, a title, a text, perhaps a URL and a score, all of the usual types, and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Annotated, Any

import msgspec

from goodgain.traces.model import Result
from goodgain.traces.tool_outputs.key_names import make_key_plan
from goodgain.traces.tool_outputs.objects import read_object

__all__ = ["decode_plain_list", "remember_keys"]

#: How far into a text its first key is looked for, and how many ways to begin are remembered: logs are hostile input.
_MAX_PREFIX = 64
_MAX_PREFIXES = 64

_NonEmptyText = Annotated[str, msgspec.Meta(min_length=1)]
#: The value of a key such as `rank`, which says nothing of the document.
_Ignored = int | float | str | None
#: A field of a result: its type, and what stands for it where the object lacks it.
_FIELDS: tuple[tuple[str, Any, Any], ...] = (
    ("doc_id", _NonEmptyText, msgspec.NODEFAULT),
    ("url", str | None, None),
    ("title", _NonEmptyText, msgspec.NODEFAULT),
    ("snippet", _NonEmptyText, msgspec.NODEFAULT),
    ("score", float | None, None),
)

_Decode = Callable[[str], list[Any]]
_decoders: dict[str, _Decode | None] = {}


def decode_plain_list(text: str, doc_type: str | None) -> tuple[Result, ...] | None:
    """The results in a text that begins as one with such results did; None: read it by the general chain."""
    decode = _decoders.get(_first_key_prefix(text))
    if decode is None:
        return None
    try:
        found = decode(text)
    except (ValueError, RecursionError):
        return None
    results: list[Result] = []
    add = results.append
    for rank, item in enumerate(found, start=1):
        title, snippet, url = item.title, item.snippet, item.url
        if title[0] in "\"'" or snippet.startswith("http"):  # quotes are taken off, and an address is no text
            fields = {"doc_id": item.doc_id, "url": url, "title": title, "snippet": snippet, "score": item.score}
            if (result := read_object(fields, rank, "", doc_type)) is None:
                return None
            add(result)
            continue
        if url is not None:
            url = url.strip() or None
        add(Result(rank, item.doc_id, (), url, title, snippet, item.score, doc_type))
    return tuple(results)


def remember_keys(text: str, members: Any) -> None:
    """Take note of the keys in a text that the general chain has to read, for those that begin alike."""
    start = _first_key_prefix(text)
    if (start in _decoders or len(_decoders) < _MAX_PREFIXES) and members and set(map(type, members)) == {dict}:
        keys: dict[str, Any] = {}
        for member in members:
            keys |= member
        _decoders[start] = _make_decoder(tuple(keys))


def _first_key_prefix(text: str) -> str:
    """A text up to the colon behind its first key."""
    return text[: text.find(":", 0, _MAX_PREFIX) + 1]


@lru_cache(maxsize=_MAX_PREFIXES)
def _make_decoder(keys: tuple[str, ...]) -> _Decode | None:
    """What decodes lists of objects with these keys, of which those that only may be there can also be missing."""
    straight = make_key_plan(keys).straight
    if straight is None or None in (straight[0], *straight[2:4]):
        return None
    named = {name: key for (name, _, _), key in zip(_FIELDS, straight, strict=True) if key is not None}
    passed_over = {f"passed_over_{index}": key for index, key in enumerate(keys) if key not in straight}
    fields = [*_FIELDS, *((name, _Ignored, None) for name in passed_over)]
    item = msgspec.defstruct(
        "Item", fields, rename=named | passed_over, kw_only=True, forbid_unknown_fields=True, gc=False
    )
    return msgspec.json.Decoder(list[item]).decode  # type: ignore[valid-type]  # a class made here
