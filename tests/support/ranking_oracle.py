"""A brute-force oracle for measures over one ranking: from the definitions, slow, and independent of goodgain.

Counts and labels are `fractions.Fraction`; only logarithms and powers of real numbers are floats. Pure Python: no
goodgain, no polars. A measure is a name and a dict of parameters; every parameter that has a default must be given.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

Scores = Mapping[str, float]
Labels = Mapping[str, float]


def in_trec_evals_order(scores: Scores) -> list[str]:
    """Score as a 32-bit float descending, then the bytes of the id descending."""
    by_id = sorted(scores, key=lambda doc: doc.encode(), reverse=True)
    return sorted(by_id, key=lambda doc: -ctypes.c_float(scores[doc]).value)


def in_msmarcos_order(scores: Scores) -> list[str]:
    """Score descending, then id ascending."""
    return sorted(scores, key=lambda doc: (-scores[doc], doc))


def in_gdevals_order(scores: Scores) -> list[str]:
    """Score descending, then the bytes of the id descending."""
    return sorted(sorted(scores, key=lambda doc: doc.encode(), reverse=True), key=lambda doc: -scores[doc])


def value(name: str, parameters: Mapping[str, Any], scores: Scores, labels: Labels) -> float | None:
    """The measure of one judged query.

    One that the run does not have is 0 to the hosts, and an empty ranking to the measures that no host has. None where a
    graded measure has no value.
    """
    if not scores and name not in HOSTLESS | GRADED:
        return 0.0
    gains = parameters.get("gains")
    if gains is not None:
        labels = {doc: gains.get(label, label) for doc, label in labels.items()}
    ranking = _ranking(name, parameters, scores)
    if parameters.get("judged_only"):
        ranking = [doc for doc in ranking if labels.get(doc, -1) >= 0]
    cut = ranking[: parameters["cutoff"]] if "cutoff" in parameters else ranking
    rel = parameters.get("rel")
    good = [doc for doc, label in labels.items() if rel is not None and label >= rel]
    hits = [k for k, doc in enumerate(cut, 1) if doc in good]
    found = _VALUES[name](parameters, ranking, cut, hits, good, labels)
    return None if found is None else float(found)


def _ranking(name: str, parameters: Mapping[str, Any], scores: Scores) -> list[str]:
    if name == "Judged" or (name == "RR" and "cutoff" in parameters):
        return in_msmarcos_order(scores)
    if parameters.get("dcg") == "exp-log2" or name == "ERR":
        return in_gdevals_order(scores)
    return in_trec_evals_order(scores)


def _share(part: float | Fraction, whole: float | Fraction) -> Fraction | float:
    if not whole:
        return Fraction(0)
    return part / whole if isinstance(part, float) else Fraction(part) / Fraction(whole)


def _dcg(parameters: Mapping[str, Any], gains: list[float]) -> float:
    cut = gains[: parameters["cutoff"]] if "cutoff" in parameters else gains
    if parameters["dcg"] == "exp-log2":
        cut = [2 ** float(gain) - 1 for gain in cut]
    return math.fsum(gain / math.log2(k + 1) for k, gain in enumerate(cut, 1))


def _ndcg(
    parameters: Mapping[str, Any], ranking: list[str], _cut: Any, _hits: Any, _good: Any, labels: Labels
) -> float:
    ideal = _ideal_dcg(parameters, ranking, _cut, _hits, _good, labels)
    return float(_share(_rank_dcg(parameters, ranking, _cut, _hits, _good, labels), ideal))


def _rank_dcg(
    parameters: Mapping[str, Any], ranking: list[str], _cut: Any, _hits: Any, _good: Any, labels: Labels
) -> float:
    return _dcg(parameters, [max(labels.get(doc, 0), 0) for doc in ranking])


def _ideal_dcg(
    parameters: Mapping[str, Any], ranking: list[str], _cut: Any, _hits: Any, _good: Any, labels: Labels
) -> float:
    of_ranking = parameters.get("ideal") == "ranking"
    found = [labels.get(doc, 0) for doc in ranking] if of_ranking else list(labels.values())
    return _dcg(parameters, sorted((max(label, 0) for label in found), reverse=True))


def _err(parameters: Mapping[str, Any], cut: list[str], labels: Labels) -> float:
    total, unsatisfied = 0.0, 1.0
    for k, doc in enumerate(cut, 1):
        stop = (2 ** max(labels.get(doc, 0), 0) - 1) / 2 ** parameters.get("max_rel", 4)
        total += unsatisfied * stop / k
        unsatisfied *= 1 - stop
    return total


def _highest_precision(recall: Fraction, hits: list[int], good: list[str]) -> Fraction:
    """The highest precision at any rank whose recall is at least this."""
    reached = [Fraction(number, k) for number, k in enumerate(hits, 1) if Fraction(number, len(good)) >= recall]
    return max(reached, default=Fraction(0))


def _f(parameters: Mapping[str, Any], hits: list[int], good: list[str]) -> Fraction:
    if not hits:
        return Fraction(0)
    square = Fraction(parameters["beta"]) ** 2
    precision, recall = Fraction(len(hits), parameters["cutoff"]), Fraction(len(hits), len(good))
    return (square + 1) * precision * recall / (square * precision + recall)


def _fallout(parameters: Mapping[str, Any], cut: list[str], labels: Labels) -> float | Fraction:
    wrong = [doc for doc, label in labels.items() if label < parameters["rel"]]
    return _share(sum(doc in wrong for doc in cut), len(wrong))


def _residual(p: float, ranking: list[str], labels: Labels) -> Fraction:
    """What unjudged documents, and all that could follow the ranking, would add."""
    exact = Fraction(p)
    unjudged = sum((exact ** (k - 1) for k, doc in enumerate(ranking, 1) if doc not in labels), Fraction(0))
    return (1 - exact) * unjudged + exact ** len(ranking)


def _precision_at_hits(hits: list[int]) -> list[Fraction]:
    return [Fraction(number, k) for number, k in enumerate(hits, 1)]


def _set_f(parameters: Mapping[str, Any], ranking: list[str], hits: list[int], good: list[str]) -> Fraction:
    if not hits:
        return Fraction(0)
    x, precision, recall = (
        Fraction(parameters["beta"]),
        Fraction(len(hits), len(ranking)),
        Fraction(len(hits), len(good)),
    )
    return (x + 1) * precision * recall / (x * precision + recall)


def _interpolated(recall: float, hits: list[int], good: list[str]) -> Fraction:
    """Python's floats stand in for C's: what is truncated after + 0.9 is a matter of the last bit."""
    needed = int(float(f"{recall:.2f}") * len(good) + 0.9)
    return max(_precision_at_hits(hits)[max(needed, 1) - 1 :], default=Fraction(0))


def _rbp(p: float, hits: list[int]) -> float:
    return math.fsum(p ** (k - 1) for k in hits if k <= 1000) / math.fsum(p**k for k in range(1000))


_VALUES: dict[str, Callable[..., float | Fraction | None]] = {
    "nDCG": _ndcg,
    "ERR": lambda p, _r, cut, _h, _g, labels: _err(p, cut, labels),
    "P": lambda p, _r, _c, hits, _g, _l: Fraction(len(hits), p["cutoff"]),
    "R": lambda _p, _r, _c, hits, good, _l: _share(len(hits), len(good)),
    "RR": lambda _p, _r, _c, hits, _g, _l: Fraction(1, hits[0]) if hits else 0,
    "AP": lambda _p, _r, _c, hits, good, _l: _share(sum(_precision_at_hits(hits), Fraction(0)), len(good)),
    "Success": lambda _p, _r, _c, hits, _g, _l: bool(hits),
    "Rprec": lambda _p, _r, _c, hits, good, _l: _share(sum(k <= len(good) for k in hits), len(good)),
    "SetP": lambda _p, ranking, _c, hits, _g, _l: _share(len(hits), len(ranking)),
    "SetR": lambda _p, _r, _c, hits, good, _l: _share(len(hits), len(good)),
    "SetF": lambda p, ranking, _c, hits, good, _l: _set_f(p, ranking, hits, good),
    "IPrec": lambda p, _r, _c, hits, good, _l: _interpolated(p["recall"], hits, good),
    "Judged": lambda _p, _r, cut, _h, _g, labels: _share(sum(doc in labels for doc in cut), len(cut)),
    "NumRet": lambda p, ranking, _c, hits, _g, _l: len(hits) if "rel" in p else len(ranking),
    "NumRel": lambda _p, _r, _c, _h, good, _l: len(good),
    "RBP": lambda p, _r, _c, hits, _g, _l: _rbp(p["p"], hits),
}

#: The measures that no host has.
HOSTLESS: dict[str, Callable[..., float | Fraction]] = {
    "RankDCG": _rank_dcg,
    "RankIDCG": _ideal_dcg,
    "ElevenPointAP": lambda _p, _r, _c, hits, good, _l: (
        sum((_highest_precision(Fraction(i, 10), hits, good) for i in range(11)), Fraction(0)) / 11
    ),
    "InterpolatedPrecision": lambda p, _r, _c, hits, good, _l: _highest_precision(
        Fraction(str(p["recall"])), hits, good
    ),
    "TruncatedAP": lambda p, _r, _c, hits, good, _l: _share(
        sum(_precision_at_hits(hits), Fraction(0)), min(p["cutoff"], len(good))
    ),
    "F": lambda p, _r, _c, hits, good, _l: _f(p, hits, good),
    "Fallout": lambda p, _r, cut, _h, _g, labels: _fallout(p, cut, labels),
    "RelativeP": lambda p, _r, _c, hits, good, _l: _share(
        Fraction(len(hits), p["cutoff"]), Fraction(min(p["cutoff"], len(good)), p["cutoff"])
    ),
    "Unjudged": lambda p, _r, cut, _h, _g, labels: Fraction(sum(doc not in labels for doc in cut), p["cutoff"]),
    "RBPResidual": lambda p, ranking, _c, _h, _g, labels: _residual(p["p"], ranking, labels),
}


def _graded(value: Callable[..., float | Fraction]) -> Callable[..., float | Fraction | None]:
    """None where there are documents in the first k and none of them has a label."""

    def with_null(
        p: Mapping[str, Any], ranking: list[str], cut: list[str], hits: list[int], good: list[str], labels: Labels
    ) -> float | Fraction | None:
        if cut and not any(doc in labels for doc in cut):
            return None
        return value(p, ranking, cut, hits, good, labels)

    return with_null


def _graded_ndcg(
    p: Mapping[str, Any], ranking: list[str], cut: list[str], _hits: Any, _good: Any, labels: Labels
) -> float:
    """SearchTweak's words: the ideal is the DCG for the same gains sorted descending."""
    ideal = {
        "topk": [labels.get(doc, 0) for doc in cut],
        "ranking": [labels.get(doc, 0) for doc in ranking],
        "judged": list(labels.values()),
    }[p["ideal"]]
    best = _dcg(p, sorted((max(gain, 0) for gain in ideal), reverse=True))
    return float(_share(_dcg(p, [max(labels.get(doc, 0), 0) for doc in cut]), best))


#: The measures that are null where nothing has a grade.
GRADED: dict[str, Callable[..., float | Fraction | None]] = {
    "GradedP": _graded(lambda _p, _r, cut, hits, _g, labels: _share(len(hits), sum(doc in labels for doc in cut))),
    "GradedAP": _graded(lambda _p, _r, _c, hits, _g, _l: _share(sum(_precision_at_hits(hits), Fraction(0)), len(hits))),
    "GradedRR": _graded(lambda _p, _r, _c, hits, _g, _l: Fraction(1, hits[0]) if hits else 0),
    "GradedCG": _graded(
        lambda _p, _r, cut, _h, _g, labels: sum((Fraction(max(labels.get(doc, 0), 0)) for doc in cut), Fraction(0))
    ),
    "GradedDCG": _graded(_rank_dcg),
    "GradednDCG": _graded(_graded_ndcg),
}
_VALUES |= HOSTLESS | GRADED
