"""A brute-force oracle for measures over one ranking: from the definitions, slow, and independent of goodgain.

Counts and labels are `fractions.Fraction`; only logarithms and powers of real numbers are floats. Pure Python: no
goodgain, no polars. A measure is a name and a dict of parameters; every parameter that has a default must be given.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any, NamedTuple

Scores = Mapping[str, float]
Labels = Mapping[str, float]
Number = float | Fraction


class Ranked(NamedTuple):
    """One judged query as a measure sees it."""

    p: Mapping[str, Any]
    ranking: list[str]
    cut: list[str]  # the first documents, up to the cutoff
    hits: list[int]  # the ranks of the good ones among these
    good: list[str]  # all good documents, retrieved or not
    labels: Labels

    def gains_of(self, docs: list[str]) -> list[float]:
        return [max(self.labels.get(doc, 0), 0) for doc in docs]

    def dcg(self, gains: list[float]) -> float:
        cut = gains[: self.p["cutoff"]] if "cutoff" in self.p else gains
        if self.p["dcg"] == "exp-log2":
            cut = [2 ** float(gain) - 1 for gain in cut]
        return math.fsum(gain / math.log2(k + 1) for k, gain in enumerate(cut, 1))


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
    if name in GRADED and cut and not any(doc in labels for doc in cut):
        return None
    return float(_VALUES[name](Ranked(parameters, ranking, cut, hits, good, labels)))


def _ranking(name: str, parameters: Mapping[str, Any], scores: Scores) -> list[str]:
    if name == "Judged" or (name == "RR" and "cutoff" in parameters):
        return in_msmarcos_order(scores)
    if parameters.get("dcg") == "exp-log2" or name == "ERR":
        return in_gdevals_order(scores)
    return in_trec_evals_order(scores)


def _share(part: Number, whole: Number) -> Number:
    if not whole:
        return Fraction(0)
    return part / whole if isinstance(part, float) else Fraction(part) / Fraction(whole)


def _rank_dcg(q: Ranked) -> float:
    return q.dcg(q.gains_of(q.ranking))


def _ideal_dcg(q: Ranked) -> float:
    """The ideal of the ranking, of its first k, or of all judged documents."""
    docs = {"ranking": q.ranking, "topk": q.cut}.get(q.p.get("ideal", "judged"), list(q.labels))
    return q.dcg(sorted(q.gains_of(docs), reverse=True))


def _err(q: Ranked) -> float:
    total, unsatisfied = 0.0, 1.0
    for k, gain in enumerate(q.gains_of(q.cut), 1):
        stop = (2**gain - 1) / 2 ** q.p.get("max_rel", 4)
        total += unsatisfied * stop / k
        unsatisfied *= 1 - stop
    return total


def _highest_precision(recall: Fraction, q: Ranked) -> Fraction:
    """The highest precision at any rank whose recall is at least this."""
    reached = [Fraction(number, k) for number, k in enumerate(q.hits, 1) if Fraction(number, len(q.good)) >= recall]
    return max(reached, default=Fraction(0))


def _f(q: Ranked, square: Fraction, results: int) -> Fraction:
    if not q.hits:
        return Fraction(0)
    precision, recall = Fraction(len(q.hits), results), Fraction(len(q.hits), len(q.good))
    return (square + 1) * precision * recall / (square * precision + recall)


def _fallout(q: Ranked) -> Number:
    docs = [doc for doc, label in q.labels.items() if label < q.p["rel"]]
    return _share(sum(doc in docs for doc in q.cut), len(docs))


def _residual(q: Ranked) -> Fraction:
    """What unjudged documents, and all that could follow the ranking, would add."""
    p = Fraction(q.p["p"])
    unjudged = sum((p ** (k - 1) for k, doc in enumerate(q.ranking, 1) if doc not in q.labels), Fraction(0))
    return (1 - p) * unjudged + p ** len(q.ranking)


def _precision_at_hits(q: Ranked) -> list[Fraction]:
    return [Fraction(number, k) for number, k in enumerate(q.hits, 1)]


def _ap(q: Ranked, whole: int) -> Number:
    return _share(sum(_precision_at_hits(q), Fraction(0)), whole)


def _interpolated(q: Ranked) -> Fraction:
    """Python's floats stand in for C's: what is truncated after + 0.9 is a matter of the last bit."""
    hits = int(float(f"{q.p['recall']:.2f}") * len(q.good) + 0.9)
    return max(_precision_at_hits(q)[max(hits, 1) - 1 :], default=Fraction(0))


def _rbp(q: Ranked) -> float:
    p = q.p["p"]
    return math.fsum(p ** (k - 1) for k in q.hits if k <= 1000) / math.fsum(p**k for k in range(1000))


_VALUES: dict[str, Callable[[Ranked], Number]] = {
    "nDCG": lambda q: _share(_rank_dcg(q), _ideal_dcg(q)),
    "ERR": _err,
    "P": lambda q: Fraction(len(q.hits), q.p["cutoff"]),
    "R": lambda q: _share(len(q.hits), len(q.good)),
    "RR": lambda q: Fraction(1, q.hits[0]) if q.hits else 0,
    "AP": lambda q: _ap(q, len(q.good)),
    "Success": lambda q: bool(q.hits),
    "Rprec": lambda q: _share(sum(k <= len(q.good) for k in q.hits), len(q.good)),
    "SetP": lambda q: _share(len(q.hits), len(q.ranking)),
    "SetR": lambda q: _share(len(q.hits), len(q.good)),
    "SetF": lambda q: _f(q, Fraction(q.p["beta"]), len(q.ranking)),
    "IPrec": _interpolated,
    "Judged": lambda q: _share(sum(doc in q.labels for doc in q.cut), len(q.cut)),
    "NumRet": lambda q: len(q.hits) if "rel" in q.p else len(q.ranking),
    "NumRel": lambda q: len(q.good),
    "RBP": _rbp,
}

#: The measures that no host has.
HOSTLESS: dict[str, Callable[[Ranked], Number]] = {
    "RankDCG": _rank_dcg,
    "RankIDCG": _ideal_dcg,
    "ElevenPointAP": lambda q: sum((_highest_precision(Fraction(i, 10), q) for i in range(11)), Fraction(0)) / 11,
    "InterpolatedPrecision": lambda q: _highest_precision(Fraction(str(q.p["recall"])), q),
    "TruncatedAP": lambda q: _ap(q, min(q.p["cutoff"], len(q.good))),
    "F": lambda q: _f(q, Fraction(q.p["beta"]) ** 2, q.p["cutoff"]),
    "Fallout": _fallout,
    "RelativeP": lambda q: _share(Fraction(len(q.hits)), min(q.p["cutoff"], len(q.good))),
    "Unjudged": lambda q: Fraction(sum(doc not in q.labels for doc in q.cut), q.p["cutoff"]),
    "RBPResidual": _residual,
}

#: The measures that are null where nothing among the first k has a grade.
GRADED: dict[str, Callable[[Ranked], Number]] = {
    "GradedP": lambda q: _share(len(q.hits), sum(doc in q.labels for doc in q.cut)),
    "GradedAP": lambda q: _ap(q, len(q.hits)),
    "GradedRR": _VALUES["RR"],
    "GradedCG": lambda q: sum(map(Fraction, q.gains_of(q.cut)), Fraction(0)),
    "GradedDCG": _rank_dcg,
    # SearchTweak's words: the ideal is the DCG for the same gains sorted descending.
    "GradednDCG": _VALUES["nDCG"],
}
_VALUES |= HOSTLESS | GRADED
