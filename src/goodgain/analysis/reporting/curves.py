"""Computes curves of several systems: measures at every iteration or every spend, and interpolated precision over recall."""

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Literal, NamedTuple

import polars as pl
import polars.selectors as cs

from goodgain.analysis.comparing.comparison_notes import describe_shared_queries
from goodgain.analysis.reporting.drawn_frames import CurveFrame
from goodgain.analysis.reporting.spends import choose_spends
from goodgain.counting.coverage import Coverage, combine_coverages, measure_coverage, warn_of_run
from goodgain.counting.ledger import Counts, count_pools, ledger_and_pools
from goodgain.counting.query_batches import QrelsByQuery, QueryBatch, RankingRequest, consume_batches
from goodgain.counting.run_in_blocks import RunFile
from goodgain.counting.spends import OVER, Spends, check_costs_of_runs, find_spends
from goodgain.errors import InputError, MeasureError, notice
from goodgain.formats import Qrels, Run
from goodgain.formats.iterations import warn_of_likely_iteration
from goodgain.measures.bounds import Range, find_range
from goodgain.measures.changed_scores import join_queries
from goodgain.measures.declaration import GoodGainMeasure
from goodgain.measures.good_gain import NumResults
from goodgain.measures.ledger_values import (
    average_queries,
    check_along_iterations,
    final_values,
    make_finite,
    running_values,
)
from goodgain.measures.names import Measures, needs_results, parse_measures
from goodgain.options import FOR_COMMANDS, check_whole_number, spell
from goodgain.ranking.dataframe_engines import divide_rows
from goodgain.ranking.ranking_table import Judgments, RankingTable, number_judgments, tabulate_ranking
from goodgain.statistics.intervals_of_means import Values, choose_method, find_intervals_of_means, name_methods
from goodgain.statistics.statistical_tests import RESIDUE, Settings, Vector

#: Limit of `upto=`, which computes every measure once per iteration.
_MOST_ITERATIONS = 1_000

_POINT = {"system": pl.String, "measure": pl.String}
_MEAN = {"mean": pl.Float64, "searching": pl.Int64, "queries": pl.Int64, "low": pl.Float64, "high": pl.Float64}
_COLUMNS: Mapping[str, Any] = _POINT | {"iteration": pl.Int64} | _MEAN | {"coverage": pl.Float64}
_SPEND_COLUMNS: Mapping[str, Any] = _POINT | {"over": pl.String, "spend": pl.Float64} | _MEAN
#: The columns that a system of several runs adds.
_RUN_COLUMNS = {"least": pl.Float64, "most": pl.Float64}
#: A column only where the mean of a lower-is-better share has queries without results: their number.
_WITHOUT_RESULTS = {"without_results": pl.Int64}
#: Values resampled together: 80 MB at 8 bytes each. They share their random draws.
_CELLS = 10_000_000

Points = Literal["eleven", "all", "raw"]
#: The eleven levels in tenths, and as recall. Polars rounds twice when it divides by a number: 3 / 10 would not be 0.3.
_LEVELS = pl.DataFrame({"level": range(11), "recall": [i / 10 for i in range(11)]})


class SystemCounts(NamedTuple):
    """The counts of a system: a dict {smallest good label: counts} for each run, and the coverage of all runs together."""

    runs: Sequence[Mapping[float, Counts]]
    coverage: Coverage


def join_counts(
    counts: Mapping[str, Mapping[float, Counts]], names: Mapping[str, Sequence[str]]
) -> dict[str, SystemCounts]:
    """Return a dict with the counts of each system. Give a notice if systems share few queries. `names` is from `name_runs`."""
    counted = {}
    for system, names_of_runs in names.items():
        runs = [counts[name] for name in names_of_runs]
        coverages = [measure_coverage(run) for run in runs]
        queries = join_queries([coverage.queries for coverage in coverages])
        counted[system] = SystemCounts(runs, combine_coverages(coverages)._replace(queries=queries))
    queries_of = {system: counts_of_system.coverage.queries for system, counts_of_system in counted.items()}
    if few_shared := describe_shared_queries(queries_of):
        notice("few_shared_queries", few_shared)
    return counted


