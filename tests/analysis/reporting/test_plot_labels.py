"""Labels of plots never overlap and are never cut off, with 1 to 12 systems and 1 to 30 iterations."""

from __future__ import annotations

import polars as pl
import pytest
from matplotlib.figure import Figure

import goodgain as gg
from goodgain.analysis.reporting import plots
from goodgain.analysis.reporting.plots.pictures import draw_comparison, draw_curves
from tests.support.counts import EVERYTHING
from tests.support.plot_labels import check_labels, make_curve, make_ledger, make_precision_recall, make_spend_curve
from tests.support.tables import ROOT, no_notices

FOLDER = ROOT / "qrels_examples" / "redundancy"
FEW = [(1, 1), (2, 5), (5, 12), (12, 30)]
#: Each number of iterations once, and each number of systems with few, some and many of them.
SIZES = sorted({*FEW, *(((1, 2, 5, 12)[(i + i // 4) % 4], i) for i in range(1, 31))}) if EVERYTHING else FEW


@pytest.mark.parametrize(("systems", "iterations"), SIZES)
def test_labels_of_curves_do_not_overlap(systems: int, iterations: int) -> None:
    frame = make_curve(systems, iterations)
    check_labels(plots.curve(frame).figure)  # type: ignore[arg-type]
    check_labels(plots.curve(frame.with_columns(least="low", most="high")).figure)  # type: ignore[arg-type]


@pytest.mark.slow
@pytest.mark.parametrize(("systems", "iterations"), FEW if EVERYTHING else FEW[-1:])
def test_labels_of_curves_do_not_overlap_in_a_picture_of_two_or_on_axes_that_were_given(
    systems: int, iterations: int
) -> None:
    frame = make_curve(systems, iterations)
    large = make_curve(systems, iterations, "SRR").with_columns(pl.col("mean", "low", "high") * 1e5)
    check_labels(draw_curves(pl.concat([frame, large])))
    figure = Figure(figsize=(6, 4), layout="constrained")
    plots.curve(frame, ax=figure.add_subplot())
    check_labels(figure)


@pytest.mark.parametrize(("over", "factor"), [("tokens", 1_234.5), ("cost", 0.0123), ("seconds", 9.9), ("tokens", 1e6)])
@pytest.mark.parametrize(("systems", "spends"), FEW if EVERYTHING else FEW[1:2])
def test_labels_over_spends_do_not_overlap(systems: int, spends: int, over: str, factor: float) -> None:
    frame = make_spend_curve(systems, spends, over, factor)
    check_labels(plots.against_spend(frame).figure)  # type: ignore[arg-type]
    check_labels(draw_curves(pl.concat([frame, frame.with_columns(measure=pl.lit("CG"))])))


@pytest.mark.slow
def test_labels_of_long_names_do_not_overlap() -> None:
    frame = make_curve(2, 4, "AvgGain(rel=2.5)").with_columns(queries=12_345_678)
    check_labels(plots.curve(frame.with_columns("0123456789 " * 5 + pl.col("system"))).figure)  # type: ignore[arg-type]
    runs = {
        "/a/path/without/any/blank/in/it/" * 3 + name: path
        for name, path in ((name, FOLDER / f"{name}.run") for name in ("lean", "repeating"))
    }
    with no_notices():
        compared = gg.compare(FOLDER / "qrels.txt", runs, "IterationsForAllGoodResults(pool='retrieved',rel=2.5) SRR@3")
    check_labels(draw_comparison(compared))
    check_labels(plots.per_query(compared, compared.pairs["measure"][0]).figure)  # type: ignore[arg-type]


@pytest.mark.slow
@pytest.mark.parametrize("iterations", [1, 2, 3, 4, 6, 9, 13, 18, 24, 30] if EVERYTHING else [1, 30])
def test_labels_of_bars_do_not_overlap(iterations: int) -> None:
    ledger = make_ledger(iterations)
    totals = pl.concat([make_curve(1, iterations, measure) for measure in ("NumGood", "nCG")])
    name = "a rather long name of a system " * 3
    qrels = {f"q{q}": {"d": 2} for q in range(60)}
    of_ledger = (plots.what_came_back(ledger, system=name), plots.iterations_used(ledger, qrels=qrels, system=name))
    for ax in (*of_ledger, plots.new_good(totals.with_columns(system=pl.lit(name)))):
        check_labels(ax.figure)  # type: ignore[arg-type]


@pytest.mark.parametrize("systems", [1, 2, 5, 12] if EVERYTHING else [12])
def test_labels_of_precision_recall_do_not_overlap(systems: int) -> None:
    check_labels(plots.precision_recall(make_precision_recall(systems)).figure)  # type: ignore[arg-type]


@pytest.mark.slow
@pytest.mark.parametrize("queries", [1, 2, 10, 24, 25, 60, 1_000] if EVERYTHING else [1, 24])
def test_labels_of_queries_do_not_overlap(queries: int) -> None:
    qrels = {f"query-{q:04}": {"a": 3, "b": 2} for q in range(queries)}
    runs = {name: {query: {doc: 1.0} for query in qrels} for name, doc in (("a rather long name", "a"), ("other", "b"))}
    with no_notices():
        compared = gg.compare(qrels, runs, "CG nDCG@10", resamples=20)
    check_labels(plots.per_query(compared, "CG").figure)  # type: ignore[arg-type]
    check_labels(draw_comparison(compared))
