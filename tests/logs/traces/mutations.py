"""Damage done to logs: bytes flipped, fields dropped, values replaced by values of another type."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterator
from typing import Any

__all__ = ["Path", "changed", "mutated", "places"]

Path = tuple[Any, ...]

_OTHERS: list[Any] = [
    None,
    0,
    -1,
    3.5,
    True,
    "",
    "x",
    [],
    {},
    [None],
    [[]],
    [0],
    {"a": 1},
    [{"b": []}],
    "\u0000",
    10**25,
]


def places(value: Any, path: Path = ()) -> Iterator[Path]:
    """The path of every value in a document."""
    yield path
    if isinstance(value, dict):
        for key, member in value.items():
            yield from places(member, (*path, key))
    elif isinstance(value, list):
        for index, member in enumerate(value):
            yield from places(member, (*path, index))


def mutated(content: bytes, chance: random.Random) -> tuple[bytes, str]:
    """A damaged copy of a log, and what was done to it."""
    if chance.random() < 0.4:
        return _flipped(content, chance)
    lines = content.split(b"\n")
    whole = [content] if _is_json(content) else lines
    number = chance.randrange(len(whole))
    try:
        value = json.loads(whole[number])
    except ValueError:
        return _flipped(content, chance)
    damaged, what = changed(value, chance)
    whole = [*whole[:number], json.dumps(damaged).encode(), *whole[number + 1 :]]
    return b"\n".join(whole), what


def _is_json(content: bytes) -> bool:
    try:
        json.loads(content)
    except ValueError:
        return False
    return True


def _flipped(content: bytes, chance: random.Random) -> tuple[bytes, str]:
    damaged = bytearray(content)
    at = [chance.randrange(len(damaged)) for _ in range(chance.choice((1, 1, 1, 4)))]
    for position in at:
        damaged[position] ^= 1 << chance.randrange(8)
    if chance.random() < 0.1:
        del damaged[chance.randrange(len(damaged)) :]
        return bytes(damaged), "cut off"
    return bytes(damaged), f"flipped {at}"


def changed(value: Any, chance: random.Random) -> tuple[Any, str]:
    """A document with one field dropped, or one value replaced."""
    value = copy.deepcopy(value)
    path = chance.choice(list(places(value)))
    if not path:
        return chance.choice(_OTHERS), "document replaced"
    holder = value
    for key in path[:-1]:
        holder = holder[key]
    if chance.random() < 0.4:
        del holder[path[-1]]
        return value, f"dropped {path}"
    other = chance.choice(_OTHERS)
    holder[path[-1]] = other
    return value, f"{path} = {other!r}"
