"""What is taken, what is not, and the worked examples."""

from __future__ import annotations

import itertools
import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import ir_measures
import polars as pl
import pytest
from ir_measures import AP, RBP, Bpref, IPrec, P, R, SetF, SetP, nDCG

import goodgain as gg
from goodgain.errors import MeasureError
from goodgain.measures.families import RANKED_MEASURES
from goodgain.measures.names import is_computed_here, parse_measure
from goodgain.measures.ranking_values import aggregate_values, score_ranking
from tests.support.counts import some_of
from tests.support.ranking_cases import BY_GDEVAL, JUDGED_ONLY, WITH_PROVIDER, WITHOUT_PROVIDER, make_case
from tests.support.tables import ROOT, no_notices

FOLDER = ROOT / "qrels_examples"
#: What rankings are worth in textbooks: measure, labels in order, labels of what was not retrieved, value, digits.
RANKINGS = json.loads(Path(__file__).with_name("rankings.json").read_text())


def score_labels(measure: str, labels: list[float], unretrieved: Sequence[float] = ()) -> float:
    """The value of one ranking whose documents have these labels."""
    docs = [f"d{k}" for k in range(len(labels) + len(unretrieved))]
    qrels = pl.DataFrame({"query_id": "q", "doc_id": docs, "relevance": [float(x) for x in (*labels, *unretrieved)]})
    found = docs[: len(labels)]
    ranking = pl.DataFrame({"query_id": "q", "doc_id": found, "score": [-float(k) for k in range(len(found))]})
    value: float = score_ranking([parse_measure(measure)], ranking, qrels).item(0, 1)
    return value


@pytest.mark.each
@pytest.mark.parametrize("case", RANKINGS, ids=lambda case: f"{case[0]}, {case[1]}")
def test_rankings_have_the_values_of_textbooks(case: tuple[str, list[float], list[float], float, float]) -> None:
    measure, labels, unretrieved, value, tolerance = case
    assert score_labels(measure, labels, unretrieved) == pytest.approx(value, abs=tolerance)


@pytest.mark.parametrize(("of", "value"), [(RANKINGS[0], 0.8212), (RANKINGS[1], 0.60)])
def test_eleven_point_average_precision_from_iprec(of: list[Any], value: float) -> None:
    points = [score_labels(f"IPrec@{tenths / 10}", of[1]) for tenths in range(11)]
    assert sum(points) / 11 == pytest.approx(value, abs=0.005)


def test_gains_may_be_those_of_exponential_gain_and_are_not_rounded() -> None:
    gains: list[float] = [3, 2, 3, 0, 0, 1, 2, 2, 3, 0]
    by_gains = score_labels("nDCG(gains={1:1,2:3,3:7})@10", gains)
    assert score_labels("nDCG(dcg='exp-log2')@10", gains) == pytest.approx(by_gains, abs=1e-14)


def test_an_empty_ranking_has_0_everywhere() -> None:
    measures = [*WITH_PROVIDER, *JUDGED_ONLY, *BY_GDEVAL, *WITHOUT_PROVIDER]
    case = make_case(Random(3))
    values = score_ranking(measures, case.ranking.clear(), case.qrels)
    assert values["query_id"].to_list() == sorted(case.labels)
    assert values.drop("query_id").sum_horizontal().to_list() == [0.0] * len(case.labels)


def test_no_measures_give_no_values() -> None:
    case = make_case(Random(3))
    assert score_ranking([], case.ranking, case.qrels).columns == ["query_id"]


@pytest.mark.slow
def test_every_example_has_the_values_of_the_hosts() -> None:
    measures = [measure for measure in WITH_PROVIDER if measure.NAME != "RBP"]  # ties: the order of the file decides
    runs = [path for path in sorted(FOLDER.glob("*/*.run")) if path.with_name("qrels.txt").exists()]
    for path in some_of(runs, every=4):
        with no_notices():
            qrels, ranking = gg.read_qrels(path.parent / "qrels.txt"), gg.read_run(path).flatten("seen")
        if qrels.fractional is not None:
            continue  # the hosts take whole labels only
        judged = [ir_measures.Qrel(*row) for row in qrels.frame.select("query_id", "doc_id", "relevance").iter_rows()]
        ranked = [ir_measures.ScoredDoc(*row) for row in ranking.select("query_id", "doc_id", "score").iter_rows()]
        found = aggregate_values(measures, score_ranking(measures, ranking, qrels.frame))
        for measure in measures:  # one by one: in one call of hosts some change each other's values
            wanted = ir_measures.calc_aggregate([measure], judged, ranked)[measure]
            assert found[str(measure)] == pytest.approx(wanted, rel=1e-12, abs=1e-12), (path, measure)


