"""Finds the thresholds of measures (smallest good labels), and gives notices if labels of the qrels do not fit the thresholds."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import ir_measures
import polars as pl

from goodgain.errors import count_of, notice
from goodgain.measures.declaration import DEFAULT_REL, IterationMeasure, SessionMeasure, find_meaning
from goodgain.measures.names import is_computed_here
from goodgain.options import spell

#: The largest label of the guideline's scale, to which the default threshold belongs.
_LARGEST_LABEL = 4

#: The beginning of the notices of the kind `no_good_label`, which explain values of 0.
_NO_LABEL = "no label of the qrels reaches the threshold"


def find_thresholds(measures: Iterable[ir_measures.Measure]) -> list[float]:
    """Return the sorted thresholds of measures of iterations. If no such measure has a threshold, return the default threshold."""
    return sorted({measure.rel for measure in _find_using(measures)}) or [DEFAULT_REL]


#: The smallest number above 0: measures such as nDCG give gain to each label above 0.
_ABOVE_0 = math.ulp(0.0)


def find_queries_without_good(
    measures: Iterable[ir_measures.Measure], qrels: pl.DataFrame, query_ids: pl.Series
) -> dict[str, pl.Series]:
    """Return the judged queries that have no good document for a measure, by its own threshold.

    Measures that do not look for good documents are left out, and measures for which every query has one.
    """
    largest_label = qrels.group_by("query_id").agg(pl.col("relevance").max())
    labels = query_ids.to_frame("query_id").join(largest_label, on="query_id", how="left")
    without_good = {}
    for measure in measures:
        threshold = _find_own_threshold(measure)
        if threshold is not None:
            has_good = (pl.col("relevance") >= threshold).fill_null(False)
            queries = labels.filter(~has_good).get_column("query_id")
            if len(queries):
                without_good[str(measure)] = queries
    return without_good


def _find_own_threshold(measure: ir_measures.Measure) -> float | None:
    """Return the smallest label that is good for a measure; None if the measure does not look for good documents.

    >>> from goodgain.measures.names import parse_measures
    >>> [_find_own_threshold(measure) for measure in parse_measures("nCG P(rel=3)@5 SRR Judged@5 NumRet")]
    [2.0, 3, None, None, None]
    """
    if isinstance(measure, SessionMeasure) and measure.inner is not None:
        return _find_own_threshold(measure.inner)
    declared = find_meaning(measure)
    if not declared.needs_labels:
        return None
    if isinstance(measure, IterationMeasure):
        return measure.rel if declared.uses_rel else None
    threshold = _find_rel(measure)
    # "" is a measure that goodgain does not declare
    if threshold is None and declared.name not in ("", "Judged") and declared.better == "up":
        return _ABOVE_0
    return threshold


def _find_using(measures: Iterable[ir_measures.Measure]) -> list[IterationMeasure]:
    of_iterations = [measure for measure in measures if isinstance(measure, IterationMeasure)]
    return [measure for measure in of_iterations if measure.declaration.uses_rel]


def _find_rel(measure: ir_measures.Measure) -> float | None:
    declared = measure.SUPPORTED_PARAMS.get("rel")
    rel = measure.params.get("rel", declared and declared.default)
    return rel if isinstance(rel, (int, float)) else None


def warn_of_labels(
    qrels: pl.DataFrame,
    measures: Iterable[ir_measures.Measure],
    *,
    rel: float | None = None,
    switch: bool = True,
    provider: str | None = None,
) -> None:
    """Give notices if no label reaches a threshold, if thresholds differ, or if a label is too large for the default threshold.

    `rel` is the user's threshold for measures that name no threshold. With `switch`, notices may recommend the option `rel`.
    """
    measures = [*measures]
    using = [measure for measure in _find_using(measures) if find_meaning(measure).needs_labels]
    warn_if_no_label_reaches(qrels, using, rel=rel, switch=switch)

    largest: Any = qrels.get_column("relevance").max()
    _warn_of_classic_thresholds(largest, measures, provider)
    _warn_of_differing_thresholds(qrels, measures, rel, switch)

    if largest > _LARGEST_LABEL and any("rel" not in measure.params for measure in using):
        remedy = f"such as {_spell_rel(largest / 2)}" if switch else f"as in CG(rel={largest / 2:g})"
        notice(
            "scale_of_labels",
            f"labels go up to {largest:g}, but the default {spell('rel', DEFAULT_REL)} is for labels from 0 to {_LARGEST_LABEL}: "
            f"give the smallest good label, {remedy}",
        )


def _warn_of_classic_thresholds(largest: float, measures: Iterable[ir_measures.Measure], provider: str | None) -> None:
    """Give a notice on measures over ranks whose `rel` is above the largest label of the qrels."""
    classic = [measure for measure in measures if not isinstance(measure, IterationMeasure)]
    beyond = [measure for measure in classic if 0 < largest < (_find_rel(measure) or 0)]
    if not beyond:
        return

    names = ", ".join(sorted(map(str, beyond)))
    lower = 1 if largest >= 1 else largest  # providers take whole numbers only
    changeable = [measure for measure in beyond if largest >= 1 or is_computed_here(measure, provider=provider)]
    remedy = "Scale the labels to whole numbers."
    if changeable:
        remedy = f"Name the smallest relevant label: {min(changeable, key=str)(rel=lower)}"
    notice(
        "no_good_label",
        f"{_NO_LABEL} of {names} (the largest label is {largest:g}), so these measures find no relevant document. {remedy}",
    )


def _warn_of_differing_thresholds(
    qrels: pl.DataFrame, measures: Sequence[ir_measures.Measure], rel: float | None, switch: bool
) -> None:
    """Give a notice if measures have different default thresholds, and a judged document is good for only some measures.

    The notice is minor if all measures agree on which queries have a good document.
    """
    by_rel = _group_by_threshold(qrels, measures, rel)
    if len(by_rel) < 2:
        return

    low, high = min(by_rel), max(by_rel)
    largest = pl.col("relevance").max()
    good_for_some = qrels.filter(pl.col("relevance") >= low)
    of_documents = good_for_some.group_by("query_id", "doc_id").agg(largest)
    of_queries = of_documents.group_by("query_id").agg(largest)
    documents = of_documents.filter(pl.col("relevance") < high).height
    queries = of_queries.filter(pl.col("relevance") < high).height
    if not documents:
        return

    parts = [f"label {threshold:g} for {_list_two(of_rel)}" for threshold, of_rel in sorted(by_rel.items())]
    differing = ""
    if queries:
        differing = f", and {count_of(queries, 'query has', 'queries have')} good documents only at label {low:g}"
    above = [measure for threshold, of_rel in by_rel.items() if threshold > low for measure in of_rel]
    can_switch = len(_find_using(above)) == len(above)
    remedy = f"give {_spell_rel(low)}" if switch and can_switch else f"write {min(above, key=str)(rel=low)}"
    notice(
        "thresholds_differ",
        f"thresholds differ: {', '.join(parts)}. {count_of(documents, 'judged document is', 'judged documents are')} good "
        f"for only some measures{differing}. For one threshold, {remedy}.",
        minor=not queries,
    )


def _group_by_threshold(
    qrels: pl.DataFrame, measures: Sequence[ir_measures.Measure], rel: float | None
) -> dict[float, list[ir_measures.Measure]]:
    """Group measures by their default thresholds, up to the largest label. Above it there is a notice already."""
    largest: Any = qrels.get_column("relevance").max()
    by_rel: dict[float, list[ir_measures.Measure]] = {}
    for measure in measures:
        if not find_meaning(measure).needs_labels:
            continue  # such as SRR: a repeat counts whatever its label
        given_rel = measure.params.get("rel")
        is_default = given_rel is None or (given_rel == rel and isinstance(measure, IterationMeasure))
        threshold = _find_rel(measure) if is_default else None
        if threshold is not None and threshold <= largest:
            by_rel.setdefault(threshold, []).append(measure)
    return by_rel


def _list_two(measures: Sequence[ir_measures.Measure]) -> str:
    names = sorted({str(measure) for measure in measures})
    text = ", ".join(names[:2])
    if len(names) > 2:
        text += f" and {len(names) - 2} more"
    return text


def _spell_rel(rel: float) -> str:
    is_whole = rel == int(rel)
    return spell("rel", int(rel) if is_whole else rel)


def warn_of_rel(qrels: pl.DataFrame, rel: float) -> None:
    """Give a notice if no label reaches `rel`. Functions that take no names of measures, such as `pr_curve`, call `warn_of_rel`."""
    largest: Any = qrels.get_column("relevance").max()
    if rel > largest:
        remedy = f"Give {_spell_rel(min(1, largest))}" if largest > 0 else "Check the labels"
        notice(
            "no_good_label",
            f"{_NO_LABEL} {rel:g} (the largest label is {largest:g}). So no document is good, and nothing is found. {remedy}.",
        )


def warn_if_no_label_reaches(
    qrels: pl.DataFrame,
    measures: Iterable[IterationMeasure],
    *,
    rel: float | None = None,
    switch: bool = False,
    write: Callable[[IterationMeasure, float], str] = lambda measure, rel: str(measure(rel=rel)),
) -> None:
    """Give one notice for all measures whose threshold no label reaches.

    If a label is above 0, the notice recommends either the option `rel` or the name that `write(measure, threshold)` returns.
    """
    largest: Any = qrels.get_column("relevance").max()
    beyond = [measure for measure in measures if measure.rel > largest and find_meaning(measure).needs_labels]
    if not beyond:
        return

    lower = 1 if largest >= 1 else largest
    if largest <= 0:
        remedy = "check the labels"
    elif switch and any("rel" not in measure.params or measure.rel == rel for measure in beyond):
        remedy = f"give {_spell_rel(lower)}"
    else:
        remedy = f"write {write(min(beyond, key=str), lower)}"  # hosts pass measures in any order

    thresholds = " or ".join(f"{threshold:g}" for threshold in find_thresholds(beyond))
    notice(
        "no_good_label",
        f"{_NO_LABEL} {thresholds} (the largest label is {largest:g}). So no document is good, and measures such as CG and SRE "
        f"cannot tell runs apart; {remedy}",
    )
