"""Asks the providers of ir_measures for classic measures, on the flattened ranking of a run.

These are the measures that `measures/classic.py` does not compute, or all classic measures if the user names a provider.
"""

from __future__ import annotations

import gc
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import ir_measures
import polars as pl

from goodgain.errors import MeasureError
from goodgain.formats import Run
from goodgain.formats.forms_for_hosts import check_levels, clip_for_trec_eval, to_nested_dict
from goodgain.providers.choosing_provider import Labelling, check_provider, choose_labelling, choose_provider

#: Providers that need all queries in one call: a user's function may look at all of them, and ranx requires run and qrels
#: to have the same queries.
_AT_ONCE = {"runtime", "ranx"}


class ProvidedValues(NamedTuple):
    """The values that providers computed for one run.

    Attributes:
        means: measure -> value over all queries, by the rule of ir_measures (NumRet is a sum).
        per_query: query_id, measure, value, for all queries of the qrels; a query that the provider omits gets the default
            value of the measure.
        providers: name of a provider -> the measures that it computed.
    """

    means: dict[ir_measures.Measure, float]
    per_query: pl.DataFrame
    providers: dict[str, list[ir_measures.Measure]]


class ProviderScores:
    """Collects the values that providers compute, batch by batch.

    Args:
        measures: any measures of ir_measures.
        qrels: all judgments: the form of the labels must not depend on the batch.
        provider: the name of the provider to ask; None leaves the choice to ir_measures.
    """

    def __init__(
        self, measures: Sequence[ir_measures.Measure], qrels: pl.DataFrame, *, provider: str | None = None
    ) -> None:
        labels = qrels.get_column("relevance")
        self._fractional = labels.filter(labels % 1 != 0).unique(maintain_order=True)
        self._provider = provider
        self._query_ids: Iterable[str] = qrels.get_column("query_id").unique().sort() if measures else []
        self._at_once = any(_takes_all_queries(measure, provider) for measure in measures)
        self._waiting: list[tuple[pl.DataFrame, pl.DataFrame]] = []
        self._providers: dict[str, list[ir_measures.Measure]] = {}
        self._values: dict[ir_measures.Measure, dict[str, float]] = {measure: {} for measure in measures}

    def add(self, labels: pl.DataFrame, ranking: pl.DataFrame) -> None:
        """Add the labels (from `QrelsByQuery`) and the ranking of some queries, and ask for their values."""
        if self._at_once:
            self._waiting.append((labels, ranking.select(Run.columns)))
        elif not labels.is_empty():
            self._ask(labels, ranking)

    def finish(self, rest: pl.DataFrame) -> ProvidedValues:
        """Return the values of the run; `rest` has the labels of the queries that the run lacks."""
        if self._at_once:
            labels, rankings = zip(*self._waiting, strict=True)
            self._ask(pl.concat([*labels, rest]), pl.concat(rankings))
        for measure, values in self._values.items():
            for query_id in self._query_ids:  # a provider may omit one, as Accuracy does without a relevant result
                values.setdefault(query_id, measure.DEFAULT)
        means = {measure: _aggregate(measure, values) for measure, values in self._values.items()}
        types = {"query_id": pl.String, "measure": pl.String, "value": pl.Float64}
        columns = [
            pl.DataFrame({"query_id": list(of), "measure": str(measure), "value": list(of.values())}, types)
            for measure, of in self._values.items()
        ]
        return ProvidedValues(means, pl.concat([pl.DataFrame(schema=types), *columns]), self._providers)

    def _ask(self, labels: pl.DataFrame, ranking: pl.DataFrame) -> None:
        forms = _Forms(labels, ranking)
        with _pause_garbage_collection():
            for request in _group_requests([*self._values], self._fractional, self._provider):
                check_provider(request.provider, list(request.named), labels, ranking)
                if request.labelling.rel is None and request.labelling.whole:
                    check_levels(labels)
                for metric in _call_provider(request, forms):
                    self._values[request.named[metric.measure]][metric.query_id] = float(metric.value)
                computed = self._providers.setdefault(request.provider.NAME, [])
                computed += [measure for measure in request.named.values() if measure not in computed]


