"""What the tests of traces share: a story written to a file, and a results frame as lists of documents."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from goodgain.logs.traces import read_traces

from .logs import WRITERS, Call, Story, Turn

#: What BrowseComp-Plus runs are always read with here, so that its notice is tested once and for itself.
STEPS = {"iteration": "step"}


@pytest.fixture(params=WRITERS)
def form(request: pytest.FixtureRequest) -> str:
    """Each format in turn."""
    return str(request.param)


@pytest.fixture
def written(tmp_path: Path) -> Callable[[str, Story], Path]:
    """Writes a story in a format, and gives the file's path."""

    def write(name: str, story: Story) -> Path:
        writer, file_name = WRITERS[name]
        path = tmp_path / file_name
        path.write_text(writer(story))
        return path

    return write


@pytest.fixture
def read(written: Callable[[str, Story], Path]) -> Callable[..., pl.DataFrame]:
    """Writes a story, or the steps of a one-turn story, and reads it back."""

    def write_and_read(name: str, story: Story | list[list[Call]], **options: Any) -> pl.DataFrame:
        story = story if isinstance(story, Story) else Story([Turn(story)])
        return read_traces(written(name, story), **STEPS | options)

    return write_and_read


@pytest.fixture
def save(tmp_path: Path) -> Callable[..., Path]:
    """Writes text as it is, a list as JSON Lines if the name says so, or any other value as JSON, and gives the file's path."""

    def write(value: Any, name: str = "log.json") -> Path:
        if isinstance(value, list) and name.endswith(".jsonl"):
            value = "\n".join(map(json.dumps, value))
        path = tmp_path / name
        path.write_text(value if isinstance(value, str) else json.dumps(value))
        return path

    return write


def by_iteration(results: pl.DataFrame, query_id: str | None = None) -> list[list[str | None]]:
    """The documents of each iteration of a query, in order; [] where it found nothing. No list at all: no search."""
    if query_id is not None:
        results = results.filter(pl.col("query_id") == query_id)
    assert results["query_id"].n_unique() == 1
    found: dict[int, list[str | None]] = {}
    for row in results.filter(pl.col("iteration") > 0).iter_rows(named=True):
        documents = found.setdefault(row["iteration"], [])
        if row["rank"] > 0:
            documents.append(row["doc_id"] or row["url"] or row["title"])
    assert list(found) == list(range(1, len(found) + 1)), "iterations are numbered 1..N in order"
    return list(found.values())
