"""Checks requirements such as `SRR@3<=0.3` or `SRE@3>=baseline-0.05 significant`: a gate for continuous integration."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from goodgain.analysis.comparing.comparison_sentences import describe_line, explain_few_signs
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
from goodgain.measures.names import is_null_without_search, needs_results
from goodgain.measures.scores import Scores, leave_out_empty
from goodgain.options import spell
from goodgain.schema import SEARCHED
from goodgain.statistics.statistical_tests import (
    Matrix,
    Settings,
    correct_by_holm,
    count_least_queries,
    count_signs,
    lacks_signs,
    run_randomisation_test,
    run_t_test,
    subtract_without_residue,
)

if TYPE_CHECKING:
    from goodgain.analysis.comparing.comparison import Comparison


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
        p: the p-value of the difference from the bound; None if it does not exist. The test is usually the t-test if the bound is a
            number. If `requirement.is_tested_by_noise`, a one-sided test asks whether the baseline's noise explains the
            loss. For any other bound, the test is the randomisation test with Holm's correction.
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

    @property
    def leaves_out_most(self) -> bool:
        """Whether a system returned nothing in more than half of the queries, so that the requirement fails."""
        measure = self.requirement.measure
        if not isinstance(measure, str) and needs_results(measure):
            return self.left_out > self.queries
        return self.not_searched > self.queries

    def __str__(self) -> str:
        return f"{'holds' if self.holds else 'failed'}: {self.requirement.text}: {self.system} {self.describe()}"

    def describe(self) -> str:
        """Return the value, its distance from the bound, and the test, as text."""
        return describe_line(self)


def check_requirements(
    found: Comparison | Scores | Mapping[str, Scores],
    requirements: Iterable[Requirement | str],
    *,
    alpha: float = 0.05,
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
    requirements = [*requirements]
    if family not in (None, "holm"):
        raise InputError(f"{spell('family', family)}: give 'holm', or leave it out")
    if isinstance(found, (Scores, Mapping)):
        scores = {"the run": found} if isinstance(found, Scores) else found
        settings = _set_signs(Settings(alpha=alpha), len(requirements) * len(scores) if family else 1)
        checked = [_check_scores(name, of, line, settings) for line in requirements for name, of in scores.items()]
        return _decide(checked, alpha, family)
    made, shares = found.signature, dict(found.systems.select("system", "coverage").iter_rows())
    settings = Settings(made["seed"], made["resamples"], made["alpha"])
    outcomes = () if found.outcomes is None else found.outcomes.columns[2:]
    lines = [parse_requirement(line, rel=found.rel, outcomes=outcomes) for line in requirements]
    tests_of = {line: _count_tests(line, lines, found, family) for line in lines}
    _refuse_lines(found, tests_of, settings)
    values = found.values
    if any(line.measure == SEARCHED for line in lines) and SEARCHED not in outcomes:
        values = pl.concat([values, tabulate_searched(found.scores).select(values.columns)])
    verdicts = {pair[:3]: pair[3] for pair in found.pairs.select("measure", "system", "against", "verdict").rows()}
    checked = [
        replace(one, verdict=verdicts.get((str(line.measure), one.system, found.baseline)))
        for line in lines
        for one in _check_line(
            line, values, shares, found.scores, found.baseline, _set_signs(settings, tests_of[line]), found.noise
        )
    ]
    return _decide(checked, settings.alpha, family)


def _count_tests(line: Requirement, lines: Sequence[Requirement], found: Comparison, family: str | None) -> int:
    """Return how many p-values Holm's method corrects together with that of a line."""
    systems = max(1, found.systems.height - 1)  # all but the baseline
    tested = [one for one in lines if one.significant or one.is_tested_by_noise]
    if family and line in tested:
        return systems * len(tested)
    return systems if line.bound is None else 1


def _set_signs(settings: Settings, tests: int) -> Settings:
    return settings._replace(resamples=count_signs(settings, tests))


def _refuse_lines(found: Comparison, tests_of: Mapping[Requirement, int], settings: Settings) -> None:
    unranked = find_unranked(found.pairs).rows_by_key("measure", named=True)
    for line in tests_of:
        if str(line.measure) not in unranked:
            continue
        first = unranked[str(line.measure)][0]
        between = f"between {first['system']} and {first['against']}"
        raise InputError(
            f"{line.text!r}: {line.measure} is {first['verdict']} {between}. See the notes, or leave out the requirement."
        )
    for line, tests in tests_of.items():
        if not line.significant or line.bound is not None:
            continue
        if lacks_signs(settings, tests):
            told = explain_few_signs(settings, tests)
            raise InputError(f"{line.text!r} cannot fail: {told}, or leave out 'significant'.")
        of_line = found.pairs.filter(measure=str(line.measure), against=found.baseline)
        queries: int = of_line.get_column("queries").max() or 0  # type: ignore[assignment]  # counts
        least = count_least_queries(settings.alpha, tests)
        if 0 < queries < least:
            raise InputError(
                f"{line.text!r} cannot fail: on {count_queries(queries)} no difference can be significant at "
                f"{settings.alpha:g}. Give at least {least:,} queries, or leave out 'significant'."
            )


