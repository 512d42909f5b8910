"""Averages the scores of several runs of one system (replicates) query by query."""

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
    """Return the scores of a system: the value of a query is the mean over its runs that have a value.

    `missing="absent"` leaves out the values of queries that a run lacks. In `queries`, a query is absent if all runs lack it.
    """
    if len(runs) == 1:
        return leave_out_absent(runs[0], measures) if missing == "absent" else runs[0]
    queries = join_queries([of.queries for of in runs])
    tables = [find_values(of, missing) for of in runs]
    position = {str(measure): k for k, measure in enumerate(measures)}
    asked = pl.concat(tables).filter(pl.col("measure").is_in([*position]))
    averaged = asked.group_by("query_id", "measure").agg(pl.col("value").mean())
    averaged = averaged.sort("query_id", pl.col("measure").replace_strict(position, return_dtype=pl.Int64))
    values: Mapping[Any, pl.DataFrame] = averaged.partition_by("measure", as_dict=True)
    means = {
        str(measure): _average_queries(measure, values[str(measure),].get_column("value"), runs) for measure in measures
    }
    added = pl.concat([of.coverage for of in runs]).group_by("iteration").agg(pl.col("judged", "unique").sum())
    share_of = pl.when(pl.col("unique") > 0).then(pl.col("judged") / pl.col("unique"))
    coverage = added.with_columns(coverage=share_of).sort("iteration", nulls_last=False)
    share = coverage.item(0, "coverage")
    signature = {name: value for name, value in runs[0].signature.items() if name != "without_value"}
    signature |= sign_reading({f"run {k}": of.signature for k, of in enumerate(runs, 1)}) | {
        "replicates": len(runs),
        **({"missing": missing} if missing != "zero" else {}),
        "absent_from_run": len(queries.only_judged),
        "without_judgments": len(queries.only_searched),
        "unjudged": 0.0 if share is None else 1 - share,
    }
    mapped = [of.ids_mapped for of in runs if of.ids_mapped is not None]
    ids_mapped = (sum(of_run for of_run, _ in mapped), mapped[0][1]) if mapped else None
    none = averaged.select("query_id").clear()
    return Scores(
        means,
        signature,
        coverage,
        none,
        averaged,
        None,
        None,
        queries,
        runs[0].rel,
        ids_mapped=ids_mapped,
        replicates=tuple(runs),
        lacks_iterations=any(of.lacks_iterations for of in runs),
        one_time=max(of.one_time for of in runs),
    )


def sign_reading(signatures: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return the reading options of several runs by name: one value where all have the same, else a list of `name:value`."""
    found: dict[str, Any] = {}
    for option, default in Reading._field_defaults.items():
        values = {name: signature.get(option, default) for name, signature in signatures.items()}
        first = next(iter(values.values()))
        if any(value != first for value in values.values()):
            found[option] = [f"{name}:{value}" for name, value in values.items() if value is not None]
        elif first != default:
            found[option] = first
    return found


def find_values(of: Scores, missing: str) -> pl.DataFrame:
    """Return query_id, measure, value of a run; if `missing` is absent, without the queries that it lacks."""
    absent = of.queries.only_judged.implode()
    return of.per_query if missing == "zero" else of.per_query.filter(~pl.col("query_id").is_in(absent))


def leave_out_absent(of: Scores, measures: Sequence[ir_measures.Measure]) -> Scores:
    """Return the scores of a run without the queries that it lacks: the means are over the others."""
    kept = leave_out_queries(of, of.queries.only_judged, measures)
    return replace(kept, signature=of.signature | {"missing": "absent"})


def leave_out_queries(of: Scores, query_ids: pl.Series, measures: Sequence[ir_measures.Measure]) -> Scores:
    """Return the scores of a run without these queries: the means are over the others."""
    is_there = ~pl.col("query_id").is_in(query_ids.implode())
    raised = None if of._raised is None else of._raised.filter(is_there)
    kept = replace(of, _ours=of._ours.filter(is_there), _classic=of._classic.filter(is_there), _raised=raised)
    return average_values(kept, measures)


def average_values(of: Scores, measures: Sequence[ir_measures.Measure]) -> Scores:
    """Return the scores of a run with the means of its values."""
    by_measure = {name: values for (name,), values in of.per_query.group_by("measure")}
    none = of.per_query.clear()

    def average(column: str) -> dict[str, float | None]:
        values = ((one, by_measure.get(str(one), none).get_column(column)) for one in measures)
        return {str(one): _average_queries(one, of_measure, [of]) for one, of_measure in values}

    return replace(of, means=average("value"), _most=None if of._most is None else average("most"))


def leave_out_empty(of: Scores, measures: Sequence[ir_measures.Measure]) -> Scores:
    """Return the scores without the values of queries without results, for measures that need results.

    Scores of several runs have the values of `measures` alone: each is the mean over the runs with results.
    """
    if of.replicates:
        runs = [leave_out_empty(run, measures) for run in of.replicates]
        return average_scores(runs, measures, missing=of.signature.get("missing", "zero"))
    counts = find_results_counts(filter(needs_results, measures))
    values = of._ours.with_columns(
        pl.when(pl.col(results) > 0).then(name).alias(name) for name, results in counts.items()
    )
    known = {name: values.get_column(name).drop_nulls() for name in counts}
    means = {name: average_queries(of_measure) for name, of_measure in known.items()}
    return replace(of, means=of.means | means, _ours=values)


def join_queries(runs: Sequence[SharedQueries]) -> SharedQueries:
    """Return the queries of all runs together: a query is absent, or never searched, if it is so in all that have it."""
    judged = pl.concat([runs[0].both, runs[0].only_judged])
    both = pl.concat([of.both for of in runs]).unique().sort()
    without = pl.concat([of.only_searched for of in runs]).unique().sort()
    searched = pl.concat([of.both.filter(~of.both.is_in(of.never_searched.implode())) for of in runs])
    idle = both.filter(~both.is_in(searched.implode()))
    return SharedQueries(both, without, judged.filter(~judged.is_in(both.implode())), idle)


def _average_queries(measure: ir_measures.Measure, values: pl.Series, runs: Sequence[Scores]) -> float | None:
    """Return the mean over queries, a sum for counts of ir_measures; None as in the means of one run."""
    known = values.drop_nulls()
    if known.is_empty() or (len(known) < len(values) and all(of.means[str(measure)] is None for of in runs)):
        return None
    total = math.fsum(known)
    return total if isinstance(measure.aggregator(), ir_measures.SumAgg) else total / len(known)
