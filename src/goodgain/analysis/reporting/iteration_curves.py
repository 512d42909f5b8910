"""Curves: the mean of each measure at every iteration, or at every spend, for several systems."""

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby, islice
from typing import Any, NamedTuple

import numpy as np
import polars as pl
import polars.selectors as cs

from goodgain.analysis.comparing.comparison_sentences import describe_shared_queries
from goodgain.analysis.comparing.statistical_tests import RESIDUE, Settings, Vector, find_intervals
from goodgain.analysis.reporting.spends import OVER, Spends, check_costs_of_runs, choose_spends, find_spends
from goodgain.counting.coverage import Coverage, combine_coverages, measure_coverage
from goodgain.counting.ledger import Counts
from goodgain.errors import InputError, MeasureError, notice
from goodgain.measures.declaration import GoodGainMeasure
from goodgain.measures.ledger_values import (
    average_queries,
    check_along_iterations,
    final_values,
    make_finite,
    running_values,
)
from goodgain.measures.names import Measures, parse_measures
from goodgain.measures.scores import join_queries
from goodgain.options import check_whole_number, spell

#: Limit of `upto=`, which computes every measure once per iteration.
_MOST_ITERATIONS = 1_000

_POINT = {"system": pl.String, "measure": pl.String}
_MEAN = {"mean": pl.Float64, "searching": pl.Int64, "queries": pl.Int64, "low": pl.Float64, "high": pl.Float64}
_COLUMNS = _POINT | {"iteration": pl.Int64} | _MEAN | {"coverage": pl.Float64}
_SPEND_COLUMNS = _POINT | {"over": pl.String, "spend": pl.Float64} | _MEAN
#: The columns that a system of several runs adds.
_RUN_COLUMNS = {"least": pl.Float64, "most": pl.Float64}
#: Values resampled together: 80 MB at 8 bytes each. They share their random draws.
_CELLS = 10_000_000


class SystemCounts(NamedTuple):
    """Ledgers and pools of each run of a system by threshold, and the coverage of all its runs together."""

    runs: Sequence[Mapping[float, Counts]]
    coverage: Coverage


def join_counts(
    counts: Mapping[str, Mapping[float, Counts]], names: Mapping[str, Sequence[str]]
) -> dict[str, SystemCounts]:
    """Put the counted runs of each system together. Give a notice if systems share few queries. `names`: as in `name_runs`."""
    counted = {}
    for system, of in names.items():
        runs = [counts[run] for run in of]
        coverages = [measure_coverage(run) for run in runs]
        queries = join_queries([coverage.queries for coverage in coverages])
        counted[system] = SystemCounts(runs, combine_coverages(coverages)._replace(queries=queries))
    if few_shared := describe_shared_queries({name: of.coverage.queries for name, of in counted.items()}):
        notice(few_shared)
    return counted


def check_curve_options(
    runs: Mapping[str, Any], *, upto: int | None, over: str | None, costs: Any, at: Sequence[float] | None
) -> None:
    if upto is not None:
        check_whole_number("upto", upto, 1, _MOST_ITERATIONS)
    if over is None:
        for name, value in (("costs", costs), ("at", at)):
            if value is not None:
                raise InputError(f"{spell(name)}: needs {spell('over')}, one of {', '.join(OVER)}.")
    elif over not in OVER:
        raise InputError(f"{spell('over', over)}: give one of {', '.join(OVER)}.")
    elif upto is not None:
        remedy = f"With {spell('over')}, give the spends with {spell('at')}."
        raise InputError(f"{spell('upto')}: is for a curve over iterations. {remedy}")
    elif OVER[over] is None and costs is None:
        told = f"{spell('over', over)}: needs {spell('costs')}"
        raise InputError(f"{told}, the file that goodgain convert --costs writes.")
    check_costs_of_runs(costs, runs)


def tabulate_curve(
    counted: Mapping[str, SystemCounts],
    measures: Sequence[GoodGainMeasure],
    settings: Settings,
    *,
    upto: int | None = None,
    over: str | None = None,
    costs: pl.DataFrame | None = None,
    at: Sequence[float] | None = None,
) -> pl.DataFrame:
    """Return what `curve` returns, from counts at the thresholds of the measures; `costs` as `read_costs` returns them."""
    if over is None:
        last = upto or _find_last_iteration(counted)
        of_runs = {
            name: [_list_iterations(run, counts.coverage, measures, last) for run in counts.runs]
            for name, counts in counted.items()
        }
    else:
        spends = find_spends(over, {name: counts.runs for name, counts in counted.items()}, costs)
        chosen = choose_spends([spent for runs_of in spends.values() for spent in runs_of], at)
        of_runs = {
            name: [
                _list_spends(run, measures, over, spent, chosen)
                for run, spent in zip(counts.runs, spends[name], strict=True)
            ]
            for name, counts in counted.items()
        }
    points = (point for name, several in of_runs.items() for point in _average_runs(name, several, measures))
    schema = _COLUMNS if over is None else _SPEND_COLUMNS
    schema = schema | (_RUN_COLUMNS if any(len(counts.runs) > 1 for counts in counted.values()) else {})
    rows = pl.DataFrame(list(_add_intervals(points, settings)), schema=schema)
    order = [pl.col("system").cast(pl.Enum(list(counted))), pl.col("measure").cast(pl.Enum(list(map(str, measures))))]
    return rows.with_columns(cs.float().fill_nan(None)).sort(*order, rows.columns[2 if over is None else 3])


