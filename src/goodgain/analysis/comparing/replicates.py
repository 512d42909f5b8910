"""Statistics of several runs of one system (replicates): noise, chance of success, and the number of queries needed.

The functions are pure. A matrix of replicates has a row per run and a column per query; NaN is a query without a value.
All tests are over queries, never over query x replicate: the values of a query are averaged first.
"""

import math
from bisect import bisect_left
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from goodgain.options import ALPHA
from goodgain.statistics.statistical_tests import RESIDUE, Matrix, Vector

#: A noise floor needs this many queries with two runs of the baseline or more.
LEAST_QUERIES = 20
#: The level of a noise floor, one-sided.
NOISE_LEVEL = 0.05
#: The one-sided 5 % and the two-sided 5 % point of the normal distribution.
_ONE_SIDE, _TWO_SIDES = 1.6448536269514722, 1.959963984540054
#: The power for which the needed queries and runs are computed.
POWER = 0.8
#: The largest difference that `compute_detectable_difference` tries, in standard deviations.
_LARGEST_EFFECT = 10_000.0
#: The largest number of queries that `compute_queries_needed` returns.
_MOST_QUERIES = 1_000_000_000


class Spread(NamedTuple):
    """How the values of a measure vary over the replicates of a system: columns of `Comparison.replicates`."""

    mean: float | None  # over the means of queries
    within: float | None  # the variance between runs of one query
    between: float | None  # the variance between queries, without the variance within
    icc: float | None
    best: float | None
    worst: float | None
    oracle_pick: float | None  # the mean over the best run of each query


def measure_spread(replicates: Matrix, *, higher_is_better: bool = True) -> Spread:
    """Measure the spread of values by the one-way random-effects model. Each query is a group of any size.

    MSB and MSW are the mean squares between and within queries, n0 = (N - sum n_q^2 / N) / (Q - 1),
    between = max(0, (MSB - MSW) / n0), icc = between / (between + MSW).
    Within, between and icc are None if there is only one query, or if no query has two values.
    Icc is also None if both variances are 0.

    Source: Searle, Casella and McCulloch, Variance Components, chapter 3.

    >>> measure_spread(np.array([[1.0, 3.0], [0.0, 2.0]]))
    Spread(mean=1.5, within=0.5, between=1.75, icc=0.7777777777777778, best=2.0, worst=1.0, oracle_pick=2.0)
    """
    used = replicates[:, np.isfinite(replicates).any(axis=0)]
    if not used.shape[1]:
        return Spread(*[None] * 7)
    runs = used[np.isfinite(used).any(axis=1)]
    means = [math.fsum(run[np.isfinite(run)]) / np.isfinite(run).sum() for run in runs]
    pick, best, worst = (np.nanmax, max, min) if higher_is_better else (np.nanmin, min, max)
    of_queries = average_replicates(used)
    mean = math.fsum(of_queries) / len(of_queries)
    picked = math.fsum(pick(used, axis=0)) / len(of_queries)
    within, between, icc = _split_variance(used, of_queries)
    return Spread(mean, within, between, icc, float(best(means)), float(worst(means)), picked)


def _split_variance(values: Matrix, of_queries: Vector) -> tuple[float | None, float | None, float | None]:
    """Return within, between and icc of `measure_spread`. `of_queries` are the means of the columns of `values`."""
    sizes = np.isfinite(values).sum(axis=0)
    total, queries = int(sizes.sum()), len(sizes)
    if total == queries or queries < 2:
        return None, None, None
    within = float(np.nansum((values - of_queries) ** 2)) / (total - queries)
    overall = float((sizes * of_queries).sum()) / total
    mean_square = float((sizes * (of_queries - overall) ** 2).sum()) / (queries - 1)
    size = (total - float((sizes**2).sum()) / total) / (queries - 1)
    between = max(0.0, (mean_square - within) / size)
    if between <= (RESIDUE * overall) ** 2:
        between = 0.0
    return within, between, between / (between + within) if between + within else None


