"""Compares systems by their scores: builds matrices with a value per system and query, tests each pair, and gives notices."""

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from goodgain.analysis.comparing.comparison import Comparison
from goodgain.analysis.comparing.comparison_notes import (
    describe_absent,
    describe_few_signs,
    describe_incomparable,
    describe_lack_of_intervals,
    describe_left_out,
    describe_low_counts,
    describe_own_ideal,
    describe_replicates,
    describe_shared_queries,
    describe_stops,
    describe_unjudged_queries,
    describe_verdicts,
    describe_verdicts_on_no_good,
)
from goodgain.analysis.comparing.comparison_question import MOST_PAIRS_WITH_INTERVALS, Question
from goodgain.analysis.comparing.corrections import Matrices
from goodgain.analysis.comparing.judged_part import count_unjudged
from goodgain.analysis.comparing.lost_queries import count_broken_off, tabulate_searched
from goodgain.analysis.comparing.outcomes import check_outcomes, stack_outcomes
from goodgain.analysis.comparing.pairs_table import (
    ScoredRun,
    add_bounds,
    add_bounds_of_means,
    add_costs,
    arrange_values,
    mark_queries,
    mark_searched,
    tabulate_means,
    tabulate_systems,
)
from goodgain.analysis.comparing.replicate_tables import arrange_runs
from goodgain.analysis.comparing.required_lines import BASELINE
from goodgain.analysis.comparing.shared_results import SharedResults
from goodgain.counting.run_opening import stack_systems
from goodgain.errors import REASONS, GoodgainNotice, InputError, give, join_notices, notice
from goodgain.files.opening import read_lines, stem
from goodgain.formats.digest import digest_rows
from goodgain.formats.query_tables import read_groups
from goodgain.formats.run import Reading
from goodgain.measures.changed_scores import average_scores, leave_out_no_good, sign_reading
from goodgain.measures.declaration import GoodGainMeasure
from goodgain.measures.good_gain import NumIter
from goodgain.measures.scores import Scores
from goodgain.statistics.statistical_tests import Matrix, lacks_signs

_VALUES = ("query_id", "measure", "system", "value")
#: The name of an `.unread` file, and the ids of its queries: convert could not read them.
Unread = tuple[str, frozenset[str]]


def read_unread(source: Any) -> Unread:
    """Read the file `RUN.unread` or `all.unread` beside a run. Return its name and query ids; both are empty without a file.

    A notice names a file that is not a list of ids.
    """
    if not isinstance(source, (str, os.PathLike)):
        return "", frozenset()

    path = Path(source)
    name_of_all = path.name.replace(stem(path) or path.name, "all", 1)
    for name in (path.name, name_of_all):
        path_of_unread = path.with_name(f"{name}.unread")
        if not os.path.lexists(path_of_unread):
            continue
        reason = "is not a file"
        if path_of_unread.is_file():  # opening a pipe would wait for its writer
            try:
                ids = read_lines(path_of_unread).data.decode().split("\n")
                return path_of_unread.name, frozenset(filter(None, ids))
            except UnicodeDecodeError:
                reason = "is not UTF-8"
            except InputError as error:
                reason = f"cannot be read ({error})"

        notice(
            "unusable_unread_file",
            f"{path_of_unread}: {reason}, so the comparison does not say which queries convert could not read. "
            "Convert the log again.",
        )
    return "", frozenset()


