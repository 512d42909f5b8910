"""Statistical tests on paired values: pure functions over matrices, with a row for each pair of systems, a column for each
query.

Differences that are all zero have p = 1 by definition. A p that does not exist (one query; differences without any
spread, for the t-test) is NaN.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "RESIDUE",
    "bootstrap_interval",
    "compute_effect_size",
    "correct_by_holm",
    "run_randomisation_test",
    "run_t_test",
    "subtract_without_residue",
]

Matrix = NDArray[np.float64]
Vector = NDArray[np.float64]

#: The largest difference, relative to the two values, that counts as rounding of a difference that is exactly zero.
RESIDUE = 1e-12

#: Cells of one block of random signs or resamples, of 8 bytes each: 32 MB.
_BLOCK = 4_000_000


def subtract_without_residue(a: Matrix, b: Matrix) -> Matrix:
    """Return a - b, and exactly 0 where the two are equal but for rounding.

    Rounding leaves residues that often have one sign. The tests look at signs, so that two systems with equal values would
    seem to differ significantly.
    """
    difference = a - b
    difference[np.abs(difference) <= RESIDUE * np.maximum(np.abs(a), np.abs(b))] = 0.0
    return difference


def run_t_test(differences: Matrix) -> Vector:
    """Return the two-sided p of the paired t-test for each row of differences.

    t = mean / (sd / sqrt(n)), with n - 1 degrees of freedom.

    >>> run_t_test(np.array([[1.0, 2.0, 3.0], [0.0, 0.0, 0.0]])).round(4).tolist()
    [0.0742, 1.0]
    """
    from scipy.special import stdtr

    n = differences.shape[1]
    with np.errstate(divide="ignore", invalid="ignore"):
        t = compute_effect_size(differences) * np.sqrt(n)
        p: Vector = 2 * stdtr(n - 1, -np.abs(t))
    return np.where(_is_all_zero(differences), 1.0, p)


def compute_effect_size(differences: Matrix) -> Vector:
    """Return Cohen's d for paired values: mean of the differences / their standard deviation; 0 where all are zero.

    Source: Cohen, Statistical Power Analysis, d_z.
    """
    if differences.shape[1] < 2:
        return np.where(_is_all_zero(differences), 0.0, np.nan)
    mean = differences.mean(axis=1)
    spread = differences.std(axis=1, ddof=1)
    constant = spread <= RESIDUE * np.abs(mean)
    d = mean / np.where(constant, np.nan, spread)
    return np.where(_is_all_zero(differences), 0.0, d)


def run_randomisation_test(differences: Matrix, *, seed: int = 42, resamples: int = 9_999) -> Vector:
    """Return the two-sided p of Fisher's paired randomisation test on the mean, for each row of differences.

    Each resample changes the signs of the differences at random:
    p = (1 + resamples whose mean is at least as far from 0) / (1 + resamples).
    Where there are no more than `resamples` ways to set the signs, all are tried and p is exact. All rows see the same
    signs.

    Source: Smucker, Allan and Carterette, CIKM 2007.

    >>> run_randomisation_test(np.array([[1.0, 2.0, 3.0], [0.0, 0.0, 0.0]])).tolist()
    [0.25, 1.0]
    """
    n = differences.shape[1]
    observed = np.abs(differences.sum(axis=1))
    reached = observed - RESIDUE * np.abs(differences).sum(axis=1)  # a tie counts in spite of rounding
    exact = n < 64 and 2**n <= resamples
    count = np.zeros(len(differences), dtype=np.int64)
    for signs in _list_all_signs(n) if exact else _draw_signs(n, seed, resamples):
        count += (np.abs(signs @ differences.T) >= reached).sum(axis=0)
    return count / 2**n if exact else (count + 1) / (resamples + 1)


def _list_all_signs(n: int) -> Iterator[Matrix]:
    bits = (np.arange(2**n)[:, None] >> np.arange(n)) & 1
    yield (1 - 2 * bits).astype(np.float64)


def _draw_signs(n: int, seed: int, resamples: int) -> Iterator[Matrix]:
    """Yield blocks of rows of +1 and -1, 64 signs from each random number."""
    random = np.random.default_rng(seed)
    words = -(-n // 64)
    for rows in _split_resamples(resamples, n):
        drawn = random.integers(0, 2**64, size=(rows, words), dtype=np.uint64).astype("<u8", copy=False)
        bits = np.unpackbits(drawn.view(np.uint8), axis=1, count=n)
        yield 1.0 - 2.0 * bits.astype(np.float64)


def bootstrap_interval(
    differences: Matrix, *, level: float = 0.95, seed: int = 42, resamples: int = 9_999
) -> tuple[Vector, Vector]:
    """Return the bootstrap percentile interval of the mean over queries, for each row of differences.

    Returns:
        The lower and the upper ends. All rows see the same draws.

    Source: Efron and Tibshirani, An Introduction to the Bootstrap, chapter 13.

    >>> low, high = bootstrap_interval(np.array([[1.0, 1.0, 1.0]]))
    >>> low.tolist(), high.tolist()
    ([1.0], [1.0])
    """
    random = np.random.default_rng(seed)
    n = differences.shape[1]
    means = []
    for rows in _split_resamples(resamples, n):
        drawn = random.integers(0, n, size=(rows, n))
        times = np.stack([np.bincount(row, minlength=n) for row in drawn]).astype(np.float64)
        means.append(times @ differences.T / n)
    tail = (1 - level) / 2
    low, high = np.quantile(np.concatenate(means), [tail, 1 - tail], axis=0)
    return low, high


def _split_resamples(resamples: int, n: int) -> Iterator[int]:
    size = max(1, _BLOCK // n)
    for start in range(0, resamples, size):
        yield min(size, resamples - start)


def correct_by_holm(p: Vector) -> Vector:
    """Return the p-values of one family of tests after Holm's step-down correction; a NaN is not counted as a test.

    >>> correct_by_holm(np.array([0.01, 0.04, 0.03])).round(4).tolist()
    [0.03, 0.06, 0.06]
    """
    corrected = np.full(len(p), np.nan)
    tests = np.flatnonzero(~np.isnan(p))
    order = tests[np.argsort(p[tests], kind="stable")]
    factors = len(tests) - np.arange(len(tests))
    corrected[order] = np.minimum(np.maximum.accumulate(factors * p[order]), 1.0)
    return corrected


def _is_all_zero(differences: Matrix) -> NDArray[np.bool_]:
    zero: NDArray[np.bool_] = (differences == 0).all(axis=1)
    return zero
