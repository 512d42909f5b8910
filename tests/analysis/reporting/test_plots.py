"""Plots: the data that each draws, that it draws them, and that its labels can be read."""

from __future__ import annotations

import math
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import ir_measures
import polars as pl
import pytest
from matplotlib import style
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from polars.testing import assert_frame_equal

import goodgain as gg
from goodgain.analysis.reporting import plots
from goodgain.analysis.reporting.plots import plot_data
from goodgain.analysis.reporting.plots.canvas import INK, style_of
from tests.support.call_cases import make_run
from tests.support.plot_labels import check_labels, make_curve, make_precision_recall, make_spend_curve
from tests.support.tables import ROOT, in_one_search, no_notices

EXAMPLES = ROOT / "qrels_examples"
REDUNDANCY = {name: EXAMPLES / "redundancy" / f"{name}.run" for name in ("lean", "repeating")}
QRELS = EXAMPLES / "redundancy" / "qrels.txt"


# --- The data: numbers worked by hand in qrels_examples/*/README.md ---------------------------------------------------


def test_a_curve_says_how_many_queries_without_results_count_as_0() -> None:
    qrels = {"q1": {"a": 2}, "q2": {"a": 2}, "q3": {"a": 2}}
    of_old = {query_id: [["a"], ["a", "a", "b"]] for query_id in qrels}
    runs = {"old": make_run(of_old), "new": make_run({**of_old, "q2": [[], ["a"]], "q3": None})}
    curve = gg.curve(qrels, runs, "SRR nCG", resamples=0)
    assert curve.filter(measure="SRR")["without_results"].to_list() == [0, 0, 2, 1]
    assert curve.filter(measure="nCG")["without_results"].to_list() == [None] * 4

    told = "Queries without results count as 0, the best value: up to 2 of new."
    assert told in plots.curve(curve, "SRR").get_title(loc="left").replace("\n", " ")
    assert "without results" not in plots.curve(curve, "nCG").get_title(loc="left")

    by_spend = gg.curve(qrels, runs, "SRR", over="searches", resamples=0)
    assert by_spend.filter(system="new")["without_results"].to_list() == [1, 1]
    assert told.replace("2", "1") in plots.against_spend(by_spend).get_title(loc="left").replace("\n", " ")
    assert "without_results" not in gg.curve(qrels, {"old": runs["old"]}, "SRR", resamples=0).columns


def test_the_data_of_curve_are_one_measure_and_whether_few_queries_still_search() -> None:
    found = plot_data.prepare_curve(gg.curve(QRELS, {"repeating": REDUNDANCY["repeating"]}, "SRE CG", upto=4), "CG")
    assert found.columns == ["system", "iteration", "mean", "low", "high", "few"]
    assert found.drop("low", "high").rows() == [
        ("repeating", 1, 3.5, False),
        ("repeating", 2, 6.5, False),
        ("repeating", 3, 7.5, False),  # one of two queries still searches
        ("repeating", 4, 7.5, True),
    ]
    assert found["low"].to_list() == [0] * 4  # t intervals of two values, cut to the range of CG
    assert found["high"].to_list() == pytest.approx([22.559307, 25.559307, 39.265512, 39.265512])


def test_the_data_of_against_spend_mark_the_smallest_spend_with_95_percent_of_the_last_value() -> None:
    frame = gg.curve(QRELS, REDUNDANCY, "CG SRE SRR", over="results")
    found = plot_data.prepare_against_spend(frame, "CG")
    assert found.columns == ["system", "spend", "mean", "low", "high", "enough"]
    marked = {system: rows.filter("enough")["spend"].to_list() for (system,), rows in found.group_by("system")}
    last = frame.filter(measure="CG").group_by("system").agg(pl.col("mean").last())
    for system, mean in last.iter_rows():
        rows = frame.filter(measure="CG", system=system)
        assert marked[system] == [min(x for x, y in rows.select("spend", "mean").iter_rows() if y >= 0.95 * mean)]
    assert not plot_data.prepare_against_spend(frame, "SRR")["enough"].any(), "down is better"
    assert not plot_data.prepare_against_spend(frame.with_columns(mean=pl.lit(0.0)), "CG")["enough"].any()


