"""The measures over one ranking that ir_measures lacks: each is one declaration.

Unlike the classic ones they have a value for every query of the qrels: a query that the run lacks has an empty ranking.

To most of them a document without a grade has the label 0. The graded ones, at the end, leave it out (GradedP) or count
nothing for it; a query has no value (null) if none of its first k documents has a grade. Any label is a grade, also one
below 0.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

import narwhals as nw
from ir_measures.measures import ParamInfo

from goodgain.measures.declaration import Declaration, RankedMeasure
from goodgain.measures.terms import Ranks, divide, divide_rows

_REL = ParamInfo(dtype=(int, float), default=1, desc="smallest relevant label (inclusive), above 0")
_CUTOFF = ParamInfo(dtype=int, required=True, desc="cutoff in ranks")
_OPTIONAL_K = ParamInfo(dtype=int, desc="cutoff in ranks")
_DCG = ParamInfo(
    dtype=str, choices=["log2", "exp-log2"], default="log2", desc="gain of a label: itself, or 2^label - 1"
)
#: The parameter that says whose labels the ideal ranking has.
IDEAL = ParamInfo(
    dtype=str,
    choices=["judged", "ranking"],
    default="judged",
    desc="whose labels the ideal has: of all judged documents, or of the whole ranking",
)

#: A recall is the nearest fraction with at most this denominator: 0.07 is 7/100.
_FINEST = 10**6


def place_for_dcg(parameters: Mapping[str, Any]) -> str:
    """Return the column of positions of DCG and nDCG: with exponential gain, tied documents stand as in gdeval."""
    return "k_gdeval" if parameters["dcg"] == "exp-log2" else "k"


def compute_dcg(ranks: Ranks) -> nw.Expr:
    """Return DCG; the gain of a label is the label itself, or 2^label - 1, and 0 below 0."""
    label = ranks.label.clip(0)
    gain = nw.lit(2.0) ** label - 1 if ranks.parameters["dcg"] == "exp-log2" else label
    return ranks.total(gain / (ranks.k + 1).log(2))


def compute_ideal_dcg(ranks: Ranks) -> nw.Expr:
    """Return DCG of the ideal ranking: of all judged documents, of the whole ranking, or of its first k documents."""
    ideal = ranks.parameters.get("ideal")
    if ideal == "topk":
        return compute_dcg(ranks.cut_by_label)
    return compute_dcg(ranks.by_label if ideal == "ranking" else ranks.ideal)


def _interpolate(ranks: Ranks, recall: Fraction) -> nw.Expr:
    """Return the highest precision at any rank whose recall is at least this; compared in whole numbers."""
    reached = ranks.relevant_so_far * recall.denominator >= ranks.num_rel * recall.numerator
    precision = ranks.relevant * ranks.relevant_so_far / ranks.k
    return ranks.highest(nw.when(reached).then(precision).otherwise(nw.lit(0.0)))


def _count_reachable(ranks: Ranks) -> nw.Expr:
    """Return how many relevant documents fit into ranks 1..cutoff."""
    return nw.min_horizontal(ranks.num_rel, nw.lit(ranks.cutoff))


def _compute_f(ranks: Ranks) -> nw.Expr:
    """Return (b^2 + 1) P R / (b^2 P + R), in the form that is 0 / (a positive number) where P and R are 0."""
    weight = float(ranks.parameters["beta"]) ** 2
    cutoff = float(ranks.parameters["cutoff"])
    return ranks.total(ranks.relevant) * (weight + 1) / (ranks.num_rel * weight + cutoff)


def _compute_rbp_residual(ranks: Ranks) -> nw.Expr:
    p = float(ranks.parameters["p"])
    known = ranks.total(nw.lit(p) ** (ranks.k - 1) * ranks.judged) * (1 - p)
    return (nw.lit(1.0) - known).clip(0)


#: The declaration of every measure below, by name.
DECLARED: dict[str, Declaration] = {}


def _declare(
    name: str, title: str, definition: str, formula: Callable[[Ranks], nw.Expr], **details: Any
) -> RankedMeasure:
    """Declare a measure; what most of them have in common need not be said."""
    common: dict[str, Any] = {"better": "up", "bounds": ("0", "1"), "family": "ranked"}
    declared = DECLARED[name] = Declaration(name, title, definition, formula, **common | details)
    measure: RankedMeasure = declared.measure  # type: ignore[assignment]  # only classic ones may be of ir_measures
    return measure


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
    remark="g is the label itself, 0 below 0; dcg='exp-log2' makes it 2^label - 1; DCGG@i is the sum over iterations",
    from_labels="sum",
)
RankIDCG = _declare(
    "RankIDCG",
    "Ideal Discounted Cumulative Gain over ranks",
    "RankDCG of the judged documents by descending label; ideal='ranking': of all documents of the ranking by "
    "descending label, those without a label as 0, cut afterwards",
    compute_ideal_dcg,
    better=None,
    bounds=("0", ""),
    example=("RankIDCG@3", 5.261859507142915),
    source="as RankDCG; the form ideal='ranking' is that of many tutorials",
    position=place_for_dcg,
    own={"cutoff": _OPTIONAL_K, "dcg": _DCG, "ideal": IDEAL},
    remark="it says what could be reached, not how good a run is: no direction is better",
)
ElevenPointAP = _declare(
    "ElevenPointAP",
    "Eleven-point Interpolated Average Precision",
    "mean over r = 0, .1 ... 1 of the highest precision at any rank whose recall is at least r; 0 where none is",
    lambda ranks: divide_rows(nw.sum_horizontal(*(_interpolate(ranks, Fraction(i, 10)) for i in range(11))), 11),
    example=("ElevenPointAP", 0.5454545454545454),
    source="Manning, Raghavan and Schütze, Introduction to Information Retrieval, 8.4",
    own={"rel": _REL},
    remark="recalls are compared exactly, while trec_eval's 11pt_avg rounds r * R to a whole number of documents",
)
InterpolatedPrecision = _declare(
    "InterpolatedPrecision",
    "Interpolated Precision at an exact recall",
    "highest precision at any rank whose recall is at least r; 0 where none is",
    lambda ranks: _interpolate(ranks, Fraction(ranks.parameters["recall"]).limit_denominator(_FINEST)),
    example=("InterpolatedPrecision@0.5", 0.6666666666666666),
    source="Manning, Raghavan and Schütze, Introduction to Information Retrieval, 8.4",
    own={"recall": ParamInfo(dtype=(int, float), required=True, desc="recall, 0 to 1"), "rel": _REL},
    at="recall",
    remark="IPrec is the same with the number of documents rounded as in trec_eval 9",
)
TruncatedAP = _declare(
    "TruncatedAP",
    "Truncated Average Precision",
    "sum of the precision at the rank of each relevant document at ranks <= k / min(k, relevant documents)",
    lambda ranks: divide(ranks.total(ranks.relevant * ranks.relevant_so_far / ranks.k), _count_reachable(ranks)),
    example=("TruncatedAP@3", 0.5555555555555555),
    source="the AP@k of many lectures and of Kaggle",
    own={"cutoff": _CUTOFF, "rel": _REL},
    remark="AP@k divides by all relevant documents, also where they are more than k",
)
F = _declare(
    "F",
    "F at k",
    "(b^2 + 1) P R / (b^2 P + R) of precision and recall at ranks <= k, b = beta; 0 where both are 0",
    _compute_f,
    example=("F@3", 0.6666666666666666),
    source="van Rijsbergen, Information Retrieval, 1979, chapter 7",
    own={"cutoff": _CUTOFF, "beta": ParamInfo(dtype=(int, float), default=1, desc="weight of recall"), "rel": _REL},
    remark="beta is that of textbooks: F(beta=2) is their F2, while SetF(beta=x) has x = beta^2",
)
Fallout = _declare(
    "Fallout",
    "Fallout at k",
    "judged documents that are not relevant at ranks <= k / all of them; 0 where there is none",
    lambda ranks: divide(ranks.total(ranks.not_relevant), ranks.num_judged - ranks.num_rel),
    better="down",
    example=("Fallout@3", 0.5),
    source="Salton and McGill, Introduction to Modern Information Retrieval, 1983, on judged documents alone",
    own={"cutoff": _CUTOFF, "rel": _REL},
    remark="an empty ranking has the best value, 0; documents without a label are in neither number, and any label, "
    "also one below 0, is a judgment",
)
RelativeP = _declare(
    "RelativeP",
    "Relative Precision at k",
    "relevant documents at ranks <= k / min(k, relevant documents): P@k / the largest that it can be",
    lambda ranks: divide(ranks.total(ranks.relevant), _count_reachable(ranks)),
    example=("RelativeP@3", 0.6666666666666666),
    source="trec_eval 9, relative_P",
    own={"cutoff": _CUTOFF, "rel": _REL},
)
Unjudged = _declare(
    "Unjudged",
    "Share of unjudged documents at k",
    "documents without a label at ranks <= k / k",
    lambda ranks: divide_rows(ranks.num_seen - ranks.total(ranks.judged), float(ranks.parameters["cutoff"])),
    better="down",
    example=("Unjudged@4", 0.25),
    source="trec_eval 10, unj",
    own={"cutoff": _CUTOFF},
    remark="an empty ranking has the best value, 0; any label is a judgment, also one below 0, which trec_eval counts "
    "as none",
)
RBPResidual = _declare(
    "RBPResidual",
    "Residual of Rank-Biased Precision",
    "1 - (1 - p) * sum of p^(k-1) over the documents with a label: how far RBP could rise if every other document, and "
    "all that could follow the ranking, were relevant",
    _compute_rbp_residual,
    better="down",
    example=("RBPResidual", 0.43008),
    source="Moffat and Zobel, TOIS 27(1), 2008; trec_eval 10, rbp_resid",
    own={"p": ParamInfo(dtype=(int, float), default=0.8, desc="persistence")},
    remark="trec_eval gives 0 where every document retrieved is judged; this gives p^n there, for what could follow the "
    "n documents; p is 0.8 by default as for RBP, and 0.9 in trec_eval",
)

_GRADED_IDEAL = ParamInfo(
    dtype=str,
    choices=["topk", "ranking", "judged"],
    default="topk",
    desc="whose labels the ideal has: of the documents at ranks <= k, of the whole ranking, or of all judged documents",
)
_NULL = "null where there are results and none at ranks <= k has a grade; means are over the other queries"


def _declare_graded(
    name: str, title: str, definition: str, formula: Callable[[Ranks], nw.Expr], **details: Any
) -> RankedMeasure:
    """Declare a measure that is null where no document at ranks <= k has a grade, and 0 where there is no document."""

    def compute(ranks: Ranks) -> nw.Expr:
        has_value = (ranks.num_seen == 0) | (ranks.total(ranks.judged) > 0)
        return nw.when(has_value).then(formula(ranks))

    return _declare(name, title, definition, compute, **{"remark": _NULL, "family": "graded"} | details)


GradedP = _declare_graded(
    "GradedP",
    "Precision at k of the graded documents",
    "relevant documents at ranks <= k / documents with a grade at ranks <= k",
    lambda ranks: divide(ranks.total(ranks.relevant), ranks.total(ranks.judged)),
    example=("GradedP@3", 0.6666666666666666),
    source="SearchTweak, MP@k",
    own={"cutoff": _CUTOFF, "rel": _REL},
)
GradedAP = _declare_graded(
    "GradedAP",
    "Average Precision at k of the relevant documents found",
    "sum of the precision at the rank of each relevant document at ranks <= k, those without a grade as not relevant / "
    "relevant documents at ranks <= k",
    lambda ranks: divide(ranks.total(ranks.relevant * ranks.relevant_so_far / ranks.k), ranks.total(ranks.relevant)),
    example=("GradedAP@3", 0.8333333333333333),
    source="SearchTweak, MAP@k",
    own={"cutoff": _CUTOFF, "rel": _REL},
    remark="relevant documents that are not at ranks <= k do not matter, as they do in AP@k; " + _NULL,
)
GradedRR = _declare_graded(
    "GradedRR",
    "Reciprocal Rank at k",
    "1 / rank of the first relevant document, 0 where none is at ranks <= k",
    lambda ranks: ranks.highest(ranks.relevant / ranks.k),
    example=("GradedRR@3", 1.0),
    source="SearchTweak, MRR@k",
    own={"cutoff": _CUTOFF, "rel": _REL},
)
GradedCG = _declare_graded(
    "GradedCG",
    "Cumulative Gain over ranks",
    "sum of the labels at ranks <= k, one below 0 as 0",
    lambda ranks: ranks.total(ranks.label.clip(0)),
    bounds=("0", ""),
    example=("GradedCG@3", 5.0),
    source="SearchTweak, CG(d)@k",
    own={"cutoff": _CUTOFF},
)
GradedDCG = _declare_graded(
    "GradedDCG",
    "Discounted Cumulative Gain over ranks",
    "sum of g(label) / log2(k + 1) over ranks <= k; g is the label itself, 0 below 0, or with dcg='exp-log2' 2^label - 1",
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
    "GradedDCG@k / the same of the documents at ranks <= k by descending label; ideal='ranking': of the whole ranking, "
    "ideal='judged': of all judged documents, cut at k; 0 where that is 0",
    lambda ranks: divide(compute_dcg(ranks), compute_ideal_dcg(ranks)),
    example=("GradednDCG@3", 0.9385574520455131),
    source="SearchTweak, nDCG(d)@k",
    position=place_for_dcg,
    own={"cutoff": _CUTOFF, "dcg": _DCG, "ideal": _GRADED_IDEAL},
    remark="the ideal of nDCG@k is ideal='judged'; " + _NULL,
)
