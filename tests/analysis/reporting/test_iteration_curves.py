"""`curve`: at every iteration the mean is the value that `evaluate` gives to the measure at this cutoff."""

from __future__ import annotations

import warnings
from pathlib import Path
from random import Random

import polars as pl
import pytest
from hypothesis import given, settings
from polars.testing import assert_frame_equal

import goodgain as gg
from goodgain.analysis.reporting import curves
from goodgain.counting import run_in_blocks, run_opening
from goodgain.measures import MEASURES
from tests.support import oracle
from tests.support.counts import how_many, some_of
from tests.support.random_runs import Case, cases, run_text, shapes
from tests.support.tables import ROOT, no_notices, qrels_frame, run_frame, write_repeating_run

EXAMPLES = ROOT / "qrels_examples"
#: Those with a value for every query: the mean over runs of their means is the mean over queries of the means over runs.
ALWAYS = [
    name
    for name, measure in MEASURES.items()
    if measure.declaration.cutoff != "none" and not measure.declaration.null_if
]
ALONG = [name for name, measure in MEASURES.items() if measure.declaration.cutoff != "none"]
few = settings(deadline=None, max_examples=how_many(5, full=30))


def list_means(found: pl.DataFrame, system: str) -> dict[str, float]:
    rows = found.filter(pl.col("system") == system).select("measure", "iteration", "mean").iter_rows()
    return {f"{measure}@{i}": mean for measure, i, mean in rows}


@pytest.mark.parametrize("folder", some_of(sorted(path.parent.name for path in EXAMPLES.glob("*/qrels.txt")), every=4))
def test_every_mean_of_every_example_is_the_value_of_evaluate(folder: str) -> None:
    qrels = EXAMPLES / folder / "qrels.txt"
    runs = {path.stem: path for path in sorted((EXAMPLES / folder).glob("*.run"))}
    with no_notices():
        curve = gg.curve(qrels, runs, [*ALONG, "SRE(rel=1)", "CG(rel=3)"], upto=4, resamples=0)
        for name, run in runs.items():
            means = list_means(curve, name)
            assert len(means) == 4 * (len(ALONG) + 2)
            wanted = gg.evaluate(qrels, run, list(means))
            assert {mean: wanted[mean] for mean in means} == means


@pytest.mark.slow
@few
@given(shapes().flatmap(cases))
def test_means_of_random_runs_are_those_of_evaluate_and_of_the_oracle(case: Case) -> None:
    with no_notices():
        qrels = gg.read_qrels(qrels_frame(case.qrels), labels=case.labels)
        curve = gg.curve(qrels, {"agent": run_frame(case.run)}, ALONG, resamples=0)
        means = list_means(curve, "agent")
        wanted = gg.evaluate(qrels, run_frame(case.run), list(means))

    # Fractional labels are added up in an order that Polars chooses: the last digit may differ.
    both = [{name: oracle.to_float(of[name]) for name in means} for of in (wanted, means)]
    assert both[0] == pytest.approx(both[1], rel=1e-12, abs=1e-12, nan_ok=True)
    for name in ("CG@2", "RG@1", "SRE@3", "AvgGain@2"):
        if name in means:
            exact = oracle.mean(oracle.per_query(name, case.run, case.qrels, labels=case.labels))
            assert means[name] == pytest.approx(float(exact), rel=1e-12, abs=1e-12)

    tables = oracle.count(case.run, case.qrels, labels=case.labels)
    lengths = [pool.N for pool in tables.pools.values()]
    assert curve["iteration"].max() == max(1, *lengths)

    for i, searching in curve.select("iteration", "searching").iter_rows():
        assert searching == sum(n >= i for n in lengths)


