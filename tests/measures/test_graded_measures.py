"""Measures that no host has, against the oracle and their definitions; and those that know documents without a grade."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from random import Random
from typing import Any

import ir_measures
import polars as pl
import pytest
import ranx

import goodgain as gg
from goodgain.hosts.pytrec_eval import RelevanceEvaluator
from goodgain.measures.names import parse_measure
from tests.support import ranking_oracle
from tests.support.command import run_command
from tests.support.counts import how_many
from tests.support.forms import FRAMES, in_blocks
from tests.support.ranking_cases import (
    BELOW_ZERO,
    FRACTIONAL,
    GRADED,
    HOSTLESS,
    WHOLE,
    RankedCase,
    make_case,
    parameters_of,
)
from tests.support.tables import ROOT


def make_finite(case: RankedCase) -> RankedCase:
    """The case with finite scores, as runs have them, and without two of the judged queries in the run."""
    absent = sorted(case.labels)[:2]
    scores = {
        query: {doc: float(len(doc.encode()) % 3) for doc in scores_of_system}
        if any(map(math.isinf, scores_of_system.values()))
        else scores_of_system
        for query, scores_of_system in case.scores.items()
        if query not in absent
    }
    return RankedCase(scores, case.labels)


FINITE = make_finite(make_case(Random(5), queries=30, labels=(*WHOLE, -1, *FRACTIONAL)))
CASE = make_finite(make_case(Random(8), queries=40, labels=(*WHOLE, *BELOW_ZERO, *FRACTIONAL)))
CASE.scores["none_graded"] = {"x": 2.0, "y": 1.0}
CASE.labels["none_graded"] = {"a": 2.0, "b": 0.0}
MEASURES = [*GRADED, *HOSTLESS]


#: Lower is better: a query that was not searched has no value.
LOWER = ("Fallout", "Unjudged", "RBPResidual")


def wanted(case: RankedCase) -> dict[str, list[float | None]]:
    """The values of all judged queries in order, by the oracle."""

    def work_out(measure: Any, query: str) -> float | None:
        if query not in case.scores and measure.__name__ in LOWER:
            return None
        return ranking_oracle.value(
            str(measure.__name__), parameters_of(measure), case.scores.get(query, {}), case.labels[query]
        )

    return {str(measure): [work_out(measure, query) for query in sorted(case.labels)] for measure in MEASURES}


def write_text(case: RankedCase, folder: Path) -> tuple[Path, Path]:
    """The case as TREC text: finite scores alone, which text can hold. Ranks follow scores, then ids, as in trec_eval."""
    qrels, run = folder / "qrels.txt", folder / "agent.run"
    qrels.write_text("".join(f"{q} 0 {d} {label}\n" for q, of in case.labels.items() for d, label in of.items()))
    ranked = {q: sorted(of.items(), key=lambda result: result[::-1], reverse=True) for q, of in case.scores.items()}
    rows = ((q, d, rank, score) for q, of in ranked.items() for rank, (d, score) in enumerate(of, 1))
    run.write_text("".join(f"{q} 1 {d} {rank} {score!r} tag\n" for q, d, rank, score in rows))
    return qrels, run


def check(found: gg.Scores) -> None:
    """Values, means over the queries that have one, and their number are the oracle's."""
    nulls = 0
    for name, expected in wanted(CASE).items():
        values = found.per_query.filter(measure=name).sort("query_id").get_column("value").to_list()
        assert values == [None if value is None else pytest.approx(value, abs=1e-12) for value in expected], name
        some = [value for value in expected if value is not None]
        assert found[name] == pytest.approx(math.fsum(some) / len(some), abs=1e-12)
        assert found.num_queries[name] == len(some)
        nulls += len(expected) - len(some)
    assert nulls > 20


def test_values_nulls_and_means_are_the_oracles_in_memory_and_from_text(tmp_path: Path) -> None:
    check(gg.evaluate(CASE.labels, CASE.scores, MEASURES))
    check(gg.evaluate(*write_text(CASE, tmp_path), list(map(str, MEASURES))))


@pytest.mark.slow
def test_large_files_of_text_are_scored_in_blocks(tmp_path: Path) -> None:
    qrels, run = write_text(CASE, tmp_path)
    check(gg.evaluate(qrels, in_blocks(run, block=300), MEASURES))


