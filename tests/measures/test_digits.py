"""A quotient has the digits of Python's a / b: for one query and for many, on every engine, as in the hosts."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import ir_measures
import polars as pl
import pytest
import pytrec_eval

import goodgain as gg
from goodgain.measures.ranking_values import score_ranking
from tests.measures.test_ranked_values import ALL
from tests.support.counts import how_many
from tests.support.forms import FRAMES, write_table
from tests.support.ranking_cases import FRACTIONAL, WHOLE, make_case

DEEPEST = 49
#: One query for each number of relevant documents, which stand first.
FOUND = {f"q{number}": number for number in range(1, DEEPEST + 1)}
QRELS = {query: {f"d{rank}": 3 for rank in range(number)} for query, number in FOUND.items()}
RANKING = {query: {f"d{rank}": 100.0 - rank for rank in range(DEEPEST)} for query in FOUND}
CUTOFFS = range(1, DEEPEST + 1)
#: The rules of these are not quotients: Polars raises p or 2 to a power in another way if there is one row only.
POWERS = ("RBP", "RBPResidual", "ERR", "goodgain.ERR")


def _per_query(run: Any, qrels: Any, measures: Any) -> dict[tuple[str, str], float]:
    values = gg.evaluate(qrels, run, measures).per_query
    return {(measure, query): value for query, measure, value in values.select("query_id", "measure", "value").rows()}


@pytest.mark.parametrize("form", ["polars", "lazy", "duckdb", "parquet"])
def test_precision_and_rates_have_the_digits_of_pythons_quotient(form: str, tmp_path: Path) -> None:
    rows = [(query, 1, doc, score) for query, docs in RANKING.items() for doc, score in docs.items()]
    run = pl.DataFrame(rows, schema=["query_id", "iteration", "doc_id", "score"], orient="row")
    judged = [(query, doc, label) for query, docs in QRELS.items() for doc, label in docs.items()]
    qrels = pl.DataFrame(judged, schema=["query_id", "doc_id", "relevance"], orient="row")
    measures = [
        *(ir_measures.P @ k for k in CUTOFFS),
        *(gg.Unjudged @ k for k in CUTOFFS),
        *(gg.RG @ i for i in CUTOFFS),
        gg.ElevenPointAP,
    ]
    given = [
        FRAMES[form](table) if form in FRAMES else write_table(table, tmp_path / f"{k}.parquet")
        for k, table in enumerate((run, qrels))
    ]
    found = _per_query(*given, measures)
    for query, number in FOUND.items():
        for k in CUTOFFS:
            hits = min(number, k)
            assert found[f"P@{k}", query] == hits / k
            assert found[f"Unjudged@{k}", query] == (k - hits) / k
            assert found[f"RG@{k}", query] == 3 * number / k


def test_precision_has_the_digits_of_pytrec_eval() -> None:
    evaluator = pytrec_eval.RelevanceEvaluator(QRELS, {"P." + ",".join(map(str, CUTOFFS))})
    theirs = evaluator.evaluate(RANKING)
    ours = _per_query(RANKING, QRELS, [ir_measures.P @ k for k in CUTOFFS])
    assert ours == {(f"P@{k}", query): theirs[query][f"P_{k}"] for query in FOUND for k in CUTOFFS}


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(how_many(1, full=4)))
def test_a_query_alone_has_the_digits_it_has_among_others(seed: int) -> None:
    case = make_case(Random(seed), queries=15, labels=(*WHOLE, -1, *FRACTIONAL))
    measures = [measure for measure in ALL if measure.NAME not in POWERS]
    together = score_ranking(measures, case.ranking, case.qrels)
    alone = [
        score_ranking(measures, case.ranking.filter(pl.col("query_id") == query), qrels)
        for (query,), qrels in case.qrels.group_by("query_id", maintain_order=True)
    ]
    assert pl.concat(alone).sort("query_id").rows() == together.rows()


@pytest.mark.slow
def test_a_query_alone_has_the_same_good_gain_values() -> None:
    random = Random(5)
    # Sums of whole labels are exact, so that the quotient alone decides on the digits.
    measures = "RG@3 RG@7 SRE@3 SRR@7 nCG@3 AvgGain@3 RG SRE SRR"
    rows = [
        (f"q{query}", iteration, f"d{random.randrange(40)}", 1.0)
        for query in range(30)
        for iteration in range(1, 6)
        for _ in range(random.randrange(1, 8))
    ]
    run = pl.DataFrame(rows, schema=["query_id", "iteration", "doc_id", "score"], orient="row").unique(
        ["query_id", "iteration", "doc_id"], maintain_order=True
    )
    qrels = pl.DataFrame(
        [(f"q{query}", f"d{doc}", random.randrange(4)) for query in range(30) for doc in range(40)],
        schema=["query_id", "doc_id", "relevance"],
        orient="row",
    )
    together = _per_query(run, qrels, measures)
    for query in qrels["query_id"].unique():
        here = pl.col("query_id") == query
        alone = _per_query(run.filter(here), qrels.filter(here), measures)
        assert alone == {key: value for key, value in together.items() if key[1] == query}
