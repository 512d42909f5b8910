"""Computes measures that users define: Python functions of the ledger's rows (counts per iteration) of a query."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from numbers import Real
from typing import Any

import ir_measures
import polars as pl

from goodgain.counting.ledger import Counts
from goodgain.errors import MeasureError
from goodgain.measures.declaration import Declaration, DeclaredMeasure, GoodGainMeasure, SessionMeasure

#: The columns of the rows that a function gets, before those of the costs.
COUNTED = ("R", "UR", "Dup", "GR", "G", "Unjudged")
OF_QUERY = ("N", "GoodPool", "GainPool")
COLUMNS = ("query_id", "iteration", *COUNTED, *OF_QUERY)


@dataclass(frozen=True, kw_only=True)
class Definition(Declaration):
    """The declaration of a measure that a user defined with `goodgain.define`."""

    function: Callable[[pl.DataFrame], Any]
    costs: tuple[str, ...]  # the columns of costs that the function reads
    digest: str  # short digest of the source of the function
    maker: Callable[..., Any]  # a function of a module, which makes the measure from `arguments` and parameters
    arguments: tuple[Any, ...]

    @property
    def kind(self) -> type[DeclaredMeasure]:
        return MeasureOfCosts if self.costs else MeasureOfUser


class MeasureOfUser(GoodGainMeasure):
    """A measure that a user defined as a function of the rows of the ledger."""

    @property
    def depends_on_ends(self) -> bool:
        return True

    def __deepcopy__(self, memo: dict[int, Any]) -> DeclaredMeasure:
        return type(self)(**self.params)

    def __reduce__(self) -> tuple[Any, ...]:
        return _refer_to(self)


class MeasureOfCosts(SessionMeasure):
    """A measure that a user defined as a function of the rows of the ledger and their costs."""

    @property
    def spends(self) -> tuple[str, ...]:
        return _find_definition(self).costs

    def __deepcopy__(self, memo: dict[int, Any]) -> DeclaredMeasure:
        return type(self)(**self.params)

    def __reduce__(self) -> tuple[Any, ...]:
        return _refer_to(self)


def _find_definition(measure: DeclaredMeasure) -> Definition:
    declared = measure.declaration
    if not isinstance(declared, Definition):
        raise TypeError(f"{measure} was not defined by a user")
    return declared


def _refer_to(measure: DeclaredMeasure) -> tuple[Any, ...]:
    """Return how `pickle` makes the measure again. It stores the function as the name of a function of a module."""
    definition = _find_definition(measure)
    if "<" in getattr(definition.function, "__qualname__", ""):  # <lambda>, or <locals> of another function
        raise MeasureError(
            f"{measure}: another process cannot find this function. Define it in a module, at the top level."
        )
    return definition.maker, (measure.params, *definition.arguments)


def sign_definitions(measures: Iterable[ir_measures.Measure]) -> dict[str, list[str]]:
    """Return the part of a signature that says which functions computed the values: names with digests of the sources."""
    digests = {}
    for measure in measures:
        if isinstance(measure, DeclaredMeasure) and isinstance(measure.declaration, Definition):
            digests[measure.NAME] = measure.declaration.digest
    if not digests:
        return {}
    return {"defined": [f"{name}:{digest}" for name, digest in digests.items()]}


def value_at_cutoff(
    measure: MeasureOfUser | MeasureOfCosts, counts: Counts, costs: pl.DataFrame | None = None
) -> pl.Series:
    """Return the value of each query of the pools, in their order. Without a cutoff it is the value at the last iteration."""
    cutoff = measure.cutoff
    values: list[float | None] = []
    for query_id, rows in _list_queries(measure, counts, costs):
        if rows.is_empty():
            values.append(None if measure.is_null_without_search else 0.0)
            continue
        if cutoff is not None:
            rows = _cut_or_fill(rows, cutoff, measure)
        values.append(_call(measure, query_id, rows))
    return pl.Series(str(measure), values, pl.Float64)


def values_along(measure: MeasureOfUser, counts: Counts) -> pl.DataFrame:
    """Return the value at each iteration: query_id, iteration, and a Float64 column with the name of the measure."""
    frames: list[pl.DataFrame] = []
    for query_id, rows in _list_queries(measure, counts):
        values = []
        for iteration in range(1, rows.height + 1):
            values.append(_call(measure, query_id, rows.head(iteration)))
        column = pl.Series(str(measure), values, pl.Float64)
        frames.append(rows.select("query_id", "iteration").with_columns(column))
    return pl.concat(frames)


def _list_queries(
    measure: MeasureOfUser | MeasureOfCosts, counts: Counts, costs: pl.DataFrame | None = None
) -> Iterator[tuple[str, pl.DataFrame]]:
    """Yield each query of the pools with its rows: `COLUMNS`, and the costs that the measure names. No rows: not searched."""
    pools = counts.pools
    rows = counts.ledger.join(pools, on="query_id", how="inner").sort("query_id", "iteration")
    if costs is not None:
        rows = rows.join(costs, on=["query_id", "iteration"], how="left", maintain_order="left")
    rows = rows.select(*COLUMNS, *_find_definition(measure).costs)

    starts = rows.with_row_index().group_by("query_id").agg(pl.col("index").min())
    start_of = dict(starts.iter_rows())
    for query_id, searches in pools.select("query_id", "N").iter_rows():
        yield query_id, rows.slice(start_of.get(query_id, 0), searches)


def _cut_or_fill(rows: pl.DataFrame, cutoff: int, measure: DeclaredMeasure) -> pl.DataFrame:
    """Return rows 1..cutoff. Rows after the last iteration have no results and costs: an agent that stopped gains nothing more."""
    if rows.height >= cutoff:
        return rows.head(cutoff)
    zeros = [pl.lit(0).alias(name) for name in (*COUNTED, *_find_definition(measure).costs)]
    constants = [pl.lit(rows.item(0, name)).alias(name) for name in ("query_id", *OF_QUERY)]
    after = pl.select(iteration=pl.int_range(rows.height + 1, cutoff + 1))
    after = after.with_columns(*zeros, *constants)
    return rows.vstack(after.select(rows.columns).cast(rows.schema))


def _call(measure: DeclaredMeasure, query_id: str, rows: pl.DataFrame) -> float | None:
    """Return what the user's function returns for the rows of a query. Raise `MeasureError` for what is not a value."""
    try:
        returned = _find_definition(measure).function(rows)
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
        raise MeasureError(f"{measure}: its function fails for query {query_id!r}: {reason}") from error

    if getattr(returned, "ndim", None) == 0:  # a number of NumPy
        returned = returned.item()
    if returned is None:
        return None
    if not isinstance(returned, Real) or not math.isfinite(returned):
        raise MeasureError(
            f"{measure}: its function returns {returned!r} for query {query_id!r}. Return a finite number, or None for no value."
        )
    value = float(returned)
    least, most = measure.declaration.bounds
    if value < float(least) or value > float(most or math.inf):
        raise MeasureError(f"{measure}: its function returns {value:g} for query {query_id!r}, outside its bounds.")
    return value
