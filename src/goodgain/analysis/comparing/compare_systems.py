"""Compares systems: scores them, builds matrices with a value per system and query, and tests each pair."""

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from goodgain.analysis.comparing.comparison import Comparison
from goodgain.analysis.comparing.comparison_question import Question
from goodgain.analysis.comparing.comparison_sentences import (
    describe_absent,
    describe_few_signs,
    describe_incomparable,
    describe_left_out,
    describe_low_counts,
    describe_own_ideal,
    describe_replicates,
    describe_shared_queries,
    describe_stops,
    describe_unjudged_queries,
    describe_verdicts,
)
from goodgain.analysis.comparing.lost_queries import count_broken_off
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
from goodgain.counting.run_opening import stack_systems
from goodgain.errors import REASONS, GoodgainNotice, give
from goodgain.files.opening import stem
from goodgain.formats.digest import digest_rows
from goodgain.formats.query_tables import read_groups
from goodgain.formats.run import Reading
from goodgain.measures.declaration import GoodGainMeasure
from goodgain.measures.good_gain import NumIter
from goodgain.measures.scores import Scores, average_scores, sign_reading
from goodgain.statistics.statistical_tests import Draw, Matrix

_VALUES = ("query_id", "measure", "system", "value")
#: The name of an `.unread` file, and the ids of its queries: convert could not read them.
Unread = tuple[str, frozenset[str]]


def read_unread(source: Any) -> Unread:
    """Read the file `RUN.unread` or `all.unread` beside a run. Return its name and query ids; both are empty without a file."""
    if isinstance(source, (str, os.PathLike)):
        path = Path(source)
        for name in (path.name, path.name.replace(stem(path) or path.name, "all", 1)):
            with suppress(OSError, ValueError):
                lines = path.with_name(f"{name}.unread").read_text(encoding="utf-8").splitlines()
                return f"{name}.unread", frozenset(lines)
    return "", frozenset()


def compare_scores(
    question: Question,
    query_ids: pl.Series,
    runs: Mapping[str, ScoredRun],
    kept: Scores | None,
    of_inputs: Sequence[GoodgainNotice],
    unread: Mapping[str, Unread],
    incomplete: Mapping[str, pl.Series],
    draw: Draw,
) -> Comparison:
    """Compare systems by their scores on the judged queries. `kept` has the scores of the baseline file."""
    asked, names = question.asked, question.systems
    scored = {name: run.scores for name, run in runs.items()}
    scores = _average_runs(question, scored, kept, question.missing)
    compared = [(names[one], names[other]) for one, other in question.pairs]
    few_shared = describe_shared_queries({name: of.queries for name, of in scores.items()}, compared)
    values, given = _stack_values(question, scores, kept, query_ids)
    matrices = arrange_values(values, [*map(str, question.needed), *question.solved], names, query_ids)
    outcomes = check_outcomes({name: matrices[name] for name in question.solved})
    tested = {name: matrices[name] for name in [*map(str, asked), *outcomes]}
    if given is not None:
        given = given.filter(pl.col("measure").is_in(outcomes))
        given = given.pivot("measure", on_columns=outcomes, index=["query_id", "system"])
    members = None if question.groups is None else read_groups(question.groups, query_ids)
    about, means = tabulate_systems(scores, matrices), tabulate_means(tested, question.better, names)
    nothing = question.find_nothing(query_ids, scores)
    pairs = add_costs(question.decide(question.test(tested, nothing, draw), scores), about)
    if question.bounds:
        means, pairs = add_bounds_of_means(means, runs), add_bounds(pairs, asked, runs)
    found = Comparison(
        systems=about,
        coverage=stack_systems({name: of.coverage for name, of in scores.items()}),
        means=means,
        pairs=pairs,
        values=values.filter(pl.col("measure").is_in([*tested])).with_columns(pl.col("value").fill_nan(None)),
        baseline=question.base,
        warnings=(),
        signature=_sign(question, scores, members),
        outcomes=given,
        scores=scores,
        question=question,
        matrices=tested,
        runs={name: arrange_runs(of, [*map(str, asked)], query_ids) for name, of in scores.items()},
        query_ids=query_ids,
        members=members,
        rel=question.rel,
        broke_off=count_broken_off(incomplete, question.runs_of),
    )
    notes = [
        *_list_reasons(found, of_inputs),
        *_list_absent(found, scored, kept, unread),
        *(note for note in of_inputs if note.kind not in REASONS),
        *([] if few_shared is None else [GoodgainNotice("few_shared_queries", few_shared)]),
        *_list_notes(found, matrices, incomplete),
    ]
    for note in notes:
        give(note)
    return replace(found, warnings=tuple(note.text for note in notes))


def _list_reasons(found: Comparison, of_inputs: Sequence[GoodgainNotice]) -> Iterator[GoodgainNotice]:
    """Yield the notes that explain verdicts such as `equal`, `unclear` and `not comparable`. These notes come first."""
    yield from (note for note in of_inputs if note.kind in REASONS)
    yield from describe_few_signs(found)
    of_file = BASELINE if found.question.baseline_file is not None else None
    yield from describe_incomparable(found.pairs, found.scores, of_file)