def check_curve_options(
    runs: Mapping[str, Any], *, upto: int | None, over: str | None, costs: Any, at: Sequence[float] | None
) -> None:
    """Raise `InputError` for options of `gg.curve` that are wrong, or cannot be used together."""
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
        fault = f"{spell('over', over)}: needs {spell('costs')}"
        raise InputError(f"{fault}, the file that goodgain convert --costs writes.")
    check_costs_of_runs(costs, runs)


def tabulate_curve(
    counted: Mapping[str, SystemCounts],
    measures: Sequence[GoodGainMeasure],
    settings: Settings,
    *,
    largest_label: float = math.inf,
    upto: int | None = None,
    over: str | None = None,
    costs: pl.DataFrame | None = None,
    at: Sequence[float] | None = None,
) -> CurveFrame:
    """Return the table of `gg.curve`. `costs` is what `read_costs` returns."""
    if over is None:
        last = upto or _find_last_iteration(counted)
        places_of_runs = _place_iterations(counted, measures, last)
        schema = {**_COLUMNS}
    else:
        places_of_runs = _place_spends(counted, measures, over, costs, at)
        schema = {**_SPEND_COLUMNS}
    points = _list_points(places_of_runs, measures)
    ranges = {str(measure): find_range(measure, largest_label) for measure in measures}
    rows = list(_add_intervals(points, settings, ranges))

    if any(len(counts.runs) > 1 for counts in counted.values()):
        schema = schema | _RUN_COLUMNS
    if any(row["without_results"] for row in rows):
        schema = schema | _WITHOUT_RESULTS
    table = pl.DataFrame([{column: row.get(column) for column in schema} for row in rows], schema=schema)
    system = pl.col("system").cast(pl.Enum(list(counted)))
    measure = pl.col("measure").cast(pl.Enum([str(measure) for measure in measures]))
    place = "iteration" if over is None else "spend"

    curve = CurveFrame(table.with_columns(cs.float().fill_nan(None)).sort(system, measure, place))
    curve.signature = {**settings.signature}
    if methods := {row["method"] for row in rows if "method" in row}:
        curve.signature["interval"] = "+".join(sorted(methods))
    return curve


def parse_curve_measures(measures: Measures, rel: float | None) -> list[GoodGainMeasure]:
    """Return the measures of a curve. Raise `MeasureError` for a measure with a cutoff, or without a value per iteration."""
    parsed = parse_measures(measures, complete=False, rel=rel)
    checked = [check_along_iterations(measure, "a curve") for measure in parsed]
    for measure in checked:
        if measure.declaration.cutoff == "none":
            raise MeasureError(f"{measure} has no value per iteration. Leave it out.")
    return checked


def _find_last_iteration(counted: Mapping[str, SystemCounts]) -> int:
    """Return the largest number of iterations of a query in any run, at least 1. Raise `InputError` if it is too large."""
    longest = 1
    system_of_longest = ""
    for system, counts in counted.items():
        for run in counts.runs:
            length = max(_get_lengths(run), default=0)
            if length > longest:
                longest, system_of_longest = length, system
    if longest > _MOST_ITERATIONS:
        fault = f"{system_of_longest}: a query has {longest:,} iterations"
        raise InputError(f"{fault}; give {spell('upto')}, at most {_MOST_ITERATIONS:,}")
    return longest


def _get_lengths(counts: Mapping[float, Counts]) -> pl.Series:
    return next(iter(counts.values())).pools.get_column("N")  # the same for every threshold


class _Place(NamedTuple):
    """A place of the curve of a run, which is an iteration or an amount spent. A series has a value per query."""

    columns: dict[str, Any]
    values: dict[str, pl.Series]  # by measure
    is_searching: pl.Series
    has_nothing: pl.Series  # whether the query has no result up to this iteration or, over amounts, none at all


#: One mean of a curve: its row without the interval, and the values of the queries behind the mean.
_Point = tuple[dict[str, Any], Vector]
#: The places of each run of a system, by system.
_PlacesOfRuns = Mapping[str, Sequence[Iterator[_Place]]]


