"""Intervals by the bootstrap, for numbers that have no formula of their own: kappa, alpha, tau."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

_ROUNDS = 1_000
#: Fewer queries than these are resampled by document: too few to say how queries differ.
_FEWEST_QUERIES = 10


def choose_units(queries: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the unit that is resampled with each document: its query, or the document where there are few queries."""
    return queries if len(np.unique(queries)) >= _FEWEST_QUERIES else np.arange(len(queries))


def bootstrap_interval(
    units: NDArray[np.float64],
    statistic: Callable[[NDArray[np.float64]], float | None],
    *,
    confidence: float = 0.95,
) -> tuple[float, float] | None:
    """Return the percentile interval of a statistic of the sum of all units, a row each.

    None where there are fewer than two units, or the statistic is undefined in most of 1,000 samples. Seeded.
    """
    rows, counts = np.unique(units, axis=0, return_counts=True)
    if counts.sum() < 2:
        return None
    random = np.random.default_rng(0)
    shares = counts / counts.sum()
    drawn = (statistic(random.multinomial(counts.sum(), shares) @ rows) for _ in range(_ROUNDS))
    values = [value for value in drawn if value is not None]
    if 2 * len(values) < _ROUNDS:
        return None
    low, high = np.quantile(values, [(1 - confidence) / 2, (1 + confidence) / 2])
    return float(low), float(high)
