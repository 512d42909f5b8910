"""What small inputs cost: processor time of one call, beside ir_measures in the same process.

    python benchmarks/small.py

Objects are already read: 25 queries with 6 searches of 10 results, and 30 labels a query. The comparison has 100 systems on 30
queries, with 4 searches of 5 results, against one baseline. Each time is the least of five rounds.
"""

from __future__ import annotations

import platform
import time
import warnings
from collections.abc import Callable, Mapping

import ir_measures
import numpy as np
import polars as pl
from ir_measures import RR, Qrel, R, ScoredDoc, nDCG

from goodgain import GoodgainNotice, Scorer, compare, evaluate, read_qrels, read_run
from goodgain.formats import Qrels, Run

CLASSIC = "nDCG@10 RR@10 R@100"
OURS = "nCG@6 SRR@6"
TEN = "CG@6 RG@6 DCGG@6 AvgGain@6 RAG@6 DRAG@6 SRE@6 SRR@6 nCG@6 nDCGG@6"
ROUNDS = 5
REPEATS = 10


def make_qrels(queries: int, pages: int, labels: int) -> Qrels:
    random = np.random.default_rng(1)
    rows = []
    for query in range(queries):
        for page in random.choice(pages, labels, replace=False):
            rows.append((f"q{query:03}", f"d{page}", int(random.integers(0, 4))))
    return read_qrels(pl.DataFrame(rows, schema=["query_id", "doc_id", "relevance"], orient="row"))


def make_run(queries: int, searches: int, results: int, *, pages: int, seed: int) -> Run:
    random = np.random.default_rng(seed)
    rows = []
    for query in range(queries):
        for iteration in range(1, searches + 1):
            for rank, page in enumerate(random.choice(pages, results, replace=False), 1):
                rows.append((f"q{query:03}", iteration, f"d{page}", rank))
    return read_run(pl.DataFrame(rows, schema=["query_id", "iteration", "doc_id", "rank"], orient="row"))


def measure_times(calls: Mapping[str, Callable[[], object]]) -> dict[str, float]:
    """Return the milliseconds of processor time of each call, of all threads. The calls take turns."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(ROUNDS + 1):  # the first round warms up
        for name, call in calls.items():
            start = time.process_time()
            for _ in range(REPEATS):
                call()
            times[name].append((time.process_time() - start) / REPEATS)
    return {name: 1000 * min(of_call[1:]) for name, of_call in times.items()}


def main() -> None:
    warnings.simplefilter("ignore", GoodgainNotice)
    qrels = make_qrels(25, pages=200, labels=30)
    run = make_run(25, 6, 10, pages=200, seed=2)
    labels = [
        Qrel(*row, "0") for row in qrels.frame.select("query_id", "doc_id", "relevance").cast({"relevance": int}).rows()
    ]
    ranking = [ScoredDoc(*row) for row in run.flatten().select("query_id", "doc_id", "score").rows()]
    scorer = Scorer(qrels, TEN)
    searches = [[f"d{10 * search + rank}" for rank in range(10)] for search in range(6)]

    peer = f"ir_measures, {CLASSIC}"
    times = measure_times(
        {
            peer: lambda: ir_measures.calc_aggregate([nDCG @ 10, RR @ 10, R @ 100], labels, ranking),
            f"evaluate, {CLASSIC}": lambda: evaluate(qrels, run, CLASSIC),
            f"evaluate, {OURS}": lambda: evaluate(qrels, run, OURS),
            "Scorer.score, ten measures of one query": lambda: scorer.score("q000", searches),
        }
    )
    qrels_of_systems = make_qrels(30, pages=100, labels=20)
    systems = {f"system{k}": make_run(30, 4, 5, pages=100 - k // 2, seed=k) for k in range(100)}
    start = time.process_time()
    compare(qrels_of_systems, systems, f"{OURS} CG@3 SRE@3", baseline="system0")
    times["compare, 100 systems, 99 pairs, four measures"] = 1000 * (time.process_time() - start)

    print(f"{platform.machine()}, Python {platform.python_version()}\n")
    print("| call | processor time in ms | times ir_measures |")
    print("|---|---:|---:|")
    for name, taken in times.items():
        print(f"| {name} | {taken:,.2f} | {taken / times[peer]:,.2f} |")


if __name__ == "__main__":
    main()
