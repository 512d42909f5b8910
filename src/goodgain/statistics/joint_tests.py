"""Tests of many differences at once: by the largest statistic of all differences, and by the range of all systems.

Both are randomisation tests. Their p-values are corrected already: the chance that any of equal systems is called different
is at most alpha.
"""

from collections.abc import Iterator, Sequence
from itertools import permutations, product
from math import factorial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from goodgain.options import ALPHA, RESAMPLES, SEED
from goodgain.statistics.intervals_of_pairs import find_rank
from goodgain.statistics.statistical_tests import (
    RESIDUE,
    Matrix,
    Vector,
    count_draws,
    draw_signs,
    find_reach,
    split_resamples,
)

#: Cells of one block of permuted values: 8 MB at 8 bytes each.
_BLOCK_OF_VALUES = 1_000_000
_Counts = NDArray[np.int64]


class LargestStatistic(NamedTuple):
    """The result of `run_largest_statistic_test`, with an entry per difference."""

    p: Vector
    ranks: _Counts  # the test of this difference alone gives the same decision if it rejects p <= rank / (draws + 1)


def run_largest_statistic_test(
    differences: Matrix, *, alpha: float = ALPHA, seed: int = SEED, resamples: int = RESAMPLES
) -> LargestStatistic:
    """Return p of each row of differences, corrected over all rows.

    Each draw changes the signs of whole queries, the same for all rows, so the rows stay as correlated as they are. The
    statistic of a row is |sum of differences| / sqrt(sum of squares), which orders draws as t does. p is the share of draws in
    which the largest statistic reaches that of the row. Step down: rows with larger statistics are left out of the largest.

    `differences` has a column per query, with NaN where a row has no value.

    Source: Westfall and Young, Resampling-Based Multiple Testing, Wiley 1993 (step-down).

    >>> differences = np.array([[1.0, 2, 3, 4, 5, 6], [1, -1, 2, 2, 1, 1]])
    >>> run_largest_statistic_test(differences).p.tolist()
    [0.0625, 0.15625]
    """
    scaled = _scale(differences)
    rows, n = scaled.shape
    draws = count_draws(n, resamples)
    order = np.argsort(find_reach(scaled))  # the smallest statistic first
    scaled = scaled[order]
    reach = find_reach(scaled)[:, None]

    alone, among_all = np.ones(rows, dtype=np.int64), np.ones(rows, dtype=np.int64)  # the observed signs are a draw too
    for signs in draw_signs(n, rows, seed=seed, resamples=resamples):
        statistics = np.abs(scaled @ signs.T)  # a row per difference, a column per draw
        alone += (statistics >= reach).sum(axis=1)
        largest = np.maximum.accumulate(statistics, axis=0)
        among_all += (largest >= reach).sum(axis=1)
    p = among_all / (draws + 1)
    p = np.maximum.accumulate(p[::-1])[::-1]  # no p is smaller than that of a larger statistic

    # No row is tested at a higher level than alpha; too few draws reject nothing, and the rank is 0.
    beyond = np.minimum(1 + _count_beyond(scaled, p <= alpha, alpha, seed, resamples), find_rank(1, alpha, draws))
    ranks = np.where(p <= alpha, np.maximum(beyond, alone), np.minimum(beyond, alone - 1))

    unsorted = np.argsort(order)
    return LargestStatistic(p[unsorted], ranks[unsorted])


def _scale(differences: Matrix) -> Matrix:
    """Return the differences with a sum of squares of 1 in each row, and 0 for NaN."""
    known: Matrix = np.nan_to_num(differences)
    largest = np.abs(known).max(axis=1, initial=0.0, keepdims=True)
    known = known / np.where(largest == 0, 1.0, largest)  # squares must not overflow or vanish
    size = np.sqrt((known**2).sum(axis=1, keepdims=True))
    return known / np.where(size == 0, 1.0, size)


def _count_beyond(scaled: Matrix, is_rejected: NDArray[np.bool_], alpha: float, seed: int, resamples: int) -> _Counts:
    """Count the draws of each row beyond the critical value of the last step: of all rows that are not rejected.

    The smallest statistic comes first. It is the last step if all rows are rejected.
    """
    rows, n = scaled.shape
    last = ~is_rejected
    last[:1] = True
    blocks = draw_signs(n, rows, seed=seed, resamples=resamples)
    largest = np.concatenate([np.abs(scaled[last] @ signs.T).max(axis=0) for signs in blocks])
    rank = max(1, find_rank(1, alpha, len(largest)))
    critical = np.partition(largest, -rank)[-rank] if len(largest) else np.inf

    beyond = np.zeros(rows, dtype=np.int64)
    for signs in draw_signs(n, rows, seed=seed, resamples=resamples):
        beyond += (np.abs(scaled @ signs.T) > critical + RESIDUE).sum(axis=1)
    return beyond


