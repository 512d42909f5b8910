"""The public functions that score and count. Each makes an experiment for one analysis."""

from collections.abc import Mapping, Sequence
from typing import Any, Unpack

import polars as pl

from goodgain.analysis.reporting.curves import Points
from goodgain.counting.run_opening import is_replicates
from goodgain.errors import InputError
from goodgain.experiments.experiment import Experiment
from goodgain.experiments.shared_arguments import (
    CountingOptions,
    CurveOptions,
    RankingOptions,
    ReadingOptions,
    ScoresOptions,
    takes_options,
)
from goodgain.measures.names import Measures
from goodgain.measures.scores import Scores


@takes_options
def evaluate(
    qrels: Any,
    run: Any,
    measures: Measures,
    *,
    groups: Any = None,
    interval: bool = False,
    **options: Unpack[ScoresOptions],
) -> Scores:
    """Score a run on any measures of goodgain and ir_measures.

    Args:
        qrels: judgments in any form that `read_qrels` accepts.
        run: a run (input of `read_run`), or a list of several runs of one system (replicates). For a list, the value of a query is
            the mean over the runs that have a value, and `Scores.replicates` has the scores of each run.
        measures: names ("nDCG@10 SRE@3"), measure objects, or a list of both. With rel=1, `nCG@6` means `nCG(rel=1)@6`.
        groups: a file or a frame of query_id and group. `Scores.by_group` then has the means over each group.
        interval: also compute the bootstrap interval of each mean, for `Scores.intervals`. The values of several
            runs are first averaged query by query.
        {options}

    Returns:
        `Scores`. The means of all measures are over the judged queries with a value. Queries without judgments are left
        out. By default, a query that is missing from the run is scored as a query without a search. `signature` has the numbers of
        absent and of unjudged queries. If a value is not finite, the value and the mean of its measure are null, with a notice.

    Raises:
        InputError: the run or the qrels cannot be read, or `bounds` is given with labels by iteration.
        MeasureError: a measure is unknown, or cannot be computed from this input.

    Source: the Retrieved Good Gain guideline; for all other measures ir_measures.

    >>> run = pl.DataFrame({"query_id": "q", "iteration": [1, 2], "doc_id": ["a", "b"]})
    >>> scores = evaluate({"q": {"a": 3}}, run, "nDCG@10 CG SRE")
    >>> scores.mean()
    {'nDCG@10': 1.0, 'CG': 3.0, 'SRE': 0.5}
    """
    (scores,) = Experiment(qrels, {"": run}, **options).score_each(measures, groups=groups, interval=interval).values()
    return scores


@takes_options
def ledger(
    qrels: Any, run: Any, *, measures: Measures | None = None, **options: Unpack[CountingOptions]
) -> pl.DataFrame:
    """Count the results, unique results, repeats, good results and gain of each iteration.

    Args:
        qrels: judgments in any form that `read_qrels` accepts.
        run: a run in any form that `read_run` accepts.
        measures: measures of goodgain without @. Each adds a column: the value if the agent had stopped after the iteration.
        {options}

    Returns:
        One row per (query, iteration) of the run: query_id, iteration (1..N), R, UR, Dup, GR, G, Unjudged, judged
        (whether the query has any judgment), a column per measure, and coverage (the judged share of the new results,
        null without new results). Measures and coverage are null if the query has no judgment.

    Raises:
        InputError: the run or the qrels cannot be read.
        MeasureError: goodgain does not compute a measure at iterations, or the measure has an @.

    A query has no row after its last iteration. So the mean of a column at iteration i leaves out queries that have stopped.
    Use `curve` for means over all queries.

    Source: the Retrieved Good Gain guideline, R^i, UR^i, GR^i, G_i.

    >>> run = pl.DataFrame({"query_id": "q", "iteration": [1, 1, 2], "doc_id": ["a", "b", "a"]})
    >>> ledger({"q": {"a": 3}}, run, measures="SRR").select("R", "UR", "GR", "G", "SRR").rows()
    [(2, 2, 1, 3.0, 0.0), (1, 0, 0, 0.0, 0.3333333333333333)]
    """
    if is_replicates(run):
        raise InputError("gg.ledger takes one run. Give one, or use gg.Experiment(...).ledger() for several runs.")
    return Experiment(qrels, {"": run}, **options).ledger(measures).drop("system")


