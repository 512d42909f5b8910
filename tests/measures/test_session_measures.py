"""PerIteration, SubtopicRecall, NoProgress and OverSearch against their definitions; what null means in every door."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable
from pathlib import Path
from random import Random

import ir_measures
import polars as pl
import pytest

import goodgain as gg
from goodgain.measures.families import HOST_NAMES
from goodgain.measures.names import find_direction, parse_measure
from tests.support.command import run_command
from tests.support.counts import how_many
from tests.support.forms import in_every_form
from tests.support.tables import Searched, frame_of, no_notices

DIVERSITY = "q 1 a 2\nq 1 b 2\nq 2 a 0\nq 2 c 3\nq 3 d 1\nq 4 e 2\n"


def random_searches(random: Random) -> Searched:
    return {
        query: [random.sample("abcdefgh", random.randint(0, 4)) for _ in range(random.randint(1, 4))]
        for query in random.sample("pqrst", 4)
    }


def rules(n: int) -> dict[str, Callable[[list[float]], float]]:
    return {
        "mean": statistics.fmean,
        "max": max,
        "min": min,
        "sum": sum,
        "first": lambda values: values[0],
        "last": lambda values: values[n - 1],
    }


@pytest.mark.slow
@no_notices()
def test_per_iteration_scores_each_search_as_a_ranking_of_its_own() -> None:
    random = Random(3)
    for _ in range(how_many(2, full=4)):
        searched = random_searches(random)
        qrels = {query: {doc: random.randint(0, 3) for doc in "abcde"} | {"z": 1} for query in "pqrstu"}
        apart = {
            f"{query} {i}": {doc: -k for k, doc in enumerate(docs)}
            for query, searches in searched.items()
            for i, docs in enumerate(searches, 1)
            if docs
        }
        qrels_apart = {name: qrels[name[0]] for name in apart}

        for inner in ("nDCG@2", "P(rel=2)@3", "RR", "AP"):
            alone = {name: value for name, _, value in gg.evaluate(qrels_apart, apart, inner).per_query.iter_rows()}
            for rule in rules(1):
                names = [f"PerIteration(measure='{inner}',how='{rule}'){at}" for at in ("", "@2", "@5")]
                found = gg.evaluate(qrels, frame_of(searched), names).per_query
                for query, name, value in found.iter_rows():
                    n = int(name[-1]) if "@" in name[-2:] else len(searched.get(query, []))
                    values = [alone.get(f"{query} {i}", 0.0) for i in range(1, n + 1)]
                    assert value == pytest.approx(rules(n)[rule](values) if query in searched else 0), (query, name)


@no_notices()
def test_the_command_and_the_signature_say_that_labels_are_of_subtopics(tmp_path: Path) -> None:
    (tmp_path / "diversity.qrels").write_text(DIVERSITY)
    qrels = gg.read_qrels(tmp_path / "diversity.qrels", labels="subtopic")
    run = frame_of({"q": [["a", "x"], ["b", "d"], [], ["e"]]})
    assert gg.evaluate(qrels, run, "SubtopicRecall").signature["labels"] == "subtopic"
    gg.write_run(run, tmp_path / "agent.run")
    files = [str(tmp_path / "diversity.qrels"), str(tmp_path / "agent.run")]
    done = run_command("evaluate", *files, "SubtopicRecall", "-o", "tsv", "--labels", "subtopic")
    assert done.stdout.split() == ["SubtopicRecall", "0.6667"]


@no_notices()
def test_with_subtopics_every_other_measure_takes_the_largest_label_of_a_document(tmp_path: Path) -> None:
    (tmp_path / "diversity.qrels").write_text(DIVERSITY)
    qrels = gg.read_qrels(tmp_path / "diversity.qrels", labels="subtopic")
    largest = {"q": {"a": 2, "b": 2, "c": 3, "d": 1, "e": 2}}
    run = frame_of({"q": [["x", "a", "d"], ["c"]]})

    for provider in (None, "pytrec_eval"):
        measures = "CG nCG SRE nDCG@3 P(rel=2)@2 PerIteration"
        assert (
            gg.evaluate(qrels, run, measures, provider=provider).mean()
            == gg.evaluate(largest, run, measures, provider=provider).mean()
        )

    hosts = [
        ir_measures.calc_aggregate([ir_measures.nDCG @ 3], judged, gg.read_run(run))
        for judged in (qrels, gg.read_qrels(largest))
    ]
    assert hosts[0] == hosts[1]
    with pytest.raises(gg.InputError, match="have different labels for one query and document"):
        gg.read_qrels(tmp_path / "diversity.qrels")
    with pytest.raises(gg.InputError, match="read with labels='subtopic'"):
        gg.read_qrels(qrels, labels="iteration")


def test_over_search_after_all_is_0_where_a_good_document_is_missing() -> None:
    random = Random(8)
    names = "OverSearch OverSearch(after='all') AllGood"
    for _ in range(how_many(5, full=50)):
        searched = random_searches(random)
        qrels = {query: {doc: random.randint(0, 3) for doc in random.sample("abcdefgh", 2)} for query in "pqrstu"}
        values: dict[str, dict[str, float | None]] = {}
        for query, measure, value in gg.evaluate(qrels, frame_of(searched), names).per_query.iter_rows():
            values.setdefault(query, {})[measure] = value
        for of in values.values():
            after_last, after_all, has_all = (of[name] for name in names.split())
            assert after_all == (after_last if has_all or after_last is None else 0)


def test_qrels_without_subtopics_have_no_subtopic_recall(tmp_path: Path) -> None:
    """It was 1 for each query with a good document found."""
    (tmp_path / "nuggets.qrels").write_text("q n1 a 2\nq n2 b 2\nq n3 c 2\n")
    run = frame_of({"q": [["a"], ["b"]]})
    gg.write_run(gg.read_run(run), tmp_path / "a.run")
    by_iteration = gg.read_qrels(
        pl.DataFrame({"query_id": "q", "iteration": ["0"], "doc_id": "a", "relevance": 2}), labels="iteration"
    )

    for qrels in (tmp_path / "nuggets.qrels", {"q": {"a": 3}}, by_iteration):
        with pytest.raises(gg.InputError, match=r"SubtopicRecall: these qrels have no subtopics.*labels='subtopic'"):
            gg.evaluate(qrels, run, "CG SubtopicRecall@1")
        with pytest.raises(gg.InputError, match="no subtopics"):
            ir_measures.calc_aggregate([gg.SubtopicRecall @ 1], gg.read_qrels(qrels), gg.read_run(run))

    done = run_command("evaluate", tmp_path / "nuggets.qrels", tmp_path / "a.run", "SubtopicRecall")
    assert done.returncode == 2 and "--labels subtopic" in done.stderr
    assert gg.evaluate(gg.read_qrels(tmp_path / "nuggets.qrels", labels="subtopic"), run, "SubtopicRecall").mean() == {
        "SubtopicRecall": 2 / 3
    }

    (tmp_path / "nuggets.qrels").write_text("q n1 a 2\nq n2 a 3\n")
    with pytest.raises(gg.InputError, match="labels='subtopic' if column 2 is a subtopic"):
        gg.read_qrels(tmp_path / "nuggets.qrels")


@no_notices()
def test_session_measures_have_one_value_on_every_engine_in_blocks_and_in_ir_measures(tmp_path: Path) -> None:
    random = Random(5)
    searched = random_searches(random)
    labels = [(query, str(random.randint(1, 3)), doc, random.randint(0, 3)) for query in searched for doc in "abcde"]
    columns = ["query_id", "iteration", "doc_id", "relevance"]
    qrels = gg.read_qrels(pl.DataFrame(labels, columns, orient="row"), labels="subtopic")
    run = frame_of(searched)
    names = "PerIteration(measure='RR')@2 SubtopicRecall@2 PerIteration nCG"
    expected = gg.evaluate(qrels, run, names).mean()
    for same in in_every_form(run, tmp_path, block=40):
        assert gg.evaluate(qrels, same, names).mean() == pytest.approx(expected)
    asked = [parse_measure(name) for name in expected]
    in_host = ir_measures.calc_aggregate(asked, qrels, gg.read_run(run))

    assert {str(measure): value for measure, value in in_host.items()} == pytest.approx(expected)


def test_the_ledger_says_how_to_get_a_measure_of_all_results_at_iterations() -> None:
    with pytest.raises(gg.MeasureError, match="needs all results, which the ledger lacks"):
        gg.ledger({"q": {"a": 2}}, {"q": {"a": 1.0}}, measures="SubtopicRecall")


@pytest.mark.parametrize(("measure", "needed"), [("EU", "lengths="), ("RepeatedQueries", "results=")])
def test_the_ledger_and_a_curve_name_the_table_that_a_measure_needs(measure: str, needed: str) -> None:
    told = f"has no {measure}, which needs {needed}; evaluate it at iterations: {measure}@1-3"
    qrels, run = {"q": {"a": 2}}, {"q": {"a": 1.0}}
    with pytest.raises(gg.MeasureError, match=f"the ledger {told}"):
        gg.ledger(qrels, run, measures=measure)
    with pytest.raises(gg.MeasureError, match=f"a curve {told}"):
        gg.curve(qrels, {"a": run}, measure)


@pytest.mark.parametrize("measure", ["ValueAt(over='results',budget=20)", "AreaOver(budget=3)"])
def test_the_ledger_does_not_send_to_a_cutoff_that_the_measure_lacks(measure: str) -> None:
    with pytest.raises(gg.MeasureError, match="is of the whole query, and the ledger shows iterations"):
        gg.ledger({"q": {"a": 2}}, {"q": {"a": 1.0}}, measures=measure)


def test_the_better_direction_is_that_of_the_inner_measure() -> None:
    assert find_direction(parse_measure("PerIteration(measure='Fallout@5')@3")) == "down"
    assert find_direction(parse_measure("PerIteration")) == "up"


quiet = pytest.mark.filterwarnings("ignore::goodgain.GoodgainNotice")

QRELS = {
    "loops": {"a": 2, "b": 3, "c": 0},
    "complete": {"a": 2},
    "finds_none": {"z": 2},
    "never_searched": {"a": 2},
    "nothing_good": {"a": 1},
}
RUN = frame_of(
    {
        "loops": [["c"], ["a", "c"], ["a"], [], ["c"]],  # b is never found
        "complete": [["x"], ["a"], ["a"], ["x"]],
        "finds_none": [["x"], ["y"]],
        "nothing_good": [["a"], ["a"]],
    }
)
NULLS = {"never_searched", "nothing_good"}


@quiet
def test_the_mean_is_over_the_queries_with_a_value_and_the_signature_counts_the_others() -> None:
    scores = gg.evaluate(QRELS, RUN, "NoProgress OverSearch CG")
    assert scores["NoProgress"] == pytest.approx((4 / 5 + 1 / 4 + 1) / 3)
    assert scores.num_queries == {"NoProgress": 3, "OverSearch": 3, "CG": 5}
    assert scores.signature["without_value"] == ["NoProgress:2", "OverSearch:2"]
    with pytest.warns(
        gg.GoodgainNotice, match="NoProgress, OverSearch: no value for any query. .* not searched or has no good"
    ):
        assert gg.evaluate({"q": {"a": 1}}, RUN, "NoProgress OverSearch").means == {
            "NoProgress": None,
            "OverSearch": None,
        }


@quiet
def test_ir_measures_gets_the_same_values_and_means() -> None:
    asked = [gg.NoProgress @ 2, gg.OverSearch]
    values = {(one.query_id, one.measure): one.value for one in ir_measures.iter_calc(asked, QRELS, gg.read_run(RUN))}
    assert {query for (query, _), value in values.items() if math.isnan(value)} == NULLS
    means = ir_measures.calc_aggregate(asked, QRELS, gg.read_run(RUN))
    wanted = gg.evaluate(QRELS, RUN, asked).mean()
    assert {str(measure): mean for measure, mean in means.items()} == pytest.approx(wanted)


@quiet
def test_compare_leaves_out_pairs_without_a_value(tmp_path: Path) -> None:
    other = frame_of({"loops": [["a", "b"]], "complete": [["a"]], "never_searched": [["a"]]})
    comparison = gg.compare(QRELS, {"a": RUN, "b": other}, "NoProgress")
    assert comparison.pairs.row(0, named=True)["queries"] == 2
    assert comparison.pairs.row(0, named=True)["difference"] == pytest.approx(-(4 / 5 + 1 / 4) / 2)
    file = tmp_path / "a.jsonl"
    gg.compare(QRELS, {"a": RUN, "b": other}, "NoProgress", baseline="b").write_baseline(file, "a")
    again = gg.compare(QRELS, {"b": other}, "NoProgress", baseline_file=file)
    assert again.pairs.select("queries", "difference").equals(comparison.pairs.select("queries", "difference"))


@quiet
def test_a_curve_is_over_the_queries_with_a_value() -> None:
    curve = gg.curve(QRELS, {"a": RUN}, "NoProgress CG", resamples=99)
    rows = curve.filter(measure="NoProgress").sort("iteration")
    wanted = [gg.evaluate(QRELS, RUN, f"NoProgress@{i}").mean()[f"NoProgress@{i}"] for i in range(1, 6)]
    assert rows.get_column("mean").to_list() == wanted
    assert set(rows.get_column("queries")) == {3} and set(curve.filter(measure="CG").get_column("queries")) == {5}
    assert (rows.get_column("low") <= rows.get_column("mean")).all() and (
        rows.get_column("high") >= rows.get_column("mean")
    ).all()
    spent = gg.curve(QRELS, {"a": RUN}, "NoProgress", over="searches", at=[0, 2], resamples=99).sort("spend")
    assert spent.select("mean", "queries").rows() == [(None, 0), (pytest.approx(wanted[1]), 3)]


@quiet
def test_the_ledger_has_the_value_after_each_iteration() -> None:
    ledger = gg.ledger(QRELS, RUN, measures="NoProgress").filter(pl.col("query_id") == "complete")
    assert ledger.get_column("NoProgress").to_list() == [1, 1 / 2, 1 / 3, 1 / 4]


@quiet
def test_hosts_that_know_no_null_do_not_get_them() -> None:
    assert not [name for name in HOST_NAMES if name.startswith(("no_progress", "over_search"))]
