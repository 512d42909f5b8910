"""Bounds hold for every label that unjudged results could have, and some labels reach them: tried by brute force."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import Any

import ir_measures
import polars as pl
import pytest
from polars.testing import assert_frame_equal

import goodgain as gg
from goodgain.counting.run_in_blocks import RunFile
from goodgain.measures.bounds import find_rule
from tests.counting.test_large_files import in_blocks
from tests.support.counts import how_many, some_of
from tests.support.tables import in_one_search

#: Every measure with bounds, in some of its forms; `tests/test_lists.py` holds that none is missing.
BOUNDED = (
    "CG CG@1 CG(rel=1)@2 RG RG@3 DCGG DCGG@1 DRG@2 AvgGain@1 AvgGain@2 RAG DRAG SRE SRE(rel=1)@2 SRR NumIter "
    "SearchPrecision@2 NumResults@1 NumUnique NumGood@2 NumDup P@1 P@3 P(rel=2)@2 RR RR@2 RR(rel=2) Success@1 Success(rel=2)@3 "
    "SetP NumRet NumRet(rel=2) RBP(rel=1) RBP(rel=2,p=0.5) RankDCG RankDCG@2 RankDCG(dcg='exp-log2')@3"
)
SOME = "CG SRE(rel=1)@2 AvgGain@1 P@2 RR NumRet(rel=2) RankDCG(dcg='exp-log2')@3"
UNBOUNDED = (
    "nDCG@3 R@3 AP Rprec SetR SetF nCG nDCGG IterationsForAllGoodResults NumUnjudged Judged Fallout@3 P(judged_only=True)@3 "
    "AllGood EvidenceRecall SearchGain GradedP@3 GradedRR@3 GradedCG@3 NumRel RankIDCG Unjudged@3"
)
Labels = dict[str, dict[str, float]]
quiet = pytest.mark.filterwarnings("ignore::goodgain.GoodgainNotice")


def make_run(random: Random, queries: list[str]) -> pl.DataFrame:
    """Two iterations a query, with repeats and ties; a query is sometimes not searched."""
    rows = [
        (query, iteration, doc, float(random.randint(0, 2)))
        for query in queries
        if random.random() < 0.9
        for iteration in (1, 2)
        for doc in random.sample("abcdef", random.randint(1, 3))
    ]
    rows = rows or [(queries[0], 1, "a", 1.0)]
    return pl.DataFrame(rows, schema=["query_id", "iteration", "doc_id", "score"], orient="row")


def make_qrels(random: Random, queries: list[str]) -> Labels:
    """Three labels a query, so that most results have none; 3 is always one of them."""
    qrels = {query: {doc: random.choice((0, 1, 2, 3)) for doc in random.sample("abcdefgh", 3)} for query in queries}
    qrels[queries[0]]["z"] = 3
    return qrels


def label_in_every_way(qrels: Labels, *runs: pl.DataFrame) -> list[dict[str, float]]:
    """The labels of query q with each way to give 0, 1 and 3 to the results that have none."""
    docs = sorted({doc for run in runs for doc in run.filter(query_id="q").get_column("doc_id")})
    unjudged = [doc for doc in docs if doc not in qrels["q"]]
    ways = itertools.product((0, 1, 3), repeat=len(unjudged))
    return [qrels["q"] | dict(zip(unjudged, labels, strict=True)) for labels in ways]


def evaluate_every_way(ways: list[dict[str, float]], run: pl.DataFrame) -> dict[str, list[float]]:
    """The values of query q, searched as in the run, with each of these labels: each way is a query of its own."""
    copies = pl.DataFrame({"way": [f"{k:05}" for k in range(len(ways))]}).join(run.filter(query_id="q"), how="cross")
    qrels = {f"{k:05}": labels for k, labels in enumerate(ways)}
    rows = copies.drop("query_id").rename({"way": "query_id"})
    values = gg.evaluate(qrels, rows, BOUNDED).per_query.sort("query_id")
    return dict(values.group_by("measure", maintain_order=True).agg("value").iter_rows())


def test_measures_that_a_label_may_lower_have_no_rule() -> None:
    assert not any(map(find_rule, gg.measures.names.parse_measures(UNBOUNDED)))


@quiet
@pytest.mark.parametrize("seed", range(how_many(1, full=18)))
def test_no_labels_of_unjudged_results_give_a_value_beyond_its_bounds_and_some_reach_them(seed: int) -> None:
    random = Random(seed)
    qrels, run = make_qrels(random, ["q"]), make_run(random, ["q"])
    scores = gg.evaluate(qrels, run, BOUNDED, bounds=True)
    reached = evaluate_every_way(label_in_every_way(qrels, run), run)
    for name, bounds in scores.bounds.items():
        assert bounds == pytest.approx((min(reached[name]), max(reached[name])), abs=1e-12), name
        assert bounds is not None and bounds[0] == scores[name]


@pytest.mark.slow
@quiet
@pytest.mark.parametrize("seed", range(how_many(1, full=18)))
def test_no_labels_give_a_difference_beyond_its_bounds_and_some_reach_them(seed: int) -> None:
    random = Random(1000 + seed)
    qrels, runs = make_qrels(random, ["q"]), {name: make_run(random, ["q"]) for name in ("a", "b")}
    found = gg.compare(qrels, runs, BOUNDED, bounds=True, resamples=9).pairs
    ways = label_in_every_way(qrels, *runs.values())
    old, new = (evaluate_every_way(ways, run) for run in runs.values())
    for row in found.iter_rows(named=True):
        name, now = row["measure"], row["difference"]
        values = [of_new - of_old for of_new, of_old in zip(new[name], old[name], strict=True)]
        assert [row["least"], row["most"]] == pytest.approx([min(values), max(values)], abs=1e-12), name
        turned = any(value * now < -1e-12 if abs(now) > 1e-12 else abs(value) > 1e-12 for value in values)
        assert row["can_turn"] == turned, name


@pytest.mark.slow
@quiet
@pytest.mark.parametrize("seed", range(how_many(1, full=8)))
def test_bounds_of_many_queries_are_the_means_of_theirs(seed: int) -> None:
    random = Random(2000 + seed)
    queries = [f"q{k}" for k in range(4)]
    qrels, runs = make_qrels(random, queries), {name: make_run(random, queries) for name in ("a", "b")}
    whole = gg.compare(qrels, runs, SOME, bounds=True, resamples=9).pairs
    largest = {"z": {"z": 3}}  # the largest label is that of all qrels
    parts = [
        gg.compare(
            {query: qrels[query]} | largest,
            {name: run.filter(query_id=query) for name, run in runs.items()},
            SOME,
            bounds=True,
            resamples=9,
        ).pairs
        for query in queries
    ]
    for name in ("least", "most"):
        wanted = [sum(column) * 2 / 4 for column in zip(*(part[name].to_list() for part in parts), strict=True)]
        assert whole[name].to_list() == pytest.approx(wanted, abs=1e-12)


@quiet
def test_the_bounds_of_a_value_are_those_with_every_unjudged_result_labelled() -> None:
    random = Random(3)
    queries = [f"q{k}" for k in range(20)]
    qrels, run = make_qrels(random, queries), make_run(random, queries)
    scores = gg.evaluate(qrels, run, BOUNDED, bounds=True)
    for end, label in ((0, 0), (1, 3)):
        labelled = {query: dict(docs) for query, docs in qrels.items()}
        for query, doc in run.select("query_id", "doc_id").iter_rows():
            labelled[query].setdefault(doc, label)
        wanted = gg.evaluate(labelled, run, BOUNDED)
        assert {name: bound[end] for name, bound in scores.bounds.items() if bound} == pytest.approx(
            wanted.mean(), abs=1e-12
        )
        column = scores.per_query.get_column(("least", "most")[end]).to_list()
        assert column == pytest.approx(wanted.per_query.get_column("value").to_list(), abs=1e-12)


@pytest.mark.slow
@quiet
@pytest.mark.parametrize("form", some_of(["text in blocks", "lazy polars", "duckdb"], every=3))
def test_bounds_are_the_same_on_engines_and_in_blocks(form: str, tmp_path: Path) -> None:
    random = Random(4)
    queries = [f"q{k}" for k in range(20)]
    qrels, run = make_qrels(random, queries), make_run(random, queries)
    run = run.with_columns(rank=pl.int_range(1, pl.len() + 1).over("query_id", "iteration"))
    wanted = gg.evaluate(qrels, run, BOUNDED, bounds=True).bounds
    source: Any = run.lazy()

    if form == "duckdb":
        connection = pytest.importorskip("duckdb").connect()
        connection.register("run", run.to_arrow())
        source = connection.table("run")
    elif form == "text in blocks":
        path = tmp_path / "agent.run"
        path.write_text("".join(f"{q} {i} {d} {r} {s} tag\n" for q, i, d, s, r in run.iter_rows()))
        source = in_blocks(path, block=200)

    other = gg.compare(qrels, {"a": source, "b": run}, "P@2 RR CG", bounds=True, resamples=9).pairs
    assert other.select("least", "most").rows() == [(0, 0)] * 3  # the same run: no label makes a difference
    found = gg.evaluate(qrels, source, BOUNDED, bounds=True).bounds
    assert found.keys() == wanted.keys()

    for name, bounds in found.items():
        assert bounds == pytest.approx(wanted[name], abs=1e-12), name


@pytest.mark.slow
@quiet
def test_bounds_of_differences_are_those_of_whole_queries_where_a_large_file_scatters_them(tmp_path: Path) -> None:
    random = Random(5)
    rows = [(f"q{q}", i, f"d{doc}") for q in range(6) for i in (1, 2) for doc in random.sample(range(30), 12)]
    random.shuffle(rows)
    run = pl.DataFrame(rows, schema=["query_id", "iteration", "doc_id"], orient="row")
    qrels = {f"q{q}": {f"d{doc}": random.choice((0, 1, 3)) for doc in random.sample(range(30), 8)} for q in range(6)}
    run.write_parquet(path := tmp_path / "agent.parquet")
    large = RunFile(path, "close", 1, is_text=False, block=32 * 20)  # 20 rows a block
    other = run.reverse()
    wanted, found = (
        gg.compare(qrels, {"a": a, "b": other}, "P@3 RR CG@1", bounds=True, resamples=9).pairs for a in (run, large)
    )
    columns = ["measure", "difference", "least", "most", "can_turn"]
    assert_frame_equal(found.select(columns), wanted.select(columns))


def test_measures_that_can_fall_with_a_label_have_no_bounds() -> None:
    qrels, run = {"q": {"a": 2, "b": 0}}, in_one_search({"q": {"a": 2.0, "b": 1.0}})
    scores = gg.evaluate(qrels, run, [*UNBOUNDED.split(), ir_measures.P @ 1], bounds=True)
    assert [name for name, bounds in scores.bounds.items() if bounds] == ["P@1"]
    assert gg.evaluate(qrels, run, "P@1", bounds=True, provider="pytrec_eval").bounds == {"P@1": None}
    with pytest.raises(gg.InputError, match="compute them with evaluate"):
        print(gg.evaluate(qrels, run, "P@1").bounds)


@pytest.mark.slow
@quiet
def test_where_all_results_are_judged_or_there_are_none_nothing_can_move() -> None:
    qrels = {"q": {"a": 2, "b": 0}, "r": {"a": 1}}
    runs: Mapping[str, Any] = {
        "all": {"q": {"b": 2.0, "a": 1.0}, "r": {"a": 1.0}},
        "some": {"q": {"a": 1.0}},
        "none": pl.DataFrame({"query_id": "q", "iteration": 1, "doc_id": ["-"]}),
    }
    for row in gg.compare(qrels, runs, BOUNDED, bounds=True, resamples=9).pairs.to_dicts():
        assert [row["least"], row["most"]] == pytest.approx([row["difference"]] * 2, abs=1e-15)
        assert not row["can_turn"]
