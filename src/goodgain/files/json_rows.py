"""Reads JSON Lines, and JSON arrays of objects, into columns."""

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import NoneType
from typing import Any

import msgspec
import polars as pl

from goodgain.errors import InputError
from goodgain.files.bad_rows import BadLines, FindColumns, ReadTable, TextLines, number_lines, quote
from goodgain.files.json_text import NotJSONError, loads_exactly
from goodgain.files.opening import Content
from goodgain.options import spell
from goodgain.schema import IDS

#: Objects held at a time: with more, the garbage collector takes longer than reading.
_BLOCK = 5_000


def read_json_lines(
    content: Content,
    path: Path,
    types: Mapping[str, Any],
    find: FindColumns,
    *,
    required: Sequence[str] = (),
    errors: str | None = None,
    paths: Sequence[str] | None = None,
) -> ReadTable:
    """Read the columns of JSON Lines, or of a JSON array of objects. Errors count each object of an array as a line.

    Types are not inferred: inference could turn the number 7 in a column of text ids into null. `paths` are columns inside
    nested objects and lists, such as `evidence.url`. With `paths`, each element of a list becomes a row. The arguments
    `types`, `find`, `required` and `errors` are as in `read_table`.
    """
    content, label = put_on_lines(content, path)
    bad = BadLines(label, content, errors)
    rows = ObjectRows(types, bad.refuse)
    names: dict[str, None] = {}
    our_names_of: dict[tuple[str, ...], Mapping[str, str]] = {}  # keys of an object -> what `find` returns
    for number, value in iterate_objects(content, rows.refuse):
        for inner_path in paths or ():
            inner_value = _walk(value, inner_path.split("."))
            if inner_value is not None:
                value[inner_path] = inner_value
        names.update(dict.fromkeys(value))
        keys = tuple(value)
        if keys not in our_names_of:
            our_names_of[keys] = find(keys)

        row = {our_name: value[name] for name, our_name in our_names_of[keys].items()}
        missing = [name for name in required if name not in row]
        if missing:
            rows.refuse(number, _describe_missing(missing, value, row))
        elif paths is None:
            rows.add(number, row)
        else:
            _add_elements(row, number, rows)
    frame, lines = rows.to_frame()
    bad.report()
    return ReadTable(frame, TextLines(label, content, lines), [*names])


def _describe_missing(missing: Sequence[str], value: Mapping[str, Any], row: Mapping[str, Any]) -> str:
    remedy = f"it has {quote(', '.join(value))}: name its columns with {spell('columns')}"
    if not row and "doc_id" in missing:
        remedy += "; if it is the log of an agent, run goodgain convert first"
    return f"lacks {', '.join(missing)} ({remedy})"


def _add_elements(row: Mapping[str, Any], number: int, rows: "ObjectRows") -> None:
    """Add a row for each element of the lists in `row`, which must have the same length."""
    lists = {name: value for name, value in row.items() if isinstance(value, list)}
    if not lists:
        rows.add(number, row)
    elif len({*map(len, lists.values())}) > 1 or not all(lists.values()):
        rows.refuse(number, f"has an empty list, or lists of different lengths, in {', '.join(lists)}")
    else:
        for elements in zip(*lists.values(), strict=True):
            values = [int(value) if isinstance(value, bool) else value for value in elements]
            rows.add(number, {**row, **dict(zip(lists, values, strict=True))})


def _walk(value: Any, keys: Sequence[str]) -> Any:
    """Return the value at the path `keys`. A list on the path gives a value for each element. A missing path gives None.

    >>> _walk({"facts": [["Oslo", 0], ["Bergen", 2]]}, ["facts", "0"]), _walk({"a": [{"url": "x"}]}, ["a", "url"])
    (['Oslo', 'Bergen'], ['x'])
    """
    if not keys:
        return value
    if isinstance(value, dict):
        return _walk(value.get(keys[0]), keys[1:])
    if not isinstance(value, list):
        return None
    if keys[0].isdigit() and not any(isinstance(element, (list, dict)) for element in value):
        return value[int(keys[0])] if int(keys[0]) < len(value) else None
    return [_walk(element, keys) for element in value]


def put_on_lines(content: Content, path: Path) -> tuple[Content, str]:
    """Put each element of a JSON array on its own line; leave other text as it is. Return the text, and a label for errors."""
    if not content.data.lstrip().startswith(b"["):
        return content, str(path)
    try:
        elements = msgspec.json.decode(content.data, type=list[msgspec.Raw])
    except (msgspec.DecodeError, RecursionError) as error:
        raise InputError(f"{path}: begins like a JSON array and cannot be read ({error}); write it again") from None
    lines = b"\n".join(b" ".join(bytes(element).splitlines()) for element in elements)
    return content._replace(data=lines), f"{path}, its objects as lines"


