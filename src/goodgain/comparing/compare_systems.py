"""Compares systems: scores them, arranges one value per query and system, and tests each pair."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from goodgain.comparing.absent_queries import Unread, describe_absent, describe_verdicts
from goodgain.comparing.comparison import Comparison
from goodgain.comparing.comparison_notes import Note, describe_incomparable, describe_shared_queries, list_notes
from goodgain.comparing.comparison_question import BASELINE, Question
from goodgain.comparing.difference_bounds import ScoredRun, add_bounds, add_bounds_of_means
from goodgain.comparing.outcomes import check_outcomes, stack_outcomes
from goodgain.comparing.pairs_table import add_costs, arrange_values, tabulate_means, tabulate_systems
from goodgain.comparing.replicate_tables import (
    arrange_runs,
    list_remarks,
    list_replicate_notes,
    tabulate_detectable,
    tabulate_replicates,
)
from goodgain.comparing.use_of_documents import FUNNEL
from goodgain.errors import notice
from goodgain.formats.digest import digest_rows
from goodgain.formats.query_tables import read_groups
from goodgain.formats.run import Reading
from goodgain.formats.systems import stack_systems
from goodgain.measures.names import find_direction
from goodgain.measures.replicate_scores import average_scores, sign_reading
from goodgain.measures.scores import Scores

_VALUES = ("query_id", "measure", "system", "value")


def compare_scores(
    question: Question,
    query_ids: pl.Series,
    runs: Mapping[str, ScoredRun],
    kept: Scores | None = None,
    of_labels: Sequence[Note] = (),
    unread: Mapping[str, Unread] | None = None,
    incomplete: Mapping[str, pl.Series] | None = None,
) -> Comparison:
    """Compare systems by the scores of their runs, and those of the baseline file, on the judged queries.

    `of_labels` are the notes on the qrels and outcomes alone. `unread` has the queries that convert could not read for a run,
    `incomplete` those that broke off in it.
    """
    asked, needed, names = question.asked, question.needed, question.systems
    scored = {name: run.scores for name, run in runs.items()}
    scores = _average_runs(question, scored, kept, question.missing)
    compared_names = [(names[one], names[other]) for one, other in question.pairs]
    few_shared = describe_shared_queries({name: of.queries for name, of in scores.items()}, compared_names)
    queries = {name: of.queries for name, of in {**scores, **scored}.items() if name in scored or name == BASELINE}
    values, given = _stack_values(question, scores, query_ids)
    solved = [] if question.table is None else question.table.columns[2:]
    matrices = arrange_values(values, [*map(str, needed), *solved], names, query_ids)
    solved = check_outcomes({name: matrices[name] for name in solved})
    better = {str(measure): find_direction(measure) for measure in asked}
    better |= {name: FUNNEL.get(name, "up") for name in solved}
    tested = {name: matrices[name] for name in better}
    several = {name: arrange_runs(of, [*map(str, asked)], query_ids) for name, of in scores.items()}
    members = None if question.groups is None else read_groups(question.groups, query_ids)
    about = tabulate_systems(scores, matrices)
    means, pairs = (
        tabulate_means(tested, better, names),
        add_costs(question.decide(question.test(tested, better), scores), about),
    )
    if question.bounds:
        means, pairs = add_bounds_of_means(means, runs), add_bounds(pairs, asked, runs)
    replicates = tabulate_replicates(several, better)
    alpha, detect = question.settings.alpha, question.detect
    detectable = tabulate_detectable(pairs, tested, names, replicates, alpha=alpha, detect=detect)
    of_file = None if kept is None else BASELINE
    absent = _mark(query_ids, {name: of.queries.only_judged for name, of in scores.items()})
    left_out = absent & (question.missing == "absent")
    if question.incomplete == "absent" and incomplete:
        empty = query_ids.clear()
        of_systems = {name: [incomplete.get(run, empty) for run in question.runs_of.get(name, [])] for name in names}
        left_out |= _mark(query_ids, {name: pl.concat([empty, *of]) for name, of in of_systems.items()})
    of_absent = [
        note
        for name, of in queries.items()
        for note in describe_absent(name, of, question.missing, (unread or {}).get(name, Unread()))
    ]
    if question.missing == "zero" and any(len(of.only_judged) for of in queries.values()):
        others = _average_runs(question, scored, kept, "absent")
        without = arrange_values(_stack_values(question, others, query_ids)[0], map(str, asked), names, query_ids)
        of_absent.insert(0, describe_verdicts(pairs, question.decide(question.test(without, better), scores)))
    notes = [
        *of_absent,
        *of_labels,
        *(Note(said) for said in (few_shared, describe_incomparable(pairs, scores, of_file)) if said),
        *list_notes(
            asked,
            matrices,
            about,
            absent,
            left_out,
            outcomes=solved,
            iterated=[k for k, of in enumerate(scores.values()) if not of.lacks_iterations],
        ),
        *list_replicate_notes(scores, several, len(query_ids)),
    ]
    for note in notes:
        notice(note.text, minor=note.minor)
    return Comparison(
        systems=about,
        coverage=stack_systems({name: of.coverage for name, of in scores.items()}),
        means=means,
        pairs=pairs,
        values=values.filter(pl.col("measure").is_in([*better])).with_columns(pl.col("value").fill_nan(None)),
        baseline=question.base,
        notes=(*(note.text for note in notes), *list_remarks(scores, detectable, alpha=alpha, detect=detect)),
        signature=_sign(question, scores, members),
        outcomes=None if given is None else _widen(given, solved),
        scores=scores,
        replicates=replicates,
        detectable=detectable,
        question=question,
        matrices=tested,
        runs=several,
        query_ids=query_ids,
        members=members,
        rel=question.rel,
    )


def _mark(query_ids: pl.Series, of_systems: Mapping[str, pl.Series]) -> NDArray[np.bool_]:
    """Return a row for each system: whether each query is one of its queries."""
    return np.array([query_ids.is_in(of.implode()).to_numpy() for of in of_systems.values()])


def _average_runs(
    question: Question, scored: Mapping[str, Scores], kept: Scores | None, missing: str
) -> dict[str, Scores]:
    """Return the scores of each system; `scored` has those of each run, `kept` are those of the baseline file."""
    needed = question.needed
    scores = {} if kept is None else {BASELINE: average_scores([kept], needed, missing=missing)}
    return scores | {
        name: average_scores([scored[run] for run in of], needed, missing=missing)
        for name, of in question.runs_of.items()
    }


def _stack_values(
    question: Question, scores: Mapping[str, Scores], query_ids: pl.Series
) -> tuple[pl.DataFrame, pl.DataFrame | None]:
    """Return query_id, measure, system and value: one value per query, measure and system. Also those of the outcomes alone."""
    by_system = stack_systems({name: of.per_query for name, of in scores.items()})
    values = by_system.filter(pl.col("measure").is_in([*map(str, question.needed)])).select(*_VALUES)
    if question.table is None:
        return values, None
    of_file = by_system.filter(system=BASELINE) if question.baseline_file is not None else None
    given = stack_outcomes(question.table, of_file, question.systems, [*map(str, question.asked)])
    return pl.concat([values, given.filter(pl.col("query_id").is_in(query_ids.implode()))]), given


def _widen(outcomes: pl.DataFrame, names: Sequence[str]) -> pl.DataFrame:
    """Return query_id, system, and a column for each outcome."""
    kept = outcomes.filter(pl.col("measure").is_in(names))
    return kept.pivot("measure", on_columns=names, index=["query_id", "system"])


def _sign(question: Question, scores: Mapping[str, Scores], members: pl.DataFrame | None) -> dict[str, Any]:
    """Return the settings behind a comparison: those of its scores, of its tests, and digests of its tables."""
    of_run = ("absent_from_run", "without_judgments", "without_value", "unjudged", "replicates")
    table = question.table
    *_, last = scores.values()  # never that of a baseline file
    several = [f"{name}:{len(of.replicates)}" for name, of in scores.items() if of.replicates]
    made = {name: value for name, value in last.signature.items() if name not in (*of_run, *Reading._fields)}
    made |= question.settings._asdict()
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