def compare_scores(
    question: Question,
    query_ids: pl.Series,
    runs: Mapping[str, ScoredRun],
    of_baseline_file: Scores | None,
    notices_on_inputs: Sequence[GoodgainNotice],
    unread: Mapping[str, Unread],
    incomplete: Mapping[str, pl.Series],
    largest_label: float,
    without_good: Mapping[str, pl.Series],
    shared: SharedResults | None,
    next_step: str,
) -> Comparison:
    """Compare systems by their scores on the judged queries. `of_baseline_file` has the scores of the baseline file.

    `without_good` maps measures to the queries without a good document.
    """
    values_with_no_good = None
    if question.no_good == "absent":
        values_with_no_good = _stack_values_of_runs(question, runs, of_baseline_file, query_ids)
        runs, of_baseline_file = _leave_out_no_good(question, runs, of_baseline_file, without_good)
    scores_of_runs = {name: run.scores for name, run in runs.items()}
    scores = _average_runs(question, scores_of_runs, of_baseline_file, question.missing)
    few_shared = _describe_few_shared(question, scores)

    values, outcomes = _stack_values(question, scores, of_baseline_file, query_ids)
    names = [*map(str, question.needed), *question.solved, *question.shares]
    matrices = arrange_values(values, names, question.systems, query_ids)
    comparison = _build_comparison(question, query_ids, runs, scores, values, outcomes, matrices, largest_label)
    broke_off = count_broken_off(incomplete, question.runs_of)
    comparison = replace(comparison, broke_off=broke_off, shared=shared, next_step=next_step)

    notices = [
        *_list_reasons(comparison, notices_on_inputs),
        *_list_absent(comparison, scores_of_runs, of_baseline_file, unread),
        *(notice for notice in notices_on_inputs if notice.kind not in REASONS),
        *few_shared,
        *_list_verdicts_on_no_good(comparison, without_good, values_with_no_good),
        *_list_misleading(comparison, matrices, incomplete, without_good),
    ]
    return _give_notices(comparison, notices)


def _build_comparison(
    question: Question,
    query_ids: pl.Series,
    runs: Mapping[str, ScoredRun],
    scores: Mapping[str, Scores],
    values: pl.DataFrame,
    outcomes: pl.DataFrame | None,
    matrices: Mapping[str, Matrix],
    largest_label: float,
) -> Comparison:
    """Return the comparison, without notices. `values` and `matrices` also have counts such as NumIter, which are not tested."""
    names_of_outcomes = check_outcomes({name: matrices[name] for name in question.solved})
    measures = [str(measure) for measure in question.asked]
    tested = {name: matrices[name] for name in [*measures, *names_of_outcomes, *question.shares]}
    values_tested = values.filter(pl.col("measure").is_in([*tested]))
    members = None if question.groups is None else read_groups(question.groups, query_ids)

    systems = tabulate_systems(scores, matrices)
    means = tabulate_means(tested, question.better, question.systems)
    pairs = add_costs(_test_pairs(question, tested, query_ids, scores, largest_label), systems)
    if question.bounds:
        means = add_bounds_of_means(means, runs)
        pairs = add_bounds(pairs, question.asked, runs)

    return Comparison(
        systems=systems,
        coverage=stack_systems({name: of_system.coverage for name, of_system in scores.items()}),
        means=means,
        pairs=pairs,
        values=values_tested.with_columns(pl.col("value").fill_nan(None)),
        baseline=question.base,
        warnings=(),
        signature=_sign(question, scores, members),
        outcomes=_pivot_outcomes(outcomes, names_of_outcomes),
        scores=scores,
        question=question,
        matrices=tested,
        runs=_arrange_runs(scores, measures, matrices, query_ids),
        query_ids=query_ids,
        members=members,
        rel=question.rel,
        largest_label=largest_label,
    )


def _stack_values_of_runs(
    question: Question, runs: Mapping[str, ScoredRun], of_baseline_file: Scores | None, query_ids: pl.Series
) -> pl.DataFrame:
    """Return the values of the systems whose runs these are: query_id, measure, system, value."""
    scores_of_runs = {name: run.scores for name, run in runs.items()}
    scores = _average_runs(question, scores_of_runs, of_baseline_file, question.missing)
    values, _ = _stack_values(question, scores, of_baseline_file, query_ids)
    return values


def _leave_out_no_good(
    question: Question,
    runs: Mapping[str, ScoredRun],
    of_baseline_file: Scores | None,
    without_good: Mapping[str, pl.Series],
) -> tuple[dict[str, ScoredRun], Scores | None]:
    """Return the runs and the baseline file without values in queries without a good document (`no_good="absent"`)."""
    changed_runs = {}
    for name, run in runs.items():
        changed_runs[name] = run._replace(scores=leave_out_no_good(run.scores, without_good, question.needed))
    if of_baseline_file is not None:
        of_baseline_file = leave_out_no_good(of_baseline_file, without_good, question.needed)
    return changed_runs, of_baseline_file


