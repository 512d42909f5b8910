"""The measures: each is one declaration, an expression over ledger and pools.

At a row of a query's ledger, i is the iteration and `total(x)` the sum of x over the iterations 1..i. The ledger goes on
with empty rows after the last iteration, so that a value at a later i needs no rule of its own; a query without any
search has the one row i = 0.
"""

from __future__ import annotations

import polars as pl

from goodgain.declaring import GoodGainMeasure, choice, measure

__all__ = ["MEASURES"]

i = pl.col("iteration")
R, UR, Dup, GR, G, Unjudged = (pl.col(name) for name in ("R", "UR", "Dup", "GR", "G", "Unjudged"))
GoodPool, GainPool = pl.col("GoodPool"), pl.col("GainPool")


def total(x: pl.Expr) -> pl.Expr:
    """The sum of x over iterations 1..i."""
    return x.cum_sum().over("query_id")


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
    total(G),
    better="up",
    bounds=("0", ""),
    section=_GUIDELINE + "CG@i",
)
RG = measure(
    "RG",
    "Rate of Good Gain",
    "CG@i / i",
    ratio(total(G), i),
    better="up",
    bounds=("0", ""),
    section=_GUIDELINE + "RG@i",
)
DCGG = measure(
    "DCGG",
    "Discounted Cumulative Good Gain",
    "sum w(k) G_k",
    total(w * G),
    better="up",
    bounds=("0", ""),
    section=_GUIDELINE + "DCG@i",
    remark="the guideline's DCG@i; named DCGG because DCG@3 is read as a cutoff in ranks beside nDCG@10",
)
DRG = measure(
    "DRG",
    "Discounted Rate of Good Gain",
    "DCGG@i / i",
    ratio(total(w * G), i),
    better="up",
    bounds=("0", ""),
    section=_GUIDELINE + "DRG@i",
)
AvgGain = measure(
    "AvgGain",
    "Average Good Gain per Result",
    "G_i / R_i (of iteration i alone; 0 where R_i = 0)",
    gain_per_result,
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
    ratio(total(gain_per_result), i),
    better="up",
    bounds=("0", _MAX_GAIN),
    section=_GUIDELINE + "RAG@i",
)
DRAG = measure(
    "DRAG",
    "Discounted Rate of Average Gain",
    "(1/i) sum w(k) AvgGain_k",
    ratio(total(w * gain_per_result), i),
    better="up",
    bounds=("0", _MAX_GAIN),
    section=_GUIDELINE + "DRAG@i",
)
SRE = measure(
    "SRE",
    "Search Result Efficiency",
    "sum GR_k / sum R_k (0 where nothing was returned)",
    ratio(total(GR), total(R)),
    better="up",
    bounds=("0", "1"),
    section=_GUIDELINE + "SRE@i",
)
SRR = measure(
    "SRR",
    "Search Result Redundancy",
    "sum Dup_k / sum R_k (0 where nothing was returned)",
    ratio(total(Dup), total(R)),
    better="down",
    bounds=("0", "1"),
    section=_GUIDELINE + "SRR@i",
)
_NEVER = 100
_last_good = pl.when(GR > 0).then(i).cum_max().forward_fill().over("query_id").clip(upper_bound=_NEVER)
IterationsForAllGoodResults = measure(
    "IterationsForAllGoodResults",
    "Iterations for All Good Results",
    "min(k, 100), k = first iteration by which every good document has been retrieved",
    choice(
        "pool",
        "which documents are all: 'judged', the good ones of the qrels (100 if one is never retrieved), or 'retrieved', "
        "the good ones that this run ever retrieved, which cannot be compared between systems",
        judged=pl.when(GoodPool == 0).then(0).when(total(GR) == GoodPool).then(_last_good).otherwise(_NEVER),
        retrieved=_last_good.fill_null(_NEVER),
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
    ratio(total(G), GainPool),
    better="up",
    bounds=("0", "1"),
    section="CG@i over the gain of all judged good documents",
)
nDCGG = measure(  # noqa: N816  # the n of nDCG
    "nDCGG",
    "Normalised Discounted Cumulative Good Gain",
    "DCGG@i / GainPool (0 where GainPool = 0)",
    ratio(total(w * G), GainPool),
    better="up",
    bounds=("0", "1"),
    section="DCGG@i over the gain of all judged good documents, all found in iteration 1",
)

_LEDGER = "counts of the ledger"
NumIter = measure(
    "NumIter",
    "Number of Iterations",
    "N",
    i,
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
    total(R),
    better="down",
    bounds=("0", ""),
    section=_LEDGER,
    uses_rel=False,
)
NumUnique = measure(
    "NumUnique",
    "Number of Unique Results",
    "sum UR_k",
    total(UR),
    better="up",
    bounds=("0", ""),
    section=_LEDGER,
    uses_rel=False,
)
NumGood = measure(
    "NumGood",
    "Number of Good Results",
    "sum GR_k",
    total(GR),
    better="up",
    bounds=("0", ""),
    section=_LEDGER,
)
NumDup = measure(
    "NumDup",
    "Number of Repeated Results",
    "sum Dup_k",
    total(Dup),
    better="down",
    bounds=("0", ""),
    section=_LEDGER,
    uses_rel=False,
)
NumUnjudged = measure(
    "NumUnjudged",
    "Number of Unjudged Results",
    "sum Unjudged_k",
    total(Unjudged),
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
