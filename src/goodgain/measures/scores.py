"""Defines `Scores`: the mean of each measure, the values of each query, and the settings with which a run was scored."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import ir_measures
import polars as pl
import polars.selectors as cs

from goodgain.argument_kinds import checks_kinds
from goodgain.counting.coverage import SharedQueries
from goodgain.errors import InputError, MeasureError, count_of
from goodgain.files.notebooks import write_result
from goodgain.files.tables import Table
from goodgain.measures.declaration import add_arrow
from goodgain.measures.names import find_direction, parse_measure, parse_measures

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
        queries: the query ids in both run and qrels (`both`), only in the run (`only_searched`), only in the qrels (`only_judged`),
            and in both without a search (`never_searched`).
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
    _ours: pl.DataFrame  # query_id, and a column per measure that goodgain computed
    _classic: pl.DataFrame  # query_id, measure, value: the rows of all other measures
    queries: SharedQueries
    rel: float | None
    _raised: pl.DataFrame | None = None  # the upper bounds of the values in `_ours`; None without bounds
    _most: dict[str, float | None] | None = None  # the means of `_raised`
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
        bounds: dict[str, tuple[float, float] | None] = {}
        for name, least in self.means.items():
            most = self._most.get(name)
            bounds[name] = None
            if least is not None and most is not None:
                bounds[name] = (least, most)
        return bounds

    @cached_property
    def per_query(self) -> pl.DataFrame:
        """A frame with the columns query_id, measure and value, for every query of the qrels.

        With `bounds=True`, the columns least and most give the bounds of the value; both are null for a measure without bounds.

        A value is null if it is not finite (possible with a user's function), or if the measure has no value for the query.
        For example, `GradedP@k` has no value if the query has results, but no result at ranks <= k has a label.
        """
        place_of = {name: k for k, name in enumerate(self.means)}
        place = pl.col("measure").replace_strict(place_of, return_dtype=pl.Int64)
        requested = [name for name in self.means if name in self._ours.columns]
        ours = _unpivot(self._ours.select("query_id", *requested))
        values = pl.concat([ours, self._classic]).sort("query_id", place)
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
            by_measure = self._classic.group_by("measure").agg(pl.col("value").count())
            counts = dict(by_measure.iter_rows())
        for name in self.means:
            if name in self._ours.columns:
                column = self._ours.get_column(name)
                counts[name] = len(column) - column.null_count()
        return {name: counts.get(name, 0) for name in self.means}

    @checks_kinds
    def select(self, measures: Sequence[ir_measures.Measure]) -> Scores:
        """Return the scores of one run for only the given measures, in the given order."""
        names = [str(measure) for measure in measures]
        means = {name: self.means[name] for name in names}
        classic = self._classic
        if len(classic):
            classic = classic.filter(pl.col("measure").is_in(names))
        raised = self._raised
        if raised is not None:
            raised = raised.select(cs.by_name("query_id", *names, require_all=False))
        # `_ours` keeps every measure, because comparisons also need measures that count results
        return replace(self, means=means, _classic=classic, _raised=raised)

    def to_polars(self) -> pl.DataFrame:
        """Return `per_query`, the values of each query, as a Polars frame."""
        return self.per_query

    def to_pandas(self) -> pd.DataFrame:
        """Return `per_query`, the values of each query, as a pandas frame."""
        return self.per_query.to_pandas()

    def __repr__(self) -> str:
        values = ", ".join(f"{name}={_round(mean)}" for name, mean in self.means.items())
        return f"Scores({values}; {count_of(self.signature['queries'], 'query', 'queries')})"

    def tables(self) -> list[Table]:
        """Return a list of one table, as notebooks show it: a row per measure with mean and interval, and the signature below."""
        intervals = self.intervals or {}
        rows = []
        for name, mean in self.means.items():
            text = _round(mean)
            interval = intervals.get(name)
            if mean is not None and interval:
                low, high = interval
                text += f" [{low:.4f}, {high:.4f}]"
            rows.append([_name_with_arrow(name), text])

        queries = count_of(self.signature["queries"], "query", "queries")
        table = Table.of(f"Means over {queries}", ["measure", "value"], 1, rows)
        settings = " ".join(f"{name}={value}" for name, value in self.signature.items() if name != "queries")
        return [table._replace(notes=[settings])]

    def _repr_html_(self) -> str:
        return write_result(self.tables(), self.notes)

    def __getitem__(self, measure: str | ir_measures.Measure) -> float | None:
        """Return the mean of a measure, or None if it has no mean. The name may have any spelling that `evaluate` accepts.

        After `evaluate(..., rel=1)` the name `nCG@6` also finds `nCG(rel=1)@6`.
        """
        if isinstance(measure, str) and measure in self.means:
            return self.means[measure]
        parsed = parse_measure(measure) if isinstance(measure, str) else measure
        for rel in (None, self.rel):
            name = str(parse_measures(parsed, rel=rel)[0])
            if name in self.means:
                return self.means[name]
        raise MeasureError(f"{name} is not in these scores; they have {', '.join(self.means)}")

    @checks_kinds
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

        by_measure = self.per_query.drop_nulls("value").group_by("measure").agg("value")
        values = dict(by_measure.iter_rows())
        means: dict[str, float | None] = dict.fromkeys(self.means)
        for name, mean in self.means.items():
            if mean is not None:
                logarithms = [math.log(max(value, _LEAST)) for value in values[name]]
                means[name] = math.exp(math.fsum(logarithms) / len(logarithms))
        return means


def _round(mean: float | None) -> str:
    return "–" if mean is None else f"{mean:.4f}"


def average_groups(
    per_query: pl.DataFrame, measures: Sequence[ir_measures.Measure], groups: pl.DataFrame
) -> pl.DataFrame:
    """Return `Scores.by_group`: means over the queries of a group that have a value, or sums for counts such as NumRet."""
    sums = [str(measure) for measure in measures if isinstance(measure.aggregator(), ir_measures.SumAgg)]
    grouped = groups.join(per_query, on="query_id").drop_nulls("value")
    names = pl.Enum([str(measure) for measure in measures])
    lists = grouped.group_by("group", "measure").agg(pl.len().alias("queries"), pl.col("value"))
    total = lists.get_column("value").map_elements(math.fsum, pl.Float64)
    is_sum = pl.col("measure").is_in(sums)
    mean_or_sum = pl.when(is_sum).then(total).otherwise(total / pl.col("queries"))
    averaged = lists.with_columns(value=mean_or_sum)
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
