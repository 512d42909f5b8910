"""Means and pairs of systems: one row per measure and pair, with p-values, verdict and costs."""

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import permutations

import ir_measures
import numpy as np
import polars as pl
import polars.selectors as cs

from goodgain.analysis.comparing.statistical_tests import (
    RESIDUE,
    Matrix,
    Settings,
    Vector,
    bootstrap_interval,
    compute_effect_size,
    correct_by_holm,
    run_randomisation_test,
    run_t_test,
    run_tukey_test,
    subtract_without_residue,
)
from goodgain.counting.coverage import LOW_COVERAGE
from goodgain.measures.declaration import IterationMeasure
from goodgain.measures.good_gain import NumIter, NumResults
from goodgain.measures.scores import Scores

#: Rows of differences tested in one matrix product: more rows are faster, and need more memory.
_ROWS = 1_000
#: The verdicts of a significant difference.
DECIDED = ("better", "worse")
#: The verdict where a system has no value because it returned nothing.
NO_RESULTS = "no results"
#: How the verdict begins where the values of two systems mean different things; a reason may follow.
NOT_COMPARABLE = "not comparable"


def tabulate_systems(scores: Mapping[str, Scores], full: Mapping[str, Matrix]) -> pl.DataFrame:
    """Return a row per system: its queries, its cost, and the judged share of its results."""
    signed = [of.signature for of in scores.values()]
    iterations, results = (
        average_rows([row[np.isfinite(row)] for row in full[str(one)]]) for one in (NumIter, NumResults)
    )
    counts = ("queries", "absent_from_run", "without_judgments")
    return pl.DataFrame(
        {
            "system": list(scores),
            **{name: [signature[name] for signature in signed] for name in counts},
            "iterations": iterations,
            "results": results,
            "coverage": [1 - of["unjudged"] if some else None for of, some in zip(signed, results, strict=True)],
        },
        schema_overrides={"coverage": pl.Float64},
    )


def tabulate_means(values: Mapping[str, Matrix], better: Mapping[str, str | None], names: list[str]) -> pl.DataFrame:
    """Return the columns of `Comparison.means`: each mean is over the queries for which the system has a value."""
    rows = [
        (measure, better[measure], system, *average_rows([known]), len(known))
        for measure, of in values.items()
        for system, known in zip(names, (row[np.isfinite(row)] for row in of), strict=True)
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
    pairs: Sequence[tuple[int, int]],
    settings: Settings,
) -> pl.DataFrame:
    """Test every pair on every measure, on the queries for which both systems have a value.

    `decide` adds the corrected p-values and the verdicts. `lacks_all`: one of both systems has no value at all.
    """
    rows = [(name, pair) for name in values for pair in pairs]
    matched = [match_pair(values[name], pair) for name, pair in rows]
    tested: dict[int, dict[str, float]] = {}
    by_queries: dict[int, list[int]] = {}
    for k, of in enumerate(matched):
        by_queries.setdefault(of.shape[1], []).append(k)
    for same in by_queries.values():
        for start in range(0, len(same), _ROWS):
            at = same[start : start + _ROWS]
            tested |= zip(at, _run_tests([matched[k] for k in at], settings), strict=True)
    tukey: list[float] = []
    for of in values.values():
        whole = of[:, np.isfinite(of).all(axis=0)]
        exists = len(of) > 2 and whole.shape[1]
        tukey += run_tukey_test(whole, pairs).tolist() if exists else [math.nan] * len(pairs)
    return pl.DataFrame(
        {
            "measure": [name for name, _ in rows],
            "better": pl.Series([better[name] for name, _ in rows], dtype=pl.String),
            "system": [systems[system] for _, (system, _) in rows],
            "against": [systems[against] for _, (_, against) in rows],
            "queries": [of.shape[1] for of in matched],
            **{column: [tested[k][column] for k in range(len(rows))] for column in tested[0]},
            "lacks_all": [not np.isfinite(values[name][[*pair]]).any(axis=1).all() for name, pair in rows],
        }
    ).with_columns(p_tukey=pl.Series(tukey, dtype=pl.Float64))


def match_pair(values: Matrix, pair: tuple[int, int]) -> Matrix:
    """Return the values of two systems for the queries for which both have one."""
    both = values[[*pair]]
    known = np.isfinite(both).all(axis=0)
    return both if known.all() else both[:, known]


def arrange_values(
    values: pl.DataFrame, measures: Iterable[str], systems: Sequence[str], query_ids: pl.Series
) -> dict[str, Matrix]:
    """Return measure -> matrix of `Comparison.values`: a row per system, a column per query; a missing value is NaN."""
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


