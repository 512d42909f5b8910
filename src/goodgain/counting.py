"""Run and qrels into the two small tables of which every measure is a function: ledger and pools.

The rows are touched by plain group-bys and joins only, written once for every engine narwhals knows. What they leave is
small, and is finished in Polars.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import narwhals as nw
import polars as pl

from goodgain.engines import carried_to, collected, deferred
from goodgain.schema import EMPTY_DOC, LEDGER, POOLS

__all__ = ["Counts", "count", "finished", "tally", "tally_firsts"]


class Counts(NamedTuple):
    """What one threshold makes of a run and qrels.

    Attributes:
        ledger: one row per (query, iteration) of the run: R, UR, Dup, GR, G, Unjudged; iterations are 1..N.
        pools: one row per query of the qrels: N, GoodPool, GainPool.
        numbering: lowest, is_dense, queries: how many queries begin at which number, with or without gaps after it.
    """

    ledger: pl.DataFrame
    pools: pl.DataFrame
    numbering: pl.DataFrame


def count(run: Any, qrels: Any, *, rels: Sequence[float] = (2,), labels: str | None = None) -> dict[float, Counts]:
    """Count each iteration's results, first occurrences, repeats and good documents.

    Args:
        run: columns query_id, iteration (Int64), doc_id (`-` for an iteration that returned nothing), on any engine.
        qrels: columns query_id, doc_id, relevance, and with `labels="iteration"` iteration (Int64, null for any).
        rels: the thresholds: a document is good if its relevance is at least this.
        labels: None, or `iteration` where the label of the first occurrence's iteration decides.

    Returns:
        threshold -> `Counts`; the run's rows are read once for all thresholds.

    Source: the Retrieved Good Gain guideline, R^i, UR^i, GR^i, G_i.

    >>> run = pl.DataFrame({"query_id": "q", "iteration": [1, 1, 2], "doc_id": ["a", "b", "a"]})
    >>> qrels = pl.DataFrame({"query_id": ["q"], "doc_id": ["a"], "relevance": [3.0]})
    >>> count(run, qrels)[2].ledger.select("R", "UR", "Dup", "GR", "G", "Unjudged").rows()
    [(2, 2, 0, 1, 3.0, 1), (1, 0, 1, 0, 0.0, 0)]
    """
    return finished(tally(run, qrels, rels=rels, labels=labels), qrels, rels=rels, labels=labels)


def tally(run: Any, qrels: Any, *, rels: Sequence[float], labels: str | None) -> pl.DataFrame:
    """What a run's rows come down to, per query and number in the run: the part of `count` that touches the rows.

    Runs that share no query can be tallied one by one; the rows of their tallies, put together, are the tally of all.

    Returns:
        query_id, iteration (as it stands in the run), R, UR, Unjudged, and GR and G with the position of a threshold.
    """
    rows = deferred(nw.from_native(run))
    is_result = nw.col("doc_id") != EMPTY_DOC
    returned = (
        rows.with_columns(is_result.cast(nw.Int64).alias("R")).group_by("query_id", "iteration").agg(nw.col("R").sum())
    )
    firsts = rows.filter(is_result).group_by("query_id", "doc_id").agg(nw.col("iteration").min())
    labelled = _labelled(firsts, carried_to(rows, nw.from_native(qrels)), labels)
    return collected(tally_firsts(returned, labelled, rels=rels))


def tally_firsts(returned: nw.LazyFrame[Any], firsts: nw.LazyFrame[Any], *, rels: Sequence[float]) -> nw.LazyFrame[Any]:
    """The tally, where results and first occurrences are known.

    Args:
        returned: R for each query and number.
        firsts: one row per (query, document): the number of its first occurrence, its relevance (null where unjudged).
        rels: the thresholds.
    """
    label = nw.col("relevance")
    good = [label >= rel for rel in rels]  # a missing label compares as false or null: neither is good
    counts = {
        "UR": nw.lit(1),
        "Unjudged": label.is_null().cast(nw.Int64),
        **{f"GR{k}": nw.when(is_good).then(nw.lit(1)).otherwise(nw.lit(0)) for k, is_good in enumerate(good)},
        **{f"G{k}": nw.when(is_good).then(label).otherwise(nw.lit(0.0)) for k, is_good in enumerate(good)},
    }
    seen = firsts.with_columns(**counts).group_by("query_id", "iteration").agg(*(nw.col(name).sum() for name in counts))
    return returned.join(seen, on=["query_id", "iteration"], how="left")


def finished(tallied: pl.DataFrame, qrels: Any, *, rels: Sequence[float], labels: str | None) -> dict[float, Counts]:
    """Ledger and pools from a tally: numbers made dense, and the pools of the qrels beside them."""
    judgments = collected(nw.from_native(qrels))
    numbered = _dense(tallied)
    numbering = _numbering(numbered)
    pools = _pools(judgments if labels is None else _largest(judgments), rels, numbered)
    return {rel: Counts(_ledger(numbered, k), _pool(pools, k), numbering) for k, rel in enumerate(rels)}


def _labelled(firsts: nw.LazyFrame[Any], qrels: nw.LazyFrame[Any], labels: str | None) -> nw.LazyFrame[Any]:
    """First occurrences with their label, null where there is none."""
    if labels is None:
        return firsts.join(qrels.select("query_id", "doc_id", "relevance"), on=["query_id", "doc_id"], how="left")
    of_iteration = qrels.filter(~nw.col("iteration").is_null())
    of_any = qrels.filter(nw.col("iteration").is_null()).select(
        "query_id", "doc_id", nw.col("relevance").alias("any_relevance")
    )
    return (
        firsts.join(of_iteration, on=["query_id", "doc_id", "iteration"], how="left")
        .join(of_any, on=["query_id", "doc_id"], how="left")
        .with_columns(nw.coalesce("relevance", "any_relevance").alias("relevance"))
    )


def _dense(counted: pl.DataFrame) -> pl.DataFrame:
    """Iterations numbered 1..N per query, in order; `number` keeps what stood in the run."""
    return (
        counted.rename({"iteration": "number"})
        .sort("query_id", "number")
        .with_columns(iteration=pl.int_range(1, pl.len() + 1).over("query_id"))
        .fill_null(0)
    )


def _numbering(numbered: pl.DataFrame) -> pl.DataFrame:
    """How many queries begin at which number, with or without gaps after it."""
    number = pl.col("number")
    return (
        numbered.group_by("query_id")
        .agg(lowest=number.min(), is_dense=number.max() - number.min() + 1 == pl.len())
        .group_by("lowest", "is_dense")
        .agg(queries=pl.len())
    )


def _ledger(numbered: pl.DataFrame, k: int) -> pl.DataFrame:
    columns = {name: pl.col(name) for name in LEDGER.columns}
    columns |= {"GR": pl.col(f"GR{k}"), "G": pl.col(f"G{k}"), "Dup": pl.col("R") - pl.col("UR")}
    floats = {"query_id": pl.String, "G": pl.Float64}
    return numbered.select(column.cast(floats.get(name, pl.Int64)).alias(name) for name, column in columns.items())


def _largest(qrels: pl.DataFrame) -> pl.DataFrame:
    """One row a document, with the largest of its labels."""
    return qrels.group_by("query_id", "doc_id").agg(pl.col("relevance").max())


def _pools(qrels: pl.DataFrame, rels: Sequence[float], numbered: pl.DataFrame) -> pl.DataFrame:
    """Per query of the qrels: N, and the good documents and their gains for each threshold."""
    label = pl.col("relevance")
    iterations = numbered.group_by("query_id").agg(N=pl.len())
    return (
        qrels.group_by("query_id")
        .agg(
            *((label >= rel).sum().alias(f"GoodPool{k}") for k, rel in enumerate(rels)),
            *(label.filter(label >= rel).sum().alias(f"GainPool{k}") for k, rel in enumerate(rels)),
        )
        .join(iterations, on="query_id", how="left")
        .with_columns(pl.col("N").fill_null(0))
        .sort("query_id")
    )


def _pool(pools: pl.DataFrame, k: int) -> pl.DataFrame:
    columns = {name: pl.col(name) for name in POOLS.columns}
    columns |= {"GoodPool": pl.col(f"GoodPool{k}"), "GainPool": pl.col(f"GainPool{k}")}
    types = {"query_id": pl.String, "GainPool": pl.Float64}
    return pools.select(column.cast(types.get(name, pl.Int64)).alias(name) for name, column in columns.items())
