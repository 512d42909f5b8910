"""Outcomes of systems beside search measures: whether a task was solved, and whether better search goes with it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl

from goodgain.comparing.statistical_tests import Matrix, Settings, Vector
from goodgain.errors import InputError
from goodgain.measures.good_gain import NumIter, NumResults

#: Resamples of the interval of a correlation, at most: a rank correlation takes longer than a mean.
_RESAMPLES = 999

#: Columns of a matrix of pairs of queries at a time.
_BLOCK = 500

#: Fewer queries have no interval.
_LEAST_QUERIES = 3


def arrange_outcomes(
    outcomes: pl.DataFrame, systems: Sequence[str], query_ids: Sequence[str], measures: Sequence[str]
) -> dict[str, Matrix]:
    """Return a matrix for each outcome, with a row per system and a column per query. Missing values are NaN.

    Raises:
        InputError: a system has no outcomes, or an outcome has the name of a measure.
    """
    known = outcomes.get_column("system").unique().sort().to_list()
    for name in systems:
        if name not in known:
            raise InputError(f"outcomes= has no rows of the system {name}; it has {', '.join(known[:10])}. Rename one.")
    found = {}
    for outcome in outcomes.columns[2:]:
        if outcome in (*measures, str(NumIter), str(NumResults)):
            raise InputError(f"outcomes= has a column {outcome}, and so is a measure called. Rename the column.")
        wide = outcomes.pivot("system", on_columns=[*systems], index="query_id", values=outcome)
        values = pl.DataFrame({"query_id": query_ids}).join(wide, on="query_id", how="left", maintain_order="left")
        found[outcome] = values.select(pl.col(systems).fill_null(float("nan"))).to_numpy().T
        if not np.isfinite(found[outcome]).all(axis=0).any():
            raise InputError(f"outcomes= has no query in which every system has a value of {outcome}. Check query ids.")
    return found


def correlate(
    outcomes: Mapping[str, Matrix], values: Mapping[str, Matrix], systems: Sequence[str], settings: Settings
) -> pl.DataFrame:
    """Return the columns of `Comparison.correlations`."""
    rows = []
    for (outcome, solved), (measure, found) in ((a, b) for a in outcomes.items() for b in values.items()):
        for name, x, y in zip(systems, found, solved, strict=True):
            both = np.isfinite(x) & np.isfinite(y)
            rows.append((name, outcome, measure, int(both.sum()), *_find_tau(x[both], y[both], settings)))
    numbers = dict.fromkeys(("tau", "low", "high"), pl.Float64)
    types = {**dict.fromkeys(("system", "outcome", "measure"), pl.String), "queries": pl.Int64, **numbers}
    return pl.DataFrame(rows, schema=types, orient="row").with_columns(pl.col(*numbers).fill_nan(None))


def _find_tau(x: Vector, y: Vector, settings: Settings) -> tuple[float, float, float]:
    """Return Kendall's tau-b and its bootstrap percentile interval over queries; NaN where one of both is constant."""
    if len(x) < _LEAST_QUERIES or np.ptp(x) == 0 or np.ptp(y) == 0:
        return np.nan, np.nan, np.nan
    random = np.random.default_rng(settings.seed)
    drawn = random.integers(0, len(x), size=(min(settings.resamples, _RESAMPLES), len(x)))
    times = np.stack([np.bincount(row, minlength=len(x)) for row in drawn]).astype(np.float64)
    tau = compute_tau(x, y, np.ones((1, len(x))))[0]
    low, high = np.nanquantile(compute_tau(x, y, times), [settings.alpha / 2, 1 - settings.alpha / 2])
    return float(tau), float(low), float(high)


def compute_tau(x: Vector, y: Vector, times: Matrix) -> Vector:
    """Return Kendall's tau-b for each row of `times`, in which query k occurs so often; NaN where x or y is constant.

    tau-b = sum sx·sy / sqrt(sum sx² · sum sy²) over pairs of queries, where sx and sy are the signs of the differences.
    SciPy has the same value for one sample, and takes a millisecond for each.

    Source: Kendall, Biometrika 33(3), 1945.

    >>> x, y = np.array([1.0, 2.0, 3.0]), np.array([0.0, 1.0, 1.0])
    >>> compute_tau(x, y, np.array([[1.0, 1.0, 1.0], [2.0, 1.0, 0.0]])).round(4).tolist()
    [0.8165, 1.0]
    """
    sums = np.zeros((3, len(times)))
    for start in range(0, len(x), _BLOCK):
        here = slice(start, start + _BLOCK)
        signs_x, signs_y = (np.sign(values[:, None] - values[here]) for values in (x, y))
        for k, product in enumerate((signs_x * signs_y, np.abs(signs_x), np.abs(signs_y))):
            sums[k] += ((times @ product) * times[:, here]).sum(axis=1)
    with np.errstate(invalid="ignore"):
        tau: Vector = sums[0] / np.sqrt(sums[1] * sums[2])
    return tau
