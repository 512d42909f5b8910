"""Scores a run on measures of goodgain and of ir_measures in one call."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from typing import Any, NamedTuple

import ir_measures
import narwhals as nw
import polars as pl

from goodgain.argument_kinds import checks_kinds
from goodgain.counting.coverage import Coverage, warn_of_run
from goodgain.counting.ledger import Counts, count_pools, ledger_and_pools
from goodgain.counting.query_batches import QrelsByQuery, QueryBatch, RankingRequest, consume_batches
from goodgain.counting.run_in_blocks import RunFile
from goodgain.errors import InputError, OfSeveral, count_of, notice
from goodgain.formats import Qrels, Run, read_run
from goodgain.formats.any_source import Columns
from goodgain.formats.iterations import describe_likely_iteration, warn_of_likely_iteration
from goodgain.measures.bounds import RaisedScores, find_largest_label, find_rule
from goodgain.measures.declaration import GoodGainMeasure, IterationMeasure, SessionMeasure
from goodgain.measures.ledger_values import BatchScores, make_finite
from goodgain.measures.names import (
    find_null_rule,
    find_results_counts,
    is_computed_here,
    is_null_without_search,
    needs_results,
    parse_measure,
)
from goodgain.measures.parameters import check_parameters
from goodgain.measures.ranking_values import RankedScores, aggregate_values, find_positions, score_ranking
from goodgain.measures.scores import Scores
from goodgain.measures.session_values import SessionScores
from goodgain.measures.thresholds import find_thresholds
from goodgain.measures.users_values import sign_definitions
from goodgain.options import ORDER, check_choice, spell
from goodgain.providers import ProvidedValues, ProviderScores, is_own_function
from goodgain.version import __version__

#: Two means that differ by less are equal up to rounding.
_ROUNDING = 1e-12


def score_run(
    qrels: Qrels,
    run: Run | RunFile,
    asked: Sequence[ir_measures.Measure],
    *,
    rel: float | None = None,
    order: str,
    provider: str | None,
    bounds: bool = False,
    tables: Mapping[str, pl.DataFrame] | None = None,
) -> Scores:
    """Score an opened run on measures, and give notices about the run. Notices about the qrels are left to the caller.

    The notice about low coverage is left to the caller too. `rel` is the threshold that the measures were parsed with. For
    `tables`, see `Searches`.
    """
    check_choice("order", order)
    if bounds and qrels.labels is not None:
        remedy = f"read the qrels without {spell('labels', 'iteration')}"
        raise InputError(f"{spell('bounds', True)} needs one label per document; {remedy}")
    # `leave_out_empty` tells queries without results by these counts, such as NumResults@3
    counts = find_results_counts(filter(needs_results, asked)).values()
    measures = _MeasuresBySource(list(dict.fromkeys([*asked, *map(parse_measure, counts)])), provider)
    if any(isinstance(measure, IterationMeasure) for measure in asked):
        refuse_likely_iteration(run)
    warn_of_likely_iteration(run.likely_iteration)
    query_values = consume_batches(
        lambda batches: _score_batches(batches, qrels, run, measures, tables or {}, provider=provider, bounds=bounds),
        qrels,
        run,
        rels=measures.rels,
        ranking=_request_ranking(qrels, measures, order, bounds=bounds),
    )
    one_time = warn_of_run(qrels, run, query_values.coverage)
    means = aggregate_values(measures.computed_here, query_values.values) | _average_values_of_providers(
        query_values.provided
    )
    scores = Scores(
        {str(measure): means[str(measure)] for measure in asked},
        _sign(query_values, qrels, measures, order=order) | run.reading.signature,
        query_values.coverage.tabulate(has_labels=qrels.has_labels),
        query_values.values,
        query_values.provided.per_query,
        query_values.coverage.queries,
        rel,
        query_values.raised,
        None if query_values.raised is None else aggregate_values(measures.bounded, query_values.raised),
        ids_mapped=(run.ids_mapped, qrels.ids_mapped) if "documents" in qrels.documents else None,
        lacks_iterations=query_values.coverage.lacks_iterations(run),
        one_time=one_time,
        first_iteration=query_values.coverage.find_first_iteration(run),
    )
    _warn_if_no_value(scores, asked)
    _warn_of_other_means(query_values.provided, query_values.coverage.queries.judged)
    return scores


def _average_values_of_providers(provided: ProvidedValues) -> dict[str, float | None]:
    """Return the means of the measures that ir_measures computed; None if a value is null, or the mean is not finite."""
    nulls = provided.list_measures_with_nulls()
    means: dict[str, float | None] = {}
    for measure, mean in provided.means.items():
        has_mean = str(measure) not in nulls and math.isfinite(mean)
        means[str(measure)] = mean if has_mean else None
    return means


def _request_ranking(qrels: Qrels, measures: _MeasuresBySource, order: str, *, bounds: bool) -> RankingRequest | None:
    """Return what each batch must have beside its tally; None if all measures are computed from the tally.

    With labels by iteration, a batch has the documents of the ranking, and `_score_batches` makes the table.
    """
    if not measures.ranked and not measures.provided and not measures.session:
        return None
    by_iteration = qrels.labels is not None
    return RankingRequest(
        order,
        with_documents=bool(measures.provided) or by_iteration,
        with_table=bool(measures.ranked) and not by_iteration,
        positions=find_positions(measures.ranked),
        with_rows=bool(measures.session) or any(map(is_own_function, measures.provided)),
        unjudged=bounds,
    )


class _MeasuresBySource:
    """Sorts measures by what computes them.

    `good_gain` is computed from the ledger, `session` from all rows, `ranked` from the ranking, and `provided` by ir_measures.
    """

    def __init__(self, measures: Sequence[ir_measures.Measure], provider: str | None) -> None:
        self.good_gain = [measure for measure in measures if isinstance(measure, GoodGainMeasure)]
        self.session = [measure for measure in measures if isinstance(measure, SessionMeasure)]
        others = [measure for measure in measures if not isinstance(measure, IterationMeasure)]
        self.ranked = [measure for measure in others if is_computed_here(measure, provider=provider)]
        self.provided = [measure for measure in others if measure not in self.ranked]
        for measure in self.provided:
            check_parameters(measure)
        self.computed_here = [*self.good_gain, *self.session, *self.ranked]
        self.bounded = [measure for measure in (*self.good_gain, *self.ranked) if find_rule(measure)]
        self.rels = find_thresholds(measures)


class _Values(NamedTuple):
    values: pl.DataFrame  # a column per measure that is computed here
    provided: ProvidedValues
    coverage: Coverage
    without_good: list[int]  # judged queries without a good document, per threshold
    raised: pl.DataFrame | None  # the same columns with raised labels; None without bounds


def _score_batches(
    batches: Iterator[QueryBatch],
    qrels: Qrels,
    run: Run | RunFile,
    measures: _MeasuresBySource,
    tables: Mapping[str, pl.DataFrame],
    *,
    provider: str | None,
    bounds: bool,
) -> _Values:
    """Compute the values of all measures. The batches have what `_request_ranking` asked for, and share no query."""
    good_gain = BatchScores(measures.good_gain, qrels, measures.rels)
    upper_bounds = RaisedScores(measures.bounded, qrels, measures.rels) if bounds else None
    session = SessionScores(measures.session, qrels, tables)
    ranked: RankedScores | None = None
    from_provider = ProviderScores(measures.provided, qrels.frame, provider=provider)
    qrels_by_query = QrelsByQuery(qrels)
    labelled: list[tuple[pl.DataFrame, pl.DataFrame]] = []  # labels and rankings, if labels apply to iterations

    with ThreadPoolExecutor(1) if isinstance(run, RunFile) else nullcontext() as beside:
        for number, batch in enumerate(batches):
            if number == 0 and beside is not None:  # compute the digest while the next blocks are counted
                beside.submit(lambda: qrels.digest)
            good_gain.add(batch.tally)
            if upper_bounds is not None:
                upper_bounds.add(batch.tally, batch.table)
            if measures.session and batch.rows is not None:
                session.add(batch.rows)
            if batch.table is not None:
                ranked = ranked or RankedScores(measures.ranked, qrels.judgments)
                ranked.add(batch.table)
            if batch.ranking is not None:
                labels = qrels_by_query.take(batch)
                if measures.provided:
                    from_provider.add(labels, batch.ranking, batch.rows)
                if measures.ranked and qrels.labels is not None:
                    labelled.append((labels, batch.ranking))

    # Judged queries that no batch has are scored as queries without a search.
    values, coverage = good_gain.finish()
    labels_left = qrels.frame.clear()
    if measures.provided or labelled:
        labels_left = qrels_by_query.take_rest()
    frames = [] if ranked is None else [ranked.finish()]
    if labelled:
        labels, rankings = (pl.concat(parts) for parts in zip(*labelled, strict=True))
        all_labels = pl.concat([labels, labels_left])
        frames = [score_ranking(measures.ranked, rankings, all_labels, values.get_column("query_id"))]
    if measures.session:
        frames.append(session.finish())
    for frame in frames:
        values = values.hstack(frame.get_columns()[1:])  # each has all judged queries, sorted
    values = _remove_without_search(values, measures.computed_here, coverage)

    without_good = [int((good_gain.pools.get_column(f"GoodPool{k}") == 0).sum()) for k in range(len(measures.rels))]
    provided = from_provider.finish(labels_left, has_iterations=not coverage.lacks_iterations(run))
    provided = provided._replace(per_query=make_finite(provided.per_query))
    raised = None if upper_bounds is None else make_finite(upper_bounds.finish())
    return _Values(make_finite(values), provided, coverage, without_good, raised)


def _remove_without_search(
    values: pl.DataFrame, measures: Sequence[ir_measures.Measure], coverage: Coverage
) -> pl.DataFrame:
    """Remove the values of queries that were not searched, for measures that have none there (`is_null_without_search`)."""
    names = [str(measure) for measure in measures if is_null_without_search(measure)]
    if not names or not len(coverage.queries.not_searched):
        return values
    is_searched = ~pl.col("query_id").is_in(coverage.queries.not_searched.implode())
    return values.with_columns(pl.when(is_searched).then(name).alias(name) for name in names)


def refuse_likely_iteration(run: Run | RunFile) -> None:
    """Raise `InputError` if an unread column of the run looks like the iteration. The caller needs iterations."""
    if run.likely_iteration is not None:
        raise InputError(f"the run has no iteration column: {describe_likely_iteration(run.likely_iteration)}")


def count_run(qrels: Qrels, run: Run | RunFile, rels: Sequence[float]) -> dict[float, Counts]:
    """Return the ledger and pools of a run at each threshold of `rels`."""
    refuse_likely_iteration(run)
    tallied = consume_batches(lambda batches: pl.concat([batch.tally for batch in batches]), qrels, run, rels=rels)
    pools = count_pools(qrels.judgments, rels=rels)
    return ledger_and_pools(tallied.sort("query_id", "iteration"), pools, qrels.judgments, rels=rels)


def _warn_if_no_value(scores: Scores, measures: Sequence[ir_measures.Measure]) -> None:
    """Give a notice on measures that are null for all queries by their rule, and one on those with a value that is not finite."""
    rules = {str(measure): find_null_rule(measure) for measure in measures if scores.means[str(measure)] is None}
    for rule in filter(None, dict.fromkeys(rules.values())):
        without = [name for name, rule_of_measure in rules.items() if rule_of_measure == rule]
        notice(
            "no_value",
            f"{', '.join(without)}: no value for any query. The value is null if {rule}. Check that run and qrels use the same "
            "ids, or use a larger cutoff.",
        )
    if names := [name for name, mean in scores.means.items() if mean is None and not rules.get(name)]:
        nulls_of_measures = scores.per_query.group_by("measure").agg(pl.len(), nulls=pl.col("value").null_count())
        counts = {
            name: f"{nulls:,} of {count_of(queries, 'query', 'queries')}"
            for name, queries, nulls in nulls_of_measures.iter_rows()
        }
        measures_and_counts = ", ".join(f"{name} in {counts.get(name, 'any query')}" for name in names)
        notice(
            "no_finite_value",
            f"no finite value of {measures_and_counts}: a query without a finite value gets null, and the mean is null too",
        )


def _warn_of_other_means(provided: ProvidedValues, judged: int) -> None:
    """Give a notice if ir_measures has another mean of a measure: it also averages queries of the run without judgments."""
    for measure, mean in provided.means.items():
        other_mean, queries = provided.means_in_ir_measures[measure]
        if (
            other_mean == mean
            or math.isclose(other_mean, mean, rel_tol=_ROUNDING)
            or (math.isnan(mean) and math.isnan(other_mean))
        ):
            continue
        fact = f"{measure}: this mean is over the judged queries, but ir_measures also counts queries without judgments"
        remedy = "For equal means, leave such queries out of the run."
        figures = f"{mean:.4f} over {count_of(judged, 'query', 'queries')} here, {other_mean:.4f} over {queries:,} in ir_measures"
        notice(
            "means_of_ir_measures", f"{fact} ({figures}). {remedy}", of_several=OfSeveral(f"{fact}. {remedy}", figures)
        )


def _sign(query_values: _Values, qrels: Qrels, measures: _MeasuresBySource, *, order: str) -> dict[str, Any]:
    """Return the signature: the versions and options behind the values, and the numbers of queries without one."""
    coverage, queries = query_values.coverage, query_values.coverage.queries
    signature: dict[str, Any] = {"goodgain": __version__, "ir_measures": ir_measures.__version__}
    has_threshold = any(measure.declaration.uses_rel for measure in (*measures.good_gain, *measures.session))
    if has_threshold and qrels.has_labels:
        signature["rel"] = [int(rel) if rel == int(rel) else rel for rel in measures.rels]
    if measures.ranked or measures.provided:
        signature["order"] = order
        signature["classic"] = ["goodgain"] if measures.ranked else []
        for name, computed in query_values.provided.providers.items():
            names = "+".join(str(measure) for measure in measures.provided if measure in computed)
            signature["classic"].append(f"{name}:{names}")
    nulls = {}
    for measure in filter(find_null_rule, measures.computed_here):
        nulls[str(measure)] = query_values.values.get_column(str(measure)).null_count()
    if any(nulls.values()):
        signature["without_value"] = [f"{name}:{number}" for name, number in nulls.items() if number]
    signature |= sign_definitions(measures.computed_here)
    if qrels.reading is not None:
        signature["labels"] = qrels.reading
    if query_values.raised is not None:
        signature["bounds"] = f"0..{find_largest_label(qrels.frame):g}"
    signature |= qrels.documents
    signature |= {"qrels": qrels.digest, "queries": queries.judged}
    if has_threshold and qrels.has_labels:
        signature["without_good"] = query_values.without_good
    signature["absent_from_run"] = len(queries.only_judged)
    signature["without_judgments"] = len(queries.only_searched)
    if qrels.has_labels:
        signature["unjudged"] = coverage.unjudged / coverage.unique if coverage.unique else 0.0
    return signature


@checks_kinds
def flatten(run: Any, *, order: str = ORDER, columns: Columns | None = None) -> Any:
    """Merge the iterations of each query into one classic ranking, in which each document occurs once.

    A query with one iteration and no repeats keeps its scores. Any other query gets the scores n, n-1, ..., 1.

    Args:
        run: any input of `read_run`.
        order: `seen` sorts by iteration, then rank; `interleaved` sorts by position in the iteration, then iteration;
            `last` keeps only the last iteration.
        columns: a dict from names of columns in the source to names in goodgain.

    Returns:
        A frame with the columns of a run, of the same library as `run` if `run` is a frame. If `run` is a lazy frame, the
        result is lazy too. For a path, a dict, named tuples or a `Run`, the result is a pandas frame, which ir_measures takes.

    Raises:
        InputError: the run cannot be read, or the order is unknown.

    >>> flatten({"q": {"a": 1.0, "b": 2.0}})["doc_id"].to_list()
    ['a', 'b']
    """
    loaded_run = read_run(run, columns=columns)
    frame = nw.from_native(run, pass_through=True)
    if isinstance(frame, nw.LazyFrame):
        return loaded_run.flatten_lazily(order)
    ranking = loaded_run.flatten(order)
    if not isinstance(frame, nw.DataFrame) or frame.implementation.is_pandas():
        return ranking.to_pandas()
    return ranking.to_arrow() if frame.implementation.is_pyarrow() else ranking
