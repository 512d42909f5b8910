"""NoProgress and OverSearch: worked by hand, and what null means in every door. Random runs: the tests against the oracle."""

from __future__ import annotations

import math
from pathlib import Path

import ir_measures
import polars as pl
import pytest

import goodgain as gg
from goodgain.measures.names import HOST_NAMES
from tests.support.tables import frame_of

pytestmark = pytest.mark.filterwarnings("ignore::goodgain.GoodgainNotice")

QRELS = {
    "loops": {"a": 2, "b": 3, "c": 0},
    "complete": {"a": 2},
    "finds_none": {"z": 2},
    "never_searched": {"a": 2},
    "nothing_good": {"a": 1},
}
RUN = frame_of(
    {
        "loops": [["c"], ["a", "c"], ["a"], [], ["c"]],  # b is never found
        "complete": [["x"], ["a"], ["a"], ["x"]],
        "finds_none": [["x"], ["y"]],
        "nothing_good": [["a"], ["a"]],
    }
)
NULLS = {"never_searched", "nothing_good"}


def test_the_mean_is_over_the_queries_with_a_value_and_the_signature_counts_the_others() -> None:
    scores = gg.evaluate(QRELS, RUN, "NoProgress OverSearch CG")
    assert scores["NoProgress"] == pytest.approx((4 / 5 + 1 / 4 + 1) / 3)
    assert scores.num_queries == {"NoProgress": 3, "OverSearch": 3, "CG": 5}
    assert scores.signature["without_value"] == ["NoProgress:2", "OverSearch:2"]
    with pytest.warns(
        gg.GoodgainNotice, match="NoProgress, OverSearch: no value for any query. .* not searched or has no good"
    ):
        assert gg.evaluate({"q": {"a": 1}}, RUN, "NoProgress OverSearch").means == {
            "NoProgress": None,
            "OverSearch": None,
        }


def test_ir_measures_gets_the_same_values_and_means() -> None:
    asked = [gg.NoProgress @ 2, gg.OverSearch]
    values = {(one.query_id, one.measure): one.value for one in ir_measures.iter_calc(asked, QRELS, gg.read_run(RUN))}
    assert {query for (query, _), value in values.items() if math.isnan(value)} == NULLS
    means = ir_measures.calc_aggregate(asked, QRELS, gg.read_run(RUN))
    wanted = gg.evaluate(QRELS, RUN, asked).mean()
    assert {str(measure): mean for measure, mean in means.items()} == pytest.approx(wanted)


def test_compare_leaves_out_pairs_without_a_value(tmp_path: Path) -> None:
    other = frame_of({"loops": [["a", "b"]], "complete": [["a"]], "never_searched": [["a"]]})
    found = gg.compare(QRELS, {"a": RUN, "b": other}, "NoProgress")
    assert found.pairs.row(0, named=True)["queries"] == 2
    assert found.pairs.row(0, named=True)["difference"] == pytest.approx(-(4 / 5 + 1 / 4) / 2)
    file = tmp_path / "a.jsonl"
    gg.compare(QRELS, {"a": RUN, "b": other}, "NoProgress", baseline="b").write_baseline(file, "a")
    again = gg.compare(QRELS, {"b": other}, "NoProgress", baseline_file=file)
    assert again.pairs.select("queries", "difference").equals(found.pairs.select("queries", "difference"))


def test_a_curve_is_over_the_queries_with_a_value() -> None:
    found = gg.curve(QRELS, {"a": RUN}, "NoProgress CG", resamples=99)
    of = found.filter(measure="NoProgress").sort("iteration")
    wanted = [gg.evaluate(QRELS, RUN, f"NoProgress@{i}").mean()[f"NoProgress@{i}"] for i in range(1, 6)]
    assert of.get_column("mean").to_list() == wanted
    assert set(of.get_column("queries")) == {3} and set(found.filter(measure="CG").get_column("queries")) == {5}
    assert (of.get_column("low") <= of.get_column("mean")).all() and (
        of.get_column("high") >= of.get_column("mean")
    ).all()
    spent = gg.curve(QRELS, {"a": RUN}, "NoProgress", over="searches", at=[0, 2], resamples=99).sort("spend")
    assert spent.select("mean", "queries").rows() == [(None, 0), (pytest.approx(wanted[1]), 3)]


def test_the_ledger_has_the_value_after_each_iteration() -> None:
    ledger = gg.ledger(QRELS, RUN, measures="NoProgress").filter(pl.col("query_id") == "complete")
    assert ledger.get_column("NoProgress").to_list() == [1, 1 / 2, 1 / 3, 1 / 4]


def test_hosts_that_know_no_null_do_not_get_them() -> None:
    assert not [name for name in HOST_NAMES if name.startswith(("no_progress", "over_search"))]
