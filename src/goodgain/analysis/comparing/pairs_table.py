"""Tabulates the means of systems, and the comparison of each pair on each measure: p-values, verdict, costs, bounds."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

import ir_measures
import numpy as np
import polars as pl
from numpy.typing import NDArray

from goodgain.counting.coverage import LOW_COVERAGE
from goodgain.measures.bounds import Range, find_rule
from goodgain.measures.declaration import IterationMeasure, find_meaning
from goodgain.measures.good_gain import NumIter, NumResults
from goodgain.measures.scores import Scores
from goodgain.statistics.intervals_of_means import Values, choose_method, find_intervals_of_means, name_methods
from goodgain.statistics.randomisation_test import run_randomisation_test
from goodgain.statistics.statistical_tests import (
    RESIDUE,
    Matrix,
    Settings,
    Vector,
    compute_effect_size,
    run_t_test,
    run_tukey_test,
    subtract_without_residue,
)

#: Differences tested at once: more are faster, and need more memory (80 MB at 8 bytes each).
_DIFFERENCES = 10_000_000
#: The verdicts of a significant difference.
DECIDED = ("better", "worse")
#: The verdict where a system has no value because it returned nothing.
NO_RESULTS = "no results"
#: The beginning of the verdict on systems that cannot be compared; a reason may follow.
NOT_COMPARABLE = "not comparable"
#: The verdict on measures of repeats if a system's iterations are pages of one ranking, which has no repeats.
NOT_COMPARABLE_PAGES = f"{NOT_COMPARABLE}: pages of one ranking"


def tabulate_systems(scores: Mapping[str, Scores], full: Mapping[str, Matrix]) -> pl.DataFrame:
    """Return `Comparison.systems`. `full` has the matrices of NumIter and NumResults: a row per system, a column per query."""
    queries = [of_system.queries for of_system in scores.values()]
    iterations, results = (_average_known_values(full[str(measure)]) for measure in (NumIter, NumResults))
    coverage: list[float | None] = []
    for of_system, results_per_query in zip(scores.values(), results, strict=True):
        unjudged = of_system.signature.get("unjudged")  # None without labels
        if unjudged is None or not results_per_query:
            coverage.append(None)
        else:
            coverage.append(1 - unjudged)
    columns = {
        "system": list(scores),
        "queries": full[str(NumIter)].shape[1],
        "absent_from_run": [len(of_system.only_judged) for of_system in queries],
        "without_judgments": [len(of_system.only_searched) for of_system in queries],
        "iterations": iterations,
        "results": results,
        "coverage": coverage,
    }
    return pl.DataFrame(columns, schema_overrides={"queries": pl.Int64, "coverage": pl.Float64})


def _average_known_values(values: Matrix) -> list[float]:
    """Return the mean of the values of each row; a missing value is NaN."""
    return average_rows([row[np.isfinite(row)] for row in values])


def tabulate_means(values: Mapping[str, Matrix], better: Mapping[str, str | None], names: list[str]) -> pl.DataFrame:
    """Return a frame with the columns of `Comparison.means`. Each mean is over the queries that have a value."""
    rows = []
    for measure, of_measure in values.items():
        for system, row in zip(names, of_measure, strict=True):
            values_of_system = row[np.isfinite(row)]
            (mean,) = average_rows([values_of_system])
            rows.append((measure, better[measure], system, mean, len(values_of_system)))
    types = {"measure": pl.String, "better": pl.String, "system": pl.String, "mean": pl.Float64, "queries": pl.Int64}
    means = pl.DataFrame(rows, schema=types, orient="row")
    return means.with_columns(pl.col("mean").fill_nan(None))


def add_intervals_of_means(
    means: pl.DataFrame,
    values: Mapping[str, Matrix],
    systems: Sequence[str],
    ranges: Mapping[str, Range],
    settings: Settings,
) -> tuple[pl.DataFrame, str]:
    """Add the columns `low` and `high` to the means, and return the method for the signature. `ranges` is by measure."""
    means_of_systems = []
    for measure, system in means.select("measure", "system").iter_rows():
        row = values[measure][systems.index(system)]
        means_of_systems.append(Values(row[np.isfinite(row)], *ranges[measure]))
    method = choose_method(len(mean.values) for mean in means_of_systems)
    ends = find_intervals_of_means(means_of_systems, settings, method)
    low, high = [], []
    for end in ends:
        low.append(None if end is None else end[0])
        high.append(None if end is None else end[1])
    columns = (pl.Series("low", low, dtype=pl.Float64), pl.Series("high", high, dtype=pl.Float64))
    return means.with_columns(columns), name_methods(means_of_systems, method)


def add_costs(pairs: pl.DataFrame, systems: pl.DataFrame) -> pl.DataFrame:
    """Add the columns `low_coverage`, `more_iterations` and `more_results` to the pairs."""
    names = systems.get_column("system")
    is_low = (systems.get_column("coverage") < LOW_COVERAGE).fill_null(False)
    system, against = pl.col("system"), pl.col("against")

    def subtract(column: str) -> pl.Expr:
        spent = systems.get_column(column)
        return system.replace_strict(names, spent) - against.replace_strict(names, spent)

    return pairs.with_columns(
        low_coverage=system.replace_strict(names, is_low) | against.replace_strict(names, is_low),
        more_iterations=subtract("iterations"),
        more_results=subtract("results"),
    )


class Nothing(NamedTuple):
    """Tells which systems have no value of a measure because they returned nothing."""

    need_results: Collection[str]  # the measures for which a query without results has no value
    need_search: Collection[str]  # the measures for which a query without a search has no value
    searched: NDArray[np.bool_]  # a row per system, a column per query

    def explains_lack(self, measure: str, values: Matrix) -> NDArray[np.bool_]:
        """Return for each system whether it has no value in any query, because it has no results or never searched."""
        is_known = np.isfinite(values)
        has_no_value: NDArray[np.bool_] = np.logical_not(is_known.any(axis=1))
        if measure in self.need_results:
            return has_no_value
        never_searched: NDArray[np.bool_] = np.logical_not(self.searched.any(axis=1))
        is_cause = measure in self.need_search
        return np.logical_and(has_no_value, never_searched) & is_cause


def mark_queries(query_ids: pl.Series, of_systems: Mapping[str, Sequence[pl.Series | None]]) -> NDArray[np.bool_]:
    """Return a matrix with a row per system and a column per query: true for the queries that the system lists."""
    marks = np.zeros((len(of_systems), len(query_ids)), bool)
    for row, lists in zip(marks, of_systems.values(), strict=True):
        for ids in lists:
            if ids is not None and len(ids):
                row |= query_ids.is_in(ids.implode()).to_numpy()
    return marks


def mark_searched(query_ids: pl.Series, scores: Mapping[str, Scores]) -> NDArray[np.bool_]:
    queries = {name: of_system.queries for name, of_system in scores.items()}
    not_searched = {name: [shared.only_judged, shared.never_searched] for name, shared in queries.items()}
    return ~mark_queries(query_ids, not_searched)


def compare_pairs(
    values: Mapping[str, Matrix],
    better: Mapping[str, str | None],
    systems: Sequence[str],
    pairs: Sequence[tuple[int, int]],
    settings: Settings,
    nothing: Nothing,
    signs: int,
) -> pl.DataFrame:
    """Test every pair of systems on every measure, over the queries in which both systems have a value.

    `signs` is the number of random signs in each randomisation test. `corrections.py` adds the corrected p-values, the
    verdicts and the intervals.
    The column `lacks_results` is true if one of the two systems has no value of the measure because it returned nothing.
    """
    rows = [(name, pair) for name in values for pair in pairs]
    system, against = np.array(pairs, dtype=int).reshape(-1, 2).T
    shared: list[NDArray[np.bool_]] = []  # for each row, the queries in which both systems have a value
    lacks_results: list[bool] = []
    for name, of_measure in values.items():
        has_value = np.isfinite(of_measure)
        shared += [*(has_value[system] & has_value[against])]
        lacks = nothing.explains_lack(name, of_measure)
        lacks_results += (lacks[system] | lacks[against]).tolist()

    names = {
        "measure": [name for name, _ in rows],
        "better": pl.Series([better[name] for name, _ in rows], dtype=pl.String),
        "system": [systems[pair[0]] for _, pair in rows],
        "against": [systems[pair[1]] for _, pair in rows],
        "queries": [int(is_shared.sum()) for is_shared in shared],
    }
    tests = _test_rows(values, rows, shared, settings, signs)
    p_tukey = pl.Series(_run_tukey_tests(values, pairs), dtype=pl.Float64)
    has_no_results = pl.Series(lacks_results, dtype=pl.Boolean)
    return pl.DataFrame(names).hstack(tests).with_columns(p_tukey=p_tukey, lacks_results=has_no_results)


def _test_rows(
    values: Mapping[str, Matrix],
    rows: Sequence[tuple[str, tuple[int, int]]],
    shared: Sequence[NDArray[np.bool_]],
    settings: Settings,
    signs: int,
) -> pl.DataFrame:
    """Run the tests of `_run_tests` on each row (measure, pair). Rows over equally many queries are tested together."""
    rows_by_queries: dict[int, list[int]] = {}
    for k, is_shared in enumerate(shared):
        rows_by_queries.setdefault(int(is_shared.sum()), []).append(k)

    tested = []
    for number, rows_of_number in rows_by_queries.items():
        at_once = max(1, _DIFFERENCES // max(1, number))
        for start in range(0, len(rows_of_number), at_once):
            block = rows_of_number[start : start + at_once]
            first, second = (_stack_rows(values, rows, block, shared, side) for side in (0, 1))
            tests = _run_tests(first, second, settings, signs)
            tested.append(tests.with_columns(k=pl.Series(block)))
    return pl.concat(tested).sort("k").drop("k")


def _run_tukey_tests(values: Mapping[str, Matrix], pairs: Sequence[tuple[int, int]]) -> list[float]:
    """Return p of Tukey's test of each measure and pair, over the queries of all systems. NaN for two systems."""
    p_values: list[float] = []
    for of_measure in values.values():
        of_shared_queries = of_measure[:, np.isfinite(of_measure).all(axis=0)]
        if len(of_measure) > 2 and of_shared_queries.shape[1]:
            p_values += run_tukey_test(of_shared_queries, pairs).tolist()
        else:
            p_values += [math.nan] * len(pairs)
    return p_values