@pytest.mark.parametrize("engine", ["lazy", "duckdb"])
def test_values_and_nulls_are_the_oracles_on_engines(engine: str) -> None:
    check(gg.evaluate(CASE.labels, FRAMES[engine](CASE.ranking.with_columns(iteration=1)), MEASURES))


# --- What null means --------------------------------------------------------------------------------------------------

GRADES = {
    "graded": {"a": 1, "b": 0, "c": 3},
    "none_graded": {"z": 1},
    "never_searched": {"a": 2},
    "nothing_good": {"a": 0},
}
RANKINGS = {
    "graded": {"a": 3.0, "b": 2.0, "c": 1.0},
    "none_graded": {"x": 3.0, "y": 2.0, "z": 1.0},
    "nothing_good": {"a": 1.0},
}
ASKED = "GradedP@2 GradedAP@2 GradedRR@2 GradedCG@2 GradedDCG@2 GradednDCG@2"


def test_a_null_label_and_an_absent_one_are_the_same() -> None:
    null = pl.DataFrame({"query_id": "q", "doc_id": ["a", "b"], "relevance": [None, 1.0]})
    run = {"q": {"a": 2.0, "b": 1.0}}
    with pytest.warns(gg.GoodgainNotice, match="1 row with a null relevance"):
        means = gg.evaluate(null, run, ASKED).mean()
    assert means == gg.evaluate({"q": {"b": 1}}, run, ASKED).mean()


def test_where_no_query_has_a_value_the_mean_is_null_and_a_notice_says_why() -> None:
    with pytest.warns(gg.GoodgainNotice, match="GradedP@1: no value for any query. The value is null if a query has"):
        scores = gg.evaluate({"q": {"a": 1}}, {"q": {"x": 1.0}}, "GradedP@1")
    assert scores.means == {"GradedP@1": None}
    assert scores.mean(how="geometric") == {"GradedP@1": None}


def test_a_geometric_mean_is_over_the_queries_with_a_value() -> None:
    scores = gg.evaluate(GRADES, RANKINGS, "GradedP@2")
    assert scores.mean(how="geometric")["GradedP@2"] == pytest.approx((0.5 * 1e-5 * 1e-5) ** (1 / 3))
    assert gg.evaluate(GRADES, [RANKINGS, RANKINGS], "GradedP@2").means == scores.means


# --- Relations --------------------------------------------------------------------------------------------------------


def make_graded(random: Random, *, share: float) -> tuple[dict[str, dict[str, int]], dict[str, dict[str, float]]]:
    """Queries whose rankings have this share of graded documents; no scores tie."""
    run = {f"q{q}": {f"d{d}": random.random() for d in range(random.randint(10, 30))} for q in range(60)}
    qrels = {q: {d: random.choice(WHOLE) for d in docs if random.random() < share} for q, docs in run.items()}
    return {q: {"missing": 1} | docs for q, docs in qrels.items()}, run


@pytest.mark.parametrize("seed", range(how_many(1, full=12)))
def test_gradedrr_is_rr_wherever_it_is_not_null(seed: int) -> None:
    qrels, run = make_graded(Random(seed), share=0.3)
    ours = gg.evaluate(qrels, run, "GradedRR@3 GradedRR(rel=2)@10").per_query
    theirs = {
        (one.query_id, f"Graded{one.measure}"): one.value
        for one in ir_measures.iter_calc([ir_measures.RR @ 3, ir_measures.RR(rel=2) @ 10], qrels, run)
    }
    compared = [abs(value - theirs[q, name]) for q, name, value in ours.iter_rows() if value is not None]
    assert 60 < len(compared) < 120
    assert max(compared) <= 1e-12


@pytest.mark.parametrize("seed", range(how_many(1, full=12)))
def test_p_ap_and_ndcg_are_the_classic_ones_where_all_is_graded_and_found(seed: int) -> None:
    random = Random(seed)
    run, qrels = {}, {}
    for q in range(60):
        docs = [f"d{d}" for d in range(random.randint(10, 30))]
        run[f"q{q}"] = {doc: -float(rank) for rank, doc in enumerate(docs)}
        qrels[f"q{q}"] = {doc: random.choice(WHOLE) if rank < 10 else 0 for rank, doc in enumerate(docs)}
    ours = gg.evaluate(qrels, run, "GradedP@10 GradedAP@10 GradednDCG@10 GradednDCG(ideal='judged')@10").per_query
    classic = [ir_measures.P @ 10, ir_measures.AP @ 10, ir_measures.nDCG @ 10]
    theirs = {(one.query_id, str(one.measure)): one.value for one in ir_measures.iter_calc(classic, qrels, run)}
    for q, name, value in ours.iter_rows():
        assert value == pytest.approx(theirs[q, name.removeprefix("Graded").replace("(ideal='judged')", "")], abs=1e-12)


