"""Scores of a run: our measures and the hosts', in one call and one table; and the ledger they come from."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, NamedTuple

import ir_measures
import narwhals as nw
import polars as pl

from goodgain.batches.query_batches import RankingRequest, ScatteredQueriesError, query_batches, tally_run
from goodgain.batches.run_file import RunFile, open_run_and_qrels
from goodgain.classic.labels import QrelsByQuery
from goodgain.classic.scores import Classic, HostScores
from goodgain.counting.coverage import (
    Coverage,
    measure_coverage,
    warn_if_labels_exceed_scale,
    warn_if_misleading,
    warn_if_no_label_reaches,
)
from goodgain.counting.ledger import Counts, count, count_pools, ledger_and_pools
from goodgain.errors import InputError, notice
from goodgain.formats import Qrels, Run, read_run
from goodgain.formats.column_names import Columns
from goodgain.formats.run import describe_likely_iteration, warn_of_likely_iteration, warn_of_missing_iterations
from goodgain.measures import MEASURES
from goodgain.measures.batch_scores import BatchScores
from goodgain.measures.declaration import DEFAULT_REL, GoodGainMeasure
from goodgain.measures.names import Measures, parse_measures
from goodgain.measures.parameters import check_parameters
from goodgain.measures.ranked import takes
from goodgain.measures.ranked_declaration import RankedMeasure
from goodgain.measures.ranked_values import RankedScores, aggregate_values
from goodgain.measures.scores import Scores
from goodgain.measures.values import (
    average_queries,
    check_along_iterations,
    final_values,
    find_thresholds,
    make_finite,
    running_values,
)
from goodgain.ranking.flattening import check_order
from goodgain.version import __version__

__all__ = [
    "Scores",
    "count_with_notices",
    "evaluate",
    "find_used_thresholds",
    "flatten",
    "ledger",
    "score_good_gain",
    "score_run",
    "warn_of_labels",
]


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
    warn_of_labels(judged, asked)
    return score_run(judged, searched, asked, order=order, provider=provider)


def score_run(
    judged: Qrels, searched: Run | RunFile, asked: Sequence[ir_measures.Measure], *, order: str, provider: str | None
) -> Scores:
    """`evaluate` for what has been read, without the notices that are about the qrels alone."""
    check_order(order)
    sorted_measures = _Families.of(asked, provider)
    check_iterations(searched, sorted_measures.good_gain)
    found: _Values | None = None
    with ThreadPoolExecutor(1) as beside:
        digest = beside.submit(lambda: judged.digest)  # takes a fifth of a second for a million labels
        with suppress(ScatteredQueriesError):
            found = _score_batches(searched, judged, sorted_measures, order=order, provider=provider)
        if found is None:  # outside the handler: the error would hold all of the first attempt
            found = _score_batches(searched, judged, sorted_measures, order=order, provider=provider, scattered=True)
    warn_if_misleading(found.coverage, labels=judged.labels)
    values, of_hosts = make_finite(found.values), make_finite(found.hosts.per_query)
    means = _mean_hosts(found.hosts, of_hosts) | aggregate_values(sorted_measures.ranked, values)
    means |= {str(measure): average_queries(values.get_column(str(measure))) for measure in sorted_measures.good_gain}
    scores = Scores(
        {str(measure): means[str(measure)] for measure in asked},
        _sign(found, judged, sorted_measures, order=order) | {"qrels": digest.result()},
        values,
        of_hosts,
    )
    _warn_if_no_value(scores)
    return scores


class _Families(NamedTuple):
    """The measures of a call by what computes them: ledger, ranking table, or a host."""

    good_gain: list[GoodGainMeasure]
    ranked: list[ir_measures.Measure]
    hosts: list[ir_measures.Measure]

    @classmethod
    def of(cls, measures: Sequence[ir_measures.Measure], provider: str | None) -> _Families:
        """Sort measures; a provider that is named computes all that are not ours alone."""
        good_gain = [measure for measure in measures if isinstance(measure, GoodGainMeasure)]
        others = [measure for measure in measures if not isinstance(measure, GoodGainMeasure)]
        ranked = [m for m in others if (provider is None or isinstance(m, RankedMeasure)) and takes(m)]
        hosts = [measure for measure in others if measure not in ranked]
        for measure in hosts:
            check_parameters(measure)
        return cls(good_gain, ranked, hosts)

    @property
    def rels(self) -> list[float]:
        """The thresholds of the ledger."""
        return find_thresholds(self.good_gain) or [DEFAULT_REL]


class _Values(NamedTuple):
    """The values of a run: query_id and a column for each measure of ours; the hosts' own; and how far the run reaches.

    `without_good` is the number of judged queries without a good document, for each threshold.
    """

    values: pl.DataFrame
    hosts: Classic
    coverage: Coverage
    without_good: list[int]


def _score_batches(
    run: Run | RunFile,
    qrels: Qrels,
    families: _Families,
    *,
    order: str,
    provider: str | None,
    scattered: bool = False,
) -> _Values:
    """Count and score a run, batch by batch."""
    rels, by_iteration = families.rels, qrels.labels is not None
    pools = count_pools(qrels.frame, rels=rels, labels=qrels.labels)
    good_gain = BatchScores(families.good_gain, pools, rels)
    ranked = RankedScores(families.ranked, qrels.largest) if families.ranked else None
    query_ids = pools.get_column("query_id").to_list()
    hosts = HostScores(families.hosts, query_ids, qrels.frame.get_column("relevance"), provider=provider)
    labels = QrelsByQuery(qrels)
    needs_documents = bool(families.hosts or (ranked and by_iteration))
    request = None
    if ranked or families.hosts:
        judgments = ranked.judgments if ranked and not by_iteration else None
        request = RankingRequest(order, needs_documents, judgments, ranked.plan.positions if ranked else ())
    for batch in query_batches(run, qrels, rels=rels, ranking=request, scattered=scattered):
        good_gain.add(batch.tally)
        if ranked and batch.table is not None:
            ranked.add(batch.table)
        if needs_documents and batch.ranking is not None:
            of_batch = labels.take(batch)
            if families.hosts:
                hosts.add(of_batch, batch.ranking)
            if ranked and by_iteration:
                ranked.add_labelled(batch.ranking, of_batch)
    values, coverage = good_gain.finish()
    if ranked:
        values = values.join(ranked.finish(), on="query_id", how="left", maintain_order="left")
    rest = labels.take_rest() if families.hosts else qrels.frame.clear()
    without_good = [int((pools.get_column(f"GoodPool{k}") == 0).sum()) for k in range(len(rels))]
    return _Values(values, hosts.finish(rest), coverage, without_good)


def warn_of_labels(qrels: Qrels, measures: Sequence[ir_measures.Measure]) -> None:
    """Give a notice where no label reaches a threshold, or where labels are on another scale than the default one."""
    warn_if_no_label_reaches(qrels.frame, find_used_thresholds(measures))
    if find_used_thresholds(measure for measure in measures if "rel" not in measure.params):
        warn_if_labels_exceed_scale(qrels.frame, DEFAULT_REL)


def find_used_thresholds(measures: Iterable[ir_measures.Measure]) -> list[float]:
    """The thresholds that matter to some measure: NumIter and its like have none."""
    return find_thresholds(m for m in measures if isinstance(m, GoodGainMeasure) and m.declaration.uses_rel)


def score_good_gain(measures: Sequence[GoodGainMeasure], run: Run, counts: dict[float, Counts]) -> pl.DataFrame:
    """Our measures for every judged query: query_id, and a column for each measure by its name."""
    check_iterations(run, measures)
    return final_values(measures, counts)


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


def count_with_notices(qrels: Qrels, run: Run, rels: Sequence[float]) -> dict[float, Counts]:
    """Threshold -> ledger and pools of a run, with a notice where they mean less than they seem to.

    Raises:
        InputError: a column of the run looks like the iteration, and was not read as one.
    """
    if run.likely_iteration is not None:
        raise InputError(f"the run has no column iteration: {describe_likely_iteration(run.likely_iteration)}")
    counts = count(run.frame, qrels.frame, rels=rels, labels=qrels.labels)
    warn_if_misleading(measure_coverage(counts), labels=qrels.labels)
    return counts


def _mean_hosts(classic: Classic, values: pl.DataFrame) -> dict[str, float | None]:
    """The hosts' own aggregated values; None where a query has no value, or where there is none to aggregate."""
    lacking = set(values.filter(pl.col("value").is_null()).get_column("measure"))
    means = {str(measure): mean for measure, mean in classic.means.items()}
    return {name: mean if name not in lacking and math.isfinite(mean) else None for name, mean in means.items()}


