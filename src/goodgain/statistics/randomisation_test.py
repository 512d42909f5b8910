"""The randomisation test of paired differences: draws random signs until p is precise enough."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from goodgain.options import RESAMPLES, SEED
from goodgain.statistics.signed_sums import SignedSums, find_places
from goodgain.statistics.statistical_tests import Matrix, Vector, count_draws, draw_signs, find_reach

#: A test may stop at a number of `list_stops` if so many draws are as far from 0 as observed.
ENOUGH = 20
#: Rows of differences in one product of matrices: more rows are faster, and need more memory.
_ROWS = 1_000


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
    p = np.ones(pairs)
    rows = np.arange(pairs)  # the pairs that need further signs
    for stop in list_stops(n, resamples, first):
        as_far = np.zeros(pairs, dtype=np.int64)
        for start in range(0, len(rows), _ROWS):
            part = rows[start : start + _ROWS]
            sums = SignedSums(differences[part])
            for signs in draw_signs(n, len(part), seed=seed, resamples=stop.resamples):
                as_far[part] += _count_far(sums, signs)

        p[rows] = (as_far[rows] + 1) / (stop.draws + 1)  # the observed signs are a draw too
        rows = rows[as_far[rows] < ENOUGH]
    return p


def _count_far(sums: SignedSums, signs: Matrix) -> NDArray[np.int64]:
    """Count the draws of each row whose sum is at least as far from 0 as the observed sum."""
    distances = np.abs(sums.compute_quickly(signs))
    reach = find_reach(sums.differences)
    kind = distances.dtype
    is_far = distances >= (reach + sums.errors).astype(kind)[:, None]
    may_be_far = distances >= (reach - sums.errors).astype(kind)[:, None]

    rows, draws = find_places(may_be_far ^ is_far)  # too close to the observed sum for quick sums
    exact = np.abs(sums.compute_exactly(signs, rows, draws))
    rows = rows[exact >= reach[rows]]
    as_far: NDArray[np.int64] = is_far.sum(axis=1) + np.bincount(rows, minlength=len(reach))
    return as_far


class Stop(NamedTuple):
    """The number of draws after which a test may stop, and the `resamples` with which `draw_signs` gives so many."""

    draws: int
    resamples: int


def list_stops(n: int, resamples: int, first: int | None = None) -> list[Stop]:
    """Return the numbers of draws after which a test may stop: `first`, then ten times as many, and `resamples` at the end.

    >>> [stop.draws for stop in list_stops(50, 224_400, 9_999)], [stop.draws for stop in list_stops(6, 224_400, 9_999)]
    ([9999, 99999, 224400], [63])
    """
    last = Stop(count_draws(n, resamples), resamples)
    if first is None or last.draws < resamples:  # an exact test tries all signs
        return [last]
    stops = []
    while first < resamples:
        stops.append(Stop(first, first))
        first = 10 * first + 9
    return [*stops, last]
