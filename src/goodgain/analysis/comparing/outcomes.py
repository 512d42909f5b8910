"""Validates tables of outcomes, such as whether a task was solved, and correlates outcomes with measures."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import ir_measures
import numpy as np
import polars as pl

from goodgain.analysis.comparing.use_of_documents import FUNNEL, RATIO_OF_SUMS
from goodgain.errors import InputError, notice
from goodgain.formats.query_tables import lack_rows
from goodgain.measures.changed_scores import average_values
from goodgain.measures.good_gain import NumIter, NumResults
from goodgain.measures.scores import Scores
from goodgain.options import spell
from goodgain.schema import COMPLETED
from goodgain.statistics.statistical_tests import Matrix, Settings, Vector, draw_queries

#: The largest number of resamples for a correlation, which takes longer than a mean.
_RESAMPLES = 999
#: The number of queries that are compared with all others at a time.
_BLOCK = 500
#: The smallest number of queries with a correlation.
_LEAST_QUERIES = 3


def stack_outcomes(
    outcomes: pl.DataFrame, of_file: pl.DataFrame | None, systems: Sequence[str], measures: Sequence[str]
) -> pl.DataFrame:
    """Return the outcomes of systems: query_id, measure, system, value. `of_file` has the values of a baseline file."""
    table = spell("outcomes")
    names = outcomes.columns[2:]
    of_table = systems
    rows = outcomes.unpivot(index=["query_id", "system"], variable_name="measure")
    if of_file is not None:
        baseline, *of_table = systems
        rows = rows.filter(pl.col("system") != baseline)
        rows_of_file = of_file.filter(pl.col("measure").is_in(names)).select(rows.columns)
        rows = pl.concat([rows, rows_of_file])

    in_table = outcomes.get_column("system").unique().sort().to_list()
    for name in of_table:
        if name not in in_table:
            raise lack_rows(table, name, in_table)
    for outcome in names:
        if outcome in (*measures, str(NumIter), str(NumResults)):
            raise InputError(f"{table} has a column {outcome}, which is also the name of a measure. Rename the column.")

    rows = rows.filter(pl.col("system").is_in(systems))
    rows = rows.sort("measure", pl.col("system").cast(pl.Enum(systems)), "query_id")
    return rows.select("query_id", "measure", "system", "value")


def leave_out_ratio(outcomes: pl.DataFrame) -> pl.DataFrame:
    """Drop `opens_per_good`: it is null for queries that opened nothing good. Raise `InputError` if no outcome is left."""
    if RATIO_OF_SUMS not in outcomes.columns:
        return outcomes
    fact = f"{spell('outcomes')}: {RATIO_OF_SUMS} is a ratio of sums over queries and cannot be compared query by query"
    if len(outcomes.columns) == len(("query_id", "system", RATIO_OF_SUMS)):
        raise InputError(f"{fact}. gg.funnel computes it for each system.")
    notice("ratio_left_out", f"{fact}, so it is left out. gg.funnel computes it for each system.", minor=True)
    return outcomes.drop(RATIO_OF_SUMS)


def leave_out_completed(outcomes: pl.DataFrame, require: Sequence[object]) -> pl.DataFrame | None:
    """Drop the outcome `completed`, unless a requirement names it. Return None if no outcome is left."""
    lines = [str(getattr(line, "measure", line)).strip() for line in require]
    is_required = any(line.startswith(COMPLETED) for line in lines)
    if COMPLETED not in outcomes.columns[2:] or is_required:
        return outcomes
    if (outcomes.get_column(COMPLETED) < 1).any():
        notice(
            "completed_not_tested",
            f"{spell('outcomes')}: {COMPLETED} says whether a trace broke off, and is not tested. To test "
            f"{COMPLETED}, require '{COMPLETED}>=baseline', or rename the column.",
        )
    other_outcomes = outcomes.drop(COMPLETED)
    return other_outcomes if other_outcomes.columns[2:] else None


def check_outcomes(outcomes: Mapping[str, Matrix]) -> list[str]:
    """Return the outcomes that can be compared: those for which at least one query has a value in every system.

    Leave out columns of `gg.funnel` that cannot be compared. Raise `InputError` for any other outcome that cannot be compared,
    or if no outcome is left.
    """
    unknown = []
    for name, values in outcomes.items():
        is_known_everywhere = np.isfinite(values).all(axis=0)
        if not is_known_everywhere.any():
            unknown.append(name)
    shared = [name for name in outcomes if name not in unknown]
    table = spell("outcomes")
    if unknown and not (shared and FUNNEL.keys() >= {*unknown}):
        raise InputError(f"{table} has no query in which every system has a value of {unknown[0]}. Check query ids.")
    if unknown:
        notice(
            "outcomes_of_some_systems",
            f"{table}: {', '.join(unknown)} are not known for every system, and are left out.",
        )
    return shared


def check_completed(outcomes: pl.DataFrame | None, incomplete: str) -> None:
    """Raise `InputError` if the outcomes lack the column `completed`, which `incomplete` needs unless it is `keep`."""
    if outcomes is None or COMPLETED not in outcomes.columns:
        raise InputError(
            f"{spell('incomplete', incomplete)} needs {spell('outcomes')} with a column {COMPLETED}. "
            "goodgain convert --outcomes writes it."
        )


def find_incomplete(
    outcomes: pl.DataFrame | None,
    runs_of: Mapping[str, Sequence[str]],
    file_names: Mapping[str, str],
    query_ids: pl.Series,
    option: str,
) -> dict[str, pl.Series]:
    """Return a dict from runs to the judged queries whose traces broke off. Runs without such queries are left out.

    `file_names` is by run. The names that `convert` gives to the files of replicates end with the replicate. If the replicate
    of a run is unknown, raise `InputError` or, if `option` is `keep`, return one entry for the whole system. `option` is the
    value of `incomplete=`.
    """
    if outcomes is None or COMPLETED not in outcomes.columns:
        return {}
    incomplete = {}
    in_table = outcomes.get_column("system").unique().sort().to_list()
    for system, runs in runs_of.items():
        rows = outcomes.filter(system=system)
        if rows.is_empty() and option == "keep" and in_table and runs_of.keys() >= set(in_table):
            # such tables have rows of broken traces only
            notice(
                "outcomes_of_some_systems",
                f"{spell('outcomes')} has no rows of {system}: its queries count as complete. Add rows of {system}.",
            )
            continue
        if rows.is_empty():
            raise lack_rows(spell("outcomes"), system, in_table)

        is_judged = pl.col("query_id").is_in(query_ids.implode())
        broken = rows.filter((pl.col(COMPLETED) == 0) & is_judged)
        replicate_of = _match_runs(runs, file_names, rows.get_column("replicate"))
        if replicate_of is None and option != "keep":
            replicates = rows.get_column("replicate").unique().drop_nulls().sort()
            raise InputError(
                f"{spell('outcomes')} does not say which run of {system} each row belongs to: the replicates are "
                f"{', '.join(replicates) or 'none'}. Put the replicate into the name of each run, such as {system}.1.run, as "
                "goodgain convert does."
            )
        for run, replicate in (replicate_of or {system: None}).items():
            of_run = broken
            if replicate is not None:
                of_run = broken.filter(replicate=replicate)
            if len(of_run):
                incomplete[run] = of_run.get_column("query_id").unique().sort()
    return incomplete


def _match_runs(
    runs: Sequence[str], file_names: Mapping[str, str], replicates: pl.Series
) -> Mapping[str, str | None] | None:
    """Map each run to its replicate: the end of its file name or, without file names, its place in `runs`. None: unclear."""
    names = set(replicates.unique().drop_nulls())
    has_nulls = replicates.null_count() > 0
    if len(runs) == 1 and len(names) < 2 and not (names and has_nulls):
        return {runs[0]: None}  # None: all rows belong to this run
    if has_nulls:
        return None

    by_file = {run: file_names[run].rpartition(".")[2] for run in runs}
    in_order = {run: str(number) for number, run in enumerate(runs, 1)}
    candidates = [by_file] if any(file_names.values()) else [by_file, in_order]
    for replicate_of in candidates:
        is_unique = len(set(replicate_of.values())) == len(runs)
        if is_unique and names <= set(replicate_of.values()):
            return replicate_of
    return None


def count_as_empty(
    scores: Scores, empty: Scores, query_ids: pl.Series, measures: Sequence[ir_measures.Measure]
) -> Scores:
    """Replace the scores of the queries in `query_ids` by the scores of `empty`, a run without results."""
    is_replaced = pl.col("query_id").is_in(query_ids.implode())

    def replace_rows(values: pl.DataFrame, values_of_empty: pl.DataFrame) -> pl.DataFrame:
        new_rows = values_of_empty.filter(is_replaced).select(values.columns)
        return pl.concat([values.filter(~is_replaced), new_rows]).sort("query_id")

    ours = replace_rows(scores._ours, empty._ours)
    classic = replace_rows(scores._classic, empty._classic)
    return average_values(replace(scores, _ours=ours, _classic=classic), measures)


def correlate(
    values: Mapping[str, Matrix],
    outcomes: Sequence[str],
    measures: Sequence[str],
    systems: Sequence[str],
    settings: Settings,
) -> pl.DataFrame:
    """Return a frame with the columns of `Comparison.correlations`. Matrices in `values` have a row per system."""
    rows = []
    for outcome, measure in product(outcomes, measures):
        for name, x, y in zip(systems, values[measure], values[outcome], strict=True):
            has_both = np.isfinite(x) & np.isfinite(y)
            tau = _find_tau(x[has_both], y[has_both], settings)
            rows.append((name, outcome, measure, int(has_both.sum()), *tau))
    types: dict[str, Any] = dict.fromkeys(("system", "outcome", "measure"), pl.String)
    types["queries"] = pl.Int64
    types |= dict.fromkeys(("tau", "low", "high"), pl.Float64)
    frame = pl.DataFrame(rows, schema=types, orient="row")
    return frame.with_columns(pl.col("tau", "low", "high").fill_nan(None))


def _find_tau(x: Vector, y: Vector, settings: Settings) -> tuple[float, float, float]:
    """Return Kendall's tau and its bootstrap interval; NaN for a constant, or fewer than three queries."""
    is_constant = len(x) < _LEAST_QUERIES or np.ptp(x) == 0 or np.ptp(y) == 0
    if is_constant:
        return np.nan, np.nan, np.nan
    tau = compute_tau(x, y, np.ones((1, len(x))))[0]
    samples = draw_queries(len(x), settings.seed, min(settings.resamples, _RESAMPLES))
    taus = np.concatenate([compute_tau(x, y, times) for times in samples])
    tail = settings.alpha / 2
    low, high = np.nanquantile(taus, [tail, 1 - tail])
    return float(tau), float(low), float(high)


