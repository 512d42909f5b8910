"""Checks requirements such as `SRR@3<=0.3` or `SRE@3>=baseline-0.05 significant`: a gate for continuous integration."""

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from goodgain.analysis.comparing.comparison import Comparison
from goodgain.analysis.comparing.comparison_notes import explain_few_signs
from goodgain.analysis.comparing.lost_queries import tabulate_searched
from goodgain.analysis.comparing.pairs_table import (
    arrange_values,
    average_rows,
    find_unranked,
    mark_searched,
    match_pair,
)
from goodgain.analysis.comparing.rendering import count_queries
from goodgain.analysis.comparing.replicates import LEAST_QUERIES, NOISE_LEVEL, compute_noise_p
from goodgain.analysis.comparing.required_lines import Requirement, is_equal, parse_requirement, passes
from goodgain.counting.coverage import LOW_COVERAGE
from goodgain.errors import InputError
from goodgain.measures.changed_scores import leave_out_empty
from goodgain.measures.names import NO_SEARCH, NO_VALUE, describe_lack, is_null_without_search, needs_results
from goodgain.measures.scores import Scores
from goodgain.options import ALPHA, spell
from goodgain.schema import SEARCHED
from goodgain.statistics.randomisation_test import run_randomisation_test
from goodgain.statistics.statistical_tests import (
    Matrix,
    Settings,
    correct_by_holm,
    count_least_queries,
    count_signs,
    lacks_signs,
    run_t_test,
    subtract_without_residue,
)

#: The names of the tests.
T_TEST, RANDOMISATION_TEST, NOISE_OF_RERUNS = "t-test", "randomisation test", "noise of reruns"


@dataclass(frozen=True)
class Outcome:
    """The outcome of one requirement for one system.

    Attributes:
        requirement: the requirement.
        system: the name of the system.
        value: the mean of the measure or outcome; None if no query has a value. The value of a measure is also None if the
            system or the named baseline returned no results in judged queries.
        baseline: the mean of the baseline; None if the requirement names no baseline, NaN if no query has a value.
        bound: the number that the mean was compared with; None if `value` is None.
        holds: whether the requirement holds; False without a value.
        p: the p-value of the difference from the bound; None if it does not exist. The test is the t-test if the bound is a number,
            or the randomisation test if all queries differ from the number by the same amount. If
            `requirement.is_tested_by_noise`, a one-sided test asks whether the baseline's noise explains the loss. For any
            other bound, the test is the randomisation test with Holm's correction.
        significant: p <= alpha.
        low_coverage: whether too few results are judged to trust a small difference.
        queries: the number of tested queries. In each of them the system has a value, and so has the baseline if there is one.
        left_out: the number of queries that were not tested.
        verdict: the verdict of `Comparison.pairs` on the system against the baseline; None without a baseline.
        evaluated: the mean that `evaluate` prints, if left-out queries count as 0 in this mean. None if `evaluate` leaves out the
            same queries, or if the requirement was checked on a `Comparison`.
        counted_as_0: the number of left-out queries that count as 0 in `evaluated`.
        not_searched: the number of left-out queries that the system or the baseline did not search, if the measure has no
            value for such queries.
        test: the name of the test that gives `p`.
    """

    requirement: Requirement
    system: str
    value: float | None
    baseline: float | None
    bound: float | None
    holds: bool
    p: float | None
    significant: bool
    low_coverage: bool
    queries: int
    left_out: int
    verdict: str | None = None
    evaluated: float | None = None
    counted_as_0: int = 0
    not_searched: int = 0
    test: str = RANDOMISATION_TEST

    @property
    def leaves_out_most(self) -> bool:
        """Whether a system returned nothing in more than half of the queries, so that the requirement fails."""
        measure = self.requirement.measure
        if not isinstance(measure, str) and needs_results(measure):
            return self.left_out > self.queries
        return self.not_searched > self.queries

    def __str__(self) -> str:
        result = "holds" if self.holds else "failed"
        return f"{result}: {self.requirement.text}: {self.system} {self.describe()}"

    def describe(self) -> str:
        """Return the value, its distance from the bound, the test, and the queries left out, as text."""
        if self.value is None or self.bound is None:
            return (
                "has no value: a system returned no result of a judged query, or no query has a value in every system"
            )
        text = f"has {self.value:.4f}, {self._describe_distance(self.value, self.bound)}; {self._describe_test()}"
        if self.left_out:
            text += f"; {self._describe_left_out()}"
        is_compared_with_bound = self.bound != self.baseline and self.verdict in ("better", "unclear", "equal")
        if not self.holds and is_compared_with_bound:
            text += (
                f"; the table says {self.verdict}, because it compares with the baseline, and the line with its bound"
            )
        return text

    def _describe_distance(self, value: float, bound: float) -> str:
        if self.baseline is None:
            name = "the bound"
        elif bound == self.baseline:
            name = f"the baseline {self.baseline:.4f}"
        else:
            name = f"the bound {bound:.4f} (baseline {self.baseline:.4f})"
        if is_equal(value, bound):
            return f"equal to {name}"
        side = "above" if value > bound else "below"
        return f"{abs(value - bound):.4g} {side} {name}"

    def _describe_test(self) -> str:
        basis = "p does not exist" if self.p is None else f"{self.test}, p = {self.p:.4g}"
        if self.low_coverage:
            basis += ", low coverage"
        significance = "significant" if self.significant else "not significant"
        return f"{significance} ({basis})"

    def _describe_left_out(self) -> str:
        reason = describe_lack(self.requirement.measure)
        if reason == NO_VALUE and self.not_searched:
            reason = NO_SEARCH
            if self.not_searched < self.left_out:
                reason += f" ({self.not_searched:,} of these), or has no value"
        text = f"{self.left_out:,} of {count_queries(self.queries + self.left_out)} left out because {reason}"
        if self.leaves_out_most:
            text += ": more than half, so the line fails"
        if self.evaluated is not None:
            queries = "these" if self.counted_as_0 == self.left_out else f"{self.counted_as_0:,} of these"
            text += f"; with 0 for {queries} the mean is {self.evaluated:.4f}, as evaluate prints it"
        return text


