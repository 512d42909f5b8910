"""Registers goodgain's measures and provider with ir_measures."""

from __future__ import annotations

import inspect
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import ir_measures
import polars as pl
from ir_measures.measures import registry
from ir_measures.providers import Evaluator, FallbackProvider, Provider

from goodgain.errors import notice
from goodgain.measures import MEASURES
from goodgain.measures.declaration import DeclaredMeasure
from goodgain.measures.families import HOSTLESS_MEASURES, SESSION_MEASURES
from goodgain.measures.parameters import read_parameters
from goodgain.measures.thresholds import warn_of_labels

if TYPE_CHECKING:
    from goodgain.formats import Qrels, Run

__all__ = ["GoodgainProvider", "register"]

_SESSION_MEASURES_OF_RUN = {
    name: declared
    for name, declared in SESSION_MEASURES.items()
    if not declared.table(read_parameters(declared.measure))
}
#: The measures that ir_measures lacks, except measures of the ledger and measures that need a table beside the run.
_FURTHER_MEASURES = HOSTLESS_MEASURES | _SESSION_MEASURES_OF_RUN


class GoodgainProvider(Provider):
    """Computes goodgain's measures in ir_measures. One call can also have measures of other providers.

    A run is a `goodgain.Run`, or any input of `goodgain.read_run` that is not a path. Pandas frames and named tuples with
    `iteration` are examples. Classic measures of the same call get the flattened ranking of a `goodgain.Run`. For any other run,
    classic measures get all rows, with repeats. goodgain's measures that score a ranking always get the flattened ranking.
    """

    NAME = "goodgain"
    #: The first place, as in `register`, if ir_measures loads entry points. Other providers begin at -10.
    PRIORITY = -11
    SUPPORTED_MEASURES = [*MEASURES.values(), *(declared.measure for declared in _FURTHER_MEASURES.values())]  # noqa: RUF012  # declared in their base class

    def supports(self, measure: ir_measures.Measure) -> bool:
        measure.validate_params()
        return isinstance(measure, DeclaredMeasure)

    def _evaluator(self, measures: Iterable[ir_measures.Measure], qrels: Any) -> GoodgainEvaluator:
        from goodgain.formats import read_qrels  # imported on first use

        declared = [measure for measure in measures if isinstance(measure, DeclaredMeasure)]
        classic = _find_classic_measures_of_call()
        _warn_of_mixed_up(classic)
        return GoodgainEvaluator(declared, classic, read_qrels(qrels))

    def run_inputs(self, measures: Iterable[ir_measures.Measure]) -> list[str]:
        """Return the names of the run's columns that the measures need."""
        return ["query_id", "doc_id", "score", "iteration"]


class GoodgainEvaluator(Evaluator):
    def __init__(
        self, measures: Sequence[ir_measures.Measure], classic: Sequence[ir_measures.Measure], qrels: Qrels
    ) -> None:
        super().__init__(measures, qrels.query_ids.to_list())
        self._classic = classic
        self._qrels = qrels

    def _iter_calc(self, run: Any) -> Iterator[ir_measures.Metric]:
        """Yield values for all queries of the qrels. For a missing value, ir_measures would use one default for all measures."""
        import narwhals as nw

        from goodgain.formats import Run
        from goodgain.formats.run_reading import load_run
        from goodgain.scoring.scoring import Scoring, notices_for

        frame = nw.from_native(run, eager_only=True, pass_through=True)
        is_empty = isinstance(frame, nw.DataFrame) and not len(frame)  # PyTerrier passes one without column types
        searched = load_run(_NO_RESULTS if is_empty else run)
        if self._classic and not isinstance(run, Run):  # classic measures of the call get the run unflattened
            _warn_of_repeats(searched)

        measures = list(self.measures)
        scoring = Scoring(self._qrels, {"": searched}, urls="keep")
        with scoring.tell():
            warn_of_labels(self._qrels.frame, measures, switch=False)
            with notices_for(measures):
                scores = scoring.score_runs(measures)[""]
            scoring.warn_of_coverage({"": scores.coverage})
            scoring.warn_of_cutoffs([] if scores.lacks_iterations else [scores.coverage], measures)

        measure_of = {str(measure): measure for measure in measures}
        for query_id, name, value in scores.per_query.iter_rows():
            # a missing pair would count as 0 in ir_measures; NaN stands for no value
            yield ir_measures.Metric(query_id, measure_of[name], math.nan if value is None else value)


