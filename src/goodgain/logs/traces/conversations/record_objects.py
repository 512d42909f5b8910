"""Walks the records of a log: finds objects and lists in them, each with its place in the log.

Functions with a parameter `at` raise an InputError that gives the place of a value of the wrong type.
"""

from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from typing import Any, TypeVar

import msgspec

from goodgain.errors import InputError
from goodgain.logs.dedup.document_types import snake_case
from goodgain.logs.traces.expected_values import (
    OF_METADATA,
    expect_id,
    expect_list,
    expect_object,
    format_place,
    objects_in,
    unexpected_value,
)
from goodgain.logs.traces.input.sources import Source
from goodgain.options import spell

T = TypeVar("T")
#: An object and its place in the log.
Placed = tuple[dict[str, Any], str]

#: Stands for a missing field: None is a possible value of a field.
ABSENT = object()


def read_records(source: Source) -> Iterator[tuple[Any, str]]:
    """Yield each record of a file with its place in the log. A file holds one list of records, or one record per line."""
    for value, at in source.documents():
        if isinstance(value, list):
            yield from ((member, f"{at}/{index}") for index, member in enumerate(value))
        else:
            yield value, at


def walk_objects(members: Any, at: str) -> Iterator[Placed]:
    """Yield the objects in a list, each with its place in the log. Null is an empty list."""
    for index, member in enumerate(expect_list(members, at)):
        place = f"{at}/{index}"
        yield expect_object(member, place), place


def walk_list(record: dict[str, Any], key: str, at: str) -> Iterator[Placed]:
    if not isinstance(record.get(key), list):
        raise unexpected_value(f"{at}/{key}", f"a list of {key}", record.get(key))
    return walk_objects(record[key], f"{at}/{key}")


def sort_numbered(members: Iterable[Placed], key: str) -> Iterator[Placed]:
    """Sort consecutive objects by the number under `key`, unless a number repeats. Objects without a number stay in place."""
    for is_numbered, group in groupby(members, lambda member: type(member[0].get(key)) is int):
        row = list(group)
        numbers = [member.get(key) for member, _ in row]
        if is_numbered and len({*numbers}) == len(row):
            row.sort(key=lambda member: member[0][key])
        yield from row


def any_object(members: Any, test: Callable[[dict[str, Any]], bool]) -> bool:
    return any(map(test, objects_in(members)))


def convert_record(record: Any, kind: type[T], at: str) -> T:
    """Convert a record to the msgspec struct `kind`. Ignore fields that the struct does not have."""
    try:
        return msgspec.convert(record, kind)
    except msgspec.ValidationError as error:
        raise InputError(
            f"{format_place(at)}: {error}; correct the value, or leave out such traces with {spell('errors', 'skip')}"
        ) from None


def find_list(value: Any, *paths: str) -> tuple[list[Any] | None, str]:
    if isinstance(value, list):
        return value, ""
    for path in paths:
        members = follow_path(value, f"/{path}")
        if isinstance(members, list):
            return members, f"/{path}"
    return None, ""


def find_items(value: Any, at: str, paths: tuple[str, ...], expected: str) -> Iterator[Placed]:
    members, path = find_list(value, *paths)
    if not members:
        raise unexpected_value(f"{at}{path}", expected, value)
    yield from walk_objects(members, f"{at}{path}")


def text_or_none(value: Any) -> str | None:
    """Return the value if it is a text that is not empty, else None."""
    return value if isinstance(value, str) and value else None


def get_either(record: dict[str, Any], camel: str) -> Any:
    """Return the value of the key `camel`, else of the same key in snake_case. Return None if both are missing."""
    if camel in record:
        return record[camel]
    return record.get(snake_case(camel))


def find_query_id(metadata: Any, at: str) -> str | None:
    if not isinstance(metadata, dict):
        return None
    ids = (expect_id(metadata.get(key), f"{at}/{key}") for key in OF_METADATA)
    return next(filter(None, ids), None)


def follow_path(record: Any, path: str) -> Any:
    """Return the value at a JSON pointer (`/a/b`) or a dotted path (`a.b`). Return ABSENT for a missing value."""
    keys = path.removeprefix("/").split("/") if path.startswith("/") else path.split(".")
    for key in keys:
        key = key.replace("~1", "/").replace("~0", "~")
        if isinstance(record, dict) and key in record:
            record = record[key]
        elif isinstance(record, list) and key.isdecimal() and int(key) < len(record):
            record = record[int(key)]
        else:
            return ABSENT
    return record
