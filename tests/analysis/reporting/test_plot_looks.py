"""How pictures look: titles in words, names at the ends of lines, equal scales, names of queries, light and dark pages."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from matplotlib import image
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

import goodgain as gg
from goodgain.analysis.reporting import plots
from goodgain.analysis.reporting.plots.canvas import INK
from goodgain.analysis.reporting.plots.pictures import draw_comparison, draw_curves, write_picture
from tests.support.counts import EVERYTHING
from tests.support.plot_labels import check_labels, make_curve, make_spend_curve
from tests.support.tables import ROOT, no_notices

FOLDER = ROOT / "qrels_examples" / "two_agents"
QRELS = FOLDER / "qrels.txt"
SMALL = ROOT / "qrels_examples" / "redundancy"
RUNS = {name: FOLDER / f"{name}.run" for name in ("quick", "late")}
#: The background of pages: white, the dark pages of GitHub and of Furo.
PAGES = ("#ffffff", "#0d1117", "#131416")


@pytest.mark.parametrize(
    ("measure", "title", "label"),
    [
        ("nCG", "Share of all good gain found", "Normalised Cumulative Good Gain\n(nCG ↑), mean over 3 queries"),
        ("SRR", "Share of results that were repeats", "Search Result Redundancy (SRR ↓),\nmean over 3 queries"),
        ("DRG", "Discounted Rate of Good Gain", "Discounted Rate of Good Gain (DRG\n↑), mean over 3 queries"),
    ],
)
def test_a_title_says_what_is_shown_and_the_axis_spells_the_measure_once(measure: str, title: str, label: str) -> None:
    ax = plots.curve(make_curve(2, 3, measure))
    assert (ax.get_title(loc="left"), ax.get_ylabel()) == (f"{title} after each search", label)
    spent = plots.against_spend(make_spend_curve(2, 3).with_columns(measure=pl.lit(measure)))
    assert spent.get_title(loc="left") == f"{title} by tokens spent"


def test_lines_are_named_at_their_ends_in_the_order_of_the_ends_where_there_is_room() -> None:
    ax = plots.curve(gg.curve(QRELS, RUNS, "nCG"))
    assert sorted(text.get_text() for text in ax.texts) == ["late", "quick"]  # 0.73 and 0.72: both names can be read
    heights = {text.get_text(): text.xyann[1] for text in ax.texts}  # type: ignore[attr-defined]  # of the subclass that is drawn
    assert heights["late"] > heights["quick"]
    check_labels(ax.figure)  # type: ignore[arg-type]  # a plot on its own figure
    assert [text.get_text() for text in ax.figure.legends[0].get_texts()] == ["95 % interval of the mean"]
    for frame in (make_curve(30, 2), make_curve(2, 2).with_columns(system="a long name " * 6 + pl.col("system"))):
        systems = frame["system"].unique(maintain_order=True).to_list()
        crowded = plots.curve(frame, bands=False, highlight=systems)
        assert not crowded.texts
        names = [text.get_text().replace("\n", " ") for text in crowded.figure.legends[0].get_texts()]
        assert names == systems


@pytest.mark.slow
def test_a_legend_on_axes_that_were_given_covers_no_data() -> None:
    figure = Figure(figsize=(11, 8))
    axes: Any = figure.subplots(2, 3).ravel()
    qrels, runs = SMALL / "qrels.txt", {name: SMALL / f"{name}.run" for name in ("lean", "repeating")}
    found, ledger = gg.curve(qrels, runs, "nCG NumGood"), gg.ledger(qrels, runs["repeating"])
    with no_notices():
        compared = gg.compare(qrels, runs, "SRR@3")
    plots.curve(found, "nCG", ax=axes[0])
    plots.new_good(found, "lean", ax=axes[1])
    plots.what_came_back(ledger, ax=axes[2])
    plots.iterations_used(ledger, ax=axes[3])
    plots.per_query(compared, ax=axes[4])
    plots.precision_recall(gg.pr_curve(qrels, runs), ax=axes[5])
    FigureCanvasAgg(figure).draw()

    for ax in axes:
        box = ax.get_legend().get_window_extent()
        bars = [bar for bar in ax.patches if isinstance(bar, Rectangle) and bar.get_zorder() >= 1]  # not the interval
        covered = [bar for bar in bars if bar.get_window_extent().overlaps(box)]
        points = [
            tuple(point)
            for one in figure.axes
            if one.get_position().bounds == ax.get_position().bounds
            for line in one.lines
            if line.get_transform() == one.transData
            for point in one.transData.transform(line.get_xydata())
        ]
        assert not covered and not any(box.contains(x, y) for x, y in points), ax.get_title(loc="left")


def test_plots_of_the_same_measure_have_the_same_scale() -> None:
    qrels = {f"q{q}": {"a": 3, "b": 2, "c": 2} for q in range(6)}
    runs = {
        "base": {query: {"a": 1.0} for query in qrels},
        "near": {query: {"a": 1.0, **({"b": 0.5} if query == "q1" else {})} for query in qrels},
        "far": {query: {"b": 1.0, "c": 0.5, **({"a": 0.1} if query == "q2" else {})} for query in qrels},
    }
    with no_notices():
        figure = draw_comparison(gg.compare(qrels, runs, "CG NumGood", baseline="base", resamples=20))
    ends = {}
    for ax in figure.axes:
        ends.setdefault(ax.get_xlabel(), set()).add(ax.get_xlim())

    assert len(figure.axes) == 4
    assert [len(limits) for limits in ends.values()] == [1, 1]


@pytest.mark.slow
def test_pictures_of_a_report_that_are_compared_have_the_same_scale(tmp_path: Path) -> None:
    few = tmp_path / "few.run"
    few.write_text("".join(line for line in (SMALL / "lean.run").open() if line.startswith("q1")))
    runs = {"all": SMALL / "repeating.run", "few": few}
    with no_notices():
        page = gg.report(SMALL / "qrels.txt", runs, tmp_path / "a.html", "nCG@3").read_text()
    pictures = re.findall(r"<svg.*?</svg>", page, re.DOTALL)

    for label in ("results, all queries", "queries"):
        numbers = [
            [text for text in re.findall(r"<text[^>]*>([^<]*)</text>", picture) if re.fullmatch(r"[\d,]+", text)]
            for picture in pictures
            if f">{label}</text>" in picture
        ]
        assert len(numbers) == 2 and numbers[0] == numbers[1], label


@pytest.mark.slow
@pytest.mark.parametrize("number", [40, 41] if EVERYTHING else [40])
def test_up_to_40_queries_are_named_and_a_long_id_keeps_its_end(number: int) -> None:
    query_ids = [f"2026-09-questions-of-customers-{q:02}" for q in range(number)]
    qrels = {query: {"a": 3, "b": 2} for query in query_ids}
    runs = {name: {query: {doc: 1.0} for query in qrels} for name, doc in (("one", "a"), ("other", "b"))}
    with no_notices():
        compared = gg.compare(qrels, runs, "CG", resamples=20)
    together = draw_comparison(compared)
    check_labels(together)
    for figure in (plots.per_query(compared).figure, together):
        names = [text.get_text() for text in figure.axes[0].get_yticklabels()]
        named = [f"…{query[-23:]}" for query in query_ids]
        assert (names == named) == (number <= 40)


def test_queries_without_room_for_their_names_are_counted_from_1() -> None:
    qrels = {f"q{q}": {"a": 3, "b": 2} for q in range(9)}
    runs = {name: {query: {doc: 1.0} for query in qrels} for name, doc in (("one", "a"), ("other", "b"))}
    with no_notices():
        compared = gg.compare(qrels, runs, "CG", resamples=20)
    ax = plots.per_query(compared, ax=Figure(figsize=(4, 1)).add_subplot())
    assert ax.get_ylabel() == "queries, by their difference"
    assert [ax.yaxis.get_major_formatter()(place) for place in (-1, 0, 1, 2_000)] == ["", "", "1", "2,000"]


@pytest.mark.parametrize(("systems", "turned"), [(4, 0), (5, 90)])
def test_stages_of_more_than_four_systems_are_written_upwards(systems: int, turned: int) -> None:
    names = [f"s{k}" for k in range(systems)]
    uses = {
        "query_id": "q",
        "system": names,
        "doc_id": "a",
        "returned_at": 1,
        "opened_at": 1,
        "opens": 1,
        "cited": True,
    }
    ax = plots.funnel(gg.funnel({"q": {"a": 3}}, pl.DataFrame(uses)))

    assert [label.get_text() for label in ax.get_xticklabels()] == ["returned", "opened", "cited"] * systems
    assert {label.get_rotation() for label in ax.get_xticklabels()} == {turned}


def find_luminance(colour: str) -> float:
    parts = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def test_a_picture_is_transparent_and_its_text_can_be_read_on_white_and_on_dark_pages(tmp_path: Path) -> None:
    text = find_luminance(INK)
    for page in PAGES:
        darker, lighter = sorted((text, find_luminance(page)))
        assert (lighter + 0.05) / (darker + 0.05) >= 4
    frame = gg.curve(QRELS, RUNS, "nCG")
    write_picture(draw_curves(frame), tmp_path / "a.png")
    pixels = image.imread(tmp_path / "a.png")
    assert pixels[0, 0, 3] == pixels[pixels.shape[0] // 2, pixels.shape[1] // 2, 3] == 0

    shown = pixels[pixels[:, :, 3] == 1][:, :3]
    assert shown.mean(axis=1).min() > 0.15, "nothing is black"
    write_picture(draw_curves(frame), tmp_path / "a.svg")
    written = (tmp_path / "a.svg").read_text()
    assert "currentColor" in written and "prefers-color-scheme:dark" in written
    assert INK not in written and "#000000" not in written
    assert not re.search(r'id="patch_1">\s*<path[^>]*style="fill: #', written)