def _warn_if_no_value(scores: Scores) -> None:
    names = [name for name, mean in scores.means.items() if mean is None]
    if not names:
        return
    of_measure = scores.per_query.group_by("measure").agg(pl.len(), nulls=pl.col("value").null_count())
    counts = {name: f"{nulls:,} of {queries:,} queries" for name, queries, nulls in of_measure.iter_rows()}
    listed = ", ".join(f"{name} in {counts.get(name, 'any query')}" for name in names)
    notice(f"no finite value of {listed}: these values are null, and so is each mean over all queries")


def _sign(found: _Values, qrels: Qrels, families: _Families, *, order: str) -> dict[str, Any]:
    """How the values were made: versions, thresholds, who computed the classic measures, and on which judgments."""
    coverage = found.coverage
    signature: dict[str, Any] = {"goodgain": __version__, "ir_measures": ir_measures.__version__}
    if families.good_gain:
        signature["rel"] = [int(rel) if rel == int(rel) else rel for rel in families.rels]
    if families.ranked or families.hosts:
        signature["order"] = order
        computed = {host: [str(m) for m in families.hosts if m in of] for host, of in found.hosts.hosts.items()}
        of_hosts = [f"{host}:{'+'.join(names)}" for host, names in computed.items()]
        signature["classic"] = ["goodgain"] * bool(families.ranked) + of_hosts
    if qrels.labels is not None:
        signature["labels"] = qrels.labels
    without_good = {"without_good": found.without_good} if families.good_gain else {}
    return signature | {
        "qrels": qrels.digest,
        "queries": coverage.judged,
        **without_good,
        "absent_from_run": coverage.judged - coverage.both,
        "without_judgments": coverage.searched - coverage.both,
        "unjudged": coverage.unjudged / coverage.unique if coverage.unique else 0.0,
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

    A query has no row after its last iteration, so averaging a column by hand at iteration i leaves out the queries
    that have finished: in qrels_examples/redundancy CG of the ledger's rows of iteration 3 averages 10.0, while CG@3
    is 7.5. `curve` gives the means over all queries.

    Source: the Retrieved Good Gain guideline, R^i, UR^i, GR^i, G_i.

    >>> ledger({"q": {"a": 3}}, {"q": {"a": 1.0, "b": 0.5}}, measures="SRE").select("R", "UR", "GR", "G", "SRE").rows()
    [(2, 2, 1, 3.0, 0.5)]
    """
    asked = (
        []
        if measures is None
        else [_take_along_ledger(measure, rel) for measure in parse_measures(measures, complete=False)]
    )
    base_measure = MEASURES["CG"](rel=rel)
    base = base_measure.rel
    searched, judged = open_run_and_qrels(qrels, run, columns=columns)
    check_iterations(searched, [base_measure, *asked])
    warn_of_labels(judged, [base_measure, *asked])
    rels = sorted({base, *find_thresholds(asked)})
    tallied = tally_run(searched, judged, rels=rels)
    counts = ledger_and_pools(tallied, count_pools(judged.frame, rels=rels, labels=judged.labels), rels=rels)
    warn_if_misleading(measure_coverage(counts), labels=judged.labels)
    rows, pools = counts[base][:2]
    queries = pools.select("query_id", judged=pl.lit(True))
    result = rows.join(queries, on="query_id", how="left").with_columns(pl.col("judged").fill_null(False))
    if asked:
        result = result.join(running_values(asked, counts), on=["query_id", "iteration"], how="left")
    return result.sort("query_id", "iteration")


def _take_along_ledger(measure: ir_measures.Measure, rel: float) -> GoodGainMeasure:
    measure = check_along_iterations(measure, "the ledger")
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
    return _convert_like(searched.flatten(order), run)


def _convert_like(frame: pl.DataFrame, source: Any) -> Any:
    native = nw.from_native(source, pass_through=True) if not isinstance(source, Run) else source
    if not isinstance(native, nw.DataFrame):
        return frame
    if native.implementation.is_pandas():
        return frame.to_pandas()
    return frame.to_arrow() if native.implementation.is_pyarrow() else frame
