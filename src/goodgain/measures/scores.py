"""Defines `Scores`: the mean of each measure, the values of each query, and the settings with which a run was scored."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import ir_measures
import polars as pl
import polars.selectors as cs

from goodgain.counting.coverage import SharedQueries
from goodgain.errors import InputError, MeasureError, count_of
from goodgain.files.notebooks import write_result
from goodgain.files.tables import Table
from goodgain.formats.run import Reading
from goodgain.measures.declaration import add_arrow
from goodgain.measures.ledger_values import average_queries
from goodgain.measures.names import (
    find_direction,
    find_results_counts,
    needs_results,
    parse_measure,
    parse_measures,
)

if TYPE_CHECKING:
    import pandas as pd


MEANS = ("arithmetic", "geometric")

#: trec_eval's smallest value in a geometric mean: 0 has no logarithm.
_LEAST = 1e-5


@dataclass(frozen=True, repr=False)
class Scores:
    """The scores of one run.

    Attributes:
        means: a dict from each measure to its mean over all queries (its sum for counts of ir_measures), in the requested order.
            A mean is None if a value is not finite. If a measure, such as GradedP, has no value for some queries, its mean
            is over the queries with a value (see `num_queries`), or None if no query has a value.
        signature: a dict of the versions and settings that led to the values; report it with any value.
        coverage: a frame with the columns iteration, judged (number of distinct judged results), unique (number of distinct
            results) and coverage (judged / unique, null without results). The row with a null iteration counts all results.
            Any other row counts the results first found in its iteration. Queries without judgments are left out.
        queries: the query ids in both run and qrels (`both`), only in the run (`only_searched`), only in the qrels (`only_judged`).
        rel: the argument `rel` of the call.
        ids_mapped: the number of mapped ids of the run and the number of mapped ids of the qrels; None without `documents=`.
        notes: the texts of all notices of the call, including minor notices.
        by_group: a frame with group, measure, queries (how many have a value) and value (the mean, or the sum for counts
            of ir_measures); None without `groups`.
        intervals: a dict from each measure to the confidence interval of its mean over queries; None without `interval=True`.
            The interval is None for a sum, for a single query, or without a mean. The signature has the method (`interval`):
            Student's t, within the range of the measure, if a mean is over fewer than 30 queries; else the bootstrap percentile
            interval. Success and AllGood, whose values are 0 or 1, have Clopper and Pearson's interval.
        replicates: the scores of each run if a system has several runs; the values of the system are then means over its runs.
        lacks_iterations: whether the run, or one of the runs of the system, has no iterations.
        one_time: the number of queries in which two or more iterations found one-time URLs (new URLs for each call).
        first_iteration: the lowest iteration number of the run, before iterations are renumbered; None if the run has no
            iterations, or `page` cut it.

    >>> import goodgain as gg
    >>> scores = gg.evaluate({"q": {"a": 3, "b": 2}}, {"q": {"a": 1.0}}, "nDCG@10 R@100")
    >>> scores["R@100"]
    0.5
    >>> scores.per_query.rows()[1]
    ('q', 'R@100', 0.5)
    """

    means: dict[str, float | None]
    signature: dict[str, Any]
    coverage: pl.DataFrame
    _ours: pl.DataFrame
    _classic: pl.DataFrame
    queries: SharedQueries
    rel: float | None
    _raised: pl.DataFrame | None = None
    _most: dict[str, float | None] | None = None
    notes: tuple[str, ...] = ()
    by_group: pl.DataFrame | None = None
    ids_mapped: tuple[int, int] | None = None
    replicates: tuple[Scores, ...] = ()
    intervals: dict[str, tuple[float, float] | None] | None = None
    lacks_iterations: bool = False
    one_time: int = 0
    first_iteration: int | None = None

    @property
    def bounds(self) -> dict[str, tuple[float, float] | None]:
        """A dict from each measure to the lower and the upper bound of its mean; None for a measure without bounds.

        For the lower bound, every unjudged result has the label 0. For the upper bound, it has the largest label of the qrels.

        Raises:
            InputError: the scores were computed without `bounds=True`.

        >>> import goodgain
        >>> run = {"q": {"a": 3.0, "b": 2.0, "c": 1.0, "d": 0.0, "e": -1.0}}
        >>> goodgain.evaluate({"q": {"a": 2, "b": 0, "c": 0, "d": 0}}, run, "P@5 R@5", bounds=True).bounds
        {'P@5': (0.2, 0.4), 'R@5': None}
        """
        if self._most is None:
            raise InputError("these scores have no bounds; compute them with evaluate(..., bounds=True)")
        pairs = {name: (least, self._most.get(name)) for name, least in self.means.items()}
        return {name: None if least is None or most is None else (least, most) for name, (least, most) in pairs.items()}

    @cached_property
    def per_query(self) -> pl.DataFrame:
        """A frame with the columns query_id, measure and value, for every query of the qrels.

        With `bounds=True`, the columns least and most give the bounds of the value; both are null for a measure without bounds.

        A value is null if it is not finite (possible with a user's function), or if the measure has no value for the query.
        For example, `GradedP@k` has no value if the query has results, but no result at ranks <= k has a label.
        """
        names = {name: k for k, name in enumerate(self.means)}
        position = pl.col("measure").replace_strict(names, return_dtype=pl.Int64)
        asked = self._ours.select("query_id", *(name for name in names if name in self._ours.columns))
        values = pl.concat([_unpivot(asked), self._classic]).sort("query_id", position)
        if self._raised is None:
            return values
        most = _unpivot(self._raised).rename({"value": "most"})
        joined = values.join(most, on=["query_id", "measure"], how="left", maintain_order="left")
        least = pl.when(pl.col("most").is_not_null()).then("value")
        return joined.select("query_id", "measure", "value", least.alias("least"), "most")

    @cached_property
    def num_queries(self) -> dict[str, int]:
        """A dict from each measure to the number of queries for which it has a value."""
        counts: dict[str, int] = {}
        if not self._classic.is_empty():
            counts = dict(self._classic.group_by("measure").agg(pl.col("value").count()).iter_rows())
        for name in self.means:
            if name in self._ours.columns:
                column = self._ours.get_column(name)
                counts[name] = len(column) - column.null_count()
        return {name: counts.get(name, 0) for name in self.means}

    def select(self, measures: Sequence[ir_measures.Measure]) -> Scores:
        """Return the scores of one run for only the given measures, in the given order."""
        names = [str(one) for one in measures]
        return replace(  # `_ours` keeps every measure, because comparisons also need measures that count results
            self,
            means={name: self.means[name] for name in names},
            _classic=self._classic.filter(pl.col("measure").is_in(names)) if len(self._classic) else self._classic,
            _raised=None
            if self._raised is None
            else self._raised.select(cs.by_name("query_id", *names, require_all=False)),
        )

    def to_polars(self) -> pl.DataFrame:
        """Return `per_query`, the values of each query, as a Polars frame."""
        return self.per_query

    def to_pandas(self) -> pd.DataFrame:
        """Return `per_query`, the values of each query, as a pandas frame."""
        return self.per_query.to_pandas()

    def __repr__(self) -> str:
        shown = {name: "–" if value is None else f"{value:.4f}" for name, value in self.means.items()}
        values = ", ".join(f"{name}={value}" for name, value in shown.items())
        return f"Scores({values}; {count_of(self.signature['queries'], 'query', 'queries')})"

    def tables(self) -> list[Table]:
        """Return a list of one table, as notebooks show it: a row per measure with mean and interval, and the signature below."""
        ends = {name: f" [{of[0]:.4f}, {of[1]:.4f}]" for name, of in (self.intervals or {}).items() if of}
        rows = [
            [_name_with_arrow(name), "–" if value is None else f"{value:.4f}{ends.get(name, '')}"]
            for name, value in self.means.items()
        ]
        queries = count_of(self.signature["queries"], "query", "queries")
        title = f"Means over {queries}"
        made = " ".join(f"{name}={value}" for name, value in self.signature.items() if name != "queries")
        return [Table.of(title, ["measure", "value"], 1, rows)._replace(notes=[made])]

    def _repr_html_(self) -> str:
        return write_result(self.tables(), self.notes)

    def __getitem__(self, measure: str | ir_measures.Measure) -> float | None:
        """Return the mean of a measure, or None if it has no mean. The name may have any spelling that `evaluate` accepts.

        After `evaluate(..., rel=1)` the name `nCG@6` also finds `nCG(rel=1)@6`.
        """
        if isinstance(measure, str) and measure in self.means:
            return self.means[measure]
        asked = parse_measure(measure) if isinstance(measure, str) else measure
        names = [str(parse_measures(asked, rel=rel)[0]) for rel in (None, self.rel)]
        if found := [name for name in names if name in self.means]:
            return self.means[found[0]]
        raise MeasureError(f"{names[-1]} is not in these scores; they have {', '.join(self.means)}")

    def mean(self, how: str = "arithmetic") -> dict[str, float | None]:
        """Return a dict from each measure to its mean over all queries. A mean that is None in `means` stays None.

        Args:
            how: `arithmetic` returns `means`. `geometric` returns geometric means: the exponential of the mean logarithm of
                the values, where a value below 1e-5 counts as 1e-5. The geometric mean of AP is gm_map of trec_eval. A rise
                from .05 to .10 weighs as much as a rise from .4 to .8.

        Raises:
            MeasureError: `how` has another value.

        Source: trec_eval 9, gm_map; Robertson, CIKM 2006.

        >>> import goodgain
        >>> scores = goodgain.evaluate({"q": {"a": 1}, "r": {"a": 1}}, {"q": {"a": 1.0}, "r": {"b": 1.0}}, "AP")
        >>> scores.mean(), scores.mean(how="geometric")
        ({'AP': 0.5}, {'AP': 0.003162277660168379})
        """
        if how not in MEANS:
            raise MeasureError(f"mean(how={how!r}): give how={' or how='.join(map(repr, MEANS))}")
        if how == "arithmetic":
            return dict(self.means)
        values = dict(self.per_query.drop_nulls("value").group_by("measure").agg("value").iter_rows())
        means: dict[str, float | None] = dict.fromkeys(self.means)
        for name in (name for name, mean in self.means.items() if mean is not None):
            logarithms = [math.log(max(value, _LEAST)) for value in values[name]]
            means[name] = math.exp(math.fsum(logarithms) / len(logarithms))
        return means


def average_groups(
    per_query: pl.DataFrame, measures: Sequence[ir_measures.Measure], groups: pl.DataFrame
) -> pl.DataFrame:
    """Return `Scores.by_group`: means over the queries of a group that have a value, or sums for counts such as NumRet."""
    summed = [str(measure) for measure in measures if isinstance(measure.aggregator(), ir_measures.SumAgg)]
    grouped = groups.join(per_query, on="query_id").drop_nulls("value")
    names = pl.Enum([str(measure) for measure in measures])
    found = grouped.group_by("group", "measure").agg(pl.len().alias("queries"), pl.col("value"))
    value = found.get_column("value").map_elements(math.fsum, pl.Float64)
    is_sum = pl.col("measure").is_in(summed)
    averaged = found.with_columns(value=pl.when(is_sum).then(value).otherwise(value / pl.col("queries")))
    return averaged.sort("group", pl.col("measure").cast(names))


def _name_with_arrow(name: str) -> str:
    try:
        return add_arrow(name, find_direction(parse_measure(name)))
    except MeasureError:  # a user's class without a name
        return name


def _unpivot(values: pl.DataFrame) -> pl.DataFrame:
    rows = values.unpivot(index="query_id", variable_name="measure", value_name="value")
    has_types = rows.schema["measure"] == pl.String and rows.schema["value"] == pl.Float64
    return rows if has_types else rows.cast({"measure": pl.String, "value": pl.Float64})


def average_scores(runs: Sequence[Scores], measures: Sequence[ir_measures.Measure], *, missing: str = "zero") -> Scores:
    """Return the scores of a system: the value of a query is the mean over the runs that have a value for this query.

    With `missing="absent"`, the queries that a run lacks have no value in this run. In `Scores.queries`, a query
    is in `only_judged` only if all runs lack it.
    """
    if len(runs) == 1:
        return leave_out_absent(runs[0], measures) if missing == "absent" else runs[0]
    queries = join_queries([of.queries for of in runs])
    tables = [find_values(of, missing) for of in runs]
    position = {str(measure): k for k, measure in enumerate(measures)}
    asked = pl.concat(tables).filter(pl.col("measure").is_in([*position]))
    averaged = asked.group_by("query_id", "measure").agg(pl.col("value").mean())
    averaged = averaged.sort("query_id", pl.col("measure").replace_strict(position, return_dtype=pl.Int64))
    values = {name: of_measure.get_column("value") for (name,), of_measure in averaged.group_by("measure")}
    nothing = averaged.get_column("value").clear()  # every run lacks every query
    means = {str(measure): _average_queries(measure, values.get(str(measure), nothing), runs) for measure in measures}
    added = pl.concat([of.coverage for of in runs]).group_by("iteration").agg(pl.col("judged", "unique").sum())
    share_of = pl.when(pl.col("unique") > 0).then(pl.col("judged") / pl.col("unique"))
    coverage = added.with_columns(coverage=share_of).sort("iteration", nulls_last=False)
    has_labels = "unjudged" in runs[0].signature
    if not has_labels:
        coverage = coverage.with_columns(coverage=pl.lit(None, pl.Float64))
    share = coverage.item(0, "coverage")
    signature = {name: value for name, value in runs[0].signature.items() if name != "without_value"}
    signature |= sign_reading({f"run {k}": of.signature for k, of in enumerate(runs, 1)}) | {
        "replicates": len(runs),
        **({"missing": missing} if missing != "zero" else {}),
        "absent_from_run": len(queries.only_judged),
        "without_judgments": len(queries.only_searched),
    }
    if has_labels:
        signature["unjudged"] = 0.0 if share is None else 1 - share
    mapped = [of.ids_mapped for of in runs if of.ids_mapped is not None]
    ids_mapped = (sum(of_run for of_run, _ in mapped), mapped[0][1]) if mapped else None
    return Scores(
        means,
        signature,
        coverage,
        averaged.select("query_id").clear(),
        averaged,
        queries,
        runs[0].rel,
        ids_mapped=ids_mapped,
        replicates=tuple(runs),
        lacks_iterations=any(of.lacks_iterations for of in runs),
        one_time=max(of.one_time for of in runs),
        first_iteration=min((of.first_iteration for of in runs if of.first_iteration is not None), default=None),
    )


def sign_reading(signatures: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return the reading options that are not defaults. If runs differ in an option, its value is a list of texts `run:value`."""
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
    """Return the frame `Scores.per_query` of a run. With `missing="absent"`, the queries that the run lacks are left out."""
    absent = of.queries.only_judged.implode()
    return of.per_query if missing == "zero" else of.per_query.filter(~pl.col("query_id").is_in(absent))


def leave_out_absent(of: Scores, measures: Sequence[ir_measures.Measure]) -> Scores:
    """Return the scores without the queries that the run lacks. Absent queries then do not count in the means."""
    kept = leave_out_queries(of, of.queries.only_judged, measures)
    return replace(kept, signature=of.signature | {"missing": "absent"})


def leave_out_queries(of: Scores, query_ids: pl.Series, measures: Sequence[ir_measures.Measure]) -> Scores:
    is_there = ~pl.col("query_id").is_in(query_ids.implode())
    raised = None if of._raised is None else of._raised.filter(is_there)
    kept = replace(of, _ours=of._ours.filter(is_there), _classic=of._classic.filter(is_there), _raised=raised)
    return average_values(kept, measures)


def leave_out_no_good(
    of: Scores, without_good: Mapping[str, pl.Series], measures: Sequence[ir_measures.Measure]
) -> Scores:
    """Return the scores without values of a measure for the queries in `without_good`, which maps measures to query ids."""
    kept = set_to_null(of, without_good, measures)
    return replace(
        kept,
        signature=of.signature | {"no_good": "absent"},
        replicates=tuple(leave_out_no_good(run, without_good, measures) for run in of.replicates),
    )


def set_to_null(of: Scores, queries: Mapping[str, pl.Series], measures: Sequence[ir_measures.Measure]) -> Scores:
    """Return the scores without the values of some measures in some queries. `queries` maps measures to query ids."""
    if not queries:
        return of

    def set_columns(values: pl.DataFrame) -> pl.DataFrame:
        known = {
            name: ~pl.col("query_id").is_in(ids.implode()) for name, ids in queries.items() if name in values.columns
        }
        return values.with_columns(pl.when(is_kept).then(name).alias(name) for name, is_kept in known.items())

    lacking = pl.concat(ids.to_frame("query_id").with_columns(measure=pl.lit(name)) for name, ids in queries.items())
    is_lacking = lacking.with_columns(is_lacking=pl.lit(True))
    classic = of._classic.join(is_lacking, on=["query_id", "measure"], how="left", maintain_order="left")
    classic = classic.with_columns(pl.when(pl.col("is_lacking").is_null()).then("value")).drop("is_lacking")
    raised = None if of._raised is None else set_columns(of._raised)
    return average_values(replace(of, _ours=set_columns(of._ours), _classic=classic, _raised=raised), measures)


def average_values(of: Scores, measures: Sequence[ir_measures.Measure]) -> Scores:
    by_measure = {name: values for (name,), values in of.per_query.group_by("measure")}
    none = of.per_query.clear()

    def average(column: str) -> dict[str, float | None]:
        values = ((one, by_measure.get(str(one), none).get_column(column)) for one in measures)
        return {str(one): _average_queries(one, of_measure, [of]) for one, of_measure in values}

    return replace(of, means=average("value"), _most=None if of._most is None else average("most"))


def leave_out_empty(of: Scores, measures: Sequence[ir_measures.Measure]) -> Scores:
    """Return scores in which queries without results have no value for the measures that need results (see `needs_results`).

    For several runs of a system, keep only `measures`, and average each query over the runs in which it has a value.
    """
    if of.replicates:
        runs = [leave_out_empty(run, measures) for run in of.replicates]
        return average_scores(runs, measures, missing=of.signature.get("missing", "zero"))
    counts = find_results_counts(filter(needs_results, measures))
    if not counts:
        return of
    values = of._ours.with_columns(
        pl.when(pl.col(results) > 0).then(name).alias(name) for name, results in counts.items()
    )
    known = {name: values.get_column(name).drop_nulls() for name in counts}
    means = {name: average_queries(of_measure) for name, of_measure in known.items()}
    return replace(of, means=of.means | means, _ours=values)


def join_queries(runs: Sequence[SharedQueries]) -> SharedQueries:
    """Merge the queries of several runs. A query is `only_judged` if all runs lack it, `never_searched` if no run searched it."""
    judged = pl.concat([runs[0].both, runs[0].only_judged])
    both = pl.concat([of.both for of in runs]).unique().sort()
    without = pl.concat([of.only_searched for of in runs]).unique().sort()
    searched = pl.concat([of.both.filter(~of.both.is_in(of.never_searched.implode())) for of in runs])
    idle = both.filter(~both.is_in(searched.implode()))
    return SharedQueries(both, without, judged.filter(~judged.is_in(both.implode())), idle)


def _average_queries(measure: ir_measures.Measure, values: pl.Series, runs: Sequence[Scores]) -> float | None:
    known = values.drop_nulls()
    if known.is_empty() or (len(known) < len(values) and all(of.means[str(measure)] is None for of in runs)):
        return None
    total = math.fsum(known)
    return total if isinstance(measure.aggregator(), ir_measures.SumAgg) else total / len(known)
