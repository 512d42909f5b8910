"""`interval=` gives the bootstrap interval of the mean of one system."""

from __future__ import annotations

import random

import numpy as np
import pytest

import goodgain as gg

NUMBERS = random.Random(3)
QRELS = {f"q{k}": {f"d{d}": NUMBERS.choice([0, 1, 2, 3]) for d in range(8)} for k in range(30)}
RUN = {f"q{k}": {f"d{d}": NUMBERS.random() for d in NUMBERS.sample(range(8), 4)} for k in range(30)}

pytestmark = pytest.mark.filterwarnings("ignore:.*no iterations in this run:goodgain.GoodgainNotice")


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
    several = gg.Experiment(QRELS, {"a": RUN, "b": none}).evaluate("CG", interval=True)
    assert several.systems["a"].intervals == one.intervals


def test_one_query_and_values_that_are_missing_have_none() -> None:
    assert gg.evaluate({"q0": QRELS["q0"]}, RUN, "CG", interval=True).intervals == {"CG": None}


def test_bounds_change_no_interval() -> None:
    plain, bounded = (
        gg.evaluate(QRELS, RUN, "CG nDCG@10 P@5", interval=True, bounds=bounds).intervals for bounds in (False, True)
    )
    assert plain == bounded