def check_requirements(
    found: Comparison | Scores | Mapping[str, Scores],
    requirements: Iterable[Requirement | str],
    *,
    alpha: float = ALPHA,
    family: str | None = None,
) -> list[Outcome]:
    """Check every requirement for every system except the baseline.

    Args:
        found: a comparison, the scores of one system, or a dict from systems to scores. Only a comparison can have a baseline.
        requirements: texts such as `SRR@3<=0.3`, or results of `parse_requirement`. Texts are read with the `rel` and the
            outcomes of `found`.
        alpha: the largest significant p. A comparison keeps the alpha that it was made with.
        family: `holm` corrects p over all requirements that a test decides (`significant`, `noise`). At alpha .05, the
            probability that any of them fails by chance is then at most 5 %. With None, the p against a baseline is usually
            corrected over the systems of each requirement.

    Raises:
        InputError: a requirement needs a baseline and there is none, its measure was not computed, or a requirement with
            `significant` cannot fail because there are too few queries.

    >>> import goodgain as gg
    >>> print(*check_requirements(gg.evaluate({"q": {"a": 3}}, {"q": {"a": 1.0}}, "RR"), ["RR>=0.5"]))
    holds: RR>=0.5: the run has 1.0000, 0.5 above the bound; not significant (p does not exist)
    """
    lines = [*requirements]
    if family not in (None, "holm"):
        raise InputError(f"{spell('family', family)}: give 'holm', or leave it out")
    if isinstance(found, Comparison):
        return _check_comparison(found, lines, family)

    scores = {"the run": found} if isinstance(found, Scores) else found
    tests = len(lines) * len(scores) if family else 1
    settings = _set_signs(Settings(alpha=alpha), tests)
    outcomes = []
    for line in lines:
        for system, scores_of_system in scores.items():
            parsed = parse_requirement(line, rel=scores_of_system.rel)
            outcomes.append(_check_scores(system, scores_of_system, parsed, settings))
    return _decide(outcomes, alpha, family)


