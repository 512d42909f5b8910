"""Functions that compare, explain and report: each makes an experiment for one analysis."""

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Unpack

from goodgain.analysis.comparing.comparison import Comparison
from goodgain.analysis.comparing.explanation import Explanation
from goodgain.analysis.comparing.required_lines import Requirement
from goodgain.experiments.experiment import Experiment
from goodgain.experiments.shared_arguments import (
    OF_REPORTS,
    CountingOptions,
    ExperimentOptions,
    ReportOptions,
    takes_options,
)
from goodgain.measures.names import Measures


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
    """Compare two or more systems on any measures, ours and those of ir_measures.

    Args:
        qrels: what `read_qrels` takes.
        systems: name -> what `read_run` takes, or a list of several runs of the system (replicates); two or more. Values of
            replicates are averaged query by query, and all tests are over queries.
        measures: names, measure objects or both. `goodgain measures` shows the better direction of each. For a measure
            that only a provider of ir_measures knows, higher is better.
        baseline: the system to compare all others with; None compares all pairs, a later system with an earlier one.
        against: `previous` compares each system only with the one before it, for the stages of a pipeline. Holm's
            method then corrects over these pairs only.
        iterations: also compare measures of ours without @ at each fixed iteration 1..iterations. A list has them
            compared at exactly these iterations.
        groups: a file or a frame of query_id and group, to compare on each group of queries too.
        outcomes: a file or a frame of query_id, system and columns of numbers, such as solved (0 or 1). Each column is
            compared as one more measure, for which higher is better, and correlated with the others. `funnel(...).per_query`
            is such a frame: its columns have their own directions.
        baseline_file: a file of `Comparison.write_baseline`, to compare with; its system is called `baseline`. One run is
            enough then.
        require: lines such as `nCG@3>=0.5`, for `flips`; their measures are compared too. `check_requirements` checks them.
        pass_k: k of `flips`; None: the smallest number of runs of a query.
        detect: the difference for `detectable`; None: the observed one.
        {options}

    Returns:
        A `Comparison` on all queries of the qrels. A query that a run lacks counts as one without a search (N = 0).
        A pair leaves out the queries for which one of both systems has no value. Where lower is better, a share of the
        results (SRR, Fallout, Unjudged) has no value without results. Every mean is over queries. A difference is
        significant if the Holm-corrected p of the randomisation test is at most alpha. With `bounds`, the labels of
        unjudged documents are alike for all systems, and runs are read into memory.

    Raises:
        InputError: fewer than two systems, an unknown baseline, a baseline together with `against`, unreadable input,
            two systems that share no judged query, or a baseline file of other judgments.
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
def explain(
    qrels: Any,
    base: Any,
    new: Any,
    measures: Measures = "CG",
    *,
    results: Any = None,
    uses: Any = None,
    top: int = 5,
    **options: Unpack[CountingOptions],
) -> Explanation:
    """Explain why a system is better or worse than another: which queries, which searches, which documents.

    Args:
        qrels: what `read_qrels` takes.
        base, new: what `read_run` takes. A system has the name of its file, else that of its tag. With a list of several
            runs of a system, each run of base is explained beside each of new: query q becomes `q (1, 2)` for the first
            run of base and the second of new.
        measures: CG, NumGood, DCGG, nCG, nDCGG, with or without a cutoff; or a rate: RG, DRG, SRE, SRR.
        results: what `read_traces` returned, or a file of it, for search strings and titles: one of both systems, or
            a pair of one each.
        uses: what `funnel` takes, of both systems: says which good documents were never opened, or never cited.
        top: how many queries to show, in each direction.
        {options}

    Returns:
        An `Explanation`. It has all queries of the qrels. It has no test: `compare` says whether a difference is real.

    Raises:
        InputError: input that cannot be read, or two systems that share no judged query.
        MeasureError: a measure is unknown or has no causes by document.

    >>> import polars as pl
    >>> qrels = {"q": {"a": 3, "b": 2}}
    >>> old = pl.DataFrame({"query_id": "q", "iteration": [1, 2], "doc_id": ["a", "b"]})
    >>> new = pl.DataFrame({"query_id": "q", "iteration": [1], "doc_id": ["a"]})
    >>> explain(qrels, old, new).causes.rows()
    [('q', 'CG', 'base', 'stopped_before', 1, -2.0)]
    """
    x = Experiment(qrels, {"base": base, "new": new}, **options).name_by_files()
    return x.explain(x.systems[0], x.systems[1], measures, results=results, uses=uses, top=top)


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
    details: int = 200,
    format: str | None = None,  # noqa: A002  # as in read_traces
    spreadsheet: bool = False,
    **options: Unpack[ReportOptions],
) -> Path:
    """Write a report: which system is better at what, whether that is beyond chance, and where and why.

    The page is one file without a network: sentences, tables, plots, every query, and for the queries that changed most each
    search with its results. All systems are compared with the first one. One system alone is shown without a comparison.

    Args:
        qrels: what `read_qrels` takes.
        runs: name -> what `read_run` takes, or a list of several runs of the system (replicates). Values are means over
            them; causes and searches are those of the first run.
        path: the file to write: .html, .md, .csv or .json, or any name with `format`.
        measures: names, measure objects or both. The first one with causes (see `explain`) is explained; without one, CG is.
        results: what `read_traces` returned, or a file of it, for search strings, titles and addresses: one of all
            systems, or a list of one each.
        queries: the texts of the queries: a file of query_id and text, {query_id: text}, or a frame.
        uses: what `funnel` takes: says which good documents were never opened, or never cited.
        groups: a file or a frame of query_id and group, to compare and filter by groups of queries.
        costs: what `curve` takes: adds tokens, cost and seconds of a query, and of each search.
        details: for how many queries the page lists all results: those that changed most.
        format: `html`, `markdown`, `csv` (a row for each query, measure and system) or `json`; None: by the name's ending.
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
    tables = {"results": results, "queries": queries, "uses": uses, "groups": groups, "costs": costs}
    x = Experiment(qrels, runs, **options)
    return x.report(path, measures, details=details, format=format, spreadsheet=spreadsheet, **tables)