def parse_curve_measures(measures: Measures, rel: float | None) -> list[GoodGainMeasure]:
    """Return the measures of a curve, without a cutoff, or raise `MeasureError`."""
    asked = [check_along_iterations(one, "a curve") for one in parse_measures(measures, complete=False, rel=rel)]
    if without := next((one for one in asked if one.declaration.cutoff == "none"), None):
        raise MeasureError(f"{without} has no value per iteration. Leave it out.")
    return asked


def _find_last_iteration(counted: Mapping[str, SystemCounts]) -> int:
    longest = {
        name: max((length for run in counts.runs for length in _get_lengths(run)), default=0)
        for name, counts in counted.items()
    }
    name = max(longest, key=lambda system: longest[system])
    if longest[name] > _MOST_ITERATIONS:
        told = f"{name}: a query has {longest[name]:,} iterations"
        raise InputError(f"{told}; give {spell('upto')}, at most {_MOST_ITERATIONS:,}")
    return max(longest[name], 1)


def _get_lengths(counts: Mapping[float, Counts]) -> pl.Series:
    return next(iter(counts.values())).pools.get_column("N")  # the same for every threshold


#: A place of the curve of a run: its columns, the values of all queries by measure, and which queries still search.
_Place = tuple[dict[str, Any], dict[str, pl.Series], pl.Series]
#: One mean of a curve: its row without the interval, and the values of the queries behind the mean.
_Point = tuple[dict[str, Any], Vector]


def _list_iterations(
    counts: Mapping[float, Counts], coverage: Coverage, measures: Sequence[GoodGainMeasure], last: int
) -> Iterator[_Place]:
    """Yield the iterations of a run: memory holds the values of one at a time."""
    lengths = _get_lengths(counts)
    shares = dict(coverage.tabulate().select("iteration", "coverage").iter_rows())
    for i in range(1, last + 1):
        values = make_finite(final_values([measure(cutoff=i) for measure in measures], counts))
        found = {str(measure): values.get_column(str(measure(cutoff=i))) for measure in measures}
        yield {"iteration": i, "coverage": shares.get(i)}, found, lengths >= i


def _list_spends(
    counts: Mapping[float, Counts],
    measures: Sequence[GoodGainMeasure],
    over: str,
    spends: Spends,
    chosen: Sequence[float],
) -> Iterator[_Place]:
    """Yield the places of the curve of a run, one for each spend. A query still searches if it spends at least this much."""
    values = make_finite(running_values(measures, counts))
    rows = spends.rows.join(values, on=["query_id", "iteration"], how="left", maintain_order="left")
    query, spent = (rows.get_column(name).to_numpy() for name in ("query", "spend"))
    columns = {name: rows.get_column(name).fill_null(math.nan).to_numpy() for name in values.columns[2:]}
    before = {str(measure): math.nan if measure.declaration.null_if else 0.0 for measure in measures}
    lengths = np.bincount(query, minlength=len(spends.query_ids))
    starts = np.cumsum(lengths) - lengths
    totals = np.full(len(lengths), -math.inf)  # a query without a search spends nothing, not 0
    totals[lengths > 0] = spent[(starts + lengths - 1)[lengths > 0]]
    for spend in chosen:
        # a sum of costs can miss a spend that was given, by rounding
        reached = np.bincount(query[spent <= spend * (1 + RESIDUE)], minlength=len(lengths))
        last = np.where(reached > 0, starts + reached - 1, 0)
        found = {
            name: np.where(reached > 0, of[last] if len(of) else 0.0, before[name]) for name, of in columns.items()
        }
        searching = pl.Series(totals * (1 + RESIDUE) >= spend)
        yield (
            {"over": over, "spend": spend},
            {name: pl.Series(of).fill_nan(None) for name, of in found.items()},
            searching,
        )


def _average_runs(
    system: str, runs: Sequence[Iterator[_Place]], measures: Sequence[GoodGainMeasure]
) -> Iterator[_Point]:
    """Yield the points of a system: the value of a query is the mean over the runs where it has one."""
    for places in zip(*runs, strict=True):
        columns = places[0][0]
        searching = pl.select(pl.any_horizontal(*(of_run for _, _, of_run in places))).to_series()
        for measure, null_if in ((str(one), one.declaration.null_if) for one in measures):
            of_runs = [found[measure] for _, found, _ in places]
            values = pl.select(pl.mean_horizontal(*of_runs)).to_series()
            values = values.drop_nulls() if null_if else values
            row = {"system": system, "measure": measure, **columns, "mean": average_queries(values)}
            row |= {"searching": int(searching.sum()), "queries": len(values)}
            if len(of_runs) > 1:
                averages = (average_queries(of_run, null_if=null_if) for of_run in of_runs)
                means = [mean for mean in averages if mean is not None]
                row |= {"least": min(means, default=None), "most": max(means, default=None)}
            yield row, values.fill_null(float("nan")).to_numpy()


def _add_intervals(points: Iterator[_Point], settings: Settings) -> Iterator[dict[str, Any]]:
    """Yield the rows of `curve` with their intervals; `_CELLS` values share their random draws."""
    if not settings.resamples:
        yield from (row for row, _ in points)
        return
    for queries, some in groupby(points, key=lambda point: len(point[1])):
        while chunk := list(islice(some, _CELLS // max(queries, 1) + 1)):
            rows, values = zip(*chunk, strict=True)
            if not queries:
                yield from rows
                continue
            for row, low, high in zip(rows, *find_intervals(np.stack(values), settings), strict=True):
                yield row | {"low": low, "high": high}
