"""Intervals of the mean of one system over queries: Student's t, Wilson's, or the bootstrap."""

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
    """Return the methods of `find_intervals_of_means` for a signature: `t`, `bootstrap`, `wilson`, `t+wilson` ..."""
    return "+".join(sorted({_choose_of_mean(mean, method) for mean in means}))


def find_intervals_of_means(
    means: Sequence[Values], settings: Settings, method: str
) -> list[tuple[float, float] | None]:
    """Return the interval of each mean by `t` or `bootstrap`, or None for a mean of one value. Zeros and ones have Wilson's."""
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
    return "wilson" if is_0_or_1 else method


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


def find_wilson_intervals(values: Matrix, settings: Settings) -> tuple[Vector, Vector]:
    """Return the ends of Wilson's interval of the share of ones in each row of zeros and ones.

    (p + z^2 / 2n -+ z sqrt(p (1 - p) / n + z^2 / 4n^2)) / (1 + z^2 / n), where p is the share, and z the normal quantile.

    Source: Wilson, Journal of the American Statistical Association 22, 1927.

    >>> low, high = find_wilson_intervals(np.array([[1.0] * 10]), Settings())
    >>> low.round(4).tolist(), high.round(4).tolist()
    ([0.7225], [1.0])
    """
    from scipy.special import ndtri

    n = values.shape[1]
    share: Vector = values.mean(axis=1)
    z = -float(ndtri(settings.alpha / 2))
    middle = share + z**2 / (2 * n)
    half = z * np.sqrt(share * (1 - share) / n + z**2 / (4 * n**2))
    low, high = (middle - half) / (1 + z**2 / n), (middle + half) / (1 + z**2 / n)
    # Rounding must not move an end beyond the share.
    return np.clip(low, 0.0, share), np.clip(high, share, 1.0)


_METHODS = {"t": find_t_intervals, "wilson": find_wilson_intervals, "bootstrap": find_intervals}
