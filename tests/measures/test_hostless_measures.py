"""The measures that no host has: through evaluate, ir_measures and compare, and equal to what their definitions say."""

from __future__ import annotations

import math
from random import Random

import ir_measures
import pytest

import goodgain as gg
from goodgain.measures.names import parse_measure
from tests.support.ranking_cases import FRACTIONAL, HOSTLESS, WHOLE, RankedCase, make_case


def make_finite(case: RankedCase) -> RankedCase:
    """The case with finite scores, as runs have them, and without two of the judged queries in the run."""
    absent = sorted(case.labels)[:2]
    scores = {
        query: {doc: float(len(doc.encode()) % 3) for doc in of} if any(map(math.isinf, of.values())) else of
        for query, of in case.scores.items()
        if query not in absent
    }
    return RankedCase(scores, case.labels)


FINITE = make_finite(make_case(Random(5), queries=30, labels=(*WHOLE, -1, *FRACTIONAL)))


def test_calc_aggregate_gives_the_same_values_beside_classic_measures() -> None:
    labels = {q: {d: round(label) for d, label in of.items()} for q, of in FINITE.labels.items()}
    measures = [*HOSTLESS, ir_measures.nDCG @ 3]
    found = ir_measures.calc_aggregate(measures, labels, FINITE.scores)
    wanted = gg.evaluate(labels, FINITE.scores, measures).mean()
    assert {str(measure): value for measure, value in found.items()} == pytest.approx(wanted, abs=1e-12)


@pytest.mark.parametrize("measure", HOSTLESS, ids=str)
def test_no_provider_takes_a_measure_that_it_does_not_know_for_another(measure: ir_measures.Measure) -> None:
    for provider in ir_measures.DefaultPipeline.providers:
        assert provider.supports(measure) == (provider.NAME == "goodgain")


def test_a_provider_that_is_named_computes_the_classic_measures_and_not_ours() -> None:
    scores = gg.evaluate(
        {"q": {"a": 1, "b": 0}}, {"q": {"b": 2.0, "a": 1.0}}, "nDCG@5 RankDCG@5", provider="pytrec_eval"
    )
    assert scores.signature["classic"] == ["goodgain", "pytrec_eval:nDCG@5"]
    assert [scores["nDCG@5"], scores["RankDCG@5"]] == pytest.approx([1 / math.log2(3)] * 2)


@pytest.mark.slow
def test_measures_are_what_their_definitions_make_of_each_other() -> None:
    def per_query(name: str) -> list[float]:
        scores = gg.evaluate(FINITE.labels, FINITE.scores, name)
        values: list[float] = scores.per_query["value"].to_list()
        return values

    for parameters in ("", "dcg='exp-log2'", "ideal='ranking'", "dcg='exp-log2',ideal='ranking'"):
        of_dcg = parameters.replace("ideal='ranking'", "").strip(",")
        dcg, ideal = per_query(f"RankDCG({of_dcg})@5"), per_query(f"RankIDCG({parameters})@5")
        assert per_query(f"nDCG({parameters})@5") == pytest.approx(
            [a / b if b else 0 for a, b in zip(dcg, ideal, strict=True)]
        )
    points = [per_query(f"InterpolatedPrecision@{tenths / 10:g}") for tenths in range(11)]
    assert per_query("ElevenPointAP") == pytest.approx([sum(of) / 11 for of in zip(*points, strict=True)])
    assert per_query("RelativeP@1000") == per_query("R@1000")
    assert per_query("TruncatedAP@1000") == pytest.approx(per_query("AP"))
    of_ranking, of_judged = per_query("nDCG(ideal='ranking')@5"), per_query("nDCG@5")
    assert all(a >= b - 1e-12 for a, b in zip(of_ranking, of_judged, strict=True))


def test_recalls_are_compared_as_they_are_written() -> None:
    """0.07 * 100 is 7.000000000000001 in doubles, and 5/6 is above the fraction: neither may ask for one more document."""
    for recall, relevant, needed in ((0.07, 100, 7), (5 / 6, 6, 5), (0.29, 100, 29), (0.7, 3, 3), (1 / 3, 3, 1)):
        docs = [f"d{k:03}" for k in range(relevant)]
        retrieved = {doc: -float(k) for k, doc in enumerate(docs[:needed])}
        labels = {"q": dict.fromkeys(docs, 1)}
        assert gg.evaluate(labels, {"q": retrieved}, [gg.InterpolatedPrecision @ recall]).means.popitem()[1] == 1
        del retrieved[docs[needed - 1]]
        retrieved["x"] = -1e9
        assert gg.evaluate(labels, {"q": retrieved}, [gg.InterpolatedPrecision @ recall]).means.popitem()[1] == 0


@pytest.mark.filterwarnings("ignore:.*absent from idle:goodgain.GoodgainNotice")
@pytest.mark.filterwarnings("ignore:Verdicts that rest on:goodgain.GoodgainNotice")
def test_compare_gives_no_verdict_where_no_direction_is_better_and_leaves_out_an_empty_ranking() -> None:
    qrels = {f"q{k}": {"a": 2, "b": 0, "c": 3} for k in range(6)}
    busy = {query: {"a": 2.0, "b": 1.0} for query in qrels}
    idle = {query: docs for query, docs in busy.items() if query != "q0"}
    with pytest.warns(
        gg.GoodgainNotice, match=r"Fallout@5 leaves out 1 query where a system has no results \(idle 1\)"
    ):
        found = gg.compare(qrels, {"busy": busy, "idle": idle}, "RankIDCG(ideal='ranking')@5 Fallout@5 RankDCG@5")
    rows = {row["measure"]: row for row in found.pairs.iter_rows(named=True)}
    ideal = rows["RankIDCG(ideal='ranking')@5"]
    assert ideal["difference"] < 0
    assert [ideal[name] for name in ("better", "verdict", "wins", "ties", "losses")] == [None] * 5
    assert (rows["Fallout@5"]["better"], rows["Fallout@5"]["wins"], rows["Fallout@5"]["queries"]) == ("down", 0, 5)
    assert (rows["RankDCG@5"]["better"], rows["RankDCG@5"]["losses"]) == ("up", 1)
    assert "RankIDCG(ideal='ranking')@5 –" in found.to_text("markdown")


def test_a_geometric_mean_takes_values_below_a_hundred_thousandth_for_it() -> None:
    scores = gg.evaluate(
        {"q": {"a": 1}, "r": {"a": 1}, "z": {"a": 1}}, {"q": {"a": 1.0}, "r": {"b": 2.0, "a": 1.0}}, "AP"
    )
    assert scores.mean(how="geometric")["AP"] == pytest.approx((1 * 0.5 * 1e-5) ** (1 / 3))
    assert scores.mean(how="arithmetic") == scores.mean() == {"AP": 0.5}
    with pytest.raises(gg.MeasureError, match="give how='arithmetic' or how='geometric'"):
        scores.mean(how="harmonic")


def test_names_are_parsed_to_the_measures_that_print_them() -> None:
    assert [parse_measure(str(measure)) for measure in HOSTLESS] == HOSTLESS
