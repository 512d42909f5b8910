"""Declares the good-gain measures and counts, which are computed from the ledger (counts per iteration).

The value at iteration i is computed from arrays of ledger and pools (counts of judged good documents). `upto.each` has the columns
of iterations 1..i, `upto.total(x)` is the sum of x over these iterations, and `upto.last` has the columns of iteration i alone.
Iterations after the last iteration of a query count as empty. Without a cutoff, i is the last iteration of the query, or 0 for a
query without a search.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from ir_measures.measures import ParamInfo

from goodgain.errors import MeasureError
from goodgain.measures.declaration import DEFAULT_REL, NOT_SEARCHED, GoodGainMeasure, declare
from goodgain.measures.rows_of_queries import Array, divide
from goodgain.measures.terms import UpTo

_REL = {
    "rel": ParamInfo(dtype=(int, float), default=DEFAULT_REL, desc="smallest label that is good (inclusive), above 0")
}
AT_I = {"cutoff": ParamInfo(dtype=int, desc="cutoff in iterations (not ranks)")}
GOOD = _REL | AT_I

_declare: Callable[..., GoodGainMeasure] = partial(declare, {"family": "good gain", "own": GOOD})


def _declare_of_guideline(name: str, *parts: Any, **details: Any) -> GoodGainMeasure:
    common = {"source": f"Retrieved Good Gain guideline, {name}@i", "from_labels": "sum", "is_of_guideline": True}
    return _declare(name, *parts, **{**common, **details})


CG = _declare_of_guideline(
    "CG",
    "Cumulative Good Gain",
    "sum G_k",
    lambda upto: upto.total(upto.each.G),
    bounds=("0", ""),
    example=("CG@2", 5.0),
    shows="Good gain found",
)
RG = _declare_of_guideline(
    "RG",
    "Rate of Good Gain",
    "CG@i / i",
    lambda upto: divide(upto.total(upto.each.G), upto.i),
    bounds=("0", ""),
    example=("RG@2", 2.5),
)
DCGG = _declare_of_guideline(
    "DCGG",
    "Discounted Cumulative Good Gain",
    "sum w(k) G_k, w(k) = 1 / log2(k + 1)",
    lambda upto: upto.total(upto.each.discounted_gain),
    bounds=("0", ""),
    source="Retrieved Good Gain guideline, DCG@i",
    example=("DCGG@2", 4.261859507142915),
    remark="the guideline calls it DCG@i; the name is DCGG because the 3 in DCG@3 usually is a rank",
)
DRG = _declare_of_guideline(
    "DRG",
    "Discounted Rate of Good Gain",
    "DCGG@i / i",
    lambda upto: divide(upto.total(upto.each.discounted_gain), upto.i),
    bounds=("0", ""),
    example=("DRG@2", 2.1309297535714573),
)
AvgGain = _declare_of_guideline(
    "AvgGain",
    "Average Good Gain per Result",
    "G_i / R_i (of iteration i alone; 0 if R_i = 0)",
    lambda upto: upto.last.gain_per_result,
    bounds=("0", "max gain"),
    source="Retrieved Good Gain guideline, AvgGain_i",
    own=_REL | {"cutoff": ParamInfo(dtype=int, required=True, desc="the iteration")},
    example=("AvgGain@2", 0.6666666666666666),
    remark="RAG is the mean over iterations",
)
RAG = _declare_of_guideline(
    "RAG",
    "Rate of Average Gain",
    "(1/i) sum AvgGain_k",
    lambda upto: divide(upto.total(upto.each.gain_per_result), upto.i),
    bounds=("0", "max gain"),
    example=("RAG@2", 0.8333333333333333),
)
DRAG = _declare_of_guideline(
    "DRAG",
    "Discounted Rate of Average Gain",
    "(1/i) sum w(k) AvgGain_k",
    lambda upto: divide(upto.total(upto.each.w * upto.each.gain_per_result), upto.i),
    bounds=("0", "max gain"),
    example=("DRAG@2", 0.7103099178571525),
)
SRE = _declare_of_guideline(
    "SRE",
    "Search Result Efficiency",
    "sum GR_k / sum R_k (0 without results)",
    lambda upto: divide(upto.total(upto.each.GR), upto.total(upto.each.R)),
    example=("SRE@2", 0.3333333333333333),
    by_repeats=True,
    shows="Share of results that are new and good",
)
SRR = _declare_of_guideline(
    "SRR",
    "Search Result Redundancy",
    "sum Dup_k / sum R_k (0 without results)",
    lambda upto: divide(upto.total(upto.each.Dup), upto.total(upto.each.R)),
    better="down",
    example=("SRR@2", 0.16666666666666666),
    by_repeats=True,
    counts_repeats=True,
    remark="labels have no effect on it, and neither has rel: a repeat counts whatever its label",
    needs_labels=False,
    needs_results=True,
    shows="Share of results that were repeats",
)
#: The guideline's value of IterationsForAllGoodResults if a good document is never retrieved.
NEVER = 100


def _find_last_new(upto: UpTo) -> Array:
    return upto.highest(np.where(upto.each.GR > 0, upto.each.k, np.nan))


def _find_all_good(upto: UpTo) -> Array:
    last = np.minimum(_find_last_new(upto), NEVER)
    if upto.parameters["pool"] == "retrieved":
        return np.where(np.isnan(last), NEVER, last)
    has_all = upto.total(upto.each.GR) == upto.GoodPool
    return np.where(upto.GoodPool == 0, 0.0, np.where(has_all, last, NEVER))


_POOL = ParamInfo(
    dtype=str,
    choices=["judged", "retrieved"],
    default="judged",
    desc="the good documents to find: 'judged', those of the qrels (100 if one is never retrieved), or 'retrieved', those that "
    "this run retrieved (100 if it retrieved none), which is not comparable between systems",
)
IterationsForAllGoodResults = _declare(
    "IterationsForAllGoodResults",
    "Iterations for All Good Results",
    "min(k, 100), k = iteration that retrieves the last good document",
    _find_all_good,
    better="down",
    bounds=("0", "100"),
    source="Retrieved Good Gain guideline, IterationsForAllGoodResults",
    is_of_guideline=True,
    own=_REL | {"pool": _POOL},
    example=("IterationsForAllGoodResults(pool='retrieved')", 2.0),
)
nCG = _declare(  # noqa: N816  # the n of nDCG
    "nCG",
    "Normalised Cumulative Good Gain",
    "CG@i / GainPool (0 if GainPool = 0), GainPool = the gain of all judged good documents",
    lambda upto: divide(upto.total(upto.each.G), upto.GainPool),
    source="CG@i over the gain of all judged good documents",
    example=("nCG@2", 0.7142857142857143),
    shows="Share of all good gain found",
)


def _normalise_discounted_gain(upto: UpTo) -> Array:
    """Return nDCGG: DCGG / GainPool, or with `per` DCGG / the DCGG of an ideal agent. It is 0 if the qrels have no gain."""
    gain = upto.total(upto.each.discounted_gain)
    per: int | None = upto.parameters.get("per")
    if per is None:
        return divide(gain, upto.GainPool)
    most = int(upto.each.R.max(initial=0))
    if most > per:
        raise MeasureError(
            f"nDCGG(per={per}): an iteration has {most} results, more than per={per}, and could be better than the ideal. "
            f"Give a limit that holds for every iteration of every system, such as per={most}."
        )
    return divide(gain, upto.find_ideal(per))


_PER = ParamInfo(
    dtype=int,
    desc="the most results that an iteration can return: DCGG@i is divided by the DCGG@i of an ideal that finds the `per` highest "
    "labels in iteration 1, the next `per` in iteration 2, and so on",
)
nDCGG = _declare(  # noqa: N816  # the n of nDCG
    "nDCGG",
    "Normalised Discounted Cumulative Good Gain",
    "DCGG@i / GainPool (0 if GainPool = 0), GainPool = the gain of all judged good documents",
    _normalise_discounted_gain,
    source="DCGG@i over the gain of all judged good documents, all found in iteration 1",
    own=GOOD | {"per": _PER},
    example=("nDCGG@2", 0.6088370724489878),
    remark="nDCGG(per=5) is DCGG@i / the DCGG@i of an ideal that finds at most 5 documents in each iteration, the highest labels "
    "first. Without @i, this ideal ends where the query ends. More than 5 results in an iteration up to i are an error",
)
AllGood = _declare(
    "AllGood",
    "All Good Documents Found",
    "1 if sum GR_k = GoodPool > 0, else 0; GoodPool = the number of all judged good documents",
    lambda upto: np.where((upto.GoodPool > 0) & (upto.total(upto.each.GR) == upto.GoodPool), 1.0, 0.0),
    source="the share of queries with all evidence found, over IterationsForAllGoodResults",
    is_0_or_1=True,
    example=("AllGood@2", 0.0),
    shows="Share of queries with all good documents found",
)
_NULL_IF = f"{NOT_SEARCHED} or has no good document"


def _give_if_good(upto: UpTo, value: Array) -> Array:
    return np.where((upto.GoodPool > 0) & (upto.N > 0), value, np.nan)


def _count_without_progress(upto: UpTo) -> Array:
    searches = np.minimum(upto.i, upto.N)
    has_all = upto.total(upto.each.GR) == upto.GoodPool
    while_missing = np.where(has_all, _find_last_new(upto), searches)
    progress = upto.total(upto.each.GR > 0)
    return _give_if_good(upto, divide(while_missing - progress, searches))


NoProgress = _declare(
    "NoProgress",
    "Searches Without Progress",
    "iterations k <= i that found no new good document while one was missing / iterations up to i",
    _count_without_progress,
    better="down",
    source="the no-progress rule that agents stop loops with, from labels",
    example=("NoProgress@2", 0.0),
    null_if=_NULL_IF,
)


def _share_over_search(upto: UpTo) -> Array:
    """Return the value of OverSearch: the share of iterations 1..i after the last new good document (see `_AFTER`)."""
    last_new = np.nan_to_num(_find_last_new(upto))  # 0 if no iteration found a good document
    after_last_new = divide(upto.i - last_new, upto.i)
    if upto.parameters["after"] == "last":
        return _give_if_good(upto, after_last_new)
    has_all = upto.total(upto.each.GR) == upto.GoodPool
    return _give_if_good(upto, np.where(has_all, after_last_new, 0.0))


_AFTER = ParamInfo(
    dtype=str,
    choices=["last", "all"],
    default="last",
    desc="the searches that count: 'last', those after the last new good document, also while good documents are missing (all "
    "searches if none found one), or 'all', those after all good documents of the qrels were found (0 if one was never found)",
)
OverSearch = _declare(
    "OverSearch",
    "Over-Search",
    "(N - l) / N, l = the last iteration that found a new good document; 1 if none did. With after='all', 0 if a good document of "
    "the qrels was never found",
    _share_over_search,
    better="down",
    source="over-search of beta-GRPO asks whether the model could answer without the search; this measure asks the labels",
    own=_REL | {"after": _AFTER},
    example=("OverSearch", 0.0),
    null_if=_NULL_IF,
    remark="it does not know what the model could answer; with after='last', 1 is the worst value: no search found a good "
    "document; with after='all', a system that misses a good document has the best value, so read AllGood beside it",
)
_REL_1 = {"rel": ParamInfo(dtype=(int, float), default=1, desc=_REL["rel"].desc)} | AT_I
EvidenceRecall = _declare(
    "EvidenceRecall",
    "Evidence Recall",
    "sum GR_k / GoodPool (0 where GoodPool = 0), rel=1, GoodPool = the number of all judged good documents",
    lambda upto: divide(upto.total(upto.each.GR), upto.GoodPool),
    source="BrowseComp-Plus (arXiv 2508.06600), recall",
    own=_REL_1,
    example=("EvidenceRecall@2", 0.6666666666666666),
    remark="it counts documents, and nCG weighs their labels; on labels 0 and 1 it equals nCG(rel=1)",
    shows="Share of the relevant documents found",
)
SearchPrecision = _declare(
    "SearchPrecision",
    "Search Precision",
    "sum GR_k / sum R_k (0 where nothing was returned), rel=1: SRE(rel=1)",
    lambda upto: divide(upto.total(upto.each.GR), upto.total(upto.each.R)),
    source="RAVine (arXiv 2507.16725)",
    own=_REL_1,
    example=("SearchPrecision@2", 0.3333333333333333),
    by_repeats=True,
    from_labels="sum",
)
SearchGain = _declare(
    "SearchGain",
    "Search Gain",
    "(sum GR_k / GoodPool) / i (0 where GoodPool = 0), rel=1: EvidenceRecall per iteration",
    lambda upto: divide(divide(upto.total(upto.each.GR), upto.GoodPool), upto.i),
    source="RAVine (arXiv 2507.16725), raw search gain",
    own=_REL_1,
    example=("SearchGain@2", 0.3333333333333333),
    remark="NuggetGain is RAVine's search gain that is capped by nugget",
)
_COUNT = {
    "family": "counts",
    "bounds": ("0", ""),
    "source": "counts of the ledger",
    "own": AT_I,
    "from_labels": "sum",
    "is_of_guideline": True,  # |R|, |UR|, |Dup| and |GR| of no search are 0
}
_declare_count: Callable[..., GoodGainMeasure] = partial(declare, _COUNT)

NumIter = _declare_count(
    "NumIter",
    "Number of Iterations",
    "N",
    lambda upto: upto.i,
    better="down",
    own={},
    needs_labels=False,
    example=("NumIter", 2.0),
)
NumResults = _declare_count(
    "NumResults",
    "Number of Results",
    "sum R_k",
    lambda upto: upto.total(upto.each.R),
    better="down",
    needs_labels=False,
    example=("NumResults@2", 6.0),
)
NumUnique = _declare_count(
    "NumUnique",
    "Number of Unique Results",
    "sum UR_k",
    lambda upto: upto.total(upto.each.UR),
    needs_labels=False,
    example=("NumUnique@2", 5.0),
    by_repeats=True,
)
NumGood = _declare_count(
    "NumGood",
    "Number of Good Results",
    "sum GR_k",
    lambda upto: upto.total(upto.each.GR),
    own=GOOD,
    example=("NumGood@2", 2.0),
    shows="Good documents found",
)
NumDup = _declare_count(
    "NumDup",
    "Number of Duplicate Results",
    "sum Dup_k",
    lambda upto: upto.total(upto.each.Dup),
    better="down",
    needs_labels=False,
    example=("NumDup@2", 1.0),
    by_repeats=True,
    counts_repeats=True,
)
NumUnjudged = _declare_count(
    "NumUnjudged",
    "Number of Unjudged Results",
    "sum Unjudged_k",
    lambda upto: upto.total(upto.each.Unjudged),
    better="down",
    example=("NumUnjudged@2", 1.0),
    by_repeats=True,
    from_labels=None,
)
