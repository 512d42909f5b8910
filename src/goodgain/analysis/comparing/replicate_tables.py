"""Builds tables on repeated runs: spread, noise, flips (some runs pass, others fail), and numbers of queries and runs needed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from goodgain.analysis.comparing.pairs_table import arrange_values, match_pair
from goodgain.analysis.comparing.rendering import format_number
from goodgain.analysis.comparing.replicates import (
    POWER,
    Flips,
    Spread,
    compute_detectable_difference,
    compute_power,
    compute_queries_needed,
    compute_replicates_needed,
    count_flips,
    measure_noise,
    measure_spread,
)
from goodgain.analysis.comparing.required_lines import passes
from goodgain.files.tables import Table
from goodgain.measures.scores import Scores, find_values
from goodgain.statistics.statistical_tests import (
    Matrix,
    count_least_queries,
    find_spread,
    lacks_signs,
    subtract_without_residue,
)

if TYPE_CHECKING:
    from goodgain.analysis.comparing.comparison import Comparison

_TEXTS = ("system", "against", "measure", "requirement")
_COUNTS = ("replicates", "k", "queries", "pairs")
#: System -> measure -> its replicates.
Runs = Mapping[str, Mapping[str, Matrix]]


def arrange_runs(scores: Scores, measures: Sequence[str], query_ids: pl.Series) -> dict[str, Matrix]:
    """Return a dict from measures to matrices of one system, with a row per run and a column per query. A missing value is NaN."""
    runs = scores.replicates or (scores,)
    missing = scores.signature.get("missing", "zero")
    names = [str(k) for k in range(len(runs))]
    tables = [
        find_values(of, missing).select("query_id", "measure", "value", system=pl.lit(name))
        for name, of in zip(names, runs, strict=True)
    ]
    return arrange_values(pl.concat(tables), measures, names, query_ids)


def _make_frame(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> pl.DataFrame:
    counts = dict.fromkeys(_COUNTS, pl.Int64)
    types = {name: pl.String if name in _TEXTS else counts.get(name, pl.Float64) for name in columns}
    return pl.DataFrame(rows, schema=types, orient="row")


def tabulate_replicates(found: Comparison) -> pl.DataFrame:
    better = found.question.better
    rows = [
        (system, measure, len(values), *measure_spread(values, higher_is_better=better[measure] != "down"))
        for system, of in found.runs.items()
        for measure, values in of.items()
        if len(values) > 1
    ]
    return _make_frame(["system", "measure", "replicates", *Spread._fields], rows)


def tabulate_noise(found: Comparison) -> pl.DataFrame:
    rows, systems = [], [*found.runs]
    for measure, *pair in found.pairs.select("measure", "system", "against").iter_rows():
        if measure not in found.runs[pair[1]]:
            continue
        tested = found.matrices[measure][[systems.index(name) for name in pair]]
        has_both = np.isfinite(tested).all(axis=0)
        runs, baseline = (found.runs[name][measure][:, has_both] for name in pair)
        noise = measure_noise(baseline, np.isfinite(runs).sum(axis=0).astype(float))
        if noise is not None:
            rows.append((*pair, measure, noise.floor, noise.two_single_runs))
    return _make_frame(["system", "against", "measure", "floor", "two_single_runs"], rows)


def tabulate_flips(found: Comparison) -> pl.DataFrame:
    rows = []
    for system, of in found.runs.items():
        for line in found.question.lines:
            values = of[str(line.measure)]
            if len(values) > 1 and line.bound is not None:
                flips = count_flips(passes(values, line.sign, line.bound), np.isfinite(values), found.question.pass_k)
                rows.append((system, line.text, *flips))
    return _make_frame(["system", "requirement", *Flips._fields], rows)


def tabulate_detectable(found: Comparison) -> pl.DataFrame:
    """Return `Comparison.detectable` for unclear pairs or, if `detect` is given, for pairs with p-values."""
    alpha, detect, systems = found.question.settings.alpha, found.question.detect, found.question.systems
    with_test = found.pairs.drop_nulls("p_randomisation")
    pairs_of = dict(with_test.group_by("measure").len().iter_rows())
    noises = {row[:2]: (row[2], row[4]) for row in found.replicates.iter_rows()}
    rows: list[tuple[Any, ...]] = []
    asked = with_test if detect is not None else found.pairs.filter(verdict="unclear")
    for measure, system, against, observed in asked.select("measure", "system", "against", "difference").iter_rows():
        both = match_pair(found.matrices[measure], (systems.index(system), systems.index(against)))
        differences = subtract_without_residue(*both)
        queries, number = len(differences), pairs_of.get(measure, 1)
        if lacks_signs(found.question.settings, number):  # a note says so
            continue
        # the randomisation test decides, and needs more queries than the t-test
        least = count_least_queries(alpha, number)
        level = alpha / number
        spread = float(find_spread(differences[None, :])[0]) if queries > 1 else 0.0
        shown = compute_detectable_difference(1.0, queries, alpha=level)
        if not spread or shown is None:
            continue
        known = (spread * shown, queries, POWER) if queries >= least else (None, queries, None)
        rows.append((measure, system, against, *known, None, number))
        difference = abs(observed) if detect is None else detect
        needed = compute_queries_needed(difference, spread, alpha=level)
        needed = None if needed is None else max(needed, least)
        power = None if needed is None else compute_power(difference, spread, needed, alpha=level)
        runs_of, noise = noises.get((system, measure), (1, None))
        runs_of_other, other = noises.get((against, measure), (1, None))
        runs = None
        if noise is not None and other is not None and difference and queries >= least:
            given = (noise, other), (runs_of, runs_of_other)
            runs = compute_replicates_needed(difference, differences, *given, alpha=level)
        rows.append((measure, system, against, difference, needed, power, runs, number))
    return _make_frame(["measure", "system", "against", "difference", "queries", "power", "replicates", "pairs"], rows)


def build_replicate_tables(comparison: Comparison, places: int, *, brief: bool) -> list[Table]:
    """Return the tables of replicates, noise and flips; empty tables are left out. `brief` leaves out variances."""
    replicates = comparison.replicates.drop("within", "between") if brief else comparison.replicates
    titles = {
        "Repeated runs": (replicates.rename({"replicates": "runs"}), 2, "runs"),
        "Noise of reruns (floor: one-sided 5 %, two single runs: 95 %)": (comparison.noise, 3, "noise"),
        "Runs that pass a line": (comparison.flips, 2, "flips"),
    }
    tables = []
    for title, (frame, words, label) in titles.items():
        header = [name.replace("_", " ") for name in frame.columns]
        rows = [[format_number(cell, places) for cell in row] for row in frame.iter_rows()]
        tables += [Table.of(title, header, words, rows, label)] * bool(rows)
    return tables