def test_against_spend_draws_steps_and_its_mark() -> None:
    frame = gg.curve(QRELS, {"lean": REDUNDANCY["lean"]}, "CG", over="results")
    ax = plots.against_spend(frame)
    (line,) = ax.lines
    assert line.get_xydata().tolist() == [[*row] for row in frame.select("spend", "mean").iter_rows()]
    assert line.get_drawstyle() == "steps-post"
    assert line.get_markevery() == plot_data.prepare_against_spend(frame)["enough"].arg_true().to_list()
    assert (ax.get_xlabel(), ax.get_ylabel()) == (
        "results spent by each query, at most",
        "Cumulative Good Gain (CG ↑), mean\nover 2 queries",
    )
    assert len(plots.against_spend(make_spend_curve(6, 3)).collections) == 0
    assert len(plots.against_spend(make_spend_curve(6, 3), bands=True).collections) == 6


def test_the_data_of_new_good_are_new_documents_and_the_share_of_all_good_gain() -> None:
    found = plot_data.prepare_new_good(gg.curve(QRELS, REDUNDANCY, "nCG NumGood", upto=4), "repeating")
    # q1 finds d1 d2, d4, d6 of gain 10; q2 finds e1, e3 of gain 5
    assert found.columns == ["iteration", "new_good", "share"]
    assert found.rows() == [(1, 1.5, 0.45), (2, 1.0, 0.9), (3, 0.5, 1.0), (4, 0.0, 1.0)]


def test_new_good_counts_a_query_that_the_run_lacks() -> None:
    qrels = {"q": {"a": 2, "b": 2}, "never searched": {"a": 2}}
    found = plot_data.prepare_new_good(gg.curve(qrels, {"agent": in_one_search({"q": {"a": 1.0}})}, "NumGood nCG"))
    assert found.rows() == [(1, 0.5, 0.25)]


def test_the_data_of_what_came_back_are_results_by_kind_and_searches_without_any() -> None:
    folder = EXAMPLES / "empty_iterations"
    ledger = gg.ledger(folder / "qrels.txt", folder / "agent.run")
    found = plot_data.prepare_what_came_back(ledger)
    assert found.columns == ["iteration", "new_good", "new_other", "unjudged", "repeated", "searches", "nothing"]
    # q1: nothing; a (good) and b; nothing. q2: c (good) and x, which nobody judged. q4 has no judgments, and is left out
    assert found.rows() == [(1, 1, 0, 1, 0, 2, 1), (2, 1, 1, 0, 0, 1, 0), (3, 0, 0, 0, 0, 1, 1)]
    assert not ledger["judged"].all()


def test_the_data_of_iterations_used_are_the_last_search_and_the_last_new_good_document() -> None:
    run = pl.DataFrame(
        [("p", 1, "a"), ("p", 2, "x"), ("p", 3, "a"), ("q", 1, "x"), ("r", 1, "x"), ("r", 2, "a"), ("other", 1, "a")],
        schema=["query_id", "iteration", "doc_id"],
        orient="row",
    )
    qrels = {query: {"a": 2, "b": 2} for query in ("p", "q", "r", "never searched")}
    found = plot_data.prepare_iterations_used(gg.ledger(qrels, run))
    assert found.columns == ["iteration", "last", "last_good"]
    assert found.rows() == [(0, 0, 1), (1, 1, 1), (2, 1, 1), (3, 1, 0)]

    every = plot_data.prepare_iterations_used(gg.ledger(qrels, run), qrels)
    assert every.rows() == [(0, 1, 2), (1, 1, 1), (2, 1, 1), (3, 1, 0)]
    ax = plots.iterations_used(gg.ledger(qrels, run), qrels=qrels)
    assert ax.get_xlabel() == "iteration (0: no search, or nothing good was found)"

    steps = [one.get_data() for one in ax.patches]  # type: ignore[attr-defined]  # of the subclass that is drawn
    assert [one.edges.tolist() for one in steps] == [[-0.5, 0.5, 1.5, 2.5, 3.5]] * 2
    assert [one.values.tolist() for one in steps] == [[1, 1, 1, 1], [2, 1, 1, 0]]


