"""ir_measures: our measures in its registry, computed by a provider of ours in its pipeline."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import ir_measures
import narwhals as nw
import polars as pl
from ir_measures.measures import registry
from ir_measures.providers import Evaluator, Provider

from goodgain.declaring import GoodGainMeasure
from goodgain.errors import notice
from goodgain.evaluation import counted, good_gain_scores
from goodgain.formats import Qrels, read_qrels, read_run
from goodgain.measures import MEASURES
from goodgain.scoring import thresholds

__all__ = ["GoodgainProvider", "register"]


class GoodgainProvider(Provider):
    """Computes the good-gain measures for ir_measures, mixed with any other measure in one call.

    A run is a `goodgain.Run`, or anything `goodgain.read_run` takes but a path: a pandas frame or named tuples with an
    `iteration`. The classic measures of the same call see such a frame as it is, repeats and all; a `goodgain.Run` shows
    them its flattened ranking.
    """

    NAME = "goodgain"
    SUPPORTED_MEASURES = list(MEASURES.values())  # noqa: RUF012  # declared in their base class

    def supports(self, measure: ir_measures.Measure) -> bool:
        """Whether the measure is one of ours."""
        measure.validate_params()
        return isinstance(measure, GoodGainMeasure)

    def _evaluator(self, measures: Iterable[ir_measures.Measure], qrels: Any) -> GoodgainEvaluator:
        ours = [measure for measure in measures if isinstance(measure, GoodGainMeasure)]
        return GoodgainEvaluator(ours, read_qrels(qrels))

    def run_inputs(self, measures: Iterable[ir_measures.Measure]) -> list[str]:
        """The columns of a run our measures need."""
        return ["query_id", "doc_id", "score", "iteration"]


class GoodgainEvaluator(Evaluator):
    """Scores runs against one qrels."""

    def __init__(self, measures: list[GoodGainMeasure], qrels: Qrels) -> None:
        super().__init__(measures, qrels.frame.get_column("query_id").unique().to_list())
        self._measures = measures
        self._qrels = qrels

    def _iter_calc(self, run: Any) -> Iterator[ir_measures.Metric]:
        """Every (measure, query of the qrels): a default for absent queries would be wrong for some measures."""
        searched = read_run(_NOTHING if _has_no_rows(run) else run)
        values = good_gain_scores(self._measures, searched, counted(self._qrels, searched, thresholds(self._measures)))
        query_ids = values.get_column("query_id").to_list()
        for measure in self._measures:
            for query_id, value in zip(query_ids, values.get_column(str(measure)).to_list(), strict=True):
                yield ir_measures.Metric(query_id=query_id, measure=measure, value=value)


#: A run without results.
_NOTHING = pl.DataFrame(schema={"query_id": pl.String, "iteration": pl.Int64, "doc_id": pl.String, "score": pl.Float64})


def _has_no_rows(run: Any) -> bool:
    """Whether this is a frame without rows, as PyTerrier gives for queries outside all batches: its columns have no types."""
    frame = nw.from_native(run, eager_only=True, pass_through=True)
    return isinstance(frame, nw.DataFrame) and not len(frame)


def register() -> None:
    """Put our measures and their provider into ir_measures; doing it again changes nothing.

    A name that somebody else has taken stays theirs, with a notice; ours is then `goodgain.NAME`.
    """
    for name, measure in MEASURES.items():
        taken = registry.get(name)
        if taken is None or _is_ours(taken):
            registry[name] = measure
        else:
            notice(f"ir_measures has a measure {name} of {type(taken).__module__}; ours is goodgain.{name}")
    pipeline = ir_measures.DefaultPipeline.providers
    pipeline[:] = [provider for provider in pipeline if provider.NAME != GoodgainProvider.NAME]
    pipeline.insert(0, ir_measures.providers.register(GoodgainProvider()))  # type: ignore[no-untyped-call]  # theirs


def _is_ours(measure: ir_measures.Measure) -> bool:
    return type(measure).__module__.split(".")[0] == __name__.split(".")[0]