@pytest.mark.parametrize(
    ("folder", "theirs", "ours"),
    [("linear_gain", "dcg@5", "GradedDCG@5"), ("products", "dcg_burges@3", "GradedDCG(dcg='exp-log2')@3")],
)
def test_dcg_is_what_ranx_gave_for_the_worked_examples(folder: str, theirs: str, ours: str) -> None:
    path = ROOT / "qrels_examples" / folder
    stored = json.loads((path / "expected.json").read_text(encoding="utf-8"))
    for run, of in stored.items():
        assert gg.evaluate(path / "qrels.txt", path / run, ours)[ours] == pytest.approx(of["seen"][theirs], abs=1e-12)


@pytest.mark.slow  # ranx compiles
@pytest.mark.parametrize("seed", range(how_many(1, full=10)))
def test_dcg_is_that_of_ranx_where_all_is_graded(seed: int) -> None:
    qrels, run = make_graded(Random(seed), share=1.0)
    means = gg.evaluate(qrels, run, "GradedDCG@7 GradedDCG(dcg='exp-log2')@7").mean()
    scores = ranx.evaluate(ranx.Qrels(qrels), ranx.Run(run), ["dcg@7", "dcg_burges@7"])
    assert list(means.values()) == pytest.approx(list(scores.values()), abs=1e-12)


# --- Hosts and outputs ------------------------------------------------------------------------------------------------


def test_in_ir_measures_a_null_is_nan_and_the_mean_is_over_the_rest() -> None:
    """Left out, ir_measures would put 0 in its place."""
    measures = [gg.GradedP @ 2, ir_measures.P @ 2, ir_measures.RR]
    found = {(one.query_id, one.measure): one.value for one in ir_measures.iter_calc(measures, GRADES, RANKINGS)}
    assert math.isnan(found["none_graded", measures[0]])
    assert sum(math.isnan(value) for value in found.values()) == 1
    for asked in (measures, measures[:1]):
        means = ir_measures.calc_aggregate(asked, GRADES, RANKINGS)
        assert means[measures[0]] == gg.evaluate(GRADES, RANKINGS, "GradedP@2")["GradedP@2"] == pytest.approx(0.5 / 3)
    with pytest.warns(gg.GoodgainNotice, match="GradedP@2: no value for any query"):
        means = ir_measures.calc_aggregate(measures[:1], {"q": {"a": 1}}, {"q": {"x": 1.0}})
    assert math.isnan(means[measures[0]])


def test_pyterrier_shows_nan_and_never_a_mean_with_0_for_null() -> None:
    """It averages by itself; its values of queries have NaN, which pandas leaves out of a mean."""
    pt = pytest.importorskip("pyterrier")
    frame = pl.DataFrame(
        [(query, doc, score) for query, docs in RANKINGS.items() for doc, score in docs.items()],
        schema=["qid", "docno", "score"],
        orient="row",
    ).to_pandas()
    labels = [(query, doc, label) for query, docs in GRADES.items() for doc, label in docs.items()]
    qrels = pl.DataFrame(labels, schema=["qid", "docno", "label"], orient="row").to_pandas()
    topics = qrels[["qid"]].drop_duplicates().assign(query="any")
    asked = ([pt.Transformer.from_df(frame)], topics, qrels, [gg.GradedP @ 2])
    assert math.isnan(pt.Experiment(*asked)["GradedP@2"].item())

    values = pt.Experiment(*asked, perquery=True).set_index("qid")["value"]
    assert math.isnan(values["none_graded"])
    assert values.mean() == pytest.approx(0.5 / 3)


def test_pytrec_eval_refuses_them() -> None:
    with pytest.raises(ValueError, match=r"(?i)unsupported"):
        RelevanceEvaluator(GRADES, {"graded_p_2"})


@pytest.mark.slow  # ranx compiles
@pytest.mark.parametrize("name", ["graded_p@2", "gradedp@2", "GradedP@2"])
def test_ranx_refuses_them(name: str) -> None:
    with pytest.raises(ValueError, match=r"(?i)not supported"):
        ranx.evaluate(ranx.Qrels(GRADES), ranx.Run(RANKINGS), name, make_comparable=True)


