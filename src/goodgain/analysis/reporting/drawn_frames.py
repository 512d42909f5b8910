"""Data frames that draw themselves: what `gg.curve` and `gg.pr_curve` return."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class CurveFrame(pl.DataFrame):
    """The frame of `gg.curve`. It is a Polars frame, but `plot()` draws it with matplotlib.

    >>> import goodgain as gg
    >>> folder = "qrels_examples/redundancy/"
    >>> curve = gg.curve(folder + "qrels.txt", {"lean": folder + "lean.run"}, "CG SRR")
    >>> len(curve.plot().axes)
    2
    >>> curve.signature["interval"]
    't'
    """

    #: How the intervals were computed: `alpha` and others, and `interval`, the methods as in `Scores.signature`. Without intervals
    #: (resamples=0) there is no `interval`. A frame that Polars makes from this one has no signature.
    signature: dict[str, Any]

    def plot(self) -> Figure:  # type: ignore[override]  # of Polars: needs altair, which does not know what a curve is
        """Return a figure with a plot for each measure, as `plots.curve` and `plots.against_spend` draw it."""
        from goodgain.analysis.reporting.plots.pictures import draw_curves

        return draw_curves(self)


class RecallFrame(pl.DataFrame):
    """The frame of `gg.pr_curve`. It is a Polars frame, but `plot()` draws it with matplotlib."""

    def plot(self) -> Figure:  # type: ignore[override]  # as above
        """Return a figure of precision over recall, as `plots.precision_recall` draws it."""
        from goodgain.analysis.reporting.plots.lines import precision_recall

        return precision_recall(self).figure  # type: ignore[return-value]  # not a subfigure: it is new
