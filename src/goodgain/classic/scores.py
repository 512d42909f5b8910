"""Classic measures, computed by ir_measures' providers on the flattened ranking: we do not rewrite nDCG."""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import ir_measures
import polars as pl

from goodgain.classic.providers import check_provider, chosen_provider
from goodgain.classic.whole_labels import Labelling, whole_labels
from goodgain.errors import MeasureError
from goodgain.formats import Run
from goodgain.formats.labels import check_levels, clip_for_trec_eval

__all__ = ["Classic", "HostScores"]


#: Providers that may look at all queries to score one: a function of the user's own, and ranx, which wants them all.
_AT_ONCE = {"runtime", "ranx"}


class Classic(NamedTuple):
    """What the hosts say of one run.

    Attributes:
        means: measure -> aggregated value, by the host's own rule (NumRet is a sum).
        per_query: query_id, measure, value; all queries of the qrels, those the host leaves out at the measure's default.
        hosts: provider -> the measures that it computed.
    """

    means: dict[ir_measures.Measure, float]
    per_query: pl.DataFrame
    hosts: dict[str, list[ir_measures.Measure]]


class HostScores:
    """Values of ir_measures' own measures for a run that comes in batches of whole queries, on its flattened ranking.

    Args:
        measures: any of theirs.
        query_ids: all queries of the qrels.
        provider: the one to ask; None leaves it to ir_measures.
    """

    def __init__(
        self, measures: Sequence[ir_measures.Measure], query_ids: Iterable[str], *, provider: str | None = None
    ) -> None:
        self._provider = provider
        self._query_ids = sorted(query_ids)
        self._at_once = any(_takes_all(measure, provider) for measure in measures)
        self._waiting: list[tuple[pl.DataFrame, pl.DataFrame]] = []
        self._hosts: dict[str, list[ir_measures.Measure]] = {}
        self._values: dict[ir_measures.Measure, dict[str, float]] = {measure: {} for measure in measures}

    def add(self, labels: pl.DataFrame, ranking: pl.DataFrame) -> None:
        """Take the values of some queries.

        Args:
            labels: query_id, doc_id, relevance, iteration, as `QrelsByQuery` gives them.
            ranking: query_id, doc_id, score.

        Raises:
            MeasureError: no provider computes a measure, or none can with these labels or query ids.
        """
        if self._at_once:
            self._waiting.append((labels, ranking.select(Run.columns)))
        elif not labels.is_empty():
            self._ask(labels, ranking)

    def finish(self, rest: pl.DataFrame) -> Classic:
        """Return what the hosts say of the run.

        Args:
            rest: the labels of the queries that the run lacks.

        Raises:
            MeasureError: as `add`.
        """
        if self._at_once:
            labels, rankings = zip(*self._waiting, strict=True)
            self._ask(pl.concat([*labels, rest]), pl.concat(rankings))
        for measure, values in self._values.items():
            for (
                query_id
            ) in self._query_ids:  # a provider may leave queries out: Accuracy, where nothing relevant was found
                values.setdefault(query_id, measure.DEFAULT)
        means = {measure: _aggregate(measure, values) for measure, values in self._values.items()}
        return Classic(means, _per_query(self._values), self._hosts)

    def _ask(self, labels: pl.DataFrame, ranking: pl.DataFrame) -> None:
        with _no_search_for_cycles():
            for host, measure, query_id, value in _metrics([*self._values], labels, ranking, self._provider):
                self._values[measure][query_id] = value
                if measure not in self._hosts.setdefault(host, []):
                    self._hosts[host].append(measure)


