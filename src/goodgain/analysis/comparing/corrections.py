"""Corrects the p-values of pairs for the number of tests, and adds the verdict and the interval of each pair."""

import math
from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl
import polars.selectors as cs

from goodgain.analysis.comparing.pairs_table import NO_RESULTS, match_pair
from goodgain.measures.bounds import Range
from goodgain.statistics.intervals_of_pairs import count_open_tests, invert_at_ranks, invert_randomisation_test
from goodgain.statistics.joint_tests import run_largest_statistic_test, run_randomised_tukey_test
from goodgain.statistics.statistical_tests import (
    Matrix,
    Settings,
    Vector,
    correct_by_holm,
    count_draws,
    subtract_without_residue,
)

#: Group of queries (None: all queries) -> measure -> values: a row per system, a column per judged query; NaN: no value.
Matrices = Mapping[str | None, Mapping[str, Matrix]]


def leave_out_incomparable(tested: pl.DataFrame, incomparable: Mapping[tuple[str, ...], str]) -> pl.DataFrame:
    """Set the p-values of incomparable pairs to NaN, and add their verdicts as the column `told`.

    `incomparable` maps (measure, system, against) to a verdict.
    """
    pairs = tested.select("measure", "system", "against").rows()
    tested = tested.with_columns(told=pl.Series([incomparable.get(pair) for pair in pairs], dtype=pl.String))
    tests = pl.col("p_t", "p_randomisation", "p_tukey")
    return tested.with_columns(pl.when(pl.col("told").is_null()).then(tests).otherwise(math.nan))


def correct_pairs_by_holm(tested: pl.DataFrame) -> pl.DataFrame:
    """Fill `p_t_holm` and `p_randomisation_holm`: Holm's method over all rows of a measure."""
    tables = []
    for rows in tested.partition_by("measure", maintain_order=True):
        corrected = [
            pl.Series(f"{name}_holm", correct_by_holm(rows[name].to_numpy())) for name in ("p_t", "p_randomisation")
        ]
        tables.append(rows.with_columns(*corrected))
    return pl.concat(tables)


def correct_over_measures(
    tested: pl.DataFrame, systems: Sequence[str], matrices_of: Matrices, settings: Settings
) -> pl.DataFrame:
    """Add `p_corrected` by the largest statistic over all rows, and the interval of each row at its own level."""
    is_tested = tested.get_column("p_randomisation").is_not_nan().to_numpy()
    differences = subtract_systems(tested.filter(is_tested), systems, matrices_of)
    p, level, low, high = (np.full(tested.height, np.nan) for _ in range(4))
    if len(differences):
        seed, resamples = settings.seed, settings.resamples
        p[is_tested], ranks = run_largest_statistic_test(
            differences, alpha=settings.alpha, seed=seed, resamples=resamples
        )
        low[is_tested], high[is_tested] = invert_at_ranks(differences, ranks, seed=seed, resamples=resamples)
        draws = count_draws(differences.shape[1], resamples)
        level[is_tested] = 1 - ranks / (draws + 1)
    level = np.where(np.isnan(low), np.nan, level)
    return _add_corrected(tested, p, low, high, level)


def correct_by_randomised_tukey(
    tested: pl.DataFrame, systems: Sequence[str], matrices_of: Matrices, settings: Settings
) -> pl.DataFrame:
    """Add `p_corrected` by the randomised Tukey test of each measure, and the interval of each row.

    With several groups of queries, each group is tested at alpha / groups, and its p is multiplied by their number.
    """
    groups = len(matrices_of)
    is_tested = tested.get_column("p_randomisation").is_not_nan().to_numpy()
    keys = ["group", "measure"] if "group" in tested.columns else ["measure"]
    p, level, low, high = (np.full(tested.height, np.nan) for _ in range(4))

    for key, rows in tested.with_row_index().filter(is_tested).group_by(keys, maintain_order=True):
        *group, measure = key
        values = matrices_of[group[0] if group else None][measure]
        has_values = np.isfinite(values).any(axis=1)
        values = values[has_values]
        values = values[:, np.isfinite(values).all(axis=0)]
        row_of = {name: row for row, name in enumerate(np.array(systems)[has_values])}
        pairs = [(row_of[system], row_of[against]) for system, against in rows.select("system", "against").iter_rows()]
        p_of_rows, half = run_randomised_tukey_test(
            values, pairs, alpha=settings.alpha / groups, seed=settings.seed, resamples=settings.resamples
        )
        at = rows.get_column("index").to_numpy()
        difference = rows.get_column("difference").to_numpy()
        p[at] = np.minimum(groups * p_of_rows, 1.0)
        low[at], high[at] = difference - half, difference + half
        level[at] = np.where(np.isnan(half), np.nan, 1 - settings.alpha / groups)
    return _add_corrected(tested, p, low, high, level)


def _add_corrected(tested: pl.DataFrame, p: Vector, low: Vector, high: Vector, level: Vector) -> pl.DataFrame:
    ends = pl.DataFrame({"low": low, "high": high, "level": level})
    after = tested.get_column_index("p_tukey") + 1
    return tested.with_columns(*ends).insert_column(after, pl.Series("p_corrected", p))


