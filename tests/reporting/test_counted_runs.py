"""Analyses of iterations are functions of counts: runs that were counted once serve all of them."""

from __future__ import annotations

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import goodgain as gg
from goodgain.comparing.statistical_tests import check_settings
from goodgain.counting.run_opening import use_each
from goodgain.formats.query_tables import read_costs
from goodgain.reporting import counted_runs
from goodgain.reporting.counted_runs import count_runs, join_counts
from goodgain.reporting.iteration_curves import parse_curve_measures, tabulate_curve
from goodgain.reporting.ledger_and_coverage import tabulate_ledger
from goodgain.reporting.precision_recall import find_hits, interpolate
from goodgain.reporting.spend_totals import tabulate_spend

FOLDER = "qrels_examples/two_agents/"
QRELS, COSTS = f"{FOLDER}qrels.txt", f"{FOLDER}costs.csv"
RUNS = {"quick": f"{FOLDER}quick.run", "late": f"{FOLDER}late.run"}


def test_curve_spend_and_ledger_need_no_run_after_it_was_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []

    def count_reading(qrels: object, runs: dict[str, str], *args: object, **options: object) -> object:
        read.extend(runs)
        return use_each(qrels, runs, *args, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(counted_runs, "use_each", count_reading)
    measures = parse_curve_measures("CG nCG SRR", None)
    counts = count_runs(QRELS, RUNS, measures)
    systems = join_counts(counts, {name: [name] for name in RUNS})
    settings = check_settings(42, 99, 0.05, least=0)
    found = [
        tabulate_curve(systems, measures, settings),
        tabulate_curve(systems, measures, settings, over="tokens", costs=read_costs(COSTS), at=[1000, 9000]),
        tabulate_spend(systems, 2, settings, costs=read_costs(COSTS), price=0.5),
        *(tabulate_ledger(of, 2, measures) for of in counts.values()),
    ]
    assert read == [*RUNS]
    wanted = [
        gg.curve(QRELS, RUNS, "CG nCG SRR", resamples=99),
        gg.curve(QRELS, RUNS, "CG nCG SRR", over="tokens", costs=COSTS, at=[1000, 9000], resamples=99),
        gg.spend(QRELS, RUNS, COSTS, price_per_search=0.5, resamples=99),
        *(gg.ledger(QRELS, run, measures="CG nCG SRR") for run in RUNS.values()),
    ]
    for one, other in zip(found, wanted, strict=True):
        assert_frame_equal(one, other, check_exact=True)


@pytest.mark.parametrize("per_query", [False, True])
def test_all_curves_of_precision_come_from_the_same_hits(per_query: bool) -> None:
    qrels, run = gg.read_qrels(QRELS), gg.read_run(RUNS["late"])
    hits = find_hits(qrels, run, 1, "seen")
    for points in ("eleven", "all"):
        found = interpolate(hits, qrels.query_ids, points=points, per_query=per_query)  # type: ignore[arg-type]
        wanted = gg.pr_curve(qrels, {"late": run}, points=points, per_query=per_query)  # type: ignore[arg-type]
        assert_frame_equal(found.select(pl.lit("late").alias("system"), pl.all()), wanted, check_exact=True)
