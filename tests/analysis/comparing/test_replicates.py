"""Several runs of one system: at the doors a user touches, beside plain arithmetic over the runs one by one."""

from __future__ import annotations

import math
import random
from pathlib import Path
from statistics import fmean

import ir_measures
import polars as pl
import pytest
from scipy.stats import ttest_rel
from statsmodels.stats.power import TTestPower

import goodgain as gg
from goodgain.analysis.comparing.requirements import check_requirements
from goodgain.cli.named_runs import find_systems
from goodgain.errors import GoodgainNotice, InputError
from tests.support.call_cases import make_run
from tests.support.command import run_command
from tests.support.counts import how_many
from tests.support.tables import no_notices

FOLDER = Path(__file__).parents[3] / "qrels_examples" / "repeated_runs"
QRELS = str(FOLDER / "qrels.txt")
OLD, NEW = ([str(FOLDER / f"{name}.{k}.run") for k in (1, 2, 3)] for name in ("old", "new"))
MEASURES = "nCG@3 SRR@3 nDCG@10"


def make_runs(queries: int, runs: int, seed: int) -> tuple[dict[str, dict[str, int]], list[list[tuple[str, int, str]]]]:
    """Return qrels, and runs that lack some queries."""
    chance = random.Random(seed)
    qrels = {f"q{k}": {f"d{d}": chance.choice([0, 2, 3]) for d in range(6)} for k in range(queries)}
    found = []

    for _ in range(runs):
        rows = [
            (query, iteration, f"d{d}")
            for query in qrels
            if chance.random() < 0.8
            for iteration in (1, 2)
            for d in sorted(chance.sample(range(8), 3))
        ]
        found.append(rows)

    return qrels, found


def as_frame(rows: list[tuple[str, int, str]]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=["query_id", "iteration", "doc_id"], orient="row")


@pytest.mark.filterwarnings("ignore::goodgain.errors.GoodgainNotice")
@pytest.mark.parametrize("missing", ["zero", "absent"])
@pytest.mark.parametrize("seed", range(5))
def test_a_value_is_the_mean_of_the_runs_query_by_query(seed: int, missing: str) -> None:
    qrels, runs = make_runs(9, 3, seed)
    frames = [as_frame(rows) for rows in runs]
    scores = gg.evaluate(qrels, frames, "CG SRE nDCG@10 NumRet", missing=missing)
    single = [
        {
            (query, measure): value
            for query, measure, value in gg.evaluate(qrels, frame, list(scores.means)).per_query.iter_rows()
        }
        for frame in frames
    ]
    has = [{row[0] for row in rows} for rows in runs]

    for query, measure, value in scores.per_query.iter_rows():
        of_runs = [values[query, measure] for values in single]
        if missing == "absent":
            of_runs = [x for x, of in zip(of_runs, has, strict=True) if query in of]
        assert value == pytest.approx(fmean(of_runs))

    for measure, mean in scores.means.items():
        values = scores.per_query.filter(measure=measure)["value"].to_list()
        assert mean == pytest.approx(math.fsum(values) / (1 if measure == "NumRet" else len(values)))
    summed = pl.concat(of.coverage for of in scores.replicates).group_by("iteration").sum().sort("iteration")
    assert scores.coverage.select("iteration", "unique").equals(summed.select("iteration", "unique"))


def test_a_list_of_one_run_is_that_run() -> None:
    assert gg.evaluate(QRELS, [OLD[0]], MEASURES).means == gg.evaluate(QRELS, OLD[0], MEASURES).means


def test_a_list_of_named_tuples_is_one_run() -> None:
    rows = [ir_measures.ScoredDoc("q01", "q01_d01", 1.0), ir_measures.ScoredDoc("q02", "q02_d01", 1.0)]
    scores = gg.evaluate(QRELS, rows, "nDCG@10")
    assert scores.replicates == ()
    assert len(gg.evaluate(QRELS, [rows, rows], "nDCG@10").replicates) == 2


def test_tests_are_those_of_the_means_of_queries() -> None:
    comparison = gg.compare(QRELS, {"old": OLD, "new": NEW}, MEASURES)
    means = {
        name: pl.concat(gg.evaluate(QRELS, run, MEASURES).per_query for run in runs)
        .group_by("query_id", "measure")
        .agg(pl.col("value").mean())
        for name, runs in (("old", OLD), ("new", NEW))
    }
    joined = means["new"].join(means["old"], on=["query_id", "measure"])

    for row in comparison.pairs.iter_rows(named=True):
        rows = joined.filter(measure=row["measure"])
        assert row["queries"] == 30
        assert row["difference"] == pytest.approx((rows["value"] - rows["value_right"]).mean())
        assert row["p_t"] == pytest.approx(ttest_rel(rows["value"], rows["value_right"]).pvalue)