def _place_iterations(
    counted: Mapping[str, SystemCounts], measures: Sequence[GoodGainMeasure], last: int
) -> _PlacesOfRuns:
    places = {}
    for system, counts in counted.items():
        places[system] = [_list_iterations(run, counts.coverage, measures, last) for run in counts.runs]
    return places


def _place_spends(
    counted: Mapping[str, SystemCounts],
    measures: Sequence[GoodGainMeasure],
    over: str,
    costs: pl.DataFrame | None,
    at: Sequence[float] | None,
) -> _PlacesOfRuns:
    """Return the places at the same amounts for all runs: those in `at`, else amounts that were observed."""
    spends_of = find_spends(over, {system: counts.runs for system, counts in counted.items()}, costs)
    spends = choose_spends([spent for spent_by_runs in spends_of.values() for spent in spent_by_runs], at)
    places = {}
    for system, counts in counted.items():
        runs = zip(counts.runs, spends_of[system], strict=True)
        places[system] = [_list_spends(run, measures, over, spent, spends) for run, spent in runs]
    return places


def _list_points(places_of_runs: _PlacesOfRuns, measures: Sequence[GoodGainMeasure]) -> Iterator[_Point]:
    for system, runs in places_of_runs.items():
        yield from _average_runs(system, runs, measures)


def _list_iterations(
    counts: Mapping[float, Counts], coverage: Coverage, measures: Sequence[GoodGainMeasure], last: int
) -> Iterator[_Place]:
    """Yield the values of a run at the iterations 1..last. A query searches at an iteration if it has this iteration."""
    lengths = _get_lengths(counts)
    shares = dict(coverage.tabulate().select("iteration", "coverage").iter_rows())
    for i in range(1, last + 1):
        results = NumResults(cutoff=i)
        at_i = [measure(cutoff=i) for measure in measures]
        frame = make_finite(final_values(list(dict.fromkeys([*at_i, results])), counts))
        values = {str(measure): frame.get_column(str(measure(cutoff=i))) for measure in measures}
        has_nothing = frame.get_column(str(results)) == 0
        yield _Place({"iteration": i, "coverage": shares.get(i)}, values, lengths >= i, has_nothing)


def _list_spends(
    counts: Mapping[float, Counts],
    measures: Sequence[GoodGainMeasure],
    over: str,
    spends: Spends,
    chosen: Sequence[float],
) -> Iterator[_Place]:
    """Yield the values of a run at each amount. A query still searches at an amount if its total spend is at least that amount."""
    values = make_finite(running_values(list(dict.fromkeys([*measures, NumResults()])), counts))
    rows = spends.rows.join(values, on=["query_id", "iteration"], how="left", maintain_order="left")
    queries = pl.DataFrame({"query_id": spends.query_ids})
    totals = queries.join(rows.group_by("query_id").last(), on="query_id", how="left", maintain_order="left")
    total = totals.get_column("spend") * (1 + RESIDUE)
    has_nothing = totals.get_column(str(NumResults())).fill_null(0) == 0
    for spend in chosen:
        # rounding errors must not put a sum of costs above the spend
        reached = rows.filter(pl.col("spend") <= spend * (1 + RESIDUE)).group_by("query_id").last()
        reached = queries.join(reached, on="query_id", how="left", maintain_order="left")
        at_spend = {}
        for measure in measures:
            column = reached.get_column(str(measure))
            at_spend[str(measure)] = column if measure.declaration.null_if else column.fill_null(0.0)
        # a query without a search does not search, even at a spend of 0
        yield _Place({"over": over, "spend": spend}, at_spend, (total >= spend).fill_null(False), has_nothing)


