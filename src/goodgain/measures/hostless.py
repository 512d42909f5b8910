"""The measures over one ranking that no host has: each is one declaration.

Unlike the classic ones they have a value for every query of the qrels: a query that the run lacks has an empty ranking.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

import narwhals as nw
from ir_measures.measures import ParamInfo

from goodgain.measures.formula import divide_rows
from goodgain.measures.ranked_declaration import RankedDeclaration, RankedMeasure
from goodgain.measures.ranks import Ranks, divide

#: The threshold, the cutoff and the gain of measures that no host has.
REL = ParamInfo(dtype=(int, float), default=1, desc="smallest relevant label (inclusive), above 0")
CUTOFF = ParamInfo(dtype=int, required=True, desc="cutoff in ranks")
_OPTIONAL_K = ParamInfo(dtype=int, desc="cutoff in ranks")
DCG = ParamInfo(dtype=str, choices=["log2", "exp-log2"], default="log2", desc="gain of a label: itself, or 2^label - 1")
#: The parameter that says whose labels the ideal ranking has.
IDEAL = ParamInfo(
    dtype=str,
    choices=["judged", "ranking"],
    default="judged",
    desc="whose labels the ideal has: of all judged documents, or of the whole ranking",
)

#: A recall is taken for the fraction with at most this denominator that is nearest to it, so that 0.07 is 7/100.
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


def _average_eleven_points(ranks: Ranks) -> nw.Expr:
    points = [_interpolate(ranks, Fraction(tenths, 10)) for tenths in range(11)]
    return divide_rows(nw.sum_horizontal(*points), len(points))


def _count_reachable(ranks: Ranks) -> nw.Expr:
    """Return how many relevant documents fit into ranks 1..cutoff."""
    return nw.min_horizontal(ranks.num_rel, nw.lit(ranks.cutoff))


def _combine_f(ranks: Ranks) -> nw.Expr:
    """Return (b^2 + 1) P R / (b^2 P + R), in the form that is 0 / (a positive number) where P and R are 0."""
    weight = float(ranks.parameters["beta"]) ** 2
    cutoff = float(ranks.parameters["cutoff"])
    return ranks.total(ranks.relevant) * (weight + 1) / (ranks.num_rel * weight + cutoff)


def _compute_rbp_residual(ranks: Ranks) -> nw.Expr:
    p = float(ranks.parameters["p"])
    known = ranks.total(nw.lit(p) ** (ranks.k - 1) * ranks.judged) * (1 - p)
    return (nw.lit(1.0) - known).clip(0)


def _find(name: str, params: dict[str, Any]) -> RankedMeasure:
    """Return the measure of a name with parameters: what a copy or a pickle is made from."""
    found: RankedMeasure = globals()[name](**params)
    return found


def _declare(
    name: str, title: str, definition: str, value: Callable[[Ranks], nw.Expr], **details: Any
) -> RankedMeasure:
    """Declare a measure; the arguments are those of `RankedDeclaration`."""
    declared = RankedDeclaration(name, title, definition, value, **details, family="ranked", find=_find)
    measure: RankedMeasure = declared.measure  # type: ignore[assignment]  # that of a host is for classic ones alone
    return measure


RankDCG = _declare(
    "RankDCG",
    "Discounted Cumulative Gain over ranks",
    "sum of g(label) / log2(k + 1) over ranks k <= cutoff",
    compute_dcg,
    better="up",
    bounds=("0", ""),
    source="Järvelin and Kekäläinen, TOIS 20(4), 2002, with the discount of nDCG",
    position=place_for_dcg,
    own={"cutoff": _OPTIONAL_K, "dcg": DCG},
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
    source="as RankDCG; the form ideal='ranking' is that of many tutorials",
    position=place_for_dcg,
    own={"cutoff": _OPTIONAL_K, "dcg": DCG, "ideal": IDEAL},
    remark="it says what could be reached, not how good a run is: no direction is better",
)
ElevenPointAP = _declare(
    "ElevenPointAP",
    "Eleven-point Interpolated Average Precision",
    "mean over r = 0, .1 ... 1 of the highest precision at any rank whose recall is at least r; 0 where none is",
    _average_eleven_points,
    better="up",
    bounds=("0", "1"),
    source="Manning, Raghavan and Schütze, Introduction to Information Retrieval, 8.4",
    own={"rel": REL},
    remark="recalls are compared exactly, while trec_eval's 11pt_avg rounds r * R to a whole number of documents",
)
InterpolatedPrecision = _declare(
    "InterpolatedPrecision",
    "Interpolated Precision at an exact recall",
    "highest precision at any rank whose recall is at least r; 0 where none is",
    lambda ranks: _interpolate(ranks, Fraction(ranks.parameters["recall"]).limit_denominator(_FINEST)),
    better="up",
    bounds=("0", "1"),
    source="Manning, Raghavan and Schütze, Introduction to Information Retrieval, 8.4",
    own={"recall": ParamInfo(dtype=(int, float), required=True, desc="recall, 0 to 1"), "rel": REL},
    at="recall",
    remark="IPrec is the same with the number of documents rounded as in trec_eval 9",
)
TruncatedAP = _declare(
    "TruncatedAP",
    "Truncated Average Precision",
    "sum of the precision at the rank of each relevant document at ranks <= k / min(k, relevant documents)",
    lambda ranks: divide(ranks.total(ranks.relevant * ranks.relevant_so_far / ranks.k), _count_reachable(ranks)),
    better="up",
    bounds=("0", "1"),
    source="the AP@k of many lectures and of Kaggle",
    own={"cutoff": CUTOFF, "rel": REL},
    remark="AP@k divides by all relevant documents, also where they are more than k",
)
F = _declare(
    "F",
    "F at k",
    "(b^2 + 1) P R / (b^2 P + R) of precision and recall at ranks <= k, b = beta; 0 where both are 0",
    _combine_f,
    better="up",
    bounds=("0", "1"),
    source="van Rijsbergen, Information Retrieval, 1979, chapter 7",
    own={"cutoff": CUTOFF, "beta": ParamInfo(dtype=(int, float), default=1, desc="weight of recall"), "rel": REL},
    remark="beta is that of textbooks: F(beta=2) is their F2, while SetF(beta=x) has x = beta^2",
)
Fallout = _declare(
    "Fallout",
    "Fallout at k",
    "judged documents that are not relevant at ranks <= k / all of them; 0 where there is none",
    lambda ranks: divide(ranks.total(ranks.not_relevant), ranks.num_judged - ranks.num_rel),
    better="down",
    bounds=("0", "1"),
    source="Salton and McGill, Introduction to Modern Information Retrieval, 1983, on judged documents alone",
    own={"cutoff": CUTOFF, "rel": REL},
    remark="an empty ranking has the best value, 0; documents without a label are in neither number, and any label, "
    "also one below 0, is a judgment",
)
RelativeP = _declare(
    "RelativeP",
    "Relative Precision at k",
    "relevant documents at ranks <= k / min(k, relevant documents): P@k / the largest that it can be",
    lambda ranks: divide(ranks.total(ranks.relevant), _count_reachable(ranks)),
    better="up",
    bounds=("0", "1"),
    source="trec_eval 9, relative_P",
    own={"cutoff": CUTOFF, "rel": REL},
)
Unjudged = _declare(
    "Unjudged",
    "Share of unjudged documents at k",
    "documents without a label at ranks <= k / k",
    lambda ranks: divide_rows(ranks.num_seen - ranks.total(ranks.judged), float(ranks.parameters["cutoff"])),
    better="down",
    bounds=("0", "1"),
    source="trec_eval 10, unj",
    own={"cutoff": CUTOFF},
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
    bounds=("0", "1"),
    source="Moffat and Zobel, TOIS 27(1), 2008; trec_eval 10, rbp_resid",
    own={"p": ParamInfo(dtype=(int, float), default=0.8, desc="persistence")},
    remark="trec_eval gives 0 where every document retrieved is judged; this gives p^n there, for what could follow the "
    "n documents; p is 0.8 by default as for RBP, and 0.9 in trec_eval",
)

#: The declaration of every measure above.
HOSTLESS = tuple(measure.declaration for measure in list(globals().values()) if isinstance(measure, RankedMeasure))