def _stack_rows(
    values: Mapping[str, Matrix],
    rows: Sequence[tuple[str, tuple[int, int]]],
    block: Sequence[int],
    shared: Sequence[NDArray[np.bool_]],
    side: int,
) -> Matrix:
    """Return the values of the system (`side` 0) or its opponent (1) in the rows of a block, a column per shared query."""
    stacked = []
    for k in block:
        name, pair = rows[k]
        stacked.append(values[name][pair[side]][shared[k]])
    return np.stack(stacked)


def match_pair(values: Matrix, pair: tuple[int, int]) -> Matrix:
    """Return the values of two systems in the queries in which both have a value."""
    values_of_pair = values[[*pair]]
    has_both = np.isfinite(values_of_pair).all(axis=0)
    return values_of_pair if has_both.all() else values_of_pair[:, has_both]


def arrange_values(
    values: pl.DataFrame, measures: Iterable[str], systems: Sequence[str], query_ids: pl.Series
) -> dict[str, Matrix]:
    """Return a dict from measures to matrices with a row per system and a column per query. A missing value is NaN."""
    system_of = pl.DataFrame({"system": systems, "row": range(len(systems))}, schema_overrides={"system": pl.String})
    column_of = query_ids.to_frame("query_id").with_row_index("column")
    located = values.join(system_of, on="system").join(column_of, on="query_id")
    by_measure = located.drop_nulls("value").partition_by("measure", as_dict=True)

    matrices: dict[str, Matrix] = {}
    for name in measures:
        matrices[name] = np.full((len(systems), len(query_ids)), np.nan)
        if (name,) in by_measure:
            row, column, value = by_measure[name,].select("row", "column", "value")
            matrices[name][row.to_numpy(), column.to_numpy()] = value.to_numpy()
    return matrices


