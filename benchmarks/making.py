"""Makes runs and qrels of any size, by a seed; the largest is 6.5 million rows with 1 million labels.

python benchmarks/making.py FOLDER QUERIES LABELS    # prints the paths of qrels and run, a line each
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import polars as pl

__all__ = ["made"]


def made(folder: Path, *, queries: int, labels: int, seed: int = 42) -> tuple[Path, Path]:
    """Paths of qrels and run: 1-12 iterations a query, 1-3 searches each of 10 results, about a third of rows unique."""
    folder.mkdir(parents=True, exist_ok=True)
    qrels, run = folder / f"{queries}.qrels", folder / f"{queries}.run"
    if not run.exists() or not qrels.exists():
        rows = _rows(queries, np.random.default_rng(seed))
        rows.write_csv(run, separator=" ", include_header=False, quote_style="never")
        _labels(rows, labels, seed).write_csv(qrels, separator=" ", include_header=False, quote_style="never")
    return qrels, run


def _rows(queries: int, random: np.random.Generator) -> pl.DataFrame:
    iterations = random.integers(1, 13, queries)
    query = np.repeat(np.arange(queries), iterations)
    iteration = np.concatenate([np.arange(1, count + 1) for count in iterations])
    results = 10 * random.integers(1, 4, len(query))
    of_row = np.repeat(np.arange(len(query)), results)
    rank = np.arange(len(of_row)) - np.repeat(np.cumsum(results) - results, results) + 1
    in_query = np.bincount(query[of_row], minlength=queries)[query[of_row]]
    document = (random.random(len(of_row)) * np.maximum(1, 0.385 * in_query)).astype(np.int64)
    frame = pl.DataFrame({"query": query[of_row], "iteration": iteration[of_row], "document": document, "rank": rank})
    return frame.select(
        query_id="q" + pl.col("query").cast(pl.String),
        iteration="iteration",
        doc_id="doc" + (pl.col("query") * 1000 + pl.col("document")).cast(pl.String).str.zfill(9),
        rank="rank",
        score=(1000 - pl.col("rank")).cast(pl.Float64),
        tag=pl.lit("agent"),
    )


def _labels(rows: pl.DataFrame, labels: int, seed: int) -> pl.DataFrame:
    pairs = rows.select("query_id", "doc_id").unique(maintain_order=True)
    kept = pairs.sample(min(labels, pairs.height), seed=seed)
    return kept.select(
        "query_id", iteration=pl.lit("0"), doc_id="doc_id", relevance=pl.int_range(pl.len(), dtype=pl.Int64) % 5
    )


if __name__ == "__main__":
    print(*made(Path(sys.argv[1]), queries=int(sys.argv[2]), labels=int(sys.argv[3])), sep="\n")