def _warn_of_repeats(run: Run) -> None:
    """Give a notice if a query has several iterations: classic measures of the call read all rows."""
    import narwhals as nw

    from goodgain.ranking.dataframe_engines import collect

    rows = collect(nw.from_native(run.frame))
    numbers = rows.group_by("query_id").agg(pl.col("iteration").n_unique())
    if (numbers.get_column("iteration") > 1).any():
        notice(
            "repeats_in_classic_measures",
            "this run has several iterations: classic measures of this call read all rows, with repeats, so their "
            "values differ from goodgain.evaluate. Give ir_measures goodgain.read_run(run), or goodgain.flatten(run) "
            "for classic measures alone.",
        )


def _find_classic_measures_of_call() -> list[ir_measures.Measure]:
    """Return all measures of the current ir_measures call except goodgain's.

    ir_measures passes to a provider only the measures that the provider supports. All measures of the call are in a local
    variable of the pipeline, on the stack.
    """
    frame = inspect.currentframe()
    while frame is not None:
        if isinstance(frame.f_locals.get("self"), FallbackProvider) and "orig_measures" in frame.f_locals:
            measures = frame.f_locals["orig_measures"]
            return [measure for measure in measures if not isinstance(measure, DeclaredMeasure)]
        frame = frame.f_back
    return []


def _warn_of_mixed_up(measures: Sequence[ir_measures.Measure]) -> None:
    """Warn if ir_measures may compute a wrong value for a measure because other measures are in the same call."""
    mixed_up = [*_find_mixed_up_by_trec_eval(measures), *_find_mixed_up_by_pyndeval(measures)]
    if mixed_up:
        names = ", ".join(sorted({str(measure) for measure in mixed_up}))
        notice(
            "mixed_parameters",
            f"ir_measures mixes up the parameters of {names} in one call, and may return wrong values. Ask for each measure "
            "in its own call, or use goodgain.evaluate, which keeps them apart.",
        )


def _find_mixed_up_by_trec_eval(measures: Sequence[ir_measures.Measure]) -> list[ir_measures.Measure]:
    """Return the measures that the provider of pytrec_eval mixes up, if a call has such measures.

    The provider adds nDCG, NumRet and NumQ without parameters to any call of trec_eval. These measures then use the gains or the
    judged_only of another measure.
    """
    plain, changing = [], []
    has_gains = False
    for measure in measures:
        if measure.NAME in ("nDCG", "NumRet", "NumQ") and not measure.params.keys() - {"cutoff"}:
            plain.append(measure)
        if "gains" in measure.params or measure.params.get("judged_only"):
            changing.append(measure)
            has_gains |= "gains" in measure.params
    is_changed = any(measure.NAME == "NumRet" or has_gains for measure in plain)
    return [*plain, *changing] if changing and is_changed else []


def _find_mixed_up_by_pyndeval(measures: Sequence[ir_measures.Measure]) -> list[ir_measures.Measure]:
    """Return the diversity measures of a call if their parameters differ, apart from the cutoff.

    The provider of pyndeval reads the run from an iterator, which is exhausted for measures with other parameters.
    """
    pyndeval = ir_measures.providers.registry["pyndeval"]
    diversity = [measure for measure in measures if pyndeval.supports(measure)]
    parameters = set()
    for measure in diversity:
        values = {name: str(value) for name, value in measure.params.items() if name != "cutoff"}
        parameters.add(tuple(sorted(values.items())))
    return diversity if len(parameters) > 1 else []


_NO_RESULTS = pl.DataFrame(
    schema={"query_id": pl.String, "iteration": pl.Int64, "doc_id": pl.String, "score": pl.Float64}
)


def register() -> None:
    """Register goodgain's measures and provider with ir_measures. A second call changes nothing.

    If another package already uses the name of a measure, a notice says so, and goodgain's measure is `goodgain.NAME`.
    """
    further = {name: declared.measure for name, declared in _FURTHER_MEASURES.items()}
    for name, measure in (MEASURES | further).items():
        module = type(registry.get(name, measure)).__module__
        if module.split(".")[0] == __name__.split(".")[0]:
            registry[name] = measure
        else:
            notice("name_taken", f"ir_measures has a measure {name} of {module}; goodgain's measure is goodgain.{name}")
    if not hasattr(ir_measures, "DefaultPipeline"):
        return  # ir_measures is being imported, and will load the entry point
    pipeline = ir_measures.DefaultPipeline.providers
    pipeline[:] = [provider for provider in pipeline if provider.NAME != GoodgainProvider.NAME]
    pipeline.insert(0, ir_measures.providers.register(GoodgainProvider()))  # type: ignore[no-untyped-call]  # no types