def test_the_data_of_per_query_are_the_differences_that_compare_tests() -> None:
    folder = EXAMPLES / "two_agents"
    runs = {name: folder / f"{name}.run" for name in ("quick", "late")}
    with no_notices():
        compared = gg.compare(folder / "qrels.txt", runs, "nCG@6 SRR@6")
        scores = {name: gg.evaluate(folder / "qrels.txt", run, "SRR@6").per_query for name, run in runs.items()}
    found = plot_data.prepare_per_query(compared, "SRR@6")
    values = {
        name: dict(scores_of_system.select("query_id", "value").iter_rows())
        for name, scores_of_system in scores.items()
    }
    assert found.columns == ["query_id", "value", "value_against", "difference", "outcome"]
    assert {row[0]: row[1:3] for row in found.iter_rows()} == {
        query: (value, values["quick"][query]) for query, value in values["late"].items()
    }
    assert found["difference"].to_list() == sorted(found["difference"], reverse=True)

    pair = compared.pairs.row(1, named=True)
    assert found["difference"].mean() == pytest.approx(pair["difference"])
    assert [found["outcome"].to_list().count(name) for name in ("better", "equal", "worse")] == [
        *(pair["wins"], pair["ties"], pair["losses"])
    ]
    assert set(found.filter(pl.col("difference") < 0)["outcome"]) == {"better"}  # SRR is better when lower


def test_queries_are_named_by_their_questions() -> None:
    folder = EXAMPLES / "redundancy"
    compared = gg.compare(
        folder / "qrels.txt", {name: folder / f"{name}.run" for name in ("lean", "repeating")}, "SRR@3"
    )
    ax = plots.per_query(compared, queries={"q1": "when was the dam of the valley built", "q2": "who?"})
    assert sorted(text.get_text() for text in ax.get_yticklabels()) == ["when was the dam of …", "who?"]


def test_the_data_of_per_query_leave_out_a_query_without_a_value_as_compare_does() -> None:
    def count(_qrels: Any, run: Any) -> float:
        return math.nan if run.empty or run["query_id"].iloc[0] == "q" else float(len(run))

    length = ir_measures.define_byquery(count, name="Length")
    qrels = {query: {"a": 2} for query in "pq"}
    runs = {"one": {query: {"a": 1.0} for query in "pq"}, "two": {query: {"a": 2.0, "b": 1.0} for query in "pq"}}
    with no_notices():
        compared = gg.compare(qrels, runs, [length])
    assert compared.pairs["queries"].to_list() == [1]
    assert plot_data.prepare_per_query(compared).rows() == [("p", 2.0, 1.0, 1.0, "better")]


def test_a_measure_without_a_better_direction_has_differences_and_no_outcome() -> None:
    compared = gg.compare(QRELS, REDUNDANCY, "RankIDCG@3")
    assert plot_data.prepare_per_query(compared)["outcome"].to_list() == [None, None]
    assert plots.per_query(compared).get_title(loc="left").splitlines() == [
        "repeating minus lean in each query",
        "queries 2, mean 0.0000",
    ]


def test_the_data_of_precision_recall_are_the_points_in_the_order_of_recall() -> None:
    systems = {"System 1": "a_and_c.run", "System 2": "b_and_d.run"}
    folder = EXAMPLES / "rankings"
    frame = gg.pr_curve(folder / "qrels.txt", {name: folder / file for name, file in systems.items()})
    found = plot_data.prepare_precision_recall(frame.reverse())
    assert found.columns == ["system", "query_id", "recall", "precision"]
    for name in systems:
        assert_frame_equal(found.filter(system=name).drop("query_id"), frame.filter(system=name))


