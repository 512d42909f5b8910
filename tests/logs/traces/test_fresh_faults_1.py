"""Faults that a fresh reader of the package found: each gave a wrong number, or an error of Python's own."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from goodgain.errors import InputError
from goodgain.logs.traces import read_traces
from goodgain.logs.traces.conversations.spans import read_nanoseconds
from goodgain.logs.traces.model import Result

from .conftest import by_iteration
from .logs import Call, Story, Turn, docs, openai_chat

_CHAT = openai_chat(Story([Turn([[Call(docs("a", "b"))]])]))


@pytest.mark.parametrize("unit", [1, 10**3, 10**6, 10**9])
@pytest.mark.parametrize("kind", [int, str, float])
def test_the_size_of_a_number_tells_the_unit_of_a_time(unit: int, kind: type) -> None:
    seconds = 1_714_557_600
    assert read_nanoseconds(kind(seconds * unit), "") == seconds * 10**9


def test_a_time_without_a_zone_is_in_utc(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "America/New_York")
    time.tzset()
    try:
        assert read_nanoseconds("2024-05-01T10:00:00.5", "") == read_nanoseconds("2024-05-01T10:00:00.5Z", "")
    finally:
        monkeypatch.undo()
        time.tzset()


def _fail(name: str) -> bool:
    raise ValueError(f"no {name}")


_BAD_OPTIONS: dict[str, tuple[dict[str, Any], str]] = {
    "parse gives text": ({"parse": lambda output: "d1"}, "parse= gave the text 'd1'; give a list"),
    "parse gives an object": ({"parse": lambda output: {"id": "d"}}, "parse= gave an object with id; give a list"),
    "half a character": ({"parse": lambda output: ["\ud800"]}, "parse= gave a result that no table can hold"),
    "a number as id": ({"parse": lambda output: [Result(1, doc_id=5)]}, "parse= gave a result that no table can hold"),  # type: ignore[arg-type]
    "query_id": ({"query_id": lambda trace: "\ud800"}, "the query '.ud800' is not valid Unicode"),
    "tools": ({"tools": 5}, "tools= takes names of search tools"),
    "tools raises": ({"tools": _fail}, r"tools= failed with ValueError \(no search\) for 'search'"),
    "format": ({"format": ["openai_chat"]}, "no trace format is called"),
    "tag": ({"tag": 5}, "tag= takes the name of the system as text"),
}


@pytest.mark.parametrize("what", _BAD_OPTIONS)
def test_an_option_of_a_wrong_type_is_an_error_of_goodgain(what: str, save: Callable[..., Path]) -> None:
    options, message = _BAD_OPTIONS[what]
    with pytest.raises(InputError, match=message):
        read_traces(save(_CHAT), **options)


def test_a_result_of_parse_may_have_keys_that_are_not_text(save: Callable[..., Path]) -> None:
    assert by_iteration(read_traces(save(_CHAT), parse=lambda output: [{1: "x", "id": "d"}])) == [["d"]]
