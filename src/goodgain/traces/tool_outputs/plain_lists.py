"""A fast path for JSON text that lists simple results, which most tools write: decoded directly into their fields.

All results of a tool have the same keys. The keys of a text that the general readers have read are remembered under
the beginning of that text, and texts that begin in the same way are decoded with these keys. A text is read here only
where the general readers would return the same: each object has an id, a title, a text, perhaps a URL and a score, all
of the usual types, and nothing else.
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

#: How far into a text its first key is looked for, and how many beginnings are remembered; both are bounded because
#: logs are hostile input.
_MAX_PREFIX = 64
_MAX_PREFIXES = 64

_NonEmptyText = Annotated[str, msgspec.Meta(min_length=1)]
#: The type of a key such as `rank`, which is not read.
_Ignored = int | float | str | None
#: The fields of a result: name, type, and default for objects that lack it.
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
    """Return the results in a text that begins like a remembered one; None: use the general readers."""
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
        if title[0] in "\"'" or snippet.startswith("http"):  # quotes are stripped, and an address is not a text
            fields = {"doc_id": item.doc_id, "url": url, "title": title, "snippet": snippet, "score": item.score}
            if (result := read_object(fields, rank, "", doc_type)) is None:
                return None
            add(result)
            continue
        if url is not None:
            url = url.strip() or None
            if url and item.doc_id.startswith("http"):
                return None  # the id may be no more than the address once more
        add(Result(rank, item.doc_id, (), url, title, snippet, item.score, doc_type))
    return tuple(results)


def remember_keys(text: str, members: Any) -> None:
    """Remember the keys in a text that the general readers have to read, for texts that begin like it."""
    start = _first_key_prefix(text)
    if (start in _decoders or len(_decoders) < _MAX_PREFIXES) and members and set(map(type, members)) == {dict}:
        keys: dict[str, Any] = {}
        for member in members:
            keys |= member
        _decoders[start] = _make_decoder(tuple(keys))


def _first_key_prefix(text: str) -> str:
    """Return the beginning of a text, up to the colon behind its first key."""
    return text[: text.find(":", 0, _MAX_PREFIX) + 1]


@lru_cache(maxsize=_MAX_PREFIXES)
def _make_decoder(keys: tuple[str, ...]) -> _Decode | None:
    """Make a decoder of lists of objects with these keys, of which URL, score and ignored ones may be missing.

    None if the keys are not those of simple results with id, title and text.
    """
    simple = make_key_plan(keys).simple
    if simple is None or None in (simple[0], *simple[2:4]):
        return None
    named = {name: key for (name, _, _), key in zip(_FIELDS, simple, strict=True) if key is not None}
    ignored = {f"ignored_{index}": key for index, key in enumerate(keys) if key not in simple}
    fields = [*_FIELDS, *((name, _Ignored, None) for name in ignored)]
    item = msgspec.defstruct("Item", fields, rename=named | ignored, kw_only=True, forbid_unknown_fields=True, gc=False)
    return msgspec.json.Decoder(list[item]).decode  # type: ignore[valid-type]  # a class made here
