"""Coverage of several systems: the judged share of their unique results, overall and by iteration."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from goodgain.batches.query_batches import tally_run
from goodgain.batches.run_file import open_run_and_qrels
from goodgain.counting.coverage import measure_coverage, warn_if_misleading
from goodgain.counting.ledger import count_pools, ledger_and_pools
from goodgain.errors import NoticesOfSystems
from goodgain.evaluation import check_iterations
from goodgain.formats.column_names import Columns
from goodgain.formats.qrels import load_qrels
from goodgain.formats.systems import check_systems
from goodgain.measures.declaration import DEFAULT_REL
from goodgain.measures.good_gain import CG

__all__ = ["coverage"]


def coverage(qrels: Any, runs: Mapping[str, Any], *, columns: Columns | None = None) -> pl.DataFrame:
    """Return the judged share of the unique results of each system: judged unique results / unique results.

    A result is unique where its document occurs for the first time in its query. Any label is a judgment, also 0 and one
    below it. Queries without any judgment are left out.

    Args:
        qrels: what `read_qrels` takes.
        runs: name -> what `read_run` takes; one or more. Each is read once, large files in blocks.
        columns: name in the source -> name here, for columns of runs or qrels with other names: {"step": "iteration"}.

    Returns:
        system, iteration (null in the first row of a system, which has all of them), judged, unique, coverage (null where
        nothing new was found).

    Raises:
        InputError: a run or the qrels cannot be read.

    Source: the judged share of a ranking, as `Judged` of ir_measures, over the iterations of a run.

    >>> qrels = {"q": {"a": 3, "b": 0}}
    >>> run = pl.DataFrame({"query_id": "q", "iteration": [1, 1, 2, 2], "doc_id": ["a", "x", "a", "b"]})
    >>> coverage(qrels, {"agent": run}).rows()
    [('agent', None, 2, 3, 0.6666666666666666), ('agent', 1, 1, 2, 0.5), ('agent', 2, 1, 1, 1.0)]
    """
    systems = check_systems(runs)
    loaded = load_qrels(qrels, columns=columns)
    found = []
    with NoticesOfSystems() as notices:
        for name, run in systems.items():
            with notices.of(name):
                searched, judged = open_run_and_qrels(loaded, run, columns=columns)
                check_iterations(searched, [CG])
                pools = count_pools(judged.judgments, rels=[DEFAULT_REL])
                tallied = tally_run(searched, judged, rels=[DEFAULT_REL])
                measured = measure_coverage(ledger_and_pools(tallied, pools, rels=[DEFAULT_REL]))
                warn_if_misleading(measured, labels=judged.labels, low=False)
                found.append(measured.tabulate().select(pl.lit(name).alias("system"), pl.all()))
    return pl.concat(found)
