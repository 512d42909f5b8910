"""Makes two small tables from a run and qrels: ledger and pools. Every good-gain measure is a function of these tables.

The ledger has one row per (query, iteration). The pools have one row per judged query.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from goodgain.ranking.first_occurrences_and_flattening import FirstOccurrences, find_first_occurrences
from goodgain.ranking.ranking_table import Judgments, find_places, find_unit, number_judgments
from goodgain.schema import LEDGER, POOLS, Table


class Counts(NamedTuple):
    """Ledger and pools of a run and qrels at one threshold."""

    ledger: pl.DataFrame  # a row per (query, iteration 1..N) of the run, sorted: R, UR, Dup, GR, G, Unjudged
    pools: pl.DataFrame  # a row per query of the qrels: N, GoodPool, GainPool
    #: A row for all queries with equal `lowest` (iteration number in the run) and `is_dense` (whether the numbers have no gaps):
    #: `queries` is the number of these queries, `highest` the highest iteration number of any of them.
    numbering: pl.DataFrame
    numbers: pl.Series  # the iteration number in the run, for each row of the ledger
    never_searched: pl.Series  # queries of the run that never searched; they have no row in the ledger
    judgments: Judgments  # the labels behind the pools


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
        relevance = judgments.look_up(firsts, judgments.number_queries(firsts))
    else:
        query_id = firsts.queries.get_column("query_id").gather(firsts.rows.get_column("query"))
        relevance = label_by_iteration(firsts.rows.select(query_id, "doc_id", "iteration"), qrels)
    tallied = tally_first_occurrences(firsts, relevance, rels=rels, unit=find_unit(qrels.get_column("relevance")))
    tallied = tallied.sort("query_id", "iteration")
    return ledger_and_pools(tallied, count_pools(judgments, rels=rels), judgments, rels=rels)


def tally_first_occurrences(
    firsts: FirstOccurrences, relevance: pl.Series, *, rels: Sequence[float], unit: float
) -> pl.DataFrame:
    """Count the results of each query and iteration. `relevance` has the label of each row of `firsts`, found in the order `seen`.

    The columns are query_id, iteration (as in the run), R, UR, Unjudged, and two columns per threshold: GR0, G0, GR1, G1 ...
    """
    iterations = firsts.iterations.height
    iteration_of = firsts.rows.get_column("group").to_numpy()
    label = relevance.to_numpy()
    is_judged = ~np.isnan(label)
    unique = np.bincount(iteration_of, minlength=iterations)
    judged = np.bincount(iteration_of[is_judged], minlength=iterations)
    sums = _add_up_good(iteration_of[is_judged], label[is_judged], iterations, rels, ("GR", "G"), unit)

    query_id = firsts.queries.get_column("query_id")[firsts.iterations.get_column("query")]
    return pl.DataFrame(
        {
            "query_id": query_id,
            "iteration": firsts.iterations.get_column("iteration"),
            "R": firsts.iterations.get_column("R"),
            "UR": unique,
            "Unjudged": unique - judged,
            **sums,
        }
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
    for k, rel in enumerate(rels):
        good = label >= rel
        columns[f"{names[0]}{k}"] = np.bincount(of[good], minlength=number)
        columns[f"{names[1]}{k}"] = _add_up(of[good], label[good], number, unit)
    return columns


def _add_up(of: Any, label: Any, number: int, unit: float) -> Any:
    """Sum the labels of each group. The sum does not depend on the order of the labels (see `find_unit`)."""
    whole = np.floor(label / unit) * unit if unit else label
    sums = np.bincount(of, whole, number)
    if unit:
        sums = sums + np.bincount(of, label - whole, number)
    return sums.astype(np.float64)  # without labels, bincount returns integers


def count_pools(judgments: Judgments, *, rels: Sequence[float]) -> pl.DataFrame:
    """Count the good documents and their gain for each judged query: the part of `count` that needs no run.

    The columns are query_id (sorted), and two columns per threshold: GoodPool0, GainPool0, GoodPool1, GainPool1 ...
    """
    query, label = judgments.columns
    sums = _add_up_good(query, label, len(judgments.query_ids), rels, ("GoodPool", "GainPool"), judgments.unit)
    return pl.DataFrame({"query_id": judgments.query_ids, **sums})


def divide_good_documents(judgments: Judgments, queries: Any, good: Any, *, per: int) -> tuple[Any, Any]:
    """Divide the good documents of some queries among ideal searches of `per` documents, the highest labels first.

    `queries` has numbers of judged queries, and `good` how many good documents each has. Return two things: how many ideal
    searches each query has, and the gain of each search. The searches of a query stand together, in their order.

    >>> qrels = pl.DataFrame({"query_id": "q", "doc_id": ["a", "b", "c"], "relevance": [2.0, 1.0, 3.0]})
    >>> searches, gain = divide_good_documents(number_judgments(qrels), np.array([0]), np.array([3]), per=2)
    >>> searches.tolist(), gain.tolist()
    ([2], [5.0, 1.0])
    """
    labels, lengths = judgments.rank_ideally()
    starts = np.cumsum(lengths) - lengths
    place = np.arange(good.sum()) - np.repeat(np.cumsum(good) - good, good)  # of each document in its query, from 0
    label = labels[np.repeat(starts[queries], good) + place]

    searches = -(-good // per)
    search = np.repeat(np.cumsum(searches) - searches, good) + place // per
    return searches, _add_up(search, label, searches.sum(), judgments.unit)


def ledger_and_pools(
    tallied: pl.DataFrame, pools: pl.DataFrame, judgments: Judgments, *, rels: Sequence[float]
) -> dict[float, Counts]:
    """Return the `Counts` of each threshold from `tally_first_occurrences` and `count_pools`. Iterations are renumbered 1..N.

    `pools` may lack queries of `judgments`.
    """
    never_searched = tallied.get_column("query_id").clear()
    if tallied.get_column("iteration").null_count():  # a query that never searched has one row, without an iteration
        never_searched = tallied.filter(pl.col("iteration").is_null()).get_column("query_id")
        tallied = tallied.drop_nulls("iteration")
    tallied, starts = _group_by_query(tallied)
    number = tallied.get_column("iteration").to_numpy()
    lengths = np.diff(starts, append=len(number))
    query_ids = tallied.get_column("query_id")[starts]

    length_of_pool = np.zeros(pools.height, np.int64)
    place = find_places(query_ids, pools.get_column("query_id"))
    length_of_pool[place[place >= 0]] = lengths[place >= 0]

    results, unique = (tallied.get_column(name).to_numpy() for name in ("R", "UR"))
    iteration = np.arange(1, len(number) + 1) - np.repeat(starts, lengths)
    made = [
        pl.Series("iteration", iteration, pl.Int64),
        pl.Series("Dup", results - unique, pl.Int64),
    ]
    counted = [column for column in tallied.get_columns() if column.name != "iteration"]
    numbered = pl.DataFrame([*counted, *made])
    pools = pools.hstack([pl.Series("N", length_of_pool)])
    numbers = tallied.get_column("iteration").alias("number")
    others = _describe_numbers(number, starts, lengths), numbers, never_searched, judgments
    return {
        rel: Counts(_select_threshold(numbered, LEDGER, k), _select_threshold(pools, POOLS, k), *others)
        for k, rel in enumerate(rels)
    }


def _group_by_query(tallied: pl.DataFrame) -> tuple[pl.DataFrame, Any]:
    """Return the rows with those of a query together, in the order of iterations, and the first row of each query."""
    starts = _find_starts(tallied)
    names = tallied.get_column("query_id")[starts]
    number = tallied.get_column("iteration").to_numpy()
    falls = np.flatnonzero(number[1:] < number[:-1]) + 1
    if names.n_unique() == len(names) and np.isin(falls, starts).all():  # most files are sorted already
        return tallied, starts
    tallied = tallied.sort("query_id", "iteration")
    return tallied, _find_starts(tallied)


def _find_starts(rows: pl.DataFrame) -> Any:
    """Return the numbers of the rows whose query is not that of the row before."""
    query_id = rows.get_column("query_id")
    differs = (query_id[1:] != query_id[:-1]).to_numpy()
    return np.flatnonzero(np.concatenate([np.ones(min(rows.height, 1), bool), differs]))


def _describe_numbers(number: Any, starts: Any, lengths: Any) -> pl.DataFrame:
    """Return `Counts.numbering`. `number` has the iteration number in the run of each row, sorted in each query."""
    lowest, highest = number[starts], number[starts + lengths - 1]
    is_dense = highest - lowest + 1 == lengths
    if is_dense.all():  # as in most runs
        return _describe_queries(lowest, highest, is_dense)
    parts = [_describe_queries(lowest[some], highest[some], is_dense[some]) for some in (is_dense, ~is_dense)]
    return parts[0].vstack(parts[1])


def _describe_queries(lowest: Any, highest: Any, is_dense: Any) -> pl.DataFrame:
    """Return a row for all queries with equal `lowest`. The queries have equal `is_dense`."""
    lows, kind, queries = np.unique(lowest, return_inverse=True, return_counts=True)
    highest_of_kind = np.full(len(lows), np.iinfo(np.int64).min)
    np.maximum.at(highest_of_kind, kind, highest)
    return pl.DataFrame(
        [
            pl.Series("lowest", lows, pl.Int64),
            pl.Series("is_dense", is_dense[: len(lows)], pl.Boolean),
            pl.Series("highest", highest_of_kind, pl.Int64),
            pl.Series("queries", queries, pl.Int64),
        ]
    )


def _select_threshold(rows: pl.DataFrame, table: Table, k: int) -> pl.DataFrame:
    """Return the columns of a table with the counts of the threshold `rels[k]`."""
    columns = {name: f"{name}{k}" if f"{name}{k}" in rows.columns else name for name in table.columns}
    return pl.DataFrame(
        [rows.get_column(column).cast(table.polars[name]).alias(name) for name, column in columns.items()]
    )
