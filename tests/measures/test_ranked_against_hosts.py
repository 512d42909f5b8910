"""Values equal what ir_measures gives by its own choice of provider."""

from __future__ import annotations

import math
from random import Random

import ir_measures
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from goodgain.measures.names import is_computed_here
from goodgain.measures.ranking_values import aggregate_values, score_ranking
from tests.support.asking_hosts import ask_host
from tests.support.counts import how_many, some_of
from tests.support.ranking_cases import BY_GDEVAL, FRACTIONAL, JUDGED_ONLY, WHOLE, WITH_PROVIDER, RankedCase, make_case

few = settings(deadline=None, max_examples=how_many(2, full=8))
randoms = st.integers(0, 2**32).map(Random)


def differing(
    measures: list[ir_measures.Measure], case: RankedCase, *, tolerance: float = 1e-12
) -> list[tuple[object, ...]]:
    """Measure, query, our value, the host's, where they differ."""
    values = score_ranking(measures, case.ranking, case.qrels)
    odd: list[tuple[object, ...]] = []
    for measure in measures:
        ours = dict(values.select("query_id", str(measure)).iter_rows())
        host = ask_host(measure, case)
        assert sorted(ours) == sorted(host)
        for query, value in ours.items():
            # trec_eval divides 0 by 0 where judged_only leaves nothing of a ranking
            wanted = 0.0 if math.isnan(host[query]) else host[query]
            if abs(value - wanted) > tolerance:
                odd.append((str(measure), query, value, wanted))
    return odd


def test_all_measures_here_are_taken() -> None:
    assert all(is_computed_here(measure) for measure in [*WITH_PROVIDER, *JUDGED_ONLY, *BY_GDEVAL])


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
