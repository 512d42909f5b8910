"""The options of a comparison, such as measures, pairs and requirements, checked before any run is read."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import ir_measures
import numpy as np
import polars as pl

from goodgain.analysis.comparing.baseline_file import check_run, read_baseline
from goodgain.analysis.comparing.corrections import (
    Matrices,
    add_intervals,
    add_verdicts,
    clip_intervals,
    correct_by_randomised_tukey,
    correct_over_measures,
    correct_pairs_by_holm,
    leave_out_incomparable,
    select_shared_queries,
)
from goodgain.analysis.comparing.outcome_directions import find_direction_of_outcome
from goodgain.analysis.comparing.outcomes import (
    check_completed,
    count_as_empty,
    leave_out_completed,
    leave_out_ratio,
)
from goodgain.analysis.comparing.pairs_table import (
    Nothing,
    ScoredRun,
    compare_pairs,
    find_incomparable,
    mark_searched,
)
from goodgain.analysis.comparing.required_lines import BASELINE, Requirement, parse_requirement
from goodgain.counting.run_in_blocks import RunFile, read_whole
from goodgain.errors import InputError
from goodgain.formats import Qrels, Run
from goodgain.formats.query_tables import average_outcomes, read_outcomes_of_runs
from goodgain.measures.bounds import Range, find_contributions, find_largest_label, find_range
from goodgain.measures.changed_scores import leave_out_absent, leave_out_empty, leave_out_queries, set_to_null
from goodgain.measures.declaration import GoodGainMeasure, find_meaning
from goodgain.measures.names import (
    Measures,
    add_counts,
    find_direction,
    is_null_without_search,
    needs_results,
    parse_measures,
)
from goodgain.measures.parameters import is_number
from goodgain.measures.scores import Scores
from goodgain.options import ALPHA, OPTIONS, ORDER, RESAMPLES, SEED, check_whole_number, spell
from goodgain.schema import COMPLETED, SEARCHED
from goodgain.statistics.statistical_tests import (
    Matrix,
    Settings,
    check_settings,
    count_draws,
    count_signs,
)

#: Each interval of a pair needs all random signs. With more pairs there are so many signs that intervals take minutes.
MOST_PAIRS_WITH_INTERVALS = 1_000
#: Limit of `detect=`.
_LARGEST_DIFFERENCE = 1e9
#: Limit of `iterations=`, which makes a measure for each iteration.
_MOST_ITERATIONS = 1_000


@dataclass(frozen=True, kw_only=True, eq=False)
class Question:
    """The options of `compare`, and values derived from them. `runs_of` maps each system to the names of its runs."""

    measures: Measures
    runs_of: Mapping[str, Sequence[str]]
    rel: float | None = None
    baseline: str | None = None
    against: str | None = None
    iterations: int | Sequence[int] | None = None
    seed: int = SEED
    resamples: int = RESAMPLES
    alpha: float = ALPHA
    correction: str = "holm"
    correct_over: str = "pairs"
    order: str = ORDER
    provider: str | None = None
    bounds: bool = False
    groups: Any = None
    outcomes: Any = None
    baseline_file: Any = None
    missing: str = "zero"
    incomplete: str = "keep"
    no_good: str = "keep"
    require: Sequence[str | Requirement] = ()
    pass_k: int | None = None
    detect: float | None = None
    has_labels: bool = True
    with_searched: bool = False  # whether the share of the queries that searched is compared too

    def __post_init__(self) -> None:
        bounds, file = spell("bounds", True), spell("baseline_file")
        if self.baseline_file is not None:
            if self.bounds:
                raise InputError(f"{bounds} needs the run of every system. Leave out {file} or {bounds}.")
            if self.against is not None or self.baseline not in (None, BASELINE):
                raise InputError(f"{file} is the baseline. Leave out {spell('baseline')} and {spell('against')}.")
            if BASELINE in self.runs_of:
                raise InputError(f"a run and the system of {file} are both called {BASELINE}. Rename the run.")

        if self.bounds and any(len(names) > 1 for names in self.runs_of.values()):
            raise InputError(f"{bounds} needs one run of each system. Leave out {bounds}, or give one run each.")
        if self.incomplete != "keep":
            if self.bounds:
                incomplete = spell("incomplete", self.incomplete)
                raise InputError(f"{incomplete} and {bounds} cannot be combined. Leave out one of them.")
            check_completed(self.outcome_rows, self.incomplete)

        if self.detect is not None:
            is_difference = is_number(self.detect) and 0 < self.detect < _LARGEST_DIFFERENCE
            if not is_difference:
                raise InputError(f"{spell('detect', self.detect)}: give a difference above 0, such as 0.02")
        if self.correction == "tukey" and self.correct_over == "measures":
            options = f"{spell('correction', 'tukey')} and {spell('correct_over', 'measures')}"
            raise InputError(f"{options} are two corrections. Leave out one of them.")

        if self.pass_k is not None:
            check_whole_number("pass_k", self.pass_k, 1)
            has_repeats = any(len(names) > 1 for names in self.runs_of.values())
            if not has_repeats or all(line.bound is None for line in self.lines):
                needed = f"several runs of a system, and a requirement with a number, such as {spell('require', 'nCG@3>=0.5')}"
                raise InputError(f"{spell('pass_k', self.pass_k)} needs {needed}.")
        _ = self.pairs, self.settings, self.asked  # each checks the options that it reads

    @property
    def systems(self) -> list[str]:
        """The names of the systems; the baseline file comes first."""
        return list(self.runs_of) if self.baseline_file is None else [BASELINE, *self.runs_of]

    @property
    def base(self) -> str | None:
        return self.baseline if self.baseline_file is None else BASELINE

    @cached_property
    def pairs(self) -> list[tuple[int, int]]:
        """The pairs to compare: tuples (system, against) of positions in `systems`."""
        names, baseline, against = self.systems, self.base, self.against
        if baseline is not None and baseline not in names:
            raise InputError(f"baseline {baseline!r} is not one of the systems; they are {', '.join(names)}")
        if against not in (None, "previous"):
            otherwise = f"name a baseline for all systems with {spell('baseline')}"
            raise InputError(f"{spell('against', against)}: give 'previous', or {otherwise}")
        if against is not None and baseline is not None:
            options = f"{spell('against', 'previous')} and {spell('baseline', baseline)}"
            raise InputError(f"{options} name two systems to compare with; give one of them")

        places = range(len(names))
        if against is not None:
            return [(system, system - 1) for system in places[1:]]
        if baseline is not None:
            return [(system, names.index(baseline)) for system in places if names[system] != baseline]
        return [(system, earlier) for earlier in places for system in places[earlier + 1 :]]

    @cached_property
    def settings(self) -> Settings:
        return check_settings(self.seed, self.resamples, self.alpha)

    @cached_property
    def table(self) -> pl.DataFrame | None:
        """The outcomes to compare, averaged over runs: query_id, system, and a column per outcome; None for no outcome."""
        rows = self.outcome_rows
        if rows is None:
            return None
        if self.incomplete == "absent":  # queries that broke off
            rows = rows.filter(pl.col(COMPLETED).ne_missing(0))
        averaged = leave_out_ratio(average_outcomes(rows))
        if not self.has_labels:  # then `completed` is compared like other outcomes
            return averaged
        return leave_out_completed(averaged, self.require)

    @property
    def solved(self) -> list[str]:
        return [] if self.table is None else self.table.columns[2:]

    @property
    def shares(self) -> list[str]:
        """The names of what is compared beside measures and outcomes: `searched`, unless an outcome has this name."""
        is_free = SEARCHED not in self.solved
        return [SEARCHED] if self.with_searched and is_free else []

    @cached_property
    def outcome_rows(self) -> pl.DataFrame | None:
        """A frame with the columns query_id, system, replicate, and a column of numbers for each outcome."""
        return None if self.outcomes is None else read_outcomes_of_runs(self.outcomes)

    @cached_property
    def lines(self) -> list[Requirement]:
        """The requirements on measures; requirements on outcomes are left out."""
        lines = [parse_requirement(line, rel=self.rel, outcomes=self.solved) for line in self.require]
        return [line for line in lines if not isinstance(line.measure, str)]

    @cached_property
    def asked(self) -> list[ir_measures.Measure]:
        """The measures to compare, followed by the measures that requirements name."""
        of_lines = [line.measure for line in self.lines]
        measures = add_fixed_iterations(parse_measures(self.measures, rel=self.rel), self.iterations)
        return parse_measures([*measures, *of_lines])

    @cached_property
    def needed(self) -> list[ir_measures.Measure]:
        return add_counts(self.asked)

    @cached_property
    def better(self) -> dict[str, str | None]:
        directions = {str(measure): find_direction(measure) for measure in self.asked}
        return directions | {name: find_direction_of_outcome(name) for name in (*self.solved, *self.shares)}

    def find_ranges(self, matrices: Mapping[str, Matrix], largest_label: float) -> dict[str, Range]:
        """Return the values that each measure and outcome allows. An outcome of zeros and ones is a share."""
        ranges = {str(measure): find_range(measure, largest_label) for measure in self.asked}
        for name in (*self.solved, *self.shares):
            if name in matrices:
                values = matrices[name][np.isfinite(matrices[name])]
                is_0_or_1 = bool(np.isin(values, (0.0, 1.0)).all())
                ranges[name] = Range(is_0_or_1=is_0_or_1)
        return ranges

    def find_nothing(self, query_ids: pl.Series, scores: Mapping[str, Scores]) -> Nothing:
        """Return which systems searched each query, and which measures have no value without results or a search."""
        need_results = [str(measure) for measure in self.asked if needs_results(measure)]
        need_search = [str(measure) for measure in self.asked if is_null_without_search(measure)]
        return Nothing(need_results, need_search, mark_searched(query_ids, scores))

    @property
    def uses_holm(self) -> bool:
        return self.correction == "holm" and self.correct_over == "pairs"

    def count_signs(self, groups: int = 1) -> int:
        """Return the number of random signs of each test. Holm's method corrects over the pairs of all groups of queries."""
        if not self.uses_holm:  # p is not multiplied by the number of pairs
            return self.settings.resamples
        return count_signs(self.settings, groups * len(self.pairs))

    def sign_draws(self, groups: int, queries: int) -> dict[str, int | str]:
        """Return the numbers of random signs that differ from `resamples`, for the signature. A test of all signs is `exact`."""
        numbers = {"signs": self.count_signs()}
        if groups:
            numbers["signs_of_groups"] = self.count_signs(groups)
        signature: dict[str, int | str] = {}
        for name, number in numbers.items():
            is_exact = count_draws(queries, number) != number
            if number != self.settings.resamples:
                signature[name] = "exact" if is_exact else number
        return signature

    def sign_correction(self) -> dict[str, str]:
        options = {"correction": self.correction, "correct_over": self.correct_over}
        return {name: value for name, value in options.items() if value != OPTIONS[name].default}

    def select_queries_of_test(self, matrices: Mapping[str, Matrix]) -> Mapping[str, Matrix]:
        """Return the values that tests of pairs use. Tukey's test is over the queries in which all systems have values."""
        if self.correction != "tukey":
            return matrices
        return {name: select_shared_queries(values) for name, values in matrices.items()}

    def decide(
        self, matrices_of: Matrices, nothing_of: Mapping[str | None, Nothing], scores: Mapping[str, Scores]
    ) -> pl.DataFrame:
        """Test each pair of systems on each measure, in each group of queries, and add corrected p-values and verdicts.

        `matrices_of` and `nothing_of` have an entry for each group, or only the entry None for all queries. The matrix of a measure
        or an outcome has a row per system and a column per query. `nothing_of` tells who has no value because it returned nothing.
        """
        signs = self.count_signs(len(matrices_of))
        tables = []  # one row per (measure, pair)
        for group, matrices in matrices_of.items():
            nothing = nothing_of[group]
            pairs = compare_pairs(matrices, self.better, self.systems, self.pairs, self.settings, nothing, signs)
            if group is not None:
                pairs = pairs.select(pl.lit(group).alias("group"), pl.all())
            tables.append(pairs)

        named_pairs = [(self.systems[system], self.systems[against]) for system, against in self.pairs]
        incomparable = find_incomparable(self.asked, scores, named_pairs)
        pairs = leave_out_incomparable(pl.concat(tables), incomparable)  # their rows stay, without p-values

        corrected = correct_pairs_by_holm(pairs)  # has columns of its own, which another correction keeps
        if self.correct_over == "measures":
            corrected = correct_over_measures(corrected, self.systems, matrices_of, self.settings)
        elif self.correction == "tukey":
            corrected = correct_by_randomised_tukey(corrected, self.systems, matrices_of, self.settings)
        return add_verdicts(corrected, self.settings.alpha)

    def lacks_intervals(self, groups: int = 1) -> bool:
        """Return whether there are too many pairs for intervals. Only Holm's method needs more signs for more pairs."""
        return self.uses_holm and groups * len(self.pairs) > MOST_PAIRS_WITH_INTERVALS

    def add_intervals(self, pairs: pl.DataFrame, matrices_of: Matrices, largest_label: float) -> pl.DataFrame:
        """Add the interval of each decided pair, from the same draws as its test."""
        if self.lacks_intervals(len(matrices_of)):
            return pairs
        if self.uses_holm:
            signs = self.count_signs(len(matrices_of))
            return add_intervals(pairs, self.systems, matrices_of, self.settings, signs)
        return clip_intervals(pairs, self.find_ranges({}, largest_label))

    def read_baseline(self, qrels: Qrels) -> Scores | None:
        if self.baseline_file is None:
            return None
        options = {name: getattr(self, name) for name in ("order", "missing", "incomplete", "no_good")}
        return read_baseline(self.baseline_file, qrels, self.needed, **options)

    def finish_run(
        self,
        qrels: Qrels,
        run: Run | RunFile,
        scores: Scores,
        of_baseline_file: Scores | None,
        incomplete: pl.Series | None = None,
        empty: Scores | None = None,
    ) -> ScoredRun:
        """Apply `missing` and `bounds` to the scores of a run. Raise `InputError` if the run does not fit the baseline file.

        The scores in `empty`, if given, replace the scores of queries that broke off (`incomplete`).
        """
        if of_baseline_file is not None:
            check_run(self.baseline_file, of_baseline_file.signature, scores.signature, self.needed)
        if self.incomplete != "keep":
            scores = replace(scores, signature=scores.signature | {"incomplete": self.incomplete})
        if incomplete is not None and empty is not None:
            scores = count_as_empty(scores, empty, incomplete, self.needed)
        elif incomplete is not None and self.incomplete == "absent":
            scores = leave_out_queries(scores, incomplete, self.needed)
        if incomplete is not None:  # a query that broke off was cheap
            totals = [str(measure) for measure in self.needed if find_meaning(measure).total]
            scores = set_to_null(scores, dict.fromkeys(totals, incomplete), self.needed)

        scores = leave_out_empty(scores, self.asked)
        if self.missing == "absent":
            scores = leave_out_absent(scores, self.needed)
        if not self.bounds:
            return ScoredRun(scores, {})
        bounded = [measure for measure in self.needed if scores.bounds[str(measure)] is not None]
        label = find_largest_label(qrels.frame)
        contributions = find_contributions(qrels, read_whole(run), bounded, label=label, order=self.order)
        return ScoredRun(scores, contributions)


def add_fixed_iterations(
    measures: Iterable[ir_measures.Measure], iterations: int | Sequence[int] | None
) -> list[ir_measures.Measure]:
    """Add fixed iterations to measures without @.

    A number N adds the measure at the iterations 1..N. A list replaces the measure by the measure at each listed iteration.
    """
    if iterations is None:
        return list(measures)
    if isinstance(iterations, Sequence):
        numbers: Sequence[int] = [check_whole_number("iterations", number, 1) for number in iterations]
    else:
        numbers = range(1, check_whole_number("iterations", iterations, 1) + 1)
    if not 0 < len(numbers) <= _MOST_ITERATIONS:
        option = spell("iterations", iterations)
        raise InputError(f"{option}: give 1 to {_MOST_ITERATIONS:,} iterations, or name the cutoffs.")

    all_measures: list[ir_measures.Measure] = []
    for measure in measures:
        if isinstance(measure, GoodGainMeasure) and measure.cutoff is None and measure.declaration.cutoff == "optional":
            all_measures += [measure @ number for number in numbers]
            if isinstance(iterations, Sequence):
                continue
        all_measures.append(measure)
    return parse_measures(all_measures)
