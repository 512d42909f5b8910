"""A scorer gives the values of `evaluate`, to the last digit, for the searches of one query."""

from __future__ import annotations

import pickle
import warnings
from concurrent.futures import ThreadPoolExecutor
from random import Random
from typing import Any

import polars as pl
import pytest

import goodgain as gg
from tests.support.counts import how_many

pytestmark = pytest.mark.filterwarnings("ignore::goodgain.GoodgainNotice")

LEDGER = (
    "CG RG@3 DCGG@2 DRG AvgGain@2 RAG DRAG@3 SRE@2 SRR@4 IterationsForAllGoodResults nCG@3 nCG(rel=1)@2 nDCGG AllGood NoProgress "
    "OverSearch EvidenceRecall@2 SearchPrecision SearchGain@3 NumIter NumResults@2 NumUnique NumGood NumDup NumUnjudged "
    "nDCGG(per=20) nDCGG(per=20,rel=1)@2"
)
RANKING = (
    "nDCG@10 nDCG(ideal='ranking')@5 nDCG(gains={1:3,2:7})@5 ERR(max_rel=4)@5 P@5 R@20 RR AP Rprec SetF Judged@5 NumRet "
    "RBP(rel=1) ElevenPointAP F@5 Fallout@5 Unjudged@5 GradedP@3 GradednDCG@3"
)
Searches = list[list[str]]


