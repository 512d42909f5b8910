"""Pictures of the examples show what `pictures.json` says, in three digits: scales, ticks, lines, bars, areas, texts, legends.

    python -m tests.analysis.reporting.test_whole_pictures

writes what they show today. Read the diff.
"""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import pytest
from matplotlib.figure import Figure

import goodgain as gg
from goodgain import plots
from tests.support.plot_labels import make_curve, make_ledger, make_precision_recall, make_spend_curve
from tests.support.tables import ROOT

FILE = Path(__file__).with_name("pictures.json")
EXAMPLES = ROOT / "qrels_examples"
AGENTS = EXAMPLES / "two_agents"
QRELS, RUNS = AGENTS / "qrels.txt", {name: AGENTS / f"{name}.run" for name in ("quick", "late")}
REPEATED = EXAMPLES / "repeated_runs"
REPLICATES: Any = {name: [REPEATED / f"{name}.{k}.run" for k in (1, 2, 3)] for name in ("old", "new")}
USED = EXAMPLES / "opened_and_cited"
MANY: Any = {f"q{k}": {"a": 2} for k in range(45)}
FIRST: Any = {query: {"a": 2.0, "b": 1.0} for query in MANY}
SECOND: Any = {query: {"a": 1.0, "b": float(k % 3)} for k, query in enumerate(MANY)}


def _draw_inside(of: Any) -> Any:
    """Several plots in one figure of the user."""
    figure = Figure(figsize=(14, 8))
    axes = figure.subplots(2, 2).ravel()
    plots.curve(of, "nCG", ax=axes[0])
    plots.new_good(of, "late", ax=axes[1])
    plots.what_came_back(gg.ledger(QRELS, RUNS["late"]), ax=axes[2])
    plots.per_query(gg.compare(QRELS, RUNS, "nCG"), ax=axes[3])
    return axes[0]


PICTURES: dict[str, Any] = {
    "curve": lambda: plots.curve(gg.curve(QRELS, RUNS, "nCG")),
    "curve of repeated runs": lambda: plots.curve(gg.curve(REPEATED / "qrels.txt", REPLICATES, "nCG")),
    "curve of many systems": lambda: plots.curve(make_curve(9, 4)),
    "curve without bands": lambda: plots.curve(make_curve(3, 30), bands=False),
    "against spend": lambda: plots.against_spend(
        gg.curve(QRELS, RUNS, "nCG", over="tokens", costs=AGENTS / "costs.csv")
    ),
    "against made spend": lambda: plots.against_spend(make_spend_curve(3, 5)),
    "precision and recall": lambda: plots.precision_recall(gg.pr_curve(QRELS, RUNS)),
    "precision and recall of many": lambda: plots.precision_recall(make_precision_recall(7)),
    "new good": lambda: plots.new_good(gg.curve(QRELS, RUNS, "NumGood nCG"), "late"),
    "what came back": lambda: plots.what_came_back(gg.ledger(QRELS, RUNS["late"])),
    "what came back of many": lambda: plots.what_came_back(make_ledger(30)),
    "iterations used": lambda: plots.iterations_used(gg.ledger(QRELS, RUNS["quick"])),
    "per query": lambda: plots.per_query(gg.compare(QRELS, RUNS, "nCG")),
    "per query of many": lambda: plots.per_query(gg.compare(MANY, {"first": FIRST, "second": SECOND}, "RR")),
    "per query of equals": lambda: plots.per_query(gg.compare(QRELS, {"one": RUNS["late"], "two": RUNS["late"]}, "RR")),
    "funnel": lambda: plots.funnel(gg.funnel(USED / "judgments.qrels", USED / "uses.jsonl")),
    "inside axes of the user": lambda: _draw_inside(gg.curve(QRELS, RUNS, "NumGood nCG")),
}


def _describe(name: str) -> list[Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        figure = PICTURES[name]().figure
        data: list[Any] = json.loads(json.dumps(_describe_figure(figure)))
    return [[round(float(size), 2) for size in figure.get_size_inches()], *data]


def _describe_figure(figure: Figure) -> list[Any]:
    """Return what each axes of a figure shows: scales, ticks, lines, bars, areas, texts and the legend, in three digits."""
    figure.canvas.draw()
    return [_describe_axes(ax) for ax in figure.axes]


def _describe_axes(ax: Any) -> dict[str, Any]:
    found: dict[str, Any] = {
        "place": _round(ax.get_position().bounds),
        "titles": [ax.get_title(loc) for loc in ("left", "center", "right")] + [ax.get_xlabel(), ax.get_ylabel()],
        "scales": [ax.get_xscale(), ax.get_yscale(), *_round((*ax.get_xlim(), *ax.get_ylim()))],
        "ticks": [_describe_ticks(axis) for axis in (ax.xaxis, ax.yaxis) if axis.get_visible()],
        "lines": [_describe_line(line) for line in ax.lines],
        "bars": [[_round(bar.get_window_extent().bounds), *_look(bar), bar.get_hatch()] for bar in ax.patches],
        "areas": [
            [_round(area.get_facecolor().ravel()), _round(area.get_datalim(ax.transData).bounds), area.get_zorder()]
            for area in ax.collections
        ],
        "texts": [
            [text.get_text(), *_round((*text.get_position(), text.get_fontsize(), text.get_rotation())), *_look(text)]
            for text in ax.texts
        ],
    }
    if (legend := ax.get_legend()) is not None:
        place = _round(legend.get_window_extent().bounds[:2])
        found["legend"] = [[text.get_text() for text in legend.get_texts()], legend._ncols, place]
    return {name: shown for name, shown in found.items() if shown}


def _describe_line(line: Any) -> list[Any]:
    look = [line.get_linestyle(), line.get_marker(), *_look(line)]
    return look + _round([line.get_linewidth(), line.get_markersize(), line.get_xdata(), line.get_ydata()])


def _describe_ticks(axis: Any) -> list[Any]:
    labels = axis.get_ticklabels()
    shown = [[label.get_text(), *_round(label.get_position())] for label in labels if label.get_text()]
    return [shown, *_round({(label.get_rotation(), label.get_fontsize()) for label in labels})]


def _look(artist: Any) -> list[Any]:
    """The colour and the order of drawing."""
    colour = artist.get_facecolor() if hasattr(artist, "get_facecolor") else artist.get_color()
    return [colour if isinstance(colour, str) else _round(colour), artist.get_alpha(), artist.get_zorder()]


def _round(values: Any) -> list[Any]:
    """Numbers in three digits, or lists of them."""
    return [_round_one(value) for value in (sorted(values) if isinstance(values, set) else values)]


def _round_one(value: Any) -> Any:
    if isinstance(value, (tuple, list, np.ndarray)):
        return _round(value)
    return value if isinstance(value, str) else float(f"{float(value):.3g}")


@pytest.mark.skipif(
    not matplotlib.__version__.startswith("3.11."), reason="the places in pictures.json are those of matplotlib 3.11"
)
@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_shows_the_same_as_before(name: str) -> None:
    assert _describe(name) == json.loads(FILE.read_text("utf-8"))[name]


if __name__ == "__main__":
    FILE.write_text(
        "{\n" + ",\n".join(f"{json.dumps(name)}: {json.dumps(_describe(name))}" for name in PICTURES) + "\n}\n", "utf-8"
    )