@contextmanager
def _pause_garbage_collection() -> Iterator[None]:
    """Pause the garbage collector while allocating millions of acyclic objects: it takes a quarter of the time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _takes_all_queries(measure: ir_measures.Measure, provider: str | None) -> bool:
    try:
        return choose_provider(measure, provider).NAME in _AT_ONCE
    except MeasureError:
        return False  # raised later, once the form of the labels is known


def _aggregate(measure: ir_measures.Measure, values: dict[str, float]) -> float:
    """Return the value over all queries, by the rule of ir_measures; the sum of a mean is exact, the same in any order."""
    aggregator = measure.aggregator()
    if type(aggregator) is ir_measures.MeanAgg and values and all(map(math.isfinite, values.values())):
        return math.fsum(values.values()) / len(values)
    for _, value in sorted(values.items()):
        aggregator.add(value)
    return float(aggregator.result())


class _Request(NamedTuple):
    """One call of a provider.

    Attributes:
        provider: the provider of ir_measures.
        labelling: the form of its labels.
        named: the measure to ask it for -> the measure that the user asked for.
    """

    provider: Any
    labelling: Labelling
    named: dict[ir_measures.Measure, ir_measures.Measure]


def _group_requests(
    measures: Sequence[ir_measures.Measure], fractional: pl.Series, provider: str | None
) -> Iterable[_Request]:
    """Return the calls of providers: each measure must get the value it has when asked for alone.

    Providers of ir_measures mix up the parameters of measures in one call. That of pytrec_eval computes a plain nDCG with
    the gains of another one, and NumRet with the judged_only of another measure. That of pyndeval reads the run once and
    has no rows left for a second value of a parameter. So measures share a call only if they differ just in name and cutoff.
    """
    requests: dict[tuple[Any, ...], _Request] = {}
    met: Counter[tuple[Any, ...]] = Counter()  # how many measures a provider cannot distinguish
    for measure in measures:
        asked, labelling = choose_labelling(measure, fractional)
        chosen = choose_provider(asked, provider)
        key = (chosen.NAME, labelling, _list_parameters(asked))
        same = (*key, _identify(asked))
        request = requests.setdefault((*key, met[same]), _Request(chosen, labelling, {}))
        met[same] += 1
        request.named[_cache_name(asked)] = measure
    return requests.values()


def _list_parameters(measure: ir_measures.Measure) -> tuple[tuple[str, str], ...]:
    """Return the parameters that differ from their default, except the one after @."""
    supported = measure.SUPPORTED_PARAMS
    given = {name: measure[name] for name in supported if name != measure.AT_PARAM}
    return tuple((name, repr(value)) for name, value in sorted(given.items()) if value != supported[name].default)


def _identify(measure: ir_measures.Measure) -> tuple[str | None, str]:
    """Return the name and the value after @ as the provider sees them."""
    at = measure[measure.AT_PARAM] if measure.AT_PARAM in measure.SUPPORTED_PARAMS else None
    return measure.NAME, f"{at:.2f}" if isinstance(at, float) else str(at)  # trec_eval keeps two decimals of a recall


def _cache_name(measure: ir_measures.Measure) -> ir_measures.Measure:
    """Return the measure with its name stored: ir_measures hashes the name once per value."""
    name = str(measure)
    kind = type(type(measure).__name__, (type(measure),), {"__repr__": lambda _self: name})
    made: ir_measures.Measure = kind(**measure.params)
    return made


class _Forms:
    """Labels and ranking in the forms that providers take, each made once, from columns.

    A provider converts any other form row by row in Python, which is slower.
    """

    def __init__(self, labels: pl.DataFrame, ranking: pl.DataFrame) -> None:
        self._labels = labels
        self._ranking = ranking.select(Run.columns)
        self._dicts: dict[Any, dict[str, dict[str, Any]]] = {}

    def make_qrels(self, labelling: Labelling, *, as_frame: bool) -> Any:
        labels = self._labels.with_columns(labelling.relevance)
        return labels.to_pandas() if as_frame else self._make_dict(labelling, clip_for_trec_eval(labels), "relevance")

    def make_run(self, *, as_frame: bool) -> Any:
        return self._ranking.to_pandas() if as_frame else self._make_dict(None, self._ranking, "score")

    def _make_dict(self, key: Any, frame: pl.DataFrame, value: str) -> dict[str, dict[str, Any]]:
        if key not in self._dicts:
            self._dicts[key] = to_nested_dict(frame, value)
        return self._dicts[key]


def _call_provider(request: _Request, forms: _Forms) -> Iterable[ir_measures.Metric]:
    provider = request.provider
    as_frame = provider.NAME in _AT_ONCE
    # pyndeval reads subtopics from column 2, which dicts lack
    qrels = forms.make_qrels(request.labelling, as_frame=as_frame or provider.NAME == "pyndeval")
    run = forms.make_run(as_frame=as_frame)
    try:
        return list(provider.iter_calc(list(request.named), qrels, run))
    except Exception as error:
        if provider.NAME == "runtime":  # a user's function: the user needs its traceback
            raise
        raise MeasureError(
            f"{', '.join(map(str, request.named))}: provider {provider.NAME} of ir_measures fails on this input "
            f"({type(error).__name__}: {error}); leave the measure out"
        ) from error
