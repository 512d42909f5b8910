"""The ledger and the coverage as a user sees them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import polars as pl

from goodgain.counting.coverage import measure_coverage
from goodgain.counting.ledger import Counts
from goodgain.formats.any_source import Columns
from goodgain.formats.systems import check_systems, stack_systems
from goodgain.measures.declaration import GoodGainMeasure
from goodgain.measures.ledger_values import check_along_iterations, running_values
from goodgain.measures.names import Measures, parse_measures
from goodgain.reporting.counted_runs import count_runs


class Kind(NamedTuple):
    """A kind of results: its number in a row of the ledger, and its look in bars."""

    number: pl.Expr
    colour: str
    hatch: str
    label: str


#: The kinds of results, in the order of stacked bars.
KINDS = {
    "new_good": Kind(pl.col("GR"), "#0072B2", "", "new, good"),
    "new_other": Kind(pl.col("UR") - pl.col("GR") - pl.col("Unjudged"), "#56B4E9", "", "new, not good"),
    "unjudged": Kind(pl.col("Unjudged"), "#D9D9D9", r"\\\\", "new, unjudged"),
    "repeated": Kind(pl.col("Dup"), "#E69F00", "////", "repeated"),
}


def ledger(
    qrels: Any,
    run: Any,
    *,
    rel: float | None = None,
    measures: Measures | None = None,
    columns: Columns | None = None,
    documents: Any = None,
    documents_of: str = "both",
    chunks: str = "collapse",
) -> pl.DataFrame:
    """Count what each iteration of each query found: results, unique ones, repeats, good ones, gain.

    Args:
        qrels: what `read_qrels` takes.
        run: what `read_run` takes.
        rel: the smallest good label, also for measures without their own `rel`. None: 2.
        measures: ours, without @; adds their value at every iteration, as if the agent had stopped there.
        columns, documents, documents_of, chunks: as in `evaluate`.

    Returns:
        One row per (query, iteration) of the run: query_id, iteration (1..N), R, UR, Dup, GR, G, Unjudged, judged
        (whether the query has any judgment), a column per measure, and coverage (the judged share of the new results,
        null without new results). Measures and coverage are null if the query has no judgment.

    Raises:
        InputError: the run or the qrels cannot be read.
        MeasureError: a measure is not ours, or has an @.

    A query has no row after its last iteration. So the mean of a column at iteration i leaves out the queries that have
    stopped: in qrels_examples/redundancy the rows of iteration 3 have a mean CG of 10.0, while CG@3 is 7.5. Use `curve`
    for means over all queries.

    Source: the Retrieved Good Gain guideline, R^i, UR^i, GR^i, G_i.

    >>> run = pl.DataFrame({"query_id": "q", "iteration": [1, 1, 2], "doc_id": ["a", "b", "a"]})
    >>> ledger({"q": {"a": 3}}, run, measures="SRR").select("R", "UR", "GR", "G", "SRR").rows()
    [(2, 2, 1, 3.0, 0.0), (1, 0, 0, 0.0, 0.3333333333333333)]
    """
    found = [] if measures is None else parse_measures(measures, complete=False, rel=rel)
    base, *asked = (
        check_along_iterations(measure, "the ledger") for measure in (*parse_measures("CG", rel=rel), *found)
    )
    counted = count_runs(qrels, {"": run}, [base, *asked], documents, documents_of, chunks, columns=columns, rel=rel)
    return tabulate_ledger(counted[""], base.rel, asked)


def tabulate_ledger(
    counts: Mapping[float, Counts], rel: float, measures: Sequence[GoodGainMeasure] = ()
) -> pl.DataFrame:
    """Return what `ledger` returns, from the counts of a run at the thresholds `rel` and those of the measures."""
    rows, pools = counts[rel][:2]
    queries = pools.select("query_id", judged=pl.lit(True))
    result = rows.join(queries, on="query_id", how="left").with_columns(pl.col("judged").fill_null(False))
    if measures:
        result = result.join(running_values(measures, counts), on=["query_id", "iteration"], how="left")
    share = 1 - pl.col("Unjudged") / pl.col("UR")
    result = result.with_columns(coverage=pl.when(pl.col("judged") & (pl.col("UR") > 0)).then(share))
    return result.sort("query_id", "iteration")


def coverage(
    qrels: Any,
    runs: Mapping[str, Any],
    *,
    columns: Columns | None = None,
    documents: Any = None,
    documents_of: str = "both",
    chunks: str = "collapse",
) -> pl.DataFrame:
    """Return the coverage of each system: judged unique results / unique results.

    A result is unique if its document occurs for the first time in the query. Any label is a judgment, also 0 and negative
    ones. Queries without judgments do not count.

    Args:
        qrels: what `read_qrels` takes.
        runs: name -> what `read_run` takes; one or more. Each is read once, large files in blocks.
        columns, documents, documents_of, chunks: as in `evaluate`.

    Returns:
        system, iteration, judged, unique, coverage (null without unique results). In the first row of each system
        iteration is null: this row counts all iterations.

    Raises:
        InputError: a run or the qrels cannot be read.

    Source: the judged share of a ranking, as `Judged` of ir_measures, over the iterations of a run.

    >>> qrels = {"q": {"a": 3, "b": 0}}
    >>> run = pl.DataFrame({"query_id": "q", "iteration": [1, 1, 2, 2], "doc_id": ["a", "x", "a", "b"]})
    >>> coverage(qrels, {"agent": run}).rows()
    [('agent', None, 2, 3, 0.6666666666666666), ('agent', 1, 1, 2, 0.5), ('agent', 2, 1, 1, 1.0)]
    """
    counted = count_runs(
        qrels, check_systems(runs), [], documents, documents_of, chunks, columns=columns, iterates=False
    )
    return stack_systems({name: measure_coverage(counts).tabulate() for name, counts in counted.items()})
