"""How long a comparison takes: 10 systems, 10,000 queries, 12 measures, all tests on; and the tests beside SciPy's.

    python benchmarks/comparing.py [QUERIES]

The second part times, for one pair and one measure, SciPy's ttest_rel, permutation_test and bootstrap (called once a
pair, as a user without this package would), and ours for all pairs and measures at once, divided by their number.
"""

from __future__ import annotations

import platform
import sys
import time
import warnings

import numpy as np
import polars as pl
from scipy import stats

from goodgain import GoodgainNotice, compare
from goodgain.statistics.randomisation_test import run_randomisation_test
from goodgain.statistics.statistical_tests import bootstrap_interval, compute_effect_size, correct_by_holm, run_t_test

SYSTEMS = 10
PAIRS = SYSTEMS * (SYSTEMS - 1) // 2
MEASURES = "nDCG@10 RR@10 R@100 CG@3 RG@3 DCGG@3 RAG@3 SRE@3 SRR@3 nDCGG@3 IterationsForAllGoodResults NumResults"
RESAMPLES = 9_999


def made_up(queries: int, seed: int) -> tuple[pl.DataFrame, dict[str, pl.DataFrame]]:
    """Qrels of 20 labels a query; runs of 1 to 4 iterations with 10 results each, repeats among them."""
    random = np.random.default_rng(seed)
    ids = np.array([f"q{k:06}" for k in range(queries)])
    labels = pl.DataFrame(
        {
            "query_id": np.repeat(ids, 20),
            "doc_id": np.tile([f"d{k}" for k in range(20)], queries),
            "relevance": random.integers(0, 4, 20 * queries).astype(float),
        }
    )
    runs = {}
    for system in range(SYSTEMS):
        iterations = random.integers(1, 5, queries)
        rows = np.repeat(ids, 10 * iterations)
        within = np.concatenate([np.arange(10 * n) for n in iterations])
        found = random.integers(0, 25 + system, len(rows))
        runs[f"system{system}"] = pl.DataFrame(
            {"query_id": rows, "iteration": within // 10 + 1, "rank": within % 10 + 1, "doc_id": found}
        ).with_columns(pl.format("d{}", "doc_id").alias("doc_id"))
    return labels, runs


def seconds(call: object, *args: object, **options: object) -> float:
    start = time.perf_counter()
    call(*args, **options)  # type: ignore[operator]  # any function
    return time.perf_counter() - start


def tests_per_pair(queries: int) -> tuple[float, float]:
    """Seconds a pair and measure: ours (of all at once), SciPy's (one call each)."""
    differences = np.random.default_rng(1).normal(0.01, 0.2, size=(12 * PAIRS, queries))
    start = time.perf_counter()
    (
        run_t_test(differences),
        run_randomisation_test(differences),
        bootstrap_interval(differences),
        compute_effect_size(differences),
    )
    correct_by_holm(np.linspace(0, 1, PAIRS))
    ours = (time.perf_counter() - start) / len(differences)
    one = differences[0]

    def mean(a: np.ndarray, b: np.ndarray, axis: int) -> np.ndarray:
        return (a - b).mean(axis=axis)

    scipys = seconds(stats.ttest_rel, one, np.zeros(queries))
    scipys += seconds(
        stats.permutation_test,
        (one, np.zeros(queries)),
        mean,
        permutation_type="samples",
        vectorized=True,
        n_resamples=RESAMPLES,
        batch=500,
    )
    scipys += seconds(stats.bootstrap, (one,), np.mean, n_resamples=RESAMPLES, method="percentile", batch=500)
    return ours, scipys


def many_systems(systems: int = 34, queries: int = 200) -> float:
    """Seconds of a comparison of so many systems that the tests need more random signs: 561 pairs, 224,400 signs."""
    qrels = {f"q{query}": {f"d{rank}": 1 for rank in range(systems)} for query in range(queries)}
    runs = {f"s{k}": {query: {f"d{rank}": 1.0 for rank in range(k + 1)} for query in qrels} for k in range(systems)}
    return seconds(compare, qrels, runs, f"R@{systems}")


def main() -> None:
    queries = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    warnings.simplefilter("ignore", GoodgainNotice)
    print(f"{platform.machine()}, Python {platform.python_version()}, {queries:,} queries")
    (labels, *_), *_ = drawn = [made_up(queries, seed) for seed in (42, 43, 44)]
    for replicates in (1, 3):
        systems = {f"system{k}": [runs[f"system{k}"] for _, runs in drawn[:replicates]] for k in range(SYSTEMS)}
        processor = time.process_time()
        whole = seconds(compare, labels, systems, MEASURES)
        processor = time.process_time() - processor  # of all threads: does not grow when the machine has other work
        print(
            f"compare, {SYSTEMS} systems x {replicates} runs x {len(MEASURES.split())} measures, {PAIRS} pairs each:",
            end=" ",
        )
        print(f"{whole:.1f} s ({processor:.1f} s of processor time)")
    ours, scipys = tests_per_pair(queries)
    print(f"tests, a pair and measure: ours {1000 * ours:.1f} ms, SciPy {1000 * scipys:.1f} ms: {scipys / ours:.1f}x")
    print(f"compare, 34 systems, 200 queries, one measure, 561 pairs: {many_systems():.1f} s")


if __name__ == "__main__":
    main()
