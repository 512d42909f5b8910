"""Values over one ranking equal a brute-force oracle's and the hosts', and have the digits of Python's a / b.

The oracle takes all labels and parameters, also those that no host takes.
"""

from __future__ import annotations

import math
from pathlib import Path
from random import Random
from typing import Any

import ir_measures
import polars as pl
import pytest
import pytrec_eval
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

import goodgain as gg
from goodgain.measures.names import is_computed_here
from goodgain.measures.ranking_values import RankedScores, aggregate_values, score_ranking
from goodgain.ranking.ranking_table import number_judgments, tabulate_ranking
from tests.support import ranking_oracle
from tests.support.asking_hosts import ask_host
from tests.support.counts import how_many, some_of
from tests.support.forms import FRAMES, write_table
from tests.support.ranking_cases import (
    BELOW_ZERO,
    BY_GDEVAL,
    FRACTIONAL,
    GRADED,
    HOSTLESS,
    JUDGED_ONLY,
    WHOLE,
    WITH_PROVIDER,
    WITHOUT_PROVIDER,
    RankedCase,
    make_case,
    parameters_of,
)

ALL = [*WITH_PROVIDER, *JUDGED_ONLY, *BY_GDEVAL, *WITHOUT_PROVIDER, *HOSTLESS, *GRADED]
any_case = (
    st.integers(0, 2**32).map(Random).map(lambda random: make_case(random, labels=(*WHOLE, *BELOW_ZERO, *FRACTIONAL)))
)


def expected(case: RankedCase) -> pl.DataFrame:
    rows = []
    for query in sorted(case.labels):
        scores, labels = case.scores.get(query, {}), case.labels[query]
        rows.append(
            {"query_id": query}
            | {str(m): ranking_oracle.value(m.__name__, parameters_of(m), scores, labels) for m in ALL}
        )
    return pl.DataFrame(rows, schema={"query_id": pl.String} | {str(m): pl.Float64 for m in ALL})


@settings(deadline=None, max_examples=how_many(3, full=12))
@given(any_case)
def test_values_equal_the_oracles(case: RankedCase) -> None:
    assert all(is_computed_here(measure) for measure in ALL)
    found, wanted = score_ranking(ALL, case.ranking, case.qrels), expected(case)
    assert found.columns == wanted.columns
    for name in found.columns:
        if name == "query_id":
            assert found[name].to_list() == wanted[name].to_list()
        else:
            assert found[name].is_null().to_list() == wanted[name].is_null().to_list(), name
            assert ((found[name] - wanted[name]).abs() <= 1e-12).all(), name


@pytest.mark.slow
@settings(deadline=None, max_examples=how_many(1, full=4))
@given(any_case, st.integers(0, 2**32).map(Random))
def test_the_order_of_rows_changes_nothing(case: RankedCase, random: Random) -> None:
    ranking, qrels = (frame[random.sample(range(frame.height), frame.height)] for frame in (case.ranking, case.qrels))
    before, after = score_ranking(ALL, case.ranking, case.qrels), score_ranking(ALL, ranking, qrels)
    for name in before.columns[1:]:
        assert before[name].is_null().equals(after[name].is_null(), check_names=False), name
        assert ((before[name] - after[name]).abs() <= 1e-12).all(), name


# --- hosts -----------------------------------------------------------------------------------------------------------

few = settings(deadline=None, max_examples=how_many(2, full=8))
randoms = st.integers(0, 2**32).map(Random)


def differing(
    measures: list[ir_measures.Measure], case: RankedCase, *, tolerance: float = 1e-12
) -> list[tuple[object, ...]]:
    """Measure, query, our value, the host's, where they differ."""
    values = score_ranking(measures, case.ranking, case.qrels)
    odd: list[tuple[object, ...]] = []
    for measure in measures:
        rows = dict(values.select("query_id", str(measure)).iter_rows())
        host = ask_host(measure, case)
        assert sorted(rows) == sorted(host)
        for query, value in rows.items():
            # trec_eval divides 0 by 0 where judged_only leaves nothing of a ranking
            wanted = 0.0 if math.isnan(host[query]) else host[query]
            if abs(value - wanted) > tolerance:
                odd.append((str(measure), query, value, wanted))
    return odd


@few
@given(randoms)
def test_values_equal_the_hosts(random: Random) -> None:
    assert not differing(WITH_PROVIDER, make_case(random))


@few
@given(randoms)
def test_values_of_judged_documents_only_equal_the_hosts(random: Random) -> None:
    assert not differing(JUDGED_ONLY, make_case(random, labels=(*WHOLE, -1, -1)))


@settings(deadline=None, max_examples=how_many(2, full=5))
@given(randoms)
def test_exponential_gain_equals_gdeval_to_its_five_decimals(random: Random) -> None:
    assert not differing(BY_GDEVAL, make_case(random), tolerance=5.0001e-6)


@pytest.mark.slow
@few
@given(randoms)
def test_values_of_fractional_labels_equal_what_hosts_make_of_whole_ones(random: Random) -> None:
    with_rel = [measure for measure in WITH_PROVIDER if "gains" not in measure.params and measure.NAME != "Judged"]
    case = make_case(random, labels=(*WHOLE, *FRACTIONAL))
    assert not differing(with_rel, case)


@pytest.mark.parametrize(
    "measure", some_of((measure for measure in WITH_PROVIDER if measure.NAME != "RBP"), every=3), ids=str
)
def test_means_and_sums_equal_those_of_ir_measures_itself(measure: ir_measures.Measure) -> None:
    case = make_case(Random(5), queries=30, labels=(*WHOLE, -1))
    whole = {
        query: {doc: int(label) for doc, label in docs.items()}
        for query, docs in case.labels.items()
        if max(docs.values()) >= 0
    }
    case = case._replace(labels=whole)
    found = aggregate_values([measure], score_ranking([measure], case.ranking, case.qrels))
    wanted = ir_measures.calc_aggregate([measure], whole, case.scores)[measure]
    assert found[str(measure)] == pytest.approx(wanted, rel=1e-12, abs=1e-12)


# --- parts ------------------------------------------------------------------------------------------------------------

CASE = make_case(Random(17), queries=40, labels=(*WHOLE, -1, *FRACTIONAL))


def test_rows_without_a_label_change_no_value() -> None:
    scores = RankedScores(ALL, number_judgments(CASE.qrels))
    scores.add(tabulate_ranking(CASE.ranking, scores.judgments, positions=scores.positions, unjudged=True))
    assert_frame_equal(scores.finish(), score_ranking(ALL, CASE.ranking, CASE.qrels), check_exact=True)


@pytest.mark.slow
def test_parts_of_whole_queries_give_what_the_whole_gives() -> None:
    scores = RankedScores(ALL, number_judgments(CASE.qrels))
    for part in CASE.ranking.partition_by("query_id", maintain_order=True):
        scores.add(tabulate_ranking(part, scores.judgments, positions=scores.positions))
    assert_frame_equal(scores.finish(), score_ranking(ALL, CASE.ranking, CASE.qrels), check_exact=False, abs_tol=1e-12)


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
    scores = evaluator.evaluate(RANKING)
    ours = _per_query(RANKING, QRELS, [ir_measures.P @ k for k in CUTOFFS])
    assert ours == {(f"P@{k}", query): scores[query][f"P_{k}"] for query in FOUND for k in CUTOFFS}


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
