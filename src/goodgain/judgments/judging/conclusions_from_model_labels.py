"""Compares conclusions from a model's labels with those from people's labels: system order, means, differences."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import ir_measures
import numpy as np
import polars as pl

from goodgain.counting.run_opening import check_systems
from goodgain.errors import InputError, MeasureError, Subject, count_of, joined_notices, notices_about
from goodgain.files.bad_rows import quote
from goodgain.formats import Qrels
from goodgain.formats.qrels import load_qrels
from goodgain.judgments.judging.documents_to_judge import WHOLE, pool
from goodgain.judgments.judging.judge_agreement import bootstrap_interval
from goodgain.measures.names import find_direction, parse_measures
from goodgain.measures.thresholds import warn_of_labels
from goodgain.scoring.scoring import Scoring, notices_for

#: The fewest systems for a rank correlation.
FEWEST_SYSTEMS = 5
#: The fewest queries judged by people for an interval.
FEWEST_QUERIES = 30


@dataclass(frozen=True)
class OrderAgreement:
    """How well the order of systems under a model's labels agrees with the order under people's labels.

    Attributes:
        means: a frame with system, human (mean under people's labels, best first) and model (mean under the model's labels).
        tau: Kendall's tau-b over all systems; None if undefined, for example if all systems tie.
        tau_top: tau-b over the better half of the systems by people's labels.
        tau_ap: the AP correlation, where a swap of two systems counts more near the top than further down.
        intervals: a dict {name of a correlation: 95 % bootstrap interval (low, high) over queries, None if undefined}.
    """

    means: pl.DataFrame
    tau: float | None
    tau_top: float | None
    tau_ap: float | None
    intervals: dict[str, tuple[float, float] | None]


@dataclass(frozen=True)
class PoweredEstimate:
    """A mean or a difference of means, estimated from people's and a model's labels.

    Attributes:
        human: (estimate, low, high) from people's labels alone.
        powered: the prediction-powered (estimate, low, high) from people's and the model's labels.
        weight: how much the model's labels count, from 0 to 1.
        queries: the number of queries that people judged.
        further: the number of queries that only the model judged.
        confidence: the level of both intervals.
    """

    human: tuple[float, float, float]
    powered: tuple[float, float, float]
    weight: float
    queries: int
    further: int
    confidence: float


def compare_orders(human: Any, model: Any, runs: Mapping[str, Any], measure: Any) -> OrderAgreement:
    """Compare the order of systems under people's labels with their order under a model's labels.

    A query is used only if people and the model both judged it.

    Args:
        human: people's labels, as any input of `read_qrels`.
        model: the model's labels.
        runs: {name: any input of `read_run`}, for five systems or more.
        measure: one measure. If lower values are better, the lowest mean comes first.

    Raises:
        InputError: there are fewer than five systems, or people and the model judged no query in common.
        MeasureError: several measures are given, or a system has no value in a query.

    Source: Kendall 1945 (tau-b); Yilmaz, Aslam and Robertson, SIGIR 2008 (tau-AP).
    """
    compared_measure = _read_measure(measure)
    systems = check_systems(runs)
    if len(systems) < FEWEST_SYSTEMS:
        raise InputError(
            f"the order of {count_of(len(systems), 'system')} is not compared: a rank correlation needs at least "
            f"{FEWEST_SYSTEMS} systems. Compare two systems by their difference"
        )
    labels_of_people, labels_of_model = load_qrels(human), load_qrels(model)
    shared = sorted({*labels_of_people.query_ids} & {*labels_of_model.query_ids})
    if not shared:
        raise InputError("people and the model judged no query in common. Give labels of the same queries")

    with joined_notices():
        by_system = []
        for name, run in systems.items():
            (by_people,) = _score(labels_of_people, name, run, [compared_measure], shared)
            (by_model,) = _score(labels_of_model, name, run, [compared_measure], shared)
            by_system.append([by_people, by_model])
    sign = -1 if find_direction(compared_measure) == "down" else 1
    values = sign * np.asarray(by_system)  # axes: system, people or model, query

    rows = []
    for name, (by_people, by_model) in zip(systems, values.tolist(), strict=True):
        rows.append((name, math.fsum(by_people) / len(shared), math.fsum(by_model) / len(shared)))
    means = pl.DataFrame(rows, schema=["system", "human", "model"], orient="row")
    means = means.sort("human", "system", descending=[True, False])

    correlations = {"tau": _tau_b, "tau_top": _tau_top, "tau_ap": _tau_ap}
    means_of_both = np.concatenate([means.get_column("human").to_numpy(), means.get_column("model").to_numpy()])
    by_query = values.transpose(2, 1, 0).reshape(len(shared), -1)  # a row per query: people's values, then the model's
    return OrderAgreement(
        means.with_columns(pl.col("human", "model") * sign),
        **{name: correlate(means_of_both) for name, correlate in correlations.items()},
        intervals={name: bootstrap_interval(by_query, correlate) for name, correlate in correlations.items()},
    )


def estimate_difference(
    human: Any, model: Any, runs: Mapping[str, Any], measure: Any, *, confidence: float = 0.95
) -> PoweredEstimate:
    """Estimate the difference of two systems, the first minus the second, with a prediction-powered interval.

    People judged n random queries. The model judged these n queries and N further queries. In each query, the difference is h
    under people's labels and f under the model's labels. With w = clip(cov_n(h, f) / ((1 + n/N) var(f)), 0, 1), the estimate
    is mean_n(h) + w (mean_N(f) - mean_n(f)). The squared error of the estimate is w^2 var_N(f)/N + var_n(h - w f)/n, with
    n - 1 degrees of freedom.

    Args:
        human: people's labels for n queries. All documents of both runs need a label in these queries.
        model: the model's labels for n + N queries.
        runs: {name: any input of `read_run`}, for two systems.
        measure: one measure.
        confidence: the level of the interval, above 0 and below 1.

    Raises:
        InputError: the number of systems is not two, people judged fewer than 30 queries, people's labels of a query are
            not complete, or the confidence is out of range.
        MeasureError: several measures are given, or a system has no value in a query.

    Source: Angelopoulos, Duchi and Zrnic, 2023 (PPI++).
    """
    compared_measure = _read_measure(measure)
    systems = check_systems(runs)
    if len(systems) != 2:
        raise InputError(f"the difference of two systems needs two runs, not {len(systems)}")
    by_people, by_model, further = _score_both(human, model, systems, [compared_measure], confidence)
    # axes: system, measure, query
    return compute_intervals(
        by_people[0][0] - by_people[1][0],
        by_model[0][0] - by_model[1][0],
        further[0][0] - further[1][0],
        confidence=confidence,
    )


def estimate_means(
    human: Any, model: Any, run: Any, measures: Any, *, confidence: float = 0.95
) -> dict[str, PoweredEstimate]:
    """Estimate the means of one system from people's and a model's labels, with prediction-powered intervals.

    The formula is that of `estimate_difference`, with the values of one system in place of the differences of two systems.

    Args:
        human: people's labels for n random queries. All documents of the run need a label in these queries.
        model: the model's labels for these queries and for further queries.
        run: any input of `read_run`.
        measures: as in `evaluate`.
        confidence: the level of the intervals, above 0 and below 1.

    Returns:
        A dict {name of a measure: estimate of the mean}.

    Raises:
        InputError: people judged fewer than 30 queries, people's labels of a query are not complete, or the confidence is
            out of range.
        MeasureError: a measure has no value in a query.

    Source: Angelopoulos, Duchi and Zrnic, 2023 (PPI++).
    """
    parsed = parse_measures(measures)
    systems = check_systems({str(getattr(run, "name", None) or "the run"): run})
    (by_people,), (by_model,), (further,) = _score_both(human, model, systems, parsed, confidence)
    estimates = {}
    for place, measure in enumerate(parsed):
        values = by_people[place], by_model[place], further[place]
        estimates[str(measure)] = compute_intervals(*values, confidence=confidence)
    return estimates


def _score_both(
    human: Any, model: Any, systems: Mapping[str, Any], measures: list[ir_measures.Measure], confidence: float
) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Return three arrays with the axes system, measure, query.

    They have the values under people's labels, and under the model's labels of the same queries and of further queries.
    """
    if not isinstance(confidence, (int, float)) or not 0 < confidence < 1:
        raise InputError(f"confidence={confidence!r}: give a number above 0 and below 1, such as 0.95")
    labels_of_people, labels_of_model = load_qrels(human), load_qrels(model)
    judged = sorted({*labels_of_people.query_ids} & {*labels_of_model.query_ids})
    further = sorted({*labels_of_model.query_ids} - {*labels_of_people.query_ids})
    if len(judged) < FEWEST_QUERIES:
        queries = count_of(len(judged), "query", "queries")
        raise InputError(
            f"people and the model both judged {queries}; a valid interval needs {FEWEST_QUERIES}. "
            "Have more queries judged, drawn at random (goodgain pool --sample-queries)"
        )

    unjudged = pool(systems, k=WHOLE, qrels=labels_of_people, urls="keep").filter(pl.col("query_id").is_in(judged))
    if unjudged.height:
        doc_id, query_id = unjudged.item(0, "doc_id"), unjudged.item(0, "query_id")
        raise InputError(
            f"people did not judge document {quote(doc_id)} of query {quote(query_id)}, one of "
            f"{count_of(unjudged.height, 'unjudged document')} of the runs. Judge these documents, or leave their queries out of "
            "people's labels"
        )

    with joined_notices():
        by_people = _score_systems(labels_of_people, systems, measures, judged)
        by_model = _score_systems(labels_of_model, systems, measures, [*judged, *further])
    return by_people, by_model[:, :, : len(judged)], by_model[:, :, len(judged) :]