@takes_options
def coverage(qrels: Any, runs: Mapping[str, Any], **options: Unpack[ReadingOptions]) -> pl.DataFrame:
    """Return the coverage of each system: judged unique results / unique results.

    A result is unique if its document occurs for the first time in the query. Any label is a judgment, even 0 or a negative
    label. Queries without judgments do not count.

    Args:
        qrels: judgments in any form that `read_qrels` accepts.
        runs: maps names of one or more systems to runs (inputs of `read_run`). Large files are read in blocks.
        {options}

    Returns:
        A frame with system, iteration, judged, unique and coverage (null without unique results). The first row of each
        system counts all iterations, and has null as iteration.

    Raises:
        InputError: a run or the qrels cannot be read.

    Source: `Judged` of ir_measures, the judged share of a ranking.

    >>> qrels = {"q": {"a": 3, "b": 0}}
    >>> run = pl.DataFrame({"query_id": "q", "iteration": [1, 1, 2, 2], "doc_id": ["a", "x", "a", "b"]})
    >>> coverage(qrels, {"agent": run}).rows()
    [('agent', None, 2, 3, 0.6666666666666666), ('agent', 1, 1, 2, 0.5), ('agent', 2, 1, 1, 1.0)]
    """
    return Experiment(qrels, runs, **options).coverage()


@takes_options
def curve(
    qrels: Any,
    runs: Mapping[str, Any],
    measures: Measures,
    *,
    upto: int | None = None,
    over: str | None = None,
    costs: Any = None,
    at: Sequence[float] | None = None,
    **options: Unpack[CurveOptions],
) -> pl.DataFrame:
    """Return the mean of each measure at every iteration. The mean of CG at iteration i equals `CG@i` of `evaluate`.

    Every mean is over all queries of the qrels. The iterations after a query has stopped count as empty, as for
    `CG@i`: sums keep their value, and means over iterations (RG) fall.

    With `over`, the rows are means at every amount spent. A query has the value of the last iteration that the amount pays
    for, and 0 if the amount does not pay for the first iteration.

    Args:
        qrels: judgments in any form that `read_qrels` accepts.
        runs: maps names of systems to runs (inputs of `read_run`), or to lists of runs (replicates). Replicates are averaged
            query by query. Large files are read in blocks.
        measures: measures of goodgain without @, such as "CG SRE SRR".
        upto: the last iteration. None: the last iteration of any query of any run.
        over: the quantity spent: `searches` (iterations), `results`, `tokens`, `cost` or `seconds`. None: rows by iteration.
        costs: a table (file or frame) that `convert --costs` wrote, or a list of tables. It is needed if `over` is `tokens`,
            `cost` or `seconds`. A judged query whose costs are unknown is left out of all systems, with a notice. With costs,
            each system must have a single run.
        at: the spent amounts for which to return rows. None: at most 50 observed amounts, evenly spaced in rank.
        {options}

    Returns:
        A row per system, measure and iteration (1..upto):

        - mean: null if a query has no finite value.
        - searching: the number of judged queries that have this iteration, in any run of the system.
        - without_results: only if a lower-is-better share such as SRR has queries without results so far (with `over`:
          without any), which count as 0: their number, in any run of the system.
        - queries: the number of all judged queries.
        - low, high: the bootstrap percentile interval of the mean, with the same draws as in `compare`; null if the mean
          is null, or with resamples=0. Use `compare` to test whether two systems differ.
        - coverage: the judged share of an iteration's new results, in all runs of the system; null if there are no new results.
        - least, most: the smallest and the largest mean of a single run; null for a system of one run. The columns exist only if
          a system has several runs.

        With `over`, a row per system, measure and spend. The columns `over` and `spend` replace iteration, and there is
        no column coverage. `searching` is the number of queries that spend at least this much in any run.

    Raises:
        InputError: a run or the qrels cannot be read, there are too many iterations, an option is out of range, or two
            systems share no judged query.
        MeasureError: goodgain does not compute a measure at iterations, or the measure has an @.

    Source: the Retrieved Good Gain guideline, measures at iteration i.

    >>> qrels = {"q1": {"a": 3, "b": 2}, "q2": {"a": 2}}
    >>> run = [("q1", 1, "a"), ("q1", 2, "b"), ("q2", 1, "a")]
    >>> frame = pl.DataFrame(run, schema=["query_id", "iteration", "doc_id"], orient="row")
    >>> curve(qrels, {"agent": frame}, "CG").select("iteration", "mean", "searching", "low", "high").rows()
    [(1, 2.5, 2, 2.0, 3.0), (2, 3.5, 1, 2.0, 5.0)]
    """
    return Experiment(qrels, runs, **options).curve(measures, upto=upto, over=over, costs=costs, at=at)