# --- What is drawn ----------------------------------------------------------------------------------------------------


def test_a_curve_draws_its_data_and_is_faint_where_few_queries_search() -> None:
    frame = gg.curve(QRELS, {"repeating": REDUNDANCY["repeating"]}, "CG", upto=4)
    ax = plots.curve(frame)
    clear, faint = ax.lines
    assert clear.get_xydata().tolist() == [[1, 3.5], [2, 6.5], [3, 7.5]]
    assert faint.get_xydata().tolist() == [[3, 7.5], [4, 7.5]]
    assert (clear.get_alpha(), faint.get_alpha()) == (None, 0.35)
    low, high = ({(x, y) for x, y in zip((1, 2, 3, 4), frame[name], strict=True)} for name in ("low", "high"))
    assert low | high <= {tuple(point) for point in ax.collections[0].get_paths()[0].vertices.tolist()}
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("iteration", "Cumulative Good Gain (CG ↑), mean\nover 2 queries")


def test_bands_are_drawn_for_up_to_five_systems_or_when_asked_for() -> None:
    frame = make_curve(6, 3)
    assert len(plots.curve(make_curve(5, 3)).collections) == 5
    assert len(plots.curve(frame).collections) == 0
    assert len(plots.curve(frame, bands=True).collections) == 6
    assert (
        len(
            plots.curve(
                frame.with_columns(low=None, high=None).cast({"low": pl.Float64, "high": pl.Float64})
            ).collections
        )
        == 0
    )


@pytest.mark.slow
def test_a_system_of_several_runs_has_a_faint_band_of_its_runs_behind_the_interval() -> None:
    folder = EXAMPLES / "repeated_runs"
    runs = {"new": [folder / f"new.{k}.run" for k in (1, 2, 3)], "old": folder / "old.1.run"}
    wanted = "lowest to highest mean of a single run"

    for draw, data, options in (
        (plots.curve, plot_data.prepare_curve, {}),
        (plots.against_spend, plot_data.prepare_against_spend, {"over": "results"}),
    ):
        frame = gg.curve(folder / "qrels.txt", runs, "nCG", **options)  # type: ignore[arg-type]
        found = data(frame)
        assert_frame_equal(found.select("least", "most"), frame.select("least", "most"))
        ax = draw(frame)
        faint, interval, other = ax.collections  # type: ignore[misc]  # in the order of drawing
        for band, names in ((faint, ("least", "most")), (interval, ("low", "high"))):
            ends = set(frame.filter(system="new").select(names).to_numpy().ravel().tolist())
            assert ends <= {y for _, y in band.get_paths()[0].vertices.tolist()}
        assert faint.get_facecolor()[0][3] < interval.get_facecolor()[0][3] == other.get_facecolor()[0][3]
        assert (faint.get_facecolor()[0][:3] == interval.get_facecolor()[0][:3]).all()
        assert [text.get_text() for text in ax.figure.legends[0].get_texts()].count(wanted) == 1
        assert len(draw(frame, bands=False).collections) == 0
        alone = draw(gg.curve(folder / "qrels.txt", {"old": runs["old"]}, "nCG", **options))  # type: ignore[arg-type]
        assert wanted not in [text.get_text() for text in alone.figure.legends[0].get_texts()]


def test_the_band_of_runs_needs_no_interval_and_has_a_width_at_one_iteration() -> None:
    frame = make_curve(2, 3).with_columns(least=pl.col("low") - 0.1, most=pl.col("high") + 0.1)
    bare = frame.with_columns(pl.lit(None, pl.Float64).alias(name) for name in ("low", "high"))
    assert len(plots.curve(bare).collections) == 2
    assert len(plots.curve(frame).collections) == 4
    widths = [collection.get_linewidth().tolist() for collection in plots.curve(frame.filter(iteration=1)).collections]  # type: ignore[union-attr]
    assert widths == [[11], [5]] * 2


