"""What the tests of deduplication are written in: results, pairs of results, and texts of many scripts."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import narwhals as nw
import polars as pl

from goodgain.schema import RESULTS

_FOLDER = Path(__file__).parent
#: Texts by the language or the purpose, and the words of six scripts (`scripts`) to make texts of.
TEXTS: dict[str, Any] = json.loads((_FOLDER / "texts.json").read_text())
EN, OTHER, LONG = (str(TEXTS[name]) for name in ("EN", "OTHER", "LONG"))

Result = dict[str, object]


class Pair(NamedTuple):
    """Two results of one query, whether they are the same document, and why."""

    same: bool
    reason: str
    first: Result
    second: Result


def result(*, ids: Mapping[str, str] | Iterable[tuple[str, str]] = (), **values: object) -> Result:
    """One result: what is a column of the results table goes there, all else into its fields."""
    columns = {name: value for name, value in values.items() if name in RESULTS.columns}
    fields = {name: value for name, value in values.items() if name not in RESULTS.columns}
    pairs = ids.items() if isinstance(ids, Mapping) else ids
    return columns | {"ids": _pairs(pairs), "fields": _pairs(fields.items())}


def _pairs(pairs: Iterable[tuple[str, object]]) -> list[dict[str, str]]:
    return [{"name": name, "value": str(value)} for name, value in pairs]


def frame(results: Iterable[Result], query_id: str = "q") -> pl.DataFrame:
    """A results frame: one search of ten results an iteration, in the order given."""
    rows = [
        {"query_id": query_id, "iteration": place // 10 + 1, "search": 1, "rank": place % 10 + 1} | row
        for place, row in enumerate(results)
    ]
    return pl.DataFrame(rows, schema_overrides=schema(), schema={name: schema()[name] for name in _columns(rows)})


def _columns(rows: list[Result]) -> list[str]:
    return [name for name in RESULTS.columns if any(name in row for row in rows)]


def schema() -> dict[str, pl.DataType]:
    """The types of the results table in Polars."""
    empty = nw.DataFrame.from_dict({}, schema=nw.Schema(RESULTS.columns), backend="polars")
    return dict(empty.to_polars().schema)


def _read_pair(line: str) -> Pair:
    pair = json.loads(line)
    sides = ({name: fill(value) for name, value in pair[side].items()} for side in ("first", "second"))
    return Pair(pair["same"], pair["reason"], *(result(**side) for side in sides))


def fill(value: Any) -> Any:
    """Return the text that a value such as `@EN` names; any other value is unchanged."""
    return TEXTS[value[1:]] if isinstance(value, str) and value.startswith("@") else value


#: The pairs that people wrote: web pages, files and untyped results, then results of a workplace.
PAIRS = list(map(_read_pair, (_FOLDER / "pairs.jsonl").read_text().splitlines()))