def _test_pairs(
    question: Question,
    matrices: Mapping[str, Matrix],
    query_ids: pl.Series,
    scores: Mapping[str, Scores],
    largest_label: float,
) -> pl.DataFrame:
    """Return `Comparison.pairs`, without costs and bounds."""
    matrices_of: Matrices = {None: question.select_queries_of_test(matrices)}
    nothing = question.find_nothing(query_ids, scores)
    decided = question.decide(matrices_of, {None: nothing}, scores)
    return question.add_intervals(decided, matrices_of, largest_label)


def _give_notices(comparison: Comparison, notices: Sequence[GoodgainNotice]) -> Comparison:
    joined = join_notices(notices)
    for notice_of_comparison in joined:
        give(notice_of_comparison)
    return replace(comparison, warnings=tuple(notice_of_comparison.text for notice_of_comparison in joined))


def _describe_few_shared(question: Question, scores: Mapping[str, Scores]) -> list[GoodgainNotice]:
    """Return a notice on the compared pairs that share few judged queries; none if no pair does."""
    queries = {name: of_system.queries for name, of_system in scores.items()}
    compared = [(question.systems[system], question.systems[against]) for system, against in question.pairs]
    text = describe_shared_queries(queries, compared)
    if text is None:
        return []
    return [GoodgainNotice("few_shared_queries", text)]


def _pivot_outcomes(outcomes: pl.DataFrame | None, names: Sequence[str]) -> pl.DataFrame | None:
    """Return `Comparison.outcomes`, with a column for each outcome."""
    if outcomes is None:
        return None
    rows = outcomes.filter(pl.col("measure").is_in(names))
    return rows.pivot("measure", on_columns=names, index=["query_id", "system"])


def _list_reasons(comparison: Comparison, notices_on_inputs: Sequence[GoodgainNotice]) -> Iterator[GoodgainNotice]:
    """Yield the notices that explain verdicts such as `equal`, `unclear` and `not comparable`. These notices come first."""
    yield from (notice for notice in notices_on_inputs if notice.kind in REASONS)
    question = comparison.question
    if question.uses_holm or lacks_signs(question.settings, 1):
        yield from describe_few_signs(question.settings, comparison.pairs, comparison.members)
    if question.lacks_intervals():
        yield describe_lack_of_intervals(len(question.pairs), MOST_PAIRS_WITH_INTERVALS)
    baseline_of_file = BASELINE if comparison.question.baseline_file is not None else None
    yield from describe_incomparable(comparison.pairs, comparison.scores, baseline_of_file)


def _list_absent(
    comparison: Comparison,
    scores_of_runs: Mapping[str, Scores],
    of_baseline_file: Scores | None,
    unread: Mapping[str, Unread],
) -> list[GoodgainNotice]:
    """Return the notices on absent queries. If these count as zero, the first notice says which verdicts rest on them."""
    question, query_ids = comparison.question, comparison.query_ids
    scores = dict(scores_of_runs)
    if of_baseline_file is not None:
        scores = {BASELINE: comparison.scores[BASELINE], **scores_of_runs}
    notices: list[GoodgainNotice] = []
    for name, of_run in scores.items():
        unread_file, unread_ids = unread.get(name, ("", frozenset()))
        notices += describe_absent(name, of_run.queries, question.missing, unread_file, unread_ids)

    has_absent = any(len(of_run.queries.only_judged) for of_run in scores.values())
    if question.missing == "zero" and has_absent:
        without_absent = _average_runs(question, scores_of_runs, of_baseline_file, "absent")
        values, _ = _stack_values(question, without_absent, of_baseline_file, query_ids)
        matrices = arrange_values(values, map(str, question.asked), question.systems, query_ids)
        pairs = _decide_again(comparison, matrices)
        notices.insert(0, describe_verdicts(comparison.pairs, pairs))
    return notices


