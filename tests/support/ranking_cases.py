"""Small random rankings and qrels with all that makes scorers differ, and the measures to hold against each other.

Made on purpose: ties, scores that differ as 64-bit floats only, -0 and 0, infinite scores and ones that are infinite as
32-bit floats, labels below 0, queries without a relevant document, queries that only the run or only the qrels know,
cutoffs beyond the ranking, ids in other scripts.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import ir_measures
import polars as pl

import goodgain

DOCS = "a aa A ab a-b z é e\u0301 日本 日 😀 \uffee B 10 9 d1 d10 d2 _".split()  # noqa: SIM905 - words read better as text
SCORES = (0.0, -0.0, 1.0, 1.0, 1.0 + 1e-9, 2.0, -1.5, 0.1, 0.30000000000000004, math.inf, -math.inf, 1e300)
SCORES += (1e39, 3.4e38, -1e300, 1e-50, 16777216.0, 16777217.0)
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
            labels_of_query = (
                labels if random.random() < 0.8 else random.choice([(0,), tuple(x for x in labels if x <= 0)])
            )
            judged[query] = {
                doc: random.choice(labels_of_query) for doc in random.sample(DOCS, random.randint(1, len(DOCS)))
            }
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


_NAMES = {name: getattr(goodgain, name) for name in goodgain.__all__} | vars(ir_measures) | {"goodgain": goodgain}
_LISTS: dict[str, list[str]] = json.loads(Path(__file__).with_suffix(".json").read_text("utf-8"))


def _read_measures(kind: str) -> list[ir_measures.Measure]:
    """A name is an expression of Python: ir_measures' own parser fails under Python 3.14."""
    return [eval(name, _NAMES.copy()) for name in _LISTS[kind]]


JUDGED_ONLY = _read_measures("judged only")
#: Measures that ir_measures has a provider for, whatever whole labels there are.
WITH_PROVIDER = _read_measures("with provider")
#: gdeval rounds to five decimals, and takes labels up to 4.
BY_GDEVAL = _read_measures("by gdeval")
#: Measures that no provider has, or has for all labels, with these parameters. trec_eval writes outside its memory where
#: the gains of the last two leave a query without any label from 0.
WITHOUT_PROVIDER = _read_measures("without provider")
#: Measures, and forms of measures, that no host has.
HOSTLESS = _read_measures("hostless")
#: Measures that are null where no document of the first k has a label.
GRADED = _read_measures("graded")


def parameters_of(measure: ir_measures.Measure) -> dict[str, Any]:
    """The parameters of a measure with their defaults, as the oracle takes them."""
    from ir_measures.providers.base import NOT_PROVIDED

    values = {name: measure[name] for name in measure.SUPPORTED_PARAMS}
    return {name: value for name, value in values.items() if value is not NOT_PROVIDED}
