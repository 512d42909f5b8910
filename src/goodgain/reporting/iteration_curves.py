"""Curves over iterations: the mean of each good-gain measure at every iteration, for several systems."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import polars as pl

from goodgain.batches.query_batches import tally_run
from goodgain.batches.run_file import open_run_and_qrels
from goodgain.counting.coverage import measure_coverage, warn_if_misleading
from goodgain.counting.ledger import Counts, count_pools, ledger_and_pools
from goodgain.errors import InputError, MeasureError, NoticesOfSystems
from goodgain.evaluation import check_iterations, warn_of_labels
from goodgain.formats import Qrels
from goodgain.formats.column_names import Columns
from goodgain.formats.qrels import load_qrels
from goodgain.formats.systems import check_systems
from goodgain.measures.declaration import DEFAULT_REL, GoodGainMeasure
from goodgain.measures.names import Measures, parse_measures
from goodgain.measures.values import (
    average_queries,
    check_along_iterations,
    final_values,
    find_thresholds,
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
    "coverage": pl.Float64,
}


def curve(
    qrels: Any,
    runs: Mapping[str, Any],
    measures: Measures,
    *,
    upto: int | None = None,
    columns: Columns | None = None,
) -> pl.DataFrame:
    """Return the mean of each measure at every iteration: at i it is the value of `evaluate` for `CG@i`.

    Every mean is over all queries of the qrels. A query that has stopped goes on with empty iterations, as for `CG@i`:
    sums keep their value, means over iterations (RG) fall.

    Args:
        qrels: what `read_qrels` takes.
        runs: name -> what `read_run` takes; one or more. Each is read once, large files in blocks.
        measures: ours, without @: "CG SRE SRR".
        upto: the last iteration; None: the last one that any query of any run has.
        columns: name in the source -> name here, for columns of runs or qrels with other names: {"step": "iteration"}.

    Returns:
        system, measure, iteration (1..upto), mean (null where a query has no finite value), and searching: the number of
        judged queries that have this iteration, those whose N is at least i; and coverage: the judged share of the results
        that this iteration found first, null where it found none.

    Raises:
        InputError: a run or the qrels cannot be read, or there are too many iterations.
        MeasureError: a measure is not ours, has an @, or takes none.

    Source: the Retrieved Good Gain guideline, measures at iteration i.

    >>> qrels = {"q1": {"a": 3, "b": 2}, "q2": {"a": 2}}
    >>> run = [("q1", 1, "a"), ("q1", 2, "b"), ("q2", 1, "a")]
    >>> frame = pl.DataFrame(run, schema=["query_id", "iteration", "doc_id"], orient="row")
    >>> curve(qrels, {"agent": frame}, "CG").rows()
    [('agent', 'CG', 1, 2.5, 2, 1.0), ('agent', 'CG', 2, 3.5, 1, 1.0)]
    """
    systems = check_systems(runs)
    asked = [_check_measure(measure) for measure in parse_measures(measures, complete=False)]
    _check_upto(upto)
    judged = load_qrels(qrels, columns=columns)
    warn_of_labels(judged, asked)
    counts: dict[str, Mapping[float, Counts]] = {}
    with NoticesOfSystems() as notices:
        for name, run in systems.items():
            with notices.of(name):
                counts[name] = _count(judged, run, asked, upto, columns)
    last = upto or _find_last_iteration(counts)
    rows = [row for name, of in counts.items() for row in _list_rows(name, of, asked, last)]
    return pl.DataFrame(rows, schema=_COLUMNS, orient="row")


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
    qrels: Qrels, run: Any, measures: Sequence[GoodGainMeasure], upto: int | None, columns: Columns | None
) -> Mapping[float, Counts]:
    """Return threshold -> ledger and pools of one system."""
    rels = find_thresholds(measures) or [DEFAULT_REL]
    searched, judged = open_run_and_qrels(qrels, run, columns=columns)
    check_iterations(searched, [measure(cutoff=upto or 1) for measure in measures])
    tallied = tally_run(searched, judged, rels=rels)
    counts = ledger_and_pools(tallied, count_pools(judged.frame, rels=rels, labels=judged.labels), rels=rels)
    warn_if_misleading(measure_coverage(counts), labels=judged.labels)
    return counts


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


def _list_rows(
    name: str, counts: Mapping[float, Counts], measures: Sequence[GoodGainMeasure], last: int
) -> Iterator[tuple[str, str, int, float | None, int, float | None]]:
    """Yield the rows of one system, measure by measure."""
    means: dict[tuple[str, int], float | None] = {}
    for i in range(1, last + 1):  # one iteration at a time: a row per query is all that is in memory
        values = make_finite(final_values([measure(cutoff=i) for measure in measures], counts))
        for measure in measures:
            means[str(measure), i] = average_queries(values.get_column(str(measure(cutoff=i))))
    lengths = _get_lengths(counts)
    shares = dict(measure_coverage(counts).tabulate().select("iteration", "coverage").iter_rows())
    for measure in measures:
        for i in range(1, last + 1):
            yield name, str(measure), i, means[str(measure), i], int((lengths >= i).sum()), shares.get(i)
