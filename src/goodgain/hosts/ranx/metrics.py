"""Our measures as metrics of ranx: their names, and their values for what `ranx.evaluate` was given."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl
import ranx  # type: ignore[import-untyped]  # ranx has no types
from ranx.data_structures.report import metric_labels  # type: ignore[import-untyped]  # ranx has no types

from goodgain.counting.coverage import tell_unreached
from goodgain.counting.ledger import Counts, count
from goodgain.errors import InputError, MeasureError, notice
from goodgain.evaluation import counted, used_thresholds
from goodgain.formats import Qrels, Run
from goodgain.formats.run import NO_ITERATIONS
from goodgain.hosts.host_names import HOST_NAMES
from goodgain.hosts.ranx.run_and_qrels import iterated, judged
from goodgain.measures.declaration import DEFAULT_REL, GoodGainMeasure
from goodgain.measures.values import final_values

__all__ = ["Given", "parse_metric", "values"]

_AFTER_NAME = re.compile(r"(@(?P<cutoff>[0-9]+))?(-l(?P<rel>[0-9]+(\.[0-9]+)?))?")


def parse_metric(metric: str) -> GoodGainMeasure | None:
    """The measure that ranx's `sre@3-l2.5` means: @ is a cutoff in iterations, -l the threshold.

    None if it is not ours, which ranx's table of labels tells: registration puts our names there.

    Raises:
        MeasureError: the name is ours, and what follows cannot be read or is not what the measure takes.

    >>> parse_metric("sre@3-l2.5")
    SRE(rel=2.5)@3
    """
    name = re.split("@|-l", metric, maxsplit=1)[0]
    if name not in HOST_NAMES or metric_labels.get(name) != str(HOST_NAMES[name]):
        return None
    parts = _AFTER_NAME.fullmatch(metric.removeprefix(name))
    if parts is None:
        raise MeasureError(
            f"{metric!r}: write {name}, {name}@3 to cut off after 3 iterations, {name}@3-l2.5 for labels from 2.5"
        )
    cutoff, rel = parts["cutoff"], parts["rel"]
    measure = _measure(name, None if cutoff is None else int(cutoff), None if rel is None else float(rel))
    measure.validate_params()
    return measure


def _measure(name: str, cutoff: int | None, rel: float | None) -> GoodGainMeasure:
    params = {key: value for key, value in (("cutoff", cutoff), ("rel", rel)) if value is not None}
    measure: GoodGainMeasure = HOST_NAMES[name](**params)
    return measure


class Given:
    """What `ranx.evaluate` was given as qrels or run; what a metric needs of it is made when the first one needs it."""

    def __init__(self, source: Any, converted: Callable[[Any], Any]) -> None:
        if isinstance(source, (ranx.Run, ranx.Qrels)) and not source.sorted:
            source.sort()  # as ranx does before it converts: values are saved by position
        self.source = source
        self._converted = converted
        self._against: dict[Given, Pair] = {}

    @cached_property
    def for_classic(self) -> Any:
        """ranx's own form, with hashed ids."""
        return self._converted(self.source)

    def against(self, qrels: Given) -> Pair:
        """This run on those qrels."""
        if qrels not in self._against:
            run, query_ids = iterated(self.source), [*map(str, self.source.keys())]
            self._against[qrels] = Pair(judged(qrels.source), run, query_ids)
        return self._against[qrels]


class Pair:
    """A run on qrels: its ledger is made once for each threshold, and its values once for each cutoff."""

    def __init__(self, qrels: Qrels, run: Run, query_ids: list[str]) -> None:
        self._qrels = qrels
        self._run = run
        self._query_ids = query_ids
        self._counts: dict[float, Counts] = {}
        self._tables: dict[tuple[float, int | None], pl.DataFrame] = {}
        self._warned = False
        self._told_rels: set[float] = set()

    def values(self, measure: GoodGainMeasure) -> np.ndarray[Any, np.dtype[np.float64]]:
        """The measure's value for each query, in the run's order of queries.

        Raises:
            InputError: a query of the qrels has no label at all.
        """
        tell_unreached(self._qrels.frame, {*used_thresholds([measure])} - self._told_rels)
        self._told_rels.update(used_thresholds([measure]))
        key = (measure.rel, measure.cutoff)
        if key not in self._tables:
            self._tables[key] = self._table(*key)
        found = self._tables[key].get_column(str(measure))
        if found.null_count():
            query_id = self._query_ids[found.is_null().arg_true()[0]]
            raise InputError(f"query {query_id!r} has no label in these qrels; take it out of qrels and run")
        return found.to_numpy()

    def _table(self, rel: float, cutoff: int | None) -> pl.DataFrame:
        """Every measure of ours with this threshold and cutoff: together they cost little more than one alone."""
        if cutoff is not None and cutoff > 1 and not self._run.has_iterations and not self._warned:
            self._warned = True
            notice(NO_ITERATIONS)
        scores = final_values(list(_taking(rel, cutoff)), {rel: self._counted(rel)})
        queries = pl.DataFrame({"query_id": self._query_ids}, schema={"query_id": pl.String})
        return queries.join(scores, on="query_id", how="left", maintain_order="left")

    def _counted(self, rel: float) -> Counts:
        if rel not in self._counts:
            making = counted if not self._counts else _counted_quietly  # what it has to say it says once
            self._counts[rel] = making(self._qrels, self._run, [rel])[rel]
        return self._counts[rel]


def _counted_quietly(qrels: Qrels, run: Run, rels: list[float]) -> dict[float, Counts]:
    return count(run.frame, qrels.frame, rels=rels, labels=qrels.labels)


def _taking(rel: float, cutoff: int | None) -> Iterable[GoodGainMeasure]:
    """Every measure that takes this threshold and cutoff."""
    for name, measure in HOST_NAMES.items():
        declared = measure.declaration
        if declared.cutoff == ("required" if cutoff is None else "none"):
            continue
        if declared.uses_rel or rel == DEFAULT_REL:
            yield _measure(name, cutoff, rel if declared.uses_rel else None)


def values(measure: GoodGainMeasure, qrels: Given, run: Given) -> np.ndarray[Any, np.dtype[np.float64]]:
    """The value of one of our measures for each query."""
    return run.against(qrels).values(measure)
