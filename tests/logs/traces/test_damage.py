"""Damaged logs: a clear error, a notice, or a right result; never another exception, a hang, or silence."""

from __future__ import annotations

import copy
import gzip
import json
import random
import warnings
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from goodgain.errors import GoodgainNotice, InputError
from goodgain.logs.traces import read_traces
from tests.support.counts import how_many, some_of

from .conftest import STEPS
from .expected import EXPECTED
from .logs import WRITERS, conversation
from .mutations import mutated, places

FIXTURES = Path(__file__).parent / "fixtures"

#: How many damaged logs of each format are read: 200 in `make test-all`.
COUNT = how_many(10, full=200)


def _logs(name: str) -> list[tuple[str, bytes]]:
    """The logs of a format: the story, and the fixtures."""
    writer, file_name = WRITERS[name]
    logs = [(file_name, writer(conversation()).encode())]
    for path in (FIXTURES / name).iterdir():
        content = path.read_bytes()
        logs.append((path.name.removesuffix(".gz"), gzip.decompress(content) if path.suffix == ".gz" else content))
    return logs


def _read(path: Path, **options: Any) -> tuple[pl.DataFrame | None, list[str]]:
    """The results of a log, or None where it is an error; and what was said."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            results = read_traces(path, **STEPS | options)
        except InputError as error:
            return None, [str(error)]
    assert all(warning.category is GoodgainNotice for warning in caught)
    return results, [str(warning.message) for warning in caught]


@pytest.mark.parametrize("name", some_of(WRITERS, every=3))
def test_damaged_logs_are_read_or_are_an_error_that_names_the_file(name: str, tmp_path: Path) -> None:
    chance = random.Random(name)
    logs = _logs(name)
    outcomes = {"read": 0, "error": 0}

    for _ in range(COUNT):
        file_name, content = chance.choice(logs)
        damaged, what = mutated(content, chance)
        path = tmp_path / file_name
        path.write_bytes(damaged)
        how = chance.choice(({}, {"format": name}, {"errors": "skip"}, {"unrecorded": "empty", "turns": "all"}))
        results, said = _read(path, **how)
        outcomes["read" if results is not None else "error"] += 1
        if results is None:
            assert str(path) in said[0], what
            assert "Traceback" not in said[0] and len(said[0]) < 2000, what

    assert all(outcomes.values()), "damage of both kinds is tried"


def _shape(results: pl.DataFrame) -> list[tuple[Any, ...]]:
    return results.select("iteration", "search", "rank").rows()


#: Fields whose loss no reader can notice, since logs need not have them.
_OPTIONAL = {"model", "metadata", "trace_metadata", "mlflow.trace.session", "group_id"}


@pytest.mark.slow
@pytest.mark.parametrize("name", some_of(WRITERS, every=3))
def test_no_field_is_lost_in_silence(name: str, tmp_path: Path) -> None:
    """Each field of the story, dropped alone: an error, a notice, or the same searches with the same results."""
    writer, file_name = WRITERS[name]
    path = tmp_path / file_name
    text = writer(conversation())
    path.write_text(text)
    whole, _ = _read(path, format=name)
    assert whole is not None
    lines = text.strip().split("\n") if file_name.endswith(".jsonl") else [text]

    for number, line in enumerate(lines):
        value = json.loads(line)
        for place in places(value):
            if not place or isinstance(place[-1], int) or place[-1] in _OPTIONAL:
                continue  # a whole message or result that is missing was never there
            damaged = copy.deepcopy(value)
            holder = damaged
            for key in place[:-1]:
                holder = holder[key]
            del holder[place[-1]]
            path.write_text("\n".join([*lines[:number], json.dumps(damaged), *lines[number + 1 :]]))
            results, said = _read(path, format=name)
            assert results is None or said or _shape(results) == _shape(whole), place


@pytest.mark.parametrize("name", some_of([name for name in EXPECTED if not name.endswith((".gz", ".eval"))], every=3))
def test_a_log_cut_off_anywhere_is_an_error_or_what_stands_before_the_cut(name: str, tmp_path: Path) -> None:
    content = (FIXTURES / name).read_bytes()
    path = tmp_path / Path(name).name
    chance = random.Random(name)
    for _ in range(15):
        path.write_bytes(content[: chance.randrange(1, len(content) - 1)])
        results, said = _read(path, format=Path(name).parts[0])
        assert results is not None or str(path) in said[0]
        if not name.endswith((".txt", ".jsonl")):
            assert results is None, "JSON that is cut off is no JSON"