def _decide_again(comparison: Comparison, matrices: Mapping[str, Matrix]) -> pl.DataFrame:
    """Return the verdicts on other values than those of the comparison."""
    question = comparison.question
    nothing = question.find_nothing(comparison.query_ids, comparison.scores)
    matrices_of: Matrices = {None: question.select_queries_of_test(matrices)}
    return question.decide(matrices_of, {None: nothing}, comparison.scores)


def _list_verdicts_on_no_good(
    comparison: Comparison, without_good: Mapping[str, pl.Series], values_with_no_good: pl.DataFrame | None
) -> Iterator[GoodgainNotice]:
    """Yield a notice if the other value of `no_good` changes a verdict. `values_with_no_good` has the values with `keep`."""
    question, query_ids = comparison.question, comparison.query_ids
    # If no query has a good document, the notice on the threshold says it.
    without_good = {name: queries for name, queries in without_good.items() if len(queries) < len(query_ids)}
    if not without_good:
        return

    matrices = dict(comparison.matrices)
    if values_with_no_good is not None:
        matrices |= arrange_values(values_with_no_good, without_good, question.systems, query_ids)
    else:
        for measure, queries in without_good.items():
            is_left_out = query_ids.is_in(queries.implode()).to_numpy()
            matrices[measure] = np.where(is_left_out, np.nan, matrices[measure])
    if question.uses_holm:  # the verdicts of other measures cannot change
        matrices = {measure: matrices[measure] for measure in without_good}
    pairs = _decide_again(comparison, matrices)
    yield from describe_verdicts_on_no_good(comparison.pairs, pairs, question.no_good)


def _list_misleading(
    comparison: Comparison,
    matrices: Mapping[str, Matrix],
    incomplete: Mapping[str, pl.Series],
    without_good: Mapping[str, pl.Series],
) -> Iterator[GoodgainNotice]:
    """Yield notices on numbers that may mislead: means over other queries, other ends, low counts, and repeated runs."""
    question, query_ids, scores = comparison.question, comparison.query_ids, comparison.scores
    systems = question.systems
    measures = [measure for measure in question.asked if isinstance(measure, GoodGainMeasure)]
    # A row per system, a column per query:
    absent = mark_queries(query_ids, {name: [of_system.queries.only_judged] for name, of_system in scores.items()})
    with_search = mark_searched(query_ids, scores)
    left_out = absent & (question.missing == "absent")
    if question.incomplete == "absent":
        broken = {}
        for name in scores:
            broken[name] = [incomplete.get(run) for run in question.runs_of.get(name, ())]
        left_out |= mark_queries(query_ids, broken)

    if question.has_labels:
        judged = len(query_ids)
        yield from describe_unjudged_queries(comparison.systems, judged, judged + count_unjudged(scores))
    for measure in question.asked:
        lacks_value = ~np.isfinite(matrices[str(measure)])
        if question.no_good == "absent" and str(measure) in without_good:
            has_good = ~query_ids.is_in(without_good[str(measure)].implode()).to_numpy()
            lacks_value &= has_good
        yield from describe_left_out(measure, lacks_value & ~left_out, with_search, systems)
    if comparison.outcomes is not None:
        for outcome in comparison.outcomes.columns[2:]:
            yield from describe_left_out(outcome, ~np.isfinite(matrices[outcome]), with_search, systems)

    # Stops are compared between systems with iterations, on the queries that all of these have.
    iterated = [k for k, of_system in enumerate(scores.values()) if not of_system.lacks_iterations]
    if iterated:
        is_whole = ~(absent | left_out)[iterated].any(axis=0)
        values = {name: matrix[iterated][:, is_whole] for name, matrix in matrices.items()}
        runs = _arrange_runs(scores, [str(NumIter)], matrices, query_ids)
        iterations = {}  # system -> a row per run, a column per query
        for k in iterated:
            iterations[systems[k]] = runs[systems[k]][str(NumIter)][:, is_whole]
        yield from describe_stops(measures, values, iterations)
    yield from describe_low_counts(question.asked, matrices, systems)
    yield from describe_own_ideal(measures)
    yield from describe_replicates(scores, comparison.runs)


