"""Computes classic measures with providers of ir_measures (tools such as pytrec_eval), on the flattened ranking of a run.

Providers compute the measures that `measures/classic.py` lacks, or all classic measures if the user names a provider. Labels
are converted to a form that the provider supports. Input that a provider would score wrongly raises an error.
"""

from __future__ import annotations

import decimal
import gc
import math
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import ir_measures
import polars as pl

from goodgain.errors import MeasureError
from goodgain.formats import Run
from goodgain.formats.dicts_of_rows import to_nested_dict
from goodgain.formats.label_rules import LOWEST_LABEL, check_levels, clip_for_trec_eval
from goodgain.schema import EMPTY_DOC

#: The provider of measures that the user defined with `ir_measures.define` or `define_byquery`.
RUNTIME = "runtime"
#: Providers that need all queries in one call: a user's function may look at all of them, and ranx requires run and qrels
#: to have the same queries.
_AT_ONCE = {RUNTIME, "ranx"}
#: The largest label that gdeval.pl accepts (its MAX_JUDGMENT).
_GDEVAL_MOST = 4
#: The largest scaled label: trec_eval allocates a list of all levels up to it for every query.
_LARGEST_SCALED = 100_000


class ProvidedValues(NamedTuple):
    """The values that providers computed for one run."""

    means: dict[ir_measures.Measure, float]  # over the judged queries, as ir_measures aggregates them: NumRet is a sum
    #: query_id, measure, value for all queries of the qrels. A query that the provider omits has the measure's default value.
    per_query: pl.DataFrame
    providers: dict[str, list[ir_measures.Measure]]
    #: Measure -> its mean in ir_measures, and the number of queries of this mean: those of qrels and run together.
    means_in_ir_measures: dict[ir_measures.Measure, tuple[float, int]]

    def list_measures_with_nulls(self) -> set[str]:
        """Return the names of the measures that have no value for some query."""
        if not self.means:
            return set()
        return set(self.per_query.filter(pl.col("value").is_null()).get_column("measure"))


class ProviderScores:
    """Asks providers for the values of one run, batch by batch, and collects these values.

    `qrels` are the judgments of all queries, so that labels are converted in the same way in each batch. If `provider` is
    None, ir_measures chooses a provider for each measure.
    """

    def __init__(
        self, measures: Sequence[ir_measures.Measure], qrels: pl.DataFrame, *, provider: str | None = None
    ) -> None:
        labels = qrels.get_column("relevance")
        self._fractional = labels.filter(labels % 1 != 0).unique(maintain_order=True) if measures else labels.clear()
        self._provider = provider
        self._query_ids: list[str] = qrels.get_column("query_id").unique().sort().to_list() if measures else []
        self._at_once = False
        for measure in measures:
            with suppress(MeasureError):  # raised later, once the form of the labels is known
                self._at_once |= choose_provider(measure, provider).NAME in _AT_ONCE
        self._waiting: list[tuple[pl.DataFrame, pl.DataFrame]] = []
        self._rows: list[pl.DataFrame] = []  # all rows of the run, for the user's functions
        self._providers: dict[str, list[ir_measures.Measure]] = {}
        self._values: dict[ir_measures.Measure, dict[str, float]] = {measure: {} for measure in measures}

    def add(self, labels: pl.DataFrame, ranking: pl.DataFrame, rows: pl.DataFrame | None = None) -> None:
        """Add the labels and the flattened ranking of some queries. `rows` has all their rows, if functions need them."""
        if self._at_once:
            self._waiting.append((labels, ranking.select(Run.columns)))
            if rows is not None:
                self._rows.append(rows)
        elif not labels.is_empty():
            self._ask(labels, ranking)

    def finish(self, absent: pl.DataFrame, *, has_iterations: bool = False) -> ProvidedValues:
        """Return the values of the run. `absent` has the labels of the queries that the run lacks.

        If the run has iterations, the user's functions get all rows of the run with their iterations, not its ranking.
        """
        if self._at_once:
            labels, rankings = zip(*self._waiting, strict=True)
            rows = _list_results(pl.concat(self._rows)) if has_iterations and self._rows else None
            self._ask(pl.concat([*labels, absent]), pl.concat(rankings), rows)

        judged: dict[ir_measures.Measure, dict[str, float]] = {}
        means_in_ir_measures: dict[ir_measures.Measure, tuple[float, int]] = {}
        for measure, values in self._values.items():
            # A provider may omit a query, as Accuracy does without a relevant result.
            of_judged = {query_id: values.get(query_id, measure.DEFAULT) for query_id in self._query_ids}
            of_all = values | of_judged
            judged[measure] = of_judged
            means_in_ir_measures[measure] = _aggregate(measure, of_all), len(of_all)

        means = {measure: _aggregate(measure, values) for measure, values in judged.items()}
        types = {"query_id": pl.String, "measure": pl.String, "value": pl.Float64}
        tables = [pl.DataFrame(schema=types)]
        for measure, values in judged.items():
            columns = {"query_id": list(values), "measure": str(measure), "value": list(values.values())}
            tables.append(pl.DataFrame(columns, types))
        per_query = pl.concat(tables)
        return ProvidedValues(means, per_query, self._providers, means_in_ir_measures)

    def _ask(self, labels: pl.DataFrame, ranking: pl.DataFrame, rows: pl.DataFrame | None = None) -> None:
        """Ask the providers for the values of some queries. The user's functions get `rows`, if given, in place of the ranking."""
        ranking = ranking.select(Run.columns)

        @cache  # a provider converts any other form row by row in Python, which is slower
        def make_qrels(labelling: Labelling) -> dict[str, dict[str, Any]]:
            return to_nested_dict(clip_for_trec_eval(labels.with_columns(labelling.relevance)), "relevance")

        @cache
        def make_run() -> dict[str, dict[str, Any]]:
            return to_nested_dict(ranking, "score")

        with pause_garbage_collection():
            for request in _group_requests([*self._values], self._fractional, self._provider):
                name = request.provider.NAME
                if name in _CHECKS:
                    _CHECKS[name](list(request.named), labels, ranking)
                if request.labelling.rel is None and request.labelling.whole:
                    check_levels(labels)
                run: Any = make_run() if name not in _AT_ONCE else ranking.to_pandas()
                if name == RUNTIME and rows is not None:
                    run = rows.to_pandas()
                if name in _AT_ONCE or name == "pyndeval":  # pyndeval reads subtopics from column 2, which dicts lack
                    qrels: Any = labels.with_columns(request.labelling.relevance).to_pandas()
                else:
                    qrels = make_qrels(request.labelling)
                metrics = _call_provider(request, qrels, run)
                if name == RUNTIME:
                    _check_query_ids(metrics, {*self._query_ids, *ranking.get_column("query_id")})
                for metric in metrics:
                    self._values[request.named[metric.measure]][metric.query_id] = float(metric.value)
                computed = self._providers.setdefault(name, [])
                computed += [measure for measure in request.named.values() if measure not in computed]