@takes_options
def pr_curve(
    qrels: Any,
    runs: Mapping[str, Any],
    *,
    points: Points = "eleven",
    per_query: bool = False,
    **options: Unpack[RankingOptions],
) -> pl.DataFrame:
    """Return interpolated precision at levels of recall: the highest precision at the same or a higher recall.

    The value at level i/10 is the highest precision at a rank where 10 * (relevant so far) >= i * R. R is the query's
    number of documents with a label of at least `rel` (1 by default). The precision is 0 if R = 0 or the ranking
    never reaches the recall.

    Args:
        qrels: judgments in any form that `read_qrels` accepts.
        runs: maps names of one or more systems to runs (inputs of `read_run`). Large files are read in blocks.
        points: `eleven` means recall 0, 0.1, ..., 1. `all` means every recall above 0 that the system reaches in any query.
            With `per_query`, a query has only the recalls reached in this query. Beyond the last point, the precision is 0.
        per_query: return the values of each query instead of their mean.
        {options}

    Returns:
        A frame with system, recall and precision (mean over all queries of the qrels). A query that the run lacks has 0 at
        every level. With `per_query`, the frame also has query_id.

    Raises:
        InputError: a run or the qrels cannot be read, or an option is unknown.
        MeasureError: rel is not a number above 0.

    Source: Manning, Raghavan and Schütze, Introduction to Information Retrieval, section 8.4.

    >>> found = pr_curve({"q": {"a": 1, "c": 1}}, {"agent": {"q": {"a": 3.0, "b": 2.0, "c": 1.0}}})
    >>> [round(precision, 2) for precision in found["precision"]]
    [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.67, 0.67, 0.67, 0.67, 0.67]
    """
    return Experiment(qrels, runs, **options).pr_curve(points=points, per_query=per_query)


@takes_options
def spend(
    qrels: Any,
    runs: Mapping[str, Any],
    costs: Any = None,
    *,
    outcomes: Any = None,
    price_per_search: float | None = None,
    per_query: bool = False,
    **options: Unpack[CurveOptions],
) -> pl.DataFrame:
    """Return the costs per gain of each system, and the number of searches that yield 95 % of the system's gain.

    A search is an iteration here. A query that has stopped spends nothing more.

    Args:
        qrels, runs: as in `curve`. Gains and searches of several runs of a system are averaged query by query.
        costs: costs as in `curve`, with or without a column iteration. A judged query whose costs are unknown is left
            out of all systems, with a notice. With costs, each system must have a single run.
        outcomes: a table of query_id, system and solved, as in `compare`.
        price_per_search: the gain that a search must yield to be worth its price.
        per_query: return a row per system, query and quantity instead: the columns are system, query_id, quantity, value.
            A value is null if it is undefined, such as CostPerGood of a query that found nothing good.
        {options}

    Returns:
        A row per system and quantity: value, low and high (bootstrap percentile interval; null if not finite),
        queries (number of queries used), better (`up`, `down` or null). The quantities (the first three need values in `costs`):

        - CostPerGood: sum of cost / sum of NumGood over queries.
        - GainPerCall: sum of CG / sum of search calls.
        - TokensPerSolved: sum of input and output tokens / sum of solved. It also needs `outcomes`.
        - SearchesFor95: the smallest number i of searches with sum of CG@i >= 0.95 * sum of CG. Queries without gain do not
          count.
        - SearchesWorthPrice: the number i of searches at which sum of CG@i - price_per_search * (searches up to i) is
          highest; 0 if no search is worth its price.

    Raises:
        InputError: a table cannot be read, an option is out of range, or a system has no costs or outcomes.

    >>> qrels = {"q1": {"a": 3, "b": 2}, "q2": {"a": 2}}
    >>> run = [("q1", 1, "a"), ("q1", 2, "b"), ("q2", 1, "x")]
    >>> frame = pl.DataFrame(run, schema=["query_id", "iteration", "doc_id"], orient="row")
    >>> costs = pl.DataFrame({"query_id": ["q1", "q2"], "calls": [2, 1], "cost": [0.5, 0.25]})
    >>> spend(qrels, {"agent": frame}, costs, resamples=0).select("quantity", "value", "queries").rows()
    [('CostPerGood', 0.375, 2), ('GainPerCall', 1.6666666666666667, 2), ('SearchesFor95', 2.0, 1)]
    """
    x = Experiment(qrels, runs, **options)
    return x.spend(costs, outcomes=outcomes, price_per_search=price_per_search, per_query=per_query)
