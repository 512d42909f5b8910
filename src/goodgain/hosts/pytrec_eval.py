"""A `RelevanceEvaluator` with the interface of pytrec_eval, for trec_eval's and goodgain's measures.

pytrec_eval is compiled C, and measures cannot be added to it. `RelevanceEvaluator` calls pytrec_eval for trec_eval's measures,
and computes goodgain's measures itself.
"""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pytrec_eval

from goodgain.formats import read_qrels
from goodgain.formats.dicts_of_rows import to_nested_dict
from goodgain.formats.run_reading import load_run
from goodgain.measures.declaration import GoodGainMeasure
from goodgain.measures.families import HOST_NAMES
from goodgain.measures.ledger_values import final_values
from goodgain.measures.thresholds import find_thresholds
from goodgain.scoring.scoring import Scoring

__all__ = ["RelevanceEvaluator", "compute_aggregated_measure", "supported_measures", "supported_nicknames"]

#: The names of pytrec_eval's and goodgain's measures.
supported_measures: frozenset[str] = frozenset(pytrec_eval.supported_measures) | frozenset(HOST_NAMES)
supported_nicknames: Mapping[str, Any] = pytrec_eval.supported_nicknames

#: A name with its cutoffs: sre, sre_3, sre.3, sre_1,2,3.
_NAME = re.compile(r"(?P<name>[a-z_]+?)([._](?P<cutoffs>[0-9]+(,[0-9]+)*))?")


class RelevanceEvaluator:
    """Scores runs on measures of trec_eval and goodgain, such as `ndcg_cut_10`, `recip_rank`, `sre_3` and `srr`.

    The number in `sre_3` is a cutoff in iterations. `sre` is the value at the last iteration of each query.

    Args:
        query_relevance: {query_id: {doc_id: label}}, or any input of `goodgain.read_qrels`.
        measures: names and nicknames of pytrec_eval, and names of goodgain.
        relevance_level: the smallest relevant label for trec_eval's measures.
        judged_docs_only_flag: whether trec_eval's measures leave out unjudged documents.
        rel: the smallest good label for goodgain's measures. None: the default of each measure, mostly 2.

    Raises:
        InputError: the qrels cannot be read, or measures of trec_eval cannot use a fractional label.
        MeasureError: a parameter of a measure is wrong.
        ValueError: from pytrec_eval, for an unknown name.

    >>> import polars as pl
    >>> run = pl.DataFrame({"query_id": "q1", "iteration": [1, 2], "doc_id": ["d2", "d1"]})
    >>> RelevanceEvaluator({"q1": {"d1": 3}}, {"recip_rank", "sre", "cg_1"}).evaluate(run)
    {'q1': {'recip_rank': 0.5, 'cg_1': 0.0, 'sre': 0.5}}
    """

    def __init__(
        self,
        query_relevance: Any,
        measures: Iterable[str],
        relevance_level: int = 1,
        judged_docs_only_flag: bool = False,
        *,
        rel: float | None = None,
    ) -> None:
        names = sorted([measures] if isinstance(measures, str) else measures)
        self._qrels = read_qrels(query_relevance)
        self._rel = rel
        self._measures: dict[str, GoodGainMeasure] = {}  # those of goodgain, by their names in the result
        classic_names = set()
        for name in names:
            parsed = _parse_name(name, rel)
            self._measures.update(parsed)
            if not parsed:
                classic_names.add(name)

        self._classic = None
        if classic_names:
            frame = self._qrels.host_frame.unique(["query_id", "doc_id"], maintain_order=True)
            labels = to_nested_dict(frame, "relevance")
            self._classic = pytrec_eval.RelevanceEvaluator(
                labels, classic_names, relevance_level, judged_docs_only_flag
            )

    def evaluate(self, scores: Any) -> dict[str, dict[str, float]]:
        """Return the values of a run.

        Args:
            scores: {query_id: {doc_id: score}} (one iteration), or any input of `goodgain.read_run`. trec_eval's measures
                get the flattened ranking.

        Returns:
            {query_id: {measure: value}}. goodgain's measures have values for every query of the qrels. trec_eval's measures
            have values only for queries that are in both the qrels and the run.

        Raises:
            InputError: the run cannot be read.
        """
        source = scores if isinstance(scores, Mapping) else load_run(scores)
        values: dict[str, dict[str, float]] = {}
        if self._classic is not None:
            ranking = source if isinstance(source, Mapping) else to_nested_dict(source.flatten(), "score")
            values = self._classic.evaluate(ranking)

        if self._measures:
            measures = list(self._measures.values())
            scoring = Scoring(self._qrels, {"": source}, urls="keep", rel=self._rel)
            with scoring.tell():
                scoring.check_labels(measures)
                counts = scoring.count_runs(find_thresholds(measures))
                scoring.warn_of_counts(counts, measures)
            for query_id, *row in final_values(measures, counts[""]).iter_rows():
                values_of_query = values.setdefault(query_id, {})
                for name, value in zip(self._measures, row, strict=True):
                    if value is not None:
                        values_of_query[name] = value
        return values


def compute_aggregated_measure(measure: str, values: Sequence[float]) -> float:
    """Return the mean for goodgain's measures. For all other measures, return the aggregate of pytrec_eval.

    >>> compute_aggregated_measure("num_dup_3", [2.0, 4.0]), compute_aggregated_measure("num_ret", [2.0, 4.0])
    (3.0, 6.0)
    """
    if _parse_name(measure, None):
        return math.fsum(values) / len(values)
    return float(pytrec_eval.compute_aggregated_measure(measure, list(values)))


def _parse_name(name: str, rel: float | None) -> dict[str, GoodGainMeasure]:
    """Return a dict {name in the result: measure of goodgain}, empty if `name` is a measure of trec_eval."""
    parts = _NAME.fullmatch(name)
    if parts is None or parts["name"] not in HOST_NAMES:
        return {}
    base = HOST_NAMES[parts["name"]]
    if base.declaration.uses_rel and rel is not None:
        base = base(rel=rel)
    if parts["cutoffs"] is None:
        base.validate_params()
        return {name: base}
    return {f"{parts['name']}_{int(cutoff)}": base(cutoff=int(cutoff)) for cutoff in parts["cutoffs"].split(",")}
