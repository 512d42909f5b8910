"""Cases of calls in Python: what is given to a function of goodgain, and the error, notices, frames and numbers that come of it.

`calls` lists the functions; each gets what `given` has, built so:

| in JSON | in Python |
|---|---|
| `{"example": "two_agents/late.run"}` | the path of an example |
| `{"file": "a.csv", "text": "..."}` | the path of a new file |
| `{"columns": [...], "rows": [...]}`, `{"frame": {...}}` | a data frame |
| `{"searches": {"q": [["a", "b"], []]}}` | a run: the results of each search of a query; null is a query that never searched |
| `{"each": "q{k}", "times": 3, "of": ...}`, `{"merge": [...]}` | a dict |
| `{"number": "nan"}` | a float |
| `{"read": ..., "gaps": "empty"}` | a run that was read with options |

`shared` has values that several cases give, and `*` arguments by place. `error` is a pattern. `notices` are patterns of all notices
except the usual ones, with `only` of all and in order, or "any"; `told`, `not_told`, `notes` and `notes_lack` are patterns of some.
`gives` has what the result (`""`) or a part of it is: a frame by its columns, of the rows in `where`; a text by what it `has` or
`lacks`; the texts `with` a word by patterns. A report is its JSON. `lines` are checked, and `outcomes` has what comes of them.
"""

from __future__ import annotations

import json
import math
import re
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import goodgain as gg
from goodgain.analysis.comparing.requirements import check_requirements
from goodgain.schema import EMPTY_DOC
from tests.support.tables import ROOT

EXAMPLES = ROOT / "qrels_examples"
#: Notices that pyproject.toml leaves out, because small examples have them.
USUAL = re.compile(
    "thresholds differ|coverage is low|is 0, the best value|is 100, the worst|queries without results count"
)


def read_call_cases(folder: Path) -> list[Any]:
    """The cases of all `calls.json` in a folder and those below it, each of its calls apart."""
    cases = [
        (call, case)
        for path in sorted(folder.rglob("calls.json"))
        for case in _read_file(path)
        for call in case["calls"]
    ]
    return [pytest.param(call, case, id=f"{case['rule']} ({call})") for call, case in cases]


def _read_file(path: Path) -> list[dict[str, Any]]:
    """The cases of a file; a word such as `$run` stands for the value that `shared` has for it."""
    text = path.read_text("utf-8")
    for name, value in json.loads(text)["shared"].items():
        text = text.replace(f'"${name}"', json.dumps(value))
    cases: list[dict[str, Any]] = json.loads(text)["cases"]
    return cases


def check_call_case(call: str, case: dict[str, Any], folder: Path) -> None:
    raised, result, outcomes = None, None, []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", gg.GoodgainNotice)
        try:
            arguments = build(case["given"], folder)
            if call == "report":
                arguments |= {"path": folder / "report.json"}
            result = _CALLS.get(call, getattr(gg, call, None))(*arguments.pop("*", []), **arguments)
            if "lines" in case:
                outcomes = check_requirements(result, case["lines"], **case.get("check", {}))
        except gg.GoodgainError as error:
            raised = str(error)

    if "error" in case:
        assert re.search(case["error"], raised or ""), (raised, result)
        return
    assert raised is None

    notices = [str(warning.message) for warning in caught if warning.category is gg.GoodgainNotice]
    for pattern in case.get("told", []):
        assert sum(bool(re.search(pattern, text)) for text in notices) == 1, (pattern, notices)
    assert not [text for text in notices if any(re.search(pattern, text) for pattern in case.get("not_told", []))]

    patterns = case.get("notices", "any" if {"told", "not_told"} & {*case} else [])
    if case.get("only"):
        assert all(re.search(pattern, text) for pattern, text in zip(patterns, notices, strict=True)), notices
    elif patterns != "any":
        named = [text for text in notices if any(re.search(pattern, text) for pattern in patterns)]
        assert len(named) == len(patterns), notices
        assert all(any(re.search(pattern, text) for text in named) for pattern in patterns), named
        assert not [text for text in notices if text not in named and not USUAL.search(text)]

    for pattern in case.get("notes", []):
        assert any(re.search(pattern, note) for note in result.notes), (pattern, result.notes)
    assert not [note for note in getattr(result, "notes", ()) for p in case.get("notes_lack", []) if re.search(p, note)]

    for path, wanted in case.get("gives", {}).items():
        check_value(_find(result, path), wanted, path)
    for name, wanted in case.get("outcomes", {}).items():
        check_value([str(outcome) if name == "text" else getattr(outcome, name) for outcome in outcomes], wanted, name)