def _make_qrels(random: Random, documents: list[str], *, fractional: bool) -> pl.DataFrame:
    labels = [0.0, 0.3, 1.1, 2.7, 3.3] if fractional else [-1.0, 0.0, 1.0, 2.0, 3.0, 4.0]
    rows = [
        (f"q{number}", doc_id, random.choice(labels))
        for number in range(3)
        for doc_id in random.sample(documents, max(1, len(documents) // 2))
    ]
    return pl.DataFrame(rows, {"query_id": pl.String, "doc_id": pl.String, "relevance": pl.Float64}, orient="row")


def _make_searches(random: Random, documents: list[str]) -> Searches:
    sizes = [random.choice([0, 1, 5, 20]) for _ in range(random.randint(0, 6))]
    return [[random.choice(documents) for _ in range(size)] for size in sizes]


def _evaluate(qrels: Any, query_id: str, searches: Searches, measures: str, **options: Any) -> dict[str, float | None]:
    rows = [(query_id, number, doc_id) for number, search in enumerate(searches, 1) for doc_id in (search or ["-"])]
    rows = rows or [("another query", 1, "-")]
    run = pl.DataFrame(rows, {"query_id": pl.String, "iteration": pl.Int64, "doc_id": pl.String}, orient="row")
    scores = gg.evaluate(qrels, run, measures, **options)
    return dict(scores.per_query.filter(query_id=query_id).select("measure", "value").iter_rows())


@pytest.mark.parametrize("seed", range(how_many(8, full=60)))
def test_values_are_those_of_evaluate(seed: int) -> None:
    random = Random(seed)
    documents = [f"d{number}" for number in range(random.choice([3, 30, 60]))]
    if seed % 3 == 1:  # pages with two URLs each
        documents = [f"http://a.org/{doc_id}" for doc_id in documents] + [
            f"https://www.a.org/{doc_id}/" for doc_id in documents
        ]
    qrels = _make_qrels(random, documents, fractional=seed % 4 == 3)
    order = ("seen", "interleaved", "last")[seed % 3]
    scorer = gg.Scorer(qrels, f"{LEDGER} {RANKING}", order=order)
    for _ in range(2):
        searches = _make_searches(random, documents)
        assert scorer.score("q1", searches) == _evaluate(qrels, "q1", searches, f"{LEDGER} {RANKING}", order=order)


@pytest.mark.parametrize(
    ("measures", "options"),
    [
        ("nCG@2 SRR", {"documents": r"^(.+)-\d+$"}),
        ("nCG@2 SRR", {"documents": {"a-1": "a", "a-2": "a"}}),
        ("nCG@2 nDCG@5", {"urls": "keep"}),
        ("nCG@2", {"rel": 1}),
        ("PerIteration(measure='P@2') nCG", {}),
        ("ValueAt(measure='nCG',over='results',budget=3) Bpref", {}),
    ],
)
def test_options_and_other_measures_give_the_values_of_evaluate(measures: str, options: dict[str, Any]) -> None:
    qrels = {"q": {"a": 3, "a-1": 2, "b": 1, "https://a.org/x": 2}, "r": {"a": 1}}
    searches = [["a-1", "a-2", "x"], ["b", "a", "http://www.a.org/x/"]]
    values = gg.Scorer(qrels, measures, **options).score("q", searches)
    assert values == _evaluate(qrels, "q", searches, measures, **options)


def test_labels_of_iterations_are_those_of_evaluate() -> None:
    rows = {"query_id": "q", "iteration": ["1", "2", "0"], "doc_id": ["a", "a", "b"], "relevance": [1, 3, 2]}
    qrels, searches = pl.DataFrame(rows), [["b"], ["a"]]
    values = gg.Scorer(qrels, "CG SRR", labels="iteration").score("q", searches)
    assert values == _evaluate(qrels, "q", searches, "CG SRR", labels="iteration") == {"CG": 5.0, "SRR": 0.0}


def test_a_step_is_what_the_last_search_added() -> None:
    scorer = gg.Scorer({"q": {"a": 3, "b": 1}}, "CG(rel=1) SRR NoProgress(rel=1)")
    assert scorer.score("q", [["a"], ["a", "b"]], step=True) == {
        "CG(rel=1)": 1.0,
        "SRR": 1 / 3,
        "NoProgress(rel=1)": 0.0,
    }
    # a query without a search has no NoProgress, so the first search adds none
    assert scorer.score("q", [["a"]], step=True) == {"CG(rel=1)": 3.0, "SRR": 0.0, "NoProgress(rel=1)": None}
    with pytest.raises(gg.InputError, match="at least one search"):
        scorer.score("q", [], step=True)


def test_steps_add_up_to_the_value() -> None:
    random = Random(5)
    documents = [f"d{number}" for number in range(30)]
    scorer = gg.Scorer(_make_qrels(random, documents, fractional=False), "nCG(rel=1)@4 CG")
    searches = [random.sample(documents, 8) for _ in range(6)]
    steps = [scorer.score("q2", searches[:number], step=True) for number in range(1, 7)]
    for name, value in scorer.score("q2", searches).items():
        assert sum(step[name] or 0 for step in steps) == pytest.approx(value, abs=1e-12)


def test_an_unknown_query_is_an_error() -> None:
    scorer = gg.Scorer({"q": {"a": 3}}, "nCG")
    with pytest.raises(gg.InputError, match="'other' has no judgments; the qrels have q"):
        scorer.score("other", [["a"]])


@pytest.mark.parametrize("searches", ["a", ["a"], [[1]], [[None]], [[""]], [[["a"]]], 3, None, [3]])
def test_searches_of_a_wrong_kind_are_one_sentence(searches: Any) -> None:
    with pytest.raises(gg.InputError, match="searches: "):
        gg.Scorer({"q": {"a": 3}}, "nCG").score("q", searches)


def test_a_pickled_scorer_and_threads_give_the_same_values() -> None:
    random = Random(7)
    documents = [f"d{number}" for number in range(40)]
    scorer = gg.Scorer(_make_qrels(random, documents, fractional=True), f"{LEDGER} {RANKING}", rel=1, order="last")
    rollouts = [(f"q{random.randrange(3)}", _make_searches(random, documents)) for _ in range(30)]
    values = scorer.score_many(rollouts)
    assert pickle.loads(pickle.dumps(scorer)).score_many(rollouts) == values
    fresh = pickle.loads(pickle.dumps(scorer))
    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(lambda rollout: fresh.score(*rollout), rollouts)) == values


def test_notices_are_kept_and_calls_give_none() -> None:
    with warnings.catch_warnings(action="error"):
        scorer = gg.Scorer({"q": {"a": 1}}, "nCG ValueAt(measure='nCG',over='results',budget=3)")
        assert scorer.score("q", [["a"]])["nCG"] == 0.0
    assert "no label of the qrels reaches the threshold 2" in scorer.notices[0]


def test_labels_too_large_to_add_up_are_an_error_as_in_evaluate() -> None:
    with pytest.raises(gg.MeasureError, match="too large to add up"):
        gg.Scorer({"q": {"a": 2000, "b": 2000}}, "nDCG(dcg='exp-log2')@10").score("q", [["a", "b"]])
