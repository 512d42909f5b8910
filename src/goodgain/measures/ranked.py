"""The measures over one ranking that are computed here, from the ranking table: each is one declaration.

Those below are classic: names and values are those of ir_measures. `hostless.py` has those that no host has. A value is
made of sums over the documents at ranks 1..cutoff (`Ranks`), and of the numbers of judged documents of the query.
"""

from __future__ import annotations

import math
from typing import Any

import ir_measures
import narwhals as nw

from goodgain.measures.declaration import GoodGainMeasure
from goodgain.measures.formula import divide_rows
from goodgain.measures.graded import GRADED
from goodgain.measures.hostless import HOSTLESS, IDEAL, compute_dcg, compute_ideal_dcg, place_for_dcg
from goodgain.measures.ranked_declaration import RankedDeclaration, RankedMeasure
from goodgain.measures.ranks import Ranks, divide

__all__ = ["HOSTLESS_MEASURES", "RANKED_MEASURES", "find_declaration", "find_direction", "nDCG", "takes"]

_TREC_EVAL = "trec_eval 9, "
#: cwl_eval pads or cuts every ranking to this length, and scales the weights of RBP so that they add up to 1.
_DEEPEST = 1000


def _find(name: str, params: dict[str, Any]) -> ir_measures.Measure:
    """Return the measure of a name with parameters: what a copy or a pickle is made from."""
    found: ir_measures.Measure = RANKED_MEASURES[name].measure(**params)
    return found


def _combine_f(ranks: Ranks, precision: nw.Expr, recall: nw.Expr) -> nw.Expr:
    x = float(ranks.parameters["beta"])
    return divide((x + 1) * precision * recall, x * precision + recall)


def _count_needed(ranks: Ranks) -> nw.Expr:
    """Return how many relevant documents reach a recall, as trec_eval 9 rounds it: up, from a tenth of a document on.

    The recall itself is rounded to two decimals, as in trec_eval.
    """
    recall = float(f"{ranks.parameters['recall']:.2f}")
    return (recall * ranks.num_rel + 0.9).floor()


def _compute_rbp(ranks: Ranks) -> nw.Expr:
    p = float(ranks.parameters["p"])
    weight = nw.when(ranks.k <= _DEEPEST).then(nw.lit(p) ** (ranks.k - 1)).otherwise(nw.lit(0.0))
    return divide_rows(ranks.total(weight * ranks.relevant), math.fsum(p**k for k in range(_DEEPEST)))