def build(value: Any, folder: Path) -> Any:
    """Return what a value of a case stands for."""
    if isinstance(value, list):
        return [build(member, folder) for member in value]
    match value:
        case {"example": name}:
            return EXAMPLES / name
        case {"file": name, "text": text}:
            (folder / name).write_text(text, "utf-8")
            return folder / name
        case {"columns": names, "rows": rows}:
            return pl.DataFrame(rows, schema=names, orient="row")
        case {"frame": columns}:
            return pl.DataFrame(columns)
        case {"searches": queries}:
            return make_run(build(queries, folder))
        case {"each": name, "times": times, "of": member}:
            return {name.format(k=k): build(member, folder) for k in range(1, times + 1)}
        case {"merge": parts}:
            return {name: member for part in parts for name, member in build(part, folder).items()}
        case {"number": text}:
            return float(text)
        case {"read": run, **options}:
            return gg.read_run(build(run, folder), **build(options, folder))
        case dict():
            return {name: build(member, folder) for name, member in value.items()}
    return value


def make_run(queries: dict[str, list[list[str]] | None]) -> pl.DataFrame:
    rows = [
        (query, iteration, doc, rank)
        for query, searches in queries.items()
        for iteration, docs in ([(None, [])] if searches is None else enumerate(searches, 1))
        for rank, doc in enumerate(docs or [EMPTY_DOC], 1)
    ]
    types = {"query_id": pl.String, "iteration": pl.Int64, "doc_id": pl.String, "rank": pl.Int64}
    return pl.DataFrame(rows, schema=types, orient="row")


def _find(value: Any, path: str) -> Any:
    """Follow a path such as `signature/rel`; `to_text:markdown` and `to_text:query=dam` are calls."""
    parts = [part for part in path.split("/") if part]
    for k, part in enumerate(parts):
        if part == "*":
            return [_find(member, "/".join(parts[k + 1 :])) for member in value]
        name, _, argument = part.partition(":")
        key: Any = int(part) if isinstance(value, (list, tuple)) else part
        value = value[key] if isinstance(value, (dict, list, tuple)) else getattr(value, name)
        if argument:
            value = value(**dict([argument.split("=")])) if "=" in argument else value(argument)
    return value


def check_value(result: Any, wanted: Any, name: str) -> None:
    """Compare numbers closely, and all else exactly; a text in place of a number is a sum such as `7/32`."""
    if isinstance(result, pl.DataFrame) and isinstance(wanted, list):
        for rows_wanted in wanted:
            check_value(result, rows_wanted, name)
        return

    if isinstance(result, pl.DataFrame):
        wanted = dict(wanted)
        rows = result.filter(**wanted.pop("where", {}))
        result = {column: rows.get_column(column).to_list() for column in wanted}

    if isinstance(wanted, dict) and {*wanted} <= {"has", "lacks"}:
        assert all(part in str(result) for part in wanted.get("has", [])), (name, result)
        text = result if isinstance(result, dict) else str(result)
        assert not [part for part in wanted.get("lacks", []) if part in text], (name, result)
    elif isinstance(wanted, dict) and "match" in wanted:
        texts = [text for text in result if wanted["with"] in text]
        assert all(re.search(p, text) for p, text in zip(wanted["match"], texts, strict=True)), (name, texts)
    elif isinstance(wanted, dict) and isinstance(result, dict):
        assert result.keys() == wanted.keys(), name
        for key, value in wanted.items():
            check_value(result[key], value, f"{name}: {key}")
    elif isinstance(wanted, list) and isinstance(result, (list, tuple)):
        assert len(result) == len(wanted), (name, result)
        for member, value in zip(result, wanted, strict=True):
            check_value(member, value, name)
    elif isinstance(result, float) and wanted is not None:
        number = math.prod([float(part) ** (-1) ** (k > 0) for k, part in enumerate(str(wanted).split("/"))])
        assert result == pytest.approx(number, rel=1e-9, abs=1e-12), (name, result)
    else:
        assert result == wanted, (name, result)


def _score_systems(**options: Any) -> dict[str, gg.Scores]:
    """Score each system by itself, as `goodgain evaluate --require` does."""
    systems = options.pop("systems")
    return {name: gg.evaluate(run=run, **options) for name, run in systems.items()}


def _read_report(*args: Any, **options: Any) -> Any:
    return json.loads(gg.report(*args, **options).read_text("utf-8"))


_CALLS: dict[str, Callable[..., Any]] = {"evaluate each": _score_systems, "report": _read_report}
