"""The frames of a comparison: those computed with the comparison, and those derived from them when they are first read."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import polars as pl

from goodgain.analysis.comparing.comparison_question import Question
from goodgain.analysis.comparing.outcomes import correlate
from goodgain.analysis.comparing.pairs_table import add_intervals_of_means
from goodgain.analysis.comparing.replicate_tables import (
    Runs,
    tabulate_detectable,
    tabulate_flips,
    tabulate_noise,
    tabulate_replicates,
)
from goodgain.analysis.comparing.shared_results import SharedResults
from goodgain.measures.scores import Scores
from goodgain.statistics.statistical_tests import Matrix


@dataclass(frozen=True, eq=False, repr=False)
class ComparisonFrames:
    """What a comparison computed. `Comparison` documents each attribute; sentences and tables are written from these frames."""

    systems: pl.DataFrame
    coverage: pl.DataFrame
    means: pl.DataFrame
    pairs: pl.DataFrame
    values: pl.DataFrame
    baseline: str | None
    warnings: tuple[str, ...]
    signature: dict[str, Any]
    outcomes: pl.DataFrame | None
    scores: Mapping[str, Scores]
    question: Question
    matrices: Mapping[str, Matrix]
    runs: Runs
    query_ids: pl.Series
    members: pl.DataFrame | None
    rel: float | None = None
    largest_label: float = math.inf
    warnings_of_runs: tuple[str, ...] = ()
    broke_off: Mapping[str, int] = field(default_factory=dict)
    shared: SharedResults | None = None
    next_step: str = ""

    @cached_property
    def means_with_intervals(self) -> tuple[pl.DataFrame, str]:
        """`means` with the columns `low` and `high`, and the method of the intervals: a value of `interval` in signatures."""
        question = self.question
        ranges = question.find_ranges(self.matrices, self.largest_label)
        return add_intervals_of_means(self.means, self.matrices, question.systems, ranges, question.settings)

    @cached_property
    def groups(self) -> pl.DataFrame | None:
        if self.members is None:
            return None
        groups = self.members.partition_by("group", as_dict=True, maintain_order=True)
        nothing = self.question.find_nothing(self.query_ids, self.scores)

        tables = []
        matrices_of = {}
        for (group,), members in groups.items():
            is_member = self.query_ids.is_in(members.get_column("query_id").implode()).to_numpy()
            matrices_of[group] = {measure: matrix[:, is_member] for measure, matrix in self.matrices.items()}
            tested = self.question.test(matrices_of[group], nothing.select_queries(is_member), groups=len(groups))
            tables.append(tested.select(pl.lit(group).alias("group"), pl.all()))
        decided = self.question.decide(pl.concat(tables), self.scores)
        return self.question.add_intervals_of_groups(decided, matrices_of)

    @cached_property
    def correlations(self) -> pl.DataFrame | None:
        if self.outcomes is None:
            return None
        outcomes = self.outcomes.columns[2:]
        measures = [str(measure) for measure in self.question.asked]
        return correlate(self.matrices, outcomes, measures, self.question.systems, self.question.settings)

    @cached_property
    def replicates(self) -> pl.DataFrame:
        return tabulate_replicates(self.runs, self.question.better)

    @cached_property
    def flips(self) -> pl.DataFrame:
        return tabulate_flips(self.runs, self.question.lines, self.question.pass_k)

    @cached_property
    def noise(self) -> pl.DataFrame:
        return tabulate_noise(self.pairs, self.runs, self.matrices, self.replicates)

    @cached_property
    def detectable(self) -> pl.DataFrame:
        return tabulate_detectable(self.question, self.pairs, self.matrices, self.replicates)