def test_bars_are_as_high_as_the_data_say() -> None:
    ledger = gg.ledger(QRELS, REDUNDANCY["repeating"])
    ax = plots.what_came_back(ledger)
    kinds = ("new_good", "new_other", "unjudged", "repeated")
    data = plot_data.prepare_what_came_back(ledger)
    assert [[bar.get_height() for bar in bars] for bars in ax.containers] == [data[kind].to_list() for kind in kinds]  # type: ignore[attr-defined]  # of the subclass that is drawn


def test_a_difference_shows_the_mean_and_the_interval_of_the_comparison() -> None:
    two_agents = QRELS.parents[1] / "two_agents"
    agents = [two_agents / f"{name}.run" for name in ("quick", "late")]
    compared = gg.compare(two_agents / "qrels.txt", dict(zip("ab", agents, strict=True)), "SRE@3 SRR@3", alpha=0.1)
    ax = plots.per_query(compared, "SRR@3")
    pair = compared.pairs.row(1, named=True)
    assert ax.lines[1].get_xdata() == [pair["difference"]] * 2
    span = ax.patches[-1].get_bbox()  # type: ignore[attr-defined]  # of the subclass that is drawn
    assert (span.x0, span.x1) == pytest.approx((pair["low"], pair["high"]))
    *bars, band = (patch.get_zorder() for patch in ax.patches)
    assert band < min(bars)
    assert f"mean {pair['difference']:+.4f}" in ax.get_title(loc="left")
    assert ax.figure.legends[0].get_texts()[-1].get_text() == "90 % interval of the mean"


def test_a_difference_of_too_few_queries_has_no_band() -> None:
    ax = plots.per_query(gg.compare(QRELS, REDUNDANCY, "SRR@3"))
    assert ax.figure.legends[0].get_texts()[-1].get_text() == "mean"
    assert len(ax.patches) == 2  # a bar per query


def test_the_legend_says_the_level_of_an_interval() -> None:
    for ax, wanted in (
        (plots.curve(gg.curve(QRELS, REDUNDANCY, "CG")), "95 % interval of the mean"),
        (plots.curve(gg.curve(QRELS, REDUNDANCY, "CG", alpha=0.2), alpha=0.2), "80 % interval of the mean"),
    ):
        assert ax.figure.legends[0].get_texts()[-1].get_text() == wanted


def test_a_plot_of_one_system_names_it() -> None:
    ledger, totals = gg.ledger(QRELS, REDUNDANCY["lean"]), gg.curve(QRELS, {"lean": REDUNDANCY["lean"]}, "NumGood nCG")
    drawn = [draw(ledger, system="lean") for draw in (plots.what_came_back, plots.iterations_used)]
    for ax in (*drawn, plots.new_good(totals), plots.new_good(totals.to_pandas())):
        assert " of lean " in ax.get_title(loc="left")


def test_precision_recall_draws_queries_and_their_mean_on_the_same_axes() -> None:
    qrels, runs = {"p": {"a": 1}, "q": {"b": 1}}, {"agent": {"p": {"a": 1.0}}}
    ax = plots.precision_recall(gg.pr_curve(qrels, runs, per_query=True))
    assert plots.precision_recall(gg.pr_curve(qrels, runs), ax=ax) is ax
    assert [line.get_ydata().tolist() for line in ax.lines] == [[1.0] * 11, [0.0] * 11, [0.5] * 11]  # type: ignore[union-attr]
    assert [line.get_linewidth() for line in ax.lines] == [0.7, 0.7, 1.8], "the mean stands out"
    assert ax.get_ylim() == (0, 1.05)


