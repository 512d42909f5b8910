"""The scores of a run: a mean for each measure, the values of each query, and how they were made."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import ir_measures
import polars as pl

from goodgain.errors import MeasureError
from goodgain.measures.names import parse_measure, parse_measures

__all__ = ["Scores"]


@dataclass(frozen=True, repr=False)
class Scores:
    """The scores of one run.

    Attributes:
        means: measure by name -> value over all queries, in the order asked for; None where a query has no value.
        signature: how the values were made; it belongs beside any number that is reported.
    """

    means: dict[str, float | None]
    signature: dict[str, Any]
    _ours: pl.DataFrame
    _classic: pl.DataFrame

    @cached_property
    def per_query(self) -> pl.DataFrame:
        """query_id, measure, value: ours for every query of the qrels, a host's for the host's own set.

        A value that is not finite, as a function of the user's may give one, is null.
        """
        position = pl.col("measure").replace_strict(
            {name: k for k, name in enumerate(self.means)}, return_dtype=pl.Int64
        )
        return pl.concat([_unpivot(self._ours), self._classic]).sort("query_id", position)

    def __repr__(self) -> str:
        shown = {name: "–" if value is None else f"{value:.4f}" for name, value in self.means.items()}
        values = ", ".join(f"{name}={value}" for name, value in shown.items())
        return f"Scores({values}; {self.signature['queries']} queries)"

    def __getitem__(self, measure: str | ir_measures.Measure) -> float | None:
        """The value of one measure, however it is spelled; None where a query has no value."""
        if isinstance(measure, str) and measure in self.means:
            return self.means[measure]
        name = str(parse_measure(measure) if isinstance(measure, str) else parse_measures(measure)[0])
        if name not in self.means:
            raise MeasureError(f"{name} was not asked for; there are {', '.join(self.means)}")
        return self.means[name]

    def mean(self) -> dict[str, float | None]:
        """Measure by name -> value over all queries (for a host's own measure, by the host's own rule).

        None where a query has no value.
        """
        return dict(self.means)


def _unpivot(values: pl.DataFrame) -> pl.DataFrame:
    return values.unpivot(index="query_id", variable_name="measure", value_name="value").with_columns(
        pl.col("measure").cast(pl.String), pl.col("value").cast(pl.Float64)
    )
