"""The values of a comparison as matrices, and the tables that are computed from them when a user asks for them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import polars as pl

from goodgain.comparing.outcomes import correlate
from goodgain.comparing.pairs_table import Pairs, compare_pairs, decide
from goodgain.comparing.replicate_tables import Runs, arrange_runs, tabulate_flips, tabulate_noise
from goodgain.comparing.required_lines import Requirement
from goodgain.comparing.statistical_tests import Matrix, Settings
from goodgain.measures.scores import Scores


@dataclass(frozen=True, eq=False)
class ComparedValues:
    """One value for each measure, system and query.

    Attributes:
        matrices: name of a measure or an outcome -> a row per system, a column per query; NaN where there is none.
        better: the same names -> the better direction.
        measures: the names of the measures.
        outcomes: the names of the outcomes.
        pairs: the positions of the systems to compare.
        query_ids: the queries, in the order of the columns.
        settings: those of the tests.
        need_results: the measures for which a system without results has no value.
        scores: system -> its scores.
        members: query_id and group; None without groups.
        lines: the requirements whose flips are counted. pass_k: k of `flips`.
    """

    matrices: Mapping[str, Matrix]
    better: Mapping[str, str | None]
    measures: Sequence[str]
    outcomes: Sequence[str]
    pairs: Pairs
    query_ids: pl.Series
    settings: Settings
    need_results: Collection[str]
    scores: Mapping[str, Scores]
    members: pl.DataFrame | None
    lines: Sequence[Requirement]
    pass_k: int | None

    @property
    def systems(self) -> list[str]:
        return [*self.scores]

    @cached_property
    def runs(self) -> Runs:
        """System -> measure -> a row per run, a column per query."""
        return {name: arrange_runs(of, self.measures, self.query_ids) for name, of in self.scores.items()}

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
        if not self.outcomes:
            return None
        return correlate(self.matrices, self.outcomes, self.measures, self.systems, self.settings)

    def tabulate_flips(self) -> pl.DataFrame:
        return tabulate_flips(self.runs, self.lines, self.pass_k)

    def tabulate_noise(self, pairs: pl.DataFrame) -> pl.DataFrame:
        return tabulate_noise(self.runs, pairs, self.matrices)

    def _test(self, matrices: Mapping[str, Matrix]) -> pl.DataFrame:
        return compare_pairs(matrices, self.better, self.systems, self.pairs, self.settings)

    def _decide(self, tested: pl.DataFrame) -> pl.DataFrame:
        return decide(tested, self.settings.alpha, need_results=self.need_results)
