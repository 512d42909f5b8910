"""Makes two small tables from a run and qrels: ledger and pools. Every good-gain measure is a function of these tables.

The ledger has one row per (query, iteration). The pools have one row per judged query.
"""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from goodgain.ranking.first_occurrences_and_flattening import FirstOccurrences, find_first_occurrences
from goodgain.ranking.ranking_table import Judgments, number_judgments
from goodgain.schema import LEDGER, POOLS, Table

#: The smallest exponent of a unit (`find_unit`). Much smaller units would underflow to 0.
_LEAST_EXPONENT = -1000


class Counts(NamedTuple):
    """Ledger and pools of a run and qrels at one threshold."""

    ledger: pl.DataFrame  # a row per (query, iteration 1..N) of the run, sorted: R, UR, Dup, GR, G, Unjudged
    pools: pl.DataFrame  # a row per query of the qrels: N, GoodPool, GainPool
    #: A row for all queries with equal `lowest` (iteration number in the run) and `is_dense` (whether the numbers have no gaps):
    #: `queries` is the number of these queries, `highest` the highest iteration number of any of them.
    numbering: pl.DataFrame
    numbers: pl.Series  # the iteration number in the run, for each row of the ledger
    never_searched: pl.Series  # queries of the run that never searched; they have no row in the ledger


def count(
    qrels: pl.DataFrame,
    run: pl.DataFrame,
    *,
    rels: Sequence[float] = (2,),
    labels: str | None = None,
    query_ids: pl.Series | None = None,
) -> dict[float, Counts]:
    """Count the results of each query and iteration. Return the `Counts` of each threshold.

    The counts are R^i (results), UR^i (new results), GR^i (new good results) and G_i (their gain) of the Retrieved Good Gain
    guideline. A document is good if its relevance is at least the threshold.

    `run` has the columns query_id, iteration (Int64) and doc_id (`-` for an iteration without results). `qrels` have the columns
    query_id, doc_id and relevance. With `labels="iteration"` they also have iteration (Int64, null for any), and a document gets
    its label for the iteration that first returned it. `query_ids` has all judged queries; None: those of the qrels.

    >>> run = pl.DataFrame({"query_id": "q", "iteration": [1, 1, 2], "doc_id": ["a", "b", "a"]})
    >>> qrels = pl.DataFrame({"query_id": ["q"], "doc_id": ["a"], "relevance": [3.0]})
    >>> count(qrels, run)[2].ledger.select("R", "UR", "Dup", "GR", "G", "Unjudged").rows()
    [(2, 2, 0, 1, 3.0, 1), (1, 0, 1, 0, 0.0, 0)]
    """
    judged = qrels.select("query_id", "doc_id", "relevance")
    if labels is not None:
        judged = judged.group_by("query_id", "doc_id").agg(pl.col("relevance").max())
    judgments = number_judgments(judged, query_ids)
    firsts = find_first_occurrences(run)
    if labels is None:
        relevance = judgments.look_up(firsts)
    else:
        query_id = firsts.queries.get_column("query_id").gather(firsts.rows.get_column("query"))
        relevance = label_by_iteration(firsts.rows.select(query_id, "doc_id", "iteration"), qrels)
    tallied = tally_first_occurrences(firsts, relevance, rels=rels, unit=find_unit(qrels.get_column("relevance")))
    tallied = tallied.sort("query_id", "iteration")
    return ledger_and_pools(tallied, count_pools(judgments, rels=rels), rels=rels)


def tally_first_occurrences(
    firsts: FirstOccurrences, relevance: pl.Series, *, rels: Sequence[float], unit: float
) -> pl.DataFrame:
    """Count the results of each query and iteration. `relevance` has the label of each row of `firsts`, found in the order `seen`.

    The columns are query_id, iteration (as in the run), R, UR, Unjudged, and two columns per threshold: GR0, G0, GR1, G1 ...
    """
    number = firsts.iterations.height
    group = firsts.rows.get_column("group").to_numpy()
    is_judged = relevance.is_not_null().to_numpy()
    of, label = group[is_judged], relevance.drop_nulls().to_numpy()
    found = np.bincount(group, minlength=number)
    sums = _add_up_good(of, label, number, rels, ("GR", "G"), unit)
    query_id = firsts.queries.get_column("query_id").gather(firsts.iterations.get_column("query"))
    columns = {"UR": found, "Unjudged": found - np.bincount(of, minlength=number), **sums}
    return firsts.iterations.select(
        query_id, "iteration", "R", **{name: pl.Series(column) for name, column in columns.items()}
    )


def label_by_iteration(firsts: pl.DataFrame, qrels: pl.DataFrame) -> pl.Series:
    """Return the label of each first occurrence: the label for its iteration, else the label for any iteration, else null.

    `firsts` has query_id, doc_id, iteration. `qrels` has query_id, doc_id, iteration (null for any) and relevance.
    """
    labels = qrels.select("query_id", "doc_id", "iteration", pl.col("relevance").cast(pl.Float64))
    of_iteration = labels.drop_nulls("iteration")
    of_any = labels.filter(pl.col("iteration").is_null()).select("query_id", "doc_id", any_relevance="relevance")
    labelled = firsts.join(
        of_iteration, on=["query_id", "doc_id", "iteration"], how="left", maintain_order="left"
    ).join(of_any, on=["query_id", "doc_id"], how="left", maintain_order="left")
    return labelled.select(relevance=pl.coalesce("relevance", "any_relevance")).to_series()


