"""Compares systems: scores them, arranges one value per query and system, and tests each pair."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import ir_measures
import polars as pl

from goodgain.comparing.baseline_file import check_run, read_baseline
from goodgain.comparing.comparison import Comparison
from goodgain.comparing.comparison_notes import Note, describe_shared_queries, list_notes
from goodgain.comparing.difference_bounds import Reach, add_bounds, add_bounds_of_means, find_reach
from goodgain.comparing.outcomes import check_outcomes, correlate, leave_out_completed, leave_out_ratio, stack_outcomes
from goodgain.comparing.pairs_table import (
    add_costs,
    arrange_values,
    compare_pairs,
    decide,
    tabulate_means,
    tabulate_systems,
)
from goodgain.comparing.replicate_tables import (
    arrange_runs,
    list_remarks,
    list_replicate_notes,
    tabulate_detectable,
    tabulate_flips,
    tabulate_noise,
    tabulate_replicates,
)
from goodgain.comparing.required_lines import Requirement, parse_requirement
from goodgain.comparing.statistical_tests import Matrix, Settings, check_settings
from goodgain.comparing.use_of_documents import FUNNEL
from goodgain.counting.run_in_blocks import RunFile
from goodgain.counting.run_opening import map_documents, use_each
from goodgain.errors import InputError, check_whole_number, collect_notices, notice
from goodgain.evaluation import score_run
from goodgain.formats import Run
from goodgain.formats.any_source import Columns
from goodgain.formats.digest import digest_rows
from goodgain.formats.query_tables import read_groups, read_outcomes
from goodgain.formats.run import Reading
from goodgain.formats.systems import check_systems, name_runs, stack_systems
from goodgain.measures.declaration import GoodGainMeasure
from goodgain.measures.good_gain import NumIter, NumResults
from goodgain.measures.names import Measures, find_direction, find_results_counts, needs_results, parse_measures
from goodgain.measures.parameters import is_number
from goodgain.measures.replicate_scores import average_scores, check_missing, leave_out_empty, sign_reading
from goodgain.measures.scores import Scores
from goodgain.measures.thresholds import warn_of_labels

#: The name of the system of a baseline file.
_BASELINE = "baseline"

#: Limit of `detect=`.
_LARGEST_DIFFERENCE = 1e9

_VALUES = ("query_id", "measure", "system", "value")

#: Limit of `iterations=`, which makes a measure for each iteration.
_MOST_ITERATIONS = 1_000


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
    check_missing(missing)
    runs, runs_of = name_runs(check_systems(systems, least=2 if baseline_file is None else 1))
    if baseline_file is not None:
        baseline = _check_baseline_file(runs_of, baseline, against, bounds=bounds)
    if bounds and len(runs) > len(runs_of):
        raise InputError("bounds=True needs one run of each system. Leave out bounds=True, or give one run each.")
    if detect is not None and not (is_number(detect) and 0 < detect < _LARGEST_DIFFERENCE):
        raise InputError(f"detect={detect!r}: give a difference above 0, such as 0.02")
    if pass_k is not None:
        check_whole_number("pass_k", pass_k, 1)
    names = [*([_BASELINE] if baseline_file is not None else []), *runs_of]
    compared = _choose_pairs(names, baseline, against)
    settings = check_settings(seed, resamples, alpha)
    require = list(require)
    table = None if outcomes is None else leave_out_completed(leave_out_ratio(read_outcomes(outcomes)), require)
    solved = [] if table is None else table.columns[2:]
    lines = [parse_requirement(line, rel=rel, outcomes=solved) if isinstance(line, str) else line for line in require]
    lines = [line for line in lines if not isinstance(line.measure, str)]  # those on outcomes have no replicates
    asked = add_fixed_iterations(parse_measures(measures, rel=rel), iterations)
    asked = parse_measures([*asked, *(line.measure for line in lines)])
    judged, runs = map_documents(qrels, runs, documents, documents_of, chunks, columns=columns)
    of_labels: list[Note] = []
    with collect_notices(lambda one: of_labels.append(Note(one.text, one.minor))):
        warn_of_labels(judged.frame, asked, rel=rel, provider=provider)
    needed = add_counts(asked)
    scores = {}
    if baseline_file is not None:
        scores[_BASELINE] = read_baseline(baseline_file, judged, needed, order=order, missing=missing)
    unasked = [measure for measure in needed if measure not in asked]

    def score(run: Run | RunFile) -> tuple[Scores, Reach | None]:
        options: dict[str, Any] = {"rel": rel, "order": order, "provider": provider, "bounds": bounds}
        of_run = score_run(judged, run, needed, **options, low=False, unasked=unasked)
        if baseline_file is not None:
            check_run(baseline_file, scores[_BASELINE].signature, of_run.signature, needed)
        of_run = leave_out_empty(of_run, asked)
        return of_run, find_reach(of_run, judged, run, needed, order=order) if bounds else None

    found = use_each(judged, runs, score, columns=columns)
    scored = {name: of_run for name, (of_run, _) in found.items()}
    reaches = {name: reach for name, (_, reach) in found.items() if reach is not None}
    scores |= {
        name: average_scores([scored[run] for run in of], needed, missing=missing) for name, of in runs_of.items()
    }
    few_shared = describe_shared_queries(
        {name: of.queries for name, of in scores.items()}, [(names[one], names[other]) for one, other in compared]
    )
    queries = {name: of.queries for name, of in {**scores, **scored}.items() if name in scored or name == _BASELINE}
    query_ids = judged.query_ids
    better = {str(measure): find_direction(measure) for measure in asked}
    by_system = stack_systems({name: of.per_query for name, of in scores.items()})
    # one value per query, measure and system: the only place where several runs of a system can be averaged
    values = by_system.filter(pl.col("measure").is_in([*map(str, needed)])).select(*_VALUES)
    given = None
    if table is not None:
        given = stack_outcomes(table, by_system.filter(system=_BASELINE) if baseline_file else None, names, [*better])
        values = pl.concat([values, given.filter(pl.col("query_id").is_in(query_ids.implode()))])
    matrices = arrange_values(values, [*map(str, needed), *solved], names, query_ids)
    solved = check_outcomes({name: matrices[name] for name in solved})
    correlations = correlate(matrices, solved, [*better], names, settings) if solved else None
    better |= {name: FUNNEL.get(name, "up") for name in solved}
    tested = {name: matrices[name] for name in better}
    need_results = {str(measure) for measure in asked if needs_results(measure)}
    about = tabulate_systems(scores, matrices)
    means = tabulate_means(tested, better, names)

    def test(values: Mapping[str, Matrix]) -> pl.DataFrame:
        return compare_pairs(values, better, names, compared, settings)

    pairs = add_costs(decide(test(tested), settings.alpha, need_results=need_results), about)
    if bounds:
        means, pairs = add_bounds_of_means(means, reaches), add_bounds(pairs, asked, reaches)
    members = None if groups is None else read_groups(groups, query_ids)
    replicates_of = {name: arrange_runs(of, [*map(str, asked)], query_ids) for name, of in scores.items()}
    replicates = tabulate_replicates(replicates_of, better)
    detectable = tabulate_detectable(pairs, tested, names, replicates, alpha=alpha, detect=detect)
    notes = [
        *of_labels,
        *([Note(few_shared)] if few_shared else []),
        *list_notes(asked, matrices, about, queries, outcomes=solved),
        *list_replicate_notes(scores, replicates_of, len(query_ids)),
    ]
    for note in notes:
        notice(note.text, minor=note.minor)
    beside = {"against": against, "detect": detect, "pass_k": pass_k}
    beside |= {"groups": None if members is None else digest_rows(members)}
    beside |= {"outcomes": None if table is None else digest_rows(table.fill_null(math.nan))}
    return Comparison(
        systems=about,
        coverage=stack_systems({name: of.coverage for name, of in scores.items()}),
        means=means,
        pairs=pairs,
        values=values.filter(pl.col("measure").is_in([*better])).with_columns(pl.col("value").fill_nan(None)),
        baseline=baseline,
        notes=(*(note.text for note in notes), *list_remarks(scores, detectable, alpha=alpha, detect=detect)),
        signature=({"baseline": baseline} if baseline else {})
        | _build_signature(scores, settings)
        | {name: value for name, value in beside.items() if value is not None},
        groups=None
        if members is None
        else decide(_test_groups(tested, members, query_ids, test), settings.alpha, need_results=need_results),
        correlations=correlations,
        outcomes=None if given is None else _widen(given, solved),
        scores=scores,
        replicates=replicates,
        flips=tabulate_flips(replicates_of, lines, pass_k),
        noise=tabulate_noise(replicates_of, pairs, tested),
        detectable=detectable,
        rel=rel,
    )


def _widen(outcomes: pl.DataFrame, names: Sequence[str]) -> pl.DataFrame:
    """Return query_id, system, and a column for each outcome."""
    kept = outcomes.filter(pl.col("measure").is_in(names))
    return kept.pivot("measure", on_columns=names, index=["query_id", "system"])


def _check_baseline_file(runs: Mapping[str, Any], baseline: str | None, against: str | None, *, bounds: bool) -> str:
    """Return the name of the baseline of a file; raise `InputError` for what does not go together with it."""
    if bounds:
        raise InputError("bounds=True needs the run of every system. Leave out baseline_file= or bounds=True.")
    if against is not None or baseline not in (None, _BASELINE):
        raise InputError("baseline_file= is the baseline. Leave out baseline= and against=.")
    if _BASELINE in runs:
        raise InputError(f"a run and the system of baseline_file= are both called {_BASELINE}. Rename the run.")
    return _BASELINE


def _test_groups(
    values: Mapping[str, Matrix],
    members: pl.DataFrame,
    query_ids: pl.Series,
    test: Callable[[Mapping[str, Matrix]], pl.DataFrame],
) -> pl.DataFrame:
    """Test the pairs on the queries of each group; `values` has a column for each of the query ids."""
    tables = []
    for (group,), of in members.group_by("group", maintain_order=True):
        is_member = query_ids.is_in(of.get_column("query_id").implode()).to_numpy()
        tested = test({name: matrix[:, is_member] for name, matrix in values.items()})
        tables.append(tested.select(pl.lit(group).alias("group"), pl.all()))
    return pl.concat(tables)


def _choose_pairs(names: list[str], baseline: str | None, against: str | None) -> list[tuple[int, int]]:
    if baseline is not None and baseline not in names:
        raise InputError(f"baseline {baseline!r} is not one of the systems; they are {', '.join(names)}")
    if against not in (None, "previous"):
        raise InputError(f"against={against!r}: give 'previous', or name a baseline for all systems with baseline=")
    if against is not None and baseline is not None:
        raise InputError(
            f"against='previous' and baseline={baseline!r} name two systems to compare with; give one of them"
        )
    every = range(len(names))
    if against is not None:
        return [(system, system - 1) for system in every[1:]]
    if baseline is not None:
        return [(system, names.index(baseline)) for system in every if names[system] != baseline]
    return [(system, other) for other in every for system in every[other + 1 :]]


def add_counts(measures: Sequence[ir_measures.Measure]) -> list[ir_measures.Measure]:
    """Return the measures, and the counts of iterations and results that a comparison of them needs."""
    counted = find_results_counts(one for one in measures if not needs_results(one))
    return parse_measures([*measures, NumIter, NumResults, *counted.values()])


def add_fixed_iterations(
    measures: Iterable[ir_measures.Measure], iterations: int | Sequence[int] | None
) -> list[ir_measures.Measure]:
    """Return the measures, each of ours without @ at fixed iterations: before it 1..iterations, or the listed ones alone."""
    if iterations is None:
        return list(measures)
    if isinstance(iterations, Sequence):
        numbers: Sequence[int] = [check_whole_number("iterations", number, 1) for number in iterations]
    else:
        numbers = range(1, check_whole_number("iterations", iterations, 1) + 1)
    if not 0 < len(numbers) <= _MOST_ITERATIONS:
        raise InputError(f"iterations={iterations}: give 1 to {_MOST_ITERATIONS:,} iterations, or name the cutoffs.")
    found: list[ir_measures.Measure] = []
    for measure in measures:
        if isinstance(measure, GoodGainMeasure) and measure.cutoff is None and measure.declaration.cutoff == "optional":
            found += [measure @ number for number in numbers]
            if isinstance(iterations, Sequence):
                continue
        found.append(measure)
    return parse_measures(found)


def _build_signature(scores: Mapping[str, Scores], settings: Settings) -> dict[str, Any]:
    of_run = ("absent_from_run", "without_judgments", "without_value", "unjudged", "replicates")
    *_, last = scores.values()  # never that of a baseline file
    several = [f"{name}:{len(of.replicates)}" for name, of in scores.items() if of.replicates]
    made = {
        name: value for name, value in last.signature.items() if name not in (*of_run, *Reading._fields)
    } | settings._asdict()
    missing = {name: of for one in scores.values() for name, of in one.signature.items() if name == "missing"}
    missing |= sign_reading({name: of.signature for name, of in scores.items()})
    return made | missing | ({"replicates": several} if several else {})
