"""A cutoff that was meant as a rank is told inside every host, and nowhere else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ir_measures
import polars as pl
import pytest
import ranx

import goodgain as gg
from goodgain.hosts import pytrec_eval as trec_host
from goodgain.hosts import ranx as ranx_host

QRELS = {"q": {"a": 3, "b": 2}}
RUN = pl.DataFrame(
    {"query_id": "q", "iteration": [1, 1, 2], "doc_id": ["a", "x", "b"], "rank": [1, 2, 1], "score": [2.0, 1.0, 1.0]}
)


def in_ir_measures(cutoff: int) -> Any:
    return ir_measures.calc_aggregate([gg.nCG @ cutoff], gg.read_qrels(QRELS), gg.read_run(RUN))


def in_pytrec_eval(cutoff: int) -> Any:
    return trec_host.RelevanceEvaluator(QRELS, {f"n_cg_{cutoff}"}).evaluate(RUN)


def in_ranx(cutoff: int) -> Any:
    return ranx.evaluate(ranx_host.Qrels(QRELS), ranx_host.Run(RUN), f"n_cg@{cutoff}")


@pytest.mark.parametrize("score", [in_ir_measures, in_pytrec_eval, pytest.param(in_ranx, marks=pytest.mark.slow)])
def test_a_host_says_that_a_cutoff_counts_iterations(
    score: Callable[[int], Any], recwarn: pytest.WarningsRecorder
) -> None:
    with pytest.warns(
        gg.GoodgainNotice, match="@10: @ counts iterations, not ranks; no query has more than 2 iterations"
    ):
        score(10)
    recwarn.clear()
    score(2)
    assert not any("counts iterations" in str(one.message) for one in recwarn)
