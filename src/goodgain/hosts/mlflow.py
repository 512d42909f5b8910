"""A scorer of traces for `mlflow.genai.evaluate`, and a function that logs comparisons as MLflow runs."""

import json
import re
from contextlib import nullcontext
from typing import Any

import polars as pl

from goodgain.analysis.comparing.comparison import Comparison
from goodgain.errors import InputError, import_extra
from goodgain.hosts.trace_scorer import TraceScorer
from goodgain.measures.names import Measures

__all__ = ["log_comparison", "metric_name", "scorer"]


def metric_name(measure: str) -> str:
    """Return the name of a measure in MLflow: `_at_` replaces @, and underscores replace other special characters.

    >>> metric_name("nCG@3"), metric_name("nCG(rel=1)@3")
    ('nCG_at_3', 'nCG_rel_1_at_3')
    """
    return re.sub(r"[^\w.-]+_*", "_", measure.replace("@", "_at_")).strip("_")


def scorer(qrels: Any, measures: Measures, *, rel: float | None = None, **options: Any) -> Any:
    """Return a scorer for `mlflow.genai.evaluate(data=traces, scorers=[...])`. Each trace gets one feedback per measure.

    The RETRIEVER and TOOL spans of a trace are searches. The query id is the first `query_id` in this order: tags,
    `inputs`, `expectations`, metadata. Without a `query_id`, the query id may be a `question_id` or the session. If the
    searches of a trace cannot be read, or the query has no judgments, the feedback is an error. Means are over the traces
    without an error.

    Args:
        qrels: any input of `goodgain.read_qrels`.
        measures: as in `goodgain.evaluate`.
        rel: the smallest good label, as in `goodgain.evaluate`.
        options: options of `goodgain.read_traces`, such as `tools` (the search tools) or `iteration` (the unit of an iteration).

    Raises:
        InputError: MLflow is not installed, the qrels cannot be read, or an option is wrong.
        MeasureError: a measure is unknown.
    """
    host = import_extra("mlflow.genai.scorers", "mlflow")
    entities = import_extra("mlflow.entities", "mlflow")
    ids = "the tags query_id of the traces"
    scoring = TraceScorer(qrels, measures, format="mlflow", query_ids_are=ids, rel=rel, **options)

    def goodgain(inputs: Any, expectations: Any, trace: Any) -> list[Any]:
        record = json.loads(trace.to_json())
        kinds = [str(span["attributes"].get("mlflow.spanType")) for span in record["data"]["spans"]]
        if len(kinds) == 1 and not re.search("RETRIEVER|TOOL", kinds[0]):
            raise InputError(
                "the trace is one span without a search: MLflow makes such a trace from inputs and outputs. Evaluate traces of the "
                "agent, and trace the search tool: @mlflow.trace(span_type='RETRIEVER')"
            )

        for fields in (inputs, expectations):
            if isinstance(fields, dict) and "query_id" in fields:
                tags = record["info"].setdefault("tags", {})
                tags.setdefault("query_id", str(fields["query_id"]))

        scores = scoring.score(json.dumps(record).encode())
        metadata = {"signature": json.dumps(scores.signature), "notes": "\n".join(scores.notes)}
        return [
            entities.Feedback(
                name=metric_name(measure),
                value=value,
                error="the value is not finite" if value is None else None,
                rationale=scores.explanation,
                metadata=metadata,
            )
            for measure, value in scores.values.items()
        ]

    return host.scorer(goodgain, name="goodgain")


def log_comparison(comparison: Comparison, curve: pl.DataFrame | None = None) -> None:
    """Log a comparison to the active MLflow run, or to a new run if none is active. Each system has a nested run.

    The nested run of a system has the mean of each measure as a metric. `curve` adds the mean at every iteration, with the
    iteration as the step. MLflow draws the curves of all systems in one chart.

    Args:
        comparison: a result of `goodgain.compare`, logged as `comparison.md` and `comparison.json`.
        curve: a result of `goodgain.curve` for the same systems, also logged as the picture `curve.png`.

    Raises:
        InputError: MLflow is not installed, or `curve` has no column `iteration`.
    """
    mlflow = import_extra("mlflow", "mlflow")
    if curve is not None and "iteration" not in curve.columns:
        raise InputError("curve= takes means by iteration; call goodgain.curve without over=")

    with nullcontext() if mlflow.active_run() else mlflow.start_run(run_name="comparison"):
        for form, name in (("markdown", "comparison.md"), ("json", "comparison.json")):
            mlflow.log_text(comparison.to_text(form), name)
        if curve is not None:
            from goodgain.analysis.reporting.plots.pictures import draw_curves

            mlflow.log_figure(draw_curves(curve), "curve.png")
        for (system,), means in comparison.means.group_by("system", maintain_order=True):
            with mlflow.start_run(run_name=str(system), nested=True):
                values = means.drop_nulls("mean").select("measure", "mean").iter_rows()
                mlflow.log_metrics({metric_name(measure): mean for measure, mean in values})
                if curve is not None:
                    points = curve.filter(system=system).drop_nulls("mean")
                    for measure, mean, iteration in points.select("measure", "mean", "iteration").iter_rows():
                        mlflow.log_metric(metric_name(measure), mean, step=iteration)