def _add_up_good(
    of: Any, label: Any, number: int, rels: Sequence[float], names: tuple[str, str], unit: float
) -> dict[str, Any]:
    """Count and sum the good labels of each group, for each threshold in `rels`.

    `of` has the group of each label, from 0 to `number` - 1. `names` are the prefixes of the columns: with `("GR", "G")`,
    the counts are in `GR0`, `GR1` ... and the sums in `G0`, `G1` ... `unit` is the result of `find_unit` for all labels.
    """
    columns: dict[str, Any] = {}
    whole = np.floor(label / unit) * unit if unit else label
    for k, rel in enumerate(rels):
        good = label >= rel
        counts, gains = np.bincount(of[good], minlength=number), np.bincount(of[good], whole[good], number)
        if unit:
            gains = gains + np.bincount(of[good], (label - whole)[good], number)
        gains = gains.astype(np.float64)  # without labels, bincount returns integers
        columns |= {f"{names[0]}{k}": counts, f"{names[1]}{k}": gains}
    return columns


def find_unit(labels: Any) -> float:
    """Return a power of two, or 0 if all labels are whole. Labels are split into a multiple of this unit and a remainder.

    Without the split, the last digit of a sum of labels would depend on the order of rows. The sum of the multiples is exact
    for millions of labels, because each multiple has at most 26 bits. The sum of the remainders is exact too, unless there are
    very many labels, or both very large and very small labels. If both sums are exact, only the addition of the two sums rounds.
    """
    known = np.asarray(labels, np.float64)
    known = known[~np.isnan(known)]
    if (known == np.round(known)).all():
        return 0.0
    largest = float(np.abs(known).max(initial=0))
    return math.ldexp(1.0, max(math.frexp(largest)[1] - 26, _LEAST_EXPONENT))


def count_pools(judgments: Judgments, *, rels: Sequence[float]) -> pl.DataFrame:
    """Count the good documents and their gain for each judged query: the part of `count` that needs no run.

    The columns are query_id (sorted), and two columns per threshold: GoodPool0, GainPool0, GoodPool1, GainPool1 ...
    """
    query, label = (judgments.labels.get_column(name).to_numpy() for name in ("query", "relevance"))
    sums = _add_up_good(query, label, len(judgments.query_ids), rels, ("GoodPool", "GainPool"), find_unit(label))
    return pl.DataFrame({"query_id": judgments.query_ids.cast(pl.String), **sums})


def ledger_and_pools(tallied: pl.DataFrame, pools: pl.DataFrame, *, rels: Sequence[float]) -> dict[float, Counts]:
    """Return the `Counts` of each threshold from `tally_first_occurrences` and `count_pools`. Iterations are renumbered 1..N."""
    never_searched = tallied.filter(pl.col("iteration").is_null()).get_column("query_id").cast(pl.String)
    tallied = tallied.drop_nulls("iteration")
    numbered = _number_densely(tallied).with_columns(Dup=pl.col("R") - pl.col("UR"))
    queries = _describe_queries(numbered)
    numbering = queries.group_by("lowest", "is_dense").agg(pl.col("highest").max(), queries=pl.len())
    pools = pools.join(queries.select("query_id", "N"), on="query_id", how="left", maintain_order="left")
    pools = pools.with_columns(pl.col("N").fill_null(0))

    def of_threshold(rows: pl.DataFrame, table: Table, k: int) -> pl.DataFrame:
        columns = {name: f"{name}{k}" if f"{name}{k}" in rows.columns else name for name in table.columns}
        return rows.select(pl.col(column).cast(table.polars[name]).alias(name) for name, column in columns.items())

    others = numbering, numbered["number"], never_searched
    return {
        rel: Counts(of_threshold(numbered, LEDGER, k), of_threshold(pools, POOLS, k), *others)
        for k, rel in enumerate(rels)
    }


def _number_densely(tallied: pl.DataFrame) -> pl.DataFrame:
    """Number the iterations of each query 1..N, in order. The column `number` has the old number, from the run."""
    numbered = tallied.rename({"iteration": "number"}).with_columns(pl.col("query_id").cast(pl.String))
    queries = numbered.get_column("query_id").rle().struct.field("value")
    falls = (pl.col("query_id") == pl.col("query_id").shift()) & (pl.col("number") < pl.col("number").shift())
    if not queries.is_unique().all() or numbered.select(falls.any()).item():  # most files are sorted already
        numbered = numbered.sort("query_id", "number")
    row, query_id = pl.int_range(pl.len()), pl.col("query_id")
    start = pl.when(query_id.ne_missing(query_id.shift())).then(row).forward_fill()
    return numbered.with_columns(iteration=row - start + 1).fill_null(0)


def _describe_queries(numbered: pl.DataFrame) -> pl.DataFrame:
    """Return a row per query: query_id, N, the `lowest` and `highest` iteration number, and `is_dense` (no number is missing)."""
    row = pl.int_range(pl.len())
    first = numbered.with_columns(row=row).filter(pl.col("iteration") == 1)
    end = pl.col("row").shift(-1, fill_value=numbered.height)
    queries = first.select("query_id", "row", N=end - pl.col("row"), lowest="number")
    highest = numbered.get_column("number").gather(queries.get_column("row") + queries.get_column("N") - 1)
    is_dense = highest - queries.get_column("lowest") + 1 == queries.get_column("N")
    return queries.select("query_id", "N", "lowest", highest=highest, is_dense=is_dense)