def test_each_of_twelve_systems_looks_different_in_grey_too() -> None:
    styles = [style_of(number) for number in range(12)]
    assert len({style["marker"] for style in styles}) == 12
    assert all(one["linestyle"] != other["linestyle"] for one, other in pairwise(styles))
    okabe_ito = {"#000000", "#E69F00", "#56B4E9", "#009E73", "#F0E442", "#0072B2", "#D55E00", "#CC79A7"}
    assert {style["color"] for style in styles} <= {*okabe_ito, INK}


def test_names_are_drawn_as_they_are() -> None:
    names = ["$x^2$ costs $3", "_hidden", "a\u202eb\n", "x" * 60]
    runs = dict.fromkeys(names, REDUNDANCY["lean"])
    ax = plots.curve(gg.curve(QRELS, runs, "CG"))
    FigureCanvasAgg(ax.figure).draw()  # mathematics that cannot be read would be an error
    shown = [text.get_text() for text in ax.figure.legends[0].get_texts()]
    assert shown[:4] == [r"\$x^2\$ costs \$3", "_hidden", "a�b�", "x" * 42 + "\n" + "x" * 18]


# --- Other plots, and windows -----------------------------------------------------------------------------------------


@pytest.mark.slow
def test_no_plot_changes_the_style_of_others_or_uses_pyplot(tmp_path: Path) -> None:
    code = """
import sys, goodgain as gg, goodgain.cli.program
from goodgain.analysis.reporting import plots
assert not [name for name in sys.modules if name.startswith("matplotlib")], "imported before it is needed"
import matplotlib
style = lambda: {name: matplotlib.rcParams[name] for name in matplotlib.rcParams if name != "backend"}  # to read it loads pyplot
before = style()
folder = "qrels_examples/redundancy/"
runs = {name: f"{folder}{name}.run" for name in ("lean", "repeating")}
frame, ledger = gg.curve(folder + "qrels.txt", runs, "NumGood nCG"), gg.ledger(folder + "qrels.txt", runs["lean"])
drawn = [plots.curve(frame, "nCG"), plots.new_good(frame, "lean"), plots.what_came_back(ledger), plots.iterations_used(ledger)]
drawn += [plots.against_spend(gg.curve(folder + "qrels.txt", runs, "nCG", over="results"))]
drawn += [plots.precision_recall(gg.pr_curve(folder + "qrels.txt", runs))]
drawn += [plots.per_query(gg.compare(folder + "qrels.txt", runs, "SRR@3"))]
from pathlib import Path
from goodgain.analysis.reporting.plots.pictures import write_picture
assert drawn[0].figure._repr_png_().startswith(b"\\x89PNG")
write_picture(drawn[1].figure, Path(sys.argv[1]))
assert style() == before
assert "matplotlib.pyplot" not in sys.modules
"""
    done = subprocess.run([sys.executable, "-c", code, tmp_path / "plot.svg"], cwd=ROOT, capture_output=True, text=True)

    assert done.returncode == 0, done.stderr


def test_a_dark_style_is_followed() -> None:
    compared = gg.compare(QRELS, REDUNDANCY, "SRR@3")
    with style.context("dark_background"):
        dark = plots.per_query(compared)
    assert {line.get_color() for line in dark.lines} == {"white"}
    assert {line.get_color() for line in plots.per_query(compared).lines} == {INK}


def test_a_plot_takes_the_axes_that_it_is_given_and_returns_them() -> None:
    frame = gg.curve(QRELS, {"lean": REDUNDANCY["lean"]}, "NumGood nCG")
    ledger = gg.ledger(QRELS, REDUNDANCY["lean"])
    compared = gg.compare(QRELS, REDUNDANCY, "SRR@3")
    figure = Figure()
    axes = figure.subplots(7)

    assert plots.curve(frame, "nCG", ax=axes[0]) is axes[0]
    assert plots.new_good(frame, ax=axes[1]) is axes[1]
    assert plots.what_came_back(ledger, ax=axes[2]) is axes[2]
    assert plots.iterations_used(ledger, ax=axes[3]) is axes[3]
    assert plots.per_query(compared, ax=axes[4]) is axes[4]
    assert plots.precision_recall(make_precision_recall(2), ax=axes[5]) is axes[5]
    assert plots.against_spend(make_spend_curve(2, 3), ax=axes[6]) is axes[6]
    assert all(ax.get_legend() for ax in axes)


