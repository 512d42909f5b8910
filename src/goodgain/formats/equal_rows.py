"""Refuses a run that was appended to itself."""

import math

import polars as pl

from goodgain.errors import InputError, count_of

_PLACE = ("query_id", "iteration")


def select_identity(rows: pl.DataFrame) -> pl.DataFrame | None:
    """Return the columns by which `check_copies` compares rows. Scores replace missing ranks.

    Return None for rows without iterations: if the iterations were lost, two equal searches look like copies.
    """
    if "iteration" not in rows.columns:
        return None
    order = "rank" if "rank" in rows.columns else "score"
    return rows.select(name for name in (*_PLACE, "doc_id", order) if name in rows.columns)


def hash_identity(rows: pl.DataFrame) -> pl.DataFrame:
    """Hash the columns of `select_identity` into two columns, which need 16 bytes for each row."""
    return rows.select(query_id=pl.struct(_PLACE).hash(), doc_id=pl.struct(pl.exclude(_PLACE)).hash())


def check_copies(rows: pl.DataFrame, label: str) -> None:
    """Raise `InputError` if a run consists of copies of the same rows in the same order, as after `cat a.run a.run`.

    Copies within one iteration are valid: an agent can make the same call several times in one step. `rows` is a result of
    `select_identity` or `hash_identity`.
    """
    length = _find_period(rows)
    if length is None:
        return
    places = rows.head(length).select(name for name in _PLACE if name in rows.columns)
    if places.n_unique() > 1:
        copies = rows.height // length
        remedy = f"Keep one copy: the first {count_of(length, 'row')}."
        raise InputError(
            f"{label}: the run has {copies:,} copies of the same {length:,} rows in the same order. {remedy}"
        )


def _find_period(rows: pl.DataFrame) -> int | None:
    """Return the length of the smallest part that is repeated to make all rows; None if no part is repeated."""
    height = rows.height
    small = [number for number in range(1, math.isqrt(height) + 1) if height % number == 0]
    lengths = sorted({*small, *(height // number for number in small)} - {height})
    for length in lengths:
        if rows.row(length) == rows.row(0) and rows[length:].equals(rows[:-length]):
            return length
    return None
