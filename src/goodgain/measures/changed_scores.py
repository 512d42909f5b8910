"""Makes scores from scores: without some queries or values, or means over the runs of a system."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import ir_measures
import polars as pl

from goodgain.counting.coverage import SharedQueries
from goodgain.formats.run import Reading
from goodgain.measures.ledger_values import average_queries
from goodgain.measures.names import find_results_counts, needs_results
from goodgain.measures.scores import Scores


def average_scores(runs: Sequence[Scores], measures: Sequence[ir_measures.Measure], *, missing: str = "zero") -> Scores:
    """Return the scores of a system: the value of a query is the mean over the runs that have a value for this query.

    With `missing="absent"`, the queries that a run lacks have no value in this run. In `Scores.queries`, a query
    is in `only_judged` only if all runs lack it.
    """
    if len(runs) == 1:
        return leave_out_absent(runs[0], measures) if missing == "absent" else runs[0]

    averaged = _average_over_runs(runs, measures, missing)
    queries = join_queries([run.queries for run in runs])
    coverage = _add_coverages(runs)
    first_iterations = [run.first_iteration for run in runs if run.first_iteration is not None]
    return Scores(
        means=_average_over_queries(averaged, measures, runs),
        signature=_sign_system(runs, queries, coverage, missing),
        coverage=coverage,
        _ours=averaged.select("query_id").clear(),
        _classic=averaged,  # rows of all measures
        queries=queries,
        rel=runs[0].rel,
        ids_mapped=_add_mapped_ids(runs),
        replicates=tuple(runs),
        lacks_iterations=any(run.lacks_iterations for run in runs),
        one_time=max(run.one_time for run in runs),
        first_iteration=min(first_iterations, default=None),
    )


def _average_over_runs(runs: Sequence[Scores], measures: Sequence[ir_measures.Measure], missing: str) -> pl.DataFrame:
    """Return query_id, measure and value: the mean over the runs."""
    position = {str(measure): k for k, measure in enumerate(measures)}
    values = pl.concat([find_values(run, missing) for run in runs])
    values = values.filter(pl.col("measure").is_in([*position]))
    averaged = values.group_by("query_id", "measure").agg(pl.col("value").mean())
    place = pl.col("measure").replace_strict(position, return_dtype=pl.Int64)
    return averaged.sort("query_id", place)


def _average_over_queries(
    averaged: pl.DataFrame, measures: Sequence[ir_measures.Measure], runs: Sequence[Scores]
) -> dict[str, float | None]:
    """Return the mean of each measure over the queries in `averaged`, the result of `_average_over_runs`."""
    no_values = averaged.get_column("value").clear()  # every run lacks every query
    values = {name: rows.get_column("value") for (name,), rows in averaged.group_by("measure")}
    means = {}
    for measure in measures:
        means[str(measure)] = _average_queries(measure, values.get(str(measure), no_values), runs)
    return means


def _add_coverages(runs: Sequence[Scores]) -> pl.DataFrame:
    """Return `Scores.coverage` with the results of all runs added up."""
    by_iteration = pl.concat([run.coverage for run in runs]).group_by("iteration")
    added = by_iteration.agg(pl.col("judged", "unique").sum())
    has_results = pl.col("unique") > 0
    share = pl.when(has_results).then(pl.col("judged") / pl.col("unique"))
    coverage = added.with_columns(coverage=share).sort("iteration", nulls_last=False)
    if not _has_labels(runs):
        coverage = coverage.with_columns(coverage=pl.lit(None, pl.Float64))
    return coverage


def _has_labels(runs: Sequence[Scores]) -> bool:
    return "unjudged" in runs[0].signature


def _sign_system(
    runs: Sequence[Scores], queries: SharedQueries, coverage: pl.DataFrame, missing: str
) -> dict[str, Any]:
    """Return the signature of the first run, with the counts of all runs."""
    signature = {name: value for name, value in runs[0].signature.items() if name != "without_value"}
    signature |= sign_reading({f"run {number}": run.signature for number, run in enumerate(runs, 1)})
    signature["replicates"] = len(runs)
    if missing != "zero":
        signature["missing"] = missing
    signature["absent_from_run"] = len(queries.only_judged)
    signature["without_judgments"] = len(queries.only_searched)
    if _has_labels(runs):
        share = coverage.item(0, "coverage")
        signature["unjudged"] = 0.0 if share is None else 1 - share
    return signature


def _add_mapped_ids(runs: Sequence[Scores]) -> tuple[int, int] | None:
    """Return `Scores.ids_mapped`: the sum over the runs, and the number of the qrels, which all runs share."""
    mapped = [run.ids_mapped for run in runs if run.ids_mapped is not None]
    if not mapped:
        return None
    of_runs = sum(ids_of_run for ids_of_run, _ in mapped)
    _, of_qrels = mapped[0]
    return of_runs, of_qrels


def sign_reading(signatures: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return the reading options that are not defaults. If runs differ in an option, its value is a list of texts `run:value`."""
    options: dict[str, Any] = {}
    for option, default in Reading._field_defaults.items():
        values = {name: signature.get(option, default) for name, signature in signatures.items()}
        first = next(iter(values.values()))
        if any(value != first for value in values.values()):
            options[option] = [f"{name}:{value}" for name, value in values.items() if value is not None]
        elif first != default:
            options[option] = first
    return options


