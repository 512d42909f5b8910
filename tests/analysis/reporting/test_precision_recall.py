"""`pr_curve`: interpolated precision at levels of recall, against a count in whole numbers and fractions."""

from __future__ import annotations

import sys
from fractions import Fraction
from pathlib import Path
from random import Random

import duckdb
import polars as pl
import pytest
from polars.testing import assert_frame_equal

import goodgain as gg
from goodgain.counting.run_in_blocks import RunFile
from tests.support.command import run_command
from tests.support.counts import how_many
from tests.support.random_runs import Shape
from tests.support.random_runs import make_case as make_agent_case
from tests.support.ranking_cases import RankedCase, make_case
from tests.support.ranking_oracle import in_trec_evals_order
from tests.support.tables import ROOT, no_notices, qrels_frame, run_frame, write_repeating_run

EXAMPLES = ROOT / "qrels_examples"
SEEDS = range(how_many(2, full=40))


def count_points(ranking: list[str], relevant: set[str]) -> list[tuple[int, Fraction]]:
    """(relevant so far, precision) at every rank."""
    found = [sum(doc in relevant for doc in ranking[:k]) for k in range(1, len(ranking) + 1)]
    return [(number, Fraction(number, k)) for k, number in enumerate(found, 1)]


def interpolate(ranking: list[str], relevant: set[str], recall: Fraction) -> Fraction:
    if not relevant:
        return Fraction(0)
    reached = [precision for number, precision in count_points(ranking, relevant) if number >= recall * len(relevant)]
    return max(reached, default=Fraction(0))


def find_relevant(labels: dict[str, float], rel: float) -> set[str]:
    return {doc for doc, label in labels.items() if label >= rel}


def make_finite_case(seed: int) -> RankedCase:
    """A case whose scores a run can have."""
    case = make_case(Random(seed))
    largest = sys.float_info.max
    scores = {
        query: {doc: min(max(score, -largest), largest) for doc, score in docs.items()}
        for query, docs in case.scores.items()
    }
    return case._replace(scores=scores)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("rel", [1, 2])