def iterate_objects(content: Content, refuse: Callable[[int, str], None]) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the line number and the object of each line. For a line that is not an object, call `refuse(number, fault)`."""
    for number, line in number_lines(content):
        try:
            value = loads_exactly(line)
        except NotJSONError as error:
            refuse(number, error.fault)
        else:
            if isinstance(value, dict):
                yield number, value
            else:
                refuse(number, "is not a JSON object")


class ObjectRows:
    """Collects JSON objects into columns of Polars types.

    `refuse` is called with the number and fault of each bad object. The object is left out unless `refuse` raises an error.
    """

    def __init__(self, types: Mapping[str, Any], refuse: Callable[[int, str], None]) -> None:
        self._types = dict(types)
        self._refuse = refuse
        # The objects of the current block, and their numbers.
        self._objects: list[Mapping[str, Any]] = []
        self._numbers: list[int] = []
        # The rows of closed blocks, their numbers, and the columns that at least one object has.
        self._frames: list[pl.DataFrame] = []
        self._row_numbers: list[int] = []
        self._present: set[str] = set()

    def add(self, number: int, value: Mapping[str, Any]) -> None:
        """Add an object from line or row `number` of the source. Several objects may have the same number."""
        self._objects.append(value)
        self._numbers.append(number)
        if len(self._objects) >= _BLOCK:
            self._close_block()

    def refuse(self, number: int, fault: str) -> None:
        """Report a bad object that was not added. Objects added earlier are checked first, so that faults are reported in order."""
        self._close_block()
        self._refuse(number, fault)

    def _close_block(self) -> None:
        """Turn the objects of the current block into rows. Report the bad ones, in order, and leave them out."""
        faults: dict[int, str] = {}  # place in the block -> fault
        columns = {}
        for name, dtype in self._types.items():
            values = [value.get(name) for value in self._objects]
            columns[name] = _read_values(values, name, dtype, faults)
            if any(name in value for value in self._objects):
                self._present.add(name)

        frame = pl.DataFrame(columns, schema=self._types)
        if faults:
            for place in sorted(faults):
                self._refuse(self._numbers[place], faults[place])
            good = [place for place in range(len(frame)) if place not in faults]
            frame = frame[good]
            self._numbers = [self._numbers[place] for place in good]
        self._frames.append(frame)
        self._row_numbers += self._numbers
        self._objects = []
        self._numbers = []

    def to_frame(self) -> tuple[pl.DataFrame, list[int]]:
        """Return a frame with the columns that at least one object has, and a list with the object number of each row."""
        self._close_block()
        rows = pl.concat(self._frames, rechunk=True)
        return rows.select(name for name in self._types if name in self._present), self._row_numbers


def _read_values(values: list[Any], name: str, dtype: Any, faults: dict[int, str]) -> list[Any]:
    """Convert the values of a column. A value of a wrong type becomes null, with its position and fault in `faults`."""
    kinds = {*map(type, values)} - {NoneType}
    if kinds <= {float if dtype == pl.Float64 else str} and dtype in (pl.Float64, pl.String):
        return values
    if dtype == pl.String and kinds <= {str, int}:
        return [None if value is None else str(value) for value in values]

    converted = []
    for place, value in enumerate(values):
        try:
            converted.append(None if value is None else _read_value(value, name, dtype))
        except ValueError as error:
            faults.setdefault(place, str(error))
            converted.append(None)
    return converted


def _read_value(value: Any, name: str, dtype: Any) -> Any:
    """Return a value as the type of its column. Raise a ValueError that describes a value of another type. True is not a number."""
    if dtype == pl.String:
        return _read_text(value, name)
    if isinstance(dtype, pl.List):  # pairs of name and value; in JSON they are an object
        if not isinstance(value, dict):
            raise ValueError(f"has {_show(value)} in {name} instead of an object")
        return [{"name": key, "value": str(text)} for key, text in value.items()]
    if dtype == pl.Int64:
        if not _is_whole(value):
            raise ValueError(f"has the {name} {_show(value)}, which is not a whole number")
        if not -(2**63) <= value < 2**63:
            raise ValueError(f"has the {name} {_show(value)}, which is too large")
        return value
    if not _is_whole(value) and not isinstance(value, float):
        raise ValueError(f"has the {name} {_show(value)}, which is not a number")
    try:
        return float(value)
    except OverflowError:
        raise ValueError(f"has a {name} too large for a float") from None


def _read_text(value: Any, name: str) -> str | None:
    """Return a text or number as text, and NaN as None. For ids, only texts and whole numbers are allowed."""
    if isinstance(value, str) or _is_whole(value):
        return str(value)
    if name == "iteration" and isinstance(value, float) and value.is_integer():
        return str(int(value))  # pandas writes floats if a value is missing
    if name in IDS:
        raise ValueError(f"has {_show(value)} in {name}, which is neither text nor a whole number")
    if not isinstance(value, float):
        raise ValueError(f"has {_show(value)} in {name}, which is neither text nor a number")
    return None if math.isnan(value) else str(value)


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _show(value: Any) -> str:
    return quote(json.dumps(value))
