"""Statistical tests on paired values, and the check of their settings.

The tests are pure functions over matrices with a row per pair of systems and a column per query. If all differences are
zero, p is 1 by definition. Otherwise the p of the t-test is NaN for a single query, or if all differences are equal.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import count
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from goodgain.errors import InputError, tell_progress
from goodgain.options import ALPHA, OPTIONS, RESAMPLES, SEED, check_whole_number, spell

Matrix = NDArray[np.float64]
Vector = NDArray[np.float64]
#: A difference at most this large, relative to the two values, is a rounding error and counts as zero.
RESIDUE = 1e-12
#: Cells of one block of resamples: 32 MB at 8 bytes each.
_BLOCK = 4_000_000
#: Cells of one block of random signs: 3 MB, which a processor's cache holds. Larger blocks take three times as long.
_BLOCK_OF_SIGNS = 400_000
#: The largest number of cells in cached samples: 64 MB.
_MOST_KEPT = 32_000_000
#: Nodes of the two quadratures: within 1e-9 of SciPy up to 100 systems.
_NODES = 128
_find_nodes = cache(np.polynomial.legendre.leggauss)
#: Values of q whose integrands are in memory at once. 256 rows of 128 nodes stay in a processor's cache.
_VALUES_AT_ONCE = 256
#: Probability outside each end of the outer integral.
_TAIL = 1e-16
#: Limit of `resamples=`: more take very long, and change p only beyond its third decimal.
MOST_RESAMPLES = 1_000_000
#: The default of `resamples=`. Only with this default does `count_signs` choose a larger number.
_DEFAULT_RESAMPLES: int = OPTIONS["resamples"].default
#: `count_signs` chooses so many signs that the smallest corrected p is alpha divided by this number.
_FINENESS = 20
#: Number of queries, seed, resamples -> bootstrap samples.
Draw = Callable[[int, int, int], Iterator[Matrix]]


class Settings(NamedTuple):
    seed: int = SEED
    resamples: int = _DEFAULT_RESAMPLES
    alpha: float = ALPHA
    draw: Draw | None = None  # draws bootstrap samples; None: `draw_queries`

    @property
    def signature(self) -> dict[str, Any]:
        return {"seed": self.seed, "resamples": self.resamples, "alpha": self.alpha}


def check_settings(seed: int, resamples: int, alpha: float, *, least: int = 1) -> Settings:
    """Check and return the settings of tests and bootstrap. Raise `InputError` for a setting out of range."""
    if not isinstance(alpha, (int, float)) or not 0 < alpha < 1:
        raise InputError(f"{spell('alpha', alpha)}: give a number between 0 and 1, such as 0.05")
    check_whole_number("seed", seed, 0)
    check_whole_number("resamples", resamples, least, MOST_RESAMPLES)
    return Settings(seed, resamples, float(alpha))


def subtract_without_residue(a: Matrix, b: Matrix) -> Matrix:
    """Return a - b, with differences at rounding level set to 0.

    Rounding errors often share one sign. The tests look at signs, and would find a significant difference between two
    systems with equal values.
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
    return np.where(differences.any(axis=1), p, 1.0)


def compute_effect_size(differences: Matrix) -> Vector:
    """Return Cohen's d for paired values: the mean of differences divided by their standard deviation; 0 if all differences are 0.

    Source: Cohen, Statistical Power Analysis, d_z.
    """
    if differences.shape[1] < 2:
        return np.where(differences.any(axis=1), np.nan, 0.0)
    spread = find_spread(differences)
    d = differences.mean(axis=1) / np.where(spread == 0, np.nan, spread)
    return np.where(differences.any(axis=1), d, 0.0)


def find_spread(differences: Matrix) -> Vector:
    """Return the standard deviation of each row of differences, or 0 for a spread at rounding level.

    >>> find_spread(np.array([[1.0, 3.0], [1 - 1 / 3, 2 / 3]])).round(4).tolist()
    [1.4142, 0.0]
    """
    spread = differences.std(axis=1, ddof=1)
    residue = RESIDUE * np.abs(differences).max(axis=1)
    return np.where(spread <= residue, 0.0, spread)


def find_reach(differences: Matrix) -> Vector:
    """Return the sum from which on random signs are as far from 0 as the observed signs; rounding must not break a tie."""
    reach: Vector = np.abs(differences.sum(axis=1)) - RESIDUE * np.abs(differences).sum(axis=1)
    return reach


def count_draws(n: int, resamples: int) -> int:
    """Return the number of draws of signs, without the observed signs: `resamples`, or all if there are at most so many.

    >>> count_draws(6, 9999), count_draws(14, 9999)
    (63, 9999)
    """
    return 2**n - 1 if _are_all_tried(n, resamples) else resamples


def draw_signs(n: int, pairs: int, *, seed: int, resamples: int) -> Iterator[Matrix]:
    """Yield the signs of the randomisation test in blocks: a row per draw, a column per query. `pairs` limits the blocks."""
    columns = max(n, pairs)
    blocks = _list_all_bits(n, columns) if _are_all_tried(n, resamples) else _draw_bits(n, columns, seed, resamples)
    for bits in blocks:
        yield 1.0 - 2.0 * bits.astype(np.float64)