def test_the_table_of_replicates_has_the_means_of_the_runs() -> None:
    comparison = gg.compare(QRELS, {"old": OLD, "new": NEW[0]}, MEASURES)
    assert comparison.replicates["system"].unique().to_list() == ["old"]
    means = [gg.evaluate(QRELS, run, MEASURES).means for run in OLD]
    for row in comparison.replicates.iter_rows(named=True):
        of_runs = [float(mean[row["measure"]] or 0) for mean in means]
        best, worst = (min, max) if row["measure"].startswith("SRR") else (max, min)
        assert row["replicates"] == 3
        assert row["mean"] == pytest.approx(fmean(of_runs))
        assert (row["best"], row["worst"]) == (pytest.approx(best(of_runs)), pytest.approx(worst(of_runs)))
    assert comparison.signature["replicates"] == ["old:3"]


def test_systems_with_different_numbers_of_runs_pass_at_the_same_k() -> None:
    comparison = gg.compare(QRELS, {"old": OLD, "new": NEW[:2]}, MEASURES, require=["nCG@3>=0.5"])
    assert len(OLD) == 3
    assert comparison.flips["k"].to_list() == [2, 2]
    both_at_2 = gg.compare(QRELS, {"old": OLD, "new": NEW[:2]}, MEASURES, require=["nCG@3>=0.5"], pass_k=2)
    assert comparison.flips.equals(both_at_2.flips)


def test_flips_are_counted_for_lines_with_a_number() -> None:
    lines = ["nCG@3>=0.5", "nCG@3>=baseline"]
    comparison = gg.compare(QRELS, {"old": OLD, "new": NEW}, MEASURES, require=lines, baseline="old", pass_k=2)
    assert comparison.flips.select("system", "requirement", "k").rows() == [("old", lines[0], 2), ("new", lines[0], 2)]
    passes = [
        [value >= 0.5 for (value,) in gg.evaluate(QRELS, run, "nCG@3").per_query.select("value").iter_rows()]
        for run in OLD
    ]
    pairs = [(a, b) for a, b in ((0, 1), (0, 2), (1, 2))]
    columns = list(zip(*passes, strict=True))
    assert comparison.flips["pass_at_k"][0] == pytest.approx(
        fmean(fmean(c[a] or c[b] for a, b in pairs) for c in columns)
    )
    assert comparison.flips["pass_all_k"][0] == pytest.approx(
        fmean(fmean(c[a] and c[b] for a, b in pairs) for c in columns)
    )
    assert comparison.flips["flip_rate"][0] == pytest.approx(
        fmean(fmean(c[a] != c[b] for a, b in pairs) for c in columns)
    )


@pytest.mark.parametrize("sign", [">=", "<="])
def test_a_line_with_noise_moves_the_bound_by_the_floor(sign: str) -> None:
    comparison = gg.compare(QRELS, {"old": OLD, "new": NEW}, "nCG@3", baseline="old")
    floor = comparison.noise.row(0, named=True)["floor"]
    text = f"nCG@3{sign}baseline{'-' if sign == '>=' else '+'}noise"
    (outcome,) = check_requirements(comparison, [text])
    baseline = float(outcome.baseline or 0)
    assert outcome.bound == pytest.approx(baseline - floor if sign == ">=" else baseline + floor)
    assert outcome.holds == (outcome.p is not None and outcome.p > 0.05)
    assert "noise of reruns" in str(outcome)


def test_a_significant_line_with_noise_is_tested_against_the_moved_bound() -> None:
    comparison = gg.compare(QRELS, {"old": OLD, "new": NEW}, "nCG@3", baseline="old")
    floor = comparison.noise.row(0, named=True)["floor"]
    by_noise, by_number = check_requirements(
        comparison, ["nCG@3>=baseline-noise significant", f"nCG@3>=baseline-{floor!r} significant"]
    )
    assert (by_noise.p, by_noise.bound) == (by_number.p, pytest.approx(by_number.bound))