def _run_tests(matched: Sequence[Matrix], settings: Settings) -> Iterator[dict[str, float]]:
    """Yield what is found for each pair; `above` and `below` count the queries where the system has the higher or lower value."""
    stacked = np.stack([subtract_without_residue(first, second) for first, second in matched])
    low = high = p_t = p_randomisation = effect = np.full(len(stacked), np.nan)
    if stacked.shape[1]:
        sampling = {"seed": settings.seed, "resamples": settings.resamples}
        low, high = bootstrap_interval(stacked, level=1 - settings.alpha, **sampling)
        p_t, p_randomisation = run_t_test(stacked), run_randomisation_test(stacked, **sampling)
        effect = compute_effect_size(stacked)
    sizes = average_rows(np.abs(stacked))
    for k, (of, difference) in enumerate(zip(matched, average_rows(stacked), strict=True)):
        mean, mean_against = average_rows(of)
        yield {
            "mean": mean,
            "mean_against": mean_against,
            # A mean at rounding level counts as 0, as that of 0.3 - 0.2 and 0 - 0.1.
            "difference": 0.0 if abs(difference) <= RESIDUE * sizes[k] else difference,
            "low": low[k],
            "high": high[k],
            "p_t": p_t[k],
            "p_t_holm": math.nan,
            "p_randomisation": p_randomisation[k],
            "p_randomisation_holm": math.nan,
            "p_tukey": math.nan,
            "effect": effect[k],
            "above": int((stacked[k] > 0).sum()),
            "below": int((stacked[k] < 0).sum()),
        }


def average_rows(values: Matrix | Sequence[Vector]) -> list[float]:
    """Return the mean of each row, by exact summation; NaN without queries."""
    return [math.fsum(row) / len(row) if len(row) else math.nan for row in values]


def decide(
    rows: pl.DataFrame, alpha: float, *, need_results: Collection[str], incomparable: Mapping[tuple[str, ...], str]
) -> pl.DataFrame:
    """Correct the p-values by Holm's method over all rows of a measure, and add the verdicts.

    Wins, ties, losses, verdict and significant replace the signs; null for a measure without a better direction.
    `need_results` are the measures for which a system without results has no value. `incomparable` has the verdict of a
    measure, system and against that cannot be compared: such a pair has no test.
    """
    pairs = rows.select("measure", "system", "against").rows()
    rows = rows.with_columns(told=pl.Series([incomparable.get(pair) for pair in pairs], dtype=pl.String))
    tests = pl.col("p_t", "p_randomisation", "p_tukey")
    rows = rows.with_columns(pl.when(pl.col("told").is_null()).then(tests).otherwise(math.nan))
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
            pl.exclude("above", "below", "lacks_all", "told"),
            wins=pl.when(up).then(above).when(down).then(below),
            ties=ties,
            losses=pl.when(up).then(below).when(down).then(above),
            verdict=pl.when(pl.col("told").is_not_null())
            .then("told")
            .when((queries > 0) & (up | down))
            .then(verdict)
            .when(pl.col("lacks_all") & pl.col("measure").is_in([*need_results]))
            .then(pl.lit(NO_RESULTS)),
            significant=significant,
        )
        .with_columns(cs.float().fill_nan(None))
    )


def find_incomparable(
    measures: Sequence[ir_measures.Measure], scores: Mapping[str, Scores]
) -> dict[tuple[str, ...], str]:
    """Return (measure, system, against) -> the verdict, for pairs that cannot be compared."""
    return {
        (str(measure), *pair): verdict
        for measure in measures
        if isinstance(measure, IterationMeasure)
        for pair in permutations(scores, 2)
        if (verdict := _judge(measure, *(scores[name] for name in pair)))
    }


def _judge(measure: IterationMeasure, system: Scores, against: Scores) -> str | None:
    by_iteration = measure.depends_on_ends or system.signature.get("labels") == "iteration"
    if by_iteration and system.lacks_iterations != against.lacks_iterations:
        return NOT_COMPARABLE
    if measure.declaration.by_repeats and (system.one_time or against.one_time):
        return f"{NOT_COMPARABLE}: one-time addresses"
    return None


def find_unranked(pairs: pl.DataFrame) -> pl.DataFrame:
    return pairs.filter(pl.col("verdict").str.starts_with(NOT_COMPARABLE))


def find_best(means: list[float], better: str | None) -> set[float]:
    """Return the best means, up to rounding; none if all are equal, or the measure has no better direction."""
    if not means or better is None:
        return set()
    top = max(means) if better == "up" else min(means)
    best = {mean for mean in means if math.isclose(mean, top, rel_tol=1e-12, abs_tol=1e-12)}
    return best if any(mean not in best for mean in means) else set()
