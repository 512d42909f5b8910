"""Adds goodgain's measures to `ranx.evaluate` and `ranx.compare`, beside nDCG@10, MRR@10 and Recall@100.

Importing this module registers the measures. `Run` and `Qrels` are subclasses of the classes of ranx. Classic metrics work
as before, and goodgain's measures get the iterations and the original labels. A plain `ranx.Run` is one iteration.

Wrappers replace some functions in the module of `ranx.evaluate`. The wrappers handle goodgain's measures, and call the
original functions for all other metrics. A subclass replaces the class `Report` in the module of `ranx.compare`.

>>> import polars as pl
>>> import ranx
>>> run = pl.DataFrame({"query_id": "q1", "iteration": [1, 2], "doc_id": ["d1", "d2"]})
>>> ranx.evaluate(Qrels({"q1": {"d1": 3}}), Run(run), "sre")
np.float64(0.5)
"""

from __future__ import annotations

import functools
import re
import sys
from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import polars as pl
import ranx  # type: ignore[import-untyped]  # ranx has no types
from ranx.data_structures import Report as RanxReport  # type: ignore[import-untyped]  # ranx has no types
from ranx.data_structures.report import metric_labels  # type: ignore[import-untyped]  # ranx has no types

import goodgain.formats as formats
from goodgain.counting.run_opening import find_likely_replicates
from goodgain.errors import InputError, MeasureError, count_of, notice
from goodgain.hosts.ranx.run_and_qrels import Qrels, Run, find_iterations, find_judgments
from goodgain.measures.declaration import ARROWS, GoodGainMeasure
from goodgain.measures.families import HOST_NAMES
from goodgain.measures.good_gain import NumResults
from goodgain.measures.ledger_values import final_values
from goodgain.measures.names import needs_results
from goodgain.measures.thresholds import warn_if_no_label_reaches
from goodgain.scoring.scoring import Scoring

__all__ = ["Qrels", "Run", "register", "unregister"]

# ranx.meta.evaluate and ranx.meta.compare are functions: only sys.modules has the modules
_evaluate: Any = sys.modules["ranx.meta.evaluate"]
_compare: Any = sys.modules["ranx.meta.compare"]

Function = Callable[..., Any]

#: Qrels -> the thresholds that no label reaches, after a notice said so. ranx scores the runs of a comparison one by one.
_REPORTED_RELS: WeakKeyDictionary[formats.Qrels, set[float]] = WeakKeyDictionary()

_AFTER_NAME = re.compile(r"(@(?P<cutoff>[0-9]+))?(-l(?P<rel>[0-9]+(\.[0-9]+)?))?")


def split_name(metric: str) -> tuple[str, str | None]:
    """Return two things: the name at the start of a metric, and the matching key of `HOST_NAMES` (None if no key matches)."""
    written = re.split("@|-l", metric, maxsplit=1)[0]
    letters = written.replace("_", "").lower()  # ncg and nCG are n_cg
    names = (name for name in HOST_NAMES if name.replace("_", "") == letters)
    return written, next(names, None)


def parse_metric(metric: str) -> GoodGainMeasure | None:
    """Parse a metric such as `sre@3-l2.5`: the cutoff is iteration 3, and labels from 2.5 are good.

    Return None for a metric that goodgain did not add to ranx.

    >>> parse_metric("sre@3-l2.5"), parse_metric("nCG@2")
    (SRE(rel=2.5)@3, nCG@2)
    """
    written, name = split_name(metric)
    # a measure that the user defined after `register` has no label yet
    if name is None or metric_labels.setdefault(name, str(HOST_NAMES[name])) != str(HOST_NAMES[name]):
        return None
    if written != name and written in metric_labels:
        return None

    parts = _AFTER_NAME.fullmatch(metric.removeprefix(written))
    if parts is None:
        ways = f"{name}, {name}@3 for a cutoff at iteration 3, or {name}@3-l2.5 for the threshold 2.5"
        raise MeasureError(f"{metric!r}: write {ways}")
    parameters: dict[str, float] = {}
    if parts["cutoff"]:
        parameters["cutoff"] = int(parts["cutoff"])
    if parts["rel"]:
        parameters["rel"] = float(parts["rel"])
    measure: GoodGainMeasure = HOST_NAMES[name](**parameters)
    measure.validate_params()
    return measure


