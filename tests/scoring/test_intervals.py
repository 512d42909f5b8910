"""`interval=` gives the interval of the mean of one system: the bootstrap's, Student's t, or Clopper and Pearson's."""

from __future__ import annotations

import random

import numpy as np
import polars as pl
import pytest
from scipy import stats

import goodgain as gg

NUMBERS = random.Random(3)
QRELS = {f"q{k}": {f"d{d}": NUMBERS.choice([0, 1, 2, 3]) for d in range(8)} for k in range(30)}
RUN = {f"q{k}": {f"d{d}": NUMBERS.random() for d in NUMBERS.sample(range(8), 4)} for k in range(30)}

pytestmark = pytest.mark.filterwarnings("ignore:.*no iterations in (this run|these runs):goodgain.GoodgainNotice")


def draw_interval(values: np.ndarray, level: float) -> list[float]:
    """The percentile interval by other draws than the package's."""
    rng = np.random.default_rng(99)
    means = [rng.choice(values, len(values)).mean() for _ in range(6_000)]
    return [float(end) for end in np.quantile(means, [(1 - level) / 2, (1 + level) / 2])]


def test_it_is_the_bootstrap_interval_of_the_mean_over_queries() -> None:
    scores = gg.evaluate(QRELS, RUN, "CG nDCG@10 NumRet", interval=True)
    assert scores.intervals is not None and scores.intervals["NumRet"] is None  # a sum over queries
    for name in ("CG", "nDCG@10"):
        values = scores.per_query.filter(measure=name).get_column("value").to_numpy()
        spread = values.std() / np.sqrt(len(values))
        assert scores.intervals[name] == pytest.approx(draw_interval(values, 0.95), abs=spread / 6)
    wide = gg.evaluate(QRELS, RUN, "CG", interval=True, alpha=0.01).intervals
    assert wide is not None and wide["CG"] is not None
    narrow = scores.intervals["CG"]
    assert narrow is not None and wide["CG"][0] < narrow[0] < narrow[1] < wide["CG"][1]
    assert gg.evaluate(QRELS, RUN, "CG").intervals is None


def test_runs_of_a_query_are_averaged_first() -> None:
    none: dict[str, dict[str, float]] = {q: {"x": 1.0} for q in RUN}
    one, two = gg.evaluate(QRELS, RUN, "CG", interval=True), gg.evaluate(QRELS, [RUN, none], "CG", interval=True)
    assert one.intervals and two.intervals and one.intervals["CG"] and two.intervals["CG"]
    assert two.intervals["CG"] == pytest.approx([end / 2 for end in one.intervals["CG"]])
    scores = gg.Experiment(QRELS, {"a": RUN, "b": none}).evaluate("CG", interval=True)
    assert scores.systems["a"].intervals == one.intervals


def test_one_query_and_values_that_are_missing_have_none() -> None:
    assert gg.evaluate({"q0": QRELS["q0"]}, RUN, "CG", interval=True).intervals == {"CG": None}


def test_bounds_change_no_interval() -> None:
    plain, bounded = (
        gg.evaluate(QRELS, RUN, "CG nDCG@10 P@5", interval=True, bounds=bounds).intervals for bounds in (False, True)
    )
    assert plain == bounded


FEW = {query: QRELS[query] for query in [*QRELS][:12]}


def test_with_fewer_than_30_queries_it_is_students_t_within_the_range_of_the_measure() -> None:
    scores = gg.evaluate(FEW, RUN, "CG nDCG@10", interval=True)
    assert scores.signature["interval"] == "t" and scores.intervals is not None
    for name, interval in scores.intervals.items():
        values = scores.per_query.filter(measure=name).get_column("value").to_numpy()
        wanted = stats.ttest_1samp(values, 0).confidence_interval(0.95)
        assert interval == pytest.approx((wanted.low, wanted.high))

    perfect = {query: {doc: float(label) for doc, label in labels.items()} for query, labels in FEW.items()}
    perfect["q0"] = {"nothing": 1.0}
    ends = gg.evaluate(FEW, perfect, "nDCG@10", interval=True).intervals
    assert ends is not None and ends["nDCG@10"] is not None and ends["nDCG@10"][1] == 1.0
    assert gg.evaluate(QRELS, RUN, "CG nDCG@10", interval=True).signature["interval"] == "bootstrap"


def test_one_method_is_for_all_measures_of_a_table() -> None:
    run = RUN | {"q0": {"unjudged": 1.0}}  # GradedP has no value for this query
    few = gg.evaluate(QRELS, run, "CG GradedP@1", interval=True)
    assert few.num_queries["GradedP@1"] < 30 and few.signature["interval"] == "t"


def test_zeros_and_ones_have_the_exact_interval_unless_several_runs_are_averaged() -> None:
    scores = gg.evaluate(FEW, RUN, "Success(rel=3)@1", interval=True)
    hits = int(scores.per_query.get_column("value").sum())
    wanted = stats.binomtest(hits, 12).proportion_ci(method="exact")
    assert scores.intervals is not None and scores.intervals["Success(rel=3)@1"] == pytest.approx(
        (wanted.low, wanted.high)
    )
    assert scores.signature["interval"] == "exact"
    none: dict[str, dict[str, float]] = {q: {"x": 1.0} for q in RUN}
    assert gg.evaluate(FEW, [RUN, none], "Success(rel=3)@1", interval=True).signature["interval"] == "t"


def test_compare_and_curve_have_the_intervals_of_evaluate() -> None:
    iterated = {query: [(1, [*RUN[query]][:2]), (2, [*RUN[query]][2:])] for query in FEW}
    rows = [(query, i, doc) for query, parts in iterated.items() for i, docs in parts for doc in docs]
    run = pl.DataFrame(rows, schema=["query_id", "iteration", "doc_id"], orient="row")
    run = run.with_columns(rank=pl.int_range(1, pl.len() + 1).over("query_id", "iteration"))
    other = run.with_columns(pl.col("doc_id").str.replace("d", "e"))
    wanted = gg.evaluate(FEW, run, "nCG@2 AllGood@2", interval=True).intervals
    assert wanted is not None
    compared = gg.compare(FEW, {"a": run, "b": other}, "nCG@2 AllGood@2")
    means, method = compared.means_with_intervals
    found = means.filter(system="a").select("measure", "low", "high").rows()
    ends = [end for interval in wanted.values() if interval for end in interval]
    assert [end for _, *interval in found for end in interval] == pytest.approx(ends)
    assert method == "exact+t"

    for form in ("latex", "markdown"):
        assert ["Student's t" in compared.to_text(form, intervals=shown) for shown in (False, True)] == [False, True]
    assert '"interval": "exact+t"' in compared.to_text("json", intervals=True)

    curve = gg.curve(FEW, {"a": run}, "nCG AllGood").filter(iteration=2).select("measure", "low", "high").rows()
    assert [end for _, *interval in curve for end in interval] == pytest.approx(ends)
