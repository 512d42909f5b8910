"""Sums, largest values and running sums over the rows of each query: the arithmetic of measures, on arrays."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

#: An array of numbers, in which NaN stands for no value.
Array = Any


class RowsOfQueries:
    """Rows of several queries. The rows of a query stand together.

    >>> rows = RowsOfQueries(np.array([2, 0, 3]))
    >>> rows.total(np.array([1, 2, 3, 4, 5])).tolist(), rows.running_total(np.array([1, 2, 3, 4, 5])).tolist()
    ([3.0, 0.0, 12.0], [1.0, 3.0, 3.0, 7.0, 12.0])
    """

    def __init__(self, lengths: Array) -> None:
        """`lengths` has the number of rows of each query."""
        self.lengths = lengths

    @cached_property
    def query(self) -> Array:
        """The number of the query of each row."""
        return np.repeat(np.arange(len(self.lengths)), self.lengths)

    def spread(self, x: Array) -> Array:
        """Return a value for each row: that of its query in `x`."""
        return x[self.query]

    def total(self, x: Array) -> Array:
        """Return the sum of x over the rows of each query; 0 for a query without rows."""
        return np.bincount(self.query, x, len(self.lengths))

    def highest(self, x: Array) -> Array:
        """Return the largest x of each query; NaN for a query in which no row has a value."""
        has_rows = self.lengths > 0
        if has_rows.all() and len(x):
            return np.fmax.reduceat(x, self._starts)
        highest = np.full(len(self.lengths), np.nan)
        if has_rows.any():
            highest[has_rows] = np.fmax.reduceat(x, self._starts[has_rows])
        return highest

    def running_total(self, x: Array) -> Array:
        """Return, for each row, the sum of x over the rows of its query up to this row."""
        return self._accumulate(np.add, x)

    def running_highest(self, x: Array) -> Array:
        """Return, for each row, the largest x in the rows of its query up to this row; NaN if none has a value."""
        return self._accumulate(np.fmax, x)

    @cached_property
    def _starts(self) -> Array:
        return np.cumsum(self.lengths) - self.lengths

    def _accumulate(self, function: Any, x: Array) -> Array:
        """Accumulate each query on its own, so that its digits do not depend on other queries.

        Queries of similar length are laid side by side in a matrix, at most twice as large as their rows.
        """
        accumulated = np.empty(len(x))
        for bits in range(int(self.lengths.max(initial=0)).bit_length()):
            is_similar = (self.lengths >= 2**bits) & (self.lengths < 2 ** (bits + 1))
            queries = np.flatnonzero(is_similar)
            if not len(queries):
                continue

            place = np.arange(self.lengths[queries].max())
            is_row = place < self.lengths[queries, None]  # a row of the matrix per query, a column per place
            rows = (self._starts[queries, None] + place)[is_row]
            matrix = np.zeros(is_row.shape)
            matrix[is_row] = x[rows]
            accumulated[rows] = function.accumulate(matrix, axis=1)[is_row]
        return accumulated


def divide(a: Array, b: Array) -> Array:
    """Return a / b where b is not 0, else 0.

    >>> divide(np.array([1.0, 1.0]), np.array([2, 0])).tolist()
    [0.5, 0.0]
    """
    quotients = np.zeros(len(a))
    return np.divide(a, b, out=quotients, where=b != 0)