class Given:
    """The qrels or the run given to `ranx.evaluate`. Conversions and counts are made on first use, and kept."""

    def __init__(self, source: Any, converted: Callable[[Any], Any]) -> None:
        if isinstance(source, (ranx.Run, ranx.Qrels)) and not source.sorted:
            source.sort()  # as ranx does before conversion
        self.source = source
        self._converted = converted
        self._scoring_of: dict[Given, Scoring] = {}

    @functools.cached_property
    def for_classic(self) -> Any:
        return self._converted(self.source)

    @functools.cached_property
    def iterations(self) -> formats.Run:
        return find_iterations(self.source)

    @functools.cached_property
    def judgments(self) -> formats.Qrels:
        return find_judgments(self.source)

    def compute_values(
        self, given_qrels: Given, metric: str, measure: GoodGainMeasure
    ) -> np.ndarray[Any, np.dtype[np.float64]]:
        """Return the values of a measure in the order of the run's queries."""
        _warn_of_threshold(given_qrels.judgments, metric, measure)
        if given_qrels not in self._scoring_of:
            self._scoring_of[given_qrels] = Scoring(given_qrels.judgments, {"": self.iterations}, urls="keep")
        scoring = self._scoring_of[given_qrels]
        with scoring.tell():
            counts = scoring.count_runs([measure.rel])
            scoring.warn_of_counts(counts, [measure])

        results = NumResults(cutoff=measure.cutoff) if measure.cutoff else NumResults()
        scores = final_values(list(dict.fromkeys([measure, results])), counts[""])
        queries = pl.DataFrame({"query_id": [*map(str, self.source.keys())]}, schema={"query_id": pl.String})
        ordered = queries.join(scores, on="query_id", how="left", maintain_order="left")
        values = ordered.get_column(str(measure))
        if values.null_count():
            query_id = ordered.item(values.is_null().arg_true()[0], "query_id")
            _raise_without_value(query_id, metric, measure)
        if needs_results(measure):
            self._warn_of_empty_queries(ordered.get_column(str(results)), metric)
        return values.to_numpy()

    def _warn_of_empty_queries(self, results: pl.Series, metric: str) -> None:
        empty = int((results == 0).sum())
        if empty:
            name = getattr(self.source, "name", None) or "the run"
            notice(
                "nothing_returned",
                f"{name} returned nothing in {count_of(empty, 'query', 'queries')}. For these queries, {metric} is 0, its best "
                "value. goodgain.compare leaves these queries out.",
            )


def _warn_of_threshold(qrels: formats.Qrels, metric: str, measure: GoodGainMeasure) -> None:
    """Give a notice if no label reaches the threshold of the measure, once per threshold."""
    reported = _REPORTED_RELS.setdefault(qrels, set())
    if measure.declaration.uses_rel and measure.rel not in reported:
        name = metric.partition("-l")[0]
        warn_if_no_label_reaches(qrels.frame, [measure], write=lambda _, rel: f"{name}-l{rel:g}")
        reported.add(measure.rel)


def _raise_without_value(query_id: str, metric: str, measure: GoodGainMeasure) -> None:
    """Raise the error for a query without a value: the measure has none, or the qrels lack the query."""
    if measure.null_rule:
        raise MeasureError(
            f"{metric} has no value for query {query_id!r}, and ranx needs one for each query. Use goodgain.evaluate."
        )
    raise InputError(f"query {query_id!r} has no label in these qrels; remove it from qrels and run")


_LATEX_ARROWS = {"↑": r"$\uparrow$", "↓": r"$\downarrow$"}


def _show(name: str) -> Callable[..., str]:
    """Return a method of `Report` that calls the method `name` of the report's copy for printing."""
    return lambda report, *args, **options: str(getattr(_PrintedReport(report), name)(*args, **options))


