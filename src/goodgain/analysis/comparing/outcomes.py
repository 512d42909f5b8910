"""Validates tables of outcomes, such as whether a task was solved, and correlates outcomes with measures."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product

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
    outcomes: pl.DataFrame, kept: pl.DataFrame | None, systems: Sequence[str], measures: Sequence[str]
) -> pl.DataFrame:
    """Return the outcomes of systems in long form: query_id, measure, system, value. `kept` has the values of a baseline file."""
    table = spell("outcomes")
    found = outcomes.unpivot(index=["query_id", "system"], variable_name="measure")
    if kept is not None:
        kept = kept.filter(pl.col("measure").is_in(outcomes.columns[2:]))
        found = pl.concat([found.filter(pl.col("system") != systems[0]), kept.select(found.columns)])
    known = outcomes.get_column("system").unique().sort().to_list()
    for name in systems if kept is None else systems[1:]:
        if name not in known:
            raise lack_rows(table, name, known)
    for outcome in outcomes.columns[2:]:
        if outcome in (*measures, str(NumIter), str(NumResults)):
            raise InputError(f"{table} has a column {outcome}, which is also the name of a measure. Rename the column.")
    found = found.filter(pl.col("system").is_in(systems))
    found = found.sort("measure", pl.col("system").cast(pl.Enum(systems)), "query_id")
    return found.select("query_id", "measure", "system", "value")


def leave_out_ratio(outcomes: pl.DataFrame) -> pl.DataFrame:
    """Drop `opens_per_good`: it is null for queries that opened nothing good. Raise `InputError` if no outcome is left."""
    if RATIO_OF_SUMS not in outcomes.columns:
        return outcomes
    said = f"{spell('outcomes')}: {RATIO_OF_SUMS} is a ratio of sums over queries and cannot be compared query by query"
    if len(outcomes.columns) == len(("query_id", "system", RATIO_OF_SUMS)):
        raise InputError(f"{said}. gg.funnel computes it for each system.")
    notice("ratio_left_out", f"{said}, so it is left out. gg.funnel computes it for each system.", minor=True)
    return outcomes.drop(RATIO_OF_SUMS)


def leave_out_completed(outcomes: pl.DataFrame, require: Sequence[object]) -> pl.DataFrame | None:
    """Drop the outcome `completed`, unless a requirement names it. Return None if no outcome is left."""
    asked = any(str(getattr(line, "measure", line)).strip().startswith(COMPLETED) for line in require)
    if COMPLETED not in outcomes.columns[2:] or asked:
        return outcomes
    if (outcomes.get_column(COMPLETED) < 1).any():
        notice(
            "completed_not_tested",
            f"{spell('outcomes')}: {COMPLETED} says whether a trace broke off, and is not tested. To test "
            f"{COMPLETED}, require '{COMPLETED}>=baseline', or rename the column.",
        )
    rest = outcomes.drop(COMPLETED)
    return rest if rest.columns[2:] else None


def check_outcomes(outcomes: Mapping[str, Matrix]) -> list[str]:
    """Return the outcomes that can be compared: those for which at least one query has a value in every system.

    Leave out columns of `gg.funnel` that cannot be compared. Raise `InputError` for any other outcome that cannot be compared,
    or if no outcome is left.
    """
    lacking = [name for name, solved in outcomes.items() if not np.isfinite(solved).all(axis=0).any()]
    shared = [name for name in outcomes if name not in lacking]
    table = spell("outcomes")
    if lacking and not (shared and FUNNEL.keys() >= {*lacking}):
        raise InputError(f"{table} has no query in which every system has a value of {lacking[0]}. Check query ids.")
    if lacking:
        notice(
            "outcomes_of_some_systems",
            f"{table}: {', '.join(lacking)} are not known for every system, and are left out.",
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
    called: Mapping[str, str],
    query_ids: pl.Series,
    how: str,
) -> dict[str, pl.Series]:
    """Return a dict from runs to the judged queries whose traces broke off. Runs without such queries are left out.

    `called` maps each run to its file name. The names that `convert` gives to the files of replicates end with the replicate.
    If the replicate of a run is unknown, raise `InputError` or, if `how` is `keep`, return one entry for the whole system.
    """
    if outcomes is None or COMPLETED not in outcomes.columns:
        return {}
    found = {}
    listed = outcomes.get_column("system").unique().sort().to_list()
    for system, runs in runs_of.items():
        of = outcomes.filter(system=system)
        if of.is_empty() and how == "keep" and listed and runs_of.keys() >= set(listed):
            # such tables have rows of broken traces only
            notice(
                "outcomes_of_some_systems",
                f"{spell('outcomes')} has no rows of {system}: its queries count as complete. Add rows of {system}.",
            )
            continue
        if of.is_empty():
            raise lack_rows(spell("outcomes"), system, listed)
        broken = of.filter((pl.col(COMPLETED) == 0) & pl.col("query_id").is_in(query_ids.implode()))
        matched = _match_runs(runs, called, of.get_column("replicate"))
        if matched is None and how != "keep":
            there = ", ".join(of.get_column("replicate").unique().drop_nulls().sort()) or "none"
            raise InputError(
                f"{spell('outcomes')} does not say which run of {system} each row belongs to: the replicates are {there}. Put "
                f"the replicate into the name of each run, such as {system}.1.run, as goodgain convert does."
            )
        for run, replicate in (matched or {system: None}).items():
            rows = broken if replicate is None else broken.filter(replicate=replicate)
            if len(rows):
                found[run] = rows.get_column("query_id").unique().sort()
    return found


def _match_runs(
    runs: Sequence[str], called: Mapping[str, str], replicates: pl.Series
) -> Mapping[str, str | None] | None:
    """Map each run to its replicate: the end of its file name or, without file names, its place in `runs`. None: unclear."""
    numbers = replicates.unique().drop_nulls().to_list()
    if len(runs) == 1 and len(numbers) < 2 and not (numbers and replicates.null_count()):
        return {runs[0]: None}  # None: all rows belong to this run
    by_file = {run: called[run].rpartition(".")[2] for run in runs}
    in_order = {run: str(k) for k, run in enumerate(runs, 1)}
    for matched in (by_file, in_order) if not any(called.values()) else (by_file,):
        if not replicates.null_count() and {*numbers} <= {*matched.values()} and len({*matched.values()}) == len(runs):
            return matched
    return None


def count_as_empty(of: Scores, empty: Scores, query_ids: pl.Series, measures: Sequence[ir_measures.Measure]) -> Scores:
    """Replace the scores of the queries in `query_ids` by the scores of `empty`, a run without results."""
    is_there = pl.col("query_id").is_in(query_ids.implode())
    ours, classic = (
        pl.concat([there.filter(~is_there), none.filter(is_there).select(there.columns)]).sort("query_id")
        for there, none in ((of._ours, empty._ours), (of._classic, empty._classic))
    )
    return average_values(replace(of, _ours=ours, _classic=classic), measures)


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
            both = np.isfinite(x) & np.isfinite(y)
            rows.append((name, outcome, measure, int(both.sum()), *_find_tau(x[both], y[both], settings)))
    numbers = dict.fromkeys(("tau", "low", "high"), pl.Float64)
    types = {**dict.fromkeys(("system", "outcome", "measure"), pl.String), "queries": pl.Int64, **numbers}
    return pl.DataFrame(rows, schema=types, orient="row").with_columns(pl.col(*numbers).fill_nan(None))


def _find_tau(x: Vector, y: Vector, settings: Settings) -> tuple[float, float, float]:
    if len(x) < _LEAST_QUERIES or np.ptp(x) == 0 or np.ptp(y) == 0:
        return np.nan, np.nan, np.nan
    tau = compute_tau(x, y, np.ones((1, len(x))))[0]
    samples = draw_queries(len(x), settings.seed, min(settings.resamples, _RESAMPLES))
    taus = np.concatenate([compute_tau(x, y, times) for times in samples])
    low, high = np.nanquantile(taus, [settings.alpha / 2, 1 - settings.alpha / 2])
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
        here = slice(start, start + _BLOCK)
        signs_x, signs_y = (np.sign(values[:, None] - values[here]) for values in (x, y))
        for k, signs in enumerate((signs_x * signs_y, np.abs(signs_x), np.abs(signs_y))):
            sums[k] += ((times @ signs) * times[:, here]).sum(axis=1)
    with np.errstate(invalid="ignore"):
        tau: Vector = sums[0] / np.sqrt(sums[1] * sums[2])
    return tau
