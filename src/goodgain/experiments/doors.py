"""The public functions that compare, explain, draw and report. Each makes an experiment for one analysis."""

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Unpack

import polars as pl

from goodgain.analysis.comparing.comparison import Comparison
from goodgain.analysis.comparing.required_lines import Requirement
from goodgain.analysis.explaining.explanation import Explanation
from goodgain.analysis.reporting.curves import Points
from goodgain.analysis.reporting.drawn_frames import CurveFrame, RecallFrame
from goodgain.experiments.experiment import Experiment
from goodgain.formats.no_labels import NO_LABELS
from goodgain.measures.names import Measures
from goodgain.scoring.shared_arguments import (
    OF_REPORTS,
    CurveOptions,
    ExperimentOptions,
    ExplainOptions,
    RankingOptions,
    ReportOptions,
    takes_options,
)


@takes_options
def compare(
    qrels: Any,
    systems: Mapping[str, Any],
    measures: Measures,
    *,
    baseline: str | None = None,
    against: str | None = None,
    iterations: int | Sequence[int] | None = None,
    groups: Any = None,
    outcomes: Any = None,
    baseline_file: str | os.PathLike[str] | None = None,
    require: Iterable[str | Requirement] = (),
    pass_k: int | None = None,
    detect: float | None = None,
    **options: Unpack[ExperimentOptions],
) -> Comparison:
    """Compare two or more systems on any measures of goodgain and ir_measures.

    Args:
        qrels: judgments in any form that `read_qrels` accepts.
        systems: maps names of two or more systems to runs (inputs of `read_run`), or to lists of runs (replicates). Values of
            replicates are averaged query by query. All tests are over queries.
        measures: names, measure objects or both. `goodgain measures` lists the better direction of each. For a measure
            that is not listed there, higher is better.
        baseline: the system to compare all others with. With None, each system is compared with all before it.
        against: `previous` compares each system only with the system before it, for the stages of a pipeline. Holm's
            method then corrects over these pairs only.
        iterations: if a measure of goodgain has no @, a number n adds this measure at each of the iterations 1..n. A list of
            numbers replaces the measure by the measure at each of these iterations.
        groups: a file or a frame of query_id and group, to compare on each group of queries too.
        outcomes: a file or a frame of query_id, system and columns of numbers, such as solved (0 or 1). Each column is
            compared like a measure for which higher is better, and is correlated with the measures. A name may end in the
            better direction (`latency:down`); of `tokens`, `cost`, `seconds` and `calls` less is better. The frame
            `funnel(...).per_query` can also be given; goodgain knows the better direction of its columns.
        baseline_file: a file of `Comparison.write_baseline`. Its system is called `baseline`, and one run is enough to
            compare with it.
        require: requirements such as `nCG@3>=0.5`, for `Comparison.flips`. Measures in requirements are compared too. The
            function `check_requirements` checks the requirements.
        pass_k: the number k in `Comparison.flips`. None: the smallest number of runs that a query of any system has.
        detect: the difference for `Comparison.detectable`; None: the observed difference.
        {options}

    Returns:
        A `Comparison` on all queries of the qrels. A query that a run lacks counts as a query without a search (N = 0).
        A pair leaves out queries for which one of the two systems has no value. A query without results has no value of
        SRR, Fallout and Unjudged, for which lower is better. Every mean is over queries.
        A difference is significant if the Holm-corrected p of the randomisation test is at most alpha. `correction` and
        `correct_over` choose other corrections. With `bounds`, an unjudged document gets the same label in all systems, and
        runs are read into memory.

    Raises:
        InputError: fewer than two systems, an unknown baseline, a baseline together with `against`, unreadable input,
            two systems that share no judged query, or a baseline file made with other judgments.
        MeasureError: a measure is unknown, or cannot be computed from this input.

    Source: Smucker, Allan and Carterette, CIKM 2007 (tests); Carterette, TOIS 30(1), 2012 (many systems).

    >>> qrels = {f"q{number}": {"a": 3, "b": 0} for number in range(6)}
    >>> old, new = ({query_id: {doc_id: 1.0} for query_id in qrels} for doc_id in "ba")
    >>> found = compare(qrels, {"old": old, "new": new}, "RR")
    >>> found.pairs.select("system", "against", "difference", "wins", "p_randomisation_holm", "verdict").rows()
    [('new', 'old', 1.0, 6, 0.03125, 'better')]
    """
    return Experiment(qrels, systems, **options).compare(
        measures, baseline=baseline, against=against, iterations=iterations, groups=groups, outcomes=outcomes,
        baseline_file=baseline_file, require=require, pass_k=pass_k, detect=detect,
    )  # fmt: skip


