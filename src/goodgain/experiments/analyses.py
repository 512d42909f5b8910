"""The cached analyses of an experiment, and the scores of several systems."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

import ir_measures
import numpy as np
import polars as pl

from goodgain.analysis.comparing.statistical_tests import Settings, check_settings, find_intervals
from goodgain.analysis.reporting.curves import Points, SystemCounts, interpolate, join_counts, tabulate_curve
from goodgain.analysis.reporting.spends import OVER
from goodgain.counting.coverage import measure_coverage
from goodgain.counting.ledger import Counts
from goodgain.counting.run_opening import stack_systems
from goodgain.errors import InputError
from goodgain.experiments.shared_steps import SharedSteps
from goodgain.files.tables import Table, format_cell, write_html
from goodgain.formats.digest import digest_rows
from goodgain.formats.query_tables import read_costs, read_groups
from goodgain.measures.declaration import GoodGainMeasure
from goodgain.measures.scores import Scores, average_groups, average_scores, find_values, sign_queries_of_means
from goodgain.measures.thresholds import find_thresholds, warn_of_labels
from goodgain.options import DOCUMENTS, READING, SCORING, STATISTICS, TABLES, spell

if TYPE_CHECKING:
    import pandas as pd

T = TypeVar("T")
#: The options of an experiment.
GROUPS = (READING, DOCUMENTS, SCORING, TABLES, STATISTICS)
#: The default values of these options.
OF_OPENED = {option.name: option.default for group in GROUPS for option in group}


def _find_intervals(
    scores: Scores, asked: Sequence[ir_measures.Measure], settings: Settings
) -> dict[str, tuple[float, float] | None]:
    """Return the bootstrap interval of each mean. Measures with equally many values use the same bootstrap samples."""
    values = {name: of.get_column("value") for (name,), of in scores.per_query.drop_nulls("value").group_by("measure")}
    sums = {str(measure) for measure in asked if isinstance(measure.aggregator(), ir_measures.SumAgg)}
    averaged = [name for name, mean in scores.means.items() if mean is not None and name not in sums]
    found: dict[str, tuple[float, float] | None] = dict.fromkeys(scores.means)
    for queries in {len(values[name]) for name in averaged} - {1}:  # one query says nothing of others
        names = [name for name in averaged if len(values[name]) == queries]
        ends = find_intervals(np.stack([values[name].to_numpy() for name in names]), settings)
        found |= {name: (float(low), float(high)) for name, low, high in zip(names, *ends, strict=True)}
    return found


class Analyses(SharedSteps):
    """The analyses of an experiment. Methods use the options of the experiment; `own` has further arguments of one analysis."""

    def keep_result(self, name: str, own: Mapping[str, Any], make: Callable[[], T]) -> T:
        given = [(key, value) for key, value in sorted(own.items()) if value is not None]
        return self._keep(name, GROUPS, given, make)

    def check_settings(self, least: int = 1) -> Settings:
        """Check and return the options of the tests. `least` is the smallest allowed number of resamples."""
        given = (self.options[option.name] for option in STATISTICS)
        return check_settings(*given, least=least)._replace(draw=self.draw)

    def warn_of_labels(self, measures: Sequence[Any], provider: str | None = None) -> None:
        warn_of_labels(self.opened.qrels.frame, measures, rel=self.options["rel"], provider=provider)

    def evaluate(self, asked: Sequence[Any], groups: Any = None, *, interval: bool = False) -> dict[str, Scores]:
        """Return the `Scores` of each system, by name. The `notes` of the scores are empty."""
        opened, options = self.opened, self.options
        if options["bounds"] and any(len(of) > 1 for of in opened.names.values()):
            bounds = spell("bounds", True)
            raise InputError(f"{bounds} needs one run of each system. Leave out {bounds}, or give one run each.")
        self.warn_of_labels(asked, options["provider"])
        runs = {name: of.select(asked) for name, of in self.score_runs(asked).items()}
        self.warn_of_scores(runs, asked)
        members = None if groups is None else read_groups(groups, opened.qrels.query_ids)
        found = {}
        for name, of in opened.names.items():
            scores = average_scores([runs[run] for run in of], asked, missing=options["missing"])
            if options["missing"] == "absent":
                scores = sign_queries_of_means(scores, asked, opened.qrels.judgments)
            if members is not None:
                by_group = average_groups(scores.per_query, asked, members)
                signature = scores.signature | {"groups": digest_rows(members)}
                scores = replace(scores, signature=signature, by_group=by_group)
            if interval:
                settings = self.check_settings()
                signature = scores.signature | settings.signature
                scores = replace(scores, signature=signature, intervals=_find_intervals(scores, asked, settings))
            found[name] = scores
        return found

    def count(self, rels: Sequence[float]) -> dict[str, dict[float, Counts]]:
        """Return the counts of each run at each threshold in `rels`, and give the notices on these counts."""
        counts = self.count_runs(rels)
        self.warn_of_coverage({name: measure_coverage(of).tabulate() for name, of in counts.items()})
        return counts

    def join(self, measures: Sequence[GoodGainMeasure]) -> dict[str, SystemCounts]:
        """Combine the counts of each system's runs. Give no notices on labels and coverage."""
        return join_counts(self.count_runs(find_thresholds(measures)), self.opened.names)

    def curve(self, asked: Sequence[GoodGainMeasure], **own: Any) -> pl.DataFrame:
        """Return the rows of `gg.curve`. `own` are the arguments of `gg.curve`."""
        settings, counted = self.check_settings(0), self.join(asked)

        def make() -> pl.DataFrame:
            over = own.get("over")
            paid = read_costs(own["costs"]) if over is not None and OVER[over] is None else None
            return tabulate_curve(counted, asked, settings, **{**own, "costs": paid})

        return self.keep_result("curve", {**own, "measures": asked}, make)

    def draw_recalls(self, rel: float, points: Points = "eleven", *, per_query: bool = False) -> pl.DataFrame:
        """Return the rows of `gg.pr_curve` for each run, without a notice on low coverage."""
        hits, query_ids = self.find_hits(rel), self.opened.qrels.query_ids
        return stack_systems(
            {name: interpolate(of, query_ids, points=points, per_query=per_query) for name, (of, _) in hits.items()}
        )


