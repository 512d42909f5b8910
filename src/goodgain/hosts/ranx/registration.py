"""Our measures put into ranx, and taken out again.

`ranx.evaluate` and `ranx.compare` look up what they call in their own modules, so that is where it is replaced: by
something that does our part, and hands everything else to what stood there.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

import ranx  # type: ignore[import-untyped]  # ranx has no types
from ranx.data_structures.report import metric_labels  # type: ignore[import-untyped]  # ranx has no types

from goodgain.errors import notice
from goodgain.hosts.host_names import HOST_NAMES
from goodgain.hosts.ranx.metrics import Given, parse_metric, values
from goodgain.hosts.ranx.report import Report

__all__ = ["register", "unregister"]

# The attribute ranx.meta.evaluate is the function; the module has to be asked for by name.
_evaluate: Any = sys.modules["ranx.meta.evaluate"]
_compare: Any = sys.modules["ranx.meta.compare"]


Function = Callable[..., Any]


def register() -> None:
    """Let `ranx.evaluate` and `ranx.compare` take our measures; doing it again changes nothing.

    A name that ranx has itself stays ranx's, with a notice.
    """
    if _compare.Report is Report:
        return
    for name, measure in HOST_NAMES.items():
        if metric_labels.setdefault(name, str(measure)) != str(measure):
            notice(f"ranx has a metric {name} of its own, which stays; ours is {measure} in goodgain.evaluate")
    for name, replacing in _REPLACED.items():
        setattr(_evaluate, name, replacing(getattr(_evaluate, name)))
    _compare.Report = Report


def unregister() -> None:
    """Leave ranx as it was before `register`; doing it again changes nothing."""
    if _compare.Report is not Report:
        return
    for name, measure in HOST_NAMES.items():
        if metric_labels[name] == str(measure):
            del metric_labels[name]
    for name in _REPLACED:
        setattr(_evaluate, name, getattr(_evaluate, name).__wrapped__)
    _compare.Report = ranx.data_structures.Report


def _extracting(original: Function) -> Function:
    """ranx's parser takes -l2.5 for an error, and any name with rbp in it for RBP: ours are read before it."""

    @functools.wraps(original)
    def extract_metric_and_params(metric: str) -> tuple[str, int, float]:
        measure = parse_metric(metric)
        if measure is None:
            return original(metric)  # type: ignore[no-any-return]  # ranx has no types
        return metric, measure.cutoff or 0, measure.rel

    return extract_metric_and_params


def _switching(original: Function) -> Function:
    """The function of a metric, which gets qrels and run as they were given; ranx's own get ranx's form of them."""

    @functools.wraps(original)
    def metric_switch(metric: str) -> Function:
        measure = parse_metric(metric)
        if measure is not None:
            return lambda qrels, run, *_: values(measure, qrels, run)
        function = original(metric)
        return lambda qrels, run, *params: function(qrels.for_classic, run.for_classic, *params)

    return metric_switch


def _keeping(original: Function) -> Function:
    """ranx's form holds ids as hashes, which collide and cannot be undone: it is made for ranx's metrics only."""

    @functools.wraps(original)
    def convert(source: Any) -> Given:
        return Given(source, original)

    return convert


#: What of ranx.meta.evaluate is replaced, and by what.
_REPLACED: dict[str, Callable[[Function], Function]] = {
    "extract_metric_and_params": _extracting,
    "metric_switch": _switching,
    "convert_qrels": _keeping,
    "convert_run": _keeping,
}
