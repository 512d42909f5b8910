"""The measures over one ranking that know documents without a grade: each is one declaration.

To every other measure such a document is one of label 0. Here it is left out (GradedP), or adds nothing, and a query of
whose first k documents none has a grade has no value (null). Any label is a grade, also one below 0.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import narwhals as nw
from ir_measures.measures import ParamInfo

from goodgain.measures.hostless import CUTOFF, DCG, REL, compute_dcg, compute_ideal_dcg, place_for_dcg
from goodgain.measures.ranked_declaration import RankedDeclaration, RankedMeasure
from goodgain.measures.ranks import Ranks, divide

__all__ = ["GRADED"]

_IDEAL = ParamInfo(
    dtype=str,
    choices=["topk", "ranking", "judged"],
    default="topk",
    desc="whose labels the ideal has: of the documents at ranks <= k, of the whole ranking, or of all judged documents",
)
_SOURCE = "SearchTweak, "
_NULL = "null where there are results and none at ranks <= k has a grade; means are over the other queries"


def _find(name: str, params: dict[str, Any]) -> RankedMeasure:
    """Return the measure of a name with parameters: what a copy or a pickle is made from."""
    found: RankedMeasure = globals()[name](**params)
    return found


def _declare(
    name: str, title: str, definition: str, value: Callable[[Ranks], nw.Expr], **details: Any
) -> RankedMeasure:
    """Declare a measure that is null where no document at ranks <= k has a grade, and 0 where there is no document."""

    def compute(ranks: Ranks) -> nw.Expr:
        has_value = (ranks.num_seen == 0) | (ranks.total(ranks.judged) > 0)
        return nw.when(has_value).then(value(ranks))

    details = {"remark": _NULL, "better": "up"} | details
    declared = RankedDeclaration(name, title, definition, compute, **details, family="graded", find=_find)
    measure: RankedMeasure = declared.measure  # type: ignore[assignment]  # that of a host is for classic ones alone
    return measure


GradedP = _declare(
    "GradedP",
    "Precision at k of the graded documents",
    "relevant documents at ranks <= k / documents with a grade at ranks <= k",
    lambda ranks: divide(ranks.total(ranks.relevant), ranks.total(ranks.judged)),
    bounds=("0", "1"),
    source=_SOURCE + "MP@k",
    own={"cutoff": CUTOFF, "rel": REL},
)
GradedAP = _declare(
    "GradedAP",
    "Average Precision at k of the relevant documents found",
    "sum of the precision at the rank of each relevant document at ranks <= k, those without a grade as not relevant / "
    "relevant documents at ranks <= k",
    lambda ranks: divide(ranks.total(ranks.relevant * ranks.relevant_so_far / ranks.k), ranks.total(ranks.relevant)),
    bounds=("0", "1"),
    source=_SOURCE + "MAP@k",
    own={"cutoff": CUTOFF, "rel": REL},
    remark="relevant documents that are not at ranks <= k do not matter, as they do in AP@k; " + _NULL,
)
GradedRR = _declare(
    "GradedRR",
    "Reciprocal Rank at k",
    "1 / rank of the first relevant document, 0 where none is at ranks <= k",
    lambda ranks: ranks.highest(ranks.relevant / ranks.k),
    bounds=("0", "1"),
    source=_SOURCE + "MRR@k",
    own={"cutoff": CUTOFF, "rel": REL},
)
GradedCG = _declare(
    "GradedCG",
    "Cumulative Gain over ranks",
    "sum of the labels at ranks <= k, one below 0 as 0",
    lambda ranks: ranks.total(ranks.label.clip(0)),
    bounds=("0", ""),
    source=_SOURCE + "CG(d)@k",
    own={"cutoff": CUTOFF},
)
GradedDCG = _declare(
    "GradedDCG",
    "Discounted Cumulative Gain over ranks",
    "sum of g(label) / log2(k + 1) over ranks <= k; g is the label itself, 0 below 0, or with dcg='exp-log2' 2^label - 1",
    compute_dcg,
    bounds=("0", ""),
    source=_SOURCE + "DCG(d)@k",
    position=place_for_dcg,
    own={"cutoff": CUTOFF, "dcg": DCG},
)
GradednDCG = _declare(
    "GradednDCG",
    "Normalised Discounted Cumulative Gain at k",
    "GradedDCG@k / the same of the documents at ranks <= k by descending label; ideal='ranking': of the whole ranking, "
    "ideal='judged': of all judged documents, cut at k; 0 where that is 0",
    lambda ranks: divide(compute_dcg(ranks), compute_ideal_dcg(ranks)),
    bounds=("0", "1"),
    source=_SOURCE + "nDCG(d)@k",
    position=place_for_dcg,
    own={"cutoff": CUTOFF, "dcg": DCG, "ideal": _IDEAL},
    remark="the ideal of nDCG@k is ideal='judged'; " + _NULL,
)

#: The declaration of every measure above.
GRADED = tuple(measure.declaration for measure in list(globals().values()) if isinstance(measure, RankedMeasure))
