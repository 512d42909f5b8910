"""Intervals of the mean difference of a pair of systems, by inversion of the test that decides the pair.

An interval has every mean difference that the test does not reject. So 0 is outside exactly if the test rejects 0.
"""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from goodgain.options import ALPHA, RESAMPLES, SEED
from goodgain.statistics.randomisation_test import ENOUGH, Stop, list_stops
from goodgain.statistics.signed_sums import Quick, SignedSums, find_places, take_buffer
from goodgain.statistics.statistical_tests import Matrix, Vector, draw_signs, find_reach

#: Ends that are kept at once, of all pairs: 16 MB at 8 bytes each. Each further part draws the signs again.
_MOST_ENDS = 2_000_000
_Counts = NDArray[np.int64]


def count_open_tests(p_holm: Vector, alpha: float) -> int:
    """Return by how much Holm's method divides alpha for its last decision: the number of tests not rejected, at least 1.

    p <= alpha / number holds exactly for the tests that Holm's method rejects. NaN does not count as a test.

    >>> count_open_tests(np.array([0.03, 0.06, 0.06, np.nan]), alpha=0.05)
    2
    """
    return max(1, int((p_holm > alpha).sum()))


def invert_randomisation_test(
    differences: Matrix,
    divisors: _Counts,
    *,
    alpha: float = ALPHA,
    seed: int = SEED,
    resamples: int = RESAMPLES,
    first: int | None = None,
) -> tuple[Vector, Vector]:
    """Return the lower and upper ends of the mean differences that the randomisation test does not reject.

    The test of each row has the level alpha / divisor, and draws the same signs as `run_randomisation_test`, also with `first`
    (a test may stop early). An interval is NaN if the test cannot reject any mean difference, because there are too few queries
    or signs.

    A draw gives some queries the other sign. If the true mean is delta, this draw is as extreme as the data if delta lies
    between two means: of the queries that keep their sign, and of the others. The interval begins at the k-th smallest of
    these lower ends, and ends at the k-th largest upper end: the test rejects if fewer than k draws are as extreme.

    Source: Ernst, Permutation Methods: A Basis for Exact Inference, Statistical Science 19(4), 2004, section 2.

    >>> differences = np.array([[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]])
    >>> low, high = invert_randomisation_test(differences, np.array([1]))
    >>> low.tolist(), high.tolist()
    ([1.0], [6.0])
    """
    pairs, n = differences.shape
    low, high = np.full(pairs, np.nan), np.full(pairs, np.nan)
    stops = list_stops(n, resamples, first)
    chosen = np.array([_choose_stop(stops, alpha / divisor) for divisor in divisors.tolist()], dtype=np.int64)

    for number, stop in enumerate(stops):
        ranks = np.array([find_rank(divisor, alpha, stop.draws) for divisor in divisors.tolist()], dtype=np.int64)
        tested = np.flatnonzero((chosen == number) & (ranks > 0))
        at_once = max(1, _MOST_ENDS // ranks[tested].max(initial=1))
        for start in range(0, len(tested), at_once):
            rows = tested[start : start + at_once]
            signs = draw_signs(n, len(rows), seed=seed, resamples=stop.resamples)
            low[rows], high[rows] = _find_ends(differences[rows], ranks[rows], signs)
    return low, high


def _choose_stop(stops: Sequence[Stop], level: float) -> int:
    """Return the number of the stop that decides whether p <= level: a test that stops earlier has a larger p."""
    for number, stop in enumerate(stops):
        if level * (stop.draws + 1) >= ENOUGH + 1:
            return number
    return len(stops) - 1


def invert_at_ranks(
    differences: Matrix, ranks: _Counts, *, seed: int = SEED, resamples: int = RESAMPLES
) -> tuple[Vector, Vector]:
    """Return the ends of the mean differences whose p is above rank / (draws + 1), with the same signs for all rows.

    `differences` has a column per query, with NaN where a row has no value. A rank of 0 gives no interval (NaN).
    """
    low, high = np.full(len(ranks), np.nan), np.full(len(ranks), np.nan)
    n = differences.shape[1]
    has_value = ~np.isnan(differences)
    rows_by_queries: dict[bytes, list[int]] = {}
    for row in np.flatnonzero(ranks).tolist():
        rows_by_queries.setdefault(has_value[row].tobytes(), []).append(row)

    for rows in rows_by_queries.values():
        queries = has_value[rows[0]]
        at_once = max(1, _MOST_ENDS // ranks[rows].max())
        for start in range(0, len(rows), at_once):
            chosen = rows[start : start + at_once]
            blocks = draw_signs(n, len(chosen), seed=seed, resamples=resamples)
            signs = (block[:, queries] for block in blocks)
            low[chosen], high[chosen] = _find_ends(differences[chosen][:, queries], ranks[chosen], signs)
    return low, high


def find_rank(divisor: int, alpha: float, draws: int) -> int:
    """Return the largest k for which Holm's method calls k / (draws + 1) significant, by its own comparison of floats."""
    rank = int(alpha * (draws + 1) / divisor) + 1
    while rank and divisor * (rank / (draws + 1)) > alpha:
        rank -= 1
    return rank


def _find_ends(differences: Matrix, ranks: _Counts, blocks: Iterator[Matrix]) -> tuple[Vector, Vector]:
    """Return the `rank`-th smallest lower end and the `rank`-th largest upper end of each row, over all draws in `blocks`."""
    sums = SignedSums(differences)
    lower, upper = _SmallestEnds(sums, ranks, 1), _SmallestEnds(sums, ranks, -1)
    for signs in blocks:
        balance = signs.sum(axis=1)
        quick = sums.compute_quickly(signs)
        lower.add(quick, signs, balance)
        upper.add(quick, signs, balance)

    scale = sums.exponents
    low, high = np.ldexp(lower.find_last(), scale) + 0.0, 0.0 - np.ldexp(upper.find_last(), scale)  # no end is -0.0
    exists = np.isfinite(low) & np.isfinite(high)
    return np.where(exists, low, np.nan), np.where(exists, high, np.nan)


class _SmallestEnds:
    """Keeps the smallest lower ends of each pair, as many as its rank. With the side -1: of the upper ends times -1.

    The ends of a draw are two means: (total + sum) / (n + balance) and (total - sum) / (n - balance). One of them is below a
    limit exactly if |sum - limit * balance| > total - limit * n. So only the few draws beyond the limit need exact sums.
    """

    def __init__(self, sums: SignedSums, ranks: _Counts, side: int) -> None:
        differences = sums.differences
        self._sums = sums
        self._side = side
        self._n = differences.shape[1]
        self._total = side * differences.sum(axis=1)
        self._reach = find_reach(differences)
        self._ranks = ranks
        self._most = int(ranks.max())
        self._ends = [np.empty((len(ranks), 0))]  # a row per pair; rows are filled up with infinity
        self._distance: Quick = np.empty(0)
        self._limits = np.full(len(ranks), np.inf)  # the end at the rank of each pair, among the draws so far

    def add(self, quick: Quick, signs: Matrix, balance: Vector) -> None:
        """Add a block of draws. `quick` has a row per pair and a column per draw, `balance` the sum of each draw."""
        first = max(0, self._most - self._width)  # without so many draws there is no limit yet
        for part in (slice(first), slice(first, None)):
            if len(balance[part]):
                self._add_part(quick[:, part], signs[part], balance[part])

    def find_last(self) -> Vector:
        """Return the end at the rank of each pair."""
        self._select_smallest()
        return self._limits

    @property
    def _width(self) -> int:
        return sum(ends.shape[1] for ends in self._ends)

    def _add_part(self, quick: Quick, signs: Matrix, balance: Vector) -> None:
        pair, draw = self._find_candidates(quick, balance)
        sums = self._sums.compute_exactly(signs, pair, draw)
        ends = self._compute_ends(pair, sums, balance[draw])
        is_smaller = ends < self._limits[pair]
        pair, ends = pair[is_smaller], ends[is_smaller]

        # the new ends as a matrix: a row per pair, filled up with infinity
        numbers = np.bincount(pair, minlength=len(self._ranks))
        place = np.arange(len(pair)) - np.repeat(np.cumsum(numbers) - numbers, numbers)
        block = np.full((len(self._ranks), numbers.max()), np.inf)
        block[pair, place] = ends
        self._ends.append(block)

        lacks_limits = (self._limits == np.inf).all()
        if self._width >= (self._most if lacks_limits else 2 * self._most):
            self._select_smallest()

    def _find_candidates(self, quick: Quick, balance: Vector) -> tuple[_Counts, _Counts]:
        """Return the row and column of each draw whose end may be below the limit of the pair, row by row."""
        if (self._limits == np.inf).any():
            pair, draw = np.divmod(np.arange(quick.size), quick.shape[1])
            return pair, draw
        kind = quick.dtype
        with np.errstate(invalid="ignore"):  # a limit of -infinity: no end is below it
            distance = self._distance = take_buffer(self._distance, quick.shape, kind)
            np.multiply.outer((self._side * self._limits).astype(kind), balance.astype(kind), out=distance)
            np.subtract(quick, distance, out=distance)
            size = self._sums.sizes + np.abs(self._limits) * self._n
            least = self._total - self._limits * self._n - self._sums.precision * size
        np.abs(distance, out=distance)
        return find_places(distance >= least.astype(kind)[:, None])

    def _compute_ends(self, pair: _Counts, sums: Vector, balance: Vector) -> Vector:
        """Return the end of each draw: the smaller of its two means. `pair` is the row that the draw is for."""
        total, n = self._total[pair], self._n
        sums = self._side * sums
        with np.errstate(divide="ignore", invalid="ignore"):
            mean_of_kept = (total + sums) / (n + balance)
            mean_of_turned = (total - sums) / (n - balance)
        ends: Vector = np.minimum(mean_of_kept, mean_of_turned)

        ends[np.abs(balance) == n] = -np.inf  # all signs are equal: as extreme for every true mean
        # A tie with the observed mean counts for the test, and rounding must not break it here.
        is_reached = np.abs(sums) >= self._reach[pair]
        return np.minimum(ends, 0.0, out=ends, where=is_reached)

    def _select_smallest(self) -> None:
        ends = np.hstack(self._ends)
        ends = np.partition(ends, np.unique(self._ranks) - 1, axis=1)[:, : self._most]
        self._limits = ends[np.arange(len(ends)), self._ranks - 1]
        self._ends = [ends]
