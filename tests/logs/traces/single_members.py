"""Logs with one member of a list dropped, repeated, swapped with the next one, or merged with it."""

from __future__ import annotations

import copy
import gzip
import json
import random
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import polars as pl

__all__ = ["CHANGES", "Change", "apply", "read_log", "search_lists", "write_log"]

CHANGES = ("drop", "repeat", "swap", "merge")
#: The keys of lists whose members are messages, steps, spans or events. Other lists hold calls, results or texts.
_KEYS = {
    *("messages", "items", "input", "output", "steps", "spans", "events", "turns", "observations", "samples"),
    *("contents", "simulations", "result", "child_runs", "scopeSpans", "traces", "message_history", "searches"),
    *("history", "resourceSpans", "data", "records", "work"),
}
#: Keys of messages and spans whose lists hold parts, calls or fields: below them no list is looked for.
_INSIDE = {"payload", "message", "attributes", "structuredContent", "response"}
#: Keys of lists that are members in a record, and fields in a member of a list.
_FIELDS = {"events", "output", "input", "result", "data"}
#: The place of a list, the position of a member, and what is done to it.
Change = tuple[tuple[Any, ...], int, str]


def read_log(path: Path) -> tuple[Any, str]:
    """The value of a log and its kind; a value a line is a list."""
    if path.suffix == ".parquet":
        return pl.read_parquet(path).to_dicts(), "parquet"
    content = path.read_bytes()
    text = (gzip.decompress(content) if path.suffix == ".gz" else content).decode()
    lines = [line for line in text.split("\n") if line.strip()]
    try:
        return json.loads(text), "json"
    except ValueError:
        pass

    try:
        return [json.loads(line) for line in lines], "jsonl"
    except ValueError:
        return lines, "text"


def write_log(value: Any, kind: str, like: Path) -> bytes:
    """A changed value as its kind of log."""
    if kind == "parquet":
        buffer = BytesIO()
        pl.DataFrame(value, schema=pl.read_parquet_schema(like)).write_parquet(buffer)
        return buffer.getvalue()
    if kind == "json":
        return json.dumps(value).encode()
    return "\n".join(json.dumps(line) if kind == "jsonl" else line for line in value).encode() + b"\n"


def search_lists(value: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The places of all lists of members in a value."""
    if isinstance(value, list) and value and (not place or all(isinstance(member, dict) for member in value)):
        yield place
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, member in members:
        is_field = key in _FIELDS and any(isinstance(one, int) for one in place)
        if key not in _INSIDE and not is_field and (isinstance(key, int) or key in _KEYS or isinstance(member, dict)):
            yield from search_lists(member, (*place, key))


def apply(value: Any, kind: str, change: Change) -> tuple[Any, Any] | None:
    """A changed copy, and the member that was changed; None where two members cannot be merged."""
    value = copy.deepcopy(value)
    place, at, what = change
    held = value
    for key in place:
        held = held[key]
    member = copy.deepcopy(held[at])

    if what == "drop":
        del held[at]
    elif what == "repeat":
        held.insert(at, copy.deepcopy(member))
    elif at + 1 == len(held):
        return None
    elif what == "swap":
        held[at : at + 2] = [held[at + 1], held[at]]
    elif kind == "text" or not all(isinstance(one, dict) for one in held[at : at + 2]) or kind == "parquet":
        return None
    else:
        held[at : at + 2] = [_merge(held[at], held[at + 1])]

    return value, member


def _merge(one: Any, other: Any) -> Any:
    """Two values as one: lists follow each other, objects are united, and of other values the first counts."""
    if isinstance(one, dict) and isinstance(other, dict):
        return {key: _merge(one.get(key), other.get(key)) for key in {**one, **other}}
    if isinstance(one, list) and isinstance(other, list):
        return one + [member for member in other if member not in one]
    return other if one is None else one


def choose(value: Any, chance: random.Random) -> Change | None:
    """One change of a value by chance; each list of members is as likely as any other."""
    places = list(search_lists(value))
    if not places:
        return None
    place = chance.choice(places)
    held = value
    for key in place:
        held = held[key]
    return place, chance.randrange(len(held)), chance.choice(CHANGES)
