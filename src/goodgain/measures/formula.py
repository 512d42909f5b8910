"""What a measure is at iteration i, written once and worked out in two ways: along a whole ledger, or at one cutoff."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import polars as pl

__all__ = ["UpTo", "Value", "Written", "value_of"]


class UpTo(Protocol):
    """Iterations 1..i of a query."""

    def total(self, x: pl.Expr) -> pl.Expr:
        """The sum of x over these iterations."""

    def highest(self, x: pl.Expr) -> pl.Expr:
        """The largest x in these iterations; null where x always is."""


Written = Callable[[UpTo], pl.Expr]


class Value(NamedTuple):
    """A value at iteration i.

    Attributes:
        along: at each row of a ledger joined with its pools.
        at: at one i for each query, from the row of that i, pools, and the columns of `sums`.
        sums: column by name -> what it is of a query's rows 1..i.
    """

    along: pl.Expr
    at: pl.Expr
    sums: Mapping[str, pl.Expr]


def value_of(name: str, written: Written) -> Value:
    """Both ways of a value: running sums are slow, and only a ledger needs them.

    Args:
        name: of the measure; its columns are named after it.
        written: the value, in terms of the row of i, and of iterations 1..i.
    """
    at = _AtCutoff(name)
    return Value(written(_AlongLedger()), written(at), at.sums)


class _AlongLedger:
    def total(self, x: pl.Expr) -> pl.Expr:
        return x.cum_sum().over("query_id")

    def highest(self, x: pl.Expr) -> pl.Expr:
        return x.cum_max().forward_fill().over("query_id")


@dataclass
class _AtCutoff:
    name: str
    sums: dict[str, pl.Expr] = field(default_factory=dict)

    def total(self, x: pl.Expr) -> pl.Expr:
        return self._column(x.sum()).fill_null(0)  # a query without any row

    def highest(self, x: pl.Expr) -> pl.Expr:
        return self._column(x.max())

    def _column(self, x: pl.Expr) -> pl.Expr:
        name = f"{self.name} {len(self.sums)}"
        self.sums[name] = x
        return pl.col(name)
