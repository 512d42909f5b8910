"""Compares systems: scores them, arranges one value per query and system, and tests each pair."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from goodgain.comparing.comparison import Comparison
from goodgain.comparing.comparison_notes import Note, describe_incomparable, describe_shared_queries, list_notes
from goodgain.comparing.comparison_question import BASELINE, Question
from goodgain.comparing.difference_bounds import ScoredRun, add_bounds, add_bounds_of_means
from goodgain.comparing.lost_queries import LostQueries, Unread, describe_absent, describe_verdicts
from goodgain.comparing.outcomes import check_outcomes, stack_outcomes
from goodgain.comparing.pairs_table import add_costs, arrange_values, tabulate_means, tabulate_systems
from goodgain.comparing.replicate_tables import (
    arrange_runs,
    list_remarks,
    list_replicate_notes,
    tabulate_detectable,
    tabulate_replicates,
)
from goodgain.comparing.statistical_tests import Matrix
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
    kept: Scores | None,
    of_inputs: Sequence[Note],
    lost: LostQueries,
) -> Comparison:
    """Compare systems by the scores of their runs, and those of the baseline file, on the judged queries.

    `of_inputs` are the notes on qrels and outcomes.
    """
    asked, names = question.asked, question.systems
    of = _arrange(question, query_ids, {name: run.scores for name, run in runs.items()}, kept)
    tested = {name: of.matrices[name] for name in of.better}
    several = {name: arrange_runs(one, [*map(str, asked)], query_ids) for name, one in of.scores.items()}
    members = None if question.groups is None else read_groups(question.groups, query_ids)
    about = tabulate_systems(of.scores, of.matrices)
    means, pairs = (
        tabulate_means(tested, of.better, names),
        add_costs(question.decide(question.test(tested, of.better), of.scores), about),
    )
    if question.bounds:
        means, pairs = add_bounds_of_means(means, runs), add_bounds(pairs, asked, runs)
    replicates = tabulate_replicates(several, of.better)
    alpha, detect = question.settings.alpha, question.detect
    detectable = tabulate_detectable(pairs, tested, names, replicates, alpha=alpha, detect=detect)
    notes = [
        *_list_absent(question, query_ids, of, pairs, lost.unread),
        *of_inputs,
        *_list_notes(question, query_ids, of, about, pairs, lost.incomplete),
        *list_replicate_notes(of.scores, several, len(query_ids)),
    ]
    for note in notes:
        notice(note.text, minor=note.minor)
    return Comparison(
        systems=about,
        coverage=stack_systems({name: one.coverage for name, one in of.scores.items()}),
        means=means,
        pairs=pairs,
        values=of.values.filter(pl.col("measure").is_in([*of.better])).with_columns(pl.col("value").fill_nan(None)),
        baseline=question.base,
        notes=(*(note.text for note in notes), *list_remarks(of.scores, detectable, alpha=alpha, detect=detect)),
        signature=_sign(question, of.scores, members),
        outcomes=None if of.given is None else _widen(of.given, of.solved),
        scores=of.scores,
        replicates=replicates,
        detectable=detectable,
        question=question,
        matrices=tested,
        runs=several,
        query_ids=query_ids,
        members=members,
        rel=question.rel,
    )


class _Arranged(NamedTuple):
    """One value per query, measure and system.

    Attributes:
        scored, scores: the scores of each run, and of each system.
        kept: those of the baseline file.
        values: query_id, measure, system, value.
        given: those of the outcomes alone.
        matrices: measure or outcome -> a row for each system, a column for each query.
        solved: the outcomes that are compared.
        better: measure or outcome -> the better direction.
        few_shared: a sentence on the pairs that share few queries.
    """

    scored: Mapping[str, Scores]
    scores: Mapping[str, Scores]
    kept: Scores | None
    values: pl.DataFrame
    given: pl.DataFrame | None
    matrices: Mapping[str, Matrix]
    solved: list[str]
    better: Mapping[str, str | None]
    few_shared: str | None


def _arrange(question: Question, query_ids: pl.Series, scored: Mapping[str, Scores], kept: Scores | None) -> _Arranged:
    scores = _average_runs(question, scored, kept, question.missing)
    compared = [(question.systems[one], question.systems[other]) for one, other in question.pairs]
    few_shared = describe_shared_queries({name: of.queries for name, of in scores.items()}, compared)
    values, given = _stack_values(question, scores, query_ids)
    solved = [] if question.table is None else question.table.columns[2:]
    matrices = arrange_values(values, [*map(str, question.needed), *solved], question.systems, query_ids)
    solved = check_outcomes({name: matrices[name] for name in solved})
    better = {str(measure): find_direction(measure) for measure in question.asked}
    better |= {name: FUNNEL.get(name, "up") for name in solved}
    return _Arranged(scored, scores, kept, values, given, matrices, solved, better, few_shared)


def _list_absent(
    question: Question, query_ids: pl.Series, of: _Arranged, pairs: pl.DataFrame, unread: Mapping[str, Unread]
) -> list[Note]:
    """Return the notes on queries without a search, first which verdicts rest on the absent ones."""
    shown = {**of.scored} if of.kept is None else {BASELINE: of.scores[BASELINE], **of.scored}
    notes = [
        note
        for name, one in shown.items()
        for note in describe_absent(name, one.queries, question.missing, unread.get(name, Unread()))
    ]
    if question.missing == "zero" and any(len(one.queries.only_judged) for one in shown.values()):
        others = _stack_values(question, _average_runs(question, of.scored, of.kept, "absent"), query_ids)[0]
        without = arrange_values(others, map(str, question.asked), question.systems, query_ids)
        tested = question.test(without, of.better)
        notes.insert(0, describe_verdicts(pairs, question.decide(tested, of.scores)))
    return notes


def _list_notes(
    question: Question,
    query_ids: pl.Series,
    of: _Arranged,
    about: pl.DataFrame,
    pairs: pl.DataFrame,
    incomplete: Mapping[str, pl.Series],
) -> Iterator[Note]:
    """Yield the notes on what the values of systems rest on."""
    incomparable = describe_incomparable(pairs, of.scores, None if of.kept is None else BASELINE)
    yield from (Note(said) for said in (of.few_shared, incomparable) if said)
    absent = _mark(query_ids, {name: [one.queries.only_judged] for name, one in of.scores.items()})
    left_out = absent & (question.missing == "absent")
    if question.incomplete == "absent":
        broken = {name: [*map(incomplete.get, question.runs_of.get(name, ()))] for name in of.scores}
        left_out |= _mark(query_ids, broken)
    iterated = [k for k, one in enumerate(of.scores.values()) if not one.lacks_iterations]
    yield from list_notes(question.asked, of.matrices, about, absent, left_out, outcomes=of.solved, iterated=iterated)


def _mark(query_ids: pl.Series, of_systems: Mapping[str, Sequence[pl.Series | None]]) -> NDArray[np.bool_]:
    """Return a row for each system: whether each query is in one of its series."""
    joined = [
        pl.concat([query_ids.clear(), *(of for of in several if of is not None)]) for several in of_systems.values()
    ]
    return np.array([query_ids.is_in(of.implode()).to_numpy() for of in joined])


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
