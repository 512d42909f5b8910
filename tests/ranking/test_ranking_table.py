"""First occurrences and the ranking table against plain Python: rows, positions in three hosts' orders, labels."""

from __future__ import annotations

from random import Random

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from goodgain.ranking import ranking_table
from goodgain.ranking.first_occurrences_and_flattening import ORDERS, find_first_occurrences
from goodgain.ranking.ranking_table import POSITIONS, number_judgments, tabulate_ranking
from tests.support.counts import how_many
from tests.support.ranking_cases import DOCS, SCORES, RankedCase, make_case
from tests.support.ranking_oracle import in_gdevals_order, in_msmarcos_order, in_trec_evals_order

BY_HOST = {"k": in_trec_evals_order, "k_id": in_msmarcos_order, "k_gdeval": in_gdevals_order}
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
    for name, order in BY_HOST.items():
        for query in case.labels:
            of_query = rows.filter(pl.col("query_id") == query).sort(name)
            assert of_query["doc_id"].to_list() == order(case.scores.get(query, {}))
            assert of_query[name].to_list() == list(range(1, of_query.height + 1))


@settings(deadline=None, max_examples=how_many(10, full=40))
@given(any_case)
def test_a_row_has_the_label_of_its_document_and_null_without_one(case: RankedCase) -> None:
    labels = {
        (query, doc): label for query, doc, label in positions(case).select("query_id", "doc_id", "relevance").rows()
    }
    assert labels == {
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
    judgments = number_judgments(qrels)
    assert judgments.query_ids.to_list() == ["a", "b"]
    assert judgments.num_judged.tolist() == [1, 3]
    assert [judgments.count_relevant(rel).tolist() for rel in (1, 2.5)] == [[0, 2], [0, 1]]
    labels, lengths = judgments.rank_ideally(((1, 4),))
    assert (labels.tolist(), lengths.tolist()) == ([4.0, 2.5], [0, 2])


@pytest.mark.parametrize("seed", range(5))
def test_large_rankings_with_few_distinct_scores_are_in_trec_evals_order(seed: int) -> None:
    random = Random(seed)
    docs = [f"{random.choice(DOCS)}-{n}" for n in range(3000)]
    scores = {doc: random.choice(SCORES) for doc in random.sample(docs, len(docs))}
    case = RankedCase({"1": scores}, {"1": {"x": 1}})
    assert positions(case).sort("k")["doc_id"].to_list() == in_trec_evals_order(scores)


#: query_id, iteration, doc_id, rank, score: few of each, so that documents repeat, ranks tie and iterations are empty.
ROWS = st.lists(
    st.tuples(
        st.sampled_from(["q1", "q2", "\U0001f600", "q"]), st.integers(0, 3), st.sampled_from(["a", "b", "c", "-", "\u00a0a"]),
        st.integers(0, 2), st.sampled_from([0.0, 1.0, 2.5]),
    ), max_size=25,
)  # fmt: skip


def _brute_force(rows: list[tuple[str, int, str, int, float]], order: str) -> dict[str, list[tuple[int, str]]]:
    """The first occurrences of each query, (iteration, doc_id) in the order of the ranking."""
    found: dict[str, list[tuple[int, str]]] = {}
    for query in dict.fromkeys(row[0] for row in rows):
        mine = sorted((row for row in rows if row[0] == query), key=lambda row: (row[1], row[3]))
        if order == "last":
            mine = [row for row in mine if row[1] == max(row[1] for row in mine)]
        results = [row for row in mine if row[2] != "-"]
        if order == "interleaved":
            place = [sum(result[1] == row[1] for result in results[:k]) for k, row in enumerate(results)]
            results = [results[k] for k in sorted(range(len(results)), key=lambda k: (place[k], results[k][1]))]
        kept: dict[str, int] = {}
        for row in results:
            kept.setdefault(row[2], row[1])
        found[query] = [(iteration, doc_id) for doc_id, iteration in kept.items()]

    return found


def _frame(rows: list[tuple[str, int, str, int, float]]) -> pl.DataFrame:
    types = {"query_id": pl.String, "iteration": pl.Int64, "doc_id": pl.String, "rank": pl.Int64, "score": pl.Float64}
    return pl.DataFrame(rows, schema=types, orient="row")


@settings(max_examples=how_many(60, full=300), deadline=None)
@given(rows=ROWS, order=st.sampled_from(ORDERS))
def test_first_occurrences_are_those_of_plain_python(rows: list[tuple[str, int, str, int, float]], order: str) -> None:
    occurrences = find_first_occurrences(_frame(rows), order)
    wanted = _brute_force(rows, order)
    assert occurrences.queries["query_id"].to_list() == list(wanted)

    for number, (query, firsts) in enumerate(wanted.items()):
        of_query = occurrences.rows.filter(query=number)
        assert of_query.select("iteration", "doc_id").rows() == firsts
        here = [row for row in rows if row[0] == query]
        counts = {i: sum(row[1] == i and row[2] != "-" for row in here) for i in sorted({row[1] for row in here})}
        assert occurrences.iterations.filter(query=number).select("iteration", "R").rows() == list(counts.items())
        assert occurrences.queries["length"][number] == len(counts)
        used = [count for i, count in counts.items() if order != "last" or i == max(counts)]
        assert occurrences.queries["results"][number] == sum(used)
        assert bool(occurrences.keep_scores[number]) == (len(counts) == 1 and sum(used) == len(firsts))


@pytest.mark.parametrize("bits", [2**64 - 1, 0, 1])
@settings(max_examples=how_many(20, full=100), deadline=None)
@given(
    rows=ROWS,
    labels=st.dictionaries(
        st.tuples(st.sampled_from(["q1", "q2", "z", "q"]), st.sampled_from("abcd")), st.integers(-1, 4)
    ),
)
def test_labels_are_found_whatever_the_hash(
    rows: list[tuple[str, int, str, int, float]], labels: dict[tuple[str, str], int], bits: int
) -> None:
    """Documents with the same hash are compared: a key that is the same for all gives the same labels."""
    with pytest.MonkeyPatch.context() as patched:
        hash_pairs = ranking_table._hash_pairs
        patched.setattr(ranking_table, "_hash_pairs", lambda *pair: hash_pairs(*pair) & np.uint64(bits))
        types = {"query_id": pl.String, "doc_id": pl.String, "relevance": pl.Int64}
        qrels = pl.DataFrame([(*pair, label) for pair, label in labels.items()], schema=types, orient="row")
        firsts = find_first_occurrences(_frame(rows))
        judgments = number_judgments(qrels)
        found = judgments.look_up(firsts, judgments.number_queries(firsts))
    names = firsts.queries["query_id"].gather(firsts.rows["query"])
    assert found.to_list() == [labels.get(pair) for pair in zip(names, firsts.rows["doc_id"], strict=True)]