def test_a_family_corrects_all_tested_lines_together() -> None:
    comparison = gg.compare(QRELS, {"new": NEW, "old": OLD}, "nCG@3 SRR@3 nDCG@10", baseline="new")
    lines = ["nCG@3>=baseline significant", "nDCG@10>=baseline-noise", "SRR@3<=0.2", "SRR@3<=0.2 significant"]
    alone, together = (check_requirements(comparison, lines, family=family) for family in (None, "holm"))
    tested = [0, 1, 3]
    order = sorted(tested, key=lambda k: float(alone[k].p or 0))
    least = 0.0
    for place, k in enumerate(order):
        least = max(least, min(1.0, float(alone[k].p or 0) * (3 - place)))
        assert together[k].p == pytest.approx(least)
    assert together[2].p == alone[2].p


def test_a_baseline_file_keeps_the_runs(tmp_path: Path) -> None:
    file = tmp_path / "old.jsonl"
    whole = gg.compare(QRELS, {"old": OLD, "new": NEW}, MEASURES, baseline="old")
    whole.write_baseline(file)
    comparison = gg.compare(QRELS, {"new": NEW}, MEASURES, baseline_file=file)
    for name in ("noise", "replicates", "pairs"):
        frames = [
            getattr(one, name).with_columns(pl.col(pl.String).replace("baseline", "old")) for one in (whole, comparison)
        ]
        assert frames[0].equals(frames[1]), name
    (outcome,) = check_requirements(comparison, ["nCG@3>=baseline-noise"])
    assert outcome.holds


def test_detect_names_the_queries_and_runs_it_takes() -> None:
    comparison = gg.compare(QRELS, {"old": OLD, "new": NEW}, "nCG@3", detect=0.05)
    shown, needed = comparison.detectable.iter_rows(named=True)
    assert (shown["queries"], shown["power"]) == (30, 0.8)
    assert needed["difference"] == 0.05 and needed["queries"] > 30 and needed["power"] >= 0.8
    values = comparison.values.pivot("system", index="query_id", values="value")
    spread = float((values["new"] - values["old"]).std())  # type: ignore[arg-type]  # a mean of numbers is a number
    assert shown["difference"] == pytest.approx(TTestPower().solve_power(None, 30, 0.05, 0.8) * spread, rel=1e-6)
    assert needed["queries"] == math.ceil(TTestPower().solve_power(0.05 / spread, None, 0.05, 0.8))
    assert any(f"the 0.0500 of new against old takes {needed['queries']} queries" in note for note in comparison.notes)


def test_explain_takes_each_run_of_base_beside_each_of_new() -> None:
    with pytest.warns(GoodgainNotice, match="each of the 9 pairs"):
        explanation = gg.explain(QRELS, OLD, NEW, "CG@3")
    means = [gg.evaluate(QRELS, runs, "CG@3").means["CG@3"] for runs in (OLD, NEW)]
    assert explanation.queries.height == 9 * 30
    assert explanation.queries["difference"].mean() == pytest.approx(float(means[1] or 0) - float(means[0] or 0))
    of_query = explanation.causes.group_by("query_id").agg(pl.col("amount").sum())
    joined = explanation.queries.join(of_query, on="query_id", how="left")
    assert (joined["difference"] - joined["amount"].fill_null(0)).abs().max() == 0
    single = gg.explain(QRELS, OLD[1], NEW[2], "CG@3")
    pair = explanation.queries.filter(pl.col("query_id") == "q06 (2, 3)")
    assert pair["difference"].item() == single.queries.filter(query_id="q06")["difference"].item()


@pytest.mark.filterwarnings("ignore:Verdicts that rest on:goodgain.GoodgainNotice")
def test_a_query_that_a_run_lacks_is_named_with_its_run() -> None:
    qrels, _ = make_runs(25, 3, 1)
    whole = [(query, 1, "d1") for query in qrels]
    with pytest.warns(GoodgainNotice, match=r"absent from new \(run 2\)"):
        gg.compare(qrels, {"old": as_frame(whole), "new": [as_frame(whole), as_frame(whole[:-2])]}, "CG@1")


def test_a_file_of_the_whole_name_is_one_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = Path(OLD[0]).read_text(encoding="utf-8")
    Path("a,b.run").write_text(text, encoding="utf-8")
    Path("c.*.run").write_text(text, encoding="utf-8")
    assert find_systems(["x=a,b.run", "y=c.*.run"]) == {"x": ["a,b.run"], "y": ["c.*.run"]}


