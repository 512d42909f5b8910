"""First occurrences against plain Python: which rows they are, in which order, and their labels."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from goodgain.ranking import ranking_table
from goodgain.ranking.first_occurrences_and_flattening import ORDERS, find_first_occurrences
from goodgain.ranking.ranking_table import number_judgments
from tests.support.counts import how_many

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
            place = [sum(other[1] == row[1] for other in results[:k]) for k, row in enumerate(results)]
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
    found = find_first_occurrences(_frame(rows), order)
    wanted = _brute_force(rows, order)
    assert found.queries["query_id"].to_list() == list(wanted)
    for number, (query, firsts) in enumerate(wanted.items()):
        of_query = found.rows.filter(query=number)
        assert of_query.select("iteration", "doc_id").rows() == firsts
        here = [row for row in rows if row[0] == query]
        counts = {i: sum(row[1] == i and row[2] != "-" for row in here) for i in sorted({row[1] for row in here})}
        assert found.iterations.filter(query=number).select("iteration", "R").rows() == list(counts.items())
        assert found.queries["length"][number] == len(counts)
        used = [count for i, count in counts.items() if order != "last" or i == max(counts)]
        assert found.queries["results"][number] == sum(used)
        assert bool(found.keep_scores[number]) == (len(counts) == 1 and sum(used) == len(firsts))


@pytest.mark.parametrize("key", [ranking_table._KEY, pl.col("doc_id").hash(1) * 0, pl.col("doc_id").hash(1) & 1])
@settings(max_examples=how_many(20, full=100), deadline=None)
@given(
    rows=ROWS,
    labels=st.dictionaries(
        st.tuples(st.sampled_from(["q1", "q2", "z", "q"]), st.sampled_from("abcd")), st.integers(-1, 4)
    ),
)
def test_labels_are_found_whatever_the_hash(
    rows: list[tuple[str, int, str, int, float]], labels: dict[tuple[str, str], int], key: pl.Expr
) -> None:
    """Documents with the same hash are compared: a key that is the same for all gives the same labels."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(ranking_table, "_KEY", key)
        types = {"query_id": pl.String, "doc_id": pl.String, "relevance": pl.Int64}
        qrels = pl.DataFrame([(*pair, label) for pair, label in labels.items()], schema=types, orient="row")
        firsts = find_first_occurrences(_frame(rows))
        found = number_judgments(qrels).look_up(firsts)
    names = firsts.queries["query_id"].gather(firsts.rows["query"])
    assert found.to_list() == [labels.get(pair) for pair in zip(names, firsts.rows["doc_id"], strict=True)]
