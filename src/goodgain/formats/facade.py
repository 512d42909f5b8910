"""Runs and qrels as pandas frames, for hosts that ask for one."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any

import polars as pl

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["PandasFacade"]


class PandasFacade:
    """Takes every attribute that a subclass lacks from a pandas frame of its `host_frame`, built on first use."""

    @property
    def host_frame(self) -> pl.DataFrame:
        """The rows that a host may see."""
        raise AttributeError(f"{type(self).__name__} does not say what hosts may see")

    @cached_property
    def _pandas(self) -> pd.DataFrame:
        return self.host_frame.to_pandas()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # never pandas' own internals: copying and pickling ask for those
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return getattr(self._pandas, name)

    def __getitem__(self, key: Any) -> Any:
        return self._pandas[key]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._pandas)
