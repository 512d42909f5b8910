"""The oracle's cases in the forms that goodgain takes."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import polars as pl

from goodgain import GoodgainNotice
from tests.support.oracle import QrelRow, RunRow

ROOT = Path(__file__).parents[2]
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


@contextmanager
def no_notices() -> Iterator[None]:
    """For cases that are made to be odd: what they are told is not what is tested."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GoodgainNotice)
        yield
