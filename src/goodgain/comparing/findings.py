"""The result of a comparison, as tables and texts are made from it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import polars as pl

__all__ = ["Findings"]


@dataclass(frozen=True, eq=False, repr=False)
class Findings:
    """The frames and notes of a comparison; `Comparison` documents their columns."""

    systems: pl.DataFrame
    coverage: pl.DataFrame
    means: pl.DataFrame
    pairs: pl.DataFrame
    values: pl.DataFrame
    baseline: str | None
    notes: tuple[str, ...]
    signature: dict[str, Any]