def find_values(scores: Scores, missing: str) -> pl.DataFrame:
    """Return the frame `Scores.per_query` of a run. With `missing="absent"`, the queries that the run lacks are left out."""
    if missing == "zero":
        return scores.per_query
    is_absent = pl.col("query_id").is_in(scores.queries.only_judged.implode())
    return scores.per_query.filter(~is_absent)


def leave_out_absent(scores: Scores, measures: Sequence[ir_measures.Measure]) -> Scores:
    """Return the scores without the queries that the run lacks. Absent queries then do not count in the means."""
    searched = leave_out_queries(scores, scores.queries.only_judged, measures)
    return replace(searched, signature=scores.signature | {"missing": "absent"})


def leave_out_queries(scores: Scores, query_ids: pl.Series, measures: Sequence[ir_measures.Measure]) -> Scores:
    """Return the scores without some queries. The means of `measures` are over the other queries."""
    is_there = ~pl.col("query_id").is_in(query_ids.implode())
    changed = replace(scores, _ours=scores._ours.filter(is_there), _classic=scores._classic.filter(is_there))
    if scores._raised is not None:
        changed = replace(changed, _raised=scores._raised.filter(is_there))
    return average_values(changed, measures)


def leave_out_no_good(
    scores: Scores, without_good: Mapping[str, pl.Series], measures: Sequence[ir_measures.Measure]
) -> Scores:
    """Return the scores without values of a measure for the queries in `without_good`, which maps measures to query ids."""
    replicates = tuple(leave_out_no_good(run, without_good, measures) for run in scores.replicates)
    changed = set_to_null(scores, without_good, measures)
    return replace(changed, signature=scores.signature | {"no_good": "absent"}, replicates=replicates)


def set_to_null(scores: Scores, queries: Mapping[str, pl.Series], measures: Sequence[ir_measures.Measure]) -> Scores:
    """Return the scores without the values of some measures in some queries. The means are over the other values.

    `queries` maps measures to query ids.
    """
    if not queries:
        return scores
    ours = _set_columns_to_null(scores._ours, queries)
    classic = _set_rows_to_null(scores._classic, queries)
    raised = scores._raised  # the upper bounds of the values, laid out as `_ours`
    if raised is not None:
        raised = _set_columns_to_null(raised, queries)
    changed = replace(scores, _ours=ours, _classic=classic, _raised=raised)
    return average_values(changed, measures)