_DECLARED = (
    RankedDeclaration(
        "nDCG",
        "Normalised Discounted Cumulative Gain",
        "sum of g(label) / log2(k + 1) over ranks k <= cutoff / the same of the judged documents by descending gain; "
        "ideal='ranking': of all documents of the ranking by descending gain",
        lambda ranks: divide(compute_dcg(ranks), compute_ideal_dcg(ranks)),
        better="up",
        bounds=("0", "1"),
        source=_TREC_EVAL + "ndcg and ndcg_cut; dcg='exp-log2': gdeval.pl, without its rounding to five decimals",
        position=place_for_dcg,
        takes=lambda parameters: parameters["dcg"] == "log2" or "gains" not in parameters,
        own={"ideal": IDEAL},
        find=_find,
        remark="g is the label itself, 0 below 0, so that the gain is linear; exponential gain, 2^label - 1, is dcg='exp-log2'",
    ),
    RankedDeclaration(
        "P",
        "Precision at k",
        "relevant documents at ranks <= k / k",
        lambda ranks: divide_rows(ranks.total(ranks.relevant), float(ranks.parameters["cutoff"])),
        better="up",
        bounds=("0", "1"),
        source=_TREC_EVAL + "P",
        from_labels="sum",
    ),
    RankedDeclaration(
        "R",
        "Recall at k",
        "relevant documents at ranks <= k / relevant documents",
        lambda ranks: divide(ranks.total(ranks.relevant), ranks.num_rel),
        better="up",
        bounds=("0", "1"),
        source=_TREC_EVAL + "recall",
    ),
    RankedDeclaration(
        "RR",
        "Reciprocal Rank",
        "1 / rank of the first relevant document, 0 where none is at ranks <= cutoff",
        lambda ranks: ranks.highest(ranks.relevant / ranks.k),
        better="up",
        bounds=("0", "1"),
        source=_TREC_EVAL + "recip_rank; with a cutoff msmarco_eval.py, which orders tied documents by ascending id",
        position=lambda parameters: "k_id" if "cutoff" in parameters else "k",
        from_labels="highest",
    ),
    RankedDeclaration(
        "AP",
        "Average Precision",
        "sum of the precision at the rank of each relevant document at ranks <= cutoff / relevant documents",
        lambda ranks: divide(ranks.total(ranks.relevant * ranks.relevant_so_far / ranks.k), ranks.num_rel),
        better="up",
        bounds=("0", "1"),
        source=_TREC_EVAL + "map and map_cut",
        remark="AP@k divides by all relevant documents, not by min(k, relevant documents) as some textbooks do",
    ),
    RankedDeclaration(
        "Success",
        "Success at k",
        "1 where any document at ranks <= k is relevant, else 0",
        lambda ranks: ranks.highest(ranks.relevant),
        better="up",
        bounds=("0", "1"),
        source=_TREC_EVAL + "success",
        from_labels="highest",
    ),
    RankedDeclaration(
        "Rprec",
        "R-Precision",
        "relevant documents at ranks <= R / R, R = relevant documents",
        lambda ranks: divide(
            ranks.total(nw.when(ranks.k <= ranks.num_rel).then(ranks.relevant).otherwise(nw.lit(0.0))), ranks.num_rel
        ),
        better="up",
        bounds=("0", "1"),
        source=_TREC_EVAL + "Rprec",
    ),
    RankedDeclaration(
        "SetP",
        "Set Precision",
        "relevant documents retrieved / documents retrieved",
        lambda ranks: divide(ranks.total(ranks.relevant), ranks.num_ret),
        better="up",
        bounds=("0", "1"),
        source=_TREC_EVAL + "set_P",
        from_labels="sum",
    ),
    RankedDeclaration(
        "SetR",
        "Set Recall",
        "relevant documents retrieved / relevant documents",
        lambda ranks: divide(ranks.total(ranks.relevant), ranks.num_rel),
        better="up",
        bounds=("0", "1"),
        source=_TREC_EVAL + "set_recall",
    ),
    RankedDeclaration(
        "SetF",
        "Set F",
        "(x + 1) P R / (x P + R) of set precision and set recall, x = beta",
        lambda ranks: _combine_f(
            ranks,
            divide(ranks.total(ranks.relevant), ranks.num_ret),
            divide(ranks.total(ranks.relevant), ranks.num_rel),
        ),
        better="up",
        bounds=("0", "1"),
        source=_TREC_EVAL + "set_F",
        remark="the parameter beta is the square of the beta of textbooks: SetF(beta=4) is their F2",
    ),
    RankedDeclaration(
        "IPrec",
        "Interpolated Precision at a recall",
        "largest precision at any rank with at least floor(recall * R + 0.9) relevant documents, R = relevant documents",
        lambda ranks: ranks.highest(
            nw.when(ranks.relevant_so_far >= _count_needed(ranks))
            .then(ranks.relevant * ranks.relevant_so_far / ranks.k)
            .otherwise(nw.lit(0.0))
        ),
        better="up",
        bounds=("0", "1"),
        source=_TREC_EVAL + "iprec_at_recall",
        takes=lambda parameters: math.isclose(parameters["recall"], round(parameters["recall"], 2), abs_tol=1e-12),
        remark="trec_eval 10 rounds recall * R to the nearest number instead; recall has two decimals",
    ),
    RankedDeclaration(
        "Judged",
        "Judgment Rate at k",
        "documents with a label at ranks <= k / documents at ranks <= k; without a cutoff over all ranks",
        lambda ranks: divide(
            ranks.total(ranks.judged),
            ranks.num_seen,
        ),
        better="up",
        bounds=("0", "1"),
        source="the provider judged of ir_measures, which orders tied documents by ascending id",
        position=lambda _parameters: "k_id",
        remark="any label is a judgment, also one below 0",
    ),
    RankedDeclaration(
        "NumRet",
        "Number of Retrieved Documents",
        "documents retrieved; with rel, relevant documents retrieved; summed over queries",
        lambda ranks: ranks.total(ranks.relevant) if "rel" in ranks.parameters else ranks.num_ret,
        better=None,
        bounds=("0", ""),
        source=_TREC_EVAL + "num_ret and num_rel_ret",
        from_labels="sum",
    ),
    RankedDeclaration(
        "NumRel",
        "Number of Relevant Documents",
        "relevant documents in the qrels; summed over the queries of the run",
        lambda ranks: ranks.num_rel,
        better=None,
        bounds=("0", ""),
        source=_TREC_EVAL + "num_rel, of queries that the run has; 0 for the others, as in ir_measures",
    ),
    RankedDeclaration(
        "RBP",
        "Rank-Biased Precision",
        "(1 - p) / (1 - p^1000) * sum of p^(k-1) over the relevant documents at ranks k <= 1000",
        _compute_rbp,
        better="up",
        bounds=("0", "1"),
        source="cwl_eval",
        takes=lambda parameters: "rel" in parameters and "cutoff" not in parameters,
        remark="the paper does not divide by 1 - p^1000, which makes its values 0.99996 times these at p = .99; "
        "cwl_eval keeps tied documents in the order of the run, while this is trec_eval's order: the two are equal where no "
        "scores tie",
        from_labels="sum",
    ),
)

#: The measures that no host has, by their names.
HOSTLESS_MEASURES = {declared.name: declared for declared in (*HOSTLESS, *GRADED)}

#: Every measure declared above, in `hostless.py` and in `graded.py`, by its name.
RANKED_MEASURES = {declared.name: declared for declared in _DECLARED} | HOSTLESS_MEASURES

#: nDCG with the parameter `ideal`, which that of ir_measures lacks.
nDCG = RANKED_MEASURES["nDCG"].measure  # noqa: N816  # the name in ir_measures


def find_declaration(measure: ir_measures.Measure) -> RankedDeclaration | None:
    """Return the declaration of a measure over one ranking; None for any other measure."""
    if isinstance(measure, RankedMeasure):
        return measure.declaration
    declared = RANKED_MEASURES.get(str(measure.NAME))
    if declared is None or declared.host_measure is None:
        return None
    return declared if isinstance(measure, type(declared.host_measure)) else None


def find_direction(measure: ir_measures.Measure) -> str | None:
    """Return `up`, `down` or None (neither is better): as declared, and `up` for a measure that only a host knows.

    >>> find_direction(ir_measures.nDCG @ 10)
    'up'
    """
    declared = measure.declaration if isinstance(measure, GoodGainMeasure) else find_declaration(measure)
    return "up" if declared is None else declared.better


def takes(measure: ir_measures.Measure) -> bool:
    """Return whether a measure is computed from the ranking table with its parameters; if not, a host computes it.

    >>> takes(ir_measures.nDCG @ 10), takes(ir_measures.NumRel(rel=2)), takes(ir_measures.Bpref)
    (True, True, False)
    """
    declared = find_declaration(measure)
    return declared is not None and declared.computes(measure)