@pytest.mark.slow
@pytest.mark.parametrize("scattered", [False, True])
def test_a_large_file_in_blocks_gives_the_same_curve(
    scattered: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_repeating_run(tmp_path / "large.run", queries=200, iterations=5, scattered=scattered)
    qrels = gg.read_qrels({f"q{query}": {f"d{k}": (k + query) % 4 for k in range(30)} for query in range(0, 220, 2)})
    with no_notices():
        wanted = gg.curve(qrels, {"agent": path}, ALONG, resamples=50)
        monkeypatch.setattr(run_opening, "LARGE", 1_000)
        opened = run_opening.open_run(path)
        assert isinstance(opened, run_in_blocks.RunFile)
        small_blocks = run_in_blocks.RunFile(path, "close", 1, is_text=True, block=2_000)
        assert_frame_equal(gg.curve(qrels, {"agent": small_blocks}, ALONG, resamples=50), wanted, check_exact=True)


def check_intervals(found: pl.DataFrame, qrels: Path, run: object, measures: str, **options: float) -> None:
    """The interval of a mean is the one that `evaluate` gives for the cutoff."""
    with no_notices():
        stated = gg.evaluate(qrels, run, measures, interval=True, **options).intervals  # type: ignore[arg-type]  # by name
    assert stated is not None
    for measure, i, low, high in found.select("measure", "iteration", "low", "high").iter_rows():
        assert (low, high) == pytest.approx(stated[f"{measure}@{i}"], rel=1e-12, abs=1e-12)


def test_the_interval_of_a_mean_is_the_one_that_evaluate_gives() -> None:
    qrels, run = (EXAMPLES / "two_agents" / name for name in ("qrels.txt", "late.run"))
    curve = gg.curve(qrels, {"late": run}, "CG SRE nCG", seed=7, alpha=0.1)
    assert curve.filter((pl.col("low") > pl.col("mean")) | (pl.col("high") < pl.col("mean"))).is_empty()
    check_intervals(curve, qrels, run, "CG@1-6 SRE@1-6 nCG@1-6", seed=7, alpha=0.1)


def test_intervals_do_not_depend_on_what_is_resampled_together(monkeypatch: pytest.MonkeyPatch) -> None:
    folder = EXAMPLES / "two_agents"
    runs = {name: folder / f"{name}.run" for name in ("quick", "late")}
    wanted = gg.curve(folder / "qrels.txt", runs, "CG SRE", resamples=200)
    monkeypatch.setattr(curves, "_CELLS", 30)
    assert_frame_equal(gg.curve(folder / "qrels.txt", runs, "CG SRE", resamples=200), wanted, rel_tol=1e-12)


def test_a_query_of_very_many_iterations_needs_upto(tmp_path: Path) -> None:
    run = pl.DataFrame({"query_id": "q", "iteration": range(1, 1_102), "doc_id": "a"})
    with pytest.raises(gg.InputError, match="agent: a query has 1,101 iterations; give upto="):
        gg.curve({"q": {"a": 3}}, {"agent": run}, "CG")
    assert gg.curve({"q": {"a": 3}}, {"agent": run}, "CG", upto=2)["mean"].to_list() == [3.0, 3.0]


def test_text_of_trec_is_read_as_evaluate_reads_it(tmp_path: Path) -> None:
    rows = [oracle.RunRow("q", 0, "a", 1, 2.0), oracle.RunRow("q", 4, None, 0), oracle.RunRow("q", 9, "b", 1)]
    path = tmp_path / "agent.run"
    path.write_text(run_text(rows))
    with no_notices():
        curve = gg.curve({"q": {"a": 3, "b": 2}}, {"agent": path}, "CG SRE")
    assert curve.filter(pl.col("measure") == "CG")["mean"].to_list() == [3.0, 3.0, 5.0]


# --- Several runs of one system ---------------------------------------------------------------------------------------

REPEATED = EXAMPLES / "repeated_runs"
RUNS = {name: [REPEATED / f"{name}.{k}.run" for k in (1, 2, 3)] for name in ("old", "new")}


def draw_run(random: Random) -> pl.DataFrame:
    """Some queries, each with its own number of iterations, and results that are good, not good, unjudged or repeated."""
    rows = [
        (query, i, f"d{random.randrange(12)}")
        for query in random.sample(["p", "q", "r", "s", "unjudged"], random.randint(2, 5))
        for i in range(1, random.randint(1, 4) + 1)
        for _ in range(random.randint(1, 3))
    ]
    return pl.DataFrame(rows, schema=["query_id", "iteration", "doc_id"], orient="row").unique(maintain_order=True)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(how_many(3, full=12)))
