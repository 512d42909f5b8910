"""The scores of several systems, in one table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import polars as pl

from goodgain.errors import InputError
from goodgain.formats.systems import stack_systems
from goodgain.measures.replicate_scores import find_values
from goodgain.measures.scores import Scores

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False, repr=False)
class SystemScores:
    """The scores of several systems on the same measures and queries.

    Attributes:
        systems: name -> the `Scores` of the system.
        notes: all notices of the call, also minor ones.

    `found["new", "nCG@3"]` is the mean of a system.
    """

    systems: Mapping[str, Scores]
    notes: tuple[str, ...] = ()

    @cached_property
    def values(self) -> pl.DataFrame:
        """system, replicate (the number of the run; null for a system of one run), query_id, measure, value."""
        frames = []
        for name, of in self.systems.items():
            missing = of.signature.get("missing", "zero")
            runs: list[tuple[int | None, pl.DataFrame]] = [
                (k, find_values(run, missing)) for k, run in enumerate(of.replicates, 1)
            ]
            for number, values in runs or [(None, of.per_query)]:
                replicate = pl.lit(number, pl.Int64).alias("replicate")
                frames.append(values.select(pl.lit(name).alias("system"), replicate, "query_id", "measure", "value"))
        return pl.concat(frames)

    @property
    def by_group(self) -> pl.DataFrame | None:
        """system, group, measure, queries, value; None without groups."""
        found = {name: of.by_group for name, of in self.systems.items() if of.by_group is not None}
        return stack_systems(found) if found else None

    def __getitem__(self, key: tuple[str, Any]) -> float | None:
        if not (isinstance(key, tuple) and len(key) == 2):
            raise InputError(f"{key!r}: these are scores of {self._listed}. Name one too: {self._show(key)}")
        system, measure = key
        if system not in self.systems:
            raise InputError(f"{system!r} is not one of the systems; they are {', '.join(self.systems)}")
        return self.systems[system][measure]

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("_") and (hasattr(Scores, name) or name in Scores.__dataclass_fields__):
            raise AttributeError(
                f"{name}: these are scores of {self._listed}. Use .values, or .systems[{next(iter(self.systems))!r}].{name}"
            )
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    @property
    def _listed(self) -> str:
        return f"the systems {', '.join(self.systems)}"

    def _show(self, measure: Any) -> str:
        return f'["{[*self.systems][-1]}", "{measure}"]'

    def to_polars(self) -> pl.DataFrame:
        """Return `values`."""
        return self.values

    def to_pandas(self) -> pd.DataFrame:
        """Return `values` as a frame of pandas."""
        return self.values.to_pandas()

    def __repr__(self) -> str:
        measures = [*next(iter(self.systems.values())).means]
        return f"SystemScores({', '.join(self.systems)}; {', '.join(measures)})"
