"""ERR is computed here: numeric ids and perl are not needed, the scale is a parameter, and labels above it are refused."""

from __future__ import annotations

import shutil

import ir_measures
import polars as pl
import pytest

import goodgain as gg
from goodgain.measures.names import parse_measure

QRELS = {"a query": {"d/1": 3, "d/2": -2, "d/3": 4, "d/4": 1}}
RUN = {"a query": {"d/2": 4.0, "d/1": 3.0, "d/5": 2.0, "d/3": 1.0}}


def test_it_needs_no_numeric_ids() -> None:
    wanted = 7 / 16 / 2 + (9 / 16) * 15 / 16 / 4
    scores = gg.evaluate(QRELS, RUN, "ERR@4 ERR ERR@2")
    assert [*scores.mean().values()] == pytest.approx([wanted, wanted, 7 / 32])
    assert scores.signature["classic"] == ["goodgain"]
    assert gg.evaluate(QRELS, RUN, ir_measures.ERR @ 4).mean() == {"ERR@4": scores["ERR@4"]}


@pytest.mark.skipif(shutil.which("perl") is None, reason="gdeval needs perl")
def test_it_is_gdevals_value() -> None:
    qrels = {"7": {"a": 3, "b": -1, "c": 4, "d": 1}}
    run = {"7": {"b": 4.0, "a": 2.0, "x": 2.0, "c": 2.0, "d": 1.0}}
    for k in (1, 2, 4, 20):
        ours = gg.evaluate(qrels, run, f"ERR@{k}")[f"ERR@{k}"]
        assert ours == pytest.approx(
            ir_measures.calc_aggregate([ir_measures.ERR @ k], qrels, run)[ir_measures.ERR @ k], abs=5e-6
        )
        assert ours == pytest.approx(gg.evaluate(qrels, run, f"ERR@{k}", provider="gdeval")[f"ERR@{k}"], abs=5e-6)


def test_max_rel_is_the_largest_label_of_the_scale() -> None:
    assert gg.evaluate({"q": {"a": 1}}, {"q": {"a": 1.0}}, "ERR(max_rel=1)@1").mean() == {"ERR(max_rel=1)@1": 0.5}
    assert parse_measure("ERR(max_rel=4)@3") == ir_measures.ERR @ 3
    assert (
        ir_measures.calc_aggregate([gg.ERR(max_rel=1) @ 1], {"q": {"a": 1}}, {"q": {"a": 1.0}})[gg.ERR(max_rel=1) @ 1]
        == 0.5
    )


def test_a_label_above_the_scale_is_refused() -> None:
    for measure in ("ERR@2", "PerIteration(measure='ERR@2')"):
        with pytest.raises(gg.MeasureError, match=r"label 5, above max_rel=4.*ERR\(max_rel=5\)@2"):
            gg.evaluate(
                {"q": {"a": 5, "b": 1}}, pl.DataFrame({"query_id": ["q"], "iteration": [1], "doc_id": ["a"]}), measure
            )