def average_replicates(replicates: Matrix) -> Vector:
    """Return each query's mean over the replicates that have a value, or NaN if no replicate has one.

    >>> average_replicates(np.array([[1.0, np.nan, np.nan], [2.0, 3.0, np.nan]])).tolist()
    [1.5, 3.0, nan]
    """
    known = np.isfinite(replicates)
    sizes = known.sum(axis=0)
    mean = np.where(known, replicates, 0.0).sum(axis=0) / np.maximum(sizes, 1)
    # the mean of equal values is this value, without a rounding error
    least, most = (np.where(known, replicates, far).T for far in (np.inf, -np.inf))
    return np.where(sizes > 0, np.clip(mean, least.min(axis=1), most.max(axis=1)), np.nan)


class Flips(NamedTuple):
    """How consistently the runs of a system pass a threshold. Each value is a mean over queries; None without queries."""

    k: int | None  # the number of runs in pass_at_k and pass_all_k
    pass_at_k: float | None  # the chance that at least one of k runs passes
    pass_all_k: float | None  # the chance that all of k runs pass (pass^k)
    flip_rate: float | None  # the chance that two runs disagree
    ever_flips: float | None  # the share of queries on which some runs pass and some fail


def count_flips(passes: NDArray[np.bool_], known: NDArray[np.bool_], k: int | None = None) -> Flips:
    """Measure how consistently the runs of a system pass a threshold. If c of the n runs of a query pass:

    pass_at_k = 1 - C(n - c, k) / C(n, k), pass_all_k = C(c, k) / C(n, k), flip_rate = 2 c (n - c) / (n (n - 1)).

    Args:
        passes: whether each value passes the threshold. The matrix has a row per run and a column per query.
        known: whether each run has a value of each query, in a matrix of the same shape.
        k: the number of runs drawn for pass_at_k and pass_all_k; None: the smallest number of runs of any query. Queries with
            fewer than k runs do not count in pass_at_k and pass_all_k.

    Source: Chen et al., Evaluating Large Language Models Trained on Code (pass@k); tau-bench (pass^k).

    >>> passes = np.array([[True], [True], [False]])
    >>> count_flips(passes, np.ones_like(passes), k=2)
    Flips(k=2, pass_at_k=1.0, pass_all_k=0.3333333333333333, flip_rate=0.6666666666666666, ever_flips=1.0)
    """
    passed, sizes = (passes & known).sum(axis=0).tolist(), known.sum(axis=0).tolist()
    queries = [(c, n) for c, n in zip(passed, sizes, strict=True) if n]
    drawn = min((n for _, n in queries), default=None) if k is None else k
    enough = [(c, n) for c, n in queries if drawn is not None and n >= drawn]
    several = [(c, n) for c, n in queries if n >= 2]
    return Flips(
        drawn,
        _average([1 - math.comb(n - c, drawn) / math.comb(n, drawn) for c, n in enough if drawn]),
        _average([math.comb(c, drawn) / math.comb(n, drawn) for c, n in enough if drawn]),
        _average([2 * c * (n - c) / (n * (n - 1)) for c, n in several]),
        _average([float(0 < c < n) for c, n in several]),
    )


def _average(values: list[float]) -> float | None:
    return math.fsum(values) / len(values) if values else None


class Noise(NamedTuple):
    """The noise of the mean of a baseline, estimated from its runs."""

    sd: float  # the standard deviation of the difference of two means, if the new system were the baseline
    floor: float  # the largest loss that this noise explains at 5 %, one-sided: 1.645 sd
    two_single_runs: float  # the largest difference of two single runs, 95 %: 1.96 sqrt(2 sum s_q^2) / Q
    p_independent: float  # p of the differences between the means of runs, if queries are independent; NaN for one run


