"""Frames to plot, made without any run, and whether the labels of a figure can be read."""

from __future__ import annotations

from itertools import combinations

import polars as pl
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.transforms import Bbox

__all__ = ["check_labels", "make_curve", "make_ledger", "make_precision_recall", "make_spend_curve"]


def make_curve(systems: int, iterations: int, measure: str = "nCG") -> pl.DataFrame:
    """A frame as `gg.curve` returns it, without any run."""
    rows = [
        (f"retriever-{s} (bm25 + dense)", measure, i, s + i / 9, iterations + 1 - i, iterations, s + i / 10, s + i / 8)
        for s in range(systems)
        for i in range(1, iterations + 1)
    ]
    columns = ("system", "measure", "iteration", "mean", "searching", "queries", "low", "high")
    return pl.DataFrame(rows, schema=columns, orient="row")


def make_spend_curve(systems: int, spends: int, over: str = "tokens", factor: float = 1_234.5) -> pl.DataFrame:
    """A frame as `gg.curve(..., over=...)` returns it, without any run."""
    curve = make_curve(systems, spends).with_columns(over=pl.lit(over), spend=pl.col("iteration") * factor)
    return curve.drop("iteration")


def make_ledger(iterations: int) -> pl.DataFrame:
    rows = [
        (f"q{q}", i, 9_000 * (i % 3), 6_000 * (i % 3), 3_000 * (i % 3), 1_000 * (i % 3), 900 * (i % 3), True)
        for q in range(40)
        for i in range(1, iterations + 1 - q % 3 if iterations > 3 else iterations + 1)
    ]
    columns = ("query_id", "iteration", "R", "UR", "Dup", "GR", "Unjudged", "judged")
    return pl.DataFrame(rows, schema=columns, orient="row")


def make_precision_recall(systems: int) -> pl.DataFrame:
    rows = [(f"system {s}", i / 10, 1 - i / 10 - s / 100) for s in range(systems) for i in range(11)]
    return pl.DataFrame(rows, schema=["system", "recall", "precision"], orient="row")


def list_labels(figure: Figure) -> list[tuple[str, Bbox]]:
    """All texts that a figure shows, each with its place in pixels."""
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    of_ticks, visible = set(), []

    for ax in figure.axes:
        for axis in (ax.xaxis, ax.yaxis):
            low, high = sorted(axis.get_view_interval())
            for tick in [*axis.get_major_ticks(), *axis.get_minor_ticks()]:
                of_ticks |= {tick.label1, tick.label2}
                if low <= tick.get_loc() <= high:
                    visible += [tick.label1, tick.label2]

    visible += [text for text in figure.findobj(Text) if text not in of_ticks]
    texts = [text for text in visible if isinstance(text, Text) and text.get_visible() and text.get_text().strip()]
    # Not the leader of a name at the end of a line.
    return [(text.get_text(), Text.get_window_extent(text, canvas.get_renderer())) for text in texts]


def check_labels(figure: Figure) -> None:
    labels = list_labels(figure)
    assert len(labels) > 3
    for text, box in labels:
        assert box.x0 > -1 and box.y0 > -1, f"{text!r} is cut off"
        assert box.x1 < figure.bbox.x1 + 1 and box.y1 < figure.bbox.y1 + 1, f"{text!r} is cut off"
    for (text, box), (other_text, other_box) in combinations(labels, 2):
        overlap = Bbox.intersection(box, other_box)
        assert overlap is None or min(overlap.width, overlap.height) < 1, f"{text!r} and {other_text!r} overlap"