class Report(RanxReport):  # type: ignore[misc]  # ranx has no types
    """The report of `ranx.compare`. Superscripts, bold and wins mark the better value, also for measures where lower is better.

    Columns of ranx's own metrics, and reports without goodgain's measures, are as in ranx.

    Raises:
        InputError: two runs have the same name. ranx would overwrite the values of the first run.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        parsed = {metric: parse_metric(metric) for metric in self.metrics}
        self._columns = {metric: measure for metric, measure in parsed.items() if measure is not None}
        if self._columns:
            self._check_names()
        for metric, measure in self._columns.items():
            if measure.declaration.better == "down":
                for counts_of in self.win_tie_loss.values():
                    counts = counts_of[metric]
                    counts_of[metric] = {"W": counts["L"], "T": counts["T"], "L": counts["W"]}

    def _check_names(self) -> None:
        """Raise `InputError` if two runs have one name. Give a notice if names such as agent.1 and agent.2 look like replicates."""
        repeated = [name for name in self.model_names if self.model_names.count(name) > 1]
        if repeated:
            remedy = "name them: goodgain.hosts.ranx.Run(source, name=...)"
            raise InputError(f"two runs have the name {repeated[0]!r}; {remedy}")
        for systems in find_likely_replicates(self.model_names).values():
            notice(
                "likely_replicates",
                f"{', '.join(systems)} look like runs of one system, and ranx tests each as a system. goodgain.compare averages "
                "a list of runs query by query.",
            )

    def to_table(self) -> str:
        return str(_PrintedReport(self).to_table())

    def to_latex(self) -> str:
        return str(_PrintedReport(self, _LATEX_ARROWS).to_latex())

    get_metric_label = _show("get_metric_label")
    get_superscript_for_table = _show("get_superscript_for_table")
    get_superscript_for_latex = _show("get_superscript_for_latex")
    get_phantoms_for_latex = _show("get_phantoms_for_latex")


class _PrintedReport(RanxReport):  # type: ignore[misc]  # ranx has no types
    """A copy of a report, for printing. For goodgain values, `a > b` means that `a` is better, so ranx marks the best values."""

    def __init__(self, report: Report, arrows: dict[str, str] | None = None) -> None:
        self.__dict__.update(report.__dict__)
        self._arrows = arrows or {}
        self.results = {}
        for model, values in report.results.items():
            self.results[model] = dict(values)
            for metric, measure in self._columns.items():
                if metric in values:
                    self.results[model][metric] = _Value(values[metric], measure)

    def get_metric_label(self, m: str) -> str:
        if m not in self._columns:
            return str(super().get_metric_label(m))
        written, name = split_name(m)
        arrow = ARROWS[self._columns[m].declaration.better]
        return f"{HOST_NAMES[str(name)]}{m.removeprefix(written)} {self._arrows.get(arrow, arrow)}"

    def format_score(self, score: float) -> str:
        """Return a value as text. Only a measure with values from 0 to 1 can be a percentage: 1 iteration is not 100 %."""
        if isinstance(score, _Value) and score.measure.declaration.bounds != ("0", "1"):
            return f"{score:.{self.rounding_digits}f}"
        return str(super().format_score(score))


class _Value(float):
    """A value of a goodgain measure. `a > b` means that `a` is better, also for measures where lower is better."""

    measure: GoodGainMeasure

    def __new__(cls, value: float, measure: GoodGainMeasure) -> _Value:
        instance = super().__new__(cls, value)
        instance.measure = measure
        return instance

    def __gt__(self, other: float) -> bool:
        """Return whether this value is better. If lower is better, this value beats plain numbers: ranx compares with 0 first."""
        if self.measure.declaration.better != "down":
            return float(self) > float(other)
        return not isinstance(other, _Value) or float(self) < float(other)

    def __lt__(self, other: float) -> bool:
        return isinstance(other, _Value) and other > self

    def __round__(self, ndigits: int | None = None) -> _Value:  # type: ignore[override]  # ranx rounds before it looks for the best
        return self


def register() -> None:
    """Add goodgain's measures to `ranx.evaluate` and `ranx.compare`. A second call changes nothing.

    If ranx already uses a measure's name, ranx's metric stays, and a notice says so. Importing this module calls `register`.

    >>> register()
    >>> metric_labels["num_good"]
    'NumGood'
    """
    if _compare.Report is Report:
        return
    for name, measure in HOST_NAMES.items():
        if metric_labels.setdefault(name, str(measure)) != str(measure):
            notice(
                "name_taken",
                f"ranx keeps its own metric {name}; for goodgain's metric, use {measure} in goodgain.evaluate",
            )
    for name, replacing in _REPLACED.items():
        setattr(_evaluate, name, replacing(getattr(_evaluate, name)))
    _compare.Report = Report


def unregister() -> None:
    """Undo `register`. A second call changes nothing."""
    if _compare.Report is not Report:
        return
    for name, measure in HOST_NAMES.items():
        if metric_labels.get(name) == str(measure):
            del metric_labels[name]
    for name in _REPLACED:
        setattr(_evaluate, name, getattr(_evaluate, name).__wrapped__)
    _compare.Report = ranx.data_structures.Report


def _wrap_extract(original: Function) -> Function:
    """Wrap ranx's parser of metrics. Without the wrapper, ranx refuses `-l2.5`, and reads every name that contains rbp as RBP."""

    @functools.wraps(original)
    def extract_metric_and_params(metric: str) -> tuple[str, int, float]:
        measure = parse_metric(metric)
        if measure is None:
            return original(metric)  # type: ignore[no-any-return]  # ranx has no types
        return metric, measure.cutoff or 0, measure.rel

    return extract_metric_and_params


def _wrap_switch(original: Function) -> Function:
    """Wrap ranx's lookup of the function for a metric. Qrels and runs are converted to ranx's form only for ranx's own metrics."""

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
    """Delay ranx's conversion of ids to hashes until a metric of ranx needs it."""
    return functools.update_wrapper(functools.partial(Given, converted=original), original)


#: Function of ranx.meta.evaluate -> wrapper.
_REPLACED: dict[str, Callable[[Function], Function]] = {
    "extract_metric_and_params": _wrap_extract,
    "metric_switch": _wrap_switch,
    "convert_qrels": _wrap_convert,
    "convert_run": _wrap_convert,
}


register()
