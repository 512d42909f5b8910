"""Classic measures, computed by ir_measures' providers on the flattened ranking: we do not rewrite nDCG."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from typing import Any, NamedTuple

import ir_measures
import polars as pl

from goodgain.errors import MeasureError
from goodgain.formats import Qrels, Run
from goodgain.formats.labels import check_levels
from goodgain.providers import check_provider, chosen_provider
from goodgain.whole_labels import Labelling, whole_labels

__all__ = ["Classic", "classic_scores"]


class Classic(NamedTuple):
    """What the hosts say of one run.

    Attributes:
        means: measure -> aggregated value, by the host's own rule (NumRet is a sum).
        per_query: query_id, measure, value; the host's own set of queries.
    """

    means: dict[ir_measures.Measure, float]
    per_query: pl.DataFrame


def classic_scores(
    measures: Sequence[ir_measures.Measure], qrels: Qrels, run: Run, *, order: str = "seen", provider: str | None = None
) -> Classic:
    """Values of ir_measures' own measures for a run, on its flattened ranking.

    Raises:
        MeasureError: no provider computes a measure, or none can with these labels or query ids.
    """
    values: dict[ir_measures.Measure, dict[str, float]] = {}
    if measures:
        ranking = run.flattened(order)
        labels = _labels(qrels, run)
        groups = _together(measures, labels, provider)
        for (host, labelling), named in groups.items():
            check_provider(host, list(named), labels, ranking)
            if labelling.rel is None and labelling.whole:
                check_levels(labels)
            for metric in _calculated(host, list(named), labels.with_columns(labelling.relevance), ranking):
                values.setdefault(named[metric.measure], {})[metric.query_id] = float(metric.value)
        if len({host.NAME for host, _ in groups}) > 1:  # as ir_measures does; Accuracy alone leaves queries out
            for query_id in sorted(set(labels.get_column("query_id"))):
                for measure in measures:
                    values.setdefault(measure, {}).setdefault(query_id, measure.DEFAULT)
    rows = [(query_id, str(measure), value) for measure in values for query_id, value in values[measure].items()]
    types = {"query_id": pl.String, "measure": pl.String, "value": pl.Float64}
    return Classic(
        {measure: _aggregated(measure, values.get(measure, {})) for measure in measures},
        pl.DataFrame(rows, schema=types, orient="row"),
    )


def _aggregated(measure: ir_measures.Measure, values: dict[str, float]) -> float:
    """By the host's own rule, and in its order: then it is the host's number to the last digit."""
    aggregator = measure.aggregator()
    for value in values.values():
        aggregator.add(value)
    return float(aggregator.result())


def _labels(qrels: Qrels, run: Run) -> pl.DataFrame:
    """query_id, doc_id, relevance, iteration: one label a document (a row for each subtopic of it).

    With labels by iteration a retrieved document has the label of its first occurrence, or none if that is unjudged (a
    later label never counts); any other has the largest.
    """
    if qrels.labels is None:
        return qrels.rows
    key = ["query_id", "doc_id"]
    firsts = run.first_iterations
    of_any = qrels.frame.filter(pl.col("iteration").is_null()).select(*key, of_any="relevance")
    of_iteration = qrels.frame.select(*key, "iteration", of_iteration="relevance")
    found = firsts.join(of_iteration, on=[*key, "iteration"], how="left").join(of_any, on=key, how="left")
    retrieved = found.select(*key, relevance=pl.coalesce("of_iteration", "of_any")).drop_nulls()
    others = qrels.largest.join(firsts, on=key, how="anti")
    return pl.concat([retrieved, others]).sort(key).with_columns(iteration=pl.lit("0"))


def _together(
    measures: Sequence[ir_measures.Measure], labels: pl.DataFrame, provider: str | None
) -> dict[tuple[Any, Labelling], dict[ir_measures.Measure, ir_measures.Measure]]:
    """Measures that one provider computes from one labelling; each maps the measure asked for to the one named."""
    groups: dict[tuple[Any, Labelling], dict[ir_measures.Measure, ir_measures.Measure]] = {}
    fractional = labels.get_column("relevance").filter(labels.get_column("relevance") % 1 != 0)
    for measure in measures:
        asked, labelling = whole_labels(measure, fractional)
        groups.setdefault((chosen_provider(asked, provider), labelling), {})[_named_once(asked)] = measure
    return groups


def _named_once(measure: ir_measures.Measure) -> ir_measures.Measure:
    """The same measure with its name at hand: ir_measures hashes the name for every value, and would make it anew."""
    name = str(measure)
    kind = type(type(measure).__name__, (type(measure),), {"__repr__": lambda _self: name})
    made: ir_measures.Measure = kind(**measure.params)
    return made


def _calculated(
    host: Any, measures: Sequence[ir_measures.Measure], labels: pl.DataFrame, ranking: pl.DataFrame
) -> list[ir_measures.Metric]:
    """Hand a provider the form it would make itself: what is made in columns here is made row by row there."""
    qrels: Any
    run: Any
    if host.NAME in ("runtime", "ranx"):
        qrels, run = labels.to_pandas(), ranking.to_pandas()
    elif host.NAME == "pyndeval":  # column 2 is the subtopic here, which a dict cannot hold
        qrels, run = labels.to_pandas(), _as_dict(ranking, "score")
    else:
        qrels, run = _as_dict(labels, "relevance"), _as_dict(ranking, "score")
    try:
        return list(host.iter_calc(measures, qrels, run))
    except (subprocess.CalledProcessError, ZeroDivisionError) as error:
        raise MeasureError(
            f"{', '.join(map(str, measures))}: provider {host.NAME} of ir_measures fails on this input ({error}); "
            "leave the measure out"
        ) from error


def _as_dict(frame: pl.DataFrame, value: str) -> dict[str, dict[str, Any]]:
    """{query_id: {doc_id: value}} in the order of the rows."""
    grouped = frame.group_by("query_id", maintain_order=True).agg("doc_id", value)
    return {query_id: dict(zip(docs, found, strict=True)) for query_id, docs, found in grouped.iter_rows()}
