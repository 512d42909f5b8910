"""Counts what the runs of two systems share: documents, and the order in which they found these. This needs no labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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


class _Found(NamedTuple):
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
    found_of: dict[str, list[_Found]] = {}
    for system, runs in runs_of.items():
        without = left_out.get(system, [None] * len(runs))
        found_of[system] = [_find(run, query_ids, ids, order) for run, ids in zip(runs, without, strict=True)]

    tables = []
    for system, against in pairs:
        of_runs = [_compare(found, other) for found in found_of[system] for other in found_of[against]]
        names = pl.lit(system).alias("system"), pl.lit(against).alias("against")
        tables.append(_average_pairs_of_runs(of_runs).select(*names, pl.all()))
    per_query = pl.concat(tables)
    numbered = query_ids.alias("query_id").to_frame().with_columns(query=pl.int_range(pl.len(), dtype=pl.Int64))
    named = per_query.join(numbered, on="query", how="left", maintain_order="left")

    searches = {
        system: _average_runs([_count_searches(found) for found in founds]) for system, founds in found_of.items()
    }
    return SharedResults(
        _summarise(per_query, pairs),
        named.select("system", "against", "query_id", pl.exclude("system", "against", "query_id", "query")),
        stack_systems(searches),
    )


def _find(run: Run | RunFile, query_ids: pl.Series, left_out: pl.Series | None, order: str) -> _Found:
    with without_notices():  # scoring has given them
        whole = read_whole(run)
        ranking = whole.flatten(order)
    judgments = Judgments(
        query_ids, pl.DataFrame(schema={"query": pl.UInt32, "doc_id": pl.String, "relevance": pl.Float64})
    )
    placed = tabulate_ranking(ranking.select("query_id", "doc_id", "score"), judgments, unjudged=True).rows

    numbers = pl.Series("query", find_places(whole.rows.get_column("query_id"), query_ids))
    rows = whole.rows.select(numbers, "iteration", "doc_id").filter(pl.col("query") >= 0)
    if left_out is not None:
        is_kept = ~pl.col("query").is_in(find_places(left_out, query_ids).tolist())
        placed, rows = placed.filter(is_kept), rows.filter(is_kept)
    rows = rows.with_columns(pl.col("iteration").rank("dense").over("query").cast(pl.Int64))
    results = rows.filter(pl.col("doc_id") != EMPTY_DOC)
    return _Found(
        results,
        rows.select("query", "iteration").unique(),
        results.select("query", "doc_id").unique(),
        placed.select("query", "doc_id", "k"),
    )


def _compare(found: _Found, other: _Found) -> pl.DataFrame:
    """Return a row per query in which both runs have results."""
    sizes = _count(found.documents, "documents").join(_count(other.documents, "documents_against"), on="query")
    both = found.documents.join(other.documents, on=["query", "doc_id"])
    counts = sizes.join(_count(both, "both"), on="query", how="left")
    for name, searched, others in (
        ("searches_apart", found, other),
        ("searches_apart_against", other, found),
    ):
        met = searched.results.join(others.documents, on=["query", "doc_id"], how="semi")
        key = ["query", "iteration"]
        apart = searched.results.select(key).unique().join(met.select(key).unique(), on=key, how="anti")
        counts = counts.join(_count(apart, name), on="query", how="left")
    counts = counts.with_columns(pl.col(*_SUMS).fill_null(0)).sort("query")

    union = pl.col("documents") + pl.col("documents_against") - pl.col("both")
    overlaps = compute_rank_biased_overlap(found.ranking, other.ranking)
    return counts.with_columns(jaccard=pl.col("both") / union).join(
        overlaps, on="query", how="left", maintain_order="left"
    )


def _count(rows: pl.DataFrame, name: str) -> pl.DataFrame:
    return rows.group_by("query").agg(pl.len().cast(pl.Int64).alias(name))


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
    lengths = lengths.select("query", s=pl.min_horizontal("n", "m"), l=pl.max_horizontal("n", "m"))
    # A document of both counts in X_d from its worse rank on.
    shared = first.join(second, on=["query", "doc_id"]).select("query", d=pl.max_horizontal("k", "k_right"))
    shared = shared.join(lengths.with_row_index("row"), on="query")

    s, length = (lengths.get_column(name).to_numpy() for name in ("s", "l"))
    row, worse = shared.get_column("row").to_numpy(), shared.get_column("d").to_numpy()
    x_l = np.bincount(row, minlength=len(s)).astype(float)
    x_s = np.bincount(row[worse <= s[row]], minlength=len(s)).astype(float)

    depths = np.arange(1, length.max(initial=0) + 1)
    weights = np.concatenate([[0.0], np.cumsum(p**depths / depths)])  # weights[n] = sum of p^d / d for d = 1..n
    agreements = np.bincount(row, weights[length[row]] - weights[worse - 1], minlength=len(s))
    powers = (p ** (s + 1) - p ** (length + 1)) / (1 - p)  # sum of p^d for d = s+1..l
    extrapolated = x_s / s * (powers - s * (weights[length] - weights[s]))
    rest = ((x_l - x_s) / length + x_s / s) * p**length
    overlap = (1 - p) / p * (agreements + extrapolated) + rest
    return lengths.select("query", rbo=pl.Series(overlap.clip(0, 1), dtype=pl.Float64))


def _average_pairs_of_runs(tables: Sequence[pl.DataFrame]) -> pl.DataFrame:
    if len(tables) == 1:
        return tables[0].with_columns(pl.col(*_SUMS).cast(pl.Float64))
    return pl.concat(tables).group_by("query").agg(pl.all().mean()).sort("query")


def _summarise(per_query: pl.DataFrame, pairs: Sequence[tuple[str, str]]) -> pl.DataFrame:
    """Return a row per pair, in the given order; also for pairs without a query in which both have results."""
    by_pair = per_query.group_by("system", "against").agg(
        pl.len().cast(pl.Int64).alias("queries"),
        pl.col(*_SUMS[:3]).sum(),
        pl.col("jaccard", "rbo").mean(),
        (pl.col("both") == 0).sum().cast(pl.Int64).alias("queries_apart"),
        pl.col(*_SUMS[3:]).sum(),
    )
    named = pl.DataFrame(pairs, schema={"system": pl.String, "against": pl.String}, orient="row")
    joined = named.join(by_pair, on=["system", "against"], how="left", maintain_order="left")
    return joined.with_columns(pl.col("queries", "queries_apart", *_SUMS).fill_null(0))


def _count_searches(found: _Found) -> pl.DataFrame:
    """Return a row per iteration: searches, results, new, compared, apart."""
    results = found.results.sort("query", "iteration")
    new = results.filter(pl.struct("query", "doc_id").is_first_distinct())
    of_first = found.results.filter(iteration=1).select("query", "doc_id")
    later = results.filter(pl.col("iteration") > 1).join(of_first.select("query").unique(), on="query", how="semi")
    key = ["query", "iteration"]
    compared = later.select(key).unique()
    met = later.join(of_first, on=["query", "doc_id"], how="semi").select(key).unique()
    parts = {
        "results": results,
        "new": new,
        "compared": compared,
        "apart": compared.join(met, on=key, how="anti"),
    }
    counts = _count_iterations(found.searches, "searches")
    for name, rows in parts.items():
        counts = counts.join(_count_iterations(rows, name), on="iteration", how="left")
    return counts.fill_null(0).sort("iteration")


def _count_iterations(rows: pl.DataFrame, name: str) -> pl.DataFrame:
    return rows.group_by("iteration").agg(pl.len().cast(pl.Float64).alias(name))


def _average_runs(tables: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """Return the means over runs. A run that has no such iteration counts as 0."""
    summed = pl.concat(tables).group_by("iteration").agg(pl.all().sum()).sort("iteration")
    return summed.with_columns(pl.exclude("iteration") / len(tables))