def _run_tests(first: Matrix, second: Matrix, settings: Settings, signs: int) -> pl.DataFrame:
    """Test the pairs of rows of two matrices, which have a column per query. `corrections.py` fills the columns of NaN."""
    stacked = subtract_without_residue(first, second)
    p_t = p_randomisation = effect = nothing = np.full(len(stacked), np.nan)
    if stacked.shape[1]:
        p_t = run_t_test(stacked)
        p_randomisation = run_randomisation_test(stacked, seed=settings.seed, resamples=signs, first=settings.resamples)
        effect = compute_effect_size(stacked)

    difference = np.array(average_rows(stacked))
    size = np.array(average_rows(np.abs(stacked)))
    columns = {
        "mean": average_rows(first),
        "mean_against": average_rows(second),
        # A mean at rounding level counts as 0, such as the mean of 0.3 - 0.2 and 0 - 0.1.
        "difference": np.where(np.abs(difference) <= RESIDUE * size, 0.0, difference),
        "low": nothing,
        "high": nothing,
        "level": nothing,
        "p_t": p_t,
        "p_t_holm": nothing,
        "p_randomisation": p_randomisation,
        "p_randomisation_holm": nothing,
        "p_tukey": nothing,
        "effect": effect,
        "above": (stacked > 0).sum(axis=1),
        "below": (stacked < 0).sum(axis=1),
    }
    return pl.DataFrame(columns)


