"""Makes the ranking table of a block of text from the first occurrences and labels that the compiled loop found."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
import polars as pl

from goodgain.batches.text_counting import Scan
from goodgain.ranking.positions import count_in_query, place_documents
from goodgain.ranking.ranking_table import Judgments, RankingTable

__all__ = ["tabulate_scan"]


def tabulate_scan(
    scan: Scan, firsts: pl.DataFrame, judgments: Judgments, *, positions: Collection[str]
) -> tuple[RankingTable, int]:
    """Return the ranking table of a scan, and in how many re-scored queries ranks contradict scores.

    First occurrences are in the order `seen`. A query with several iterations or a repeat is re-scored n, n-1, ..., 1 in
    this order, so that the place of a document is its position. A query with one iteration and no repeat keeps its scores,
    which may be in any order and may tie; doc_ids are decoded for tied documents only.

    Args:
        scan: the scan of a block.
        firsts: its first occurrences, in order.
        judgments: the judgments, for the numbers of queries; labels of documents are taken from the scan.
        positions: the columns of positions that are needed beside trec_eval's `k`.
    """
    queries = _describe_queries(scan, firsts, judgments)
    query = firsts.get_column("query")
    columns = {"k": count_in_query(query)}
    keeps_scores = queries.get_column("keeps_scores").gather(query)
    if keeps_scores.any():
        columns = _place_by_score(scan, firsts, keeps_scores.arg_true(), columns["k"], positions)
    number = queries.get_column("number").gather(query)
    rows = pl.DataFrame([number.alias("query"), *columns.values(), firsts.get_column("relevance")])
    retrieved = queries.filter((pl.col("NumRet") > 0) & pl.col("number").is_not_null()).select(
        pl.col("number").alias("query"), "NumRet"
    )
    contradicting = queries.filter(~pl.col("keeps_scores") & pl.col("rising")).height
    return RankingTable(rows.filter(pl.col("relevance").is_not_null()), retrieved), contradicting


def _describe_queries(scan: Scan, firsts: pl.DataFrame, judgments: Judgments) -> pl.DataFrame:
    """Return number (in the judgments, null for unjudged queries), NumRet, keeps_scores, rising; in the order of the scan."""
    kept = np.bincount(firsts.get_column("query").to_numpy(), minlength=scan.queries.height)
    numbers = pl.DataFrame({"query_id": judgments.query_ids}).with_row_index("number")
    described = scan.queries.join(numbers, on="query_id", how="left", maintain_order="left")
    return described.with_columns(pl.Series("NumRet", kept, dtype=pl.Int64)).select(
        "number",
        "NumRet",
        "rising",
        keeps_scores=(pl.col("iterations") == 1) & (pl.col("results") == pl.col("NumRet")),
    )


def _place_by_score(
    scan: Scan, firsts: pl.DataFrame, rows: pl.Series, places: pl.Series, positions: Collection[str]
) -> dict[str, pl.Series]:
    """Return the columns of positions: by score for the given rows, by place for all others."""
    some = firsts[rows]
    placed = place_documents(
        some.select("query", "score"), lambda tied: scan.read_doc_ids(some[tied]), positions=positions
    )
    columns = {}
    for name in placed.columns:
        column = np.array(places)
        column[rows.to_numpy()] = placed.get_column(name).to_numpy()
        columns[name] = pl.Series(name, column)
    return columns
