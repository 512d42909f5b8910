"""All ten of our measures in one `ranx.evaluate`, beside ndcg@10 alone on the same run, after warm-up.

    PYTHONPATH=src python benchmarks/ranx_host.py            # compiles for up to a minute before it measures

What is printed is a ratio: both are timed in turn in one process, and the best of several rounds is taken.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import polars as pl
import ranx

import goodgain.hosts.ranx as host
from goodgain.measures.families import HOST_NAMES

ROUNDS = 9
#: The guideline's ten: the declarations that name it as their source.
TEN = [
    f"{name}@3" if measure.declaration.cutoff == "required" else name
    for name, measure in HOST_NAMES.items()
    if measure.declaration.section.startswith("Retrieved Good Gain") and not measure.params
]


def example(queries: int, iterations: int, results: int) -> tuple[pl.DataFrame, pl.DataFrame]:
    """A run whose documents repeat, and qrels for half of the documents."""
    random = np.random.default_rng(42)
    rows = queries * iterations * results
    documents = random.integers(0, iterations * results, rows)
    run = pl.DataFrame(
        {
            "query_id": np.repeat(np.arange(queries), iterations * results),
            "iteration": np.tile(np.repeat(np.arange(1, iterations + 1), results), queries),
            "doc_id": documents,
            "rank": np.tile(np.arange(1, results + 1), queries * iterations),
        }
    ).with_columns(pl.format("q{}", "query_id").alias("query_id"), pl.format("document-{}", "doc_id").alias("doc_id"))
    judged = iterations * results // 2
    qrels = pl.DataFrame(
        {
            "query_id": np.repeat(np.arange(queries), judged),
            "doc_id": np.tile(np.arange(judged), queries),
            "relevance": random.integers(0, 4, queries * judged),
        }
    ).with_columns(pl.format("q{}", "query_id").alias("query_id"), pl.format("document-{}", "doc_id").alias("doc_id"))
    return run, qrels


def best_in_turn(calls: list[Callable[[], object]]) -> list[float]:
    """The shortest time of each, timed in turn so that a busy machine is busy for all of them."""
    times = [[] for _ in calls]
    for _ in range(ROUNDS):
        for call, taken in zip(calls, times, strict=True):
            start = time.perf_counter()
            call()
            taken.append(time.perf_counter() - start)
    return [min(taken) for taken in times]


def main() -> None:
    """Print the ratio for a small, a middling and a large run."""
    print(f"{len(TEN)} measures: {' '.join(TEN)}")
    for queries, iterations, results in ((80, 4, 10), (1_000, 10, 10), (2_000, 10, 20)):
        rows, labels = example(queries, iterations, results)
        run = host.Run(rows)
        by_query = labels.group_by("query_id").agg("doc_id", "relevance").iter_rows()
        plain = ranx.Qrels({query_id: dict(zip(*judged, strict=True)) for query_id, *judged in by_query})
        for kind, qrels in (("goodgain", host.Qrels(labels)), ("plain", plain)):
            ours, ndcg, both = best_in_turn(
                [
                    lambda: ranx.evaluate(qrels, run, TEN),  # noqa: B023  # called before the loop goes on
                    lambda: ranx.evaluate(qrels, run, "ndcg@10"),  # noqa: B023
                    lambda: ranx.evaluate(qrels, run, ["ndcg@10", *TEN]),  # noqa: B023
                ]
            )
            print(
                f"{rows.height:>9,} results, {kind:>8} Qrels: ten of ours {1000 * ours:7.1f} ms, "
                f"ndcg@10 {1000 * ndcg:7.1f} ms, ratio {ours / ndcg:.2f}; both in one call {both / ndcg:.2f}"
            )


if __name__ == "__main__":
    main()
