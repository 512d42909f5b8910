"""The tables of a comparison about repeated runs: their spread, noise and flips, and how many queries it takes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from goodgain.analysis.comparing.comparison_notes import Note
from goodgain.analysis.comparing.pairs_table import arrange_values, match_pair
from goodgain.analysis.comparing.rendering import count_queries, format_number
from goodgain.analysis.comparing.replicates import (
    LEAST_QUERIES,
    POWER,
    Flips,
    Noise,
    Spread,
    compute_detectable_difference,
    compute_power,
    compute_queries_needed,
    compute_replicates_needed,
    count_flips,
    measure_noise,
    measure_spread,
)
from goodgain.analysis.comparing.required_lines import Requirement, passes
from goodgain.analysis.comparing.statistical_tests import (
    Matrix,
    count_least_queries,
    find_spread,
    subtract_without_residue,
)
from goodgain.errors import count_of
from goodgain.files.tables import Table
from goodgain.measures.scores import Scores, find_values

if TYPE_CHECKING:
    from goodgain.analysis.comparing.comparison import Comparison

_REPLICATES = {
    **dict.fromkeys(("system", "measure"), pl.String),
    "replicates": pl.Int64,
    **dict.fromkeys(Spread._fields, pl.Float64),
}
_NOISE = {
    **dict.fromkeys(("system", "against", "measure"), pl.String),
    **dict.fromkeys(("floor", "two_single_runs"), pl.Float64),
}
_FLIPS = {
    **dict.fromkeys(("system", "requirement"), pl.String),
    **dict.fromkeys(Flips._fields, pl.Float64),
    "k": pl.Int64,
}
_DETECTABLE = {
    **dict.fromkeys(("measure", "system", "against"), pl.String),
    "difference": pl.Float64,
    "queries": pl.Int64,
    "power": pl.Float64,
    "replicates": pl.Int64,
    "pairs": pl.Int64,
}

#: Differences that a note lists.
_EXAMPLES = 3
#: System -> measure -> its replicates.
Runs = Mapping[str, Mapping[str, Matrix]]


def arrange_runs(scores: Scores, measures: Sequence[str], query_ids: pl.Series) -> dict[str, Matrix]:
    """Return measure -> matrix of one system: a row per run, a column per query; a missing value is NaN."""
    runs = scores.replicates or (scores,)
    missing = scores.signature.get("missing", "zero")
    names = [str(k) for k in range(len(runs))]
    tables = [
        find_values(of, missing).select("query_id", "measure", "value", system=pl.lit(name))
        for name, of in zip(names, runs, strict=True)
    ]
    return arrange_values(pl.concat(tables), measures, names, query_ids)


def tabulate_replicates(runs: Runs, better: Mapping[str, str | None]) -> pl.DataFrame:
    """Return the columns of `Comparison.replicates`, for systems with several runs."""
    rows = [
        (system, measure, len(values), *measure_spread(values, higher_is_better=better[measure] != "down"))
        for system, of in runs.items()
        for measure, values in of.items()
        if len(values) > 1
    ]
    return pl.DataFrame(rows, schema=_REPLICATES, orient="row")


def find_noise(runs: Runs, system: str, against: str, measure: str, tested: Matrix | None = None) -> Noise | None:
    """Return the noise of the runs of `against` for a comparison with `system`; None if it has too few.

    `tested` has a row for each of both. Queries for which one has no value are left out.
    """
    kept = slice(None) if tested is None else np.isfinite(tested).all(axis=0)
    others = np.isfinite(runs[system][measure][:, kept]).sum(axis=0)
    return measure_noise(runs[against][measure][:, kept], others.astype(float))


def tabulate_noise(runs: Runs, pairs: pl.DataFrame, tested: Mapping[str, Matrix]) -> pl.DataFrame:
    """Return the columns of `Comparison.noise`: of each pair whose second system has several runs of enough queries."""
    rows, systems = [], [*runs]
    for measure, system, against in pairs.select("measure", "system", "against").iter_rows():
        both = tested[measure][[systems.index(system), systems.index(against)]]
        noise = find_noise(runs, system, against, measure, both) if measure in runs[against] else None
        if noise is not None:
            rows.append((system, against, measure, noise.floor, noise.two_single_runs))
    return pl.DataFrame(rows, schema=_NOISE, orient="row")


def tabulate_flips(runs: Runs, lines: Sequence[Requirement], k: int | None) -> pl.DataFrame:
    """Return the columns of `Comparison.flips`, of lines with a number and systems with several runs; k as in `count_flips`."""
    rows = []
    for system, of in runs.items():
        for line in lines:
            values = of[str(line.measure)]
            if len(values) > 1 and line.bound is not None:
                passed = passes(values, line.sign, line.bound)
                rows.append((system, line.text, *count_flips(passed, np.isfinite(values), k)))
    return pl.DataFrame(rows, schema=_FLIPS, orient="row")


def tabulate_detectable(
    pairs: pl.DataFrame,
    tested: Mapping[str, Matrix],
    systems: Sequence[str],
    replicates: pl.DataFrame,
    *,
    alpha: float,
    detect: float | None,
) -> pl.DataFrame:
    """Return the columns of `Comparison.detectable`: of unclear pairs, and of all pairs with `detect`.

    The level is alpha / pairs: Holm's method tests the smallest p of so many pairs at it. `tested` has a row per system.
    """
    pairs_of = dict(pairs.drop_nulls("p_randomisation").group_by("measure").len().iter_rows())
    noises = {row[:2]: (row[2], row[4]) for row in replicates.iter_rows()}
    rows: list[tuple[Any, ...]] = []
    asked = pairs.drop_nulls("p_randomisation") if detect is not None else pairs.filter(verdict="unclear")
    for measure, system, against, observed in asked.select("measure", "system", "against", "difference").iter_rows():
        both = match_pair(tested[measure], (systems.index(system), systems.index(against)))
        differences = subtract_without_residue(*both)
        queries, number = len(differences), pairs_of.get(measure, 1)
        least = count_least_queries(alpha, number)  # the t-test has power on fewer, but the randomisation test decides
        level = alpha / number
        spread = float(find_spread(differences[None, :])[0]) if queries > 1 else 0.0
        if not spread:
            continue
        shown = compute_detectable_difference(1.0, queries, alpha=level)
        if shown is None:
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
    return pl.DataFrame(rows, schema=_DETECTABLE, orient="row")


def list_replicate_notes(scores: Mapping[str, Scores], runs: Runs, queries: int) -> Iterator[Note]:
    several = {name: of for name, of in scores.items() if of.replicates}
    if several and queries < LEAST_QUERIES:
        yield Note(f"Intervals over {count_queries(queries)} are too narrow: so few do not show how much queries vary.")
    for name, of in several.items():
        lacking = [run.queries.only_judged for run in of.replicates]
        left_out = sum(int((~ids.is_in(of.queries.only_judged.implode())).sum()) for ids in lacking)
        if left_out and "missing" in of.signature:
            yield Note(
                f"{name}: a run lacks a query that another run has, {left_out:,} times. There the mean is over fewer runs."
            )
        noises = [(measure, find_noise(runs, name, name, measure)) for measure in runs[name]]
        together = [measure for measure, noise in noises if noise is not None and noise.dependent]
        if together:
            yield Note(
                f"The runs of {name} differ on many queries at once ({', '.join(together)}). Their noise is larger than the "
                "noise floor, which takes queries as independent."
            )


def list_remarks(
    scores: Mapping[str, Scores], detectable: pl.DataFrame, *, alpha: float, detect: float | None
) -> Iterator[str]:
    """Yield what a comparison says without a notice: that the noise is unknown, and how many queries it takes."""
    if not any(of.replicates for of in scores.values()):
        yield "Each system has one run, so the noise of a rerun is unknown. Give several: NAME=a.run,b.run, or a list of runs."
    if detectable.height:
        yield describe_detectable(detectable, alpha=alpha, detect=detect)


def describe_detectable(detectable: pl.DataFrame, *, alpha: float, detect: float | None, most: int = _EXAMPLES) -> str:
    """Return the difference that these queries show, or that they are too few, and the queries that a difference takes."""
    rows = detectable.rows(named=True)
    pairs = [*zip(rows[::2], rows[1::2], strict=True)]
    what = "the " if detect is not None else "the observed "
    shown, before = [], None
    for known, needed in pairs[:most]:  # pairs can have different queries
        asked = f"{what}{needed['difference']:.4f}"
        of_pair = f" of {known['system']} against {known['against']}"
        if known["difference"] is None:
            shown.append(_describe_needed(needed, f"{asked}{of_pair} in {known['measure']}"))
            continue
        number = "" if known["queries"] == before else f"{count_queries(known['queries'])} can show "
        can_show = f"{number}a difference of {known['difference']:.4f} or more in {known['measure']}"
        shown.append(f"{can_show}; {_describe_needed(needed, f'{asked}{of_pair}')}")
        before = known["queries"]
    more = f"; {count_of(len(pairs) - most, 'more difference')}" if len(pairs) > most and most > 1 else ""
    corrected = max(known["pairs"] for known, _ in pairs[:most])
    holm = f", Holm's correction over {corrected} pairs" if corrected > 1 else ""
    said = f"{'; '.join(shown)}{more} (power {POWER:g}{holm})."
    if few := [known["pairs"] for known, _ in pairs[:most] if known["difference"] is None]:
        in_each = f" in each of {few[0]} pairs" if few[0] > 1 else ""
        least = count_least_queries(alpha, few[0])
        said = f"{said[0].upper()}{said[1:]}"
        return f"With fewer than {least} queries{in_each} no difference can be significant at {alpha:g}. {said}"
    return said


def _describe_needed(needed: Mapping[str, Any], asked: str) -> str:
    runs = f", or {count_of(needed['replicates'], 'run')} of each system" if needed["replicates"] is not None else ""
    if needed["queries"] is None:
        return f"no number of queries suffices for {asked}"
    return f"{asked} takes {count_queries(needed['queries'])}{runs}"


def build_replicate_tables(comparison: Comparison, places: int, *, brief: bool) -> list[Table]:
    """Return the tables of replicates, noise and flips that have rows; `brief`: without the variances."""
    replicates = comparison.replicates.drop("within", "between") if brief else comparison.replicates
    titles = {
        "Repeated runs": (replicates.rename({"replicates": "runs"}), 2, "runs"),
        "Noise of reruns (floor: one-sided 5 %, two single runs: 95 %)": (comparison.noise, 3, "noise"),
        "Runs that pass a line": (comparison.flips, 2, "flips"),
    }
    tables = []
    for title, (frame, words, label) in titles.items():
        if frame.height:
            rows = [
                [str(cell) if isinstance(cell, (str, int)) else format_number(cell, places) for cell in row]
                for row in frame.iter_rows()
            ]
            tables.append(Table.of(title, [name.replace("_", " ") for name in frame.columns], words, rows, label))
    return tables
