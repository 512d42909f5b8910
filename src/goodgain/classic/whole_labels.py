"""Fractional labels for hosts that take whole ones: what each classic measure may be given instead."""

from __future__ import annotations

import decimal
from dataclasses import dataclass

import ir_measures
import polars as pl

from goodgain.errors import MeasureError

__all__ = ["Labelling", "whole_labels"]

#: trec_eval keeps a list of all levels up to the largest label, and makes it anew for every query.
_MOST_LEVELS = 100_000


@dataclass(frozen=True)
class Labelling:
    """How labels reach a host: as they are, as the 0/1 of label >= `rel`, or times `scale`."""

    rel: float | None = None
    scale: int = 1
    whole: bool = True

    @property
    def relevance(self) -> pl.Expr:
        """The column the host gets."""
        label = pl.col("relevance")
        if self.rel is not None:
            return (label >= self.rel).cast(pl.Int64)
        return (label * self.scale).round().cast(pl.Int64) if self.whole else label


def whole_labels(measure: ir_measures.Measure, fractional: pl.Series) -> tuple[ir_measures.Measure, Labelling]:
    """The measure to ask a host for, and the labels to give it.

    Whole labels stay as they are. With fractional ones a measure with a `rel` gets the 0/1 of label >= its rel, linear
    nDCG the labels times the power of ten that makes them whole (its value does not change), a user's own function the
    labels themselves.

    Args:
        measure: one of ir_measures' measures.
        fractional: the labels that are no whole numbers.

    Raises:
        MeasureError: any other measure; it names the label.
    """
    if fractional.is_empty():
        return measure, Labelling()
    if hasattr(measure, "runtime_impl"):
        return measure, Labelling(whole=False)
    rel = measure["rel"] if "rel" in measure.SUPPORTED_PARAMS else None
    if isinstance(rel, (int, float)):
        return measure(rel=1), Labelling(rel=rel)
    if "rel" in measure.SUPPORTED_PARAMS and "rel" not in measure.params:
        return measure, Labelling(rel=1)  # NumRet: no label matters to it
    if measure.NAME == "nDCG" and measure["dcg"] == "log2" and "gains" not in measure.params:
        return measure, Labelling(scale=_whole_scale(measure, fractional))
    raise MeasureError(
        f"{measure} needs whole labels, and the qrels have the label {fractional[0]:g}; "
        "round the labels, or ask for measures with rel=, linear nDCG or the good-gain measures"
    )


def _whole_scale(measure: ir_measures.Measure, fractional: pl.Series) -> int:
    """The power of ten that makes every label whole."""
    decimals = {
        label: -int(decimal.Decimal(repr(label)).normalize().as_tuple().exponent) for label in fractional.unique()
    }
    scale: int = 10 ** max(decimals.values())
    if scale * max(map(abs, decimals)) > _MOST_LEVELS:
        raise MeasureError(
            f"{measure}: the label {max(decimals, key=lambda label: decimals[label])!r} has too many decimals for "
            "trec_eval, which keeps a list of all levels of relevance; round the labels to three decimals"
        )
    return scale
