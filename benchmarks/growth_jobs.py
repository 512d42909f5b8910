"""The jobs of growth.py: `python growth_jobs.py JOB QRELS RUN` does one and prints its seconds, its peak bytes and what it found.

Imports, and frames in memory, are made before the clock starts; what is compared is compared after it has stopped.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

TEN = "CG RG DCGG DRG AvgGain@3 RAG DRAG SRE SRR IterationsForAllGoodResults"
CLASSIC = "nDCG@10 RR@10 R@100"

taken: dict[str, float] = {}


@contextmanager
def clock() -> Iterator[None]:
    """Seconds and peak memory of what stands inside; the peak has what was loaded before, too."""
    began = time.perf_counter()
    yield
    taken["seconds"] = time.perf_counter() - began
    taken["peak"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def make(qrels: Path, run: Path) -> None:
    """Not measured: run and qrels, the run as Parquet and as a flattened text."""
    import polars as pl
    from making import made

    import goodgain

    queries = int(run.stem)
    made(run.parent, queries=queries, labels=20 * queries)
    if not run.with_suffix(".flat").exists():
        names = ["query_id", "iteration", "doc_id", "rank", "score", "tag"]
        frame = pl.read_csv(run, separator=" ", has_header=False, new_columns=names)
        frame.write_parquet(run.with_suffix(".parquet"))
        flat = goodgain.flatten(frame).select(names)
        flat.write_csv(run.with_suffix(".flat"), separator=" ", include_header=False, quote_style="never")


def read_csv(qrels: Path, run: Path) -> None:
    import polars as pl

    with clock():
        pl.read_csv(run, separator=" ", has_header=False, quote_char=None, columns=[0, 1, 2])


def from_text(qrels: Path, run: Path) -> dict[str, float]:
    import goodgain

    with clock():
        scores = goodgain.evaluate(qrels, run, TEN)
    return scores.mean()


def from_polars(qrels: Path, run: Path) -> dict[str, float]:
    import polars as pl

    import goodgain

    frame = pl.read_parquet(run.with_suffix(".parquet"))
    with clock():
        scores = goodgain.evaluate(qrels, frame, TEN)
    return scores.mean()


def from_duckdb(qrels: Path, run: Path) -> dict[str, float]:
    import duckdb

    import goodgain

    relation = duckdb.read_parquet(str(run.with_suffix(".parquet")))  # a plan: the rows are read inside the clock
    with clock():
        scores = goodgain.evaluate(qrels, relation, TEN)
    return scores.mean()


def from_pandas(qrels: Path, run: Path) -> dict[str, float]:
    import pandas as pd

    import goodgain

    frame = pd.read_parquet(run.with_suffix(".parquet"))
    with clock():
        scores = goodgain.evaluate(qrels, frame, TEN)
    return scores.mean()


def byquery(qrels: Path, run: Path) -> dict[str, float]:
    """ir_measures with pandas functions; the frames are read before. Values are compared query by query."""
    import ir_measures
    import pandas as pd
    from obvious_measures import TEN as OBVIOUS

    import goodgain

    names = {"sep": " ", "header": None}
    labels = pd.read_csv(qrels, names=["query_id", "iteration", "doc_id", "relevance"], **names)
    frame = pd.read_parquet(run.with_suffix(".parquet"))
    with clock():
        found = list(ir_measures.iter_calc(list(OBVIOUS.values()), labels, frame))
    name_of = {measure: name for name, measure in OBVIOUS.items()}
    values = {(name_of[metric.measure], metric.query_id): metric.value for metric in found}
    scores = goodgain.evaluate(qrels, run, TEN)
    for query_id, name, value in scores.per_query.select("query_id", "measure", "value").iter_rows():
        if not abs(values[name, query_id] - value) <= 1e-9:
            raise SystemExit(f"{name} of {query_id}: {values[name, query_id]} by define_byquery, {value} by goodgain")
    return scores.mean()


def with_classic(qrels: Path, run: Path) -> dict[str, float]:
    import ir_measures  # noqa: F401  # loaded before the clock starts
    import pytrec_eval  # noqa: F401

    import goodgain

    with clock():
        scores = goodgain.evaluate(qrels, run, f"{TEN} {CLASSIC}")
    return scores.mean()


def with_ranx(qrels: Path, run: Path) -> dict[str, float]:
    """The three classic measures alone, the second time: ranx compiles anew for each length of ids."""
    import ranx

    def evaluated() -> Any:
        judged = ranx.Qrels.from_file(str(qrels), kind="trec")
        ranking = ranx.Run.from_file(str(run.with_suffix(".flat")), kind="trec")
        return ranx.evaluate(judged, ranking, ["ndcg@10", "mrr@10", "recall@100"], make_comparable=True)

    evaluated()
    with clock():
        means = evaluated()
    return dict(zip(CLASSIC.split(), map(float, means.values()), strict=True))


def with_pytrec_eval(qrels: Path, run: Path) -> dict[str, float]:
    """The three classic measures alone, from dicts that plain Python reads."""
    import pytrec_eval

    with clock():
        judged: dict[str, dict[str, int]] = {}
        ranking: dict[str, dict[str, float]] = {}
        with qrels.open() as lines:
            for line in lines:
                query_id, _, doc_id, label = line.split()
                judged.setdefault(query_id, {})[doc_id] = int(label)
        with run.with_suffix(".flat").open() as lines:
            for line in lines:
                query_id, _, doc_id, _, score, _ = line.split()
                ranking.setdefault(query_id, {})[doc_id] = float(score)
        found = pytrec_eval.RelevanceEvaluator(judged, {"ndcg_cut.10", "recip_rank", "recall.100"}).evaluate(ranking)
        values = found.values()
        sums = {
            "nDCG@10": sum(value["ndcg_cut_10"] for value in values),
            "RR@10": sum(value["recip_rank"] for value in values if value["recip_rank"] >= 0.1),
            "R@100": sum(value["recall_100"] for value in values),
        }
    return {name: total / len(judged) for name, total in sums.items()}


def from_spark(qrels: Path, run: Path) -> dict[str, float]:
    """Spark with two local cores, the second time it is asked; the peak is Python's alone, without Java's."""
    from pyspark.sql import SparkSession

    import goodgain

    quiet = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false", "spark.driver.host": "127.0.0.1"}
    builder = SparkSession.builder.master("local[2]").config("spark.sql.shuffle.partitions", "2")
    spark = builder.config("spark.driver.memory", "4g").config(map=quiet).getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    frame = spark.read.parquet(str(run.with_suffix(".parquet")))
    goodgain.evaluate(qrels, frame, TEN)
    with clock():
        scores = goodgain.evaluate(qrels, frame, TEN)
    return scores.mean()


#: What the table says -> the job; the first is the peer of all.
JOBS: dict[str, Callable[[Path, Path], dict[str, float] | None]] = {
    "pl.read_csv of three columns": read_csv,
    "goodgain from text": from_text,
    "goodgain on Polars": from_polars,
    "goodgain on DuckDB (Parquet)": from_duckdb,
    "goodgain on pandas": from_pandas,
    "ir_measures, define_byquery": byquery,
    "goodgain from text, and nDCG@10 RR@10 R@100": with_classic,
    "ranx, those three of the flattened run": with_ranx,
    "pytrec_eval, those three, dicts read by Python": with_pytrec_eval,
}
SPARK = {"goodgain on Spark (local, 2 cores)": from_spark}

if __name__ == "__main__":
    known: dict[str, Callable[[Path, Path], Any]] = {"make": make, **JOBS, **SPARK}
    outcome = known[sys.argv[1]](Path(sys.argv[2]), Path(sys.argv[3]))
    print(json.dumps([taken.get("seconds"), taken.get("peak"), outcome or {}]))