@dataclass(frozen=True, eq=False, repr=False)
class SystemScores:
    """The scores of several systems on the same measures and queries.

    Attributes:
        systems: the `Scores` of each system, by name.
        notes: all notices of the call, also minor ones.

    `found["new", "nCG@3"]` is the mean of a system.
    """

    systems: Mapping[str, Scores]
    notes: tuple[str, ...] = ()

    @cached_property
    def values(self) -> pl.DataFrame:
        """A frame with system, replicate (the number of the run; null for a system of one run), query_id, measure and value."""
        frames: list[pl.DataFrame] = []
        for name, of in self.systems.items():
            missing = of.signature.get("missing", "zero")
            runs: Any = [(k, find_values(run, missing)) for k, run in enumerate(of.replicates, 1)]
            for number, values in runs or [(None, of.per_query)]:
                replicate = pl.lit(number, pl.Int64).alias("replicate")
                frames.append(values.select(pl.lit(name).alias("system"), replicate, "query_id", "measure", "value"))
        return pl.concat(frames)

    @property
    def by_group(self) -> pl.DataFrame | None:
        """A frame with system, group, measure, queries and value; None without groups."""
        found = {name: of.by_group for name, of in self.systems.items() if of.by_group is not None}
        return stack_systems(found) if found else None

    def __getitem__(self, key: tuple[str, Any]) -> float | None:
        if not (isinstance(key, tuple) and len(key) == 2):
            measures = [*next(iter(self.systems.values())).means]
            if key in self.systems:
                shown = f'["{key}", "{measures[0]}"], or .systems["{key}"] for all of its scores'
            else:
                shown = f'["{[*self.systems][-1]}", "{key}"]'
            raise InputError(f"{key!r}: give one of {self._listed}, and a measure: {shown}")
        system, measure = key
        if system not in self.systems:
            raise InputError(f"{system!r} is not one of the systems; they are {', '.join(self.systems)}")
        return self.systems[system][measure]

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("_") and (hasattr(Scores, name) or name in Scores.__dataclass_fields__):
            raise AttributeError(
                f"{name}: this object has scores of {self._listed}. Use .values, or .systems[{next(iter(self.systems))!r}].{name}"
            )
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

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
        rows = [[name, *(format_cell(of.means[name], 4) for of in self.systems.values())] for name in names]
        return [Table.of("Means over queries", ["measure", *self.systems], 1, rows)]

    def _repr_html_(self) -> str:
        return write_html(self.tables())

    def __repr__(self) -> str:
        (table,) = self.tables()
        rows = [table.header, *([cell.text for cell in row] for row in table.rows)]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = []
        for name, *values in rows:
            cells = [value.rjust(width) for value, width in zip(values, widths[1:], strict=True)]
            lines.append("  ".join([name.ljust(widths[0]), *cells]))
        return "\n".join(lines)
