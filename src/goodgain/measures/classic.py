"""Declares the classic measures that goodgain computes, with the names and values of ir_measures.

Formulas use sums over the documents at ranks 1..cutoff (`Ranks`), and counts of judged documents of the query. Providers of
ir_measures compute all other classic measures.
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from goodgain.measures.declaration import declare
from goodgain.measures.not_in_ir_measures import (
    IDEAL,
    MAX_REL,
    compute_dcg,
    compute_ideal_dcg,
    find_highest_precision,
    place_for_dcg,
)
from goodgain.measures.rows_of_queries import Array, divide
from goodgain.measures.terms import Ranks

_TREC_EVAL = "trec_eval 9, "
#: cwl_eval pads or cuts every ranking to this length, and scales the weights of RBP to a sum of 1.
_DEEPEST = 1000


def _compute_set_f(ranks: Ranks) -> Array:
    relevant = ranks.total(ranks.relevant)
    precision = divide(relevant, ranks.num_ret)
    recall = divide(relevant, ranks.num_rel)
    x = float(ranks.parameters["beta"])
    return divide((x + 1) * precision * recall, x * precision + recall)


def _count_needed(ranks: Ranks) -> Array:
    """Return how many relevant documents IPrec's recall needs. A fraction of at least 0.1 is rounded up, as in trec_eval 9."""
    recall = float(f"{ranks.parameters['recall']:.2f}")
    return np.floor(recall * ranks.num_rel + 0.9)


def _compute_rbp(ranks: Ranks) -> Array:
    p = float(ranks.parameters["p"])
    weight = np.where(ranks.k <= _DEEPEST, p ** (ranks.k - 1.0), 0.0)
    weights = math.fsum(p**k for k in range(_DEEPEST))
    return ranks.total(weight * ranks.relevant) / weights


def _compute_err(ranks: Ranks) -> Array:
    max_rel = ranks.parameters.get("max_rel", MAX_REL.default)
    gain = 2.0 ** np.maximum(ranks.label, 0) - 1
    satisfied = gain / 2.0**max_rel
    return ranks.total(satisfied * ranks.product_before(1 - satisfied) / ranks.k)


