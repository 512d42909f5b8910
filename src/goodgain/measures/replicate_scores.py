"""Averages the scores of several runs of one system (replicates) query by query."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import ir_measures
import polars as pl

from goodgain.counting.coverage import SharedQueries
from goodgain.errors import InputError
from goodgain.measures.scores import Scores

#: What a judged query is that one run of a system lacks: one with the value 0, or one with fewer replicates.
MISSING = ("zero", "absent")


def check_missing(missing: str) -> None:
    """Raise `InputError` for an unknown value of `missing=`."""
    if missing not in MISSING:
        raise InputError(f"missing={missing!r}: give missing={' or missing='.join(map(repr, MISSING))}")


def average_scores(runs: Sequence[Scores], measures: Sequence[ir_measures.Measure], *, missing: str = "zero") -> Scores:
    """Return the scores of a system: the value of a query is the mean over its runs that have a value.

    Args:
        runs: the scores of each run, on the same qrels and measures.
        measures: these measures.
        missing: `absent` leaves out the values of queries that a run lacks, unless all runs lack the query.

    Returns:
        Scores with all `runs` as `replicates`. In `queries`, a query that one run lacks counts as absent from the run.
    """
    if len(runs) == 1:
        return runs[0]
    tables = [find_values(of, runs, missing) for of in runs]
    columns = [
        pl.col("value").mean(),
        *(pl.col(name).mean() for name in tables[0].columns if name in ("least", "most")),
    ]
    averaged = pl.concat(tables).group_by("query_id", "measure", maintain_order=True).agg(columns)
    position = {str(measure): k for k, measure in enumerate(measures)}
    order = pl.col("measure").replace_strict(position, return_dtype=pl.Int64)
    averaged = averaged.sort("query_id", order)
    values: Mapping[Any, pl.DataFrame] = averaged.partition_by("measure", as_dict=True)
    means = {
        str(measure): _average_queries(measure, values[str(measure),].get_column("value"), runs) for measure in measures
    }
    absent, without = (
        pl.concat([getattr(of.queries, name) for of in runs]).unique().sort()
        for name in ("only_judged", "only_searched")
    )
    both = pl.concat([of.queries.both for of in runs]).unique()
    coverage = _add_coverage([of.coverage for of in runs])
    share = coverage.item(0, "coverage")
    signature = {name: value for name, value in runs[0].signature.items() if name != "without_value"} | {
        "replicates": len(runs),
        **({"missing": missing} if missing != MISSING[0] else {}),
        "absent_from_run": len(absent),
        "without_judgments": len(without),
        "unjudged": 0.0 if share is None else 1 - share,
    }
    none = averaged.select("query_id").clear()
    queries = SharedQueries(both.filter(~both.is_in(absent.implode())), without, absent)
    return Scores(means, signature, coverage, none, averaged, None, None, queries, None, replicates=tuple(runs))


def find_values(of: Scores, runs: Sequence[Scores], missing: str) -> pl.DataFrame:
    """Return query_id, measure, value of one of several runs, without the queries that it lacks if `missing` is absent."""
    if missing == "zero":
        return of.per_query
    lacking = of.queries.only_judged
    of_all = pl.concat([run.queries.only_judged for run in runs]).value_counts().filter(pl.col("count") == len(runs))
    lacking = lacking.filter(~lacking.is_in(of_all.to_series(0).implode()))
    return of.per_query.filter(~pl.col("query_id").is_in(lacking.implode()))


def _average_queries(measure: ir_measures.Measure, values: pl.Series, runs: Sequence[Scores]) -> float | None:
    """Return the mean over queries, a sum for counts of ir_measures; None as in the means of one run."""
    known = values.drop_nulls()
    if values.is_empty() or known.is_empty():
        return None
    if len(known) < len(values) and all(of.means[str(measure)] is None for of in runs):
        return None
    total = math.fsum(known)
    return total if isinstance(measure.aggregator(), ir_measures.SumAgg) else total / len(known)


def _add_coverage(frames: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """Return the coverage of all runs together: the sums of judged and unique results."""
    added = pl.concat(frames).group_by("iteration").agg(pl.col("judged", "unique").sum())
    share = pl.when(pl.col("unique") > 0).then(pl.col("judged") / pl.col("unique"))
    return added.with_columns(coverage=share).sort("iteration", nulls_last=False)
