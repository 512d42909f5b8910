"""What the order of a run rests on, and what its user must know where that is little."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from goodgain.errors import notice
from goodgain.schema import EMPTY_DOC

__all__ = ["put_in_order", "tell_contradictions", "tell_ties"]


def put_in_order(rows: pl.DataFrame) -> pl.DataFrame:
    """Rows of an engine that keeps no order, put into one: ties of rank by doc_id, with a notice."""
    key = ["query_id", "iteration", *(["rank"] if "rank" in rows.columns else [])]
    tied = rows.filter(pl.col("doc_id") != EMPTY_DOC).select(pl.struct(key).is_duplicated().sum()).item()
    if "rank" in rows.columns or "score" not in rows.columns:
        tell_ties(tied, rows.columns)
    return rows.sort(*key, "doc_id")


def tell_ties(results: int, columns: Sequence[str]) -> None:
    """One notice, if any results have their place from their doc_id."""
    if results:
        why = "have ties in rank" if "rank" in columns else "have neither rank nor score"
        notice(f"{results} results {why}, and the frame keeps no order of rows: they are ordered by doc_id")


def tell_contradictions(queries: int) -> None:
    """One notice, if there are queries in which ranks made a ranking that the scores contradict."""
    if queries:
        notice(
            f"ranks contradict scores within an iteration in {queries} quer{'y' if queries == 1 else 'ies'}: "
            "the ranking follows the ranks; if the scores are right, number the ranks by them"
        )
