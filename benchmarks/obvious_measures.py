"""The guideline's ten measures as anyone would write them for `ir_measures.define_byquery`: pandas, one query at a time."""

from __future__ import annotations

from typing import Any

import ir_measures
import numpy as np
import pandas as pd

__all__ = ["TEN"]

REL = 2


def counts(qrels: pd.DataFrame, run: pd.DataFrame) -> pd.DataFrame:
    """One row per iteration: R, Dup, GR, G, and the discount w."""
    run = run.sort_values("iteration", kind="stable")
    firsts = run[~run.duplicated("doc_id")]
    good = firsts.merge(qrels[qrels["relevance"] >= REL], on="doc_id").groupby("iteration_x")["relevance"]
    table = pd.DataFrame({"R": run.groupby("iteration").size()})
    table["Dup"] = table["R"] - firsts.groupby("iteration").size().reindex(table.index, fill_value=0)
    table["GR"] = good.size().reindex(table.index, fill_value=0)
    table["G"] = good.sum().reindex(table.index, fill_value=0)
    table["w"] = 1 / np.log2(np.arange(1, len(table) + 1) + 1)
    return table.reset_index(drop=True)


def cg(qrels: pd.DataFrame, run: pd.DataFrame) -> float:
    return counts(qrels, run)["G"].sum()


def rg(qrels: pd.DataFrame, run: pd.DataFrame) -> float:
    return counts(qrels, run)["G"].mean()


def dcgg(qrels: pd.DataFrame, run: pd.DataFrame) -> float:
    table = counts(qrels, run)
    return (table["w"] * table["G"]).sum()


def drg(qrels: pd.DataFrame, run: pd.DataFrame) -> float:
    table = counts(qrels, run)
    return (table["w"] * table["G"]).mean()


def avg_gain_3(qrels: pd.DataFrame, run: pd.DataFrame) -> float:
    table = counts(qrels, run)
    return table["G"][2] / table["R"][2] if len(table) > 2 else 0.0


def rag(qrels: pd.DataFrame, run: pd.DataFrame) -> float:
    table = counts(qrels, run)
    return (table["G"] / table["R"]).mean()


def drag(qrels: pd.DataFrame, run: pd.DataFrame) -> float:
    table = counts(qrels, run)
    return (table["w"] * table["G"] / table["R"]).mean()


def sre(qrels: pd.DataFrame, run: pd.DataFrame) -> float:
    table = counts(qrels, run)
    return table["GR"].sum() / table["R"].sum()


def srr(qrels: pd.DataFrame, run: pd.DataFrame) -> float:
    table = counts(qrels, run)
    return table["Dup"].sum() / table["R"].sum()


def iterations_for_all(qrels: pd.DataFrame, run: pd.DataFrame) -> float:
    pool = (qrels["relevance"] >= REL).sum()
    if pool == 0:
        return 0
    done = counts(qrels, run)["GR"].cumsum() == pool
    return min(int(done.idxmax()) + 1, 100) if done.any() else 100


_FUNCTIONS = {
    "CG": cg,
    "RG": rg,
    "DCGG": dcgg,
    "DRG": drg,
    "AvgGain@3": avg_gain_3,
    "RAG": rag,
    "DRAG": drag,
    "SRE": sre,
    "SRR": srr,
    "IterationsForAllGoodResults": iterations_for_all,
}
#: goodgain's name of each measure -> the measure of ir_measures that the function above defines.
TEN: dict[str, Any] = {
    name: ir_measures.define_byquery(function, support_cutoff=False) for name, function in _FUNCTIONS.items()
}
