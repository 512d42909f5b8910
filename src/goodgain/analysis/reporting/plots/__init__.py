"""Plots of the frames that goodgain returns.

Each function takes the frame of `gg.curve`, `gg.pr_curve` or `gg.ledger`, or the result of `gg.compare` or `gg.funnel`. It draws
on `ax` or on a new figure, and returns the matplotlib axes. In a notebook, show the figure with `plots.curve(frame).figure`. Your
other matplotlib plots keep their style.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from goodgain.analysis.reporting.plots.bars import funnel, iterations_used, new_good, per_query, what_came_back
    from goodgain.analysis.reporting.plots.lines import against_spend, curve, precision_recall


def __getattr__(name: str) -> Any:
    """Import the module of a plot on first use, because the module imports matplotlib."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = "lines" if name in ("against_spend", "curve", "precision_recall") else "bars"
    return getattr(importlib.import_module(f"{__name__}.{module}"), name)


def __dir__() -> list[str]:
    return __all__


__all__ = [
    "against_spend",
    "curve",
    "funnel",
    "iterations_used",
    "new_good",
    "per_query",
    "precision_recall",
    "what_came_back",
]