def _arrange_runs(
    scores: Mapping[str, Scores], measures: Sequence[str], matrices: Mapping[str, Matrix], query_ids: pl.Series
) -> dict[str, dict[str, Matrix]]:
    """Return the values of each run: system, then measure, then a row per run. A system of one run has them in `matrices`."""
    runs = {}
    for k, (name, of_system) in enumerate(scores.items()):
        if of_system.replicates:
            runs[name] = arrange_runs(of_system, measures, query_ids)
        else:
            runs[name] = {measure: matrices[measure][k : k + 1] for measure in measures}
    return runs


def _average_runs(
    question: Question, scores_of_runs: Mapping[str, Scores], of_baseline_file: Scores | None, missing: str
) -> dict[str, Scores]:
    """Return the scores of each system: the means over its runs, query by query. The baseline file comes first.

    A baseline file can have more measures than are compared, which are left out.
    """
    scores = {}
    if of_baseline_file is not None:
        compared = of_baseline_file.select(question.needed)
        scores[BASELINE] = average_scores([compared], question.needed, missing=missing)
    for system, runs in question.runs_of.items():
        of_system = [scores_of_runs[run] for run in runs]
        scores[system] = average_scores(of_system, question.needed, missing=missing)
    return scores


def _stack_values(
    question: Question, scores: Mapping[str, Scores], of_baseline_file: Scores | None, query_ids: pl.Series
) -> tuple[pl.DataFrame, pl.DataFrame | None]:
    """Return the values of measures and outcomes, and the outcomes alone: query_id, measure, system, value."""
    by_system = stack_systems({name: of_system.per_query for name, of_system in scores.items()})
    needed = [str(measure) for measure in question.needed]
    values = by_system.filter(pl.col("measure").is_in(needed)).select(*_VALUES)
    if question.shares:
        values = pl.concat([values, tabulate_searched(scores).select(*_VALUES)])
    if question.table is None:
        return values, None

    of_file = None
    if of_baseline_file is not None:
        of_file = of_baseline_file.per_query.with_columns(system=pl.lit(BASELINE))
    measures = [str(measure) for measure in question.asked]
    outcomes = stack_outcomes(question.table, of_file, question.systems, measures)
    of_judged_queries = outcomes.filter(pl.col("query_id").is_in(query_ids.implode()))
    return pl.concat([values, of_judged_queries]), outcomes


def _sign(question: Question, scores: Mapping[str, Scores], members: pl.DataFrame | None) -> dict[str, Any]:
    """Return the versions and settings behind the numbers, without those of single runs."""
    of_run = ("absent_from_run", "without_judgments", "without_value", "unjudged", "replicates", *Reading._fields)
    *_, last = scores.values()  # a baseline file comes first
    signature: dict[str, Any] = {"baseline": question.base} if question.base else {}
    signature |= {name: value for name, value in last.signature.items() if name not in of_run}
    signature |= question.settings.signature
    signature |= question.sign_correction()
    groups = 0 if members is None else members["group"].n_unique()
    signature |= question.sign_draws(groups, signature["queries"])

    for of_system in scores.values():
        if "missing" in of_system.signature:
            signature["missing"] = of_system.signature["missing"]
    signature |= sign_reading({name: of_system.signature for name, of_system in scores.items()})

    repeated = [f"{name}:{len(of_system.replicates)}" for name, of_system in scores.items() if of_system.replicates]
    table = question.table
    options = {
        "replicates": repeated or None,
        "against": question.against,
        "detect": question.detect,
        "pass_k": question.pass_k,
        "groups": None if members is None else digest_rows(members),
        "outcomes": None if table is None else digest_rows(table.fill_null(math.nan)),
    }
    return signature | {name: value for name, value in options.items() if value is not None}
