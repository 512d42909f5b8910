"""Tests pairs of systems on paired values: a row for each measure and pair, with its p-values and verdict."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import polars as pl
import polars.selectors as cs

from goodgain.comparing.significance import (
    RESIDUE,
    Matrix,
    Vector,
    bootstrap_interval,
    compute_effect_size,
    correct_by_holm,
    run_randomisation_test,
    run_t_test,
    subtract_without_residue,
)
from goodgain.comparing.tukey import run_tukey_test
from goodgain.errors import InputError

__all__ = [
    "PAIRS",
    "Matched",
    "Settings",
    "average_rows",
    "check_settings",
    "check_whole_number",
    "compare_pairs",
    "list_pairs",
]

#: The columns of `compare_pairs`, and their types.
PAIRS: dict[str, type[pl.DataType]] = {
    "measure": pl.String,
    "better": pl.String,
    "system": pl.String,
    "against": pl.String,
    "queries": pl.Int64,
    "mean": pl.Float64,
    "mean_against": pl.Float64,
    "difference": pl.Float64,
    "low": pl.Float64,
    "high": pl.Float64,
    "p_t": pl.Float64,
    "p_t_holm": pl.Float64,
    "p_randomisation": pl.Float64,
    "p_randomisation_holm": pl.Float64,
    "p_tukey": pl.Float64,
    "effect": pl.Float64,
    "wins": pl.Int64,
    "ties": pl.Int64,
    "losses": pl.Int64,
    "verdict": pl.String,
    "significant": pl.Boolean,
}

#: Limit of `resamples=`: more take very long, and change p only after its third decimal.
_MOST_RESAMPLES = 1_000_000

#: Rows of differences that are tested in one matrix product: large products are faster, and need more memory. The pairs of
#: one measure are never divided.
_ROWS = 1_000


class Settings(NamedTuple):
    """The settings of the tests: seed, number of resamples, and the largest p that is significant."""

    seed: int = 42
    resamples: int = 9_999
    alpha: float = 0.05


def check_settings(seed: int, resamples: int, alpha: float, *, least: int = 1) -> Settings:
    """Return the settings of tests and bootstrap.

    Args:
        seed: of the randomisation test and the bootstrap.
        resamples: the number of resamples in both, 1,000,000 at most.
        alpha: the largest p that is significant; 1 - alpha is the level of intervals.
        least: the smallest number of resamples.

    Raises:
        InputError: one of them is not a number of its range.
    """
    if not isinstance(alpha, (int, float)) or not 0 < alpha < 1:
        raise InputError(f"alpha={alpha!r}: give a number between 0 and 1, such as 0.05")
    return Settings(
        check_whole_number("seed", seed, 0),
        check_whole_number("resamples", resamples, least, _MOST_RESAMPLES),
        float(alpha),
    )


def check_whole_number(name: str, value: int, least: int, most: int | None = None, *, others: str = "") -> int:
    """Return an option's value; `others` says in the error what it may be besides a whole number.

    Raises:
        InputError: it is not a whole number, or not from the least one to the most, if there is one.
    """
    if isinstance(value, bool) or not isinstance(value, int) or value < least or (most is not None and value > most):
        end = "" if most is None else f" to {most:,}"
        raise InputError(f"{name}={value!r}: give a whole number from {least}{end}{others}")
    return value


class Matched(NamedTuple):
    """The values of one measure, on the queries for which every system has one.

    Attributes:
        values: a row for each system, a column for each query.
        better: `up`, `down`, or None where neither is.
    """

    values: Matrix
    better: str | None


def list_pairs(systems: int, baseline: int | None) -> list[tuple[int, int]]:
    """Return pairs (system, against): every other system with the baseline; without one, each with all before it."""
    if baseline is not None:
        return [(system, baseline) for system in range(systems) if system != baseline]
    return [(system, against) for against in range(systems) for system in range(against + 1, systems)]


def compare_pairs(
    measures: Mapping[str, Matched], systems: Sequence[str], pairs: Sequence[tuple[int, int]], settings: Settings
) -> pl.DataFrame:
    """Test every pair on every measure.

    Args:
        measures: name -> its values.
        systems: their names, in the order of the rows.
        pairs: (system, the one it is compared with), by position.
        settings: seed, resamples, alpha.

    Returns:
        The columns of `PAIRS`: differences are system minus against, in the measure's unit; wins and verdict follow the
        direction that is better; the verdict is `better` or `worse` where the difference is significant, `unclear`
        where it is not, `equal` where all differences are zero; a measure without a better direction has neither. A p
        that does not exist is null. Holm's correction is over the pairs of one measure.
    """
    tested: dict[str, _Tests] = {}
    for batch in _group_measures(measures, pairs):
        tested |= _run_tests(batch, pairs, settings)
    rows = [
        (name, matched.better, systems[a], systems[b], *row)
        for name, matched in measures.items()
        for (a, b), row in zip(pairs, _build_rows(matched, tested[name], pairs, settings.alpha), strict=True)
    ]
    return pl.DataFrame(rows, schema=PAIRS, orient="row").with_columns(cs.float().fill_nan(None))


class _Tests(NamedTuple):
    """The results of the tests of one measure: a row, or a number, for each pair."""

    differences: Matrix
    low: Vector
    high: Vector
    t: Vector
    randomised: Vector
    tukey: Vector
    effect: Vector


def _group_measures(measures: Mapping[str, Matched], pairs: Sequence[tuple[int, int]]) -> Iterator[dict[str, Matched]]:
    """Yield groups of measures that are tested together: with equally many queries, and few enough."""
    by_queries: dict[int, list[str]] = {}
    for name, matched in measures.items():
        by_queries.setdefault(matched.values.shape[1], []).append(name)
    size = max(1, _ROWS // len(pairs))
    for names in by_queries.values():
        for start in range(0, len(names), size):
            yield {name: measures[name] for name in names[start : start + size]}


def _run_tests(batch: Mapping[str, Matched], pairs: Sequence[tuple[int, int]], settings: Settings) -> dict[str, _Tests]:
    first, second = (list(side) for side in zip(*pairs, strict=True))
    each = [subtract_without_residue(matched.values[first], matched.values[second]) for matched in batch.values()]
    stacked = np.concatenate(each)
    if stacked.shape[1] == 0:
        none = np.full(len(pairs), np.nan)
        return {name: _Tests(each[0], none, none, none, none, none, none) for name in batch}
    low, high = bootstrap_interval(stacked, level=1 - settings.alpha, seed=settings.seed, resamples=settings.resamples)
    t = run_t_test(stacked)
    randomised = run_randomisation_test(stacked, seed=settings.seed, resamples=settings.resamples)
    effect = compute_effect_size(stacked)
    results: dict[str, _Tests] = {}
    for k, (name, matched) in enumerate(batch.items()):
        here = slice(k * len(pairs), (k + 1) * len(pairs))
        tukey = run_tukey_test(matched.values, pairs) if len(matched.values) > 2 else np.full(len(pairs), np.nan)
        results[name] = _Tests(each[k], low[here], high[here], t[here], randomised[here], tukey, effect[here])
    return results


def _build_rows(
    matched: Matched, tests: _Tests, pairs: Sequence[tuple[int, int]], alpha: float
) -> Iterator[tuple[object, ...]]:
    """Yield the columns of `PAIRS` from `queries` on, for each pair."""
    means = average_rows(matched.values)
    differences = _average_differences(tests.differences)
    t_holm, randomised_holm = correct_by_holm(tests.t), correct_by_holm(tests.randomised)
    towards = {"up": 1, "down": -1, None: 0}[matched.better]
    for k, (a, b) in enumerate(pairs):
        signs = towards * np.sign(tests.differences[k])
        significant = bool(randomised_holm[k] <= alpha)
        yield (
            matched.values.shape[1],
            means[a],
            means[b],
            differences[k],
            tests.low[k],
            tests.high[k],
            tests.t[k],
            t_holm[k],
            tests.randomised[k],
            randomised_holm[k],
            tests.tukey[k],
            tests.effect[k],
            *(int(counted.sum()) if towards else None for counted in (signs > 0, signs == 0, signs < 0)),
            _decide_verdict(signs, towards * differences[k], significant=significant) if towards else None,
            significant,
        )


def average_rows(values: Matrix) -> list[float]:
    """Return the mean of each row, by exact summation; NaN for a row without queries."""
    return [math.fsum(row) / len(row) if len(row) else math.nan for row in values]


def _average_differences(differences: Matrix) -> list[float]:
    """Return the means of the differences, 0 where they cancel out but for rounding, as 0.3 - 0.2 and 0 - 0.1 do."""
    means = zip(average_rows(differences), average_rows(np.abs(differences)), strict=True)
    return [0.0 if abs(mean) <= RESIDUE * size else mean for mean, size in means]


def _decide_verdict(signs: Vector, gain: float, *, significant: bool) -> str | None:
    """Return the verdict: `better` or `worse` if the test is significant, else `unclear`; None without any query.

    Args:
        signs: the sign of each query's difference.
        gain: the mean of the differences, positive where the system is the better one.
        significant: whether Holm's p of the randomisation test is at most alpha.
    """
    if len(signs) == 0:
        return None
    if not signs.any():
        return "equal"
    if not significant:
        return "unclear"
    return "better" if gain > 0 else "worse"