def test_a_pattern_sorts_by_number_and_needs_a_file(tmp_path: Path) -> None:
    for k in (1, 2, 10):
        (tmp_path / f"a.{k}.run").write_text("", encoding="utf-8")
    systems = find_systems([f"a={tmp_path}/a.*.run"])["a"]
    assert [Path(path).name for path in systems] == ["a.1.run", "a.2.run", "a.10.run"]
    with pytest.raises(InputError, match="no file matches this pattern"):
        find_systems([f"a={tmp_path}/b.*.run"])


def test_evaluate_names_the_queries_that_one_run_lacks(tmp_path: Path) -> None:
    lines = Path(OLD[1]).read_text(encoding="utf-8").splitlines(keepends=True)
    short = tmp_path / "short.run"
    short.write_text("".join(line for line in lines if not line.startswith("q07 ")), encoding="utf-8")
    done = run_command("evaluate", QRELS, f"old={OLD[0]},{short}", "-m", "CG@3")
    assert "queries: 30 scored, 0 of them absent from the run" in done.stderr
    assert "queries that only some runs lack: run 2 lacks 1 (q07)" in done.stderr


@pytest.mark.parametrize("seed", range(how_many(5, full=60)))
def test_the_sentence_on_stops_is_that_of_the_single_runs(seed: int) -> None:
    """Before iteration i a system has stopped in a query where none of its runs searches any more, or only some of them."""
    chance = random.Random(seed)
    queries, cutoff = [f"q{k}" for k in range(chance.randint(1, 5))], chance.randint(2, 4)
    qrels = {query_id: {"a": 2} for query_id in queries}
    # the number of searches of each query in each run of a system; 0: never searched
    lengths = {
        system: [{query_id: chance.randint(0, 5) for query_id in queries} for _ in range(chance.randint(1, 3))]
        for system in ("old", "new", "other")
    }
    systems = {
        system: [make_run({q: [["a"]] * n or None for q, n in run.items()}) for run in runs]
        for system, runs in lengths.items()
    }
    with no_notices():
        comparison = gg.compare(qrels, systems, f"CG@{cutoff}", missing="zero")

    parts = []
    for system, runs in lengths.items():
        every = some = 0
        for query_id in queries:
            others = [run[query_id] for name, length in lengths.items() if name != system for run in length]
            searched_on = min(max(others), cutoff)
            ends = [run[query_id] for run in runs if run[query_id] > 0]
            every += bool(ends) and all(end < searched_on for end in ends)
            some += any(end < searched_on for end in ends) and not all(end < searched_on for end in ends)
        numbers = {
            (True, True): f"{every} quer{'y' if every == 1 else 'ies'} in every run and in {some} more in some runs",
            (True, False): f"{every} quer{'y' if every == 1 else 'ies'}" + " in every run" * (len(runs) > 1),
            (False, True): f"{some} quer{'y' if some == 1 else 'ies'} in some runs",
        }
        if every or some:
            parts.append(f"{system} stopped in {numbers[every > 0, some > 0]}")
    told = f"Before iteration {cutoff} {', '.join(parts)}, while another system searched on."
    assert [note for note in comparison.notes if "Before iteration" in note] == ([told] if parts else [])


def test_the_share_of_reruns_is_their_noise_in_the_variance_of_the_difference() -> None:
    comparison = gg.compare(QRELS, {"old": OLD, "new": NEW}, "nCG@3")
    values = comparison.values.pivot("system", index="query_id", values="value")
    variance = float((values["new"] - values["old"]).var())  # type: ignore[arg-type]  # a variance of numbers is a number
    noise = sum(within / runs for within, runs in comparison.replicates.select("within", "replicates").iter_rows())
    (share,) = comparison.noise["share_of_reruns"].to_list()
    assert share == pytest.approx(min(1.0, noise / variance))

    shrunk = 100 * math.sqrt((variance - noise / 2) / variance)
    (said,) = (note for note in comparison.notes if note.startswith("Reruns explain"))
    assert said == (
        f"Reruns explain {100 * share:.0f} % of the variance of the difference in nCG@3, new against old. Twice the runs can show "
        f"differences of {shrunk:.0f} % of the present size, twice the queries of 71 %."
    )
    assert gg.compare(QRELS, {"old": OLD, "new": NEW[0]}, "nCG@3").noise["share_of_reruns"].to_list() == [None]
