"""Means and pairs of systems: one row per measure and pair, with p-values, verdict and costs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
import polars as pl
import polars.selectors as cs

from goodgain.comparing.statistical_tests import (
    RESIDUE,
    Matrix,
    Settings,
    bootstrap_interval,
    compute_effect_size,
    correct_by_holm,
    run_randomisation_test,
    run_t_test,
    run_tukey_test,
    subtract_without_residue,
)
from goodgain.counting.coverage import LOW_COVERAGE
from goodgain.measures.good_gain import NumIter, NumResults
from goodgain.measures.scores import Scores

#: Rows of differences tested in one matrix product: more rows are faster, and need more memory. The pairs of one measure
#: stay together.
_ROWS = 1_000

Pairs = Sequence[tuple[int, int]]


def tabulate_systems(scores: Mapping[str, Scores], full: Mapping[str, Matrix]) -> pl.DataFrame:
    """Return a row per system: its queries, its cost, and the judged share of its results."""
    signed = [of.signature for of in scores.values()]
    results = average_rows(full[str(NumResults)])
    counts = ("queries", "absent_from_run", "without_judgments")
    return pl.DataFrame(
        {
            "system": list(scores),
            **{name: [signature[name] for signature in signed] for name in counts},
            "iterations": average_rows(full[str(NumIter)]),
            "results": results,
            "coverage": [1 - of["unjudged"] if some else None for of, some in zip(signed, results, strict=True)],
        },
        schema_overrides={"coverage": pl.Float64},
    )


def tabulate_means(matched: Mapping[str, Matrix], better: Mapping[str, str | None], names: list[str]) -> pl.DataFrame:
    rows = [
        (measure, better[measure], system, mean, of.shape[1])
        for measure, of in matched.items()
        for system, mean in zip(names, average_rows(of), strict=True)
    ]
    types = {"measure": pl.String, "better": pl.String, "system": pl.String, "mean": pl.Float64, "queries": pl.Int64}
    return pl.DataFrame(rows, schema=types, orient="row").with_columns(pl.col("mean").fill_nan(None))


def add_costs(pairs: pl.DataFrame, systems: pl.DataFrame) -> pl.DataFrame:
    """Add to the pairs low_coverage and the difference in cost (more_iterations, more_results)."""
    names = systems.get_column("system")
    unsure = (systems.get_column("coverage") < LOW_COVERAGE).fill_null(False)
    iterations, results = (systems.get_column(name) for name in ("iterations", "results"))
    system, against = pl.col("system"), pl.col("against")
    return pairs.with_columns(
        low_coverage=system.replace_strict(names, unsure) | against.replace_strict(names, unsure),
        more_iterations=system.replace_strict(names, iterations) - against.replace_strict(names, iterations),
        more_results=system.replace_strict(names, results) - against.replace_strict(names, results),
    )


def compare_pairs(
    values: Mapping[str, Matrix],
    better: Mapping[str, str | None],
    systems: Sequence[str],
    pairs: Pairs,
    settings: Settings,
) -> pl.DataFrame:
    """Test every pair on every measure; `decide` adds the corrected p-values and the verdicts.

    `values` has a row per system, and a column per query for which all systems have a value.
    """
    first = pl.Series("system", [systems[system] for system, _ in pairs])
    second = pl.Series("against", [systems[against] for _, against in pairs])
    tables: dict[str, pl.DataFrame] = {}
    for names in _group_measures(values, len(pairs)):
        for name, tested in zip(names, _run_tests([values[name] for name in names], pairs, settings), strict=True):
            measure, direction = pl.lit(name).alias("measure"), pl.lit(better[name], pl.String).alias("better")
            tables[name] = tested.select(measure, direction, first, second, pl.all())
    return pl.concat([tables[name] for name in values])


def arrange_values(
    values: pl.DataFrame, measures: Iterable[str], systems: Sequence[str], query_ids: pl.Series
) -> dict[str, Matrix]:
    """Return measure -> matrix: a row per system, a column per query; a missing value is NaN.

    `values` has the columns of `Comparison.values`.
    """
    columns = [str(k) for k in range(len(systems))]
    number = pl.col("system").replace_strict(systems, columns, default=None)
    by_measure = values.with_columns(number).partition_by("measure", as_dict=True)
    found: dict[str, Matrix] = {}
    for name in measures:
        of = by_measure.get((name,), values.clear())
        wide = of.pivot("system", on_columns=columns, index="query_id", values="value")
        wide = query_ids.to_frame("query_id").join(wide, on="query_id", how="left", maintain_order="left")
        found[name] = wide.select(pl.col(columns).cast(pl.Float64).fill_null(float("nan"))).to_numpy().T
    return found


def drop_incomplete(values: Mapping[str, Matrix]) -> dict[str, Matrix]:
    """Leave out the queries for which a system has no value."""
    return {name: np.ascontiguousarray(of[:, np.isfinite(of).all(axis=0)]) for name, of in values.items()}


def _group_measures(values: Mapping[str, Matrix], pairs: int) -> Iterator[list[str]]:
    """Yield groups of measures to test together: their number of queries is equal, and `_ROWS` limits their size."""
    by_queries: dict[int, list[str]] = {}
    for name, of in values.items():
        by_queries.setdefault(of.shape[1], []).append(name)
    size = max(1, _ROWS // pairs)
    for names in by_queries.values():
        for start in range(0, len(names), size):
            yield names[start : start + size]


def _run_tests(values: Sequence[Matrix], pairs: Pairs, settings: Settings) -> Iterator[pl.DataFrame]:
    """Yield a frame per measure with a row per pair: queries, means, difference, interval, p-values, effect, signs.

    `above` and `below` count the queries where the system has the higher and the lower value.
    """
    first, second = (list(side) for side in zip(*pairs, strict=True))
    stacked = np.concatenate([subtract_without_residue(of[first], of[second]) for of in values])
    none = np.full(len(stacked), np.nan)
    low = high = p_t = p_randomisation = effect = none
    if stacked.shape[1]:
        sampling = {"seed": settings.seed, "resamples": settings.resamples}
        low, high = bootstrap_interval(stacked, level=1 - settings.alpha, **sampling)
        p_t, p_randomisation = run_t_test(stacked), run_randomisation_test(stacked, **sampling)
        effect = compute_effect_size(stacked)
    for k, of in enumerate(values):
        here = slice(k * len(pairs), (k + 1) * len(pairs))
        means = np.array(average_rows(of))
        yield pl.DataFrame(
            {
                "queries": [of.shape[1]] * len(pairs),
                "mean": means[first],
                "mean_against": means[second],
                "difference": _average_differences(stacked[here]),
                "low": low[here],
                "high": high[here],
                "p_t": p_t[here],
                "p_t_holm": none[here],
                "p_randomisation": p_randomisation[here],
                "p_randomisation_holm": none[here],
                "p_tukey": run_tukey_test(of, pairs) if len(of) > 2 and of.shape[1] else none[here],
                "effect": effect[here],
                "above": (stacked[here] > 0).sum(axis=1),
                "below": (stacked[here] < 0).sum(axis=1),
            }
        )


def average_rows(values: Matrix) -> list[float]:
    """Return the mean of each row, by exact summation; NaN without queries."""
    return [math.fsum(row) / len(row) if len(row) else math.nan for row in values]


def _average_differences(differences: Matrix) -> list[float]:
    """Return the means of the differences. Means at rounding level count as 0, as that of 0.3 - 0.2 and 0 - 0.1."""
    means = zip(average_rows(differences), average_rows(np.abs(differences)), strict=True)
    return [0.0 if abs(mean) <= RESIDUE * size else mean for mean, size in means]


def decide(rows: pl.DataFrame, alpha: float) -> pl.DataFrame:
    """Correct the p-values by Holm's method over all rows of a measure, and add the verdicts.

    Wins, ties, losses, verdict and significant replace the signs; null for a measure without a better direction.
    """
    tables = []
    for of in rows.partition_by("measure", maintain_order=True):
        corrected = (
            pl.Series(f"{name}_holm", correct_by_holm(of[name].to_numpy())) for name in ("p_t", "p_randomisation")
        )
        tables.append(of.with_columns(*corrected))
    queries, above, below = pl.col("queries"), pl.col("above"), pl.col("below")
    up, down = pl.col("better") == "up", pl.col("better") == "down"
    ties = pl.when(up | down).then(queries - above - below)
    significant = (pl.col("p_randomisation_holm").fill_nan(None) <= alpha).fill_null(False)
    verdict = (
        pl.when(ties == queries)
        .then(pl.lit("equal"))
        .when(~significant)
        .then(pl.lit("unclear"))
        .when(pl.when(up).then(pl.col("difference") > 0).otherwise(pl.col("difference") < 0))
        .then(pl.lit("better"))
        .otherwise(pl.lit("worse"))
    )
    return (
        pl.concat(tables)
        .select(
            pl.exclude("above", "below"),
            wins=pl.when(up).then(above).when(down).then(below),
            ties=ties,
            losses=pl.when(up).then(below).when(down).then(above),
            verdict=pl.when((queries > 0) & (up | down)).then(verdict),
            significant=significant,
        )
        .with_columns(cs.float().fill_nan(None))
    )
