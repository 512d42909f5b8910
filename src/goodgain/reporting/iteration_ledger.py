"""The ledger as a user sees it: what each iteration of each query brought, with the values of measures along it."""

from __future__ import annotations

from typing import Any

import polars as pl

from goodgain.batches.query_batches import tally_run
from goodgain.batches.run_file import open_run_and_qrels
from goodgain.counting.coverage import measure_coverage, warn_if_misleading
from goodgain.counting.ledger import count_pools, ledger_and_pools
from goodgain.evaluation import check_iterations
from goodgain.formats.column_names import Columns
from goodgain.measures.names import Measures, parse_measure, parse_measures
from goodgain.measures.thresholds import find_thresholds, warn_of_labels
from goodgain.measures.values import check_along_iterations, running_values
from goodgain.url_variants import warn_of_url_variants

__all__ = ["ledger"]


def ledger(
    qrels: Any,
    run: Any,
    *,
    rel: float | None = None,
    measures: Measures | None = None,
    columns: Columns | None = None,
) -> pl.DataFrame:
    """What each iteration of each query brought.

    Args:
        qrels: what `read_qrels` takes.
        run: what `read_run` takes.
        rel: the smallest good label, also for measures that name none; None leaves it at 2.
        measures: ours, without @: their value at every iteration, as if the agent had stopped there.
        columns: name in the source -> name here, for columns of run or qrels with other names.

    Returns:
        One row per (query, iteration) of the run: query_id, iteration (1..N), R, UR, Dup, GR, G, Unjudged, judged
        (whether the query has any judgment), a column for each measure, null where the query has none, and coverage (the
        judged share of the new results; null where there is none, or the query has no judgment).

    Raises:
        InputError: the run or the qrels cannot be read.
        MeasureError: a measure is not ours, or has an @.

    A query has no row after its last iteration, so averaging a column by hand at iteration i leaves out the queries
    that have finished: in qrels_examples/redundancy CG of the ledger's rows of iteration 3 averages 10.0, while CG@3
    is 7.5. `curve` gives the means over all queries.

    Source: the Retrieved Good Gain guideline, R^i, UR^i, GR^i, G_i.

    >>> run = pl.DataFrame({"query_id": "q", "iteration": [1, 1, 2], "doc_id": ["a", "b", "a"]})
    >>> ledger({"q": {"a": 3}}, run, measures="SRR").select("R", "UR", "GR", "G", "SRR").rows()
    [(2, 2, 1, 3.0, 0.0), (1, 0, 0, 0.0, 0.3333333333333333)]
    """
    found = [] if measures is None else parse_measures(measures, complete=False, rel=rel)
    base, *asked = (check_along_iterations(measure, "the ledger") for measure in (parse_measure("CG", rel=rel), *found))
    searched, judged = open_run_and_qrels(qrels, run, columns=columns)
    check_iterations(searched, [base, *asked])
    warn_of_labels(judged.frame, [base, *asked], rel=rel)
    rels = find_thresholds([base, *asked])
    tallied = tally_run(searched, judged, rels=rels).sort("query_id", "iteration")
    counts = ledger_and_pools(tallied, count_pools(judged.judgments, rels=rels), rels=rels)
    warn_if_misleading(measure_coverage(counts), labels=judged.labels, iterated=searched)
    warn_of_url_variants(searched, judged)
    rows, pools = counts[base.rel][:2]
    queries = pools.select("query_id", judged=pl.lit(True))
    result = rows.join(queries, on="query_id", how="left").with_columns(pl.col("judged").fill_null(False))
    if asked:
        result = result.join(running_values(asked, counts), on=["query_id", "iteration"], how="left")
    share = 1 - pl.col("Unjudged") / pl.col("UR")
    result = result.with_columns(coverage=pl.when(pl.col("judged") & (pl.col("UR") > 0)).then(share))
    return result.sort("query_id", "iteration")
