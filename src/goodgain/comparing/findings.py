"""What a comparison found, as its tables show it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import polars as pl

__all__ = ["Findings"]


@dataclass(frozen=True, eq=False, repr=False)
class Findings:
    """The tables and sentences of a comparison; `Comparison` says what stands in each."""

    systems: pl.DataFrame
    means: pl.DataFrame
    pairs: pl.DataFrame
    values: pl.DataFrame
    baseline: str | None
    notes: tuple[str, ...]
    signature: dict[str, Any]