@pytest.mark.parametrize("over", [None, "searches", "results"])
def test_several_runs_are_averaged_query_by_query(over: str | None, seed: int) -> None:
    random = Random(seed)
    qrels = {query: {f"d{k}": random.randrange(4) for k in range(9)} for query in "pqrs"}
    runs = [draw_run(random) for _ in range(random.randint(2, 4))]
    place, options = ("spend", {"over": over, "at": [1, 2, 3, 5, 8]}) if over else ("iteration", {"upto": 5})
    options |= {"resamples": 20}
    with no_notices():
        found = gg.curve(qrels, {"agent": runs, "other": runs[0]}, ALWAYS, **options)  # type: ignore[arg-type]  # options by name
        curves = [gg.curve(qrels, {f"{k}": run}, ALWAYS, **options) for k, run in enumerate(runs)]  # type: ignore[arg-type]  # by name
        ledgers = pl.concat(gg.ledger(qrels, run).with_columns(run=k) for k, run in enumerate(runs)).filter("judged")

    # The column without_results stands only where a query of the run has none.
    found = found.drop("without_results", strict=False)
    alone = pl.concat(curve.drop("without_results", strict=False) for curve in curves)
    assert found.columns == [*alone.columns, "least", "most"]

    groups = alone.group_by("measure", place, maintain_order=True)
    wanted = groups.agg(pl.col("mean").mean(), least=pl.col("mean").min(), most=pl.col("mean").max())
    agent, other = (found.filter(system=name) for name in ("agent", "other"))
    assert_frame_equal(agent.select(wanted.columns), wanted, rel_tol=1e-12, abs_tol=1e-12)
    assert other.select("least", "most").rows() == [(None, None)] * len(other)

    first = alone.filter(system="0")
    assert_frame_equal(other.select(first.columns).drop("system"), first.drop("system"), check_exact=True)
    spent = {None: pl.col("iteration").max(), "searches": pl.len(), "results": pl.col("R").sum()}[over]
    totals = ledgers.group_by("query_id", "run").agg(spent=spent)
    for x, searching in agent.select(place, "searching").iter_rows():
        assert searching == totals.filter(pl.col("spent") >= x)["query_id"].n_unique()

    if over is None:
        counts = ledgers.group_by("iteration").agg(pl.col("UR", "Unjudged").sum())
        share_of = {i: 1 - unjudged / unique for i, unique, unjudged in counts.iter_rows() if unique}
        for i, share in agent.select("iteration", "coverage").iter_rows():
            assert share == (pytest.approx(share_of[i]) if i in share_of else None)


@pytest.mark.slow
def test_the_means_and_intervals_of_several_runs_are_those_of_evaluate() -> None:
    curve = gg.curve(REPEATED / "qrels.txt", RUNS, "CG SRE nCG", seed=7)
    for name, runs in RUNS.items():
        means = list_means(curve, name)
        assert gg.evaluate(REPEATED / "qrels.txt", runs, list(means)).mean() == pytest.approx(means, rel=1e-12)
    check_intervals(curve.filter(system="new"), REPEATED / "qrels.txt", RUNS["new"], "CG@1-3 SRE@1-3 nCG@1-3", seed=7)


def test_a_list_of_one_run_is_this_run() -> None:
    one, alone = (gg.curve(REPEATED / "qrels.txt", {"new": run}, "CG") for run in (RUNS["new"][:1], RUNS["new"][0]))
    assert_frame_equal(one, alone, check_exact=True)


def test_the_signature_of_a_curve_names_the_method_of_its_intervals() -> None:
    qrels = {f"q{number}": {"a": 2} for number in range(40)}
    rows = [(query, 1, "a" if number % 3 else "b") for number, query in enumerate(qrels)]
    runs = {"old": pl.DataFrame(rows, ["query_id", "iteration", "doc_id"], orient="row")}
    few = dict(list(qrels.items())[:20])
    measures = {"CG": "bootstrap", "AllGood": "exact", "CG AllGood": "bootstrap+exact"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", gg.GoodgainNotice)
        for measure, method in measures.items():
            assert gg.curve(qrels, runs, measure).signature["interval"] == method
        assert gg.curve(few, runs, "CG").signature["interval"] == "t"
        assert "interval" not in gg.curve(few, runs, "CG", resamples=0).signature
