"""What analyses of iterations count: ledgers and pools of each run, and of each system with its runs together."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import polars as pl

from goodgain.analysis.comparing.comparison_notes import describe_shared_queries
from goodgain.counting.coverage import Coverage, combine_coverages, measure_coverage
from goodgain.counting.ledger import Counts
from goodgain.errors import notice
from goodgain.measures.declaration import GoodGainMeasure
from goodgain.measures.ledger_values import running_values
from goodgain.measures.replicate_scores import join_queries


class SystemCounts(NamedTuple):
    """Ledgers and pools of each run of a system by threshold, and the coverage of all its runs together."""

    runs: Sequence[Mapping[float, Counts]]
    coverage: Coverage


def join_counts(
    counts: Mapping[str, Mapping[float, Counts]], names: Mapping[str, Sequence[str]]
) -> dict[str, SystemCounts]:
    """Put the counted runs of each system together, and give a notice if systems share few queries; `names` as in `name_runs`."""
    counted = {}
    for system, of in names.items():
        runs = [counts[run] for run in of]
        coverages = [measure_coverage(run) for run in runs]
        queries = join_queries([coverage.queries for coverage in coverages])
        counted[system] = SystemCounts(runs, combine_coverages(coverages)._replace(queries=queries))
    if few_shared := describe_shared_queries({name: of.coverage.queries for name, of in counted.items()}):
        notice(few_shared)
    return counted


class Kind(NamedTuple):
    """A kind of results: its number in a row of the ledger, and its look in bars."""

    number: pl.Expr
    colour: str
    hatch: str
    label: str


#: The kinds of results, in the order of stacked bars. Their colours are those of no system and no verdict.
KINDS = {
    "new_good": Kind(pl.col("GR"), "#E8B004", "", "new, good"),
    "new_other": Kind(pl.col("UR") - pl.col("GR") - pl.col("Unjudged"), "#F7E7B4", "--", "new, not good"),
    "unjudged": Kind(pl.col("Unjudged"), "#BCBCBC", r"\\\\", "new, unjudged"),
    "repeated": Kind(pl.col("Dup"), "#8A6D3B", "////", "repeated"),
}


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
