"""`against="previous"`: each stage of a pipeline against the one before it."""

from __future__ import annotations

import pytest

from goodgain import compare
from goodgain.analysis.comparing.statistical_tests import correct_by_holm
from goodgain.errors import InputError
from tests.support.tables import in_one_search

QRELS = {f"q{number}": {"a": 3, "b": 2, "c": 0} for number in range(8)}
STAGES = {
    name: in_one_search({query: {doc: float(len(docs) - k) for k, doc in enumerate(docs)} for query in QRELS})
    for name, docs in {"bm25": "cb", "dense": "bc", "fused": "ab", "reranked": "a"}.items()
}


def test_each_system_is_compared_with_the_one_before_it_alone() -> None:
    found = compare(QRELS, STAGES, "SRE@1 CG@1", against="previous")
    pairs = [("dense", "bm25"), ("fused", "dense"), ("reranked", "fused")]
    assert found.pairs.select("measure", "system", "against").rows() == [
        (measure, *pair) for measure in ("SRE@1", "CG@1") for pair in pairs
    ]
    assert found.baseline is None
    assert found.signature["against"] == "previous"


def test_the_numbers_of_a_pair_are_those_of_all_pairs_but_for_the_correction() -> None:
    every, previous = (compare(QRELS, STAGES, "SRE@1 CG@1", against=way) for way in (None, "previous"))
    columns = ["measure", "system", "against", "difference", "low", "high", "p_t", "p_randomisation", "p_tukey", "wins"]
    of_every = {row[:3]: row for row in every.pairs.select(columns).rows()}
    for row in previous.pairs.select(columns).rows():
        assert row == of_every[row[:3]]
    for measure in ("SRE@1", "CG@1"):
        rows = previous.pairs.filter(measure=measure)
        corrected = correct_by_holm(rows["p_randomisation"].to_numpy())
        assert rows["p_randomisation_holm"].to_list() == pytest.approx(corrected.tolist())
    assert "against" not in every.signature


def test_a_baseline_beside_it_is_an_error_and_so_is_any_other_word() -> None:
    with pytest.raises(InputError, match="give one of them"):
        compare(QRELS, STAGES, "SRE@1", against="previous", baseline="bm25")
    with pytest.raises(InputError, match="against='dense': give 'previous'"):
        compare(QRELS, STAGES, "SRE@1", against="dense")
