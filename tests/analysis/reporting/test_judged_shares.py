"""Coverage is the judged share of the documents that a system found, overall and by iteration, in every call that shows it."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import goodgain as gg
from tests.counting.test_large_files import in_blocks


def make_case(seed: int) -> tuple[dict[str, dict[str, int]], pl.DataFrame]:
    """Queries with repeats, without results in an iteration, known to run or qrels alone; some labels are below 0."""
    random = Random(seed)
    rows = [
        (f"q{query}", iteration, doc, rank)
        for query in range(8)
        for iteration in range(1, random.randint(2, 5))
        for rank, doc in enumerate(
            random.sample("abcdefghij", random.randint(1, 4)) if random.random() < 0.8 else "-", 1
        )
    ]
    run = pl.DataFrame(rows, schema=["query_id", "iteration", "doc_id", "rank"], orient="row")
    run = run.with_columns(rank=pl.when(pl.col("doc_id") == "-").then(0).otherwise("rank"), score=-pl.col("rank"))
    qrels = {
        f"q{query}": {doc: random.choice((-1, 0, 3)) for doc in random.sample("abcdefghij", 5)}
        for query in range(2, 10)
    }
    return qrels, run


def count_by_hand(
    qrels: dict[str, dict[str, int]], run: pl.DataFrame
) -> list[tuple[int | None, int, int, float | None]]:
    """Iteration (None: all), judged, unique, share: by a plain loop."""
    found: dict[tuple[str, str], int] = {}
    last = 0
    for query, iteration, doc in run.sort("iteration").select("query_id", "iteration", "doc_id").iter_rows():
        if query in qrels:
            last = max(last, iteration)
            if doc != "-":
                found.setdefault((query, doc), iteration)

    rows: list[tuple[int | None, int, int, float | None]] = []
    for wanted in (None, *range(1, last + 1)):
        docs = [pair for pair, iteration in found.items() if wanted in (None, iteration)]
        judged = sum(doc in qrels[query] for query, doc in docs)
        rows.append((wanted, judged, len(docs), judged / len(docs) if docs else None))

    return rows


@pytest.mark.parametrize("form", ["frame", "lazy", "duckdb", "text in blocks"])
def test_coverage_is_what_a_plain_loop_counts(form: str, tmp_path: Path) -> None:
    qrels, run = make_case(1)
    source: Any = run
    if form == "lazy":
        source = run.lazy()
    elif form == "duckdb":
        connection = pytest.importorskip("duckdb").connect()
        connection.register("run", run.to_arrow())
        source = connection.table("run")
    elif form == "text in blocks":
        path = tmp_path / "agent.run"
        path.write_text("".join(f"{q} {i} {d} {r} {s} tag\n" for q, i, d, r, s in run.iter_rows()))
        source = in_blocks(path, block=150)

    wanted = count_by_hand(qrels, run)
    assert [row[1:] for row in gg.coverage(qrels, {"agent": source}).rows()] == [
        (iteration, judged, unique, pytest.approx(share)) for iteration, judged, unique, share in wanted
    ]


@pytest.mark.filterwarnings("ignore::goodgain.GoodgainNotice")
def test_every_call_that_shows_coverage_shows_the_same() -> None:
    runs = {}
    for seed in (2, 3):
        qrels, runs[f"s{seed}"] = make_case(seed)
    wanted = gg.coverage(qrels, runs)
    assert_frame_equal(gg.compare(qrels, runs, "CG nDCG@3", resamples=9).coverage, wanted)
    curve = gg.curve(qrels, runs, "CG").select("system", "iteration", "coverage")
    by_iteration = wanted.filter(pl.col("iteration").is_not_null()).select("system", "iteration", "coverage")
    assert_frame_equal(curve.join(by_iteration, on=["system", "iteration"], how="semi"), by_iteration)

    for name, run in runs.items():
        of_system = wanted.filter(system=name).drop("system")
        assert_frame_equal(gg.evaluate(qrels, run, "nDCG@3").coverage, of_system)
        ledger = gg.ledger(qrels, run)
        judged = ledger.filter("judged")
        sums = judged.group_by("iteration").agg(judged=(pl.col("UR") * pl.col("coverage")).sum()).sort("iteration")
        assert sums["judged"].to_list() == pytest.approx(of_system["judged"].to_list()[1:])
        assert ledger.filter(~pl.col("judged"))["coverage"].null_count() == ledger.filter(~pl.col("judged")).height
