"""The public functions that score and count: `evaluate`, `ledger` and `coverage`."""

from collections.abc import Mapping
from typing import Any, Unpack

import polars as pl

from goodgain.counting.run_opening import is_replicates
from goodgain.errors import InputError
from goodgain.measures.names import Measures
from goodgain.measures.scores import Scores
from goodgain.scoring.scoring import Scoring
from goodgain.scoring.shared_arguments import CountingOptions, ReadingOptions, ScoresOptions, takes_options


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
        interval: also compute the interval of each mean, for `Scores.intervals`. The values of several
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
    scoring = Scoring(qrels, {"": run}, **options)
    return scoring.score_systems(measures, groups=groups, interval=interval)[""]


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
    return Scoring(qrels, {"": run}, **options).count_ledgers(measures).drop("system")


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
    return Scoring(qrels, runs, **options).coverage()
