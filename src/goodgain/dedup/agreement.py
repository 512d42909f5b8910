"""Scores how well the documents found agree with given groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from goodgain.errors import InputError

__all__ = ["Agreement", "score_agreement"]


@dataclass(frozen=True)
class Agreement:
    """Precision, recall and F1 of documents against given groups: over pairs of results, and B-cubed.

    Pairwise: the share of the pairs joined that belong together (precision), and of those that belong together that
    are joined (recall). B-cubed: these shares within the group of each result, averaged over the results. A share of
    nothing is 1.

    Source: Bagga and Baldwin, Algorithms for scoring coreference chains (LREC 1998), for B-cubed.
    """

    precision: float
    recall: float
    f1: float
    bcubed_precision: float
    bcubed_recall: float
    bcubed_f1: float
    results: int


def score_agreement(rows: pl.DataFrame, gold: Sequence[object] | pl.Series) -> Agreement:
    """Compare the `document` of each row with its group in `gold`, within its scope."""
    groups = gold if isinstance(gold, pl.Series) else pl.Series(list(gold), strict=False)
    if len(groups) != rows.height:
        raise InputError(f"{len(groups)} groups for {rows.height} rows of results: give one for each row.")
    counted = rows.select("scope", "document", gold=groups).drop_nulls()
    cells = (
        counted.group_by("scope", "document", "gold")
        .agg(both=pl.len().cast(pl.Float64))
        .with_columns(
            found=pl.col("both").sum().over("scope", "document"), given=pl.col("both").sum().over("scope", "gold")
        )
    )
    joined = _count_pairs(counted.group_by("scope", "document").agg(n=pl.len()))
    related = _count_pairs(counted.group_by("scope", "gold").agg(n=pl.len()))
    right = _count_pairs(cells.select(n="both"))
    pairwise = _add_f1(right / joined if joined else 1.0, right / related if related else 1.0)
    results = counted.height
    means = cells.select(
        precision=(pl.col("both") ** 2 / pl.col("found")).sum(), recall=(pl.col("both") ** 2 / pl.col("given")).sum()
    ).row(0)
    bcubed = _add_f1(*(mean / results if results else 1.0 for mean in means))
    return Agreement(*pairwise, *bcubed, results)


def _count_pairs(sizes: pl.DataFrame) -> float:
    size = pl.col("n").cast(pl.Float64)
    return float(sizes.select((size * (size - 1) / 2).sum()).item())


def _add_f1(precision: float, recall: float) -> tuple[float, float, float]:
    return precision, recall, 2 * precision * recall / (precision + recall) if precision + recall else 0.0