def _check_comparison(
    comparison: Comparison, requirements: Sequence[Requirement | str], family: str | None
) -> list[Outcome]:
    """Check requirements on a comparison; those that name the baseline need its tests."""
    signature = comparison.signature
    settings = Settings(signature["seed"], signature["resamples"], signature["alpha"])
    outcomes_of_queries = () if comparison.outcomes is None else comparison.outcomes.columns[2:]
    lines = [parse_requirement(line, rel=comparison.rel, outcomes=outcomes_of_queries) for line in requirements]
    tests_of = {line: _count_tests(line, lines, comparison, family) for line in lines}
    _refuse_lines(comparison, tests_of, settings)

    values = comparison.values
    if any(line.measure == SEARCHED for line in lines) and SEARCHED not in outcomes_of_queries:
        values = pl.concat([values, tabulate_searched(comparison.scores).select(values.columns)])
    shares = dict(comparison.systems.select("system", "coverage").iter_rows())
    pairs = comparison.pairs.select("measure", "system", "against", "verdict").iter_rows()
    verdicts = {(measure, system, against): verdict for measure, system, against, verdict in pairs}

    outcomes = []
    for line in lines:
        of_line = _LineCheck(line, values, shares, comparison.scores, comparison.baseline, comparison.noise)
        for outcome in of_line.check_systems(_set_signs(settings, tests_of[line])):
            verdict = verdicts.get((str(line.measure), outcome.system, comparison.baseline))
            outcomes.append(replace(outcome, verdict=verdict))
    return _decide(outcomes, settings.alpha, family)


def _count_tests(line: Requirement, lines: Sequence[Requirement], comparison: Comparison, family: str | None) -> int:
    """Return how many p-values Holm's method corrects together with that of a line."""
    systems = max(1, comparison.systems.height - 1)  # all but the baseline
    tested = [each for each in lines if each.significant or each.is_tested_by_noise]
    if family and line in tested:
        return systems * len(tested)
    return systems if line.bound is None else 1


def _set_signs(settings: Settings, tests: int) -> Settings:
    return settings._replace(resamples=count_signs(settings, tests))


def _refuse_lines(comparison: Comparison, tests_of: Mapping[Requirement, int], settings: Settings) -> None:
    """Raise `InputError` if a measure cannot be compared, or if a line with `significant` cannot fail."""
    unranked = find_unranked(comparison.pairs).rows_by_key("measure", named=True)
    for line in tests_of:
        if str(line.measure) in unranked:
            pair = unranked[str(line.measure)][0]
            between = f"between {pair['system']} and {pair['against']}"
            raise InputError(
                f"{line.text!r}: {line.measure} is {pair['verdict']} {between}. See the notes, or leave out the requirement."
            )

    for line, tests in tests_of.items():
        if not line.significant or line.bound is not None or comparison.baseline is None:
            continue
        if lacks_signs(settings, tests):
            reason = explain_few_signs(settings, tests)
            raise InputError(f"{line.text!r} cannot fail: {reason}, or leave out 'significant'.")
        pairs = comparison.pairs.filter(measure=str(line.measure), against=comparison.baseline)
        queries: int = pairs.get_column("queries").max() or 0  # type: ignore[assignment]  # counts
        least = count_least_queries(settings.alpha, tests)
        if 0 < queries < least:
            raise InputError(
                f"{line.text!r} cannot fail: on {count_queries(queries)} no difference can be significant at "
                f"{settings.alpha:g}. Give at least {least:,} queries, or leave out 'significant'."
            )


def _decide(outcomes: Sequence[Outcome], alpha: float, family: str | None) -> list[Outcome]:
    """Correct the p-values of each group of `_group_tests` by Holm's method, and decide which requirements hold.

    Outcomes in no group keep their p.
    """
    corrected = list(outcomes)
    for positions in _group_tests(outcomes, family):
        p_values = np.array([outcomes[k].p for k in positions], dtype=np.float64)
        for k, p in zip(positions, correct_by_holm(p_values), strict=True):
            corrected[k] = replace(outcomes[k], p=_drop_nan(float(p)))
    decided = [_decide_outcome(outcome, alpha, family) for outcome in corrected]
    _refuse_single_queries(decided)
    return decided


def _refuse_single_queries(outcomes: Iterable[Outcome]) -> None:
    """Raise `InputError` for a line with `significant` that holds only because one query has no p against a number."""
    for outcome in outcomes:
        line = outcome.requirement
        if line.significant and line.bound is not None and outcome.queries == 1 and outcome.holds:
            raise InputError(
                f"{line.text!r} cannot fail: {outcome.system} has a value in one query, and one query cannot show significance. "
                "Give more queries, or leave out 'significant'."
            )


