"""Intervals of the mean of one system over queries: Student's t, Clopper and Pearson's, or the bootstrap."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from goodgain.statistics.statistical_tests import Matrix, Settings, Vector, find_intervals

#: With fewer queries the t interval holds the true mean more often than the bootstrap interval.
FEW_QUERIES = 30


def choose_method(queries: Iterable[int]) -> str:
    """Return the method for all means of a table, `t` or `bootstrap`, from the numbers of queries of its means.

    >>> choose_method([29, 100]), choose_method([30, 100])
    ('t', 'bootstrap')
    """
    return "t" if min(queries, default=0) < FEW_QUERIES else "bootstrap"


class Values(NamedTuple):
    """The values behind a mean, and the values that its measure allows."""

    values: Vector
    least: float = -np.inf
    most: float = np.inf
    is_0_or_1: bool = False


def name_methods(means: Sequence[Values], method: str) -> str:
    """Return the methods of `find_intervals_of_means` for a signature: `t`, `bootstrap`, `exact`, `exact+t` ..."""
    return "+".join(sorted({_choose_of_mean(mean, method) for mean in means}))


def find_intervals_of_means(
    means: Sequence[Values], settings: Settings, method: str
) -> list[tuple[float, float] | None]:
    """Return the interval of each mean by `t` or `bootstrap`, or None for one value. Zeros and ones have the exact interval."""
    rows_by_kind: dict[tuple[str, int], list[int]] = {}
    for row, mean in enumerate(means):
        rows_by_kind.setdefault((_choose_of_mean(mean, method), len(mean.values)), []).append(row)

    ends: list[tuple[float, float] | None] = [None] * len(means)
    for (method_of_rows, queries), rows in rows_by_kind.items():
        if queries < 2:  # one query says nothing of others
            continue
        lows, highs = _METHODS[method_of_rows](np.stack([means[row].values for row in rows]), settings)
        for row, low, high in zip(rows, lows, highs, strict=True):
            mean = means[row]
            ends[row] = max(float(low), mean.least), min(float(high), mean.most)
    return ends


def _choose_of_mean(mean: Values, method: str) -> str:
    is_0_or_1 = mean.is_0_or_1 and bool(np.isin(mean.values, (0.0, 1.0)).all())  # a mean over runs can lie between
    return "exact" if is_0_or_1 else method


def find_t_intervals(values: Matrix, settings: Settings) -> tuple[Vector, Vector]:
    """Return mean - t s / sqrt(n) and mean + t s / sqrt(n) of each row, with n - 1 degrees of freedom.

    >>> low, high = find_t_intervals(np.array([[1.0, 2.0, 3.0]]), Settings())
    >>> low.round(4).tolist(), high.round(4).tolist()
    ([-0.4841], [4.4841])
    """
    from scipy.special import stdtrit

    n = values.shape[1]
    mean: Vector = values.mean(axis=1)
    spread: Vector = values.std(axis=1, ddof=1) / np.sqrt(n)
    half = -float(stdtrit(n - 1, settings.alpha / 2)) * spread
    return mean - half, mean + half


def find_exact_intervals(values: Matrix, settings: Settings) -> tuple[Vector, Vector]:
    """Return the ends of Clopper and Pearson's interval of the share of ones in each row of zeros and ones.

    The interval has all shares for which neither tail of the binomial distribution, from the observed number of ones outwards,
    is below alpha / 2. It holds the true share with a chance of at least 1 - alpha, whatever the share and the number of queries.

    Source: Clopper and Pearson, The Use of Confidence or Fiducial Limits Illustrated in the Case of the Binomial, Biometrika 26(4),
    1934.

    >>> low, high = find_exact_intervals(np.array([[1.0] * 10]), Settings())
    >>> low.round(4).tolist(), high.round(4).tolist()
    ([0.6915], [1.0])
    """
    from scipy.special import betaincinv

    n = values.shape[1]
    ones = values.sum(axis=1)
    tail = settings.alpha / 2
    # The shapes of the beta distribution must be above 0; the ends at 0 and 1 are set afterwards.
    low = betaincinv(np.maximum(ones, 1), n - ones + 1, tail)
    high = betaincinv(ones + 1, np.maximum(n - ones, 1), 1 - tail)
    return np.where(ones == 0, 0.0, low), np.where(ones == n, 1.0, high)


_METHODS = {"t": find_t_intervals, "exact": find_exact_intervals, "bootstrap": find_intervals}
