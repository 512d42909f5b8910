"""Counts what the runs of two systems share: documents, and the order in which they found these. This needs no labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import NamedTuple

import numpy as np
import polars as pl

from goodgain.counting.run_in_blocks import RunFile, read_whole
from goodgain.counting.run_opening import stack_systems
from goodgain.errors import without_notices
from goodgain.formats import Run
from goodgain.ranking.ranking_table import Judgments, find_places, tabulate_ranking
from goodgain.schema import EMPTY_DOC

#: The persistence p of rank-biased overlap: the first ten ranks have 86 % of the weight.
PERSISTENCE = 0.9
#: The columns of `SharedResults.pairs` that are sums over queries. Of several runs they are means over the pairs of runs.
_SUMS = ("documents", "documents_against", "both", "searches_apart", "searches_apart_against")


class SharedResults(NamedTuple):
    """What systems share. With several runs of a system, numbers are means over its runs, or over the pairs of runs.

    Attributes:
        pairs: a row per pair: system, against, queries (in which both have results), documents and documents_against (found by
            each), both (found by both), jaccard and rbo (means over these queries), queries_apart (without a document of
            both), searches_apart (searches of system of whose documents against found none), searches_apart_against.
        per_query: a row per pair and query in which both have results: system, against, query_id, then the columns of
            `pairs` but queries and queries_apart.
        searches: a row per system and iteration: system, iteration, searches, results, new (documents that the query had not
            yet returned), compared (later searches with results, of queries whose first search has results), apart (those of
            them that share no document with the first search of the query).
    """

    pairs: pl.DataFrame
    per_query: pl.DataFrame
    searches: pl.DataFrame


class _Results(NamedTuple):
    """The results of one run. `query` is the number of a query among the sorted queries."""

    results: pl.DataFrame  # query, iteration (1..N), doc_id
    searches: pl.DataFrame  # query, iteration: also searches without results
    documents: pl.DataFrame  # query, doc_id
    ranking: pl.DataFrame  # query, doc_id, k


def find_shared(
    runs_of: Mapping[str, Sequence[Run | RunFile]],
    pairs: Sequence[tuple[str, str]],
    query_ids: pl.Series,
    left_out: Mapping[str, Sequence[pl.Series | None]],
    order: str,
) -> SharedResults:
    """Return what each pair (system, against) shares, and what each search found.

    `left_out` has the queries whose results do not count, for each run of a system. `order` joins iterations to one ranking.
    """
    results_of: dict[str, list[_Results]] = {}
    for system, runs in runs_of.items():
        left_out_of_runs = left_out.get(system, [None] * len(runs))
        results_of[system] = []
        for run, queries_without in zip(runs, left_out_of_runs, strict=True):
            results_of[system].append(_read_results(run, query_ids, queries_without, order))

    tables = []
    for system, against in pairs:
        pairs_of_runs = product(results_of[system], results_of[against])
        of_pair = _average_pairs_of_runs([_compare(first, second) for first, second in pairs_of_runs])
        names = pl.lit(system).alias("system"), pl.lit(against).alias("against")
        tables.append(of_pair.select(*names, pl.all()))
    per_query = pl.concat(tables)
    numbers = query_ids.alias("query_id").to_frame()
    numbers = numbers.with_columns(query=pl.int_range(pl.len(), dtype=pl.Int64))
    by_query_id = per_query.join(numbers, on="query", how="left", maintain_order="left")
    key = ("system", "against", "query_id")

    searches = {}
    for system, results_of_runs in results_of.items():
        searches[system] = _average_runs([_count_searches(results) for results in results_of_runs])
    return SharedResults(
        _summarise(per_query, pairs),
        by_query_id.select(*key, pl.exclude(*key, "query")),
        stack_systems(searches),
    )


def _read_results(run: Run | RunFile, query_ids: pl.Series, left_out: pl.Series | None, order: str) -> _Results:
    """Return the results of a run for the queries in `query_ids`, without those in `left_out`."""
    with without_notices():  # scoring has given them
        whole = read_whole(run)
        ranking = whole.flatten(order)
    no_labels = pl.DataFrame(schema={"query": pl.UInt32, "doc_id": pl.String, "relevance": pl.Float64})
    ranking = ranking.select("query_id", "doc_id", "score")
    placed = tabulate_ranking(ranking, Judgments(query_ids, no_labels), unjudged=True).rows

    numbers = pl.Series("query", find_places(whole.rows.get_column("query_id"), query_ids))
    rows = whole.rows.select(numbers, "iteration", "doc_id")
    rows = rows.filter(pl.col("query") >= 0)
    if left_out is not None:
        is_counted = ~pl.col("query").is_in(find_places(left_out, query_ids).tolist())
        placed, rows = placed.filter(is_counted), rows.filter(is_counted)
    iteration = pl.col("iteration").rank("dense").over("query")
    rows = rows.with_columns(iteration.cast(pl.Int64))

    results = rows.filter(pl.col("doc_id") != EMPTY_DOC)
    return _Results(
        results=results,
        searches=rows.select("query", "iteration").unique(),
        documents=results.select("query", "doc_id").unique(),
        ranking=placed.select("query", "doc_id", "k"),
    )


def _compare(first: _Results, second: _Results) -> pl.DataFrame:
    """Return a row per query in which both runs have results."""
    documents = _count(first.documents, "documents")
    counts = documents.join(_count(second.documents, "documents_against"), on="query")
    shared = first.documents.join(second.documents, on=["query", "doc_id"])
    counts = counts.join(_count(shared, "both"), on="query", how="left")
    for name, apart in (
        ("searches_apart", _find_searches_apart(first, second)),
        ("searches_apart_against", _find_searches_apart(second, first)),
    ):
        counts = counts.join(_count(apart, name), on="query", how="left")
    counts = counts.with_columns(pl.col(*_SUMS).fill_null(0)).sort("query")

    union = pl.col("documents") + pl.col("documents_against") - pl.col("both")
    counts = counts.with_columns(jaccard=pl.col("both") / union)
    overlaps = compute_rank_biased_overlap(first.ranking, second.ranking)
    return counts.join(overlaps, on="query", how="left", maintain_order="left")


def _find_searches_apart(run: _Results, against: _Results) -> pl.DataFrame:
    """Return the query and iteration of each search that found no document of the run `against`."""
    key = ["query", "iteration"]
    shared = run.results.join(against.documents, on=["query", "doc_id"], how="semi")
    searches = run.results.select(key).unique()
    return searches.join(shared.select(key).unique(), on=key, how="anti")


def _count(rows: pl.DataFrame, name: str) -> pl.DataFrame:
    number = pl.len().cast(pl.Int64).alias(name)
    return rows.group_by("query").agg(number)


def compute_rank_biased_overlap(first: pl.DataFrame, second: pl.DataFrame, p: float = PERSISTENCE) -> pl.DataFrame:
    """Return the extrapolated rank-biased overlap of two rankings of each query, RBO_EXT.

    `first` and `second` have query, doc_id and k (rank 1, 2, ... of each document). With s <= l the lengths of the rankings, and
    X_d the number of documents that both have at ranks 1..d (the shorter ranking cut at its end):
    (1 - p) / p * (sum X_d / d * p^d for d = 1..l + sum X_s * (d - s) / (s * d) * p^d for d = s+1..l)
    + ((X_l - X_s) / l + X_s / s) * p^l.

    Returns:
        query, rbo (0..1): a row per query that both have.

    Source: Webber, Moffat and Zobel, TOIS 28(4), 2010, equation 32.

    >>> orders = ["12345", "23415"]
    >>> first, second = (pl.DataFrame({"query": 0, "doc_id": [*order], "k": range(1, 6)}) for order in orders)
    >>> round(compute_rank_biased_overlap(first, second)["rbo"][0], 6)
    0.828
    """
    lengths = _count(first, "n").join(_count(second, "m"), on="query").sort("query")
    shorter, longer = pl.min_horizontal("n", "m"), pl.max_horizontal("n", "m")
    lengths = lengths.select("query", s=shorter, l=longer)
    # A document of both counts in X_d from its worse rank on.
    shared = first.join(second, on=["query", "doc_id"])
    shared = shared.select("query", d=pl.max_horizontal("k", "k_right"))
    shared = shared.join(lengths.with_row_index("row"), on="query")

    s, length = (lengths.get_column(name).to_numpy() for name in ("s", "l"))
    row = shared.get_column("row").to_numpy()
    worse = shared.get_column("d").to_numpy()
    is_in_shorter = worse <= s[row]
    x_l = np.bincount(row, minlength=len(s)).astype(float)
    x_s = np.bincount(row[is_in_shorter], minlength=len(s)).astype(float)

    depths = np.arange(1, length.max(initial=0) + 1)
    weights = np.concatenate([[0.0], np.cumsum(p**depths / depths)])  # weights[n] = sum of p^d / d for d = 1..n
    weights_of_documents = weights[length[row]] - weights[worse - 1]
    agreements = np.bincount(row, weights_of_documents, minlength=len(s))
    powers = (p ** (s + 1) - p ** (length + 1)) / (1 - p)  # sum of p^d for d = s+1..l
    extrapolated = x_s / s * (powers - s * (weights[length] - weights[s]))
    after_end = ((x_l - x_s) / length + x_s / s) * p**length
    overlap = (1 - p) / p * (agreements + extrapolated) + after_end
    rbo = pl.Series(overlap.clip(0, 1), dtype=pl.Float64)
    return lengths.select("query", rbo=rbo)


def _average_pairs_of_runs(tables: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """Return the means of each query over the pairs of runs that both have results of it."""
    if len(tables) == 1:
        return tables[0].with_columns(pl.col(*_SUMS).cast(pl.Float64))
    by_query = pl.concat(tables).group_by("query")
    return by_query.agg(pl.all().mean()).sort("query")


def _summarise(per_query: pl.DataFrame, pairs: Sequence[tuple[str, str]]) -> pl.DataFrame:
    """Return a row per pair, in the given order; also for pairs without a query in which both have results."""
    is_apart = pl.col("both") == 0
    by_pair = per_query.group_by("system", "against").agg(
        pl.len().cast(pl.Int64).alias("queries"),
        pl.col(*_SUMS[:3]).sum(),
        pl.col("jaccard", "rbo").mean(),
        is_apart.sum().cast(pl.Int64).alias("queries_apart"),
        pl.col(*_SUMS[3:]).sum(),
    )
    in_order = pl.DataFrame(pairs, schema={"system": pl.String, "against": pl.String}, orient="row")
    joined = in_order.join(by_pair, on=["system", "against"], how="left", maintain_order="left")
    return joined.with_columns(pl.col("queries", "queries_apart", *_SUMS).fill_null(0))


def _count_searches(run: _Results) -> pl.DataFrame:
    """Return a row per iteration: searches, results, new, compared, apart."""
    key = ["query", "iteration"]
    results = run.results.sort("query", "iteration")
    new = results.filter(pl.struct("query", "doc_id").is_first_distinct())

    # later searches are compared with the first search of the query
    of_first = run.results.filter(iteration=1).select("query", "doc_id")
    later = results.filter(pl.col("iteration") > 1)
    later = later.join(of_first.select("query").unique(), on="query", how="semi")
    compared = later.select(key).unique()
    shared = later.join(of_first, on=["query", "doc_id"], how="semi").select(key).unique()
    parts = {
        "results": results,
        "new": new,
        "compared": compared,
        "apart": compared.join(shared, on=key, how="anti"),
    }

    counts = _count_iterations(run.searches, "searches")
    for name, rows in parts.items():
        counts = counts.join(_count_iterations(rows, name), on="iteration", how="left")
    return counts.fill_null(0).sort("iteration")


def _count_iterations(rows: pl.DataFrame, name: str) -> pl.DataFrame:
    number = pl.len().cast(pl.Float64).alias(name)
    return rows.group_by("iteration").agg(number)


def _average_runs(tables: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """Return the means over runs. A run that has no such iteration counts as 0."""
    by_iteration = pl.concat(tables).group_by("iteration")
    sums = by_iteration.agg(pl.all().sum()).sort("iteration")
    return sums.with_columns(pl.exclude("iteration") / len(tables))