def _group_tests(outcomes: Sequence[Outcome], family: str | None) -> Collection[list[int]]:
    """Return the positions of the outcomes whose p-values Holm's method corrects together."""
    groups: dict[object, list[int]] = {}
    for k, outcome in enumerate(outcomes):
        line = outcome.requirement
        if family and (line.significant or line.is_tested_by_noise):
            groups.setdefault(family, []).append(k)
        elif outcome.baseline is not None and not line.is_tested_by_noise:
            groups.setdefault(id(line), []).append(k)
    return groups.values()


def _decide_outcome(outcome: Outcome, alpha: float, family: str | None) -> Outcome:
    """Set `holds` and `significant` from the corrected p. `family` is the correction, as in `check_requirements`."""
    requirement = outcome.requirement
    is_significant = outcome.p is not None and outcome.p <= alpha

    holds = False
    if outcome.value is not None:
        if outcome.bound is not None:
            holds = bool(passes(outcome.value, requirement.sign, outcome.bound))

        if family and requirement.is_tested_by_noise and outcome.p is not None:
            # the bound allows for the noise of one comparison: with a family, the corrected p decides
            holds = outcome.p > NOISE_LEVEL
        elif requirement.significant and not is_significant:
            holds = True  # such a requirement fails only by a significant difference
    return replace(outcome, holds=holds and not outcome.leaves_out_most, significant=is_significant)


def _check_scores(system: str, scores: Scores, line: Requirement, settings: Settings) -> Outcome:
    """Check a requirement on the scores of one system. The requirement has a number as its bound."""
    shares = {system: scores.coverage.item(0, "coverage")}
    if line.measure == SEARCHED:
        with_search = tabulate_searched({system: scores})
        (outcome,) = _LineCheck(line, with_search, shares, {system: scores}).check_systems(settings)
        return outcome

    measures = []
    if not isinstance(line.measure, str) and str(line.measure) in scores.means:
        measures = [line.measure]
    with_results = leave_out_empty(scores, measures)
    values = with_results.per_query.with_columns(system=pl.lit(system))
    (outcome,) = _LineCheck(line, values, shares, {system: scores}).check_systems(settings)
    mean = with_results[line.measure]
    if outcome.value is not None and mean is not None and not is_equal(outcome.value, mean):
        raise InputError(
            f"{line.text!r}: {line.measure} is a sum over queries, and a requirement checks a mean. Leave out this requirement."
        )
    queries_of_evaluate = scores.num_queries[str(measures[0])]
    if queries_of_evaluate == outcome.queries:
        return outcome
    return replace(outcome, evaluated=scores[line.measure], counted_as_0=queries_of_evaluate - outcome.queries)