@takes_options
def compare_unlabelled(
    systems: Mapping[str, Any],
    measures: Measures | None = None,
    *,
    baseline: str | None = None,
    against: str | None = None,
    iterations: int | Sequence[int] | None = None,
    groups: Any = None,
    outcomes: Any = None,
    require: Iterable[str | Requirement] = (),
    pass_k: int | None = None,
    detect: float | None = None,
    **options: Unpack[ExperimentOptions],
) -> Comparison:
    """Compare two or more systems without relevance labels: what they cost, what they repeat, and what they share.

    The same as `compare(NO_LABELS, systems, measures)`. The queries are those of all runs together.

    Args:
        systems: as in `compare`.
        measures: measures that need no label. None: all of them that need no parameter, and `searched`, the share of the
            queries that searched. RepeatedQueries needs `results`.
        baseline: as in `compare`, and so are all arguments up to `detect`.
        against: as in `compare`.
        iterations: as in `compare`.
        groups: as in `compare`.
        outcomes: as in `compare`. A column `completed` is compared too.
        require: as in `compare`.
        pass_k: as in `compare`.
        detect: as in `compare`.
        {options}

    Returns:
        A `Comparison`, whose `shared` has what the systems share: documents of both, Jaccard and rank-biased overlap of each pair
        and query, and the new results of each search. `next_step` is the call that lists what to judge.

    Raises:
        InputError: as in `compare`, or an option needs labels.
        MeasureError: a measure needs labels, or cannot be computed from this input.

    Source: Webber, Moffat and Zobel, TOIS 28(4), 2010 (rank-biased overlap); for the tests as in `compare`.

    >>> folder = "qrels_examples/redundancy/"
    >>> found = compare_unlabelled({name: f"{folder}{name}.run" for name in ("repeating", "lean")}, "SRR@2")
    >>> found.shared.pairs.select("system", "against", "documents", "both", "jaccard").rows()
    [('lean', 'repeating', 10.0, 10.0, 1.0)]
    """
    return Experiment(NO_LABELS, systems, **options).compare(
        measures, baseline=baseline, against=against, iterations=iterations, groups=groups, outcomes=outcomes,
        require=require, pass_k=pass_k, detect=detect,
    )  # fmt: skip


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
) -> CurveFrame:
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
        - low, high: the interval of the mean, by the method of `Scores.intervals`, which `signature["interval"]` of the
          frame names; null if the mean is null, or with resamples=0. Use `compare` to test whether two systems differ.
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
    >>> curve(qrels, {"agent": frame}, "CG").select("iteration", "mean", "searching").rows()
    [(1, 2.5, 2), (2, 3.5, 1)]
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
) -> RecallFrame:
    """Return interpolated precision at levels of recall: the highest precision at the same or a higher recall.

    The value at level i/10 is the highest precision at a rank where 10 * (relevant so far) >= i * R. R is the query's
    number of documents with a label of at least `rel` (1 by default). The precision is 0 if R = 0 or the ranking
    never reaches the recall.

    Args:
        qrels: judgments in any form that `read_qrels` accepts.
        runs: maps names of one or more systems to runs (inputs of `read_run`). Large files are read in blocks.
        points: `eleven` means recall 0, 0.1, ..., 1. `all` means every recall above 0 that the system reaches in any query.
            With `per_query`, a query has only the recalls reached in this query. Beyond the last point, the precision is 0.
            `raw`, with `per_query`, means the precision at each relevant document, without interpolation.
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
def explain(
    qrels: Any,
    base: Any,
    new: Any,
    measures: Measures = "CG",
    *,
    results: Any = None,
    queries: Any = None,
    uses: Any = None,
    outcomes: Any = None,
    top: int = 5,
    **options: Unpack[ExplainOptions],
) -> Explanation:
    """Explain why a system is better or worse than another, by queries, searches and documents.

    Args:
        qrels: judgments in any form that `read_qrels` accepts.
        base, new: runs in any form that `read_run` accepts. A system is named by its file, else by its tag. If several
            runs of a system are given as a list, each run of base is compared with each run of new. The query `q (1, 2)` is
            then query q in the first run of base and the second run of new.
        measures: CG, NumGood, DCGG, nCG, nDCGG, with or without a cutoff; or a rate: RG, DRG, SRE, SRR.
        results: the frame from `read_traces`, or a file of this frame, for search strings and titles. Give one table of both
            systems, or a list with a table of each system.
        queries: the texts of the queries, as in `report`, to show beside their ids.
        uses: the documents that each system used, as in `funnel`, to show which good documents were never opened or cited.
        outcomes: outcomes with a column `completed`, as in `compare`, if `incomplete` is `zero` or `absent`.
        top: how many queries to show, in each direction.
        {options}

    Returns:
        An `Explanation` of all queries of the qrels. Queries and values are those of `compare` with the same options. The
        explanation has no significance tests: `compare` has them.

    Raises:
        InputError: input that cannot be read, or two systems that share no judged query.
        MeasureError: a measure is unknown, or `explain` does not support it.

    >>> import polars as pl
    >>> qrels = {"q": {"a": 3, "b": 2}}
    >>> old = pl.DataFrame({"query_id": "q", "iteration": [1, 2], "doc_id": ["a", "b"]})
    >>> new = pl.DataFrame({"query_id": "q", "iteration": [1], "doc_id": ["a"]})
    >>> explain(qrels, old, new).causes.rows()
    [('q', 'CG', 'base', 'stopped_before', 1, -2.0)]
    """
    x = Experiment(qrels, {"base": base, "new": new}, **options).name_by_files()
    base_name, new_name = x.systems
    tables = {"results": results, "queries": queries, "uses": uses, "outcomes": outcomes}
    return x.explain(base_name, new_name, measures, top=top, **tables)


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


@takes_options
def report(
    qrels: Any,
    runs: Mapping[str, Any],
    path: str | os.PathLike[str],
    measures: Measures = OF_REPORTS,
    *,
    results: Any = None,
    queries: Any = None,
    uses: Any = None,
    groups: Any = None,
    costs: Any = None,
    lengths: Any = None,
    outcomes: Any = None,
    details: int = 200,
    format: str | None = None,  # noqa: A002  # as in read_traces
    spreadsheet: bool = False,
    **options: Unpack[ReportOptions],
) -> Path:
    """Write a report that compares systems on measures, with significance tests and the causes of differences.

    The page is one file and needs no network. It has sentences, tables, plots and every query. For the queries that changed
    most, it shows each search with its results. All systems are compared with the first system. A single system is shown
    without a comparison.

    Args:
        qrels: judgments in any form that `read_qrels` accepts.
        runs: maps names of systems to runs (inputs of `read_run`), or to lists of runs (replicates). Values are means over
            the runs of a system. Causes and searches are those of the first run.
        path: the file to write: .html, .md, .csv or .json, or any name if `format` is given.
        measures: names, measure objects or both. The page explains the first measure that `explain` supports, else CG.
        results: the frame from `read_traces`, or a file of this frame, to show search strings, titles and addresses. Give one
            table of all systems, or a list with a table of each system.
        queries: the texts of the queries, as a file of query_id and text, {query_id: text}, or a frame.
        uses: the documents that each system used, as in `funnel`, to show which good documents were never opened or cited.
        groups: a file or a frame of query_id and group, to compare and filter by groups of queries.
        costs: costs as in `curve`, to show tokens, cost and seconds of each query and each search.
        lengths: the lengths of documents, as a file or frame of doc_id and length, or {doc_id: length}. EU, nEU, TBG and U need
            them.
        outcomes: outcomes as in `compare`, to compare them beside the measures. They need two systems or more.
        details: the number of queries for which the page lists all results. The page chooses the queries that changed
            most or, for a single system, the queries with the lowest values.
        format: `html`, `markdown`, `csv` (a row for each query, measure and system) or `json`. None: the ending of `path`
            decides.
        spreadsheet: put an apostrophe before texts in CSV that a spreadsheet would read as formulas.
        {options}

    Returns:
        The path of the file.

    Raises:
        InputError: input that cannot be read, or a file that cannot be written.
        MeasureError: a measure is unknown.

    >>> import tempfile
    >>> examples = "qrels_examples/redundancy/"
    >>> runs = {name: f"{examples}{name}.run" for name in ("repeating", "lean")}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     report(examples + "qrels.txt", runs, f"{folder}/report.html", "CG@2 SRR@2").name
    'report.html'
    """
    tables = {
        "results": results, "queries": queries, "uses": uses, "groups": groups, "costs": costs, "lengths": lengths,
        "outcomes": outcomes,
    }  # fmt: skip
    x = Experiment(qrels, runs, **options)
    return x.report(path, measures, details=details, format=format, spreadsheet=spreadsheet, **tables)
