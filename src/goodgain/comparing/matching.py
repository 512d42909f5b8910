"""Matches the scores of several systems query by query, and makes the frames of a comparison."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import ir_measures
import numpy as np
import polars as pl

from goodgain.comparing.pairing import Matched, average_rows
from goodgain.comparing.significance import Matrix
from goodgain.counting.coverage import LOW_COVERAGE
from goodgain.evaluation import Scores
from goodgain.measures.good_gain import NumIter, NumResults

__all__ = [
    "add_context",
    "build_matrices",
    "keep_complete_queries",
    "tabulate_coverage",
    "tabulate_means",
    "tabulate_systems",
    "tabulate_values",
]


def build_matrices(scores: Mapping[str, Scores], measures: Iterable[ir_measures.Measure]) -> dict[str, Matrix]:
    """Return measure -> matrix: a row for each system, a column for each query that any system has a value for.

    A cell is NaN where the system has no value.
    """
    columns = [str(k) for k in range(len(scores))]
    numbered = zip(columns, scores.values(), strict=True)
    long = pl.concat(of.per_query.with_columns(system=pl.lit(column)) for column, of in numbered)
    by_measure = long.partition_by("measure", as_dict=True)
    found: dict[str, Matrix] = {}
    for name in map(str, measures):
        values = by_measure.get((name,), long.clear())
        wide = values.pivot("system", on_columns=columns, index="query_id", values="value").sort("query_id")
        found[name] = wide.select(pl.col(columns).cast(pl.Float64).fill_null(float("nan"))).to_numpy().T
    return found


def keep_complete_queries(values: Matrix, better: str | None) -> Matched:
    """Return the values of the queries for which every system has one."""
    has_all = np.isfinite(values).all(axis=0)
    return Matched(np.ascontiguousarray(values[:, has_all]), better)


def tabulate_systems(scores: Mapping[str, Scores], full: Mapping[str, Matrix]) -> pl.DataFrame:
    """Return a row for each system: its queries, its cost, and the judged share of its results."""
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


def tabulate_coverage(scores: Mapping[str, Scores]) -> pl.DataFrame:
    """Return the coverage of each system, overall and by iteration."""
    return pl.concat(of.coverage.select(pl.lit(name).alias("system"), pl.all()) for name, of in scores.items())


def tabulate_means(matched: Mapping[str, Matched], names: list[str]) -> pl.DataFrame:
    """Return a row for each measure and system."""
    rows = [
        (measure, of.better, system, mean, of.values.shape[1])
        for measure, of in matched.items()
        for system, mean in zip(names, average_rows(of.values), strict=True)
    ]
    types = {"measure": pl.String, "better": pl.String, "system": pl.String, "mean": pl.Float64, "queries": pl.Int64}
    return pl.DataFrame(rows, schema=types, orient="row").with_columns(pl.col("mean").fill_nan(None))


def add_context(pairs: pl.DataFrame, systems: pl.DataFrame) -> pl.DataFrame:
    """Return the pairs with low_coverage, and the difference in cost (more_iterations, more_results)."""
    unsure = (pl.col("coverage") < LOW_COVERAGE).fill_null(False)
    about = systems.select("system", "iterations", "results", unsure=unsure)
    joined = pairs.join(about, on="system", how="left", maintain_order="left").join(
        about, left_on="against", right_on="system", how="left", maintain_order="left", suffix="_of_other"
    )
    return joined.select(
        *pairs.columns,
        low_coverage=pl.col("unsure") | pl.col("unsure_of_other"),
        more_iterations=pl.col("iterations") - pl.col("iterations_of_other"),
        more_results=pl.col("results") - pl.col("results_of_other"),
    )


def tabulate_values(scores: Mapping[str, Scores], asked: Iterable[ir_measures.Measure]) -> pl.DataFrame:
    """Return the values that were tested: a row for each query, measure and system."""
    named = [of.per_query.with_columns(system=pl.lit(name)) for name, of in scores.items()]
    kept = pl.concat(named).filter(pl.col("measure").is_in(list(map(str, asked))))
    return kept.select("query_id", "measure", "system", "value")