def _average_runs(
    system: str, runs: Sequence[Iterator[_Place]], measures: Sequence[GoodGainMeasure]
) -> Iterator[_Point]:
    """Yield the points of a system's curve. The value of a query is the mean over the runs in which the query has a value."""
    for places in zip(*runs, strict=True):
        columns = places[0].columns
        searching = pl.select(pl.any_horizontal(*(place.is_searching for place in places))).to_series()
        has_nothing = pl.select(pl.any_horizontal(*(place.has_nothing for place in places))).to_series()
        for measure in measures:
            null_if = measure.declaration.null_if
            values_of_runs = [place.values[str(measure)] for place in places]
            values = pl.select(pl.mean_horizontal(*values_of_runs)).to_series()
            if null_if:
                values = values.drop_nulls()
            row = {
                "system": system,
                "measure": str(measure),
                **columns,
                "mean": average_queries(values),
                "searching": int(searching.sum()),
                "queries": len(values),
                "without_results": int(has_nothing.sum()) if needs_results(measure) else None,
            }
            if len(values_of_runs) > 1:
                averages = [average_queries(of_run, null_if=null_if) for of_run in values_of_runs]
                means = [mean for mean in averages if mean is not None]
                row["least"] = min(means, default=None)
                row["most"] = max(means, default=None)
            yield row, values.fill_null(float("nan")).to_numpy()