OTHER = RANKINGS | {"none_graded": {"z": 1.0}, "graded": {"b": 2.0, "a": 1.0}}


@pytest.mark.filterwarnings("ignore::goodgain.GoodgainNotice")
def test_compare_leaves_out_and_counts_pairs_with_a_null_on_either_side() -> None:
    with pytest.warns(gg.GoodgainNotice, match=r"GradedP@2 leaves out 1 query"):
        comparison = gg.compare(GRADES, {"one": RANKINGS, "other": OTHER}, "GradedP@2 GradedP@1 P@2")
    rows = {row["measure"]: row for row in comparison.pairs.to_dicts()}
    assert {name: row["queries"] for name, row in rows.items()} == {"GradedP@2": 3, "GradedP@1": 3, "P@2": 4}
    assert rows["GradedP@2"]["mean"] == pytest.approx(0.5 / 3)
    assert rows["GradedP@1"]["difference"] == pytest.approx(-1 / 3)
    assert comparison.means.filter(measure="GradedP@2").get_column("queries").to_list() == [3, 4]

    nulls = comparison.values.filter(pl.col("value").is_null())
    assert nulls.select("query_id", "measure", "system").rows() == [
        ("none_graded", "GradedP@2", "one"),
        ("none_graded", "GradedP@1", "one"),
    ]
    assert "| GradedP@2 ↑ (3 queries) |" in comparison.to_text("markdown")
    assert re.search(
        r"\| GradedP@2 ↑ \| [0-9.]+ \(3 queries\) \| [0-9.]+ \(4 queries\) \|", comparison.to_text("markdown")
    )
    assert "| P@2 ↑ |" in comparison.to_text("markdown")

    with pytest.warns(gg.GoodgainNotice, match=r"GradedP@2 leaves out (4|3) queries"):
        none = gg.compare(GRADES, {"one": RANKINGS, "other": {q: {"u": 1.0} for q in GRADES}}, "GradedP@2")
    assert none.pairs.select("queries", "verdict").row(0) == (0, None)


def test_a_null_stays_null_in_every_output(tmp_path: Path) -> None:
    folder = ROOT / "qrels_examples" / "ungraded"
    arguments = ["evaluate", folder / "qrels.txt", folder / "ranking.run", "GradedP@2 P@2", "-q"]
    done = run_command(*arguments)
    assert "none_graded\tGradedP@2\t\n" in done.stdout
    assert "all\tGradedP@2\t0.3750\n" in done.stdout
    assert "without_value=GradedP@2:1 " in done.stderr

    lines = [json.loads(line) for line in run_command(*arguments, "-o", "jsonl").stdout.splitlines()]
    assert {"query_id": "none_graded", "measure": "GradedP@2", "value": None} in lines
    assert {"query_id": "all", "measure": "GradedP@2", "value": 0.375, "queries": 4} in lines
    assert {"query_id": "all", "measure": "P@2", "value": 0.2} in lines

    table = run_command(*arguments, "-o", "table").stdout
    assert "0.3750 (4)" in table
    assert "(n): the mean is over the n queries that have a value." in table

    scores = gg.evaluate(folder / "qrels.txt", folder / "ranking.run", "GradedP@2 P@2")
    assert (scores.num_queries, scores["GradedP@2"]) == ({"GradedP@2": 4, "P@2": 5}, 0.375)


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
        comparison = gg.compare(qrels, {"busy": busy, "idle": idle}, "RankIDCG(ideal='ranking')@5 Fallout@5 RankDCG@5")

    rows = {row["measure"]: row for row in comparison.pairs.iter_rows(named=True)}
    ideal = rows["RankIDCG(ideal='ranking')@5"]
    assert ideal["difference"] < 0
    assert [ideal[name] for name in ("better", "verdict", "wins", "ties", "losses")] == [None] * 5
    assert (rows["Fallout@5"]["better"], rows["Fallout@5"]["wins"], rows["Fallout@5"]["queries"]) == ("down", 0, 5)
    assert (rows["RankDCG@5"]["better"], rows["RankDCG@5"]["losses"]) == ("up", 1)
    assert "RankIDCG(ideal='ranking')@5 –" in comparison.to_text("markdown")


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
