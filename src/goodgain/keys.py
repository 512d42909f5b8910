"""How rows of one document are known: by its ids, or in Polars by a number made of them, which is sooner grouped."""

from __future__ import annotations

from typing import Any, NamedTuple

import narwhals as nw
import polars as pl

from goodgain.schema import EMPTY_DOC

__all__ = ["BY_IDS", "BY_NUMBER", "Key", "Numbered", "blocks", "numbered_rows"]


class Key(NamedTuple):
    """What rows of one document of a query have in common.

    Attributes:
        columns: those that are equal.
        carried: what else is kept of the rows of a document.
        clash: where two documents have met in one key; None where that cannot be.
    """

    columns: list[str]
    carried: list[nw.Expr]
    clash: nw.Expr | None


BY_IDS = Key(["query_id", "doc_id"], [], None)
BY_NUMBER = Key(
    ["key"],
    [nw.col("query_id").min(), nw.col("check").min(), nw.col("check").max().alias("other_check")],
    (nw.col("check") != nw.col("other_check")) | (nw.col("check") != nw.col("judged_check")).fill_null(False),
)


class Numbered(NamedTuple):
    """Run and qrels with numbers in place of ids.

    Attributes:
        run: query_id (a number), iteration, is_result, key and check: two hashes of query and document, by different
            seeds. Where two documents have one key, their checks differ.
        returned: query_id, iteration, R.
        qrels: key, judged_check, relevance.
        query_ids: number of a query -> its id.
    """

    run: nw.LazyFrame[Any]
    returned: nw.LazyFrame[Any]
    qrels: nw.LazyFrame[Any]
    query_ids: pl.Series


def blocks(values: pl.Series) -> tuple[pl.Series, pl.Series]:
    """A number from 0 for each block of equal values that stand together, row by row; and the value of each block."""
    starts = (values != values.shift(1)).fill_null(True)
    return starts.cast(pl.UInt32).cum_sum() - 1, values.filter(starts)


def numbered_rows(run: pl.DataFrame, qrels: pl.DataFrame) -> Numbered | None:
    """Rows with numbers in place of ids, if the rows of each query stand together, as in nearly every file."""
    numbers, query_ids = blocks(run.get_column("query_id"))
    if not query_ids.is_unique().all():
        return None
    key, check = (pl.col("query_id").hash(seed) ^ pl.col("doc_id").hash(seed + 1) for seed in (1, 3))
    rows = run.select(
        "iteration",
        query_id=numbers,
        key=key,
        check=check,
        is_result=pl.col("doc_id") != EMPTY_DOC,
    )
    judgments = qrels.select("relevance", key=key, judged_check=check)
    returned = _returned(rows)
    run_rows, counts, labels = (nw.from_native(frame.lazy()) for frame in (rows, returned, judgments))
    return Numbered(run_rows, counts, labels, query_ids)


def _returned(rows: pl.DataFrame) -> pl.DataFrame:
    """Results of each (query, iteration), from the blocks of its rows, which are few."""
    so_far = rows.get_column("is_result").cast(pl.Int64).cum_sum()
    same = [rows.get_column(name) == rows.get_column(name).shift(1) for name in ("query_id", "iteration")]
    starts = (~(same[0] & same[1])).fill_null(True).arg_true()
    before = so_far.gather(starts) - rows.get_column("is_result").gather(starts).cast(pl.Int64)
    blocks = rows.select(pl.col("query_id", "iteration").gather(starts))
    after = before.shift(-1).fill_null(so_far.max() or 0)
    return blocks.with_columns(R=after - before).group_by("query_id", "iteration").agg(pl.col("R").sum())