def measure_noise(baseline: Matrix, runs_of_other: Vector) -> Noise | None:
    """Estimate the noise of a baseline's mean. Return None if fewer than `LEAST_QUERIES` queries have two runs of the baseline.

    `baseline` has a row per run and a column per query. `runs_of_other` has a number per query: the runs of the other system.

    sd = sqrt(sum s_q^2 (1 / r_q + 1 / n_q)) / Q over the Q queries. In query q, the baseline has n_q runs with the unbiased
    variance s_q^2, and the other system has r_q runs (`runs_of_other`).
    If n_q is 1, s_q^2 is the mean variance of the queries with several runs.
    `p_independent` tests whether the means of runs differ more than independent queries explain.
    """
    has_value = np.isfinite(baseline).any(axis=0)
    is_shared = has_value & (runs_of_other > 0)  # whether both systems have a run of the query
    values = baseline[:, is_shared]
    other_runs = runs_of_other[is_shared]
    queries = len(other_runs)

    is_known = np.isfinite(values)
    runs = is_known.sum(axis=0)  # of each query
    has_several = runs >= 2
    if has_several.sum() < LEAST_QUERIES:
        return None

    deviations = np.where(is_known, values - average_replicates(values), 0.0)
    squares = (deviations**2).sum(axis=0)
    variances_of_several = squares[has_several] / (runs[has_several] - 1)
    variances = np.full(queries, variances_of_several.mean())
    variances[has_several] = variances_of_several

    sd = math.sqrt(float((variances * (1 / other_runs + 1 / runs)).sum())) / queries
    sd_of_run = math.sqrt(float(variances.sum())) / queries  # of the mean of a single run
    p_independent = math.nan
    complete_runs = values[is_known.all(axis=1)]
    if len(complete_runs) >= 2:
        p_independent = _test_independence(complete_runs.mean(axis=1), sd_of_run)
    return Noise(
        sd=sd,
        floor=_ONE_SIDE * sd,
        two_single_runs=_TWO_SIDES * math.sqrt(2) * sd_of_run,
        p_independent=p_independent,
    )


def _test_independence(means: Vector, sd_of_run: float) -> float:
    """Return the chance that independent queries give means of runs that differ so much.

    (n - 1) s^2 / `sd_of_run`^2 has the chi-square distribution with n - 1 degrees of freedom. s^2 is the variance of the n means,
    and `sd_of_run` the standard deviation of a mean according to the variances within queries.
    """
    from scipy.special import chdtrc

    spread = float(means.std(ddof=1))
    if spread <= RESIDUE * float(np.abs(means).max()):
        return 1.0
    freedom = len(means) - 1
    return float(chdtrc(freedom, freedom * (spread / sd_of_run) ** 2)) if sd_of_run else 0.0


class RunNoise(NamedTuple):
    """The number of a system's runs, and their variance within queries (None: a single run)."""

    runs: int = 1
    within: float | None = None


def compute_share_of_reruns(
    differences: Vector, noise: RunNoise | None, noise_of_other: RunNoise | None
) -> float | None:
    """Return the share of rerun noise in the variance of the differences over queries: (s_A^2 / r_A + s_B^2 / r_B) / s_d^2.

    s_A^2 and s_B^2 are the variances within queries, r_A and r_B the numbers of runs. Return None if a system has a single run, or
    if the differences do not vary.

    >>> share = compute_share_of_reruns(np.array([0.5, -0.5] * 50), RunNoise(3, 0.3), RunNoise(3, 0.3))
    >>> round(share, 3)
    0.792
    """
    if noise is None or noise_of_other is None or noise.within is None or noise_of_other.within is None:
        return None
    variance = float(differences.var(ddof=1)) if len(differences) > 1 else 0.0
    if not variance:
        return None
    return min(1.0, (noise.within / noise.runs + noise_of_other.within / noise_of_other.runs) / variance)


def compute_noise_p(loss: float, floor: float) -> float:
    """Return the one-sided p of a loss under the baseline's noise: .05 at `floor`, and less for a larger loss.

    Without noise, p is 0 if the system has a loss, else 1.
    """
    from scipy.special import ndtr

    return float(ndtr(-loss / (floor / _ONE_SIDE))) if floor else float(loss <= 0)


