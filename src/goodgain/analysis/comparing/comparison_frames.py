"""The frames of a comparison: those computed with the comparison, and those derived from them when they are first read."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from goodgain.analysis.comparing.comparison_question import Question
from goodgain.analysis.comparing.corrections import subtract_systems
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
from goodgain.statistics.joint_tests import compute_chance_of_decision
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
    def chance_of_decision(self) -> float:
        """The chance that a pair of equal systems differs significantly in at least one measure, with Holm's correction."""
        question = self.question
        tested = self.pairs.drop_nulls("p_randomisation")
        differences = subtract_systems(tested, question.systems, {None: self.matrices})
        settings = question.settings
        return compute_chance_of_decision(
            differences,
            tested.select(pl.len().over("measure")).to_series().to_list(),
            alpha=settings.alpha,
            seed=settings.seed,
            resamples=question.count_signs(),
        )

    @cached_property
    def groups(self) -> pl.DataFrame | None:
        if self.members is None:
            return None
        groups = self.members.partition_by("group", as_dict=True, maintain_order=True)
        nothing = self.question.find_nothing(self.query_ids, self.scores)

        matrices_of, nothing_of = {}, {}
        for (group,), members in groups.items():
            is_member = self.query_ids.is_in(members.get_column("query_id").implode()).to_numpy()
            # a value of a query outside the group counts as no value
            values = {measure: np.where(is_member, matrix, np.nan) for measure, matrix in self.matrices.items()}
            matrices_of[group] = self.question.select_queries_of_test(values)
            nothing_of[group] = nothing._replace(searched=nothing.searched & is_member)
        decided = self.question.decide(matrices_of, nothing_of, self.scores)
        return self.question.add_intervals(decided, matrices_of, self.largest_label)

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
        detect = self.question.detect
        return tabulate_detectable(self.question, self.pairs, self.matrices, self.replicates, detect)
