"""The value of a measure at iteration i, declared once and computed in two ways: along a whole ledger, or at a cutoff.

Here also stands how measures of both families divide.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol, TypeVar

import narwhals as nw
import polars as pl

__all__ = ["UpTo", "Value", "Written", "build_value", "divide_rows"]

_Expr = TypeVar("_Expr", pl.Expr, nw.Expr)


def divide_rows(a: _Expr, b: _Expr | float) -> _Expr:
    """Return a / b, row by row, with the digits of Python's a / b; a must be finite.

    Polars multiplies by 1 / b, and rounds twice, where it knows that b is one number for several rows. It never knows that
    of a * 0 + b.
    """
    return a / (a * 0 + b)


class UpTo(Protocol):
    """Iterations 1..i of a query, as declarations of measures see them."""

    def total(self, x: pl.Expr) -> pl.Expr:
        """Return the sum of x over these iterations."""

    def highest(self, x: pl.Expr) -> pl.Expr:
        """Return the largest x in these iterations, null where all x are null."""


Written = Callable[[UpTo], pl.Expr]


class Value(NamedTuple):
    """The value of a measure at iteration i, as expressions.

    Attributes:
        along: the value at each row of a ledger joined with its pools.
        at: the value at one i for each query, from the row of that i, the pools, and the columns of `sums`.
        sums: name of a column -> the aggregate of a query's rows 1..i that it holds.
    """

    along: pl.Expr
    at: pl.Expr
    sums: Mapping[str, pl.Expr]


def build_value(written: Written) -> Value:
    """Return a value in both forms: running sums are slow, and only the output of a ledger needs them.

    Args:
        written: the function from iterations 1..i to the value that the declaration gives.
    """
    at = _AtCutoff()
    return Value(written(_AlongLedger()), written(at), at.sums)


class _AlongLedger:
    """Sums over iterations 1..i as running sums: a value for every row of the ledger."""

    def total(self, x: pl.Expr) -> pl.Expr:
        return x.cum_sum().over("query_id")

    def highest(self, x: pl.Expr) -> pl.Expr:
        return x.cum_max().forward_fill().over("query_id")


@dataclass
class _AtCutoff:
    """Sums over iterations 1..i as aggregates, whose columns are collected in `sums`: a value for each query."""

    sums: dict[str, pl.Expr] = field(default_factory=dict)

    def total(self, x: pl.Expr) -> pl.Expr:
        return self._add_column(x.sum()).fill_null(0)  # a query without any row

    def highest(self, x: pl.Expr) -> pl.Expr:
        return self._add_column(x.max())

    def _add_column(self, x: pl.Expr) -> pl.Expr:
        name = x.meta.serialize().hex()  # so measures that need the same sum have one column for it
        self.sums[name] = x
        return pl.col(name)
