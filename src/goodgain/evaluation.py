"""Scores of a run: our measures and the hosts', in one call and one table; and the ledger they come from."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import ir_measures
import narwhals as nw
import polars as pl
import polars.selectors as cs

from goodgain.batches.query_batches import Part, over_parts
from goodgain.batches.run_file import RunFile, open_run_and_qrels
from goodgain.classic.labels import labelled
from goodgain.classic.scores import Classic, classic_scores
from goodgain.counting.coverage import Coverage, measure_coverage, warn_if_misleading, warn_if_no_label_reaches
from goodgain.counting.ledger import Counts, count, count_pools, ledger_and_pools
from goodgain.errors import InputError, MeasureError, notice
from goodgain.formats import Qrels, Run, read_run
from goodgain.formats.column_names import Columns
from goodgain.formats.run import describe_likely_iteration, warn_of_likely_iteration, warn_of_missing_iterations
from goodgain.measures import MEASURES
from goodgain.measures.batch_scores import PartScores
from goodgain.measures.declaration import DEFAULT_REL, GoodGainMeasure
from goodgain.measures.names import Measures, parse_measure, parse_measures
from goodgain.measures.values import along_ledger, scored, thresholds
from goodgain.version import __version__

__all__ = [
    "Scores",
    "counted",
    "evaluate",
    "flatten",
    "good_gain_scores",
    "ledger",
    "score_run",
    "used_thresholds",
]


@dataclass(frozen=True, repr=False)
class Scores:
    """The scores of one run.

    Attributes:
        means: measure by name -> value over all queries, in the order asked for; None where a query has no value.
        signature: how the values were made; it belongs beside any number that is reported.
    """

    means: dict[str, float | None]
    signature: dict[str, Any]
    _ours: pl.DataFrame
    _classic: pl.DataFrame

    @cached_property
    def per_query(self) -> pl.DataFrame:
        """query_id, measure, value: ours for every query of the qrels, a host's for the host's own set.

        A value that is not finite, as a function of the user's may give one, is null.
        """
        position = pl.col("measure").replace_strict(
            {name: k for k, name in enumerate(self.means)}, return_dtype=pl.Int64
        )
        return pl.concat([_long(self._ours), self._classic]).sort("query_id", position)

    def __repr__(self) -> str:
        shown = {name: "–" if value is None else f"{value:.4f}" for name, value in self.means.items()}
        values = ", ".join(f"{name}={value}" for name, value in shown.items())
        return f"Scores({values}; {self.signature['queries']} queries)"

    def __getitem__(self, measure: str | ir_measures.Measure) -> float | None:
        """The value of one measure, however it is spelled; None where a query has no value."""
        if isinstance(measure, str) and measure in self.means:
            return self.means[measure]
        name = str(parse_measure(measure) if isinstance(measure, str) else measure)
        if name not in self.means:
            raise MeasureError(f"{name} was not asked for; there are {', '.join(self.means)}")
        return self.means[name]

    def mean(self) -> dict[str, float | None]:
        """Measure by name -> value over all queries (for a host's own measure, by the host's own rule).

        None where a query has no value.
        """
        return dict(self.means)


def evaluate(
    qrels: Any,
    run: Any,
    measures: Measures,
    *,
    order: str = "seen",
    provider: str | None = None,
    columns: Columns | None = None,
) -> Scores:
    """Score a run on any measures, ours and those of ir_measures.

    Args:
        qrels: what `read_qrels` takes.
        run: what `read_run` takes.
        measures: names ("nDCG@10 SRE@3"), measure objects, or a list of both.
        order: how classic measures get one ranking: `seen`, `interleaved` or `last`.
        provider: the provider of ir_measures that computes the classic measures; None leaves it to ir_measures.
        columns: name in the source -> name here, for columns of run or qrels with other names: {"step": "iteration"}.

    Returns:
        `Scores`. Ours are means over all queries of the qrels, one that the run lacks having no search at all;
        queries without judgments are left out; `signature` has both numbers. A value that is not finite is null, and
        so is the mean of its measure, with a notice.

    Raises:
        InputError: the run or the qrels cannot be read.
        MeasureError: a measure is unknown, or cannot be computed from this input.

    Source: the Retrieved Good Gain guideline; ir_measures for everything else.

    >>> scores = evaluate({"q": {"a": 3}}, {"q": {"a": 1.0, "b": 0.5}}, "nDCG@10 CG SRE")
    >>> scores.mean()
    {'nDCG@10': 1.0, 'CG': 3.0, 'SRE': 0.5}
    """
    asked = parse_measures(measures)
    searched, judged = open_run_and_qrels(qrels, run, columns=columns)
    warn_if_no_label_reaches(judged.frame, used_thresholds(asked))
    return score_run(judged, searched, asked, order=order, provider=provider)


def score_run(
    judged: Qrels, searched: Run | RunFile, asked: Sequence[ir_measures.Measure], *, order: str, provider: str | None
) -> Scores:
    """`evaluate` for what has been read, without the notices that are about the qrels alone."""
    ours = [measure for measure in asked if isinstance(measure, GoodGainMeasure)]
    theirs = [measure for measure in asked if not isinstance(measure, GoodGainMeasure)]
    rels = thresholds(ours) or [DEFAULT_REL]

    pools = count_pools(judged.frame, rels=rels, labels=judged.labels)

    def scores_of(parts: Iterator[Part]) -> tuple[Classic, pl.DataFrame, Coverage]:
        good_gain = PartScores(ours, pools, rels)
        classic = classic_scores(theirs, labelled(map(good_gain.add, parts), judged), provider=provider)
        for part in parts:  # whatever the hosts left, having no ranking to score
            good_gain.add(part)
        return classic, *good_gain.scores()

    check_iterations(searched, ours)
    classic, values, extent = over_parts(searched, judged, scores_of, rels=rels, order=order if theirs else None)
    warn_if_misleading(extent, labels=judged.labels)
    values, classic_values = _finite(values), _finite(classic.per_query)
    means = _means_of_hosts(classic, classic_values)
    means |= {name: _mean(values.get_column(name)) for name in map(str, ours)}
    scores = Scores(
        {str(measure): means[str(measure)] for measure in asked},
        _signature(extent, labels=judged.labels, rels=rels if ours else None, order=order if theirs else None),
        values,
        classic_values,
    )
    _tell_no_value(scores)
    return scores


def used_thresholds(measures: Iterable[ir_measures.Measure]) -> list[float]:
    """The thresholds that matter to some measure: NumIter and its like have none."""
    return thresholds(m for m in measures if isinstance(m, GoodGainMeasure) and m.declaration.uses_rel)


def good_gain_scores(measures: Sequence[GoodGainMeasure], run: Run, counts: dict[float, Counts]) -> pl.DataFrame:
    """Our measures for every judged query: query_id, and a column for each measure by its name."""
    check_iterations(run, measures)
    return scored(measures, counts)


def check_iterations(run: Run | RunFile, measures: Sequence[GoodGainMeasure]) -> None:
    """Say where a run has no iterations, and measures are asked for that look at them.

    Raises:
        InputError: a column looks like the iteration, and was not read as one: its searches would count as one.
    """
    if run.likely_iteration is not None:
        if measures:
            raise InputError(f"the run has no column iteration: {describe_likely_iteration(run.likely_iteration)}")
        warn_of_likely_iteration(run)
    elif not run.has_iterations and any((measure.cutoff or 1) > 1 for measure in measures):
        warn_of_missing_iterations(run)


def counted(qrels: Qrels, run: Run, rels: Sequence[float]) -> dict[float, Counts]:
    """Threshold -> ledger and pools of a run, with a notice where they mean less than they seem to.

    Raises:
        InputError: a column of the run looks like the iteration, and was not read as one.
    """
    if run.likely_iteration is not None:
        raise InputError(f"the run has no column iteration: {describe_likely_iteration(run.likely_iteration)}")
    counts = count(run.frame, qrels.frame, rels=rels, labels=qrels.labels)
    warn_if_misleading(measure_coverage(counts), labels=qrels.labels)
    return counts


def _finite(values: pl.DataFrame) -> pl.DataFrame:
    """The values, null where they are not finite."""
    numbers = cs.float()
    return values.with_columns(pl.when(numbers.is_finite()).then(numbers))


def _mean(values: pl.Series) -> float | None:
    """Compensated, over queries in sorted order: the same on every engine and for every order of rows."""
    return None if values.null_count() else math.fsum(values) / len(values)


def _means_of_hosts(classic: Classic, values: pl.DataFrame) -> dict[str, float | None]:
    """The hosts' own aggregated values; None where a query has no value, or where there is none to aggregate."""
    lacking = set(values.filter(pl.col("value").is_null()).get_column("measure"))
    means = {str(measure): mean for measure, mean in classic.means.items()}
    return {name: mean if name not in lacking and math.isfinite(mean) else None for name, mean in means.items()}


