"""Ledger, measures and rankings equal the brute-force oracle's, in exact fractions, on random runs."""

from __future__ import annotations

from functools import cache
from random import Random

import polars as pl
import pytest

import goodgain as gg
from goodgain.counting.query_batches import QrelsByQuery, RankingRequest, consume_batches
from goodgain.measures import MEASURES
from tests.support import oracle, oracle_flattening
from tests.support.counts import how_many
from tests.support.random_runs import Case, Shape, make_case
from tests.support.tables import no_notices, qrels_frame, run_frame

NAMES = [
    *(name for name, measure in MEASURES.items() if measure.declaration.cutoff != "required"),
    *(f"{name}@{at}" for name, measure in MEASURES.items() if measure.declaration.cutoff != "none" for at in (1, 3, 7)),
    "IterationsForAllGoodResults(pool='retrieved')",
    "CG(rel=1.8)",
    "SRE(rel=3)@2",
    "DRAG(rel=0.25)@4",
    "nDCGG(per=5)",  # no iteration of the random runs has more results
    "nDCGG(per=5)@2",
    "nDCGG(rel=0.25,per=6)@1",
]
CASES = how_many(30, full=300)


def random_case(seed: int) -> Case:
    random = Random(seed)
    switches = {
        name: random.random() < 0.5 for name in ("fractional", "by_iteration", "gaps", "words", "score_follows_rank")
    }
    return make_case(random, Shape(**switches))


@cache
def all_cases(labels: str | None) -> Case:
    """The queries of all random runs in one run, which is quicker to score and as hard."""
    run, qrels = [], []
    for seed in range(CASES):
        case = random_case(seed)
        if case.labels == labels:
            run += [row._replace(query_id=f"{seed}-{row.query_id}") for row in case.run]
            qrels += [row._replace(query_id=f"{seed}-{row.query_id}") for row in case.qrels]
    return Case(run, qrels, labels)


@pytest.mark.parametrize("labels", [None, "iteration"])
def test_every_measure_of_every_query_is_the_oracles(labels: str | None) -> None:
    run, rows, _ = all_cases(labels)
    with no_notices():
        scores = gg.evaluate(gg.read_qrels(qrels_frame(rows), labels=labels), run_frame(run), NAMES)
    found: dict[str, dict[str, float]] = {name: {} for name in NAMES}
    for query_id, name, value in scores.per_query.iter_rows():
        found[name][query_id] = oracle.to_float(value)
    tables = {
        rel: oracle.count(run, rows, rel=rel, labels=labels) for rel in {oracle.parse(name).rel for name in NAMES}
    }

    for name in NAMES:
        measure, at, rel, pool, per = oracle.parse(name)
        wanted = {
            query: oracle.value(tables[rel], query, measure, at=at, pool=pool, per=per) for query in tables[rel].pools
        }
        assert found[name] == pytest.approx(
            {q: oracle.to_float(v) for q, v in wanted.items()}, abs=1e-12, rel=1e-12, nan_ok=True
        ), name
        assert oracle.to_float(scores[name]) == pytest.approx(
            oracle.to_float(oracle.mean(wanted)), abs=1e-12, rel=1e-12, nan_ok=True
        ), name


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(0, CASES, 250))
def test_a_measure_alone_has_the_digits_that_it_has_beside_all_others(seed: int) -> None:
    """Measures that need the same sum share it."""
    run, rows, labels = random_case(seed)
    with no_notices():
        qrels, searched = gg.read_qrels(qrels_frame(rows), labels=labels), gg.read_run(run_frame(run))
        together = gg.evaluate(qrels, searched, NAMES).per_query
        for name in NAMES:
            alone = gg.evaluate(qrels, searched, name).per_query
            assert alone.equals(together.filter(pl.col("measure") == name)), name


@pytest.mark.parametrize("seed", range(0, CASES, 40))
def test_each_random_run_by_itself_has_the_oracles_means(seed: int) -> None:
    run, rows, labels = random_case(seed)
    with no_notices():
        scores = gg.evaluate(gg.read_qrels(qrels_frame(rows), labels=labels), run_frame(run), NAMES)
    wanted = {name: oracle.to_float(oracle.mean(oracle.per_query(name, run, rows, labels=labels))) for name in NAMES}
    means = {name: oracle.to_float(mean) for name, mean in scores.mean().items()}
    assert means == pytest.approx(wanted, abs=1e-12, rel=1e-12, nan_ok=True)


@pytest.mark.parametrize("labels", [None, "iteration"])
def test_the_ledger_is_the_oracles(labels: str | None) -> None:
    run, rows, _ = all_cases(labels)
    with no_notices():
        ledger = gg.ledger(gg.read_qrels(qrels_frame(rows), labels=labels), run_frame(run))
    wanted = oracle.count(run, rows, labels=labels)
    columns = ("query_id", "iteration", "R", "UR", "Dup", "GR", "G", "Unjudged", "judged")
    found = {row[:2]: row[2:] for row in ledger.select(columns).iter_rows()}
    assert found.keys() == wanted.ledger.keys()
    for key, line in wanted.ledger.items():
        assert found[key] == pytest.approx((*line._replace(G=float(line.G)), key[0] in wanted.pools), abs=1e-12), key


@pytest.mark.parametrize("order", oracle_flattening.ORDERS)
def test_the_flattened_ranking_is_the_oracles(order: str) -> None:
    run, _, _ = all_cases(None)
    with no_notices():
        ranking = gg.flatten(run_frame(run), order=order)
    found: dict[str, set[tuple[str, float]]] = {}
    for query_id, doc_id, score in ranking.select("query_id", "doc_id", "score").iter_rows():
        found.setdefault(query_id, set()).add((doc_id, score))
    wanted = {query: set(docs) for query, docs in oracle_flattening.flatten(run, order).items() if docs}
    assert found == wanted


@pytest.mark.parametrize("labels", [None, "iteration"])
def test_classic_measures_take_the_oracles_label_of_a_document(labels: str | None) -> None:
    run, rows, _ = all_cases(labels)
    with no_notices():
        qrels = gg.read_qrels(qrels_frame(rows), labels=labels)
        searched = gg.read_run(run_frame(run))
        (batch,) = consume_batches(list, qrels, searched, rels=[2], ranking=RankingRequest("seen"))
        by_query = QrelsByQuery(qrels)
        found = pl.concat([by_query.take(batch), by_query.take_rest()], how="vertical_relaxed")
    wanted = oracle_flattening.classic_labels(run, rows, labels=labels)
    flat = {(query, doc): float(label) for query, docs in wanted.items() for doc, label in docs.items()}
    assert {(q, d): label for q, d, label in found.select("query_id", "doc_id", "relevance").iter_rows()} == flat