def average_rows(values: Matrix | Sequence[Vector]) -> list[float]:
    """Return the mean of each row, computed by exact summation. The mean of an empty row is NaN."""
    rows = [row.tolist() for row in values]  # fsum reads a list five times as fast as an array
    return [math.fsum(row) / len(row) if row else math.nan for row in rows]


class _Kind(NamedTuple):
    """What decides whether a system can be compared with another one."""

    lacks_iterations: bool
    has_labels_by_iteration: bool
    has_one_time_addresses: bool
    is_paged: bool


def find_incomparable(
    measures: Sequence[ir_measures.Measure], scores: Mapping[str, Scores], pairs: Iterable[tuple[str, str]]
) -> dict[tuple[str, ...], str]:
    """Return a dict with the verdict on each pair that cannot be compared. The keys are (measure, system, against)."""
    kind_of = {}
    for name, system in scores.items():
        by_iteration = system.signature.get("labels") == "iteration"
        is_paged = "page" in system.signature
        kind_of[name] = _Kind(system.lacks_iterations, by_iteration, bool(system.one_time), is_paged)
    pairs_of: dict[tuple[_Kind, _Kind], list[tuple[str, str]]] = {}  # few kinds, so each is judged once
    for system_and_against in pairs:
        name, against = system_and_against
        kinds = (kind_of[name], kind_of[against])
        pairs_of.setdefault(kinds, []).append(system_and_against)

    verdicts: dict[tuple[str, ...], str] = {}
    for measure in measures:
        if not isinstance(measure, IterationMeasure):
            continue
        for kinds, pairs_of_kinds in pairs_of.items():
            if verdict := _judge(measure, *kinds):
                verdicts |= {(str(measure), *pair): verdict for pair in pairs_of_kinds}
    return verdicts


def _judge(measure: IterationMeasure, system: _Kind, against: _Kind) -> str | None:
    """Return the verdict `not comparable`, with a reason, on systems of two kinds; None if they can be compared."""
    by_iteration = measure.depends_on_ends or system.has_labels_by_iteration
    if by_iteration and system.lacks_iterations != against.lacks_iterations:
        return NOT_COMPARABLE
    declared = find_meaning(measure)
    if declared.by_repeats and (system.has_one_time_addresses or against.has_one_time_addresses):
        return f"{NOT_COMPARABLE}: one-time addresses"
    if declared.counts_repeats and (system.is_paged or against.is_paged):
        return NOT_COMPARABLE_PAGES
    return None


def find_unranked(pairs: pl.DataFrame) -> pl.DataFrame:
    return pairs.filter(pl.col("verdict").str.starts_with(NOT_COMPARABLE))


def find_best(means: list[float], better: str | None) -> set[float]:
    """Return the means that equal the best mean up to rounding; an empty set if all means are equal, or `better` is None."""
    if not means or better is None:
        return set()
    top = max(means) if better == "up" else min(means)
    best = {mean for mean in means if math.isclose(mean, top, rel_tol=1e-12, abs_tol=1e-12)}
    is_ranked = any(mean not in best for mean in means)
    return best if is_ranked else set()


class ScoredRun(NamedTuple):
    """The scores of a run. `added` has the value that each unjudged result would add if it alone had the largest label."""

    scores: Scores
    added: Mapping[str, pl.DataFrame]  # name of a measure with bounds -> query_id, doc_id, added (by this result alone)


