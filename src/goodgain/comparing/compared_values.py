"""The values of a comparison as matrices, and the tables that are computed from them when a user asks for them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import polars as pl

from goodgain.comparing.comparison_question import Question
from goodgain.comparing.outcomes import correlate
from goodgain.comparing.pairs_table import compare_pairs, decide
from goodgain.comparing.replicate_tables import Runs, arrange_runs, tabulate_flips, tabulate_noise
from goodgain.comparing.statistical_tests import Matrix
from goodgain.measures.names import needs_results
from goodgain.measures.scores import Scores


@dataclass(frozen=True, eq=False)
class ComparedValues:
    """One value for each measure, system and query.

    Attributes:
        question: what is compared, and how.
        matrices: name of a measure or an outcome -> a row per system, a column per query; NaN where there is none.
        better: the same names -> the better direction.
        query_ids: the queries, in the order of the columns.
        scores: system -> its scores.
        members: query_id and group; None without groups.
    """

    question: Question
    matrices: Mapping[str, Matrix]
    better: Mapping[str, str | None]
    query_ids: pl.Series
    scores: Mapping[str, Scores]
    members: pl.DataFrame | None

    @cached_property
    def runs(self) -> Runs:
        """System -> measure -> a row per run, a column per query."""
        measures = [*map(str, self.question.asked)]
        return {name: arrange_runs(of, measures, self.query_ids) for name, of in self.scores.items()}

    def test(self) -> pl.DataFrame:
        """Return the columns of `Comparison.pairs` up to significant."""
        return self._decide(self._test(self.matrices))

    def test_groups(self) -> pl.DataFrame | None:
        """Return `Comparison.groups`: the pairs on the queries of each group."""
        if self.members is None:
            return None
        tables = []
        for (group,), of in self.members.group_by("group", maintain_order=True):
            is_member = self.query_ids.is_in(of.get_column("query_id").implode()).to_numpy()
            tested = self._test({name: matrix[:, is_member] for name, matrix in self.matrices.items()})
            tables.append(tested.select(pl.lit(group).alias("group"), pl.all()))
        return self._decide(pl.concat(tables))

    def correlate(self) -> pl.DataFrame | None:
        """Return `Comparison.correlations`; None without outcomes."""
        measures = [*map(str, self.question.asked)]
        outcomes = [name for name in self.matrices if name not in measures]
        if not outcomes:
            return None
        return correlate(self.matrices, outcomes, measures, [*self.scores], self.question.settings)

    def tabulate_flips(self) -> pl.DataFrame:
        return tabulate_flips(self.runs, self.question.lines, self.question.pass_k)

    def tabulate_noise(self, pairs: pl.DataFrame) -> pl.DataFrame:
        return tabulate_noise(self.runs, pairs, self.matrices)

    def _test(self, matrices: Mapping[str, Matrix]) -> pl.DataFrame:
        return compare_pairs(matrices, self.better, [*self.scores], self.question.pairs, self.question.settings)

    def _decide(self, tested: pl.DataFrame) -> pl.DataFrame:
        need_results = [str(measure) for measure in self.question.asked if needs_results(measure)]
        return decide(tested, self.question.settings.alpha, need_results=need_results)
