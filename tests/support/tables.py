"""The oracle's cases in the forms that goodgain takes."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from math import log, log2
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from goodgain import GoodgainNotice
from tests.support.oracle import QrelRow, RunRow

ROOT = Path(__file__).parents[2]
#: Query -> the documents of each search.
Searched = dict[str, list[list[str]]]
SESSIONS = ROOT.parent / "shared" / "data" / "sessions"


def run_frame(rows: list[RunRow]) -> pl.DataFrame:
    """Rows of the oracle as a run frame, column 2 as text."""
    return pl.DataFrame(
        [(row.query_id, str(row.iteration), row.doc_id, row.rank, row.score) for row in rows],
        schema={
            "query_id": pl.String,
            "iteration": pl.String,
            "doc_id": pl.String,
            "rank": pl.Int64,
            "score": pl.Float64,
        },
        orient="row",
    )


def qrels_frame(rows: list[QrelRow]) -> pl.DataFrame:
    """Rows of the oracle as a qrels frame."""
    return pl.DataFrame(
        [(row.query_id, str(row.iteration), row.doc_id, float(row.relevance)) for row in rows],
        schema={"query_id": pl.String, "iteration": pl.String, "doc_id": pl.String, "relevance": pl.Float64},
        orient="row",
    )


def frame_of(searched: Searched) -> pl.DataFrame:
    """The documents of each search as a run, ranked as they stand; an empty search is a row with `-`."""
    rows = [
        (query, i, doc, rank, -float(rank))
        for query, searches in searched.items()
        for i, documents in enumerate(searches, 1)
        for rank, doc in enumerate(documents or ["-"], 1)
    ]
    return pl.DataFrame(rows, schema=["query_id", "iteration", "doc_id", "rank", "score"], orient="row")


def work_out(number: Any) -> Any:
    """The number of a text such as `7/32`, close by; null is null."""
    value = eval(number, {"log": log, "log2": log2}) if isinstance(number, str) else number
    return None if value is None else pytest.approx(value, rel=1e-12, abs=1e-15)


def in_one_search(run: Mapping[str, Mapping[str, float]]) -> pl.DataFrame:
    """{query_id: {doc_id: score}} as a frame that says what a dict cannot: each query searched once, at iteration 1."""
    rows = [(query, 1, doc, float(score)) for query, docs in run.items() for doc, score in docs.items()]
    return pl.DataFrame(rows, schema=["query_id", "iteration", "doc_id", "score"], orient="row")


def write_repeating_run(path: Path, *, queries: int, iterations: int, scattered: bool) -> Path:
    """Write a run as TREC text: queries of 1 to `iterations` iterations with repeats; `scattered` mixes their rows."""
    rows = [
        f"q{query} {i} d{(query * 7 + i * 3 + k) % 30} {k} {9 - k} t\n"
        for query in range(queries)
        for i in range(1, 2 + query % iterations)
        for k in range(1, 6)
    ]
    if scattered:
        rows.sort(key=lambda row: row.split()[1])
    path.write_text("".join(rows))
    return path


@contextmanager
def no_notices() -> Iterator[None]:
    """For cases that are made to be odd: what they are told is not what is tested."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GoodgainNotice)
        yield
