"""Curves over iterations: the mean of each good-gain measure at every iteration, for several systems."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import polars as pl
import polars.selectors as cs

from goodgain.batches.query_batches import tally_run
from goodgain.batches.run_file import open_run_and_qrels
from goodgain.comparing.pairing import Settings, check_settings
from goodgain.comparing.shared_queries import SystemQueries, describe_shared_queries
from goodgain.comparing.significance import Vector, bootstrap_interval
from goodgain.counting.coverage import measure_coverage, warn_if_misleading
from goodgain.counting.ledger import Counts, count_pools, ledger_and_pools
from goodgain.errors import InputError, MeasureError, NoticesOfSystems, notice
from goodgain.evaluation import check_iterations
from goodgain.formats import Qrels
from goodgain.formats.column_names import Columns
from goodgain.formats.qrels import load_qrels
from goodgain.formats.systems import check_systems
from goodgain.measures.declaration import GoodGainMeasure
from goodgain.measures.names import Measures, parse_measures
from goodgain.measures.thresholds import find_thresholds, warn_of_labels
from goodgain.measures.values import (
    average_queries,
    check_along_iterations,
    final_values,
    make_finite,
)

__all__ = ["curve"]

#: The largest `upto`: every measure is computed once for each iteration.
_MOST_ITERATIONS = 1_000

_COLUMNS = {
    "system": pl.String,
    "measure": pl.String,
    "iteration": pl.Int64,
    "mean": pl.Float64,
    "searching": pl.Int64,
    "queries": pl.Int64,
    "low": pl.Float64,
    "high": pl.Float64,
    "coverage": pl.Float64,
}

#: Values of queries that are resampled together, 8 bytes each: 80 MB. More of them share their random draws.
_CELLS = 10_000_000


def curve(
    qrels: Any,
    runs: Mapping[str, Any],
    measures: Measures,
    *,
    rel: float | None = None,
    upto: int | None = None,
    seed: int = 42,
    resamples: int = 9_999,
    alpha: float = 0.05,
    columns: Columns | None = None,
) -> pl.DataFrame:
    """Return the mean of each measure at every iteration: at i it is the value of `evaluate` for `CG@i`.

    Every mean is over all queries of the qrels. A query that has stopped goes on with empty iterations, as for `CG@i`:
    sums keep their value, means over iterations (RG) fall.

    Args:
        qrels: what `read_qrels` takes.
        runs: name -> what `read_run` takes; one or more. Each is read once, large files in blocks.
        measures: ours, without @: "CG SRE SRR".
        rel: the smallest good label, for measures that name none; None leaves it at 2.
        upto: the last iteration; None: the last one that any query of any run has.
        seed: the seed of the bootstrap, as in `compare`: the same seed gives the same intervals.
        resamples: number of bootstrap samples, 1,000,000 at most; 0 leaves the intervals out, which saves time with
            100,000 queries or more.
        alpha: 1 - alpha is the level of the intervals.
        columns: name in the source -> name here, for columns of runs or qrels with other names: {"step": "iteration"}.

    Returns:
        system, measure, iteration (1..upto), mean (null where a query has no finite value), searching: the number of
        judged queries that have this iteration, those whose N is at least i; queries: that of all judged queries; low
        and high: the bootstrap percentile interval of the mean over queries, drawn as `compare` draws its own (null where
        the mean is, or without resamples); coverage: the judged share of the results that this iteration found first, null
        where it found none. Whether two systems differ is not seen by their intervals: `compare` tests it.

    Raises:
        InputError: a run or the qrels cannot be read, there are too many iterations, an option is out of its range, or
            two systems share no judged query.
        MeasureError: a measure is not ours, has an @, or takes none.

    Source: the Retrieved Good Gain guideline, measures at iteration i.

    >>> qrels = {"q1": {"a": 3, "b": 2}, "q2": {"a": 2}}
    >>> run = [("q1", 1, "a"), ("q1", 2, "b"), ("q2", 1, "a")]
    >>> frame = pl.DataFrame(run, schema=["query_id", "iteration", "doc_id"], orient="row")
    >>> curve(qrels, {"agent": frame}, "CG").select("iteration", "mean", "searching", "low", "high").rows()
    [(1, 2.5, 2, 2.0, 3.0), (2, 3.5, 1, 2.0, 5.0)]
    """
    systems = check_systems(runs)
    asked = [_check_measure(measure) for measure in parse_measures(measures, complete=False, rel=rel)]
    _check_upto(upto)
    settings = check_settings(seed, resamples, alpha, least=0)
    judged = load_qrels(qrels, columns=columns)
    warn_of_labels(judged.frame, asked, rel=rel)
    counts: dict[str, Mapping[float, Counts]] = {}
    with NoticesOfSystems() as notices:
        for name, run in systems.items():
            with notices.of(name):
                counts[name] = _count(judged, run, asked, columns)
    if few_shared := describe_shared_queries({name: _list_queries(of) for name, of in counts.items()}):
        notice(few_shared)
    last = upto or _find_last_iteration(counts)
    points = (point for name, of in counts.items() for point in _list_points(name, of, asked, last))
    rows = [row for group in _group_points(points) for row in _list_rows(group, settings)]
    in_order = {str(measure): k for k, measure in enumerate(asked)}, {name: k for k, name in enumerate(systems)}
    return (
        pl.DataFrame(rows, schema=_COLUMNS, orient="row")
        .with_columns(cs.float().fill_nan(None))
        .sort(
            pl.col("system").replace_strict(in_order[1], return_dtype=pl.Int64),
            pl.col("measure").replace_strict(in_order[0], return_dtype=pl.Int64),
            "iteration",
        )
    )


def _check_measure(measure: Any) -> GoodGainMeasure:
    ours = check_along_iterations(measure, "a curve")
    if ours.declaration.cutoff == "none":
        raise MeasureError(f"{ours}: it looks at all iterations of a query, and has no value at each; leave it out")
    return ours


def _check_upto(upto: int | None) -> None:
    if upto is None:
        return
    if isinstance(upto, bool) or not isinstance(upto, int) or not 1 <= upto <= _MOST_ITERATIONS:
        raise InputError(
            f"upto={upto!r}: give the last iteration of the curve, a whole number from 1 to {_MOST_ITERATIONS:,}"
        )


def _count(
    qrels: Qrels, run: Any, measures: Sequence[GoodGainMeasure], columns: Columns | None
) -> Mapping[float, Counts]:
    """Return threshold -> ledger and pools of one system."""
    rels = find_thresholds(measures)
    searched, judged = open_run_and_qrels(qrels, run, columns=columns)
    check_iterations(searched, measures)
    tallied = tally_run(searched, judged, rels=rels)
    counts = ledger_and_pools(tallied, count_pools(judged.judgments, rels=rels), rels=rels)
    warn_if_misleading(measure_coverage(counts), labels=judged.labels, iterated=searched)
    return counts


def _list_queries(counts: Mapping[float, Counts]) -> SystemQueries:
    searched = next(iter(counts.values())).pools.filter(pl.col("N") > 0).get_column("query_id").to_list()
    return SystemQueries(searched, measure_coverage(counts).examples[0])


def _find_last_iteration(counts: Mapping[str, Mapping[float, Counts]]) -> int:
    """Return the largest N of a judged query in any system, and 1 where none searched."""
    longest = {name: int(_get_lengths(of).max() or 0) for name, of in counts.items()}  # type: ignore[arg-type]  # an Int64
    last = max(longest.values())
    if last > _MOST_ITERATIONS:
        name = max(longest, key=lambda system: longest[system])
        raise InputError(f"{name}: a query has {last:,} iterations; give upto=, at most {_MOST_ITERATIONS:,}")
    return max(last, 1)


def _get_lengths(counts: Mapping[float, Counts]) -> pl.Series:
    """Return N for each judged query; it is the same for every threshold."""
    return next(iter(counts.values())).pools.get_column("N")


class _Point(NamedTuple):
    """One mean of a curve, with the values of the queries that it is taken over."""

    system: str
    measure: str
    iteration: int
    mean: float | None
    searching: int
    coverage: float | None
    values: Vector


def _list_points(
    name: str, counts: Mapping[float, Counts], measures: Sequence[GoodGainMeasure], last: int
) -> Iterator[_Point]:
    """Yield the points of one system, iteration by iteration: the values of one iteration are in memory at a time."""
    lengths = _get_lengths(counts)
    shares = dict(measure_coverage(counts).tabulate().select("iteration", "coverage").iter_rows())
    for i in range(1, last + 1):
        values = make_finite(final_values([measure(cutoff=i) for measure in measures], counts))
        searching = int((lengths >= i).sum())
        for measure in measures:
            column = values.get_column(str(measure(cutoff=i)))
            missing = column.cast(pl.Float64).fill_null(float("nan"))
            yield _Point(name, str(measure), i, average_queries(column), searching, shares.get(i), missing.to_numpy())


def _group_points(points: Iterable[_Point]) -> Iterator[list[_Point]]:
    """Yield groups of points that are resampled together."""
    group: list[_Point] = []
    for point in points:
        group.append(point)
        if len(group) * len(point.values) >= _CELLS:
            yield group
            group = []
    if group:
        yield group


def _list_rows(points: Sequence[_Point], settings: Settings) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of `curve` for points, with their intervals."""
    queries = len(points[0].values)
    low = high = np.full(len(points), np.nan)
    if settings.resamples and queries:
        values = np.stack([point.values for point in points])
        low, high = bootstrap_interval(
            values, level=1 - settings.alpha, seed=settings.seed, resamples=settings.resamples
        )
    for point, lowest, highest in zip(points, low, high, strict=True):
        yield *point[:-2], queries, lowest, highest, point.coverage
