"""The measures: each is one declaration.

Its value at iteration i is an expression over ledger and pools: R, UR, ... are those of iteration i, and `upto.total(x)`
is the sum of x over iterations 1..i. Iterations after the last one are empty, so that a value at a later i needs no rule of
its own; for a query without any search i = 0.
"""

from __future__ import annotations

import polars as pl

from goodgain.measures.declaration import GoodGainMeasure, choice, measure
from goodgain.measures.formula import UpTo

__all__ = ["MEASURES"]

i = pl.col("iteration")
R, UR, Dup, GR, G, Unjudged = (pl.col(name) for name in ("R", "UR", "Dup", "GR", "G", "Unjudged"))
GoodPool, GainPool = pl.col("GoodPool"), pl.col("GainPool")


def ratio(a: pl.Expr, b: pl.Expr) -> pl.Expr:
    """a / b, and 0 where there is nothing to divide by."""
    return pl.when(b != 0).then(a / b).otherwise(0.0)


w = 1 / (i.clip(lower_bound=1) + 1).log(2)  # at i = 0 nothing is weighted, and 1/log2(1) is no number
gain_per_result = ratio(G, R)

_GUIDELINE = "Retrieved Good Gain guideline, "
_MAX_GAIN = "max gain"

CG = measure(
    "CG",
    "Cumulative Good Gain",
    "sum G_k",
    lambda upto: upto.total(G),
    better="up",
    bounds=("0", ""),
    section=_GUIDELINE + "CG@i",
)
RG = measure(
    "RG",
    "Rate of Good Gain",
    "CG@i / i",
    lambda upto: ratio(upto.total(G), i),
    better="up",
    bounds=("0", ""),
    section=_GUIDELINE + "RG@i",
)
DCGG = measure(
    "DCGG",
    "Discounted Cumulative Good Gain",
    "sum w(k) G_k",
    lambda upto: upto.total(w * G),
    better="up",
    bounds=("0", ""),
    section=_GUIDELINE + "DCG@i",
    remark="the guideline's DCG@i; named DCGG because DCG@3 is read as a cutoff in ranks beside nDCG@10",
)
DRG = measure(
    "DRG",
    "Discounted Rate of Good Gain",
    "DCGG@i / i",
    lambda upto: ratio(upto.total(w * G), i),
    better="up",
    bounds=("0", ""),
    section=_GUIDELINE + "DRG@i",
)
AvgGain = measure(
    "AvgGain",
    "Average Good Gain per Result",
    "G_i / R_i (of iteration i alone; 0 where R_i = 0)",
    lambda _upto: gain_per_result,
    better="up",
    bounds=("0", _MAX_GAIN),
    section=_GUIDELINE + "AvgGain_i",
    cutoff="required",
    remark="RAG is the mean over iterations",
)
RAG = measure(
    "RAG",
    "Rate of Average Gain",
    "(1/i) sum AvgGain_k",
    lambda upto: ratio(upto.total(gain_per_result), i),
    better="up",
    bounds=("0", _MAX_GAIN),
    section=_GUIDELINE + "RAG@i",
)
DRAG = measure(
    "DRAG",
    "Discounted Rate of Average Gain",
    "(1/i) sum w(k) AvgGain_k",
    lambda upto: ratio(upto.total(w * gain_per_result), i),
    better="up",
    bounds=("0", _MAX_GAIN),
    section=_GUIDELINE + "DRAG@i",
)
SRE = measure(
    "SRE",
    "Search Result Efficiency",
    "sum GR_k / sum R_k (0 where nothing was returned)",
    lambda upto: ratio(upto.total(GR), upto.total(R)),
    better="up",
    bounds=("0", "1"),
    section=_GUIDELINE + "SRE@i",
)
SRR = measure(
    "SRR",
    "Search Result Redundancy",
    "sum Dup_k / sum R_k (0 where nothing was returned)",
    lambda upto: ratio(upto.total(Dup), upto.total(R)),
    better="down",
    bounds=("0", "1"),
    section=_GUIDELINE + "SRR@i",
)
_NEVER = 100


def last_good(upto: UpTo) -> pl.Expr:
    """The last iteration that brought a good document, at most 100; null where none did."""
    return upto.highest(pl.when(GR > 0).then(i)).clip(upper_bound=_NEVER)


IterationsForAllGoodResults = measure(
    "IterationsForAllGoodResults",
    "Iterations for All Good Results",
    "min(k, 100), k = first iteration by which every good document has been retrieved",
    choice(
        "pool",
        "which documents are all: 'judged', the good ones of the qrels (100 if one is never retrieved), or 'retrieved', "
        "the good ones that this run ever retrieved, which cannot be compared between systems",
        judged=lambda upto: (
            pl.when(GoodPool == 0).then(0).when(upto.total(GR) == GoodPool).then(last_good(upto)).otherwise(_NEVER)
        ),
        retrieved=lambda upto: last_good(upto).fill_null(_NEVER),
    ),
    better="down",
    bounds=("0", "100"),
    section=_GUIDELINE + "IterationsForAllGoodResults",
    cutoff="none",
)
nCG = measure(  # noqa: N816  # the n of nDCG
    "nCG",
    "Normalised Cumulative Good Gain",
    "CG@i / GainPool (0 where GainPool = 0)",
    lambda upto: ratio(upto.total(G), GainPool),
    better="up",
    bounds=("0", "1"),
    section="CG@i over the gain of all judged good documents",
)
nDCGG = measure(  # noqa: N816  # the n of nDCG
    "nDCGG",
    "Normalised Discounted Cumulative Good Gain",
    "DCGG@i / GainPool (0 where GainPool = 0)",
    lambda upto: ratio(upto.total(w * G), GainPool),
    better="up",
    bounds=("0", "1"),
    section="DCGG@i over the gain of all judged good documents, all found in iteration 1",
)

_LEDGER = "counts of the ledger"
NumIter = measure(
    "NumIter",
    "Number of Iterations",
    "N",
    lambda _upto: i,
    better="down",
    bounds=("0", ""),
    section=_LEDGER,
    cutoff="none",
    uses_rel=False,
)
NumResults = measure(
    "NumResults",
    "Number of Results",
    "sum R_k",
    lambda upto: upto.total(R),
    better="down",
    bounds=("0", ""),
    section=_LEDGER,
    uses_rel=False,
)
NumUnique = measure(
    "NumUnique",
    "Number of Unique Results",
    "sum UR_k",
    lambda upto: upto.total(UR),
    better="up",
    bounds=("0", ""),
    section=_LEDGER,
    uses_rel=False,
)
NumGood = measure(
    "NumGood",
    "Number of Good Results",
    "sum GR_k",
    lambda upto: upto.total(GR),
    better="up",
    bounds=("0", ""),
    section=_LEDGER,
)
NumDup = measure(
    "NumDup",
    "Number of Repeated Results",
    "sum Dup_k",
    lambda upto: upto.total(Dup),
    better="down",
    bounds=("0", ""),
    section=_LEDGER,
    uses_rel=False,
)
NumUnjudged = measure(
    "NumUnjudged",
    "Number of Unjudged Results",
    "sum Unjudged_k",
    lambda upto: upto.total(Unjudged),
    better="down",
    bounds=("0", ""),
    section=_LEDGER,
    uses_rel=False,
)

#: Every measure declared above, by name.
MEASURES: dict[str, GoodGainMeasure] = {
    declared.declaration.name: declared
    for declared in list(globals().values())
    if isinstance(declared, GoodGainMeasure)
}