def _score_systems(
    qrels: Qrels, systems: Mapping[str, Any], measures: list[ir_measures.Measure], queries: list[str]
) -> np.ndarray[Any, Any]:
    return np.asarray([_score(qrels, name, run, measures, queries) for name, run in systems.items()])


def compute_intervals(
    human: np.ndarray[Any, Any], model: np.ndarray[Any, Any], further: np.ndarray[Any, Any], *, confidence: float = 0.95
) -> PoweredEstimate:
    """Estimate a mean. `human` and `model` are values of the same queries. `further` is for queries that only the model judged."""
    from scipy.stats import t

    n, more = len(human), len(further)
    weight = 0.0
    variance = float(np.var(np.concatenate([model, further]), ddof=1))
    if more > 1 and variance > 0:
        covariance = np.cov(human, model)[0, 1]
        weight = float(np.clip(covariance / ((1 + n / more) * variance), 0, 1))
    quantile = float(t.ppf((1 + confidence) / 2, n - 1))

    mean = float(np.mean(human))
    half_width = quantile * math.sqrt(float(np.var(human, ddof=1)) / n)
    by_human = mean, mean - half_width, mean + half_width

    estimate = mean
    squared_error = float(np.var(human - weight * model, ddof=1)) / n
    if weight:
        estimate += weight * float(np.mean(further) - np.mean(model))
        squared_error += weight**2 * float(np.var(further, ddof=1)) / more
    half_width = quantile * math.sqrt(squared_error)
    powered = estimate, estimate - half_width, estimate + half_width
    return PoweredEstimate(by_human, powered, weight, n, more, confidence)


