"""The scores of several systems, and what is added to the scores of one: values over groups of queries, and intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import ir_measures
import polars as pl

from goodgain.counting.ledger import count_pools
from goodgain.counting.run_opening import stack_systems
from goodgain.errors import InputError
from goodgain.files.notebooks import write_result
from goodgain.files.tables import Table, format_cell
from goodgain.formats.digest import digest_rows
from goodgain.measures.bounds import find_range
from goodgain.measures.changed_scores import find_values
from goodgain.measures.names import find_null_rule
from goodgain.measures.scores import Scores, average_groups
from goodgain.ranking.ranking_table import Judgments
from goodgain.statistics.intervals_of_means import (
    Values,
    choose_method,
    find_intervals_of_means,
    name_methods,
)
from goodgain.statistics.statistical_tests import Settings

if TYPE_CHECKING:
    import pandas as pd


def add_groups(scores: Scores, measures: Sequence[ir_measures.Measure], members: pl.DataFrame) -> Scores:
    """Return scores with means over each group. `members` has query_id and group."""
    by_group = average_groups(scores.per_query, measures, members)
    return replace(scores, by_group=by_group, signature=scores.signature | {"groups": digest_rows(members)})


def add_intervals(
    scores: Scores, measures: Sequence[ir_measures.Measure], settings: Settings, *, largest_label: float
) -> Scores:
    """Return scores with the interval of each mean. A mean over one query has no interval, nor has a sum.

    All means have the method of the mean over the fewest queries, but measures whose values are 0 or 1 have the exact interval.
    """
    values = {
        name: rows.get_column("value").to_numpy()
        for (name,), rows in scores.per_query.drop_nulls("value").group_by("measure", maintain_order=True)
    }
    sums = {str(measure) for measure in measures if isinstance(measure.aggregator(), ir_measures.SumAgg)}
    averaged = [name for name, mean in scores.means.items() if mean is not None and name not in sums]

    ranges = {str(measure): find_range(measure, largest_label) for measure in measures}
    means = [Values(values[name], *ranges[name]) for name in averaged]
    intervals: dict[str, tuple[float, float] | None] = dict.fromkeys(scores.means)
    method = choose_method(len(values[name]) for name in averaged)
    intervals |= dict(zip(averaged, find_intervals_of_means(means, settings, method), strict=True))
    signature = scores.signature | settings.signature | {"interval": name_methods(means, method)}
    return replace(scores, intervals=intervals, signature=signature)


def sign_queries_of_means(scores: Scores, measures: Sequence[ir_measures.Measure], judgments: Judgments) -> Scores:
    """Return scores with `missing="absent"`, whose signature counts only the queries that the run has. Values stay."""
    absent = scores.queries.only_judged
    counts: dict[str, Any] = {"queries": scores.queries.judged - len(absent)}
    if "without_good" in scores.signature:
        pools = count_pools(judgments, rels=scores.signature["rel"])
        pools = pools.filter(~pl.col("query_id").is_in(absent.implode()))
        good = [pools.get_column(f"GoodPool{k}") for k in range(len(scores.signature["rel"]))]
        counts["without_good"] = [int((number == 0).sum()) for number in good]
    counts |= {"absent_from_run": 0, "left_out": len(absent)}

    signature = scores.signature | counts
    if "without_value" in signature:
        nulls = scores.per_query.filter(pl.col("value").is_null()).group_by("measure").len()
        number_of = dict(nulls.iter_rows())
        names = [str(measure) for measure in measures if str(measure) in number_of and find_null_rule(measure)]
        signature["without_value"] = [f"{name}:{number_of[name]}" for name in names]
        if not names:
            del signature["without_value"]
    return replace(scores, signature=signature)


@dataclass(frozen=True, eq=False, repr=False)
class SystemScores:
    """The scores of several systems on the same measures and queries.

    Attributes:
        systems: the `Scores` of each system, by name.
        notes: all notices of the call, also minor ones.

    `scores["new", "nCG@3"]` is the mean of a system. If there is one system, `scores["nCG@3"]` is its mean, and other attributes
    (`per_query`, `mean`, `signature` ...) are those of its `Scores`.
    """

    systems: Mapping[str, Scores]
    notes: tuple[str, ...] = ()

    @cached_property
    def values(self) -> pl.DataFrame:
        """A frame with system, replicate (the number of the run; null for a system of one run), query_id, measure and value."""
        frames: list[pl.DataFrame] = []
        for name, scores in self.systems.items():
            missing = scores.signature.get("missing", "zero")
            runs: Any = [(k, find_values(run, missing)) for k, run in enumerate(scores.replicates, 1)]
            for number, values in runs or [(None, scores.per_query)]:
                replicate = pl.lit(number, pl.Int64).alias("replicate")
                frames.append(values.select(pl.lit(name).alias("system"), replicate, "query_id", "measure", "value"))
        return pl.concat(frames)

    @property
    def by_group(self) -> pl.DataFrame | None:
        """A frame with system, group, measure, queries and value; None without groups."""
        groups = {name: scores.by_group for name, scores in self.systems.items() if scores.by_group is not None}
        return stack_systems(groups) if groups else None

    def __getitem__(self, key: Any) -> float | None:
        if not (isinstance(key, tuple) and len(key) == 2):
            if len(self.systems) == 1 and key not in self.systems:
                (only,) = self.systems.values()
                return only[key]
            raise InputError(f"{key!r}: give one of {self._listed}, and a measure: {self._show_key(key)}")
        system, measure = key
        if system not in self.systems:
            raise InputError(f"{system!r} is not one of the systems; they are {', '.join(self.systems)}")
        return self.systems[system][measure]

    def __getattr__(self, name: str) -> Any:
        """Return an attribute of the `Scores` of the only system. With several systems, the error says where it is."""
        if not name.startswith("_") and (hasattr(Scores, name) or name in Scores.__dataclass_fields__):
            if len(self.systems) == 1:
                (only,) = self.systems.values()
                return getattr(only, name)
            raise AttributeError(
                f"{name}: this object has scores of {self._listed}. Use .values, or .systems[{next(iter(self.systems))!r}].{name}"
            )
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def _show_key(self, key: Any) -> str:
        """Return the key to write in place of `key`, which is a system, a measure, or neither."""
        *_, last = self.systems
        measures = [*self.systems[last].means]
        if key in self.systems:
            return f'["{key}", "{measures[0]}"], or .systems["{key}"] for all of its scores'
        measure = key if str(key) in measures else measures[0]
        return f'["{last}", "{measure}"]'

    @property
    def _listed(self) -> str:
        return f"the systems {', '.join(self.systems)}"

    def to_polars(self) -> pl.DataFrame:
        """Return the frame `values`."""
        return self.values

    def to_pandas(self) -> pd.DataFrame:
        """Return the frame `values` as a pandas frame."""
        return self.values.to_pandas()

    def tables(self) -> list[Table]:
        """Return the table that a notebook shows: a row per measure, and a column of means per system."""
        names = next(iter(self.systems.values())).means
        rows = [[name, *(format_cell(scores.means[name], 4) for scores in self.systems.values())] for name in names]
        return [Table.of("Means over queries", ["measure", *self.systems], 1, rows)]

    def _repr_html_(self) -> str:
        return write_result(self.tables(), self.notes)

    def __repr__(self) -> str:
        (table,) = self.tables()
        rows = [table.header, *([cell.text for cell in row] for row in table.rows)]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = []
        for name, *values in rows:
            cells = [value.rjust(width) for value, width in zip(values, widths[1:], strict=True)]
            lines.append("  ".join([name.ljust(widths[0]), *cells]))
        return "\n".join(lines)