def _decide(checked: Sequence[Outcome], alpha: float, family: str | None) -> list[Outcome]:
    decided = list(checked)
    tested_together: dict[object, list[int]] = {}
    for k, one in enumerate(checked):
        line = one.requirement
        if family and (line.significant or line.is_tested_by_noise):
            tested_together.setdefault(family, []).append(k)
        elif one.baseline is not None and not line.is_tested_by_noise:
            tested_together.setdefault(id(line), []).append(k)
    for together in tested_together.values():
        p = np.array([checked[k].p for k in together], dtype=np.float64)
        for k, corrected in zip(together, correct_by_holm(p), strict=True):
            decided[k] = replace(checked[k], p=None if math.isnan(corrected) else float(corrected))
    for k, one in enumerate(decided):
        line, significant = one.requirement, one.p is not None and one.p <= alpha
        holds = one.value is not None and one.bound is not None and bool(passes(one.value, line.sign, one.bound))
        if one.value is not None and family and line.is_tested_by_noise and one.p is not None:
            holds = one.p > NOISE_LEVEL
        elif one.value is not None and line.significant:
            holds = holds or not significant
        decided[k] = replace(one, holds=holds and not one.leaves_out_most, significant=significant)
    return decided


def _check_scores(name: str, scores: Scores, asked: Requirement | str, settings: Settings) -> Outcome:
    line = parse_requirement(asked, rel=scores.rel)
    share = {name: scores.coverage.item(0, "coverage")}
    if line.measure == SEARCHED:
        (outcome,) = _check_line(line, tabulate_searched({name: scores}), share, {name: scores}, None, settings)
        return outcome
    measures = [one for one in (line.measure,) if not isinstance(one, str) and str(one) in scores.means]
    kept = leave_out_empty(scores, measures)
    values = kept.per_query.with_columns(system=pl.lit(name))
    (outcome,) = _check_line(line, values, share, {name: scores}, None, settings)
    shown = kept[line.measure]
    if outcome.value is not None and shown is not None and not is_equal(outcome.value, shown):
        raise InputError(
            f"{line.text!r}: {line.measure} is a sum over queries, and a requirement checks a mean. Leave out this requirement."
        )
    in_evaluate = scores.num_queries[str(measures[0])]
    if in_evaluate == outcome.queries:
        return outcome
    return replace(outcome, evaluated=scores[line.measure], counted_as_0=in_evaluate - outcome.queries)


def _check_line(
    line: Requirement,
    values: pl.DataFrame,
    shares: Mapping[str, float | None],
    scores: Mapping[str, Scores],
    baseline: str | None,
    settings: Settings,
    noise: pl.DataFrame | None = None,
) -> Iterator[Outcome]:
    name = str(line.measure)
    of_measure = values.filter(measure=name)
    if of_measure.is_empty():
        raise InputError(f"{line.text!r}: {line.measure} was not computed. Add it to the measures.")
    if line.bound is None and baseline is None:
        raise InputError(f"{line.text!r} needs a baseline. Compare two systems, and name one with {spell('baseline')}.")
    query_ids = of_measure.get_column("query_id").unique().sort()
    matrix = arrange_values(of_measure, [name], [*shares], query_ids)[name]
    not_searched = ~mark_searched(query_ids, {system: scores[system] for system in shares})
    may_lack = not isinstance(line.measure, str) and is_null_without_search(line.measure)
    numbers = {system: k for k, system in enumerate(shares)}
    low = {system for system, share in shares.items() if share is not None and share < LOW_COVERAGE}
    if line.measure == SEARCHED:  # labels have no effect on it
        low = set()
    is_outcome = isinstance(line.measure, str)  # an agent can solve a task without a search
    found_nothing = {system for system, share in shares.items() if share is None and not is_outcome}
    other = baseline if line.bound is None else None
    for system in (one for one in shares if one != baseline):
        pair = numbers[system], numbers[other or system]
        tested, others = match_pair(matrix, pair)
        (mean,), queries = average_rows([tested]), len(tested)
        of_baseline = None if other is None else average_rows([others])[0]
        bound = of_baseline * line.factor + line.offset if of_baseline is not None else float(line.bound or 0)
        bounds = np.full(queries, bound) if other is None else others * line.factor + line.offset
        has_noise = line.noise != 0 and other is not None and queries > 0
        floor = _find_floor(line, noise, system, other) if has_noise else 0.0
        differences = subtract_without_residue(tested[None, :], (bounds + line.noise * floor)[None, :])
        p = _run_test(differences, settings, other is None)
        compared = {system, other or system}
        has_value = queries > 0 and found_nothing.isdisjoint(compared)
        value, known = (mean, bound + line.noise * floor) if has_value else (None, None)
        if has_noise and of_baseline is not None and line.is_tested_by_noise:
            loss = 0.0 if is_equal(mean, of_baseline) else (of_baseline - mean) * -line.noise
            p = compute_noise_p(loss, floor)
        p_or_none, doubtful = None if math.isnan(p) else p, not low.isdisjoint(compared)
        is_left_out = ~np.isfinite(matrix[[*pair]]).all(axis=0)
        of_no_search = int((is_left_out & not_searched[[*pair]].any(axis=0)).sum()) if may_lack else 0
        counts = (queries, len(query_ids) - queries)
        yield Outcome(
            line,
            system,
            value,
            of_baseline,
            known,
            False,
            p_or_none,
            False,
            doubtful,
            *counts,
            not_searched=of_no_search,
        )


def _find_floor(line: Requirement, noise: pl.DataFrame | None, system: str, baseline: str | None) -> float:
    found = None if noise is None else noise.filter(measure=str(line.measure), system=system, against=baseline)
    if found is None or found.is_empty():
        raise InputError(
            f"{line.text!r} needs the noise of {baseline}: at least {LEAST_QUERIES} queries with two or more runs. "
            f"Give the runs together: {baseline}=a.run,b.run"
        )
    return float(found.item(0, "floor"))


def _run_test(differences: Matrix, settings: Settings, is_number: bool) -> float:
    queries = differences.shape[1]
    p = float(run_t_test(differences)[0]) if is_number and queries else math.nan
    if math.isnan(p) and queries > (1 if is_number else 0):  # also if all queries differ equally from the number
        p = float(run_randomisation_test(differences, seed=settings.seed, resamples=settings.resamples)[0])
    return p
