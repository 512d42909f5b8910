"""Declares the measures over one ranking that ir_measures lacks.

If the run lacks a query, these measures have the value of an empty ranking for it, or no value if lower is better. Classic
measures are 0 for such a query.

A grade is any label, also a negative one. In most of these measures, a document without a grade counts like the label 0.
GradedP skips documents without a grade. In all other measures named Graded..., a document without a grade adds nothing.
A Graded measure is null if a query has results, but none of the first k has a grade.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
from ir_measures.measures import ParamInfo

from goodgain.measures.declaration import RankedMeasure, declare
from goodgain.measures.rows_of_queries import Array, divide
from goodgain.measures.terms import Ranks

_REL = ParamInfo(dtype=(int, float), default=1, desc="smallest relevant label (inclusive), above 0")
_CUTOFF = ParamInfo(dtype=int, required=True, desc="cutoff in ranks")
_OPTIONAL_K = ParamInfo(dtype=int, desc="cutoff in ranks")
_DCG = ParamInfo(
    dtype=str, choices=["log2", "exp-log2"], default="log2", desc="gain of a label: itself, or 2^label - 1"
)
MAX_REL = ParamInfo(dtype=(int, float), default=4, desc="largest label of the scale")
IDEAL = ParamInfo(
    dtype=str,
    choices=["judged", "ranking"],
    default="judged",
    desc="documents of the ideal: all judged ones, or those of the ranking",
)

#: A recall is the nearest fraction with at most this denominator: 0.07 is 7/100.
_FINEST = 10**6


def place_for_dcg(parameters: Mapping[str, Any]) -> str:
    """Return the name of the rank column for DCG and nDCG: `k_gdeval` (ties as in gdeval) for exponential gain, else `k`."""
    return "k_gdeval" if parameters["dcg"] == "exp-log2" else "k"


def compute_dcg(ranks: Ranks) -> Array:
    """Return the DCG of a ranking. The gain is the label, or 2^label - 1 with dcg='exp-log2'; a negative label has the gain 0."""
    label = np.maximum(ranks.label, 0)
    gain = 2.0**label - 1 if ranks.parameters["dcg"] == "exp-log2" else label
    discount = np.log(ranks.k + 1.0) / math.log(2)
    return ranks.total(gain / discount)


def compute_ideal_dcg(ranks: Ranks) -> Array:
    """Return the DCG of an ideal ranking. The parameter `ideal` selects all judged documents, all retrieved ones, or the top k."""
    ideal = ranks.parameters.get("ideal")
    if ideal == "topk":
        return compute_dcg(ranks.cut_by_label)
    if ideal == "ranking":
        return compute_dcg(ranks.by_label)
    return compute_dcg(ranks.ideal)


def _interpolate(ranks: Ranks, recall: Fraction) -> Array:
    """Return the highest precision at any rank with at least this recall. Recalls are compared exactly, as whole numbers."""
    scaled = ranks.num_rel * recall.numerator
    return find_highest_precision(ranks, ranks.relevant_so_far * recall.denominator >= ranks.spread(scaled))


def find_highest_precision(ranks: Ranks, reached: Array) -> Array:
    """Return the highest precision at the rank of a relevant document for which `reached` is true; 0 without such a document."""
    precision = ranks.relevant * ranks.relevant_so_far / ranks.k
    return ranks.highest(np.where(reached, precision, 0.0))


def _count_reachable(ranks: Ranks) -> Array:
    return np.minimum(ranks.num_rel, float(ranks.parameters["cutoff"]))


def _compute_f(ranks: Ranks) -> Array:
    """Return F = (b^2 + 1) P R / (b^2 P + R): P is precision, R recall, b `beta`. The code divides by a sum that is never 0."""
    weight = float(ranks.parameters["beta"]) ** 2
    cutoff = float(ranks.parameters["cutoff"])
    return ranks.total(ranks.relevant) * (weight + 1) / (ranks.num_rel * weight + cutoff)


def _compute_rbp_residual(ranks: Ranks) -> Array:
    p = float(ranks.parameters["p"])
    weight_of_judged = ranks.total(p ** (ranks.k - 1.0) * ranks.judged)
    return np.maximum(1 - weight_of_judged * (1 - p), 0)


_COMMON = {"family": "ranked", "own": {"cutoff": _CUTOFF, "rel": _REL}}
_declare: Callable[..., RankedMeasure] = partial(declare, _COMMON)
RankDCG = _declare(
    "RankDCG",
    "Discounted Cumulative Gain over ranks",
    "sum of g(label) / log2(k + 1) over ranks k <= cutoff",
    compute_dcg,
    bounds=("0", ""),
    example=("RankDCG@3", 4.0),
    source="Järvelin and Kekäläinen, TOIS 20(4), 2002, with the discount of nDCG",
    position=place_for_dcg,
    own={"cutoff": _OPTIONAL_K, "dcg": _DCG},
    remark="the gain g is the label, and 0 for a negative label; dcg='exp-log2' makes it 2^label - 1; "
    "for the sum over iterations use DCGG@i",
    from_labels="sum",
)
RankIDCG = _declare(
    "RankIDCG",
    "Ideal Discounted Cumulative Gain over ranks",
    "RankDCG of all judged documents by descending label; with ideal='ranking', of all documents of the ranking by "
    "descending label; a document without a label counts as 0",
    compute_ideal_dcg,
    better=None,
    bounds=("0", ""),
    example=("RankIDCG@3", 5.261859507142915),
    source="as RankDCG; many tutorials use ideal='ranking'",
    position=place_for_dcg,
    own={"cutoff": _OPTIONAL_K, "dcg": _DCG, "ideal": IDEAL},
    remark="it is an ideal, and says nothing about the quality of a run",
)
ElevenPointAP = _declare(
    "ElevenPointAP",
    "Eleven-point Interpolated Average Precision",
    "mean over r = 0, .1 ... 1 of the highest precision at any rank with recall >= r; 0 for an r that no rank reaches",
    lambda ranks: sum(_interpolate(ranks, Fraction(i, 10)) for i in range(11)) / 11,
    example=("ElevenPointAP", 0.5454545454545455),
    source="Manning, Raghavan and Schütze, Introduction to Information Retrieval, 8.4",
    own={"rel": _REL},
    remark="11pt_avg of trec_eval differs: it rounds r * R to a whole number of documents",
)
InterpolatedPrecision = _declare(
    "InterpolatedPrecision",
    "Interpolated Precision at an exact recall",
    "highest precision at any rank with recall >= r; 0 if no rank reaches r",
    lambda ranks: _interpolate(ranks, Fraction(ranks.parameters["recall"]).limit_denominator(_FINEST)),
    example=("InterpolatedPrecision@0.5", 0.6666666666666666),
    source="Manning, Raghavan and Schütze, Introduction to Information Retrieval, 8.4",
    own={"recall": ParamInfo(dtype=(int, float), required=True, desc="recall, 0 to 1"), "rel": _REL},
    at="recall",
    remark="IPrec differs: it rounds the number of documents as trec_eval 9 does",
)
TruncatedAP = _declare(
    "TruncatedAP",
    "Truncated Average Precision",
    "sum of the precision at the rank of each relevant document at ranks <= k / min(k, relevant documents)",
    lambda ranks: divide(ranks.total(ranks.relevant * ranks.relevant_so_far / ranks.k), _count_reachable(ranks)),
    example=("TruncatedAP@3", 0.5555555555555555),
    source="the AP@k of many lectures and of Kaggle",
    remark="AP@k differs: it divides by all relevant documents, even if there are more than k",
)
F = _declare(
    "F",
    "F at k",
    "(b^2 + 1) P R / (b^2 P + R) of precision and recall at ranks <= k, b = beta; 0 if both are 0",
    _compute_f,
    example=("F@3", 0.6666666666666666),
    source="van Rijsbergen, Information Retrieval, 1979, chapter 7",
    own={"cutoff": _CUTOFF, "beta": ParamInfo(dtype=(int, float), default=1, desc="weight of recall"), "rel": _REL},
    remark="beta is that of textbooks: F(beta=2) is their F2; the beta of SetF is its square",
)
Fallout = _declare(
    "Fallout",
    "Fallout at k",
    "judged documents that are not relevant at ranks <= k / all judged documents that are not relevant; 0 if there are none",
    lambda ranks: divide(ranks.total(ranks.not_relevant), ranks.num_judged - ranks.num_rel),
    better="down",
    example=("Fallout@3", 0.5),
    source="Salton and McGill, Introduction to Modern Information Retrieval, 1983, for judged documents only",
    remark="an empty ranking has the value 0, and no value in compare; documents without a label do not count; any label is "
    "a judgment, also a negative one",
    needs_results=True,
)
RelativeP = _declare(
    "RelativeP",
    "Relative Precision at k",
    "relevant documents at ranks <= k / min(k, relevant documents): P@k / the largest possible P@k",
    lambda ranks: divide(ranks.total(ranks.relevant), _count_reachable(ranks)),
    example=("RelativeP@3", 0.6666666666666666),
    source="trec_eval 9, relative_P",
)
Unjudged = _declare(
    "Unjudged",
    "Share of unjudged documents at k",
    "documents without a label at ranks <= k / k",
    lambda ranks: (ranks.num_seen - ranks.total(ranks.judged)) / float(ranks.parameters["cutoff"]),
    better="down",
    example=("Unjudged@4", 0.25),
    source="trec_eval 10, unj",
    own={"cutoff": _CUTOFF},
    remark="an empty ranking has the value 0, and no value in compare; any label is a judgment, also a negative one, unlike "
    "in trec_eval",
    needs_results=True,
)
RBPResidual = _declare(
    "RBPResidual",
    "Residual of Rank-Biased Precision",
    "1 - (1 - p) * sum of p^(k-1) over the documents with a label: how far RBP could rise if all documents without a label "
    "and all below the end of the ranking were relevant",
    _compute_rbp_residual,
    better="down",
    example=("RBPResidual(p=0.5)", 0.09375),
    source="Moffat and Zobel, TOIS 27(1), 2008; trec_eval 10, rbp_resid",
    own={"p": ParamInfo(dtype=(int, float), default=0.8, desc="persistence")},
    remark="if all n retrieved documents are judged it is p^n, and 0 in trec_eval; p is 0.8 by default as for RBP, and 0.9 "
    "in trec_eval",
)

_GRADED_IDEAL = ParamInfo(
    dtype=str,
    choices=["topk", "ranking", "judged"],
    default="topk",
    desc="documents of the ideal: those at ranks <= k, those of the ranking, or all judged ones",
)
_NULL_IF = "a query has results, and none at ranks <= k has a grade"


def _declare_graded(
    name: str, title: str, definition: str, formula: Callable[[Ranks], Array], **details: Any
) -> RankedMeasure:
    """Declare a measure that is 0 for an empty ranking. For other rankings, it is null if no document at ranks <= k has a grade."""

    def compute(ranks: Ranks) -> Array:
        has_value = (ranks.num_seen == 0) | (ranks.total(ranks.judged) > 0)
        value = formula(ranks)
        # NaN stands for no value. An infinite value raises the error for labels that are too large.
        value = np.where(np.isfinite(value), value, np.inf)
        return np.where(has_value, value, np.nan)

    return _declare(name, title, definition, compute, **{"null_if": _NULL_IF, "family": "graded"} | details)


GradedP = _declare_graded(
    "GradedP",
    "Precision at k of the graded documents",
    "relevant documents at ranks <= k / documents with a grade at ranks <= k",
    lambda ranks: divide(ranks.total(ranks.relevant), ranks.total(ranks.judged)),
    example=("GradedP@3", 0.6666666666666666),
    source="SearchTweak, MP@k",
)
GradedAP = _declare_graded(
    "GradedAP",
    "Average Precision at k of the relevant documents found",
    "sum of the precision at the rank of each relevant document at ranks <= k / relevant documents at ranks <= k; a document "
    "without a grade counts as not relevant",
    lambda ranks: divide(ranks.total(ranks.relevant * ranks.relevant_so_far / ranks.k), ranks.total(ranks.relevant)),
    example=("GradedAP@3", 0.8333333333333333),
    source="SearchTweak, MAP@k",
    remark="unlike in AP@k, relevant documents below rank k do not count",
)
GradedRR = _declare_graded(
    "GradedRR",
    "Reciprocal Rank at k",
    "1 / rank of the first relevant document; 0 if none is at ranks <= k",
    lambda ranks: ranks.highest(ranks.relevant / ranks.k),
    example=("GradedRR@3", 1.0),
    source="SearchTweak, MRR@k",
)
GradedCG = _declare_graded(
    "GradedCG",
    "Cumulative Gain over ranks",
    "sum of the labels at ranks <= k; a negative label counts as 0",
    lambda ranks: ranks.total(ranks.label.clip(0)),
    bounds=("0", ""),
    example=("GradedCG@3", 5.0),
    source="SearchTweak, CG(d)@k",
    own={"cutoff": _CUTOFF},
)
GradedDCG = _declare_graded(
    "GradedDCG",
    "Discounted Cumulative Gain over ranks",
    "sum of g(label) / log2(rank + 1) over ranks <= k; the gain g is the label, or with dcg='exp-log2' 2^label - 1, and 0 for "
    "a negative label",
    compute_dcg,
    bounds=("0", ""),
    example=("GradedDCG@3", 4.0),
    source="SearchTweak, DCG(d)@k",
    position=place_for_dcg,
    own={"cutoff": _CUTOFF, "dcg": _DCG},
)
GradednDCG = _declare_graded(
    "GradednDCG",
    "Normalised Discounted Cumulative Gain at k",
    "GradedDCG@k / GradedDCG@k of the ideal: the documents at ranks <= k by descending label, with ideal='ranking' those of "
    "the ranking, with ideal='judged' all judged ones; 0 if that is 0",
    lambda ranks: divide(compute_dcg(ranks), compute_ideal_dcg(ranks)),
    example=("GradednDCG@3", 0.9385574520455131),
    source="SearchTweak, nDCG(d)@k",
    position=place_for_dcg,
    own={"cutoff": _CUTOFF, "dcg": _DCG, "ideal": _GRADED_IDEAL},
    remark="nDCG@k uses ideal='judged'",
)
