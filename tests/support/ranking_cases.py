"""Small random rankings and qrels with all that makes scorers differ, and the measures to hold against each other.

Made on purpose: ties, scores that differ as 64-bit floats only, -0 and 0, infinite scores and ones that are infinite as
32-bit floats, labels below 0, queries without a relevant document, queries that only the run or only the qrels know,
cutoffs beyond the ranking, ids in other scripts.
"""

from __future__ import annotations

import math
from random import Random
from typing import Any, NamedTuple

import ir_measures
import polars as pl
from ir_measures import (
    AP,
    ERR,
    RBP,
    RR,
    IPrec,
    Judged,
    NumRel,
    NumRelRet,
    NumRet,
    P,
    R,
    Rprec,
    SetF,
    SetP,
    SetR,
    Success,
    nDCG,
)

from goodgain import ERR as gg_ERR  # noqa: N811  # a measure
from goodgain import (
    ElevenPointAP,
    F,
    Fallout,
    GradedAP,
    GradedCG,
    GradedDCG,
    GradednDCG,
    GradedP,
    GradedRR,
    InterpolatedPrecision,
    RankDCG,
    RankIDCG,
    RBPResidual,
    RelativeP,
    TruncatedAP,
    Unjudged,
)
from goodgain import nDCG as gg_nDCG

DOCS = (
    "a",
    "aa",
    "A",
    "ab",
    "a-b",
    "z",
    "é",
    "e\u0301",
    "日本",
    "日",
    "😀",
    "\uffee",
    "B",
    "10",
    "9",
    "d1",
    "d10",
    "d2",
    "_",
)
SCORES = (
    0.0,
    -0.0,
    1.0,
    1.0,
    1.0 + 1e-9,
    2.0,
    -1.5,
    0.1,
    0.30000000000000004,
    math.inf,
    -math.inf,
    1e300,
    1e39,
    3.4e38,
)
SCORES += (-1e300, 1e-50, 16777216.0, 16777217.0)
WHOLE = (0, 0, 0, 1, 1, 2, 3, 4)
BELOW_ZERO = (-1, -1, -2, -7)
FRACTIONAL = (0.5, 1.5, 2.2, 2.75, 0.999, 3.3, -0.5)


class RankedCase(NamedTuple):
    scores: dict[str, dict[str, float]]
    labels: dict[str, dict[str, float]]

    @property
    def ranking(self) -> pl.DataFrame:
        """query_id, doc_id, score, in the order of the dicts."""
        rows = [(query, doc, score) for query, docs in self.scores.items() for doc, score in docs.items()]
        schema = {"query_id": pl.String, "doc_id": pl.String, "score": pl.Float64}
        return pl.DataFrame(rows, schema=schema, orient="row")

    @property
    def qrels(self) -> pl.DataFrame:
        """query_id, doc_id, relevance, in the order of the dicts."""
        rows = [(query, doc, float(label)) for query, docs in self.labels.items() for doc, label in docs.items()]
        schema = {"query_id": pl.String, "doc_id": pl.String, "relevance": pl.Float64}
        return pl.DataFrame(rows, schema=schema, orient="row")


def make_case(random: Random, *, queries: int = 6, labels: tuple[float, ...] = (*WHOLE, *BELOW_ZERO)) -> RankedCase:
    """A case with at least one judged query; query ids are numbers, which gdeval needs."""
    judged: dict[str, dict[str, float]] = {}
    scores: dict[str, dict[str, float]] = {}
    for number in random.sample(range(1, 10 * queries), queries):
        query = str(number)
        if judged and random.random() < 0.1:
            pass  # only the run knows it
        else:
            some = labels if random.random() < 0.8 else random.choice([(0,), tuple(x for x in labels if x <= 0)])
            judged[query] = {doc: random.choice(some) for doc in random.sample(DOCS, random.randint(1, len(DOCS)))}
        if random.random() < 0.9:
            scores[query] = _make_ranking(random)
    return RankedCase(scores, judged)


def _make_ranking(random: Random) -> dict[str, float]:
    docs = random.sample(DOCS, random.randint(1, len(DOCS)))
    kind = random.randrange(4)
    if kind == 0:  # as goodgain re-scores
        return {doc: float(len(docs) - place) for place, doc in enumerate(docs)}
    if kind == 1:
        return {doc: random.random() for doc in docs}
    if kind == 2:
        return {doc: float(random.randint(0, 3)) for doc in docs}
    return {doc: random.choice(SCORES) for doc in docs}


JUDGED_ONLY: list[ir_measures.Measure] = [
    nDCG(judged_only=True),
    nDCG(judged_only=True) @ 3,
    nDCG(judged_only=True, gains={1: 5, 3: 8}) @ 5,
    P(judged_only=True, rel=2) @ 4,
    RR(judged_only=True),
    R(judged_only=True) @ 2,
    AP(judged_only=True),
    AP(judged_only=True, rel=2) @ 4,
    Success(judged_only=True) @ 1,
    Rprec(judged_only=True),
    SetP(judged_only=True),
    SetF(judged_only=True, beta=0.5),
    IPrec(judged_only=True) @ 0.0,
    IPrec(judged_only=True) @ 0.4,
]

