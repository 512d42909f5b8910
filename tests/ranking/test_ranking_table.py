"""The ranking table: positions in the orders of three hosts, labels, and what is judged of each query."""

from __future__ import annotations

from random import Random

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from goodgain.ranking.ranking_table import POSITIONS, number_judgments, tabulate_ranking
from tests.support.counts import how_many
from tests.support.ranking_cases import DOCS, SCORES, RankedCase, make_case
from tests.support.ranking_oracle import in_gdevals_order, in_msmarcos_order, in_trec_evals_order

ORDERS = {"k": in_trec_evals_order, "k_id": in_msmarcos_order, "k_gdeval": in_gdevals_order}
any_case = st.integers(0, 2**32).map(lambda seed: make_case(Random(seed)))


def positions(case: RankedCase) -> pl.DataFrame:
    judgments = number_judgments(case.qrels)
    rows = tabulate_ranking(case.ranking, judgments, positions=POSITIONS, unjudged=True).rows
    missing = [pl.col("k").alias(name) for name in POSITIONS if name not in rows.columns]
    return rows.with_columns(missing, query_id=judgments.query_ids.gather(rows["query"]))


@settings(deadline=None, max_examples=how_many(10, full=40))
@given(any_case)
def test_positions_are_those_of_trec_eval_msmarco_and_gdeval(case: RankedCase) -> None:
    rows = positions(case)
    for name, order in ORDERS.items():
        for query in case.labels:
            of_query = rows.filter(pl.col("query_id") == query).sort(name)
            assert of_query["doc_id"].to_list() == order(case.scores.get(query, {}))
            assert of_query[name].to_list() == list(range(1, of_query.height + 1))


@settings(deadline=None, max_examples=how_many(10, full=40))
@given(any_case)
def test_a_row_has_the_label_of_its_document_and_null_without_one(case: RankedCase) -> None:
    found = {
        (query, doc): label for query, doc, label in positions(case).select("query_id", "doc_id", "relevance").rows()
    }
    assert found == {
        (query, doc): case.labels[query].get(doc)
        for query, docs in case.scores.items()
        if query in case.labels
        for doc in docs
    }


def test_tied_documents_are_in_the_order_of_each_host() -> None:
    ranking = pl.DataFrame({"query_id": "q", "doc_id": ["a", "b", "c", "d"], "score": [-0.0, 0.0, 1.0 + 1e-9, 1.0]})
    judgments = number_judgments(pl.DataFrame({"query_id": ["q"], "doc_id": ["x"], "relevance": [1.0]}))
    rows = tabulate_ranking(ranking, judgments, positions=POSITIONS, unjudged=True).rows.sort("doc_id")
    assert rows["k"].to_list() == [4, 3, 2, 1]  # c and d tie as 32-bit floats
    assert rows["k_id"].to_list() == [3, 4, 1, 2]
    assert rows["k_gdeval"].to_list() == [4, 3, 1, 2]


def test_a_ranking_without_ties_has_one_column_of_positions() -> None:
    ranking = pl.DataFrame({"query_id": ["q"] * 3 + ["r"] * 2, "doc_id": list("abcab"), "score": [3.0, 2, 1, 1, 2]})
    judgments = number_judgments(pl.DataFrame({"query_id": ["q", "r"], "doc_id": ["a", "a"], "relevance": [1.0, 2.0]}))
    table = tabulate_ranking(ranking, judgments, positions=POSITIONS)
    assert table.rows.to_dict(as_series=False) == {
        "query": [0, 1], "doc_id": ["a", "a"], "k": [1, 2], "relevance": [1.0, 2.0],
    }  # fmt: skip
    assert table.retrieved.to_dict(as_series=False) == {"query": [0, 1], "NumRet": [3, 2]}


def test_judged_documents_are_counted_for_every_query_and_threshold() -> None:
    qrels = pl.DataFrame(
        {"query_id": ["b", "b", "a", "b"], "doc_id": ["x", "y", "x", "z"], "relevance": [2.5, -1.0, 0.0, 1.0]}
    )
    counts = number_judgments(qrels).count_judged([1, 2.5])
    assert counts.rows(named=True) == [
        {"query": 0, "query_id": "a", "NumJudged": 1, "NumRel(rel=1)": 0, "NumRel(rel=2.5)": 0},
        {"query": 1, "query_id": "b", "NumJudged": 3, "NumRel(rel=1)": 2, "NumRel(rel=2.5)": 1},
    ]
    assert number_judgments(qrels).rank_ideally({1: 4}).rows() == [(1, 1, 4.0), (1, 2, 2.5)]


@pytest.mark.parametrize("seed", range(5))
def test_large_rankings_with_few_distinct_scores_are_in_trec_evals_order(seed: int) -> None:
    random = Random(seed)
    docs = [f"{random.choice(DOCS)}-{n}" for n in range(3000)]
    scores = {doc: random.choice(SCORES) for doc in random.sample(docs, len(docs))}
    case = RankedCase({"1": scores}, {"1": {"x": 1}})
    assert positions(case).sort("k")["doc_id"].to_list() == in_trec_evals_order(scores)