@contextmanager
def _no_search_for_cycles() -> Iterator[None]:
    """Millions of ids and numbers in dicts hold no cycle, and Python would look through them again and again: a quarter
    of the time of a large run."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _takes_all(measure: ir_measures.Measure, provider: str | None) -> bool:
    try:
        return chosen_provider(measure, provider).NAME in _AT_ONCE
    except MeasureError:
        return False  # said when it is asked for with the labels it can have


def _metrics(
    measures: Sequence[ir_measures.Measure], labels: pl.DataFrame, ranking: pl.DataFrame, provider: str | None
) -> Iterator[tuple[str, ir_measures.Measure, str, float]]:
    """What the providers say: provider, measure, query, value."""
    forms = _Forms(labels, ranking)
    for request in _requests(measures, labels, provider):
        check_provider(request.host, list(request.named), labels, ranking)
        if request.labelling.rel is None and request.labelling.whole:
            check_levels(labels)
        for metric in _calculated(request, forms):
            yield request.host.NAME, request.named[metric.measure], metric.query_id, float(metric.value)


def _aggregate(measure: ir_measures.Measure, values: dict[str, float]) -> float:
    """By the host's own rule, and in its order: then it is the host's number to the last digit."""
    aggregator = measure.aggregator()
    for value in values.values():
        aggregator.add(value)
    return float(aggregator.result())


def _per_query(values: Mapping[ir_measures.Measure, Mapping[str, float]]) -> pl.DataFrame:
    types = {"query_id": pl.String, "measure": pl.String, "value": pl.Float64}
    columns = [
        pl.DataFrame(
            {"query_id": list(found), "measure": [str(measure)] * len(found), "value": list(found.values())}, types
        )
        for measure, found in values.items()
    ]
    return pl.concat(columns) if columns else pl.DataFrame(schema=types)


class _Request(NamedTuple):
    """One call of a provider.

    Attributes:
        host: the provider.
        labelling: how the labels reach it.
        named: the measure to ask it for -> the measure that the user asked for.
    """

    host: Any
    labelling: Labelling
    named: dict[ir_measures.Measure, ir_measures.Measure]


def _requests(
    measures: Sequence[ir_measures.Measure], labels: pl.DataFrame, provider: str | None
) -> Iterable[_Request]:
    """The calls that give every measure the value it has alone.

    Providers of ir_measures mix up the parameters of measures in one call: pytrec_eval's computes a plain nDCG with the
    gains of another, and NumRet with another's judged_only; pyndeval's reads the run once and has nothing left for a
    second value of a parameter. So measures share a call only if they differ in nothing but name and cutoff.
    """
    requests: dict[tuple[Any, ...], _Request] = {}
    fractional = labels.get_column("relevance").filter(labels.get_column("relevance") % 1 != 0)
    for measure in measures:
        asked, labelling = whole_labels(measure, fractional)
        host = chosen_provider(asked, provider)
        key = (host.NAME, labelling, _parameters(asked))
        further = 0
        while _is_taken(requests.get((*key, further)), asked):
            further += 1
        request = requests.setdefault((*key, further), _Request(host, labelling, {}))
        request.named[_named_once(asked)] = measure
    return requests.values()


def _parameters(measure: ir_measures.Measure) -> tuple[tuple[str, str], ...]:
    """The parameters that are not at their default, without the one after @."""
    supported = measure.SUPPORTED_PARAMS
    given = {name: measure[name] for name in supported if name != measure.AT_PARAM}
    return tuple((name, repr(value)) for name, value in sorted(given.items()) if value != supported[name].default)


def _is_taken(request: _Request | None, measure: ir_measures.Measure) -> bool:
    """Whether a call has a measure that the provider could not tell from this one."""
    return request is not None and any(_host_name(other) == _host_name(measure) for other in request.named)


def _host_name(measure: ir_measures.Measure) -> tuple[str | None, str]:
    at = measure[measure.AT_PARAM] if measure.AT_PARAM in measure.SUPPORTED_PARAMS else None
    return measure.NAME, f"{at:.2f}" if isinstance(at, float) else str(at)  # trec_eval has two decimals of a recall


def _named_once(measure: ir_measures.Measure) -> ir_measures.Measure:
    """The same measure with its name at hand: ir_measures hashes the name for every value, and would make it anew."""
    name = str(measure)
    kind = type(type(measure).__name__, (type(measure),), {"__repr__": lambda _self: name})
    made: ir_measures.Measure = kind(**measure.params)
    return made


class _Forms:
    """Labels and ranking in the forms that providers would make themselves, row by row; a dict is made once for all."""

    def __init__(self, labels: pl.DataFrame, ranking: pl.DataFrame) -> None:
        self._labels = labels
        self._ranking = ranking.select(Run.columns)
        self._dicts: dict[Any, dict[str, dict[str, Any]]] = {}

    def qrels_frame(self, labelling: Labelling) -> Any:
        return self._labels.with_columns(labelling.relevance).to_pandas()

    def qrels(self, labelling: Labelling) -> dict[str, dict[str, Any]]:
        frame = clip_for_trec_eval(self._labels.with_columns(labelling.relevance))
        return self._dict(labelling, frame, "relevance")

    def run(self, *, as_frame: bool) -> Any:
        return self._ranking.to_pandas() if as_frame else self._dict(None, self._ranking, "score")

    def _dict(self, key: Any, frame: pl.DataFrame, value: str) -> dict[str, dict[str, Any]]:
        if key not in self._dicts:
            self._dicts[key] = _as_dict(frame, value)
        return self._dicts[key]


def _calculated(request: _Request, forms: _Forms) -> Iterable[ir_measures.Metric]:
    """Hand a provider the form it would make itself: what is made in columns here is made row by row there."""
    host, labelling = request.host, request.labelling
    frames = host.NAME in _AT_ONCE
    qrels = (
        forms.qrels_frame(labelling)  # column 2 is pyndeval's subtopic
        if frames or host.NAME == "pyndeval"
        else forms.qrels(labelling)
    )
    run = forms.run(as_frame=frames)
    if host.NAME == "runtime":  # a function of the user's own: its errors are for its author to see
        return list(host.iter_calc(list(request.named), qrels, run))
    try:
        return list(host.iter_calc(list(request.named), qrels, run))
    except Exception as error:
        raise MeasureError(
            f"{', '.join(map(str, request.named))}: provider {host.NAME} of ir_measures fails on this input "
            f"({type(error).__name__}: {error}); leave the measure out"
        ) from error


def _as_dict(frame: pl.DataFrame, value: str) -> dict[str, dict[str, Any]]:
    """{query_id: {doc_id: value}} in the order of the rows."""
    queries = frame.get_column("query_id").rle().struct.unnest()
    if not queries.get_column("value").is_unique().all():
        first = frame.with_row_index("row").select(pl.col("row").min().over("query_id")).to_series()
        return _as_dict(frame.sort(first, maintain_order=True), value)
    doc_ids, values = frame.get_column("doc_id").to_list(), frame.get_column(value).to_list()
    ends = queries.get_column("len").cum_sum()
    return {
        query_id: dict(zip(doc_ids[end - length : end], values[end - length : end], strict=True))
        for length, query_id, end in zip(queries.get_column("len"), queries.get_column("value"), ends, strict=True)
    }
