"""The good-gain measures, which are computed from the ledger: each is one declaration.

The value at iteration i is an expression over ledger and pools: R, UR, ... are the counts of iteration i, and
`upto.total(x)` is the sum of x over iterations 1..i. Iterations after a query's last one count as empty, so that the value
at a later i is defined by the same expression. A query without any search has i = 0.
"""

from __future__ import annotations

import polars as pl

from goodgain.measures.declaration import GoodGainMeasure, declare_choice, declare_measure
from goodgain.measures.formula import UpTo, divide_rows

__all__ = ["MEASURES"]

i = pl.col("iteration")
R, UR, Dup, GR, G, Unjudged = (pl.col(name) for name in ("R", "UR", "Dup", "GR", "G", "Unjudged"))
GoodPool, GainPool = pl.col("GoodPool"), pl.col("GainPool")


def divide(a: pl.Expr, b: pl.Expr) -> pl.Expr:
    """Return a / b, and 0 where b is 0."""
    return pl.when(b != 0).then(divide_rows(a, b)).otherwise(0.0)


#: The discount of iteration i. Without the clip it would be 1 / log2(1), which is infinite, at i = 0: 0 * infinity is NaN.
w = 1 / (i.clip(lower_bound=1) + 1).log(2)
gain_per_result = divide(G, R)

_GUIDELINE = "Retrieved Good Gain guideline, "
_MAX_GAIN = "max gain"

CG = declare_measure(
    "CG",
    "Cumulative Good Gain",
    "sum G_k",
    lambda upto: upto.total(G),
    better="up",
    bounds=("0", ""),
    section=_GUIDELINE + "CG@i",
    from_labels="sum",
)
RG = declare_measure(
    "RG",
    "Rate of Good Gain",
    "CG@i / i",
    lambda upto: divide(upto.total(G), i),
    better="up",
    bounds=("0", ""),
    section=_GUIDELINE + "RG@i",
    from_labels="sum",
)
DCGG = declare_measure(
    "DCGG",
    "Discounted Cumulative Good Gain",
    "sum w(k) G_k",
    lambda upto: upto.total(w * G),
    better="up",
    bounds=("0", ""),
    section=_GUIDELINE + "DCG@i",
    remark="the guideline's DCG@i; named DCGG because DCG@3 is read as a cutoff in ranks beside nDCG@10",
    from_labels="sum",
)
DRG = declare_measure(
    "DRG",
    "Discounted Rate of Good Gain",
    "DCGG@i / i",
    lambda upto: divide(upto.total(w * G), i),
    better="up",
    bounds=("0", ""),
    section=_GUIDELINE + "DRG@i",
    from_labels="sum",
)
AvgGain = declare_measure(
    "AvgGain",
    "Average Good Gain per Result",
    "G_i / R_i (of iteration i alone; 0 where R_i = 0)",
    lambda _upto: gain_per_result,
    better="up",
    bounds=("0", _MAX_GAIN),
    section=_GUIDELINE + "AvgGain_i",
    cutoff="required",
    remark="RAG is the mean over iterations",
    from_labels="sum",
)
RAG = declare_measure(
    "RAG",
    "Rate of Average Gain",
    "(1/i) sum AvgGain_k",
    lambda upto: divide(upto.total(gain_per_result), i),
    better="up",
    bounds=("0", _MAX_GAIN),
    section=_GUIDELINE + "RAG@i",
    from_labels="sum",
)
DRAG = declare_measure(
    "DRAG",
    "Discounted Rate of Average Gain",
    "(1/i) sum w(k) AvgGain_k",
    lambda upto: divide(upto.total(w * gain_per_result), i),
    better="up",
    bounds=("0", _MAX_GAIN),
    section=_GUIDELINE + "DRAG@i",
    from_labels="sum",
)
SRE = declare_measure(
    "SRE",
    "Search Result Efficiency",
    "sum GR_k / sum R_k (0 where nothing was returned)",
    lambda upto: divide(upto.total(GR), upto.total(R)),
    better="up",
    bounds=("0", "1"),
    section=_GUIDELINE + "SRE@i",
    from_labels="sum",
)
SRR = declare_measure(
    "SRR",
    "Search Result Redundancy",
    "sum Dup_k / sum R_k (0 where nothing was returned)",
    lambda upto: divide(upto.total(Dup), upto.total(R)),
    better="down",
    bounds=("0", "1"),
    section=_GUIDELINE + "SRR@i",
    from_labels="sum",
)
#: The guideline's value of IterationsForAllGoodResults where a good document is never retrieved.
_NEVER = 100


