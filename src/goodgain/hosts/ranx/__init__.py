"""Adds our measures to `ranx.evaluate` and `ranx.compare`, beside nDCG@10, MRR@10 and Recall@100.

Importing this module registers them. `Run` and `Qrels` are subclasses of the classes of ranx: classic metrics use them in
the same way, and our measures get the iterations and the original labels. A plain `ranx.Run` is one iteration.

`ranx.evaluate` and `ranx.compare` look up functions in their own modules. Wrappers replace these functions: they handle our
measures, and pass everything else to the originals.

>>> import polars as pl
>>> import ranx
>>> run = pl.DataFrame({"query_id": "q1", "iteration": [1, 2], "doc_id": ["d1", "d2"]})
>>> ranx.evaluate(Qrels({"q1": {"d1": 3}}), Run(run), "sre")
np.float64(0.5)
"""

import functools
import sys
from collections.abc import Callable
from typing import Any

import ranx  # type: ignore[import-untyped]  # ranx has no types
from ranx.data_structures.report import metric_labels  # type: ignore[import-untyped]  # ranx has no types

from goodgain.errors import MeasureError, notice
from goodgain.hosts.ranx.metrics import Given, Report, parse_metric
from goodgain.hosts.ranx.run_and_qrels import Qrels, Run
from goodgain.measures.names import HOST_NAMES

__all__ = ["Qrels", "Run", "register", "unregister"]

# As attributes of ranx.meta these names are functions; only sys.modules has the modules.
_evaluate: Any = sys.modules["ranx.meta.evaluate"]
_compare: Any = sys.modules["ranx.meta.compare"]

Function = Callable[..., Any]


def register() -> None:
    """Let `ranx.evaluate` and `ranx.compare` take our measures; a second call changes nothing.

    A name that ranx already has keeps its meaning, with a notice. `import goodgain.hosts.ranx` calls this.

    >>> register()
    >>> metric_labels["num_good"]
    'NumGood'
    """
    if _compare.Report is Report:
        return
    for name, measure in HOST_NAMES.items():
        if metric_labels.setdefault(name, str(measure)) != str(measure):
            notice(f"ranx has its own metric {name}, which stays; for ours use {measure} in goodgain.evaluate")
    for name, replacing in _REPLACED.items():
        setattr(_evaluate, name, replacing(getattr(_evaluate, name)))
    _compare.Report = Report


def unregister() -> None:
    """Restore ranx as it was before `register`; a second call changes nothing."""
    if _compare.Report is not Report:
        return
    for name, measure in HOST_NAMES.items():
        if metric_labels[name] == str(measure):
            del metric_labels[name]
    for name in _REPLACED:
        setattr(_evaluate, name, getattr(_evaluate, name).__wrapped__)
    _compare.Report = ranx.data_structures.Report


def _wrap_extract(original: Function) -> Function:
    """Wrap ranx's parser of metrics. Ours are parsed first: ranx refuses -l2.5, and reads any name with rbp as RBP."""

    @functools.wraps(original)
    def extract_metric_and_params(metric: str) -> tuple[str, int, float]:
        measure = parse_metric(metric)
        if measure is None:
            return original(metric)  # type: ignore[no-any-return]  # ranx has no types
        return metric, measure.cutoff or 0, measure.rel

    return extract_metric_and_params


def _wrap_switch(original: Function) -> Function:
    """Wrap the look-up of a metric's function: our measures get qrels and run as given, ranx's get the form of ranx."""

    @functools.wraps(original)
    def metric_switch(metric: str) -> Function:
        measure = parse_metric(metric)
        if measure is not None:
            return lambda qrels, run, *_: run.compute_values(qrels, metric, measure)
        try:
            function = original(metric)
        except ValueError as error:
            raise MeasureError(f"{str(error).rstrip('.')}. goodgain adds {', '.join(HOST_NAMES)}") from None
        return lambda qrels, run, *params: function(qrels.for_classic, run.for_classic, *params)

    return metric_switch


def _wrap_convert(original: Function) -> Function:
    """Wrap a conversion to the form of ranx, to make it for ranx's metrics only.

    That form replaces ids by hashes, which may collide and cannot be reversed.
    """
    return functools.update_wrapper(functools.partial(Given, converted=original), original)


#: Function of ranx.meta.evaluate -> its wrapper.
_REPLACED: dict[str, Callable[[Function], Function]] = {
    "extract_metric_and_params": _wrap_extract,
    "metric_switch": _wrap_switch,
    "convert_qrels": _wrap_convert,
    "convert_run": _wrap_convert,
}


register()