#: Measures that ir_measures has a provider for, whatever whole labels there are.
WITH_PROVIDER: list[ir_measures.Measure] = [
    nDCG,
    *(nDCG @ k for k in (1, 2, 3, 10, 1000)),
    nDCG(gains={1: 1, 2: 3, 3: 7}),
    nDCG(gains={1: 0, 4: 9}) @ 5,
    *(P @ k for k in (1, 5, 50)),
    P(rel=2) @ 3,
    *(R @ k for k in (1, 4, 50)),
    R(rel=3) @ 10,
    RR,
    RR(rel=2),
    *(RR @ k for k in (1, 3, 50)),
    RR(rel=2) @ 10,
    AP,
    AP(rel=2),
    *(AP @ k for k in (1, 5, 50)),
    AP(rel=3) @ 2,
    Success @ 1,
    Success(rel=2) @ 5,
    Rprec,
    Rprec(rel=2),
    SetP,
    SetP(rel=2),
    SetR,
    SetR(rel=4),
    SetF,
    SetF(beta=2.0),
    SetF(rel=2, beta=0.3),
    *(IPrec @ (tenths / 10) for tenths in range(11)),
    IPrec(rel=2) @ 0.25,
    Judged,
    *(Judged @ k for k in (1, 5, 50)),
    NumRet,
    NumRelRet,
    NumRet(rel=3),
    NumRel,
    RBP(rel=1),
    RBP(rel=2, p=0.95),
    RBP(rel=1, p=0.5),
]

#: gdeval rounds to five decimals, and takes labels up to 4.
BY_GDEVAL: list[ir_measures.Measure] = [one @ k for one in (nDCG(dcg="exp-log2"), ERR) for k in (1, 3, 10, 50)]

#: Measures that no provider has, or has for all labels, with these parameters.
WITHOUT_PROVIDER: list[ir_measures.Measure] = [
    nDCG(dcg="exp-log2"),
    nDCG(dcg="exp-log2", judged_only=True) @ 3,
    ERR,
    gg_ERR(max_rel=8),
    gg_ERR(max_rel=4.5) @ 4,
    NumRel(rel=2),
    NumRel(rel=0.5),
    P(rel=1.5) @ 5,
    RR(rel=2, judged_only=True) @ 3,
    AP(rel=0.75),
    IPrec(rel=2.2) @ 0.5,
    RBP(rel=2.2, p=0.0),
    SetF(rel=1.5, beta=0.0),
    nDCG(gains={0.5: 3, 1: 0.25}) @ 4,
    # trec_eval writes outside its memory where these leave a query without any label from 0
    nDCG(gains={0: 2, 1: 0, 4: 3}) @ 5,
    nDCG(judged_only=True, gains={0: 1, 2: 0, 3: 8, -7: 3}) @ 5,
]


#: Measures, and forms of measures, that no host has.
HOSTLESS: list[ir_measures.Measure] = [
    RankDCG,
    RankDCG @ 3,
    RankDCG(dcg="exp-log2"),
    RankDCG(dcg="exp-log2") @ 50,
    RankIDCG,
    RankIDCG @ 4,
    RankIDCG(dcg="exp-log2") @ 2,
    RankIDCG(ideal="ranking"),
    RankIDCG(ideal="ranking") @ 3,
    RankIDCG(ideal="ranking", dcg="exp-log2") @ 5,
    gg_nDCG(ideal="ranking"),
    gg_nDCG(ideal="ranking") @ 3,
    gg_nDCG(ideal="ranking", dcg="exp-log2") @ 4,
    gg_nDCG(ideal="ranking", judged_only=True) @ 2,
    gg_nDCG(ideal="ranking", gains={1: 5, 2: 0.5, 3: 2}) @ 5,
    gg_nDCG(ideal="ranking", gains={0: 3, 4: 0}),
    ElevenPointAP,
    ElevenPointAP(rel=2),
    ElevenPointAP(rel=0.75),
    *(InterpolatedPrecision @ recall for recall in (0, 0.07, 0.25, 0.3, 0.7, 0.999, 1)),
    InterpolatedPrecision(rel=2.2) @ 0.5,
    *(TruncatedAP @ k for k in (1, 3, 50)),
    TruncatedAP(rel=2) @ 4,
    *(F @ k for k in (1, 4, 50)),
    F(beta=2, rel=1.5) @ 3,
    F(beta=0.5) @ 5,
    F(beta=0) @ 5,
    *(Fallout @ k for k in (1, 4, 50)),
    Fallout(rel=2.2) @ 3,
    *(RelativeP @ k for k in (1, 4, 50)),
    RelativeP(rel=3) @ 2,
    *(Unjudged @ k for k in (1, 4, 50)),
    RBPResidual,
    RBPResidual(p=0.95),
    RBPResidual(p=0),
]


#: Measures that are null where no document of the first k has a label.
GRADED: list[ir_measures.Measure] = [
    *(GradedP @ k for k in (1, 3, 50)),
    GradedP(rel=2.2) @ 4,
    *(GradedAP @ k for k in (1, 4, 50)),
    GradedAP(rel=2) @ 5,
    *(GradedRR @ k for k in (1, 3, 50)),
    GradedRR(rel=3) @ 10,
    *(GradedCG @ k for k in (1, 4, 50)),
    *(GradedDCG @ k for k in (1, 4, 50)),
    GradedDCG(dcg="exp-log2") @ 3,
    *(GradednDCG @ k for k in (1, 2, 5, 50)),
    *(GradednDCG(ideal=ideal) @ k for ideal in ("ranking", "judged") for k in (1, 4)),
    *(GradednDCG(dcg="exp-log2", ideal=ideal) @ 4 for ideal in ("topk", "ranking", "judged")),
]


def parameters_of(measure: ir_measures.Measure) -> dict[str, Any]:
    """The parameters of a measure with their defaults, as the oracle takes them."""
    from ir_measures.providers.base import NOT_PROVIDED

    found = {name: measure[name] for name in measure.SUPPORTED_PARAMS}
    return {name: value for name, value in found.items() if value is not NOT_PROVIDED}