def _tell_no_value(scores: Scores) -> None:
    names = [name for name, mean in scores.means.items() if mean is None]
    if not names:
        return
    of_measure = scores.per_query.group_by("measure").agg(pl.len(), nulls=pl.col("value").null_count())
    counts = {name: f"{nulls:,} of {queries:,} queries" for name, queries, nulls in of_measure.iter_rows()}
    listed = ", ".join(f"{name} in {counts.get(name, 'any query')}" for name in names)
    notice(f"no finite value of {listed}: these values are null, and so is each mean over all queries")


def _long(values: pl.DataFrame) -> pl.DataFrame:
    return values.unpivot(index="query_id", variable_name="measure", value_name="value").with_columns(
        pl.col("measure").cast(pl.String), pl.col("value").cast(pl.Float64)
    )


def _signature(
    extent: Coverage, *, labels: str | None, rels: Sequence[float] | None, order: str | None
) -> dict[str, Any]:
    signature: dict[str, Any] = {"goodgain": __version__, "ir_measures": ir_measures.__version__}
    if rels is not None:
        signature["rel"] = [int(rel) if rel == int(rel) else rel for rel in rels]
    if order is not None:
        signature["order"] = order
    if labels is not None:
        signature["labels"] = labels
    return signature | {
        "queries": extent.judged,
        "absent_from_run": extent.judged - extent.both,
        "without_judgments": extent.searched - extent.both,
        "unjudged": extent.unjudged / extent.unique if extent.unique else 0.0,
    }


