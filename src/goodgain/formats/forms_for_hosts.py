"""Runs and qrels as hosts take them: pandas frames, dicts of dicts, and labels that do not crash trec_eval."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any

import polars as pl

from goodgain.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

#: trec_eval keeps a list of all levels up to the largest label, for every query.
_MOST_LEVELS = 10_000_000
#: Lower labels make trec_eval write outside its memory, and pytrec_eval may crash. Measures treat -1 like any lower label.
LOWEST_LABEL = -1


class PandasFacade:
    """Looks up attributes that a subclass lacks in a pandas copy of its `host_frame`, built on first use."""

    @property
    def host_frame(self) -> pl.DataFrame:
        """The rows that a host may see."""
        raise AttributeError(f"{type(self).__name__} does not say what hosts may see")

    @cached_property
    def _pandas(self) -> pd.DataFrame:
        return self.host_frame.to_pandas()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # copying and pickling look for private names, and must not find pandas'
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return getattr(self._pandas, name)

    def __getitem__(self, key: Any) -> Any:
        return self._pandas[key]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._pandas)


def to_nested_dict(frame: pl.DataFrame, value: str) -> dict[str, dict[str, Any]]:
    """Return {query_id: {doc_id: value}}, queries in the order of their first rows.

    >>> to_nested_dict(pl.DataFrame({"query_id": ["q", "q"], "doc_id": ["a", "b"], "score": [2.0, 1.0]}), "score")
    {'q': {'a': 2.0, 'b': 1.0}}
    """
    queries = frame.group_by("query_id", maintain_order=True).agg("doc_id", value)
    columns = (queries.get_column(name).to_list() for name in queries.columns)
    return {query_id: dict(zip(docs, values, strict=True)) for query_id, docs, values in zip(*columns, strict=True)}


def check_levels(labels: pl.DataFrame) -> None:
    """Raise `InputError` for a label too large for the hosts: trec_eval would run out of memory, or give 0."""
    high = labels.get_column("relevance").filter(labels.get_column("relevance").abs() > _MOST_LEVELS)
    if len(high):
        raise InputError(
            f"the label {high[0]:g} is too large for trec_eval, whose memory grows with the largest label (the limit is "
            f"{_MOST_LEVELS:,}); map the labels to a small scale"
        )


def clip_for_trec_eval(frame: pl.DataFrame) -> pl.DataFrame:
    """Raise the labels that can crash trec_eval; its values stay the same.

    Labels below -1 become -1. In a query with labels below 0 only, each becomes 0: trec_eval searches for a level of
    relevance from 0 up, and may never end without one.
    """
    if not (frame.get_column("relevance") < 0).any():
        return frame
    relevance = pl.col("relevance").clip(lower_bound=LOWEST_LABEL)
    has_none = relevance.max().over("query_id") < 0
    return frame.with_columns(relevance=pl.when(has_none).then(0).otherwise(relevance))