def add_verdicts(corrected: pl.DataFrame, alpha: float) -> pl.DataFrame:
    """Add `verdict` and `significant`, and replace `above` and `below` by `wins`, `ties` and `losses`.

    Verdict, wins, ties and losses are null for measures whose `better` is null. A verdict in the column `told` comes first.
    """
    p = "p_corrected" if "p_corrected" in corrected.columns else "p_randomisation_holm"
    queries, above, below = pl.col("queries"), pl.col("above"), pl.col("below")
    up, down = pl.col("better") == "up", pl.col("better") == "down"
    ties = pl.when(up | down).then(queries - above - below)
    significant = (pl.col(p).fill_nan(None) <= alpha).fill_null(False)
    verdict = (
        pl.when(ties == queries)
        .then(pl.lit("equal"))
        .when(~significant)
        .then(pl.lit("unclear"))
        .when(pl.when(up).then(pl.col("difference") > 0).otherwise(pl.col("difference") < 0))
        .then(pl.lit("better"))
        .otherwise(pl.lit("worse"))
    )
    return corrected.select(
        pl.exclude("above", "below", "lacks_results", "told"),
        wins=pl.when(up).then(above).when(down).then(below),
        ties=ties,
        losses=pl.when(up).then(below).when(down).then(above),
        verdict=pl.when(pl.col("told").is_not_null())
        .then("told")
        .when((queries > 0) & (up | down))
        .then(verdict)
        .when(pl.col("lacks_results"))
        .then(pl.lit(NO_RESULTS)),
        significant=significant,
    ).with_columns(cs.float().fill_nan(None))


def add_intervals(
    pairs: pl.DataFrame, systems: Sequence[str], matrices_of: Matrices, settings: Settings, signs: int
) -> pl.DataFrame:
    """Fill `low`, `high` and `level` of decided pairs. All three are null for a pair without p or interval.

    The interval is that of the randomisation test with the same signs, at the level at which Holm's method decides the rows
    of a measure.
    """
    open_tests = {
        measure: count_open_tests(rows.get_column("p_randomisation_holm").drop_nulls().to_numpy(), settings.alpha)
        for (measure,), rows in pairs.group_by("measure")
    }
    divisors = np.array([open_tests[measure] for measure in pairs.get_column("measure")])
    position = {name: k for k, name in enumerate(systems)}
    rows_by_queries: dict[int, list[int]] = {}
    matched: dict[int, Matrix] = {}
    keys = pairs.select("measure", "system", "against", "p_randomisation").rows()
    groups = pairs.get_column("group").to_list() if "group" in pairs.columns else [None] * len(keys)
    for row, ((measure, system, against, p), group) in enumerate(zip(keys, groups, strict=True)):
        if p is not None:
            matched[row] = match_pair(matrices_of[group][measure], (position[system], position[against]))
            rows_by_queries.setdefault(matched[row].shape[1], []).append(row)

    low, high = np.full(pairs.height, np.nan), np.full(pairs.height, np.nan)
    for rows in rows_by_queries.values():
        first, second = (np.stack([matched[row][side] for row in rows]) for side in (0, 1))
        stacked = subtract_without_residue(first, second)
        low[rows], high[rows] = invert_randomisation_test(
            stacked,
            divisors[rows],
            alpha=settings.alpha,
            seed=settings.seed,
            resamples=signs,
            first=settings.resamples,
        )
    # A test that stopped early is decided by its own signs, and the interval may be from more.
    is_open = (pairs.get_column("p_randomisation_holm") > settings.alpha).fill_null(False).to_numpy()
    low = np.where(is_open, np.minimum(low, 0.0), low)
    high = np.where(is_open, np.maximum(high, 0.0), high)
    level = np.where(np.isnan(low), np.nan, 1 - settings.alpha / divisors)
    ends = pl.DataFrame({"low": low, "high": high, "level": level}).fill_nan(None)
    return pairs.with_columns(*ends)


def clip_intervals(pairs: pl.DataFrame, ranges: Mapping[str, Range]) -> pl.DataFrame:
    """Cut each interval to the differences that its measure allows."""
    most = {measure: allowed.most - allowed.least for measure, allowed in ranges.items()}
    limit = pl.col("measure").replace_strict([*most], [*most.values()], default=math.inf, return_dtype=pl.Float64)
    return pairs.with_columns(low=pl.max_horizontal("low", -limit), high=pl.min_horizontal("high", limit)).with_columns(
        pl.when(pl.col("level").is_not_null()).then(pl.col("low", "high"))
    )


def subtract_systems(pairs: pl.DataFrame, systems: Sequence[str], matrices_of: Matrices) -> Matrix:
    """Return the differences of each pair: a row per pair, a column per judged query. NaN: one of both lacks a value."""
    differences = []
    for pair in pairs.iter_rows(named=True):
        values = matrices_of[pair.get("group")][pair["measure"]]
        system, against = (values[systems.index(pair[side])] for side in ("system", "against"))
        differences.append(subtract_without_residue(system, against))
    return np.array(differences)


def select_shared_queries(values: Matrix) -> Matrix:
    """Return the values of queries in which all systems have one. Systems without any value do not count."""
    has_values = np.isfinite(values).any(axis=1)
    is_shared = np.isfinite(values[has_values]).all(axis=0)
    return np.where(is_shared, values, np.nan)