def _set_columns_to_null(values: pl.DataFrame, queries: Mapping[str, pl.Series]) -> pl.DataFrame:
    """`values` has a column per measure."""
    columns = []
    for name, query_ids in queries.items():
        if name in values.columns:
            is_left_out = pl.col("query_id").is_in(query_ids.implode())
            columns.append(pl.when(~is_left_out).then(name).alias(name))
    return values.with_columns(columns)


def _set_rows_to_null(values: pl.DataFrame, queries: Mapping[str, pl.Series]) -> pl.DataFrame:
    """`values` has a row per query and measure."""
    left_out = pl.concat(
        query_ids.to_frame("query_id").with_columns(measure=pl.lit(name)) for name, query_ids in queries.items()
    )
    left_out = left_out.with_columns(is_left_out=pl.lit(True))
    rows = values.join(left_out, on=["query_id", "measure"], how="left", maintain_order="left")
    value = pl.when(pl.col("is_left_out").is_null()).then("value")
    return rows.with_columns(value).drop("is_left_out")


def average_values(scores: Scores, measures: Sequence[ir_measures.Measure]) -> Scores:
    """Return the scores with the means of `measures` computed again from `per_query`. All other means are dropped."""
    by_measure = {name: rows for (name,), rows in scores.per_query.group_by("measure")}
    no_rows = scores.per_query.clear()

    def average(column: str) -> dict[str, float | None]:
        means = {}
        for measure in measures:
            values = by_measure.get(str(measure), no_rows).get_column(column)
            means[str(measure)] = _average_queries(measure, values, [scores])
        return means

    most = None if scores._most is None else average("most")
    return replace(scores, means=average("value"), _most=most)


def leave_out_empty(scores: Scores, measures: Sequence[ir_measures.Measure]) -> Scores:
    """Return scores in which queries without results have no value for the measures that need results (see `needs_results`).

    For several runs of a system, keep only `measures`, and average each query over the runs in which it has a value.
    """
    if scores.replicates:
        runs = [leave_out_empty(run, measures) for run in scores.replicates]
        return average_scores(runs, measures, missing=scores.signature.get("missing", "zero"))
    counts = find_results_counts(filter(needs_results, measures))  # `score_run` computed these counts too
    if not counts:
        return scores

    columns = []
    for name, num_results in counts.items():
        has_results = pl.col(num_results) > 0
        columns.append(pl.when(has_results).then(name).alias(name))
    values = scores._ours.with_columns(columns)
    means = {name: average_queries(values.get_column(name).drop_nulls()) for name in counts}
    return replace(scores, means=scores.means | means, _ours=values)


def join_queries(runs: Sequence[SharedQueries]) -> SharedQueries:
    """Merge the queries of several runs. A query is `only_judged` if all runs lack it, `never_searched` if no run searched it."""
    judged = pl.concat([runs[0].both, runs[0].only_judged])
    both = pl.concat([queries.both for queries in runs]).unique().sort()
    only_searched = pl.concat([queries.only_searched for queries in runs]).unique().sort()
    only_judged = judged.filter(~judged.is_in(both.implode()))

    searched_by_run = []
    for queries in runs:
        is_idle = queries.both.is_in(queries.never_searched.implode())
        searched_by_run.append(queries.both.filter(~is_idle))
    never_searched = both.filter(~both.is_in(pl.concat(searched_by_run).implode()))
    return SharedQueries(both, only_searched, only_judged, never_searched)


def _average_queries(measure: ir_measures.Measure, values: pl.Series, runs: Sequence[Scores]) -> float | None:
    """Return the mean (or sum) of the values that are not null; None without such a value.

    It is also None if some values are null and no run has a mean: then a value was not finite.
    """
    numbers = values.drop_nulls()
    if numbers.is_empty():
        return None
    has_nulls = len(numbers) < len(values)
    if has_nulls and all(run.means[str(measure)] is None for run in runs):
        return None
    total = math.fsum(numbers)
    if isinstance(measure.aggregator(), ir_measures.SumAgg):
        return total
    return total / len(numbers)
