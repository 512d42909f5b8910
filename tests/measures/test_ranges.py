"""Ranges of iterations in names of measures: CG@1-3."""

from __future__ import annotations

import pytest

from goodgain.errors import MeasureError
from goodgain.measures.names import Measures, parse_measure, parse_measures


def names(measures: Measures) -> list[str]:
    return [str(measure) for measure in parse_measures(measures)]


def test_a_range_of_iterations_is_one_measure_for_each() -> None:
    assert names("CG@1-3") == ["CG@1", "CG@2", "CG@3"]
    assert names("SRE(rel=3)@2-3 nDCG@10 CG@4-4") == ["SRE(rel=3)@2", "SRE(rel=3)@3", "nDCG@10", "CG@4"]
    assert names(["AvgGain@1-2", "CG@2-3 CG@1-3"]) == ["AvgGain@1", "AvgGain@2", "CG@2", "CG@3", "CG@1"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("CG@3-1", "from an iteration to a later one"),
        ("CG@1-2000", "at most 1,000"),
        ("CG@0-3", "a whole number from 1"),
        ("nDCG@1-3", "only our measures take a range of iterations; name each cutoff: nDCG@1 nDCG@2 nDCG@3"),
        ("NumIter@1-3", "takes no @i"),
        ("Gain@1-3", "is not a measure"),
        ("CG@1-", "is not the name of a measure"),
        ("CG@-3", "a whole number from 1"),
    ],
)
def test_what_is_not_a_range_of_iterations_is_an_error(text: str, message: str) -> None:
    with pytest.raises(MeasureError, match=message):
        parse_measures(text)


def test_a_range_is_an_error_where_one_measure_is_expected() -> None:
    with pytest.raises(MeasureError, match="one per iteration; name one"):
        parse_measure("CG@1-3")