def ledger(
    qrels: Any,
    run: Any,
    *,
    rel: float = DEFAULT_REL,
    measures: Measures | None = None,
    columns: Columns | None = None,
) -> pl.DataFrame:
    """What each iteration of each query brought.

    Args:
        qrels: what `read_qrels` takes.
        run: what `read_run` takes.
        rel: the smallest good label.
        measures: ours, without @: their value at every iteration, as if the agent had stopped there.
        columns: name in the source -> name here, for columns of run or qrels with other names.

    Returns:
        One row per (query, iteration) of the run: query_id, iteration (1..N), R, UR, Dup, GR, G, Unjudged, judged
        (whether the query has any judgment), and a column for each measure, null where the query has none.

    Raises:
        InputError: the run or the qrels cannot be read.
        MeasureError: a measure is not ours, or has an @.

    Source: the Retrieved Good Gain guideline, R^i, UR^i, GR^i, G_i.

    >>> ledger({"q": {"a": 3}}, {"q": {"a": 1.0, "b": 0.5}}, measures="SRE").select("R", "UR", "GR", "G", "SRE").rows()
    [(2, 2, 1, 3.0, 0.5)]
    """
    asked = [] if measures is None else [_along(measure, rel) for measure in parse_measures(measures, complete=False)]
    base_measure = MEASURES["CG"](rel=rel)
    base = base_measure.rel
    searched, judged = open_run_and_qrels(qrels, run, columns=columns)
    check_iterations(searched, [base_measure, *asked])
    warn_if_no_label_reaches(judged.frame, used_thresholds([base_measure, *asked]))
    rels = sorted({base, *thresholds(asked)})
    tallied = over_parts(
        searched, judged, lambda parts: pl.concat([part.tally for part in parts]), rels=rels, order=None
    )
    counts = ledger_and_pools(tallied, count_pools(judged.frame, rels=rels, labels=judged.labels), rels=rels)
    warn_if_misleading(measure_coverage(counts), labels=judged.labels)
    rows, pools = counts[base][:2]
    queries = pools.select("query_id", judged=pl.lit(True))
    result = rows.join(queries, on="query_id", how="left").with_columns(pl.col("judged").fill_null(False))
    if asked:
        result = result.join(along_ledger(asked, counts), on=["query_id", "iteration"], how="left")
    return result.sort("query_id", "iteration")


def _along(measure: ir_measures.Measure, rel: float) -> GoodGainMeasure:
    if not isinstance(measure, GoodGainMeasure):
        raise MeasureError(f"{measure} ranks documents and has no value at an iteration; the ledger shows ours only")
    if measure.cutoff is not None:
        raise MeasureError(f"{measure}: the ledger shows a measure at every iteration; write it without @")
    return measure(rel=rel) if measure.declaration.uses_rel and "rel" not in measure.params else measure


def flatten(run: Any, *, order: str = "seen", columns: Columns | None = None) -> Any:
    """One classic ranking per query: the run without repeats and with one iteration.

    A query with one iteration and no repeat keeps its scores; any other gets n, n-1, ..., 1.

    Args:
        run: what `read_run` takes.
        order: `seen` (iteration, then rank), `interleaved` (position in the iteration, then iteration) or `last` (the
            last iteration alone).
        columns: name in the source -> name here, for columns with other names.

    Returns:
        A frame of the run's columns, of the kind that was given (Polars for anything but a frame); a lazy frame is
        flattened by its engine, and comes back lazy.

    Raises:
        InputError: the run cannot be read, or the order is unknown.

    >>> flatten({"q": {"a": 1.0, "b": 2.0}})["doc_id"].to_list()
    ['a', 'b']
    """
    searched = read_run(run, columns=columns)
    if isinstance(nw.from_native(run, pass_through=True), nw.LazyFrame):
        return searched.flatten_lazily(order)
    return _like(searched.flatten(order), run)


def _like(frame: pl.DataFrame, source: Any) -> Any:
    native = nw.from_native(source, pass_through=True) if not isinstance(source, Run) else source
    if not isinstance(native, nw.DataFrame):
        return frame
    if native.implementation.is_pandas():
        return frame.to_pandas()
    return frame.to_arrow() if native.implementation.is_pyarrow() else frame
