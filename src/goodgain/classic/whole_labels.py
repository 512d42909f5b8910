"""Converts fractional labels for hosts that take whole numbers only, for each classic measure in the way that it allows."""

from __future__ import annotations

import decimal
from dataclasses import dataclass

import ir_measures
import polars as pl

from goodgain.errors import MeasureError

__all__ = ["Labelling", "choose_labelling"]

#: trec_eval allocates a list of all levels up to the largest label for every query.
_MOST_LEVELS = 100_000


@dataclass(frozen=True)
class Labelling:
    """The form in which a host gets labels: as they are, as 1 where label >= `rel` and 0 elsewhere, or times `scale`."""

    rel: float | None = None
    scale: int = 1
    whole: bool = True

    @property
    def relevance(self) -> pl.Expr:
        """The column of labels that the host gets."""
        label = pl.col("relevance")
        if self.rel is not None:
            return (label >= self.rel).cast(pl.Int64)
        return (label * self.scale).round().cast(pl.Int64) if self.whole else label


def choose_labelling(measure: ir_measures.Measure, fractional: pl.Series) -> tuple[ir_measures.Measure, Labelling]:
    """Return the measure to ask a host for, and the form of the labels to give it.

    Whole labels stay as they are. Where some label is fractional, a measure with a `rel` gets 1 where label >= rel and 0
    elsewhere. Linear nDCG gets the labels times the power of ten that makes them whole, which does not change its value. A
    function that the user defined gets the labels themselves.

    Args:
        measure: a measure of ir_measures.
        fractional: the labels that are not whole numbers.

    Raises:
        MeasureError: some label is fractional, and the measure is none of these.
    """
    if fractional.is_empty():
        return measure, Labelling()
    if hasattr(measure, "runtime_impl"):
        return measure, Labelling(whole=False)
    rel = measure["rel"] if "rel" in measure.SUPPORTED_PARAMS else None
    if isinstance(rel, (int, float)):
        return measure(rel=1), Labelling(rel=rel)
    if "rel" in measure.SUPPORTED_PARAMS and "rel" not in measure.params:
        return measure, Labelling(rel=1)  # NumRet, whose value does not depend on labels
    if measure.NAME == "nDCG" and measure["dcg"] == "log2" and "gains" not in measure.params:
        return measure, Labelling(scale=_find_scale(measure, fractional))
    raise MeasureError(
        f"{measure} needs whole labels, and the qrels have the label {fractional[0]:g}; "
        "round the labels, or ask for measures with rel=, linear nDCG or the good-gain measures"
    )


def _find_scale(measure: ir_measures.Measure, fractional: pl.Series) -> int:
    """Return the power of ten that makes every label a whole number."""
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