_declare = partial(declare, {"family": "classic"})
nDCG = _declare(  # noqa: N816  # the name in ir_measures
    "nDCG",
    "Normalised Discounted Cumulative Gain",
    "DCG of the ranking / DCG of the ideal ranking, DCG = sum of g(label) / log2(k + 1) over ranks k <= cutoff; the ideal "
    "sorts all judged documents by gain, or with ideal='ranking' all documents of the ranking",
    lambda ranks: divide(compute_dcg(ranks), compute_ideal_dcg(ranks)),
    source=_TREC_EVAL + "ndcg and ndcg_cut; dcg='exp-log2': gdeval.pl, without its rounding to five decimals",
    position=place_for_dcg,
    takes=lambda parameters: parameters["dcg"] == "log2" or "gains" not in parameters,
    own={"ideal": IDEAL},
    example=("nDCG(ideal='ranking')@3", 0.9385574520455131),
    remark="the gain g is the label, and 0 for a negative label; dcg='exp-log2' makes it 2^label - 1",
)
ERR = _declare(
    "ERR",
    "Expected Reciprocal Rank",
    "sum over ranks r <= cutoff of (1 / r) R_r times the product of 1 - R_s over ranks s < r, R = (2^label - 1) / 2^max_rel",
    _compute_err,
    source="gdeval.pl, without its rounding to five decimals; Chapelle et al., CIKM 2009",
    position=lambda _parameters: "k_gdeval",
    own={"max_rel": MAX_REL},
    example=("ERR(max_rel=3)@3", 0.890625),
    remark="negative labels count 0; a label above max_rel is an error",
)
_declare(
    "P",
    "Precision at k",
    "relevant documents at ranks <= k / k",
    lambda ranks: ranks.total(ranks.relevant) / float(ranks.parameters["cutoff"]),
    source=_TREC_EVAL + "P",
    from_labels="sum",
)
_declare(
    "R",
    "Recall at k",
    "relevant documents at ranks <= k / relevant documents",
    lambda ranks: divide(ranks.total(ranks.relevant), ranks.num_rel),
    source=_TREC_EVAL + "recall",
)
_declare(
    "RR",
    "Reciprocal Rank",
    "1 / rank of the first relevant document; 0 if none is at ranks <= cutoff",
    lambda ranks: ranks.highest(ranks.relevant / ranks.k),
    source=_TREC_EVAL + "recip_rank; with a cutoff msmarco_eval.py, which sorts tied documents by ascending id",
    position=lambda parameters: "k_id" if "cutoff" in parameters else "k",
    from_labels="highest",
)
_declare(
    "AP",
    "Average Precision",
    "sum of the precision at the rank of each relevant document at ranks <= cutoff / relevant documents",
    lambda ranks: divide(ranks.total(ranks.relevant * ranks.relevant_so_far / ranks.k), ranks.num_rel),
    source=_TREC_EVAL + "map and map_cut",
    remark="AP@k divides by all relevant documents; TruncatedAP divides by min(k, relevant documents), as some textbooks do",
)
_declare(
    "Success",
    "Success at k",
    "1 if any document at ranks <= k is relevant, else 0",
    lambda ranks: ranks.highest(ranks.relevant),
    source=_TREC_EVAL + "success",
    is_0_or_1=True,
    from_labels="highest",
)
_declare(
    "Rprec",
    "R-Precision",
    "relevant documents at ranks <= R / R, R = relevant documents",
    lambda ranks: divide(
        ranks.total(np.where(ranks.k <= ranks.spread(ranks.num_rel), ranks.relevant, 0.0)), ranks.num_rel
    ),
    source=_TREC_EVAL + "Rprec",
)
_declare(
    "SetP",
    "Set Precision",
    "relevant documents retrieved / documents retrieved",
    lambda ranks: divide(ranks.total(ranks.relevant), ranks.num_ret),
    source=_TREC_EVAL + "set_P",
    from_labels="sum",
)
_declare(
    "SetR",
    "Set Recall",
    "relevant documents retrieved / relevant documents",
    lambda ranks: divide(ranks.total(ranks.relevant), ranks.num_rel),
    source=_TREC_EVAL + "set_recall",
)
_declare(
    "SetF",
    "Set F",
    "(x + 1) P R / (x P + R) of set precision and set recall, x = beta",
    _compute_set_f,
    source=_TREC_EVAL + "set_F",
    remark="beta is the square of the beta in textbooks: SetF(beta=4) is their F2",
)
_declare(
    "IPrec",
    "Interpolated Precision at a recall",
    "highest precision at any rank with at least floor(recall * R + 0.9) relevant documents so far; R = relevant documents",
    lambda ranks: find_highest_precision(ranks, ranks.relevant_so_far >= ranks.spread(_count_needed(ranks))),
    source=_TREC_EVAL + "iprec_at_recall",
    takes=lambda parameters: math.isclose(parameters["recall"], round(parameters["recall"], 2), abs_tol=1e-12),
    remark="recall has two decimals; trec_eval 10 instead rounds recall * R to the nearest number",
)
_declare(
    "Judged",
    "Judgment Rate at k",
    "documents with a label at ranks <= k / documents at ranks <= k; without a cutoff over all ranks",
    lambda ranks: divide(ranks.total(ranks.judged), ranks.num_seen),
    source="the provider judged of ir_measures, which sorts tied documents by ascending id",
    position=lambda _parameters: "k_id",
    remark="any label is a judgment, also a negative one",
)
_declare(
    "NumRet",
    "Number of Retrieved Documents",
    "documents retrieved, or with rel= relevant documents retrieved; summed over queries",
    lambda ranks: ranks.total(ranks.relevant) if "rel" in ranks.parameters else ranks.num_ret,
    better=None,
    bounds=("0", ""),
    source=_TREC_EVAL + "num_ret and num_rel_ret",
    from_labels="sum",
)
_declare(
    "NumRel",
    "Number of Relevant Documents",
    "relevant documents in the qrels; summed over the queries of the run",
    lambda ranks: ranks.num_rel,
    better=None,
    bounds=("0", ""),
    source=_TREC_EVAL + "num_rel; as in ir_measures, 0 for a query that the run lacks",
)
_declare(
    "RBP",
    "Rank-Biased Precision",
    "(1 - p) / (1 - p^1000) * sum of p^(k-1) over the relevant documents at ranks k <= 1000",
    _compute_rbp,
    source="cwl_eval",
    takes=lambda parameters: "rel" in parameters and "cutoff" not in parameters,
    remark="the paper does not divide by 1 - p^1000: at p = .99 its values are 0.99996 times these; cwl_eval keeps tied "
    "documents in the order of the run, here they have trec_eval's order",
    from_labels="sum",
)
