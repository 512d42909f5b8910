"""Chooses the provider of ir_measures and the form of its labels, and refuses input that it would score wrongly."""

from __future__ import annotations

import decimal
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import ir_measures
import polars as pl

from goodgain.errors import MeasureError
from goodgain.formats.forms_for_hosts import LOWEST_LABEL

#: The largest label that gdeval.pl accepts (its MAX_JUDGMENT).
_GDEVAL_MOST = 4
#: The largest scaled label: trec_eval allocates a list of all levels up to it for every query.
_LARGEST_SCALED = 100_000


def choose_provider(measure: ir_measures.Measure, provider: str | None) -> Any:
    """Return the provider that the user named, or the choice of ir_measures."""
    known = ir_measures.providers.registry
    if provider is not None and provider not in known:
        raise MeasureError(f"provider {provider!r} is unknown to ir_measures; it has {', '.join(sorted(known))}")
    candidates = ir_measures.DefaultPipeline.providers if provider is None else [known[provider]]
    able = [one for one in candidates if one.supports(measure)]
    chosen = next((one for one in able if one.is_available()), None)
    if chosen is None:
        whom = "no provider of ir_measures" if provider is None else f"provider {provider}"
        ways = " or ".join(one.install_instructions() or one.NAME for one in able)
        remedy = f"as installed here; {ways}" if ways else "with these parameters; see ir-measur.es for those allowed"
        raise MeasureError(f"{measure}: {whom} computes it {remedy}")
    return chosen


def check_provider(
    provider: Any, measures: Sequence[ir_measures.Measure], labels: pl.DataFrame, ranking: pl.DataFrame
) -> None:
    """Raise `MeasureError` for input that makes a provider crash or return a wrong value."""
    names = ", ".join(map(str, measures))
    if provider.NAME == "pytrec_eval":
        _check_low_labels(measures, labels)
        if any(measure.NAME == "Bpref" for measure in measures):
            _check_bpref(labels)
    if provider.NAME == "gdeval":
        _check_gdeval(names, labels, ranking)
    if provider.NAME == "ranx":
        _check_ranx(names, labels, ranking)


def _check_low_labels(measures: Sequence[ir_measures.Measure], labels: pl.DataFrame) -> None:
    low = labels.get_column("relevance").filter(labels.get_column("relevance") < LOWEST_LABEL)
    for measure in measures if len(low) else []:
        judged_only = "judged_only" in measure.SUPPORTED_PARAMS and measure["judged_only"]
        if judged_only or measure.NAME in ("Bpref", "infAP"):
            raise MeasureError(
                f"{measure} needs to know the unjudged documents, and the qrels have the label {low[0]:g}. trec_eval "
                "treats negative labels as unjudged, and fails below -1. Map the labels."
            )


def _check_bpref(labels: pl.DataFrame) -> None:
    """Refuse queries with only negative labels: bpref of trec_eval then writes outside its memory, and crashes or hangs."""
    below_zero = labels.group_by("query_id").agg(pl.col("relevance").max()).filter(pl.col("relevance") < 0)
    if len(below_zero):
        query_id = below_zero.get_column("query_id").sort()[0]
        raise MeasureError(
            f"Bpref: query {query_id!r} has only negative labels, and pytrec_eval crashes on it; leave Bpref out, or remove "
            "the labels of this query"
        )


def _check_gdeval(names: str, labels: pl.DataFrame, ranking: pl.DataFrame) -> None:
    """Refuse ids and labels that gdeval cannot read.

    gdeval.pl shortens the query id S-22 to 22, merges 7 and 007, and fails on other query ids that are not numbers.
    """
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
        raise MeasureError(f"{names}: gdeval takes no blanks in ids, and there is {blank[0]!r}; leave the measure out")


def _check_ranx(names: str, labels: pl.DataFrame, ranking: pl.DataFrame) -> None:
    import pandas as pd

    if int(pd.__version__.split(".")[0]) >= 3:
        raise MeasureError(
            f"{names}: the ranx provider of ir_measures fails under pandas {pd.__version__}; install pandas<3, or name no provider"
        )
    judged, found = (set(frame.get_column("query_id")) for frame in (labels, ranking))
    if judged != found:
        raise MeasureError(
            f"{names}: the ranx provider of ir_measures needs the same queries in run and qrels, and "
            f"{min(judged ^ found)!r} is in only one of them; name no provider"
        )


@dataclass(frozen=True)
class Labelling:
    """The form of a provider's labels: unchanged, 1 if label >= `rel` and else 0, or times `scale`."""

    rel: float | None = None
    scale: int = 1
    whole: bool = True

    @property
    def relevance(self) -> pl.Expr:
        """The column of labels for the provider."""
        label = pl.col("relevance")
        if self.rel is not None:
            return (label >= self.rel).cast(pl.Int64)
        return (label * self.scale).round().cast(pl.Int64) if self.whole else label


def choose_labelling(measure: ir_measures.Measure, fractional: pl.Series) -> tuple[ir_measures.Measure, Labelling]:
    """Return the measure to ask a provider for, and the form of its labels.

    Whole labels stay unchanged. If a label is fractional, the form depends on the measure:

    - With a `rel`: 1 if label >= rel, else 0.
    - Linear nDCG: the labels times the power of ten that makes them whole, which does not change the value.
    - A function that the user defined: unchanged.
    - Any other: an error.
    """
    if fractional.is_empty():
        return measure, Labelling()
    if hasattr(measure, "runtime_impl"):
        return measure, Labelling(whole=False)
    rel = measure["rel"] if "rel" in measure.SUPPORTED_PARAMS else None
    if isinstance(rel, (int, float)):
        return measure(rel=1), Labelling(rel=rel)
    if "rel" in measure.SUPPORTED_PARAMS and "rel" not in measure.params:
        return measure, Labelling(rel=1)  # the value of NumRet does not depend on labels
    if measure.NAME == "nDCG" and measure["dcg"] == "log2" and "gains" not in measure.params:
        return measure, Labelling(scale=_find_scale(measure, fractional))
    raise MeasureError(
        f"{measure} needs whole labels, and the qrels have the label {fractional[0]:g}; "
        "round the labels, or ask for measures with rel=, linear nDCG or the good-gain measures"
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