@pytest.mark.slow
def test_each_measure_has_its_own_value_in_any_company() -> None:
    measures = [*WITH_PROVIDER, *JUDGED_ONLY, *BY_GDEVAL, *WITHOUT_PROVIDER]
    case = make_case(Random(11))
    alone = {str(m): score_ranking([m], case.ranking, case.qrels)[str(m)].to_list() for m in measures}
    together = score_ranking(measures, case.ranking, case.qrels)
    assert {name: together[name].to_list() for name in alone} == alone
    ms = [m for k, m in enumerate(measures) if k % 6 == 0]
    for pair in itertools.permutations(ms, 2):
        values = score_ranking(pair, case.ranking, case.qrels)
        assert {str(m): values[str(m)].to_list() for m in pair} == {str(m): alone[str(m)] for m in pair}


@pytest.mark.parametrize(
    "measure",
    [
        Bpref,
        RBP,
        RBP(rel=1) @ 10,
        SetP(relative=True),
        nDCG(dcg="exp-log2", gains={1: 2}) @ 3,
        P,
        P @ 0,
        P(rel=0) @ 5,
        P(rel=float("nan")) @ 5,
        P(rel=True) @ 5,
        R @ 2.5,
        R @ True,
        IPrec,
        IPrec @ 1.5,
        SetF(beta=-1.0),
        RBP(rel=1, p=1.5),
        nDCG(gains={"1": 2}),
        AP(unknown=1),
        gg.CG,
        ir_measures.define_byquery(lambda qrels, run: 0.0, name="P"),
    ],
)
def test_what_has_no_definition_here_goes_to_a_host(measure: ir_measures.Measure) -> None:
    assert not is_computed_here(measure)


def test_every_declaration_is_a_measure_of_ir_measures_with_all_that_help_needs() -> None:
    for name, declared in RANKED_MEASURES.items():
        assert name == ir_measures.measures.registry[name].NAME
        assert declared.title and declared.definition and declared.source
        assert declared.better in ("up", "down", None)


def test_labels_too_large_to_be_added_up_are_an_error() -> None:
    for labels, measure in ([1e308, 1e308, 1e308], "nDCG"), ([2000.0, 1.0], "nDCG(dcg='exp-log2')@10"):
        with pytest.raises(MeasureError, match="labels of query 'q' are too large"):
            score_labels(measure, labels)


@pytest.mark.skipif(shutil.which("perl") is None, reason="gdeval needs perl")
def test_err_has_gdevals_value() -> None:
    qrels = {"7": {"a": 3, "b": -1, "c": 4, "d": 1}}
    run = {"7": {"b": 4.0, "a": 2.0, "x": 2.0, "c": 2.0, "d": 1.0}}
    for k in (1, 2, 4, 20):
        scores = gg.evaluate(qrels, run, f"ERR@{k}")[f"ERR@{k}"]
        assert scores == pytest.approx(
            ir_measures.calc_aggregate([ir_measures.ERR @ k], qrels, run)[ir_measures.ERR @ k], abs=5e-6
        )
        assert scores == pytest.approx(gg.evaluate(qrels, run, f"ERR@{k}", provider="gdeval")[f"ERR@{k}"], abs=5e-6)


def test_max_rel_of_err_is_the_largest_label_of_the_scale() -> None:
    assert parse_measure("ERR(max_rel=4)@3") == ir_measures.ERR @ 3
    asked = gg.ERR(max_rel=1) @ 1
    assert ir_measures.calc_aggregate([asked], {"q": {"a": 1}}, {"q": {"a": 1.0}}) == {asked: 0.5}
    scores = gg.evaluate({"a query": {"a": 1}}, {"a query": {"a": 1.0}}, ir_measures.ERR @ 4)
    assert scores.mean() == {"ERR@4": 1 / 16} and scores.signature["classic"] == ["goodgain"]