def _read_measure(measure: Any) -> ir_measures.Measure:
    """Return the one measure. Raise `MeasureError` for several."""
    measures = parse_measures(measure)
    if len(measures) > 1:
        raise MeasureError(
            f"{str(measure)!r} names {len(measures):,} measures, but systems are compared on one. Give one measure, such as "
            f"{str(measures[-1])!r}"
        )
    return measures[0]


def _score(
    qrels: Qrels, name: str, run: Any, measures: list[ir_measures.Measure], queries: list[str]
) -> list[list[float]]:
    """Return the value of each query, for each measure."""
    scoring = Scoring(qrels, {name: run}, urls="keep")
    with notices_about(Subject(name)):
        warn_of_labels(scoring.opened.qrels.frame, measures, switch=False)
        with notices_for(measures):
            scores = scoring.score_runs(measures)[name]
        scoring.warn_of_coverage({name: scores.coverage})

    value_of = {(query, measure): value for query, measure, value in scores.per_query.iter_rows()}
    by_measure = []
    for measure in map(str, measures):
        values = [value_of[query, measure] for query in queries]
        if None in values:
            query = queries[values.index(None)]
            raise MeasureError(
                f"{measure} has no value for the system {quote(name)} in query {quote(query)}, and systems are compared on "
                "the same queries. Name a measure that has a value in this query, or leave the query out of the labels"
            )
        by_measure.append(values)
    return by_measure


def _tau_b(means: np.ndarray[Any, Any]) -> float | None:
    """Return tau-b of two orders, or None if undefined. `means` has the systems' human means, then their model means."""
    from scipy.stats import kendalltau

    tau = float(kendalltau(*np.split(means, 2)).statistic)
    return None if math.isnan(tau) else tau


def _tau_top(means: np.ndarray[Any, Any]) -> float | None:
    human, model = np.split(means, 2)
    top = np.argsort(-human, kind="stable")[: (len(human) + 1) // 2]
    return _tau_b(np.concatenate([human[top], model[top]]))


def _tau_ap(means: np.ndarray[Any, Any]) -> float | None:
    """Return tau-AP, averaged over all orders of tied model means. A pair with equal human means counts as half concordant."""
    human, model = np.split(means, 2)
    if len(set(model.tolist())) < 2:
        return None

    # axes: the two systems of a pair
    is_above = model[:, None] > model
    is_tied = model[:, None] == model
    concordant = np.where(human[:, None] == human, 0.5, human[:, None] > human)
    concordant_above = (concordant * is_above).sum(axis=0)
    right_above = is_tied @ concordant_above / is_tied.sum(axis=0)  # the mean of tied systems

    order = np.argsort(-model, kind="stable")
    places = np.arange(len(model))
    tied_above = places - is_above.sum(axis=0)[order]
    shares = (right_above[order] + 0.5 * tied_above)[1:] / places[1:]
    return float(2 * shares.mean() - 1)