def _are_all_tried(n: int, resamples: int) -> bool:
    return n < 64 and 2**n <= resamples


def _list_all_bits(n: int, columns: int) -> Iterator[NDArray[np.integer]]:
    first = 1  # 0 has the observed signs
    for rows in split_resamples(2**n - 1, columns, _BLOCK_OF_SIGNS):
        numbers = np.arange(first, first + rows)
        yield (numbers[:, None] >> np.arange(n)) & 1
        first += rows


def _draw_bits(n: int, columns: int, seed: int, resamples: int) -> Iterator[NDArray[np.integer]]:
    random = np.random.default_rng(seed)
    for rows in split_resamples(resamples, columns, _BLOCK_OF_SIGNS):
        # one random number gives 64 bits
        drawn = random.integers(0, 2**64, size=(rows, -(-n // 64)), dtype=np.uint64).astype("<u8", copy=False)
        yield np.unpackbits(drawn.view(np.uint8), axis=1, count=n)


def count_signs(settings: Settings, pairs: int) -> int:
    """Return how many random signs the randomisation test of each pair draws, if Holm's method corrects `pairs` pairs.

    The number is `resamples`. If no p could then be small enough, and `resamples` has its default, the number is
    20 · pairs / alpha, at most 1,000,000.

    >>> count_signs(Settings(), 500), count_signs(Settings(), 528), count_signs(Settings(resamples=99), 528)
    (9999, 211200, 99)
    """
    if settings.resamples != _DEFAULT_RESAMPLES or _can_decide(settings.resamples, settings.alpha, pairs):
        return settings.resamples
    return min(math.ceil(_FINENESS * pairs / settings.alpha), MOST_RESAMPLES)


def lacks_signs(settings: Settings, pairs: int) -> bool:
    """Return whether no p can be significant, because `count_signs` is too small.

    The smallest p is 1 / (signs + 1). Holm's method multiplies it by the number of pairs.

    >>> lacks_signs(Settings(), 528), lacks_signs(Settings(resamples=99), 528)
    (False, True)
    """
    return not _can_decide(count_signs(settings, pairs), settings.alpha, pairs)


def _can_decide(signs: int, alpha: float, pairs: int) -> bool:
    return pairs * (1 / (signs + 1)) <= alpha


def count_least_queries(alpha: float, pairs: int = 1) -> int:
    """Return the smallest number n of queries on which a difference can be significant: pairs · 2 / 2^n <= alpha.

    Holm's method multiplies the smallest p of a family by the number of pairs.

    >>> count_least_queries(0.05), count_least_queries(0.0625), count_least_queries(0.05, pairs=3)
    (6, 5, 7)
    """
    return next(n for n in count(1) if pairs * 2.0 ** (1 - n) <= alpha)


def bootstrap_interval(
    differences: Matrix, *, level: float = 0.95, seed: int = SEED, resamples: int = RESAMPLES, draw: Draw | None = None
) -> tuple[Vector, Vector]:
    """Return the lower and upper ends of the bootstrap percentile interval for each row's mean over queries.

    All rows share the same draws.

    Source: Efron and Tibshirani, An Introduction to the Bootstrap, chapter 13.

    >>> low, high = bootstrap_interval(np.array([[1.0, 1.0, 1.0]]))
    >>> low.tolist(), high.tolist()
    ([1.0], [1.0])
    """
    n = differences.shape[1]
    draw_samples = draw or draw_queries
    means = [times @ differences.T / n for times in draw_samples(n, seed, resamples)]
    tail = (1 - level) / 2
    low, high = np.quantile(np.concatenate(means), [tail, 1 - tail], axis=0)
    return low, high


def draw_queries(n: int, seed: int, resamples: int) -> Iterator[Matrix]:
    """Yield bootstrap samples in blocks: a row per sample with the number of times that each of n queries was drawn."""
    random = np.random.default_rng(seed)
    for rows in split_resamples(resamples, n):
        drawn = random.integers(0, n, size=(rows, n))
        counts = [np.bincount(row, minlength=n) for row in drawn]
        yield np.stack(counts).astype(np.float64)


def find_intervals(differences: Matrix, settings: Settings) -> tuple[Vector, Vector]:
    """Return the lower and upper ends of the bootstrap interval for each row of differences."""
    seed, resamples, alpha, draw = settings
    return bootstrap_interval(differences, level=1 - alpha, seed=seed, resamples=resamples, draw=draw)


class KeptDraws:
    """Draws bootstrap samples, and caches the last samples if they take at most 64 MB."""

    def __init__(self) -> None:
        self._key = (0, 0, 0)
        self._kept: list[NDArray[np.uint16]] = []

    def __call__(self, n: int, seed: int, resamples: int) -> Iterator[Matrix]:
        """Return the samples of `draw_queries`. If the last call had the same arguments, they come from the cache."""
        if n >= 2**16 or n * resamples > _MOST_KEPT:
            return draw_queries(n, seed, resamples)
        if self._key != (n, seed, resamples):
            self._kept = [times.astype(np.uint16) for times in draw_queries(n, seed, resamples)]
            self._key = n, seed, resamples
        return (times.astype(np.float64) for times in self._kept)


def split_resamples(resamples: int, columns: int, cells: int = _BLOCK) -> Iterator[int]:
    size = max(1, cells // columns)
    for start in range(0, resamples, size):
        tell_progress("resampling", start, resamples)
        yield min(size, resamples - start)


def correct_by_holm(p: Vector) -> Vector:
    """Correct the p-values of one family of tests by Holm's step-down method; NaN does not count as a test.

    >>> correct_by_holm(np.array([0.01, 0.04, 0.03])).round(4).tolist()
    [0.03, 0.06, 0.06]
    """
    corrected = np.full(len(p), np.nan)
    tests = np.flatnonzero(~np.isnan(p))
    order = tests[np.argsort(p[tests], kind="stable")]
    factors = len(tests) - np.arange(len(tests))
    corrected[order] = np.minimum(np.maximum.accumulate(factors * p[order]), 1.0)
    return corrected


def run_tukey_test(values: Matrix, pairs: Sequence[tuple[int, int]]) -> Vector:
    """Return p of Tukey's honestly significant difference test for some pairs of systems, corrected for all possible pairs.

    q = |mean_a - mean_b| / sqrt(MSE / n) has the studentised range distribution of S systems with (S - 1)(n - 1) degrees
    of freedom. MSE is the residual of the two-way analysis of variance over systems and queries. For two systems the test
    is the paired t-test. `values` has a row per system, and `pairs` has row numbers. p can be NaN if MSE is 0 or undefined.

    Source: Carterette, Multiple Testing in Statistical Analysis of Systems-Based Information Retrieval Experiments, ACM TOIS 30(1),
    2012.

    >>> run_tukey_test(np.array([[1.0, 2.0, 4.0], [1.0, 3.0, 4.0], [4.0, 5.0, 6.0]]), [(1, 0), (2, 0)]).round(4).tolist()
    [0.6152, 0.0029]
    """
    systems, n = values.shape
    means = values.mean(axis=1)
    residual = values - means[:, None] - values.mean(axis=0) + means.mean()
    freedom = (systems - 1) * (n - 1)
    a, b = (list(side) for side in zip(*pairs, strict=True))
    is_equal = ~subtract_without_residue(values[a], values[b]).any(axis=1)
    spread = 0.0
    if freedom:
        spread = np.sqrt((residual**2).sum() / freedom / n)
    if spread <= RESIDUE * np.abs(values).max(initial=0.0):
        return np.where(is_equal, 1.0, np.nan)

    q = np.abs(means[a] - means[b]) / spread
    return np.where(is_equal, 1.0, compute_studentized_range_sf(q, systems, freedom))


def compute_studentized_range_sf(q: Vector, systems: int, freedom: int) -> Vector:
    """Return P(Q > q). Q is the range of `systems` normal values, divided by an independent standard deviation.

    P(Q > q) = 1 - int f(s) W(q s) ds, where f is the density of the standard deviation, k the number of systems, and
    W(w) = k int phi(z) (Phi(z) - Phi(z - w))^(k - 1) dz.
    The integrals use fixed Gauss-Legendre nodes. SciPy's function integrates adaptively and is far slower (20 ms a value).
    """
    from scipy.special import chdtri, gammaln, ndtr

    nodes, weights = _find_nodes(_NODES)
    low, high = (np.sqrt(chdtri(freedom, tail) / freedom) for tail in (1 - _TAIL, _TAIL))
    s = (high - low) / 2 * nodes + (high + low) / 2
    log_constant = freedom * np.log(freedom) / 2 - (freedom / 2 - 1) * np.log(2) - gammaln(freedom / 2)
    log_f = log_constant + (freedom - 1) * np.log(s) - freedom * s**2 / 2
    f = np.exp(log_f) * (high - low) / 2 * weights

    z = 8.5 * nodes  # beyond 8.5 the normal density is below 1e-15
    density = systems * np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi)
    phi = density * 8.5 * weights
    phi_of_z = ndtr(z)
    below = np.zeros_like(q)
    for start in range(0, len(q), _VALUES_AT_ONCE):
        block = slice(start, start + _VALUES_AT_ONCE)
        for at, weight in zip(s, f, strict=True):
            within = phi_of_z - ndtr(z - q[block, None] * at)
            below[block] += weight * (_raise_to_power(within, systems - 1) @ phi)
    return np.clip(1 - below, 0.0, 1.0)


def _raise_to_power(base: Matrix, exponent: int) -> Matrix:
    """Return base ** exponent by repeated squaring. NumPy's power of floats takes several times as long."""
    power = np.ones_like(base)
    while exponent:
        if exponent & 1:
            power *= base
        base = base * base
        exponent >>= 1
    return power