def _add_intervals(
    points: Iterator[_Point], settings: Settings, ranges: Mapping[str, Range]
) -> Iterator[dict[str, Any]]:
    """Yield the rows with the intervals of the means. One method is for the whole curve, by its mean over the fewest queries."""
    if not settings.resamples:
        yield from (row for row, _ in points)
        return
    rows: list[dict[str, Any]] = []
    has_exact: list[bool] = []
    ends: dict[str, list[tuple[float, float] | None]] = {"t": [], "bootstrap": []}
    method = "bootstrap"
    for first in points:
        # The values of a curve can be too many for memory, so both intervals are computed at once.
        chunk = [first, *islice(points, _CELLS // max(len(first[1]), 1))]
        means = [Values(values, *ranges[row["measure"]]) for row, values in chunk]
        rows += [row for row, _ in chunk]
        has_exact += [name_methods([mean], method) == "exact" for mean in means]
        if choose_method(len(mean.values) for mean in means) == "t":
            method = "t"
        ends["t"] += find_intervals_of_means(means, settings, "t")
        if method == "bootstrap":
            ends["bootstrap"] += find_intervals_of_means(means, settings, "bootstrap")

    for row, interval, is_exact in zip(rows, ends[method], has_exact, strict=True):
        low, high = interval or (None, None)
        yield row | {"low": low, "high": high, "method": "exact" if is_exact else method}


def check_points(points: str, *, per_query: bool) -> None:
    if points not in ("eleven", "all", "raw"):
        raise InputError(f"{spell('points', points)} is not 'eleven', 'all' or 'raw'")
    if points == "raw" and not per_query:
        remedy = "--by-query" if FOR_COMMANDS.get() else "per_query=True"
        raise InputError(
            f"{spell('points', 'raw')}: queries reach different recalls, so only interpolated points have a mean. Give {remedy}."
        )


def interpolate(hits: pl.DataFrame, query_ids: pl.Series, *, points: Points, per_query: bool) -> pl.DataFrame:
    """Return the table of `gg.pr_curve` for one system. `hits` is the frame that `find_hits` returns."""
    if points == "eleven":
        at_levels = _interpolate_at_levels(hits, query_ids)
        if per_query:
            return at_levels
        rows = []
        for (recall,), queries in at_levels.group_by("recall", maintain_order=True):
            rows.append((recall, math.fsum(queries.get_column("precision")) / queries.height))
        return pl.DataFrame(rows, schema={"recall": pl.Float64, "precision": pl.Float64}, orient="row")
    precision = "precision" if points == "all" else pl.col("at_rank").alias("precision")
    steps = hits.select("query_id", (pl.col("so_far") / pl.col("R")).alias("recall"), precision)
    return steps if per_query else _average_steps(steps, len(query_ids))


def find_hits(qrels: Qrels, run: Run | RunFile, rel: float, order: str) -> tuple[pl.DataFrame, Coverage]:
    """Return two things: a frame with a row per relevant document in the ranking, and the coverage.

    The columns are query_id, R (number of relevant documents of the query), so_far (number of relevant documents up to this
    rank), at_rank (the precision at this rank) and precision (the highest precision at this rank or a later rank). Rows are
    sorted by query_id and rank.
    """
    warn_of_likely_iteration(run.likely_iteration)
    request = RankingRequest(order, with_documents=qrels.labels is not None, with_table=qrels.labels is None)
    found, coverage = consume_batches(
        lambda batches: _collect_hits(batches, qrels, rel), qrels, run, rels=[rel], ranking=request
    )
    warn_of_run(qrels, run, coverage)
    so_far = pl.int_range(1, pl.len() + 1).over("query_id")
    ranked = found.sort("query_id", "k").with_columns(so_far=so_far)
    ranked = ranked.with_columns(at_rank=pl.col("so_far") / pl.col("k"))
    highest = pl.col("at_rank").reverse().cum_max().reverse().over("query_id")
    return ranked.select("query_id", "R", "so_far", "at_rank", precision=highest), coverage


def _collect_hits(batches: Iterator[QueryBatch], qrels: Qrels, rel: float) -> tuple[pl.DataFrame, Coverage]:
    """Return the relevant documents of all rankings (query_id, k, R), and the coverage of the run."""
    of_queries = QrelsByQuery(qrels)
    tallies = []
    found = [pl.DataFrame(schema={"query_id": pl.String, "k": pl.Int64, "R": pl.Int64})]
    for batch in batches:
        tallies.append(batch.tally)
        if batch.table is not None:
            found.append(_take_hits(batch.table, qrels.judgments, rel))
        elif batch.ranking is not None:  # a label applies to the iteration where its document first occurs
            judgments = number_judgments(of_queries.take(batch))
            found.append(_take_hits(tabulate_ranking(batch.ranking, judgments), judgments, rel))
    pools = count_pools(qrels.judgments, rels=[rel])
    counts = ledger_and_pools(pl.concat(tallies), pools, qrels.judgments, rels=[rel])
    return pl.concat(found), measure_coverage(counts)


def _take_hits(table: RankingTable, judgments: Judgments, rel: float) -> pl.DataFrame:
    """Return query_id, k (the rank) and R (all relevant documents of the query) of each relevant document in a table."""
    hits = table.rows.filter(pl.col("relevance") >= rel).select(
        pl.col("query").cast(pl.UInt32), pl.col("k").cast(pl.Int64)
    )
    relevant = judgments.labels.filter(pl.col("relevance") >= rel).group_by("query").agg(R=pl.len().cast(pl.Int64))
    hits = hits.join(relevant.with_columns(pl.col("query").cast(pl.UInt32)), on="query", how="left")
    query_id = judgments.query_ids.gather(hits.get_column("query")).alias("query_id")
    return hits.select(query_id, "k", "R")


def _interpolate_at_levels(hits: pl.DataFrame, query_ids: pl.Series) -> pl.DataFrame:
    """Return query_id, recall and precision at the eleven levels. Where the ranking does not reach a level, precision is 0."""
    relevant = hits.group_by("query_id").agg(pl.col("R").first())
    levels = pl.DataFrame({"query_id": query_ids}).join(relevant, on="query_id", how="left", maintain_order="left")
    levels = levels.join(_LEVELS, how="cross", maintain_order="left_right")
    # how many relevant documents the level needs: ceil(level * R / 10), in whole numbers
    needed = pl.max_horizontal((pl.col("level") * pl.col("R") + 9) // 10, pl.lit(1, pl.Int64))
    levels = levels.with_columns(so_far=needed)
    found = levels.join(hits.drop("R"), on=["query_id", "so_far"], how="left", maintain_order="left")
    return found.select("query_id", "recall", pl.col("precision").fill_null(0.0))


def _average_steps(steps: pl.DataFrame, queries: int) -> pl.DataFrame:
    """Return the mean precision over all queries at each recall that a query reaches.

    With rising recall, the interpolated precision of a query falls in steps to 0. The mean at a recall is the sum of all steps
    at this recall or a higher recall, divided by the number of queries. Steps are sorted for reproducible sums.
    """
    after = pl.col("precision").shift(-1).over("query_id").fill_null(0.0)
    falls = steps.select("recall", fall=pl.col("precision") - after).sort("recall", "fall")
    mean = divide_rows(pl.col("fall").reverse().cum_sum().reverse(), queries)
    return falls.select("recall", precision=mean).unique("recall", keep="first", maintain_order=True)
