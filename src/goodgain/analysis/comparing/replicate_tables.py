"""Builds tables on repeated runs: spread, noise, flips (some runs pass, others fail), and numbers of queries and runs needed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from goodgain.analysis.comparing.comparison_question import Question
from goodgain.analysis.comparing.pairs_table import arrange_values, match_pair
from goodgain.analysis.comparing.replicates import (
    POWER,
    Flips,
    RunNoise,
    Spread,
    compute_detectable_difference,
    compute_power,
    compute_queries_needed,
    compute_replicates_needed,
    compute_share_of_reruns,
    count_flips,
    measure_noise,
    measure_spread,
)
from goodgain.analysis.comparing.required_lines import Requirement, passes
from goodgain.measures.changed_scores import find_values
from goodgain.measures.scores import Scores
from goodgain.statistics.statistical_tests import (
    Matrix,
    Vector,
    count_least_queries,
    find_spread,
    lacks_signs,
    subtract_without_residue,
)

_TEXTS = ("system", "against", "measure", "requirement")
_COUNTS = ("replicates", "k", "queries", "pairs")
#: System -> measure -> its replicates.
Runs = Mapping[str, Mapping[str, Matrix]]


def arrange_runs(scores: Scores, measures: Sequence[str], query_ids: pl.Series) -> dict[str, Matrix]:
    """Return a dict from measures to matrices of one system, with a row per run and a column per query. A missing value is NaN."""
    runs = scores.replicates or (scores,)
    missing = scores.signature.get("missing", "zero")
    names = [str(number) for number in range(len(runs))]
    tables = [
        find_values(run, missing).select("query_id", "measure", "value", system=pl.lit(name))
        for name, run in zip(names, runs, strict=True)
    ]
    return arrange_values(pl.concat(tables), measures, names, query_ids)


def tabulate_replicates(runs: Runs, better: Mapping[str, str | None]) -> pl.DataFrame:
    """Return `Comparison.replicates`. `better` maps measures to their better direction."""
    rows = []
    for system, runs_of_system in runs.items():
        for measure, values in runs_of_system.items():
            if len(values) > 1:
                spread = measure_spread(values, higher_is_better=better[measure] != "down")
                rows.append((system, measure, len(values), *spread))
    return _make_frame(["system", "measure", "replicates", *Spread._fields], rows)


def tabulate_noise(
    pairs: pl.DataFrame, runs: Runs, matrices: Mapping[str, Matrix], replicates: pl.DataFrame
) -> pl.DataFrame:
    """Return `Comparison.noise`. The rows of `matrices` are the systems, in the order of `runs`."""
    systems = list(runs)
    noise_of = _find_noise_of_runs(replicates)
    rows = []
    for measure, system, against in pairs.select("measure", "system", "against").iter_rows():
        if measure not in runs[against]:
            continue
        values = matrices[measure][[systems.index(system), systems.index(against)]]
        has_both = np.isfinite(values).all(axis=0)
        runs_of_system = runs[system][measure][:, has_both]
        runs_of_baseline = runs[against][measure][:, has_both]
        noise = measure_noise(runs_of_baseline, np.isfinite(runs_of_system).sum(axis=0).astype(float))
        if noise is not None:
            differences = subtract_without_residue(*values[:, has_both])
            noises = noise_of.get((system, measure)), noise_of.get((against, measure))
            share = compute_share_of_reruns(differences, *noises)
            rows.append((system, against, measure, noise.floor, noise.two_single_runs, share))
    return _make_frame(["system", "against", "measure", "floor", "two_single_runs", "share_of_reruns"], rows)


def tabulate_flips(runs: Runs, lines: Sequence[Requirement], pass_k: int | None) -> pl.DataFrame:
    """Return `Comparison.flips`. `lines` are the requirements on measures."""
    repeated = {system: values for system, values in runs.items() if any(len(rows) > 1 for rows in values.values())}
    rows = []
    for system, values_of_system in repeated.items():
        for line in lines:
            measure = str(line.measure)
            if line.bound is None:
                continue

            k = pass_k
            if k is None:  # one k for all systems, so that their chances compare
                k = _find_fewest_runs([values[measure] for values in repeated.values()])
            values = values_of_system[measure]
            flips = count_flips(passes(values, line.sign, line.bound), np.isfinite(values), k)
            rows.append((system, line.text, *flips))
    return _make_frame(["system", "requirement", *Flips._fields], rows)


def _find_fewest_runs(systems: Sequence[Matrix]) -> int | None:
    """Return the smallest number of runs with a value that a query of any system has, without queries that have none."""
    numbers = np.concatenate([np.isfinite(values).sum(axis=0) for values in systems])
    known = numbers[numbers > 0]
    return int(known.min()) if len(known) else None


def tabulate_detectable(
    question: Question,
    pairs: pl.DataFrame,
    matrices: Mapping[str, Matrix],
    replicates: pl.DataFrame,
    detect: float | None,
) -> pl.DataFrame:
    """Return `Comparison.detectable` for unclear pairs or, if `detect` is given, for pairs with p-values."""
    alpha, systems = question.settings.alpha, question.systems
    with_test = pairs.drop_nulls("p_randomisation")
    number_of_tests = dict(with_test.group_by("measure").len().iter_rows())
    if question.correct_over == "measures":
        number_of_tests = dict.fromkeys(number_of_tests, with_test.height)
    matrices = question.select_queries_of_test(matrices)
    noise_of = _find_noise_of_runs(replicates)
    selected = with_test if detect is not None else pairs.filter(verdict="unclear")

    rows: list[tuple[Any, ...]] = []
    names_and_difference = selected.select("measure", "system", "against", "difference")
    for measure, system, against, observed in names_and_difference.iter_rows():
        values = match_pair(matrices[measure], (systems.index(system), systems.index(against)))
        differences = subtract_without_residue(*values)
        corrected = number_of_tests.get(measure, 1)
        multiplied = corrected if question.uses_holm else 1  # by how much the correction multiplies p
        if lacks_signs(question.settings, multiplied):  # a note says so
            continue

        pair = (measure, system, against)
        noises = [noise_of.get((name, measure), RunNoise()) for name in (system, against)]
        goal = abs(observed) if detect is None else detect
        # the randomisation test decides, and needs more queries than the t-test
        least = count_least_queries(alpha, multiplied)
        for numbers in _find_detectable(differences, goal, least, noises, level=alpha / corrected):
            rows.append((*pair, *numbers, corrected))
    return _make_frame(["measure", "system", "against", "difference", "queries", "power", "replicates", "pairs"], rows)


def _find_detectable(
    differences: Vector, goal: float, least: int, noises: Sequence[RunNoise], *, level: float
) -> list[tuple[float | None, int | None, float | None, int | None]]:
    """Return two rows of difference, queries, power and replicates: for the smallest difference, and for the difference `goal`.

    `least` is the number of queries from which a test can be significant. Return no rows if no test is possible.
    """
    queries = len(differences)
    spread = 0.0
    if queries > 1:
        spread = float(find_spread(differences[None, :])[0])
    detectable = compute_detectable_difference(1.0, queries, alpha=level)
    if detectable is None:
        return []
    if not spread:
        if goal and queries < least:  # the test would decide as soon as it can
            return [(None, queries, None, None), (goal, least, 1.0, None)]
        return []

    smallest: tuple[float | None, int | None, float | None, int | None] = (None, queries, None, None)
    if queries >= least:
        smallest = (spread * detectable, queries, POWER, None)

    queries_of_goal = compute_queries_needed(goal, spread, alpha=level)
    power = None
    if queries_of_goal is not None:
        queries_of_goal = max(queries_of_goal, least)
        power = compute_power(goal, spread, queries_of_goal, alpha=level)
    replicates = None
    system, against = noises
    if system.within is not None and against.within is not None and goal and queries >= least:
        variances = (system.within, against.within)
        numbers = (system.runs, against.runs)
        replicates = compute_replicates_needed(goal, differences, variances, numbers, alpha=level)
    return [smallest, (goal, queries_of_goal, power, replicates)]


def _find_noise_of_runs(replicates: pl.DataFrame) -> dict[tuple[str, str], RunNoise]:
    """Return the noise of the runs of each (system, measure) of several runs."""
    rows = replicates.select("system", "measure", "replicates", "within").iter_rows()
    return {(system, measure): RunNoise(runs, within) for system, measure, runs, within in rows}


def _make_frame(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> pl.DataFrame:
    """Return a frame whose types follow from the names of its columns, also without rows."""
    types: dict[str, Any] = {}
    for name in columns:
        types[name] = pl.Float64
        if name in _TEXTS:
            types[name] = pl.String
        elif name in _COUNTS:
            types[name] = pl.Int64
    return pl.DataFrame(rows, schema=types, orient="row")