def find_last_good(upto: UpTo) -> pl.Expr:
    """Return the last iteration that brought a new good document, at most 100; null where none did."""
    return upto.highest(pl.when(GR > 0).then(i)).clip(upper_bound=_NEVER)


IterationsForAllGoodResults = declare_measure(
    "IterationsForAllGoodResults",
    "Iterations for All Good Results",
    "min(k, 100), k = first iteration by which every good document has been retrieved",
    declare_choice(
        "pool",
        "which documents are all: 'judged', the good ones of the qrels (100 if one is never retrieved), or 'retrieved', "
        "the good ones that this run ever retrieved, which cannot be compared between systems",
        judged=lambda upto: (
            pl.when(GoodPool == 0).then(0).when(upto.total(GR) == GoodPool).then(find_last_good(upto)).otherwise(_NEVER)
        ),
        retrieved=lambda upto: find_last_good(upto).fill_null(_NEVER),
    ),
    better="down",
    bounds=("0", "100"),
    section=_GUIDELINE + "IterationsForAllGoodResults",
    cutoff="none",
)
nCG = declare_measure(  # noqa: N816  # the n of nDCG
    "nCG",
    "Normalised Cumulative Good Gain",
    "CG@i / GainPool (0 where GainPool = 0)",
    lambda upto: divide(upto.total(G), GainPool),
    better="up",
    bounds=("0", "1"),
    section="CG@i over the gain of all judged good documents",
)
nDCGG = declare_measure(  # noqa: N816  # the n of nDCG
    "nDCGG",
    "Normalised Discounted Cumulative Good Gain",
    "DCGG@i / GainPool (0 where GainPool = 0)",
    lambda upto: divide(upto.total(w * G), GainPool),
    better="up",
    bounds=("0", "1"),
    section="DCGG@i over the gain of all judged good documents, all found in iteration 1",
)

_LEDGER = "counts of the ledger"
NumIter = declare_measure(
    "NumIter",
    "Number of Iterations",
    "N",
    lambda _upto: i,
    better="down",
    bounds=("0", ""),
    section=_LEDGER,
    family="counts",
    cutoff="none",
    uses_rel=False,
    from_labels="sum",
)
NumResults = declare_measure(
    "NumResults",
    "Number of Results",
    "sum R_k",
    lambda upto: upto.total(R),
    better="down",
    bounds=("0", ""),
    section=_LEDGER,
    family="counts",
    uses_rel=False,
    from_labels="sum",
)
NumUnique = declare_measure(
    "NumUnique",
    "Number of Unique Results",
    "sum UR_k",
    lambda upto: upto.total(UR),
    better="up",
    bounds=("0", ""),
    section=_LEDGER,
    family="counts",
    uses_rel=False,
    from_labels="sum",
)
NumGood = declare_measure(
    "NumGood",
    "Number of Good Results",
    "sum GR_k",
    lambda upto: upto.total(GR),
    better="up",
    bounds=("0", ""),
    section=_LEDGER,
    family="counts",
    from_labels="sum",
)
NumDup = declare_measure(
    "NumDup",
    "Number of Repeated Results",
    "sum Dup_k",
    lambda upto: upto.total(Dup),
    better="down",
    bounds=("0", ""),
    section=_LEDGER,
    family="counts",
    uses_rel=False,
    from_labels="sum",
)
NumUnjudged = declare_measure(
    "NumUnjudged",
    "Number of Unjudged Results",
    "sum Unjudged_k",
    lambda upto: upto.total(Unjudged),
    better="down",
    bounds=("0", ""),
    section=_LEDGER,
    family="counts",
    uses_rel=False,
)

#: Every measure declared above, by name.
MEASURES: dict[str, GoodGainMeasure] = {
    declared.declaration.name: declared
    for declared in list(globals().values())
    if isinstance(declared, GoodGainMeasure)
}