def compute_tau(x: Vector, y: Vector, times: Matrix) -> Vector:
    """Return Kendall's tau-b of x and y for each row of `times`, the weights of the queries. NaN if x or y is constant.

    tau-b = sum sx·sy / sqrt(sum sx² · sum sy²) over pairs of queries, where sx and sy are the signs of the differences.
    SciPy computes the same value, but takes a millisecond per row.

    Source: Kendall, Biometrika 33(3), 1945.

    >>> x, y = np.array([1.0, 2.0, 3.0]), np.array([0.0, 1.0, 1.0])
    >>> compute_tau(x, y, np.array([[1.0, 1.0, 1.0], [2.0, 1.0, 0.0]])).round(4).tolist()
    [0.8165, 1.0]
    """
    sums = np.zeros((3, len(times)))
    for start in range(0, len(x), _BLOCK):
        block = slice(start, start + _BLOCK)
        # a row per query, a column per query of the block
        signs_x = np.sign(x[:, None] - x[block])
        signs_y = np.sign(y[:, None] - y[block])
        for k, signs in enumerate((signs_x * signs_y, np.abs(signs_x), np.abs(signs_y))):
            weighted = (times @ signs) * times[:, block]
            sums[k] += weighted.sum(axis=1)
    with np.errstate(invalid="ignore"):
        tau: Vector = sums[0] / np.sqrt(sums[1] * sums[2])
    return tau
