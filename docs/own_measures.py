"""A measure for the page on measures of one's own: `goodgain evaluate ... --define docs/own_measures.py`."""

import polars as pl

import goodgain as gg


def count_empty_searches(rows: pl.DataFrame) -> int:
    """Iterations that returned nothing."""
    return int((rows["R"] == 0).sum())


gg.define("EmptySearches", count_empty_searches, better="down", title="Searches without results")