def _list_absent(
    found: Comparison, scored: Mapping[str, Scores], kept: Scores | None, unread: Mapping[str, Unread]
) -> list[GoodgainNotice]:
    question, query_ids = found.question, found.query_ids
    shown = {**scored} if kept is None else {BASELINE: found.scores[BASELINE], **scored}
    notes = [
        note
        for name, one in shown.items()
        for note in describe_absent(name, one.queries, question.missing, *unread.get(name, ("", frozenset())))
    ]
    if question.missing == "zero" and any(len(one.queries.only_judged) for one in shown.values()):
        without_absent = _average_runs(question, scored, kept, "absent")
        others = _stack_values(question, without_absent, kept, query_ids)[0]
        without = arrange_values(others, map(str, question.asked), question.systems, query_ids)
        nothing = question.find_nothing(query_ids, found.scores)
        decided = question.decide(question.test(without, nothing), found.scores)
        notes.insert(0, describe_verdicts(found.pairs, decided))
    return notes


def _list_notes(
    found: Comparison, matrices: Mapping[str, Matrix], incomplete: Mapping[str, pl.Series]
) -> Iterator[GoodgainNotice]:
    question, query_ids, scores = found.question, found.query_ids, found.scores
    absent = mark_queries(query_ids, {name: [one.queries.only_judged] for name, one in scores.items()})
    left_out = absent & (question.missing == "absent")
    if question.incomplete == "absent":
        broken = {name: [*map(incomplete.get, question.runs_of.get(name, ()))] for name in scores}
        left_out |= mark_queries(query_ids, broken)
    ours = [measure for measure in question.asked if isinstance(measure, GoodGainMeasure)]
    names = question.systems
    yield from describe_unjudged_queries(found.systems)
    searched = mark_searched(query_ids, scores)
    for measure in question.asked:
        yield from describe_left_out(measure, ~np.isfinite(matrices[str(measure)]) & ~left_out, searched, names)
    for outcome in () if found.outcomes is None else found.outcomes.columns[2:]:
        yield from describe_left_out(outcome, ~np.isfinite(matrices[outcome]), searched, names)
    # Stops are compared between systems with iterations, on the queries that all of these have.
    if iterated := [k for k, one in enumerate(scores.values()) if not one.lacks_iterations]:
        is_whole = ~(absent | left_out)[iterated].any(axis=0)
        values = {name: matrix[iterated][:, is_whole] for name, matrix in matrices.items()}
        runs = {names[k]: arrange_runs(scores[names[k]], [str(NumIter)], query_ids)[str(NumIter)] for k in iterated}
        yield from describe_stops(ours, values, {name: matrix[:, is_whole] for name, matrix in runs.items()})
    yield from describe_low_counts(question.asked, matrices, names)
    yield from describe_own_ideal(ours)
    yield from describe_replicates(scores, found.runs, len(query_ids))


def _average_runs(
    question: Question, scored: Mapping[str, Scores], kept: Scores | None, missing: str
) -> dict[str, Scores]:
    """Return the scores of each system. A baseline file can have more measures than are compared, which are left out here."""
    needed = question.needed
    scores = {}
    if kept is not None:
        scores[BASELINE] = average_scores([kept.select(needed)], needed, missing=missing)
    for system, runs in question.runs_of.items():
        scores[system] = average_scores([scored[run] for run in runs], needed, missing=missing)
    return scores


def _stack_values(
    question: Question, scores: Mapping[str, Scores], kept: Scores | None, query_ids: pl.Series
) -> tuple[pl.DataFrame, pl.DataFrame | None]:
    by_system = stack_systems({name: of.per_query for name, of in scores.items()})
    values = by_system.filter(pl.col("measure").is_in([*map(str, question.needed)])).select(*_VALUES)
    if question.table is None:
        return values, None
    of_file = None if kept is None else kept.per_query.with_columns(system=pl.lit(BASELINE))
    given = stack_outcomes(question.table, of_file, question.systems, [*map(str, question.asked)])
    return pl.concat([values, given.filter(pl.col("query_id").is_in(query_ids.implode()))]), given


def _sign(question: Question, scores: Mapping[str, Scores], members: pl.DataFrame | None) -> dict[str, Any]:
    of_run = ("absent_from_run", "without_judgments", "without_value", "unjudged", "replicates")
    table = question.table
    *_, last = scores.values()  # a baseline file comes first
    several = [f"{name}:{len(of.replicates)}" for name, of in scores.items() if of.replicates]
    made = {name: value for name, value in last.signature.items() if name not in (*of_run, *Reading._fields)}
    made |= question.settings.signature | question.sign_draws(0 if members is None else members["group"].n_unique())
    made |= {name: of for one in scores.values() for name, of in one.signature.items() if name == "missing"}
    made |= sign_reading({name: of.signature for name, of in scores.items()})
    beside = {
        "replicates": several or None,
        "against": question.against,
        "detect": question.detect,
        "pass_k": question.pass_k,
        "groups": None if members is None else digest_rows(members),
        "outcomes": None if table is None else digest_rows(table.fill_null(math.nan)),
    }
    first = {"baseline": question.base} if question.base else {}
    return first | made | {name: value for name, value in beside.items() if value is not None}