def compute_chance_of_decision(
    differences: Matrix,
    numbers_of_tests: Sequence[int],
    *,
    alpha: float = ALPHA,
    seed: int = SEED,
    resamples: int = RESAMPLES,
) -> float:
    """Return the chance that at least one row is called different if all systems are equal.

    Each draw of signs is a sample of equal systems. A row is called different if its p among all draws, times its number of
    tests, is at most alpha: so begins Holm's method. `differences` is as in `run_largest_statistic_test`.

    >>> differences = np.array([[1.0, 2, 3, 4, 5, 6], [6, -5, 4, -3, 2, -1]])
    >>> compute_chance_of_decision(differences[:1], [1]), compute_chance_of_decision(differences, [1, 1])
    (0.03125, 0.0625)
    """
    scaled = _scale(differences)
    rows, n = scaled.shape
    draws = count_draws(n, resamples)
    ranks = np.array([find_rank(number, alpha, draws) for number in numbers_of_tests])
    at_most = int(ranks.max(initial=0)) + 1
    observed = np.abs(scaled.sum(axis=1))[:, None]

    # A row per difference: its largest statistics so far, and their draws. The observed signs are draw 0.
    values, numbers = observed, np.zeros((rows, 1), dtype=np.int64)
    first = 1
    for signs in draw_signs(n, rows, seed=seed, resamples=resamples):
        statistics = np.abs(scaled @ signs.T)
        numbers_of_block = np.broadcast_to(np.arange(first, first + len(signs)), statistics.shape)
        values, numbers = np.hstack([values, statistics]), np.hstack([numbers, numbers_of_block])
        first += len(signs)
        if values.shape[1] > at_most:
            largest = np.argpartition(-values, at_most - 1, axis=1)[:, :at_most]
            values = np.take_along_axis(values, largest, axis=1)
            numbers = np.take_along_axis(numbers, largest, axis=1)

    decided: set[int] = set()
    for row, rank in enumerate(ranks):
        if rank and values.shape[1] > rank:
            critical = np.sort(values[row])[::-1][rank]  # a draw is decided if at most `rank` draws are as far
            decided.update(numbers[row][values[row] > critical + RESIDUE].tolist())
    return len(decided) / (draws + 1)


class RangeTest(NamedTuple):
    """The result of `run_randomised_tukey_test`: p of each pair, and half the width of its interval (NaN: no interval)."""

    p: Vector
    half: Vector


def run_randomised_tukey_test(
    values: Matrix,
    pairs: Sequence[tuple[int, int]],
    *,
    alpha: float = ALPHA,
    seed: int = SEED,
    resamples: int = RESAMPLES,
) -> RangeTest:
    """Return p of some pairs of systems by the randomised Tukey HSD test, corrected for all possible pairs.

    Each draw permutes the values of every query among the systems. p is the share of draws in which the largest mean minus
    the smallest is at least the difference of the pair. The interval of a pair is its difference plus and minus the range that
    alpha of the draws exceed. If there are at most `resamples` ways to permute, all are tried.

    `values` has a row per system, a column per query, and no NaN.

    Source: Carterette, Multiple Testing in Statistical Analysis of Systems-Based Information Retrieval Experiments, ACM TOIS 30(1),
    2012.

    >>> values = np.array([[0.0, 0, 0, 0], [1, 2, 1, 2], [1, 2, 2, 1]])
    >>> run_randomised_tukey_test(values, [(1, 0), (2, 1)]).p.round(3).tolist()
    [0.093, 1.0]
    """
    systems, n = values.shape
    if not n or not pairs:
        return RangeTest(np.full(len(pairs), np.nan), np.full(len(pairs), np.nan))
    first, second = (values[list(side)] for side in zip(*pairs, strict=True))
    observed = np.abs((first - second).sum(axis=1))
    reach = observed - RESIDUE * (np.abs(first) + np.abs(second)).sum(axis=1)

    ways = factorial(systems) ** n
    is_exact = ways <= resamples
    draws = ways - 1 if is_exact else resamples
    blocks = _list_all_permuted(values) if is_exact else _draw_permuted(values, seed, resamples)
    sums = np.concatenate([block.sum(axis=2) for block in blocks])  # a row per draw, a column per system
    ranges = np.sort(sums.max(axis=1) - sums.min(axis=1))

    as_far = 1 + len(ranges) - np.searchsorted(ranges, reach)
    p = as_far / (draws + 1)
    rank = find_rank(1, alpha, draws)
    if not rank:
        return RangeTest(p, np.full(len(pairs), np.nan))
    critical = ranges[-rank]
    half = np.where(p <= alpha, critical, np.maximum(critical, observed))  # rounding must not move 0 outside
    return RangeTest(p, half / n)


def _list_all_permuted(values: Matrix) -> Iterator[Matrix]:
    """Yield the values after all ways to permute the systems within queries, without the observed way."""
    systems, n = values.shape
    orders = np.array([*permutations(range(systems))])  # the first one is the observed order
    ways = np.array([*product(range(len(orders)), repeat=n)])[1:]  # a row per way, a column per query
    for start in range(0, len(ways), 1_000):
        chosen = orders[ways[start : start + 1_000]]  # way, query, system
        yield values[chosen.transpose(0, 2, 1), np.arange(n)]


def _draw_permuted(values: Matrix, seed: int, resamples: int) -> Iterator[Matrix]:
    random = np.random.default_rng(seed)
    for draws in split_resamples(resamples, values.size, _BLOCK_OF_VALUES):
        yield random.permuted(np.broadcast_to(values, (draws, *values.shape)), axis=1)