def test_the_eleven_points_of_random_rankings_are_those_of_the_definition(seed: int, rel: int) -> None:
    case = make_finite_case(seed)
    with no_notices():
        curve = gg.pr_curve(case.labels, {"x": case.scores}, rel=rel, per_query=True)
        means = gg.pr_curve(case.labels, {"x": case.scores}, rel=rel)
    wanted = {
        (query, i): interpolate(
            in_trec_evals_order(case.scores.get(query, {})), find_relevant(labels, rel), Fraction(i, 10)
        )
        for query, labels in case.labels.items()
        for i in range(11)
    }
    got = {(query, round(10 * recall)): value for _, query, recall, value in curve.iter_rows()}
    assert got.keys() == wanted.keys()
    assert got == pytest.approx({key: float(value) for key, value in wanted.items()}, rel=1e-15, abs=0)

    for i, mean in enumerate(means["precision"]):
        exact = sum(value for (_, level), value in wanted.items() if level == i) / len(case.labels)
        assert mean == pytest.approx(float(exact), rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("seed", SEEDS)
def test_all_points_of_random_rankings_are_those_of_the_definition(seed: int) -> None:
    case = make_finite_case(seed)
    with no_notices():
        curve = gg.pr_curve(case.labels, {"x": case.scores}, points="all", per_query=True)
        means = gg.pr_curve(case.labels, {"x": case.scores}, points="all")
    rankings = {query: in_trec_evals_order(case.scores.get(query, {})) for query in case.labels}
    relevant = {query: find_relevant(labels, 1) for query, labels in case.labels.items()}
    reached = {
        (query, Fraction(number, len(relevant[query])))
        for query, ranking in rankings.items()
        for number, _ in count_points(ranking, relevant[query])
        if number
    }
    rows = [(query, recall, value) for _, query, recall, value in curve.iter_rows()]
    assert sorted(row[:2] for row in rows) == sorted((query, float(recall)) for query, recall in reached)

    exact_recall = {float(recall): recall for _, recall in reached}
    for query, recall, value in rows:
        assert value == pytest.approx(float(interpolate(rankings[query], relevant[query], exact_recall[recall])))
    assert means["recall"].to_list() == sorted({float(recall) for _, recall in reached})

    for recall, mean in means.select("recall", "precision").iter_rows():
        values = [interpolate(rankings[query], relevant[query], exact_recall[recall]) for query in case.labels]
        assert mean == pytest.approx(float(sum(values) / len(values)), rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("seed", SEEDS)
def test_raw_points_of_random_rankings_are_the_precision_at_each_relevant_document(seed: int) -> None:
    case = make_finite_case(seed)
    with no_notices():
        curve = gg.pr_curve(case.labels, {"x": case.scores}, points="raw", per_query=True)
    wanted = []
    for query, labels in case.labels.items():
        relevant, number = find_relevant(labels, 1), 0
        for rank, doc in enumerate(in_trec_evals_order(case.scores.get(query, {})), 1):
            if doc in relevant:
                number += 1
                wanted.append((query, number / len(relevant), number / rank))
    assert sorted(curve.drop("system").rows()) == sorted(wanted)


def test_raw_points_have_no_mean() -> None:
    with pytest.raises(gg.InputError, match=r"points='raw': queries reach different recalls.* Give per_query=True"):
        gg.pr_curve({"q": {"a": 1}}, {"x": {"q": {"a": 1.0}}}, points="raw")


def test_the_command_prints_what_the_function_returns_and_draws_it(tmp_path: Path) -> None:
    folder = ROOT / "qrels_examples" / "rankings"
    qrels, run = folder / "qrels.txt", folder / "a_and_c.run"
    for points, more in (("eleven", []), ("all", []), ("raw", ["--by-query"])):
        done = run_command("pr", qrels, f"x={run}", "--points", points, *more, "-o", "csv")
        wanted = gg.pr_curve(qrels, {"x": run}, points=points, per_query=bool(more))  # type: ignore[arg-type]  # a text
        assert pl.read_csv(done.stdout.encode()).equals(wanted.with_columns(system=pl.lit("x"))), done.stderr
    drawn = run_command("pr", qrels, run, "--plot", tmp_path / "a.svg", cwd=tmp_path)
    assert drawn.returncode == 0 and (tmp_path / "a.svg").read_text().startswith("<?xml")
    refused = run_command("pr", qrels, run, "--points", "raw", "-q", "--plot", tmp_path / "b.svg")
    assert refused.returncode == 2 and "--plot draws interpolated precision" in refused.stderr


def test_all_points_have_the_same_digits_in_every_call_and_whatever_the_order_of_queries() -> None:
    random = Random(3)
    labels = {f"q{number}": {f"d{k}": 1 for k in range(random.randint(1, 9))} for number in range(300)}
    scores = {query: {f"d{k}": random.random() for k in range(20)} for query in labels}
    names = dict(zip(labels, random.sample([*labels], len(labels)), strict=True))
    renamed, moved = ({names[query]: of for query, of in queries.items()} for queries in (labels, scores))
    first, *others = (
        gg.pr_curve(qrels, {"x": run}, points="all")["precision"].to_list()
        for qrels, run in [(labels, scores)] * 3 + [(renamed, moved)]
    )
    assert all(other == first for other in others)


def test_the_averaged_curves_of_two_systems_are_those_of_the_lecture() -> None:
    folder = EXAMPLES / "rankings"
    curve = gg.pr_curve(folder / "qrels.txt", {"1": folder / "a_and_c.run", "2": folder / "b_and_d.run"})
    assert curve["recall"].to_list() == [i / 10 for i in range(11)] * 2
    of = {name: curve.filter(pl.col("system") == name)["precision"].to_list() for name in "12"}
    assert [round(value, 3) for value in of["1"]] == [1, 1, 0.917, 0.917, 0.583, 0.583, 0.583, 0.567, 0.567, 0.45, 0.45]
    assert [round(value, 3) for value in of["2"]] == [0.55] * 4 + [0.514] * 7
    assert [a > b for a, b in zip(of["1"], of["2"], strict=True)] == [True] * 9 + [False] * 2


@pytest.mark.parametrize(("ranking", "mean"), [("a", 0.8212), ("b", 0.6), ("c", 0.5636), ("d", 0.4545)])
def test_the_mean_of_the_eleven_points_is_that_of_the_worked_examples(ranking: str, mean: float) -> None:
    folder = EXAMPLES / ("rankings_ab" if ranking in "ab" else "rankings_cd")
    curve = gg.pr_curve(folder / "qrels.txt", {"x": folder / f"{ranking}.run"})
    assert curve["precision"].mean() == pytest.approx(mean, abs=5e-5)


@pytest.mark.parametrize("labels", [None, "iteration"])
@pytest.mark.parametrize("seed", range(how_many(1, full=10)))
def test_iterated_runs_are_flattened_and_labelled_as_evaluate_does(seed: int, labels: str | None) -> None:
    """The highest point of a query's curve, and R-precision's level, are measures that evaluate has."""
    case = make_agent_case(Random(seed), Shape(by_iteration=labels is not None, fractional=False))
    for order in ("seen", "interleaved", "last"):
        with no_notices():
            qrels = gg.read_qrels(qrels_frame(case.qrels), labels=labels)
            run = gg.read_run(run_frame(case.run))
            curve = gg.pr_curve(qrels, {"x": run}, per_query=True, order=order)
            whole = gg.evaluate(qrels, run, "IPrec@0.0 IPrec@1.0", order=order)
        for name, recall in (("IPrec@0.0", 0.0), ("IPrec@1.0", 1.0)):
            wanted = whole.per_query.filter(pl.col("measure") == name).select("query_id", "value").rows()
            assert curve.filter(pl.col("recall") == recall).select("query_id", "precision").rows() == wanted


@pytest.mark.parametrize("points", ["eleven", "all"])
@pytest.mark.parametrize("scattered", [False, True])
def test_a_large_file_in_blocks_gives_the_same_curve(points: str, scattered: bool, tmp_path: Path) -> None:
    path = write_repeating_run(tmp_path / "large.run", queries=100, iterations=4, scattered=scattered)
    qrels = gg.read_qrels({f"q{query}": {f"d{k}": (k + query) % 3 for k in range(30)} for query in range(0, 120, 2)})
    blocks = RunFile(path, "close", 1, is_text=True, block=2_000)
    with no_notices():
        wanted = gg.pr_curve(qrels, {"x": path}, points=points, per_query=True)  # type: ignore[arg-type]  # one of two
        curve = gg.pr_curve(qrels, {"x": blocks}, points=points, per_query=True)  # type: ignore[arg-type]  # one of two
    assert_frame_equal(curve, wanted, check_exact=True)


@pytest.mark.slow
def test_frames_of_an_engine_give_the_same_curves_and_pool() -> None:
    qrels = EXAMPLES / "redundancy" / "qrels.txt"
    run = gg.read_run(EXAMPLES / "redundancy" / "repeating.run")
    here, there = {"x": run}, {"x": duckdb.from_arrow(run.rows.to_arrow())}
    with no_notices():
        assert_frame_equal(gg.pr_curve(qrels, there), gg.pr_curve(qrels, here), check_exact=True)
        assert_frame_equal(gg.curve(qrels, there, "CG SRE"), gg.curve(qrels, here, "CG SRE"), check_exact=True)
        for flattened in (False, True):
            assert_frame_equal(gg.pool(there, k=2, flattened=flattened), gg.pool(here, k=2, flattened=flattened))