def compute_power(difference: float, spread: float, queries: int, *, alpha: float = ALPHA) -> float:
    """Return the power of the two-sided paired t-test: the chance that it finds a true difference.

    The power is P(|T| > t), where t is the critical value of the test on n queries. T has the noncentral t distribution
    with n - 1 degrees of freedom and ncp = |difference| sqrt(n) / spread.

    `difference` is the true mean of the differences over queries, and `spread` is their standard deviation.

    >>> round(compute_power(0.25, 1.0, 128), 3)
    0.802
    """
    from scipy.special import nctdtr, stdtrit

    bound = -float(stdtrit(queries - 1, alpha / 2))
    shift = abs(difference) * math.sqrt(queries) / spread
    below, other_tail = (float(nctdtr(queries - 1, shift, end)) for end in (bound, -bound))
    if math.isnan(below):  # SciPy has NaN for some tails below 1e-15
        below = float(shift < bound)
    return 1 - below + (0.0 if math.isnan(other_tail) else other_tail)


def compute_queries_needed(difference: float, spread: float, *, alpha: float = ALPHA) -> int | None:
    """Return the smallest number of queries on which the paired t-test finds a difference with power .8.

    Return None if the difference is 0, or if 2^29 (537 million) queries are too few.

    >>> compute_queries_needed(0.25, 1.0)
    128
    """
    if not difference:
        return None
    if not spread:
        return 2

    def suffices(queries: int) -> bool:
        return compute_power(difference, spread, queries, alpha=alpha) >= POWER

    high = 2
    while not suffices(high):
        high *= 2
        if high > _MOST_QUERIES:
            return None
    return bisect_left(range(high), True, lo=max(2, high // 2), key=suffices)


@cache
def compute_detectable_difference(spread: float, queries: int, *, alpha: float = ALPHA) -> float | None:
    """Return the smallest true difference that the paired t-test finds with power .8 on `queries` queries.

    Return None for a single query, a spread of 0, or an extreme alpha.

    >>> round(compute_detectable_difference(1.0, 128), 3)
    0.25
    """
    from scipy.optimize import brentq

    if queries < 2 or not spread or alpha >= POWER:
        return None
    largest = 2.0
    while not compute_power(largest, 1.0, queries, alpha=alpha) >= POWER:
        largest *= 2
        if largest > _LARGEST_EFFECT:
            return None
    return spread * float(brentq(lambda d: compute_power(d, 1.0, queries, alpha=alpha) - POWER, 0.0, largest))


def compute_replicates_needed(
    difference: float,
    differences: Vector,
    within: tuple[float, float],
    runs: tuple[float, float],
    *,
    alpha: float = ALPHA,
) -> int | None:
    """Return how many runs each system needs to find a difference with power .8 on the same queries; None if none suffices.

    r = (s_A^2 + s_B^2) / (d^2 / e^2 - s_d0^2), where s_d0^2 = max(0, s_d^2 - s_A^2 / r_A - s_B^2 / r_B) is the variance of the
    differences over queries without the noise of the runs, and e is the difference that Q queries show if the spread is 1.

    `difference` is d. `differences` has the difference of the two means in each of Q queries. `within` has s_A^2 and s_B^2, the
    variances within queries. `runs` has r_A and r_B, the numbers of runs.

    >>> differences = np.array([0.5, -0.5] * 50)
    >>> compute_replicates_needed(0.1, differences, (0.3, 0.3), (3, 3))
    9
    """
    detectable = compute_detectable_difference(1.0, len(differences), alpha=alpha)
    if detectable is None:
        return None
    noise = sum(of / number for of, number in zip(within, runs, strict=True))
    room = (difference / detectable) ** 2 - max(0.0, float(differences.var(ddof=1)) - noise)
    return max(1, math.ceil(sum(within) / room)) if room * _MOST_QUERIES > sum(within) else None