def is_own_function(measure: ir_measures.Measure) -> bool:
    """Return whether the user defined the measure as a Python function."""
    return hasattr(measure, "runtime_impl")


def _list_results(rows: pl.DataFrame) -> pl.DataFrame:
    """Return the results of a run with their iterations, in the order of the run."""
    results = rows.filter(pl.col("doc_id") != EMPTY_DOC)
    results = results.sort("query_id", "iteration", "rank", maintain_order=True)
    return results.select(*Run.columns, "iteration")


def _check_query_ids(metrics: Iterable[ir_measures.Metric], query_ids: Collection[str]) -> None:
    """Raise `MeasureError` if the user's function returned a value for a query that neither the qrels nor the run have."""
    for metric in metrics:
        if metric.query_id not in query_ids:
            raise MeasureError(
                f"{metric.measure} returned a value for query {metric.query_id!r}, which neither the qrels nor the run have. "
                "Return the query ids of the run, as text."
            )


@contextmanager
def pause_garbage_collection() -> Iterator[None]:
    """Pause the garbage collector in a `with` block. Creating many objects then takes a quarter less time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _aggregate(measure: ir_measures.Measure, values: dict[str, float]) -> float:
    """Aggregate the values of queries as ir_measures does. Means use exact sums, so the order of the queries has no effect."""
    aggregator = measure.aggregator()
    has_numbers = bool(values) and all(map(math.isfinite, values.values()))
    if type(aggregator) is ir_measures.MeanAgg and has_numbers:
        return math.fsum(values.values()) / len(values)
    for _, value in sorted(values.items()):
        aggregator.add(value)
    return float(aggregator.result())


class _Request(NamedTuple):
    """One call of a provider. `named` is {measure in the call: measure as the user named it}."""

    provider: Any
    labelling: Labelling
    named: dict[ir_measures.Measure, ir_measures.Measure]


def _group_requests(
    measures: Sequence[ir_measures.Measure], fractional: pl.Series, provider: str | None
) -> Iterable[_Request]:
    """Group measures into calls of providers. Each measure gets the value that it would get in a call of its own.

    Some providers confuse the parameters of measures in one call. pytrec_eval computes a plain nDCG with the gains of another
    nDCG, and NumRet with the `judged_only` of another measure. pyndeval uses up the rows of the run for the first value of a
    parameter, and has none for a second value. So the measures of one call may differ only in name and cutoff.
    """
    requests: dict[tuple[Any, ...], _Request] = {}
    met: Counter[tuple[Any, ...]] = Counter()  # how many measures a provider cannot distinguish
    for measure in measures:
        measure_in_call, labelling = choose_labelling(measure, fractional)
        chosen = choose_provider(measure_in_call, provider)
        supported, at_name = measure_in_call.SUPPORTED_PARAMS, measure_in_call.AT_PARAM
        changed = []  # the parameters that are not defaults
        for name in sorted(supported):
            if name != at_name and measure_in_call[name] != supported[name].default:
                changed.append((name, repr(measure_in_call[name])))
        at = measure_in_call[at_name] if at_name in supported else None
        if isinstance(at, float):
            at = f"{at:.2f}"  # trec_eval keeps two decimals of a recall

        key = (chosen.NAME, labelling, tuple(changed))
        indistinct = (*key, measure_in_call.NAME, at)
        request = requests.setdefault((*key, met[indistinct]), _Request(chosen, labelling, {}))
        met[indistinct] += 1
        request.named[_cache_name(measure_in_call)] = measure
    return requests.values()


def _cache_name(measure: ir_measures.Measure) -> ir_measures.Measure:
    """Return a copy of `measure` with its name stored, because ir_measures asks for the name with each value."""
    name = str(measure)
    kind = type(type(measure).__name__, (type(measure),), {"__repr__": lambda _self: name})
    renamed: ir_measures.Measure = kind(**measure.params)
    return renamed


def _call_provider(request: _Request, qrels: Any, run: Any) -> list[ir_measures.Metric]:
    try:
        return list(request.provider.iter_calc(list(request.named), qrels, run))
    except Exception as error:
        if request.provider.NAME == RUNTIME:  # a user's function: the user needs its traceback
            raise
        raise MeasureError(
            f"{', '.join(map(str, request.named))}: provider {request.provider.NAME} of ir_measures fails on this input "
            f"({type(error).__name__}: {error}); leave the measure out"
        ) from error


def choose_provider(measure: ir_measures.Measure, provider: str | None) -> Any:
    """Return the provider that the user named, else the choice of ir_measures; raise `MeasureError` if none computes `measure`."""
    registry = ir_measures.providers.registry
    if provider is not None and provider not in registry:
        raise MeasureError(f"provider {provider!r} is unknown to ir_measures; it has {', '.join(sorted(registry))}")
    candidates = ir_measures.DefaultPipeline.providers if provider is None else [registry[provider]]
    able = [candidate for candidate in candidates if candidate.supports(measure)]
    for candidate in able:
        if candidate.is_available():
            return candidate

    name = "any provider of ir_measures" if provider is None else f"provider {provider}"
    remedy = "with these parameters; see ir-measur.es for allowed ones"
    if able:
        installs = " or ".join(candidate.install_instructions() or candidate.NAME for candidate in able)
        remedy = f"as installed here; {installs}"
    elif "rel" in measure.SUPPORTED_PARAMS and "rel" not in measure.params:
        with_rel = measure(rel=1)
        if any(candidate.supports(with_rel) for candidate in candidates):
            remedy = f"without rel, the smallest relevant label; write {with_rel}"
    raise MeasureError(f"{measure} cannot be computed by {name} {remedy}")


def _check_pytrec_eval(measures: Sequence[ir_measures.Measure], labels: pl.DataFrame, _ranking: pl.DataFrame) -> None:
    low = labels.get_column("relevance").filter(labels.get_column("relevance") < LOWEST_LABEL)
    for measure in measures if len(low) else []:
        judged_only = "judged_only" in measure.SUPPORTED_PARAMS and measure["judged_only"]
        if judged_only or measure.NAME in ("Bpref", "infAP"):
            raise MeasureError(
                f"{measure} needs to know which documents are unjudged, but the qrels have the label {low[0]:g}. trec_eval "
                "treats negative labels as unjudged, and fails below -1. Map the labels to a scale from 0."
            )
    if not any(measure.NAME == "Bpref" for measure in measures):
        return
    # bpref of trec_eval writes outside its memory for queries with only negative labels, and crashes or hangs
    below_zero = labels.group_by("query_id").agg(pl.col("relevance").max()).filter(pl.col("relevance") < 0)
    if len(below_zero):
        query_id = below_zero.get_column("query_id").sort()[0]
        raise MeasureError(
            f"Bpref: query {query_id!r} has only negative labels, and pytrec_eval crashes on it; leave Bpref out, or remove "
            "the labels of this query"
        )


def _check_gdeval(measures: Sequence[ir_measures.Measure], labels: pl.DataFrame, ranking: pl.DataFrame) -> None:
    """Raise `MeasureError` for ids and labels that gdeval cannot read.

    gdeval.pl shortens the query id S-22 to 22, merges 7 and 007, and fails on other query ids that are not numbers.
    """
    names = ", ".join(map(str, measures))
    query_ids = pl.concat([labels.get_column("query_id"), ranking.get_column("query_id")]).unique().sort()
    odd = query_ids.filter(~query_ids.str.contains(r"^(0|[1-9][0-9]{0,14})$"))
    if len(odd):
        raise MeasureError(
            f"{names}: gdeval needs numbers as query ids, not {odd[0]!r}. Number the queries; or, for exponential gain and "
            "labels up to 3, write nDCG(gains={1:1,2:3,3:7}), which goodgain computes itself."
        )
    high = labels.get_column("relevance").filter(labels.get_column("relevance") > _GDEVAL_MOST)
    if len(high):
        raise MeasureError(
            f"{names}: gdeval takes labels up to {_GDEVAL_MOST}, and the qrels have {high[0]:g}; map the labels"
        )
    doc_ids = pl.concat([labels.get_column("doc_id"), ranking.get_column("doc_id")])
    blank = doc_ids.filter(doc_ids.str.contains(r"\s"))
    if len(blank):
        raise MeasureError(f"{names}: gdeval cannot read doc_ids with blanks ({blank[0]!r}); leave the measure out")


def _check_ranx(measures: Sequence[ir_measures.Measure], labels: pl.DataFrame, ranking: pl.DataFrame) -> None:
    import pandas as pd

    names = ", ".join(map(str, measures))
    if int(pd.__version__.split(".")[0]) >= 3:
        raise MeasureError(
            f"{names}: the ranx provider of ir_measures fails under pandas {pd.__version__}; install pandas<3, or give no provider"
        )
    in_qrels, in_run = (set(frame.get_column("query_id")) for frame in (labels, ranking))
    if in_qrels != in_run:
        raise MeasureError(
            f"{names}: the ranx provider of ir_measures needs the same queries in run and qrels, and "
            f"the query {min(in_qrels ^ in_run)!r} is in only one of the two; leave out the provider"
        )


#: Provider -> the check that raises `MeasureError` for input that makes the provider crash or return a wrong value.
_CHECKS = {"pytrec_eval": _check_pytrec_eval, "gdeval": _check_gdeval, "ranx": _check_ranx}


@dataclass(frozen=True)
class Labelling:
    """How labels are converted for a provider: unchanged, binary (1 if label >= `rel`, else 0), or multiplied by `scale`."""

    rel: float | None = None
    scale: int = 1
    whole: bool = True

    @property
    def relevance(self) -> pl.Expr:
        label = pl.col("relevance")
        if self.rel is not None:
            return (label >= self.rel).cast(pl.Int64)
        return (label * self.scale).round().cast(pl.Int64) if self.whole else label


def choose_labelling(measure: ir_measures.Measure, fractional: pl.Series) -> tuple[ir_measures.Measure, Labelling]:
    """Return two things: the measure to request from a provider, and how to convert the labels for this request.

    Whole labels stay unchanged. If a label is fractional, the result depends on the measure:

    - A measure with `rel`: 1 if label >= rel, else 0.
    - Linear nDCG: the labels are multiplied by the power of ten that makes all labels whole. The value does not change.
    - A measure that the user defined as a Python function: unchanged labels.
    - Any other measure: `MeasureError` is raised.
    """
    if fractional.is_empty():
        return measure, Labelling()
    if is_own_function(measure):
        return measure, Labelling(whole=False)
    rel = measure["rel"] if "rel" in measure.SUPPORTED_PARAMS else None
    if isinstance(rel, (int, float)):
        return measure(rel=1), Labelling(rel=rel)
    if "rel" in measure.SUPPORTED_PARAMS and "rel" not in measure.params:
        return measure, Labelling(rel=1)  # the value of NumRet does not depend on labels
    if measure.NAME == "nDCG" and measure["dcg"] == "log2" and "gains" not in measure.params:
        return measure, Labelling(scale=_find_scale(measure, fractional))
    raise MeasureError(
        f"{measure} needs whole labels, and the qrels have the label {fractional[0]:.15g}; "
        "round the labels, or ask for linear nDCG, good-gain measures, or measures with rel="
    )


def _find_scale(measure: ir_measures.Measure, fractional: pl.Series) -> int:
    decimals = {label: -int(decimal.Decimal(repr(label)).as_tuple().exponent) for label in fractional.unique()}
    scale: int = 10 ** max(decimals.values())
    if scale * max(map(abs, decimals)) > _LARGEST_SCALED:
        raise MeasureError(
            f"{measure}: the label {max(decimals, key=lambda label: decimals[label])!r} has too many decimals for "
            "trec_eval; round the labels to three decimals"
        )
    return scale