# --- What cannot be drawn ---------------------------------------------------------------------------------------------

CURVE = gg.curve(QRELS, REDUNDANCY, "CG SRE", resamples=0)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: plots.curve(CURVE), "measure: is not given; the frame has 'CG', 'SRE'"),
        (lambda: plots.curve(CURVE, "nCG"), "measure: 'nCG' is not there; the frame has 'CG', 'SRE'"),
        (lambda: plots.curve(CURVE.drop("low")), r"the frame lacks low: give the frame that gg\.curve returns"),
        (
            lambda: plots.against_spend(CURVE),
            r"the frame lacks over, spend: give the frame that gg\.curve\(\.\.\., over=",
        ),
        (lambda: plots.curve("CG"), "str is not a data frame"),
        (lambda: plots.new_good(CURVE), "system: is not given; the frame has 'lean', 'repeating'"),
        (lambda: plots.new_good(CURVE, "lean"), r"the frame lacks NumGood \(it has CG, SRE\)"),
        (
            lambda: plots.new_good(gg.curve(QRELS, {"a": REDUNDANCY["lean"]}, "NumGood(rel=1) nCG")),
            r"NumGood\(rel=1\) and nCG have different thresholds",
        ),
        (lambda: plots.what_came_back(CURVE), "the frame lacks query_id, R, UR"),
        (lambda: plots.precision_recall(CURVE), "the frame lacks recall, precision"),
        (lambda: plots.per_query(CURVE), "CurveFrame is not a comparison"),  # type: ignore[arg-type]
        (
            lambda: plots.per_query(gg.compare(QRELS, REDUNDANCY, "SRR@3"), system="lean"),
            "no pair matches; give one of: system='repeating', against='lean'",
        ),
        (lambda: plots.per_query(gg.compare(QRELS, REDUNDANCY, "SRR@3"), system=1), "no pair matches"),  # type: ignore[arg-type]  # a number
    ],
)
def test_what_cannot_be_drawn_is_an_error_with_its_remedy(call: Any, message: str) -> None:
    with pytest.raises(gg.InputError, match=message):
        call()


@pytest.mark.parametrize("frame", [CURVE.to_pandas(), CURVE.to_arrow()], ids=["pandas", "PyArrow"])
def test_frames_of_other_libraries_are_drawn_too(frame: Any) -> None:
    assert len(plots.curve(frame, "CG").lines) == 2


def test_the_curve_of_a_value_of_one_iteration_is_drawn_and_one_without_values_too() -> None:
    ax = plots.curve(gg.curve(QRELS, REDUNDANCY, "AvgGain"))
    assert ax.get_ylabel() == "Average Good Gain per Result\n(AvgGain ↑), mean over 2 queries"
    missing = make_curve(1, 3).with_columns(pl.lit(None, pl.Float64).alias(name) for name in ("mean", "low", "high"))
    check_labels(plots.curve(missing).figure)  # type: ignore[arg-type]


def test_a_run_and_a_ledger_without_any_judged_query_are_drawn_empty() -> None:
    with no_notices():
        ledger = gg.ledger({"q": {"a": 3}}, {"other": {"a": 1.0}})
        frame = gg.curve({"q": {"a": 3}}, {"agent": {"other": {"a": 1.0}}}, "NumGood nCG")
    for ax in (
        plots.what_came_back(ledger),
        plots.iterations_used(ledger),
        plots.new_good(frame),
        plots.curve(frame, "nCG"),
    ):
        check_labels(ax.figure)  # type: ignore[arg-type]