def add_bounds_of_means(means: pl.DataFrame, runs: Mapping[str, ScoredRun]) -> pl.DataFrame:
    """Add the columns `least` and `most` to the means; null for a measure without bounds."""
    averages = []
    for name, run in runs.items():
        bounded = run.scores.per_query.drop_nulls(["value", "most"])
        of_run = bounded.group_by("measure").agg(pl.col("least", "most").mean())
        averages.append(of_run.with_columns(system=pl.lit(name)))
    return means.join(pl.concat(averages), on=["measure", "system"], how="left", maintain_order="left")


def add_bounds(
    pairs: pl.DataFrame, measures: Sequence[ir_measures.Measure], runs: Mapping[str, ScoredRun]
) -> pl.DataFrame:
    """Add the columns `least`, `most` and `can_turn` of `Comparison.pairs`; null for a measure without bounds.

    An unjudged document may have any label from 0 to the largest label of the qrels, the same label in both systems.
    """
    rules = {str(measure): find_rule(measure) for measure in measures}
    rows: list[tuple[float | None, float | None]] = []
    for measure, *systems, difference in pairs.select("measure", "system", "against", "difference").iter_rows():
        system, against = (runs[name] for name in systems)
        if difference is None or measure not in system.added or measure not in against.added:
            rows.append((None, None))
        else:
            rows.append(_average_bounds(measure, system, against, is_sum=rules[measure] == "sum"))

    bounds = pl.DataFrame(rows, schema={"least": pl.Float64, "most": pl.Float64}, orient="row")
    difference, least, most = pl.col("difference"), pl.col("least"), pl.col("most")
    noise = RESIDUE * pl.max_horizontal(least.abs(), most.abs(), difference.abs())  # rounding errors have no sign
    is_ranked = ~pl.col("verdict").str.starts_with(NOT_COMPARABLE).fill_null(False)
    can_rise = (difference <= noise) & (most > noise)
    can_fall = (difference >= -noise) & (least < -noise)
    return pairs.hstack(bounds).with_columns(can_turn=(can_rise | can_fall) & is_ranked)


def _average_bounds(measure: str, system: ScoredRun, against: ScoredRun, *, is_sum: bool) -> tuple[float, float]:
    """Return the smallest and the largest mean difference that labels of unjudged documents can produce."""
    values = (run.scores.per_query.filter(measure=measure) for run in (system, against))
    first, second = (of_run.select("query_id", "value").drop_nulls() for of_run in values)
    queries = first.join(second, on="query_id", suffix="_other")
    documents = system.added[measure].join(
        against.added[measure], on=["query_id", "doc_id"], how="full", coalesce=True, suffix="_other"
    )
    documents = documents.with_columns(pl.col("added", "added_other").fill_null(0.0))

    if is_sum:
        of_queries = _sum_differences(queries, documents)
    else:
        of_queries = _find_best_differences(queries, documents)
    least, most = (math.fsum(of_queries.get_column(name)) / queries.height for name in ("least", "most"))
    return least, most


def _sum_differences(queries: pl.DataFrame, documents: pl.DataFrame) -> pl.DataFrame:
    """Return the smallest and the largest possible difference of the systems on each query; the measure sums over documents."""
    difference = pl.col("added") - pl.col("added_other")
    falls, rises = difference.clip(upper_bound=0).sum(), difference.clip(0).sum()
    moves = documents.group_by("query_id").agg(falls=falls, rises=rises)
    joined = queries.join(moves, on="query_id", how="left")
    joined = joined.with_columns(pl.col("falls", "rises").fill_null(0.0))
    now = pl.col("value") - pl.col("value_other")
    return joined.select(least=now + pl.col("falls"), most=now + pl.col("rises"))


def _find_best_differences(queries: pl.DataFrame, documents: pl.DataFrame) -> pl.DataFrame:
    """Return the smallest and the largest difference of each query for a measure that depends only on the best document.

    Both differences occur when at most one unjudged document has the largest label, and the other unjudged ones have label 0.
    """
    value, value_other = pl.col("value"), pl.col("value_other")
    raised = pl.max_horizontal(value, "added") - pl.max_horizontal(value_other, "added_other")
    with_label = documents.join(queries, on="query_id").select("query_id", difference=raised)
    without_label = queries.select("query_id", difference=value - value_other)
    by_query = pl.concat([with_label, without_label]).group_by("query_id")
    return by_query.agg(least=pl.col("difference").min(), most=pl.col("difference").max())
