"""Compares systems: scores them, arranges one value per query and system, and tests each pair."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import polars as pl

from goodgain.comparing.compared_values import ComparedValues
from goodgain.comparing.comparison import Comparison
from goodgain.comparing.comparison_notes import Note, describe_ends, describe_shared_queries, list_notes
from goodgain.comparing.comparison_question import BASELINE, Question, ScoredRun
from goodgain.comparing.difference_bounds import add_bounds, add_bounds_of_means
from goodgain.comparing.outcomes import check_outcomes, stack_outcomes
from goodgain.comparing.pairs_table import add_costs, arrange_values, tabulate_means, tabulate_systems
from goodgain.comparing.replicate_tables import (
    list_remarks,
    list_replicate_notes,
    tabulate_detectable,
    tabulate_replicates,
)
from goodgain.comparing.required_lines import Requirement
from goodgain.comparing.use_of_documents import FUNNEL
from goodgain.counting.run_in_blocks import RunFile
from goodgain.counting.run_opening import map_documents, use_each
from goodgain.errors import collect_notices, notice
from goodgain.formats import Run
from goodgain.formats.any_source import Columns
from goodgain.formats.digest import digest_rows
from goodgain.formats.query_tables import read_groups
from goodgain.formats.run import Reading
from goodgain.formats.systems import check_systems, name_runs, stack_systems
from goodgain.measures.names import Measures, find_direction, needs_results
from goodgain.measures.replicate_scores import average_scores, sign_reading
from goodgain.measures.scores import Scores
from goodgain.measures.thresholds import warn_of_labels

_VALUES = ("query_id", "measure", "system", "value")


def compare(
    qrels: Any,
    systems: Mapping[str, Any],
    measures: Measures,
    *,
    rel: float | None = None,
    baseline: str | None = None,
    against: str | None = None,
    iterations: int | Sequence[int] | None = None,
    seed: int = 42,
    resamples: int = 9_999,
    alpha: float = 0.05,
    order: str = "seen",
    provider: str | None = None,
    bounds: bool = False,
    groups: Any = None,
    outcomes: Any = None,
    baseline_file: str | os.PathLike[str] | None = None,
    missing: str = "zero",
    require: Iterable[str | Requirement] = (),
    pass_k: int | None = None,
    detect: float | None = None,
    columns: Columns | None = None,
    documents: Any = None,
    documents_of: str = "both",
    chunks: str = "collapse",
) -> Comparison:
    """Compare two or more systems on any measures, ours and those of ir_measures.

    Args:
        qrels: what `read_qrels` takes.
        systems: name -> what `read_run` takes, or a list of several runs of the system (replicates); two or more. Values of
            replicates are averaged query by query, and all tests are over queries.
        measures: names, measure objects or both. `goodgain measures` shows the better direction of each. For a measure
            that only a provider of ir_measures knows, higher is better.
        rel: the smallest good label, for measures of iterations without their own `rel`. None: 2.
        baseline: the system to compare all others with; None compares all pairs, a later system with an earlier one.
        against: `previous` compares each system only with the one before it, for the stages of a pipeline. Holm's
            method then corrects over these pairs only.
        iterations: also compare measures of ours without @ at each fixed iteration 1..iterations. A list has them
            compared at exactly these iterations.
        seed: the seed of the randomisation test and the bootstrap; the same seed gives the same numbers.
        resamples: number of resamples of the test and of the bootstrap; at most 1,000,000.
        alpha: a difference is significant if the Holm-corrected p of the randomisation test is at most alpha. The level
            of the interval is 1 - alpha.
        order: how several iterations become one ranking for classic measures: `seen`, `interleaved` or `last`.
        provider: the provider of ir_measures for the classic measures.
        bounds: also return the range of means and differences once unjudged documents are labelled, each from 0 to the
            largest label of the qrels and alike for all systems. Measures that a provider computes, or that can fall
            when a label rises, have no bounds. Runs are read into memory.
        groups: a file or a frame of query_id and group, to compare on each group of queries too.
        outcomes: a file or a frame of query_id, system and columns of numbers, such as solved (0 or 1). Each column is
            compared as one more measure, for which higher is better, and correlated with the others. `funnel(...).per_query`
            is such a frame: its columns have their own directions.
        baseline_file: a file of `Comparison.write_baseline`, to compare with; its system is called `baseline`. One run is
            enough then.
        missing: what a judged query is that one of several runs lacks: `zero` scores it as a query without a search, as
            everywhere; `absent` leaves this run out for this query, unless all runs lack it.
        require: lines such as `nCG@3>=0.5`, for `flips`; their measures are compared too. `check_requirements` checks them.
        pass_k: k of `flips`; None: the smallest number of runs of a query.
        detect: the difference for `detectable`; None: the observed one.
        columns: name in the source -> name here, for columns of runs or qrels with other names: {"step": "iteration"}.
        documents, documents_of, chunks: as in `evaluate`.

    Returns:
        A `Comparison` on all queries of the qrels. A query that a run lacks counts as one without a search (N = 0).
        A pair leaves out the queries for which one of both systems has no value. Where lower is better, a share of the
        results (SRR, Fallout, Unjudged) has no value without results. Every mean is over queries.

    Raises:
        InputError: fewer than two systems, an unknown baseline, a baseline together with `against`, unreadable input,
            two systems that share no judged query, or a baseline file of other judgments.
        MeasureError: a measure is unknown, or cannot be computed from this input.

    Source: Smucker, Allan and Carterette, CIKM 2007 (tests); Carterette, TOIS 30(1), 2012 (many systems).

    >>> qrels = {f"q{number}": {"a": 3, "b": 0} for number in range(6)}
    >>> old, new = ({query_id: {doc_id: 1.0} for query_id in qrels} for doc_id in "ba")
    >>> found = compare(qrels, {"old": old, "new": new}, "RR")
    >>> found.pairs.select("system", "against", "difference", "wins", "p_randomisation_holm", "verdict").rows()
    [('new', 'old', 1.0, 6, 0.03125, 'better')]
    """
    runs, runs_of = name_runs(check_systems(systems, least=2 if baseline_file is None else 1))
    question = Question(
        measures=measures, runs_of=runs_of, rel=rel, baseline=baseline, against=against, iterations=iterations, seed=seed,
        resamples=resamples, alpha=alpha, order=order, provider=provider, bounds=bounds, groups=groups, outcomes=outcomes,
        baseline_file=baseline_file, missing=missing, require=[*require], pass_k=pass_k, detect=detect,
    )  # fmt: skip
    judged, runs = map_documents(qrels, runs, documents, documents_of, chunks, columns=columns)
    of_labels: list[Note] = []
    with collect_notices(lambda one: of_labels.append(Note(one.text, one.minor))):
        warn_of_labels(judged.frame, question.asked, rel=rel, provider=provider)
    kept = question.read_baseline(judged)

    def score(run: Run | RunFile) -> ScoredRun:
        return question.finish_run(judged, run, question.score_run(judged, run), kept)

    return compare_scores(question, judged.query_ids, use_each(judged, runs, score, columns=columns), kept, of_labels)


def compare_scores(
    question: Question,
    query_ids: pl.Series,
    runs: Mapping[str, ScoredRun],
    kept: Scores | None = None,
    of_labels: Sequence[Note] = (),
) -> Comparison:
    """Compare systems by the scores of their runs, and those of the baseline file, on the judged queries.

    `of_labels` are the notes on the qrels alone.
    """
    asked, needed, names, settings = question.asked, question.needed, question.systems, question.settings
    scored = {name: run.scores for name, run in runs.items()}
    scores = {} if kept is None else {BASELINE: kept}
    for name, of in question.runs_of.items():
        scores[name] = average_scores([scored[run] for run in of], needed, missing=question.missing)
    compared_names = [(names[one], names[other]) for one, other in question.pairs]
    few_shared = describe_shared_queries({name: of.queries for name, of in scores.items()}, compared_names)
    queries = {name: of.queries for name, of in {**scores, **scored}.items() if name in scored or name == BASELINE}
    values, given = _stack_values(question, scores, query_ids)
    solved = [] if question.table is None else question.table.columns[2:]
    matrices = arrange_values(values, [*map(str, needed), *solved], names, query_ids)
    solved = check_outcomes({name: matrices[name] for name in solved})
    better = {str(measure): find_direction(measure) for measure in asked}
    better |= {name: FUNNEL.get(name, "up") for name in solved}
    compared = ComparedValues(
        matrices={name: matrices[name] for name in better},
        better=better,
        measures=[*map(str, asked)],
        outcomes=solved,
        pairs=question.pairs,
        query_ids=query_ids,
        settings=settings,
        need_results={str(measure) for measure in asked if needs_results(measure)},
        scores=scores,
        members=None if question.groups is None else read_groups(question.groups, query_ids),
        lines=question.lines,
        pass_k=question.pass_k,
    )
    about = tabulate_systems(scores, matrices)
    means, pairs = tabulate_means(compared.matrices, better, names), add_costs(compared.test(), about)
    reaches = {name: run.reach for name, run in runs.items() if run.reach is not None}
    if reaches:
        means, pairs = add_bounds_of_means(means, reaches), add_bounds(pairs, asked, reaches)
    replicates = tabulate_replicates(compared.runs, better)
    alpha, detect = settings.alpha, question.detect
    detectable = tabulate_detectable(pairs, compared.matrices, names, replicates, alpha=alpha, detect=detect)
    notes = [
        *of_labels,
        *([Note(few_shared)] if few_shared else []),
        *list_notes(asked, matrices, about, queries, outcomes=solved),
        *list_replicate_notes(scores, compared.runs, len(query_ids)),
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
        notes=(
            *(note.text for note in notes),
            *describe_ends(scored if kept is None else {**scored, BASELINE: kept}, asked),
            *list_remarks(scores, detectable, alpha=alpha, detect=detect),
        ),
        signature=_sign(question, compared),
        outcomes=None if given is None else _widen(given, solved),
        scores=scores,
        replicates=replicates,
        detectable=detectable,
        compared=compared,
        rel=question.rel,
    )


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


def _sign(question: Question, compared: ComparedValues) -> dict[str, Any]:
    """Return the settings behind a comparison: those of its scores, of its tests, and digests of its tables."""
    of_run = ("absent_from_run", "without_judgments", "without_value", "unjudged", "replicates")
    scores, members, table = compared.scores, compared.members, question.table
    *_, last = scores.values()  # never that of a baseline file
    several = [f"{name}:{len(of.replicates)}" for name, of in scores.items() if of.replicates]
    made = {name: value for name, value in last.signature.items() if name not in (*of_run, *Reading._fields)}
    made |= compared.settings._asdict()
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