@dataclass(frozen=True)
class _LineCheck:
    """One requirement, and what it is checked on. `shares` has the judged share of each system's results."""

    line: Requirement
    values: pl.DataFrame
    shares: Mapping[str, float | None]
    scores: Mapping[str, Scores]
    baseline: str | None = None
    noise: pl.DataFrame | None = None

    def check_systems(self, settings: Settings) -> Iterator[Outcome]:
        """Yield the outcome of each system except the baseline, before Holm's correction. `_decide` sets what holds."""
        line = self.line
        name = str(line.measure)
        values = self.values.filter(measure=name)
        if values.is_empty():
            raise InputError(f"{line.text!r}: {line.measure} was not computed. Add it to the measures.")
        if line.bound is None and self.baseline is None:
            raise InputError(
                f"{line.text!r} needs a baseline. Compare two systems, and name one with {spell('baseline')}."
            )
        systems = list(self.shares)
        query_ids = values.get_column("query_id").unique().sort()
        matrix = arrange_values(values, [name], systems, query_ids)[name]  # a row per system, a column per query
        lacks_search = ~mark_searched(query_ids, {system: self.scores[system] for system in systems})

        opponent = self.baseline if line.bound is None else None
        for system in systems:
            if system == self.baseline:
                continue
            rows = [systems.index(system), systems.index(opponent or system)]
            outcome = self._check_system(system, opponent, matrix[rows], settings)
            yield replace(outcome, not_searched=self._count_not_searched(matrix[rows], lacks_search[rows]))

    def _check_system(self, system: str, opponent: str | None, matrix: Matrix, settings: Settings) -> Outcome:
        """Check a system against a number or, if `opponent` is not None, against another system.

        `matrix` has a column per query and two rows: the system, and the opponent (or the system once more).
        """
        line = self.line
        values, values_of_opponent = match_pair(matrix, (0, 1))
        queries = len(values)
        (mean,) = average_rows([values])
        has_noise = line.noise != 0 and opponent is not None and queries > 0
        floor = self._find_floor(system, opponent) if has_noise else 0.0

        if opponent is None:
            mean_of_opponent = None
            bound = float(line.bound or 0)
            bounds = np.full(queries, bound)  # of each query
        else:
            (mean_of_opponent,) = average_rows([values_of_opponent])
            bound = mean_of_opponent * line.factor + line.offset
            bounds = values_of_opponent * line.factor + line.offset
        if has_noise and mean_of_opponent is not None and line.is_tested_by_noise:
            loss = 0.0  # above 0 if the system is worse
            if not is_equal(mean, mean_of_opponent):
                loss = (mean_of_opponent - mean) * -line.noise
            p = compute_noise_p(loss, floor)
            test = NOISE_OF_RERUNS
        else:
            bounds_with_noise = bounds + line.noise * floor
            differences = subtract_without_residue(values[None, :], bounds_with_noise[None, :])
            p, test = _run_test(differences, settings, is_number=opponent is None)

        compared = {system, opponent or system}
        has_value = queries > 0 and compared.isdisjoint(self._find_systems_without_results())
        return Outcome(
            requirement=line,
            system=system,
            value=mean if has_value else None,
            baseline=mean_of_opponent,
            bound=bound + line.noise * floor if has_value else None,
            holds=False,
            p=_drop_nan(p),
            significant=False,
            low_coverage=not compared.isdisjoint(self._find_systems_with_low_coverage()),
            queries=queries,
            left_out=matrix.shape[1] - queries,
            test=test,
        )

    def _count_not_searched(self, matrix: Matrix, lacks_search: NDArray[np.bool_]) -> int:
        """Count the left-out queries that one of the compared systems did not search. Both arguments have a row per system."""
        if isinstance(self.line.measure, str) or not is_null_without_search(self.line.measure):
            return 0
        is_left_out = ~np.isfinite(matrix).all(axis=0)
        return int((is_left_out & lacks_search.any(axis=0)).sum())

    def _find_systems_without_results(self) -> set[str]:
        if isinstance(self.line.measure, str):  # an agent can solve a task without a search
            return set()
        return {system for system, share in self.shares.items() if share is None}

    def _find_systems_with_low_coverage(self) -> set[str]:
        if self.line.measure == SEARCHED:  # labels have no effect on it
            return set()
        return {system for system, share in self.shares.items() if share is not None and share < LOW_COVERAGE}

    def _find_floor(self, system: str, baseline: str | None) -> float:
        """Return the noise floor of the baseline. Raise `InputError` if it has too few queries with several runs."""
        rows = pl.DataFrame()
        if self.noise is not None:
            name = str(self.line.measure)
            rows = self.noise.filter(measure=name, system=system, against=baseline)
        if rows.is_empty():
            raise InputError(
                f"{self.line.text!r} needs the noise of {baseline}: at least {LEAST_QUERIES} queries with two or more runs. "
                f"Give the runs together: {baseline}=a.run,b.run"
            )
        return float(rows.item(0, "floor"))


def _drop_nan(p: float) -> float | None:
    return None if math.isnan(p) else p


def _run_test(differences: Matrix, settings: Settings, *, is_number: bool) -> tuple[float, str]:
    """Return the p-value of one row of differences, and the name of the test.

    If the bound is a number, the t-test comes first. It has no p if all queries differ from the number by the same amount.
    """
    queries = differences.shape[1]
    if is_number and queries:
        p = float(run_t_test(differences)[0])
        if not math.isnan(p):
            return p, T_TEST

    least = 2 if is_number else 1
    if queries < least:
        return math.nan, RANDOMISATION_TEST
    p = float(run_randomisation_test(differences, seed=settings.seed, resamples=settings.resamples)[0])
    return p, RANDOMISATION_TEST
