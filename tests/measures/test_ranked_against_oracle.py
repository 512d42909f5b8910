"""Values equal a brute-force oracle's, for all labels and parameters: also for those that no host takes."""

from __future__ import annotations

from random import Random

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from goodgain.measures.names import is_computed_here
from goodgain.measures.ranking_values import score_ranking
from tests.support import ranking_oracle
from tests.support.counts import how_many
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
