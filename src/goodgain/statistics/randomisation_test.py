"""The randomisation test of paired differences: draws random signs until p is precise enough."""

import numpy as np
from numpy.typing import NDArray

from goodgain.options import RESAMPLES, SEED
from goodgain.statistics.signed_sums import SignedSums, find_places
from goodgain.statistics.statistical_tests import Matrix, Vector, count_draws, draw_signs, find_reach

#: A test may stop at a number of `list_stops` if so many draws are as far from 0 as observed.
ENOUGH = 20


def run_randomisation_test(
    differences: Matrix, *, seed: int = SEED, resamples: int = RESAMPLES, first: int | None = None
) -> Vector:
    """Return the two-sided p of Fisher's paired randomisation test on the mean, for each row of differences.

    Each resample changes the signs of the differences at random:
    p = (1 + resamples with a mean at least as far from 0 as observed) / (1 + resamples).
    If there are at most `resamples` ways to set the signs, all are tried and p is exact. All rows share the same signs.

    With `first`, a row stops at the first number of `list_stops` at which 20 resamples are as far as observed. p is then over the
    resamples so far. Such a p is valid: if systems are equal, p <= t has a chance of at most t.

    Source: Smucker, Allan and Carterette, A Comparison of Statistical Significance Tests for Information Retrieval Evaluation, CIKM
    2007. Besag and Clifford, Sequential Monte Carlo p-values, Biometrika 78(2), 1991.

    >>> run_randomisation_test(np.array([[1.0, 2.0, 3.0], [0.0, 0.0, 0.0]])).tolist()
    [0.25, 1.0]
    """
    pairs, n = differences.shape
    stops = list_stops(n, resamples, first)
    p = np.ones(pairs)
    as_far = np.ones(pairs, dtype=np.int64)  # the observed signs are a draw too

    rows = np.arange(pairs)  # the pairs that draw further signs
    sums = SignedSums(differences)
    draws = 0
    for signs in draw_signs(n, pairs, seed=seed, resamples=resamples, stops=stops):
        as_far[rows] += _count_far(sums, signs)
        draws += len(signs)
        if draws not in stops:
            continue

        p[rows] = as_far[rows] / (draws + 1)
        rows = rows[as_far[rows] <= ENOUGH]
        if not len(rows):
            break
        sums = SignedSums(differences[rows])
    return p


def _count_far(sums: SignedSums, signs: Matrix) -> NDArray[np.int64]:
    """Count the draws of each row whose sum is at least as far from 0 as the observed sum."""
    distances = np.abs(sums.compute_quickly(signs))
    reach = find_reach(sums.differences)
    kind = distances.dtype
    is_far = distances >= (reach + sums.errors).astype(kind)[:, None]
    may_be_far = distances >= (reach - sums.errors).astype(kind)[:, None]

    rows, draws = find_places(may_be_far ^ is_far)
    exact = np.abs(sums.compute_exactly(signs, rows, draws))
    rows = rows[exact >= reach[rows]]
    as_far: NDArray[np.int64] = is_far.sum(axis=1) + np.bincount(rows, minlength=len(reach))
    return as_far


def list_stops(n: int, resamples: int, first: int | None = None) -> list[int]:
    """Return the numbers of draws after which a test may stop: `first`, then ten times as many, and `resamples` at the end.

    >>> list_stops(50, 224_400, 9_999), list_stops(50, 9_999, 9_999), list_stops(6, 9_999)
    ([9999, 99999, 224400], [9999], [63])
    """
    draws = count_draws(n, resamples)
    if first is None or draws < resamples:  # an exact test tries all signs
        return [draws]
    stops = []
    while first < draws:
        stops.append(first)
        first = 10 * first + 9
    return [*stops, draws]
