"""Plots of the frames that goodgain returns: matplotlib axes, which are returned and never shown.

Each function takes the frame of `gg.curve`, `gg.pr_curve` or `gg.ledger`, or the result of `gg.compare`, and draws it on `ax`,
or on a figure of its own that a notebook shows as `plots.curve(frame).figure`. The style of other plots is left as it is. What
`plots.curve` draws is the frame that `plots.curve_data` returns, and so for each: draw it with any other library.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from goodgain.reporting.plots.plot_data import (
    curve_data,
    iterations_used_data,
    new_good_data,
    per_query_data,
    precision_recall_data,
    what_came_back_data,
)

if TYPE_CHECKING:
    from goodgain.reporting.plots.bars import iterations_used, new_good, per_query, what_came_back
    from goodgain.reporting.plots.lines import curve, precision_recall

#: Where the functions are that import matplotlib.
_LATER = dict.fromkeys(("curve", "precision_recall"), "goodgain.reporting.plots.lines") | dict.fromkeys(
    ("iterations_used", "new_good", "per_query", "what_came_back"), "goodgain.reporting.plots.bars"
)


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_LATER[name]), name)


def __dir__() -> list[str]:
    return __all__


__all__ = [
    "curve",
    "curve_data",
    "iterations_used",
    "iterations_used_data",
    "new_good",
    "new_good_data",
    "per_query",
    "per_query_data",
    "precision_recall",
    "precision_recall_data",
    "what_came_back",
    "what_came_back_data",
]
